"""A `State` is accepted wherever q, or q and u, are; its time is used unless another is given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
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


#: what follows q, or q and u
REST: dict[str, Callable[[bc.System], tuple[Any, ...]]] = {
    "forward_dynamics": lambda s: (np.linspace(0.0, 1.0, s.nu),), "drive_forces": lambda s: (),
    "mass_matrix": lambda s: (), "bias": lambda s: (), "momenta": lambda s: (),
    "reactions": lambda s: ({"A": 0.5},), "pose": lambda s: ("tip",), "velocity": lambda s: ("tip", (0.1, 0.2, 0.3)),
    "acceleration": lambda s: (np.linspace(0.0, 1.0, s.nu), "tip"), "jacobian": lambda s: ("tip",),
    "jacobian_rate": lambda s: ("tip",), "center_of_mass": lambda s: (), "momentum": lambda s: (),
    "kinetic_energy": lambda s: (), "potential_energy": lambda s: (), "energy": lambda s: (),
    "loop_error": lambda s: (), "loop_rate_error": lambda s: (), "consistent_acceleration": lambda s: ({"A": 1.0},),
    "inverse_dynamics": lambda s: (np.linspace(0.0, 1.0, s.nu),), "reduced": lambda s: (),
    "regressor": lambda s: (np.linspace(0.0, 1.0, s.nu),), "element_forces": lambda s: (),
}


def pieces(made: Any) -> list[Any]:
    if isinstance(made, dict):
        return [x for part in made.values() for x in (part if isinstance(part, tuple) else [part])]
    if hasattr(made, "motions"):
        return [made.motions, made.mass_matrix, made.bias, made.drift, made.offset]
    return [made.rotation, made.position] if hasattr(made, "rotation") else [made]


@pytest.mark.parametrize("name", REST)
def test_every_method_takes_a_state(name: str, machine: tuple[bc.System, bc.State]) -> None:
    system, state = machine
    rest = REST[name](system)
    if name == "inverse_dynamics":
        rest = (system.forward_dynamics(state),)
    method, plain = getattr(system, name), (state.q, state.u)
    if "u" not in inspect.signature(method).parameters:
        plain = (state.q,)  # type: ignore[assignment]
    found, wanted = pieces(method(state, *rest)), pieces(method(*plain, *rest, t=state.t))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    other = pieces(method(state, *rest, t=0.4))  # a time that is given counts
    for a, b in zip(other, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_time_counts(machine: tuple[bc.System, bc.State]) -> None:
    """The comparison above would not see a time that is forgotten, if nothing depended on it."""
    system, state = machine
    for name in ("forward_dynamics", "bias", "energy"):
        method = getattr(system, name)
        assert not np.array_equal(method(state), method(state, t=0.0)), name
        np.testing.assert_array_equal(method(state, t=0.0), method(state.q, state.u, t=0.0))


def test_all_methods_of_a_position_or_motion_are_tried() -> None:
    """Those with momenta have no state; configurations are not motions of a machine."""
    taking = {name for name in dir(bc.System) if not name.startswith("_") and callable(getattr(bc.System, name))
              and "q" in inspect.signature(getattr(bc.System, name)).parameters}
    assert taking == {*REST, "hamilton", "integrate", "normalize", "assemble", "project"}


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


def test_loops_and_elements_take_a_state(machine: tuple[bc.System, bc.State]) -> None:
    system, state = machine
    q, u, t = state
    udot, joint = system.forward_dynamics(state), system.loops[0]
    for name, rest in (("loop_jacobian", ()), ("loop_coordinates", (joint,)), ("stored_energy", ()),
                       ("loop_drive", ({joint: 2.0},))):
        function = getattr(bc.analyze, name)
        np.testing.assert_array_equal(function(system, state, *rest), function(system, q, *rest, t=t))
    for name, rest in (("loop_speeds", (joint,)), ("loop_acceleration_error", (udot,)), ("dissipated_power", ()),
                       ("loop_loads", (0.0 * u, udot)), ("element_wrenches", ()), ("actuator_forces", (u,))):
        function = getattr(bc.analyze, name)
        np.testing.assert_array_equal(function(system, state, *rest), function(system, q, u, *rest, t=t))
