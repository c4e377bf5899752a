"""What the command line prints: tables for people, one JSON object for machines, a bar for those who wait."""

from __future__ import annotations

import json
import math
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from typer.core import TyperGroup

from bellcrank.errors import BellcrankError, FileError

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["FAILED", "FILE", "FINE", "INTERRUPTED", "Application", "Bar", "Output", "UsageError", "as_json", "complain",
           "examples"]

#: columns where the output is no terminal: nothing is cut off in pipes and logs
_WIDE = 400
#: what takes less [s] shows no bar
_PATIENCE = 1.0


class UsageError(Exception):
    """The command was called in a way that cannot be meant: exit code 2."""


@dataclass(frozen=True)
class Output:
    """How a command was asked to speak."""

    json: bool = False
    quiet: bool = False
    progress: bool = True

    def text(self, text: str) -> None:
        """Text for people."""
        if not self.json and not self.quiet:
            print(text)

    def table(self, rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> None:
        """A table for people; without a head, the first column says what the second is.

        With a head, the last column is shortened where the terminal is too narrow for it.
        """
        if self.json or self.quiet:
            return
        from rich.console import Console
        from rich.table import Table

        plain = {"markup": False, "highlight": False, "emoji": False}
        console = Console(**plain)  # type: ignore[arg-type]
        table = Table(box=None, show_header=bool(head), pad_edge=False, header_style="bold")
        last = len(rows[0]) - 1 if rows else -1
        for i in range(last + 1):
            table.add_column(head[i] if head else "", style="bold" if not head and i == 0 else "",
                             no_wrap=bool(head), overflow="ellipsis" if head and i == last else "fold")
        for row in (_shortened(rows, head, console.width) if head and console.is_terminal else rows):
            table.add_row(*row)
        if console.is_terminal:
            console.print(table)
            return
        console = Console(width=_WIDE, **plain)  # type: ignore[arg-type]
        with console.capture() as text:
            console.print(table)
        print("\n".join(line.rstrip() for line in text.get().splitlines()))

    def data(self, values: Mapping[str, Any]) -> None:
        """One object for machines."""
        if self.json:
            print(as_json(values))

    def warn(self, text: str) -> None:
        """Something that people should know and that stops nothing."""
        if not self.quiet and not self.json:
            print(f"warning: {' '.join(text.split())}", file=sys.stderr)

    @contextmanager
    def bar(self, label: str) -> Iterator[Bar]:
        """A bar on the terminal, if there is one, for work that may take over a second."""
        bar = Bar(label, self.progress and not self.json and not self.quiet and sys.stderr.isatty())
        bar.begin()
        try:
            yield bar
        finally:
            bar.end()


def _shortened(rows: Sequence[Sequence[str]], head: Sequence[str], width: int) -> list[list[str]]:
    """Rows whose last column fits into what the others leave of the width; the others stay whole."""
    others = sum(max(len(row[i]) for row in (head, *rows)) + 2 for i in range(len(head) - 1))
    room = max(width - others, len(head[-1]))
    return [[*row[:-1], row[-1] if len(row[-1]) <= room else row[-1][:room - 1] + "…"] for row in rows]


class Bar:
    """A bar that appears after a second, on stderr, and goes away when the work is done."""

    def __init__(self, label: str, shown: bool) -> None:
        self._shown, self._lock, self._over = shown, threading.Lock(), False
        self._timer = threading.Timer(_PATIENCE, self._appear)
        self._timer.daemon = True
        self._progress = _progress() if shown else None
        self._task = None if self._progress is None else self._progress.add_task(label, total=None)

    def begin(self) -> None:
        """Start waiting."""
        if self._shown:
            self._timer.start()

    def _appear(self) -> None:
        with self._lock:
            if self._progress is not None and not self._over:
                self._progress.start()

    def stage(self, label: str) -> None:
        """Something else is done now, of which it is not known how long it takes."""
        if self._progress is not None and self._task is not None:
            self._progress.reset(self._task, total=None, description=label)

    def update(self, done: float, total: float) -> None:
        """How much is done."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, total=total)

    def end(self) -> None:
        """Take the bar away."""
        with self._lock:
            self._over = True
            if self._shown:
                self._timer.cancel()
            if self._progress is not None:
                self._progress.stop()


def _progress() -> Progress:
    from rich import progress
    from rich.console import Console

    return progress.Progress(progress.TextColumn("{task.description}", markup=False), progress.BarColumn(),
                             progress.TaskProgressColumn(), progress.TimeElapsedColumn(),
                             progress.TimeRemainingColumn(), console=Console(stderr=True, markup=False),
                             transient=True)


def complain(text: str) -> None:
    """An error, in one line."""
    print(f"error: {' '.join(text.split())}", file=sys.stderr, flush=True)


def as_json(values: Any) -> str:
    """JSON text that every reader takes: numbers that JSON does not have become null."""
    return json.dumps(_plain(values), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if (named := getattr(value, "_asdict", None)) is not None:
        return _plain(named())
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


# -- the program around the commands: errors in one line, and exit codes that mean something --------
FINE, FAILED, USAGE, FILE, INTERRUPTED = 0, 1, 2, 3, 130


def examples(*lines: str) -> str:
    """The end of a help text."""
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in lines)])


class Application(TyperGroup):
    """Runs a command and turns whatever happens into an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was chosen."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Abort from None  # before the library makes an exit code of it that says nothing

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, complete_var: str | None = None,
             standalone_mode: bool = True, windows_expand_args: bool = True, **extra: Any) -> Any:
        """Run; ends the process unless `standalone_mode` is off."""
        given = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in given
        given = [*["--debug"] * debug, *(a for a in given if a != "--debug")]  # it may stand anywhere
        try:
            answer = super().main(given, prog_name or "bellcrank", complete_var, False, windows_expand_args, **extra)
            code = answer if isinstance(answer, int) else FINE
            message = ""
        except BaseException as error:
            if isinstance(error, SystemExit):
                raise
            code, message = _judge(error, debug)
            if debug:
                traceback.print_exception(error)
        if message:
            if "--json" in given:
                print(as_json({"status": "error", "error": message, "exit_code": code}))
            complain(message)
        if standalone_mode:
            sys.exit(code)
        return code


def _judge(error: BaseException, debug: bool) -> tuple[int, str]:
    """The exit code and the message of an error."""
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return INTERRUPTED, "interrupted"
    if isinstance(error, UsageError):
        return USAGE, str(error)
    if isinstance(error, FileError):
        return FILE, str(error)
    if isinstance(error, BellcrankError):
        return FAILED, str(error)
    if hasattr(error, "format_message"):  # of the library that reads the arguments
        where = getattr(getattr(error, "ctx", None), "command_path", "bellcrank")
        return int(getattr(error, "exit_code", USAGE)), f"{error.format_message()} (see {where} --help)"
    if isinstance(error, OSError):
        return FILE, str(error)
    if isinstance(error, MemoryError):
        return FAILED, "there is not enough memory"
    hint = "" if debug else "; --debug shows where"
    return FAILED, f"{type(error).__name__}: {error} (this should not happen{hint})"
