"""Controllers: joint forces and wrenches as functions of time and state.

A function may be plain Python, called at a sample rate, or *traced*: run once on traced scalars and compiled into the
kernel, where it is evaluated in every stage of every step (or at a sample rate, and held).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arguments import checked_methods
from bellcrank.arrays import Floats, by_name, flat
from bellcrank.errors import BellcrankError, ModelError, StateError, hint
from bellcrank.scalar.borrowed import traced_with_borrowed
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Number, Scalar
from bellcrank.topology.tree import wrench_order

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["Drive", "Named", "Sampled", "Traced", "drive_of", "force_rows", "named", "number_now", "numbers",
           "parameter_leaf", "wrench_rows"]


class Named(Sequence[Number]):
    """Coordinates or speeds of a machine, by number or by joint: ``q[2]``, ``q["elbow"]``."""

    def __init__(self, values: Sequence[Number], places: Mapping[str, range]) -> None:
        self._values, self._places = list(values), places

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, key: Any) -> Any:
        """An entry; for a joint its value, or the list of its values if it has several."""
        if not isinstance(key, str):
            return self._values[key]
        if key not in self._places:
            raise ModelError(f"no joint {key!r}; there are {', '.join(self._places)}{hint(key, self._places)}")
        values = [self._values[i] for i in self._places[key]]
        return values[0] if len(values) == 1 else values


@checked_methods
@dataclass(frozen=True)
class Sampled:
    """A Python function ``f(t, q, u)`` of time and state (arrays), called every `period` seconds and held in between.

    It returns joint forces: an array (nu,) or a mapping {joint: force or forces}. As `wrenches` it returns what
    `forward_dynamics` takes as wrenches.

    >>> Sampled(lambda t, q, u: -2.0 * u, period=0.01).period
    0.01
    """

    function: Callable[[float, Floats, Floats], Any]
    period: float | None = None

    def __post_init__(self) -> None:
        _check(self.function, self.period)


@checked_methods
@dataclass(frozen=True)
class Traced:
    """A function ``f(t, q, u)`` written with `bellcrank.math`, compiled into the kernel.

    It receives traced scalars: `q` and `u` can be indexed by number or by joint name. It returns joint forces, a
    sequence of nu numbers or a mapping {joint: force or forces}; as `wrenches` a mapping {body: six numbers}. It is
    evaluated in every stage of every step, or every `period` seconds and held. Parameters of the mechanism, such as
    gains, may be used, and have the values of the system that runs. Branches on values are written with
    `bellcrank.math.select_less`.

    >>> Traced(lambda t, q, u: {"A": 5.0 - 2.0 * u["A"]}).period is None
    True
    """

    function: Callable[[Number, Named, Named], Any]
    period: float | None = None

    def __post_init__(self) -> None:
        _check(self.function, self.period)


def _check(function: Any, period: float | None) -> None:
    if not callable(function):
        raise ModelError(f"a controller must be a function of (t, q, u), got {function!r}")
    if period is not None and not 0.0 < period < float("inf"):
        raise ModelError(f"a controller's period must be a positive time, got {period!r}")


def numbers(system: Machine, t: Any, q: Floats, u: Floats) -> Callable[[Any], Number]:
    """What the leaves of traced functions stand for, at states (..., nq) and (..., nu)."""
    def leaf(key: Any) -> Number:
        name, i = key
        if name != "parameters":
            return {"q": q, "u": u}[name][..., i] if name in ("q", "u") else t
        value = np.asarray(list(system.model.values.values())[i], dtype=float)
        return value.ravel() if value.ndim else float(value)

    return leaf


def joint_places(system: Machine, speeds: bool) -> dict[str, range]:
    """Where each joint's entries are in q or u."""
    out, at = {}, 0
    for r in system.model.configuration.records:
        n = r.joint.nu if speeds else r.joint.nq
        out[r.name] = range(at, at + n)
        at += n
    return out


def named(system: Machine, what: str, values: Sequence[Number]) -> Named:
    """Coordinates ("q") or speeds ("u") by number and by name."""
    return Named(values, joint_places(system, what == "u"))


def parameter_leaf(system: Machine, graph: Graph, what: str) -> Callable[[Any], Number]:
    """Leaves of a traced function as inputs; parameters of the mechanism go by their names."""
    known = list(system.model.values)

    def leaf(key: Any) -> Number:
        if key[0] != "parameter":
            return graph.leaf(key)
        if key[1] not in known:
            raise ModelError(f"{what}: no parameter {key[1]!r} in {system.model.name!r}; it has "
                             f"{', '.join(known) or 'none'}{hint(key[1], known)}")
        return graph.leaf(("parameters", known.index(key[1])))

    return leaf


def number_now(system: Machine, value: Number, what: str) -> float:
    """A number, or what an expression of parameters is in a machine of one state."""
    if not isinstance(value, Scalar):
        return float(value)
    graph, values = Graph(), [float(x) for x in system.model.values.values()]
    inputs = evaluate([value], parameter_leaf(system, graph, what))
    return float(evaluate(inputs, lambda key: values[key[1]])[0])


@dataclass(frozen=True)
class Drive:
    """A controller with what it acts on: "tau" or "wrench"."""

    given: Sampled | Traced
    target: str

    @property
    def name(self) -> str:
        """The argument of `simulate` that it is."""
        return "control" if self.target == "tau" else "wrenches"

    @property
    def traced(self) -> bool:
        return isinstance(self.given, Traced)

    @property
    def period(self) -> float | None:
        return self.given.period

    def entries(self, system: Machine, answer: Any) -> list[Any]:
        """The answer as a flat list, in the order of the buffer."""
        if self.target == "wrench":
            return self._wrenches(system, answer)
        if isinstance(answer, Mapping):
            out: list[Any] = [0.0] * system.nu
            for joint, value in answer.items():
                try:
                    places = system.model.configuration.speed_entries(joint)
                except BellcrankError as error:
                    raise ModelError(f"control: {error}") from None
                values = list(value) if np.ndim(value) or isinstance(value, (list, tuple)) else [value]
                if len(values) != len(places):
                    raise ModelError(f"control: joint {joint!r} takes {len(places)} forces, got {len(values)}")
                for i, x in zip(places, values, strict=True):
                    out[i] = x
            return out
        values = list(answer)
        if len(values) != system.nu:
            raise ModelError(f"control: it must return {system.nu} forces or a mapping {{joint: force}}, got "
                             f"{len(values)}")
        return values

    def _wrenches(self, system: Machine, answer: Any) -> list[Any]:
        if not isinstance(answer, Mapping):
            raise ModelError("wrenches: a traced function must return a mapping {body: six numbers}")
        rows: list[list[Any]] = [[0.0] * 6 for _ in system.model.tree.body_names[1:]]
        for body, six in answer.items():
            if body not in system.body_names:
                raise ModelError(f"wrenches: no body {body!r} in {system.model.name!r}{hint(body, system.body_names)}")
            values = list(six)
            if len(values) != 6:
                raise ModelError(f"wrenches: body {body!r} takes six numbers [moment; force], got {len(values)}")
            rows[system.body_names.index(body)] = values
        return [x for b in wrench_order(system.model.tree) for x in rows[b]]

    def graph(self, system: Machine) -> list[Number]:
        """The traced result; leaves are (input, index)."""
        graph = Graph()
        return traced_with_borrowed(lambda g: self._traced(system, g), graph, parameter_leaf(system, graph, self.name),
                                    f"{self.name}: the function")[0]

    def _traced(self, system: Machine, graph: Graph) -> list[Number]:
        """The function's answer for inputs that are leaves of a graph."""
        assert isinstance(self.given, Traced)
        q = named(system, "q", [graph.leaf(("q", i)) for i in range(system.nq)])
        u = named(system, "u", [graph.leaf(("u", i)) for i in range(system.nu)])
        try:
            entries = self.entries(system, self.given.function(graph.leaf(("t", 0)), q, u))
            return [x if type(x) is Scalar else float(x) for x in entries]
        except BellcrankError:
            raise
        except Exception as error:
            raise ModelError(f"{self.name}: the function cannot be traced ({error}); write it with bellcrank.math and "
                             "select_less, or use Sampled") from error

    def trouble(self, system: Machine, q: Floats, u: Floats, t: float) -> str:
        """What a traced function says of one state that it does not cover, such as a table that ends there."""
        if not isinstance(self.given, Traced):
            return ""
        try:
            self.given.function(t, *(named(system, what, [float(x) for x in values])
                                     for what, values in (("q", q), ("u", u))))
        except StateError as error:
            return f"{self.name}: {error}"
        except Exception:  # it is something else
            return ""
        return ""

    def along(self, system: Machine, times: Floats, q: Floats, u: Floats) -> Floats:
        """The traced function's answers at states (times, ..., nq) and (times, ..., nu): (times, ..., entries)."""
        entries = evaluate(self.graph(system), numbers(system, times.reshape(-1, *(1,) * (q.ndim - 2)), q, u))
        return np.stack([np.broadcast_to(np.asarray(x, dtype=float), u.shape[:-1]) for x in entries], axis=-1)

    def inputs(self, system: Machine) -> dict[str, int]:
        """What the traced function reads, with lengths."""
        inputs = {"q": system.nq, "u": system.nu, "t": 1, "parameters": len(system.model.values)}
        if not system.model.values:
            del inputs["parameters"]
        return inputs

    def _refuse_parameters(self, answer: Any) -> None:
        """Parameters have no values in a Python function."""
        for part in answer.values() if isinstance(answer, Mapping) else [answer]:
            if any(isinstance(x, Scalar) for x in (part if isinstance(part, (list, tuple)) else [part])):
                raise ModelError(f"{self.name}: a Python function cannot use parameters as they are; write it with "
                                 "bellcrank.math and Traced, or read system.parameters")

    def call(self, system: Machine, t: float, q: Floats, u: Floats) -> Floats:
        """The Python function's answer for one state (nq,) or a batch (count, nq); shape (count or 1, entries)."""
        answer = self.given.function(t, q, u)  # type: ignore[arg-type]
        self._refuse_parameters(answer)
        if self.target == "wrench":
            rows = wrench_rows(system, answer, len(np.atleast_2d(q)))
            assert rows is not None
            return rows
        if isinstance(answer, Mapping):
            values = by_name("control", answer, system.model.configuration.speed_entries, system.nu)
        else:
            values = np.asarray(answer, dtype=float)
            if values.shape[-1:] != (system.nu,):
                raise StateError(f"control at t = {t:.6g}: it must return {system.nu} forces, got shape {values.shape}")
        if not np.isfinite(values).all():
            raise StateError(f"control at t = {t:.6g}: the forces are not finite")
        rows, count = values.reshape(-1, system.nu), int(np.prod(q.shape[:-1], dtype=np.int64))
        if len(rows) not in (1, count):
            raise StateError(f"control at t = {t:.6g}: it returned forces of {len(rows)} states, but there are {count}")
        return rows


def wrench_rows(system: Machine, wrenches: Any, count: int) -> Floats | None:
    """External wrenches (count or 1, 6 * bodies) in the order of the kernels."""
    if wrenches is None:
        return None
    ordered = system.model.wrench_rows(wrenches)[..., wrench_order(system.model.tree), :]
    return _rows("wrenches", ordered.reshape(-1, 6 * ordered.shape[-2]), count)


def on_bodies(system: Machine, rows: Floats) -> Floats:
    """Rows (..., 6 * bodies) in the order of the kernels as (..., bodies, 6) in that of the machine, with carriers."""
    table = rows.reshape(*rows.shape[:-1], -1, 6)
    out = np.empty_like(table)
    out[..., wrench_order(system.model.tree), :] = table
    return out


def force_rows(system: Machine, tau: Any, count: int) -> Floats:
    """Joint forces (count or 1, nu)."""
    rows = flat("tau", np.zeros(system.nu) if tau is None else system.model.configuration.forces(tau), system.nu,
                "one for every speed")
    return _rows("tau", rows.reshape(-1, system.nu), count)


def _rows(name: str, rows: Floats, count: int) -> Floats:
    if len(rows) not in (1, count):
        raise StateError(f"simulate: {name} is given for {len(rows)} states, but there are {count}")
    if not np.isfinite(rows).all():
        raise StateError(f"simulate: {name} must be finite")
    return np.ascontiguousarray(rows)


def drive_of(given: Any, target: str) -> Drive | None:
    """A controller from what the user gave."""
    if given is None:
        return None
    if isinstance(given, (Sampled, Traced)):
        return Drive(given, target)
    if callable(given):
        return Drive(Sampled(given), target)
    raise ModelError(f"simulate: {'control' if target == 'tau' else 'wrenches'} must be a function of (t, q, u), "
                     f"Sampled or Traced, got {type(given).__name__}")
