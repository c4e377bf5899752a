"""The page in a real browser without a network: it loads without errors, shows the machine, moves, and obeys."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import bellcrank as bc
from bellcrank.view.animating import opened_page, take_pictures, wait_until_shown, why_not
from bellcrank.view.scenes import scene_of
from bellcrank.view.standalone_page import live_page, squeezed
from test_view_files import HOSTILE, hostile

pytestmark = pytest.mark.skipif(bool(why_not()), reason=f"the page is not tried: {why_not()} is missing")


class Browser:
    """One page of one browser, and all that it complained of or asked for."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: (self.said.append("a dialog"), dialog.dismiss()))
        page.on("request", lambda request: self.asked.append(request.url))

    def open(self, html: str) -> None:
        file = self.folder / "page.html"
        file.write_text(html, encoding="utf-8")
        self.asked.clear()
        self.page.goto(file.as_uri())
        wait_until_shown(self.page)
        assert self.asked == [file.as_uri()]  # and nothing else

    def do(self, script: str) -> Any:
        return self.page.evaluate(script)

    def picture(self) -> np.ndarray:
        """What is drawn, (height, width, 3), names and legends included."""
        with Image.open(io.BytesIO(self.page.request_picture())) as image:
            return np.asarray(image.convert("RGB")).astype(int)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with opened_page(800, 320) as page:
        from base64 import b64decode

        page.set_default_timeout(20_000)
        page.request_picture = lambda: b64decode(page.evaluate("bellcrank.snapshot()").partition(",")[2])
        yield Browser(page, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def four_bar() -> str:
    linkage = bc.compile(bc.load("four_bar"))
    run = linkage.simulate(linkage.assemble(q={"A": 0.5}, u={"A": 2.0}), duration=1.0, output=0.02)
    return run.animate(traces=[("coupler", (0.5, 0.2, 0.0))]).page()


def differ(first: np.ndarray, second: np.ndarray) -> float:
    """The part of pixels that differ."""
    return float((np.abs(first - second).max(axis=2) > 8).mean())


def test_it_shows_the_machine_and_moves(browser: Browser, four_bar: str) -> None:
    browser.open(four_bar)
    browser.do("bellcrank.seek(0)")
    start = browser.picture()
    assert len(np.unique(start.reshape(-1, 3), axis=0)) > 300  # not blank
    browser.do("bellcrank.seek(0.5)")
    later = browser.picture()
    assert differ(start, later) > 0.01
    browser.do("bellcrank.seek(0)")
    assert differ(start, browser.picture()) == 0.0
    assert browser.do("[bellcrank.time, bellcrank.duration]") == [0, pytest.approx(1.0, abs=1e-6)]
    assert browser.said == []


def test_the_picture_is_where_the_machine_is(browser: Browser, four_bar: str) -> None:
    """Between samples as well: the joint B of crank and coupler stays one point."""
    browser.open(four_bar)
    gap = browser.do("""(() => { let worst = 0; const v = bellcrank.view, j = v.scene.models[0].joints[1];
      for (let t = 0; t < 1; t += 0.013) { bellcrank.view.seek(t);
        const m = v.motions[0].matrices, e = m[j.parent].elements, f = m[j.child].elements, p = j.parent_pose;
        for (let i = 0; i < 3; i++) worst = Math.max(worst, Math.abs(
          e[i] * p[0] + e[4 + i] * p[1] + e[8 + i] * p[2] + e[12 + i] - f[12 + i])); } return worst; })()""")
    assert 0.0 < gap < 2e-3
    assert browser.said == []


def test_switches_and_keys(browser: Browser, four_bar: str) -> None:
    browser.open(four_bar)
    browser.do("bellcrank.seek(0.3)")
    plain = browser.picture()
    for name in ("axes", "names", "bodyNames", "frames", "forces", "masses", "traces", "ghosts", "floor", "symbols"):
        now = browser.do(f"bellcrank.view.shown.{name}")
        browser.do(f"bellcrank.show('{name}', {str(not now).lower()})")
        assert differ(plain, browser.picture()) > 0.0005, name
        browser.do(f"bellcrank.show('{name}', {str(now).lower()})")
    assert differ(plain, browser.picture()) == 0.0
    keys = browser.page.keyboard
    for key, script, wanted in (("Home", "bellcrank.time", 0.0), ("ArrowRight", "bellcrank.time", 0.02),
                                ("End", "bellcrank.time", 1.0), ("a", "bellcrank.view.shown.forces", True),
                                ("d", "bellcrank.view.stage.theme", "dark"), ("+", "bellcrank.view.speed", 2),
                                ("Space", "bellcrank.view.playing", True), ("Space", "bellcrank.view.playing", False)):
        keys.press(key)
        assert browser.do(script) == (pytest.approx(wanted, abs=1e-6) if isinstance(wanted, float) else wanted), key
    assert browser.said == []


def test_mouse_and_buttons(browser: Browser, four_bar: str) -> None:
    browser.open(four_bar)
    page = browser.page
    before = browser.do("bellcrank.view.stage.camera.position.toArray()")
    page.mouse.move(200, 160)
    page.mouse.down()
    page.mouse.move(260, 150)
    page.mouse.up()
    assert browser.do("bellcrank.view.stage.camera.position.toArray()") != before
    page.keyboard.press("f")
    at = browser.do("""(() => { const v = bellcrank.view; v.draw();
      const p = v.stage.controls.target.clone().set(0.5, 0, 0).applyMatrix4(v.motions[0].matrices[2])
        .project(v.stage.camera), r = v.canvas.getBoundingClientRect();
      return [(p.x + 1) / 2 * r.width, (1 - p.y) / 2 * r.height]; })()""")
    page.mouse.click(*at)
    assert page.locator(".body-info strong").text_content() == "coupler"
    lines = browser.do("bellcrank.view.traces.lines.length")
    page.get_by_text("Trace this point").click()
    assert browser.do("bellcrank.view.traces.lines.length") == lines + 1
    page.locator("input.time").fill("0.75")
    assert browser.do("bellcrank.time") == pytest.approx(0.75, abs=1e-6)
    assert page.locator(".plot").count() == 3
    page.locator(".plot select").first.select_option("loop error")
    page.get_by_label("What is shown (V)").click()
    page.get_by_label("Forces and moments").check()
    assert browser.do("bellcrank.view.shown.forces")
    with page.expect_download() as saved:
        page.get_by_label("Save this picture (S)").click()
    assert saved.value.suggested_filename == "four-bar.png"
    assert browser.said == []


def test_hostile_names_do_nothing(browser: Browser) -> None:
    browser.open(bc.animate(hostile(), show=["names", "bodyNames"]).page())
    page = browser.page
    assert page.title() == HOSTILE and page.locator("h1").text_content() == HOSTILE
    assert page.locator("img").count() == 0
    assert browser.do("window.alerted === undefined") and browser.said == []


def test_several_runs(browser: Browser) -> None:
    """A batch side by side, then over each other; a run can be hidden."""
    pendulum = bc.compile(bc.load("pendulum"))
    run = pendulum.simulate((np.array([[0.3], [0.9], [1.5]]), np.zeros((3, 1))), duration=0.1, output=0.05)
    browser.open(run.animate().page())
    beside = browser.picture()
    shift = browser.do("bellcrank.view.motions[2].offset.length()")
    browser.do("bellcrank.view.arrange(false)")
    over = browser.picture()
    assert shift > 0.5 and browser.do("bellcrank.view.motions[2].offset.length()") == 0
    assert differ(beside, over) > 0.01
    browser.do("bellcrank.view.showTrack(bellcrank.view.motions[2], false)")
    assert differ(over, browser.picture()) > 0.001
    assert browser.said == []


def test_a_feed_moves_the_machine(browser: Browser) -> None:
    """What a live server does: its sliders call back, and poses come from outside."""
    from bellcrank.view.packing import pack

    scene = squeezed(pack(scene_of(bc.load("pendulum"))))
    script = f"""const packed = Uint8Array.from(atob("{scene}"), (c) => c.charCodeAt(0));
    const bytes = new Uint8Array(await new Response(new Blob([packed]).stream()
      .pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
    window.changes = [];
    window.bellcrank.start(bytes, {{ sliders: [{{ name: "hinge", min: -3, max: 3, value: 0, units: "rad" }}],
      change: (name, value) => window.changes.push([name, value]) }});"""
    browser.open(live_page("pendulum", script))
    before = browser.picture()
    browser.page.locator(".sliders input").fill("1.5")
    assert browser.do("window.changes") == [["hinge", 1.5]]
    browser.do("bellcrank.setPoses(Float32Array.of(0,0,0,1,0,0,0, 0,0,0,0.7317,0.6816,0,0))")
    assert differ(before, browser.picture()) > 0.005
    browser.do("""for (let i = 1; i < 100; i++) bellcrank.append(0.01 * i,
      Float32Array.of(0,0,0,1,0,0,0, 0,0,0,Math.cos(i/50),Math.sin(i/50),0,0))""")  # a run that goes on
    assert browser.do("[bellcrank.view.motions[0].frames, bellcrank.time]") == [100, pytest.approx(0.99, abs=1e-6)]
    later = browser.picture()
    browser.do("bellcrank.seek(0.3)")
    assert differ(later, browser.picture()) > 0.005
    assert browser.said == []


def test_pictures_for_films() -> None:
    scene = scene_of(bc.load("pendulum"))
    picture, = take_pictures(scene, [0.0], size=(200, 120), theme="dark")
    with Image.open(io.BytesIO(picture)) as image:
        assert image.size == (200, 120)
        assert np.asarray(image.convert("RGB"))[2, 2].tolist() == [0x16, 0x1a, 0x20]  # no bars, no buttons
