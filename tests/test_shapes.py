"""Shapes: what they are checked for, and that machines keep them without computing anything else."""

from __future__ import annotations

import copy
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.io.native.same import difference
from bellcrank.mechanism.fingerprint import fingerprint
from bellcrank.mechanism.geometry.placed_shape import NAMED, as_mesh, to_color

TRIANGLE = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
#: a tetrahedron, corners by faces
CORNERS = np.array([(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)], dtype=float)
FACES = np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])


@pytest.mark.parametrize(("shape", "corner"), [
    (bc.Box((2, 4, 6)), (1, 2, 3)), (bc.Sphere(2), (2, 2, 2)), (bc.Ellipsoid((1, 2, 3)), (1, 2, 3)),
    (bc.Cylinder(1, 4), (1, 1, 2)), (bc.Capsule(1, 4), (1, 1, 3)), (bc.Cone(1, 4), (1, 1, 2)),
    (bc.Plane((2, 4)), (1, 2, 0)), (bc.Plane(), (np.inf, np.inf, 0))])
def test_bounds(shape: Any, corner: tuple[float, ...]) -> None:
    low, high = shape.bounds()
    np.testing.assert_array_equal(high, corner)
    np.testing.assert_array_equal(low, -np.array(corner))


@pytest.mark.parametrize(("shape", "volume"), [
    (bc.Box((2, 4, 6)), 48.0), (bc.Sphere(2), 32 * np.pi / 3), (bc.Ellipsoid((1, 2, 3)), 8 * np.pi),
    (bc.Cylinder(1, 4), 4 * np.pi), (bc.Capsule(1, 4), 16 * np.pi / 3), (bc.Cone(1, 4), 4 * np.pi / 3),
    (bc.Plane((2, 4)), 0.0)])
def test_triangles_fill_the_shape(shape: Any, volume: float) -> None:
    """Corners lie on the surface, triangles face outwards and leave no hole."""
    mesh = as_mesh(shape, 64)
    for found, expected in zip((mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)), shape.bounds(), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    inside = np.linalg.det(mesh.vertices[mesh.faces]).sum() / 6.0
    assert 0.985 * volume <= inside <= volume * (1.0 + 1e-12)


@pytest.mark.parametrize(("make", "said"), [
    (lambda: bc.Box((1, 1)), "Box: size needs 3 lengths"), (lambda: bc.Box((1, 1, 0)), "positive, finite length"),
    (lambda: bc.Box(3), "needs 3 lengths"), (lambda: bc.Sphere(-1), "Sphere: radius must be a positive"),
    (lambda: bc.Sphere("big"), "'big' is not a number"), (lambda: bc.Cone(1, float("nan")), "Cone: length"),
    (lambda: bc.Plane((1, 1, 1)), "Plane: size needs 2"), (lambda: bc.Ellipsoid((1, 1, float("inf"))), "radii"),
    (lambda: bc.Mesh([(0, 0)], FACES), "vertices have shape"), (lambda: bc.Mesh(TRIANGLE, [(0, 1, 3)]), "outside 0..2"),
    (lambda: bc.Mesh(TRIANGLE, [(0.5, 1, 2)]), "whole numbers"), (lambda: bc.Mesh([("a",)], []), "arrays of numbers"),
    (lambda: bc.Mesh(TRIANGLE, np.zeros((0, 3), int)), "m >= 1"),
    (lambda: bc.Mesh([(np.nan, 0, 0)] * 3, [(0, 1, 2)]), "finite"),
    (lambda: bc.Mesh(TRIANGLE, [(0, 1, 2)], colors=[(2, 0, 0, 1)]), "colors"),
    (lambda: bc.Mesh.read("part.step"), "not read"), (lambda: bc.Mesh.read("nowhere.stl"), "no such file")])
def test_refusals(make: Any, said: str) -> None:
    with pytest.raises(bc.BellcrankError, match=said):
        make()


def test_colors() -> None:
    assert to_color("red", "x") == to_color("#f00", "x") == to_color((1, 0, 0), "x") == (1.0, 0.0, 0.0, 1.0)
    assert to_color("#00000080", "x") == (0.0, 0.0, 0.0, 128 / 255) and to_color("#0008", "x")[3] == 0x88 / 255
    assert to_color((0, 0, 0, 0.5), "x")[3] == 0.5 and all(to_color(name, "x") for name in NAMED)
    for wrong in ("rde", "#12345", "#gggggg", "#", "", (1, 2, 3), (0, 0), 7, (0, 0, float("nan"))):
        with pytest.raises(bc.ModelError, match="lamp.*color"):
            to_color(wrong, "lamp")  # type: ignore[arg-type]
    with pytest.raises(bc.ModelError, match="red"):
        to_color("rde", "lamp")


@pytest.fixture
def shaped() -> bc.Mechanism:
    m = bc.load("four_bar")
    m.add_shape("crank", bc.Capsule(0.01, 0.2), bc.Pose((0.1, 0, 0)), color="tomato")
    m.add_shape(m.body("crank"), bc.Capsule(0.01, 0.2), role="collision")
    m.add_shape(m.ground, bc.Plane(), name="floor", color=(0, 0, 0, 0.2))
    m.add_shape("rocker", bc.Mesh(CORNERS, FACES))
    return m


def test_placing(shaped: bc.Mechanism) -> None:
    assert [s.name for s in shaped.shapes] == ["crank capsule", "crank capsule 2", "floor", "rocker mesh"]
    assert [s.role for s in shaped.shapes_of("crank")] == ["visual", "collision"]
    assert shaped.shapes_of(shaped.ground)[0].color == (0.0, 0.0, 0.0, 0.2)
    assert shaped.shapes[0].pose == bc.Pose((0.1, 0, 0)) and shaped.shapes[1].color is None


def test_placing_is_checked(shaped: bc.Mechanism) -> None:
    length, foreign = shaped.parameter("length", 1.0), bc.Mechanism("other").parameter("far", 1.0)
    for arguments, said in [(("crank", "box"), "shape of body 'crank': needs a shape"),
                            (("cranc", bc.Sphere(1)), "no body called 'cranc'"),
                            (("crank", bc.Sphere(1), (0, 0, 0)), "must be a bellcrank.Pose")]:
        with pytest.raises(bc.ModelError, match=said):
            shaped.add_shape(*arguments)  # type: ignore[arg-type]
    for options, said in [({"role": "sound"}, "role must be"), ({"name": "floor"}, "exists already"),
                          ({"name": ""}, "non-empty"), ({"color": "rainbow"}, "unknown color"),
                          ({"role": "collision", "pose": bc.Pose((length, 0, 0))}, "not parameters"),
                          ({"pose": bc.Pose((foreign, 0, 0))}, "parameter of another mechanism")]:
        with pytest.raises(bc.ModelError, match=said):
            shaped.add_shape("crank", bc.Sphere(1), **options)  # type: ignore[arg-type]
    assert len(shaped.shapes) == 4


def test_copies_are_independent_and_equal(shaped: bc.Mechanism) -> None:
    for other in (shaped.copy(), copy.deepcopy(shaped), pickle.loads(pickle.dumps(shaped))):
        assert other.shapes == shaped.shapes and difference(other, shaped) is None
        other.add_shape("crank", bc.Sphere(1))
        assert len(shaped.shapes) == 4 and difference(other, shaped) is not None


def test_shapes_change_nothing_that_is_computed(shaped: bc.Mechanism) -> None:
    plain = bc.load("four_bar")
    assert fingerprint(plain) == fingerprint(shaped)
    first, second = bc.compile(plain), bc.compile(shaped)
    assert first.model.digest == second.model.digest
    assert second.model.mechanism.shapes == shaped.shapes


def test_meshes_keep_their_arrays() -> None:
    points = CORNERS.copy()
    mesh = bc.Mesh(points, FACES)
    points[:] = 0.0
    np.testing.assert_array_equal(mesh.vertices, CORNERS)
    with pytest.raises(ValueError, match="read-only"):
        mesh.vertices[0, 0] = 1.0
    assert mesh == bc.Mesh(CORNERS, FACES) and hash(mesh) == hash(bc.Mesh(CORNERS, FACES))
    assert mesh != bc.Mesh(2 * CORNERS, FACES) and mesh != bc.Mesh(CORNERS, FACES, colors=np.ones((4, 4)))
    assert mesh != "mesh"


def volume(mesh: bc.Mesh) -> float:
    """Of a closed mesh; negative if faces are turned inside out."""
    a, b, c = mesh.vertices[mesh.faces].transpose(1, 0, 2)
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0)


def binary_stl() -> bytes:
    each = b"".join(struct.pack("<12fH", 0, 0, 0, *CORNERS[face].ravel(), 0) for face in FACES)
    return b"solid, or so it says".ljust(80) + struct.pack("<I", len(FACES)) + each


def text_stl() -> bytes:
    rows = "".join("facet normal 0 0 0\nouter loop\n" + "".join(f"vertex {x} {y} {z}\n" for x, y, z in CORNERS[face])
                   + "endloop\nendfacet\n" for face in FACES)
    return f"solid thing\n{rows}endsolid\n".encode()


def obj() -> bytes:
    points = "".join(f"v {x} {y} {z}\n" for x, y, z in CORNERS)
    return f"# made by hand\n{points}vn 0 0 1\nf 1//1 3//1 2//1\nf 1/1 2/1 4/1\nf -4 -1 -2\nf 2 3 4\n".encode()


@pytest.mark.parametrize(("name", "content"), [("a.stl", binary_stl()), ("b.STL", text_stl()), ("c.obj", obj())])
def test_files(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    mesh = bc.Mesh.read(tmp_path / name, scale=0.1)
    assert mesh.vertices.shape == (4, 3) and mesh.faces.shape == (4, 3) and mesh.colors is None
    assert volume(mesh) == pytest.approx(1e-3)
    np.testing.assert_allclose(mesh.bounds()[1], (0.1, 0.2, 0.3))
    mirrored = bc.Mesh.read(tmp_path / name, scale=(1, -1, 1))
    assert volume(mirrored) == pytest.approx(1.0) and mirrored.bounds()[0][1] == -2.0
    assert mesh != mirrored and mesh == bc.Mesh.read(tmp_path / name, 0.1)


def test_files_are_read_when_needed(tmp_path: Path) -> None:
    place = tmp_path / "part.stl"
    place.write_bytes(b"nothing of the kind")
    mesh = bc.Mesh.read(place)
    with pytest.raises(bc.FileError, match="part.stl' is damaged"):
        mesh.bounds()
    place.write_bytes(binary_stl())
    assert len(mesh.faces) == 4
    again = pickle.loads(pickle.dumps(mesh))
    assert again == mesh and len(pickle.dumps(mesh)) < 400
    place.unlink()
    assert len(mesh.faces) == 4
    with pytest.raises(bc.FileError, match=r"part.stl' cannot be read"):
        again.bounds()


@pytest.mark.parametrize(("name", "content"), [
    ("a.stl", b""), ("a.stl", b"solid x\nvertex 1 2 3\n"), ("a.stl", b"solid x\nvertex 1 2 x\n"),
    ("a.stl", binary_stl()[:-7]), ("a.obj", b""), ("a.obj", b"v 1 2 3\nf 1 2 3\n"), ("a.obj", b"v 1 2\nf 1 1 1\n"),
    ("a.obj", b"v 1 2 3\nv 1 2 3\nv 0 0 0\nf 1 2 x\n"), ("a.stl", b"\0" * 84)])
def test_damaged_files(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(bc.BellcrankError, match=r"mesh .*a\."):
        bc.Mesh.read(tmp_path / name).bounds()


def test_files_through_trimesh(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    solid = trimesh.Trimesh(CORNERS, FACES, process=False)
    for ending in ("ply", "glb"):
        solid.export(tmp_path / f"part.{ending}")
        assert volume(bc.Mesh.read(tmp_path / f"part.{ending}")) == pytest.approx(1.0)
    (tmp_path / "part.dae").write_text("<COLLADA/>")
    with pytest.raises(bc.FileError, match="part.dae"):
        bc.Mesh.read(tmp_path / "part.dae").bounds()
    (tmp_path / "part.dae").write_text('<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><COLLADA>&e;</COLLADA>')
    with pytest.raises(bc.FileError, match="declares XML entities"):
        bc.Mesh.read(tmp_path / "part.dae").bounds()


def test_collada(tmp_path: Path) -> None:
    """Colors of materials, units and the upward axis of the file; a picture that it names is not opened."""
    pytest.importorskip("trimesh")
    pytest.importorskip("collada")
    place = tmp_path / "part.dae"
    place.write_text(COLLADA)
    mesh = bc.Mesh.read(place)
    assert mesh.faces.shape == (1, 3) and mesh.colors is not None
    np.testing.assert_allclose(mesh.colors[0], (1, 0.5, 0, 1), atol=0.01)
    np.testing.assert_allclose(sorted(mesh.vertices.tolist()), [(0, 0, 0), (0, 2, 0), (1, 0, 0)], atol=1e-12)


COLLADA = """<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_images><image id="i"><init_from>../../../../etc/hostname</init_from></image></library_images>
<library_effects><effect id="e"><profile_COMMON><technique sid="c"><phong><diffuse><color>1 0.5 0 1</color></diffuse>
</phong></technique></profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="pa" count="9">0 0 0 1 0 0 0 2 0</float_array>
<technique_common><accessor source="#pa" count="3" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="1" material="m"><input semantic="VERTEX" source="#v" offset="0"/>
<p>0 1 2</p></triangles></mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node id="n"><instance_geometry url="#g"><bind_material><technique_common>
<instance_material symbol="m" target="#m"/></technique_common></bind_material></instance_geometry></node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>"""
