"""A `State` is accepted wherever q, or q and u, are; its time is used unless another is given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import math as bm


def law(t: Any) -> Any:
    return 0.2 * bm.sin(3.0 * t)


def timed() -> bc.System:
    """A four-bar on a slide that moves as time says."""
    m = bc.load("four_bar")
    body = m.add_body("cart", bc.Inertia.box(1.0, (0.1, 0.1, 0.1), (0.02, 0.03, 0.0)))
    m.add_joint("rail", bc.Prismatic("x"), m.ground, body)
    tip = m.add_body("tip", bc.Inertia.box(1.0, (0.1, 0.1, 0.1), (0.1, 0.0, 0.0)))
    m.add_joint("pin", bc.Revolute("z"), body, tip)
    m.prescribe("rail", law)
    m.add_spring("spring", "cart", "coupler", (0, 0, 0.1), (0.5, 0, 0), stiffness=20.0, damping=1.0)
    return bc.compile(m)


@pytest.fixture(scope="module")
def machine() -> tuple[bc.System, bc.State]:
    system = timed()
    return system, system.assemble(q={"A": 0.5, "pin": 0.3}, u={"A": 1.0, "pin": 0.7}, t=0.4)


SPEEDS = np.linspace(0.0, 1.0, 6)
#: every method of a position or motion: its inputs in place of which a state may stand, and what follows them
METHODS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "forward_dynamics": ("qu", (SPEEDS,)), "inverse_dynamics": ("qu", ("udot",)), "drive_forces": ("qu", ()),
    "mass_matrix": ("q", ()), "bias": ("qu", ()), "momenta": ("qu", ()), "hamilton": ("qp", (SPEEDS,)),
    "reactions": ("qu", ({"A": 0.5},)), "pose": ("q", ("tip",)), "velocity": ("qu", ("tip", (0.1, 0.2, 0.3))),
    "acceleration": ("qu", (SPEEDS, "tip")), "jacobian": ("q", ("tip",)), "jacobian_rate": ("qu", ("tip",)),
    "center_of_mass": ("q", ()), "momentum": ("qu", ()), "kinetic_energy": ("qu", ()), "potential_energy": ("q", ()),
    "energy": ("qu", ()), "loop_error": ("q", ()), "loop_rate_error": ("qu", ()), "reduced": ("qu", ()),
    "consistent_acceleration": ("qu", ({"A": 1.0},)), "regressor": ("qu", (SPEEDS,)), "element_forces": ("qu", ()),
    "assemble": ("qu", ()), "project": ("qu", ())}
#: the same of `bellcrank.analyze`
ANALYSES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "loop_jacobian": ("q", ()), "loop_coordinates": ("q", ("D",)), "stored_energy": ("q", ()),
    "loop_drive": ("q", ({"D": 2.0},)), "loop_speeds": ("qu", ("D",)), "dissipated_power": ("qu", ()),
    "loop_acceleration_error": ("qu", ("udot",)), "loop_loads": ("qu", (0.0 * SPEEDS, "udot")),
    "element_wrenches": ("qu", ()), "actuator_forces": ("qu", (SPEEDS,)), "body_energies": ("qu", ()),
    "contacts": ("qu", ()), "mass_factors": ("q", ())}
Pair = Callable[[bc.System, bc.State], tuple[Any, Any]]
#: methods that take a state in another way: with it, and with arrays
OTHERS: dict[str, Pair] = {
    "integrate": lambda s, x: (s.integrate(x, 0.1 * SPEEDS), s.integrate(x.q, 0.1 * SPEEDS)),
    "difference": lambda s, x: (s.difference(s.neutral(), x), s.difference(s.neutral(), x.q)),
    "normalize": lambda s, x: (s.normalize(x), s.normalize(x.q)),
    "derivatives": lambda s, x: (
        [s.derivatives("bias", x, by="q")["q"], s.derivatives("mass_matrix", x, by="q")["q"]],
        [s.derivatives("bias", x.q, x.u, by="q", t=x.t)["q"], s.derivatives("mass_matrix", x.q, by="q", t=x.t)["q"]]),
    "simulate": lambda s, x: (s.simulate(x, 0.002), s.simulate((x.q, x.u, x.t), 0.002)),
    "bind": lambda s, x: (s.bind("bias", x)(), s.bind("bias", x.q, x.u, np.array([x.t]))()),
    "attach": lambda s, x: (s.release("D").attach("D", at=x).dof, s.release("D").attach("D", at=x.q, t=x.t).dof),
}
#: methods and analyses without a state among their arguments
WITHOUT = {"neutral", "state", "random_state", "inverse_kinematics", "operation_count", "with_parameters", "release",
           "lock"}


def pieces(made: Any) -> list[Any]:
    """All numbers in a result."""
    if isinstance(made, bc.Result):
        return [made.q.values, made.u.values, made["time"].values]
    if isinstance(made, bc.State):
        return [made.q, made.u, made.t]
    if isinstance(made, dict):
        return [x for part in made.values() for x in pieces(part)]
    if isinstance(made, (list, tuple)):
        return [x for part in made for x in pieces(part)]
    if isinstance(made, bc.Pose):
        return [made.rotation, made.position]
    if is_dataclass(made):
        return [x for f in fields(made) if not f.name.startswith("_") for x in pieces(getattr(made, f.name))]
    return [made]


def compare(found: Any, wanted: Any) -> None:
    for a, b in zip(pieces(found), pieces(wanted), strict=True):
        np.testing.assert_array_equal(a, b)


def calls(system: bc.System, state: bc.State, method: Callable[..., Any], inputs: str, rest: tuple[Any, ...]) -> None:
    """With a state, with a state at another time than that which is given, and with arrays."""
    rest = tuple(system.forward_dynamics(state) if isinstance(x, str) and x == "udot" else x for x in rest)
    arrays = {"q": state.q, "u": state.u, "p": system.momenta(state, speeds="tree") if "p" in inputs else None}
    wanted = method(*(arrays[x] for x in inputs), *rest, t=state.t)
    compare(method(state, *rest), wanted)
    compare(method(state.replace(t=0.0), *rest, t=state.t), wanted)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_a_state(name: str, machine: tuple[bc.System, bc.State]) -> None:
    system, state = machine
    calls(system, state, getattr(system, name), *METHODS[name])


@pytest.mark.parametrize("name", OTHERS)
def test_methods_that_take_a_state_in_another_way(name: str, machine: tuple[bc.System, bc.State]) -> None:
    compare(*OTHERS[name](*machine))


@pytest.mark.parametrize("name", ANALYSES)
def test_analyses_take_a_state(name: str, machine: tuple[bc.System, bc.State]) -> None:
    system, function = machine[0], getattr(bc.analyze, name)
    calls(*machine, lambda *given, **time: function(system, *given, **time), *ANALYSES[name])


def test_the_time_counts(machine: tuple[bc.System, bc.State]) -> None:
    """The comparison above would not see a time that is forgotten, if nothing depended on it."""
    system, state = machine
    for name in ("forward_dynamics", "bias", "energy"):
        method = getattr(system, name)
        assert not np.array_equal(method(state), method(state, t=0.0)), name
        np.testing.assert_array_equal(method(state, t=0.0), method(state.q, state.u, t=0.0))


def test_all_methods_and_analyses_are_tried() -> None:
    """A new one is in a table, or among those without a state."""
    every = {name for name in dir(bc.System) if not name.startswith("_") and callable(getattr(bc.System, name))}
    assert every == {*METHODS, *OTHERS, *WITHOUT}
    elsewhere = {"branches", "deflection", "draw_deflection", "identify", "inverse_dynamics_with_contacts", "operators",
                 "partition", "section_forces", "stresses"}  # guesses, samples, objects, ...: tests of their own
    taking = {name for name in bc.analyze.__all__ if "q" in inspect.signature(getattr(bc.analyze, name)).parameters}
    assert taking - elsewhere - {"drawing_errors"} == set(ANALYSES)


def test_forces_after_a_state() -> None:
    """By place, by name of the argument, by name of the joint; through the native door and past it."""
    system = bc.compile(bc.load("double_pendulum"))
    state, tau = bc.State(np.array([0.3, 0.5]), np.array([0.1, -0.2])), np.array([1.0, 2.0])
    wanted = system.forward_dynamics(state.q, state.u, tau)
    for found in (system.forward_dynamics(state, tau), system.forward_dynamics(state, tau=tau),
                  system.forward_dynamics(state, dict(zip(system.joint_names, tau, strict=True)))):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(system.forward_dynamics(state), system.forward_dynamics(state.q, state.u))
    np.testing.assert_array_equal(system.inverse_dynamics(state, wanted),
                                  system.inverse_dynamics(state.q, state.u, wanted))
    np.testing.assert_array_equal(system.inverse_dynamics(state, udot=wanted),
                                  system.inverse_dynamics(state.q, state.u, wanted))


def test_a_batch_of_states() -> None:
    system = bc.compile(bc.load("double_pendulum"))
    q, u = system.random_state(np.random.default_rng(0), 5)
    np.testing.assert_array_equal(system.bias(bc.State(q, u)), system.bias(q, u))
    np.testing.assert_array_equal(system.forward_dynamics(bc.State(q, u)), system.forward_dynamics(q, u))


@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics", "bias", "velocity"])
def test_speeds_are_not_given_twice(name: str, machine: tuple[bc.System, bc.State]) -> None:
    system, state = machine
    rest = {"forward_dynamics": (state.u,), "inverse_dynamics": (state.u,), "velocity": ("tip", (0, 0, 0))}
    with pytest.raises(bc.StateError, match=rf"{name}: a State holds q and u"):
        getattr(system, name)(state, state.u, *rest.get(name, ()))


