"""Draws the pictures of the tutorials anew, by running the code of their pages: ``make pictures``.

The code writes its files where it runs, which is `docs/tutorials/pictures` here and an empty folder in the tests.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

import matplotlib

TUTORIALS = Path(__file__).resolve().parent / "tutorials"


def main() -> None:
    matplotlib.use("agg")
    folder = TUTORIALS / "pictures"
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    for page in sorted(TUTORIALS.glob("*.md")):
        names: dict[str, object] = {}
        for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block, str(page), "exec"), names)
        print(page.stem, flush=True)
    for file in sorted(folder.iterdir()):
        print(f"{file.name}: {file.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
