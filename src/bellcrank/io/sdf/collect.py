"""The models of an SDF file, nested and included ones, as scopes and nodes; nothing is computed here."""

from __future__ import annotations

import os
from collections.abc import Collection as Members
from dataclasses import dataclass, field

from bellcrank.io.common.xml import XmlElement, clipped
from bellcrank.io.report import Kind
from bellcrank.io.sdf.frames import FrameNode, Scope
from bellcrank.io.sdf.includes import ModelFiles, version_of
from bellcrank.io.sdf.text_values import Poses, boolean, text_in
from bellcrank.mechanism.pose import Pose

__all__ = ["MAX_NESTED", "Collection", "collect"]

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
