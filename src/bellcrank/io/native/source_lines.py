"""Text of YAML and JSON files into plain data, with the line of every part of it, within fixed bounds; and back.

Files come from anywhere, so nothing in them may cost more than reading them: YAML aliases (with which a small file can
stand for a huge one), tags, deep nesting and duplicate keys are refused, and numbers are read as numbers only if they
look like ones: ``yes``, ``0x10`` and ``1:30`` are text. Dates and numbers that begin with 0, which readers of YAML
do not agree about, are refused where they do not stand in quotes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from bellcrank.errors import FileError
from bellcrank.files.model_files import text_contents
from bellcrank.topology.builder import collector_paused

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_NODES", "Marked", "as_json", "as_yaml", "read_marked"]


# -- text of YAML and JSON files into plain data, with the line of every part of it, within fixed bounds ---
MAX_BYTES = 64 * 2**20
MAX_DEPTH = 20
MAX_NODES = 4_000_000

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
#: numbers that cannot be meant as anything else
_PLAIN_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*")
_OCTAL = re.compile(r"([-+]?)0+([0-9].*)")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(slots=True)
class Marked:
    """A value and the line it starts on; of mappings and lists the marks of what is in them."""

    value: Any
    line: int
    inner: Any = None  #: dict or list of `Marked`

    def find(self, path: tuple[Any, ...]) -> Marked:
        """The part at a path, as far as the path leads."""
        here = self
        for step in path:
            inner = here.inner
            known = range(len(inner)) if isinstance(inner, list) else inner or ()
            if step in known:
                here = inner[step]
        return here


def read_marked(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, max_nodes: int = MAX_NODES,
                texts: bool = False) -> Marked:
    """The content of a .json file, or else of a YAML file; with `texts`, of one that another program has written: all
    values are texts, and no sign of the end is asked for. Cost: linear in its size."""
    source = os.fsdecode(path)
    text, json = text_contents(source, max_bytes), source.lower().endswith(".json") and not texts
    return marked_text(text, source, json, max_nodes, texts)


def marked_text(text: str, source: str, json: bool, max_nodes: int = MAX_NODES, texts: bool = False) -> Marked:
    """The same of a text that was read already; `source` is what errors call it."""
    if not text.strip():
        raise FileError(f"{source}:1: the file is empty")
    tree = _Tree(source, max_nodes, texts)
    if json:
        _read_json(text, tree)
    else:
        _read_yaml(text, tree)
    assert tree.root is not None
    return tree.root


@dataclass(slots=True)
class _Tree:
    """Grows while a file is read, and stops it at the first thing refused."""

    source: str
    max_nodes: int
    texts: bool  #: whether all values are texts
    root: Marked | None = None
    open: list[Marked] = field(default_factory=list)
    #: of each open mapping, the key that waits for its value, and its line
    keys: list[tuple[str, int] | None] = field(default_factory=list)
    count: int = 0
    marked: bool = False  #: whether it began with the sign of YAML for the beginning

    def error(self, line: int, message: str) -> FileError:
        return FileError(f"{self.source}:{line}: {message}")

    def wants_key(self) -> bool:
        """Whether the next thing is a key of a mapping."""
        return bool(self.open) and isinstance(self.open[-1].inner, dict) and self.keys[-1] is None

    def key(self, name: str, line: int) -> None:
        inner = self.open[-1].inner
        if name in inner:
            raise self.error(line, f"{_short(name)!r} is there twice: first on line {inner[name].line}")
        self.keys[-1] = name, line

    def add(self, made: Marked) -> None:
        self.count += 1
        if self.count > self.max_nodes:
            raise self.error(made.line, f"more than {self.max_nodes} values")
        if not self.open:
            self.root = made
            return
        parent = self.open[-1]
        if isinstance(parent.inner, dict):
            waiting = self.keys[-1]
            assert waiting is not None
            name, made.line = waiting  # people look for the name
            parent.inner[name], parent.value[name] = made, made.value
            self.keys[-1] = None
        else:
            parent.inner.append(made)
            parent.value.append(made.value)

    def begin(self, empty: Any, line: int) -> None:
        if self.wants_key():
            raise self.error(line, "a key must be a name, not a list or mapping")
        if len(self.open) >= MAX_DEPTH:
            raise self.error(line, f"lists and mappings are nested more than {MAX_DEPTH} deep")
        made = Marked(empty, line, type(empty)())
        self.add(made)
        self.open.append(made)
        self.keys.append(None)

    def end(self) -> Marked:
        self.keys.pop()
        return self.open.pop()


def _short(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[:length] + "..."


# -- YAML ---------------------------------------------------------------------------------------
def _read_yaml(text: str, tree: _Tree) -> None:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        with collector_paused():
            _take_all(yaml.parse(text, Loader=loader), tree, yaml)
    except FileError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(x for x in (error.context, error.problem) if x)
        ended = mark is not None and not text[mark.index:].strip()
        raise tree.error(mark.line + 1 if mark else 1,
                         f"is not YAML: {what}{'; is the file cut off?' if ended else ''}") from None
    except yaml.YAMLError as error:
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        raise tree.error(line, f"is not YAML: {getattr(error, 'reason', None) or error}") from None
    except (RecursionError, ValueError) as error:
        raise tree.error(1, f"is not YAML: {error}") from None
    if tree.root is None:
        raise FileError(f"{tree.source}:1: the file is empty")


def _take_all(events: Iterable[Any], tree: _Tree, yaml: Any) -> None:
    """All events of the parser; names and numbers, of which there are most, without ceremony."""
    scalar, ends, number = yaml.ScalarEvent, (yaml.SequenceEndEvent, yaml.MappingEndEvent), _PLAIN_NUMBER.fullmatch
    keys = tree.keys
    for event in events:
        if event.__class__ is scalar and keys and event.tag is None and event.anchor is None:
            value = event.value
            if keys[-1] is None and type(tree.open[-1].inner) is dict:
                tree.key(value, event.start_mark.line + 1)
                continue
            if not event.style and not tree.texts and number(value):
                tree.add(Marked(float(value), event.start_mark.line + 1))
                continue
        elif event.__class__ in ends:
            tree.end()
            continue
        _take(event, tree, yaml)


def _take(event: Any, tree: _Tree, yaml: Any) -> None:
    """One event of the parser."""
    line = event.start_mark.line + 1
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        raise tree.error(line, "anchors (&) and aliases (*) are refused because they can expand without bound; "
                               "write the values out")
    if isinstance(event, yaml.ScalarEvent):
        _scalar(event, line, tree)
    elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
        _refuse_tag(event.tag, line, tree)
        tree.begin({} if isinstance(event, yaml.MappingStartEvent) else [], line)
    elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
        tree.end()
    elif isinstance(event, yaml.DocumentStartEvent):
        if tree.root is not None:
            raise tree.error(line, "a second document begins; a file holds one")
        tree.marked = event.explicit and not tree.texts
    elif isinstance(event, yaml.DocumentEndEvent) and tree.marked and not event.explicit:
        raise tree.error(line, "begins with '---' but does not end with '...': the file is cut off; if it is complete, "
                               "add a last line '...'")


def _refuse_tag(tag: str | None, line: int, tree: _Tree) -> None:
    if tag:
        raise tree.error(line, f"the tag {_short(tag)!r} is refused: values are numbers, text, lists and mappings")


def _scalar(event: Any, line: int, tree: _Tree) -> None:
    _refuse_tag(event.tag, line, tree)
    if tree.wants_key():
        tree.key(event.value, line)
        return
    value: Any = event.value
    if not event.style and not tree.texts:  # plain: may be a number or a word with a meaning
        _refuse_doubtful(value, line, tree)
        value = float(value) if _NUMBER.fullmatch(value) else _WORDS.get(value, value)
    tree.add(Marked(value, line))


def _refuse_doubtful(text: str, line: int, tree: _Tree) -> None:
    """What looks like a number and may be meant as something else."""
    if _DATE.fullmatch(text):
        raise tree.error(line, f"{_short(text)!r} is a date in YAML; put text in quotes, and blanks around the signs "
                               "of a formula")
    if _NUMBER.fullmatch(text) and (octal := _OCTAL.fullmatch(text)) is not None:
        raise tree.error(line, f"{_short(text)!r} begins with 0, which some readers take for an octal number; write "
                               f"{_short(octal[1] + octal[2])}, or put text in quotes")


# -- JSON ---------------------------------------------------------------------------------------
_SPACE = re.compile(r"[ \t\r\n]*")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_JSON_WORD = re.compile(r"true|false|null")


def _read_json(text: str, tree: _Tree) -> None:
    scan = _Scan(text, tree)
    while True:
        scan.value()
        # what may come after a value
        while tree.open:
            here = tree.open[-1]
            close = "}" if isinstance(here.inner, dict) else "]"
            if scan.sign(close):
                tree.end()
            elif not here.inner or scan.sign(","):
                break
            else:
                raise scan.error(f"needs ',' or {close!r}")
        if not tree.open:
            break
    if scan.peek():
        raise scan.error("there is more after the end")


class _Scan:
    """Reads JSON from left to right, without recursion."""

    def __init__(self, text: str, tree: _Tree) -> None:
        self.text, self.tree = text, tree
        self.at, self.line, self.counted = 0, 1, 0

    def error(self, message: str) -> FileError:
        place = f"before {_short(self.text[self.at:self.at + 13], 12)!r}" if self.at < len(self.text) else \
            "where the file ends: is it cut off?"
        return self.tree.error(self.here(), f"is not JSON: {message} {place}")

    def here(self) -> int:
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        return self.line

    def peek(self) -> str:
        space = _SPACE.match(self.text, self.at)
        assert space is not None
        self.at = space.end()
        return self.text[self.at:self.at + 1]

    def sign(self, sign: str) -> bool:
        found = self.peek() == sign
        self.at += found
        return found

    def string(self) -> str:
        try:
            found, self.at = scanstring(self.text, self.at + 1)
        except json.JSONDecodeError as error:
            self.at = min(error.pos, len(self.text))
            raise self.error(error.msg.lower()) from None
        try:
            found.encode()
        except UnicodeEncodeError:
            raise self.error("half of a character") from None
        return str(found)

    def value(self) -> None:
        """One value, or the beginning of a list or mapping."""
        first = self.peek()
        line = self.here()
        if self.tree.wants_key():
            if first != '"':
                raise self.error("needs a key in double quotes")
            self.tree.key(self.string(), line)
            if not self.sign(":"):
                raise self.error("needs ':'")
            first = self.peek()
            line = self.here()
        if first == '"':
            self.tree.add(Marked(self.string(), line))
        elif first and first in "{[":
            self.at += 1
            self.tree.begin({} if first == "{" else [], line)
        elif (match := _JSON_NUMBER.match(self.text, self.at)) is not None:
            self.at = match.end()
            self.tree.add(Marked(float(match.group()), line))
        elif (match := _JSON_WORD.match(self.text, self.at)) is not None:
            self.at = match.end()
            self.tree.add(Marked(_WORDS[match.group()], line))
        else:
            raise self.error("needs a value")


# -- plain data as YAML or JSON text: one part per block, one value per line, numbers to the last bit ---
_HEAD = "# A machine for Bellcrank: SI units, radians; inertia about the centre of mass.\n"
_PLAIN_TEXT = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
#: what readers of YAML take for something else than text
_QUOTED_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def as_yaml(document: dict[str, Any]) -> str:
    """YAML text, between ``---`` and ``...``, so that a file that is cut off does not pass for a whole one."""
    lines = [_HEAD + "---"]
    for key, value in document.items():
        if not isinstance(value, dict):
            lines.append(f"{key}: {_flow(value)}")
            continue
        lines.append(f"{key}:")
        for name, part in value.items():
            if isinstance(part, dict) and part:
                lines.append(f"  {_string(name)}:")
                lines.extend(f"    {label}: {_flow(inner)}" for label, inner in part.items())
            else:
                lines.append(f"  {_string(name)}: {_flow(part)}")
    return "\n".join([*lines, "...", ""])


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_string(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(v) for v in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _string(value) if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    """With a point, or old readers of YAML take 1e-05 for text."""
    text = repr(value)
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def _string(text: str) -> str:
    if _PLAIN_TEXT.fullmatch(text) and text.lower() not in _QUOTED_WORDS:
        return text
    return '"' + "".join(_ESCAPES.get(c) or (c if _printable(c) else f"\\U{ord(c):08x}") for c in text) + '"'


def _printable(c: str) -> bool:
    return " " <= c <= "~" or (c.isprintable() and c not in "\ufeff\ufffe\uffff")


def as_json(document: dict[str, Any]) -> str:
    """JSON text."""
    lines = []
    for key, value in document.items():
        if isinstance(value, dict):
            parts = [f"    {_quoted(name)}: {_block(part)}" for name, part in value.items()]
            lines.append(f"  {_quoted(key)}: {{\n" + ",\n".join(parts) + "\n  }")
        else:
            lines.append(f"  {_quoted(key)}: {_quoted(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _block(part: Any) -> str:
    if not isinstance(part, dict) or not part:
        return _quoted(part)
    return "{\n" + ",\n".join(f"      {_quoted(k)}: {_quoted(v)}" for k, v in part.items()) + "\n    }"


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
