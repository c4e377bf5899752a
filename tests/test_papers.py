"""The figures and tables of the papers: every item in its short form, the commands, the pages."""

from __future__ import annotations

import csv
import json
import math
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.papers import page
from bellcrank.papers.item import Agreement, ItemResult, PaperItem, PaperPlot, PlotLine, table_of
from bellcrank.papers.kang_yoon import multiplications, random_body, residual, speeds
from cli_calls import call

DOCS = Path(__file__).parents[1] / "docs" / "papers"

#: what can be computed of the five papers, by the names of their figures and tables
ASKED = {"anderson-critchley": ("fig-5", "fig-6", "fig-8", "fig-10", "fig-11"),
         "kang-yoon": ("36-6n", "6m", "table-5", "tables-1-4"),
         "saha-schiehlen": ("fig-5", "fig-6", "fig-7", "fig-8", "fig-10", "fig-11", "fig-12", "fig-13", "eq-37"),
         "naudet-lefeber-terze": ("table-1",)}


# -- items ------------------------------------------------------------------------------------------------------------
def test_everything_asked_for_is_there() -> None:
    names = bc.papers.names()
    assert {f"{key}-{part}" for key, parts in ASKED.items() for part in parts} <= set(names)
    assert len(set(names)) == len(names)
    for source in bc.papers.sources():
        assert bc.cite(source.method)
        for item in bc.papers.items_of(source):
            assert bc.papers.find(item.name) is item and bc.papers.source_of(item) is source


@pytest.mark.everyday(14)
@pytest.mark.parametrize("name", bc.papers.names())
def test_short_forms_agree(name: str) -> None:
    """Each with what is printed or with an independent solution, and nothing in it is no number."""
    result = bc.papers.compute(name, short=True)
    assert [a for a in result.agreements if a.judged and not a.holds] == []
    assert any(a.judged for a in result.agreements)
    assert all(a.reason for a in result.agreements if not a.judged), "what differs has a reason"
    numbers = [x for row in result.table.rows for x in row if not isinstance(x, str)]
    assert numbers and all(math.isfinite(x) for x in numbers)
    for line in result.plot.lines:
        assert len(line.x) == len(line.y) > 0 and np.isfinite(line.y).all()
        assert not result.plot.log_y or (np.asarray(line.y) > 0.0).all()


def test_an_item_that_is_none_gets_the_list() -> None:
    with pytest.raises(bc.ModelError, match=r"no item 'kang-yoon-table-6'; did you mean 'kang-yoon-table-5'") as error:
        bc.papers.compute("kang-yoon-table-6")
    assert all(name in str(error.value) for name in bc.papers.names())


def test_agreements_can_fail() -> None:
    assert Agreement("", 1.0, 1.1, "printed", 0.2).holds
    assert not Agreement("", 1.0, 1.1, "printed", 0.05).holds
    assert not Agreement("", math.nan, 1.0, "printed", math.inf).holds
    assert not Agreement("", 1.0, 2.0, "printed", math.inf).judged


def test_tables() -> None:
    table = table_of(["t [s]", "name"], np.arange(5.0), "abcde")
    assert [c.label for c in table.columns] == ["t [s]", "name"] and table.column("t") == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [row[1] for row in table.thinned(3).rows] == ["a", "c", "e"] and table.thinned(9) is table
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        table_of(["a", "b"], [1.0, 2.0], [1.0])


# -- what single items rest on ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("point", ("centroid", "origin"))
def test_constraints_beyond_six_follow_the_second_difference(point: str) -> None:
    """(41) is a symmetric matrix for each speed: counts with m = 9 are those with 3 and 4 continued."""
    third, fourth, fifth = (multiplications("spherical", point, m) for m in (3, 4, 5))
    n = speeds("spherical")
    assert fifth - 2 * fourth + third == n
    assert multiplications("spherical", point, 9) == third + 6 * (fourth - third) + 15 * n


def test_the_tables_of_constraints_are_not_true_by_themselves() -> None:
    """With a sign turned, as Table 2 prints it, the second derivative is missed."""
    rng = np.random.default_rng(0)
    i, j = random_body(rng), random_body(rng)
    assert residual("s", i, j, False) < 1e-13 < 0.1 < residual("s", i, j, False, printed=True)


def test_references_are_those_of_the_tests() -> None:
    """The excerpts that the package carries, against the whole files."""
    from bellcrank.papers.measurements import reference

    def whole(name: str) -> Any:
        return json.loads((Path(__file__).parent / "data" / "loops" / f"{name}.json").read_text())

    for branch, data in whole("four_bar")["branches"].items():
        rows = {row["t"]: row for row in data["driven"]}
        kept = reference("four_bar")[branch]["driven"]
        assert [rows[t]["tau1"] for t in kept["t"]] == [tau for tau, in kept["tau"]]
        assert [rows[t]["theta"] for t in kept["t"]] == kept["theta"]
    for branch, data in whole("five_bar")["branches"].items():
        kept = reference("five_bar")[branch]
        assert [row["tau"] for row in data["driven"]] == kept["driven"]["tau"]
        assert data["singularity"]["t_sing"] == kept["singular"]["t"]
    assert whole("ladder")["trajectory"]["q1"] == reference("ladder")["q1"]


# -- commands ---------------------------------------------------------------------------------------------------------
def _made(value: float) -> PaperItem:
    def compute(short: bool) -> ItemResult:
        line = PlotLine("line", np.arange(3.0), np.arange(3.0))
        return ItemResult(table_of(["x [m]", "what"], [0.1, 0.2, 0.3], ["a", "b,c", "d"]), PaperPlot("x", "y", (line,)),
                          (Agreement("value", value, 1.0, "printed", 0.1, "so it is"),), ("a remark",))

    return PaperItem("kang-yoon-made", "Fig 0", "Something", compute)


@pytest.fixture(params=(1.0, 2.0), ids=("agrees", "differs"))
def made(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """The only item of Kang & Yoon, with a value that is right or wrong; other papers have none."""
    from bellcrank.papers import kang_yoon

    for source in bc.papers.sources():
        module = __import__(f"bellcrank.papers.{source.key.replace('-', '_')}", fromlist=["ITEMS"])
        monkeypatch.setattr(module, "ITEMS", (_made(request.param),) if module is kang_yoon else ())
    return float(request.param)


def test_the_list() -> None:
    told = call("papers")
    assert told.exit_code == 0 and all(name in told.stdout for name in bc.papers.names())
    rows = json.loads(call("papers", "--json").stdout)["items"]
    assert [r["name"] for r in rows] == list(bc.papers.names()) and rows[0]["where"] == "Fig 5"


def test_a_command_prints_and_writes(made: float, tmp_path: Path) -> None:
    told = call("paper", "kang-yoon-made", "--out", tmp_path / "new", "--format", "svg")
    assert told.exit_code == (0 if made == 1.0 else 1)
    for text in ("x [m]", "value: so it is", "note: a remark", "agrees" if made == 1.0 else "DIFFERS"):
        assert text in told.stdout
    assert ("not as it should be" in told.stderr) == (made != 1.0)
    with (tmp_path / "new" / "kang-yoon-made.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["x [m]", "what"], ["0.1", "a"], ["0.2", "b,c"], ["0.3", "d"]]
    assert (tmp_path / "new" / "kang-yoon-made.svg").read_text().startswith("<?xml")
    found = json.loads(call("paper", "kang-yoon-made", "--json").stdout.splitlines()[0])
    assert found["holds"] == (made == 1.0) and found["rows"][1] == [0.2, "b,c"]
    assert found["agreements"][0]["difference"] == abs(made - 1.0)


def test_without_matplotlib(made: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "find_spec", lambda name: None if name == "matplotlib" else find_spec(name))
    told = call("paper", "kang-yoon-made", "--out", tmp_path)
    assert "warning: no picture: it is drawn by matplotlib, which is not installed" in told.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["kang-yoon-made.csv"]
    told = call("papers", "--docs", tmp_path / "pages")
    assert "warning: no pictures: they are drawn by matplotlib" in told.stderr
    assert "![" not in (tmp_path / "pages" / "kang_yoon.md").read_text()
    with pytest.raises(bc.FileError, match="drawn by matplotlib, which is not installed"):
        page.draw(_made(1.0), _made(1.0).compute(), tmp_path / "x.svg")


def test_bad_usage(tmp_path: Path) -> None:
    told = call("paper", "kang-yoon-table-7")
    assert told.exit_code == 2 and "did you mean 'kang-yoon-table-5'?" in told.stderr
    assert "saha-schiehlen-fig-5" in told.stderr
    assert call("paper", "kang-yoon-table-5", "--format", "gif").exit_code == 2
    (tmp_path / "file").write_text("")
    told = call("paper", "saha-schiehlen-fig-6", "--short", "--out", tmp_path / "file")
    assert told.exit_code == 3 and "cannot be made" in told.stderr


# -- pages ------------------------------------------------------------------------------------------------------------
def test_pages_are_written(made: float, tmp_path: Path) -> None:
    told = call("papers", "--docs", tmp_path, "--short")
    assert told.exit_code == (0 if made == 1.0 else 1)
    assert ("these differ from what they should be: kang-yoon-made" in told.stderr) == (made != 1.0)
    text = (tmp_path / "kang_yoon.md").read_text()
    for part in ("# Kang & Yoon: On the Improvement", "## kang-yoon-made", "| x [m] | what |", "![kang-yoon-made]",
                 "*value*: so it is", "a remark"):
        assert part in text
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        [*(f"{s.key.replace('-', '_')}.md" for s in bc.papers.sources()), "kang-yoon-made.svg"])


def test_the_pages_of_the_documentation_show_every_item() -> None:
    for source in bc.papers.sources():
        text = (DOCS / f"{source.key.replace('-', '_')}.md").read_text(encoding="utf-8")
        assert re.findall(r"^## (\S+)$", text, re.M) == [item.name for item in bc.papers.items_of(source)]
        assert "DIFFERS" not in text and source.title in text
        assert all((DOCS / picture).exists() for picture in re.findall(r"!\[.*?\]\((.*?)\)", text))


def test_cells_are_short() -> None:
    assert [page.cell_text(x) for x in ("a", 7, 0.1 + 0.2, 1e-17)] == ["a", "7", "0.3", "1e-17"]
