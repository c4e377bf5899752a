"""Shapes in files: read from URDF, SDF, MJCF and model files, written back, and meshes found where they may lie."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import BellcrankWarning
from bellcrank.io.report import ReadWarning
from bellcrank.mechanism.geometry.placed_shape import as_mesh
from test_shapes import CORNERS, FACES, binary_stl, volume

URDF = """<robot name='r'><material name='rust'><color rgba='1 0.5 0 0.25'/></material>
  <link name='a'>
    <visual name='shell'><origin xyz='0 0 1'/><geometry><mesh filename='{mesh}' scale='2 2 2'/></geometry>
      <material name='rust'/></visual>
    <visual><geometry><box size='1 2 3'/></geometry><material name='x'><color rgba='0 1 0 1'/></material></visual>
    <collision name='shell'><geometry><cylinder radius='1' length='2'/></geometry></collision>
    <collision><geometry><sphere radius='0'/></geometry></collision>
    <visual><geometry><capsule radius='1' length='2'/></geometry></visual>
  </link></robot>"""


def shown(m: bc.Mechanism) -> list[tuple[Any, ...]]:
    return [(s.name, m.bodies[s.body - 1].name if s.body else "ground", s.shape, s.pose, s.color, s.role)
            for s in m.shapes]


def urdf(tmp_path: Path, mesh: str) -> Path:
    (tmp_path / "r.urdf").write_text(URDF.format(mesh=mesh))
    return tmp_path / "r.urdf"


def test_urdf(tmp_path: Path) -> None:
    (tmp_path / "part.stl").write_bytes(binary_stl())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = bc.load(urdf(tmp_path, "part.stl"))
    assert shown(m) == [
        ("shell", "a", bc.Mesh.read(tmp_path / "part.stl", 2.0), bc.Pose((0, 0, 1)), (1.0, 0.5, 0.0, 0.25), "visual"),
        ("a box", "a", bc.Box((1, 2, 3)), bc.Pose(), (0.0, 1.0, 0.0, 1.0), "visual"),
        ("a cylinder", "a", bc.Cylinder(1, 2), bc.Pose(), None, "collision"),
        ("a capsule", "a", bc.Capsule(1, 2), bc.Pose(), None, "visual")]
    report = bc.read(urdf(tmp_path, "part.stl"))[1]
    assert [n.line for n in report.ignored] == [7] and "radius must be a positive" in report.ignored[0].text


SDF = """<sdf version='1.9'><model name='m'><link name='a'>
  <visual name='v'><pose>0 0 1 0 0 0</pose><transparency>0.5</transparency><geometry><ellipsoid><radii>1 2 3</radii>
    </ellipsoid></geometry><material><diffuse>1 0 0 1</diffuse></material></visual>
  <visual name='w'><geometry><plane><normal>1 0 0</normal><size>4 5</size></plane></geometry>
    <material><script><name>Gazebo/Orange</name></script></material></visual>
  <visual name='u'><geometry><mesh><uri>model://m/part.stl</uri><scale>1 1 -1</scale></mesh></geometry></visual>
  <collision name='c'><geometry><cone><radius>1</radius><length>2</length></cone></geometry></collision>
</link></model></sdf>"""


def test_sdf(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "part.stl").write_bytes(binary_stl())
    (tmp_path / "m" / "m.sdf").write_text(SDF)
    ball, plane, mesh, cone = bc.load(tmp_path / "m" / "m.sdf").shapes
    assert ball.shape == bc.Ellipsoid((1, 2, 3)) and ball.color == (1.0, 0.0, 0.0, 0.5) and ball.pose.position[2] == 1.0
    assert plane.shape == bc.Plane((4, 5)) and plane.color == (1.0, 165 / 255, 0.0, 1.0)
    np.testing.assert_allclose(plane.pose.rotation[:, 2], (1, 0, 0), atol=1e-15)
    assert isinstance(mesh.shape, bc.Mesh) and mesh.shape.bounds()[0][2] == -3.0 and volume(mesh.shape) > 0.0
    assert cone.shape == bc.Cone(1, 2) and cone.role == "collision"


MJCF = """<mujoco><compiler meshdir='assets'/>
  <default><default class='seen'><geom type='mesh' group='2' contype='0' conaffinity='0' material='red'/></default>
    <default class='hit'><geom group='3' rgba='0 0 1 1'/></default></default>
  <asset><material name='red' rgba='1 0 0 0.5'/>
    <mesh name='part' file='part.stl' scale='2 2 2' refpos='0.5 0 0' refquat='0 1 0 0'/>
    <mesh name='own' vertex='0 0 0 1 0 0 0 2 0 0 0 3' face='0 2 1 0 1 3 0 3 2 1 2 3'/></asset>
  <worldbody><geom name='floor' type='plane' size='0 0 1'/>
    <body name='a' pos='0 0 1'><freejoint/>{inertial}
      <frame pos='0 0 5'><geom class='seen' mesh='part' pos='1 0 0'/></frame>
      <geom name='heavy' type='mesh' mesh='{heavy}' euler='0 0 90' pos='0 1 0'/>
      <geom class='hit' type='ellipsoid' size='1 2 3'/><geom name='both' type='capsule' size='0.1 0.2' rgba='0 1 0 1'/>
    </body></worldbody></mujoco>"""
GIVEN = "<inertial mass='1' pos='0 0 0' diaginertia='1 1 1'/>"


def same_points(one: Any, other: Any) -> None:
    """In any order."""
    one, other = (p[np.lexsort(np.round(p, 4).T)] for p in (np.asarray(one) + 0.0, np.asarray(other)))
    np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize(("inertial", "heavy"), [("", "part"), ("", "own"), (GIVEN, "part"), (GIVEN, "own")])
def test_mjcf(tmp_path: Path, inertial: str, heavy: str) -> None:
    """Poses are those of the file, whether MuJoCo needs the mesh for an inertia, and moves it, or not."""
    pytest.importorskip("mujoco")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "part.stl").write_bytes(binary_stl())
    (tmp_path / "m.xml").write_text(MJCF.format(inertial=inertial, heavy=heavy))
    m = bc.load(tmp_path / "m.xml")
    by = {s.name: s for s in m.shapes}
    assert [(s.body, s.role) for s in m.shapes if s.name.startswith(("floor", "ground"))] == [
        (0, "visual"), (0, "collision")]
    assert by["floor"].shape == bc.Plane()
    first = by["a mesh"]
    assert first.color == (1.0, 0.0, 0.0, 0.5) and first.role == "visual"

    def points(s: Any) -> Any:
        return s.shape.vertices @ s.pose.rotation.T + np.array(s.pose.position)

    flip = np.diag([1.0, -1.0, -1.0])
    moved = 2.0 * (CORNERS - (0.5, 0, 0)) @ flip
    same_points(points(first), moved + (1, 0, 5))
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    same_points(points(by["heavy"]), (moved if heavy == "part" else CORNERS) @ turn.T + (0, 1, 0))
    assert {s.role for s in m.shapes if s.shape == bc.Capsule(0.1, 0.4)} == {"visual", "collision"}
    hit, = (s for s in m.shapes if isinstance(s.shape, bc.Ellipsoid))
    assert hit.role == "collision" and hit.color == (0.0, 0.0, 1.0, 1.0) and hit.shape.radii == (1.0, 2.0, 3.0)


# -- where meshes may lie ---------------------------------------------------------------------------
def test_a_missing_mesh_is_a_warning_with_its_name(tmp_path: Path) -> None:
    for name, said in [("gone.stl", "'gone.stl' was not found"), ("https://x/a.stl", "taken from the network"),
                       ("a.step", "of a kind that is not read"), ("../part.stl", "lies outside the folder"),
                       ("file:///etc/passwd.stl", "lies outside"), ("package://other/part.stl", "not found"),
                       ("package://..", "kind that is not read"), ("package://../part.stl", "not found")]:
        with pytest.warns(ReadWarning, match=said):
            m = bc.load(urdf(tmp_path, name))
        assert len(m.shapes) == 3, name


def test_meshes_of_packages(tmp_path: Path) -> None:
    place = tmp_path / "robots" / "urdf"
    (tmp_path / "robots" / "meshes").mkdir(parents=True)
    place.mkdir()
    (tmp_path / "robots" / "meshes" / "part.stl").write_bytes(binary_stl())
    (tmp_path / "loose.stl").write_bytes(binary_stl())

    def found(mesh: str, **options: Any) -> bool:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            m = bc.load(urdf(place, mesh), **options)
        assert bool(said) == (len(m.shapes) == 3)
        return len(m.shapes) == 4

    assert found("package://robots/meshes/part.stl") and found("package:///robots/meshes/part.stl")
    assert not found("package://robots/../loose.stl") and not found("../meshes/part.stl")
    assert found("../meshes/part.stl", packages=tmp_path / "robots")
    assert found(str(tmp_path / "loose.stl"), packages=[tmp_path]) and not found(str(tmp_path / "loose.stl"))
    assert found("package://elsewhere/meshes/part.stl") is False
    (tmp_path / "robots" / "package.xml").write_text("<package/>")
    assert found("../meshes/part.stl") and not found("../../loose.stl")
    os.symlink(tmp_path / "loose.stl", tmp_path / "robots" / "meshes" / "link.stl")
    assert not found("../meshes/link.stl")


# -- there and back ---------------------------------------------------------------------------------
@pytest.fixture
def machine(tmp_path: Path) -> bc.Mechanism:
    m = bc.Mechanism("arm")
    arm = m.add_body("arm", bc.Inertia(1.0, (0, 0, 0.1), (0.1, 0.2, 0.3)))
    m.add_joint("hinge", bc.Revolute("z"), m.ground, arm)
    turned = bc.Pose.rpy((0.1, -0.2, 0.3), 0.4, 0.5, 0.6)
    for number, shape in enumerate((bc.Box((1, 2, 3)), bc.Sphere(1), bc.Ellipsoid((1, 2, 3)), bc.Cylinder(1, 2),
                                    bc.Capsule(1, 2), bc.Cone(1, 2), bc.Plane((1, 2)), bc.Mesh(CORNERS, FACES))):
        m.add_shape(arm, shape, turned if number % 2 else bc.Pose(), color=(0.1, 0.2, 0.3, 0.4), name=f"part {number}")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "part.stl").write_bytes(binary_stl())
    m.add_shape(arm, bc.Mesh.read(tmp_path / "there" / "part.stl", (0.1, 0.1, -0.1)), turned, color="red", name="file")
    m.add_shape(arm, bc.Box((1, 1, 1)), role="collision", name="hit")
    m.add_shape("ground", bc.Box((5, 5, 0.1)), name="table", color="tan")
    return m


def same_form(a: Any, b: Any) -> bool:
    if not isinstance(b, bc.Mesh):
        return bool(a == b)
    a = as_mesh(a)
    return a.vertices.shape == b.vertices.shape and np.allclose(
        a.vertices[a.faces], b.vertices[b.faces], rtol=0, atol=1e-7)  # MuJoCo has single precision


@pytest.mark.parametrize("ending", ["yaml", "json", "urdf", "sdf", "xml"])
def test_round_trips(machine: bc.Mechanism, tmp_path: Path, ending: str) -> None:
    if ending == "xml":
        pytest.importorskip("mujoco")
    place = tmp_path / "here" / f"arm.{ending}"
    place.parent.mkdir()
    bc.save(machine, place)
    (tmp_path / "there" / "part.stl").unlink()  # a copy was made
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = bc.load(place)
    assert [(s.name, s.role) for s in back.shapes if s.name != "table"] == [
        (s.name, s.role) for s in machine.shapes if s.name != "table"]
    by = {s.name: s for s in back.shapes}
    for s in machine.shapes:
        if s.name != "file":
            assert same_form(s.shape, by[s.name].shape), s.name
        assert by[s.name].color == (s.color if ending != "xml" else pytest.approx(s.color, abs=1e-6)), s.name
        np.testing.assert_allclose(by[s.name].pose.rotation, s.pose.rotation, rtol=0, atol=1e-15)
        np.testing.assert_array_equal(by[s.name].pose.position, s.pose.position)
    copied = by["file"].shape
    assert isinstance(copied, bc.Mesh) and volume(copied) == pytest.approx(1e-3) and copied.scale == (0.1, 0.1, -0.1)
    assert copied.path is not None and Path(copied.path).parent == place.parent / "arm_meshes"
    if ending in ("yaml", "json"):
        assert shown(back)[:-3] == shown(machine)[:-3] and back.shapes[-1] == machine.shapes[-1]
        assert by["part 7"].shape == machine.shapes[7].shape
    bc.save(back, place)  # again, over itself
    assert len(bc.load(place).shapes) == len(back.shapes)


def test_referring(machine: bc.Mechanism, tmp_path: Path) -> None:
    bc.save(machine, tmp_path / "arm.yaml", meshes="refer")
    assert "file: there/part.stl" in (tmp_path / "arm.yaml").read_text()
    (tmp_path / "deep").mkdir()
    bc.save(machine, tmp_path / "deep" / "arm.json", meshes="refer")
    assert json.loads((tmp_path / "deep" / "arm.json").read_text())["shapes"]["file"]["file"] == "../there/part.stl"
    assert not (tmp_path / "deep" / "arm_meshes").exists()
    with pytest.warns(ReadWarning, match=r"shape 'file': the mesh '../there/part.stl' lies outside"):
        bc.load(tmp_path / "deep" / "arm.json")
    assert len(bc.load(tmp_path / "deep" / "arm.json", packages=tmp_path).shapes) == 11
    with pytest.raises(bc.ModelError, match="meshes must be"):
        bc.save(machine, tmp_path / "arm.yaml", meshes="none")


def test_what_formats_cannot_show_is_told(tmp_path: Path) -> None:
    m = bc.load("pendulum")
    m.add_shape("ground", bc.Plane(), name="floor")
    for ending in ("urdf", "sdf"):
        with pytest.warns(BellcrankWarning, match="'floor': .* plane without end"):
            bc.save(m, tmp_path / f"p.{ending}")
    m.add_shape("bob", bc.Box((1, 1, 1)))
    bc.save(m, tmp_path / "p.yaml")
    assert [s.shape for s in bc.load(tmp_path / "p.yaml").shapes] == [s.shape for s in m.shapes]


@pytest.mark.parametrize(("part", "said"), [
    ("{body: bob, type: box, size: [1, 2]}", "at least 3 numbers"), ("{body: bob, type: ball}", "no type 'ball'"),
    ("{body: bob, type: box, size: [1, 2, 0]}", "shape 's': Box: size must be a positive"),
    ("{body: rod, type: sphere, radius: 1}", "no body called 'rod'"), ("{body: bob, type: mesh}", "either a file"),
    ("{body: bob, type: mesh, file: a.stl, vertices: [[1, 2, 3]], faces: [[0, 0, 0]]}", "either a file"),
    ("{body: bob, type: mesh, vertices: [[1, 2, 3]], faces: [[0, 0, 0.5]]}", "counted from 0"),
    ("{body: bob, type: sphere, radius: 1, color: [2, 0, 0]}", "numbers in 0..1"),
    ("{body: bob, type: sphere, radius: 1, colour: [1, 0, 0]}", "did you mean 'color'")])
def test_mistakes_in_model_files(tmp_path: Path, part: str, said: str) -> None:
    bc.save(bc.load("pendulum"), tmp_path / "p.yaml")
    text = (tmp_path / "p.yaml").read_text().replace("...\n", f"shapes:\n  s: {part}\n...\n")
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(bc.FileError, match=f"p.yaml:1[0-9]: .*{said}"):
        bc.load(tmp_path / "p.yaml")
