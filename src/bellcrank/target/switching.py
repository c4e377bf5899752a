"""Several variants of one computation, of which any may fail: the caller says which to try first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellcrank.target.calling import finite_array
from bellcrank.target.program import Builder, Int, Integers, Memory, Real

__all__ = ["BAD_INPUT", "GOOD", "NO_RESULT", "switching"]

#: what `switching` answers: all is well; an input is not finite; no variant gives finite numbers
GOOD, BAD_INPUT, NO_RESULT = 0, 1, 2


def switching(b: Builder, inputs: Sequence[tuple[Memory, int]], numbers: Sequence[Real], variants: Sequence[str],
              result: tuple[Memory, int], chosen: Integers | None, then: Callable[[], None] = lambda: None) -> None:
    """Call variants (lists of calls, by name) until one leaves a finite `result`; do what comes `then`.

    The first to be tried is number ``chosen[0]`` (0 if there is no such one), the others follow in a circle; the one
    that served is written back. Nothing is called if an input (memory and length, or number) is not finite.
    """
    check = b.constant(0.0)
    for memory, size in inputs:
        check = finite_array(b, memory, Int(b, str(size)), check)
    for number in numbers:
        check = check + number * 0.0
    status = b.counter(BAD_INPUT)
    with b.when(~check.is_nan().any()):
        status.set(NO_RESULT)
        trial, tries = b.counter(0 if chosen is None else chosen[0]), b.counter(0)
        with b.when((trial.value < 0) | (trial.value >= len(variants))):
            trial.set(0)
        with b.forever() as leave:
            leave(tries.value >= len(variants))
            b.switch(trial.value, [(i, _calls(b, name)) for i, name in enumerate(variants)])
            bad = finite_array(b, result[0], Int(b, str(result[1])), b.constant(0.0)).is_nan().any()
            with b.when(~bad):
                status.set(GOOD)
                if chosen is not None:
                    chosen[0] = trial.value
                then()
            leave(~bad)
            trial.set((trial.value + 1) % len(variants))
            tries.set(tries.value + 1)
    b.finish(status.value)


def _calls(b: Builder, name: str) -> Callable[[], None]:
    return lambda: b.call_all(name, b.count(f"n_{name}"))
