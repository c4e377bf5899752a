"""Pictures taken by a browser that shows the page without a window: stills and films as the page looks."""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bellcrank.errors import BellcrankError
from bellcrank.view.scene import Scene
from bellcrank.view.standalone_page import page_of

__all__ = ["BrowserError", "browser_program", "opened_page", "take_pictures", "wait_until_shown",
           "why_not"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
#: software rendering, the same on every machine
ARGUMENTS = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--hide-scrollbars")
#: seconds until a page must be there
_PATIENCE = 60.0


class BrowserError(BellcrankError):
    """A browser did not do what it was asked for."""


def browser_program() -> str | None:
    """The browser to use: the one that the environment variable BELLCRANK_BROWSER names, or one of Chromium's kin."""
    named = os.environ.get("BELLCRANK_BROWSER")
    if named:
        return shutil.which(named)
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def why_not() -> str:
    """What is missing for pictures by a browser; nothing if they can be taken."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "the Python package playwright (pip install 'bellcrank[view]')"
    return "" if browser_program() else "a browser (Chromium or Chrome; or name one in BELLCRANK_BROWSER)"


@contextmanager
def opened_page(width: int, height: int, scale: float = 1.0) -> Iterator[Any]:
    """An empty page of a browser that has no network."""
    from playwright.sync_api import Error, sync_playwright

    root = hasattr(os, "geteuid") and os.geteuid() == 0  # where Chromium's own sandbox does not start
    arguments = [*ARGUMENTS, *(["--no-sandbox"] if root else [])]
    try:
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=browser_program(), args=arguments)
            try:
                context = browser.new_context(offline=True, viewport={"width": width, "height": height},
                                              device_scale_factor=scale)
                yield context.new_page()
            finally:
                browser.close()
    except Error as error:
        raise BrowserError(f"the browser failed: {str(error).splitlines()[0]}") from error


def wait_until_shown(page: Any) -> None:
    """Wait until the page has drawn its first picture, or say what it says instead."""
    begin = time.monotonic()  # asked again and again from here: the page's policy forbids to evaluate text in it
    while not page.evaluate("Boolean(window.bellcrank && window.bellcrank.ready)"):
        if time.monotonic() - begin > _PATIENCE:
            said = page.evaluate("document.getElementById('app')?.textContent ?? ''")
            raise BrowserError(f"the page showed nothing within {_PATIENCE} s: {said[:300]}")
        page.wait_for_timeout(20)


def take_pictures(scene: Scene, times: Sequence[float], *, size: tuple[int, int], theme: str = "light",
                  show: Mapping[str, bool] | None = None, view: str | None = None) -> list[bytes]:
    """PNG pictures of a scene at the given times, without buttons and plots around them. Cost: about a tenth of a
    second each."""
    with ThreadPoolExecutor(1) as thread:  # notebooks have a loop of events in theirs, which playwright refuses
        return thread.submit(_taken, scene, times, size, theme, show or {}, view).result()


def _taken(scene: Scene, times: Sequence[float], size: tuple[int, int], theme: str, show: Mapping[str, bool],
           view: str | None) -> list[bytes]:
    with tempfile.TemporaryDirectory(prefix="bellcrank-") as folder, opened_page(*size) as page:
        file = Path(folder) / "scene.html"
        file.write_text(page_of(scene), encoding="utf-8")
        page.goto(file.as_uri())
        wait_until_shown(page)
        page.evaluate("bellcrank.film(true)")
        page.evaluate("theme => bellcrank.view.setTheme(theme)", theme)
        for name, on in show.items():
            page.evaluate("([name, on]) => bellcrank.show(name, on)", [name, on])
        if view is not None:
            page.evaluate("name => bellcrank.from(name)", view)
        found = []
        for when in times:
            text = page.evaluate("t => { bellcrank.view.seek(t); return bellcrank.snapshot(); }", float(when))
            found.append(base64.b64decode(text.partition(",")[2]))
        return found
