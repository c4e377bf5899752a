"""The URDF files that pybullet brings: all that are valid are read, move as in Pinocchio, and take closing joints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import models
from bellcrank.errors import FileError
from bellcrank.io.urdf import read_urdf
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose


def folder() -> Path | None:
    return next(iter(models.folders("pybullet")), None)


pytestmark = pytest.mark.skipif(folder() is None, reason=f"no model files: {models.advice('pybullet')}")

#: files that are not valid, and why
INVALID = {
    "bicycle/bike.urdf": "'0.07,' is not a finite number",
    "biped/biped2d_pybullet.urdf": "XML or text declaration not at start of entity",
    "differential/diff_ring.urdf": "XML or text declaration not at start of entity",
    "humanoid/humanoid.urdf": "not well-formed",
    "husky/husky.urdf": "optenv HUSKY_IMU_XYZ",
    "quadruped/microtaur/microtaur.urdf": "needs 3 numbers, got 4",
    "torus_deform.urdf": "has no <link>",
}


def files(objects: bool) -> list[str]:
    """Robots, or the thousand random objects of one link."""
    base = folder()
    assert base is not None
    names = (path.relative_to(base).as_posix() for path in base.rglob("*.urdf"))
    return sorted(name for name in names if name.startswith("random_urdfs") == objects)


def test_every_valid_file_is_read() -> None:
    base = folder()
    assert base is not None
    refused = {}
    names = files(False) + files(True)
    for name in names:
        try:
            read_urdf(base / name)
        except FileError as error:
            refused[name] = str(error)
    assert len(names) > 1000
    assert refused.keys() == INVALID.keys()
    assert all(INVALID[name] in reason for name, reason in refused.items())


#: nothing resists their base or a joint: massless, or without rotational inertia (pybullet makes it from shapes)
WEIGHTLESS = ("no inertia about its axis", "nothing resists")


def test_robots_move_as_in_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    from test_pinocchio import Peer, error

    base = folder()
    assert base is not None
    agree, weightless = 0, 0
    for name in [n for n in files(False) if n not in INVALID]:
        mechanism, report = read_urdf(base / name, exact_angles=False, floating_base=True, mimic="free")
        try:
            pin.buildModelFromUrdf(str(base / name))
        except ValueError:
            assert name == "spherical_joint_limit.urdf"  # a joint type that Pinocchio's reader does not have
            continue
        try:
            system = bc.compile(mechanism, backend="numpy")
        except bc.ModelError as refusal:
            assert any(reason in str(refusal) for reason in WEIGHTLESS)
            weightless += 1
            continue
        peer = Peer(base / name, True, report, system)
        rng = np.random.default_rng(len(name))
        (q, u), (udot, tau) = system.random_state(rng), rng.normal(size=(2, system.nu))
        assert error(system.mass_matrix(q), peer.mass(q)) < 1e-9
        assert error(system.inverse_dynamics(q, u, udot), peer.inverse(q, u, udot)) < 1e-9
        allowed = 1e-9 + 10.0 * np.finfo(float).eps * np.linalg.cond(peer.mass(q))
        assert error(system.forward_dynamics(q, u, tau), peer.forward(q, u, tau)) < allowed, name
        agree += 1
    assert agree > 60
    assert agree + weightless > 80


# -- Minitaur: four legs, each a five-bar linkage that pybullet closes in Python ------------------
LEGS = ("front_left", "front_right", "back_left", "back_right")
RIGHT, LEFT = (0.0, 0.005, 0.2), (0.0, 0.01, 0.2)


def closed_minitaur(path: Path, how: Any) -> Mechanism:
    m, _ = read_urdf(path, floating_base=True)
    for leg in LEGS:
        how(m, f"{leg}_knee", f"lower_leg_{leg}R_link", f"lower_leg_{leg}L_link")
    return m


def check(m: Mechanism) -> None:
    system = bc.compile(m, backend="numpy")
    assert system.dof == 6 + 8
    rng = np.random.default_rng(0)
    guess = system.integrate(system.neutral(), 0.05 * rng.normal(size=system.nu))
    state = system.assemble(guess, rng.normal(size=system.nu))
    assert np.abs(system.loop_error(state.q)).max() < 1e-9
    # falling freely: the centre of mass accelerates by gravity, whatever the legs do
    udot = system.forward_dynamics(state.q, state.u)
    step = 1e-5

    def speed(sign: float) -> Any:
        q = system.integrate(state.q, sign * step * (state.u + sign * 0.5 * step * udot))
        return system.momentum(q, state.u + sign * step * udot)[..., 3:] / system.model.mass

    np.testing.assert_allclose((speed(1.0) - speed(-1.0)) / (2 * step), [0.0, 0.0, -9.81], atol=1e-4)


def test_minitaur_with_closing_joints_added_after_reading(tmp_path: Path) -> None:
    """The file has 1.57075 for a right angle, so that its legs do not lie in one plane; with exact right angles they
    do, and ball joints close them with one redundant condition each."""
    base = folder()
    assert base is not None
    text = (base / "quadruped/minitaur.urdf").read_text()
    exact = tmp_path / "minitaur.urdf"
    exact.write_text(text.replace("1.57075", repr(np.pi / 2)).replace("3.141592", repr(np.pi)))

    def ball(m: Mechanism, name: str, right: str, left: str) -> None:
        m.add_joint(name, bc.Spherical(), right, left, Pose(RIGHT), Pose(LEFT))

    check(closed_minitaur(exact, ball))


def test_minitaur_as_it_is() -> None:
    base = folder()
    assert base is not None

    def pin(m: Mechanism, name: str, right: str, left: str) -> None:
        m.add_constraint(name, bc.PointOnLine("y"), right, left, Pose(RIGHT), Pose(LEFT))

    check(closed_minitaur(base / "quadruped/minitaur.urdf", pin))
