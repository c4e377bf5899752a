"""Code that several threads compile at once: the same as that of one, errors where it is asked for, and forks."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
import children
from assembly_text import unrolled_text
from bellcrank.scalar.graph import Graph, Scalar
from bellcrank.target import rolled_code
from bellcrank.target.llvm import compiling, jit


def long_text(seed: float, operations: int = 2000) -> str:
    """A chain of operations that takes a while to compile."""
    graph = Graph()
    x: Scalar = graph.leaf(("x", 0))
    y = x
    for i in range(operations):
        y = y * x + (seed + i) if i % 3 else y - x * y
    return unrolled_text([y], {"x": 1}, 1)


def run(library: jit.Library, x: float) -> float:
    kernel = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64,
                              *[ctypes.c_void_p] * 4, ctypes.c_int64)(library.address)
    given, out, strides = ctypes.c_double(x), ctypes.c_double(), (ctypes.c_int64 * 4)(1, 1, 1, 0)
    work = (ctypes.c_double * 1000)()  # values that go from one piece of the code to the next
    kernel(ctypes.byref(given), ctypes.byref(out), strides, 0, 1, work, None, None, None, 0)
    return out.value


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLCRANK_CACHE", "off")


def test_many_at_once_are_what_each_is_alone() -> None:
    texts = [long_text(float(seed), 300) for seed in range(12)]
    alone = [compiling.compiled(text) for text in texts]
    jobs = [compiling.Job(text, compiling.Effort.AS_TRACED, f"job {i}") for i, text in enumerate(texts)]
    assert [job.code() for job in jobs] == alone
    libraries = [jit.begin(text) for text in texts]
    assert [run(library, 0.5) for library in libraries] == [run(jit.load(text), 0.5) for text in texts]
    assert compiling._ordering.count == 0  # LLVM's scheduler is switched on again for others


def test_who_wants_another_order_waits() -> None:
    """LLVM's switch is one for the process: code comes out as if it had been made alone."""
    efforts = [compiling.Effort.AS_TRACED, compiling.Effort.SCHEDULED]
    wanted = [(long_text(float(seed), 300), efforts[seed % 3 == 0]) for seed in range(12)]
    alone = [compiling.compiled(*each) for each in wanted]
    jobs = [compiling.Job(*each, f"job {i}") for i, each in enumerate(wanted)]
    assert [job.code() for job in jobs] == alone
    assert compiling.compiled(wanted[0][0], efforts[0]) != alone[0]
    assert compiling._ordering.count == 0


def test_equal_code_is_made_once() -> None:
    text = long_text(0.25)
    first = jit.begin(text)
    assert jit.begin(text) is first and jit.load(text) is first


def test_errors_come_where_the_code_is_asked_for() -> None:
    library = jit.begin("define i32 @kernel( {")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="parsing error"):
            library.address  # noqa: B018
    assert compiling._ordering.count == 0


def test_a_process_does_not_end_while_code_is_made() -> None:
    """LLVM takes its data down at the end of the process, and would abort. What has not begun is left."""
    program = """
import atexit
from bellcrank.target.llvm import compiling
from test_compiling import long_text
atexit.register(lambda: print(any(t.is_alive() for t in compiling._threads), len(compiling._queue)))
jobs = [compiling.Job(long_text(seed), compiling.Effort.AS_TRACED, "") for seed in range(8)]
"""
    ended = children.run_code(program, cwd=Path(__file__).parent)
    assert (ended.returncode, ended.stdout.split()) == (0, ["False", "0"]), ended.stderr


def _child(library: jit.Library, queue: multiprocessing.Queue[float]) -> None:
    queue.put(run(library, 0.5))


@pytest.mark.skipif(os.name != "posix" or sys.platform == "darwin", reason="forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks in processes with threads
def test_a_process_forked_off_meanwhile_compiles_by_itself() -> None:
    """The thread that is at it does not come along."""
    context = multiprocessing.get_context("fork")
    library, queue = jit.begin(long_text(0.75, 6000)), context.Queue()
    time.sleep(0.05)
    process = context.Process(target=_child, args=(library, queue))
    process.start()
    assert queue.get(timeout=60.0) == run(library, 0.5)
    process.join(60.0)
    assert process.exitcode == 0


@pytest.mark.parametrize("name", ("ladder", "quadruped", "stewart"))
def test_large_code_in_pieces_and_with_little_effort(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds as functions of their own, and LLVM's quick way: what very large machines get, here for small ones."""
    def answers() -> list[np.ndarray]:
        system = bc.compile(bc.load(name), schedule="rolled")
        state = system.assemble()
        q, u = np.repeat(state.q[None], 11, axis=0), np.repeat(state.u[None], 11, axis=0)
        tau = np.linspace(-1.0, 1.0, system.nu)
        return [system.forward_dynamics(state.q, state.u, tau), system.forward_dynamics(q, u, tau),
                system.mass_matrix(q), system.bias(q, u), system.center_of_mass(q)]

    expected, made = answers(), []
    monkeypatch.setattr(rolled_code, "_LARGE", 0)
    monkeypatch.setattr(compiling, "_LARGE", 0)
    original = compiling.compiled
    monkeypatch.setattr(compiling, "compiled", lambda text, more: made.append("@piece" in text) or original(text, more))
    for found, usual in zip(answers(), expected, strict=True):
        assert np.abs(found - usual).max() <= 1e-12 * max(1.0, float(np.abs(usual).max()))
    assert any(made)
