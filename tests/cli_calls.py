"""Calling the command line within the process."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner

from bellcrank.cli import app


def call(*arguments: object) -> Any:
    """The ended command: exit_code, stdout, stderr."""
    try:
        runner = CliRunner(mix_stderr=False)  # older versions mix the two
    except TypeError:
        runner = CliRunner()
    return runner.invoke(app, [str(a) for a in arguments])
