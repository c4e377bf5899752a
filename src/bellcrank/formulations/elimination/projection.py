"""Back onto the loops: how far joints must move, and speeds change, so that the constraints hold again.

Section 7 of docs/explain/elimination.md. After a step of integration the constraints hold but for the integration's
error. Independent speeds keep their values; each group solves its own constraints for its dependent ones, going
outwards, so that what groups further in have corrected is known: (25) with the constraints' values (displacements,
one Newton step), (26) with their rates (changes of speed, exact), by the pivots of `elimination` and with the same
watch over them. Displacements are speeds times unit time, which suits quaternions.

| docs/explain/elimination.md | here |
|---|---|
| delta (25), (26) | ``change``; of carried speeds it comes from the parent |
| phi, phidot | ``ConstraintEquation.value``, ``rate`` |
| J, sigma (19), (20) | ``rows``, ``_SHRUNK`` |

Deviations: none. Cost: O(n + m) for bounded group size.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.formulations.elimination import pivoted
from bellcrank.formulations.elimination.group_rows import group_constraints
from bellcrank.lowering.group import GroupView
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import Motion

#: sigma of (20): corrections divide errors of integration by the pivots; those of a plan may shrink to this part
_SHRUNK = 0.1

__all__ = ["coordinate_rates", "corrections", "dependent_accelerations", "dependent_speeds", "displaced",
           "displacements", "sped", "speed_changes"]


def displacements(groups: Sweeps) -> Field:
    """Joint displacements that close the loops to first order, one per speed."""
    return groups.outward(outward_displacements, root=(0.0,) * groups.world.widths[1])


def speed_changes(groups: Sweeps) -> Field:
    """Changes of the dependent speeds that make the constraints' rates vanish."""
    return groups.outward(outward_speed_changes, root=(0.0,) * groups.world.widths[1])


def corrections(groups: Sweeps) -> Field:
    """Displacements and, after them, changes of speed: both by the same rows and pivots."""
    return groups.outward(outward_corrections, root=((0.0,) * groups.world.widths[1],) * 2)


def dependent_speeds(groups: Sweeps) -> Field:
    """All speeds from the independent ones of u, which alone are read: those at which the constraints' rates vanish."""
    return groups.outward(outward_speeds, root=(0.0,) * groups.world.widths[1])


def dependent_accelerations(groups: Sweeps) -> Field:
    """All accelerations from the independent ones of udot, which alone are read: those that the constraints demand."""
    return groups.outward(outward_dependent_accelerations, root=(0.0,) * groups.world.widths[1])


def outward_displacements(group: GroupView, flat: Sequence[Number]) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    constraints = group_constraints(group)
    return _correct(group, flat, [dict(c.factors) for c in constraints], [-c.value for c in constraints])  # (25)


def outward_speed_changes(group: GroupView, flat: Sequence[Number]) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    constraints = group_constraints(group)
    return _correct(group, flat, [dict(c.factors) for c in constraints], [-c.rate for c in constraints])  # (26)


def outward_corrections(group: GroupView, flat: tuple[Sequence[Number], Sequence[Number]]
                        ) -> tuple[tuple[tuple[Number, ...], ...], tuple[Number, ...]]:
    (moved, displaced), (sped, changed) = (step(group, part) for step, part in zip(
        (outward_displacements, outward_speed_changes), flat, strict=True))
    return (moved, sped), (*displaced, *changed)


def _correct(group: GroupView, flat: Sequence[Number], rows: list[dict[int, Number]], right: list[Number]
             ) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    shape = group.shape
    _, change = group.from_parent(flat)
    change |= dict.fromkeys((*shape.independent, *shape.early), 0.0)  # (25), (26): E keeps its values
    inverses = pivoted(shape, rows, right, _SHRUNK)  # (19), (20)
    for i in reversed(range(len(rows))):
        total = right[i]
        for w, x in rows[i].items():
            if w != shape.dependent[i]:
                total = total - x * change[w]  # (25), (26)
        change[shape.dependent[i]] = total * inverses[i]  # (25), (26)
    number = {pair: v for v, pair in enumerate(shape.speeds)}
    kept = [change[number[k, c]] if (k, c) in number else 0.0
            for k, link in enumerate(group.links) if shape.own[k] for c in range(link.joint.nu)]
    still = Motion.zero()
    return group.answer(still, [still] * len(group.links), change), tuple(kept)


def outward_speeds(group: GroupView, flat: Sequence[Number]) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    shape = group.shape
    _, speeds = group.from_parent(flat)  # those carried, as they are
    for v, (k, c) in enumerate(shape.speeds):
        if v not in speeds and k >= 0:
            speeds[v] = 0.0 if v in shape.dependent else group.links[k].u[c]
    constraints = group_constraints(group.at_speeds(speeds))
    rows, right = [dict(c.factors) for c in constraints], [-c.rate for c in constraints]  # (26) with D at rest
    inverses = pivoted(shape, rows, right)  # (19), (20)
    for i in reversed(range(len(rows))):
        v = shape.dependent[i]
        total = right[i]
        for w, x in rows[i].items():
            if w != v and w in shape.dependent:
                total = total - x * speeds[w]  # (26)
        speeds[v] = total * inverses[i]  # (26)
    number = {pair: v for v, pair in enumerate(shape.speeds)}
    kept = [speeds[number[k, c]] if (k, c) in number else x
            for k, link in enumerate(group.links) if shape.own[k] for c, x in enumerate(link.u)]
    still = Motion.zero()
    return group.answer(still, [still] * len(group.links), speeds), tuple(kept)


def outward_dependent_accelerations(group: GroupView, flat: Sequence[Number]
                                    ) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    shape = group.shape
    _, rates = group.from_parent(flat)  # those carried, as they are
    for v, (k, c) in enumerate(shape.speeds):
        if v not in rates and v not in shape.dependent and k >= 0:
            rates[v] = group.links[k].udot[c]
    constraints = group_constraints(group)
    rows, right = [dict(c.factors) for c in constraints], [c.gamma for c in constraints]  # (2)
    inverses = pivoted(shape, rows, right)  # (19), (20)
    for i in reversed(range(len(rows))):
        total = right[i]
        for w, x in rows[i].items():
            if w != shape.dependent[i]:
                total = total - x * rates[w]
        rates[shape.dependent[i]] = total * inverses[i]  # (21)
    number = {pair: v for v, pair in enumerate(shape.speeds)}
    kept = [rates[number[k, c]] if (k, c) in number else x
            for k, link in enumerate(group.links) if shape.own[k] for c, x in enumerate(link.udot)]
    still = Motion.zero()
    return group.answer(still, [still] * len(group.links), rates), tuple(kept)


# -- joint by joint ------------------------------------------------------------------------------------------------
def coordinate_rates(tree: Sweeps) -> Field:
    """Rates of the coordinates q for speeds u."""
    return tree.outward(_rates, root=())


def _rates(link: Link, nothing: tuple[()]) -> tuple[tuple[()], tuple[Number, ...]]:
    return (), tuple(link.joint.rates(link.q, link.u))


def displaced(tree: Sweeps) -> Field:
    """q moved by small displacements dq, unit quaternions; prescribed coordinates as their laws say."""
    return tree.outward(_moved, root=())


def _moved(link: Link, nothing: tuple[()]) -> tuple[tuple[()], tuple[Number, ...]]:
    joint = link.joint
    step = joint.rates(link.q, [0.0 if driven else x for x, driven in zip(link.change("dq"), link.mask, strict=True)])
    return (), tuple(joint.normalized([a + b for a, b in zip(link.q, step, strict=True)]))


def sped(tree: Sweeps) -> Field:
    """u changed by du; prescribed speeds as their laws say."""
    return tree.outward(_sped, root=())


def _sped(link: Link, nothing: tuple[()]) -> tuple[tuple[()], tuple[Number, ...]]:
    return (), tuple(u if driven else u + x
                     for u, x, driven in zip(link.u, link.change("du"), link.mask, strict=True))
