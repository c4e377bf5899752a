"""The README's code prints what the README says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pages import check_prints

README = Path(__file__).parents[1] / "README.md"


def test_code_prints_what_its_comments_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_prints(README, 1)


def test_security_names_tests_that_exist() -> None:
    named = re.findall(r"`(test_\w+\.py)`", (README.parent / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(named) > 10 and not [name for name in named if not (README.parent / "tests" / name).exists()]
