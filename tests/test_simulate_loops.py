"""Motions of machines with loops: independent solutions, drift, changes of independent speeds, laws of time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from motions import angle_gap, ball_pendulum, drop, final, four_bar_rows, integrated, reference, system
from whole_states import whole_q, whole_state

METHODS = ("elimination", "dense", "kane", "recursive", "operator", "momenta", "complement", "reduction", "divide")


# -- independent solutions ----------------------------------------------------------------------------
@pytest.mark.parametrize(("stepper", "settings"), [
    ("rk4", {"step": 1e-4}), ("rk8", {"step": 1e-3}), ("gauss", {"step": 1e-3}), ("radau", {"step": 5e-4}),
    ("dop853", {"rtol": 1e-13, "atol": 1e-13}), ("dopri5", {"rtol": 1e-13, "atol": 1e-13})])
@pytest.mark.parametrize("branch", ("open_elbow_up", "crossed_elbow_down"))
def test_four_bar_falls_as_computed_elsewhere(branch: str, stepper: str, settings: dict[str, float]) -> None:
    times, q, u = four_bar_rows(branch)
    result = system("four_bar").simulate((q[0], u[0]), 5.0, stepper=stepper, output=0.1, **settings)
    assert np.abs(result.time - times).max() < 1e-12
    assert angle_gap(result.q.values[-1], q[-1]) < 1e-9 and np.abs(result.u.values[-1] - u[-1]).max() < 1e-8
    assert angle_gap(result.q, q) < 1e-8
    assert abs(result.attrs["energy_drift"]) < 1e-11 and result.attrs["largest_loop_error"] < 1e-14


@pytest.mark.parametrize("method", METHODS)
def test_formulations_move_alike_on_a_loop(method: str) -> None:
    times, q, u = four_bar_rows("crossed_elbow_down")
    n, step = (3, 5e-3) if method == "dense" else (11, 2e-3)
    result = system("four_bar", method).simulate((q[0], u[0]), times[n - 1], step=step, stepper="rk8", output=0.1)
    assert result.attrs["formulation"] == method and result.attrs["status"] == "finished"
    assert angle_gap(result.q, q[:n]) < 1e-9 and np.abs(result.u - u[:n]).max() < 1e-8
    assert float(result.loop_error.max()) < 1e-12 and float(result.loop_rate_error.max()) < 1e-11


@pytest.mark.everyday(4)
@pytest.mark.parametrize(("name", "methods"), [
    ("rope_ladder", ("recursive", "dense")), ("delta", ("dense",)),
    ("andrews", ("kane", "momenta", "dense", "reduction")), ("jansen", ("recursive", "dense")),
    ("bricard", ("kane", "momenta", "dense", "reduction")), ("bennett", ("recursive", "momenta", "operator")),
    ("double_wishbone", ("recursive",)), ("slider_crank", ("kane", "momenta", "dense", "reduction"))])
def test_formulations_move_alike_in_the_zoo(name: str, methods: tuple[str, ...]) -> None:
    """General loops: balls, universals, redundant conditions, springs."""
    options = {"rungs": 2} if name == "rope_ladder" else {}
    machine = system(name, **options)
    state = machine.assemble(u={"left1": [0.5, 0.3]} if name == "rope_ladder" else {})
    duration, step = (0.004, 2e-4) if name == "andrews" else (0.05, 5e-3)
    first = machine.simulate(state, duration, step=step, stepper="rk8")
    assert first.attrs["formulation"] == "elimination"
    for method in methods:
        result = system(name, method, **options).simulate(state, duration, step=step, stepper="rk8")
        assert result.attrs["status"] == "finished", (method, result.attrs["reason"])
        assert float(result.loop_error.max()) < 1e-12
        assert np.abs(final(result) - final(first)).max() < 1e-9 * (1.0 + np.abs(final(first)).max()), method


def test_multipliers_on_a_paradoxical_linkage() -> None:
    machine = system("bricard", "dense")
    result = machine.simulate(machine.assemble(), 0.1, step=2e-3, stepper="rk4", output=0.02)
    assert abs(result.attrs["energy_drift"]) < 1e-6


def five_bar_start(branch: str) -> tuple[np.ndarray, dict[str, Any]]:
    data = reference("five_bar")["branches"][branch]
    row = data["free"][0]
    return five_bar(row), data


def five_bar(row: Any) -> np.ndarray:
    """All angles of a row of the reference; that of the joint at the tip follows from the sums of both legs."""
    a, b, c, d = (row[name] for name in ("theta11", "theta21", "theta12", "theta22"))
    return np.array([a, b, c, d, a + b - c - d])


def passes(branch: str, stepper: str, **settings: float) -> None:
    """The base angles are asked for as independent, and stop being so on the way: others take over."""
    q, data = five_bar_start(branch)
    machine = bc.compile(bc.load("five_bar"), independent=["leg1.1", "leg2.1"])
    allowed = max(1e-9, 100.0 * settings.get("rtol", 0.0))
    for row in data["free"][1:]:
        result = machine.simulate((q, np.zeros(5)), row["t"], stepper=stepper, **settings)
        assert angle_gap(result.q.values[-1], five_bar(row)) < allowed
    end = data["singularity"]
    reached = machine.simulate((q, np.zeros(5)), end["t_sing"], stepper=stepper, **settings)
    assert abs(reached.q.values[-1, 0] - end["theta11"]) < 100.0 * allowed
    assert abs(reached.u.values[-1, 0] - end["rates(phi11,phi21,phi12,phi22)"][0]) < 1000.0 * allowed
    beyond = machine.simulate((q, np.zeros(5)), end["t_sing"] + 0.3, stepper=stepper, **settings)
    assert beyond.attrs["status"] == "finished"
    adaptive = "rtol" in settings  # long steps may stride over the singular position; samples there are interpolated
    assert adaptive or beyond.attrs["switches"] >= 1
    energy, most = beyond["energy"].values, float(beyond.kinetic_energy.max())
    assert np.abs(energy - energy[0]).max() < allowed * most * (10.0 if adaptive else 1.0)
    assert abs(energy[-1] - energy[0]) < allowed * most
    assert float(beyond.loop_error.max()) < 1e-12


@pytest.mark.parametrize(("stepper", "step"), [("rk4", 2e-4), ("rk8", 1e-3), ("gauss", 1e-3), ("radau", 1e-3)])
@pytest.mark.parametrize("branch", ("elbow_up", "elbow_down"))
def test_five_bar_passes_its_coordinate_singularity(branch: str, stepper: str, step: float) -> None:
    passes(branch, stepper, step=step)


@pytest.mark.parametrize(("branch", "stepper", "tolerance"), [
    ("elbow_up", "dop853", 1e-12), pytest.param("elbow_down", "dop853", 1e-12),
    pytest.param("elbow_up", "dopri5", 1e-8), pytest.param("elbow_down", "dopri5", 1e-8)])
def test_five_bar_passes_it_with_adaptive_steps(branch: str, stepper: str, tolerance: float) -> None:
    passes(branch, stepper, rtol=tolerance, atol=tolerance)


def test_a_change_of_independent_speeds_leaves_no_trace() -> None:
    """The same run with other independent speeds, with multipliers, and in plain NumPy."""
    q, data = five_bar_start("elbow_up")
    end = data["singularity"]["t_sing"] + 0.2
    bases = bc.compile(bc.load("five_bar"), independent=["leg1.1", "leg2.1"])
    first = bases.simulate((q, np.zeros(5)), end, stepper="rk8", step=5e-3)
    assert first.attrs["switches"] >= 1
    for options in ({}, {"method": "momenta"}, {"method": "recursive"}):
        machine = bc.compile(bc.load("five_bar"), **options)
        run = machine.simulate((q, np.zeros(5)), end, stepper="rk8", step=5e-3)
        assert run.attrs["status"] == "finished" and np.abs(final(run) - final(first)).max() < 1e-8, options
    # in plain NumPy from shortly before the singular position to shortly behind it
    near = bases.simulate((q, np.zeros(5)), end - 0.25, stepper="rk8", step=5e-3)
    state = near.q.values[-1], near.u.values[-1]
    runs = [bc.compile(bc.load("five_bar"), backend=backend).simulate(state, 0.1, stepper="rk4", step=2e-3)
            for backend in ("llvm", "numpy")]
    assert runs[0].attrs["switches"] >= 1 and np.abs(final(runs[0]) - final(runs[1])).max() < 1e-9


def test_wishes_for_independent_speeds_do_not_end_a_run() -> None:
    q, data = five_bar_start("elbow_up")
    end = data["singularity"]["t_sing"] - 0.05
    machine = bc.compile(bc.load("five_bar"), independent=["leg1.1", "leg2.1"])
    near = machine.simulate((q, np.zeros(5)), end, stepper="rk8", step=5e-3)
    result = machine.simulate((near.q.values[-1], near.u.values[-1]), 0.1, stepper="rk4", step=5e-3)
    assert result.attrs["status"] == "finished" and result.attrs["switches"] >= 1


def test_independent_speeds_change_in_a_turning_four_bar() -> None:
    """The rocker's speed vanishes twice in each turn of the crank: a plan built on it must be left."""
    m = bc.load("four_bar")
    free = bc.compile(m)
    rocker = bc.compile(m, independent=["C"])
    state = free.assemble(q={"A": 0.3}, u={"A": 12.0})
    runs = [machine.simulate(state, 2.0, step=5e-4, stepper="rk4") for machine in (free, rocker)]
    assert runs[1].attrs["switches"] >= 1
    assert np.abs(final(runs[0]) - final(runs[1])).max() < 1e-6
    assert float(runs[1].loop_error.max()) < 1e-12


def ladder_rates(t: float, y: np.ndarray) -> np.ndarray:
    jx, jy, jz, s = 1.132, 1.092, 0.05, 1.28
    (q1, q2, u1, u2), g = y, 9.81
    c, d = math.cos(q2), math.sin(q2)
    a1 = (2.0 * (jx - jz) * d * c * u1 * u2 - g * s * math.sin(q1) * c) / (jx * c * c + jz * d * d)
    a2 = (-(jx - jz) * d * c * u1 * u1 - g * s * math.cos(q1) * d) / jy
    return np.array([u1, u2, a1, a2])


@pytest.mark.parametrize(("cells", "stepper"), [(1, "rk8"), (16, "rk8"), (256, "rk8"), (1, "dop853"), (16, "gauss"),
                                                (16, "dop853")])
def test_ladders_of_all_lengths_move_alike(cells: int, stepper: str) -> None:
    machine = system("ladder", schedule="rolled" if cells == 16 else "auto", cells=cells)
    parts: list[float] = []
    speeds: list[float] = []
    for name in machine.joint_names:
        parts += [0.6, 0.4] if name.startswith("arm") else [-0.4 if name.startswith("inner") else 0.4]
        speeds += [-0.5, 1.0] if name.startswith("arm") else [-1.0 if name.startswith("inner") else 1.0]
    duration = 0.5 if cells > 16 else 2.0
    result = machine.simulate((parts, speeds), duration, step=5e-3, stepper=stepper, output=0.5, rtol=1e-12, atol=1e-12)
    assert result.attrs["status"] == "finished"
    exact = integrated(ladder_rates, [0.6, 0.4, -0.5, 1.0], result.time.values)
    at = machine.joint_names.index("arm0")
    assert at == 0
    assert np.abs(result.q.values[:, :2] - exact[:, :2]).max() < 1e-9
    assert np.abs(result.u.values[:, :2] - exact[:, 2:]).max() < 1e-9
    path = reference("ladder")["trajectory"]
    n = len(result.time)
    assert np.abs(result.q.values[:, 0] - path["q1"][:n]).max() < 1e-9
    assert float(result.loop_error.max()) < 1e-12


def quarter_car_array(machine: bc.System, values: dict[str, Any], knuckle: str) -> np.ndarray:
    return np.concatenate([np.atleast_1d(values[knuckle if n == "knuckle" else n]) for n in machine.joint_names
                           if n not in machine.loops])


@pytest.mark.parametrize(("stepper", "settings"), [
    ("rk4", {"step": 1e-4}), ("rk8", {"step": 1e-3}), ("radau", {"step": 5e-4}), ("gauss", {"step": 1e-3}),
    ("dop853", {"rtol": 1e-12, "atol": 1e-12})])
def test_quarter_car_over_the_bump(stepper: str, settings: dict[str, float]) -> None:
    machine, rows = system("quarter_car"), reference("quarter_car")["response"]
    q = whole_q(machine, quarter_car_array(machine, rows[0]["q"], "knuckle_quat_wxyz"))
    result = machine.simulate((q, np.zeros(machine.nu)), rows[-1]["t"], stepper=stepper, output=0.02, **settings)
    for k, row in enumerate(rows):
        assert abs(float(result.time[k]) - row["t"]) < 1e-12
        q, u = whole_state(machine, quarter_car_array(machine, row["q"], "knuckle_quat_wxyz"),
                           quarter_car_array(machine, row["u"], "knuckle_omega_child"))
        assert np.abs(result.q.values[k] - q).max() < 1e-9 and np.abs(result.u.values[k] - u).max() < 1e-7
    assert (np.abs(np.linalg.norm(result.q[:, 1:5], axis=-1) - 1.0) < 1e-15).all()


# -- long runs ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ("elimination", "momenta"))
def test_gauss_keeps_the_energy_of_a_linkage(method: str) -> None:
    _, q, u = four_bar_rows("crossed_elbow_down")
    result = system("four_bar", method).simulate((q[0], u[0]), 100.0, step=2e-3, stepper="gauss", output=0.1)
    energy = result["energy"].values
    assert np.abs(energy - energy[0]).max() < 1e-10 * float(result.kinetic_energy.max())


def test_no_drift_in_a_million_steps() -> None:
    _, q, u = four_bar_rows("crossed_elbow_down")
    result = system("four_bar").simulate((q[0], u[0]), 1000.0, step=1e-3, stepper="rk4", output=1.0)
    assert result.attrs["steps"] == 1_000_000 and len(result.time) == 1001
    assert float(result.loop_error.max()) < 1e-12 and float(result.loop_rate_error.max()) < 1e-11
    a, b, c, d = np.cumsum(result.q.values, axis=-1).T
    x = 0.3 * np.cos(a) + np.cos(b) + 0.6 * np.cos(c) - 1.0
    y = 0.3 * np.sin(a) + np.sin(b) + 0.6 * np.sin(c)
    assert np.hypot(x, y).max() < 1e-12 and angle_gap(d, 0.0) < 1e-12


def test_a_spatial_loop_with_quaternions_does_not_drift() -> None:
    machine = system("rope_ladder", rungs=2)
    result = machine.simulate(machine.assemble(u={"left1": [0.5, 0.3]}), 20.0, step=2e-3, output=0.1)
    assert float(result.loop_error.max()) < 1e-12
    for k in range(machine.nq):
        if machine.coordinate_names[k].endswith(".w"):
            assert np.abs(np.linalg.norm(result.q.values[:, k:k + 4], axis=-1) - 1.0).max() < 1e-15
    assert np.abs(result["energy"] - result["energy"][0]).max() < 1e-5


# -- laws of time -------------------------------------------------------------------------------------
def turned(law: Any) -> bc.Mechanism:
    m = bc.load("four_bar")
    m.prescribe("A", law)
    return m


@pytest.mark.parametrize("stepper", ("rk4", "rk8", "gauss", "radau", "semi_implicit", "dopri5", "dop853"))
def test_a_driven_crank_follows_its_law(stepper: str) -> None:
    """All other joints follow from the loop: nothing is integrated but the law itself."""
    machine = bc.compile(turned(lambda t: 1.0 + 2.0 * t + 0.3 * bc.math.sin(5.0 * t)))
    result = machine.simulate(machine.assemble(), 3.0, step=2e-3, stepper=stepper, output=0.1)
    t = result.time.values
    assert np.abs(result.q.values[:, 0] - (1.0 + 2.0 * t + 0.3 * np.sin(5.0 * t))).max() < 1e-13
    assert np.abs(result.u.values[:, 0] - (2.0 + 1.5 * np.cos(5.0 * t))).max() < 1e-12
    assert float(result.loop_error.max()) < 1e-13 and float(result.loop_rate_error.max()) < 1e-11
    found = system("four_bar").assemble(q={"A": result.q.values[-1, 0]}, u={"A": result.u.values[-1, 0]},
                                        guess=result.q.values[-1])
    assert np.abs(found.q - result.q.values[-1]).max() < 1e-12
    assert np.abs(found.u - result.u.values[-1]).max() < 1e-10


@pytest.mark.parametrize("backend", ("llvm", "numpy"))
def test_a_driven_pivot_carries_a_pendulum(backend: str) -> None:
    """A pendulum whose pivot shakes: against the equation by hand, driven joint and free one together."""
    m = bc.Mechanism("shaken")
    cart = m.add_body("cart", bc.Inertia.sphere(2.0, 0.1))
    bob = m.add_body("bob", bc.Inertia.point(1.0, (0.0, 0.0, -1.0)))
    m.add_joint("slide", bc.Prismatic("z"), m.ground, cart)
    m.add_joint("hinge", bc.Revolute("x"), cart, bob)
    m.prescribe("slide", lambda t: 0.1 * bc.math.sin(20.0 * t))

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        return np.array([y[1], -(9.81 - 40.0 * math.sin(20.0 * t)) * math.sin(y[0])])

    machine = bc.compile(m, backend=backend)
    duration = 1.0 if backend == "llvm" else 0.03
    result = machine.simulate(([0.0, 0.5], [0.0, 0.0]), duration, step=1e-3, stepper="rk8")
    exact = integrated(rates, [0.5, 0.0], [duration])[-1]
    assert abs(result.q.values[-1, 1] - exact[0]) < 1e-10 and abs(result.u.values[-1, 1] - exact[1]) < 1e-9
    assert abs(result.q.values[-1, 0] - 0.1 * math.sin(20.0 * duration)) < 1e-14


@pytest.mark.parametrize("method", ("recursive", "kane", "operator", "momenta", "complement", "dense"))
def test_laws_of_time_in_all_formulations(method: str) -> None:
    m = bc.load("double_pendulum")
    m.prescribe("shoulder", lambda t: 0.5 * bc.math.cos(3.0 * t))
    runs = [bc.compile(m, key).simulate(([0.5, 0.2], [0.0, 1.0]), 1.0, step=2e-3, stepper="rk8")
            for key in ("recursive", method)]
    assert np.abs(final(runs[0]) - final(runs[1])).max() < 1e-9


def test_a_start_off_the_law_is_put_on_it() -> None:
    machine = bc.compile(turned(lambda t: 1.0 + 2.0 * t))
    at = machine.assemble()
    later = machine.simulate(bc.State(at.q, at.u, 0.0), 0.5, step=1e-3)
    again = machine.simulate(bc.State(later.q.values[-1], later.u.values[-1], 0.5), 0.5, step=1e-3)
    whole = machine.simulate(at, 1.0, step=1e-3)
    assert float(again.time[0]) == 0.5 and float(again.time[-1]) == 1.0
    assert np.abs(final(again) - final(whole)).max() < 1e-12


def test_wrenches_that_depend_on_time() -> None:
    m = drop()
    m.add_wrench("push", "ball", force=(0.0, 0.0, lambda t: 9.81 + 6.0 * t))
    for stepper in ("rk4", "gauss", "dop853"):
        result = bc.compile(m).simulate(([0.0], [0.0]), 1.0, step=0.1, stepper=stepper)
        assert abs(result.q.values[-1, 0] - 1.0) < 1e-12 and abs(result.u.values[-1, 0] - 3.0) < 1e-12


def test_a_prescribed_quaternion() -> None:
    m = ball_pendulum()
    m.prescribe("ball", lambda t: (bc.math.cos(t), bc.math.sin(t), 0.0, 0.0))
    m.add_body("tail", bc.Inertia.rod(0.3, (0, 0, 0), (0, 0, -0.5)))
    m.add_joint("tail", bc.Revolute("x"), "bob", "tail", bc.Pose((0, 0, -1)))
    machine = bc.compile(m)
    result = machine.simulate(([1, 0, 0, 0, 0.3], [0, 0, 0, 0.0]), 2.0, step=2e-3, output=0.1)
    t = result.time.values
    zero = np.zeros_like(t)
    assert np.abs(result.q.values[:, :4] - np.stack([np.cos(t), np.sin(t), zero, zero], -1)).max() < 1e-13
    assert np.abs(result.u.values[:, :3] - [2.0, 0.0, 0.0]).max() < 1e-12


@pytest.mark.parametrize(("stepper", "rtol"), [("dop853", 1e-6), ("dop853", 1e-9), ("dopri5", 1e-7)])
def test_long_steps_over_bad_pivots_lose_no_samples(stepper: str, rtol: float) -> None:
    """Samples within a step are corrected with the plan of the step, which may have no pivot at some of them."""
    system = bc.compile(bc.load("jansen"))
    state = system.assemble(u=2.0 * np.random.default_rng(4).normal(size=system.nu))
    times = np.linspace(0.0, 3.0, 3001)
    result = system.simulate(state, 3.0, stepper=stepper, rtol=rtol, output=times)
    assert result.attrs["status"] == "finished" and result.attrs["steps"] < 1000
    assert np.array_equal(result["time"].values, times)
    assert result.attrs["largest_loop_error"] < 1e-12 and np.isfinite(result["u"].values).all()
    assert result.attrs["energy_drift"] < 50.0 * rtol
    both = system.simulate((np.stack([state.q] * 2), np.stack([state.u, -state.u])), 3.0, stepper=stepper, rtol=rtol,
                           output=times)
    assert np.array_equal(both["q"].values[:, 0], result["q"].values)
    assert np.isfinite(both["u"].values).all() and np.abs(both["loop_error"].values).max() < 1e-12


@pytest.mark.parametrize(("method", "duration"), [("elimination", 2.0), ("dense", 0.5)])
def test_a_rocker_that_turns_back(method: str, duration: float) -> None:
    """A crank turns a slotted rocker, which stands still twice in a turn: the conditions are redundant, too."""
    m = bc.Mechanism("quick return", gravity=(0.0, -9.81, 0.0))
    crank = m.add_body("crank", bc.Inertia.rod(1.0, (0, 0, 0), (0.2, 0, 0)))
    rocker = m.add_body("rocker", bc.Inertia.rod(3.0, (0, 0, 0), (1.0, 0, 0)))
    m.add_joint("A", bc.Revolute("z"), m.ground, crank)
    m.add_joint("B", bc.Revolute("z"), m.ground, rocker, parent_pose=bc.Pose((-0.5, 0, 0)))
    m.add_constraint("slot", bc.PointOnLine("x"), rocker, crank, child_pose=bc.Pose((0.2, 0, 0)))
    machine = bc.compile(m, method)
    state = machine.assemble(q={"A": 1.0}, u={"A": 5.0})
    result = machine.simulate(state, duration, step=1e-3)
    assert result.attrs["status"] == "finished" and result.attrs["largest_loop_error"] < 1e-12
    assert np.ptp(result["q"].values[:, 0]) > 2.0
    assert result.attrs["energy_drift"] < 1e-4


def test_dead_points_of_the_independent_joint() -> None:
    """The same with a block in the slot and the rocker's speed independent: where the rocker stands still the crank's
    speed has no pivot, and long before that corrections divide the errors of the steps by little."""
    m = bc.Mechanism("quick return", gravity=(0.0, -9.81, 0.0))
    crank = m.add_body("crank", bc.Inertia.rod(1.0, (0, 0, 0), (0.2, 0, 0)))
    rocker = m.add_body("rocker", bc.Inertia.rod(3.0, (0, 0, 0), (1.0, 0, 0)))
    block = m.add_body("block", bc.Inertia.sphere(0.1, 0.02))
    m.add_joint("A", bc.Revolute("z"), m.ground, crank)
    m.add_joint("B", bc.Revolute("z"), m.ground, rocker, parent_pose=bc.Pose((-0.5, 0, 0)))
    m.add_joint("slide", bc.Prismatic("x"), rocker, block)
    m.add_joint("turn", bc.Revolute("z"), block, crank, child_pose=bc.Pose((0.2, 0, 0)))
    machine = bc.compile(m, "elimination", independent=["B"])
    result = machine.simulate(machine.assemble(q={"A": 1.0}, u={"A": 5.0}), 2.0, step=1e-3)
    assert result.attrs["status"] == "finished" and result.attrs["switches"] >= 1
    assert result.attrs["energy_drift"] < 2e-4


def engine(cylinders: int = 2) -> bc.Mechanism:
    """Slider-cranks on one crank, described from the crank outwards."""
    radius, length = 0.045, 0.14
    m = bc.Mechanism("engine", gravity=(0, 0, 0))
    m.add_body("crank", bc.Inertia.cylinder(12.0, 0.03, 0.4, "x"))
    m.add_joint("main", bc.Revolute("x"), m.ground, "crank", at=(0, 0, 0))
    m.add_joint_spring("drag", "main", damping=m.parameter("drag", 0.001))
    for i in range(cylinders):
        x, throw = 0.1 * i, radius * (-1) ** i
        m.add_body(f"rod{i}", bc.Inertia.rod(0.5, (x, 0, throw), (x, 0, throw + length)))
        m.add_body(f"piston{i}", bc.Inertia.cylinder(0.4, 0.04, 0.05, "z", (x, 0, throw + length)))
        m.add_joint(f"pin{i}", bc.Revolute("x"), "crank", f"rod{i}", at=(x, 0, throw))
        m.add_joint(f"wrist{i}", bc.Revolute("x"), f"rod{i}", f"piston{i}", at=(x, 0, throw + length))
        m.add_joint(f"bore{i}", bc.Prismatic("z"), m.ground, f"piston{i}", at=(x, 0, throw + length))
    return m


def test_loops_that_close_on_a_crank_need_no_other_plan() -> None:
    """Along the axes of a crank that turns, pivots would vanish four times a turn, and lanes would fall apart."""
    system = bc.compile(engine(), actuated=["main"])
    state = system.assemble(q={"main": 0.3}, u={"main": 100.0})
    run = system.simulate(state, 0.1, step=2e-4)
    assert run.attrs["switches"] == 0 and "pin1" in system.loops
    assert run.attrs["largest_loop_error"] < 1e-12
    exact = bc.compile(engine(), actuated=["main"], method="dense", backend="numpy")
    state = system.assemble(q=run.q.values[-1], u=run.u.values[-1])
    np.testing.assert_allclose(system.forward_dynamics(state), exact.forward_dynamics(state), rtol=1e-9, atol=1e-7)
    for joint, load in exact.reactions(state).items():
        planar = [0, 4, 5]  # the others are not determined
        np.testing.assert_allclose(system.reactions(state)[joint][planar], load[planar], rtol=1e-8, atol=1e-7)


def test_loads_in_the_plane_of_an_engine_are_determined() -> None:
    """Rows that are nothing but rounding say nothing."""
    found = bc.analyze.explain(bc.compile(engine(), actuated=["main"]))
    assert {name.partition(": ")[2] for name in found.undetermined} == {"along x", "about y", "about z"}
    assert [r.kind for r in found.loops] == ["Prismatic", "Revolute"]
