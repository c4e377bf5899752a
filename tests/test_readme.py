"""The README's code prints what the README says."""

from __future__ import annotations

from pathlib import Path

from pages import check_prints

README = Path(__file__).parents[1] / "README.md"


def test_code_prints_what_its_comments_say() -> None:
    check_prints(README, 1)
