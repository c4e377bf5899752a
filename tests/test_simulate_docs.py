"""The code of docs/simulate.md prints what the page says, and its commands run."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from cli_calls import call

PAGE = Path(__file__).parents[1] / "docs" / "simulate.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_code_prints_what_its_comments_say() -> None:
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) == 9
    names: dict[str, Any] = {}
    for block in blocks:
        promised = [line.rsplit("# ", 1)[1].strip() for line in block.splitlines() if line.startswith("print(")]
        assert promised
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block, str(PAGE), "exec"), names)
        assert out.getvalue().split("\n")[:-1] == promised


def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "".join(re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)).splitlines()
    assert len(lines) == 4
    for line in lines:
        program, *arguments = shlex.split(line)
        done = call(*arguments)
        assert program == "bellcrank" and done.exit_code == 0, done.output
    assert {p.name for p in tmp_path.iterdir()} == {"run.nc", "run.png", "phase.png"}
