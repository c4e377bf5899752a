"""The README's code prints what the README says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_code_prints_what_its_comments_say() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks, "the README shows no code"
    for block in blocks:
        promised = [line.split("# ", 1)[1].strip() for line in block.splitlines() if line.startswith("print(")]
        assert promised
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block, str(README), "exec"), {})
        assert out.getvalue().split("\n")[:-1] == promised
