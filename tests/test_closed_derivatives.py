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
