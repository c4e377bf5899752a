"""Parallel platforms by decoupled orthogonal complements: the oracle, the published machines, cuts anywhere."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import bellcrank.math as bm
import looped
import whole_states
from bellcrank.formulations import complement
from bellcrank.formulations.complement import platforms
from bellcrank.formulations.complement.leg_motion import Platform
from bellcrank.lowering.function import Function, direct
from bellcrank.system.evaluator import NumpyEvaluator
from looped import EPS, disagreement, states

DATA = Path(__file__).parent / "data" / "loops"
PLATFORMS = ("four_bar", "slider_crank", "five_bar", "redundant_five_bar", "stewart", "bennett", "bricard",
             "quarter_car", "double_wishbone", "andrews")
#: accelerations agree with the oracle to this many units in the last place
TOLERANCE = 500 * EPS


def planned(system: bc.System) -> Any:
    return dataclasses.replace(system.model.tree, plan=system.plans.general())


def inverse(system: bc.System, q: np.ndarray, u: np.ndarray, udot: np.ndarray) -> np.ndarray:
    """Forces at the independent speeds, zero elsewhere."""
    function = Function("constrained_inverse", complement.constrained_inverse, ("q", "u", "udot"), "speeds", whole=True)
    out, finite = NumpyEvaluator(planned(system)).run(function, False, [q, u, udot], len(q))
    assert finite
    return out


def by_name(system: bc.System, **values: Any) -> np.ndarray:
    """Coordinates or speeds of the joints that carry links, in their order; double underscores stand for dots in joint
    names."""
    table = {f"{name.replace('__', '.')}.angle": x for name, x in values.items()}
    names = [system.speed_names[i] for i in whole_states.carrying(system, True)]
    assert table.keys() == set(names)
    return np.stack([np.asarray(table[name], dtype=float) for name in names], axis=-1)


def whole_motion(system: bc.System, q: np.ndarray, u: np.ndarray, udot: np.ndarray
                 ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States and accelerations of all joints from those of the joints that carry links."""
    place, speeds = whole_states.whole_state(system, q, u)
    rates = np.zeros_like(speeds)
    rates[..., whole_states.carrying(system, True)] = udot
    return place, speeds, system.kernels.run("joint_accelerations", {"q": place, "u": speeds, "udot": rates}, None, 0.0)


def reference(name: str) -> dict[str, Any]:
    return json.loads((DATA / f"{name}.json").read_text())


# -- agreement ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", PLATFORMS)
def test_agrees_with_the_oracle(name: str, backend: str) -> None:
    assert disagreement(bc.load(name), "complement", backend) < TOLERANCE


@pytest.mark.everyday(5)
@pytest.mark.parametrize(("name", "cut"), [
    ("four_bar", ["A"]), ("four_bar", ["B"]), ("four_bar", ["C"]), ("slider_crank", ["slide"]),
    ("five_bar", ["leg2.2"]), ("five_bar", ["leg1.1"]), ("stewart", ["leg2.slide"]),
    ("stewart", ["leg1.foot", "leg3.slide", "leg4.ball"]), ("quarter_car", ["knuckle"]),
    ("quarter_car", ["arm", "tie_rod"]), ("andrews", ["O", "H"]), ("bricard", ["hinge3"])])
def test_legs_may_be_cut_anywhere(name: str, cut: list[str]) -> None:
    oracle = bc.compile(bc.load(name), "dense", "numpy", cut=cut)
    q, u, tau = states(oracle)
    expected = oracle.forward_dynamics(q, u, tau)
    found = bc.compile(bc.load(name), "complement", "numpy", cut=cut).forward_dynamics(q, u, tau)
    spread = max(looped.conditioning(oracle, x) for x in q)
    assert np.abs(found - expected).max() < 10.0 * EPS * spread * np.abs(expected).max()


@pytest.mark.parametrize("pair", [("leg1.1", "leg2.1"), ("leg1.1", "leg1.2"), ("leg2.1", "leg2.2"),
                                  ("leg1.2", "leg2.2")])
def test_any_independent_speeds(pair: tuple[str, str]) -> None:
    """None, one or two of them in a leg."""
    system = bc.compile(bc.load("five_bar"), "complement", "numpy", independent=list(pair))
    assert {system.speed_names[v] for v in system.plans.general().independent} == {f"{name}.angle" for name in pair}
    assert disagreement(bc.load("five_bar"), "complement", "numpy", independent=list(pair)) < TOLERANCE


def test_external_wrenches() -> None:
    oracle = bc.compile(bc.load("stewart"), "dense")
    q, u, tau = states(oracle, count=1)
    wrenches = np.random.default_rng(3).normal(size=(len(oracle.body_names), 6)) * 50.0
    expected = oracle.forward_dynamics(q[0], u[0], tau[0], wrenches=wrenches)
    found = bc.compile(bc.load("stewart"), "complement", "numpy").forward_dynamics(q[0], u[0], tau[0],
                                                                                  wrenches=wrenches)
    assert np.abs(found - expected).max() < TOLERANCE * np.abs(expected).max()


def test_bodies_in_no_loop() -> None:
    """They may hang from the ground, from a leg and from the platform."""
    machine = bc.load("redundant_five_bar")
    for k, carrier in enumerate(("ground", "link2.1", "link1.2", "link3.2"), start=1):
        machine.add_body(f"extra{k}", bc.Inertia(0.5, (0.1, 0.02, 0.03), (0.01, 0.02, 0.015)))
        machine.add_joint(f"swing{k}", bc.Universal("x", "z"), carrier, f"extra{k}")
    machine.add_body("further", bc.Inertia(0.2, (0.1, 0.02, 0.03), (0.01, 0.02, 0.015)))
    machine.add_joint("tail", bc.Spherical(), "extra2", "further")
    assert disagreement(machine, "complement", "numpy") < TOLERANCE


def test_prescribed_speeds() -> None:
    """A driven leg, and a driven body on the platform."""
    machine = bc.load("double_wishbone")
    machine.prescribe("rack", lambda t: 0.02 * bm.sin(3.0 * t))
    machine.prescribe("wheel", lambda t: 20.0 * t + t * t)
    oracle, found = (bc.compile(machine, method) for method in ("dense", "complement"))
    state = oracle.assemble(u={"lower_arm": 0.7}, t=0.4)
    tau = np.random.default_rng(0).normal(size=oracle.nu)
    expected = oracle.forward_dynamics(state.q, state.u, tau, t=0.4)
    assert abs(expected[oracle.speed_names.index("wheel.angle")] - 2.0) < 1e-12
    got = found.forward_dynamics(state.q, state.u, tau, t=0.4)
    assert np.abs(got - expected).max() < TOLERANCE * np.abs(expected).max()


def test_baumgarte_pulls_open_loops_together() -> None:
    """The second derivative of every error is -2 alpha times its rate less beta^2 times itself."""
    alpha, beta = 3.0, 40.0
    system = bc.compile(bc.load("quarter_car"), "complement", "numpy", baumgarte=(alpha, beta))
    q, u, tau = (x[0] for x in states(system))
    rng = np.random.default_rng(1)
    q = system.integrate(q, 1e-7 * rng.normal(size=system.nu))
    u = u + 1e-5 * rng.normal(size=system.nu)
    found = bc.analyze.loop_acceleration_error(system, q, u, system.forward_dynamics(q, u, tau))
    wanted = -2.0 * alpha * system.loop_rate_error(q, u) - beta**2 * system.loop_error(q)
    assert np.abs(wanted).max() > 1e-5
    assert np.abs(found - wanted).max() < 1e-2 * np.abs(wanted).max()  # both sides of a cut count as coinciding


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e3])
def test_constraints_that_are_no_joints(scale: float) -> None:
    """Legs that are massless rods, of any size: a plate on five of them has one freedom."""
    machine = bc.Mechanism("plate on rods", gravity=(0.0, 0.0, -9.81 * scale))
    machine.add_body("plate", bc.Inertia(3.0, (0.02 * scale, 0.01 * scale, 0.0), scale**2 * np.array([0.2, 0.3, 0.4])))
    machine.add_joint("float", bc.Free(), machine.ground, "plate")
    for k, (x, y) in enumerate(np.random.default_rng(0).uniform(-1.0, 1.0, (5, 2))):
        top = scale * np.array([0.3 * np.cos(1.3 * k), 0.3 * np.sin(1.3 * k), 0.0])
        foot = scale * np.array([0.6 * np.cos(1.3 * k + x), 0.6 * np.sin(1.3 * k + y), -0.6])
        machine.add_constraint(f"rod{k}", bc.Distance(float(np.linalg.norm(top - foot))), machine.ground, "plate",
                               bc.Pose(tuple(foot)), bc.Pose(tuple(top)))
    oracle = bc.compile(machine, "dense", "numpy")
    assert oracle.dof == 1
    q, u, _ = states(oracle)
    expected = oracle.forward_dynamics(q, u)
    found = bc.compile(machine, "complement", "numpy").forward_dynamics(q, u)
    for part in (slice(0, 3), slice(3, 6)):
        assert np.abs((found - expected)[:, part]).max() < TOLERANCE * np.abs(expected[:, part]).max()


@pytest.mark.parametrize("off", [0.0, 1e-8, 1e-2])
def test_other_speeds_where_the_chosen_ones_fail(off: float) -> None:
    """At its dead centre the slide of a slider-crank determines nothing, nearby not much."""
    oracle = bc.compile(bc.load("slider_crank"), "dense")
    state = oracle.assemble(q={"crank": off - np.pi / 3}, u={"crank": 2.0})
    system = bc.compile(bc.load("slider_crank"), "complement", "numpy", independent=["slide"])
    assert [system.speed_names[v] for v in system.plans.general().independent] == ["slide.slide"]
    expected = oracle.forward_dynamics(state.q, state.u)
    assert np.abs(system.forward_dynamics(state.q, state.u) - expected).max() < TOLERANCE * np.abs(expected).max()
    used = looped.plan_used(system, state.q, state.u).independent
    assert ([system.speed_names[v] for v in used] == ["slide.slide"]) == (off > 1e-3)


@pytest.mark.parametrize("off", [0.0, 1e-6, 1e-2])
def test_other_speeds_where_the_platform_is_not_determined(off: float) -> None:
    """The same for Phi: the outer links of a five-bar on one line, its base joints independent (section VI.B)."""
    oracle = bc.compile(bc.load("five_bar"), "dense")
    state = oracle.assemble(q={"tip": off}, u=np.ones(oracle.nu))
    system = bc.compile(bc.load("five_bar"), "complement", "numpy", independent=["leg1.1", "leg2.1"])
    before = system.plans.general().independent
    expected = oracle.forward_dynamics(state.q, state.u)
    found = system.forward_dynamics(state.q, state.u)
    assert np.abs(found - expected).max() < 1e-10 * np.abs(expected).max()
    assert (looped.plan_used(system, state.q, state.u).independent == before) == (off > 1e-3)


# -- the published machines -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("branch", ["open_elbow_up", "crossed_elbow_down"])
def test_four_bar_of_the_paper(branch: str) -> None:
    """Section VI.A: the driving torque along the cycloidal motion (35), (36), and the inertia felt at the crank."""
    driven = reference("four_bar")["branches"][branch]["driven"]
    system = bc.compile(bc.load("four_bar"), "complement", independent=["A"])
    q, u, udot = whole_motion(system, *(
        by_name(system, **dict(zip("ABC", np.transpose([state[key] for state in driven]), strict=True)))
        for key in ("theta", "thetadot", "thetaddot")))
    tau = inverse(system, q, u, udot)
    crank = system.speed_names.index("A.angle")
    assert len(driven) == 41
    assert np.abs(tau[:, crank] - [state["tau1"] for state in driven]).max() < 1e-10
    assert not np.delete(tau, crank, axis=1).any()
    assert np.abs(inertia(system, q)[0, 0] - [state["M_eff"] for state in driven]).max() < 1e-12
    assert np.abs(system.forward_dynamics(q, u, tau) - udot).max() < 1e-10


@pytest.mark.parametrize("branch", ["elbow_up", "elbow_down"])
def test_five_bar_of_the_paper(branch: str) -> None:
    """Section VI.B: both driving torques, and the 2 x 2 generalised inertia matrix."""
    driven = reference("five_bar")["branches"][branch]["driven"]
    names = ("leg1.1", "leg2.1")
    system = bc.compile(bc.load("five_bar"), "complement", independent=list(names))

    def joints(key: str) -> np.ndarray:
        one, two = (np.transpose([state[f"{key}_leg{leg}"] for state in driven]) for leg in (1, 2))
        return by_name(system, leg1__1=one[0], leg1__2=one[1], leg2__1=two[0], leg2__2=two[1])

    q, u, udot = whole_motion(system, joints("theta"), joints("thetadot"), joints("thetaddot"))
    tau = inverse(system, q, u, udot)
    at = [system.speed_names.index(f"{name}.angle") for name in names]
    assert np.abs(tau[:, at] - [state["tau"] for state in driven]).max() < 1e-10
    order = np.argsort(at)
    expected = np.array([state["M"] for state in driven])[:, order][:, :, order]
    assert np.abs(np.moveaxis(inertia(system, q), -1, 0) - expected).max() < 1e-12
    assert np.abs(system.forward_dynamics(q, u, tau) - udot).max() < 1e-10


def test_redundant_five_bar_of_the_reference() -> None:
    start = reference("redundant_five_bar")["trajectory"][0]
    system = bc.compile(bc.load("redundant_five_bar"), "complement")
    q = by_name(system, **{f"leg{i // 2 + 1}__{i % 2 + 1}": x for i, x in enumerate(start["theta_all"])})
    udot = system.forward_dynamics(whole_states.whole_q(system, q), np.zeros(system.nu))
    found = [udot[system.speed_names.index(f"leg1.{k}.angle")] for k in (1, 2)]
    assert np.abs(np.array(found) - [start["u1dot"], start["u2dot"]]).max() < 1e-10


def inertia(system: bc.System, q: np.ndarray) -> np.ndarray:
    """The generalised inertia matrix of states q, shape (dof, dof, states)."""
    sweeps = direct(planned(system), ("q",), lambda name, i: q[:, i] if name == "q" else 0.0, False)
    matrix = platforms.inertia_matrix(Platform(sweeps))
    return np.array([[np.broadcast_to(x, len(q)) for x in row] for row in matrix])


@pytest.mark.parametrize("name", PLATFORMS)
def test_inverse_dynamics_undoes_forward_dynamics(name: str) -> None:
    """The forces at the independent speeds do the work of all joint forces, and make the same motion."""
    system = bc.compile(bc.load(name), "complement", "numpy")
    q, u, tau = states(system)
    udot = system.forward_dynamics(q, u, tau)
    laws = system.kernels.run("joint_laws", {"q": q, "u": u})
    forces = inverse(system, q, u, udot)
    power = ((tau + laws) * u).sum(-1)
    assert np.abs((forces * u).sum(-1) - power).max() < 1e-10 * (1.0 + np.abs(forces * u).max())
    again = system.forward_dynamics(q, u, forces - laws)
    assert np.abs(again - udot).max() < 1e-9 * np.abs(udot).max()


# -- structure ----------------------------------------------------------------------------------------------------
def joint_counts(name: str, **options: Any) -> tuple[str, list[int]]:
    """The platform, and the speeds of each leg, those of a cut joint included."""
    tree = planned(bc.compile(bc.load(name), "complement", **options))
    legs = platforms.platform_of(tree)
    assert not isinstance(legs, str)
    return tree.link_names[legs.platform], sorted(
        len(leg.speeds) + (6 - tree.closures[leg.closure].rows if leg.closure >= 0 else 0) for leg in legs.legs)


def test_legs_of_the_machines() -> None:
    assert joint_counts("four_bar", independent=["A"]) == ("ground", [4])
    assert joint_counts("five_bar", independent=["leg1.1", "leg2.1"]) == ("link1.2", [2, 3])
    assert joint_counts("stewart") == ("platform", [6] * 6)
    assert joint_counts("redundant_five_bar") == ("link1.2", [2, 3, 3])
    assert joint_counts("quarter_car") == ("knuckle_wheel", [4, 5, 5, 5])
    assert joint_counts("bricard") == ("ground", [6])


@pytest.mark.parametrize(("name", "reason"), [
    ("ladder", "'arm1', 'arm2', 'arm3' each join more than two"), ("rope_ladder", "each join more than two"),
    ("delta", "'leg1.arm'"), ("four_bar_chain", "'coupler1'"), ("linkage_quadruped", "'trunk'")])
def test_other_machines_are_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(bc.ModelError, match="needs a parallel platform.*" + reason + ".*method='elimination'"):
        bc.compile(bc.load(name), "complement", "numpy")


def ring(machine: bc.Mechanism, name: str, carrier: str, at: tuple[float, float]) -> None:
    """A square of hinges on a body, in the design position."""
    x, y = at
    corners = [(x, y, 0.0), (x, y + 1.0, 0.0), (x + 1.0, y + 1.0, 0.0), (x + 1.0, y, 0.0)]
    bodies = [carrier]
    for k in range(3):
        bodies.append(f"{name}{k}")
        machine.add_body(bodies[-1], bc.Inertia(1.0, corners[k], (0.1, 0.1, 0.1)))
        machine.add_joint(f"{name}.hinge{k}", bc.Revolute("z"), bodies[-2], bodies[-1], at=corners[k])
    machine.add_joint(f"{name}.hinge3", bc.Revolute("z"), bodies[-1], carrier, at=corners[3])


@pytest.mark.parametrize(("carriers", "reason"), [
    (("ground", "ground"), "several loops share no link but the ground"),
    (("ground", "a1"), "'b0', 'b1', 'b2' does not pass through the ground"),
    (("base",), "'a0', 'a1', 'a2' does not pass through the ground")])
def test_loops_elsewhere_are_refused(carriers: tuple[str, ...], reason: str) -> None:
    machine = bc.Mechanism("rings")
    machine.add_body("base", bc.Inertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1)))
    machine.add_joint("base", bc.Revolute("z"), machine.ground, "base", at=(0, 0, 0))
    for k, carrier in enumerate(carriers):
        ring(machine, "ab"[k], carrier, (3.0 * k, 0.3 * k))
    with pytest.raises(bc.ModelError, match=reason):
        bc.compile(machine, "complement", "numpy")


def test_couplers_are_refused() -> None:
    machine = bc.load("five_bar")
    machine.add_coupler("gear", {"leg1.1": 1.0, "leg2.1": -1.0})
    with pytest.raises(bc.ModelError, match="coupler 'gear' ties joints"):
        bc.compile(machine, "complement", "numpy")
