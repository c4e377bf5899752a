"""Shared by all tests: one throw-away cache of compiled code per run, time limits, tests that repeat exactly."""

from __future__ import annotations

import faulthandler
import importlib.util
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import everyday
import properties

settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci")

#: seconds that one test may take, on a machine with much else to do
LIMIT = float(os.environ.get("BELLCRANK_TEST_LIMIT", "900"))
#: where the run that we are part of keeps compiled code: set for its workers and for runs that tests start
SHARED = "BELLCRANK_TEST_CACHE"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shares", action="store_true", help="print how many examples of property tests compare")
    parser.addoption("--costs", metavar="FILE", help="append the processor time of every test to a file")
    parser.addoption("--all", action="store_true", help="every case of large tables, not an everyday run's cover")


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported: nothing of the user's own cache is read or written.

    The process that the user started makes the folder, all others (workers, children) inherit it.
    """
    before = {name: os.environ.get(name) for name in (SHARED, "BELLCRANK_CACHE")}
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of workers, which share the cores already
    place = before[SHARED] or tempfile.mkdtemp(prefix="bellcrank-tests-")
    os.environ[SHARED] = os.environ["BELLCRANK_CACHE"] = place

    def restore() -> None:
        if before[SHARED] is None:
            shutil.rmtree(place, ignore_errors=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    config.add_cleanup(restore)
    config.args[:] = [tested(argument, config) for argument in config.args]
    config.addinivalue_line("markers", properties.MARK)
    config.addinivalue_line("markers", everyday.MARK)
    config.pluginmanager.register(properties.Counting(config.getoption("--shares")))
    config.pluginmanager.register(everyday.Everyday())
    if config.getoption("--costs"):
        config.pluginmanager.register(everyday.Costs(config.getoption("--costs")))
    config.pluginmanager.register(Limits())  # not as a hook of this file, which doctests in src would not call


def tested(argument: str, config: pytest.Config) -> str:
    """Where to find doctests: if another bellcrank than that in src is imported (an installed wheel), in that one."""
    spec = importlib.util.find_spec("bellcrank")
    if spec is None or spec.origin is None:
        return argument
    used, source = Path(spec.origin).resolve().parent, config.rootpath.resolve() / "src" / "bellcrank"
    name, *test = argument.split("::")
    asked = (config.invocation_params.dir / name).resolve()
    if used == source or not (asked == source.parent or asked.is_relative_to(source)):
        return argument
    inside = asked.relative_to(source) if asked != source.parent else Path()
    return "::".join([str(used / inside), *test])


class Limits:
    """A test that hangs, in Python or in compiled code, ends its process with a traceback of all threads.

    With pytest-xdist that is one failed test: another worker takes over.
    """

    def __init__(self) -> None:
        self.stderr = os.dup(2)  # pytest captures what tests write to 2 itself

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        faulthandler.dump_traceback_later(LIMIT, exit=True, file=self.stderr)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def pytest_unconfigure(self) -> None:
        os.close(self.stderr)


@pytest.fixture
def signals_ignored() -> Iterator[None]:
    """This process as `nohup` and daemons start it, whose children inherit that."""
    names = [name for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]
    before = [(getattr(signal, name), signal.signal(getattr(signal, name), signal.SIG_IGN)) for name in names]
    yield
    for which, handler in before:
        signal.signal(which, handler)


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers in every run."""
    return np.random.default_rng(20240229)
