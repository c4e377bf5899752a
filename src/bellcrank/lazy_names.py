"""Public names of a package that are imported when they are first used, so that importing the package is quick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any

__all__ = ["elsewhere", "from_above", "on_first_use"]


def from_above(place: str, name: str) -> Any:
    """A function of a higher layer, looked up by name when it is called: for methods that are only a shortcut to it,
    such as `Result.animate`. Nothing is imported before, and nothing below depends on it."""
    return getattr(import_module(f"{__package__}.{place}"), name)


def elsewhere(name: str, first: str) -> str:
    """Where a name that is looked for in vain is a function of the package or of `analyze`: how it is called there with
    `first` as its first argument; or nothing."""
    if name.startswith("_"):
        return ""
    for place, written in ((__package__, "bc"), (f"{__package__}.analyze", "bc.analyze")):
        if name in getattr(import_module(place), "__all__", ()):
            return f"; it is a function: {written}.{name}({first}, ...)"
    return ""


def on_first_use(package: str, places: Mapping[str, str], known: dict[str, Any],
                 wrap: Callable[[Any, str], Any] | None = None) -> Callable[[str], Any]:
    """The `__getattr__` of a package: `places` says in which module of it a name is, `known` are its global names.
    Functions are what `wrap` makes of them and of the package's name."""
    def find(name: str) -> Any:
        if name not in places:
            more = elsewhere(name, "system") if package == __package__ else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{more}")
        module = import_module(f"{package}.{places[name]}")
        own = places[name].rpartition(".")[2] == name  # the module itself, if it has nothing of its name
        value = getattr(module, name, module) if own else getattr(module, name)
        known[name] = value = wrap(value, package) if wrap is not None and isinstance(value, FunctionType) else value
        return value

    return find
