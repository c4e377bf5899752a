"""Functions of machines as the methods of `System` compute them, to compare with what other libraries are given."""

from __future__ import annotations

from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.system import force_elements

#: functions whose arguments are not (q, u)
_OF_POSITION = ("potential_energy", "center_of_mass", "loop_error")
POINT = np.array([0.1, -0.2, 0.3])


def by_method(system: bc.System, name: str, given: dict[str, Any], t: float = 0.0, wrenches: Any = None) -> np.ndarray:
    """The value of a function by its method, of all joints that carry links; inputs by name."""
    kind, _, body = name.partition(":")
    q, u = given["q"], given.get("u")
    forced = {"wrenches": wrenches} if wrenches is not None else {}
    if kind == "pose":
        pose = system.pose(q, body, t=t)
        return np.concatenate([pose.rotation.reshape(*pose.rotation.shape[:-2], 9), pose.position], axis=-1)
    if kind == "velocity":
        return system.velocity(q, u, body, POINT, t=t)
    if kind == "acceleration":
        return system.acceleration(q, u, given["udot"], body, POINT, t=t)
    if kind == "jacobian":
        return system.jacobian(q, body, POINT, t=t, speeds="tree")
    if kind == "jacobian_rate":
        return system.jacobian_rate(q, u, body, POINT, t=t)
    if name == "forward_dynamics":
        return system.forward_dynamics(q, u, given["tau"], t=t, **forced)
    if name == "inverse_dynamics":
        return system.inverse_dynamics(q, u, given["udot"], t=t, **forced)
    if name == "reactions":
        return np.stack([*system.reactions(q, u, given["tau"], t=t, **forced).values()], axis=-2)
    if name == "stored_energy":
        return force_elements.stored_energy(system.plans, q, t=t)
    if name in ("mass_matrix", "bias", "momenta"):
        state = (q,) if name == "mass_matrix" else (q, u)
        return np.asarray(getattr(system, name)(*state, t=t, speeds="tree", **forced))
    if name in _OF_POSITION:
        return np.asarray(getattr(system, name)(q, t=t))
    return np.asarray(getattr(system, name)(q, u, t=t, **forced))


def sprung() -> bc.Mechanism:
    """A tree with parameters, springs on and between bodies, limits of a drive, a ball joint and a law of time."""
    m = bc.Mechanism("sprung", gravity=(0.0, 0.0, -9.81))
    load, stiffness = m.parameter("load", 2.0), m.parameter("stiffness", 40.0)
    m.add_body("boom", bc.Inertia(3.0, (0.4, 0.0, 0.1), (0.1, 0.2, 0.3)))
    m.add_body("bob", bc.Inertia(load, (0.0, 0.0, -0.2), (0.05, 0.06, 0.07)))
    m.add_body("turret", bc.Inertia(4.0, (0.0, 0.1, 0.2), (0.3, 0.2, 0.1)))
    m.add_joint("turn", bc.Revolute("z"), m.ground, "turret")
    m.add_joint("lift", bc.Revolute("y"), "turret", "boom", bc.Pose((0.1, 0.0, 0.5)))
    m.add_joint("hook", bc.Spherical(), "boom", "bob", bc.Pose((1.0, 0.0, 0.0)))
    m.prescribe("turn", lambda t: 0.3 * bc.math.sin(2.0 * t))
    m.add_joint_spring("coil", "lift", stiffness=stiffness, damping=1.5, rest=0.2)
    m.add_actuator("motor", "lift", 3.0)
    m.add_spring("rope", "turret", "bob", (0, 0, 1.0), (0, 0, 0), stiffness=20.0, damping=2.0, length=0.5)
    return m


#: what is compared, of every machine and of those with loops
AT_STATE = ("forward_dynamics", "inverse_dynamics", "bias", "mass_matrix", "momenta", "reactions", "kinetic_energy",
            "potential_energy", "energy", "center_of_mass", "momentum", "stored_energy")
OF_BODY = ("pose", "velocity", "acceleration", "jacobian", "jacobian_rate")
OF_LOOPS = ("loop_error", "loop_rate_error")
