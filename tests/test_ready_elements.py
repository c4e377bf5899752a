"""Ready-made elements beside closed forms, and power balances of machines with them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.mechanism.forces.coordinate_forces import Belt, BumpStop, GasSpring
from bellcrank.mechanism.forces.tyre import brush, magic_formula, trail


@pytest.mark.parametrize(("element", "damping"), [
    (GasSpring(400.0, 0.5, 0.6, 1.0, 7.0), 7.0), (GasSpring(400.0, 0.5, 0.6, 1.3), 0.0),
    (Belt(1e4, 50.0, 7.0), 7.0), (Belt(1e4, 0.0, 0.0, 0.01), 0.0), (BumpStop(0.3, 0.6, 1e3, 0.0, 1e-3, 1e5), 0.0)])
def test_what_is_lost_is_what_dampers_take(element, damping):
    x = np.linspace(-0.4, 0.45, 18) if isinstance(element, Belt) else np.linspace(0.15, 0.8, 14)
    np.testing.assert_allclose(element.loss(x, 0.7), damping * 0.49, atol=1e-9)
    at_rest = 0.5 if isinstance(element, GasSpring) else 0.0 if isinstance(element, Belt) else 0.45
    assert element.energy(at_rest) == 0.0 and (element.energy(x) >= 0.0).sum() > 4


def slider(mass: float = 2.0, gravity: float = 0.0) -> bc.Mechanism:
    m = bc.Mechanism("slider", gravity=(gravity, 0.0, 0.0))
    m.add_joint("rail", bc.Prismatic("x"), m.ground, m.add_body("block", bc.Inertia.point(mass, (0, 0, 0))))
    return m


def with_work(m: bc.Mechanism) -> bc.System:
    """The machine with what its elements put in as a state."""
    names = [e.name for e in m.force_elements]
    m.add_state("work", lambda at: sum(at.element(name).power for name in names), units="J")
    return bc.compile(m)


def balance(result: bc.Result) -> float:
    """By how much the energy of motion and gravity differs from the work of all elements."""
    bare = result["kinetic_energy"] + result["potential_energy"]
    return float(np.abs(bare - bare[0] - result.u.sel(speed="work.value")).max())


def test_hydraulic_cylinder():
    """Shut, it is a spring of both columns of oil; fed, it moves at flow over area; powers balance."""
    m = slider(50.0, 9.81)
    m.add_hydraulic_cylinder("lift", m.ground, "block", (0, 0, 0), (0, 0, 0), head_area=2e-3, rod_area=1e-3, closed=0.4,
                             stroke=0.5, gain=2e-8, friction=500.0, initial=(0.0, 0.0), leakage=0.0,
                             opening=lambda at: bc.math.select_less(at.t, 0.05, 0.0, 1.0))
    system = with_work(m)
    assert system.speed_names[1:3] == ("lift head.value", "lift rod.value")
    state = system.assemble(q={"rail": 0.6})
    volume = 1e-4 + 2e-3 * 0.2, 1e-4 + 1e-3 * 0.3
    slopes = system.derivatives("forward_dynamics", state, by="u")["u"]
    np.testing.assert_allclose(slopes[1:3, 0] * 1e6, [-1.4e9 * 2e-3 / volume[0], 1.4e9 * 1e-3 / volume[1]], rtol=1e-9)
    result = system.simulate(state, duration=0.2, step=5e-5, output=1e-2, stepper="rk8")
    assert balance(result) < 1e-8
    head = result.u.sel(speed="lift head.value")[-1] * 1e6
    flow = 2e-8 * np.sqrt(2e7 - head)
    mean = float(result.u[10:, 0].mean())
    assert abs(mean - float(flow) / 2e-3) < 0.1 * mean  # the rest compresses the oil
    speed = result.u[-1, 0]
    push = result.element("lift").force[-1]
    assert float(result.element("lift")["head"][-1]) * 1e6 == float(head)
    rod = result.u.sel(speed="lift rod.value")[-1] * 1e6
    assert abs(float(push - (head * 2e-3 - rod * 1e-3 - 500.0 * speed))) < 1e-6


def test_dc_motor():
    """No-load speed, and what the source gives: heat, the coil's energy and work."""
    m = bc.Mechanism("motor", gravity=(0, 0, 0))
    m.add_joint("shaft", bc.Revolute("z"), m.ground, m.add_body("disc", bc.Inertia(1.0, inertia=(0.02, 0.02, 0.02))))
    m.add_dc_motor("motor", "shaft", voltage=12.0, resistance=0.5, inductance=2e-3, constant=0.05, gear=4.0,
                   rotor_inertia=1e-4)
    m.add_state("given", lambda at: (12.0 - 0.5 * at.state("motor current")) * at.state("motor current"))
    system = with_work(m)
    result = system.simulate(system.assemble(), duration=4.0, step=1e-3, stepper="rk8", output=0.1)
    current = result.u.sel(speed="motor current.value")
    assert abs(float(result.u[-1, 0]) - 12.0 / 0.2) < 1e-3
    stored = 0.5 * 2e-3 * current**2
    assert np.abs(result.u.sel(speed="given.value") - stored - result.u.sel(speed="work.value")).max() < 1e-8
    assert balance(result) < 1e-8
    assert abs(float(system.kinetic_energy([0.0] * 4, [1.0, 9.0, 9.0, 9.0])) - 0.5 * (0.02 + 16e-4)) < 1e-15


def test_a_brake_sticks_and_slides():
    """On an incline for 100 s without creep; a sliding block stops where it must."""
    m = slider(2.0, 3.0)
    m.add_brake("brake", "rail", capacity=10.0, reach=1e-4, damping=5e-3)
    system = with_work(m)
    held = system.simulate(system.assemble(), duration=100.0, step=1e-3, output=10.0, stepper="radau")
    rest = held.q.isel(coordinate=0)
    assert abs(float(rest[-1] - rest[1])) < 1e-12 and abs(float(held.u[-1, 0])) < 1e-12
    assert abs(float(held.element("brake").force[-1]) + 6.0) < 1e-9  # holds the weight
    moving = system.simulate(system.assemble(u={"rail": 1.0}), duration=1.0, step=1e-4, output=1e-2)
    stop = 1.0 / (2.0 * (10.0 - 6.0) / 2.0)  # v^2 / 2a
    assert abs(float(moving.q[-1, 0]) - stop) < 5e-4 and abs(float(moving.u[-1, 0])) < 1e-6
    assert balance(moving) < 1e-8


def test_a_brake_breaks_away_at_its_capacity():
    """Bristles hold 99 per cent of the capacity without creep, and 101 per cent leave one to accelerate."""
    m = slider(2.0)
    m.add_brake("brake", "rail", capacity=10.0, reach=1e-4, damping=5e-3)
    m.add_wrench("pull", "block", law=lambda at: (at.parameter("pull"), 0.0, 0.0))
    m.parameter("pull", 9.9)
    system = bc.compile(m)
    held = system.simulate(system.assemble(), duration=20.0, step=2e-3, output=1.0, stepper="radau")
    assert abs(float(held.u[-1, 0])) < 1e-12 and abs(float(held.q[-1, 0] - held.q[5, 0])) < 1e-11
    system = system.with_parameters(pull=10.1)
    off = system.simulate(system.assemble(), duration=2.0, step=2e-3, output=0.5, stepper="radau")
    assert abs(float(off.u[-1, 0] - off.u[-2, 0]) / 0.5 - 0.1 / 2.0) < 1e-3 * 0.05


def test_a_brake_that_is_shaken_does_not_creep():
    """Loads that come and go within what it holds bend bristles and leave them where they were."""
    m = slider(2.0)
    m.add_brake("brake", "rail", capacity=10.0, reach=1e-4, damping=5e-3)
    m.add_wrench("shaker", "block", law=lambda at: (5.0 + 2.0 * bc.math.sin(20.0 * bc.math.pi * at.t), 0.0, 0.0))
    system = bc.compile(m)
    run = system.simulate(system.assemble(), duration=2.0, step=2e-3, output=0.1, stepper="radau")
    place = run.q.values[:, 0]
    assert np.abs(place[10:] - place[-1]).max() < 1e-12  # after as many periods as one likes
    slid = place - 1e-4 * run.u.sel(speed="brake bend.value").values
    assert 0.0 < slid[-1] < 1e-5 and np.abs(slid[1:] - slid[-1]).max() < 1e-12  # when the load came at once


def test_a_clutch_engages():
    """Two discs end with the speed that momentum gives, and stay together."""
    m = bc.Mechanism("clutch", gravity=(0, 0, 0))
    for name, inertia in (("one", 0.3), ("two", 0.1)):
        disc = m.add_body(f"{name} disc", bc.Inertia(1.0, inertia=(inertia, inertia, inertia)))
        m.add_joint(name, bc.Revolute("z"), m.ground, disc)
    m.add_clutch("clutch", "one", "two", reach=0.02, damping=0.02,
                 capacity=lambda at: bc.math.minimum(20.0 * at.t, 5.0))
    system = with_work(m)
    result = system.simulate(system.assemble(u={"one": 20.0}), duration=1.0, step=5e-4, output=1e-2)
    np.testing.assert_allclose(result.u[-1, :2], 15.0, rtol=1e-6)
    assert balance(result) < 1e-8
    lost = 0.5 * 0.3 * 400.0 - 0.5 * 0.4 * 225.0
    assert abs(float(result.u.sel(speed="work.value")[-1]) + lost) < 1e-4 * lost


def wheel(**settings: object) -> bc.Mechanism:
    m = bc.Mechanism("wheel")
    m.add_joint("free", bc.Free(), m.ground, m.add_body("wheel", bc.Inertia(10.0, inertia=(0.25, 0.45, 0.25))))
    m.add_tyre("tyre", "wheel", **{"radius": 0.3, "stiffness": 1e5, "damping": 500.0, **settings})
    return m


@pytest.mark.parametrize("model", ["brush", "magic"])
def test_a_wheel_goes_from_sliding_to_rolling(model):
    system = bc.compile(wheel(model=model, mu=0.8))
    loaded = 0.3 - 98.1 / 1e5
    state = system.project({"free": [1, 0, 0, 0, 0, 0, loaded]}, {"free": [0, 0, 0, 5.0, 0, 0]})
    first = system.element_forces(state)["tyre"]
    grip = 0.8 * 98.1 * (1.0 if model == "brush" else np.sin(1.65 * np.pi / 2.0))
    np.testing.assert_allclose(first.vector, [-grip, 0.0, 98.1], rtol=5e-3, atol=1e-9)
    result = system.simulate(state, duration=1.5, output=0.05)
    moving = system.velocity(result.q[-1].values, result.u[-1].values, "wheel")
    share = 1.0 / (1.0 + 0.45 / (10.0 * 0.3 * loaded))  # momentum about the line of contact
    assert abs(moving[3] - 5.0 * share) < 2e-3 * moving[3]
    assert abs(moving[3] - 0.3 * moving[1]) < 1e-3 and abs(moving[4]) < 1e-9


@pytest.mark.parametrize("field", [False, True])
def test_tyres_on_a_slope(field):
    """On a plane of a table or a height field: the load is along its normal, what slip makes is across that."""
    x = np.linspace(-5.0, 5.0, 3)
    heights = 0.2 * x[:, None] + 0.0 * x
    tilted = bc.HeightField(x, x, heights) if field else bc.Table((x, x), heights, extrapolate="linear", name="slope")
    system = bc.compile(wheel(height=tilted), backend="numpy")
    up = np.array([-0.2, 0.0, 1.0]) / np.sqrt(1.04)
    q = system.neutral()
    q[-3:] = np.array([1.0, 0.0, 0.2]) + up * 0.299
    force = system.element_forces(q, np.zeros(6))["tyre"]
    np.testing.assert_allclose(force.vector, 1e5 * 0.001 * up, rtol=2e-2, atol=1e-6)
    turned = system.element_forces(q, [0.0, 0.0, 0.0, 0.0, 1.0, 0.0])["tyre"]  # sliding to the left
    assert turned.vector[1] < -90.0


def test_a_wheel_coasts_down():
    """Rolling resistance: m a R_l + I a / R = -f m g R."""
    system = bc.compile(wheel(rolling=0.02))
    loaded = 0.3 - 98.1 / 1e5
    state = system.project({"free": [1, 0, 0, 0, 0, 0, loaded]}, {"free": [0, 5.0 / 0.3, 0, 5.0, 0, 0]})
    result = system.simulate(state, duration=1.5, output=0.5)
    speeds = [system.velocity(result.q[k].values, result.u[k].values, "wheel")[3] for k in (1, 3)]
    slower = -0.02 * 98.1 * 0.3 / (10.0 * loaded + 0.45 / 0.3)
    np.testing.assert_allclose(speeds[1] - speeds[0], slower, rtol=1e-3)


def test_wheels_that_are_not_at_the_origin_of_their_body():
    """The same wheel, with its center and axle elsewhere in the body: the same motion of the car's point."""
    moved = bc.Mechanism("wheel")
    inertia = bc.Inertia(10.0, (0.3, 0.5, -0.2), (0.25, 0.25, 0.45))
    turn = bc.Pose.about("x", np.pi / 2)  # its z axis is the other's -y
    moved.add_joint("free", bc.Free(), moved.ground, moved.add_body("wheel", inertia), bc.Pose(),
                    bc.Pose((0.3, 0.5, -0.2)) @ turn)
    settings = {"radius": 0.3, "stiffness": 1e5, "damping": 500.0, "half_length": 0.05, "rolling": 0.01}
    moved.add_tyre("tyre", "wheel", center=(0.3, 0.5, -0.2), axle="z", **settings)
    one, two = (bc.compile(m, backend="numpy") for m in (wheel(**settings), moved))
    q, u = [1.0, 0, 0, 0, 0.1, 0.2, 0.295], [0.1, 20.0, 0.3, 5.0, 0.2, -0.1]
    np.testing.assert_allclose(two.forward_dynamics(q, u), one.forward_dynamics(q, u), rtol=1e-9, atol=1e-8)
    for field in ("vector", "torque", "second_point"):
        a, b = (getattr(s.element_forces(q, u)["tyre"], field) for s in (one, two))
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_tyre_formulas():
    for formula in (lambda s: brush(s, 2e4, 900.0), lambda s: magic_formula(s, 2e4, 900.0, 1.65, 0.0)):
        assert abs(formula(1e-7) / 1e-7 - 2e4) < 20.0 and formula(1e-7) > 0.0
        assert max(formula(s) for s in np.linspace(0, 1, 200).tolist()) <= 900.0 + 1e-9


def test_a_brush_is_the_sum_of_its_bristles():
    """Force and trail are integrals over the contact: bristles that bend from its front edge on, and slide where the
    parabolic pressure holds them no more."""
    a, load, mu, slope = 0.06, 900.0, 0.8, 2e4
    edges = np.linspace(-a, a, 200_001)
    x = 0.5 * (edges[1:] + edges[:-1])
    pressure, stiffness = 0.75 * load / a * (1.0 - (x / a) ** 2), slope / (2.0 * a * a)
    for slip in (0.01, 0.05, 0.1, 0.2):
        push = np.minimum(stiffness * slip * (a - x), mu * pressure) * np.diff(edges)
        assert abs(brush(slip, slope, mu * load) / push.sum() - 1.0) < 1e-6
        assert abs(trail(slip, slope, mu * load, a) + (x * push).sum() / push.sum()) < 1e-7


@pytest.mark.parametrize("exponent", [1.0, 1.4])
def test_a_gas_spring_without_volume_is_named(exponent):
    """At its reach and beyond, in states and in runs; with an exponent of one, too, it never pulls there."""
    m = slider()
    m.add_gas_spring("gas", m.ground, "block", (0, 0, 0), (0, 0, 0), force=100.0, length=0.6, reach=0.5,
                     exponent=exponent)
    system = bc.compile(m, backend="numpy")
    words = r"spring 'gas'.*: it is pushed in by 0.5\d* m, and at its reach of 0.5 m.*larger reach.*add_bump_stop"
    for x in ([0.05], [[0.3], [0.05]]):
        for ask in (system.forward_dynamics, system.element_forces):
            with pytest.raises(bc.SingularError, match=words):
                ask(x, np.zeros(np.shape(x)))
    with pytest.warns(bc.SimulationWarning):
        run = system.simulate(([0.3], [-300.0]), 0.01, step=1e-3)
    assert run.attrs["status"] != "finished" and re.search("spring 'gas'.*larger reach", run.attrs["reason"])


def test_a_gas_spring_keeps_energy():
    """It is known what gas springs and belts store: no work from outside. Small motion has the stiffness of gas."""
    m = slider(2.0)
    m.add_gas_spring("gas", m.ground, "block", (0, 0, 0), (0, 0, 0), force=100.0, length=0.6, reach=0.8, exponent=1.4)
    m.add_gas_spring("other", m.ground, "block", (1.2, 0, 0), (0, 0, 0), force=100.0, length=0.6, reach=0.8,
                     exponent=1.4)
    system = bc.compile(m, backend="numpy")
    period = 2.0 * np.pi / np.sqrt(2.0 * 1.4 * 100.0 / 0.8 / 2.0)  # n F / reach each
    run = system.simulate(([0.601], [0.0]), period, step=period / 100, output=period / 4)
    assert run.attrs["energy_exchange"] == "none" and run.attrs["energy_drift"] < 1e-6
    np.testing.assert_allclose(run.q.values[:, 0] - 0.6, [1e-3, 0.0, -1e-3, 0.0, 1e-3], atol=1e-7)


def test_rest_of_them():
    m = slider(2.0)
    m.add_gas_spring("gas", m.ground, "block", (0, 0, 0), (0, 0, 0), force=100.0, length=0.6, reach=0.8, exponent=1.2)
    m.add_bump_stop("stop", m.ground, "block", (0, 0, 0), (0, 0, 0), lower=0.2, stiffness=1e3, progression=1e5)
    shaft = m.add_body("shaft", bc.Inertia(1.0, inertia=(0.1, 0.1, 0.1)))
    other = m.add_body("other", bc.Inertia(1.0, inertia=(0.1, 0.1, 0.1)))
    m.add_joint("shaft", bc.Revolute("z"), m.ground, shaft)
    m.add_joint("other", bc.Revolute("z"), m.ground, other)
    m.add_torsion_bar("bar", "shaft", length=1.0, diameter=0.02)
    m.add_belt("belt", {"shaft": 0.1, "other": 0.2}, stiffness=1e4, pretension=300.0)
    m.add_rolling_resistance("rolling", "other", coefficient=0.02, radius=0.2, load=lambda at: 50.0 + at.q("rail"))
    system = bc.compile(m, backend="numpy")
    found = system.element_forces([0.15, 0.1, 0.3], [0.0, 0.0, 5.0])
    assert abs(found["bar"].force + 124.0929) < 1e-3
    assert abs(found["belt"].force - (300.0 + 1e4 * 0.05)) < 1e-9  # the other span is loose
    taut = system.element_forces([0.15, 0.1, 0.1], [0.0, 0.0, 0.0])["belt"].force
    assert abs(taut - 2e4 * 0.01) < 1e-9  # both spans
    assert abs(found["rolling"].force + 0.02 * 0.2 * 50.15) < 1e-12
    assert abs(found["stop"].force - (50.0 + 12.5)) < 1e-9
    power = sum(float(e.power) for e in found.values())
    udot = system.forward_dynamics([0.15, 0.1, 0.3], [0.0, 0.0, 5.0])
    assert abs(power - 0.1 * 5.0 * udot[2]) < 1e-9


@pytest.mark.parametrize(("add", "said"), [
    (lambda m: m.add_gas_spring("g", m.ground, "block", (0, 0, 0), (0, 0, 0), force=1.0, length=0.0, reach=1.0),
     "gas spring 'g'.*length"),
    (lambda m: m.add_bump_stop("b", m.ground, "block", (0, 0, 0), (0, 0, 0), stiffness=1.0), "bump stop 'b'.*lower"),
    (lambda m: m.add_belt("b", {"rail": 0.1}, stiffness=1.0), "belt 'b': needs two pulleys"),
    (lambda m: m.add_belt("b", {"rail": 0.1, "hinge": 0.0}, stiffness=1.0), "belt 'b': the pulley of 'hinge'"),
    (lambda m: m.add_dc_motor("m", "rail", voltage=1.0, resistance=1.0, inductance=0.0, constant=1.0), "inductance"),
    (lambda m: m.add_brake("k", "rail", capacity=1.0, reach=0.0), "brake 'k': reach must be greater than 0"),
    (lambda m: m.add_tyre("t", "block", radius=0.3, stiffness=1.0, model="wavy"), "tyre 't': model must be"),
    (lambda m: m.add_hydraulic_cylinder("h", m.ground, "block", (0, 0, 0), (0, 0, 0), head_area=0.0, rod_area=0.1,
                                        closed=0.1, stroke=0.1), "hydraulic cylinder 'h': head_area"),
    (lambda m: m.add_hydraulic_cylinder("h", m.ground, "block", (0, 0, 0), (0, 0, 0), head_area=0.1, rod_area=0.1,
                                        closed=0.1, stroke=0.1, initial=(1e5,)), "'h': initial must be two pressures"),
    (lambda m: m.add_clutch("c", "rail", "rail", capacity=1.0), "clutch 'c': needs two joints, got 'rail' twice")])
def test_bad_numbers_are_refused_by_name(add, said):
    with pytest.raises(bc.ModelError, match=said):
        add(slider())


def test_names_of_states_are_looked_at_first():
    m = slider()
    m.add_joint("lift head", bc.Revolute("x"), "block", m.add_body("arm", bc.Inertia.sphere(1.0, 0.1)))
    with pytest.raises(bc.ModelError, match="hydraulic cylinder 'lift': its state would be called 'lift head', as a"):
        m.add_hydraulic_cylinder("lift", m.ground, "block", (0, 0, 0), (0, 0, 0), head_area=0.1, rod_area=0.1,
                                 closed=0.1, stroke=0.1)
    assert not m.springs and not m.states


def test_what_states_store():
    """Oil, a coil, a bent brake and a tyre, by their formulas."""
    m = slider()
    m.add_joint("turn", bc.Revolute("y"), "block", m.add_body("wheel", bc.Inertia(1.0, inertia=(0.1, 0.1, 0.1))),
                bc.Pose((0, 0, 0.28)))
    m.add_hydraulic_cylinder("cylinder", m.ground, "block", (-1, 0, 0), (0, 0, 0), head_area=2e-3, rod_area=1e-3,
                             closed=0.9, stroke=0.4, dead_volume=1e-5, bulk_modulus=1e9)
    m.add_dc_motor("motor", "turn", voltage=12.0, resistance=1.0, inductance=0.2, constant=0.1)
    m.add_brake("brake", "turn", capacity=3.0, reach=0.01)
    m.add_tyre("tyre", "wheel", radius=0.3, stiffness=1e5)
    system = bc.compile(m, backend="numpy")
    speeds = {"cylinder head.value": 4.0, "cylinder rod.value": 2.0, "motor current.value": 5.0,
              "brake bend.value": 0.5}
    u = [speeds.get(name, 0.0) for name in system.speed_names]
    q = np.zeros(system.nq)
    q[system.coordinate_names.index("rail.slide")] = 0.1
    found = system.element_forces(q, u)
    volumes = 1e-5 + 2e-3 * 0.2, 1e-5 + 1e-3 * 0.2  # of head and rod, half way
    expected = {"cylinder": (4e6**2 * volumes[0] + 2e6**2 * volumes[1]) / 2e9, "motor": 0.5 * 0.2 * 25.0,
                "brake": 0.5 * 3.0 * 0.01 * 0.25, "tyre": 0.5 * 1e5 * 0.02**2}
    for name, energy in expected.items():
        assert abs(found[name].energy - energy) < 1e-12 * (1.0 + energy), name


def test_a_loose_chain_does_not_damp() -> None:
    chain = Belt(1e4, 0.0, 50.0, 0.01)
    assert chain.force(0.005, 3.0) == 0.0 and chain.force(-0.01, -3.0) == 0.0
    assert chain.force(0.011, -3.0) == 0.0  # its damper does not make it push
    assert abs(chain.force(0.03, 1.0) + 250.0) < 1e-9
