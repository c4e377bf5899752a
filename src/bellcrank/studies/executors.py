"""Where chunks are computed: threads or processes of this machine, any executor, a Dask client, Ray.

All of them are the same to a sweep: rows go in, a `concurrent.futures.Future` of their results comes out.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from typing import Any, Protocol

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.studies.lane_blocks import chunk_task, compute_chunk, packed
from bellcrank.studies.study import ChunkResult, Study
from bellcrank.studies.worker_process import receive, send

__all__ = ["WorkerPool", "Workers", "is_lost", "workers_of"]


# -- processes that compute chunks, and are replaced when they die ----------------------------------
#: what a worker runs; its argument is the path on which modules are found
_PROGRAM = ("import sys; sys.path[:] = sys.argv[1].split(chr(0x1f)); "
            "from bellcrank.studies.worker_process import main; main()")
#: seconds that a worker is waited for at the end
_PATIENCE = 5.0


class WorkerLostError(RuntimeError):
    """The process that computed a chunk has died."""


class WorkerPool:
    """A number of processes with one study each. Threads of this process, one for each, hand them chunks."""

    def __init__(self, data: bytes, digest: str, workers: int) -> None:
        self._study, self._closing = (data, digest), False
        self._tasks: queue.SimpleQueue[tuple[Future[ChunkResult], Floats] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._children: set[subprocess.Popen[bytes]] = set()
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    @property
    def pids(self) -> list[int]:
        """Numbers of the processes that live."""
        with self._lock:
            return [child.pid for child in self._children if child.poll() is None]

    def submit(self, rows: Floats) -> Future[ChunkResult]:
        """Have rows computed."""
        future: Future[ChunkResult] = Future()
        self._tasks.put((future, rows))
        return future

    def close(self) -> None:
        """End all processes, at once where they are still at work."""
        self._closing = True
        with contextlib.suppress(queue.Empty):
            while True:
                left = self._tasks.get_nowait()
                if left is not None:
                    left[0].cancel()
        with self._lock:
            for child in self._children:
                child.kill()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join(_PATIENCE)

    def _serve(self) -> None:
        """Hand chunks to one process after the other dies."""
        child: subprocess.Popen[bytes] | None = None
        while True:
            task = self._tasks.get()
            if task is None or self._closing:
                break
            future, rows = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                if child is None or child.poll() is not None:
                    child = self._start(child)
                assert child.stdin is not None and child.stdout is not None
                send(child.stdin, rows)  # type: ignore[arg-type]
                good, answer = receive(child.stdout)  # type: ignore[arg-type]
            except (EOFError, OSError):
                code = None if child is None else child.wait()
                future.set_exception(WorkerLostError(f"the process of a worker ended (exit code {code})"))
                continue
            except BaseException as error:
                future.set_exception(error)
                continue
            if good:
                future.set_result(answer)
            else:
                future.set_exception(answer)
        self._end(child)

    def _start(self, dead: subprocess.Popen[bytes] | None) -> subprocess.Popen[bytes]:
        if dead is not None:
            self._end(dead)
        child = subprocess.Popen([sys.executable, "-c", _PROGRAM, chr(0x1f).join(sys.path)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        with self._lock:
            self._children.add(child)
        assert child.stdin is not None
        send(child.stdin, self._study)  # type: ignore[arg-type]
        return child

    def _end(self, child: subprocess.Popen[bytes] | None) -> None:
        if child is None:
            return
        child.kill()
        child.wait()
        with self._lock:
            self._children.discard(child)
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


_CHOICES = ("'threads', 'processes', a concurrent.futures executor, a dask.distributed Client, or the module ray after "
            "ray.init()")
#: how other libraries call the loss of a worker
_LOST = ("KilledWorker", "WorkerCrashedError", "NodeDiedError", "CommClosedError", "LostDependenciesError")


#: sends a study, its digest and rows to be computed; returns their results to come, and what calls it off
Submit = Callable[..., tuple[Future[ChunkResult], Callable[[], object]]]


class Workers(Protocol):
    """What computes chunks."""

    count: int  #: how many it computes at a time

    def submit(self, rows: Floats) -> Future[ChunkResult]:
        """Have rows computed."""

    def close(self) -> None:
        """End what was started for this sweep; what the user gave goes on."""


def is_lost(error: BaseException) -> bool:
    """Whether an error says that a worker was lost, so that the chunk can be computed by another."""
    return isinstance(error, (WorkerLostError, CancelledError, BrokenExecutor)) or type(error).__name__ in _LOST


def workers_of(executor: Any, study: Study) -> Workers:
    """What a sweep's `executor` stands for."""
    if executor is None or executor == "threads":
        return _Threads(study, None)
    if executor == "processes":
        return _Processes(study)
    if isinstance(executor, ThreadPoolExecutor):
        return _Threads(study, executor)
    if isinstance(executor, Executor):
        return _Remote(study, _submit_to(executor), getattr(executor, "_max_workers", None) or _cores())
    if _is_dask(executor):
        return _Remote(study, _dask(executor), sum(executor.nthreads().values()) or _cores())
    if getattr(executor, "__name__", "") == "ray":
        return _Remote(study, _ray(executor), int(executor.cluster_resources().get("CPU", 1)))
    raise ModelError(f"sweep: executor must be {_CHOICES}; got {executor!r}")


def _cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


class _Threads:
    """Threads of this process: compiled code lets go of the interpreter."""

    def __init__(self, study: Study, pool: ThreadPoolExecutor | None) -> None:
        self._study, self._stop, self._own = study, threading.Event(), pool is None
        if study.backend is not None:
            _ = study.device  # says what is missing here
        self._pool = pool or ThreadPoolExecutor(_cores(), thread_name_prefix="sweep")
        self.count = getattr(self._pool, "_max_workers", 1)

    def submit(self, rows: Floats) -> Future[ChunkResult]:
        return self._pool.submit(compute_chunk, self._study, rows, self._stop)

    def close(self) -> None:
        self._stop.set()
        if self._own:
            self._pool.shutdown(wait=True, cancel_futures=True)


class _Processes:
    """Processes of our own, replaced when they die."""

    def __init__(self, study: Study) -> None:
        self.count = _cores()
        self.pool = WorkerPool(*packed(study), self.count)

    def submit(self, rows: Floats) -> Future[ChunkResult]:
        return self.pool.submit(rows)

    def close(self) -> None:
        self.pool.close()


class _Remote:
    """Workers that somebody else looks after."""

    def __init__(self, study: Study, submit: Submit, count: int) -> None:
        self._message, self._submit, self.count = packed(study), submit, max(1, count)
        self._open: dict[Future[ChunkResult], Callable[[], object]] = {}

    def submit(self, rows: Floats) -> Future[ChunkResult]:
        future, cancel = self._submit(*self._message, rows)
        self._open[future] = cancel
        future.add_done_callback(lambda done: self._open.pop(done, None))
        return future

    def close(self) -> None:
        for cancel in list(self._open.values()):
            cancel()


def _submit_to(executor: Executor) -> Submit:
    def submit(*message: Any) -> tuple[Future[ChunkResult], Callable[[], object]]:
        try:
            future = executor.submit(chunk_task, *message)
            return future, future.cancel
        except (BrokenExecutor, RuntimeError) as error:
            raise ModelError(f"sweep: the executor {type(executor).__name__} takes no more work ({error}). With out, "
                             "resume=True goes on from here with another one; executor='processes' replaces workers "
                             "that die") from error

    return submit


def _is_dask(executor: Any) -> bool:
    found = sys.modules.get("distributed")
    return found is not None and isinstance(executor, found.Client)


def _dask(client: Any) -> Submit:
    """Tasks of a Dask client; the scheduler itself gives those of a lost worker to another."""
    def submit(data: bytes, digest: str, rows: Floats) -> tuple[Future[ChunkResult], Callable[[], object]]:
        task = client.submit(chunk_task, data, digest, rows, pure=False)
        future: Future[ChunkResult] = Future()
        future.set_running_or_notify_cancel()

        def hand_over(done: Any) -> None:
            if done.status == "finished":
                try:
                    future.set_result(done.result())
                except BaseException as error:  # gathered from a worker that has died since
                    future.set_exception(WorkerLostError(str(error)))
            elif done.status == "error":
                future.set_exception(done.exception())
            else:
                future.set_exception(WorkerLostError(f"Dask gave up a task: {done.status}"))
            done.release()

        task.add_done_callback(hand_over)
        return future, task.cancel

    return submit


def _ray(ray: Any) -> Submit:
    """Tasks of Ray, which starts lost ones again itself."""
    remote = ray.remote(chunk_task).options(max_retries=3)
    kept: dict[str, Any] = {}

    def submit(data: bytes, digest: str, rows: Floats) -> tuple[Future[ChunkResult], Callable[[], object]]:
        if digest not in kept:
            kept[digest] = ray.put(data)
        task = remote.remote(kept[digest], digest, rows)
        return task.future(), lambda: ray.cancel(task)

    return submit
