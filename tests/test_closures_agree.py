"""Every joint type where it closes a loop: compiled conditions are those of NumPy, in closed and in open states."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.mechanism.joints import Joint
from bellcrank.mechanism.joints.joint import Reversed
from test_joints import JOINTS

EPS = float(np.finfo(float).eps)
#: the world and the machine are metres and radians across
SIZE = 10.0


def machine(joint: Joint, backwards: bool) -> bc.Mechanism:
    """Two bodies that move freely, and the joint between them."""
    m = bc.Mechanism("pair", gravity=(0.3, -0.2, -9.81))
    one = m.add_body("one", bc.Inertia.box(1.0, (0.3, 0.4, 0.5), (0.1, -0.1, 0.2)))
    two = m.add_body("two", bc.Inertia.box(2.0, (0.5, 0.2, 0.3), (-0.2, 0.1, 0.1)))
    m.add_joint("first", bc.Free(), m.ground, one)
    m.add_joint("second", bc.Free(), m.ground, two)
    poses = {"parent_pose": bc.Pose.rpy((0.1, 0.2, -0.3), 0.2, -0.4, 0.5),
             "child_pose": bc.Pose.rpy((-0.2, 0.3, 0.1), 0.6, 0.3, -0.2)}
    ends = (two, one) if backwards else (one, two)
    m.add_joint("closing", joint, *ends, **poses)
    return m


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("seen", ["plain", "reversed", "Reversed"])
@pytest.mark.parametrize("name", JOINTS)
def test_compiled_conditions_are_those_of_numpy(name: str, seen: str, backwards: bool) -> None:
    joint = {"plain": JOINTS[name], "reversed": JOINTS[name].reversed(), "Reversed": Reversed(JOINTS[name])}[seen]
    m = machine(joint, backwards)
    fast, plain = (bc.compile(m, "dense", backend, cut=["closing"]) for backend in ("llvm", "numpy"))
    rng = np.random.default_rng(3)
    closed = fast.assemble(q=fast.integrate(fast.neutral(), rng.normal(size=fast.nu) * 0.3), u=rng.normal(size=fast.nu))
    assert np.abs(fast.loop_error(closed.q)).max(initial=0.0) < 1e-12
    assert np.abs(fast.loop_rate_error(closed.q, closed.u)).max(initial=0.0) < 1e-12
    q = np.concatenate([closed.q[None], fast.integrate(closed.q, rng.normal(size=(6, fast.nu)))])
    u = np.concatenate([closed.u[None], rng.normal(size=(6, fast.nu))])
    udot = rng.normal(size=u.shape)
    limit = 200 * EPS * SIZE**2
    for found, expected in ((fast.loop_error(q), plain.loop_error(q)),
                            (fast.loop_rate_error(q, u), plain.loop_rate_error(q, u)),
                            (bc.analyze.loop_acceleration_error(fast, q, u, udot),
                             bc.analyze.loop_acceleration_error(plain, q, u, udot)),
                            (fast.loop_error(q), fast.plans.loops.rows(q).value),
                            (fast.loop_rate_error(q, u), fast.plans.loops.rate(q, u))):
        assert found.shape == expected.shape == (7, 6 - joint.nu)
        assert np.abs(found - expected).max(initial=0.0) < limit
