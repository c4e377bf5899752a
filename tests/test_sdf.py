"""Reading SDF: what poses, axes, joints and nested models mean, checked against machines built by hand."""

from __future__ import annotations

import math
import pathlib

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.io.report import ReadWarning
from bellcrank.io.sdf import load_sdf, read_sdf

INERTIAL = ("<inertial><pose>0.1 0.02 -0.3 0 0 0</pose><mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.12</iyy>"
            "<izz>0.05</izz></inertia></inertial>")
BOB = bc.Inertia(2.0, (0.1, 0.02, -0.3), (0.1, 0.12, 0.05))


@pytest.fixture
def sdf(tmp_path: pathlib.Path):
    def write(body: str, version: str = "1.7", name: str = "m.sdf", model: str = "m") -> pathlib.Path:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        whole = body if body.startswith("<world") else f"<model name='{model}'>{body}</model>"
        file.write_text(f"<sdf version='{version}'>{whole}</sdf>")
        return file
    return write


def link(name: str, pose: str = "", more: str = INERTIAL) -> str:
    return f"<link name='{name}'>{pose and f'<pose>{pose}</pose>'}{more}</link>"


def joint(name: str, kind: str, parent: str, child: str, more: str = "", pose: str = "") -> str:
    return (f"<joint name='{name}' type='{kind}'>{pose}<parent>{parent}</parent><child>{child}</child>{more}</joint>")


def axis(xyz: str, more: str = "", tag: str = "axis", attribute: str = "") -> str:
    return f"<{tag}><xyz{attribute}>{xyz}</xyz>{more}</{tag}>"


def same_dynamics(one: bc.Mechanism, other: bc.Mechanism, tolerance: float = 1e-13) -> None:
    a, b = bc.compile(one, backend="numpy"), bc.compile(other, backend="numpy")
    assert (a.nq, a.nu) == (b.nq, b.nu)
    rng = np.random.default_rng(3)
    q, u = a.random_state(rng)
    tau = rng.normal(size=a.nu)
    expected = b.forward_dynamics(q, u, tau)
    assert np.abs(a.forward_dynamics(q, u, tau) - expected).max() <= tolerance * np.abs(expected).max()
    assert float(a.energy(q, u)) == pytest.approx(float(b.energy(q, u)), rel=1e-12)


# -- axes and poses of the versions ---------------------------------------------------------------
@pytest.mark.parametrize(("version", "extra", "frame"), [
    ("1.4", "", "model"), ("1.5", "", "joint"), ("1.6", "", "joint"),
    ("1.5", "<use_parent_model_frame>1</use_parent_model_frame>", "model"),
    ("1.6", "<use_parent_model_frame>true</use_parent_model_frame>", "model"),
    ("1.6", "<use_parent_model_frame>false</use_parent_model_frame>", "joint"), ("1.7", "", "joint")])
def test_an_axis_lies_in_the_frame_that_its_version_says(sdf, version, extra, frame):
    body = link("a", "1 2 3 0.3 0.2 0.1") + joint("j", "revolute", "world", "a", axis("0.6 0 0.8", extra),
                                                  "<pose>0 0 0.5 0.4 0 -0.7</pose>")
    place, hinge = bc.Pose.rpy((1, 2, 3), 0.3, 0.2, 0.1), bc.Pose.rpy((0, 0, 0.5), 0.4, 0, -0.7)
    direction = np.array([0.6, 0, 0.8])
    if frame == "model":
        direction = (place @ hinge).rotation.T @ direction
    m = bc.Mechanism("m")
    m.add_body("a", BOB)
    m.add_joint("j", bc.Revolute(direction), m.ground, "a", place @ hinge, hinge)
    same_dynamics(load_sdf(sdf(body, version)), m)


def test_model_pose_moves_everything_but_turns_no_axis_in_the_model_frame(sdf):
    body = "<pose>0 0 1 0 0 1.5707963267948966</pose>" + link("a", "1 0 0 0 0 0") + joint(
        "j", "revolute", "world", "a", axis("1 0 0", "<use_parent_model_frame>1</use_parent_model_frame>"))
    m = load_sdf(sdf(body, "1.6"))
    (hinge,) = m.joints
    np.testing.assert_allclose(hinge.parent_pose.position, (0, 1, 1), atol=1e-15)
    np.testing.assert_allclose(hinge.parent_pose.rotation @ hinge.joint.axis, (0, 1, 0), atol=1e-15)


def test_expressed_in_and_relative_to_and_attached_to(sdf):
    body = (link("a") + "<frame name='f' attached_to='a'><pose>0 0 1 0 0 0.5</pose></frame>"
            "<frame name='g'><pose relative_to='f'>1 0 0 0.2 0 0</pose></frame>"
            "<link name='b'><pose relative_to='g'>0 2 0 0 0 0</pose>" + INERTIAL + "</link>"
            + joint("j", "revolute", "f", "b", axis("0 1 0", attribute=" expressed_in='g'"),
                    "<pose relative_to='f'>0 0.1 0 0 0 0</pose>"))
    m = load_sdf(sdf(body))
    f, g = bc.Pose.rpy((0, 0, 1), 0, 0, 0.5), bc.Pose.rpy((1, 0, 0), 0.2, 0, 0)
    b = f @ g @ bc.Pose((0, 2, 0))
    here = f @ bc.Pose((0, 0.1, 0))
    by_hand = bc.Mechanism("m")
    by_hand.add_body("a", BOB)
    by_hand.add_body("b", BOB)
    by_hand.add_joint("root_joint", bc.Free(), by_hand.ground, "a")
    by_hand.add_joint("j", bc.Revolute(here.rotation.T @ (f @ g).rotation @ (0, 1, 0)), "a", "b", here,
                      b.inverse() @ here)
    same_dynamics(m, by_hand, 1e-12)
    frames = {frame.name: frame for frame in m.frames}
    assert frames["f"].body == 1 and frames["g"].body == 1  # g hangs on the model frame, which is that of link a
    np.testing.assert_allclose(frames["g"].pose.position, (f @ g).position, atol=1e-15)


@pytest.mark.parametrize("text", [
    "<pose degrees='true'>1 0 0 90 0 0</pose>", "<pose degrees='1'>1 0 0 90 0 0</pose>",
    "<pose rotation_format='quat_xyzw'>1 0 0 0.7071067811865476 0 0 0.7071067811865476</pose>",
    "<pose rotation_format='euler_rpy'>1 0 0 1.5707963267948966 0 0</pose>", "<pose>1 0 0 1.57079632679 0 0</pose>"])
def test_rotations_are_read_in_every_form(sdf, text):
    m = load_sdf(sdf(f"<link name='a'>{text}{INERTIAL}</link>", "1.9"), floating_base=False)
    pose = m.joints[0].parent_pose
    np.testing.assert_allclose(pose.rotation, bc.Pose.about("x", math.pi / 2).rotation, atol=1e-15)
    assert pose.position == (1.0, 0.0, 0.0)


# -- joint types ------------------------------------------------------------------------------------
def test_every_joint_type(sdf):
    types = {"revolute": bc.Revolute, "continuous": bc.Revolute, "prismatic": bc.Prismatic, "ball": bc.Spherical,
             "fixed": bc.Weld, "universal": bc.Universal, "revolute2": bc.Universal, "screw": bc.Screw}
    for kind, expected in types.items():
        more = axis("1 0 0") + axis("0 1 1", tag="axis2")
        m, _ = read_sdf(sdf(link("a") + joint("j", kind, "world", "a", more), "1.10"))
        assert type(m.joint("j").joint) is expected, kind
        assert not any(isinstance(j.joint, bc.Free) for j in m.joints)


def test_two_axes_need_not_be_perpendicular(sdf):
    m = load_sdf(sdf(link("a") + joint("j", "revolute2", "world", "a", axis("1 0 0") + axis("0.6 0.8 0", tag="axis2"))))
    by_hand = bc.Mechanism("m")
    by_hand.add_body("a", BOB)
    by_hand.add_body("cross")
    by_hand.add_joint("one", bc.Revolute("x"), by_hand.ground, "cross")
    by_hand.add_joint("two", bc.Revolute((0.6, 0.8, 0)), "cross", "a")
    same_dynamics(m, by_hand, 1e-12)
    with pytest.raises(bc.FileError, match="parallel"):
        load_sdf(sdf(link("a") + joint("j", "revolute2", "world", "a", axis("1 0 0") + axis("1 0 0", tag="axis2"))))


@pytest.mark.parametrize(("text", "pitch"), [
    ("<thread_pitch>-100</thread_pitch>", 0.01), ("<screw_thread_pitch>0.02</screw_thread_pitch>", 0.01 / math.pi),
    ("<screw_thread_pitch>0.02</screw_thread_pitch><thread_pitch>5</thread_pitch>", 0.01 / math.pi)])
def test_screws_advance_by_their_pitch(sdf, text, pitch):
    m = load_sdf(sdf(link("a") + joint("j", "screw", "world", "a", axis("0 0 1") + text), "1.10"))
    assert m.joint("j").joint.pitch == pytest.approx(pitch, rel=1e-15)


def test_springs_damping_and_friction_act(sdf):
    more = axis("1 0 0", "<dynamics><damping>0.5</damping><friction>0.2</friction><spring_reference>0.3"
                         "</spring_reference><spring_stiffness>20</spring_stiffness></dynamics>")
    file = sdf(link("a") + joint("j", "revolute", "world", "a", more))
    m, report = read_sdf(file)
    bare = read_sdf(file, dissipation=False)[0]
    by_hand = bc.Mechanism("m")
    by_hand.add_body("a", BOB)
    by_hand.add_joint("j", bc.Revolute("x"), by_hand.ground, "a")
    by_hand.add_joint_spring("s", "j", stiffness=20, rest=0.3)
    same_dynamics(bare, by_hand)
    by_hand.add_friction("f", "j", coulomb=0.2, viscous=0.5)
    same_dynamics(m, by_hand)
    assert report.dynamics["j"].damping == 0.5


def test_limits_are_data_unless_asked_for(sdf):
    more = axis("1 0 0", "<limit><lower>-1</lower><upper>0.5</upper><effort>-1</effort><velocity>3</velocity></limit>")
    file = sdf(link("a") + joint("j", "revolute", "world", "a", more))
    m, report = read_sdf(file)
    assert not m.joint_forces
    assert report.limits["j"] == type(report.limits["j"])(-1.0, 0.5, math.inf, 3.0)
    (stop,) = read_sdf(file, limits=True, limit_stiffness=100.0)[0].joint_forces
    assert stop.law(1.0, 0.0) == pytest.approx(-50.0)


# -- gears ------------------------------------------------------------------------------------------
def gear(ratio: float, flip: bool = False, reference: str = "base") -> str:
    first = axis("0 0 1")
    second = joint("out", "revolute", *(("wheel", "base") if flip else ("base", "wheel")), axis("0 0 1"))
    return (link("base") + link("motor") + link("wheel", "0.2 0 0 0 0 0") + joint("fix", "fixed", "world", "base")
            + joint("in", "revolute", "base", "motor", first) + second
            + joint("box", "gearbox", "motor", "wheel", f"<gearbox_ratio>{ratio}</gearbox_ratio>"
                    f"<gearbox_reference_body>{reference}</gearbox_reference_body>"
                    + axis("0 0 1") + axis("0 0 1", tag="axis2")))


@pytest.mark.parametrize("flip", [False, True])
def test_a_gearbox_relates_two_angles(sdf, flip):
    system = bc.compile(load_sdf(sdf(gear(0.04, flip))), backend="numpy")
    assert system.dof == 1
    state = system.assemble(q={"in": 1.0})
    angles = dict(zip(system.coordinate_names, state.q, strict=True))
    sign = 1.0 if flip else -1.0  # an angle against the reference body counts the other way for a flipped joint
    assert angles["out.angle"] == pytest.approx(sign * 0.04 * angles["in.angle"], rel=1e-12)


def test_a_gearbox_without_joints_to_its_reference_is_an_error(sdf):
    with pytest.raises(bc.FileError, match="no revolute joint connects 'motor' with the reference body 'wheel'"):
        load_sdf(sdf(gear(0.04, reference="wheel")))


def test_mimic_axes_are_exact(sdf):
    more = axis("0 0 1", "<mimic joint='in'><multiplier>-2</multiplier><offset>0.1</offset><reference>0.5</reference>"
                         "</mimic>")
    body = link("a") + link("b") + joint("in", "revolute", "world", "a", axis("0 0 1")) + joint(
        "out", "revolute", "a", "b", more)
    m, report = read_sdf(sdf(body, "1.11"))
    system = bc.compile(m, backend="numpy")
    assert system.dof == 1
    q = system.assemble(q=np.array([0.4, 0.3])).q
    assert q[1] == pytest.approx(-2.0 * (q[0] - 0.5) + 0.1, abs=1e-12)
    assert report.mimics["out"].joint == "in"


# -- graphs, worlds, nested models --------------------------------------------------------------------
def test_a_link_with_two_parents_is_a_loop(sdf):
    body = (link("base") + link("crank") + link("coupler", "0.3 0 0 0 0 0") + link("rocker", "1 0 0 0 0 0")
            + joint("fix", "fixed", "world", "base") + joint("a", "revolute", "base", "crank", axis("0 1 0"))
            + joint("b", "revolute", "crank", "coupler", axis("0 1 0"))
            + joint("c", "revolute", "base", "rocker", axis("0 1 0"))
            + joint("d", "revolute", "coupler", "rocker", axis("0 1 0"), "<pose>0 0 0.4 0 0 0</pose>"))
    system = bc.compile(load_sdf(sdf(body)), backend="numpy")
    assert len(system.loops) == 1 and system.dof == 1
    assert np.abs(system.loop_error(system.assemble().q)).max() < 1e-14


def test_models_of_a_world(sdf):
    one = f"<model name='one'>{link('a')}</model>"
    two = f"<model name='two'><pose>0 0 2 0 0 0</pose>{link('a')}</model>"
    still = f"<model name='table'><static>true</static>{link('top')}</model>"
    file = sdf(f"<world name='w'><gravity>0 0 -1.62</gravity>{one}{two}{still}</world>")
    m = load_sdf(file)
    assert [body.name for body in m.bodies] == ["one::a", "two::a", "table::top"]
    assert m.gravity == (0.0, 0.0, -1.62) and m.name == "w"
    kinds = {m.bodies[j.child - 1].name: type(j.joint) for j in m.joints}
    assert kinds == {"one::a": bc.Free, "two::a": bc.Free, "table::top": bc.Weld}
    only, report = read_sdf(file, model="two")
    assert [body.name for body in only.bodies] == ["a"] and only.joints[0].drawn_pose.position == (0.0, 0.0, 2.0)
    assert len(report.ignored) == 2
    with pytest.raises(bc.FileError, match="has no model 'three'"):
        load_sdf(file, model="three")
    assert load_sdf(sdf(f"<world name='w'>{one}</world>")).gravity == (0.0, 0.0, -9.8)
    assert load_sdf(file, gravity=(0, 0, 0)).gravity == (0.0, 0.0, 0.0)


def test_nested_and_included_models(sdf):
    sdf(link("hand") + "<frame name='tip'><pose>0 0 0.5 0 0 0</pose></frame>", "1.6", "parts/hand.sdf", "hand")
    inner = f"<model name='arm'><pose>0 0 1 0 0 0</pose>{link('upper')}</model>"
    include = ("<include><uri>parts/hand.sdf</uri><name>left</name><pose relative_to='arm::upper'>1 0 0 0 0 0</pose>"
               "</include>")
    body = (link("base") + inner + include + joint("shoulder", "revolute", "base", "arm::upper", axis("0 1 0"))
            + joint("wrist", "ball", "arm::upper", "left::hand"))
    m = load_sdf(sdf(body))
    assert [body.name for body in m.bodies] == ["base", "arm::upper", "left::hand"]
    assert m.joint("wrist").parent_pose.position == (1.0, 0.0, 0.0)
    assert m.joint("shoulder").parent_pose.position == (0.0, 0.0, 1.0)
    placed = load_sdf(sdf("<include><uri>model://parts/hand.sdf</uri><placement_frame>tip</placement_frame>"
                          "<pose>0 0 3 0 0 0</pose></include>", "1.9"))
    assert placed.joints[0].drawn_pose.position == (0.0, 0.0, 2.5)
    merged = load_sdf(sdf("<include merge='true'><uri>parts/hand.sdf</uri></include>"
                          + joint("j", "fixed", "world", "hand"), "1.9"))
    assert [body.name for body in merged.bodies] == ["hand"]


def test_links_without_gravity_do_not_fall(sdf):
    system = bc.compile(load_sdf(sdf(link("a", more=INERTIAL + "<gravity>0</gravity>"))), backend="numpy")
    q = system.neutral()
    assert np.abs(system.forward_dynamics(q, np.zeros(6))).max() < 1e-14


# -- what is told -------------------------------------------------------------------------------------
def test_the_report_lists_what_is_beside_the_mechanics(sdf):
    shape = ("<visual name='v'><pose>0 0 1 0 0 0</pose><geometry><box><size>1 2 3</size></box></geometry><material>"
             "<diffuse>1 0 0 1</diffuse></material></visual><collision name='c'><geometry><plane/></geometry>"
             "</collision><sensor name='s' type='imu'/>")
    m, report = read_sdf(sdf(link("a", more=INERTIAL + shape) + "<plugin name='p' filename='p.so'/>"))
    assert [(s.kind, s.size, s.role) for s in report.shapes] == [("box", (1.0, 2.0, 3.0), "visual"),
                                                                         ("plane", (), "collision")]
    assert {n.tag for n in report.ignored} == {"sensor", "plugin"}
    assert len(m.bodies) == 1 and not report.surprises


def test_what_changes_the_motion_and_is_not_modelled_warns(sdf):
    decay = "<velocity_decay><linear>0.1</linear></velocity_decay>"
    with pytest.warns(ReadWarning, match="damping of a whole body"):
        load_sdf(sdf(link("a", more=INERTIAL + decay)))


def test_sdf_gives_bodies_that_say_nothing_one_kilogram(sdf):
    m, report = read_sdf(sdf("<link name='a'/>"))
    assert m.bodies[0].inertia == bc.Inertia(1.0, (0, 0, 0), 1.0)
    assert "1 kg" in report.changed[0].text


def test_nearly_parallel_axes_of_loops_are_told_and_mended(sdf):
    tilt = "1e-4"
    body = (link("base") + link("crank") + link("coupler", f"0.3 0 0 {tilt} 0 0") + link("rocker", "1 0 0 0 0 0")
            + joint("fix", "fixed", "world", "base") + joint("a", "revolute", "base", "crank", axis("0 1 0"))
            + joint("b", "revolute", "crank", "coupler", axis("0 1 0"))
            + joint("c", "revolute", "base", "rocker", axis("0 1 0"))
            + joint("d", "revolute", "coupler", "rocker", axis("0 1 0"), "<pose>0 0 0.4 0 0 0</pose>"))
    file = sdf(body)
    m, report = read_sdf(file)
    assert bc.compile(m, backend="numpy").dof == 0 and "planar linkages may lock" in report.warned[0].text
    m, report = read_sdf(file, parallel=1e-3)
    assert bc.compile(m, backend="numpy").dof == 1 and not report.warned
