"""Nothing is slow without a word: what cannot be compiled is said, with what it costs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.simulate import chosen_run
from bellcrank.system import evaluator


@pytest.mark.parametrize("method", ["kane", "recursive", "operator", "momenta"])
def test_machines_that_are_too_large(method: str) -> None:
    ladder = bc.examples.load("ladder", cells=25)
    with pytest.warns(bc.SlowWarning, match=f"51 links.*'{method}'.*s a call.*elimination") as caught:
        system = bc.compile(ladder, method=method)
    assert caught[0].filename == __file__
    assert "interpreted" in repr(system)


def test_nothing_is_said_where_nothing_is_slow() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "interpreted" not in repr(bc.compile(bc.examples.load("ladder", cells=25)))
        assert "interpreted" not in repr(bc.compile(bc.load("four_bar"), method="kane"))
        bc.compile(bc.examples.load("ladder", cells=25), method="kane", backend="numpy")
        assert "LAPACK" in repr(bc.compile(bc.load("four_bar"), method="dense"))


def test_code_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """How much code it takes is known when it is traced: at the first call, and said once."""
    monkeypatch.setattr(evaluator, "LOOP_NODES", 100)
    system = bc.compile(bc.load("four_bar"), method="kane")
    state = system.assemble(q={"A": 0.5})
    with pytest.warns(bc.SlowWarning, match="over 100 operations"):
        found = system.forward_dynamics(state.q, state.u)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (system.forward_dynamics(state.q, state.u) == found).all()
    expected = bc.compile(bc.load("four_bar")).forward_dynamics(state.q, state.u)
    assert np.abs(found - expected).max() < 1e-12 * (1.0 + np.abs(expected).max())


@pytest.mark.parametrize("options", [{}, {"stepper": "dop853"}])
def test_runs_whose_steps_are_not_compiled(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen_run, "LONG", 0.0)
    system = bc.compile(bc.load("four_bar"), method="dense")
    with pytest.warns(bc.SlowWarning, match="'dense' are not compiled here; one evaluation takes"):
        system.simulate(system.assemble(q={"A": 0.5}), 0.01, **options)
    with warnings.catch_warnings():  # what was asked for needs no comment
        warnings.simplefilter("error")
        system.simulate(system.assemble(q={"A": 0.5}), 0.01, stepper="scipy/RK45")
        quick = bc.compile(bc.load("four_bar"))
        quick.simulate(quick.assemble(q={"A": 0.5}), 0.01, **options)


@pytest.mark.parametrize("method", ["reduction", "complement"])
def test_methods_refuse_machines_when_they_are_compiled(method: str) -> None:
    with pytest.raises(bc.ModelError, match="does not cover|needs a parallel platform"):
        bc.compile(bc.load("jansen"), method=method)
    bc.compile(bc.load("four_bar"), method="reduction")
    bc.compile(bc.load("stewart"), method="complement")
