"""Elements that have no force in a state are named: by single calls, in compiled runs, and in batches of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.math import log, sqrt


def slider(add: Callable[[bc.Mechanism], object], backend: str = "numpy") -> bc.System:
    m = bc.Mechanism("slider", gravity=(0, 0, 0))
    m.add_joint("x", bc.Prismatic("x"), m.ground, m.add_body("block", bc.Inertia(1.0, inertia=(1, 1, 1))))
    add(m)
    return bc.compile(m, backend=backend)


ENDS = ("ground", "block", (0, 0, 0), (0, 0, 0))
TROUBLES: dict[str, tuple[Callable[[bc.Mechanism], object], str]] = {
    "gas": (lambda m: m.add_gas_spring("strut", *ENDS, force=10.0, length=1.0, reach=0.5),
            "spring 'strut': it is pushed in by 0.8 m"),
    "oil": (lambda m: m.add_hydraulic_cylinder("lift", *ENDS, head_area=1e-4, rod_area=5e-5, closed=0.6, stroke=0.5,
                                               dead_volume=1e-6), "spring 'lift': at a length of 0.2 m no volume"),
    "law": (lambda m: m.add_joint_force("root", "x", lambda at: sqrt(at.q("x") - 0.5)),
            "element 'root' gives no finite number"),
    "wrench": (lambda m: m.add_wrench("jet", "block", law=lambda at: (log(at.q("x") - 0.5), 0.0, 0.0)),
               "element 'jet' gives no finite number"),
    "state": (lambda m: m.add_state("seen", lambda at: log(at.q("x") - 0.5)),
              "the rate of state 'seen' gives no finite number"),
    "quote": (lambda m: m.add_force_between("driver's", *ENDS, lambda at: sqrt(at.element("driver's").length - 0.5)),
              "element \"driver's\" gives no finite number"),
}


@pytest.mark.parametrize("kind", TROUBLES)
def test_single_states(kind: str) -> None:
    add, said = TROUBLES[kind]
    system = slider(add)
    q, u = np.zeros(system.nq), np.zeros(system.nu)
    q[0] = 0.2
    with pytest.raises(bc.SingularError, match=said):
        system.forward_dynamics(q, u)
    q[0] = 0.9
    assert np.isfinite(system.forward_dynamics(q, u)).all()


@pytest.mark.parametrize("stepper", ["rk4", "dopri5"])
def test_runs_name_the_law(stepper: str) -> None:
    """The state at which a run ends is sound; what it was heading for is not."""
    system = slider(TROUBLES["law"][0], "llvm")
    with pytest.warns(bc.SimulationWarning, match="element 'root' gives no finite number"):
        run = system.simulate(([0.9], [-10.0]), 0.1, stepper=stepper, **({"step": 1e-3} if stepper == "rk4" else {}))
    assert run.attrs["status"] == "failed" and "root" in run.attrs["reason"]
    with pytest.warns(bc.SimulationWarning):
        many = system.simulate(([[0.9], [0.9]], [[-10.0], [10.0]]), 0.1, stepper=stepper,
                               **({"step": 1e-3} if stepper == "rk4" else {}))
    assert "root" in many.attrs["reason"]


@pytest.mark.filterwarnings("ignore::bellcrank.SimulationWarning")
def test_runs_name_the_gas_spring() -> None:
    run = slider(TROUBLES["gas"][0], "llvm").simulate(([0.9], [-10.0]), 0.1, step=1e-3)
    assert "spring 'strut': it is pushed in by" in run.attrs["reason"] and "smaller steps" in run.attrs["reason"]
