"""Contact in motion, compliant and rigid, beside closed forms."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import ModelError, StateError
from bellcrank.math import sin

G = 9.81
SOFT = {"stiffness": 2e5, "dissipation": 1.0, "slip_speed": 1e-4}
MODELS = ("rigid", "compliant")


@cache
def machine(shape: str, model: str, friction: float, backend: str = "llvm", method: str = "auto",
            restitution: float | None = None, dissipation: float = SOFT["dissipation"]) -> bc.System:
    """One free body over the plane z = 0; gravity is given by its two parameters."""
    m = bc.Mechanism(f"{shape} on a plane")
    m.gravity = (m.parameter("gx", 0.0), 0.0, m.parameter("gz", -G))
    inertia = {"box": (1.0 / 120.0, 17.0 / 600.0, 1.0 / 30.0), "ball": (0.008,) * 3, "disc": (0.01, 0.01, 0.02)}[shape]
    body = m.add_body("body", bc.Inertia(2.0, (0, 0, 0), inertia))
    m.add_joint("free", bc.Free(), m.ground, body)
    made = {"box": bc.Box((0.4, 0.2, 0.1)), "ball": bc.Sphere(0.1), "disc": bc.Cylinder(0.1, 0.04)}[shape]
    m.add_shape(m.ground, bc.Plane(), role="collision")
    m.add_shape(body, made, role="collision")
    kind: dict[str, Any] = {**SOFT, "dissipation": dissipation} if model == "compliant" else {}
    if restitution is not None:
        kind["restitution"] = restitution
        if model == "compliant":
            del kind["dissipation"]
            kind["impact_speed"] = float(np.sqrt(2 * G * 0.5))
    m.add_contact("floor", m.ground, body, friction=friction, **kind)
    return bc.compile(m, backend=backend, method=method)


def lying(system: bc.System, height: float, turn: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0), **speeds: float
          ) -> tuple[np.ndarray, np.ndarray]:
    """A state `height` above the plane, less what it sinks in by its weight."""
    q, u = system.neutral(), np.zeros(6)
    q[:4], q[6] = turn, height
    for name, value in speeds.items():
        u[system.speed_names.index(f"free.{name}")] = value
    return q, u


def run(system: bc.System, state: Any, duration: float, step: float, **options: Any) -> bc.Result:
    """By the method for the kind of contact."""
    if system.model.tree.contacts:
        return system.simulate(state, duration, stepper="moreau", step=step, output=step, **options)
    return system.simulate(state, duration, stepper="radau5", rtol=1e-7, atol=1e-9, output=step, **options)


def no_energy_made(result: bc.Result) -> None:
    energy = result["energy"].values
    size = np.ptp(energy) + np.abs(result["kinetic_energy"].values).max()
    assert np.diff(energy).max() <= 1e-5 * size


@pytest.mark.parametrize("model", MODELS)
def test_block_stops_on_an_incline_and_rests(model: str) -> None:
    angle, speed, friction = 0.3, 2.0, 0.5
    system = machine("box", model, friction).with_parameters(gx=G * np.sin(angle), gz=-G * np.cos(angle))
    sunk = 2.0 * G * np.cos(angle) / (4 * SOFT["stiffness"]) if model == "compliant" else 0.0
    slow = G * (friction * np.cos(angle) - np.sin(angle))
    result = run(system, lying(system, 0.05 - sunk, vx=speed), 1.5, 5e-3)
    x, v = result["q"].values[:, 4], result["u"].values[:, 3]
    needed = np.tan(angle) / friction  # the share of the largest friction
    creep = SOFT["slip_speed"] * needed / np.sqrt(1.0 - needed**2) if model == "compliant" else 0.0
    assert x[-1] - creep * (1.5 - speed / slow) == pytest.approx(speed**2 / (2 * slow), rel=1e-5)
    sliding = int(np.flatnonzero(v > 1e-2 * speed)[-1])  # slowed down evenly until then
    assert result["time"].values[sliding] + v[sliding] / slow == pytest.approx(speed / slow, rel=1e-5)
    no_energy_made(result)
    rest = result["q"].values[-1], result["u"].values[-1]
    later = run(system, rest, 100.0, 0.5)["q"].values
    assert np.abs(later[-1, 4] - later[0, 4] - 100.0 * creep) < max(1e-5 * 100.0 * creep, 1e-9)
    assert np.abs(np.delete(later[-1] - later[0], 4)).max() < 1e-7


@cache
def bristled(shape: str, backend: str = "llvm", method: str = "auto") -> bc.System:
    m = machine(shape, "compliant", 0.5).model.mechanism.copy()
    bare = bc.Mechanism("bristles")
    bare.gravity = (bare.parameter("gx", 0.0), 0.0, bare.parameter("gz", -G))
    body = bare.add_body("body", m.body("body").inertia)
    bare.add_joint("free", bc.Free(), bare.ground, body)
    for placed in m.shapes:
        bare.add_shape("ground" if placed.body == 0 else "body", placed.shape, role="collision")
    bare.add_contact("floor", bare.ground, body, friction=0.5, friction_model="bristle", stiffness=SOFT["stiffness"],
                     dissipation=SOFT["dissipation"])
    return bc.compile(bare, backend=backend, method=method)


def test_bristles_stick() -> None:
    """A block stops on an incline where Coulomb's law says, and does not creep; its friction is what holds it."""
    angle, speed = 0.3, 2.0
    system = bristled("box").with_parameters(gx=G * np.sin(angle), gz=-G * np.cos(angle))
    sunk = 2.0 * G * np.cos(angle) / (4 * SOFT["stiffness"])
    q, u = system.neutral(), np.zeros(system.nu)
    q[6], u[3] = 0.05 - sunk, speed
    result = run(system, (q, u), 1.5, 5e-3)
    slow = G * (0.5 * np.cos(angle) - np.sin(angle))
    assert result["q"].values[-1, 4] == pytest.approx(speed**2 / (2 * slow), rel=1e-4)
    later = run(system, (result["q"].values[-1], result["u"].values[-1]), 100.0, 1.0)
    place = later["q"].values[:, :7]
    assert np.abs(place[-1] - place[0]).max() < 1e-7 and np.abs(place[-1] - place[10]).max() < 1e-12
    held = later.element("floor")
    assert held.vector.values[-1] == pytest.approx([-2.0 * G * np.sin(angle), 0.0, 2.0 * G * np.cos(angle)], abs=1e-8)
    assert abs(held.power.values[-1]) < 1e-12


def test_bristles_that_are_shaken_do_not_creep() -> None:
    """A block on a table is pushed to and fro within what friction holds, about a push to one side."""
    m = bristled("box").model.mechanism.copy()
    m.add_wrench("shaker", "body", law=lambda at: (4.0 + 2.0 * sin(40.0 * np.pi * at.t), 0.0, 0.0))
    system = bc.compile(m)
    q = system.neutral()
    q[6] = 0.05 - 2.0 * G / (4 * SOFT["stiffness"])
    place = run(system, (q, np.zeros(system.nu)), 1.0, 0.05)["q"].values[:, 4]
    assert np.abs(place[10:] - place[-1]).max() < 1e-7 and abs(place[-1]) < 2e-4


def test_bristles_everywhere() -> None:
    """The reference agrees, batches do not see each other, and derivatives are those of the law."""
    system, reference = bristled("ball"), bristled("ball", "numpy", "dense")
    q, u = system.neutral(), np.zeros(system.nu)
    q[6], u[3:5], u[6:8] = 0.0999, (0.02, -0.01), (0.3, 0.5)
    expected = reference.forward_dynamics(q, u)
    assert system.forward_dynamics(q, u) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    many = system.forward_dynamics(np.stack([q, system.neutral()]), np.stack([u, u]))
    assert many[0] == pytest.approx(expected, rel=1e-12, abs=1e-12)
    normal = SOFT["stiffness"] * 1e-4
    slip, bend = np.array([0.02, -0.01]), np.array([0.3, 0.5])
    size = np.linalg.norm(slip)
    push = -0.5 * normal * (bend + 1e-2 * (slip - size * bend) / (1e-4 + 1e-2 * size))
    assert expected[3:5] == pytest.approx(push / 2.0)
    assert expected[6:8] == pytest.approx(slip / 1e-4)  # nothing slides yet
    full = u.copy()
    full[6:8] = bend = np.array([0.6, -0.8])
    slides = (slip - (slip @ bend) * bend) / 1e-4
    assert slides @ bend == pytest.approx(0.0, abs=1e-9) and slip @ bend > 0.0
    assert system.forward_dynamics(q, full)[6:8] == pytest.approx(slides)
    assert system.forward_dynamics(q, full * [1, 1, 1, -1, -1, 1, 1, 1])[6:8] == pytest.approx(-slip / 1e-4)
    bend = u[6:8]
    stored = reference.element_forces(q, u)["floor"].energy  # of the overlap, and what bristles hold
    assert stored == pytest.approx(0.5 * normal * 1e-4 + 0.5 * 1e-4 * 0.5 * normal * (bend @ bend), rel=1e-9)
    found, h = system.derivatives("forward_dynamics", q, u)["u"], 1e-7
    columns = [(system.forward_dynamics(q, u + h * e) - system.forward_dynamics(q, u - h * e)) / (2 * h)
               for e in np.eye(system.nu)]
    assert np.abs(found - np.stack(columns, axis=1)).max() < 1e-5 * np.abs(found).max()
    with pytest.raises(ModelError, match="contact 'c': bristles belong to a compliant contact"):
        system.model.mechanism.copy().add_contact("c", "ground", "body", friction_model="bristle")


@pytest.mark.parametrize("model", MODELS)
def test_ball_bounces(model: str) -> None:
    system = machine("ball", model, 0.3, restitution=0.8)
    result = run(system, lying(system, 0.6), 1.1, 1e-3)
    z = result["q"].values[:, 6] - 0.1
    low = int(np.argmin(z[result["time"].values < 0.5]))
    assert result["time"].values[low] == pytest.approx(np.sqrt(2 * 0.5 / G), abs=5e-3)
    if model == "rigid":
        assert z[low:].max() == pytest.approx(0.64 * 0.5, rel=1e-4)
    else:  # the weight acts while it is compressed by 1 cm: its energy counts, 2 % of that of the fall
        deepest, free = -z.min(), np.sqrt(2.0 * G * 0.5)
        assert z[low:].max() == pytest.approx(0.64 * 0.5, rel=G * deepest / free**2 * 1.2)
    no_energy_made(result)


@pytest.mark.parametrize("model", MODELS)
def test_sphere_from_sliding_to_rolling(model: str) -> None:
    system = machine("ball", model, 0.3, restitution=0.8)
    sunk = 2.0 * G / SOFT["stiffness"] if model == "compliant" else 0.0
    result = run(system, lying(system, 0.1 - sunk, vx=2.1), 0.4, 1e-3)
    speed = np.linalg.norm(result["u"].values[:, 3:], axis=1)
    arm = 0.1 - 0.5 * sunk  # forces act half way between the lowest point and the plane
    left = 2.0 * arm**2 / (2.0 * arm**2 + 0.008)  # 5/7 for an arm of the radius
    assert left == pytest.approx(5.0 / 7.0, rel=3e-4)
    rigid = model == "rigid"
    assert speed[-1] == pytest.approx(left * 2.1, rel=5e-5 if rigid else 1e-6)
    assert result["u"].values[-1, 1] == pytest.approx(speed[-1] / arm, rel=1e-12 if rigid else 1e-6)
    rolling = result["time"].values[np.flatnonzero(speed > 1.001 * speed[-1])[-1]]
    assert rolling == pytest.approx((1.0 - left) * 2.1 / (0.3 * G), rel=0.008 if rigid else 0.01)
    no_energy_made(result)


@pytest.mark.parametrize("model", MODELS)
def test_disc_spins_down_on_its_rim(model: str) -> None:
    system = machine("disc", model, 0.2)
    sunk = 2.0 * G / (2 * SOFT["stiffness"]) if model == "compliant" else 0.0
    result = run(system, lying(system, 0.02 - sunk, wz=20.0), 0.5, 2e-3)
    spin = result["u"].values[:, 2]
    expected = 20.0 - 0.2 * 2.0 * G * 0.1 / 0.02 * 0.5  # friction acts on the rim, at full radius
    assert spin[-1] == pytest.approx(expected, rel=1e-7 if model == "compliant" else 2e-4)
    no_energy_made(result)


@pytest.mark.parametrize("model", MODELS)
def test_wheel_with_slip(model: str) -> None:
    """A torque too large for the friction: the wheel gains what friction gives, and spins up with the rest."""
    system = machine("disc", model, 0.2)
    sunk = 2.0 * G / (2 * SOFT["stiffness"]) if model == "compliant" else 0.0
    half = np.sqrt(0.5)
    state = lying(system, 0.1 - sunk, (half, half, 0.0, 0.0))  # its axis along -y
    wrench = np.array([[0.0, 1.0, 0.0, 0.0, 0.0, 0.0]])
    result = run(system, state, 0.3, 2e-3, wrenches=wrench)
    velocity = np.linalg.norm(result["u"].values[-1, 3:])
    accuracy = 2e-4 if model == "rigid" else 3e-4  # it takes a while until it slips: 4e-5 s
    assert velocity == pytest.approx(0.2 * G * 0.3, rel=accuracy)
    assert abs(result["u"].values[-1, 2]) == pytest.approx((1.0 - 0.2 * 2.0 * G * 0.1) / 0.02 * 0.3, rel=accuracy)


def rocked(system: bc.System, step: float) -> tuple[bc.Result, float, float]:
    """A block on its small face, tilted by 0.1 rad, that falls back: the run, the spin with which it meets the floor
    over that by its energy, and what is left of it after the impact."""
    slender, tilt = np.arctan(0.1 / 0.4), 0.1
    turn = 0.5 * (np.pi / 2 - tilt)  # x up
    diagonal = 0.5 * np.hypot(0.4, 0.1)
    state = lying(system, diagonal * np.cos(slender - tilt), (np.cos(turn), 0.0, -np.sin(turn), 0.0))
    result = run(system, state, 0.6, step)
    spin = np.abs(result["u"].values[:, 1])
    hit = int(np.argmax(np.abs(np.diff(spin))))
    fallen = 2.0 * G * diagonal * (np.cos(slender - tilt) - np.cos(slender))
    expected = np.sqrt(2.0 * fallen / (17.0 / 600.0 + 2.0 * diagonal**2))
    return result, spin[:hit + 1].max() / expected, spin[hit + 1:hit + 30].max() / spin[:hit + 1].max()


HOUSNER = 1.0 - 1.5 * np.sin(np.arctan(0.1 / 0.4))**2  #: of the spin is left as the block goes on about its other edge


@pytest.mark.parametrize("model", MODELS)
def test_block_rocks_as_housner_says(model: str) -> None:
    """Standing on its small face and tilted: after the impact it turns about the other edge, as much slower. Compliant
    edges must not throw it: they are damped as much as they can be."""
    system = machine("box", model, 5.0, dissipation=30.0)
    result, met, left = rocked(system, 1e-3)
    assert met == pytest.approx(1.0, abs=2e-3 if model == "rigid" else 5e-3)
    assert left == pytest.approx(HOUSNER, rel=1e-2)
    if model == "rigid":
        no_energy_made(result)
        assert result.attrs["contact_residual"] < 1e-10


def test_errors_of_rigid_contact_shrink_with_the_step() -> None:
    """By halves where events fall within steps, by quarters where bodies slide all the time."""
    def of_block(h: float) -> float:
        friction, angle = 0.5, 0.3
        system = machine("box", "rigid", friction).with_parameters(gx=G * np.sin(angle), gz=-G * np.cos(angle))
        slow = G * (friction * np.cos(angle) - np.sin(angle))
        return float(run(system, lying(system, 0.05, vx=2.0), 1.5, h)["q"].values[-1, 4] - 2.0 / slow)

    def of_ball(h: float) -> float:
        system = machine("ball", "rigid", 0.3, restitution=0.8)
        return float(np.linalg.norm(run(system, lying(system, 0.1, vx=2.1), 0.4, h)["u"].values[-1, 3:]) - 1.5)

    def of_disc(h: float) -> float:
        system = machine("disc", "rigid", 0.2)
        spin = run(system, lying(system, 0.02, wz=20.0), 0.4, h)["u"].values[-1, 2]
        return float(spin - (20.0 - 0.2 * 2.0 * G * 0.1 / 0.02 * 0.4))

    def of_wheel(h: float) -> float:
        system, half = machine("disc", "rigid", 0.2), np.sqrt(0.5)
        result = run(system, lying(system, 0.1, (half, half, 0.0, 0.0)), 0.4, h, wrenches=np.eye(6)[1][None])
        return float(np.linalg.norm(result["u"].values[-1, 3:]) - 0.2 * G * 0.4)

    def of_rocking(h: float) -> float:
        return rocked(machine("box", "rigid", 5.0, dissipation=30.0), h)[2] - HOUSNER

    for error, order in ((of_block, 1), (of_ball, 2), (of_disc, 2), (of_wheel, 2), (of_rocking, 1)):
        coarse, fine = abs(error(4e-3)), abs(error(2e-3))
        assert fine < 1.3 * 0.5**order * coarse, error.__name__


def test_forces_at_rigid_places_are_in_results(tmp_path: Any) -> None:
    """What acts is the mean over a step: the weight at rest, in memory, in files, after events and in batches."""
    system = machine("box", "rigid", 5.0)
    seen = bc.Event(lambda t, q, u: q[6] - 0.055, "half way", direction=-1)
    for options in ({}, {"file": tmp_path / "run.nc"}, {"events": [seen]}):
        force = run(system, lying(system, 0.06), 0.3, 5e-3, **options)["contact_force"]
        assert force.dims == ("time", "contact_component") and force["contact_component"].values[4] == "floor[1].y"
        total = force.values.reshape(len(force), 8, 3).sum(axis=1)
        assert np.abs(total[-1] - [0.0, 0.0, 2.0 * G]).max() < 1e-9
        assert np.nansum(total[:, 2]) * 5e-3 == pytest.approx(2.0 * G * 0.3, rel=1e-9)  # all that fell was stopped
    states = tuple(np.stack(x) for x in zip(lying(system, 0.05), lying(system, 0.3), strict=True))
    both = run(system, states, 0.05, 5e-3)["contact_force"].values[-1].reshape(2, 8, 3).sum(axis=1)
    assert both[0, 2] == pytest.approx(2.0 * G) and (both[1] == 0.0).all()


def test_rigid_batches_and_events() -> None:
    """States of a batch do not see each other, also with other friction and restitution; events end a run."""
    system = machine("ball", "rigid", 0.3, restitution=0.8)
    heights = np.array([0.1, 0.3, 0.101])
    q, u = (np.stack(x) for x in zip(*(lying(system, z, vx=1.0) for z in heights), strict=True))
    many = run(system, (q, u), 0.3, 2e-3)
    for i in range(3):
        one = run(system, (q[i], u[i]), 0.3, 2e-3)
        assert np.abs(many["q"].values[:, i] - one["q"].values).max() < 1e-9
    falling = bc.Event(lambda t, q, u: q[6] - 0.2, "half way", direction=-1, action="stop")
    ended = run(system, lying(system, 0.3), 0.3, 2e-3, events=[falling])
    assert ended["time"].values[-1] == pytest.approx(np.sqrt(2 * 0.1 / G), rel=1e-4)


# -- the equations --------------------------------------------------------------------------------
def test_every_formulation_feels_the_same() -> None:
    states = [lying(machine("box", "compliant", 0.5), 0.0499, (0.99, 0.02, 0.1, 0.05), vx=0.1, wz=1.0)]
    expected = machine("box", "compliant", 0.5).forward_dynamics(*states[0])
    for method in ("recursive", "kane", "operator", "dense", "divide"):
        found = machine("box", "compliant", 0.5, "numpy", method).forward_dynamics(*states[0])
        assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max(), method


@pytest.mark.parametrize("shape", [bc.Box((0.5, 0.7, 0.4)), bc.Cylinder(0.3, 0.6)], ids=["box", "cylinder"])
def test_derivatives_of_cylinders(shape: Any) -> None:
    """They are finite, also where no line passes over a rim, and those of the force."""
    m = bc.Mechanism("two")
    m.add_body("b", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("free", bc.Free(), m.ground, "b")
    ground = m.add_shape(m.ground, shape, role="collision")
    m.add_contact("touch", ground, m.add_shape("b", bc.Cylinder(0.2, 0.5), role="collision"), stiffness=100.0)
    system = bc.compile(m, backend="numpy")
    turn, u = np.array([0.8, 0.3, -0.4, 0.33]), np.zeros(6)
    places = np.array([(0.3, 0.2, 0.3), (0.35, -0.1, 0.2), (0.05, 0.3, 0.4)])
    q = np.concatenate([np.tile(turn / np.linalg.norm(turn), (3, 1)), places], axis=1)
    assert bc.analyze.contacts(system, q, u)["touch"].depth.max(axis=-1).min() > 0.01
    found, step = system.derivatives("forward_dynamics", q, u, by=["q"])["q"], 1e-6 * np.eye(6)[:, None]
    there, back = (system.forward_dynamics(system.integrate(q, way * step), u) for way in (1.0, -1.0))
    wanted = np.moveaxis(there - back, 0, -1) / 2e-6
    assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max()


def test_derivatives_through_contact() -> None:
    system = machine("box", "compliant", 0.5)
    q, u = lying(system, 0.0495, (1.0, 0.001, 0.002, 0.0), vx=0.01, vz=0.02)
    q = system.normalize(q)
    found = system.derivatives("forward_dynamics", q, u)
    h = 1e-7
    columns = [(system.forward_dynamics(system.integrate(q, h * e), u) -
                system.forward_dynamics(system.integrate(q, -h * e), u)) / (2 * h) for e in np.eye(6)]
    assert np.abs(found["q"] - np.stack(columns, axis=1)).max() < 1e-5 * np.abs(found["q"]).max()
    columns = [(system.forward_dynamics(q, u + h * e) - system.forward_dynamics(q, u - h * e)) / (2 * h)
               for e in np.eye(6)]
    assert np.abs(found["u"] - np.stack(columns, axis=1)).max() < 1e-5 * np.abs(found["u"]).max()


def test_what_acts_is_reported() -> None:
    system = machine("box", "compliant", 0.5)
    q, u = lying(system, 0.0499, vx=0.1)
    found = bc.analyze.contacts(system, q, u)["floor"]
    assert found.closed.sum() == 4
    assert found.normal_force[found.closed] == pytest.approx(SOFT["stiffness"] * 1e-4)
    assert found.slip_speed[found.closed] == pytest.approx(0.1)
    wrench = bc.analyze.element_wrenches(system, q, u)[0]
    assert wrench[3:] == pytest.approx(found.force)
    assert found.force[0] == pytest.approx(-0.5 * 4 * SOFT["stiffness"] * 1e-4, rel=1e-6)
    many = bc.analyze.contacts(system, np.stack([q, q]), u)["floor"]
    assert many.depth.shape == (2, 8) and many.force.shape == (2, 3)
    rigid = bc.analyze.contacts(machine("box", "rigid", 5.0), *lying(system, 0.05))["floor"]
    assert rigid.closed.sum() == 4 and np.isnan(rigid.normal_force).all()


# -- loops ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("model", MODELS)
def test_loops_stay_closed(model: str) -> None:
    """A four-bar whose crank falls on the ground beside it."""
    m = bc.load("four_bar")
    m.add_shape("coupler", bc.Sphere(0.05), role="collision")
    up = [[1, 0, 0], [0, 0, 1], [0, -1, 0]]  # weight acts along -y
    m.add_shape(m.ground, bc.Plane(), bc.Pose((0, -0.1, 0), up), role="collision")
    m.add_contact("floor", m.ground, "coupler", friction=0.4, **({"stiffness": 1e5, "dissipation": 2.0}
                                                                  if model == "compliant" else {}))
    system = bc.compile(m)
    state = system.assemble(q={"A": 0.9})
    result = system.simulate(state, 1.0, stepper="moreau" if model == "rigid" else "radau5",
                             **({"step": 2e-3} if model == "rigid" else {}))
    assert result["loop_error"].values.max() < 1e-10
    assert result["loop_rate_error"].values.max() < 1e-9
    touched = bc.analyze.contacts(system, result["q"].values, result["u"].values)["floor"]
    assert touched.closed.any()
    assert touched.depth.max() < (1e-3 if model == "rigid" else 1e-2)
    no_energy_made(result)


# -- what is refused ------------------------------------------------------------------------------
def test_overlaps_and_steppers_are_named() -> None:
    rigid, soft = machine("box", "rigid", 5.0), machine("box", "compliant", 0.5)
    for _ in range(2):  # by the text itself, then by compiled code
        with pytest.raises(StateError, match=r"overlap at the start: 'floor' by 0.01 m \('ground plane' and '"):
            rigid.simulate(lying(rigid, 0.04), 0.1, stepper="moreau")
        with pytest.raises(StateError, match=r"overlap at the start: 'floor' by 0.03 m"):
            soft.simulate(lying(soft, 0.02), 0.1)
    with pytest.raises(ModelError, match=r"contact 'floor' is rigid.*needs stepper='moreau', not 'rk4'"):
        rigid.simulate(lying(rigid, 0.05), 0.1)


@pytest.mark.parametrize(("rigid", "label", "value"), [
    (False, "stiffness", 0.0), (False, "friction", -0.1), (False, "dissipation", np.nan), (True, "friction", -0.5),
    (True, "restitution", -1.0)])
def test_parameters_that_contacts_cannot_have_are_named(rigid: bool, label: str, value: float) -> None:
    m = bc.Mechanism("ball")
    m.add_joint("free", bc.Free(), m.ground, m.add_body("ball", bc.Inertia.sphere(1.0, 0.1)))
    m.add_shape("ball", bc.Sphere(0.1), role="collision")
    m.add_shape(m.ground, bc.Plane(), role="collision")
    given = {"friction": 0.5, **({"restitution": 0.5} if rigid else {"stiffness": 1e4, "dissipation": 0.1})}
    m.add_contact("floor", m.ground, "ball", **{k: m.parameter(k, x) for k, x in given.items()})
    system = bc.compile(m, backend="numpy").with_parameters(**{label: [given[label], value]})
    q = np.tile(system.neutral() + np.eye(7)[6], (2, 1))
    with pytest.raises(bc.ModelError, match=rf"{label} of contact 'floor' is .* must be (positive|zero or more)"):
        system.simulate((q, np.zeros((2, 6))), 0.01, stepper="moreau" if rigid else "rk4")


def test_stiff_springs_on_joints() -> None:
    """Far stiffer than the step is short: what it converges to is the motion, not that of the inertia it adds."""
    m = bc.load("double_pendulum")
    hinge = m.joints[1].name
    m.add_joint_spring("stiff", hinge, stiffness=1e5, damping=300.0)
    system = bc.compile(m)
    state = np.array([0.5, 0.0]), np.array([0.2, 0.0])
    ends = [system.simulate(state, 0.5, step=h, stepper=s)["q"].values[-1] for s, h in (("moreau", 5e-3),
                                                                                         ("radau", 1e-3))]
    assert np.abs(ends[0] - ends[1]).max() < 2e-4


def test_forces_that_depend_on_time_act_half_way() -> None:
    """A mass that is shaken: of second order, beside its closed form."""
    m = bc.Mechanism("shaken")
    mass = m.add_body("mass", bc.Inertia.sphere(2.0, 0.1))
    m.add_joint("slide", bc.Prismatic("x"), m.ground, mass)
    m.add_joint_force("shaker", "slide", lambda at: 6.0 * sin(20.0 * at.t))
    run = bc.compile(m).simulate(([0.0], [0.0]), 0.1, stepper="moreau", step=2e-3)
    assert run["u"].values[-1, 0] == pytest.approx(3.0 / 20.0 * (1.0 - np.cos(2.0)), rel=1e-4)


def test_every_corner_of_a_box_is_felt() -> None:
    """It falls on one corner after another."""
    system = machine("box", "rigid", 0.5)
    down = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * [0.2, 0.1, 0.05]
    axis = np.cross(down, [0.0, 0.0, -1.0])
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    half = 0.5 * np.arccos(-down[:, 2] / np.linalg.norm(down, axis=1))[:, None]
    q, u = np.repeat(system.neutral()[None], 8, axis=0), np.zeros((8, 6))
    q[:, :4], q[:, 6] = np.hstack([np.cos(half), np.sin(half) * axis]), np.linalg.norm(down, axis=1) + 1e-3
    force = run(system, (q, u), 0.04, 2e-3)["contact_force"].values[-1].reshape(8, 8, 3)[..., 2]
    assert force.max(axis=1) == pytest.approx(2.0 * G, rel=0.05) and (np.sort(force, axis=1)[:, -2] == 0.0).all()


def test_machines_without_contact_step_as_well() -> None:
    """The method itself, beside one of higher order."""
    system = bc.compile(bc.load("double_pendulum"))
    state = np.array([0.5, 0.3]), np.array([0.2, -0.1])
    ends = [system.simulate(state, 0.5, step=1e-3, stepper=s)["q"].values[-1] for s in ("moreau", "rk4")]
    assert np.abs(ends[0] - ends[1]).max() < 1e-5


@pytest.mark.parametrize("n", [1, 2])
def test_balls_roll_on_a_box_that_is_pulled(n: int) -> None:
    """Balls on a box that slides on the ground: accelerations by hand, of the box 3.5 times those of the balls."""
    m = bc.Mechanism("balls", gravity=(0.0, 0.0, -G))
    m.add_joint("box free", bc.Free(), m.ground, m.add_body("box", bc.Inertia.box(10.0, (20.0, 20.0, 1.0))))
    m.add_shape("box", bc.Box((20.0, 20.0, 1.0)), role="collision")
    m.add_shape(m.ground, bc.Plane(), role="collision", name="ground")
    m.add_contact("under the box", "ground", "box", friction=0.4)
    places = {f"ball {i}{j}": (2.0 * i - n + 1.0, 2.0 * j - n + 1.0) for i in range(n) for j in range(n)}
    for name in places:
        m.add_joint(f"{name} free", bc.Free(), m.ground, m.add_body(name, bc.Inertia.sphere(1.0, 0.5)))
        m.add_shape(name, bc.Sphere(0.5), role="collision")
        m.add_contact(f"under {name}", "box", name, friction=0.8)
    along = np.array([0.5, 0.75**0.5, 0.0])
    m.add_wrench("pull", "box", force=tuple(150.0 * along))
    system = bc.compile(m)
    start = system.assemble(q={"box free.z": 0.5} | {f"{name} free": [1, 0, 0, 0, x, y, 1.5] for name, (x, y) in
                                                     places.items()})
    run = system.simulate(start, 0.5, stepper="moreau", step=1e-3, output=0.5)
    q, speeds = run["q"].values[-1], run["u"].values[-1].reshape(-1, 6)
    ball = (150.0 - 0.4 * (10.0 + n * n) * G) / (35.0 + n * n)
    np.testing.assert_allclose(speeds[0], [0.0, 0.0, 0.0, *(3.5 * ball * 0.5 * along)], atol=5e-5)
    for name, u in zip(places, speeds[1:], strict=True):
        rotation = system.pose(q, name).rotation
        np.testing.assert_allclose(rotation @ u[3:], ball * 0.5 * along, atol=5e-5)
        np.testing.assert_allclose(rotation @ u[:3], 2.5 * ball * np.array([along[1], -along[0], 0.0]), atol=5e-5)
