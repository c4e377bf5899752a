"""YAML files beside a URDF file that list its loop closures: Gepetto's robot.yaml, scikit-robot's loop_closures.yaml.

They come from the web like the URDF files do. Nothing in them is turned into Python objects: the text is composed
into nodes (no aliases, no tags, bounded in size and depth), and the few entries needed are read from those.

YAML from files of unknown origin, as nodes that remember their line, within fixed bounds.

Only mappings with text keys, lists and plain text are known. Aliases (the door for bombs) and tags (the door for
objects) are refused, and no value is ever turned into a date, a number or an object by the YAML library.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bellcrank.errors import FileError, ModelError
from bellcrank.files.model_files import text_contents
from bellcrank.io.common.names import near
from bellcrank.io.common.readings import unit
from bellcrank.io.common.xml import clipped, plain_number
from bellcrank.io.report import Note
from bellcrank.mechanism.joints import Revolute, Spherical, Universal, Weld
from bellcrank.mechanism.joints.joint import Joint
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.io.urdf.robot import RobotReader

__all__ = ["Closures", "YamlSidecar", "find_sidecar"]


# -- YAML from files of unknown origin, as nodes that remember their line, within fixed bounds ------
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


# -- YAML files beside a URDF file that list its loop closures --------------------------------------
Closures = str | os.PathLike[str] | bool | None
NAME = "loop_closures.yaml"
_RETYPED: dict[str, tuple[Joint, ...]] = {
    "SPHERICAL": (Spherical(),), "FIXED": (Weld(),), "UJOINT_XY": (Universal("x", "y"),),
    "UJOINT_YZ": (Universal("y", "z"),), "UJOINT_ZX": (Universal("z", "x"),)}
_GEPETTO = ("closed_loop", "type", "name_mot", "joint_name", "joint_type")
_SCIKIT = ("closures", "dependent", "independent")


def find_sidecar(urdf: str, closures: Closures, reader: RobotReader) -> YamlSidecar | None:
    """The list of closures asked for, or the one that lies beside the URDF file."""
    folder, file = os.path.split(urdf)
    if closures is False:
        return None
    if closures is not None and closures is not True:
        path = os.fsdecode(closures)
        beside = os.path.join(folder, path)
        return YamlSidecar(read_yaml(path if os.path.exists(path) or not os.path.exists(beside) else beside))
    path = os.path.join(folder, NAME)
    if os.path.isfile(path):
        return YamlSidecar(read_yaml(path))
    for ending in (".yaml", ".yml"):
        path = os.path.join(folder, os.path.splitext(file)[0] + ending)
        if os.path.isfile(path) and os.path.realpath(path) != os.path.realpath(urdf):
            found = _perhaps(path, reader)
            if found is not None:
                return found
    if closures is True:
        raise FileError(f"{urdf}: there is no {NAME} and no YAML file of the same name beside it; give its path as "
                        "closures=...")
    return None


def _perhaps(path: str, reader: RobotReader) -> YamlSidecar | None:
    """A file of the same name may be about anything; only one that lists closures counts."""
    try:
        node = read_yaml(path)
        entries = node.entries()
    except FileError as error:
        reader.notes.append(Note("ignored", "robot", os.path.basename(path), 1, f"not a list of closures: {error}"))
        return None
    return YamlSidecar(node) if "closed_loop" in entries or "closures" in entries else None


class YamlSidecar:
    """The closures listed in a YAML file."""

    def __init__(self, node: YamlNode) -> None:
        self.node = node
        self.entries = node.entries()
        self.scikit = "closures" in self.entries
        if not self.scikit and "closed_loop" not in self.entries:
            raise node.error("lists no closures: there is neither 'closed_loop' (Gepetto) nor 'closures' "
                             "(scikit-robot)")

    def joint_types(self, reader: RobotReader) -> Mapping[str, Joint]:
        """Gepetto: joints that are written as revolute in URDF but are spherical, universal or fixed."""
        names, kinds = (self.entries.get(key) for key in ("joint_name", "joint_type"))
        if self.scikit or names is None:
            return {}
        if kinds is None:
            raise names.error("needs 'joint_type' with as many entries")
        found: dict[str, Joint] = {}
        for name, kind in zip(names.items(), kinds.items(len(names.items())), strict=True):
            joint, word = name.text(), kind.text()
            if joint not in reader.joints:
                raise name.error(f"there is no joint {clipped(joint)!r}{near(joint, reader.joints)}")
            if word.upper() not in _RETYPED:
                raise kind.error(f"the joint type {clipped(word)!r} is unknown; known are {', '.join(_RETYPED)}")
            found[joint] = _RETYPED[word.upper()][0]
        return found

    def close(self, reader: RobotReader, machine: Mechanism) -> None:
        """Add the joints that close loops."""
        before = len(machine.joints)
        if self.scikit:
            self._scikit(reader, machine)
        else:
            self._gepetto(reader, machine)
        count = len(machine.joints) - before
        self._note(reader, f"{count} loop{'s' * (count != 1)} closed as listed in {os.path.basename(self.node.source)}")
        known = _SCIKIT if self.scikit else _GEPETTO
        strange = [clipped(key) for key in self.entries if key not in known]
        if strange:
            self._note(reader, f"{os.path.basename(self.node.source)}: {', '.join(strange[:5])} not read")

    def _note(self, reader: RobotReader, text: str) -> None:
        reader.notes.append(Note("kept" if "closed" in text else "ignored", reader.root.tag, reader.root.owner,
                                 reader.root.line, text))

    def _add(self, reader: RobotReader, machine: Mechanism, node: YamlNode, joint: Joint, ends: tuple[str, str],
             poses: tuple[Pose, Pose], prefix: str) -> None:
        try:
            machine.add_joint(reader.names.fresh(prefix), joint, *ends, *poses)
        except ModelError as error:
            raise node.error(str(error)) from None

    def _gepetto(self, reader: RobotReader, machine: Mechanism) -> None:
        """Pairs of frames that coincide: whole ("6d") or in their origins only ("3d")."""
        pairs = self.entries["closed_loop"].items()
        kinds = self.entries.get("type")
        words = [node.text() for node in kinds.items(len(pairs))] if kinds else ["6d"] * len(pairs)
        joints_to = {edge.name: edge.child for edge in reader.order}
        for pair, word in zip(pairs, words, strict=True):
            one, two = pair.items(2)
            if word.lower() not in ("3d", "6d"):
                raise (kinds or pair).error(f"the closure type {clipped(word)!r} is unknown; known are 3d and 6d")
            ends = tuple(self._frame(reader, node, joints_to) for node in (one, two))
            joint: Joint = Spherical() if word.lower() == "3d" else Weld()
            self._add(reader, machine, pair, joint, (ends[0], ends[1]), (Pose(), Pose()),
                      f"{one.text()}_{two.text()}")

    def _frame(self, reader: RobotReader, node: YamlNode, joints_to: Mapping[str, str]) -> str:
        """The body whose frame a name stands for: a link, or the link that a joint leads to."""
        name = node.text()
        if name in reader.links:
            return reader.body(name)
        if name in joints_to:
            return reader.body(joints_to[name])
        raise node.error(f"there is no link or joint {clipped(name)!r}{near(name, reader.links)}")

    def _scikit(self, reader: RobotReader, machine: Mechanism) -> None:
        """Hinges given by point and axis in the root link's frame while all joints are at zero."""
        for node in self.entries["closures"].items():
            entries = node.entries()
            links = []
            for key in ("link_a", "link_b"):
                side = node.entry(key)
                if side.text() not in reader.links:
                    raise side.error(f"there is no link {clipped(side.text())!r}{near(side.text(), reader.links)}")
                links.append(side.text())
            point = node.entry("point").numbers(3)
            axis = entries["axis"].numbers(3) if "axis" in entries else None
            if axis is not None and math.hypot(*axis) == 0.0:
                raise entries["axis"].error("the axis 0 0 0 has no direction")
            try:
                # both joint frames lie along the root's axes
                poses = tuple(reader.place(link).inverse() @ Pose(point) for link in links)
            except ModelError as error:
                raise node.error(str(error)) from None
            joint: Joint = Spherical() if axis is None else Revolute(unit(axis))
            self._add(reader, machine, node, joint, (reader.body(links[0]), reader.body(links[1])),
                      (poses[0], poses[1]), f"{links[0]}_{links[1]}")
