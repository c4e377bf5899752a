"""Real machines from published model files: how each is read, how many ways it can move, and who says so."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import models  # isort: skip

import bellcrank as bc
from bellcrank.io.mjcf import read_mjcf
from bellcrank.io.report import ReadReport
from bellcrank.io.sdf import read_sdf
from bellcrank.io.urdf import read_urdf

__all__ = ["MACHINES", "Machine", "Read"]

Read = tuple[bc.Mechanism, ReadReport]


@dataclass(frozen=True)
class Machine:
    """One machine, or one way to hang it up.

    `dof` is what must be found; `stated` what its makers say, with the reason of a difference. `start` are coordinates
    to begin with, `near` where to look for the others, `speed` [rad/s, m/s] the size of the random speeds. `opened` are
    closing joints to release before methods are compared, where rounding would count 1/s² times (a dead point).
    `closing` are joints that Pinocchio and MuJoCo can take as point closures; `mjcf` is the file for MuJoCo. `panel` is
    the longest panel [s] of the integral of lost power: short where there is dry friction.
    """

    name: str
    read: Callable[[], Read]
    dof: int
    stated: str
    start: Mapping[str, float] = field(default_factory=dict)
    near: Mapping[str, float] = field(default_factory=dict)
    speed: float = 0.3
    opened: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()
    mjcf: Callable[[], Path] | None = None
    panel: float = 5e-3

    def state(self, system: bc.System, u: npt.ArrayLike | None = None) -> bc.State:
        """The closed start, with speeds made consistent; at rest without."""
        guess = system.neutral()
        joints = [name.rpartition(".")[0] for name in system.coordinate_names]
        for joint, value in self.near.items():
            guess[joints.index(joint)] = value
        return system.assemble(q=dict(self.start), u=np.zeros(system.nu) if u is None else u, guess=guess)


# -- Cassie ---------------------------------------------------------------------------------------
_PARALLEL = {"cassie_v2": 1e-5}
_TRIANGLES = ("left-shin-spring-joint", "right-shin-spring-joint")
_LEG = {  # ways a leg moves, and why they are not the 7 of the robot (5 motors, 2 springs)
    "cassie": (5, "the achilles rod sits on a hinge, not a universal joint (-1), and the slide of the knee spring "
                  "locks it (-1)"),
    "cassie_reduced": (5, "the achilles rod sits on a hinge (-1), and the file tilts the plantar rod's axis by 0.1 "
                          "rad, which locks the foot (-1)"),
    "cassie_simple": (5, "as cassie_reduced"),
    "cassie_v2": (6, "the achilles rod sits on a hinge, not a universal joint (-1)"),
    "cassie_wo_gearbox_spring": (6, "as cassie_v2"),
}


def _cassie(name: str, how: str) -> Read:
    path, parallel = models.find("example-robot-data", f"{name}.sdf"), _PARALLEL.get(name, 0.0)
    if how == "floating":
        with tempfile.TemporaryDirectory() as folder:
            return read_sdf(_without(path, "static", Path(folder)), parallel=parallel)
    if how == "held" and name in ("cassie", "cassie_v2"):
        return read_sdf(path, floating_base=False, parallel=parallel)
    machine, report = read_sdf(path, parallel=parallel)
    if how == "held":
        machine.prescribe("static", 0.0)
    return machine, report


def _without(path: Path, joint: str, folder: Path) -> Path:
    """A copy of an SDF file that lacks a joint."""
    tree = ElementTree.parse(path)
    for parent in tree.iter():
        for child in [c for c in parent if c.tag == "joint" and c.get("name") == joint]:
            parent.remove(child)
    tree.write(folder / path.name)
    return folder / path.name


def _cassies() -> list[Machine]:
    out = []
    for name, (leg, why) in _LEG.items():
        free = name in ("cassie", "cassie_v2")
        opened = _TRIANGLES if name == "cassie" else ()
        balls = () if name == "cassie" else tuple(
            f"{side}-{joint}" for side in ("left", "right") for joint in ("pitch-rod-joint", "plantar-foot-joint"))
        for how in ("as filed", "held") if free else ("as filed", "floating", "held"):
            base = 0 if how == "held" else 6 if free or how == "floating" else 1
            robot = {6: "20 = 6 + 2 x 7", 1: "15 = 1 + 2 x 7 (on a slide)", 0: "14 = 2 x 7 (pelvis held)"}[base]
            out.append(Machine(f"{name}.sdf, {how}", partial(_cassie, name, how), base + 2 * leg,
                               f"{robot}; here {leg} a leg: {why}", opened=opened, closing=balls if base == 6 else ()))
    return out


# -- MJCF -----------------------------------------------------------------------------------------
def _mjcf(package: str, file: str, gravity: tuple[float, float, float] | None = None) -> Read:
    machine, report = read_mjcf(models.find(package, file), missing_meshes="massless", actuators=False)
    if gravity is not None:
        machine.gravity = gravity
    return machine, report


def _from_mjcf(name: str, package: str, file: str, dof: int, stated: str, *,
               gravity: tuple[float, float, float] | None = None, start: Mapping[str, float] | None = None,
               near: Mapping[str, float] | None = None, compared: bool = True, closing: tuple[str, ...] = (),
               panel: float = 5e-3) -> Machine:
    return Machine(name, partial(_mjcf, package, file, gravity), dof, stated, start or {}, near or {}, closing=closing,
                   mjcf=partial(models.find, package, file) if compared else None, panel=panel)


def _mjcfs() -> list[Machine]:
    # a parallelogram in a file without gravity: hung up so that it swings about a rectangle and never lies flat
    four_bar, sideways = "four_bar_linkage", (0.0, -9.81, 0.0)
    return [
        _from_mjcf("genesis four-bar", "genesis-world", f"{four_bar}.xml", 1, "1; the connect has 3 conditions, 1 of "
                   "them redundant in a plane", gravity=sideways, start={"hinge_1": 2.5},
                   near={"hinge_1": 2.5, "hinge_2": -2.5, "hinge_3": 2.5}, closing=("kinematic_link1",)),
        _from_mjcf("genesis four-bar, welded", "genesis-world", f"{four_bar}_weld.xml", 0, "not stated; a weld in "
                   "place of the fourth hinge leaves none", gravity=sideways, compared=False),
        _from_mjcf("Panda with Robotiq 2F-85", "playground", "panda_updated_robotiq_2f85.xml", 8, "8 = 7 of the arm "
                   "and 1 of the gripper", start={"left_driver_joint": 0.4, "joint2": 0.5, "joint4": -1.5}),
        _from_mjcf("newton constraints", "newton", "tests/assets/constraints.xml", 29, "not stated; 46 speeds as the "
                   "file has its joints, less 3 (connect) + 1 (connect of a hinge) + 6 + 6 (welds) + 1 (polynomial)"),
        _from_mjcf("MuJoCo test model", "mujoco", "model.xml", 37, "not stated", compared=False),
        _from_mjcf("Aloha, two arms", "playground", "mjx_aloha.xml", 14, "14 = 2 x (6 of the arm and 1 of the "
                   "gripper)", panel=2e-4),
        _from_mjcf("Panda with hand (MJCF)", "genesis-world", "franka_emika_panda/panda.xml", 8, "8 = 7 of the arm and "
                   "1 of the hand"),
        _from_mjcf("planar manipulator", "playground", "manipulator.xml", 13, "13 = 14 joints less one tendon "
                   "coupling"),
        _from_mjcf("Aero hand", "playground", "aero_hand/xmls/right_hand.xml", 11, "not stated; 16 joints, 5 of them "
                   "coupled", compared=False, panel=2e-4),  # springs of its tendons are not modelled
    ]


# -- URDF -----------------------------------------------------------------------------------------
def _urdf(name: str, held: tuple[str, ...] = ()) -> Read:
    machine, report = read_urdf(models.find("example-robot-data", f"{name}.urdf"), dynamics=True)
    for joint in held:
        machine.prescribe(joint, 0.0)
    return machine, report


def _urdfs() -> list[Machine]:
    listed = [
        ("panda", 8, "8 = 7 of the arm and 1 of the hand", ()),
        ("baxter", 17, "17 = 2 x 7 of the arms, 1 of the head, 2 grippers", ()),
        ("pr2", 20, "20 = 2 x 7, torso, head 2, laser, 2 grippers; the grippers' old Gazebo loops are not read, their "
         "mimic joints are", ()),
        ("talos_full_v2", 32, "32 = 2 x 6, 2 x 7, torso 2, head 2, 2 grippers", ()),
        ("tiago_pro", 23, "23 = 2 x 7, torso, head 2, 4 wheels, 2 grippers", ()),
        ("romeo", 31, "33, less the 2 hands: their fingers are massless and must be held", ("LHand", "RHand")),
    ]
    return [Machine(f"{name}.urdf", partial(_urdf, name, held), dof, stated) for name, dof, stated, held in listed]


# -- Minitaur -------------------------------------------------------------------------------------
_LEGS = ("front_left", "front_right", "back_left", "back_right")
_KNEES = bc.Pose((0.0, 0.005, 0.2)), bc.Pose((0.0, 0.01, 0.2))


def _minitaur(exact: bool) -> Read:
    """pybullet closes the legs in Python: points of the lower legs meet, by a soft constraint.

    The file has 1.57075 for a right angle, so that the legs do not lie in one plane; there a pin that lets the knee
    slide along its axis closes them. With exact right angles ball joints do, with one redundant condition each.
    """
    path = models.find("pybullet", "quadruped/minitaur.urdf")
    with tempfile.TemporaryDirectory() as folder:
        if exact:
            text = path.read_text().replace("1.57075", repr(math.pi / 2)).replace("3.141592", repr(math.pi))
            path = Path(folder) / "minitaur.urdf"
            path.write_text(text)
        machine, report = read_urdf(path, floating_base=True, dynamics=True)
    for leg in _LEGS:
        ends = f"lower_leg_{leg}R_link", f"lower_leg_{leg}L_link"
        if exact:
            machine.add_joint(f"{leg}_knee", bc.Spherical(), *ends, *_KNEES)
        else:
            machine.add_constraint(f"{leg}_knee", bc.PointOnLine("y"), *ends, *_KNEES)
    return machine, report


def _crouched() -> tuple[dict[str, float], dict[str, float]]:
    """pybullet's start: motors a quarter turn back on the left and forth on the right, knees bent. Legs that are
    stretched (all joints at zero) or folded flat are singular positions, where two motions part: slow starts keep away
    from them."""
    motors, knees = {}, {}
    for leg in _LEGS:
        turn = -1.0 if leg.endswith("left") else 1.0
        for side in "LR":
            motors[f"motor_{leg}{side}_joint"] = turn * math.pi / 2
            knees[f"knee_{leg}{side}_link"] = turn * -2.1834
    return motors, knees


def _minitaurs() -> list[Machine]:
    stated, (motors, knees) = "14 = 6 + 8 motors", _crouched()
    return [Machine("Minitaur, as filed", partial(_minitaur, False), 14, f"{stated}; knees are pins that may slide",
                    motors, knees, 0.05),
            Machine("Minitaur, exact angles", partial(_minitaur, True), 14, stated, motors, knees, 0.05,
                    closing=tuple(f"{leg}_knee" for leg in _LEGS))]


MACHINES: dict[str, Machine] = {m.name: m for m in (*_cassies(), *_mjcfs(), *_urdfs(), *_minitaurs())}
