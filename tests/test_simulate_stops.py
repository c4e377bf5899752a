"""Rigid stops that hold, and joints that are locked and let go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc

G = 9.81
FALL = np.sqrt(2.0 / G)


def ball(mass: float = 2.0) -> bc.System:
    m = bc.Mechanism("ball", gravity=(0.0, 0.0, -G))
    m.add_joint("slide", bc.Prismatic("z"), m.ground, m.add_body("ball", bc.Inertia.sphere(mass, 0.1)))
    return bc.compile(m)


@pytest.mark.parametrize("stepper", ["rk4", "gauss", "dopri5", "dop853", "scipy/DOP853"])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.8])
def test_a_ball_comes_to_rest(stepper: str, restitution: float) -> None:
    result = ball().simulate(([1.0], [0.0]), 5.0, step=1e-3, stepper=stepper,
                             events=bc.joint_limit("slide", lower=0.0, restitution=restitution))
    assert result.attrs["status"] == "finished"
    e = restitution
    rest = FALL * (1.0 + 2.0 * e / (1.0 - e))  # the sum of all bounces
    q, u, t = (result[name].values.squeeze() for name in ("q", "u", "time"))
    assert q.min() > -1e-12
    assert (q[t > rest + 0.01] == 0.0).all() and (u[t > rest + 0.01] == 0.0).all()
    assert q[(t > 0.01) & (t < rest - 0.05)].max() > 0.0
    assert result.attrs["energy_lost_in_events"] == pytest.approx(2.0 * G, rel=1e-6)


@pytest.mark.parametrize("stepper", ["rk4", "dop853"])
@pytest.mark.parametrize("control", ["traced", "held", "sampled"])
def test_it_leaves_when_it_is_lifted(stepper: str, control: str) -> None:
    """A force that grows by 10 N/s: more than the weight of 19.62 N after 1.962 s."""
    ways: dict[str, Any] = {"traced": bc.Traced(lambda t, q, u: [10.0 * t]),
                            "held": bc.Traced(lambda t, q, u: [10.0 * t], 0.01),
                            "sampled": bc.Sampled(lambda t, q, u: [10.0 * t], 0.01)}
    result = ball().simulate(([0.0], [0.0]), 3.0, step=1e-3, stepper=stepper, control=ways[control],
                             events=bc.joint_limit("slide", lower=0.0, restitution=0.3))
    names, times = result["event_name"].values.tolist(), result["event_time"].values
    assert names == ["slide at 0: left"]
    left = 1.962 if control == "traced" else 1.97
    assert times[0] == pytest.approx(left, abs=1e-9)
    dt = 3.0 - times[0]
    if control == "traced":
        assert float(result["q"][-1, 0]) == pytest.approx(10.0 * dt**3 / 12.0, rel=1e-8)
    assert (result["q"].values[result["time"].values < left - 1e-6] == 0.0).all()


def test_both_ends_of_a_range() -> None:
    """A door that a torque swings to and fro rests at one end, leaves, and rests at the other."""
    m = bc.Mechanism("door", gravity=(0.0, 0.0, -G))
    m.add_joint("hinge", bc.Revolute("z"), m.ground, m.add_body("door", bc.Inertia.rod(3.0, (0, 0, 0), (1, 0, 0))))
    result = bc.compile(m).simulate(([0.3], [0.0]), 8.0, control=bc.Traced(lambda t, q, u: [4.0 * bc.math.cos(t)]),
                                    events=bc.joint_limit("hinge", 0.0, 1.0, restitution=0.2))
    q, t = result["q"].values[:, 0], result["time"].values
    assert result.attrs["status"] == "finished" and q.min() >= -1e-12 and q.max() <= 1.0 + 1e-12
    assert (q[(t > 1.5) & (t < 1.57)] == 1.0).all()  # until the torque turns at pi / 2
    assert (q[(t > 4.0) & (t < 4.71)] == 0.0).all()
    left = [x for x, name in zip(result["event_time"].values, result["event_name"].values, strict=True)
            if name.endswith("left")]
    assert left == pytest.approx([np.pi / 2, 1.5 * np.pi, 2.5 * np.pi], abs=1e-8)


@pytest.mark.parametrize("method", ["elimination", "recursive", "momenta"])
def test_a_linkage_rests_against_a_stop(method: str) -> None:
    system = bc.compile(bc.load("four_bar"), method)
    start = system.assemble(q={"A": 0.5})
    bound = float(start.q[0]) - 0.3
    result = system.simulate(start, 3.0, step=1e-3, events=bc.joint_limit("A", lower=bound, restitution=0.4))
    assert result.attrs["status"] == "finished"
    q, u = result["q"].values, result["u"].values
    assert q[:, 0].min() > bound - 1e-12 and abs(q[-1, 0] - bound) < 1e-12 and np.abs(u[-1]).max() < 1e-12
    assert result.attrs["largest_loop_error"] < 1e-12
    held = system.lock("A")
    assert held.dof == 0
    assert held.drive_forces(q[-1], u[-1])[0] > 0.0  # the stop pushes, up


def test_a_chain_whose_inner_joint_rests() -> None:
    """A double pendulum whose elbow has a stop: it locks and leaves again and again; energy is never gained."""
    system = bc.compile(bc.load("double_pendulum"))
    names = [r.name for r in system.model.mechanism.joints]
    result = system.simulate(([1.2, 0.1], [0.0, 0.0]), 6.0, stepper="dop853",
                             events=bc.joint_limit(names[1], lower=0.0, restitution=0.0))
    assert result.attrs["status"] == "finished" and result["q"].values[:, 1].min() > -1e-11
    events = result["event_name"].values.tolist()
    assert sum(name.endswith("left") for name in events) >= 1
    assert np.diff(result["energy"].values).max() < 1e-7


def test_brakes() -> None:
    """A pendulum is locked where it is, all its kinetic energy gone, and let go later."""
    pendulum = bc.compile(bc.load("pendulum"))
    result = pendulum.simulate(([1.0], [0.0]), 3.0, stepper="dop853", events=[
        bc.Event(lambda t, q, u: t - 0.5, "brake", action=bc.lock("hinge")),
        bc.Event(lambda t, q, u: t - 1.5, "free", action=bc.unlock("hinge"))])
    q, u, t = (result[name].values.squeeze() for name in ("q", "u", "time"))
    braked = (t > 0.5) & (t < 1.5)
    assert np.ptp(q[braked]) < 1e-13 and (u[braked] == 0.0).all() and abs(q[braked][0]) > 0.01
    assert np.abs(u[t > 1.6]).max() > 0.1
    kinetic = result["kinetic_energy"].values[np.abs(t - 0.5) < 1e-12].max()
    assert result.attrs["energy_lost_in_events"] == pytest.approx(kinetic, rel=1e-9)


@pytest.mark.parametrize("change", [bc.unlock("hinge"), bc.lock("knee"), bc.lock("hinge.angle2")])
def test_changes_that_make_no_sense(change: bc.Change) -> None:
    pendulum = bc.compile(bc.load("pendulum"))
    with pytest.warns(bc.SimulationWarning, match="hinge|knee"):
        result = pendulum.simulate(([1.0], [0.0]), 1.0, events=[bc.Event(lambda t, q, u: t - 0.5, action=change)])
    assert result.attrs["status"] == "failed" and float(result["time"][-1]) == pytest.approx(0.5)


def test_locked_joints_of_every_kind() -> None:
    """Locking is the same as an exact condition: its force does no work, the others feel it."""
    m = bc.Mechanism("mixed")
    last = m.ground
    kinds = bc.Free(), bc.Spherical(), bc.Universal("x", "y"), bc.Cylindrical("z"), bc.Revolute("y")
    for i, kind in enumerate(kinds):
        body = m.add_body(f"b{i}", bc.Inertia.box(1.0 + i, (0.2, 0.3, 0.4), (0.1, 0.05 * i, 0.2)))
        m.add_joint(f"j{i}", kind, last, body, at=(0.1 * i, 0.2 * i, 0.3 * i))
        last = body
    system = bc.compile(m, "recursive")
    rng = np.random.default_rng(3)
    q = system.integrate(system.neutral(), rng.normal(size=system.nu))
    for names in (("j1",), ("j0",), ("j2.angle2", "j4"), ("j3.slide", "j1")):
        held = system.lock(*names)
        entries = [i for name in names for i in system.model.configuration.speed_entries(name)]
        u, tau = rng.normal(size=system.nu), rng.normal(size=system.nu)
        u[entries] = 0.0
        free = [i for i in range(system.nu) if i not in entries]
        matrix, bias = system.mass_matrix(q), system.bias(q, u)
        expected = np.zeros(system.nu)
        expected[free] = np.linalg.solve(matrix[np.ix_(free, free)], (tau - bias)[free])
        assert np.abs(held.forward_dynamics(q, u, tau) - expected).max() < 1e-10 * (1.0 + np.abs(expected).max())
        assert held.dof == system.dof - len(entries)
    with pytest.raises(bc.ModelError, match="locked as a whole"):
        system.lock(system.coordinate_names[7])


def test_joints_that_nothing_resists_can_be_locked() -> None:
    m = bc.Mechanism("pointer")
    arm = m.add_body("arm", bc.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
    tip, end = m.add_body("tip"), m.add_body("end")
    m.add_joint("shoulder", bc.Revolute("y"), m.ground, arm, at=(0, 0, 0))
    m.add_joint("wrist", bc.Spherical(), arm, tip, at=(1, 0, 0))
    m.add_joint("slide", bc.Prismatic("x"), tip, end, at=(1, 0, 0))
    with pytest.raises(bc.ModelError, match="lock=.'slide'."):
        bc.compile(m)
    with pytest.raises(bc.ModelError, match="lock=.'wrist'."):
        bc.compile(m, lock=["slide"])
    for lock in ("massless", ["slide", "wrist"]):
        for method in ("recursive", "kane", "dense", "momenta"):
            system = bc.compile(m, method, lock=lock)
            q = system.neutral()
            udot = system.forward_dynamics(q, np.zeros(system.nu))
            assert udot[0] == pytest.approx(1.5 * G, rel=1e-4) and not udot[1:].any()
            assert system.dof == 1 and len(system.pose(q, "end").position) == 3
            assert system.reactions(q, np.zeros(system.nu)).keys() == {"shoulder", "wrist", "slide"}
    with pytest.raises(bc.ModelError, match="sequence of joint names"):
        bc.compile(m, lock="slide")
