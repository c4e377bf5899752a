"""Items as text, as CSV, and as pages of the documentation."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from bellcrank.errors import FileError
from bellcrank.papers import items_of, sources
from bellcrank.papers.item import Agreement, Cell, ItemResult, Paper, PaperItem, PaperTable, PlotLine

__all__ = ["as_text", "cell_text", "draw", "judgement", "missing", "write_csv", "write_pages"]


# -- pictures of items by matplotlib, where it is installed -----------------------------------------
#: points of a line that are drawn: more are not seen
_POINTS = 120


def missing() -> str:
    """What is to be installed before pictures can be drawn; empty if nothing is."""
    return "" if find_spec("matplotlib") is not None else "matplotlib"


def draw(item: PaperItem, result: ItemResult, path: Path) -> None:
    """Draw the plot of an item into a file (.svg, .png, .pdf)."""
    if missing():
        raise FileError(f"{path}: pictures are drawn by {missing()}, which is not installed")
    import matplotlib
    from matplotlib.figure import Figure

    plot = result.plot
    with matplotlib.rc_context({"svg.hashsalt": item.name, "svg.fonttype": "none", "path.simplify": True}):
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        axis = figure.subplots()
        for line in plot.lines:
            x, y = _thinned(line)
            axis.plot(x, y, line.style, label=line.label, linewidth=1.2, markersize=3.5)
        axis.set(xlabel=plot.x, ylabel=plot.y, xscale="log" if plot.log_x else "linear",
                 yscale="log" if plot.log_y else "linear")
        axis.grid(True, alpha=0.3)
        axis.legend(fontsize="small")
        axis.set_title(item.name, fontsize="medium")
        try:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
        except (OSError, ValueError) as error:
            raise FileError(f"{path}: cannot be written ({error})") from error


def _thinned(line: PlotLine) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(line.x, dtype=float), np.asarray(line.y, dtype=float)
    if len(x) <= _POINTS:
        return x, y
    kept = np.unique(np.linspace(0, len(x) - 1, _POINTS).round().astype(int))
    return x[kept], y[kept]


#: rows of a curve and of another table that are printed; files hold all of them
_SAMPLES, _ROWS = 12, 60


def cell_text(value: Cell) -> str:
    """An entry for people: six digits, whole numbers as they are."""
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else f"{value:.6g}"


def judgement(agreement: Agreement) -> str:
    """In a word, whether two values agree."""
    return "shown" if not agreement.judged else "agrees" if agreement.holds else "DIFFERS"


def _agreement_rows(result: ItemResult) -> list[tuple[str, ...]]:
    return [(a.what, cell_text(a.found), cell_text(a.expected), a.origin, f"{a.difference:.1e}",
             f"{a.allowed:.1e}" if a.judged else "-", judgement(a)) for a in result.agreements]


_HEAD = ("compared", "here", "expected", "origin", "difference", "allowed", "")


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
    return ["  ".join(x.ljust(w) if i == 0 else x.rjust(w) for i, (x, w) in enumerate(zip(line, widths, strict=True))
                      ).rstrip() for line in (head, *rows)]


def _shown(table: PaperTable) -> PaperTable:
    """What fits a screen: samples of a curve over time may be left out, rows with names not."""
    return table.thinned(_SAMPLES if table.columns[0].name == "time" else _ROWS)


def _reasons(result: ItemResult) -> list[tuple[str, str]]:
    """What differs, and why: what has the same reason stands together."""
    found: dict[str, list[str]] = {}
    for a in result.agreements:
        if a.reason:
            found.setdefault(a.reason, []).append(a.what)
    return [(f"{what[0]} and {len(what) - 1} more" if len(what) > 2 else " and ".join(what), reason)
            for reason, what in found.items()]


def as_text(item: PaperItem, result: ItemResult) -> str:
    """The table, thinned to what fits a screen, the comparison and its reasons."""
    shown = _shown(result.table)
    lines = [f"{item.name}: {item.title}", ""]
    lines += _aligned([c.label for c in shown.columns], [[cell_text(x) for x in row] for row in shown.rows])
    if len(shown.rows) < len(result.table.rows):
        lines.append(f"({len(result.table.rows)} rows; --out FOLDER writes all)")
    if result.agreements:
        lines += ["", *_aligned(_HEAD, _agreement_rows(result))]
    lines += [f"{what}: {reason}" for what, reason in _reasons(result)]
    return "\n".join([*lines, *(f"note: {note}" for note in result.notes)])


def write_csv(result: ItemResult, path: Path) -> None:
    """All rows, with units in the head."""
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([c.label for c in result.table.columns])
            writer.writerows([[repr(x) if isinstance(x, float) else x for x in row] for row in result.table.rows])
    except OSError as error:
        raise FileError(f"{path}: cannot be written ({error})") from error


# -- pages ------------------------------------------------------------------------------------------------------------
def write_pages(folder: Path, short: bool = False, progress: Callable[[str, int, int], None] | None = None
                ) -> tuple[list[Path], list[str]]:
    """One page per paper, with a picture of every item; returns the files and the names of items that disagree.

    `progress` is called with the item that comes next, how many are done, and of how many.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be made ({error})") from error
    every = [(source, items_of(source)) for source in sources()]
    files: list[Path] = []
    wrong: list[str] = []
    done, count = 0, sum(len(items) for _, items in every)
    for source, items in every:
        parts = []
        for item in items:
            if progress is not None:
                progress(item.name, done, count)
            result = item.compute(short)
            wrong += [item.name] * (not result.holds)
            picture = folder / f"{item.name}.svg"
            if not missing():
                draw(item, result, picture)
                files.append(picture)
            parts.append(_section(item, result, picture.name if picture in files else None))
            done += 1
        page = folder / f"{source.key.replace('-', '_')}.md"
        _write(page, "\n\n".join([_head(source, items), *parts]) + "\n")
        files.append(page)
    return files, wrong


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path}: cannot be written ({error})") from error


def _head(source: Paper, items: Sequence[PaperItem]) -> str:
    cited = f"`bellcrank cite {source.method}` prints the entry for a bibliography."
    rows = "\n".join(f"| [`{i.name}`](#{i.name}) | {i.where} | {i.title} |" for i in items)
    return (f"# {source.authors}: {source.title}\n\n{source.published}. {cited}\n\n{source.about}\n\n"
            "This page is written by `bellcrank papers --docs docs/papers`; `bellcrank paper NAME --out FOLDER` "
            "computes one item and writes all rows and the picture.\n\n| item | in the paper | what it shows "
            f"|\n|---|---|---|\n{rows}")


def _section(item: PaperItem, result: ItemResult, picture: str | None) -> str:
    shown = _shown(result.table)
    parts = [f"## {item.name}", f"{item.where}. {item.title}",
             _grid([c.label for c in shown.columns], [[cell_text(x) for x in row] for row in shown.rows])]
    if picture is not None:
        parts.append(f"![{item.name}]({picture})")
    if result.agreements:
        parts.append(_grid((*_HEAD[:-1], "verdict"), _agreement_rows(result)))
    parts += [f"*{what}*: {reason}" for what, reason in _reasons(result)]
    return "\n\n".join([*parts, *result.notes])


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(x.replace("|", "\\|") for x in line) + " |" for line in lines)
