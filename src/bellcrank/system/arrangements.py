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
from bellcrank.errors import ModelError, StateError, hint
from bellcrank.loops.closer import State
from bellcrank.mechanism.closing_frames import frame_parameters
from bellcrank.mechanism.mechanism import Connection
from bellcrank.mechanism.placed_elements import Constraint
from bellcrank.mechanism.pose import Pose
from bellcrank.system.body_kinematics import pose
from bellcrank.system.kernels import Kernels
from bellcrank.system.loop_plans import LoopPlans
from bellcrank.system.variants import closed_again, locked_near, released, unlocked, with_closures, without
from bellcrank.topology.release import carried_joints, pinned

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.system.machine_functions import Machine
    from bellcrank.system.model import Model

__all__ = ["Arrangement", "arranged", "arrangement_of", "attached", "closing_frame", "held_closures", "known_closures"]

Made = TypeVar("Made", bound="Machine")


@dataclass(frozen=True)
class Arrangement:
    """The topology of a machine at a time of a run."""

    released: tuple[str, ...] = ()  #: closures that are open
    locked: tuple[str, ...] = ()  #: joints or coordinates that are held where they are
    pins: tuple[tuple[str, float], ...] = ()  #: closing joints that stops hold, and where
    absent: tuple[str, ...] = ()  #: bodies that have not entered yet, or have left
    #: closed joints whose frames were defined at closing: origin and axes by rows, twelve numbers each
    frames: tuple[tuple[str, tuple[float, ...]], ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """What code depends on: all but the numbers of the frames."""
        return self.released, self.locked, self.pins, self.absent

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
                           tuple((name, at) for name, at in value["pins"]), tuple(value["absent"]),
                           tuple((name, tuple(numbers)) for name, numbers in value["frames"]))


def arrangement_of(system: Machine) -> Arrangement:
    """That of a machine as it is."""
    model = system.model
    frames = tuple((name, tuple(float(np.mean(model.values[label])) for label in frame_parameters(name)))
                   for name, side in model.mechanism.open_at_start.items() if side and name not in model.released)
    locked = tuple(joint if index is None else f"{joint}.{model.mechanism.joint(joint).joint.coordinate_names()[index]}"
                   for joint, index in model.locked)
    return Arrangement(model.released, locked, frames=frames, absent=model.absent)


def arranged(system: Made, wanted: Arrangement, near: Floats | None = None, plan: LoopPlan | None = None) -> Made:
    """The machine in another arrangement. `near` is a position near which its loops close, `plan` one of the same loops
    that is taken if it serves. Code is made once for every `Arrangement.key` and kept with the machine."""
    if wanted == arrangement_of(system):
        return system
    model = _model(system.model, wanted, near)
    if wanted.key == arrangement_of(system).key:
        kernels = system.kernels
    else:
        kernels = system.kernels.kept(("arrangement", wanted.key), lambda: Kernels(model, system.kernels.maker))
    own = kernels.for_model(model)
    return type(system)(own, LoopPlans(own, plan))


def attached(system: Made, names: Sequence[str], at: State | npt.ArrayLike, t: float | None = None) -> Made:
    """See `Machine.attach`."""
    when = t if t is not None else at.t if isinstance(at, State) else 0.0
    check_time(when)
    model = system.model
    q = flat("at", at.q if isinstance(at, State) else at, model.tree.nq, "the coordinates")
    if q.ndim != 1:
        raise StateError(f"attach: needs one position, got those of {q.shape[:-1]} states")
    for name in names:
        if name not in model.released:
            raise ModelError(f"attach: {name!r} is not open; there are {', '.join(map(repr, model.released)) or 'none'}"
                             f"{hint(name, model.released)}")
    now = arrangement_of(system)
    frames = {name: closing_frame(system.kernels, name, q, when) for name in names}
    wanted = replace(now, released=tuple(n for n in now.released if n not in names),
                     frames=(*now.frames, *((name, numbers) for name, numbers in frames.items() if numbers)))
    return arranged(system, wanted, q)


def _model(model: Model, wanted: Arrangement, near: Floats | None) -> Model:
    made = unlocked(closed_again(model))
    if wanted.released:
        made = released(made, wanted.released)
    pins = {name: at for name, at in wanted.pins if name not in wanted.released}
    if pins:
        made = with_closures(made, lambda tree: pinned(tree, pins))
    held = tuple(name for name in wanted.locked if name not in dict(wanted.pins))
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
    parts: list[Connection | Constraint] = [*mechanism.joints, *mechanism.constraints]
    part = next(p for p in parts if p.name == name)
    bodies = {"parent": part.parent, "child": part.child}
    at = {end: pose(kernels, q, kernels.tree.body_names[body], t=t) for end, body in bodies.items()}
    other = "child" if side == "parent" else "parent"
    given = getattr(part, f"{other}_pose")
    there = at[other] @ Pose.of_arrays(kernels.model.values_of(given.position), given.rotation)
    here = at[side].inverse() @ there
    return (*here.position.tolist(), *here.rotation.ravel().tolist())


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
