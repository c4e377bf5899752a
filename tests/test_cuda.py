"""Code for GPUs, without one: texts compiled by the C++ compiler of this machine, run thread by thread (`host_device`).
On a GPU, `python benchmarks/gpu.py --check` looks at the same."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import math as bm
from bellcrank.simulate import courses, fixed_course, lane_steppers, resident, rollout
from bellcrank.simulate.fixed_course import FixedCourse
from bellcrank.simulate.varying_course import VaryingCourse
from bellcrank.target.cuda import cuda_runtime, device, device_driver, parking_ways
from bellcrank.target.cuda.parking import park
from host_device import COMPILER, HostArray, HostDevice
from pages import check_prints, page_named

with_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
STATES = 40  # more than a warp, and not a multiple of one


@pytest.fixture(scope="module")
def gpu() -> Iterator[HostDevice]:
    """Where code for GPUs runs in these tests."""
    made, before = HostDevice(), cuda_runtime.current
    cuda_runtime.current = lambda: made
    cuda_runtime.made.cache_clear()
    yield made
    cuda_runtime.current = before
    cuda_runtime.made.cache_clear()


def states(system: bc.System, seed: int = 0, count: int = STATES) -> tuple[Any, Any, Any]:
    """Some q, u and tau."""
    rng = np.random.default_rng(seed)
    if system.loops:
        start = system.assemble(u=rng.normal(size=system.nu))
        q, u = np.repeat(start.q[None], count, 0), start.u * rng.uniform(0.2, 1.0, (count, 1))
    else:
        q = system.normalize(rng.normal(size=(count, system.nq)))
        u = rng.normal(size=(count, system.nu))
    return q, u, rng.normal(size=(count, system.nu))


def pair(name: str, **options: Any) -> tuple[bc.System, bc.System]:
    """A machine for the CPU, and for the device."""
    compiled = {k: options.pop(k) for k in ("schedule", "precision", "independent") if k in options}
    m = bc.load(name, **options)
    return bc.compile(m, **{k: v for k, v in compiled.items() if k != "precision"}), \
        bc.compile(m, backend="cuda", **compiled)


def gap(a: Any, b: Any) -> float:
    return float(np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(np.asarray(b)).max())


# -- one function of many states ------------------------------------------------------------------
@with_compiler
@pytest.mark.parametrize(("name", "options"), [
    ("four_bar", {}), ("chain", {"n": 6, "schedule": "rolled"})])
def test_dynamics_as_on_the_cpu(gpu: HostDevice, name: str, options: dict[str, Any]) -> None:
    cpu, system = pair(name, **options)
    q, u, tau = states(cpu)
    before = len(gpu.functions)
    assert gap(system.forward_dynamics(q, u, tau), cpu.forward_dynamics(q, u, tau)) < 1e-12
    assert len(gpu.functions) > before  # it was the device
    assert gap(system.mass_matrix(q), cpu.mass_matrix(q)) < 1e-12
    assert gap(system.forward_dynamics(q[:3], u[:3]), cpu.forward_dynamics(q[:3], u[:3])) < 1e-12


@with_compiler
def test_laws_tables_and_states_as_on_the_cpu(gpu: HostDevice) -> None:
    table = bc.Table([-4.0, -1.0, 0.0, 1.0, 4.0], [3.0, -2.0, 0.0, 5.0, 1.0], kind="akima", extrapolate="linear")
    m = bc.load("four_bar")
    m.add_joint_force("law", "B", lambda at: table(at.q("A")) - 2.0 * at.state("lag"))
    m.add_state("lag", lambda at: at.u("C") - at.state("lag"))
    m.add_brake("brake", "D", capacity=3.0, reach=0.05)
    m.add_gas_spring("gas", m.ground, "rocker", (0.3, 0.9, 0), (0.2, 0, 0), force=20.0, length=2.0, reach=3.0)
    m.add_tyre("tyre", "coupler", radius=0.3, stiffness=1e3, half_length=0.1, relaxation=0.2)
    cpu, system = bc.compile(m), bc.compile(m, backend="cuda")
    q, u, tau = states(cpu)
    assert gap(system.forward_dynamics(q, u, tau), cpu.forward_dynamics(q, u, tau)) < 1e-12
    before = len(gpu.functions)
    made, wanted = system.element_forces(q.view(HostArray), u.view(HostArray)), cpu.element_forces(q, u)
    assert len(gpu.functions) > before and type(made["gas"].vector) is type(made["brake"].states["bend"]) is HostArray
    for name, own in wanted.items():
        assert np.abs(made[name].vector - own.vector).max() < 1e-11 * max(1.0, np.abs(own.vector).max()), name
        assert np.abs(made[name].power - own.power).max() < 1e-11 * max(1.0, np.abs(own.power).max()), name


@with_compiler
@pytest.mark.parametrize("order", ("C", "F"))
def test_arrays_of_the_device_stay_there(gpu: HostDevice, order: Any) -> None:
    cpu, system = pair("four_bar")
    q, u, tau = states(cpu)
    tau[:, cpu.model.tree.loop_speeds()] = 0.0  # such forces take other code
    there = [np.array(a, order=order).view(HostArray) for a in (q, u, tau)]
    made = system.forward_dynamics(*there)
    assert type(made) is HostArray and made.flags.f_contiguous == (order == "F")
    assert gap(made, cpu.forward_dynamics(q, u, tau)) < 1e-12
    assert gap(system.forward_dynamics(*there[:2]), cpu.forward_dynamics(q, u)) < 1e-12
    one = there[2][0]  # the same forces in all states
    assert gap(system.forward_dynamics(there[0], there[1], one), cpu.forward_dynamics(q, u, tau[0])) < 1e-12
    single = system.forward_dynamics(there[0][0], there[1][0], one)
    assert type(single) is HostArray and gap(single, cpu.forward_dynamics(q[0], u[0], tau[0])) < 1e-12


QUESTIONS: dict[str, Callable[[bc.System, Any, Any], Any]] = {
    "forces by name": lambda s, q, u: s.forward_dynamics(q, u, {"A": 1.0}),
    "at a time": lambda s, q, u: s.forward_dynamics(q, u, t=1.0),
    "state": lambda s, q, u: s.kinetic_energy(bc.State(q, u, 0.0)),
    "inverse dynamics": lambda s, q, u: s.inverse_dynamics(q, u, s.forward_dynamics(q, u, {"A": 1.0})),
    "mass matrix": lambda s, q, u: s.mass_matrix(q), "bias": lambda s, q, u: s.bias(q, u),
    "pose": lambda s, q, u: s.pose(q, "coupler").position,
    "poses": lambda s, q, u: s.pose(q).rotation,
    "velocity": lambda s, q, u: s.velocity(q, u, "coupler"),
    "jacobian": lambda s, q, u: s.jacobian(q, "coupler", (0.1, 0.2, 0.3)),
    "reactions": lambda s, q, u: s.reactions(q, u)["A"], "energy": lambda s, q, u: s.energy(q, u),
    "loop error": lambda s, q, u: 1.0 + s.loop_error(q), "reduced": lambda s, q, u: s.reduced(q, u).mass_matrix,
    "center of mass": lambda s, q, u: s.center_of_mass(q), "normalize": lambda s, q, u: s.normalize(q),
    "integrate": lambda s, q, u: s.integrate(q, u), "difference": lambda s, q, u: s.difference(q, s.integrate(q, u)),
    "hamilton": lambda s, q, u: s.hamilton(q, s.momenta(q, u, speeds="tree"))[1],
}


@with_compiler
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_method_takes_arrays_of_the_device(gpu: HostDevice, question: str) -> None:
    """Answered there, or on copies: the result is an array of the same kind."""
    cpu, system = pair("four_bar")
    q, u, _ = states(cpu)
    made = QUESTIONS[question](system, q.view(HostArray), u.view(HostArray))
    assert type(made) is HostArray, type(made)
    assert gap(made, QUESTIONS[question](cpu, q, u)) < 1e-11


@with_compiler
def test_single_precision(gpu: HostDevice) -> None:
    cpu, system = pair("four_bar", precision="single")
    q, u, tau = states(cpu)
    assert 1e-9 < gap(system.forward_dynamics(q, u, tau), cpu.forward_dynamics(q, u, tau)) < 1e-4
    made = system.forward_dynamics(*(a.astype(np.float32).view(HostArray) for a in (q, u, tau)))
    assert type(made) is HostArray and made.dtype == np.float32
    run = {"duration": 0.05, "step": 1e-3, "output": 0.05}
    mine, other = system.simulate((q, u), **run), cpu.simulate((q, u), **run)
    assert 1e-12 < gap(mine.q, other.q) < 1e-6 and float(mine.loop_error.max()) < 1e-6


@with_compiler
@pytest.mark.parametrize("stepper", ("rk4", "semi_implicit"))
def test_sums_over_many_floats_keep_what_is_lost(gpu: HostDevice, stepper: str) -> None:
    """A motion in floats is as near to that in doubles as its forces are, not as its thousands of sums would be."""
    cpu, system = pair("double_pendulum", precision="single")
    rng = np.random.default_rng(0)
    q, u = (0.3 * rng.normal(size=(STATES, 2)).astype(np.float32).astype(float) for _ in range(2))
    mine, other = (bc.rollout(s, (q, u), step=1e-3, stepper=stepper) for s in (system, cpu))
    for motion in (mine, other):
        motion.step(steps=1000)
    assert np.abs(np.asarray(mine.q) - other.q).max() < 5e-7  # three times that without


@with_compiler
def test_numbers_that_are_not_finite_are_told_of(gpu: HostDevice) -> None:
    cpu, system = pair("four_bar")
    q, u, _ = states(cpu)
    u[5, 1] = np.nan
    for given in ((q, u), (q.view(HostArray), u.view(HostArray))):
        with pytest.raises(bc.errors.StateError, match=r"u\[1\].*batch index \(5,\)"):
            system.forward_dynamics(*given)


@with_compiler
def test_states_whose_plan_fails_get_another(gpu: HostDevice) -> None:
    """Where the coupler's angle does not tell the position, the first plan has no result."""
    cpu, system = pair("four_bar", independent=["C"])
    q, u, _ = states(cpu)
    dead = cpu.assemble(q={"A": 0.0}, u={"A": 1.0})
    q[7], u[7] = dead.q, dead.u
    expected = bc.compile(bc.load("four_bar")).forward_dynamics(q, u)
    assert gap(system.forward_dynamics(q, u), expected) < 1e-8
    before = gpu.downloads
    assert gap(system.forward_dynamics(q.view(HostArray), u.view(HostArray)), expected) < 1e-8
    assert gpu.downloads - before < STATES  # flags, and the state that the plan is made for: the others stay there


# -- motion -----------------------------------------------------------------------------------------
@with_compiler
@pytest.mark.parametrize("stepper", ("rk4", "semi_implicit"))
def test_motion_as_on_the_cpu(gpu: HostDevice, stepper: str) -> None:
    cpu, system = pair("four_bar")
    q, u, tau = states(cpu)
    run = {"duration": 0.05, "step": 1e-3, "output": 0.01, "tau": tau, "stepper": stepper}
    before = len(gpu.functions)
    mine, other = system.simulate((q, u), **run), cpu.simulate((q, u), **run)
    assert len(gpu.functions) > before
    assert gap(mine.q, other.q) < 1e-12 and gap(mine.u, other.u) < 1e-12 and mine.q.shape == (6, STATES, 4)
    assert float(mine.loop_error.max()) < 1e-12


@with_compiler
@pytest.mark.parametrize(("name", "options"), [
    ("quadruped", {}), ("ladder", {"cells": 2, "schedule": "rolled"})])
def test_motions_of_trees_and_rolled_machines(gpu: HostDevice, name: str, options: dict[str, Any]) -> None:
    cpu, system = pair(name, **options)
    q, u, _ = states(cpu)
    run = {"duration": 5e-3, "step": 1e-3}
    assert gap(system.simulate((q, u), **run).q, cpu.simulate((q, u), **run).q) < 1e-11


@with_compiler
def test_bodies_that_deform(gpu: HostDevice) -> None:
    m = bc.Mechanism("arm")
    m.add_body("rod", bc.FlexibleBody.beam(0.5, bc.BeamSection.round(0.01, E=2.1e10, rho=7850.0), elements=4,
                                           modes={"y": 1, "z": 1}))
    m.add_body("tip", bc.Inertia.box(0.1, (0.05, 0.05, 0.05)))
    m.add_joint("root", bc.Revolute("z"), m.ground, "rod")
    m.add_joint("end", bc.Revolute("y"), "rod.tip", "tip")
    cpu, system = (bc.compile(m, backend=backend) for backend in ("llvm", "cuda"))
    q, u, tau = states(cpu)
    q, u = q * 0.001, u * 0.01
    before = len(gpu.functions)
    assert gap(system.forward_dynamics(q, u, tau), cpu.forward_dynamics(q, u, tau)) < 1e-11
    for run in ({"stepper": "rk4", "step": 1e-4}, {"stepper": "dopri5"}):
        mine, other = (s.simulate((q, u), 2e-3, output=1e-3, **run) for s in (system, cpu))
        assert gap(mine.q, other.q) < 1e-10
    assert len(gpu.functions) >= before + 3


def held(t: Any, q: Any, u: Any) -> list[Any]:
    return [-0.3 * u[0] + 0.1 * bm.sin(30.0 * t), 0.0, 0.0, 0.0]


@with_compiler
@pytest.mark.parametrize("what", ("controller", "wrenches", "rk8", "open loops"))
def test_what_acts_on_a_motion(gpu: HostDevice, what: str) -> None:
    cpu, system = pair("four_bar")
    q, u, _ = states(cpu)
    pushed = np.zeros((STATES, len(cpu.body_names), 6))
    pushed[:, 0, 5], pushed[:, 1, 2] = 1.0, 0.1
    more: dict[str, Any] = {"controller": {"control": bc.Traced(held, period=2e-3)}, "wrenches": {"wrenches": pushed},
                            "rk8": {"stepper": "rk8"}, "open loops": {"closing": "none"}}[what]
    before = len(gpu.functions)
    mine = system.simulate((q.view(HostArray), u.view(HostArray)), 0.02, step=1e-3, **more)
    assert len(gpu.functions) > before
    other = cpu.simulate((q, u), 0.02, step=1e-3, **more)
    assert gap(mine.q, other.q) < 1e-12 and gap(mine.u, other.u) < 1e-11
    plain = cpu.simulate((q, u), 0.02, step=1e-3)
    assert what not in ("controller", "wrenches") or gap(plain.u, other.u) > 1e-6  # it acts


@with_compiler
@pytest.mark.parametrize("what", ("nothing", "controller", "adaptive"))
def test_states_stay_on_the_device_between_pieces(gpu: HostDevice, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """A run in many pieces takes its states there once, and brings samples back alone; the numbers are those of one."""
    cpu, system = pair("four_bar")
    q, u, _ = states(cpu)
    adaptive = what == "adaptive"
    run: dict[str, Any] = {"stepper": "dopri5", "output": 1e-3} if adaptive else {"step": 1e-3, "output": 0.01}
    run |= {"control": bc.Traced(held, period=2e-3)} if what == "controller" else {}
    results, counts, placed = [], [], []
    placing = lane_steppers.LaneStepper.placed
    system.simulate((q, u), 0.03, **run)  # what is made once is there
    monkeypatch.setattr(lane_steppers.LaneStepper, "placed", lambda self, y: placed.append(len(y)) or placing(self, y))
    for pace in (3.0, 1000.0):
        for course in (FixedCourse, VaryingCourse):
            monkeypatch.setattr(course, "pace", property(lambda self, pace=pace: pace, lambda self, _: None),
                                raising=False)
        before = gpu.uploads, gpu.downloads
        results.append(system.simulate((q, u), 0.03, **run))
        counts.append((gpu.uploads - before[0], gpu.downloads - before[1]))
    assert np.array_equal(results[0].q, results[1].q) and np.array_equal(results[0].u, results[1].u)
    assert gap(results[0].q, cpu.simulate((q, u), 0.03, **run).q) < (1e-8 if adaptive else 1e-12)
    if adaptive:  # times, steps and counts of each state come and go
        assert placed == [STATES, STATES]
    else:
        assert counts[0][0] == counts[1][0]
        assert counts[0][1] - counts[1][1] < 10 * 64 * (1 if what == "nothing" else 4)  # how many steps were done


@with_compiler
@pytest.mark.parametrize("stepper", ("rk4", "gauss", "dopri5", "radau5"))
def test_independent_speeds_change_state_by_state(gpu: HostDevice, stepper: str, monkeypatch: pytest.MonkeyPatch
                                                  ) -> None:
    """A lane whose plan fails gets another one, and the others do not notice; adaptive steps are those of the CPU, and
    where pieces end makes no difference to any number."""
    cpu, system = pair("four_bar", independent=["C"])
    q, u, _ = states(cpu)
    changing = stepper != "radau5"  # which takes long to compile for every plan
    u = u * np.linspace(0.1, 12.0 if changing else 1.0, len(u))[:, None]
    adaptive = stepper in ("dopri5", "radau5")
    output = {"dopri5": 0.002, "radau5": 0.02}.get(stepper, 0.2)  # between steps, the first in several pieces
    run = {"duration": 0.2, "stepper": stepper, "output": output} | ({} if adaptive else {"step": 1e-3})
    before = len(gpu.functions)
    mine, other = system.simulate((q, u), **run), cpu.simulate((q, u), **run)
    assert len(gpu.functions) > before
    for name in (("steps", "rejected") if adaptive else ()) + (("switches",) if changing else ()):
        assert mine.attrs[name] == other.attrs[name] >= 2
    assert mine.attrs["switches"] >= 2 * changing and mine.attrs["status"] == "finished"
    assert np.abs(mine.q - other.q).max() < 1e-8 and float(mine.loop_error.max()) < 1e-12


@with_compiler
def test_buffers_begin_with_zeros_wherever_they_are(gpu: HostDevice) -> None:
    """Those of an implicit method are too large for a thread's own memory."""
    m = bc.Mechanism("ball")
    m.add_body("ball", bc.Inertia(1.0, (0, 0, 0), (0.004, 0.004, 0.005)))
    m.add_joint("free", bc.Free(), m.ground, "ball")
    cpu, system = (bc.compile(m, backend=backend) for backend in ("llvm", "cuda"))
    q, u, _ = states(cpu)
    run = {"duration": 4e-3, "step": 1e-3, "stepper": "gauss"}
    assert gap(system.simulate((q, u), **run).q, cpu.simulate((q, u), **run).q) < 1e-11


@with_compiler
def test_pieces_on_a_device_have_many_steps(gpu: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long they take: what comes back takes longer."""
    calls = []
    advance = resident.ResidentStates.advance
    monkeypatch.setattr(resident.ResidentStates, "advance", lambda self, *given: calls.append(given[5]) or advance(
        self, *given))
    monkeypatch.setattr(courses, "_PIECE", 1e-12)
    cpu, system = pair("four_bar")
    q, u, _ = states(cpu)
    system.simulate((np.repeat(q, 300, axis=0), np.repeat(u, 300, axis=0)), 0.1, step=1e-3, output=0.1)
    assert sum(calls) == 100 and len(calls) <= 4


@with_compiler
def test_rigid_contacts_beside_stiff_forces(gpu: HostDevice) -> None:
    """A brake that sticks in some states and slides in others, while the ball lands."""
    m = bc.Mechanism("ball on an arm")
    m.add_joint("rail", bc.Prismatic("z"), m.ground, m.add_body("car", bc.Inertia.sphere(1.0, 0.1)))
    m.add_body("ball", bc.Inertia.sphere(0.2, 0.05))
    m.add_joint("hinge", bc.Revolute("y"), "car", "ball", child_pose=bc.Pose((-0.3, 0, 0)))
    m.add_shape("ball", bc.Sphere(0.05), role="collision")
    m.add_shape(m.ground, bc.Plane(), role="collision")
    m.add_contact("floor", m.ground, "ball", friction=0.3)
    m.add_brake("brake", "hinge", capacity=1.0)
    cpu, system = (bc.compile(m, backend=backend) for backend in ("llvm", "cuda"))
    q, u = np.zeros((STATES, 3)), np.zeros((STATES, 3))
    q[:, 0], u[:, 1] = np.linspace(0.05, 0.1, STATES), np.linspace(-8.0, 8.0, STATES)
    run = {"duration": 0.1, "stepper": "moreau", "step": 2e-3, "output": 0.01}
    other, mine = (one.simulate((q, u), **run) for one in (cpu, system))
    assert gap(mine.q, other.q) < 1e-9 and gap(mine.u, other.u) < 1e-7
    assert mine.attrs["contact_residual"] < 1e-9


@with_compiler
def test_rigid_contacts(gpu: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounces, slip and rest, as on the CPU; states and what contacts remember stay on the device between pieces."""
    m = bc.Mechanism("ball")
    m.add_body("ball", bc.Inertia(1.0, (0, 0, 0), (0.004, 0.004, 0.004)))
    m.add_joint("free", bc.Free(), m.ground, "ball")
    m.add_shape("ball", bc.Sphere(0.1), role="collision")
    m.add_shape(m.ground, bc.Plane(), role="collision")
    m.add_contact("floor", m.ground, "ball", friction=0.3, restitution=0.5)
    cpu, system = (bc.compile(m, backend=backend) for backend in ("llvm", "cuda"))
    rng = np.random.default_rng(0)
    q, u = np.repeat(cpu.neutral()[None], STATES, 0), 0.3 * rng.normal(size=(STATES, 6))
    q[:, cpu.coordinate_names.index("free.z")] = rng.uniform(0.1, 0.12, STATES)
    run, before, counts = {"duration": 0.1, "stepper": "moreau", "step": 1e-3, "output": 0.01}, len(gpu.functions), []
    other = cpu.simulate((q, u), **run)
    for pace in (1000.0, 7.0):
        paced = property(lambda self, pace=pace: pace, lambda self, _: None)
        monkeypatch.setattr(fixed_course.FixedCourse, "pace", paced, raising=False)
        moved = gpu.uploads, gpu.downloads
        mine = system.simulate((q, u), **run)
        counts.append((gpu.uploads - moved[0], gpu.downloads - moved[1]))
        assert gap(mine.q, other.q) < 1e-12 and gap(mine.u, other.u) < 1e-11
        assert abs(mine.attrs["contact_residual"] - other.attrs["contact_residual"]) < 1e-15
        assert np.array_equal(np.isnan(mine.contact_force), np.isnan(other.contact_force))
        assert float(np.abs(mine.contact_force - other.contact_force).max()) < 1e-9
    assert len(gpu.functions) > before
    assert float(mine.q.sel(coordinate="free.z").min()) > 0.099 and mine.attrs["contact_residual"] > 0.0
    assert abs(counts[0][0] - counts[1][0]) < 15 * 64 and counts[1][1] - counts[0][1] <= 15 * 64  # steps done, ways


@with_compiler
def test_adaptive_steps_of_floats_are_doubles(gpu: HostDevice) -> None:
    """With a controller that is asked between steps; a state that cannot go on is told of, the others go on."""
    cpu, system = pair("double_pendulum", precision="single")
    q, u = np.full((STATES, 2), 0.3), np.linspace(0.0, 1.0, STATES)[:, None] * [1.0, -1.0]
    u[4] = 1e100
    run: dict[str, Any] = {"duration": 0.04, "stepper": "dopri5", "output": 0.01,
                           "control": bc.Sampled(lambda t, q, u: -0.5 * u, period=0.02)}
    with pytest.warns(bc.SimulationWarning, match="1 of 40 states could not finish; state 4: steps become too short"):
        mine = system.simulate((q, u), **run)
    with pytest.warns(bc.SimulationWarning):
        other = cpu.simulate((q, u), **run)
    rest = np.arange(STATES) != 4
    assert np.abs(mine.q - other.q).values[:, rest].max() < 1e-12 and np.isnan(mine.q.values[1:, 4]).all()


@with_compiler
def test_parameters_as_a_batch(gpu: HostDevice) -> None:
    m = bc.Mechanism("pendulum")
    length = m.parameter("length", 1.0)
    bob = m.add_body("bob", bc.Inertia.point(1.0, (0.0, 0.0, -length)))
    m.add_joint("hinge", bc.Revolute("x"), m.ground, bob)
    lengths = np.linspace(0.5, 2.0, STATES)
    runs = [bc.compile(m, backend=backend).with_parameters(length=lengths).simulate(
        ([0.5], [0.0]), 0.1, step=1e-2) for backend in ("cuda", "llvm")]
    assert gap(runs[0].q, runs[1].q) < 1e-13


@with_compiler
def test_few_states_are_the_hosts(gpu: HostDevice) -> None:
    """A launch takes longer than they do; the numbers are those of the CPU."""
    cpu, system = pair("four_bar")
    q, u, tau = states(cpu, count=5)
    before = len(gpu.functions)
    assert np.array_equal(system.forward_dynamics(q, u, tau), cpu.forward_dynamics(q, u, tau))
    assert np.array_equal(system.forward_dynamics(q[0], u[0]), cpu.forward_dynamics(q[0], u[0]))
    assert np.array_equal(system.simulate((q[0], u[0]), 0.1, stepper="dopri5").q,
                          cpu.simulate((q[0], u[0]), 0.1, stepper="dopri5").q)
    assert len(gpu.functions) == before


@with_compiler
@pytest.mark.filterwarnings("ignore:.*energy:bellcrank.SimulationWarning")  # what floats lose of slow motions
@pytest.mark.parametrize("precision", ("double", "single"))
def test_values_that_registers_do_not_hold(gpu: HostDevice, monkeypatch: pytest.MonkeyPatch, precision: str) -> None:
    """With few registers: results are the same, from shared and from local memory."""
    for name, value in (("SPILLING", 10), ("LARGE", 20), ("LARGE_DRIVER", 20), ("STRETCH", 40),
                        ("WAYS", ((4, 5, 3, 4), (2, 6, 4, 1 << 30)))):
        monkeypatch.setattr(parking_ways, name, value)
    cpu, system = pair("four_bar", precision=precision)
    q, u, tau = states(cpu)
    known = set(gpu.functions)
    most = 1e-10 if precision == "double" else 1e-4
    assert gap(system.forward_dynamics(q, u, tau), cpu.forward_dynamics(q, u, tau)) < most
    run = {"duration": 0.01, "step": 1e-3}
    assert gap(system.simulate((q, u), **run).q, cpu.simulate((q, u), **run).q) < most
    texts = [text for text in gpu.functions if text not in known and "__launch_bounds__(64, 2)" in text]
    assert len(texts) >= 2 and all("parked[64] = " in text for text in texts)
    assert sum("further[0] = " in text for text in texts) >= 2


def test_parking_keeps_to_the_registers() -> None:
    """Of a hundred values, used in another order than they were made, at most ten are alive."""
    rng = np.random.default_rng(0)
    lines = [f"    const double v{i} = q[{i}];" if i < 3 else f"    const double v{i} = v{i - 1} * v{i - 2};"
             for i in range(100)]
    lines += [f"    out[{k}] = v{i} + v{j};" for k, (i, j) in enumerate(rng.permutation(100).reshape(50, 2))]
    made = park(lines, "double", 10, 30, 64)
    text = "\n".join(made.lines)
    uses: dict[str, list[int]] = {}
    for at, line in enumerate(made.lines):
        for name in re.findall(r"\bv[\d_]+\b", line):
            uses.setdefault(name, []).append(at)
    alive = [sum(u[0] <= at < u[-1] for u in uses.values()) for at in range(len(made.lines))]
    assert max(alive) == 10 and made.shared == 30 and "volatile double further[" in text
    values = run_python(lines, 0, 0)
    assert run_python(made.lines, 30 * 64, 100) == values and len(values) == 50


@pytest.mark.parametrize("real", ("double", "float"))
def test_parking_keeps_to_the_shared_memory_of_the_device(real: str) -> None:
    lines = [f"    const {real} v{i} = q[{i % 3}] * {i}.0;" for i in range(900)]
    lines += [f"    out[{i}] = v{i};" for i in range(900)]
    for room in (65_536, 102_400, 167_936, 233_472):
        for way in (*(parking_ways.parking_way([lines], real, room, far) for far in (False, True)),
                    *(parking_ways.half_way(driver, {(1.0, 2.0): 0}, real, room) for driver in (False, True))):
            _, shared = parking_ways.kept(lines, real, way)
            assert 0.8 * min(room, 200_000) < way.blocks * (shared + 1024) <= room


def run_python(lines: list[str], shared: int, local: int) -> dict[int, float]:
    """What straight statements of C++ write to ``out``."""
    names: dict[str, Any] = {"q": [1.01, 0.99, 1.02], "out": {}, "parked": [0.0] * shared, "further": [0.0] * local}
    for line in lines:
        if "=" in line and "shared_of_block" not in line:
            exec(line.strip().removeprefix("const double ").rstrip(";"), {}, names)
    found: dict[int, float] = names["out"]
    return found


# -- sweeps -----------------------------------------------------------------------------------------
@with_compiler
def test_sweeps_on_a_device(gpu: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many runs in one launch, whatever the chunks; some runs fail, and the others do not notice."""
    m = bc.load("pendulum")
    m.add_joint_spring("damper", "hinge", damping=m.parameter("damping", 0.1))
    samples = {"damping": np.linspace(0.0, 1.0, 300), "u.hinge": np.linspace(0.1, 1.5, 300)}
    samples["u.hinge"][7] = 1e200
    run = {"duration": 0.1, "step": 0.01}
    before = len(gpu.functions)
    with pytest.warns(bc.SimulationWarning, match="1 of 300 runs did not finish"):
        mine = bc.sweep(m, samples=samples, run=run, reduce="last", backend="cuda")
    assert len(gpu.functions) > before
    with pytest.warns(bc.SimulationWarning):
        other = bc.sweep(m, samples=samples, run=run, reduce="last")
    with pytest.warns(bc.SimulationWarning):
        parts = bc.sweep(m, samples=samples, run=run, reduce="last", backend="cuda", chunk=100)
    rest = np.arange(300) != 7
    assert gap(mine.q_last[rest], other.q_last[rest]) < 1e-12 and mine.status[7] != "finished"
    assert np.array_equal(mine.q_last, parts.q_last, equal_nan=True)
    monkeypatch.setattr(cuda_runtime, "current", device.current)
    cuda_runtime.made.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy", None)
    device.current.cache_clear()
    with pytest.raises(bc.ModelError, match="needs CuPy"):
        bc.sweep(m, samples=samples, run=run, reduce="last", backend="cuda")
    alone = bc.sweep(m, samples={k: v[:5] for k, v in samples.items()}, run=run, reduce="last", backend="cuda",
                     executor="processes")  # workers without a GPU compute on the CPU
    assert gap(alone.q_last, other.q_last[:5]) == 0.0
    with pytest.raises(bc.ModelError, match="sweep: no backend 'metal'"):
        bc.sweep(m, samples=samples, run=run, backend="metal")


# -- without a device -------------------------------------------------------------------------------
def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(cuda_runtime, "current", device.current)
    device.current.cache_clear()
    cuda_runtime.made.cache_clear()
    with pytest.raises(bc.errors.ModelError, match=r"needs CuPy.*pip install bellcrank\[cuda\]"):
        bc.compile(bc.load("pendulum"), backend="cuda")
    for backend in ("llvm", "numpy"):
        with pytest.raises(bc.errors.ModelError, match="precision='single'.*backend='cuda'"):
            bc.compile(bc.load("pendulum"), backend=backend, precision="single")
    with pytest.raises(bc.errors.ModelError, match="precision 'half' must be"):
        bc.compile(bc.load("pendulum"), precision="half")


# -- states that stay on the device ---------------------------------------------------------------
@with_compiler
@pytest.mark.parametrize("backend", ("cuda", "llvm"))
def test_rollouts_are_the_motion(gpu: HostDevice, backend: str) -> None:
    """With forces from a policy and others that depend on time, parameters of every state, resets, and states that need
    another plan on the way."""
    m = bc.load("four_bar")
    m.parameter("gust", 0.0)
    m.add_joint_force("wind", "A", lambda at: at.parameter("gust") * bc.math.sin(40.0 * at.t))
    m.add_output("later", lambda at: at.t + at.q("A"))
    gusts = {"gust": np.linspace(-2.0, 2.0, STATES)}
    cpu = bc.compile(m).with_parameters(**gusts)
    system = bc.compile(m, backend=backend, independent=["C"]).with_parameters(**gusts)
    q, u, _ = states(bc.compile(m))
    u = u * np.linspace(0.1, 12.0, len(u))[:, None]
    motion = bc.rollout(system, (q, u), step=1e-3)
    again, now = None, 0.0
    for _ in range(10):
        motion.step(-0.3 * motion.u, steps=20)
        last = (q, u) if again is None else (again.q.values[-1], again.u.values[-1])
        again, now = cpu.simulate((*last, now), 0.02, step=1e-3, tau=-0.3 * last[1], output=0.02), now + 0.02
    assert np.abs(motion.outputs()["later"] - 0.2 - again.q.values[-1, :, 0]).max() < 1e-7
    kind = HostArray if backend == "cuda" else np.ndarray
    assert type(motion.q) is kind and motion.alive.all() and abs(motion.t - 0.2) < 1e-12
    assert np.abs(motion.q - again.q.values[-1]).max() < 1e-7
    mask = np.zeros(STATES, dtype=bool)
    mask[[2, 35]] = True
    before = np.array(motion.q)
    motion.reset(mask, (q[0], u[0]))
    assert np.array_equal(np.asarray(motion.q)[mask], q[[0, 0]]) and np.array_equal(motion.u[~mask], motion.u[~mask])
    assert np.array_equal(np.asarray(motion.q)[~mask], before[~mask])
    with pytest.raises(bc.StateError, match="tau: the last axis must have 4 entries"):
        motion.step(np.zeros(7))
    with pytest.raises(bc.ModelError, match="side by side"):
        bc.rollout(system, (q, u), step=1e-3, stepper="dopri5")


@with_compiler
@pytest.mark.parametrize("backend", ("cuda", "llvm"))
def test_rollouts_with_rigid_contacts(gpu: HostDevice, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two balls on a bar that land, the second later: more places are near then than there was memory for."""
    monkeypatch.setattr(rollout, "SLOTS", 1)
    monkeypatch.setattr(rollout, "RigidRun", None)  # no state is one by itself
    m = bc.Mechanism("bar")
    m.add_body("bar", bc.Inertia(1.0, (0, 0, 0), (0.01, 0.01, 0.01)))
    m.add_joint("free", bc.Free(), m.ground, "bar")
    for x in (-0.2, 0.2):
        m.add_shape("bar", bc.Sphere(0.1), bc.Pose((x, 0.0, 0.0)), role="collision")
    m.add_contacts("all", bc.Plane(), friction=0.3)
    cpu, system = bc.compile(m), bc.compile(m, backend=backend)
    q, u = np.repeat(cpu.neutral()[None], STATES, 0), np.zeros((STATES, 6))
    u[:, 1], u[:, 3], tilt = -1.0, 0.5, np.linspace(0.005, 0.5, STATES)
    q[:, 0], q[:, 2], q[:, 6] = np.cos(0.5 * tilt), np.sin(0.5 * tilt), 0.1 + 0.2 * np.sin(tilt)
    motion = bc.rollout(system, (q, u), step=1e-3, stepper="moreau")
    for _ in range(3):
        motion.step({"free.vx": 1.0}, steps=20)
    again = cpu.simulate((q, u), 0.06, stepper="moreau", step=1e-3, tau={"free.vx": 1.0}, output=0.01)
    assert (again.contact_force.values[-1] < -0.1).any(axis=0)[[2, 5]].all()  # both balls of some have landed
    assert motion.alive.all() and np.abs(motion.q - again.q.values[-1]).max() < 1e-12
    assert np.abs(motion.u - again.u.values[-1]).max() < 1e-10
    acted = np.abs(again.contact_force.values[-1].reshape(STATES, 2, 3))
    for i, forces in enumerate(motion.contact_forces.values()):
        assert np.abs(forces[:, 0] - acted[:, i, 2]).max() < 1e-6
        assert np.abs(forces[:, 1] - np.hypot(acted[:, i, 0], acted[:, i, 1])).max() < 1e-6
    assert 0.0 < motion.contact_residual < 1e-9
    motion.reset(range(STATES), (q, u))
    assert motion.contact_residual == 0.0
    motion.step({"free.vx": 1.0}, steps=20)
    assert np.abs(motion.u - again.u.values[2]).max() < 1e-10  # as if nothing had been before


@with_compiler
@pytest.mark.parametrize(("backend", "stepper"), (("cuda", "rk4"), ("llvm", "moreau")))
def test_rollouts_push_joints_that_were_cut(gpu: HostDevice, backend: str, stepper: str) -> None:
    """Named at first, later or no more, with a motor that is at its limit; with a poor first plan, and
    springs of their own. The piston meets a stop where there are contacts. It stays away from its dead center then:
    steps of "moreau" through it depend on the plan (by h**3 over the distance), which a run chooses anew."""
    m = bc.load("slider_crank")
    m.add_actuator("motor", "big_end", 0.5)
    m.add_joint_spring("spring", "slide", stiffness=m.parameter("stiffness", 10.0))
    if stepper == "moreau":
        m.add_shape("piston", bc.Sphere(0.1), role="collision")
        m.add_shape(m.ground, bc.Plane(), bc.Pose.about("y", -np.pi / 2, (0.08, 0, 0)), role="collision")
        m.add_contact("stop", "piston", "ground")
    last: dict[str, Any] = {}
    most = 4.0 if stepper == "rk4" else 1.0
    forces = [{"big_end": 3.0}, {"crank": np.linspace(-most, most, STATES), "big_end": -most}, None, {"slide": 30.0},
              {"crank.angle": 1.0, "slide": 60.0}]
    cpu, system = (bc.compile(m, cut=["crank"], independent=["big_end"], backend=x) for x in ("llvm", backend))
    assert cpu.loops == ("crank",)
    state = cpu.assemble(q={"slide": -0.03}, u={"slide": 0.5}, guess={"crank": 0.7, "big_end": -0.7})
    q, u = (np.repeat(x[None], STATES, 0) for x in (state.q, state.u))
    stiffness, near = np.linspace(5.0, 20.0, STATES), 1e-9 if stepper == "rk4" else 1e-6  # iterations go on there
    motion = bc.rollout(system.with_parameters(stiffness=stiffness), (q, u), step=1e-3, stepper=stepper)
    for tau in forces:
        motion.step(tau, steps=30)
        last = tau or last
        run = cpu.with_parameters(stiffness=stiffness).simulate((q, u), 0.03, step=1e-3, stepper=stepper, tau=last)
        q, u = run.q.values[-1], run.u.values[-1]
        assert motion.alive.all() and gap(motion.q, q) < near and gap(motion.u, u) < near
        if stepper == "moreau":  # runs begin without what contacts remember
            motion.reset(np.arange(STATES), (q, u))
    motion.step(np.zeros(4), steps=5)
    assert gap(motion.u, cpu.with_parameters(stiffness=stiffness).simulate(
        (q, u), 0.005, step=1e-3, stepper=stepper).u.values[-1]) < near
    slide = q[:, cpu.coordinate_names.index("slide.slide")]
    assert stepper == "rk4" or np.abs(slide + 0.02).min() < 1e-9  # some have met it
    with pytest.raises(bc.ModelError, match="rollout: tau: no joint called 'cranc'"):
        motion.step({"cranc": 1.0})


@with_compiler
def test_texts_are_made_once(gpu: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rollouts and runs there are, of however many states."""
    made = []
    printing = device_driver.driver_text
    monkeypatch.setattr(device_driver, "driver_text", lambda *given: made.append(given) or printing(*given))
    cpu, system = pair("four_bar")
    q, u, _ = states(cpu)
    for many in (STATES, 20):
        motion = bc.rollout(system, (q[:many], u[:many]), step=1e-3)
        motion.step(steps=2)
        assert gap(motion.q, cpu.simulate((q[:many], u[:many]), 2e-3, step=1e-3).q[-1]) < 1e-12
        assert len(made) == 1


@with_compiler
def test_states_that_cannot_go_on_are_told_of(gpu: HostDevice) -> None:
    _, system = pair("double_pendulum")
    q, u = np.full((STATES, 2), 0.3), np.zeros((STATES, 2))
    u[4] = 1e200  # squares of it overflow
    motion = bc.rollout(system, (q, u), step=1e-3)
    motion.step(steps=3)
    assert np.flatnonzero(~np.asarray(motion.alive)).tolist() == [4] == [f.state for f in motion.failures]
    motion.step(steps=3)
    assert len(motion.failures) == 1 and np.isfinite(motion.q).all()
    motion.reset([4], (q[0], u[0]))
    motion.step(steps=1)
    assert motion.alive.all() and not motion.failures


@with_compiler
def test_the_page_as_pasted(gpu: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """With something in the place of CuPy."""
    cupy = types.ModuleType("cupy")
    cupy.asarray = lambda a, order: np.array(a, order=order).view(HostArray)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    check_prints(page_named("gpu"), 1)


@with_compiler
def test_derivatives(gpu: HostDevice) -> None:
    """Matrices whose columns a CPU finds in lanes."""
    cpu, other = pair("arm")
    q, u, tau = states(cpu)
    with_matrices = [s.derivatives("forward_dynamics", q, u, tau, by=("u", "tau")) for s in (cpu, other)]
    for name in ("u", "tau"):
        assert gap(with_matrices[1][name], with_matrices[0][name]) < 1e-12
