"""Samples for sweeps: their distributions, that they repeat, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import bellcrank as bc
from bellcrank.studies.sample_table import METHODS, table_of
from sweeps import pendulum, same

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


@pytest.mark.parametrize("method", METHODS)
def test_samples_are_drawn_in_any_parts(method: str) -> None:
    given = {"a": "normal(0, 1)", "b": (0.0, 1.0)}
    drawn = bc.drawn_samples(given, 1000, method=method, seed=4)
    whole = drawn.rows(0, 1000)
    np.testing.assert_array_equal(np.concatenate([drawn.rows(0, 7), drawn.rows(7, 640), drawn.rows(640, 1000)]), whole)
    if method != "latin_hypercube":  # of that there is a table in memory, made by another permutation
        make = {"sobol": bc.sobol, "random": bc.random_samples}[method]
        np.testing.assert_array_equal(whole, np.stack([make(given, 1000, seed=4)[n].values for n in given], axis=-1))
    assert stats.kstest(whole[:, 0], stats.norm.cdf).pvalue > 1e-3 and abs(np.corrcoef(whole.T)[0, 1]) < 0.1
    other = bc.drawn_samples(given, 1000, method=method, seed=5)
    assert not np.isclose(other.rows(0, 50), whole[:50]).any()
    assert bc.drawn_samples(given, 10**12, method=method).rows(10**11, 10**11 + 3).shape == (3, 2)


@pytest.mark.parametrize("runs", (1, 2, 63, 64, 1000))
def test_drawn_latin_hypercubes_have_one_run_in_every_range(runs: int) -> None:
    found = bc.drawn_samples({"a": (0.0, 1.0), "b": (0.0, 1.0)}, runs, method="latin_hypercube", seed=9).rows(0, runs)
    places = np.floor(runs * found).astype(int)
    assert (np.sort(places, axis=0) == np.arange(runs)[:, None]).all()
    assert runs < 60 or (places[:, 0] != places[:, 1]).mean() > 0.9


def test_drawn_samples_stay_what_they_were() -> None:
    """Studies are resumed years later: the same seed means the same runs."""
    rows = bc.drawn_samples({"x": (0.0, 16.0)}, 16, method="latin_hypercube", seed=3).rows(0, 4)
    assert np.floor(rows[:, 0]).tolist() == [4.0, 12.0, 9.0, 8.0]


def test_ends_of_distributions_are_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (0.0, 1.0):
        monkeypatch.setattr("bellcrank.studies.sample_table._random",
                            lambda columns, runs, seed, first, last, x=place: np.full((last - first, columns), x))
        assert np.isfinite(bc.drawn_samples({"x": "normal(0, 1)"}, 4).rows(0, 4)).all()


def test_sweeps_of_drawn_samples(tmp_path: Path) -> None:
    """The same as of a table, at every point of a grid, and from a store; another seed is another study."""
    drawn, table = (make({"q.hinge": (0.1, 1.0)}, 50, seed=2) for make in (bc.drawn_samples, bc.random_samples))
    grid, run = {"damping": [0.1, 0.2, 0.3]}, {"duration": 0.1, "step": 0.01}
    found = bc.sweep(pendulum(), grid, samples=drawn, run=run, reduce="last", chunk=40)
    same(found, bc.sweep(pendulum(), grid, samples=table, run=run, reduce="last"))
    out = tmp_path / "s.zarr"
    bc.sweep(pendulum(), drawn, run=run, reduce="last", out=out)
    with pytest.raises(bc.ModelError, match="another study, in which other than here are: the samples"):
        bc.sweep(pendulum(), bc.drawn_samples({"q.hinge": (0.1, 1.0)}, 50, seed=3), run=run, reduce="last", out=out,
                 resume=True)


@pytest.mark.parametrize(("given", "message"), [
    ({"method": "halton"}, "no method 'halton'"), ({"runs": 0}, "runs must be a positive"),
    ({"distributions": {"a": "norml(1, 2)"}}, "no distribution 'norml'")])
def test_what_cannot_be_drawn(given: Any, message: str) -> None:
    with pytest.raises(bc.ModelError, match=message):
        bc.drawn_samples(**({"distributions": {"a": (0, 1)}, "runs": 5} | given))


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
