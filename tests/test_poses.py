"""One class of poses: in descriptions, and out of a `System`, with batch axes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import bellcrank as bc


def arm() -> bc.Mechanism:
    m = bc.Mechanism("arm")
    for i, axis in enumerate("zyx"):
        m.add_body(f"b{i}", bc.Inertia.box(1.0, (0.3, 0.1, 0.1), (0.15, 0, 0)))
        m.add_joint(f"j{i}", bc.Revolute(axis), f"b{i - 1}" if i else m.ground, f"b{i}",
                    bc.Pose((0.3, 0.1 * i, 0)) if i else bc.Pose())
    m.add_frame("tip", "b2", bc.Pose.about("y", 0.4, (0.3, 0.0, 0.1)))
    return m


@pytest.mark.parametrize("lead", [(), (4,), (2, 3)])
def test_computed_poses_are_poses(lead: tuple[int, ...]) -> None:
    system = bc.compile(arm())
    q, _ = system.random_state(np.random.default_rng(0), lead)
    for body in ("b2", "ground"):
        pose = system.pose(q, body)
        assert type(pose) is bc.Pose and pose.position.shape == (*lead, 3) and pose.rotation.shape == (*lead, 3, 3)
    with pytest.raises(TypeError):
        _, _ = system.pose(q, "b2")  # in which order? by name


@pytest.mark.parametrize("lead", [(), (4,)])
def test_they_are_put_together_and_turned_round(lead: tuple[int, ...]) -> None:
    machine = arm()
    system = bc.compile(machine)
    q, _ = system.random_state(np.random.default_rng(0), lead)
    body, tip = system.pose(q, "b2"), system.pose(q, "tip")
    found = body @ machine.frames[0].pose
    np.testing.assert_allclose(found.position, tip.position, atol=1e-14)
    np.testing.assert_allclose(found.rotation, tip.rotation, atol=1e-14)
    back = tip.inverse() @ tip
    np.testing.assert_allclose(back.position, np.zeros((*lead, 3)), atol=1e-14)
    np.testing.assert_allclose(back.rotation, np.broadcast_to(np.eye(3), (*lead, 3, 3)), atol=1e-14)


def test_the_pose_of_one_state_goes_into_a_description() -> None:
    q = np.array([0.3, -0.5, 0.7])
    pose = bc.compile(arm()).pose(q, "b2")
    closed = arm()
    closed.add_joint("weld", bc.Weld(), closed.ground, "b2", pose)
    assert closed.joint("weld").parent_pose == bc.Pose(pose.position, pose.rotation)
    assert np.abs(bc.compile(closed, cut=["weld"]).loop_error(q)).max() < 1e-14
    m = arm()
    m.add_frame("there", m.ground, pose)
    assert hash(m.frames[1].pose) == hash(bc.Pose(pose.position, pose.rotation))
    many = bc.compile(arm()).pose(np.stack([q, q]), "b2")
    with pytest.raises(bc.ModelError, match=r"frame 'many': needs one pose, got those of \(2,\) states"):
        m.add_frame("many", m.ground, many)


def test_equality_copies_and_text() -> None:
    system, q = bc.compile(arm()), np.array([0.3, -0.5, 0.7])
    one, two = system.pose(q, "b2"), system.pose(q, "b2")
    assert one == two and hash(one) == hash(two) and one != system.pose(q, "b1") and one != 3
    assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one)
    same = bc.Pose((1, 2, 3)), bc.Pose.of_arrays(np.array([1.0, 2, 3]), np.eye(3))
    assert same[0] == same[1] and hash(same[0]) == hash(same[1])
    assert repr(bc.Pose((1, 2, 3))) == "Pose((1.0, 2.0, 3.0))" and repr(one).startswith("Pose([")
