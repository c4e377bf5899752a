"""Events on loops: stops and their impulses, pins that come out and go in again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.simulate.impulse import impulse
from motions import final, four_bar_rows, system


def times(result: Any) -> np.ndarray:
    return result.event_time.values if "event_time" in result else np.zeros(0)


@pytest.mark.parametrize("joint", ("A", "C"))
@pytest.mark.parametrize("restitution", (0.6, 1.0))
def test_a_stop_on_a_linkage(joint: str, restitution: float) -> None:
    """The loop stays closed, the other joints are hit through it, and energy falls as the impulse says."""
    machine = system("four_bar")
    _, q, u = four_bar_rows("crossed_elbow_down")
    bound = {"A": q[3, 0], "C": q[3, 2]}[joint]
    side = "lower" if bound < {"A": q[0, 0], "C": q[0, 2]}[joint] else "upper"
    result = machine.simulate((q[0], u[0]), 0.32, step=1e-3, stepper="rk8", output=1e-3,
                              events=bc.joint_limit(joint, **{side: bound}, restitution=restitution))
    hit = times(result)
    assert len(hit) == 1 and abs(hit[0] - 0.3) < 1e-9
    assert float(result.loop_error.max()) < 1e-12 and float(result.loop_rate_error.max()) < 1e-11
    at = np.flatnonzero(np.abs(result.time.values - hit[0]) < 1e-12)
    before, after = result.u.values[at[0]], result.u.values[at[-1]]
    assert np.abs(after + restitution * before).max() < 1e-9 * np.abs(before).max()  # one degree of freedom
    energy = result["energy"].values
    assert np.diff(energy).max() < 1e-9
    kinetic = result.kinetic_energy.values
    assert abs(kinetic[at[-1]] - restitution**2 * kinetic[at[0]]) < 1e-9 * kinetic[at[0]]


def test_impulses_on_a_loop_balance() -> None:
    """Two degrees of freedom: only the struck joint and the loop take impulses."""
    machine = system("five_bar")
    state = machine.assemble(q={"leg1.1": 1.4, "leg2.1": 1.2}, u={"leg1.1": 2.0, "leg2.1": -1.0})
    after = impulse(machine, state.q, state.u, speeds={0: -1.0})
    assert abs(after.u[0] + 1.0) < 1e-12
    assert np.abs(machine.loop_rate_error(state.q, after.u)).max() < 1e-12
    jacobian = np.vstack([bc.analyze.loop_jacobian(machine, state.q), np.eye(machine.nu)[:1]])
    balance = machine.mass_matrix(state.q, speeds="tree") @ (after.u - state.u)
    assert np.abs(balance - after.impulse).max() < 1e-12
    multipliers = np.linalg.lstsq(jacobian.T, balance, rcond=None)[0]
    assert np.abs(jacobian.T @ multipliers - balance).max() < 1e-12
    assert abs(after.loss - float(machine.kinetic_energy(state.q, state.u) - machine.kinetic_energy(state.q, after.u))
               ) < 1e-12


def fallen(machine: bc.System, duration: float) -> Any:
    """A four-bar whose last pin comes out at once."""
    state = machine.assemble(q={"A": 1.0}, u={"A": 2.0})
    return state, machine.simulate(state, duration, step=1e-3, stepper="rk8", output=1e-2, events=[
        bc.Event(lambda t, q, u: t - 0.0505, "pull", action=bc.detach("D"))])


def test_detaching_a_pin() -> None:
    """From then on it is a triple pendulum: as the released machine moves from there."""
    machine = system("four_bar")
    state, result = fallen(machine, 0.4)
    assert result.attrs["status"] == "finished"
    before = machine.simulate(state, 0.0505, step=1e-3, stepper="rk8")
    after = machine.release("D").simulate((before.q.values[-1], before.u.values[-1]), 0.3495, step=5e-4, stepper="rk8")
    assert np.abs(final(result) - final(after)).max() < 1e-9
    out = result.isel(time=result.time.values > 0.0505 + 1e-9)  # the angle of an open joint stands still
    assert np.abs(out.q.values[:, 3] - before.q.values[-1, 3]).max() < 1e-12 and not out.u.values[:, 3].any()
    energy = result["energy"].values
    assert np.abs(energy - energy[0]).max() < 1e-9


@pytest.mark.parametrize("stepper", ("rk8", "gauss", "dop853"))
@pytest.mark.parametrize("error", (0.0, 0.5))
def test_detaching_and_attaching(error: float, stepper: str) -> None:
    """Attached again where it is closed: with consistent speeds nothing happens, with others an impulse does."""
    machine = system("four_bar")
    loose = machine.release("D")
    state = machine.assemble(q={"A": 1.0}, u={"A": 2.0})

    def open_and_close(at: bc.State, now: bc.System) -> bc.Change:
        return bc.Change(state=bc.State(at.q, at.u + error * np.array([0.3, -1.0, 0.5, 0.0]), at.t), detach=("D",))

    result = machine.simulate(state, 0.1, step=1e-3, stepper=stepper, output=1e-3, events=[
        bc.Event(lambda t, q, u: t - 0.0205, "open", action=open_and_close),
        bc.Event(lambda t, q, u: t - 0.0205 - 1e-9, "close", action=bc.attach("D"))])
    assert result.attrs["status"] == "finished", result.attrs["reason"]
    assert list(result.event_name.values) == ["open", "close"]
    later = result.sel(time=slice(0.0206, None))
    assert float(np.abs(machine.loop_error(later.q.values)).max()) < 1e-12
    assert float(np.abs(machine.loop_rate_error(later.q.values, later.u.values)).max()) < 1e-10
    plain = machine.simulate(state, 0.1, step=1e-3, stepper="rk8", output=1e-3)
    if not error:
        assert np.abs(final(result) - final(plain)).max() < 1e-6
        return
    at = np.flatnonzero(np.abs(result.time.values - 0.0205 - 1e-9) < 1e-13)
    q, before, after = result.q.values[at[0]], result.u.values[at[0]], result.u.values[at[-1]]
    change = loose.mass_matrix(q, speeds="tree") @ (after - before)
    jacobian = bc.analyze.loop_jacobian(machine, q)
    multipliers = np.linalg.lstsq(jacobian.T, change, rcond=None)[0]
    assert np.abs(jacobian.T @ multipliers - change).max() < 1e-6 * np.abs(change).max()
    loss = float(loose.kinetic_energy(q, before) - loose.kinetic_energy(q, after))
    assert loss > 1e-3
    assert abs(float(result.attrs["energy_lost_in_events"]) - loss) < 1e-6 * loss


def test_attaching_where_it_is_open_is_refused() -> None:
    machine = system("four_bar")
    state = machine.assemble(q={"A": 1.0}, u={"A": 2.0})
    with pytest.warns(bc.SimulationWarning, match="open by"):
        result = machine.simulate(state, 0.3, step=1e-3, events=[
            bc.Event(lambda t, q, u: t - 0.05, "open", action=bc.detach("D")),
            bc.Event(lambda t, q, u: t - 0.25, "close", action=bc.attach("D"))])
    assert result.attrs["status"] == "failed" and abs(float(result.time[-1]) - 0.25) < 1e-9


@pytest.mark.parametrize("change", (bc.attach("D"), bc.detach("nothing")))
def test_changes_that_cannot_be(change: bc.Change) -> None:
    machine = system("four_bar")
    name = (change.attach + change.detach)[0]
    with pytest.warns(bc.SimulationWarning, match=repr(name)):
        result = machine.simulate(machine.assemble(q={"A": 1.0}), 0.1, events=[
            bc.Event(lambda t, q, u: t - 0.05, "change", action=change)])
    assert result.attrs["status"] == "failed" and abs(float(result.time[-1]) - 0.05) < 2e-3
