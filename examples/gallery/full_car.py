"""Full car: double wishbones at four corners, tabled dampers and tyres, over a bump and round a bend.

Eight loops. The rack steers by tie rods, anti-roll bars join the arms of each axle, a driver law keeps the speed. All
that acts is an element with a name: their powers add up to the change of energy.
"""

from __future__ import annotations

import numpy as np

import bellcrank as bc

DAMPER = bc.Table([-1.5, -0.4, -0.1, 0.0, 0.1, 0.4, 1.5], [-1900.0, -750.0, -260.0, 0.0, 500.0, 1400.0, 3400.0],
                  kind="monotone", extrapolate="linear", name="damper")
X = np.linspace(13.0, 17.0, 41)
ROAD = bc.HeightField(X, [-2.0, -0.6, 0.6, 2.0], np.outer(np.where(abs(X - 15) < 0.8, 0.05 * np.cos(
    np.pi * (X - 15) / 1.6) ** 2, 0), [0, 0, 1, 1]), kind="cubic")
AXLES, SIDES = {"front": (1.2, 15.0, 0.559), "rear": (-1.4, 20.0, 0.5385)}, ("left", "right")  # x, slope, spring


def corner(m: bc.Mechanism, name: str, x: float, side: float, slope: float, rack: str) -> None:
    low, high = [(x, side * 0.35, 0.2), (x, side * 0.72, 0.19)], [(x, side * 0.42, 0.45), (x, side * 0.68, 0.48)]
    m.add_body(f"{name} lower", bc.Inertia.rod(5.0, *low))
    m.add_body(f"{name} upper", bc.Inertia.rod(3.0, *high))
    m.add_body(f"{name} knuckle", bc.Inertia.rod(12.0, low[1], high[1]))
    m.add_body(f"{name} wheel", bc.Inertia.cylinder(18.0, 0.3, 0.2, "y"))
    m.add_joint(f"{name} lower", bc.Revolute("x"), "chassis", f"{name} lower", *2 * [bc.Pose(low[0])])
    m.add_joint(f"{name} ball", bc.Spherical(), f"{name} lower", f"{name} knuckle", *2 * [bc.Pose(low[1])])
    m.add_joint(f"{name} upper", bc.Revolute("x"), "chassis", f"{name} upper", *2 * [bc.Pose(high[0])])
    m.add_joint(f"{name} top", bc.Spherical(), f"{name} upper", f"{name} knuckle", *2 * [bc.Pose(high[1])])
    m.add_joint(f"{name} wheel", bc.Revolute("y"), f"{name} knuckle", f"{name} wheel", bc.Pose((x, side * 0.76, 0.3)))
    ends = [bc.Pose((x - 0.14, *p[1:])) for p in low]
    m.add_constraint(f"{name} rod", bc.Distance(float(np.hypot(0.37, 0.01))), rack, f"{name} knuckle", *ends)
    m.add_tyre(f"{name} tyre", f"{name} wheel", radius=0.31, stiffness=2.2e5, damping=150.0, slope=slope, mu=0.95,
               half_length=0.06, rolling=0.01, relaxation=0.3, height=ROAD)
    m.add_shape(f"{name} wheel", bc.Cylinder(0.31, 0.2), bc.Pose.about("x", np.pi / 2), color="#333333")


def machine() -> bc.Mechanism:
    """With the parameters "steer", where the rack shall be [m], and "speed", what the driver wants [m/s]."""
    m = bc.Mechanism("full car")
    steer, _ = m.parameter("steer", 0.0), m.parameter("speed", 12.0)
    m.add_body("chassis", bc.Inertia(1100.0, (0.0, 0.0, 0.55), (350.0, 1400.0, 1500.0)))
    m.add_joint("car", bc.Free(), m.ground, "chassis")
    m.add_shape("chassis", bc.Box((3.4, 0.66, 0.25)), bc.Pose((-0.1, 0, 0.5)), color="#3366aa")
    m.add_shape(m.ground, ROAD, color="#bbbbaa")
    m.add_body("rack", bc.Inertia.cylinder(3.0, 0.02, 0.7, "y", (1.06, 0, 0.2)))
    m.add_joint("rack", bc.Prismatic("y"), "chassis", "rack")
    m.add_servo("steering", "rack", target=steer, stiffness=2e5, damping=1e3)
    for axle, (x, slope, free) in AXLES.items():
        for name, side in ((f"{axle} left", 1.0), (f"{axle} right", -1.0)):
            corner(m, name, x, side, slope, "rack" if axle == "front" else "chassis")
            points = "chassis", f"{name} lower", (x, side * 0.52, 0.6), (x, side * 0.6, 0.2)
            m.add_spring(f"{name} spring", *points, stiffness=30e3, length=free)
            m.add_force_between(f"{name} damper", *points, lambda length, rate: DAMPER(rate))
            m.add_bump_stop(f"{name} stop", *points, lower=0.34, upper=0.5, stiffness=5e4, progression=5e7)
        m.add_torsion_bar(f"{axle} bar", {f"{axle} {s} lower": 1.0 for s in SIDES}, length=0.9, diameter=0.022)
    m.add_drag("air", "chassis", coefficient=0.32, area=2.0, at=(0, 0, 0.6))
    m.add_joint_force("driver", {f"rear {s} wheel": 1.0 for s in SIDES}, lambda at: 400.0 * (
        at.parameter("speed") - at.velocity("chassis").dot(at.axes("chassis")[0])))
    return m


def run(duration: float = 1.0, x: float = 10.0, speed: float = 12.0, steer: float = -0.003) -> bc.Result:
    car = bc.compile(machine()).with_parameters(steer=steer, speed=speed)
    wheels = {f"{axle} {s} wheel": speed / 0.31 for axle in AXLES for s in SIDES}
    start = car.assemble(q={"car": [1, 0, 0, 0, x, 0, 0]}, u={"car": [0, 0, 0, speed, 0, 0], **wheels})
    return car.simulate(start, duration, step=2e-3, output=0.01)


def main(out: str = "full_car.html") -> object:
    return run().animate(out)


if __name__ == "__main__":
    main()
