"""Arguments of public functions: where one is of another kind than the signature says, the error names it.

Functions look at the values of their arguments themselves. What they do not foresee, a text in the place of a number, a
number in the place of a list of names, fails somewhere inside, in the words of Python or NumPy. `checked` catches that,
looks for the argument that does not fit its annotation, and says so; a call that succeeds costs nothing more.
"""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, wraps
from numbers import Real
from types import FunctionType
from typing import Any, TypeVar, cast

from bellcrank.errors import BellcrankError, ModelError

__all__ = ["checked", "checked_methods", "must_be"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)
#: beyond this, and below one part of it, squares and products overflow
_HUGE = 1e100
#: (whether a value fits, how the wanted kind is called)
_Kind = tuple[Callable[[Any], bool], str]


def checked(function: _Function, package: str = "") -> _Function:
    """The function, whose failures name the argument that is of the wrong kind, if one is; `package` is where it is
    public, if that is not where it is defined."""
    if "checked" in vars(function):
        return function
    explain = _explain  # wanted by `called`, whose global names are those of the function

    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            explain(function, args, kwargs, error)
            raise

    # in the module of the function: doctests are looked for there
    own = getattr(inspect.unwrap(function), "__globals__", called.__globals__)
    made = wraps(function)(FunctionType(called.__code__, own, function.__name__, None, called.__closure__))
    made.__module__, made.checked = package or function.__module__, True  # type: ignore[attr-defined]
    return cast("_Function", made)


def checked_methods(owner: _Class) -> _Class:
    """A class, of whose own public methods and constructor the same holds."""
    for name, member in list(vars(owner).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, (classmethod, staticmethod)):
            setattr(owner, name, type(member)(checked(member.__func__)))
        elif isinstance(member, FunctionType):
            setattr(owner, name, checked(member))
    return owner


def must_be(what: str, annotation: str, value: Any) -> None:
    """Refuse a value of another kind than an annotation says, such as "bool" or "Sequence[str]"."""
    fits, words = _kind(annotation)
    if not _tried(fits, value):
        if "a System" in words and _is("Mechanism")(value):
            raise ModelError(f"{what} needs a System; compile(mechanism) makes one")
        raise ModelError(f"{what} must be {words}, got {_shown(value)}")


def _explain(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> None:
    """Raise an error of ours if an argument does not fit the signature."""
    if isinstance(error, BellcrankError):
        return
    signature, called = inspect.signature(function), _called(function, args)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as unfit:  # an unknown or missing argument, of which Python says all
        system = kwargs.get("system", args[0] if args else None)
        if "system" in signature.parameters and _is("Mechanism")(system):  # the first thing to mend
            must_be(f"{called}: system", "System", system)
        if isinstance(error, TypeError):
            return
        raise TypeError(f"{called}: {unfit}") from error
    first = sorted(bound.arguments.items(), key=lambda item: str(signature.parameters[item[0]].annotation) != "System")
    for name, value in first:
        parameter = signature.parameters[name]
        if parameter.annotation is parameter.empty or parameter.default is value:
            continue
        several = parameter.kind is parameter.VAR_POSITIONAL or parameter.kind is parameter.VAR_KEYWORD
        for one in (value,) if not several else value.values() if isinstance(value, dict) else value:
            try:
                must_be(f"{called}: {name}", str(parameter.annotation), one)
            except BellcrankError as found:
                raise found from error
            size = abs(float(one)) if _tried(_number, one) else 1.0
            if isinstance(error, ArithmeticError) and not 1.0 / _HUGE < size < _HUGE and size:
                raise ModelError(f"{called}: {name}: {one:g} cannot be computed with; check its unit") from error


def _called(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """How a user calls it: a constructor by its class, what belongs to a class by both names, a method by its own."""
    owner, _, name = function.__qualname__.rpartition(".")
    first = next(iter(inspect.signature(function).parameters), "")
    return type(args[0]).__name__ if name == "__init__" else name if first == "self" or not owner else f"{owner}.{name}"


def _tried(fits: Callable[[Any], bool], value: Any) -> bool:
    try:
        return fits(value)
    except Exception:  # an object that fails when it is looked at is none of the kind
        return False


def _shown(value: Any) -> str:
    """A value in a message, short."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        dtype = getattr(value, "dtype", None)
        said = "" if getattr(dtype, "kind", "f") in "fiub" else f", of type {dtype}"
        return f"{type(value).__name__} of shape {shape}{said}"
    try:
        text = repr(value)
    except Exception:
        text = ""
    return text if 0 < len(text) <= 60 else f"{text[:40]}... ({type(value).__name__})" if text else type(value).__name__


# -- kinds of values, by the text of annotations ----------------------------------------------------
@cache
def _kind(annotation: str) -> _Kind:
    try:
        return _kind_of(ast.parse(annotation, mode="eval").body)
    except SyntaxError:
        return _ANYTHING


def _kind_of(node: ast.expr) -> _Kind:
    if isinstance(node, ast.BinOp):
        sides = [_kind_of(node.left), _kind_of(node.right)]
        words = dict.fromkeys(side[1] for side in sides if side[1] != "None")
        return (lambda value: any(_tried(fits, value) for fits, _ in sides)), " or ".join(words)
    if isinstance(node, ast.Constant) and node.value is None:
        return (lambda value: value is None), "None"
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return _container(_name(node.value), parts)
    name = _name(node)
    if name in _ALIASES:
        return _kind(_ALIASES[name])
    return _KINDS.get(name, (_is(name), f"a {name}") if name in _CLASSES else _ANYTHING)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _container(name: str, parts: list[ast.expr]) -> _Kind:
    if name == "Mapping":
        key, value = (_kind_of(p) for p in parts)
        return (lambda given: isinstance(given, Mapping) and all(_tried(key[0], k) and _tried(value[0], v)
                                                                 for k, v in given.items())), "a mapping by names"
    if name in ("Sequence", "Collection", "Iterable", "tuple"):
        inner = _kind_of(parts[0])
        kind: Any = Iterable if name == "Iterable" else Collection
        count = len(parts) if name == "tuple" and not isinstance(parts[-1], ast.Constant) else None
        what = "names" if inner[1] == "text" else "numbers" if inner[1] in _NUMBERS else "values"
        return (lambda given: isinstance(given, kind) and not isinstance(given, (str, bytes, Mapping))
                and (count is None or len(given) == count)
                and all(_tried(inner[0], x) for x in given)), f"a list of {count or ''} {what}".replace("  ", " ")
    return _KINDS.get(name, _ANYTHING)


def _is(name: str) -> Callable[[Any], bool]:
    """Whether a value is of a class of this name, which may be one of a higher layer."""
    return lambda value: any(c.__name__ == name for c in type(value).__mro__)


def _number(value: Any) -> bool:
    if isinstance(value, (str, bytes)) or getattr(value, "ndim", 0) != 0:
        return False
    kind = getattr(getattr(value, "dtype", None), "kind", "f")  # complex numbers and dates of NumPy become floats, too
    return kind in "fiub" and (isinstance(value, Real) or hasattr(value, "dtype")) and isinstance(float(value), float)


def _numbers(value: Any) -> bool:
    import numpy as np

    return not isinstance(value, Mapping) and np.asarray(value).dtype.kind in "fiub"


def _path(value: Any) -> bool:
    return isinstance(os.fspath(value), str)


_ANYTHING: _Kind = (lambda value: True), "anything"
_NUMBERS = ("a number", "a number or a parameter", "a whole number")
_KINDS: dict[str, _Kind] = {
    "bool": (lambda value: _is("bool")(value) or _is("bool_")(value), "True or False"),  # Python's or NumPy's
    "int": (lambda value: isinstance(value.__index__(), int) and not isinstance(value, bool)
            and not getattr(value, "ndim", 0) and abs(int(value)) < 2**63, "a whole number"),
    "float": (_number, "a number"),
    "Number": (lambda value: _is("Scalar")(value) or _is("Jet")(value) or _number(value), "a number or a parameter"),
    "str": (lambda value: isinstance(value, str), "text"),
    "ArrayLike": (_numbers, "numbers"), "Floats": (_numbers, "numbers"), "Array": (_numbers, "numbers"),
    "Machine": (_is("Machine"), "a System"),
    "PathLike": (_path, "a path"), "Path": (_path, "a path"),
    "Callable": (callable, "a function"),
}
_CLASSES = ("System", "Mechanism", "Pose", "Inertia", "Joint", "Body", "Table", "State", "Event", "Result",
            "FlexibleBody", "BeamSection", "SectionPoint", "PlacedShape", "Connection", "Carrier", "Generator",
            "Dataset", "RigidInertia", "Kernels", "KeptModel", "LoopPlans", "Paper", "PaperItem", "Setup", "Change",
            "Plane", "DrawnSamples", "ShapeIntegrals", "Stiffening", "StressModes")
_ALIASES = {
    "Forces": "Mapping[str, ArrayLike] | ArrayLike", "Wrenches": "Mapping[str, ArrayLike] | ArrayLike | None",
    "Values": "Mapping[str, ArrayLike] | ArrayLike | None",
    "Guess": "State | Mapping[str, ArrayLike] | ArrayLike | None",
    "Law": "Callable", "Law1": "Callable", "Law2": "Callable", "MachineLaw": "Callable",
    "Motion": "Callable | float", "Laws": "Mapping[str, Callable]",
    "Matrix": "Callable | ArrayLike", "Column": "Callable | ArrayLike",
    "Outputs": "Sequence[str] | Mapping[str, Callable] | Callable | None",
    "Interfaces": "Mapping[str, Sequence[int] | Callable]", "TracePoint": "str | tuple[str, Sequence[float]]",
    "Role": "str",
}
