"""How the values of a thread are kept: by the compiler alone, or parked by our own choice, and how many where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bellcrank.target.cuda.parking import park

__all__ = ["THREADS", "ParkingWay", "half_way", "keeping", "kept", "parking_way", "stretch_of", "too_much"]

#: threads of a block: few, so that there is much shared memory for what registers do not hold
THREADS = 64
#: statements of a thread from which on shared memory holds what registers do not, by the compiler, and from which on
#: values are parked by our own choice (see `parking`) and long stretches are divided, of kernels and of drivers
SPILLING, LARGE, LARGE_DRIVER = 1000, 4000, 2500
#: how long stretches of large texts are, and of those for two threads a state
STRETCH, HALF_STRETCH = 200, 400
#: ways to park, as measured: blocks of a multiprocessor, doubles of a thread in registers, and in shared memory,
#: and the most that may be parked then; twice as many floats
WAYS = ((4, 100, 108, 178), (2, 100, 220, 220), (6, 65, 72, 1 << 30))
#: where the last of these would have to do and the halves of a machine are alike, a state has two threads: blocks of a
#: multiprocessor, and doubles of a thread in registers, of kernels and of drivers; shared memory takes what fits
HALVED, HALVED_DRIVER = (4, 100), (2, 100)
#: bytes of shared memory of a multiprocessor, and what a block takes of it in any case
SHARED, RESERVED = 233_472, 1024


class ParkingWay(NamedTuple):
    """How values are parked: `WAYS`."""

    blocks: int
    registers: int
    shared: int


def keeping(statements: int, driver: bool) -> str:
    """What becomes of values that registers do not hold: it is left to the compiler ("plain"), they are put into shared
    memory by it ("spilling"), or parked by us ("parked"; there is also "halved": parked, with two threads a state)."""
    if statements <= SPILLING:
        return "plain"
    return "parked" if statements > (LARGE_DRIVER if driver else LARGE) else "spilling"


def stretch_of(how: str) -> int:
    """How long stretches of a text are, if they are divided."""
    return {"parked": STRETCH, "halved": HALF_STRETCH}.get(how, 0)


def too_much(way: ParkingWay | None) -> bool:
    """Whether more is parked than shared memory holds."""
    return way is not None and way.blocks == WAYS[-1][0]


def parking_way(texts: Sequence[list[str]], real: str) -> ParkingWay:
    """The one for statements of these functions: with more in shared memory fewer threads run at a time."""
    many = 1 if real == "double" else 2
    for blocks, registers, shared, most in WAYS:
        way = ParkingWay(blocks, many * registers, many * shared)
        if max(park(lines, real, way.registers, 1 << 30, THREADS).shared for lines in texts) <= many * most:
            break
    return way


def half_way(driver: bool, numbers: Mapping[tuple[float, float], int], real: str) -> ParkingWay:
    """The one for two threads a state, beside the numbers in which these differ."""
    blocks, registers = HALVED_DRIVER if driver else HALVED
    size, many = (8, 1) if real == "double" else (4, 2)
    room = SHARED // blocks - RESERVED - 2 * size * len(numbers)
    return ParkingWay(blocks, many * registers, max(room // (size * THREADS), 0))


def kept(lines: list[str], real: str, way: ParkingWay | None) -> tuple[list[str], int]:
    """Statements with values parked, if they are to be, and the bytes of shared memory that this takes."""
    if way is None:
        return lines, 0
    made = park(lines, real, way.registers, way.shared, THREADS)
    return made.lines, made.shared * THREADS * (8 if real == "double" else 4)
