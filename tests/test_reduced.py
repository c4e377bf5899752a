"""Equations of motion in independent speeds: against forward dynamics, energy, and the kinematics of all speeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc

MACHINES = ("four_bar", "slider_crank", "five_bar", "redundant_five_bar", "andrews", "quarter_car", "stewart", "delta",
            "bennett", "four_bar_chain")


def moving(system: bc.System, seed: int = 0) -> bc.State:
    """A closed state that moves."""
    start = system.assemble()
    return system.assemble(q=start.q, u=np.random.default_rng(seed).normal(size=system.nu))


@pytest.mark.parametrize("name", MACHINES)
def test_it_is_what_forward_dynamics_solves(name: str) -> None:
    system = bc.compile(bc.load(name))
    state = moving(system)
    tau = np.random.default_rng(1).normal(size=system.nu)
    model = system.reduced(state)
    d = len(model.speeds)
    assert d == system.dof and model.speeds == tuple(system.speed_names[i] for i in model.entries)
    udot = system.forward_dynamics(state, tau)
    rates = np.linalg.solve(model.mass_matrix, model.motions.T @ tau - model.bias)
    allowed = 1e-10 * np.linalg.cond(model.mass_matrix) * (1.0 + np.abs(udot).max())
    assert np.abs(model.accelerations(rates) - udot).max() < allowed
    own = state.u[list(model.entries)]
    assert np.abs(model.motions @ own + model.offset - state.u).max() < 1e-10 * (1.0 + np.abs(state.u).max())
    energy = 0.5 * own @ model.mass_matrix @ own
    assert energy == pytest.approx(float(system.kinetic_energy(state)), rel=1e-9)


@pytest.mark.parametrize("name", ("four_bar", "stewart"))
def test_batches_jacobians_and_operational_inertia(name: str) -> None:
    system = bc.compile(bc.load(name))
    states = [moving(system, seed) for seed in range(3)]
    q, u = np.stack([s.q for s in states]), np.stack([s.u for s in states])
    many, body = system.reduced(q, u), system.body_names[-1]
    point = (0.1, 0.2, 0.0)
    jacobian, inertia = many.jacobian(body, point), many.operational_inertia(body, point)
    for i, state in enumerate(states):
        one = system.reduced(state)
        for what in ("motions", "mass_matrix", "bias", "drift", "offset"):
            found, expected = getattr(many, what)[i], getattr(one, what)
            assert np.abs(found - expected).max() <= 1e-11 * (1.0 + np.abs(expected).max()), what
        own = state.u[list(one.entries)]
        assert np.abs(jacobian[i] @ own - system.velocity(state, body, point)).max() < 1e-10
        # a wrench accelerates the body as its operational inertia says: J M^-1 J^T times it is a projection
        mobility = jacobian[i] @ np.linalg.solve(one.mass_matrix, jacobian[i].T)
        assert np.abs(mobility @ inertia[i] @ mobility - mobility).max() < 1e-8 * np.abs(mobility).max()


def test_wrenches_and_prescribed_motions() -> None:
    """The bias holds what acts and what is driven."""
    m = bc.load("five_bar")
    joint = m.joints[0].name
    m.prescribe(joint, lambda t: 0.4 + 0.3 * t + 0.1 * t * t)
    system = bc.compile(m)
    state = system.assemble(t=0.5)
    wrench: Any = {system.body_names[1]: np.array([0.0, 0.0, 0.4, 1.0, -2.0, 0.0])}
    model = system.reduced(state, wrenches=wrench)
    udot = system.forward_dynamics(state, wrenches=wrench)
    rates = np.linalg.solve(model.mass_matrix, -model.bias)
    assert len(model.speeds) == system.dof == 1
    assert np.abs(model.accelerations(rates) - udot).max() < 1e-9 * (1.0 + np.abs(udot).max())
    own = state.u[list(model.entries)]
    assert np.abs(model.motions @ own + model.offset - state.u).max() < 1e-10


def test_trees_keep_all_free_speeds() -> None:
    system = bc.compile(bc.load("arm"))
    q, u = system.random_state(np.random.default_rng(0))
    model = system.reduced(q, u)
    assert model.speeds == system.speed_names
    assert np.array_equal(model.mass_matrix, system.mass_matrix(q)) and np.array_equal(model.bias, system.bias(q, u))


@pytest.mark.parametrize("rounds", (33, 55))  # near a dead point, and there
def test_dead_points_get_other_speeds_or_are_refused(rounds: int) -> None:
    """Where a slider-crank's slide turns back, its speed says nothing of the crank's."""
    system = bc.compile(bc.load("slider_crank"), independent=["slide"])
    slide, low, high = system.speed_names.index("slide.slide"), 1.57, 3.14
    for _ in range(rounds):  # the slide's speed changes its sign in between
        middle = 0.5 * (low + high)
        dead = system.assemble(q={"crank": middle}, u={"crank": 1.0})
        low, high = (middle, high) if dead.u[slide] < 0.0 else (low, middle)
    model = system.reduced(dead)
    assert model.speeds != ("slide.slide",)
    rates = np.linalg.solve(model.mass_matrix, -model.bias)
    assert np.abs(model.accelerations(rates) - system.forward_dynamics(dead)).max() < 1e-7
    fine = system.assemble(q={"crank": 0.7}, u={"crank": 1.0})
    with pytest.raises(bc.SingularError, match="batch index"):
        system.reduced(np.stack([fine.q, dead.q]), np.stack([fine.u, dead.u]))


def test_the_legs_of_a_platform_are_independent_if_asked_for() -> None:
    """Loops are solved one by one, so that the plan itself leaves others free: reduced models and derivatives turn to
    the speeds asked for, which `explain` names."""
    legs = [f"leg{i}.slide" for i in range(1, 7)]
    system = bc.compile(bc.load("stewart"), actuated=legs, backend="numpy")
    names = tuple(f"{leg}.slide" for leg in legs)
    assert system.plans.reference().plan.independent != system.plans.shown(system.neutral(), 0.0)
    length = {leg: 0.05 + 0.01 * i for i, leg in enumerate(legs)}
    state = system.assemble(q=length, u={leg: 0.1 * i for i, leg in enumerate(legs)})

    def position(leg: str, change: float) -> np.ndarray:
        moved = system.assemble(q=length | {leg: length[leg] + change}, guess=state.q)
        return system.pose(moved.q, "platform").position

    some = [1, 4]
    slopes = np.stack([(position(legs[k], 1e-5) - position(legs[k], -1e-5)) / 2e-5 for k in some], axis=-1)
    reduced = system.reduced(state)
    assert reduced.speeds == names == bc.analyze.explain(system).independent
    np.testing.assert_allclose(reduced.jacobian("platform")[3:, some], slopes, rtol=0, atol=1e-8)
    d = system.derivatives("pose", np.stack([state.q] * 2), by="q", body="platform")
    assert d.columns["q"] == names
    np.testing.assert_allclose(d["q"][1, 9:, some].T, slopes, rtol=0, atol=1e-8)
    way, weights = np.cos(np.arange(6.0)), np.sin(np.arange(12.0))
    along = system.derivatives("pose", state.q, along={"q": way}, body="platform")["along"]
    np.testing.assert_allclose(along, d["q"][0] @ way, rtol=0, atol=1e-12)
    back = system.derivatives("pose", state.q, by="q", body="platform", weights=weights)["q"]
    np.testing.assert_allclose(back, weights @ d["q"][0], rtol=0, atol=1e-12)


def test_speeds_that_cannot_be_independent_are_told() -> None:
    m = bc.Mechanism("two four-bars")
    for k in range(2):
        for name, size in (("crank", 0.3), ("coupler", 0.9), ("rocker", 0.6)):
            m.add_body(f"{name}{k}", bc.Inertia.rod(1.0, (0, 0, 0), (size, 0, 0)))
        m.add_joint(f"A{k}", bc.Revolute("z"), m.ground, f"crank{k}")
        m.add_joint(f"B{k}", bc.Revolute("z"), f"crank{k}", f"coupler{k}", bc.Pose((0.3, 0, 0)))
        m.add_joint(f"C{k}", bc.Revolute("z"), f"coupler{k}", f"rocker{k}", bc.Pose((0.9, 0, 0)), bc.Pose((0.6, 0, 0)))
        m.add_joint(f"D{k}", bc.Revolute("z"), m.ground, f"rocker{k}", bc.Pose((1.0, 0, 0)))
    system = bc.compile(m, independent=["A0", "B0"], backend="numpy")
    with pytest.warns(bc.BellcrankWarning, match=r"B0.angle cannot be independent.*A0.angle, .1.angle are independent"):
        assert "A0.angle" in system.reduced(system.assemble(q={"A0": 0.5, "A1": 0.7})).speeds


def test_speeds_that_overflow_are_refused_without_warnings() -> None:
    system = bc.compile(bc.load("four_bar"), backend="numpy")
    with pytest.raises(bc.SingularError, match="accelerations of 'four-bar' has no finite result"):
        system.reduced(system.assemble(q={"A": 0.5}).q, np.full(4, 1e200))
