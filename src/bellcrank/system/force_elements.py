"""Force elements on arrays: what they store, what they lose, what they exert on bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, Forces, absent, check_time, flat
from bellcrank.errors import SingularError, StateError
from bellcrank.lowering.element_loads import element_loads, joint_load
from bellcrank.lowering.machine_view import MachineView
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.forces.element import Moving, bound
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force, General, Identity, Matrix3, Transform, Vector
from bellcrank.topology.pairs import PointPair, SumForce
from bellcrank.topology.tree import wrench_order

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans
    from bellcrank.topology.tree import Tree

__all__ = ["actuator_forces", "binder", "dissipated_power", "element_wrenches", "explain_meeting", "law_wrench",
           "link_motions", "machine_view", "stored_energy", "with_values", "wrenches_on_bodies"]


def stored_energy(plans: LoopPlans, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
    """Energy stored in springs, bushings and stops [J], shape (...). Cost: O(n + elements)."""
    check_time(t)
    quick = _compiled(plans, "stored_energy", {"q": q}, t)
    if quick is not None:
        return quick[..., 0]
    total: Number = 0.0
    place = _coordinates(plans, q)
    for x, _, along in _along_joints(plans, place, np.zeros(plans.tree.nu), t):
        total = total + along.energy(x)
    for deformation, e, _ in _deformations(plans, place, np.zeros(plans.tree.nu), t):
        total = total + deformation.coupling_energy(e)
    pairs = [pair for pair in plans.tree.pairs if not isinstance(pair, SumForce)]
    if pairs:
        moving = link_motions(plans, place, None, t)
        for pair in pairs:
            own = with_values(plans, pair)
            total = total + own.energy(moving(pair.first), moving(pair.second))
    return _sized(total, place.shape[:-1])


def dissipated_power(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
    """Power [W] that force elements take from the machine and do not store, shape (...): dampers, friction, drag.

    Laws given as functions count with all their power, since what they store is not known. Drag in wind can be
    negative: the wind does work.
    """
    check_time(t)
    quick = _compiled(plans, "dissipated_power", {"q": q, "u": u}, t)
    if quick is not None:
        _refuse_meeting(plans, quick, q, t)
        return quick[..., 0]
    total: Number = 0.0
    place, speeds = _coordinates(plans, q), flat("u", u, plans.tree.nu, "one for every speed")
    for x, rate, along in _along_joints(plans, place, speeds, t):
        total = total + along.loss(x, rate)
    for deformation, _, rates in _deformations(plans, place, speeds, t):
        total = total + deformation.coupling_loss(rates)
    pairs = [pair for pair in plans.tree.pairs if not isinstance(pair, SumForce)]
    if pairs:
        sight = machine_view(plans, place, speeds, t)
        moving, around = sight.moving, sight.around
        for pair in pairs:
            own = with_values(plans, pair)
            with np.errstate(all="ignore"):
                total = total + own.loss(moving(pair.first), moving(pair.second), around)
        _refuse_meeting(plans, total, place, t)
    return _sized(total, np.broadcast_shapes(place.shape[:-1], speeds.shape[:-1]))


def actuator_forces(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces, *, t: npt.ArrayLike = 0.0
                    ) -> Floats:
    """The joint forces tau within the limits of actuators, shape (..., nu): what acts when tau is asked for."""
    check_time(t)
    given = flat("tau", plans.configuration.forces(tau), plans.tree.nu, "one for every speed")
    if not plans.tree.actuators:
        return given.copy()
    return plans.kernels.run("drives", {"q": q, "u": u, "tau": given}, None, t)


def element_wrenches(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = 0.0,
                     pairs: tuple[Any, ...] | None = None, tau: npt.ArrayLike | None = None) -> Floats:
    """What elements between bodies (springs, bushings, drag), and forces along sums of coordinates and loop joints, all
    or some of them, exert on all bodies: (..., bodies, 6), [moment; force] in world axes about each body's origin. Of
    bodies that are welded together the first one feels what acts on any of them. `tau`: given forces, if those along
    loop joints are elements."""
    tree = plans.tree
    given = {"q": q, "u": u} if tau is None else {"q": q, "u": u, "tau": tau}
    quick = None if pairs is not None else _compiled(plans, "pair_wrenches", given, t)
    if quick is not None:
        _refuse_meeting(plans, quick, q, t)
        return _by_body(tree, quick)
    pairs = tree.pairs if pairs is None else pairs
    turn, origin = plans.loops.poses(q, t)
    sight = machine_view(plans, q, u, t, tau)
    moving, around = sight.moving, sight.around
    found: list[tuple[int, Floats]] = []  # about the links' origins
    with np.errstate(all="ignore"):
        for pair in pairs:
            found += [(link, _stacked(wrench))
                      for link, wrench in element_loads(tree, pair, moving, binder(plans), around)]
    total = _on_bodies(plans, found, turn, np.broadcast_shapes(origin.shape[:-2], np.shape(u)[:-1]))
    _refuse_meeting(plans, total, q, t)
    return total


def _refuse_meeting(plans: LoopPlans, result: Number, q: npt.ArrayLike, t: npt.ArrayLike, where: str = "") -> None:
    """Say which spring has no direction or no force, if that is why a result is not finite."""
    if np.isfinite(result).all() or not all(np.isfinite(np.asarray(x, dtype=float)).all() for x in (q, t)):
        return
    moving = link_motions(plans, q, None, t)
    for pair in plans.tree.pairs:
        if not isinstance(pair, PointPair):
            continue
        own = with_values(plans, pair)
        with np.errstate(all="ignore"):
            pulls = np.asarray(own.along.pull_at_zero(), dtype=float) != 0.0
            length = np.asarray(own.length(moving(pair.first), moving(pair.second)))
        if (pulls & (length == 0.0)).any():
            raise SingularError(f"{pair.meeting()}{where}")
        why = own.along.undefined(length)
        if why:
            raise SingularError(f"spring {pair.name!r}{where}: {why}")


def explain_meeting(plans: LoopPlans, given: Mapping[str, Floats], where: str) -> None:
    """The same of one state that gave no finite result, with the inputs it had."""
    if "q" not in given or not any(isinstance(pair, PointPair) for pair in plans.tree.pairs):
        return
    values = dict(zip(plans.model.values, given.get("parameters", ()), strict=False))
    if values:
        plans = type(plans)(plans.kernels.for_model(plans.model.with_values(values)))
    _refuse_meeting(plans, np.nan, given["q"], float(given["t"][0]) if "t" in given else 0.0, where)


def wrenches_on_bodies(plans: LoopPlans, tree: Tree, given: Mapping[str, npt.ArrayLike], t: npt.ArrayLike) -> Floats:
    """What elements of another tree of the machine exert on bodies, by the formulations' own text: see
    `element_wrenches`."""
    return _by_body(tree, plans.kernels.by_formulation("pair_wrenches", given, t, tree))


def _by_body(tree: Tree, found: Floats) -> Floats:
    """Wrenches (..., bodies, 6) in the order of bodies, from that in which links read them."""
    out = np.empty((*found.shape[:-1], len(tree.body_names) - 1, 6))
    out[..., wrench_order(tree), :] = found.reshape(out.shape)
    return out


def _compiled(plans: LoopPlans, name: str, given: Mapping[str, npt.ArrayLike], t: npt.ArrayLike) -> Floats | None:
    """A function of all elements by compiled code, also where it is not finite; None for machines that have none or are
    too large for it, and where code is not asked for."""
    kernels, some = plans.kernels, plans.tree.pairs or plans.tree.joint_forces
    run = kernels.compiled(name, kernels.with_springs) if some and kernels.covers(name) else None
    if run is None:
        return None
    quick = None if kernels.springs_outside else kernels.quickly(name, given, t)
    if quick is not None:
        return quick
    found = kernels.evaluate(name, given, None, t, run)
    if not found.finite:
        kernels.check_inputs(found)
    return found.result


def _on_bodies(plans: LoopPlans, found: Sequence[tuple[int, Floats]], turn: Floats, lead: tuple[int, ...]) -> Floats:
    """Wrenches about links' origins as wrenches about the origins of their first bodies."""
    lead = np.broadcast_shapes(lead, *(load.shape[:-1] for _, load in found))
    out = np.zeros((*lead, len(plans.tree.body_names) - 1, 6))
    for link, wrench in found:
        body = plans.tree.members[link][0] if link else 0
        if body:
            # the body's origin from the link's
            shift = (turn[..., link, :, :] @ plans.model.body_shift(body)[..., None])[..., 0]
            out[..., body - 1, :3] += wrench[..., :3] - np.cross(shift, wrench[..., 3:])
            out[..., body - 1, 3:] += wrench[..., 3:]
    return out


def law_wrench(plans: LoopPlans, joint: str, given: Mapping[str, npt.ArrayLike], t: npt.ArrayLike) -> Floats:
    """What elements exert along a loop joint's coordinates on its child, about the joint's point there."""
    sight, link = machine_view(plans, given["q"], given["u"], t, given["tau"]), plans.tree.joint_links.get(joint)
    return np.zeros(6) if link is None else _stacked(joint_load(plans.tree, link, sight.moving, sight.around))


def _coordinates(plans: LoopPlans, q: npt.ArrayLike) -> Floats:
    place = flat("q", q, plans.tree.nq, "the coordinates")
    bad = ~np.isfinite(place) & ~(absent(place) & plans.tree.looped)[..., None]
    if bad.any():
        raise StateError(f"q[{int(np.argwhere(bad)[0, -1])}] is {place[bad][0]}; inputs must be finite")
    return place


def with_values(plans: LoopPlans, value: Any) -> Any:
    """An element with the current values of its parameters."""
    return bound(value, lambda name: np.asarray(plans.model.values[name], dtype=float))


def binder(plans: LoopPlans) -> Callable[[Any], Any]:
    """The same as a function of elements, or of other things with parameters."""
    return lambda value: with_values(plans, value)


def _along_joints(plans: LoopPlans, q: Floats, u: Floats, t: npt.ArrayLike) -> list[tuple[Number, Number, Any]]:
    """Coordinate, rate and element for every force along a coordinate or a sum of some, as it is at the time."""
    out: list[tuple[Number, Number, Any]] = []
    sight = machine_view(plans, q, u, t) if plans.tree.sees_machine else None
    for link, forces in plans.tree.joint_forces.items():
        for i, along in forces:
            out.append((*plans.loops.coordinate(link, i, q, u, t), with_values(plans, along).at(_times(t)).seen(sight)))
    for pair in plans.tree.pairs:
        if isinstance(pair, SumForce):
            seen = sight or machine_view(plans, q, u, t)
            out.append((*seen.total(pair), with_values(plans, pair.along).at(_times(t)).seen(seen)))
    return out


def _deformations(plans: LoopPlans, q: Floats, u: Floats, t: npt.ArrayLike
                  ) -> list[tuple[Modal, list[Number], list[Number]]]:
    """Flexible bodies with their modal coordinates and speeds."""
    out = []
    for link in plans.tree.flexible:
        joint = plans.tree.joints[link]
        assert isinstance(joint, Modal)
        both = [plans.loops.coordinate(link, i, q, u, t) for i in range(joint.nu)]
        out.append((joint, [x for x, _ in both], [rate for _, rate in both]))
    return out


def link_motions(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike | None, t: npt.ArrayLike) -> Any:
    """Motion of links in the world, by link; at rest without speeds."""
    turn, origin = plans.loops.poses(q, t)
    velocity = None if u is None else plans.loops.motions("velocities", {"q": q, "u": u}, t)

    def vector(array: Floats) -> Vector:
        return Vector(*(array[..., i] for i in range(3)))

    def moving(link: int) -> Moving:
        axes = General(Matrix3(*(vector(turn[..., link, i, :]) for i in range(3))))
        rates = (Vector.zero(), Vector.zero()) if velocity is None else (
            vector(velocity[..., link, :3]), vector(velocity[..., link, 3:]))
        return Moving(axes, vector(origin[..., link, :]), *rates)

    return moving


def machine_view(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike | None, t: npt.ArrayLike,
                 tau: npt.ArrayLike | None = None, kind: type[MachineView] = MachineView) -> MachineView:
    """The machine on arrays, as laws see it; `tau` are the joint forces that are given."""
    def read(which: int) -> Callable[[int, int], Number]:
        return lambda link, i: plans.loops.read(link, q, u, t)[which][i]

    def given(link: int, i: int) -> Number:
        return np.asarray(tau, dtype=float)[..., int(plans.tree.extended.u_start[link]) + i]

    return kind(plans.tree, read(0), read(1), link_motions(plans, q, u, t), binder(plans), _times(t),
                Transform(Identity(), Vector.zero()), None if tau is None else given)


def _sized(total: Number, lead: tuple[int, ...]) -> Floats:
    """A result with all batch axes, also where nothing depends on the state."""
    return np.array(np.broadcast_to(total, np.broadcast_shapes(np.shape(total), lead)), dtype=float)


def _times(t: npt.ArrayLike) -> Floats:
    return np.asarray(t, dtype=float)


def _stacked(wrench: Force) -> Floats:
    """A wrench as an array (..., 6)."""
    return np.stack(np.broadcast_arrays(*wrench.moment, *wrench.force), axis=-1).astype(float)
