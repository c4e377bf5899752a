"""Every kind of force element there is, in one machine, in several states at once: powers, points of action, inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.io.native import difference
from bellcrank.math import sin

T = 0.3
LINE: dict[str, Any] = {"first": "ground", "second": "rocker", "first_point": (0.3, 0.9, 0),
                        "second_point": (0.2, 0, 0)}
BOTH: dict[str, Any] = {"first": "car", "second": "arm", "first_point": (0.1, 0.2, 0.3),
                        "second_point": (0.2, 0.1, 0)}
SET = {"FNOMIN": 4e3, "PDX1": 1.2, "PKX1": 20.0, "PDY1": -1.0, "PKY1": -15.0, "QDZ1": 0.1}
#: method, the bodies that it acts between (the first None where that is nobody's), and its arguments
EVERY: dict[str, tuple[str, tuple[str | None, str], dict[str, Any]]] = {
    "spring": ("add_spring", ("ground", "rocker"), {**LINE, "stiffness": 30.0, "damping": 2.0, "length": 0.4}),
    "potential": ("add_spring", ("car", "arm"), {**BOTH, "potential": lambda x: 3 * x**4, "damping": 1.0}),
    "rope": ("add_force_between", ("car", "arm"), {**BOTH, "law": lambda at: 4 * at.element("spring").force + at.t}),
    "twist": ("add_joint_spring", ("ground", "crank"), {"joint": "A", "stiffness": 3.0, "damping": 0.2, "rest": 0.1}),
    "sum": ("add_joint_spring", ("arm", "crank"), {"joint": {"A": 1.0, "sleeve.angle": -0.5}, "stiffness": 3.0}),
    "last": ("add_joint_force", ("rocker", "ground"), {
        "joint": "D", "law": lambda at: at.q("sleeve.slide") - at.u("D")}),
    "law": ("add_joint_force", ("car", "arm"), {"joint": "sleeve", "law": lambda q, u: -q - u, "coordinate": "slide"}),
    "bush": ("add_bushing", ("coupler", "car"), {
        "first": "coupler", "second": "car", "stiffness": (10, 20, 5), "damping": (1, 2, 3),
        "turn_stiffness": (3, 4, 5)}),
    "friction": ("add_friction", ("car", "arm"), {"joint": "sleeve", "coulomb": 2.0, "viscous": 1.0, "static": 3.0,
                                                  "stribeck": 0.1, "speed": 0.01, "coordinate": "angle"}),
    "limit": ("add_limit", ("crank", "coupler"), {"joint": "B", "lower": 4.0, "stiffness": 30.0, "damping": 2.0}),
    "servo": ("add_servo", ("ground", "crank"), {"joint": "A", "target": lambda t: t, "stiffness": 50.0, "limit": 2.0}),
    "actuator": ("add_actuator", ("crank", "coupler"), {"joint": "B", "limit": 2.0, "no_load_speed": 9.0}),
    "drag": ("add_drag", (None, "arm"), {"body": "arm", "coefficient": 2.0, "wind": (1, 2, lambda t: t),
                                         "at": (0.1, 0, 0), "turn_linear": 0.1}),
    "wrench": ("add_wrench", (None, "car"), {"body": "car", "force": (1, 2, lambda t: t), "moment": (1, 2, 3),
                                             "at": (0.1, 0.2, 0.3), "axes": "body"}),
    "jet": ("add_wrench", (None, "coupler"), {"body": "coupler", "at": (0.1, 0.2, 0.3), "law": lambda at: (
        at.velocity("car"), at.omega("arm"))}),
    "gas": ("add_gas_spring", ("ground", "rocker"), {**LINE, "force": 20.0, "length": 2.0, "reach": 3.0,
                                                     "exponent": 1.3, "damping": 0.2}),
    "bump": ("add_bump_stop", ("ground", "rocker"), {**LINE, "lower": 1.5, "stiffness": 10.0, "progression": 20.0,
                                                     "damping": 0.3}),
    "push": ("add_hydraulic_cylinder", ("ground", "rocker"), {
        **LINE, "head_area": 2e-5, "rod_area": 1e-5, "closed": 0.1, "stroke": 3.0, "gain": 1e-9, "dead_volume": 1e-2,
        "friction": 3.0, "leakage": 1e-9, "opening": 0.5}),
    "bar": ("add_torsion_bar", ("rocker", "ground"), {"joint": "D", "length": 1.0, "diameter": 0.005, "bore": 0.001,
                                                      "damping": 0.1}),
    "belt": ("add_belt", ("rocker", "coupler"), {"pulleys": {"B": 0.3, "C": 0.2}, "stiffness": 300.0,
                                                 "pretension": 20.0, "damping": 0.5}),
    "motor": ("add_dc_motor", ("car", "wheel"), {
        "joint": "axle", "voltage": lambda at: 6 * sin(at.t), "resistance": 0.5, "inductance": 0.05, "constant": 0.3,
        "gear": 3.0, "rotor_inertia": 0.01, "friction": 0.01}),
    "brake": ("add_brake", ("rocker", "ground"), {
        "joint": "D", "capacity": lambda at: 2 + at.q("A") ** 2, "reach": 0.05, "damping": 1e-3}),
    "clutch": ("add_clutch", ("coupler", "crank"), {"first": "A", "second": "B", "capacity": 2.0, "reach": 0.05}),
    "rolling": ("add_rolling_resistance", ("car", "wheel"), {"joint": "axle", "coefficient": 0.1, "radius": 0.3,
                                                             "load": 20.0, "speed": 0.5}),
    "brush": ("add_tyre", (None, "wheel"), {"wheel": "wheel", "radius": 0.6, "stiffness": 1e3, "damping": 20.0,
                                            "half_length": 0.05, "rolling": 0.01}),
    "magic": ("add_tyre", (None, "wheel"), {"wheel": "wheel", "radius": 0.6, "stiffness": 1e3, "model": "magic",
                                            "relaxation": (0.2, 0.4), "height": lambda x, y: 0.02 * sin(x) - 0.25}),
    "set": ("add_tyre", (None, "wheel"), {"wheel": "wheel", "radius": 0.6, "stiffness": 1e3, "model": "set",
                                          "coefficients": SET, "relaxation": 0.3}),
    "smooth": ("add_contact", ("ground", "arm"), {"first": "floor", "second": "ball", "stiffness": 1e3,
                                                  "dissipation": 0.3, "friction": 0.5, "slip_speed": 0.1}),
    "sticky": ("add_contact", ("ground", "car"), {"first": "floor", "second": "box", "stiffness": 1e3, "friction": 0.5,
                                                  "friction_model": "bristle", "reach": 0.1}),
    "hertz": ("add_contact", ("arm", "car"), {"first": "ball", "second": "box", "stiffness": 1e3, "exponent": 1.5,
                                              "friction": 0.5}),
}
#: what adds no force
OTHERS = {"add_armature", "add_body", "add_constraint", "add_contacts", "add_coupler", "add_frame", "add_joint",
          "add_output", "add_shape", "add_state"}


def bare() -> bc.Mechanism:
    """A four-bar, and a body that floats with a wheel and an arm on it."""
    m = bc.load("four_bar")
    m.add_joint("free", bc.Free(), m.ground, m.add_body("car", bc.Inertia(5.0, (0.02, 0.01, 0.03), (0.2, 0.3, 0.4))))
    m.add_body("wheel", bc.Inertia(1.0, (0, 0, 0), (0.02, 0.04, 0.02)))
    m.add_joint("axle", bc.Revolute("y"), "car", "wheel", bc.Pose((0.4, 0.1, 0)))
    m.add_body("arm", bc.Inertia(1.0, (0.1, 0, 0), (0.02, 0.04, 0.03)))
    m.add_joint("sleeve", bc.Cylindrical("z"), "car", "arm", bc.Pose((0, -0.2, 0.1)))
    m.add_shape(m.ground, bc.Plane(), bc.Pose((0, 0, -0.1)), role="collision", name="floor")
    m.add_shape("arm", bc.Sphere(0.3), role="collision", name="ball")
    m.add_shape("car", bc.Box((0.5, 0.4, 0.8)), role="collision", name="box")
    return m


def test_every_kind_is_here() -> None:
    there = {name for name in dir(bc.Mechanism) if name.startswith("add_")}
    assert {method for method, _, _ in EVERY.values()} == there - OTHERS


@cache
def moving() -> tuple[bc.System, np.ndarray, np.ndarray, dict[str, Any]]:
    """The machine with all of them, three states of it, and what the elements say."""
    m, rng = bare(), np.random.default_rng(3)
    m.add_armature("rotor", "C", 0.2)
    for name, (method, _, given) in EVERY.items():
        getattr(m, method)(name, **given)
    system, linkage = bc.compile(m, backend="numpy"), bc.compile(bc.load("four_bar"))
    closed = [linkage.assemble(q={"A": 0.5 + 0.1 * k}, u={"A": 2.0}) for k in range(3)]
    q, u = rng.normal(size=(3, system.nq)) * 0.2, rng.normal(size=(3, system.nu)) * 0.3
    where, fast = [system.coordinate_names.index(f"{j}.angle") for j in "ABCD"], [
        system.speed_names.index(f"{j}.angle") for j in "ABCD"]
    for k, state in enumerate(closed):
        q[k, where], u[k, fast] = state.q, state.u
    turn = [system.coordinate_names.index(f"free.{x}") for x in ("qw", "qx", "qy", "qz")]
    q[:, turn[0]] += 1.0
    q[:, turn] /= np.linalg.norm(q[:, turn], axis=1, keepdims=True)
    u[:, system.speed_names.index("axle.angle")] = 3.0
    assert np.abs(system.loop_error(q, t=T)).max() < 1e-12
    return system, q, u, system.element_forces(q, u, {"B": 8.0}, t=T)


def test_powers_are_the_rate_of_energy() -> None:
    system, q, u, found = moving()
    udot = system.forward_dynamics(q, u, {"B": 8.0}, t=T)
    rate = system.derivatives("kinetic_energy", q, u, along={"q": u, "u": udot}, closed=False, t=T)["along"]
    rate = rate + system.derivatives("potential_energy", q, along={"q": u}, closed=False, t=T)["along"]
    powers = np.array([e.power for e in found.values()])
    assert found.keys() == EVERY.keys() and np.abs(powers).max(axis=1).min() > 1e-6  # all of them act
    assert (np.abs(rate - powers.sum(axis=0)) < 1e-11 * np.abs(powers).sum(axis=0)).all()


def test_energy_and_losses_balance() -> None:
    """What `System.energy` counts changes by what is lost and by what is put in from outside."""
    system, q, u, found = moving()
    udot = system.forward_dynamics(q, u, {"B": 8.0}, t=T)
    rate = system.derivatives("energy", q, u, along={"q": u, "u": udot}, closed=False, t=T)["along"]
    lost = bc.analyze.dissipated_power(system, q, u, t=T)
    outside = found["actuator"].power + found["wrench"].power
    assert (np.abs(rate + lost - outside) < 1e-11 * np.abs([e.power for e in found.values()]).sum(axis=0)).all()


@pytest.mark.parametrize("name", EVERY)
def test_vectors_act_at_their_points(name: str) -> None:
    """Force and torque on the second body, and the opposite on the first, at the points reported, make the power."""
    system, q, u, elements = moving()
    found, (first, second) = elements[name], EVERY[name][1]

    def motion(body: str, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if body == "ground":
            return np.zeros((3, 3)), np.zeros((3, 3))
        own, twist = system.pose(q, body, t=T), system.velocity(q, u, body, t=T)
        return twist[:, 3:] + np.cross(twist[:, :3], point - own.position), twist[:, :3]

    rate, turning = motion(second, found.second_point)
    if name in ("sum", "belt", "clutch"):  # each joint of a sum has its own axis and share: here the first one
        joint, factor = {"sum": ("A", 1.0), "belt": ("B", 0.3), "clutch": ("A", 1.0)}[name]
        back, spin = motion({"A": "ground", "B": "crank"}[joint], found.second_point)
        power = factor * found.force * u[:, system.speed_names.index(f"{joint}.angle")]
        other = {"sum": "arm", "belt": "rocker", "clutch": "coupler"}[name]
        assert np.abs(found.first_point - found.second_point).max() > 0.05 and other == first
    elif first is None:
        back, spin, power = np.zeros((3, 3)), np.zeros((3, 3)), found.power
    else:
        back, spin = motion(first, found.second_point)
        power = found.power
        lever = np.cross(found.first_point - found.second_point, found.vector)
        assert np.abs(lever).max() < 1e-9 * max(1.0, np.abs(found.vector).max())  # one line of action
    total = ((rate - back) * found.vector).sum(-1) + ((turning - spin) * found.torque).sum(-1)
    np.testing.assert_allclose(total, power, rtol=1e-10, atol=1e-10)
    if EVERY[name][0] == "add_tyre":
        road = 0.02 * np.sin(found.first_point[:, 0]) - 0.25 if name == "magic" else 0.0
        assert np.abs(found.first_point[:, 2] - road).max() < (0.05 if name == "magic" else 1e-12)


BAD: tuple[Any, ...] = (float("nan"), float("inf"), 1e200, 10**400, "x", object(), 1 + 2j, lambda: 0.0, None, (1.0,),
                        [])


@pytest.mark.parametrize("name", EVERY)
def test_bad_numbers_are_refused_by_name(name: str) -> None:
    """And nothing is left of the element, nor of its states."""
    method, _, given = EVERY[name]
    m = bare()
    m.add_force_between("spring", **LINE, law=lambda at: 1.0)  # "rope" reads it
    start = len(m.force_elements), len(m.states), len(m.joints), len(m.armatures)
    add: Callable[..., Any] = getattr(m, method)
    hints = inspect.signature(getattr(bc.Mechanism, method)).parameters
    for label, value in given.items():
        if label in ("first", "second", "wheel", "body", "joint", "coordinate", "model", "friction_model", "axes"):
            continue  # names
        for bad in BAD:
            if bad is None and (hints[label].default is None or "None" in str(hints[label].annotation)):
                continue
            if callable(bad) and (callable(value) or "Law" in str(hints[label].annotation) or "Any" in str(
                    hints[label].annotation)):
                continue  # judged when the machine is compiled
            with pytest.raises((bc.ModelError, bc.FileError)) as told:
                add("an element", **{**given, label: bad})
            assert "an element" in str(told.value), (label, bad, told.value)
            assert (len(m.force_elements), len(m.states), len(m.joints), len(m.armatures)) == start, (label, bad)


#: numbers that stay numbers: they decide what is compiled, or are looked at before
FIXED = {("gas", "exponent"), ("hertz", "exponent"), ("set", "relaxation")}


def with_parameters() -> bc.Mechanism:
    """The same machine, with a parameter for every number of an element."""
    m = bare()
    m.add_armature("rotor", "C", 0.2)
    for name, (method, _, given) in EVERY.items():
        own = {label: m.parameter(f"{name} {label}", value) if isinstance(value, float) and (name, label) not in FIXED
               else value for label, value in given.items()}
        getattr(m, method)(name, **own)
    return m


def test_every_number_may_be_a_parameter() -> None:
    system, (_, q, u, wanted) = bc.compile(with_parameters(), backend="numpy"), moving()
    found = system.element_forces(q, u, {"B": 8.0}, t=T)
    for name, element in wanted.items():
        assert element.states.keys() == found[name].states.keys()
        for one, two in zip(element[:9], found[name], strict=False):
            np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-9, err_msg=name)
    slopes = system.derivatives("forward_dynamics", q[0], u[0], {"B": 8.0}, by="parameters", t=T)["parameters"]
    names = list(system.model.values)
    assert len(names) > 70
    for name in ("motor gear", "clutch capacity", "push dead_volume", "rolling load", "magic stiffness", "brake reach"):
        value = system.model.values[name]
        ends = [system.with_parameters(**{name: value * (1.0 + s * 1e-6)}).forward_dynamics(q[0], u[0], {"B": 8.0}, t=T)
                for s in (1.0, -1.0)]
        slope = (ends[0] - ends[1]) / (2e-6 * value)
        assert np.abs(slope).max() > 0.0, name
        np.testing.assert_allclose(slopes[:, names.index(name)], slope, rtol=1e-4, atol=1e-6 * np.abs(slope).max())


def test_parameters_of_elements_are_saved(tmp_path: Path) -> None:
    first = with_parameters()
    tyre = next(w for w in first.wrenches if w.name == "brush")
    first.add_output("load", lambda at: tyre.law.footprint(at).load)
    bc.save(first, tmp_path / "every.yaml")
    second = bc.load(tmp_path / "every.yaml")
    assert difference(first, second) is None
    _, q, u, wanted = moving()
    one = bc.compile(second, backend="numpy").with_parameters(**{"brush stiffness": 2e3})
    np.testing.assert_allclose(one.element_forces(q, u, t=T)["hertz"].vector, wanted["hertz"].vector, rtol=1e-9)
    assert np.abs(one.element_forces(q, u, t=T)["brush"].vector - wanted["brush"].vector).max() > 1.0


def test_parameters_of_another_machine_are_refused() -> None:
    other = bc.Mechanism("other").parameter("mu", 0.9)
    for name in ("push", "motor", "brake", "rolling", "brush"):
        method, _, given = EVERY[name]
        label = next(k for k, v in given.items() if isinstance(v, float))
        with pytest.raises(bc.ModelError, match="'an element'.* uses a parameter of another mechanism"):
            getattr(bare(), method)("an element", **{**given, label: other})


#: sums act on the bodies of all their joints, about z of the child: joint and factor
SUMS = {"sum": {"A": 1.0, "sleeve": -0.5}, "belt": {"B": 0.3, "C": -0.2}, "clutch": {"A": 1.0, "B": -1.0}}
#: what acts between the bodies of a joint is part of the joint's reaction
ON_JOINTS = {"add_joint_spring", "add_joint_force", "add_friction", "add_limit", "add_servo", "add_actuator",
             "add_belt", "add_torsion_bar", "add_dc_motor", "add_brake", "add_clutch", "add_rolling_resistance"}


@pytest.mark.parametrize("body", ["car", "arm", "wheel", "crank", "coupler", "rocker"])
def test_reactions_and_elements_move_every_body(body: str) -> None:
    """Newton's and Euler's laws of each body, with what joints and elements report."""
    system, q, u, found = moving()
    m, names = bare(), ["ground", *(b.name for b in bare().bodies)]
    udot = system.forward_dynamics(q, u, {"B": 8.0}, t=T)
    loads = system.reactions(q, u, {"B": 8.0}, udot=udot, t=T)
    pose, own = system.pose(q, body, t=T), m.body(body).inertia
    turn, arm = pose.rotation, pose.rotation @ np.asarray(own.com)
    motion, change = system.velocity(q, u, body, t=T), system.acceleration(q, u, udot, body, t=T)
    omega, alpha = motion[:, :3], change[:, :3]
    center = pose.position + arm
    push = own.mass * (change[:, 3:] + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm)) - m.gravity)
    xx, xy, xz, yy, yz, zz = own.inertia
    inertia = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.transpose(0, 2, 1)
    spin = np.einsum("nij,nj->ni", inertia, alpha) + np.cross(omega, np.einsum("nij,nj->ni", inertia, omega))
    force, moment = np.zeros((3, 3)), np.zeros((3, 3))
    for joint in m.joints:
        ends = names[joint.child], names[joint.parent]
        if body in ends:
            child = system.pose(q, ends[0], t=T) if joint.child else bc.Pose()
            axes = np.broadcast_to(child.rotation, (3, 3, 3))
            at = np.asarray(child.position) + axes @ np.asarray(joint.child_pose.position, dtype=float)
            sign = 1.0 if body == ends[0] else -1.0
            whole = sign * np.einsum("nij,nkj->nki", axes, loads[joint.name].reshape(3, 2, 3))
            force, moment = force + whole[:, 1], moment + whole[:, 0] + np.cross(at - center, whole[:, 1])
            for name, factors in SUMS.items():
                moment = moment + sign * factors.get(joint.name, 0.0) * found[name].force[:, None] * axes[:, :, 2]
    for name, (method, (first, second), _) in EVERY.items():
        if method not in ON_JOINTS and body in (first, second):
            e, sign = found[name], 1.0 if body == second else -1.0
            at = e.second_point if body == second else e.first_point
            force = force + sign * e.vector
            moment = moment + sign * (e.torque + np.cross(at - center, e.vector))
    size = np.abs([found[name].vector for name in EVERY]).max()
    assert np.abs(force - push).max() < 1e-11 * size and np.abs(moment - spin).max() < 1e-11 * size
