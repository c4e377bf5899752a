"""Closed chains by the spatial operator algebra: steps (A)-(F), without forming any mass matrix.

G. Rodriguez, A. Jain and K. Kreutz (see `operator` for the citation), sections 2.3 and 3 and appendix A.
Equation numbers are the paper's. `partition` has the primary and secondary systems of the paper as objects;
`secondary_first` is the alternative step (D).

| paper | here |
|---|---|
| A (2.16), B (2.13) | the rows' covectors ``ends``: A B* at once |
| U (2.17) | `bias_free`: the rows' right hand sides less what the state alone accelerates |
| P, D, G (A.1) | ``own``, from `tree_recursion.inward_articulation` |
| z, epsilon, nu (A.2), (A.6) | ``z``, ``rest``, ``Innovation.nu`` |
| alphahat^f, betadot^f (A.2); alpha, beta^delta (A.6) | `LinkResponse` |
| Upsilon(k) (A.3) | `Admittance` |
| psi(c, k) B A* e_r | ``Reach.z`` at link c |
| Omega (3.10), Lambda | `meeting` of two reaches; ``matrix`` |
| f (3.11) | ``f``; the library's multipliers have the opposite sign |

Declared deviations
- Links are numbered from the base; gravity is an upward acceleration of the base, so it is in That but not in U.
- (A.2) and (A.6) are one recursion: z(k) = psi z + xhat(k), eps(k) = T(k) + H z(k), with T = That and xhat = 0 in
  step (A), and xhat = -B A* f in step (E) (the printed (A.6) has K xhat and eps = -H z).
- (A.5) with the correction for branches: Omega(k, m) = psi*(c, k) Upsilon(c) psi(c, m), c the nearest common ancestor
  of k and m. It is zero only if c is the ground.
- Omega is not stored: the rows' covectors are carried to where they meet. Upsilon is computed for those links only.
- Couplers act along joints, which the paper has no points for: their reach begins at a joint, with z = 0 and eps = T.

Cost: O(n) for (A), (B), (E), (F); O(m depth + m^2) for (C); O(m^3) for (D), with m the number of constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bellcrank.formulations.common.row_loads import Load, classical, row_loads, row_values
from bellcrank.formulations.common.small_systems import solve_multipliers
from bellcrank.formulations.dense import solve_positive
from bellcrank.formulations.operator.tree_recursion import (
    Articulation,
    Innovation,
    LinkState,
    inverse_dynamics,
    inward_articulation,
    outward_states,
)
from bellcrank.lowering.link import Link
from bellcrank.lowering.looped import LoopRow, require_direct
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Direct, Field, Sweeps
from bellcrank.spatial import (
    AboutX,
    AboutZ,
    ArticulatedInertia,
    Force,
    General,
    Identity,
    Matrix3,
    Motion,
    Rotation,
    Transform,
    Vector,
)

__all__ = ["Admittance", "LinkResponse", "bias_free", "bias_free_forces", "constrained_dynamics", "free_response",
           "inward_loads", "outward_response", "part", "respond", "row_admittance", "summed"]


class LinkResponse(NamedTuple):
    """alphahat(k) and betadot(k): what loads make of a link and its joint."""

    alpha: Motion
    betadot: tuple[Number, ...]


def constrained_dynamics(tree: Sweeps) -> Field:
    """betadot = betadot^f + betadot^delta: the steps of section 3 for all loops at once."""
    machine = require_direct(tree)
    rows = machine.loop_rows()
    own, free = free_response(tree)  # (A)
    accelerations, speeds = (part(free, name) for name in ("alpha", "betadot"))
    measured = row_values(rows, accelerations, speeds)  # (B): A alphatilde^f, (3.8)
    matrix = row_admittance(machine, own, rows)  # (C): A Lambda A*, (3.10)
    f = solve_multipliers(matrix, [a - u for a, u in zip(measured, bias_free(tree, rows), strict=True)],
                         machine.floors)  # (D): (3.11)
    extra = respond(tree, own, row_loads(machine, rows, [-x for x in f]))  # (E): (3.12), (A.6)
    return tree.outward(summed, free, extra, root=())  # (F)


def free_response(tree: Sweeps) -> tuple[Field, Field]:
    """Step (A): the articulation of all links, and what they do if nothing is closed."""
    own, _ = tree.inward(inward_articulation, zero=ArticulatedInertia.zero())  # (A.1)
    given = tree.outward(bias_free_forces, inverse_dynamics(tree), root=())  # (2.12)
    return own, respond(tree, own, given)  # (3.7), (A.2)


def part(responses: Field, name: str) -> list[object]:
    return [None, *(getattr(r, name) for r in responses[1:])]


def bias_free_forces(link: Link, nothing: tuple[()], bias: tuple[Number, ...]) -> tuple[tuple[()], Load]:
    """That = T - C, (2.12)."""
    return (), Load(Force.zero(), tuple(t - c for t, c in zip(link.tau, bias, strict=True)))


def summed(link: Link, nothing: tuple[()], free: LinkResponse, extra: LinkResponse
           ) -> tuple[tuple[()], tuple[Number, ...]]:
    """Free and corrected accelerations, and what is prescribed."""
    return (), tuple(known + a + b for known, a, b in
                     zip(link.prescribed_udot, free.betadot, extra.betadot, strict=True))


def bias_free(tree: Sweeps, rows: Sequence[LoopRow]) -> list[Number]:
    """U of (2.17). The base is at rest here: constraints are about true accelerations."""
    states = tree.outward(outward_states, root=LinkState(Motion.zero(), Motion.zero()))
    drift = [None, *(classical(*s) for s in states[1:])]  # Jdot beta, with prescribed accelerations
    still = [(0.0,) * 6] * len(drift)  # rows on joints have theirs in gamma already
    return [row.gamma - known for row, known in zip(rows, row_values(rows, drift, still), strict=True)]


# -- (A.2), (A.6) ---------------------------------------------------------------------------------------------------
def respond(tree: Sweeps, own: Field, loads: Field) -> Field:
    """M^-1 (T + H phi xhat), and the link accelerations phi* H* of it. Cost: O(n)."""
    innovation, _ = tree.inward(inward_loads, own, loads, zero=Force.zero())
    return tree.outward(outward_response, innovation, root=Motion.zero())


def inward_loads(link: Link, outboard: Force, own: Articulation, load: Load) -> tuple[Force, Innovation]:
    z = outboard + load.wrench  # z = psi z + xhat
    rest = [t + column.dot(z) for t, column in _free(link, load.joint)]  # eps = T + H z
    return _pass(link, z, own, rest), Innovation(tuple(solve_positive(own.d, rest)), own.gain)  # nu = D^-1 eps


def outward_response(link: Link, inboard: Motion, innovation: Innovation) -> tuple[Motion, LinkResponse]:
    alpha = inboard
    for t in link.transforms:
        alpha = t.velocity(alpha)  # phi*
    solved = [nu - alpha.dot(g) for nu, g in zip(innovation.nu, innovation.gain, strict=True)]  # nu - K* alpha
    betadot: list[Number] = [0.0] * len(link.columns)
    for i, value in zip(_places(link), solved, strict=True):
        betadot[i] = value
        alpha = alpha + link.columns[i] * value  # psi* alpha + H* nu
    return alpha, LinkResponse(alpha, tuple(betadot))


def _places(link: Link) -> list[int]:
    return [i for i, prescribed in enumerate(link.mask) if not prescribed]


def _free(link: Link, values: Sequence[Number]) -> list[tuple[Number, Motion]]:
    return [(values[i], link.columns[i]) for i in _places(link)]


def _pass(link: Link, z: Force, own: Articulation, rest: Sequence[Number]) -> Force:
    """What the parent feels: phi (z - G eps), which is psi z where no force acts along the joint."""
    for g, e in zip(own.gain, rest, strict=True):
        z = z - g * e
    for t in reversed(link.transforms):
        z = t.force(z)
    return z


# -- (A.3)-(A.5) ----------------------------------------------------------------------------------------------------
class Admittance(NamedTuple):
    """Upsilon(k): forces on a link to its accelerations.

    A force is to it what a motion is to an inertia, with angular and linear parts exchanged: kept as that inertia.
    """

    exchanged: ArticulatedInertia

    @staticmethod
    def zero() -> Admittance:
        return Admittance(ArticulatedInertia.zero())

    def __matmul__(self, f: Force) -> Motion:
        a = self.exchanged @ Motion(f.force, f.moment)
        return Motion(a.force, a.moment)

    def carried(self, t: Transform) -> Admittance:
        """phi* Y phi: as forces on the child feel it through a locked joint."""
        m, back = self.exchanged.shifted(-t.translation), _inverse(t.rotation)
        return Admittance(ArticulatedInertia(back.symmetric(m.angular), back.matrix(m.coupling),
                                             back.symmetric(m.linear)))

    def plus(self, a: Motion, b: Motion) -> Admittance:
        """Y + a b* + b a*."""
        u, g = Force(-a.linear, -a.angular), Force(b.linear, b.angular)
        return Admittance(self.exchanged.minus(u, g).minus(g, u))


def _inverse(r: Rotation) -> Rotation:
    if isinstance(r, (AboutX, AboutZ)):
        return type(r)(r.c, -r.s)
    if isinstance(r, General):
        return General(Matrix3(*(Vector(*column) for column in zip(*r.rows, strict=True))))
    return Identity()


def outward_admittances(link: Link, inboard: Admittance, own: Articulation, wanted: bool
                        ) -> tuple[Admittance, Admittance]:
    """Upsilon(k) = psi* Upsilon(parent) psi + H* D^-1 H, (A.5), with psi = phi (I - G H)."""
    if not wanted:
        return inboard, inboard
    y = inboard
    for t in link.transforms:
        y = y.carried(t)
    columns = [link.columns[i] for i in _places(link)]
    yg = [y @ g for g in own.gain]
    for i, (h, a) in enumerate(zip(columns, yg, strict=True)):
        unit = [1.0 if i == j else 0.0 for j in range(len(columns))]
        half = -a
        for j, (d, other) in enumerate(zip(solve_positive(own.d, unit), columns, strict=True)):
            half = half + other * ((yg[j].dot(own.gain[i]) + d) * 0.5)
        y = y.plus(h, half)  # H* G* Y G H - H* G* Y - Y G H + H* D^-1 H, half of it on either side
    return y, y


class Reach(NamedTuple):
    """One end of a row and all links below it: psi-carried covector and eps before every joint passed."""

    z: dict[int, Force]
    rest: dict[int, tuple[Number, ...]]
    start: int  #: the link along whose joint a coupler acts, 0 for an end on a link


def reaches(machine: Direct, own: Field, row: LoopRow) -> list[Reach]:
    """psi B A* of one row, end by end. Cost: O(depth)."""
    found = [_reach(machine, own, link, w, None) for link, w in row.ends]
    for link, i, factor in row.joints:
        along = tuple(factor if i == j else 0.0 for j in range(machine.widths[link]))
        found.append(_reach(machine, own, link, Force.zero(), along))
    return found


def _reach(machine: Direct, own: Field, link: int, z: Force, along: tuple[Number, ...] | None) -> Reach:
    reach = Reach({}, {}, 0 if along is None else link)
    while link:
        view = machine.views[link]
        assert view is not None
        given = (0.0,) * machine.widths[link] if along is None else along
        along = None
        rest = tuple(t + column.dot(z) for t, column in _free(view, given))
        reach.z[link], reach.rest[link] = z, rest
        z = _pass(view, z, own[link], rest)
        link = machine.parent[link]
    return reach


def _meet(a: Reach, b: Reach) -> int:
    """The nearest link that both pass; parents have smaller numbers."""
    return max(a.z.keys() & b.z.keys(), default=0)


def row_admittance(machine: Direct, own: Field, rows: Sequence[LoopRow]) -> list[list[Number]]:
    """A Lambda A* = A B* Omega B A*, (3.10). Cost: O(m depth + m^2)."""
    parent = machine.parent
    ends = [reaches(machine, own, row) for row in rows]
    wanted = [False] * len(parent)
    met = {_meet(a, b) for i, left in enumerate(ends) for right in ends[:i + 1] for a in left for b in right}
    for link in met:
        while link and not wanted[link]:
            wanted[link], link = True, parent[link]
    upsilon = machine.outward(outward_admittances, own, wanted, root=Admittance.zero())
    matrix: list[list[Number]] = [[0.0] * len(rows) for _ in rows]
    for j, right in enumerate(ends):
        known: list[dict[int, Motion]] = [{} for _ in right]  # Upsilon psi B A* of this row, where it meets others
        for i, left in enumerate(ends[j:], j):
            total: Number = 0.0
            for a in left:
                for b, images in zip(right, known, strict=True):
                    total = total + meeting(machine, own, upsilon, a, b, images)
            matrix[i][j] = matrix[j][i] = total
    return matrix


def meeting(machine: Direct, own: Field, upsilon: Field, a: Reach, b: Reach, images: dict[int, Motion]) -> Number:
    """B* psi*(c, k) Upsilon(c) psi(c, m) B: the corrected (A.5), zero if only the ground is common."""
    c = _meet(a, b)
    total: Number = 0.0
    if c and c in (a.start, b.start):  # a force along this very joint: (A.3) taken apart once
        for x, y in zip(a.rest[c], solve_positive(own[c].d, b.rest[c]), strict=True):
            total = total + x * y  # eps* D^-1 eps
        c = machine.parent[c]
    if not c:
        return total
    if c not in images:
        images[c] = upsilon[c] @ b.z[c]
    return total + images[c].dot(a.z[c])
