"""MJCF files into mechanisms: bodies, joints and what acts on them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.io.common.peer_states import PeerStates, mujoco_joint
from bellcrank.io.common.readings import with_ranges
from bellcrank.io.common.xml import XmlElement, unused
from bellcrank.io.mjcf.actuators import read_actuators
from bellcrank.io.mjcf.geoms import read_shapes
from bellcrank.io.mjcf.joint_forces import read_joint_forces, read_tendons
from bellcrank.io.mjcf.loops import read_equalities
from bellcrank.io.mjcf.sites import rotation, site_pose
from bellcrank.io.mjcf.source import Source, compiled, the_mujoco
from bellcrank.io.report import Actuation, Dynamics, Kind, Limits, Note, ReadReport, Shape, warn_of_surprises
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free, Prismatic, Revolute, Spherical, Weld
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

__all__ = ["MjcfReader", "load_mjcf", "read_mjcf"]


# -- what MJCF holds beside the machine itself: sites and keyframes ---------------------------------
_FREE, _BALL = 0, 1


# -- places -----------------------------------------------------------------------------------------
def read_sites(reader: MjcfReader, machine: Mechanism) -> None:
    """Named sites become frames."""
    for site in range(reader.model.nsite):
        element = reader.place = reader.source.element("site", site)
        name = reader.source.name("site", site)
        if not name:
            continue
        body, pose = site_pose(reader, site)
        try:
            machine.add_frame(name, reader.bodies[body], pose)
        except ModelError:
            reader.note("ignored", element, "a body has the name of this site")


# -- states -----------------------------------------------------------------------------------------
def read_keyframes(reader: MjcfReader) -> None:
    """Positions and speeds by joint, in the coordinates of the mechanism."""
    model = reader.model
    for index, key in enumerate(reader.source.gate.keys):
        reader.place = key
        sizes = {"qpos": model.nq, "qvel": model.nv, "act": model.na, "ctrl": len(model.actuator_ctrlrange)}
        long = [name for name, size in sizes.items() if len(key.attributes.get(name, "").split()) > size]
        if long:
            reader.note("warned", key, f"left out: {' and '.join(long)} have more numbers than the model has entries")
            continue
        qpos = _row(reader, key, "qpos", model.qpos0)
        qvel = _row(reader, key, "qvel", np.zeros(model.nv))
        name = key.attributes.get("name") or f"key{index}"
        state: dict[str, dict[str, Any]] = {"q": {}, "u": {}}
        if "ctrl" in key.attributes:
            control = _row(reader, key, "ctrl", np.zeros(sizes["ctrl"])).tolist()
            state["parameters"] = {label: control[at] for label, at in reader.controls.items()}
        _note_zero_quaternions(reader, qpos)
        for label, pair in reader.peer.by_joint(qpos, qvel).items():
            state["q"][label], state["u"][label] = (x.item() if len(pair[1]) == 1 else tuple(x.tolist()) for x in pair)
        if "act" in key.attributes and reader.activations:
            active = _row(reader, key, "act", np.zeros(model.na))
            state["u"] |= {label: float(active[at]) for label, at in reader.activations.items()}
        reader.keyframes[name] = state
        left = [what for what in ("mpos", "mquat", *(() if reader.activations else ("act",))) if what in key.attributes]
        reader.note("kept", key, "kept in report.keyframes" + (f", without {', '.join(left)}" if left else ""))


def _row(reader: MjcfReader, key: XmlElement, name: str, default: Floats) -> Floats:
    """Numbers of a keyframe; those at the end that it leaves out are the defaults, as MuJoCo has it."""
    row = np.array(default, dtype=float)
    words = key.attributes.get(name, "").split()
    if words and len(row):
        row[:len(words)] = key.numbers(name, len(words))
        if len(words) < len(row):
            reader.note("changed", key, f"{name} has {len(words)} of {len(row)} numbers; the others are the default")
    return row


def _note_zero_quaternions(reader: MjcfReader, qpos: Floats) -> None:
    model = reader.model
    for label, kind, at in zip(reader.joints, model.jnt_type, model.jnt_qposadr, strict=True):
        first = int(at) + (3 if kind == _FREE else 0)
        if kind in (_FREE, _BALL) and not qpos[first:first + 4].any():
            reader.note("changed", reader.place, f"the quaternion of {label!r} is zero, taken as 1, 0, 0, 0")


FREE, BALL, SLIDE, HINGE = range(4)
_KINDS = ("free", "ball", "slide", "hinge")


def load_mjcf(path: str | os.PathLike[str], **options: Any) -> Mechanism:
    """The machine described by an MJCF file (MuJoCo's format); options are those of `read_mjcf`.

    What would change the motion and is not modelled is told by one `ReadWarning`.
    """
    mechanism, report = read_mjcf(path, **options)
    warn_of_surprises(report, "read_mjcf")
    return mechanism


def read_mjcf(path: str | os.PathLike[str], *, limits: bool = False, actuators: bool = True,
              missing_meshes: str = "error", folder: str | os.PathLike[str] | None = None
              ) -> tuple[Mechanism, ReadReport]:
    """The machine described by an MJCF file, with a report of what was kept, changed and ignored.

    Needs the package mujoco, which works out defaults, frames and the inertia of shapes. Hinges and slides are zero in
    the layout drawn in the file, q = qpos - ref; free joints are measured in the world. `ReadReport.to_mujoco` and
    `ReadReport.from_mujoco` convert states.
    Every joint keeps its name; of several joints on one body all but the last carry massless bodies. Equality
    constraints become exact loops: connect a `Spherical` joint, two connects of the same bodies a `Revolute` one, weld
    a `Weld`, joint a coupler. `limits` makes stops of joint ranges, as soft as the file's solref says. With `actuators`
    motors limit the input tau of their joints, and all others whose force follows from the state are servos: the
    control of each is a parameter of the mechanism, named like the actuator and zero unless set. Geoms come with the
    bodies as shapes: those of the groups 0 to 2 are seen, and those that can touch others are for collisions, too.
    Meshes are opened when they are shown, and at once if an inertia depends on them;
    ``missing_meshes="massless"`` goes on without those. No file outside `folder` is opened (that of the file unless
    given).
    """
    source = compiled(path, folder, missing_meshes)
    reader = MjcfReader(source, limits, actuators)
    try:
        return with_ranges(reader.mechanism(), reader.report())
    except ModelError as error:
        raise reader.place.error(str(error)) from None


class MjcfReader:
    """Reads one compiled model; collects notes and data on the way."""

    def __init__(self, source: Source, stops: bool, drives: bool) -> None:
        self.source, self.model, self.mujoco = source, source.model, the_mujoco()
        self.stops, self.drives = stops, drives
        self.notes = list(source.gate.notes)
        self.place: XmlElement = source.gate.root  #: what is being read
        self.limits: dict[str, Limits] = {}
        self.dynamics: dict[str, Dynamics] = {}
        self.shapes: list[Shape] = []
        self.renamed: dict[str, str] = {}
        self.keyframes: dict[str, dict[str, dict[str, Any]]] = {}
        self.actuations: dict[str, Actuation] = {}
        self.controls: dict[str, int] = {}  #: servos whose control is a parameter, with its place in ctrl
        self.activations: dict[str, int] = {}  #: states of actuators, with their places in act
        self.bodies: list[str] = ["ground"]
        self.joints: list[str] = []
        self.peer = PeerStates("", "MuJoCo")
        self.taken: dict[str, None] = {}  #: names of joints and constraints
        self.turns: list[Floats] = [np.eye(3)]  #: axes of the bodies in the world, as drawn
        flags = int(self.model.opt.disableflags)
        self.off = {bit.name[7:].lower() for bit in _bits(self.mujoco) if flags & int(bit)}

    def note(self, kind: Kind, element: XmlElement, text: str) -> None:
        self.notes.append(Note(kind, element.tag, element.owner, element.line, text))

    def report(self) -> ReadReport:
        notes = tuple(sorted(self.notes, key=lambda note: note.line))
        return ReadReport(self.source.gate.root.source, notes, self.limits, self.dynamics, {}, tuple(self.shapes),
                          {}, self.renamed, self.keyframes, self.actuations, {"MuJoCo": self.peer})

    # -- the whole ----------------------------------------------------------------------------
    def mechanism(self) -> Mechanism:
        model, root = self.model, self.source.gate.root
        name = root.attributes.get("model", "").strip() or os.path.splitext(os.path.basename(root.source))[0]
        gravity = (0.0, 0.0, 0.0) if "gravity" in self.off else tuple(model.opt.gravity.tolist())
        machine = Mechanism(name, gravity)
        self._settings()
        self._name_parts()
        for body in range(1, model.nbody):
            self.place = self.source.element("body", body)
            self._add_body(machine, body)
        for joint in range(model.njnt):
            self.place = self.source.element("joint", joint)
            read_joint_forces(self, machine, joint)
        read_equalities(self, machine)
        read_tendons(self, machine)
        read_actuators(self, machine)
        read_sites(self, machine)
        read_shapes(self, machine)
        self.peer = self._peer(machine)
        read_keyframes(self)
        return machine

    def _settings(self) -> None:
        option = self.source.gate.root.first("option") or self.source.gate.root
        opt = self.model.opt
        if opt.density or opt.viscosity:
            self.note("warned", option, "the air or fluid around the machine is not modelled")
        physics = self.off & {"gravity", "spring", "damper", "equality", "constraint", "frictionloss", "limit"}
        if physics:
            self.note("changed", option, f"switched off by flags of the file: {', '.join(sorted(physics))}")
        if self.model.ngeom:
            self.note("ignored", self.source.gate.root, "contacts act once they are added (add_contacts)")

    def _name_parts(self) -> None:
        model, taken = self.model, {"ground": None}
        for body in range(1, model.nbody):
            given = self.source.name("body", body)
            name = unused(given or f"body{body}", taken)
            if given and name != given:
                self.renamed[given] = name
                self.note("changed", self.source.element("body", body), f"renamed to {name!r}: {given!r} is the world")
            taken[name] = None
            self.bodies.append(name)
        names = [self.source.name("joint", joint) for joint in range(model.njnt)]
        self.taken.update(dict.fromkeys(name for name in names if name))
        for joint, given in enumerate(names):
            kind = _KINDS[int(model.jnt_type[joint])]
            self.joints.append(given or self.new_name(f"{self.bodies[int(model.jnt_bodyid[joint])]}_{kind}"))

    def _peer(self, machine: Mechanism) -> PeerStates:
        """MuJoCo's joints."""
        zeros = [float(self.model.qpos0[at]) if kind in (SLIDE, HINGE) else 0.0
                 for at, kind in zip(self.model.jnt_qposadr, self.model.jnt_type, strict=True)]
        return PeerStates.of(self.source.gate.root.source, "MuJoCo", {
            name: mujoco_joint(machine.joint(name).joint, zero)
            for name, zero in zip(self.joints, zeros, strict=True)})

    def new_name(self, wish: str) -> str:
        """A name for a joint or constraint that is still free."""
        name = unused(wish, self.taken)
        self.taken[name] = None
        return name

    # -- bodies and joints --------------------------------------------------------------------
    def _add_body(self, machine: Mechanism, body: int) -> None:
        model, name = self.model, self.bodies[body]
        parent = int(model.body_parentid[body])
        pose = Pose(model.body_pos[body], rotation(self.mujoco, model.body_quat[body]))
        self.turns.append(self.turns[parent] @ pose.rotation)
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        if model.body_mocapid[body] >= 0:
            self.note("changed", self.place, "a mocap body: stands still where the file draws it")
        inboard = self.bodies[parent]
        for joint in range(first, first + count):
            last = joint == first + count - 1
            outboard = name if last else unused(f"{name}_to_{self.joints[joint]}", {
                **dict.fromkeys(self.bodies), **dict.fromkeys(b.name for b in machine.bodies)})
            machine.add_body(outboard, self._inertia(body) if last else None)
            self._add_joint(machine, joint, inboard, outboard, pose)
            inboard, pose = outboard, Pose()
        if not count:
            machine.add_body(name, self._inertia(body))
            machine.add_joint(self.new_name(f"{name}_weld"), Weld(), inboard, name, pose)
        self._lifted(machine, body)

    def _inertia(self, body: int) -> Inertia:
        model = self.model
        mass = float(model.body_mass[body])
        moments = np.array(model.body_inertia[body])
        if mass == 0.0 and not moments.any():
            return Inertia.zero()
        turn = rotation(self.mujoco, model.body_iquat[body])
        about = np.diag(moments) if turn is None else turn @ np.diag(moments) @ turn.T
        inertia = Inertia(mass, model.body_ipos[body], 0.5 * (about + about.T), checked=False)
        problem = inertia.problem()
        if problem:
            self.note("warned", self.place, f"kept as given, though no real body has it: {problem}")
        return inertia

    def _add_joint(self, machine: Mechanism, joint: int, inboard: str, outboard: str, pose: Pose) -> None:
        model, name = self.model, self.joints[joint]
        at, axis = Pose(model.jnt_pos[joint]), tuple(model.jnt_axis[joint].tolist())
        match int(model.jnt_type[joint]):
            case 0:
                machine.add_joint(name, Free(pose), inboard, outboard)
            case 1:
                machine.add_joint(name, Spherical(), inboard, outboard, pose @ at, at)
            case 2:
                machine.add_joint(name, Prismatic(axis), inboard, outboard, pose)
            case _:
                machine.add_joint(name, Revolute(axis), inboard, outboard, pose @ at, at)

    def _lifted(self, machine: Mechanism, body: int) -> None:
        """Compensation of gravity: a constant force at the centre of mass."""
        share = float(self.model.body_gravcomp[body]) * float(self.model.body_mass[body])
        if share and any(machine.gravity):
            machine.add_wrench(f"{self.bodies[body]}_gravcomp", self.bodies[body], at=self.model.body_ipos[body],
                               force=[-share * g for g in machine.gravity])


# -- helpers ------------------------------------------------------------------------------------
def _bits(mujoco: Any) -> list[Any]:
    return [bit for name, bit in mujoco.mjtDisableBit.__members__.items() if name.startswith("mjDSBL_")]
