"""<gazebo> elements of URDF files: SDF's ways to write poses, axes, screws and springs; what is not read is told."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import FileError
from bellcrank.io.urdf import read_urdf

Place = Callable[[str], Path]
INERTIAL = ("<inertial><origin xyz='0.1 0 0'/><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' "
            "izz='1'/></inertial>")
LINKS = "".join(f"<link name='{name}'>{INERTIAL}</link>" for name in "abc")
JOINTS = "".join(f"<joint name='{name}' type='continuous'><parent link='{parent}'/><child link='{child}'/>"
                 "<origin xyz='1 0 0'/><axis xyz='0 0 1'/></joint>" for name, parent, child in ("jab", "kbc"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    def write(text: str) -> Path:
        path = tmp_path / "robot.urdf"
        path.write_text(f"<robot name='r'>{LINKS}{JOINTS}\n{text}</robot>")
        return path
    return write


def closing(kind: str, inside: str) -> str:
    return (f"<gazebo><joint name='g' type='{kind}'><parent>a</parent><child>c</child>{inside}</joint></gazebo>")


@pytest.mark.parametrize("pose", [
    "<pose>0 0 0 1.57079632679 0 0</pose>", "<pose degrees='true'>0 0 0 90 0 0</pose>",
    "<pose rotation_format='quat_xyzw'>0 0 0 1 0 0 1</pose>"])
def test_poses_are_read_in_every_form(place: Place, pose: str) -> None:
    m, _ = read_urdf(place(closing("fixed", pose)))
    found = m.joint("g")
    np.testing.assert_allclose(found.child_pose.rotation, bc.Pose.about("x", math.pi / 2).rotation, atol=1e-15)
    assert found.parent_pose.position == (2.0, 0.0, 0.0)


@pytest.mark.parametrize(("text", "pitch"), [
    ("", 0.5 / math.pi), ("<screw_thread_pitch>0.2</screw_thread_pitch>", 0.1 / math.pi),
    ("<thread_pitch>-100</thread_pitch>", 0.01)])
def test_screws(place: Place, text: str, pitch: float) -> None:
    screw = read_urdf(place(closing("screw", text)))[0].joint("g").joint
    assert isinstance(screw, bc.Screw) and screw.axis == (0.0, 0.0, 1.0)
    assert screw.pitch == pytest.approx(pitch, rel=1e-15)


def test_a_screw_that_closes_a_loop_needs_its_pitch(place: Place) -> None:
    with pytest.raises(FileError, match="a screw needs <thread_pitch"):
        read_urdf(place("<loop_joint name='s' type='screw'><link1 link='a'/><link2 link='c'/></loop_joint>"))


def test_two_axes(place: Place) -> None:
    axes = "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 0 2</xyz></axis2>"
    for kind in ("universal", "revolute2"):
        hook = read_urdf(place(closing(kind, axes)))[0].joint("g").joint
        assert isinstance(hook, bc.Universal) and (hook.axis1, hook.axis2) == ((1, 0, 0), (0, 0, 1))
    with pytest.raises(FileError, match="<joint 'g'>: needs an <axis2> element"):
        read_urdf(place(closing("universal", "<axis><xyz>1 0 0</xyz></axis>")))


SPRING = "<dynamics><damping>2</damping><spring_stiffness>30</spring_stiffness><spring_reference>0.2</spring_reference>"


@pytest.mark.parametrize(("text", "joint"), [
    ("<gazebo reference='j'><implicitSpringDamper>1</implicitSpringDamper><springStiffness>30</springStiffness>"
     "<springReference>0.2</springReference></gazebo>", "j"),
    (closing("revolute", f"<axis><xyz>0 0 1</xyz>{SPRING}</dynamics></axis>"), "g")])
def test_springs_act_with_dynamics(place: Place, text: str, joint: str) -> None:
    path = place(text)
    spring = read_urdf(path, dynamics=True)[0].joint_forces[-1]
    assert spring.joint == joint and spring.law(0.5, 0.0) == pytest.approx(-30 * (0.5 - 0.2))
    m, report = read_urdf(path)
    assert not m.joint_forces and any("a spring that does not act" in note.text for note in report.warned)


@pytest.mark.parametrize(("text", "tag"), [
    ("<gazebo reference='a'><turnGravityOff>True</turnGravityOff></gazebo>", "turnGravityOff"),
    ("<gazebo reference='a'><gravity>False</gravity></gazebo>", "gravity"),
    ("<gazebo reference='a'><dampingFactor>0.1</dampingFactor></gazebo>", "dampingFactor"),
    ("<gazebo reference='a'><springStiffness>1</springStiffness></gazebo>", "springStiffness"),
    ("<gazebo><plugin name='p'><joint name='g' type='fixed'><parent>a</parent><child>c</child></joint></plugin>"
     "</gazebo>", "joint"),
    (closing("universal", f"<axis><xyz>1 0 0</xyz>{SPRING}</dynamics></axis><axis2><xyz>0 1 0</xyz></axis2>"), "axis"),
    ("<transmission name='t'><actuator name='m'><drake:rotor_inertia value='0.1'/></actuator></transmission>",
     "drake:rotor_inertia"),
    ("<link name='d'/><joint name='f' type='floating'><parent link='a'/><child link='d'/><dynamics damping='1'/>"
     "</joint>", "dynamics")])
def test_what_would_act_and_is_not_read_is_told(place: Place, text: str, tag: str) -> None:
    _, report = read_urdf(place(text), dynamics=True)
    assert [note.tag for note in report.warned] == [tag]


@pytest.mark.parametrize("text", [
    "<gazebo reference='a'><turnGravityOff>false</turnGravityOff><dampingFactor>0.0</dampingFactor></gazebo>",
    "<gazebo reference='j'><springStiffness>0</springStiffness></gazebo>"])
def test_what_does_nothing_gives_no_warning(place: Place, text: str) -> None:
    assert not read_urdf(place(text), dynamics=True)[1].warned
