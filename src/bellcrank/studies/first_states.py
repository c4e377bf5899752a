"""The states in which the runs of a block begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError
from bellcrank.loops.tolerances import ROUNDING
from bellcrank.system.assembly_speeds import initial_speeds
from bellcrank.system.loop_errors import open_shares
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.compiled.system import System
    from bellcrank.studies.sample_table import VariedColumn

__all__ = ["Assembled", "FirstStates", "first_states", "shaping_columns", "with_row", "with_rows"]

_OTHER_BRANCH = "the branch of the guess ends on the way: it begins at the nearest position on another branch"


#: a state of its own, or why there is none; and what is to be said of it
Assembled = tuple[State | str, str]
#: beginnings that are kept for later blocks
_REMEMBERED = 4096


@dataclass(frozen=True)
class FirstStates:
    """States of some rows, (rows, nq) and (rows, nu); why rows have none, and what is to be said of others."""

    q: Floats
    u: Floats
    t: float
    failed: dict[int, str]
    remarks: dict[int, str]

    def picked(self, rows: Sequence[int]) -> FirstStates:
        """The states of other rows, or of the same several times."""
        return replace(self, q=self.q[list(rows)], u=self.u[list(rows)])


def with_rows(system: System, columns: tuple[VariedColumn, ...], rows: Floats) -> System:
    """The machine with the parameters of rows (rows, columns) as a batch."""
    values = {c.key: rows[:, k].copy() for k, c in enumerate(columns) if c.kind == "p"}
    return system.with_parameters(**values) if values else system


def with_row(system: System, columns: tuple[VariedColumn, ...], row: Floats) -> System:
    """The machine with the parameters of one row."""
    values = {c.key: float(row[k]) for k, c in enumerate(columns) if c.kind == "p"}
    return system.with_parameters(**values) if values else system


def first_states(first: System, columns: tuple[VariedColumn, ...], rows: Floats, given: Mapping[str, Any],
                 shaping: tuple[int, ...], known: dict[bytes, Assembled]) -> FirstStates:
    """A state for every row: what `assemble` makes of `given` (q, u, guess, weights, t) and of what the row says.
    `first` is the machine with the parameters of the first row, `shaping` are the columns of those that beginnings
    depend on (see `shaping_columns`).

    Every row is put together by itself, so that it does not depend on the others; rows that say the same of the
    beginning and of the loops share it, and what is `known` of earlier ones. Cost: one call of `assemble` per different
    beginning.
    """
    count, system = len(rows), first
    found = FirstStates(np.zeros((count, system.nq)), np.zeros((count, system.nu)), float(given.get("t", 0.0)), {}, {})
    starting = [k for k, c in enumerate(columns) if c.kind != "p"]
    for i, row in enumerate(rows):
        key = row[[*starting, *shaping]].tobytes()
        if key not in known:
            own = first.with_parameters(**{columns[k].key: float(row[k]) for k in shaping}) if shaping else first
            if len(known) >= _REMEMBERED:
                known.clear()
            made = known[key] = _assembled(own, columns, row, given)
        else:
            made = known[key]
        _put(found, i, *made)
    if system.model.tree.looped and any(c.kind == "p" for c in columns):
        for i in _open(with_rows(system, columns, rows), found):
            found.remarks.pop(i, None)
            _put(found, i, *_assembled(with_row(system, columns, rows[i]), columns, rows[i], given))
    return found


def shaping_columns(first: System, columns: tuple[VariedColumn, ...], state: State, rows: Floats) -> tuple[int, ...]:
    """Columns of parameters on which beginnings depend: with other values of rows, a closed state is open, or states of
    elements begin elsewhere."""
    found = []
    for k, column in enumerate(columns):
        if column.kind == "p":
            other = first.with_parameters(**{column.key: rows[:, k].copy()})
            q = np.broadcast_to(state.q, (len(rows), first.nq))
            gap = np.abs(other.plans.closer.residual(q, state.t)).max(initial=0.0) if first.model.tree.looped else 0.0
            if not gap <= ROUNDING or initial_speeds(other.plans).ndim > 1:
                found.append(k)
    return tuple(found)


def _put(found: FirstStates, i: int, state: State | str, remark: str) -> None:
    if isinstance(state, str):
        found.failed[i] = state
        return
    found.q[i], found.u[i] = state.q, state.u
    if remark:
        found.remarks[i] = remark


def _assembled(system: System, columns: tuple[VariedColumn, ...], row: Floats, given: Mapping[str, Any]) -> Assembled:
    """The state of one row, or why there is none; and what is to be said of it."""
    held: dict[str, Any] = {}
    for kind in ("q", "u"):
        own = {c.key: float(row[k]) for k, c in enumerate(columns) if c.kind == kind}
        held[kind] = {**(given.get(kind) or {}), **own} if own else given.get(kind)
    rest = {name: given[name] for name in ("guess", "weights", "t") if name in given}
    try:
        state = system.assemble(**held, **rest)
    except (BellcrankError, ArithmeticError, np.linalg.LinAlgError) as error:
        return str(error), ""
    return state, _OTHER_BRANCH if state.branch_changed else ""


def _open(system: System, found: FirstStates) -> list[int]:
    """Rows whose loops are open with all of their own parameters."""
    gap, rate = open_shares(system.plans, found.q, found.u, found.t)
    bad = ~((gap <= ROUNDING) & (rate <= ROUNDING))
    bad[list(found.failed)] = bad[0] = False  # without a state; put together with all of its own
    return np.flatnonzero(bad).tolist()
