"""The command line: every command, what it prints, and how it ends."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import children
from bellcrank.cli.models import settings_of, with_settings
from bellcrank.cli.output import UsageError
from cli_calls import call

URDF = """<robot name="swing">
  <link name="base"><inertial><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="rod"><inertial><mass value="1.5"/><origin xyz="0 0 -0.4"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="pin" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="1 0 0"/></joint>
</robot>"""


def run(*arguments: object) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def data(*arguments: object) -> dict[str, Any]:
    """What --json prints: one object, in one line."""
    text = run(*arguments, "--json")
    assert text.count("\n") == 1
    return dict(json.loads(text))


def refused(code: int, *arguments: object) -> str:
    """The one line on stderr of a call that must end with a code."""
    result = call(*arguments)
    assert result.exit_code == code, (result.exit_code, result.output)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1, result.stderr
    return str(result.stderr)


# -- machines and formulations ------------------------------------------------------------------
def test_examples() -> None:
    assert "quadruped" in run("examples")
    found = {e["name"]: e for e in data("examples")["examples"]}
    assert sorted(found) == bc.examples.names()
    assert found["four_bar"]["loops"] == 1 and found["four_bar"]["about"].startswith("A crank, a coupler")
    assert found["ladder"]["options"] == {"cells": 4}


def test_compare() -> None:
    lines = run("compare", "pendulum", "--states", "8").splitlines()
    assert any(line.startswith("momenta (q, p)") for line in lines)
    found = data("compare", "pendulum", "--states", 8, "--method", "recursive", "--method", "dense")
    assert [r["method"] for r in found["rows"]] == ["recursive", "dense"]
    assert found["rows"][0]["disagreement"] < 1e-12 and found["rows"][0]["operations"]["divs"] == 0


def test_compare_with_loops() -> None:
    lines = run("compare", "four_bar", "--states", "8").splitlines()
    assert any(line.startswith("elimination") for line in lines)
    assert any(line.startswith("dense ") and " - " in line for line in lines)
    assert any(line.startswith("-: on this machine the method is not one piece of compiled code") for line in lines)
    assert any(line.startswith("recursive/centroid, recursive/joint, recursive/origin: ") for line in lines)
    assert "-:" not in run("compare", "four_bar", "--states", "2", "--method", "recursive")


def test_inspect() -> None:
    text = run("inspect", "four_bar")
    assert "loop through A, B, C, D" in text
    assert "mobility: 1 (by counting joints and loops: -2)" in text
    assert "cut at B (Revolute): as asked for" in run("inspect", "four_bar", "--cut", "B")
    assert "mobility: 6" in run("inspect", "arm")


def test_inspect_for_machines() -> None:
    found = data("inspect", "ladder", "--option", "cells=2")
    assert found["model"] == "ladder of 2" and found["mobility"] == 2
    assert found["joints"][0] == {"name": "arm0", "type": "Universal", "parent": "ground", "child": "arm0"}
    assert len(found["loops"]) == 2 and found["loops"][0]["redundant"] > 0


def test_cite() -> None:
    assert "Naudet" in run("cite", "momenta")
    assert "Naudet" in data("cite", "momenta")["bibtex"]
    assert run("cite").startswith("@software{bellcrank,") and bc.__version__ in run("cite")
    assert "there are auto, recursive, kane" in refused(2, "cite", "nobody")
    assert "Kang" in run("cite", "auto") and "Bellcrank team" in run("cite", "auto")


def test_help_shows_examples_and_exit_codes() -> None:
    for word in ("130  interrupted", "3    a file", "2    wrong usage", "1    the machine or the run failed"):
        assert word in run("--help")
    for command in ("simulate", "inspect", "compare", "examples", "plot", "cite"):
        assert f"  bellcrank {command}" in run(command, "--help").partition("Examples:")[2]
        assert "--json" in run(command, "--help") and "--quiet" in run(command, "--help")
    assert run("--version").strip() == f"bellcrank {bc.__version__}"
    assert run() == run("--help")


# -- simulate -----------------------------------------------------------------------------------
def test_simulate_prints_a_table() -> None:
    rows = {line[:12].strip(): line[12:].strip() for line in
            run("simulate", "four_bar", "--set", "A=0.5", "--duration", 0.5).splitlines()}
    assert list(rows) == ["model", "stepper", "steps", "wall time", "speed", "samples", "loop error", "energy drift",
                          "status"]
    assert rows["model"] == "four-bar" and rows["steps"] == "500" and rows["status"] == "finished"
    assert float(rows["loop error"]) < 1e-12


def test_simulate_is_what_the_library_computes() -> None:
    found = data("simulate", "four_bar", "--set", "q:A=0.5", "--set", "u:A=1.5", "--duration", 0.3, "--stepper",
                 "dop853", "--method", "kane", "--output", 0.1)
    linkage = bc.compile(bc.load("four_bar"), "kane")
    expected = linkage.simulate(linkage.assemble(q={"A": 0.5}, u={"A": 1.5}), 0.3, stepper="dop853", output=0.1)
    assert found["status"] == "finished" and found["reason"] == ""
    assert found["method"] == "kane" and found["stepper"] == "dop853" and found["samples"] == 4
    assert found["steps"] == expected.attrs["steps"] and found["time"] == 0.3 and found["files"] == []
    assert list(found["q"]) == ["A.angle", "B.angle", "C.angle", "D.angle"]
    assert list(found["q"].values()) == pytest.approx(expected.q.values[-1].tolist(), abs=1e-12)
    assert list(found["u"].values()) == pytest.approx(expected.u.values[-1].tolist(), abs=1e-12)
    assert 0.0 <= found["largest_loop_error"] < 1e-12 and 0.0 < found["energy_drift"] < 1e-7
    assert found["wall_time"] > 0.0 and found["speed"] > 0.0


def test_tolerances_and_steps_reach_the_run() -> None:
    swing = ("simulate", "pendulum", "--set", "hinge=1", "--duration", 2, "--stepper", "dopri5")
    fine = data(*swing)
    for coarse in (data(*swing, "--rtol", 1e-4), data(*swing, "--atol", 1e-4)):
        assert 2 * coarse["steps"] < fine["steps"] and fine["energy_drift"] < 1e-3 * coarse["energy_drift"]
    assert data("simulate", "pendulum", "--duration", 1, "--step", 0.01)["steps"] == 100


def test_several_numbers_and_coordinates() -> None:
    found = data("simulate", "crane", "--set", "travel=1", "--set", "u:swing=0.1,0.2,0.3", "--set",
                 "u:traverse.slide=2", "--duration", 0.001)
    assert found["q"]["travel.slide"] == pytest.approx(1.0, abs=1e-3)
    assert found["u"]["swing.wz"] == pytest.approx(0.3, abs=1e-2)
    assert found["u"]["traverse.slide"] == pytest.approx(2.0, abs=1e-2)


def test_parameters() -> None:
    m = bc.Mechanism("lift")
    load = m.add_body("load", bc.Inertia(m.parameter("load", 2.0), (0, 0, 0), np.eye(3)))
    m.add_joint("slide", bc.Prismatic("z"), m.ground, load)
    m.parameter("slide", 1.0)
    system = bc.compile(m)
    found = settings_of(system, ["p:load=3", "q:slide=0.5", "u:slide=1", "p:slide=4"])
    assert found == ({"slide": [0.5]}, {"slide": [1.0]}, {"load": 3.0, "slide": 4.0})
    assert settings_of(system, ["load=5"]).parameters == {"load": 5.0}
    with pytest.raises(UsageError, match="a joint and a parameter; write q:slide= or p:slide="):
        settings_of(system, ["slide=1"])
    with pytest.raises(UsageError, match="no parameter 'x'; there are load, slide"):
        settings_of(system, ["p:x=1"])
    with pytest.raises(UsageError, match=r"'load' is a body, which the joint 'slide' moves: slide\.slide="):
        settings_of(system, ["q:load.slide=1"])
    assert with_settings(system, found).parameters == {"load": 3.0, "slide": 4.0}


def test_a_file_as_model(tmp_path: Path) -> None:
    model = tmp_path / "swing.urdf"
    model.write_text(URDF)
    assert data("simulate", model, "--set", "pin=0.3", "--duration", 0.1)["model"] == "swing"
    assert data("inspect", model, "--floating-base")["mobility"] == 7


def test_quiet_prints_nothing(tmp_path: Path) -> None:
    result = call("simulate", "pendulum", "--duration", 0.1, "--quiet", "--out", tmp_path / "run.nc")
    assert (result.exit_code, result.output) == (0, "")
    for arguments in (("examples",), ("inspect", "pendulum"), ("cite", "kane"),
                      ("plot", tmp_path / "run.nc"), ("compare", "pendulum", "--states", 2, "--method", "kane")):
        result = call(*arguments, "-q")
        assert (result.exit_code, result.output) == (0, "")


# -- wrong usage ----------------------------------------------------------------------------------
@pytest.mark.parametrize(("setting", "says"), [
    ("X=1", "no coordinate 'X'; there are A, B, C, D"),
    ("u:E=1", "no speed 'E'; there are A, B, C, D"),
    ("p:mass=1", "no parameter 'mass'; this machine has no parameters"),
    ("A", "write NAME=VALUE"), ("A=", "write NAME=VALUE"), ("A=one", "'one' is not a number"),
    ("A=nan", "must be finite"), ("A=1,2", "'A' takes 1 number, got 2"), ("q:=1", "no coordinate ''"),
])
def test_bad_settings(setting: str, says: str) -> None:
    assert says in refused(2, "simulate", "four_bar", "--set", setting)


def test_settings_given_twice() -> None:
    assert "set twice" in refused(2, "simulate", "four_bar", "--set", "A=1", "--set", "q:A=2")


@pytest.mark.parametrize(("arguments", "says"), [
    (("--duration", "-1"), "--duration must be positive"), (("--duration", "inf"), "--duration must be positive"),
    (("--duration", "long"), "'--duration'"), (("--step", "0"), "--step must be positive"),
    (("--stepper", "euler"), "no stepper 'euler'; there are rk4"),
    (("--method", "guess"), "no formulation 'guess'; there are auto, recursive"),
    (("--output", "0.0015"), "needs a multiple of the step"), (("--plot", "run.xyz"), "pictures end in one of"),
    (("--nonsense",), "No such option"), (("--option", "cells=3"), "--option cells=3: no such option; there are none"),
])
def test_bad_options(arguments: tuple[str, ...], says: str) -> None:
    assert says in refused(2, "simulate", "four_bar", *arguments)


def test_bad_commands() -> None:
    assert "No such command 'simulat'" in refused(2, "simulat")
    assert "MODEL" in refused(2, "simulate")


def test_bad_models(tmp_path: Path) -> None:
    assert "is neither a file nor an example; examples are" in refused(3, "simulate", "nosuch")
    assert "nosuch.urdf" in refused(3, "inspect", "nosuch.urdf")
    broken = tmp_path / "broken.urdf"
    broken.write_text("<robot name='x'><link")
    assert "broken.urdf" in refused(3, "compare", broken)


def test_errors_for_machines() -> None:
    result = call("simulate", "nosuch", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == found["exit_code"] == 3 and found["status"] == "error"
    assert result.stderr == f"error: {found['error']}\n"


# -- runs that fail -------------------------------------------------------------------------------
def test_a_machine_that_cannot_be_assembled() -> None:
    assert "the loops do not close" in refused(1, "simulate", "four_bar", "--set", "A=3", "--set", "D=9")


def test_a_run_that_fails_keeps_what_it_has(tmp_path: Path) -> None:
    """Steps far too long for the spring: numbers overflow. No Python warning appears, and the samples are written."""
    file = tmp_path / "run.nc"
    result = children.run([sys.executable, "-m", "bellcrank", "simulate", "quarter_car", "--step", "0.5",
                           "--duration", "200", "--out", file, "--json"])
    found = json.loads(result.stdout)
    assert result.returncode == 1 and found["status"] == "diverged" and found["reason"]
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("error: quarter car: diverged: ")
    assert "Warning" not in result.stderr
    with bc.open_result(file) as kept:
        assert kept.attrs["status"] == "diverged" and kept.sizes["time"] == found["samples"] >= 1


def test_tracebacks_only_on_demand() -> None:
    """As users see it: a process of its own."""
    for extra, lines in (((), 1), (("--debug",), 5)):
        done = children.run([sys.executable, "-m", "bellcrank", "compare", "nosuch.urdf", *extra])
        assert done.returncode == 3 and done.stdout == ""
        assert "error: nosuch.urdf" in done.stderr.splitlines()[-1]
        assert (done.stderr.count("\n") == 1) if lines == 1 else (done.stderr.count("\n") > lines)
        assert ("Traceback" in done.stderr) == bool(extra)


# -- narrow terminals -----------------------------------------------------------------------------
def test_on_a_narrow_terminal_the_descriptions_are_cut() -> None:
    """Names, numbers and options stay whole; the last column gives way."""
    environment = {"COLUMNS": "80", "FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm"}
    done = children.run([sys.executable, "-m", "bellcrank", "examples"], env=environment)
    head, *lines = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).splitlines()
    assert head.split() == ["name", "bodies", "speeds", "loops", "options", "about"]
    assert max(map(len, lines)) <= 80 and any(line.rstrip().endswith("…") for line in lines)
    wanted = data("examples")["examples"]
    assert len(lines) == len(wanted)
    for line, row in zip(lines, wanted, strict=True):
        words = line.split()
        assert words[:4] == [row["name"], *(str(row[k]) for k in ("bodies", "speeds", "loops"))]
        assert words[4:4 + len(row["options"])] == list(row["options"])
        assert row["about"].startswith(line[head.index("about"):].rstrip().removesuffix("…"))
