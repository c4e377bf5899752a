"""The command line and files: results, pictures, interrupts."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
import children
from cli_calls import call

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result in a file, with a picture beside it."""
    folder = tmp_path_factory.mktemp("run")
    done = call("simulate", "four_bar", "--set", "A=0.5", "--duration", 0.5, "--out", folder / "run.nc", "--plot",
                folder / "first.png", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["files"] == [str(folder / "run.nc"), str(folder / "first.png")]
    return folder / "run.nc"


def test_the_file_holds_the_run(result: Path) -> None:
    linkage = bc.compile(bc.load("four_bar"))
    expected = linkage.simulate(linkage.assemble(q={"A": [0.5]}), 0.5)
    with bc.open_result(result) as kept:
        assert kept.attrs["status"] == "finished"
        assert np.array_equal(kept.q.values, expected.q.values)
        kept.attach(linkage)


def test_simulate_draws(result: Path) -> None:
    assert (result.parent / "first.png").read_bytes()[:8] == PNG


def test_plot(result: Path, tmp_path: Path) -> None:
    done = call("plot", result)
    assert done.exit_code == 0 and done.stdout.strip() == str(result.with_suffix(".png"))
    assert result.with_suffix(".png").read_bytes()[:8] == PNG
    done = call("plot", result, "u.A", "--against", "A", "--out", tmp_path / "phase.svg", "--json")
    found = json.loads(done.stdout)
    assert found["files"] == [str(tmp_path / "phase.svg")] and found["what"] == ["u.A"] and found["samples"] == 501
    assert "<svg" in (tmp_path / "phase.svg").read_text()


@pytest.mark.parametrize(("arguments", "code", "says"), [
    (("nosuch.nc",), 3, "there is no such file"), ((".",), 3, "no such file"), (("RUN", "X"), 2, "joints are A, B, C"),
    (("RUN", "tau"), 2, "no 'tau'"), (("RUN", "--out", "x.xyz"), 2, "pictures end in"),
    (("RUN", "--out", "nosuch/x.png"), 3, "does not exist"), ((__file__,), 3, "cannot be read as NetCDF"),
])
def test_plot_refuses(result: Path, arguments: tuple[str, ...], code: int, says: str) -> None:
    done = call("plot", *(str(result) if a == "RUN" else a for a in arguments))
    assert done.exit_code == code and done.stdout == ""
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1 and says in done.stderr


@pytest.mark.parametrize("option", ["--out", "--plot"])
def test_files_that_cannot_be_written(option: str, tmp_path: Path) -> None:
    for place in (tmp_path / "nosuch" / "run.png", tmp_path):
        done = call("simulate", "pendulum", "--duration", 0.1, option, place)
        assert done.exit_code == 3 and done.stderr.startswith(f"error: {place}"), done.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
@pytest.mark.parametrize("option", ["--out", "--plot"])
def test_devices_are_never_replaced(option: str, tmp_path: Path) -> None:
    """A finished file takes the place of its name: that must not happen to what is no file."""
    pipe = tmp_path / "run.png"
    os.mkfifo(pipe)
    done = call("simulate", "pendulum", "--duration", 0.1, option, pipe)
    assert done.exit_code == 3 and "this is a device or a pipe" in done.stderr
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


@pytest.mark.usefixtures("signals_ignored")
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupted_runs_are_kept(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a long run: exit code 130, and a file with what there was."""
    file, picture = tmp_path / "run.nc", tmp_path / "run.png"
    partial = tmp_path / "run.partial.nc"
    with children.started([sys.executable, "-m", "bellcrank", "simulate", "four_bar", "--set", "A=0.5", "--duration",
                           "1e6", "--output", "0.1", "--out", file, "--plot", picture, "--json"]) as child:
        while not (partial.exists() and partial.stat().st_size > 200_000):
            assert child.poll() is None
            time.sleep(0.05)
        os.kill(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert err.startswith("error: four-bar: interrupted") and err.count("\n") == 1
    found = json.loads(out)
    assert found["status"] == "interrupted" and found["files"] == [str(file), str(picture)]
    assert picture.read_bytes()[:8] == PNG and not partial.exists()
    with bc.open_result(file) as kept:
        assert kept.attrs["status"] == "interrupted"
        assert kept.sizes["time"] == found["samples"] > 100
        assert float(kept.time[-1]) == found["time"] < 1e6
        assert float(kept.loop_error.max()) < 1e-9


def test_progress_only_on_terminals() -> None:
    """Over a second of work in a pipe: no bar, nothing on stderr."""
    done = children.run([sys.executable, "-m", "bellcrank", "simulate", "four_bar", "--set", "A=0.5", "--duration",
                         "4000", "--progress"])
    assert done.returncode == 0 and done.stderr == "" and "\x1b" not in done.stdout
    assert "finished" in done.stdout
