"""YAML files beside a URDF file that list its loop closures: Gepetto's robot.yaml, scikit-robot's loop_closures.yaml.

They come from the web like the URDF files do. Nothing in them is turned into Python objects: all values are texts (no
aliases, no tags, bounded in size and depth, see `source_lines`), and the few entries needed are read from those.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bellcrank.errors import FileError, ModelError
from bellcrank.io.common.readings import unit
from bellcrank.io.common.xml import clipped, near, plain_number
from bellcrank.io.native.source_lines import Marked, read_marked
from bellcrank.io.report import Note
from bellcrank.mechanism.joints import Revolute, Spherical, Universal, Weld
from bellcrank.mechanism.joints.joint import Joint
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.io.urdf.robot import RobotReader

__all__ = ["Closures", "YamlSidecar", "find_sidecar"]


#: bounds of such a file
MAX_BYTES = 2**20
MAX_NODES = 10_000


class YamlNode:
    """A piece of a YAML file and the line it starts on: text, list or mapping."""

    __slots__ = ("line", "mark", "source")

    def __init__(self, mark: Marked, source: str) -> None:
        self.mark = mark
        self.line = mark.line
        self.source = source

    def error(self, message: str) -> FileError:
        """The exception for something wrong here."""
        return FileError(f"{self.source}:{self.line}: {message}")

    def entries(self) -> dict[str, YamlNode]:
        """The entries of a mapping."""
        if not isinstance(self.mark.inner, dict):
            raise self.error("a mapping (key: value) is expected here")
        return {key: YamlNode(inner, self.source) for key, inner in self.mark.inner.items()}

    def entry(self, key: str) -> YamlNode:
        """An entry that has to be there."""
        entries = self.entries()
        if key not in entries:
            raise self.error(f"needs the entry {key!r}")
        return entries[key]

    def items(self, count: int | None = None) -> list[YamlNode]:
        """The items of a list, `count` of them if given."""
        if not isinstance(self.mark.inner, list):
            raise self.error("a list is expected here")
        if count is not None and len(self.mark.inner) != count:
            raise self.error(f"needs {count} entries, got {len(self.mark.inner)}")
        return [YamlNode(inner, self.source) for inner in self.mark.inner]

    def text(self) -> str:
        """Text that is not blank."""
        if not isinstance(self.mark.value, str) or not self.mark.value.strip():
            raise self.error("a name is expected here")
        return self.mark.value

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
    return YamlNode(read_marked(path, max_bytes=MAX_BYTES, max_nodes=MAX_NODES, texts=True), os.fsdecode(path))


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
