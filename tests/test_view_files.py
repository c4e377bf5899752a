"""Films, pages and stills as files, what notebooks show, and the command."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import bellcrank as bc
import children
from bellcrank.files import model_files
from bellcrank.view import animating, standalone_page
from cli_calls import call

HOSTILE = "</script><img src=x onerror=alert(1)>"
VIEWER = Path(__file__).parents[1] / "viewer"


@pytest.fixture(scope="module")
def run() -> bc.Result:
    pendulum = bc.compile(bc.load("pendulum"))
    return pendulum.simulate(([1.0], [0.0]), duration=0.2, output=0.1)


@pytest.fixture
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(animating, "why_not", lambda: "a browser")


def hostile() -> bc.Mechanism:
    m = bc.Mechanism(HOSTILE)
    bob = m.add_body(f"bob {HOSTILE}", bc.Inertia.point(1.0, (0, 0, -1)))
    m.add_joint(f"hinge {HOSTILE}", bc.Revolute("x"), m.ground, bob)
    return m


def test_a_page_is_one_small_file(run: bc.Result, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    run.animate(file, show=["forces"])
    text = file.read_text(encoding="utf-8")
    assert len(text) < 320_000
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?\w+:", text)  # nothing is loaded from elsewhere
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy == [standalone_page.POLICY] and policy[0].startswith("default-src 'none'; ")
    code = re.findall(r'id="bellcrank-code">([^<]*)<', text)[0]
    assert b"Permission is hereby granted, free of charge" in gzip.decompress(b64decode(code))  # the notice of three.js
    assert list(tmp_path.iterdir()) == [file]


def test_names_are_no_markup(tmp_path: Path) -> None:
    text = bc.animate(hostile()).page()
    assert "<img" not in text and text.count("</script>") == 3
    assert "<img" not in hostile()._repr_html_()
    frame = bc.animate(hostile())._repr_html_()
    assert "<img" not in frame and "<script" not in frame and 'sandbox="allow-scripts allow-downloads"' in frame


def test_films_without_a_browser(run: bc.Result, tmp_path: Path, no_browser: None) -> None:
    run.animate(tmp_path / "run.gif", size=(161, 100), fps=10)
    with Image.open(tmp_path / "run.gif") as film:
        assert (film.n_frames, film.size, film.info["duration"]) == (3, (162, 100), 100)
        pictures = []
        for i in range(3):
            film.seek(i)
            pictures.append(film.convert("RGB").tobytes())
    assert len(set(pictures)) == 3  # it moves
    run.animate(tmp_path / "run.png", size=(160, 100), time=0.1, theme="dark")
    with Image.open(tmp_path / "run.png") as still:
        assert still.size == (160, 100) and len(still.convert("RGB").getcolors(16_000)) > 20
    run.animate(tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text(encoding="utf-8").count("<polygon") > 10
    with pytest.raises(bc.ModelError, match="pictures by a browser need a browser"):
        run.animate(tmp_path / "b.png", renderer="browser")


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
def test_mp4(run: bc.Result, tmp_path: Path, no_browser: None) -> None:
    run.animate(tmp_path / "run.mp4", size=(160, 100), fps=10)
    assert (tmp_path / "run.mp4").read_bytes()[4:8] == b"ftyp"


def test_what_is_missing_is_named(run: bc.Result, tmp_path: Path, no_browser: None,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(bc.ModelError, match="MP4 films need ffmpeg"):
        run.animate(tmp_path / "run.mp4")
    assert animating.browser_program() is None
    assert not list(tmp_path.iterdir())


def test_nothing_half_written(run: bc.Result, tmp_path: Path, no_browser: None, monkeypatch: pytest.MonkeyPatch
                              ) -> None:
    file = tmp_path / "run.gif"
    file.write_bytes(b"old")

    def broken(*args: Any, **kwargs: Any) -> Any:
        yield _png()
        raise OSError("no more pictures")

    monkeypatch.setattr(animating, "draw_pictures", broken)
    with pytest.raises(OSError, match="no more pictures"):
        run.animate(file, fps=10)
    assert file.read_bytes() == b"old" and list(tmp_path.iterdir()) == [file]


def test_a_full_disk_leaves_what_was_there(run: bc.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "run.html"
    file.write_bytes(b"old")

    def refused(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_files.os, "replace", refused)
    with pytest.raises(bc.FileError, match="No space left"):
        run.animate(file)
    assert file.read_bytes() == b"old" and list(tmp_path.iterdir()) == [file]


def _png() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4, 4)).save(out, format="PNG")
    return out.getvalue()


@pytest.mark.parametrize(("options", "words"), [
    ({"file": "run.avi"}, "must end in .html, .gif, .mp4, .png, .svg"), ({"show": ["force"]}, "show='force' is not"),
    ({"theme": "pink"}, "theme must be"), ({"renderer": "x"}, "renderer must be"),
    ({"file": "run.gif", "speed": 0.0}, "must be positive"), ({"file": "run.gif", "fps": 1e5}, "is too long")])
def test_refusals(run: bc.Result, options: dict[str, Any], words: str) -> None:
    with pytest.raises(bc.BellcrankError, match=words):
        run.animate(**options)


def test_a_result_without_its_machine(run: bc.Result, tmp_path: Path) -> None:
    alone = run.copy().with_system(None)
    with pytest.raises(bc.StateError, match=r"attach\(system\)"):
        alone.animate(tmp_path / "run.html")
    assert "xarray" in alone._repr_html_()


def test_a_result_whose_file_knows_its_machine(run: bc.Result, tmp_path: Path) -> None:
    run.to_netcdf(tmp_path / "run.nc")
    with bc.open_result(tmp_path / "run.nc") as back:
        assert len(bc.animate(back).scene.tracks) == 1


def test_a_result_without_states(run: bc.Result) -> None:
    for empty in (run.isel(time=slice(0)), run.assign(q=float("nan") * run["q"])):
        with pytest.raises(bc.StateError, match="there is no state, or none is finite"):
            empty.animate()


def test_notebooks(run: bc.Result) -> None:
    """A still and a table, at once, and never an error."""
    assert run.system is not None
    for thing in (bc.load("four_bar"), run.system, run):
        text = thing._repr_html_()
        assert "<svg" in text and "<table" in text and thing is not None
    empty = bc.Mechanism("empty")
    assert "<svg" not in empty._repr_html_() and "none" in empty._repr_html_()
    empty.add_body("alone", bc.Inertia(1.0))
    assert "no picture" in empty._repr_html_()
    many = bc.load("chain", n=130)
    assert "<svg" not in many._repr_html_() and "130: " in many._repr_html_()


def test_the_command_shows_results(run: bc.Result, tmp_path: Path) -> None:
    """Of a result in a file, with its machine."""
    run.to_netcdf(tmp_path / "run.nc")
    done = call("animate", tmp_path / "run.nc", "--out", tmp_path / "own.html")  # its file says what it is of
    assert done.exit_code == 0 and (tmp_path / "own.html").exists()
    run.with_system(None).to_netcdf(tmp_path / "bare.nc")
    done = call("animate", tmp_path / "bare.nc", "--out", tmp_path / "run.html")
    assert done.exit_code == 2 and "--model MODEL" in done.stderr
    done = call("animate", tmp_path / "run.nc", "--model", "four_bar", "--out", tmp_path / "run.html")
    assert done.exit_code == 2 and "another mechanism" in done.stderr and not (tmp_path / "run.html").exists()
    done = call("animate", tmp_path / "run.nc", "--model", "pendulum", "--out", tmp_path / "run.html")
    assert done.exit_code == 0 and (tmp_path / "run.html").exists()


def test_a_selection_of_samples_is_no_warning(tmp_path: Path) -> None:
    """It is said with the file, in the page, and not at all of stills."""
    bc.compile(bc.load("pendulum")).simulate(([0.5], [0.0]), 0.4).to_netcdf(tmp_path / "run.nc")
    done = call("animate", tmp_path / "run.nc", "--out", tmp_path / "run.html")
    assert "240 pictures; 240 of 401 samples are shown)" in done.stdout and not done.stderr
    done = call("animate", tmp_path / "run.nc", "--out", tmp_path / "run.svg")
    assert "shown" not in done.stdout and "pictures" not in done.stdout and not done.stderr


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "four.html"
    done = call("animate", "four_bar", "--set", "A=0.5", "--duration", "0.05", "--trace", "coupler:0.5,0.2,0",
                "--out", out, "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["pictures"] > 5 and out.stat().st_size < 320_000
    done = call("animate", "four_bar", "--duration", "0", "--out", tmp_path / "four.svg")
    assert done.exit_code == 0 and (tmp_path / "four.svg").exists()
    done = call("animate", "four_bar", "--set", "u:A=30", "--step", "0.05", "--duration", "1", "--out", out)
    assert done.exit_code == 0 and "warning: energy changed" in done.stderr and "are too long" in done.stderr
    assert call("animate", "four_bar", "--out", tmp_path / "x.avi").exit_code == 2
    assert call("animate", "four_bar", "--out", tmp_path / "none" / "x.html").exit_code == 3
    assert call("animate", "four_bar", "--duration", "0", "--out", out, "--trace", "cranc").exit_code == 2
    assert call("animate", "four_bar", "--duration", "0", "--out", out, "--size", "big").exit_code == 2


@pytest.mark.skipif(not (VIEWER / "node_modules").is_dir() or shutil.which("node") is None,
                    reason="the viewer's packages are not installed (make viewer)")
def test_the_bundle_is_what_the_sources_give(tmp_path: Path) -> None:
    made = tmp_path / "viewer.js"
    assert children.run([str(shutil.which("node")), "build.mjs", made], cwd=VIEWER).returncode == 0
    kept = Path(standalone_page.__file__).parent / "page" / "viewer.js"
    assert made.read_bytes() == kept.read_bytes()
