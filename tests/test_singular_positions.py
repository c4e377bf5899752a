"""Runs pass positions in which constraints become dependent for an instant: parallelograms that lie flat."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import bellcrank as bc
from bellcrank.simulate.crossing import Crossing

#: what energy may be lost, per link [J]; steps of first order lose much more than that anywhere
LIMIT, ROUGH = 1e-6, 0.03
STEPPERS = (("rk4", 1e-3), ("gauss", 5e-3), ("dop853", None), ("semi_implicit", 1e-3))


@cache
def machine(cells: int, method: str = "auto") -> bc.System:
    return bc.compile(bc.load("n_four_bars", cells=cells), method=method)


def lost(system: bc.System, result: bc.Result) -> float:
    """The largest error of the energy, per link [J]."""
    energy = system.energy(result.q.values, result.u.values)
    return float(np.abs(energy - energy[0]).max()) / len(system.body_names)


def flat(system: bc.System, angle: float = -np.pi / 2) -> np.ndarray:
    """All arms at an angle; zero is upright."""
    return np.array([angle if name.startswith(("arm", "rear")) else -angle for name in system.joint_names])


def alike(system: bc.System, q: np.ndarray) -> float:
    """How far arms are from being parallel, which they are on the branch of smooth motion."""
    arms = [i for i, name in enumerate(system.joint_names) if name.startswith("arm")]
    return float(np.abs(q[..., arms] - q[..., arms[:1]]).max())


@pytest.mark.parametrize("cells", (1, 2))
@pytest.mark.parametrize(("stepper", "step"), STEPPERS)
def test_flat_positions_are_passed(cells: int, stepper: str, step: float | None) -> None:
    system = machine(cells)
    result = system.simulate(system.assemble(u={"arm0": -1.0}), 1.4, stepper=stepper, step=step)
    assert result.attrs["status"] == "finished"
    assert stepper == "dop853" or result.attrs["crossings"] >= 2  # it may step over them
    assert lost(system, result) < (ROUGH if stepper == "semi_implicit" else LIMIT)
    assert alike(system, result.q.values) < 1e-8 and result.q.values[-1, 0] < -1.6 * np.pi
    assert result.attrs["largest_loop_error"] < 1e-9


@pytest.mark.parametrize("method", ("reduction", "kane", "momenta"))
def test_with_other_methods(method: str) -> None:
    system = machine(1, method)
    state = system.assemble(q=flat(system, -1.4), u={"arm0": -4.5})
    result = system.simulate(state, 0.1)
    assert result.attrs["status"] == "finished" and result.attrs["crossings"] == 1
    assert lost(system, result) < LIMIT and result.q.values[-1, 0] < -1.7


def test_several_cells_in_a_short_stretch() -> None:
    system = machine(5)
    state = system.assemble(q=flat(system, -1.5), u={"arm0": -5.0})
    result = system.simulate(state, 0.05)
    assert result.attrs["status"] == "finished" and result.attrs["crossings"] == 1
    assert lost(system, result) < LIMIT and alike(system, result.q.values) < 1e-9
    assert result.q.values[-1, 0] < -1.7


@pytest.mark.parametrize("stepper", ("rk4", "dop853"))
def test_at_rest_in_a_singular_position(stepper: str) -> None:
    system = machine(1)
    with pytest.warns(bc.SimulationWarning, match="at rest there, so that its motion is undetermined"):
        result = system.simulate((flat(system), np.zeros(system.nu)), 0.1, stepper=stepper)
    assert result.attrs["status"] == "failed" and "singular" in result.attrs["reason"]


@pytest.mark.parametrize("stepper", ("rk4", "dop853"))
def test_out_of_a_singular_position(stepper: str) -> None:
    """A speed says on which branch the motion goes on."""
    system = machine(1)
    result = system.simulate((flat(system), -0.5 * np.sign(-flat(system))), 0.1, stepper=stepper)
    assert result.attrs["status"] == "finished" and result.attrs["crossings"] >= 1
    assert lost(system, result) < LIMIT and alike(system, result.q.values) < 1e-8


def test_passages_do_not_depend_on_pieces_or_neighbours() -> None:
    """What is sampled does not change the motion, and batches do what single runs do."""
    system = machine(1)
    state = system.assemble(q=flat(system, -1.5), u={"arm0": -5.0})
    alone = system.simulate(state, 0.05, output=0.05)
    often = system.simulate(state, 0.05, output=1e-3)
    both = system.simulate((np.stack([state.q, state.q]), np.stack([state.u, 0.9 * state.u])), 0.05, output=0.05)
    assert np.array_equal(alone.q.values[-1], often.q.values[-1])
    assert np.abs(both.q.values[-1, 0] - alone.q.values[-1]).max() < 1e-12 and both.attrs["crossings"] == 2


def parallelogram(cells: int = 1) -> bc.Mechanism:
    """Arms on hinges of the ground, then couplers between them: flat where all coordinates are zero."""
    m = bc.Mechanism("parallelogram", gravity=(0.0, -9.81, 0.0))
    rod = bc.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    for i in range(cells + 1):
        m.add_joint(f"G{i}", bc.Revolute("z"), m.ground, m.add_body(f"arm{i}", rod), bc.Pose((float(i), 0, 0)))
    for i in range(cells):
        m.add_joint(f"L{i}", bc.Revolute("z"), f"arm{i}", m.add_body(f"coupler{i}", rod), bc.Pose((1.0, 0, 0)))
        m.add_joint(f"R{i}", bc.Revolute("z"), f"coupler{i}", f"arm{i + 1}", bc.Pose((1.0, 0, 0)), bc.Pose((1.0, 0, 0)))
    return m


@pytest.mark.parametrize(("cells", "stepper", "speed", "duration"), (
    (1, "radau5", -6.0, 0.6), (5, "gauss", -1.0, 0.8)))
def test_positions_that_are_flat_at_zero(cells: int, stepper: str, speed: float, duration: float) -> None:
    """The library's own position is next to a singular one, which says nothing of how independent constraints are in
    general. The motion is that of a pendulum."""
    system = bc.compile(parallelogram(cells), cut=[f"L{i}" for i in range(cells)])
    guess = {name: -1.5 if name.startswith("L") else 1.5 for name in system.joint_names}
    state = system.assemble(q={"G0": 1.5}, u={"G0": speed}, guess=guess)
    result = system.simulate(state, duration, stepper=stepper, step=5e-3, output=0.05)
    inertia, moment = (cells + 1) / 3.0 + cells, 9.81 * ((cells + 1) / 2.0 + cells)
    exact = solve_ivp(lambda t, y: [y[1], -moment * np.cos(y[0]) / inertia], (0.0, 2.0 * duration), [1.5, speed],
                      rtol=1e-11, atol=1e-12, t_eval=result.time.values).y[0]
    assert result.attrs["status"] == "finished"
    assert np.abs(result.q.values[:, 0] - exact).max() < 1e-5


def test_a_failure_next_to_a_singular_position_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Crossing, "passage", lambda *arguments: None)
    system = machine(5)
    with pytest.warns(bc.SimulationWarning, match="next to a singular position"):
        system.simulate(system.assemble(q=flat(system, -1.5), u={"arm0": -5.0}), 0.05)
