"""Pages whose code runs as it stands there and prints what their comments say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"


def page_named(name: str) -> Path:
    """The page of the documentation with this name, in whichever of its folders: no two have the same."""
    found = sorted(DOCS.rglob(f"{name}.md"))
    assert len(found) == 1, f"{name}.md: {len(found)} pages"
    return found[0]


def check_prints(page: Path, count: int, together: bool = True) -> None:
    """Run all Python blocks of a page, beginning with no names at all.

    `together` in one set of names, or each alone. Every line that begins with print says what is promised in the
    comment behind it; a block without such a line has to run.
    """
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == count
    names: dict[str, Any] = {}
    for block in blocks:
        check_block(block, page, names if together else {})


def check_block(block: str, page: Path, names: dict[str, Any]) -> None:
    """Run one block with these names."""
    promised = [line.rsplit("# ", 1)[1].strip() for line in block.splitlines() if line.startswith("print(")]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block, str(page), "exec"), names)
    assert out.getvalue().split("\n")[:-1] == promised
