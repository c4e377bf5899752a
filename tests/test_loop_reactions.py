"""Reactions and drives of machines with loops, checked body by body against Newton and Euler."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
import looped
import whole_states
from bellcrank.math import sin
from bellcrank.system import drive_programs, inverse_dynamics, reactions
from bellcrank.system.kernels import NO_DOORS


def balance(system: bc.System, q: np.ndarray, u: np.ndarray, tau: np.ndarray, udot: np.ndarray) -> float:
    """Largest lack of force or moment at any body, given the reactions at all joints, springs included by hand."""
    m = system.model.mechanism
    reactions = system.reactions(q, u, tau, udot=udot)
    total = {b.name: np.zeros(6) for b in m.bodies} | {"ground": np.zeros(6)}  # about the world's origin
    for record in m.joints:
        names = [b.name for b in (m.ground, *m.bodies)]
        child, other = names[record.child], names[record.parent]
        pose = system.pose(q, child)
        point = pose.position + pose.rotation @ np.array(record.child_pose.position, dtype=float)
        moment, force = pose.rotation @ reactions[record.name][:3], pose.rotation @ reactions[record.name][3:]
        wrench = np.concatenate([moment + np.cross(point, force), force])
        total[child] += wrench
        total[other] -= wrench
    for s in m.springs:
        names = [b.name for b in (m.ground, *m.bodies)]
        ends = [(names[i], np.array(p, dtype=float)) for i, p in ((s.first, s.first_point), (s.second, s.second_point))]
        poses = [system.pose(q, n) for n, _ in ends]
        points = [p.position + p.rotation @ x for p, (_, x) in zip(poses, ends, strict=True)]
        rates = [system.velocity(q, u, n, x)[3:] for n, x in ends]
        along = (points[1] - points[0]) / np.linalg.norm(points[1] - points[0])
        pull = along * s.law(float(np.linalg.norm(points[1] - points[0])), float(along @ (rates[1] - rates[0])))
        for (n, _), point, sign in zip(ends, points, (1.0, -1.0), strict=True):
            total[n] += np.concatenate([np.cross(point, sign * pull), sign * pull])
    worst = 0.0
    for b in m.bodies:
        pose = system.pose(q, b.name)
        com = np.array(b.inertia.com, dtype=float)
        xx, xy, xz, yy, yz, zz = (float(x) for x in b.inertia.inertia)
        central = pose.rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ pose.rotation.T
        omega = system.velocity(q, u, b.name)[:3]
        acceleration = system.acceleration(q, u, udot, b.name, com)
        at = pose.position + pose.rotation @ com
        force = float(b.inertia.mass) * (acceleration[3:] - np.array(m.gravity, dtype=float))
        moment = central @ acceleration[:3] + np.cross(omega, central @ omega) + np.cross(at, force)
        worst = max(worst, float(np.abs(total[b.name] - np.concatenate([moment, force])).max()))
    return worst


@pytest.mark.everyday(8)
@pytest.mark.parametrize("name", [n for n in looped.ZOO if n != "andrews"])
def test_reactions_balance_every_body(name: str) -> None:
    system = bc.compile(bc.load(name))
    q, u, tau = looped.states(system, count=1)
    udot = system.forward_dynamics(q[0], u[0], tau[0])
    scale = 1.0 + float(np.abs(udot).max())
    assert balance(system, q[0], u[0], tau[0], udot) < 1e-10 * scale


@pytest.mark.everyday(8)
@pytest.mark.parametrize("name", looped.ZOO)
def test_inverse_dynamics_gives_the_motion_back(name: str) -> None:
    system = bc.compile(bc.load(name))
    q, u, tau = looped.states(system)
    udot = system.forward_dynamics(q, u, tau)
    drives = system.inverse_dynamics(q, u, udot)
    again = system.forward_dynamics(q, u, drives)
    assert np.abs(again - udot).max() < 1e-9 * (1.0 + np.abs(udot).max())
    assert np.count_nonzero(np.abs(drives[0]) > 1e-9) <= system.dof


def test_over_actuated_forces_are_smallest() -> None:
    system = bc.compile(bc.load("redundant_five_bar"), actuated=["leg1.1", "leg2.1", "leg3.1"])
    q, u, tau = looped.states(system, count=1)
    udot = system.forward_dynamics(q[0], u[0], tau[0])
    three = system.inverse_dynamics(q[0], u[0], udot)
    two = system.inverse_dynamics(q[0], u[0], udot, actuated=["leg1.1", "leg2.1"])
    assert np.linalg.norm(three) < np.linalg.norm(two)
    for forces in (three, two):
        assert np.allclose(system.forward_dynamics(q[0], u[0], forces), udot, rtol=0, atol=1e-9 * np.abs(udot).max())
    heavy = system.inverse_dynamics(q[0], u[0], udot, weights={"leg3.1": 1e8})
    assert abs(heavy[system.speed_names.index("leg3.1.angle")]) < 1e-3 * np.abs(two).max()


def test_too_few_drives_are_refused() -> None:
    system = bc.compile(bc.load("five_bar"))
    q, u, _ = looped.states(system, count=1)
    still = system.inverse_dynamics(q[0], u[0], system.forward_dynamics(q[0], u[0]), actuated=["leg1.1"])
    assert np.abs(still).max() < 1e-9  # a motion that needs no drives
    udot = system.forward_dynamics(q[0], u[0], {"leg2.1": 1.0})
    with pytest.raises(bc.ModelError, match=r"2 degrees of freedom.*leg1\.1\.angle.*control only 1"):
        system.inverse_dynamics(q[0], u[0], udot, actuated=["leg1.1"])


def test_motions_that_open_loops_are_refused() -> None:
    system = bc.compile(bc.load("four_bar"))
    state = system.assemble(q={"A": 0.5}, u={"A": 1.0})
    with pytest.raises(bc.StateError, match="accelerations open the loop closed by D"):
        system.inverse_dynamics(state.q, state.u, [5.0, 0.0, 0.0, 0.0])
    with pytest.raises(bc.StateError, match="positions open the loop"):
        system.inverse_dynamics([0.5] * 4, state.u, [0.0] * 4)
    good = system.consistent_acceleration(state.q, state.u, {"A": 3.0})
    assert good[0] == 3.0
    assert np.abs(bc.analyze.loop_acceleration_error(system, state.q, state.u, good)).max() < 1e-12


def test_redundant_reactions_are_minimum_norm() -> None:
    system = bc.compile(bc.load("four_bar"))
    state = system.assemble(q={"A": 0.5}, u={"A": 1.0})
    reactions = system.reactions(state.q, state.u)
    # a planar linkage: no out-of-plane load is needed anywhere, and the smallest has none
    assert np.abs(reactions["D"][[0, 1, 5]]).max() < 1e-12


def test_stops_on_joints_that_close_loops() -> None:
    """The same stop, whether its joint carries a body or closes the loop."""
    m = bc.load("four_bar")
    m.add_limit("stop", "D", lower=-1.0, upper=0.2, stiffness=3.0, damping=0.5)
    plain = bc.compile(bc.load("four_bar"))
    state = plain.assemble(q={"A": 0.5}, u={"A": 1.0})
    closed, carried = bc.compile(m, cut=["D"]), bc.compile(m, cut=["B"])
    assert closed.joint_names == carried.joint_names == ("A", "B", "C", "D")
    d, rate = state.q[3], state.u[3]
    first, second = (system.forward_dynamics(state.q, state.u) for system in (closed, carried))
    np.testing.assert_allclose(first, second, rtol=1e-12)
    assert abs(first[0] - plain.forward_dynamics(state.q, state.u)[0]) > 0.1
    torque = -3.0 * (d - 0.2) - 0.5 * rate
    for system in (closed, carried):
        assert system.reactions(state.q, state.u)["D"][2] == pytest.approx(torque, rel=1e-9)


def test_drives_of_loop_joints() -> None:
    """A torque on the joint that closes the loop does what it does on the same joint in the tree."""
    closed, carried = bc.compile(bc.load("four_bar"), cut=["D"]), bc.compile(bc.load("four_bar"), cut=["B"])
    state = closed.assemble(q={"A": 0.5}, u={"A": 1.0})
    tau = np.array([0.0, 0.0, 0.0, 7.0])
    expected = carried.forward_dynamics(state.q, state.u, tau)
    assert np.abs(expected - closed.forward_dynamics(state.q, state.u)).max() > 1.0
    np.testing.assert_allclose(closed.forward_dynamics(state.q, state.u, tau), expected, rtol=1e-12)
    np.testing.assert_allclose(closed.forward_dynamics(state.q, state.u, {"D": 7.0}), expected, rtol=1e-12)
    np.testing.assert_allclose(closed.forward_dynamics(state.q, state.u, loop_tau={"D": 7.0}), expected, rtol=1e-12)
    many = closed.forward_dynamics(np.tile(state.q, (4, 1)), np.tile(state.u, (4, 1)), np.tile(tau, (4, 1)))
    np.testing.assert_allclose(many, np.tile(expected, (4, 1)), rtol=1e-12)
    for system in (closed, carried):
        np.testing.assert_allclose(system.inverse_dynamics(state.q, state.u, expected, actuated=["D"]), tau, atol=1e-10)


@pytest.mark.parametrize("cut", ["leg1.2", "leg2.1", "leg2.2", "tip"])
def test_enforcing_forces_whatever_is_cut(cut: str) -> None:
    """Of a prescribed joint, with given forces at all joints, and where one of them drives the other freedom."""
    def crank(joint: str) -> bc.System:
        m = bc.load("five_bar")
        m.prescribe("leg1.1", lambda t: 0.9 + 0.4 * sin(2.0 * t))
        return bc.compile(m, cut=[joint])

    system, other = crank(cut), crank("tip" if cut == "leg2.1" else "leg2.1")
    assert cut in system.model.tree.cut_names and cut not in other.model.tree.cut_names
    q, u = other.assemble(t=0.3, u=np.ones(other.nu))
    tau = np.arange(1.0, 6.0)
    udot = other.forward_dynamics(q, u, tau, t=0.3)
    np.testing.assert_allclose(system.forward_dynamics(q, u, tau, t=0.3), udot, rtol=1e-10)
    drives = system.drive_forces(q, u, tau, t=0.3)
    np.testing.assert_allclose(drives, other.drive_forces(q, u, tau, t=0.3), rtol=1e-10)
    assert np.array_equal(drives[1:], tau[1:]) and abs(drives[0] - tau[0]) > 1.0
    for joint in system.joint_names[1:]:
        found, expected = (x.inverse_dynamics(q, u, udot, t=0.3, actuated=[joint]) for x in (system, other))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(system.forward_dynamics(q, u, found, t=0.3), udot, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ("four_bar", "five_bar", "slider_crank", "stewart", "bennett"))
def test_drives_by_the_natural_orthogonal_complement(name: str) -> None:
    """The paper's own recursion for inverse dynamics against the general method."""
    general, own = bc.compile(bc.load(name)), bc.compile(bc.load(name), "complement")
    q, u, tau = looped.states(general)
    udot = general.forward_dynamics(q, u, tau)
    drives = [general.speed_names[i] for i in general.plans.general().independent]
    expected = general.inverse_dynamics(q, u, udot, actuated=drives)
    assert np.abs(own.inverse_dynamics(q, u, udot, actuated=drives) - expected).max() < 1e-9 * np.abs(expected).max()


def test_partition_lets_go() -> None:
    """Detaching a closure leaves the accelerations of the machine without it."""
    system = bc.compile(bc.load("redundant_five_bar"), "operator")
    q, u, tau = (x[0] for x in looped.states(system, count=1))
    whole = bc.analyze.partition(system, q, u, tau, secondary=["link3.1"])
    expected = system.forward_dynamics(q, u, tau)
    assert np.abs(whole.step_f() - expected).max() < 1e-9 * np.abs(expected).max()
    assert np.abs(whole.with_constraints(["tip2"]).step_f() - expected).max() > 1e-3


def test_partitions_of_a_batch() -> None:
    """One partition for every state; what they answer is stacked."""
    system = bc.compile(bc.load("redundant_five_bar"), "operator")
    q, u, tau = looped.states(system)
    many = bc.analyze.partition(system, q, u, tau[0], secondary=["link3.1"])
    alone = [bc.analyze.partition(system, q[i], u[i], tau[0], secondary=["link3.1"]) for i in range(3)]
    for found, each in ((many.step_f(), [x.step_f() for x in alone]), (many.step_d(), [x.step_d() for x in alone]),
                        (many.step_c().primary, [x.step_c().primary for x in alone]),
                        (many.with_constraints(["tip2"]).step_f(),
                         [x.with_constraints(["tip2"]).step_f() for x in alone])):
        assert np.array_equal(found, np.array(each))
    operators = bc.analyze.operators(system, q)
    own = whole_states.carrying(system, True)
    assert np.allclose((operators.mass_inverse @ (operators.mass @ u))[..., own], u[..., own], rtol=1e-10)
    assert (operators.H @ operators.phi)[1].matrix().shape == (operators.H @ operators.phi).matrix().shape[1:]


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "stewart", "delta", "jansen"])
def test_virtual_motions_and_the_general_method_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drives of the independent joints, of others, of too many; and accelerations with some of them held."""
    system = bc.compile(bc.load(name))
    q, u, tau = looped.states(system)
    udot = system.forward_dynamics(q, u, tau)
    independent = [system.speed_names[v] for v in system.plans.general().independent]
    every = [r.name for r in system.model.configuration.records]
    asked = {"own": None, "all": every}

    def answers() -> list[np.ndarray]:
        forces = [system.inverse_dynamics(q, u, udot, actuated=names) for names in asked.values()]
        held = {independent[0].rpartition(".")[0]: 0.7} if system.model.configuration.records[0].joint.nu == 1 else {}
        return [*forces, system.consistent_acceleration(q[0], u[0], held),
                system.consistent_acceleration(q[0], u[0], udot[0] + 0.1)]

    quick = answers()
    monkeypatch.setattr(inverse_dynamics, "_virtual_motions", lambda plans, q, t: None)
    monkeypatch.setattr(inverse_dynamics, "drive_program", lambda plans, q, t, drives: None)
    for one, other in zip(quick, answers(), strict=True):
        assert np.abs(one - other).max() < 1e-8 * (1.0 + np.abs(other).max())
    assert np.abs(system.forward_dynamics(q, u, quick[0]) - udot).max() < 1e-8 * (1.0 + np.abs(udot).max())


def test_inverse_dynamics_of_one_state_checks_the_motion() -> None:
    system = bc.compile(bc.load("four_bar"))
    q, u = system.assemble(q={"A": 0.5}, u={"A": 1.0})
    udot = system.forward_dynamics(q, u)
    for bad, said in (((q + 1e-3, u, udot), "positions open"), ((q, u + 1e-3, udot), "speeds open"),
                      ((q, u, udot + 1e-2), "accelerations open")):
        with pytest.raises(bc.StateError, match=said):
            system.inverse_dynamics(*bad)


def careful(system: bc.System, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the programs away: what is left is singular values."""
    monkeypatch.setattr(inverse_dynamics, "drive_program", lambda plans, q, t, drives: None)
    monkeypatch.setattr(reactions, "reaction_program", lambda plans, q, t: None)
    system._doors.update(inverse_dynamics=NO_DOORS, reactions=NO_DOORS)


@pytest.mark.everyday(8)
@pytest.mark.parametrize(("name", "backend"), [*((name, "numpy") for name in looped.ZOO), ("four_bar", "llvm"),
                                               ("bennett", "llvm"), ("quarter_car", "llvm")])
def test_programs_agree_with_singular_values(name: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drives and reactions, one state and a batch, with accelerations given and with wrenches."""
    system = bc.compile(bc.load(name), backend=backend)
    q, u, tau = looped.states(system)
    udot = system.forward_dynamics(q, u, tau)
    wrenches = np.random.default_rng(2).normal(size=(len(system.body_names), 6))

    def answers() -> list[np.ndarray]:
        wrench = [system.reactions(q[0], u[0], tau[0]), system.reactions(q, u, tau, wrenches=wrenches),
                  system.reactions(q, u, udot=udot)]
        return [system.inverse_dynamics(q[0], u[0], udot[0]), system.inverse_dynamics(q, u, udot, wrenches=wrenches),
                *(np.stack([found[joint] for joint in sorted(found)]) for found in wrench)]

    assert drive_programs.usual_drives(system.plans) is not None
    assert reactions.reaction_program(system.plans, q, 0.0) is not None
    quick = answers()
    careful(system, monkeypatch)
    tolerance = 1e3 * looped.EPS * max(looped.conditioning(system, x) for x in q)
    for one, other in zip(quick, answers(), strict=True):
        assert one.shape == other.shape
        assert np.abs(one - other).max() < tolerance * (1.0 + np.abs(other).max())


def sprung() -> bc.System:
    """A five-bar with springs on a joint and between bodies."""
    m = bc.load("five_bar")
    names = [r.name for r in m.joints]
    m.add_joint_spring("coil", names[1], stiffness=3.0, damping=0.5, rest=0.2)
    m.add_spring("rope", m.bodies[0], m.bodies[2], (0.1, 0.02, 0.0), (0.05, 0.0, 0.1), stiffness=40.0, length=0.3)
    return bc.compile(m)


def test_programs_with_prescribed_motions_and_springs(monkeypatch: pytest.MonkeyPatch) -> None:
    system = sprung()
    driven = system.lock(system.joint_names[0])
    state = driven.project(system.assemble().q, np.random.default_rng(0).normal(size=system.nu))
    udot = driven.forward_dynamics(state.q, state.u)
    quick = driven.inverse_dynamics(state.q, state.u, udot)
    wrenches = driven.reactions(state.q, state.u)
    assert abs(quick[0]) > 1e-3  # what holds the crank
    careful(driven, monkeypatch)
    expected = driven.inverse_dynamics(state.q, state.u, udot)
    assert np.abs(quick - expected).max() < 1e-10 * np.abs(expected).max()
    for joint, wrench in driven.reactions(state.q, state.u).items():
        assert np.abs(wrenches[joint] - wrench).max() < 1e-9 * (1.0 + np.abs(wrench).max())


def test_one_open_state_of_a_batch_is_refused_by_its_index_alone() -> None:
    """States whose pivots vanish, or that open the loops, do not spoil the others of a batch."""
    system = bc.compile(bc.load("four_bar"))
    q, u, tau = looped.states(system, count=6)
    udot = system.forward_dynamics(q, u, tau)
    good = system.inverse_dynamics(q, u, udot)
    bad = udot.copy()
    bad[4] += 1.0
    with pytest.raises(bc.StateError, match="accelerations open the loop"):
        system.inverse_dynamics(q, u, bad)
    bad[4] = udot[4] + 1e-7 * np.abs(udot[4]).max()  # open, but by less than is refused
    near = system.inverse_dynamics(q, u, bad)
    assert (near[:4] == good[:4]).all()
    assert np.abs(near - good).max() < 1e-5 * np.abs(good).max()


def test_dead_points_in_a_batch_do_not_slow_the_others() -> None:
    """The rocker's speed is to be independent: it stops where crank and base are in line, and other pivots serve."""
    system = bc.compile(bc.load("four_bar"), independent=["C"])
    state = system.assemble(q={"A": np.array([0.5, 0.0, 0.7])}, u={"A": 1.0})
    wrenches = np.random.default_rng(0).normal(size=(3, len(system.body_names), 6))
    many = system.reactions(state.q, state.u, wrenches=wrenches)
    usual = bc.compile(bc.load("four_bar")).reactions(state.q, state.u, wrenches=wrenches)
    for joint, wrench in usual.items():
        assert np.abs(many[joint] - wrench).max() < 1e-10 * np.abs(wrench).max()


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "slider_crank"])
def test_inverse_dynamics_is_compiled_wherever_loops_are_cut(name: str) -> None:
    """Also where the independent speeds are not those of any plan of this tree."""
    machine = bc.load(name)
    plain = bc.compile(machine, backend="numpy")
    state = plain.random_state(seed=3)
    udot = plain.forward_dynamics(state)
    moved = plain.consistent_acceleration(state, udot + 1.0)
    wanted = plain.inverse_dynamics(state, moved)
    for joint in plain.joint_names:
        system = bc.compile(machine, backend="numpy", cut=[joint])
        drives = drive_programs.drive_entries(system.plans, state.q, 0.0, None)
        assert drive_programs.drive_program(system.plans, state.q, 0.0, drives) is not None
        found = system.inverse_dynamics(state, moved)
        assert np.abs(found - wanted).max() < 1e-10 * (1.0 + np.abs(moved).max()), joint


def test_drives_elsewhere_get_a_plan_of_their_own() -> None:
    """Any one joint of a four-bar can drive it, and two share the work."""
    system = bc.compile(bc.load("four_bar"))
    q, u, tau = looped.states(system)
    udot = system.forward_dynamics(q, u, tau)
    for joint in system.joint_names:
        forces = system.inverse_dynamics(q, u, udot, actuated=[joint])
        drives = drive_programs.drive_entries(system.plans, q, 0.0, [joint])
        assert drive_programs.drive_program(system.plans, q, 0.0, drives) is not None
        assert np.abs(system.forward_dynamics(q, u, forces) - udot).max() < 1e-10 * np.abs(udot).max()
        assert np.count_nonzero(forces[0]) == 1


@pytest.mark.parametrize("name", ["four_bar", "ladder"])
def test_drives_group_by_group(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines that are too large for one program: the same forces in two parts, and the same refusals."""
    system = bc.compile(bc.load(name), schedule="rolled")
    q, u, tau = looped.states(system)
    udot = system.forward_dynamics(q, u, tau)
    assert drive_programs.usual_drives(system.plans) is None
    quick = system.inverse_dynamics(q, u, udot), system.inverse_dynamics(q[0], u[0], udot[0])
    dependent = next(g.dependent[0] for g in system.plans.general().groups if g.dependent)
    with pytest.raises(bc.StateError, match="accelerations open the loop"):
        system.inverse_dynamics(q, u, udot + np.eye(system.nu)[dependent])
    monkeypatch.setattr(inverse_dynamics, "_by_groups", lambda *args: None)
    expected = system.inverse_dynamics(q, u, udot)
    size = 1e3 * looped.EPS * max(looped.conditioning(system, x) for x in q) * np.abs(expected).max()
    assert np.abs(quick[0] - expected).max() < size and np.abs(quick[1] - expected[0]).max() < size
