"""The regressor against inverse dynamics; parameters found again from noisy motion, physical ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bellcrank as bc
from test_derivatives import laden_arm


def seven_axes(scale: float = 1.0) -> bc.Mechanism:
    """An arm with seven hinges; `scale` spoils what is believed of its links."""
    m = bc.Mechanism("seven axes")
    before = m.ground
    for k, axis in enumerate("zyzyzyz"):
        own = scale ** (1 if k % 2 else -1)
        inertia = bc.Inertia.box((4.0 - 0.4 * k) * own, (0.1, 0.12, 0.3), (0.01, 0.02, 0.12 * own))
        body = m.add_body(f"link{k + 1}", inertia)
        m.add_joint(f"j{k + 1}", bc.Revolute(axis), before, body, parent_pose=bc.Pose((0, 0, 0.28)))
        before = body
    return m


def four_bar(scale: float = 1.0) -> bc.Mechanism:
    m = bc.Mechanism("four-bar", gravity=(0, -9.81, 0))
    for name, mass, size in (("crank", 1.5 * scale, 0.3), ("coupler", 5.0 / scale, 1.0), ("rocker", 3.0 * scale, 0.6)):
        m.add_body(name, bc.Inertia.box(mass, (size, 0.05, 0.05), (0.5 * size, 0, 0)))
    m.add_joint("A", bc.Revolute("z"), m.ground, "crank")
    m.add_joint("B", bc.Revolute("z"), "crank", "coupler", parent_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), "coupler", "rocker", parent_pose=bc.Pose((1.0, 0, 0)))
    m.add_joint("D", bc.Revolute("z"), "rocker", m.ground, parent_pose=bc.Pose((0.6, 0, 0)),
                child_pose=bc.Pose((1.0, 0, 0)))
    return m


def motion(system: bc.System, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    if not system.loops:
        q, u = system.random_state(rng, samples)
        return q, 2.0 * u, 3.0 * rng.normal(size=u.shape)
    angles = np.linspace(0.0, 2 * np.pi, samples, endpoint=False)
    rates = 3.0 * rng.normal(size=samples)
    states = [system.assemble(q={"A": a}, u={"A": w}) for a, w in zip(angles, rates, strict=True)]
    q, u = np.stack([s.q for s in states]), np.stack([s.u for s in states])
    udot = [system.consistent_acceleration(a, b, {"A": w}) for a, b, w in zip(q, u, 9.0 * rng.normal(size=samples),
                                                                              strict=True)]
    return q, u, np.stack(udot)


def test_inverse_dynamics_is_linear_in_the_parameters() -> None:
    """Bodies welded together in any frame, a free joint."""
    m = bc.Mechanism("two in one")
    m.add_body("a", bc.Inertia.box(2.0, (0.1, 0.2, 0.3), (0.1, 0.2, 0.3)))
    m.add_body("b", bc.Inertia.box(1.0, (0.3, 0.2, 0.1), (0.3, -0.2, 0.1)))
    m.add_joint("free", bc.Free(), m.ground, "a")
    m.add_joint("weld", bc.Weld(), "a", "b", parent_pose=bc.Pose.rpy((0.1, 0.2, -0.1), 0.3, -0.5, 0.9))
    system = bc.compile(m, backend="numpy")
    q, u, udot = motion(system, 5, 1)
    p = np.array(list(bc.analyze.inertial_parameters(system).values()))
    y = system.regressor(q, u, udot)
    assert y.shape == (5, 6, 20)
    np.testing.assert_allclose(y @ p, system.inverse_dynamics(q, u, udot), rtol=0, atol=1e-11)


def test_the_rest_knows_nothing_of_the_bodies() -> None:
    """Rotors, springs and winds need the same forces whatever the bodies weigh."""
    rests = []
    for heavier in (0.0, 2.0):
        m = laden_arm()
        m.add_body("tool", bc.Inertia.box(0.3 + heavier, (0.1, 0.05, 0.2), (0.03, 0.02, 0.01)))
        m.add_joint("bolts", bc.Weld(), "hand", "tool", parent_pose=bc.Pose.rpy((0.1, 0.2, -0.1), 0.3, -0.5, 0.9))
        system = bc.compile(m, backend="numpy")
        q, u, udot = motion(system, 3, 0)
        p = np.array(list(bc.analyze.inertial_parameters(system).values()))
        rests.append(system.inverse_dynamics(q, u, udot) - system.regressor(q, u, udot) @ p)
    np.testing.assert_allclose(rests[0], rests[1], rtol=0, atol=1e-10)
    assert np.abs(rests[0]).max() > 1.0


@pytest.mark.parametrize("make, count", [(seven_axes, 43), (four_bar, 8)])
def test_base_parameters(make: Callable[[], bc.Mechanism], count: int) -> None:
    system = bc.compile(make(), backend="numpy", **({"actuated": ["A"]} if make is four_bar else {}))
    base = bc.analyze.base_parameters(system)
    assert len(base.names) == count
    q, u, udot = motion(system, 4, 3)
    y = system.regressor(q, u, udot)
    p = np.array(list(bc.analyze.inertial_parameters(system).values()))
    np.testing.assert_allclose(y[..., list(base.columns)] @ (base.matrix @ p), y @ p, rtol=0, atol=1e-8)
    assert base.names[0] in str(base)


@pytest.mark.parametrize("make, samples", [(seven_axes, 150), (four_bar, 200)])
def test_parameters_from_noisy_data(make: Callable[..., bc.Mechanism], samples: int) -> None:
    """What is found predicts other motions to the noise, though the model it began with was wrong by a third."""
    options = {"actuated": ["A"]} if make is four_bar else {}
    true, wrong = bc.compile(make(), **options), bc.compile(make(1.3), **options)
    q, u, udot = motion(true, samples, 5)
    tau = true.inverse_dynamics(q, u, udot)
    noise = 0.01 * np.abs(tau).max()
    rng = np.random.default_rng(6)
    found = bc.identify(wrong, q, u, udot, np.where(tau != 0.0, tau + noise * rng.normal(size=tau.shape), 0.0))
    assert 0.7 * noise < found.residual < 1.3 * noise
    for inertia in found.inertias.values():
        assert inertia.problem() is None
    q, u, udot = motion(true, 50, 7)
    exact = true.inverse_dynamics(q, u, udot)
    before = np.abs(wrong.inverse_dynamics(q, u, udot) - exact).max()
    after = np.abs(wrong.regressor(q, u, udot) @ np.array(list(found.parameters.values())) - exact).max()
    assert after < 2.0 * noise and after < 0.2 * before
    assert found.base.names[0] in str(found)


def test_exact_data_give_exact_forces() -> None:
    true, wrong = bc.compile(four_bar(), actuated=["A"]), bc.compile(four_bar(1.3), actuated=["A"])
    q, u, udot = motion(true, 60, 8)
    found = bc.identify(wrong, q, u, udot, true.inverse_dynamics(q, u, udot))
    assert found.residual < 1e-6


@pytest.mark.parametrize("prior", [1e-3, 0.0])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_an_unknown_load_is_found(noise: float, prior: float) -> None:
    """The search does not stall at the model's own values: it fits as well as the linear fit."""
    loaded = seven_axes()
    loaded.add_body("load", bc.Inertia.point(2.5, (0.1, 0.05, 0.2)))
    loaded.add_joint("grip", bc.Weld(), "link7", "load")
    true, model = bc.compile(loaded, backend="numpy"), bc.compile(seven_axes(), backend="numpy")
    q, u, udot = motion(true, 150, 9)
    tau = true.inverse_dynamics(q, u, udot) + noise * np.random.default_rng(10).normal(size=u.shape)
    found = bc.identify(model, q, u, udot, tau, prior=prior)
    assert found.residual <= 1.05 * found.unconstrained + 1e-10
    expected = model.regressor(q, u, udot).reshape(-1, 70)[:, found.base.columns]
    linear = np.linalg.lstsq(expected, tau.reshape(-1), rcond=None)[0]
    assert (np.abs(found.values - linear) <= 3.0 * found.deviations + 1e-8).all()
    assert found.unconstrained == pytest.approx(noise, rel=0.1, abs=1e-9)


def test_data_that_physical_bodies_cannot_have_are_told() -> None:
    system = bc.compile(seven_axes(), backend="numpy")
    q, u, udot = motion(system, 40, 8)
    with pytest.warns(bc.BellcrankWarning, match="physical bodies of 'seven axes' leave"):
        bc.identify(system, q, u, udot, -system.inverse_dynamics(q, u, udot))


def test_wrong_data_are_refused() -> None:
    system = bc.compile(four_bar(), actuated=["A"], backend="numpy")
    q, u, udot = motion(system, 5, 0)
    with pytest.raises(bc.StateError, match="as many of each"):
        bc.identify(system, q, u, udot, np.zeros((4, 4)))
    with pytest.raises(bc.ModelError, match="no body 'cranc'"):
        bc.identify(system, q, u, udot, np.zeros((5, 4)), bodies=["cranc"])
