"""The gate in front of MuJoCo's own parser: what a file may hold before C++ code sees it.

The file, what it includes and the models it attaches are read by the hardened XML reader, everything that is no part of
the motion is left out, counts that multiply elements are bounded, and paths are replaced. MuJoCo is handed plain text
with one element to a line, no line number twice, so that its complaints can be told with the line of the file they come
from. It opens no file itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

from bellcrank.errors import FileError
from bellcrank.io.common.xml import XmlElement, clipped, read_xml
from bellcrank.io.report import Kind, Note

__all__ = ["MAX_REPLICATED", "Gated", "MeshFile", "gated", "mesh_path"]

MAX_BYTES = 32 * 2**20
#: the parser that MuJoCo uses gives up at 500
MAX_DEPTH = 400
MAX_INCLUDES = 200
#: elements that <replicate> and <composite> may add; MuJoCo's time for them grows with the square
MAX_REPLICATED = 10_000
_MAX_CABLE = 2_000
_MAX_BUILTIN = 64.0

_SECTIONS: dict[str, tuple[Kind, str]] = {
    "visual": ("ignored", "looks"),
    "statistic": ("ignored", "looks"),
    "size": ("ignored", "sizes of buffers"),
    "extension": ("ignored", "plugins are not loaded"),
    "custom": ("ignored", "data of other programs"),
}
_DROPPED: dict[str, tuple[Kind, str]] = {
    "plugin": ("warned", "plugins are not loaded; what it does is missing"),
    "flexcomp": ("warned", "flexible bodies are not read"),
    "flex": ("warned", "flexible bodies are not read"),
    "skin": ("ignored", "looks"),
    "camera": ("ignored", "a camera"),
    "light": ("ignored", "a light"),
    "pair": ("kept", "a rule for add_contacts"),
    "exclude": ("kept", "a rule for add_contacts"),
    "texture": ("ignored", "looks"),
    "layer": ("ignored", "looks"),
}
_CONTAINERS = ("contact", "deformable")
_ATTRIBUTES = ("user", "content_type")
_LOOKS = ("name", "class", "rgba")
_PATHS = ("meshdir", "texturedir", "assetdir", "strippath")
#: a name may be anything, a number must not be this
_NOT_A_NUMBER = re.compile(r"(?:^|\s)[+-]?nan(?:\s|$)", re.IGNORECASE)
_PRINTABLE = re.compile(r"[^\x20-\x7e\u00a0-\ud7ff\ue000-\ufffd]")


@dataclass(frozen=True, slots=True)
class MeshFile:
    """A mesh (or terrain) whose shape lies in another file; `token` stands for the path in what MuJoCo sees."""

    name: str
    token: str
    path: str
    folders: tuple[str, ...]  #: where it may lie
    element: XmlElement


@dataclass(slots=True)
class Gated:
    """Text for MuJoCo, one element to a line, and what was held back."""

    root: XmlElement
    lines: list[str] = field(default_factory=list)
    elements: list[XmlElement] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    keys: list[XmlElement] = field(default_factory=list)
    meshes: dict[str, MeshFile] = field(default_factory=dict)
    #: texts of models that are attached, by the file name that MuJoCo sees; their lines go on where others end
    models: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def element(self, info: str) -> XmlElement:
        """The element of the file that MuJoCo speaks of with ``line N``; the whole file if it names none."""
        found = re.search(r"line (\d+)", info)
        index = int(found.group(1)) - 1 if found else -1
        return self.elements[index] if 0 <= index < len(self.elements) else self.root

    def note(self, kind: Kind, element: XmlElement, text: str) -> None:
        self.notes.append(Note(kind, element.tag, element.owner, element.line, text))


def gated(path: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None) -> Gated:
    """Read a file with what it includes. Files outside `folder` (that of the file unless given) are refused."""
    root = read_xml(path, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
    if root.tag != "mujoco":
        raise root.error("is not an MJCF file: its outermost element is not <mujoco>")
    home = os.path.dirname(os.path.realpath(os.fsdecode(path)))
    inside = home if folder is None else os.path.realpath(os.fsdecode(folder))
    files = _Includes(home, inside)
    files.expand(root)
    gate = Gated(root)
    models = _attached(root, files, (root.source,))
    if _expanded(root, models) - sum(1 for _ in root.walk()) > MAX_REPLICATED:
        raise root.error(f"<replicate>, <composite> and <attach> would add more than {MAX_REPLICATED} elements")
    tokens = {path: f"model{k}.xml" for k, path in enumerate(models)}
    gate.lines = _ElementWriter(gate, root, inside, tokens).lines()
    for path, model in models.items():
        before = len(gate.elements)
        gate.models[tokens[path]] = "\n" * before + "\n".join(_ElementWriter(gate, model, inside, tokens).lines())
    return gate


def _attached(root: XmlElement, files: _Includes, open_files: tuple[str, ...]) -> dict[str, XmlElement]:
    """The models that a model may attach, and those that these may, by their paths, which stand in place of names."""
    found: dict[str, XmlElement] = {}
    for element in [child for asset in root.all("asset") for child in asset.all("model")]:
        path, content = files.opened(element, open_files)
        element.attributes["file"] = path
        if content.tag != "mujoco":
            raise element.error("the attached model is not an MJCF file: its outermost element is not <mujoco>")
        element.attributes.setdefault("name", content.attributes.get("model", ""))
        found = {path: content, **_attached(content, files, (*open_files, path)), **found}
    return found


def _resolved(element: XmlElement, name: str, folders: tuple[str, ...], inside: str) -> str:
    """The real path of a file that an element names, in the first folder that has it, else in the first.

    It must lie inside the folder that is open to the model: elsewhere nothing is looked at.
    """
    found = []
    for folder in folders:
        try:
            path = os.path.realpath(os.path.join(folder, name))
        except ValueError:
            raise element.error(f"the file name {clipped(name)!r} is not usable") from None
        if os.path.commonpath([path, inside]) != inside:
            continue
        found.append(path)
        if os.path.exists(path):
            return path
    if len(found) < len(folders):
        raise element.error(f"the file {clipped(name)!r} lies outside the folder of the model; give folder= to open a "
                            "larger one")
    return found[0]


class _Includes:
    """Puts the content of included files in the place of <include> elements."""

    def __init__(self, home: str, inside: str) -> None:
        self.home, self.inside = home, inside
        self.count = 0

    def expand(self, root: XmlElement) -> None:
        self._expand(root, (root.source,))

    def _expand(self, element: XmlElement, open_files: tuple[str, ...]) -> None:
        if not any(child.tag == "include" for child in element.walk() if child is not element):
            return
        children: list[XmlElement] = []
        for child in element.children:
            if child.tag != "include":
                self._expand(child, open_files)
                children.append(child)
                continue
            for inner in self.opened(child, open_files)[1].children:
                inner.parent = element
                children.append(inner)
        element.children = children

    def opened(self, element: XmlElement, open_files: tuple[str, ...]) -> tuple[str, XmlElement]:
        """The file that an element names, with all that it includes: its path, and its content."""
        here = os.path.dirname(os.path.realpath(element.source))
        path = _resolved(element, element.attribute("file"), (self.home, here), self.inside)
        self.count += 1
        if path in open_files or os.path.realpath(open_files[0]) == path:
            raise element.error(f"includes itself by way of {clipped(path)!r}")
        if self.count > MAX_INCLUDES or len(open_files) > 20:
            raise element.error(f"more than {MAX_INCLUDES} files are included or attached, or 20 inside each other")
        try:
            content = read_xml(path, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
        except FileError as error:
            raise element.error(str(error)) from None
        self._expand(content, (*open_files, path))
        return path, content


def _expanded(root: XmlElement, models: Mapping[str, XmlElement]) -> int:
    """Elements of a file after replication and attachment; also refuses nesting that only includes have made deep."""
    sizes: dict[str, int] = {}  # of attached models, by path

    def size_of(path: str) -> int:
        if path not in sizes:
            sizes[path] = whole(models[path])
        return sizes[path]

    def whole(file: XmlElement) -> int:
        paths = {m.attributes["name"]: m.attributes["file"] for asset in file.all("asset") for m in asset.all("model")}

        def below(element: XmlElement, depth: int) -> int:
            if depth > MAX_DEPTH:
                raise element.error(f"elements are nested more than {MAX_DEPTH} deep")
            count = 1 + sum(below(child, depth + 1) for child in element.children)
            if element.attributes.get("model") in paths and element.tag in ("attach", "frame"):
                count += size_of(paths[element.attributes["model"]])
            return count * _times(element)

        return below(file, 0)

    return whole(root)


def _times(element: XmlElement) -> int:
    """How often an element stands for what it holds."""
    if element.tag == "replicate":
        return max(_whole(element, "count", 1)[0], 1)
    if element.tag != "composite":
        return 1
    times = 1
    for count in _whole(element, "count", 1):
        times *= max(count, 1)
    if times > _MAX_CABLE:
        raise element.error(f"a composite of {times} parts is too large; at most {_MAX_CABLE} are read")
    return times


def _whole(element: XmlElement, name: str, default: int) -> tuple[int, ...]:
    words = element.attributes.get(name, str(default)).split()
    try:
        return tuple(int(float(word)) for word in words) or (default,)
    except (ValueError, OverflowError):
        raise element.error(f"{name}={clipped(element.attributes[name])!r} is not a whole number") from None


class _ElementWriter:
    """Writes the elements of a file that matter, one to a line; `models` are the names of files that it attaches."""

    def __init__(self, gate: Gated, root: XmlElement, inside: str, models: Mapping[str, str]) -> None:
        self.gate, self.root, self.inside, self.models = gate, root, inside, models
        self.home, self._lines = os.path.dirname(os.path.realpath(root.source)), list[str]()
        self.meshdir = ""
        self.strip = any(c.attributes.get("strippath") == "true" for c in root.all("compiler"))
        for compiler in root.all("compiler"):
            self.meshdir = compiler.attributes.get("assetdir", self.meshdir)
        for compiler in root.all("compiler"):
            self.meshdir = compiler.attributes.get("meshdir", self.meshdir)

    def lines(self) -> list[str]:
        """The text of the file."""
        self.write(self.root)
        return self._lines

    def write(self, element: XmlElement, section: str = "") -> None:
        if self._held_back(element, section):
            return
        pieces = [element.tag, *(f"{name}={quoteattr(_plain(value))}"
                                 for name, value in self._attributes(element, section).items())]
        if not element.children:
            self._line(f"<{' '.join(pieces)}/>", element)
            return
        self._line(f"<{' '.join(pieces)}>", element)
        for child in element.children:
            self.write(child, section or ("" if element.parent is None else element.tag))
        self._line(f"</{element.tag}>", element)

    def _line(self, text: str, element: XmlElement) -> None:
        self._lines.append(text)
        self.gate.elements.append(element)

    def _held_back(self, element: XmlElement, section: str) -> bool:
        top = element.parent is not None and element.parent.parent is None
        tag = element.tag
        if top and tag in _SECTIONS:
            self.gate.note(_SECTIONS[tag][0], element, _SECTIONS[tag][1])
            return True
        if top and tag == "keyframe":
            if self.root is self.gate.root:
                self.gate.keys.extend(element.all("key"))
            else:
                self.gate.note("ignored", element, "keyframes of an attached model")
            return True
        if (top and tag == "sensor") or section == "sensor":
            for child in element.children:
                self.gate.note("ignored", child, "a sensor")
            return True
        if top and tag in _CONTAINERS:
            for child in element.children:
                if self.root is self.gate.root or child.tag not in ("pair", "exclude"):
                    self.gate.note(*_about(child))
                else:
                    self.gate.note("warned", child, "rules of contact of an attached model are not read")
            return True
        if tag == "hfield" and section == "asset":
            return False
        if tag in _DROPPED and not (section == "actuator" and tag != "plugin"):
            if section != "default":
                self.gate.note(*_about(element))
            return True
        return False

    def _attributes(self, element: XmlElement, section: str) -> dict[str, str]:
        kept = {name: value for name, value in element.attributes.items() if name not in _ATTRIBUTES}
        for name, value in kept.items():
            if name not in ("name", "class", "childclass") and _NOT_A_NUMBER.search(value):
                raise element.error(f"{name}={clipped(value)!r} is not a number")
        if element.tag == "compiler":
            kept = {name: value for name, value in kept.items() if name not in _PATHS}
        if element.tag == "material":
            kept = {name: value for name, value in kept.items() if name in _LOOKS}
        if element.tag == "mesh" and section == "asset":
            self._mesh(element, kept)
        elif element.tag == "hfield" and section == "asset":
            self._file(element, kept)
        elif element.tag == "model" and section == "asset":
            kept["file"] = self.models[kept["file"]]
        elif "file" in kept:
            del kept["file"]
        return kept

    def _mesh(self, element: XmlElement, kept: dict[str, str]) -> None:
        for word in kept.get("params", "").split():
            try:
                fits = abs(float(word)) <= _MAX_BUILTIN
            except ValueError:
                fits = False
            if not fits:
                raise element.error(f"params={clipped(kept['params'])!r}: numbers above {_MAX_BUILTIN:g} make meshes "
                                    "too fine")
        self._file(element, kept)

    def _file(self, element: XmlElement, kept: dict[str, str]) -> None:
        """A mesh or terrain that lies in another file: a token in place of its path."""
        if "file" not in kept:
            return
        file = element.attribute("file")
        if self.strip:
            file = os.path.basename(file.replace("\\", "/"))
        stem, kind = os.path.splitext(os.path.basename(file.replace("\\", "/")))
        name = kept.setdefault("name", stem)
        token = kept["file"] = f"{element.tag}{len(self.gate.meshes)}{_plain(kind.lower())[:8]}"
        # first where the model says, then beside the included file that names it
        folders = os.path.join(self.home, self.meshdir), os.path.dirname(os.path.realpath(element.source))
        self.gate.meshes[token] = MeshFile(name, token, file, folders, element)


def mesh_path(mesh: MeshFile, path: str | os.PathLike[str], folder: str | os.PathLike[str] | None) -> str:
    """Where a mesh lies, inside the folder that is open to the model."""
    home = os.path.dirname(os.path.realpath(os.fsdecode(path)))
    inside = home if folder is None else os.path.realpath(os.fsdecode(folder))
    return _resolved(mesh.element, mesh.path, mesh.folders, inside)


def _about(element: XmlElement) -> tuple[Kind, XmlElement, str]:
    kind, text = _DROPPED.get(element.tag, ("ignored", "not read"))
    return kind, element, text


def _plain(text: str) -> str:
    """Attribute text without line breaks and control characters."""
    return _PRINTABLE.sub(" ", text)
