"""From LLVM assembly to callable machine code, with the disk cache in between."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from bellcrank.engine.llvm import cache

__all__ = ["Library", "load", "target_key", "vector_width"]


class Library:
    """Loaded machine code; keeps it alive."""

    def __init__(self, handle: Any, address: int, from_cache: bool) -> None:
        self._handle = handle
        self.address = address
        self.from_cache = from_cache


@functools.cache
def _machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2, jit=True)


@functools.cache
def _linker() -> Any:
    import llvmlite.binding as llvm

    _machine()
    return llvm.create_lljit_compiler()


@functools.cache
def target_key() -> str:
    """What compiled code depends on besides its source."""
    import llvmlite
    import llvmlite.binding as llvm

    return "|".join([llvmlite.__version__, str(llvm.llvm_version_info), llvm.get_process_triple(),
                     llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()])


@functools.cache
def vector_width() -> int:
    """Doubles per SIMD register of this machine."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 8
    return 4 if features.get("avx2") else 2


def load(text: str) -> Library:
    """Machine code of a module with one function ``kernel``, from the cache or compiled now."""
    key = hashlib.sha256((target_key() + "\0" + text).encode()).hexdigest()
    code = cache.fetch(key)
    from_cache = code is not None
    if code is None:
        code = _compile(text)
        cache.keep(key, code)
    return _link(key, code, from_cache)


def _compile(text: str) -> bytes:
    import llvmlite.binding as llvm

    machine = _machine()
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    return bytes(machine.emit_object(module))


_count = 0


def _link(key: str, code: bytes, from_cache: bool) -> Library:
    import llvmlite.binding as llvm

    global _count
    _count += 1  # one library may be loaded twice (after the first was freed): names must differ
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol("kernel")
    handle = builder.link(_linker(), f"bellcrank-{key[:16]}-{_count}")
    return Library(handle, handle["kernel"], from_cache)
