"""Whipple's bicycle against published figures: eigenvalues over speed, coefficients, and one nonlinear state."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

import bellcrank as bc
from bellcrank.analyze.linear_models import eigen

DATA = json.loads((Path(__file__).parent / "data" / "outside" / "bicycle.json").read_text(encoding="utf-8"))
TABLE = DATA["linear"]["eigenvalues"]
#: signs of yaw, lean, pitch, steer, rear and front in z up, y left against z down, y right
SIGNS = {"yaw": -1, "lean": 1, "pitch": -1, "steer": -1, "rear": -1, "front": -1}
JOINTS = {"yaw": "place.angle"} | {name: f"{name}.angle" for name in SIGNS if name != "yaw"}


def bicycle(free: bool = False, **options: object) -> bc.System:
    return bc.compile(bc.load("whipple_bicycle", free=free), backend="numpy", **options)


def upright(system: bc.System, speed: float) -> bc.State:
    """Straight ahead."""
    lean = "free.wx" if "free.wx" in system.speed_names else "lean"
    return system.assemble(u={lean: 0.0, "steer": 0.0, "rear": speed / 0.3})


def published(speed: str) -> np.ndarray:
    """The four eigenvalues of lean and steer."""
    listed = [complex(*pair) for pair in TABLE[speed]]
    return np.sort_complex([*listed, *(x.conjugate() for x in listed if x.imag)])


def test_the_numbers_are_those_of_the_benchmark() -> None:
    """Masses, centres and inertias, turned about x by half a turn."""
    turn = np.diag([1.0, -1.0, -1.0])
    for body in bc.load("whipple_bicycle").bodies:
        if body.inertia.mass:
            expected = DATA["bodies"][body.name.replace("_", " ")]
            xx, xy, xz, yy, yz, zz = body.inertia.inertia
            assert body.inertia.mass == expected["mass"]
            assert np.abs(np.array(body.inertia.com) - turn @ expected["com"]).max() == 0.0
            found = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            assert np.abs(found - turn @ expected["inertia"] @ turn).max() == 0.0


@pytest.mark.parametrize(("free", "options", "speeds"), [
    (False, {}, tuple(TABLE)), (True, {}, tuple(TABLE)), (False, {"method": "kane"}, "3"),
    (True, {"method": "recursive"}, "8"),
    (False, {"independent": ["place.x", "place.angle", "lean"]}, "1")], ids=str)
def test_eigenvalues_over_speed(free: bool, options: dict[str, object], speeds: Iterable[str]) -> None:
    """Table 2: twenty eigenvalues, exact derivatives, whatever the base, the method and the independent speeds."""
    system = bicycle(free, **options)
    assert system.dof == 3
    for speed in speeds:
        model = bc.analyze.linearize(system, upright(system, float(speed)))
        assert model.error == 0.0
        assert model.A.shape == (10, 10)
        values = model.eigenvalues[np.argsort(np.abs(model.eigenvalues))]
        assert np.abs(values[:6]).max() < 1e-6
        expected = published(speed)
        assert np.abs(np.sort_complex(values[6:]) - expected).max() < 1e-11 * np.abs(expected).min(), speed


def test_coefficients() -> None:
    """M q'' + v C1 q' + (g K0 + v^2 K2) q = torques of lean and steer, with the coefficients of the benchmark, and how
    place and heading follow."""
    speed, turn = 4.0, np.diag([1.0, -1.0])
    mass = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
    k0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
    k2 = np.array([[0.0, 76.59734589573222], [0.0, 2.65431523794604]])
    c1 = np.array([[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])
    system = bicycle()
    names = ["lean", "steer", "rear", "place.x", "place.y", "place.angle", "front"]
    model = bc.analyze.linearize(system, upright(system, speed), coordinates=names, inputs=["lean", "steer"],
                                 outputs=["lean", "place.angle.rate", "front.rate"])
    assert model.states == (*names, "lean.rate", "steer.rate", "rear.rate")
    found = turn @ mass @ turn @ np.hstack([model.B[7:9], model.A[7:9, 7:9], model.A[7:9, :2]])
    expected = np.hstack([np.eye(2), -speed * turn @ c1 @ turn, -turn @ (9.81 * k0 + speed**2 * k2) @ turn])
    assert np.abs(found - expected).max() < 1e-13 * np.abs(expected).max()
    assert np.abs(model.A[7:9, [2, 3, 4, 5, 6, 9]]).max() < 1e-12
    cosine = np.cos(np.pi / 10.0) / 1.02
    heading = [0, speed * cosine, 0, 0, 0, 0, 0, 0, 0.08 * cosine, 0]
    assert np.abs(model.A[5] - heading).max() < 1e-13
    assert np.abs(model.C - [np.eye(10)[0], heading, 0.3 / 0.35 * np.eye(10)[9]]).max() < 1e-13


def test_modes_and_their_shapes() -> None:
    """Weave, capsize and caster at 5 m/s, where all are stable; shapes are eigenvectors."""
    system = bicycle()
    found = bc.analyze.modes(system, upright(system, 5.0), damped=True)
    expected = sorted((complex(*pair) for pair in TABLE["5"]), key=abs)
    assert np.abs(found.eigenvalues[6:] - expected).max() < 1e-11
    assert not found.unstable.any()
    model = found.model
    values, vectors = eigen(model.A)
    assert np.abs(model.A @ vectors - vectors * values).max() < 1e-12
    weave = found.shape(int(np.argmax(np.abs(found.eigenvalues.imag))))
    assert abs(weave["front.angle"]) < 1e-12  # the mirror image leans the other way, but rolls as far
    assert abs(weave["lean.angle"]) > 0.1


def test_a_state_of_large_lean() -> None:
    """Basu-Mandal and others, Table 1: what follows from touching the ground and rolling, and six accelerations."""
    system = bicycle()
    given, wanted = DATA["nonlinear"]["state"], DATA["nonlinear"]["acceleration"]
    state = system.assemble(q={"place": [0.0, 0.0, 0.0], "lean": given["lean"], "steer": -given["steer"]},
                            u={x: SIGNS[x] * given[f"{x}_rate"] for x in ("lean", "steer", "rear")})
    q = dict(zip(system.coordinate_names, state.q, strict=True))
    u = dict(zip(system.speed_names, state.u, strict=True))
    udot = dict(zip(system.speed_names, system.forward_dynamics(state), strict=True))
    assert abs(q["pitch.angle"] + given["pitch"]) < 2e-13
    for x in ("yaw", "pitch", "front"):
        assert abs(u[JOINTS[x]] - SIGNS[x] * given[f"{x}_rate"]) < 2e-13
    for x, expected in wanted.items():
        assert abs(udot[JOINTS[x]] - SIGNS[x] * expected) < 2e-12, x


def test_it_moves_as_the_model_says() -> None:
    """Nudged at 5 m/s, for a fifth of a second."""
    system, lateral = bicycle(), [0, 1, 7, 8]
    ahead = {"lean": 0.0, "steer": 0.0, "rear": 5.0 / 0.3}
    model = bc.analyze.linearize(system, system.assemble(u=ahead), coordinates=list(ahead))
    run = system.simulate(system.assemble(q={"lean": 1e-4, "steer": 0.0}, u=ahead), 0.2, step=0.01)
    expected = expm(0.2 * model.A[np.ix_(lateral, lateral)]) @ [1e-4, 0.0, 0.0, 0.0]
    found = [run.q.values[-1, system.coordinate_names.index(f"{x}.angle")] for x in ("lean", "steer")]
    assert np.abs(found - expected[:2]).max() < 1e-9
