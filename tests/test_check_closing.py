"""Joint types of one's own that close loops: `compile` refuses what cannot hold a loop closed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.mechanism.constraint_rows import Row, Side, coincident, parallel_axes, perpendicular
from bellcrank.mechanism.joints.joint import Reversed
from bellcrank.spatial import AboutZ, Motion, Transform, Vector
from test_check_joint import TurningSlot


class Pin(bc.Joint):
    """A hinge about z as a user may write it."""

    nq = nu = 1
    speed_names = ("angle",)

    def transforms(self, q: Any, k: Any) -> tuple[Transform, ...]:
        return (Transform(AboutZ(bc.math.cos(q[0]), bc.math.sin(q[0])), Vector.zero()),)

    def subspace(self, q: Any, k: Any) -> tuple[Motion, ...]:
        return (Motion(Vector(0.0, 0.0, 1.0), Vector.zero()),)

    def closure_rows(self, a: Side, b: Side, k: Any) -> tuple[Row, ...]:
        return (*coincident(a, b), *parallel_axes(a, b))

    def measure(self, turn: Any, shift: Any) -> Any:
        return np.arctan2(turn[..., 1, 0], turn[..., 0, 0])[..., None]


def four_bar(joint: bc.Joint, backwards: bool = False) -> bc.Mechanism:
    m = bc.Mechanism("four-bar", gravity=(0, -9.81, 0))
    c, k, r = (m.add_body(n, bc.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
               for n, length in (("c", 0.3), ("k", 1.0), ("r", 0.6)))
    m.add_joint("A", bc.Revolute("z"), m.ground, c)
    m.add_joint("B", bc.Revolute("z"), c, k, parent_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), k, r, parent_pose=bc.Pose((1.0, 0, 0)))
    ends: list[Any] = [(r, bc.Pose((0.6, 0, 0))), (m.ground, bc.Pose((1.0, 0, 0)))]
    (a, at), (b, there) = ends[::-1] if backwards else ends
    m.add_joint("D", joint, a, b, parent_pose=at, child_pose=there)
    return m


def made(**changes: Any) -> bc.Joint:
    return type("Mine", (Pin,), changes)()  # type: ignore[no-any-return]


def leaning(self: Any, a: Side, b: Side, k: Any) -> tuple[Row, ...]:
    """It holds x axes together, too, and forgets one of the others."""
    return (*coincident(a, b), perpendicular(a, b, a.x, b.z), perpendicular(a, b, a.y, b.x))


def apart(self: Any, a: Side, b: Side, k: Any) -> tuple[Row, ...]:
    rows = Pin.closure_rows(self, a, b, k)
    return (rows[0]._replace(value=rows[0].value - 0.1), *rows[1:])


def at_the_ground(self: Any, a: Side, b: Side, k: Any) -> tuple[Row, ...]:
    """It forgets that the parent moves."""
    return tuple(row._replace(first=row.first * 0.0) for row in Pin.closure_rows(self, a, b, k))


WRONG: dict[str, tuple[bc.Joint, str]] = {
    "few": (made(closure_rows=lambda self, a, b, k: parallel_axes(a, b), condition_names=("about y", "about x")),
            r"closure_rows gives 2 constraints where 5 are needed \(6 - nu\)"),
    "none": (made(closure_rows=lambda self, a, b, k: ()), "gives 0 constraints where 5"),
    "many": (made(closure_rows=lambda self, a, b, k: (*Pin.closure_rows(self, a, b, k), perpendicular(a, b, a.x, b.y))),
             "gives 6 constraints where 5"),
    "names": (made(condition_names=("about y", "about x")), "condition_names has 2 entries for 5"),
    "dependent": (made(closure_rows=lambda self, a, b, k: (*coincident(a, b), parallel_axes(a, b)[0],
                                                           parallel_axes(a, b)[0])), "depend on each other"),
    "some of the time": (made(closure_rows=lambda self, a, b, k: Pin.closure_rows(self, a, b, k)[:5 - (a.z.z < 0.0)]),
                         "closure_rows"),
    "its own motion": (made(closure_rows=leaning), "constraint number 4 (is off by|forbids)"),
    "a pose": (made(closure_rows=apart), "constraint number 0 is off by -0.1 in a pose"),
    "whole motions": (made(closure_rows=at_the_ground), "constraint number 0 forbids motions of both bodies together"),
    "subspace": (made(subspace=lambda self, q, k: (Motion(Vector(0.0, 1.0, 0.0), Vector.zero()),)),
                 "forbids motions of `subspace`"),
    "no rows": (made(closure_rows=lambda self, a, b, k: tuple(r.value for r in Pin.closure_rows(self, a, b, k))),
                "(something else than Rows|closure_rows raises AttributeError)"),
    "an error": (made(closure_rows=lambda self, a, b, k: 1 / 0), "closure_rows raises ZeroDivisionError"),
    "an if": (made(closure_rows=lambda self, a, b, k: Pin.closure_rows(self, a, b, k) if a.x.x < 2 else ()),
              "closure_rows raises TypeError"),
}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_hold_a_loop_is_refused(name: str, backwards: bool) -> None:
    joint, text = WRONG[name]
    for one in (joint, Reversed(joint)):
        with pytest.raises(bc.ModelError, match=f"^joint 'D', a Mine, closes a loop, but .*{text}"):
            bc.compile(four_bar(one, backwards), cut=["D"])


def test_it_may_carry_a_body_all_the_same() -> None:
    """Where it closes no loop nobody asks for constraints."""
    joint, _ = WRONG["few"]
    assert bc.compile(four_bar(joint), cut=["A"]).dof == 1


@pytest.mark.parametrize("joint", [Pin(), Reversed(Pin()), type("Hinge", (bc.Revolute,), {})("z")])
def test_what_can_is_taken(joint: bc.Joint) -> None:
    expected = bc.compile(four_bar(bc.Revolute("z")), cut=["D"])
    system = bc.compile(four_bar(joint), cut=["D"])
    state = system.assemble(q={"A": 0.5}, u={"A": 1.0})
    assert system.dof == 1
    sides = np.array([1.0, 1.0, 1.0, -1.0 if isinstance(joint, Reversed) else 1.0])  # D turns the other way
    wanted = expected.forward_dynamics(sides * state.q, sides * state.u)
    assert system.forward_dynamics(state.q, state.u) == pytest.approx(sides * wanted)


def test_types_of_one_s_own_with_more_freedom() -> None:
    m = bc.Mechanism("quick return")
    crank, rocker = (m.add_body(n, bc.Inertia.rod(1.0, (0, 0, 0), (x, 0, 0))) for n, x in (("c", 0.2), ("r", 1.0)))
    m.add_joint("A", bc.Revolute("z"), m.ground, crank)
    m.add_joint("B", bc.Revolute("z"), m.ground, rocker, parent_pose=bc.Pose((-0.5, 0, 0)))
    m.add_joint("pin", TurningSlot(), crank, rocker, parent_pose=bc.Pose((0.2, 0, 0)))
    assert bc.compile(m, cut=["pin"]).dof == 1


def test_a_joint_need_not_go_everywhere() -> None:
    """Its range may be smaller than what is tried; rows that are dependent in one position are no fault."""
    class Short(bc.Joint):
        """A pin that climbs a ball of 0.05 m: z = 0.05 - sqrt(0.05^2 - x^2)."""

        nq = nu = 1
        speed_names = ("slide",)

        def transforms(self, q: Any, k: Any) -> tuple[Transform, ...]:
            return (Transform(AboutZ(1.0, 0.0), Vector(q[0], 0.0, 0.05 - bc.math.sqrt(0.0025 - q[0] * q[0]))),)

        def subspace(self, q: Any, k: Any) -> tuple[Motion, ...]:
            return (Motion(Vector.zero(), Vector(1.0, 0.0, q[0] / bc.math.sqrt(0.0025 - q[0] * q[0]))),)

        def closure_rows(self, a: Side, b: Side, k: Any) -> tuple[Row, ...]:
            return ()

        def measure(self, turn: Any, shift: Any) -> Any:
            return shift[..., :1]

    with pytest.raises(bc.ModelError, match="gives 0 constraints where 5"):  # from where it can be
        bc.compile(four_bar(Short()), cut=["D"])
