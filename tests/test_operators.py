"""The spatial operators obey the identities of their paper, on random trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import bellcrank as bc
from bellcrank.formulations.operator.operators import Operator, SpatialOperators
from mechanisms import EPS, Floats, Tree, build, examples, state, trees

C = 1000.0


def prepared(tree: Tree) -> tuple[bc.System, SpatialOperators, Floats, float]:
    """A system, its operators in a random configuration, and the size of rounding that is allowed."""
    m = build(tree)
    system = bc.compile(m, backend="numpy")
    s = state(m, tree.seed)
    operators = bc.analyze.operators(system, s.q, t=s.t)
    blocks = [b for _, b in operators.D.blocks]
    spread = max((float(np.linalg.cond(b)) for b in blocks), default=1.0)
    inertia = np.abs(operators.M.matrix()).max() + np.abs(operators.P.matrix()).max() + 1.0
    reach = np.abs(operators.psi.matrix()).max() * np.abs(operators.phi.matrix()).max()
    lightest = min((float(np.linalg.eigvalsh(b)[0]) for b in blocks), default=1.0)
    scale = C * len(tree.parts) * EPS * spread * inertia * reach**2 * (1.0 + inertia / lightest)
    return system, operators, s.q, scale


def close(a: Floats, b: Floats, allowed: float) -> bool:
    return bool(np.abs(a - b).max(initial=0.0) <= allowed)


@examples(60)
@given(trees(max_bodies=6, driven=False, wrenches=False))
def test_factorisations(tree: Tree) -> None:
    """(2.4), (2.11), (3.1)-(3.6), (3.9)."""
    system, o, q, allowed = prepared(tree)
    mass = system.mass_matrix(q)
    unit, unit_links = np.eye(system.nu), np.eye(int(np.prod(o.links[1])))
    phi, psi, h = o.phi.matrix(), o.psi.matrix(), o.H.matrix()
    assert close(phi @ (unit_links - o.E_phi.matrix()), unit_links, allowed)  # (2.4)
    assert close(psi @ (unit_links - o.E_psi.matrix()), unit_links, allowed)  # (3.3)
    assert close(o.mass.matrix(), mass, allowed)  # (2.11)
    p, e = o.P.matrix(), o.E_phi.matrix()
    d = h @ p @ h.T
    assert close(o.D.matrix(), d, allowed)  # (3.2)
    assert close(o.G.matrix() @ d, p @ h.T, allowed)  # (3.2)
    assert close(o.M.matrix(), p - e @ (p - p @ h.T @ np.linalg.solve(d, h @ p)) @ e.T, allowed)  # (3.1)
    factor = (o.one + o.H @ o.phi @ o.K).matrix()
    assert close(factor @ d @ factor.T, mass, allowed)  # lemma 1, (3.4)
    assert close(factor @ (o.one - o.H @ o.psi @ o.K).matrix(), unit, allowed)  # lemma 2, (3.5)
    assert close(o.mass_inverse.matrix() @ mass, unit, allowed * np.linalg.cond(mass))  # lemma 3, (3.6)
    left = (o.one - o.H @ o.psi @ o.K) @ o.H @ o.phi
    assert close(left.matrix(), (o.H @ o.psi).matrix(), allowed)  # lemma 4, (3.9)


@examples(40)
@given(trees(max_bodies=6, driven=False, wrenches=False))
def test_points(tree: Tree) -> None:
    """(2.14), (3.10) and (A.5) with its correction for branches."""
    system, o, q, allowed = prepared(tree)
    points = [(name, (0.1, -0.2, 0.3)) for name in system.body_names[-3:]] + [("ground", (1.0, 0.0, 0.0))]
    jacobian = np.concatenate([system.jacobian(q, body, at) for body, at in points])
    assert close(o.jacobian(points).matrix(), jacobian, allowed)
    admittance = jacobian @ np.linalg.solve(system.mass_matrix(q), jacobian.T)
    size = np.abs(admittance).max() * np.linalg.cond(system.mass_matrix(q)) + 1.0
    assert close(o.admittance(points), admittance, allowed * size)
    omega = o.psi.T @ o.H.T @ o.D.inverse @ o.H @ o.psi  # (3.10)
    whole = omega.matrix()
    n = o.links[1][0]
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            block = whole[6 * i - 6:6 * i, 6 * j - 6:6 * j]
            assert close(o.omega(i, j), block, allowed * size), (i, j)


def test_lemma_5_for_a_chain() -> None:
    """Omega = Y + psitilde* Y + Y psitilde, (A.4), with psitilde = psi - I."""
    system = bc.compile(bc.load("chain"), backend="numpy")
    o = bc.analyze.operators(system, system.random_state(np.random.default_rng(0))[0])
    n = o.links[1][0]
    y = np.zeros((6 * n, 6 * n))
    for k in range(n):
        y[6 * k:6 * k + 6, 6 * k:6 * k + 6] = o.upsilon[k + 1]
    strict = o.psi.matrix() - np.eye(6 * n)
    omega = (o.psi.T @ o.H.T @ o.D.inverse @ o.H @ o.psi).matrix()
    assert np.abs(y + strict.T @ y + y @ strict - omega).max() < 1e-12 * np.abs(omega).max()


@examples(25)
@given(trees(max_bodies=6, wrenches=False))
def test_adjoints(tree: Tree) -> None:
    """<A x, y> = <x, A* y> for every operator, prescribed joints included."""
    _, o, _, _ = prepared(tree)
    rng = np.random.default_rng(tree.seed)
    for name in ("E_phi", "phi", "H", "M", "P", "D", "G", "K", "tau", "tau_bar", "E_psi", "psi", "mass"):
        operator: Operator = getattr(o, name)
        x, y = rng.normal(size=operator.domain[1]), rng.normal(size=operator.codomain[1])
        forward, back = float((operator @ x).ravel() @ y.ravel()), float((operator.T @ y).ravel() @ x.ravel())
        size = np.abs(operator @ x).sum() * np.abs(y).max() + 1.0
        assert abs(forward - back) <= 1e4 * EPS * size, name


def test_errors_name_the_operator() -> None:
    o = bc.analyze.operators(bc.compile(bc.load("arm"), backend="numpy"), np.zeros(6))
    with pytest.raises(bc.ModelError, match="phi and H"):
        o.phi @ o.H
    with pytest.raises(bc.ModelError, match="H takes link vectors"):
        o.H @ np.zeros(6)
    with pytest.raises(bc.ModelError, match="different spaces"):
        o.phi + o.H
    with pytest.raises(bc.StateError, match=r"operators: q\[0\].*inputs must be finite"):
        bc.analyze.operators(bc.compile(bc.load("arm"), backend="numpy"), np.full(6, np.nan))
