"""What a run needs of contacts: a method that knows rigid ones, shapes that do not overlap when it begins, and steps
that do not pass over a contact."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, StateError
from bellcrank.loops.loop_paths import common_ancestor
from bellcrank.mechanism.contact.contact_material import Unyielding
from bellcrank.mechanism.contact.narrow_phase import bounds_of, smallest_extent
from bellcrank.mechanism.geometry.solids import Capsule, Cone, Cylinder, HeightField, Plane, Sphere
from bellcrank.mechanism.joints import Joint, Revolute
from bellcrank.mechanism.machine_sizes import turns
from bellcrank.spatial import Vector
from bellcrank.system.contact_states import contact_states
from bellcrank.system.force_elements import machine_view, with_values
from bellcrank.topology.contact_pairs import ContactPair

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["check_contacts", "check_overlaps", "contact_strides"]

Ints = npt.NDArray[np.int64]

#: share of the smaller shape by which shapes may overlap at the start of a run: rigid ones, and compliant ones
RIGID, SOFT = 1e-3, 0.25
#: the part of the smaller shape by which two may come nearer in one step
STRIDE = 0.5


def check_contacts(system: Machine, stepper: str, y: Floats, t: float, *, goes_on: bool) -> None:
    """Refuse rigid contacts without the method for them, and shapes that overlap, with names and depths; not of what
    `goes_on` where another run has left it."""
    tree = system.model.tree
    if tree.contacts and stepper != "moreau":
        raise ModelError(f"simulate: contact {tree.contacts[0].name!r} is rigid (it has no stiffness), which needs "
                         f"stepper='moreau', not {stepper!r}")
    for pair in _pairs(system):
        _check_material(pair.name, with_values(system.plans, pair.material))
    if not goes_on:
        check_overlaps(system, y[:, :system.nq], t, "simulate",
                       "give the result of a run in place of its last state to go on from there")


def check_overlaps(system: Machine, q: Floats, t: float, what: str, instead: str, states: Ints | None = None) -> None:
    """Refuse shapes that overlap, with names, depths and the number of the deepest state: of all, or of `states`."""
    deep = _too_deep(system, q, t)
    if deep:
        deepest = sorted(deep, key=lambda one: -one[0])[:6]
        numbers = np.arange(len(q)) if states is None else states
        where = [f" in state {numbers[i]}" if states is not None or len(q) > 1 else "" for _, _, i in deepest]
        named = ", ".join(f"{pair.name!r} by {depth:.3g} m{_shapes(pair)}{place}"
                          for (depth, pair, _), place in zip(deepest, where, strict=True))
        more = f" and {len(deep) - 6} more" if len(deep) > 6 else ""
        raise StateError(f"{what}: shapes of contacts overlap at the start: {named}{more}; begin with the bodies "
                         f"apart, leave out contacts that are not meant (add_contacts(..., exclude=...)), or {instead}")


def _check_material(name: str, material: Any) -> None:
    """Refuse what parameters must not be."""
    for label, above in (("stiffness", True), ("slip_speed", True), ("dissipation", False), ("friction", False),
                         ("restitution", False)):
        values = np.asarray(getattr(material, label, 1.0), dtype=float)
        if not (values > 0.0 if above else values >= 0.0).all():
            raise ModelError(f"simulate: {label} of contact {name!r} is {values.min():g} by the values of parameters; "
                             f"it must be {'positive' if above else 'zero or more'}: see with_parameters")


def _shapes(pair: ContactPair) -> str:
    """The names of its shapes, unless it is called after them."""
    known = all(name in pair.name for name in pair.shape_names)
    return "" if known else f" ({' and '.join(map(repr, pair.shape_names))})"


def _pairs(system: Machine) -> list[ContactPair]:
    """All contacts, compliant ones first."""
    tree = system.model.tree
    return [p for p in (*tree.pairs, *tree.contacts) if isinstance(p, ContactPair)]


def _too_deep(system: Machine, q: Floats, t: float) -> list[tuple[float, ContactPair, int]]:
    """Depths of contacts whose shapes overlap by more than they may in any of the states, and in which most."""
    pairs, deep = _pairs(system), []
    for pair, depths in zip(pairs, _depths(system, q, t).T if pairs else (), strict=True):
        size = min(smallest_extent(pair.first_shape), smallest_extent(pair.second_shape))
        if depths.max() > (RIGID if isinstance(pair.material, Unyielding) else SOFT) * size:
            deep.append((float(depths.max()), pair, int(depths.argmax())))
    return deep


def _depths(system: Machine, q: Floats, t: float) -> Floats:
    """The largest depth of every contact [m], compliant ones first, (states, contacts)."""
    kernels, name = system.kernels, "contact_depths"
    earlier = next(kernels.kept("contact checks", count))  # for one run alone it is not worth compiling
    if earlier and kernels.covers(name) and not kernels.springs_outside and kernels.compiled(name) is not None:
        return np.asarray(kernels.run(name, {"q": q}, None, t).reshape(len(q), -1))
    found = contact_states(system.plans, q, np.zeros(system.nu), t=t)
    return np.stack([one.depth.max(axis=-1) for one in found.values()], axis=-1)


def contact_strides(system: Machine, q: Floats, t: float) -> Floats:
    """Rows over the state: times the sizes of its rates, they are at most one over the time in which the shapes of a
    compliant contact come nearer by half the smaller one. In a longer step they could pass each other without ever
    being seen to touch. A row for every pair of shapes that end somewhere, and for height fields, whose hills end where
    those of their grid do; lengths are those of the states q."""
    tree = system.model.tree
    pairs = [with_values(system.plans, p) for p in tree.pairs if isinstance(p, ContactPair)]
    rows: list[Floats] = []
    if not pairs:
        return np.zeros((0, tree.nq + tree.nu))
    view = machine_view(system.plans, q, np.zeros(tree.nu), t)
    for pair in pairs:
        size = min(_grain(pair.first_shape), _grain(pair.second_shape))
        if any(isinstance(shape, Plane) for shape in (pair.first_shape, pair.second_shape)):
            continue
        row, above = np.zeros(tree.nq + tree.nu), common_ancestor(tree.parent.tolist(), pair.first, pair.second)
        for link, axes, shift, shape in ((pair.first, pair.first_axes, pair.first_shift, pair.first_shape),
                                         (pair.second, pair.second_axes, pair.second_shift, pair.second_shape)):
            arm = _length(Vector(*shift)) + _radius(shape)
            own = _length(Vector(shift[0], shift[1], 0.0)) + _swept(shape, np.array(axes, dtype=float).T)
            while link != above:
                joint, start, parent = tree.joints[link], int(tree.q_start[link]), int(tree.parent[link])
                if joint is not None:
                    alone = isinstance(joint, Revolute) and link in (pair.first, pair.second)
                    row[start:start + joint.nq] += _reach(joint, own if alone else arm)
                arm += _length(view.moving(link).origin - view.moving(parent).origin)
                link = parent
        rows.append(row / (STRIDE * size))
    return np.array(rows).reshape(-1, tree.nq + tree.nu)


def _grain(shape: Any) -> float:
    """What a shape cannot be passed by without being seen [m]: its smallest extent, of ground two points of its
    grid."""
    if isinstance(shape, HeightField):
        return 2.0 * float(min(np.diff(shape.x).min(), np.diff(shape.y).min()))
    return smallest_extent(shape)


def _reach(joint: Joint, arm: float) -> list[float]:
    """How fast a point an arm's length away moves at most by the rate of each coordinate of a joint."""
    each = [arm if turn else 1.0 for turn in turns(joint)]
    # the rates of a quaternion are half the angular velocity
    return [2.0 * arm] * 4 + each[3:] if joint.nq > joint.nu else each


def _length(v: Vector) -> float:
    """That of a vector, the longest of several states."""
    return float(np.sqrt(np.max(np.asarray(v.dot(v), dtype=float))))


def _radius(shape: Any) -> float:
    """How far a shape goes from its origin as it turns [m]: a sphere does not."""
    if isinstance(shape, (Sphere, HeightField)):
        return 0.0
    return float(np.linalg.norm(np.max(np.abs(bounds_of(shape)), axis=0)))


def _swept(shape: Any, turn: Floats) -> float:
    """The same about z of the link alone, which its hinge turns about: a wheel does not move as it spins."""
    if isinstance(shape, (Capsule, Cone, Cylinder)):
        return _radius(shape) * float(np.hypot(turn[0, 2], turn[1, 2]))
    return _radius(shape)
