"""The state of a machine: coordinates, speeds and time, what contacts remember, and the names of all of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked_methods
from bellcrank.arrays import START, Floats, by_name
from bellcrank.errors import StateError, hint
from bellcrank.system.state_file import read_state, write_state

__all__ = ["AssemblyFailure", "State", "StateNames", "coordinates_of", "parts_of"]

#: names that `repr` writes out
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class AssemblyFailure:
    """Why a state of a batch is NaN: its index, the joint (or constraint) at which it fails, and the reason."""

    index: tuple[int, ...]
    joint: str
    reason: str


@dataclass(frozen=True)
class StateNames:
    """Names of the coordinates and of the speeds of a machine, in their order."""

    coordinates: tuple[str, ...]
    speeds: tuple[str, ...]

    @cached_property
    def elements(self) -> tuple[str, ...]:
        """States of force elements: those whose integrals over time are among the coordinates."""
        own = (name.removesuffix(".integral") for name in self.coordinates if name.endswith(".integral"))
        return tuple(name for name in own if f"{name}.value" in self.speeds)

    @cached_property
    def coordinate_places(self) -> dict[str, int | slice]:
        """Places in q by joint and by name; one number where a joint has one coordinate."""
        return _places(self.coordinates)

    @cached_property
    def speed_places(self) -> dict[str, int | slice]:
        """Places in u, likewise."""
        return _places(self.speeds)


def _places(names: Sequence[str]) -> dict[str, int | slice]:
    joints: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        joints.setdefault(name.rpartition(".")[0], []).append(i)
    each: dict[str, int | slice] = {name: i for i, name in enumerate(names)}
    return each | {joint: at[0] if len(at) == 1 else slice(at[0], at[-1] + 1) for joint, at in joints.items()}


@checked_methods
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class State:
    """Coordinates q, speeds u and the time t [s] of a machine, which belong together; leading axes are a batch.

    States come from `System.assemble`, `System.project`, `System.random_state`, `System.state`, `Result.state` and
    `Rollout.state`, and every function that takes q, or q and u, takes a state in their place. `q` and `u` have the
    entries of all joints in the order in which these were added; they are NaN in states of a batch that `assemble`
    cannot reach (see `failures`). Those of one joint are ``state["A"]`` and
    ``state.speed("A")``, [rad or m] and [rad/s or m/s]; `elements` are the states of force elements, and `contacts`
    what rigid contacts remember from step to step (None: nothing).

    Nothing in it can be changed: its arrays are read-only, and `replace` makes another state. ``q, u = state`` unpacks
    it into copies that may be written to.

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 2.0}, t=0.1)
    >>> state["A"], state["A.angle"], state.speed("A"), state.t
    (0.5, 0.5, 2.0, 0.1)
    >>> linkage.forward_dynamics(state).shape
    (4,)
    >>> q, u = state
    >>> linkage.project(state.replace({"A": 0.6})) == state
    False
    """

    q: Floats  #: coordinates, (..., nq)
    u: Floats  #: speeds, (..., nu)
    t: Any  #: time [s], one number or (...)
    contacts: Floats | None  #: what rigid contacts remember, (..., numbers); see `Rollout`
    names: StateNames | None  #: names of the entries; None where q and u came without
    #: whether the branch of the guess ended on the way, so that this is a position on another one (see `assemble`); of
    #: every state of a batch
    branch_changed: bool | npt.NDArray[np.bool_]
    #: the largest error of redundant constraints that are dropped since the drawing contradicts itself there [m, or
    #: cosines], of every state of a batch; see `bellcrank.analyze.drawing_errors`
    drawing_error: float | Floats
    #: the states of a batch that cannot be reached and are NaN: (index, joint, reason) of each
    failures: tuple[AssemblyFailure, ...]

    def __init__(self, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike = 0.0,
                 contacts: npt.ArrayLike | None = None, names: StateNames | None = None,
                 branch_changed: bool | npt.NDArray[np.bool_] = False, drawing_error: npt.ArrayLike = 0.0,
                 failures: Sequence[AssemblyFailure] = ()) -> None:
        put = object.__setattr__
        put(self, "q", _kept(q))
        put(self, "u", _kept(u))
        put(self, "t", t if isinstance(t, float) else _time(t))
        put(self, "contacts", None if contacts is None else _kept(contacts))
        put(self, "names", names)
        put(self, "branch_changed", branch_changed)
        put(self, "drawing_error", drawing_error)
        put(self, "failures", tuple(failures))

    # -- parts by name --------------------------------------------------------------------------
    def __getitem__(self, key: str | int | slice) -> Any:
        """Coordinates of a joint, or one by its full name: a number or (...), or (..., values) where a joint has
        several. By numbers the entries of the pair (q, u)."""
        if not isinstance(key, str):
            return (*self,)[key]
        return self._part(self.q, key, "coordinate", self._named.coordinate_places, self._named.speeds)

    def speed(self, key: str) -> Any:
        """Speeds of a joint, or one by its full name, likewise."""
        return self._part(self.u, key, "speed", self._named.speed_places, self._named.coordinates)

    def _part(self, array: Floats, key: str, what: str, places: Mapping[str, int | slice], others: Sequence[str]
              ) -> Any:
        place = places.get(key)
        if place is None:
            other = "state.speed(...) has the speeds" if what == "coordinate" else "state[...] has the coordinates"
            raise StateError(f"state: no joint or {what} called {key!r}"
                             + (f"; {other}" if key in others else hint(key, places)))
        part = array[..., place]
        return part if part.ndim else part.item()

    @property
    def _named(self) -> StateNames:
        if self.names is None:
            raise StateError("state: this one was made of arrays without names; system.state(q, u, t=t) makes one with "
                             "the names of the machine")
        return self.names

    @property
    def elements(self) -> dict[str, Any]:
        """States of force elements (`Mechanism.add_state`) by name, a number or (...) each: they are among the speeds
        ("name.value"), and their integrals over time among the coordinates."""
        names = () if self.names is None else self.names.elements
        return {name: self.speed(f"{name}.value") for name in names}

    # -- batches --------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        """The leading axes; () of one state."""
        times = (*np.shape(self.t), 0) if np.ndim(self.t) else (0,)
        return np.broadcast_shapes(self.q.shape[:-1], self.u.shape[:-1], times[:-1])

    def item(self, *index: int) -> State:
        """One state of a batch.

        >>> import bellcrank as bc
        >>> bc.compile(bc.load("pendulum")).random_state(size=5, seed=1).item(2).shape
        ()
        """
        lead = self.shape
        if len(index) != len(lead):
            raise StateError(f"state: needs {len(lead)} numbers to choose one of a batch {lead}, got {len(index)}")

        def one(array: Any, entries: int) -> Any:
            if array is None or np.ndim(array) <= entries:
                return array
            return np.broadcast_to(array, (*lead, *np.shape(array)[np.ndim(array) - entries:]))[index]

        try:
            time, error, changed = (one(x, 0) for x in (self.t, self.drawing_error, self.branch_changed))
            here = tuple(i % n for i, n in zip(index, lead, strict=True))
            failures = [AssemblyFailure((), f.joint, f.reason) for f in self.failures if f.index == here]
            return State(one(self.q, 1), one(self.u, 1), float(time), one(self.contacts, 1), self.names, bool(changed),
                         float(error), failures)
        except IndexError:
            raise StateError(f"state: the batch {lead} has no state {index}") from None

    # -- others like it -------------------------------------------------------------------------
    def replace(self, q: Mapping[str, Any] | npt.ArrayLike | None = None,
                u: Mapping[str, Any] | npt.ArrayLike | None = None, *, t: npt.ArrayLike | None = None,
                contacts: npt.ArrayLike | None = None) -> State:
        """A state with other values, {joint or "joint.coordinate": value} or whole arrays. What is not given stays.
        Loops are not closed: `System.project` does that. States that are NaN stay so, unless q is an array.

        >>> import bellcrank as bc
        >>> pendulum = bc.compile(bc.load("pendulum"))
        >>> pendulum.state([0.5], [0.0]).replace({"hinge": 0.3}, t=1.0)
        State(t=1.0, q: hinge.angle=0.3, u: hinge.angle=0)
        """
        failures = self.failures if q is None or isinstance(q, Mapping) else ()
        if isinstance(q, Mapping):
            q = _with("q", self.q, q, self._named.coordinate_places)
        if isinstance(u, Mapping):
            u = _with("u", self.u, u, self._named.speed_places)
        return State(self.q if q is None else q, self.u if u is None else u, self.t if t is None else t,
                     self.contacts if contacts is None else contacts, self.names, failures=failures)

    # -- files ----------------------------------------------------------------------------------
    def save(self, file: str | os.PathLike[str]) -> None:
        """Write it, names included, to a file that ends in ``.json`` or ``.npz`` (for large batches). Numbers read back
        as they were; the file is put in place when it is complete.

        >>> import bellcrank as bc, os, tempfile
        >>> state = bc.compile(bc.load("four_bar")).assemble(q={"A": 0.5})
        >>> file = os.path.join(tempfile.mkdtemp(), "start.json")
        >>> state.save(file)
        >>> bc.State.load(file) == state
        True
        """
        names = self.names or StateNames((), ())
        write_state(file, {"coordinates": names.coordinates, "speeds": names.speeds, "q": self.q, "u": self.u,
                           "t": self.t, "contacts": self.contacts, "failures": self.failures})

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Self:
        """The state in a file that `save` wrote."""
        found = read_state(file)
        names = StateNames(found["coordinates"], found["speeds"])
        return cls(found["q"], found["u"], found["t"], found["contacts"],
                   names if names.coordinates or names.speeds else None,
                   failures=[AssemblyFailure(*each) for each in found["failures"]])

    # -- as values ------------------------------------------------------------------------------
    def __iter__(self) -> Iterator[Floats]:
        """Copies of q and u."""
        return iter((self.q.copy(), self.u.copy()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        pairs = ((self.q, other.q), (self.u, other.u), (self.t, other.t), (self.contacts, other.contacts))
        nan = bool(self.failures)  # where there is no state, numbers are not equal to themselves
        return self.names == other.names and self.failures == other.failures and all(
            a is b if a is None or b is None else np.array_equal(a, b, equal_nan=nan) for a, b in pairs)

    def __reduce__(self) -> Any:
        return State, (self.q, self.u, self.t, self.contacts, self.names, self.branch_changed, self.drawing_error,
                       self.failures)

    def __repr__(self) -> str:
        names = self.names or StateNames(tuple(f"q[{i}]" for i in range(self.q.shape[-1])),
                                         tuple(f"u[{i}]" for i in range(self.u.shape[-1])))
        parts = [_written("q", self.q, names.coordinates), _written("u", self.u, names.speeds)]
        batch = [f"batch {self.shape}"] if self.shape else []
        time = [] if np.ndim(self.t) else [f"t={self.t}"]
        return f"State({', '.join([*batch, *time, *parts])})"

    def check_names(self, names: StateNames, what: str) -> None:
        """Refuse a state of another machine: one with other joints, or with these in another order."""
        own = self.names
        if own is None or own is names or own == names:
            return
        for label, mine, wanted in (("coordinate", own.coordinates, names.coordinates),
                                    ("speed", own.speeds, names.speeds)):
            for i, (a, b) in enumerate(zip_longest(mine, wanted)):
                if a != b:
                    raise StateError(f"{what}: the state is of another machine, whose {label} {i} is {a!r} where this "
                                     f"one has {b!r}; give state.q and state.u if its numbers are meant all the same")


def _kept(value: Any) -> Any:
    """An array of doubles that nobody can write to; arrays of other libraries and what is traced as they are."""
    if isinstance(value, (list, tuple, int, float, np.generic)):
        value = np.array(value)
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind in "iubf" and value.dtype != np.float64:
        value = value.astype(np.float64)
    elif value.flags.writeable:
        value = value.copy()
    value.flags.writeable = False
    return value


def _with(what: str, array: Floats, values: Mapping[str, Any], places: Mapping[str, int | slice]) -> Floats:
    """A copy of an array with other values at named places."""
    def entries(key: str) -> list[int]:
        if key not in places:
            raise StateError(f"no joint or entry called {key!r}{hint(key, places)}")
        place = places[key]
        return [place] if isinstance(place, int) else list(range(place.start, place.stop))

    named = by_name(f"state.replace: {what}", values, entries, array.shape[-1])
    lead = np.broadcast_shapes(array.shape[:-1], named.shape[:-1])
    out, chosen = np.array(np.broadcast_to(array, (*lead, array.shape[-1]))), [i for k in values for i in entries(k)]
    out[..., chosen] = named[..., chosen]
    return out


def _time(value: Any) -> Any:
    return float(value) if isinstance(value, (int, np.generic)) or getattr(value, "shape", None) == () else _kept(value)


def _written(label: str, array: Any, names: Sequence[str]) -> str:
    shown = names[:_SHOWN] if array.ndim > 1 else \
        [f"{n}={x:.9g}" if isinstance(x, float) else f"{n}={x}" for n, x in zip(names[:_SHOWN], array, strict=False)]
    more = f", ... ({len(names) - _SHOWN} more)" if len(names) > _SHOWN else ""
    return f"{label}: {', '.join(shown)}{more}"


def coordinates_of(given: Any, names: StateNames, what: str) -> Any:
    """The coordinates of a `State`; anything else as it is."""
    if not isinstance(given, State):
        return given
    given.check_names(names, what)
    return given.q


def parts_of(given: Any, names: StateNames, what: str, wanted: str = "a State or (q, u)") -> tuple[Any, Any, Any]:
    """q, u and the time of a `State`, or of a tuple (q, u) or (q, u, t); the time is `START` where none is given."""
    if isinstance(given, State):
        given.check_names(names, what)
        return given.q, given.u, given.t
    if not isinstance(given, (Mapping, str)):
        try:
            q, u, *rest = given
        except (TypeError, ValueError):
            pass
        else:
            if len(rest) < 2:
                return q, u, rest[0] if rest else START
    raise StateError(f"{what}: needs {wanted}, got {type(given).__name__}")
