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


def of_position(method: Callable[Concatenate[Any, npt.ArrayLike, P], R]) -> _PositionMethod[P, R]:
    """A method or function (system, q, ..., t) that may be given a `State` for q; its time is used if t is not."""
    @wraps(method)
    def called(self: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(q, State):
            kwargs.setdefault("t", q.t)
            q = q.q
        return method(self, q, *args, **kwargs)

    return cast("_PositionMethod[P, R]", called)


def of_motion(method: Callable[Concatenate[Any, npt.ArrayLike, npt.ArrayLike, P], R]) -> _MotionMethod[P, R]:
    """A method or function (system, q, u, ..., t) that may be given a `State` for q and u: what follows them follows
    the state, whose time is used unless t is given."""
    kinds = [p.kind for p in signature(method).parameters.values()]
    room = kinds.count(Parameter.POSITIONAL_OR_KEYWORD) - 3  # after self, q and u

    @wraps(method)
    def called(self: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(q, State):
            if len(args) > room or "u" in kwargs:
                raise u_twice(method.__name__)
            kwargs.setdefault("t", q.t)
            return method(self, q.q, q.u, *args, **kwargs)
        return method(self, q, *args, **kwargs)

    return cast("_MotionMethod[P, R]", called)


def u_twice(name: str) -> StateError:
    """An error for a state with something more than what follows q and u."""
    return StateError(f"{name}: a State holds q and u; what comes after them follows it, so there is one argument too "
                      f"many: {name}(state, ...) or {name}(state.q, state.u, ...)")
