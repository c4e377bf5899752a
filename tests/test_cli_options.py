"""Options of readers, examples and writers on the command line; keyframes; results as CSV."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from cli_calls import call
from mjcf_peer import four_bar
from test_convert import URDF
from whole_states import carrying

LEADER = URDF.replace("</robot>", """<link name="hand"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="wrist" type="revolute"><parent link="bob"/><child link="hand"/><axis xyz="1 0 0"/>
    <mimic joint="hinge"/><limit lower="-1" upper="1" effort="1" velocity="1"/><dynamics damping="0.5"/></joint>
</robot>""")


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    path = tmp_path / "robot.urdf"
    path.write_text(LEADER, encoding="utf-8")
    return path


def data(*arguments: object) -> Any:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments: object, code: int = 2) -> str:
    result = call(*arguments)
    assert result.exit_code == code, result.output
    assert result.stderr.count("\n") == 1 and "should not happen" not in result.stderr
    return str(result.stderr)


# -- options of readers and examples ------------------------------------------------------------------
@pytest.mark.parametrize(("word", "meant"), [
    ("true", True), ("True", True), ("YES", True), ("on", True), ("1", True),
    ("false", False), ("False", False), ("no", False), ("Off", False), ("0", False)])
def test_words_for_yes_and_no(word: str, meant: bool, robot: Path) -> None:
    assert data("inspect", robot, "--option", f"floating_base={word}")["mobility"] == (7 if meant else 1)


@pytest.mark.parametrize(("option", "says"), [
    ("floating_base=maybe", "--option floating_base=maybe: takes true or false"),
    ("floating_base=2", "takes true or false"),
    ("mimic=foo", "--option mimic=foo: takes one of coupler, free"),
    ("gravity=9.81", "--option gravity=9.81: takes 3 numbers, separated by commas"),
    ("gravity=0,0,down", "takes 3 numbers, separated by commas"),
    ("flying=true", "--option flying=true: no such option; there are floating_base, exact_angles, gravity, mimic"),
])
def test_options_of_a_reader_that_are_refused(option: str, says: str, robot: Path) -> None:
    for command in ("inspect", "simulate", "compare"):
        assert says in refused(command, robot, "--option", option)
    assert says in refused("convert", robot, robot.with_suffix(".yaml"), "--option", option)


def test_options_of_a_reader(robot: Path) -> None:
    assert data("inspect", robot, "--option", "mimic=free")["mobility"] == 2
    target = robot.with_suffix(".yaml")
    assert call("convert", robot, target, "--option", "gravity=0,-9.81,0").exit_code == 0
    assert bc.load(target).gravity == (0.0, -9.81, 0.0)
    assert call("convert", robot, target, "--option", "gravity=[1, 2, 3]", "--option", "closures=none").exit_code == 0
    assert bc.load(target).gravity == (1.0, 2.0, 3.0)


@pytest.mark.parametrize(("model", "option", "says"), [
    ("ladder", "cells=x", "--option cells=x: takes a whole number"), ("ladder", "cells=1.5", "takes a whole number"),
    ("ladder", "cells=-1", "ladder: cells must be at least 0, got -1"), ("chain", "n=-1", "at least 1"),
    ("ladder", "rungs=3", "--option rungs=3: no such option; there is cells"),
    ("pendulum", "n=3", "--option n=3: no such option; there are none"),
    ("pendulum", "n", "write NAME=VALUE")])
def test_options_of_an_example_that_are_refused(model: str, option: str, says: str) -> None:
    assert says in refused("inspect", model, "--option", option)


def test_a_flag_that_the_format_does_not_have(tmp_path: Path) -> None:
    bc.save(bc.load("pendulum"), tmp_path / "m.yaml")
    assert "--floating-base: no such option" in refused("inspect", tmp_path / "m.yaml", "--floating-base")
    assert "--floating-base: no such option" in refused("inspect", "pendulum", "--floating-base")


def test_examples_from_python_check_their_options() -> None:
    for wrong in ("x", 1.5, True, None):
        with pytest.raises(bc.ModelError, match="example 'ladder': cells takes a whole number"):
            bc.load("ladder", cells=wrong)
    assert len(bc.load("ladder", cells=np.int64(2)).bodies) == 5
    for name, option in (("ladder", "cells"), ("chain", "n"), ("rope_ladder", "rungs"), ("scissor_lift", "stages"),
                         ("four_bar_chain", "cells")):
        with pytest.raises(bc.ModelError, match=f"example {name!r}: {option} is at most 1000000, got 99999999999"):
            bc.load(name, **{option: 99_999_999_999})
    assert len(bc.load("chain", n=3, seed=99_999_999_999).bodies) == 3


# -- convert ------------------------------------------------------------------------------------------
def test_options_of_the_writer(tmp_path: Path) -> None:
    target = tmp_path / "four_bar.urdf"
    said = refused("convert", "four_bar", target, code=1)
    assert "drop_gravity=True" in said and "--write-option NAME=VALUE" in said
    said = refused("convert", "four_bar", target, "--write-option", "drop_gravity=yes", code=1)
    assert 'loops="loop_joint"' in said and "--write-option NAME=VALUE" in said
    assert not target.exists()
    done = call("convert", "four_bar", target, "--write-option", "drop_gravity=True", "--write-option",
                "loops=loop_joint")
    assert done.exit_code == 0, done.output
    assert len(bc.load(target).joints) == 5


@pytest.mark.parametrize(("target", "option", "says"), [
    ("x.urdf", "loops=knots", "--write-option loops=knots: takes one of loop_joint, constraint, gazebo, drake"),
    ("x.urdf", "drop_gravity=2", "--write-option drop_gravity=2: takes true or false"),
    ("x.yaml", "loops=drake", "--write-option loops=drake: no such option; there is meshes")])
def test_options_of_the_writer_that_are_refused(target: str, option: str, says: str, tmp_path: Path) -> None:
    assert says in refused("convert", "four_bar", tmp_path / target, "--write-option", option)


def test_from_python_the_writer_names_its_option(tmp_path: Path) -> None:
    with pytest.raises(bc.FileError, match="the writer of this format has no option 'loops'"):
        bc.save(bc.load("pendulum"), tmp_path / "m.yaml", loops="drake")


def test_what_the_new_file_does_not_hold_is_called_so(robot: Path) -> None:
    target = robot.with_suffix(".yaml")
    out = call("convert", robot, target).stdout
    assert "kept as data" not in out and "report" not in out
    assert f"not written to {target} (no part of the equations of motion):" in out
    assert re.search(r"<limit> of 'wrist': .*; not written$", out.partition("not written to")[2], re.MULTILINE)
    assert "<mimic> of 'wrist': coupled exactly" in out.partition("not written to")[0], "that is in the machine"
    assert "kept in report.limits" in call("inspect", robot).stdout


def test_warnings_are_printed_once(robot: Path) -> None:
    robot.write_text(LEADER.replace('<mass value="2"/>', '<mass value="0"/>'), encoding="utf-8")
    assert bc.read(robot)[1].surprises
    for arguments in (("convert", robot, robot.with_suffix(".yaml")), ("inspect", robot)):
        done = call(*arguments)
        assert done.exit_code == 0, done.output
        for note in bc.read(robot)[1].surprises:
            assert done.output.count(note.text.partition("; kept")[0]) == 1, done.output


# -- keyframes ----------------------------------------------------------------------------------------
MJCF = four_bar("""<actuator><position name="servo" joint="A" kp="2"/></actuator>
  <keyframe><key name="up" qpos="0.5 -0.4 0.2" qvel="1 0 0" ctrl="0.7"/><key name="rest" qpos="0 0 0"/></keyframe>""")


@pytest.fixture
def linkage(tmp_path: Path) -> Path:
    pytest.importorskip("mujoco")
    path = tmp_path / "linkage.xml"
    path.write_text(MJCF, encoding="utf-8")
    return path


def test_a_run_starts_at_a_keyframe(linkage: Path, tmp_path: Path) -> None:
    run = ("simulate", linkage, "--duration", 0.001, "--out", tmp_path / "run.nc", "--quiet")
    assert call(*run, "--keyframe", "up").exit_code == 0
    machine, report = bc.read(linkage)
    system, key = bc.compile(machine), report.keyframes["up"]
    guess, rates = system.neutral(), np.zeros(system.nu)  # files know nothing of what connects
    guess[carrying(system)] = [key["q"][name] for name in "ABD"]
    rates[carrying(system, True)] = [key["u"][name] for name in "ABD"]
    with bc.open_result(tmp_path / "run.nc") as result:
        start, speed = result.q.values[0], result.u.values[0]
        assert json.loads(result.attrs["parameters"]) == {"servo": 0.7}
    wanted = system.assemble(guess=guess, u=rates)
    assert np.abs(start - wanted.q).max() < 1e-12 and np.abs(speed - wanted.u).max() < 1e-12
    assert np.abs((start - guess)[carrying(system)]).max() < 0.2 and np.abs(speed).max() > 0.1
    assert np.abs(system.loop_error(start)).max() < 1e-12
    assert call(*run, "--keyframe", "up", "--set", "A=0.6", "--set", "u:A=3", "--set", "p:servo=0.1").exit_code == 0
    with bc.open_result(tmp_path / "run.nc") as result:
        assert result.q.values[0][0] == pytest.approx(0.6, abs=1e-12) and result.u.values[0][0] == 3.0
        assert json.loads(result.attrs["parameters"]) == {"servo": 0.1}


def test_keyframes_that_are_not_there(linkage: Path) -> None:
    assert "no keyframe 'down'; there are up, rest" in refused("simulate", linkage, "--keyframe", "down")
    assert "no keyframe 'up'; this machine has none" in refused("simulate", "four_bar", "--keyframe", "up")


# -- results as CSV -----------------------------------------------------------------------------------
def test_a_result_as_csv(tmp_path: Path) -> None:
    file = tmp_path / "run.csv"
    file.write_text("old", encoding="utf-8")
    run = ("simulate", "four_bar", "--set", "A=0.5", "--set", "u:A=2", "--duration", 0.02, "--output", 0.01)
    found = data(*run, "--out", file)
    assert found["files"] == [str(file)] and list(tmp_path.iterdir()) == [file]
    with file.open(encoding="utf-8", newline="") as text:
        head, *rows = list(csv.reader(text))
    assert head[:9] == ["time [s]", *(f"q.{name}.angle [rad]" for name in "ABCD"),
                        *(f"u.{name}.angle [rad/s]" for name in "ABCD")]
    assert head[9:] == ["kinetic_energy [J]", "potential_energy [J]", "stored_energy [J]", "energy [J]",
                        "loop_error [m]", "loop_rate_error [m/s]"]
    linkage = bc.compile(bc.load("four_bar"))
    expected = linkage.simulate(linkage.assemble(q={"A": 0.5}, u={"A": 2.0}), 0.02, output=0.01)
    values = np.array(rows, dtype=float)
    assert values.shape == (3, len(head))
    assert np.array_equal(values[:, 0], expected.time) and np.array_equal(values[:, 1:5], expected.q)
    assert np.array_equal(values[:, 5:9], expected.u) and np.array_equal(values[:, 12], expected["energy"])
    expected.to_csv(tmp_path / "same.csv")
    assert (tmp_path / "same.csv").read_text() == file.read_text()
    expected.to_netcdf(tmp_path / "run.nc")
    call("plot", tmp_path / "run.nc", "u.D", "A", "reaction.B", "--out", tmp_path / "some.csv")
    head, *rows = list(csv.reader((tmp_path / "some.csv").read_text(encoding="utf-8").splitlines()))
    assert head == ["time [s]", "D.angle [rad/s]", "A.angle [rad]", *(f"B f{i} [N]" for i in "xyz"),
                    *(f"B m{i} [N m]" for i in "xyz")]
    some = np.array(rows, dtype=float)
    assert np.allclose(some[:, 1], values[:, 8], atol=1e-12)
    assert np.abs(values[:, 5:8].sum(axis=1) + some[:, 1]).max() < 1e-12  # angles around a loop add up
    assert np.array_equal(some[:, 3:6], expected.reactions("B").sel(component=["fx", "fy", "fz"]))
    assert "no speed called 'D.slide'" in refused("plot", tmp_path / "run.nc", "u.D.slide")
    many = linkage.simulate((expected.q.values, expected.u.values), 0.002)
    with pytest.raises(bc.StateError, match=r"one of the batch, such as result\.isel\(sample=0\)"):
        many.to_csv(tmp_path / "many.csv")


def test_other_endings_are_refused(tmp_path: Path) -> None:
    said = refused("simulate", "pendulum", "--duration", 0.1, "--out", tmp_path / "run.txt")
    assert "results end in .nc (NetCDF) or .csv" in said and not list(tmp_path.iterdir())


def test_a_csv_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bellcrank.files import model_files

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_files.os, "replace", full)
    done = call("simulate", "pendulum", "--duration", 0.1, "--out", tmp_path / "run.csv", "--json")
    assert done.exit_code == 3 and "No space left" in done.stderr and json.loads(done.stdout)["files"] == []


# -- what is said about energy ------------------------------------------------------------------------
def test_a_damped_machine_is_called_so() -> None:
    out = call("simulate", "quarter_car", "--duration", 2).stdout
    line = next(line for line in out.splitlines() if line.startswith("energy drift"))
    assert "of the largest kinetic energy" not in line
    found = data("simulate", "quarter_car", "--duration", 2)
    lost = found["dissipated_energy"]
    assert f"damped: about {lost:.3g} J dissipated" in line
    car = bc.compile(bc.load("quarter_car"))
    energy = car.simulate(car.assemble(), 2.0)["energy"].values
    assert lost == pytest.approx(energy[0] - energy[-1], rel=1e-2)
    assert data("simulate", "pendulum", "--duration", 0.1)["dissipated_energy"] == 0.0
