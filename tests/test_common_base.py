"""Coupled loops on a common base body: any spanning tree, manipulators of few freedoms, any state, dependent speeds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import looped
from bellcrank.loops.common_base import loops_on_bases
from bellcrank.loops.plan import LoopPlan
from bellcrank.mechanism.joints import Joint
from bellcrank.system.forward_dynamics import run_by_plan
from bellcrank.system.loop_plans import LoopPlans
from looped import EPS
from looped_graphs import Graph, build
from test_reduction import ANGLES, RATES, all_joints, legs, pendulum


def agrees(machine: bc.Mechanism, cut: list[str], prescribed: float = 0.0, **options: Any) -> None:
    """Accelerations by `reduction` are the dense oracle's, to rounding, with the same joints cut."""
    oracle = bc.compile(machine, "dense", "numpy", cut=cut)
    q, u, tau = looped.states(oracle, count=2)
    expected = oracle.forward_dynamics(q, u, tau, t=prescribed)
    backend = options.pop("backend", "numpy")
    found = bc.compile(machine, "reduction", backend, cut=cut, **options).forward_dynamics(q, u, tau, t=prescribed)
    assert np.abs(found - expected).max() < 2000.0 * oracle.nu * EPS * np.abs(expected).max()


# -- spanning trees --------------------------------------------------------------------------------------------------
@pytest.mark.everyday(6)
@pytest.mark.parametrize(("name", "cut"), [
    *(("slider_crank", [joint]) for joint in ("crank", "big_end", "slide")), ("andrews", ["F"]),
    ("andrews", ["B", "A7"]), ("double_wishbone", ["rack", "lower_arm"]),
    ("quarter_car", ["arm"]), ("quarter_car", ["knuckle", "tie_rod"]), ("four_bar_chain", ["front2", "crank3"]),
    ("ladder", ["arm1", "arm2", "arm3", "arm4"]), ("ladder", ["arm0", "arm2", "outer3"]), ("delta", ["leg3.arm"]),
    ("linkage_quadruped", ["FL_knee", "HR_crank"])], ids=str)
def test_any_joints_may_be_cut(name: str, cut: list[str]) -> None:
    agrees(bc.load(name), cut)


def cart_ladder(base: Joint, cells: int = 3) -> bc.Mechanism:
    """A ladder whose arms hang from a cart: all that is coupled to a moving base at once."""
    m = bc.Mechanism("ladder on a cart")
    cart = m.add_body("cart", bc.Inertia.box(2.0, (1.5, 0.2, 0.3), (0.7, 0.05, 0.02)))
    m.add_joint("cart", base, m.ground, cart, at=(0.3, 0.2, 0.1))
    last = None
    for i in range(cells + 1):
        x = 0.5 * i
        arm = m.add_body(f"arm{i}", bc.Inertia(1.2 + 0.1 * i, (x, 0.0, -0.4), (0.11, 0.10, 0.02)))
        m.add_joint(f"arm{i}", bc.Universal("x", "y"), cart, arm, at=(x, 0.0, 0.0))
        if last is not None:
            rung = m.add_body(f"coupler{i}", bc.Inertia(0.8, (x - 0.25, 0.0, -1.0), (0.03, 0.05, 0.06)))
            m.add_joint(f"inner{i}", bc.Revolute("y"), last, rung, at=(x - 0.5, 0.0, -1.0))
            m.add_joint(f"outer{i}", bc.Revolute("y"), rung, arm, at=(x, 0.0, -1.0))
        last = arm
    bob = m.add_body("bob", bc.Inertia.box(0.6, (0.1, 0.1, 0.3), (1.0, 0.1, -1.2)))  # where a tree goes on
    m.add_joint("bob", bc.Universal("y", "x"), "arm2", bob, at=(1.0, 0.0, -1.0))
    return m


@pytest.mark.parametrize("cut", [[], ["arm1", "arm2", "arm3"]], ids=["own", "paper"])
@pytest.mark.parametrize("base", [bc.Free(), bc.Revolute((0.2, 1.0, 0.3))], ids=str)
def test_ladder_on_a_moving_base(base: Joint, cut: list[str]) -> None:
    agrees(cart_ladder(base), cut)
    agrees(cart_ladder(base), cut, backend="llvm", schedule="rolled")


def test_forces_of_all_kinds_in_the_papers_tree() -> None:
    """Wrenches, springs between links, joint springs, rotors, prescribed motion, stabilised constraints (at a closed
    state: of redundant constraints that are open each plan keeps others)."""
    machine = cart_ladder(bc.Prismatic("x"))
    machine.add_armature("rotor", "inner1", 0.3)
    machine.add_joint_spring("torsion", "inner2", stiffness=5.0, damping=0.4)
    machine.add_spring("rope", "arm0", "coupler3", (0.0, 0.0, -0.5), (1.4, 0.1, -1.0), stiffness=40.0, damping=2.0,
                       length=0.3)
    machine.prescribe("cart", lambda t: 0.3 * t + 0.2 * t * t)
    cut = ["arm1", "arm2", "arm3"]
    oracle = bc.compile(machine, "dense", "numpy", cut=cut, baumgarte=(2.0, 3.0))
    state = oracle.assemble(u=np.random.default_rng(1).normal(size=oracle.nu), t=0.4)
    wrenches = {b.name: np.random.default_rng(2).normal(size=6) for b in machine.bodies}
    given = {"q": state.q, "u": state.u, "tau": np.ones(oracle.nu), "wrenches": wrenches, "t": 0.4}
    expected = oracle.forward_dynamics(**given)
    for backend in ("numpy", "llvm"):
        found = bc.compile(machine, "reduction", backend, cut=cut, baumgarte=(2.0, 3.0)).forward_dynamics(**given)
        assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


def test_work_per_cell_of_the_papers_tree() -> None:
    """O(n + m) also where each cell hangs from the one before: cells are of one kind, and cost the same."""
    def operations(cells: int) -> int:
        machine, cut = bc.load("ladder", cells=cells), [f"arm{i}" for i in range(1, cells + 1)]
        return bc.compile(machine, "reduction", schedule="rolled", cut=cut).operation_count().total

    some = [operations(cells) for cells in (8, 16, 24)]
    assert abs((some[2] - some[1]) - (some[1] - some[0])) < 5


def test_the_papers_ladder_is_one_pendulum() -> None:
    system = bc.compile(bc.load("ladder", cells=12), "reduction", cut=[f"arm{i}" for i in range(1, 13)])
    q, u, expected = (all_joints(system, 12, x) for x in (ANGLES, RATES, pendulum(12)))
    found = system.forward_dynamics(q, u, np.zeros(system.nu))
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


# -- manipulators of fewer than six freedoms -------------------------------------------------------------------------
def platform(kind: str, base: Joint | None, legs: int = 3) -> bc.Mechanism:
    """A platform on legs, each with a slide: on the ground, or on a cart on the joint `base`."""
    m = bc.Mechanism(kind)
    carrier = m.ground
    if base is not None:
        carrier = m.add_body("cart", bc.Inertia.box(5.0, (0.8, 0.8, 0.2), (0.0, 0.0, -0.1)))
        m.add_joint("cart", base, m.ground, carrier, at=(0.0, 0.0, -0.1))
    top = m.add_body("platform", bc.Inertia.cylinder(3.0, 0.3, 0.05, "z", (0.0, 0.0, 0.7)))
    for k in range(legs):
        c, s = math.cos(2.0 * math.pi * k / 3.0), math.sin(2.0 * math.pi * k / 3.0)
        foot, head = np.array([0.6 * c, 0.6 * s, 0.0]), np.array([0.3 * c, 0.3 * s, 0.7])
        along = tuple((head - foot) / np.linalg.norm(head - foot))
        across = (-s, c, 0.0)
        third = tuple(np.cross(along, across))
        lower = m.add_body(f"lower{k}", bc.Inertia.cylinder(1.0, 0.03, 0.4, "z", tuple(0.75 * foot + 0.25 * head)))
        upper = m.add_body(f"upper{k}", bc.Inertia.cylinder(0.7, 0.02, 0.4, "z", tuple(0.25 * foot + 0.75 * head)))
        first: Joint = bc.Revolute(across) if kind == "3-RPS" else bc.Universal(across, third)
        last: Joint = bc.Universal(third, across) if kind == "3-UPU" else bc.Spherical()
        m.add_joint(f"foot{k}", first, carrier, lower, at=tuple(foot))
        m.add_joint(f"slide{k}", bc.Prismatic(along), lower, upper, at=tuple(foot))
        m.add_joint(f"head{k}", last, upper, top, at=tuple(head))
    return m


@pytest.mark.parametrize("base", [None, bc.Free()], ids=str)
@pytest.mark.parametrize("kind", ["3-RPS", "3-UPU"])
def test_manipulators_of_three_freedoms(kind: str, base: Joint | None) -> None:
    machine = platform(kind, base)
    assert bc.compile(machine, "reduction", "numpy").dof == (3 if base is None else 9)
    agrees(machine, [])
    agrees(machine, ["foot1"])


def branched_leg() -> bc.Mechanism:
    """Two legs with six freedoms, and one that forks: a body on a ball joint, two rods from there to the platform."""
    machine = platform("6-UPS", None, legs=2)
    fork = machine.add_body("fork", bc.Inertia.box(0.5, (0.2, 0.2, 0.1), (0.4, -0.5, 0.1)))
    machine.add_joint("fork", bc.Spherical(), machine.ground, fork, at=(0.4, -0.5, 0.0))
    for name, x in (("left", 0.2), ("right", 0.5)):
        rod = machine.add_body(name, bc.Inertia.box(0.3, (0.05, 0.05, 0.5), (x, -0.4, 0.4)))
        machine.add_joint(f"{name}.low", bc.Universal("x", "y"), fork, rod, at=(x, -0.5, 0.2))
        machine.add_joint(f"{name}.high", bc.Spherical(), rod, "platform", at=(0.5 * x, -0.3, 0.7))
    return machine


@pytest.mark.parametrize("cut", [[], ["fork"], ["fork", "left.low"]], ids=str)
def test_legs_that_fork(cut: list[str]) -> None:
    """Loops that begin and end at the virtual body, where the leg's foot is cut."""
    system = bc.compile(branched_leg(), "reduction", "numpy", cut=cut)
    assert sorted(len(g.closures) for g in system.plans.general().groups) == [1, 2]
    agrees(branched_leg(), cut)


# -- what is covered -------------------------------------------------------------------------------------------------
def test_sets_of_links() -> None:
    """Each cell of the paper's ladder hangs from the one before and closes on the ground."""
    tree = bc.compile(bc.load("ladder", cells=3), "elimination", "numpy", cut=["arm1", "arm2", "arm3"]).model.tree
    name = tree.link_names
    assert [([name[k] for k in s.links], name[s.base], name[s.virtual] if s.virtual > 0 else "")
            for s in loops_on_bases(tree)] == [(["arm0", "coupler1", "arm1"], "ground", ""),
                                               (["coupler2", "arm2"], "ground", "arm1"),
                                               (["coupler3", "arm3"], "ground", "arm2")]


def test_the_reason_names_the_loops() -> None:
    with pytest.raises(bc.ModelError, match=r"4\.4.*'shank' and by 'pin_lower'.*method='elimination'"):
        bc.compile(bc.load("jansen"), "reduction")


def test_coverage_does_not_wait_for_a_closed_position() -> None:
    """What is covered is known at compile, also of a machine that closes nowhere."""
    machine = bc.load("rope_ladder", rungs=3)
    far = machine.add_body("far", bc.Inertia.box(1.0, (0.1, 0.1, 0.1)))
    machine.add_joint("far", bc.Revolute("z"), machine.ground, far)
    machine.add_joint("never", bc.Spherical(), far, machine.ground, bc.Pose((0.0, 0.0, 5.0)), bc.Pose())
    with pytest.raises(bc.ModelError, match="no common base body"):
        bc.compile(machine, "reduction")


@pytest.mark.parametrize("graph", [
    Graph((("Planar", -1), ("Free", 0), ("Planar", 0), ("Planar", 2)),
          (("Prismatic", 1, -1), ("Revolute", 1, -1), ("Revolute", 3, -1)), 12, 3, False, True, True, 363),
    Graph((("Free", -1), ("Free", -1), ("Free", -1), ("Screw", 0)),
          (("Revolute", 2, 3), ("Universal", 0, 3), ("Screw", 0, 3)), 13, 0, False, False, True, 294)],
    ids=["planar", "screw"])
def test_closures_that_forbid_nothing(graph: Graph) -> None:
    """Found by random search: a free joint that is cut, a closure all of whose constraints are redundant."""
    agrees(build(graph), [])


def test_virtual_body_that_only_follows_laws() -> None:
    """Its group has no speed that others depend on, and yet must hear from them."""
    machine = legs(None, 3)
    machine.prescribe("hip0", lambda t: -0.3 * t)
    machine.prescribe("knee0", lambda t: 0.2 * t * t)
    oracle = bc.compile(machine, "dense", "numpy")
    state = oracle.assemble(t=0.4)
    expected = oracle.forward_dynamics(state.q, state.u, t=0.4)
    found = bc.compile(machine, "reduction", "numpy").forward_dynamics(state.q, state.u, t=0.4)
    assert np.abs(expected).max() > 0.1 and np.abs(found - expected).max() < 1e-12


# -- any state -------------------------------------------------------------------------------------------------------
def test_any_start_of_the_redundant_five_bar() -> None:
    """Where a leg is stretched its own speeds cannot follow the tip, and its loop is closed together with the other."""
    machine = bc.load("redundant_five_bar")
    elimination, reduction = (bc.compile(machine, method) for method in ("elimination", "reduction"))
    rng = np.random.default_rng(0)
    q, u = [], []
    while len(q) < 200:
        try:
            angles = rng.uniform(-np.pi, np.pi, elimination.nq)
            state = elimination.assemble(q=angles, u=rng.normal(size=elimination.nu))
        except bc.AssemblyError:
            continue
        q.append(state.q)
        u.append(state.u)
    expected = elimination.forward_dynamics(np.array(q), np.array(u))
    error = np.abs(reduction.forward_dynamics(np.array(q), np.array(u)) - expected).max(axis=1)
    spread = np.array([looped.conditioning(elimination, x) for x in q])
    assert (error < 10.0 * EPS * spread**2 * np.abs(expected).max(axis=1)).all()
    together = {tuple(len(g.closures) for g in reduction.plans.at(x, 0.0).groups) for x in q}
    assert together == {(1, 1), (2,)}


def test_runs_pass_stretched_legs() -> None:
    machine = bc.load("redundant_five_bar")
    reduction, elimination = (bc.compile(machine, method) for method in ("reduction", "elimination"))
    state = elimination.assemble(q=np.random.default_rng(0).uniform(-np.pi, np.pi, elimination.nq))
    ends = [system.simulate(state, 0.5, stepper="dop853", rtol=1e-12, atol=1e-12)["q"].values[-1]
            for system in (reduction, elimination)]  # coarser runs differ by 1e-4 where they pass
    assert np.abs(ends[0] - ends[1]).max() < 1e-6


# -- velocity level --------------------------------------------------------------------------------------------------
def dependent_speeds(plans: LoopPlans, q: np.ndarray, u: np.ndarray, t: float = 0.0, plan: LoopPlan | None = None
                     ) -> tuple[np.ndarray, LoopPlan]:
    """All speeds from the independent ones of a plan, and the plan that served."""
    return run_by_plan(plans, "dependent_speeds", {"q": q, "u": u}, None, t, plan or plans.first(q, t))


@pytest.mark.parametrize(("name", "cut"), [
    ("slider_crank", []), ("andrews", ["B", "A7"]), ("quarter_car", []), ("delta", []), ("ladder", []),
    ("ladder", ["arm1", "arm2", "arm3", "arm4"]), ("four_bar_chain", []), ("linkage_quadruped", []), ("jansen", [])],
    ids=str)
def test_dependent_speeds(name: str, cut: list[str]) -> None:
    """All speeds from the independent ones, whatever else u says: those that `project` finds."""
    machine = bc.load(name)
    for method in ("reduction", "elimination", "complement"):
        try:
            system = bc.compile(machine, method, "numpy", cut=cut)
        except bc.ModelError:
            continue
        q, u, tau = (x[0] for x in looped.states(system, count=1))
        plan = system.plans.at(q, 0.0)
        given = np.full(system.nu, 1e6)
        given[list(plan.independent)] = u[list(plan.independent)]
        found, used = dependent_speeds(system.plans, q, given, plan=plan)
        allowed = 20.0 * EPS * looped.conditioning(system, q) * np.abs(u).max()
        assert used is plan and np.abs(found - system.project(q, u)[1]).max() < allowed
        udot, expected = (system.forward_dynamics(q, v, tau) for v in (found, u))
        assert np.abs(udot - expected).max() < 1e-10 * np.abs(expected).max()


def test_dependent_speeds_of_prescribed_motions() -> None:
    machine = bc.load("double_wishbone")
    machine.prescribe("rack", lambda t: 0.02 * t)
    for method in ("reduction", "elimination"):
        system = bc.compile(machine, method, "numpy")
        state = system.assemble(u=np.random.default_rng(7).normal(size=system.nu), t=0.3)
        plan = system.plans.at(state.q, 0.3)
        given = np.zeros(system.nu)
        given[list(plan.independent)] = state.u[list(plan.independent)]
        found, _ = dependent_speeds(system.plans, state.q, given, t=0.3, plan=plan)
        assert np.abs(found - state.u).max() < 1e-13


def test_velocity_level_holds_loops() -> None:
    """The paper's comparison: a four-bar by RK4 in steps of 0.01 s, not projected, closed at the velocity level, (46)
    to (51), and at the acceleration level only."""
    system = bc.compile(bc.load("four_bar"), "reduction")
    start, n = system.assemble(q={"A": 0.5}), system.nq

    def open_by(closing: bool) -> float:
        def flow(y: np.ndarray) -> np.ndarray:
            if closing:
                speeds = dependent_speeds(system.plans, y[:n], y[n:])[0]
                return np.concatenate([speeds, system.forward_dynamics(y[:n], speeds)])
            return np.concatenate([y[n:], system.forward_dynamics(y[:n], y[n:])])

        y, h = np.concatenate([start.q, start.u]), 0.01
        for _ in range(200):
            a = flow(y)
            b = flow(y + 0.5 * h * a)
            c = flow(y + 0.5 * h * b)
            y = y + (h / 6.0) * (a + 2.0 * b + 2.0 * c + flow(y + h * c))
        return float(np.abs(system.loop_error(y[:n])).max())

    assert open_by(True) < 0.05 * open_by(False)
