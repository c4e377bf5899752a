"""Machines whose topology changes in a run: grips that close at the pose of the moment, slots, feet, bodies that come
and go. Balances of energy and momentum, and machines of the closed topology built by themselves."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import romb

import bellcrank as bc
from bellcrank.simulate.courses import Course
from bellcrank.target.llvm import jit
from test_examples import script
from whole_states import whole_q, whole_state

GRASP, GENEVA, LANDING = "05_grasp", "06_geneva_wheel", "07_landing_leg"


@cache
def grasp() -> bc.Result:
    return script(GRASP).run(step=2e-3, stepper="rk8")


@cache
def landing() -> bc.Result:
    return script(LANDING).run(0.4, step=5e-4, stepper="rk8", output=5e-4)


def at(time: float) -> Any:
    return lambda t, q, u: t - time


def jumps(result: Any) -> np.ndarray:
    """Samples just before events that change something; the next ones are those just after."""
    return np.flatnonzero(np.diff(result.time.values) == 0.0)


def pieces(result: Any) -> list[Any]:
    """The result from event to event."""
    ends = [0, *(jumps(result) + 1).tolist(), len(result.time)]
    return [result.isel(time=slice(a, b)) for a, b in pairwise(ends)]


def only(result: Any, topology: int) -> Any:
    return result.isel(time=result["topology"].values == topology)


# -- grasp --------------------------------------------------------------------------------------------
def test_momentum_through_grasp_and_release() -> None:
    result = grasp()
    assert result.attrs["status"] == "finished"
    assert list(result.event_name.values) == ["left grasp", "right grasp", "release", "gone"]
    kept = result.isel(time=slice(0, jumps(result)[3] + 1))
    momentum = script(GRASP).momentum(kept)
    assert np.abs(momentum[0]).max() > 1.0 and np.abs(momentum - momentum[0]).max() < 1e-12
    assert float(result.loop_error.max()) < 1e-13 and float(result.loop_rate_error.max()) < 1e-12


def test_energy_through_grasp_and_release() -> None:
    """Between events it stays; at events it changes by what is reported."""
    result = grasp()
    energy, places = result["energy"].values, jumps(result)
    lost, added = result["event_energy_lost"].values, result["event_energy_added"].values
    assert len(places) == 4 and (lost[:2] > 0.01).all() and np.abs(lost[2:]).max() < 1e-15
    assert np.abs(energy[places + 1] - energy[places] + lost - added).max() < 1e-13
    assert np.abs(added[:3]).max() < 1e-13 and added[3] < -0.1, "the box takes its energy along"
    assert [int(part["topology"][0]) for part in pieces(result)] == [0, 1, 2, 0, 3], "open again as at first"
    for part in pieces(result):
        assert np.ptp(part["energy"].values) < 1e-11
    assert result.attrs["energy_lost_in_events"] == pytest.approx(lost.sum(), abs=1e-14)
    assert result.attrs["energy_added_in_events"] == pytest.approx(added.sum(), abs=1e-14)


def test_impulses_of_the_first_grip() -> None:
    """The impulse changes the momentum of the box, and takes half of what it does on the speeds before."""
    result = grasp()
    system, i = result.system, int(jumps(result)[0])
    impulse = result["event_impulse"].sel(closure="left grip")[0].values
    assert np.isnan(result["event_impulse"].sel(closure="right grip")[0]).all()
    states = [(result.q.values[k], result.u.values[k]) for k in (i, i + 1)]
    mass, inertia = 6.0, np.diag([0.13, 0.2, 0.25]) * 6.0 / 12.0
    grip = system.pose(states[0][0], "left lower")
    point = grip.position + grip.rotation @ [0.0, 0.4, 0.0]
    change = np.zeros(6)
    before: dict[str, Any] = {}
    for sign, (q, u) in zip((-1.0, 1.0), states, strict=True):
        box, motion = system.pose(q, "box"), system.velocity(q, u, "box")
        spin = box.rotation @ inertia @ box.rotation.T @ motion[:3]
        change[3:] += sign * mass * motion[3:]
        change[:3] += sign * (spin + np.cross(box.position - point, mass * motion[3:]))
        if sign < 0.0:
            hand = system.velocity(q, u, "left lower", [0.0, 0.4, 0.0])
            reach = motion[3:] + np.cross(motion[:3], point - box.position)
            before = np.concatenate([motion[:3] - hand[:3], reach - hand[3:]])
    assert np.abs(change - impulse).max() < 1e-12
    assert float(result["event_energy_lost"][0]) == pytest.approx(-0.5 * impulse @ before, abs=1e-13)


def built_closed(at_grip: bc.Pose) -> bc.System:
    """The machine with the box on the left hand, as a tree that knows of no grips."""
    m = bc.Mechanism("held", gravity=(0, 0, 0))
    base = m.add_body("base", bc.Inertia.box(40.0, (0.8, 0.6, 0.5)))
    m.add_joint("orbit", bc.Free(), m.ground, base)
    for side, sign in (("left", -1.0), ("right", 1.0)):
        upper = m.add_body(f"{side} upper", bc.Inertia.rod(3.0, (0, 0, 0), (0, 0.5, 0)))
        lower = m.add_body(f"{side} lower", bc.Inertia.rod(2.0, (0, 0, 0), (0, 0.4, 0)))
        m.add_joint(f"{side} shoulder", bc.Universal("z", "x"), base, upper, bc.Pose((0.4 * sign, 0.3, 0)))
        m.add_joint(f"{side} elbow", bc.Revolute("z"), upper, lower, bc.Pose((0, 0.5, 0)))
        m.add_joint_spring(f"{side} bend", f"{side} elbow", stiffness=8.0, rest=0.5 * sign)
        m.add_joint_spring(f"{side} swing", f"{side} shoulder", stiffness=8.0, coordinate="angle1")
    box = m.add_body("box", bc.Inertia.box(6.0, (0.4, 0.3, 0.2)))
    m.add_joint("weld", bc.Weld(), "left lower", box, at_grip)
    return bc.compile(m)


def test_a_machine_of_the_closed_topology() -> None:
    """From the state after the first impact on, a machine built with the box in hand moves the same way."""
    held = only(grasp(), 1)
    system = held.system
    q, u = held.q.values, held.u.values
    other = built_closed(system.pose(q[0], "left lower").inverse() @ system.pose(q[0], "box"))
    names = other.coordinate_names
    chosen = [system.coordinate_names.index(n) for n in names]
    speeds = [system.speed_names.index(n) for n in other.speed_names]
    run = other.simulate((q[0][chosen], u[0][speeds]), 0.15, step=1e-3, stepper="rk8", output=0.15)
    assert np.abs(run.q.values[-1] - q[-1][chosen]).max() < 1e-11
    assert np.abs(run.u.values[-1] - u[-1][speeds]).max() < 1e-11
    wrench = held.reactions("left grip").values[0]
    there = other.reactions(q[0][chosen], u[0][speeds])["weld"]
    arm = system.pose(q[0], "left lower")
    box = system.pose(q[0], "box")
    point = box.rotation.T @ (arm.position + arm.rotation @ [0.0, 0.4, 0.0] - box.position)  # of the grip
    assert np.abs(there[3:] - wrench[3:]).max() < 1e-10
    assert np.abs(there[:3] - wrench[:3] - np.cross(point, wrench[3:])).max() < 1e-10


def test_nothing_is_compiled_for_topologies_seen_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grips that close again elsewhere, in one run and in the next, use the code there is."""
    made: list[str] = []

    class Counting(dict[str, Any]):
        def setdefault(self, key: str, value: Any) -> Any:
            made.append(key)
            return super().setdefault(key, value)

    monkeypatch.setattr(jit, "_loaded", Counting())
    craft = bc.compile(script(GRASP).machine())
    start = craft.assemble(q={"flight": [1, 0, 0, 0, 0.05, 1.3, 0.05], "left elbow": -0.6, "right elbow": 0.6},
                           u={"flight": [0.4, -0.2, 0.5, -0.3, -0.4, 0.1]})
    counts: list[int] = []

    def noting(change: bc.Change) -> Any:
        return lambda state, system: counts.append(len(made)) or change

    cycle = (bc.attach("left grip"), bc.attach("right grip"), bc.detach("left grip"), bc.detach("right grip"))

    def run(first: float) -> None:
        times = first + 0.04 * np.arange(10)
        result = craft.simulate(start, 0.5, step=4e-3, events=[
            bc.Event(at(t), f"{k}", action=noting(cycle[k % 4])) for k, t in enumerate(times)])
        assert result.attrs["status"] == "finished" and len(result.event_time) == 10

    run(0.02)
    assert counts[0] < counts[4] == counts[-1] == len(made), "every topology was there once in the first cycle"
    run(0.03)
    assert counts[-1] == len(made) == counts[9]


def test_what_is_held_follows_the_arms() -> None:
    """The speeds of the arms stay independent: those of a body in a hand follow from them in every pose, the other way
    round they do not."""
    m = bc.Mechanism("arm", gravity=(0, 0, 0))
    upper, lower = (m.add_body(name, bc.Inertia.rod(1.0, (0, 0, 0), (2, 0, 0))) for name in ("upper", "lower"))
    ball = m.add_body("ball", bc.Inertia.sphere(0.5, 0.1))
    m.add_joint("shoulder", bc.Revolute("z"), m.ground, upper)
    m.add_joint("elbow", bc.Revolute("z"), upper, lower, bc.Pose((2, 0, 0)))
    m.add_joint("flight", bc.Free(), m.ground, ball)
    m.add_joint("grip", bc.Weld(), lower, ball, bc.Pose((2, 0, 0)), "at closing", closed=False)
    arm = bc.compile(m, backend="numpy")
    place = arm.assemble(q={"elbow": -1.0, "flight": [1, 0, 0, 0, 3.0, -1.7, 0]})
    independent = arm.attach("grip", at=place).plans.general().independent
    assert [arm.speed_names[v] for v in independent] == ["shoulder.angle", "elbow.angle"]


def test_arms_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Method "operator": sets of closures differ in step (D), the arms are the same code; together they are the rates
    of the closed machine."""
    from bellcrank.simulate.arms import arm_blocks

    loaded: dict[str, Any] = {}
    monkeypatch.setattr(jit, "_loaded", loaded)
    craft = bc.compile(script(GRASP).machine(), method="operator")
    q = craft.assemble(q={"flight": [1, 0, 0, 0, 0.05, 1.3, 0.05], "left elbow": -0.6}).q
    counts, blocks = [], []
    for names in (("left grip",), ("right grip",), ("left grip", "right grip")):
        closed = craft.attach(*names, at=q)
        plan = closed.plans.first(q, 0.0)
        before = set(loaded)
        blocks.append(arm_blocks(closed, plan, 1, False))
        counts.append(len(set(loaded) - before))
    assert counts == [2, 1, 1], "arms and step (D), then step (D) alone"
    assert arm_blocks(craft, None, 1, False) is None, "nothing is closed"
    still = bc.compile(script(GRASP).machine(), method="kane").attach("left grip", at=q)
    assert arm_blocks(still, still.plans.first(q, 0.0), 1, False) is None, "other methods compile sets as a whole"


def test_the_same_call_gives_the_same_bits() -> None:
    """Whatever runs, with grips elsewhere, came before."""
    arm, other = bc.compile(nailed()), bc.compile(nailed())

    def run(system: bc.System, time: float) -> np.ndarray:
        events = [bc.Event(at(time), "caught", action=bc.attach("nail"))]
        return system.simulate(whole_state(system, [0.3, 0.5], [1.0, -2.0]), 0.2, step=2e-3, events=events).q.values

    first = run(arm, 0.05)
    run(arm, 0.11)
    assert np.array_equal(run(arm, 0.05), first) and np.array_equal(run(other, 0.05), first)


def test_stages_that_separate_and_dock_again() -> None:
    """A machine that begins with a joint closed at a pose, and a body that leaves with its energy."""
    m = bc.Mechanism("rocket")
    first = m.add_body("first", bc.Inertia.cylinder(100.0, 0.5, 4.0, "z"))
    second = m.add_body("second", bc.Inertia.cylinder(20.0, 0.4, 2.0, "z"))
    m.add_joint("flight", bc.Free(), m.ground, first)
    m.add_joint("upper flight", bc.Free(), m.ground, second)
    m.add_joint("bolts", bc.Weld(), first, second, bc.Pose((0, 0, 2.0)), "at closing", closed=False)
    apart = bc.compile(m)
    place = apart.assemble(q={"flight": [1, 0, 0, 0, 0, 0, 100.0], "upper flight": [1, 0, 0, 0, 0, 0, 103.0]})
    rocket = apart.attach("bolts", at=place)
    start = rocket.assemble(place, u={"flight": [0.1, 0.2, 0, 0, 0, 50.0]})
    assert rocket.dof == 6 and np.abs(rocket.loop_rate_error(start)).max() < 1e-12
    result = rocket.simulate(start, 0.9, step=5e-3, stepper="rk8", events=[
        bc.Event(at(0.3), "separate", action=bc.detach("bolts")), bc.Event(at(0.6), "dock", action=bc.attach("bolts")),
        bc.Event(at(0.8), "drop", action=bc.leave("first"))])
    assert result.attrs["status"] == "finished"
    energy, places = result["energy"].values, jumps(result)
    lost, added = result["event_energy_lost"].values, result["event_energy_added"].values
    assert np.abs(energy[places + 1] - energy[places] + lost - added).max() < 1e-9 and lost[1] > 1e-5
    momentum = rocket.momentum(result.q.values, result.u.values)[:places[2] + 1]
    fall = np.array([0.0, 0.0, -120.0 * 9.81])
    assert np.abs(momentum[:, 3:] - momentum[0, 3:] - np.outer(result.time.values[:places[2] + 1], fall)).max() < 1e-9
    assert np.isfinite(result.reactions("bolts").values).all(axis=1).sum() == ((result["topology"] == 0) | (
        result["topology"] == 2)).sum(), "while they hold"


# -- Geneva wheel -------------------------------------------------------------------------------------
def test_two_turns_of_a_geneva_wheel() -> None:
    module = script(GENEVA)
    result = module.run(step=5e-4, stepper="gauss")
    assert result.attrs["status"] == "finished" and len(result.event_time) == 16
    wheel, crank = result.q.values[-1, 1], result.q.values[-1, 0]
    assert abs(wheel / (2.0 * np.pi) + 2.0) < 1e-9, "two turns backwards"
    assert abs(crank + np.pi - 16.0 * np.pi) < 1e-9, "the time of these turns is that of a quadrature"
    energy = result["energy"].values
    assert np.abs(energy / energy[0] - 1.0).max() < 1e-9 and abs(result.attrs["energy_lost_in_events"]) < 1e-15
    assert np.nanmax(np.abs(result["event_impulse"].values)) < 1e-12, "the pin enters along the slot"
    slots = [f"slot {k}" for k in range(4)]
    closed = np.isfinite(result.reactions().sel(joint=slots).values).all(axis=-1)
    assert closed.sum(axis=0).max() == 1 and (closed.sum(axis=1) > 50).all(), "one slot at a time, each of them"
    assert float(result.loop_error.max()) < 1e-13


# -- landing leg --------------------------------------------------------------------------------------
def test_balances_of_a_landing() -> None:
    result = landing()
    assert list(result.event_name.values) == ["touch-down", "foot lifts off"]
    energy = result["energy"].values
    assert abs(energy[-1] - energy[0] + result.attrs["energy_lost_in_events"]) < 1e-9
    i = int(jumps(result)[0])
    system = result.system
    before, after = (system.momentum(result.q.values[k], result.u.values[k]) for k in (i, i + 1))
    point = system.pose(result.q.values[i], "sole").position
    impulse = result["event_impulse"].sel(closure="foot")[0].values
    assert np.abs(after[3:] - before[3:] - impulse[3:]).max() < 1e-12
    assert np.abs(after[:3] - before[:3] - np.cross(point, impulse[3:])).max() < 1e-12
    assert abs(point[2]) < 1e-9 and impulse[5] > 0.5


def test_a_foot_on_the_floor() -> None:
    result = landing()
    stance = only(result, 1)
    sole = result.system.pose(stance.q.values, "sole").position
    assert np.abs(sole - sole[0]).max() < 1e-12, "where it touched"
    force = result.reactions("foot").values
    assert np.isfinite(force).all(axis=1).tolist() == (result["topology"].values == 1).tolist()
    body = result.system.pose(stance.q.values, "lower leg").rotation
    push = np.einsum("kij,kj->ki", body, stance.reactions("foot").values[:, 3:])
    assert push[:-1, 2].min() > 0.0 and abs(push[-1, 2]) < 1e-6, "the floor lets go where it would have to pull"
    some = slice(1, 1 + 2**8 + 1)  # equally spaced
    momentum = result.system.momentum(stance.q.values[some], stance.u.values[some])[:, 3:]
    gained = romb(push[some] - [0.0, 0.0, 11.5 * 9.81], 5e-4, axis=0)
    assert np.abs(momentum[-1] - momentum[0] - gained).max() < 1e-9


# -- bodies that come and go --------------------------------------------------------------------------
def crane() -> bc.Mechanism:
    """A trolley with a load that drops off, and another one that waits."""
    m = bc.Mechanism("crane")
    trolley = m.add_body("trolley", bc.Inertia.sphere(2.0, 0.1))
    m.add_joint("rail", bc.Prismatic("x"), m.ground, trolley)
    for name, present in (("load", True), ("spare", False)):
        load = m.add_body(name, bc.Inertia.sphere(1.0, 0.1), present=present)
        m.add_joint(f"{name} flight", bc.Free(), m.ground, load)
        m.add_joint(f"{name} hook", bc.Spherical(), trolley, load, child_pose="at closing", closed=False)
    return m


def test_a_load_is_dropped_and_another_one_taken() -> None:
    system = bc.compile(crane())
    assert system.dof == 7 and system.model.absent == ("spare",)
    start = system.assemble(q={"load flight": [1, 0, 0, 0, 0.3, 0, -0.5]}, u={"rail": 0.5})
    swap = bc.leave("load") + bc.enter("spare", [1, 0, 0, 0, 0.2, 0, -0.4], {"spare flight": [0, 0, 0, 1, 0, 0]})
    result = system.simulate(start, 0.6, step=1e-3, stepper="rk8", events=[
        bc.Event(at(0.1), "hook", action=bc.attach("load hook")),
        bc.Event(at(0.2), "drop", action=bc.detach("load hook")), bc.Event(at(0.3), "swap", action=swap),
        bc.Event(at(0.4), "take", action=bc.attach("spare hook"))])
    assert result.attrs["status"] == "finished"
    energy, places = result["energy"].values, jumps(result)
    lost, added = result["event_energy_lost"].values, result["event_energy_added"].values
    assert np.abs(energy[places + 1] - energy[places] + lost - added).max() < 1e-12
    u = result.u.sel(speed="load flight.vz").values[places[2] + 1:]
    assert np.abs(u).max() == 0.0 and np.ptp(result.q.sel(coordinate="load flight.z").values[places[2]:]) == 0.0
    i = int(places[2])
    mask = np.array([n.startswith("load") for n in system.speed_names])
    drop = float(system.kinetic_energy(result.q.values[i], result.u.values[i] * mask))
    spare = 0.5 * 1.0 * 1.0**2 + 9.81 * (-0.4 - 0.0)
    assert added[2] == pytest.approx(spare - drop, abs=1e-12)
    for part in pieces(result):
        assert np.ptp(part["energy"].values) < 1e-10
    waiting = result.q.sel(coordinate="spare flight.z").values[:i + 1]
    assert np.ptp(waiting) == 0.0, "what is not there does not fall"


# -- methods and steppers -----------------------------------------------------------------------------
def caught(stepper: str = "rk8", step: float | None = 2e-3, **options: Any) -> bc.Result:
    """A double pendulum whose elbow is caught for a while."""
    arm = bc.compile(nailed(), **options)
    return arm.simulate(whole_state(arm, [0.3, 0.5], [1.0, -2.0]), 0.3, step=step, stepper=stepper, events=[
        bc.Event(at(0.05), "caught", action=bc.attach("nail")), bc.Event(at(0.2), "let go", action=bc.detach("nail"))])


@pytest.mark.parametrize("options", [*({"method": m} for m in ("recursive", "kane", "operator", "reduction", "divide",
                                                               "dense")), {"backend": "numpy"}], ids=str)
def test_methods_agree(options: dict[str, Any]) -> None:
    """With the same steps they compute the same."""
    result, wanted = (caught("rk4", 0.02, **x) for x in (options, {}))
    assert result.attrs["status"] == "finished" and float(wanted["event_energy_lost"][0]) > 0.1
    assert np.abs(result["event_energy_lost"].values - wanted["event_energy_lost"].values).max() < 1e-12
    assert np.abs(result.q.values - wanted.q.values).max() < 1e-12


@pytest.mark.parametrize("pace", (1, 2, 7, 10))
def test_pieces_do_not_matter(pace: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event on a grid point where a piece of the run ends: lengths of pieces follow the clock."""
    wanted = caught("rk4", 0.02)
    monkeypatch.setattr(Course, "adapt", lambda self, *rest: setattr(self, "pace", float(pace)))
    result = caught("rk4", 0.02)
    assert (result.time.values == wanted.time.values).all() and len(jumps(result)) == 2
    assert np.abs(result.q.values - wanted.q.values).max() < 1e-12


def test_momenta() -> None:
    result, wanted = caught("rk8", 0.01, method="momenta"), caught()
    assert np.abs(result["event_energy_lost"].values - wanted["event_energy_lost"].values).max() < 1e-9
    assert np.abs(result.q.values[-1] - wanted.q.values[-1]).max() < 1e-9


@pytest.mark.parametrize("forces", [
    {"wrenches": {"lower": [0.3, 0, 0, 0, 1.0, 2.0]}}, {"tau": {"shoulder": 0.5, "elbow": -1.0}},
    {"closing": "velocity"},
    {"control": bc.Traced(lambda t, q, u: {"elbow": -2.0 * u["elbow"] + bc.math.sin(9.0 * t)})}],
    ids=lambda x: next(iter(x)))
def test_arms_by_themselves_feel_all_forces(forces: dict[str, Any]) -> None:
    """Method "operator", whose runs compute step (D) apart."""
    events = [bc.Event(at(0.05), "caught", action=bc.attach("nail"))]
    arms = [bc.compile(nailed(), method=method) for method in ("operator", "elimination")]
    start = whole_state(arms[0], [0.3, 0.5], [1.0, -2.0])
    one, two = (arm.simulate(start, 0.1, step=0.01, events=events, **forces) for arm in arms)
    assert one.attrs["status"] == "finished" and np.abs(one.q.values - two.q.values).max() < 1e-13


@pytest.mark.parametrize(("stepper", "step", "error"), [
    ("rk4", 2e-3, 1e-8), ("semi_implicit", 1e-3, 1e-2), ("gauss", 4e-3, 1e-10), ("radau", 2e-3, 1e-10),
    ("dopri5", None, 1e-8), ("dop853", None, 1e-9), ("radau5", None, 1e-8), ("scipy/DOP853", None, 1e-9)])
def test_steppers_agree(stepper: str, step: float | None, error: float) -> None:
    result, wanted = caught(stepper, step), caught()
    assert result.attrs["status"] == "finished"
    assert np.abs(result["event_energy_lost"].values - wanted["event_energy_lost"].values).max() < error
    assert np.abs(result.q.values[-1] - wanted.q.values[-1]).max() < error


def test_batches_change_at_times_of_their_own() -> None:
    """Every state is a run of its own; samples that all have in common are joined, with what happened to whom."""
    m = nailed()
    m.add_joint_spring("spring", "elbow", stiffness=m.parameter("k", 0.0))
    q, u = np.array([[0.3, 0.5], [0.8, -0.2], [0.1, 0.0]]), np.array([[1.0, -2.0], [0.0, 1.0], [-1.0, 0.5]])
    stiffness, tau = np.array([0.0, 2.0, 5.0]), np.array([[0.1, 0.0], [0.0, 0.2], [0.3, -0.1]])
    tau = np.pad(tau, ((0, 0), (0, 3)))
    events = [bc.Event(lambda t, q, u: q["shoulder"] - 0.35, "caught", 1, bc.attach("nail")),
              bc.Event(at(0.2), "let go", action=lambda state, system: bc.detach("nail") if system.loops else None)]
    arm = bc.compile(m)
    q, u = whole_state(arm, q, u)
    many = arm.with_parameters(k=stiffness).simulate((q, u), 0.3, step=2e-3, tau=tau, events=events)
    assert many.q.dims == ("time", "sample", "coordinate") and many.attrs["status"] == "finished"
    assert set(many["event_sample"].values.tolist()) == {0, 1, 2}
    for k in range(3):
        one = arm.with_parameters(k=stiffness[k]).simulate((q[k], u[k]), 0.3, step=2e-3, tau=tau[k], events=events)
        own = one.isel(time=np.append(np.diff(one.time.values) > 0.0, True))
        own = own.sel(time=np.intersect1d(own.time.values, many.time.values))
        assert len(own.time) == len(many.time)
        np.testing.assert_array_equal(many.q.values[:, k], own.q.values)
        np.testing.assert_array_equal(many["energy"].values[:, k], own["energy"].values)
        mine = many["event_sample"].values == k
        np.testing.assert_array_equal(many["event_time"].values[mine], one["event_time"].values)
        np.testing.assert_allclose(many.reactions("nail").values[:, k], own.reactions("nail").values, atol=1e-9)
    assert len(many["event_energy_lost"]) == len(many["event_name"]) and many.reactions().dims[:3] == (
        "joint", "time", "sample")
    with pytest.raises(bc.ModelError, match="cannot be streamed"):
        arm.simulate((q, u), 0.1, events=events, file="run.nc")


# -- the rest -----------------------------------------------------------------------------------------
def nailed(**options: Any) -> bc.Mechanism:
    m = bc.load("double_pendulum")
    chosen = {"parent_pose": "at closing", "closed": False, **options}
    m.add_joint("nail", bc.Spherical(), m.ground, m.bodies[1], **chosen)
    return m


def test_attached_systems() -> None:
    arm = bc.compile(nailed())
    q = whole_q(arm, [0.3, 0.5])
    fixed = arm.attach("nail", at=q)
    assert (arm.loops, fixed.loops, arm.dof, fixed.dof) == ((), ("nail",), 2, 1)
    assert np.abs(fixed.loop_error(q)).max() < 1e-15 < np.abs(fixed.loop_error(q + 0.1)).max()
    place = arm.pose(q, arm.body_names[1])
    same = bc.compile(nailed(parent_pose=bc.Pose(place.position), closed=True))
    assert np.abs(fixed.reactions(q, np.zeros(5))["nail"] - same.reactions(q, np.zeros(5))["nail"]).max() < 1e-12
    for bad in ({"names": ("nail",), "at": np.zeros((2, 6))}, {"names": ("knot",), "at": q}):
        with pytest.raises((bc.StateError, bc.ModelError), match="attach"):
            arm.attach(*bad["names"], at=bad["at"])


KINDS: list[Any] = [bc.Weld(), bc.Revolute((1, 2, 2)), bc.Prismatic("y"), bc.Cylindrical("x"), bc.Universal("x", "z"),
                    bc.Spherical(), bc.Planar("y"), bc.Screw("z", 0.1), bc.PointOnLine("y"), bc.PointOnPlane((0, 1, 1))]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_frames_of_all_joints(kind: Any) -> None:
    """A frame defined at closing is the one that could have been given: same errors, same motion."""
    given, rng = bc.Pose((0.1, -0.2, 0.3), (0.8, 0.6, 0, 0)), np.random.default_rng(3)

    def machine(first: Any, second: Any, closed: bool) -> bc.System:
        m = bc.Mechanism("pair")
        a = m.add_body("a", bc.Inertia.box(2.0, (0.3, 0.2, 0.1), (0.2, 0, 0)))
        b = m.add_body("b", bc.Inertia.box(1.0, (0.1, 0.2, 0.3), (0, 0.1, 0)))
        m.add_joint("arm", bc.Universal("x", "y"), m.ground, a, bc.Pose((0, 0, 0.2)))
        m.add_joint("flight", bc.Free(), m.ground, b)
        add: Any = m.add_joint if isinstance(kind, bc.Joint) else m.add_constraint
        add("grip", kind, a, b, first, second, closed=closed)
        return bc.compile(m, backend="numpy", cut=["grip"] if isinstance(kind, bc.Joint) else ())

    for side in ("parent", "child"):
        free = machine(*(("at closing", given) if side == "parent" else (given, "at closing")), False)
        q, u = free.random_state(rng)
        places = [i for i, name in enumerate(free.coordinate_names) if name.startswith("grip")]
        q[places] = free.neutral()[places]  # where it is when it closes
        closed = free.attach("grip", at=q)
        a, b = (free.pose(q, body) for body in "ab")
        frame = a.inverse() @ b @ given if side == "parent" else b.inverse() @ a @ given
        same = machine(*((frame, given) if side == "parent" else (given, frame)), True)
        u = same.project(q, u).u
        assert np.abs(closed.loop_error(q)).max() < 1e-14 and closed.dof == same.dof
        assert np.abs(closed.loop_rate_error(q, u)).max() < 1e-13
        assert np.abs(closed.forward_dynamics(q, u) - same.forward_dynamics(q, u)).max() < 1e-11


def test_results_in_files(tmp_path: Path) -> None:
    """What is streamed, what is in memory and what is read again are the same."""
    def run_into(file: Path | None) -> bc.Result:
        arm = bc.compile(nailed())
        return arm.simulate(whole_state(arm, [0.3, 0.5], [1.0, -2.0]), 0.2, step=0.01, file=file, events=[
            bc.Event(at(0.05), "caught", action=bc.attach("nail"))])

    run, wanted = run_into(tmp_path / "run.nc"), run_into(None)
    assert set(run.variables) == set(wanted.variables)
    for name in ("topology", "event_energy_lost", "event_impulse"):
        np.testing.assert_array_equal(run[name].values, wanted[name].values)
    with bc.open_result(tmp_path / "run.nc") as again:
        assert again["topology"].dtype == np.int32 and again.attrs["topologies"] == wanted.attrs["topologies"]
        again.attach(bc.compile(nailed()))
        np.testing.assert_allclose(again.reactions("nail").values, wanted.reactions("nail").values, atol=1e-9)
    with bc.open_result(tmp_path / "run.nc") as alone:  # the file holds the machine; every sample has its own topology
        np.testing.assert_allclose(alone.reactions("nail").values, wanted.reactions("nail").values, atol=1e-9)
    run.close()


def test_locks_of_the_start_can_be_let_go() -> None:
    arm = bc.compile(bc.load("double_pendulum"), lock=["elbow"])
    result = arm.simulate(([0.3, 0.5], [0.0, 0.0]), 0.2, events=[bc.Event(at(0.1), "go", action=bc.unlock("elbow"))])
    elbow = result.q.sel(coordinate="elbow.angle").values
    assert np.ptp(elbow[:100]) == 0.0 < np.ptp(elbow[100:])


@pytest.mark.parametrize(("change", "message"), [
    (bc.attach("nail"), "'nail' is closed already"), (bc.detach("peg"), "'peg' is open already"),
    (bc.detach("bolt"), "nothing named 'bolt'"), (bc.attach("nale"), "nothing named 'nale'.*did you mean 'nail'"),
    (bc.attach("peg"), r"'peg' is open by 2\.7 \(peg: along y"),
    (bc.attach("elbow"), "'elbow' of .* cannot be let go or closed"), (bc.leave("box"), "no body 'box'"),
    (bc.leave("lower"), "'lower' cannot leave.*'elbow' carries it"),
    (bc.enter("upper"), "'upper' is in the run already")])
def test_changes_that_cannot_be(change: bc.Change, message: str) -> None:
    m = nailed()
    m.add_joint("peg", bc.Spherical(), m.ground, m.bodies[1], bc.Pose((0, 3.0, 0)), closed=False)
    events = [bc.Event(at(0.01), "first", action=bc.attach("nail")), bc.Event(at(0.02), "then", action=change)]
    arm = bc.compile(m)
    with pytest.warns(bc.SimulationWarning, match=message):
        result = arm.simulate(whole_state(arm, [0.3, 0.5], [0.0, 0.0]), 0.05, step=5e-3, events=events)
    assert result.attrs["status"] == "failed" and float(result.time[-1]) == pytest.approx(0.02)


@pytest.mark.parametrize(("options", "message"), [
    ({"closed": True}, "joint 'nail'.*closed=False"), ({"child_pose": "at closing"}, "joint 'nail'.*only one"),
    ({"parent_pose": "somewhere"}, "joint 'nail'.*'at closing'.*'somewhere'")])
def test_declarations_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(bc.ModelError, match=message):
        nailed(**options)


def test_bodies_that_others_carry_cannot_be_absent() -> None:
    m = bc.load("double_pendulum")
    child = m.add_body("child", bc.Inertia.sphere(1.0, 0.1), present=False)
    m.add_joint("ball", bc.Spherical(), m.bodies[1], child)
    with pytest.raises(bc.ModelError, match="'child' cannot leave.*'ball' carries it"):
        bc.compile(m)
    m = nailed()
    with pytest.raises(bc.ModelError, match="'nail' is open at the start"):
        m.prescribe("nail", 0.0, 0)


def picker() -> bc.Mechanism:
    """An arm described in its design position, which takes something up where it is."""
    m = bc.load("arm")
    part = m.add_body("part", bc.Inertia.sphere(0.3, 0.05))
    m.add_joint("flight", bc.Free(), m.ground, part)
    m.add_joint("grip", bc.Weld(), "flange", part, bc.Pose((0.85, 0, 1.0)), "at closing", closed=False)
    return m


def test_model_files_hold_it(tmp_path: Path) -> None:
    for make in (script(GRASP).machine, script(GENEVA).machine, script(LANDING).machine, crane, picker):
        m = make()
        bc.save(m, tmp_path / "machine.yaml")
        again = bc.load(tmp_path / "machine.yaml")
        assert again.open_at_start == m.open_at_start and again.absent_at_start == m.absent_at_start
        assert again.parameters == m.parameters
        one, two = bc.compile(m), bc.compile(again)
        q, u = one.random_state(np.random.default_rng(1))[:2]
        np.testing.assert_array_equal(one.forward_dynamics(q, u), two.forward_dynamics(q, u))
    for form in ("urdf", "sdf", "xml"):
        with pytest.raises(bc.ModelError, match="'nail' is open at the start"):
            bc.save(nailed(), tmp_path / f"arm.{form}")


def test_reactions_of_a_loop_that_opens_in_a_machine_with_a_state():
    """Joints come in the order of the description, whichever are open: a state stands after those that close loops."""
    m = bc.load("four_bar")
    m.add_state("seen", lambda at: (at.u("A") - at.state("seen")) / 0.1, initial=0.3)
    system = bc.compile(m, backend="numpy")
    result = system.simulate(system.assemble(q={"A": 0.5}, u={"A": 3.0}), 0.04, step=0.01, stepper="rk4", events=[
        bc.Event(lambda t, q, u: t - 0.02, "snap", action=bc.detach("D"))])
    found = result.reactions()
    assert found["joint"].values.tolist() == [*system.reactions(system.assemble())]
    closed = np.isfinite(found.sel(joint="D").values).all(axis=-1)
    assert closed.tolist() == (result["topology"] == 0).values.tolist() and closed.any() and not closed.all()
    assert np.isfinite(found.sel(joint=["A", "B", "C"]).values).all()
