"""Divide and conquer: agreement, joints that their own link does not resist, the order of joining."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bellcrank as bc
import looped
from bellcrank.formulations.common.small_systems import solve_general
from bellcrank.formulations.divide import order
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph
from loop_extras import geared
from looped import EPS


def allowed(nu: int) -> float:
    return 1000.0 * nu * EPS


@pytest.mark.everyday(8)
@pytest.mark.parametrize("name", looped.ZOO)
def test_loops_agree_with_the_oracle(name: str) -> None:
    machine = bc.load(name)
    oracle = bc.compile(machine, "dense", "numpy")
    limit = 4.0 * oracle.nu * EPS * looped.conditioning(oracle, oracle.assemble().q)
    backend = "llvm" if oracle.nu < 10 else "numpy"
    assert looped.disagreement(machine, "divide", backend) < max(allowed(26), limit)


def test_couplers_are_ports_too() -> None:
    for backend in ("numpy", "llvm"):
        assert looped.disagreement(geared(), "divide", backend) < allowed(4)


def rolling(count: int) -> bc.Mechanism:
    """Rods that roll about their length, which their own inertia does not resist, with bent tools, single or paired."""
    m = bc.Mechanism("rolling rods")
    body = m.ground
    for k in range(count):
        rod = m.add_body(f"rod{k}", bc.Inertia.rod(1.0 + 0.1 * k, (0, 0, 0), (0, 0, 0.5)))
        m.add_joint(f"roll{k}", bc.Revolute("z"), body, rod, parent_pose=bc.Pose((0, 0, 0.5 if k else 0.0)))
        body = rod
        for side in (-1, 1)[:1 + k % 2]:
            tool = m.add_body(f"tool{k}{side}", bc.Inertia.rod(0.4, (0, 0, 0), (0.3 * side, 0.1, 0.2)))
            m.add_joint(f"bend{k}{side}", bc.Revolute("y"), rod, tool, parent_pose=bc.Pose((0, 0, 0.5)))
    return m


@pytest.mark.parametrize("count", [1, 2, 5])
def test_joints_that_their_own_link_does_not_resist(count: int) -> None:
    machine = rolling(count)
    systems = [bc.compile(machine, method) for method in ("recursive", "divide")]
    q, u, tau = np.random.default_rng(count).normal(size=(3, 4, systems[0].nu))
    expected, found = (system.forward_dynamics(q, u, tau) for system in systems)
    limit = 4.0 * systems[0].nu * EPS * np.linalg.cond(systems[0].mass_matrix(q)).max()
    assert np.abs(found - expected).max() < limit * np.abs(expected).max()


def joinings(division: order.Division) -> list[int]:
    """The links of a division, each once."""
    if division.lower is not None and division.upper is not None:
        return [*joinings(division.lower), *joinings(division.upper)]
    return [division.link, *(link for part in division.first for link in joinings(part))]


@pytest.mark.parametrize("seed", range(5))
def test_trees_are_divided_in_a_logarithmic_number_of_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 200
    parent, children = [-1], [0]
    for _ in range(n):  # at most three children each
        free = [k for k, own in enumerate(children) if own < 3]
        parent.append(int(rng.choice(free[-20:])))
        children[parent[-1]] += 1
        children.append(0)
    found = order.divisions(parent, [False] * (n + 1))
    assert sorted(link for division in found for link in joinings(division)) == list(range(1, n + 1))
    assert max(division.depth() for division in found) <= 3 * math.log2(n) + order.BLOCK


def test_operations_grow_linearly() -> None:
    counts = [bc.compile(bc.load("chain", n=n), "divide", schedule="unrolled").operation_count().total
              for n in (12, 24, 48)]  # twice as many blocks: one more joining for every two of before
    assert 1.9 < (counts[2] - counts[1]) / (counts[1] - counts[0]) < 2.3


def test_large_trees_say_what_they_cost() -> None:
    with pytest.warns(bc.SlowWarning, match="60 links.*'divide' looks at all of them.*s a call.*'recursive'"):
        system = bc.compile(bc.load("chain", n=60), "divide")
    q, u = np.random.default_rng(0).normal(size=(2, system.nu))
    expected = bc.compile(bc.load("chain", n=60)).forward_dynamics(q, u)
    limit = 60 * EPS * np.linalg.cond(system.mass_matrix(q))
    assert np.abs(system.forward_dynamics(q, u) - expected).max() < limit * np.abs(expected).max()


def test_rows_are_exchanged() -> None:
    """Also where entries are not known when the elimination is written down."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        a, b = rng.normal(size=(5, 5)), rng.normal(size=(5, 2))
        a[0, 0] = a[1, 1] = 1e-17
        graph = Graph()
        leaves = [[graph.leaf(("a", 5 * i + j)) for j in range(5)] for i in range(5)]
        traced = [x for row in solve_general(leaves, b.tolist()) for x in row]
        numbers = a.ravel().tolist()
        for values in (solve_general(a.tolist(), b.tolist()), evaluate(traced, lambda key, x=numbers: x[key[1]])):
            assert np.abs(a @ np.reshape(values, (5, 2)) - b).max() < 100 * EPS * np.linalg.cond(a)
