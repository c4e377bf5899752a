"""Machines whose topology changes with time: what is open, locked or absent, and where frames lie that were defined
when their joints closed.

G. Rodriguez, A. Jain and K. Kreutz (see `formulations.operator`), section 2.3: the closures are what changes with time,
the arms are not. q and u keep their meaning in all arrangements of a machine; code is made once for each set of
closures, and the numbers of frames are parameters of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_time, flat
from bellcrank.errors import BellcrankError, ModelError, NotYetError, StateError, hint
from bellcrank.mechanism.carried_joints import closing_numbers, frame_parameters
from bellcrank.mechanism.joints import Free, Weld
from bellcrank.mechanism.mechanism import Connection, Mechanism
from bellcrank.mechanism.parts import Constraint
from bellcrank.mechanism.pose import Pose
from bellcrank.system.body_kinematics import pose
from bellcrank.system.kernels import Kernels
from bellcrank.system.loop_errors import loop_coordinates
from bellcrank.system.loop_plans import LoopPlans
from bellcrank.system.state import State, coordinates_of
from bellcrank.system.variants import closed_again, locked_near, released, unlocked, with_pins, without
from bellcrank.topology.release import carried_joints, pin_parameter

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.system.machine_functions import Machine
    from bellcrank.system.model import Model

__all__ = ["Arrangement", "arranged", "arrangement_of", "attached", "closing_frame", "held_closures", "known_closures",
           "pin_values", "pinned_plans"]

Made = TypeVar("Made", bound="Machine")


@dataclass(frozen=True)
class Arrangement:
    """The topology of a machine at a time of a run."""

    released: tuple[str, ...] = ()  #: closures that are open
    locked: tuple[str, ...] = ()  #: joints or coordinates that are held where they are
    pins: tuple[tuple[str, tuple[float, ...]], ...] = ()  #: closing joints that stops or locks hold, and where
    absent: tuple[str, ...] = ()  #: bodies that have not entered yet, or have left
    #: closed joints whose frames were defined at closing: origin and axes by rows, twelve numbers each
    frames: tuple[tuple[str, tuple[float, ...]], ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """What code depends on: all but the numbers of the frames, and values at which coordinates are held (but of
        quaternions)."""
        pins = tuple((name, at if len(at) in (4, 7) else None) for name, at in self.pins)
        return self.released, self.locked, pins, self.absent

    @property
    def values(self) -> dict[str, float]:
        """The parameters that hold the frames."""
        return {label: value for name, numbers in self.frames
                for label, value in zip(frame_parameters(name), numbers, strict=True)}

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @staticmethod
    def of_plain(value: Mapping[str, Any]) -> Arrangement:
        """The other way round."""
        return Arrangement(tuple(value["released"]), tuple(value["locked"]),
                           tuple((name, tuple(np.atleast_1d(at).tolist())) for name, at in value["pins"]),
                           tuple(value["absent"]),
                           tuple((name, tuple(numbers)) for name, numbers in value["frames"]))


def arrangement_of(system: Machine) -> Arrangement:
    """That of a machine as it is."""
    return _arrangement(system.model)


def _arrangement(model: Model) -> Arrangement:
    frames = tuple((name, tuple(float(np.mean(model.values[label])) for label in frame_parameters(name)))
                   for name, side in model.mechanism.open_at_start.items() if side and name not in model.released)
    locked = tuple(joint if index is None else f"{joint}.{model.mechanism.joint(joint).joint.coordinate_names()[index]}"
                   for joint, index in model.locked)
    opened = tuple(name for name in known_closures(model) if name in model.released)  # in one order
    return Arrangement(opened, tuple(sorted(locked)), frames=tuple(sorted(frames)),
                       absent=tuple(sorted(model.absent)))


def arranged(system: Made, wanted: Arrangement, near: Floats | None = None, plans: Sequence[LoopPlan] = ()) -> Made:
    """The machine in another arrangement. `near` is a position near which its loops close, `plans` are some of the same
    topology, the first of which that serves is taken. Code is made once for every `Arrangement.key` and kept with the
    machine."""
    if wanted == arrangement_of(system):
        return system
    first = _first_plan(system, wanted)
    return _made(system, wanted, near, plans if first is None else (first, *plans))


def _first_plan(system: Machine, wanted: Arrangement) -> LoopPlan | None:
    """The plan of a topology at a position that depends on the description of the machine alone: every run begins with
    the same code. Bodies that are grasped are put between the hands. None if the loops do not close there."""
    def found() -> LoopPlan | None:
        model = system.model
        plain = type(system)(system.kernels.for_model(model.with_values(model.tree.parameters)))
        try:
            q = plain.plans.reference().q.copy() if model.tree.looped else plain.neutral()
            _bring(plain.kernels, wanted, q)
            frames = {name: closing_frame(plain.kernels, name, q, 0.0) for name, _ in wanted.frames}
            pins = tuple((name, pin_values(plain.plans, name, q, 0.0)) for name, _ in wanted.pins)
            made = _made(plain, replace(wanted, frames=tuple(frames.items()), pins=pins), q, ())
            return made.plans.reference().plan if made.model.tree.looped else None
        except BellcrankError:
            return None

    return system.kernels.kept(("first plan", wanted.key), found)


def pin_values(plans: LoopPlans, name: str, q: Floats, t: float) -> tuple[float, ...]:
    """Where a joint that closes a loop is in a position, or one of its coordinates (``joint.coordinate``)."""
    joint, coordinate = plans.configuration.split(name)
    at = loop_coordinates(plans, q, joint, t=t)
    names = plans.model.mechanism.joint(joint).joint.coordinate_names()
    return tuple(at.tolist()) if coordinate is None else (float(at[names.index(coordinate)]),)


def pinned_plans(plans: LoopPlans, q: Floats, t: npt.ArrayLike) -> LoopPlans:
    """The machine with coordinates of joints that close loops and are locked held at the values that they have in
    positions (..., nq), where derivatives are asked: conditions on positions, not on speeds alone."""
    model, now = plans.model, _arrangement(plans.model)
    closing = {c.name for c in plans.tree.closures if c.is_joint}
    values: dict[str, Any] = {}
    pins = []
    for name in now.locked:
        joint, coordinate = model.configuration.split(name)
        kind = model.mechanism.joint(joint).joint
        if joint not in closing:
            continue
        if kind.nq != kind.nu and q.ndim > 1:
            raise NotYetError(f"derivatives: joint {joint!r} closes a loop, has a quaternion and is locked: one state "
                              f"at a time, or compile with actuated=[{joint!r}]")
        at = loop_coordinates(plans, q, joint, t=t)
        some = [k for k, label in enumerate(kind.coordinate_names()) if coordinate in (None, label)]
        pins.append((name, tuple(at.reshape(-1, kind.nq)[0][some].tolist())))
        values |= {pin_parameter(joint, kind.coordinate_names()[k]): at[..., k] for k in some}
    wanted = replace(now, pins=tuple(pins))
    made = _model(model, wanted, q.reshape(-1, q.shape[-1])[0])
    made = made.with_values({name: x for name, x in values.items() if name in made.values})
    kernels = plans.kernels.kept(("arrangement", wanted.key), lambda: Kernels(made, plans.kernels.maker))
    return LoopPlans(kernels.for_model(made))


def _bring(kernels: Kernels, wanted: Arrangement, q: Floats) -> None:
    """Put free bodies whose grips are defined at closing where these are, in the mean, in the coordinates q."""
    mechanism, points = kernels.model.mechanism, dict[int, list[Floats]]()
    for name, _ in wanted.frames:
        part, side = _part(mechanism, name), mechanism.open_at_start[name]
        ends = (part.child, part.parent) if side == "parent" else (part.parent, part.child)
        given = part.child_pose if side == "parent" else part.parent_pose
        hand = pose(kernels, q, kernels.tree.body_names[ends[0]])
        points.setdefault(ends[1], []).append(hand.position + hand.rotation @ kernels.model.values_of(given.position))
    for r in mechanism.joints:
        if r.parent == 0 and r.child in points and isinstance(r.joint, Free):
            place = Pose(np.mean(points[r.child], axis=0).tolist())
            inside = _plain(kernels, r.parent_pose).inverse() @ place @ _plain(kernels, r.child_pose)
            start = kernels.model.configuration.starts[r.name][0]
            q[start:start + 7] = r.joint.measure(inside.rotation, np.asarray(inside.position))


def _plain(kernels: Kernels, given: Pose) -> Pose:
    """A pose with values for its parameters."""
    return Pose.of_arrays(kernels.model.values_of(given.position), given.rotation)


def _part(mechanism: Mechanism, name: str) -> Connection | Constraint:
    """A joint or constraint by name."""
    parts: list[Connection | Constraint] = [*mechanism.joints, *mechanism.constraints]
    return next(p for p in parts if p.name == name)


def _made(system: Made, wanted: Arrangement, near: Floats | None, plans: Sequence[LoopPlan]) -> Made:
    model = _model(system.model, wanted, near)
    if wanted.key == arrangement_of(system).key:
        kernels = system.kernels
    else:
        kernels = system.kernels.kept(("arrangement", wanted.key), lambda: Kernels(model, system.kernels.maker))
    own = kernels.for_model(model)
    return type(system)(own, LoopPlans(own, plans))


def attached(system: Made, names: Sequence[str], at: State | npt.ArrayLike, t: float | None = None) -> Made:
    """See `Machine.attach`."""
    when = t if t is not None else at.t if isinstance(at, State) else 0.0
    check_time(when)
    model = system.model
    q = flat("at", coordinates_of(at, model.configuration.state_names, "attach"), model.tree.nq, "the coordinates")
    if q.ndim != 1:
        raise StateError(f"attach: needs one position, got those of {q.shape[:-1]} states")
    for name in names:
        if name not in model.released:
            raise ModelError(f"attach: {name!r} is not open; there are {', '.join(map(repr, model.released)) or 'none'}"
                             f"{hint(name, model.released)}")
    now = arrangement_of(system)
    frames = {name: closing_frame(system.kernels, name, q, when) for name in names}
    wanted = replace(now, released=tuple(n for n in now.released if n not in names),
                     frames=tuple(sorted((*now.frames, *((name, x) for name, x in frames.items() if x)))))
    return arranged(system, wanted, q)


def _model(model: Model, wanted: Arrangement, near: Floats | None) -> Model:
    made = unlocked(closed_again(model))
    if wanted.released:
        made = released(made, wanted.released)
    joint_of = {name: model.configuration.split(name)[0] for name in (*wanted.locked, *dict(wanted.pins))}
    pins = {name: at for name, at in wanted.pins if joint_of[name] not in wanted.released}
    if pins:
        made = with_pins(made, pins)
    held = tuple(name for name in wanted.locked
                 if name not in dict(wanted.pins) and joint_of[name] not in wanted.released)
    made = locked_near(made, held, near) if held else replace(made, near=near)
    if wanted.absent:
        made = without(made, wanted.absent)
    return made.with_values(wanted.values) if wanted.frames else made


# -- frames that are defined at closing -----------------------------------------------------------------
def closing_frame(kernels: Kernels, name: str, q: Floats, t: float) -> tuple[float, ...]:
    """The numbers of the frame of a joint that closes in a position; none if its frames are given."""
    mechanism = kernels.model.mechanism
    side = mechanism.open_at_start.get(name, "")
    if not side:
        return ()
    part = _part(mechanism, name)
    bodies = {"parent": part.parent, "child": part.child}
    at = {end: pose(kernels, q, kernels.tree.body_names[body], t=t) for end, body in bodies.items()}
    other = "child" if side == "parent" else "parent"
    given = getattr(part, f"{other}_pose")
    rigid = isinstance(part, Connection) and isinstance(part.joint, Weld)
    place = Pose.of_arrays(kernels.model.values_of(given.position), np.eye(3) if rigid else given.rotation)
    return closing_numbers(at[side], at[other], place, rigid)


def known_closures(model: Model) -> tuple[str, ...]:
    """Everything that closes loops or may, in the order of the machine as a whole."""
    return tuple(c.name for c in (model.whole or model.tree).closures)


# -- bodies that come and go ----------------------------------------------------------------------------
def held_closures(model: Model, bodies: Sequence[str]) -> tuple[str, ...]:
    """The closures that hold bodies which may leave, or what hangs on them."""
    tree = model.whole or model.tree
    joints = {j for body in bodies for j in carried_joints(tree, body)}
    links = {k for k, name in enumerate(tree.joint_names) if k and name in joints}
    return tuple(c.name for c in tree.closures if c.first in links or c.second in links)
