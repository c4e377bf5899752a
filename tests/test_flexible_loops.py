"""Loops through bodies that deform: references f3 and f5, and the methods among each other."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from flexible_cases import beam, case

KINDS = ("lumped", "consistent_nodal", "continuum")
STRAIGHT = {"mode1": 0.0, "mode2": 0.0}


def relative(found: Any, wanted: Any) -> float:
    wanted = np.asarray(wanted)
    return float(np.abs(np.asarray(found) - wanted).max() / np.abs(wanted).max())


def modes_of(system: bc.System) -> list[int]:
    return [i for i, name in enumerate(system.coordinate_names) if ".mode" in name]


# -- f3: slider-crank --------------------------------------------------------------------------------------------------
def slider_crank(kind: str, stiffening: bool = False) -> bc.Mechanism:
    data = case("f3_slidercrank")
    p = data["data"]
    m = bc.Mechanism("slider-crank", gravity=(0, 0, 0))
    m.add_body("crank", bc.Inertia.rod(1.0, (0, 0, 0), (p["crank"], 0, 0)))
    m.add_body("rod", beam(p, 8, modes=np.array(data["modes"]["2"]["basis"]), support="pinned", inertia=kind,
                           names={"mid": 4}, stiffening=stiffening))
    m.add_body("block", bc.Inertia(p["m_block"]))
    m.add_joint("A", bc.Revolute("z"), m.ground, "crank")
    m.add_joint("B", bc.Revolute("z"), "crank", "rod", parent_pose=bc.Pose((p["crank"], 0, 0)))
    m.add_joint("C", bc.Revolute("z"), "rod.tip", "block")
    m.add_joint("S", bc.Prismatic("x"), m.ground, "block")
    m.prescribe("A", lambda t: p["Omega"] * t)
    return m


@cache
def slider(kind: str = "continuum", stiffening: bool = False) -> bc.System:
    return bc.compile(slider_crank(kind, stiffening))


@pytest.mark.parametrize(("kind", "beams"), [("lumped", "linear"), ("continuum", "linear"), ("continuum", "stiffened")])
def test_a_slider_crank_with_a_flexible_rod(kind: str, beams: str) -> None:
    data, system = case("f3_slidercrank"), slider(kind, beams == "stiffened")
    wanted, times = data["ffr"][f"{kind}_{beams}_2modes"], np.array(data["t"])
    straight = {f"rod.{name}": x for name, x in STRAIGHT.items()}
    result = system.simulate(system.assemble(q=straight, u=straight), times[-1], stepper="dop853", rtol=1e-10,
                             atol=1e-12, output=times)
    q, u = result.q.values, result.u.values
    assert relative(q[:, modes_of(system)], wanted["q"]) < 1e-9
    assert relative(u[:, modes_of(system)], wanted["qd"]) < 1e-8
    assert np.abs(system.pose(q, "block", t=times).position[:, 0] - wanted["block_x"]).max() < 1e-12
    frame, middle = (system.pose(q, body, t=times) for body in ("rod", "rod.mid"))
    bent = ((middle.position - frame.position)[:, None, :] @ frame.rotation)[:, 0, 1] / data["data"]["L"]
    assert np.abs(bent - wanted["mid_over_L"]).max() < 1e-10
    torque = np.asarray(system.drive_forces(q, u, t=times))[:, 0]
    assert relative(torque, wanted["drive_torque"]) < 1e-8


# -- f5: four-bar ------------------------------------------------------------------------------------------------------
def four_bar(kind: str, stiffening: bool = False) -> bc.Mechanism:
    data = case("f5_fourbar")
    p = data["data"]
    crank, follower = p["crank"], p["follower"]
    m = bc.Mechanism("four-bar", gravity=p["g"])
    m.add_body("crank", bc.Inertia.rod(crank["mass"], (0, 0, 0), (crank["length"], 0, 0)))
    m.add_body("coupler", beam(p["coupler"], 8, modes=np.array(data["modes"]["2"]["basis"]), support="pinned",
                               inertia=kind, stiffening=stiffening))
    m.add_body("follower", bc.Inertia.rod(follower["mass"], (0, 0, 0), (follower["length"], 0, 0)))
    m.add_joint("A", bc.Revolute("z"), m.ground, "crank")
    m.add_joint("B", bc.Revolute("z"), "crank", "coupler", parent_pose=bc.Pose((crank["length"], 0, 0)))
    m.add_joint("D", bc.Revolute("z"), m.ground, "follower", parent_pose=bc.Pose((p["ground"], 0, 0)))
    m.add_joint("C", bc.Revolute("z"), "coupler.tip", "follower", child_pose=bc.Pose((follower["length"], 0, 0)))
    return m


@cache
def linkage(kind: str = "continuum", method: str = "auto", backend: str = "llvm", stiffening: bool = False
            ) -> bc.System:
    return bc.compile(four_bar(kind, stiffening), method=method, backend=backend)


def start(system: bc.System) -> bc.State:
    p, initial = case("f5_fourbar")["data"], case("f5_fourbar")["initial"]
    q = system.neutral()
    places = {"A.angle": p["theta0"], "B.angle": initial["coupler_angle"] - p["theta0"],
              "D.angle": initial["follower_angle"]}
    for name, value in places.items():
        q[system.coordinate_names.index(name)] = value
    u = np.zeros(system.nu)
    u[0] = p["omega0"]
    straight = {f"coupler.{name}": 0.0 for name in STRAIGHT}
    return system.assemble(q={"A": p["theta0"], **straight}, u={"A": p["omega0"], **straight}, guess=q)


@pytest.mark.parametrize(("kind", "beams"), [("lumped", "linear"), ("continuum", "linear"), ("continuum", "stiffened")])
def test_a_four_bar_with_a_flexible_coupler(kind: str, beams: str) -> None:
    data, system = case("f5_fourbar"), linkage(kind, stiffening=beams == "stiffened")
    wanted, times = data["ffr"][f"{kind}_{beams}_2modes"], np.array(data["t"])
    state, tau = start(system), {"A": data["data"]["torque"]}
    udot = system.forward_dynamics(state.q, state.u, tau)
    assert relative(udot[[0, *modes_of(system)]], wanted["qdd0"]) < 1e-12
    result = system.simulate(state, times[-1], tau=tau, stepper="dop853", rtol=1e-11, atol=1e-13, output=times)
    q = result.q.values
    assert np.abs(q[:, 0] - np.array(wanted["theta1"])).max() < 1e-10
    assert np.abs(q[:, modes_of(system)] - np.array(wanted["q"])).max() < 1e-10
    assert np.abs(system.loop_error(q)).max() < 1e-14


@pytest.mark.parametrize(("kind", "stiffening"), [*((kind, False) for kind in KINDS), ("consistent_nodal", True)])
def test_elimination_against_the_full_equations(kind: str, stiffening: bool) -> None:
    system = linkage(kind, stiffening=stiffening)
    oracle = linkage(kind, "dense", "numpy", stiffening=stiffening)
    state = start(system)
    rng = np.random.default_rng(3)
    for _ in range(3):
        bent = {f"coupler.{name}": x for name, x in zip(STRAIGHT, rng.normal(size=2) * 0.02, strict=True)}
        closed = system.assemble(q={"A": rng.uniform(0.8, 1.4), **bent}, guess=state.q)
        u = system.project(closed.q, rng.normal(size=system.nu) * 3.0).u
        tau = rng.normal(size=system.nu)
        found = system.forward_dynamics(closed.q, u, tau)
        assert relative(found, oracle.forward_dynamics(closed.q, u, tau)) < 1e-11
        # constraint forces do no work
        h = 1e-5
        rate = [float(system.energy(*_moved(system, closed.q, u, found, k * h))) for k in (-2, -1, 1, 2)]
        power = (8 * (rate[2] - rate[1]) - (rate[3] - rate[0])) / (12 * h)
        assert abs(power - tau @ u) < 1e-6 * (np.abs(tau * u).sum() + 1.0)


def _moved(system: bc.System, q: Any, u: Any, udot: Any, h: float) -> tuple[Any, Any]:
    return q + h * u + 0.5 * h * h * udot, u + h * udot


def portal(floating: bool = False) -> bc.Mechanism:
    """Two flexible legs that carry a plate: loops in space, a coupler between modes, a mode with a given motion. The
    second leg has a frame of its own, or one that floats and is held at its node."""
    leg = bc.BeamSection.round(0.01, E=2.1e11, rho=7850.0, thick=True)
    m = bc.Mechanism("portal", gravity=(1.0, -2.0, -9.81))
    m.add_body("a", bc.FlexibleBody.beam(0.8, leg, elements=4, modes={"y": 2, "z": 1, "t": 1},
                                         inertia="consistent_nodal"))
    m.add_body("b", bc.FlexibleBody.beam(0.8, leg, elements=4, modes={"y": 1, "z": 2}, stiffening=True,
                                         support="free" if floating else "clamped"))
    m.add_body("plate", bc.Inertia(2.0, (0.1, 0.05, 0), 0.01))
    m.add_joint("ja", bc.Universal("y", "z"), m.ground, "a")
    m.add_joint("jb", bc.Free() if floating else bc.Universal("y", "z"), m.ground, "b",
                parent_pose=bc.Pose((0, 0.5, 0)))
    m.add_joint("sa", bc.Spherical(), "a.tip", "plate")
    m.add_joint("sb", bc.Spherical(), "b.tip", "plate", child_pose=bc.Pose((0, 0.5, 0)))
    if floating:
        m.add_joint("foot", bc.Spherical(), m.ground, "b.base", parent_pose=bc.Pose((0, 0.5, 0)))
    m.add_coupler("twin", {"a.mode1": 1.0, "b.mode1": -2.0})
    m.prescribe("a", lambda t: 0.001 * bc.math.sin(20.0 * t), "mode2")
    return m


@pytest.mark.parametrize("floating", [False, True])
def test_multiplier_methods(floating: bool) -> None:
    """Unit loads of constraints at nodes and along modes: `recursive`, `operator` and `elimination` give what the full
    equations do."""
    m, rng = portal(floating), np.random.default_rng(1)
    oracle = bc.compile(m, method="dense", backend="numpy")
    _, u = oracle.random_state(rng)
    closed = oracle.assemble(guess=oracle.integrate(oracle.neutral(), 0.1 * u), t=0.1)
    state = oracle.project(closed.q, u, t=0.1)
    turned = oracle.assemble(q={"ja": (0.4, 0.3)}, t=0.1)
    assert np.abs(turned.q[modes_of(oracle)]).max() < 2e-3  # assembled by joints rather than by bending
    tau = rng.normal(size=oracle.nu)
    wanted = oracle.forward_dynamics(closed.q, state.u, tau, t=0.1)
    for method in ("recursive", "operator", "elimination"):
        found = bc.compile(m, method=method, backend="numpy").forward_dynamics(closed.q, state.u, tau, t=0.1)
        assert relative(found, wanted) < 1e-9, method


def ladder(n: int) -> bc.Mechanism:
    """Rungs that bend on legs that bend, each on the one before."""
    rod = bc.BeamSection.round(0.02, E=2.1e11, rho=7850.0)
    rung = bc.FlexibleBody.beam(1.0, rod, elements=4, modes={"y": 2}, support="pinned", stiffening=True)
    leg = bc.FlexibleBody.beam(0.5, rod, elements=3, modes={"y": 1})
    m, base = bc.Mechanism("ladder", gravity=(0, -9.81, 0)), "ground"
    for i in range(n):
        m.add_body(f"leg{i}", leg)
        m.add_body(f"rung{i}", rung)
        m.add_body(f"bar{i}", bc.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0)))
        m.add_joint(f"A{i}", bc.Revolute("z"), base, f"leg{i}")
        m.add_joint(f"B{i}", bc.Revolute("z"), base, f"bar{i}", parent_pose=bc.Pose((1.0, 0, 0)))
        m.add_joint(f"C{i}", bc.Revolute("z"), f"leg{i}.tip", f"rung{i}")
        m.add_joint(f"D{i}", bc.Revolute("z"), f"rung{i}.tip", f"bar{i}", child_pose=bc.Pose((0.5, 0, 0)))
        base = f"rung{i}"
    return m


def test_loops_over_groups_with_flexible_bodies() -> None:
    """Code for one kind of group, run over all of them, gives what the machine as a whole does; so do derivatives."""
    rng = np.random.default_rng(5)
    asked = ["A0", "C0", "rung0", "A1", "C1", "rung1"]  # B0 depends on A0 and C0 up to what bends
    plain, rolled = (bc.compile(ladder(2), independent=asked, **how) for how in ({"backend": "numpy"},
                                                                                {"schedule": "rolled"}))
    guess = plain.neutral()
    for name, angle in {"A0": 1.3, "B0": 1.3, "C0": -1.3, "A1": 1.0, "B1": 1.0, "C1": -1.0}.items():
        if f"{name}.angle" in plain.coordinate_names:
            guess[plain.coordinate_names.index(f"{name}.angle")] = angle
    q = plain.assemble(guess=guess).q
    u = plain.project(q, plain.random_state(rng)[1]).u
    tau, weights = rng.normal(size=(2, plain.nu))
    tau[plain.plans.tree.loop_speeds()] = 0.0  # along loop joints: parameters of the machine
    push = {"rung1.tip": rng.normal(size=6), "leg0": rng.normal(size=6)}
    assert relative(rolled.forward_dynamics(q, u, tau, wrenches=push),
                    plain.forward_dynamics(q, u, tau, wrenches=push)) < 1e-11
    assert relative(rolled.pose(q, "rung1.tip").position, plain.pose(q, "rung1.tip").position) < 1e-14
    found, wanted = (s.derivatives("forward_dynamics", q, u, tau, weights=weights) for s in (rolled, plain))
    for name in ("q", "u"):
        assert relative(found[name], wanted[name]) < 1e-10


def test_inverse_dynamics_and_reactions_of_a_loop() -> None:
    system = linkage()
    state = start(system)
    udot = system.forward_dynamics(state.q, state.u, {"A": 2.0})
    needed = system.inverse_dynamics(state.q, state.u, udot)
    assert abs(needed[0] - 2.0) < 1e-11 and np.abs(needed[1:]).max() < 1e-11
    # Newton's equation of the whole machine: forces of the ground's joints and weight make its momentum change
    reactions = system.reactions(state.q, state.u, {"A": 2.0})
    force = sum(system.pose(state.q, body).rotation @ reactions[joint][3:]
                for joint, body in (("A", "crank"), ("D", "follower")))
    h = 1e-5
    change = (system.momentum(*_moved(system, state.q, state.u, udot, h))
              - system.momentum(*_moved(system, state.q, state.u, udot, -h)))[3:] / (2 * h)
    weight = system.model.mass * np.array(case("f5_fourbar")["data"]["g"])
    assert np.abs(force + weight - change).max() < 1e-6 * np.abs(change).max()


def test_steppers_and_vibrations_of_a_loop() -> None:
    system = linkage()
    state, tau = start(system), {"A": 2.0}
    wanted = system.simulate(state, 0.03, tau=tau, stepper="dop853", rtol=1e-11, atol=1e-13).q.values[-1]
    for stepper, step, error in (("gauss", 1e-3, 1e-9), ("radau5", None, 1e-9)):
        found = system.simulate(state, 0.03, tau=tau, stepper=stepper, step=step).q.values[-1]
        assert np.abs(found - wanted).max() < error, stepper
    rest = bc.analyze.equilibrium(system, state)
    found = np.sort(np.abs(bc.analyze.modes(system, rest).eigenvalues.imag))
    assert len(found) == system.dof and abs(found[-1] / case("f5_fourbar")["modes"]["2"]["omega"][1] - 1.0) < 0.03


def test_a_floating_frame_held_at_both_ends() -> None:
    """A beam with free modes, whose frame floats, welded to the wall at its base and loaded at its tip: the loop of the
    weld is closed exactly, and with all free modes the static deflection is that of a cantilever."""
    rod = bc.BeamSection.round(0.01, E=2.1e11, rho=7850.0)
    m = bc.Mechanism("cantilever", gravity=(0, 0, 0))
    m.add_body("rod", bc.FlexibleBody.beam(1.0, rod, elements=6, modes={"y": 12}, support="free"))
    m.add_joint("float", bc.Planar(), m.ground, "rod")
    m.add_joint("wall", bc.Weld(), m.ground, "rod.base")
    m.add_wrench("load", "rod.tip", force=(0, -1.0, 0))
    system = bc.compile(m)
    assert system.model.tree.cut_names == ("wall",) and system.dof == 12
    rest = bc.analyze.equilibrium(system, system.assemble())
    sag = system.pose(rest.q, "rod.tip").position[1]
    assert abs(sag / (-1.0 / (3 * rod.EIz)) - 1.0) < 1e-4
    assert np.abs(system.loop_error(rest.q)).max() < 1e-13


def test_a_body_reached_by_two_nodes_is_refused() -> None:
    rod = bc.BeamSection.round(0.01, E=2.1e11, rho=7850.0)
    m = bc.Mechanism("bridge")
    m.add_body("rod", bc.FlexibleBody.beam(1.0, rod, elements=4, modes={"y": 2}, support="free"))
    m.add_joint("left", bc.Revolute("z"), m.ground, "rod.base")
    m.add_joint("right", bc.Revolute("z"), m.ground, "rod.tip")
    with pytest.raises(bc.ModelError, match="'rod' is reached by nodes from both sides of a loop"):
        bc.compile(m)
