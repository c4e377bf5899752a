"""The code of the pages in docs/ runs as pasted, in an empty folder, and prints what the pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pages import DOCS, check_block, check_prints, page_named


@pytest.mark.parametrize(("page", "blocks"), [
    ("loops", 7), ("results", 4), ("model_file", 1), ("joints", 5), ("elimination", 3), ("architecture", 1),
    ("export", 3), ("derivatives", 8), ("topology", 1), ("flexible", 5), ("sweeps", 4), ("viewer", 4),
    ("conventions", 2), ("contact", 3), ("forces", 3), ("events", 3), ("controllers", 2), ("trouble", 1),
    ("rollouts", 1), ("inverse_kinematics", 3)])
def test_pages_run_as_pasted(page: str, blocks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_prints(page_named(page), blocks)


@pytest.mark.parametrize(("page", "blocks"), [
    ("first_machine", 4), ("engine", 6), ("suspension", 7), ("bicycle", 5), ("excavator", 6), ("arm_control", 6),
    ("legged", 5), ("parameter_study", 4)])
def test_tutorials_draw_their_pictures(page: str, blocks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their code runs as pasted, and writes all pictures that the page shows (`make pictures` keeps these)."""
    monkeypatch.chdir(tmp_path)
    check_prints(page_named(page), blocks)
    shown = re.findall(r"!\[[^\]]+\]\(pictures/([^)]+)\)", page_named(page).read_text(encoding="utf-8"))
    assert shown and set(shown) == {file.name for file in tmp_path.iterdir() if file.suffix != ".html"}


def test_the_start_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_prints(DOCS / "index.md", 1)


def test_no_page_with_code_is_forgotten() -> None:
    """Every page with a block of Python is run by a test that names it."""
    tests = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    for page in DOCS.rglob("*.md"):
        if "```python" in page.read_text(encoding="utf-8"):
            assert f'"{page.stem}"' in tests or page.name == "index.md", page


@pytest.mark.parametrize(("package", "blocks"), [("casadi", 2), ("sympy", 1), ("jax", 1), ("torch", 1)])
def test_other_libraries_as_pasted(package: str, blocks: int) -> None:
    """Each part of the page by itself, where its package is installed."""
    pytest.importorskip(package)
    page = page_named("interop")
    parts = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.M)
    found = [re.findall(r"```python\n(.*?)```", part, re.DOTALL) for part in parts if f"bc.to_{package}(" in part]
    assert [len(some) for some in found] == [blocks]
    names: dict[str, object] = {}
    for block in found[0]:
        check_block(block, page, names)


def test_robots_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last block where Pinocchio is installed."""
    monkeypatch.chdir(tmp_path)
    page = page_named("robots")
    *blocks, beside = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 8 and "import pinocchio" in beside
    names: dict[str, object] = {}
    for block in blocks:
        check_block(block, page, names)
    pytest.importorskip("pinocchio")
    check_block(beside, page, names)


def test_the_code_of_elimination_cites_its_page() -> None:
    """Every equation of the page is cited where it is used, and no line cites one that is not there."""
    from bellcrank.formulations import elimination

    page = page_named("elimination").read_text(encoding="utf-8")
    there = [int(n) for n in re.findall(r"\((\d+)\)\.?$", page, re.M)]
    assert there == list(range(1, len(there) + 1)) and len(there) == 32
    folder = Path(str(elimination.__file__)).parent
    cited: set[int] = set()
    for file in folder.glob("*.py"):
        text = file.read_text(encoding="utf-8")
        lines = re.findall(r"# .*|\"{3}.*\"{3}", text)
        found = [m.groups() for line in lines for m in re.finditer(r"\((\d+)\)(?:-\((\d+)\))?", line)]
        cited |= {n for first, last in found for n in range(int(first), int(last or first) + 1)}
    assert cited <= set(there)
    assert set(there) - cited <= {2, 3, 7}  # the problem, and a definition


def test_the_page_of_the_architecture_names_what_is_there() -> None:
    """All rooms are on it, and the files that it names exist."""
    import bellcrank as bc

    root = Path(bc.__file__).parent
    page = page_named("architecture").read_text(encoding="utf-8")
    picture = page.partition("```text\n")[2].partition("```")[0]
    shown = {word for line in picture.splitlines() for word in re.split(r"\s{4,}", line.strip())[0].split()}
    rooms = {p.name for p in root.iterdir() if (p / "__init__.py").exists()}
    assert rooms <= shown
    for name in re.findall(r"(?<![\w/.])(\w+(?:/\w+)+(?:\.py)?)\b", page):
        if name.split("/")[0] in rooms:
            assert (root / name).exists(), name


def test_the_table_of_formulations_has_all_of_them() -> None:
    from bellcrank.formulations import method_names

    text = page_named("choosing").read_text(encoding="utf-8")
    table = text.partition("$ bellcrank compare arm\n")[2].partition("```")[0].splitlines()
    shown = {line.split()[0] for line in table[2:]}
    assert shown == set(method_names()) and f"{len(table) - 2} formulations" in table[0]
    described = text.partition("| method |")[2].partition("\n\n")[0]
    assert all(f"`{name}`" in described for name in method_names())
