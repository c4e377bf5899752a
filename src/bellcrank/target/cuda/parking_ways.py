"""How the values of a thread are kept: by the compiler alone, or parked by our own choice, and how many where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bellcrank.target.cuda.parking import park

__all__ = ["SHARED", "THREADS", "ParkingWay", "half_way", "keeping", "kept", "parking_way", "stretch_of", "too_much"]

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
#: those of drivers whose buffers are in the memory of the device: what they wait for, more threads do not make shorter
FAR_WAYS = (WAYS[0], (*WAYS[1][:3], 1 << 30))
#: where the last of `WAYS` would have to do and the halves of a machine are alike, a state has two threads: blocks of a
#: multiprocessor, and doubles of a thread in registers, of kernels and of drivers; shared memory takes what fits
HALVED, HALVED_DRIVER = (4, 100), (2, 100)
#: bytes of shared memory of a multiprocessor for which ways were measured, and what a block takes of it in any case
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


def parking_way(texts: Sequence[list[str]], real: str, room: int, far: bool = False) -> ParkingWay:
    """The one for statements of these functions: with more in shared memory fewer threads run at a time. On a device
    whose multiprocessors have less `room` there [bytes] less is parked in it. `far`: see `FAR_WAYS`."""
    many = 1 if real == "double" else 2
    for blocks, registers, shared, most in FAR_WAYS if far else WAYS:
        way = ParkingWay(blocks, many * registers, min(many * shared, _places(room // blocks, real)))
        if max(park(lines, real, way.registers, 1 << 30, THREADS).shared for lines in texts) <= many * most:
            break
    return way


def half_way(driver: bool, numbers: Mapping[tuple[float, float], int], real: str, room: int) -> ParkingWay:
    """The one for two threads a state, beside the numbers in which these differ."""
    blocks, registers = HALVED_DRIVER if driver else HALVED
    size, many = (8, 1) if real == "double" else (4, 2)
    return ParkingWay(blocks, many * registers, _places(room // blocks - 2 * size * len(numbers), real))


def _places(room: int, real: str) -> int:
    """Values of every thread of a block that so many bytes of shared memory hold."""
    return max((room - RESERVED) // ((8 if real == "double" else 4) * THREADS), 0)


def kept(lines: list[str], real: str, way: ParkingWay | None) -> tuple[list[str], int]:
    """Statements with values parked, if they are to be, and the bytes of shared memory that this takes."""
    if way is None:
        return lines, 0
    made = park(lines, real, way.registers, way.shared, THREADS)
    return made.lines, made.shared * THREADS * (8 if real == "double" else 4)
