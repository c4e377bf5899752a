"""Names in files: what they may hold."""

from __future__ import annotations

import unicodedata

__all__ = ["control_character"]

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
