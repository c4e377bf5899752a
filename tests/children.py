"""Programs that tests start: with default signal handlers, a time limit, and nothing left behind.

Whoever starts the tests may ignore SIGINT (``nohup``, daemons, some CI), and children inherit that. A child here is
started by way of this very file run as a program, which restores the handlers and bounds the files the child may
write before it becomes the program asked for. Each child leads a process group of its own, which is ended as a whole.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

LIMIT = 300.0  #: seconds a child may take, unless a test says otherwise
LARGEST = 2**28  #: bytes of one file that a child may write


def run(arguments: Sequence[str | Path], *, limit: float = LIMIT, cwd: Path | None = None,
        env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A program's exit code and what it printed; `TimeoutExpired` if it takes longer than `limit` seconds.

    >>> run([sys.executable, "-c", "print(6 * 7)"]).stdout
    '42\\n'
    """
    with started(arguments, limit=None, cwd=cwd, env=env) as child:
        out, err = child.communicate(timeout=limit)
    return subprocess.CompletedProcess(list(map(str, arguments)), child.returncode, out, err)


def run_code(code: str, *arguments: str, limit: float = LIMIT, cwd: Path | None = None,
             env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """`run` of a Python program given as text, indented or not."""
    return run([sys.executable, "-c", textwrap.dedent(code), *arguments], limit=limit, cwd=cwd, env=env)


@contextmanager
def started(arguments: Sequence[str | Path], *, limit: float | None = LIMIT, cwd: Path | None = None,
            env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A running program with both outputs as pipes; it is killed after `limit` seconds and at the end of the block."""
    launcher = [sys.executable, "-I", "-S", __file__, *map(str, arguments)]
    child = subprocess.Popen(launcher, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, cwd=cwd, env=environment(**(env or {})), start_new_session=os.name == "posix")
    timer = threading.Timer(limit, _end, [child]) if limit is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield child
    finally:
        if timer is not None:
            timer.cancel()
        _end(child)
        child.wait(30.0)
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()


def environment(**more: str) -> dict[str, str]:
    """The variables of this process, with the package that it imported first on the path of Python."""
    import bellcrank

    here = [str(Path(bellcrank.__file__).resolve().parents[1])]
    paths = [more.pop("PYTHONPATH", ""), *here, os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **more}


def _end(child: subprocess.Popen[str]) -> None:
    """Kill a child with everything it started; none of it may outlive a test."""
    try:
        if os.name == "posix":
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    except (ProcessLookupError, PermissionError):
        pass


def _become(arguments: Sequence[str]) -> None:
    """Default handlers and bounded files, then another program in place of this one."""
    import resource

    for name in ("SIGINT", "SIGHUP", "SIGTERM", "SIGQUIT", "SIGALRM", "SIGPIPE"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    bound = LARGEST if hard == resource.RLIM_INFINITY else min(LARGEST, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bound, hard))
    os.execv(arguments[0], list(arguments))


if __name__ == "__main__":
    if os.name == "posix":
        _become(sys.argv[1:])
    sys.exit(subprocess.call(sys.argv[1:]))
