"""The alternative step (D) of closed chains: compiled, in batches, where it pays, and where an arm is stretched."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import bellcrank as bc
import looped
from bellcrank.formulations.operator import choose_secondary
from bellcrank.formulations.operator.secondary_first import blocks_of
from looped import EPS


def hand(arms: int, driven: bool = False) -> bc.Mechanism:
    """Arms of three pins that hold a crate by ball joints; the first is stretched at zero, the others are bent."""
    m = bc.Mechanism("hand")
    crate = m.add_body("crate", bc.Inertia.box(2.0, (0.4, 0.3, 0.2)))
    m.add_joint("crate", bc.Free(), m.ground, crate, at=(0.0, 0.0, 0.0))
    for a in range(arms):
        angle = 2.0 * np.pi * a / arms
        out, across = np.array([np.cos(angle), np.sin(angle), 0.0]), np.array([-np.sin(angle), np.cos(angle), 0.0])
        last = m.ground
        if driven and a == 0:
            last = m.add_body("lift", bc.Inertia.box(1.0, (0.1, 0.1, 0.1), tuple(out)))
            m.add_joint("lift", bc.Prismatic("z"), m.ground, last, at=tuple(out))
            m.prescribe("lift", lambda t: 0.05 * bc.math.sin(3.0 * t))
        for i, (axis, reach) in enumerate(((np.array([0.0, 0.0, 1.0]), 1.0), (across, 0.8), (across, 0.5))):
            at = out * reach + np.array([0.0, 0.0, 0.0 if a == 0 else 0.1 * (i + 1)])
            link = m.add_body(f"arm{a}.{i}", bc.Inertia.box(1.0, (0.2, 0.1, 0.1), tuple(at)))
            m.add_joint(f"arm{a}.{i}", bc.Revolute(tuple(axis)), last, link, at=tuple(at))
            last = link
        m.add_joint(f"grip{a}", bc.Spherical(), last, crate, at=tuple(0.2 * out))
    return m


@functools.cache
def system(arms: int, method: str = "operator", backend: str = "llvm") -> bc.System:
    return bc.compile(hand(arms), method, backend, cut=[f"grip{a}" for a in range(arms)])


def secondary(of: bc.System) -> list[str]:
    return [of.model.tree.link_names[k] for k in of.plans.reference().plan.secondary]


def test_the_crate_is_solved_first_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """By count: two arms are not worth it, from three on the saving grows with every arm."""
    ours = {n: system(n).operation_count().total for n in (2, 3, 6)}
    assert [secondary(system(n)) for n in ours] == [[], ["crate"], ["crate"]]
    monkeypatch.setattr(choose_secondary, "_SAVED", 0.0)
    plain = {n: bc.compile(hand(n), "operator", cut=[f"grip{a}" for a in range(n)]) for n in ours}
    assert not any(secondary(p) for p in plain.values())
    share = {n: ours[n] / p.operation_count().total for n, p in plain.items()}
    assert share[2] == 1.0 and 1.0 > share[3] > share[6] and share[6] < 0.8, share


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_against_the_full_equations(backend: str) -> None:
    """One state and batches, which lanes compute."""
    oracle, ours = system(3, "dense", "numpy"), system(3, "operator", backend)
    assert secondary(ours) == ["crate"]
    q, u, tau = looped.states(oracle, seed=4, count=9)
    expected = oracle.forward_dynamics(q, u, tau)
    found = ours.forward_dynamics(q, u, tau)
    conditioning = np.linalg.cond(oracle.mass_matrix(q)).max()
    assert np.abs(found - expected).max() < 100.0 * EPS * oracle.nu * conditioning * np.abs(expected).max()
    alone = ours.forward_dynamics(q[3], u[3], tau[3])
    assert np.abs(alone - found[3]).max() < 100.0 * EPS * oracle.nu * conditioning * np.abs(expected).max()


def test_a_stretched_arm_needs_the_crate() -> None:
    """At zero the first arm cannot move along itself, so that A_P Lambda_P A_P* has no inverse; the machine can."""
    oracle, ours = system(3, "dense", "numpy"), system(3)
    q = oracle.neutral()
    assert np.abs(oracle.loop_error(q)).max() < 1e-12
    rows = bc.analyze.loop_jacobian(oracle, q)
    arms = [i for i, name in enumerate(oracle.speed_names) if name.startswith("arm")]
    assert np.linalg.matrix_rank(rows, tol=1e-9) == 9 > np.linalg.matrix_rank(rows[:, arms], tol=1e-9)
    u, tau = oracle.assemble(q=q, u=np.linspace(-1.0, 1.0, oracle.nu)).u, np.linspace(1.0, 2.0, oracle.nu)
    expected = oracle.forward_dynamics(q, u, tau)
    assert np.abs(ours.forward_dynamics(q, u, tau) - expected).max() < 1e-10 * np.abs(expected).max()
    near = oracle.assemble(q=oracle.integrate(q, 1e-5 * u), u=u)
    expected = oracle.forward_dynamics(near, tau)
    assert np.abs(ours.forward_dynamics(near, tau) - expected).max() < 1e-7 * np.abs(expected).max()


def test_prescribed_joints_stay_in_u() -> None:
    cut = [f"grip{a}" for a in range(4)]
    ours, oracle = (bc.compile(hand(4, True), method, "numpy", cut=cut) for method in ("operator", "dense"))
    assert "crate" in secondary(ours)
    state = oracle.assemble(u=np.linspace(-1.0, 1.0, oracle.nu), t=0.2)
    expected = oracle.forward_dynamics(state)
    assert np.abs(expected[oracle.model.prescribed_mask()]).min() > 0.1
    assert np.abs(ours.forward_dynamics(state) - expected).max() < 1e-10 * np.abs(expected).max()


def test_blocks() -> None:
    matrix = [[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 0.0], [2.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    assert blocks_of(matrix) == [[0, 2], [1], [3]]
