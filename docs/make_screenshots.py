"""Takes the screenshots of the viewer anew, with the browser of the tests: ``make screenshots``.

One function per picture in `docs/pictures`; they are WebP of less than 80 kB. The robot needs the models of
``make models`` or the package example-robot-data.
"""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

import bellcrank as bc
from bellcrank.view.animating import Animation, opened_page, wait_until_shown

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
LARGEST = 80_000  # bytes


def four_bar() -> tuple[Animation, str]:
    """With the path of a coupler point, and reactions."""
    linkage = bc.compile(bc.load("four_bar"))
    run = linkage.simulate(linkage.assemble(q={"A": 0.5}, u={"A": 2.0}), duration=4.0)
    film = run.animate(traces=[("coupler", (0.5, 0.2, 0.0))], show=["forces", "names"], title="Four-bar linkage")
    return film, "bellcrank.seek(0.62)"


def stewart() -> tuple[Animation, str]:
    """A platform driven by six legs: lifted, tilted, turned."""
    platform = bc.compile(bc.load("stewart"))
    names = [f"leg{i}.slide" for i in range(1, 7)]
    laws = {name: lambda t, k=i: 0.08 + 0.06 * bc.math.sin(2.0 * t + 1.05 * k) for i, name in enumerate(names)}
    run = bc.analyze.drive(platform, laws, np.linspace(0.0, 3.14, 120))
    film = run.animate(traces=["platform"], show=["ghosts"], title="Stewart platform")
    return film, "bellcrank.seek(0.9)"


def quarter_car() -> tuple[Animation, str]:
    """Dropped: its spring and damper as coil, their force and the joints' reactions."""
    car = bc.compile(bc.load("quarter_car"))
    run = car.simulate(car.assemble(q={"arm": -0.1}), duration=1.5)
    return run.animate(show=["forces"], title="Quarter car"), "bellcrank.seek(0.12)"


def robot() -> tuple[Animation, str]:
    """Cassie with the meshes of its description."""
    found = [p for place in sys.path for p in Path(place).glob(
        "cmeel.prefix/share/example-robot-data/robots/cassie_description/robots/cassie.sdf")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = bc.load(str(found[0]))
    return bc.animate(machine, title="Cassie"), "bellcrank.show('axes')"


def batch() -> tuple[Animation, str]:
    """Double pendulums that begin nearly alike, over each other."""
    arm = bc.compile(bc.load("double_pendulum"))
    begin = np.array([[1.9, 0.6 + 0.004 * i] for i in range(5)])
    run = arm.simulate((begin, np.zeros((5, 2))), duration=6.0, output=0.02)
    film = run.animate(side_by_side=False, traces=[("lower", (0.0, 0.0, -1.0))], title="Five starts, 4 mrad apart")
    return film, "bellcrank.seek(4.4)"


PICTURES: dict[str, Callable[[], tuple[Animation, str]]] = {
    "four_bar": four_bar, "stewart": stewart, "quarter_car": quarter_car, "robot": robot, "batch": batch}


def take(name: str) -> Path:
    """One picture, as the page looks."""
    film, script = PICTURES[name]()
    page_file = FOLDER / f".{name}.html"
    target = FOLDER / f"{name}.webp"
    try:
        film.save(page_file)
        with opened_page(1120, 680) as page:
            page.goto(page_file.as_uri())
            wait_until_shown(page)
            page.evaluate(script)
            page.wait_for_timeout(300)
            shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    finally:
        page_file.unlink(missing_ok=True)
    for quality in range(88, 30, -8):
        shot.save(target, format="WEBP", quality=quality, method=6)
        if target.stat().st_size < LARGEST:
            break
    return target


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for wanted in sys.argv[1:] or PICTURES:
        file = take(wanted)
        print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB", flush=True)
