"""Methods of integration: orders of convergence, tolerances, energy, stiffness, and the reference in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.formulations import method_names
from motions import (
    angle_gap,
    ball_pendulum,
    ball_pendulum_rates,
    double_pendulum_rates,
    drop,
    final,
    four_bar_rows,
    integrated,
    slope,
    system,
    thrown,
)

FIXED = ("rk4", "rk8", "semi_implicit", "gauss", "radau")
ORDERS = {"rk4": 4, "rk8": 8, "semi_implicit": 1, "gauss": 6, "radau": 5}

#: numbers of steps for one second in which each method's error is well above rounding
TREE_STEPS = {"rk4": (200, 283, 400, 566), "rk8": (16, 20, 25, 32), "semi_implicit": (400, 800, 1600, 3200),
              "gauss": (50, 71, 100, 141), "radau": (50, 71, 100, 141)}
BALL_STEPS = {"rk4": (50, 71, 100, 141), "rk8": (12, 16, 20, 25), "semi_implicit": (200, 400, 800, 1600),
              "gauss": (12, 17, 24, 34), "radau": (12, 17, 24, 34)}
LOOP_STEPS = {"rk4": (80, 113, 160, 226), "rk8": (30, 38, 48, 60), "semi_implicit": (800, 1600, 3200),
              "gauss": (50, 71, 100, 141), "radau": (50, 71, 100, 141)}


def errors(machine: bc.System, stepper: str, steps: Any, q: Any, u: Any, exact: Any, duration: float = 1.0
           ) -> list[float]:
    out = []
    for n in steps:
        result = machine.simulate((q, u), duration, step=duration / n, stepper=stepper)
        assert result.attrs["status"] == "finished" and result.attrs["steps"] == n
        out.append(angle_gap(final(result), exact))
    return out


def assert_order(stepper: str, steps: Any, found: list[float]) -> None:
    order = -slope(steps, found)
    assert ORDERS[stepper] - 0.35 < order < ORDERS[stepper] + 0.9, (stepper, order, found)
    assert min(found) > 1e-14


@pytest.mark.parametrize("stepper", FIXED)
def test_order_on_a_double_pendulum(stepper: str) -> None:
    q, u = [0.8, 0.5], [0.0, -1.0]
    exact = integrated(double_pendulum_rates, [*q, *u], [1.0])[-1]
    found = errors(system("double_pendulum"), stepper, TREE_STEPS[stepper], q, u, exact)
    assert_order(stepper, TREE_STEPS[stepper], found)


@pytest.mark.parametrize("stepper", FIXED)
def test_order_with_a_quaternion(stepper: str) -> None:
    """On the sphere of unit quaternions, where each step ends with a projection."""
    q, u = [1.0, 0.0, 0.0, 0.0], [2.0, -1.0, 3.0]
    exact = integrated(ball_pendulum_rates, [*q, *u], [1.0])[-1]
    exact[:4] /= np.linalg.norm(exact[:4])
    steps = BALL_STEPS[stepper]
    assert_order(stepper, steps, errors(bc.compile(ball_pendulum()), stepper, steps, q, u, exact))


@pytest.mark.parametrize("stepper", FIXED)
def test_order_on_the_four_bar(stepper: str) -> None:
    times, q, u = four_bar_rows("crossed_elbow_down")
    assert times[5] == 0.5
    found = errors(system("four_bar"), stepper, LOOP_STEPS[stepper], q[0], u[0], np.concatenate([q[5], u[5]]), 0.5)
    assert_order(stepper, LOOP_STEPS[stepper], found)


@pytest.mark.parametrize("stepper", ("dopri5", "dop853"))
@pytest.mark.parametrize("name", ("double_pendulum", "four_bar"))
def test_error_follows_the_tolerance(name: str, stepper: str) -> None:
    machine = system(name)
    if name == "four_bar":
        _, qs, us = four_bar_rows("crossed_elbow_down")
        q, u, exact = qs[0], us[0], np.concatenate([qs[10], us[10]])
    else:
        q, u = np.array([1.2, -0.7]), np.array([0.5, 1.0])
        exact = integrated(double_pendulum_rates, [*q, *u], [1.0])[-1]
    tolerances = 10.0 ** np.arange(-4.0, -11.0, -1.0)
    found, steps = [], []
    for tolerance in tolerances:
        result = machine.simulate((q, u), 1.0, stepper=stepper, rtol=tolerance, atol=tolerance, output=1.0)
        found.append(angle_gap(final(result), exact))
        steps.append(result.attrs["steps"])
    assert 0.7 < slope(tolerances, found) < 1.35, found
    assert (np.array(found) < 300.0 * tolerances).all(), found
    assert (np.diff(steps) >= 0).all() and steps[-1] > steps[0]


@pytest.mark.parametrize("stepper", ("dopri5", "dop853"))
def test_samples_between_steps_are_as_good_as_steps(stepper: str) -> None:
    """Dense output: samples at any times, far closer than the steps, lie on the solution."""
    q, u = [1.2, -0.7], [0.5, 1.0]
    times = np.sort(np.random.default_rng(3).uniform(0.001, 1.0, 60))
    exact = integrated(double_pendulum_rates, [*q, *u], times)
    result = system("double_pendulum").simulate((q, u), 1.0, stepper=stepper, rtol=1e-9, atol=1e-9, output=times)
    assert result.attrs["steps"] < len(times) or stepper == "dopri5"
    at = result.sel(time=times)
    assert np.abs(np.concatenate([at.q, at.u], axis=-1) - exact).max() < 1e-7
    assert float(result.time[-1]) == 1.0 and float(result.time[0]) == 0.0


def test_dense_output_keeps_loops_and_quaternions() -> None:
    times = np.linspace(0.0, 0.5, 101)
    _, q, u = four_bar_rows("crossed_elbow_down")
    result = system("four_bar").simulate((q[0], u[0]), 0.5, stepper="dopri5", rtol=1e-5, output=times)
    assert result.attrs["steps"] < 60 and len(result.time) == 101
    assert float(result.loop_error.max()) < 1e-13 and float(result.loop_rate_error.max()) < 1e-11
    result = bc.compile(ball_pendulum()).simulate(([1, 0, 0, 0], [2, -1, 3]), 0.5, stepper="dop853", output=times)
    assert np.abs(np.linalg.norm(result.q, axis=-1) - 1.0).max() < 5e-16


def test_methods_of_other_libraries() -> None:
    q, u = [1.2, -0.7], [0.5, 1.0]
    exact = integrated(double_pendulum_rates, [*q, *u], [0.2])[-1]
    for stepper, allowed in (("scipy/RK45", 1e-7), ("scipy/DOP853", 1e-8), ("scipy/Radau", 1e-5), ("scipy/LSODA", 1e-5),
                             ("scipy/BDF", 1e-4), ("scipy/RK23", 1e-4)):
        result = system("double_pendulum").simulate((q, u), 0.2, stepper=stepper, output=0.1, rtol=1e-8, atol=1e-10)
        assert np.abs(final(result) - exact).max() < allowed, stepper
    pytest.importorskip("sksundae")
    for stepper in ("sundials/BDF", "sundials/Adams"):
        result = system("double_pendulum").simulate((q, u), 0.2, stepper=stepper, output=0.1, rtol=1e-8, atol=1e-10)
        assert np.abs(final(result) - exact).max() < 1e-5, stepper


@pytest.mark.parametrize("stepper", ("scipy/DOP853", "sundials/Adams"))
def test_other_libraries_stay_on_the_loops(stepper: str) -> None:
    if stepper.startswith("sundials"):
        pytest.importorskip("sksundae")
    _, q, u = four_bar_rows("open_elbow_up")
    result = system("four_bar").simulate((q[0], u[0]), 0.3, stepper=stepper, output=0.05)
    assert float(result.loop_error.max()) < 1e-13
    assert angle_gap(result.q.values[-1], q[3]) < 1e-7


# -- the reference ------------------------------------------------------------------------------------
def starts(name: str) -> tuple[Any, Any, Any]:
    """Machine, q and u."""
    if name == "four_bar":
        _, q, u = four_bar_rows("crossed_elbow_down")
        return bc.load("four_bar"), q[0], u[0]
    if name == "thrown":
        return thrown(), [1, 0, 0, 0, 0.1, 0.2, 0.3, 0.4], [1.0, 2.0, -1.0, 0.5, 0.2, 3.0, -2.0]
    if name == "ball_pendulum":
        return ball_pendulum(), [1, 0, 0, 0], [2.0, -1.0, 3.0]
    return bc.load("double_pendulum"), [1.2, -0.7], [0.5, 1.0]


@pytest.mark.filterwarnings("ignore:.*energy.*stepper=.rk4:bellcrank.SimulationWarning")  # steps are coarse
@pytest.mark.parametrize("stepper", FIXED)
@pytest.mark.parametrize("name", ("double_pendulum", "ball_pendulum", "thrown", "four_bar"))
def test_numpy_steps_are_the_compiled_steps(name: str, stepper: str) -> None:
    machine, q, u = starts(name)
    runs = [bc.compile(machine, backend=backend).simulate((q, u), 0.1, step=0.01, stepper=stepper, output=0.01)
            for backend in ("llvm", "numpy")]
    assert [r.attrs["status"] for r in runs] == ["finished"] * 2 and runs[1].attrs["backend"] == "numpy"
    for field in ("q", "u", "energy"):
        size = 1.0 + float(np.abs(runs[0][field]).max())
        assert np.abs(runs[0][field] - runs[1][field]).max() < 1e-11 * size, field


@pytest.mark.parametrize("stepper", ("rk4", "gauss", "dop853"))
@pytest.mark.parametrize("name", ("double_pendulum", "thrown", "four_bar"))
def test_rolled_code_steps_alike(name: str, stepper: str) -> None:
    machine, q, u = starts(name)
    runs = [bc.compile(machine, schedule=schedule).simulate((q, u), 0.2, step=0.01, stepper=stepper, output=0.01)
            for schedule in ("unrolled", "rolled")]
    assert [r.attrs["status"] for r in runs] == ["finished"] * 2
    allowed = 1e-8 if stepper == "dop853" else 1e-11  # steps are chosen by their error
    assert np.abs(runs[0].q - runs[1].q).max() < allowed and np.abs(runs[0].u - runs[1].u).max() < 10.0 * allowed


@pytest.mark.parametrize("method", [m for m in method_names() if m.split("/")[0] not in ("elimination", "reduction")])
def test_formulations_move_alike_on_trees(method: str) -> None:
    q, u = [1.2, -0.7], [0.5, 1.0]
    exact = integrated(double_pendulum_rates, [*q, *u], [1.0])[-1]
    result = bc.compile(bc.load("double_pendulum"), method).simulate((q, u), 1.0, step=0.01, stepper="rk8")
    assert result.attrs["formulation"] == method
    assert np.abs(final(result) - exact).max() < 1e-10


def test_free_bodies_follow_their_momentum() -> None:
    """A thrown machine: its centre of mass on a parabola, its angular momentum about it constant, in all methods."""
    machine, q, u = starts("thrown")
    for method in ("recursive", "momenta", "kane"):
        s = bc.compile(machine, method)
        result = s.simulate((q, u), 2.0, step=2e-3, stepper="rk8", output=0.1)
        t = result.time.values
        com, momentum = s.center_of_mass(result.q.values), s.momentum(result.q.values, result.u.values)
        speed = momentum[0, 3:] / s.model.mass
        fall = com[0] + t[:, None] * speed + 0.5 * t[:, None]**2 * np.array([0.0, 0.0, -9.81])
        assert np.abs(com - fall).max() < 1e-10
        spin = momentum[:, :3] - np.cross(com, momentum[:, 3:])
        assert np.abs(spin - spin[0]).max() < 1e-9
        assert np.abs(result["energy"] - result["energy"][0]).max() < 1e-9 * float(np.abs(result.kinetic_energy).max())


# -- momenta, energy, unit quaternions ----------------------------------------------------------------
@pytest.mark.parametrize("stepper", FIXED)
def test_momenta_are_integrated_with_the_same_order(stepper: str) -> None:
    q, u = [0.8, 0.5], [0.0, -1.0]
    exact = integrated(double_pendulum_rates, [*q, *u], [1.0])[-1]
    machine = bc.compile(bc.load("double_pendulum"), "momenta")
    assert_order(stepper, TREE_STEPS[stepper], errors(machine, stepper, TREE_STEPS[stepper], q, u, exact))


def test_gauss_in_momenta_is_symplectic() -> None:
    """Energy oscillates about its value and does not drift, with long steps over many periods."""
    machine = bc.compile(bc.load("double_pendulum"), "momenta")
    result = machine.simulate(([0.9, 0.4], [0.0, 0.0]), 200.0, step=0.02, stepper="gauss", output=0.2)
    error = result["energy"].values - result["energy"].values[0]
    scale = float(result.kinetic_energy.max())
    assert np.abs(error).max() < 1e-7 * scale
    halves = np.abs(error[:500]).max(), np.abs(error[500:]).max()
    assert halves[1] < 1.5 * halves[0]


def test_semi_implicit_keeps_energy_roughly() -> None:
    result = system("pendulum").simulate(([1.0], [0.0]), 100.0, step=2e-3, stepper="semi_implicit", output=0.1)
    error = np.abs(result["energy"].values - result["energy"].values[0])
    assert error.max() < 0.02 and error[-100:].max() < 1.2 * error[:100].max()


@pytest.mark.parametrize("stepper", ("rk4", "gauss", "dopri5"))
def test_quaternions_stay_unit(stepper: str) -> None:
    result = bc.compile(ball_pendulum()).simulate(([1, 0, 0, 0], [2, -1, 3]), 100.0, step=2e-3, stepper=stepper,
                                                  output=0.5, rtol=1e-6)
    assert np.abs(np.linalg.norm(result.q, axis=-1) - 1.0).max() < 1e-15
    assert abs(result.attrs["energy_drift"]) < 1e-4


# -- stiffness ----------------------------------------------------------------------------------------
def stiff() -> bc.System:
    """A pendulum on a slide that a strong damper all but locks: time constants of 1e-5 s and 1 s."""
    m = bc.Mechanism("stiff")
    cart = m.add_body("cart", bc.Inertia.sphere(1.0, 0.1))
    bob = m.add_body("bob", bc.Inertia.point(1.0, (0.0, 0.0, -1.0)))
    m.add_joint("slide", bc.Prismatic("y"), m.ground, cart)
    m.add_joint("hinge", bc.Revolute("x"), cart, bob)
    m.add_joint_spring("lock", "slide", stiffness=1e4, damping=1e5)
    return bc.compile(m)


def stiff_rates(t: float, y: np.ndarray) -> np.ndarray:
    x, a, v, w = y
    force = -1e4 * x - 1e5 * v
    matrix = np.array([[2.0, np.cos(a)], [np.cos(a), 1.0]])
    right = np.array([force + np.sin(a) * w * w, -9.81 * np.sin(a)])
    return np.concatenate([[v, w], np.linalg.solve(matrix, right)])


def test_radau_where_explicit_steps_explode() -> None:
    from scipy.integrate import solve_ivp

    machine, q, u = stiff(), [0.02, 1.0], [0.0, 0.5]
    exact = solve_ivp(stiff_rates, (0.0, 1.0), [*q, *u], method="Radau", rtol=1e-11, atol=1e-12).y[:, -1]
    result = machine.simulate((q, u), 1.0, step=2e-3, stepper="radau")
    assert result.attrs["status"] == "finished"
    assert np.abs(final(result) - exact).max() < 1e-6


def test_explicit_steps_that_explode() -> None:
    machine, q, u = stiff(), [0.02, 1.0], [0.0, 0.5]
    with pytest.warns(bc.SimulationWarning, match="diverged"):
        bad = machine.simulate((q, u), 1.0, step=2e-3, stepper="rk4")
    assert bad.attrs["status"] == "diverged" and "smaller steps" in bad.attrs["reason"]
    assert 1 <= len(bad.time) < 500 and np.isfinite(bad.q).all()


def test_radau_on_a_stiff_loop() -> None:
    m = bc.load("four_bar")
    m.add_joint_spring("bush", "C", stiffness=10.0, damping=3e5)
    machine = bc.compile(m)
    state = machine.assemble(q={"A": 1.0}, u={"A": 1.0})
    exact = machine.simulate(state, 0.2, stepper="dop853", rtol=1e-11, atol=1e-12, output=0.2)
    result = machine.simulate(state, 0.2, step=5e-3, stepper="radau", output=0.2)
    assert exact.attrs["steps"] > 10 * result.attrs["steps"]
    assert np.abs(final(result) - final(exact)).max() < 1e-6


def test_adaptive_radau_on_stiff_machines() -> None:
    """As accurate as asked, in fewer steps than an explicit pair takes, which stability binds; samples are as good."""
    from scipy.integrate import solve_ivp

    machine, q, u = stiff(), [0.02, 1.0], [0.0, 0.5]
    times = np.linspace(0.0, 1.0, 11)
    exact = solve_ivp(stiff_rates, (0.0, 1.0), [*q, *u], method="Radau", rtol=1e-11, atol=1e-12, t_eval=times).y.T
    result = machine.simulate((q, u), 1.0, stepper="radau5", output=0.1, rtol=1e-8, atol=1e-9)
    assert result.attrs["status"] == "finished" and result.attrs["steps"] < 300
    assert np.abs(np.hstack([result.q, result.u]) - exact).max() < 1e-7
    m = bc.load("four_bar")
    m.add_joint_spring("bush", "C", stiffness=10.0, damping=3e5)
    loop = bc.compile(m)
    state = loop.assemble(q={"A": 1.0}, u={"A": 1.0})
    fine, found = (loop.simulate(state, 0.2, stepper=s, rtol=1e-8, atol=1e-8, output=0.05)
                   for s in ("dop853", "radau5"))
    assert np.abs(np.asarray(found.q) - np.asarray(fine.q)).max() < 1e-6
    assert found.attrs["steps"] < fine.attrs["steps"] / 10
    assert np.abs(loop.loop_error(found.q.values)).max() < 1e-12


@pytest.mark.parametrize("stepper", ("radau5", "radau", "gauss"))
def test_exact_jacobians_and_differences_lead_to_the_same_motion(stepper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from bellcrank.simulate import machine as module

    def ends() -> np.ndarray:
        system = bc.compile(bc.load("four_bar"))
        how = {"rtol": 1e-9, "atol": 1e-9} if stepper == "radau5" else {"step": 0.01}
        return final(system.simulate(system.assemble(q={"A": 1.0}), 0.5, stepper=stepper, output=0.5, **how))

    exact = ends()
    monkeypatch.setattr(module, "SLOPE_NODES", 0)
    found = np.abs(ends() - exact).max()
    assert found < 1e-9 and (found > 0.0 or stepper != "radau5")  # the others may end at the same rounding


@pytest.mark.parametrize("name", ["four_bar", "ball_arm"])
def test_the_jacobian_of_the_rates(name: str) -> None:
    """Of all coordinates as they stand, quaternions included."""
    from bellcrank.derivatives.rates import rates_jacobian

    m = bc.load("four_bar") if name == "four_bar" else bc.Mechanism(name)
    if name == "ball_arm":
        arm = m.add_body("arm", bc.Inertia.box(1.0, (0.1, 0.2, 0.3), (0.2, 0, 0)))
        m.add_joint("ball", bc.Spherical(), m.ground, arm)
    system = bc.compile(m, backend="numpy")
    q = system.assemble().q if system.loops else system.random_state(np.random.default_rng(0))[0]
    u = system.project(q, np.ones(system.nu)).u
    run = system.kernels.planned(system.plans.general()) if system.loops else system.kernels.evaluator
    function = rates_jacobian(system.kernels.functions, run.tree)
    assert function is not None
    size, tau = system.nq + system.nu, np.zeros(system.nu)
    found = run.run(function, False, [q[None], u[None], tau[None]], 1)[0].reshape(size, size)

    def rates(y: np.ndarray) -> np.ndarray:
        given = {"q": y[:system.nq], "u": y[system.nq:], "tau": tau}
        return np.concatenate([system.kernels.run("coordinate_rates", given, evaluator=run),
                               system.kernels.run("forward_dynamics", given, evaluator=run)])

    y = np.concatenate([q, u])
    expected = np.stack([(rates(y + 1e-5 * e) - rates(y - 1e-5 * e)) / 2e-5 for e in np.eye(size)], axis=-1)
    assert np.abs(found - expected).max() < 1e-7 * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("stepper", ("gauss", "radau"))
def test_implicit_steps_that_do_not_converge(stepper: str) -> None:
    """A force that no step of this length can follow: an honest end, not garbage."""
    machine = bc.compile(drop(law=lambda q, u: -1e12 * q * q * q))
    with pytest.warns(bc.SimulationWarning, match="smaller steps"):
        result = machine.simulate(([100.0], [1e7]), 10.0, step=1.0, stepper=stepper)
    assert result.attrs["status"] == "failed" and len(result.time) >= 1


@pytest.mark.filterwarnings("ignore:.*energy.*stepper=.rk4:bellcrank.SimulationWarning")  # steps are coarse
# -- pieces -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stepper", (*FIXED, "dopri5", "dop853", "radau5"))
@pytest.mark.parametrize("name", ("double_pendulum", "four_bar"))
def test_results_do_not_depend_on_the_pace_of_the_machine(name: str, stepper: str, monkeypatch: pytest.MonkeyPatch
                                                          ) -> None:
    """How much is done between two looks at the keyboard depends on the clock; numbers must not."""
    from bellcrank.simulate import courses

    machine, q, u = starts(name)
    s = bc.compile(machine)
    runs = []
    for seconds in (1e-9, 1e3):
        monkeypatch.setattr(courses, "_PIECE", seconds)
        runs.append(s.simulate((q, u), 0.5, step=5e-3, stepper=stepper, output=0.01, rtol=1e-6, atol=1e-6))
    assert np.array_equal(runs[0].q, runs[1].q) and np.array_equal(runs[0].u, runs[1].u)


@pytest.mark.parametrize("stepper", ["dopri5", "dop853", "radau5"])
def test_adaptive_steppers_without_compiled_code(stepper: str) -> None:
    """SciPy's method of the same family takes their place."""
    plain, compiled = (bc.compile(bc.load("pendulum"), backend=backend) for backend in ("numpy", "llvm"))
    ends = [s.simulate(([0.3], [0.0]), 0.2, stepper=stepper).q.values[-1] for s in (plain, compiled)]
    assert np.abs(ends[0] - ends[1]).max() < 1e-6
