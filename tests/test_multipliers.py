"""The multiplier methods of Anderson & Critchley and of Kang & Yoon against the full equations, and what they cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc
import looped
import whole_states
from bellcrank.math import sin

Floats = npt.NDArray[np.float64]

POINTS = ("recursive/centroid", "recursive/joint", "recursive/origin")
METHODS = ("kane", "recursive", *POINTS)

#: machines whose unrolled kernels compile within a second or two
SMALL = ("four_bar", "slider_crank", "five_bar", "redundant_five_bar", "quarter_car", "bennett", "bricard", "andrews")


class Case(NamedTuple):
    """States of a machine, the oracle's accelerations, and how far two good methods may be apart."""

    machine: bc.Mechanism
    given: tuple[Floats, Floats, Floats]
    expected: Floats
    tolerance: float


def scaled_condition(matrix: Floats) -> float:
    """The largest condition number after scaling to a unit diagonal: L D L^T does not feel the scaling."""
    size = np.sqrt(np.diagonal(matrix, axis1=-2, axis2=-1))
    return float(np.linalg.cond(matrix / size[..., :, None] / size[..., None, :]).max())


def case_of(machine: bc.Mechanism) -> Case:
    """The tolerance is 64 eps times what the two systems of equations amplify: M for the accelerations without
    loops, J M^-1 J^T for the multipliers; and times the size of the accelerations, with or without loops, since one
    is corrected into the other. (Measured: below 4 eps times that.)"""
    oracle = bc.compile(machine, "dense", "numpy")
    q, u, tau = looped.states(oracle)
    expected = oracle.forward_dynamics(q, u, tau)
    assert np.abs(bc.analyze.loop_acceleration_error(oracle, q, u, expected)).max() < 1e-9 * np.abs(expected).max()
    some, held = whole_states.carrying(oracle, True), oracle.model.prescribed_mask()
    free = [i for i in some if not held[i]]
    push = np.zeros_like(tau)
    push[:, some] = whole_states.tree_forces(oracle, q, tau)
    mass = oracle.mass_matrix(q, speeds="tree")[:, free][:, :, free]
    jacobian = bc.analyze.loop_jacobian(oracle, q)[:, list(oracle.plans.general().kept)][:, :, free]
    reduced = jacobian @ np.linalg.solve(mass, np.swapaxes(jacobian, -1, -2))
    without = np.linalg.solve(mass, (push - oracle.bias(q, u, speeds="tree"))[:, free, None])
    size = max(np.abs(expected).max(), np.abs(without).max())
    return Case(machine, (q, u, tau), expected,
                64 * looped.EPS * (scaled_condition(mass) + scaled_condition(reduced)) * float(size))


@cache
def zoo_case(name: str) -> Case:
    return case_of(bc.load(name))


def check(case: Case, method: str, backend: str) -> None:
    found = bc.compile(case.machine, method, backend).forward_dynamics(*case.given)
    away = np.abs(found - case.expected).max()
    assert away < case.tolerance, f"{case.machine.name} by {method}: {away:.2g}, allowed {case.tolerance:.2g}"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", looped.ZOO)
def test_agrees_with_full_equations(name: str, method: str) -> None:
    check(zoo_case(name), method, "numpy")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SMALL)
def test_agrees_with_full_equations_compiled(name: str, method: str) -> None:
    check(zoo_case(name), method, "llvm")


# -- what the zoo does not have -------------------------------------------------------------------------------------
BODY = bc.Inertia(1.3, (0.1, 0.05, -0.08), [[0.3, 0.01, -0.02], [0.01, 0.25, 0.03], [-0.02, 0.03, 0.2]])


def arm(m: bc.Mechanism, name: str, base: tuple[float, float, float], parent: str | bc.Body | None = None) -> None:
    """Two bodies on skew pins."""
    lower, upper = m.add_body(f"{name}1", BODY), m.add_body(f"{name}2", BODY)
    m.add_joint(f"{name}.1", bc.Revolute((0.3, 0.8, 0.2)), m.ground if parent is None else parent, lower, bc.Pose(base))
    m.add_joint(f"{name}.2", bc.Revolute((0.9, -0.1, 0.4)), lower, upper, bc.Pose((0.3, 0.1, -0.2)))


def geared() -> bc.Mechanism:
    """Rods between two arms and to the ground, a gear between joints of a branch and of both arms."""
    m = bc.Mechanism("geared", gravity=(1.0, -2.0, -9.0))
    arm(m, "a", (0.0, 0.0, 0.0))
    arm(m, "b", (0.8, 0.1, 0.0))
    m.add_joint("slide", bc.Prismatic((0.2, 0.3, 0.9)), "a1", m.add_body("slider", BODY), bc.Pose((0.0, 0.2, 0.1)))
    m.add_constraint("rod", bc.Distance(0.9), "a2", "b2", bc.Pose((0.2, 0.1, 0.0)), bc.Pose((0.1, -0.2, 0.1)))
    m.add_constraint("stay", bc.Distance(0.7), m.ground, "slider", bc.Pose((0.3, -0.4, 0.2)))
    m.add_coupler("gear", {"a.2": 1.0, "b.1": -2.5})
    return m


def driven() -> bc.Mechanism:
    """A loop of five joints on a moving base with one of them prescribed, and a gear that knows it."""
    m = bc.Mechanism("driven", gravity=(1.0, -2.0, -9.0))
    m.add_joint("base", bc.Free(), m.ground, m.add_body("hull", BODY))
    arm(m, "a", (0.0, 0.2, 0.0), "hull")
    arm(m, "b", (0.7, 0.0, 0.1), "hull")
    m.add_joint("tip", bc.Revolute((0.9, -0.1, 0.4)), "b2", m.add_body("b3", BODY), bc.Pose((0.2, 0.1, 0.1)))
    m.add_constraint("rod", bc.Distance(0.8), "a2", "b3", bc.Pose((0.2, 0.1, 0.0)))
    m.add_coupler("gear", {"a.2": 1.0, "b.1": -2.5, "b.2": 0.5})
    m.prescribe("b.1", lambda t: 0.2 + 0.5 * t + 0.3 * sin(2.0 * t + 0.4))
    return m


def driven_crank() -> bc.Mechanism:
    m = bc.load("slider_crank")
    m.prescribe("big_end", lambda t: -0.1 + 2.0 * t - 0.3 * sin(t + 0.4))
    return m


def sprung() -> bc.Mechanism:
    m = bc.load("five_bar")
    m.add_spring("spring", "link1.1", "link2.2", (0.3, 0.0, 0.0), (0.5, 0.1, 0.0), stiffness=300.0, damping=20.0,
                 length=0.4)
    m.add_joint_spring("torsion", "leg2.1", stiffness=20.0, damping=0.3, rest=0.1)
    return m


def anchored() -> bc.Mechanism:
    """One condition has its end on the ground as child, where others have it as parent."""
    m = bc.load("double_wishbone")
    m.add_constraint("strap", bc.Distance(0.6), "knuckle", m.ground, child_pose=bc.Pose((0.2, 0.5, 0.9)))
    return m


@cache
def own_case(build: Callable[[], bc.Mechanism]) -> Case:
    return case_of(build())


@pytest.mark.parametrize("backend", ("llvm", "numpy"))
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("build", (geared, driven, driven_crank, sprung, anchored))
def test_couplers_rods_springs_and_prescribed_joints(build: Callable[[], bc.Mechanism], method: str, backend: str
                                                     ) -> None:
    check(own_case(build), method, backend)


@pytest.mark.parametrize("method", METHODS)
def test_open_loops_with_wrenches(method: str) -> None:
    """Off the constraints, with a wrench on a body inside the loops; and how stabilisation pulls back."""
    machine = bc.load("quarter_car")
    oracle, stabilised = bc.compile(machine, "dense", "numpy"), bc.compile(machine, method, baumgarte=(5.0, 7.0))
    rng = np.random.default_rng(5)
    q = oracle.integrate(oracle.assemble().q, 0.01 * rng.normal(size=oracle.nu))
    u, tau = rng.normal(size=(2, oracle.nu))
    tau[oracle.model.tree.loop_speeds()] = 0.0  # whose direction is not determined where loops are open
    wrenches = {"knuckle_wheel": rng.normal(size=6) * 100.0}
    expected = oracle.forward_dynamics(q, u, tau, wrenches=wrenches)
    found = bc.compile(machine, method).forward_dynamics(q, u, tau, wrenches=wrenches)
    bound = 1e-11 * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound)
    left = bc.analyze.loop_acceleration_error(stabilised, q, u, stabilised.forward_dynamics(q, u, tau))
    pull = 2.0 * 5.0 * oracle.loop_rate_error(q, u) + 7.0**2 * oracle.loop_error(q)
    assert np.abs(pull).max() > 1.0
    np.testing.assert_allclose(left, -pull, rtol=0, atol=bound)


# -- cost -----------------------------------------------------------------------------------------------------------
def spanning_tree(machine: bc.Mechanism, cut: tuple[str, ...]) -> bc.Mechanism:
    """The machine without the joints in `cut` and without what else closes loops."""
    tree = bc.Mechanism(machine.name, gravity=machine.gravity)
    for body in machine.bodies:
        tree.add_body(body.name, body.inertia)
    names = [tree.ground.name, *(body.name for body in machine.bodies)]
    for r in machine.joints:
        if r.name not in cut:
            tree.add_joint(r.name, r.joint, names[r.parent], names[r.child], r.parent_pose, r.child_pose)
    return tree


def loop_multiplications(machine: bc.Mechanism, method: str, cut: tuple[str, ...] = ()) -> int:
    """Multiplications that the loops add to those of the spanning tree."""
    whole, tree = (bc.compile(m, method).operation_count().muls for m in (machine, spanning_tree(machine, cut)))
    return whole - tree


def chain_on_rods(n: int, m: int) -> bc.Mechanism:
    """n bodies on skew pins in series, the last on m rods to the ground: every condition passes every body."""
    rng = np.random.default_rng(3)
    machine = bc.Mechanism("chain on rods")
    parent, at = machine.ground, np.zeros(3)
    for k in range(n):
        axis, com, step = rng.normal(size=(3, 3))
        a = 0.05 * rng.normal(size=(3, 3))
        body = machine.add_body(f"b{k}", bc.Inertia(1.0 + rng.random(), tuple(0.2 * com), np.eye(3) * 0.2 + a @ a.T))
        machine.add_joint(f"j{k}", bc.Revolute(tuple(axis)), parent, body, bc.Pose(tuple(0.4 * step)))
        parent, at = body, at + 0.4 * step
    for k in range(m):
        anchor, arm = rng.normal(size=3), np.array((0.1 * k, 0.2, 0.3))
        machine.add_constraint(f"rod{k}", bc.Distance(float(np.linalg.norm(at + arm - anchor))), machine.ground, parent,
                               bc.Pose(tuple(anchor)), bc.Pose(tuple(arm)))
    return machine


@pytest.mark.parametrize("m", (1, 2, 3))
def test_origin_saves_six_multiplications_per_condition_and_body(m: int) -> None:
    """Kang & Yoon, section 3: the instant global origin saves 6 m multiplications a body in (39). A body more in the
    chain, and the difference of the points grows by exactly that."""
    saved = [loop_multiplications(machine, "recursive/centroid") - loop_multiplications(machine, "recursive/origin")
             for machine in (chain_on_rods(n, m) for n in (4, 5, 6, 7))]
    assert np.diff(saved).tolist() == [6 * m] * 3


def test_origin_on_the_quarter_car() -> None:
    """One body of five, the knuckle, hangs on a moving body; what would be shifted from the others into the ground is
    needed by nobody, at no point. The 9 conditions save 6 * 9 multiplications there, and the rest of the loops' cost
    is no larger. (The sum of tree and loops is another matter: the four bodies on the ground pay for (36).)"""
    cut = ("upper_link_front_ball", "upper_link_rear_ball", "tie_rod_ball")
    car = bc.load("quarter_car")
    car_without_spring = spanning_tree(car, ())
    cost = {point: loop_multiplications(car_without_spring, point, cut) for point in POINTS}
    assert cost["recursive/centroid"] - cost["recursive/origin"] >= 6 * 9
    assert cost["recursive/joint"] < cost["recursive/origin"] < cost["recursive/centroid"]


def test_origin_pays_where_bodies_hang_on_moving_bodies() -> None:
    """Tree and loops together: cheaper at the origin for chains and legs of several bodies."""
    for name in ("bricard", "jansen", "andrews", "ladder"):
        counts = {point: bc.compile(bc.load(name), point).operation_count() for point in POINTS}
        assert counts["recursive/origin"].muls < counts["recursive/centroid"].muls
        assert counts["recursive/origin"].adds < counts["recursive/centroid"].adds
