"""The machines of the gallery: each one file of at most 80 lines that builds, moves and shows its machine.

Here they take a few steps, as NumPy, which compiles nothing; `make docs` runs all of them to their ends.
"""

from __future__ import annotations

import ast
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc

FOLDER = Path(__file__).parents[1] / "examples" / "gallery"
FILES = sorted(FOLDER.glob("*.py"))


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """`bc.compile` makes systems that compute with NumPy."""
    real: Callable[..., bc.System] = bc.compile

    def compile_nothing(*things: Any, **options: Any) -> bc.System:
        return real(*things, backend="numpy", **options)

    monkeypatch.setattr(bc, "compile", compile_nothing)


def test_there_are_twenty_two_in_short_files() -> None:
    assert len(FILES) == 22
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 80, file
        title = (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]
        assert ": " in title and title.endswith("."), f"{file.name}: 'Name: sentence.', for its card on the page"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.usefixtures("interpreted")
def test_a_machine_moves(file: Path) -> None:
    run = runpy.run_path(str(file))["run"](0.02)
    assert run.attrs.get("status", "finished") == "finished" and run.sizes["time"] >= 2
    state = run.isel(time=-1)
    errors = run.system.loop_error(state.q.values, t=float(state.time))
    assert np.abs(errors).max(initial=0.0) < 1e-12
    assert np.abs(run.q[-1] - run.q[0]).max() > 1e-9, "it stands still"
