"""S.-G. Kang and Y.-S. Yoon: the fully recursive formulation at three reference points, by items.

The paper compares the centroid (method 1), the instant global origin (method 2) and the joint point by counting
multiplications, and two of them by timing a quarter car. Its counts are those of a program that does the same for
every body. Here both are shown: that count, as what one more body in the middle of a chain costs, and the count of the
code that is compiled for the machine at hand, where zeros and results that nobody needs are gone.

Kang & Yoon, Tables 1-4: the basic constraints d1, d2, s, ss, evaluated as printed and checked.

    d1  a_i . a_j = 0                   two directions stay perpendicular
    d2  a_i . (p_j - p_i) = 0           a point stays in a plane
    s   p_j - p_i = 0                   two points stay together
    ss  |p_j - p_i|^2 = L^2             two points keep their distance

Each satisfies  d2Phi/dt2 = Phi_Zi dY_i + Phi_Zj dY_j - gamma  (37), with Y = [velocity of the reference point; angular
velocity]: the centroid in Tables 1 and 2, the instant global origin in Tables 3 and 4. The left side is differentiated
here by the kinematics of rigid bodies alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellcrank.analyze.comparison import closed_states
from bellcrank.arrays import Floats
from bellcrank.compiled.compile import compile
from bellcrank.compiled.system import System
from bellcrank.examples import load
from bellcrank.mechanism.constraints import Angle, Distance, PointOnPlane
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free, Universal
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose
from bellcrank.papers.item import Agreement, ItemResult, Paper, PaperItem, PaperPlot, PlotLine, table_of
from bellcrank.papers.measurements import CLOSINGS, KINDS, best_times, multiplications_of, per_body
from bellcrank.system.state import State

__all__ = ["ITEMS", "SOURCE"]


# -- kang & Yoon, Tables 1-4 ------------------------------------------------------------------------
NAMES = ("d1", "d2", "s", "ss")


class Sample(NamedTuple):
    """A quantity of a moving body with its first and second derivative."""

    value: Floats
    rate: Floats
    second: Floats


@dataclass(frozen=True)
class MovingBody:
    """A body at an instant, with a direction and a point that belong to it; global axes."""

    centroid: Floats
    velocity: Floats  #: of the centroid
    acceleration: Floats
    omega: Floats
    alpha: Floats
    direction: Floats
    point: Floats  #: where it is

    def carried(self, arm: Floats) -> Sample:
        """A vector fixed in the body."""
        rate = np.cross(self.omega, arm)
        return Sample(arm, rate, np.cross(self.alpha, arm) + np.cross(self.omega, rate))

    @property
    def a(self) -> Sample:
        """The direction."""
        return self.carried(self.direction)

    @property
    def p(self) -> Sample:
        """The point."""
        s = self.carried(self.point - self.centroid)
        return Sample(self.point, self.velocity + s.rate, self.acceleration + s.second)

    def state_rate(self, origin: bool) -> Floats:
        """dY/dt: (26) at the centroid, (34) at the instant global origin."""
        if not origin:
            return np.concatenate([self.acceleration, self.alpha])
        # d/dt of the velocity of the body's point at the origin, r0' = r' - omega x r (31)
        rate = self.acceleration - np.cross(self.alpha, self.centroid) - np.cross(self.omega, self.velocity)
        return np.concatenate([rate, self.alpha])


def tilde(x: Floats) -> Floats:
    """The matrix of the cross product."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def second_derivative(name: str, i: MovingBody, j: MovingBody) -> Floats:
    """d2Phi/dt2 by differentiating the constraint itself."""
    apart = Sample(*(y - x for x, y in zip(i.p, j.p, strict=True)))
    if name == "s":
        return apart.second
    first, second = {"d1": (i.a, j.a), "d2": (i.a, apart), "ss": (apart, apart)}[name]
    return np.array([first.second @ second.value + 2.0 * first.rate @ second.rate + first.value @ second.second])


def jacobians(name: str, i: MovingBody, j: MovingBody, origin: bool) -> tuple[Floats, Floats]:
    """Table 1, or with `origin` Table 3: the same with p in place of s; rows [velocity, angular velocity]."""
    s_i, s_j = (b.point if origin else b.point - b.centroid for b in (i, j))
    apart, none = j.point - i.point, np.zeros((1, 3))
    a_i, a_j = i.direction, j.direction
    match name:
        case "d1":
            parts = (none, -a_j @ tilde(a_i)), (none, -a_i @ tilde(a_j))
        case "d2":
            parts = (-a_i, a_i @ tilde(s_i) - apart @ tilde(a_i)), (a_i, -a_i @ tilde(s_j))
        case "s":
            parts = (-np.eye(3), tilde(s_i)), (np.eye(3), -tilde(s_j))
        case _:
            parts = (-2.0 * apart, 2.0 * apart @ tilde(s_i)), (2.0 * apart, -2.0 * apart @ tilde(s_j))
    first, second = (np.hstack([np.atleast_2d(x) for x in pair]) for pair in parts)
    return first, second


def right_side(name: str, i: MovingBody, j: MovingBody, origin: bool, printed: bool = False) -> Floats:
    """Table 2, or with `origin` Table 4, corrected: the sign of the i term of gamma^s, which is printed with a minus,
    and in Table 4 the full velocities of the points in place of omega x p."""
    def turned(b: MovingBody) -> Floats:
        return np.cross(b.omega, b.p.rate if origin else np.cross(b.omega, b.point - b.centroid))

    apart = Sample(*(y - x for x, y in zip(i.p, j.p, strict=True)))
    pull = turned(j) - turned(i)
    a_i, a_j = i.a, j.a

    def twice(b: MovingBody, x: Floats) -> Floats:
        return np.cross(b.omega, np.cross(b.omega, x))

    match name:
        case "d1":
            found = -a_j.value @ twice(i, a_i.value) - 2.0 * a_j.rate @ a_i.rate - a_i.value @ twice(j, a_j.value)
        case "d2":
            found = -apart.value @ twice(i, a_i.value) - 2.0 * apart.rate @ a_i.rate - a_i.value @ pull
        case "s":
            return -turned(j) - turned(i) if printed else -pull
        case _:
            found = -2.0 * apart.value @ pull - 2.0 * apart.rate @ apart.rate
    return np.array([found])


def residual(name: str, i: MovingBody, j: MovingBody, origin: bool, printed: bool = False) -> float:
    """How far (37) is from the second derivative."""
    first, second = jacobians(name, i, j, origin)
    left = first @ i.state_rate(origin) + second @ j.state_rate(origin) - right_side(name, i, j, origin, printed)
    return float(np.abs(left - second_derivative(name, i, j)).max())


def violation(name: str, i: MovingBody, j: MovingBody, origin: bool) -> float:
    """Phi_Z dY - gamma: zero in a motion that keeps the constraint."""
    first, second = jacobians(name, i, j, origin)
    return float(np.abs(first @ i.state_rate(origin) + second @ j.state_rate(origin)
                        - right_side(name, i, j, origin)).max())


# -- two bodies -------------------------------------------------------------------------------------------------------
def random_body(rng: np.random.Generator) -> MovingBody:
    return MovingBody(*rng.normal(size=(7, 3)))


#: where the constraint acts on the two bodies
ON_I, ON_J = np.array([0.2, 0.1, -0.3]), np.array([-0.1, 0.4, 0.2])


def _machine(name: str) -> Mechanism:
    """Two free bodies and one constraint of a kind between them, closed at q = 0; s is part of a universal joint."""
    m = Mechanism(f"two bodies, {name}", gravity=(0.3, -0.5, -9.81))
    first = Pose.rpy((0.4, -0.3, 0.6), 0.7, -0.4, 1.1)
    turn = first.rotation @ Pose.about("x", 0.8).rotation @ Pose.about("y", -0.5).rotation  # x of i, y of j stay normal
    apart = {"d2": np.array([0.0, 0.3, -0.5]), "ss": np.array([0.48, 0.64, 0.0])}.get(name, np.zeros(3))
    place = np.asarray(first.position) + first.rotation @ (ON_I + apart) - turn @ ON_J
    for k, (body, pose) in enumerate((("i", first), ("j", Pose(place.tolist(), turn)))):
        m.add_body(body, Inertia(1.0 + k, (0.1, -0.2 * k, 0.3), (0.2, 0.3, 0.25)))
        m.add_joint(body, Free(), m.ground, body, pose)
    here, there = Pose(ON_I.tolist()), Pose(ON_J.tolist())
    if name == "s":
        m.add_joint("end", Universal("x", "y"), "i", "j", here, there)
    else:
        kinds = {"d1": Angle(np.pi / 2, "x", "y"), "d2": PointOnPlane("x"), "ss": Distance(0.8)}
        m.add_constraint("end", kinds[name], "i", "j", here, there)
    return m


def _moving(system: System, state: State, body: str, point: Floats, direction: Floats) -> MovingBody:
    udot = system.forward_dynamics(state.q, state.u)
    pose = system.pose(state.q, body)
    com = np.asarray(system.model.mechanism.body(body).inertia.com, dtype=float)
    velocity = system.velocity(state.q, state.u, body, com)
    acceleration = system.acceleration(state.q, state.u, udot, body, com)
    turn = np.asarray(pose.rotation)
    place = np.asarray(pose.position, dtype=float)
    return MovingBody(place + turn @ com, velocity[3:], acceleration[3:], velocity[:3], acceleration[:3],
                      turn @ direction, place + turn @ point)


def library_violation(name: str, rng: np.random.Generator) -> tuple[float, float]:
    """What the accelerations that the library computes leave of (37), with Tables 1, 2 and 3, 4."""
    system = compile(_machine(name), backend="numpy", cut=["end"] if name == "s" else ())
    state = system.assemble(u=rng.normal(size=system.nu))
    i = _moving(system, state, "i", ON_I, np.array([1.0, 0.0, 0.0]))
    j = _moving(system, state, "j", ON_J, np.array([0.0, 1.0, 0.0]))
    scale = 1.0 + max(float(np.abs(b.state_rate(True)).max()) for b in (i, j))
    return violation(name, i, j, False) / scale, violation(name, i, j, True) / scale


def tables_1_to_4(short: bool) -> ItemResult:
    """All four constraints at random states."""
    rng = np.random.default_rng(4)
    rows, agreements = [], []
    for name in NAMES:
        pairs = [(random_body(rng), random_body(rng)) for _ in range(3 if short else 50)]
        worst = [max(residual(name, i, j, *how) for i, j in pairs) for how in ((False,), (True,), (False, True))]
        library = library_violation(name, rng)
        rows.append((name, *worst, *library))
        for label, found in (("Tables 1, 2", worst[0]), ("Tables 3, 4", worst[1]), ("library, Tables 1, 2", library[0]),
                             ("library, Tables 3, 4", library[1])):
            agreements.append(Agreement(f"{name}: {label}, residual", found, 0.0, "formula", 1e-11))
    table = table_of(["constraint", "Tables 1, 2", "Tables 3, 4", "Table 2 as printed", "library, Tables 1, 2",
                      "library, Tables 3, 4"], *zip(*rows, strict=True))
    agreements.append(Agreement("s: Table 2 as printed, residual", table.column("Table 2 as printed")[2], 0.0,
                                "printed", float("inf"), "the term of body i is printed with a minus; it needs a plus "
                                "(an erratum)"))
    x = np.arange(4.0)
    floor = 1e-17
    plot = PaperPlot("constraint (0 d1, 1 d2, 2 s, 3 ss)", "residual of (37)", tuple(
        PlotLine(label, x, np.maximum(np.array(table.column(label)), floor), style) for label, style in (
            ("Tables 1, 2", "o"), ("Tables 3, 4", "s"), ("Table 2 as printed", "x"), ("library, Tables 3, 4", "^"))),
        log_y=True)
    return ItemResult(table, plot, tuple(agreements), (
        "Largest residual of (37) over random motions of two bodies. In the library these rows are: ss a `Distance`, "
        "d2 a `PointOnPlane`, s a `Spherical` joint that closes a loop, d1 an `Angle`; their numbers may be laws of "
        "time. Its accelerations are put into the tables: they satisfy them.",))


# -- S ----------------------------------------------------------------------------------------------
SOURCE = Paper(
    "kang-yoon", "Kang & Yoon", "On the Improvement of a Fully Recursive Formulation for the Dynamic Analysis of "
    "Multibody Systems", "KSME International Journal 17(3), 2003", "recursive",
    "The method is `recursive/centroid` (method 1), `recursive/origin` (method 2) and `recursive/joint`, in global "
    "axes and with the paper's order of operations; `recursive` alone is the joint point in body axes. The paper's "
    "savings, 36 + 6n + 6m multiplications a body, are met to the digit for bodies in the middle of chains. On its own "
    "example, the quarter car, compiled code turns the ranking round: see `kang-yoon-table-5`. The paper gives neither "
    "hardpoints nor masses of the quarter car; ours has its topology and counts.")

POINTS = ("centroid", "joint", "origin")
#: joints of the quarter car: speeds n, and constraints m whose Jacobian passes the body
CAR = {"lower arm": ("revolute", 9), "knuckle": ("spherical", 9), "upper link, front": ("universal", 3),
       "upper link, rear": ("universal", 3), "tie rod": ("universal", 3)}
PRINTED_RATIO = 0.86


def speeds(kind: str) -> int:
    """Degrees of freedom of a joint type."""
    return KINDS[kind]().nu


def multiplications(kind: str, point: str, m: int = 0) -> int:
    """Multiplications of one more body in the middle of a chain, with m constraints that pass it.

    Beyond what closes a chain here, by their second difference in m, which is n: the rows of (41), n m (m + 1) / 2.
    """
    if m <= max(CLOSINGS):
        return per_body(kind, f"recursive/{point}", m, n=_length(kind, m)).muls
    third, fourth = (multiplications(kind, point, k) for k in (3, 4))
    steps = m - 3
    return third + steps * (fourth - third) + speeds(kind) * steps * (steps - 1) // 2


def _length(kind: str, m: int) -> int:
    """Bodies enough for the loop to move."""
    return max(3, m // speeds(kind) + 2)


# -- 36 + 6 n ---------------------------------------------------------------------------------------------------------
def saving_of_trees(short: bool) -> ItemResult:
    """Section 3: at least 36 + 6 n multiplications fewer for each body."""
    kinds = ("revolute", "cylindrical", "spherical") if short else tuple(KINDS)
    rows, agreements = [], []
    for kind in kinds:
        muls = [multiplications(kind, p) for p in POINTS]
        n, saved = speeds(kind), muls[0] - muls[2]
        rows.append((kind, n, *muls, saved, 36 + 6 * n))
        reason = _TREE_REASONS.get(kind, "")
        agreements.append(Agreement(f"{kind}: centroid - origin", saved, 36 + 6 * n, "formula",
                                    float("inf") if reason else 0.0, reason))
    table = table_of(["joint", "n", *POINTS, "centroid - origin", "36 + 6n"], *zip(*rows, strict=True))
    x = np.array(table.column("n"), dtype=float)
    plot = PaperPlot("n, speeds of the joint", "multiplications saved per body", (
        PlotLine("centroid - origin", x, np.array(table.column("centroid - origin"), dtype=float), "o"),
        PlotLine("36 + 6n", np.sort(x), 36.0 + 6.0 * np.sort(x))))
    return ItemResult(table, plot, tuple(agreements), (
        "Exact counts of one more body in the middle of a chain of general bodies, global axes. The paper places the "
        "joint point between the two others: true for one and two speeds along an axis; where a joint is a pure "
        "rotation about two or three axes its columns have no linear part at the joint point, which then needs fewer "
        "multiplications than the origin.",))


_TREE_REASONS = {
    "prismatic": "nothing turns in such a chain: axes and inertias are constants, and compiled code folds them at "
                 "every point",
    "universal": "\"at least\": the terms without velocities save 30 + 6n here as for every joint that turns; those "
                 "with velocities, (27), (35) and (36), save 13 more instead of 6",
    "planar": "the terms without velocities save 30 + 6n as for every joint that turns; those with velocities cost 6 "
              "more at the origin, where they save 6 for an axis",
    "free": "the terms without velocities save 30 + 6n as for every joint that turns; those with velocities save 21 "
            "more instead of 6"}


# -- 6 m --------------------------------------------------------------------------------------------------------------
def saving_of_loops(short: bool) -> ItemResult:
    """Section 3: 6 m fewer for each body whose constraint Jacobian is shifted, m the constraints that pass."""
    cases = [(kind, m) for kind in ("revolute", "universal", "spherical") for m in (0, *CLOSINGS)]
    if short:
        cases = [("revolute", 0), ("revolute", 3), ("spherical", 0), ("spherical", 3)]
    rows, agreements = [], []
    for kind, m in cases:
        muls = [multiplications(kind, p, m) for p in POINTS]
        n, saved = speeds(kind), muls[0] - muls[2]
        rows.append((kind, n, m, *muls, saved, 36 + 6 * n + 6 * m))
        if m == 0 and kind == "universal":
            continue  # of trees: another item
        reason = _UNIVERSAL_LOOPS if kind == "universal" else ""
        agreements.append(Agreement(f"{kind}, m = {m}: centroid - origin", saved, 36 + 6 * n + 6 * m, "formula",
                                    1.0 if reason else 0.0, reason))
    table = table_of(["joint", "n", "m", *POINTS, "centroid - origin", "36 + 6n + 6m"], *zip(*rows, strict=True))
    lines = []
    for kind in dict.fromkeys(k for k, _ in cases):
        own = np.array([(r[2], r[6], r[7]) for r in rows if r[0] == kind], dtype=float)
        lines += [PlotLine(f"{kind}: centroid - origin", own[:, 0], own[:, 1], "o"),
                  PlotLine(f"{kind}: 36 + 6n + 6m", own[:, 0], own[:, 2])]
    return ItemResult(table, PaperPlot("m, constraints that pass the body", "multiplications saved per body",
                                       tuple(lines)), tuple(agreements),
                      ("A chain closed to the ground by a ball joint (m = 3), a universal joint (4), a pin (5) or a "
                       "weld (6): every constraint passes every body, and one more body in the middle costs what is "
                       "shown.",))


_UNIVERSAL_LOOPS = ("one multiplication short: right-hand sides of loops need angular velocities by (19), which (27) "
                    "has at hand and (35) has not; for universal joints that is 8 multiplications, against the 7 that "
                    "trees save beyond the formula")


# -- Table 5 ----------------------------------------------------------------------------------------------------------
def table_5(short: bool) -> ItemResult:
    """The quarter car: the paper's count, ours, and times (not in the short form, which compiles nothing)."""
    points = ("centroid", "origin") if short else POINTS
    general = {p: sum(multiplications(kind, p, m) for kind, m in CAR.values()) for p in points}
    special = {p: multiplications_of(load("quarter_car"), f"recursive/{p}") for p in points}
    times = {} if short else _car_times()
    rows = [(p, general[p], general[p] / general["centroid"], special[p], special[p] / special["centroid"],
             *((times[p] * 1e6, times[p] / times["centroid"]) if times else ("-", "-"))) for p in points]
    table = table_of(["point", "mult., every body alike", "ratio", "mult., compiled", "ratio ", "time [µs]", "ratio  "],
                     *zip(*rows, strict=True))
    x = np.arange(float(len(points)))
    lines = [PlotLine("multiplications, every body alike", x, np.array(table.column("ratio")), "o-"),
             PlotLine("multiplications, compiled", x, np.array(table.column("ratio ")), "s-"),
             PlotLine("time, printed", x[[0, -1]], np.array([1.0, PRINTED_RATIO]), "k*")]
    if times:
        lines.append(PlotLine("time, compiled", x, np.array(table.column("ratio  ")), "^-"))
    plot = PaperPlot(f"reference point ({', '.join(f'{i} {p}' for i, p in enumerate(points))})",
                     "relative to the centroid", tuple(lines))
    return ItemResult(table, plot, _table_5_agreements(general, special, times), (_CAR_NOTE,))


def _car_times(states: int = 1024) -> dict[str, float]:
    """Seconds per state in a batch, on one thread, of calls that take turns."""
    systems = {p: compile(load("quarter_car"), f"recursive/{p}", threads=1) for p in POINTS}
    q, u = closed_states(systems["centroid"], np.random.default_rng(0), states)

    def call(point: str) -> Callable[[], object]:
        return lambda: systems[point].forward_dynamics(q, u)

    return {p: t / states for p, t in best_times({p: call(p) for p in POINTS}, 3.0).items()}


def _table_5_agreements(general: dict[str, int], special: dict[str, int], times: dict[str, float]
                        ) -> tuple[Agreement, ...]:
    ball = multiplications("spherical", "centroid", 9) - multiplications("spherical", "origin", 9)
    formula = sum(36 + 6 * speeds(kind) + 6 * m for kind, m in CAR.values())
    infinite = float("inf")
    return (
        Agreement("saving of the body on a ball joint (n = 3, m = 9)", ball, 108, "printed"),
        Agreement("saving of all five bodies, every body alike", general["centroid"] - general["origin"], formula,
                  "formula", 3.0, "one multiplication short for each universal joint, see kang-yoon-6m"),
        Agreement("origin / centroid, multiplications, every body alike", general["origin"] / general["centroid"],
                  PRINTED_RATIO, "printed", infinite, "the paper's ratio is one of CPU times, additions and memory "
                  "included; ours of multiplications alone"),
        Agreement("origin / centroid, multiplications, compiled", special["origin"] / special["centroid"],
                  PRINTED_RATIO, "printed", infinite, "the ranking is turned round, see the note below"),
        *([Agreement("origin / centroid, time, compiled", times["origin"] / times["centroid"], PRINTED_RATIO, "printed",
                     infinite, "as the multiplications; times vary from run to run")] if times else []))


_CAR_NOTE = (
    "Every body alike: what a body with its joint and its constraints costs in the middle of a machine, summed over "
    "the five bodies (constraints that pass them: 9, 9, 3, 3, 3), as the paper's program computes it, which does the "
    "same for every body. Compiled: the code for this machine. Four of its five bodies hang on the ground and four "
    "have nothing above them. What the origin saves is the shift to the lower body, (28) and (39): into the ground "
    "nobody needs it, and of a last body it is cheap because the centroid's mass matrix is still block diagonal; both "
    "are dropped or folded for every point. What the origin pays, 24 multiplications a body for (36), stays. So the "
    "centroid needs fewer multiplications here than the origin, and the joint point fewest. Machines with bodies on "
    "bodies keep the paper's ranking: see kang-yoon-ranking.")


# -- ranking ----------------------------------------------------------------------------------------------------------
def ranking(short: bool) -> ItemResult:
    """Compiled counts of built-in machines at the three points."""
    names = ("four_bar", "jansen", "quarter_car") if short else (
        "four_bar", "five_bar", "slider_crank", "andrews", "jansen", "bricard", "ladder", "quarter_car",
        "double_wishbone", "arm", "quadruped")
    counts = {name: [multiplications_of(load(name), f"recursive/{p}") for p in POINTS] for name in names}
    order = [" < ".join(p for _, p in sorted(zip(own, POINTS, strict=True))) for own in counts.values()]
    ratio = {name: own[2] / own[0] for name, own in counts.items()}
    table = table_of(["machine", *POINTS, "origin / centroid", "fewest first"], names,
                     *zip(*counts.values(), strict=True), ratio.values(), order)
    agreements = (
        Agreement("jansen: origin cheaper than centroid (1: yes)", float(ratio["jansen"] < 1.0), 1.0, "printed"),
        Agreement("quarter car: origin cheaper than centroid (1: yes)", float(ratio["quarter_car"] < 1.0), 1.0,
                  "printed", float("inf"), "the paper says \"always\"; compiled for this machine it is not: see "
                  "kang-yoon-table-5"))
    x = np.arange(float(len(names)))
    plot = PaperPlot("machine, in the order of the table", "multiplications relative to the centroid", (
        PlotLine("joint", x, np.array([own[1] / own[0] for own in counts.values()]), "s"),
        PlotLine("origin", x, np.array(list(ratio.values())), "o")))
    return ItemResult(table, plot, agreements, ("Multiplications of one forward dynamics, as compiled.",))


ITEMS = (
    PaperItem("kang-yoon-tables-1-4", "Tables 1-4", "Jacobians and right-hand sides of the basic constraints, at the "
              "centroid and at the instant global origin: the tables against exact derivatives and against the "
              "library's motion",
              tables_1_to_4),
    PaperItem("kang-yoon-36-6n", "Section 3", "Multiplications that the instant global origin saves for each body of a "
              "tree",
              saving_of_trees),
    PaperItem("kang-yoon-6m", "Section 3", "What it saves further for each constraint of a loop that passes a body",
              saving_of_loops),
    PaperItem("kang-yoon-table-5", "Table 5", "The quarter car at the three points: the paper's count beside that of "
              "compiled code, and times", table_5),
    PaperItem("kang-yoon-ranking", "Abstract", "\"Always better\": compiled counts of the built-in machines at the "
              "three points", ranking),
)
