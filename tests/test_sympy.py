"""Functions of small machines as SymPy expressions: numbers as the methods give them, symbols as in a textbook."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from interop import by_method, sprung

sympy = pytest.importorskip("sympy")


def numbers(f: Any, given: dict[str, Any]) -> np.ndarray:
    """Expressions at values of all symbols."""
    values = [x for name in f.inputs for x in np.ravel(given[name])]
    return np.concatenate([np.ravel(sympy.lambdify(f.symbols(), x, cse=True)(*values)) for x in f.outputs.values()])


def pendulum() -> bc.Mechanism:
    """Two point masses on rods without mass, all in letters but gravity."""
    m = bc.Mechanism("double pendulum in letters", gravity=(0.0, -9.81, 0.0))
    m1, m2, l1, l2 = (m.parameter(*x) for x in (("m1", 2.0), ("m2", 1.5), ("l1", 0.6), ("l2", 0.4)))
    m.add_body("upper", bc.Inertia(m1, (l1, 0, 0)))
    m.add_body("lower", bc.Inertia(m2, (l2, 0, 0)))
    m.add_joint("a", bc.Revolute("z"), m.ground, "upper")
    m.add_joint("b", bc.Revolute("z"), "upper", "lower", bc.Pose((l1, 0, 0)))
    return m


def test_the_mass_matrix_of_the_textbook() -> None:
    f = bc.to_sympy(bc.compile(pendulum(), backend="numpy"), "mass_matrix")
    m1, m2, l1, l2, b = sympy.symbols("m1 m2 l1 l2 q_b_angle", real=True)
    inner, outer = m2 * l1 * l2 * sympy.cos(b), m2 * l2**2
    expected = sympy.Matrix([[(m1 + m2) * l1**2 + outer + 2 * inner, outer + inner], [outer + inner, outer]])
    assert sympy.expand(f.result - expected) == sympy.zeros(2, 2)


def test_equations_of_lagrange() -> None:
    """Inverse dynamics is what Lagrange's equations give from the energies."""
    system = bc.compile(pendulum(), backend="numpy")
    kinetic, potential, inverse = (bc.to_sympy(system, x)
                                   for x in ("kinetic_energy", "potential_energy", "inverse_dynamics"))
    q, u, udot = (inverse.inputs[x] for x in ("q", "u", "udot"))
    lagrangian = kinetic.result[0] - potential.result[0]
    momenta = sympy.Matrix([lagrangian]).jacobian(u).T
    forces = momenta.jacobian(q) * u + momenta.jacobian(u) * udot - sympy.Matrix([lagrangian]).jacobian(q).T
    assert sympy.simplify(forces - inverse.result) == sympy.zeros(2, 1)


def test_constants_are_fractions_where_they_are_that() -> None:
    f = bc.to_sympy(bc.compile(bc.load("double_pendulum"), backend="numpy"), "mass_matrix")
    elbow = f.inputs["q"][1]
    assert f.result == sympy.Matrix([[sympy.cos(elbow) + sympy.Rational(5, 3), sympy.cos(elbow) / 2
                                      + sympy.Rational(1, 3)], [sympy.cos(elbow) / 2 + sympy.Rational(1, 3),
                                                                sympy.Rational(1, 3)]])


@pytest.mark.parametrize("name", ["forward_dynamics", "bias", "pose:bob", "stored_energy"])
def test_force_elements_parameters_and_time(name: str) -> None:
    """Limits of drives are pieces of functions."""
    system = bc.compile(sprung(), backend="numpy")
    rng = np.random.default_rng(2)
    q, u = system.random_state(rng)
    given = {"q": q, "u": u, "tau": 4.0 * rng.normal(size=5), "t": 0.7, "parameters": [2.0, 40.0]}
    f = bc.to_sympy(system, name)
    expected = np.ravel(by_method(system, name, given, 0.7))
    np.testing.assert_allclose(numbers(f, given), expected, rtol=0, atol=1e-11 * max(1.0, np.abs(expected).max()))


def test_loops() -> None:
    system = bc.compile(bc.load("four_bar"), backend="numpy")
    state = system.assemble(q={"A": 0.5}, u={"A": 2.0})
    tau = np.array([0.3, -0.2, 0.1, 0.0])
    f = bc.to_sympy(system, "forward_dynamics")
    assert not f.result.atoms(sympy.Piecewise)  # guards of pivots are left out
    found = numbers(f, {"q": state.q, "u": state.u, "tau": tau})
    np.testing.assert_allclose(found, system.forward_dynamics(state, tau), rtol=1e-10)
    error = bc.to_sympy(system, "independent_loop_error")
    assert error.result.shape == (2, 1) and error.result.free_symbols <= set(error.inputs["q"])


def test_large_ones_are_refused() -> None:
    with pytest.raises(bc.ModelError, match=r"more than 1000: .*to_casadi"):
        bc.to_sympy(bc.compile(bc.load("stewart"), backend="numpy"), "forward_dynamics")
    with pytest.raises(bc.ModelError, match="to_sympy: no function 'forward'"):
        bc.to_sympy(bc.compile(bc.load("pendulum"), backend="numpy"), "forward")
