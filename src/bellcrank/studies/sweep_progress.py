"""What a sweep shows on the terminal: runs done, rate, time left, failures."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from bellcrank.errors import ModelError

__all__ = ["SweepProgress"]


class SweepProgress:
    """A line on stderr that shows how far a sweep is; or a function that is told."""

    def __init__(self, wanted: bool | Callable[[int, int], object] | None, name: str, total: int, done: int) -> None:
        if wanted is not None and not isinstance(wanted, bool) and not callable(wanted):
            raise ModelError(f"sweep: progress must be True, False or a function of (runs done, runs), got {wanted!r}")
        self._tell = wanted if callable(wanted) else None
        self._total, self._begun, self._before, self.done, self.failed = total, time.monotonic(), done, done, 0
        self._bar: Any = None
        if wanted is True or (wanted is None and sys.stderr.isatty()):
            self._bar = _bar()
            self._task = self._bar.add_task(f"sweep {name}", total=total, completed=done, rate="")

    @property
    def rate(self) -> float:
        """Runs per second so far."""
        return (self.done - self._before) / max(time.monotonic() - self._begun, 1e-9)

    def begin(self) -> None:
        """Show it."""
        if self._bar is not None:
            self._bar.start()

    def add(self, runs: int, failed: int) -> None:
        """Some runs more are done."""
        self.done, self.failed = self.done + runs, self.failed + failed
        if self._tell is not None:
            self._tell(self.done, self._total)
        if self._bar is not None:
            text = f"{self.rate:.3g} runs/s" + (f", {self.failed} failed" if self.failed else "")
            self._bar.update(self._task, completed=self.done, rate=text)

    def end(self) -> None:
        """The last line stays."""
        if self._bar is not None:
            self._bar.stop()


def _bar() -> Any:
    from rich import progress
    from rich.console import Console

    return progress.Progress(progress.TextColumn("{task.description}", markup=False), progress.BarColumn(),
                             progress.MofNCompleteColumn(), progress.TextColumn("{task.fields[rate]}", markup=False),
                             progress.TimeElapsedColumn(), progress.TimeRemainingColumn(),
                             console=Console(stderr=True, markup=False))
