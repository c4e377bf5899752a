"""K.S. Anderson and J.H. Critchley: recursive coordinate reduction, by items.

The paper prints no geometry, masses or initial states: those of its figures are chosen here. The four-bar is Saha &
Schiehlen's, the ladder has masses that make the motion the same for every number of cells, as the paper asks.
"""

from __future__ import annotations

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.compiled.compile import compile
from bellcrank.examples import load
from bellcrank.papers.counting import exponent
from bellcrank.papers.drift_runs import four_bar_by_hand, simulated
from bellcrank.papers.drift_table import drift_table
from bellcrank.papers.item import Agreement, ItemResult, Paper, PaperItem, PaperPlot, PlotLine, table_of
from bellcrank.papers.ladder_figures import fig_10, fig_11
from bellcrank.papers.planar_legs import PlanarLegs
from bellcrank.papers.reference_data import reference, state_of

__all__ = ["ITEMS", "SOURCE"]

SOURCE = Paper(
    "anderson-critchley", "Anderson & Critchley",
    "Improved 'Order-N' Performance Algorithm for the Simulation of Constrained Multi-Rigid-Body Dynamic Systems",
    "Multibody System Dynamics 9, 2003, 185-212", "reduction",
    "The traditional method is `kane`, with multipliers; the recursive coordinate reduction (RCR) is `reduction`. The "
    "paper gives no geometry, masses or initial states, so its curves cannot be met point by point: trends, orders and "
    "independent solutions of the machines chosen here stand in. The drift of figure 6 is that of "
    "`simulate(closing=\"none\")` and `closing=\"velocity\"`; by default `simulate` closes positions, too.")

STEP = 0.01  #: of the paper's Runge-Kutta formula [s]


# -- Figs 5 and 6: drift of the four-bar ------------------------------------------------------------------------------
def fig_5(short: bool) -> ItemResult:
    """Four-bar: both methods, with the paper's integrator and start."""
    duration = 1.0 if short else 10.0
    traditional = simulated("kane", "none", STEP, duration)
    embedded = simulated("reduction", "velocity", STEP, duration)
    apart = np.abs(traditional.q[:, 0] - embedded.q[:, 0])
    free = reference("four_bar")["open_elbow_up"]["free"]
    known = {round(t / STEP): theta[0] for t, theta in zip(free["t"], free["theta"], strict=True) if t <= duration}
    table = table_of(["time [s]", "traditional [rad]", "RCR [rad]", "difference [rad]"], traditional.time,
                     traditional.q[:, 0], embedded.q[:, 0], apart)
    agreements = [Agreement(f"crank angle at {t:g} s, {name} [rad]", float(run.q[round(t / STEP), 0]),
                            known[round(t / STEP)], "reference", allowed, "the error of the paper's step of 0.01 s")
                  for t, allowed in ((0.5, 1e-5), (1.0, 1e-4)) for name, run in (("traditional", traditional),
                                                                                ("RCR", embedded))]
    agreements.append(Agreement("largest difference of the two until 1 s [rad]",
                                float(apart[:round(1.0 / STEP) + 1].max()), 0.0, "printed", 1e-4))
    if not short:
        agreements.append(Agreement(f"largest difference of the two until {duration:g} s [rad]", float(apart.max()),
                                    0.0, "printed", float("inf"), "\"overlapping\": the motion chosen here comes to "
                                    "rest where the crank has turned once, and small errors decide when it leaves"))
    plot = PaperPlot("time [s]", "crank angle [rad]", (
        PlotLine("traditional (kane)", traditional.time, traditional.q[:, 0]),
        PlotLine("RCR (reduction)", embedded.time, embedded.q[:, 0], "--"),
        PlotLine("independent solution", np.array(list(known)) * STEP, np.array(list(known.values())), "o")))
    return ItemResult(table, plot, tuple(agreements))


def fig_6(short: bool) -> ItemResult:
    """Four-bar: displacement error of constraints at acceleration level and at velocity level."""
    duration = 2.0 if short else 10.0
    runs = {"AC, kane": simulated("kane", "none", STEP, duration),
            "AC, reduction": simulated("reduction", "none", STEP, duration),
            "VC, reduction": simulated("reduction", "velocity", STEP, duration),
            "corrected": simulated("reduction", "position", STEP, duration)}
    time = runs["corrected"].time
    errors = {name: run.loop_error for name, run in runs.items()}
    table = table_of(["time [s]", *(f"{name} [m]" for name in errors)], time, *errors.values())
    plot = PaperPlot("time [s]", "largest loop error [m]", tuple(
        PlotLine(label, time[1:], np.maximum(errors[name][1:], 1e-17), style) for name, label, style in (
            ("AC, kane", "AC, traditional (kane)", "-"), ("VC, reduction", "VC, RCR (reduction)", "-"),
            ("corrected", "corrected in position, too", ":"))), log_y=True)
    return ItemResult(table, plot, (*_growth(time, errors, short), *_checks(errors, duration)), (
        "AC, `simulate(closing=\"none\")`: state (q, u), only accelerations satisfy the loop. VC, "
        "`closing=\"velocity\"`: state (q, independent u), dependent speeds follow from them in every stage (eqs. "
        "46-51). Corrected, the default: positions and velocities after every step. The start is rounded to nine "
        "decimals and then closed by `simulate`; by hand it is not, which makes no difference here: 9e-11 m.",))


def _growth(time: Floats, errors: dict[str, Floats], short: bool) -> list[Agreement]:
    """How errors grow: what the paper says of them."""
    half, ac, vc = len(time) // 2, errors["AC, kane"], errors["VC, reduction"]
    power = exponent([float(time[half]), float(time[-1])], [float(ac[half]), float(ac[-1])])
    return [
        Agreement("AC: exponent of growth in time", power, 2.0, "printed", 0.75 if short else 0.3,
                  "\"quadratic\": the error also swings with the motion"),
        Agreement("VC: largest error of the second half over that of the first",
                  float(vc[half:].max() / vc[:half].max()), 1.0, "printed", 1.0,
                  "a drift at constant rate would give 2 at most"),
        Agreement("VC: largest error [m]", float(vc.max()), 1e-9, "printed", float("inf"),
                  "the paper's drift stays at the ninth decimal; the truncation of the Runge-Kutta formula at its step "
                  "of 0.01 s is larger here, where the motion is ours")]


def _checks(errors: dict[str, Floats], duration: float) -> list[Agreement]:
    """Of the numbers themselves: by hand, between methods, by step."""
    found = []
    for name, level in (("AC, kane", "acceleration"), ("VC, reduction", "velocity")):
        hand = four_bar_by_hand(level, STEP, 1.0).loop_error
        found.append(Agreement(f"{name}: error at 1 s, against the same integrated by hand [m]",
                               float(errors[name][len(hand) - 1]), float(hand[-1]), "reference", 1e-9))
    fine = simulated("reduction", "velocity", STEP / 4, duration).loop_error.max()
    order = float(np.log(errors["VC, reduction"].max() / fine) / np.log(4.0))
    apart = float(np.abs(errors["AC, kane"] - errors["AC, reduction"]).max())
    return [*found,
            Agreement("VC: order of the error in the step", order, 4.0, "formula", 0.6,
                      "so it is truncation: the fourth order of the integrator"),
            Agreement("AC: kane and reduction differ by [m]", apart, 0.0, "ours", 1e-9, "at the level of accelerations "
                      "both drift alike: it is the level that counts, not the method"),
            Agreement("corrected: largest error [m]", float(errors["corrected"].max()), 0.0, "ours", 1e-14)]


# -- Fig 8: the redundant five-bar ------------------------------------------------------------------------------------
def fig_8(short: bool) -> ItemResult:
    """Trajectories of the independent coordinates beside an independent solution."""
    duration = 0.5 if short else 2.0
    start = np.array(reference("redundant_five_bar")["theta"])
    system = compile(load("redundant_five_bar"), "reduction")
    state = state_of(system, start)
    run = system.simulate(state, duration, stepper="dop853", rtol=1e-11, atol=1e-13, output=0.01)
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
    found = system.forward_dynamics(state)
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
    PaperItem("anderson-critchley-drift", "Section 4.1", "Drift of four-bar, quarter car and ladder: what is closed, "
              "times methods, times integrators", drift_table),
    PaperItem("anderson-critchley-fig-8", "Fig 8", "Redundant five-bar manipulator: independent coordinates beside an "
              "independent solution", fig_8),
    PaperItem("anderson-critchley-fig-10", "Fig 10", "Ladders of several lengths and the equivalent pendulum: one "
              "trajectory",
              fig_10),
    PaperItem("anderson-critchley-fig-11", "Fig 11", "Ladder: cost over the number of cells, constraints not "
              "considered, traditional, RCR", fig_11),
)
