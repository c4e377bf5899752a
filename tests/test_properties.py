"""That property tests which compare little or nothing are found."""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import children

HERE = Path(__file__).resolve().parent

EXAMPLES = """
    import pytest
    from hypothesis import assume, given, settings, strategies as st
    from properties import leave

    numbers = st.integers(0, 99)

    @given(numbers)
    def test_all(x):
        assert x < 100

    @pytest.mark.reaches(0.4)
    @given(numbers)
    def test_half(x):
        if x % 2:
            leave()

    @pytest.mark.reaches(0.9)
    @given(numbers)
    def test_too_few(x):
        if x % 2:
            leave()

    @pytest.mark.reaches(0.9)
    @given(numbers)
    def test_too_many_rejected(x):
        assume(x % 2)

    @given(numbers)
    def test_unstated(x):
        if x == 0:
            leave()

    @pytest.mark.reaches(0.0)
    @given(numbers)
    def test_none(x):
        leave()

    @given(numbers)
    def test_wrong(x):
        assert x < 50
"""


def test_shares_are_counted(tmp_path: Path) -> None:
    (tmp_path / "test_these.py").write_text(textwrap.dedent(EXAMPLES))
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    done = children.run([sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-rA", "--shares"],
                        cwd=tmp_path, env={"PYTHONPATH": str(HERE)})
    found = {line.split("::")[1].split(" ")[0]: line.split()[0] for line in done.stdout.splitlines()
             if line.startswith(("PASSED", "FAILED"))}
    wanted = {"test_all": "PASSED", "test_half": "PASSED"} | dict.fromkeys(
        ("test_too_few", "test_too_many_rejected", "test_unstated", "test_none", "test_wrong"), "FAILED")
    assert found == wanted, done.stdout
    assert done.stdout.count("examples reached their comparison") >= 4 and "the test states 0.9" in done.stdout
    assert "(stated 0.40)  test_these.py::test_half" in done.stdout


def properties() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in sorted(HERE.glob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "given(" in text else ():
            if isinstance(node, ast.FunctionDef) and any("given(" in ast.unparse(d) for d in node.decorator_list):
                yield f"{path.name}:{node.lineno} {node.name}", node


def returns(node: ast.AST) -> Iterator[ast.Return]:
    """Those of the function itself, not of functions inside."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.Return):
            yield inner
        elif not isinstance(inner, ast.FunctionDef | ast.Lambda):
            yield from returns(inner)


def test_no_property_test_returns_early() -> None:
    """An example that returns would count as one that compared: it says `leave()` instead."""
    all_of_them = dict(properties())
    assert len(all_of_them) > 50
    assert not [name for name, node in all_of_them.items() if list(returns(node))]
