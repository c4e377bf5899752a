"""Makes the gallery's pages, animations and stills from `examples/gallery`: ``make docs`` calls it before Sphinx.

Every machine there is one file with `run`, its motion, and `main`, which writes the animation. Its docstring is the
text of its page. Everything made goes to `docs/gallery` and `docs/_static/gallery`, which are not kept.
"""

from __future__ import annotations

import ast
import runpy
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import bellcrank as bc

DOCS = Path(__file__).resolve().parent
SOURCES = DOCS.parent / "examples" / "gallery"
TARGET = DOCS / "gallery"
FILMS = DOCS / "_static" / "gallery"


def text_of(file: Path) -> tuple[str, str, str]:
    """Name, first sentence and the rest of a machine's docstring, "Name: sentence."."""
    first, _, rest = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n\n")
    name, _, sentence = first.partition(": ")
    return name, sentence[:1].upper() + sentence[1:], rest


def page(file: Path) -> str:
    name, sentence, rest = text_of(file)
    return f"""# {name}

{sentence}

{rest}

<iframe class="machine" src="../_static/gallery/{file.stem}.html" title="{name}"
sandbox="allow-scripts allow-downloads"></iframe>

<a href="../_static/gallery/{file.stem}.html">Open the animation alone</a>, or make it yourself:
`python examples/gallery/{file.name}`.

```{{literalinclude}} ../../examples/gallery/{file.name}
:language: python
```
"""


def card(file: Path) -> str:
    name, sentence, _ = text_of(file)
    return f"""
:::{{grid-item-card}} {name}
:link: {file.stem}_machine
:link-type: doc
:img-top: ../_static/gallery/{file.stem}.svg

{sentence}
:::
"""


def show(file: Path) -> str:
    """The animation, the still and the page of one machine; what it took, as text."""
    warnings.simplefilter("error", bc.SimulationWarning)  # a run that does not reach its end is no picture
    begin = time.perf_counter()
    film = runpy.run_path(str(file))["main"](str(FILMS / f"{file.stem}.html"))
    times = film.scene.tracks[0].times
    film.save(FILMS / f"{file.stem}.svg", time=float(times[len(times) // 3]), size=(480, 320))
    (TARGET / f"{file.stem}_machine.md").write_text(page(file), encoding="utf-8")
    size = (FILMS / f"{file.stem}.html").stat().st_size
    return f"{file.stem}: {time.perf_counter() - begin:.1f} s, {size / 1024:.0f} kB"


def main() -> None:
    files = sorted(SOURCES.glob("*.py"))
    for folder in (TARGET, FILMS):
        folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as workers:
        for told in workers.map(show, files):
            print(told, flush=True)
    cards = "".join(card(file) for file in files)
    entries = "\n".join(f"{file.stem}_machine" for file in files)
    (TARGET / "index.md").write_text(f"""# Gallery

{len(files)} machines, each one file of at most 80 lines. Every picture opens a page where the machine moves: turn it
with the mouse, stop it, look at forces and plots. The animations are single files that work offline and can be mailed.

::::{{grid}} 1 2 3 3
:gutter: 2
{cards}
::::

```{{toctree}}
:hidden:

{entries}
```
""", encoding="utf-8")


if __name__ == "__main__":
    main()
