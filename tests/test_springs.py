"""Springs between distant links: small machines compile them in, large ones act through external wrenches."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
import looped


def sprung_chain(n: int) -> bc.Mechanism:
    m = bc.load("chain", n=n)
    m.add_spring("stay", m.ground, f"link{n - 1}", (0.3, 0.1, 1.0), (0.1, 0.0, 0.2), stiffness=40.0, damping=2.0,
                 length=0.4)
    m.add_spring("across", "link1", f"link{n // 2}", (0, 0, 0.1), (0.1, 0, 0), stiffness=25.0, damping=1.0, length=0.2)
    m.add_joint_spring("twist", "joint3", stiffness=5.0, damping=0.3, rest=0.1)
    return m


def test_large_machines_feel_their_springs() -> None:
    """More links than are compiled in one piece, against the reference text on arrays."""
    machine = sprung_chain(60)
    system, reference = bc.compile(machine), bc.compile(machine, backend="numpy")
    assert system.kernels.springs_outside
    q, u = reference.random_state(np.random.default_rng(0), 3)
    tau = np.random.default_rng(1).normal(size=u.shape)
    wrenches = np.random.default_rng(2).normal(size=(3, 60, 6))
    for given in (None, wrenches):
        expected = reference.forward_dynamics(q, u, tau, wrenches=given)
        found = system.forward_dynamics(q, u, tau, wrenches=given)
        assert np.abs(found - expected).max() < 1e-8 * np.abs(expected).max()
    udot = reference.forward_dynamics(q, u, tau)
    assert np.abs(system.inverse_dynamics(q, u, udot) - tau).max() < 1e-6
    plain = bc.compile(bc.load("chain", n=60)).forward_dynamics(q, u, tau)
    assert np.abs(plain - udot).max() > 1.0
    bound = system.bind("forward_dynamics", q[0].copy(), u[0].copy(), tau[0].copy())
    assert np.abs(bound() - udot[0]).max() < 1e-8 * np.abs(udot).max()
    # what elements say is compiled for machines of any size, by code of their own
    for name in ("element_reports", "pair_wrenches", "stored_energy", "dissipated_power"):
        assert system.kernels.compiled(name, system.kernels.with_springs) is not None, name
    for states in ((q, u), (q[1], u[1])):
        np.testing.assert_allclose(system.energy(*states), reference.energy(*states), rtol=1e-11)
        lost, wanted = (bc.analyze.dissipated_power(s, *states) for s in (system, reference))
        np.testing.assert_allclose(lost, wanted, rtol=1e-9)
        for element, own in reference.element_forces(*states).items():
            for one, two in zip(own[:9], system.element_forces(*states)[element][:9], strict=True):
                np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-9, err_msg=element)


def test_elements_on_joints_of_large_machines_are_compiled() -> None:
    """Without any between links the machine is rolled as a whole; what elements say is not."""
    machine = bc.load("chain", n=52)
    machine.add_joint_spring("twist", "joint3", stiffness=5.0, damping=0.3, rest=0.1)
    system, reference = bc.compile(machine), bc.compile(machine, backend="numpy")
    assert not system.kernels.springs_outside and system.kernels.compiled("element_reports") is not None
    q, u = reference.random_state(np.random.default_rng(0), 2)
    one, two = (s.element_forces(q, u)["twist"] for s in (system, reference))
    np.testing.assert_allclose(one.torque, two.torque, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one.power, two.power, rtol=1e-12)


@pytest.mark.parametrize("name", ("quarter_car", "double_wishbone", "andrews"))
def test_rolled_loops_feel_their_springs(name: str) -> None:
    machine = bc.load(name)
    assert machine.springs
    assert looped.disagreement(machine, "elimination", schedule="rolled") < 1e-11


def test_closing_joint_laws_in_large_machines() -> None:
    machine = bc.load("four_bar_chain", cells=20)
    machine.add_limit("one", "rear3", lower=-2.0, upper=-1.0, stiffness=30.0, damping=2.0)
    machine.add_limit("two", "rear9", lower=1.0, upper=2.0, stiffness=10.0)
    system, oracle = bc.compile(machine), bc.compile(machine, "elimination", "numpy")
    assert system.kernels.springs_outside
    assert {"rear3", "rear9"} <= set(system.model.tree.cut_names)
    q, u, tau = looped.states(system, count=2)
    expected = oracle.forward_dynamics(q, u, tau)
    assert np.abs(system.forward_dynamics(q, u, tau) - expected).max() < 1e-9 * np.abs(expected).max()


def test_spring_energy_is_what_springs_deliver() -> None:
    """d(energy)/dt is minus the power of the spring wrenches and joint laws, without dampers."""
    m = bc.load("four_bar")
    m.add_joint_spring("carried", "B", stiffness=3.0, rest=0.2)
    m.add_limit("closing", "D", lower=-1.0, upper=0.1, stiffness=2.0)
    m.add_spring("point", m.ground, "rocker", (0.3, 0.9, 0), (0.2, 0, 0), stiffness=50.0, length=0.3)
    system = bc.compile(m)
    assert system.loops == ("D",)
    state = system.assemble(q={"A": 0.5}, u={"A": 1.0})
    h = 1e-6
    after, before = (bc.analyze.stored_energy(system, state.q + x * state.u) for x in (h, -h))
    slope = (after - before) / (2 * h)
    twists = np.stack([system.velocity(state.q, state.u, b) for b in system.body_names])
    power = (bc.analyze.element_wrenches(system, state) * twists).sum() - 3.0 * (state.q[1] - 0.2) * state.u[1]
    assert power == pytest.approx(-slope, rel=1e-6)
