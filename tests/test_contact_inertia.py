"""The inertia that rigid contacts feel comes from the operator recursion, (3.7) of Rodriguez, Jain and Kreutz."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc
import whole_states
from bellcrank.simulate.rigid_equations import ContactEquations
from bellcrank.simulate.rigid_run import RigidRun
from bellcrank.simulate.steppers import STEPPERS
from bellcrank.system.loop_errors import loop_rows

Floats = npt.NDArray[np.float64]


def arm() -> bc.Mechanism:
    """Three links, one of them driven by a law of time, one with a rotor, over the floor."""
    m = bc.Mechanism("arm")
    last = m.ground
    for i, joint in enumerate([bc.Spherical(), bc.Revolute("y"), bc.Revolute("x")]):
        body = m.add_body(f"link {i}", bc.Inertia(1.0 + i, (0.1, 0, -0.2), (0.02, 0.03, 0.01)))
        m.add_joint(f"joint {i}", joint, last, body, bc.Pose((0, 0, 1.2 if i == 0 else -0.4)))
        last = body
    m.prescribe("joint 1", lambda t: 0.3 + 0.2 * t)
    m.add_armature("rotor", "joint 2", inertia=0.05)
    m.add_shape(last, bc.Sphere(0.1), bc.Pose((0, 0, -0.3)), role="collision", name="tip")
    return m


def linkage() -> bc.Mechanism:
    m = bc.load("four_bar")
    m.add_shape("coupler", bc.Sphere(0.05), role="collision", name="tip")
    return m


def step_of(system: bc.System, state: Any) -> tuple[dict[str, Floats], int]:
    """What a step remembers, and how many places were near."""
    y = np.concatenate([state[0], state[1]])[None]
    equations = ContactEquations(None, system, (), np.zeros((1, system.nu)), None, (), separate=True)
    run = RigidRun(equations, STEPPERS["moreau"], y, 0.0, 1e-3, 1, 1)
    run.advance(1, 1)
    memory = next(queue for queue in run.idle.values() if not queue.empty()).get().memory
    return memory.buffers, run.most


@pytest.mark.parametrize(("make", "method"), [(arm, "recursive"), (arm, "kane"), (linkage, "elimination"),
                                              (linkage, "recursive")])
def test_contacts_feel_the_inertia_of_the_operators(make: Any, method: str) -> None:
    m = make()
    gravity_up = [[1, 0, 0], [0, 0, 1], [0, -1, 0]] if make is linkage else np.eye(3)
    probe = bc.compile(m, backend="numpy")
    state = probe.assemble(q={"A": 0.9}) if make is linkage else probe.assemble()
    body = "coupler" if make is linkage else "link 2"
    low = (probe.pose(state.q, body) @ bc.Pose((0.0, 0.0, 0.0 if make is linkage else -0.3))).position
    height = low[1] - 0.05 if make is linkage else low[2] - 0.1
    m.add_shape(m.ground, bc.Plane(), bc.Pose((0, height, 0) if make is linkage else (0, 0, height), gravity_up),
                role="collision", name="floor")
    m.add_contact("touch", "floor", "tip", friction=0.5)
    system = bc.compile(m, method=method)
    found, most = step_of(system, (state.q, state.u))
    nu = system.nu
    rows, pushing, response = (found[name].reshape(nu, -1)[:, :3].T for name in ("rows", "pushing", "response"))
    q, t = found["middle"][:system.nq], 0.5e-3
    inverse = bc.analyze.operators(system, q, t=t).mass_inverse
    answers = np.stack([inverse @ row for row in pushing])  # [I - H psi K]* D^-1 [I - H psi K], (3.7)
    if system.loops:  # with what the loops enforce: A M^-1 (J^T p + A^T f) = 0
        a = system.plans.loops.dense(system.plans.loops.linearized(q, t)[1])
        enforced = np.stack([inverse @ row for row in a])
        answers = answers - answers @ a.T @ np.linalg.pinv(a @ enforced.T, rcond=1e-9) @ enforced
        if system.model.tree.loop_joints:  # loop joints follow
            assert not rows[:, system.model.tree.loop_speeds()].any()
            still = whole_states.whole_u(system, q, np.zeros(nu - 1), t)
            answers = whole_states.whole_u(system, q, whole_states.of_tree(system, answers), t) - still
    assert np.abs(rows).max() > 0.1
    some = whole_states.carrying(system, True)
    assert np.abs(response[:, some] - answers[:, some]).max() < 1e-11 * np.abs(answers).max()
    following = response @ loop_rows(system.plans, q).T if system.loops else 0.0 * response  # loop joints move along
    rest = np.delete(np.arange(nu), some)
    assert np.abs(response[:, rest] - following[:, rest]).max(initial=0.0) < 1e-11 * np.abs(answers).max()
    g = found["g"].reshape(3 * most, -1)[:3, :3]
    assert np.abs(g - rows @ answers.T).max() < 1e-11 * np.abs(g).max()


def test_responses_are_those_of_the_mass_matrix() -> None:
    """(3.7) on arrays and compiled; prescribed speeds do not answer."""
    m = arm()
    system, reference = bc.compile(m), bc.compile(m, backend="numpy")
    q, _ = system.random_state(np.random.default_rng(0))
    forces = np.random.default_rng(1).standard_normal((7, system.nu))
    free = ~system.model.prescribed_mask()
    expected = np.zeros((7, system.nu))
    expected[:, free] = np.linalg.solve(system.mass_matrix(q)[np.ix_(free, free)], forces[:, free].T).T
    for machine in (system, reference):
        found = machine.kernels.run("joint_responses", {"q": q, "column": forces})
        assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()
