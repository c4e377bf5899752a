"""Machines as engineers have them: what all elements put in, summed in a state, is the change of energy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bellcrank as bc


def engine() -> tuple[bc.Mechanism, dict, dict]:
    """A slider-crank with a measured pressure over the crank's angle, a load and friction."""
    m = bc.load("slider_crank")
    crank, piston = m.joints[0].name, m.bodies[-1].name
    angle = np.linspace(0.0, 2.0 * np.pi, 25)
    gas = bc.Table(angle, 200.0 + 800.0 * np.exp(-3.0 * (1.0 - np.cos(angle))), kind="cubic", extrapolate="periodic")
    m.add_wrench("gas", piston, law=lambda at: (-gas(at.q(crank)), 0.0, 0.0))
    m.add_joint_force("load", crank, lambda at: -0.05 * at.u(crank) * abs(at.u(crank)))
    return m, {crank: 0.3}, {crank: 30.0}


def quarter_car() -> tuple[bc.Mechanism, dict, dict]:
    """A wheel on a tyre under a quarter of a car, with a tabled damper, over a bump."""
    m = bc.Mechanism("quarter car")
    carriage, body, hub, wheel = (m.add_body(name, bc.Inertia(mass, inertia=(i, i, i))) for name, mass, i in (
        ("carriage", 1.0, 1.0), ("body", 300.0, 10.0), ("hub", 20.0, 1.0), ("wheel", 15.0, 0.8)))
    m.add_joint("ahead", bc.Prismatic("x"), m.ground, carriage)
    m.add_joint("bounce", bc.Prismatic("z"), carriage, body)
    m.add_joint("hop", bc.Prismatic("z"), carriage, hub)
    m.add_joint("roll", bc.Revolute("y"), hub, wheel)
    damper = bc.Table([-2.0, -0.3, 0.0, 0.2, 2.0], [-3000.0, -900.0, 0.0, 350.0, 1500.0], kind="akima",
                      extrapolate="linear", name="damper")
    m.add_force_between("damper", "hub", "body", (0, 0, 0), (0, 0, 0), lambda length, rate: damper(rate))
    m.add_spring("spring", "hub", "body", (0, 0, 0), (0, 0, 0), stiffness=2e4, length=0.65)
    x = np.linspace(0.0, 4.0, 41)
    bump = np.where(abs(x - 2.0) < 0.5, 0.05 * np.cos(np.pi * (x - 2.0)) ** 2, 0.0)
    road = bc.Table((x, [-3.0, -1.0, 1.0, 3.0]), np.stack([bump] * 4, axis=1), kind="cubic", extrapolate="hold",
                    name="road")
    m.add_tyre("tyre", "wheel", radius=0.3, stiffness=2e5, damping=200.0, model="magic", height=road)
    m.add_rolling_resistance("rolling", "roll", coefficient=0.015, radius=0.3,
                             load=lambda at: at.element("tyre").vector.z)
    return m, {"ahead": 1.2, "hop": 0.2838, "bounce": 0.7866}, {"ahead": 8.0, "roll": 8.0 / 0.3}


def excavator() -> tuple[bc.Mechanism, dict, dict]:
    """Boom and arm on two cylinders with valves."""
    m = bc.Mechanism("excavator")
    boom = m.add_body("boom", bc.Inertia.rod(300.0, (0, 0, 0), (3.0, 0, 0)))
    arm = m.add_body("arm", bc.Inertia.rod(150.0, (0, 0, 0), (2.0, 0, 0)))
    m.add_joint("boom", bc.Revolute("y"), m.ground, boom)
    m.add_joint("arm", bc.Revolute("y"), boom, arm, parent_pose=bc.Pose((3.0, 0, 0)))
    for name, first, second, one, two, opening in (
            ("lift", m.ground, "boom", (0.4, 0, -0.6), (1.2, 0, 0), 0.4), ("stick", "boom", "arm", (1.5, 0, 0.5),
                                                                          (-0.3, 0, 0.4), -0.3)):
        m.add_hydraulic_cylinder(name, first, second, one, two, head_area=6e-3, rod_area=3e-3, closed=0.5, stroke=1.5,
                                 friction=2e4, gain=1e-7, initial=(2e6, 2e6), opening=lambda at, x=opening: x * at.t)
    return m, {"boom": -0.3, "arm": 0.6}, {}


@pytest.mark.parametrize(("make", "duration", "step"), [(engine, 0.3, 5e-4), (quarter_car, 0.25, 1e-4),
                                                        (excavator, 0.1, 5e-5)])
def test_powers_of_all_elements_are_the_change_of_energy(make: Callable, duration: float, step: float) -> None:
    m, q, u = make()
    names = [e.name for e in m.force_elements]
    m.add_state("work", lambda at: sum(at.element(name).power for name in names), units="J")
    system = bc.compile(m)
    result = system.simulate(system.assemble(q=q, u=u), duration, step=step, output=duration / 20, stepper="rk8")
    assert result.attrs["status"] == "finished"
    bare = result["kinetic_energy"] + result["potential_energy"]
    work = result.u.sel(speed="work.value")
    size = float(np.abs(bare).max())
    assert float(np.abs(bare - bare[0] - work).max()) < 1e-8 * size and float(np.abs(work).max()) > 1e-3 * size


#: one element each on a slider crank, in a state in which it acts (limits are reached), and forces that are given
ACTING: dict[str, tuple[Callable[[bc.Mechanism], object], dict[str, float] | None]] = {
    "servo at its limit": (lambda m: m.add_servo("e", "crank", target=9.0, stiffness=90.0, limit=7.0), None),
    "servo within it": (lambda m: m.add_servo("e", "slide", target=2.0, stiffness=9.0, damping=3.0, limit=70.0), None),
    "limit": (lambda m: m.add_limit("e", "crank", upper=0.5, stiffness=300.0, damping=9.0), None),
    "limit of a sum": (lambda m: m.add_limit("e", {"crank": 1.0, "big_end": 0.5}, lower=2.0, stiffness=300.0), None),
    "friction": (lambda m: m.add_friction("e", "slide", coulomb=3.0, viscous=1.0), None),
    "actuator at its limit": (lambda m: m.add_actuator("e", "crank", 3.0), {"crank": 8.0}),
    "actuator on its line": (lambda m: m.add_actuator("e", "slide", 30.0, no_load_speed=9.0), {"slide": 80.0}),
    "armature": (lambda m: (m.add_armature("r", "big_end", 0.3), m.add_servo("e", "crank", stiffness=5.0)), None),
    "bushing": (lambda m: m.add_bushing("e", "rod", m.ground, stiffness=(9, 8, 7), damping=(1, 2, 3)), None),
    "drag": (lambda m: m.add_drag("e", "rod", coefficient=2.0, wind=(3.0, 0.0, 1.0)), None),
    "gas spring": (lambda m: m.add_gas_spring("e", m.ground, "rod", (0.0, 0.0, 0.9), (0.1, 0.0, 0.0), force=300.0,
                                              length=1.0, reach=1.4), None),
    "wrench by a law": (lambda m: m.add_wrench("e", "rod", law=lambda at: (at.u("crank"), 2.0, 0.0)), None),
}


@pytest.mark.parametrize("kind", ACTING)
def test_what_acted_is_what_is_reported(kind: str) -> None:
    """The power that elements report is the rate of kinetic and potential energy, to rounding."""
    add, tau = ACTING[kind]
    m = bc.load("slider_crank")
    add(m)
    system = bc.compile(m, backend="numpy")
    state = system.assemble(q={"crank": 0.9}, u={"crank": 3.0})
    udot = system.forward_dynamics(state.q, state.u, tau)
    elements = system.element_forces(state, tau=tau)
    power = sum(float(e.power) for e in elements.values())
    slope = system.derivatives("kinetic_energy", state, along={"q": state.u, "u": udot}, closed=False)["along"]
    height = system.derivatives("potential_energy", state.q, along={"q": state.u}, closed=False)["along"]
    assert abs(float(slope) + float(height) - power) < 1e-8 * abs(power) and abs(elements["e"].power) > 1e-3


def test_a_rigid_stop_reports_what_it_took() -> None:
    system = bc.compile(bc.load("slider_crank"))
    run = system.simulate(system.assemble(q={"crank": 0.9}, u={"crank": 3.0}), 0.1, stepper="rk8", output=0.05,
                          events=bc.joint_limit("crank", upper=1.1, restitution=0.4))
    lost, energy = float(run.event_energy_lost.sum()), run["energy"].values
    assert lost > 1e-3 and abs(energy[0] - energy[-1] - lost) < 1e-8 * lost
