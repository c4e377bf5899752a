"""Derivatives of motions: along forward and by a sweep back, against differences of runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import math as bm
from looped import sized_four_bar

STEPS = {"step": 0.01, "output": 0.1}


def four_bar() -> bc.Mechanism:
    """A four-bar whose coupler has a length, and carries a load, given by parameters."""
    m = sized_four_bar(load=True)
    m.add_joint_spring("spring", "A", stiffness=3.0, damping=0.2)
    return m


def ball_arm() -> bc.Mechanism:
    m = bc.Mechanism("ball arm")
    load = m.parameter("load", 1.2)
    m.add_body("arm", bc.Inertia(load, (0.2, 0.1, -0.3), (0.05, 0.06, 0.07)))
    m.add_body("fore", bc.Inertia.box(0.7, (0.1, 0.2, 0.3), (0.1, 0.1, 0.1)))
    m.add_joint("ball", bc.Spherical(), m.ground, "arm")
    m.add_joint("elbow", bc.Revolute("y"), "arm", "fore", parent_pose=bc.Pose((0.4, 0, 0)))
    return m


def slopes(f: Callable[[float], Any], h: float = 1e-4) -> np.ndarray:
    """Central differences of order four."""
    return np.asarray(8.0 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12.0 * h)


def close(found: Any, expected: Any, tolerance: float = 2e-8) -> None:
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("stepper", ["rk4", "rk8"])
def test_a_tree_with_quaternions(stepper: str) -> None:
    system = bc.compile(ball_arm())
    q, u = system.random_state(np.random.default_rng(0))
    tau = np.array([0.1, -0.2, 0.3, 0.4])

    def motion(q: Any = q, u: Any = u, tau: Any = tau, load: float = 1.2) -> np.ndarray:
        run = system.with_parameters(load=load).simulate((q, u), 0.4, tau=tau, stepper=stepper, **STEPS)
        return np.hstack([run.q.values, run.u.values])

    run = system.simulate((q, u), 0.4, tau=tau, stepper=stepper, sensitivities=["q0", "u0", "tau", "load"], **STEPS)
    assert run.d_q_q0.dims == ("time", "coordinate", "by_q0") and run.d_u_load.shape == (5, 4, 1)

    def found(name: str) -> np.ndarray:
        return np.concatenate([run[f"d_q_{name}"].values, run[f"d_u_{name}"].values], axis=1)

    for k, e in enumerate(np.eye(4)):
        close(found("q0")[..., k], slopes(lambda s, e=e: motion(q=system.integrate(q, s * e))))
        close(found("u0")[..., k], slopes(lambda s, e=e: motion(u=u + s * e)))
        close(found("tau")[..., k], slopes(lambda s, e=e: motion(tau=tau + s * e)))
    close(found("load")[..., 0], slopes(lambda s: motion(load=1.2 + s)))


def closed_motion(system: bc.System, angle: float = 0.7, speed: float = 1.5, duration: float = 0.5, **parameters: float
                  ) -> np.ndarray:
    """From a beginning in which the independent coordinate and speed are given."""
    other = system.with_parameters(**parameters)
    run = other.simulate(other.assemble(q={"A": angle}, u={"A": speed}), duration, **STEPS)
    return np.hstack([run.q.values, run.u.values])


def test_a_closed_machine() -> None:
    """Along the closed machine; link lengths move where it begins."""
    system = bc.compile(four_bar(), independent=["A"])
    state = system.assemble(q={"A": 0.7}, u={"A": 1.5})
    run = system.simulate(state, 0.5, sensitivities=["q0", "u0", "length", "load"], **STEPS)
    assert list(run.by_q0.values) == ["A.angle"]
    expected = {"q0": slopes(lambda s: closed_motion(system, angle=0.7 + s)),
                "u0": slopes(lambda s: closed_motion(system, speed=1.5 + s)),
                "length": slopes(lambda s: closed_motion(system, length=1.0 + s)),
                "load": slopes(lambda s: closed_motion(system, load=5.0 + s))}
    for name, rows in expected.items():
        close(np.concatenate([run[f"d_q_{name}"].values, run[f"d_u_{name}"].values], axis=1)[..., 0], rows, 1e-6)


def test_gradients_by_a_sweep_back() -> None:
    """The same as along forward, for 5 s of motion, by a link length among others."""
    system = bc.compile(four_bar(), independent=["A"])
    state = system.assemble(q={"A": 0.7}, u={"A": 1.5})

    def cost(q: Any, u: Any) -> Any:
        return bm.sin(q[0]) + 0.5 * u[1] * u[1] + q[2] * u[0]

    by = ["q0", "u0", "tau", "length", "load"]
    value, found = bc.gradient(cost, system, state, 5.0, by=by, step=0.01)
    run = system.simulate(state, 5.0, sensitivities=by, step=0.01, output=5.0)
    q, u = run.q.values[-1], run.u.values[-1]
    assert value == pytest.approx(cost(q, u), rel=1e-9)
    slope = np.array([np.cos(q[0]), 0.0, u[0], 0.0, q[2], u[1], 0.0, 0.0])
    for name in by:
        rows = np.concatenate([run[f"d_q_{name}"].values[-1], run[f"d_u_{name}"].values[-1]])
        close(found[name], slope @ rows, 1e-10)

    def ends(length: float) -> float:
        last = closed_motion(system, duration=5.0, length=length)[-1]
        return float(cost(last[:4], last[4:]))

    close(found["length"][0], (ends(1.0 + 1e-6) - ends(1.0 - 1e-6)) / 2e-6, 1e-5)


@pytest.mark.parametrize("change, words", [
    ({"stepper": "dop853"}, "fixed steps"), ({"tau": {"A": 1.0}, "sensitivities": ["torque"]}, "there are q0, u0, tau"),
    ({"control": bc.Traced(lambda t, q, u: {"A": -u["A"]}), "sensitivities": ["tau"]}, "there are q0, u0, length"),
    ({"events": [bc.Event(lambda t, q, u: 1.0 if u[0] > 0 else -1.0, "turn")]}, "function of event 'turn'"),
    ({"events": [bc.Event(lambda t, q, u: u[0], "turn", action=lambda s, m: m.project(*s))]}, "what event 'turn' does"),
    ({"events": [bc.Event(lambda t, q, u: u[0], "turn", action=bc.detach("D"))]}, "'turn' changes what the machine"),
    ({"sensitivities": ["mass"]}, "nothing called 'mass'"), ({"sensitivities": "load"}, "list of names"),
    ({"closing": "velocity"}, "closing='position'"), ({"control": lambda t, q, u: 0.0 * u}, "Traced")])
def test_what_cannot_be_differentiated_is_refused(change: dict[str, Any], words: str) -> None:
    system = bc.compile(four_bar())
    state = system.assemble(q={"A": 0.7})
    with pytest.raises(bc.BellcrankError, match=words):
        system.simulate(state, 0.1, **({"sensitivities": ["load"]} | change))
    with pytest.raises(bc.ModelError, match="one number that depends on the state"):
        bc.gradient(lambda q, u: 1.0, system, state, 0.1)
    with pytest.raises(bc.ModelError, match="cannot be traced"):
        bc.gradient(lambda q, u: 1.0 if q[0] * 2 else u[0], system, state, 0.1)


def samples(run: Any, name: str | None = None) -> np.ndarray:
    """States at samples, or their derivatives."""
    one = ("q", "u") if name is None else (f"d_q_{name}", f"d_u_{name}")
    return np.concatenate([run[x].values for x in one], axis=1)


@pytest.mark.parametrize("stepper", ["semi_implicit", "gauss", "radau"])
@pytest.mark.parametrize("closed", [False, True])
def test_implicit_steps(stepper: str, closed: bool) -> None:
    """Their stages are solved for, and differentiated as solved; back and forth the same."""
    system = bc.compile(four_bar(), independent=["A"]) if closed else bc.compile(ball_arm())
    start = system.assemble(q={"A": 0.7}, u={"A": 1.5}) if closed else system.random_state(np.random.default_rng(0))
    options: dict[str, Any] = {"stepper": stepper, "step": 0.02, "output": 0.1}
    tau = {"A": 0.3} if closed else {"elbow": 0.3}

    def motion(load: float) -> np.ndarray:
        return samples(system.with_parameters(load=load).simulate(start, 0.3, tau=tau, **options))

    load = float(system.parameters["load"])
    by = ["load", "q0", "u0", "tau"]
    run = system.simulate(start, 0.3, tau=tau, sensitivities=by, **options)
    close(samples(run, "load")[..., 0], slopes(lambda s: motion(load + s)))
    _, found = bc.gradient(lambda q, u: q[0] * u[1], system, start, 0.3, by=by, step=0.02, stepper=stepper, tau=tau)
    q, u = run.q.values[-1], run.u.values[-1]
    for name in by:
        close(found[name], u[1] * run[f"d_q_{name}"].values[-1, 0] + q[0] * run[f"d_u_{name}"].values[-1, 1], 1e-10)


def pulled(t: Any, q: Any, u: Any) -> dict[str, Any]:
    return {"A": 2.0 * bm.sin(3.0 * t) - 0.8 * u["A"] - q["B"]}


def at_the_cut(t: Any, q: Any, u: Any) -> dict[str, Any]:
    return {"A": -u["A"], "D": 2.0 - 0.5 * u["D"]}


@pytest.mark.parametrize("options", [
    {"control": bc.Traced(pulled)}, {"control": bc.Traced(pulled, period=0.03)}, {"control": bc.Traced(at_the_cut)},
    {"control": bc.Traced(at_the_cut, period=0.02)}, {"tau": {"D": 1.5}},
    {"wrenches": {"coupler": (0, 0, 0.4, 3, 2, 0)}},
    {"wrenches": bc.Traced(lambda t, q, u: {"coupler": (0, 0, -u["A"], 3.0 * q["B"], 0, 0)})},
    {"wrenches": bc.Traced(lambda t, q, u: {"rocker": (0, 0, -u["A"], t, 0, 0)}, period=0.02)}],
    ids=["stages", "held", "cut", "cut and held", "cut forces", "wrench", "wrench law", "wrench held"])
def test_forces_of_every_kind(options: dict[str, Any]) -> None:
    """Controllers that depend on the state, in every stage or held, on joints that close loops, on bodies."""
    system = bc.compile(four_bar(), independent=["A"], cut=["D"])

    def motion(angle: float, load: float) -> np.ndarray:
        one = system.with_parameters(load=load)
        return samples(one.simulate(one.assemble(q={"A": angle}, u={"A": 1.5}), 0.3, **STEPS, **options))

    start = system.assemble(q={"A": 0.7}, u={"A": 1.5})
    by = ["q0", "load"]
    run = system.simulate(start, 0.3, sensitivities=by, **STEPS, **options)
    close(samples(run, "q0")[..., 0], slopes(lambda s: motion(0.7 + s, 5.0)), 1e-7)
    close(samples(run, "load")[..., 0], slopes(lambda s: motion(0.7, 5.0 + s)), 1e-7)
    _, found = bc.gradient(lambda q, u: q[0] * u[1], system, start, 0.3, by=by, step=0.01, **options)
    q, u = run.q.values[-1], run.u.values[-1]
    for name in by:
        close(found[name], u[1] * run[f"d_q_{name}"].values[-1, 0] + q[0] * run[f"d_u_{name}"].values[-1, 1], 1e-10)


def doubled(state: bc.State, system: Any) -> bc.State:
    return bc.State(state.q, np.array([1.5 * x + 0.1 * bm.sin(state.q[4]) for x in state.u]), state.t)


@pytest.mark.parametrize("closed, events", [
    (False, [bc.Event(lambda t, q, u: q["elbow"] - 0.3 - 0.1 * t, "kick", 1, doubled)]),
    (False, [*bc.joint_limit("elbow", -0.4, 0.9, restitution=0.8)]),
    (False, [*bc.joint_limit("elbow", -0.4, 0.9, restitution=0.8), bc.Event(lambda t, q, u: u["elbow"], "turned", -1)]),
    (True, [*bc.joint_limit("A", lower=0.3, restitution=0.6)]), (True, [*bc.joint_limit("D", 1.5, 1.95)]),
    (True, [*bc.joint_limit("A", lower=0.3), bc.Event(lambda t, q, u: q["A"] - 0.31, "end", 1, "stop")]),
    (False, [bc.Event(lambda t, q, u: q["elbow"] - 0.3, "set", action=bc.Change(state=bc.State(
        np.array([1.0, 0, 0, 0, 0.4]), np.array([0.1, 0.2, 0.3, -1.0]))))])],
    ids=["kick", "stop", "stop and record", "closed", "stop of a cut joint", "end", "given state"])
def test_through_events(closed: bool, events: list[bc.Event]) -> None:
    """Their times depend on what came before; the end of the run, too, if an event ends it."""
    system = bc.compile(four_bar(), independent=["A"], cut=["D"]) if closed else bc.compile(ball_arm())
    load = float(system.parameters["load"])

    def start(one: bc.System, speed: float = 1.5) -> Any:
        if closed:
            return one.assemble(q={"A": 0.7}, u={"A": speed})
        return np.array([1.0, 0, 0, 0, 0.2]), np.array([0.3, speed - 1.0, -0.2, 2.0])

    def motion(load: float = load, speed: float = 1.5) -> np.ndarray:
        one = system.with_parameters(load=load)
        run = one.simulate(start(one, speed), 0.5, events=events, **STEPS)
        return np.hstack([samples(run), run.time.values[:, None]])

    by = ["load", "u0"]
    run = system.simulate(start(system), 0.5, events=events, sensitivities=by, **STEPS)
    assert np.abs(run.d_time_load.values).max() > 1e-4, "an event happened"
    column = 0 if closed else 1
    for name, k, expected in (("load", 0, slopes(lambda s: motion(load=load + s))),
                              ("u0", column, slopes(lambda s: motion(speed=1.5 + s)))):
        close(samples(run, name)[..., k], expected[:, :-1], 1e-6)
        close(run[f"d_time_{name}"].values[:, k], expected[:, -1], 1e-6)
    _, found = bc.gradient(lambda q, u: q[0] * u[1] + u[0], system, start(system), 0.5, by=by, step=0.01, events=events)
    q, u = run.q.values[-1], run.u.values[-1]
    for name in by:
        d_q, d_u = run[f"d_q_{name}"].values[-1], run[f"d_u_{name}"].values[-1]
        close(found[name], u[1] * d_q[0] + q[0] * d_u[1] + d_u[0], 1e-10)


def test_joints_that_come_to_rest_are_refused() -> None:
    system = bc.compile(four_bar(), independent=["A"])
    state = system.assemble(q={"A": 0.7}, u={"A": 1.5})
    with pytest.raises(bc.NotYetError, match="'A at 0.3' at t = .* changes what the machine is made of"):
        system.simulate(state, 1.5, events=bc.joint_limit("A", lower=0.3, restitution=0.0),
                        sensitivities=["load"], step=0.01)


def test_held_controllers_between_events() -> None:
    """What is held goes on to act behind an event within a step; back and forth the same, and as differences say."""
    system = bc.compile(four_bar(), independent=["A"])
    options: dict[str, Any] = {"events": bc.joint_limit("A", lower=0.3, restitution=0.6),
                               "control": bc.Traced(lambda t, q, u: {"A": bm.sin(9.0 * t) - u["A"]}, period=0.04)}

    def motion(load: float) -> np.ndarray:
        one = system.with_parameters(load=load)
        return samples(one.simulate(one.assemble(q={"A": 0.7}, u={"A": 1.5}), 0.4, step=0.01, output=0.2, **options))

    start, by = system.assemble(q={"A": 0.7}, u={"A": 1.5}), ["load", "u0"]
    run = system.simulate(start, 0.4, step=0.01, output=0.2, sensitivities=by, **options)
    assert np.count_nonzero(run.d_time_load.values) >= 2
    close(samples(run, "load")[..., 0], slopes(lambda s: motion(5.0 + s)), 1e-6)
    _, found = bc.gradient(lambda q, u: q[0] * u[1], system, start, 0.4, by=by, step=0.01, **options)
    q, u = run.q.values[-1], run.u.values[-1]
    for name in by:
        close(found[name], u[1] * run[f"d_q_{name}"].values[-1, 0] + q[0] * run[f"d_u_{name}"].values[-1, 1], 1e-10)


@pytest.mark.parametrize("stepper, step", [("semi_implicit", 0.02), ("rk4", 0.02), ("rk4", 0.002), ("radau", 0.05)])
def test_runs_that_change_their_independent_speeds(stepper: str, step: float) -> None:
    """Every step is differentiated by the plan that made it, forward and back; so is one that an event cuts short."""
    system = bc.compile(bc.load("four_bar"), independent=["C"])
    state = system.assemble(q={"A": 0.35}, u={"A": -7.0})
    motion = system.reduced(state).motions[:, 0]
    slow = bc.Event(lambda t, q, u: q["A"] - 0.14, "slow", action=lambda s, m: bc.State(s.q, 0.9 * s.u, s.t))
    for events in ([], [slow]):
        options: dict[str, Any] = {"step": step, "stepper": stepper, "events": events}
        run = quiet(system, state, output=0.2, sensitivities=["u0"], **options)
        assert run.attrs["switches"] and len(run.time) == 3 + 2 * len(events)
        expected = slopes(lambda s, o=options: samples(quiet(
            system, (state.q, state.u + s * motion), output=0.2, **o))[-1])
        close(samples(run, "u0")[-1, :, 0], expected, 1e-6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = bc.gradient(lambda q, u: u[0], system, state, 0.4, by=["u0"], **options)[1]
        close(found["u0"], run.d_u_u0.values[-1, 0], 1e-8)


def quiet(system: bc.System, state: Any, **options: Any) -> Any:
    """0.4 s of a motion, whatever is said of its accuracy."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=bc.SimulationWarning)
        return system.simulate(state, 0.4, **options)


def test_steps_that_cannot_be_repeated_are_told() -> None:
    """A long step through the flat position of a parallelogram, and loops that are closed in another way."""
    system = bc.compile(bc.load("four_bar"), method="dense")
    state = system.assemble(q={"A": 0.3}, u={"A": -5.0})
    with pytest.warns(bc.BellcrankWarning, match="off the samples of the run.*approximate"):
        quiet(system, state, step=0.02, sensitivities=["u0"])


@pytest.mark.parametrize("period", [None, 0.02])
def test_gains_of_controllers(period: float | None) -> None:
    """Traced controllers may use parameters of the mechanism, which need no other use."""
    m = bc.load("double_pendulum")
    gain = m.parameter("gain", 2.0)
    system, state = bc.compile(m), ([0.3, 0.1], [0.0, 0.0])
    law = bc.Traced(lambda t, q, u: {"shoulder": -gain * q["shoulder"] - 0.1 * gain * u["shoulder"]}, period)

    def ends(change: float, backend: str = "llvm") -> np.ndarray:
        other = bc.compile(m, backend=backend).with_parameters(gain=2.0 + change)
        return samples(other.simulate(state, 0.1, step=0.01, control=law))[-1]

    run = system.simulate(state, 0.1, step=0.01, control=law, sensitivities=["gain"])
    close(samples(run)[-1], ends(0.0, "numpy"), 1e-12)
    close(samples(run, "gain")[-1, :, 0], slopes(ends), 1e-9)
    found = bc.gradient(lambda q, u: u[0], system, state, 0.1, by=["gain"], step=0.01, control=law)[1]
    close(found["gain"], run.d_u_gain.values[-1, 0], 1e-12)
    assert len(gain.graph.nodes) <= 3, "operations of controllers stay in the graph of the mechanism"
    with pytest.raises(bc.ModelError, match="control: no parameter 'gain' in 'double pendulum'; it has none"):
        bc.compile(bc.load("double_pendulum")).simulate(state, 0.1, control=law)
