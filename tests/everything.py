"""A machine with one of everything that a `Mechanism` can hold."""

from __future__ import annotations

import numpy as np

import bellcrank as bc
from bellcrank import math as bm


def everything() -> bc.Mechanism:
    """All joint types, constraints, couplers, force elements, laws of every kind, parameters, awkward names."""
    m = bc.Mechanism("one of everything: é 日 #", gravity=(0.1, -0.0, -9.81))
    mass, length = m.parameter("mass", 2.0), m.parameter("link length", 0.3)
    time = m.parameter("t", 1.5)
    m.gravity = (0.1 * mass, -0.0, -9.81)
    _bodies(m, mass, length)
    _joints(m, mass, length)
    _laws(m)
    _forces(m, mass, length, time)
    _shapes(m, mass)
    _machine_laws(m, mass)
    _ready_made(m, mass, length)
    return m


def _bodies(m: bc.Mechanism, mass: object, length: object) -> None:
    spread = np.array([[0.3, 0.1, 0.05], [0.1, 0.4, -0.02], [0.05, -0.02, 0.5]]) / 3
    m.add_body("arm", bc.Inertia(2 * mass + 0.1, (length, 0.1 / 3, 1e-7), (0.1 * mass, 0.2, 0.3)))
    m.add_body("no", bc.Inertia(1 / 3, (0.1, 0.2, 0.3), np.trace(spread) * np.eye(3) - spread))
    m.add_body("12", bc.Inertia.box(1.5, (0.1, 0.2, 0.3)))
    m.add_body("tip: \"x\"\\", bc.Inertia.sphere(mass, 0.1))
    m.add_body("impossible", bc.Inertia(1.0, (0, 0, 0), (1.0, 1.0, 9.0), checked=False))
    for name in ("f", "g", "h", "i", "j"):
        m.add_body(name, bc.Inertia(1.0, (0, 0, 0), 0.1))
    m.add_body("massless")


def _joints(m: bc.Mechanism, mass: object, length: object) -> None:
    turned = bc.Pose.rpy((length, 1 / 3, 0), 0.1, 0.2, 0.3)
    m.add_joint("hinge", bc.Revolute((1, 2, 3)), m.ground, "arm", turned, bc.Pose((0, -0.0, 1e-300)))
    m.add_joint("slide.x", bc.Prismatic("-y"), "arm", "no", bc.Pose((mass * length, 0, 1 / mass)))
    m.add_joint("screw", bc.Screw("x", 0.1 * length), "no", "12")
    m.add_joint("sleeve", bc.Cylindrical("z"), "12", "tip: \"x\"\\", turned)
    m.add_joint("hooke", bc.Universal((1, 0.1, 0), (0, 1, 0.3)), "tip: \"x\"\\", "impossible")
    m.add_joint("table", bc.Planar((1, 1, 1)), "arm", "f")
    m.add_joint("ball", bc.Spherical(), "arm", "g")
    m.add_joint("base", bc.Free(), m.ground, "h")
    m.add_joint("weld", bc.Weld(), "h", "massless", bc.Pose((1, 2, 3)))
    m.add_joint("designed", bc.Revolute("z"), m.ground, "i", at=(0.1, 0.2, length))
    m.add_joint("second", bc.Revolute("z"), "i", "j", at=(0.3, 0.2, 0.0))
    m.add_frame("tool", "arm", turned)
    m.add_frame("camera", m.ground)
    m.add_coupler("gear", {"slide.x": 1.0, "sleeve.angle": -1 / 3, "screw": 2.0}, 0.1)
    m.add_constraint("rod", bc.Distance(1 / 3), "f", "g", bc.Pose((0.1, length, 0)))
    m.add_constraint("slot", bc.PointOnLine((1, 2, 2.5)), "f", "h")
    m.add_constraint("floor", bc.PointOnPlane("-z"), m.ground, "g", turned)
    m.add_body("later", bc.Inertia.sphere(1.0, 0.1), present=False)
    m.add_joint("arrival", bc.Free(), m.ground, "later")
    m.add_joint("grip", bc.Weld(), "f", "later", bc.Pose((0, length, 0)), "at closing", closed=False)
    m.add_joint("latch", bc.Revolute("y"), "g", "later", "at closing", turned, closed=False)
    m.add_constraint("track", bc.PointOnLine("x"), m.ground, "later", turned, "at closing", closed=False)
    m.add_constraint("stop", bc.PointOnPlane("x"), m.ground, "later", turned, closed=False)
    m.add_constraint("jack", bc.Distance(lambda t: 1 / 3 + 0.1 * bm.sin(t)), "f", "h")
    m.add_constraint("stay", bc.Distance(length * 2), "f", "h")
    m.add_constraint("still", bc.PointOnPlane("x", lambda t: 0.25), "f", "h")
    m.add_constraint("lean", bc.Angle(1.1, "x", (1, 2, 3)), "f", "g")
    m.add_constraint("ball of 8", bc.RollingBall(length / 3), m.ground, "g")
    m.add_constraint("coin", bc.RollingDisk(0.3, "-z", (1, 0, 1)), m.ground, "h", turned)
    m.add_constraint("skate", bc.KnifeEdge("y"), m.ground, "f")


def _laws(m: bc.Mechanism) -> None:
    def wave(t: object) -> object:
        s = bm.sin(1.7 * t) + 0.1 * t**3
        return bm.select_less(t, 2.0, s * s / 3.0 - bm.sqrt(1 + t * t), bm.atan2(s, -2.0) + bm.tan(t) * 2**0.5)

    m.prescribe("hinge", wave)
    m.prescribe("table", lambda t: 0.1 * bm.tanh(t) - bm.log(2 + t), "angle")
    m.prescribe("table", 0.25, "y")
    m.prescribe("hooke", lambda t: (bm.exp(-t), 1 - (2 - t)))
    m.prescribe("base", lambda t: (bm.cos(t), 0.0, 0.0, bm.sin(t), 0.1 * t, 0, -t))


def _forces(m: bc.Mechanism, mass: object, length: object, time: object) -> None:
    m.add_spring("linear", m.ground, "arm", (0, 0, length), (1, 2, 3), stiffness=100 * mass, damping=1 / 3, length=0.1)
    m.add_spring("law", "arm", "f", (0, 0, 0), (0.1, 0.2, 0.3), law=lambda x, rate: 3 * x**3 + rate / 7)
    m.add_spring("potential", "f", "g", (0, 0, 0), (1, 0, 0), potential=lambda x: 2 * x**4 + x * x, damping=mass)
    m.add_bushing("bushing", "arm", "g", bc.Pose((0, 0, mass)), bc.Pose.about("x", 0.3), stiffness=(1, 2, length),
                  damping=(0.1, 0.2, 0.3), turn_stiffness=(5, 6, 7), turn_damping=(mass, 0, 0))
    m.add_bushing("by angle", "f", m.ground, turn_stiffness=(mass, mass, mass), damping=(1, 0, 0), measure="angle")
    m.add_drag("drag", "g", coefficient=0.5, area=length, wind=(1.0, mass, lambda t: bm.sin(t)), at=(0, 0, 0.1),
               turn_linear=0.1, turn_quadratic=0.2, density=1000.0)
    m.add_drag("plain", "f", coefficient=1.0)
    m.add_wrench("push", "f", force=(lambda t: 3 * bm.cos(t), 2.0, mass * time), moment=(0, 0, lambda t: 4.0),
                 at=(0, 0, length), axes="body")
    m.add_wrench("constant", "g", force=(1, 0, -0.0))
    m.add_joint_spring("twist", "slide.x", stiffness=mass, damping=0.1, rest=length)
    m.add_joint_spring("cam", "sleeve", coordinate="slide", potential=lambda x: bm.exp(x), damping=1.0)
    m.add_joint_force("push", "screw", lambda x, rate: -bm.tanh(rate / 1e-3) * (x - 0.1))
    m.add_friction("dry", "slide.x", coulomb=mass, viscous=0.1, static=3.0, stribeck=0.02, speed=0.01)
    m.add_friction("plain", "screw", coulomb=1.0)
    m.add_limit("stop", "sleeve", None, 0.5, stiffness=1e4, damping=mass, coordinate="angle", onset=0.01)
    m.add_limit("stops", "screw", -1.0, length, stiffness=1e4)
    m.add_servo("aim", "screw", target=mass, target_rate=lambda t: bm.sin(t), stiffness=100.0, damping=1 / 3, limit=2.0)
    m.add_servo("plain aim", "sleeve", coordinate="angle", target=0.1, offset=lambda t: 4.0, limit=(-mass, 3.0))
    m.add_joint_spring("cable", {"slide.x": 1.0, "sleeve.angle": -1 / 3}, stiffness=mass, damping=0.1, rest=length)
    m.add_joint_force("differential", {"screw": -2.0, "slide.x": 0.1}, lambda x, rate: -bm.tanh(rate) * x)
    m.add_servo("winch", {"screw": 2.0}, target=lambda t: 0.1 * t, stiffness=1.0)
    m.add_actuator("uneven", "screw", (-1.0, 2 * mass))
    m.add_actuator("motor", "slide.x", 10 * mass, no_load_speed=3.0)
    m.add_actuator("plain", "sleeve", 5.0, coordinate="slide")
    m.add_armature("rotor", "slide.x", mass * 1e-5)
    m.add_armature("rotor 2", "sleeve", 0.1, "angle")


def _shapes(m: bc.Mechanism, mass: object) -> None:
    for shape in (bc.Box((1, 0.1, 1 / 3)), bc.Sphere(0.1), bc.Ellipsoid((1, 2, 3)), bc.Cylinder(0.1, 1), bc.Cone(1, 2),
                  bc.Capsule(0.1, 0.3), bc.Plane(), bc.Plane((1, 1 / 3)),
                  bc.HeightField([0, 1 / 3, 1], [0, 1, 2], [[0, 1, 0], [0.1, 0, 0], [1, 0, 0]]),
                  bc.HeightField([0, 1], [0, 1], [[0, 1], [0.1, 0]], kind="linear"),
                  bc.Mesh([(0, 0, 0), (1 / 3, 0, 0), (0, 1, -0.0)], [(0, 1, 2)]),
                  bc.Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)], colors=[(0.1, 0, 0, 1)])):
        m.add_shape("f", shape, color=(1 / 3, 0, 0.1))
    m.add_shape("ground", bc.Box((1, 1, 1)), bc.Pose.rpy((1, 2, 3), 0.1, 0.2, 0.3), name="é #", color="#12345678")
    m.add_shape("g", bc.Box((1, 1, 1)), role="collision")
    ball = m.add_shape("f", bc.Sphere(0.1), bc.Pose((0.1, 0, 50.0)), role="collision", name="ball")
    floor = m.add_shape("ground", bc.Plane(), bc.Pose((0, 0, -100.0)), role="collision", name="floor")
    m.add_shape("g", bc.Box((1, 1, 1)), role="collision", friction=1 / 3, groups=(2, 5), name="slippery")
    m.set_contact_rule("g", "f", touch=False)
    m.set_contact_rule("slippery", "floor", friction=0.1)
    m.larger_friction = True
    m.add_contact("sticks", floor, ball, stiffness=1e4, friction=0.5, friction_model="bristle", reach=1 / 3)
    m.add_contact("rests", floor, ball, stiffness=1e4, dissipation=0.1, friction=0.1 * mass,
                  exponent=1.5)


def _machine_laws(m: bc.Mechanism, mass: object) -> None:
    """Tables, laws of the machine, a state and an output; the body of a state comes last."""
    damper = bc.Table([-1.0, 0.0, 0.5], [-9.0, 0.0, 7.0], kind="monotone", extrapolate="linear", name="damper")
    grid = bc.Table(([0.0, 1.0], [0.0, 1.0, 2.0]), [[1, 2, 3], [4, 5, 7]], extrapolate="hold", name="two of them")
    name = next(iter(m.parameters))
    m.add_joint_force("tabled", "screw", lambda x, rate: damper(rate) - x)
    m.add_joint_force("table alone", "slide.x", damper)
    m.add_force_between("rope", "arm", "f", (0, 0, 0), (0.1, 0.2, 0.3), lambda at: grid(
        at.element("rope").length, at.u("screw")) + at.parameter(name) * at.t)
    m.add_wrench("jet", "g", at=(0.1, 0, 0), axes="body", law=lambda at: (
        at.velocity("f", (0.1, 0, 0)), at.axes("arm")[1] * at.q("screw")))
    m.add_joint_force("follow", "screw", lambda at: damper(at.element("rope").force) + at.state("pressure"))
    m.add_state("pressure", lambda at: at.omega("g").y - at.state("pressure"), initial=mass, units="bar")
    m.add_output("height", lambda at: at.position("arm").z, units="m")
    m.set_range("screw", -0.25, 1 / 3)


def _ready_made(m: bc.Mechanism, mass: object, length: object) -> None:
    """One of every ready-made element, with numbers, parameters, laws and tables; states come in between."""
    road = bc.Table(([0.0, 1.0], [0.0, 1.0, 2.0]), [[0, 0, 0], [0, 0.1, 0]], extrapolate="hold", name="road")
    one, other = ("arm", "f", (0, 0, length), (0.1, 0.2, 0.3)), (m.ground, "g", (0, 0, 0), (0.1, 0, 0))
    m.add_hydraulic_cylinder("lift", *one, head_area=2e-3, rod_area=1e-3 * mass, closed=length, stroke=0.5, gain=2e-8,
                             initial=(2e6 * mass, 1e6), opening=lambda at: bm.sin(at.t) + at.u("screw"))
    m.add_gas_spring("gas", *other, force=100 * mass, length=0.6, reach=length * 3, exponent=1.2, damping=mass)
    m.add_bump_stop("bump", *other, lower=0.2, stiffness=1e3 * mass, progression=1e5, damping=7.0, onset=1e-4)
    m.add_bump_stop("strap", *other, upper=length, stiffness=1e3)
    m.add_spring("between them", *other, stiffness=3.0)
    m.add_hydraulic_cylinder("shut", *other, head_area=2e-3, rod_area=0.0, closed=0.1, stroke=0.5)
    m.add_brake("brake", "screw", capacity=lambda at: abs(at.q("slide.x")) * 10.0, reach=1e-2, damping=2e-3)
    m.add_state("mean", lambda at: (at.state("brake bend") - at.state("mean")) * 3.0)
    m.add_clutch("clutch", "screw", "slide.x", capacity=5.0 * mass, reach=length / 300)
    m.add_torsion_bar("bar", {"screw": 1.0, "slide.x": -1.0}, length=length, diameter=0.02, bore=0.01, damping=mass)
    m.add_belt("belt", {"screw": 0.1, "sleeve.angle": -0.2}, stiffness=1e4 * mass, pretension=300.0, slack=1e-3)
    m.add_dc_motor("dc", "screw", voltage=lambda at: 12.0 - at.u("screw"), resistance=0.5, inductance=2e-3,
                   constant=0.05, gear=4.0, rotor_inertia=1e-4, friction=1e-4)
    m.add_dc_motor("plain dc", "slide.x", voltage=mass, resistance=0.5, inductance=2e-3, constant=0.05)
    m.add_rolling_resistance("rolling", "screw", coefficient=0.01, radius=0.3, load=lambda at: abs(at.u("screw")))
    m.add_rolling_resistance("plain rolling", "screw", coefficient=0.01, radius=0.3, load=20.0, speed=0.1)
    m.add_tyre("plain tyre", "f", radius=0.3, stiffness=2e5, mu=0.4 * mass)
    m.add_tyre("tyre", "g", radius=0.3, stiffness=2e5, damping=50.0, mu=0.9, slope=15.0, model="magic", c=1.4, e=-0.5,
               half_length=0.06, rolling=0.01, relaxation=(0.2, 0.4), settling=0.02, slowest=0.5, height=road)
    m.add_tyre("set", "h", radius=0.3, stiffness=2e5, model="set", mirrored=True, relaxation=0.3, center=(0.1, 0, 0),
               axle=(1, 2, 0), height=lambda x, y: 0.1 * bm.sin(x) * y, coefficients={
                   "FNOMIN": 4e3, "PDX1": 1.2, "PKX1": 20.0, "PDY1": -1.0, "PKY1": -15.0, "QDZ1": 0.1})
