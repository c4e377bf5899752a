"""What a reader made of a file: notes about it, and the data that a `Mechanism` has no place for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Literal

import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankWarning, StateError, outside
from bellcrank.io.common.peer_states import PeerStates
from bellcrank.mechanism.pose import Pose
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.compiled.system import System

__all__ = ["Actuation", "Dynamics", "Kind", "Limits", "Material", "Mimic", "Note", "ReadReport", "ReadWarning",
           "Shape", "condensed", "warn_of_surprises"]

Kind = Literal["warned", "changed", "kept", "ignored", "missing"]

_MEANING: dict[Kind, str] = {
    "warned": "the machine may move differently than the author of the file meant",
    "changed": "read, but expressed differently",
    "kept": "no part of the equations of motion, kept as data in this report",
    "ignored": "not read",
    "missing": "pictures lack it; the motion is the same",
}
_LOOSENED = ("changed", "mimic")


class ReadWarning(BellcrankWarning):
    """A file holds something that is not physical, or that would change the motion and is not modelled."""


@dataclass(frozen=True, slots=True)
class Note:
    """One remark about one element of the file. `name` is that of the nearest element that has one."""

    kind: Kind
    tag: str
    name: str
    line: int
    text: str

    def __str__(self) -> str:
        whose = f" of {self.name!r}" if self.name else ""
        return f"line {self.line}: <{self.tag}>{whose}: {self.text}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Range [rad or m], largest effort [N m or N] and largest speed [rad/s or m/s] of a joint."""

    lower: float = -inf
    upper: float = inf
    effort: float = inf
    velocity: float = inf


@dataclass(frozen=True, slots=True)
class Dynamics:
    """Viscous damping [N m s/rad or N s/m] and dry friction [N m or N] of a joint."""

    damping: float = 0.0
    friction: float = 0.0


@dataclass(frozen=True, slots=True)
class Mimic:
    """A joint that should follow another: q = multiplier * q of `joint` + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Actuation:
    """An actuator of a file: the joint force is `gear` times its own, which may be limited and a servo's.

    `kind` is the element's tag. `control` and `force` are the ranges of its input and of its own force, before the
    gear. That force is gain * control + bias[0] + bias[1] * length + bias[2] * rate, with the length and rate of the
    joint times the gear.
    """

    kind: str
    joint: str
    gear: float = 1.0
    control: tuple[float, float] = (-inf, inf)
    force: tuple[float, float] = (-inf, inf)
    gain: float = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Material:
    """A colour (red, green, blue, opacity, each 0 to 1) and the name of a texture file, never opened.

    With neither, it stands for the one of the same name in `ReadReport.materials`.
    """

    name: str
    rgba: tuple[float, ...] | None = None
    texture: str | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """What a body looks like or collides with.

    `kind` is mesh, box, sphere, ellipsoid, cylinder, capsule, cone, plane, heightfield or heightmap. `size` holds
    the edges of a box or plane (none if it has no end), the radius of a sphere, half axes of an ellipsoid, radius and
    length of the others, the size of a heightmap [m]; for a mesh the scale. `filename` is as written in the file.
    `pose` lies in the body's frame.
    """

    body: str
    role: Literal["visual", "collision"]
    kind: str
    size: tuple[float, ...]
    filename: str | None
    pose: Pose
    material: Material | None
    line: int
    friction: float | None = None  #: Coulomb's
    groups: tuple[int, int] = (1, 1)  #: bits of what it is, and of what it touches


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What was made of a file. Names are those of the `Mechanism`; `renamed` maps from the file's names.

    >>> print(ReadReport("arm.urdf", (Note("ignored", "gazebo", "arm", 7, "simulator settings"),)))
    arm.urdf: 1 ignored
    ignored (not read):
      line 7: <gazebo> of 'arm': simulator settings
    """

    source: str
    notes: tuple[Note, ...] = ()
    limits: Mapping[str, Limits] = field(default_factory=dict)
    dynamics: Mapping[str, Dynamics] = field(default_factory=dict)
    mimics: Mapping[str, Mimic] = field(default_factory=dict)
    shapes: tuple[Shape, ...] = ()
    materials: Mapping[str, Material] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    #: initial states by name: {"q": {joint: value}, "u": {joint: value}}, several numbers for several coordinates
    keyframes: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    actuators: Mapping[str, Actuation] = field(default_factory=dict)
    #: how other libraries that read this file order and measure its coordinates, by the library's name
    peers: Mapping[str, PeerStates] = field(default_factory=dict, repr=False)

    # -- states of other libraries --------------------------------------------------------------
    def to_mujoco(self, state: State) -> tuple[Floats, Floats]:
        """qpos and qvel of a state, for MuJoCo's model of this file (MJCF or URDF); batches keep their axes.

        Joints that close loops, and joints that were added since, are left out. Joint forces are converted as speeds
        are: those of ``state.replace(u=tau)`` are MuJoCo's qfrc. Of a URDF file read with ``floating_base=True``, the
        free joint of the root comes first.

        >>> import os, tempfile
        >>> import bellcrank as bc
        >>> file = os.path.join(tempfile.mkdtemp(), "quadruped.urdf")
        >>> bc.save(bc.load("quadruped"), file)
        >>> machine, report = bc.read(file)
        >>> system = bc.compile(machine)
        >>> qpos, qvel = report.to_mujoco(system.assemble(q={"floating.z": 0.3}))
        >>> qpos[:7]
        array([0. , 0. , 0.3, 1. , 0. , 0. , 0. ])
        >>> report.from_mujoco(system, qpos, qvel)["floating.z"]
        0.3
        """
        return self._peer("MuJoCo").to_peer(state)

    def from_mujoco(self, system: System, qpos: npt.ArrayLike, qvel: npt.ArrayLike | None = None, *,
                    t: npt.ArrayLike = 0.0) -> State:
        """The state of a compiled machine that MuJoCo's qpos and qvel (0 unless given) are; batches keep their axes.

        Coordinates of joints that close loops follow from those of the bodies. MuJoCo's loops are soft:
        `System.project` closes them. States of actuators are zero.
        """
        return self._peer("MuJoCo").from_peer(system, qpos, qvel, t)

    def to_pinocchio(self, state: State) -> tuple[Floats, Floats]:
        """q and v of a state, for Pinocchio's model of this file (URDF), as ``pinocchio.buildModelFromUrdf(file)``
        makes it; with ``pinocchio.JointModelFreeFlyer()`` if it was read with ``floating_base=True``.

        Joint forces and accelerations are converted as speeds are.
        """
        return self._peer("Pinocchio").to_peer(state)

    def from_pinocchio(self, system: System, q: npt.ArrayLike, v: npt.ArrayLike | None = None, *,
                       t: npt.ArrayLike = 0.0) -> State:
        """The state of a compiled machine that Pinocchio's q and v (0 unless given) are; angles of continuous joints
        are within half a turn."""
        return self._peer("Pinocchio").from_peer(system, q, v, t)

    def _peer(self, library: str) -> PeerStates:
        if library not in self.peers:
            kinds = {"MuJoCo": "MJCF and URDF", "Pinocchio": "URDF"}[library]
            raise StateError(f"{self.source}: states are converted to those of {library} for {kinds} files; write the "
                             "machine to such a file with bc.save, and take the report of bc.read for that")
        return self.peers[library]

    # -- notes ----------------------------------------------------------------------------------
    def of_kind(self, kind: Kind) -> tuple[Note, ...]:
        """The notes of one kind, in file order."""
        return tuple(note for note in self.notes if note.kind == kind)

    @property
    def warned(self) -> tuple[Note, ...]:
        """What may make the machine move differently than meant: not modelled, or not physical."""
        return self.of_kind("warned")

    @property
    def changed(self) -> tuple[Note, ...]:
        """What was read but is expressed differently in the `Mechanism`."""
        return self.of_kind("changed")

    @property
    def kept(self) -> tuple[Note, ...]:
        """What is no part of the equations of motion but is kept as data in this report."""
        return self.of_kind("kept")

    @property
    def ignored(self) -> tuple[Note, ...]:
        """What was not read."""
        return self.of_kind("ignored")

    @property
    def missing(self) -> tuple[Note, ...]:
        """What pictures lack: meshes that were not found."""
        return self.of_kind("missing")

    @property
    def surprises(self) -> tuple[Note, ...]:
        """What may make the motion another one than the file asks for: warnings and loosened mimic joints."""
        return tuple(note for note in self.notes if note.kind == "warned" or (note.kind, note.tag) == _LOOSENED)

    def __str__(self) -> str:
        groups = {kind: self.of_kind(kind) for kind in _MEANING}
        counts = [f"{len(notes)} {kind}" for kind, notes in groups.items() if notes]
        lines = [f"{self.source}: {', '.join(counts) or 'nothing to remark'}"]
        for kind, notes in groups.items():
            if notes:
                lines.append(f"{kind} ({_MEANING[kind]}):")
                lines.extend(f"  {line}" for line in condensed(notes))
        return "\n".join(lines)


def condensed(notes: tuple[Note, ...]) -> Iterator[str]:
    """One line for all notes that say the same about the same kind of element."""
    alike: dict[tuple[str, str], list[Note]] = {}
    for note in notes:
        alike.setdefault((note.tag, note.text), []).append(note)
    for same in alike.values():
        yield f"{same[0]}{f' (and {len(same) - 1} more)' if len(same) > 1 else ''}"


def warn_of_surprises(report: ReadReport, reader: str) -> None:
    """One `ReadWarning` about what would make the machine move differently, and one about meshes that were not found,
    at the line that asked for the file."""
    _warn_of_missing(report, reader)
    lines = list(condensed(report.surprises))
    if not lines:
        return
    rest = [f"... and {len(lines) - 3} more kinds"] if len(lines) > 3 else []
    first = f"{report.source}: not modelled, loosened or not physical (full report: {reader})"
    warnings.warn("\n  ".join([first, *lines[:3], *rest]), ReadWarning, stacklevel=outside())


def _warn_of_missing(report: ReadReport, reader: str) -> None:
    lines = list(dict.fromkeys(f"body {note.name!r}: {note.text}" for note in report.missing))
    if not lines:
        return
    rest = [f"... and {len(lines) - 3} more"] if len(lines) > 3 else []
    first = f"{report.source}: pictures will lack meshes, the motion is the same (full report: {reader})"
    warnings.warn("\n  ".join([first, *lines[:3], *rest]), ReadWarning, stacklevel=outside())

