"""Steps of any length do not pass over a contact: nothing in the error of a step says that two shapes have met and
parted within it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bellcrank as bc

MATERIAL = {"stiffness": 1e5, "dissipation": 0.5}


def falls_on(under: object, over: object, depth: float, method: str = "auto", backend: str = "llvm") -> bc.System:
    """A free body over a shape of the ground whose top is at z = 0."""
    m = bc.Mechanism("drop")
    body = m.add_body("body", bc.Inertia(1.0, (0, 0, 0), (0.004, 0.004, 0.004)))
    m.add_joint("free", bc.Free(), m.ground, body)
    m.add_shape(m.ground, under, role="collision", pose=bc.Pose((0, 0, -depth)))
    m.add_shape(body, over, role="collision")
    m.add_contact("c", m.ground, body, **MATERIAL)
    return bc.compile(m, method=method, backend=backend)


def lowest(system: bc.System, stepper: str, height: float, **speeds: float) -> float:
    q, u = system.neutral(), np.zeros(system.nu)
    q[system.coordinate_names.index("free.z")] = height
    for name, value in speeds.items():
        u[system.speed_names.index(f"free.{name}")] = value
    run = system.simulate((q, u), 1.0, stepper=stepper, rtol=1e-6, atol=1e-8, output=0.05)
    assert run.attrs["status"] == "finished"
    return float(run.q.sel(coordinate="free.z").min())


@pytest.mark.parametrize("stepper", ["dopri5", "dop853", "radau5", "scipy/DOP853"])
def test_a_ball_lands_on_a_table(stepper: str) -> None:
    table = falls_on(bc.Box((2.0, 2.0, 0.1)), bc.Sphere(0.05), 0.05)
    assert lowest(table, stepper, 0.5) > 0.03
    assert lowest(table, stepper, 3.0, vz=-20.0) > 0.0


@pytest.mark.parametrize("method", ["momenta", "complement"])
def test_every_method_sees_it(method: str) -> None:
    assert lowest(falls_on(bc.Box((2.0, 2.0, 0.1)), bc.Sphere(0.05), 0.05, method), "dop853", 3.0, vz=-20.0) > 0.0


def test_thin_plates_and_fast_corners() -> None:
    assert lowest(falls_on(bc.Box((2.0, 2.0, 4e-3)), bc.Capsule(0.02, 0.1), 2e-3), "dop853", 0.5) > 0.0
    plank = falls_on(bc.Box((0.1, 0.1, 0.1)), bc.Box((0.6, 0.06, 0.06)), 0.05)
    assert lowest(plank, "dop853", 0.5, wz=30.0) > -0.02


def arm(shape: object, place: bc.Pose, height: Callable[[], object]) -> bc.System:
    """A ball on an arm of 1 m that turns about y, no gravity; a post stands in its way."""
    m = bc.Mechanism("arm", gravity=(0, 0, 0))
    m.add_joint("hinge", bc.Revolute("y"), m.ground, m.add_body("arm", bc.Inertia(1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))))
    m.add_shape("arm", shape, role="collision", pose=bc.Pose((1.0, 0.0, 0.0)))
    m.add_shape(m.ground, height(), role="collision", pose=place)
    m.add_contact("c", m.ground, "arm", **MATERIAL)
    return bc.compile(m)


def test_an_arm_meets_a_post() -> None:
    """A turn at constant speed needs no short steps at all, and yet it ends at the post."""
    post = arm(bc.Sphere(0.01), bc.Pose((0.0, 0.0, -1.0)), lambda: bc.Cylinder(0.01, 0.5))
    run = post.simulate(([0.0], [1.0]), 5.0, stepper="dop853", rtol=1e-6, atol=1e-8)
    assert float(run.q.max()) < 0.5 * np.pi and float(run.u[-1, 0]) < 0.0


def test_a_ball_meets_a_ridge() -> None:
    """40 m/s over ground that is flat but for one ridge: in its way, or below it."""
    x = np.linspace(-2.0, 38.0, 201)
    ridge = bc.HeightField(x, [-1.0, 0.0, 1.0], np.where(np.abs(x - 4.0) < 0.05, 0.3, 0.0)[:, None] * np.ones(3))
    system = falls_on(ridge, bc.Sphere(0.05), 0.0)
    for height, met in ((0.2, True), (0.5, False)):
        q, u = system.neutral(), np.zeros(6)
        q[6], u[3] = height, 40.0
        run = system.simulate((q, u), 0.15, stepper="dop853", rtol=1e-6, atol=1e-8)
        assert (float(run.u[-1, 3]) < 39.0) is met


def test_states_of_a_batch() -> None:
    table = falls_on(bc.Box((2.0, 2.0, 0.1)), bc.Box((0.1, 0.1, 0.1)), 0.05)
    q = np.tile(table.neutral(), (3, 1))
    q[:, 6] = 0.2, 0.5, 1.0
    run = table.simulate((q, np.zeros((3, 6))), 0.6, stepper="dop853", rtol=1e-6, atol=1e-8)
    assert float(run.q.sel(coordinate="free.z").min()) > 0.03


def test_a_wheel_that_spins_needs_no_short_steps() -> None:
    """Beside a block, about its own axis; about another one, or with a box for a wheel, its rim comes round."""
    steps = []
    for shape, turn in ((bc.Cylinder(0.2, 0.05), np.eye(3)), (bc.Cylinder(0.2, 0.05), np.eye(3)[[1, 2, 0]]),
                        (bc.Box((0.2, 0.2, 0.05)), np.eye(3))):
        m = bc.Mechanism("wheel", gravity=(0, 0, 0))
        m.add_joint("hinge", bc.Revolute("z"), m.ground, m.add_body("wheel", bc.Inertia(1.0, (0, 0, 0), (1, 1, 1))))
        m.add_shape("wheel", shape, role="collision", pose=bc.Pose((0, 0, 0), turn))
        m.add_shape(m.ground, bc.Box((0.1, 0.1, 0.1)), role="collision", pose=bc.Pose((0.3, 0.0, 0.0)))
        m.add_contact("c", m.ground, "wheel", **MATERIAL)
        run = bc.compile(m).simulate(([0.0], [50.0]), 1.0, stepper="dopri5", rtol=1e-6, atol=1e-8)
        steps.append(run.attrs["steps"])
    assert steps[0] < 20 and min(steps[1:]) > 300
