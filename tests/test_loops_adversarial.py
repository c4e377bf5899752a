"""Attempts to break machines with loops: odd topologies, parameters, prescribed joints, dead points, bad input."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

import bellcrank as bc
import looped
from bellcrank import math as bm
from bellcrank.loops.closer import Target
from bellcrank.system.held_values import _hold
from looped import welded_arm
from test_loop_reactions import balance
from whole_states import carrying, whole_q

PIN = bc.Revolute("z")


def rod(length: float, mass: float = 1.0) -> bc.Inertia:
    return bc.Inertia.rod(mass, (0, 0, 0), (length, 0, 0))


def box(mass: float = 1.0, at: tuple[float, float, float] = (0.1, 0.0, 0.0)) -> bc.Inertia:
    return bc.Inertia.box(mass, (0.1, 0.2, 0.3), at)


def four_bar(length: object = 1.0, ground: object = 1.0, mass: object = 2.0, rocker: object = 0.6,
             machine: bc.Mechanism | None = None) -> bc.Mechanism:
    """A four-bar with its dimensions for arguments, which may be parameters."""
    m = machine or bc.Mechanism("four", gravity=(0, -9.81, 0))
    m.add_body("crank", rod(0.3, 1.5))
    m.add_body("coupler", bc.Inertia(mass, (0.5, 0, 0), np.diag([0.01, 0.2, 0.2])))
    m.add_body("rocker", rod(0.6, 3.0))
    m.add_joint("A", PIN, m.ground, "crank")
    m.add_joint("B", PIN, "crank", "coupler", bc.Pose((0.3, 0, 0)))
    m.add_joint("C", PIN, "coupler", "rocker", bc.Pose((length, 0, 0)))
    m.add_joint("D", PIN, "rocker", m.ground, bc.Pose((rocker, 0, 0)), bc.Pose((ground, 0, 0)))
    return m


def parametric() -> bc.Mechanism:
    m = bc.Mechanism("four", gravity=(0, -9.81, 0))
    values = {"length": 1.0, "ground": 1.0, "mass": 2.0, "rocker": 0.6}
    return four_bar(**{k: m.parameter(k, v) for k, v in values.items()}, machine=m)


DIMENSIONS = [{"length": 1.1, "ground": 0.9, "mass": 3.0, "rocker": 0.7},
              {"length": 0.9, "ground": 1.05, "mass": 1.0, "rocker": 0.55},
              {"length": 1.0, "ground": 1.0, "mass": 2.0, "rocker": 0.6}]
BATCH = {k: [d[k] for d in DIMENSIONS] for k in DIMENSIONS[0]}


def screw(pitch: object = None) -> bc.Mechanism:
    m = bc.Mechanism("press")
    made = m.parameter("pitch", 0.1) if pitch is None else pitch
    m.add_body("a", box())
    m.add_body("b", box(2.0))
    m.add_joint("turn", PIN, m.ground, "a")
    m.add_joint("lift", bc.Prismatic("z"), m.ground, "b")
    m.add_joint("screw", bc.Screw("z", made), "a", "b")
    return m


def wheels(chain: bool = False) -> bc.Mechanism:
    m = bc.Mechanism("wheels", gravity=(0, 0, -9.0))
    for i, n in enumerate("abc"):
        m.add_body(n, box(1.0 + i, (0.1, 0.1, 0.1)))
        m.add_joint(n.upper(), bc.Revolute("xyz"[i]), "abc"[i - 1] if chain and i else m.ground, n)
    return m


def error(machine: bc.Mechanism, q: object, u: object, tau: object = None, system: bc.System | None = None,
          **options: object) -> float:
    """Disagreement with the oracle."""
    system = system or bc.compile(machine)
    oracle = bc.compile(machine, "dense", cut=system.model.tree.cut_names)
    x = oracle.forward_dynamics(q, u, tau, **options)  # type: ignore[arg-type]
    y = system.forward_dynamics(q, u, tau, **options)  # type: ignore[arg-type]
    assert np.isfinite(y).all()
    return float(np.abs(x - y).max(initial=0.0) / (1.0 + np.abs(x).max(initial=0.0)))


def turn(system: bc.System, joint: str, n: int, begin: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Closed states of a full turn of one joint."""
    q, u, guess = [], [], None
    for angle in np.linspace(begin, begin + 2 * np.pi, n, endpoint=False):
        state = system.assemble(q={joint: angle}, u={joint: 1.0 + 0.1 * angle}, guess=guess)
        guess = state.q
        q.append(state.q)
        u.append(state.u)
    return np.array(q), np.array(u)


# -- parameters ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cut", "ABCD")
def test_parameters_in_lengths_masses_and_cut_joints(cut: str) -> None:
    system = bc.compile(parametric(), cut=[cut]).with_parameters(**DIMENSIONS[0])
    plain = bc.compile(four_bar(**DIMENSIONS[0]), "dense", cut=[cut])
    state = plain.assemble(u=np.ones(4))
    assert np.abs(system.assemble(u=np.ones(4)).q - state.q).max() < 1e-12
    assert np.abs(system.forward_dynamics(state.q, state.u) - plain.forward_dynamics(state.q, state.u)).max() < 1e-11
    a, b = system.reactions(state.q, state.u), plain.reactions(state.q, state.u)
    assert max(np.abs(a[k] - b[k]).max() for k in a) < 1e-10


def test_parameters_of_a_cut_joint_on_the_rolled_schedule() -> None:
    system = bc.compile(parametric(), schedule="rolled", cut=["D"]).with_parameters(**DIMENSIONS[0])
    plain = bc.compile(four_bar(**DIMENSIONS[0]), "dense", cut=["D"])
    state = plain.assemble(u=np.ones(4))
    assert np.abs(system.forward_dynamics(state.q, state.u) - plain.forward_dynamics(state.q, state.u)).max() < 1e-11


def batch_of_dimensions() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, u, expected = [], [], []
    for d in DIMENSIONS:
        plain = bc.compile(four_bar(**d), "dense")
        state = plain.assemble(q={"A": 0.5}, u={"A": 1.0}, guess=[0.5, -0.1, -2.2, 0.0])
        q.append(state.q)
        u.append(state.u)
        expected.append(plain.forward_dynamics(state.q, state.u))
    return np.array(q), np.array(u), np.array(expected)


@pytest.mark.parametrize("values", [BATCH, {"mass": BATCH["mass"]}], ids=["all", "mass"])
def test_batches_of_parameters(values: dict[str, list[float]]) -> None:
    q, u, expected = batch_of_dimensions()
    if len(values) == 1:
        q, u = q[2], u[2]
        expected = np.array([bc.compile(four_bar(mass=k)).forward_dynamics(q, u) for k in values["mass"]])
    system = bc.compile(parametric()).with_parameters(**values)
    assert np.abs(system.forward_dynamics(q, u) - expected).max() < 1e-10


def test_batches_of_parameters_with_the_oracle() -> None:
    q, u, expected = batch_of_dimensions()
    system = bc.compile(parametric(), "dense").with_parameters(**BATCH)
    assert np.abs(system.forward_dynamics(q, u) - expected).max() < 1e-10


def test_parameter_as_the_pitch_of_a_closing_screw() -> None:
    """Its angle is known wherever the loop is cut."""
    system = bc.compile(screw(), cut=["screw"]).with_parameters(pitch=0.3)
    plain = bc.compile(screw(0.3), "dense", cut=["screw"])
    state = plain.assemble(u=np.ones(3))
    same = system.assemble(q=dict(zip(plain.joint_names, state.q, strict=True)),
                           u=dict(zip(plain.joint_names, state.u, strict=True)))
    assert np.abs(same.q - state.q).max() < 1e-12 and np.abs(same.u - state.u).max() < 1e-12
    found = system.forward_dynamics(same.q, same.u)
    assert np.abs(found - plain.forward_dynamics(state.q, state.u)).max() < 1e-11


@pytest.mark.parametrize("cut", ("lift", "turn"))
def test_parameter_as_the_pitch_of_a_carrying_screw(cut: str) -> None:
    system = bc.compile(screw(), cut=[cut]).with_parameters(pitch=0.3)
    plain = bc.compile(screw(0.3), "dense", cut=[cut])
    state = plain.assemble(u=np.ones(3))
    assert np.abs(system.forward_dynamics(state.q, state.u) - plain.forward_dynamics(state.q, state.u)).max() < 1e-11


# -- prescribed motion ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "joint", "law"), [
    ("four_bar", "A", lambda t: 0.5 + 2.0 * t + bm.sin(t)), ("four_bar", "B", lambda t: -0.1 - 0.3 * t),
    ("slider_crank", "slide", lambda t: 0.01 * bm.sin(3.0 * t)), ("five_bar", "leg1.1", lambda t: 0.5 + t * t)])
def test_prescribed_joints_in_batches_of_time(name: str, joint: str, law: object) -> None:
    """The forces that enforce the motion make the free machine move the same way."""
    m = bc.load(name)
    m.prescribe(joint, law)  # type: ignore[arg-type]
    system, rng = bc.compile(m), np.random.default_rng(0)
    times = np.array([0.0, 0.1, 0.2, 0.35])
    q, u, guess = [], [], None
    for t in times:
        state = system.assemble(t=t, u=rng.normal(size=system.nu), guess=guess)
        guess = state.q
        q.append(state.q)
        u.append(state.u)
    q, u = np.array(q), np.array(u)
    tau, wrenches = rng.normal(size=u.shape), rng.normal(size=(4, len(m.bodies), 6))
    assert error(m, q, u, tau, system, t=times, wrenches=wrenches) < 1e-11
    udot = system.forward_dynamics(q, u, tau, t=times, wrenches=wrenches)
    drive = system.drive_forces(q, u, tau, t=times, wrenches=wrenches)
    free = bc.compile(bc.load(name), "dense", cut=system.model.tree.cut_names)
    there, speeds = q.copy(), system.kernels.run("driven_speeds", {"q": q, "u": u}, None, times)
    there[:, system.model.configuration.starts[joint][0]] = [float(law(t)) for t in times]  # type: ignore[operator]
    again = free.forward_dynamics(there, speeds, drive, wrenches=wrenches)
    assert np.abs(again - udot).max() < 1e-10 * (1.0 + np.abs(udot).max())
    a = system.reactions(q, u, tau, t=times, wrenches=wrenches)
    b = free.reactions(there, speeds, drive, wrenches=wrenches)
    assert max(np.abs(a[k] - b[k]).max() for k in a) < 1e-9


def test_prescribed_through_a_dead_point() -> None:
    """At t = 0 the toggle is stretched and one condition depends on the other; later it does not."""
    m = bc.Mechanism("toggle", gravity=(0, -9.81, 0))
    m.add_body("a", rod(0.3))
    m.add_body("b", rod(0.5))
    m.add_body("c", box())
    m.add_joint("A", PIN, m.ground, "a")
    m.add_joint("B", PIN, "a", "b", bc.Pose((0.3, 0, 0)))
    m.add_joint("S", bc.Prismatic("x"), m.ground, "c", bc.Pose((0.8, 0, 0)))
    m.add_joint("C", PIN, "b", "c", bc.Pose((0.5, 0, 0)))
    m.prescribe("S", lambda t: -0.2 * t * t)
    system = bc.compile(m)
    assert system.dof == 0
    for t in (0.3, 0.8):
        state = system.assemble(t=t, guess=[0.5, -0.8, 0.0, 0.0])
        assert error(m, state.q, state.u, system=system, t=t) < 1e-11


def test_prescribed_joints_are_not_cut_for_the_sake_of_drives() -> None:
    m = bc.load("four_bar")
    m.prescribe("D", lambda t: 0.1 * t)
    assert "D" not in bc.compile(m, actuated=["A", "B", "C"]).model.tree.cut_names


def test_loop_of_prescribed_joints_only_is_not_cut_silently() -> None:
    m = bc.Mechanism("door")
    m.add_body("door", box())
    m.add_joint("lower", PIN, m.ground, "door")
    m.add_joint("upper", PIN, m.ground, "door", bc.Pose((0, 0, 1)), bc.Pose((0, 0, 1)))
    m.prescribe("lower", lambda t: t)
    m.prescribe("upper", lambda t: 2.0 * t)
    with pytest.raises(bc.BellcrankError):
        bc.compile(m).assemble(t=1.0)


@pytest.mark.parametrize("chain", (False, True))
@pytest.mark.parametrize(("driven", "gear"), [("A", "AB"), ("B", "AB"), ("A", "AC"), ("C", "AC"), ("A", "ABC")])
def test_couplers_of_prescribed_joints(chain: bool, driven: str, gear: str) -> None:
    m = wheels(chain)
    m.add_coupler("gear", {n: 1.0 + i for i, n in enumerate(gear)})
    m.prescribe(driven, lambda t: t * t + t)
    oracle = bc.compile(m, "dense")
    state = oracle.assemble(t=1.0, u=np.ones(3))
    assert error(m, state.q, state.u, t=1.0) < 1e-11


def test_what_udot_says_about_prescribed_joints_is_ignored() -> None:
    m = wheels()
    m.add_coupler("gear", {"A": 1.0, "B": 2.0})
    m.prescribe("A", lambda t: t * t + t)
    oracle = bc.compile(m, "dense")
    state = oracle.assemble(t=1.0)
    udot = oracle.forward_dynamics(state.q, state.u, t=1.0)
    udot[0] = 77.0
    assert np.abs(bc.analyze.loop_acceleration_error(oracle, state.q, state.u, udot, t=1.0)).max() < 1e-12


def test_wrenches_that_depend_on_time() -> None:
    m = bc.load("four_bar")
    m.add_wrench("push", "coupler", force=(lambda t: 10.0 * t, 0, 0), at=(0.2, 0.1, 0))
    state = bc.compile(m).assemble(q={"A": 0.5}, u={"A": 1.0})
    times = np.array([0.0, 1.0, 2.0])
    for schedule in ("unrolled", "rolled"):
        assert error(m, state.q, state.u, system=bc.compile(m, schedule=schedule), t=times) < 1e-11


# -- pivots --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "joint", "independent", "options"), [
    ("four_bar", "A", "A", {}), ("four_bar", "A", "B", {}), ("four_bar", "A", "C", {}),
    ("four_bar", "A", "C", {"threads": 4}), ("four_bar", "A", "C", {"schedule": "rolled"}),
    ("four_bar", "A", "C", {"backend": "numpy"}), ("slider_crank", "crank", "crank", {}),
    ("slider_crank", "crank", "slide", {})])
def test_a_full_turn_as_one_batch(name: str, joint: str, independent: str, options: dict[str, object]) -> None:
    """With plans fixed at one angle; dead points are among the states."""
    m = bc.load(name)
    system = bc.compile(m, independent=[independent], **options)  # type: ignore[arg-type]
    q, u = turn(system, joint, 72, -np.pi / 3 if name == "slider_crank" else 0.0)
    tau = np.random.default_rng(0).normal(size=u.shape)
    assert error(m, q, u, tau, system) < 1e-12
    assert np.abs(bc.analyze.loop_acceleration_error(system, q, u, system.forward_dynamics(q, u, tau))).max() < 1e-11


def test_threads_share_a_system_whose_plans_change() -> None:
    m = bc.load("four_bar")
    system, oracle = bc.compile(m, independent=["C"]), bc.compile(m, "dense")
    q, u = turn(oracle, "A", 90)
    expected = oracle.forward_dynamics(q, u)

    def one(i: int) -> float:
        k = 7 * i % 90
        batch = np.abs(system.forward_dynamics(q, u) - expected).max() if i % 10 == 0 else 0.0
        return float(max(batch, np.abs(system.forward_dynamics(q[k], u[k]) - expected[k]).max()))

    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(one, range(400))) < 1e-10


def test_bound_calls_pass_dead_points() -> None:
    m = bc.load("four_bar")
    system, oracle = bc.compile(m, independent=["C"]), bc.compile(m, "dense")
    states, speeds = turn(oracle, "A", 720)
    q, u = states[0].copy(), speeds[0].copy()
    call = system.bind("forward_dynamics", q, u, np.zeros(4))
    expected = oracle.forward_dynamics(states, speeds)
    for i in range(len(states)):
        q[:], u[:] = states[i], speeds[i]
        assert np.abs(call() - expected[i]).max() < 1e-9


def test_bound_calls_of_the_oracle() -> None:
    system = bc.compile(bc.load("four_bar"), "dense")
    state = system.assemble(q={"A": 0.5}, u={"A": 1.0})
    bound = system.bind("forward_dynamics", state.q.copy(), state.u.copy(), np.zeros(4))()
    assert np.abs(bound - system.forward_dynamics(state.q, state.u)).max() < 1e-10


def test_answers_do_not_depend_on_earlier_calls() -> None:
    system = bc.compile(bc.load("four_bar"), independent=["C"])
    state = system.assemble(q={"A": 0.5}, u={"A": 1.0})
    udot = system.forward_dynamics(state.q, state.u, [1.0, 0.0, 0.0, 0.0])
    before, named = system.inverse_dynamics(state.q, state.u, udot), bc.analyze.explain(system).independent
    q, u = turn(system, "A", 360)
    system.forward_dynamics(q, u)
    assert np.abs(system.inverse_dynamics(state.q, state.u, udot) - before).max() < 1e-10
    assert bc.analyze.explain(system).independent == named


def test_closed_states_need_no_assembly_of_the_neutral_position() -> None:
    rng = np.random.default_rng(3)
    for _ in range(6):
        q = rng.normal(size=8) * 1.5
        m = welded_arm(q)
        system = bc.compile(m, backend="numpy", cut=["close"])
        assert np.abs(system.loop_error(q)).max() < 1e-9
        assert error(m, q, np.zeros(8), system=system) < 1e-6


# -- topology ------------------------------------------------------------------------------------------------------
def welded() -> bc.Mechanism:
    m = bc.Mechanism("welded", gravity=(0, -9.81, 0))
    for n, x in (("a", 0.3), ("b", 0.5), ("b2", 0.5), ("c", 0.6)):
        m.add_body(n, rod(x))
    m.add_joint("A", PIN, m.ground, "a")
    m.add_joint("B", PIN, "a", "b", bc.Pose((0.3, 0, 0)))
    m.add_joint("W", bc.Weld(), "b", "b2", bc.Pose((0.5, 0, 0)))
    m.add_joint("C", PIN, "b2", "c", bc.Pose((0.5, 0, 0)))
    m.add_joint("D", PIN, "c", m.ground, bc.Pose((0.6, 0, 0)), bc.Pose((1, 0, 0)))
    return m


def grounded() -> bc.Mechanism:
    m = welded()
    m.add_body("plate", rod(1.0))
    m.add_joint("GW", bc.Weld(), m.ground, "plate")
    m.add_joint("E", bc.Prismatic("x"), "plate", m.add_body("f", box()), bc.Pose((0, 2, 0)))
    m.add_joint("F", bc.Prismatic("x"), m.ground, "f", bc.Pose((0, 2, 0)))
    return m


def massless() -> bc.Mechanism:
    m = four_bar()
    m.add_body("ghost")
    m.add_body("rod2", rod(0.6))
    m.add_joint("E", PIN, "crank", "ghost", bc.Pose((0.3, 0, 0)))
    m.add_joint("F", PIN, "ghost", "rod2", bc.Pose((1.0, 0, 0)))
    m.add_joint("G", PIN, "rod2", m.ground, bc.Pose((0.6, 0, 0)), bc.Pose((1.0, 0, 0)))
    return m


def weld_ring() -> bc.Mechanism:
    m = bc.Mechanism("weld ring")
    for i in range(3):
        m.add_body(f"b{i}", rod(1.0))
    m.add_joint("A", PIN, m.ground, "b0")
    m.add_joint("w1", bc.Weld(), "b0", "b1", bc.Pose((1, 0, 0)))
    m.add_joint("w2", bc.Weld(), "b1", "b2", bc.Pose((1, 0, 0)))
    m.add_joint("w3", bc.Weld(), "b0", "b2", bc.Pose((2, 0, 0)))
    return m


def several() -> bc.Mechanism:
    m = welded()
    for k in range(2):
        for n, x in (("a", 0.3), ("b", 1.0), ("c", 0.6)):
            m.add_body(f"{n}{k}", rod(x))
        m.add_joint(f"A{k}", PIN, m.ground, f"a{k}", bc.Pose((0, 0, k + 1.0)))
        m.add_joint(f"B{k}", PIN, f"a{k}", f"b{k}", bc.Pose((0.3, 0, 0)))
        m.add_joint(f"C{k}", PIN, f"b{k}", f"c{k}", bc.Pose((1, 0, 0)))
        m.add_joint(f"D{k}", PIN, m.ground, f"c{k}", bc.Pose((1, 0, k + 1.0)), bc.Pose((0.6, 0, 0)))
    m.add_joint("P", bc.Spherical(), m.ground, m.add_body("pendulum", box()), bc.Pose((5, 0, 0)))
    return m


def repeated() -> bc.Mechanism:
    m = four_bar()
    m.add_joint("D2", PIN, "rocker", m.ground, bc.Pose((0.6, 0, 0)), bc.Pose((1, 0, 0)))
    m.add_joint("D3", PIN, m.ground, "rocker", bc.Pose((1, 0, 0)), bc.Pose((0.6, 0, 0)))
    m.add_joint("F", bc.Free(), m.ground, "coupler")
    return m


def inside() -> bc.Mechanism:
    m = four_bar()
    m.add_body("t", rod(0.1))
    m.add_joint("tw", bc.Weld(), "coupler", "t", bc.Pose((0.2, 0, 0)))
    m.add_joint("tr", PIN, "coupler", "t", bc.Pose((0.2, 0, 0)))
    return m


@pytest.mark.parametrize(("build", "dof"), [(welded, 1), (grounded, 2), (massless, 1), (weld_ring, 1), (several, 6),
                                            (repeated, 1), (inside, 1)])
def test_odd_topologies(build: object, dof: int) -> None:
    m = build()  # type: ignore[operator]
    system, rng = bc.compile(m), np.random.default_rng(0)
    assert system.dof == bc.analyze.explain(system).mobility == dof
    state = system.assemble(u=rng.normal(size=system.nu))
    tau = rng.normal(size=system.nu)
    assert error(m, state.q, state.u, tau, system) < 1e-11
    udot = system.forward_dynamics(state.q, state.u, tau)
    assert balance(system, state.q, state.u, tau, udot) < 1e-9 * (1.0 + np.abs(udot).max())


@pytest.mark.parametrize("cut", ("A", "B", "C", "W", "D"))
def test_welds_can_be_cut(cut: str) -> None:
    system = bc.compile(welded(), cut=[cut])
    state = system.assemble(u=np.ones(system.nu))
    assert error(welded(), state.q, state.u, system=system) < 1e-11


@pytest.mark.parametrize("backwards", (False, True))
@pytest.mark.parametrize(("one", "two", "dof"), [
    (bc.Spherical(), bc.Spherical(), 1), (bc.Free(), bc.Spherical(), 3), (bc.Free(), bc.Free(), 6),
    (bc.Cylindrical("z"), bc.Screw("z", 0.1), 1), (bc.Planar("z"), PIN, 1),
    (bc.Universal("x", "y"), bc.Spherical(), 0)])
def test_two_joints_between_two_bodies(one: object, two: object, dof: int, backwards: bool) -> None:
    m = bc.Mechanism("two")
    a = m.add_body("a", box())
    m.add_joint("one", one, m.ground, a)  # type: ignore[arg-type]
    ends = (a, m.ground) if backwards else (m.ground, a)
    m.add_joint("two", two, *ends, bc.Pose((0, 0, 1)), bc.Pose((0, 0, 1)))  # type: ignore[arg-type]
    system = bc.compile(m)
    assert system.dof == dof
    state = system.assemble(u=np.ones(system.nu))
    assert error(m, state.q, state.u, np.ones(system.nu), system) < 1e-12
    assert balance(system, state.q, state.u, np.ones(system.nu),
                   system.forward_dynamics(state.q, state.u, np.ones(system.nu))) < 1e-10


def test_structures_do_not_move_but_have_reactions() -> None:
    m = bc.Mechanism("truss", gravity=(0, -9.81, 0))
    m.add_body("a", rod(1.0))
    m.add_body("b", rod(1.0))
    m.add_joint("A", PIN, m.ground, "a")
    m.add_joint("B", PIN, "a", "b", bc.Pose((1, 0, 0)))
    m.add_joint("C", PIN, "b", m.ground, bc.Pose((1, 0, 0)), bc.Pose((1, 0, 0)))
    for schedule in ("unrolled", "rolled"):
        system = bc.compile(m, schedule=schedule)
        state = system.assemble(guess=[1.0, -2.0, 0.0])
        assert system.dof == 0
        assert np.abs(system.forward_dynamics(state.q, state.u)).max() == 0.0
        assert np.abs(system.inverse_dynamics(state.q, state.u, np.zeros(3))).max() == 0.0
        assert balance(system, state.q, state.u, np.zeros(3), np.zeros(3)) < 1e-12


def test_welds_that_do_not_fit_are_refused() -> None:
    m = weld_ring()
    m.add_joint("w4", bc.Weld(), "b0", "b2", bc.Pose((2.5, 0, 0)))
    with pytest.raises(bc.AssemblyError, match="'w4' by 0.5"):
        bc.compile(m).assemble()


def no_inertia(kind: str) -> bc.Mechanism:
    m = four_bar()
    if kind == "massless":
        m.add_joint("P", PIN, "rocker", m.add_body("p"), bc.Pose((0.1, 0, 0)))
    else:
        m.add_joint("P", bc.Spherical(), m.ground, m.add_body("p", bc.Inertia.rod(1.0, (0, 0, 0), (0.7, 0.2, 0.1))))
    return m


@pytest.mark.parametrize("method", ("elimination", "dense"))
@pytest.mark.parametrize("kind", ("massless", "rod on a ball"))
def test_joints_that_nothing_resists_are_refused(kind: str, method: str) -> None:
    with pytest.raises(bc.BellcrankError):
        system = bc.compile(no_inertia(kind), method)
        state = system.assemble(q={"A": 0.5})
        moved = np.where(np.arange(system.nu) < 3, 0.0, 0.7)
        system.forward_dynamics(system.integrate(state.q, moved), state.u)


def test_couplers_that_name_a_coordinate_twice() -> None:
    with pytest.raises(bc.ModelError, match="names a coordinate twice"):
        wheels().add_coupler("gear", {"A": 1.0, "A.angle": 2.0, "B": 1.0})


def net(n: int) -> bc.Mechanism:
    """n x n cells of pinned bars on a wall: loops inside loops, most out-of-plane conditions redundant."""
    rng = np.random.default_rng(0)
    m = bc.Mechanism("net", gravity=(0, -9.81, 0))
    nodes = {(i, j): (i + 0.15 * rng.normal(), j + 0.15 * rng.normal(), 0.0)
             for i in range(n + 1) for j in range(n + 1)}
    bars: dict[tuple[int, int], list[str]] = {k: [] for k in nodes}
    for (i, j), a in nodes.items():
        for other in ((i + 1, j), (i, j + 1)):
            if other in nodes:
                name = f"{i},{j} {other[0]},{other[1]}"
                m.add_body(name, bc.Inertia.box(1.0, (0.5, 0.05, 0.05), tuple((np.array(a) + nodes[other]) / 2)))
                bars[i, j].append(name)
                bars[other].append(name)
    for k, some in bars.items():
        if k[0] == 0:
            m.add_joint(f"wall {k}", PIN, m.ground, some[0], at=nodes[k])
        for a, b in pairwise(some):
            m.add_joint(f"{a} - {b}", PIN, a, b, at=nodes[k])
    return m


@pytest.mark.parametrize(("n", "backend"), [(2, "llvm"), (3, "llvm"), (5, "numpy")])
def test_nets(n: int, backend: str) -> None:
    m = net(n)
    system = bc.compile(m, backend=backend)
    rng = np.random.default_rng(0)
    start = system.assemble(u=rng.normal(size=system.nu))
    state = system.assemble(guess=system.integrate(start.q, 0.05 * start.u), u=start.u)
    s = np.linalg.svd(bc.analyze.loop_jacobian(system, state.q), compute_uv=False)
    assert system.dof == n == len(carrying(system, True)) - int((s > 1e-9 * s[0]).sum())
    assert error(m, state.q, state.u, rng.normal(size=system.nu), system) < 1e-10


# -- assembly ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("turns", (0, 1))
def test_closing_joints_are_held_on_their_turn(turns: int) -> None:
    system = bc.compile(bc.load("four_bar"))
    state = system.assemble(q={"A": 0.5})
    angle = float(bc.analyze.loop_coordinates(system, state.q, "D")[0]) + 2 * np.pi * turns
    held = system.assemble(q={"D": angle}, guess=state.q)
    assert np.abs(held.q - [*state.q[:3], angle]).max() < 1e-9


def spatial() -> bc.Mechanism:
    m = bc.Mechanism("spatial")
    for n, at in (("a", (0.1, 0, 0)), ("b", (0.1, 0.3, 0)), ("rod", (0.25, 0.3, 0))):
        m.add_body(n, box(1.0, at))  # type: ignore[arg-type]
    m.add_joint("A", PIN, m.ground, "a", at=(0, 0, 0))
    m.add_joint("B", bc.Revolute((0, 0.3, 1)), m.ground, "b", at=(0.5, 0, 0))
    m.add_joint("S", bc.Spherical(), "a", "rod", at=(0, 0.3, 0))
    m.add_joint("T", bc.Spherical(), "rod", "b", at=(0.5, 0.3, 0.1))
    return m


@pytest.mark.parametrize("sign", (1.0, -1.0))
def test_closing_quaternions_are_held_whatever_their_sign(sign: float) -> None:
    system = bc.compile(spatial(), cut=["T"])
    there = system.assemble(q={"A": 0.2})
    held = sign * bc.analyze.loop_coordinates(system, there.q, "T")
    found = system.plans.closer.close(there.q, Target(system.model.prescribed_mask(), np.ones(system.nu)))
    assert found[1] < 1e-12
    extra: list = []
    _hold(system.plans, "T", held, there.q.copy(), system.model.prescribed_mask(), extra)
    assert np.abs(system.plans.closer.residual(there.q, 0.0, tuple(extra))).max() < 1e-9


BAD = [({"t": [0.0, 1.0]}, "driven"), ({"u": {"A": [1.0, 2.0]}}, "four_bar"), ({"u": {"A": "x"}}, "four_bar"),
       ({"u": np.zeros((2, 4)), "q": {"A": np.full(3, 0.1)}}, "four_bar"),
       ({"q": {"A": np.full(3, 0.1)}, "guess": np.zeros((2, 4))}, "four_bar"),
       ({"q": np.zeros((2, 4)), "u": {"A": np.ones(3)}}, "four_bar"),
       ({"weights": {"A": "x"}}, "four_bar"), ({"weights": {"A": None}}, "four_bar"),
       ({"q": {"T.wx": 0.1}}, "spatial"), ({"u": {"S.qw": 0.1}}, "spatial"), ({"weights": {"S.qw": 1.0}}, "spatial")]


@pytest.mark.parametrize(("arguments", "name"), BAD)
def test_bad_input_of_assembly_is_explained(arguments: dict[str, object], name: str) -> None:
    m = spatial() if name == "spatial" else bc.load("four_bar")
    if name == "driven":
        m.prescribe("A", lambda t: 0.5 + t)
    system = bc.compile(m, cut=["T"] if name == "spatial" else ())
    with pytest.raises(bc.BellcrankError):
        system.assemble(**arguments)  # type: ignore[arg-type]


def test_times_are_single_numbers() -> None:
    m = bc.load("four_bar")
    m.prescribe("A", lambda t: 0.5 + t)
    system = bc.compile(m)
    with pytest.raises(bc.StateError):
        system.assemble(t=float("nan"))
    with pytest.raises(bc.StateError):
        system.assemble(t="x")  # type: ignore[arg-type]


def test_trees_refuse_speeds_that_are_not_numbers() -> None:
    with pytest.raises(bc.StateError):
        bc.compile(bc.load("pendulum")).assemble(u={"hinge": float("nan")})


def test_holding_prescribed_joints_is_refused() -> None:
    m = bc.load("four_bar")
    m.prescribe("A", lambda t: 0.5 + t)
    with pytest.raises(bc.BellcrankError):
        bc.compile(m).assemble(q={"A": 2.0})


def test_assembly_leaves_flipped_positions() -> None:
    system = bc.compile(screw(0.1), cut=["lift"])
    turn, lift, screwed = system.assemble(q={"turn": 3.0}).q
    assert turn == 3.0 and lift == pytest.approx(0.1 * screwed, abs=1e-12)
    assert (turn + screwed) / (2 * np.pi) == pytest.approx(round((turn + screwed) / (2 * np.pi)), abs=1e-9)


def test_failure_names_held_closing_joints() -> None:
    system = bc.compile(screw(0.1), cut=["screw"])
    with pytest.raises(bc.AssemblyError, match=r"'screw.angle' held at 0.3 is"):
        system.assemble(q={"screw": 0.3, "turn": 0.0})


# -- forces --------------------------------------------------------------------------------------------------------
def test_inverse_dynamics_of_actuated_balls_in_batches() -> None:
    system = bc.compile(spatial(), actuated=["A", "S"])
    q, u, tau = looped.states(system, count=4)
    udot = system.forward_dynamics(q, u, tau)
    drives = system.inverse_dynamics(q, u, udot)
    assert np.abs(system.forward_dynamics(q, u, drives) - udot).max() < 1e-10 * (1.0 + np.abs(udot).max())
    one = [system.inverse_dynamics(a, b, c) for a, b, c in zip(q, u, udot, strict=True)]
    assert np.abs(drives - one).max() < 1e-12
    with pytest.raises(bc.ModelError, match=re.escape("(A.angle) control only 1")):
        system.inverse_dynamics(q, u, udot, actuated=["A"])


def test_reactions_in_batches_and_with_wrenches() -> None:
    m = bc.load("four_bar")
    m.add_joint_spring("spring", "D", stiffness=2.0, damping=0.3)
    system = bc.compile(m)
    state = system.assemble(q={"A": 0.5}, u={"A": 1.0})
    wrenches = np.random.default_rng(0).normal(size=(3, 3, 6))
    many = system.reactions(state.q, state.u, wrenches=wrenches)
    for i in range(3):
        one = system.reactions(state.q, state.u, wrenches=wrenches[i])
        assert max(np.abs(many[k][i] - one[k]).max() for k in one) < 1e-12


@pytest.mark.parametrize("name", ("four_bar", "five_bar", "bennett"))
def test_hamilton_with_loops(name: str) -> None:
    """Along the free directions dp/dt is the rate of M u."""
    system = bc.compile(bc.load(name))
    (q,), (u,), (tau,) = looped.states(system, count=1)
    speeds, rate = system.hamilton(q, system.momenta(q, u, speeds="tree"), tau)
    assert np.abs(speeds - u).max() < 1e-12
    udot, h = system.forward_dynamics(q, u, tau), 1e-5

    def momenta(t: float) -> np.ndarray:
        return system.momenta(system.integrate(q, u * t + udot * (t * t / 2)), u + udot * t, speeds="tree")

    change = (momenta(h) - momenta(-h)) / (2 * h)
    free = np.linalg.svd(bc.analyze.loop_jacobian(system, q))[2][system.nu - system.dof:]
    assert np.abs(free @ (change - rate)).max() < 1e-7 * (1.0 + np.abs(change).max())


def test_sparse_drives_in_batches_of_time() -> None:
    m = bc.load("rope_ladder", rungs=45)
    m.prescribe("left1", lambda t: 0.1 * bm.sin(t), coordinate=0)
    system = bc.compile(m, backend="numpy")
    times = np.array([0.1, 0.3])
    states = [system.assemble(t=t) for t in times]
    q, u = np.array([s.q for s in states]), np.array([s.u for s in states])
    one = [system.drive_forces(a, b, t=t) for a, b, t in zip(q, u, times, strict=True)]
    assert np.abs(system.drive_forces(q, u, t=times) - one).max() < 1e-8


def test_empty_batches() -> None:
    none = np.zeros((0, 4))
    for method in ("elimination", "dense", "kane"):
        assert bc.compile(bc.load("four_bar"), method).forward_dynamics(none, none).shape == (0, 4)
    system = bc.compile(bc.load("four_bar"))
    assert system.inverse_dynamics(none, none, none).shape == (0, 4)
    assert system.reactions(none, none)["D"].shape == (0, 6)


def test_oracle_refuses_forces_that_are_not_numbers() -> None:
    system = bc.compile(bc.load("four_bar"), "dense")
    state = system.assemble()
    with pytest.raises(bc.StateError):
        system.forward_dynamics(state.q, state.u, [float("nan"), 0.0, 0.0, 0.0])


# -- springs -------------------------------------------------------------------------------------------------------
def chain(n: int, springs: bool) -> bc.Mechanism:
    m = bc.Mechanism("chain", gravity=(0, -9.81, 0))
    for i in range(n):
        m.add_body(f"b{i}", bc.Inertia.box(1.0, (0.3, 0.1, 0.1), (0.15, 0, 0)))
        m.add_joint(f"j{i}", PIN, f"b{i - 1}" if i else m.ground, f"b{i}", bc.Pose((0.3 if i else 0.0, 0, 0)))
    for i in range(0, n - 3, 3) if springs else ():
        m.add_spring(f"s{i}", f"b{i}", f"b{i + 3}", (0.1, 0.05, 0), (0, 0.1, 0), stiffness=50.0, damping=1.0,
                     length=0.4)
    for i in range(0, n, 5):
        m.add_joint_spring(f"t{i}", f"j{i}", stiffness=3.0, damping=0.2, rest=0.1)
    return m


def test_springs_of_long_trees() -> None:
    q, u, tau = np.random.default_rng(0).normal(size=(3, 55))
    m = chain(55, True)
    system = bc.compile(m)
    expected = bc.compile(m, "kane", "numpy").forward_dynamics(q, u, tau)
    udot = system.forward_dynamics(q, u, tau)
    assert np.abs(udot - expected).max() < 1e-10 * np.abs(expected).max()
    assert balance(system, q, u, tau, udot) < 1e-9


def test_dense_trees_know_joint_springs() -> None:
    q, u, tau = np.random.default_rng(0).normal(size=(3, 26))
    m = chain(26, False)
    expected = bc.compile(m).forward_dynamics(q, u, tau)
    assert np.abs(bc.compile(m, "dense").forward_dynamics(q, u, tau) - expected).max() < 1e-9 * np.abs(expected).max()


def test_springs_within_one_link_do_nothing_but_load_welds() -> None:
    m = welded()
    state = bc.compile(m).assemble(q={"A": 0.5}, u={"A": 1.0})
    sprung = m.copy()
    sprung.add_spring("k", "b", "b2", (0.3, 0, 0), (0, 0.1, 0), stiffness=100.0)
    sprung.add_spring("k2", "b", "b", (0.3, 0, 0), (0, 0.1, 0), stiffness=100.0)
    a, b = bc.compile(m), bc.compile(sprung)
    assert np.abs(a.forward_dynamics(state.q, state.u) - b.forward_dynamics(state.q, state.u)).max() < 1e-11
    change = b.reactions(state.q, state.u)["W"] - a.reactions(state.q, state.u)["W"]
    assert change == pytest.approx([0, 0, -2.0, 20.0, 10.0, 0], abs=1e-9)


def test_springs_of_no_length() -> None:
    m = bc.load("four_bar")
    m.add_spring("k", "crank", "coupler", (0.3, 0, 0), (0, 0, 0), stiffness=100.0)
    try:
        system = bc.compile(m)
        state = system.assemble(q={"A": 0.5})
        system.forward_dynamics(state.q, state.u)
    except bc.BellcrankError:
        pass


def test_springs_on_closing_screws_count_turns() -> None:
    m = screw(0.1)
    m.add_joint_spring("k", "screw", stiffness=2.0)
    closed, carried = bc.compile(m, cut=["screw"]), bc.compile(m, cut=["lift"])
    for angle in (0.5, 3.3):
        a, b = (s.forward_dynamics(whole_q(s, q), np.zeros(3))
                for s, q in ((closed, [angle, -0.1 * angle]), (carried, [angle, -angle])))
        assert a[0] == pytest.approx(b[0], rel=1e-9)


# -- arguments -----------------------------------------------------------------------------------------------------
def test_all_joints_of_a_loop_may_have_drives() -> None:
    system = bc.compile(bc.load("four_bar"), actuated=["A", "B", "C", "D"])
    state = system.assemble(q={"A": 0.5})
    system.forward_dynamics(state.q, state.u)


@pytest.mark.parametrize("options", [
    {"cut": ["Z"]}, {"cut": [3]}, {"cut": ["A", "B"]}, {"actuated": ["Z"]}, {"independent": ["Z"]},
    {"actuated": "leg"}])
def test_bad_names_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(bc.ModelError):
        bc.compile(bc.load("four_bar"), **options)  # type: ignore[arg-type]


def test_bad_coordinates_of_drives_are_refused_at_once() -> None:
    with pytest.raises(bc.ModelError):
        bc.compile(bc.load("four_bar"), actuated=["A.nope"])


@pytest.mark.parametrize("value", ["x", (1.0,), (1.0, 2.0, 3.0), None, (float("nan"), 1.0), (-1.0, 2.0), ("a", "b"),
                                   5.0])
def test_bad_stabilisation_is_refused(value: object) -> None:
    with pytest.raises(bc.ModelError):
        bc.compile(bc.load("four_bar"), baumgarte=value)  # type: ignore[arg-type]


def test_stabilisation_of_couplers() -> None:
    m = wheels()
    m.add_coupler("gear", {"A": 1.0, "B": 2.0})
    a, b = (bc.compile(m, k, baumgarte=(3.0, 3.0)).forward_dynamics([0.1, 0.2, 0.0], [1.0, 0.0, 0.0])
            for k in ("elimination", "kane"))
    assert np.abs(a - b).max() < 1e-10


def same_name(m: bc.Mechanism) -> None:
    m.add_constraint("Z", bc.Distance(1.0), m.ground, "coupler")
    m.add_joint("Z", PIN, m.ground, m.add_body("z", box()))


def foreign(m: bc.Mechanism) -> None:
    other = bc.Mechanism("other").parameter("length", 1.0)
    m.add_constraint("Z", bc.PointOnPlane("z"), m.ground, "coupler", bc.Pose((other, 0, 0)))


def foreign_spring(m: bc.Mechanism) -> None:
    m.add_spring("Z", m.ground, "coupler", (bc.Mechanism("other").parameter("x", 1.0), 0, 0), (0, 0, 0))


@pytest.mark.parametrize("spoil", [
    same_name, foreign, foreign_spring,
    lambda m: m.add_constraint("Z", bc.Distance(1.0), "ground", "coupler", (0, 0, 0)),
    lambda m: m.add_constraint("Z", bc.Distance(bc.Mechanism("other").parameter("x", 1.0)), m.ground, "coupler"),
    lambda m: m.add_coupler("Z", {"A": bc.Mechanism("other").parameter("k", 1.0), "B": 1.0})])
def test_bad_descriptions_are_refused(spoil: object) -> None:
    with pytest.raises(bc.ModelError):
        spoil(bc.load("four_bar"))  # type: ignore[operator]
