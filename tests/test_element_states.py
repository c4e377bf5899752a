"""States of elements: at rest, in linear models, by every stepper, in batches, events and derivatives."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import bellcrank as bc

G, LAG, GAIN, LOSS = 9.81, 0.1, 3.0, 0.5


def held(gain: Any = GAIN) -> bc.Mechanism:
    """A pendulum of 1 kg and 1 m on a spring that comes late, pushed by 2 N m."""
    m = bc.load("pendulum")
    m.parameter("gain", GAIN)
    m.add_state("lag", lambda at: (at.q("hinge") - at.state("lag")) / LAG, initial=0.2)
    m.add_joint_force("late", "hinge", lambda at: 2.0 - at.parameter("gain") * at.state("lag") - LOSS * at.u("hinge"))
    return m


@cache
def system(backend: str = "llvm") -> bc.System:
    return bc.compile(held(), backend=backend)


def steered(target: float = 0.4) -> bc.System:
    """The same held by a controller whose integral is a state that does not depend on itself."""
    m = bc.load("pendulum")
    m.add_state("sum", lambda at: target - at.q("hinge"))
    m.add_joint_force("pid", "hinge", lambda at: 30.0 * (target - at.q("hinge")) - 8.0 * at.u("hinge")
                      + 20.0 * at.state("sum"))
    return bc.compile(m, backend="numpy")


# -- at rest ------------------------------------------------------------------------------------------------------
def test_states_rest_in_equilibrium() -> None:
    rest = bc.analyze.equilibrium(system("numpy"), {"hinge": 0.5})
    angle = float(rest.q[0])
    assert abs(2.0 - GAIN * angle - G * np.sin(angle)) < 1e-12
    assert abs(rest.u[1] - angle) < 1e-13 and rest.u[0] == 0.0
    many = bc.analyze.equilibrium(system("numpy"), {"hinge": 0.5}, tau=np.array([[0.0, 0.0], [1.0, 0.0]]))
    assert np.abs(system("numpy").forward_dynamics(many.q, many.u, [[0.0, 0.0], [1.0, 0.0]])).max() < 1e-12
    assert abs(many.q[0, 0] - angle) < 1e-12 and many.q[1, 0] > angle + 0.05


def test_integrators_ask_for_a_position() -> None:
    """The rate of the state says where the machine is, its force says what the state is."""
    pid = steered()
    rest = bc.analyze.equilibrium(pid)
    assert abs(rest.q[0] - 0.4) < 1e-13 and abs(20.0 * rest.u[1] - G * np.sin(0.4)) < 1e-12


def test_states_of_machines_with_loops_rest() -> None:
    m = bc.load("four_bar")
    m.add_state("p", lambda at: 5.0 * (at.q("B") - at.state("p")) + 1.0)
    m.add_joint_force("d", "A", lambda at: 4.0 * at.state("p") - 2.0 * at.u("A"))
    linkage = bc.compile(m, backend="numpy")
    rest = bc.analyze.equilibrium(linkage, {"A": 0.5})
    assert np.abs(linkage.forward_dynamics(rest)).max() < 1e-10 and abs(rest.u[3] - rest.q[1] - 0.2) < 1e-11


def test_equilibria_that_run_away_are_refused() -> None:
    m = bc.load("pendulum")
    m.add_state("x", lambda at: at.state("x") - at.q("hinge") + 1.0)
    grows = bc.compile(m, backend="numpy")
    with pytest.raises(bc.StateError, match=r"not stable \(it grows at the rate 1 1/s\).*stable=False"):
        bc.analyze.equilibrium(grows)
    assert np.abs(bc.analyze.equilibrium(grows, stable=False).u - [0.0, -1.0]).max() < 1e-12
    m = bc.load("pendulum")
    m.add_state("never", lambda at: 1.0 + at.state("never") ** 2)
    with pytest.raises(bc.StateError, match="no place where states of elements rest; rates of 'never' by"):
        bc.analyze.equilibrium(bc.compile(m, backend="numpy"))


# -- linear models ------------------------------------------------------------------------------------------------
def test_linear_models_have_states_by_name() -> None:
    """Three states: angle, rate and lag; poles are the roots of (s^2 + c s + g cos a)(T s + 1) + gain."""
    rest = bc.analyze.equilibrium(system(), {"hinge": 0.5})
    model = bc.analyze.linearize(system(), rest)
    assert model.states == ("hinge", "hinge.rate", "lag") and model.error == 0.0
    assert model.outputs == ("hinge.angle", "hinge.angle.rate", "lag")
    stiff = G * np.cos(rest.q[0])
    wanted = np.roots(np.polymul([1.0, LOSS, stiff], [LAG, 1.0]) + [0.0, 0.0, 0.0, GAIN])
    for found in (model.eigenvalues, np.append(e := bc.analyze.modes(system(), rest, damped=True).eigenvalues,
                                               e[e.imag > 0].conj())):
        assert np.abs(np.sort_complex(found) - np.sort_complex(wanted)).max() < 1e-9
    assert np.abs(model.nearby([0.01, 0.02, 0.03]).u - rest.u - [0.02, 0.03]).max() < 1e-12
    plain = bc.analyze.modes(system(), rest)  # the state stays as it is
    assert abs(plain.eigenvalues[0] - 1j * np.sqrt(stiff)) < 1e-9 and len(plain) == 1
    assert plain.participation.tolist() == [[1.0, 0.0]]


def test_integrals_that_are_looked_at_stay() -> None:
    m = held()
    m.add_joint_force("more", "hinge", lambda at: -0.1 * at.q("lag"))
    model = bc.analyze.linearize(bc.compile(m, backend="numpy"), ([0.1, 0.0], [0.0, 0.1]), outputs=["lag"])
    assert model.states == ("hinge", "lag", "hinge.rate", "lag.rate")


def test_derivatives_go_through_states() -> None:
    q, u = np.array([0.3, 0.1]), np.array([0.4, -0.2])
    exact = system().derivatives("forward_dynamics", q, u, by=("q", "u", "gain"))
    assert np.abs(exact["u"] - [[-LOSS, -GAIN], [0.0, -1.0 / LAG]]).max() < 1e-12
    assert np.abs(exact["q"] - [[-G * np.cos(0.3), 0.0], [1.0 / LAG, 0.0]]).max() < 1e-12
    assert np.abs(exact["gain"].ravel() - [0.2, 0.0]).max() < 1e-12
