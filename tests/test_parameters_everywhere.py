"""Parameters in couplers, laws of time, force laws, sums and stops: as if the numbers had been written."""

import copy
import importlib.util
import pickle

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.target.cuda import cuda_runtime
from c_library import COMPILER, exported
from host_device import COMPILER as HOST_COMPILER
from host_device import HostDevice

sin = bc.math.sin
METHODS = ("recursive", "recursive/origin", "kane", "operator", "complement", "momenta", "dense")
LOOPED = ("elimination", "dense", "kane", "recursive", "operator", "divide", "momenta")

#: what is added to three bodies in a row, with joints A, B, C; and two parameters
CASES = {
    "factors": lambda m, a, b: m.add_coupler("it", {"A": 1.0, "C": a / b}, 0.1 * a),
    "function of a coordinate": lambda m, a, b: m.add_coupler("it", {"A": lambda q: a * sin(b * q), "C": 2.0}),
    "offset by time": lambda m, a, b: m.add_coupler("it", {"A": 1.0, "C": b}, lambda t: a * sin(b * t)),
    "a coordinate held": lambda m, a, b: m.prescribe("B", a),
    "motion law": lambda m, a, b: m.prescribe("B", lambda t: a * sin(b * t)),
    "distance by time": lambda m, a, b: m.add_constraint(
        "it", bc.Distance(lambda t: 0.9 + 0.1 * a * sin(b * t)), m.ground, "c", bc.Pose((0.3, 0.9, 0)),
        bc.Pose((0, 0.3, 0))),
    "angle by time": lambda m, a, b: m.add_constraint(
        "it", bc.Angle(lambda t: 1.0 + 0.1 * a * sin(b * t), "x", "x"), m.ground, "c"),
    "wrench by time": lambda m, a, b: m.add_wrench("it", "c", force=(lambda t: a * sin(b * t), 0, 0), moment=(0, 0, a)),
    "servo": lambda m, a, b: m.add_servo("it", "A", target=lambda t: a * sin(b * t), target_rate=lambda t: a * b,
                                         stiffness=9.0, damping=b, limit=(-a, 2 * b)),
    "wind": lambda m, a, b: m.add_drag("it", "c", coefficient=a, wind=(lambda t: b * t, a, 0)),
    "stop": lambda m, a, b: m.add_limit("it", "A", -a, 0.1 * a, stiffness=10 * b, damping=a, onset=0.01 * b),
    "actuator": lambda m, a, b: m.add_actuator("it", "A", (-a, 0.3 * b), no_load_speed=b),
    "force law": lambda m, a, b: m.add_joint_force("it", "A", lambda q, u: -a * sin(b * q) - u),
    "potential": lambda m, a, b: m.add_joint_spring("it", "A", potential=lambda q: a * sin(b * q) ** 2, damping=a),
    "spring law": lambda m, a, b: m.add_spring("it", m.ground, "c", (0, 0.5, 0), (0, 0, 0),
                                               law=lambda x, v: a * (x - b)),
    "sum": lambda m, a, b: m.add_joint_spring("it", {"A": 1.0, "B": -a, "C": a / b}, stiffness=9.0, damping=a),
    "belt": lambda m, a, b: m.add_belt("it", {"A": a, "B": -b}, stiffness=10.0, pretension=b, damping=a),
}
DEFAULTS, VALUES = {"a": 0.4, "b": 1.5}, {"a": 0.6, "b": 1.2}


def chain(case, values=None):
    m = bc.Mechanism("chain")
    before = m.ground
    for name, axis in zip("ABC", "zxz", strict=True):
        body = m.add_body(name.lower(), bc.Inertia(1.0, (0.1, 0.2, 0.1), (0.1, 0.2, 0.3)))
        m.add_joint(name, bc.Revolute(axis), before, body, bc.Pose((0.3, 0, 0)))
        before = body
    a, b = (values[k] if values else m.parameter(k, x) for k, x in DEFAULTS.items())
    CASES[case](m, a, b)
    return m


def one(system, values):
    return system.with_parameters(**values) if system.parameters else system


def state_of(system):
    return system.assemble(q={"A": 0.3}, u={"A": 0.8}, t=0.4)


TAU = (0.8, 0.2, -0.1)


def check(system, plain, state):
    """The same assembly, accelerations, energy, element and joint forces."""
    found = state_of(system)
    assert np.allclose(found.q, state.q, atol=1e-4) and np.allclose(found.u, state.u, atol=1e-4)
    assert abs(plain.loop_error(found)).max(initial=0.0) < 1e-12
    assert np.allclose(system.forward_dynamics(state, TAU), plain.forward_dynamics(state, TAU), rtol=1e-9, atol=1e-9)
    assert np.allclose(system.potential_energy(state), plain.potential_energy(state), atol=1e-10)
    udot = plain.forward_dynamics(state, TAU)
    assert np.allclose(system.inverse_dynamics(state.q, state.u, udot, t=0.4),
                       plain.inverse_dynamics(state.q, state.u, udot, t=0.4), atol=1e-8)
    for name, load in plain.reactions(state, TAU).items():
        assert np.allclose(system.reactions(state, TAU)[name], load, rtol=1e-8, atol=1e-8), name
    for name, element in plain.element_forces(state, TAU).items():
        other = system.element_forces(state, TAU)[name]
        for field in ("force", "energy", "power", "vector", "torque"):
            assert np.allclose(getattr(other, field), getattr(element, field), atol=1e-10, equal_nan=True), field


@pytest.mark.parametrize("case", CASES)
def test_as_if_the_numbers_had_been_written(case):
    parametric = [bc.compile(chain(case), backend=backend) for backend in ("numpy", "llvm")]
    for values in (DEFAULTS, VALUES):
        plain = bc.compile(chain(case, values), backend="numpy")
        state = state_of(plain)
        for system in parametric:
            check(one(system, values), plain, state)


@pytest.mark.parametrize("case", CASES)
def test_derivatives(case):
    system = bc.compile(chain(case)).with_parameters(**VALUES)
    state, h = state_of(system), 1e-6
    found = system.derivatives("forward_dynamics", state, TAU, by=("q", "parameters"))
    held = [(name.partition(".")[0], i) for i, name in enumerate(system.speed_names) if name in found.columns["q"]]
    for k, name in enumerate("ab"):
        ends = []
        for change in (-h, h):
            other = system.with_parameters(**{name: VALUES[name] + change})
            near = other.assemble(*({joint: x[i] for joint, i in held} for x in (state.q, state.u)), guess=state.q,
                                  t=0.4) if system.loops else state
            ends.append(other.forward_dynamics(near, TAU))
        assert np.allclose(found["parameters"][:, k], (ends[1] - ends[0]) / (2 * h), atol=1e-5), name


@pytest.mark.parametrize("case", CASES)
def test_files_and_copies(case, tmp_path):
    machine = chain(case)
    bc.save(machine, tmp_path / "chain.yaml")
    plain = bc.compile(chain(case, VALUES), backend="numpy")
    state = state_of(plain)
    for other in (bc.load(tmp_path / "chain.yaml"), pickle.loads(pickle.dumps(bc.compile(machine).model)).mechanism,
                  copy.deepcopy(machine)):
        system = bc.compile(other, backend="numpy").with_parameters(**VALUES)
        assert np.allclose(system.forward_dynamics(state, TAU), plain.forward_dynamics(state, TAU), atol=1e-9)
    again = tmp_path / "again.yaml"
    bc.save(bc.load(tmp_path / "chain.yaml"), again)
    assert again.read_text() == (tmp_path / "chain.yaml").read_text()


# -- all methods ------------------------------------------------------------------------------------
def held_in_loops(values=None):
    """A coupler with a ratio and an offset by time, a cam, a constraint by time and a prescribed motion at once."""
    m = bc.Mechanism("closed")
    a, b = (values[k] if values else m.parameter(k, x) for k, x in DEFAULTS.items())
    before = m.ground
    for name, axis in zip("ABCDE", "zxzyz", strict=True):
        body = m.add_body(name.lower(), bc.Inertia(1.0, (0.1, 0.2, 0.1), (0.1, 0.2, 0.3)))
        m.add_joint(name, bc.Revolute(axis), before, body, bc.Pose((0.3, 0.05, 0.1)))
        before = body
    m.prescribe("B", lambda t: a * sin(b * t))
    m.add_coupler("gear", {"A": 1.0, "C": -a / b}, lambda t: 0.2 + 0.1 * a * sin(t))
    m.add_coupler("cam", {"A": lambda q: a * sin(b * q), "D": 2.0})
    m.add_constraint("plane", bc.PointOnPlane("x", lambda t: 1.35 + 0.05 * a * sin(b * t)), m.ground, "e", bc.Pose(),
                     bc.Pose((0.3, 0.4, 0.1)))
    m.add_joint_spring("cable", {"A": a, "E": -b}, stiffness=20.0 * b, damping=a)
    return m


def closed_state(system):
    return system.assemble(q={"A": 0.3}, u={"A": 0.8}, t=0.4)


@pytest.mark.everyday(6)
@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
@pytest.mark.parametrize("method", LOOPED)
def test_methods_with_loops(method, schedule):
    system = bc.compile(held_in_loops(), method, schedule=schedule).with_parameters(**VALUES)
    plain = bc.compile(held_in_loops(VALUES), backend="numpy")
    state = closed_state(plain)
    found, tau = closed_state(system), np.arange(5) * 0.1
    assert np.allclose(found.q, state.q, atol=1e-9) and np.allclose(found.u, state.u, atol=1e-9)
    assert np.allclose(system.forward_dynamics(state, tau), plain.forward_dynamics(state, tau), atol=1e-9)
    for name, load in plain.reactions(state, tau).items():
        assert np.allclose(system.reactions(state, tau)[name], load, atol=1e-9), name


@pytest.mark.everyday(5)
@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
@pytest.mark.parametrize("method", METHODS)
def test_methods_of_trees(method, schedule):
    def machine(values=None):
        m = chain("motion law", values)
        a, b = (values[k] if values else m.parameter(f"own {k}", x) for k, x in DEFAULTS.items())
        m.add_wrench("push", "c", force=(lambda t: a * sin(b * t), 0, 0))
        m.add_joint_force("law", "C", lambda q, u: -a * sin(b * q) - u)
        return m

    values = VALUES | {f"own {name}": x for name, x in VALUES.items()}
    system, plain = bc.compile(machine(), method, schedule=schedule), bc.compile(machine(VALUES), backend="numpy")
    system, state = system.with_parameters(**values), state_of(plain)
    assert np.allclose(system.forward_dynamics(state, TAU), plain.forward_dynamics(state, TAU), atol=1e-10)
    assert np.allclose(system.bias(state), plain.bias(state), atol=1e-10)


# -- runs --------------------------------------------------------------------------------------------------------
def pendulum(values=None):
    m = bc.load("pendulum")
    bound, e, gain = (values[k] if values else m.parameter(k, x) for k, x in
                      (("bound", -0.4), ("e", 0.5), ("gain", 1.0)))
    return m, bound, e, gain


@pytest.mark.parametrize("traced", [True, False])
def test_events_read_parameters(traced):
    def run(system, bound, gain):
        def function(t, q, u):
            return q["hinge"] - (bound * bc.math.cos(gain * t) if traced or float(t) >= 0.0 else 0.0)

        return system.simulate(([1.0], [0.0]), 1.0, events=[bc.Event(function, "there", -1, "stop")], step=1e-3)

    given = {"bound": 0.3, "e": 0.7, "gain": 2.0}
    m, bound, _, gain = pendulum()
    times = run(bc.compile(m).with_parameters(**given), bound, gain).event_time.values
    assert len(times) == 1
    assert np.allclose(times, run(bc.compile(pendulum(given)[0]), 0.3, 2.0).event_time.values, atol=1e-12)
    bounds = bc.compile(m).with_parameters(**{**given, "bound": np.array([0.3, 0.5])})
    many = run(bounds, bound, gain)
    assert np.allclose(np.sort(many.event_time.values.ravel())[-1], times[0], atol=1e-12) and many.event_time.size == 2
    if traced:
        with pytest.raises(bc.ModelError, match=r"event 'there': no parameter 'bound' in 'pendulum'"):
            run(bc.compile(bc.load("pendulum")), bound, gain)


def test_rigid_stops_by_parameters():
    given = {"bound": 0.2, "e": 0.7, "gain": 1.0}
    m, bound, e, _ = pendulum()
    system, plain = bc.compile(m).with_parameters(**given), bc.compile(pendulum(given)[0])
    stops, numbers = bc.joint_limit("hinge", bound, restitution=e), bc.joint_limit("hinge", 0.2, restitution=0.7)
    runs = [s.simulate(([1.0], [0.0]), 4.0, step=1e-3, events=events) for s, events in (
        (system, stops), (plain, numbers))]
    assert np.allclose(runs[0].q, runs[1].q, atol=1e-12) and len(runs[0].event_time) == len(runs[1].event_time) > 2
    assert stops[0].name == "hinge at its lower stop"
    with pytest.raises(bc.ModelError, match="restitution must be between 0 and 1, got 2 by the values of parameters"):
        system.with_parameters(e=2.0).simulate(([1.0], [0.0]), 2.0, step=1e-3, events=stops)
    with pytest.raises(bc.StateError, match="begins at 0.1, beyond its lower stop at 0.2"):
        system.simulate(([0.1], [0.0]), 1.0, events=stops)


def test_sensitivities_of_events_and_controllers():
    """By a bound, a restitution, the threshold of an event, what its action reads, and a gain."""
    m, bound, e, gain = pendulum()
    kick = m.parameter("kick", 0.3)
    system = bc.compile(m).with_parameters(bound=0.3, e=0.6, gain=0.5)

    def act(state, system):
        return bc.State(state.q, [state.u[0] * system.parameters["kick"]], state.t)

    events = [*bc.joint_limit("hinge", bound, restitution=e),
              bc.Event(lambda t, q, u: q["hinge"] - 1.2 * bound, "up", 1, act)]
    control = bc.Traced(lambda t, q, u: {"hinge": kick - gain * u["hinge"]})

    def run(system, **more):
        return system.simulate(([1.0], [0.0]), 0.8, step=0.02, output=0.8, stepper="rk4", events=events,
                               control=control, **more)

    names, h = ["bound", "e", "gain", "kick"], 1e-6
    found = run(system, sensitivities=names)
    assert len(found.event_time) >= 2
    for name in names:
        low, high = (run(system.with_parameters(**{name: system.parameters[name] + x})) for x in (-h, h))
        wanted = (high.q.values[-1] - low.q.values[-1]) / (2 * h)
        assert np.allclose(np.ravel(found[f"d_q_{name}"].values[-1]), wanted, atol=1e-4), name
        assert abs(wanted).max() > 1e-3


# -- controllers, batches, code ---------------------------------------------------------------------
@pytest.mark.everyday(5)
@pytest.mark.parametrize("case", CASES)
def test_runs_of_batches(case):
    arrays = {name: np.array([x, VALUES[name]]) for name, x in DEFAULTS.items()}
    system = bc.compile(chain(case)).with_parameters(**arrays)
    plain = [bc.compile(chain(case, {name: float(x[i]) for name, x in arrays.items()})) for i in range(2)]
    states = [state_of(one) for one in plain]
    run = system.simulate(bc.State(*(np.array(x) for x in zip(*((s.q, s.u) for s in states), strict=True)), 0.4), 0.1,
                          step=0.01, stepper="rk4")
    for i, (one, state) in enumerate(zip(plain, states, strict=True)):
        alone = one.simulate(state, 0.1, step=0.01, stepper="rk4")
        assert np.allclose(run.q.values[:, i], alone.q, atol=1e-12)
        assert np.allclose(run.reactions().isel(sample=i), alone.reactions(), atol=1e-8)


def test_batches_are_assembled_by_their_motions():
    system = bc.compile(chain("motion law")).with_parameters(a=np.array([0.4, 0.6]))
    state = system.assemble(q={"A": 0.1}, t=0.4)
    for i, a in enumerate((0.4, 0.6)):
        alone = bc.compile(chain("motion law", {**DEFAULTS, "a": a})).assemble(q={"A": 0.1}, t=0.4)
        assert np.allclose(state.q[i], alone.q) and np.allclose(state.u[i], alone.u)
    with pytest.raises(bc.StateError, match=r"the batch of parameters does not fit the states \(3,\)"):
        system.assemble(q={"A": np.array([0.1, 0.2, 0.3])}, t=0.4)


def test_laws_of_several_coordinates(tmp_path):
    def machine(values=None):
        m = bc.Mechanism("several")
        a = values["a"] if values else m.parameter("a", 0.4)
        bodies = [m.add_body(name, bc.Inertia(1.0, (0.1, 0.2, 0.1), (0.1, 0.2, 0.3))) for name in "abc"]
        m.add_joint("ball", bc.Spherical(), m.ground, bodies[0])
        m.add_joint("plane", bc.Planar("z"), bodies[0], bodies[1], bc.Pose((0.2, 0, 0)))
        m.add_joint("hinge", bc.Revolute("z"), bodies[1], bodies[2], bc.Pose((0.2, 0, 0)))
        m.prescribe("ball", lambda t: [bc.math.cos(a * t), sin(a * t), 0.0, 0.0])
        m.prescribe("plane", lambda t: [a * t, t * t, 0.1 * a])
        return m

    plain = bc.compile(machine({"a": 0.7}), backend="numpy")
    state = plain.assemble(q={"hinge": 0.2}, u={"hinge": 1.0}, t=0.4)
    bc.save(machine(), tmp_path / "several.yaml")
    for m in (machine(), bc.load(tmp_path / "several.yaml")):
        system = bc.compile(m).with_parameters(a=0.7)
        found = system.assemble(q={"hinge": 0.2}, u={"hinge": 1.0}, t=0.4)
        assert np.allclose(found.q, state.q) and np.allclose(found.u, state.u)
        assert np.allclose(system.forward_dynamics(state), plain.forward_dynamics(state))
        assert np.allclose(system.drive_forces(state), plain.drive_forces(state))


def test_traced_controllers_in_batches():
    m = bc.load("four_bar")
    gain = m.parameter("gain", 2.0)
    system, gains = bc.compile(m), np.array([1.0, 3.0])
    state = system.assemble(q={"A": 0.5}, u={"A": 1.0})
    for period in (None, 0.05):
        control = bc.Traced(lambda t, q, u: {"A": 5.0 - gain * u["A"]}, period)
        run = system.with_parameters(gain=gains).simulate(state, 0.2, step=0.01, control=control)
        for i, value in enumerate(gains):
            alone = system.simulate(state, 0.2, step=0.01, control=bc.Traced(
                lambda t, q, u, value=value: {"A": 5.0 - value * u["A"]}, period))
            assert np.allclose(run.q.values[:, i], alone.q, atol=1e-13)


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
@pytest.mark.everyday(4)
@pytest.mark.parametrize("case", CASES)
def test_exported_code(case, tmp_path):
    """C, and CasADi where it is installed."""
    system, plain = bc.compile(chain(case)), bc.compile(chain(case, VALUES), backend="numpy")
    state, values = state_of(plain), list(VALUES.values())
    given = {"q": state.q, "u": state.u, "tau": np.array(TAU), "t": 0.4, "parameters": values}
    expected = plain.forward_dynamics(state, TAU)
    status, found, _ = exported(system, ["forward_dynamics"], tmp_path)("forward_dynamics", given, 3)
    assert status == 0 and np.allclose(found, expected, atol=1e-10)
    if importlib.util.find_spec("casadi"):
        f = bc.to_casadi(system, "forward_dynamics")
        found = f(*(given[f.name_in(i)] for i in range(f.n_in())))
        assert np.allclose(np.array(found).ravel(), expected, atol=1e-9)


@pytest.mark.skipif(HOST_COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("case", ["factors", "motion law", "sum"])
def test_cuda_text(case, monkeypatch):
    device = HostDevice()
    monkeypatch.setattr(cuda_runtime, "current", lambda: device)
    cuda_runtime.made.cache_clear()
    system = bc.compile(chain(case), backend="cuda").with_parameters(**VALUES)
    plain = bc.compile(chain(case, VALUES))
    state = state_of(plain)
    q, u = (np.repeat(x[None], 40, 0) for x in (state.q, state.u))
    assert np.allclose(system.forward_dynamics(q, u, TAU, t=0.4), plain.forward_dynamics(q, u, TAU, t=0.4), atol=1e-10)
    assert device.functions  # it was the device
    cuda_runtime.made.cache_clear()


# -- what is refused --------------------------------------------------------------------------------
def test_what_takes_no_parameter_says_so(tmp_path):
    m = bc.load("pendulum")
    a = m.parameter("a", 1.0)
    for said, make in {
        "range of 'hinge': lower takes a number, not a parameter": lambda: m.set_range("hinge", a, 2.0),
        "Sphere: radius takes a number, not a parameter": lambda: bc.Sphere(a),
        "values must be an array of numbers": lambda: bc.Table([0.0, 1.0], [0.0, a], extrapolate="hold"),
        "exponent must be a number, not a parameter": lambda: m.add_gas_spring(
            "gas", m.ground, "bob", (1, 0, 0), (0, 0, 0), force=1.0, length=1.0, reach=1.0, exponent=a),
        "control: a Python function cannot use parameters as they are": lambda: bc.compile(m).simulate(
            ([0.1], [0.0]), 0.1, step=0.01, control=lambda t, q, u: [a]),
    }.items():
        with pytest.raises((bc.BellcrankError, bc.SimulationWarning), match=said):
            make()
    m.add_joint_force("f", "hinge", lambda q, u: a * bc.Table([-9.0, 9.0], [-9.0, 9.0], extrapolate="hold")(q))
    with pytest.raises(bc.ModelError, match="'f': a law that uses a table and parameters cannot be written"):
        bc.save(m, tmp_path / "m.yaml")
