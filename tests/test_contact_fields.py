"""Height fields: beside brute force, and in motion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.mechanism.contact.ground_contacts import field_cylinder, field_sphere
from bellcrank.mechanism.contact.touch import ShapeFrame
from bellcrank.spatial import Vector

X, Y = np.linspace(-2.0, 2.0, 9), np.linspace(-1.5, 1.5, 7)
HILLS = bc.HeightField(X, Y, 0.15 * np.sin(2.0 * X)[:, None] * np.cos(1.5 * Y), kind="cubic")
FRAME = ShapeFrame(Vector(0.0, 0.0, 0.0), Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0))


def frame(origin: np.ndarray, turn: np.ndarray) -> ShapeFrame:
    return ShapeFrame(*(Vector(*column.tolist()) for column in (origin, *turn.T)))


def test_depths_beside_brute_force() -> None:
    """The deepest of very many points of a sphere, and of both rims of a cylinder."""
    rng = np.random.default_rng(2)
    height, angle = np.meshgrid(np.linspace(-1, 0.2, 240), np.linspace(-np.pi, np.pi, 360))
    ball = np.stack([np.sqrt(1 - height**2) * np.cos(angle), np.sqrt(1 - height**2) * np.sin(angle), height], axis=-1)
    ring = np.stack([np.cos(angle[:, 0]), np.sin(angle[:, 0]), 0 * angle[:, 0]], axis=-1)
    for _ in range(6):
        center = np.array([*rng.uniform(-1.2, 1.2, 2), 0.1])
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        touch, = field_sphere(HILLS, FRAME, bc.Sphere(0.2), frame(center, turn))
        points = center + 0.2 * ball
        depth = HILLS.table(points[..., 0], points[..., 1]) - points[..., 2]
        assert float(touch.depth) == pytest.approx(depth.max(), abs=3e-4)
        deepest = points.reshape(-1, 3)[depth.argmax()]
        assert np.abs(center - 0.2 * np.array(touch.normal) - deepest).max() < 0.02
        rims = [center + (0.2 * ring + [0, 0, side * 0.1]) @ turn.T for side in (-1, 1)]
        found = field_cylinder(HILLS, FRAME, bc.Cylinder(0.2, 0.2), frame(center, turn))
        for rim, own in zip(rims, (found[:2], found[2:]), strict=True):
            depth = HILLS.table(rim[:, 0], rim[:, 1]) - rim[:, 2]
            assert max(float(t.depth) for t in own) == pytest.approx(depth.max(), abs=1e-4)


def ball_on(shape: Any, pose: bc.Pose, **material: Any) -> bc.System:
    m = bc.Mechanism("ball")
    ball = m.add_body("ball", bc.Inertia(1.0, (0, 0, 0), (0.004, 0.004, 0.004)))
    m.add_joint("free", bc.Free(), m.ground, ball)
    m.add_shape(ball, bc.Sphere(0.1), role="collision")
    m.add_shape(m.ground, shape, pose, role="collision")
    m.add_contact("floor", m.ground, ball, **material)
    return bc.compile(m)


def test_what_slides_over_hills_keeps_its_energy() -> None:
    system = ball_on(HILLS, bc.Pose(), stiffness=1e4, exponent=2.0)
    q, u = system.neutral(), np.zeros(6)
    q[4:] = -0.3, 0.2, HILLS.height(-0.3, 0.2) + 0.16
    result = system.simulate((q, u), 2.0, stepper="dop853", rtol=1e-9, atol=1e-10)
    energy = result["energy"].values
    assert np.ptp(result["q"].values[:, 4]) > 0.3  # it goes somewhere
    assert np.ptp(energy) < 1e-5 * result["kinetic_energy"].values.max()
    assert (result.element("floor").force.values > 1.0).any()


def test_a_field_that_is_flat_is_a_plane() -> None:
    """Rigid, on a slope."""
    slope = bc.HeightField([-5, 0, 5], [-5, 0, 5], [[0.5] * 3, [0.0] * 3, [-0.5] * 3])
    angle = np.arctan(0.1)
    plane = bc.Pose.rpy((0, 0, 0), 0.0, angle, 0.0)
    ends = []
    for shape, pose in ((slope, bc.Pose()), (bc.Plane(), plane)):
        system = ball_on(shape, pose, friction=0.5, restitution=0.3)
        q = system.neutral()
        q[4:] = 0.0, 0.0, 0.2
        result = system.simulate((q, np.zeros(6)), 0.5, stepper="moreau", step=2e-3)
        ends.append(np.concatenate([result["q"].values[-1], result["u"].values[-1]]))
    assert np.abs(ends[0] - ends[1]).max() < 1e-9


def test_bad_fields_are_refused() -> None:
    with pytest.raises(bc.ModelError, match="HeightField: .*must rise"):
        bc.HeightField([0, 2, 1], [0, 1, 2], np.zeros((3, 3)))
    with pytest.raises(bc.ModelError, match="HeightField: heights need two axes"):
        bc.HeightField([0, 2, 3], [0, 1, 2], np.zeros(3))
