"""Loops in URDF files: one four-bar linkage in every spelling that is read, and what else stands beside the tree."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc
from bellcrank.errors import FileError
from bellcrank.io.urdf import load_urdf, read_urdf
from bellcrank.io.urdf.loop_dialects import carried
from bellcrank.mechanism.joints import Spherical, Universal, Weld
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

Floats = npt.NDArray[np.float64]
Place = Callable[..., Path]
needs_yaml = pytest.mark.skipif(importlib.util.find_spec("yaml") is None, reason="needs PyYAML")

# the coupler's frame is turned in all directions, the rocker's about the hinges; everything is closed at zero
ROCKER_AT, ROCKER_TURN = (0.8, 0.0, 0.0), (0.0, 0.3, 0.0)
COUPLER_AT, COUPLER_TURN = (0.0, 0.0, 0.3), (0.5, 0.2, 0.7)
PIN = (0.9, 0.0, 0.5)
TREE = ("crank_joint", "coupler_joint", "rocker_joint")
COUPLER, ROCKER = Pose.rpy(COUPLER_AT, *COUPLER_TURN), Pose.rpy(ROCKER_AT, *ROCKER_TURN)
COUPLER_AXIS = COUPLER.rotation.T @ [0.0, 1.0, 0.0]


def words(numbers: object) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(np.asarray(numbers, dtype=float)))


def body(name: str, mass: float, com: tuple[float, ...]) -> str:
    return (f"<link name='{name}'><inertial><origin xyz='{words(com)}'/><mass value='{mass}'/>"
            "<inertia ixx='0.02' ixy='0.001' ixz='0' iyy='0.03' iyz='-0.002' izz='0.025'/></inertial></link>")


def hinge(name: str, parent: str, child: str, at: object, turn: object, axis: object, inside: str = "") -> str:
    return (f"<joint name='{name}' type='revolute'><parent link='{parent}'/><child link='{child}'/>"
            f"<origin xyz='{words(at)}' rpy='{words(turn)}'/><axis xyz='{words(axis)}'/>{inside}</joint>")


OPEN = ("<link name='base'/>" + body("crank", 0.5, (0.0, 0.0, 0.15)) + body("coupler", 1.5, (0.3, 0.1, 0.0))
        + body("rocker", 1.0, (0.05, 0.0, 0.25))
        + hinge("crank_joint", "base", "crank", (0, 0, 0), (0, 0, 0), (0, 1, 0))
        + hinge("coupler_joint", "crank", "coupler", COUPLER_AT, COUPLER_TURN, COUPLER_AXIS)
        + hinge("rocker_joint", "base", "rocker", ROCKER_AT, ROCKER_TURN, (0, 1, 0)))


def inside(link: Pose) -> tuple[Floats, Floats]:
    """The pin in a link: where it is, and the world's axes there."""
    pose = link.inverse() @ Pose(PIN)
    return np.array(pose.position, dtype=float), pose.rotation


def rpy(matrix: Floats) -> tuple[float, float, float]:
    return (math.atan2(matrix[2, 1], matrix[2, 2]), -math.asin(matrix[2, 0]), math.atan2(matrix[1, 0], matrix[0, 0]))


(COUPLER_PIN, COUPLER_AXES), (ROCKER_PIN, ROCKER_AXES) = inside(COUPLER), inside(ROCKER)
SIDES = (f"link='coupler' xyz='{words(COUPLER_PIN)}' rpy='{words(rpy(COUPLER_AXES))}'",
         f"link='rocker' xyz='{words(ROCKER_PIN)}' rpy='{words(rpy(ROCKER_AXES))}'")
ENDS = "<parent link='coupler'/><child link='rocker'/>"
ORIGINS = (f"<parent_origin xyz='{words(COUPLER_PIN)}'/>", f"<child_origin xyz='{words(ROCKER_PIN)}'/>")
SDF_POSE = f"<pose>{words(ROCKER_PIN)} {words(rpy(ROCKER_AXES))}</pose>"
SDF_ENDS = "<parent>coupler</parent><child>rocker</child>"

SPELLINGS = {
    "Drake's loop_joint": f"<loop_joint name='pin' type='continuous'><link1 {SIDES[0]}/><link2 {SIDES[1]}/>"
                          "<axis xyz='0 1 0'/></loop_joint>",
    "link2 first": f"<loop_joint name='pin' type='revolute'><link2 {SIDES[1]}/><link1 {SIDES[0]}/>"
                   "<axis xyz='0 3 0'/></loop_joint>",
    "parent and child, axis in the parent": f"<loop_joint name='pin' type='revolute'>{ENDS}{ORIGINS[0]}{ORIGINS[1]}"
                                            f"<axis xyz='{words(COUPLER_AXIS)}' frame='parent'/></loop_joint>",
    "constraint with two axes": f"<constraint name='pin' type='revolute'>{ENDS}{ORIGINS[0]}{ORIGINS[1]}"
                                f"<parent_axis xyz='{words(COUPLER_AXIS)}'/><child_axis xyz='0 1 0'/></constraint>",
    "constraint with turned origins": "<constraint name='pin' type='revolute'><parent link='coupler'/>"
                                      f"<parent_origin {SIDES[0].split(' ', 1)[1]}/><child link='rocker'/>"
                                      f"<child_origin {SIDES[1].split(' ', 1)[1]}/><parent_axis xyz='0 1 0'/>"
                                      "</constraint>",
    "gazebo": f"<gazebo><joint name='pin' type='revolute'>{SDF_ENDS}{SDF_POSE}<axis><xyz>0 1 0</xyz></axis></joint>"
              "</gazebo>",
    "gazebo, everything in the model": f"<gazebo><joint name='pin' type='revolute'>{SDF_ENDS}"
                                       f"<pose relative_to='__model__'>{words(PIN)} 0.1 0.2 0.3</pose><axis>"
                                       "<xyz expressed_in='base'>0 1 0</xyz></axis></joint></gazebo>",
    "gazebo, old axis": f"<gazebo><joint name='pin' type='revolute'>{SDF_ENDS}<pose>{words(ROCKER_PIN)} 0 0 0</pose>"
                        "<axis><xyz>0 1 0</xyz><use_parent_model_frame>1</use_parent_model_frame></axis></joint>"
                        "</gazebo>",
}
BALLS = {
    "Drake's ball_constraint": "<drake:ball_constraint><drake:ball_constraint_body_A name='coupler'/>"
                               "<drake:ball_constraint_body_B name='rocker'/>"
                               f"<drake:ball_constraint_p_AP value='{words(COUPLER_PIN)}'/>"
                               f"<drake:ball_constraint_p_BQ value='{words(ROCKER_PIN)}'/></drake:ball_constraint>",
    "Isaac Sim's loop_joint": f"<loop_joint name='pin' type='spherical'><link1 {SIDES[0]}/><link1 {SIDES[1]}/>"
                              "</loop_joint>",
    "gazebo": f"<gazebo><joint name='pin' type='ball'>{SDF_ENDS}<pose>{words(ROCKER_PIN)} 0 0 0</pose></joint>"
              "</gazebo>",
    "constraint": f"<constraint name='pin' type='spherical'>{ENDS}{''.join(ORIGINS)}</constraint>",
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    def write(text: str, name: str = "robot.urdf", *, xml: bool = True) -> Path:
        path = tmp_path / name
        path.write_text(f"<robot name='r'>\n{text}\n</robot>" if xml else text)
        return path

    return write


def reference() -> Mechanism:
    """The linkage built by hand, open."""
    m = Mechanism("reference")
    about = [[0.02, 0.001, 0.0], [0.001, 0.03, -0.002], [0.0, -0.002, 0.025]]
    for name, mass, com in (("crank", 0.5, (0.0, 0.0, 0.15)), ("coupler", 1.5, (0.3, 0.1, 0.0)),
                            ("rocker", 1.0, (0.05, 0.0, 0.25))):
        m.add_body(name, bc.Inertia(mass, com, about))
    m.add_joint("crank_joint", bc.Revolute("y"), m.ground, "crank")
    m.add_joint("coupler_joint", bc.Revolute(COUPLER_AXIS), "crank", "coupler", COUPLER)
    m.add_joint("rocker_joint", bc.Revolute("y"), m.ground, "rocker", ROCKER)
    return m


def closed() -> Mechanism:
    m = reference()
    m.add_joint("pin", bc.Revolute("y"), "coupler", "rocker", Pose(COUPLER_PIN, COUPLER_AXES),
                Pose(ROCKER_PIN, ROCKER_AXES))
    return m


def motion(m: Mechanism) -> Floats:
    """Positions, speeds and accelerations of the three hinges at one moment."""
    extra = [c.name for c in m.joints if c.name not in (*TREE, "root_joint")
             and c.joint.nu < 6 and {m.bodies[c.parent - 1].name, m.bodies[c.child - 1].name} == {"coupler", "rocker"}]
    system = bc.compile(m, backend="numpy", cut=extra)
    assert system.dof == 1
    state = system.assemble(q={"crank_joint": 0.4}, u={"crank_joint": 1.3})
    udot = system.forward_dynamics(state.q, state.u, {"crank_joint": 0.7})
    return np.concatenate([hinges(system, values) for values in (state.q, state.u, udot)])


def hinges(system: bc.System, values: Floats) -> Floats:
    """The entries of the three hinges of the tree."""
    return values[[system.coordinate_names.index(f"{name}.angle") for name in TREE]]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_one_linkage_in_every_spelling(place: Place, spelling: str, recwarn: pytest.WarningsRecorder) -> None:
    m = load_urdf(place(OPEN + SPELLINGS[spelling]), exact_angles=False)
    assert [c.name for c in m.joints] == ["root_joint", *TREE[:2], "rocker_joint", "pin"]
    np.testing.assert_allclose(motion(m), motion(closed()), rtol=0, atol=1e-9)
    assert not recwarn.list


@pytest.mark.parametrize("spelling", BALLS)
def test_ball_closures(place: Place, spelling: str) -> None:
    m = load_urdf(place(OPEN + BALLS[spelling]), exact_angles=False)
    closing = m.joints[-1]
    assert isinstance(closing.joint, Spherical)
    np.testing.assert_allclose(motion(m), motion(closed()), rtol=0, atol=1e-8)


@needs_yaml
def test_scikit_robot_side_file(place: Place) -> None:
    urdf = place(OPEN)
    text = (f"closures:\n- {{link_a: coupler, link_b: rocker, point: [{', '.join(map(str, PIN))}], axis: [0, 1, 0]}}\n"
            "dependent: [coupler_joint]\nindependent: [crank_joint]\n")
    place(text, "loop_closures.yaml", xml=False)
    m, report = read_urdf(urdf, exact_angles=False)
    assert m.joints[-1].name == "coupler_rocker"
    np.testing.assert_allclose(motion(m), motion(closed()), rtol=0, atol=1e-9)
    assert "1 loop closed as listed in loop_closures.yaml" in str(report)
    assert len(read_urdf(urdf, closures=False)[0].joints) == 4


@needs_yaml
@pytest.mark.parametrize("name, kind", [("robot.yaml", "6d"), ("other.yaml", "3D")])
def test_gepetto_side_file(place: Place, name: str, kind: str) -> None:
    """Frames are massless links; a whole frame closes through one more hinge, as its authors do."""
    links = "<link name='loop_A'/><link name='loop_B'/><link name='pin_link'/>"
    a = (f"<joint name='to_A' type='fixed'><parent link='coupler'/><child link='loop_A'/>"
         f"<origin {SIDES[0].split(' ', 1)[1]}/></joint>")
    b = hinge("pin", "rocker", "pin_link", ROCKER_PIN, rpy(ROCKER_AXES), (0, 1, 0)) + (
        "<joint name='to_B' type='fixed'><parent link='pin_link'/><child link='loop_B'/></joint>")
    urdf = place(OPEN + links + a + b)
    place(f"closed_loop: [['to_A', 'loop_B']]\ntype: ['{kind}']\nname_mot: ['crank_joint']\n", name, xml=False)
    m, _ = read_urdf(urdf, exact_angles=False, closures=None if name == "robot.yaml" else name)
    assert isinstance(m.joints[-1].joint, Weld if kind == "6d" else Spherical)
    assert {m.bodies[m.joints[-1].parent - 1].name, m.bodies[m.joints[-1].child - 1].name} == {"loop_A", "loop_B"}
    if kind == "6d":
        system = bc.compile(m, backend="numpy", cut=[m.joints[-1].name])
        state = system.assemble(q={"crank_joint": 0.4}, u={"crank_joint": 1.3})
        wanted = motion(closed())
        np.testing.assert_allclose(hinges(system, state.q), wanted[:3], atol=1e-9)
        udot = system.forward_dynamics(state.q, state.u, {"crank_joint": 0.7})
        np.testing.assert_allclose(hinges(system, udot), wanted[6:], atol=1e-8)


@needs_yaml
def test_gepetto_joint_types(place: Place) -> None:
    urdf = place(OPEN)
    place("closed_loop: []\njoint_name: [coupler_joint, rocker_joint]\njoint_type: [SPHERICAL, UJOINT_YZ]\n",
          "robot.yaml", xml=False)
    m = load_urdf(urdf)
    assert isinstance(m.joint("coupler_joint").joint, Spherical)
    hook = m.joint("rocker_joint").joint
    assert isinstance(hook, Universal)
    assert (hook.axis1, hook.axis2) == ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def test_drakes_joints_springs_and_bushings(place: Place) -> None:
    links = "".join(f"<link name='{n}'/>" for n in "abcde")
    text = links + "".join(
        f"<drake:joint name='{kind}' type='{kind}'><parent link='{p}'/><child link='{c}'/>{more}</drake:joint>"
        for kind, p, c, more in (("ball", "a", "b", ""), ("universal", "b", "c", ""),
                                 ("planar", "c", "d", "<axis xyz='0 0 1'/>"),
                                 ("screw", "d", "e", "<axis xyz='0 0 1'/><drake:screw_thread_pitch value='0.5'/>")))
    text += ("<frame name='fa' link='a' xyz='1 2 3' rpy='0 0 0.5'/><fixed_frame name='fb'><parent link='b'/>"
             "<origin xyz='0 0 1'/></fixed_frame><drake:linear_bushing_rpy><drake:bushing_frameA name='fa'/>"
             "<drake:bushing_frameC name='fb'/><drake:bushing_torque_stiffness value='1 2 3'/>"
             "<drake:bushing_torque_damping value='4 5 6'/><drake:bushing_force_stiffness value='7 8 9'/>"
             "<drake:bushing_force_damping value='10 11 12'/></drake:linear_bushing_rpy>"
             "<drake:linear_spring_damper><drake:linear_spring_damper_body_A name='a'/>"
             "<drake:linear_spring_damper_p_AP value='1 0 0'/><drake:linear_spring_damper_body_B name='fb'/>"
             "<drake:linear_spring_damper_p_BQ value='0 1 0'/><drake:linear_spring_damper_free_length value='0.7'/>"
             "<drake:linear_spring_damper_stiffness value='8'/><drake:linear_spring_damper_damping value='9'/>"
             "</drake:linear_spring_damper>")
    m, report = read_urdf(place(text))
    assert [type(m.joint(n).joint).__name__ for n in ("ball", "universal", "planar", "screw")] == [
        "Spherical", "Universal", "Planar", "Screw"]
    assert m.joint("screw").joint.constants()[2] == 0.5 / (2 * math.pi)
    assert [(f.name, f.pose.position) for f in m.frames] == [("fa", (1, 2, 3)), ("fb", (0, 0, 1))]
    (bushing,) = m.bushings
    assert (bushing.bushing.stiffness, bushing.bushing.turn_stiffness) == ((7, 8, 9), (1, 2, 3))
    assert (bushing.bushing.damping, bushing.bushing.turn_damping) == ((10, 11, 12), (4, 5, 6))
    assert bushing.first_pose == Pose.rpy((1, 2, 3), 0, 0, 0.5)
    (spring,) = m.springs
    assert (spring.first_point, spring.second_point, spring.law(1.7, 0.0)) == ((1, 0, 0), (0, 1, 1), 8.0)
    assert "equal to Drake's bushing for small" in str(report)


def test_mimic_chains_are_exact(place: Place) -> None:
    chain = "<link name='a'/>" + "".join(body(n, 1.0, (0.1, 0.0, 0.2)) for n in "bcd") + hinge(
        "k", "b", "c", (0, 0, 1), (0, 0, 0), (0, 1, 0), "<mimic joint='j' multiplier='-2' offset='0.1'/>") + hinge(
        "j", "a", "b", (0, 0, 0), (0, 0, 0), (1, 0, 0)) + hinge(
        "l", "c", "d", (0, 0, 1), (0, 0, 0), (0, 0, 1), "<drake:mimic joint='k' multiplier='0.5'/>")
    path = place(chain)
    m = load_urdf(path)
    system, free = bc.compile(m, backend="numpy"), bc.compile(load_urdf(path, mimic="free"), backend="numpy")
    assert (system.dof, free.dof) == (1, 3)
    state = system.assemble(q={"j": 0.3}, u={"j": 0.9})
    np.testing.assert_allclose(state.q, [0.3, -0.5, -0.25], atol=1e-14)
    # the same by projection of the free chain: q = G x + offset
    g, tau = np.array([1.0, -2.0, -1.0]), np.array([0.4, 0.5, -0.6])
    matrix, bias = free.mass_matrix(state.q), free.inverse_dynamics(state.q, 0.9 * g, 0.0 * g)
    wanted = g * (g @ (tau - bias)) / (g @ matrix @ g)
    np.testing.assert_allclose(system.forward_dynamics(state.q, state.u, tau), wanted, rtol=1e-12)


def test_a_mimic_that_never_moves_is_held(place: Place) -> None:
    text = OPEN.replace("</joint>", "<mimic joint='crank_joint' multiplier='0' offset='0.2'/></joint>").replace(
        "<mimic joint='crank_joint' multiplier='0' offset='0.2'/></joint>", "</joint>", 1)
    m, report = read_urdf(place(text))
    assert [c.name for c in m.joints if c.prescribed] == ["coupler_joint", "rocker_joint"]
    assert "counts zero times: held at 0.2" in str(report)


def test_damping_and_friction_on_request(place: Place) -> None:
    text = OPEN.replace("</joint>", "<dynamics damping='0.5' friction='0.2'/></joint>") + SPELLINGS["gazebo"].replace(
        "</xyz></axis>", "</xyz><limit><lower>-1</lower><upper>inf</upper></limit><dynamics><damping>3</damping>"
                         "</dynamics></axis>")
    path = place(text)
    quiet, report = read_urdf(path)
    assert not quiet.joint_forces
    assert report.limits["pin"].lower == -1.0
    assert "unless read with dynamics=True" in str(report)
    m, report = read_urdf(path, dynamics=True)
    assert not report.warned
    assert [(f.name, f.law(0.0, 2.0)) for f in m.joint_forces] == [
        (f"{n}_friction", -1.2) for n in TREE] + [("pin_friction", -6.0)]
    system, free = bc.compile(m, backend="numpy"), bc.compile(quiet, backend="numpy")
    assert system.dof == free.dof == 1


@pytest.mark.parametrize("first, second", [((1, 0, 0), (1, 0, 0)), ((1, 0, 0), (-1, 0, 0)),
                                           ((1, 2, 3), (-1, -2, -3.0000001)),
                                           ((0, 0, 1), (0.3, -0.5, -0.9)), ((1, 2, 2), (2, 1, -2))])
def test_carrying_one_axis_to_another(first: tuple[float, ...], second: tuple[float, ...]) -> None:
    turn = carried(first, second)
    np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(turn) > 0
    one, two = (np.array(v) / np.linalg.norm(v) for v in (first, second))
    np.testing.assert_allclose(turn @ one, two, atol=1e-15)


def test_a_universal_constraint_has_crossed_axes(place: Place) -> None:
    m = load_urdf(place(OPEN + f"<constraint name='pin' type='universal'>{ENDS}<parent_axis xyz='1 1 0'/>"
                               "<child_axis xyz='1 1 0'/></constraint>"))
    hook, pin = m.joint("pin").joint, m.joint("pin")
    assert isinstance(hook, Universal)
    np.testing.assert_allclose(hook.axis1, np.array([1, 1, 0]) / math.sqrt(2), atol=1e-15)
    np.testing.assert_allclose(np.dot(hook.axis1, hook.axis2), 0.0, atol=1e-15)
    np.testing.assert_allclose(pin.child_pose.rotation @ hook.axis2, np.array([1, 1, 0]) / math.sqrt(2), atol=1e-15)


BAD: dict[str, tuple[str, str]] = {
    "unknown link": ("<loop_joint name='p' type='revolute'><link1 link='x'/><link2 link='rocker'/></loop_joint>",
                     "there is no link 'x'"),
    "one side": ("<loop_joint name='p' type='revolute'><link1 link='crank'/></loop_joint>", "needs <link1> and"),
    "unknown type": ("<loop_joint name='p' type='rope'><link1 link='crank'/><link2 link='rocker'/></loop_joint>",
                     "the joint type 'rope' closes no loop"),
    "itself": ("<loop_joint name='p' type='revolute'><link1 link='crank'/><link2 link='crank'/></loop_joint>",
               "connects body 'crank' with itself"),
    "name taken": ("<loop_joint name='crank_joint' type='ball'><link1 link='base'/><link2 link='rocker'/></loop_joint>",
                   "exists already"),
    "gazebo link": ("<gazebo><joint name='p' type='ball'><parent>x</parent><child>crank</child></joint></gazebo>",
                    "there is no link 'x'"),
    "gazebo number": ("<gazebo><joint name='p' type='revolute'><parent>crank</parent><child>rocker</child><axis>"
                      "<xyz>0 nan 0</xyz></axis></joint></gazebo>", "'nan' is not a finite number"),
    "gazebo frame": ("<gazebo><joint name='p' type='ball'><parent>crank</parent><child>rocker</child>"
                     "<pose relative_to='q'>0 0 0 0 0 0</pose></joint></gazebo>", "no link or joint 'q'"),
    "constraint axis": (f"<constraint name='p' type='revolute'>{ENDS}<parent_axis xyz='0 0 0'/></constraint>",
                        "has no direction"),
    "no type": (f"<constraint name='p'>{ENDS}</constraint>", "'type'"),
    "ball body": ("<drake:ball_constraint><drake:ball_constraint_body_A name='x'/></drake:ball_constraint>",
                  "no frame or link 'x'"),
    "mimic circle": ("<link name='e'/><link name='f'/>" + hinge("m", "base", "e", (0, 0, 0), (0, 0, 0), (0, 1, 0),
                                                               "<mimic joint='n'/>")
                     + hinge("n", "base", "f", (0, 0, 0), (0, 0, 0), (0, 1, 0), "<mimic joint='m'/>"),
                     "run in a circle"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_loops(place: Place, what: str) -> None:
    text, reason = BAD[what]
    path = place(OPEN + "\n" + text)
    with pytest.raises(FileError) as caught:
        load_urdf(path)
    assert str(caught.value).startswith(f"{path}:3: <")
    assert reason in str(caught.value)


def test_old_gazebo_joints_are_told(place: Place) -> None:
    _, report = read_urdf(place(OPEN + "<gazebo><joint:revolute name='p'><body1>a</body1><body2>b</body2>"
                                       "</joint:revolute></gazebo>"))
    assert "closes a loop in a simulator, not read" in str(report)
