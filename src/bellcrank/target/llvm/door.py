"""A cheap door from Python into a kernel: functions of the interpreter's own calling convention, made by LLVM.

A ctypes call costs more than the dynamics of a robot arm. Instead, small native functions are compiled:

- ``door(input, ...)`` looks at the array objects directly (type, dtype, dimensions, flags at their ABI-stable places),
  makes the array of the result, runs the kernel and returns it; None if something does not fit or is not finite, and
  the caller takes the general way.
- a door for batches does the same with rows of states, (n, size) each, or (size,) for what is the same in all.
- ``bound()`` runs a kernel on arrays fixed beforehand.

Everything they need to know (addresses, sizes) is in the integer array that is their `self`, so their code holds no
address and can be cached. On interpreters with another object layout there is no door.
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

from bellcrank.target.backend import DoorForm
from bellcrank.target.llvm import jit
from bellcrank.target.llvm.kernel import Kernel

__all__ = ["available", "make_batch_door", "make_bound", "make_door"]

# layout of an array object: type at 8, data at 16, number of dimensions at 24, dimensions at 32, dtype at 56,
# flags at 64 (1: C-contiguous, 0x100: aligned)
_METH_FASTCALL, _METH_NOARGS = 0x0080, 0x0004
#: entries of `self`: what kernels are called with, then what doors or bound calls know besides, then a list
_KERNEL, _NDARRAY, _DTYPE, _NONE, _INCREF, _STRIDES, _WORK = range(7)
_NEW, _SCALAR, _DECREF, _SET_BASE, _PACK, _LEAST, _MOST, _AXES, _DIMS = range(11, 20)
_SET_ERROR, _EXCEPTION, _MESSAGE, _OUT, _ADDRESSES = range(11, 16)
#: axes of a result at most, with that of the states
_ROOM = 4
_PARTS = _DIMS + _ROOM  # of every part of the result: axes, offset, dimensions, strides
_PART = 2 + 2 * _ROOM


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
            and words[8] & 0xFFFFFFFF == probe.flags.num and _makes_arrays())


@functools.cache
def _numpy_functions() -> tuple[int, int, int]:
    """NumPy's own functions that make an array, turn one without axes into a number, and say whose memory it shows:
    entries of the table that its ABI fixes."""
    module = next(m for name, m in list(sys.modules.items()) if name.startswith("numpy") and hasattr(m, "_ARRAY_API"))
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = (ctypes.c_void_p * 283).from_address(pointer(module._ARRAY_API, None))
    return table[93] or 0, table[76] or 0, table[282] or 0


def _makes_arrays() -> bool:
    """Whether the first of them does."""
    number, pointer = ctypes.c_int, ctypes.c_void_p
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, number, pointer, number, pointer, pointer, number,
                             number, pointer)(_numpy_functions()[0])
    dims = np.array([2, 3], dtype=np.int64)
    made = make(np.ndarray, 2, dims.ctypes.data, 12, None, None, 0, 0, None)
    return type(made) is np.ndarray and made.shape == (2, 3) and made.dtype == np.float64


class _NativeCode:
    """Lines of a native function, whose `self` holds the integers %data."""

    def __init__(self, head: str) -> None:
        self.lines = [f"define ptr @kernel({head}) nounwind {{", "entry:"]
        self.field("data", "%self", 16, "ptr")

    def __call__(self, *lines: str) -> None:
        self.lines += [line if line.endswith(":") else f"  {line}" for line in lines]

    def at(self, name: str, base: str, offset: int) -> str:
        """An address."""
        self(f"%{name} = getelementptr i8, ptr {base}, i64 {offset}")
        return f"%{name}"

    def field(self, name: str, base: str, offset: int, kind: str = "i64") -> str:
        """What lies so many bytes behind an address."""
        self(f"%{name} = load {kind}, ptr {self.at(f'{name}.at', base, offset)}")
        return f"%{name}"

    def entry(self, name: str, index: int, kind: str = "ptr") -> str:
        """An entry of `self`."""
        return self.field(name, "%data", 8 * index, kind)

    def test(self, name: str, how: str, kind: str, value: str, wanted: str) -> str:
        self(f"%{name} = icmp {how} {kind} {value}, {wanted}")
        return f"%{name}"

    def both(self, name: str, *tests: str) -> str:
        """Whether all of them hold."""
        found = tests[0]
        for j, test in enumerate(tests[1:]):
            self(f"%{name}.{j} = and i1 {found}, {test}")
            found = f"%{name}.{j}"
        return found

    def go(self, test: str, label: str, other: str = "give") -> None:
        """On to a label, or to another one."""
        self(f"br i1 {test}, label %{label}, label %{other}", f"{label}:")

    def call_kernel(self, pointers: Sequence[str], own: str | None = None, end: str = "1") -> None:
        """One state, or `end` of them with strides of their `own`; goes on if all is finite."""
        known = [self.entry(n, i, k) for n, i, k in (
            ("kernel", _KERNEL, "ptr"), ("strides", _STRIDES, "ptr"), ("work", _WORK, "ptr"),
            ("numbers", _WORK + 1, "ptr"), ("table", _WORK + 2, "ptr"), ("runs", _WORK + 3, "ptr"),
            ("n_runs", _WORK + 4, "i64"))]
        arguments = ", ".join([f"ptr {p}" for p in pointers] + [f"ptr {own or known[1]}", "i64 0", f"i64 {end}"]
                              + [f"ptr {p}" for p in known[2:6]] + [f"i64 {known[6]}"])
        self(f"%status = call i32 {known[0]}({arguments})", "%finite = icmp eq i32 %status, 0")
        self.go("%finite", "good", "failed")

    def new_array(self, name: str, part: str, axes: str, dims: str, strides: str, memory: str, flags: int) -> str:
        """NumPy makes an array, or raises: then nothing is returned."""
        self(f"%{name} = call ptr %new(ptr %ndarray, i32 {axes}, ptr {dims}, i32 12, ptr {strides}, ptr {memory}, "
             f"i32 0, i32 {flags}, ptr null)")
        self.go(self.test(f"{name}.ok", "ne", "ptr", f"%{name}", "null"), part, "raise")
        return f"%{name}"

    def __str__(self) -> str:
        return "\n".join([*self.lines, "}", ""])


class _Door(_NativeCode):
    """The code of a door for `count` inputs, the last `optional` of which may be left out, an argument at `skipped`
    that is not looked at, and a result that is shown in `parts`; of one state or of a batch."""

    def __init__(self, count: int, optional: int, skipped: int, parts: int, batch: bool) -> None:
        super().__init__("ptr %self, ptr %args, i64 %nargs")
        self.count, self.batch, self.parts = count, batch, parts
        self.sizes = _PARTS + _PART * parts
        self.first_optional = count - optional
        if batch:
            self(f"%own = alloca [{2 * count + 2} x i64], align 8", f"%dims.own = alloca [{_ROOM} x i64], align 8")
        for name, i in (("ndarray", _NDARRAY), ("dtype", _DTYPE), ("none", _NONE), ("new", _NEW), ("decref", _DECREF),
                        ("incref", _INCREF)):
            self.entry(name, i)
        least = self.first_optional + (0 <= skipped < self.first_optional)
        enough = self.both("enough", self.test("least.args", "uge", "i64", "%nargs", str(least)),
                           self.test("most.args", "ule", "i64", "%nargs", str(count + (skipped >= 0))))
        self.go(enough, "open")
        pointers = [self.look(i, i + (0 <= skipped <= i)) for i in range(count)]
        self.run(pointers)

    def look(self, i: int, place: int) -> str:
        """Where input `i` lies, which is the argument at a place."""
        optional = i >= self.first_optional
        if optional:
            default = self.entry(f"default{i}", self.sizes + self.count + i - self.first_optional)
            self.go(self.test(f"given{i}", "ugt", "i64", "%nargs", str(place)), f"look{i}", f"left{i}")
        array = self.field(f"a{i}", "%args", 8 * place, "ptr")
        self.go(self.test(f"type{i}.ok", "eq", "ptr", self.field(f"type{i}", array, 8, "ptr"), "%ndarray"),
                f"array{i}")  # first: only arrays have the rest
        flags, axes = self.field(f"flags{i}", array, 64, "i32"), self.field(f"axes{i}", array, 24, "i32")
        self(f"%flags{i}.set = and i32 {flags}, 257")
        tests = [self.test(f"dtype{i}.ok", "eq", "ptr", self.field(f"dtype{i}", array, 56, "ptr"), "%dtype"),
                 self.test(f"flags{i}.ok", "eq", "i32", f"%flags{i}.set", "257")]
        one, two = (self.test(f"axes{i}.{n}", "eq", "i32", axes, str(n)) for n in (1, 2))
        if self.batch and i:
            self(f"%axes{i}.ok = or i1 {one}, {two}")
        self.go(self.both(f"all{i}", *tests, f"%axes{i}.ok" if self.batch and i else two if self.batch else one),
                f"size{i}")
        self.fits(i, self.field(f"dims{i}", array, 32, "ptr"), two)
        found = self.field(f"p{i}", array, 16, "ptr")
        if not optional:
            return found
        self(f"br label %next{i}", f"left{i}:")
        if self.batch:
            self(f"store i64 0, ptr {self.at(f'left{i}.stride', '%own', 8 * i)}")
        self(f"br label %next{i}", f"next{i}:", f"%q{i} = phi ptr [ {found}, %fits{i} ], [ {default}, %left{i} ]")
        return f"%q{i}"

    def fits(self, i: int, dims: str, two: str) -> None:
        """Go on if the sizes are right."""
        first, wanted = self.field(f"first{i}", dims, 0), self.entry(f"wanted{i}", self.sizes + i, "i64")
        if not self.batch:
            self.go(self.test(f"right{i}", "eq", "i64", first, wanted), f"fits{i}")
            return
        if i == 0:  # its rows are the states
            tests = [self.test("many", "uge", "i64", first, self.entry("least", _LEAST, "i64")),
                     self.test("few", "ule", "i64", first, self.entry("most", _MOST, "i64"))]
        else:
            self(f"%rows{i} = select i1 {two}, i64 {first}, i64 %first0")
            tests = [self.test(f"rows{i}.ok", "eq", "i64", f"%rows{i}", "%first0")]
        self(f"%last{i}.step = zext i1 {two} to i64",
             f"%last{i}.at = getelementptr i64, ptr {dims}, i64 %last{i}.step", f"%last{i} = load i64, ptr %last{i}.at",
             f"%stride{i} = select i1 {two}, i64 {wanted}, i64 0",
             f"%stride{i}.at = getelementptr i64, ptr %own, i64 {i}", f"store i64 %stride{i}, ptr %stride{i}.at")
        self.go(self.both(f"right{i}", self.test(f"last{i}.ok", "eq", "i64", f"%last{i}", wanted), *tests), f"fits{i}")

    def dims(self, name: str, index: int) -> str:
        """Dimensions from `self`, behind the number of states if there are several."""
        at = self.at(name, "%data", 8 * index)
        if not self.batch:
            return at
        for k in range(_ROOM):
            value = "%first0" if k == 0 else self.entry(f"{name}.{k}", index + k, "i64")
            self(f"store i64 {value}, ptr {self.at(f'{name}.{k}.to', '%dims.own', 8 * k)}")
        return "%dims.own"

    def run(self, pointers: list[str]) -> None:
        """Make the result, compute, return."""
        axes, dims = self.entry("axes", _AXES, "i32"), self.dims("dims", _DIMS)
        out = self.new_array("out", "made", axes, dims, "null", "null", 0)
        pointers.append(self.field("memory", out, 16, "ptr"))
        if self.batch:
            packed = self.entry("packed", _STRIDES)
            for i in range(self.count, 2 * self.count + 2):  # lengths, as the kernel knows them
                value = self.field(f"length{i}", packed, 8 * i)
                self(f"store i64 {value}, ptr {self.at(f'own{i}', '%own', 8 * i)}")
        self.call_kernel(pointers, "%own" if self.batch else None, "%first0" if self.batch else "1")
        if self.parts:
            self.shown(out)
        else:
            scalar = self.entry("scalar", _SCALAR)
            self.go(self.test("plain", "eq", "ptr", scalar, "null"), "array", "number")
            self(f"ret ptr {out}", "number:", f"%value = call ptr {scalar}(ptr {out})", "ret ptr %value")
        self("failed:", f"call void %decref(ptr {out})", "br label %give",
             "give:", "call void %incref(ptr %none)", "ret ptr %none", "raise:", "ret ptr null")

    def shown(self, out: str) -> None:
        """Return a tuple of arrays that show parts of the result."""
        base, pack, views = self.entry("set_base", _SET_BASE), self.entry("pack", _PACK), []
        for k in range(self.parts):
            at = _PARTS + _PART * k
            self(f"%part{k}.start = getelementptr i8, ptr %memory, i64 {self.entry(f'offset{k}', at + 1, 'i64')}")
            views.append(self.new_array(
                f"view{k}", f"viewed{k}", self.entry(f"axes.of{k}", at, "i32"), self.dims(f"dims.of{k}", at + 2),
                self.at(f"strides.of{k}", "%data", 8 * (at + 2 + _ROOM)), f"%part{k}.start", 0x400))
            self(f"call void %incref(ptr {out})", f"%based{k} = call i32 {base}(ptr {views[-1]}, ptr {out})")
        self(f"%parts = call ptr (i64, ...) {pack}(i64 {self.parts}, {', '.join(f'ptr {v}' for v in views)})",
             *(f"call void %decref(ptr {v})" for v in (*views, out)), "ret ptr %parts")


@functools.cache
def _door_ir(count: int, optional: int, skipped: int, parts: int, batch: bool) -> str:
    return str(_Door(count, optional, skipped, parts, batch))


def _bound_ir(n: int) -> str:
    text = _NativeCode("ptr %self, ptr %unused")
    text.call_kernel([text.entry(f"p{i}", _ADDRESSES + i) for i in range(n)])
    text(f"ret ptr {_again(text)}", "failed:")
    for name, i in (("set", _SET_ERROR), ("exception", _EXCEPTION), ("message", _MESSAGE)):
        text.entry(name, i)
    text("call void %set(ptr %exception, ptr %message)", "ret ptr null")
    return str(text)


def _again(text: _NativeCode) -> str:
    """The array of the result, which one more holds now."""
    result = text.entry("result", _OUT)
    text(f"%count = load i64, ptr {result}", "%more = add i64 %count, 1", f"store i64 %more, ptr {result}")
    return result


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


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _kernel_data(kernel: Kernel) -> list[int]:
    """What calls of the kernel need, and the objects that arguments are compared with."""
    return [kernel.address, id(np.ndarray), id(np.dtype(np.float64)), id(None), _address(ctypes.pythonapi.Py_IncRef),
            kernel.packed_strides.ctypes.data, *kernel.data_addresses()]


def _padded(numbers: Sequence[int]) -> list[int]:
    return [*numbers, *[0] * (_ROOM - len(numbers))]


def _make(kernel: Kernel, form: DoorForm, states: tuple[int, int] | None) -> Callable[..., Any]:
    lead = () if states is None else (0,)  # filled in by the call
    new, scalar, set_base = _numpy_functions()
    number = states is None and form.shape == ()
    flat = (kernel.out_size,) if form.parts or form.shape is None else form.shape
    data = [*_kernel_data(kernel), new, scalar if number else 0, _address(ctypes.pythonapi.Py_DecRef), set_base,
            _address(ctypes.pythonapi.PyTuple_Pack), *(states or (1, 1)), len(lead) + len(flat),
            *_padded((*lead, *flat))]
    row = (8 * kernel.out_size,) if lead else ()
    for offset, shape, strides in form.parts:
        data += [len(lead) + len(shape), 8 * offset, *_padded((*lead, *shape)),
                 *_padded((*row, *(8 * s for s in strides)))]
    data += [*kernel.inputs.values(), *(a.ctypes.data for a in form.defaults)]
    ir = _door_ir(len(kernel.inputs), len(form.defaults), form.skipped, len(form.parts), states is not None)
    return _native(ir, _METH_FASTCALL, "door", np.array(data, dtype=np.int64),  # type: ignore[no-any-return]
                   (kernel, form))


def make_door(kernel: Kernel, form: DoorForm) -> Callable[..., Any]:
    """``door(*inputs)``: the result, or None if the arrays do not fit or something is not finite."""
    return _make(kernel, form, None)


def make_batch_door(kernel: Kernel, form: DoorForm, least: int, most: int) -> Callable[..., Any]:
    """The same for rows of `least` to `most` states. Keeps the interpreter's lock."""
    return _make(kernel, form, (least, most))


def make_bound(kernel: Kernel, arrays: Sequence[Any], out: Any, exception: type[Exception], message: str
               ) -> Callable[[], Any]:
    """``bound()``: run the kernel on these arrays, return `out`; raise `exception` if something is not finite."""
    text = ctypes.c_char_p(message.encode())
    addresses = [*(a.ctypes.data for a in arrays), out.ctypes.data]
    data = [*_kernel_data(kernel), _address(ctypes.pythonapi.PyErr_SetString), id(exception), _address(text), id(out),
            *addresses]
    return _native(_bound_ir(len(addresses)), _METH_NOARGS, "bound",  # type: ignore[no-any-return]
                   np.array(data, dtype=np.int64), (kernel, tuple(arrays), out, exception, text))
