"""Data for what rolled kernels compute ahead of their sweeps, and behind them, several items of a kind side by side.

Items of a kind are taken in blocks of as many as there are lanes; lanes that are left over repeat the last item. What a
block reads lies in rows behind the table of items: where its numbers begin (lanes side by side), where its values go,
then for every lane where the item's parts of the inputs begin. `runs` begins with a row (kind, first block, end) for
each kind that computes ahead; a last column of the table tells every item where its values are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bellcrank.lowering.link_kinds import RolledProgram

__all__ = ["laned"]

Ints = npt.NDArray[np.int64]

#: columns of the table that are meant here: kind, and start of the numbers
_KIND, _NUMBERS = 1, 2
#: reals to which values are aligned
_ALIGNED = 8


def laned(program: RolledProgram, lanes: int) -> RolledProgram:
    """The program for so many items side by side."""
    codes = [code for code in program.plan.codes if code.ahead is not None]
    rows, width = program.table.shape
    place = np.zeros(rows, dtype=np.int64)
    work = -(-program.work // _ALIGNED) * _ALIGNED
    numbers, blocks, runs = [program.numbers], [], []
    at, done = len(program.numbers), 0
    first = width - len(program.local)  # column of the first input
    for code in codes:
        assert code.ahead is not None
        items = np.flatnonzero(program.table[:, _KIND] == code.kind.index)
        items = items[items > 0]
        n, values = -(-len(items) // lanes), len(code.beside)
        lane = np.minimum(np.arange(n * lanes), len(items) - 1).reshape(n, lanes)
        begin = work + np.arange(n) * values * lanes
        place[items] = (begin[:, None] + np.arange(lanes)).ravel()[:len(items)]
        statics = [code.statics.index(s) for s in code.beside_statics]
        own = program.numbers[program.table[items, _NUMBERS][:, None] + np.array(statics, dtype=np.int64)]
        numbers.append(own[lane].transpose(0, 2, 1).ravel())
        columns = [first + program.local.index(name) for name in code.beside_inputs]
        starts = program.table[items][:, columns][lane].transpose(0, 2, 1).reshape(n, -1)
        blocks.append(np.concatenate([(at + np.arange(n) * len(statics) * lanes)[:, None], begin[:, None], starts], 1))
        runs.append((code.kind.index, done, done + n))
        work, at, done = work + n * values * lanes, at + n * len(statics) * lanes, done + n
    return replace(program, plan=replace(program.plan, lanes=lanes), numbers=np.concatenate(numbers),
                   table=_joined(program.table, place, blocks), runs=np.concatenate([np.array(runs), program.runs]),
                   work=work)


def _joined(table: Ints, place: Ints, blocks: list[Ints]) -> Ints:
    """The table with its last column, and the rows of the blocks behind it, all in a row."""
    widest = max(b.shape[1] for b in blocks)
    padded = [np.pad(b, ((0, 0), (0, widest - b.shape[1]))) for b in blocks]
    return np.concatenate([np.concatenate([table, place[:, None]], axis=1).ravel(), *(p.ravel() for p in padded)])
