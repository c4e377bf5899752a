"""Simulation of machines that are too large for one graph: rolled schedules, springs between distant links."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.simulate.reference import ReferenceRun, Rhs
from bellcrank.simulate.steppers import STEPPERS


def sprung_chain(links: int = 60) -> bc.Mechanism:
    m = bc.Mechanism("sprung chain", gravity=(0, -9.81, 0))
    last: object = m.ground
    for i in range(links):
        body = m.add_body(f"b{i}", bc.Inertia.rod(1.0, (0, 0, 0), (0.3, 0, 0)))
        m.add_joint(f"j{i}", bc.Revolute("z"), last, body, parent_pose=bc.Pose((0.3 if i else 0.0, 0, 0)),  # type: ignore[arg-type]
                    child_pose=bc.Pose((0.02, 0.05, 0.01)))
        last = body
    m.add_spring("end", m.ground, "b59", (3.0, 0.5, 0.0), (0.3, 0.0, 0.0), stiffness=300.0, damping=2.0, length=1.0)
    m.add_spring("cross", "b10", "b40", (0.1, 0.0, 0.0), (0.2, 0.05, 0.0), stiffness=80.0, damping=1.0, length=2.0)
    return m


def reference(system: bc.System, state: bc.State, steps: int, wrenches: object = None) -> np.ndarray:
    from bellcrank.simulate.control import wrench_rows

    rhs = Rhs(system, np.zeros((1, system.nu)), wrench_rows(system, wrenches, 1))
    run = ReferenceRun(rhs, STEPPERS["rk4"], np.concatenate([state.q, state.u])[None], 0.0, 1e-3)
    return run.advance(steps, steps)[-1, 0, :system.nq]


@pytest.mark.parametrize("wrenches", [None, {"b5": [0.0, 0.0, 1.0, 0.0, 3.0, 0.0]}])
def test_springs_between_distant_links_are_compiled(wrenches: object) -> None:
    system = bc.compile(sprung_chain())
    assert system.kernels.springs_outside
    state = system.assemble()
    result = system.simulate(state, 0.05, wrenches=wrenches)
    assert result.attrs["status"] == "finished"
    assert np.abs(result.q.values[-1] - reference(system, state, 50, wrenches)).max() < 1e-12


def test_compiled_spring_wrenches_are_those_of_the_system() -> None:
    system = bc.compile(sprung_chain())
    rng = np.random.default_rng(3)
    q, u = rng.normal(size=system.nq), rng.normal(size=system.nu)
    from bellcrank.scalar.evaluation import evaluate
    from bellcrank.simulate.equations import _spring_graph
    from bellcrank.topology.tree import wrench_order

    arrays = {"q": q, "u": u}
    got = np.array(evaluate(_spring_graph(system), lambda key: arrays[key[0]][key[1]]), dtype=float).reshape(-1, 6)
    expected = bc.analyze.element_wrenches(system, q, u)[wrench_order(system.model.tree)]
    assert np.abs(expected).max() > 1.0
    assert np.abs(got - expected).max() < 1e-11 * np.abs(expected).max()


@pytest.mark.everyday(2)
@pytest.mark.parametrize(("stepper", "duration", "beside", "step", "allowed"), [
    ("rk4", 0.01, "rk4", 1e-3, 1e-12), ("semi_implicit", 0.02, "semi_implicit", 1e-3, 1e-12),  # same steps: rounding
    ("dop853", 0.05, "rk8", 0.01, 1e-9)])  # other steps: its tolerance
def test_rolled_ladder_follows_the_reference(stepper: str, duration: float, beside: str, step: float,
                                             allowed: float) -> None:
    """At all samples. The dense method is slow here, so that it takes few steps."""
    system = bc.compile(bc.load("ladder", cells=20), schedule="rolled")
    state = system.assemble(q={"arm0.angle1": 0.4}, u={"arm0.angle1": 0.7})
    got = system.simulate(state, duration, stepper=stepper, output=step)
    assert got.attrs["largest_loop_error"] < 1e-13
    other = bc.compile(bc.load("ladder", cells=20), method="dense")
    expected = other.simulate(state, duration, stepper=beside, step=step, output=step)
    assert got.q.shape == expected.q.shape and len(got.time) > 5
    assert np.abs(got.q.values - expected.q.values).max() < allowed
