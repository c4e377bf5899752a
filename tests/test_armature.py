"""Rotor inertia at joints: hand formulas, every formulation against the bare machine's matrix plus a diagonal."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given

import bellcrank as bc
import looped
import whole_states
from bellcrank.examples.chains import general_chain
from bellcrank.formulations import method_names
from bellcrank.loops.null_space import null_space, solve_kkt
from bellcrank.mechanism.forces import Armature
from mechanisms import EPS, JOINTS, Part, State, Tree, build, examples, state, trees

Floats = npt.NDArray[np.float64]
ALL = method_names()
G = 9.81


def fitted(m: bc.Mechanism, seed: int, sizes: dict[str, Floats] | None = None, share: float = 0.7) -> bc.Mechanism:
    """The machine with rotors on most coordinates that can have one; `sizes` of the joints that may, else all."""
    rng = np.random.default_rng(seed)
    out = m.copy()
    for r in m.joints:
        kind = r.joint
        for i in range(kind.nu if kind.nq == kind.nu else 0):
            if (sizes is None or r.name in sizes) and rng.random() < share:
                size = 1.0 if sizes is None else sizes[r.name][i]
                out.add_armature(f"{r.name} {i}", r.name, float(rng.uniform(0.05, 2.0) * size), i)
    return out


def diagonal(system: bc.System) -> Floats:
    """The rotors' inertias, straight from the description."""
    out = np.zeros(system.nu)
    for a in system.model.mechanism.armatures:
        assert isinstance(a.inertia, float)
        kind = system.model.mechanism.joint(a.joint).joint
        out[system.speed_names.index(f"{a.joint}.{kind.speed_names[a.coordinate]}")] += a.inertia
    return out


# -- by hand --------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ALL)
def test_pendulum_by_hand(method: str) -> None:
    m = bc.Mechanism("pendulum", gravity=(0, -G, 0))
    m.add_body("bob", bc.Inertia(2.0, (0.7, 0, 0), (0.2, 0.2, 0.3)))
    m.add_joint("hinge", bc.Revolute("z"), m.ground, "bob")
    m.add_armature("rotor", "hinge", 0.25)
    system = bc.compile(m, method)
    inertia = 0.3 + 2.0 * 0.7**2 + 0.25
    for q, u, tau in ((0.3, 1.5, 0.0), (-2.0, 0.0, 4.0)):
        wanted = (tau - 2.0 * G * 0.7 * math.cos(q)) / inertia
        assert system.forward_dynamics([q], [u], [tau])[0] == pytest.approx(wanted, rel=1e-14)
        assert system.inverse_dynamics([q], [u], [wanted])[0] == pytest.approx(tau, abs=1e-13)
        assert system.kinetic_energy([q], [u]) == pytest.approx(0.5 * inertia * u * u, rel=1e-14)
        assert system.momenta([q], [u])[0] == pytest.approx(inertia * u, rel=1e-14)
        assert system.bias([q], [u])[0] == pytest.approx(2.0 * G * 0.7 * math.cos(q), rel=1e-13)
    assert system.mass_matrix([0.3])[0, 0] == pytest.approx(inertia, rel=1e-15)


@pytest.mark.parametrize("method", ALL)
def test_two_link_arm_by_hand(method: str) -> None:
    """Lagrange's equations of a planar arm, relative angles, a rotor at each joint."""
    m1, m2, l1, c1, c2, j1, j2, a1, a2 = 1.3, 0.8, 0.6, 0.25, 0.35, 0.04, 0.03, 0.5, 0.2
    m = bc.Mechanism("arm", gravity=(0, -G, 0))
    m.add_body("upper", bc.Inertia(m1, (c1, 0, 0), (0.01, 0.04, j1)))
    m.add_body("lower", bc.Inertia(m2, (c2, 0, 0), (0.01, 0.03, j2)))
    m.add_joint("shoulder", bc.Revolute("z"), m.ground, "upper")
    m.add_joint("elbow", bc.Revolute("z"), "upper", "lower", parent_pose=bc.Pose((l1, 0, 0)))
    m.add_armature("first", "shoulder", a1)
    m.add_armature("second", "elbow", a2)
    q, u, tau = np.array([0.4, -1.1]), np.array([1.2, -0.7]), np.array([2.0, -0.5])
    cos, sin = math.cos(q[1]), math.sin(q[1])
    coupling = j2 + m2 * c2 * c2 + m2 * l1 * c2 * cos
    matrix = np.array([[j1 + m1 * c1 * c1 + j2 + m2 * (l1 * l1 + c2 * c2 + 2 * l1 * c2 * cos) + a1, coupling],
                       [coupling, j2 + m2 * c2 * c2 + a2]])
    swing = m2 * l1 * c2 * sin
    lower = m2 * G * c2 * math.cos(q[0] + q[1])
    bias = np.array([-swing * (2 * u[0] * u[1] + u[1] ** 2) + (m1 * c1 + m2 * l1) * G * math.cos(q[0]) + lower,
                     swing * u[0] ** 2 + lower])
    system = bc.compile(m, method)
    np.testing.assert_allclose(system.mass_matrix(q), matrix, rtol=1e-14)
    np.testing.assert_allclose(system.forward_dynamics(q, u, tau), np.linalg.solve(matrix, tau - bias), rtol=1e-12)


# -- trees ----------------------------------------------------------------------------------------
class Bare:
    """What the machine without rotors says, with their diagonal added here."""

    def __init__(self, m: bc.Mechanism, system: bc.System, s: State, wrenches: Floats | None = None) -> None:
        bare = bc.compile(m, backend="numpy")
        self.rotors = diagonal(system)
        self.bodies = bare.mass_matrix(s.q, t=s.t)
        self.mass = self.bodies + np.diag(self.rotors)
        laws = bare.kernels.run("prescribed", {"q": s.q, "u": s.u}, None, s.t)
        udot = np.where(s.free, 0.0, laws)
        bias = bare.bias(s.q, s.u, wrenches=wrenches, t=s.t)
        f = s.free
        if f.any():
            udot = udot.copy()
            udot[..., f] = np.linalg.solve(self.mass[..., f, :][..., f], (s.tau - bias)[..., f, None])[..., 0]
        self.udot = udot
        wished = np.where(s.free, s.udot, laws)
        self.tau = bare.inverse_dynamics(s.q, s.u, s.udot, wrenches=wrenches, t=s.t) + self.rotors * wished
        self.forces = 1.0 + np.abs(self.tau).max() + np.abs(bias).max() + np.abs(s.tau).max()


def check(m: bc.Mechanism, compiled: Callable[[bc.Mechanism], bc.System], s: State, parts: int,
          shared: bool = True) -> None:
    """Accelerations and forces of one system; `shared`: also what does not depend on the method."""
    machine = fitted(m, parts)
    system = compiled(machine)
    bare = Bare(m, system, s)
    cond = float(np.linalg.cond(bare.mass[..., s.free, :][..., s.free]).max()) if s.free.any() else 1.0
    if cond > 1e7:
        return
    size = np.abs(bare.mass).max()
    slack = 2e3 * parts * EPS
    label = system.model.method
    udot = system.forward_dynamics(s.q, s.u, s.tau, t=s.t)
    allowed = slack * cond * (np.abs(bare.udot).max(initial=0.0) + bare.forces / size)
    assert np.abs(udot - bare.udot).max(initial=0.0) <= allowed, label
    assert np.abs(system.inverse_dynamics(s.q, s.u, s.udot, t=s.t) - bare.tau).max() <= slack * bare.forces, label
    back = system.inverse_dynamics(s.q, s.u, udot, t=s.t)
    assert np.abs(back - s.tau)[..., s.free].max(initial=0.0) <= slack * (bare.forces + size * allowed / slack), label
    if shared:
        assert np.abs(system.mass_matrix(s.q, t=s.t) - bare.mass).max() <= slack * size, label
    if shared and s.free.all():
        energy = 0.5 * np.einsum("...i,...ij,...j->...", s.u, bare.mass, s.u)
        assert np.abs(system.kinetic_energy(s.q, s.u, t=s.t) - energy).max() <= slack * (1.0 + np.abs(energy).max())
        p = (bare.mass @ s.u[..., None])[..., 0]
        assert np.abs(system.momenta(s.q, s.u) - p).max() <= slack * (1.0 + np.abs(p).max())
        speeds, rate = system.hamilton(s.q, p, s.tau)
        assert np.abs(speeds - s.u).max() <= slack * cond * (1.0 + np.abs(s.u).max()), label
        plain = bc.compile(m, backend="numpy")  # d/dt (M u + A u) = d/dt (M u) + A udot, M and u the bare machine's
        push = s.tau - bare.rotors * bare.udot
        also = plain.hamilton(s.q, plain.momenta(s.q, s.u), push)[1] + bare.rotors * bare.udot
        assert np.abs(rate - also).max() <= 10 * slack * cond * (bare.forces + np.abs(also).max()), label


@examples(30)
@given(trees(max_bodies=6))
def test_every_method_on_random_trees(tree: Tree) -> None:
    m = build(tree)
    s = state(m, tree.seed)
    for method in ALL:
        check(m, lambda x, method=method: bc.compile(x, method, "numpy"), s, len(tree.parts))


EVERY = (Part("Universal", -1), Part("Prismatic", 0), Part("Cylindrical", 1, backwards=True), Part("Planar", 0),
         Part("Screw", 3, "parallel"), Part("Spherical", 3), Part("Revolute", 5, "aligned"))
DRIVEN = (Part("Universal", -1, driven=1), Part("Revolute", 0, driven=1), Part("Cylindrical", 1, driven=2),
          Part("Planar", 2), Part("Revolute", 3, wrench="world"))


def test_every_joint_type_that_can_have_one_has() -> None:
    names = {p.joint for p in EVERY}
    assert names >= {j for j in JOINTS if getattr(bc, j)().nq == getattr(bc, j)().nu > 0}


@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("parts", [EVERY, DRIVEN], ids=["all joints", "prescribed"])
def test_compiled(parts: tuple[Part, ...], method: str, schedule: str) -> None:
    m = build(Tree(parts, 5))
    check(m, lambda x: bc.compile(x, method, schedule=schedule), state(m, 2, (5,)), len(parts), method == "recursive")


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_wrenches_and_batches(backend: str) -> None:
    m = build(Tree(EVERY, 1))
    machine = fitted(m, 3)
    s = state(m, 4, (2, 3))
    wrenches = np.random.default_rng(0).normal(size=(2, 3, len(m.bodies), 6))
    system = bc.compile(machine, backend=backend)
    bare = Bare(m, system, s, wrenches)
    udot = system.forward_dynamics(s.q, s.u, s.tau, wrenches=wrenches)
    np.testing.assert_allclose(udot, bare.udot, atol=1e-10 * np.abs(bare.udot).max(), rtol=0)
    np.testing.assert_allclose(udot[1, 2], system.forward_dynamics(s.q[1, 2], s.u[1, 2], s.tau[1, 2],
                                                                   wrenches=wrenches[1, 2]), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
def test_factors_of_the_mass_matrix(schedule: str) -> None:
    machine = fitted(build(Tree(EVERY, 2)), 1)
    system = bc.compile(machine, schedule=schedule)
    q = state(machine, 3, (4,)).q
    upper, d = bc.analyze.mass_factors(system, q)
    matrix = system.mass_matrix(q)
    np.testing.assert_allclose(np.einsum("...ij,...j,...kj->...ik", upper, d, upper), matrix, rtol=0,
                               atol=1e-13 * np.abs(matrix).max())
    np.testing.assert_allclose(np.einsum("...ii->...i", upper), 1.0, rtol=1e-13)
    for j in range(system.nu):  # triangular: what one column reaches does not reach back
        assert np.abs(upper[..., j, :] * upper[..., :, j])[..., np.arange(system.nu) != j].max() <= 1e-13


def test_operators() -> None:
    m = build(Tree(EVERY, 2))
    machine = fitted(m, 1)
    system = bc.compile(machine, "operator", "numpy")
    q = state(machine, 3).q
    matrix = bc.compile(m, backend="numpy").mass_matrix(q) + np.diag(diagonal(system))
    o = bc.analyze.operators(system, q)
    np.testing.assert_allclose(o.mass.matrix(), matrix, rtol=0, atol=1e-13 * np.abs(matrix).max())
    np.testing.assert_allclose((o.mass_inverse @ o.mass).matrix(), np.eye(system.nu), rtol=0,
                               atol=1e-13 * np.linalg.cond(matrix))
    factor = o.one + o.H @ o.phi @ o.K
    np.testing.assert_allclose((factor @ o.D @ factor.T).matrix(), matrix, rtol=0, atol=1e-13 * np.abs(matrix).max())
    points = [("b2", (0.1, 0.2, 0.3)), ("b6", (0.0, 0.1, 0.0))]
    jacobian = o.jacobian(points).matrix()
    wanted = jacobian @ np.linalg.solve(matrix, jacobian.T)
    np.testing.assert_allclose(o.admittance(points), wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


def test_long_machines() -> None:
    """Too long to be traced whole, and too large for anything but LAPACK in the dense method."""
    m = general_chain(60, bc.Revolute)
    machine = m.copy()
    for i, r in enumerate(m.joints):
        if i % 7 == 0:
            machine.add_armature(f"rotor {i}", r.name, 0.5 + 0.01 * i)
    s = state(m, 0)
    systems = [bc.compile(machine), bc.compile(machine, "dense")]
    bare = Bare(m, systems[0], s)
    for system in systems:
        udot = system.forward_dynamics(s.q, s.u, s.tau)
        assert np.abs(udot - bare.udot).max() <= 1e-13 * np.linalg.cond(bare.mass) * np.abs(bare.udot).max()
        np.testing.assert_allclose(system.mass_matrix(s.q), bare.mass, rtol=0, atol=1e-12 * np.abs(bare.mass).max())


@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
def test_links_alike_but_for_their_rotors(schedule: str) -> None:
    m = general_chain(6, bc.Revolute)
    machine = m.copy()
    machine.add_armature("a", m.joints[2].name, 0.3)
    machine.add_armature("b", m.joints[4].name, 0.9)
    check_system = bc.compile(machine, schedule=schedule)
    q = state(m, 1).q
    extra = check_system.mass_matrix(q) - bc.compile(m, schedule=schedule).mass_matrix(q)
    np.testing.assert_allclose(extra, np.diag([0, 0, 0.3, 0, 0.9, 0]), atol=1e-13)


# -- energy ---------------------------------------------------------------------------------------
def test_power_balance_and_motion() -> None:
    """d/dt (kinetic energy) = power of joint forces and gravity; and a free motion keeps its energy."""
    machine = fitted(build(Tree(EVERY, 6)), 2)
    system = bc.compile(machine)
    s = state(machine, 8)
    udot, h = system.forward_dynamics(s.q, s.u, s.tau), 1e-4

    def energy(x: float) -> float:
        return float(system.energy(system.integrate(s.q, x * (s.u + 0.5 * x * udot)), s.u + x * udot))

    rate = (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h)
    assert rate == pytest.approx(float(s.tau @ s.u), rel=1e-6, abs=1e-6)
    result = system.simulate((s.q, 0.3 * s.u), 0.2, step=1e-3, stepper="rk8")
    totals = np.array([float(system.energy(q, u)) for q, u in zip(result.q.values, result.u.values, strict=True)])
    assert np.abs(totals - totals[0]).max() <= 1e-9 * (1.0 + np.abs(totals).max())


def test_reactions_do_not_know_the_rotor() -> None:
    """The joint's wrench moves the body: along the axis it is the drive less what the rotor takes."""
    m = build(Tree((Part("Revolute", -1), Part("Prismatic", 0), Part("Revolute", 1)), 3))
    machine = fitted(m, 0, share=1.0)
    s = state(m, 1)
    system, bare = bc.compile(machine), bc.compile(m)
    udot = system.forward_dynamics(s.q, s.u, s.tau)
    needed = bare.reactions(s.q, s.u, udot=udot)
    for method in ("recursive", "momenta"):
        found = bc.compile(machine, method).reactions(s.q, s.u, s.tau)
        for name, wrench in needed.items():
            np.testing.assert_allclose(found[name], wrench, rtol=0, atol=1e-11 * (1.0 + np.abs(wrench).max()))
    np.testing.assert_allclose(bare.inverse_dynamics(s.q, s.u, udot), s.tau - diagonal(system) * udot, atol=1e-10)


# -- prescribed joints ----------------------------------------------------------------------------
def test_drives_of_prescribed_joints_turn_the_rotor_too() -> None:
    m = build(Tree(DRIVEN, 2))
    machine = fitted(m, 1, share=1.0)
    s = state(m, 3)
    system, bare = bc.compile(machine), bc.compile(m)
    udot = system.forward_dynamics(s.q, s.u, s.tau, t=s.t)
    drives = system.drive_forces(s.q, s.u, s.tau, t=s.t)
    wanted = bare.inverse_dynamics(s.q, s.u, udot, t=s.t) + diagonal(system) * udot
    np.testing.assert_allclose(drives, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())
    np.testing.assert_allclose(drives[s.free], s.tau[s.free], rtol=0, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize("method", [m for m in ALL if m != "dense"])
def test_prescribed_joints_in_loops(method: str) -> None:
    """The rotors as forces on the bare machine: it moves alike, and its drives lack what the rotors take."""
    m = bc.load("five_bar")
    neutral = bc.compile(m).assemble().q
    first = bc.compile(m).joint_names[0]
    m.prescribe(first, lambda t: 0.4 * bc.math.sin(2.0 * t) + float(neutral[0]))
    bare = bc.compile(m, "dense")
    machine = m.copy()
    for i, name in enumerate(bare.joint_names):
        machine.add_armature(name, name, 0.3 + 0.2 * i)
    system, t = bc.compile(machine, method, "numpy"), 0.3
    assert system.joint_names == bare.joint_names
    q, u = bare.assemble(q=bare.assemble(guess=neutral, t=t).q, u=np.ones(bare.nu), t=t)
    tau = np.linspace(1.0, 2.0, bare.nu)
    udot = system.forward_dynamics(q, u, tau, t=t)
    taken = diagonal(system) * udot
    assert np.abs(udot).min() > 1e-3
    np.testing.assert_allclose(udot, bare.forward_dynamics(q, u, tau - taken, t=t), rtol=0, atol=1e-11)
    wanted = bare.drive_forces(q, u, tau - taken, t=t) + taken
    np.testing.assert_allclose(system.drive_forces(q, u, tau, t=t), wanted, rtol=0, atol=1e-10)


# -- loops ----------------------------------------------------------------------------------------
class Loops:
    """A machine of the zoo with rotors in its spanning tree, and what the bare one says with their diagonal added."""

    def __init__(self, name: str, **options: Any) -> None:
        self.bare_machine = bc.load(name, **options)
        bare = self.bare = bc.compile(self.bare_machine, "dense")
        self.cut = bare.model.tree.cut_names
        self.q, self.u, self.tau = looped.states(bare, count=2)
        inertias = np.diagonal(bare.mass_matrix(self.q[0], speeds="tree"))
        self.machine = fitted(self.bare_machine, 4, {name: inertias[bare.model.configuration.speed_entries(name)]
                                                     for name in bare.model.tree.joint_names[1:]})
        self.system = self.compile("dense")
        self.rotors = diagonal(self.system)
        assert self.rotors.any()
        rows = bare.plans.loops.rows(self.q, self.u, 0.0)
        some = whole_states.carrying(bare, True)
        self.mass = whole_states.tree_matrix(bare, self.q) + np.diag(self.rotors[some])
        self.jacobian = bare.plans.loops.jacobian(self.q, rows, 0.0)[..., some]
        driven = bare.kernels.run("prescribed", {"q": self.q, "u": self.u}, None, 0.0)[..., some]
        self.free = np.flatnonzero(~bare.model.prescribed_mask()[some])
        space = null_space(self.jacobian[..., self.free], np.ones(bare.plans.loops.m), np.ones(len(self.free)))
        tau = self.on_tree(self.tau) - whole_states.of_tree(bare, bare.bias(self.q, self.u, speeds="tree"))
        udot = np.zeros_like(self.u)
        udot[..., some] = solve_kkt(self.mass, self.jacobian, bare.plans.loops.gamma(self.q, self.u, 0.0, rows), tau,
                                    driven, self.free.tolist(), space)[0]
        self.udot = bare.kernels.run("joint_accelerations", {"q": self.q, "u": self.u, "udot": udot}, None, 0.0)

    def on_tree(self, tau: Floats) -> Floats:
        return whole_states.tree_forces(self.bare, self.q, tau)

    def compile(self, method: str, *args: str, **options: Any) -> bc.System:
        made = bc.compile(self.machine, method, *args, **options)
        if made.model.tree.cut_names == self.cut:
            return made
        return bc.compile(self.machine, method, *args, cut=self.cut, **options)

    def error(self, udot: Floats) -> float:
        return float(np.abs(udot - self.udot).max() / np.abs(self.udot).max())


_kept: dict[str, Loops] = {}


def loops(name: str) -> Loops:
    if name not in _kept:
        _kept[name] = Loops(name)
    return _kept[name]


@pytest.mark.parametrize("method", [m for m in ALL if m != "dense"])
@pytest.mark.parametrize("name", looped.ZOO)
def test_loops_by_every_method(name: str, method: str) -> None:
    case = loops(name)
    try:
        bc.compile(case.bare_machine, method, "numpy").forward_dynamics(case.q, case.u, case.tau)
    except (bc.ModelError, bc.SingularError) as error:
        pytest.skip(str(error))  # not for this machine, with or without rotors
    udot = case.compile(method, "numpy").forward_dynamics(case.q, case.u, case.tau)
    assert case.error(udot) <= 2e-12
    assert case.error(case.system.forward_dynamics(case.q, case.u, case.tau)) <= 2e-12


@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
@pytest.mark.parametrize("method", [m for m in ALL if m != "dense" and "/" not in m])
def test_loops_compiled(method: str, schedule: str) -> None:
    for name in ("four_bar", "five_bar" if method == "complement" else "ladder"):
        case = loops(name)
        udot = case.compile(method, schedule=schedule).forward_dynamics(case.q, case.u, case.tau)
        assert case.error(udot) <= 2e-12, name


@pytest.mark.parametrize("method", ["elimination", "complement"])
@pytest.mark.parametrize("name", ["four_bar", "five_bar", "stewart"])
def test_inverse_dynamics_of_loops(name: str, method: str) -> None:
    """tau of the drives that make the motion, by projection on the bare machine's directions of motion."""
    case = loops(name)
    system = case.compile(method)
    tau = system.inverse_dynamics(case.q, case.u, case.udot)
    again = system.forward_dynamics(case.q, case.u, tau)
    assert case.error(again) <= 1e-9
    lack = case.on_tree(tau - case.tau)
    _, s, vt = np.linalg.svd(case.jacobian)
    for k in range(len(case.q)):
        rank = int((s[k] > 1e-9 * s[k].max()).sum())
        motion = vt[k, rank:]
        assert np.abs(motion @ lack[k]).max() <= 1e-8 * (1.0 + np.abs(case.tau).max())


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", ["four_bar", "five_bar", "ladder", "andrews", "stewart"])
def test_hamilton_with_loops(name: str, backend: str) -> None:
    case = loops(name)
    system = case.compile("momenta", backend)
    some = whole_states.carrying(system, True)
    p = system.momenta(case.q, case.u, speeds="tree")
    wanted = np.zeros_like(case.u)
    wanted[..., some] = (case.mass @ case.u[..., some, None])[..., 0]
    np.testing.assert_allclose(p, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    speeds, rate = system.hamilton(case.q, p, case.tau)
    np.testing.assert_allclose(speeds, case.u, rtol=0, atol=1e-9 * np.abs(case.u).max())
    bare = bc.compile(case.bare_machine, "momenta", "numpy")
    push = case.tau - case.rotors * case.udot
    also = bare.hamilton(case.q, bare.momenta(case.q, case.u, speeds="tree"), push)[1] + case.rotors * case.udot
    np.testing.assert_allclose(rate, also, rtol=0, atol=1e-8 * np.abs(also).max())


@pytest.mark.parametrize("name", ["four_bar", "ladder", "jansen"])
def test_energy_and_partitions_of_loops(name: str) -> None:
    case = loops(name)
    system = case.compile("elimination")
    u = whole_states.of_tree(system, case.u)
    energy = 0.5 * np.einsum("bi,bij,bj->b", u, case.mass, u)
    np.testing.assert_allclose(system.kinetic_energy(case.q, case.u), energy, rtol=1e-12)
    parts = bc.analyze.partition(system, case.q[0], case.u[0], case.tau[0])
    np.testing.assert_allclose(parts.step_f(), case.udot[0], rtol=0, atol=1e-8 * np.abs(case.udot).max())
    np.testing.assert_allclose(parts.closed_form(), case.udot[0], rtol=0, atol=1e-8 * np.abs(case.udot).max())


def test_reactions_balance_in_loops() -> None:
    """Each body of the four-bar by Newton and Euler, from the wrenches at its joints alone."""
    case = loops("four_bar")
    system = case.compile("elimination")
    q, u, tau, udot = case.q[0], case.u[0], case.tau[0], case.udot[0]
    reactions = system.reactions(q, u, tau)
    m = case.machine
    everything = (m.ground, *m.bodies)
    for body in m.bodies:
        place = system.pose(q, body.name)
        com = np.array(body.inertia.com, dtype=float)
        inertia = place.rotation @ _matrix(body.inertia.inertia) @ place.rotation.T
        motion = system.acceleration(q, u, udot, body.name, com)
        omega = system.velocity(q, u, body.name, com)[:3]
        total = np.concatenate([inertia @ motion[:3] + np.cross(omega, inertia @ omega),
                                body.inertia.mass * (motion[3:] - np.array(m.gravity))])
        for r in m.joints:
            outer = system.pose(q, everything[r.child].name)
            wrench = reactions[r.name].reshape(2, 3) @ outer.rotation.T
            at = outer.position + outer.rotation @ np.array(r.child_pose.position)
            arm = at - (place.position + place.rotation @ com)
            sign = 1.0 if r.child == body.index else -1.0
            if body.index in (r.parent, r.child):
                total -= sign * np.concatenate([wrench[0] + np.cross(arm, wrench[1]), wrench[1]])
        assert np.abs(total).max() <= 1e-9 * (1.0 + max(np.abs(w).max() for w in reactions.values()))


def _matrix(six: Any) -> Floats:
    xx, xy, xz, yy, yz, zz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


@pytest.mark.parametrize("method", ["elimination", "momenta", "complement"])
def test_a_loop_that_moves(method: str) -> None:
    """Energy along a motion of the four-bar without drives."""
    system = loops("four_bar").compile(method)
    start = system.assemble(q=system.assemble().q, u={"A": 2.0})
    result = system.simulate(start, 0.3, step=1e-3, stepper="rk8")
    totals = np.array([float(system.energy(q, u)) for q, u in zip(result.q.values, result.u.values, strict=True)])
    assert np.abs(totals - totals[0]).max() <= 1e-9 * (1.0 + np.abs(totals).max())


# -- massless bodies, parameters, records, errors --------------------------------------------------
def wheel(**inertia: Any) -> bc.Mechanism:
    m = bc.Mechanism("wheel")
    m.add_body("wheel", bc.Inertia.zero())
    m.add_joint("axle", bc.Cylindrical("z"), m.ground, "wheel")
    for name, value in inertia.items():
        m.add_armature(name, "axle", value, name)
    return m


@pytest.mark.parametrize("method", ALL)
def test_massless_bodies_with_rotors(method: str) -> None:
    system = bc.compile(wheel(angle=0.5, slide=2.0), method)
    np.testing.assert_allclose(system.forward_dynamics([0.1, 0.2], [1.0, 2.0], [3.0, 4.0]), [6.0, 2.0], rtol=1e-15)
    with pytest.raises(bc.ModelError, match="joint 'axle': nothing resists its motion"):
        bc.compile(wheel(angle=0.5), method)
    m = bc.Mechanism("pointer")
    m.add_body("pointer", bc.Inertia(1.0, (0, 0, 0.3), (0.1, 0.1, 0.0)))
    m.add_joint("axle", bc.Revolute("z"), m.ground, "pointer")
    with pytest.raises(bc.ModelError, match="no inertia about its axis"):
        bc.compile(m, method)
    m.add_armature("rotor", "axle", 0.25)
    assert bc.compile(m, method).forward_dynamics([0.0], [1.0], [1.0])[0] == pytest.approx(4.0, rel=1e-14)


def test_rotors_resist_what_loops_allow() -> None:
    """A rod that can spin between two balls: nothing resists that until a rotor does."""
    def rod(armature: float) -> bc.Mechanism:
        m = bc.Mechanism("rod")
        m.add_body("collar", bc.Inertia.zero())
        m.add_body("rod", bc.Inertia(1.0, (0, 0, 0), (0.1, 0.1, 0.0)))
        m.add_joint("spin", bc.Revolute("z"), m.ground, "collar")
        m.add_joint("grip", bc.Weld(), "collar", "rod")
        m.add_joint("rest", bc.Cylindrical("z"), "rod", m.ground)
        if armature:
            m.add_armature("rotor", "spin", armature)
        return m

    with pytest.raises(bc.ModelError, match="nothing resists"):
        bc.compile(rod(0.0)).forward_dynamics([0.0] * 3, [0.0] * 3, [1.0, 0.0, 0.0])
    system = bc.compile(rod(0.5))
    assert system.speed_names == ("spin.angle", "rest.angle", "rest.slide")
    for q in ([0.0, 0.0, 0.0], [0.3, -0.3, 0.0]):
        np.testing.assert_allclose(system.forward_dynamics(q, [0.0] * 3, [1.0, 0.0, 0.0]), [2.0, -2.0, 0.0], atol=1e-12)


@pytest.mark.everyday(8)
@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
@pytest.mark.parametrize("method", [m for m in ALL if m not in ("elimination", "reduction")])
def test_parameters(method: str, schedule: str) -> None:
    m = build(Tree(EVERY[:5], 3))
    with_parameter, fixed = m.copy(), m.copy()
    j = with_parameter.parameter("rotor", 0.2)
    for joint, factor, coordinate in (("j0", 4.0, 1), ("j3", 1.0, "angle")):
        with_parameter.add_armature(joint, joint, j * factor, coordinate)
        fixed.add_armature(joint, joint, 0.7 * factor, coordinate)
    system = bc.compile(with_parameter, method, schedule=schedule).with_parameters(rotor=0.7)
    other = bc.compile(fixed, method, schedule=schedule)
    s = state(m, 1)
    np.testing.assert_allclose(system.mass_matrix(s.q), other.mass_matrix(s.q), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(system.forward_dynamics(s.q, s.u, s.tau), other.forward_dynamics(s.q, s.u, s.tau),
                               rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(system.inverse_dynamics(s.q, s.u, s.udot), other.inverse_dynamics(s.q, s.u, s.udot),
                               rtol=1e-12, atol=1e-12)
    many = system.with_parameters(rotor=np.array([0.2, 0.7]))
    np.testing.assert_allclose(many.forward_dynamics(s.q, s.u, s.tau)[1], other.forward_dynamics(s.q, s.u, s.tau),
                               rtol=1e-10, atol=1e-10)


def test_parameters_in_loops() -> None:
    plain = bc.load("four_bar")
    m, fixed = plain.copy(), plain.copy()
    m.add_armature("rotor", "A", 3.0 * m.parameter("j", 0.1))
    fixed.add_armature("rotor", "A", 1.5)
    q, u, tau = looped.states(bc.compile(fixed, "dense", "numpy"), count=2)
    wanted = bc.compile(fixed, "dense", "numpy").forward_dynamics(q, u, tau)
    for method in ("elimination", "reduction", "complement", "momenta", "operator", "recursive/origin"):
        found = bc.compile(m, method).with_parameters(j=0.5).forward_dynamics(q, u, tau)
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())


def test_several_on_one_coordinate_add_up_and_records() -> None:
    m = bc.load("pendulum")
    before = bc.compile(m).mass_matrix([0.0])
    made = [m.add_armature("motor", "hinge", 0.5), m.add_armature("gear", "hinge", 0.25, "angle")]
    assert m.armatures == (Armature("motor", "hinge", 0, 0.5), Armature("gear", "hinge", 0, 0.25)) == tuple(made)
    assert made[0].energy(2.0) == 1.0
    np.testing.assert_allclose(bc.compile(m).mass_matrix([0.0]) - before, [[0.75]], rtol=1e-14)
    assert bc.compile(m).model.tree.armatures == {1: ((0, 0.5), (0, 0.25))}


@pytest.mark.parametrize("method", ALL)
def test_joints_without_rotors_cost_nothing(method: str) -> None:
    """One rotor at the tip: all other joints are as cheap as before."""
    def cost(n: int, rotor: bool) -> int:
        m = general_chain(n, bc.Revolute)
        if rotor:
            m.add_armature("rotor", m.joints[-1].name, 0.5)
        return bc.compile(m, method, schedule="unrolled").operation_count().total

    assert cost(5, True) - cost(5, False) == cost(7, True) - cost(7, False)


def test_the_joint_stays_in_the_tree() -> None:
    for joint in ("A", "B", "C", "D"):
        m = bc.load("four_bar")
        m.add_armature("rotor", joint, 0.1)
        assert joint not in bc.compile(m).model.tree.cut_names
        cut = bc.compile(m, cut=[joint])  # beside it
        assert cut.loops == (f"{joint}.closing",) and joint in cut.joint_names


@pytest.mark.parametrize(("arguments", "message"), [
    (("", "hinge", 1.0), "armature names are non-empty"), (("x", "nosuch", 1.0), "no joint called 'nosuch'"),
    (("x", "hinge", 0.0), "inertia must be greater than 0"), (("x", "hinge", -1.0), "inertia must be greater than 0"),
    (("x", "hinge", math.nan), "is not finite"), (("x", "hinge", "heavy"), "'heavy' is not a number"),
    (("x", "hinge", 1.0, "slide"), "no coordinate 'slide'"), (("x", "ball", 1.0, 0), "has no single coordinates"),
    (("x", "gimbal", 1.0), "has the coordinates angle1, angle2"), (("taken", "hinge", 1.0), "exists already")])
def test_errors(arguments: tuple[Any, ...], message: str) -> None:
    m = bc.Mechanism("m")
    for name, joint in (("hinge", bc.Revolute()), ("ball", bc.Spherical()), ("gimbal", bc.Universal())):
        m.add_body(f"{name} body", bc.Inertia.sphere(1.0, 0.1))
        m.add_joint(name, joint, m.ground, f"{name} body")
    m.add_armature("taken", "hinge", 1.0)
    with pytest.raises(bc.ModelError, match=message):
        m.add_armature(*arguments)
    with pytest.raises(bc.ModelError, match="armature 'other'"):
        m.add_armature("other", "hinge", bc.Mechanism("n").parameter("j", 1.0))
    assert len(m.armatures) == 1


def balls(armature: float) -> bc.Mechanism:
    m = bc.Mechanism("balls")
    m.add_body("a", bc.Inertia(1.3, (0.1, 0.05, -0.4), [[0.02, 0.001, 0.002], [0.001, 0.03, -0.003],
                                                        [0.002, -0.003, 0.025]]))
    m.add_body("b", bc.Inertia(0.7, (0.05, 0.0, -0.2), [[0.01, 0.0, 0.0], [0.0, 0.02, -0.001], [0.0, -0.001, 0.015]]))
    m.add_joint("one", bc.Spherical(), m.ground, "a")
    m.add_joint("two", bc.Revolute("y"), "a", "b", bc.Pose((0, 0, -0.8)))
    if armature:
        m.add_armature("rotor", "one", armature)
    return m


def test_ball_joints_have_it_in_all_directions() -> None:
    oracle = bc.compile(balls(0.3), method="dense")
    q, u = oracle.random_state(np.random.default_rng(0))
    added = oracle.mass_matrix(q) - bc.compile(balls(0.0)).mass_matrix(q)
    assert np.abs(added - np.diag([0.3, 0.3, 0.3, 0.0])).max() < 1e-13
    expected = oracle.forward_dynamics(q, u)
    for method in method_names():
        found = bc.compile(balls(0.3), method=method).forward_dynamics(q, u)
        assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max(), method
    runs = [bc.compile(balls(0.3), method=m).simulate((q, u), 0.5, stepper="rk8", step=2e-3)
            for m in ("recursive", "momenta")]
    assert np.abs(runs[0].q.values - runs[1].q.values).max() < 1e-11
    assert runs[0].attrs["energy_drift"] < 1e-12 and runs[1].attrs["energy_drift"] < 1e-12
    with pytest.raises(bc.ModelError, match="no single coordinates"):
        balls(0.0).add_armature("rotor", "one", 0.3, coordinate=0)


def test_ball_joints_in_files(tmp_path: Any) -> None:
    machine = balls(0.3)
    for ending in ("yaml", "json", "xml"):
        if ending == "xml":
            mujoco = pytest.importorskip("mujoco")
        bc.save(machine, tmp_path / f"balls.{ending}")
        (rotor,) = bc.load(tmp_path / f"balls.{ending}").armatures
        assert (rotor.joint, rotor.coordinate, rotor.inertia) == ("one", -1, 0.3)
    system = bc.compile(machine)
    q, u = system.random_state(np.random.default_rng(1))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "balls.xml"))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, u
    mujoco.mj_forward(model, data)
    expected = system.forward_dynamics(q, u)
    assert np.abs(data.qacc - expected).max() < 1e-10 * np.abs(expected).max()
