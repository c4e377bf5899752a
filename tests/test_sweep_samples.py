"""Samples for sweeps: their distributions, that they repeat, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import stats

import bellcrank as bc
from bellcrank.studies.sample_table import table_of

MAKERS = (bc.latin_hypercube, bc.sobol, bc.random_samples)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("given", "exact"), [
    ("normal(2, 0.1)", stats.norm(2.0, 0.1)), ((1.0, 5.0), stats.uniform(1.0, 4.0)),
    ("uniform(-1, 1)", stats.uniform(-1.0, 2.0)), ("lognormal(0.5, 0.2)", stats.lognorm(0.2, scale=np.exp(0.5))),
    ("loguniform(1, 100)", stats.loguniform(1.0, 100.0)), ("triang(0.5, 1, 2)", stats.triang(0.5, 1.0, 2.0)),
    (stats.gamma(2.0), stats.gamma(2.0))])
def test_distributions(make: Any, given: Any, exact: Any) -> None:
    """Samples follow the distribution: the largest difference of distribution functions is that of chance, or less."""
    found = make({"x": given}, 1000, seed=3).x.values
    assert stats.kstest(found, exact.cdf).pvalue > 1e-3


@pytest.mark.parametrize("make", MAKERS)
def test_seeds(make: Any) -> None:
    given = {"a": "normal(0, 1)", "b": (0.0, 1.0)}
    one, same, other = (make(given, 50, seed=s) for s in (1, 1, 2))
    assert one.identical(same) and not one.equals(other)
    assert one.sizes == {"run": 50} and abs(np.corrcoef(one.a, one.b)[0, 1]) < 0.5


def test_a_latin_hypercube_has_one_run_in_every_range() -> None:
    found = bc.latin_hypercube({"a": (0.0, 1.0), "b": (0.0, 1.0)}, 64)
    for name in ("a", "b"):
        assert sorted(np.floor(64 * found[name].values).tolist()) == list(range(64))


def test_sobol_is_even() -> None:
    """Of 64 scrambled points of two dimensions, every square of an eighth by an eighth has one."""
    found = bc.sobol({"a": (0.0, 1.0), "b": (0.0, 1.0)}, 64, seed=5)
    cells = np.floor(8 * found.a.values) * 8 + np.floor(8 * found.b.values)
    assert sorted(cells.tolist()) == list(range(64))


def test_rows_of_tables() -> None:
    """A grid is every value with every other, the last name quickest; samples are run at every point of it."""
    table = table_of({"a": [1, 2], "b": [3, 4, 5]}, {"c": [6.0, 7.0]})
    rows = [(a, b, c) for a in (1, 2) for b in (3, 4, 5) for c in (6, 7)]
    assert table.names == ("a", "b", "c") and table.runs == 12
    np.testing.assert_array_equal(table.rows(0, 12), rows)
    np.testing.assert_array_equal(table.rows(5, 9), rows[5:9])


@pytest.mark.parametrize(("given", "message"), [
    ({"mass": "gaussian(1, 2)"}, "mass: there is no distribution 'gaussian'"),
    ({"mass": "norml(1, 2)"}, "did you mean 'normal'?"), ({"mass": "normal(1)"}, "mass: normal(1): normal takes 2"),
    ({"mass": "normal(1, -2)"}, "the deviation positive"), ({"mass": (3.0, 1.0)}, "the first the smaller one"),
    ({"mass": "normal"}, "mass: 'normal' is no distribution"), ({"mass": "normal(a, b)"}, "'a, b' are not numbers"),
    ({"mass": 5.0}, "mass: 5.0 is no distribution"), ({"mass": "gamma(-1)"}, "gamma of scipy.stats takes (a, loc"),
    ({}, "needs {name: distribution}")])
def test_refused_distributions(given: Any, message: str) -> None:
    with pytest.raises(bc.ModelError, match=re.escape(message)):
        bc.latin_hypercube(given, 10)


@pytest.mark.parametrize(("options", "message"), [
    ({"runs": 0}, "runs must be a positive whole number"), ({"runs": 2.5}, "runs must be"),
    ({"runs": 4, "seed": -1}, "seed must be a whole number")])
def test_refused_numbers(options: Any, message: str) -> None:
    with pytest.raises(bc.ModelError, match=message):
        bc.sobol({"a": (0.0, 1.0)}, **options)
