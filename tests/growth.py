"""How the work of a call grows with its input, counted in lines of Python: the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["growth", "lines_run"]


def lines_run(function: Callable[[], object]) -> int:
    """The number of lines that are run."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def growth(work: Callable[[int], Callable[[], object]], size: int = 150) -> float:
    """How many times the lines of `work(size)` are run by twice the size: 2 for linear work, 4 for quadratic."""
    lines_run(work(size))  # what is done once only, such as imports
    return lines_run(work(2 * size)) / lines_run(work(size))
