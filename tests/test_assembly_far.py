"""Assembly from orientations far from closed, of loops that share nothing, and of machines without a reference."""

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import AssemblyError, AssemblyWarning


def held_bodies(joint: bc.Joint, count: int = 1) -> bc.System:
    """Free bodies that joints hold at the ground, each by itself."""
    m = bc.Mechanism("held", gravity=(0, 0, -9.81))
    for i in range(count):
        body = m.add_body(f"body{i}", bc.Inertia.box(1.0, (0.1, 0.2, 0.3)))
        m.add_joint(f"free{i}", bc.Free(), m.ground, body)
        m.add_joint(f"held{i}", joint, m.ground, body, bc.Pose((1.0 * i, 0, 0)), bc.Pose((0, 0.1, 0)))
    pendulum = m.add_body("pendulum", bc.Inertia.rod(1.0, (0, 0, 0), (0, 0, -1)))
    m.add_joint("hinge", bc.Revolute("x"), m.ground, pendulum)
    return bc.compile(m, cut=[f"held{i}" for i in range(count)])


def turned(system: bc.System, degrees: float, rng: np.random.Generator) -> np.ndarray:
    """Coordinates with every body turned about some axis."""
    q, half = system.neutral(), np.radians(degrees) / 2.0
    for k in [i for i, name in enumerate(system.coordinate_names) if name.endswith(".qw")]:
        axis = rng.normal(size=3)
        q[k:k + 4] = [np.cos(half), *(np.sin(half) * axis / np.linalg.norm(axis))]
    return q


def test_welds_close_from_any_orientation() -> None:
    system, rng = held_bodies(bc.Weld(), 3), np.random.default_rng(0)
    for degrees in (120, 179):
        state = system.project(turned(system, degrees, rng), np.zeros(system.nu))
        assert abs(system.loop_error(state)).max() < 1e-13 and not system.plans.closer.flipped(state.q)


JOINTS = bc.Revolute("y"), bc.Prismatic("x"), bc.Cylindrical((1, 2, 2)), bc.Universal("x", "y"), bc.Planar("z")


@pytest.mark.parametrize("joint", [*JOINTS, bc.Screw("z", 0.02)], ids=lambda joint: type(joint).__name__)
def test_joints_close_from_any_orientation(joint: bc.Joint) -> None:
    system, rng = held_bodies(joint), np.random.default_rng(1)
    for degrees in (90, 120, 150, 179):
        state = system.project(turned(system, degrees, rng), np.zeros(system.nu))
        assert abs(system.loop_error(state)).max() < 1e-13 and not system.plans.closer.flipped(state.q)


def test_clusters_of_loops_that_share_nothing() -> None:
    system = held_bodies(bc.Revolute("y"), 2)
    assert [(int(rows.sum()), int(speeds.sum())) for rows, speeds in system.plans.loops.clusters] == [(5, 6), (5, 6)]
    assert bc.analyze.explain(system).clusters == (("held0",), ("held1",))


def without_reference() -> bc.System:
    """A four-bar for which no closed position of its own was found."""
    system = bc.compile(bc.load("four_bar"), backend="numpy")
    system.plans._found = AssemblyError("no reference")
    return system


def test_a_closed_state_serves_as_reference() -> None:
    plain = bc.compile(bc.load("four_bar"), backend="numpy")
    state = plain.assemble(q={"A": 0.5}, u={"A": 1.0})
    model, other = (bc.analyze.linearize(system, state) for system in (without_reference(), plain))
    assert np.allclose(model.A, other.A, rtol=1e-9, atol=1e-9)
    system = without_reference()
    assert system.forward_dynamics(np.zeros((0, 4)), np.zeros((0, 4))).shape == (0, 4)
    assert system.inverse_dynamics(*np.zeros((3, 0, 4))).shape == (0, 4)


def test_messages_name_the_joint_that_cannot_be_reached_and_its_place_in_the_batch() -> None:
    m = bc.Mechanism("two")
    for name, y, x, z in (("first", 0.0, 0.5, 0.0), ("second", 1.0, 0.05, 0.4975)):
        head, foot = np.array([x, y, z]), np.array([0, y, -1.0])
        middle = 0.5 * (foot + head)
        for part in ("", " tube", " rod"):
            m.add_body(name + part, bc.Inertia(1.0, middle, (0.1, 0.1, 0.1)))
        m.add_joint(f"{name} pin", bc.Revolute("y"), m.ground, name, at=(0, y, 0))
        m.add_joint(f"{name} foot", bc.Revolute("y"), m.ground, f"{name} tube", at=foot)
        along = (head - foot) / np.linalg.norm(head - foot)
        m.add_joint(name, bc.Prismatic(along), f"{name} tube", f"{name} rod", at=middle)
        m.add_joint(f"{name} head", bc.Revolute("y"), f"{name} rod", name, at=head)
    system = bc.compile(m, actuated=["first", "second"])
    with pytest.warns(AssemblyWarning, match=r"index \(1,\), joint 'second.*ends at second\.slide = 0\.00167.* 0\.1: "):
        state = system.assemble(q={"first": np.array([0.1, 0.3]), "second": np.array([0.001, 0.1])})
    assert np.isfinite(state.q[0]).all() and np.isnan(state.q[1]).all()
    with pytest.raises(AssemblyError, match=r"ends at second\.slide = 0\.00167.* 0\.1: "):
        system.assemble(q={"first": 0.3, "second": 0.1})
