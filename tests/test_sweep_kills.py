"""Sweeps whose workers, or which themselves, are killed: every run once, none lost, none twice."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import children
from bellcrank.studies import executors, sweeping
from bellcrank.studies.executors import WorkerPool
from bellcrank.studies.result_sinks import MemorySink
from bellcrank.studies.zarr_store import ZarrSink
from sweeps import RUN, SAMPLES, pendulum, same, study

HERE = Path(__file__).resolve().parent


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the chunks whose results were taken."""
    numbers: list[int] = []
    original = MemorySink.put

    def noted(self: MemorySink, number: int, part: Any) -> None:
        numbers.append(number)
        original(self, number, part)

    monkeypatch.setattr(MemorySink, "put", noted)
    return numbers


class Killer:
    """Kills a process of a list once, when the first results come."""

    def __init__(self) -> None:
        self.pids: Any = None
        self.killed: list[int] = []

    def __call__(self, done: int, runs: int) -> None:
        found = [] if self.killed else list(self.pids())
        if found:
            self.killed.append(found[-1])
            os.kill(found[-1], signal.SIGKILL)


def test_a_worker_is_killed(put: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its chunk is computed by another."""
    killer, started = Killer(), []

    class Pool(WorkerPool):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            started.append(self)
            killer.pids = lambda: self.pids

    monkeypatch.setattr(executors, "WorkerPool", Pool)
    found = study(executor="processes", chunk=8, progress=killer)
    assert killer.killed and sorted(put) == list(range(20))
    assert (found.status == "finished").all() and not started[0].pids
    put.clear()
    same(study(), found)


def test_a_chunk_that_kills_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up, and told; the others are computed."""
    def deadly(result: Any) -> dict[str, Any]:
        if float(result.q.isel(time=0).max()) > 1.49:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"last": result.q.isel(time=-1, coordinate=0)}

    monkeypatch.setattr(sweeping, "_LOSSES", 2)
    monkeypatch.setattr(executors, "_cores", lambda: 1)
    pytest.importorskip("cloudpickle")
    with pytest.warns(bc.SimulationWarning, match="its worker died, 2 times over"):
        found = bc.sweep(pendulum(), samples=SAMPLES, run=RUN, reduce=deadly, executor="processes", chunk=40)
    assert (found.status[:120] == "finished").all() and (found.status[120:] == "failed").all()
    assert np.isfinite(found["last"][:120]).all() and np.isnan(found["last"][120:]).all()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A Dask cluster of two processes on this machine."""
    distributed = pytest.importorskip("distributed")
    path = os.pathsep.join([str(HERE), str(Path(bc.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    before, os.environ["PYTHONPATH"] = os.environ.get("PYTHONPATH"), path
    try:
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
                                      silence_logs=50) as cluster, distributed.Client(cluster) as made:
            yield made
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def test_dask_computes_the_same(client: Any) -> None:
    """All samples of all variables, of a machine that its workers compile, too."""
    samples = bc.drawn_samples({"damping": (0.0, 1.0)}, 300, method="sobol", seed=1)
    one, other = (bc.sweep(pendulum(), {"q.hinge": [0.5]}, samples=samples, run=RUN, executor=executor, chunk=chunk)
                  for executor, chunk in ((client, 100), ("threads", None)))
    same(one, other)


def test_a_dask_worker_is_killed(client: Any, put: list[int]) -> None:
    killer = Killer()
    killer.pids = lambda: client.run(os.getpid).values()
    found = study(executor=client, chunk=8, progress=killer)
    assert killer.killed and sorted(put) == list(range(20)) and (found.status == "finished").all()
    same(study(), found)


#: a sweep into a store that notes which chunks it has completed
SWEEP = """
    import os, sys
    from bellcrank.studies.zarr_store import ZarrSink
    from sweeps import study

    log = os.open(sys.argv[2], os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    original = ZarrSink.put
    def noted(self, number, part):
        original(self, number, part)
        os.write(log, b"%d\\n" % number)
    ZarrSink.put = noted
    study(out=sys.argv[1], resume=True, chunk=4, executor=sys.argv[3])
"""


def test_the_sweep_is_killed_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its workers, at a random moment; then it goes on to the end."""
    zarr = pytest.importorskip("zarr")
    store, log = tmp_path / "study.zarr", tmp_path / "log"
    rng = np.random.default_rng(3)
    env = {"PYTHONPATH": str(HERE)}
    program = [sys.executable, "-c", textwrap.dedent(SWEEP), str(store), str(log), "processes"]
    with children.started(program, env=env) as child:
        while child.poll() is None and not (log.exists() and log.read_text()):
            time.sleep(0.01)
        time.sleep(float(rng.uniform(0.0, 0.3)))
        child.kill()
        child.wait()
    done = zarr.open_group(str(store), mode="r")["chunk_done"][:]
    assert 0 < done.sum() < 40, "it was killed on the way"
    partly = bc.open_sweep(store)
    assert {"pending", "finished"} == set(np.unique(partly.status.values.astype(object)).tolist())
    later: list[int] = []
    original = ZarrSink.put

    def noted(self: ZarrSink, number: int, part: Any) -> None:
        original(self, number, part)
        later.append(number)

    monkeypatch.setattr(ZarrSink, "put", noted)
    study(out=store, resume=True, chunk=4)  # in another process, and on threads
    numbers = [*(int(x) for x in log.read_text().split()), *later]
    assert len(numbers) == len(set(numbers)) and len(numbers) >= 39  # killed between mark and note
    same(study(), bc.open_sweep(store))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "study.zarr"]


def test_two_sweeps_do_not_write_to_one_store(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    pytest.importorskip("fcntl")
    failures: list[str] = []

    def other(done: int, runs: int) -> None:
        if not failures:
            with pytest.raises(bc.FileError, match="another process is writing to"):
                study(out=tmp_path / "study.zarr", resume=True)
            failures.append("refused")

    found = study(out=tmp_path / "study.zarr", chunk=80, progress=other)
    assert failures == ["refused"] and (found.status == "finished").all()


def test_an_interrupt_leaves_a_store_that_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("zarr")

    def stop(done: int, runs: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study(out=tmp_path / "study.zarr", chunk=16, progress=stop)
    assert int((bc.open_sweep(tmp_path / "study.zarr").status == "finished").sum()) == 16
    same(study(), study(out=tmp_path / "study.zarr", resume=True))


# -- Ray --------------------------------------------------------------------------------------------
def test_ray_computes_the_same() -> None:
    """Where Ray is installed."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    try:
        same(study(executor=ray, chunk=40), study())
    finally:
        ray.shutdown()
