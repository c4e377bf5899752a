"""Machines with bodies that deform: references, methods among each other, and everything that is asked of a system."""

from __future__ import annotations

import copy
import pickle
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.formulations.operator.flexible_operators import flexible_operators
from bellcrank.io.native.same import difference
from bellcrank.lowering.function import direct
from bellcrank.lowering.looped import LoopedDirect
from bellcrank.mechanism.flexible.beam_elements import BeamElements
from flexible_cases import beam, bracket, case

KINDS = ("lumped", "consistent_nodal", "continuum")
STEEL = bc.BeamSection.round(0.01, E=2.1e11, rho=7850.0)


def relative(found: Any, wanted: Any) -> float:
    wanted = np.asarray(wanted)
    return float(np.abs(np.asarray(found) - wanted).max() / np.abs(wanted).max())


def arm_mechanism(kind: str) -> bc.Mechanism:
    """f2: two links, each carried by a revolute joint, the second at the tip of the first."""
    data, modes = case("f2_arm")["data"], case("f2_arm")["modes"]
    m = bc.Mechanism("arm", gravity=data["g"])
    for link in ("link1", "link2"):
        m.add_body(link, beam(data[link], 4, modes=np.array(modes[link]), inertia=kind))
    m.add_joint("J1", bc.Revolute(data["axis1_in_ground"]), m.ground, "link1")
    m.add_joint("J2", bc.Revolute(data["axis2_in_tip_node_frame_of_link1"]), "link1.tip", "link2")
    return m


@cache
def arm(kind: str = "lumped", method: str = "auto", backend: str = "llvm") -> bc.System:
    return bc.compile(arm_mechanism(kind), method=method, backend=backend)


def forces(state: Any) -> Any:
    """The torques of an arm's state among all forces."""
    tau = np.zeros(10)
    tau[[0, 5]] = state["tau"]
    return tau


# -- references --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("method", "backend"), [("recursive", "llvm"), ("dense", "numpy"), ("operator", "numpy")])
@pytest.mark.parametrize("kind", KINDS)
def test_states_of_an_arm(kind: str, method: str, backend: str) -> None:
    system, found = arm(kind, method, backend), 0
    for state in case("f2_arm")["states"].values():
        wanted = state.get(kind)
        if wanted is None:
            continue
        found += 1
        q, u, tau = np.array(state["Q"]), np.array(state["Qd"]), forces(state)
        assert relative(system.mass_matrix(q), wanted["mass_matrix"]) < 1e-14
        udot = system.forward_dynamics(q, u, tau)
        assert relative(udot, wanted["qdd"]) < 5e-12
        assert np.abs(system.inverse_dynamics(q, u, udot) - tau).max() < 1e-10
        assert abs(float(system.kinetic_energy(q, u)) / wanted["T"] - 1.0) < 1e-14
        assert abs(float(system.energy(q, 0 * u)) / wanted["V"] - 1.0) < 1e-14
        assert np.abs(system.pose(q, "link2.tip").position - wanted["tip_position"]).max() < 1e-14
        reactions = system.reactions(q, u, tau)
        for joint, link in (("J1", "link1"), ("J2", "link2")):
            force = system.pose(q, link).rotation @ reactions[joint][3:]
            name = f"joint{link[-1]}_force_on_{link}_world"
            assert relative(force, wanted[name]) < 1e-11
    assert found


def test_free_motion_of_an_arm() -> None:
    data, state = case("f2_arm")["free_motion"]["lumped"], case("f2_arm")["states"]["s1_rest"]
    result = arm().simulate((np.array(state["Q"]), np.array(state["Qd"])), data["t"][-1], stepper="dop853", rtol=1e-11,
                            atol=1e-12, output=data["t"])
    assert np.abs(result.q.values - np.array(data["Q"])).max() < 1e-9
    assert np.abs(result.u.values - np.array(data["Qd"])).max() < 1e-6  # modes at 400 rad/s
    assert np.abs(result["energy"].values - data["energy"]).max() < 1e-9
    assert list(result.coordinate.values[:3]) == ["J1.angle", "link1.mode1", "link1.mode2"]
    assert list(result.coordinate_units.values[:2]) == ["rad", "1"]


# -- the arm of section 4 of Rodriguez, Jain and Kreutz ----------------------------------------------------------------
def planar_arm(kind: str) -> bc.Mechanism:
    """Two links of two elements, whose coordinates are displacements and rotations of the nodes in the plane."""
    p = case("flexible_arm")["data"]
    m, last = bc.Mechanism("planar arm", gravity=(0, -p["g"], 0)), "ground"
    shapes = np.eye(18)[:, [6, 7, 11, 12, 13, 17]]
    for i in range(2):
        section = bc.BeamSection(p["EA"][i], p["EI"][i], p["EI"][i], 1.0, p["rhoA"][i], 1e-3)
        m.add_body(f"link{i}", bc.FlexibleBody.beam(p["L"][i], section, elements=2, modes=shapes, inertia=kind))
        m.add_joint(f"hinge{i}", bc.Revolute("z"), last, f"link{i}")
        last = f"link{i}.tip"
    return m


@pytest.mark.parametrize("method", ["recursive", "operator"])
@pytest.mark.parametrize(("kind", "masses", "equations"), [
    ("lumped", "lumped", "lagrange"), ("lumped", "lumped", "kane_nodal"),
    ("consistent_nodal", "consistent", "lagrange"), ("continuum", "consistent", "kane_nodal")])
def test_the_papers_arm(kind: str, masses: str, equations: str, method: str) -> None:
    data, system = case("flexible_arm"), bc.compile(planar_arm(kind), method=method, backend="numpy")
    state = data["states"]["undeformed_rigid_motion"]
    q, u, wanted = np.array(state["q"]), np.array(state["v"]), state[masses]
    assert relative(system.mass_matrix(q), wanted["mass_matrix"]) < 1e-14
    assert relative(system.forward_dynamics(q, u, data["tau"]), wanted[f"qdd_{equations}"]) < 1e-11
    assert abs(float(system.kinetic_energy(q, u)) / wanted["T"] - 1.0) < 1e-14


def test_the_papers_operators() -> None:
    """M^f as (4.3) factors it, deformed, is the mass matrix; B C = E_phi, and phi as the lemma has it."""
    data = case("flexible_arm")
    system = bc.compile(planar_arm("consistent_nodal"), method="operator", backend="numpy")
    q = np.array(data["states"]["deformed"]["q"])
    p = data["data"]
    masses = {}
    for i in range(2):
        section = bc.BeamSection(p["EA"][i], p["EI"][i], p["EI"][i], 1.0, p["rhoA"][i], 1e-3)
        masses[f"link{i}"] = BeamElements(p["L"][i], 2, lambda part, s=section: s).mass()  # type: ignore[misc]
    machine = direct(system.model.tree, ("q",), lambda name, i: float(q[i]) if name == "q" else 0.0, False)
    assert isinstance(machine, LoopedDirect)
    found = flexible_operators(machine, masses)
    assert relative(found.mass(), system.mass_matrix(q)) < 1e-13
    assert np.abs(found.C @ found.B - found.shift).max() < 1e-15
    bcphi = found.shift @ found.phi
    assert np.abs(bcphi - (found.phi - np.eye(12))).max() < 1e-14


@cache
def moving_base() -> bc.System:
    """f1: a cantilever whose base follows a given motion in space."""
    data = case("f1_cantilever")
    m = bc.Mechanism("cantilever", gravity=data["data"]["g"])
    m.add_body("beam", beam(data["data"], 4, modes=np.array(data["modes"]["basis_6n_by_3"]), inertia="lumped"))
    m.add_joint("base", bc.Free(), m.ground, "beam")

    def law(t: Any) -> list[Any]:
        half = 0.75 * (t - bc.math.sin(2 * np.pi * t) / (2 * np.pi))
        s = bc.math.sin(half) / 3.0
        return [bc.math.cos(half), s, 2.0 * s, 2.0 * s, 0.1 * bc.math.sin(3.0 * t), 0.0 * t, 0.05 * t * t]

    m.prescribe("base", law)
    return bc.compile(m)


def test_history_of_a_cantilever_on_a_moving_base() -> None:
    data = case("f1_cantilever")["history_sample"]
    system = moving_base()
    result = system.simulate(system.assemble(), data["t"][-1], stepper="dop853", rtol=1e-11, atol=1e-13,
                             output=data["t"])
    q, u = result.q.values, result.u.values
    assert np.abs(q[:, -3:] - np.array(data["lumped_modal"]["q"])).max() < 1e-10
    assert np.abs(u[:, -3:] - np.array(data["lumped_modal"]["qd"])).max() < 1e-8
    wanted = np.array(data["lumped_modal"]["reaction"])
    found = system.reactions(q, u, t=np.array(data["t"]))["base"]
    assert np.abs(found[:, [3, 4, 5, 0, 1, 2]] - wanted).max() < 1e-7 * np.abs(wanted).max()


@cache
def floating(kind: str = "lumped") -> bc.System:
    """f6: a free beam, without gravity."""
    data = case("f6_freefree")
    m = bc.Mechanism("floating beam", gravity=(0, 0, 0))
    m.add_body("beam", beam(data["data"], 8, modes=np.array(data["motion"]["modes"]), inertia=kind))
    m.add_joint("free", bc.Free(), m.ground, "beam")
    return bc.compile(m)


def test_a_free_beam_hit_by_an_impulse() -> None:
    data = case("f6_freefree")["motion"]
    wanted, system = data["lumped"], floating()
    q = system.neutral()
    turn = np.array(data["R0"])
    w = 0.5 * np.sqrt(1.0 + np.trace(turn))
    q[0] = w
    q[1:4] = [(turn[(i + 2) % 3, (i + 1) % 3] - turn[(i + 1) % 3, (i + 2) % 3]) / (4 * w) for i in range(3)]
    q[4:7] = data["r0"]
    push = np.array(data["impulse_world"])
    u = np.linalg.solve(system.mass_matrix(q), system.jacobian(q, "beam.tip")[3:].T @ push)
    order = [3, 4, 5, 0, 1, 2, *range(6, 14)]
    assert relative(u[order], wanted["nu_after_impulse"]) < 1e-12
    momentum = system.momentum(q, u)
    assert relative(momentum, [*wanted["H_origin"], *wanted["P"]]) < 1e-13
    result = system.simulate((q, u), wanted["t"][-1], stepper="dop853", rtol=1e-11, atol=1e-13, output=wanted["t"])
    assert np.abs(result.q.values[:, 4:7] - np.array(wanted["r"])).max() < 1e-9
    assert np.abs(result.q.values[:, 7:] - np.array(wanted["q"])).max() < 1e-9
    later = system.momentum(result.q.values, result.u.values)
    assert np.abs(later - momentum).max() < 1e-10 * np.abs(momentum).max()
    assert np.abs(system.energy(result.q.values, result.u.values) / wanted["energy"] - 1.0).max() < 1e-10


def test_a_free_bracket_that_tumbles() -> None:
    """f7: a solid body with its lowest free modes, turning at 437 rad/s."""
    data = case("f7_solid")["motion"]
    nodes, mass, stiffness = bracket()
    body = bc.FlexibleBody.from_matrices(mass, stiffness, nodes, {}, modes=8, reduction="free")
    shapes = body.modes[:, :3].reshape(-1, 8)
    signs = np.array([np.sign(shapes[entry, j] * value) for j, (entry, value) in enumerate(data["signs"])])
    m = bc.Mechanism("bracket", gravity=(0, 0, 0))
    m.add_body("bracket", body)
    m.add_joint("free", bc.Free(), m.ground, "bracket")
    system = bc.compile(m)
    q, u = system.neutral(), np.array([*data["omega0"], *data["v0"], *np.zeros(8)])
    assert relative(system.forward_dynamics(q, u)[6:] * signs, data["qdd0"]) < 1e-6
    times = np.array(data["t"])
    result = system.simulate((q, u), times[-1], stepper="dop853", rtol=1e-10, atol=1e-14, output=times)
    assert relative(result.q.values[:, 7:] * signs, data["q"]) < 1e-5
    turn = system.pose(result.q.values, "bracket").rotation
    assert np.abs(turn - np.array(data["R"]).reshape(-1, 3, 3)).max() < 1e-8


def spinning(stiffening: bool) -> bc.System:
    """f4: a beam whose root is spun up within 15 s."""
    data = case("f4_spinup")
    p = data["data"]
    m = bc.Mechanism("spin-up", gravity=(0, 0, 0))
    m.add_body("beam", beam(p, 10, modes=np.array(data["modes"]["2b1a"]["basis"]), stiffening=stiffening))
    m.add_joint("hub", bc.Revolute("z"), m.ground, "beam")
    fast, end = p["Omega"], p["Ts"]

    def angle(t: Any) -> Any:
        s = bc.math.minimum(t, end)
        wave = (end / (2 * np.pi))**2 * (bc.math.cos(2 * np.pi * s / end) - 1.0)
        return fast / end * (0.5 * s * s + wave) + fast * (t - s)

    m.prescribe("hub", angle)
    return bc.compile(m)


@pytest.mark.parametrize("beams", ["stiffened", "linear"])
def test_a_beam_is_spun_up(beams: str) -> None:
    """With stiffening it stands up again; without, it diverges faster than its first frequency."""
    system, wanted = spinning(beams == "stiffened"), case("f4_spinup")["ffr"][f"{beams}_2b1a"]
    times = np.array(wanted["t"])
    result = system.simulate(system.assemble(), times[-1], stepper="dop853", rtol=1e-10, atol=1e-12, output=times)
    q = result.q.values
    size = max(1.0, float(np.abs(wanted["q"]).max()))
    assert np.abs(q[:, 1:] - np.array(wanted["q"])).max() < 1e-9 * size
    hub, tip = (system.pose(q, body, t=times) for body in ("beam", "beam.tip"))
    local = ((tip.position - hub.position)[:, None, :] @ hub.rotation)[:, 0]
    assert np.abs(local[:, 0] - 10.0 - np.array(wanted["tip_ux"])).max() < 1e-9 * size
    assert np.abs(local[:, 1] - np.array(wanted["tip_uy"])).max() < 1e-9 * size


def test_the_lag_and_the_steady_extension_of_a_spun_beam() -> None:
    """Published: a lag of about 0.57 m; one mode of stretch has 98.6 % of rho A W^2 L^3/(3 EA)."""
    system = spinning(True)
    times = np.array([0.0, 6.75, *np.arange(16.0, 18.0, 0.25)])
    result = system.simulate(system.assemble(), times[-1], stepper="dop853", rtol=1e-8, atol=1e-11, output=times)
    data, q = case("f4_spinup"), result.q.values
    tip = np.array(data["modes"]["2b1a"]["basis"])[-6:]
    assert abs(q[1, 1:] @ tip[1] + 0.575) < 2e-3
    assert np.abs(q[2:, 1:] @ tip[1]).max() < 0.02
    assert abs((q[2:, 3] * tip[0, 2]).mean() / data["steady_extension_closed_form"] - 0.986) < 2e-3


def test_frequencies_of_a_rotating_beam() -> None:
    """Out of the plane of rotation w^2 = w0^2 + 1.193 W^2 (Southwell), in it W^2 less; without stiffening they fall."""
    rod = bc.BeamSection.round(0.02, E=2.1e11, rho=7850.0)
    fast = 100.0
    found = {}
    for stiffening in (True, False):
        m = bc.Mechanism("rotor", gravity=(0, 0, 0))
        m.add_body("blade", bc.FlexibleBody.beam(1.0, rod, elements=8, modes={"y": 2, "z": 2},
                                                 stiffening=stiffening))
        m.add_joint("hub", bc.Revolute("z"), m.ground, "blade")
        m.prescribe("hub", lambda t: fast * t)
        system = bc.compile(m)
        q, u = np.zeros(5), np.array([fast, 0, 0, 0, 0])
        mass = system.mass_matrix(q)[1:, 1:]
        h = 1e-5
        stiff = np.empty((4, 4))
        for j in range(4):
            step = np.zeros(5)
            step[1 + j] = h
            both = [system.forward_dynamics(q + k * step, u) for k in (1, -1)]
            stiff[:, j] = -mass @ (both[0] - both[1])[1:] / (2 * h)
        found[stiffening] = [float(stiff[i, i] / mass[i, i]) for i in (0, 2)]
    still = float(bc.FlexibleBody.beam(1.0, rod, elements=8, modes={"y": 1}).frequencies()[0])**2
    assert abs((found[True][1] - still) / fast**2 - 1.193) < 0.01
    assert abs((found[True][0] - still) / fast**2 - 0.193) < 0.01
    assert abs((found[False][0] - still) / fast**2 + 1.0) < 1e-6


# -- everything else against what it must be equal to ------------------------------------------------------------------
@cache
def loaded(kind: str = "consistent_nodal") -> bc.System:
    """The arm with a body welded near its tip, a spring from there to the ground and a damped first mode."""
    m = arm_mechanism(kind)
    bob = m.add_body("bob", bc.Inertia(0.3, inertia=1e-3))
    m.add_joint("glue", bc.Weld(), "link2.tip", bob, parent_pose=bc.Pose((0.02, 0.01, 0.0)))
    m.add_spring("rope", m.ground, "link1.tip", (0, 0, 2.0), (0, 0, 0), stiffness=30.0, length=0.5)
    return bc.compile(m)


def random_states(system: bc.System, n: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(4)
    q, u = system.random_state(rng, n)
    return q, u, rng.normal(size=(n, system.nu))


@pytest.mark.parametrize("kind", KINDS)
def test_energy_changes_by_the_power_of_the_forces(kind: str) -> None:
    """dE/dt = tau . u in every state: velocity terms, gravity and elasticity are those of the energies."""
    system = loaded(kind)
    q, u, tau = random_states(system, 4)
    udot = system.forward_dynamics(q, u, tau)
    h = 1e-5

    def energy(k: float) -> Any:
        return system.energy(q + k * h * u + 0.5 * (k * h)**2 * udot, u + k * h * udot)

    rate = (8 * (energy(1) - energy(-1)) - (energy(2) - energy(-2))) / (12 * h)
    size = np.abs(system.mass_matrix(q) @ udot[..., None])[..., 0] * np.abs(u)
    assert np.abs(rate - (tau * u).sum(-1)).max() < 1e-7 * size.sum(-1).max()


@pytest.mark.parametrize("kind", KINDS)
def test_methods_agree(kind: str) -> None:
    system = loaded(kind)
    q, u, tau = random_states(system, 3)
    found = system.forward_dynamics(q, u, tau)
    for method in ("dense", "operator"):
        other = bc.compile(system.model.mechanism, method=method, backend="numpy")
        assert relative(found, other.forward_dynamics(q, u, tau)) < 1e-11
    mass = system.mass_matrix(q)
    needed = system.inverse_dynamics(q, u, found)
    assert np.abs(needed - tau).max() < 1e-10 * np.abs(mass @ found[..., None]).max()
    assert np.abs((mass @ found[..., None])[..., 0] + system.bias(q, u) - needed).max() < 1e-9
    assert relative(system.kinetic_energy(q, u), 0.5 * np.einsum("ni,nij,nj->n", u, mass, u)) < 1e-13
    assert relative(system.momenta(q, u), np.einsum("nij,nj->ni", mass, u)) < 1e-13


@pytest.mark.parametrize(("kind", "stiffening"), [*((kind, False) for kind in KINDS), ("consistent_nodal", True),
                                                  ("continuum", True)])
def test_bias_is_that_of_lagrange(kind: str, stiffening: bool) -> None:
    """dM/dt u - d(u M u)/dq / 2 + dV/dq, by differences, in deformed states: velocity terms that do no work, too."""
    data = case("f2_arm")["data"]
    m = bc.Mechanism("arm", gravity=data["g"])
    for link in ("link1", "link2"):
        m.add_body(link, beam(data[link], 2, modes={"y": 1, "z": 1, "t": 1}, inertia=kind, stiffening=stiffening))
    m.add_joint("J1", bc.Revolute(data["axis1_in_ground"]), m.ground, "link1")
    m.add_joint("J2", bc.Universal("y", "z"), "link1.tip", "link2")
    system = bc.compile(m, backend="numpy")
    q, u, _ = random_states(system, 2)
    h = 1e-4

    def at(step: Any) -> tuple[Any, Any]:
        moved = q + step
        return system.mass_matrix(moved), system.energy(moved, 0 * u)

    def slope(step: Any) -> list[Any]:
        one, two = (([a - b for a, b in zip(at(k * step), at(-k * step), strict=True)]) for k in (1, 2))
        return [(8 * a - b) / (12 * h) for a, b in zip(one, two, strict=True)]

    change, _ = slope(h * u)
    wanted = np.einsum("nij,nj->ni", change, u)
    for i in range(system.nu):
        by, potential = slope(h * np.eye(system.nu)[i])
        wanted[:, i] += potential - 0.5 * np.einsum("ni,nij,nj->n", u, by, u)
    assert relative(system.bias(q, u), wanted) < 1e-8
    assert np.abs(system.bias(q, u) - system.bias(q, 0 * u)).max() > 1e-3  # there are velocity terms


def test_kinematics_of_nodes_and_of_what_they_carry() -> None:
    system = loaded()
    q, u, udot = random_states(system, 3)
    h = 1e-5
    for body in ("link1.tip", "link2.tip", "bob"):
        jacobian, rate = system.jacobian(q, body), system.jacobian_rate(q, u, body)
        velocity = system.velocity(q, u, body)
        assert np.abs((jacobian @ u[..., None])[..., 0] - velocity).max() < 1e-13
        acceleration = ((jacobian @ udot[..., None]) + (rate @ u[..., None]))[..., 0]
        assert np.abs(system.acceleration(q, u, udot, body) - acceleration).max() < 1e-12
        change = (system.jacobian(q + h * u, body) - system.jacobian(q - h * u, body)) / (2 * h)
        assert np.abs(change - rate).max() < 1e-7
        here, there = (system.pose(q + k * h * u, body) for k in (1, -1))
        assert np.abs((here.position - there.position) / (2 * h) - velocity[:, 3:]).max() < 1e-8
        spin = (here.rotation - there.rotation) / (2 * h) @ np.swapaxes(system.pose(q, body).rotation, -1, -2)
        assert np.abs(np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], -1) - velocity[:, :3]).max() < 1e-8


def test_a_wrench_at_a_node() -> None:
    system = loaded()
    q, u, tau = (x[0] for x in random_states(system, 1))
    wrench = np.array([0.1, -0.2, 0.3, 1.0, 2.0, -3.0])
    change = system.forward_dynamics(q, u, tau, wrenches={"link1.tip": wrench}) - system.forward_dynamics(q, u, tau)
    wanted = np.linalg.solve(system.mass_matrix(q), system.jacobian(q, "link1.tip").T @ wrench)
    assert relative(change, wanted) < 1e-10


def test_locked_and_prescribed_modes() -> None:
    """Held modes leave the others as the full equations say, with their own accelerations given."""
    system = arm()
    q, u, tau = (x[0] for x in random_states(system, 1))
    mass = system.mass_matrix(q)

    def expected(udot: dict[int, float], speeds: Any) -> Any:
        free = [i for i in range(10) if i not in udot]
        out = np.array([udot.get(i, 0.0) for i in range(10)])
        left = tau - system.bias(q, speeds) - mass @ out
        out[free] = np.linalg.solve(mass[np.ix_(free, free)], left[free])
        return out

    still = u.copy()
    still[2] = 0.0
    locked = system.lock("link1.mode2").forward_dynamics(q, still, tau)
    assert relative(locked, expected({2: 0.0}, still)) < 1e-11
    m = arm_mechanism("lumped")
    m.prescribe("link1", lambda t: 1e-3 * bc.math.sin(50.0 * t), "mode1")
    driven = bc.compile(m)
    t = 0.01
    q = q.copy()
    q[1] = 1e-3 * np.sin(50.0 * t)
    speeds = u.copy()
    speeds[1] = 0.05 * np.cos(50.0 * t)
    mass = system.mass_matrix(q)
    wanted = expected({1: -2.5 * np.sin(50.0 * t)}, speeds)
    assert relative(driven.forward_dynamics(q, speeds, tau, t=t), wanted) < 1e-11
    operator = bc.compile(m, method="operator", backend="numpy")
    assert relative(operator.forward_dynamics(q, speeds, tau, t=t), wanted) < 1e-11


def test_static_deflection_and_frequencies_of_a_cantilever() -> None:
    """Under its own weight a beam sags by m g L^4/(8 EI); in its equilibrium it vibrates as linear theory says."""
    m = bc.Mechanism("shelf", gravity=(0, -9.81, 0))
    rod = m.add_body("rod", bc.FlexibleBody.beam(1.0, STEEL, elements=6, modes={"y": 4}))
    m.add_joint("wall", bc.Weld(), m.ground, rod)
    system = bc.compile(m)
    assert system.coordinate_names == tuple(f"rod.mode{i}" for i in range(1, 5))
    rest = bc.analyze.equilibrium(system, system.neutral())
    sag = system.pose(rest.q, "rod.tip").position[1]
    assert abs(sag / (-9.81 * STEEL.mass / (8 * STEEL.EIy)) - 1.0) < 1e-3
    found = np.sort(np.abs(bc.analyze.modes(system, rest).eigenvalues.imag))
    body = bc.FlexibleBody.beam(1.0, STEEL, elements=6, modes={"y": 4})
    assert relative(found[-1:], body.frequencies()[-1:]) < 1e-6
    assert abs(float(bc.analyze.stored_energy(system, rest.q)) - 0.5 * rest.q @ body.stiffness @ rest.q) < 1e-15


def test_damping_takes_energy() -> None:
    section = bc.BeamSection.round(0.01, E=2.1e11, rho=7850.0)
    m = bc.Mechanism("rod", gravity=(0, 0, 0))
    full = np.array([[3.0, 0.5], [0.5, 2.0]])
    m.add_body("rod", bc.FlexibleBody.beam(1.0, section, elements=4, modes={"y": 2}, damping=full))
    m.add_joint("wall", bc.Weld(), m.ground, "rod")
    system = bc.compile(m)
    u = np.array([0.3, -0.7])
    assert abs(float(bc.analyze.dissipated_power(system, [0.0, 0.0], u)) - u @ full @ u) < 1e-14
    assert np.abs(system.forward_dynamics([0.0, 0.0], u) + np.linalg.solve(system.mass_matrix([0.0, 0.0]), full @ u)
                  ).max() < 1e-10


def test_nodal_coordinates() -> None:
    """With every degree of freedom of the nodes as a coordinate, stiffness is no longer diagonal."""
    data = case("f1_cantilever")
    m = bc.Mechanism("cantilever", gravity=data["data"]["g"])
    m.add_body("beam", beam(data["data"], 4, modes="all", inertia="lumped"))
    m.add_joint("wall", bc.Weld(), m.ground, "beam")
    system = bc.compile(m)
    state = data["states"]["base_at_rest"]
    body = beam(data["data"], 4, modes="all", inertia="lumped")
    q = np.array(state["u"])
    weight = body.integrals.linear.T @ np.array(data["data"]["g"])
    wanted = np.linalg.solve(body.integrals.modal, weight - body.stiffness @ q)
    assert relative(system.forward_dynamics(q, 0 * q), wanted) < 1e-12
    assert abs(float(bc.analyze.stored_energy(system, q)) / (0.5 * q @ body.stiffness @ q) - 1.0) < 1e-12


def test_copies_are_equal() -> None:
    system = arm()
    q, u, tau = random_states(system, 2)
    again = pickle.loads(pickle.dumps(system))
    assert again.model == system.model
    assert np.array_equal(again.forward_dynamics(q, u, tau), system.forward_dynamics(q, u, tau))
    assert bc.compile(copy.deepcopy(arm_mechanism("lumped"))).model == system.model
    assert arm("continuum").model != system.model


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_model_files(form: str, tmp_path: Path) -> None:
    m = arm_mechanism("lumped")
    m.prescribe("link1", lambda t: 0.01 * bc.math.sin(t), "mode2")
    m.add_body("blade", bc.FlexibleBody.beam(1.0, STEEL, elements=3, modes={"y": 2}, damping=0.01, stiffening=True))
    m.add_joint("J3", bc.Revolute("y"), "link2.tip", "blade")
    file = tmp_path / f"arm.{form}"
    bc.save(m, file)
    read = bc.load(file)
    assert difference(m, read) is None
    one, other = (bc.compile(x, backend="numpy") for x in (m, read))
    q, u = one.random_state(np.random.default_rng(0))
    assert one.coordinate_names == other.coordinate_names
    assert np.array_equal(one.forward_dynamics(q, u, t=0.3), other.forward_dynamics(q, u, t=0.3))
    text = file.read_text()
    wrong = text.replace('"clamped": "base"', '"clamped": "bass"').replace("clamped: base", "clamped: bass")
    file.write_text(wrong)
    with pytest.raises(bc.FileError, match="body 'link1': .*no node called 'bass'"):
        bc.load(file)
    assert wrong != text


def test_joints_at_nodes_are_in_files(tmp_path: Path) -> None:
    """Also those in which a node is the child, as in joints that close loops."""
    m = arm_mechanism("lumped")
    m.add_joint("stay", bc.Planar("z"), m.ground, "link2.tip")
    m.add_body("blade", bc.FlexibleBody.beam(1.0, STEEL, elements=3, modes={"y": 2}, support="free"))
    m.add_joint("hung", bc.Revolute("y"), m.ground, "blade.tip")
    m.add_body("end", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("last", bc.Revolute("y"), "end", "blade.base")
    m.add_joint("float", bc.Free(), m.ground, "blade")
    bc.save(m, tmp_path / "arm.yaml")
    assert difference(m, bc.load(tmp_path / "arm.yaml")) is None


def test_other_files_cannot_hold_deformation(tmp_path: Path) -> None:
    for name in ("arm.urdf", "arm.sdf", "arm.xml"):
        with pytest.raises(bc.ModelError, match="'link1'"):
            bc.save(arm_mechanism("lumped"), tmp_path / name)


def test_derivatives() -> None:
    system = arm()
    q, u, tau = (x[0] for x in random_states(system, 1))
    found = system.derivatives("forward_dynamics", q, u, tau)
    for name, at, h in (("q", q, 1e-7), ("u", u, 1e-4)):
        for i in (0, 1, 5, 8):
            step = np.zeros(10)
            step[i] = h
            both = [system.forward_dynamics(*((x + k * step) if x is at else x for x in (q, u)), tau) for k in (1, -1)]
            difference = (both[0] - both[1]) / (2 * h)
            assert np.abs(found[name][:, i] - difference).max() < 1e-5 * np.abs(found[name]).max()


# -- large machines ----------------------------------------------------------------------------------------------------
def long_chain(n: int, mixed: bool) -> bc.Mechanism:
    """Flexible links one after the other; mixed: with different numbers of modes, a rigid body each, and tip masses."""
    bodies = [bc.FlexibleBody.beam(0.5, STEEL, elements=3, modes={"y": 1, "z": k}, stiffening=mixed) for k in (1, 2)]
    m, last = bc.Mechanism("chain"), "ground"
    for i in range(n):
        m.add_body(f"b{i}", bodies[i % 2 if mixed else 0])
        m.add_joint(f"j{i}", bc.Revolute("xyz"[i % 3]), last, f"b{i}")
        last = f"b{i}.tip"
        if mixed:
            m.add_body(f"c{i}", bc.Inertia(0.2, (0.1, 0, 0), 1e-3))
            m.add_joint(f"k{i}", bc.Universal("y", "z"), last, f"c{i}")
            last = f"c{i}"
    return m


@pytest.mark.parametrize("mixed", [False, True])
def test_loops_over_links(mixed: bool) -> None:
    """The rolled schedule gives what the unrolled one does."""
    m = long_chain(3, mixed)
    m.prescribe("b1", lambda t: 0.01 * bc.math.cos(3.0 * t), "mode1")
    rolled, plain = bc.compile(m, schedule="rolled"), bc.compile(m, backend="numpy")
    rng = np.random.default_rng(8)
    q, u = plain.random_state(rng, 3)
    tau, udot = rng.normal(size=(2, 3, plain.nu))
    for name, arguments in (("forward_dynamics", (q, u, tau)), ("inverse_dynamics", (q, u, udot)), ("bias", (q, u)),
                            ("kinetic_energy", (q, u)), ("potential_energy", (q,)), ("momentum", (q, u)),
                            ("energy", (q, u))):
        found, wanted = (np.asarray(getattr(s, name)(*arguments, t=0.3)) for s in (rolled, plain))
        assert relative(found, wanted) < 1e-10, name
    assert np.abs(rolled.pose(q, "b2.tip", t=0.3).position - plain.pose(q, "b2.tip", t=0.3).position).max() < 1e-13


def test_a_long_chain_has_few_kinds_of_links() -> None:
    """Code does not grow with the chain; what is computed keeps the equations."""
    system = bc.compile(long_chain(60, False))
    q, u = system.random_state(np.random.default_rng(1))
    tau = np.linspace(-1.0, 1.0, system.nu)
    udot = system.forward_dynamics(q, u, tau)
    assert np.abs(system.inverse_dynamics(q, u, udot) - tau).max() < 1e-7
    per_link = [bc.compile(long_chain(n, False), schedule="rolled").operation_count().total / n for n in (30, 60)]
    assert abs(per_link[1] / per_link[0] - 1.0) < 0.02


def test_derivatives_of_a_long_chain() -> None:
    """Forward and reverse products of rolled kernels: several nodes move by the same coordinates."""
    system = bc.compile(long_chain(17, False))
    assert system.model.tree.n > 48
    rng = np.random.default_rng(2)
    q, u = system.random_state(rng)
    tau, weights = rng.normal(size=(2, system.nu))
    found = system.derivatives("forward_dynamics", q, u, tau)
    for name, at, h in (("q", q, 1e-7), ("u", u, 1e-4)):
        for i in (1, 5):
            step = np.zeros(system.nu)
            step[i] = h
            both = [system.forward_dynamics(*((x + k * step) if x is at else x for x in (q, u)), tau) for k in (1, -1)]
            assert relative(found[name][:, i], (both[0] - both[1]) / (2 * h)) < 1e-5
    products = system.derivatives("forward_dynamics", q, u, tau, weights=weights)
    for name in ("q", "u"):
        assert relative(products[name], weights @ found[name]) < 1e-11


def test_large_deflections_are_told() -> None:
    """A soft rod that falls onto its wall bends beyond what linear elasticity is for."""
    soft = bc.BeamSection.round(0.004, E=2e9, rho=1200.0)
    m = bc.Mechanism("soft", gravity=(0, -9.81, 0))
    m.add_body("rod", bc.FlexibleBody.beam(1.0, soft, elements=4, modes={"y": 2}, damping=0.05))
    m.add_joint("wall", bc.Weld(), m.ground, "rod")
    system = bc.compile(m)
    with pytest.warns(bc.SimulationWarning, match="body 'rod' deforms more than linear.*node 'tip' moves by"):
        result = system.simulate(system.assemble(), 1.0, stepper="dop853")
    assert "rod" in result.attrs["warnings"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        system.simulate(system.assemble(), 0.02, stepper="dop853")


# -- refusals ----------------------------------------------------------------------------------------------------------
def test_refusals() -> None:
    m = arm_mechanism("lumped")
    with pytest.raises(bc.ModelError, match="method 'kane' does not cover bodies that deform, such as 'link1'"):
        bc.compile(m, method="kane")
    with pytest.raises(bc.NotYetError, match="hamilton does not cover bodies that deform, such as 'link1'"):
        arm().hamilton(np.zeros(10), np.zeros(10))
    with pytest.raises(bc.NotYetError, match="regressor does not cover bodies that deform, such as 'link1'"):
        arm().regressor(np.zeros(10), np.zeros(10), np.zeros(10))
    with pytest.raises(bc.ModelError, match="'link2.tpi'.*did you mean 'link2.tip'"):
        m.add_joint("J3", bc.Revolute("z"), "link2.tpi", m.add_body("hand", bc.Inertia(1.0)))
    with pytest.raises(bc.ModelError, match="'link2.frame' is part of the flexible body 'link2'"):
        m.add_joint("J3", bc.Revolute("z"), "link2.frame", "hand")
    upside = bc.Mechanism("upside down")
    upside.add_body("rod", bc.FlexibleBody.beam(1.0, STEEL, modes=2))
    upside.add_joint("wall", bc.Weld(), upside.ground, "rod.tip")
    with pytest.raises(bc.ModelError, match="flexible body 'rod' is carried by its node"):
        bc.compile(upside)
    with pytest.raises(bc.ModelError, match="a node cannot be called 'frame'"):
        upside.add_body("bar", bc.FlexibleBody.beam(1.0, STEEL, modes=2, names={"frame": 3}))
    with pytest.raises(bc.NotYetError, match="deforms and cannot enter a run later"):
        upside.add_body("bar2", bc.FlexibleBody.beam(1.0, STEEL, modes=2), present=False)
