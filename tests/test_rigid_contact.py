"""Rigid contact in compiled code: beside NumPy, with all that machines have, and the cone problem by itself."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.integrate.cone_program import CONE_POINTERS, ConeSolver, cone_memory
from bellcrank.simulate import chosen_run, rigid_run
from bellcrank.simulate.moreau import PushedRhs
from bellcrank.system.loop_plans import LoopPlans
from bellcrank.target.backend import CallLists, backend_named
from bellcrank.target.cuda import cuda_runtime
from bellcrank.target.program import Builder, DriverLayout
from host_device import COMPILER, HostDevice

G = 9.81


# -- the cone problem -------------------------------------------------------------------------------
LAYOUT = DriverLayout(("places", "stride"), (), (*CONE_POINTERS, "worst"))


def solver(f: Builder) -> None:
    """The solver by itself."""
    residual, _ = ConeSolver(f, f.counter(f.count("places")), f.count("stride"), f.constant(1.0)).solve(f.constant(1.0))
    f.memory("worst")[0] = residual
    f.finish()


def places(points: np.ndarray) -> np.ndarray:
    """Rows of a rigid body over the plane z = 0 at points of it: normal, two along the surface."""
    return np.array([[*np.cross(x, way), *way] for x in points for way in np.eye(3)[[2, 0, 1]]])


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A body that falls on some points at once whose distances close at different rates: more conditions than it has
    freedoms, so that not all can stick."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 9))
    points = np.column_stack([rng.uniform(-0.3, 0.3, (k, 2)), -0.1 + 1e-3 * rng.standard_normal(k)])
    rows, pushed = places(points), places(points + 1e-3 * rng.standard_normal(points.shape))
    g = rows @ np.diag([100.0, 50.0, 33.0, 1.0, 1.0, 1.0]) @ pushed.T
    u = rng.standard_normal(6)
    u[5] = -abs(u[5])
    c = (rows @ u).reshape(k, 3)
    c[:, 0] += 0.2 * np.abs(rng.standard_normal(k))
    return g, c, np.full(k, (0.3, 0.8, 3.0)[seed % 3])


def missed(g: np.ndarray, c: np.ndarray, friction: np.ndarray, p: np.ndarray) -> float:
    """By how much the conditions of Signorini and Coulomb are missed, as they are written."""
    v = (g @ p.ravel()).reshape(-1, 3) + c
    slip = np.linalg.norm(v[:, 1:], axis=1)
    most = friction * p[:, 0]
    against = p[:, 1:] * slip[:, None] + most[:, None] * v[:, 1:]  # zero: against the slip, and as large as it can be
    size = 1.0 + np.abs(p).max()
    return max(-p[:, 0].min(), -v[:, 0].min(), np.abs(p[:, 0] * v[:, 0]).max() / size,
               (np.linalg.norm(p[:, 1:], axis=1) - most).max(), np.abs(against).max() / size)


def test_cone_problems_are_solved_to_the_tolerance() -> None:
    """Redundant places and large friction."""
    backend, most = backend_named("llvm"), 8
    run = backend.driver(solver, LAYOUT, 1)
    for seed in range(24):
        g, c, friction = problem(seed)
        k, goal = len(c), 1e-11 * (1.0 + np.abs(c).max())
        memory = backend.memory(CallLists(1, {}, {}, {}), LAYOUT, {**cone_memory(most, 3 * most), "worst": 1})
        memory.set(places=k, stride=3 * most)
        wide = np.zeros((3 * most, 3 * most))
        wide[:3 * k, :3 * k] = g
        for name, values in (("g", wide), ("c", c), ("mu", friction), ("on", np.ones(3 * k)),
                             ("sizes", np.diag(g).reshape(k, 3).max(axis=1))):
            memory.buffers[name][:values.size] = values.ravel()
        run(memory)
        assert memory.buffers["worst"][0] <= goal
        assert missed(g, c, friction, memory.buffers["p"][:3 * k].reshape(k, 3)) < 1e-9


# -- machines ---------------------------------------------------------------------------------------
@cache
def hopper(backend: str, *more: str) -> bc.System:
    """A mass over a foot with a spring and a damper between them, over the floor."""
    m = bc.Mechanism("hopper")
    base = m.add_body("base", bc.Inertia(1.0, (0, 0, 0), (0.01, 0.01, 0.01)))
    foot = m.add_body("foot", bc.Inertia(0.2, (0, 0, 0), (0.001, 0.001, 0.001)))
    m.add_joint("up", bc.Prismatic("z"), m.ground, base)
    m.add_joint("leg", bc.Prismatic("z"), base, foot, bc.Pose((0, 0, -0.3)))
    m.add_shape(foot, bc.Sphere(0.05), role="collision")
    m.add_shape(m.ground, bc.Plane(), role="collision")
    m.add_joint_spring("spring", "leg", stiffness=m.parameter("k", 500.0), damping=m.parameter("d", 5.0))
    m.add_contact("floor", m.ground, foot, friction=m.parameter("mu", 0.5), restitution=0.3)
    if "motor" in more:
        m.add_actuator("motor", "leg", limit=3.0)
    if "state" in more:
        m.add_state("lag", rate=lambda at: 10.0 * (at.u("leg") - at.state("lag")))
    return bc.compile(m, backend=backend)


def hop(system: bc.System, duration: float = 0.3, **options: Any) -> bc.Result:
    q = system.neutral()
    q[system.coordinate_names.index("up.slide")] = 0.36
    return system.simulate((q, np.zeros(system.nu)), duration, stepper="moreau", step=1e-3, output=0.01, **options)


@pytest.mark.parametrize("more", [(), ("state",)])
def test_compiled_steps_are_those_of_numpy(more: tuple[str, ...]) -> None:
    """With states, and with controllers of every kind."""
    push = {"leg": -4.0}
    controls: list[Any] = [None, bc.Traced(lambda t, q, u: {"leg": -4.0 - u["leg"]}), lambda t, q, u: push,
                           bc.Traced(lambda t, q, u: {"leg": -4.0 - u["leg"]}, period=5e-3)] if not more else [None]
    for control in controls:
        runs = [hop(hopper(backend, *more), 0.08, control=control) for backend in ("llvm", "numpy")]
        assert runs[0]["q"].values[:, 0].min() < 0.351 and (runs[0]["contact_force"].values[-1] != 0.0).any()
        assert np.abs(runs[0]["q"].values - runs[1]["q"].values).max() < 1e-12
        forces = [run["contact_force"].values[1:] for run in runs]
        assert np.abs(forces[0] - forces[1]).max() < 1e-8
        assert runs[0].attrs["status"] == "finished" and runs[0].attrs["contact_residual"] < 1e-9


def test_conditions_that_are_missed_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    system = hopper("llvm")
    assert "warnings" not in hop(system, 0.01).attrs
    monkeypatch.setattr(rigid_run.RigidRun, "residual", 0.05)
    with pytest.warns(bc.SimulationWarning, match=r"missed by up to 0\.05 m/s"):
        assert hop(system, 0.01).attrs["contact_residual"] == 0.05


def test_no_derivatives_of_rigid_contact() -> None:
    """They would be those of another method, without contact."""
    system = hopper("llvm")
    for what in (["q0"], ["mu"]):
        with pytest.raises(bc.NotYetError, match="stepper 'moreau' cannot be differentiated"):
            hop(system, 0.01, sensitivities=what)


def test_what_is_not_compiled_is_called() -> None:
    """States side by side with parameters and wrenches of their own, limits of actuators beside stiff springs, and what
    functions refuse: as in compiled code."""
    runs = []
    for backend in ("llvm", "numpy"):
        system = hopper(backend, "motor").with_parameters(k=np.array([300.0, 2e4, 500.0]))
        q = np.repeat([[0.352, 0.0]], 3, axis=0)
        runs.append(system.simulate((q, np.zeros((3, 2))), 0.03, stepper="moreau", step=2e-3, output=2e-3,
                                    control=lambda t, q, u: {"leg": -40.0},
                                    wrenches=np.array([[0.0] * 6, [0.0, 0.0, 0.0, 0.0, 0.0, -5.0]])))
    assert np.abs(runs[0]["u"].values - runs[1]["u"].values).max() < 1e-11
    assert np.nanmax(runs[1]["contact_force"].values) > 10.0
    m = bc.Mechanism("ball")
    ball = m.add_body("ball", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("up", bc.Prismatic("z"), m.ground, ball)
    m.add_shape(ball, bc.Sphere(0.1), role="collision")
    m.add_shape(m.ground, bc.Plane(), role="collision")
    m.add_contact("floor", m.ground, ball)
    m.add_joint_force("short", "up", bc.Table([0.0, 0.15], [0.0, 1.0], extrapolate="error", name="short table"))
    up = bc.compile(m, backend="numpy")
    with pytest.warns(bc.SimulationWarning, match="short table"):
        ended = up.simulate(([0.14], [1.0]), 0.1, stepper="moreau", step=2e-3)
    assert ended.attrs["status"] == "failed" and 0.0 < ended["time"].values[-1] < 0.02


def test_inertia_for_springs_needs_no_other_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops of the machine that is integrated are taken apart once, as those of the machine itself."""
    m = bc.load("four_bar")
    m.add_joint_spring("spring", m.joints[0].name, stiffness=100.0)
    system, made = bc.compile(m), []
    plan = LoopPlans._make_reference
    monkeypatch.setattr(LoopPlans, "_make_reference", lambda self, *given: made.append(self) or plan(self, *given))
    state = system.assemble()
    for _ in range(2):
        result = system.simulate(state, 0.01, stepper="moreau", step=1e-3)
    assert len(made) == 1 and result["loop_error"].values.max() < 1e-12


@pytest.mark.parametrize(("method", "closing"), [("momenta", "position"), ("elimination", "none")])
def test_every_closing_and_momenta_are_compiled(method: str, closing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    m = bc.load("four_bar")
    m.add_shape("coupler", bc.Sphere(0.05), role="collision")
    m.add_shape(m.ground, bc.Plane(), bc.Pose((0, -0.1, 0), [[1, 0, 0], [0, 0, 1], [0, -1, 0]]), role="collision")
    m.add_contact("floor", m.ground, "coupler", friction=0.4)
    state = bc.compile(m, backend="numpy").assemble(q={"A": -0.05}, u={"A": -1.0})
    ends = []
    for backend in ("numpy", "llvm"):
        system = bc.compile(m, method=method, backend=backend)
        if backend == "llvm":
            monkeypatch.setattr(chosen_run, "MoreauRun", None)
        run = system.simulate(state, 0.08, stepper="moreau", step=4e-3, output=8e-3, closing=closing)
        ends.append(run["q"].values)
    assert (np.nan_to_num(run["contact_force"].values) != 0.0).any()
    assert np.abs(ends[0] - ends[1]).max() < 1e-11


def test_actuators_keep_their_limits_and_contacts_know_none() -> None:
    """More than a motor gives is what it gives: the force of the floor may be larger."""
    limited = hop(hopper("llvm", "motor"), control=lambda t, q, u: {"leg": -40.0})
    free = hop(hopper("llvm"), control=lambda t, q, u: {"leg": -3.0})
    assert np.abs(limited["q"].values - free["q"].values).max() < 1e-12
    assert limited["contact_force"].values[-1, 2] > 5.0


def test_batches_of_parameters_are_runs_of_their_own() -> None:
    """To the last digit, whatever runs beside them: springs, dampers, friction."""
    system = hopper("llvm")
    values = {"k": np.array([300.0, 500.0, 2e4, 400.0, 500.0]), "d": np.array([1.0, 5.0, 50.0, 0.0, 5.0]),
              "mu": np.array([0.0, 0.5, 0.0, 0.9, 0.0])}
    many = hop(system.with_parameters(**values))
    few = hop(system.with_parameters(**{name: x[::-2] for name, x in values.items()}))
    assert (many["q"].values[:, ::-2] == few["q"].values).all()
    for i in range(5):
        one = hop(system.with_parameters(**{name: float(x[i]) for name, x in values.items()}))
        assert np.abs(one["q"].values - many["q"].values[:, i]).max() < 1e-12


def test_prescribed_motion_carries() -> None:
    """A box on a plate that goes up and down: of second order, and never deep."""
    m = bc.Mechanism("lift")
    plate, box = (m.add_body(name, bc.Inertia(2.0, (0, 0, 0), (0.01, 0.01, 0.01))) for name in ("plate", "box"))
    m.add_joint("lift", bc.Prismatic("z"), m.ground, plate)
    m.add_joint("free", bc.Free(), m.ground, box)
    m.prescribe("lift", lambda t: 0.05 * bc.math.sin(5.0 * t))
    m.add_shape(plate, bc.Plane(), role="collision")
    m.add_shape(box, bc.Box((0.1, 0.1, 0.1)), role="collision")
    m.add_contact("floor", plate, box, friction=0.5)
    for backend in ("llvm", "numpy"):
        system = bc.compile(m, backend=backend)
        q, u = system.neutral(), np.zeros(7)
        q[-1], u[-1] = 0.05, 0.25
        errors = []
        for h in (8e-3, 4e-3):
            result = system.simulate((q, u), 0.4, stepper="moreau", step=h, output=h)
            errors.append(np.abs(result["q"].values[:, -1] - 0.05 - 0.05 * np.sin(5.0 * result["time"].values)).max())
        assert errors[0] < 2e-5 and errors[1] < 0.3 * errors[0]


def test_what_rests_is_looked_at_once_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forces of a machine that is at rest are computed once a step, not until speeds that are nothing but rounding have
    settled; and no speeds stay that change their signs from step to step."""
    asked, accelerated = [], PushedRhs.accelerated
    monkeypatch.setattr(PushedRhs, "accelerated", lambda self, *given: asked.append(0) or accelerated(self, *given))
    system = hopper("numpy")
    down = hop(hopper("llvm"), 14.0)
    assert np.abs(down["u"].values[-1]).max() < 1e-11
    run = system.simulate((down["q"].values[-1], down["u"].values[-1]), 0.05, stepper="moreau", step=1e-3)
    assert np.abs(run["u"].values[-1]).max() < 1e-11
    assert 50 <= len(asked) < 56


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
def test_the_program_is_that_of_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thread by thread on this machine: as in lanes of the CPU."""
    device = HostDevice()
    monkeypatch.setattr(cuda_runtime, "current", lambda: device)
    cuda_runtime.made.cache_clear()
    try:
        k = np.linspace(300.0, 900.0, 40)
        there, here = (hop(hopper(backend).with_parameters(k=k), 0.08) for backend in ("cuda", "llvm"))
    finally:
        cuda_runtime.made.cache_clear()
    assert len(device.functions)
    assert np.abs(there["q"].values - here["q"].values).max() < 1e-10
    assert np.nanmax(np.abs(there["contact_force"].values - here["contact_force"].values)) < 1e-6


def test_boxes_bounce_on_a_slope_side_by_side() -> None:
    """Each as it does alone, also where some of them would make energy and go without restitution, and others not; and
    as in NumPy, whichever way the slope looks."""
    m = bc.Mechanism("box")
    box = m.add_body("box", bc.Inertia.box(1.0, (0.2, 0.3, 0.4)))
    m.add_joint("free", bc.Free(), m.ground, box)
    m.add_shape(box, bc.Box((0.2, 0.3, 0.4)), role="collision", name="box")
    m.add_shape(m.ground, bc.Plane(), bc.Pose.rpy((0, 0, 0), 0.2, -0.3, 0.5), role="collision", name="slope")
    m.add_contact("touch", "slope", "box", friction=1.5, restitution=1.0)
    rng = np.random.default_rng(0)
    q, u = rng.normal(size=(6, 7)), 2.0 * rng.normal(size=(6, 6))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    q[:, 4:] = (0.0, 0.0, 0.35)
    compiled, reference = bc.compile(m), bc.compile(m, backend="numpy")

    def ends(system: bc.System, *state: Any, duration: float = 0.6) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bc.SimulationWarning)  # with such friction some gain 0.1 % by bouncing
            return np.asarray(system.simulate(state, duration, step=4e-3, stepper="moreau", output=duration).u)[-1]

    together = ends(compiled, q, u)
    for i in (2, 3):
        again = [i] * 6
        assert np.array_equal(together[i], ends(compiled, q[again], u[again])[0])
        assert np.abs(together[i] - ends(compiled, q[i], u[i])).max() < 1e-9  # sums in another order
    alone = ends(reference, q[0], u[0], duration=0.2)
    assert np.abs(ends(compiled, q[0], u[0], duration=0.2) - alone).max() < 1e-9


def test_nothing_that_contacts_can_move() -> None:
    """The only body leaves: the run goes on without it."""
    m = bc.Mechanism("ball")
    m.add_body("ball", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("free", bc.Free(), m.ground, "ball")
    m.add_shape("ball", bc.Sphere(0.1), role="collision", name="ball")
    m.add_shape(m.ground, bc.Plane(), role="collision", name="floor")
    m.add_contact("touch", "floor", "ball")
    gone = bc.Event(lambda t, q, u: t - 0.05, "gone", action=bc.leave("ball"))
    run = bc.compile(m).simulate(([1.0, 0, 0, 0, 0, 0, 0.1], np.zeros(6)), 0.1, step=0.01, stepper="moreau",
                                 events=[gone])
    assert run.attrs["status"] == "finished" and np.abs(run.q.values[:, 6] - 0.1).max() < 1e-12
    assert np.allclose(run.contact_force.values[[-1, 2], 2], (0.0, G))


def test_overlaps_do_not_grow() -> None:
    """A ball that falls into its first contact within a step, whatever part of it, and rolls on and on."""
    m = bc.Mechanism("ball")
    ball = m.add_body("ball", bc.Inertia(2.0, (0, 0, 0), (0.008, 0.008, 0.008)))
    m.add_joint("free", bc.Free(), m.ground, ball)
    m.add_shape(ball, bc.Sphere(0.1), role="collision")
    m.add_shape(m.ground, bc.Plane(), role="collision")
    m.add_contact("floor", m.ground, ball, friction=0.3)
    system = bc.compile(m)
    q, u = np.repeat(system.neutral()[None], 20, axis=0), np.zeros((20, 6))
    q[:, 6] = 0.1 + np.linspace(0.0, 0.02, 20)
    u[:, 1], u[:, 3] = 20.0, 2.0
    result = system.simulate((q, u), 4.0, stepper="moreau", step=4e-3, output=0.02)
    assert result["q"].values[..., 6].min() > 0.1 - 1e-11
    assert result["q"].values[-1, :, 6].max() < 0.1 + 1e-8
    assert np.abs(np.diff(result["energy"].values[100:], axis=0)).max() < 1e-6  # rolling loses nothing


def test_a_ball_rolls_in_a_groove_whatever_the_friction() -> None:
    """Between two planes, with so much friction that it is wedged in: the conditions are met all the same, it rolls as
    slowly as its radius over the lines where it touches says, and neither rises nor sinks."""
    slope, speed = 0.6, 1.0
    m = bc.Mechanism("groove")
    m.add_body("ball", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("free", bc.Free(), m.ground, "ball")
    m.add_shape("ball", bc.Sphere(0.1), role="collision", name="ball")
    for side in (1, -1):
        m.add_shape(m.ground, bc.Plane(), bc.Pose.rpy((0, 0, 0), side * slope, 0, 0), role="collision",
                    name=f"side {side}")
        m.add_contact(f"touch {side}", f"side {side}", "ball", friction=m.parameter(f"mu {side}", 0.5))
    friction = np.array([0.5, 2.0, 100.0, 1e6])
    system = bc.compile(m).with_parameters(**{"mu 1": friction, "mu -1": friction})
    q, u = np.repeat(system.neutral()[None], 4, axis=0), np.zeros((4, 6))
    q[:, 6], u[:, 3] = 0.1 / np.cos(slope), speed
    run = system.simulate((q, u), 0.5, stepper="moreau", step=2e-3, output=0.02)
    assert run.attrs["contact_residual"] < 5e-11
    arm = 0.1 * np.cos(slope)  # of the places about the line on which it rolls
    assert np.abs(run.u.values[-1, :, 1] - speed * arm / (arm**2 + 0.4 * 0.1**2)).max() < 2e-3 * speed / arm
    assert np.abs(run.q.values[..., 6] - q[0, 6]).max() < 2e-5
    assert np.nanmax(np.abs(run["contact_force"].values[3:])) < 2.0 * G  # sides do not squeeze it


def test_more_places_than_there_is_room_for_at_first() -> None:
    """Plates on the floor, one beside the other: slots are made as they are needed, and no sample is missing."""
    m = bc.Mechanism("plates")
    m.add_shape(m.ground, bc.Plane(), role="collision", name="floor")
    for i in range(4):
        body = m.add_body(f"plate {i}", bc.Inertia(1.0, (0, 0, 0), (0.01, 0.01, 0.01)))
        m.add_joint(f"free {i}", bc.Free(), m.ground, body)
        m.add_shape(body, bc.Box((0.2, 0.2, 0.1)), role="collision", name=f"box {i}")
        m.add_contact(f"contact {i}", "floor", f"box {i}", friction=0.5)
    system = bc.compile(m)
    q = np.repeat(system.neutral()[None], 9, axis=0)
    q[:, [6, 13, 20, 27]] = 0.05 + 0.002 * np.arange(4)  # they arrive one after the other
    result = system.simulate((q, np.zeros((9, 24))), 0.1, stepper="moreau", step=2e-3, output=0.02)
    assert result.attrs["status"] == "finished"
    last = result["contact_force"].values[-1].reshape(9, 4, 8, 3).sum(axis=2)
    assert np.abs(last - [0.0, 0.0, G]).max() < 1e-8
    assert np.abs(result["q"].values[-1, :, [6, 13, 20, 27]] - 0.05).max() < 1e-8


# -- overlaps ------------------------------------------------------------------------------------------
def test_overlaps_that_grow_are_told() -> None:
    """A box that is in the ground: name, depth and time."""
    m = bc.Mechanism("pressed", gravity=(0.0, 0.0, -G))
    m.add_joint("free", bc.Free(), m.ground, m.add_body("box", bc.Inertia.box(1.0, (0.2, 0.2, 0.1))))
    m.add_shape("box", bc.Box((0.2, 0.2, 0.1)), role="collision", name="crate")
    m.add_contacts("all", bc.Plane(), friction=0.5)
    system = bc.compile(m)
    above = system.assemble(q={"free.z": 0.0501})
    run = system.simulate(above, 0.02, stepper="moreau", step=2e-3, output=2e-3)
    inside = run.isel(time=[-1]).copy()
    inside["q"][0, 6] -= 3e-3
    assert "warnings" not in run.attrs
    with pytest.warns(bc.SimulationWarning, match=r"'crate, ground plane' overlap by 0.003 m, 0.03 .* at t = 0.02 s"):
        system.simulate(inside, 0.1, stepper="moreau", step=2e-3, output=2e-3)


def test_rollouts_restore_and_refuse() -> None:
    """(q, u) and what contacts remember go on to rounding as the motion did; a state in the ground is refused by the
    names of its shapes, its depth and its number."""
    m = bc.Mechanism("box", gravity=(0.0, 0.0, -G))
    m.add_joint("free", bc.Free(), m.ground, m.add_body("box", bc.Inertia.box(1.0, (0.2, 0.2, 0.1))))
    m.add_shape("box", bc.Box((0.2, 0.2, 0.1)), role="collision", name="crate")
    m.add_contacts("all", bc.Plane(), friction=0.5)
    system, n = bc.compile(m), 4
    q = np.tile(system.assemble(q={"free.z": 0.06}).q, (n, 1))
    u = np.random.default_rng(0).normal(size=(n, 6))
    motion = bc.rollout(system, (q, u), step=2e-3, stepper="moreau")
    motion.step(steps=40)
    saved = motion.q.copy(), motion.u.copy(), motion.contact_memory.copy()
    motion.step(steps=3)
    later = motion.u.copy()
    motion.reset(range(n), saved)
    motion.step(steps=3)
    assert np.abs(motion.u - later).max() < 1e-12 * np.abs(later).max() and later.any()
    inside = system.assemble(q={"free.z": 0.03}).q
    with pytest.raises(bc.BellcrankError, match=r"reset: .*'crate, ground plane' by 0.02 m in state 2; begin"):
        motion.reset([2], (inside, np.zeros(6)))
    with pytest.raises(bc.BellcrankError, match=r"contact_memory must have the shape \(1, \d+\), got \(3,\)"):
        motion.reset([2], (inside, np.zeros(6), np.zeros(3)))
