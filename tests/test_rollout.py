"""Rollouts: what acts on each state, threads, and states that are put back to the bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc


def cart() -> bc.Mechanism:
    """A cart with a pendulum on a servo; mass, gain and aim are parameters."""
    m = bc.Mechanism("cart")
    cart = m.add_body("cart", bc.Inertia(2.0))
    rod = m.add_body("rod", bc.Inertia.rod(m.parameter("mass", 1.0), (0, 0, 0), (0.5, 0, 0)))
    m.add_joint("slide", bc.Prismatic("x"), m.ground, cart)
    m.add_joint("pin", bc.Revolute("y"), cart, rod)
    m.add_servo("servo", "pin", target=m.parameter("aim", 0.0), stiffness=m.parameter("gain", 30.0), damping=3.0)
    return m


def boxes() -> bc.Mechanism:
    m = bc.Mechanism("box")
    m.add_joint("free", bc.Free(), m.ground, m.add_body("box", bc.Inertia.box(1.0, (0.2, 0.2, 0.2))))
    m.add_shape("box", bc.Box((0.2, 0.2, 0.2)), role="collision")
    m.add_shape(m.ground, bc.Plane(), role="collision")
    m.add_contact("floor", m.ground, "box", friction=0.4)
    return m


def test_what_is_given_to_every_state_acts_as_in_runs() -> None:
    """Forces, parameters, wrenches and targets of every state, changed between calls, against runs one by one."""
    count, h = 5, 1e-3
    rng = np.random.default_rng(1)
    system = bc.compile(cart())
    q, u = rng.normal(size=(count, 2)), rng.normal(size=(count, 2))
    tau, push = rng.normal(size=(count, 2)), rng.normal(size=(count, 2, 6))
    mass, gain, aim = rng.uniform(0.5, 2.0, count), rng.uniform(10.0, 40.0, count), rng.normal(size=count)
    motion = bc.rollout(system, (q, u), step=h)
    motion.step(tau, 20, parameters={"mass": mass, "gain": 25.0}, wrenches=push, targets={"servo": aim})
    motion.step(steps=10, parameters={"gain": gain})
    motion.step(steps=10, wrenches={"rod": push[:, 0]})
    for i in range(count):
        one = system.with_parameters(mass=mass[i], gain=25.0, aim=aim[i])
        state = one.simulate((q[i], u[i]), 20 * h, step=h, tau=tau[i], wrenches=push[i]).state()
        one = one.with_parameters(gain=gain[i])
        state = one.simulate(state, 10 * h, step=h, tau=tau[i], wrenches=push[i]).state()
        state = one.simulate(state, 10 * h, step=h, tau=tau[i], wrenches={"rod": push[i, 0]}).state()
        assert np.abs(motion.q[i] - state.q).max() < 1e-13
        assert np.abs(motion.u[i] - state.u).max() < 1e-12
    assert np.abs(motion.outputs({"aim": lambda at: at.q("pin")})["aim"] - motion.q[:, 1]).max() < 1e-14


def test_wrenches_and_parameters_with_contacts() -> None:
    """A box that is pushed along the floor: as in a run; more forces are let act in between without a jump."""
    system = bc.compile(boxes())
    q = np.array([[1.0, 0, 0, 0, 0, 0, 0.1]])
    motion = bc.rollout(system, (np.repeat(q, 3, 0), np.zeros((3, 6))), step=1e-3, stepper="moreau")
    motion.step(steps=10)
    motion.step(steps=50, wrenches={"box": np.array([[0, 0, 0, f, 0, 0] for f in (1.0, 8.0, 12.0)])})
    for i, force in enumerate((1.0, 8.0, 12.0)):
        start = system.simulate((q[0], np.zeros(6)), 0.01, step=1e-3, stepper="moreau")
        end = system.simulate(start, 0.05, step=1e-3, stepper="moreau", wrenches={"box": [0, 0, 0, force, 0, 0]})
        assert np.abs(motion.q[i] - end.state().q).max() < 1e-9


@pytest.mark.parametrize("stepper", ["rk4", "moreau"])
def test_states_are_restored_to_the_bit(stepper: str, tmp_path: Path) -> None:
    system = bc.compile(boxes() if stepper == "moreau" else bc.load("four_bar"))
    if stepper == "moreau":
        q = np.repeat([[1.0, 0, 0, 0, 0, 0, 0.15]], 9, 0)
        start: Any = (q, np.random.default_rng(0).normal(size=(9, 6)))
    else:
        speeds = np.linspace(1.0, 3.0, 9)
        start = system.assemble(q={"A": np.linspace(0.2, 1.0, 9)}, u={"A": speeds})
    motion = bc.rollout(system, start, step=1e-3, stepper=stepper)
    motion.step(steps=60)
    saved, path = motion.state, tmp_path / "state.npz"
    motion.step(steps=40)
    there = motion.state
    motion.restore(saved)
    assert motion.t == saved.t and (motion.q == saved.q).all()
    motion.step(steps=40)
    assert (motion.q == there.q).all() and (motion.u == there.u).all()
    saved.save(path)
    other = bc.rollout(system, start, step=1e-3, stepper=stepper)
    other.restore(bc.State.load(path))
    other.step(steps=15)
    other.step(steps=25)
    assert (other.q == there.q).all() and (other.u == there.u).all()


def test_threads_change_no_number() -> None:
    system = bc.compile(bc.load("four_bar"))
    start = system.assemble(q={"A": np.linspace(0.2, 1.0, 301)}, u={"A": np.linspace(1.0, 3.0, 301)})
    found = []
    for threads in (1, 2, 3):
        motion = bc.rollout(system, start, step=1e-3, threads=threads)
        for _ in range(3):
            motion.step(steps=200)
        found.append((motion.q, motion.u))
        assert len(motion._shares(200)) == threads
    assert all((q == found[0][0]).all() and (u == found[0][1]).all() for q, u in found)


def test_wrong_input_is_named_and_changes_nothing() -> None:
    motion = bc.rollout(bc.compile(cart()), (np.zeros((3, 2)), np.zeros((3, 2))), step=1e-3)
    before = motion.state
    for given, text in (({"parameters": {"mas": 1.0}}, "no parameter 'mas'.*mass"),
                        ({"parameters": {"mass": [1.0, 2.0]}}, r"shape \(3,\)"),
                        ({"parameters": {"mass": np.nan}}, "not finite"),
                        ({"targets": {"serve": 1.0}}, "no servo 'serve'.*servo"),
                        ({"wrenches": np.zeros((4, 2, 6))}, r"wrenches must have the shape"),
                        ({"wrenches": {"wheel": np.zeros(6)}}, "no body called 'wheel'")):
        with pytest.raises((bc.errors.ModelError, bc.errors.StateError), match=text):
            motion.step(**given)
    with pytest.raises(bc.errors.ModelError):
        motion.step(np.ones(2), parameters={"mass": 2.0, "mas": 1.0}, wrenches=np.ones((2, 6)))
    assert motion.state == before
    motion.step(steps=3)  # as if nothing had been given
    other = bc.rollout(bc.compile(cart()), (np.zeros((3, 2)), np.zeros((3, 2))), step=1e-3)
    other.step(steps=3)
    assert (motion.q == other.q).all() and (motion.u == other.u).all()
    with pytest.raises(bc.errors.StateError, match="one time"):
        motion.restore(before.replace(before.q, t=np.zeros(3)))
    with pytest.raises(bc.errors.StateError, match="not one of the times"):
        motion.restore(before.replace(before.q, t=0.00051))
    fixed = cart()
    fixed.add_servo("other", "slide", target=0.5, stiffness=1.0)
    motion = bc.rollout(bc.compile(fixed), (np.zeros((3, 2)), np.zeros((3, 2))), step=1e-3)
    with pytest.raises(bc.errors.ModelError, match="let it be a parameter"):
        motion.step(targets={"other": 1.0})
