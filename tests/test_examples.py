"""The scripts in examples/ do what they say."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import bellcrank as bc

FOLDER = Path(__file__).parents[1] / "examples"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_simulate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    car, *linkages = script("03_simulate").main(tmp_path / "build")
    assert (tmp_path / "build" / "quarter_car.png").stat().st_size > 10_000
    assert all(r.attrs["status"] == "finished" and r.attrs["largest_loop_error"] < 1e-12 for r in (car, *linkages))
    assert all(r.attrs["energy_drift"] < 1e-6 for r in linkages)
    assert abs(float(car.u.sel(speed="arm.angle")[-1])) < 1e-3, "the damper brings the wheel to rest"
    assert capsys.readouterr().out.count("four-bar") == 3


@pytest.mark.parametrize(("machine", "bound"), [("four_bar", 2e-4), ("arm", 2e-3)])
def test_computed_torque_converges(machine: str, bound: float) -> None:
    """The error dies out as the law says: like (1 + lambda t) exp(-lambda t), up to what sampling leaves."""
    times, error = getattr(script("04_computed_torque"), machine)(duration=1.5)
    assert error[0] == pytest.approx(0.2)
    early = (times > 0.05) & (times < 0.3)
    law = 0.2 * (1.0 + 8.0 * times[early]) * np.exp(-8.0 * times[early])
    assert np.abs(error[early] / law - 1.0).max() < 0.15
    assert error[-1] < bound
    assert np.all(np.diff(error[times > 0.9]) < 1e-9), "after the motion has ended the error only falls"


def test_the_least_torque_is_less_and_gets_there() -> None:
    """Coarse: 12 intervals, and torques held for 5 ms."""
    pytest.importorskip("casadi")
    module = script("08_minimal_torque")
    linkage = module.machine()
    plain = module.straightforward(linkage, 25)
    best = module.optimal(linkage, plain)
    assert 0.8 * plain.cost() < best.cost() < 0.9 * plain.cost()
    assert np.abs(linkage.loop_error(best.q)).max() < 1e-12
    assert np.abs(module.replayed(linkage, plain, 5e-3) - module.GOAL).max() < np.radians(1.0)
    assert np.abs(module.replayed(linkage, best, 5e-3) - module.GOAL).max() < np.radians(1.0)


def test_an_inverted_linkage_is_held(capsys: pytest.CaptureFixture[str]) -> None:
    script("09_inverted_linkage").main()
    free, held, end = capsys.readouterr().out.splitlines()
    assert "6.31" in free and "-4." in held and "stands within" in end


def test_inertias_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    script("10_identification").main()
    assert [line.split(": ")[1].split(" of")[0] for line in capsys.readouterr().out.splitlines()] == ["43", "8"]


def test_a_hexapod_is_calibrated(capsys: pytest.CaptureFixture[str]) -> None:
    """From 15 mm at the rim of the platform to less than 0.01 mm; its Jacobian is that of differences."""
    module = script("12_hexapod_calibration")
    module.main()
    jacobian, poses = capsys.readouterr().out.splitlines()
    assert "each leg holds 96 N" in jacobian and "calibration of 42 parameters" in poses
    machine = bc.compile(module.hexapod(), independent=module.LEGS, backend="numpy")
    middle = machine.assemble(q=dict.fromkeys(module.LEGS, 0.0))
    readings = 0.05 * np.cos(np.arange(6.0)) + 1e-6 * np.concatenate([np.zeros((1, 6)), np.eye(6), -np.eye(6)])
    states, found = module.poses(machine, readings, middle)
    slopes = (found[1:7] - found[7:]) / 2e-6
    spin = slopes[:, :9].reshape(6, 3, 3) @ found[0, :9].reshape(3, 3).T
    wanted = np.stack([*(module.ARM * spin[:, i, j] for i, j in ((2, 1), (0, 2), (1, 0))), *slopes[:, 9:].T])
    np.testing.assert_allclose(module.jacobian(machine, states)[0], wanted, rtol=0, atol=1e-8)


@pytest.mark.parametrize("folder", ("benchmarks", "examples"))
def test_scripts_find_what_they_import(folder: str) -> None:
    """Parts of one script in other files are there; other libraries are imported where they are used."""
    root = FOLDER.parent
    own = {file.stem for place in ("tests", folder) for file in (root / place).glob("*.py")}
    for file in (root / folder).glob("*.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name in [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]:
                    top = name.partition(".")[0]
                    assert top in own or importlib.util.find_spec(top), f"{file.name} imports {name}, which is not here"
