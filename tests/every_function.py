"""Every public function of a machine at a state, as arrays by name, for tests that compare two machines.

`FUNCTIONS` has one entry for every public method of `System`; `test_every_cut.py` finds a method that is neither there
nor in `OTHERWISE`, so that a new one cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import bellcrank as bc

Things = dict[str, np.ndarray]


@dataclass(frozen=True)
class At:
    """A closed state, forces along all joints, wrenches on all bodies, and the accelerations that these make."""

    state: bc.State
    tau: np.ndarray
    wrenches: np.ndarray
    udot: np.ndarray
    body: str
    slopes: tuple[str, ...] = ("forward_dynamics", "inverse_dynamics", "velocity", "momenta", "bias", "mass_matrix",
                               "jacobian", "energy", "reactions")

    @classmethod
    def of(cls, system: bc.System, state: bc.State, rng: np.random.Generator) -> At:
        """Forces and wrenches by chance."""
        tau, wrenches = rng.normal(size=system.nu), rng.normal(size=(len(system.body_names), 6))
        udot = system.forward_dynamics(state, tau, wrenches=wrenches)
        return cls(state, tau, wrenches, udot, system.body_names[-1])


Look = Callable[[bc.System, At], Any]


def elements(system: bc.System, at: At) -> Things:
    """What force elements say of themselves."""
    found = {name: {**own._asdict(), **own.states} for name, own in system.element_forces(at.state, at.tau).items()}
    return {f"{name}.{field}": np.asarray(value) for name, own in found.items() for field, value in own.items()
            if field != "states" and not np.isnan(value).any()}


def slopes(system: bc.System, at: At) -> Things:
    """Derivatives by everything that the functions depend on."""
    given = {"forward_dynamics": (at.tau,), "inverse_dynamics": (at.udot,), "reactions": (at.tau,)}
    more = {"forward_dynamics": ("tau",), "inverse_dynamics": ("udot",), "reactions": ("tau",)}
    out = {}
    for name in at.slopes:
        body = at.body if name in ("velocity", "jacobian") else None
        by = ("q",) if name in ("mass_matrix", "jacobian") else ("q", "u", *more.get(name, ()))
        found = system.derivatives(name, at.state, *given.get(name, ()), by=by, body=body)
        out |= {f"{name} by {x}": np.asarray(found[x]) for x in by} | {f"value of {name}": np.asarray(found.value)}
        assert found.columns["q"] == system.independent_speeds
        if name in ("momenta", "bias", "mass_matrix", "jacobian"):
            here = (at.state, body) if body is not None else (at.state,)
            np.testing.assert_allclose(found.value, getattr(system, name)(*here), rtol=1e-9, atol=1e-11)
    return out


def reduced(system: bc.System, at: At) -> Things:
    found = system.reduced(at.state)
    assert found.speeds == system.independent_speeds
    return {"M": found.mass_matrix, "b": found.bias, "motions": found.motions, "drift": found.drift,
            "Jacobian": found.jacobian(at.body)}


#: by the name of a method: what it computes
FUNCTIONS: Mapping[str, Look] = {
    "acceleration": lambda s, at: s.acceleration(at.state, at.udot, at.body, (0.1, 0.2, 0.3)),
    "bias": lambda s, at: s.bias(at.state, wrenches=at.wrenches),
    "center_of_mass": lambda s, at: s.center_of_mass(at.state),
    "consistent_acceleration": lambda s, at: s.consistent_acceleration(at.state, at.udot),
    "derivatives": slopes,
    "difference": lambda s, at: s.difference(s.neutral(), at.state.q),
    "drive_forces": lambda s, at: s.drive_forces(at.state, at.tau),
    "element_forces": elements,
    "energy": lambda s, at: s.energy(at.state),
    "forward_dynamics": lambda s, at: s.forward_dynamics(at.state, at.tau, wrenches=at.wrenches),
    "hamilton": lambda s, at: s.hamilton(at.state.q, s.momenta(at.state, speeds="tree"), at.tau, t=at.state.t)[0],
    "integrate": lambda s, at: s.integrate(at.state.q, 0.1 * at.state.u),
    "inverse_dynamics": lambda s, at: s.inverse_dynamics(at.state, at.udot, wrenches=at.wrenches),
    "jacobian": lambda s, at: s.jacobian(at.state.q, at.body, t=at.state.t),
    "kinetic_energy": lambda s, at: s.kinetic_energy(at.state),
    "mass_matrix": lambda s, at: s.mass_matrix(at.state),
    "momenta": lambda s, at: s.momenta(at.state),
    "momentum": lambda s, at: s.momentum(at.state),
    "neutral": lambda s, at: s.neutral(),
    "normalize": lambda s, at: s.normalize(1.1 * at.state.q),
    "pose": lambda s, at: {x: getattr(s.pose(at.state), x) for x in ("position", "rotation")},
    "potential_energy": lambda s, at: s.potential_energy(at.state),
    "reactions": lambda s, at: np.stack([*s.reactions(at.state, at.tau, wrenches=at.wrenches).values()]),
    "reduced": reduced,
    "velocity": lambda s, at: s.velocity(at.state, at.body, (0.1, 0.2, 0.3)),
    "assemble": lambda s, at: np.concatenate(s.assemble(at.state.q, at.state.u, t=at.state.t)[:2]),
    "project": lambda s, at: np.concatenate(s.project(at.state)[:2]),
    "inverse_kinematics": lambda s, at: s.inverse_kinematics(
        bc.targets.BodyPosition(at.body, s.pose(at.state, at.body).position), guess=at.state).state.q,
}
#: methods that make other machines, count, or run, which have tests of their own; and functions of the spanning tree
OTHERWISE = {"attach", "bind", "jacobian_rate", "lock", "loop_error", "loop_rate_error", "operation_count",
             "random_state", "regressor", "release", "simulate", "state", "with_parameters"}


def everything(system: bc.System, at: At, without: tuple[str, ...] = ()) -> Things:
    """All of it, one level deep."""
    out: Things = {}
    for name, look in FUNCTIONS.items():
        if name not in without:
            found = look(system, at)
            out |= {f"{name}: {key}": np.asarray(x) for key, x in found.items()} if isinstance(found, Mapping) else {
                name: np.asarray(found)}
    return out


def differences(found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> Things:
    """By name: how far the numbers are apart, as a part of their own size."""
    assert found.keys() == wanted.keys()
    out = {}
    for name, value in wanted.items():
        assert np.shape(found[name]) == np.shape(value), name
        size = 1.0 + np.abs(value).max(initial=0.0)
        out[name] = np.abs(found[name] - value).max(initial=0.0) / size
    return out
