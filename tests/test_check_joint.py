"""`check_joint`: passes what is right, and names the method of what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.mechanism.constraint_rows import Row, Side, parallel_axes, turn_about_z, within
from bellcrank.spatial import AboutZ, Force, Motion, Transform, Vector

SLANT = (1.0, -2.0, 0.5)
BUILT_IN: dict[str, bc.Joint] = {
    "revolute": bc.Revolute("x"), "revolute slant": bc.Revolute(SLANT), "prismatic": bc.Prismatic("-y"),
    "prismatic slant": bc.Prismatic(SLANT), "screw": bc.Screw("z", 0.3), "screw slant": bc.Screw(SLANT, -0.7),
    "screw without pitch": bc.Screw("x"), "cylindrical": bc.Cylindrical(SLANT), "universal": bc.Universal(),
    "universal skew": bc.Universal((1.0, 0.2, -0.4), (0.3, 1.0, 0.5)), "planar": bc.Planar(),
    "planar slant": bc.Planar(SLANT), "spherical": bc.Spherical(), "free": bc.Free(), "weld": bc.Weld(),
}


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize("seed", (0, 1))
def test_the_joints_of_the_library_pass(name: str, seed: int) -> None:
    bc.check_joint(BUILT_IN[name], seed=seed)
    bc.check_joint(BUILT_IN[name].reversed(), seed=seed)


# -- a joint of one's own ---------------------------------------------------------------------------
class TurningSlot(bc.Joint):
    """A slot that turns with the child: first the angle, then the slide along the child's x."""

    nq = nu = 2
    speed_names = ("angle", "slide")
    condition_names = ("about y", "about x", "across the slot", "along z")

    def transforms(self, q: Any, k: Any) -> tuple[Transform, ...]:
        c, s = bc.math.cos(q[0]), bc.math.sin(q[0])
        return (Transform(AboutZ(c, s), Vector(c * q[1], s * q[1], 0.0)),)

    def subspace(self, q: Any, k: Any) -> tuple[Motion, ...]:
        return (Motion(Vector(0.0, 0.0, 1.0), Vector(0.0, q[1], 0.0)),
                Motion(Vector.zero(), Vector(1.0, 0.0, 0.0)))

    def drift(self, q: Any, u: Any, k: Any) -> Motion:
        return Motion(Vector.zero(), Vector(-(q[1] * u[0] * u[0]), 2.0 * (u[1] * u[0]), 0.0))

    def closure_rows(self, first: Side, second: Side, k: Any) -> tuple[Row, ...]:
        across = within(second, first, second.y)
        return (*parallel_axes(first, second), Row(across.value, across.second, across.first, across.gamma),
                within(first, second, first.z))

    def loop_coordinates(self, first: Side, second: Side, k: Any) -> tuple[Any, ...]:
        return turn_about_z(first, second), second.x.dot(second.point - first.point)

    def loop_columns(self, first: Side, second: Side, k: Any) -> tuple[Force, ...]:
        return Force(first.z, Vector.zero()), Force(Vector.zero(), second.x)

    def measure(self, turn: Any, shift: Any) -> Any:
        angle = np.arctan2(turn[..., 1, 0], turn[..., 0, 0])
        return np.stack([angle, np.cos(angle) * shift[..., 0] + np.sin(angle) * shift[..., 1]], axis=-1)


def test_a_joint_of_ones_own_passes() -> None:
    bc.check_joint(TurningSlot())
    bc.check_joint(TurningSlot().reversed())


def no_drift(self: Any, q: Any, u: Any, k: Any) -> Motion:
    return Motion.zero()


def half_coriolis(self: Any, q: Any, u: Any, k: Any) -> Motion:
    return Motion(Vector.zero(), Vector(-(q[1] * u[0] * u[0]), u[1] * u[0], 0.0))


def parents_axes(self: Any, q: Any, k: Any) -> tuple[Motion, ...]:
    c, s = bc.math.cos(q[0]), bc.math.sin(q[0])
    return (Motion(Vector(0.0, 0.0, 1.0), Vector(-(s * q[1]), c * q[1], 0.0)), Motion(Vector.zero(), Vector(c, s, 0.0)))


def numpys(self: Any, q: Any, k: Any) -> tuple[Transform, ...]:
    c, s = np.cos(q[0]), np.sin(q[0])
    return (Transform(AboutZ(c, s), Vector(c * q[1], s * q[1], 0.0)),)


def other_slot(self: Any, first: Side, second: Side, k: Any) -> tuple[Row, ...]:
    return (*parallel_axes(first, second), within(first, second, first.y), within(first, second, first.z))


def no_gamma(self: Any, first: Side, second: Side, k: Any) -> tuple[Row, ...]:
    rows = TurningSlot.closure_rows(self, first, second, k)
    return (*rows[:2], rows[2]._replace(gamma=0.0), rows[3])


def scaled(self: Any, first: Side, second: Side, k: Any) -> tuple[Row, ...]:
    rows = TurningSlot.closure_rows(self, first, second, k)
    return (*rows[:3], rows[3]._replace(value=2.0 * rows[3].value))


def twice(self: Any, first: Side, second: Side, k: Any) -> tuple[Row, ...]:
    rows = TurningSlot.closure_rows(self, first, second, k)
    return (*rows[:3], rows[2])


def few(self: Any, first: Side, second: Side, k: Any) -> tuple[Row, ...]:
    return TurningSlot.closure_rows(self, first, second, k)[:3]


def parents_slide(self: Any, first: Side, second: Side, k: Any) -> tuple[Any, ...]:
    return turn_about_z(first, second), first.x.dot(second.point - first.point)


def pushed_along_y(self: Any, first: Side, second: Side, k: Any) -> tuple[Force, ...]:
    return Force(first.z, Vector.zero()), Force(Vector.zero(), second.y)


WRONG: list[tuple[str, Any, str]] = [
    ("drift", no_drift, "drift"), ("drift", half_coriolis, "drift"), ("subspace", parents_axes, "subspace"),
    ("transforms", numpys, "transforms"), ("closure_rows", other_slot, "closure_rows"),
    ("closure_rows", no_gamma, "closure_rows"), ("closure_rows", scaled, "closure_rows"),
    ("closure_rows", twice, "closure_rows"), ("closure_rows", few, "closure_rows"),
    ("loop_coordinates", parents_slide, "loop_coordinates"), ("loop_columns", pushed_along_y, "loop_columns"),
    ("measure", lambda self, turn, shift: TurningSlot.measure(self, turn, 2.0 * shift), "measure"),
    ("measure", lambda self, turn, shift: TurningSlot.measure(self, turn, shift).reshape(2), "measure"),
    ("speed_names", ("angle",), "speed_names"), ("condition_names", ("x", "y"), "condition_names"),
    ("neutral", lambda self: np.array([0.0, 0.1]), "neutral"), ("alignment", lambda self: 2.0 * np.eye(3), "alignment"),
    ("integrate", lambda self, q, du: q + 1.1 * du, "integrate"),
    ("difference", lambda self, a, b: a - b, "difference"), ("rates", lambda self, q, u: [u[1], u[0]], "rates"),
    ("closure_rows", lambda self, a, b, k: TurningSlot.closure_rows(self, a, b, k) if a.x.x < 2 else (),
     "closure_rows"),
    ("reversed", lambda self: self, "reversed"), ("drift", lambda self, q, u, k: 1 / 0, "drift"),
]


@pytest.mark.parametrize(("attribute", "value", "named"), WRONG)
def test_what_is_wrong_is_named(attribute: str, value: Any, named: str) -> None:
    joint = type("Mine", (TurningSlot,), {attribute: value})()
    with pytest.raises(bc.ModelError, match=rf"^check_joint Mine\(\): {named}: "):
        bc.check_joint(joint)


BALLS: list[tuple[str, Any, str]] = [
    ("rates", lambda self, q, u: [2.0 * x for x in bc.Spherical.rates(self, q, u)], "rates"),
    ("integrate", lambda self, q, du: bc.Spherical.integrate(self, q, -du), "integrate"),
    ("normalize", lambda self, q: q, "normalized"),
    ("difference", lambda self, a, b: bc.Spherical.difference(self, b, a), "difference"),
]


@pytest.mark.parametrize(("attribute", "value", "named"), BALLS)
def test_wrong_quaternions_are_named(attribute: str, value: Any, named: str) -> None:
    joint = type("Ball", (bc.Spherical,), {attribute: value})()
    with pytest.raises(bc.ModelError, match=rf"^check_joint Ball\(\): {named}: "):
        bc.check_joint(joint)


def test_joints_about_an_axis_must_heed_their_constants() -> None:
    class Hinge(bc.Revolute):
        def transforms(self, q: Any, k: Any) -> tuple[Transform, ...]:
            return (Transform(AboutZ(bc.math.cos(q[0]), bc.math.sin(q[0])), Vector.zero()),)

    class Nut(bc.Screw):
        def reversed(self) -> Any:
            return bc.Screw(tuple(-a for a in self.axis))  # without its pitch

    with pytest.raises(bc.ModelError, match="transforms: k.0. must turn"):
        bc.check_joint(Hinge("x"))
    with pytest.raises(bc.ModelError, match="reversed"):
        bc.check_joint(Nut("x", 0.2))
    with pytest.raises(bc.ModelError, match="needs a joint"):
        bc.check_joint("Revolute")  # type: ignore[arg-type]
    m = bc.Mechanism("m")
    with pytest.raises(bc.ModelError, match="numbers in place of parameters"):
        bc.check_joint(bc.Screw("x", m.parameter("pitch", 0.1)))
