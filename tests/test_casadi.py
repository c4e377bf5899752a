"""Functions of machines as CasADi functions: what the methods of `System` give, with exact derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import bellcrank as bc
import children
from interop import AT_STATE, OF_BODY, OF_LOOPS, POINT, by_method, sprung
from mechanisms import build, examples, state, trees
from whole_states import carrying


def called(f: Any, given: dict[str, Any], t: float = 0.0, parameters: Any = (), wrenches: Any = None) -> np.ndarray:
    """A CasADi function at inputs by name; outputs one after the other, row by row."""
    have = {**given, "t": t, "point": POINT, "parameters": np.array(parameters), "wrenches": wrenches}
    found = f(*(have[f.name_in(i)] for i in range(f.n_in())))
    return np.concatenate([np.array(x).ravel() for x in (found if isinstance(found, tuple) else (found,))])


def same(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-11) -> None:
    expected = np.ravel(expected)
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@examples(8)
@given(trees(max_bodies=4))
def test_trees(tree: Any) -> None:
    pytest.importorskip("casadi")
    m = build(tree)
    system, s = bc.compile(m, backend="numpy"), state(m, 1)
    given = {"q": s.q, "u": s.u, "tau": s.tau, "udot": s.udot}
    for name in ("forward_dynamics", "inverse_dynamics", "momentum", "energy"):
        same(called(bc.to_casadi(system, name), given, s.t), by_method(system, name, given, s.t), 1e-8)


@pytest.mark.parametrize("name", [*AT_STATE, *(f"{kind}:bob" for kind in OF_BODY)])
def test_force_elements_parameters_and_time(name: str) -> None:
    """Values of parameters are an input, as time is."""
    pytest.importorskip("casadi")
    system = bc.compile(sprung(), backend="numpy").with_parameters(load=3.0, stiffness=25.0)
    rng = np.random.default_rng(2)
    q, u = system.random_state(rng)
    given = {"q": q, "u": u, "tau": 4.0 * rng.normal(size=5), "udot": rng.normal(size=5)}
    f = bc.to_casadi(system, name)
    assert [f.name_in(i) for i in range(f.n_in())][-2:] == ["t", "parameters"]
    same(called(f, given, 0.7, (3.0, 25.0)), by_method(system, name, given, 0.7))


def test_wrenches() -> None:
    """Of a machine whose bodies were not added from the ground outwards."""
    pytest.importorskip("casadi")
    system = bc.compile(sprung(), backend="numpy")
    rng = np.random.default_rng(3)
    q, u = system.random_state(rng)
    given = {"q": q, "u": u, "tau": rng.normal(size=5), "udot": rng.normal(size=5)}
    wrenches = rng.normal(size=(3, 6))
    for name in ("forward_dynamics", "inverse_dynamics", "bias", "reactions"):
        f = bc.to_casadi(system, name, wrenches=True)
        same(called(f, given, 0.7, (2.0, 40.0), wrenches), by_method(system, name, given, 0.7, wrenches))


@pytest.mark.parametrize(("machine", "method"), [("four_bar", "elimination"), ("five_bar", "dense")])
def test_loops(machine: str, method: str) -> None:
    """By elimination, whatever the method; all constraints, and those that are independent."""
    pytest.importorskip("casadi")
    system = bc.compile(bc.load(machine), method, backend="numpy")
    first, rng = system.speed_names[0].partition(".angle")[0], np.random.default_rng(4)
    near = {"leg1.2": 0.2, "leg2.1": 0.5, "leg2.2": 1.6} if machine == "five_bar" else None
    state = system.assemble(q={first: 0.5}, u={first: 2.0}, guess=near)
    udot = system.forward_dynamics(state)
    tau = np.zeros(system.nu)
    tau[carrying(system, True)] = rng.normal(size=len(carrying(system, True)))
    given = {"q": state.q, "u": state.u, "tau": tau, "udot": udot}
    for name in (*AT_STATE, *OF_LOOPS, f"pose:{system.body_names[0]}"):
        same(called(bc.to_casadi(system, name), given), by_method(system, name, given), 1e-10)
    off = {"q": state.q + 0.1, "u": state.u + 0.1}  # open
    for name in OF_LOOPS:
        every = called(bc.to_casadi(system, name), off)
        same(every, by_method(system, name, off))
        some = called(bc.to_casadi(system, f"independent_{name}"), off)
        assert len(some) == len(carrying(system, True)) - system.dof and set(some) <= set(every)


def test_forces_along_loop_joints_act() -> None:
    pytest.importorskip("casadi")
    system = bc.compile(bc.load("four_bar"), backend="numpy", cut=["D"])
    state = system.assemble(q={"A": 0.5}, u={"A": 2.0})
    given = {"q": state.q, "u": state.u, "tau": np.array([1.0, 2.0, 3.0, 4.0])}
    for name in ("forward_dynamics", "reactions"):
        same(called(bc.to_casadi(system, name), given), by_method(system, name, given))


def test_independent_constraints_are_independent() -> None:
    """Of the twenty of four planar loops, eight."""
    casadi = pytest.importorskip("casadi")
    system = bc.compile(bc.load("scissor_lift"), backend="numpy")
    state, u = system.assemble(), casadi.SX.sym("u", system.nu)
    rates = casadi.jacobian(bc.to_casadi(system, "independent_loop_rate_error")(state.q, u), u)
    matrix = np.array(casadi.Function("f", [], [rates])()["o0"])
    assert matrix.shape == (len(carrying(system, True)) - system.dof, system.nu)
    assert np.linalg.matrix_rank(matrix) == len(matrix)


def test_more_drives_than_degrees_of_freedom() -> None:
    pytest.importorskip("casadi")
    system = bc.compile(bc.load("four_bar"), actuated=["A", "C"], backend="numpy")
    state = system.assemble(q={"A": 0.5}, u={"A": 2.0})
    given = {"q": state.q, "u": state.u, "udot": system.forward_dynamics(state)}
    same(called(bc.to_casadi(system, "inverse_dynamics"), given), by_method(system, "inverse_dynamics", given), 1e-10)


def test_a_plan_for_a_state() -> None:
    """Where the pivots of the general plan vanish, another one is asked for: with the crank along the ground, the
    angle at the rocker stands still."""
    pytest.importorskip("casadi")
    system = bc.compile(bc.load("four_bar"), independent=["C"], backend="numpy")
    dead = system.assemble(q={"A": np.pi}, u={"A": 1.0})
    given = {"q": dead.q, "u": dead.u, "tau": np.zeros(4)}
    expected = system.forward_dynamics(dead)
    same(called(bc.to_casadi(system, "forward_dynamics", at=dead), given), expected, 1e-10)
    with np.errstate(all="ignore"):
        assert not np.allclose(called(bc.to_casadi(system, "forward_dynamics"), given), expected, atol=1e-3)


def test_derivatives_and_sparsity() -> None:
    """CasADi's derivatives are those of `System.derivatives`, and zeros that are there are known."""
    casadi = pytest.importorskip("casadi")
    system = bc.compile(bc.load("arm"), backend="numpy")
    rng = np.random.default_rng(5)
    q, u = system.random_state(rng)
    udot = rng.normal(size=6)
    f = bc.to_casadi(system, "inverse_dynamics")
    jacobian = f.jacobian()(q, u, udot, 0.0)
    d = system.derivatives("inverse_dynamics", q, u, udot, by=("q", "u", "udot"))
    for found, by in zip(jacobian, d, strict=True):
        same(np.array(found).ravel(), d[by])
    x = casadi.MX.sym("x", 6)
    assert casadi.jacobian(f(x, u, udot), x).sparsity().nnz() < 36  # nothing depends on the first angle but one


def test_quaternions() -> None:
    pytest.importorskip("casadi")
    system = bc.compile(bc.load("stewart"), backend="numpy")
    state = system.assemble()
    u = np.random.default_rng(6).normal(size=system.nu)
    h = 1e-6
    slope = (system.integrate(state.q, h * u) - system.integrate(state.q, -h * u)) / (2 * h)
    given = {"q": state.q, "u": u, "tau": np.zeros(system.nu)}
    same(called(bc.to_casadi(system, "coordinate_rates"), given), slope, 1e-8)
    given["u"] = np.zeros(system.nu)
    same(called(bc.to_casadi(system, "reactions"), given), by_method(system, "reactions", given), 1e-9)


@pytest.mark.parametrize(("name", "options", "said"), [
    ("forward_dynamic", {}, "did you mean 'forward_dynamics'"), ("pose", {}, "'pose:BODY'"),
    ("bias:upper", {}, "no function"), ("pose:nobody", {}, "nobody"), ("loop_error", {}, "no loops"),
    ("mass_matrix", {"wrenches": True}, "do not act")])
def test_refusals(name: str, options: dict[str, Any], said: str) -> None:
    pytest.importorskip("casadi")
    with pytest.raises(bc.BellcrankError, match=said):
        bc.to_casadi(bc.compile(bc.load("double_pendulum"), backend="numpy"), name, **options)


def test_a_state_of_the_wrong_shape() -> None:
    pytest.importorskip("casadi")
    with pytest.raises(bc.ModelError, match=r"at= must be a state, or a finite array q of shape \(4,\)"):
        bc.to_casadi(bc.compile(bc.load("four_bar"), backend="numpy"), "forward_dynamics", at=[0.0, np.nan])


def test_packages_are_imported_when_they_are_asked_for() -> None:
    """Not before, and what is missing is named."""
    code = ("import sys, bellcrank as bc\n"
            "others = ['casadi', 'sympy', 'jax', 'torch']\n"
            "system = bc.compile(bc.load('pendulum'), backend='numpy')\n"
            "system.forward_dynamics([0.1], [0.2])\n"
            "for name in others:\n"
            "    f = getattr(bc, f'to_{name}', None)\n"
            "    assert name not in sys.modules, name\n"
            "    sys.modules[name] = None\n"
            "    try:\n"
            "        if f is not None: f(system, 'forward_dynamics')\n"
            "    except bc.ModelError as error:\n"
            "        assert f'bellcrank[{name}]' in str(error), error\n"
            "    else:\n"
            "        assert f is None, name\n")
    done = children.run_code(code)
    assert done.returncode == 0, done.stderr
