"""Writing SDF: machines come back with the same dynamics, and what the format cannot hold is named."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import bellcrank as bc
import looped
from bellcrank.io.sdf import read_sdf, write_sdf
from mechanisms import EPS

#: machines whose joints, springs and loops SDF can hold
HELD = ("arm", "bennett", "bricard", "chain", "crane", "delta", "double_pendulum", "five_bar", "four_bar",
        "four_bar_chain", "gyroscope", "jansen", "linkage_quadruped", "pendulum", "quadruped", "redundant_five_bar",
        "scissor_lift", "slider_crank", "stewart")


def gap_of_motion(machine: bc.Mechanism, other: bc.Mechanism, seed: int = 0) -> float:
    """Largest difference of the bodies' accelerations [m/s^2, rad/s^2], in units of what rounding may make of it.

    Coordinates may be counted from different places, so that states are matched by the poses and velocities of bodies:
    those of the second machine follow from the first by least squares.
    """
    a, b = bc.compile(machine, "dense", "numpy"), bc.compile(other, "dense", "numpy")
    rng = np.random.default_rng(seed)
    start = a.assemble()
    drift = a.assemble(q=start.q, u=rng.normal(size=a.nu)).u
    state = a.assemble(q=a.integrate(start.q, 0.1 * drift), u=rng.normal(size=a.nu))
    names = [body.name for body in machine.bodies]
    renamed = dict(zip(names, (body.name for body in other.bodies), strict=True))
    q = _match(a, b, state.q, renamed)
    rows = np.concatenate([b.jacobian(q, renamed[n], speeds="tree") for n in names])
    motion = np.concatenate([a.jacobian(state.q, n, speeds="tree") @ state.u for n in names])
    u = np.linalg.lstsq(rows, motion, rcond=None)[0]
    assert np.abs(rows @ u - motion).max() < 1e-9
    one, two = a.forward_dynamics(state.q, state.u), b.forward_dynamics(q, u)
    found = [np.array([s.acceleration(x, v, w, n if s is a else renamed[n]) for n in names])
             for s, x, v, w in ((a, state.q, state.u, one), (b, q, u, two))]
    gap = float(np.abs(found[0] - found[1]).max() / np.abs(found[0]).max())
    return gap / (10.0 * EPS * a.nu * looped.conditioning(a, state.q))


def _match(a: bc.System, b: bc.System, q: np.ndarray, renamed: dict[str, str]) -> np.ndarray:
    """The coordinates of b in which its bodies lie where those of a do."""
    guess = b.neutral()
    for _ in range(60):
        gaps, rows = [], []
        for name, other in renamed.items():
            goal, here = a.pose(q, name), b.pose(guess, other)
            twist = goal.rotation @ here.rotation.T
            gaps += [0.5 * (twist[[2, 0, 1], [1, 2, 0]] - twist[[1, 2, 0], [2, 0, 1]]), goal.position - here.position]
            rows.append(b.jacobian(guess, other, speeds="tree"))
        gap = np.concatenate(gaps)
        if np.abs(gap).max() < 1e-15:
            break
        step = np.linalg.lstsq(np.concatenate(rows), gap, rcond=None)[0]
        guess = b.integrate(guess, step / max(1.0, np.abs(step).max()))
    assert np.abs(gap).max() < 1e-12
    return guess


@pytest.mark.everyday(8)
@pytest.mark.parametrize("name", HELD)
def test_examples_come_back_with_the_same_dynamics(name: str, tmp_path: pathlib.Path) -> None:
    machine = bc.load(name)
    write_sdf(machine, tmp_path / "m.sdf")
    back, report = read_sdf(tmp_path / "m.sdf")
    assert not report.warned or "parallel" in report.warned[0].text
    assert len(back.joints) == len(machine.joints) and back.gravity == machine.gravity
    assert gap_of_motion(machine, back) < 1.0
    write_sdf(back, tmp_path / "again.sdf")
    assert gap_of_motion(back, read_sdf(tmp_path / "again.sdf")[0]) < 1.0


def rich() -> bc.Mechanism:
    """All joints and forces that SDF has, with odd poses and zeros."""
    m = bc.Mechanism("rich & <odd>", gravity=(0.3, -1.0, -9.0))
    rng = np.random.default_rng(5)
    kinds = [bc.Revolute((1, 2, 3)), bc.Universal((1, 0, 0), (0.6, 0.8, 0)), bc.Prismatic("y"), bc.Spherical(),
             bc.Screw("x", -0.07), bc.Weld(), bc.Revolute("z")]
    below = m.ground
    for i, kind in enumerate(kinds):
        poses = [bc.Pose.rpy(rng.normal(size=3), *rng.normal(size=3)) for _ in range(2)]
        body = m.add_body(f"b{i}", bc.Inertia(1.0 + i, rng.normal(size=3), (0.3, 0.4, 0.5)))
        ends = (body, below) if i in (2, 4) else (below, body)
        m.add_joint(f"j{i}", kind, *ends, *poses)
        below = body
    m.add_joint_spring("s", "j0", stiffness=3.0, damping=0.2, rest=0.4)
    m.add_friction("f", "j1", coulomb=0.3, viscous=0.1, coordinate=1)
    m.add_limit("l", "j2", -0.01, 0.02, stiffness=50.0, damping=1.0)
    m.add_coupler("c", {"j4": 1.0, "j6": -2.5}, 0.3)
    m.add_frame("tip", "b6", bc.Pose.rpy((1, 2, 3), 0.1, 0.2, 0.3))
    return m


def test_every_joint_and_force_comes_back(tmp_path: pathlib.Path) -> None:
    machine = rich()
    write_sdf(machine, tmp_path / "m.sdf")
    back, _ = read_sdf(tmp_path / "m.sdf", limits=True)
    assert gap_of_motion(machine, back) < 1.0
    a, b = bc.compile(machine, backend="numpy"), bc.compile(back, backend="numpy")
    assert a.coordinate_names == b.coordinate_names  # a tree with a coupler: counted from zero in both
    rng = np.random.default_rng(0)
    state = a.assemble(q=a.normalize(0.1 * rng.normal(size=a.nq) + a.neutral()), u=rng.normal(size=a.nu))
    tau = rng.normal(size=a.nu)
    expected = a.forward_dynamics(state.q, state.u, tau)
    assert np.abs(b.forward_dynamics(state.q, state.u, tau) - expected).max() < 1e-12 * np.abs(expected).max()
    assert float(b.energy(state.q, state.u)) == pytest.approx(float(a.energy(state.q, state.u)), rel=1e-12)
    np.testing.assert_allclose(b.pose(state.q, "tip").position, a.pose(state.q, "tip").position, atol=1e-12)


def test_a_machine_is_written_where_asked(tmp_path: pathlib.Path) -> None:
    machine = bc.load("four_bar")
    system = bc.compile(machine, backend="numpy")
    state = system.assemble(q={system.joint_names[0]: 1.0})
    write_sdf(machine, tmp_path / "m.sdf", q=state.q)
    back, _ = read_sdf(tmp_path / "m.sdf")
    drawn = bc.compile(back, backend="numpy")
    assert np.abs(drawn.loop_error(drawn.neutral())).max() < 1e-13
    for body in machine.bodies:
        np.testing.assert_allclose(drawn.pose(drawn.neutral(), back.bodies[body.index - 1].name).position,
                                   system.pose(state.q, body.name).position, atol=1e-12)
    assert gap_of_motion(machine, back) < 1.0


def test_a_free_joint_beside_others_holds_nothing_and_is_left_out(tmp_path: pathlib.Path) -> None:
    machine = bc.load("pendulum")
    machine.add_joint("loose", bc.Free(), machine.ground, machine.bodies[0])
    write_sdf(machine, tmp_path / "m.sdf")
    back, _ = read_sdf(tmp_path / "m.sdf")
    assert len(back.joints) == 1
    assert gap_of_motion(machine, back) < 1.0


def spoil(what: str) -> bc.Mechanism:
    m = bc.load("double_pendulum")
    first, second = m.bodies
    hinge = m.joints[0].name
    match what:
        case "parameter":
            m.add_body("p", bc.Inertia(m.parameter("mass", 1.0), (0, 0, 0), 1.0))
        case "law":
            m.prescribe(hinge, lambda t: t)
        case "wrench":
            m.add_wrench("w", first, force=(1, 0, 0))
        case "spring":
            m.add_spring("w", first, second, (0, 0, 0), (0, 0, 1), stiffness=1.0)
        case "force":
            m.add_joint_force("w", hinge, lambda q, u: -q)
        case "static":
            m.add_friction("w", hinge, coulomb=1.0, static=2.0)
        case "constraint":
            m.add_constraint("w", bc.Distance(0.5), first, second)
        case "actuator":
            m.add_actuator("w", hinge, 3.0)
        case "armature":
            m.add_armature("w", hinge, 0.1)
        case "sum":
            m.add_joint_spring("w", {hinge: 1.0, m.joints[1].name: 2.0}, stiffness=1.0)
        case "cylindrical":
            m.add_joint("w", bc.Cylindrical("z"), m.add_body("third"), second)
        case "free":
            m.add_joint("w", bc.Free(), second, m.add_body("third"))
        case "loose":
            m.add_body("w")
        case "name":
            m.add_body("w\n")
    return m


@pytest.mark.parametrize("what", ["parameter", "law", "wrench", "spring", "force", "static", "constraint", "actuator",
                                  "armature", "sum", "cylindrical", "free", "loose", "name"])
def test_what_sdf_cannot_hold_is_named_and_nothing_is_written(what: str, tmp_path: pathlib.Path) -> None:
    machine = spoil(what)
    part = {"parameter": "'p'", "law": repr(machine.joints[0].name), "name": "w"}.get(what, "'w'")
    with pytest.raises(bc.ModelError, match=part):
        write_sdf(machine, tmp_path / "m.sdf")
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_told(tmp_path: pathlib.Path) -> None:
    with pytest.raises(bc.FileError, match="cannot be written"):
        write_sdf(bc.load("pendulum"), tmp_path / "nowhere" / "m.sdf")
    (tmp_path / "m.sdf").write_text("old")
    write_sdf(bc.load("pendulum"), tmp_path / "m.sdf")
    assert [p.name for p in tmp_path.iterdir()] == ["m.sdf"] and "<sdf" in (tmp_path / "m.sdf").read_text()
