"""What items of several papers share: counts and times, runs without correction of positions, independent solutions.

Runs without correction of positions: how far loops open.

Constraints enter an integration at one of three levels. At the level of accelerations (AC) the state is (q, u) and only
udot satisfies the loops. At the level of velocities (VC) the state is (q, v) with the independent speeds v, and
u = N(q) v satisfies them in every stage. In (q, p) the momenta carry sigma, the integral of the multipliers (Naudet,
Lefeber & Terze, eqs. 5-8), or are reset to p = M u after every step. `simulated` is what the library offers,
``simulate(closing=...)``; `drift_run` does the same by hand, with the classical Runge-Kutta formula around calls for
one state, to compare the two.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.compiled.compile import compile
from bellcrank.compiled.system import System
from bellcrank.examples import load
from bellcrank.examples.chains import general_chain
from bellcrank.mechanism.joints import Cylindrical, Free, Planar, Prismatic, Revolute, Screw, Spherical, Universal, Weld
from bellcrank.mechanism.joints.joint import Joint
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.count import OperationCount
from bellcrank.simulate.run import SimulationWarning
from bellcrank.system.counts import count_operations
from bellcrank.system.state import State

__all__ = ["CLOSINGS", "KINDS", "LEVELS", "LineFit", "best_times", "closed_chain", "exponent", "fit_line",
           "four_bar_by_hand", "four_bar_start", "multiplications_of", "per_body", "reference", "simulated", "state_of"]


# -- what the items count and time: operations per body, fits, best times of calls that take turns ---
#: joint types by name, as chains of them are made
KINDS: dict[str, Callable[..., Joint]] = {
    "revolute": Revolute, "prismatic": Prismatic, "screw": lambda: Screw("z", 0.07), "cylindrical": Cylindrical,
    "universal": Universal, "planar": Planar, "spherical": Spherical, "free": Free}

#: what closes a chain, by the number of its constraints
CLOSINGS: dict[int, Joint] = {3: Spherical(), 4: Universal(), 5: Revolute("z"), 6: Weld()}


def closed_chain(n: int, kind: str, constraints: int = 0) -> Mechanism:
    """n general bodies in series, the last of them closed to the ground by so many constraints (none: a tree)."""
    chain = general_chain(n, KINDS[kind])
    if constraints:
        chain.add_joint("end", CLOSINGS[constraints], f"link{n - 1}", chain.ground,
                        Pose((0.1, 0.2, 0.3), (0.5, 0.5, 0.5, -0.5)), Pose((0.3, 0.1, -0.2)))
    return chain


def multiplications_of(machine: Mechanism, method: str) -> int:
    """Those of one forward dynamics, counted without making the code. The papers compute no accelerations of joints at
    which loops are cut."""
    return count_operations(compile(machine, method, "numpy").plans, "forward_dynamics", loop_joints=False).muls


@cache
def per_body(kind: str, method: str, constraints: int = 0, function: str = "forward_dynamics", n: int = 6
             ) -> OperationCount:
    """Operations that one more body in the middle of a chain of general bodies costs."""
    fewer, more = (count_operations(compile(closed_chain(k, kind, constraints), method, "numpy",
                                            cut=["end"] if constraints else ()).plans, function, loop_joints=False)
                   for k in (n, n + 1))
    return more.plus(fewer, -1)


class LineFit(NamedTuple):
    """a n + b, and the smallest n from which it is exact."""

    slope: int
    offset: int
    start: int

    def __str__(self) -> str:
        return f"{self.slope}n{self.offset:+d}"


def fit_line(sizes: Sequence[int], values: Sequence[int]) -> LineFit:
    """a and b of a n + b through the last two values.

    >>> str(fit_line([3, 4, 5], [10, 13, 16]))
    '3n+1'
    """
    slope = (values[-1] - values[-2]) // (sizes[-1] - sizes[-2])
    offset = values[-1] - slope * sizes[-1]
    off = [n for n, v in zip(sizes, values, strict=True) if v != slope * n + offset]
    return LineFit(slope, offset, max(off, default=sizes[0] - 1) + 1)


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """p of y ~ x^p between the last two points.

    >>> round(exponent([1.0, 2.0, 4.0], [1.0, 4.0, 16.0]), 9)
    2.0
    """
    return math.log(y[-1] / y[-2]) / math.log(x[-1] / x[-2])


def best_times(calls: Mapping[str, Callable[[], Any]], budget: float) -> dict[str, float]:
    """Seconds of each call: the best of rounds in which all take turns, so that a busy moment favours none.

    `budget` is the time for all together; there are three rounds at least. A round repeats short calls, so that the
    clock can tell them.
    """
    taken: dict[str, float] = dict.fromkeys(calls, float("inf"))
    repeats = {name: max(1, int(2e-4 / max(_once(call), 1e-8))) for name, call in calls.items()}
    end, rounds = time.perf_counter() + budget, 0
    while rounds < 3 or time.perf_counter() < end:
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            taken[name] = min(taken[name], (time.perf_counter() - start) / repeats[name])
        rounds += 1
    return taken


def _once(call: Callable[[], Any]) -> float:
    call()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


# -- independent solutions that items are compared with ---------------------------------------------
@cache
def _all() -> dict[str, Any]:
    return dict(json.loads(files("bellcrank.papers").joinpath("reference_solutions.json").read_text(encoding="utf-8")))


def reference(machine: str) -> Any:
    """The solutions for a machine: those of its branches, where it has several.

    >>> reference("four_bar")["open_elbow_up"]["driven"]["t"][:2]
    [0.0, 2.5]
    """
    return _all()[machine]


def state_of(system: System, angles: npt.ArrayLike, rates: npt.ArrayLike | None = None) -> State:
    """States (...) of all joints from those of the joints that carry links, which references have; at rest without
    rates.

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> known = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
    >>> found = state_of(linkage, known.q[:3], known.u[:3])
    >>> bool(abs(found.q - known.q).max() < 1e-12 and abs(found.u - known.u).max() < 1e-12)
    True
    """
    tree, place = system.model.tree, np.asarray(angles, dtype=float)
    loop = [i for own in tree.loop_joints for i in range(*own.q.indices(tree.nq))]
    q, u = (np.zeros((*place.shape[:-1], n)) for n in (tree.nq, tree.nu))
    q[...] = system.neutral()
    q[..., [i for i in range(tree.nq) if i not in loop]] = place
    q = system.plans.loops.measured(q)
    if rates is not None:
        u[..., ~tree.loop_speeds()] = rates
        u = system.kernels.run("joint_speeds", {"q": q, "u": u}, None, 0.0)
    return system.state(q, u)


# -- runs without correction of positions -----------------------------------------------------------
class DriftRun(NamedTuple):
    """A run sampled after every step."""

    time: Floats
    q: Floats  #: (steps + 1, nq)
    loop_error: Floats  #: the largest of all conditions


#: a level by its name: the method that shows it, and what `simulate` closes
LEVELS = {"acceleration": ("kane", "none"), "velocity": ("reduction", "velocity"), "sigma carried": ("momenta", "none"),
          "sigma reset": ("momenta", "velocity")}


def four_bar_start() -> Floats:
    """The four-bar at rest with a vertical crank, to nine decimals as in Anderson & Critchley, section 4.1."""
    angles = np.array(reference("four_bar")["open_elbow_up"]["free"]["theta"][0]).round(9)
    return np.append(angles, -angles.sum())


@cache
def simulated(method: str, closing: str, step: float, duration: float) -> DriftRun:
    """The four-bar by `System.simulate`, Runge-Kutta with a fixed step, sampled every 0.01 s. It closes the start."""
    system = compile(load("four_bar"), method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # of energy: the step is the paper's
        run = system.simulate((four_bar_start(), np.zeros(4)), duration, step=step, output=0.01, closing=closing)
    return DriftRun(run["time"].values, run["q"].values, run["loop_error"].values)


@cache
def four_bar_by_hand(level: str, step: float, duration: float) -> DriftRun:
    """The same without `simulate`."""
    return drift_run(compile(load("four_bar"), LEVELS[level][0]), four_bar_start(), np.zeros(4), level, step, duration)


Slope = Callable[[Floats], Floats]


def runge_kutta(slope: Slope, y: Floats, h: float) -> Floats:
    """One step."""
    k1 = slope(y)
    k2 = slope(y + 0.5 * h * k1)
    k3 = slope(y + 0.5 * h * k2)
    k4 = slope(y + h * k3)
    return np.asarray(y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))


def drift_run(system: System, q: Floats, u: Floats, level: str, step: float, duration: float) -> DriftRun:
    """Integrate from (q, u) at a `level`: "acceleration", "velocity", "sigma carried" or "sigma reset".

    For machines whose coordinates are the integrals of their speeds.
    """
    n = system.nq
    slope, y, after = _LEVELS[level](system, np.asarray(q, dtype=float), np.asarray(u, dtype=float))
    steps = round(duration / step)
    rows = [y[:n]]
    for _ in range(steps):
        y = after(runge_kutta(slope, y, step))
        rows.append(y[:n])
    path = np.array(rows)
    return DriftRun(np.linspace(0.0, step * steps, steps + 1), path, np.abs(system.loop_error(path)).max(axis=-1))


Level = tuple[Slope, Floats, Callable[[Floats], Floats]]


def _same(y: Floats) -> Floats:
    return y


def _acceleration(system: System, q: Floats, u: Floats) -> Level:
    """(q, u)' = (u, udot)."""
    n = system.nq
    a, b = q.copy(), u.copy()
    call = system.bind("forward_dynamics", a, b, np.zeros(system.nu))

    def slope(y: Floats) -> Floats:
        a[:], b[:] = y[:n], y[n:]
        return np.concatenate([b, call()])

    return slope, np.concatenate([q, u]), _same


def _velocity(system: System, q: Floats, u: Floats) -> Level:
    """(q, v)' = (N v, vdot): dependent speeds from independent ones, as Anderson & Critchley, eqs. (50), (51)."""
    n = system.nq
    first = system.reduced(q, u)
    entries = list(first.entries)

    def slope(y: Floats) -> Floats:
        model = system.reduced(y[:n], u)
        speeds = model.motions @ y[n:]
        assert list(model.entries) == entries  # no dead point on the way
        return np.concatenate([speeds, system.forward_dynamics(y[:n], speeds)[entries]])

    return slope, np.concatenate([q, u[entries]]), _same


def _sigma(reset: bool) -> Callable[[System, Floats, Floats], Level]:
    """(q, p)' by Hamilton's equations."""
    def level(system: System, q: Floats, u: Floats) -> Level:
        n = system.nq
        a, b = q.copy(), system.momenta(q, u, speeds="tree")
        call = system.bind("hamilton", a, b, np.zeros(system.nu))

        def slope(y: Floats) -> Floats:
            a[:], b[:] = y[:n], y[n:]
            return np.asarray(call()).T.ravel()

        def after(y: Floats) -> Floats:
            speeds, _ = system.hamilton(y[:n], y[n:])
            return np.concatenate([y[:n], system.momenta(y[:n], speeds, speeds="tree")])

        return slope, np.concatenate([q, b]), after if reset else _same

    return level


_LEVELS: dict[str, Callable[[System, Floats, Floats], Level]] = {
    "acceleration": _acceleration, "velocity": _velocity, "sigma carried": _sigma(False), "sigma reset": _sigma(True)}
