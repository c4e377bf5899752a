"""The README's code prints what the README says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages import check_prints

README = Path(__file__).parents[1] / "README.md"


def test_code_prints_what_its_comments_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_prints(README, 1)
