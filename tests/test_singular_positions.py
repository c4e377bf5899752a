"""Runs pass positions in which constraints become dependent for an instant: parallelograms that lie flat."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import bellcrank as bc

#: what energy may be lost, per link [J]; steps of first order lose much more than that anywhere
LIMIT, ROUGH = 1e-6, 0.03
STEPPERS = (("rk4", 1e-3), ("gauss", 5e-3), ("dop853", None), ("semi_implicit", 1e-3))


@cache
def machine(cells: int, method: str = "auto") -> bc.System:
    return bc.compile(bc.load("n_four_bars", cells=cells), method=method)


def lost(system: bc.System, result: bc.Result) -> float:
    """The largest error of the energy, per link [J]."""
    energy = system.energy(result.q.values, result.u.values)
    return float(np.abs(energy - energy[0]).max()) / len(system.body_names)


def flat(system: bc.System, angle: float = -np.pi / 2) -> np.ndarray:
    """All arms at an angle; zero is upright."""
    return np.array([angle if name.startswith(("arm", "rear")) else -angle for name in system.joint_names])


def alike(system: bc.System, q: np.ndarray) -> float:
    """How far arms are from being parallel, which they are on the branch of smooth motion."""
    arms = [i for i, name in enumerate(system.joint_names) if name.startswith("arm")]
    return float(np.abs(q[..., arms] - q[..., arms[:1]]).max())


@pytest.mark.parametrize("cells", (1, 2))
@pytest.mark.parametrize(("stepper", "step"), STEPPERS)
def test_flat_positions_are_passed(cells: int, stepper: str, step: float | None) -> None:
    system = machine(cells)
    result = system.simulate(system.assemble(u={"arm0": -1.0}), 1.4, stepper=stepper, step=step)
    assert result.attrs["status"] == "finished"
    assert stepper == "dop853" or result.attrs["crossings"] >= 2  # it may step over them
    assert lost(system, result) < (ROUGH if stepper == "semi_implicit" else LIMIT)
    assert alike(system, result.q.values) < 1e-8 and result.q.values[-1, 0] < -1.6 * np.pi
    assert result.attrs["largest_loop_error"] < 1e-9


@pytest.mark.parametrize("method", ("reduction", "kane", "momenta"))
def test_with_other_methods(method: str) -> None:
    system = machine(1, method)
    state = system.assemble(q=flat(system, -1.4), u={"arm0": -4.5})
    result = system.simulate(state, 0.1)
    assert result.attrs["status"] == "finished" and result.attrs["crossings"] == 1
    assert lost(system, result) < LIMIT and result.q.values[-1, 0] < -1.7


def test_several_cells_in_a_short_stretch() -> None:
    system = machine(5)
    state = system.assemble(q=flat(system, -1.5), u={"arm0": -5.0})
    result = system.simulate(state, 0.05)
    assert result.attrs["status"] == "finished" and result.attrs["crossings"] == 1
    assert lost(system, result) < LIMIT and alike(system, result.q.values) < 1e-9
    assert result.q.values[-1, 0] < -1.7


@pytest.mark.parametrize("stepper", ("rk4", "dop853"))
def test_at_rest_in_a_singular_position(stepper: str) -> None:
    system = machine(1)
    with pytest.warns(bc.SimulationWarning, match="at rest there, so that its motion is undetermined"):
        result = system.simulate((flat(system), np.zeros(system.nu)), 0.1, stepper=stepper)
    assert result.attrs["status"] == "failed" and "singular" in result.attrs["reason"]


@pytest.mark.parametrize("stepper", ("rk4", "dop853"))
def test_out_of_a_singular_position(stepper: str) -> None:
    """A speed says on which branch the motion goes on."""
    system = machine(1)
    result = system.simulate((flat(system), -0.5 * np.sign(-flat(system))), 0.1, stepper=stepper)
    assert result.attrs["status"] == "finished" and result.attrs["crossings"] >= 1
    assert lost(system, result) < LIMIT and alike(system, result.q.values) < 1e-8


def test_passages_do_not_depend_on_pieces_or_neighbours() -> None:
    """What is sampled does not change the motion, and batches do what single runs do."""
    system = machine(1)
    state = system.assemble(q=flat(system, -1.5), u={"arm0": -5.0})
    alone = system.simulate(state, 0.05, output=0.05)
    often = system.simulate(state, 0.05, output=1e-3)
    both = system.simulate((np.stack([state.q, state.q]), np.stack([state.u, 0.9 * state.u])), 0.05, output=0.05)
    assert np.array_equal(alone.q.values[-1], often.q.values[-1])
    assert np.abs(both.q.values[-1, 0] - alone.q.values[-1]).max() < 1e-12 and both.attrs["crossings"] == 2
