"""Controllers: sampled and traced, held and continuous, and what happens when they misbehave."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from motions import ball, double_pendulum_rates, final, four_bar_rows, integrated, system

G = 9.81
FIXED = ("rk4", "rk8", "semi_implicit", "gauss", "radau")
START = ([0.3, -0.2], [0.5, 0.1])


def damped(t: Any, q: Any, u: Any) -> Any:
    return {"shoulder": -3.0 * q["shoulder"] - 0.4 * u["shoulder"] + 0.5 * t, "elbow": 0.2 - u["elbow"]}


def damped_arrays(t: float, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    return np.stack([-3.0 * q[..., 0] - 0.4 * u[..., 0] + 0.5 * t, 0.2 - u[..., 1]], axis=-1)


def by_hand(duration: float) -> np.ndarray:
    """The double pendulum with these forces: the rates by hand plus the forces' part."""
    machine = system("double_pendulum")

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        more = np.linalg.solve(machine.mass_matrix(y[:2]), damped_arrays(t, y[:2], y[2:]))
        return double_pendulum_rates(t, y) + np.concatenate([[0.0, 0.0], more])

    return integrated(rates, [*START[0], *START[1]], [duration])[-1]


# -- traced -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stepper", ("rk8", "gauss", "radau", "dopri5", "dop853", "scipy/DOP853"))
@pytest.mark.parametrize("method", ("recursive", "momenta"))
def test_traced_forces_act_in_every_stage(stepper: str, method: str) -> None:
    machine = system("double_pendulum", method)
    result = machine.simulate(START, 1.0, step=5e-3, stepper=stepper, control=bc.Traced(damped), rtol=1e-11, atol=1e-12)
    assert np.abs(final(result) - by_hand(1.0)).max() < 1e-8
    if stepper != "scipy/DOP853":
        assert np.abs(result.tau - damped_arrays(0.0, result.q.values, result.u.values)
                      - 0.5 * result.time.values[:, None] * [1.0, 0.0]).max() < 1e-9


def test_traced_forces_keep_the_order() -> None:
    machine, exact = system("double_pendulum"), by_hand(1.0)
    found = [np.abs(final(machine.simulate(START, 1.0, step=1.0 / n, control=bc.Traced(damped))) - exact).max()
             for n in (50, 100, 200)]
    assert 3.6 < math.log2(found[0] / found[1]) < 4.8 and 3.6 < math.log2(found[1] / found[2]) < 4.8


@pytest.mark.parametrize("answer", ("mapping", "list", "tuple", "array"))
def test_answers_of_all_kinds(answer: str) -> None:
    def control(t: Any, q: Any, u: Any) -> Any:
        x = damped(t, q, u)
        values = [x["shoulder"], x["elbow"]]
        return {"mapping": x, "list": values, "tuple": tuple(values), "array": np.array(values)}[answer]

    result = system("double_pendulum").simulate(START, 0.2, control=bc.Traced(control))
    plain = system("double_pendulum").simulate(START, 0.2, control=bc.Traced(damped))
    assert np.array_equal(result.q, plain.q)


def test_switching_forces_are_traced() -> None:
    control = bc.Traced(lambda t, q, u: [bc.math.select_less(t, 0.5, G + 2.0, G - 2.0)])
    result = ball().simulate(([0.0], [0.0]), 1.0, step=0.01, control=control)
    assert abs(result.u.values[-1, 0]) < 0.05 and abs(result.q.values[-1, 0] - 0.5) < 0.02


# -- sampled ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stepper", FIXED)
@pytest.mark.parametrize("name", ("double_pendulum", "four_bar"))
def test_sampled_and_traced_with_one_period_are_the_same(name: str, stepper: str) -> None:
    machine = system(name)
    if name == "four_bar":
        _, q, u = four_bar_rows("crossed_elbow_down")
        state: Any = (q[0], u[0])

        def traced(t: Any, q: Any, u: Any) -> Any:
            return {"A": 2.0 - 0.3 * u["A"] + t}

        def sampled(t: float, q: np.ndarray, u: np.ndarray) -> Any:
            return {"A": 2.0 - 0.3 * u[0] + t}
    else:
        state, traced, sampled = START, damped, damped_arrays
    for period in (None, 2e-3, 2e-2):
        runs = [machine.simulate(state, 0.2, step=2e-3, stepper=stepper, output=1e-2, control=control)
                for control in (bc.Sampled(sampled, period), bc.Traced(traced, period or 2e-3))]
        assert np.abs(runs[0].q - runs[1].q).max() < 1e-12 and np.abs(runs[0].u - runs[1].u).max() < 1e-11


def held(period: float, control: Any) -> tuple[np.ndarray, list[float]]:
    """The ball with forces held over periods, by hand: parabolas one after another."""
    t, x, v, calls = 0.0, 0.0, 1.0, []
    for k in range(round(1.0 / period)):
        t = k * period
        calls.append(t)
        a = control(t, np.array([x]), np.array([v]))[0] - G
        x, v = x + v * period + a * period**2 / 2, v + a * period
    return np.array([x, v]), calls


@pytest.mark.parametrize("stepper", ("rk4", "rk8", "gauss", "radau", "dopri5", "dop853", "scipy/RK45"))
@pytest.mark.parametrize("period", (0.1, 0.25))
def test_forces_are_held_exactly(stepper: str, period: float) -> None:
    calls: list[float] = []

    def law(t: Any, q: Any, u: Any) -> Any:
        return [G - 3.0 * q[0] - 0.5 * u[0] + 7.0 * t]

    def control(t: float, q: np.ndarray, u: np.ndarray) -> Any:
        calls.append(t)
        return law(t, q, u)

    exact, expected = held(period, law)
    run = {"step": 0.05, "stepper": stepper, "output": 0.05}
    result = ball().simulate(([0.0], [1.0]), 1.0, control=bc.Sampled(control, period), **run)
    assert np.abs(final(result) - exact).max() < 1e-9
    assert np.abs(np.array(calls) - expected).max() < 1e-12  # once per period, and not at the end
    at = np.minimum(np.floor(result.time.values / period + 1e-9), len(expected) - 1).astype(int)
    assert len(np.unique(result.tau.values[:, 0])) == len(expected)
    starts = [int(np.flatnonzero(at == k)[0]) for k in range(len(expected))]
    assert np.abs(result.tau.values[:, 0] - result.tau.values[starts, 0][at]).max() < 1e-12
    traced = ball().simulate(([0.0], [1.0]), 1.0, control=bc.Traced(law, period), **run)
    assert np.abs(final(traced) - exact).max() < 1e-9


def test_a_function_alone_is_sampled_every_step() -> None:
    calls: list[tuple[float, tuple[int, ...]]] = []

    def control(t: float, q: np.ndarray, u: np.ndarray) -> list[float]:
        calls.append((t, q.shape))
        q[:] = np.nan  # its own copy
        return [0.0]

    result = ball().simulate(([1.0], [0.0]), 0.1, step=0.01, control=control)
    assert len(calls) == 10 and np.abs(np.array([c[0] for c in calls]) - 0.01 * np.arange(10)).max() < 1e-12
    assert {c[1] for c in calls} == {(1,)} and abs(result.q.values[-1, 0] - (1 - G / 200)) < 1e-12


@pytest.mark.parametrize("batch", ((5,), (2, 3), (1,)))
def test_controllers_of_batches(batch: tuple[int, ...]) -> None:
    """A sampled controller sees all states at once, a traced one each for itself."""
    rng = np.random.default_rng(8)
    q, u = rng.normal(size=(*batch, 2)), rng.normal(size=(*batch, 2))
    machine = system("double_pendulum")
    run = {"step": 5e-3, "output": 5e-2}
    sampled = machine.simulate((q, u), 0.2, control=bc.Sampled(damped_arrays, 5e-3), **run)
    traced = machine.simulate((q, u), 0.2, control=bc.Traced(damped, 5e-3), **run)
    assert sampled.q.shape[1:] == (*batch, 2) and sampled.tau.shape == sampled.u.shape
    assert np.abs(sampled.q - traced.q).max() < 1e-12
    for i in np.ndindex(batch):
        one = machine.simulate((q[i], u[i]), 0.2, control=bc.Sampled(damped_arrays, 5e-3), **run)
        assert np.abs(sampled.q.values[(slice(None), *i)] - one.q.values).max() < 1e-12


def test_plain_numpy_and_controllers() -> None:
    for control in (bc.Traced(damped), bc.Traced(damped, 0.02), bc.Sampled(damped_arrays, 0.02), damped_arrays):
        runs = [system("double_pendulum", backend=backend).simulate(START, 0.1, step=0.01, control=control)
                for backend in ("llvm", "numpy")]
        assert np.abs(runs[0].q - runs[1].q).max() < 1e-12, control
        assert np.abs(runs[0].u - runs[1].u).max() < 1e-11, control


# -- constant forces and wrenches ---------------------------------------------------------------------
def test_constant_forces_and_wrenches() -> None:
    push = {"ball": [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]}
    for options, force in (({"tau": [3.0]}, 3.0), ({"wrenches": push}, 3.0), ({"tau": [1.0], "wrenches": push}, 4.0),
                           ({"wrenches": lambda t, q, u: push}, 3.0),
                           ({"wrenches": bc.Traced(lambda t, q, u: push)}, 3.0),
                           ({"wrenches": bc.Traced(lambda t, q, u: push, 0.02), "tau": [1.0]}, 4.0)):
        for stepper in ("rk4", "semi_implicit", "gauss"):
            result = ball().simulate(([0.0], [0.0]), 1.0, step=0.01, stepper=stepper, **options)
            assert abs(result.u.values[-1, 0] - (force - G)) < 1e-11, (options, stepper)


@pytest.mark.parametrize("stepper", ("rk8", "gauss", "dop853"))
def test_wrenches_as_functions(stepper: str) -> None:
    """A spring to the ground, as an external force computed from the state."""
    function = bc.Traced(lambda t, q, u: {"ball": [0.0, 0.0, 0.0, 0.0, 0.0, G - 4.0 * q["slide"]]})
    result = ball().simulate(([1.0], [0.0]), 2.0, step=0.01, stepper=stepper, wrenches=function, rtol=1e-11, atol=1e-12)
    assert abs(result.q.values[-1, 0] - math.cos(4.0)) < 1e-9


def test_controlled_wrenches_and_forces_together() -> None:
    wrenches = bc.Sampled(lambda t, q, u: {"ball": [0, 0, 0, 0, 0, 2.0 * t]}, 0.1)
    control = bc.Sampled(lambda t, q, u: [G - t], 0.1)
    result = ball().simulate(([0.0], [0.0]), 1.0, step=0.01, control=control, wrenches=wrenches)
    assert abs(result.u.values[-1, 0] - 0.1 * np.arange(0.0, 1.0, 0.1).sum()) < 1e-12
    both = ball().simulate(([0.0], [0.0]), 1.0, step=0.01, control=bc.Traced(lambda t, q, u: [G - t], 0.1),
                           wrenches=bc.Traced(lambda t, q, u: {"ball": [0, 0, 0, 0, 0, 2.0 * t]}, 0.1))
    assert abs(both.u.values[-1, 0] - result.u.values[-1, 0]) < 1e-12


@pytest.mark.parametrize("stepper", ("rk4", "gauss"))
def test_sampled_and_held_traced_controllers_together(stepper: str) -> None:
    def wrench(t: Any, q: Any, u: Any) -> Any:
        return {"ball": [0, 0, 0, 0, 0, 2.0 * t]}

    def force(t: Any, q: Any, u: Any) -> Any:
        return [G - t]

    for control, wrenches in ((bc.Traced(force, 0.1), bc.Sampled(wrench, 0.1)),
                              (bc.Sampled(force, 0.1), bc.Traced(wrench, 0.1))):
        result = ball().simulate(([0.0], [0.0]), 1.0, step=0.01, stepper=stepper, control=control, wrenches=wrenches)
        assert abs(result.u.values[-1, 0] - 0.45) < 1e-12


# -- misbehaviour -------------------------------------------------------------------------------------
@pytest.mark.parametrize("answer", ([1.0], [1.0, 2.0, 3.0], 1.0, None, "text", {"knee": 1.0}, {"elbow": [1.0, 2.0]},
                                    np.zeros((2, 3)), [math.nan, 0.0], {"elbow": math.inf}))
def test_bad_answers_of_controllers(answer: Any) -> None:
    """From the third call on: what came before is returned, with the reason."""
    def control(t: float, q: np.ndarray, u: np.ndarray) -> Any:
        return [0.0, 0.0] if t < 0.0199 else answer

    with pytest.warns(bc.SimulationWarning, match="control|text"):
        result = system("double_pendulum").simulate(START, 0.1, step=0.01, control=control, output=0.01)
    assert result.attrs["status"] == "failed" and result.attrs["reason"]
    assert len(result.time) in (2, 3) and np.isfinite(result.q).all()
    plain = system("double_pendulum").simulate(START, 0.1, step=0.01, output=0.01)
    assert np.abs(result.q.values - plain.q.values[:len(result.time)]).max() < 1e-14


def test_steps_before_a_failing_controller_are_kept() -> None:
    def control(t: float, q: np.ndarray, u: np.ndarray) -> Any:
        if t > 0.0199:
            raise ValueError("no idea")
        return [0.0, 0.0]

    with pytest.warns(bc.SimulationWarning):
        result = system("double_pendulum").simulate(START, 0.1, step=0.01, control=control, output=0.01)
    assert len(result.time) == 3  # 0, 0.01 and 0.02 s, where it was asked


@pytest.mark.parametrize("stepper", ("rk4", "gauss", "dop853"))
@pytest.mark.parametrize(("error", "status"), [(ValueError("no idea"), "failed"), (KeyboardInterrupt(), "interrupted"),
                                               (ZeroDivisionError(), "failed")])
def test_controllers_that_raise(error: BaseException, status: str, stepper: str) -> None:
    def control(t: float, q: np.ndarray, u: np.ndarray) -> Any:
        if t > 0.05:
            raise error
        return [0.0, 0.0]

    with pytest.warns(bc.SimulationWarning, match=status):
        result = system("double_pendulum").simulate(START, 0.1, step=1e-3, stepper=stepper, output=1e-3,
                                                    control=bc.Sampled(control, 1e-3))
    assert result.attrs["status"] == status
    assert 48 <= len(result.time) <= 53 and abs(float(result.time[-1]) - 0.05) < 2.5e-3
    if status == "failed":
        assert type(error).__name__ in result.attrs["reason"] and "control" in result.attrs["reason"]


def test_controllers_that_raise_at_once() -> None:
    def control(t: float, q: np.ndarray, u: np.ndarray) -> Any:
        raise ValueError("no idea")

    with pytest.warns(bc.SimulationWarning, match="no idea"):
        result = system("double_pendulum").simulate(START, 0.1, control=control)
    assert result.attrs["status"] == "failed" and len(result.time) <= 1


@pytest.mark.parametrize(("control", "text"), [
    (3.0, "control"), ("pid", "control"), ([1.0, 2.0], "control"),
    *(pytest.param(bc.Traced(f), text) for f, text in (
        (lambda t, q, u: [1.0], "2 forces"), (lambda t, q, u: {"knee": 1.0}, "knee"),
        (lambda t, q, u: {"elbow": [1.0, 2.0]}, "elbow"), (lambda t, q, u: q["knee"], "knee"),
        (lambda t, q, u: None, "control"), (lambda t, q, u: [1.0 if t < 0.5 else 2.0, 0.0], "Sampled"),
        (lambda t, q, u: [math.sin(q[0]), 0.0], "Sampled"), (lambda t, q, u: [float(q[0]), 0.0], "Sampled")))])
def test_controllers_that_cannot_be(control: Any, text: str) -> None:
    with pytest.raises(bc.BellcrankError, match=text):
        system("double_pendulum").simulate(START, 0.1, control=control)


@pytest.mark.parametrize(("wrenches", "text"), [
    ({"leg": [0.0] * 6}, "leg"), ({"upper": [0.0] * 5}, "upper|shape|6"), (np.zeros((3, 6)), "wrench|bodies|shape"),
    ({"upper": [math.nan] * 6}, "finite"), *(pytest.param(bc.Traced(f), text) for f, text in (
        (lambda t, q, u: {"leg": [0.0] * 6}, "leg"), (lambda t, q, u: {"upper": [0.0] * 5}, "upper"),
        (lambda t, q, u: [0.0], "mapping")))])
def test_wrenches_that_cannot_be(wrenches: Any, text: str) -> None:
    with pytest.raises(bc.BellcrankError, match=text):
        system("double_pendulum").simulate(START, 0.1, wrenches=wrenches)


def test_periods_that_do_not_fit() -> None:
    machine = system("double_pendulum")
    for period in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(bc.ModelError, match="period"):
            bc.Sampled(damped_arrays, period)
    with pytest.raises(bc.ModelError, match="multiple of the step"):
        machine.simulate(START, 0.1, step=1e-3, control=bc.Sampled(damped_arrays, 1.5e-3))
    with pytest.raises(bc.ModelError, match="needs a period"):
        machine.simulate(START, 0.1, stepper="dopri5", control=damped_arrays)
    with pytest.raises(bc.ModelError, match="one common period"):
        machine.simulate(START, 0.1, control=bc.Sampled(damped_arrays, 0.01),
                         wrenches=bc.Sampled(lambda t, q, u: np.zeros((2, 6)), 0.02))
    with pytest.raises(bc.ModelError, match="not both"):
        machine.simulate(START, 0.1, control=damped_arrays, tau=[0.0, 0.0])


def test_held_controllers_add_no_samples() -> None:
    """Where the end of a run is no multiple of the sampling interval, samples are those of a run without a period."""
    system = bc.compile(bc.load("double_pendulum"))
    times = [system.simulate(([0.3, 0.1], [0.0, 0.0]), 0.1, step=0.01, output=0.04, control=bc.Traced(
        lambda t, q, u: {"shoulder": -q["shoulder"]}, period)).time.values for period in (None, 0.01, 0.02)]
    for found in times:
        assert found == pytest.approx([0.0, 0.04, 0.08, 0.1], abs=1e-12)
