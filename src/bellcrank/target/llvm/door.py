"""A cheap door from Python into a kernel: functions of the interpreter's own calling convention, made by LLVM.

A ctypes call costs more than the dynamics of a robot arm. Instead, three tiny native functions are compiled:

- ``door(input, ..., out)`` looks at the array objects directly (type, dtype, dimensions, flags at their
  ABI-stable places), runs the kernel if everything fits, and returns `out`; else a sentinel object, and the
  caller takes the general way.
- a door for batches does the same with rows of states, (n, size) each, or (size,) for what is the same in all.
- ``bound()`` runs a kernel on arrays fixed beforehand.

Everything they need to know (addresses, sizes) is in the integer array that is their `self`, so their code
holds no address and can be cached. On interpreters with another object layout there is no door.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bellcrank.target.llvm import jit
from bellcrank.target.llvm.kernel import Kernel

__all__ = ["available", "make_batch_door", "make_bound", "make_door"]

# layout of an array object: type at 8, data at 16, number of dimensions at 24, dimensions at 32, dtype at 56,
# flags at 64 (1: C-contiguous, 0x100: aligned, 0x400: writeable)
_METH_FASTCALL, _METH_NOARGS = 0x0080, 0x0004
_FIXED = 15  # entries of `self` before sizes or addresses


class _MethodDef(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p))


@functools.cache
def available() -> bool:
    """Whether this interpreter's objects look as the native functions expect; tested on real arrays."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED") \
            or hasattr(sys, "gettotalrefcount") or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    probe = np.zeros((3, 5))
    words = (ctypes.c_int64 * 9).from_address(id(probe))
    shape = (ctypes.c_int64 * 2).from_address(words[4])
    return (words[1] == id(np.ndarray) and words[2] == probe.ctypes.data and words[3] & 0xFFFFFFFF == 2
            and tuple(shape) == (3, 5) and words[7] == id(probe.dtype)
            and words[8] & 0xFFFFFFFF == probe.flags.num)


def _field(lines: list[str], name: str, base: str, offset: int, kind: str = "i64") -> str:
    lines.append(f"  %{name}.at = getelementptr i8, ptr {base}, i64 {offset}")
    lines.append(f"  %{name} = load {kind}, ptr %{name}.at")
    return f"%{name}"


def _call_kernel(lines: list[str], pointers: Sequence[str], own: str | None = None, end: str = "1") -> None:
    """One state, or `end` of them with strides of their `own`."""
    known = [_field(lines, n, "%data", 8 * i, k) for n, i, k in (
        ("kernel", 0, "ptr"), ("strides", 5, "ptr"), ("work", 6, "ptr"), ("numbers", 7, "ptr"), ("table", 8, "ptr"),
        ("runs", 9, "ptr"), ("n_runs", 10, "i64"))]
    arguments = ", ".join([f"ptr {p}" for p in pointers] + [f"ptr {own or known[1]}", "i64 0", f"i64 {end}"]
                          + [f"ptr {p}" for p in known[2:6]] + [f"i64 {known[6]}"])
    lines.append(f"  %status = call i32 {known[0]}({arguments})")
    lines.append("  %failed = icmp ne i32 %status, 0")


_RETURN = ["  %count = load i64, ptr %result", "  %more = add i64 %count, 1", "  store i64 %more, ptr %result",
           "  ret ptr %result", "}", ""]


def _door_ir(n: int) -> str:
    """`n` arrays in all, the last one the output."""
    lines = ["define ptr @kernel(ptr %self, ptr %args, i64 %nargs) nounwind {", "entry:"]
    _field(lines, "data", "%self", 16, "ptr")
    kind, dtype = _field(lines, "kind", "%data", 8), _field(lines, "dtype", "%data", 16)
    _field(lines, "other", "%data", 24, "ptr")
    _field(lines, "notfinite", "%data", 32, "ptr")
    lines.append(f"  %enough = icmp eq i64 %nargs, {n}")
    lines.append("  br i1 %enough, label %check0, label %give")
    pointers = []
    for i in range(n):
        lines.append(f"check{i}:")
        array = _field(lines, f"a{i}", "%args", 8 * i, "ptr")
        tests = []
        value = _field(lines, f"type{i}", array, 8)
        lines += [f"  %type{i}.ok = icmp eq i64 {value}, {kind}",  # first: only arrays have the rest
                  f"  br i1 %type{i}.ok, label %array{i}, label %give", f"array{i}:"]
        for what, offset, width, wanted in (("dtype", 56, "i64", dtype), ("nd", 24, "i32", "1")):
            value = _field(lines, f"{what}{i}", array, offset, width)
            lines.append(f"  %{what}{i}.ok = icmp eq {width} {value}, {wanted}")
            tests.append(f"%{what}{i}.ok")
        mask = 0x501 if i == n - 1 else 0x101
        flags = _field(lines, f"flags{i}", array, 64, "i32")
        lines += [f"  %flags{i}.set = and i32 {flags}, {mask}", f"  %flags{i}.ok = icmp eq i32 %flags{i}.set, {mask}"]
        tests.append(f"%flags{i}.ok")
        for j, test in enumerate(tests[1:]):
            lines.append(f"  %all{i}.{j} = and i1 {tests[0] if j == 0 else f'%all{i}.{j - 1}'}, {test}")
        lines.append(f"  br i1 %all{i}.{len(tests) - 2}, label %size{i}, label %give")
        lines.append(f"size{i}:")
        dimensions = _field(lines, f"dims{i}", array, 32, "ptr")
        length = _field(lines, f"length{i}", dimensions, 0)
        wanted = _field(lines, f"wanted{i}", "%data", 8 * (_FIXED + i))
        pointers.append(_field(lines, f"p{i}", array, 16, "ptr"))
        lines.append(f"  %fits{i} = icmp eq i64 {length}, {wanted}")
        lines.append(f"  br i1 %fits{i}, label %{f'check{i + 1}' if i < n - 1 else 'run'}, label %give")
    lines.append("run:")
    _call_kernel(lines, pointers)
    lines += [f"  %good = select i1 %failed, ptr %notfinite, ptr %a{n - 1}", "  br label %give", "give:"]
    sources = ", ".join(["[ %other, %entry ]"] + [
        f"[ %other, %check{i} ], [ %other, %array{i} ], [ %other, %size{i} ]" for i in range(n)])
    lines.append(f"  %result = phi ptr [ %good, %run ], {sources}")
    return "\n".join(lines + _RETURN)


def _batch_door_ir(n: int) -> str:
    """`n` arrays in all, the last one the output, (states, size): whoever calls has made it, it is not checked."""
    lines = ["define ptr @kernel(ptr %self, ptr %args, i64 %nargs) nounwind {", "entry:",
             f"  %own = alloca [{2 * n} x i64], align 8"]
    _field(lines, "data", "%self", 16, "ptr")
    kind, dtype = _field(lines, "kind", "%data", 8), _field(lines, "dtype", "%data", 16)
    _field(lines, "other", "%data", 24, "ptr")
    _field(lines, "notfinite", "%data", 32, "ptr")
    packed = _field(lines, "packed", "%data", 40, "ptr")
    lines.append(f"  %enough = icmp eq i64 %nargs, {n}")
    lines += ["  br i1 %enough, label %open, label %give", "open:"]
    out = _field(lines, "out", "%args", 8 * (n - 1), "ptr")
    states = _field(lines, "states", _field(lines, "outdims", out, 32, "ptr"), 0)
    pointers = []
    for i in range(n - 1):
        lines += [f"  br label %check{i}", f"check{i}:"]
        array = _field(lines, f"a{i}", "%args", 8 * i, "ptr")
        value = _field(lines, f"type{i}", array, 8)
        lines += [f"  %type{i}.ok = icmp eq i64 {value}, {kind}",  # first: only arrays have the rest
                  f"  br i1 %type{i}.ok, label %array{i}, label %give", f"array{i}:"]
        number, flags = _field(lines, f"dtype{i}", array, 56), _field(lines, f"flags{i}", array, 64, "i32")
        axes = _field(lines, f"nd{i}", array, 24, "i32")
        lines += [f"  %dtype{i}.ok = icmp eq i64 {number}, {dtype}",
                  f"  %flags{i}.set = and i32 {flags}, 257", f"  %flags{i}.ok = icmp eq i32 %flags{i}.set, 257",
                  f"  %one{i} = icmp eq i32 {axes}, 1", f"  %two{i} = icmp eq i32 {axes}, 2",
                  f"  %nd{i}.ok = or i1 %one{i}, %two{i}", f"  %some{i} = and i1 %dtype{i}.ok, %flags{i}.ok",
                  f"  %all{i} = and i1 %some{i}, %nd{i}.ok", f"  br i1 %all{i}, label %size{i}, label %give",
                  f"size{i}:"]
        dimensions = _field(lines, f"dims{i}", array, 32, "ptr")
        first = _field(lines, f"first{i}", dimensions, 0)
        wanted = _field(lines, f"wanted{i}", "%data", 8 * (_FIXED + i))
        lines += [f"  %last{i}.step = zext i1 %two{i} to i64",
                  f"  %last{i}.at = getelementptr i64, ptr {dimensions}, i64 %last{i}.step",
                  f"  %last{i} = load i64, ptr %last{i}.at", f"  %fits{i} = icmp eq i64 %last{i}, {wanted}",
                  f"  %rows{i} = select i1 %two{i}, i64 {first}, i64 {states}",
                  f"  %rows{i}.ok = icmp eq i64 %rows{i}, {states}", f"  %good{i} = and i1 %fits{i}, %rows{i}.ok",
                  f"  %stride{i} = select i1 %two{i}, i64 {wanted}, i64 0",
                  f"  %stride{i}.at = getelementptr i64, ptr %own, i64 {i}",
                  f"  store i64 %stride{i}, ptr %stride{i}.at"]
        pointers.append(_field(lines, f"p{i}", array, 16, "ptr"))
        lines += [f"  br i1 %good{i}, label %next{i}, label %give", f"next{i}:"]
    for i in range(n - 1, 2 * n):  # lengths, as the kernel knows them
        value = _field(lines, f"length{i}", packed, 8 * i)
        lines += [f"  %own{i}.at = getelementptr i64, ptr %own, i64 {i}", f"  store i64 {value}, ptr %own{i}.at"]
    pointers.append(_field(lines, "result.data", out, 16, "ptr"))
    _call_kernel(lines, pointers, "%own", states)
    lines += [f"  %good = select i1 %failed, ptr %notfinite, ptr {out}", "  br label %give", "give:"]
    sources = ", ".join(["[ %other, %entry ]"] + [
        f"[ %other, %check{i} ], [ %other, %array{i} ], [ %other, %size{i} ]" for i in range(n - 1)])
    lines.append(f"  %result = phi ptr [ %good, %next{n - 2} ], {sources}")
    return "\n".join(lines + _RETURN)


def _bound_ir(n: int) -> str:
    lines = ["define ptr @kernel(ptr %self, ptr %unused) nounwind {", "entry:"]
    _field(lines, "data", "%self", 16, "ptr")
    pointers = [_field(lines, f"p{i}", "%data", 8 * (_FIXED + i), "ptr") for i in range(n)]
    _call_kernel(lines, pointers)
    lines.append("  br i1 %failed, label %raise, label %good")
    lines.append("raise:")
    for name, i in (("set", 11), ("exception", 12), ("message", 13)):
        _field(lines, name, "%data", 8 * i, "ptr")
    lines += ["  call void %set(ptr %exception, ptr %message)", "  ret ptr null", "good:"]
    _field(lines, "result", "%data", 8 * 14, "ptr")
    return "\n".join(lines + _RETURN)


@functools.cache
def _library(ir: str) -> jit.Library:
    """One copy of each door's code; it holds no address, so all doors of a shape share it."""
    return jit.load(ir)


def _native(ir: str, flags: int, name: str, data: np.ndarray[Any, np.dtype[np.int64]], keep: tuple[Any, ...]) -> Any:
    library = _library(ir)
    definition = _MethodDef(name.encode(), library.address, flags, b"native door into a compiled kernel")
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    function = new(ctypes.addressof(definition), data, None)
    # nothing the native function refers to may go away before it does; its self array lives exactly as long
    _alive[id(data)] = (library, definition, keep)
    weakref.finalize(data, _alive.pop, id(data), None).atexit = False  # exit handlers may still compute
    return function


_alive: dict[int, Any] = {}


def _data(kernel: Kernel, rest: Sequence[int], other: object, notfinite: object, exception: type[Exception],
          message: ctypes.c_char_p | None, out: object) -> Any:
    setter = ctypes.cast(ctypes.pythonapi.PyErr_SetString, ctypes.c_void_p).value or 0
    text = ctypes.cast(message, ctypes.c_void_p).value or 0 if message is not None else 0
    return np.array([kernel.address, id(np.ndarray), id(np.dtype(np.float64)), id(other), id(notfinite),
                     kernel.packed_strides.ctypes.data, *kernel.data_addresses(), setter, id(exception), text, id(out),
                     *rest], dtype=np.int64)


def make_door(kernel: Kernel, other: object, notfinite: object) -> Callable[..., Any]:
    """``door(*inputs, out)``: `out`, or `other` if the arrays do not fit, or `notfinite`."""
    data = _data(kernel, [*kernel.inputs.values(), kernel.out_size], other, notfinite, Exception, None, None)
    return _native(_door_ir(len(kernel.inputs) + 1), _METH_FASTCALL, "door", data,  # type: ignore[no-any-return]
                   (kernel, other, notfinite))


def make_batch_door(kernel: Kernel, other: object, notfinite: object) -> Callable[..., Any]:
    """The same for rows of states, with `out` (states, size). Keeps the interpreter's lock."""
    data = _data(kernel, [*kernel.inputs.values(), kernel.out_size], other, notfinite, Exception, None, None)
    return _native(_batch_door_ir(len(kernel.inputs) + 1), _METH_FASTCALL, "door",  # type: ignore[no-any-return]
                   data, (kernel, other, notfinite))


def make_bound(kernel: Kernel, arrays: Sequence[Any], out: Any, exception: type[Exception], message: str
               ) -> Callable[[], Any]:
    """``bound()``: run the kernel on these arrays, return `out`; raise `exception` if something is not finite."""
    text = ctypes.c_char_p(message.encode())
    addresses = [*(a.ctypes.data for a in arrays), out.ctypes.data]
    data = _data(kernel, addresses, None, None, exception, text, out)
    return _native(_bound_ir(len(addresses)), _METH_NOARGS, "bound", data,  # type: ignore[no-any-return]
                   (kernel, tuple(arrays), out, exception, text))
