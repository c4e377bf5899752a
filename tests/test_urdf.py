"""The URDF reader: every feature, every kind of bad file, and the robots of example-robot-data."""

from __future__ import annotations

import doctest
import math
import os
import random
import sysconfig
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bellcrank.errors import FileError
from bellcrank.io import ReadReport, ReadWarning, load_urdf, read_urdf, report, urdf
from bellcrank.io.common.readings import cosine_sine
from bellcrank.io.common.xml import read_xml
from bellcrank.io.report import Dynamics, Limits, Material, Mimic
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import AxisJoint, Free, Planar, Prismatic, Revolute, Spherical, Weld
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

Writer = Callable[..., Path]
LINKS = "<link name='a'/><link name='b'/>"


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    """Writes the inside of a <robot> to a file; `whole` text or bytes are written as they are."""

    def writer(inside: str = "", *, whole: str | bytes | None = None, attributes: str = "name='r'") -> Path:
        path = tmp_path / "robot.urdf"
        text = f"<robot {attributes}>\n{inside}\n</robot>" if whole is None else whole
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return writer


def joint(inside: str = "", kind: str = "revolute", name: str = "j", ends: tuple[str, str] = ("a", "b")) -> str:
    return (f"<joint name='{name}' type='{kind}'><parent link='{ends[0]}'/><child link='{ends[1]}'/>"
            f"{inside}</joint>")


def inertial(mass: object = 2, moments: tuple[object, ...] = (1, 0, 0, 1, 0, 1), origin: str = "") -> str:
    entries = " ".join(f"{n}='{v}'" for n, v in zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), moments, strict=True))
    return f"<inertial>{origin}<mass value='{mass}'/><inertia {entries}/></inertial>"


def texts(notes: tuple[report.Note, ...]) -> str:
    return "\n".join(map(str, notes))


# -- links --------------------------------------------------------------------------------------
def test_the_root_is_a_body_welded_to_the_ground(write: Writer) -> None:
    m = load_urdf(write("<link name='base'/>"))
    assert (m.name, [b.name for b in m.bodies]) == ("r", ["base"])
    (root,) = m.joints
    assert (root.name, root.parent, root.child) == ("root_joint", 0, 1)
    assert isinstance(root.joint, Weld)
    assert m.gravity == (0.0, 0.0, -9.81)


def test_a_floating_base_is_free_and_its_joint_name_is_unique(write: Writer) -> None:
    path = write(LINKS + joint(name="root_joint"))
    m = load_urdf(path, floating_base=True, gravity=(0, 0, -1.62))
    assert [(c.name, type(c.joint)) for c in m.joints] == [("root_joint_2", Free), ("root_joint", Revolute)]
    assert m.gravity == (0.0, 0.0, -1.62)


def test_a_link_called_ground_is_renamed(write: Writer) -> None:
    path = write("<link name='ground'><visual><geometry><sphere radius='1'/></geometry></visual></link>\n"
                 "<link name='ground_link'/>" + joint(ends=("ground", "ground_link")))
    m, r = read_urdf(path)
    assert [b.name for b in m.bodies] == ["ground_link_2", "ground_link"]
    assert m.joint("j").parent == m.body("ground_link_2").index
    assert r.renamed == {"ground": "ground_link_2"}
    assert r.shapes[0].body == "ground_link_2"
    assert "line 2: <link> of 'ground': renamed to 'ground_link_2'" in texts(r.changed)


def test_inertia_is_about_the_center_of_mass_in_link_axes(write: Writer) -> None:
    origin = "<origin xyz='1 2 3' rpy='0.3 -0.4 0.5'/>"
    m = load_urdf(write(f"<link name='a'>{inertial(2.5, (1, 0.1, 0.2, 2, 0.3, 2.5), origin)}</link>"))
    body = m.body("a").inertia
    turn = Pose.rpy((0, 0, 0), 0.3, -0.4, 0.5).rotation
    expected = turn @ np.array([[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 2.5]]) @ turn.T
    assert (body.mass, body.com) == (2.5, (1.0, 2.0, 3.0))
    np.testing.assert_allclose(body.inertia, expected[np.triu_indices(3)], rtol=0, atol=1e-15)


@pytest.mark.parametrize("inside", ["", inertial(0, (0,) * 6, "<origin xyz='1 0 0'/>")])
def test_no_inertia_or_zero_inertia_is_a_massless_body(write: Writer, inside: str) -> None:
    m, r = read_urdf(write(f"<link name='a'>{inside}</link>"))
    assert m.body("a").inertia == Inertia.zero()
    assert not r.notes


@pytest.mark.parametrize("text, reason", [
    (inertial(-1), "negative"), (inertial(1, (1, 0, 0, -1, 0, 1)), "not positive"),
    (inertial(1, (1, 0, 0, 1, 0, 9)), "triangle"), (inertial(0), "no mass")])
def test_unphysical_inertias_stay_and_are_reported(write: Writer, text: str, reason: str) -> None:
    path = write(f"<link name='a'>\n{text}</link>")
    m, r = read_urdf(path)
    assert m.body("a").inertia.problem()
    assert reason in texts(r.warned)
    assert "line 3: <inertial> of 'a'" in texts(r.warned)
    with pytest.warns(ReadWarning, match=reason):
        load_urdf(path)


# -- joints -------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind, expected", [
    ("revolute", Revolute), ("continuous", Revolute), ("prismatic", Prismatic), ("fixed", Weld),
    ("floating", Free), ("planar", Planar), ("spherical", Spherical), ("ball", Spherical)])
def test_joint_types(write: Writer, kind: str, expected: type) -> None:
    m = load_urdf(write(LINKS + joint("<axis xyz='0 0 2'/><origin xyz='1 2 3' rpy='.1 .2 .3'/>", kind)))
    found = m.joint("j")
    assert type(found.joint) is expected
    if isinstance(found.joint, AxisJoint | Planar):
        assert (found.joint.axis if isinstance(found.joint, AxisJoint) else found.joint.normal) == (0.0, 0.0, 1.0)
    assert (found.parent, found.child) == (m.body("a").index, m.body("b").index)
    expected_pose = Pose.rpy((1, 2, 3), 0.1, 0.2, 0.3)
    assert found.drawn_pose.position == expected_pose.position
    assert (found.parent_pose == Pose()) == (kind == "floating")  # which is measured in the world
    np.testing.assert_allclose(found.drawn_pose.rotation, expected_pose.rotation, rtol=0, atol=1e-15)
    assert found.child_pose == Pose()


@pytest.mark.parametrize("xyz, axis", [
    (None, (1, 0, 0)), ("0 -3 0", (0, -1, 0)), ("3 0 4", (0.6, 0, 0.8)), ("0 1e99 0", (0, 1, 0)),
    ("1e99 1e99 0", (0.5**0.5, 0.5**0.5, 0)), ("0 0 1e-200", (0, 0, 1)), ("0.707107 0 0.707107",
                                                                           (0.5**0.5, 0, 0.5**0.5))])
def test_axes_are_unit_vectors_and_x_by_default(write: Writer, xyz: str | None, axis: tuple[float, ...]) -> None:
    m, r = read_urdf(write(LINKS + joint(f"<axis xyz='{xyz}'/>" if xyz else "")))
    found = m.joint("j").joint
    assert isinstance(found, Revolute)
    np.testing.assert_allclose(found.axis, axis, rtol=1e-15)
    assert len(r.changed) == (xyz is not None and not xyz.startswith("0.7"))


def test_order_is_depth_first_with_siblings_in_file_order(write: Writer) -> None:
    pairs = [("t2", "s", "q"), ("t1", "s", "p"), ("u2", "q", "z"), ("w", "p", "y"), ("u1", "q", "x")]
    m = load_urdf(write("".join(f"<link name='{n}'/>" for n in "zyxqps")
                        + "".join(joint(name=n, ends=(a, b)) for n, a, b in pairs)))
    assert [c.name for c in m.joints] == ["root_joint", "t2", "u2", "u1", "t1", "w"]
    assert [b.name for b in m.bodies] == ["s", "q", "z", "x", "p", "y"]


def test_a_chain_of_many_links_needs_no_deep_stack(write: Writer) -> None:
    n = 5000
    m = load_urdf(write("".join(f"<link name='l{i}'/>" for i in range(n))
                        + "".join(joint(name=f"j{i}", ends=(f"l{i}", f"l{i + 1}")) for i in range(n - 1))))
    assert len(m.joints) == n


def test_numbers_with_any_white_space(write: Writer) -> None:
    m = load_urdf(write(LINKS + joint("<origin xyz='\t 1.e0\n  +.5   -2E-1 ' rpy='0.0  0 \t0'/>")))
    assert m.joint("j").parent_pose == Pose((1.0, 0.5, -0.2))


def test_quaternions_of_version_1_1(write: Writer) -> None:
    text = LINKS + joint("<origin xyz='1 0 0' quat_xyzw='0 0 3 4'/>")
    m = load_urdf(write(text, attributes="name='r' version='1.1'"))
    wanted = Pose((0, 0, 0), (0.8, 0, 0, 0.6)).rotation
    np.testing.assert_allclose(m.joint("j").parent_pose.rotation, wanted, atol=1e-15)
    m, r = read_urdf(write(text))
    assert m.joint("j").parent_pose == Pose((1, 0, 0))
    assert "quat_xyzw is not used" in texts(r.warned)


# -- angles -------------------------------------------------------------------------------------
def test_decimals_of_quarter_turns_become_exact(write: Writer) -> None:
    text = LINKS + joint("<origin rpy='1.57079632679 -3.14159265359 1e-17'/>")
    m, r = read_urdf(write(text))
    assert m.joint("j").parent_pose.rows == (-1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, -1.0, 0.0)
    assert "3 angles" in texts(r.changed)
    m, r = read_urdf(write(text), exact_angles=False)
    assert m.joint("j").parent_pose == Pose.rpy((0, 0, 0), 1.57079632679, -3.14159265359, 1e-17)
    assert not r.changed


def test_the_doubles_of_quarter_turns_are_exact_without_a_remark(write: Writer) -> None:
    m, r = read_urdf(write(LINKS + joint(f"<origin rpy='0 {math.pi / 2!r} {-math.pi!r}'/>")))
    assert m.joint("j").parent_pose.rows == (0.0, 0.0, -1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 0.0)
    assert not r.changed


@pytest.mark.parametrize("angle", [1.5708, math.pi / 2 + 1.01e-10, 1e-9, 0.3, -7.0, 1e10, 1e300])
def test_other_angles_stay(angle: float) -> None:
    assert cosine_sine(angle) == ((math.cos(angle), math.sin(angle)), False)


@pytest.mark.parametrize("quarters", range(-9, 10))
def test_quarter_turns(quarters: int) -> None:
    (c, s), _ = cosine_sine(quarters * math.pi / 2 + 3e-11)
    assert (c, s) == (round(math.cos(quarters * math.pi / 2)), round(math.sin(quarters * math.pi / 2)))


def test_all_rotations_agree_with_pose_rpy(write: Writer) -> None:
    for angles in np.random.default_rng(1).uniform(-4, 4, (20, 3)).tolist() + [[math.pi / 2, 0.3, -math.pi]]:
        m = load_urdf(write(LINKS + joint(f"<origin rpy='{' '.join(map(repr, angles))}'/>")))
        np.testing.assert_allclose(m.joint("j").parent_pose.rotation, Pose.rpy((0, 0, 0), *angles).rotation, atol=1e-15)


# -- what is kept, changed, ignored -------------------------------------------------------------
def test_limits_dynamics_and_mimic_are_kept_as_data(write: Writer) -> None:
    links = "".join(f"<link name='{n}'/>" for n in "abcde")
    path = write(links + joint("<limit lower='-1' upper='2' effort='3' velocity='inf'/>\n<dynamics damping='0.5'/>")
                 + joint("<limit lower='1' upper='2' effort='5' velocity='6'/>\n"
                         "<mimic joint='j' multiplier='-2' offset='0.1'/>", "continuous", "k", ("b", "c"))
                 + joint("<limit/><dynamics/>", "prismatic", "p", ("c", "d"))
                 + joint("<limit effort='1'/><mimic joint='j'/>", "fixed", "f", ("d", "e")))
    m, r = read_urdf(path)
    assert r.limits == {"j": Limits(-1, 2, 3, math.inf), "k": Limits(-math.inf, math.inf, 5, 6),
                        "p": Limits(0, 0, math.inf, math.inf)}
    assert r.dynamics == {"j": Dynamics(0.5, 0), "p": Dynamics()}
    assert r.mimics == {"k": Mimic("j", -2.0, 0.1)}
    assert [(c.name, c.terms, c.offset) for c in m.couplers] == [("k_mimic", (("k", 0, 1.0), ("j", 0, 2.0)), 0.1)]
    assert "line 4: <mimic> of 'k': coupled exactly: -2 times joint 'j' plus 0.1" in texts(r.kept)
    assert "no effort and no velocity given" in texts(r.changed)
    assert "line 3: <dynamics> of 'j'" in texts(r.warned)
    assert "has no meaning for a fixed joint" in texts(r.ignored)
    assert {note.tag for note in r.surprises} == {"dynamics"}
    assert len(m.joints) == 5


def test_mimic_joints_may_be_let_loose(write: Writer) -> None:
    path = write("".join(f"<link name='{n}'/>" for n in "abc") + joint("<dynamics damping='1'/>")
                 + joint("<mimic joint='j' multiplier='-2' offset='0.1'/>", "continuous", "k", ("b", "c")))
    m, r = read_urdf(path, mimic="free")
    assert not m.couplers
    assert r.mimics == {"k": Mimic("j", -2.0, 0.1)}
    assert "<mimic> of 'k': moves on its own" in texts(r.changed)
    assert {note.tag for note in r.surprises} == {"dynamics", "mimic"}
    with pytest.warns(ReadWarning, match=r"robot.urdf: not modelled(.|\n)*<dynamics> of 'j'(.|\n)*<mimic> of 'k'"):
        load_urdf(path, mimic="free")
    with pytest.raises(ValueError, match="mimic must be"):
        read_urdf(path, mimic="both")  # type: ignore[arg-type]


def test_shapes_and_materials_are_kept(write: Writer) -> None:
    _, r = read_urdf(write("""<material name='red'><color rgba='1 0 0 1'/></material>
        <link name='a'>
          <visual><origin xyz='0 0 1'/><geometry><mesh filename='package://x/arm.dae' scale='2 2 2'/></geometry>
            <material name='red'/></visual>
          <visual><geometry><box size='1 2 3'/></geometry><material name=''><color rgba='0 1 0 1'/></material></visual>
          <collision><geometry><cylinder radius='1' length='2'/></geometry></collision>
          <collision><geometry><sphere radius='3'/></geometry></collision>
          <collision/>
          <visual><geometry><box size='1 nan 3'/></geometry></visual>
          <visual><geometry><blob/></geometry></visual>
        </link>"""))
    assert [(s.role, s.kind, s.size, s.filename) for s in r.shapes] == [
        ("visual", "mesh", (2, 2, 2), "package://x/arm.dae"), ("visual", "box", (1, 2, 3), None),
        ("collision", "cylinder", (1, 2), None), ("collision", "sphere", (3,), None)]
    assert r.shapes[0].pose == Pose((0, 0, 1))
    assert (r.shapes[0].body, r.shapes[0].line, r.shapes[0].material) == ("a", 4, Material("red"))
    assert r.shapes[1].material == Material("", (0, 1, 0, 1))
    assert r.materials == {"red": Material("red", (1, 0, 0, 1))}
    assert [note.line for note in r.ignored] == [9, 10, 11]


def test_what_is_beside_the_motion_is_listed(write: Writer) -> None:
    _, r = read_urdf(write("""<link name='a' colour='x'><contact/></link><link name='b'/>
        <joint name='j' type='revolute'><parent link='a'/><child link='b'/><orgin xyz='1 0 0'/>
          <calibration rising='0'/><safety_controller k_velocity='1'/><dynamics K='7'/></joint>
        <transmission name='t'/>
        <gazebo reference='a'><material>Blue</material></gazebo>
        <sensor name='s'/><unheard_of/>"""))
    lines = [(note.line, note.tag, note.name) for note in r.ignored]
    assert sorted(lines) == sorted([(2, "link", "a"), (2, "contact", "a"), (3, "orgin", "j"), (4, "calibration", "j"),
                                    (4, "safety_controller", "j"), (4, "dynamics", "j"), (5, "transmission", "t"),
                                    (6, "gazebo", "a"), (7, "sensor", "s"), (7, "unheard_of", "r")])
    assert not r.warned


def test_physics_outside_plain_urdf_is_warned_about(write: Writer) -> None:
    path = write(LINKS + joint("<origin xyz='1 0 0'/><origin xyz='2 0 0'/><mimic joint='jj'/>\n"
                               "<limit lower='2' upper='1' effort='1' velocity='1'/>") + """
        <rope_joint name='l1'/><drake:rope_constraint/>
        <gazebo><joint name='l2' type='gearbox'><parent>a</parent><child>b</child></joint></gazebo>
        <gazebo reference='a'><turnGravityOff>true</turnGravityOff></gazebo>
        <gazebo><plugin><joint>a</joint></plugin></gazebo>""")
    m, r = read_urdf(path, mimic="free")
    assert m.joint("j").parent_pose == Pose((1, 0, 0))
    assert [(note.tag, note.name, note.line) for note in r.warned] == [
        ("origin", "j", 2), ("mimic", "j", 2), ("limit", "j", 3), ("rope_joint", "l1", 4),
        ("drake:rope_constraint", "r", 4), ("joint", "l2", 5), ("turnGravityOff", "a", 6)]
    assert "there is no joint 'jj'" in texts(r.warned)
    assert [note.line for note in r.ignored] == [7]


def test_the_report_is_readable(write: Writer) -> None:
    path = write("\n".join(f"<gazebo reference='a{i}'/>" for i in range(30)) + "<link name='a'/>")
    _, r = read_urdf(path)
    assert str(r) == (f"{path}: 30 ignored\nignored (not read):\n"
                      "  line 2: <gazebo> of 'a0': settings of a simulator (and 29 more)")
    assert str(ReadReport("x")) == "x: nothing to remark"


def test_a_robot_without_a_name_is_called_after_its_file(write: Writer) -> None:
    m, r = read_urdf(write("<link name='a'/>", attributes=""))
    assert m.name == "robot"
    assert "no name" in texts(r.changed)


def test_a_harmless_file_gives_no_warning(write: Writer, recwarn: pytest.WarningsRecorder) -> None:
    path = write(f"<link name='a'>{inertial()}</link><link name='b'/>"
                 + joint("<limit lower='0' upper='1' effort='1' velocity='1'/>"))
    assert isinstance(load_urdf(str(path)), Mechanism)
    assert not recwarn.list


def test_plain_files_of_every_kind(write: Writer) -> None:
    for whole in (b"\xef\xbb\xbf<robot name='r'><link name='a'/></robot>",
                  b"<?xml version='1.0' encoding='us-ascii'?><robot name='r'><link name='a'/></robot>",
                  b"<?xml version='1.0'?>\r\n<!--\xc3\xa4-->\r\n<robot name='r'>\r\n<link name='a'/>\r\n</robot>\r\n"):
        assert [b.name for b in load_urdf(write(whole=whole)).bodies] == ["a"]
    expanded = write("<!-- <xacro:macro/> --><link name='a'/>", attributes="name='r' xmlns:xacro='http://ros.org/xacro'")
    assert load_urdf(expanded).name == "r"


# -- files that cannot be read ------------------------------------------------------------------
BAD_MODELS = {
    "no links": ("", 1, "<robot 'r'>", "has no <link>"),
    "link without name": ("<link/>", 2, "<link>", "'name'"),
    "blank name": ("<link name=' '/>", 2, "<link ' '>", "blank"),
    "duplicate link": ("<link name='a'/>\n<link name='a'/>", 3, "<link 'a'>", "taken by the <link> on line 2"),
    "duplicate joint": ("<link name='c'/>" + LINKS + joint() + "\n" + joint(ends=("b", "c")), 3, "<joint 'j'>",
                        "taken by the <joint> on line 2"),
    "unknown parent": (LINKS + joint(ends=("aa", "b")), 2, "<parent> in <joint 'j'>",
                       "no link 'aa'; did you mean 'a'?"),
    "unknown child": (LINKS + joint(ends=("a", "zzz")), 2, "<child> in <joint 'j'>", "no link 'zzz'"),
    "no parent": (LINKS + "<joint name='j' type='fixed'><child link='b'/></joint>", 2, "<joint 'j'>", "<parent>"),
    "parent without link": (LINKS + "<joint name='j' type='fixed'><parent/><child link='b'/></joint>", 2,
                            "<parent> in <joint 'j'>", "'link'"),
    "self joint": (LINKS + joint(ends=("a", "a")), 2, "<joint 'j'>", "with itself"),
    "two parents": (LINKS + "<link name='c'/>" + joint() + joint(name="k", ends=("a", "c")) + "\n"
                    + joint(name="l", ends=("c", "b")), 3, "<joint 'l'>",
                    "already the child of joint 'j' (line 2); write a joint that closes a loop as <loop_joint>"),
    "two roots": (LINKS, 2, "<link 'b'>", "2 links have no parent joint ('a', 'b')"),
    "no root": (LINKS + joint() + joint(name="k", ends=("b", "a")), 2, "<joint 'j'>", "'j', 'k' run in a circle"),
    "cycle beside a root": ("<link name='c'/>" + LINKS + joint() + joint(name="k", ends=("b", "a")), 2, "<joint 'j'>",
                            "circle"),
    "no type": (LINKS + "<joint name='j'><parent link='a'/><child link='b'/></joint>", 2, "<joint 'j'>", "'type'"),
    "unknown type": (LINKS + joint(kind="rope"), 2, "<joint 'j'>", "joint type 'rope' is unknown"),
    "zero axis": (LINKS + joint("\n<axis xyz='0 0 0'/>"), 3, "<axis> in <joint 'j'>", "no direction"),
    "axis without xyz": (LINKS + joint("<axis/>"), 2, "<axis> in <joint 'j'>", "'xyz'"),
    "short vector": (LINKS + joint("<origin xyz='1 2'/>"), 2, "<origin> in <joint 'j'>", "3 numbers, got 2"),
    "long vector": (LINKS + joint("<origin rpy='1 2 3 4'/>"), 2, "<origin> in <joint 'j'>", "3 numbers, got 4"),
    "empty vector": (LINKS + joint("<origin xyz=''/>"), 2, "<origin> in <joint 'j'>", "'xyz' is blank"),
    "word": (LINKS + joint("<origin xyz='1 2 three'/>"), 2, "<origin> in <joint 'j'>", "'three' is not a finite"),
    "comma": (LINKS + joint("<origin xyz='1,5 2 3'/>"), 2, "<origin> in <joint 'j'>", "'1,5' is not"),
    "underscore": (LINKS + joint("<origin xyz='1_0 2 3'/>"), 2, "<origin> in <joint 'j'>", "'1_0' is not"),
    "foreign digits": (LINKS + joint("<origin xyz='\u0663 2 3'/>"), 2, "<origin> in <joint 'j'>", "is not a finite"),
    "nan": (LINKS + joint("<origin rpy='0 nan 0'/>"), 2, "<origin> in <joint 'j'>", "'nan' is not a finite number"),
    "inf": (LINKS + joint("<origin xyz='0 -inf 0'/>"), 2, "<origin> in <joint 'j'>", "'-inf' is not"),
    "overflow": (f"<link name='a'>{inertial('1e999')}</link>", 2, "<mass> in <inertial> in <link 'a'>", "'1e999'"),
    "huge mass": (f"<link name='a'>{inertial('1e308')}</link>", 2, "<mass> in <inertial> in <link 'a'>", "above 1e+1"),
    "huge place": (LINKS + joint("<origin xyz='1e200 0 0'/>"), 2, "<origin> in <joint 'j'>", "above 1e+100"),
    "macro argument": (LINKS + joint("<origin xyz='$(arg x) 0 0'/>"), 2, "<origin> in <joint 'j'>", "xacro expression"),
    "macro name": ("<link name='${side}_a'/>", 2, "<link '${side}_a'>", "expand it to plain URDF first"),
    "nan limit": (LINKS + joint("<limit lower='nan'/>"), 2, "<limit> in <joint 'j'>", "'nan'"),
    "nan damping": (LINKS + joint("<dynamics damping='inf'/>"), 2, "<dynamics> in <joint 'j'>", "'inf'"),
    "mimic without joint": (LINKS + joint("<mimic multiplier='2'/>"), 2, "<mimic> in <joint 'j'>", "'joint'"),
    "mimic of no joint": (LINKS + joint("<mimic joint='jj'/>"), 2, "<mimic> in <joint 'j'>",
                          "there is no joint 'jj'; did you mean 'j'?"),
    "mimic of itself": (LINKS + joint("<mimic joint='j'/>"), 2, "<mimic> in <joint 'j'>", "mimics itself"),
    "no mass": ("<link name='a'><inertial><inertia/></inertial></link>", 2, "<inertial> in <link 'a'>", "<mass>"),
    "no moments": ("<link name='a'><inertial><mass value='1'/></inertial></link>", 2, "<inertial> in <link 'a'>",
                   "<inertia>"),
    "missing moment": ("<link name='a'><inertial><mass value='1'/><inertia ixx='1'/></inertial></link>", 2,
                       "<inertia> in <inertial> in <link 'a'>", "'ixy'"),
    "xacro element": ("<link name='a'/>\n<xacro:macro name='leg'/>", 3, "<xacro:macro 'leg'>", "expand it"),
    "xacro number": (LINKS + joint("<origin xyz='0 0 ${h}'/>"), 2, "<origin> in <joint 'j'>", "expand the file"),
}


@pytest.mark.parametrize("what", BAD_MODELS)
def test_bad_models_are_errors_that_name_file_line_and_element(write: Writer, what: str) -> None:
    inside, line, element, reason = BAD_MODELS[what]
    path = write(inside)
    with pytest.raises(FileError) as caught:
        load_urdf(path)
    assert str(caught.value).startswith(f"{path}:{line}: {element}: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize("quaternion, reason", [("0 0 0 0", "no direction"), ("0 0 1", "4 numbers"),
                                                ("0 0 0 1' rpy='0 0 0", "both rpy and quat_xyzw")])
def test_bad_quaternions(write: Writer, quaternion: str, reason: str) -> None:
    path = write(LINKS + joint(f"<origin quat_xyzw='{quaternion}'/>"), attributes="name='r' version='1.1'")
    with pytest.raises(FileError, match=f"robot.urdf:2: <origin> in <joint 'j'>: .*{reason}"):
        load_urdf(path)


def test_other_prefixes_for_xacro(write: Writer) -> None:
    path = write("<x:include filename='y'/>", attributes="xmlns:x='http://www.ros.org/wiki/xacro'")
    with pytest.raises(FileError, match="robot.urdf:2: <x:include>: is a xacro macro file"):
        load_urdf(path)


LAUGHS = ("<!DOCTYPE robot [<!ENTITY a 'ha'>" + "".join(f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in
                                                        zip("abcdefghi", "bcdefghij", strict=True))
          + "]>\n<robot name='&j;'/>")
BAD_FILES: dict[str, tuple[str | bytes, int, str]] = {
    "empty": (b"", 1, "the file is empty"),
    "blank": (b" \n\n ", 1, "the file is empty"),
    "text": ("hello", 1, "is not an XML file"),
    "binary": (bytes(range(128)), 1, "is not an XML file"),
    "comment only": ("<!-- x -->", 1, "is not an XML file"),
    "sdf": ("<?xml version='1.0'?>\n<sdf version='1.9'/>", 2, "<sdf>: is not a URDF file"),
    "truncated": ("<robot name='r'>\n<link name='a'>\n<inertial>", 3,
                  "inside <inertial> in <link 'a'>, opened on line 3"),
    "truncated tag": ("<robot name='r'>\n<link na", 2, "inside <robot 'r'>, opened on line 1"),
    "wrong end tag": ("<robot name='r'>\n<link name='a'>\n</robot>", 3, "inside <link 'a'>, opened on line 2"),
    "two roots": ("<robot name='r'><link name='a'/></robot>\n<robot/>", 2, "is not an XML file"),
    "attribute twice": ("<robot name='r'>\n<link name='a' name='b'/></robot>", 2, "inside <robot 'r'>"),
    "latin-1": ("<robot name='r'>\n<link name='K\xf6rper'/></robot>".encode("latin-1"), 2, "byte 0xf6 is not UTF-8"),
    "utf-16": ("<robot name='r'/>".encode("utf-16"), 1, "is not UTF-8"),
    "billion laughs": (LAUGHS, 1, "<!DOCTYPE>"),
    "external entity": ("<?xml version='1.0'?>\n<!DOCTYPE robot [<!ENTITY x SYSTEM 'x.txt'>]>\n<robot name='&x;'/>", 2,
                        "<!DOCTYPE>"),
    "external dtd": ("<!DOCTYPE robot SYSTEM 'http://localhost/x.dtd'>\n<robot name='r'/>", 1, "<!DOCTYPE>"),
    "unknown entity": ("<robot name='&x;'/>", 1, "undefined entity"),
    "deep": ("<robot>\n" + "<link>" * 10**5, 2, "<link>: elements are nested more than 100 deep"),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_bad_files_are_errors_that_name_file_and_line(write: Writer, what: str) -> None:
    whole, line, reason = BAD_FILES[what]
    path = write(whole=whole)
    with pytest.raises(FileError) as caught:
        load_urdf(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert reason in str(caught.value)


def test_bounds_on_size_and_number(write: Writer) -> None:
    path = write("<link name='a'/>" * 100)
    with pytest.raises(FileError, match="robot.urdf: is larger than 99 bytes"):
        read_xml(path, max_bytes=99)
    with pytest.raises(FileError, match="robot.urdf:2: <link>: more than 100 elements"):
        read_xml(path, max_elements=100)
    assert len(read_xml(path, max_elements=101).children) == 100


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="none.urdf: cannot be read: No such file"):
        load_urdf(tmp_path / "none.urdf")
    with pytest.raises(FileError, match="is not a regular file"):
        load_urdf(tmp_path)
    with pytest.raises(FileError, match="is XML text, not a path"):
        load_urdf("<robot name='r'/>")
    with pytest.raises(FileError, match="cannot be read"):
        load_urdf("a\0b")
    with pytest.raises(FileError, match="cannot be read"):
        load_urdf("x" * 100_000)
    with pytest.raises(TypeError):
        load_urdf(3)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="is not a regular file"):
        load_urdf(tmp_path / "pipe")


def test_messages_stay_short_whatever_the_file_says(write: Writer) -> None:
    long = "x" * 10_000
    for inside in (f"<link name='{long}'/>" * 2, f"<{long}>", LINKS + joint(kind=long),
                   LINKS + joint(ends=(long, long)), LINKS + joint(f"<origin xyz='{long}'/>")):
        path = write(inside)
        with pytest.raises(FileError) as caught:
            load_urdf(path)
        assert len(str(caught.value)) < 500 + len(str(path))


def test_damaged_files_give_a_file_error_or_a_mechanism(write: Writer) -> None:
    body, hinge = inertial(1, origin="<origin rpy='0 1 2'/>"), joint("<axis xyz='0 0 1'/>")
    good = (f"<robot name='r'><link name='a'>{body}</link><link name='b'/>"
            f"{hinge}</robot>").encode()
    assert len(load_urdf(write(whole=good)).joints) == 2
    chance = random.Random(0)
    words = [b"", b"<", b">", b"/", b'"', b"'", b"&", b"\0", b"\xff", b"1e400", b"nan", b"-", b"a", b"<!DOCTYPE", b" "]
    outcomes: set[type] = set()
    for _ in range(2000):
        start = chance.randrange(len(good))
        damaged = good[:start] + chance.choice(words) + good[start + chance.choice((0, 1, 1, 5, 30)):]
        try:
            outcomes.add(type(read_urdf(write(whole=damaged))[0]))
        except FileError as error:
            outcomes.add(type(error))
    assert outcomes == {FileError, Mechanism}


# -- robots in use ------------------------------------------------------------------------------
def _robots() -> list[Path]:
    folders = {Path(p, "cmeel.prefix/share/example-robot-data/robots") for p in sysconfig.get_paths().values()}
    return sorted(file for folder in folders if folder.is_dir() for file in folder.rglob("*.urdf"))


#: what Pinocchio cannot read either: a joint to a link that is not there, and a robot without links
UNREADABLE = {"falcon.urdf": "no link 'Z_propeller'", "ur3.urdf": "has no <link>"}


@pytest.mark.parametrize("path", _robots(), ids=lambda path: path.stem)
def test_robots_have_the_joints_that_pinocchio_finds(path: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    if path.name in UNREADABLE:
        with pytest.raises(ValueError, match="does not contain a valid URDF"):
            pin.buildModelFromUrdf(str(path))
        with pytest.raises(FileError, match=UNREADABLE[path.name]):
            read_urdf(path)
        return
    model = pin.buildModelFromUrdf(str(path))
    machine, notes = read_urdf(path, mimic="free")
    moving = [c for c in machine.joints if c.joint.nu]
    assert sorted(c.name for c in moving) == sorted(list(model.names)[1:])
    assert {c.name: c.joint.nu for c in moving} == {n: j.nv for n, j in zip(model.names, model.joints, strict=True)
                                                    if n != "universe"}
    assert {c.name: c.joint.nq for c in moving if type(c.joint) is not Revolute} == {
        c.name: model.joints[model.getJointId(c.name)].nq for c in moving if type(c.joint) is not Revolute}
    links = {frame.name for frame in model.frames if frame.type == pin.FrameType.BODY}
    assert {b.name for b in machine.bodies} == {notes.renamed.get(name, name) for name in links}
    assert str(notes).startswith(str(path))


def test_documentation_examples_run() -> None:
    for module in (urdf, report):
        result = doctest.testmod(module)
        assert result.attempted > 0
        assert result.failed == 0
