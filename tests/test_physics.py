"""Identities of mechanics on random mechanisms: they know nothing of how results are computed.

Derivatives along a motion are central differences of order eight: with h = 2e-3 and motions of order one,
truncation and rounding both stay below 1e-11 of the scale; the tests ask for 1e-8 of it.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from mechanisms import EPS, Floats, Part, State, Tree, build, condition, examples, state, trees

STEPS = 2e-3 * np.array([-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0])
WEIGHTS = np.array([3.0, -32.0, 168.0, -672.0, 672.0, -168.0, 32.0, -3.0]) / (840.0 * 2e-3)
TOLERANCE = 1e-8


def setup(tree: Tree, **options: bool) -> tuple[bc.Mechanism, bc.System, State]:
    m = build(tree)
    return m, bc.compile(m, backend="numpy", **options), state(m, tree.seed)


def motion(system: bc.System, s: State) -> tuple[Floats, Floats]:
    """q and u at the difference steps of a motion with speeds u and accelerations udot at time 0."""
    h = STEPS[:, None]
    return system.integrate(s.q, h * s.u + 0.5 * h * h * s.udot), s.u + h * s.udot


def rate(values: Floats) -> Floats:
    """Time derivative at 0 of values at the difference steps (first axis)."""
    return np.tensordot(WEIGHTS, values, axes=1)


def close(got: Floats, wanted: Floats, *terms: Floats | float, tolerance: float = TOLERANCE) -> None:
    """Equal to `tolerance` of the largest among the two and the `terms` that went into them."""
    scale = max(1.0, *(float(np.abs(x).max(initial=0.0)) for x in (got, wanted, *terms)))
    assert np.shape(got) == np.shape(wanted)
    assert np.abs(np.asarray(got) - wanted).max(initial=0.0) <= tolerance * scale


still = trees(driven=False)
plain = trees(driven=False, wrenches=False)


# -- the equations of motion -----------------------------------------------------------------------
@examples(60)
@given(trees())
def test_inverse_dynamics_undoes_forward_dynamics(tree: Tree) -> None:
    _, system, s = setup(tree)
    tau = system.inverse_dynamics(s.q, s.u, s.udot, t=s.t)
    udot = system.forward_dynamics(s.q, s.u, tau, t=s.t)
    allowed = 1e3 * EPS * condition(system, s) * max(1.0, np.abs(tau).max())
    assert np.abs(udot - s.udot)[s.free].max(initial=0.0) < allowed
    again = system.inverse_dynamics(s.q, s.u, udot, t=s.t)
    assert np.abs(again - tau)[s.free].max(initial=0.0) < allowed


@examples(40)
@given(still)
def test_the_mass_matrix(tree: Tree) -> None:
    """Symmetric, positive definite, twice the kinetic energy, and the slope of inverse dynamics."""
    _, system, s = setup(tree)
    matrix = system.mass_matrix(s.q)
    assert np.array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix).min() > 0.0
    close(system.kinetic_energy(s.q, s.u), 0.5 * s.u @ matrix @ s.u, tolerance=1e-13 * system.nu)
    bias = system.bias(s.q, s.u)
    tau = system.inverse_dynamics(s.q, s.u, np.concatenate([np.eye(system.nu), s.udot[None]]))
    close(tau[:-1], matrix + bias, tolerance=1e-12)  # M is symmetric: rows are columns
    close(tau[-1], matrix @ s.udot + bias, bias, tolerance=1e-12)


@examples(40)
@given(still)
def test_gyroscopic_forces_do_no_work(tree: Tree) -> None:
    """u'(dM/dt - 2C) u = 0, where C u = bias(q, u) - bias(q, 0)."""
    _, system, s = setup(tree)
    velocity_terms = system.bias(s.q, s.u) - system.bias(s.q, 0.0 * s.u)
    q = system.integrate(s.q, STEPS[:, None] * s.u)
    work = rate(np.einsum("kij,i,j->k", system.mass_matrix(q), s.u, s.u))
    close(work, 2.0 * s.u @ velocity_terms, np.abs(s.u) @ np.abs(velocity_terms))


@examples(40)
@given(plain)
def test_gravity_is_the_slope_of_the_potential(tree: Tree) -> None:
    _, system, s = setup(tree)
    steps = STEPS[:, None, None] * np.eye(system.nu)
    slope = rate(system.potential_energy(system.integrate(s.q, steps)))
    close(system.bias(s.q, np.zeros(system.nu)), slope, system.potential_energy(s.q))


# -- balances --------------------------------------------------------------------------------------
def external(m: bc.Mechanism, system: bc.System, s: State, wrenches: Floats) -> list[tuple[Floats, Floats, Floats]]:
    """For every body: its position, and the moment about it and force of everything but gravity and joints."""
    found = []
    for i, body in enumerate(m.bodies):
        there = system.pose(s.q, body.name, t=s.t)
        rotation, position = there.rotation, there.position
        moment, force = wrenches[i, :3].copy(), wrenches[i, 3:].copy()
        for w in m.wrenches:
            if w.body == body.index:
                axes = rotation if w.axes == "body" else np.eye(3)
                own_force, own_moment = (axes @ [x(s.t) if callable(x) else x for x in part]
                                         for part in (w.force, w.moment))
                force += own_force
                moment += own_moment + np.cross(rotation @ np.array(w.at), own_force)
        found.append((position, moment, force))
    return found


def random_wrenches(tree: Tree, m: bc.Mechanism) -> Floats:
    return np.random.default_rng(tree.seed + 1).normal(size=(len(m.bodies), 6))


@examples(50)
@given(still)
def test_power_balance(tree: Tree) -> None:
    """dE/dt is the power of joint forces and wrenches."""
    m, system, s = setup(tree)
    wrenches = random_wrenches(tree, m)
    tau = system.inverse_dynamics(s.q, s.u, s.udot, wrenches=wrenches, t=s.t)
    q, u = motion(system, s)
    energy = system.kinetic_energy(q, u) + system.potential_energy(q)
    power = [tau @ s.u]
    for body, (_, moment, force) in zip(m.bodies, external(m, system, s, wrenches), strict=True):
        velocity = system.velocity(s.q, s.u, body.name)
        power.append(moment @ velocity[:3] + force @ velocity[3:])
    close(rate(energy), sum(power), np.array(power), energy)


def reaction(m: bc.Mechanism, system: bc.System, s: State, part: Part, i: int, wrench: Floats
             ) -> tuple[Floats, Floats, Floats]:
    """Point, moment and force, in the world, of what joint i exerts on body i, from its documented frame:
    about the joint's origin on its child, in the axes of that; body i is the parent of joints that are backwards."""
    record, sign = m.joint(f"j{i}"), -1.0 if part.backwards else 1.0
    rotation, position = np.eye(3), np.zeros(3)
    if record.child:
        there = system.pose(s.q, m.bodies[record.child - 1].name, t=s.t)
        rotation, position = there.rotation, there.position
    return (position + rotation @ np.array(record.child_pose.position), sign * (rotation @ wrench[:3]),
            sign * (rotation @ wrench[3:]))


@examples(60)
@given(trees(), st.booleans())
def test_newton_and_euler_for_every_body(tree: Tree, free_frames: bool) -> None:
    """m a = sum of forces, dL/dt = sum of moments about the centre of mass: this fixes all reactions."""
    m, system, s = setup(tree, free_frames=free_frames)
    wrenches = random_wrenches(tree, m)
    reactions = system.reactions(s.q, s.u, udot=s.udot, wrenches=wrenches, t=s.t)
    assert set(reactions) == set(system.joint_names)
    acting = [reaction(m, system, s, part, i, reactions[f"j{i}"]) for i, part in enumerate(tree.parts)]
    for i, (body, (origin, moment, force)) in enumerate(
            zip(m.bodies, external(m, system, s, wrenches), strict=True)):
        there = system.pose(s.q, body.name, t=s.t)
        rotation, position = there.rotation, there.position
        com = position + rotation @ np.array(body.inertia.com)
        moment = moment + np.cross(origin - com, force)
        joints = [(1.0, acting[i])] + [(-1.0, acting[j]) for j, p in enumerate(tree.parts) if p.parent == i]
        for sign, (point, joint_moment, joint_force) in joints:
            force = force + sign * joint_force
            moment = moment + sign * (joint_moment + np.cross(point - com, joint_force))
        motion_of = system.acceleration(s.q, s.u, s.udot, body.name, body.inertia.com, t=s.t)
        omega = system.velocity(s.q, s.u, body.name, t=s.t)[:3]
        xx, xy, xz, yy, yz, zz = body.inertia.inertia
        about = rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ rotation.T
        sizes = [np.abs(x).max() * (1.0 + np.abs(a[0] - com).max()) for a in acting for x in a[1:]]
        close(force + body.inertia.mass * np.array(m.gravity), body.inertia.mass * motion_of[3:], *sizes,
              tolerance=1e-12)
        close(moment, about @ motion_of[:3] + np.cross(omega, about @ omega), *sizes, tolerance=1e-12)


@examples(30)
@given(trees())
def test_reactions_contain_the_joint_forces(tree: Tree) -> None:
    """Without accelerations given, reactions are those of forward dynamics; their part along the joint is tau."""
    m, system, s = setup(tree)
    udot = system.forward_dynamics(s.q, s.u, s.tau, t=s.t)
    forces = system.drive_forces(s.q, s.u, s.tau, t=s.t)
    given_udot = system.reactions(s.q, s.u, udot=udot, t=s.t)
    at = 0
    for name, wrench in system.reactions(s.q, s.u, s.tau, t=s.t).items():
        assert np.array_equal(wrench, given_udot[name])
    for record in m.joints:
        if type(record.joint).__name__ in ("Revolute", "Prismatic"):
            axis = record.child_pose.rotation @ record.joint.axis
            part = slice(0, 3) if type(record.joint).__name__ == "Revolute" else slice(3, 6)
            wrench = given_udot[record.name]
            close(axis @ wrench[part], forces[at], wrench, tolerance=1e-11 * max(1.0, condition(system, s) * 1e-4))
        at += record.joint.nu


@examples(50)
@given(still)
def test_momentum_balance(tree: Tree) -> None:
    """The rate of momentum (about the world's origin) is what wrenches, gravity and the ground exert."""
    m, system, s = setup(tree)
    wrenches = random_wrenches(tree, m)
    reactions = system.reactions(s.q, s.u, udot=s.udot, wrenches=wrenches, t=s.t)
    acting = [(p, moment, force) for p, moment, force in external(m, system, s, wrenches)]
    fixed = set()  # bodies welded to the ground: not part of the momentum of what moves
    for i, part in enumerate(tree.parts):
        if part.joint == "Weld" and (part.parent < 0 or part.parent in fixed):
            fixed.add(i)
    acting = [a for i, a in enumerate(acting) if i not in fixed]
    acting += [reaction(m, system, s, part, i, reactions[f"j{i}"]) for i, part in enumerate(tree.parts)
               if i not in fixed and (part.parent < 0 or part.parent in fixed)]
    weight = system.model.mass * np.array(m.gravity)
    total = np.concatenate([np.cross(system.center_of_mass(s.q), weight), weight])
    for point, moment, force in acting:
        total = total + np.concatenate([moment + np.cross(point, force), force])
    q, u = motion(system, s)
    close(rate(system.momentum(q, u)), total, *(x for a in acting for x in a))
    close(rate(system.center_of_mass(q)), system.momentum(s.q, s.u)[3:] / system.model.mass)


# -- kinematics ------------------------------------------------------------------------------------
@examples(50)
@given(still, st.integers(0, 5))
def test_velocities_are_rates_of_poses(tree: Tree, which: int) -> None:
    """And accelerations rates of velocities, and Jacobians give both; their rate is a rate."""
    _, system, s = setup(tree)
    place, point = f"b{which % len(tree.parts)}" if which else "tool", np.array([0.2, -0.1, 0.4])
    q, u = motion(system, s)
    there = system.pose(q, place)
    rotation, position = there.rotation, there.position
    here = system.pose(s.q, place)
    velocity = system.velocity(s.q, s.u, place, point)
    spin = rate(rotation) @ here.rotation.T
    close(np.array([spin[2, 1], spin[0, 2], spin[1, 0]]), velocity[:3])
    close(spin + spin.T, np.zeros((3, 3)))
    close(rate(position + rotation @ point), velocity[3:])
    acceleration = system.acceleration(s.q, s.u, s.udot, place, point)
    close(rate(system.velocity(q, u, place, point)), acceleration)
    jacobian, jacobian_rate = system.jacobian(s.q, place, point), system.jacobian_rate(s.q, s.u, place, point)
    close(jacobian @ s.u, velocity, tolerance=1e-12)
    close(jacobian @ s.udot + jacobian_rate @ s.u, acceleration, jacobian_rate, tolerance=1e-12)
    close(rate(system.jacobian(q, place, point)), jacobian_rate)


@examples(40)
@given(trees(), st.integers(0, 6))
def test_transposed_jacobian_turns_wrenches_into_joint_forces(tree: Tree, which: int) -> None:
    m, system, s = setup(tree)
    body = f"b{which % len(tree.parts)}"
    wrench = random_wrenches(tree, m)[0]
    with_it = system.inverse_dynamics(s.q, s.u, s.udot, wrenches={body: wrench}, t=s.t)
    without = system.inverse_dynamics(s.q, s.u, s.udot, t=s.t)
    close(without - with_it, system.jacobian(s.q, body, t=s.t).T @ wrench, with_it, tolerance=1e-12)


# -- motion ----------------------------------------------------------------------------------------
def run(system: bc.System, q: Floats, u: Floats, duration: float, n: int) -> tuple[Floats, Floats]:
    """A free motion in n steps by the commutator-free Runge-Kutta method of order four (Celledoni, Marthinsen
    and Owren 2003): the classical one where coordinates add up, and right where they turn."""
    h = duration / n
    for _ in range(n):
        k1, a1 = u, system.forward_dynamics(q, u)
        q2 = system.integrate(q, 0.5 * h * k1)
        k2 = u + 0.5 * h * a1
        a2 = system.forward_dynamics(q2, k2)
        k3 = u + 0.5 * h * a2
        a3 = system.forward_dynamics(system.integrate(q, 0.5 * h * k2), k3)
        k4 = u + h * a3
        a4 = system.forward_dynamics(system.integrate(q2, h * (k3 - 0.5 * k1)), k4)
        q = system.integrate(q, h / 12.0 * (3.0 * k1 + 2.0 * k2 + 2.0 * k3 - k4))
        q = system.integrate(q, h / 12.0 * (-k1 + 2.0 * k2 + 2.0 * k3 + 3.0 * k4))
        u = u + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
    return q, u


@pytest.mark.parametrize(("name", "duration", "steps"), [
    ("pendulum", 1.0, 20), ("double_pendulum", 0.4, 32), ("gyroscope", 0.3, 24), ("scara", 0.5, 16),
    ("crane", 1.0, 16), ("quadruped", 0.2, 8), ("chain", 0.1, 12)])
def test_a_free_run_keeps_its_energy(name: str, duration: float, steps: int) -> None:
    system = bc.compile(bc.load(name), backend="numpy")
    q, u = system.random_state(np.random.default_rng(3))

    def energy(q: Floats, u: Floats) -> float:
        return float(system.kinetic_energy(q, u) + system.potential_energy(q))

    ends = [run(system, q, u, duration, steps * k) for k in (1, 2, 4)]
    drift = [abs(energy(*end) - energy(q, u)) for end in ends]
    scale = float(system.kinetic_energy(q, u)) + abs(energy(q, u))
    gaps = [np.abs(np.concatenate([system.difference(a[0], b[0]), a[1] - b[1]])).max()
            for a, b in pairwise(ends)]
    order = np.log2(gaps[0] / gaps[1])
    assert 3.6 < order < 4.6, (order, gaps)
    assert drift[2] < 1e-5 * scale
    assert drift[2] < drift[0] / 100.0 or drift[2] < 1e-12 * scale


@examples(12)
@given(plain)
def test_momentum_of_a_free_flight(tree: Tree) -> None:
    """On a free joint and without gravity, momentum does not change at all."""
    parts = (Part("Free", -1), *(Part(**{**p.__dict__, "parent": p.parent + 1}) for p in tree.parts))
    m = build(Tree(parts, tree.seed))
    m.gravity = (0.0, 0.0, 0.0)
    system = bc.compile(m, backend="numpy")
    s = state(m, tree.seed)
    before = system.momentum(s.q, s.u)
    scale = 1.0 + float(np.abs(before).max())
    rough, fine = (np.abs(system.momentum(*run(system, s.q, s.u, 0.02, n)) - before).max() for n in (3, 6))
    assert fine < 1e-6 * scale
    assert fine < rough / 8.0 or fine < 1e-11 * scale


def test_dampers_act_in_hamiltons_equations() -> None:
    """dp/dt sees laws at the speeds that p means, not at zero."""
    plain, damped = bc.load("double_pendulum"), bc.load("double_pendulum")
    damped.add_joint_spring("damper", "shoulder", damping=3.0)
    a, b = bc.compile(plain, "momenta"), bc.compile(damped, "momenta")
    q, u = np.array([0.3, -0.4]), np.array([1.5, -2.0])
    p = a.momenta(q, u)
    assert (b.hamilton(q, p)[1] - a.hamilton(q, p)[1]) == pytest.approx([-3.0 * u[0], 0.0])
    assert b.forward_dynamics(q, u) == pytest.approx(a.forward_dynamics(q, u, [-3.0 * u[0], 0.0]))
    udot = b.forward_dynamics(q, u)
    assert b.inverse_dynamics(q, u, udot) == pytest.approx([0.0, 0.0], abs=1e-12)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_what_is_welded_to_the_ground_is_part_of_it(backend: str) -> None:
    """Mass, centre of mass, momentum and potential energy are those of the moving bodies, all four."""
    gravity = np.array([1.0, -2.0, -9.0])
    systems = []
    for heavy in (False, True):
        m = bc.Mechanism("press", gravity=tuple(gravity))
        base: bc.Body | str = m.ground
        if heavy:
            base = m.add_body("bed", bc.Inertia.box(500.0, (1, 1, 1), (0.3, 0.2, 0.1)))
            m.add_joint("bolts", bc.Weld(), m.ground, base, bc.Pose((0, 0, 0)))
            m.add_joint("rivets", bc.Weld(), base, m.add_body("panel", bc.Inertia(20.0, (1, 2, 3))))
        arm = m.add_body("arm", bc.Inertia.box(3.0, (0.4, 0.1, 0.1), (0.2, 0, 0)))
        m.add_joint("hinge", bc.Revolute("y"), base, arm, bc.Pose((0.1, 0.2, 0.3)))
        m.add_joint("glue", bc.Weld(), arm, m.add_body("tip", bc.Inertia(1.0, (0.4, 0, 0))))
        systems.append(bc.compile(m, backend=backend))
    q, u = np.array([[0.3], [-1.2]]), np.array([[2.0], [0.5]])
    for system in systems:
        assert system.model.mass == pytest.approx(4.0)
        energy = -system.model.mass * system.center_of_mass(q) @ gravity
        np.testing.assert_allclose(system.potential_energy(q), energy, rtol=1e-13)
        total = energy + system.kinetic_energy(q, u)
        np.testing.assert_allclose(system.energy(q, u), total, rtol=1e-13)
    for name, state_of in (("potential_energy", (q,)), ("center_of_mass", (q,)), ("momentum", (q, u)),
                        ("kinetic_energy", (q, u))):
        np.testing.assert_allclose(*(getattr(system, name)(*state_of) for system in systems), rtol=1e-13)
