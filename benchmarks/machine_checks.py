"""What a machine must show: all methods agree, loops stay closed, no energy is lost or made."""

from __future__ import annotations

import importlib.util
import time
import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from machine_list import Machine

import bellcrank as bc
from bellcrank.formulations import method_names
from mjcf_peer import lifted

__all__ = ["Agreement", "Choice", "Run", "agreement", "choose", "closed_states", "simulated"]

Floats = npt.NDArray[np.float64]

#: 1/s: what is faster than this is left to an implicit method
STIFF = 3e5
#: points of Gauss in a panel of the integral of lost power
POINTS = 6


# -- methods --------------------------------------------------------------------------------------
class Agreement(NamedTuple):
    """Largest differences of accelerations to the oracle, relative to its largest (at least 1), and methods that do
    not apply, with the reason."""

    apart: dict[str, float]
    refused: dict[str, str]


def closed_states(system: bc.System, machine: Machine, count: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Closed states near the start, moving."""
    rng = np.random.default_rng(seed)
    first = machine.state(system)
    q, u = [], []
    for _ in range(20 * count):
        drift = system.assemble(q=first.q, u=rng.normal(size=system.nu)).u
        try:
            state = system.assemble(q=system.integrate(first.q, 0.1 * drift), u=rng.normal(size=system.nu))
        except bc.AssemblyError:
            continue
        q.append(state.q)
        u.append(state.u)
        if len(q) == count:
            return np.array(q), np.array(u)
    raise bc.AssemblyError(f"{machine.name}: no closed states near the start")


def _opened(system: bc.System, machine: Machine) -> bc.System:
    return system.release(*machine.opened) if machine.opened else system


def agreement(machine: Machine, mechanism: bc.Mechanism, count: int = 2, methods: tuple[str, ...] = ()) -> Agreement:
    """Forward dynamics by every method that applies, beside the dense oracle."""
    oracle = _opened(bc.compile(mechanism, "dense", "numpy"), machine)
    q, u = closed_states(oracle, machine, count)
    tau = np.random.default_rng(1).normal(size=u.shape)
    expected = oracle.forward_dynamics(q, u, tau)
    scale = max(float(np.abs(expected).max(initial=0.0)), 1.0)  # structures have none
    apart, refused = {}, {}
    for method in methods or [m for m in method_names() if m != "dense"]:
        try:
            found = _opened(bc.compile(mechanism, method, "numpy"), machine).forward_dynamics(q, u, tau)
        except bc.BellcrankError as error:
            refused[method] = " ".join(str(error).split())
            continue
        apart[method] = float(np.abs(found - expected).max(initial=0.0)) / scale
    return Agreement(apart, refused)


# -- motion ---------------------------------------------------------------------------------------
class Choice(NamedTuple):
    """A stepper, and the fastest rate [1/s] of the linear model at rest that decided it."""

    stepper: str
    rate: float


def choose(system: bc.System, q: Floats) -> Choice:
    """Explicit steps with error control; where they would be too many (dry friction), an implicit method."""
    if not system.dof:
        return Choice("dop853", 0.0)
    rest = system.assemble(q=q, u=np.zeros(system.nu))
    rate = float(np.abs(np.linalg.eigvals(bc.analyze.linearize(system, rest).A)).max())
    if rate < STIFF:
        return Choice("dop853", rate)
    return Choice("sundials/BDF" if importlib.util.find_spec("sksundae") else "dopri5", rate)


class Run(NamedTuple):
    """What a simulation showed.

    Loop errors are those of positions [m, rad], rates [m/s, rad/s] and accelerations (relative to the largest
    acceleration, at least 1). `balance` [J] is the largest change of energy plus what dampers and friction took;
    `exchanged` [J] the span of the kinetic energy plus what they took, `lost`.
    """

    choice: Choice
    status: str
    steps: int
    wall: float
    position: float
    rate: float
    acceleration: float
    balance: float
    exchanged: float
    lost: float
    reached: float
    samples_missing: int

    @property
    def relative(self) -> float:
        """The balance relative to the energy exchanged."""
        return self.balance / self.exchanged if self.exchanged else 0.0


def simulated(machine: Machine, mechanism: bc.Mechanism, seconds: float) -> Run:
    """Throw the machine from its start and look at the motion: compiled code moves it, the reference backend judges."""
    system, judge = bc.compile(mechanism), bc.compile(mechanism, backend="numpy")
    speeds = machine.speed * np.random.default_rng(0).normal(size=system.nu)
    state = machine.state(system, speeds)
    choice = choose(judge, state.q)
    panels = Panels.of(seconds, choice.rate, machine.panel)
    tolerance = 1e-10 if choice.stepper == "dop853" else 1e-8
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bc.SimulationWarning)  # the status says it
        result = system.simulate(state, seconds, stepper=choice.stepper, output=panels.times.tolist(), rtol=tolerance,
                                 atol=tolerance / 100.0)
    wall = time.perf_counter() - begun
    t, q, u = result.time.values, result.q.values, result.u.values
    energy = judge.energy(q, u) + lifted(judge, q)
    power = np.broadcast_to(bc.analyze.dissipated_power(judge, q, u), t.shape)
    whole = len(t) == len(panels.times)
    lost = panels.integral(power) if whole else np.full(1, np.nan)
    at_edges = energy[::POINTS + 1] if whole else np.full(1, np.nan)
    balance = float(np.abs(at_edges - at_edges[0] + lost).max())
    exchanged = float(np.ptp(judge.kinetic_energy(q, u)) + lost[-1])
    return Run(choice, str(result.attrs["status"]), int(result.attrs["steps"]), wall, *loop_errors(system, judge, q, u),
               balance, exchanged, float(lost[-1]), float(t[-1]), len(panels.times) - len(t))


def loop_errors(system: bc.System, judge: bc.System, q: Floats, u: Floats) -> tuple[float, float, float]:
    """Largest errors of the loops along a motion, by `judge`: positions, rates, accelerations (those of `system`)."""
    udot = system.forward_dynamics(q, u)
    scale = max(1.0, float(np.abs(udot).max(initial=0.0)))
    values = (judge.loop_error(q), judge.loop_rate_error(q, u),
              bc.analyze.loop_acceleration_error(judge, q, u, udot) / scale)
    return tuple(float(np.abs(x).max(initial=0.0)) for x in values)  # type: ignore[return-value]


class Panels(NamedTuple):
    """Sample times for an integral over a run: Gauss points in panels, short ones first, where dampers stop light
    parts. The first time of each panel is its edge."""

    times: Floats
    half: Floats  #: half the width of each panel [s]

    @classmethod
    def of(cls, seconds: float, rate: float, widest: float) -> Panels:
        width, edges = min(widest, 0.3 / max(rate, 1e-9)), [0.0]
        while edges[-1] < seconds:
            edges.append(edges[-1] + width)
            width = min(1.5 * width, widest)
        grid = np.array(edges) * (seconds / edges[-1])
        grid[-1] = seconds
        half = np.diff(grid) / 2.0
        nodes = np.polynomial.legendre.leggauss(POINTS)[0]
        inner = grid[:-1, None] + half[:, None] * (1.0 + nodes)
        return cls(np.append(np.column_stack([grid[:-1], inner]).ravel(), seconds), half)

    def integral(self, values: Floats) -> Floats:
        """From the start to each edge."""
        weights = np.polynomial.legendre.leggauss(POINTS)[1]
        inner = values[:-1].reshape(-1, POINTS + 1)[:, 1:]
        return np.concatenate([[0.0], np.cumsum(inner @ weights * self.half)])
