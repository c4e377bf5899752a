"""Assembly stays on the branch of the guess: against closed forms, against `drive`, and where branches end."""

from __future__ import annotations

import copy
import functools
import os
import pickle
import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc
from bellcrank.errors import AssemblyWarning, BranchWarning
from bellcrank.system import assembly
from test_zoo import ANGLES, DRIVES

Floats = npt.NDArray[np.float64]
PIN = bc.Revolute("z")


def own_slider_crank(r: float = 0.04, l: float = 0.14) -> bc.Mechanism:  # noqa: E741
    m = bc.Mechanism("slider-crank", gravity=(0, 0, 0))
    crank = m.add_body("crank", bc.Inertia.rod(1, (0, 0, 0), (r, 0, 0)))
    rod = m.add_body("rod", bc.Inertia.rod(1, (0, 0, 0), (l, 0, 0)))
    piston = m.add_body("piston", bc.Inertia.sphere(1, 0.02))
    m.add_joint("main", PIN, m.ground, crank)
    m.add_joint("pin", PIN, crank, rod, bc.Pose((r, 0, 0)))
    m.add_joint("gudgeon", PIN, rod, piston, bc.Pose((l, 0, 0)))
    m.add_joint("liner", bc.Prismatic("x"), m.ground, piston)
    return m


def parallelogram() -> bc.System:
    m = bc.Mechanism("parallelogram", gravity=(0, -9.81, 0))
    rods = {n: m.add_body(n, bc.Inertia.rod(1.0, (0, 0, 0), (x, 0, 0)))
            for n, x in (("left", 0.5), ("coupler", 1.0), ("right", 0.5))}
    m.add_joint("A", PIN, m.ground, rods["left"])
    m.add_joint("B", PIN, rods["left"], rods["coupler"], bc.Pose((0.5, 0, 0)))
    m.add_joint("C", PIN, rods["coupler"], rods["right"], bc.Pose((1.0, 0, 0)), bc.Pose((0.5, 0, 0)))
    m.add_joint("D", PIN, m.ground, rods["right"], bc.Pose((1.0, 0, 0)))
    return bc.compile(m)


def four_bar_at(a: float, side: float) -> Floats:
    """The four-bar of the library in closed form: crank 0.3, coupler 1, rocker 0.6, ground 1."""
    p = np.array([0.3 * np.cos(a), 0.3 * np.sin(a)])
    to = np.array([1.0, 0.0]) - p
    d = float(np.hypot(*to))
    along = (1.0 + d * d - 0.36) / (2.0 * d)
    coupler = np.arctan2(to[1], to[0]) + side * np.arccos(along)
    elbow = p + np.array([np.cos(coupler), np.sin(coupler)])
    rocker = np.arctan2(*(np.array([1.0, 0.0]) - elbow)[::-1])
    return np.array([a, coupler - a, rocker - coupler, -rocker])


def apart(a: Floats, b: Floats) -> float:
    return float(np.abs((a - b + np.pi) % (2.0 * np.pi) - np.pi).max())


# -- closed forms --------------------------------------------------------------------------------------------------
def test_slider_crank_over_a_whole_turn() -> None:
    """Every degree from the design position, both ways, in one call each."""
    system = bc.compile(own_slider_crank(), actuated=["main"])
    for angle in np.radians(np.arange(-180, 181)):
        rod = np.arcsin(0.04 * np.sin(angle) / 0.14)
        state = system.assemble(q={"main": angle})
        assert np.abs(state.q[:3] - [angle, -rod - angle, rod]).max() < 1e-14 * 10 / 0.04
        assert abs(state.q[3] - (0.04 * np.cos(angle) + 0.14 * np.cos(rod))) < 1e-14
        assert not state.branch_changed


def test_batch_of_four_bars_in_the_docs() -> None:
    system = bc.compile(bc.load("four_bar"), actuated=["A"])
    for angle in np.linspace(0.0, 3.0, 32):
        assert apart(system.assemble(q={"A": angle}).q, four_bar_at(angle, 1.0)) < 1e-13


@pytest.mark.parametrize("side", (1.0, -1.0))
def test_four_bar_over_a_whole_turn_on_either_branch(side: float) -> None:
    system = bc.compile(bc.load("four_bar"), actuated=["A"])
    start = four_bar_at(0.7, side)
    for angle in 0.7 + np.linspace(-np.pi, np.pi, 91):
        state = system.assemble(q={"A": angle}, guess=start)
        assert apart(state.q, four_bar_at(angle, side)) < 1e-13 and state.q[0] == angle


@pytest.mark.parametrize("side", (1.0, -1.0))
def test_a_whole_turn_in_one_batch(side: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """All angles are walked together by compiled steps, each on the branch of the guess; none goes one by one."""
    system = bc.compile(bc.load("four_bar"), actuated=["A"])
    start, angles = four_bar_at(0.7, side), 0.7 + np.linspace(-2.0 * np.pi, 2.0 * np.pi, 60).reshape(4, 15)
    monkeypatch.setattr(assembly, "on_branch", None)
    state = system.assemble(q={"A": angles}, u={"A": 1.0}, guess=start)
    assert state.q.shape == (4, 15, 4) and np.array_equal(state.q[..., 0], angles) and (state.u[..., 0] == 1.0).all()
    expected = [four_bar_at(angle, side) for angle in angles.ravel()]
    assert apart(state.q.reshape(-1, 4), np.array(expected)) < 1e-13 and not state.branch_changed.any()
    for turns in np.moveaxis(state.q[..., 1:3], -1, 0):  # no jumps: the rocker swings, the coupler turns along
        assert np.abs(np.diff(turns.ravel())).max() < 0.5


def test_one_of_a_batch_whose_branch_ends() -> None:
    """The others do not suffer, and the reason is that of the state."""
    system = bc.compile(bc.load("four_bar"))
    start = system.assemble(q={"A": 0.5})
    held = np.array([-1.4, -1.2923, -1.35])
    together = system.assemble(q={"C": held}, guess=start).q
    one = np.array([system.assemble(q={"C": x}, guess=start).q for x in held])
    assert np.abs(together - one).max() < 1e-12
    with pytest.warns(AssemblyWarning, match=r"branch of the guess ends at C.angle = -1.29221 on the way to -1.2"):
        state = system.assemble(q={"C": np.array([-1.4, -1.2])}, guess=start)
    assert np.abs(state.q[0] - one[0]).max() < 1e-12 and np.isnan(state.q[1]).all() and np.isnan(state.u[1]).all()
    assert [(f.index, f.joint) for f in state.failures] == [((1,), "A")]


def test_what_a_batch_leaves_free_is_nearest_to_the_guess() -> None:
    system = bc.compile(bc.load("five_bar"))
    start = system.assemble(guess=ANGLES_OF_FIVE_BAR)
    values = start.q[0] + np.array([0.1, 0.25, 0.4])
    together = system.assemble(q={"leg1.1": values}, guess=start).q
    one = np.array([system.assemble(q={"leg1.1": x}, guess=start).q for x in values])
    far = [np.linalg.norm(x - start.q, axis=-1) for x in (together, one)]
    assert np.abs(far[0] - far[1]).max() < 1e-6 and np.abs(together - one).max() < 1e-3
    assert np.abs(system.loop_error(together)).max() < 1e-13


def test_joints_that_close_loops_are_walked_too() -> None:
    """The four-bar held at its cut joint; the rocker goes to and fro, so that only a part of a turn is told by it."""
    system = bc.compile(bc.load("four_bar"))
    start = system.assemble(q={"A": 2.0})
    there = bc.analyze.drive(system, {"A": lambda t: t}, np.linspace(2.0, 3.0, 11), guess=start).q.values
    assert system.loops == ("D",)
    for q in there:
        held = float(bc.analyze.loop_coordinates(system, q, "D")[0])
        assert np.abs(system.assemble(q={"D": held}, guess=start).q - q).max() < 1e-9


def test_balls_are_walked_along_one_turn() -> None:
    """A floating four-bar, its base held turned by almost half a turn: nothing else moves."""
    m = bc.load("four_bar")
    base = bc.Mechanism("floating four-bar")
    base.add_body("base", bc.Inertia.box(1.0, (1.0, 0.1, 0.1)))
    base.add_joint("float", bc.Spherical(), base.ground, "base")
    for b in m.bodies:
        base.add_body(b.name, b.inertia)
    names = {b.index: b.name for b in m.bodies} | {0: "base"}
    for r in m.joints:
        base.add_joint(r.name, r.joint, names[r.parent], names[r.child], r.parent_pose, r.child_pose)
    system = bc.compile(base)
    start = system.assemble(guess=dict(zip("ABCD", four_bar_at(0.7, 1.0).tolist(), strict=True)))
    ball = [np.cos(1.5), 0.0, np.sin(1.5), 0.0]
    state = system.assemble(q={"float": ball, "A": 0.7}, guess=start)
    assert np.abs(state.q[:4] - ball).max() < 1e-15 and apart(state.q[4:], four_bar_at(0.7, 1.0)) < 1e-12


# -- the nearest closed position -----------------------------------------------------------------------------------
@pytest.mark.parametrize("weights", (None, {"A": 5.0}, {"C": 0.2}))
def test_an_open_guess_goes_to_the_nearest_closed_position(weights: dict[str, float] | None) -> None:
    """Compared with all closed positions of the four-bar, sampled finely from closed forms."""
    system = bc.compile(bc.load("four_bar"))
    scale = np.array([(weights or {}).get(n, 1.0) for n in "ABC"])
    every = np.array([four_bar_at(a, side) for a in np.linspace(-np.pi, np.pi, 20001) for side in (1.0, -1.0)])
    rng = np.random.default_rng(5)
    for guess in rng.uniform(-2.5, 2.5, (8, 4)):
        change = ((every - guess)[:, :3] + np.pi) % (2.0 * np.pi) - np.pi
        least = float(np.linalg.norm(scale * change, axis=1).min())
        q = system.assemble(guess=guess, weights=weights).q
        assert np.linalg.norm(scale * (q - guess)[:3]) < least + 1e-4  # the samples are 3e-4 apart
        assert np.abs(system.loop_error(q)).max() < 1e-14


def test_a_closed_guess_does_not_move_and_what_is_free_moves_least() -> None:
    robot = bc.compile(bc.load("five_bar"))
    start = robot.assemble(q={"leg1.1": 1.2, "leg2.1": 1.1})
    assert np.array_equal(robot.assemble(guess=start).q, start.q)
    moved = robot.assemble(q={"leg1.1": 1.3}, guess=start)  # one freedom is left
    far = np.linalg.norm((moved.q - start.q)[1:4])  # of the joints that carry links
    assert all(np.linalg.norm((robot.assemble(q={"leg1.1": 1.3, "leg2.1": moved.q[2] + d}, guess=moved).q
                               - start.q)[1:4]) >= far - 1e-8 for d in (-0.02, -0.003, 0.003, 0.02))


def test_results_depend_on_the_call_alone() -> None:
    fresh, used = (bc.compile(bc.load("four_bar"), actuated=["A"]) for _ in range(2))
    for k in range(12):
        used.assemble(q={"A": 0.2 * k}, guess=[0.3, -0.1 * k, 0.1, 0.0])
    for call in ({}, {"q": {"A": 2.0}}, {"guess": {"A": 0.5, "B": -2.0}},
                 {"q": {"A": -1.0}, "guess": [0.5, 0.2, 0.1, 0.0]}):
        assert np.array_equal(fresh.assemble(**call).q, used.assemble(**call).q)  # type: ignore[arg-type]


def test_many_turns_are_not_walked() -> None:
    system = bc.compile(bc.load("four_bar"), actuated=["A"])
    assert apart(system.assemble(q={"A": 1e5}).q, four_bar_at(1e5, 1.0)) < 1e-9


# -- dead points ---------------------------------------------------------------------------------------------------
def test_branches_that_cross_go_straight_on() -> None:
    """A parallelogram stays one through its flat positions, also when it shall stop there or begins there."""
    system = parallelogram()
    start = system.assemble(q={"A": 1.0}, guess=[1.0, -1.0, 1.0, 1.0])
    for angle in (*np.linspace(-3.0, 6.0, 19), np.pi, 0.0):
        q = system.assemble(q={"A": angle}, guess=start).q
        assert np.abs(q[:3] - [angle, -angle, angle]).max() < 1e-7, angle  # a flat position is known to half the digits
    assert np.abs(np.abs(system.assemble(q={"A": 1e-3}).q)).max() < 5e-3


def test_a_branch_that_ends_says_where() -> None:
    """The rocker between its limits, from the table of the four-bar: beyond them nothing closes."""
    system = bc.compile(bc.load("four_bar"))
    start = system.assemble(q={"A": 0.5})
    assert system.assemble(q={"C": -1.2923}, guess=start).q[0] == pytest.approx(np.pi, abs=0.05)
    with pytest.raises(bc.AssemblyError, match=r"branch of the guess ends at C.angle = -1.29221 on the way to -1.2"):
        system.assemble(q={"C": -1.2}, guess=start)


def test_a_dead_point_is_told_by_joints_of_the_loop() -> None:
    """A four-bar that flies, with an arm on it: neither how it flies nor the arm has to do with where it ends."""
    m = bc.Mechanism("flying")
    frame = m.add_body("frame", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("free", bc.Free(), m.ground, frame)
    m.add_joint("arm", bc.Spherical(), frame, m.add_body("arm", bc.Inertia.sphere(1.0, 0.1)))
    for i, x in enumerate((0.0, 0.4)):
        leg = m.add_body(f"leg {i}", bc.Inertia.sphere(0.1, 0.1))
        m.add_joint(f"hip {i}", bc.Revolute("y"), frame, leg, bc.Pose((x, 0, 0)), bc.Pose())
    foot = m.add_body("foot", bc.Inertia.sphere(0.1, 0.1))
    m.add_joint("knee 0", bc.Revolute("y"), "leg 0", foot, bc.Pose((0, 0, -0.3)), bc.Pose())
    m.add_joint("knee 1", bc.Revolute("y"), "leg 1", foot, bc.Pose((0, 0, -0.25)), bc.Pose((0.35, 0, 0)))
    with pytest.raises(bc.AssemblyError, match=r"ends at hip 0\.angle = .* joint '(hip 1|knee 0|knee 1)' is no longer"):
        bc.compile(m).assemble(q={"free": (0.6, 0.0, 0.8, 0.0, 0.0, 0.0, 9.0), "hip 0": 2.0})


def test_another_branch_is_taken_with_a_warning_that_says_so() -> None:
    system = bc.compile(bc.load("five_bar"))
    start = system.assemble(guess=ANGLES_OF_FIVE_BAR)
    hold = {"leg1.1": start.q[0]}
    curve = bc.analyze.coupler_curve(system, "leg2.1", "link1.2", hold=["leg1.1"], guess=start)
    top = curve.limits[1]
    assert top is not None
    found = None
    for angle in top + np.arange(0.1, 3.0, 0.1):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                found = system.assemble(q={**hold, "leg2.1": angle}, guess=start)
            except bc.AssemblyError as error:
                assert f"ends at leg2.1.angle = {top:.6g}" in str(error)
                continue
        break
    assert found is not None and found.branch_changed
    assert [w.category for w in told] == [BranchWarning]
    assert f"leg2.1.angle = {top:.6g} on the way to {angle:.6g}" in str(told[0].message)
    assert re.search(r"joint '(leg1.2|leg2.2)' is no longer determined", str(told[0].message))
    assert np.abs(system.loop_error(found.q)).max() < 1e-14
    other = bc.compile(bc.load("five_bar"), cut=["leg1.2"])  # speeds as an array are not forgotten, nor is the branch
    assert other.loops == ("leg1.2",)
    with pytest.warns(BranchWarning):
        again = other.assemble(q={**hold, "leg2.1": angle}, u=np.zeros(other.nu),
                               guess=dict(zip(system.joint_names, start.q, strict=True)))
    assert again.branch_changed
    # no other branch with these values is nearer
    far = [np.linalg.norm((b.q - start.q + np.pi) % (2 * np.pi) - np.pi)
           for b in bc.analyze.branches(system, q={**hold, "leg2.1": angle}, guess=start)]
    assert np.linalg.norm((found.q - start.q + np.pi) % (2 * np.pi) - np.pi) <= min(far) + 1e-9


ANGLES_OF_FIVE_BAR = {k: v for k, v in ANGLES["five_bar"].items() if k != "tip"}


def test_states_unpack_pickle_and_keep_what_they_say() -> None:
    state = bc.State(np.zeros(2), np.ones(2), 0.5)
    q, u = state
    assert np.array_equal(q, state.q) and np.array_equal(u, state.u) and not state.branch_changed
    assert bc.State(q, u, 0.5) == state != bc.State(q, u) and not pickle.loads(pickle.dumps(state)).branch_changed
    other = replace(state, branch_changed=True)
    assert pickle.loads(pickle.dumps(other)).branch_changed and copy.copy(other).branch_changed


# -- every machine, every drive ------------------------------------------------------------------------------------
def reached(system: bc.System, laws: dict[str, Any], values: Floats, start: bc.State) -> Floats:
    """Positions by `drive`, as far as it goes along values of the parameter."""
    try:
        return bc.analyze.drive(system, laws, values, guess=start).q.values
    except bc.AssemblyError as error:
        end = float(re.search(r"beyond t = (\S+) s", str(error))[1])  # type: ignore[index]
        ahead = float(np.sign(values[-1] - values[0]))
        return bc.analyze.drive(system, laws, values[ahead * values < ahead * end], guess=start).q.values


def still(values: list[float]) -> Any:
    return values[0] if len(values) == 1 else lambda t: tuple(values)


#: every so many of the samples are compared; BELLCRANK_SWEEP=1: all
STRIDE = int(os.environ.get("BELLCRANK_SWEEP", "10"))
KEYS = {**DRIVES, "ladder": ["arm0.angle1", "arm0.angle2"]}  # joints with several angles: one at a time
CASES = [(name, drive) for name in sorted(KEYS) for drive in KEYS[name] if drive != "floating"]


@functools.cache
def begun(name: str) -> tuple[bc.System, bc.State]:
    """A machine, for all its drives, and where it starts."""
    system = bc.compile(bc.load(name))
    return system, system.assemble(guess={k: v for k, v in ANGLES.get(name, {}).items() if k in system.joint_names})


@pytest.mark.everyday(12)
@pytest.mark.parametrize(("name", "drive"), CASES)
def test_assembly_agrees_with_drive(name: str, drive: str) -> None:
    """Half a turn (or a metre) each way from the reference position, all other drives still."""
    system, start = begun(name)
    places = {k: system.model.configuration.coordinate_entries(k) for k in KEYS[name]}
    held = {k: start.q[p] for k, p in places.items() if k != drive}
    laws: dict[str, Any] = {k: still(v.tolist()) for k, v in held.items()}
    laws[drive] = lambda t: t
    middle = float(start.q[places[drive]][0])
    span = np.pi if system.coordinate_names[places[drive][0]].rpartition(".")[2].startswith("angle") else 1.0
    for ahead in (span, -span):
        values = middle + np.linspace(0.0, 0.999 * ahead, 121)  # right angles may be singular: no drive forces there
        there = reached(system, laws, values, start)
        for k in {*range(0, len(there), STRIDE), len(there) - 1}:
            state = system.assemble(q={**held, drive: values[k]}, guess=start)
            # near its end a branch is known to the root of the rounding
            assert np.abs(system.difference(there[k], state.q)).max() < 1e-7 and not state.branch_changed, values[k]
        if len(there) < len(values):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", BranchWarning)
                try:
                    assert system.assemble(q={**held, drive: values[len(there)]}, guess=start).branch_changed
                except bc.AssemblyError as error:
                    assert "branch of the guess ends at" in str(error)
