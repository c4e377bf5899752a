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
