"""Values that registers do not hold, kept in memory of the thread by our own choice.

A compiler that runs out of registers spills what it has to after it has ordered the operations; of a large machine a
dozen kilobytes per state then go through the memory of the device. Here the order is that of the program, every value
is computed once, and the next use of each is known: when too many are alive, the one that is not needed for longest is
parked (L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", 1966), and comes back when it
is used. Inputs are read again instead. What is used often for the time it is parked lies in shared memory, which is
quick and small, the rest in local memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

__all__ = ["Parked", "park"]

_VALUE = re.compile(r"\b[vsc]\d+\b")
_STAY = re.compile(r"\bpark\((\w+)\)")
_READ = re.compile(r"\s*const \w+ (v\d+) = (\w+\[[^\]]*\]);")
_NEVER = 1 << 60


class Parked(NamedTuple):
    """Statements that keep few values in registers."""

    lines: list[str]
    shared: int  #: slots in shared memory


def park(lines: Sequence[str], real: str, registers: int, shared: int, threads: int) -> Parked:
    """The statements of a straight text with at most so many values alive, the others in at most so many slots in the
    shared memory of each of the `threads` of a block, or in local memory."""
    uses = _uses(lines, real)
    if uses is None:
        return Parked(list(lines), 0)
    out = _Registers(uses, registers, real, _inputs(lines, uses)).run(lines)
    stays = _stays(out)
    if not stays:
        return Parked(list(lines), 0)
    near = _chosen(stays, shared)
    places = _slots((s for s in stays if s.name in near), lambda slot: f"parked[{slot * threads}]")
    places |= _slots((s for s in stays if s.name not in near), lambda slot: f"further[{slot}]")
    within, beyond = (1 + max((int(p.partition("[")[2][:-1]) for p in places.values() if p.startswith(kind)),
                              default=-1) for kind in ("parked", "further"))
    head = [f"    extern __shared__ {real} shared_of_block[];",
            f"    volatile {real} *const parked = shared_of_block + threadIdx.x;"]
    head += [f"    volatile {real} further[{beyond}];"] if beyond else []
    return Parked([*head, *(_STAY.sub(lambda found: places[found[1]], line) for line in out)], -(-within // threads))


def _uses(lines: Sequence[str], real: str) -> dict[str, list[int]] | None:
    """The lines in which each real stands, its definition first; None if the text has branches."""
    uses: dict[str, list[int]] = {}
    reals: set[str] = set()
    for at, line in enumerate(lines):
        if "{" in line or "}" in line:
            return None
        if line.lstrip().startswith((f"const {real} ", f"{real} ")):
            reals.update(_VALUE.findall(line.partition("=")[0]))
        for name in dict.fromkeys(_VALUE.findall(line)):
            if name in reals:
                uses.setdefault(name, []).append(at)
    return uses


def _inputs(lines: Sequence[str], uses: dict[str, list[int]]) -> dict[str, str]:
    """Values that are read from memory, and where, for all whose uses come before anything is written."""
    written = next((at for at, line in enumerate(lines) if line.lstrip().startswith("out[")), len(lines))
    found = (_READ.match(line) for line in lines)
    return {m[1]: m[2] for m in found if m is not None and m[1] in uses and uses[m[1]][-1] <= written
            and not _VALUE.search(m[2])}


class _Registers:
    """The text with values parked: ``park(v7)`` is where a value is kept."""

    def __init__(self, uses: dict[str, list[int]], count: int, real: str, inputs: dict[str, str]) -> None:
        self.uses, self.count, self.real, self.inputs = uses, count, real, inputs
        self.next = dict.fromkeys(uses, 0)  #: places in `uses` that are behind
        self.held: dict[str, str] = {}  #: names under which values are in registers
        self.parked: set[str] = set()
        self.copies = 0
        self.out: list[str] = []

    def run(self, lines: Sequence[str]) -> list[str]:
        """Line by line."""
        for at, line in enumerate(lines):
            names = [n for n in dict.fromkeys(_VALUE.findall(line)) if n in self.uses]
            indent = line[:len(line) - len(line.lstrip())]
            for name in names:
                if name not in self.held:
                    self._make_room(indent, at)
                    self._fetch(name, self.uses[name][0] < at, indent)
            self.out.append(_VALUE.sub(lambda found: self.held.get(found[0], found[0]), line))
            for name in names:
                self.next[name] += 1
                if self._next(name) == _NEVER:
                    del self.held[name]
        return self.out

    def _next(self, name: str) -> int:
        after = self.next[name]
        return self.uses[name][after] if after < len(self.uses[name]) else _NEVER

    def _fetch(self, name: str, again: bool, indent: str) -> None:
        """Have a value in a register."""
        self.held[name] = name
        if again:
            self.copies += 1
            self.held[name] = f"{name}_{self.copies}"
            self.out.append(f"{indent}const {self.real} {self.held[name]} = {self.inputs.get(name, f'park({name})')};")

    def _make_room(self, indent: str, now: int) -> None:
        """Park what is not needed for longest, if there are too many."""
        if len(self.held) < self.count:
            return
        last = max(self.held, key=self._next)
        if self._next(last) <= now:
            return
        if last not in self.parked and last not in self.inputs:
            self.parked.add(last)
            self.out.append(f"{indent}park({last}) = {self.held[last]};")
        del self.held[last]


class _Stay(NamedTuple):
    """A value in memory, from when it is parked to when it is last asked for."""

    name: str
    first: int
    last: int
    accesses: int


def _stays(lines: Sequence[str]) -> list[_Stay]:
    seen: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        for found in _STAY.finditer(line):
            seen.setdefault(found[1], []).append(at)
    return [_Stay(name, at[0], at[-1], len(at)) for name, at in seen.items()]


def _chosen(stays: Sequence[_Stay], room: int) -> set[str]:
    """Those that are asked for most often for their time, as many as fit."""
    end = 1 + max(s.last for s in stays)
    taken, chosen = [0] * end, set()
    for stay in sorted(stays, key=lambda s: (s.accesses / (s.last - s.first), s.name), reverse=True):
        if max(taken[stay.first:stay.last + 1]) < room:
            chosen.add(stay.name)
            for at in range(stay.first, stay.last + 1):
                taken[at] += 1
    return chosen


def _slots(stays: Iterable[_Stay], place: Callable[[int], str]) -> dict[str, str]:
    """A place for each; those that do not meet share them."""
    out: dict[str, str] = {}
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    count = 0
    for stay in sorted(stays, key=lambda s: s.first):
        while busy and busy[0][0] < stay.first:
            heappush(free, heappop(busy)[1])
        if not free:
            heappush(free, count)
            count += 1
        slot = heappop(free)
        out[stay.name] = place(slot)
        heappush(busy, (stay.last, slot))
    return out
