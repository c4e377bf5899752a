"""`bias` and `inverse_dynamics` by terms: gravity, inertia, elements and joint friction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import math as bm
from bellcrank.mechanism.flexible.beam_elements import BeamSection
from bellcrank.mechanism.forces.coordinate_forces import Friction

TERMS = ("gravity", "inertia", "elements", "friction")


def machine(kind: str, elements: bool = True, friction: bool = True) -> bc.Mechanism:
    """A machine with springs, servos, wrenches, laws and friction along tree joints, loop joints and between bodies, or
    without these."""
    m = bc.load({"tree": "arm", "driven": "arm", "rolled": "arm", "driven loop": "five_bar"}.get(kind, kind))
    one, two, *_, last = (j.name for j in m.joints)
    if kind.startswith("driven"):
        m.prescribe(two, lambda t: 0.3 * bm.sin(2.0 * t) + 0.4)
    if elements:
        m.add_servo("servo", one, target=0.3, stiffness=3.0, damping=0.4, offset=bm.sin)
        m.add_joint_spring("return", last, stiffness=2.0, damping=0.3)
        m.add_spring("strut", m.ground, m.bodies[-1], (0.3, 0.1, -2.0), (0.1, 0.0, 0.1), stiffness=5.0, damping=0.2)
        m.add_wrench("push", m.bodies[0], force=(1.0, 2.0, 3.0), at=(0.1, 0.2, 0.3))
        m.add_joint_force("follower", one, lambda at: 2.0 * at.element("strut").rate - (
            at.element("both").force if friction else 0.0))
    if friction:
        m.add_friction("bearing", one, coulomb=0.5, viscous=0.2, speed=0.1)
        m.add_friction("pin", last, coulomb=0.3, speed=0.1)
        m.add_friction("both", {one: 1.0, two: -2.0}, viscous=0.1)
    return m


def compared(m: bc.Mechanism, size: tuple[int, ...] = (3,), **options: Any) -> tuple[bc.System, bc.State, np.ndarray]:
    system = bc.compile(m, **options)
    state = system.random_state(np.random.default_rng(3), size=size)
    return system, state, system.forward_dynamics(state)


def near(found: np.ndarray, wanted: np.ndarray, size: float = 1.0) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-11 * (size + float(np.abs(wanted).max(initial=0.0))))


@pytest.mark.parametrize(("kind", "options"), [
    ("tree", {}), ("tree", {"method": "dense", "backend": "numpy"}), ("driven", {}), ("driven loop", {}),
    ("four_bar", {"cut": ["A"]}), ("four_bar", {"method": "dense"}), ("slider_crank", {"backend": "numpy"}),
    ("five_bar", {"method": "recursive"}), ("rolled", {"schedule": "rolled"})])
def test_terms_are_those_of_machines_without_the_others(kind: str, options: dict[str, Any]) -> None:
    """The oracle: other machines, made without elements or friction, and without gravity."""
    system, state, udot = compared(machine(kind), **options)
    light = machine(kind, False, False)
    light.gravity = (0.0, 0.0, 0.0)
    bare, rough, weightless = (bc.compile(m, **{**options, "backend": "numpy"}) for m in (
        *(machine(kind, *has) for has in ((False, False), (False, True))), light))
    functions: dict[str, Callable[..., np.ndarray]] = {
        "bias": lambda s, **more: s.bias(state, **more),
        "tree": lambda s, **more: s.bias(state, speeds="tree", **more),
        "inverse": lambda s, **more: s.inverse_dynamics(state, udot, **more)}
    if "cut" in options:  # sums of coordinates keep joints in the tree that are cut without them
        del functions["tree"]
    for look in functions.values():
        whole = look(system)
        size = float(np.abs(whole).max() + np.abs(look(system, terms="inertia")).max())
        near(sum(look(system, terms=x) for x in TERMS), whole, size)
        near(look(system, terms=("inertia", "gravity")), look(bare), size)
        near(look(system, terms=["inertia"]), look(weightless), size)
        near(look(system, terms="elements"), whole - look(rough), size)
        near(look(system, terms="friction"), look(rough) - look(bare), size)
        near(look(system, terms=TERMS[2:]), whole - look(bare), size)
        assert min(np.abs(look(system, terms=x)).max() for x in TERMS) > 1e-3


def test_friction_is_what_add_friction_says() -> None:
    system, state, udot = compared(machine("tree"))
    u = state.u
    expected = np.zeros_like(u)
    laws = {0: Friction(0.5, 0.2, 0.1), system.nu - 1: Friction(0.3, 0.0, 0.1)}
    for joint, law in laws.items():
        expected[:, joint] -= np.array([law.force(0.0, x) for x in u[:, joint]])
    total = u[:, 0] - 2.0 * u[:, 1]
    expected[:, 0] += 0.1 * total
    expected[:, 1] -= 0.2 * total
    near(system.inverse_dynamics(state, udot, terms="friction"), expected, 100.0)


def test_gravity_is_the_slope_of_potential_energy_and_parameters_and_wrenches_count() -> None:
    m = bc.load("four_bar")
    m.add_body("load", bc.Inertia.point(m.parameter("mass", 2.0), (0.1, 0.2, 0.0)))
    m.add_joint("bolt", bc.Weld(), m.bodies[1], "load")
    m.add_friction("bearing", "A", viscous=0.3)
    system = bc.compile(m)
    state = system.random_state(np.random.default_rng(0))
    many = system.with_parameters(mass=np.array([1.0, 2.0, 5.0]))
    slope = many.derivatives("potential_energy", np.tile(state.q, (3, 1)), by="q")["q"]
    near(many.bias(np.tile(state.q, (3, 1)), np.tile(state.u, (3, 1)), terms="gravity"), slope, 100.0)
    wrenches = np.random.default_rng(0).normal(size=(len(system.body_names), 6))
    both = system.bias(state, terms="friction", wrenches=wrenches)
    near(both, system.bias(state, terms="friction") + system.bias(state, wrenches=wrenches) - system.bias(state), 100.0)
    near(system.bias(state, terms=()), np.zeros(1))
    near(system.reduced(state, terms="gravity").bias, system.bias(state, terms="gravity"))


def test_elasticity_of_flexible_bodies_is_an_element() -> None:
    rod = bc.FlexibleBody.beam(1.0, BeamSection.round(0.01, E=2e9, rho=7800.0), elements=6, modes={"y": 2},
                               damping=0.01)
    rod = replace(rod, stiffness=rod.stiffness + 0.1 * np.sqrt(np.prod(np.diag(rod.stiffness))))  # modes that meet
    m = bc.Mechanism("swinging rod")
    m.add_joint("hinge", bc.Revolute("z"), m.ground, m.add_body("rod", rod))
    system = bc.compile(m)
    q, u = np.array([0.3, 0.01, -0.002]), np.array([1.0, 0.1, 0.2])
    elastic = system.bias(q, u, terms="elements")
    near(elastic, np.concatenate([[0.0], rod.stiffness @ q[1:] + rod.damping @ u[1:]]), 1e3)
    near(system.bias(q, u, terms=("gravity", "inertia")), system.bias(q, u) - elastic, 1e3)


def test_motions_of_actuated_joints_are_checked_for_the_sum_of_terms() -> None:
    m = bc.load("quadruped")
    robot = bc.compile(m)
    state = robot.random_state(np.random.default_rng(0))
    legs = [j.name for j in m.joints[1:]]
    udot = robot.forward_dynamics(state, np.zeros(robot.nu))
    near(robot.inverse_dynamics(state, udot, actuated=legs), np.zeros(robot.nu), 100.0)
    with pytest.raises(bc.ModelError, match="the motion needs a force at"):
        robot.inverse_dynamics(state, udot, actuated=legs, terms="gravity")


def test_unknown_terms_are_refused() -> None:
    arm = bc.compile(bc.load("arm"))
    state = arm.random_state(np.random.default_rng(0))
    with pytest.raises(bc.ModelError, match="bias: no term 'gravty'; there are gravity, inertia, elements, friction"):
        arm.bias(state, terms="gravty")
    with pytest.raises(bc.ModelError, match="inverse_dynamics: no term 'damping'"):
        arm.inverse_dynamics(state, state.u, terms=("gravity", "damping"))


XML = """<mujoco><option gravity="0.3 -0.2 -9.81"/><worldbody><body pos="0 0 1"><joint name="a" axis="0 1 0"
frictionloss="0.3" damping="0.5" stiffness="4" springref="20"/><geom type="capsule" size="0.05 0.3" pos="0.3 0 0"/>
<body pos="0.6 0 0"><joint name="b" type="slide" axis="1 0 0.3" frictionloss="2" armature="0.1"/><joint name="c"
axis="0 0 1" damping="0.2"/><geom type="box" size="0.1 0.2 0.05" pos="0.1 0.1 0"/></body></body></worldbody>
<actuator><position joint="c" kp="7" kv="0.4"/></actuator></mujoco>"""


def test_mujoco(tmp_path: Path) -> None:
    """Its qfrc_bias is gravity and velocity terms; springs and dampers are in qfrc_passive, servos in qfrc_actuator."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    (tmp_path / "arm.xml").write_text(XML)
    system = bc.compile(bc.load(tmp_path / "arm.xml"))
    q, u = np.random.default_rng(0).normal(size=(2, 3))
    data.qpos, data.qvel = q, u
    mujoco.mj_forward(model, data)
    assert system.speed_names == ("a.angle", "b.slide", "c.angle")
    near(system.bias(q, u, terms=("gravity", "inertia")), data.qfrc_bias)
    near(system.bias(q, u, terms="elements"), -data.qfrc_passive - data.qfrc_actuator)
    near(system.bias(q, u, terms="friction"), np.array([0.3, 2.0, 0.0]) * np.tanh(u / 1e-3))
