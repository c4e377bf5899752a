"""How kernels are called: on the states of a batch, or on one block of states; and the checks for finite numbers.

A kernel's body reads its inputs from memory and writes its results; it returns a sum that is NaN where something was
not finite (`finite_sum`), or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bellcrank.target.array_loops import sum_of
from bellcrank.target.program import Builder, Int, Memory, Real

__all__ = ["Body", "LaneStates", "copying", "finite_array", "finite_sum", "one_block", "over_states"]


@dataclass(frozen=True)
class LaneStates:
    """The states that a body computes, one in every lane."""

    inputs: Mapping[str, Memory]
    target: Callable[[Int | int], Memory]  #: where results begin, of so many entries a state
    checked: bool  #: whether anybody asks if numbers are finite
    spread: bool  #: whether each lane's results go to a place of their own


Body = Callable[[LaneStates], Real | None]


def over_states(b: Builder, names: Sequence[str], body: Body) -> None:
    """LaneStates `begin` to `end` of a batch, `width` at a time; returns non-zero if something was not finite.

    State i of input k starts at ``i * strides[k]``, results are packed. Lanes beyond the end repeat the last state.
    """
    strides = b.integers_at("strides")
    steps = [strides[i] for i in range(len(names))]
    begin, end = b.count("begin"), b.count("end")
    last = end - 1

    def block(state: Int, bad: Int) -> Int:
        ahead = [state + lane for lane in range(1, b.width)]
        lanes = [state, *(i.min(last) for i in ahead)]
        inputs = {name: b.rows(name, [lane * step for lane in lanes]) for name, step in zip(names, steps, strict=True)}
        check = body(LaneStates(inputs, lambda size: b.rows("out", [lane * size for lane in lanes]), True, b.width > 1))
        assert check is not None
        return bad | check.is_nan().any().integer()

    b.finish(b.fold(end, Int(b, "0"), block, begin, b.width))


def one_block(b: Builder, names: Sequence[str], body: Body, checked: bool = False) -> None:
    """One block of states, whose lanes lie side by side; `checked`: returns 1 if something was not finite, else 0."""
    inputs, out = {name: b.memory(name) for name in names}, b.memory("out")
    check = body(LaneStates(inputs, lambda size: out, checked, False))
    b.finish(check.is_nan().any().integer() if checked and check is not None else 0)


def finite_sum(b: Builder, values: Iterable[Real], start: Real) -> Real:
    """0 if all values are finite, else NaN: the sum of 0 * value in four chains."""
    chains = [start, *(b.constant(0.0) for _ in range(3))]
    for i, value in enumerate(values):
        chains[i % 4] = chains[i % 4] + value * 0.0
    return (chains[0] + chains[1]) + (chains[2] + chains[3])


def finite_array(b: Builder, memory: Memory, size: Int, start: Real) -> Real:
    """`start` plus 0 * entry for all entries of an array: NaN if one is not finite."""
    return start + sum_of(b, size, lambda i: memory[i] * 0.0)


def copying(b: Builder) -> None:
    """A block that copies every n-th value of a buffer:
    ``out[i] = from[i * strides[1] + strides[2]]`` for i below ``strides[0]``."""

    def body(states: object) -> Real | None:
        strides, source, out = b.integers_at("strides"), b.memory("from"), b.memory("out")
        count, stride, offset = (strides[i] for i in range(3))
        with b.loop(count) as i:
            out[i] = source[i * stride + offset]
        return None

    one_block(b, [], body)
