"""A `State` may stand wherever coordinates q, or q and speeds u, do: ``pose(state, body)``, ``bias(state)``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

import numpy.typing as npt

from bellcrank.errors import StateError
from bellcrank.loops.closer import State

__all__ = ["of_motion", "of_position", "u_twice"]

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class _Motion(Protocol[P, R_co]):
    """A bound method of a position and speeds, or of a state."""

    @overload
    def __call__(self, state: State, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, q: npt.ArrayLike, u: npt.ArrayLike, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class _Position(Protocol[P, R_co]):
    """A bound method of a position, or of a state."""

    def __call__(self, q: State | npt.ArrayLike, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class _PositionMethod(Protocol[P, R_co]):
    """The same in its class, or a function of a system and a position."""

    def __call__(self, system: Any, q: State | npt.ArrayLike, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def __get__(self, instance: Any, owner: Any = None) -> _Position[P, R_co]: ...


class _MotionMethod(Protocol[P, R_co]):
    """The same in its class, or a function of a system and a motion."""

    @overload
    def __call__(self, system: Any, state: State, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, system: Any, q: npt.ArrayLike, u: npt.ArrayLike, /, *args: P.args, **kwargs: P.kwargs
                 ) -> R_co: ...
    def __get__(self, instance: Any, owner: Any = None) -> _Motion[P, R_co]: ...


#: the cheapest way for one state: (system, arguments) -> result, or None if that does not fit
Once = Callable[[Any, tuple[Any, ...]], Any]


def _no_way(system: Any, args: tuple[Any, ...]) -> None:
    return None


def _state(args: tuple[Any, ...], kwargs: dict[str, Any]) -> State | None:
    """The state that stands for q, if one does; as a keyword it is taken out."""
    if args:
        return args[0] if args[0].__class__ is State else None
    return kwargs.pop("q") if kwargs.get("q").__class__ is State else None


def of_position(once: Once = _no_way) -> Callable[[Callable[Concatenate[Any, npt.ArrayLike, P], R]],
                                                  _PositionMethod[P, R]]:
    """For a method or function (system, q, ..., t) that may be given a `State` for q; its time is used if t is not.
    Without t, and other arguments by name, `once` is asked first."""
    def decorate(method: Callable[Concatenate[Any, npt.ArrayLike, P], R]) -> _PositionMethod[P, R]:
        @wraps(method)
        def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not kwargs:
                found = once(self, args)
                if found is not None:
                    return found
            state = _state(args, kwargs)
            if state is not None:
                args = (state.q, *args[1:])
                if not kwargs and (found := once(self, args)) is not None:
                    return found
                kwargs.setdefault("t", state.t)
            return method(self, *args, **kwargs)

        return cast("_PositionMethod[P, R]", called)

    return decorate


def of_motion(once: Once = _no_way) -> Callable[[Callable[Concatenate[Any, npt.ArrayLike, npt.ArrayLike, P], R]],
                                                _MotionMethod[P, R]]:
    """For a method or function (system, q, u, ..., t) that may be given a `State` for q and u: what follows them
    follows the state, whose time is used unless t is given. Without t, and other arguments by name, `once` is asked
    first."""
    def decorate(method: Callable[Concatenate[Any, npt.ArrayLike, npt.ArrayLike, P], R]) -> _MotionMethod[P, R]:
        kinds = [p.kind for p in signature(method).parameters.values()]
        room = kinds.count(Parameter.POSITIONAL_OR_KEYWORD) - 3  # after self, q and u

        @wraps(method)
        def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not kwargs:
                found = once(self, args)
                if found is not None:
                    return found
            state = _state(args, kwargs)
            if state is not None:
                if len(args) - 1 > room or "u" in kwargs:
                    raise u_twice(method.__name__)
                args = (state.q, state.u, *args[1:])
                if not kwargs and (found := once(self, args)) is not None:
                    return found
                kwargs.setdefault("t", state.t)
            return method(self, *args, **kwargs)

        return cast("_MotionMethod[P, R]", called)

    return decorate


def u_twice(name: str) -> StateError:
    """An error for a state with something more than what follows q and u."""
    return StateError(f"{name}: a State holds q and u; what comes after them follows it, so there is one argument too "
                      f"many: {name}(state, ...) or {name}(state.q, state.u, ...)")
