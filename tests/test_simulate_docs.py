"""The code of docs/howto/simulate.md prints what the page says, and its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cli_calls import call
from pages import check_prints, page_named

PAGE = page_named("simulate")
TEXT = PAGE.read_text(encoding="utf-8")


def test_code_prints_what_its_comments_say() -> None:
    check_prints(PAGE, 14)



def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "".join(re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)).splitlines()
    assert len(lines) == 5
    for line in lines:
        program, *arguments = shlex.split(line)
        done = call(*arguments)
        assert program == "bellcrank" and done.exit_code == 0, done.output
    assert {p.name for p in tmp_path.iterdir()} == {"run.nc", "run.png", "phase.pdf"}
