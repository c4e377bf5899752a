"""Calling the command line within the process."""

from __future__ import annotations

import functools
from typing import Any

import typer.testing
from typer.testing import CliRunner

from bellcrank.cli import app

#: the commands with their options are the same in every call: made once, as a user's process does
typer.testing._get_command = functools.cache(typer.testing._get_command)  # type: ignore[attr-defined]


def call(*arguments: object) -> Any:
    """The ended command: exit_code, stdout, stderr."""
    try:
        runner = CliRunner(mix_stderr=False)  # older versions mix the two
    except TypeError:
        runner = CliRunner()
    return runner.invoke(app, [str(a) for a in arguments])
