"""S.-G. Kang and Y.-S. Yoon: the fully recursive formulation at three reference points, by items.

The paper compares the centroid (method 1), the instant global origin (method 2) and the joint point by counting
multiplications, and two of them by timing a quarter car. Its counts are those of a program that does the same for
every body. Here both are shown: that count, as what one more body in the middle of a chain costs, and the count of the
code that is compiled for the machine at hand, where zeros and results that nobody needs are gone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bellcrank.analyze.comparison import closed_states
from bellcrank.compiled.compile import compile
from bellcrank.examples import load
from bellcrank.papers.constraint_tables import tables_1_to_4
from bellcrank.papers.counting import CLOSINGS, KINDS, best_times, multiplications_of, per_body
from bellcrank.papers.item import Agreement, ItemResult, Paper, PaperItem, PaperPlot, PlotLine, table_of

__all__ = ["ITEMS", "SOURCE"]

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
