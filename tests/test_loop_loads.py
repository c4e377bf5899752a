"""Multipliers of constraints and the forces that enforce motions, by compiled code: batches, redundancy, failures."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
import bellcrank.math as bm
import looped
from bellcrank.system import inverse_dynamics, loop_loads

EPS = float(np.finfo(float).eps)


def by_singular_values(system: bc.System, given: dict[str, np.ndarray]) -> np.ndarray:
    return loop_loads._careful_loads(system.plans, given, None, 0.0)


def forbidden(*arguments: object) -> np.ndarray:
    raise AssertionError("a state went the careful way")


@pytest.mark.parametrize("name", ("four_bar", "redundant_five_bar", "delta", "bennett"))
def test_multipliers_are_compiled_and_the_smallest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a batch by the program, redundant constraints included: the minimum-norm solution of J^T x = lack."""
    system = bc.compile(bc.load(name))
    q, u, tau = looped.states(system)
    udot = system.forward_dynamics(q, u, tau)
    expected = by_singular_values(system, {"q": q, "u": u, "udot": udot, "tau": tau})
    monkeypatch.setattr(loop_loads, "_careful_loads", forbidden)
    found = bc.analyze.loop_loads(system, q, u, tau, udot)
    size = np.abs(expected).max() + np.abs(system.inverse_dynamics(q, u, udot)).max()
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 64 * EPS * max(looped.conditioning(system, x) for x in q) * size
    one = bc.analyze.loop_loads(system, q[1], u[1], tau[1], udot[1])
    assert np.abs(one - found[1]).max() <= 8 * EPS * max(looped.conditioning(system, x) for x in q) * size


def test_multipliers_of_forces_that_do_not_belong_to_the_motion() -> None:
    """Nothing balances them: the least error there is, by singular values, for these states alone."""
    system = bc.compile(bc.load("four_bar"))
    q, u, tau = looped.states(system)
    udot = system.forward_dynamics(q, u, tau)
    tau[1] += 5.0
    expected = by_singular_values(system, {"q": q[1], "u": u[1], "udot": udot[1], "tau": tau[1]})
    assert np.array_equal(bc.analyze.loop_loads(system, q, u, tau, udot)[1], expected)


def test_enforcing_forces_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The forces of prescribed joints in loops, in batches of time: those that the multipliers leave."""
    machine = bc.load("four_bar")
    machine.prescribe("A", lambda t: 0.5 + 0.3 * bm.sin(2.0 * t))
    system = bc.compile(machine)
    times = np.array([0.0, 0.2, 0.4, 0.7])
    made = [system.assemble(t=t) for t in times]
    q, u = np.array([s.q for s in made]), np.array([s.u for s in made])
    udot = system.forward_dynamics(q, u, t=times)
    tau = np.zeros(u.shape)
    expected = inverse_dynamics._careful_drives(system.plans, {"q": q, "u": u, "udot": udot, "tau": tau}, None, times)
    monkeypatch.setattr(inverse_dynamics, "_careful_drives", forbidden)
    found = system.drive_forces(q, u, t=times)
    assert np.abs(expected[:, 0]).min() > 0.1
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()
    assert np.array_equal(found[:, 1:], tau[:, 1:])

