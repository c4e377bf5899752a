"""Sweeps: results that equal those of `simulate`, to the last bit the same however they are computed; runs that fail
beside others that do not; what is refused."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import bellcrank as bc
from bellcrank.studies import sweeping
from bellcrank.studies.sample_table import table_of
from bellcrank.studies.study import ChunkResult, RunValues
from bellcrank.studies.zarr_store import ZarrSink
from sweeps import RUN, four_bar, pendulum, same

FAILS = "ignore:.*runs did not finish:bellcrank.SimulationWarning"


def test_a_grid_and_samples() -> None:
    """Each run is that of `simulate` with its parameters and its beginning."""
    study = bc.sweep(pendulum(), {"damping": [0.1, 0.3], "q.hinge": [0.5, 1.0, 1.5]}, run=RUN,
                     samples={"u.hinge": [0.0, 2.0]})
    assert study.q.dims == ("run", "time", "coordinate") and study.sizes["run"] == 12
    assert study.damping.values.tolist() == [0.1] * 6 + [0.3] * 6 and study["u.hinge"].values.tolist() == [0.0, 2.0] * 6
    for k in (0, 5, 11):
        one = pendulum().with_parameters(damping=float(study.damping[k])).simulate(
            ([float(study["q.hinge"][k])], [float(study["u.hinge"][k])]), **RUN)
        np.testing.assert_allclose(study.q.values[k], one.q.values, rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(study.energy.values[k], one["energy"].values, rtol=1e-13)
    np.testing.assert_array_equal(study.time.values, one.time.values)
    assert (study.status == "finished").all() and (study.reason == "").all()
    table = study.set_index(run=["damping", "q.hinge", "u.hinge"]).unstack("run")
    np.testing.assert_array_equal(table.q.sel({"damping": 0.3, "q.hinge": 1.5, "u.hinge": 2.0}), study.q[11])


def looped_study(**options: Any) -> xarray.Dataset:
    """Four-bars of other lengths, masses and beginnings, some of which cannot be put together."""
    samples = bc.latin_hypercube({"mass": "normal(5, 0.5)"}, 17, seed=2)
    with pytest.warns(bc.SimulationWarning, match="runs did not finish"):
        return bc.sweep(four_bar(), {"length": [0.9, 1.0, 1.2, 1.42], "q.A": [0.2, 1.0]}, samples=samples,
                        run={"duration": 0.4, "step": 2e-3, "output": 0.1, "u": {"A": 3.0}}, **options)


@pytest.fixture(scope="module")
def looped() -> xarray.Dataset:
    return looped_study(executor="threads")


@pytest.mark.parametrize("chunk", (7, 64, 1000))
def test_chunks_change_nothing(looped: xarray.Dataset, chunk: int) -> None:
    same(looped, looped_study(chunk=chunk))


def test_order_and_neighbours_change_nothing(looped: xarray.Dataset) -> None:
    """Fewer runs, in another order, with the same reference first."""
    first = 0
    assert looped.status.values[first] == "finished"
    order = [first, 101, 3, 77, 89, 5]
    samples = {name: looped[name].values[order] for name in ("length", "q.A", "mass")}
    some = bc.sweep(four_bar(), samples=samples, run={"duration": 0.4, "step": 2e-3, "output": 0.1, "u": {"A": 3.0}})
    same(looped.isel(run=order), some)


@pytest.mark.parametrize("stepper", ("gauss", "dop853"))
def test_order_changes_nothing_with_other_steppers(stepper: str) -> None:
    rng = np.random.default_rng(5)
    samples = {"mass": rng.uniform(3.0, 6.0, 12), "u.A": rng.uniform(-20.0, 20.0, 12)}
    run = {"duration": 0.2, "step": 4e-3, "output": 0.1, "stepper": stepper, "rtol": 1e-6, "q": {"A": 1.0}}
    order = np.array([0, *1 + rng.permutation(11)])
    one = bc.sweep(four_bar(), samples=samples, run=run)
    other = bc.sweep(four_bar(), samples={name: x[order] for name, x in samples.items()}, run=run, chunk=5)
    same(one.isel(run=order), other)


def test_other_executors_change_nothing(looped: xarray.Dataset) -> None:
    with ThreadPoolExecutor(2) as pool:
        same(looped, looped_study(executor=pool, chunk=40))
        assert pool.submit(int, "5").result() == 5  # it is the user's
    import multiprocessing

    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        same(looped, looped_study(executor=processes, chunk=100))


def test_loops_are_closed_with_their_own_parameters(looped: xarray.Dataset) -> None:
    good = (looped.status == "finished").values
    assert good.sum() == 7 * 17
    assert float(looped.loop_error.values[good].max()) < 1e-12
    np.testing.assert_allclose(looped.q.values[good, 0, 0], looped["q.A"].values[good], rtol=0.0, atol=1e-9)
    bad = np.flatnonzero(~good)
    assert all("do not close" in r or "A" in r for r in looped.reason.values[bad])
    assert np.isnan(looped.q.values[bad]).all()
    for k in (int(np.flatnonzero(good)[-1]), int(np.flatnonzero(good)[20])):
        own = four_bar().with_parameters(length=float(looped.length[k]), mass=float(looped.mass[k]))
        state = own.assemble(q={"A": float(looped["q.A"][k])}, u={"A": 3.0})
        one = own.simulate(state, 0.4, step=2e-3, output=0.1)  # of other independent speeds: another truncation error
        np.testing.assert_allclose(looped.q.values[k], one.q.values, rtol=0.0, atol=1e-9)


@pytest.mark.filterwarnings(FAILS)
def test_runs_that_diverge_are_told() -> None:
    """One of them, in the middle; the others do not notice."""
    speeds = np.ones(9)
    speeds[4] = 4e3
    study = bc.sweep("double_pendulum", samples={"u.elbow": speeds}, run={**RUN, "step": 0.05})
    assert study.status.values.tolist() == ["finished"] * 4 + ["diverged"] + ["finished"] * 4
    assert "too long for so fast" in str(study.reason.values[4])
    alone = bc.sweep("double_pendulum", samples={"u.elbow": speeds[:4]}, run={**RUN, "step": 0.05})
    same(study.isel(run=slice(4)), alone)
    np.testing.assert_array_equal(study.q.values[5], alone.q.values[0])


@pytest.mark.filterwarnings(FAILS)
def test_all_runs_diverge() -> None:
    study = bc.sweep("double_pendulum", samples={"u.elbow": np.full(5, 4e3)}, run={**RUN, "step": 0.05})
    assert (study.status == "diverged").all() and study.sizes["time"] == 6


def angle_of(result: Any) -> dict[str, Any]:
    """Refuses runs that began beyond 2 rad."""
    if float(result.q.isel(time=0).max()) > 2.0:
        raise ValueError("too far")
    return {"largest": abs(result.q).max("time"), "arrays": result.u.values[-1],
            "count": np.arange(result.sizes["sample"])}


@pytest.mark.filterwarnings(FAILS)
def test_reduce_may_fail_for_some_runs() -> None:
    angles = np.linspace(0.1, 1.9, 300)
    angles[[0, 50, 51, 299]] = 2.5
    study = bc.sweep(pendulum(), samples={"q.hinge": angles}, run=RUN, reduce=angle_of)
    bad = np.flatnonzero(study.status.values == "failed")
    assert bad.tolist() == [0, 50, 51, 299] and set(study.reason.values[bad].tolist()) == {"ValueError: too far"}
    assert np.isnan(study.largest.values[bad]).all() and (study["count"].values[bad] == -1).all()
    good = np.delete(np.arange(300), bad)
    np.testing.assert_allclose(study.largest.values[good, 0], angles[good], rtol=0.0, atol=1e-12)
    assert study.largest.dims == ("run", "coordinate") and study.arrays.dims == ("run", "arrays_1")


def test_reductions_by_name() -> None:
    whole = bc.sweep(pendulum(), {"damping": [0.1, 0.2, 0.3]}, run={**RUN, "q": {"hinge": 1.0}})
    some = bc.sweep(pendulum(), {"damping": [0.1, 0.2, 0.3]}, run={**RUN, "q": {"hinge": 1.0}},
                    reduce=["last", "max", "mean"])
    np.testing.assert_array_equal(some.q_last.values, whole.q.values[:, -1])
    np.testing.assert_array_equal(some.energy_max.values, whole.energy.values.max(axis=1))
    np.testing.assert_allclose(some.u_mean.values, whole.u.values.mean(axis=1), rtol=1e-14)
    assert "time" not in some.dims


@pytest.mark.filterwarnings(FAILS)
def test_a_function_as_run() -> None:
    """Static torques of lanes; the function refuses some samples, among them the first."""
    def torque(system: bc.System, samples: xarray.Dataset) -> dict[str, Any]:
        q = samples["angle"].values[:, None] if "angle" in samples else samples["q.hinge"].values[:, None]
        if (np.abs(q) > 1.5).any():
            raise ArithmeticError("beyond")
        return {"torque": system.inverse_dynamics(q, 0.0 * q, 0.0 * q)[:, 0]}

    angles = np.linspace(0.0, 1.4, 140)
    angles[[0, 77]] = 1.6
    study = bc.sweep(pendulum(), samples={"q.hinge": angles}, run=torque, chunk=50)
    assert np.flatnonzero(study.status.values == "failed").tolist() == [0, 77]
    good = np.delete(np.arange(140), [0, 77])
    exact = pendulum().inverse_dynamics(angles[good, None], np.zeros((138, 1)), np.zeros((138, 1)))[:, 0]
    np.testing.assert_allclose(study.torque.values[good], exact, rtol=1e-14)


def test_events_and_controllers() -> None:
    """An event ends each run at a time of its own; a traced controller acts in all of them."""
    reach = bc.Event(lambda t, q, u: q[0] - 0.2, "reached", direction=-1, action="stop")
    study = bc.sweep(pendulum(), {"q.hinge": [0.5, 0.6]}, run={**RUN, "events": [reach]})
    assert (study.status == "stopped").all() and "reached" in str(study.reason.values[0])
    held = bc.sweep(pendulum(), {"q.hinge": [0.5, 0.6]}, run={
        **RUN, "control": bc.Traced(lambda t, q, u: [-1e3 * (q[0] - 0.5) - 50.0 * u[0]])})
    assert float(abs(held.q.values[:, -1] - 0.5).max()) < 0.05


def test_doubtful_energies_are_told() -> None:
    """A run that finished with steps that are too coarse says so."""
    m = bc.compile(bc.load("double_pendulum"))
    study = bc.sweep(m, {"q.shoulder": [0.1, 3.0], "u.elbow": [12.0]}, run={"duration": 10.0, "step": 0.05})
    said = study.reason.values[study.status.values == "finished"].tolist()
    assert any("energy changed by" in r for r in said)


# -- stores -----------------------------------------------------------------------------------------------
def stored(folder: Path, **options: Any) -> xarray.Dataset:
    pytest.importorskip("zarr")
    return bc.sweep(pendulum(), {"damping": np.linspace(0.0, 1.0, 50)}, out=folder / "study.zarr",
                    **{"chunk": 8, "run": {**RUN, "q": {"hinge": 1.0}}, **options})


def test_a_store_holds_the_same(tmp_path: Path) -> None:
    found = stored(tmp_path)
    dask = pytest.importorskip("dask.array")
    assert isinstance(found.q.data, dask.Array) and found.q.chunks[0][0] == 8
    memory = bc.sweep(pendulum(), {"damping": np.linspace(0.0, 1.0, 50)}, run={**RUN, "q": {"hinge": 1.0}})
    same(memory, found)
    same(found, bc.open_sweep(tmp_path / "study.zarr"))
    assert found.q.attrs["long_name"] == memory.q.attrs["long_name"] and found.attrs["machine"] == "pendulum"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["study.zarr"]


def test_resume_computes_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks that are marked stay, those that are not are computed, whatever was written of them."""
    zarr = pytest.importorskip("zarr")
    whole = stored(tmp_path).load()
    group = zarr.open_group(str(tmp_path / "study.zarr"), mode="r+")
    group["chunk_done"][3] = 0
    group["q"][24:28] = 99.0  # half written
    group["status"][24:32] = np.array(["pending"] * 8, dtype=object)
    group["q"][0:8] = 55.0  # marked: not looked at again
    asked: list[tuple[int, int]] = []
    original = sweeping._span

    def span(table: Any, chunk: int, number: int) -> Any:
        asked.append(original(table, chunk, number))
        return asked[-1]

    monkeypatch.setattr(sweeping, "_span", span)
    again = stored(tmp_path, resume=True, chunk=None).load()
    assert set(asked) == {(24, 32)}
    assert (again.q.values[:8] == 55.0).all()
    same(whole.isel(run=slice(8, None)), again.isel(run=slice(8, None)))


def test_what_is_not_written_is_not_marked(tmp_path: Path) -> None:
    """A chunk that could not be written whole is missing still."""
    pytest.importorskip("zarr")
    values = {"x": RunValues(("run",), np.arange(4.0), {})}
    good = ChunkResult(values, {}, ["finished"] * 4, [""] * 4)
    sink = ZarrSink(tmp_path / "study.zarr", table_of({"a": np.arange(8.0)}, None), {"varied": ["a"]}, {}, 4)
    sink.put(0, good)
    with pytest.raises(ValueError):
        sink.put(1, good._replace(reason=["", ""]))
    assert sink.missing() == [1]
    sink.put(1, good)
    assert sink.missing() == []
    sink.close()


@pytest.mark.parametrize(("change", "part"), [
    ({"run": {**RUN, "q": {"hinge": 1.1}}}, "are: run."), ({"reduce": "last"}, "are: reduce.")])
def test_another_study_is_refused(change: Any, part: str, tmp_path: Path) -> None:
    stored(tmp_path)
    with pytest.raises(bc.ModelError, match=re.escape(part)):
        stored(tmp_path, resume=True, **change)
    with pytest.raises(bc.ModelError, match="are: the machine, the samples"):
        bc.sweep(four_bar(), {"mass": [1.0]}, run={**RUN, "q": {"A": 1.0}}, out=tmp_path / "study.zarr", resume=True)
    with pytest.raises(bc.FileError, match="holds a sweep already; resume=True"):
        stored(tmp_path)


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    (tmp_path / "study.zarr").mkdir()
    (tmp_path / "study.zarr" / "precious").write_text("data")
    for resume in (False, True):
        with pytest.raises(bc.FileError, match="exists and is no store of a sweep"):
            stored(tmp_path, resume=resume)
    assert (tmp_path / "study.zarr" / "precious").read_text() == "data"
    with pytest.raises(bc.FileError, match="the folder .* does not exist"):
        stored(tmp_path / "nowhere")


def test_without_zarr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps in memory need nothing; stores say what to install."""
    monkeypatch.setitem(sys.modules, "zarr", None)
    assert bc.sweep(pendulum(), {"damping": [0.1]}, run=RUN, reduce="last").sizes["run"] == 1
    with pytest.raises(bc.ModelError, match=re.escape("pip install 'bellcrank[sweep]'")):
        bc.sweep(pendulum(), {"damping": [0.1]}, run=RUN, out=tmp_path / "study.zarr")


# -- what is refused ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("options", "message"), [
    ({"parameters": {"dampng": [1.0]}}, "no parameter 'dampng' in 'pendulum'; did you mean 'damping'?"),
    ({"parameters": {"q.hing": [1.0]}}, "q.hing: no joint 'hing'"),
    ({"parameters": {"q.hinge.length": [1.0]}}, "joint 'hinge' has angle"),
    ({"parameters": {}}, "nothing varies"), ({"parameters": {"damping": []}}, "damping needs a list of numbers"),
    ({"parameters": {"damping": ["x"]}}, "parameters: damping: ['x'] are no numbers"),
    ({"parameters": {"damping": [1.0, np.nan]}}, "damping: values must be finite, number 1"),
    ({"parameters": None, "samples": {"damping": [1.0, 2.0], "q.hinge": [1.0]}}, "2 of damping, 1 of q.hinge"),
    ({"samples": {"damping": [1.0]}}, "damping is in parameters and in samples"),
    ({"run": {"step": 0.1}}, "run needs a duration"),
    ({"run": {"duration": 1.0, "q": {"knee": 1.0}}}, "no joint called 'knee'"),
    ({"run": {"duration": 1.0, "stepp": 0.1}}, "run has no option 'stepp'; did you mean 'step'?"),
    ({"run": {"duration": 1.0, "file": "x.nc"}}, "'file' is not for sweeps: the results go to out"),
    ({"run": 5}, "run is a mapping of what simulate() takes"), ({"run": {"duration": 1.0, "stepper": "rk5"}}, "rk5"),
    ({"run": {"duration": 1.0, "stepper": "scipy/RK45"}}, "run: stepper scipy/RK45: batches of parameters need"),
    ({"reduce": "median"}, "'median' is neither a function"), ({"chunk": 0}, "chunk must be a positive number"),
    ({"executor": "cluster"}, "executor must be 'threads', 'processes'"), ({"resume": True}, "resume=True needs out"),
    ({"progress": "yes"}, "progress must be True"),
    ({"reduce": lambda result: [1.0]}, "reduce must return a mapping"),
    ({"reduce": lambda result: {"x": [1.0]}}, "'x' has the shape (1,)"),
    ({"reduce": lambda result: {"x": result.time}}, "'x' has the dimensions ('time',)"),
    ({"reduce": lambda result: {"damping": result.q}}, "'damping' is what sweeps call something else"),
    ({"run": lambda system, samples: 1 / 0}, "run fails for all of 1 samples that were tried"),
    ({"parameters": {"q.hinge": [1.0]}, "run": {"duration": 1.0, "q": [1.0]}}, "q must be a mapping {joint: value}")])
def test_refusals(options: Any, message: str) -> None:
    with pytest.raises(bc.ModelError, match=re.escape(message)):
        bc.sweep(pendulum(), **{"parameters": {"damping": [0.1]}, "run": RUN, **options})


def test_results_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    from bellcrank.studies import result_sinks

    monkeypatch.setattr(result_sinks, "available_memory", lambda: 1e4)
    with pytest.raises(bc.ModelError, match=re.escape("write them to a store (out=...)")):
        bc.sweep(pendulum(), {"damping": np.linspace(0.0, 1.0, 60)}, run=RUN)


def test_machines_by_name_and_refused_ones() -> None:
    study = bc.sweep("pendulum", {"q.hinge": [0.1]}, run=RUN, reduce="last")
    assert study.attrs["machine"] == "pendulum"
    with pytest.raises(bc.BellcrankError, match="sweep: the machine has arrays of the parameters damping"):
        bc.sweep(pendulum().with_parameters(damping=[1.0, 2.0]), {"q.hinge": [0.1]}, run=RUN)
    with pytest.raises(bc.AssemblyError, match="none of 2 samples that were tried"):
        bc.sweep(four_bar(), {"length": [9.0, 10.0]}, run={"duration": 0.1})


def test_progress_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int]] = []
    bc.sweep(pendulum(), {"damping": np.linspace(0.0, 1.0, 20)}, run=RUN, reduce="last", chunk=5,
             progress=lambda done, runs: seen.append((done, runs)))
    assert seen == [(5, 20), (10, 20), (15, 20), (20, 20)]
    assert capsys.readouterr().err == ""
    bc.sweep(pendulum(), {"damping": [0.0]}, run=RUN, reduce="last", progress=True)
    assert "1/1" in capsys.readouterr().err
    bc.sweep(pendulum(), {"damping": np.linspace(0.0, 1.0, 20)}, run=RUN, reduce="last", chunk=5, progress=True)
    told = capsys.readouterr().err
    assert "20/20" in told and "/s" in told, told


def test_chunks_are_whole_blocks() -> None:
    from bellcrank.studies.study import LANES, study_of

    study = study_of(pendulum(), table_of({"damping": [0.1]}, None), RUN, "last")
    assert [sweeping._chunk_of(study, runs, 2) % (LANES - 1) for runs in (1, 5000, 100_000)] == [0, 0, 0]
