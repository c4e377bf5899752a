"""From LLVM assembly to callable machine code, with the disk cache in between."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bellcrank.errors import BellcrankError
from bellcrank.target.llvm import cache
from bellcrank.target.llvm.compiling import Effort, Job, machine

__all__ = ["Library", "load", "target_key", "vector_width"]


_LANES = ("1", "2", "4", "8")


class Library:
    """Machine code, loaded or still being made; keeps it alive. What nobody holds any more is unloaded."""

    def __init__(self, made: Callable[[], bytes], from_cache: bool) -> None:
        self.from_cache = from_cache
        self._made: Callable[[], bytes] | None = made
        self._lock = threading.Lock()
        self._handle: Any = None

    @property
    def address(self) -> int:
        """Where the code begins; waits until it is made. `RuntimeError` if LLVM does not take it."""
        with self._lock:
            if self._made is not None:
                self._handle, self._made = _linked_code(self._made()), None
        return int(self._handle["kernel"])


#: LLVM's linker keeps some kilobytes of every library for good: after this many a new one takes over, and the old one
#: goes with the last of its libraries
_LINKED_TOGETHER = 64
_linking = threading.Lock()
_linker: Any = None
_linked = 0
_serial = itertools.count()  # libraries of a linker need names of their own


def _current_linker() -> Any:
    """The linker of the next library; call it holding `_linking`."""
    global _linker, _linked
    import llvmlite.binding as llvm

    if _linker is None or _linked == _LINKED_TOGETHER:
        machine()
        _linker, _linked = llvm.create_lljit_compiler(), 0
    _linked += 1
    return _linker


@functools.cache
def target_key() -> str:
    """What compiled code depends on besides its source."""
    import llvmlite
    import llvmlite.binding as llvm

    return "|".join([llvmlite.__version__, str(llvm.llvm_version_info), llvm.get_process_triple(),
                     llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()])


@functools.cache
def vector_width() -> int:
    """LaneStates that batches advance side by side: doubles per SIMD register of this machine.

    ``BELLCRANK_LANES`` (1, 2, 4 or 8) forces another number, with which any machine works: LLVM takes wide values
    apart. It is read once, at the first batch of a process.
    """
    chosen = os.environ.get("BELLCRANK_LANES", "").strip()
    if chosen:
        if chosen not in _LANES:
            raise BellcrankError(f"BELLCRANK_LANES is {chosen!r}: set it to {', '.join(_LANES[:-1])} or {_LANES[-1]}, "
                                 "or leave it out to use this machine's registers")
        return int(chosen)
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 8
    return 4 if features.get("avx2") else 2


@functools.cache
def _generator_key() -> str:
    """A digest of the programs and their printer: others make other code of the same graph."""
    digest, own = hashlib.sha256(), Path(__file__).parent
    for path in (*sorted(own.parent.glob("*.py")), *sorted(own.glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def load(source: str, make: Callable[[], str] | None = None, effort: Effort = Effort.AS_TRACED) -> Library:
    """Machine code of a module with one function ``kernel``, from the cache or compiled now.

    `source` is the module's text; or, with `make`, a key that determines the text which `make` returns. Equal code
    is loaded once.
    """
    library = begin(source, make, effort)
    library.address  # noqa: B018  (waits)
    return library


def begin(source: str, make: Callable[[], str] | None = None, effort: Effort = Effort.AS_TRACED) -> Library:
    """Like `load`, but compiled by another thread while the caller goes on, until it asks for the address."""
    head = target_key() if make is None else f"{target_key()}|{_generator_key()}"
    key = hashlib.sha256(f"{head}\0{int(effort)}\0{source}".encode()).hexdigest()
    loaded = _loaded.get(key)
    if loaded is not None:
        return loaded
    code = cache.fetch(key)
    if code is not None:
        found = Library(functools.partial(bytes, code), True)
        with contextlib.suppress(RuntimeError):  # no machine code after all: made again below
            found.address  # noqa: B018
            return _loaded.setdefault(key, found)
    job = Job(source if make is None else make(), effort, key)
    return _loaded.setdefault(key, Library(job.code, False))


#: what is in use, by key
_loaded: weakref.WeakValueDictionary[str, Library] = weakref.WeakValueDictionary()


def _linked_code(code: bytes) -> Any:
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol("kernel")
    with _linking:
        return builder.link(_current_linker(), f"bellcrank-{next(_serial)}")
