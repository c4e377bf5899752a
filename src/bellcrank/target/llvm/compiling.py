"""LLVM at work: from assembly to object code, on several cores."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from ctypes import string_at
from enum import IntEnum
from typing import Any

from bellcrank.target.llvm import cache

__all__ = ["Effort", "Job", "machine"]


#: lines of one function from which on compiling takes LLVM too long (some 50 us a line) with its better half
_LARGE = 40_000
#: how long a process waits at its end for code that is being made [s]
_LONGEST = 10.0


def machine(effort: int = 2) -> Any:
    """A description of this machine's processor, one for each thread: LLVM changes it while it works.

    With `effort` 0 code is made ten times as fast and runs at two thirds of the speed.
    """
    import llvmlite.binding as llvm

    _prepare()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=effort, jit=True)


@functools.cache
def _prepare() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()


class Effort(IntEnum):
    """What LLVM does to the code."""

    AS_TRACED = 0  #: nothing: instructions stay in the order of the trace
    SCHEDULED = 1  #: it orders them, which is worth it for what has many lanes and is bound by their number
    STRAIGHT = 2  #: all its passes but those of loops, which take longest
    LOOPS = 3  #: all its passes


class Job:
    """One module on its way to object code.

    Threads, at most as many as there are cores, work off what is begun; what is asked for and not begun yet is done by
    whoever asks.
    """

    def __init__(self, text: str, effort: Effort, key: str) -> None:
        self._text, self._effort, self._key = text, effort, key
        self._code: bytes | None = None
        self._error: Exception | None = None
        self._claim, self._done, self._process = threading.Lock(), threading.Event(), os.getpid()
        _queue.append(self)
        _finish_at_exit()
        if sum(other.is_alive() for other in list(_threads)) < (os.cpu_count() or 1):
            thread = threading.Thread(target=_work_off, name="bellcrank compiles", daemon=True)
            _threads.add(thread)
            thread.start()

    def work(self) -> None:
        """Do it, unless somebody does."""
        if self._claim.acquire(blocking=False):
            self._compile()

    def _compile(self) -> None:
        try:
            self._code = compiled(self._text, self._effort)
        except Exception as error:  # told to whoever asks for the code
            self._error = error
        self._done.set()

    def code(self) -> bytes:
        """The object code, when it is done; it is put into the cache."""
        self.work()
        if self._process != os.getpid() and not self._done.is_set():  # forked off meanwhile: the thread stayed behind
            self._compile()
        self._done.wait()
        if self._error is not None:
            raise self._error
        assert self._code is not None
        cache.keep(self._key, self._code)
        return self._code


def _work_off() -> None:
    """What a thread does."""
    while True:
        try:
            job = _queue.popleft()
        except IndexError:
            return
        job.work()


@functools.cache
def _finish_at_exit() -> None:
    """Let a process not end while LLVM is at work: it would find its own data taken down, and abort."""
    atexit.register(_finish)


def _finish() -> None:
    """Begin with nothing more, and wait for what is begun; not for ever."""
    _queue.clear()
    end = time.monotonic() + _LONGEST
    for thread in list(_threads):
        thread.join(max(0.0, end - time.monotonic()))


_queue: deque[Job] = deque()
_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


def compiled(text: str, effort: Effort = Effort.AS_TRACED) -> bytes:
    """Object code of a module. Nothing is shared with other threads, so that several can be at it."""
    import llvmlite.binding as llvm

    longest = max(part.count("\n") for part in text.split("\ndefine "))
    processor = machine(2 if effort >= Effort.STRAIGHT or longest < _LARGE else 0)
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = processor.triple
    module.data_layout = str(processor.target_data)
    if effort >= Effort.STRAIGHT:
        tuning = llvm.PipelineTuningOptions(speed_level=2)
        if effort < Effort.LOOPS:
            tuning.loop_vectorization = tuning.loop_unrolling = tuning.loop_interleaving = False
        builder = llvm.create_pass_builder(processor, tuning)
        builder.getModulePassManager().run(module, builder)
    with _in_order(effort != Effort.SCHEDULED):
        return _emitted(processor, module)


def _emitted(processor: Any, module: Any) -> bytes:
    """What ``processor.emit_object(module)`` returns, without the lock that llvmlite holds meanwhile.

    The lock protects what modules share; ours share nothing. Where llvmlite is made differently, it stays.
    """
    from llvmlite.binding import ffi

    emit = getattr(ffi.lib.LLVMPY_TargetMachineEmitToMemory, "_cfn", None)
    if emit is None:
        return bytes(processor.emit_object(module))
    with ffi.OutputString() as problem:
        buffer = emit(processor, module, 1, problem)
        if not buffer:
            raise RuntimeError(str(problem))
    try:
        return string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


class _Ordering:
    """How many threads are emitting code, and whether they leave it in order: all of them, or none."""

    def __init__(self) -> None:
        self.change, self.process = threading.Condition(), os.getpid()
        self.count, self.ordered = 0, False


_ordering = _Ordering()


@contextlib.contextmanager
def _in_order(ordered: bool) -> Iterator[None]:
    """Leave instructions in the order of the trace, which computes a value shortly before it is needed: LLVM's
    scheduler finds none better (code of 12 000 operations is 5 % slower with it) and takes a fifth of the time.

    The switch is one for the process: who wants the other one waits. It is put back, and other users of LLVM get what
    they are used to.
    """
    global _ordering
    if _ordering.process != os.getpid():  # forked off: the threads that were at it stayed behind
        _ordering = _Ordering()
    state = _ordering
    with state.change:
        state.change.wait_for(lambda: state.count == 0 or state.ordered == ordered)
        state.count, state.ordered = state.count + 1, ordered
        _switch(ordered and state.count == 1, "false")
    try:
        yield
    finally:
        with state.change:
            state.count -= 1
            _switch(ordered and state.count == 0, "true")
            state.change.notify_all()


def _switch(now: bool, value: str) -> None:
    import llvmlite.binding as llvm

    if now:
        llvm.set_option("bellcrank", f"-enable-misched={value}")
