"""What force elements do in a state, by name, on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, Forces, check_time
from bellcrank.errors import ModelError
from bellcrank.lowering.element_view import FIELDS, REPORT
from bellcrank.lowering.element_views import element_parts, joint_view
from bellcrank.mechanism.forces.machine_force import KnownForce
from bellcrank.system.element_trouble import explain_elements
from bellcrank.system.evaluator import NumpyEvaluator
from bellcrank.system.force_elements import actuator_forces, machine_view

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["ElementForces", "element_forces"]


class ElementForces(NamedTuple):
    """One force element in a state, or a batch of them; what a kind of element does not have is NaN.

    Points, vectors and torques are in world axes and belong to the element's second body: the child of a joint (of a
    sum of joints, the child of its first), the second body of a spring, bushing or contact, the body of a wrench, of
    drag or of a tyre. The first point is on the other body: at the last joint of a sum, on the ground under a tyre.
    """

    force: Floats  #: (...) along its coordinate or line [N or N m]; positive drives that up, or the ends apart
    length: Floats  #: (...) its coordinate, or the distance of its ends [m or rad]
    rate: Floats  #: (...) of that [m/s or rad/s]
    power: Floats  #: (...) what it puts into the machine [W]; negative where it takes energy out
    energy: Floats  #: (...) what it stores [J]
    vector: Floats  #: (..., 3) the force on its second body [N]
    torque: Floats  #: (..., 3) the moment on it about `second_point` [N m]
    first_point: Floats  #: (..., 3) where it acts on its first body [m]
    second_point: Floats  #: (..., 3) where it acts on its second body [m]


def element_forces(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None, *, t: npt.ArrayLike
                   ) -> dict[str, ElementForces]:
    """All force elements by name; actuators too, if the joint forces that they limit are given."""
    check_time(t)
    parts = element_parts(plans.tree)
    _check_names([name for name, _, _ in parts] + [d.name for d in plans.model.mechanism.drives])
    out: dict[str, ElementForces] = {}
    if parts:
        rows = _reports(plans, q, u, t)
        rows = rows.reshape(*rows.shape[:-1], len(parts), REPORT)
        for k, (name, kind, _) in enumerate(parts):
            out[name] = _named(rows[..., k, :], kind.has)
    if tau is not None:
        out |= _actuators(plans, q, u, tau, t)
    return out


def _check_names(names: list[str]) -> None:
    """Refuse elements of different kinds with the same name: results go by names."""
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"element_forces: {names.count(name)} elements are called {name!r}; give them names of their "
                         "own")


def _reports(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike) -> Floats:
    kernels = plans.kernels
    run = kernels.compiled("element_reports", kernels.with_springs)
    found = kernels.evaluate("element_reports", {"q": q, "u": u}, None, t, run or NumpyEvaluator(plans.tree))
    if not found.finite:
        kernels.check_inputs(found)
        explain_elements(plans, *found.failed())
        kernels.refuse(found)
    return found.result


def _named(rows: Floats, has: tuple[str, ...]) -> ElementForces:
    values, at = [], 0
    for name, size in FIELDS.items():
        part = rows[..., at:at + size] if size > 1 else rows[..., at]
        values.append(part if name in has else np.full(part.shape, np.nan))
        at += size
    return ElementForces(*values)


def _actuators(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces, t: npt.ArrayLike
               ) -> dict[str, ElementForces]:
    """Actuators: the forces given, within their limits."""
    mechanism, places = plans.model.mechanism, plans.configuration.starts
    if not mechanism.drives:
        return {}
    acting = actuator_forces(plans, q, u, tau, t=t)
    sight, tree, out = machine_view(plans, q, u, t), plans.tree, {}
    for drive in mechanism.drives:
        link, column = tree.joint_names.index(drive.joint), places[drive.joint][1] + drive.coordinate
        part = link, drive.coordinate, KnownForce(acting[..., column]), link in tree.backwards
        kind = joint_view(tree, link)
        numbers = kind(sight, tree, part).report()
        lead = np.broadcast_shapes(acting.shape[:-1], *(np.shape(x) for x in numbers))
        rows = np.stack([np.broadcast_to(np.asarray(x, dtype=float), lead) for x in numbers], axis=-1)
        out[drive.name] = _named(rows, kind.has)
    return out
