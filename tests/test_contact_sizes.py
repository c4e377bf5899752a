"""Contact does not depend on the unit of length: the same bodies in millimetres, micrometres and kilometres."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.mechanism.contact.contact_material import Compliant
from bellcrank.mechanism.contact.narrow_phase import seen_by_contact
from bellcrank.topology.contact_pairs import ContactPair
from test_contact_shapes import SHAPES, moving, turns

#: pairs whose depth is measured in several ways, and one of each other kind
PAIRS = [("capsule", "box"), ("box", "cylinder"), ("cylinder", "cylinder"), ("capsule", "cylinder"), ("box", "box"),
         ("box", "mesh"), ("capsule", "mesh"), ("sphere", "mesh"), ("field", "cylinder"), ("plane", "cylinder")]


def in_units(shape: Any, size: float) -> Any:
    """A shape whose lengths are so many times larger."""
    if isinstance(shape, bc.Plane):
        return shape
    if isinstance(shape, bc.HeightField):
        return bc.HeightField(np.multiply(shape.x, size), np.multiply(shape.y, size), shape.heights * size,
                              kind=shape.kind)
    if isinstance(shape, bc.Mesh):
        return bc.Mesh(shape.vertices * size, shape.faces)
    return bc.Box(np.multiply(shape.size, size)) if isinstance(shape, bc.Box) else type(shape)(
        *(getattr(shape, label) * size for label in (f.name for f in fields(shape))))


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_forces_do_not_depend_on_the_unit_of_length(one: str, other: str) -> None:
    rng = np.random.default_rng(3)
    n = 200
    turn, second_turn = turns(rng, n), turns(rng, n)
    apart = rng.normal(size=(n, 3))
    apart *= (rng.uniform(0.05, 0.45, n) / np.linalg.norm(apart, axis=1))[:, None]
    found = []
    for size in (1.0, 2.0**-17, 2.0**-7, 2.0**10, 2.0**20):
        shapes = [seen_by_contact(in_units(SHAPES[k], size), k) for k in (one, other)]
        pair = ContactPair("pair", 1, 2, np.eye(3), (0.0,) * 3, np.eye(3), (0.0,) * 3, *shapes, Compliant(1e3))
        still = np.zeros((n, 3))
        ends = moving(turn, still, still, still), moving(second_turn, apart * size, still, still)
        force = [np.broadcast_to(x / size, (n,)) for x in pair.wrenches(*ends, None)[1].force]
        found.append(np.stack([*force, np.broadcast_to(pair.energy(*ends) / size**2, (n,))], axis=-1))
    assert (np.abs(found[0]).max(axis=-1) > 1.0).sum() > n // 3
    for scaled in found[1:]:
        np.testing.assert_allclose(scaled, found[0], rtol=1e-9, atol=1e-9)


def dropped(size: float, step: float = 2e-3, output: float = 0.02) -> np.ndarray:
    """Coordinates and speeds of a capsule and a box that fall on the ground and on each other, in units of the size."""
    m = bc.Mechanism("scene", gravity=(0.0, 0.0, -9.81 * size))
    shapes = {"capsule": bc.Capsule(0.06, 0.2), "box": bc.Box((0.1, 0.2, 0.15))}
    for name, shape in shapes.items():
        m.add_body(name, bc.Inertia(1.0, (0, 0, 0), tuple(x * size**2 for x in (0.004, 0.003, 0.002))))
        m.add_joint(name + " free", bc.Free(), m.ground, name)
        m.add_shape(name, in_units(shape, size), role="collision")
    m.add_contacts("all", bc.Plane(), friction=0.4, restitution=0.3)
    m.add_contact("pair", "capsule", "box", friction=0.4, restitution=0.3)
    lengths = np.tile([1.0, 1.0, 1.0, 1.0, size, size, size], 2)
    rates = np.tile([1.0, 1.0, 1.0, size, size, size], 2)
    q = np.array([0.9, 0.3, 0.2, 0.1, 0.0, 0.0, 0.25, 0.8, -0.3, 0.2, 0.4, 0.03, 0.02, 0.5])
    q[:4] /= np.linalg.norm(q[:4])
    q[7:11] /= np.linalg.norm(q[7:11])
    u = np.array([1.0, -2.0, 0.5, 0.2, 0.1, 0.0, -1.0, 1.0, 2.0, 0.0, 0.1, 0.0])
    run = bc.compile(m).simulate((q * lengths, u * rates), 0.6, stepper="moreau", step=step, output=output)
    assert run.attrs["contact_residual"] < 1e-10 * size
    return np.concatenate([run["q"].values / lengths, run["u"].values / rates], axis=-1)


def test_rigid_bodies_do_not_depend_on_the_unit_of_length() -> None:
    metres = dropped(1.0)
    for size in (2.0**-20, 2.0**-10, 2.0**10):
        np.testing.assert_allclose(dropped(size), metres, rtol=0, atol=1e-6)
