"""K.S. Anderson and J.H. Critchley: recursive coordinate reduction, by items.

The paper prints no geometry, masses or initial states: those of its figures are chosen here. The four-bar is Saha &
Schiehlen's, the ladder has masses that make the motion the same for every number of cells, as the paper asks.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.compiled.compile import compile
from bellcrank.examples import load
from bellcrank.papers.counting import exponent
from bellcrank.papers.drift_runs import DriftRun, drift_run
from bellcrank.papers.item import Agreement, ItemResult, Paper, PaperItem, PaperPlot, PlotLine, table_of
from bellcrank.papers.ladder_figures import fig_10, fig_11
from bellcrank.papers.planar_legs import PlanarLegs
from bellcrank.papers.reference_data import reference

__all__ = ["ITEMS", "SOURCE"]

SOURCE = Paper(
    "anderson-critchley", "Anderson & Critchley",
    "Improved 'Order-N' Performance Algorithm for the Simulation of Constrained Multi-Rigid-Body Dynamic Systems",
    "Multibody System Dynamics 9, 2003, 185-212", "reduction",
    "The traditional method is `kane`, with multipliers; the recursive coordinate reduction (RCR) is `reduction`. The "
    "paper gives no geometry, masses or initial states, so its curves cannot be met point by point: trends, orders and "
    "independent solutions of the machines chosen here stand in. `simulate` closes loops in position and velocity "
    "after every step; the drift of figure 6 appears only where nothing is corrected, and is integrated here by hand.")

STEP = 0.01  #: of the paper's Runge-Kutta formula [s]
DECIMALS = 9  #: of its initial conditions


# -- Figs 5 and 6: drift of the four-bar ------------------------------------------------------------------------------
@cache
def _start() -> tuple[float, ...]:
    free = reference("four_bar")["open_elbow_up"]["free"]
    return tuple(np.round(free["theta"][0], DECIMALS))


@cache
def _drift(method: str, level: str, step: float, duration: float) -> DriftRun:
    system = compile(load("four_bar"), method)
    return drift_run(system, np.array(_start()), np.zeros(3), level, step, duration)


def fig_5(short: bool) -> ItemResult:
    """Four-bar: both methods, with the paper's integrator and start."""
    duration = 1.0 if short else 10.0
    traditional, embedded = (_drift(m, level, STEP, duration) for m, level in (("kane", "acceleration"),
                                                                               ("reduction", "velocity")))
    apart = np.abs(traditional.q[:, 0] - embedded.q[:, 0])
    free = reference("four_bar")["open_elbow_up"]["free"]
    known = {round(t / STEP): theta[0] for t, theta in zip(free["t"], free["theta"], strict=True) if t <= duration}
    table = table_of(["time [s]", "traditional [rad]", "RCR [rad]", "difference [rad]"], traditional.time,
                     traditional.q[:, 0], embedded.q[:, 0], apart)
    agreements = [Agreement(f"crank angle at {t:g} s, {name} [rad]", float(run.q[round(t / STEP), 0]),
                            known[round(t / STEP)], "reference", allowed, "the error of the paper's step of 0.01 s")
                  for t, allowed in ((0.5, 1e-5), (1.0, 1e-4)) for name, run in (("traditional", traditional),
                                                                                ("RCR", embedded))]
    agreements.append(Agreement(f"largest difference of the two until {duration:g} s [rad]", float(apart.max()), 0.0,
                                "printed", 1e-4 if short else 0.2, "\"overlapping\": as far as a picture shows; the "
                                "motion comes to rest at every turning point, where small errors grow"))
    plot = PaperPlot("time [s]", "crank angle [rad]", (
        PlotLine("traditional (kane)", traditional.time, traditional.q[:, 0]),
        PlotLine("RCR (reduction)", embedded.time, embedded.q[:, 0], "--"),
        PlotLine("independent solution", np.array(list(known)) * STEP, np.array(list(known.values())), "o")))
    return ItemResult(table, plot, tuple(agreements))


def fig_6(short: bool) -> ItemResult:
    """Four-bar: displacement error of constraints at acceleration level and at velocity level."""
    duration = 2.0 if short else 10.0
    runs = {"AC, kane": _drift("kane", "acceleration", STEP, duration),
            "AC, reduction": _drift("reduction", "acceleration", STEP, duration),
            "VC, reduction": _drift("reduction", "velocity", STEP, duration)}
    corrected = _projected(duration)
    time = runs["AC, kane"].time
    table = table_of(["time [s]", *(f"{name} [m]" for name in runs), "corrected [m]"], time,
                     *(r.loop_error for r in runs.values()), corrected)
    half, end = len(time) // 2, len(time) - 1
    ac, vc = (runs[name].loop_error for name in ("AC, kane", "VC, reduction"))
    growth = exponent([time[half], time[end]], [float(ac[half]), float(ac[end])])
    agreements = [
        Agreement("AC: exponent of growth in time", growth, 2.0, "printed", 0.75 if short else 0.3,
                  "\"quadratic\": the error also swings with the motion"),
        Agreement("VC: largest error of the second half over that of the first",
                  float(vc[half:].max() / vc[:half].max()), 1.0, "printed", 1.0,
                  "a drift at constant rate would give 2 at most"),
        Agreement("AC: methods differ by [m]", float(np.abs(ac - runs["AC, reduction"].loop_error).max()), 0.0,
                  "ours", 1e-9, "`reduction` embeds accelerations: without its velocity level it drifts like "
                  "multipliers do"),
        Agreement("VC: largest error [m]", float(vc.max()), 1e-9, "printed", float("inf"),
                  "the paper's drift stays at the ninth decimal; with its step of 0.01 s the truncation of the "
                  "Runge-Kutta formula is larger here, the motion being ours"),
        Agreement("corrected after every step: largest error [m]", float(corrected.max()), 0.0, "ours", 1e-14)]
    if not short:
        fine = _drift("reduction", "velocity", STEP / 4, 2.0).loop_error.max()
        coarse = float(vc[:round(2.0 / STEP) + 1].max())
        order = float(np.log(coarse / fine) / np.log(4.0))
        agreements.append(Agreement("VC: order of the error in the step", order, 4.0, "formula", 0.6,
                                    "so it is truncation: the fourth order of the integrator"))
    plot = PaperPlot("time [s]", "largest loop error [m]", tuple(
        PlotLine(name, time[1:], np.maximum(values[1:], 1e-17), style) for name, values, style in (
            ("AC, traditional (kane)", ac, "-"), ("VC, RCR (reduction)", vc, "-"),
            ("corrected (simulate)", corrected, ":"))), log_y=True)
    return ItemResult(table, plot, tuple(agreements), (
        "AC: state (q, u), only accelerations satisfy the loop. VC: state (q, independent u), dependent speeds follow "
        "from them in every stage (eqs. 50, 51), here by `System.reduced`. Corrected: `System.simulate`.",))


def _projected(duration: float) -> Floats:
    system = compile(load("four_bar"), "kane")
    start = system.assemble(q=_start())
    run = system.simulate(start, duration, step=STEP, output=STEP)
    return np.asarray(run["loop_error"].values)


# -- Fig 8: the redundant five-bar ------------------------------------------------------------------------------------
def fig_8(short: bool) -> ItemResult:
    """Trajectories of the independent coordinates beside an independent solution."""
    duration = 0.5 if short else 2.0
    start = np.array(reference("redundant_five_bar")["theta"])
    system = compile(load("redundant_five_bar"), "reduction")
    run = system.simulate((start, np.zeros(6)), duration, stepper="dop853", rtol=1e-11, atol=1e-13, output=0.01)
    time, q = run["time"].values, run["q"].values
    legs = PlanarLegs(np.array([[0.0, 0.0], [1.0, 0.05], [0.55, 0.95]]),
                      np.array([[0.5, 0.6], [0.45, 0.65], [0.4, 0.55]]),
                      np.array([[1.2, 0.9], [1.0, 1.1], [0.8, 0.7]]), 60.0,
                      np.array([-0.40843914185623786, 3.820338233310322, -0.46730354344408376]))
    absolute = legs.motion(start + np.array([0, start[0], 0, start[2], 0, start[4]]), time)
    other = np.stack([absolute[:, 0], absolute[:, 1] - absolute[:, 0]], axis=1)
    table = table_of(["time [s]", "q1 [rad]", "q2 [rad]", "q1, independent [rad]", "q2, independent [rad]"], time,
                     q[:, 0], q[:, 1], other[:, 0], other[:, 1])
    expected = reference("redundant_five_bar")["acceleration"]
    found = system.forward_dynamics(start, np.zeros(6))
    agreements = [Agreement(f"acceleration of q{k + 1} at the start [rad/s^2]", float(found[k]), expected[k],
                            "reference", 1e-10) for k in (0, 1)]
    agreements.append(Agreement(f"largest difference until {duration:g} s [rad]",
                                float(np.abs(q[:, :2] - other).max()), 0.0, "reference", 1e-7))
    plot = PaperPlot("time [s]", "angle [rad]", tuple(
        PlotLine(f"q{k + 1}, {name}", x, y, style) for k in (0, 1) for name, x, y, style in (
            ("RCR (reduction)", time, q[:, k], "-"), ("independent", time[::10], other[::10, k], "o"))))
    return ItemResult(table, plot, tuple(agreements), (
        "The machine and its torsion springs are chosen here. The independent solution writes every rod in coordinates "
        "of its own with dense constraint equations, in place of the paper's AUTOLEV.",))


ITEMS = (
    PaperItem("anderson-critchley-fig-5", "Fig 5", "Four-bar: overlapping trajectories of the traditional method and "
              "of RCR, Runge-Kutta at 0.01 s", fig_5),
    PaperItem("anderson-critchley-fig-6", "Fig 6", "Four-bar: drift of the loop with constraints at acceleration level "
              "and at velocity level", fig_6),
    PaperItem("anderson-critchley-fig-8", "Fig 8", "Redundant five-bar manipulator: independent coordinates beside an "
              "independent solution", fig_8),
    PaperItem("anderson-critchley-fig-10", "Fig 10", "Ladders of several lengths and the equivalent pendulum: one "
              "trajectory",
              fig_10),
    PaperItem("anderson-critchley-fig-11", "Fig 11", "Ladder: cost over the number of cells, constraints not "
              "considered, traditional, RCR", fig_11),
)
