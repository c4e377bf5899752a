"""Everything that computes the same thing must agree, to rounding, on random mechanisms.

The reference is the plainest way: NumPy, link frames at the joints, recursive method. Against it stand chosen
link frames, compiled code in both schedules (one state and SIMD lanes), and the dense method.

Tolerances are ``C * bodies * eps * scale``, where the scale is the largest intermediate that can matter (lengths,
accelerations, forces), and for forward dynamics also the condition number of the mass matrix.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st

import bellcrank as bc
from mechanisms import AXIAL, EPS, Floats, Part, State, Tree, build, condition, examples, naive_poses, state, trees

#: the largest ratio in 400 random examples was 2.3; chosen frames may lie 20 link lengths away, so there is room
C = 100.0
DYNAMICS = ["forward", "inverse", "mass", "bias"]
REST = ["reactions", "totals", "pose", "velocity", "acceleration", "jacobian", "jacobian rate"]
Calls = dict[str, Callable[[bc.System], Floats]]


def calls(s: State, wrenches: Floats | None, places: list[str]) -> Calls:
    """What is compared: name -> call."""
    q, u, t = s.q, s.u, s.t
    point = (0.1, -0.2, 0.3)
    found: Calls = {
        "forward": lambda y: y.forward_dynamics(q, u, s.tau, wrenches=wrenches, t=t),
        "inverse": lambda y: y.inverse_dynamics(q, u, s.udot, wrenches=wrenches, t=t),
        "mass": lambda y: y.mass_matrix(q, t=t),
        "bias": lambda y: y.bias(q, u, wrenches=wrenches, t=t),
        "reactions": lambda y: np.concatenate(
            list(y.reactions(q, u, udot=s.udot, wrenches=wrenches, t=t).values()), axis=-1),
        "totals": lambda y: np.concatenate(
            [y.momentum(q, u, t=t), y.center_of_mass(q, t=t), y.kinetic_energy(q, u, t=t)[..., None],
             y.potential_energy(q, t=t)[..., None]], axis=-1),
    }
    for place in places:
        found |= {
            f"pose of {place}": lambda y, p=place: _flat(y.pose(q, p, t=t)),
            f"velocity of {place}": lambda y, p=place: y.velocity(q, u, p, point, t=t),
            f"acceleration of {place}": lambda y, p=place: y.acceleration(q, u, s.udot, p, point, t=t),
            f"jacobian of {place}": lambda y, p=place: y.jacobian(q, p, point, t=t),
            f"jacobian rate of {place}": lambda y, p=place: y.jacobian_rate(q, u, p, point, t=t),
        }
    return found


def _flat(pose: bc.Pose) -> Floats:
    return np.concatenate([pose.rotation.reshape(*pose.rotation.shape[:-2], 9), pose.position], axis=-1)


class Scales:
    """Sizes of what may cancel on the way to a result."""

    def __init__(self, system: bc.System, s: State, wrenches: Floats | None) -> None:
        q, u, t = s.q, s.u, s.t
        names = system.body_names
        length = 1.0 + max(np.abs(system.pose(q, b, t=t).position).max() for b in names)
        speed = 1.0 + max(np.abs(system.velocity(q, u, b, t=t)).max() for b in names)
        turning = 1.0 + max(np.abs(system.velocity(q, u, b, t=t)[..., :3]).max() for b in names)
        udot = system.forward_dynamics(q, u, s.tau, wrenches=wrenches, t=t)
        rates = length * (turning + speed) ** 2 + 50.0  # centripetal and gravity
        self.forces = system.model.mass * length * (rates + np.abs(s.udot).max() * length) + (
            0.0 if wrenches is None else np.abs(wrenches).max() * length) + 20.0 * length
        self.condition = condition(system, s)
        matrix = np.abs(system.mass_matrix(q, t=t)).max()
        self.sizes = {
            "forward": self.condition * (np.abs(udot).max() + self.forces / matrix),
            "inverse": self.forces, "bias": self.forces, "reactions": self.forces,
            "mass": system.model.mass * length**2, "totals": system.model.mass * (length + speed) ** 2 * 10.0,
            "pose": length, "velocity": speed * length, "acceleration": rates + np.abs(s.udot).max() * length,
            "jacobian": length, "jacobian rate": length * (speed + turning),
        }

    def __getitem__(self, name: str) -> float:
        return self.sizes[name]


def compare(tree: Tree, systems: Callable[[bc.Mechanism], dict[str, bc.System]], size: tuple[int, ...] = (),
            given_wrenches: bool = False, only: list[str] | None = None) -> None:
    m = build(tree)
    reference = bc.compile(m, backend="numpy", free_frames=False)
    s = state(m, tree.seed, size)
    wrenches = np.random.default_rng(tree.seed).normal(size=(*size, len(m.bodies), 6)) if given_wrenches else None
    scales = Scales(reference, s, wrenches)
    if scales.condition > 1e8:
        reject()
    others = systems(m)
    for name, call in calls(s, wrenches, ["b0" if tree.seed % 3 == 0 else "tool"]).items():
        kind = name.split(" of ")[0]
        if only is not None and kind not in only:
            continue
        wanted = call(reference)
        allowed = C * len(tree.parts) * EPS * scales[kind]
        for label, system in others.items():
            if "dense" in label and kind not in DYNAMICS:
                continue  # the rest does not depend on the method
            got = call(system)
            assert got.shape == wanted.shape, (label, name)
            difference = np.abs(got - wanted).max(initial=0.0)
            assert difference <= allowed, f"{name} by {label}: {difference:.3g} > {allowed:.3g}"


def numpy_systems(m: bc.Mechanism) -> dict[str, bc.System]:
    return {"chosen frames": bc.compile(m, backend="numpy"), "dense": bc.compile(m, "dense", "numpy")}


def llvm_systems(m: bc.Mechanism) -> dict[str, bc.System]:
    return {"unrolled": bc.compile(m, schedule="unrolled"), "rolled": bc.compile(m, schedule="rolled"),
            "rolled, frames at joints": bc.compile(m, schedule="rolled", free_frames=False)}


NEARLY = (*(Part("Revolute", i - 1, "nearly parallel", 10.0 ** -(1 + i)) for i in range(8)),
          Part("Spherical", 7, "nearly parallel", 1e-8))
WELDED = (Part("Weld", -1), Part("Revolute", 0), Part("Prismatic", 1), Part("Weld", 1, wrench="body"),
          Part("Weld", 3), Part("Revolute", 3, backwards=True), Part("Weld", 2, backwards=True))


@pytest.mark.reaches(0.9)
@examples(150)
@given(trees(), st.sampled_from([(), (3,), (2, 2)]), st.booleans())
@example(Tree(NEARLY, 1), (), False)
@example(Tree(WELDED, 2), (), True)
def test_numpy_frames_and_methods(tree: Tree, size: tuple[int, ...], given_wrenches: bool) -> None:
    compare(tree, numpy_systems, size, given_wrenches)


@examples(60)
@given(trees(max_bodies=9), st.booleans())
@example(Tree(NEARLY, 1), True)
@example(Tree(NEARLY, 1), False)
def test_poses_by_the_definitions(tree: Tree, free_frames: bool) -> None:
    """Against kinematics written out in `mechanisms.naive_poses`, which share nothing with the library."""
    m = build(tree)
    s = state(m, tree.seed)
    system = bc.compile(m, backend="numpy", free_frames=free_frames)
    wanted = naive_poses(m, s.q, s.t)
    length = 1.0 + max(np.abs(p).max() for _, p in wanted.values())
    for name, (rotation, position) in wanted.items():
        got = system.pose(s.q, name, t=s.t)
        assert np.abs(got.rotation - rotation).max() < C * len(tree.parts) * EPS, name
        assert np.abs(got.position - position).max() < C * len(tree.parts) * EPS * length, name


@pytest.mark.reaches(0.9)
@examples(40)
@given(trees(max_bodies=10, driven=False, wrenches=False, joints=AXIAL))
def test_chosen_frames_of_axial_joints(tree: Tree) -> None:
    """Joints with an axis have freely chosen frames: common normals of crossing, parallel and equal axes."""
    compare(tree, numpy_systems)


@pytest.mark.reaches(0.9)
@examples(14)
@given(trees(max_bodies=6), st.booleans(), st.sampled_from([(), (5,)]), st.sampled_from(DYNAMICS))
@example(Tree(WELDED, 2), True, (), "forward")
def test_compiled_dynamics(tree: Tree, given_wrenches: bool, size: tuple[int, ...], function: str) -> None:
    compare(tree, llvm_systems, size, given_wrenches, ["forward", function])


@pytest.mark.reaches(0.9)
@examples(12)
@given(trees(max_bodies=6), st.booleans(), st.sampled_from([(), (5,)]), st.sampled_from(REST))
def test_compiled_kinematics_and_sums(tree: Tree, given_wrenches: bool, size: tuple[int, ...], function: str) -> None:
    compare(tree, llvm_systems, size, given_wrenches, [function])


@pytest.mark.reaches(0.9)
@examples(5)
@given(trees(max_bodies=4))
def test_compiled_dense_method(tree: Tree) -> None:
    compare(tree, lambda m: {"dense": bc.compile(m, "dense", schedule="unrolled")}, (), True, ["forward", "inverse"])


@pytest.mark.parametrize("second", ["Revolute", "Prismatic", "Screw"])
@pytest.mark.parametrize("first", ["Revolute", "Prismatic", "Screw"])
def test_massless_bodies_between_joints(first: str, second: str) -> None:
    """A massless body is allowed where what it carries resists the motion."""
    parts = (Part("Revolute", -1), Part(first, 0, inertia="massless"), Part(second, 1), Part(first, 0, "parallel",
             backwards=True, inertia="massless"), Part(second, 3, backwards=True))
    for seed in range(4):
        compare(Tree(parts, seed), numpy_systems)


@pytest.mark.parametrize("joint", ["Revolute", "Prismatic", "Screw", "Cylindrical", "Universal", "Planar",
                                   "Spherical", "Free"])
@pytest.mark.parametrize("backwards", [False, True], ids=["", "backwards"])
def test_every_joint_compiled(joint: str, backwards: bool) -> None:
    """Each type at the base, in the middle and at the tip, rolled and unrolled."""
    parts = (Part(joint, -1, backwards=backwards), Part(joint, 0, "general", backwards=backwards),
             Part(joint, 0, "aligned", backwards=backwards))
    compare(Tree(parts, 5), llvm_systems, only=["forward", "inverse"])
