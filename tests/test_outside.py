"""Published cases that nobody here computed (`outside_cases.py`), each to the accuracy of its reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from outside_cases import CASES

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "validation.md"


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_published_figures(name: str) -> None:
    figures = list(CASES[name][1]())
    assert figures
    for f in figures:
        assert f.difference <= f.allowed, f


def test_the_page_lists_every_case_with_its_source() -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in PAGE.read_text(encoding="utf-8").splitlines()
            if line.startswith("| ")]
    for name, (source, _) in CASES.items():
        assert [name, source] in rows, name
