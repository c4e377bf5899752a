"""Runs that say what went wrong: energy that does not balance, numbers that grow, starts that cannot be, sizes."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import children
from bellcrank.simulate.account import DRIFT, exchange
from motions import ball, ball_pendulum, drop, system, thrown


def quiet(machine: bc.System, *args: Any, **options: Any) -> tuple[Any, list[str]]:
    """A run and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = machine.simulate(*args, **options)
    assert all(issubclass(w.category, bc.SimulationWarning) for w in caught)
    return result, [str(w.message) for w in caught]


# -- runs that explode ----------------------------------------------------------------------------------
def stiff(add: Any) -> bc.System:
    m = bc.load("pendulum")
    add(m)
    return bc.compile(m)


STIFF = {"spring": lambda m: m.add_joint_spring("k", "hinge", stiffness=1e6),
         "servo": lambda m: m.add_servo("k", "hinge", stiffness=1e6),
         "law": lambda m: m.add_joint_force("k", "hinge", lambda q, u: -1e6 * q),
         "damper": lambda m: m.add_joint_spring("k", "hinge", stiffness=1.0, damping=1e5)}


@pytest.mark.parametrize("stepper", ("rk4", "rk8", "semi_implicit"))
@pytest.mark.parametrize("kind", STIFF)
def test_a_run_that_explodes_says_so(kind: str, stepper: str) -> None:
    with pytest.warns(bc.SimulationWarning, match=r"diverged: at t = 0\.\d+ s .*smaller steps"):
        result = stiff(STIFF[kind]).simulate(([0.1], [0.1]), 1.0, step=0.1, stepper=stepper)
    assert result.attrs["status"] == "diverged" and "t = " in result.attrs["reason"]
    assert 2 <= len(result.time) < 11 and np.isfinite(result.q.values).all()
    assert float(result.q[0, 0]) == 0.1
    assert not np.isfinite(result.attrs["energy_drift"]) or kind in ("servo", "law") \
        or result.attrs["energy_drift"] > 1e3  # of the energy there was, not of the exploded one


@pytest.mark.parametrize("stepper", ("gauss", "radau"))
def test_methods_for_stiff_springs_do_not(stepper: str) -> None:
    result, told = quiet(stiff(STIFF["spring"]), ([0.1], [0.0]), 1.0, step=1e-4 if stepper == "gauss" else 0.1,
                         stepper=stepper)
    assert result.attrs["status"] == "finished" and not any("diverged" in text for text in told)


@pytest.mark.parametrize("backend", ("llvm", "numpy"))
def test_only_the_states_of_a_batch_that_explode(backend: str) -> None:
    """A spring whose stiffness is a parameter: soft ones go on."""
    m = bc.load("pendulum")
    m.add_servo("k", "hinge", stiffness=m.parameter("stiffness", 1.0))
    machine = bc.compile(m, backend=backend).with_parameters(stiffness=np.array([1.0, 1e6, 10.0, 1e7]))
    result, told = quiet(machine, (np.full((4, 1), 0.1), np.zeros((4, 1))), 1.0, step=0.02)
    assert result.attrs["status"] == "diverged" and "2 of 4 states" in result.attrs["reason"]
    assert np.isfinite(result.q.values[:, [0, 2]]).all() and len(result.time) == 51
    assert np.isnan(result.q.values[-1, [1, 3]]).all() and np.isfinite(result.q.values[0]).all()
    assert len(told) == 1


def test_where_it_is_noticed_does_not_depend_on_pieces() -> None:
    """The same samples come back whatever the interval of output, and whether they are streamed."""
    machine = stiff(STIFF["servo"])
    ends = []
    for run in range(2):
        result, _ = quiet(machine, ([0.1], [0.0]), 1.0, step=0.02)
        ends.append((len(result.time), float(result.time[-1]), result.q.values.tobytes()))
        assert run == 0 or ends[0] == ends[1]


def test_streamed_explosions(tmp_path: Path) -> None:
    memory, _ = quiet(stiff(STIFF["spring"]), ([0.1], [0.0]), 1.0, step=0.1)
    stream, told = quiet(stiff(STIFF["spring"]), ([0.1], [0.0]), 1.0, step=0.1, file=tmp_path / "run.nc")
    with stream:
        assert stream.attrs["status"] == "diverged" and len(told) == 1
        assert np.array_equal(stream.q.values, memory.q.values) and stream.attrs["reason"] == memory.attrs["reason"]


# -- motion that is fast by right ---------------------------------------------------------------------
def rotor(**servo: Any) -> bc.System:
    m = bc.Mechanism("rotor", gravity=(0.0, 0.0, 0.0))
    m.add_joint("axle", bc.Revolute("z"), m.ground, m.add_body("wheel", bc.Inertia.sphere(1.0, 0.1)))
    if servo:
        m.add_servo("servo", "axle", **servo)
    return bc.compile(m)


@pytest.mark.parametrize(("options", "expected"), [
    ({"state": ([0.0], [1e6])}, 1e6), ({"tau": [40.0]}, 1e4),
    ({"control": bc.Traced(lambda t, q, u: [0.08 * u[0]])}, None),
    ({"control": bc.Sampled(lambda t, q, u: [40.0], 0.01)}, 1e4)])
def test_fast_motion_is_no_explosion(options: dict[str, Any], expected: float | None) -> None:
    """A wheel that turns a thousand times in a step, one that a torque spins up, one whose speed grows as exp(20 t)."""
    state = options.pop("state", ([0.0], [1.0]))
    result, told = quiet(rotor(), state, 1.0, step=1e-3, **options)
    assert result.attrs["status"] == "finished" and not told
    if expected is not None:
        assert float(result.u[-1, 0]) == pytest.approx(expected, rel=1e-2)


def test_a_digital_controller_that_is_unstable_is_a_true_motion() -> None:
    """Its gain is too high for its period: the speed doubles and changes sign every period, as it would."""
    inertia = 0.004
    control = bc.Sampled(lambda t, q, u: [-3.0 * inertia / 0.01 * u[0]], 0.01)
    result, told = quiet(rotor(), ([0.0], [1.0]), 0.3, step=1e-3, control=control)
    assert result.attrs["status"] == "finished" and not told
    assert float(result.u[-1, 0]) == pytest.approx(2.0**30, rel=1e-9)


# -- the account of energy ----------------------------------------------------------------------------
def test_what_machines_do_with_energy() -> None:
    def of(add: Any, name: str = "double_pendulum") -> str:
        m = bc.load(name)
        add(m)
        return exchange(bc.compile(m))

    assert exchange(system("four_bar")) == exchange(system("double_pendulum")) == "none"
    assert of(lambda m: m.add_joint_spring("a", "elbow", stiffness=2.0)) == "none"
    assert of(lambda m: m.add_joint_spring("a", "elbow", stiffness=2.0, damping=1.0)) == "losses"
    assert of(lambda m: m.add_joint_spring("a", "elbow", stiffness=2.0, damping=-1.0)) == "work"
    assert of(lambda m: m.add_joint_spring("a", "elbow", damping=m.parameter("c", 0.5))) == "losses"
    assert of(lambda m: m.add_limit("a", "elbow", upper=1.0, stiffness=10.0)) == "none"
    assert of(lambda m: m.add_friction("a", "elbow", coulomb=1.0)) == "losses"
    assert of(lambda m: m.add_drag("a", "lower", coefficient=1.0)) == "losses"
    assert of(lambda m: m.add_drag("a", "lower", coefficient=1.0, wind=(1.0, 0.0, 0.0))) == "work"
    assert of(lambda m: m.add_bushing("a", m.ground, "lower", stiffness=(1, 1, 1), damping=(0, 1, 0))) == "losses"
    assert of(lambda m: m.add_servo("a", "elbow", stiffness=2.0)) == "work"
    assert of(lambda m: m.add_joint_force("a", "elbow", lambda q, u: -q)) == "work"
    assert of(lambda m: m.add_wrench("a", "lower", force=(1.0, 0.0, 0.0))) == "work"
    assert of(lambda m: m.prescribe("elbow", lambda t: t)) == "work"
    assert exchange(system("double_pendulum").lock("elbow")) == "none"


def test_the_redundant_five_bar_from_random_starts() -> None:
    """Its legs whip through nearly singular positions in milliseconds: the default step loses up to a third of the
    energy. Every run that does says so."""
    machine = system("redundant_five_bar")
    rng = np.random.default_rng(0)
    drifts = []
    for duration in (5.0, 5.0, 5.0, 5.0, 0.05, 0.05):
        state = machine.project(machine.neutral() + 0.5 * rng.normal(size=machine.nq), rng.normal(size=machine.nu))
        result, told = quiet(machine, state, duration)
        drift = result.attrs["energy_drift"]
        drifts.append(drift)
        assert ("energy changed by" in " ".join(told)) == ("warnings" in result.attrs) == (drift > DRIFT)
        if drift > DRIFT:
            assert "step=0.001 s now" in result.attrs["warnings"] and "although nothing" in result.attrs["warnings"]
        fine, told = quiet(machine, state, duration, stepper="dop853")
        assert fine.attrs["status"] == "finished" and fine.attrs["energy_drift"] < 1e-5 and not told
    assert max(drifts) > 0.1 and min(drifts) < DRIFT


def test_batches_say_how_many() -> None:
    machine = system("double_pendulum")
    q = np.array([[0.01, 0.0], [2.5, 1.0], [2.8, -1.0]])
    result, told = quiet(machine, (q, np.zeros((3, 2))), 5.0, step=0.04)
    assert result.attrs["status"] == "finished" and len(told) == 1 and "of 2 of 3 states" in told[0]


def test_damped_machines_may_lose_but_not_gain() -> None:
    m = bc.load("double_pendulum")
    m.add_joint_spring("damper", "elbow", damping=1e-3)
    machine = bc.compile(m)
    fine, told = quiet(machine, ([2.5, 1.0], [0.0, 0.0]), 5.0)
    assert not told and fine.attrs["energy_exchange"] == "losses" and np.isnan(fine.attrs["energy_drift"])
    coarse, told = quiet(machine, ([2.5, 1.0], [0.0, 0.0]), 5.0, step=0.05, stepper="semi_implicit")
    assert coarse.attrs["status"] in ("finished", "diverged") and len(told) == 1


def test_adaptive_runs_are_judged_too() -> None:
    result, told = quiet(system("double_pendulum"), ([2.5, 1.0], [0.0, 0.0]), 20.0, stepper="dopri5", rtol=1e-2,
                         atol=1e-2)
    assert result.attrs["status"] == "finished" and "rtol=0.01" in told[0]


@pytest.mark.parametrize("gravity", (0.0, -9.81))
def test_a_machine_at_rest_does_not_drift(gravity: float) -> None:
    m = bc.Mechanism("frame", gravity=(0.0, gravity, 0.0))
    bars = [m.add_body(f"bar{i}", bc.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))) for i in range(2)]
    m.add_joint("A", bc.Revolute("z"), m.ground, bars[0])
    m.add_joint("B", bc.Revolute("z"), bars[0], bars[1], parent_pose=bc.Pose((1, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), bars[1], m.ground, parent_pose=bc.Pose((1, 0, 0)),
                child_pose=bc.Pose((1.2, 0.3, 0.0)))
    machine = bc.compile(m)
    state = machine.assemble(guess={"A": 0.9, "B": -1.5})
    assert machine.dof == 0
    result, told = quiet(machine, state, 2.0)
    assert result.attrs["energy_drift"] < 1e-6 and not told
    locked, told = quiet(system("four_bar").lock("A"), system("four_bar").assemble(q={"A": 0.7}), 1.0)
    assert locked.attrs["energy_drift"] < 1e-6 and not told


@pytest.mark.parametrize("amplitude", (1e-9, 1e-6, 1e-3))
def test_small_motion_is_no_false_alarm(amplitude: float) -> None:
    for name in ("double_pendulum", "four_bar"):
        machine = system(name)
        rest = bc.analyze.equilibrium(machine)
        speeds = amplitude * (machine.assemble(q=dict.fromkeys((), 0.0), guess=rest, u={machine.joint_names[0]: 1.0}).u)
        result, told = quiet(machine, (rest.q, speeds), 2.0)
        assert not told and result.attrs["energy_drift"] < 1e-4


def test_drift_is_of_the_energy_there_was(tmp_path: Path) -> None:
    """Without losses that is the largest kinetic energy. Where a motor works there is no error to be seen."""
    result = system("double_pendulum").simulate(([1.0, 0.5], [0.0, 0.0]), 3.0)
    change = np.abs(result["energy"].values - result["energy"].values[0]).max()
    assert result.attrs["energy_drift"] == pytest.approx(change / float(result.kinetic_energy.max()), rel=1e-4)
    assert float(np.abs(result.energy()["drift"]).max()) == pytest.approx(result.attrs["energy_drift"], rel=1e-4)
    driven = rotor().simulate(([0.0], [0.0]), 1.0, tau=[0.4])
    assert driven.attrs["energy_exchange"] == "work"
    assert np.isnan(driven.attrs["energy_drift"]) and "do work" in driven.attrs["energy_drift_reason"]
    kept = rotor().simulate(([0.0], [0.0]), 1.0, tau=[0.4], file=tmp_path / "driven.nc")
    assert np.isnan(kept.attrs["energy_drift"]) and kept.attrs["energy_drift_reason"]


def test_events_are_not_drift() -> None:
    """What impacts take is accounted for, and what comes after is compared with what they left."""
    result, told = quiet(ball(), ([1.0], [0.0]), 3.0, events=bc.joint_limit("slide", 0.0, restitution=0.7))
    assert result.attrs["energy_lost_in_events"] > 5.0 and not told and result.attrs["energy_drift"] < 1e-9
    kick = bc.Event(lambda t, q, u: t - 0.5, "kick", action=lambda state, machine: state.replace(u=state.u + 3.0))
    result, told = quiet(ball(), ([1.0], [0.0]), 1.0, events=[kick])
    assert not told and result.attrs["energy_drift"] < 1e-9


@pytest.mark.parametrize("make", (drop, ball_pendulum, thrown))
def test_ordinary_runs_are_not_warned_of(make: Any) -> None:
    machine = bc.compile(make())
    q, u = machine.random_state(np.random.default_rng(3), 4)
    result, told = quiet(machine, (q, u), 2.0)
    assert not told and result.attrs["status"] == "finished" and result.attrs["energy_drift"] < 1e-6


# -- starts that cannot be ----------------------------------------------------------------------------
@pytest.mark.parametrize(("limits", "start", "text"), [
    ({"upper": 0.5}, 1.0, "'hinge' begins at 1, beyond its upper stop at 0.5"),
    ({"lower": -0.5}, -0.6, "'hinge' begins at -0.6, beyond its lower stop at -0.5"),
    ({"lower": 0.0, "upper": 1.0}, 1.0 + 1e-9, "upper stop at 1")])
def test_starts_beyond_a_stop(limits: dict[str, float], start: float, text: str) -> None:
    pendulum = system("pendulum")
    with pytest.raises(bc.StateError, match=text):
        pendulum.simulate(([start], [0.0]), 1.0, events=bc.joint_limit("hinge", **limits))
    with pytest.raises(bc.StateError, match=text):
        pendulum.simulate(([[start]], [[0.0]]), 1.0, events=bc.joint_limit("hinge", **limits))


@pytest.mark.parametrize("off", (0.0, 1e-16, -1e-16, 3e-13))
def test_starts_at_a_stop(off: float) -> None:
    result = system("pendulum").simulate(([0.5 + off], [0.0]), 1.0, events=bc.joint_limit("hinge", upper=0.5))
    assert result.attrs["status"] == "finished" and float(result.q.max()) <= 0.5 + 1e-12


def test_starts_beyond_a_stop_of_a_closing_joint() -> None:
    machine = system("four_bar")
    state = machine.assemble(q={"A": 0.5})
    place = float(bc.analyze.loop_coordinates(machine, state.q, "D")[0])
    with pytest.raises(bc.StateError, match="'D' begins at .*upper stop"):
        machine.simulate(state, 0.1, events=bc.joint_limit("D", upper=place - 0.1))


@pytest.mark.parametrize("backend", ("llvm", "numpy"))
@pytest.mark.parametrize("stepper", ("rk4", "gauss", "dop853", "scipy/DOP853"))
def test_what_cannot_begin_is_an_error(stepper: str, backend: str, tmp_path: Path) -> None:
    """A method that does not cover the machine: nothing is computed, no file is made."""
    m = bc.load("jansen")
    state = bc.compile(m).assemble()
    with pytest.raises(bc.BellcrankError, match="does not cover this machine"):
        bc.compile(m, "reduction", backend).simulate(state, 0.01, stepper=stepper, file=tmp_path / "run.nc")
    assert not list(tmp_path.iterdir())


def test_no_events_are_empty() -> None:
    machine = system("pendulum")
    for events in ([], bc.joint_limit("hinge", upper=100.0)):
        result = machine.simulate(([0.5], [0.0]), 0.1, events=events)
        assert result.event_time.shape == result.event_name.shape == (0,)
        assert result.event_name.dtype.kind == "U" and result.event_time.attrs["units"] == "s"


# -- sizes --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("stepper", "options", "text"), [
    ("rk4", {"duration": 1e300}, "1e+300 s.*longer than 1e+12 s"), ("dopri5", {"duration": 1e300}, "1e+300 s"),
    ("rk4", {"step": 1e-300}, "1e+300 steps"), ("rk4", {"step": 1e-16}, "1e+16 steps"),
    ("dopri5", {"output": 1e-300}, "1e+300 samples"), ("dop853", {"output": 1e-10}, "1e+10 samples"),
    ("rk4", {"output": 1e-9, "step": 1e-9, "duration": 1e4}, "1e+13 samples"),
    ("scipy/DOP853", {"output": 1e-12}, "1e+12 samples")])
def test_numbers_that_nobody_can_mean(stepper: str, options: dict[str, Any], text: str) -> None:
    begun = time.perf_counter()
    with pytest.raises(bc.StateError, match=text.replace("+", r"\+")):
        system("double_pendulum").simulate(([0.1, 0.2], [0.0, 0.0]), **{"duration": 1.0, "stepper": stepper, **options})
    with pytest.raises(bc.StateError, match="1e\\+300|1e\\+12"):
        system("double_pendulum").simulate(bc.State(np.zeros(2), np.zeros(2), 1e300), 1.0, stepper=stepper)
    assert time.perf_counter() - begun < 5.0


def test_samples_that_memory_cannot_hold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from bellcrank.simulate import sizes

    machine = system("double_pendulum")
    monkeypatch.setattr(sizes, "available_memory", lambda: 1e8)
    start = ([0.1, 0.2], [0.0, 0.0])
    with pytest.raises(bc.StateError, match=r"1,000,002 samples of 1 state need about 208 MB of memory, and 100 MB"):
        machine.simulate(start, 1.0, step=1e-6, output=1e-6)
    with pytest.raises(bc.StateError, match=r"1,002 samples of 1,000 states.*output=.*file="):
        machine.simulate((np.zeros((1000, 2)), np.zeros((1000, 2))), 1.0)
    with pytest.raises(bc.StateError, match="memory"):  # the times themselves are too many
        machine.simulate(start, 1.0, stepper="dop853", output=1e-8, file=tmp_path / "run.nc")
    monkeypatch.setattr(sizes.shutil, "disk_usage", lambda path: type("Use", (), {"free": 1e7}))
    with pytest.raises(bc.StateError, match=r"on the disk of .*run.nc"):
        machine.simulate(start, 1.0, step=1e-6, output=1e-6, file=tmp_path / "run.nc")
    assert not list(tmp_path.iterdir())
    assert len(machine.simulate(start, 1.0, step=1e-4, output=1e-3).time) == 1001


LIMITED = """
    import resource, numpy as np, bellcrank as bc
    machine = bc.compile(bc.load("double_pendulum"))
    machine.simulate(([0.1, 0.2], [0.0, 0.0]), 0.1)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    n = 300_000  # 30 GB of samples
    try:
        machine.simulate((np.zeros((n, 2)), np.zeros((n, 2))), 1.0)
    except bc.StateError as error:
        print("refused:", error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space")
def test_a_limit_of_the_process_counts() -> None:
    done = children.run_code(LIMITED)
    assert done.stdout.startswith("refused: simulate: 1,002 samples of 300,000 states need about"), done.stderr
