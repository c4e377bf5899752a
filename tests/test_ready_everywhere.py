"""Ready-made elements in loops and on joints that were cut, in batches, with derivatives; tyres as published."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.math import sin
from bellcrank.mechanism.forces.tyre import COEFFICIENTS, MagicSet, trail

T = 0.3
SET = {"FNOMIN": 4000.0, "PCX1": 1.6, "PDX1": 1.2, "PDX2": -0.1, "PKX1": 22.0, "PKX2": 0.5, "PKX3": 0.2, "PEX1": 0.3,
       "PCY1": 1.3, "PDY1": -1.0, "PDY2": 0.2, "PKY1": -15.0, "PKY2": 2.0, "PEY1": -1.0, "PHY3": 0.08, "PVY3": -0.5,
       "RBX1": 12.0, "RBX2": -10.0, "RBY1": 7.0, "RBY2": 4.0, "RVY1": 0.05, "RVY4": 30.0, "RVY5": 1.9, "RVY6": -10.0,
       "QBZ1": 9.0, "QCZ1": 1.2, "QDZ1": 0.1, "QEZ1": -1.5, "QBZ9": 18.0, "QSX1": 0.01, "QSX2": 0.5, "QSX3": 0.02,
       "QSY1": 0.01, "SSZ1": 0.03}


def linkage(**settings: object) -> bc.System:
    """A four-bar with one of everything, most of it on the joint that the library cuts."""
    m = bc.load("four_bar")
    m.add_dc_motor("motor", "D", voltage=lambda at: 6.0 * sin(at.t), resistance=0.5, inductance=0.05, constant=0.3)
    m.add_brake("brake", "D", capacity=lambda at: 2.0 + at.q("A") ** 2, reach=0.05)
    m.add_torsion_bar("bar", "D", length=1.0, diameter=0.005, damping=0.1)
    m.add_rolling_resistance("rolling", "D", coefficient=0.1, radius=0.3, load=20.0, speed=0.5)
    m.add_belt("belt", {"B": 0.3, "C": 0.2}, stiffness=300.0, pretension=20.0, damping=0.5)
    line = (m.ground, "rocker", (0.3, 0.9, 0), (0.2, 0, 0))
    m.add_gas_spring("gas", *line, force=20.0, length=2.0, reach=3.0, exponent=1.3, damping=0.2)
    m.add_bump_stop("stop", *line, lower=1.5, stiffness=10.0, progression=20.0, damping=0.3)
    m.add_hydraulic_cylinder("push", *line, head_area=2e-5, rod_area=1e-5, closed=0.1, stroke=3.0, gain=1e-9,
                             dead_volume=1e-2, opening=lambda at: 0.3 * at.u("A"))
    m.add_tyre("tyre", "coupler", radius=0.3, stiffness=1e3, damping=2.0, model="set", coefficients=SET,
               relaxation=(0.2, 0.4), height=lambda x, y: 0.02 * sin(x) - 0.25)
    return bc.compile(m, **settings)


@cache
def wanted() -> tuple[bc.System, bc.State]:
    system = linkage()
    states = {"motor current": 2.0, "brake bend": 0.3, "push head": 0.4, "push rod": 0.2, "tyre ahead": 0.01,
              "tyre across": -0.02}
    return system, system.assemble(q={"A": 0.5}, u={"A": 2.0, **states}, t=T)


def motion(system: bc.System, state: bc.State) -> np.ndarray:
    udot = system.forward_dynamics(state)
    bodies = [system.acceleration(state.q, state.u, udot, body, t=T) for body in ("crank", "rocker")]
    return np.concatenate([*bodies, udot[-6:]])


def test_on_joints_that_are_cut_and_others():
    system, state = wanted()
    other = linkage(cut=["A"], backend="numpy")
    guess = dict(zip("ABC", state.q[:3].tolist(), strict=True))
    guess["D"] = float(bc.analyze.loop_coordinates(system, state, "D")[0])
    speeds = dict(zip("ABC", state.u[:3].tolist(), strict=True))
    speeds["D"] = float(bc.analyze.loop_speeds(system, state, "D")[0])
    name = other.joint_names[0]
    own = {s.name: float(state.u[system.speed_names.index(f"{s.name}.value")])
           for s in system.model.mechanism.states}
    same = other.assemble(q={name: guess[name]}, u={name: speeds[name], **own}, t=T,
                          guess={k: v for k, v in guess.items() if k != "A"})
    one, two = motion(system, state), motion(other, same)
    assert np.abs(one - two).max() < 1e-9 * np.abs(one).max()
    mine, others = system.element_forces(state), other.element_forces(same)
    assert len(mine) == 9
    for key, element in mine.items():
        for a, b in zip(element[:-2], others[key][:-2], strict=True):  # points on an axis may differ
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=key)


def test_powers_energies_and_batches():
    system, state = wanted()
    found = system.element_forces(state)
    udot = system.forward_dynamics(state)
    slope = system.derivatives("kinetic_energy", state, by=("q", "u"), along={"q": state.u, "u": udot}, closed=False)
    height = system.derivatives("potential_energy", state.q, by="q", along={"q": state.u}, closed=False, t=T)
    powers = [float(e.power) for e in found.values()]
    assert abs(float(slope["along"] + height["along"]) - sum(powers)) < 1e-10 * sum(map(abs, powers))
    assert min(float(e.energy) for name, e in found.items() if name != "rolling") > 0.0
    assert abs(float(found["motor"].energy) - 0.5 * 0.05 * 4.0) < 1e-15
    q, u = np.tile(state.q, (5, 1)), np.tile(state.u, (5, 1))
    u[1:, -1] += 0.01
    many = system.element_forces(q, u, t=T)
    np.testing.assert_allclose(many["tyre"].vector[0], found["tyre"].vector, rtol=1e-12)
    assert abs(many["tyre"].vector[1] - found["tyre"].vector).max() > 1e-3
    np.testing.assert_allclose(system.forward_dynamics(q, u, t=T)[0], udot, rtol=1e-10)


def test_derivatives_by_states():
    system, state = wanted()
    for k in range(3, len(state.u)):  # states: none of them moves the loop
        step = np.zeros_like(state.u)
        step[k] = 1.0
        slope = system.derivatives("forward_dynamics", state, by="u", along={"u": step}, closed=False)["along"]
        ahead, behind = (system.forward_dynamics(state.q, state.u + s * 1e-6 * step, t=T) for s in (1.0, -1.0))
        np.testing.assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-6 * abs(slope).max() + 1e-7)


# -- tyres ----------------------------------------------------------------------------------------
LOAD = 3000.0


@cache
def rig(**settings: object) -> bc.System:
    """A wheel that is moved as one likes, by a joint with six coordinates."""
    m = bc.Mechanism("rig", gravity=(0, 0, 0))
    m.add_joint("free", bc.Free(), m.ground, m.add_body("wheel", bc.Inertia(10.0, inertia=(0.25, 0.45, 0.25))))
    given = dict(settings)
    if given.get("model") == "set":
        given["coefficients"] = SET
    m.add_tyre("tyre", "wheel", **{"radius": 0.3, "stiffness": 1e5, **given})
    return bc.compile(m, backend="numpy")


def forces(kappa: float = 0.0, alpha: float = 0.0, camber: float = 0.0, load: float = LOAD, speed: float = 20.0,
           **settings: object) -> np.ndarray:
    """Force and moment at the point of contact, at practical slip; alpha is positive for sliding to the left."""
    system = rig(**settings)
    turn = [math.cos(camber / 2), math.sin(camber / 2), 0.0, 0.0]
    above = (0.3 - load / 1e5) * math.cos(camber)
    omega = speed * (1.0 + kappa) / 0.3
    moving = [0.0, omega * 1.0, 0.0, *_in_body(turn, [speed, speed * math.tan(alpha), 0.0])]
    found = system.element_forces([*turn, 0.0, 0.0, above], moving)["tyre"]
    arm = np.array([0.0, math.sin(camber), -math.cos(camber)]) * (0.3 - load / 1e5)
    return np.concatenate([found.vector, found.torque - np.cross(arm, found.vector)])


def _in_body(turn: list[float], v: list[float]) -> list[float]:
    """Speeds of a free joint are in the axes of the body."""
    c, s = turn[0] ** 2 - turn[1] ** 2, 2.0 * turn[0] * turn[1]
    return [v[0], c * v[1] + s * v[2], -s * v[1] + c * v[2]]


@pytest.mark.parametrize("model", ["brush", "magic"])
def test_stiffness_grip_and_trail(model):
    """C_Fkappa = C_Falpha = slope F_z; the trail is a third of half the contact; sliding against the motion."""
    own = {"model": model, "mu": 0.9, "slope": 18.0, "half_length": 0.06, "c": 1.5}
    small = 1e-6
    np.testing.assert_allclose(forces(kappa=small, **own)[0] / small, 18.0 * LOAD, rtol=2e-4)
    side = forces(alpha=small, **own)
    np.testing.assert_allclose(side[1] / small, -18.0 * LOAD, rtol=2e-4)
    np.testing.assert_allclose(side[5], -0.02 * side[1], rtol=1e-4)
    peak = max(forces(kappa=k, **own)[0] for k in np.linspace(0.01, 0.6, 60).tolist())
    np.testing.assert_allclose(peak, 0.9 * LOAD, rtol=2e-3)
    both = forces(kappa=-0.5, alpha=0.5, **own)
    sliding = np.array([0.5, math.tan(0.5)])
    np.testing.assert_allclose(both[:2] / np.hypot(*both[:2]), -sliding / np.hypot(*sliding), rtol=1e-9)
    if model == "brush":
        np.testing.assert_allclose(np.hypot(*both[:2]), 0.9 * LOAD, rtol=1e-9)
        assert abs(both[5]) < 1e-9  # nothing is left of the trail
    np.testing.assert_allclose(both[2], LOAD, rtol=1e-9)


def test_the_aligning_moment_of_the_brush():
    """M_z = -mu F_z a theta sigma (1 - theta sigma)^3, Pacejka (3.12), with its largest value 27/256 mu F_z a."""
    slip = np.linspace(0.0, 0.15, 400)
    moment = [trail(s, 2e4, 1000.0, 0.05) * bc.mechanism.forces.tyre.brush(s, 2e4, 1000.0) for s in slip.tolist()]
    theta = np.minimum(2e4 * slip / 3000.0, 1.0)
    np.testing.assert_allclose(moment, 1000.0 * 0.05 * theta * (1.0 - theta) ** 3, atol=1e-9)
    assert abs(max(moment) - 27.0 / 256.0 * 50.0) < 1e-3


def test_a_set_of_coefficients():
    """Slopes at the origin are K_x, K_y, peaks D_x, D_y; trail D_t; camber, overturning, rolling resistance."""
    own, small, df = {"model": "set"}, 1e-6, LOAD / 4000.0 - 1.0
    stiff_x = LOAD * (22.0 + 0.5 * df) * math.exp(0.2 * df)
    stiff_y = -15.0 * 4000.0 * math.sin(2.0 * math.atan(LOAD / 8000.0))
    still = forces(**own)
    np.testing.assert_allclose(still[:3], [0.0, 0.0, LOAD], atol=1e-6)
    np.testing.assert_allclose(still[3:], [0.3 * LOAD * 0.01, -0.3 * LOAD * 0.01, 0.0], rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose((forces(kappa=small, **own) - still)[0] / small, stiff_x, rtol=1e-4)
    side = (forces(alpha=small, **own) - still) / small
    np.testing.assert_allclose(side[1], stiff_y, rtol=1e-4)
    np.testing.assert_allclose(side[5], -stiff_y * LOAD * 0.1 * 0.3 / 4000.0, rtol=1e-3)  # -t F_y
    np.testing.assert_allclose(side[3], 0.3 * LOAD * 0.02 * stiff_y / 4000.0, rtol=1e-3)  # q_Sx3
    np.testing.assert_allclose(max(forces(kappa=k, **own)[0] for k in np.linspace(0.02, 0.5, 60).tolist()),
                               LOAD * (1.2 - 0.1 * df), rtol=2e-3)
    np.testing.assert_allclose(min(forces(alpha=a, **own)[1] for a in np.linspace(0.02, 0.6, 60).tolist()),
                               LOAD * (-1.0 + 0.2 * df), rtol=2e-3)
    leaning = forces(camber=1e-3, **own)
    np.testing.assert_allclose(leaning[1] / 1e-3, stiff_y * 0.08 - 0.5 * LOAD + LOAD * math.cos(1e-3) * 0.0, rtol=2e-2)
    mixed = forces(kappa=0.1, alpha=0.1, **own)
    assert 0.0 < mixed[0] < forces(kappa=0.1, **own)[0] and 0.0 > mixed[1] > forces(alpha=0.1, **own)[1]
    left, right = forces(kappa=0.02, alpha=0.1, camber=0.05, **own), forces(
        kappa=0.02, alpha=-0.1, camber=-0.05, mirrored=True, **own)
    np.testing.assert_allclose(left, right * [1, -1, 1, -1, 1, -1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("settings", [{"half_length": 0.06, "rolling": 0.01}, {"model": "set"}])
def test_rolling_backwards_is_the_mirror_image(settings):
    """The same sliding to the left, forwards and backwards: forces as in a mirror across the road, so that the trail
    lies behind in the sense of travel (sgn V_cx in D_t and D_r)."""
    ahead, back = forces(alpha=0.1, **settings), forces(alpha=-0.1, speed=-20.0, **settings)
    assert abs(ahead[5]) > 2.0 and abs(ahead[1]) > 1000.0
    np.testing.assert_allclose(back, ahead * [-1, 1, 1, 1, -1, -1], rtol=1e-9, atol=1e-9)


def test_coefficients_of_all_kinds_count():
    """Every coefficient of a set moves some force or moment at one slip or another, as its equation says."""
    usual = {**dict.fromkeys(COEFFICIENTS, 0.1), **SET, "LONGVL": 16.0, "LMUX": 0.9, "LMUY": 0.9, "RBX1": 8.0,
             "RCX1": 1.1, "RCY1": 1.05}
    states = ((3000.0, 0.1, 0.08, 0.05, 0.3, 20.0, 1.0), (5000.0, -0.1, -0.06, 0.04, 0.3, 12.0, 1.0))
    plain = np.array([MagicSet.of(usual).loads(*x) for x in states])
    for name in COEFFICIENTS:
        other = np.array([MagicSet.of({**usual, name: 1.01 * usual[name]}).loads(*x) for x in states])
        assert np.abs(other - plain).max() > 1e-9, name


@pytest.mark.parametrize("model", ["brush", "set"])
def test_derivatives_of_tyres_by_place_and_speed(model):
    """Exact ones beside central differences, on ground that is not flat."""
    system = rig(model=model, height=_hills, **({"half_length": 0.05} if model == "brush" else {}))
    q = np.array([1.0, 0.02, 0.0, 0.03, 0.4, 0.2, 0.33])
    q[:4] /= np.linalg.norm(q[:4])
    u = np.array([0.1, 65.0, 0.2, 20.0, 0.4, 0.1])
    rng = np.random.default_rng(0)
    for _ in range(3):
        du, dq = rng.normal(size=6), rng.normal(size=6)
        found = system.derivatives("forward_dynamics", q, u, by=("q", "u"), along={"q": dq, "u": du})["along"]
        ahead, behind = (system.forward_dynamics(system.integrate(q, s * 1e-6 * dq), u + s * 1e-6 * du)
                         for s in (1.0, -1.0))
        np.testing.assert_allclose(found, (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-6 * abs(found).max())


def _hills(x, y):
    return 0.05 * sin(x) * (1.0 + 0.3 * sin(2.0 * y))


def test_no_load_no_force():
    for settings in ({}, {"model": "set"}):
        np.testing.assert_allclose(forces(kappa=0.1, alpha=0.1, load=-100.0, **settings), 0.0, atol=1e-9)


@pytest.mark.parametrize(("wrong", "said"), [
    ({"coefficients": {"PDY1": 1.0}}, "coefficients belong to model='set'"),
    ({"model": "set", "coefficients": {**SET, "PDZ1": 1.0}}, "no coefficient 'PDZ1'.*did you mean"),
    ({"model": "set", "coefficients": {"FNOMIN": 1.0}}, "needs PDX1"),
    ({"model": "set", "coefficients": {**SET, "PKY1": 15.0}}, "PDY1 and PKY1"),
    ({"model": "set", "coefficients": {**SET, "LMUY": 0.0}}, "scale the grip"),
    ({"relaxation": (0.3, 0.0)}, "relaxation is one length"), ({"height": 0.3}, "height is a function"),
    ({"height": bc.Table([0, 1], [0, 1], extrapolate="hold")}, "height is a function"),
    ({"model": "set", "coefficients": SET, "rolling": 0.1}, "a set has QDZ1 and QSY1")])
def test_bad_tyres_are_refused(wrong, said):
    m = bc.Mechanism("rig")
    m.add_joint("free", bc.Free(), m.ground, m.add_body("wheel", bc.Inertia.sphere(1.0, 0.3)))
    with pytest.raises(bc.ModelError, match=f"tyre 'tyre': .*{said}"):
        m.add_tyre("tyre", "wheel", **{"radius": 0.3, "stiffness": 1e5, **wrong})


def test_relaxation():
    """Behind a step of the slip angle the side force grows with the way: 1 - exp(-s / sigma)."""
    m = bc.Mechanism("towed", gravity=(0, 0, 0))
    carriage = m.add_body("carriage", bc.Inertia(10.0, inertia=(1, 1, 1)))
    m.add_joint("ahead", bc.Prismatic("x"), m.ground, carriage)
    m.prescribe("ahead", lambda t: 10.0 * t)
    wheel = m.add_body("wheel", bc.Inertia(10.0, inertia=(0.3, 0.5, 0.3)))
    m.add_joint("spin", bc.Revolute("y"), carriage, wheel, bc.Pose.rpy((0, 0, 0.29), 0, 0, 1e-5))
    m.add_tyre("tyre", "wheel", radius=0.3, stiffness=2e5, relaxation=(0.2, 0.5))
    system = bc.compile(m)
    start = system.assemble(u={"spin": 10.0 / 0.3})
    run = system.simulate(start, 0.2, step=5e-3, output=0.05, stepper="rk8")
    side = run.element("tyre").vector.sel(axis="y").values
    way = 10.0 * run.time.values
    np.testing.assert_allclose(side, 20.0 * 2000.0 * 1e-5 * (1.0 - np.exp(-way / 0.5)), rtol=2e-4, atol=1e-4 * 0.4)
    assert run.element("tyre")["across"].attrs["units"] == "m"


def test_a_standing_tyre_holds_for_100_seconds():
    """A locked wheel on a slope neither slides nor creeps; on a steeper one it slides with what is left."""
    def sled(ahead: float) -> bc.System:
        m = bc.Mechanism("sled", gravity=(ahead, 0, -9.81))
        lift = m.add_body("lift")
        m.add_joint("ahead", bc.Prismatic("x"), m.ground, lift)
        m.add_joint("up", bc.Prismatic("z"), lift, m.add_body("wheel", bc.Inertia(100.0, inertia=(1, 1, 1))))
        m.add_tyre("tyre", "wheel", radius=0.3, stiffness=1e5, damping=2e3, mu=0.5, relaxation=0.2)
        return bc.compile(m)

    system = sled(3.0)
    run = system.simulate(system.assemble(q={"up": 0.29}), 100.0, step=5e-3, output=1.0, stepper="radau")
    way = run.q.sel(coordinate="ahead.slide")
    assert abs(float(way[-1] - way[30])) < 1e-12 and abs(float(run.u[-1, 0])) < 1e-12
    share = 3.0 / (0.5 * 9.81)  # of the grip
    bent = 1.0 - (1.0 - share) ** (1.0 / 3.0)  # brush: 3 b - 3 b^2 + b^3 = share
    np.testing.assert_allclose(float(way[-1]), 0.2 * 3.0 * 0.5 / 20.0 * bent, rtol=0.2)
    np.testing.assert_allclose(float(run.element("tyre").vector[-1, 0]), -300.0, rtol=1e-9)
    system = sled(6.0)
    run = system.simulate(system.assemble(q={"up": 0.29019}), 2.0, step=5e-3, output=0.1, stepper="radau")
    late = run.u[-1, 0] - run.u[-6, 0]
    np.testing.assert_allclose(float(late) / 0.5, 6.0 - 0.5 * 9.81, rtol=1e-3)


def test_less_grip_stretches_the_curves():
    """Similarity, Pacejka section 4.2: with the grip times m, force and moment are m times those at a slip 1 / m."""
    bent = ("QSX", "QSY", "PHY", "PVY", "RVY", "RBX", "RBY", "SSZ", "PEY")
    flat = {name: value for name, value in SET.items() if name[:3] not in bent}
    full, half = MagicSet.of(flat), MagicSet.of({**flat, "LMUX": 0.5, "LMUY": 0.5})
    for slip in (0.01, 0.05, 0.1):
        one, two = (t.loads(LOAD, 0.0, a, 0.0, 0.3, 20.0, 1.0) for t, a in ((full, slip), (half, 0.5 * slip)))
        np.testing.assert_allclose(two.fy, 0.5 * one.fy, rtol=1e-12)
        np.testing.assert_allclose(two.mz / math.cos(0.5 * slip), 0.5 * one.mz / math.cos(slip), rtol=1e-12)
        one, two = (t.loads(LOAD, k, 0.0, 0.0, 0.3, 20.0, 1.0) for t, k in ((full, slip), (half, 0.5 * slip)))
        np.testing.assert_allclose(two.fx, 0.5 * one.fx, rtol=1e-12)


def test_coefficients_from_a_property_file(tmp_path):
    path = tmp_path / "tyre.tir"
    lines = "\n".join(f" {name:<20}= {value:.9e}   $something" for name, value in SET.items() if name != "FNOMIN")
    text = ("[MDI_HEADER]\nFILE_TYPE = 'tir'\n! a comment\n[VERTICAL]\nFNOMIN = 4000 $load\n[SCALING_COEFFICIENTS]\n"
            f"LKY = 1 $stiffness\nLMUY = 0.8\n[LATERAL_COEFFICIENTS]\nPTY1 = 2.1\nPPY1 = 0\n{lines}\n")
    path.write_text(text)
    tyre = MagicSet.from_file(path)
    assert tyre == MagicSet.of({**SET, "LMUY": 0.8})
    assert tyre["PKY1"] == -15.0 and tyre["PVX1"] == 0.0 and tyre["RCX1"] == 1.0
    m = bc.Mechanism("rig")
    m.add_joint("free", bc.Free(), m.ground, m.add_body("wheel", bc.Inertia.sphere(1.0, 0.3)))
    made = m.add_tyre("tyre", "wheel", radius=0.3, stiffness=1e5, model="set", coefficients=path)
    assert made.law.coefficients == tyre
    for old, new, said in (("LKY = 1", "LKY = 0.9", "scale factor LKY is 0.9"),
                           ("PPY1 = 0", "PPY1 = 0.3", "PPY1 = 0.3 is no coefficient.*later version"),
                           ("FNOMIN = 4000", "FNOMINX = 4000", "needs FNOMIN")):
        path.write_text(text.replace(old, new))
        with pytest.raises(bc.ModelError, match=f"tyre.tir.*{said}"):
            MagicSet.from_file(path)


def test_parameters_of_ready_elements_in_compiled_runs():
    """A motor and a brake whose numbers are parameters: lanes with numbers of their own, and sensitivities."""
    m = bc.load("pendulum")
    m.add_dc_motor("motor", "hinge", voltage=m.parameter("V", 6.0), resistance=m.parameter("R", 2.0), inductance=0.05,
                   constant=0.3, gear=5.0)
    m.add_brake("brake", "hinge", capacity=m.parameter("grip", 0.5), reach=0.02)
    system = bc.compile(m)
    start = system.assemble(q={"hinge": 0.3}, u={"hinge": 0.5})
    q, u = np.tile(start.q, (5, 1)), np.tile(start.u, (5, 1))
    grid = {"V": [6.0] * 5, "R": [2.0, 2.0002, 1.9998, 2.0, 2.0], "grip": [0.5, 0.5, 0.5, 0.5001, 0.4999]}
    ends = system.with_parameters(**{k: np.array(v) for k, v in grid.items()}).simulate(
        (q, u), 0.05, stepper="rk8", step=1e-3, output=0.05).u.values[-1]
    run = system.simulate(start, 0.05, stepper="rk8", step=1e-3, output=0.05, sensitivities=["R", "grip"])
    np.testing.assert_allclose(ends[0], run.u.values[-1], rtol=1e-12)
    for name, slope in (("R", (ends[1] - ends[2]) / 4e-4), ("grip", (ends[3] - ends[4]) / 2e-4)):
        np.testing.assert_allclose(run[f"d_u_{name}"].values[-1].ravel(), slope, rtol=1e-5, atol=1e-7)
        assert np.abs(slope).max() > 1e-3
