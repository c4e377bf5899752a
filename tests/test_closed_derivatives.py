"""Derivatives of closed machines as users ask for them, whatever the cut: outputs, joints, rest, driven motion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import math as bm
from bellcrank.simulate.fields import output_values
from looped import sized_four_bar
from test_derivatives import close

CUTS: tuple[dict[str, Any], ...] = ({}, {"cut": ["B"]}, {"cut": ["A"], "method": "recursive"}, {"actuated": ["D"]})


def watched(moving: bool) -> bc.Mechanism:
    """A four-bar with outputs, one of which reads speeds if wanted."""
    m = sized_four_bar(load=True)
    m.add_output("slope", lambda at: bm.atan2(at.axes("coupler")[0].y, at.axes("coupler")[0].x))
    m.add_output("height", lambda at: at.position("coupler", (0.4, 0.3, 0.0)).y + at.t * at.parameter("length"))
    if moving:
        m.add_output("speed", lambda at: at.velocity("rocker", (0.2, 0.1, 0.0)).x * at.q("D") + at.u("D"))
    return m


def outputs_of(system: bc.System, state: bc.State) -> np.ndarray:
    found = output_values(system, np.reshape(state.t, 1), state.q[None], state.u[None])
    return np.array([x[0] for x in found.values()])


#: central differences of order four
STEPS, SLOPES = 1e-3 * np.array([1.0, -1.0, 2.0, -2.0]), np.array([8.0, -8.0, -1.0, 1.0]) / 12e-3
VALUES: dict[str, Callable[[bc.System, bc.State], np.ndarray]] = {
    "outputs": outputs_of, "joint_coordinates": lambda system, state: state.q,
    "joint_speeds": lambda system, state: state.u,
    "joint_accelerations": lambda system, state: system.consistent_acceleration(state, {"A": [0.7]})}


@pytest.mark.parametrize("how", CUTS, ids=str)
def test_outputs_and_all_joints(how: dict[str, Any]) -> None:
    system = bc.compile(watched(True), independent=["A"], **how)

    def at(angle: float = 0.0, speed: float = 0.0, length: float = 0.0) -> tuple[bc.System, bc.State]:
        machine = system.with_parameters(length=1.0 + length) if length else system
        return machine, machine.assemble(q={"A": 0.5 + angle}, u={"A": 2.0 + speed})

    moved = {x: [at(**{name: step}) for step in STEPS] for x, name in
             (("q", "angle"), ("u", "speed"), ("length", "length"))}
    _, state = at()
    for name, value in VALUES.items():
        more = (value(system, state),) if name == "joint_accelerations" else ()
        by = ("q", "length") if name == "joint_coordinates" else ("q", "u", "length")
        d = system.derivatives(name, state, *more, by=by)
        assert d.columns["q"] == ("A.angle",)
        close(d.value, value(system, state), 1e-13)
        for x in by:
            expected = SLOPES @ np.array([value(*other) for other in moved[x]])
            close(d[x] if x == "length" else d[x][:, 0], expected, 1e-8)


def test_outputs_of_batches_have_names() -> None:
    system = bc.compile(watched(False), backend="numpy").with_parameters(length=np.array([1.0, 1.05]))
    first, second = (system.with_parameters(length=x).assemble(q={"A": 0.4}) for x in (1.0, 1.05))
    state = bc.State(np.stack([first.q, second.q]), np.zeros((2, system.nu)), 0.0)
    d = system.derivatives("outputs", state, by=("q", "u", "parameters"))
    assert d["parameters"].shape == (2, 2, 2) and not d["u"].any()  # of positions alone
    assert list(d.dataset().output.values) == ["slope", "height"]
    for k, length in enumerate((1.0, 1.05)):
        one = system.with_parameters(length=length).derivatives("outputs", state.q[k], state.u[k], by="parameters")
        close(d["parameters"][k], one["parameters"], 1e-13)


# -- directions that are chosen ---------------------------------------------------------------------------------------
def near(system: bc.System, state: bc.State, joint: str, **steps: float) -> bc.State:
    """The state with one joint moved or sped, by steps of "q" and "u"; the machine has other parameters, perhaps."""
    v = system.speed_names.index(f"{joint}.angle")
    return system.assemble(q={joint: state.q[v] + steps.get("q", 0.0)}, u={joint: state.u[v] + steps.get("u", 0.0)},
                           guess=state)


@pytest.mark.parametrize(("how", "joint"), [*zip(CUTS, "BBAA", strict=True)], ids=str)
def test_what_is_held_is_chosen_by_a_call(how: dict[str, Any], joint: str) -> None:
    """First derivatives against differences of values, second ones against differences of first ones."""
    system = bc.compile(watched(True), backend="numpy", **how)
    state = system.assemble(q={"A": 0.5}, u={"A": 2.0})

    def moved(x: str, step: float) -> tuple[bc.System, bc.State]:
        machine = system.with_parameters(length=1.0 + step) if x == "length" else system
        return machine, near(machine, state, joint, **({} if x == "length" else {x: step}))

    by = ("q", "u", "length")
    d = system.derivatives("outputs", state, by=by, independent=[joint])
    assert d.columns["q"] == d.columns["u"] == (f"{joint}.angle",)
    weights = np.array([0.3, -0.7, 0.4])
    twice = system.derivatives("outputs", state, along={"q": [0.3], "u": [0.7], "length": -0.2}, weights=weights,
                               independent=[joint])
    close(twice["along"], 0.3 * d["q"][:, 0] + 0.7 * d["u"][:, 0] - 0.2 * d["length"], 1e-12)
    for x in by:
        machines = [moved(x, step) for step in STEPS]
        firsts = [machine.derivatives("outputs", other, by=by, independent=[joint]) for machine, other in machines]
        second = system.derivatives("outputs", state, by=by, then=x, independent=[joint])
        for y in by:
            close(np.ravel(second[y]), SLOPES @ np.array([np.ravel(first[y]) for first in firsts]), 1e-8)
        rates = 0.3 * second["q"] + 0.7 * second["u"] - 0.2 * second["length"].reshape(second["q"].shape)
        close(np.ravel(twice[x]), weights @ rates.reshape(3, -1), 1e-10)


def test_second_derivatives_where_another_plan_computes() -> None:
    """Where the first plan has no pivots: as by a machine whose first plan has them."""
    mechanism = bc.load("four_bar")
    first, other = (bc.compile(mechanism, backend="numpy", independent=[x]) for x in ("C", "A"))
    angles = np.linspace(0.1, 0.3, 3)
    state = first.assemble(q={"A": angles[:, None]}, u={"A": np.ones((3, 1))})
    wanted = other.derivatives("velocity", state, by=("q", "u"), then="q", body="coupler", independent=["C"])
    failing = bc.compile(mechanism, backend="numpy", independent=["C"])
    plan = failing.plans.first(state.q, 0.0)
    run = failing.kernels.planned(plan)
    inside, made = run.run, []

    def without_pivots(function: Any, *rest: Any) -> Any:
        out, _ = inside(function, *rest)
        made.append(function.name)
        return np.full(out.shape, np.nan), False

    run.run = without_pivots  # type: ignore[method-assign]
    failing.plans.at = lambda q, t: other.plans.first(q, t)  # type: ignore[method-assign,assignment]
    found = failing.derivatives("velocity", state, by=("q", "u"), then="q", body="coupler", independent=["C"])
    assert made
    for x in ("q", "u"):
        close(found[x], wanted[x], 1e-9)


def test_joints_that_do_not_move_are_not_independent() -> None:
    """The rounding of their speeds is no motion."""
    m = bc.load("four_bar")
    stay = m.add_body("stay", bc.Inertia(1.0, (0.1, 0, 0), (0.1, 0.1, 0.1)))
    m.add_joint("E", bc.Revolute("z"), m.ground, stay, bc.Pose((0.3, 0.2, 0)))
    m.add_joint("F", bc.Cylindrical("x"), stay, m.ground, bc.Pose((0.1, 0, 0)), bc.Pose((0.4, 0.2, 0)))
    with pytest.warns(bc.BellcrankWarning, match="E.angle cannot be independent"):
        system = bc.compile(m, backend="numpy", actuated=["E"], cut=["E"])
        names = system.independent_speeds
    assert "E.angle" not in names


@pytest.mark.parametrize("independent, words", [
    (["A", "B"], "has 1 independent speeds, independent= names A.angle, B.angle"), ("A", r"write \['A'\]"),
    (["Z"], "'Z'")])
def test_directions_that_cannot_be(independent: Any, words: str) -> None:
    system = bc.compile(sized_four_bar(), backend="numpy")
    with pytest.raises(bc.BellcrankError, match=words):
        system.derivatives("potential_energy", system.assemble(), by="q", independent=independent)
    tree = bc.compile(bc.load("double_pendulum"), backend="numpy")
    with pytest.raises(bc.StateError, match="which has none"):
        tree.derivatives("potential_energy", [0.1, 0.2], by="q", independent=["elbow"])


# -- driven motion ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("how", "joint"), [*zip(CUTS[1:], "BAC", strict=True)], ids=str)
def test_driven_motion(how: dict[str, Any], joint: str) -> None:
    """By a length, a mass, and a parameter of the law that drives: positions to reactions at all times."""
    m, times = sized_four_bar(load=True), np.linspace(0.0, 0.4, 4)
    rate = m.parameter("rate", 0.4)
    system = bc.compile(m, backend="numpy", **how)
    start = system.assemble(q={"A": 0.5})
    begin = float(start.q[system.coordinate_names.index(f"{joint}.angle")])

    def run(system: bc.System, names: tuple[str, ...] = ()) -> bc.Result:
        return bc.analyze.drive(system, {joint: lambda t: begin + rate * t + 0.3 * t * bm.sin(rate * t)}, times,
                                guess=start, actuated=["A"], reactions=True, sensitivities=names)

    names = ("length", "load", "rate")
    found, h = run(system, names), 2e-5
    assert found.d_q_length.dims == found.q.dims and np.abs(found.d_q_rate.values).max() > 0.1
    for name in names:
        ahead, behind = (run(system.with_parameters(**{name: system.parameters[name] + x})) for x in (h, -h))
        for x in ("q", "u", "udot", "tau", "reaction"):
            close(found[f"d_{x}_{name}"].values, (ahead[x].values - behind[x].values) / (2.0 * h), 1e-6)


def test_driven_trees_and_names() -> None:
    m = bc.load("double_pendulum")
    rate = m.parameter("rate", 0.4)
    system = bc.compile(m, backend="numpy")
    motion = {"shoulder": lambda t: rate * t, "elbow": 0.3}
    found = bc.analyze.drive(system, motion, [0.0, 0.5], sensitivities=["rate"])
    close(found.d_q_rate.values, [[0.0, 0.0], [0.5, 0.0]], 1e-15)
    close(found.d_u_rate.values, [[1.0, 0.0], [1.0, 0.0]], 1e-15)
    assert np.abs(found.d_tau_rate.values).max() > 1.0
    with pytest.raises(bc.ModelError, match="no parameter 'rat'"):
        bc.analyze.drive(system, motion, [0.0], sensitivities=["rat"])


@pytest.mark.parametrize("how", [{}, {"cut": ["A"]}], ids=str)
def test_second_derivatives_by_forces_of_all_joints(how: dict[str, Any]) -> None:
    """Forces along loop joints are parameters of a machine that has them as elements; columns are those of tau."""
    system = bc.compile(bc.load("four_bar"), backend="numpy", **how)
    state, tau = system.assemble(q={"A": 0.5}, u={"A": 1.0}), np.array([0.3, 0.2, -0.4, 0.6])
    by = ("q", "tau")
    by_tau, by_q = (system.derivatives("reactions", state, tau, by=by, then=x, independent=["A"]) for x in ("tau", "q"))
    close(by_tau["q"], np.moveaxis(by_q["tau"], -1, -2), 1e-12)
    ahead, behind = (system.derivatives("reactions", state, tau + h, by=by, independent=["A"])
                     for h in 1e-3 * np.outer((1.0, -1.0), np.eye(4)[3]))
    close(by_tau["q"][..., 3], (ahead["q"] - behind["q"]) / 2e-3, 1e-8)
    weights = np.cos(np.arange(24.0)).reshape(4, 6)
    product = system.derivatives("reactions", state, tau, along={"q": [0.4], "tau": np.arange(4.0)}, weights=weights,
                                 independent=["A"])
    close(product["tau"], 0.4 * np.tensordot(weights, by_tau["q"][..., 0, :], 2), 1e-12)
    assert np.abs(product["tau"]).min() > 1e-6
