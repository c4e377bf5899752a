"""The command line."""

from __future__ import annotations

import subprocess
import sys

from typer.testing import CliRunner

from bellcrank.cli import app


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_examples() -> None:
    assert "quadruped" in run("examples")


def test_compare() -> None:
    lines = run("compare", "pendulum", "--states", "8").splitlines()
    assert any(line.startswith("momenta (q, p)") for line in lines)


def test_inspect() -> None:
    text = run("inspect", "four_bar")
    assert "loop through A, B, C, D" in text
    assert "mobility: 1 (by counting joints and loops: -2)" in text
    assert "cut at B (Revolute): as asked for" in run("inspect", "four_bar", "--cut", "B")
    assert "mobility: 6" in run("inspect", "arm")


def test_compare_with_loops() -> None:
    lines = run("compare", "four_bar", "--states", "8").splitlines()
    assert any(line.startswith("elimination") for line in lines)


def test_cite() -> None:
    assert "Naudet" in run("cite", "momenta")


def test_errors_are_one_line() -> None:
    done = subprocess.run([sys.executable, "-m", "bellcrank", "compare", "nosuch.urdf"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert "nosuch.urdf" in done.stderr
