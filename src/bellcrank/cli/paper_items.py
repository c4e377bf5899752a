"""The commands that compute figures and tables of the papers: ``papers`` and ``paper``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from bellcrank.cli.output import FAILED, FINE, Output, UsageError, complain
from bellcrank.errors import FileError, ModelError

__all__ = ["paper", "papers"]


def papers(docs: Path | None, short: bool, output: Output) -> int:
    """List all items, or write the pages that show them."""
    from bellcrank.papers import items_of, sources

    if docs is not None:
        return _pages(docs, short, output)
    rows = [{"name": item.name, "paper": source.authors, "where": item.where, "title": item.title}
            for source in sources() for item in items_of(source)]
    output.table([(r["name"], r["where"], r["title"]) for r in rows], ("item", "in the paper", "what it shows"))
    output.data({"command": "papers", "status": "finished", "items": rows})
    return FINE


def _pages(folder: Path, short: bool, output: Output) -> int:
    from bellcrank.papers.page import missing, write_pages

    with output.bar("computing") as bar:
        def progress(name: str, done: int, count: int) -> None:
            bar.stage(f"{name}, {done + 1} of {count}")
            bar.update(done, count)

        files, wrong = write_pages(folder, short, progress)
    if missing():
        output.warn(f"no pictures: they are drawn by {missing()}, which is not installed")
    output.text("\n".join(str(f) for f in files if f.suffix == ".md"))
    output.data({"command": "papers", "status": "finished", "files": [str(f) for f in files], "differ": wrong})
    if wrong:
        complain(f"these differ from what they should be: {', '.join(wrong)}")
    return FAILED if wrong else FINE


def paper(name: str, short: bool, folder: Path | None, picture: str, output: Output) -> int:
    """Compute an item, print it, write its rows and its picture."""
    from bellcrank.papers import find, source_of
    from bellcrank.papers.page import as_text, write_csv

    try:
        item = find(name)
    except ModelError as error:
        raise UsageError(str(error)) from None
    if picture not in ("png", "svg", "pdf"):
        raise UsageError(f"--format {picture}: pictures are png, svg or pdf")
    if folder is not None:
        _make(folder)
    with output.bar(f"computing {name}"):
        result = item.compute(short)
    files: list[str] = []
    if folder is not None:
        write_csv(result, folder / f"{name}.csv")
        files.append(str(folder / f"{name}.csv"))
        files += _drawn(item, result, folder / f"{name}.{picture}", output)
    output.text("\n".join([as_text(item, result), *files]))
    output.data({"command": "paper", "status": "finished", "item": name, "paper": source_of(item).authors,
                 "where": item.where, "title": item.title, "short": short, "holds": result.holds,
                 "columns": [c.label for c in result.table.columns], "rows": result.table.rows,
                 "agreements": [{**asdict(a), "difference": a.difference, "holds": a.holds, "judged": a.judged}
                                for a in result.agreements], "notes": result.notes, "files": files})
    if not result.holds:
        complain(f"{name}: {', '.join(a.what for a in result.agreements if not a.holds)}: not as it should be")
    return FINE if result.holds else FAILED


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be made ({error})") from error


def _drawn(item: Any, result: Any, path: Path, output: Output) -> list[str]:
    from bellcrank.papers.page import draw, missing

    if missing():
        output.warn(f"no picture: it is drawn by {missing()}, which is not installed")
        return []
    draw(item, result, path)
    return [str(path)]
