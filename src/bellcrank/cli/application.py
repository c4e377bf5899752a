"""The program around the commands: errors in one line, and exit codes that mean something."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from bellcrank.cli.output import UsageError, as_json, complain
from bellcrank.errors import BellcrankError, FileError

__all__ = ["FAILED", "FILE", "FINE", "INTERRUPTED", "USAGE", "Application", "examples"]

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
