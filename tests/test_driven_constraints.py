"""Constraints whose numbers are laws of time or parameters: machines built with prescribed joints, closed forms."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import math as bm
from bellcrank.io.native.same import difference
from bellcrank.mechanism.constraint_rows import Row, Side, Timed, timed, within
from c_library import COMPILER, exported
from mechanisms import EPS

METHODS = ("elimination", "kane", "recursive", "recursive/centroid", "recursive/joint", "recursive/origin", "operator",
           "momenta", "divide", "reduction", "complement", "dense")
G = 9.81


def stroke(t: bm.Number) -> bm.Number:
    """The length of a cylinder [m]."""
    return 0.9 + 0.1 * bm.sin(2.0 * t)


def lift(*, leg: bool = False, length: object = stroke) -> bc.Mechanism:
    """An arm with a forearm, raised by a cylinder: a `Distance`, or two bodies without mass and a prescribed slide."""
    m = bc.Mechanism("lift", gravity=(0.0, 0.0, -G))
    arm = m.add_body("arm", bc.Inertia.rod(2.0, (0, 0, 0), (1, 0, 0)))
    forearm = m.add_body("forearm", bc.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0)))
    m.add_joint("hinge", bc.Revolute("y"), m.ground, arm)
    m.add_joint("elbow", bc.Revolute("y"), arm, forearm, bc.Pose((1, 0, 0)))
    if leg:
        tube, piston = m.add_body("tube"), m.add_body("piston")
        m.add_joint("foot", bc.Revolute("y"), m.ground, tube, bc.Pose((0, 0, -0.6)))
        m.add_joint("slide", bc.Prismatic("z"), tube, piston)
        m.prescribe("slide", length)
        m.add_joint("cylinder", bc.Revolute("y"), piston, arm, child_pose=bc.Pose((0.5, 0, 0)))
    else:
        m.add_constraint("cylinder", bc.Distance(length), m.ground, arm, bc.Pose((0, 0, -0.6)), bc.Pose((0.5, 0, 0)))
    return m


def raised(system: bc.System, t: float = 0.4) -> bc.State:
    return system.assemble(q={"elbow": 0.3}, u={"elbow": 0.7}, guess={"hinge": -0.6}, t=t)


def test_a_driven_distance_is_a_prescribed_slide() -> None:
    """State, accelerations, force and motion; by all methods."""
    one, two = bc.compile(lift()), bc.compile(lift(leg=True))
    state, other = raised(one), raised(two)
    assert one.dof == two.dof == 1
    assert np.abs(state.q - other.q[:2]).max() < 1e-13
    assert np.abs(state.u - other.u[:2]).max() < 1e-13
    assert abs(state.u[0]) > 0.1  # the cylinder moves it
    expected = two.forward_dynamics(other)[:2]
    for method in METHODS:
        for backend in ("numpy", "llvm") if method in ("elimination", "momenta") else ("numpy",):
            found = bc.compile(lift(), method, backend).forward_dynamics(state)
            assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max(), (method, backend)
    force, push = one.reactions(state)["cylinder"], two.reactions(other)["cylinder"]
    assert np.abs(force - push).max() < 1e-11 * np.abs(force).max()
    udot = one.forward_dynamics(state)
    assert np.abs(one.inverse_dynamics(state, udot)).max() < 1e-11


@pytest.mark.parametrize("method", ("elimination", "momenta", "kane", "reduction", "complement"))
@pytest.mark.parametrize("closing", ("position", "velocity"))
def test_runs(method: str, closing: str) -> None:
    system = bc.compile(lift(), method)
    run = system.simulate(raised(system), duration=0.5, stepper="rk8", step=0.01, closing=closing)
    two = bc.compile(lift(leg=True))
    reference = two.simulate(raised(two), duration=0.5, stepper="rk8", step=0.01)
    assert np.abs(run.q.values[-1] - reference.q.values[-1, :2]).max() < 1e-9
    assert run.attrs["energy_exchange"] == "work"
    assert np.abs(run.loop_error.values).max() < 1e-9


def test_momenta_without_closing() -> None:
    """Multipliers at velocity level are carried along while the rows follow the law of time."""
    ends = []
    for method, closing in (("momenta", "none"), ("elimination", "position")):
        system = bc.compile(lift(), method)
        run = system.simulate(raised(system), duration=1.5, stepper="rk8", step=0.01, closing=closing)
        ends.append(run.q.values[-1])
    assert np.abs(ends[0] - ends[1]).max() < 1e-9


def test_the_cylinder_puts_the_energy_in() -> None:
    """The energy changes by the integral of the constraint's force times the rate of its length."""
    system = bc.compile(lift())
    run = system.simulate(raised(system), duration=1.0, stepper="rk8", step=0.005)
    t = run["time"].values
    force = run.forces("cylinder").values
    power = force * 0.2 * np.cos(2.0 * t)
    energy = run.energy()["total"].values
    from scipy.integrate import cumulative_simpson

    work = cumulative_simpson(power, x=t, initial=0.0)
    assert np.ptp(energy) > 1.0
    assert np.abs(energy - energy[0] - work).max() < 1e-6 * np.ptp(energy)


# -- closed forms ----------------------------------------------------------------------------------------------------
def test_pendulum_on_a_winch() -> None:
    """L a'' + 2 L' a' + g sin a = 0, and the rope's tension m (L a'^2 + g cos a - L'')."""
    m = bc.Mechanism("winch", gravity=(0.0, 0.0, -G))
    frame, load = m.add_body("frame"), m.add_body("load", bc.Inertia(2.0, (0, 0, 0), 0.0))
    m.add_joint("x", bc.Prismatic("x"), m.ground, frame)
    m.add_joint("z", bc.Prismatic("z"), frame, load)
    m.add_constraint("rope", bc.Distance(lambda t: 1.0 + 0.5 * t + 0.3 * t * t), m.ground, load)
    a, rate, t = 0.4, 1.3, 0.2
    length, speed, acceleration = 1.0 + 0.5 * t + 0.3 * t * t, 0.5 + 0.6 * t, 0.6
    out, along = np.array([np.sin(a), -np.cos(a)]), np.array([np.cos(a), np.sin(a)])
    q, u = length * out, speed * out + length * rate * along
    turn = -(2.0 * speed * rate + G * np.sin(a)) / length
    expected = (acceleration - length * rate**2) * out + (2.0 * speed * rate + length * turn) * along
    tension = 2.0 * (length * rate**2 + G * np.cos(a) - acceleration)
    for method in ("elimination", "momenta", "kane", "operator"):
        system = bc.compile(m, method, "numpy")
        assert np.abs(system.loop_rate_error(q, u, t=t)).max() < 10 * EPS
        assert np.abs(system.forward_dynamics(q, u, t=t) - expected).max() < 1e-13
        assert np.abs(system.reactions(q, u, t=t)["rope"][[3, 5]] + tension * out).max() < 1e-12


def test_a_plane_that_rises() -> None:
    """A mass on a lift of the height h(t) accelerates with it, and is carried by m (g + h'')."""
    m = bc.Mechanism("elevator", gravity=(0.0, 0.0, -G))
    load = m.add_body("load", bc.Inertia(3.0, (0, 0, 0), (0.1, 0.2, 0.3)))
    m.add_joint("free", bc.Free(), m.ground, load)
    m.add_constraint("floor", bc.PointOnPlane("z", lambda t: 0.3 * t * t), m.ground, load)
    system = bc.compile(m)
    state = system.assemble(u=[0.2, 0.1, 0.3, 1.0, 0.0, 0.0], t=2.0)
    assert abs(system.pose(state, "load").position[2] - 1.2) < 1e-12
    assert abs(system.velocity(state, "load")[5] - 1.2) < 1e-12
    udot = system.forward_dynamics(state)
    assert abs(system.acceleration(state, udot, "load")[5] - 0.6) < 1e-12
    push = system.pose(state, "load").rotation @ system.reactions(state)["floor"][3:]
    assert np.abs(push - [0, 0, 3.0 * (G + 0.6)]).max() < 1e-11


def test_an_angle_that_opens() -> None:
    """A hinge whose leaf has a driven angle to a wall follows the law; the moment about it is I a''."""
    m = bc.Mechanism("door", gravity=(0.0, 0.0, 0.0))
    leaf = m.add_body("leaf", bc.Inertia(2.0, (0, 0, 0), (0.1, 0.2, 0.3)))
    m.add_joint("hinge", bc.Revolute("z"), m.ground, leaf)
    m.add_constraint("wall", bc.Angle(lambda t: 0.5 + 0.4 * t + 0.2 * t * t, "x", "x"), m.ground, leaf)
    system = bc.compile(m)
    state = system.assemble(guess=[0.6], t=1.0)
    assert system.dof == 0
    assert abs(state.q[0] - 1.1) < 1e-12
    assert abs(state.u[0] - 0.8) < 1e-12
    assert abs(system.forward_dynamics(state)[0] - 0.4) < 1e-12
    assert abs(system.reactions(state)["wall"][2] - 0.3 * 0.4) < 1e-12


def test_a_constant_angle_leaves_five_freedoms() -> None:
    m = bc.Mechanism("gyroscope", gravity=(0.0, 0.0, -G))
    body = m.add_body("body", bc.Inertia(1.0, (0.1, 0, 0), (0.1, 0.2, 0.25)))
    m.add_joint("free", bc.Free(), m.ground, body)
    m.add_constraint("lean", bc.Angle(1.2, "z", (0.0, 1.0, 1.0)), m.ground, body)
    system = bc.compile(m)
    assert system.dof == 5
    state = system.assemble(u=np.arange(6.0))
    axis = system.pose(state, "body").rotation @ (np.array([0.0, 1.0, 1.0]) / np.sqrt(2.0))
    assert abs(axis[2] - np.cos(1.2)) < 1e-12
    oracle = bc.compile(m, "dense", "numpy").forward_dynamics(state)
    assert np.abs(system.forward_dynamics(state) - oracle).max() < 1e-12 * (1.0 + np.abs(oracle).max())


class Shelf:
    """A constraint from outside of the library: two heights, one of which follows a law of time."""

    condition_names = ("height",)

    def __init__(self, *heights: object) -> None:
        self.heights = heights

    def alignment(self) -> np.ndarray:
        return np.eye(3)

    def constants(self) -> tuple[object, ...]:
        return self.heights

    def closure_rows(self, first: Side, second: Side, k: Sequence[object]) -> tuple[Row, ...]:
        total = Timed(*(a + b for a, b in zip(timed(k[0]), timed(k[1]), strict=True)))
        return (within(first, second, first.z, total),)


def test_constraints_of_users_follow_laws() -> None:
    m = bc.Mechanism("shelves", gravity=(0.0, 0.0, -G))
    for k, shelf in enumerate((Shelf(0.1, lambda t: 0.2 * t * t), Shelf(lambda t: 0.3 * t, 0.4))):
        body = m.add_body(f"b{k}", bc.Inertia(1.0, (0.1, 0, 0), (0.1, 0.2, 0.25)))
        m.add_joint(f"j{k}", bc.Free(), m.ground, body)
        m.add_constraint(f"c{k}", shelf, m.ground, body)
    for method, backend in (("dense", "numpy"), ("elimination", "llvm"), ("momenta", "numpy")):
        system = bc.compile(m, method, backend)
        state = system.assemble(t=0.5)
        udot = system.forward_dynamics(state)
        for k, (height, rate, acceleration) in enumerate(((0.15, 0.2, 0.4), (0.55, 0.3, 0.0))):
            assert abs(system.pose(state, f"b{k}").position[2] - height) < 1e-12
            assert abs(system.velocity(state, f"b{k}")[5] - rate) < 1e-12
            assert abs(system.acceleration(state, udot, f"b{k}")[5] - acceleration) < 1e-11


@pytest.mark.parametrize("method", ("elimination", "reduction", "complement", "operator"))
def test_stabilized_alike(method: str) -> None:
    """Baumgarte's terms of a state whose loop is open, by methods that have their own way to write constraints."""
    q, u = raised(bc.compile(lift()))[:2]
    found, expected = (bc.compile(lift(), name, "numpy", baumgarte=(3.0, 5.0)).forward_dynamics(
        q + 0.01, u + 0.05, t=0.3) for name in (method, "kane"))
    assert np.abs(found - expected).max() < 1e-11 * np.abs(expected).max()


@pytest.mark.parametrize("schedule", ("unrolled", "rolled"))
def test_schedules(schedule: str) -> None:
    """Several driven rods with laws of their own, one with a number."""
    m = bc.Mechanism("rods", gravity=(0.0, 0.0, -G))
    for k, law in enumerate((stroke, lambda t: 0.9 - 0.1 * t, 0.9, lambda t: 0.8 + 0.1 * t * t)):
        arm = m.add_body(f"arm{k}", bc.Inertia.rod(2.0 + k, (0, 0, 0), (1, 0, 0)))
        tip = m.add_body(f"tip{k}", bc.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0)))
        m.add_joint(f"hinge{k}", bc.Revolute("y"), m.ground, arm, bc.Pose((0, k, 0)))
        m.add_joint(f"elbow{k}", bc.Revolute("y"), arm, tip, bc.Pose((1, 0, 0)))
        m.add_constraint(f"rod{k}", bc.Distance(law), m.ground, arm, bc.Pose((0, k, -0.6)), bc.Pose((0.5, 0, 0)))
    system, oracle = bc.compile(m, schedule=schedule), bc.compile(m, "dense", "numpy")
    state = oracle.assemble(guess=np.tile([-0.5, 0.3], 4), u=np.ones(8), t=0.6)
    expected = oracle.forward_dynamics(state)
    assert np.abs(system.forward_dynamics(state) - expected).max() < 1e-11 * np.abs(expected).max()
    assert np.abs(system.loop_rate_error(state)).max() < 1e-12


# -- parameters ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", ("numpy", "llvm"))
def test_a_length_by_parameter(backend: str) -> None:
    m = bc.Mechanism("p", gravity=(0.0, 0.0, -G))
    length = m.parameter("length", 0.9)
    arm = m.add_body("arm", bc.Inertia.rod(2.0, (0, 0, 0), (1, 0, 0)))
    forearm = m.add_body("forearm", bc.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0)))
    m.add_joint("hinge", bc.Revolute("y"), m.ground, arm)
    m.add_joint("elbow", bc.Revolute("y"), arm, forearm, bc.Pose((1, 0, 0)))
    m.add_constraint("rod", bc.Distance(length + 0.01), m.ground, arm, bc.Pose((0, 0, -0.6)), bc.Pose((0.5, 0, 0)))
    m.add_constraint("lean", bc.Angle(length, "x", "x"), m.ground, forearm)
    for method in ("elimination", "dense", "kane"):
        system = bc.compile(m, method, backend)
        values = np.array([0.8, 0.9, 1.0])
        states = [system.with_parameters(length=x).assemble(guess=[-0.5, 1.4]) for x in values]
        q = np.array([s.q for s in states])
        many = system.with_parameters(length=values)
        assert np.abs(many.loop_error(q)).max() < 1e-12
        assert np.abs(system.loop_error(q)[[0, 2]]).max() > 0.01
        udot = many.forward_dynamics(q, np.zeros_like(q))
        assert np.abs(udot).max() < 1e-12  # nothing can move
    fixed = bc.compile(lift(length=0.9), "elimination", backend)
    state = raised(fixed)
    free = bc.compile(lift(length=0.9), "dense", "numpy")
    assert np.abs(fixed.forward_dynamics(state) - free.forward_dynamics(state)).max() < 1e-11


def test_batches_of_times_and_of_states() -> None:
    system, oracle = bc.compile(lift()), bc.compile(lift(), "dense", "numpy")
    times = np.linspace(0.0, 2.0, 7)
    states = [raised(system, t) for t in times]
    q, u = (np.array([getattr(s, name) for s in states]) for name in "qu")
    assert np.abs(system.loop_error(q, t=times)).max() < 1e-12
    assert np.abs(oracle.loop_rate_error(q, u, t=times)).max() < 1e-12
    expected = oracle.forward_dynamics(q, u, t=times)
    assert np.abs(system.forward_dynamics(q, u, t=times) - expected).max() < 1e-11 * np.abs(expected).max()
    moved = system.project(q[0], u[0], t=0.3)  # another time: the arm moves there
    assert np.abs(system.loop_error(moved)).max() < 1e-12
    assert np.abs(system.loop_rate_error(moved)).max() < 1e-12


# -- what else looks at constraints ----------------------------------------------------------------------------------
def test_laws_that_stand_still_cost_nothing() -> None:
    """A law without rates folds away: the same operations as with the number."""
    plain, law = (bc.compile(lift(length=x)).operation_count() for x in (0.9, lambda t: 0.9))
    assert plain == law


def test_statics_and_driven_analysis() -> None:
    system = bc.compile(lift())
    with pytest.raises(bc.StateError, match="cylinder.* move the loops"):
        bc.analyze.equilibrium(system, {"hinge": -0.6}, t=0.3)
    run = bc.analyze.drive(system, {"elbow": lambda t: 0.3 + 0.2 * t}, np.linspace(0.0, 1.0, 6), guess={"hinge": -0.6})
    assert np.abs(system.loop_error(run.q.values, t=run["time"].values)).max() < 1e-9
    assert np.abs(system.loop_rate_error(run.q.values, run.u.values, t=run["time"].values)).max() < 1e-9
    other = bc.compile(lift(leg=True))
    a, b = (bc.analyze.linearize(s, raised(s), coordinates=["elbow"]).A for s in (system, other))
    assert np.abs(a - b).max() < 1e-8 * np.abs(a).max()
    reduced = system.reduced(raised(system))
    state = raised(system)
    assert np.abs(reduced.motions @ state.u[list(reduced.entries)] + reduced.offset - state.u).max() < 1e-13


def test_files_hold_them(tmp_path: Path) -> None:
    m = lift()
    size = m.parameter("size", 0.4)
    m.add_constraint("lean", bc.Angle(lambda t: 1.0 + 0.1 * t, "x", (0, 1, 1)), m.ground, "forearm")
    m.add_constraint("plane", bc.PointOnPlane("y", 2.0 * size), m.ground, "forearm")
    m.add_constraint("ball", bc.RollingBall(size, "x"), m.ground, "forearm")
    m.add_constraint("disk", bc.RollingDisk(0.2, "z", "x"), "arm", "forearm")
    m.add_constraint("blade", bc.KnifeEdge("x"), m.ground, "arm")
    for name in ("m.yaml", "m.json"):
        bc.save(m, tmp_path / name)
        assert difference(m, bc.load(tmp_path / name)) is None, name


def test_pickles() -> None:
    system = bc.compile(lift())
    again = pickle.loads(pickle.dumps(system))
    state = raised(system)
    assert np.array_equal(again.forward_dynamics(state), system.forward_dynamics(state))


@pytest.mark.parametrize(("make", "said"), (
    (lambda: bc.Distance("x"), "Distance: the length"), (lambda: bc.Distance(-1.0), "must be positive"),
    (lambda: bc.Distance(np.inf), "not finite"), (lambda: bc.Distance(lambda t: np.sin(t)), "function of time"),
    (lambda: bc.Angle(0.0), "between 0 and pi"), (lambda: bc.Angle(4.0), "between 0 and pi"),
    (lambda: bc.PointOnPlane("z", "high"), "PointOnPlane: the offset"),
    (lambda: bc.Angle(1.0, "x", (0, 0, 0)), "Angle child_axis")))
def test_bad_input(make: object, said: str) -> None:
    with pytest.raises(bc.ModelError, match=said):
        make()


def test_parameters_of_another_mechanism() -> None:
    m = bc.Mechanism("m")
    size = m.parameter("size", 0.4)
    other = bc.Mechanism("other")
    body = other.add_body("b", bc.Inertia.box(1.0, (1, 1, 1)))
    other.add_joint("j", bc.Free(), other.ground, body)
    with pytest.raises(bc.ModelError, match="'rod'.*another mechanism"):
        other.add_constraint("rod", bc.Distance(size), other.ground, body)
    with pytest.raises(bc.ModelError, match="'rod'.*another mechanism"):
        other.add_constraint("rod", bc.Distance(lambda t: size + 0.1 * t), other.ground, body)


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_exported_c(tmp_path: Path) -> None:
    system = bc.compile(lift())
    library = exported(system, ["forward_dynamics"], tmp_path, stepper="rk4")
    state = raised(system)
    expected = system.forward_dynamics(state)
    status, found, _ = library("forward_dynamics", {"q": state.q, "u": state.u, "tau": np.zeros(2), "t": 0.4}, 2)
    assert status == 0
    assert np.abs(found - expected).max() < 1e-13 * np.abs(expected).max()
    y = np.concatenate([state.q, state.u])
    for k in range(10):
        status, y, _ = library("step", {"y": y, "tau": np.zeros(2), "t": 0.4 + 0.01 * k, "h": 0.01})
        assert status == 0
    run = system.simulate(state, 0.1, step=0.01)
    assert np.abs(y - np.concatenate([run.q.values[-1], run.u.values[-1]])).max() < 1e-12


def test_a_coupler_driven_by_time() -> None:
    """A differential: one shaft turns by what the other does and the drive adds; as a third, prescribed joint says."""
    def geared(law: bool) -> bc.Mechanism:
        m = bc.Mechanism("differential", gravity=(0.0, 0.0, -G))
        for k, name in enumerate(("left", "right", "drive")):
            wheel = m.add_body(name, bc.Inertia(1.0 + k, (0.1, 0.05 * k, 0), (0.1, 0.2, 0.3)))
            m.add_joint(name, bc.Revolute("y"), m.ground, wheel, bc.Pose((0, k, 0)))
        if law:
            m.add_coupler("gear", {"left": 1.0, "right": lambda a: a + 0.1 * bm.sin(a)}, stroke)
            m.prescribe("drive", stroke)
        else:
            m.prescribe("drive", stroke)
            m.add_coupler("gear", {"left": 1.0, "right": lambda a: a + 0.1 * bm.sin(a), "drive": -1.0})
        return m

    plain = bc.compile(geared(False), "dense", "numpy")
    state = plain.assemble(q={"left": 0.3}, u={"left": 0.5}, t=0.7)
    expected = plain.forward_dynamics(state)
    for method in ("dense", "elimination", "kane", "momenta", "operator"):
        system = bc.compile(geared(True), method, "numpy")
        mine = system.assemble(q={"left": 0.3}, u={"left": 0.5}, t=0.7)
        assert np.abs(mine.q - state.q).max() < 1e-13
        assert np.abs(mine.u - state.u).max() < 1e-13
        assert np.abs(system.forward_dynamics(mine) - expected).max() < 1e-12 * np.abs(expected).max(), method
    ends = [bc.compile(geared(law), "momenta").simulate(state, 0.5, stepper="rk8", step=0.01).q.values[-1]
            for law in (True, False)]
    assert np.abs(ends[0] - ends[1]).max() < 1e-10
    system = bc.compile(geared(True))
    moved = system.project(state.q, state.u, t=0.9)
    assert np.abs(system.loop_rate_error(moved)).max() < 1e-12


def test_couplers_driven_by_time_in_files(tmp_path: Path) -> None:
    m = bc.load("double_pendulum")
    joints = [record.name for record in m.joints]
    m.add_coupler("gear", dict.fromkeys(joints, 1.0), lambda t: 0.1 * t)
    bc.save(m, tmp_path / "m.yaml")
    assert difference(m, bc.load(tmp_path / "m.yaml")) is None
    for name in ("m.urdf", "m.sdf", "m.xml"):
        with pytest.raises(bc.ModelError, match="coupler 'gear'"):
            bc.save(m, tmp_path / name)
    with pytest.raises(bc.ModelError, match="coupler 'bad'.*function of time"):
        m.add_coupler("bad", dict.fromkeys(joints, 1.0), lambda t: np.sin(t))
