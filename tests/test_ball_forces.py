"""Forces along single speeds of joints with quaternions: laws of the machine, dampers, friction, actuators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.formulations import METHODS

AXES = ("wx", "wy", "wz")
INERTIA = np.array([0.2, 0.3, 0.45])


def top() -> bc.Mechanism:
    """A body that turns about its centre of mass, with something of every kind on its speeds."""
    m = bc.Mechanism("top")
    m.add_body("body", bc.Inertia(2.0, inertia=tuple(INERTIA)))
    m.add_joint("ball", bc.Spherical(), m.ground, "body")
    m.add_joint_force("law", "ball", lambda at: 0.3 * at.axes("body")[0].z - 0.2 * at.u("ball.wy"), coordinate="wx")
    m.add_joint_spring("damper", "ball", damping=m.parameter("c", 0.7), coordinate="wy")
    m.add_friction("friction", "ball", coulomb=0.4, viscous=0.1, speed=0.5, coordinate=2)
    m.add_servo("spin", "ball", target_rate=2.0, damping=0.6, coordinate="wz")
    m.add_actuator("motor", "ball", 0.25, coordinate="wz")
    m.add_brake("brake", "ball", capacity=0.5, coordinate="wx")
    return m


def moments(z: float, u: np.ndarray, bend: float, c: float = 0.7) -> dict[str, float]:
    """What each of them exerts, by hand; z is the height of the body's x axis."""
    v = u[0]
    slope = 1e-3 * (v - abs(v) * bend) / (1e-3 + 1e-3 * abs(v))
    return {"law": 0.3 * z - 0.2 * u[1], "damper": -c * u[1],
            "friction": -0.4 * np.tanh(u[2] / 0.5) - 0.1 * u[2], "spin": 0.6 * (2.0 - u[2]), "motor": 0.25,
            "brake": -0.5 * (bend + slope)}


@pytest.mark.parametrize("method", METHODS)
def test_euler_equations(method: str) -> None:
    for backend in ("llvm", "numpy"):
        system = bc.compile(top(), method, backend)
        state = system.assemble(guess=system.normalize([0.8, 0.3, -0.4, 0.2, 0.0]), u={"ball": [0.5, -1.1, 0.8],
                                                                                      "brake bend": 0.3})
        u, turn = state.u[:3], system.pose(state.q, "body").rotation
        each = moments(turn[2, 0], u, 0.3)
        moment = np.array([each["law"] + each["brake"], each["damper"], each["friction"] + each["spin"] + 0.25])
        wanted = (moment - np.cross(u, INERTIA * u)) / INERTIA
        tau = {"ball": [0.0, 0.0, 9.0]}
        assert np.abs(system.forward_dynamics(state, tau)[:3] - wanted).max() < 1e-12
        for name, found in system.element_forces(state, tau=tau).items():
            k = {"law": 0, "brake": 0, "damper": 1}.get(name, 2)
            assert abs(found.force - each[name]) < 1e-12 and abs(found.power - each[name] * u[k]) < 1e-12
            assert np.abs(found.torque - turn[:, k] * each[name]).max() < 1e-12 and np.isnan(found.length)
        lost = -sum(each[name] * u[k] for name, k in (("damper", 1), ("friction", 2), ("law", 0), ("spin", 2),
                                                      ("brake", 0)))
        assert abs(bc.analyze.dissipated_power(system, state) - lost) < 1e-12


def test_derivatives_and_inverse() -> None:
    system = bc.compile(top())
    state = system.assemble(guess=system.normalize([0.8, 0.3, -0.4, 0.2, 0.0]), u={"ball": [0.5, -1.1, 0.8]})
    found = system.derivatives("forward_dynamics", state.q, state.u, np.zeros(4), by=("q", "u", "parameters"))
    for by, size in (("q", 4), ("u", 4)):
        for k, e in enumerate(np.eye(size) * 1e-6):
            q, u = ([system.integrate(state.q, s * e) for s in (1, -1)], [state.u] * 2) if by == "q" else (
                [state.q] * 2, [state.u + e, state.u - e])
            one, two = (system.forward_dynamics(a, b) for a, b in zip(q, u, strict=True))
            assert np.abs(found[by][:, k] - (one - two) / 2e-6).max() < 1e-6
    udot = system.forward_dynamics(state)
    assert np.abs(system.inverse_dynamics(state, udot)).max() < 1e-12


def arm() -> bc.Mechanism:
    """A crank, a rod on a ball and a universal joint, a sleeve."""
    m = bc.Mechanism("sleeve", gravity=(0.3, -9.81, 0.5))
    for name, mass, size, com in (("crank", 1.0, (0.3, 0.1, 0.05), (0.15, 0, 0)),
                                  ("rod", 0.7, (1.0, 0.1, 0.08), (0.5, 0, 0)),
                                  ("piston", 0.9, (0.2, 0.1, 0.15), (0.02, 0.03, 0))):
        m.add_body(name, bc.Inertia.box(mass, size, com))
    m.add_joint("crank", bc.Revolute("z"), m.ground, "crank")
    m.add_joint("ball", bc.Spherical(), "rod", "crank", child_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint("cardan", bc.Universal("y", "z"), "rod", "piston", parent_pose=bc.Pose((1.0, 0, 0)))
    m.add_joint("sleeve", bc.Cylindrical("x"), "piston", m.ground, child_pose=bc.Pose((1.0, 0.1, 0.1)))
    m.add_friction("friction", "ball", coulomb=0.4, viscous=0.1, speed=0.5, coordinate="wz")
    m.add_joint_force("law", "ball", lambda at: 2.0 * at.q("crank") - at.omega("rod").x, coordinate="wx")
    m.add_joint_spring("damper", "ball", damping=0.7, coordinate="wy")
    return m


def seen(m: bc.Mechanism, cut: str) -> dict[str, np.ndarray]:
    system = bc.compile(m, backend="numpy", cut=[cut])
    state = system.assemble(q={"crank": 0.4, "sleeve.angle": 0.1}, u={"crank": 1.1, "sleeve.angle": -0.7})
    udot = system.forward_dynamics(state)
    out: dict[str, Any] = {b: system.acceleration(state.q, state.u, udot, b) for b in system.body_names}
    out |= {f"load of {j}": system.reactions(state)[j] for j in ("crank", "ball", "cardan", "sleeve")}
    for name, e in system.element_forces(state).items():
        out |= {f"{name}.{field}": value for field, value in e._asdict().items() if not isinstance(value, dict)}
    out["lost"] = bc.analyze.dissipated_power(system, state)
    run = system.simulate(state, 0.01, step=1e-3, stepper="rk8")
    out |= {f"{name} in a run": run.element(name)["torque"].values for name in ("law", "friction", "damper")}
    out |= {"energy": run["energy"].values, "torques": run.torques("ball", of="elements").values}
    return out


def test_nobody_sees_where_the_loop_is_cut(tmp_path: Path) -> None:
    m = arm()
    wanted = seen(m, "sleeve")
    assert np.abs(wanted["law.torque"]).max() > 0.05 and np.isnan(wanted["law.length"])
    bc.save(m, tmp_path / "m.yaml")
    for machine, cut in ((m, "crank"), (bc.load(tmp_path / "m.yaml"), "ball")):
        found = seen(machine, cut)
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            assert np.allclose(found[key], value, rtol=1e-9, atol=1e-9, equal_nan=True), (cut, key)


def test_large_machines_have_them() -> None:
    """Rolled into loops over links, beside the reference."""
    m = bc.Mechanism("rope", gravity=(0, 0, -9.81))
    for k in range(52):
        m.add_body(f"b{k}", bc.Inertia.box(1.0, (0.1, 0.1, 0.3), (0, 0, -0.15)))
        m.add_joint(f"j{k}", bc.Spherical(), m.ground if k == 0 else f"b{k - 1}", f"b{k}",
                    parent_pose=bc.Pose((0, 0, -0.3 if k else 0.0)))
        m.add_friction(f"f{k}", f"j{k}", viscous=0.3, coordinate="wx")
    m.add_joint_force("law", "j7", lambda at: -at.u("j9.wy") + at.position("b51").x, coordinate="wz")
    rolled, reference = bc.compile(m), bc.compile(m, backend="numpy")
    q, u = reference.random_state(np.random.default_rng(2))
    wanted = reference.forward_dynamics(q, u)
    assert np.abs(rolled.forward_dynamics(q, u) - wanted).max() < 1e-8 * np.abs(wanted).max()
    loads = [s.element_forces(q, u)["law"].torque for s in (rolled, reference)]
    assert np.abs(loads[0] - loads[1]).max() < 1e-10 and np.abs(loads[1]).max() > 0.0


@pytest.mark.parametrize(("add", "said"), [
    (lambda m: m.add_joint_force("f", "ball", lambda q, u: -u, coordinate="wx"),
     r"joint 'ball': a Spherical has no single coordinates to act on; along its speeds wx, wy, wz act laws of the mac"),
    (lambda m: m.add_joint_spring("f", "ball", stiffness=2.0, coordinate="wx"), r"bushings"),
    (lambda m: m.add_servo("f", "ball", stiffness=2.0, coordinate="wx"), r"no single coordinates"),
    (lambda m: m.add_limit("f", "ball", upper=1.0, stiffness=2.0, coordinate="wx"), r"no single coordinates"),
    (lambda m: m.add_friction("f", "ball", viscous=1.0), r"joint 'ball' has the speeds wx, wy, wz; say which one"),
    (lambda m: m.add_friction("f", "ball", viscous=1.0, coordinate="qx"), r"no coordinate 'qx'; it has wx, wy, wz"),
    (lambda m: bc.compile((m.add_output("o", lambda at: at.element("law").length), m)[1]),
     r"output 'o': the element 'law' has no length")])
def test_what_needs_a_coordinate_is_refused_by_name(add: Any, said: str) -> None:
    with pytest.raises(bc.ModelError, match=said):
        add(top())
