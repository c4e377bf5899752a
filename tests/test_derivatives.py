"""Exact derivatives against differences of high order, products against matrices, trees and closed machines."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import bellcrank as bc
import loop_extras
from bellcrank import math as bm
from bellcrank.io.export.array_functions import HostFunction
from bellcrank.scalar import functions as fn
from bellcrank.scalar.derivative import adjoints, jacobian, tangents
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph
from bellcrank.target import cut_code, kernel_source
from bellcrank.target.llvm import compiling, jit
from looped import sized_four_bar, sleeve_crank
from mechanisms import build, examples, state, trees
from properties import leave
from whole_states import carrying, whole_u

#: central differences of order eight: coefficients of f(x + k h) - f(x - k h)
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
STEP = 4e-3


STEPS = STEP * np.array([k * side for k in range(1, 5) for side in (1, -1)])
SLOPES = np.array([side * w for w in WEIGHTS for side in (1, -1)]) / STEP


def differences(f: Callable[[np.ndarray], Any]) -> np.ndarray:
    """df/ds at s = 0, for a function of many s at once. Its error is that of rounding, 1e-13 or so of f."""
    return np.tensordot(SLOPES, np.asarray(f(STEPS)), 1)


def column_differences(f: Callable[[np.ndarray], Any], size: int) -> np.ndarray:
    """df/dx at x = 0, for a function of many x at once."""
    values = np.asarray(f((np.eye(size)[:, None] * STEPS[:, None]).reshape(-1, size)))
    return np.moveaxis(np.tensordot(values.reshape(size, len(STEPS), *values.shape[1:]), SLOPES, (1, 0)), 0, -1)


def close(found: Any, expected: Any, tolerance: float = 1e-8) -> None:
    """Equal to a part of the largest entry."""
    expected = np.asarray(expected)
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


# -- graphs -----------------------------------------------------------------------------------------------------------
def law(x: Any, y: Any) -> list[Any]:
    """Every operation there is."""
    z = bm.sin(x) * bm.exp(y / 3.0) + bm.sqrt(2.0 + x * x) / (3.0 + y) - bm.tanh(x - y) * bm.cos(y)
    return [z, bm.select_less(x, y, z * x, -z), bm.atan2(z, x + 4.0) + bm.log(5.0 + y), 1.0 / (x * y - 7.0),
            abs(x) ** 3, x, 2.5]


@pytest.mark.parametrize("x, y", [(0.3, 0.8), (-0.7, -1.1)])
def test_graphs_forward_backward_and_by_elimination(x: float, y: float) -> None:
    graph = Graph()
    a, b = graph.leaf("x"), graph.leaf("y")
    roots = law(a, b)
    expected = column_differences(lambda d: [law(x + a, y + b) for a, b in d], 2)
    seeds = {a: {"x": 1.0}, b: {"y": 1.0}}

    def numbers(rows: list[dict[Any, Any]]) -> np.ndarray:
        flat = [row.get(k, 0.0) for row in rows for k in ("x", "y")]
        return np.array(evaluate(flat, {"x": x, "y": y})).reshape(-1, 2)

    close(numbers(tangents(roots, seeds)), expected, 1e-10)
    close(numbers(jacobian(roots, seeds)), expected, 1e-10)
    weights = np.arange(1.0, len(roots) + 1)
    back = adjoints(roots, weights.tolist(), [a, b])
    close(evaluate([back[a], back[b]], {"x": x, "y": y}), weights @ expected, 1e-10)


def test_directions_of_graphs_combine() -> None:
    graph = Graph()
    a, b = graph.leaf("x"), graph.leaf("y")
    seeds = {a: {0: 2.0, 1: fn.sin(b)}, b: {1: 3.0}}
    for way in (tangents, jacobian):
        (row,) = way([a * b], seeds)
        assert evaluate([row[0], row[1]], {"x": 0.5, "y": 0.25}) == pytest.approx([0.5, 0.25 * np.sin(0.25) + 1.5])


# -- trees ------------------------------------------------------------------------------------------------------------
def check_dynamics(system: bc.System, function: str, q: np.ndarray, u: np.ndarray, x: np.ndarray, t: float) -> None:
    """All derivatives of forward or inverse dynamics by everything; x is tau or udot."""
    nu, f = system.nu, getattr(system, function)
    third = {"forward_dynamics": "tau", "inverse_dynamics": "udot"}[function]
    d = system.derivatives(function, q, u, x, by=("q", "u", third, "t"), t=t)
    close(d.value, f(q, u, x, t=t), 1e-11)
    close(d["q"], column_differences(lambda s: f(system.integrate(q, s), u, x, t=t), nu))
    close(d["u"], column_differences(lambda s: f(q, u + s, x, t=t), nu))
    close(d[third], column_differences(lambda s: f(q, u, x + s, t=t), nu))
    close(d["t"], differences(lambda s: np.broadcast_to(f(q, u, x, t=t + s), (len(s), nu))))
    weights = np.cos(np.arange(nu))
    back = system.derivatives(function, q, u, x, by=("q", "u", third, "t"), t=t, weights=weights)
    for name in back:
        close(back[name], weights @ d[name], 1e-11)
    ways = {name: np.sin(np.arange(nu) + 1.0) for name in ("q", "u", third)}
    along = system.derivatives(function, q, u, x, along=ways, t=t)["along"]
    close(along, sum(d[name] @ way for name, way in ways.items()), 1e-11)


@given(trees(max_bodies=4))
@examples(12)
def test_random_trees(tree: Any) -> None:
    m = build(tree)
    system = bc.compile(m, backend="numpy")
    if not system.nu:
        leave()
    s = state(m, tree.seed)
    check_dynamics(system, "forward_dynamics", s.q, s.u, s.tau, s.t)
    check_dynamics(system, "inverse_dynamics", s.q, s.u, s.udot, s.t)


def laden_arm() -> bc.Mechanism:
    """Springs between links and on joints, a motor with limits, an armature, a wrench, parameters, a ball joint."""
    m = bc.Mechanism("laden arm", gravity=(0, 0, -9.81))
    load, reach = m.parameter("load", 1.3), m.parameter("reach", 0.4)
    m.add_body("upper", bc.Inertia.rod(2.0, (0, 0, 0), (0.5, 0, 0)))
    m.add_body("fore", bc.Inertia(load, (0.2, 0.05, 0), (0.02, 0.03, 0.04)))
    m.add_body("hand", bc.Inertia.box(0.5, (0.1, 0.2, 0.05), (0.05, 0, 0)))
    m.add_joint("shoulder", bc.Revolute("y"), m.ground, "upper")
    m.add_joint("elbow", bc.Universal("z", "x"), "upper", "fore", parent_pose=bc.Pose((reach, 0, 0)))
    m.add_joint("wrist", bc.Spherical(), "fore", "hand", parent_pose=bc.Pose((0.4, 0, 0)))
    m.add_spring("muscle", m.ground, "fore", (0, 0, 0.5), (0.1, 0, 0), stiffness=200 * load, damping=3.0, length=0.3)
    m.add_joint_spring("brace", "elbow", stiffness=20.0, damping=0.5, coordinate=0)
    m.add_armature("rotor", "shoulder", 0.2)
    m.add_actuator("motor", "shoulder", 40.0, no_load_speed=30.0)
    m.add_wrench("wind", "hand", force=(lambda t: 3 * bm.cos(t), 2.0, 0.0), at=(0, 0, 0.1), axes="body")
    return m


def laden_state(system: bc.System) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    q, u = system.random_state(np.random.default_rng(5))
    rng = np.random.default_rng(6)
    return q, u, {"tau": rng.normal(size=system.nu), "udot": rng.normal(size=system.nu)}


@pytest.mark.parametrize("method", ["recursive", "kane", "operator", "dense"])
def test_force_elements_parameters_and_methods(method: str) -> None:
    system = bc.compile(laden_arm(), method=method, backend="llvm" if method == "recursive" else "numpy")
    q, u, rest = laden_state(system)
    check_dynamics(system, "forward_dynamics", q, u, rest["tau"], 0.3)
    check_dynamics(system, "inverse_dynamics", q, u, rest["udot"], 0.3)
    d = system.derivatives("forward_dynamics", q, u, rest["tau"], by=("parameters", "reach", "wrenches"), t=0.3)

    def udot(load: float = 1.3, reach: float = 0.4, wrench: Any = None) -> np.ndarray:
        other = system.with_parameters(load=load, reach=reach)
        return other.forward_dynamics(q, u, rest["tau"], wrenches=wrench, t=0.3)

    close(d["reach"], differences(lambda s: udot(reach=0.4 + s)))
    close(d["parameters"], np.stack([differences(lambda s: udot(load=1.3 + s)), d["reach"]], axis=-1))
    close(d["wrenches"], column_differences(lambda s: udot(wrench=s.reshape(-1, 3, 6)), 18))
    assert d.columns["parameters"] == ("load", "reach")
    assert d.columns["wrenches"][7] == "fore.moment_y"


@pytest.mark.parametrize("function, inputs", [
    ("bias", 2), ("mass_matrix", 1), ("momenta", 2), ("kinetic_energy", 2), ("potential_energy", 1), ("energy", 2),
    ("center_of_mass", 1), ("momentum", 2)])
def test_every_other_function_of_a_state(function: str, inputs: int) -> None:
    system = bc.compile(laden_arm(), backend="numpy")
    q, u, _ = laden_state(system)
    f, arguments, by, t = getattr(system, function), (q, u)[:inputs], ("q", "u")[:inputs], 0.3
    d = system.derivatives(function, *arguments, by=(*by, "load"), t=t)

    def loaded(s: np.ndarray) -> np.ndarray:
        return np.asarray(getattr(system.with_parameters(load=1.3 + s), function)(*arguments, t=t))

    close(d.value, f(*arguments, t=t), 1e-12)
    close(d["q"], column_differences(lambda s: f(system.integrate(q, s), *arguments[1:], t=t), system.nu))
    close(d["load"], differences(loaded))
    if "u" in by:
        close(d["u"], column_differences(lambda s: f(q, u + s, t=t), system.nu))


def test_bodies_and_points() -> None:
    system = bc.compile(laden_arm(), backend="numpy")
    q, u, rest = laden_state(system)
    nu, point = system.nu, np.array([0.1, -0.2, 0.3])
    moved = lambda s: system.integrate(q, s)  # noqa: E731
    d = system.derivatives("pose", q, body="hand", by="q")
    close(d["q"][9:], column_differences(lambda s: system.pose(moved(s), "hand").position, nu))
    close(d["q"][:9], column_differences(lambda s: system.pose(moved(s), "hand").rotation.reshape(-1, 9), nu))
    d = system.derivatives("velocity", q, u, point, body="hand", by=("q", "u", "point"))
    close(d["q"], column_differences(lambda s: system.velocity(moved(s), u, "hand", point), nu))
    close(d["u"], system.jacobian(q, "hand", point), 1e-12)
    close(d["point"], column_differences(lambda s: system.velocity(q, u, "hand", point + s), 3))
    d = system.derivatives("acceleration", q, u, rest["udot"], body="hand", by=("q", "udot"))
    close(d["q"], column_differences(lambda s: system.acceleration(moved(s), u, rest["udot"], "hand"), nu))
    d = system.derivatives("jacobian", q, body="hand", by="q")
    close(d["q"], column_differences(lambda s: system.jacobian(moved(s), "hand"), nu))
    assert d["q"].shape == (6, nu, nu)


@pytest.mark.parametrize("body", ["hand", "tip"])
@pytest.mark.parametrize("function", ["pose", "velocity", "jacobian"])
def test_places_on_links_that_depend_on_parameters(function: str, body: str) -> None:
    m = bc.Mechanism("arm")
    length = m.parameter("length", 0.5)
    m.add_body("arm", bc.Inertia.sphere(1.0, 0.1))
    m.add_body("hand", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("shoulder", bc.Revolute("y"), m.ground, "arm")
    m.add_joint("wrist", bc.Revolute("z"), "arm", "hand", bc.Pose((0.4, 0, 0)), bc.Pose((length, 0.1, 0)))
    m.add_frame("tip", "hand", bc.Pose.about("x", 0.3, (0.2 * length, 0, 0.3)))
    m.add_frame("floor", m.ground)
    system = bc.compile(m, backend="numpy")
    q, u = np.array([0.3, -0.7]), np.array([1.0, 2.0])
    given = {"pose": (q,), "velocity": (q, u, [0.1, 0.2, 0.3]), "jacobian": (q, [0.1, 0.2, 0.3])}[function]

    def value(s: np.ndarray, q: np.ndarray = q) -> np.ndarray:
        other = system.with_parameters(length=0.5 + s)
        if function != "pose":
            return getattr(other, function)(q, *given[1:-1], body, given[-1])
        pose = other.pose(q, body)
        return np.concatenate([pose.rotation.reshape(*pose.rotation.shape[:-2], 9), pose.position], axis=-1)

    d = system.derivatives(function, *given, by=("q", "length"), body=body)
    close(d.value, value(np.zeros(())), 1e-14)
    close(d["length"], differences(value), 1e-9)
    close(d["q"], column_differences(lambda s: value(np.zeros(len(s)), q + s), 2), 1e-9)
    with pytest.raises(bc.ModelError, match="'floor' is fixed to the ground"):
        system.derivatives(function, *given, by="q", body="floor")


def test_reactions() -> None:
    system = bc.compile(laden_arm(), backend="numpy")
    q, u, rest = laden_state(system)
    tau = rest["tau"]
    d = system.derivatives("reactions", q, u, tau, by=("q", "u", "tau"))

    def f(q: np.ndarray, u: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return np.stack([*system.reactions(q, u, tau).values()], axis=-2)

    close(d.value, f(q, u, tau), 1e-11)
    close(d["q"], column_differences(lambda s: f(system.integrate(q, s), u, tau), system.nu))
    close(d["u"], column_differences(lambda s: f(q, u + s, tau), system.nu))
    close(d["tau"], column_differences(lambda s: f(q, u, tau + s), system.nu))
    assert list(d.dataset()["joints"].values) == list(system.reactions(q, u, tau))


def test_second_derivatives() -> None:
    system = bc.compile(bc.load("double_pendulum"), backend="numpy")
    q, u, tau = np.array([0.4, -0.9]), np.array([1.1, 0.3]), np.array([0.2, 0.5])
    d = system.derivatives("forward_dynamics", q, u, tau, by=("q", "u"), then="q")
    for name in ("q", "u"):
        close(d[name], column_differences(
            lambda s, name=name: system.derivatives("forward_dynamics", q + s, u, tau, by=name)[name], 2))
    again = system.derivatives("forward_dynamics", q, u, tau, by="q", then="q")["q"]
    close(again, again.swapaxes(-1, -2), 1e-11)  # of the acceleration of each speed, by two coordinates: symmetric
    weights, way = np.array([0.7, -0.3]), np.array([0.4, 1.2])
    product = system.derivatives("forward_dynamics", q, u, tau, along={"q": way}, weights=weights)
    close(product["along"], system.derivatives("forward_dynamics", q, u, tau, by="q")["q"] @ way, 1e-12)
    close(product["q"], np.einsum("i,ijk,j", weights, again, way), 1e-11)


@pytest.mark.parametrize("element", ["spring", "drag"])
def test_elements_at_rest(element: str) -> None:
    """Where nothing moves, dampers without a length and drag have derivatives, too."""
    m = bc.load("double_pendulum")
    tip = m.bodies[-1]
    if element == "spring":
        m.add_spring("spring", tip, m.ground, (0, 0, 0.1), (1.0, 1.0, 0), stiffness=3.0, damping=0.3)
    else:
        m.add_drag("drag", tip, area=0.5, coefficient=1.2, turn_quadratic=0.1)
    system = bc.compile(m, backend="numpy")
    q, u = np.array([0.4, -0.9]), np.zeros(2)
    d = system.derivatives("forward_dynamics", q, u, by=("q", "u"))
    close(d["q"], column_differences(lambda s: system.forward_dynamics(q + s, u), 2))
    if element == "spring":  # drag grows with the square of the speed: its slope at rest is zero, and no polynomial's
        close(d["u"], column_differences(lambda s: system.forward_dynamics(q, s), 2))


# -- closed machines --------------------------------------------------------------------------------------------------
class Closed:
    """A closed machine at a state, and its motion by the independent speeds of the plan."""

    def __init__(self, mechanism: bc.Mechanism, seed: int = 0, **options: Any) -> None:
        self.system = system = bc.compile(mechanism, **options)
        rng = np.random.default_rng(seed)
        near = system.integrate(system.assemble().q, 0.05 * rng.normal(size=system.nu))
        here = system.project(near, rng.normal(size=system.nu))
        self.q, self.u, self.tau = here.q, here.u, rng.normal(size=system.nu)
        self.plans = system.plans
        self.plan = self.plans.first(self.q, 0.0)
        self.free = list(self.plan.independent)

    def at(self, motion: np.ndarray, speeds: np.ndarray, system: bc.System | None = None, t: float = 0.0
           ) -> tuple[np.ndarray, np.ndarray]:
        """Independent coordinates moved by `motion`, speeds changed by `speeds`, everything else following."""
        system = system or self.system
        run = system.kernels.planned(self.plan)
        step = np.zeros((*np.shape(motion)[:-1], system.nu))
        step[..., self.free] = motion
        q = system.integrate(self.q, step)
        for _ in range(12):
            q = system.integrate(q, system.kernels.run("displacements", {"q": q}, None, t, run))
        u = np.broadcast_to(self.u, (*np.shape(speeds)[:-1], system.nu)).copy()
        u[..., self.free] += speeds
        return q, system.kernels.run("dependent_speeds", {"q": q, "u": u}, None, t, run)


def check_closed(c: Closed, tolerance: float = 1e-7) -> None:
    system, dof = c.system, len(c.free)
    f, none = system.forward_dynamics, np.zeros(dof)
    d = system.derivatives("forward_dynamics", c.q, c.u, c.tau, by=("q", "u", "tau"))
    assert d.columns["q"] == tuple(system.speed_names[v] for v in c.free)
    close(d.value, f(c.q, c.u, c.tau), 1e-9)
    close(d["q"], column_differences(lambda s: f(*c.at(s, none), c.tau), dof), tolerance)
    close(d["u"], column_differences(lambda s: f(*c.at(none, s), c.tau), dof), tolerance)
    close(d["tau"], column_differences(lambda s: f(c.q, c.u, c.tau + s), system.nu), tolerance)
    weights, way = np.cos(np.arange(system.nu)), np.sin(np.arange(dof) + 1.0)
    back = system.derivatives("forward_dynamics", c.q, c.u, c.tau, by=("q", "u", "tau"), weights=weights)
    for name in back:
        close(back[name], weights @ d[name], 1e-9)
    along = system.derivatives("forward_dynamics", c.q, c.u, c.tau, along={"q": way, "u": -way})["along"]
    close(along, d["q"] @ way - d["u"] @ way, 1e-9)


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "slider_crank", "jansen"])
def test_closed_machines(name: str) -> None:
    check_closed(Closed(bc.load(name), backend="numpy"))


@pytest.mark.parametrize("make", [loop_extras.geared, loop_extras.cams])
def test_couplers(make: Callable[[], bc.Mechanism]) -> None:
    check_closed(Closed(make(), backend="numpy"))


@pytest.mark.parametrize("method", ["kane", "dense", "reduction"])
def test_what_is_differentiated_does_not_depend_on_the_method(method: str) -> None:
    one, other = (Closed(bc.load("four_bar"), method=m, backend="numpy") for m in ("elimination", method))
    a, b = (c.system.derivatives("forward_dynamics", one.q, one.u, one.tau) for c in (one, other))
    for name in a:
        close(a[name], b[name], 1e-12)


def test_parts_of_a_closed_machine_by_themselves() -> None:
    """The joints that carry links move one by one; what is where loop joints are follows, their entries do nothing."""
    c = Closed(bc.load("four_bar"), backend="numpy")
    system, some = c.system, carrying(c.system)
    d = system.derivatives("forward_dynamics", c.q, c.u, c.tau, by=("q", "u"), closed=False)
    close(d["q"], column_differences(lambda s: system.forward_dynamics(c.q + s, c.u, c.tau), system.nu))
    close(d["u"], column_differences(lambda s: system.forward_dynamics(c.q, c.u + s, c.tau), system.nu))
    assert len(some) == 3 and np.abs(d["q"][:, some]).min() > 1e-3


def test_inverse_dynamics_and_reactions_of_a_closed_machine() -> None:
    c = Closed(bc.load("four_bar"), backend="numpy")
    system, none = c.system, np.zeros(1)
    want = 0.7

    def udot(q: np.ndarray, u: np.ndarray, v: float) -> np.ndarray:
        return system.consistent_acceleration(q, u, {system.speed_names[c.free[0]].split(".")[0]: v})

    def inverse(motion: np.ndarray, speeds: np.ndarray, v: float = want) -> np.ndarray:
        q, u = c.at(motion, speeds)
        return system.inverse_dynamics(q, u, udot(q, u, v))

    d = system.derivatives("inverse_dynamics", c.q, c.u, udot(c.q, c.u, want), by=("q", "u", "udot"))
    close(d.value, inverse(none, none), 1e-9)
    close(d["q"], column_differences(lambda s: inverse(s, none), 1), 1e-6)
    close(d["u"], column_differences(lambda s: inverse(none, s), 1), 1e-6)
    close(d["udot"][:, 0], differences(lambda s: [inverse(none, none, want + x) for x in s]), 1e-6)

    def loads(motion: np.ndarray) -> np.ndarray:
        return np.stack([*system.reactions(*c.at(motion, none), c.tau).values()], axis=-2)

    d = system.derivatives("reactions", c.q, c.u, c.tau, by="q")
    close(d.value, loads(none), 1e-9)
    close(d["q"], column_differences(loads, 1), 1e-6)


def test_products_of_reactions_where_bodies_move_as_one() -> None:
    """Plans count links, of which there are fewer than joints here: a body is welded to the rod."""
    m = bc.load("four_bar")
    m.add_joint("bolt", bc.Weld(), "crank", m.add_body("knob", bc.Inertia(0.2)), bc.Pose((0.1, 0.1, 0.0)))
    system = bc.compile(m, backend="numpy")
    state = system.assemble(q={"A": 0.5}, u={"A": 2.0})
    d = system.derivatives("reactions", state, by="u")
    weights = np.random.default_rng(0).normal(size=d.value.shape)
    product = system.derivatives("reactions", state, by="u", weights=weights)
    close(product.value, d.value, 1e-12)
    close(product["u"], np.tensordot(weights, d["u"], 2), 1e-12)


def test_reactions_of_a_closed_machine_with_a_state_and_a_weld() -> None:
    """Links have other numbers where every body is one: bodies that are welded, and states, come between the others."""
    m = sized_four_bar()
    m.add_joint("bolt", bc.Weld(), "crank", m.add_body("knob", bc.Inertia(0.2, (0, 0.1, 0), (0.01,) * 3)))
    m.add_state("lag", lambda at: 30.0 * (at.u("A") - at.state("lag")))
    m.add_joint_force("drag", "A", lambda at: -20.0 * at.state("lag"))
    c = Closed(m, backend="numpy")
    none = np.zeros(2)

    def loads(motion: np.ndarray, system: bc.System = c.system) -> np.ndarray:
        return np.stack([*system.reactions(*c.at(motion, none, system), c.tau).values()], axis=-2)

    d = c.system.derivatives("reactions", c.q, c.u, c.tau, by=("q", "length"))
    close(d.value, loads(none), 1e-9)
    close(d["q"], column_differences(loads, 2), 1e-6)
    close(d["length"], differences(lambda s: loads(np.zeros((8, 2)), c.system.with_parameters(length=1.0 + s))), 1e-6)


def test_a_link_length_moves_the_closed_machine() -> None:
    c = Closed(sized_four_bar(), backend="numpy")
    d = c.system.derivatives("forward_dynamics", c.q, c.u, c.tau, by="length")

    def udot(s: np.ndarray) -> np.ndarray:
        other = c.system.with_parameters(length=1.0 + s)
        return other.forward_dynamics(*c.at(np.zeros(1), np.zeros(1), other), c.tau)

    close(d["length"], differences(udot), 1e-7)


@pytest.mark.parametrize("function", ["forward_dynamics", "energy", "momenta", "bias", "pose"])
def test_directions_add_up(function: str) -> None:
    """Along two variables at once a function changes by the sum of what each does, which is what its matrices say:
    parameters and time move the loops, as coordinates do."""
    m = sized_four_bar(load=True)
    m.add_joint("E", bc.Revolute("z"), m.ground, m.add_body("lever", bc.Inertia(1.0, (0.1, 0, 0), (0.01,) * 3)),
                bc.Pose((-0.5, 0, 0)))
    m.add_constraint("link", bc.Distance(lambda t: 0.6 + 0.1 * bm.sin(3.0 * t)), "crank", "lever",
                     bc.Pose((0.2, 0, 0)), bc.Pose((0.3, 0, 0)))
    system = bc.compile(m, backend="numpy")
    state = system.assemble(q={"A": 0.5}, u={"A": 3.0}, t=0.2)
    body = "lever" if function == "pose" else None
    arguments = {"forward_dynamics": 3, "pose": 1}.get(function, 2)
    given = (state.q, state.u, np.linspace(0.0, 1.0, system.nu))[:arguments]
    by = [*("q", "u", "tau")[:arguments], "t", "length", "load"]
    d = system.derivatives(function, *given, by=by, body=body, t=0.2)
    rates = {x: np.cos(np.arange(1.0, d[x].shape[-1] + 1)) if x in d.columns else 0.7 for x in by}

    def along(*names: str) -> np.ndarray:
        way = {x: rates[x] for x in names}
        return np.asarray(system.derivatives(function, *given, along=way, body=body, t=0.2)["along"])

    each = {x: along(x) for x in by}
    for x in by:
        close(each[x], d[x] @ rates[x] if x in d.columns else d[x] * rates[x], 1e-10)
    for x, y in itertools.combinations(by, 2):
        close(along(x, y), each[x] + each[y], 1e-10)


@pytest.mark.parametrize("function, body, by", [
    ("forward_dynamics", None, ("q", "u", "tau")), ("pose", "coupler", ("q", "length")), ("mass_matrix", None, ("q",)),
    ("potential_energy", None, ("q", "length")), ("center_of_mass", None, ("q",)), ("velocity", "coupler", ("q", "u"))])
def test_directions_survive_a_change_of_plan(function: str, body: str | None, by: tuple[str, ...]) -> None:
    """Where the first plan's pivot vanishes, another plan computes, and its directions are turned into the first's:
    near that place both do, and agree."""
    system = bc.compile(sized_four_bar(), backend="numpy")
    plans = system.plans
    first = plans.reference().plan
    some = carrying(system)
    other = next(p for p in (plans.driven_at((v,)) for v in some) if p.independent != first.independent)
    step = np.zeros(system.nu)
    step[some] = 0.03, -0.02, 0.05
    near = system.integrate(system.assemble().q, step)
    state = system.project(near, whole_u(system, near, [1.0, 0.4, -0.3]))
    from bellcrank.system import state_slopes as module
    from bellcrank.system.derivative_questions import Question, answer_to, with_speeds

    asked = with_speeds(plans, Question(function, body, by, True, ""), state.q, 0.0)
    answer = answer_to(plans, asked, plans.kernels.planned(first).tree)
    known = {"q": state.q, "u": state.u, "tau": np.zeros(system.nu), "point": np.array([0.3, 0.1, 0.0])}
    known["tau"][some] = 0.1, 0.2, 0.3
    here = {x: known[x] for x in answer.what.inputs}
    expected = system.derivatives(function, *here.values(), by=by, body=body)

    class Elsewhere(type(plans)):  # type: ignore[misc]
        def at(self, q: Any, t: Any) -> Any:
            return other

    moved = Elsewhere(plans.kernels)
    found, _ = module.turned(moved, asked, answer, here, None, 0.0)
    for name in by:
        wanted = np.reshape(expected[name], found[name].shape)
        if name == "tau":  # forces along loop joints are parameters of another machine here: see `by_loop_forces`
            found[name], wanted = found[name][:, some], wanted[:, some]
        close(found[name], wanted, 1e-9)


@pytest.mark.parametrize("cut", ["crank", "ball", "cardan", "sleeve"])
def test_functions_in_independent_speeds(cut: str) -> None:
    """Momenta, bias, mass matrix and Jacobian of a closed machine against differences, wherever it is cut; those of the
    tree with closed=False, which is what other libraries of arrays get."""
    system = bc.compile(sleeve_crank(), backend="numpy", cut=[cut])
    state = system.assemble(q={"crank": 0.4}, u={"crank": 1.1, "sleeve.angle": -0.7})
    names = system.independent_speeds
    motions, places = system.reduced(state).motions, [system.speed_names.index(name) for name in names]
    for name, inputs, body in (("momenta", 2, ()), ("bias", 2, ()), ("mass_matrix", 1, ()), ("jacobian", 1, ("rod",))):
        found = system.derivatives(name, state, by="q", body=body[0] if body else None)
        close(found.value, getattr(system, name)(state, *body), 1e-12)
        assert found.columns["q"] == names
        for k in range(len(names)):
            def moved(h: float, k: int = k, name: str = name, inputs: int = inputs, body: Any = body) -> np.ndarray:
                q = system.project(system.integrate(state.q, h * motions[:, k]), state.u).q
                u = system.assemble(q=q, u=dict(zip(names, state.u[places], strict=True))).u
                return getattr(system, name)(*(q, u)[:inputs], *body)

            close(found["q"][..., k], (moved(1e-5) - moved(-1e-5)) / 2e-5, 1e-7)
        host = HostFunction("a test", system, f"{name}:{body[0]}" if body else name)
        given = [*(state.q, state.u)[:inputs], *([np.zeros(3)] if body else [])]
        tree = getattr(system, name)(*(state.q, state.u)[:inputs], *body, speeds="tree")
        np.testing.assert_array_equal(host.value(*given), tree)
        open_value = system.derivatives(name, *given[:inputs], by="q", body=body[0] if body else None, closed=False)
        close(open_value.value, tree, 1e-12)


def test_columns_do_not_depend_on_what_was_asked_before() -> None:
    """Where another plan computes, its own directions are turned; they stay with that plan."""
    system = bc.compile(bc.load("four_bar"), independent=["C"], backend="numpy")
    there, here = (system.assemble(q={"A": angle}, u={"A": 1.0}) for angle in (1e-3, 0.5))
    by = ("q", "u")
    system.derivatives("forward_dynamics", there, by="q")  # asks the other plan for all matrices
    d = system.derivatives("forward_dynamics", here, by=by)
    assert d.columns["q"] == d.columns["u"] == ("C.angle",)
    fresh = bc.compile(bc.load("four_bar"), independent=["C"], backend="numpy")
    expected = fresh.derivatives("forward_dynamics", here, by=by)
    for name in by:
        close(d[name], expected[name], 1e-12)


# -- batches, names, errors -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["double_pendulum", "four_bar"])
def test_batches_and_doors_give_what_single_states_give(name: str) -> None:
    system = bc.compile(bc.load(name))
    rng = np.random.default_rng(1)
    if system.loops:
        near = system.integrate(system.assemble().q, 0.05 * rng.normal(size=(5, system.nu)))
        q, u = system.project(near, rng.normal(size=(5, system.nu)))
    else:
        q, u = system.random_state(rng, 5)
    tau = rng.normal(size=(5, system.nu))
    by = ("q", "u", "tau")
    many = system.derivatives("forward_dynamics", q, u, tau, by=by)
    slow = system.derivatives("forward_dynamics", q.tolist(), u, tau, by=by)
    for i in range(5):
        one = system.derivatives("forward_dynamics", q[i], u[i], tau[i], by=by)
        bound = system.bind("forward_dynamics", q[i].copy(), u[i].copy(), tau[i].copy(), by=by)()
        close(bound, np.concatenate([one.value, *(one[x].ravel() for x in by)]), 1e-14)
        for x in by:
            close(many[x][i], one[x], 1e-12)
            close(slow[x][i], one[x], 1e-12)
    state = bc.State(q[0], u[0], 0.0) if hasattr(bc, "State") else None
    if state is not None:
        close(system.derivatives("bias", state)["q"], system.derivatives("bias", q[0], u[0])["q"], 1e-15)


def test_results_have_names() -> None:
    system = bc.compile(bc.load("four_bar"), backend="numpy")
    state = system.assemble()
    d = system.derivatives("forward_dynamics", state, by=("q", "tau"))
    data = d.dataset()
    assert data["d_q"].dims == ("speeds", "by_q") and data["d_tau"].shape == (4, 4)
    assert list(data["by_tau"].values) == list(system.speed_names)
    assert "forward_dynamics" in repr(d) and list(d) == ["q", "tau"]


@pytest.mark.parametrize("change, words", [
    ({"function": "forward"}, "no function 'forward'"),
    ({"by": "qq"}, "nothing called 'qq' to differentiate by"),
    ({"by": "udot"}, "nothing called 'udot'"),
    ({"body": "crank"}, "is not about one body"),
    ({"function": "pose"}, "needs body="),
    ({"weights": np.zeros(2)}, "weights need the shape"),
    ({"along": {"q": np.zeros(3)}}, "one for every direction"),
    ({"weights": np.zeros(3), "then": "q"}, "then=.* gives matrices"),
    ({"t": np.nan}, "t"),
])
def test_wrong_questions(change: dict[str, Any], words: str) -> None:
    system = bc.compile(bc.load("four_bar"), backend="numpy")
    state = system.assemble()
    options: dict[str, Any] = {"function": "forward_dynamics", "by": "q", **change}
    with pytest.raises(bc.BellcrankError, match=words):
        system.derivatives(options.pop("function"), state, **options)


def test_states_that_are_not_finite_are_named() -> None:
    system = bc.compile(bc.load("double_pendulum"))
    with pytest.raises(bc.StateError, match=r"^derivatives of forward_dynamics by q, u: u\[1\] \(elbow"):
        system.derivatives("forward_dynamics", [0.0, 0.1], [0.0, np.inf])


def test_a_controller_of_python_cannot_be_differentiated() -> None:
    m = bc.load("pendulum")

    def jump(x: Any, rate: Any) -> Any:
        return 1.0 if x > 0 else -1.0

    with pytest.raises(bc.BellcrankError):
        m.add_joint_force("push", m.joints[0].name, jump)
        bc.compile(m).derivatives("forward_dynamics", [0.1], [0.0])


@pytest.mark.parametrize("loops", [False, True])
def test_columns_and_pieces_of_large_code(loops: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Columns side by side in lanes, the last of them twice, in loops for batches, and code cut into pieces: the same
    numbers as one graph gives."""
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path))
    machine = bc.load("scissor_lift") if loops else bc.Mechanism("nine links")
    for k in range(0 if loops else 9):
        machine.add_body(f"link{k}", bc.Inertia(1.0 + 0.1 * k, (0.1, 0, 0), (0.01, 0.02, 0.03)))
        machine.add_joint(f"joint{k}", bc.Revolute("z"), f"link{k - 1}" if k else machine.ground, f"link{k}",
                          parent_pose=bc.Pose((0.2, 0, 0)))

    def answers(backend: str) -> list[np.ndarray]:
        system = bc.compile(machine, backend=backend)
        state = system.assemble() if loops else system.random_state(np.random.default_rng(0))
        u = system.project(state.q, np.linspace(-1.0, 1.0, system.nu)).u
        tau = np.linspace(0.0, 1.0, system.nu)
        one = system.derivatives("forward_dynamics", state.q, u, tau, by=("q", "u", "tau"))
        many = system.derivatives("forward_dynamics", np.tile(state.q, (9, 1)), np.tile(u, (9, 1)), tau,
                                  by=("q", "u", "tau"))
        return [*one.values(), *(x[8] for x in many.values())]

    made: list[str] = []
    original = compiling.compiled
    monkeypatch.setattr(compiling, "compiled", lambda text, more: made.append(text) or original(text, more))
    usual = answers("llvm")
    monkeypatch.setattr(kernel_source, "LARGE", 0)
    monkeypatch.setattr(kernel_source, "LONG", 100)
    monkeypatch.setattr(cut_code, "PIECE", 300)
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path / "other"))
    monkeypatch.setattr(jit, "_loaded", weakref.WeakValueDictionary())
    cut = answers("llvm")
    assert any(text.count("@piece") > 4 for text in made), "cut into pieces"
    for found, other, expected in zip(usual, cut, answers("numpy"), strict=True):
        for x in (found, other):
            np.testing.assert_allclose(x, expected, rtol=0, atol=2e-11 * np.abs(expected).max())


def test_motions_that_open_loops_have_no_drives_and_no_derivatives_of_them() -> None:
    system = bc.compile(bc.load("four_bar"))
    state = system.assemble(q={"A": 0.5}, u={"A": 1.0})
    with pytest.raises(bc.StateError, match="these accelerations open the loop"):
        system.derivatives("inverse_dynamics", state.q, state.u, np.ones(system.nu), by="q")
