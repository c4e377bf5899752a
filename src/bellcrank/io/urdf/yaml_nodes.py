"""YAML from files of unknown origin, as nodes that remember their line, within fixed bounds.

Only mappings with text keys, lists and plain text are known. Aliases (the door for bombs) and tags (the door for
objects) are refused, and no value is ever turned into a date, a number or an object by the YAML library.
"""

from __future__ import annotations

import math
import os
from typing import Any

from bellcrank.errors import FileError
from bellcrank.files.contents import text_contents
from bellcrank.io.common.xml import clipped, plain_number

__all__ = ["MAX_BYTES", "YamlNode", "read_yaml"]

MAX_BYTES = 2**20
MAX_DEPTH = 20
MAX_NODES = 10_000


class YamlNode:
    """A piece of a YAML file and the line it starts on: text, list or mapping."""

    __slots__ = ("line", "source", "value")

    def __init__(self, value: str | list[YamlNode] | dict[str, YamlNode], line: int, source: str) -> None:
        self.value = value
        self.line = line
        self.source = source

    def error(self, message: str) -> FileError:
        """The exception for something wrong here."""
        return FileError(f"{self.source}:{self.line}: {message}")

    def entries(self) -> dict[str, YamlNode]:
        """The entries of a mapping."""
        if not isinstance(self.value, dict):
            raise self.error("a mapping (key: value) is expected here")
        return self.value

    def entry(self, key: str) -> YamlNode:
        """An entry that has to be there."""
        entries = self.entries()
        if key not in entries:
            raise self.error(f"needs the entry {key!r}")
        return entries[key]

    def items(self, count: int | None = None) -> list[YamlNode]:
        """The items of a list, `count` of them if given."""
        if not isinstance(self.value, list):
            raise self.error("a list is expected here")
        if count is not None and len(self.value) != count:
            raise self.error(f"needs {count} entries, got {len(self.value)}")
        return self.value

    def text(self) -> str:
        """Text that is not blank."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.error("a name is expected here")
        return self.value

    def numbers(self, count: int) -> tuple[float, ...]:
        """A list of `count` finite numbers."""
        found = []
        for item in self.items(count):
            value = plain_number(item.text().strip())
            if not math.isfinite(value):
                raise item.error(f"{clipped(item.text())!r} is not a finite number")
            found.append(value)
        return tuple(found)


def read_yaml(path: str | os.PathLike[str]) -> YamlNode:
    """The outermost node of a YAML file."""
    source = os.fsdecode(path)
    text = text_contents(source, MAX_BYTES)
    try:
        import yaml
    except ImportError:
        raise FileError(f"{source}: reading YAML needs the package PyYAML: pip install pyyaml") from None
    try:
        return _built(yaml, text, source)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "broken"
        raise FileError(f"{source}:{mark.line + 1 if mark else 1}: is not a YAML file: {clipped(str(problem), 200)}"
                        ) from None


def _built(yaml: Any, text: str, source: str) -> YamlNode:
    """The nodes of the first document, from the stream of events, without recursion."""
    root: YamlNode | None = None
    open_nodes: list[tuple[YamlNode, str | None]] = []  # containers with the key that waits for its value

    def place(node: YamlNode) -> None:
        nonlocal root
        if not open_nodes:
            if root is not None:
                raise node.error("a second document; a file holds one")
            root = node
            return
        outer, key = open_nodes[-1]
        if isinstance(outer.value, list):
            outer.value.append(node)
        elif key is None:
            if not isinstance(node.value, str):
                raise node.error("a key has to be plain text")
            assert isinstance(outer.value, dict)
            if node.value in outer.value:
                raise node.error(f"the key {clipped(node.value)!r} is there already")
            open_nodes[-1] = outer, node.value
        else:
            assert isinstance(outer.value, dict)
            outer.value[key] = node
            open_nodes[-1] = outer, None

    for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        line = event.start_mark.line + 1
        if count > MAX_NODES or len(open_nodes) > MAX_DEPTH:
            raise FileError(f"{source}:{line}: more entries or deeper lists than a list of closures needs")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise FileError(f"{source}:{line}: aliases and anchors are refused; write the entry out")
        if getattr(event, "tag", None) not in (None, "!"):
            raise FileError(f"{source}:{line}: tags are refused; write plain text")
        if isinstance(event, yaml.ScalarEvent):
            place(YamlNode(event.value, line, source))
        elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            node = YamlNode([] if isinstance(event, yaml.SequenceStartEvent) else {}, line, source)
            place(node)
            open_nodes.append((node, None))
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            open_nodes.pop()
    return root or YamlNode({}, 1, source)
