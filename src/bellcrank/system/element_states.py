"""What force elements do in a state, by name, on arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, Forces, check_time, flat
from bellcrank.errors import ModelError
from bellcrank.lowering.element_view import FIELDS, REPORT
from bellcrank.lowering.element_views import element_parts, kind_of_view
from bellcrank.mechanism.forces.machine_force import KnownForce
from bellcrank.mechanism.parts import AddedState
from bellcrank.system.element_trouble import explain_elements
from bellcrank.system.evaluator import NumpyEvaluator
from bellcrank.system.force_elements import actuator_forces, machine_view
from bellcrank.topology.pairs import SumForce

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans
    from bellcrank.system.model import Model

__all__ = ["ElementForces", "element_forces", "states_of_elements"]


class ElementForces(NamedTuple):
    """One force element in a state, or a batch of them; what a kind of element does not have is NaN.

    Points, vectors and torques are in world axes and belong to the element's second body: the child of a joint (of a
    sum of joints, the child of its first), the second body of a spring, bushing or contact, the body of a wrench, of
    drag or of a tyre. The first point is on the other body: of a joint the parent (of a sum, that of its last joint),
    the ground under a tyre. Those of joints are the origins of the joint's frames.
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
    #: (...) each, the states that belong to it: "head" and "rod" of a cylinder, "current", "bend"
    states: Mapping[str, Floats] = {}


def element_forces(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None, *, t: npt.ArrayLike
                   ) -> dict[str, ElementForces]:
    """All force elements by name; actuators too, if the joint forces that they limit are given."""
    check_time(t)
    parts = element_parts(plans.tree)
    _check_names([name for name, _, _ in parts] + [d.name for d in plans.model.mechanism.drives])
    out: dict[str, ElementForces] = {}
    if parts:
        rows, states = _reports(plans, q, u, t), _states(plans, u)
        rows = rows.reshape(*rows.shape[:-1], len(parts), REPORT)
        for k, (name, kind, _) in enumerate(parts):
            out[name] = _named(rows[..., k, :], kind.has, states.get(name, {}))
    if tau is not None:
        out |= _actuators(plans, q, u, tau, t)
    return out


def _states(plans: LoopPlans, u: npt.ArrayLike) -> dict[str, dict[str, Floats]]:
    """Values of the states that belong to elements, by element and label."""
    out: dict[str, dict[str, Floats]] = {}
    for (name, label), state in states_of_elements(plans.model).items():
        speeds = flat("u", u, plans.tree.nu, "one for every speed")
        out.setdefault(name, {})[label] = speeds[..., plans.configuration.starts[state.name][1]]
    return out


def states_of_elements(model: Model) -> dict[tuple[str, str], AddedState]:
    """States that belong to elements by their names, ``"lift head"``, ``"floor bend 0x"``: by the element, the one with
    the longest name if there are several, and what is left."""
    mechanism = model.mechanism
    names = {e.name for e in (*mechanism.force_elements, *mechanism.contacts)}
    out = {}
    for state in mechanism.states:
        words = state.name.split(" ")
        for k in range(len(words) - 1, 0, -1):
            own = " ".join(words[:k])
            if own in names:
                out[own, " ".join(words[k:])] = state
                break
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


def _named(rows: Floats, has: tuple[str, ...], states: Mapping[str, Floats]) -> ElementForces:
    values: dict[str, Any] = {"states": {label: np.broadcast_to(x, rows.shape[:-1]) for label, x in states.items()}}
    at = 0
    for name, size in FIELDS.items():
        part = rows[..., at:at + size] if size > 1 else rows[..., at]
        values[name] = part if name in has else np.full(part.shape, np.nan)
        at += size
    return ElementForces(**values)


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
        part = SumForce(drive.name, ((link, drive.coordinate, 1.0),), KnownForce(acting[..., column]))
        kind = kind_of_view(tree, part)
        numbers = kind(sight, tree, part).report()
        lead = np.broadcast_shapes(acting.shape[:-1], *(np.shape(x) for x in numbers))
        rows = np.stack([np.broadcast_to(np.asarray(x, dtype=float), lead) for x in numbers], axis=-1)
        out[drive.name] = _named(rows, kind.has, {})
    return out
