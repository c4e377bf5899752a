"""Ball joints that close loops, in runs whose stages leave them out: they are where their links are, whatever reads."""

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.simulate import equations
from bellcrank.simulate.idle_joints import IdleJoints, idle_joints


def rssr() -> bc.Mechanism:
    """A spatial four-bar: crank, coupler with balls at both ends, rocker; the coupler spins about itself."""
    m = bc.Mechanism("rssr", gravity=(0.0, 0.0, -9.81))
    crank = m.add_body("crank", bc.Inertia.rod(1.0, (0, 0, 0), (0.2, 0, 0)))
    coupler = m.add_body("coupler", bc.Inertia.box(0.5, (0.9, 0.05, 0.03), (0.45, 0, 0)))
    rocker = m.add_body("rocker", bc.Inertia.rod(0.8, (0, 0, 0), (0.6, 0, 0)))
    m.add_joint("A", bc.Revolute("z"), m.ground, crank)
    m.add_joint("B", bc.Spherical(), crank, coupler, bc.Pose((0.2, 0, 0)))
    m.add_joint("C", bc.Spherical(), coupler, rocker, bc.Pose((0.9, 0, 0)), bc.Pose((0.6, 0, 0)))
    m.add_joint("D", bc.Revolute("y"), m.ground, rocker, bc.Pose((0.8, 0.1, 0.0)))
    return m


def measured_off(system: bc.System, result: bc.Result) -> float:
    """How far loop joints are from where their links are."""
    q = np.array(result.q)
    return float(np.abs(system.plans.loops.measured(q, 0.0) - q).max())


@pytest.mark.filterwarnings("ignore")  # of steps as long as these
@pytest.mark.parametrize("stepper", ["rk4", "rk8", "semi_implicit"])
def test_idle_balls_are_where_their_links_are(stepper: str) -> None:
    """Steps in which the coupler turns by 1.2 rad about itself: loop joints are measured, not integrated."""
    system = bc.compile(rssr(), cut=["C"])
    start = system.assemble(u={"A": 3.0, "B.wx": 60.0})
    made = system.simulate(start, 0.4, step=0.02, stepper=stepper)
    assert measured_off(system, made) < 1e-13
    speeds = system.project(np.array(made.q), np.array(made.u)).u
    assert np.abs(speeds - np.array(made.u)).max() < 1e-10 * np.abs(speeds).max()


@pytest.mark.parametrize("states", [1, 5])
def test_runs_agree_with_those_that_integrate_them(states: int, monkeypatch: pytest.MonkeyPatch) -> None:
    system = bc.compile(rssr(), cut=["C"])
    start = system.assemble(u={"A": 3.0})
    if states > 1:
        start = start.replace(np.repeat(start.q[None], states, 0), np.linspace(0.5, 1.0, states)[:, None] * start.u)
    found: list[object] = []

    def noted(*given: object) -> IdleJoints | None:
        found.append(idle_joints(*given))  # type: ignore[arg-type]
        return found[-1]  # type: ignore[return-value]

    monkeypatch.setattr(equations, "idle_joints", noted)
    made = bc.compile(rssr(), cut=["C"]).simulate(start, 0.5, step=1e-3)
    assert found and isinstance(found[0], IdleJoints)
    monkeypatch.setattr(equations, "idle_joints", lambda *given: None)
    other = bc.compile(rssr(), cut=["C"]).simulate(start, 0.5, step=1e-3)
    for name in ("q", "u"):
        assert np.abs(np.array(made[name]) - np.array(other[name])).max() < 1e-10


def test_what_reads_a_ball_keeps_it() -> None:
    """A traced controller that reads the ball at which the loop is cut sees it in every stage, as it does if the loop
    is cut elsewhere."""
    def control(t: float, q: Any, u: Any) -> dict[str, Any]:
        return {"A": -0.3 * u["A"] - 0.2 * u["C"][2] - q["C"][3]}

    runs = []
    for cut in ("B", "C"):
        system = bc.compile(rssr(), cut=[cut])
        start = system.assemble(u={"A": 3.0})
        runs.append(np.array(system.simulate(start, 0.5, step=1e-3, control=bc.Traced(control)).q))
    assert np.abs(runs[0] - runs[1]).max() < 1e-7
