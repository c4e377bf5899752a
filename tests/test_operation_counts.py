"""Operation counts: of what the methods execute, or an error that says why there are none."""

from __future__ import annotations

import re

import pytest

import bellcrank as bc
from bellcrank.lowering.choose import entries_of
from bellcrank.scalar.count import count
from bellcrank.scalar.graph import Graph

LOOPED = ("elimination", "kane", "recursive", "operator", "momenta", "complement", "reduction", "divide")


@pytest.mark.parametrize("method", LOOPED)
def test_loops_are_counted_or_refused(method: str) -> None:
    closed = bc.compile(bc.load("four_bar"), method, actuated=["A"])
    tree = closed.release(*closed.loops)
    assert closed.operation_count() != tree.operation_count()
    assert closed.operation_count("inverse_dynamics").total > tree.operation_count("inverse_dynamics").total > 0
    for shared in ("bias", "mass_matrix", "momenta"):  # the methods themselves are those of the spanning tree
        assert closed.operation_count(shared) == tree.operation_count(shared)
    assert closed.operation_count("hamilton").total > tree.operation_count("hamilton").total


def test_hamilton_with_loops_is_that_of_the_closed_machine() -> None:
    closed = bc.compile(bc.load("four_bar"), "momenta")
    function = closed.kernels.functions["constrained_hamilton"]
    tree = closed.kernels.planned(closed.plans.general()).tree
    graph = Graph()
    entries = entries_of(tree, function, lambda name, i: graph.leaf((name, i)), False)  # those of loop joints, too
    assert closed.operation_count("hamilton") == count(entries)


def test_joint_springs_count() -> None:
    plain, m = bc.compile(bc.load("double_pendulum")), bc.load("double_pendulum")
    m.add_joint_spring("coil", m.joints[0].name, stiffness=30.0, damping=2.0)
    sprung = bc.compile(m)
    for name in ("inverse_dynamics", "bias"):  # -(k q + c u), and two subtractions
        more = sprung.operation_count(name).total - plain.operation_count(name).total
        assert more == 3 + 2


def test_what_has_no_count_says_why() -> None:
    with pytest.raises(bc.ModelError, match="solved by LAPACK"):
        bc.compile(bc.load("four_bar"), "dense").operation_count()
    chain = bc.load("chain", n=30)
    with pytest.raises(bc.ModelError, match="solved by LAPACK for this many speeds"):
        bc.compile(chain, "dense").operation_count()
    assert bc.compile(chain, "dense", schedule="unrolled").operation_count().divs == 30
    with pytest.raises(bc.ModelError, match="too large for one kernel.*schedule='unrolled'"):
        bc.compile(bc.load("ladder", cells=20), "kane").operation_count()
    long = bc.load("chain", n=60)
    long.add_spring("rope", long.bodies[3], long.bodies[40], (0, 0, 0), (0.1, 0, 0), length=0.1, stiffness=50.0)
    with pytest.raises(bc.ModelError, match="the springs between distant bodies"):
        bc.compile(long).operation_count()
    assert bc.compile(long).operation_count("mass_matrix").total > 0


def test_unknown_names() -> None:
    for system in (bc.compile(bc.load("pendulum")), bc.compile(bc.load("four_bar"))):
        with pytest.raises(bc.ModelError, match="no function 'forwards_dynamics'.* mean 'forward_dynamics'") as caught:
            system.operation_count("forwards_dynamics")
        named = re.findall(r"'(\w+)' \(", str(caught.value))
        assert named and all(hasattr(bc.System, name) for name in named)
        assert "screws" not in str(caught.value) and "displaced" not in str(caught.value)
