"""Scenes: what pictures show, as numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.view.packing import pack
from bellcrank.view.scene import PlottedCurve, Scene, along, matrices, turned
from bellcrank.view.scene_models import body_shapes, mass_shape, reduced
from bellcrank.view.scenes import chosen_frames, own_samples, scene_of


def unpacked(scene: Scene) -> tuple[dict[str, Any], np.ndarray]:
    data = pack(scene)
    size = int.from_bytes(data[:4], "little")
    planes = np.frombuffer(data[4 + size:], dtype=np.uint8).reshape(4, -1)
    return json.loads(data[4:4 + size]), np.ascontiguousarray(planes.T).view("<f4").ravel()


@pytest.fixture(scope="module")
def run() -> bc.Result:
    linkage = bc.compile(bc.load("four_bar"), backend="numpy")
    return linkage.simulate(linkage.assemble(q={"A": 0.5}, u={"A": 2.0}), duration=0.02, step=0.01)


def test_every_example_is_seen() -> None:
    """Every body of every machine has something to see: a shape, or symbols of its joints."""
    for name in set(bc.examples.names()) - {"redundant_five_bar"}:  # which takes a second to close
        scene = scene_of(bc.load(name))
        bare = [b.name for b in scene.models[0].bodies[1:] if not b.shapes and b.mass]
        assert not bare and not scene.notes, name
        assert np.isfinite(scene.tracks[0].positions).all(), name


def test_rods_discs_balls_and_blocks() -> None:
    def kind(inertia: bc.Inertia) -> tuple[str, tuple[float, ...]]:
        mass = mass_shape(inertia.mass, inertia.com, inertia.inertia)
        shape = body_shapes(mass, [], 0.01, 1.0)[0]
        return shape.kind, tuple(np.round(shape.size, 9))

    assert kind(bc.Inertia.rod(2.0, (0, 0, 0), (0.6, 0, 0))) == ("capsule", (0.01, 0.6))
    assert kind(bc.Inertia.cylinder(2.0, 0.3, 0.02)) == ("cylinder", (0.3, 0.02))
    assert kind(bc.Inertia.sphere(2.0, 0.3)) == ("sphere", (0.3, 0.3, 0.3))
    assert kind(bc.Inertia.box(2.0, (0.1, 0.4, 0.25))) == ("box", (0.4, 0.25, 0.1))
    assert kind(bc.Inertia.point(2.0))[0] == "sphere"


def test_struts_lead_where_the_mass_does_not_reach() -> None:
    inertia = bc.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    mass = mass_shape(inertia.mass, inertia.com, inertia.inertia)
    ends = [np.array([0.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])]
    assert len(body_shapes(mass, ends, 0.02, 1.0)) == 1
    far = body_shapes(mass, [*ends, np.array([0.5, 0.3, 0.0])], 0.02, 1.0)
    assert len(far) == 2 and far[1].size == pytest.approx((0.02, 0.3))
    assert [s.size[1] for s in body_shapes(None, ends, 0.02, 1.0)] == [1.0]


def test_struts_to_blocks() -> None:
    """Where a point is half a thickness outside a block or nearer, none is wanted."""
    inertia = bc.Inertia.box(2.0, (0.1, 0.4, 0.25))
    mass = mass_shape(inertia.mass, inertia.com, inertia.inertia)
    for away, shapes in ((0.05 + 0.009, 1), (0.05 + 0.012, 2)):
        assert len(body_shapes(mass, [np.array([away, 0.1, 0.0])], 0.02, 1.0)) == shapes


def test_turns() -> None:
    rng = np.random.default_rng(3)
    for direction in (*rng.normal(size=(5, 3)), np.array([0.0, 0.0, -1.0])):
        turn = along(direction)
        assert np.allclose(turned(turn, (0, 0, 1)), direction / np.linalg.norm(direction), atol=1e-12)
        assert np.allclose(matrices(turn) @ (1, 2, 3), turned(turn, (1, 2, 3)), atol=1e-12)


def test_poses_are_those_of_the_machine(run: bc.Result) -> None:
    scene = scene_of(run)
    header, floats = unpacked(scene)
    at, count = header["tracks"][0]["poses"]
    frames = len(scene.tracks[0].times)
    rows = floats[at:at + count].reshape(4, 7, frames)
    assert run.system is not None
    poses = run.system.pose(run["q"].values)
    assert np.abs(rows[1:, :3] - np.moveaxis(poses.position, 0, 2)).max() < 1e-5
    turn = matrices(np.moveaxis(rows[1:, 3:], 1, 2))
    assert np.abs(turn - np.moveaxis(poses.rotation, 0, 1)).max() < 5e-5
    assert np.abs(np.diff(rows[:, 3:], axis=2)).max() < 0.2  # quaternions do not change their sign


def test_reactions_balance(run: bc.Result) -> None:
    """Arrows on a body, with its weight, make its center of mass accelerate; that of D, which closes the loop on the
    ground, is turned round to act on the rocker."""
    scene = scene_of(run, forces=True)
    arrows = {a.name: a for a in scene.tracks[0].arrows}
    assert arrows["D"].body == 0
    total = arrows["C"].force + arrows["D"].force
    moves = run.kinematics("rocker", (0.3, 0.0, 0.0))["acceleration"].values
    assert np.allclose(total + 3.0 * np.array([0, -9.81, 0]), 3.0 * moves, atol=1e-8)


def test_curves_of_all_joints(run: bc.Result) -> None:
    """Also of the one that was cut."""
    names = [c.name for c in scene_of(run).tracks[0].curves if c.group == "coordinates [rad]"]
    assert sorted(names) == ["A.angle", "B.angle", "C.angle", "D.angle"]


def test_frames_are_limited() -> None:
    times = np.linspace(0.0, 2.0, 5001)
    some = chosen_frames(60.0 * times, 3000)
    assert len(some) == 240 and some[0] == 0 and some[-1] == 5000
    assert np.ptp(np.diff(times[some])) < 1e-3
    assert len(chosen_frames(300.0 * times, 3000)) == 601
    assert len(chosen_frames(60.0 * times, 50)) == 50
    assert chosen_frames(times[:3], 50).tolist() == [0, 1, 2]
    uneven = np.cumsum(np.random.default_rng(2).random(500))
    grid = np.linspace(uneven[0], uneven[-1], 50)
    nearest = np.abs(grid[:, None] - uneven).argmin(axis=1)
    assert chosen_frames(uneven, 50).tolist() == np.unique(nearest).tolist()


def test_fast_motion_has_more_frames_and_all_samples_in_its_curves() -> None:
    """A crank at 40 turns a second: frames about 15 degrees apart, and a stroke without beat."""
    system = bc.compile(bc.load("slider_crank"), backend="numpy", actuated=["crank"])
    run = bc.analyze.drive(system, {"crank": lambda t: 2 * np.pi * 40.0 * t + 0.3}, np.linspace(0.0, 0.5, 1001))
    track = scene_of(run, forces=False).tracks[0]
    turns = track.turns[:, 1]
    apart = 2.0 * np.arccos(np.abs((turns[1:] * turns[:-1]).sum(axis=1)).clip(0.0, 1.0))
    assert 400 < len(track.times) < 1001 and apart.max() < np.radians(22.0)  # of samples 7 degrees apart
    curve = next(c for c in track.curves if c.name == "slide.slide")
    np.testing.assert_array_equal(curve.values, run.q.sel(coordinate="slide.slide"))
    np.testing.assert_array_equal(curve.times, run.time)
    assert len(scene_of(run, forces=False, frames=700).tracks[0].times) == 700
    assert scene_of(run, forces=False, frames=1001).tracks[0].curves[0].times is None
    with pytest.raises(bc.StateError, match="frames must be a whole number, at least 2, got 0"):
        scene_of(run, frames=0)


def test_curves_of_long_runs_keep_their_peaks() -> None:
    times = np.linspace(0.0, 1.0, 100_001)
    values = np.sin(2 * np.pi * 10_000 * times)
    values[70_003] = 5.0
    kept = own_samples(PlottedCurve("g", "n", "m", values), times)
    assert len(kept.times) == len(kept.values) <= 8002 and kept.values.max() == 5.0 and kept.values.min() < -0.9
    assert (np.diff(kept.times) > 0).all() and kept.times[-1] == 1.0


def test_curves_that_do_not_change_are_left_out() -> None:
    still = bc.compile(bc.load("pendulum"), backend="numpy")
    run = still.simulate(([0.0], [0.0]), duration=0.02, step=0.01)
    assert not [c for c in scene_of(run).tracks[0].curves if c.group == "energy"]
    moves = still.simulate(([0.5], [0.0]), duration=0.02, step=0.01)
    assert {c.name for c in scene_of(moves).tracks[0].curves if c.group == "energy"} >= {"kinetic", "gravity"}


def test_moments_that_are_rounding_are_not_packed(run: bc.Result) -> None:
    scene = scene_of(run, forces=True)
    force, length = scene.scales[0], 0.01
    scene = replace(scene, models=(replace(scene.models[0], length=length),))
    for size, seen in ((2e-7, False), (2e-5, True)):
        arrows = tuple(replace(a, moment=np.full_like(a.moment, size * force * length))
                       for a in scene.tracks[0].arrows[:1])
        some = replace(scene, tracks=(replace(scene.tracks[0], arrows=arrows),))
        assert ("moment" in unpacked(some)[0]["tracks"][0]["arrows"][0]) == seen


def test_arrows_of_contacts_stand_where_they_act() -> None:
    """On the body, in its axes, in the middle of what it has touched with; on the first where the second is ground."""
    m = bc.Mechanism("ball")
    ball = m.add_body("ball", bc.Inertia.sphere(1.0, 0.2))
    m.add_joint("free", bc.Free(), m.ground, ball)
    m.add_shape(ball, bc.Sphere(0.2), role="collision", name="ball")
    m.add_shape(m.ground, bc.Plane(), role="collision", name="floor")
    m.add_contact("rests", "ball", "floor", stiffness=1e4)
    system = bc.compile(m, backend="numpy")
    turn = np.array([np.cos(0.3), np.sin(0.3), 0.0, 0.0])
    run = system.simulate(([*turn, 0.5, 0.0, 0.199], np.zeros(6)), duration=0.002, step=0.001)
    arrow, = (a for a in scene_of(run, forces=True).tracks[0].arrows if a.name == "rests")
    assert arrow.body == 1 and (arrow.force[:, 2] > 5.0).all()
    assert np.allclose(turned(turn, arrow.point), (0.0, 0.0, -0.1995), atol=2e-3)


def test_refusals() -> None:
    with pytest.raises(bc.ModelError, match="shows mechanisms"):
        scene_of(3.0)
    with pytest.raises(bc.ModelError, match="needs something"):
        scene_of()
    with pytest.raises(bc.ModelError, match="no body called 'cranc'"):
        scene_of(bc.load("four_bar"), traces=["cranc"])


def test_colors_of_materials(tmp_path: Path) -> None:
    """Files that color by materials (DAE, GLB), not by faces."""
    trimesh = pytest.importorskip("trimesh")
    material = trimesh.visual.material.PBRMaterial(baseColorFactor=(0, 255, 0, 255))
    part = trimesh.creation.box()
    part.visual = trimesh.visual.TextureVisuals(uv=np.zeros((len(part.vertices), 2)), material=material)
    part.export(tmp_path / "part.glb")
    mesh = bc.Mesh.read(tmp_path / "part.glb")
    assert mesh.colors is not None and mesh.colors[0].tolist() == [0.0, 1.0, 0.0, 1.0]


def test_meshes_with_fewer_triangles() -> None:
    """As many as wanted at most, in the same place, with their colors."""
    angle = np.linspace(0.0, 2.0 * np.pi, 201)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    heights = np.linspace(0.0, 1.0, 41)
    vertices = np.array([(x, y, z) for z in heights for x, y in ring])
    k = np.array([i * 201 + j for i in range(40) for j in range(200)])
    faces = np.concatenate([np.stack([k, k + 1, k + 201], axis=1), np.stack([k + 1, k + 202, k + 201], axis=1)])
    shades = np.tile([0.2, 0.4, 0.6, 1.0], (len(faces), 1))
    found = reduced(vertices, faces, shades, 3000)
    assert 1500 < len(found.faces) <= 3000 and found.shades is not None and len(found.shades) == len(found.faces)
    assert np.abs(np.hypot(found.vertices[:, 0], found.vertices[:, 1]) - 1.0).max() < 0.02
    corners = found.vertices[found.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert ((normals * corners.mean(axis=1))[:, :2].sum(axis=1) > -1e-12).all()  # the outside stays outside
    same = reduced(vertices, faces, shades, len(faces))
    assert same.faces is faces


def test_batches_of_parameters() -> None:
    """A track for every sample, named by what differs, with shapes of its own."""
    m = bc.Mechanism("pendulum")
    length = m.parameter("length", 1.0)
    bob = m.add_body("bob", bc.Inertia.point(1.0, (0, 0, -1.0 * length)))
    m.add_joint("hinge", bc.Revolute("x"), m.ground, bob)
    several = bc.compile(m, backend="numpy").with_parameters(length=np.array([0.5, 1.5]))
    scene = scene_of(several.simulate(([0.3], [0.0]), duration=0.02, step=0.01))
    assert [t.label for t in scene.tracks] == ["length = 0.5", "length = 1.5"] and scene.side_by_side
    assert [scene.models[t.model].bodies[1].com[2] for t in scene.tracks] == [-0.5, -1.5]
    assert scene.tracks[0].color != scene.tracks[1].color


def test_flexible_bodies_bend() -> None:
    """The nodes of the picture are where the machine has them."""
    m = bc.Mechanism("beam")
    section = bc.BeamSection.round(0.01, E=2e11, rho=7800.0)
    rod = m.add_body("rod", bc.FlexibleBody.beam(1.0, section, elements=4, modes={"y": 2}))
    m.add_joint("hinge", bc.Revolute("z"), m.ground, rod)
    beam = bc.compile(m, backend="numpy")
    q = np.array([0.4, 0.02, -0.01])
    scene = scene_of((beam, q))
    soft, track = scene.models[0].soft[0], scene.tracks[0]
    nodes = soft.nodes + soft.shapes @ track.amplitudes[0][0]
    world = track.positions[0, soft.body] + turned(track.turns[0, soft.body], nodes)
    assert np.abs(world[-1] - beam.pose(q, "rod.tip").position).max() < 1e-12
    assert abs(world[-1] - beam.pose([0.4, 0.0, 0.0], "rod.tip").position).max() > 1e-3


def test_springs_and_wrenches() -> None:
    """Arrows of a spring pull its ends together, of a wrench in body axes turn with the body."""
    m = bc.load("pendulum")
    name = m.bodies[0].name
    m.add_spring("rope", m.ground, name, (0, 0, 1), (0, 0, -1), stiffness=10.0, length=0.5)
    m.add_wrench("push", name, force=(0, 2.0, 0), axes="body")
    m.add_wrench("wind", name, law=lambda at: (0.0, 3.0 - at.velocity(name).y, 0.0), at=(0, 0, -1))
    m.add_joint_spring("coil", "hinge", stiffness=4.0, rest=0.5)
    m.add_output("stretch", lambda at: at.element("rope").length - 0.5, units="m")
    pendulum = bc.compile(m, backend="numpy")
    run = pendulum.simulate(([0.0], [0.0]), duration=0.02, step=0.01)
    assert np.allclose(run.forces("wind").values[0], (0, 0, 0, 0, 3.0, 0))  # where it acts
    arrows = {a.name: a for a in scene_of(run, forces=True).tracks[0].arrows}
    assert np.allclose(arrows["rope"].force[0], (0, 0, 15.0)) and arrows["rope"].kind == "spring"
    assert np.allclose(arrows["wind"].force[0], (0, 3.0, 0)) and np.abs(arrows["wind"].moment).max() < 1e-12
    turn = run.system.pose(run["q"].values, name).rotation  # type: ignore[union-attr]
    assert np.allclose(arrows["push"].force, 2.0 * turn[:, :, 1])
    curves = {(c.group, c.name): c.values for c in scene_of(run, forces=True).tracks[0].curves}
    assert np.allclose(curves["force of elements [N]", "rope"], run.element("rope").force)
    assert np.allclose(curves["torque of elements [N m]", "coil"], run.element("coil").force)
    assert np.allclose(curves["power of elements [W]", "coil"], run.element("coil").power)
    assert np.allclose(curves["outputs [m]", "stretch"], run["stretch"]) and curves["outputs [m]", "stretch"][0] == 1.5
    size = np.linalg.norm(run.reactions().sel(joint="hinge").values[:, 3:], axis=1)
    assert np.allclose(curves["magnitude of reaction force [N]", "hinge"], size)
    assert not [c for c in scene_of(run, forces=False).tracks[0].curves if "element" in c.group]


def test_states_are_not_seen() -> None:
    m = bc.load("pendulum")
    bare = scene_of(m).models[0]
    m.add_state("lag", lambda at: at.u("hinge") - at.state("lag"))
    model = scene_of(m).models[0]
    assert [j.name for j in model.joints] == ["hinge"] and model.length == bare.length
    assert [b.shapes for b in model.bodies if b.name == "lag"] == [()]
