"""Derivatives of machines that are rolled into loops: as those of the machine as one graph, and as differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import loop_extras
from bellcrank import math as bm
from bellcrank.io.export.array_functions import HostFunction
from bellcrank.system import large_derivatives
from bellcrank.system.derivative_questions import Question
from looped import sized_four_bar
from mechanisms import JOINTS, Part, Tree, build
from test_derivatives import Closed, close, differences, laden_arm
from test_flexible_machines import long_chain

NAMES = {"forward_dynamics": ("q", "u", "tau"), "inverse_dynamics": ("q", "u", "udot"), "potential_energy": ("q",),
         "center_of_mass": ("q",), "stored_energy": ("q",)}


class Both:
    """One machine, rolled into loops and as one graph, at a state."""

    def __init__(self, make: Callable[[], bc.Mechanism], t: float = 0.0, **options: Any) -> None:
        self.rolled = system = bc.compile(make(), schedule="rolled", **options)
        self.whole = bc.compile(make(), schedule="unrolled", backend="numpy", **options)
        rng = np.random.default_rng(7)
        if system.loops:
            near = system.integrate(system.assemble(t=t).q, 0.05 * rng.normal(size=system.nu))
            self.q, self.u = system.project(near, rng.normal(size=system.nu), t=t)
        else:
            self.q, self.u = system.random_state(rng)
        self.t, self.tau = t, rng.normal(size=system.nu)
        self.udot = system.forward_dynamics(self.q, self.u, self.tau, t=t)

    def agree(self, function: str, by: Sequence[str] = (), tolerance: float = 1e-10, **options: Any) -> None:
        """Matrices and products are those of the graph."""
        inputs = NAMES.get(function, ("q", "u"))
        arguments = [getattr(self, x) for x in inputs]
        names = (*inputs, *by)
        expected = self.whole.derivatives(function, *arguments, by=names, t=self.t, **options)
        axes = expected.value.ndim
        rng = np.random.default_rng(1)
        weights = rng.normal(size=expected.value.shape)
        ways = {x: rng.normal(size=a.shape[axes:]) for x, a in expected.items()}
        ask = self.rolled.derivatives
        found = ask(function, *arguments, by=names, t=self.t, **options)
        back = ask(function, *arguments, by=names, weights=weights, t=self.t, **options)
        along = ask(function, *arguments, along=ways, t=self.t, **options)["along"]
        assert found.columns == expected.columns
        close(found.value, expected.value, tolerance)
        for x, matrix in expected.items():
            close(found[x], matrix, tolerance)
            close(back[x], np.tensordot(weights, matrix, axes), tolerance)
        close(along, sum(np.tensordot(matrix, ways[x], ways[x].ndim) for x, matrix in expected.items()), tolerance)

    def products_agree(self, function: str, by: Sequence[str], tolerance: float = 1e-10) -> None:
        """Products are those of the graph: for machines whose matrices would take long as graphs."""
        arguments, names = [getattr(self, x) for x in NAMES[function]], (*NAMES[function], *by)
        rng = np.random.default_rng(2)
        weights = rng.normal(size=self.rolled.nu)
        found, expected = (s.derivatives(function, *arguments, by=names, weights=weights, t=self.t)
                           for s in (self.rolled, self.whole))
        close(found.value, expected.value, tolerance)
        for x, slopes in expected.items():
            close(found[x], slopes, tolerance)
        ways = {x: rng.normal(size=a.shape) for x, a in expected.items()}
        found, expected = (s.derivatives(function, *arguments, along=ways, t=self.t)
                           for s in (self.rolled, self.whole))
        close(found["along"], expected["along"], tolerance)


# -- the same as one graph --------------------------------------------------------------------------------------------
def every_joint() -> bc.Mechanism:
    """Every joint type, some listed backwards, branches, wrenches that laws give, motions that are prescribed."""
    moving = [joint for joint in JOINTS if joint != "Weld"]
    parts = [Part(joint, (i - 1) // 2, backwards=i % 3 == 1, wrench=("", "world", "body")[i % 3],
                  driven=2 if joint in ("Universal", "Cylindrical") else 0) for i, joint in enumerate(moving)]
    return build(Tree((*parts, Part("Revolute", 2, driven=1), Part("Spherical", 4, backwards=True)), 3))


def laden() -> bc.Mechanism:
    """Laws on joints, a motor with limits, an armature, a wrench, and parameters, gravity among them."""
    m = bc.Mechanism("laden chain")
    load, reach, pull = m.parameter("load", 1.3), m.parameter("reach", 0.4), m.parameter("pull", 1.0)
    m.gravity = (0.0, 0.5, -9.81 * pull)
    m.add_body("upper", bc.Inertia.rod(2.0, (0, 0, 0), (0.5, 0, 0)))
    m.add_body("fore", bc.Inertia(load, (0.2, 0.05, 0), (0.02, 0.03, 0.04)))
    m.add_body("hand", bc.Inertia.box(0.5, (0.1, 0.2, 0.05), (0.05, 0, 0)))
    m.add_joint("shoulder", bc.Revolute("y"), m.ground, "upper")
    m.add_joint("elbow", bc.Universal("z", "x"), "upper", "fore", parent_pose=bc.Pose((reach, 0, 0)))
    m.add_joint("wrist", bc.Spherical(), "fore", "hand", parent_pose=bc.Pose((0.4, 0, 0)))
    m.add_joint_spring("brace", "elbow", stiffness=20.0 * load, damping=0.5, coordinate=0)
    m.add_armature("rotor", "shoulder", 0.2)
    m.add_actuator("motor", "shoulder", 40.0, no_load_speed=30.0)
    m.add_wrench("wind", "hand", force=(lambda t: 3 * bm.cos(t), 2.0 * load, 0.0), at=(0, 0, 0.1), axes="body")
    return m


def linkage() -> bc.Mechanism:
    """A four-bar of a given length, with a spring on a joint and one that closes its loop at a time."""
    m = sized_four_bar()
    m.add_joint_spring("spring", "A", stiffness=20.0, damping=0.5)
    return m


def sprung() -> bc.Mechanism:
    """The same with springs between its links and the ground, one of which is as stiff as a parameter says."""
    m = linkage()
    m.add_spring("band", "coupler", m.ground, (0.3, 0.1, 0), (0.2, 0.9, 0), stiffness=30 * m.parameter("stiff", 2.0),
                 damping=1.0, length=0.2)
    m.add_spring("cord", "crank", "rocker", (0.1, 0, 0.2), (0.2, 0, 0), stiffness=15.0, damping=0.3)
    return m


@cache
def both(name: str) -> Both:
    return {"joints": lambda: Both(every_joint, 0.3), "laden": lambda: Both(laden, 0.2),
            "linkages": lambda: Both(lambda: bc.load("four_bar_chain", cells=2)),
            "geared": lambda: Both(loop_extras.geared), "cams": lambda: Both(loop_extras.cams, 0.2),
            "linkage": lambda: Both(linkage), "sprung": lambda: Both(sprung),
            "arm": lambda: Both(laden_arm, 0.3)}[name]()


@pytest.mark.parametrize("function", ["forward_dynamics", "inverse_dynamics"])
def test_every_joint(function: str) -> None:
    both("joints").products_agree(function, ("t", "wrenches"))


@pytest.mark.parametrize("function", ["forward_dynamics", "inverse_dynamics", "bias", "momenta", "kinetic_energy",
                                      "potential_energy", "energy", "stored_energy", "center_of_mass", "momentum",
                                      "joint_laws"])
def test_functions_parameters_and_laws(function: str) -> None:
    both("laden").agree(function, ("parameters", "load", "t"))


@pytest.mark.parametrize("name, function, body", [
    ("laden", "velocity", "hand"), ("sprung", "reactions", None), ("sprung", "joint_speeds", None)])
def test_what_loops_over_links_do_not_cover(name: str, function: str, body: str | None) -> None:
    """One graph, whatever the schedule, springs between links included."""
    c = both(name)
    arguments = (c.q, c.u, *((0.1, 0.2, 0.3),) * (body is not None))
    found, expected = (s.derivatives(function, *arguments, by=("q", "u", "parameters"), body=body, t=c.t)
                       for s in (c.rolled, c.whole))
    close(found.value, expected.value, 1e-11)
    for x, matrix in expected.items():
        close(found[x], matrix, 1e-10)


def test_places_of_long_chains_by_parameters() -> None:
    m = bc.Mechanism("chain")
    length, before = m.parameter("length", 0.1), m.ground
    for i in range(50):
        body = m.add_body(f"b{i}", bc.Inertia(1.0, (0.05, 0, 0), (0.01, 0.01, 0.01)))
        m.add_joint(f"j{i}", bc.Revolute("z"), before, body, bc.Pose((length, 0, 0)))
        before = body
    chain, angles = bc.compile(m), np.full(50, 0.01)
    d = chain.derivatives("pose", angles, by=("q", "length"), body="b49")
    turned = np.cumsum(angles)
    arms = 0.1 * np.array([np.cos(turned), np.sin(turned)])[:, :-1]  # of the joints' pins, from the first on
    close(d["length"][9:11], (np.array([1.0, 0.0]) * 0.1 + arms.sum(axis=1)) / 0.1, 1e-12)
    close(d["q"][9:11, 0], [-arms[1].sum(), arms[0].sum()], 1e-12)


@pytest.mark.parametrize("function", ["forward_dynamics", "bias", "energy"])
def test_springs_between_links(function: str) -> None:
    """They act from outside of the loops over links."""
    both("arm").agree(function, ("parameters", "t"))


@pytest.mark.everyday(5)
@pytest.mark.parametrize("name, function, by", [
    ("sprung", "forward_dynamics", ("length", "stiff")), ("sprung", "stored_energy", ("stiff",)),
    ("geared", "forward_dynamics", ()), ("geared", "inverse_dynamics", ("wrenches",)),
    ("cams", "forward_dynamics", ("t",)), ("cams", "energy", ("t",)), ("linkages", "inverse_dynamics", ()),
    ("linkage", "forward_dynamics", ("length",)),
    ("linkage", "inverse_dynamics", ("length", "parameters")), ("linkage", "energy", ("length",)),
    ("linkage", "momenta", ("length",))])
def test_closed_machines(name: str, function: str, by: Sequence[str]) -> None:
    both(name).agree(function, by)


@pytest.mark.parametrize("name, sizes", [("ladder", {"cells": 13}), ("four_bar_chain", {"cells": 9}),
                                         ("chain", {"n": 11})])
def test_many_items_side_by_side(name: str, sizes: dict[str, int]) -> None:
    """Of one state, kinds of many items compute in lanes what no sweep waits for; of many, lanes are states."""
    system = bc.compile(bc.load(name, **sizes), schedule="rolled")
    rng = np.random.default_rng(3)
    if system.loops:
        q, u = system.project(system.assemble().q, rng.normal(size=system.nu))
    else:
        q, u = system.random_state(rng)
    tau, weights = rng.normal(size=(2, system.nu))
    one = system.derivatives("forward_dynamics", q, u, tau, by=("q", "u", "tau"), weights=weights)
    many = system.derivatives("forward_dynamics", np.stack([q] * 16), u, tau, by=("q", "u", "tau"), weights=weights)
    close(many.value[7], one.value, 1e-10)
    for x in one:
        close(many[x][7], one[x], 1e-10)
    if name == "ladder":
        system.derivatives("forward_dynamics", q, u, by="q", weights=weights)
        run = system.kernels.planned(system.plans.first(q, 0.0))
        made = next(f for f in system.kernels.functions.values() if "along the loops" in f.name)
        ahead = run.trace(made).ahead()  # type: ignore[attr-defined]
        assert any(part.body for code in ahead.plan.codes for part in code.behind)


def test_parts_of_closed_machines_by_themselves() -> None:
    both("linkage").agree("forward_dynamics", closed=False)


def test_batches() -> None:
    """Directions are an axis of the batch; results are those of the states one by one."""
    c = both("linkage")
    system, q, u = c.rolled, np.stack([c.q] * 3), c.u * np.array([[1.0], [-0.5], [2.0]])
    times, weights = np.linspace(0.0, 1.0, 3), np.cos(np.arange(12.0)).reshape(3, 4)
    many = system.derivatives("forward_dynamics", q, u, by=("q", "length"), t=times)
    back = system.derivatives("forward_dynamics", q, u, by=("q", "length"), weights=weights)
    for i in range(3):
        one = system.derivatives("forward_dynamics", q[i], u[i], by=("q", "length"), t=float(times[i]))
        for x in one:
            close(many[x][i], one[x], 1e-12)
            close(back[x][i], weights[i] @ one[x], 1e-12)
    lengths = system.with_parameters(length=np.array([1.0, 1.01]))
    with_two = lengths.derivatives("kinetic_energy", c.q, c.u, by=("u", "length"))
    assert with_two["u"].shape == (2, 1) and with_two["length"].shape == (2,)
    close(with_two["u"][0], system.derivatives("kinetic_energy", c.q, c.u, by="u")["u"], 1e-12)


def test_directions_survive_a_change_of_plan() -> None:
    """Where pivots of the first plan vanish another one computes; directions stay those of the first."""
    c = both("linkage")
    plans = c.rolled.plans
    first = plans.first(c.q, 0.0)
    other = next(p for p in (plans.driven_at((v,)) for v in range(3)) if p.independent != first.independent)
    given = {"q": c.q, "u": c.u, "tau": c.tau, "weights": np.linspace(0.3, 2.0, c.rolled.nu)}
    for product, names in (("", ("q", "u", "tau", "length")), ("weights", ("length", "q", "u"))):
        question = large_derivatives.large_question(plans, Question("forward_dynamics", None, names, True, product),
                                                    c.q, 0.0)
        expected, found = (large_derivatives._entries(plans, question, given, None, 0.0, p) for p in (first, other))
        close(found, expected, 1e-9)


@pytest.mark.parametrize("name", ["linkage", "sprung", "laden"])
def test_linear_models_are_exact(name: str) -> None:
    c = both(name)
    state = bc.State(c.q, c.u, c.t)
    found, expected = (bc.analyze.linearize(s, state) for s in (c.rolled, c.whole))
    assert found.error == 0.0
    close(found.A, expected.A, 1e-9)
    close(found.B, expected.B, 1e-9)


def test_what_other_libraries_call() -> None:
    """JAX and PyTorch see the same functions, every entry of q and u by itself."""
    c = both("linkage")
    host = HostFunction("a test", c.rolled, "forward_dynamics")
    weights = np.array([0.3, -1.0, 2.0, 0.7])
    found = host.weighted((c.q, c.u, c.tau, np.array([1.0])), weights)
    expected = c.whole.derivatives("forward_dynamics", c.q, c.u, c.tau, by=("q", "u", "tau", "parameters"),
                                   weights=weights, closed=False)
    for part, x in zip(found, expected, strict=True):
        close(part, expected[x], 1e-10)


def test_flexible_bodies() -> None:
    """Nodes read the coordinates of the body that carries them, and add to its derivatives."""
    Both(lambda: long_chain(2, True)).products_agree("inverse_dynamics", ())


# -- differences ------------------------------------------------------------------------------------------------------
def check_against_differences(system: bc.System, q: np.ndarray, u: np.ndarray, moved: Callable[..., Any],
                              size: float, tolerance: float) -> None:
    """Forward dynamics along a direction of some size, forward and backward."""
    rng = np.random.default_rng(4)
    tau, weights = rng.normal(size=system.nu), rng.normal(size=system.nu)
    back = system.derivatives("forward_dynamics", q, u, tau, by=("q", "u", "tau"), weights=weights)
    ways = {x: size * rng.normal(size=a.shape) for x, a in back.items()}
    along = system.derivatives("forward_dynamics", q, u, tau, along=ways)["along"]
    slope = differences(lambda s: system.forward_dynamics(
        *moved(s[:, None] * ways["q"], s[:, None] * ways["u"]), tau + s[:, None] * ways["tau"]))
    close(along, slope, tolerance)
    whole = sum(float(np.abs(back[x]) @ np.abs(ways[x])) for x in ways)
    assert abs(sum(float(back[x] @ ways[x]) for x in ways) - float(weights @ along)) < 1e-10 * whole


def test_a_chain_of_a_thousand_bodies() -> None:
    system = bc.compile(bc.load("chain", n=1000))
    rng = np.random.default_rng(0)
    q, u = system.random_state(rng)
    check_against_differences(system, q, u, lambda a, b: (system.integrate(q, a), u + b), 1e-3, 1e-7)


def test_a_ladder_of_256_cells() -> None:
    c = Closed(bc.load("ladder", cells=256))
    check_against_differences(c.system, c.q, c.u, c.at, 0.1, 1e-7)


# -- what cannot be asked ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("function, options, words", [
    ("forward_dynamics", {"by": "mass"}, "nothing called 'mass'"),
    ("forward_dynamics", {"weights": np.zeros(3)}, "weights need the shape of forward_dynamics")])
def test_refusals(function: str, options: dict[str, Any], words: str) -> None:
    c = both("laden")
    with pytest.raises(bc.BellcrankError, match=words):
        c.rolled.derivatives(function, c.q, c.u, **options)


@pytest.mark.parametrize("function, options", [("forward_dynamics", {"then": "q"}), ("mass_matrix", {"by": "q"}),
                                               ("reactions", {"by": "u"})])
def test_what_grows_with_the_square_of_the_links_is_refused(function: str, options: dict[str, Any]) -> None:
    chain = bc.compile(bc.load("chain", n=49))
    q = np.zeros(chain.nq)
    with pytest.raises(bc.NotYetError, match="more than 48 links forward_dynamics, .*, pose, .* can be differentiated"):
        chain.derivatives(function, q, *(() if function == "mass_matrix" else (q,)), **options)


def test_inputs_are_checked() -> None:
    c = both("laden")
    with pytest.raises(bc.StateError, match=r"q\[1\] is nan"):
        c.rolled.derivatives("forward_dynamics", np.where(np.arange(len(c.q)) == 1, np.nan, c.q), c.u)
    with pytest.raises(bc.StateError, match="q"):
        c.rolled.derivatives("forward_dynamics", c.q[:-1], c.u)


def lawful(closed: bool) -> bc.Mechanism:
    """A machine with laws that look at everything, on joints, sums, points and bodies."""
    m = linkage() if closed else bc.load("double_pendulum")
    joints, body = [j.name for j in m.joints if j.joint.nq == j.joint.nu == 1], m.bodies[-1].name
    m.parameter("gain", 1.3)
    m.add_state("late", lambda at: at.u(joints[0]) - 3.0 * at.state("late"))
    m.add_joint_spring("sum", {joints[0]: 1.0, joints[1]: -0.5}, stiffness=3.0, damping=0.4)
    m.add_joint_force("pull", joints[0], lambda at: at.state("late") - bm.sin(at.q(joints[1])) * at.u(joints[0]) + at.t)
    m.add_joint_force("both", {joints[0]: 0.3, joints[1]: 1.0},
                      lambda at: at.parameter("gain") * at.element("sum").force)
    m.add_wrench("wind", m.bodies[0], at=(0.1, 0.2, 0.0), law=lambda at: (
        at.velocity(body, (0.1, 0.0, 0.2)).cross(at.axes(body)[1]), at.omega(body) * at.u(joints[1])))
    m.add_force_between("rope", m.ground, body, (2.0, 1.0, 0.5), (0.1, 0.0, 0.0), lambda at: (
        at.element("rope").length * at.position(m.bodies[0]).dot(at.velocity(body)) - at.element("rope").rate))
    return m


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("function", ["forward_dynamics", "bias", "stored_energy"])
@pytest.mark.everyday(4)
def test_laws_of_the_machine_and_sums(function: str, closed: bool) -> None:
    """Of forces outside of the loops, which see coordinates as well as motions of links."""
    lawful_pair(closed).agree(function, ("gain",) if function != "stored_energy" else ())


@cache
def lawful_pair(closed: bool) -> Both:
    return Both(lambda: lawful(closed), 0.2)


def test_what_does_not_depend_on_a_variable() -> None:
    """Time of a machine that nothing drives: a column of zeros, of single states and batches."""
    system = bc.compile(bc.load("double_pendulum"), schedule="rolled")
    q, u = system.random_state(np.random.default_rng(3), 2)
    for at in (q[0], u[0]), (q, u):
        found = system.derivatives("forward_dynamics", *at, by=("t",))
        assert np.array_equal(found.value, system.forward_dynamics(*at))
        assert found["t"].shape[:at[0].ndim] == at[0].shape
        assert not found["t"].any()


def test_elements_of_closed_machines_that_are_seen_whole() -> None:
    """Finite-element masses in a loop: rolled or not, such a machine is one graph, elements between links included."""
    def make() -> bc.Mechanism:
        m = bc.Mechanism("linkage", gravity=(0, -9.81, 0))
        m.add_body("crank", bc.Inertia.rod(1.0, (0, 0, 0), (0.3, 0, 0)))
        m.add_body("rod", bc.FlexibleBody.beam(1.0, bc.BeamSection.round(0.01, E=2e9, rho=2000.0), elements=2,
                                               modes={"y": 1}, inertia="consistent_nodal"))
        m.add_joint("A", bc.Revolute("z"), m.ground, "crank")
        m.add_joint("B", bc.Revolute("z"), "crank", "rod", bc.Pose((0.3, 0, 0)))
        m.add_constraint("slot", bc.PointOnPlane("y"), m.ground, "rod.tip")
        m.add_spring("spring", m.ground, "rod.tip", (1.5, 0, 0), (0, 0, 0), stiffness=30.0, damping=2.0)
        m.add_joint_force("drive", "A", lambda at: -0.3 * at.u("B"))
        return m

    Both(make).agree("forward_dynamics")
