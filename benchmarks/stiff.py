"""Stiff machines by implicit methods: exact Jacobians beside those by differences, in one run.

    python benchmarks/stiff.py

The flyball governor (springs of 8e5 N/m with 4e4 N s/m, 10 s with output every 10 ms), a quarter car, and a closed
linkage with a stiff bushing. For each method: steps, Jacobians, rounds of Newton's method, evaluations of the equations
of motion (three for every round, and one for every number of the state for a Jacobian by differences), time of a run
(the best of five in turns), and how far the state at the end is off that of `radau5` with tolerances of 1e-12. SciPy's
Radau has the same compiled equations, called from Python, and differences of its own.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from iftomm import flyball_governor
from timing import interleaved, time_text

import bellcrank as bc
from bellcrank.simulate import fixed, machine, varying

METHODS = (("radau5", None), ("radau", 5e-3), ("gauss", 5e-3), ("scipy/Radau", None))


def bushed_linkage() -> bc.Mechanism:
    """A four-bar whose coupler hangs in a rubber bearing of 1e7 N/m."""
    m = bc.Mechanism("four-bar with a bushing", gravity=(0, -9.81, 0))
    for name, size in (("crank", 0.3), ("coupler", 0.8), ("rocker", 0.5)):
        m.add_body(name, bc.Inertia.rod(1.0 + size, (0, 0, 0), (size, 0, 0)))
    m.add_joint("A", bc.Revolute("z"), m.ground, "crank")
    m.add_joint("B", bc.Planar(), "crank", "coupler", parent_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), "coupler", "rocker", parent_pose=bc.Pose((0.8, 0, 0)))
    m.add_joint("D", bc.Revolute("z"), "rocker", m.ground, parent_pose=bc.Pose((0.5, 0, 0)),
                child_pose=bc.Pose((0.9, 0, 0)))
    m.add_bushing("rubber", "crank", "coupler", bc.Pose((0.3, 0, 0)), stiffness=(1e7,) * 3, damping=(1e5,) * 3)
    return m


class Counted:
    """The steppers that runs use."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def watching(self, kind: type[Any]) -> Any:
        def make(*arguments: Any) -> Any:
            self.made.append(kind(*arguments))
            return self.made[-1]

        return make

    def total(self, name: str) -> int:
        return sum(s.memory.get(name) for s in self.made if name in s.memory.layout.integers)


def first_run(system: bc.System, state: Any, exact: bool, **how: Any) -> tuple[Any, Counted]:
    """The first run of a system, with its steppers."""
    counted = Counted()
    with mock.patch.object(machine, "rates_jacobian", machine.rates_jacobian if exact else lambda *_: None), \
            mock.patch.object(fixed, "FixedStepper", counted.watching(fixed.FixedStepper)), \
            mock.patch.object(varying, "AdaptiveStepper", counted.watching(varying.AdaptiveStepper)):
        return system.simulate(state, **how), counted


def compare(name: str, mechanism: bc.Mechanism, duration: float, *, cut: tuple[str, ...] = (), **start: Any) -> None:
    """All methods on one machine."""
    system = bc.compile(mechanism, cut=cut)
    state = system.assemble(**start)
    accurate = system.simulate(state, duration, stepper="radau5", rtol=1e-12, atol=1e-12, output=duration)
    print(f"{name}, {duration:g} s")
    for stepper, step in METHODS:
        options = {"duration": duration, "output": 0.01, "rtol": 1e-8, "atol": 1e-10, "stepper": stepper, "step": step}
        calls, rows = {}, {}
        for how in ("exact", "differences") if "/" not in stepper else ("its own",):
            own = bc.compile(mechanism, cut=cut)
            result, counted = first_run(own, state, how == "exact", **options)
            jacobians = counted.total("differentiated") or counted.total("factored")
            rounds = counted.total("iterations")
            off = float(np.abs(result.q.values[-1] - accurate.q.values[-1]).max())
            evaluations = 3 * rounds + (0 if how == "exact" else (system.nq + system.nu) * jacobians)
            rows[how] = (result.attrs, jacobians, rounds, evaluations, off)
            calls[how] = partial(own.simulate, state, **options)
        took = interleaved(calls, 5)
        for how, (attributes, jacobians, rounds, evaluations, off) in rows.items():
            counts = f"{jacobians:7} {rounds:8} {evaluations:9}" if rounds else " " * 26
            print(f"  {stepper:12} {how:12} {attributes['status']:9} {attributes['steps']:7} steps {counts} "
                  f"{time_text(took[how]):>9}  {off:.1e} off", flush=True)


def main() -> None:
    print(f"  {'':12} {'Jacobians':12} {'':9} {'':13} {'made':>7} {'rounds':>8} {'evaluated':>9} {'a run':>9}")
    compare("flyball governor", flyball_governor(), 10.0, u={"shaft": 2.0 * math.pi})
    compare("quarter car", bc.load("quarter_car"), 2.0)
    compare("four-bar with a bushing", bushed_linkage(), 2.0, cut=("D",), q={"A": 0.8, "B.x": 0.0, "B.y": 0.0},
            u={"A": 2.0, "B.x": 0.0, "B.y": 0.0})


if __name__ == "__main__":
    main()
