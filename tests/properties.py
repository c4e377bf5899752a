"""Property tests that say how many of their examples reach the comparison.

A property test passes if no example fails, so one whose examples are all thrown away passes too. Every test made with
`hypothesis.given` is therefore counted: examples begun, and those that came to the end of the test rather than being
rejected or left (`leave`). The share must not fall below what the test states::

    @pytest.mark.reaches(0.7)
    @given(...)
    def test_...

Without the mark all examples must come to the end. A test never returns early: `test_properties.py` looks for that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import pytest

MARK = "reaches(share): of a property test, the least share of examples that reach the end [0..1]; all without it"


class LeftError(Exception):
    """An example has nothing to compare."""


def leave() -> NoReturn:
    """End an example that has nothing to compare; unlike `hypothesis.reject`, no other is made in its place."""
    raise LeftError


@dataclass
class Count:
    """How many examples of one test began, and how many reached its end."""

    begun: int = 0
    reached: int = 0

    @property
    def share(self) -> float:
        return self.reached / self.begun if self.begun else 0.0


def counted(test: Callable[..., None], count: Count) -> Callable[..., None]:
    """`test` with its examples counted."""

    @functools.wraps(test)
    def example(*args: Any, **more: Any) -> None:
        count.begun += 1
        try:
            test(*args, **more)
        except LeftError:
            return
        count.reached += 1

    return example


class Counting:
    """The plugin that counts; with ``--shares`` it prints what it found."""

    def __init__(self, told: bool) -> None:
        self.told = told
        self.lines: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Iterator[None]:
        test = pyfuncitem.obj
        if not getattr(test, "is_hypothesis_test", False):
            return (yield)
        count, inner = Count(), test.hypothesis.inner_test
        test.hypothesis.inner_test = counted(inner, count)
        try:
            result = yield
        finally:
            test.hypothesis.inner_test = inner
        self._judge(pyfuncitem, count)
        return result

    def _judge(self, item: pytest.Function, count: Count) -> None:
        mark = item.get_closest_marker("reaches")
        least = float(mark.args[0]) if mark is not None else 1.0
        self.lines.append(f"{count.share:.3f} of {count.begun:4d} (stated {least:.2f})  {item.nodeid}")
        if count.share < least or not count.reached:
            pytest.fail(f"only {count.reached} of {count.begun} examples reached their comparison, {count.share:.3f}: "
                        f"the test states {least}", pytrace=False)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.told:
            terminalreporter.section("examples that reach their comparison")
            for line in sorted(self.lines):
                terminalreporter.write_line(line)
