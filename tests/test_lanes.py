"""BELLCRANK_LANES forces the number of lanes: results stay the same to rounding, and batches of any length work."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
import children
from bellcrank.target.llvm import jit

EPS = float(np.finfo(float).eps)

PROGRAM = """
    import sys
    import numpy as np
    import bellcrank as bc
    from bellcrank.target.llvm.jit import vector_width
    rng, found = np.random.default_rng(0), [vector_width()]
    for name in ("arm", "four_bar"):
        s = bc.compile(bc.load(name), threads=2)
        for n in (1, 2, 3, 7, 17):
            if name == "arm":
                q, u = s.random_state(rng, n)
            else:
                start = s.assemble(q={"A": 0.5}, u=np.ones(s.nu))
                q, u = np.broadcast_to(start.q, (n, s.nq)), start.u * np.linspace(0.5, 1.0, n)[:, None]
            udot = s.forward_dynamics(q, u)
            assert udot.shape == (n, s.nu)
            end = s.simulate((q, u), 0.02, step=1e-3)
            found += [udot.sum(), np.abs(udot).max(), float(end.q.isel(time=-1).sum()), float(abs(end.u).max())]
    print(*map(repr, map(float, found)))
"""


@pytest.fixture(scope="module")
def plain() -> list[float]:
    return results("1")


def results(lanes: str) -> list[float]:
    done = children.run_code(PROGRAM, env={"BELLCRANK_LANES": lanes})
    assert done.returncode == 0, done.stderr
    width, *numbers = (float(x) for x in done.stdout.split())
    assert width == int(lanes)
    return numbers


@pytest.mark.parametrize("lanes", ("2", "4", "8"))
def test_results_are_the_same(lanes: str, plain: list[float]) -> None:
    """Of sums over up to 17 states, each with the condition number of an arm's masses."""
    found = np.array(results(lanes))
    assert np.abs(found - plain).max() < 17 * 1e5 * EPS * np.abs(plain).max()


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """`vector_width` that has not been called yet; what it found before is found again afterwards."""
    monkeypatch.setattr(jit, "vector_width", jit.vector_width.__wrapped__)
    return monkeypatch


@pytest.mark.parametrize("chosen", ("3", "16", "0", "-1", "four", "1.0"))
def test_other_numbers_are_refused(chosen: str, fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("BELLCRANK_LANES", chosen)
    with pytest.raises(bc.BellcrankError, match=f"BELLCRANK_LANES is '{chosen}': set it to 1, 2, 4 or 8, or leave"):
        jit.vector_width()


def test_without_the_variable_the_machine_decides(fresh: pytest.MonkeyPatch) -> None:
    fresh.delenv("BELLCRANK_LANES", raising=False)
    own = jit.vector_width()
    assert own in (2, 4, 8)
    fresh.setenv("BELLCRANK_LANES", "")
    assert jit.vector_width() == own
    fresh.setenv("BELLCRANK_LANES", " 4 ")
    assert jit.vector_width() == 4


def test_the_error_reaches_who_computes() -> None:
    done = children.run_code("""
        import bellcrank as bc
        s = bc.compile(bc.load("arm"))
        try:
            s.forward_dynamics([[0.1] * 6] * 3, [[0.1] * 6] * 3)
        except bc.BellcrankError as error:
            print(error)
    """, env={"BELLCRANK_LANES": "5"})
    assert done.stdout.startswith("BELLCRANK_LANES is '5'"), done.stderr
