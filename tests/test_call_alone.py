"""Results depend on the call alone: same inputs, same bits, whatever was computed before, on one thread or many."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.loops.plan import LoopPlan
from bellcrank.simulate import courses
from bellcrank.system.loop_plans import LoopPlans
from looped import welded_arm

LOOPED = ("four_bar", "jansen", "stewart")


def states(system: bc.System, count: int, seed: int = 3) -> tuple[Any, Any]:
    """Closed states far apart: one plan is not good for all of them."""
    rng = np.random.default_rng(seed)
    home, found = system.assemble().q, []
    while len(found) < count:
        try:
            found.append(system.assemble(system.integrate(home, rng.normal(size=system.nu)),
                                         rng.normal(size=system.nu)))
        except bc.AssemblyError:
            continue
    return np.stack([s.q for s in found]), np.stack([s.u for s in found])


def bad_state() -> tuple[Any, Any]:
    """A state of jansen at which the plan that elimination made first is no good: another one takes over there."""
    system = bc.compile(bc.load("jansen"))
    function, run = system.kernels.functions["forward_dynamics"], system.kernels.planned(system.plans.general())
    crank = system.joint_names[0]
    motion = bc.analyze.drive(system, {crank: lambda t: t}, np.linspace(0.0, 6.28, 2000))
    for row in motion.q.values:
        q, u = system.assemble(row, {crank: 1.0})
        if not run.run(function, False, [q[None], u[None], np.zeros((1, system.nu))], 1)[1]:
            return q, u
    raise AssertionError("every state is good: the test tests nothing")


def everything(system: bc.System, q: Any, u: Any) -> list[bytes]:
    """Bits of what is computed at a state."""
    udot = system.forward_dynamics(q, u)
    call = system.bind("forward_dynamics", q.copy(), u.copy(), np.zeros(system.nu))
    out = [udot, call().copy(), system.forward_dynamics(q[None], u[None]), system.inverse_dynamics(q, u, udot),
           system.consistent_acceleration(q, u, udot), *system.reactions(q, u).values()]
    result = system.simulate((q, u), 0.02)
    return [np.asarray(x).tobytes() for x in (*out, result.q, result.u)]


@pytest.mark.parametrize("method", ["auto", "kane"])
def test_unrelated_calls_change_nothing(method: str) -> None:
    q, u = (x[0] for x in states(bc.compile(bc.load("jansen")), 1))
    expected = everything(bc.compile(bc.load("jansen"), method=method), q, u)
    used = bc.compile(bc.load("jansen"), method=method)
    other_q, other_u = bad_state()
    used.forward_dynamics(other_q, other_u)  # another plan takes over here
    used.forward_dynamics(np.stack([other_q] * 20), other_u)
    used.simulate((other_q, other_u), 0.05)
    used.simulate((other_q, other_u), 0.05, stepper="scipy/RK45")
    assert everything(used, q, u) == expected


def bent_arm() -> tuple[bc.Mechanism, Any]:
    """An arm welded to the ground at its end, with a closed position that is not found from the neutral one."""
    q = np.random.default_rng(3).normal(size=8) * 1.5
    return welded_arm(q), q


def test_first_states_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that does not close near its neutral position: plans must not come from the state that came first."""
    def nowhere(self: Any, start: Any, t: float) -> Any:
        raise bc.AssemblyError("nothing closes there")

    monkeypatch.setattr(LoopPlans, "closed_near", nowhere)
    machine, q = bent_arm()
    one, two, three = (bc.compile(machine, cut=["close"], backend="numpy") for _ in range(3))
    with pytest.raises(bc.AssemblyError):
        one.plans.reference()
    drift = three.assemble(q, np.ones(8)).u
    other = three.assemble(three.integrate(q, 0.1 * drift / np.abs(drift).max())).q
    assert np.abs(three.loop_error(other)).max() < 1e-9 < np.abs(other - q).max()
    a = [one.forward_dynamics(x, np.zeros(8)).tobytes() for x in (q, other)]
    b = [two.forward_dynamics(x, np.zeros(8)).tobytes() for x in (other, q)]
    assert a == b[::-1]
    a, b = (x.plans.reference_near(q, 0.0).q for x in (one, two))
    assert np.array_equal(a, b)  # also where plans are alike
    # forces too, whether or not some other state was put together before
    udot, used = one.forward_dynamics(q, np.zeros(8)), bc.compile(machine, cut=["close"], backend="numpy")
    used.assemble(other)
    assert one.inverse_dynamics(q, np.zeros(8), udot).tobytes() == used.inverse_dynamics(q, np.zeros(8), udot).tobytes()


@pytest.mark.parametrize("name", LOOPED)
def test_threads_change_nothing(name: str) -> None:
    q, u = states(bc.compile(bc.load(name)), 24)
    q, u = np.tile(q, (60, 1)), np.tile(u, (60, 1))
    many = bc.compile(bc.load(name), threads=4)
    one = bc.compile(bc.load(name), threads=1)
    assert one.forward_dynamics(q, u).tobytes() == many.forward_dynamics(q, u).tobytes()
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda k: many.forward_dynamics(q[k], u[k]).tobytes(), range(96)))
    assert rows == [one.forward_dynamics(q[k], u[k]).tobytes() for k in range(96)]


@pytest.mark.everyday(3)
@pytest.mark.parametrize("stepper", ["rk4", "gauss", "radau", "dop853", "radau5"])
@pytest.mark.parametrize("count", [1, 9])
def test_runs_depend_on_neither_clock_nor_threads(stepper: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are made in pieces of a tenth of a second: where those end must not show."""
    start = bc.compile(bc.load("jansen"))
    name = start.joint_names[0]
    q = np.stack([start.assemble(q={name: 0.1 + 0.02 * i}).q for i in range(count)])
    u = np.stack([start.assemble(row, {name: 3.0 + 0.1 * i}).u for i, row in enumerate(q)])
    state = (q, u) if count > 1 else (q[0], u[0])
    seen = []
    for threads, piece in ((1, 0.1), (2, 0.1), (2, 1e-4), (1, 1e-6)):
        monkeypatch.setattr(courses, "_PIECE", piece)
        step = {} if stepper in ("dop853", "radau5") else {"step": 0.002}
        result = bc.compile(bc.load("jansen"), threads=threads).simulate(
            state, 4.0, stepper=stepper, output=0.02, threads=threads, **step)
        seen.append((result.q.values.tobytes(), result.u.values.tobytes()))
    assert seen[1:] == seen[:1] * 3


@pytest.mark.parametrize("stepper", ["rk4", "dop853", "radau5"])
def test_pieces_do_not_show_where_events_act(stepper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs go on from events with nothing that was found out beyond them."""
    system = bc.compile(bc.load("jansen"))
    name = system.joint_names[0]
    state = system.assemble(q={name: 0.1}, u={name: 3.0})
    kick = bc.Event(lambda t, q, u: bc.math.sin(2.5 * q[name]), "a kick", action=lambda state, system: state.replace(
        u=0.97 * state.u))
    seen = []
    for pace in (1.0, 3.0, 1000.0):
        monkeypatch.setattr(courses.Course, "adapt", lambda course, *_, pace=pace: setattr(course, "pace", pace))
        step = {"step": 0.005} if stepper == "rk4" else {}
        run = system.simulate(state, 2.0, stepper=stepper, output=0.02, events=[kick], **step)
        seen.append((run.q.values.tobytes(), run.event_time.values.tobytes()))
        assert len(run.event_time) >= 4
    assert seen[1:] == seen[:1] * 2


def test_plans_are_told_apart_by_what_they_say() -> None:
    """Not by a hash, which may be the same for two."""
    plan = bc.compile(bc.load("four_bar")).plans.general()
    other = dataclasses.replace(plan, kept=(-1, -2))
    twin = LoopPlan(plan.groups, plan.kept, plan.redundant, plan.independent, plan.smallest, plan.baumgarte,
                    plan.floors)
    assert plan.key == twin.key and hash(plan.key) == hash(twin.key)
    # -1 and -2 have the same hash in CPython: a key that is a hash takes these plans for one another
    clash = dataclasses.replace(plan, kept=(-2, -2)), dataclasses.replace(plan, kept=(-1, -1))
    assert hash(clash[0].kept) == hash(clash[1].kept)
    assert clash[0].key != clash[1].key and other.key != plan.key
    assert len({clash[0].key: 0, clash[1].key: 1}) == 2


@pytest.mark.parametrize("name", ["model", "kernels", "plans", "nu", "joint_names", "anything", "_zeros"])
def test_systems_cannot_be_changed(name: str) -> None:
    system = bc.compile(bc.load("four_bar"))
    with pytest.raises(AttributeError, match=r"immutable|no setter"):
        setattr(system, name, "kane")
    with pytest.raises(AttributeError):
        del system.model
