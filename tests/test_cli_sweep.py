"""The command ``bellcrank sweep``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from cli_calls import call

SHORT = ("--duration", "0.2", "--step", "0.01")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    m = bc.load("pendulum")
    m.add_joint_spring("damper", "hinge", damping=m.parameter("damping", 0.1))
    bc.save(m, tmp_path / "machine.yaml")
    return tmp_path / "machine.yaml"


def test_a_grid_of_samples_goes_into_a_store(model: Path) -> None:
    pytest.importorskip("zarr")
    out = model.with_name("study.zarr")
    given = ("sweep", model, "--vary", "q:hinge=0.5:1.5:3", "--sample", "damping~normal(0.5,0.01)", "--runs", "30",
             "--set", "u.hinge=1", "--out", out, "--seed", "4", *SHORT)
    ended = call(*given, "--json")
    assert ended.exit_code == 0, ended.stderr
    facts = json.loads(ended.stdout)
    assert facts["runs"] == 30 and facts["ended"] == {"finished": 30} and facts["files"] == [str(out)]
    found = bc.open_sweep(out)
    assert found.q.dims == ("run", "time", "coordinate") and (found.u.values[:, 0] == 1.0).all()
    assert found["q.hinge"].values.tolist() == [0.5] * 10 + [1.0] * 10 + [1.5] * 10
    expected = bc.latin_hypercube({"damping": "normal(0.5,0.01)"}, 10, seed=4).damping.values
    np.testing.assert_array_equal(found.damping.values, np.tile(expected, 3))
    again = call(*given)
    assert again.exit_code == 3 and "holds a sweep already" in again.stderr
    assert call(*given, "--resume").exit_code == 0
    other = call(*given, "--resume", "--reduce", "last")
    assert other.exit_code == 2 and "are: reduce" in other.stderr


def test_without_a_file_statistics_are_printed(model: Path) -> None:
    ended = call("sweep", model, "--sample", "damping~uniform(0.1,0.9)", "--runs", "16", "--method", "sobol",
                 "--reduce", "last,max", "--set", "hinge=1.0", "--set", "p:damping=0.3", *SHORT)
    assert ended.exit_code == 0, ended.stderr
    assert "16 finished" in ended.stdout and "q_last[hinge.angle]" in ended.stdout and "energy_max" in ended.stdout


def test_a_file_at_the_end(model: Path) -> None:
    ended = call("sweep", model, "--vary", "damping=0.1,0.2", "--out", model.with_name("study.nc"), *SHORT)
    assert ended.exit_code == 0, ended.stderr
    import xarray

    with xarray.open_dataset(model.with_name("study.nc")) as found:
        assert found.damping.values.tolist() == [0.1, 0.2] and found.sizes["time"] > 2


def test_failures_are_told(model: Path) -> None:
    ended = call("sweep", "four_bar", "--vary", "q.C=9,-2.2", "--json", *SHORT)
    assert ended.exit_code == 0, ended.stderr
    facts = json.loads(ended.stdout)
    assert facts["ended"] == {"failed": 1, "finished": 1} and "run 0: " in facts["reason"]
    assert "1 of 2 runs did not finish" in ended.stderr
    ended = call("sweep", "four_bar", "--vary", "q.C=9", *SHORT)
    assert ended.exit_code == 1 and "none of 1 samples that were tried can be put together" in ended.stderr


@pytest.mark.parametrize(("arguments", "message"), [
    ((), "nothing varies; give --vary"), (("--vary", "damping=1:2"), "--vary damping=1:2: write NAME=FIRST:LAST:COUNT"),
    (("--vary", "damping=1:2:0"), "--vary damping=1:2:0"), (("--vary", "damping"), "write NAME=VALUE"),
    (("--vary", "mass=1,2"), "no parameter 'mass'"), (("--vary", "damping=1", "--vary", "damping=2"), "--vary: a name"),
    (("--sample", "damping~normal(1,1)"), "--runs: says how many"),
    (("--vary", "damping=1", "--runs", "5"), "--runs: without --sample"),
    (("--sample", "damping", "--runs", "5"), "--sample damping: write NAME~DISTRIBUTION"),
    (("--sample", "damping~gauss(1,1)", "--runs", "5"), "damping: there is no distribution 'gauss'"),
    (("--sample", "damping~normal(1,1)", "--vary", "q.hinge=1,2", "--runs", "5"), "--runs 5: must be a positive mul"),
    (("--vary", "damping=1", "--method", "grid"), "--method grid: there are lhs, sobol, random"),
    (("--vary", "damping=1", "--executor", "slurm"), "--executor slurm: there are threads"),
    (("--vary", "damping=1", "--address", "tcp://x:1"), "--address: is that of a Dask scheduler"),
    (("--vary", "damping=1", "--out", "study.csv"), "--out study.csv: the name ends in .zarr"),
    (("--vary", "damping=1", "--resume"), "--resume: goes on with a store"),
    (("--vary", "damping=1", "--reduce", "median"), "reduce: 'median'"),
    (("--vary", "damping=1", "--duration", "-1"), "duration must be positive"),
    (("--vary", "damping=1", "--set", "q.knee=1"), "no coordinate 'knee'"),
    (("--vary", "damping=1", "--stepper", "rk5"), "no stepper 'rk5'")])
def test_wrong_usage_names_the_argument(arguments: tuple[str, ...], message: str, model: Path) -> None:
    ended = call("sweep", model, *arguments)
    assert ended.exit_code == 2 and message in ended.stderr, ended.stderr
