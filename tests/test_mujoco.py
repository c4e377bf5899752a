"""Small machines written as MJCF, against MuJoCo: hinges, slides, ball and free joints.

MuJoCo's free joint has its linear velocity in world axes and listed first; the tests translate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc

mujoco = pytest.importorskip("mujoco")
Floats = npt.NDArray[np.float64]


def _text(values: Any) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(values))


def _quaternion(matrix: Floats) -> Floats:
    out = np.zeros(4)
    mujoco.mju_mat2Quat(out, np.ascontiguousarray(matrix).ravel())
    return out


def mjcf(m: bc.Mechanism) -> str:
    """The same machine in MuJoCo's language; ball and free joints must not be turned in their child."""
    def body(index: int) -> str:
        record = next(r for r in m.joints if r.child == index)
        this = m.bodies[index - 1]
        place = record.parent_pose @ record.child_pose.inverse()
        turn, at = record.child_pose.rotation, f'pos="{_text(record.child_pose.position)}"'
        kinds: list[tuple[str, Any]] = []
        match type(record.joint).__name__:
            case "Revolute":
                kinds = [("hinge", record.joint.axis)]
            case "Prismatic":
                kinds = [("slide", record.joint.axis)]
            case "Cylindrical":
                kinds = [("hinge", record.joint.axis), ("slide", record.joint.axis)]
            case "Universal":
                kinds = [("hinge", record.joint.axis1), ("hinge", record.joint.axis2)]
            case "Spherical":
                kinds = [("ball", None)]
            case "Free":
                kinds = [("free", None)]
            case "Weld":
                kinds = []
            case other:
                raise AssertionError(other)
        rotors = [sum(a.inertia for a in m.armatures if (a.joint, a.coordinate) == (record.name, i))
                  for i in range(len(kinds))]
        joints = "".join(f'<joint type="{kind}" {at} axis="{_text(turn @ axis)}" armature="{rotor!r}"/>'
                         if axis is not None else f'<joint type="{kind}"{f" {at}" if kind == "ball" else ""}/>'
                         for (kind, axis), rotor in zip(kinds, rotors, strict=True))
        xx, xy, xz, yy, yz, zz = this.inertia.inertia
        inertial = (f'<inertial pos="{_text(this.inertia.com)}" mass="{this.inertia.mass!r}" '
                    f'fullinertia="{_text((xx, yy, zz, xy, xz, yz))}"/>')
        children = "".join(body(r.child) for r in m.joints if r.parent == index)
        return (f'<body name="{this.name}" pos="{_text(place.position)}" quat="{_text(_quaternion(place.rotation))}">'
                f"{joints}{inertial}{children}</body>")

    return (f'<mujoco><option gravity="{_text(m.gravity)}"><flag contact="disable" constraint="disable"/></option>'
            f'<compiler angle="radian"/><worldbody>{"".join(body(r.child) for r in m.joints if r.parent == 0)}'
            "</worldbody></mujoco>")


def mixed() -> bc.Mechanism:
    """A flying trunk with a ball, a telescope on a hinge, and a gimbal, all with general numbers."""
    rng = np.random.default_rng(7)
    m = bc.Mechanism("mixed", gravity=(0.4, -1.0, -9.0))

    def add(name: str, joint: bc.Joint, parent: str, turned: bool = True) -> None:
        spread = 0.2 * rng.normal(size=(3, 3))
        second = spread @ spread.T + 0.02 * np.eye(3)
        inertia = bc.Inertia(rng.uniform(0.5, 2.0), 0.2 * rng.normal(size=3), np.trace(second) * np.eye(3) - second)
        body = m.add_body(name, inertia)
        turns = [q / np.linalg.norm(q) for q in rng.normal(size=(2, 4))]
        m.add_joint(f"to {name}", joint, parent, body, bc.Pose(0.3 * rng.normal(size=3), turns[0]),
                    bc.Pose(0.2 * rng.normal(size=3), turns[1]) if turned else bc.Pose())

    add("trunk", bc.Free(), "ground", turned=False)
    add("ball", bc.Spherical(), "trunk", turned=False)
    add("sleeve", bc.Cylindrical(rng.normal(size=3)), "ball")  # depth first, as MuJoCo numbers them
    add("arm", bc.Revolute(rng.normal(size=3)), "trunk")
    add("telescope", bc.Prismatic(rng.normal(size=3)), "arm")
    add("gimbal", bc.Universal((1, 0, 0), (0.2, 1, 0)), "telescope")
    add("tool", bc.Weld(), "gimbal")
    return m


def with_rotors() -> bc.Mechanism:
    """A three-joint arm with geared motors."""
    rng = np.random.default_rng(3)
    m = bc.Mechanism("geared arm")
    for i, (joint, rotor) in enumerate(((bc.Revolute("z"), 0.8), (bc.Revolute("y"), 0.3), (bc.Prismatic("x"), 1.7))):
        m.add_body(f"link{i}", bc.Inertia.box(2.0 - 0.5 * i, (0.4, 0.1, 0.2), 0.1 * rng.normal(size=3)))
        m.add_joint(f"joint{i}", joint, f"link{i - 1}" if i else m.ground, f"link{i}",
                    bc.Pose(0.3 * rng.normal(size=3)))
        m.add_armature(f"motor{i}", f"joint{i}", rotor)
    return m


def geared() -> bc.Mechanism:
    """The mixed machine with rotors on some coordinates."""
    m = mixed()
    m.add_armature("turn", "to sleeve", 0.4, "angle")
    m.add_armature("motor", "to arm", 0.9)
    m.add_armature("gear", "to arm", 0.2)
    m.add_armature("second", "to gimbal", 0.1, 1)
    return m


MACHINES = {"mixed": mixed, "three joints with rotors": with_rotors, "mixed with rotors": geared,
            **{name: (lambda name=name: bc.load(name)) for name in ("scara", "arm", "crane", "chain")}}


class Peer:
    """A MuJoCo model in one state of ours. T maps its speeds to ours: u = T v, udot = T vdot + drift."""

    def __init__(self, m: bc.Mechanism, system: bc.System, q: Floats, u: Floats, tau: Floats) -> None:
        model = mujoco.MjModel.from_xml_string(mjcf(m))
        self.T, self.drift = np.eye(system.nu), np.zeros(system.nu)
        position, at, to = q.copy(), 0, 0
        for record in m.joints:
            if type(record.joint) is bc.Free:
                turn, place = q[at:at + 4], q[at + 4:at + 7]
                frame = record.parent_pose
                world = frame.rotation @ _matrix(turn)
                position[at:at + 7] = [*(np.array(frame.position) + frame.rotation @ place), *_quaternion(world)]
                self.T[to:to + 6, to:to + 6] = np.block([[np.zeros((3, 3)), np.eye(3)], [world.T, np.zeros((3, 3))]])
                self.drift[to + 3:to + 6] = -np.cross(u[to:to + 3], u[to + 3:to + 6])
            at, to = at + record.joint.nq, to + record.joint.nu
        self.data = mujoco.MjData(model)
        self.data.qpos, self.data.qvel = position, np.linalg.solve(self.T, u)
        self.data.qfrc_applied = self.T.T @ tau
        mujoco.mj_forward(model, self.data)
        full = np.zeros((system.nu, system.nu))
        mujoco.mj_fullM(model, self.data, full)
        self.mass = full


def _matrix(quaternion: Floats) -> Floats:
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, quaternion / np.linalg.norm(quaternion))
    return out.reshape(3, 3)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", list(MACHINES))
def test_accelerations_mass_matrix_and_bias(name: str, seed: int) -> None:
    m = MACHINES[name]()
    system = bc.compile(m, backend="llvm" if seed == 0 else "numpy")
    rng = np.random.default_rng(seed)
    q, u = system.random_state(rng)
    tau = rng.normal(size=system.nu)
    peer = Peer(m, system, q, u, tau)
    T, matrix, bias = peer.T, system.mass_matrix(q), system.bias(q, u)
    np.testing.assert_allclose(T.T @ matrix @ T, peer.mass, rtol=0.0, atol=1e-12 * np.abs(matrix).max())
    theirs = peer.data.qfrc_bias
    np.testing.assert_allclose(T.T @ (bias + matrix @ peer.drift), theirs, rtol=0.0,
                               atol=1e-11 * (1.0 + np.abs(theirs).max()))
    udot = system.forward_dynamics(q, u, tau)
    wanted = T @ peer.data.qacc + peer.drift
    np.testing.assert_allclose(udot, wanted, rtol=0.0, atol=1e-12 * np.linalg.cond(matrix) * np.abs(wanted).max())
    for body in system.body_names:
        place = system.pose(q, body)
        np.testing.assert_allclose(place.position, peer.data.body(body).xpos, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(place.rotation.ravel(), peer.data.body(body).xmat, rtol=0.0, atol=1e-12)
