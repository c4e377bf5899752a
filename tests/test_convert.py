"""The command ``convert``, and files of every format in every command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import bellcrank as bc
from bellcrank.io.load import describe, read
from bellcrank.io.native import same_mechanism
from cli_calls import call

URDF = """<robot name="swing">
  <link name="base"><inertial><mass value="2"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="bob"><inertial><origin xyz="0 0 -1"/><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="bob"/><axis xyz="1 0 0"/></joint>
  <transmission name="motor"/>
</robot>"""


def data(*arguments: object) -> Any:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_an_example_becomes_a_file(tmp_path: Path) -> None:
    for ending in ("yaml", "yml", "json"):
        result = call("convert", "four_bar", tmp_path / f"machine.{ending}")
        assert result.exit_code == 0, result.output
        assert f"written: {tmp_path / f'machine.{ending}'}" in result.stdout
        assert same_mechanism(bc.load("four_bar"), bc.load(tmp_path / f"machine.{ending}"))


def test_options_reach_the_example(tmp_path: Path) -> None:
    found = data("convert", "ladder", tmp_path / "l.json", "--option", "cells=2")
    assert found["status"] == "finished" and found["bodies"] == 5
    assert same_mechanism(bc.load("ladder", cells=2), bc.load(tmp_path / "l.json"))


def test_a_urdf_becomes_a_file_and_the_report_is_shown(tmp_path: Path) -> None:
    model, target = tmp_path / "swing.urdf", tmp_path / "swing.yaml"
    model.write_text(URDF, encoding="utf-8")
    result = call("convert", model, target)
    assert result.exit_code == 0, result.output
    assert "<transmission> of 'motor'" in result.stdout
    found = data("convert", model, target, "--floating-base")
    assert any(n["element"] == "transmission" and n["line"] == 7 for n in found["report"]["notes"])
    assert same_mechanism(bc.load(target), bc.load(model, floating_base=True))
    assert "<transmission> of 'motor'" in call("inspect", model).stdout
    assert data("inspect", model)["report"] == {**found["report"]}


def test_every_command_reads_files(tmp_path: Path) -> None:
    target = tmp_path / "machine.yaml"
    assert call("convert", "pendulum", target).exit_code == 0
    assert data("inspect", target)["model"] == "pendulum"
    assert data("simulate", target, "--duration", 0.1)["status"] == "finished"
    assert data("compare", target, "--states", 2, "--method", "recursive")["model"] == "pendulum"


@pytest.mark.parametrize(("arguments", "code", "wanted"), [
    (("four_bar", "x.txt"), 2, "ends in"), (("nosuch.yaml", "x.json"), 3, "nosuch.yaml"),
    (("nosuch", "x.json"), 3, "neither a file nor an example"), (("ladder", "x.json", "--option", "bars=3"), 2, "bars"),
    (("four_bar", "no/such/folder/x.json"), 3, "cannot be written")])
def test_what_goes_wrong_has_an_exit_code(arguments: tuple[str, ...], code: int, wanted: str, tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("convert", *arguments)
    assert result.exit_code == code, result.output
    assert wanted in result.stderr and len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_file_is_not_written_over_itself(tmp_path: Path) -> None:
    target = tmp_path / "machine.yaml"
    call("convert", "pendulum", target)
    assert call("convert", target, target).exit_code == 2


def test_what_a_format_cannot_hold_is_not_written(tmp_path: Path) -> None:
    m = bc.load("pendulum")
    m.add_bushing("bushing", m.ground, m.bodies[0], stiffness=(1, 2, 3))
    source, target = tmp_path / "machine.yaml", tmp_path / "machine.urdf"
    bc.save(m, source)
    result = call("convert", source, target)
    assert result.exit_code == 1, result.output
    assert "bushing" in result.stderr
    assert not target.exists()


@pytest.mark.parametrize("ending", ["urdf", "sdf", "xml"])
def test_to_other_formats_and_back(ending: str, tmp_path: Path) -> None:
    target, back = tmp_path / f"machine.{ending}", tmp_path / "back.yaml"
    assert call("convert", "double_pendulum", target).exit_code == 0
    assert call("convert", target, back).exit_code == 0
    systems = [bc.compile(bc.load(x)) for x in ("double_pendulum", back)]
    found = [s.forward_dynamics([0.1, 0.2], [0.3, 0.4]) for s in systems]
    assert abs(found[0] - found[1]).max() < 1e-9


def test_an_xml_file_is_what_its_outermost_element_says(tmp_path: Path) -> None:
    model = tmp_path / "swing.xml"
    model.write_text(URDF, encoding="utf-8")
    assert bc.load(model).name == "swing"
    model.write_text("<html/>", encoding="utf-8")
    with pytest.raises(bc.FileError, match=":1: <html>: is no model"):
        bc.load(model)


def test_names_that_are_nearly_right() -> None:
    with pytest.raises(bc.FileError, match=r"'fourbar' is neither .*; did you mean 'four_bar'\? Examples are andrews"):
        bc.load("fourbar")
    with pytest.raises(bc.FileError, match="neither a file nor an example; examples are andrews"):
        bc.load("xyz")


@pytest.mark.parametrize("old", ['name="bob"', 'link="bob"', 'name="swing"', 'name="hinge"'])
def test_names_with_characters_that_are_not_seen_are_refused(old: str, tmp_path: Path) -> None:
    model = tmp_path / "swing.urdf"
    model.write_text(URDF.replace(old, old[:-1] + '\u202e"'), encoding="utf-8")
    if old.startswith("link"):
        model.write_text(model.read_text(encoding="utf-8").replace('name="bob"', 'name="bob\u202e"'), encoding="utf-8")
    with pytest.raises(bc.FileError, match="U.202E|u202e"):
        bc.load(model)


def test_what_was_read_is_told_in_words() -> None:
    machine, report = read("four_bar")
    assert describe(report) == "four_bar: nothing to remark"
    assert describe(report, machine).endswith("read: 3 bodies, 4 joints")
