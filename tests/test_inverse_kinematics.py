"""Inverse kinematics: every target alone and together, loops, ranges, priorities, what cannot be had."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import ModelError, StateError
from bellcrank.inverse_kinematics.places import Places
from bellcrank.inverse_kinematics.targets import KinematicTarget, turn_between
from bellcrank.mechanism.joints import quaternion

to = bc.targets


def arm(links: int = 6) -> bc.Mechanism:
    """An arm with axes in different directions."""
    m = bc.Mechanism("arm")
    last: Any = m.ground
    for i in range(links):
        body = m.add_body(f"link{i}", bc.Inertia.box(1.0, (0.4, 0.05, 0.05), (0.2, 0, 0)))
        axis = ("z", "y", "y", "x", "y", "x", "z")[i % 7]
        m.add_joint(f"j{i}", bc.Revolute(axis), last, body, bc.Pose((0.4 if i else 0.0, 0, 0)))
        last = body
    m.add_frame("tool", last, bc.Pose((0.2, 0.05, 0.0)))
    m.add_output("bend", lambda at: at.q("j1") * at.q("j2") + at.position("link3").z)
    return m


def targets_at(system: bc.System, state: bc.State, bodies: tuple[str, str], joint: str) -> list[KinematicTarget]:
    """Every kind of target, met in a state."""
    hand, other = bodies
    pose, base = system.pose(state, hand), system.pose(state, other)
    point = np.array([0.1, -0.05, 0.02])
    here = pose.position + (pose.rotation @ point)
    seen = (np.swapaxes(base.rotation, -1, -2) @ (here - base.position)[..., None])[..., 0]
    ahead = here + 0.7 * (pose.rotation @ np.array([0.6, 0.0, 0.8]))
    turned = np.swapaxes(base.rotation, -1, -2) @ pose.rotation
    entries = system.model.configuration.coordinate_entries(joint)
    return [to.BodyPosition(hand, here, point=point), to.BodyPosition(hand, seen, point=point, relative_to=other),
            to.BodyPosition(hand, here, point=point, axes="xz"), to.BodyOrientation(hand, pose.rotation),
            to.BodyOrientation(hand, turned, relative_to=other), to.BodyPose(hand, pose),
            to.BodyDirection(hand, (0, 0.6, 0.8), pose.rotation @ np.array([0, 0.6, 0.8])),
            to.BodyDirection(hand, (0, 0.6, 0.8), turned @ np.array([0, 0.6, 0.8]), relative_to=other),
            to.Gaze(hand, (0.6, 0, 0.8), ahead, point=point),
            to.PointDistance(hand, "ground", np.linalg.norm(here - np.array([0, 0, 0.5]), axis=-1), first_point=point,
                        second_point=(0, 0, 0.5)),
            to.CenterOfMass(system.center_of_mass(state), axes="xy"), to.JointValue(joint, state.q[..., entries])]


def machines() -> dict[str, tuple[bc.System, tuple[str, str], str]]:
    linkage = bc.load("four_bar")
    linkage.add_output("bend", lambda at: at.q("A") * at.q("D") + at.position("rocker").x)
    return {"arm": (bc.compile(arm()), ("link5", "link1"), "j3"),
            "stewart": (bc.compile(bc.load("stewart")), ("platform", "leg1.piston"), "leg2.slide"),
            "stewart, balls": (bc.compile(bc.load("stewart")), ("platform", "leg1.piston"), "leg2.ball"),
            "four-bar": (bc.compile(linkage), ("coupler", "crank"), "D")}


MACHINES = machines()


@pytest.mark.parametrize("name", MACHINES)
def test_rates_of_targets(name: str) -> None:
    """The rates of every target along motions that the loops allow, against differences of its errors."""
    system, bodies, joint = MACHINES[name]
    plans, rng = system.plans, np.random.default_rng(3)
    state, h = system.random_state(size=3, seed=4), 1e-6
    # what is asked for is met somewhere else: errors are not small
    asked = targets_at(system, system.random_state(size=3, seed=5), bodies, joint)
    if system.model.mechanism.outputs:
        asked.append(to.OutputValue("bend", [0.3, 0.1, 0.2], size=2.0))
    way = system.project(state.q, rng.normal(size=state.u.shape)).u

    def rows(target: KinematicTarget, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return target.rows(Places(plans, q, 0.0, (3,), np.arange(3)))

    for target in asked:
        error, rates = rows(target, state.q)
        ahead, behind = (rows(target, system.assemble(guess=system.integrate(state.q, s * h * way)).q)[0]
                         for s in (1.0, -1.0))
        found = (rates @ way[..., None])[..., 0]
        if isinstance(target, to.JointValue) and joint.endswith("ball"):  # of first order in what is left
            continue
        assert np.abs((ahead - behind) / (2 * h) - found).max() < 2e-8 * (1 + np.abs(found).max()), target.label
        assert error.shape == found.shape


@pytest.mark.parametrize("name", MACHINES)
def test_reachable_targets_are_reached(name: str) -> None:
    system, bodies, joint = MACHINES[name]
    goal = system.random_state(size=8, seed=6)
    for target in targets_at(system, goal, bodies, joint):
        found = system.inverse_kinematics(target, starts=30)
        assert found.solved.all(), (target.label, found.error)
        assert found.error.max() <= 1e-10
        if system.model.tree.looped:
            assert np.abs(system.loop_error(found.state)).max() < 1e-9
    pose = system.pose(goal, bodies[0])
    there = system.pose(system.inverse_kinematics(to.BodyPose(bodies[0], pose)).state, bodies[0])
    assert np.abs(there.position - pose.position).max() < 1e-9
    assert np.abs(turn_between(there.rotation, pose.rotation)).max() < 1e-9


def test_a_guess_stays_on_its_branch_and_a_batch_is_as_its_states() -> None:
    system, (hand, _), _ = MACHINES["arm"]
    goal = system.random_state(size=20, seed=8)
    guess = goal.replace(goal.q + 0.05)
    target = to.BodyPose(hand, system.pose(goal, hand))
    many = system.inverse_kinematics(target, guess=guess)
    assert many.solved.all() and np.abs(many.state.q - goal.q).max() < 1e-6
    for i in range(20):
        one = system.inverse_kinematics(to.BodyPose(hand, system.pose(goal.q[i], hand)), guess=guess.q[i])
        assert np.abs(one.state.q - many.state.q[i]).max() < 1e-12
        assert one.iterations == many.iterations[i] and one.solved.shape == ()


def test_solutions_do_not_depend_on_the_cut() -> None:
    """Where the search goes is measured in the coordinates of all joints."""
    whole = to.BodyPose("platform", bc.Pose((0.1, 0.05, 0.7), quaternion.exponential(np.array([0.1, 0.2, -0.3]))))
    for target in (whole, to.BodyPosition("platform", (0.1, 0.05, 0.7))):
        check_cuts(target)


def check_cuts(target: KinematicTarget) -> None:
    found = []
    for cut in ([], ["leg1.slide"], ["leg1.foot", "leg4.ball"]):
        system = bc.compile(bc.load("stewart"), cut=cut) if cut else bc.compile(bc.load("stewart"))
        start = system.assemble(guess=MACHINES["stewart"][0].assemble())
        found.append(system.inverse_kinematics(target, guess=start))
    assert all(x.solved for x in found)
    assert max(np.abs(x.state.q - found[0].state.q).max() for x in found) < 1e-9
    assert len({int(x.iterations) for x in found}) == 1


def test_priorities_are_strict() -> None:
    """Two places that the hand cannot both be at: the first is met to rounding, the second as nearly as that allows."""
    system, _, _ = MACHINES["arm"]
    first = to.BodyPosition("tool", (0.9, 0.3, 0.2))
    second = to.BodyPosition("link2", (0.0, 0.2, 0.9), priority=1)
    found = system.inverse_kinematics([second, first], guess=np.full(6, 0.2), iterations=300)
    assert not found.solved
    assert np.abs(found.errors["position of 'tool'"]).max() < 1e-9
    # no motion that keeps the first brings the second nearer
    state, length = found.state, system.model.tree.length
    hand, elbow = (system.jacobian(state, body)[3:] for body in ("tool", "link2"))
    _, s, vt = np.linalg.svd(hand)
    left = vt[int((s > 1e-9).sum()):].T
    gradient = (elbow @ left).T @ found.errors["position of 'link2'"] * length
    assert np.abs(gradient).max() < 1e-5
    weighted = system.inverse_kinematics([first, to.BodyPosition("link2", (0.0, 0.2, 0.9))], starts=20)
    assert np.abs(weighted.errors["position of 'tool'"]).max() > 1e-3


def test_ranges_are_kept() -> None:
    m = arm()
    for i in range(6):
        m.set_range(f"j{i}", -0.8, 0.9)
    system, rng = bc.compile(m), np.random.default_rng(2)
    goal = rng.uniform(-0.8, 0.9, (30, 6))
    goal[:, 2] = 0.9  # at its end
    found = system.inverse_kinematics(to.BodyPose("tool", system.pose(goal, "tool")), starts=40)
    assert found.solved.mean() > 0.9
    assert found.state.q.min() >= -0.8 - 1e-9 and found.state.q.max() <= 0.9 + 1e-9
    far = system.inverse_kinematics(to.BodyPosition("tool", (-1.0, 0.0, 0.0)), starts=5)
    assert not far.solved and far.at_ends
    assert far.state.q.min() >= -0.8 - 1e-9 and far.state.q.max() <= 0.9 + 1e-9
    free = system.inverse_kinematics(to.BodyPosition("tool", (-1.0, 0.0, 0.0)), ranges=False, starts=20)
    assert free.solved and np.abs(free.state.q).max() > 0.9


def test_ranges_of_loops() -> None:
    """A leg of the Stewart platform that may not be longer: the platform goes as high as that lets it."""
    m = bc.load("stewart")
    length = MACHINES["stewart"][0].assemble()["leg1.slide"]
    m.set_range("leg1.slide", length - 0.05, length + 0.03)
    system = bc.compile(m)
    place, plain = to.BodyPosition("platform", (0.0, 0.0, 1.0)), MACHINES["stewart"][0]
    tilted = system.inverse_kinematics(place, guess=system.assemble())  # it can tilt
    assert tilted.solved and tilted.state["leg1.slide"] <= length + 0.03 + 1e-9
    assert plain.inverse_kinematics(place, guess=plain.assemble()).state["leg1.slide"] > length + 0.03
    found = system.inverse_kinematics([place, to.BodyOrientation("platform", (1, 0, 0, 0))], guess=system.assemble())
    assert not found.solved and set(found.at_ends) == {"leg1.slide.slide"}
    assert found.state["leg1.slide"] == pytest.approx(length + 0.03, abs=1e-8)
    assert np.abs(system.loop_error(found.state)).max() < 1e-9


def test_posture_takes_what_is_left() -> None:
    system = bc.compile(arm(7))
    goal, posture = np.full(7, 0.3), np.array([0.5, -0.4, 0.9, 0.1, 0.4, -0.2, 0.3])
    target = to.BodyPose("link6", system.pose(goal, "link6"))
    found = system.inverse_kinematics(target, guess=goal + 0.1, posture=posture)
    assert found.solved
    motion = np.linalg.svd(system.jacobian(found.state, "link6"))[2][-1]  # what keeps the hand
    assert abs(motion @ (posture - found.state.q)) < 1e-5
    plain = system.inverse_kinematics(target, guess=goal + 0.1)
    assert np.linalg.norm(posture - found.state.q) < np.linalg.norm(posture - plain.state.q) - 1e-3


def test_what_cannot_be_reached_is_approached() -> None:
    """A point out of reach of a stretched arm: the distance that is left is that of geometry."""
    m = bc.Mechanism("two")
    a, b = (m.add_body(name, bc.Inertia.sphere(1.0, 0.1)) for name in "ab")
    m.add_joint("p", bc.Revolute("z"), m.ground, a)
    m.add_joint("q", bc.Revolute("z"), a, b, bc.Pose((1.0, 0, 0)))
    system = bc.compile(m)
    found = system.inverse_kinematics(to.BodyPosition("b", (3.0, 0.0, 0.5), point=(1.0, 0, 0)))
    assert not found.solved
    assert np.linalg.norm(found.errors["position of 'b'"]) * system.model.tree.length == pytest.approx(np.hypot(1, 0.5))
    both = system.inverse_kinematics(to.BodyPosition("b", (1.2, 0.3, 0.0), point=(1.0, 0, 0)), every=True)
    assert both.state.q.shape == (2, 2) and both.solved.all()
    assert both.state.q[0, 1] == pytest.approx(-both.state.q[1, 1])


def test_whole_turns_that_are_asked_for_stay() -> None:
    """Angles come back by whole turns to those of the guess, but not where a target counts turns."""
    m = arm(4)
    m.add_output("turned", lambda at: at.q("j0"))
    system = bc.compile(m)
    for target in (to.JointValue("j0", 7.0), to.OutputValue("turned", 7.0)):
        found = system.inverse_kinematics(target, every=True, starts=4)
        assert found.solved.any() and np.abs(found.state["j0"] - 7.0).max() < 1e-9


def test_outputs_of_machines_with_prescribed_joints() -> None:
    m = arm(4)
    m.prescribe("j0", lambda t: 0.3 + t)
    m.add_output("tip", lambda at: at.position("link2").z + at.q("j0"))
    found = bc.compile(m).inverse_kinematics(to.OutputValue("tip", 0.7), t=0.1)
    assert found.solved and found.state["j0"] == pytest.approx(0.4)


def test_every_solution_of_an_arm() -> None:
    """A wrist with three axes through a point on two links: eight solutions of a pose."""
    m, last = bc.Mechanism("wrist"), None
    axes = (("z", 0.0), ("y", 0.0), ("y", 0.5), ("x", 0.5), ("y", 0.0), ("x", 0.0))
    for i, (axis, shift) in enumerate(axes):
        body = m.add_body(f"b{i}", bc.Inertia.sphere(1.0, 0.1))
        m.add_joint(f"j{i}", bc.Revolute(axis), m.ground if last is None else last, body, bc.Pose((shift, 0, 0)))
        last = body
    system = bc.compile(m)
    q = np.array([0.3, -0.7, 1.1, 0.4, 0.8, -0.5])
    found = system.inverse_kinematics(to.BodyPose("b5", system.pose(q, "b5")), every=True, starts=150, guess=q)
    assert len(found.state.q) == 8 and found.solved.all()
    assert np.abs(found.state.q[0] - q).max() < 1e-8


def test_targets_on_a_moving_base_and_prescribed_joints() -> None:
    m = bc.Mechanism("base")
    base, mast = (m.add_body(name, bc.Inertia.sphere(1.0, 0.1)) for name in ("base", "mast"))
    m.add_joint("free", bc.Free(), m.ground, base)
    m.add_joint("turn", bc.Revolute("z"), base, mast, bc.Pose((0, 0, 0.5)))
    m.prescribe("turn", lambda t: 0.2 + 3.0 * t)
    system = bc.compile(m)
    upright, place = to.BodyOrientation("mast", (1, 0, 0, 0)), to.BodyPosition("base", (1.0, 2.0, 3.0))
    found = system.inverse_kinematics([upright, place], t=0.1)
    assert found.solved and found.state["turn"] == pytest.approx(0.5) and found.state.t == 0.1
    assert np.abs(np.asarray(system.pose(found.state, "mast").rotation) - np.eye(3)).max() < 1e-9
    whole = quaternion.exponential(np.array([0.1, 0.2, -0.1]))
    named = system.inverse_kinematics(to.JointValue("free", [*whole, 0.1, 0.2, 0.3]))
    assert named.solved and np.abs(named.state["free"] - [*whole, 0.1, 0.2, 0.3]).max() < 1e-9


def test_wrong_targets_are_named() -> None:
    system, _, _ = MACHINES["arm"]
    for target, text in ((lambda: to.BodyPosition("tol", (0, 0, 0)), "tool"),
                         (lambda: to.BodyPosition("ground", (0, 0, 0)), "belongs to the ground"),
                         (lambda: to.BodyPosition("tool", (0, 0)), r"position needs the shape \(..., 3\)"),
                         (lambda: to.BodyPosition("tool", (0, 0, np.nan)), "not finite"),
                         (lambda: to.BodyPosition("tool", (0, 0, 0), axes="xw"), "axes are some of"),
                         (lambda: to.BodyPosition("tool", (0, 0, 0), weight=0.0), "weight must be"),
                         (lambda: to.BodyPosition("tool", (0, 0, 0), priority=-1), "priority is"),
                         (lambda: to.BodyOrientation("tool", (1.0, 1.0, 0, 0)), "not a unit quaternion"),
                         (lambda: to.BodyOrientation("tool", np.ones((3, 3))), "not a rotation matrix"),
                         (lambda: to.BodyDirection("tool", (0, 0, 0), (1, 0, 0)), "has no length"),
                         (lambda: to.PointDistance("tool", "link0", -1.0), "must be positive"),
                         (lambda: to.JointValue("j9", 0.1), "no joint called 'j9'"),
                         (lambda: to.OutputValue("bent", 0.1), "no output 'bent'.*bend"),
                         (lambda: [to.BodyPosition("tool", np.zeros((3, 3))), to.JointValue("j1", np.zeros(4))],
                          "do not fit together"),
                         (lambda: [], "at least one target"), (lambda: ["tool"], "is not a target")):
        with pytest.raises((StateError, ModelError), match=text):
            system.inverse_kinematics(target())
    for options, text in (({"tolerance": 0.0}, "tolerance must be a positive"),
                          ({"iterations": 0}, "iterations must be"), ({"starts": -1}, "starts must be"),
                          ({"t": np.nan}, "t is nan")):
        with pytest.raises(StateError, match=text):
            system.inverse_kinematics(to.BodyPosition("tool", (1, 0, 0)), **options)
    with pytest.raises(StateError, match="one position"):
        system.inverse_kinematics(to.BodyPosition("tool", (1, 0, 0)), posture=np.zeros((2, 6)))
