"""Fingerprints of mechanisms and other values: the same for equal ones, in every process; other if a number differs."""

from __future__ import annotations

import functools
import hashlib
import inspect
import struct
import types
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.scalar.graph import Scalar, digest

__all__ = ["fingerprint", "fingerprint_of"]

#: what a mechanism keeps besides what is computed with: tables made from it, how its bodies look, and
#: ranges that do not act
_DERIVED = ("_graph", "_by_index", "_design", "_at_origin", "_shapes", "_ranges")
#: what most mechanisms have none of, and earlier versions did not know
_SELDOM = ("_open", "_absent", "_states", "_outputs", "carriers")
_LIBRARY = "bellcrank."
_FLOATS = {float}
_double = struct.Struct("<d").pack
_known: weakref.WeakKeyDictionary[Mechanism, str] = weakref.WeakKeyDictionary()


def fingerprint(mechanism: Mechanism, *, fixed: bool = False) -> str:
    """SHA-256, in hexadecimal, of all that is computed with in a mechanism: names, numbers, poses, elements,
    parameters; not of its shapes and ranges.

    Laws given as Python functions enter by their qualified name, their code, and the numbers they hold (defaults,
    closures, globals of their own module); code of other Python versions gives another fingerprint. `fixed` says that
    the mechanism will not change any more (that of a `System` does not): the answer is kept. Cost: O(parts).

    >>> import bellcrank as bc
    >>> fingerprint(bc.load("pendulum")) == fingerprint(bc.load("pendulum"))
    True
    >>> fingerprint(bc.load("pendulum")) == fingerprint(bc.load("double_pendulum"))
    False
    """
    if fixed and mechanism in _known:
        return _known[mechanism]
    text = _Text()
    for name, value in sorted(vars(mechanism).items()):
        if name not in _DERIVED and not (name in _SELDOM and not value):
            text.put(name)
            text.put(value)
    found = text.finish()
    if fixed:
        _known[mechanism] = found
    return found


def fingerprint_of(value: Any) -> str:
    """SHA-256, in hexadecimal, of nested Python values: equal for equal ones, in every process. Cost: O(size)."""
    text = _Text()
    text.put(value)
    return text.finish()


class _Text:
    """An unambiguous text of nested Python values, hashed as it is made."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._waiting = bytearray()
        self._open: set[int] = set()  # objects on the way to this one, against circles

    def finish(self) -> str:
        self._hash.update(self._waiting)
        self._waiting.clear()
        return self._hash.hexdigest()

    def _mark(self, tag: str, data: bytes = b"") -> None:
        self._waiting += b"%s%d:" % (tag.encode(), len(data))
        self._waiting += data
        if len(self._waiting) > 1 << 20:
            self._hash.update(self._waiting)
            self._waiting.clear()

    def put(self, value: Any) -> None:
        """Add one value of any type."""
        kind = type(value)
        if kind is float:
            self._waiting += b"f"
            self._waiting += _double(value)
        elif kind is str:
            self._mark("s", value.encode())
        elif value is None or kind is bool:
            self._mark(repr(value))
        elif kind is tuple or kind is list:
            if set(map(type, value)) == _FLOATS:  # most of all numbers: quicker
                self._mark("t", struct.pack(f"<{len(value)}d", *value))
            else:
                self._several("(", value)
        elif isinstance(value, (int, np.integer, np.floating)):
            self._number(value)
        elif isinstance(value, Mapping):
            self._several("{", (x for pair in value.items() for x in pair), 2 * len(value))
        else:
            self._other(value)

    def _several(self, tag: str, values: Iterable[Any], n: int | None = None) -> None:
        self._mark(f"{tag}{len(values) if n is None else n}")  # type: ignore[arg-type]
        for value in values:
            self.put(value)

    def _number(self, value: Any) -> None:
        """1 and 1.0 are the same length."""
        try:
            same = float(value) == value
        except OverflowError:
            same = False
        self.put(float(value)) if same or value != value else self._mark("i", repr(int(value)).encode())

    def _other(self, value: Any) -> None:
        if isinstance(value, bytes):
            self._mark("b", value)
        elif isinstance(value, (tuple, list)):  # named tuples
            self._mark("n", _name(type(value)))
            self._several("(", tuple(value))
        elif isinstance(value, (set, frozenset)):  # their order differs from process to process
            self._several("<", sorted(fingerprint_of(x) for x in value))
        elif isinstance(value, np.ndarray):
            self._mark("a", f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
        elif isinstance(value, Scalar):
            self._mark("p", digest([value]).encode())
        elif isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType, np.ufunc)):
            self._mark("c", _name(value))
        else:
            self._deep(value)

    def _deep(self, value: Any) -> None:
        if id(value) in self._open:
            self._mark("o")
            return
        self._open.add(id(value))
        self._compound(value)
        self._open.discard(id(value))

    def _compound(self, value: Any) -> None:
        if isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.MethodType):
            self.put((value.__func__, value.__self__))
        elif isinstance(value, functools.partial):
            self.put(("partial", value.func, value.args, value.keywords))
        elif isinstance(value, types.CodeType):
            self._code(value)
        else:
            slots, _, head = _places(value.__class__)
            self._mark("O", head)
            for name in slots:
                self.put(getattr(value, name, None))
            own = _fields(value)
            if own:
                self.put(own)

    def _function(self, function: types.FunctionType) -> None:
        self._mark("F", _name(function))
        if not f"{function.__module__}.".startswith(_LIBRARY):  # of our own functions the name says enough
            self._code(function.__code__)
            near = {name: _global(function, name) for name in sorted(_names_in(function.__code__))
                    if name in function.__globals__}
            self.put(near)
        self.put((function.__defaults__, function.__kwdefaults__))
        self.put(tuple(_content(cell) for cell in function.__closure__ or ()))

    def _code(self, code: types.CodeType) -> None:
        self._mark("C", code.co_code)
        # names of what is called; constants, among them the code of inner functions
        self.put((code.co_names, code.co_varnames, code.co_freevars, code.co_consts))


def _name(value: Any) -> bytes:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or type(value).__qualname__
    module = getattr(value, "__module__", None)
    # processes that multiprocessing starts anew call the main program so
    return f"{'__main__' if module == '__mp_main__' else module}.{name}".encode()


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _names_in(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names_in(constant)
    return names


def _global(function: types.FunctionType, name: str) -> Any:
    """A global that a law reads: its value, or only its name if it is a function or class from elsewhere."""
    value = function.__globals__[name]
    if isinstance(value, (types.FunctionType, type)) and value.__module__ != function.__module__:
        return _name(value)
    return value


def _fields(value: Any) -> dict[str, Any]:
    """What an object keeps in its dictionary, but for cached results."""
    slots, cached, _ = _places(value.__class__)
    own = getattr(value, "__dict__", None)
    if own:
        return {name: own[name] for name in sorted(own) if name not in cached}
    wrapped = inspect.unwrap(value) if callable(value) and not slots else value
    return {"wrapped": wrapped} if wrapped is not value else {}


@functools.cache
def _places(cls: type) -> tuple[tuple[str, ...], frozenset[str], bytes]:
    """Slots of a class, sorted, the names of its cached properties, and its own name with those of the slots."""
    slots: set[str] = set()
    cached: set[str] = set()
    for base in cls.__mro__:
        listed: str | Iterable[str] = base.__dict__.get("__slots__", ())
        slots.update((listed,) if isinstance(listed, str) else listed)
        cached.update(n for n, x in base.__dict__.items() if isinstance(x, functools.cached_property))
    ordered = tuple(sorted(slots - {"__dict__", "__weakref__"}))
    return ordered, frozenset(cached), _name(cls) + f" {' '.join(ordered)}".encode()
