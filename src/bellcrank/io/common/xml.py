"""XML from files of unknown origin: elements that remember their line, within fixed bounds.

Model files come from the web, so nothing in them may cost more than reading them: a document type
declaration (the door for entity bombs and for reading other files) is refused, size, nesting and number
of elements are bounded before anything is built, and every complaint is one `FileError`.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn
from xml.parsers import expat

from bellcrank.errors import FileError, ModelError
from bellcrank.files.model_files import contents
from bellcrank.mechanism.checks import HUGE

__all__ = ["HUGE", "MAX_BYTES", "MAX_DEPTH", "MAX_ELEMENTS", "Names", "XmlElement", "blame", "clipped",
           "control_character", "near", "plain_number", "read_xml", "unused"]

MAX_BYTES = 64 * 2**20
MAX_DEPTH = 100
MAX_ELEMENTS = 1_000_000

# what a C++ or Java reader takes for a number too; float() alone would accept 1_000 and digits of other scripts
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)


class XmlElement:
    """One XML element: tag, attributes, children, text and the line it starts on.

    Tags and attribute names are as written, prefix included (``xacro:macro``).
    """

    __slots__ = ("attributes", "children", "line", "parent", "source", "tag", "text")

    def __init__(self, tag: str, attributes: dict[str, str], line: int, source: str, parent: XmlElement | None) -> None:
        self.tag = tag
        self.attributes = attributes
        self.line = line
        self.source = source
        self.parent = parent
        self.children: list[XmlElement] = []
        self.text = ""

    # -- who it is ----------------------------------------------------------------------------
    @property
    def label(self) -> str:
        """What a person looks for in the file: ``<origin> in <joint 'knee'>``."""
        name = self.attributes.get("name")
        own = f"<{clipped(self.tag)}>" if name is None else f"<{clipped(self.tag)} {clipped(name)!r}>"
        if name is not None or self.parent is None or self.parent.parent is None:
            return own
        return f"{own} in {self.parent.label}"

    @property
    def owner(self) -> str:
        """The name of the element (or what it refers to), or of the nearest element around it that has one."""
        here: XmlElement | None = self
        while here is not None:
            name = here.attributes.get("name") or here.attributes.get("reference")
            if name:
                return name
            here = here.parent
        return ""

    def error(self, message: str) -> FileError:
        """The exception for something wrong with this element."""
        return FileError(f"{self.source}:{self.line}: {self.label}: {message}")

    # -- what is in it ------------------------------------------------------------------------
    def all(self, tag: str) -> list[XmlElement]:
        """The children with this tag."""
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> XmlElement | None:
        """The first child with this tag."""
        return next((child for child in self.children if child.tag == tag), None)

    def only(self, tag: str) -> XmlElement:
        """The child with this tag, which has to be there."""
        found = self.first(tag)
        if found is None:
            raise self.error(f"needs a <{tag}> element")
        return found

    def walk(self) -> Iterator[XmlElement]:
        """The element and all below it, in file order."""
        stack = [self]
        while stack:
            here = stack.pop()
            yield here
            stack.extend(reversed(here.children))

    def attribute(self, name: str) -> str:
        """A text attribute that has to be there and must not be blank."""
        value = self.attributes.get(name)
        if value is None:
            raise self.error(f"needs the attribute {name!r}")
        if not value.strip():
            raise self.error(f"the attribute {name!r} is blank")
        return value

    def numbers(self, name: str, count: int, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """An attribute of `count` finite numbers; without a default it has to be there."""
        if default is not None and name not in self.attributes:
            return default
        return self._parsed(self.attribute(name), count, f"{name}=")

    def text_numbers(self, count: int) -> tuple[float, ...]:
        """The text of the element as `count` finite numbers."""
        return self._parsed(self.text, count)

    def number(self, name: str, default: float | None = None, *, infinite: bool = False) -> float:
        """An attribute of one number; `infinite` lets inf and -inf pass, and what is huge for it, but never nan."""
        found = _unbounded(self.attributes.get(name, "")) if infinite else None
        if found is not None:
            return found
        return self.numbers(name, 1, None if default is None else (default,))[0]

    def text_number(self, *, infinite: bool = False) -> float:
        """The text of the element as one number; `infinite` as in `number`."""
        found = _unbounded(self.text) if infinite else None
        return self.text_numbers(1)[0] if found is None else found

    def _parsed(self, text: str, count: int, label: str = "") -> tuple[float, ...]:
        whole = f"{label}{clipped(text)!r}"
        if "${" in text or "$(" in text:
            raise self.error(f"{whole} is a xacro expression; expand the file with xacro first")
        words = text.split()
        if len(words) != count:
            raise self.error(f"{whole} needs {count} number{'s' * (count > 1)}, got {len(words)}")
        return tuple(self._number(whole, word) for word in words)

    def _number(self, whole: str, word: str) -> float:
        value = plain_number(word)
        if not math.isfinite(value):
            raise self.error(f"{whole}: {clipped(word)!r} is not a finite number")
        if abs(value) > HUGE:
            raise self.error(f"{whole}: {clipped(word)!r} is above {HUGE:g}, which cannot be computed with")
        return value

    def __repr__(self) -> str:
        return f"<Element {self.label}, line {self.line}>"


def clipped(text: str, length: int = 60) -> str:
    """Text from a file, short enough for a message."""
    return text if len(text) <= length else text[:length] + "..."


def plain_number(word: str) -> float:
    """A decimal number as all readers of such files take it; nan for anything else."""
    return float(word) if _NUMBER.fullmatch(word) else math.nan


def _unbounded(text: str) -> float | None:
    """Plus or minus infinity, if the text says so or is too huge to mean a number."""
    word = text.strip()
    value = float(word) if _INFINITE.fullmatch(word) else plain_number(word)
    return math.copysign(math.inf, value) if abs(value) > HUGE else None


@contextmanager
def blame(element: XmlElement) -> Iterator[None]:
    """Complaints of the model, told with the place in the file."""
    try:
        yield
    except ModelError as error:
        raise element.error(str(error)) from None


def read_xml(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH,
             max_elements: int = MAX_ELEMENTS) -> XmlElement:
    """The root element of an XML file.

    The file has to be UTF-8 (or plain ASCII) without a document type declaration. Cost: linear in its size.
    """
    source = os.fsdecode(path)
    data = _contents(source, max_bytes)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(f"{source}:{line}: the byte 0x{data[error.start]:02x} is not UTF-8 text; "
                        "save the file as UTF-8") from None
    if not data.strip():
        raise FileError(f"{source}:1: the file is empty")
    return _XmlBuilder(source, max_depth, max_elements).build(data)


def _contents(source: str, max_bytes: int) -> bytes:
    if source.lstrip().startswith("<"):
        raise FileError(f"{clipped(source)!r} is XML text, not a path; write it to a file and give its path")
    return contents(source, max_bytes, "; are meshes embedded in it?")


class _XmlBuilder:
    """Builds the elements while the parser calls back, and stops it at the first thing refused."""

    def __init__(self, source: str, max_depth: int, max_elements: int) -> None:
        self.source = source
        self.max_depth = max_depth
        self.max_elements = max_elements
        self.count = 0
        self.root: XmlElement | None = None
        self.open: list[XmlElement] = []
        self.words: list[list[str]] = []
        # the encoding is fixed so that a declaration in the file cannot choose another one
        self.parser = expat.ParserCreate("UTF-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype
        self.parser.EntityDeclHandler = self._refuse_doctype
        self.parser.ExternalEntityRefHandler = self._refuse_doctype

    def build(self, data: bytes) -> XmlElement:
        try:
            self.parser.Parse(data, True)
        except expat.ExpatError as error:
            self._broken(error)
        if self.root is None:
            raise FileError(f"{self.source}: has no root element")
        return self.root

    def _broken(self, error: expat.ExpatError) -> NoReturn:
        reason = expat.ErrorString(error.code)
        at = f"{self.source}:{error.lineno}"
        if not self.open:
            raise FileError(f"{at}: is not an XML file: {reason}") from None
        here = self.open[-1]
        raise FileError(f"{at}: inside {here.label}, opened on line {here.line}: not well-formed XML ({reason}); "
                        "is the file cut off or a tag not closed?") from None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        parent = self.open[-1] if self.open else None
        element = XmlElement(tag, attributes, self.parser.CurrentLineNumber, self.source, parent)
        self.count += 1
        if len(self.open) >= self.max_depth:
            raise FileError(f"{self.source}:{element.line}: <{clipped(tag)}>: elements are nested more than "
                            f"{self.max_depth} deep")
        if self.count > self.max_elements:
            raise FileError(f"{self.source}:{element.line}: <{clipped(tag)}>: more than {self.max_elements} elements")
        if parent is None:
            self.root = element
        else:
            parent.children.append(element)
        self.open.append(element)
        self.words.append([])

    def _end(self, tag: str) -> None:
        self.open.pop().text = "".join(self.words.pop()).strip()

    def _text(self, data: str) -> None:
        self.words[-1].append(data)

    def _refuse_doctype(self, *_: object) -> NoReturn:
        raise FileError(f"{self.source}:{self.parser.CurrentLineNumber}: <!DOCTYPE>: document type and entity "
                        "declarations are refused because they can expand without bound or read other files; "
                        "delete them")


# -- names in files: what they may hold, which are taken, and which was perhaps meant ---------------
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
