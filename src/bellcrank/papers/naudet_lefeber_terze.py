"""J. Naudet, D. Lefeber and Z. Terze: forward dynamics by canonical momenta, by items."""

from __future__ import annotations

from functools import cache

import numpy as np

from bellcrank.compiled.compile import compile
from bellcrank.formulations import method_names
from bellcrank.papers.item import Agreement, ItemResult, Paper, PaperItem, PaperPlot, PlotLine, table_of
from bellcrank.papers.measurements import KINDS, LEVELS, LineFit, closed_chain, fit_line, four_bar_by_hand, simulated
from bellcrank.scalar.count import OperationCount

__all__ = ["ITEMS", "SOURCE"]

SOURCE = Paper(
    "naudet-lefeber-terze", "Naudet, Lefeber & Terze",
    "General Formulation of an Efficient Recursive Algorithm Based on Canonical Momenta for Forward Dynamics of "
    "Open-Loop Multibody Systems", "Multibody Dynamics 2003, ECCOMAS Thematic Conference", "momenta",
    "The method is `momenta`; its state (q, p) is what `System.hamilton` takes, `System.momenta` gives p. The paper "
    "counts operations for chains of pin joints; ours are exact counts of the traced computation for a chain of "
    "general bodies (nothing parallel, nothing aligned) in the library's choice of frames, gravity included, sines and "
    "cosines apart. Loops, which the paper leaves to future work apart from its equations (1)-(8), are there with σ, "
    "the integral of the multipliers.")

#: Table 1: additions and multiplications, (a, b) of a n + b
PRINTED = {"Featherstone": ((275, -18), (336, -220)), "Vukobratović": ((231, -294), (249, -272)),
           "Valášek": ((206, -345), (226, -343)), "Rein": ((195, -247), (216, -317)),
           "Naudet-Lefeber": ((178, -230), (185, -245))}
#: the totals that the table prints
TOTALS = {"Featherstone": (611, -238), "Vukobratović": (480, -566), "Valášek": (432, -688), "Rein": (411, -669),
          "Naudet-Lefeber": (363, -475)}
#: the paper's own state, by its own method
OWN = ("momenta", "hamilton")


@cache
def _count(kind: str, method: str, function: str, n: int) -> OperationCount:
    return compile(closed_chain(n, kind), method, schedule="unrolled").operation_count(function)


def _fits(kind: str, method: str, function: str, sizes: range) -> tuple[LineFit, LineFit, LineFit]:
    """Additions, multiplications with divisions and roots, and their sum."""
    counts = [_count(kind, method, function, n) for n in sizes]
    adds, total = [c.adds for c in counts], [c.total for c in counts]
    return (fit_line(sizes, adds), fit_line(sizes, [t - a for t, a in zip(total, adds, strict=True)]),
            fit_line(sizes, total))


def _term(pair: tuple[int, int]) -> str:
    return f"{pair[0]}n{pair[1]:+d}"


# -- Table 1 ----------------------------------------------------------------------------------------------------------
def table_1(short: bool) -> ItemResult:
    """Operations for chains of pin joints: the paper's competitors and our methods."""
    sizes = range(3, 6) if short else range(3, 21)
    rows: list[tuple[str | int, ...]] = []
    lines = []
    grid = np.arange(3.0, 21.0)
    for name, (adds, muls) in PRINTED.items():
        total = (adds[0] + muls[0], adds[1] + muls[1])
        rows.append((f"{name} (printed)", _term(adds), _term(muls), _term(total), 10 * total[0] + total[1]))
        lines.append(PlotLine(f"{name} (printed)", grid, total[0] * grid + total[1], ":"))
    ours = [OWN, ("recursive", "forward_dynamics")]
    if not short:
        ours += [(m, "forward_dynamics") for m in method_names() if m not in ("dense", "recursive")]
    agreements = []
    for method, function in ours:
        fits = _fits("revolute", method, function, sizes)
        label = f"{method}, state (q, p)" if function == "hamilton" else f"{method}, accelerations"
        linear = fits[2].start <= 5
        parts = [str(f) if linear else "not a n + b" for f in fits]
        rows.append((label, *parts, _count("revolute", method, function, 10).total))
        if (method, function) in ours[:2]:
            lines.append(PlotLine(label, grid, fits[2].slope * grid + fits[2].offset))
            agreements.append(Agreement(f"{label}: a n + b holds from n =", fits[2].start, 3, "formula"))
    return ItemResult(table_of(["algorithm", "additions", "multiplications, divisions", "total", "total at n = 10"],
                               *zip(*rows, strict=True)),
                      PaperPlot("n, bodies on pin joints", "operations", tuple(lines)),
                      (*_table_1_agreements(sizes), *agreements))


def _table_1_agreements(sizes: range) -> tuple[Agreement, ...]:
    own = _fits("revolute", *OWN, sizes)[2]
    better = all(own.slope * n + own.offset <= 363 * n - 475 for n in range(3, 21))
    sums = [Agreement(f"{name}: b of the printed total", PRINTED[name][0][1] + PRINTED[name][1][1], TOTALS[name][1],
                      "printed", float("inf") if name == "Rein" else 0.0,
                      "the printed parts add up to 411n-564, not 411n-669" if name == "Rein" else "")
            for name in PRINTED]
    return (Agreement("(q, p): a of a n + b", own.slope, 363, "printed", float("inf"), "fewer: a joint is eliminated "
                      "in its own axes, where a row and a column become zeros, and turns are two about coordinate axes "
                      "each"),
            Agreement("(q, p): b of a n + b", own.offset, -475, "printed", float("inf"), "what the two ends of a chain "
                      "save depends on the order of operations"),
            Agreement("(q, p): at most 363n-475 for n = 3 to 20 (1: yes)", float(better), 1.0, "printed"), *sums)


# -- every joint type -------------------------------------------------------------------------------------------------
def joints(short: bool) -> ItemResult:
    """The same count for chains of every joint type."""
    kinds = ("revolute", "prismatic", "spherical") if short else tuple(KINDS)
    sizes = range(3, 6) if short else range(3, 9)
    rows, agreements = [], []
    for kind in kinds:
        pair = _fits(kind, *OWN, sizes)[2]
        fits = {m: _fits(kind, m, "forward_dynamics", sizes)[2] for m in ("momenta", "recursive")}
        n = KINDS[kind]().nu
        rows.append((kind, n, str(pair), str(fits["momenta"]), str(fits["recursive"]), pair.slope / n,
                     pair.slope / fits["recursive"].slope))
        agreements.append(Agreement(f"{kind}: (q, p) costs less than accelerations by the same method (1: yes)",
                                    float(pair.slope < fits["momenta"].slope), 1.0, "printed"))
    table = table_of(["joint", "speeds", "momenta, (q, p)", "momenta, accelerations", "recursive, accelerations",
                      "(q, p) per speed", "(q, p) / recursive"], *zip(*rows, strict=True))
    speeds = np.array(table.column("speeds"), dtype=float)
    plot = PaperPlot("speeds of the joint", "operations per body and speed, state (q, p)", (
        PlotLine("momenta, (q, p)", speeds, np.array(table.column("(q, p) per speed")), "o"),
        PlotLine("printed, pin joints", np.array([1.0]), np.array([363.0]), "k*")))
    return ItemResult(table, plot, tuple(agreements), (
        "Totals of additions, multiplications, divisions and roots, a n + b. The paper's general formulation covers "
        "these joints, and counts pin joints only; it has no figures for the others. `recursive` computes "
        "accelerations; for joints without rotation it needs fewer operations than (q, p) does.",))


# -- sigma ------------------------------------------------------------------------------------------------------------
def sigma(short: bool) -> ItemResult:
    """Four-bar in (q, p): σ carried along, and reset after every step."""
    duration = 2.0 if short else 10.0
    runs = {name: simulated(*LEVELS[level], 0.01, duration) for name, level in (
        ("accelerations", "acceleration"), ("σ carried", "sigma carried"), ("σ reset", "sigma reset"))}
    time = runs["σ carried"].time
    errors = {name: run.loop_error for name, run in runs.items()}
    last = {name: float(e[-1]) for name, e in errors.items()}
    half = len(time) // 2
    agreements = [
        Agreement("σ carried: error at the end over that of accelerations is below 1 (1: yes)",
                  float(last["σ carried"] < last["accelerations"]), 1.0, "printed"),
        Agreement("σ reset: largest error of the second half over that of the first",
                  float(errors["σ reset"][half:].max() / errors["σ reset"][:half].max()), 1.0, "printed", 1.0,
                  "index 2: the velocities satisfy the loop in every stage, so that positions drift at most in "
                  "proportion to time"),
        Agreement("σ reset: largest error [m]", float(errors["σ reset"].max()), 0.0, "ours", 1e-5)]
    for name in ("σ carried", "σ reset"):
        hand = four_bar_by_hand(name.replace("σ", "sigma"), 0.01, 1.0).loop_error
        agreements.append(Agreement(f"{name}: error at 1 s, against the same integrated by hand [m]",
                                    float(errors[name][len(hand) - 1]), float(hand[-1]), "reference", 1e-9))
    plot = PaperPlot("time [s]", "largest loop error [m]", tuple(
        PlotLine(name, time[1:], np.maximum(e[1:], 1e-17)) for name, e in errors.items()), log_y=True)
    table = table_of(["time [s]", *(f"{name} [m]" for name in errors)], time, *errors.values())
    return ItemResult(table, plot, tuple(agreements), (
        "Classical Runge-Kutta formula at 0.01 s. σ carried, `simulate(closing=\"none\")` with `momenta`: p keeps what "
        "the multipliers have added since the start (eqs. 7, 8). σ reset, `closing=\"velocity\"`: p = M u after every "
        "step, with the u that Hamilton's equations give: then σ starts from zero each time. Whoever integrates "
        "`System.hamilton` himself resets p by `System.momenta(q, u)`. By default `simulate` corrects positions, too, "
        "and nothing drifts.",))


ITEMS = (
    PaperItem("naudet-lefeber-terze-table-1", "Table 1", "Operations for chains of pin joints: 363n-475, the paper's "
              "competitors and all our methods", table_1),
    PaperItem("naudet-lefeber-terze-joints", "Section 6", "The same count for chains of every joint type", joints),
    PaperItem("naudet-lefeber-terze-sigma", "Eqs. (1)-(8)", "Four-bar in (q, p): drift with σ carried and with σ reset "
              "after every step", sigma),
)
