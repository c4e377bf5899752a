"""Topology, assembly and errors of machines with loops."""

from __future__ import annotations

import re

import numpy as np
import pytest

import bellcrank as bc
import looped
import whole_states
from bellcrank.loops.loop_paths import loop_joints
from bellcrank.topology.spanning_tree import spanning_tree

# -- topology ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "option", "longest"), [("ladder", "cells", 7), ("rope_ladder", "rungs", 6),
                                                         ("four_bar_chain", "cells", 4), ("scissor_lift", "stages", 6)])
def test_loops_stay_short_however_long_the_machine(name: str, option: str, longest: int) -> None:
    for size in (5, 40):
        system = bc.compile(bc.load(name, **{option: size}))
        assert max(len(loop_joints(system.model.tree, i)) for i in range(len(system.model.tree.closures))) <= longest


def test_one_cut_for_every_independent_loop() -> None:
    for name in looped.ZOO:
        machine = bc.load(name)
        system = bc.compile(machine)
        assert len(system.model.tree.cut_names) == len(machine.joints) - len(machine.bodies)
        assert system.joint_names == tuple(r.name for r in machine.joints if r.joint.nu)
        assert system.nq == len(system.coordinate_names)


def test_cut_overrides_the_choice() -> None:
    for cut in "ABCD":
        system = bc.compile(bc.load("four_bar"), cut=[cut])
        assert system.loops == (cut,)
        assert system.joint_names == ("A", "B", "C", "D")  # wherever it is cut
        assert "as asked for" in str(bc.analyze.explain(system))


def test_answers_do_not_depend_on_the_cut() -> None:
    plain = bc.compile(bc.load("double_wishbone"))
    state = plain.assemble(q={"lower_arm": 0.1, "rack": 0.01, "wheel": 0.3}, u={"lower_arm": 1.0, "wheel": 2.0})
    expected = plain.forward_dynamics(state.q, state.u)
    other = bc.compile(bc.load("double_wishbone"), cut=["upper_arm", "tie_rod"])
    held = {"lower_arm": 0.1, "rack": 0.01, "wheel": 0.3}
    there = other.assemble(q=held, u={"lower_arm": state.u[0], "rack": state.u[plain.speed_names.index("rack.slide")],
                                      "wheel": state.u[plain.speed_names.index("wheel.angle")]})
    found = other.forward_dynamics(there.q, there.u)
    for name in ("lower_arm.angle", "rack.slide", "wheel.angle"):
        assert found[other.speed_names.index(name)] == pytest.approx(expected[plain.speed_names.index(name)], rel=1e-9)


def test_actuated_and_prescribed_joints_are_not_cut() -> None:
    assert "D" not in bc.compile(bc.load("four_bar"), actuated=["D"]).model.tree.cut_names
    machine = bc.load("four_bar")
    machine.prescribe("D", lambda t: 0.1 * t)
    assert "D" not in bc.compile(machine).model.tree.cut_names


def test_cutting_a_bridge_is_refused() -> None:
    with pytest.raises(bc.ModelError, match=r"no joints lead from the ground to .*cutting 'FL_abduction'"):
        bc.compile(bc.load("linkage_quadruped"), cut=["FL_abduction"])
    with pytest.raises(bc.ModelError, match="no joint called 'Z'"):
        bc.compile(bc.load("four_bar"), cut=["Z"])
    with pytest.raises(bc.ModelError, match="sequence of joint names"):
        bc.compile(bc.load("four_bar"), cut="D")
    machine = bc.load("four_bar")
    machine.prescribe("D", 0.3)
    assert bc.compile(machine, cut=["D"]).loops == ("D.closing",)  # the joint itself follows its motion


def test_multiple_joints_between_two_bodies() -> None:
    """Two hinges on one axis: one loop of two joints, all its conditions redundant."""
    m = bc.Mechanism("door")
    door = m.add_body("door", bc.Inertia.box(10.0, (0.8, 0.04, 2.0), (0.4, 0, 1.0)))
    m.add_joint("lower", bc.Revolute("z"), m.ground, door)
    m.add_joint("upper", bc.Revolute("z"), m.ground, door, bc.Pose((0, 0, 1.8)), bc.Pose((0, 0, 1.8)))
    system = bc.compile(m)
    assert system.dof == 1
    assert len(bc.analyze.explain(system).redundant) == 5
    assert np.abs(system.forward_dynamics([0.4, 0.4], [1.0, 1.0])).max() < 1e-12
    assert topology_order_is_valid(m)


def topology_order_is_valid(m: bc.Mechanism) -> bool:
    topology = spanning_tree(m)
    seen = {0}
    for body in topology.order:
        assert topology.parent[body] in seen
        seen.add(body)
    return len(seen) == len(m.bodies) + 1


@pytest.mark.parametrize("name", looped.ZOO)
def test_parents_come_before_children(name: str) -> None:
    assert topology_order_is_valid(bc.load(name))


# -- assembly ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", looped.ZOO)
def test_assembly_from_a_rough_guess(name: str) -> None:
    system = bc.compile(bc.load(name))
    rng = np.random.default_rng(2)
    start = system.assemble()
    guess = system.integrate(start.q, rng.normal(size=system.nu) * 0.2)
    state = system.assemble(guess=guess, u=rng.normal(size=system.nu))
    assert np.abs(system.loop_error(state.q)).max() < 1e-12
    assert np.abs(system.loop_rate_error(state.q, state.u)).max() < 1e-12 * (1 + np.abs(state.u).max())
    assert np.abs(state.q - system.normalize(state.q)).max() < 1e-15


def test_held_coordinates_and_rates_are_held_exactly() -> None:
    system = bc.compile(bc.load("five_bar"))
    state = system.assemble(q={"leg1.1": 1.2, "leg2.1.angle": 1.1}, u={"leg1.1": 2.0, "leg2.1": -1.0})
    q = dict(zip(system.joint_names, state.q, strict=True))
    u = dict(zip(system.joint_names, state.u, strict=True))
    assert (q["leg1.1"], q["leg2.1"], u["leg1.1"], u["leg2.1"]) == (1.2, 1.1, 2.0, -1.0)
    assert np.abs(system.loop_error(state.q)).max() < 1e-14
    assert np.abs(system.loop_rate_error(state.q, state.u)).max() < 1e-13


def test_weights_decide_what_moves() -> None:
    system = bc.compile(bc.load("five_bar"))
    start = system.assemble(q={"leg1.1": 1.2, "leg2.1": 1.1}).q
    guess = start + 0.1  # the tip of either leg is within reach of the other
    stiff = system.assemble(guess=guess, weights={"leg1.1": 1e3, "leg1.2": 1e3}).q
    soft = system.assemble(guess=guess, weights={"leg2.1": 1e3, "leg2.2": 1e3}).q
    assert np.abs((stiff - guess)[:2]).max() < 1e-3 < np.abs((soft - guess)[:2]).max()


def test_branches_of_the_four_bar() -> None:
    system = bc.compile(bc.load("four_bar"))
    found = bc.analyze.branches(system, q={"A": 0.5235987755982989}, guess=[0.52, -0.1, -2.2, 0.0])
    assert len(found) == 2
    assert found[0].q[1] == pytest.approx(-0.08225408972428526, abs=1e-10)  # the reference's open branch
    assert found[1].q[1] == pytest.approx(-1.364828165684146, abs=1e-10)  # its crossed one
    near = system.assemble(q={"A": 0.5235987755982989}, guess=[0.52, -1.4, 2.3, 0.0])
    assert near.q[2] == pytest.approx(2.2889728841449624, abs=1e-10)


def test_closing_joints_can_be_held_and_measured() -> None:
    system = bc.compile(bc.load("four_bar"))
    state = system.assemble(q={"A": 0.5}, u={"A": 1.0})
    d = bc.analyze.loop_coordinates(system, state.q, "D")
    assert d[0] == pytest.approx(state.q[3], abs=1e-15)
    assert d[0] == pytest.approx((-state.q[:3].sum() + np.pi) % (2 * np.pi) - np.pi)
    speed = bc.analyze.loop_speeds(system, state.q, state.u, "D")[0]
    assert speed == pytest.approx(state.u[3], abs=1e-15)
    assert speed == pytest.approx(-state.u[:3].sum())
    again = system.assemble(q={"D": d[0]}, guess=state.q + 0.05)
    assert np.abs(again.q - state.q).max() < 1e-9


@pytest.mark.parametrize("name", looped.ZOO)
def test_closing_joints_fit_their_coordinates(name: str) -> None:
    """The pose of every closing joint is the one its own coordinates give."""
    system = bc.compile(bc.load(name))
    q, _, _ = looped.states(system, count=1)
    for i, c in enumerate(system.model.tree.closures):
        turn, shift = system.plans.closer.relative_pose(q[0], i)
        r, p = np.eye(3), np.zeros(3)
        for t in c.kind.transforms(list(bc.analyze.loop_coordinates(system, q[0], c.name)), c.kind.constants()):
            p = p + r @ np.array(t.translation, dtype=float)
            r = r @ np.array([[float(x) for x in t.rotation.apply(type(t.translation)(*e))] for e in np.eye(3)]).T
        assert np.abs(turn - r).max() < 1e-12
        assert np.abs(shift - p).max() < 1e-12


def test_what_cannot_close_says_by_how_much() -> None:
    m = bc.Mechanism("too short", gravity=(0, -9.81, 0))
    a = m.add_body("a", bc.Inertia.rod(1.0, (0, 0, 0), (0.3, 0, 0)))
    b = m.add_body("b", bc.Inertia.rod(1.0, (0, 0, 0), (0.4, 0, 0)))
    m.add_joint("left", bc.Revolute("z"), m.ground, a)
    m.add_joint("elbow", bc.Revolute("z"), a, b, bc.Pose((0.3, 0, 0)))
    m.add_joint("right", bc.Revolute("z"), b, m.ground, bc.Pose((0.4, 0, 0)), bc.Pose((1.0, 0, 0)))
    system = bc.compile(m)
    with pytest.raises(bc.AssemblyError, match=r"do not close; 'right' by 0\.\d+ \(joints left, elbow, right\)"):
        system.assemble()
    with pytest.raises(bc.AssemblyError):
        system.forward_dynamics(np.zeros(3), np.zeros(3))
    assert "unknown by rank" in str(bc.analyze.explain(system))


@pytest.mark.parametrize(("arguments", "message"), [
    ({"q": {"Z": 1.0}}, "no joint called 'Z'"), ({"q": {"A": [1.0, 2.0]}}, "'A' needs 1 value, got 2"),
    ({"q": {"A": float("nan")}}, "not finite"), ({"q": {"A": "x"}}, "not a number"),
    ({"u": {"A": 1.0, "D": 9.0}}, "joint 'D' cannot have the speed"), ({"guess": [0.0]}, "last axis must have 4"),
    ({"weights": {"A": -1.0}}, "positive number"), ({"guess": [np.inf, 0, 0, 0]}, "must be finite"),
    ({"u": {"A": 1.0, "B": 5.0, "C": 1.0}}, "speeds held contradict each other"),
])
def test_bad_input_of_assembly(arguments: dict[str, object], message: str) -> None:
    system = bc.compile(bc.load("four_bar"))
    with pytest.raises(bc.BellcrankError, match=re.escape(message)):
        system.assemble(**arguments)  # type: ignore[arg-type]


def test_inconsistent_redundant_loops_are_refused() -> None:
    """A third, slightly different parallel bar makes a mobile parallelogram a rigid, unclosable frame."""
    def frame(length: float) -> bc.Mechanism:
        m = bc.Mechanism("three bars", gravity=(0, -9.81, 0))
        bars = [m.add_body(f"bar{i}", bc.Inertia.rod(1.0, (0, 0, 0), (0.0, x, 0.0)))
                for i, x in enumerate((0.5, 0.5, length))]
        coupler = m.add_body("coupler", bc.Inertia.rod(2.0, (0, 0, 0), (1.0, 0, 0)))
        for i, bar in enumerate(bars):
            m.add_joint(f"foot{i}", bc.Revolute("z"), m.ground, bar, bc.Pose((0.5 * i, 0, 0)))
            m.add_joint(f"head{i}", bc.Revolute("z"), bar, coupler,
                        bc.Pose((0.0, 0.5 if i < 2 else length, 0.0)), bc.Pose((0.5 * i, 0, 0)))
        return m

    fine = bc.compile(frame(0.5))
    assert fine.dof == 1
    assert bc.analyze.explain(fine).mobility_counted < 1
    state = fine.assemble(q={"foot0": 0.4})
    a, b = bc.compile(frame(0.5), "dense"), fine
    assert np.abs(a.forward_dynamics(state.q, state.u) - b.forward_dynamics(state.q, state.u)).max() < 1e-11
    with pytest.raises(bc.AssemblyError, match="do not close"):
        bc.compile(frame(0.52)).assemble(q={"foot0": 0.4})


def test_singular_positions_are_reported_with_names() -> None:
    m = bc.Mechanism("parallelogram", gravity=(0, -9.81, 0))
    rods = {n: m.add_body(n, bc.Inertia.rod(1.0, (0, 0, 0), (x, 0, 0)))
            for n, x in (("left", 0.5), ("coupler", 1.0), ("right", 0.5))}
    m.add_joint("A", bc.Revolute("z"), m.ground, rods["left"])
    m.add_joint("B", bc.Revolute("z"), rods["left"], rods["coupler"], bc.Pose((0.5, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), rods["coupler"], rods["right"], bc.Pose((1.0, 0, 0)), bc.Pose((0.5, 0, 0)))
    m.add_joint("D", bc.Revolute("z"), m.ground, rods["right"], bc.Pose((1.0, 0, 0)))
    system = bc.compile(m)
    with pytest.raises(bc.SingularError, match=r"singular position: 1 of its 2 .* those of A, B, C, D"):
        system.forward_dynamics(np.zeros(4), np.zeros(4))
    near = system.assemble(q={"A": 1e-3})
    assert np.isfinite(system.forward_dynamics(near.q, near.u)).all()


# -- gears, rods, slots --------------------------------------------------------------------------------------------
def test_gear_pair() -> None:
    """Two wheels geared 3 : 1 have the inertia of one."""
    m = bc.Mechanism("gears", gravity=(0, 0, 0))
    small, large = (m.add_body(n, bc.Inertia(1.0, (0, 0, 0), np.diag([1.0, 1.0, j]), checked=False))
                    for n, j in (("small", 0.1), ("large", 2.0)))
    m.add_joint("pinion", bc.Revolute("z"), m.ground, small)
    m.add_joint("wheel", bc.Revolute("z"), m.ground, large, bc.Pose((1, 0, 0)))
    m.add_coupler("mesh", {"pinion": 1.0, "wheel": 3.0})
    for method in ("elimination", "dense", "kane", "recursive", "operator", "momenta"):
        system = bc.compile(m, method)
        assert system.dof == 1
        udot = system.forward_dynamics([0.3, -0.1], [3.0, -1.0], [1.5, 0.0])
        assert udot[0] == pytest.approx(1.5 / (0.1 + 2.0 / 9.0), rel=1e-12)
        assert udot[1] == pytest.approx(-udot[0] / 3.0, rel=1e-12)
    state = system.assemble(q={"pinion": 0.9})
    assert state.q[1] == pytest.approx(-0.3)


def pendulum_by(kind: object) -> bc.Mechanism:
    """A free body whose origin is bound to the ground."""
    m = bc.Mechanism("bound")
    bob = m.add_body("bob", bc.Inertia.sphere(2.0, 0.1))
    m.add_joint("free", bc.Free(), m.ground, bob)
    m.add_constraint("bond", kind, m.ground, bob)
    return m


def test_distance_point_on_line_and_plane() -> None:
    rod = bc.compile(pendulum_by(bc.Distance(0.5)))
    assert rod.dof == 5
    q = np.array([1.0, 0, 0, 0, 0.5 * np.sin(0.3), 0, -0.5 * np.cos(0.3)])
    udot = rod.forward_dynamics(q, np.zeros(6))
    tangent = np.array([np.cos(0.3), 0, np.sin(0.3)])
    assert udot[3:] == pytest.approx(-9.81 * np.sin(0.3) * tangent, abs=1e-12)
    line = bc.compile(pendulum_by(bc.PointOnLine((0, 1, 1))))
    assert line.dof == 4
    slope = np.array([0, 1, 1]) / np.sqrt(2)
    there = np.array([1.0, 0, 0, 0, *(0.7 * slope)])
    assert line.forward_dynamics(there, np.zeros(6))[3:] == pytest.approx(-9.81 / np.sqrt(2) * slope, abs=1e-12)
    plane = bc.compile(pendulum_by(bc.PointOnPlane("x")))
    assert plane.dof == 5
    assert plane.forward_dynamics([1, 0, 0, 0, 0, 0.2, 0.3], np.zeros(6))[3:] == pytest.approx([0, 0, -9.81])


@pytest.mark.parametrize(("call", "message"), [
    (lambda m: m.add_coupler("g", {"A": 1.0}), "at least two"),
    (lambda m: m.add_coupler("g", {"A": 1.0, "B": 0.0}), "finite and not zero"),
    (lambda m: m.add_coupler("g", {"A": 1.0, "Q": 1.0}), "no joint called"),
    (lambda m: m.add_constraint("c", bc.Revolute("z"), m.ground, "crank"), "joints are added by add_joint"),
    (lambda m: m.add_constraint("c", 3.0, m.ground, "crank"), "needs a constraint such as"),
    (lambda m: m.add_constraint("c", bc.Distance(1.0), "crank", "crank"), "with itself"),
    (lambda m: bc.Distance(0.0), "must be positive"),
    (lambda m: m.add_spring("s", m.ground, "crank", (0, 0), (0, 0, 0), stiffness=1.0), "three numbers"),
    (lambda m: m.add_spring("s", m.ground, "crank", (0, 0, 0), (0, 0, 0), stiffness=float("nan")), "not finite"),
    (lambda m: m.add_spring("s", m.ground, "nobody", (0, 0, 0), (0, 0, 0), stiffness=1.0), "no body called"),
    (lambda m: m.add_joint_spring("s", "Q", stiffness=1.0), "no joint called"),
    (lambda m: m.add_joint_spring("s", "A", stiffness=1.0, coordinate="slide"), "no coordinate 'slide'"),
    (lambda m: m.add_joint_force("s", "A", lambda q, u, t: q), "displacement and its rate"),
])
def test_bad_descriptions(call: object, message: str) -> None:
    machine = bc.load("four_bar")
    with pytest.raises(bc.ModelError, match=re.escape(message)):
        call(machine)  # type: ignore[operator]


# -- prescribed motion, stabilisation ------------------------------------------------------------------------------
def test_prescribed_crank_drives_the_loop() -> None:
    machine = bc.load("four_bar")
    machine.prescribe("A", lambda t: 0.5 + 2.0 * t + 1.5 * t * t)
    system = bc.compile(machine)
    assert system.dof == 0
    state = system.assemble(t=0.1)
    assert np.abs(system.loop_error(state.q, t=0.1)).max() < 1e-13
    udot = system.forward_dynamics(state.q, state.u, t=0.1)
    assert udot[0] == pytest.approx(3.0)
    assert np.abs(bc.analyze.loop_acceleration_error(system, state.q, state.u, udot, t=0.1)).max() < 1e-12
    plain = bc.compile(bc.load("four_bar"), actuated=["A"])
    q = [0.5 + 0.2 + 0.015, *state.q[1:]]
    u = [2.3, *state.u[1:]]
    tau = plain.inverse_dynamics(q, u, udot)
    drive = system.drive_forces(state.q, state.u, t=0.1)
    assert drive[0] == pytest.approx(tau[0], rel=1e-9)


@pytest.mark.parametrize("method", ("kane", "recursive", "operator", "elimination"))
def test_baumgarte_pulls_the_loops_closed(method: str) -> None:
    system = bc.compile(bc.load("four_bar"), method, baumgarte=(10.0, 10.0))
    plain = bc.compile(bc.load("four_bar"), method)
    state = plain.assemble(q={"A": 0.5}, u={"A": 1.0})
    assert np.abs(system.forward_dynamics(state.q, state.u) - plain.forward_dynamics(state.q, state.u)).max() < 1e-9
    q = state.q + [0.0, 1e-4, 0.0, 0.0]
    error, rate = plain.loop_error(q), plain.loop_rate_error(q, state.u)
    pulled = system.forward_dynamics(q, state.u)
    assert bc.analyze.loop_acceleration_error(system, q, state.u, pulled)[:2] == pytest.approx(
        (-20.0 * rate - 100.0 * error)[:2], rel=1e-6, abs=1e-9)
    assert np.abs(system.loop_error(system.project(q, state.u).q)).max() < 1e-13


def test_explain_prints_and_counts() -> None:
    for name in looped.ZOO:
        system = bc.compile(bc.load(name))
        report = bc.analyze.explain(system)
        text = str(report)
        assert report.mobility == system.dof
        assert len(report.independent) == system.dof
        assert all(name in text for name in system.model.tree.cut_names[:5])
        assert report.rank == len(system.plans.general().kept)


def test_joints_that_allow_everything_close_loops_too() -> None:
    """A Free joint between bodies that hang elsewhere: a loop without conditions."""
    m = bc.load("double_pendulum")
    m.add_joint("nothing", bc.Free(), m.ground, "lower")
    system, tree = bc.compile(m), bc.compile(bc.load("double_pendulum"))
    assert system.loops == ("nothing",)  # the joint that leaves most freedom is the one to cut
    angles, rates = [0.3, 0.4], [1.0, 2.0]
    q, u = whole_states.whole_state(system, angles, rates)
    expected = tree.forward_dynamics(angles, rates)
    for method in ("elimination", "dense"):
        udot = bc.compile(m, method).forward_dynamics(q, u)
        assert whole_states.of_tree(system, udot) == pytest.approx(expected)
    assert system.dof == 2
    assert system.inverse_dynamics(q, u, udot) == pytest.approx(np.zeros(8), abs=1e-12)
    assert np.abs(system.reactions(q, u)["nothing"]).max() == 0.0
    assert "loop through" in str(bc.analyze.explain(system))
    # the free joint's own coordinates: the pose and the motion of the lower link
    lower, velocity = system.pose(q, "lower"), system.velocity(q, u, "lower")
    place, rate = q[system.model.configuration.coordinate_entries("nothing")], u[2:]
    alone = bc.Mechanism("alone")
    alone.add_joint("free", bc.Free(), alone.ground, alone.add_body("body", bc.Inertia.sphere(1.0, 0.1)))
    there = bc.compile(alone).pose(place, "body")
    assert there.position == pytest.approx(lower.position) and there.rotation == pytest.approx(lower.rotation)
    assert lower.rotation @ rate[:3] == pytest.approx(velocity[:3])
    assert lower.rotation @ rate[3:] == pytest.approx(velocity[3:])


def test_plans_solve_the_condition_that_says_most() -> None:
    """Rows of a closure may say the same with very different loudness: a ladder whose arms hang nearly straight."""
    system = bc.compile(bc.examples.load("ladder", cells=16))
    state = system.assemble(q={"arm0.angle1": 5e-4, "arm0.angle2": 0.6})
    plan = system.plans.at(state.q, 0.0)
    assert min(s for g in plan.groups for s in g.sizes) > 0.05
    assert len(plan.kept) == len(system.plans.general().kept)


def test_branches_take_an_array_as_their_guess() -> None:
    system = bc.compile(bc.load("four_bar"))
    there = bc.analyze.branches(system, {"A": 0.5})
    assert len(there) == 2
    for state in there:
        nearest = bc.analyze.branches(system, state.q, tries=1)[0]
        assert np.abs(nearest.q - state.q).max() < 1e-9


def test_consistent_accelerations_of_a_batch_are_those_of_its_states() -> None:
    system = bc.compile(bc.load("five_bar"))
    state = system.assemble(q=system.assemble().q + 0.02 * np.random.default_rng(0).normal(size=(3, system.nu)),
                            u=np.random.default_rng(1).normal(size=(3, system.nu)))
    wanted = np.random.default_rng(2).normal(size=(3, system.nu))
    joint = system.joint_names[0]
    for udot, single in ((wanted, lambda i: wanted[i]), ({joint: [1.0, 2.0, 3.0]}, lambda i: {joint: 1.0 + i})):
        found = system.consistent_acceleration(state.q, state.u, udot)
        assert np.abs(bc.analyze.loop_acceleration_error(system, state.q, state.u, found)).max() < 1e-11
        for i in range(3):
            assert np.abs(found[i] - system.consistent_acceleration(state.q[i], state.u[i], single(i))).max() < 1e-11


def test_actuated_joints_of_a_tree_must_do_all_the_work() -> None:
    system = bc.compile(bc.load("double_pendulum"))
    shoulder, elbow = system.joint_names
    q, u = np.array([0.3, 0.4]), np.array([1.0, -2.0])
    udot = np.array([0.5, 0.7])
    whole = system.inverse_dynamics(q, u, udot)
    assert np.array_equal(system.inverse_dynamics(q, u, udot, actuated=[shoulder, elbow]), whole)
    with pytest.raises(bc.ModelError, match=f"needs a force at {elbow}.angle"):
        system.inverse_dynamics(q, u, udot, actuated=[shoulder])
    hanging = system.inverse_dynamics(np.zeros(2), np.zeros(2), np.zeros(2), actuated=[shoulder])
    assert np.abs(hanging).max() < 1e-12


@pytest.mark.everyday(20)
@pytest.mark.parametrize("seed", range(60))
def test_couplers_that_share_joints_anywhere_in_a_tree(seed: int) -> None:
    """Mimic joints of grippers and hands: several followers of one leader, up and down the tree."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    m = bc.Mechanism("hand", gravity=(0.3, -9.0, 1.0))
    for i in range(n):
        m.add_body(f"b{i}", bc.Inertia.box(1.0, (1.0, 2.0, 3.0), (0.1, 0.0, 0.5)))
        parent = m.ground if i == 0 else ("ground", *(f"b{k}" for k in range(i)))[int(rng.integers(0, i + 1))]
        m.add_joint(f"j{i}", bc.Revolute("xyz"[int(rng.integers(3))]), m.ground if parent == "ground" else parent,
                    f"b{i}", parent_pose=bc.Pose((0.3, 0.1, -0.2)))
    followers = rng.permutation(np.arange(1, n))[:int(rng.integers(1, n))]
    for i in followers.tolist():
        leader = int(rng.integers(0, i))
        m.add_coupler(f"c{i}", {f"j{i}": 1.0, f"j{leader}": float(rng.normal())}, float(rng.normal()))
    fast, oracle = bc.compile(m, backend="numpy"), bc.compile(m, method="dense", backend="numpy")
    state = fast.assemble(u=rng.normal(size=n))
    expected = oracle.forward_dynamics(state.q, state.u)
    assert np.abs(fast.forward_dynamics(state.q, state.u) - expected).max() < 1e-9 * (1.0 + np.abs(expected).max())


@pytest.mark.parametrize(("joint", "coordinate"), [
    (bc.Universal(), "angle1"), (bc.Universal(), "angle2"), (bc.Planar(), "x"), (bc.Planar(), "y"),
    (bc.Planar(), "angle"), (bc.Cylindrical(), "angle"), (bc.Cylindrical(), "slide")])
def test_couplers_on_one_of_several_coordinates(joint: bc.Joint, coordinate: str) -> None:
    solid = bc.Inertia(1.3, (0.1, 0.05, -0.02), [[0.02, 0.001, 0.002], [0.001, 0.03, -0.003], [0.002, -0.003, 0.025]])
    m = bc.Mechanism("one")
    for name in "ab":
        m.add_body(name, solid)
    m.add_joint("one", bc.Revolute("z"), m.ground, "a")
    m.add_joint("two", joint, "a", "b", bc.Pose((0.1, 0.2, 0.3)))
    names = joint.coordinate_names()
    m.add_coupler("g", {"one": 1.0, f"two.{coordinate if coordinate in names else names[-1]}": -0.3})
    results = []
    for method in ("elimination", "dense"):
        system = bc.compile(m, method=method)
        state = system.assemble(q=np.full(system.nq, 0.1), u=np.full(system.nu, 0.2))
        results.append(system.forward_dynamics(state.q, state.u))
    assert np.abs(results[0] - results[1]).max() < 1e-11 * np.abs(results[1]).max()
