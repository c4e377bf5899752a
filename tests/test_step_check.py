"""Steps that are too long for a motion: told with the coordinate and a step that will do; good runs say nothing."""

from __future__ import annotations

import json
import re
import warnings
from typing import Any

import numpy as np
import pytest

import bellcrank as bc


def run(machine: bc.System, *args: Any, **options: Any) -> tuple[bc.Result, str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = machine.simulate(*args, **options)
    return result, " ".join(str(w.message) for w in caught)


@pytest.fixture(scope="module")
def linkage() -> bc.System:
    """A four-bar with a brake on its crank: its energy may go down, so that the account of energy says nothing."""
    m = bc.load("four_bar")
    m.add_joint_spring("brake", "A", stiffness=0.0, damping=0.05)
    return bc.compile(m)


def test_a_crank_that_turns_too_far_in_a_step(linkage: bc.System) -> None:
    state = linkage.assemble(q={"A": 0.5}, u={"A": 34.0})
    result, told = run(linkage, state, 2.0, step=0.04)
    assert result.attrs["status"] == "finished" and result.attrs["warnings"] in told
    assert re.search(r"steps of 0\.04 s are too long for this motion: '[ABC]\.angle' turns by [12]\.?\d* rad", told)
    better = float(re.search(r"take step=([\d.e-]+)", told)[1])
    assert 5e-4 <= better < 0.01
    good, nothing = run(linkage, state, 2.0, step=better)
    exact = linkage.simulate(state, 2.0, stepper="dop853", output=np.array([2.0]))
    assert not nothing and "warnings" not in good.attrs
    far, near = (abs(float(r.q[-1, 0] - exact.q[-1, 0])) for r in (result, good))
    assert far > 0.5 and near < 0.1 * far  # it was needed, and it helps


def test_batches_say_which_state(linkage: bc.System) -> None:
    """Also one that is neither the first nor the last."""
    states = linkage.assemble(q={"A": np.full(3, 0.5)}, u={"A": np.array([1.0, 34.0, 2.0])})
    result, told = run(linkage, states, 1.0, step=0.04)
    assert "state 1: steps of 0.04 s are too long" in told
    assert [(i, status) for i, status, _ in json.loads(result.attrs["remarks"])] == [(1, "finished")]


def test_a_flywheel_may_turn_far() -> None:
    """Its steps are exact, however fast it is; servos elsewhere make it a machine that may gain energy."""
    m = bc.Mechanism("wheels", gravity=(0, 0, 0))
    m.add_body("wheel", bc.Inertia.rod(1.0, (-1, 0, 0), (1, 0, 0)))
    m.add_body("arm", bc.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
    m.add_joint("spin", bc.Revolute("z"), m.ground, "wheel")
    m.add_joint("hinge", bc.Revolute("z"), m.ground, "arm")
    m.add_servo("hold", "hinge", stiffness=10.0, damping=1.0)
    system = bc.compile(m, backend="numpy")
    assert run(system, ([0.0, 0.3], [1000.0, 0.0]), 1.0, step=0.01)[1] == ""


def vibration(damping: float) -> bc.System:
    m = bc.Mechanism("block", gravity=(0, 0, 0))
    m.add_body("block", bc.Inertia.rod(1.0, (0, -0.1, 0), (0, 0.1, 0)))
    m.add_joint("slide", bc.Prismatic("x"), m.ground, "block")
    m.add_joint_spring("spring", "slide", stiffness=100.0, damping=damping)
    return bc.compile(m, backend="numpy")


@pytest.mark.parametrize(("step", "wrong"), [(0.2, True), (0.01, False)])
def test_vibrations_need_some_steps_a_period(step: float, wrong: bool) -> None:
    """10 rad/s; rk4 damps what it cannot follow, and so does the damper: energy says nothing."""
    told = run(vibration(0.05), ([0.1], [0.0]), 4.0, step=step)[1]
    assert ("'slide.slide' swings faster than they can follow" in told and "step=0.0" in told) == wrong
    assert wrong or not told


def test_vibrations_of_one_state_of_a_batch() -> None:
    told = run(vibration(0.05), (np.array([[0.0], [0.0], [0.1]]), np.zeros((3, 1))), 4.0, step=0.2)[1]
    assert "state 2: steps of 0.2 s are too long for this motion: 'slide.slide' swings" in told


def test_rest_and_rough_methods_say_nothing(linkage: bc.System) -> None:
    """Rounding at rest is as rough as can be; Euler's method is rough by nature at steps that are usual for it."""
    assert run(vibration(1.0), ([0.0], [1e-14]), 1.0, step=0.2)[1] == ""
    state = linkage.assemble(q={"A": 0.5}, u={"A": 8.0})
    assert "too long" not in run(linkage, state, 1.0, step=0.005, stepper="semi_implicit")[1]


@pytest.mark.parametrize("pace", (1, 7, 1000))
def test_what_is_told_does_not_depend_on_pieces(linkage: bc.System, pace: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bellcrank.simulate.courses.Course.adapt", lambda self, seconds, most: setattr(
        self, "pace", float(pace)))
    state = linkage.assemble(q={"A": 0.5}, u={"A": 34.0})
    told = run(linkage, state, 2.0, step=0.04)[1]
    monkeypatch.undo()
    assert told and told == run(linkage, state, 2.0, step=0.04)[1]
