"""Draws the pictures of the documentation anew: ``make pictures``.

Those of the tutorials by running the code of their pages, which writes its files where it runs: here that is
`docs/tutorials/pictures`, in the tests an empty folder. That of the start page and README from machines of the gallery,
taken by a browser where there is one.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

import matplotlib
from make_gallery import SOURCES, script
from PIL import Image

TUTORIALS = Path(__file__).resolve().parent / "tutorials"
#: on the picture of the start page, row by row: machine, and where in its motion the picture is taken
CHOSEN = (("stewart_platform", 0.2), ("delta_robot", 0.3), ("quarter_car", 0.0), ("watt_governor", 0.9),
          ("engine", 0.1), ("rope_ladder", 0.3), ("gyroscope", 0.6), ("scissor_lift", 0.0))
TILE, ACROSS = (220, 180), 4


def tutorials() -> None:
    folder = TUTORIALS / "pictures"
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    for page in sorted(TUTORIALS.glob("*.md")):
        names: dict[str, object] = {}
        for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block, str(page), "exec"), names)
        print(page.stem, flush=True)


def machines(target: Path) -> None:
    """Some machines of the gallery on one small picture."""
    whole = Image.new("RGB", (TILE[0] * ACROSS, TILE[1] * (len(CHOSEN) // ACROSS)), "white")
    with tempfile.TemporaryDirectory() as folder:
        for k, (name, when) in enumerate(CHOSEN):
            film = script(SOURCES / f"{name}.py").main(f"{folder}/{name}.html")
            times = film.scene.tracks[0].times
            film.save(f"{folder}/{name}.png", time=float(times[round(when * (len(times) - 1))]),
                      size=(2 * TILE[0], 2 * TILE[1]))
            with Image.open(f"{folder}/{name}.png") as tile:
                small = tile.convert("RGB").resize(TILE, Image.Resampling.LANCZOS)
            whole.paste(small, (TILE[0] * (k % ACROSS), TILE[1] * (k // ACROSS)))
    whole.quantize(64).save(target, optimize=True)
    print(f"{target.name}: {target.stat().st_size / 1024:.0f} kB")


def main() -> None:
    matplotlib.use("agg")
    machines(TUTORIALS.parent / "_static" / "machines.png")
    tutorials()


if __name__ == "__main__":
    main()
