"""Every robot of example-robot-data, fixed and floating, against Pinocchio.

Inverse dynamics and mass matrices agree to 1e-12 of their largest entry. Forward dynamics is asked for
1e-11 of its largest entry plus 10 eps times the condition number of the mass matrix: hands and feet of a few
grams on bodies of many kilograms reach 1e7, iCub with a floating base 1e10, and no two programs agree better.

Pinocchio orders joints differently, writes endless hinges as cosine and sine, and free joints as position,
quaternion (x, y, z, w) and linear before angular speed.
"""

from __future__ import annotations

import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc
from bellcrank.io import read_urdf

pin = pytest.importorskip("pinocchio")
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def _robots() -> list[Path]:
    folders = {Path(p, "cmeel.prefix/share/example-robot-data/robots") for p in sysconfig.get_paths().values()}
    return sorted(file for folder in folders if folder.is_dir() for file in folder.rglob("*.urdf"))


ROBOTS = _robots()
pytestmark = pytest.mark.skipif(not ROBOTS, reason="example-robot-data is not installed")

#: files neither reads: a joint to a link that is not there, and a robot without links
UNREADABLE = ("falcon.urdf", "ur3.urdf")
#: nothing moves while the base is fixed
RIGID = ("bluevolta.urdf", "quadrotor_base.urdf", "iris_simple.urdf")
#: joints that nothing resists, because all they carry is massless: refused by name here, NaN in Pinocchio.
#: The tests hold these joints still and compare the rest.
_HAND = ("Finger13", "Finger23", "Finger33", "Thumb3", "Hand", "Finger12", "Finger21", "Finger22", "Finger31",
         "Finger32", "Thumb1", "Thumb2")
WEIGHTLESS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("bluevolta_bravo7_gripper.urdf", "bravo7_gripper.urdf", "falcon_bravo7_gripper.urdf"),
                    ("bravo_finger1_joint", "bravo_finger2_joint")),
    "romeo.urdf": tuple(side + part for side in "LR" for part in _HAND),
    "romeo_laas_small.urdf": ("l_gripper_joint", "r_gripper_joint"),
}
READABLE = [p for p in ROBOTS if p.name not in UNREADABLE]
HELD = 0.3


@cache
def model_of(path: Path, floating: bool) -> Any:
    base = (pin.JointModelFreeFlyer(),) if floating else ()
    model = pin.buildModelFromUrdf(str(path), *base)
    model.armature[:] = 0.0
    return model


class Peer:
    """A Pinocchio model that takes and gives the arrays of a system."""

    def __init__(self, path: Path, floating: bool, report: bc.io.ReadReport, system: bc.System) -> None:
        self.model = model_of(path, floating)
        self.data = self.model.createData()
        self.report, self.system = report, system
        #: for each of Pinocchio's speeds, the index of ours
        self.order: Ints = report.to_pinocchio(system.state(u=np.arange(system.nu)))[1].astype(int)
        assert sorted(self.order) == list(range(self.model.nv))

    def q(self, q: Floats) -> Floats:
        return self.report.to_pinocchio(self.system.state(q))[0]

    def back(self, v: Floats) -> Floats:
        out = np.empty(len(v))
        out[self.order] = v
        return out

    def inverse(self, q: Floats, u: Floats, udot: Floats) -> Floats:
        return self.back(pin.rnea(self.model, self.data, self.q(q), u[self.order], udot[self.order]))

    def forward(self, q: Floats, u: Floats, tau: Floats) -> Floats:
        return self.back(pin.aba(self.model, self.data, self.q(q), u[self.order], tau[self.order]))

    def mass(self, q: Floats) -> Floats:
        upper = np.triu(pin.crba(self.model, self.data, self.q(q)))
        out = np.empty_like(upper)
        out[np.ix_(self.order, self.order)] = upper + np.triu(upper, 1).T
        return out

    def pose(self, q: Floats, body: str) -> Any:
        pin.framesForwardKinematics(self.model, self.data, self.q(q))
        return self.data.oMf[self.model.getFrameId(body)]


def error(got: Floats, wanted: Floats) -> float:
    return float(np.abs(got - wanted).max() / np.abs(wanted).max())


def compare(path: Path, floating: bool, states: int, **options: Any) -> None:
    mechanism, report = read_urdf(path, exact_angles=False, floating_base=floating, mimic="free")
    held = WEIGHTLESS.get(path.name, ())
    for name in held:
        mechanism.prescribe(name, HELD)
    system = bc.compile(mechanism, **options)
    peer = Peer(path, floating, report, system)
    free = np.array([r.name not in held for r in mechanism.joints for _ in range(r.joint.nu)])
    locked_q = np.array([r.name in held for r in mechanism.joints for _ in range(r.joint.nq)])
    rng = np.random.default_rng(len(path.name))
    for _ in range(states):
        q, u = system.random_state(rng)
        udot, tau = rng.normal(size=(2, system.nu))
        q[locked_q], u[~free], udot[~free] = HELD, 0.0, 0.0
        matrix, bias = peer.mass(q), peer.inverse(q, u, 0.0 * u)
        assert error(system.mass_matrix(q), matrix) < 1e-12
        assert error(system.inverse_dynamics(q, u, udot), peer.inverse(q, u, udot)) < 1e-12
        block = matrix[np.ix_(free, free)]
        allowed = 1e-11 + 10.0 * np.finfo(float).eps * np.linalg.cond(block)
        wanted = np.linalg.solve(block, (tau - bias)[free]) if held else peer.forward(q, u, tau)
        assert error(system.forward_dynamics(q, u, tau)[free], wanted) < allowed
    body = mechanism.bodies[-1].name
    if body not in report.renamed.values():
        place, theirs = system.pose(q, body), peer.pose(q, body)
        np.testing.assert_allclose(place.rotation, theirs.rotation, atol=1e-12)
        np.testing.assert_allclose(place.position, theirs.translation, atol=1e-12 * (1.0 + np.abs(q).max()))


@pytest.mark.everyday(60)
@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.stem)
def test_every_robot(path: Path, floating: bool) -> None:
    if path.name in RIGID and not floating:
        assert model_of(path, False).nv == 0
        with pytest.raises(bc.ModelError, match="no joint that can move"):
            bc.compile(read_urdf(path, mimic="free")[0])
        return
    compare(path, floating, states=2, backend="numpy")


HANDFUL = ("panda.urdf", "ur5_robot.urdf", "double_pendulum_continuous.urdf", "talos_reduced.urdf", "go2.urdf")


@pytest.mark.parametrize("schedule", ["auto", "rolled"])
@pytest.mark.parametrize("path", [p for p in READABLE if p.name in HANDFUL], ids=lambda path: path.stem)
def test_a_handful_compiled(path: Path, schedule: str) -> None:
    compare(path, path.name in ("talos_reduced.urdf", "go2.urdf"), states=4, schedule=schedule)


@pytest.mark.parametrize("path", [p for p in READABLE if p.name in WEIGHTLESS], ids=lambda path: path.stem)
def test_joints_that_nothing_resists(path: Path) -> None:
    """We name them, all of them and no others; Pinocchio returns NaN."""
    mechanism, _ = read_urdf(path, exact_angles=False, mimic="free")
    found = []
    for _ in range(100):
        try:
            bc.compile(mechanism, backend="numpy")
            break
        except bc.ModelError as refusal:
            name = str(refusal).split("'")[1]
            found.append(name)
            mechanism.prescribe(name, 0.0)
    assert sorted(found) == sorted(WEIGHTLESS[path.name])
    model = model_of(path, False)
    zero = np.zeros(model.nv)
    assert not np.isfinite(pin.aba(model, model.createData(), pin.neutral(model), zero, zero + 1.0)).all()


def test_there_are_robots() -> None:
    assert len(READABLE) > 30
