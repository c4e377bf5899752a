"""S.K. Saha and W.O. Schiehlen: recursive kinematics and dynamics of closed loops, by items.

The paper gives lengths and masses and no moments of inertia, centres of mass or assembly branches: rods are slender and
uniform here, and both branches are computed. Its curves are drawn without numbers, so that independent solutions are
what items are compared with; the few times that its text states are compared as well.

Saha & Schiehlen, forced and feedback simulation: Figs 8, 13, eq. (37).

Forced: the torques of the inverse dynamics, sampled every 0.02 s, act on the machine, and nothing pulls it back. Where
the motion is unstable, errors grow; when it leaves the desired motion depends on the machine, on the integrator, and on
how torques are held between samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.analyze.driven import drive
from bellcrank.arrays import Floats
from bellcrank.compiled.compile import compile
from bellcrank.compiled.system import System
from bellcrank.examples import load
from bellcrank.papers.item import Agreement, ItemResult, Paper, PaperItem, PaperPlot, PlotLine, table_of
from bellcrank.papers.measurements import reference, state_of
from bellcrank.scalar.functions import sin
from bellcrank.simulate.control import Sampled

__all__ = ["ITEMS", "SOURCE"]


# -- the two machines of Saha & Schiehlen and the motion that their cranks follow, eqs. (35), (36), (38), (39) ---
DURATION = 20.0  #: T of (36) and (39) [s]
SAMPLE = 0.02  #: their step [s]

#: the branch that the paper shows, as far as its text tells
TAKEN = {"four_bar": "open_elbow_up", "five_bar": "elbow_down"}


@dataclass(frozen=True)
class PaperMachine:
    """A machine of the paper; `driven` are the places of its cranks in q and u."""

    name: str
    cranks: tuple[str, ...]
    driven: tuple[int, ...]
    start: tuple[float, ...]  #: of the cranks [rad]
    end: tuple[float, ...]
    symbols: tuple[str, ...]  #: of the joints, as suffixes
    tip: tuple[str, float, tuple[float, ...]]  #: a point: its body, how far along it, lengths of the chain to it

    @cached_property
    def system(self) -> System:
        """With forces at the cranks."""
        return compile(load(self.name), actuated=list(self.cranks))

    @cached_property
    def minimal(self) -> System:
        """With the cranks' rates as independent speeds, in the paper's method."""
        return compile(load(self.name), "complement", actuated=list(self.cranks), independent=list(self.cranks))

    @property
    def branches(self) -> tuple[str, ...]:
        """Ways to assemble it, that of the paper first."""
        return tuple(sorted(reference(self.name), key=lambda b: b != TAKEN[self.name]))

    def reference(self, branch: str) -> Any:
        """Independent solutions on a branch."""
        return reference(self.name)[branch]

    def labels(self, symbol: str) -> list[str]:
        """Names of a quantity of all joints."""
        return [f"{symbol}{suffix}" for suffix in self.symbols]

    def laws(self) -> dict[str, Callable[[Any], Any]]:
        """The cranks' angles as functions of time, (35)."""
        return {name: _cycloid(a, b) for name, a, b in zip(self.cranks, self.start, self.end, strict=True)}

    def desired(self, t: float) -> tuple[Floats, Floats, Floats]:
        """Angles, rates and accelerations of the cranks at a time, (35) differentiated."""
        x, turn = min(t / DURATION, 1.0), 2.0 * math.pi
        start, way = np.array(self.start), np.array(self.end) - np.array(self.start)
        return (start + way * (x - math.sin(turn * x) / turn), way * (1.0 - math.cos(turn * x)) / DURATION,
                way * turn * math.sin(turn * x) / DURATION**2)


def _cycloid(start: float, end: float) -> Callable[[Any], Any]:
    def law(t: Any) -> Any:
        x = t * (1.0 / DURATION)
        return start + (end - start) * (x - sin(x * (2.0 * math.pi)) * (0.5 / math.pi))

    return law


MACHINES = {
    "four_bar": PaperMachine("four_bar", ("A",), (0,), (math.radians(30.0),), (math.radians(90.0),), ("1", "2", "3"),
                             ("coupler", 1.0, (0.3, 1.0))),
    "five_bar": PaperMachine("five_bar", ("leg1.1", "leg2.1"), (0, 2), (math.radians(30.0),) * 2,
                             (math.radians(90.0), math.radians(70.3)), ("1(1)", "2(1)", "1(2)", "2(2)"),
                             ("link1.2", 1.1, (0.6, 1.1)))}


# -- saha & Schiehlen, forced and feedback simulation -----------------------------------------------
#: what counts as having left the desired motion [rad]
LEFT = np.radians(1.0)


def _forced(machine: PaperMachine, branch: str, duration: float) -> tuple[Floats, Floats, Floats]:
    """Times, desired and simulated crank angles."""
    times = np.asarray(SAMPLE * np.arange(round(min(duration, DURATION) / SAMPLE) + 1), dtype=float)
    start = state_of(machine.system, machine.reference(branch)["driven"]["theta"][0])
    wanted = drive(machine.system, machine.laws(), times, guess=start)
    torque = wanted["tau"].values[:, machine.driven]

    def held(t: float, q: Floats, u: Floats) -> dict[str, float]:
        now = torque[min(round(t / SAMPLE), len(times) - 1)]
        return dict(zip(machine.cranks, now.tolist(), strict=True))

    run = machine.system.simulate(start, duration, step=5e-3, control=Sampled(held, SAMPLE),
                                  output=SAMPLE)
    n = run.sizes["time"]
    return times[:n], wanted["q"].values[:n, machine.driven], run["q"].values[:, machine.driven]


def _forced_item(name: str, durations: tuple[float, float], printed: float, why: str, short: bool) -> ItemResult:
    machine = MACHINES[name]
    duration = durations[0] if short else durations[1]
    labels = [machine.labels("θ")[i] for i in machine.driven]
    names, columns, lines, agreements = ["time [s]"], [], [], []
    for branch in machine.branches[:1] if short else machine.branches:
        times, wanted, found = _forced(machine, branch, duration)
        off = np.abs(found - wanted).max(axis=1)
        early = round(1.0 / SAMPLE)
        agreements.append(Agreement(f"{branch}: largest error in the first second [rad]", float(off[:early].max()), 0.0,
                                    "printed", 2e-4, "torques are held for 0.02 s between samples"))
        if off.max() > LEFT:
            left = float(times[int(np.argmax(off > LEFT))])
            agreements.append(Agreement(f"{branch}: leaves the desired motion by a degree at [s]", left, printed,
                                        "printed", float("inf"), why))
        padded = [np.concatenate([x, np.full((len(times) - len(x), x.shape[1]), np.nan)]) for x in (wanted, found)]
        for k, label in enumerate(labels):
            names += [f"{label} desired, {branch} [rad]", f"{label} simulated, {branch} [rad]"]
            columns += [padded[0][:, k], padded[1][:, k]]
            lines += [PlotLine(f"{label} simulated, {branch}", times, found[:, k])]
            if branch == machine.branches[0]:
                lines.append(PlotLine(f"{label} desired", times, wanted[:, k], ":"))
    length = min(len(c) for c in columns)
    grid = SAMPLE * np.arange(length)
    return ItemResult(table_of(names, grid, *(c[:length] for c in columns)), PaperPlot("time [s]", "θ of the cranks "
                                                                                       "[rad]",
                                                                                       tuple(lines)), tuple(agreements))


def fig_8(short: bool) -> ItemResult:
    """Four-bar under the torques of Fig 6."""
    return _forced_item("four_bar", (8.0, 12.0), 2.25, "not explained by the integrator: on this machine errors do not "
                        "grow in the first seconds, and a start that is wrong by 0.01 rad is off by no more than that "
                        "at 2.25 s. The machine of the paper differs in something that is not printed: the direction "
                        "of gravity, the masses or the branch", short)


def fig_13(short: bool) -> ItemResult:
    """Five-bar under the torques of Fig 11."""
    return _forced_item("five_bar", (4.5, 5.0), 3.2, "the paper's program stopped there, \"as it apparently hits a "
                        "singular configuration\". elbow_up fits that: it has left the desired motion by then; "
                        "elbow_down still follows it. Fig 12 fits elbow_down: the two figures point to different "
                        "branches. Here the motion goes on through singular positions of the cranks", short)


# -- feedback ---------------------------------------------------------------------------------------------------------
def _tracked(machine: PaperMachine, branch: str, duration: float, offset: float = 0.0, period: float = SAMPLE
             ) -> tuple[Floats, Floats]:
    """Times and errors of the cranks under (37) with λ = 1, started `offset` off."""
    system = machine.minimal
    start = state_of(system, machine.reference(branch)["driven"]["theta"][0])
    first = dict(zip(machine.cranks, (np.array(machine.start) + offset).tolist(), strict=True))
    state = system.assemble(q=first, guess=start)

    def law(t: float, q: Floats, u: Floats) -> Floats:
        wanted, rate, second = machine.desired(t)
        model = system.reduced(q, u)
        order = [list(model.entries).index(i) for i in machine.driven]
        pull = second - 2.0 * (u[list(machine.driven)] - rate) - (q[list(machine.driven)] - wanted)
        torque = np.zeros(system.nu)  # (37): I tau_e + C theta'; the bias holds the weights as well
        torque[list(machine.driven)] = model.mass_matrix[np.ix_(order, order)] @ pull + model.bias[order]
        return torque

    run = system.simulate(state, duration, step=5e-3, control=Sampled(law, period), output=SAMPLE)
    time = run["time"].values
    wanted = np.array([machine.desired(float(t))[0] for t in time])
    return time, run["q"].values[:, machine.driven] - wanted


def _over_time(what: str, error: Floats, origin: str, allowed: float) -> list[Agreement]:
    """The error in the first second, which is judged, and in the whole run, which is shown."""
    first = round(1.0 / SAMPLE) + 1
    found = [Agreement(f"{what} in the first second [rad]", float(error[:first].max()), 0.0, origin, allowed)]
    if len(error) > first:
        found.append(Agreement(f"{what} [rad]", float(error.max()), 0.0, origin, float("inf"), _HELD))
    return found


def feedback(short: bool) -> ItemResult:
    """Four-bar and five-bar under (37) with λ = 1, on the desired motion and off it."""
    duration = 1.0 if short else DURATION
    names, columns, lines, agreements = ["time [s]"], [], [], []
    for name, machine in MACHINES.items():
        for branch in machine.branches[:1] if short else machine.branches:
            time, error = _tracked(machine, branch, duration)
            agreements += _over_time(f"{name}, {branch}: largest error", np.abs(error).max(axis=1), "printed", 1e-4)
            names.append(f"{name}, {branch}, error [rad]")
            columns.append(np.abs(error).max(axis=1))
            lines.append(PlotLine(f"{name}, {branch}", time, np.maximum(columns[-1], 1e-9)))
    machine = MACHINES["four_bar"]
    branch = machine.branches[0]
    fine = float(np.abs(_tracked(machine, branch, duration, period=SAMPLE / 4)[1]).max())
    agreements.append(Agreement("four_bar: error with torques held 0.02 s over that with 0.005 s",
                                float(columns[0].max()) / fine, 4.0, "formula", 0.5, "it goes to zero with the period"))
    off = 0.1
    time, error = _tracked(machine, branch, duration, off)
    law = off * (1.0 + time) * np.exp(-time)  # e'' + 2 e' + e = 0
    names += ["four_bar, started 0.1 rad off [rad]", "0.1 (1 + t) exp(-t) [rad]"]
    columns += [error[:, 0], law]
    lines += [PlotLine("four_bar, started 0.1 rad off", time, np.maximum(np.abs(error[:, 0]), 1e-9), "--"),
              PlotLine("0.1 (1 + t) exp(-t)", time, np.maximum(law, 1e-9), ":")]
    agreements += _over_time("four_bar, started off: largest difference to the law of the error",
                             np.abs(error[:, 0] - law), "formula", 2e-3)
    return ItemResult(table_of(names, time, *columns), PaperPlot("time [s]", "error of the cranks [rad]", tuple(lines),
                                                                 log_y=True), tuple(agreements), (
        "The law is written with `System.reduced`: τ = I (θd'' - 2λ(θ' - θd') - λ²(θ - θd)) + bias, λ = 1, evaluated "
        "every 0.02 s and held.",))


_HELD = ("\"followed exactly\": torques are held for 0.02 s here, in which those of the weights change, and λ = 1 "
         "corrects slowly")


# -- S ----------------------------------------------------------------------------------------------
SOURCE = Paper(
    "saha-schiehlen", "Saha & Schiehlen",
    "Recursive Kinematics and Dynamics for Parallel Structured Closed-Loop Multibody Systems",
    "Mechanics of Structures and Machines 29(2), 2001", "complement",
    "The method is `complement`. Their inertia matrix I, velocity terms C and Jacobian J of the constrained machine "
    "are what `System.reduced(q, u)` returns for any machine with loops and any method: `mass_matrix`, `bias` (gravity "
    "included) and `jacobian(body, point)`; `saha-schiehlen-eq-25` shows them on both machines. The feedback law (37) "
    "is written with them. The paper's branch is taken to be the open one of the four-bar, and of the five-bar that "
    "with elbows down, which meets its singularity at the time that the text states.")


# -- inverse dynamics: Figs 5, 6, 10, 11 ------------------------------------------------------------------------------
def _driven(machine: PaperMachine, branch: str, short: bool) -> tuple[Floats, dict[str, Floats], dict[str, Floats]]:
    """Times, what is found at them, and the reference at its own times, which are among them."""
    expected = {k: np.array(v) for k, v in machine.reference(branch)["driven"].items()}
    times = expected["t"] if short else np.unique(np.concatenate([expected["t"], np.linspace(0.0, 20.0, 101)]).round(9))
    run = drive(machine.system, machine.laws(), times, guess=state_of(machine.system, expected["theta"][0]))
    known = slice(len(machine.symbols))
    found = {"theta": run["q"].values[:, known], "thetadot": run["u"].values[:, known],
             "thetaddot": run["udot"].values[:, known], "tau": run["tau"].values[:, machine.driven]}
    return times, found, expected


def _inverse(machine: PaperMachine, quantities: tuple[tuple[str, str, str], ...], short: bool, pick: str) -> ItemResult:
    """A figure of quantities (key, symbol, unit) along the driven motion, on both branches."""
    names, columns, lines, agreements = ["time [s]"], [], [], []
    for branch in machine.branches:
        times, found, expected = _driven(machine, branch, short)
        at = [int(np.argmin(np.abs(times - t))) for t in expected["t"]]
        for key, symbol, unit in quantities:
            off = float(np.abs(_apart(found[key][at] - expected[key], key)).max())
            scale = 1.0 + float(np.abs(expected[key]).max())
            agreements.append(Agreement(f"{branch}: {symbol}, largest difference [{unit}]", off, 0.0, "reference",
                                        1e-12 * scale))
            labels = machine.labels(symbol) if key != "tau" else [machine.labels(symbol)[i] for i in machine.driven]
            for k, label in enumerate(labels):
                names.append(f"{label}, {branch} [{unit}]")
                columns.append(found[key][:, k])
                if key == pick:
                    lines += [PlotLine(f"{label}, {branch}", times, found[key][:, k]),
                              PlotLine("", expected["t"], expected[key][:, k], "k.")]
    unit = {key: f"{symbol} [{unit}]" for key, symbol, unit in quantities}[pick]
    return ItemResult(table_of(names, times, *columns), PaperPlot("time [s]", unit, tuple(lines)), tuple(agreements), (
        "The crank angles follow eq. (35) in 20 s; `bellcrank.analyze.drive` computes all else. Points: the "
        "independent solution.",))


def _apart(difference: Floats, key: str = "theta") -> Floats:
    """Angles within half a turn: the independent solutions give some of them elsewhere."""
    return np.asarray((difference + np.pi) % (2.0 * np.pi) - np.pi) if key == "theta" else difference


_KINEMATICS = (("theta", "θ", "rad"), ("thetadot", "θ'", "rad/s"), ("thetaddot", "θ''", "rad/s^2"))


def fig_5(short: bool) -> ItemResult:
    """Four-bar: joint angles, rates and accelerations."""
    return _inverse(MACHINES["four_bar"], _KINEMATICS, short, "theta")


def fig_6(short: bool) -> ItemResult:
    """Four-bar: driving torque."""
    return _inverse(MACHINES["four_bar"], (("tau", "τ", "N m"),), short, "tau")


def fig_10(short: bool) -> ItemResult:
    """Five-bar: joint angles of both legs."""
    return _inverse(MACHINES["five_bar"], _KINEMATICS[:1], short, "theta")


def fig_11(short: bool) -> ItemResult:
    """Five-bar: driving torques."""
    return _inverse(MACHINES["five_bar"], (("tau", "τ", "N m"),), short, "tau")


# -- free simulation: Figs 7, 12 --------------------------------------------------------------------------------------
def fig_7(short: bool) -> ItemResult:
    """Four-bar released from a vertical crank."""
    machine = MACHINES["four_bar"]
    duration = 1.0 if short else 5.0
    names, columns, lines, agreements = ["time [s]"], [], [], []
    for branch in machine.branches:
        known = machine.reference(branch)["free"]
        expected, when = np.array(known["theta"]), np.array(known["t"])
        run = machine.system.simulate(state_of(machine.system, expected[0]), duration, stepper="dop853", rtol=1e-12,
                                      atol=1e-14, output=0.05)
        time, crank = run["time"].values, run["q"].values[:, 0]
        inside = when <= duration + 1e-9
        at = np.rint(when[inside] / 0.05).astype(int)
        off = float(np.abs(_apart(run["q"].values[at, :3] - expected[inside])).max())
        agreements.append(Agreement(f"{branch}: angles, largest difference until {duration:g} s [rad]", off, 0.0,
                                    "reference", 1e-9 if short else 1e-7, "" if short else "the crank comes to rest on "
                                    "the way, where errors of rounding grow"))
        names.append(f"θ1, {branch} [rad]")
        columns.append(crank)
        lines += [PlotLine(f"θ1, {branch}", time, crank), PlotLine("", when[inside], expected[inside, 0], "k.")]
    agreements.append(Agreement("initial crank angle [rad]", float(columns[0][0]), 1.5708, "printed", 5e-5))
    return ItemResult(table_of(names, time, *columns), PaperPlot("time [s]", "θ1 [rad]", tuple(lines)),
                      tuple(agreements))


def fig_12(short: bool) -> ItemResult:
    """Five-bar in free fall, to its singularity and beyond."""
    machine = MACHINES["five_bar"]
    names, columns, lines, agreements = ["time [s]"], [], [], []
    duration = 0.5 if short else 2.0
    for branch in machine.branches:
        known = machine.reference(branch)
        expected, when = np.array(known["free"]["theta"]), np.array(known["free"]["t"])
        run = machine.system.simulate(state_of(machine.system, expected[0]), duration, stepper="dop853", rtol=1e-11,
                                      atol=1e-13, output=0.01)
        time, q = run["time"].values, run["q"].values
        at = np.rint(when / 0.01).astype(int)
        agreements.append(Agreement(f"{branch}: angles until {when[-1]:g} s, largest difference [rad]",
                                    float(np.abs(_apart(q[at, :4] - expected)).max()), 0.0, "reference", 1e-9))
        names += [f"{label}, {branch} [rad]" for label in ("θ1(1)", "θ1(2)")]
        columns += [q[:, 0], q[:, 2]]
        lines += [PlotLine(f"θ1({leg + 1}), {branch}", time, q[:, 2 * leg]) for leg in (0, 1)]
        agreements += _singular(machine, known, branch, duration)
    return ItemResult(table_of(names, time, *columns), PaperPlot("time [s]", "θ1 of both legs [rad]", tuple(lines)),
                      tuple(agreements), (
        "The position in which the paper's program stopped is singular for its coordinates, the two crank angles, and "
        "not for the machine: outer rods in one line. The run goes on through it.",))


def _singular(machine: PaperMachine, known: dict[str, dict[str, list[float]]], branch: str, duration: float
              ) -> list[Agreement]:
    """The singular position, reached by a run that ends there."""
    end = float(np.asarray(known["singular"]["t"]))
    if end > duration:
        return []
    start = state_of(machine.system, np.array(known["free"]["theta"])[0])
    last = machine.system.simulate(start, end, stepper="dop853", rtol=1e-11, atol=1e-13)["q"].values[-1]
    found = [Agreement(f"{branch}: crank angles at the singularity, {end:.5f} s, largest difference [rad]",
                       float(np.abs(last[[0, 2]] - known["singular"]["theta"]).max()), 0.0, "reference", 1e-7)]
    if branch == TAKEN["five_bar"]:
        found.append(Agreement("time of the singularity [s]", end, 1.4, "printed", 0.1, "\"after about 1.4 sec\", "
                               "where the paper's integrator stopped"))
    return found


# -- I, C, J ----------------------------------------------------------------------------------------------------------
def eq_25(short: bool) -> ItemResult:
    """I and C of eq. (25) and J of eq. (14) along the driven motion, by `System.reduced`."""
    rows, agreements, lines = [], [], []
    for name, machine in MACHINES.items():
        for branch in machine.branches:
            known = {k: np.array(v) for k, v in machine.reference(branch)["driven"].items()}
            model = machine.minimal.reduced(state_of(machine.minimal, known["theta"], known["thetadot"]))
            order = [list(model.entries).index(i) for i in machine.driven]
            inertia = model.mass_matrix[:, order][:, :, order]
            torque = (inertia @ known["thetaddot"][:, machine.driven, None])[..., 0] + model.bias[:, order]
            off = _tip_velocity_error(machine, known["theta"], known["thetadot"])
            for t, matrix, bias in zip(known["t"], inertia, model.bias[:, order], strict=True):
                rows.append((name, branch, t, matrix[0, 0], matrix[0, -1] if len(matrix) > 1 else "-",
                             matrix[-1, -1] if len(matrix) > 1 else "-", bias[0], bias[-1] if len(matrix) > 1 else "-"))
            agreements += [
                Agreement(f"{name}, {branch}: I, largest difference [kg m^2]",
                          float(np.abs(inertia - known["inertia"]).max()), 0.0, "reference", 1e-12),
                Agreement(f"{name}, {branch}: I θ'' + C, largest difference to τ [N m]",
                          float(np.abs(torque - known["tau"]).max()), 0.0, "reference", 1e-11),
                Agreement(f"{name}, {branch}: J θ', largest difference to the tip's velocity [m/s]", off, 0.0,
                          "formula", 1e-12)]
            lines.append(PlotLine(f"{name}, {branch}: I11", known["t"], inertia[:, 0, 0], "o-"))
    table = table_of(["machine", "branch", "time [s]", "I11 [kg m^2]", "I12 [kg m^2]", "I22 [kg m^2]", "bias 1 [N m]",
                      "bias 2 [N m]"], *zip(*rows, strict=True))
    return ItemResult(table, PaperPlot("time [s]", "I11 [kg m^2]", tuple(lines)), tuple(agreements), (
        "`model = system.reduced(q, u)`: I is `model.mass_matrix`, C θ' with the weights is `model.bias`, J is "
        "`model.jacobian(body, point)`, for any machine with loops, in batches.",))


def _tip_velocity_error(machine: PaperMachine, q: Floats, u: Floats) -> float:
    """J times the independent rates against the velocity of the tip, written out for rods in a plane."""
    model = machine.minimal.reduced(state_of(machine.minimal, q, u))
    body, length, chain = machine.tip
    jacobian = model.jacobian(body, (length, 0.0, 0.0))[:, 3:5]
    found = (jacobian @ u[:, list(model.entries), None])[..., 0]
    angles, rates = np.cumsum(q[:, :len(chain)], axis=1), np.cumsum(u[:, :len(chain)], axis=1)
    across = np.stack([-np.sin(angles), np.cos(angles)], axis=-1)
    expected = (np.array(chain)[:, None] * rates[..., None] * across).sum(axis=1)
    return float(np.abs(found - expected).max())


ITEMS = (
    PaperItem("saha-schiehlen-fig-5", "Fig 5", "Four-bar: joint angles, rates and accelerations along the driven "
              "motion",
              fig_5),
    PaperItem("saha-schiehlen-fig-6", "Fig 6", "Four-bar: driving torque along the driven motion", fig_6),
    PaperItem("saha-schiehlen-fig-7", "Fig 7", "Four-bar: free motion from a vertical crank", fig_7),
    PaperItem("saha-schiehlen-fig-8", "Fig 8", "Four-bar: forced motion under the torques of Fig 6, which leaves the "
              "desired one", fig_8),
    PaperItem("saha-schiehlen-eq-37", "Eq. (37)", "Four-bar and five-bar: feedback that holds the desired "
              "motion", feedback),
    PaperItem("saha-schiehlen-fig-10", "Fig 10", "Five-bar: joint angles along the driven motion", fig_10),
    PaperItem("saha-schiehlen-fig-11", "Fig 11", "Five-bar: driving torques along the driven motion", fig_11),
    PaperItem("saha-schiehlen-fig-12", "Fig 12", "Five-bar: free fall, through the position in which the paper's "
              "program stopped", fig_12),
    PaperItem("saha-schiehlen-fig-13", "Fig 13", "Five-bar: forced motion under the torques of Fig 11", fig_13),
    PaperItem("saha-schiehlen-eq-25", "Eqs. (14), (25)", "I, C and J of the constrained machines, by "
              "`System.reduced`", eq_25),
)
