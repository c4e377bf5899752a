"""Published cases that nobody here computed, from `data/outside` (see `data/README.md`): built, run and compared.

Run as a program it prints the table of `docs/reference/validation.md`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import bellcrank as bc

Floats = npt.NDArray[np.float64]


class Figure(NamedTuple):
    """One quantity of a case: the largest difference from the published numbers, and what the reference is good to."""

    quantity: str
    difference: float
    allowed: float


@cache
def data(name: str) -> dict[str, Any]:
    """A file of `data/outside`."""
    found: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "outside" / f"{name}.json").read_text())
    return found


def figure(quantity: str, got: npt.ArrayLike, wanted: npt.ArrayLike, allowed: float) -> Figure:
    """The largest difference, in units of the quantity."""
    ours, theirs = np.asarray(got, float), np.asarray(wanted, float)
    assert ours.shape == theirs.shape
    return Figure(quantity, float(np.abs(ours - theirs).max()), allowed)


def accurate(system: bc.System, state: Any, t: Sequence[float], **options: Any) -> bc.Result:
    """A run with errors far below those of the references, sampled at the published instants."""
    settings = {"stepper": "dop853", "rtol": 1e-11, "atol": 1e-12, "output": [0.0, *t], **options}
    run: bc.Result = system.simulate(state, t[-1], **settings)
    return run.isel(time=slice(1, None))


# -- ADAMS: one body, one joint or spring --------------------------------------------------------------


def adams_body(name: str) -> tuple[bc.Mechanism, dict[str, Any]]:
    """The body of a case in its design position; its frame is the world's."""
    case = data("adams")[name]
    m = bc.Mechanism(name, gravity=data("adams")["gravity"])
    turn = np.array(case.get("rotation_body_to_world", np.eye(3)))
    inertia = turn @ np.diag(case["body"]["inertia_about_com"]) @ turn.T
    m.add_body("body", bc.Inertia(case["body"]["mass"], case["com"], inertia))
    return m, case


def adams_joint(name: str) -> bc.Joint:
    """The joint of a case, its axes in the design position."""
    case = data("adams")[name]
    if name == "universal":
        return bc.Universal(case["first_axis_on_ground"], case["second_axis_on_body"])
    return (bc.Prismatic if name == "prismatic" else bc.Revolute)(case["joint_axis"])


def adams(name: str, way: str, allowed: Sequence[float]) -> Iterator[Figure]:
    """Motion of the centre of mass, load on the ground; the joint in the tree, or closing the loop of a free body."""
    m, case = adams_body(name)
    if way == "loop":
        m.add_joint("free", bc.Free(), m.ground, "body", at=case["com"])
    if "joint_at" in case:
        m.add_joint("joint", adams_joint(name), m.ground, "body", at=case["joint_at"])
    if name == "rotational_spring":
        m.add_joint_spring("spring", "joint", stiffness=case["stiffness"], damping=case["damping"])
    if name == "distance":
        m.add_constraint("joint", bc.Distance(case["length"]), m.ground, "body", bc.Pose(case["ground_point"]),
                         bc.Pose(case["body_point"]))
    if name == "translational_spring":
        m.add_spring("spring", m.ground, "body", case["ground_point"], case["body_point"], stiffness=case["stiffness"],
                     damping=case["damping"], length=case["free_length"])
    system = bc.compile(m, cut=["joint"] if way == "loop" and "joint_at" in case else [])
    run = accurate(system, system.assemble(), case["t"])
    com = run.kinematics("body", point=case["com"])
    position, velocity, acceleration = allowed[:3]
    yield figure("position [m]", com["position"], case["position"], position)
    yield figure("velocity [m/s]", com["velocity"], case["velocity"], velocity)
    yield figure("acceleration [m/s²]", com["acceleration"], case["acceleration"], acceleration)
    if name == "translational_spring":
        yield figure("force on the ground [N]", -run.element("spring").vector, case["force_on_ground"], acceleration)
    elif name == "distance":
        rod = run.forces("joint").values[:, None] * rod_direction(run, case)
        yield figure("force on the ground [N]", rod, case["force_on_ground"], acceleration)
    else:
        load = run.joint_load("joint", body="ground", point=case["joint_at"]).values
        yield figure("force on the ground [N]", load[:, 3:], case["force_on_ground"], acceleration)
        if "moment_on_ground" in case:
            yield figure("moment on the ground [N m]", load[:, :3], case["moment_on_ground"], allowed[3])


def rod_direction(run: bc.Result, case: dict[str, Any]) -> Floats:
    """Unit vectors from the rod's end on the body to that on the ground."""
    rod = case["ground_point"] - run.kinematics("body", point=case["body_point"])["position"].values
    return np.asarray(rod / np.linalg.norm(rod, axis=1, keepdims=True))


# -- Modelica MultiBody: parts of steel ----------------------------------------------------------------


def steel_cylinder(start: Sequence[float], end: Sequence[float], diameter: float) -> bc.Inertia:
    """A solid cylinder between two points."""
    a, b = np.array(start, float), np.array(end, float)
    length = float(np.linalg.norm(b - a))
    mass, along = data("modelica")["density"] * np.pi * diameter**2 / 4 * length, np.outer(b - a, b - a) / length**2
    across = mass * (3 * (diameter / 2) ** 2 + length**2) / 12
    return bc.Inertia(mass, (a + b) / 2, across * np.eye(3) + (mass * diameter**2 / 8 - across) * along)


def steel_brick(start: Sequence[float], end: Sequence[float], width: float, depth: float) -> bc.Inertia:
    """A brick between two points along y, `width` along x, `depth` along z."""
    a, b = np.array(start, float), np.array(end, float)
    size = (width, float(np.linalg.norm(b - a)), depth)
    return bc.Inertia.box(data("modelica")["density"] * float(np.prod(size)), size, (a + b) / 2)


def modelica_four_bar(name: str, allowed: Sequence[float]) -> Iterator[Figure]:
    """A spatial four-bar, its coupler a body with a universal and a ball joint, or a massless rod."""
    case = data("modelica")[name]
    m = bc.Mechanism(name, gravity=(0, -data("modelica")["g"], 0))
    m.add_body("b1", steel_cylinder((0, 0, 0), (0, 0.5, 0.1), 0.05))
    m.add_body("b2", steel_cylinder((1, 0, 0), (1, 0.2, 0), 0.05))
    m.add_joint("j1", bc.Revolute("x"), m.ground, "b1", at=(0, 0, 0))
    m.add_joint("j2", bc.Prismatic("x"), m.ground, "b2", at=(1, 0, 0))
    if name == "fourbar1":
        m.add_body("b3", steel_cylinder((1, 0.2, 0), (0, 0.5, 0.1), 0.05))
        m.add_joint("cross", bc.Universal("y", "z"), "b2", "b3", at=(1, 0.2, 0))
        m.add_joint("ball", bc.Spherical(), "b1", "b3", at=(0, 0.5, 0.1))
    else:
        m.add_constraint("rod", bc.Distance(1.1**0.5), "b1", "b2", bc.Pose((0, 0.5, 0.1)), bc.Pose((1, 0.2, 0)))
    system = bc.compile(m, actuated=["j1"])
    run = accurate(system, system.assemble(q={"j1": 0.0}, u={"j1": case["angle_rate_at_start"]}), case["t"])
    yield figure("crank angle [rad]", run.q.sel(coordinate="j1.angle"), case["j1.phi"], allowed[0])
    yield figure("crank rate [rad/s]", run.u.sel(speed="j1.angle"), case["j1.w"], allowed[1])


def engine_gas(piston: str) -> Callable[[Any], tuple[Any, Any, Any]]:
    """The force of the gas on a piston, which jumps where the piston turns."""

    def powers(x: Any, *factors: float) -> Any:
        total: Any = 0.0
        for factor in factors:
            total = total * x + factor
        return total

    def law(at: Any) -> tuple[Any, Any, Any]:
        top = (0.15, 0.4, 0.0)
        stroke, speed = 0.45 - at.position(piston, top).y, -at.velocity(piston, top).y
        x = 1.0 - stroke / 0.35
        compression = bc.math.select_less(
            x, 0.986061, powers(x, 177.4132, -287.2189, 151.8252, -24.9973, 2.4),
            powers(x, 2836360, -10569296, 14761814, -9158505, 2129670))
        expansion = bc.math.select_less(
            0.933, x, powers(x, -3929704, 14748765, -20747000, 12964477, -3036495),
            powers(x, 145.930, -131.707, 17.3438, 17.9272, 2.4))
        pressure = 1e5 * bc.math.select_less(speed, 0.0, compression, expansion)
        return (0.0, -pressure * np.pi * 0.1**2 / 4, 0.0)

    return law


def modelica_engine() -> Iterator[Figure]:
    """One cylinder with a gas force."""
    case = data("modelica")["engine1b"]
    m = bc.Mechanism("engine1b", gravity=(0, -data("modelica")["g"], 0))
    crank = steel_cylinder((0, 0, 0), (0.1, 0, 0), 0.05).combined(
        steel_brick((0.1, 0, 0), (0.1, 0.1, 0), 0.02, 0.05), steel_cylinder((0.1, 0.1, 0), (0.2, 0.1, 0), 0.03),
        steel_brick((0.2, 0.1, 0), (0.2, 0, 0), 0.02, 0.05))
    m.add_body("crank", crank)
    m.add_body("rod", steel_brick((0.15, 0.1, 0), (0.15, 0.3, 0), 0.02, 0.06))
    m.add_body("piston", steel_cylinder((0.15, 0.3, 0), (0.15, 0.4, 0), 0.1))
    m.add_joint("main", bc.Revolute("x"), m.ground, "crank", at=(0, 0, 0))
    m.add_joint("big end", bc.Revolute("x"), "crank", "rod", at=(0.15, 0.1, 0))
    m.add_joint("small end", bc.Revolute("x"), "rod", "piston", at=(0.15, 0.3, 0))
    m.add_joint("bore", bc.Prismatic("y"), m.ground, "piston", at=(0.15, 0.3, 0))
    m.add_armature("flywheel", "main", 1.0)
    m.add_wrench("gas", "piston", at=(0.15, 0.4, 0), law=engine_gas("piston"))
    system = bc.compile(m, actuated=["main"])
    run = accurate(system, system.assemble(u={"main": case["angle_rate_at_start"]}), case["t"])
    yield figure("crank angle [rad]", run.q.sel(coordinate="main.angle"), case["inertia.phi"], 7.5e-4)
    yield figure("crank rate [rad/s]", run.u.sel(speed="main.angle"), case["inertia.w"], 2.1e-3)


def modelica_wheel_set() -> Iterator[Figure]:
    """Two driven wheels on one axle that roll without slip."""
    case = data("modelica")["rolling_wheel_set_driving"]
    m = bc.Mechanism("wheel set", gravity=(0, 0, -data("modelica")["g"]))
    m.add_body("axle", bc.Inertia(0.01, (0.2, 0, 0), (0.001, 0.001, 0.001)))
    m.add_joint("plane", bc.Planar("z"), m.ground, "axle", bc.Pose((0, 0, 0.1)))
    for name, side, phase in (("1", 0.25, 0.0), ("2", -0.25, np.pi / 2)):
        wheel = m.add_body(f"wheel {name}", bc.Inertia(0.5, (0, 0, 0), (0.02, 0.01, 0.02)))
        m.add_joint(f"bearing {name}", bc.Revolute("y"), "axle", wheel, bc.Pose((0, side, 0)))
        m.add_constraint(f"rolling {name}", bc.RollingDisk(0.1), m.ground, wheel)
        m.add_joint_force(f"torque {name}", f"bearing {name}",
                          lambda at, phase=phase: -2.0 * bc.math.sin(2 * np.pi * at.t + phase))
    system = bc.compile(m)
    start = system.assemble(q={"plane.x": 0.1, "plane.y": 0.1, "plane.angle": 0.0, "bearing 1": 0.0, "bearing 2": 0.0})
    run = accurate(system, start, case["t"])
    for quantity, name, key, allowed in (
            ("position x [m]", "plane.x", "x", 6e-6), ("position y [m]", "plane.y", "y", 6e-6),
            ("yaw [rad]", "plane.angle", "phi", 6e-6), ("angle of wheel 1 [rad]", "bearing 1.angle", "theta1", 6e-5),
            ("angle of wheel 2 [rad]", "bearing 2.angle", "theta2", 6e-5)):
        yield figure(quantity, run.q.sel(coordinate=name), case[f"wheelSet.{key}"], allowed)
    for name in "12":
        rate = run.u.sel(speed=f"bearing {name}.angle")
        yield figure(f"rate of wheel {name} [rad/s]", rate, case[f"wheelSet.der_theta{name}"], 3.6e-5)


def modelica_universal(way: str) -> Iterator[Figure]:
    """A body on a universal joint and a spring; the joint in the tree, or closing the loop of a free body."""
    case = data("modelica")["universal_constraint"]
    m = bc.Mechanism("universal", gravity=(0, -data("modelica")["g"], 0))
    m.add_body("body", bc.Inertia(1.0, (0.2, 0, 0), (1, 1, 1)))
    a, b, c = np.radians((10, 55, 68))
    turn = (bc.Pose.about("x", a).rotation @ bc.Pose.about("y", b).rotation @ bc.Pose.about("z", c).rotation)
    place = bc.Pose((0.2, -0.3, 0.2), turn)
    if way == "loop":
        m.add_joint("free", bc.Free(), m.ground, "body", place)
    m.add_joint("joint", bc.Universal("z", "x"), m.ground, "body", place)
    m.add_spring("spring", m.ground, "body", (0.8, 0, 0.3), (0.5, 0.15, 0.2), stiffness=20.0, length=0.0)
    system = bc.compile(m, cut=["joint"] if way == "loop" else [])
    run = accurate(system, system.assemble(), case["t"])
    spin = run.kinematics("body")
    turned = np.array([bc.Pose((0, 0, 0), q).rotation for q in spin["orientation"].values])
    rates = np.einsum("tij,ti->tj", turned, spin["angular_velocity"].values)
    yield figure("angular velocity [rad/s]", rates,
                 np.transpose([case[f"bodyOfConstraint.body.w_a[{i}]"] for i in (1, 2, 3)]), 2.1e-4)
    angles = (run.q.values if way == "tree"
              else bc.analyze.loop_coordinates(system, run.q.values, "joint"))
    yield figure("joint angles [rad]", angles, np.transpose([case["joint.phi_a"], case["joint.phi_b"]]), 9e-5)


# -- Test Set for IVP Solvers --------------------------------------------------------------------------


def bari_beam() -> Iterator[Figure]:
    """A chain of 40 links as a stiff beam, pushed at its tip."""
    case = data("bari_beam")
    n, length = case["links"], case["link_length"]
    m = bc.Mechanism("beam", gravity=case["gravity"])
    before: Any = m.ground
    for i in range(1, n + 1):
        mass = case["mass_at_tip"] if i == n else case["mass_at_each_pin"]
        body = m.add_body(f"b{i}", bc.Inertia.point(mass, (length, 0, 0)))
        m.add_joint(f"j{i}", bc.Revolute("z"), before, body, bc.Pose((0 if i == 1 else length, 0, 0)))
        m.add_joint_spring(f"s{i}", f"j{i}", stiffness=case["spring_at_clamp" if i == 1 else "springs_elsewhere"])
        before = body

    def push(at: Any) -> tuple[Any, Any, Any]:
        size = bc.math.select_less(at.t, np.pi, 1.5 * bc.math.sin(at.t) * bc.math.sin(at.t), 0.0)
        return (-size, size, 0.0)

    m.add_wrench("push", f"b{n}", at=(length, 0, 0), law=push)
    run = accurate(bc.compile(m), (np.zeros(n), np.zeros(n)), [case["t"]], rtol=1e-13, atol=1e-15)
    links = np.array(case["link"]) - 1
    yield figure("angles [rad]", np.cumsum(run.q[-1].values)[links], case["angle"], 1e-12)
    yield figure("rates [rad/s]", np.cumsum(run.u[-1].values)[links], case["rate"], 2e-10)


def bari_car_axis() -> Iterator[Figure]:
    """Two masses joined by a rod on springs over a wheel line that turns in time."""
    case = data("bari_car_axis")
    m = bc.Mechanism("car axis", gravity=case["gravity"])
    m.add_body("axle")
    m.add_joint("turn", bc.Revolute("z"), m.ground, "axle")
    m.prescribe("turn", lambda t: bc.math.asin(case["h"] * bc.math.sin(case["omega"] * t)))
    m.add_body("left", bc.Inertia.point(case["mass"], (0, 0, 0)))
    m.add_joint("guide", bc.Prismatic("y"), "axle", "left")
    m.add_body("carriage")
    m.add_body("right", bc.Inertia.point(case["mass"], (0, 0, 0)))
    m.add_joint("x", bc.Prismatic("x"), m.ground, "carriage")
    m.add_joint("y", bc.Prismatic("y"), "carriage", "right")
    m.add_constraint("rod", bc.Distance(case["L"]), "left", "right")
    for side, foot in (("left", (0, 0, 0)), ("right", (case["L"], 0, 0))):
        m.add_spring(f"spring {side}", "axle", side, foot, (0, 0, 0), stiffness=case["stiffness"], length=case["L0"])
    system = bc.compile(m)
    start = case["start"]
    state = system.assemble(guess={"guide": start["left"][1], "x": start["right"][0], "y": start["right"][1]},
                            u={"x": start["right_velocity"][0], "guide": 0.0})
    run = accurate(system, state, [case["t"]], rtol=1e-13, atol=1e-15)
    for side in ("left", "right"):
        moved = run.kinematics(side).isel(time=-1)
        yield figure(f"position of {side} mass [m]", moved["position"][:2], case[side], 1e-11)
        yield figure(f"velocity of {side} mass [m/s]", moved["velocity"][:2], case[f"{side}_velocity"], 1e-10)
    guide = run.joint_load("guide", axes="axle").isel(time=-1).values[3]
    yield figure("force of the guide [N]", guide, case["guide_force_on_left_along_axle"], 1e-13)
    yield figure("tension of the rod [N]", -run.forces("rod").isel(time=-1).values, case["rod_tension"], 1e-13)


# -- closed form, and EXUDYN -----------------------------------------------------------------------------


def kepler() -> Iterator[Figure]:
    """Two bodies that fall around a fixed centre, each on its own ellipse."""
    case = data("analytic_and_extrapolated")["kepler"]
    for name in ("body1", "body2"):
        m = bc.Mechanism(name, gravity=(0, 0, 0))
        m.add_body("carriage")
        m.add_body("body", bc.Inertia.point(1.0, (0, 0, 0)))
        m.add_joint("x", bc.Prismatic("x"), m.ground, "carriage")
        m.add_joint("y", bc.Prismatic("y"), "carriage", "body")

        def pull(at: Any) -> tuple[Any, Any, Any]:
            r = at.position("body", (0, 0, 0))
            square = r.dot(r)
            size = -case["mu"] / (square * bc.math.sqrt(square))
            return (size * r.x, size * r.y, 0.0)

        m.add_wrench("gravity", "body", at=(0, 0, 0), law=pull)
        orbit = case[name]
        run = accurate(bc.compile(m), (orbit["position_at_start"], orbit["velocity_at_start"]), orbit["t"], rtol=1e-13)
        yield figure(f"position of {name} [m]", run.q, orbit["position"], 2e-10)
        yield figure(f"velocity of {name} [m/s]", run.u, orbit["velocity"], 1e-9)


def exudyn_slider_crank() -> Iterator[Figure]:
    """A spatial slider-crank whose rod keeps its angle against the guide."""
    case = data("analytic_and_extrapolated")["slider_crank"]
    A, B, C = np.array((0, 0.1, 0.12)), np.array((0, 0.1, 0.2)), np.array((0.2, 0, 0))
    x = (C - B) / np.linalg.norm(C - B)
    z = A - (A @ x) * x
    z /= np.linalg.norm(z)
    axes = np.stack([x, np.cross(z, x), z], axis=1)
    m = bc.Mechanism("slider-crank", gravity=(0, 0, -9.81))
    m.add_body("crank", bc.Inertia(0.12, A, (1e-4, 1e-5, 1e-4)))
    m.add_body("rod", bc.Inertia(0.5, (B + C) / 2, axes @ np.diag((4e-4, 4e-3, 4e-3)) @ axes.T))
    m.add_body("slider", bc.Inertia(2.0, C, (1e-4, 1e-4, 1e-4)))
    m.add_joint("main", bc.Revolute("x"), m.ground, "crank", at=A)
    m.add_joint("guide", bc.Prismatic("x"), m.ground, "slider", at=C)
    m.add_joint("big end", bc.Spherical(), "crank", "rod", at=B)
    m.add_joint("small end", bc.Spherical(), "rod", "slider", at=C)
    m.add_constraint("cross", bc.Angle(float(np.arccos(axes[0, 1])), "x", axes[:, 1]), m.ground, "rod")
    system = bc.compile(m, actuated=["main"])
    run = accurate(system, system.assemble(q={"main": 0.0}, u={"main": 6.0}), [case["t"]]).isel(time=-1)
    numbers = []
    for body, point, frame in (("crank", A, np.eye(3)), ("rod", (B + C) / 2, axes)):
        pose = system.pose(run.q.values, body)
        numbers += [*(pose.position + pose.rotation @ point), *quaternion(pose.rotation @ frame)]
    yield figure("sum of 14 magnitudes", np.abs(numbers).sum(), case["sum_of_14"], 5e-10)


def quaternion(turn: Floats) -> Floats:
    """The unit quaternion of a rotation, up to its sign."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(turn).as_quat())


# -- all of them -----------------------------------------------------------------------------------------

ADAMS = "ADAMS, in the joint tests of Project Chrono"
MODELICA = "Modelica Standard Library 4.0.0, reference results (Dymola 2020x, tolerance 1e-6)"
BARI = "Test Set for IVP Solvers (CWI, Bari)"
#: what ADAMS' figures are good to, about three times what they differ by: position, velocity, acceleration, moment
_ADAMS = {"revolute": (1.5e-5, 1.5e-5, 1.8e-3), "prismatic": (1.5e-4, 1.5e-4, 2.4e-3, 3e-3),
          "universal": (2.4e-3, 9e-3, 4e-2, 1.5e-3), "distance": (1.8e-6, 3e-6, 3.9e-3),
          "translational_spring": (1.5e-6, 1.5e-6, 1.5e-5), "rotational_spring": (6e-6, 3e-5, 2.4e-3, 4.2e-4)}

#: case -> source, and what compares it
CASES: dict[str, tuple[str, Callable[[], Iterator[Figure]]]] = {
    **{f"{name.replace('_', ' ')}, {way}": (ADAMS, lambda name=name, way=way: adams(name, way, _ADAMS[name]))
       for name in ("revolute", "prismatic", "universal", "rotational_spring") for way in ("tree", "loop")},
    **{name.replace("_", " "): (ADAMS, lambda name=name: adams(name, "loop", _ADAMS[name]))
       for name in ("distance", "translational_spring")},
    "Fourbar1": (MODELICA, lambda: modelica_four_bar("fourbar1", (2.7e-3, 3e-3))),
    "Fourbar2": (MODELICA, lambda: modelica_four_bar("fourbar2", (2.4e-3, 3e-3))),
    "Engine1b": (MODELICA, modelica_engine),
    "RollingWheelSetDriving": (MODELICA, modelica_wheel_set),
    "UniversalConstraint, tree": (MODELICA, lambda: modelica_universal("tree")),
    "UniversalConstraint, loop": (MODELICA, lambda: modelica_universal("loop")),
    "beam of 40 links": (BARI, bari_beam),
    "car axis": (BARI, bari_car_axis),
    "Kepler orbits": ("closed form, Modelica's PointGravity", kepler),
    "spatial slider-crank": ("EXUDYN, sliderCrank3Dtest, its step taken to zero", exudyn_slider_crank),
}


def table() -> Iterator[str]:
    """The rows of the page, one per quantity."""
    for name, (source, compared) in CASES.items():
        for f in compared():
            yield f"| {name} | {source} | {f.quantity} | {f.difference:.0e} | {f.allowed:.1e} |"


if __name__ == "__main__":
    print("\n".join(table()))
