"""Names of loop conditions: what they say is what they forbid, in the axes that the user gave."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import bellcrank as bc

SLANT = (0.6, 0.0, 0.8)
KINDS: dict[str, Any] = {
    **{f"{kind.__name__} {axis}": kind(axis) for kind in (bc.Revolute, bc.Prismatic, bc.Cylindrical, bc.Planar,
                                                          bc.PointOnLine, bc.PointOnPlane)
       for axis in ("x", "y", "z", "-x", SLANT)},
    "Screw x": bc.Screw("x", pitch=0.1), "Universal": bc.Universal("x", "y"), "Universal z": bc.Universal("z", "x"),
    "Spherical": bc.Spherical(), "Weld": bc.Weld(), "Distance": bc.Distance(0.5), "Angle": bc.Angle(1.0, "x", "y"),
    "KnifeEdge": bc.KnifeEdge("y"),
}
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def closed_by(kind: Any) -> bc.System:
    """A free body that a joint or constraint ties to the ground; at rest where all frames coincide."""
    m = bc.Mechanism("tied")
    m.add_body("block", bc.Inertia.box(1.0, (0.1, 0.2, 0.3)))
    m.add_joint("free", bc.Free(), "ground", "block")
    if isinstance(kind, bc.Joint):
        m.add_joint("b", kind, "ground", "block")
        return bc.compile(m, cut=["b"])
    m.add_constraint("b", kind, "ground", "block")
    return bc.compile(m)


@pytest.mark.parametrize("case", KINDS)
def test_conditions_forbid_what_they_say(case: str) -> None:
    """Rows of the Jacobian: speeds are wx, wy, wz, vx, vy, vz of the block, in the axes of the joint's frame."""
    system = closed_by(KINDS[case])
    position = system.neutral()
    if case == "Distance":
        position[4:] = (0.3, 0.4, 0.0)
    rows = bc.analyze.loop_jacobian(system, position)
    assert not rows[:, 6:].any()  # the loop joint's own speeds follow from the block's
    rows = rows[:, :6]
    assert len(rows) == len(system.plans.loops.row_names) == len(set(system.plans.loops.row_names))
    named = 0
    for label, row in zip(system.plans.loops.row_names, rows, strict=True):
        said = re.fullmatch(r"b: (along|about) (?:([xyz])|\((.*)\))", label)
        if said is None:
            assert label in ("b: length", "b: height", "b: advance", "b: angle of the axes", "b: angle",
                             "b: slip"), label
            continue
        named += 1
        axis = np.array(AXES[said[2]] if said[2] else [float(v) for v in said[3].split(",")])
        wanted = np.concatenate([np.zeros(3), axis] if said[1] == "along" else [axis, np.zeros(3)])
        assert min(np.abs(row - wanted).max(), np.abs(row + wanted).max()) < 2e-3, (label, row)
    assert named >= len(rows) - 1


def test_planar_machines_are_explained() -> None:
    """Which loads are not determined: those out of the plane of a four-bar; all of a door's second hinge."""
    found = bc.analyze.explain(bc.compile(bc.load("four_bar"), backend="numpy"))
    assert found.loops[0].plane == "z" and set(found.undetermined) == {"D: along z", "D: about x", "D: about y"}
    assert "planar mechanism in space: it moves in a plane" in str(found) and "unique" in str(found)
    m = bc.Mechanism("door")
    m.add_body("door", bc.Inertia.box(20.0, (0.8, 0.04, 2.0), (0.4, 0, 0)))
    for name, height in (("low", -0.8), ("high", 0.8)):
        m.add_joint(name, bc.Revolute("z"), "ground", "door", bc.Pose((0, 0, height)), bc.Pose((0, 0, height)))
    found = bc.analyze.explain(bc.compile(m, backend="numpy"))
    assert len(found.undetermined) == 5 == len(found.redundant)  # all of the second hinge
    m = bc.load("stewart")
    assert not bc.analyze.explain(bc.compile(m, backend="numpy")).undetermined


def test_the_free_direction_is_not_called_redundant() -> None:
    """Two parallel slides along x: one of them says nothing new, and nothing it says is about x."""
    m = bc.Mechanism("slides")
    m.add_body("cart", bc.Inertia.box(1.0, (0.1, 0.2, 0.3)))
    m.add_joint("a", bc.Prismatic("x"), "ground", "cart")
    m.add_joint("b", bc.Prismatic("x"), "ground", "cart", bc.Pose((0, 0.5, 0)), bc.Pose((0, 0.5, 0)))
    assert set(bc.analyze.explain(bc.compile(m)).redundant) == {"b: along y", "b: along z", "b: about x", "b: about y",
                                                      "b: about z"}
