"""Driven motion, coupler curves and workspaces against tables, closed forms and geometry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import math
from bellcrank.analyze import driven
from whole_states import whole_q

DATA = Path(__file__).parent / "data" / "loops"


def cycloid(t: Any) -> Any:
    """The crank of Saha & Schiehlen's four-bar: 30 to 90 degrees in 20 s."""
    return np.pi / 6 + np.pi / 3 / 20.0 * (t - 20.0 / (2 * np.pi) * math.sin(2 * np.pi * t / 20.0))


@pytest.mark.parametrize("branch", ("open_elbow_up", "crossed_elbow_down"))
def test_four_bar_against_the_table(branch: str) -> None:
    rows = json.loads((DATA / "four_bar.json").read_text(encoding="utf-8"))["branches"][branch]["driven"]
    system = bc.compile(bc.load("four_bar"), actuated=["A"])
    run = bc.analyze.drive(system, {"A": cycloid}, [r["t"] for r in rows], guess=whole_q(system, rows[0]["theta"]))
    for key, name in (("theta", "q"), ("thetadot", "u"), ("thetaddot", "udot")):
        expected = np.array([r[key] for r in rows])
        assert np.abs(run[name].values[:, :3] - expected).max() < 1e-12 * max(1.0, np.abs(expected).max())
    tau = np.array([r["tau1"] for r in rows])
    assert np.abs(run.tau.values[:, 0] - tau).max() < 1e-12 * np.abs(tau).max()
    assert not run.tau.values[:, 1:].any()
    assert run.time.attrs["units"] == "s" and run.speed_units.values.tolist() == ["rad/s"] * 4
    assert np.abs(run.q.values.sum(1)).max() < 1e-12 and np.abs(run.udot.values.sum(1)).max() < 1e-12  # D follows


def test_five_bar_against_the_table() -> None:
    rows = json.loads((DATA / "five_bar.json").read_text(encoding="utf-8"))["branches"]["elbow_up"]["driven"]
    system = bc.compile(bc.load("five_bar"), actuated=["leg1.1", "leg2.1"])
    state = whole_q(system, [*rows[0]["theta_leg1"], *rows[0]["theta_leg2"]])
    t = np.array([r["t"] for r in rows])
    size = t[-1]
    ends = [(rows[0][f"theta_leg{k}"][0], rows[-1][f"theta_leg{k}"][0]) for k in (1, 2)]

    def law(a: float, b: float) -> Any:
        return lambda t: a + (b - a) / size * (t - size / (2 * np.pi) * math.sin(2 * np.pi * t / size))

    run = bc.analyze.drive(system, {"leg1.1": law(*ends[0]), "leg2.1": law(*ends[1])}, t, guess=state)
    assert np.abs(run.q.values[:, :4] - [[*r["theta_leg1"], *r["theta_leg2"]] for r in rows]).max() < 1e-11
    assert np.abs(run.tau.values[:, [0, 2]] - [r["tau"] for r in rows]).max() < 1e-10


def test_drive_is_consistent_and_the_forces_drive_it() -> None:
    system = bc.compile(bc.load("quarter_car"))
    times = np.linspace(0.0, 1.0, 21)
    run = bc.analyze.drive(system, {"arm": lambda t: 0.1 * math.sin(5.0 * t)}, times, reactions=True)
    q, u, udot, tau = (run[k].values for k in ("q", "u", "udot", "tau"))
    assert np.abs(system.loop_error(q)).max() < 1e-13
    assert np.abs(system.loop_rate_error(q, u)).max() < 1e-12
    found = system.forward_dynamics(q, u, tau)
    assert np.abs(found - udot).max() < 1e-9 * np.abs(udot).max()
    expected = system.reactions(q[3], u[3], tau[3])
    for name, wrench in expected.items():
        assert np.abs(run.reaction.sel(joint=name).values[3] - wrench).max() < 1e-6
    # the functions' own derivatives
    assert np.abs(u[:, 0] - 0.5 * np.cos(5 * times)).max() < 1e-14


def test_trees_ball_joints_and_prescribed_joints() -> None:
    m = bc.Mechanism("arm")
    first = m.add_body("first", bc.Inertia.box(1.0, (0.1, 0.2, 0.3), (0.1, 0, 0)))
    second = m.add_body("second", bc.Inertia.box(1.0, (0.1, 0.2, 0.3), (0, 0.1, 0)))
    third = m.add_body("third", bc.Inertia.box(1.0, (0.1, 0.2, 0.3), (0, 0, 0.1)))
    m.add_joint("ball", bc.Spherical(), m.ground, first)
    m.add_joint("cross", bc.Universal("x", "y"), first, second, parent_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint("turn", bc.Revolute("z"), second, third, parent_pose=bc.Pose((0.3, 0, 0)))
    m.prescribe("turn", lambda t: 0.2 * t * t)
    system = bc.compile(m)
    t = np.linspace(0.0, 1.0, 5)
    run = bc.analyze.drive(system, {"ball": lambda t: (math.cos(t), math.sin(t), 0.0, 0.0), "cross.angle2": 0.3,
                        "cross.angle1": lambda t: 0.1 * t}, t)
    assert np.abs(run.u.values - np.stack([2 + 0 * t, 0 * t, 0 * t, 0.1 + 0 * t, 0 * t, 0.4 * t], 1)).max() < 1e-14
    assert np.abs(run.q.values[:, -1] - 0.2 * t * t).max() < 1e-15
    accelerations = system.forward_dynamics(run.q.values, run.u.values, run.tau.values, t=t)
    assert np.abs(accelerations - run.udot.values).max() < 1e-10
    pair = bc.analyze.drive(system, {"ball": lambda t: (math.cos(t), math.sin(t), 0.0, 0.0),
                         "cross": lambda t: (0.1 * t, 0.3)}, t)
    assert np.abs(pair.tau.values - run.tau.values).max() < 1e-12


def test_drive_errors_name_joint_and_time() -> None:
    system = bc.compile(bc.load("four_bar"))
    start = system.assemble(q={"A": 0.5})
    with pytest.raises(bc.AssemblyError, match=r"t = 1\.4155867\d.* there C and .* joint 'A'"):
        bc.analyze.drive(system, {"C": lambda t: -2.0 + 0.5 * t}, np.linspace(0.0, 5.0, 51), guess=start)
    with pytest.raises(bc.ModelError, match="1 degree of freedom"):
        bc.analyze.drive(system, {}, [0.0, 1.0])
    with pytest.raises(bc.ModelError, match="bellcrank.math"):
        bc.analyze.drive(system, {"A": lambda t: np.sin(t)}, [0.0, 1.0])
    with pytest.raises(bc.StateError, match="times"):
        bc.analyze.drive(system, {"A": 0.5}, [])
    with pytest.raises(bc.StateError, match="not finite"):
        bc.analyze.drive(system, {"A": lambda t: float("nan")}, [0.0])
    with pytest.raises(bc.BellcrankError, match="crank"):
        bc.analyze.drive(system, {"crank": 0.5}, [0.0])


def test_coupler_curve_of_a_crank_closes() -> None:
    system = bc.compile(bc.load("four_bar"))
    curve = bc.analyze.coupler_curve(system, "A", "coupler", (0.5, 0.2, 0.0), guess={"A": 0.5}, samples=181)
    assert curve.closed and curve.limits == (None, None) and len(curve.values) == 181
    assert np.abs(curve.points[0] - curve.points[-1]).max() < 1e-12
    assert np.abs(system.loop_error(curve.q)).max() < 1e-13
    # by geometry: circles about the crank pin and the rocker's ground
    a = curve.values
    pin = 0.3 * np.stack([np.cos(a), np.sin(a)], 1)
    far = np.array([1.0, 0.0]) - pin
    r = np.linalg.norm(far, axis=1)
    beta = np.arctan2(far[:, 1], far[:, 0])
    gamma = np.arccos((1.0 + r * r - 0.36) / (2 * r))
    sides = [beta + s * gamma for s in (1.0, -1.0)]
    candidates = [pin + np.stack([0.5 * np.cos(x) - 0.2 * np.sin(x), 0.5 * np.sin(x) + 0.2 * np.cos(x)], 1)
                  for x in sides]
    errors = [np.abs(c - curve.points[:, :2]).max() for c in candidates]
    assert min(errors) < 1e-13
    assert curve.length > 1.0


def test_coupler_curve_finds_the_limits_of_a_rocker() -> None:
    """Coupler against rocker: the crank stretched and folded, by the law of cosines."""
    system = bc.compile(bc.load("four_bar"))
    start = system.assemble(q={"A": 0.5})
    low, high = (np.arccos((1.36 - r * r) / 1.2) - np.pi for r in (0.7, 1.3))
    curve = bc.analyze.coupler_curve(system, "C", "coupler", guess=start, samples=101)
    assert curve.limits == pytest.approx((low, high), abs=1e-8)
    assert not curve.closed and curve.stuck[1] is not None
    assert np.all(np.diff(curve.values) > 0.0) and len(curve.values) == 101
    assert np.abs(system.loop_error(curve.q)).max() < 1e-12
    with pytest.warns(bc.BranchWarning, match="cannot go beyond -1.2922.*joint 'A'.* 15 of 41 values"):
        stopped = bc.analyze.coupler_curve(system, "C", "coupler", values=np.linspace(-2.0, 0.0, 41), guess=start)
    assert stopped.limits[0] is None and stopped.limits[1] == pytest.approx(high, abs=1e-8)
    assert stopped.values.max() < high


def test_coupler_curve_holds_joints() -> None:
    system = bc.compile(bc.load("five_bar"))
    start = system.assemble(q={"leg1.1": 0.5, "leg2.1": 0.5})
    curve = bc.analyze.coupler_curve(system, "leg1.1", "link1.2", (1.1, 0, 0), values=np.linspace(0.5, 0.9, 9),
                                     guess=start, hold=["leg2.1"])
    centre = system.pose(start.q, "link2.2").position  # the elbow of the leg that is held
    assert np.abs(np.linalg.norm(curve.points - centre, axis=1) - 0.8).max() < 1e-12
    with pytest.raises(bc.ModelError, match="1 degree of freedom.*hold"):
        bc.analyze.coupler_curve(system, "leg1.1", "link1.2", guess=start)
    with pytest.raises(bc.StateError, match="values"):
        bc.analyze.coupler_curve(system, "leg1.1", "link1.2", values=[], guess=start, hold=["leg2.1"])
    lift = bc.compile(bc.load("slider_crank"))
    with pytest.raises(bc.StateError, match="give values"):
        bc.analyze.coupler_curve(lift, "slide", "rod")


def test_workspace_of_a_five_bar() -> None:
    system = bc.compile(bc.load("five_bar"))
    ranges = {"leg1.1": (0.0, 3.0), "leg2.1": (0.0, 3.0)}
    reach = bc.analyze.workspace(system, "link1.2", (1.1, 0.0, 0.0), ranges=ranges, samples=400)
    assert np.abs(system.loop_error(reach.q)).max() < 1e-9
    assert reach.tried == 400 and len(reach.points) == 400 - reach.failures
    # by geometry: the loop closes where the elbows are between 0.3 and 1.9 m apart
    values = np.random.default_rng(0).uniform([0.0, 0.0], [3.0, 3.0], (400, 2))
    elbows = np.stack([0.6 * np.cos(values[:, 0]) - 1.2 - 0.7 * np.cos(values[:, 1]),
                       0.6 * np.sin(values[:, 0]) - 0.7 * np.sin(values[:, 1])], 1)
    apart = np.linalg.norm(elbows, axis=1)
    assert reach.failures == int(((apart > 1.9) | (apart < 0.3)).sum())
    low, high = reach.bounds
    assert np.all(low <= reach.points.min(axis=0)) and np.all(high >= reach.points.max(axis=0))
    again = bc.analyze.workspace(system, "link1.2", (1.1, 0.0, 0.0), ranges=ranges, samples=400)
    assert np.array_equal(again.points, reach.points)


def test_workspace_of_a_tree_and_bad_input() -> None:
    system = bc.compile(bc.load("double_pendulum"))
    reach = bc.analyze.workspace(system, system.body_names[-1], samples=50,
                                 ranges={"shoulder": (-1.0, 1.0), "elbow": (0.0, 2.0)})
    assert reach.failures == 0 and reach.points.shape == (50, 3) and reach.values.shape == (50, 2)
    assert reach.values[:, 1].min() >= 0.0
    with pytest.raises(bc.StateError, match="'elbow' is \\(low, high\\)"):
        bc.analyze.workspace(system, system.body_names[-1], ranges={"elbow": (2.0, 0.0)})
    with pytest.raises(bc.ModelError, match="names no joint"):
        bc.analyze.workspace(system, system.body_names[-1], ranges={})
    with pytest.raises(bc.StateError, match="samples must be a whole number, at least 1"):
        bc.analyze.workspace(system, system.body_names[-1], ranges={"elbow": (0.0, 1.0)}, samples=0)


def test_long_steps_stay_on_the_branch() -> None:
    """Samples radians apart give what fine ones give: Newton's method alone would change branches or fail."""
    system = bc.compile(bc.load("four_bar"), actuated=["A"])

    def law(t: Any) -> Any:
        return 0.5 + 3.0 * t

    fine = bc.analyze.drive(system, {"A": law}, np.linspace(0.0, 8.0, 801))
    coarse = bc.analyze.drive(system, {"A": law}, np.linspace(0.0, 8.0, 11))
    assert np.abs(coarse.q.values - fine.q.values[::80]).max() < 1e-12
    assert fine.udot.attrs["units"] == "rad/s^2" and fine.tau.attrs["units"] == "N m"
    assert np.abs(coarse.tau.values - fine.tau.values[::80]).max() < 1e-9


@pytest.mark.parametrize("fast", (1.0, 2.0 * np.pi / 0.16))
def test_samples_between_those_of_a_walk(fast: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most samples are closed together, from two of a walk; the same as one after the other, also where the motion
    comes back to where it was within sixteen samples."""
    system = bc.compile(bc.load("four_bar"))
    times = np.arange(0.0, 1.0, 0.01)
    motion = {"A": lambda t: 0.5 + 0.8 * math.sin(fast * t)}
    together = bc.analyze.drive(system, motion, times)
    monkeypatch.setattr(driven, "_APART", 1)
    one = bc.analyze.drive(system, motion, times)
    assert np.abs(together.q.values - one.q.values).max() < 1e-13
    assert np.abs(together.tau.values - one.tau.values).max() < 1e-11 * np.abs(one.tau.values).max()
