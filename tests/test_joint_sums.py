"""Forces along sums of joint coordinates, and servos: the same as the joint forces they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import bellcrank as bc
import looped
from bellcrank.formulations import method_names
from bellcrank.system.tree_dynamics import tree_forces
from mechanisms import EPS, Floats, Tree, build, condition, examples, state, trees

SUM = {"one": 1.3, "two.angle2": -0.4, "three": 0.7, "four.y": 0.3, "five": 2.0, "four.angle": -0.6,
       "two.angle1": 0.2, "six.slide": 1.1}
T = 0.7


def law(x: Any, rate: Any) -> Any:
    return -3.0 * x**3 - 2.0 * rate + 1.0


def branches() -> bc.Mechanism:
    """Every joint with single coordinates, some towards their parents, some poses general."""
    m = bc.Mechanism("branches")
    for name in "abcdefg":
        m.add_body(name, bc.Inertia.box(1.5, (0.3, 0.2, 0.1), (0.15, 0.02, 0.01)))
    m.add_joint("one", bc.Revolute("z"), m.ground, "a", bc.Pose((0, 0, 0.3)))
    m.add_joint("two", bc.Universal((1, 0.2, 0), (0, 1, 0.3)), "b", "a", bc.Pose((0.3, 0, 0)),
                bc.Pose.rpy((0.1, 0.2, 0.1), 0.1, 0.2, 0.3))
    m.add_joint("three", bc.Prismatic((1, 1, 0)), "b", "c", bc.Pose((0.3, 0, 0)))
    m.add_joint("four", bc.Planar((1, 2, 3)), "d", "c", bc.Pose((0.3, 0, 0)))
    m.add_joint("five", bc.Screw("x", 0.1), "d", "e", bc.Pose((0.3, 0.3, 0)))
    m.add_joint("six", bc.Cylindrical((0, 1, 1)), "f", "b", bc.Pose((0.3, 0.3, 0)))
    m.add_joint("seven", bc.Spherical(), "f", "g", bc.Pose((0.1, 0.3, 0.2)))
    return m


def place(system: bc.System, key: str) -> int:
    return next(i for i, name in enumerate(system.speed_names) if name == key or name.rpartition(".")[0] == key)


def by_hand(system: bc.System, q: Floats, u: Floats) -> Floats:
    """The joint forces that the law on the sum and the servo on its own stand for."""
    at = {key: (next(i for i, n in enumerate(system.coordinate_names) if key in (n, n.rpartition(".")[0])),
                place(system, key)) for key in SUM}
    x, rate = (sum(f * array[:, at[key][k]] for key, f in SUM.items()) for k, array in enumerate((q, u)))
    tau = np.zeros_like(u)
    for key, factor in SUM.items():
        tau[:, at[key][1]] += factor * law(x, rate)
    i, j = at["one"]
    tau[:, j] += np.clip(30.0 * (np.sin(T) - q[:, i]) - 0.2 * u[:, j], -1.0, 2.0)
    return tau


@pytest.fixture(scope="module")
def case() -> tuple[bc.Mechanism, Floats, Floats, Floats, Floats]:
    plain = bc.compile(branches(), backend="numpy")
    q, u = plain.random_state(np.random.default_rng(0), 5)
    m = branches()
    m.add_joint_force("sum", SUM, law)
    m.add_servo("servo", "one", target=lambda t: bc.math.sin(t), stiffness=30.0, damping=0.2, limit=(-1.0, 2.0))
    tau = by_hand(plain, q, u)
    return m, q, u, tau, plain.forward_dynamics(q, u, tau)


@pytest.mark.parametrize("options", ({"backend": "numpy"}, {"schedule": "unrolled"}, {"schedule": "rolled"},
                                     {"backend": "numpy", "free_frames": False}), ids=str)
@pytest.mark.parametrize("method", method_names())
def test_sums_and_servos_are_joint_forces(case: Any, method: str, options: dict[str, Any]) -> None:
    m, q, u, tau, expected = case
    system = bc.compile(m, method, **options)
    found = system.forward_dynamics(q, u, t=T)
    assert np.abs(found - expected).max() < 1e-11 * np.abs(expected).max()
    needed = system.inverse_dynamics(q, u, expected, t=T)
    assert np.abs(needed).max() < 1e-9 * np.abs(tau).max()
    if not system.kernels.springs_outside:
        plain = bc.compile(branches(), backend="numpy")
        p = plain.momenta(q, u)
        speeds, rates = system.hamilton(q, p, t=T)
        wanted = plain.hamilton(q, p, tau)[1]
        assert np.abs(speeds - u).max() < 1e-10 * np.abs(u).max()
        assert np.abs(rates - wanted).max() < 1e-10 * np.abs(wanted).max()


def test_power_of_sums_and_servos_is_that_of_their_joint_forces(case: Any) -> None:
    m, q, u, tau, _ = case
    for system in (bc.compile(m), bc.compile(m, backend="numpy")):
        assert bc.analyze.dissipated_power(system, q, u, t=T) == pytest.approx(-(tau * u).sum(-1))
        assert bc.analyze.stored_energy(system, q, t=T).tolist() == [0.0] * 5


@pytest.mark.reaches(0.6)  # some trees have no free single coordinate
@examples(40)
@given(trees(max_bodies=8), st.sampled_from(("numpy", "unrolled", "rolled")))
def test_sums_of_random_coordinates(tree: Tree, how: str) -> None:
    """A push along all single coordinates, prescribed ones too, and a spring along the free ones, given as tau."""
    m = build(tree)
    plain = bc.compile(m, "dense", "numpy", free_frames=False)
    s = state(m, tree.seed, (3,))
    if condition(plain, s) > 1e8:
        reject()
    rng = np.random.default_rng(tree.seed)
    joints = [j for j in m.joints if 0 < j.joint.nq == j.joint.nu]
    keys = {f"{j.name}.{c}" if j.joint.nq > 1 else j.name: (j.name, c, j.prescribed is None)
            for j in joints for c in j.joint.coordinate_names()}
    if not any(free for _, _, free in keys.values()):
        reject()
    push, spring = ({key: float(rng.uniform(0.5, 2.0)) for key, at in keys.items() if at[2] or every}
                    for every in (True, False))
    at = {key: (plain.coordinate_names.index(f"{joint}.{c}"), plain.speed_names.index(f"{joint}.{c}"))
          for key, (joint, c, _) in keys.items()}
    stretch, rate = (sum(f * array[..., at[key][k]] for key, f in spring.items()) for k, array in enumerate((s.q, s.u)))
    tau = s.tau.copy()
    for key, f in push.items():
        tau[..., at[key][1]] += 2.0 * f
    for key, f in spring.items():
        tau[..., at[key][1]] -= f * (4.0 * stretch + 0.3 * rate)
    wanted = plain.forward_dynamics(s.q, s.u, tau, t=s.t)
    m.add_servo("push", push, offset=2.0)
    m.add_joint_spring("spring", spring, stiffness=4.0, damping=0.3)
    system = bc.compile(m, backend="numpy") if how == "numpy" else bc.compile(m, schedule=how)
    found = system.forward_dynamics(s.q, s.u, s.tau, t=s.t)
    scale = (1.0 + np.abs(wanted).max() + np.abs(tau).max()) * condition(plain, s) * len(tree.parts)
    assert np.abs(found - wanted).max() < 1e4 * EPS * scale


def linkage(**options: Any) -> bc.System:
    m = bc.load("five_bar")
    names = [j.name for j in m.joints]
    m.add_servo("grip", {names[0]: 1.0, names[-1]: -0.5}, target=lambda t: 0.4 * bc.math.sin(3.0 * t), stiffness=40.0,
                damping=1.0)
    m.add_joint_spring("cable", {names[1]: 1.0, names[2]: 1.0}, stiffness=5.0, damping=0.1)
    return bc.compile(m, **options)


@pytest.mark.parametrize("method", ("elimination", "dense", "recursive", "kane", "operator", "momenta"))
def test_sums_in_loops(method: str) -> None:
    """Against the same joint forces given as tau."""
    system = linkage(method=method)
    plain = bc.compile(bc.load("five_bar"), "dense", "numpy", cut=system.model.tree.cut_names)
    q, u, _ = looped.states(plain, count=4)
    bare = linkage(method="dense", backend="numpy")
    tau = tree_forces(plain.plans, q, u, 0.0 * u, None, 0.3) - tree_forces(bare.plans, q, u, 0.0 * u, None, 0.3)
    assert np.abs(tau).max() > 1.0
    wanted = plain.forward_dynamics(q, u, tau)
    assert np.abs(system.forward_dynamics(q, u, t=0.3) - wanted).max() < 1e-9 * np.abs(wanted).max()


@pytest.mark.parametrize("stepper", ("rk8", "radau", "gauss", "dop853"))
def test_sums_in_simulations(stepper: str) -> None:
    reference = linkage()
    state = reference.assemble()
    options: dict[str, Any] = {} if stepper == "dop853" else {"step": 2e-3}
    wanted = reference.simulate(state, 0.5, stepper="rk8", step=5e-4, output=0.5)
    found = linkage().simulate(state, 0.5, stepper=stepper, output=0.5, **options)
    assert float(np.abs(wanted.q[-1] - state.q).max()) > 0.05
    assert float(np.abs(found.q[-1] - wanted.q[-1]).max()) < 1e-6


@pytest.mark.parametrize("schedule", ("rolled", "unrolled"))
def test_sums_in_simulations_of_both_schedules(schedule: str) -> None:
    m = bc.load("chain", n=6)
    m.add_servo("cable", {f"joint{i}": 0.5 + 0.1 * i for i in range(6)}, target=lambda t: bc.math.sin(5.0 * t),
                stiffness=30.0, damping=2.0)
    start = np.linspace(0.1, 0.6, 6), np.zeros(6)
    wanted = bc.compile(m, "dense", "numpy").simulate(start, 0.2, step=2e-3, stepper="rk8", output=0.2)
    found = bc.compile(m, schedule=schedule).simulate(start, 0.2, step=2e-3, stepper="rk8", output=0.2)
    assert float(np.abs(found.q[-1] - wanted.q[-1]).max()) < 1e-10


def test_joints_of_sums_are_not_cut() -> None:
    m = bc.load("four_bar")
    usual = bc.compile(m).model.tree.cut_names
    m.add_joint_spring("cable", {usual[0]: 1.0, "A": 1.0}, stiffness=1.0)
    assert bc.compile(m).model.tree.cut_names != usual
    assert usual[0] in bc.compile(m, cut=usual).joint_names


def test_a_factor_of_zero_has_no_part() -> None:
    """As if it had not been named, also where its joint is cut to close a loop."""
    systems = []
    for more in ({}, {"five": 0.0, "four.x": 0.0}):
        m = branches()
        m.add_joint_spring("cable", {"one": 1.3, "three": 0.7, **more}, stiffness=30.0, damping=2.0, rest=0.1)
        systems.append(bc.compile(m))
    q, u = systems[0].random_state(np.random.default_rng(0))
    assert (systems[0].forward_dynamics(q, u) == systems[1].forward_dynamics(q, u)).all()
    assert bc.analyze.stored_energy(systems[0], q) == bc.analyze.stored_energy(systems[1], q)
    m = bc.load("four_bar")
    m.add_joint_spring("cable", {"A": 1.0, "D": 0.0}, stiffness=30.0)
    assert bc.compile(m, cut=["D"]).loops == ("D",)
    with pytest.raises(bc.ModelError, match="no joint called 'Z'"):
        m.add_joint_spring("other", {"A": 1.0, "Z": 0.0}, stiffness=30.0)
