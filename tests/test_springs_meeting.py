"""Springs whose ends meet: none that pulls nothing there needs a direction; others say who they are."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import bellcrank as bc

TREES = ("recursive", "recursive/origin", "kane", "operator", "complement", "momenta", "dense")
LOOPS = ("elimination", "kane", "recursive", "operator", "momenta", "complement", "reduction", "dense", "divide")
M, K, C, G = 2.0, 100.0, 6.0, 9.81
ORIGIN = (0.0, 0.0, 0.0)


def mass_on_a_spring(**spring: Any) -> bc.Mechanism:
    """A mass on a rail along z, on a spring to the origin: M z'' = -M G - K z - C z' without a length."""
    m = bc.Mechanism("mass", gravity=(0, 0, -G))
    body = m.add_body("body", bc.Inertia(M, ORIGIN, 0.1))
    m.add_joint("rail", bc.Prismatic("z"), m.ground, body)
    m.add_spring("coil", m.ground, body, ORIGIN, ORIGIN, **(spring or {"stiffness": K, "damping": C}))
    return m


#: the same spring in all ways to say it
SAME: dict[str, dict[str, Any]] = {
    "linear": {"stiffness": K, "damping": C}, "potential": {"potential": lambda x: 0.5 * K * x**2, "damping": C},
    "law": {"law": lambda x, rate: K * x + C * rate}}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("method", TREES)
@pytest.mark.parametrize("kind", SAME)
def test_no_length(kind: str, method: str, backend: str) -> None:
    system = bc.compile(mass_on_a_spring(**SAME[kind]), method, backend)
    z, v = np.array([-0.3, -1e-3, -1e-12, -1e-200, 0.0, 0.0, 0.0, 1e-200, 1e-12, 1e-3, 0.3]), np.linspace(-2, 2, 11)
    expected = -G - (K * z + C * v) / M
    batch = system.forward_dynamics(z[:, None], v[:, None])[:, 0]
    assert batch == pytest.approx(expected, rel=1e-13, abs=1e-13)
    single = [system.forward_dynamics([a], [b])[0] for a, b in zip(z, v, strict=True)]
    assert single == pytest.approx(expected, rel=1e-13, abs=1e-13)
    stored = 0.0 if kind == "law" else 0.5 * K * z**2
    assert system.energy(z[:, None], v[:, None]) == pytest.approx(0.5 * M * v**2 + M * G * z + stored, abs=1e-12)
    assert float(bc.analyze.stored_energy(system, [0.0])) == 0.0
    lost = C * v**2 if kind != "law" else (K * z + C * v) * v
    assert bc.analyze.dissipated_power(system, z[:, None], v[:, None]) == pytest.approx(lost, abs=1e-12)
    assert float(bc.analyze.dissipated_power(system, [0.0], [2.0])) == pytest.approx(4.0 * C)
    assert system.inverse_dynamics([0.0], [1.0], [0.0]) == pytest.approx([M * G + C])


@pytest.mark.parametrize("stepper", ["rk4", "rk8", "gauss", "radau", "semi_implicit", "dopri5", "dop853", "radau5"])
def test_simulated_from_and_through_where_they_meet(stepper: str) -> None:
    system = bc.compile(mass_on_a_spring())
    result = system.simulate(([0.0], [10.0]), 2.0, stepper=stepper)
    assert result.attrs["status"] == "finished", result.attrs["reason"]
    t = result.time.values
    rest, decay = -M * G / K, 0.5 * C / M
    swing = np.sqrt(K / M - decay**2)
    z = rest + np.exp(-decay * t) * (-rest * np.cos(swing * t) + (10.0 - decay * rest) / swing * np.sin(swing * t))
    assert np.sum(np.diff(np.sign(z[1:])) != 0) > 2  # it does pass
    assert np.abs(result.q.values[:, 0] - z).max() < (2e-2 if stepper == "semi_implicit" else 1e-6)


def test_in_space() -> None:
    """A free body whose point is tied to the origin: -k x - c v where they meet, whatever the direction."""
    m = bc.Mechanism("tied", gravity=(0, 0, 0))
    body = m.add_body("body", bc.Inertia.box(M, (0.1, 0.2, 0.3)))
    m.add_joint("free", bc.Free(), m.ground, body)
    m.add_spring("coil", m.ground, body, ORIGIN, ORIGIN, stiffness=K, damping=C)
    for backend in ("llvm", "numpy"):
        system = bc.compile(m, backend=backend)
        q, v = system.neutral(), np.array([1.0, -2.0, 0.5])
        u = np.concatenate([np.zeros(3), v])
        assert system.forward_dynamics(q, u)[3:] == pytest.approx(-C * v / M)
        assert np.abs(system.forward_dynamics(q, np.zeros(6))).max() == 0.0
        assert np.abs(bc.analyze.element_wrenches(system, q, u)[0] - [0, 0, 0, *(-C * v)]).max() < 1e-12
        after = system.forward_dynamics(system.integrate(q, u * 1e-9), u)[3:]  # no jump on the way
        assert after == pytest.approx(-C * v / M, rel=1e-6)


def linkage(**spring: Any) -> tuple[bc.Mechanism, np.ndarray]:
    """A four-bar with a spring from the ground to a point of its coupler, and where they meet."""
    plain = bc.compile(bc.load("four_bar"))
    state = plain.assemble(q={"A": 0.5}, u={"A": 1.0})
    place = plain.pose(state.q, "coupler")
    point = place.position + place.rotation @ np.array([0.2, 0.1, 0.0])
    m = bc.load("four_bar")
    m.add_spring("coil", m.ground, "coupler", tuple(point), (0.2, 0.1, 0.0), **spring)
    return m, point


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("method", LOOPS)
def test_in_a_loop(method: str, backend: str) -> None:
    plain = bc.compile(bc.load("four_bar"), "dense")
    state = plain.assemble(q={"A": 0.5}, u={"A": 1.0})
    system = bc.compile(linkage(stiffness=1e4)[0], method, backend)
    expected = plain.forward_dynamics(state.q, state.u)  # they may be apart by rounding
    assert np.abs(system.forward_dynamics(state.q, state.u) - expected).max() < 1e-9
    assert float(bc.analyze.stored_energy(system, state.q)) < 1e-20


def test_large_machines() -> None:
    """Springs that act from outside of the compiled code."""
    m = bc.load("chain", n=60)
    joints = bc.compile(m)
    q, u = joints.random_state(np.random.default_rng(0), 3)
    tip = joints.pose(q[0], "link59").position
    m.add_spring("coil", m.ground, "link59", tuple(tip), ORIGIN, stiffness=K)
    system, reference = bc.compile(m), bc.compile(m, backend="numpy")
    assert system.kernels.springs_outside
    for _ in range(2):
        expected = reference.forward_dynamics(q, u)
        assert np.abs(system.forward_dynamics(q, u) - expected).max() < 1e-8 * np.abs(expected).max()
        q = np.array([q[0], q[0], q[1]])
    assert np.isfinite(bc.analyze.element_wrenches(system, q, u)).all()
    assert np.isfinite(bc.analyze.dissipated_power(system, q, u)).all()


def test_large_machines_with_exact_zeros() -> None:
    m = bc.Mechanism("train", gravity=(0, 0, -G))
    before = m.ground
    for i in range(60):
        body = m.add_body(f"car{i}", bc.Inertia(M, ORIGIN, 0.1))
        m.add_joint(f"rail{i}", bc.Prismatic("z"), before, body)
        before = body
    m.add_spring("coil", m.ground, "car59", ORIGIN, ORIGIN, stiffness=K, damping=C)
    m.add_spring("held", "car3", "car40", ORIGIN, ORIGIN, stiffness=K, length=0.1)
    system = bc.compile(m)
    assert system.kernels.springs_outside
    q, u = np.zeros(60), np.zeros(60)
    q[10], q[50], u[0] = 0.5, -0.5, 2.0
    wrenches = bc.analyze.element_wrenches(system, q, u)
    assert wrenches[59, 5] == pytest.approx(-2.0 * C)
    assert wrenches[40, 5] == pytest.approx(-K * 0.4)
    assert system.forward_dynamics(q, u)[0] == pytest.approx(-G)  # none of it reaches the first car
    assert float(bc.analyze.dissipated_power(system, q, u)) == pytest.approx(4.0 * C)
    assert float(bc.analyze.stored_energy(system, q)) == pytest.approx(0.5 * K * 0.16)
    for call in (system.forward_dynamics, partial(bc.analyze.element_wrenches, system),
                 partial(bc.analyze.dissipated_power, system)):
        with pytest.raises(bc.SingularError, match="spring 'held': its two ends meet"):
            call(np.zeros(60), u)


# -- parameters --------------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_parameters_decide_at_run_time(backend: str) -> None:
    m = bc.Mechanism("mass", gravity=(0, 0, -G))
    length, damping = m.parameter("length", 0.0), m.parameter("damping", C)
    body = m.add_body("body", bc.Inertia(M, ORIGIN, 0.1))
    m.add_joint("rail", bc.Prismatic("z"), m.ground, body)
    m.add_spring("coil", m.ground, body, ORIGIN, ORIGIN, stiffness=K, damping=damping, length=length)
    system = bc.compile(m, backend=backend)
    assert system.forward_dynamics([0.0], [1.0]) == pytest.approx([-G - C / M])
    assert system.forward_dynamics([0.2], [1.0]) == pytest.approx([-G - (C + K * 0.2) / M])
    some = system.with_parameters(length=np.array([0.0, 0.0, 0.1]), damping=np.array([0.0, C, C]))
    z, v = np.array([[0.0], [0.0], [0.3]]), np.ones((3, 1))
    assert some.forward_dynamics(z, v)[:, 0] == pytest.approx([-G, -G - C / M, -G - (C + K * 0.2) / M])
    assert bc.analyze.dissipated_power(some, z, v) == pytest.approx([0.0, C, C])
    assert bc.analyze.stored_energy(some, z) == pytest.approx([0.0, 0.0, 0.5 * K * 0.04])
    with pytest.raises(bc.SingularError, match=r"spring 'coil': its two ends meet.*batch index \(2,\)"):
        some.forward_dynamics(np.zeros((3, 1)), v)
    with pytest.raises(bc.SingularError, match="spring 'coil': its two ends meet"):
        bc.analyze.dissipated_power(some, np.zeros((3, 1)), v)


# -- those that pull ---------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("spring", [{"stiffness": K, "length": 0.2}, {"potential": lambda x: K * (x - 0.2)**2},
                                    {"law": lambda x, rate: K * (x - 0.2)}])
def test_one_that_pulls_is_named(spring: dict[str, Any], backend: str) -> None:
    system = bc.compile(mass_on_a_spring(**spring), backend=backend)
    with pytest.raises(bc.SingularError, match="^spring 'coil': its two ends meet"):
        system.forward_dynamics([0.0], [1.0])
    with pytest.raises(bc.SingularError, match=r"^spring 'coil': its two ends meet.*batch index \(1, 2\)"):
        system.forward_dynamics(np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.0]])[..., None], np.ones((2, 3, 1)))
    with pytest.raises(bc.SingularError, match="^spring 'coil': its two ends meet"):
        bc.analyze.element_wrenches(system, [0.0], [1.0])
    assert np.isfinite(system.energy([0.0], [1.0]))  # which needs no direction
    assert np.isfinite(system.forward_dynamics([1e-9], [1.0])).all()
    if "stiffness" in spring:
        assert float(bc.analyze.stored_energy(system, [0.0])) == pytest.approx(0.5 * K * 0.04)
    with pytest.warns(bc.SimulationWarning, match="spring 'coil': its two ends meet"):
        assert system.simulate(([0.0], [1.0]), 0.1).attrs["status"] == "failed"


def test_other_failures_are_not_blamed_on_springs() -> None:
    system = bc.compile(mass_on_a_spring(stiffness=K, length=0.2))
    with pytest.raises(bc.StateError, match="nan"):
        system.forward_dynamics([np.nan], [1.0])
    with pytest.raises(bc.SingularError, match="no finite result"):
        system.forward_dynamics([1e200], [1.0])


def test_ends_on_one_body() -> None:
    """Nothing ever moves between them."""
    m = mass_on_a_spring()
    m.add_spring("idle", "body", "body", (0.1, 0, 0), (0.1, 0, 0), stiffness=5.0, damping=1.0)
    assert bc.compile(m).forward_dynamics([0.1], [0.0]) == pytest.approx([-G - K * 0.1 / M])
    m.add_spring("stuck", "body", "body", (0.1, 0, 0), (0.1, 0, 0), stiffness=5.0, length=1.0)
    with pytest.raises(bc.ModelError, match="spring 'stuck': its two ends meet.*in every state"):
        bc.compile(m).forward_dynamics([0.1], [0.0])


def test_other_springs_cost_nothing_more() -> None:
    for spring in ({"stiffness": K, "damping": C, "length": 0.2}, {"potential": lambda x: K * (x - 0.2)**2}):
        assert bc.compile(mass_on_a_spring(**spring)).operation_count().others == 0
