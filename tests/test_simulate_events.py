"""Events: where they are found, what they do, and what loops and impulses make of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from motions import ball, drop, final, four_bar_rows, system

G = 9.81
FALL = math.sqrt(2.0 / G)  # from 1 m
STEPPERS = ("rk4", "rk8", "gauss", "radau", "dopri5", "dop853")
ALL = (*STEPPERS, "scipy/DOP853")


def height(level: float = 0.0) -> Any:
    return lambda t, q, u: q["slide"] - level


def times(result: Any, name: str | None = None) -> np.ndarray:
    if "event_time" not in result:
        return np.zeros(0)
    found = result.event_time.values
    return found if name is None else found[result.event_name.values == name]


# -- where they are -----------------------------------------------------------------------------------
@pytest.mark.parametrize("stepper", ALL)
@pytest.mark.parametrize("step", (1e-3, 7e-2))
def test_time_of_a_fall(stepper: str, step: float) -> None:
    result = ball().simulate(([1.0], [0.0]), 1.0, step=step, stepper=stepper,
                             events=[bc.Event(height(), "floor", action="stop")])
    assert result.attrs["status"] == "stopped" and "floor" in result.attrs["reason"]
    assert times(result).shape == (1,) and abs(times(result)[0] - FALL) < 1e-10
    assert abs(float(result.time[-1]) - FALL) < 1e-10
    assert abs(result.q.values[-1, 0]) < 1e-10 and abs(result.u.values[-1, 0] + G * FALL) < 1e-9


@pytest.mark.parametrize("stepper", STEPPERS)
def test_time_of_a_swing(stepper: str) -> None:
    """Turning points of a pendulum: against the complete elliptic integral."""
    from scipy.special import ellipk

    amplitude = 2.5
    period = 4.0 / math.sqrt(G) * float(ellipk(math.sin(amplitude / 2.0)**2))
    result = system("pendulum").simulate(([amplitude], [0.0]), 1.6 * period, step=1e-3, stepper=stepper, rtol=1e-12,
                                         atol=1e-13, events=[bc.Event(lambda t, q, u: u["hinge"], "turn"),
                                                             bc.Event(lambda t, q, u: q["hinge"], "low")])
    assert np.abs(times(result, "turn") - period * np.array([0.5, 1.0, 1.5])).max() < 1e-9
    assert np.abs(times(result, "low") - period * np.array([0.25, 0.75, 1.25])).max() < 1e-9
    assert result.attrs["status"] == "finished"


@pytest.mark.parametrize("stepper", ("rk4", pytest.param("dop853")))
def test_directions(stepper: str) -> None:
    thrown = ([0.0], [5.0])
    up, down = (5.0 - math.sqrt(25.0 - 2 * G)) / G, (5.0 + math.sqrt(25.0 - 2 * G)) / G
    events = [bc.Event(height(1.0), "both"), bc.Event(height(1.0), "rising", 1), bc.Event(height(1.0), "falling", -1)]
    for chosen, expected in ((events[0], [up, down]), (events[1], [up]), (events[2], [down])):
        result = ball().simulate(thrown, 1.2, stepper=stepper, step=2e-3, events=[chosen])
        assert np.allclose(times(result), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("stepper", ("rk4", "dopri5", "dop853"))
def test_several_events_in_one_step(stepper: str) -> None:
    levels = (0.9, 0.5, 0.4999, 0.4998, 0.1)
    result = ball().simulate(([1.0], [0.0]), 0.5, step=0.25, stepper=stepper,
                             events=[bc.Event(height(x), f"{x}") for x in levels])
    assert list(result.event_name.values) == [f"{x}" for x in levels]
    assert np.abs(times(result) - [math.sqrt(2.0 * (1.0 - x) / G) for x in levels]).max() < 1e-10


@pytest.mark.parametrize("stepper", ("rk4", "dop853"))
def test_events_at_the_same_moment(stepper: str) -> None:
    seen: list[str] = []

    def note(name: str) -> Any:
        return lambda state, machine: seen.append(name)

    result = ball().simulate(([1.0], [0.0]), 0.5, step=1e-2, stepper=stepper, events=[
        bc.Event(height(), "a", action=note("a")), bc.Event(height(), "b", action=note("b")),
        bc.Event(lambda t, q, u: 3.0 * q[0], "c", action=note("c"))])
    assert sorted(result.event_name.values) == ["a", "b", "c"] and sorted(seen) == ["a", "b", "c"]


@pytest.mark.parametrize("stepper", ("rk4", "gauss", "dopri5"))
def test_an_event_exactly_at_a_step(stepper: str) -> None:
    machine = bc.compile(drop(law=lambda q, u: G))
    result = machine.simulate(([1.0], [-1.0]), 2.0, step=0.125, stepper=stepper, output=0.125, events=[
        bc.Event(height(0.5), "half"), bc.Event(lambda t, q, u: t - 0.75, "clock"), bc.Event(height(0.0), "floor")])
    assert list(result.event_name.values) == ["half", "clock", "floor"]
    assert np.abs(times(result) - [0.5, 0.75, 1.0]).max() < 1e-12
    assert abs(result.q.values[-1, 0] + 1.0) < 1e-12


@pytest.mark.parametrize("stepper", ("rk4", "gauss", "dopri5"))
def test_samples_at_events_are_kept(stepper: str) -> None:
    result = ball().simulate(([1.0], [0.0]), 1.0, step=0.125, stepper=stepper, output=0.125,
                             events=[bc.Event(lambda t, q, u: t - 0.5, "clock")])
    assert np.array_equal(result.time, np.arange(9) / 8)


def test_an_event_at_the_start_and_at_the_end() -> None:
    events = [bc.Event(height(1.0), "start"), bc.Event(height(1.0 - G / 2.0), "end"),
              bc.Event(lambda t, q, u: t - 0.5, "late")]
    result = ball().simulate(([1.0], [0.0]), 0.5, step=1e-2, events=events)
    assert "start" not in (result.event_name.values if "event_name" in result else ())
    result = ball().simulate(([1.0], [1.0]), 1.0, step=1e-2, events=events[:1])  # leaves zero, comes back
    assert np.abs(times(result) - [2.0 / G]).max() < 1e-10


def kick(state: bc.State, system: bc.System) -> bc.State:
    return bc.State(state.q, state.u + 5.0, state.t)


@pytest.mark.parametrize("scale", (1.0, 1e6))
@pytest.mark.parametrize("stepper", (*ALL, "radau5", "numpy"))
def test_an_event_at_the_end_of_a_run_happens_once(stepper: str, scale: float) -> None:
    """In the run that reaches it, and not in the one that continues from its result."""
    machine = bc.compile(drop(), backend="numpy") if stepper == "numpy" else ball()
    options = {"stepper": "rk4" if stepper == "numpy" else stepper, "step": 0.1, "output": 0.1}
    for function in (lambda t, q, u: scale * (t - 0.3), lambda t, q, u: scale * (u["slide"] + G * 0.3)):
        events = [bc.Event(function, "kick", action=kick)]
        first = machine.simulate(([1.0], [0.0]), 0.3, events=events, **options)
        second = machine.simulate(first, 0.3, events=events, **options)
        assert np.abs(times(first) - [0.3]).max() < 1e-12 and not len(times(second))
        assert abs(first.u.values[-1, 0] - 5.0 + G * 0.3) < 1e-9  # the last sample is the state after it
        whole = machine.simulate(([1.0], [0.0]), 0.6, events=events, **options)
        assert len(times(whole)) == 1 and np.abs(final(second) - final(whole)).max() < 1e-9


def test_what_happens_at_the_end_of_a_run() -> None:
    clock = bc.Event(lambda t, q, u: t - 0.5, "clock", 1, "stop")
    result = ball().simulate(([1.0], [0.0]), 0.5, events=[clock])
    assert result.attrs["status"] == "stopped" and "clock" in result.attrs["reason"]
    assert np.array_equal(result.time, ball().simulate(([1.0], [0.0]), 0.5).time)
    for event in (bc.Event(lambda t, q, u: t - 0.5, "falls", -1), bc.Event(lambda t, q, u: (t - 0.5) ** 2, "touches")):
        assert not len(times(ball().simulate(([1.0], [0.0]), 0.5, events=[event])))
    batch = ball().simulate(([[1.0], [2.0]], [[0.0], [-G / 2.0]]), 0.5, events=[
        bc.Event(lambda t, q, u: u["slide"] + G / 2.0, "kick", 0, kick)])  # that of the second begins there
    assert batch.event_sample.values.tolist() == [0] and abs(batch.u.values[-1, 0, 0] - 5.0 + G / 2.0) < 1e-12
    rest = ball().simulate(batch, 0.6, events=[bc.Event(lambda t, q, u: u["slide"] + G / 2.0, "kick", 0, kick)])
    assert rest.event_sample.values.tolist() == [0]  # kicked above it, it comes back


@pytest.mark.parametrize("stepper", ("rk4", "dopri5"))
def test_events_that_never_happen(stepper: str) -> None:
    plain = ball().simulate(([1.0], [0.0]), 0.3, stepper=stepper)
    result = ball().simulate(([1.0], [0.0]), 0.3, stepper=stepper, events=[bc.Event(height(), "floor", action="stop")])
    assert result.attrs["status"] == "finished" and not len(times(result))
    assert np.abs(result.q - plain.q).max() < 1e-13 and np.array_equal(result.time, plain.time)


def test_records_do_not_disturb() -> None:
    """Events that are only recorded leave the motion what it was, to the accuracy of the method."""
    _, q, u = four_bar_rows("crossed_elbow_down")
    machine = system("four_bar")
    plain = machine.simulate((q[0], u[0]), 1.0, step=1e-3, stepper="rk8")
    result = machine.simulate((q[0], u[0]), 1.0, step=1e-3, stepper="rk8",
                              events=[bc.Event(lambda t, q, u: u["A"] + 5.0, "a"),
                                      bc.Event(lambda t, q, u: bc.math.sin(10.0 * q["B"]), "b")])
    assert len(times(result)) > 5
    assert np.array_equal(plain.time, result.time) and np.abs(plain.q - result.q).max() < 1e-10
    assert float(result.loop_error.max()) < 1e-13


def test_plain_python_functions_are_events_too() -> None:
    def function(t: float, q: Any, u: Any) -> float:
        return 1.0 if q[0] > 0.25 and t < 99 else -1.0  # a jump; cannot be traced

    result = ball().simulate(([1.0], [0.0]), 0.5, events=[bc.Event(function, "jump")])
    assert abs(times(result)[0] - math.sqrt(1.5 / G)) < 1e-10


# -- what they do -------------------------------------------------------------------------------------
@pytest.mark.parametrize("stepper", ("rk4", "gauss", "dopri5", "dop853"))
def test_actions_get_the_state_and_may_change_it(stepper: str) -> None:
    seen = []

    def action(state: bc.State, machine: bc.System) -> bc.State:
        seen.append((state.t, float(state.q[0]), float(state.u[0]), machine))
        return bc.State(state.q + 1.0, np.zeros(1), state.t)

    result = ball().simulate(([1.0], [0.0]), 2.0, step=1e-3, stepper=stepper, output=0.5,
                             events=[bc.Event(height(), "lift", -1, action)])
    assert len(seen) == 4 and np.abs(times(result) - FALL * np.arange(1, 5)).max() < 1e-9
    assert all(abs(s[1]) < 1e-10 and abs(s[2] + G * FALL) < 1e-9 and s[3].model.name == "drop" for s in seen)
    t = 2.0 - 4 * FALL
    assert np.abs(final(result) - [1.0 - G * t * t / 2, -G * t]).max() < 1e-8
    # both the state before and the one after are samples
    twice = result.time.values[:-1][np.diff(result.time.values) == 0.0]
    assert np.abs(twice - times(result)).max() < 1e-15


def test_a_change_may_stop_the_run() -> None:
    count = []

    def action(state: bc.State, machine: bc.System) -> bc.Change | bc.State:
        count.append(state.t)
        return bc.Change(stop=True) if len(count) == 3 else bc.State(state.q, -state.u, state.t)

    result = ball().simulate(([1.0], [0.0]), 10.0, events=[bc.Event(height(), "bounce", -1, action)])
    assert result.attrs["status"] == "stopped" and abs(float(result.time[-1]) - 5 * FALL) < 1e-9


@pytest.mark.parametrize("stepper", ("rk4", "gauss", pytest.param("dop853")))
def test_bounces(stepper: str) -> None:
    """Energy after each bounce is the square of the restitution."""
    e = 0.8
    result = ball().simulate(([1.0], [0.0]), 3.0, step=1e-3, stepper=stepper, output=1e-3,
                             events=bc.joint_limit("slide", lower=0.0, restitution=e))
    expected = FALL * (1.0 + 2.0 * np.cumsum(e**np.arange(1, 20)))
    expected = np.concatenate([[FALL], expected])
    found = times(result)
    expected = expected[expected < 3.0]
    assert len(found) == len(expected) and np.abs(found - expected).max() < 1e-9
    for k in range(1, len(found)):
        peak = result.q.sel(time=slice(found[k - 1], found[k])).max()
        assert abs(float(peak) - e**(2 * k)) < 1e-4
    assert float(result.q.min()) > -1e-9
    speeds = result.u.values[:, 0]
    for t in found:
        before, after = speeds[np.flatnonzero(np.abs(result.time.values - t) < 1e-12)][[0, -1]]
        assert abs(after + e * before) < 1e-9


def test_both_stops_of_a_joint() -> None:
    machine = bc.compile(drop(law=lambda q, u: G))
    result = machine.simulate(([0.0], [1.0]), 10.0, step=1e-2, output=0.1,
                              events=bc.joint_limit("slide", -0.5, 0.5, restitution=1.0))
    assert np.abs(times(result) - np.arange(0.5, 10.0)).max() < 1e-9
    assert float(np.abs(result.q).max()) < 0.5 + 1e-9


def test_bounces_shorter_than_adaptive_steps() -> None:
    result = ball().simulate(([1.0], [0.0]), 1.3, stepper="dopri5",
                             events=bc.joint_limit("slide", lower=0.0, restitution=0.5))
    expected = FALL * np.concatenate([[1.0], 1.0 + 2.0 * np.cumsum(0.5**np.arange(1, 10))])
    expected = expected[expected < 1.3]
    assert len(times(result)) == len(expected) and np.abs(times(result) - expected).max() < 1e-8


@pytest.mark.parametrize("gap", (pytest.param(1e-11), pytest.param(1e-9)))
def test_endless_events_are_refused(gap: float) -> None:
    """An action that jumps back over its own zero would happen for ever."""
    count: list[float] = []

    def action(state: bc.State, machine: bc.System) -> bc.State:
        count.append(state.t)
        if len(count) > 300:
            raise RuntimeError("this takes for ever")
        return bc.State(np.array([100.0 * gap]), np.array([-100.0]), state.t)

    with pytest.warns(bc.SimulationWarning):
        result = ball().simulate(([1.0], [0.0]), 1.0, events=[bc.Event(height(), "loop", -1, action)])
    assert result.attrs["status"] == "failed"
    assert "loop" in result.attrs["reason"] and "again and again" in result.attrs["reason"]
    assert abs(float(result.time[-1]) - FALL) < 1e-6


@pytest.mark.parametrize("when", ("at once", "later", "in the action"))
def test_event_functions_that_raise(when: str) -> None:
    def function(t: Any, q: Any, u: Any) -> Any:
        if isinstance(q[0], float) and (when == "at once" or q[0] < 0.5):
            raise ZeroDivisionError("oh dear")
        return float(q[0]) + 10.0 if when != "in the action" else q[0] - 0.7

    def action(state: bc.State, machine: bc.System) -> None:
        raise ZeroDivisionError("oh dear")

    with pytest.warns(bc.SimulationWarning, match="oh dear"):
        result = ball().simulate(([1.0], [0.0]), 1.0, output=1e-3, events=[bc.Event(function, "bad", action=action)])
    assert result.attrs["status"] == "failed" and "ZeroDivisionError" in result.attrs["reason"]
    assert len(result.time) >= 1 and np.isfinite(result.q).all()
    if when == "in the action":
        assert len(result.time) > 200  # all that came before it


def test_event_functions_that_are_not_numbers() -> None:
    with np.errstate(invalid="ignore"), pytest.warns(bc.SimulationWarning, match="'nan'"):
        result = ball().simulate(([1.0], [0.0]), 1.0, events=[
            bc.Event(lambda t, q, u: bc.math.sqrt(q[0] - 0.5), "nan")])
    assert result.attrs["status"] == "failed"


def test_an_event_that_prevents_a_failure() -> None:
    """Beyond the stop the force is not a number; the stop keeps the machine from getting there."""
    machine = bc.compile(drop(law=lambda q, u: bc.math.sqrt(q - 0.1) * 1e-3))
    result = machine.simulate(([0.2], [0.0]), 0.3, step=1e-3,
                              events=bc.joint_limit("slide", lower=0.12, restitution=1.0))
    assert result.attrs["status"] == "finished"


# -- with controllers ---------------------------------------------------------------------------------
@pytest.mark.parametrize("controller", (bc.Sampled(lambda t, q, u: [0.0], 0.01), lambda t, q, u: [0.0]))
def test_stops_with_sampled_controllers(controller: Any) -> None:
    result = ball().simulate(([1.0], [0.0]), 1.0, control=controller,
                             events=[bc.Event(height(), "floor", action="stop")])
    assert result.attrs["status"] == "stopped" and "tau" in result


@pytest.mark.parametrize("stepper", ("rk4", "dop853"))
@pytest.mark.parametrize("kind", ("sampled", "traced"))
def test_held_forces_act_up_to_the_event_and_beyond(kind: str, stepper: str) -> None:
    """Without weight until 0.5 s, then a hard push: the event in the step before it must not feel the push."""
    if kind == "sampled":
        control: Any = bc.Sampled(lambda t, q, u: [G if t < 0.45 else G + 1000.0], 0.1)
    else:
        control = bc.Traced(lambda t, q, u: [bc.math.select_less(t, 0.45, G, G + 1000.0)], 0.1)
    run = {"step": 0.1, "stepper": stepper, "control": control, "output": 0.1}
    plain = ball().simulate(([1.0], [-1.0]), 0.6, **run)
    for level in (0.6, 0.55):  # at a grid point, and between two
        result = ball().simulate(([1.0], [-1.0]), 0.6, events=[bc.Event(height(level), "level", -1)], **run)
        assert np.abs(times(result) - [1.0 - level]).max() < 1e-9
        assert np.abs(final(result) - final(plain)).max() < 1e-9


def test_traced_controllers_with_events() -> None:
    control = bc.Traced(lambda t, q, u: {"slide": G - 4.0 * q["slide"]})
    result = ball().simulate(([1.0], [0.0]), 3.0, control=control, events=[bc.Event(height(), "zero")])
    assert np.abs(times(result) - np.pi * np.array([0.25, 0.75])).max() < 1e-10


# -- other ways of computing ---------------------------------------------------------------------------
def test_events_in_momenta() -> None:
    machine = bc.compile(drop(), "momenta")
    result = machine.simulate(([1.0], [0.0]), 1.0, events=bc.joint_limit("slide", lower=0.0, restitution=0.9))
    assert np.abs(times(result) - FALL).max() < 1e-10
    t = 1.0 - FALL
    assert abs(result.q.values[-1, 0] - (0.9 * G * FALL * t - G * t * t / 2)) < 1e-9


def test_events_in_plain_numpy() -> None:
    machine = bc.compile(drop(), backend="numpy")
    for stepper in ("rk4", "gauss", "dop853"):
        result = machine.simulate(([1.0], [0.0]), 0.5, step=5e-2, stepper=stepper, output=5e-2,
                                  events=[bc.Event(height(), "floor", action="stop")])
        assert abs(times(result)[0] - FALL) < 1e-10, stepper


def test_a_stop_before_the_controller_fails() -> None:
    def control(t: float, q: Any, u: Any) -> Any:
        if q[0] < 0.0:
            raise ValueError("too low")
        return [0.0]

    result = ball().simulate(([1.0], [0.0]), 1.0, step=1e-2, control=control,
                             events=[bc.Event(height(), "floor", action="stop")])
    assert result.attrs["status"] == "stopped" and "floor" in result.attrs["reason"]
