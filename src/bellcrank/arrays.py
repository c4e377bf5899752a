"""Checking and shaping what users hand in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.errors import ModelError, StateError, hint

__all__ = ["START", "Floats", "Forces", "absent", "batch", "by_name", "check_finite", "check_time", "check_unlabelled",
           "check_unmasked", "flat",
           "half_turn", "how_many", "leading", "one_point", "one_time", "random_source", "wrench_array"]

Floats = npt.NDArray[np.float64]
#: joint forces: an array (..., nu), or {joint or "joint.coordinate": values}, zero where nothing is said
Forces = Mapping[str, npt.ArrayLike] | npt.ArrayLike


#: the time where none is given
START = 0.0
_DOUBLE = np.dtype(np.float64)


def half_turn(angle: Any) -> Any:
    """Angles (a number or an array) less whole turns, within half a turn of zero."""
    return (angle + np.pi) % (2.0 * np.pi) - np.pi


def random_source(seed: Any) -> np.random.Generator:
    """Random numbers that follow from a whole number."""
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise StateError(f"seed must be a whole number, at least 0, got {seed!r}")
    return np.random.default_rng(seed)


def how_many(what: str, value: Any, least: int = 1) -> int:
    """A whole number, at least `least`."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise StateError(f"{what} must be a whole number, at least {least}, got {value!r}")
    return int(value)


def one_point(what: str, value: npt.ArrayLike) -> Floats:
    """Three numbers: a point of a body."""
    array = flat(what, value, 3, "a point")
    if array.ndim != 1:
        raise StateError(f"{what}: needs one point, three numbers, got shape {array.shape}")
    return array


def check_time(t: npt.ArrayLike) -> None:
    """Refuse what is no time, whether or not anything depends on it."""
    if t.__class__ is float and t - t == 0.0:
        return
    check_unmasked("t", t)
    try:
        array = np.asarray(t)
        if array.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError):
        raise StateError(f"t: {type(t).__name__} cannot be read as a time") from None
    if not np.isfinite(array).all():
        raise StateError(f"t is {array[~np.isfinite(array)][0]}; times must be finite")


def one_time(t: npt.ArrayLike) -> float:
    """A single time as a float."""
    check_time(t)
    if np.size(t) != 1:
        raise StateError(f"t: needs one time, got the shape {np.shape(t)}")
    return float(np.ravel(np.asarray(t, dtype=float))[0])


def check_unmasked(name: str, value: Any) -> None:
    """Refuse masked arrays that hide something: what lies under a mask is no number."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        place = ", ".join(str(i) for i in np.argwhere(np.ma.getmaskarray(value))[0].tolist())
        raise StateError(f"{name}{f'[{place}]' if place else ''} is masked; fill in a number, or leave the state out")


def check_unlabelled(name: str, value: Any) -> None:
    """Refuse tables of pandas whose entries have names: they would be taken by their places."""
    labels = getattr(value, "columns", getattr(value, "index", None))
    if hasattr(value, "to_numpy") and labels is not None and any(isinstance(label, str) for label in labels):
        raise StateError(f"{name}: the labels {', '.join(map(str, labels[:3]))}, ... of a {type(value).__name__} are "
                         "not looked at; bring its entries into the order of the names of the system, and give "
                         "its to_numpy(), or a dict where names are taken")


def flat(name: str, value: npt.ArrayLike, size: int, what: str) -> Floats:
    """`value` as an array of doubles whose last axis has `size` entries."""
    if value.__class__ is np.ndarray and value.dtype is _DOUBLE and value.shape[-1:] == (size,):
        return value
    check_unmasked(name, value)
    check_unlabelled(name, value)
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":  # not complex numbers, text or None
            raise TypeError
        array = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise StateError(f"{name}: {type(value).__name__} cannot be read as numbers{_instead(name, value)}") from None
    if array.ndim == 0 or array.shape[-1] != size:
        raise StateError(f"{name}: the last axis must have {size} entries ({what}), got shape {array.shape}")
    return array


def _instead(name: str, value: object) -> str:
    """What to give in place of a mapping or a state."""
    if hasattr(value, "q") and hasattr(value, "u"):
        return ": it holds q, u and t; give state.q, and state.u and t=state.t where they are asked for"
    if not isinstance(value, Mapping):
        return ""
    if name == "udot":
        return ": give an array; consistent_acceleration(q, u, {joint: value}) makes one from names, loops closed"
    if name in ("q", "u"):
        order = "coordinate_names" if name == "q" else "speed_names"
        return (f": give an array in the order of {order}. assemble(q={{joint: value}}, u={{joint: value}}) makes a "
                "state from names, with its loops closed: state.q and state.u")
    return ": give an array"


def absent(q: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Which states of a batch (..., nq) have no coordinates at all, since `assemble` could not reach them, (...)."""
    array = np.asarray(q, dtype=float)
    return np.asarray(np.isnan(array).all(axis=-1)) if array.ndim > 1 and array.shape[-1] else \
        np.zeros(array.shape[:-1], dtype=bool)


def check_finite(what: str, label: str, array: Floats, names: Sequence[str]) -> None:
    """Say which entry of which state is not finite."""
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        *state, entry = (int(i) for i in bad[0])
        where = f", batch index {tuple(state)}" if state else ""
        raise StateError(f"{what}: {label}[{entry}] ({names[entry]}) is {array[(*state, entry)]}{where}; inputs must "
                         "be finite")


def by_name(what: str, values: Mapping[str, npt.ArrayLike], entries: Callable[[str], Sequence[int]], size: int
            ) -> Floats:
    """{name: values} as an array (..., size), zero where nothing is said; `entries` are the places of a name.

    Values have the shape (..., places of the name); where that is one place, its axis may be left out.
    """
    parts: list[tuple[Sequence[int], Floats]] = []
    for key, value in values.items():
        try:
            places = entries(key)
        except (ModelError, StateError) as error:
            raise type(error)(f"{what}: {error}") from None
        check_unmasked(f"{what} of {key!r}", value)
        if callable(value) and not hasattr(value, "__array__"):
            raise StateError(f"{what} of {key!r}: a function is no number; functions of time and state are given to "
                             "simulate as control=lambda t, q, u: {joint: force}, or added with add_joint_force")
        array = np.asarray(value)
        if len(places) == 1 and array.shape[-1:] != (1,):
            array = array[..., None]
        parts.append((places, flat(f"{what} of {key!r}", array, len(places), "one for every speed")))
    out = np.zeros((*leading([a for _, a in parts] or [np.zeros(1)]), size))
    for places, array in parts:
        out[..., list(places)] = array
    return out


def leading(arrays: Sequence[Floats]) -> tuple[int, ...]:
    """The common leading (batch) axes of arrays."""
    try:
        return np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    except ValueError:
        shapes = ", ".join(str(a.shape[:-1]) for a in arrays)
        raise StateError(f"the leading (batch) axes {shapes} of the inputs do not fit together") from None


def batch(arrays: Sequence[Floats]) -> tuple[list[Floats], tuple[int, ...], int]:
    """Broadcast leading axes: contiguous arrays of shape (n, size) or (1, size), the axes, and n."""
    first = arrays[0].shape[:-1] if arrays else ()
    if len(first) == 1 and all(a.shape[:-1] == first and a.flags.c_contiguous for a in arrays):
        return list(arrays), first, first[0]
    shapes = {a.shape[:-1] for a in arrays if a.ndim > 1}
    lead = leading(arrays) if len(shapes) > 1 else next(iter(shapes), ())  # most often there is nothing to broadcast
    n = prod(lead)
    ready = []
    for a in arrays:
        if a.ndim == 1 or prod(a.shape[:-1]) == 1:
            ready.append(np.ascontiguousarray(a.reshape(1, a.shape[-1])))
        else:
            full = a if a.shape[:-1] == lead else np.broadcast_to(a, (*lead, a.shape[-1]))
            ready.append(np.ascontiguousarray(full).reshape(n, a.shape[-1]))
    return ready, lead, n


def wrench_array(wrenches: Mapping[str, npt.ArrayLike] | npt.ArrayLike, names: Sequence[str]) -> Floats:
    """Wrenches on all bodies, shape (..., bodies, 6), from an array or from {body: wrench}."""
    if not isinstance(wrenches, Mapping):
        check_unmasked("wrenches", wrenches)
        try:
            array = np.asarray(wrenches, dtype=np.float64)
        except (TypeError, ValueError):
            raise StateError(f"wrenches: {type(wrenches).__name__} cannot be read as numbers; give an array or a "
                             "mapping from body names") from None
        if array.ndim < 2 or array.shape[-2:] != (len(names), 6):
            raise StateError(f"wrenches: needs shape (..., {len(names)}, 6) or a mapping from body names, "
                             f"got {array.shape}")
        return array
    index = {name: i for i, name in enumerate(names)}
    parts: dict[int, Any] = {}
    for name, value in wrenches.items():
        if name not in index:
            raise ModelError(f"wrenches: no body called {name!r}{hint(name, names)}")
        parts[index[name]] = flat(f"wrench on {name!r}", value, 6, "moment, then force, world axes")
    lead = leading(list(parts.values())) if parts else ()
    out = np.zeros((*lead, len(names), 6))
    for i, part in parts.items():
        out[..., i, :] = part
    return out
