"""Many states at once: lanes, threads, parameters, and states that fail beside others that do not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from motions import ball_pendulum, drop, four_bar_rows, system

ALL = ("rk4", "rk8", "semi_implicit", "gauss", "radau", "dopri5", "dop853")


def spread(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 2)), rng.normal(size=(count, 2))


def four_bars(count: int) -> tuple[np.ndarray, np.ndarray]:
    """States of the four-bar with the crank all around and at different speeds."""
    machine = system("four_bar")
    states = [machine.assemble(q={"A": 0.5 + 5.0 * k / count}, u={"A": 1.0 + 3.0 * k / count}) for k in range(count)]
    return np.array([s.q for s in states]), np.array([s.u for s in states])


@pytest.mark.filterwarnings("ignore:.*energy.*stepper=.rk4:bellcrank.SimulationWarning")  # steps are coarse
@pytest.mark.parametrize("stepper", ALL)
@pytest.mark.parametrize("count", (1, 3, 8, 13))
def test_every_size_of_batch(stepper: str, count: int) -> None:
    machine = system("double_pendulum")
    q, u = spread(count)
    run = {"step": 1e-2, "stepper": stepper, "output": 5e-2, "rtol": 1e-7, "atol": 1e-9}
    result = machine.simulate((q, u), 0.2, **run)
    assert result.q.shape == (5, count, 2) and result.attrs["status"] == "finished"
    for k in {0, count // 2, count - 1}:
        one = machine.simulate((q[k], u[k]), 0.2, **run)
        assert np.abs(result.q.values[:, k] - one.q.values).max() < 1e-12
        assert np.abs(result.u.values[:, k] - one.u.values).max() < 1e-11


def test_thousands_of_states() -> None:
    machine = system("double_pendulum")
    q, u = spread(5003)
    result = machine.simulate((q, u), 0.2, step=2e-3, output=0.1)
    assert result.q.shape == (3, 5003, 2)
    for k in (0, 1, 2501, 4999, 5000, 5002):
        one = machine.simulate((q[k], u[k]), 0.2, step=2e-3, output=0.1)
        assert np.abs(result.q.values[:, k] - one.q.values).max() < 1e-13
    drift = np.abs(result["energy"].values - result["energy"].values[0]).max(axis=0)
    assert np.median(drift) < 1e-7


@pytest.mark.parametrize("stepper", ("rk4", "gauss", "dop853"))
@pytest.mark.parametrize("threads", (2, 3))
def test_threads_change_nothing(stepper: str, threads: int) -> None:
    machine = system("four_bar")
    state = four_bars(21)
    runs = [machine.simulate(state, 0.2, step=2e-3, stepper=stepper, output=2e-2, threads=n) for n in (1, threads)]
    assert np.array_equal(runs[0].q, runs[1].q) and np.array_equal(runs[0].u, runs[1].u)


@pytest.mark.parametrize("stepper", ("rk4", "rk8", "gauss", "dopri5"))
@pytest.mark.parametrize("method", ("elimination", "momenta", "recursive"))
def test_loops_in_batches(stepper: str, method: str) -> None:
    machine = system("four_bar", method)
    q, u = four_bars(11)
    result = machine.simulate((q, u), 0.3, step=2e-3, stepper=stepper, output=0.1)
    assert result.attrs["status"] == "finished"
    assert float(result.loop_error.max()) < 1e-12
    for k in (0, 5, 10):
        one = machine.simulate((q[k], u[k]), 0.3, step=2e-3, stepper=stepper, output=0.1)
        assert np.abs(result.q.values[:, k] - one.q.values).max() < 1e-9


def test_independent_speeds_change_state_by_state() -> None:
    machine = bc.compile(bc.load("four_bar"), independent=["C"])
    q, u = four_bars(13)
    u = u * 4.0
    result = machine.simulate((q, u), 1.0, step=1e-3, stepper="rk8", output=0.5)
    assert result.attrs["switches"] >= 2 and result.attrs["status"] == "finished"
    plain = system("four_bar").simulate((q, u), 1.0, step=1e-3, stepper="rk8", output=0.5)
    assert np.abs(result.q - plain.q).max() < 1e-7 and float(result.loop_error.max()) < 1e-12


def test_two_batch_axes_and_broadcasting() -> None:
    machine = system("double_pendulum")
    q, u = spread(6)
    flat = machine.simulate((q, u), 0.1, step=1e-2)
    result = machine.simulate((q.reshape(2, 3, 2), u.reshape(2, 3, 2)), 0.1, step=1e-2)
    assert result.q.dims == ("time", "sample_0", "sample_1", "coordinate")
    assert np.array_equal(result.q.values.reshape(flat.q.shape), flat.q)
    mixed = machine.simulate((q.reshape(2, 3, 2), u[:3]), 0.1, step=1e-2)
    one = machine.simulate((q[4], u[1]), 0.1, step=1e-2)
    assert np.abs(mixed.q.values[:, 1, 1] - one.q.values).max() < 1e-13
    forces = np.arange(12.0).reshape(6, 2)
    pushed = machine.simulate((q, u), 0.1, step=1e-2, tau=forces)
    one = machine.simulate((q[4], u[4]), 0.1, step=1e-2, tau=forces[4])
    assert np.abs(pushed.q.values[:, 4] - one.q.values).max() < 1e-13
    assert np.array_equal(pushed.tau.values[3], forces)


def test_quaternions_in_batches() -> None:
    machine = bc.compile(ball_pendulum())
    rng = np.random.default_rng(4)
    q, u = machine.normalize(rng.normal(size=(10, 4))), rng.normal(size=(10, 3))
    result = machine.simulate((q, u), 1.0, step=5e-3, output=0.1)
    assert np.abs(np.linalg.norm(result.q, axis=-1) - 1.0).max() < 1e-15
    one = machine.simulate((q[7], u[7]), 1.0, step=5e-3, output=0.1)
    assert np.abs(result.q.values[:, 7] - one.q.values).max() < 1e-13


# -- parameters ---------------------------------------------------------------------------------------
def pendulum() -> bc.System:
    m = bc.Mechanism("pendulum")
    length, stiffness = m.parameter("length", 1.0), m.parameter("stiffness", 0.0)
    bob = m.add_body("bob", bc.Inertia.point(1.0, (0.0, 0.0, -length)))
    m.add_joint("hinge", bc.Revolute("x"), m.ground, bob)
    m.add_joint_spring("spring", "hinge", stiffness=stiffness)
    return bc.compile(m)


@pytest.mark.parametrize("stepper", ALL)
def test_batches_of_parameters(stepper: str) -> None:
    machine = pendulum()
    lengths = np.linspace(0.5, 2.0, 11)
    run = {"step": 1e-2, "stepper": stepper, "output": 0.1, "rtol": 1e-8}
    result = machine.with_parameters(length=lengths, stiffness=2.0).simulate(([0.5], [0.0]), 0.5, **run)
    assert result.q.shape == (6, 11, 1)
    for k in (0, 4, 10):
        one = machine.with_parameters(length=lengths[k], stiffness=2.0).simulate(([0.5], [0.0]), 0.5, **run)
        assert np.abs(result.q.values[:, k] - one.q.values).max() < 1e-12
        assert np.abs(result["energy"].values[:, k] - one["energy"].values).max() < 1e-11


@pytest.mark.parametrize("shape", ((2, 3), *(pytest.param(s) for s in ((2, 1), (1, 3), (3,)))))
def test_parameters_with_two_axes(shape: tuple[int, ...]) -> None:
    machine = pendulum()
    lengths = np.linspace(0.5, 2.0, int(np.prod(shape))).reshape(shape)
    q = np.linspace(0.1, 1.0, 6).reshape(2, 3, 1)
    result = machine.with_parameters(length=lengths).simulate((q, np.zeros(1)), 0.2, step=1e-2)
    each = np.broadcast_to(lengths, (2, 3))
    for i in np.ndindex(2, 3):
        one = machine.with_parameters(length=each[i]).simulate((q[i], [0.0]), 0.2, step=1e-2)
        assert np.abs(result.q.values[(slice(None), *i)] - one.q.values).max() < 1e-12


def crank_machine() -> bc.System:
    """A four-bar whose coupler is a parameter: each has its own closed states."""
    m = bc.Mechanism("four-bar", gravity=(0.0, -9.81, 0.0))
    mass = m.parameter("mass", 5.0)
    for name, weight, length in (("crank", 1.5, 0.3), ("coupler", mass, 1.0), ("rocker", 3.0, 0.6)):
        m.add_body(name, bc.Inertia.rod(weight, (0, 0, 0), (length, 0, 0)))
    pin = bc.Revolute("z")
    m.add_joint("A", pin, m.ground, "crank")
    m.add_joint("B", pin, "crank", "coupler", bc.Pose((0.3, 0, 0)))
    m.add_joint("C", pin, "coupler", "rocker", bc.Pose((1.0, 0, 0)))
    m.add_joint("D", pin, "rocker", m.ground, bc.Pose((0.6, 0, 0)), bc.Pose((1.0, 0, 0)))
    return bc.compile(m)


@pytest.mark.parametrize("stepper", ("rk4", "gauss", "dopri5"))
def test_parameters_of_a_linkage(stepper: str) -> None:
    machine = crank_machine()
    _, q, u = four_bar_rows("crossed_elbow_down")
    masses = np.array([5.0, 1.0, 2.0, 20.0, 0.5, 3.0, 4.0, 6.0, 9.0])
    run = {"step": 2e-3, "stepper": stepper, "output": 0.1}
    result = machine.with_parameters(mass=masses).simulate((q[0], u[0]), 0.5, **run)
    assert result.attrs["status"] == "finished" and result.q.shape == (6, 9, 4)
    assert float(result.loop_error.max()) < 1e-12
    plain = system("four_bar").simulate((q[0], u[0]), 0.5, **run)
    assert np.abs(result.q.values[:, 0] - plain.q.values).max() < 1e-9
    one = machine.with_parameters(mass=20.0).simulate((q[0], u[0]), 0.5, **run)
    assert np.abs(result.q.values[:, 3] - one.q.values).max() < 1e-9
    assert np.abs(result.q.values[-1, 3] - result.q.values[-1, 0]).max() > 1e-3


def test_parameters_in_plain_numpy() -> None:
    machine = pendulum()
    m = bc.compile(machine.model.mechanism, backend="numpy").with_parameters(length=[0.5, 1.0, 2.0])
    result = m.simulate(([0.5], [0.0]), 0.1, step=1e-2)
    compiled = machine.with_parameters(length=[0.5, 1.0, 2.0]).simulate(([0.5], [0.0]), 0.1, step=1e-2)
    assert np.abs(result.q - compiled.q).max() < 1e-13


# -- failures -----------------------------------------------------------------------------------------
def cliff() -> bc.Mechanism:
    """The force is not a number below -0.5 m."""
    return drop(law=lambda q, u: 1e-6 * bc.math.sqrt(q + 0.5))


@pytest.mark.parametrize("stepper", ALL)
@pytest.mark.parametrize("count", (4, 9))
def test_a_failing_state_does_not_harm_the_others(stepper: str, count: int) -> None:
    machine = bc.compile(cliff())
    q = np.full((count, 1), 100.0)
    q[2] = 0.0
    with pytest.warns(bc.SimulationWarning, match=f"1 of {count} states could not finish; state 2"):
        result = machine.simulate((q, np.zeros((count, 1))), 1.0, step=1e-2, stepper=stepper, output=0.1)
    assert result.attrs["status"] == "failed"
    good = [k for k in range(count) if k != 2]
    t = result.time.values
    assert np.isfinite(result.q.values[:, good]).all() and float(t[-1]) == 1.0
    assert np.abs(result.q.values[:, good, 0] - (100.0 - 9.81 * t * t / 2)[:, None]).max() < (0.06 if stepper ==
                                                                                             "semi_implicit" else 1e-4)
    bad = result.q.values[:, 2, 0]
    fell = np.sqrt(1.0 / 9.81)
    assert np.isfinite(bad[t < fell - 0.03]).all() and np.isnan(bad[t > fell + 0.03]).all()
    alone = machine.simulate((q[good], np.zeros((count - 1, 1))), 1.0, step=1e-2, stepper=stepper, output=0.1)
    assert np.array_equal(alone.q, result.q.values[:, good])


def test_a_failing_state_in_plain_numpy() -> None:
    machine = bc.compile(cliff(), backend="numpy")
    with pytest.warns(bc.SimulationWarning):
        result = machine.simulate(([[100.0], [0.0]], np.zeros((2, 1))), 0.5, step=5e-2, output=0.1)
    assert float(result.time[-1]) == 0.5 and np.isfinite(result.q.values[:, 0]).all()


def test_all_states_fail() -> None:
    machine = bc.compile(cliff())
    with pytest.warns(bc.SimulationWarning):
        result = machine.simulate((np.zeros((3, 1)), np.zeros((3, 1))), 1.0, step=1e-3, output=0.01)
    assert result.attrs["status"] == "failed"
    assert np.isfinite(result.q.values[result.time.values < 0.31]).all()


def locking() -> tuple[bc.System, Any, Any]:
    """A rod between two cranks that cannot turn all the way: driven into its stretched position, it cannot go on."""
    m = bc.Mechanism("lock", gravity=(0.0, 0.0, 0.0))
    for name, length in (("crank", 0.5), ("coupler", 0.6), ("rocker", 0.5)):
        m.add_body(name, bc.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
    pin = bc.Revolute("z")
    m.add_joint("A", pin, m.ground, "crank")
    m.add_joint("B", pin, "crank", "coupler", bc.Pose((0.5, 0, 0)))
    m.add_joint("C", pin, "coupler", "rocker", bc.Pose((0.6, 0, 0)))
    m.add_joint("D", pin, "rocker", m.ground, bc.Pose((0.5, 0, 0)), bc.Pose((1.0, 0, 0)))
    m.prescribe("A", lambda t: 1.5 + t)
    machine = bc.compile(m)
    return machine, machine.assemble(), 1.0


@pytest.mark.parametrize("stepper", ("rk4", "gauss", "dopri5"))
def test_driven_into_a_dead_position(stepper: str) -> None:
    """The crank's law asks for more than the rods allow: an end with a reason, all before it kept and closed."""
    machine, state, duration = locking()
    with pytest.warns(bc.SimulationWarning, match="lock"):
        result = machine.simulate(state, duration, step=1e-3, stepper=stepper, output=1e-3)
    assert result.attrs["status"] == "failed" and result.attrs["reason"]
    # coupler and rocker stretched: 1.1^2 = 0.25 + 1 - cos(angle)
    dead = np.arccos(0.25 + 1.0 - 1.21) - 1.5
    assert 0.0 < dead < 0.2 and dead - 0.005 < float(result.time[-1]) <= dead + 1e-9
    assert float(result.loop_error.max()) < 1e-9


@pytest.mark.filterwarnings("ignore::bellcrank.SimulationWarning")
def test_energies_of_states_beside_one_that_overflows() -> None:
    """Where a state's energy overflows, those of the others are what they are alone; remarks name the state."""
    machine = system("double_pendulum")
    q, u = np.full((5, 2), 0.3), np.zeros((5, 2))
    u[2] = 4e3
    found, alone = (machine.simulate((a, b), 0.2, step=0.05) for a, b in ((q, u), (q[:2], u[:2])))
    others = [0, 1, 3, 4]
    assert np.isfinite(found["energy"].values[:, others]).all() and np.isnan(found["energy"].values[-1, 2])
    assert np.abs(found["energy"].values[:, :2] - alone["energy"].values).max() < 1e-12
    assert [(k, status) for k, status, _ in json.loads(found.attrs["remarks"])] == [(2, "diverged")]
    assert "remarks" not in alone.attrs


def test_forces_of_rollouts_by_name() -> None:
    """A mapping as everywhere; what is wrong with it is named."""
    linkage = bc.compile(bc.load("four_bar"), actuated=["A"])
    state = linkage.assemble(q={"A": np.array([0.4, 0.5, 0.6])}, u={"A": 1.0})
    one, other = (bc.rollout(linkage, (state.q, state.u), step=1e-3) for _ in range(2))
    one.step({"A": np.array([1.0, 2.0, 3.0])}, steps=5)
    other.step(np.array([[1.0, 0, 0, 0], [2.0, 0, 0, 0], [3.0, 0, 0, 0]]), steps=5)
    assert np.array_equal(one.q, other.q) and repr(one) == "<Rollout of 'four-bar': 3 states, t = 0.005 s>"
    with pytest.raises(bc.ModelError, match=r"rollout: tau: no joint called 'AA'"):
        one.step({"AA": 1.0})
    with pytest.raises(bc.StateError, match=r"tau must have the shape \(3, 4\) or \(4,\), got \(2, 4\)"):
        one.step({"A": np.array([1.0, 2.0])})


def test_rollouts_refuse_nonsense() -> None:
    pendulums = bc.rollout(bc.compile(bc.load("pendulum")), (np.ones((3, 1)), np.zeros((3, 1))), step=1e-3)
    for which in ({}, "x", 3, 10**30, [0.5], [True]):
        with pytest.raises(bc.StateError, match="which must be numbers of states, 0 to 2, or a mask of 3"):
            pendulums.reset(which, ([0.1], [0.0]))
    for state in (3, {}, ([0.1],), ([0.1, 0.2], [0.0]), (np.zeros((3, 1)), [0.0]), ("x", "y")):
        with pytest.raises(bc.StateError, match=r"rollout\.reset: "):
            pendulums.reset([0, 1], state)
    for tau in ("x", int, [1j], [1.0, 2.0]):
        with pytest.raises(bc.StateError, match="rollout: tau"):
            pendulums.step(tau)


def test_rollouts_are_reset_to_the_time_they_have() -> None:
    """A joint that is prescribed is where it is by then."""
    m = bc.Mechanism("lift")
    body = m.add_body("plate", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("lift", bc.Prismatic("z"), m.ground, body)
    m.prescribe("lift", lambda t: 0.3 * t)
    motion = bc.rollout(bc.compile(m), (np.zeros((3, 1)), np.full((3, 1), 0.3)), step=1e-3)
    motion.step(steps=100)
    motion.reset([1], ([0.0], [0.0]))
    assert np.abs(motion.q - 0.03).max() < 1e-12 and np.abs(motion.u - 0.3).max() < 1e-12
