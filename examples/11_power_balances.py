"""Machines as engineers have them, and where their power goes: what all elements put in is the change of energy.

An engine by its p-V diagram, a quarter car with a tabled damper and a tyre over a bump, an excavator on three hydraulic
cylinders whose pressures are states, a clutch that engages. A state adds up the powers of all elements by name.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bellcrank as bc


class Case(NamedTuple):
    """A machine, where it begins, for how long [s] and in which steps it runs."""

    machine: bc.Mechanism
    q: dict[str, float]
    u: dict[str, float]
    duration: float
    step: float


def engine() -> Case:
    """A cylinder of a two-stroke engine: its pressure by tables of the volume, for compression and expansion, and how
    far one has become the other by a table of the crank angle."""
    m = bc.load("slider_crank")
    area, gap, top, turn = 5e-3, 0.012, 0.03097078, np.pi / 3  # [m^2], [m]; "slide" and "crank" at the top
    volume = np.linspace(gap, gap + 0.1, 30) * area
    ratio = volume[-1] / volume
    below = bc.Table(volume, 1.0e5 * ratio**1.35, kind="cubic", extrapolate="linear", name="compression")
    above = bc.Table(volume, 1.6e5 * ratio**1.45, kind="cubic", extrapolate="linear", name="expansion")
    angle = np.linspace(0.0, 2.0 * np.pi, 49)
    share = 1.0 / (1.0 + np.exp(-9.0 * np.sin(angle - 0.2)))
    burnt = bc.Table(angle, np.append(share[:-1], share[0]), kind="cubic", extrapolate="periodic", name="burnt")

    def pressure(at: Any) -> Any:
        space = area * (gap + top - at.q("slide"))
        return below(space) + burnt(at.q("crank") + turn) * (above(space) - below(space)) - 1e5

    m.add_armature("flywheel", "crank", 0.1)
    m.add_wrench("gas", "piston", at=m.body("piston").inertia.com, law=lambda at: (-(area * pressure(at)), 0.0, 0.0))
    m.add_joint_force("load", "crank", lambda at: -0.002 * at.u("crank") * abs(at.u("crank")))
    m.add_friction("rings", "slide", coulomb=20.0, speed=0.5)
    m.add_output("pressure", pressure, units="Pa")
    return Case(m, {"crank": -0.3}, {"crank": 150.0}, 0.2, 1e-4)


def quarter_car() -> Case:
    """A wheel on a tyre under a quarter of a car, with a tabled damper, over a bump."""
    m = bc.Mechanism("quarter car")
    for name, mass, i in (("carriage", 1.0, 1.0), ("body", 300.0, 10.0), ("hub", 20.0, 1.0), ("wheel", 15.0, 0.8)):
        m.add_body(name, bc.Inertia(mass, inertia=(i, i, i)))
    m.add_joint("ahead", bc.Prismatic("x"), m.ground, "carriage")
    m.add_joint("bounce", bc.Prismatic("z"), "carriage", "body")
    m.add_joint("hop", bc.Prismatic("z"), "carriage", "hub")
    m.add_joint("roll", bc.Revolute("y"), "hub", "wheel")
    damper = bc.Table([-2.0, -0.3, 0.0, 0.2, 2.0], [-3000.0, -900.0, 0.0, 350.0, 1500.0], kind="akima",
                      extrapolate="linear", name="damper")
    m.add_force_between("damper", "hub", "body", (0, 0, 0), (0, 0, 0), lambda length, rate: damper(rate))
    m.add_spring("spring", "hub", "body", (0, 0, 0), (0, 0, 0), stiffness=2e4, length=0.65)
    x = np.linspace(0.0, 4.0, 41)
    bump = np.where(abs(x - 2.0) < 0.5, 0.05 * np.cos(np.pi * (x - 2.0)) ** 2, 0.0)
    road = bc.Table((x, [-3.0, -1.0, 1.0, 3.0]), np.stack([bump] * 4, axis=1), kind="cubic", extrapolate="hold",
                    name="road")
    m.add_tyre("tyre", "wheel", radius=0.3, stiffness=2e5, damping=200.0, model="magic", relaxation=0.3, height=road)
    m.add_rolling_resistance("rolling", "roll", coefficient=0.015, radius=0.3,
                             load=lambda at: at.element("tyre").vector.z)
    return Case(m, {"ahead": 1.2, "hop": 0.2838, "bounce": 0.7866}, {"ahead": 8.0, "roll": 8.0 / 0.3}, 0.25, 1e-4)


def excavator() -> Case:
    """The excavator of the gallery, four loops, on its cylinders: valves open and close, the slew drive turns."""
    gallery = runpy.run_path(str(Path(__file__).parent / "gallery" / "excavator.py"))
    m = gallery["machine"]()
    for name, foot, head, pressures, opening in (
            ("lift", (0.9, 0, 1.0), gallery["KNEE"], (1.1e7, 1e6), 0.5),
            ("crowd", (2.9, 0, 3.9), (4.55, 0, 3.85), (1e6, 3e6), -0.4),
            ("curl", (5.3, 0, 3.3), gallery["CRANK"], (1e6, 1e6), 0.6)):
        length = float(np.linalg.norm(np.subtract(head, foot)))
        m.add_hydraulic_cylinder(f"{name} oil", f"{name} barrel", f"{name} piston", foot, head, head_area=0.02,
                                 rod_area=0.01, closed=length - 0.5, stroke=1.0, gain=4e-7, friction=5e4,
                                 dead_volume=1e-3, initial=pressures,
                                 opening=lambda at, x=opening: x * bc.math.sin(3.0 * at.t))
    m.add_servo("slewing", "slew", target=lambda t: 0.3 * t * t, target_rate=lambda t: 0.6 * t, stiffness=3e6,
                damping=6e5)
    return Case(m, {}, {}, 0.5, 5e-4)


def clutch() -> Case:
    """A motor turns one disc; the clutch takes the other along, slips, and sticks."""
    m = bc.Mechanism("clutch", gravity=(0, 0, 0))
    for name, inertia in (("input", 0.3), ("output", 0.1)):
        m.add_joint(name, bc.Revolute("z"), m.ground, m.add_body(name, bc.Inertia(1.0, inertia=(inertia,) * 3)))
    m.add_clutch("clutch", "input", "output", reach=0.02, damping=0.02,
                 capacity=lambda at: bc.math.minimum(60.0 * at.t, 12.0))
    m.add_dc_motor("motor", "input", voltage=48.0, resistance=0.3, inductance=5e-3, constant=0.5, gear=2.0)
    m.add_brake("load", "output", capacity=3.0, reach=0.02, damping=0.02)
    return Case(m, {}, {"input": 40.0}, 1.0, 2.5e-4)


def run(case: Case) -> tuple[bc.Result, float]:
    """The motion, and by how much the change of energy differs from the work of all elements, as a share."""
    names = [element.name for element in case.machine.force_elements]
    case.machine.add_state("work", lambda at: sum(at.element(name).power for name in names), units="J")
    system = bc.compile(case.machine)
    start = system.assemble(q=case.q, u=case.u)
    result = system.simulate(start, case.duration, step=case.step, output=case.duration / 20, stepper="rk8")
    energy = result["kinetic_energy"] + result["potential_energy"]
    gap = np.abs(energy - energy[0] - result.u.sel(speed="work.value")).max()
    return result, float(gap / np.abs(energy).max())


CASES: tuple[Callable[[], Case], ...] = (engine, quarter_car, excavator, clutch)


def main() -> None:
    for make in CASES:
        result, gap = run(make())
        work = {name: float(result.element(name).power.integrate("time")) for name in (
            element.name for element in result.system.model.mechanism.force_elements)}
        print(f"{make.__name__}: balance to {gap:.1e};", ", ".join(f"{k} {v:.0f} J" for k, v in work.items()))


if __name__ == "__main__":
    main()
