"""K.S. Anderson and J.H. Critchley: recursive coordinate reduction, by items.

The paper prints no geometry, masses or initial states: those of its figures are chosen here. The four-bar is Saha &
Schiehlen's, the ladder has masses that make the motion the same for every number of cells, as the paper asks.

Legs of two rods in a plane, pinned together at one point, solved without any of the library's mechanics.

Every rod has its own place (x, y, angle) of its middle; pins are constraints between them; accelerations and pin forces
come from one dense system, and a general integrator follows the motion. It stands in for the independent program that
Anderson & Critchley compare with (section 4.2).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.compiled.compile import compile
from bellcrank.compiled.system import System
from bellcrank.errors import ModelError
from bellcrank.examples import load
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.papers.item import Agreement, ItemResult, Paper, PaperItem, PaperPlot, PlotLine, table_of
from bellcrank.papers.measurements import (
    best_times,
    exponent,
    four_bar_by_hand,
    four_bar_start,
    reference,
    simulated,
    state_of,
)
from bellcrank.simulate.run import SimulationWarning

__all__ = ["ITEMS", "SOURCE"]


# -- legs of two rods in a plane, pinned together at one point, solved without any of the library's mechanics ---
@dataclass(frozen=True)
class PlanarLegs:
    """Legs on the ground, each of two slender rods, with torsion springs at their bases; all tips are one point."""

    bases: Floats  #: (legs, 2) [m]
    lengths: Floats  #: (legs, 2)
    masses: Floats  #: (legs, 2)
    stiffness: float  #: of the springs [N m/rad]
    rest: Floats  #: angles of the inner rods where the springs are at rest
    gravity: float = 9.81  #: along -y

    def _pins(self) -> list[tuple[int, float, int, float]]:
        """(rod, arm, other rod, its arm): arms from the middle along the rod; rods are numbered leg by leg."""
        half = 0.5 * self.lengths
        pins = []
        for leg in range(len(self.bases)):
            inner, outer = 2 * leg, 2 * leg + 1
            pins += [(inner, -half[leg, 0], -1, 0.0), (inner, half[leg, 0], outer, -half[leg, 1])]
            if leg:
                pins.append((1, half[0, 1], outer, half[leg, 1]))
        return pins

    def accelerations(self, angles: Floats, rates: Floats) -> Floats:
        """Angular accelerations of all rods, from their absolute angles and rates."""
        rods = len(angles)
        mass = self.masses.ravel()
        inertia = mass * self.lengths.ravel() ** 2 / 12.0
        pins = self._pins()
        size = 3 * rods
        matrix = np.zeros((size + 2 * len(pins), size + 2 * len(pins)))
        right = np.zeros(len(matrix))
        matrix[range(size), range(size)] = np.stack([mass, mass, inertia], axis=1).ravel()
        right[1:size:3] = -mass * self.gravity
        right[2:size:6] = -self.stiffness * (angles[::2] - self.rest)
        along = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        for k, (a, arm_a, b, arm_b) in enumerate(pins):
            row = size + 2 * k
            for rod, arm, sign in ((a, arm_a, 1.0), (b, arm_b, -1.0)):
                if rod < 0:
                    continue
                place = sign * np.array([[1.0, 0.0, -arm * along[rod, 1]], [0.0, 1.0, arm * along[rod, 0]]])
                matrix[row:row + 2, 3 * rod:3 * rod + 3] += place
                matrix[3 * rod:3 * rod + 3, row:row + 2] += place.T
                right[row:row + 2] += sign * arm * along[rod] * rates[rod] ** 2
        return np.asarray(np.linalg.solve(matrix, right)[2:size:3])

    def motion(self, angles: Floats, times: Floats) -> Floats:
        """Absolute angles of all rods at the times, from rest."""
        from scipy.integrate import solve_ivp

        n = len(angles)
        found = solve_ivp(lambda t, y: np.concatenate([y[n:], self.accelerations(y[:n], y[n:])]),
                          (float(times[0]), float(times[-1])), np.concatenate([angles, np.zeros(n)]), method="DOP853",
                          t_eval=times, rtol=1e-11, atol=1e-13)
        return np.asarray(found.y[:n].T)


# -- anderson & Critchley, section 4.3: the spatial ladder, its trajectories (Fig 10) and its cost (Fig 11) ---
def ladder_state(system: System, values: Sequence[float]) -> Floats:
    """Coordinates or speeds of all tree joints from the two of one arm."""
    parts: list[float] = []
    for name in system.joint_names:
        parts += list(values) if name.startswith("arm") else [-values[1] if name.startswith("inner") else values[1]]
    return np.array(parts)


def pendulum(times: Floats) -> Floats:
    """The equivalent pendulum of two angles: (J_x c^2 + J_z s^2) q1' and J_y q2' by their equations of motion."""
    from scipy.integrate import solve_ivp

    jx, jy, jz, first = 1.132, 1.092, 0.05, 1.28

    def slope(t: float, y: Floats) -> Floats:
        q1, q2, u1, u2 = y
        c, s = np.cos(q2), np.sin(q2)
        inertia = jx * c * c + jz * s * s
        return np.array([u1, u2, (2.0 * (jx - jz) * c * s * u2 * u1 - 9.81 * first * np.sin(q1) * c) / inertia,
                         (-(jx - jz) * s * c * u1 * u1 - 9.81 * first * np.cos(q1) * s) / jy])

    found = solve_ivp(slope, (0.0, float(times[-1])), [0.6, 0.4, -0.5, 1.0], method="DOP853", t_eval=times, rtol=1e-12,
                      atol=1e-14)
    return np.asarray(found.y.T)


def fig_10(short: bool) -> ItemResult:
    """Ladders of several lengths and the equivalent pendulum: one trajectory."""
    cells = (1, 4) if short else (1, 2, 4, 8, 16)
    known = reference("ladder")
    duration = 0.5 if short else 2.0
    paths = {}
    for n in cells:
        system = compile(load("ladder", cells=n), "reduction")
        run = system.simulate((ladder_state(system, (0.6, 0.4)), ladder_state(system, (-0.5, 1.0))), duration,
                              stepper="dop853", rtol=1e-11, atol=1e-13, output=0.05)
        paths[n] = run["q"].sel(coordinate=["arm0.angle1", "arm0.angle2"]).values
    time = run["time"].values
    single = pendulum(time)
    table = table_of(["time [s]", "q1, pendulum [rad]", "q2, pendulum [rad]",
                      *(f"{n} cell{'s' * (n > 1)}: off by [rad]" for n in cells)], time, single[:, 0], single[:, 1],
                     *(np.abs(path - single[:, :2]).max(axis=1) for path in paths.values()))
    at = [round(t / 0.05) for t in known["t"] if t <= duration]
    agreements = []
    for n, path in paths.items():
        expected = np.stack([known["q1"], known["q2"]], axis=1)[:len(at)]
        agreements.append(Agreement(f"{n} cells: largest difference at {len(at)} times [rad]",
                                    float(np.abs(path[at] - expected).max()), 0.0, "reference", 1e-9))
        agreements.append(Agreement(f"{n} cells: largest difference to the pendulum [rad]",
                                    float(np.abs(path - single[:, :2]).max()), 0.0, "formula", 1e-9))
    plot = PaperPlot("time [s]", "angle [rad]", (
        *(PlotLine(f"q{k + 1}, {n} cells", time, path[:, k]) for k in (0, 1) for n, path in paths.items()),
        *(PlotLine(f"q{k + 1}, pendulum", time, single[:, k], "o") for k in (0, 1))))
    return ItemResult(table, plot, tuple(agreements))


def without_joints(machine: Mechanism, names: Sequence[str]) -> Mechanism:
    """The machine without some of its joints: the constraints that they close are not considered."""
    out = Mechanism(f"{machine.name}, opened", gravity=machine.gravity)
    for body in machine.bodies:
        out.add_body(body.name, body.inertia)
    known = [out.ground.name, *(body.name for body in machine.bodies)]
    for r in machine.joints:
        if r.name not in names:
            out.add_joint(r.name, r.joint, known[r.parent], known[r.child], r.parent_pose, r.child_pose)
    return out


def fig_11(short: bool) -> ItemResult:
    """Cost of one forward dynamics of the ladder over its cells: three curves."""
    cells = (1, 2, 4) if short else (1, 2, 4, 8, 16, 32, 64)
    most = 4 if short else 16  #: cells of the traditional method: its unrolled code grows with the cube
    curves = {name: make for name, make in _CURVES.items() if name != _OWN_TREE or _covered()}
    counts: dict[str, list[float]] = {name: [] for name in curves}
    times: dict[str, list[float]] = {name: [] for name in curves}
    for n in cells:
        calls: dict[str, Callable[[], object]] = {}
        for name, make in curves.items():
            if name == "traditional" and n > most:
                continue
            system = make(n)
            counts[name].append(float(system.operation_count().total))
            if not short and (name != "traditional" or n <= _TIMED):
                q, u = (ladder_state(system, values) for values in ((0.6, 0.4), (-0.5, 1.0)))
                calls[name] = system.bind("forward_dynamics", q, u, np.zeros(system.nu))
        for name, seconds in best_times(calls, 0.3).items() if calls else ():
            times[name].append(seconds * 1e6)
    rows = [(n, 4 * n + 2, 4 * n, *(_at(kept[name], i) for kept in (counts, times) for name in curves))
            for i, n in enumerate(cells)]
    table = table_of(["cells", "n", "m", *(f"{name}, operations" for name in curves),
                      *(f"{name} [µs]" for name in curves)], *zip(*rows, strict=True))
    grid = np.array(cells, dtype=float)
    plot = PaperPlot("cells L (n = 4L + 2 coordinates, m = 4L constraints)", "operations of one forward "
                     "dynamics", tuple(
        PlotLine(_LABELS[name], grid[:len(values)], np.array(values), style)
        for (name, values), style in zip(counts.items(), ("o-", "s-", "^-", "v:"), strict=False)),
        log_x=True, log_y=True)
    return ItemResult(table, plot, _cost_growth(cells, counts), (
        "Unconstrained: the chain that remains when the Hooke joints to the ground are cut, without closing it. "
        "Traditional: `kane` with that tree, which is the paper's; with the cuts that the library chooses itself, one "
        "arm to a tree, `kane` is linear, too. RCR: `reduction`, with the library's tree, and with the paper's own, "
        "which is linear as well. Operations are exact; times are of one call on one core.",))


_OWN_TREE = "RCR, paper's tree"
#: cells up to which the traditional method is timed: beyond, compiling its code takes minutes
_TIMED = 8


def _hooke(n: int) -> list[str]:
    return [f"arm{i}" for i in range(1, n + 1)]


_CURVES: dict[str, Callable[[int], System]] = {
    "unconstrained": lambda n: compile(without_joints(load("ladder", cells=n), _hooke(n)), "kane", schedule="unrolled"),
    "traditional": lambda n: compile(load("ladder", cells=n), "kane", cut=_hooke(n), schedule="unrolled"),
    "RCR": lambda n: compile(load("ladder", cells=n), "reduction"),
    _OWN_TREE: lambda n: compile(load("ladder", cells=n), "reduction", cut=_hooke(n))}

_LABELS = {"unconstrained": "(i) constraints not considered", "traditional": "(ii) traditional O(n)",
           "RCR": "(iii) RCR (reduction)", _OWN_TREE: "(iii) RCR with the paper's tree"}


def _covered() -> bool:
    """Whether `reduction` takes the paper's own tree, cut at the Hooke joints; otherwise only the library's."""
    try:
        _CURVES[_OWN_TREE](2)
    except ModelError:
        return False
    return True


def _at(values: list[float], i: int) -> float | str:
    return values[i] if i < len(values) else "-"


def _cost_growth(cells: Sequence[int], counts: dict[str, list[float]]) -> tuple[Agreement, ...]:
    """Exponents of growth with the number of cells, between the two largest."""
    found = {name: exponent(cells[:len(values)], values) for name, values in counts.items()}
    both = len(counts["traditional"]) - 1
    return (
        Agreement("unconstrained: exponent of growth", found["unconstrained"], 1.0, "printed", 0.2),
        Agreement("RCR: exponent of growth", found["RCR"], 1.0, "printed", 0.2),
        Agreement("traditional: exponent of growth", found["traditional"], 3.0, "printed", float("inf"),
                  f"still rising at {cells[both]} cells: the terms n m^2 and m^3 begin to rule over the linear ones"),
        Agreement(f"traditional over RCR at {cells[both]} cells is above 1 (1: yes)",
                  float(counts["traditional"][both] > counts["RCR"][both]), 1.0, "printed"))


# -- how far loops open in 10 s: what `simulate` closes, times methods, times integrators, on three machines ---
CLOSINGS = ("none", "velocity", "position")
METHODS = ("kane", "elimination", "reduction", "momenta")
STEPPERS = ("rk4", "gauss", "dop853")
TABLE_STEP = 5e-3  #: of the fixed-step integrators [s]


def _start(name: str, system: System) -> tuple[np.ndarray, np.ndarray]:
    """Where a machine begins to move."""
    if name == "four_bar":
        return four_bar_start(), np.zeros(4)
    if name == "ladder":
        return ladder_state(system, (0.6, 0.4)), ladder_state(system, (-0.5, 1.0))
    state = system.assemble(q={"arm": -0.12930036652171667})  # the quarter car, its wheel 5 cm up
    return state.q, state.u


def _row(name: str, method: str, stepper: str, duration: float) -> tuple[str | float, ...] | None:
    """The largest loop error for each of what can be closed; nothing if the method does not cover the machine."""
    try:
        system = compile(load(name), method)
    except ModelError:
        return None
    found: list[float] = []
    for closing in CLOSINGS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimulationWarning)
            run = system.simulate(_start(name, system), duration, step=None if stepper == "dop853" else TABLE_STEP,
                                  stepper=stepper, rtol=1e-9, atol=1e-12, output=0.1, closing=closing)
        found.append(float(run.attrs["largest_loop_error"]) if run.attrs["status"] == "finished" else float("nan"))
    return (name, method, stepper, *found)


def drift_table(short: bool) -> ItemResult:
    """Largest loop errors."""
    machines = ("four_bar",) if short else ("four_bar", "quarter_car", "ladder")
    duration = 1.0 if short else 10.0
    cases = [(name, method, stepper) for name in machines for method in (METHODS[:1] if short else METHODS)
             for stepper in (STEPPERS[:1] if short else STEPPERS)]
    rows = [row for case in cases if (row := _row(*case, duration)) is not None]
    table = table_of(["machine", "method", "integrator", *(f"closing {c} [m]" for c in CLOSINGS)],
                     *zip(*rows, strict=True))
    errors = {c: np.array(table.column(f"closing {c}"), dtype=float) for c in CLOSINGS}
    agreements = (
        Agreement("closing position: largest error of all [m]", float(errors["position"].max()), 0.0, "ours", 1e-13),
        Agreement("closing velocity: no error is larger than with none (1: yes)",
                  float((errors["velocity"] <= 1.01 * errors["none"] + 1e-13).all()), 1.0, "printed"))
    x = np.arange(float(len(rows)))
    plot = PaperPlot("row of the table", f"largest loop error in {duration:g} s [m]", tuple(
        PlotLine(f"closing {c}", x, np.maximum(e, 1e-17), style) for (c, e), style in zip(errors.items(), "os^",
                                                                                          strict=True)), log_y=True)
    return ItemResult(table, plot, agreements, (
        f"{duration:g} s of motion; fixed steps of {STEP:g} s, dop853 with a relative tolerance of 1e-9. `momenta` "
        "with closing none carries σ along, and so it does with closing velocity where steps are not fixed. The ladder "
        "does not drift: its loops are closed by linear relations between coordinates, which every integrator keeps. A "
        "method that does not cover a machine has no row.",))


# -- K ----------------------------------------------------------------------------------------------
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
