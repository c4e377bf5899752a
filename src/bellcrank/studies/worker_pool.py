"""Processes that compute chunks, and are replaced when they die: only the chunk at hand is lost, and reported so."""

from __future__ import annotations

import contextlib
import queue
import subprocess
import sys
import threading
from concurrent.futures import Future

from bellcrank.arrays import Floats
from bellcrank.studies.kept_values import ChunkResult
from bellcrank.studies.worker_process import receive, send

__all__ = ["WorkerLostError", "WorkerPool"]

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
