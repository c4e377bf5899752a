"""Tests of an installed package, from the folder of the source: doctests are those of the package that is imported."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import bellcrank as bc
import children

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.skipif(not (ROOT / "src" / "bellcrank").is_dir(), reason="the source is not here")


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    """The variables of a process that imports another copy than that in src, as after `pip install`."""
    shutil.copytree(Path(bc.__file__).parent, tmp_path / "site" / "bellcrank",
                    ignore=shutil.ignore_patterns("__pycache__"))
    return {"PYTHONPATH": str(tmp_path / "site")}


def pytest_of(folder: Path, variables: dict[str, str], *arguments: str) -> str:
    done = children.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments], cwd=folder,
                        env=variables)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_doctests_of_all_modules_are_found(elsewhere: dict[str, str]) -> None:
    """Imported from src beside those of the package, each of 232 modules was an import mismatch."""
    here, there = (pytest_of(ROOT, variables, "--collect-only", "tests/test_math.py", "src")
                   for variables in ({"PYTHONPATH": str(ROOT / "src")}, elsewhere))
    assert "src/bellcrank/" in here and "src/bellcrank/" not in there
    assert count(here) == count(there) > 50


def count(listing: str) -> int:
    """The number of tests that pytest lists."""
    return sum("::" in line for line in listing.splitlines())


@pytest.mark.parametrize("order", ("as written", "random"))
def test_tests_and_doctests_run(order: str, elsewhere: dict[str, str]) -> None:
    if order == "random":
        pytest.importorskip("pytest_randomly")
    told = pytest_of(ROOT, elsewhere, *(("-p", "randomly") if order == "random" else ()), "-v",
                     "tests/test_condition_names.py", "src/bellcrank/io/common/xml.py",
                     "src/bellcrank/mechanism/joints")
    assert "passed" in told
