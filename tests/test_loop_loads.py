"""Multipliers of constraints and the forces that enforce motions, by compiled code: batches, redundancy, failures."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
import bellcrank.math as bm
import looped
from bellcrank.system import force_terms, inverse_dynamics, loop_loads, reactions

EPS = float(np.finfo(float).eps)


def by_singular_values(system: bc.System, given: dict[str, np.ndarray]) -> np.ndarray:
    return loop_loads._careful_loads(force_terms.forced(system.plans), given, None, 0.0)


def forbidden(*arguments: object) -> np.ndarray:
    raise AssertionError("a state went the careful way")


@pytest.mark.parametrize("name", ("four_bar", "redundant_five_bar", "bennett"))
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
    found = bc.analyze.loop_loads(system, q, u, tau, udot)[1]
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


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



# -- group by group, for machines of any size ----------------------------------------------------------------------
def welded_loop() -> bc.Mechanism:
    """A spatial four-bar whose rocker hangs from a body that is welded to the coupler, askew."""
    m = bc.Mechanism("welded loop")
    for name in ("crank", "coupler", "tip", "rocker"):
        m.add_body(name, bc.Inertia.box(1.0, (0.1, 0.2, 0.3)))
    m.add_joint("A", bc.Revolute("y"), m.ground, "crank")
    m.add_joint("B", bc.Spherical(), "crank", "coupler", bc.Pose((0.0, 0.0, 0.3)))
    m.add_joint("W", bc.Weld(), "coupler", "tip", bc.Pose.rpy((0.3, 0.1, 0.2), 0.3, 0.5, 0.7))
    m.add_joint("D", bc.Revolute("y"), m.ground, "rocker", bc.Pose((0.9, 0.1, 0.0)))
    m.add_joint("C", bc.Universal(), "rocker", "tip", bc.Pose((0.0, 0.0, 0.3)), bc.Pose((0.5, 0.0, 0.1)))
    return m


def same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float) -> None:
    assert list(found) == list(expected)
    size = max(np.abs(w).max() for w in expected.values())
    assert max(np.abs(found[name] - expected[name]).max() for name in found) < tolerance * size


@pytest.mark.parametrize("machine", (bc.load("redundant_five_bar"), bc.load("double_wishbone"), welded_loop()),
                         ids=lambda m: m.name)
def test_reactions_group_by_group(machine: bc.Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    """In loops over groups and links, as for large machines: the same as by one program, wrenches included."""
    system, rolled = bc.compile(machine), bc.compile(machine, schedule="rolled")
    q, u, tau = looped.states(system)
    wrenches = np.random.default_rng(3).normal(size=(len(q), len(machine.bodies), 6))
    expected = system.reactions(q, u, tau, wrenches=wrenches)
    monkeypatch.setattr(reactions, "_loop_reactions", forbidden)
    tolerance = 256 * EPS * max(looped.conditioning(system, x) for x in q)
    same(rolled.reactions(q, u, tau, wrenches=wrenches), expected, tolerance)
    same(rolled.reactions(q[0], u[0], tau[0]), system.reactions(q[0], u[0], tau[0]), tolerance)


@pytest.mark.parametrize("cut", [False, True], ids=["tree", "loop"])
def test_elements_on_welded_bodies(cut: bool) -> None:
    """Rolled into loops, elements act beside the links: each on its own body, and laws on joints within these."""
    m = bc.Mechanism("arm")
    for name in ("arm", "plate", "tip"):
        m.add_body(name, bc.Inertia(1.0, (0.1, 0.2, 0.3), (0.1, 0.2, 0.25)))
    m.add_joint("A", bc.Revolute("y"), m.ground, "arm")
    m.add_joint("weld", bc.Weld(), "arm", "plate", bc.Pose.rpy((0.5, 0, 0), 0.3, 0.2, 0.1))
    m.add_joint("B", bc.Revolute("z"), "plate", "tip", bc.Pose((0.4, 0.1, 0)))
    if cut:
        m.add_constraint("rod", bc.PointOnPlane("x"), m.ground, "tip", bc.Pose((0.8, 0, 0)), bc.Pose((0.3, 0, 0)))
    m.add_spring("spring", m.ground, "plate", (0, 0, 1), (0.1, 0, 0), stiffness=30.0, length=0.3)
    m.add_spring("tie", "arm", "tip", (0, 0.1, 0), (0.1, 0, 0), stiffness=20.0, damping=1.0)
    m.add_joint_force("law", "B", lambda at: 2.0 - at.u("A"))
    small, rolled = bc.compile(m, backend="numpy"), bc.compile(m, schedule="rolled")
    q, u, _ = looped.states(small) if cut else (*small.random_state(np.random.default_rng(1), 2), None)
    same(rolled.reactions(q, u), small.reactions(q, u), 1e-11)
    for found, expected in zip(rolled.element_forces(q, u)["law"][:9], small.element_forces(q, u)["law"], strict=False):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_laws_of_time_on_bodies_that_cannot_move() -> None:
    """What is pushed stands on the ground: of the machine's motion nothing depends on time, its bolts' loads do."""
    m = bc.load("four_bar")
    m.add_joint("bolts", bc.Weld(), m.ground, m.add_body("base", bc.Inertia.sphere(1.0, 0.1)))
    m.add_wrench("push", "base", force=(lambda t: 3.0 + t, 0, 0))
    for system in (bc.compile(m), bc.compile(m, backend="numpy")):
        state = system.assemble(q={"A": 0.5})
        for t in (0.0, 2.0):
            found = system.reactions(state.q, state.u, t=t)["bolts"]
            assert np.abs(found[3:] - (-3.0 - t, 9.81, 0.0)).max() < 1e-12
        assert np.abs(system.reactions(state.q, state.u)["bolts"][3] + 3.0) < 1e-12


def test_reactions_and_multipliers_of_a_large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of 81 links and 40 loops is interpreted: neither reactions nor multipliers."""
    system = bc.compile(bc.load("ladder", cells=40))
    q, u, tau = looped.states(system, count=2)
    udot = system.forward_dynamics(q, u, tau)
    plans, given = force_terms.forced(system.plans), {"q": q, "u": u, "udot": udot, "tau": tau}
    lack = loop_loads.lacking_forces(plans, given, None, 0.0)
    expected = loop_loads._least_loads(system.plans, q, 0.0, lack)
    monkeypatch.setattr(loop_loads, "_least_loads", forbidden)
    found = bc.analyze.loop_loads(system, q, u, tau, udot)
    assert np.abs(found - expected).max() < 1e-11 * np.abs(expected).max()
    wrenches = system.reactions(q, u, tau)
    by_rows = reactions._loop_reactions(plans, given, None, 0.0)[0]
    same({name: wrenches[name] for name in by_rows}, by_rows, 1e-11)


def test_forces_of_no_motion_have_no_multipliers_group_by_group() -> None:
    """The result is no number then, and not a wrong one: all constraints are looked at together."""
    system = bc.compile(bc.load("ladder", cells=3), schedule="rolled")
    q, _, tau = looped.states(system)
    run = loop_loads.group_program(system.plans, q, 0.0)
    assert run is not None
    good = system.kernels.evaluate("group_multipliers", {"q": q, "tau": 0.0 * tau}, None, 0.0, run)
    odd = system.kernels.evaluate("group_multipliers", {"q": q, "tau": tau}, None, 0.0, run)  # of no motion
    assert good.finite and not odd.finite and not good.result.any()
