"""Forces that acted in a run: all of them, by part and by element, against the energy they give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from test_simulate_closing import CUT, TREE, follow, linkage


def power_balance(result: Any, power: np.ndarray) -> float:
    """How far the work of `power` (by Simpson's rule) is from the gain of kinetic and gravity's energy, of the gain."""
    from scipy.integrate import cumulative_simpson

    gain = (result.kinetic_energy + result.potential_energy).values
    work = cumulative_simpson(power, x=result.time.values, initial=0.0)
    return float(np.abs(gain - gain[0] - work).max() / np.abs(gain - gain[0]).max())


def test_a_servo_is_among_the_torques() -> None:
    m = bc.load("four_bar")
    m.add_servo("motor", "A", target_rate=10.0, damping=40.0)
    system = bc.compile(m, actuated=["A"])
    result = system.simulate(system.assemble(q={"A": 0.5}, u={"A": 8.0}), 0.1)
    servo = 40.0 * (10.0 - result.u.sel(speed="A.angle").values)
    assert result.torques("A").values[0] == pytest.approx([80.0], rel=1e-12)
    assert np.abs(result.torques("A").values[:, 0] - servo).max() < 1e-12 * 80.0
    assert np.abs(result.forces("motor").values - servo).max() < 1e-12 * 80.0
    assert not result.torques("A", of="given").values.any() and not result.torques("B").values.any()
    assert power_balance(result, (result.torques() * result.u.values).sum("speed").values) < 1e-5  # the rule's error


def everything() -> bc.Mechanism:
    """A double pendulum with an element of every kind on its joints."""
    m = bc.load("double_pendulum")
    m.add_joint_spring("spring", "shoulder", stiffness=3.0, damping=0.2, rest=0.1)
    m.add_friction("friction", "elbow", coulomb=0.3, viscous=0.1, speed=0.5)
    m.add_limit("limit", "shoulder", upper=0.4, stiffness=200.0, damping=1.0)
    m.add_joint_force("law", "elbow", lambda q, u: -0.5 * q * q * q)
    m.add_servo("servo", "elbow", target=lambda t: 0.5 * t, stiffness=5.0, damping=1.0, limit=2.0)
    m.add_joint_spring("belt", {"shoulder": 1.0, "elbow": -2.0}, stiffness=4.0)
    m.add_actuator("motor", "shoulder", 1.5)
    return m


def test_torques_are_the_sum_of_all_that_acts() -> None:
    system = bc.compile(everything())
    control = bc.Traced(lambda t, q, u: {"shoulder": 6.0 * bc.math.sin(20.0 * t), "elbow": -0.4})
    result = system.simulate(([0.3, -0.2], [2.0, 0.1]), 0.5, step=2.5e-4, output=5e-4, control=control)
    total = result.torques()
    assert power_balance(result, (total * result.u.values).sum("speed").values) < 1e-4  # limits have kinks
    q, u, t = result.q.values, result.u.values, result.time.values
    belt = -4.0 * (q[:, 0] - 2.0 * q[:, 1])
    by_hand = {"spring": -3.0 * (q[:, 0] - 0.1) - 0.2 * u[:, 0], "belt": belt, "law": -0.5 * q[:, 1]**3,
               "friction": -0.3 * np.tanh(u[:, 1] / 0.5) - 0.1 * u[:, 1],
               "servo": np.clip(5.0 * (0.5 * t - q[:, 1]) - u[:, 1], -2.0, 2.0),
               "motor": np.clip(6.0 * np.sin(20.0 * t), -1.5, 1.5)}
    for name, force in by_hand.items():
        assert np.abs(result.forces(name).values - force).max() < 1e-12, name
        assert result.forces(name).dims == ("time",) and result.forces(name).attrs["units"] == "N m"
    shoulder = by_hand["spring"] + by_hand["motor"] + result.forces("limit").values + belt
    elbow = by_hand["law"] + by_hand["friction"] + by_hand["servo"] - 2.0 * belt - 0.4
    assert np.abs(result.forces("limit").values).max() > 1.0 and np.abs(result.tau.values[:, 0]).max() > 5.0
    assert np.abs(total.values - np.stack([shoulder, elbow], axis=-1)).max() < 1e-11
    parts = result.torques(of="given") + result.torques(of="elements")
    assert np.abs(parts.values - total.values).max() < 1e-13
    with pytest.raises(bc.ModelError, match="all, given, elements"):
        result.torques(of="springs")
    with pytest.raises(bc.ModelError, match="'sevro'.*servo"):
        result.forces("sevro")


def test_forces_of_elements_between_bodies() -> None:
    m = bc.load("double_pendulum")
    m.add_spring("rope", m.ground, "lower", (0.5, 0.0, 0.0), (0.0, 0.1, 0.0), stiffness=30.0, damping=1.0, length=0.4)
    m.add_bushing("rubber", "upper", "lower", bc.Pose((0, 0, -1)), bc.Pose(), stiffness=(5.0, 6.0, 7.0))
    m.add_drag("air", "lower", coefficient=1.0, at=(0.0, 0.0, -0.5))
    system = bc.compile(m)
    result = system.simulate(([0.3, -0.2], [0.5, 0.1]), 0.2)
    place = system.pose(result.q.values, "lower")
    end = place.position + (place.rotation @ np.array([0.0, 0.1, 0.0]))
    length = np.linalg.norm(end - np.array([0.5, 0.0, 0.0]), axis=-1)
    rope = result.forces("rope")
    rate = np.gradient(length, result.time.values, edge_order=2)
    assert np.abs(rope.values + 30.0 * (length - 0.4) + rate).max() < 1e-4 and rope.attrs["units"] == "N"
    air = result.forces("air")
    middle = result.kinematics("lower", (0.0, 0.0, -0.5))["velocity"].values
    known = -0.6 * np.linalg.norm(middle, axis=-1, keepdims=True) * middle
    assert air.dims == ("time", "component") and np.abs(air.values[:, 3:] - known).max() < 1e-12
    assert result.forces("rubber").shape == air.shape
    whole = bc.analyze.element_wrenches(system, result.q.values, result.u.values)[:, 1]
    pull = -rope.values[:, None] * (end - np.array([0.5, 0.0, 0.0])) / length[:, None]
    assert np.abs(whole[:, 3:] - air.values[:, 3:] - result.forces("rubber").values[:, 3:] + pull).max() < 1e-12


def test_torques_of_batches_and_selections() -> None:
    system = bc.compile(everything())
    rng = np.random.default_rng(4)
    q, u = 0.3 * rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    many = system.simulate((q, u), 0.1, tau=[0.3, -0.1])
    for i in range(3):
        one = system.simulate((q[i], u[i]), 0.1, tau=[0.3, -0.1])
        assert np.abs(many.torques().values[:, i] - one.torques().values).max() < 1e-12
        assert np.abs(many.isel(sample=i).forces("belt").values - one.forces("belt").values).max() < 1e-12
    last = many.isel(time=-1)
    assert np.abs(last.torques("elbow").values - many.torques("elbow").values[-1]).max() < 1e-13


def test_what_enforces_a_motion_is_added() -> None:
    m = bc.load("double_pendulum")
    m.add_joint_spring("spring", "shoulder", stiffness=3.0)
    m.prescribe("shoulder", lambda t: 0.2 * bc.math.sin(3.0 * t))
    system = bc.compile(m)
    result = system.simulate(system.assemble(q={"elbow": 0.4}), 0.4, step=5e-4)
    whole = result.torques(drives=True)
    drive = system.drive_forces(result.q.values, result.u.values, t=result.time.values)[:, 0]
    spring = -3.0 * result.q.values[:, 0]
    assert np.abs(whole.values[:, 0] - drive - spring).max() < 1e-10
    assert np.abs(result.torques("shoulder").values[:, 0] - spring).max() < 1e-12
    assert power_balance(result, (whole * result.u.values).sum("speed").values) < 1e-6


def test_files_know_their_machine(tmp_path: Any) -> None:
    system = bc.compile(everything())
    result = system.simulate(([0.3, -0.2], [0.5, 0.1]), 0.05)
    result.to_netcdf(tmp_path / "run.nc")
    with bc.open_result(tmp_path / "run.nc") as back:
        assert np.abs(back.torques().values - result.torques().values).max() < 1e-12
        assert np.array_equal(back.attach(system).torques().values, result.torques().values)


# -- joints that close loops --------------------------------------------------------------------------
def sprung(cut: list[str]) -> tuple[bc.System, bc.State]:
    m = bc.load("four_bar")
    m.add_limit("stop", "D", lower=-2.5, upper=-2.0, stiffness=2.0, damping=0.02)
    return bc.compile(m, cut=cut), linkage(cut)[1]


def test_torques_and_reactions_of_closing_joints() -> None:
    runs = []
    for system, state in (sprung(CUT), sprung(TREE)):
        runs.append(system.simulate(state, 0.2, step=5e-4, output=1e-3, control=bc.Traced(follow)))
    one, two = runs
    for of in ("all", "given", "elements"):
        a, b = one.torques("D", of=of), two.torques("D", of=of)
        assert a.dims == b.dims == ("time", "speed") and a.speed.values.tolist() == ["D.angle"]
        assert np.abs(b.values).max() > 0.5 and np.abs(a.values - b.values).max() < 1e-6
    for joint in ("A", "B", "C", "D"):
        # which of its bodies a joint acts on depends on the tree, the sizes of moment and force do not
        a, b = (np.linalg.norm(run.reactions(joint).values.reshape(-1, 2, 3), axis=-1) for run in runs)
        assert np.abs(a - b).max() < 1e-5 * np.abs(b).max(), joint
    assert np.linalg.norm(one.reactions("D").values[:, :3], axis=-1).max() > 0.5  # its own drive and spring
    moved = [run.kinematics("coupler")["acceleration"].values for run in runs]
    assert np.abs(moved[0] - moved[1]).max() < 1e-5 * np.abs(moved[1]).max()
    assert power_balance(one, (one.torques() * one.u.values).sum("speed").values) < 1e-6


def test_driven_motion_is_drawn_like_a_run(tmp_path: Any) -> None:
    system, _ = linkage(CUT)
    driven = bc.analyze.drive(system, {"A": lambda t: 0.5 + 2.0 * t}, np.linspace(0.0, 1.0, 21))
    for what in ("tau", "q", "u.A", "udot", ["q", "tau.A"]):
        assert driven.plot(what, file=tmp_path / "p.png").axes
    assert np.abs(driven.torques("A").values - driven.tau.sel(speed=["A.angle"]).values).max() == 0.0
    moved = driven.kinematics("coupler")["acceleration"].values
    known = system.acceleration(driven.q.values, driven.u.values, driven.udot.values, "coupler")[..., 3:]
    assert np.abs(moved - known).max() < 1e-8 * np.abs(known).max()
    with pytest.raises(bc.StateError, match="no energies"):
        driven.energy()
