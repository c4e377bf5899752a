"""MJCF out and in again: the same machine, to rounding; or an error that names what the format cannot hold."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.io.mjcf import read_mjcf, write_mjcf
from bellcrank.mechanism.forces.motors import within
from test_mjcf import LOOPS, TREE, written

mujoco = pytest.importorskip("mujoco")

#: what MJCF cannot hold: a motor of constant torque, rolling without slip
REFUSED = {"andrews": "wrench 'drive'", "whipple_bicycle": "constraint 'rear_road'"}


def busy() -> bc.Mechanism:
    """A bit of everything that the format can hold."""
    m = bc.Mechanism("busy", gravity=(0.1, 0.2, -9.0))
    solid = bc.Inertia(1.3, (0.1, 0.05, -0.02), [[0.02, 0.001, 0.002], [0.001, 0.03, -0.003], [0.002, -0.003, 0.025]])
    for name in ("base", "nut", "sled", "arm", "fork", "ball"):
        m.add_body(name, solid)
    turned = bc.Pose((0.1, 0.2, 0.3), np.array([1.0, 2.0, -1.0, 0.5]) / 2.5)
    m.add_joint("base", bc.Cylindrical((1, 2, 3)), m.ground, "base", turned, bc.Pose((0.3, 0, 0.1)))
    m.add_joint("nut", bc.Screw((0, 1, 1), pitch=0.05), "base", "nut", turned)
    m.add_joint("sled", bc.Planar((0, 1, 0)), "sled", "base", bc.Pose((0, 0.1, 0)), turned)  # backwards
    m.add_joint("arm", bc.Universal("x", "y"), "arm", "sled", turned, bc.Pose((0.2, 0, 0)))  # backwards
    m.add_joint("fork", bc.Revolute((1, 1, 0)), "base", "fork", turned, turned)
    m.add_joint("ball", bc.Spherical(), "fork", "ball", turned, bc.Pose((0.0, 0.1, 0.0)))
    m.add_joint_spring("s1", "fork", stiffness=3.0, damping=0.2, rest=0.4)
    m.add_joint_spring("s2", "fork", stiffness=1.0, rest=-0.2)
    m.add_joint_spring("s3", "sled", stiffness=20.0, rest=0.1, coordinate="y")
    m.add_friction("f", "base", viscous=0.3, coulomb=0.1, coordinate="angle")
    m.add_armature("rotor", "arm", 0.05, coordinate="angle2")
    m.add_spring("cord", m.ground, "ball", (0, 0, 1), (0.1, 0, 0), stiffness=40.0, damping=0.6, length=0.5)
    m.add_bushing("grease", "fork", "ball", turned, bc.Pose((0.0, 0.1, 0.0)), turn_damping=(0.1, 0.1, 0.1))
    m.add_wrench("balloon", "fork", force=[-0.3 * 1.3 * g for g in (0.1, 0.2, -9.0)], at=solid.com)
    m.add_actuator("motor", "fork", 12.0)
    m.add_actuator("brake", "sled", (-3.0, 0.5), coordinate="x")
    aim, grip = m.parameter("aim", 0.0), m.parameter("grip/hand", 0.0)
    m.add_servo("hold", "fork", target=0.3, target_rate=-0.1, stiffness=30.0, damping=2.0, offset=0.4,
                limit=(-1.0, 9.0))
    m.add_servo("aim", "arm", coordinate="angle1", target=2.0 * aim + 0.1, stiffness=30.0, limit=8.0)
    m.add_servo("grip", {"sled.x": 1.0, "fork": -0.7}, target=within(grip, -0.5, 2.0), stiffness=11.0, damping=0.2)
    m.add_joint_spring("belt", {"fork": 2.0, "base.angle": -0.7}, stiffness=7.0, damping=0.1, rest=-1.0)
    m.add_friction("rope", {"fork": 1.0, "base.angle": 3.0}, coulomb=0.1, viscous=0.2)
    m.add_limit("slack", {"fork": 1.0, "sled.y": -1.0}, -0.1, 0.05, stiffness=90.0)
    m.add_coupler("gears", {"base.slide": 1.0, "fork": 0.5, "sled.x": -0.3}, 0.02)
    m.add_frame("tip", "ball", turned)
    return m


MACHINES: dict[str, Callable[[], bc.Mechanism]] = {
    "busy": busy, **{n: (lambda n=n: bc.load(n)) for n in bc.examples.names() if n not in REFUSED}}


def mapped(names: tuple[str, ...], others: tuple[str, ...]) -> list[int]:
    """Where the numbers of one system lie in another whose joints may carry single coordinates of ours."""
    places = {n: i for i, n in enumerate(others)}
    joints = {n.rpartition(".")[0]: i for i, n in enumerate(others)}
    out = []
    for n in names:
        joint, _, coordinate = n.rpartition(".")
        single = joints.get(f"{joint}.{coordinate}")
        out.append(single if single is not None else places[n])
    return out


@pytest.mark.parametrize("name", MACHINES)
def test_the_same_machine_comes_back(tmp_path: Path, name: str) -> None:
    m = MACHINES[name]()
    path = tmp_path / "machine.xml"
    write_mjcf(m, path)
    assert os.listdir(tmp_path) == ["machine.xml"]
    back, report = read_mjcf(path)
    assert not report.warned
    assert mujoco.MjModel.from_xml_path(str(path)).nbody > 1
    here = {j.name for j in m.joints}
    assert {j.name for j in back.joints if type(j.joint) is not bc.Weld} >= {
        j.name for j in m.joints if j.joint.nu == 1 and type(j.joint) is not bc.Screw} & here
    method = "dense" if name == "busy" else "auto"
    ours = bc.compile(m, method, backend="numpy")
    theirs = bc.compile(back, method, backend="numpy", cut=[c for c in ours.model.tree.cut_names if c in back._joints])
    assert (ours.dof, ours.model.mass) == (theirs.dof, pytest.approx(theirs.model.mass, rel=1e-14))
    assert set(theirs.loops) >= set(ours.loops) or set(theirs.model.tree.cut_names) != set(ours.model.tree.cut_names)
    if set(theirs.model.tree.cut_names) != set(ours.model.tree.cut_names):
        return  # other coordinates; the mobility has been compared
    rng = np.random.default_rng(5)
    q, u = ours.random_state(rng)
    if ours.model.tree.looped:
        q, u = ours.assemble(q=0.3 * q if name == "busy" else None, u=u)
    tau = rng.normal(size=ours.nu)
    at, to = (mapped(a, b) for a, b in ((ours.coordinate_names, theirs.coordinate_names),
                                        (ours.speed_names, theirs.speed_names)))
    q2, u2, tau2 = np.zeros(theirs.nq), np.zeros(theirs.nu), np.zeros(theirs.nu)
    q2[at], u2[to], tau2[to] = q, u, tau
    if name == "busy":  # the nut's advance is a coordinate of its own in MJCF
        angle, slide = (theirs.coordinate_names.index(f"nut.{n}.{k}") for n, k in (("angle", "angle"),
                                                                                   ("advance", "slide")))
        q2[slide] = 0.05 * q2[angle]
        to_slide, to_angle = (theirs.speed_names.index(f"nut.{n}.{k}") for n, k in (("advance", "slide"),
                                                                                    ("angle", "angle")))
        u2[to_slide] = 0.05 * u2[to_angle]
        assert np.abs(theirs.loop_error(q2)).max() < 1e-12
    for body in ours.body_names:
        if body in theirs.body_names:
            np.testing.assert_allclose(theirs.pose(q2, body).position, ours.pose(q, body).position, atol=1e-13)
    assert ours.parameters == theirs.parameters
    controls = {name: 0.3 + i for i, name in enumerate(ours.parameters)}
    wanted = ours.with_parameters(**controls).forward_dynamics(q, u, tau)
    got = theirs.with_parameters(**controls).forward_dynamics(q2, u2, tau2)[to]
    np.testing.assert_allclose(got, wanted, rtol=0.0, atol=1e-12 * (1.0 + np.abs(wanted).max()))


@pytest.mark.parametrize("text", [TREE, LOOPS.format("<connect name='c' body1='coupler' body2='rocker' anchor='1 0 0'/>"
                                                     "<connect body1='coupler' body2='rocker' anchor='1 0 .2'/>"
                                                     "<joint name='j' joint1='G' joint2='A' polycoef='.1 2 0 0 0'/>")])
def test_files_come_back(tmp_path: Path, text: str) -> None:
    m, _ = read_mjcf(written(tmp_path, text))
    write_mjcf(m, tmp_path / "again.xml")
    again, _ = read_mjcf(tmp_path / "again.xml")
    one, two = bc.compile(m, backend="numpy"), bc.compile(again, backend="numpy")
    assert one.coordinate_names == two.coordinate_names and one.dof == two.dof
    q, u = one.random_state(np.random.default_rng(1))
    if one.model.tree.looped:
        q, u = one.assemble(u=u)
    wanted = one.forward_dynamics(q, u)
    np.testing.assert_allclose(two.forward_dynamics(q, u), wanted, rtol=0.0, atol=1e-12 * np.abs(wanted).max())


def _with(change: Callable[[bc.Mechanism], object]) -> bc.Mechanism:
    m = bc.load("four_bar")
    change(m)
    return m


CANNOT: dict[str, Callable[[], bc.Mechanism]] = {
    "wrench 'drive'": lambda: bc.load("andrews"),
    "drag 'air'": lambda: _with(lambda m: m.add_drag("air", "crank", coefficient=1.0)),
    "joint 'A'": lambda: _with(lambda m: m.prescribe("A", 0.3)),
    "'stop'": lambda: _with(lambda m: m.add_limit("stop", "A", 0.0, stiffness=1.0)),
    "actuator 'motor'": lambda: _with(lambda m: m.add_actuator("motor", "A", 1.0, no_load_speed=2.0)),
    "servo 'clock'": lambda: _with(lambda m: m.add_servo("clock", "A", target=lambda t: t, stiffness=1.0)),
    "servo 'square'": lambda: _with(lambda m: m.add_servo("square", "A", target=m.parameter("p", 0.0) ** 2,
                                                          stiffness=1.0)),
    "servo 'early'": lambda: _with(lambda m: m.add_servo("early", "A", target=m.parameter("p", 1.0), stiffness=1.0)),
    "servo 'two'": lambda: _with(lambda m: m.add_servo(
        "two", "A", target=m.parameter("p", 0.0) + m.parameter("q", 0.0), stiffness=1.0)),
    "joint force 'bounce'": lambda: _with(lambda m: m.add_limit("bounce", {"A": 1.0, "B": 1.0}, 0.0, 1.0, stiffness=1.0,
                                                                 damping=1.0)),
    "constraint 'slot'": lambda: _with(lambda m: m.add_constraint("slot", bc.PointOnLine("x"), m.ground, "coupler")),
    "body 'world'": lambda: _with(lambda m: m.add_joint("w", bc.Weld(), m.ground, m.add_body("world",
                                                                                          bc.Inertia.sphere(1, 1)))),
    "body 'ghost'": lambda: _with(lambda m: m.add_joint("g", bc.Revolute(), m.ground, m.add_body("ghost"))),
}


@pytest.mark.parametrize("part", CANNOT)
def test_what_mjcf_cannot_hold_is_named(tmp_path: Path, part: str) -> None:
    path = tmp_path / "machine.xml"
    path.write_text("before")
    with pytest.raises(bc.ModelError, match=part):
        write_mjcf(CANNOT[part](), path)
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["machine.xml"]


def test_a_parameter_is_named(tmp_path: Path) -> None:
    m = bc.Mechanism("p")
    m.add_joint("j", bc.Revolute(), m.ground, m.add_body("b", bc.Inertia.sphere(m.parameter("mass", 1.0), 0.1)))
    with pytest.raises(bc.ModelError, match="body 'b'.*parameter"):
        write_mjcf(m, tmp_path / "p.xml")


def test_rods_without_mass_come_back(tmp_path: Path) -> None:
    m = bc.Mechanism("rods")
    for name, place in (("one", 0.0), ("two", 1.0)):
        m.add_joint(name, bc.Revolute("y"), m.ground, m.add_body(name, bc.Inertia.point(1.0, (0, 0, -0.5))),
                    bc.Pose((place, 0, 0)))
    m.add_constraint("rod", bc.Distance(1.05), "one", "two", bc.Pose((0, 0, -0.5)), bc.Pose((0, 0, -0.5)))
    write_mjcf(m, tmp_path / "rods.xml")
    back, _ = read_mjcf(tmp_path / "rods.xml")
    assert back.constraints[0].kind.length == pytest.approx(1.05, abs=1e-15)
    one, two = bc.compile(m, backend="numpy"), bc.compile(back, backend="numpy")
    q, u = one.assemble(q={"one": 0.2}, u={"one": 1.0})
    np.testing.assert_allclose(two.forward_dynamics(q, u), one.forward_dynamics(q, u), rtol=1e-12)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(bc.FileError, match="cannot be written"):
        write_mjcf(bc.load("pendulum"), tmp_path / "none" / "p.xml")
