"""Laws that jump: located by steps with error control, reported by fixed steps."""

from __future__ import annotations

import math
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.math import maximum, select_less, sign
from motions import drop

G, PUSH, MIDDLE = 9.81, 30.0, 0.5


def thrust(q: Any, u: Any) -> Any:
    return select_less(q, MIDDLE, PUSH, 0.0)


@cache
def machine(kind: str = "joint", backend: str = "llvm") -> bc.System:
    """A ball above a fan: a force along its joint or a sum of joints, a wrench, or the rate of a state jumps at half a
    metre."""
    m = drop(law=thrust if kind == "joint" else None)
    if kind == "sum":
        m.add_joint_force("law", {"slide": 1.0}, thrust)
    if kind == "wrench":
        m.add_wrench("fan", "ball", law=lambda at: (0.0, 0.0, thrust(at.position("ball").z, 0.0)))
    if kind == "state":
        m.add_state("heat", lambda at: thrust(at.q("slide"), 0.0))
    return bc.compile(m, backend=backend)


def height(t: float) -> float:
    """Free fall from a metre, a parabola in the wind, and free fall again."""
    first = math.sqrt(2.0 * MIDDLE / G)
    second = first + 2.0 * G * first / (PUSH - G)
    if t < first:
        return 1.0 - G * t * t / 2.0
    if t < second:
        return MIDDLE - G * first * (t - first) + (PUSH - G) * (t - first)**2 / 2.0
    return MIDDLE + G * first * (t - second) - G * (t - second)**2 / 2.0


def told(system: bc.System, *arguments: Any, **options: Any) -> tuple[bc.Result, list[str]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = system.simulate(*arguments, **options)
    return result, [str(w.message) for w in found]


@pytest.mark.parametrize(("kind", "stepper"), (
    ("joint", "dop853"), ("joint", "dopri5"), ("joint", "radau5"), ("joint", "scipy/DOP853"), ("wrench", "dop853")))
def test_a_step_ends_where_a_law_jumps(kind: str, stepper: str) -> None:
    """Between jumps all are parabolas, which every method has right."""
    result, text = told(machine(kind), ([1.0], [0.0]), 1.0, stepper=stepper, output=0.05, rtol=1e-6, atol=1e-9)
    assert not text and result.attrs["status"] == "finished" and "event_time" not in result
    assert np.array_equal(result.time, np.linspace(0.0, 1.0, 21))
    exact = [height(t) for t in result.time.values]
    assert np.abs(result.q.values[:, 0] - exact).max() < (1e-7 if "/" in stepper else 1e-9)


def test_events_beside_jumps() -> None:
    events = [bc.Event(lambda t, q, u: q["slide"] - MIDDLE, "wind"), bc.Event(lambda t, q, u: u["slide"], "low")]
    result, text = told(machine(), ([1.0], [0.0]), 0.7, stepper="dop853", events=events)
    first = math.sqrt(2.0 * MIDDLE / G)
    assert not text and result.event_name.values.tolist() == ["wind", "low", "wind"]
    assert np.abs(result.event_time.values - first - G * first / (PUSH - G) * np.arange(3)).max() < 1e-9


@pytest.mark.parametrize(("kind", "stepper", "options"), (
    ("joint", "rk4", {}), ("joint", "gauss", {"output": 0.5}), ("wrench", "rk8", {}), ("state", "rk4", {}),
    ("joint", "rk4", {"batch": 2}), ("sum", "rk4", {})))
def test_fixed_steps_say_that_a_law_jumps(kind: str, stepper: str, options: dict[str, Any]) -> None:
    size = 2 if kind == "state" else 1
    q, u = np.eye(size)[0], np.zeros(size)
    if options.pop("batch", 0):
        q, u = np.stack([q, 2.0 * q]), np.stack([u, u])
    result, text = told(machine(kind), (q, u), 0.5, stepper=stepper, **options)
    name = {"joint": "law", "sum": "law", "wrench": "fan", "state": "heat"}[kind]
    assert len(text) == 1 and f"the law of '{name}' jumps at t = 0.319" in text[0] and "dop853" in text[0]
    assert text[0].endswith(result.attrs["warnings"])


def test_controllers_jump_too() -> None:
    control = bc.Traced(lambda t, q, u: [select_less(t, 0.2505, 0.0, 3.0)])
    ball = bc.compile(drop())
    _, text = told(ball, ([1.0], [0.0]), 0.5, control=control)
    assert len(text) == 1 and "the traced controller jumps at t = 0.2505 s" in text[0]
    result, text = told(ball, ([1.0], [0.0]), 0.5, control=control, stepper="dop853", rtol=1e-6)
    assert not text and abs(result.q.values[-1, 0] - (1.0 - G / 8.0 + 1.5 * 0.2495**2)) < 1e-10


def test_laws_that_do_not_jump() -> None:
    """Or jump where a step ends."""
    on_grid = bc.Traced(lambda t, q, u: [select_less(t, 0.1, 0.0, 3.0)])
    assert not told(bc.compile(drop(), backend="numpy"), ([0.6], [0.0]), 0.2, step=1e-2, control=on_grid)[1]
    for law in (lambda q, u: 1e3 * maximum(0.5 - q, 0.0), lambda q, u: -abs(u + 0.5),
                lambda q, u: select_less(q, -9.0, 1.0, 0.0)):
        _, text = told(bc.compile(drop(law=law), backend="numpy"), ([0.6], [0.0]), 0.2, step=1e-2)
        assert not text


def test_a_law_that_jumps_to_and_fro() -> None:
    """A block sticks: the law of its friction has no value there that would hold it."""
    m = bc.Mechanism("block", gravity=(0.0, 0.0, 0.0))
    m.add_joint("slide", bc.Prismatic("x"), m.ground, m.add_body("block", bc.Inertia.sphere(1.0, 0.1)))
    m.add_joint_force("friction", "slide", lambda q, u: 1.0 - 5.0 * sign(u))
    result, text = told(bc.compile(m), ([0.0], [1.0]), 0.3, stepper="dopri5", rtol=1e-4, atol=1e-6)
    assert result.attrs["status"] in ("finished", "failed")
    assert any("'friction' jumps to and fro" in x for x in text)
    assert abs(result.sel(time=0.25, method="nearest").u.values[0]) < 1e-3
