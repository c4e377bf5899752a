"""Anderson & Critchley, section 4.3: the spatial ladder, its trajectories (Fig 10) and its cost (Fig 11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.compiled.compile import compile
from bellcrank.compiled.system import System
from bellcrank.errors import ModelError
from bellcrank.examples import load
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.papers.counting import best_times, exponent
from bellcrank.papers.item import Agreement, ItemResult, PaperPlot, PlotLine, table_of
from bellcrank.papers.reference_data import reference

__all__ = ["fig_10", "fig_11"]


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
    return ItemResult(table, plot, _growth(cells, counts), (
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


def _growth(cells: Sequence[int], counts: dict[str, list[float]]) -> tuple[Agreement, ...]:
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
