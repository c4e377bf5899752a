"""The models of an SDF file, nested and included ones, as scopes and nodes; nothing is computed here."""

from __future__ import annotations

import os
from collections.abc import Collection as Members
from dataclasses import dataclass, field

from bellcrank.errors import FileError
from bellcrank.io.common.xml import MAX_ELEMENTS, XmlElement, clipped, read_xml
from bellcrank.io.report import Kind
from bellcrank.io.sdf.frames import FrameNode, Poses, Scope, boolean, text_in
from bellcrank.mechanism.pose import Pose

__all__ = ["MAX_NESTED", "Collection", "collect"]


# -- files that an SDF file includes: found in the same folder only, each read once, never in a circle ---
#: includes in one machine, those inside included files counted again each time
MAX_INCLUDES = 1000
_OLDEST, _NEWEST = (1, 4), (1, 12)


def version_of(root: XmlElement) -> tuple[int, int]:
    """The version of an SDF file, which says what its poses and axes mean."""
    if root.tag != "sdf":
        raise root.error("is not an SDF file: its outermost element is not <sdf>")
    text = root.attributes.get("version", "").strip()
    parts = text.split(".")
    if not text:
        raise root.error("has no version; what poses and axes mean depends on it, such as version=\"1.7\"")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
        raise root.error(f"the version {clipped(text)!r} is not one of SDF, such as 1.7")
    version = int(parts[0]), int(parts[1])
    if not _OLDEST <= version <= (_NEWEST[0], 99):
        raise root.error(f"version {text} cannot be read; versions 1.{_OLDEST[1]} to 1.{_NEWEST[1]} can")
    return version


@dataclass
class ModelFiles:
    """The folder of the file that is being read, and what was read from it."""

    folder: str
    opened: dict[str, XmlElement] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    count: int = 0
    elements: int = 0

    @staticmethod
    def of(root: XmlElement) -> ModelFiles:
        """The library for a file and what it may include."""
        place = os.path.realpath(root.source)
        return ModelFiles(os.path.dirname(place), {place: root})

    def find(self, include: XmlElement, source: str) -> str | None:
        """The path of the included file, or None if there is none in the folder."""
        uri = text_in(include, "uri")
        at = include.only("uri")
        scheme, colon, rest = uri.partition("://")
        if not colon:
            scheme, rest = "file", uri
        if scheme not in ("file", "model"):
            raise at.error(f"{clipped(uri)!r}: only files beside the model file are read (model:// and file://), "
                           "nothing from the network")
        if "\0" in rest or os.path.isabs(rest) or "\\" in rest or ":" in rest or ".." in rest.split("/"):
            raise at.error(f"{clipped(uri)!r} leads out of the folder of the model file; put the included file beside "
                           "it and name it by a relative path")
        bases = [os.path.dirname(source)] if scheme == "file" else [self.folder, os.path.dirname(source)]
        for base in dict.fromkeys(bases):
            found = self._file(os.path.realpath(os.path.join(base, rest)), at, uri)
            if found is not None:
                return found
        return None

    def _file(self, path: str, at: XmlElement, uri: str) -> str | None:
        """A file, or the model file in a folder of that name."""
        try:
            if os.path.isdir(path):
                listed = self._listed(path)
                path = os.path.realpath(os.path.join(path, listed or "model.sdf"))
            elif not os.path.exists(path):
                path = os.path.realpath(path + ".sdf")
            if not os.path.isfile(path):
                return None
        except (OSError, ValueError) as error:
            raise at.error(f"{clipped(uri)!r} cannot be opened: {error}") from None
        if os.path.commonpath([path, self.folder]) != self.folder:
            raise at.error(f"{clipped(uri)!r} leads out of the folder of the model file; put the included file beside "
                           "it and name it by a relative path")
        return path

    def _listed(self, folder: str) -> str | None:
        """The newest model file that a model.config names."""
        config = os.path.join(folder, "model.config")
        if not os.path.isfile(config) or os.path.commonpath([os.path.realpath(config), self.folder]) != self.folder:
            return None
        named = [(e.attributes.get("version", ""), e.text) for e in read_xml(config).all("sdf") if e.text]
        names = [text for _, text in sorted(named, key=lambda pair: _order(pair[0]))]
        return names[-1] if names else None

    def read(self, path: str, include: XmlElement) -> XmlElement:
        """The root element of an included file; the bounds hold for all files together."""
        self.count += 1
        if self.count > MAX_INCLUDES:
            raise include.error(f"more than {MAX_INCLUDES} files are included, those inside others counted each time")
        if path not in self.opened:
            try:
                self.opened[path] = read_xml(path)
            except FileError as error:
                raise FileError(f"{error} (included by {include.source}:{include.line})") from None
        if path not in self.sizes:
            self.sizes[path] = sum(1 for _ in self.opened[path].walk())
        self.elements += self.sizes[path]
        if self.elements > MAX_ELEMENTS:
            raise include.error(f"the included files have more than {MAX_ELEMENTS} elements together")
        return self.opened[path]


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isascii() and part.isdigit() and len(part) < 4)


#: models inside models, included ones counted
MAX_NESTED = 60
_FRAMED = (1, 7)
_WORLD_GRAVITY = (1, 6)  #: before, <gravity> stood in <physics>
_SCENERY = ("model://sun", "model://ground_plane")
_INCLUDE = ("uri", "name", "pose", "static", "placement_frame")
_ONCE = ("pose", "static", "gravity", "self_collide")
_ASIDE = {
    "plugin": "a plug-in of a simulator", "gripper": "settings of a simulator", "light": "scenery", "scene": "scenery",
    "physics": "settings of a simulator", "atmosphere": "settings of a simulator", "gui": "settings of a simulator",
    "magnetic_field": "settings of a simulator", "spherical_coordinates": "settings of a simulator",
    "allow_auto_disable": "settings of a simulator", "audio": "scenery",
    "state": "the state of a simulation, not of the machine", "actor": "an animation", "road": "scenery",
    "population": "not read: it multiplies models at random", "wind": "wind, which acts on no body here",
    "enable_wind": "wind, which acts on no body here"}


@dataclass
class Collection:
    """Everything in a file that has a name and a place, in file order."""

    scopes: list[Scope] = field(default_factory=list)
    nodes: list[FrameNode] = field(default_factory=list)
    remarks: list[tuple[Kind, XmlElement, str]] = field(default_factory=list)
    name: str = ""
    gravity: XmlElement | None = None
    in_world: bool = False

    def of_kind(self, kind: str) -> list[FrameNode]:
        return [node for node in self.nodes if node.kind == kind]


def collect(root: XmlElement, poses: Poses, model: str | None) -> Collection:
    """All models of a file, or the one called `model`."""
    return _Collector(root, poses).run(model)


class _Collector:
    def __init__(self, root: XmlElement, poses: Poses) -> None:
        self.root = root
        self.poses = poses
        self.version = version_of(root)
        self.library = ModelFiles.of(root)
        self.out = Collection()

    def note(self, kind: Kind, element: XmlElement, text: str) -> None:
        self.out.remarks.append((kind, element, text))

    # -- the whole ----------------------------------------------------------------------------
    def run(self, wanted: str | None) -> Collection:
        worlds = self.root.all("world")
        if len(worlds) > 1:
            raise worlds[1].error("a second <world>; a file describes one")
        where = worlds[0] if worlds else self.root
        self.out.in_world = bool(worlds)
        self.out.gravity = self._gravity(where) if worlds else None
        for element in self.root.children:
            if worlds and element.tag != "world":
                self.note("ignored", element, "stands beside a <world>; only the world is read")
        found = self._models(where, wanted)
        if not found:
            raise where.error("has no <model>" if wanted is None else f"has no model {clipped(wanted)!r}")
        outside = Scope(where, "", self.version, None, source=os.path.realpath(self.root.source))
        outside.world = outside.model = FrameNode("world", "world", where, outside, Pose(), where)
        self._add(outside.world)
        self.out.scopes.append(outside)
        alone = len(found) == 1
        self.out.name = found[0][0] if alone else where.attributes.get("name", "").strip() or "world"
        for name, element, include in found:
            self._model(name, element, outside, (outside.source,), include, "" if alone else name)
        self._members(outside, where, (outside.source,), models=False,
                      left_out=set() if wanted is None else _touching(where, outside))
        return self.out

    def _gravity(self, world: XmlElement) -> XmlElement | None:
        if self.version >= _WORLD_GRAVITY:
            return world.first("gravity")
        physics = world.first("physics")
        return world.first("gravity") or (None if physics is None else physics.first("gravity"))

    def _models(self, where: XmlElement, wanted: str | None) -> list[tuple[str, XmlElement, XmlElement | None]]:
        """Names and elements of the models to read, with the <include> of those from other files."""
        found: list[tuple[str, XmlElement, XmlElement | None]] = []
        for element in where.children:
            if element.tag == "model":
                name = element.attribute("name")
                if wanted in (None, name):
                    found.append((name, element, None))
                    continue
            elif element.tag == "include":
                own = element.first("name")
                if wanted is not None and own is not None and own.text != wanted:
                    self.note("ignored", element, "another model than the one asked for")
                    continue
                inner = self._included(element, (os.path.realpath(self.root.source),), optional=wanted is not None)
                if inner is None:
                    continue
                name = own.text if own is not None and own.text else inner.attribute("name")
                if wanted in (None, name):
                    found.append((name, inner, element))
                    continue
            else:
                continue
            self.note("ignored", element, "another model than the one asked for")
        return found

    def _included(self, include: XmlElement, stack: tuple[str, ...], *, optional: bool) -> XmlElement | None:
        """The <model> that an <include> brings."""
        path = self.library.find(include, stack[-1])
        uri = include.only("uri")
        if path is None:
            if optional or (include.parent is not None and include.parent.tag == "world" and uri.text in _SCENERY):
                self.note("ignored", include, f"{clipped(uri.text)!r} is not in the folder of the file")
                return None
            raise uri.error(f"{clipped(uri.text)!r} is not in the folder of the model file, and nothing else is "
                            "searched; put it there")
        if path in stack:
            raise uri.error(f"{clipped(uri.text)!r} includes itself, by way of "
                            + ", ".join(os.path.basename(p) for p in stack[:5]))
        root = self.library.read(path, include)
        version_of(root)
        models = root.all("model")
        if not models and (root.first("light") or root.first("actor")):
            self.note("ignored", include, "scenery: a light or an animation")
            return None
        if len(models) != 1:
            raise uri.error(f"{clipped(uri.text)!r} has {len(models)} models; an included file has one")
        return models[0]

    # -- models -------------------------------------------------------------------------------
    def _model(self, name: str, element: XmlElement, outer: Scope, stack: tuple[str, ...], include: XmlElement | None,
               prefix: str) -> Scope:
        if len(stack) > MAX_NESTED:
            raise element.error(f"models are nested more than {MAX_NESTED} deep")
        source = stack[-1] if include is None else os.path.realpath(element.source)
        stack = (*stack, source)
        top = element
        while top.parent is not None:
            top = top.parent
        merged = include is not None and _merged(include)
        static = outer.static or (not merged and self._static(element, include))
        scope = Scope(element, prefix, version_of(top), outer, static, source, merged=merged)
        touching = element.first("self_collide")
        scope.self_collide = touching is not None and boolean(touching, touching.text)
        scope.world = outer.world
        if not merged:
            if name in outer.nested or (name in outer.names and outer.version >= _FRAMED):
                raise (include or element).error(f"the name {clipped(name)!r} is taken; names must be unique")
            outer.nested[name] = scope
        placed = self._placement(scope, element, include)
        scope.model = FrameNode("model", outer.full(name), element, scope, self.poses(placed), placed or element,
                           self._frame_of(placed, outer) or "__model__", element.attributes.get("canonical_link", ""))
        if not merged:
            outer.names.setdefault(name, scope.model)
        self._add(scope.model)
        self.out.scopes.append(scope)
        self._members(scope, element, stack, models=True)
        if include is not None and merged:
            self._merge(scope, outer, include)
        return scope

    def _static(self, element: XmlElement, include: XmlElement | None) -> bool:
        """Whether a model does not move; an <include> has the last word."""
        word = None if include is None else include.first("static")
        word = word or element.first("static")
        if word is None or not boolean(word, word.text):
            return False
        self.note("changed", word, "a static model: its links are welded to the world")
        return True

    def _placement(self, scope: Scope, element: XmlElement, include: XmlElement | None) -> XmlElement | None:
        """The <pose> that holds for a model; the frame in it that lies there becomes the scope's `placement`."""
        scope.placement = element.attributes.get("placement_frame", "").strip()
        if include is None:
            return element.first("pose")
        placed, frame = include.first("pose"), include.first("placement_frame")
        if frame is not None and frame.text:
            if placed is None:
                raise frame.error("needs a <pose> beside it")
            scope.placement = frame.text
        for extra in include.children:
            if extra.tag not in _INCLUDE:
                changes = extra.tag != "plugin"
                self.note("warned" if changes else "ignored", extra,
                          "would change the included model, not read" if changes else _ASIDE["plugin"])
        return placed or element.first("pose")

    def _merge(self, scope: Scope, outer: Scope, include: XmlElement) -> None:
        """Let the names of an included model stand in the model around it, too."""
        for name, node in scope.names.items():
            if outer.names.setdefault(name, node) is not node:
                raise include.error(f"cannot be merged: the name {clipped(name)!r} is taken")
        for name, inner in scope.nested.items():
            if outer.nested.setdefault(name, inner) is not inner:
                raise include.error(f"cannot be merged: the name {clipped(name)!r} is taken")

    def _members(self, scope: Scope, element: XmlElement, stack: tuple[str, ...], *, models: bool,
                 left_out: Members[XmlElement] = ()) -> None:
        seen: set[str] = set()
        for child in element.children:
            if child in left_out:
                self.note("warned", child, "refers to another model than the one asked for, not read")
            elif child.tag in ("link", "joint", "frame"):
                self._member(scope, child)
            elif child.tag == "model" and models:
                name = child.attribute("name")
                self._model(name, child, scope, stack, None, scope.full(name))
            elif child.tag == "include" and models:
                inner = self._included(child, stack, optional=False)
                if inner is None:
                    continue
                own = child.first("name")
                name = own.text if own is not None and own.text else inner.attribute("name")
                self._model(name, inner, scope, stack, child, scope.prefix if _merged(child) else scope.full(name))
            elif child.tag in _ASIDE:
                self.note("ignored", child, _ASIDE[child.tag])
            elif child.tag == "self_collide":
                self.note("kept", child, "a rule for add_contacts")
            elif child.tag not in ("pose", "static", "model", "include", "gravity", "world"):
                closes = "joint" in child.tag or "constraint" in child.tag
                self.note("warned" if closes else "ignored", child, "a connection of a kind unknown here, not read"
                          if closes else f"not an element of SDF inside <{element.tag}>")
            if child.tag in _ONCE and child.tag in seen:
                self.note("warned", child, f"a second <{child.tag}>; only the first counts")
            seen.add(child.tag)

    def _member(self, scope: Scope, element: XmlElement) -> None:
        name = element.attribute("name").strip()
        if name == "world" or name == "__model__" or name == "__root__":
            raise element.error(f"the name {name!r} is reserved in SDF")
        if element.tag == "link" and scope.model.kind == "world":
            raise element.error("stands outside of a <model>")
        placed = element.first("pose")
        node = FrameNode(element.tag, scope.full(name), element, scope, self.poses(placed), placed or element,
                    self._frame_of(placed, scope))
        if element.tag == "frame":
            node.holder_name = element.attributes.get("attached_to", "").strip() or "__model__"
            node.named_at = node.named_at if node.base_name else element
            node.base_name = node.base_name or node.holder_name
        elif element.tag == "joint":
            node.holder_name = text_in(element, "child")
            node.named_at = node.named_at if node.base_name else element.only("child")
            node.base_name = node.base_name or node.holder_name
        else:
            node.base_name = node.base_name or "__model__"
        other = scope.names.get(name)
        if other is not None and (scope.version >= _FRAMED or other.kind == node.kind):
            raise element.error(f"the name is taken by the <{other.kind}> on line {other.element.line}; names must be "
                                "unique")
        if other is None or node.kind == "link":  # before 1.7 only links have places that others refer to
            scope.names[name] = node
        self._add(node)

    def _frame_of(self, placed: XmlElement | None, scope: Scope) -> str:
        """The frame that a pose is given in, "" for the usual one."""
        if placed is None:
            return ""
        old = placed.attributes.get("frame", "").strip()
        if old and scope.version < _FRAMED:
            self.note("warned", placed, f"read as relative to {clipped(old)!r}; simulators disagree about the "
                                        "attribute frame of old files")
            return old
        return placed.attributes.get("relative_to", "").strip()

    def _add(self, node: FrameNode) -> None:
        self.out.nodes.append(node)


def _touching(where: XmlElement, outside: Scope) -> set[XmlElement]:
    """Frames and joints of a world that hang on models which were not read, directly or by way of frames."""
    known = {"world", "__model__", "__root__", *outside.nested}
    own = {e.attributes.get("name", "") for e in where.children if e.tag in ("frame", "joint")}
    users: dict[str, list[XmlElement]] = {}
    waiting: list[str] = []
    for element in where.children:
        if element.tag not in ("frame", "joint"):
            continue
        pose = element.first("pose")
        named = [element.attributes.get("attached_to", ""), *(e.text for e in element.children
                                                              if e.tag in ("parent", "child"))]
        named += [] if pose is None else [pose.attributes.get("relative_to", "")]
        for name in filter(None, (text.strip().partition("::")[0] for text in named)):
            users.setdefault(name, []).append(element)
            if name not in known and name not in own:
                waiting.append(name)
    found: set[XmlElement] = set()
    while waiting:
        for element in users.pop(waiting.pop(), ()):
            found.add(element)
            waiting.append(element.attributes.get("name", ""))
    return found


def _merged(include: XmlElement) -> bool:
    return "merge" in include.attributes and boolean(include, include.attributes["merge"])
