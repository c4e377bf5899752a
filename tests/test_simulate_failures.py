"""Bad input named before anything is computed, runs that end early, and files that survive."""

from __future__ import annotations

import math
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import bellcrank as bc
import children
from motions import ball, ball_pendulum, drop, final, four_bar_rows, system

NAN = math.nan


# -- bad input ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("state", "text"), [
    (([0.1], [0.0, 0.0]), "q"), (([0.1, 0.2, 0.3], [0.0, 0.0]), "q"), (([0.1, 0.2], [0.0]), "u"),
    (([0.1, 0.2], [0.0, 0.0, 0.0]), "u"), (([NAN, 0.2], [0.0, 0.0]), "finite"),
    (([0.1, 0.2], [0.0, math.inf]), "finite"),
    (None, "State"), (1.0, "State"), ([], "State"), ((), "State"), (("a", "b"), "q"), (([0.1, 0.2],), "State"),
    (([0.1, 0.2], [0.0, 0.0], NAN), "time"), (([0.1, 0.2], [0.0, 0.0], "now"), "time"), ("state", "q|State"),
    ((np.zeros((0, 2)), np.zeros((0, 2))), "empty"), ((np.zeros((2, 2)), np.zeros((3, 2))), "do not fit"),
    ((np.zeros((2, 0)), np.zeros((2, 2))), "q"), (([0.1, None], [0.0, 0.0]), "q"),
    ({"q": [0, 0], "u": [0, 0]}, "State"), (([0.1j, 0.2], [0.0, 0.0]), "q")])
def test_bad_states(state: Any, text: str) -> None:
    with pytest.raises(bc.StateError, match=text):
        system("double_pendulum").simulate(state, 0.1)


@pytest.mark.parametrize(("settings", "text"), [
    ({"duration": 0.0}, "duration"), ({"duration": -1.0}, "duration"), ({"duration": NAN}, "duration"),
    ({"duration": math.inf}, "duration"), ({"duration": "long"}, "duration"), ({"duration": None}, "duration"),
    ({"step": 0.0}, "step"), ({"step": -1e-3}, "step"), ({"step": NAN}, "step"), ({"step": "x"}, "step"),
    ({"step": -1.0, "stepper": "dopri5"}, "step"), ({"stepper": "euler"}, "euler.*rk4"), ({"stepper": ""}, "stepper"),
    ({"stepper": None}, "None"), ({"stepper": 4}, "4"), ({"output": 1.5e-3}, "multiple"),
    ({"output": 0.0}, "output"), ({"output": -0.1}, "output"), ({"output": NAN}, "output"),
    ({"output": "all"}, "output"),
    ({"output": [0.1, 0.05], "stepper": "dopri5"}, "increase"), ({"output": [0.1, 0.3], "stepper": "dopri5"}, "within"),
    ({"output": [-0.1], "stepper": "dopri5"}, "within"), ({"output": [], "stepper": "dopri5"}, "output"),
    ({"output": [0.05, NAN], "stepper": "dopri5"}, "output"), ({"output": [[0.1]], "stepper": "dopri5"}, "output"),
    ({"output": [0.05, 0.1]}, "adaptive"), ({"rtol": 0.0, "stepper": "dopri5"}, "rtol"),
    ({"rtol": -1.0, "stepper": "dopri5"}, "rtol"), ({"atol": NAN, "stepper": "dopri5"}, "atol"),
    ({"tau": [1.0]}, "tau"), ({"tau": [NAN, 0.0]}, "tau"), ({"tau": np.zeros((3, 2))}, "tau"), ({"tau": "x"}, "tau"),
    *(pytest.param(*pair) for pair in (
        ({"stepper": "scipy/Euler"}, "Euler.*DOP853"), ({"stepper": "sundials/RK"}, "RK"),
        ({"stepper": "scipy/"}, "scipy"), ({"events": [1.0]}, "Event"), ({"events": [lambda t, q, u: t]}, "Event"),
        ({"threads": "x"}, "threads"))),
    *(pytest.param(*pair) for pair in (
        ({"threads": 0}, "threads"), ({"threads": -1}, "threads"), ({"events": bc.Event(lambda t, q, u: t)}, "Event"),
        ({"output": ["a"], "stepper": "dopri5"}, "output"), ({"progress": 3}, "progress")))])
def test_bad_settings(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(bc.BellcrankError, match=text):
        system("double_pendulum").simulate(([0.1, 0.2], [0.0, 0.0]), **{"duration": 0.2, **settings})


@pytest.mark.parametrize("make", [
    lambda: bc.Event("x"), lambda: bc.Event(lambda t, q, u: t, "e", 2),
    lambda: bc.Event(lambda t, q, u: t, "e", 0, "jump"),
    lambda: bc.joint_limit("slide"), lambda: bc.joint_limit("slide", 0.0, restitution=1.5),
    lambda: bc.joint_limit("slide", 0.0, restitution=NAN),
    pytest.param(lambda: bc.joint_limit("slide", NAN)),
    pytest.param(lambda: bc.joint_limit("slide", 1.0, 0.0))])
def test_events_that_cannot_be(make: Any) -> None:
    with pytest.raises(bc.ModelError, match="event|joint_limit"):
        make()


def test_events_of_joints_that_are_not_there() -> None:
    with pytest.raises(bc.ModelError, match="knee"):
        ball().simulate(([1.0], [0.0]), 0.1, events=bc.joint_limit("knee", 0.0))
    with pytest.raises(bc.ModelError, match="knee"):
        ball().simulate(([1.0], [0.0]), 0.1, events=[bc.Event(lambda t, q, u: q["knee"], "e")])


def test_a_batch_of_one_state_has_events() -> None:
    result = ball().simulate((np.ones((1, 1)), np.zeros((1, 1))), 0.1, events=bc.joint_limit("slide", 0.98))
    assert result.q.shape[1:] == (1, 1) and len(result.event_time) >= 1


def test_open_loops_are_refused() -> None:
    machine = system("four_bar")
    state = machine.assemble(q={"A": 1.0}, u={"A": 1.0})
    with pytest.raises(bc.StateError, match="four-bar.*open.*assemble"):
        machine.simulate((state.q + [0.0, 0.01, 0.0, 0.0], state.u), 0.1)
    with pytest.raises(bc.StateError, match="assemble"):
        machine.simulate((state.q, state.u + [0.0, 0.1, 0.0, 0.0]), 0.1)
    batch = np.stack([state.q, state.q + [0.0, 0.01, 0.0, 0.0]])
    with pytest.raises(bc.StateError, match="open"):
        machine.simulate((batch, state.u), 0.1)


@pytest.mark.parametrize("joint", "ABCD")
@pytest.mark.parametrize("cut", "BD")
def test_every_coordinate_must_fit_the_others(joint: str, cut: str) -> None:
    """Wherever the loop is cut: no coordinate is ignored. Whole turns are no difference."""
    machine = bc.compile(bc.load("four_bar"), cut=[cut])
    state = machine.assemble(q={"A": 1.0}, u={"A": 1.0})
    one = 1.0 * (np.array(list("ABCD")) == joint)
    message = f"q of joint '{cut}' is .* its links put it at .*assemble" if joint == cut else "open.*assemble"
    with pytest.raises(bc.StateError, match=message):
        machine.simulate((state.q + 0.01 * one, state.u), 0.1)
    message = f"u of joint '{cut}' is .* its links put it at .*assemble" if joint == cut else "open.*assemble"
    with pytest.raises(bc.StateError, match=message):
        machine.simulate((np.stack([state.q, state.q]), np.stack([state.u, state.u + 0.01 * one])), 0.1)
    result = machine.simulate((state.q + 2.0 * np.pi * one, state.u), 0.1)
    plain = machine.simulate(state, 0.1)
    assert np.abs(result.q.values - plain.q.values - 2.0 * np.pi * one).max() < 1e-9


def test_small_gaps_are_closed() -> None:
    machine = system("four_bar")
    state = machine.assemble(q={"A": 1.0}, u={"A": 1.0})
    result = machine.simulate((state.q + [0.0, 1e-8, 0.0, 0.0], state.u + [0.0, 0.0, 1e-8, 0.0]), 0.1)
    assert float(result.loop_error.max()) < 1e-13 and float(result.loop_rate_error.max()) < 1e-12
    loose = bc.compile(ball_pendulum()).simulate(([2.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0]), 0.1)
    assert abs(np.linalg.norm(loose.q[0]) - 1.0) < 1e-15


def test_a_zero_quaternion() -> None:
    with pytest.raises(bc.BellcrankError, match="ball|quaternion|finite"):
        bc.compile(ball_pendulum()).simulate(([0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0]), 0.1)


# -- times --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stepper", ("rk4", "dop853"))
@pytest.mark.parametrize("start", (-2.0, -1.0, 0.0, 1e4))
def test_any_beginning(stepper: str, start: float) -> None:
    run = {"step": 0.01, "output": 0.1, "stepper": stepper}
    result = ball().simulate(bc.State(np.array([1.0]), np.array([0.0]), start), 1.0, **run)
    assert np.abs(result.time.values - start - 0.1 * np.arange(11)).max() < 1e-11
    assert abs(result.q.values[-1, 0] - (1.0 - 9.81 / 2)) < 1e-9


@pytest.mark.parametrize("start", (pytest.param(-2.0), -1.0, 0.5))
def test_listed_times_with_any_beginning(start: float) -> None:
    times = start + np.array([0.0, 0.25, 0.7, 1.0])
    result = ball().simulate(bc.State(np.array([1.0]), np.array([0.0]), start), 1.0, stepper="dopri5", output=times)
    assert np.array_equal(result.time, times)
    assert np.abs(result.q.values[:, 0] - (1.0 - 9.81 / 2 * (times - start)**2)).max() < 1e-9


def test_steps_and_samples_that_do_not_divide() -> None:
    result = ball().simulate(([1.0], [0.0]), 1.0, step=0.3)  # four steps of a quarter
    assert result.attrs["steps"] == 4 and np.allclose(result.time, [0.0, 0.25, 0.5, 0.75, 1.0])
    result = ball().simulate(([1.0], [0.0]), 1.0, step=0.1, output=0.3)
    assert np.allclose(result.time, [0.0, 0.3, 0.6, 0.9, 1.0])
    result = ball().simulate(([1.0], [0.0]), 1.0, step=0.1, output=5.0)
    assert np.allclose(result.time, [0.0, 1.0])
    result = ball().simulate(([1.0], [0.0]), 1.0, stepper="dopri5", output=0.3)
    assert np.allclose(result.time, [0.0, 0.3, 0.6, 0.9, 1.0])
    for stepper in ("rk4", "dopri5"):
        result = ball().simulate(([1.0], [0.0]), 5.0, step=1e-4, stepper=stepper)
        assert 500 <= len(result.time) <= 1001 and float(result.time[-1]) == 5.0
    assert len(ball().simulate(([1.0], [0.0]), 1e-9, step=1.0).time) == 2


def test_a_run_goes_on_where_another_ended() -> None:
    _, q, u = four_bar_rows("crossed_elbow_down")
    machine = system("four_bar")
    whole = machine.simulate((q[0], u[0]), 0.4, step=1e-3)
    first = machine.simulate((q[0], u[0]), 0.2, step=1e-3)
    second = machine.simulate(bc.State(first.q.values[-1], first.u.values[-1], float(first.time[-1])), 0.2, step=1e-3)
    assert np.abs(final(second) - final(whole)).max() < 1e-12


# -- early ends ---------------------------------------------------------------------------------------
def test_numbers_that_overflow() -> None:
    machine = bc.compile(drop(law=lambda q, u: q * q * q))
    for stepper in ("rk4", "semi_implicit", "dopri5", "scipy/RK45"):
        with pytest.warns(bc.SimulationWarning, match="drop"), np.errstate(all="ignore"):
            result = machine.simulate(([10.0], [0.0]), 10.0, stepper=stepper, step=1e-3, output=1e-2)
        assert result.attrs["status"] in ("failed", "diverged") and "t = " in result.attrs["reason"], stepper
        assert np.isfinite(result.q).all() and 2 <= len(result.time) < 200


def test_explosions_keep_what_was_before() -> None:
    """A step far too long for a damper: numbers grow until even the energy overflows."""
    machine = bc.compile(drop(law=lambda q, u: -1e5 * u))
    with pytest.warns(bc.SimulationWarning):
        result = machine.simulate(([1.0], [1.0]), 1.0, step=1e-2, stepper="rk4", output=1e-2)
    assert result.attrs["status"] == "diverged" and len(result.time) >= 2


def test_progress_is_told() -> None:
    told: list[tuple[float, float]] = []
    ball().simulate(([1.0], [0.0]), 0.3, step=1e-3, control=lambda t, q, u: time.sleep(1e-3) or [0.0],
                    progress=lambda done, total: told.append((done, total)))
    assert told and all(b == 0.3 and 0.0 < a <= 0.3 + 1e-12 for a, b in told)
    assert (np.diff([a for a, _ in told]) >= 0).all()


@pytest.mark.parametrize(("error", "status"), [(RuntimeError("bored"), "failed"), (KeyboardInterrupt(), "interrupted")])
def test_progress_that_raises(error: BaseException, status: str) -> None:
    def progress(done: float, total: float) -> None:
        raise error

    with pytest.warns(bc.SimulationWarning, match=status):
        result = ball().simulate(([1.0], [0.0]), 10.0, step=1e-3, control=lambda t, q, u: time.sleep(1e-3) or [0.0],
                                 progress=progress)
    assert result.attrs["status"] == status and len(result.time) >= 2


@pytest.mark.usefixtures("signals_ignored")
def test_a_key_pressed_in_the_middle() -> None:
    """An interrupt from outside ends a long compiled run soon, with what it has."""
    code = """
        import os, signal, sys, threading, time, warnings
        import bellcrank as bc
        warnings.simplefilter("ignore")
        s = bc.compile(bc.load("double_pendulum"))
        s.simulate(([1.0, 0.5], [0.0, 0.0]), 0.1, step=1e-5)
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        begun = time.perf_counter()
        r = s.simulate(([1.0, 0.5], [0.0, 0.0]), 1e5, step=1e-4, output=1.0)
        print(r.attrs["status"], len(r.time) > 10, time.perf_counter() - begun < 120.0)  # of hours
    """
    done = children.run_code(code)
    assert done.stdout.split() == ["interrupted", "True", "True"], done.stdout + done.stderr


# -- files --------------------------------------------------------------------------------------------
def test_files_in_folders_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(bc.FileError, match="missing"):
        ball().simulate(([1.0], [0.0]), 0.1, file=tmp_path / "missing" / "run.nc")
    with pytest.raises(bc.FileError, match="folder"):
        ball().simulate(([1.0], [0.0]), 0.1, file=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stepper", ("rk4", "gauss"))
def test_streaming_with_events(tmp_path: Path, stepper: str) -> None:
    run: dict[str, Any] = {"stepper": stepper, "step": 1e-3, "output": 1e-2,
                           "events": bc.joint_limit("slide", lower=0.0, restitution=0.9)}
    plain = ball().simulate(([1.0], [0.0]), 1.5, **run)
    with ball().simulate(([1.0], [0.0]), 1.5, file=tmp_path / "run.nc", **run) as result:
        assert result.attrs["status"] == "finished"
        for name in ("time", "q", "u", "energy", "event_time", "event_name"):
            assert np.array_equal(result[name].values, plain[name].values), name
    with xarray.open_dataset(tmp_path / "run.nc") as again:
        assert np.array_equal(again.q.values, plain.q.values) and len(plain.event_time) == 2


def test_streaming_batches(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    q, u = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3, 2))
    control = bc.Traced(lambda t, q, u: [0.1 * t, -u[1]])
    plain = system("double_pendulum").simulate((q, u), 0.5, control=control)
    with system("double_pendulum").simulate((q, u), 0.5, control=control, file=tmp_path / "run.nc") as result:
        assert np.array_equal(result.q.values, plain.q.values) and np.array_equal(result.tau.values, plain.tau.values)


def test_streaming_of_runs_that_fail(tmp_path: Path) -> None:
    machine = bc.compile(drop(law=lambda q, u: 1e-6 * bc.math.sqrt(q)))
    with pytest.warns(bc.SimulationWarning):
        result = machine.simulate(([1.0], [0.0]), 1.0, output=1e-3, file=tmp_path / "run.nc")
    with result:
        assert result.attrs["status"] == "failed" and abs(float(result.time[-1]) - math.sqrt(2 / 9.81)) < 2e-3
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]

    def control(t: float, q: Any, u: Any) -> Any:
        if t > 0.1:
            raise KeyboardInterrupt
        return [0.0]

    with pytest.warns(bc.SimulationWarning), machine.simulate(([1.0], [0.0]), 1.0, output=1e-3, control=control,
                                                              file=tmp_path / "run.nc") as result:
        assert result.attrs["status"] == "interrupted" and len(result.time) > 90


def test_a_killed_run_leaves_what_it_had(tmp_path: Path) -> None:
    code = f"""
        import bellcrank as bc
        s = bc.compile(bc.load("double_pendulum"))
        print("go", flush=True)
        s.simulate(([1.0, 0.5], [0.0, 0.0]), 1e6, step=1e-3, output=0.1, file={str(tmp_path / "run.nc")!r})
    """
    with children.started([sys.executable, "-c", textwrap.dedent(code)]) as process:
        assert process.stdout is not None and process.stdout.readline() == "go\n"
        partial, begun, first = tmp_path / "run.partial.nc", time.perf_counter(), 0
        while time.perf_counter() - begun < 30.0:  # until it has grown, and a little longer
            time.sleep(1.2)
            size = partial.stat().st_size if partial.exists() else 0
            if first and size > first + 100_000:
                break
            first = first or size
        time.sleep(1.2)
    assert not (tmp_path / "run.nc").exists()
    with bc.open_result(tmp_path / "run.partial.nc") as result:
        n = len(result.time)
        assert n > 100
        assert np.abs(result.time.values - 0.1 * np.arange(n)).max() < 1e-6
        assert np.isfinite(result.q).all() and np.isfinite(result["energy"]).all()
        first = system("double_pendulum").simulate(([1.0, 0.5], [0.0, 0.0]), 5.0, step=1e-3, output=0.1)
        assert np.array_equal(result.q.values[:51], first.q.values)
