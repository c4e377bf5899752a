"""States of elements: at rest, in linear models, by every stepper, in batches, events and derivatives."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.formulations import SHARED
from bellcrank.lowering.choose import entries_of
from bellcrank.scalar.graph import Graph
from bellcrank.target.cuda.device_text import batch_text
from bellcrank.target.kernel_source import GraphKernel
from c_library import COMPILER, exported

G, LAG, GAIN, LOSS = 9.81, 0.1, 3.0, 0.5


def held() -> bc.Mechanism:
    """A pendulum of 1 kg and 1 m on a spring that comes late, pushed by 2 N m."""
    m = bc.load("pendulum")
    m.parameter("gain", GAIN)
    m.add_state("lag", lambda at: (at.q("hinge") - at.state("lag")) / LAG, initial=0.2)
    m.add_joint_force("late", "hinge", lambda at: 2.0 - at.parameter("gain") * at.state("lag") - LOSS * at.u("hinge"))
    return m


@cache
def system(backend: str = "llvm") -> bc.System:
    return bc.compile(held(), backend=backend)


def steered(target: float = 0.4) -> bc.System:
    """The same held by a controller whose integral is a state that does not depend on itself."""
    m = bc.load("pendulum")
    m.add_state("sum", lambda at: target - at.q("hinge"))
    m.add_joint_force("pid", "hinge", lambda at: 30.0 * (target - at.q("hinge")) - 8.0 * at.u("hinge")
                      + 20.0 * at.state("sum"))
    return bc.compile(m, backend="numpy")


# -- at rest ------------------------------------------------------------------------------------------------------
def test_steps_to_a_rest_that_leave_where_laws_have_values_are_shortened() -> None:
    m = bc.load("pendulum")
    m.add_state("level", lambda at: 0.1 - bc.math.sqrt(at.state("level")), initial=4.0)  # Newton's first step: -3.6
    m.add_joint_force("float", "hinge", lambda at: at.state("level"))
    rest = bc.analyze.equilibrium(bc.compile(m, backend="numpy"))
    assert abs(rest.u[1] - 0.01) < 1e-12


def test_states_rest_in_equilibrium() -> None:
    rest = bc.analyze.equilibrium(system("numpy"), {"hinge": 0.5})
    angle = float(rest.q[0])
    assert abs(2.0 - GAIN * angle - G * np.sin(angle)) < 1e-12
    assert abs(rest.u[1] - angle) < 1e-13 and rest.u[0] == 0.0
    many = bc.analyze.equilibrium(system("numpy"), {"hinge": 0.5}, tau=np.array([[0.0, 0.0], [1.0, 0.0]]))
    assert np.abs(system("numpy").forward_dynamics(many.q, many.u, [[0.0, 0.0], [1.0, 0.0]])).max() < 1e-12
    assert abs(many.q[0, 0] - angle) < 1e-12 and many.q[1, 0] > angle + 0.05


def test_integrators_ask_for_a_position() -> None:
    """The rate of the state says where the machine is, its force says what the state is."""
    pid = steered()
    rest = bc.analyze.equilibrium(pid)
    assert abs(rest.q[0] - 0.4) < 1e-13 and abs(20.0 * rest.u[1] - G * np.sin(0.4)) < 1e-12


def test_states_of_machines_with_loops_rest() -> None:
    m = bc.load("four_bar")
    m.add_state("p", lambda at: 5.0 * (at.q("B") - at.state("p")) + 1.0)
    m.add_joint_force("d", "A", lambda at: 4.0 * at.state("p") - 2.0 * at.u("A"))
    linkage = bc.compile(m, backend="numpy")
    rest = bc.analyze.equilibrium(linkage, {"A": 0.5})
    assert np.abs(linkage.forward_dynamics(rest)).max() < 1e-10 and abs(
        rest.u[linkage.speed_names.index("p.value")] - rest.q[1] - 0.2) < 1e-11


def test_equilibria_that_run_away_are_refused() -> None:
    m = bc.load("pendulum")
    m.add_state("x", lambda at: at.state("x") - at.q("hinge") + 1.0)
    grows = bc.compile(m, backend="numpy")
    with pytest.raises(bc.StateError, match=r"not stable \(it grows at the rate 1 1/s\).*stable=False"):
        bc.analyze.equilibrium(grows)
    assert np.abs(bc.analyze.equilibrium(grows, stable=False).u - [0.0, -1.0]).max() < 1e-12
    m = bc.load("pendulum")
    m.add_state("never", lambda at: 1.0 + at.state("never") ** 2)
    with pytest.raises(bc.StateError, match="no place where states of elements rest; rates of 'never' by"):
        bc.analyze.equilibrium(bc.compile(m, backend="numpy"))


# -- linear models ------------------------------------------------------------------------------------------------
def test_linear_models_have_states_by_name() -> None:
    """Three states: angle, rate and lag; poles are the roots of (s^2 + c s + g cos a)(T s + 1) + gain."""
    rest = bc.analyze.equilibrium(system(), {"hinge": 0.5})
    model = bc.analyze.linearize(system(), rest)
    assert model.states == ("hinge", "hinge.rate", "lag") and model.error == 0.0
    assert model.outputs == ("hinge.angle", "hinge.angle.rate", "lag")
    stiff = G * np.cos(rest.q[0])
    wanted = np.roots(np.polymul([1.0, LOSS, stiff], [LAG, 1.0]) + [0.0, 0.0, 0.0, GAIN])
    for found in (model.eigenvalues, np.append(e := bc.analyze.modes(system(), rest, damped=True).eigenvalues,
                                               e[e.imag > 0].conj())):
        assert np.abs(np.sort_complex(found) - np.sort_complex(wanted)).max() < 1e-9
    assert np.abs(model.nearby([0.01, 0.02, 0.03]).u - rest.u - [0.02, 0.03]).max() < 1e-12
    plain = bc.analyze.modes(system(), rest)  # the state stays as it is
    assert abs(plain.eigenvalues[0] - 1j * np.sqrt(stiff)) < 1e-9 and len(plain) == 1
    assert plain.participation.tolist() == [[1.0, 0.0]]


def test_integrals_that_are_looked_at_stay() -> None:
    m = held()
    m.add_joint_force("more", "hinge", lambda at: -0.1 * at.q("lag"))
    model = bc.analyze.linearize(bc.compile(m, backend="numpy"), ([0.1, 0.0], [0.0, 0.1]), outputs=["lag"])
    assert model.states == ("hinge", "lag", "hinge.rate", "lag.rate")


def test_derivatives_go_through_states() -> None:
    q, u = np.array([0.3, 0.1]), np.array([0.4, -0.2])
    exact = system().derivatives("forward_dynamics", q, u, by=("q", "u", "gain"))
    assert np.abs(exact["u"] - [[-LOSS, -GAIN], [0.0, -1.0 / LAG]]).max() < 1e-12
    assert np.abs(exact["q"] - [[-G * np.cos(0.3), 0.0], [1.0 / LAG, 0.0]]).max() < 1e-12
    assert np.abs(exact["gain"].ravel() - [0.2, 0.0]).max() < 1e-12


# -- in time ------------------------------------------------------------------------------------------------------
#: how far off each stepper may be after 0.2 s, fixed ones with steps of 2 ms
ERRORS = {"rk4": 1e-9, "rk8": 1e-12, "semi_implicit": 2e-3, "gauss": 1e-12, "radau": 1e-12, "dopri5": 1e-8,
          "radau5": 1e-8, "dop853": 1e-8, "moreau": 2e-5, "scipy/RK45": 1e-8, "scipy/Radau": 1e-8, "scipy/LSODA": 1e-8,
          "sundials/BDF": 1e-6, "sundials/Adams": 1e-6}
DURATION = 0.2


def started(machine: bc.System) -> bc.State:
    return machine.assemble(q={"hinge": 0.5}, u={"hinge": 0.3})


@cache
def reference(gain: float = GAIN, lag: float = 0.2) -> np.ndarray:
    """Angle, rate and lag at the end by another library, from equations written out."""
    from scipy.integrate import solve_ivp

    def rates(t: float, y: np.ndarray) -> list[float]:
        return [y[1], 2.0 - G * np.sin(y[0]) - gain * y[2] - LOSS * y[1], (y[0] - y[2]) / LAG]

    return solve_ivp(rates, (0.0, DURATION), [0.5, 0.3, lag], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


def end(run: bc.Result, *at: Any) -> np.ndarray:
    return np.stack([run.q.values[(-1, *at, 0)], run.u.values[(-1, *at, 0)], run.u.values[(-1, *at, 1)]], axis=-1)


def test_all_steppers_are_here() -> None:
    from bellcrank.simulate.steppers import STEPPERS

    assert set(STEPPERS) <= set(ERRORS)


def test_states_begin_where_parameters_say() -> None:
    """One beginning for each value of a parameter; with as many positions, or one for all."""
    m = bc.load("pendulum")
    m.add_state("lag", lambda at: -at.state("lag"), initial=m.parameter("start", 0.1))
    many = bc.compile(m).with_parameters(start=np.array([0.1, 0.2, 0.3]))
    for state in (many.assemble(), many.assemble(q={"hinge": 0.4}), many.assemble(q={"hinge": np.arange(3.0)}),
                  many.assemble(u={"hinge": 2.0})):
        assert state.u.shape == (3, 2) and np.array_equal(state.u[:, 1], [0.1, 0.2, 0.3])
    assert np.array_equal(many.assemble(u={"lag": 0.7}).u[:, 1], [0.7] * 3)
    run = many.simulate(many.assemble(), 0.5, step=1e-2)
    assert np.abs(run.u.values[-1, :, 1] - np.exp(-0.5) * np.array([0.1, 0.2, 0.3])).max() < 1e-9
    with pytest.raises(bc.StateError, match="batch"):
        many.assemble(q={"hinge": np.arange(4.0)})
    study = bc.sweep(m, {"start": [0.1, 0.5], "q.hinge": [0.2, 0.3]}, run={"duration": 0.01}, reduce="first")
    assert np.array_equal(study.u_first.sel(speed="lag.value"), [0.1, 0.1, 0.5, 0.5])


@pytest.mark.parametrize("stepper", ERRORS)
@pytest.mark.everyday(len(ERRORS))
def test_every_stepper_integrates_states(stepper: str) -> None:
    if stepper.startswith("sundials"):
        pytest.importorskip("sksundae")
    steps = {} if "/" in stepper or stepper in ("dopri5", "radau5", "dop853") else {"step": 2e-3}
    machine = system("numpy" if stepper == "moreau" else "llvm")  # which compiles more than all others
    run = machine.simulate(started(machine), DURATION, stepper=stepper, output=DURATION, **steps)
    assert np.abs(end(run) - reference()).max() < ERRORS[stepper]


@pytest.mark.parametrize("stepper", ["rk8", "radau", "dop853", "radau5"])
def test_states_of_machines_with_loops_in_time(stepper: str) -> None:
    """The same end by all of them; the state follows a joint at which the loop is cut."""
    m = bc.load("four_bar")
    m.add_state("p", lambda at: 5.0 * (at.q("B") - at.state("p")) + 1.0)
    m.add_joint_force("d", "A", lambda at: 4.0 * at.state("p") - 2.0 * at.u("A"))
    linkage = bc.compile(m)
    steps = {"step": 1e-3} if stepper in ("rk8", "radau") else {}
    run = linkage.simulate(linkage.assemble(q={"A": 0.5}, u={"A": 1.0}), 0.05, stepper=stepper, output=0.05, **steps)
    again = run.u.values[-1] if stepper == "rk8" else linkage.simulate(
        linkage.assemble(q={"A": 0.5}, u={"A": 1.0}), 0.05, stepper="rk8", output=0.05).u.values[-1]
    assert abs(again[3]) > 0.01 and np.abs(run.u.values[-1] - again).max() < 1e-8


def test_states_in_batches_rollouts_and_events() -> None:
    """Lanes with parameters and beginnings of their own; a state that makes an event."""
    gains, lags = np.array([0.0, 1.0, 3.0, 9.0, 4.0]), np.array([0.2, -0.4, 0.0, 1.0, 0.3])
    many = system().with_parameters(gain=gains)
    q, u = np.tile([0.5, 0.0], (5, 1)), np.stack([np.full(5, 0.3), lags], axis=-1)
    run = many.simulate((q, u), DURATION, stepper="rk8", output=DURATION)
    motion = bc.rollout(many, (q, u), step=1e-3, stepper="rk8")
    motion.step(steps=200)
    for found in (end(run, slice(None)), np.stack([motion.q[:, 0], motion.u[:, 0], motion.u[:, 1]], axis=-1)):
        wanted = np.array([reference(float(g), float(x)) for g, x in zip(gains, lags, strict=True)])
        assert np.abs(found - wanted).max() < 1e-11
    half = bc.Event(lambda t, q, u: u["lag"] - 0.35, "half", action="stop")
    run = system().simulate(started(system()), 1.0, stepper="rk8", events=[half])
    assert abs(run.u.values[-1, 1] - 0.35) < 1e-11 and run.attrs["status"] == "stopped"


@pytest.mark.parametrize("stepper", ["rk8", "radau"])
def test_sensitivities_of_states(stepper: str) -> None:
    """By a parameter of a law, and by where the state begins."""
    run = system().simulate(started(system()), DURATION, step=2e-3, stepper=stepper, output=DURATION,
                            sensitivities=["u0", "gain"])
    h = 1e-4
    by_gain = (reference(GAIN + h) - reference(GAIN - h)) / (2.0 * h)
    by_lag = (reference(lag=0.2 + h) - reference(lag=0.2 - h)) / (2.0 * h)
    assert np.abs(run.d_u_gain.values[-1].ravel() - by_gain[1:]).max() < 1e-7
    assert np.abs(run.d_u_u0.values[-1, :, 1] - by_lag[1:]).max() < 1e-7


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_states_in_c(tmp_path: Path) -> None:
    library = exported(system(), ["forward_dynamics"], tmp_path, stepper="rk4")
    q, u, given = np.array([0.3, 0.1]), np.array([0.4, -0.2]), {"tau": np.zeros(2), "parameters": [GAIN], "t": 0.0}
    status, found, _ = library("forward_dynamics", {"q": q, "u": u, **given}, 2)
    assert status == 0 and np.abs(found - system().forward_dynamics(q, u)).max() < 1e-13
    status, after, _ = library("step", {"y": np.concatenate([q, u]), "h": 1e-3, **given})
    run = system().simulate((q, u), 1e-3, step=1e-3)
    assert status == 0 and np.abs(after - np.concatenate([run.q.values[-1], run.u.values[-1]])).max() < 1e-14


def test_states_in_the_text_for_gpus() -> None:
    graph = Graph()
    traced = entries_of(system().model.tree, SHARED["joint_laws"], lambda name, i: graph.leaf((name, i)), False)
    text = batch_text(GraphKernel(traced, {"q": 2, "u": 2, "parameters": 1}), "double").text
    assert "__global__" in text and str(1.0 / LAG) in text


def test_names_of_states_are_looked_at_before_anything_is_added() -> None:
    m = bc.load("pendulum")
    before = len(m.bodies), len(m.joints)
    for name, units, said in (("hinge", "1", "state 'hinge': a joint is called so already"), ("bob", "1", "body 'bob'"),
                              ("x", 3, "state 'x': units are a text")):
        with pytest.raises(bc.ModelError, match=said):
            m.add_state(name, lambda at: 0.0, units=units)
        assert (len(m.bodies), len(m.joints), m.states) == (*before, ())


def lift(**options: float) -> bc.System:
    """An arm on a hydraulic cylinder."""
    m = bc.Mechanism("lift", gravity=(0, -9.81, 0))
    arm = m.add_body("arm", bc.Inertia.rod(200.0, (0, 0, 0), (2.0, 0, 0)))
    m.add_joint("pin", bc.Revolute("z"), m.ground, arm)
    m.add_hydraulic_cylinder("lift", m.ground, arm, (0.3, -0.8, 0), (0.8, 0, 0), head_area=2e-3, rod_area=1.2e-3,
                             closed=0.7, stroke=0.6, **options)
    return bc.compile(m, backend="numpy")


def length_of(angle: float) -> float:
    """Of the cylinder of `lift`."""
    return float(np.hypot(0.8 * np.cos(angle) - 0.3, 0.8 * np.sin(angle) + 0.8))


def test_trapped_oil_is_a_spring_in_equilibrium() -> None:
    """Pressures follow the volumes from the guess: p = p0 - E ln(V / V0)."""
    system = lift()
    rest = bc.analyze.equilibrium(system, {"pin": 0.1})
    assert np.abs(system.forward_dynamics(rest)).max() < 1e-9 and 0.0 < 0.1 - rest.q[0] < 1e-3
    for state, area, volume in (("lift head", 2e-3, lambda x: 1e-4 + 2e-3 * (x - 0.7)),
                                ("lift rod", -1.2e-3, lambda x: 1e-4 + 1.2e-3 * (1.3 - x))):
        ratio = volume(length_of(float(rest.q[0]))) / volume(length_of(0.1))
        pressure = rest.u[system.speed_names.index(f"{state}.value")]
        assert pressure == pytest.approx(0.1 - 1.4e3 * np.log(ratio), abs=1e-6), area


def test_a_shut_cylinder_holds_what_is_held() -> None:
    """The head's pressure carries the weight, the rod's stays."""
    system = lift(gain=1e-7, opening=0.0)
    rest = bc.analyze.equilibrium(system, {"pin": 0.1}, hold=["pin"])
    assert rest.q[0] == 0.1 and np.abs(system.forward_dynamics(rest)).max() < 1e-9
    arm = 0.8 * np.array([np.cos(0.1), np.sin(0.1)])
    line = (arm - [0.3, -0.8]) / length_of(0.1)
    push = 200.0 * 9.81 * np.cos(0.1) / (arm[0] * line[1] - arm[1] * line[0])
    assert rest.u[1:] == pytest.approx([(push / 1e6 + 0.1 * 1.2e-3) / 2e-3, 0.1], rel=1e-9)
