"""Steps to closed positions and speeds as compiled code: what `assemble` and `project` do near a closed state.

Constraints c(q) with Jacobian J, changes d of all coordinates in radians and metres, S = diag(scale), zero where a
coordinate is held. Open constraints and moves of joints are reported as shares of the machine's size
(`loops.constraint_sizes`). The step to the closed position nearest to where the machine has moved from by p solves
min |S^-1 (p + d)| with J d = -c, J and c without constraints on speeds alone:

    d = n + s,   n = -S^2 J^T (J S^2 J^T)^-1 c,   s = -p + S^2 J^T (J S^2 J^T)^-1 J p                     (1)

n is Newton's smallest step, s leads back to the guess along the loops. All constraints take part, redundant ones, too:
pivots of J S^2 J^T get a small part of their diagonal added, which leaves the step of what is not redundant unchanged
to that part, and repeating the step does away with it. Whoever calls looks at what is left open: near singular
positions it is not small.

Cost: O(n + m w^2 + m^3) for m constraints of w speeds each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.formulations.common.shares import largest_share
from bellcrank.formulations.common.small_systems import solve_positive
from bellcrank.loops.constraint_sizes import row_sizes
from bellcrank.loops.tolerances import EXACT, ROUNDING, TINY, TURNED
from bellcrank.lowering.looped import LoopedDirect, loop_matrix, require_direct
from bellcrank.scalar.functions import maximum, select_less
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Sweeps
from bellcrank.spatial import Vector
from bellcrank.topology.tree import Closure

__all__ = ["nearest_step", "projected"]

#: parts of its diagonal, and of all diagonals together, that are added to a pivot
_SOFT, _SOFT_ALL = 1e-11, 1e-13
#: keeps the pivots of constraints on nothing but held coordinates from being zero
_NONE = 1e-200


def nearest_step(tree: Sweeps) -> tuple[Number, ...]:
    """Equation (1) for the inputs q, dq (p) and scale: n (nu), s (nu), the largest of what is open, of n, s and p, and
    how far axes of closing joints are from where they belong."""
    machine = require_direct(tree)
    rows = _conditions(machine)
    moved, scale = machine.given("dq"), machine.given("scale")
    solve = _Solver(rows.on_positions, scale, rows.sizes)
    lengths = machine.tree.speed_sizes.tolist()
    newton = solve.smallest([-c for c in rows.values])
    along = [d - p for d, p in zip(solve.smallest(_times(rows.on_positions, moved)), moved, strict=True)]
    return (*newton, *along, largest_share(rows.values, rows.sizes),
            *(largest_share(x, lengths) for x in (newton, along, moved)), _misaligned(machine))


def projected(tree: Sweeps) -> tuple[Number, ...]:
    """q and u made consistent, and two numbers that are at most one if that succeeded.

    Two Newton steps in position and two in speed, all with the Jacobian of the first position as the inverse, the
    speeds with the rows of the second. The first number: what is open by `ROUNDING`, or may be, since the second step
    in position was so long; calling again mends that. The other: how far a joint moved, by `TINY`, and axes that point
    the wrong way. Coordinates and speeds of loop joints follow from those of the links.
    """
    machine = require_direct(tree)
    first = machine.again({"q": machine.normalized()})
    rows = _conditions(first)
    sizes = machine.tree.speed_sizes.tolist()
    scale = [size * x for size, x in zip(sizes, first.movable(), strict=True)]
    whole = _Solver(rows.factors, scale, rows.sizes)
    solve = whole if rows.on_positions is rows.factors else _Solver(rows.on_positions, scale, rows.sizes)
    step = _with_loop_joints(first, _unless_closed(rows, solve))
    second = first.again({"q": first.displaced(step)})
    rows = _conditions(second)
    last = _with_loop_joints(second, _unless_closed(rows, solve))
    q, u = second.displaced(last), second.speeds()
    open_ = [c + x for c, x in zip(rows.values, _times(rows.on_positions, last), strict=True)]
    rates = rows.rates(u)
    for _ in range(2):
        change = whole.smallest([-r for r in rates])
        u = [a + b for a, b in zip(u, change, strict=True)]
        rates = [r + x for r, x in zip(rates, _times(rows.factors, change), strict=True)]
    u = second.with_loop_joints("speeds", u)
    left = maximum(maximum(largest_share(open_, rows.sizes), largest_share(last, sizes)),
                   largest_share(rates, rows.sizes) / (1.0 + largest_share(u, sizes)))
    far = maximum(largest_share(step, sizes) * (1.0 / TINY), _misaligned(second) * (1.0 / TURNED))
    for turned in first.loop_joints_turned():  # small displacements do not tell half a turn from none
        far = maximum(far, turned)
    return (*q, *u, left * (1.0 / ROUNDING), far)


def _unless_closed(rows: _Conditions, solve: _Solver) -> list[Number]:
    """Newton's step, none where nothing but rounding is open."""
    size = largest_share(rows.values, rows.sizes)
    return [select_less(size, EXACT, 0.0, x) for x in solve.smallest([-c for c in rows.values])]


def _with_loop_joints(machine: LoopedDirect, step: list[Number]) -> list[Number]:
    """Changes of the speeds of links with those of loop joints, none of which is moved by mere rounding."""
    own = [v for joint in machine.tree.loop_joints for v in range(machine.tree.nu)[joint.u]]
    moved = machine.with_loop_joints("displacements", list(step))
    size = largest_share([moved[v] for v in own], machine.tree.speed_sizes[own].tolist())
    for v in own:
        moved[v] = select_less(size, EXACT, 0.0, moved[v])
    return moved


@dataclass(frozen=True)
class _Conditions:
    """All constraints: values, rows of the Jacobian as {speed: entry}, free speeds and prescribed ones, and the partial
    rates by time."""

    values: Sequence[Number]
    factors: list[dict[int, Number]]
    driven: list[dict[int, Number]]
    partial: Sequence[Number]
    on_positions: list[dict[int, Number]]  #: the factors, empty for constraints on speeds alone
    sizes: list[float]  #: what each is measured by

    def rates(self, u: Sequence[Number]) -> list[Number]:
        """Rates of the values at all speeds."""
        return [sum((x * u[v] for v, x in {**row, **more}.items()), partial)
                for row, more, partial in zip(self.factors, self.driven, self.partial, strict=True)]


def _times(factors: list[dict[int, Number]], change: Sequence[Number]) -> list[Number]:
    """J times changes of the free speeds."""
    return [sum((x * change[v] for v, x in row.items()), 0.0) for row in factors]


def _conditions(machine: LoopedDirect) -> _Conditions:
    both, places = loop_matrix(machine), machine.places
    m = len(both) - len(places)
    free: list[dict[int, Number]] = [{} for _ in range(m)]
    driven: list[dict[int, Number]] = [{} for _ in range(m)]
    fixed = machine.tree.prescribed_speeds()
    for (row, speed), x in zip(places, both[m:], strict=True):
        part = driven[row] if fixed[speed] else free[row]
        part[speed] = part.get(speed, 0.0) + x
    kept = machine.tree.on_positions()
    on_positions = free if all(kept) else [row if own else {} for row, own in zip(free, kept, strict=True)]
    values, partial, sizes = list(both[:m]), machine.partial_rates(), row_sizes(machine.tree).tolist()
    for row in machine.tree.dropped[::-1]:
        for each in (values, free, driven, partial, sizes, *([] if on_positions is free else [on_positions])):
            del each[row]
    return _Conditions(values, free, driven, partial, on_positions, sizes)


class _Solver:
    """Smallest changes that J makes given numbers of: S^2 J^T (J S^2 J^T)^-1 b."""

    def __init__(self, factors: list[dict[int, Number]], scale: Sequence[Number], sizes: Sequence[float]) -> None:
        self.factors, self.squares = factors, [s * s for s in scale]
        self.matrix = [[self._product(a, b) for b in factors[:i + 1]] for i, a in enumerate(factors)]
        self.floors = self._floors(sizes)

    def _floors(self, sizes: Sequence[float]) -> list[Number]:
        """The part of all diagonals, each by the square of its row's size, in units of every row."""
        total: Number = 0.0
        for size in dict.fromkeys(sizes):
            own = sum((row[-1] for row, x in zip(self.matrix, sizes, strict=True) if x == size), 0.0)
            total = total + (own if size == 1.0 else own * (1.0 / (size * size)))
        return [total * (size * size * _SOFT_ALL) + _NONE for size in sizes]

    def _product(self, a: dict[int, Number], b: dict[int, Number]) -> Number:
        return sum((a[v] * self.squares[v] * b[v] for v in a if v in b), 0.0)

    def smallest(self, right: Sequence[Number]) -> list[Number]:
        floor = iter(self.floors)
        x = solve_positive(self.matrix, right,
                           lambda pivot, diagonal: 1.0 / (pivot + (diagonal * _SOFT + next(floor))))
        out: list[Number] = [0.0] * len(self.squares)
        for row, load in zip(self.factors, x, strict=True):
            for v, entry in row.items():
                out[v] = out[v] + entry * load
        return [s * y for s, y in zip(self.squares, out, strict=True)]


def _misaligned(machine: LoopedDirect) -> Number:
    """Sum of squares of what separates the axes of closing joints from where their coordinates put them: constraints on
    angles between axes cannot tell an axis from its opposite."""
    total: Number = 0.0
    for c in machine.tree.closures:
        if c.is_joint and _constrains_turns(c):
            total = total + _off(machine, c)
    return total


def _constrains_turns(c: Closure) -> bool:
    """Whether a closing joint leaves fewer than three turns free."""
    columns = c.kind.subspace([float(x) for x in c.kind.neutral()], c.kind.constants())
    return sum(1 for column in columns if not _zero(column.angular)) < 3


def _zero(v: Vector) -> bool:
    return all(type(x) is float and x == 0.0 for x in v)


def _off(machine: LoopedDirect, c: Closure) -> Number:
    first, second = machine.sides(c)
    constants = machine.bind(tuple(c.kind.constants()))
    coordinates = c.kind.loop_coordinates(first, second, constants) if c.kind.nq else ()
    axes = [Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0)]
    for t in reversed(c.kind.transforms(list(coordinates), constants)):
        axes = [t.rotation.apply(v) for v in axes]
    total: Number = 0.0
    for v, own in zip(axes, (second.x, second.y, second.z), strict=True):
        gap = first.x * v.x + first.y * v.y + first.z * v.z - own
        total = total + gap.dot(gap)
    return total
