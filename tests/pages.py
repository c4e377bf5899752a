"""Pages whose code prints what their comments say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any


def check_prints(page: Path, count: int, together: bool = True) -> None:
    """Run all Python blocks of a page, `together` in one set of names or each alone: every print says what is promised
    in the comment behind it."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == count
    names: dict[str, Any] = {}
    for block in blocks:
        promised = [line.rsplit("# ", 1)[1].strip() for line in block.splitlines() if line.startswith("print(")]
        assert promised
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block, str(page), "exec"), names if together else {})
        assert out.getvalue().split("\n")[:-1] == promised
