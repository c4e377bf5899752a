"""Steps with rigid contacts of machines with stiff forces: friction, brakes, motors, cylinders, laws, springs between
bodies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bellcrank as bc

G, HEIGHT = 9.81, 3.0


def arm(add: Callable[[bc.Mechanism], object], ball: bool) -> bc.System:
    """A light arm on a hinge, and far from it, if wanted, a ball that lies on the floor."""
    m = bc.Mechanism("arm", gravity=(0, 0, -G))
    m.add_body("arm", bc.Inertia(0.1, (0.2, 0, 0), (1e-3, 1e-3, 1e-3)))
    m.add_joint("hinge", bc.Revolute("y"), m.ground, "arm", bc.Pose((0, 0, HEIGHT)))
    if ball:
        m.add_body("ball", bc.Inertia.sphere(0.5, 0.05))
        m.add_joint("slide", bc.Prismatic("z"), m.ground, "ball", bc.Pose((0, 0, 0.05)))
        m.add_shape("ball", bc.Sphere(0.05), role="collision")
        m.add_shape(m.ground, bc.Plane(), role="collision")
        m.add_contact("floor", m.ground, "ball")
    add(m)
    return bc.compile(m)


ENDS = ((0.4, 0, HEIGHT + 0.7), (0.4, 0, 0))
FORCES: dict[str, Callable[[bc.Mechanism], object]] = {
    "friction": lambda m: m.add_friction("it", "hinge", coulomb=2.0, speed=1e-3),
    "brake": lambda m: m.add_brake("it", "hinge", capacity=2.0),
    "brake by a law": lambda m: m.add_brake("it", "hinge", capacity=lambda at: 2.0 + at.t),
    "motor": lambda m: m.add_dc_motor("it", "hinge", voltage=12.0, resistance=0.5, inductance=1e-4, constant=0.02,
                                      gear=20.0),
    "cylinder": lambda m: m.add_hydraulic_cylinder(
        "it", m.ground, "arm", *ENDS, head_area=5e-4, rod_area=3e-4, closed=0.2, stroke=0.8, friction=100.0,
        initial=(2e6, 3.2e6)),
    "damper between points": lambda m: m.add_spring("it", m.ground, "arm", *ENDS, stiffness=10.0, damping=3000.0,
                                                    length=0.5),
    "law": lambda m: m.add_joint_force("it", "hinge", lambda q, u: -1e4 * (q + 0.5) - 20.0 * u),
    "limited servo": lambda m: m.add_servo("it", "hinge", target=1.0, stiffness=1e4, damping=300.0, limit=1.0),
}


@pytest.mark.parametrize("force", FORCES)
def test_stiff_forces_move_a_machine_as_they_do_without_contacts(force: str) -> None:
    def moved(ball: bool, **how: object) -> np.ndarray:
        system = arm(FORCES[force], ball)
        run = system.simulate(system.assemble(q={"hinge": -0.6}, u={"hinge": 1.0}), 0.1, output=0.02, **how)
        return np.asarray(run.q.sel(coordinate="hinge.angle").values)

    right = moved(False, stepper="radau5")
    assert np.abs(moved(True, stepper="moreau", step=2e-3) - right).max() < 2e-3  # a step times the speed


def leg(add: Callable[[bc.Mechanism], object], backend: str = "llvm") -> bc.System:
    """A leg that stands on its foot and can go up and down."""
    m = bc.Mechanism("leg", gravity=(0, 0, -G))
    m.add_joint("height", bc.Prismatic("z"), m.ground, m.add_body("trunk", bc.Inertia.box(4.0, (0.2, 0.2, 0.1))))
    for name, mass, last, start in (("hip", 0.6, "trunk", 0.0), ("knee", 0.15, "hip leg", -0.2)):
        m.add_body(f"{name} leg", bc.Inertia.rod(mass, (0, 0, 0), (0, 0, -0.2)))
        m.add_joint(name, bc.Revolute("y"), last, f"{name} leg", bc.Pose((0, 0, start)))
    m.add_shape("knee leg", bc.Sphere(0.02), bc.Pose((0, 0, -0.2)), role="collision")
    m.add_shape(m.ground, bc.Plane(), role="collision")
    m.add_contact("foot", m.ground, "knee leg", friction=0.8)
    add(m)
    return bc.compile(m, backend=backend)


def with_friction(m: bc.Mechanism) -> None:
    for joint, angle in (("hip", 0.6), ("knee", -1.2)):
        m.add_servo(f"{joint} servo", joint, target=angle, stiffness=60.0, damping=1.5)
        m.add_friction(f"{joint} friction", joint, coulomb=1.0)


def with_brake(m: bc.Mechanism) -> None:
    m.add_brake("brake", "hip", capacity=40.0)
    m.add_dc_motor("motor", "knee", voltage=lambda at: -24.0 * at.q("knee") - 26.0, resistance=0.5, inductance=1e-4,
                   constant=0.03, gear=30.0, rotor_inertia=1e-5)


def standing(system: bc.System) -> bc.State:
    return system.assemble(q={"height": 0.37, "hip": 0.6, "knee": -1.2})


def test_a_leg_with_dry_friction_comes_to_rest_on_the_ground() -> None:
    """But for the creep that `add_friction` has, some times its speed, 1 mrad/s; speeds do not change their signs."""
    system = leg(with_friction)
    run = system.simulate(standing(system), 1.0, stepper="moreau", step=2e-3, output=2e-3)
    late = run.u.values[-100:]
    assert np.abs(late).max() < 3e-3
    assert (np.sign(late[1:]) == np.sign(late[:-1])).all()
    assert run.attrs["contact_residual"] < 1e-9


def test_a_leg_with_a_brake_and_a_motor_stands_still() -> None:
    system = leg(with_brake)
    run = system.simulate(standing(system), 2.0, stepper="moreau", step=2e-3, output=0.1)
    assert np.abs(run.u.values[-1, :3]).max() < 1e-9
    assert abs(float(run.element("foot").force[-1]) - 4.75 * G) < 1e-6


def test_stiff_steps_in_lanes_are_those_of_one() -> None:
    system = leg(with_friction)
    start = standing(system)
    q, u = np.tile(start.q, (5, 1)), np.tile(start.u, (5, 1))
    q[:, 0] += 0.001 * np.arange(5)
    how = {"stepper": "moreau", "step": 2e-3, "output": 0.02}
    together = system.simulate((q, u), 0.2, **how)
    for i in (0, 4):
        alone = system.simulate((q[i], u[i]), 0.2, **how)
        assert np.abs(together.q.values[:, i] - alone.q.values).max() < 1e-8


def test_stiff_steps_of_machines_in_python_are_the_compiled_ones() -> None:
    runs = []
    for backend in ("llvm", "numpy"):
        system = leg(with_friction, backend)
        start = standing(system)
        start = start.replace(np.array([0.352, *start.q[1:]]))  # the foot is at the ground
        runs.append(system.simulate(start, 0.02, stepper="moreau", step=2e-3, output=2e-3))
    assert np.abs(runs[0].q.values - runs[1].q.values).max() < 1e-9
