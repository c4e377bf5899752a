"""Names in files: what they may hold, which are taken, and which was perhaps meant."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Mapping

from bellcrank.io.common.xml import clipped

__all__ = ["Names", "control_character", "near", "unused"]

#: categories of characters that are not seen or that rearrange the line they stand in
_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp"})


def control_character(text: str) -> str | None:
    """The first character of a name that is not to be seen, as U+0000, or None.

    Two names that look the same would be two parts, and some of these characters rearrange the line of an error.

    >>> control_character("knee\\u202e"), control_character("Knie links")
    ('U+202E', None)
    """
    found = None if text.isprintable() else next((c for c in text if unicodedata.category(c) in _UNSEEN), None)
    return None if found is None else f"U+{ord(found):04X}"


def unused(name: str, taken: Mapping[str, object]) -> str:
    """`name`, with a number behind it if it is taken."""
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    return candidate


class Names:
    """Names that are taken, and new ones; counting goes on where it stopped, so that many cost little."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._counts: dict[str, int] = {}

    def add(self, name: str) -> None:
        """Take a name."""
        self._taken.add(name)

    def fresh(self, prefix: str) -> str:
        """Take `prefix`, with a number behind it if it is taken."""
        while True:
            self._counts[prefix] = count = self._counts.get(prefix, 0) + 1
            name = prefix if count == 1 else f"{prefix}_{count}"
            if name not in self._taken:
                self._taken.add(name)
                return name


def near(name: str, names: Mapping[str, object]) -> str:
    """A hint at the name that was perhaps meant."""
    close = difflib.get_close_matches(clipped(name), list(names)[:1000], n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
