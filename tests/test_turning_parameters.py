"""Axes and orientations that depend on parameters: as if the numbers had been written."""

import numpy as np
import pytest

import bellcrank as bc

METHODS = ("recursive", "recursive/origin", "kane", "operator", "complement", "momenta", "dense")
LOOPED = ("elimination", "dense", "kane", "recursive", "operator", "reduction", "momenta", "divide", "complement")
DEFAULTS, VALUES = (0.3, -0.2, 0.9, 0.4), (0.5, 0.1, 0.7, -0.2)


def chain(values=None):
    """Joints of every type with axes, and poses, of parameters; or of these values."""
    m = bc.Mechanism("chain")
    if values is None:
        values = [m.parameter(name, x) for name, x in zip("abcd", DEFAULTS, strict=True)]
    a, b, c, d = values
    bodies = [m.add_body(f"b{i}", bc.Inertia(1.0 + 0.2 * i, (0.1, 0.2 - 0.1 * i, 0.3), (0.02, 0.03, 0.04)))
              for i in range(9)]
    places = m.ground, *bodies
    joints = (bc.Revolute((a, b, c)), bc.Universal((a, b, c), (d, 0.5, -b)), bc.Prismatic((c, 1.0, a)),
              bc.Cylindrical((a, d, 1.0)), bc.Screw((0.2, b, c), d), bc.Planar((0.5, a, 1.0)), bc.Spherical(),
              bc.Weld(), bc.Revolute("y"))
    for i, joint in enumerate(joints):
        ends = (places[i], places[i + 1]) if i % 3 else (places[i + 1], places[i])  # some towards the ground
        first = bc.Pose.about((1.0, d, 0.0), c, (0.1, a, 0.2)) if i > 5 else bc.Pose((a, 0, b))
        second = bc.Pose.rpy((0, 0.1, d), a, b, c) if i > 4 else bc.Pose((0, 0.1, 0.2), (0.8, 0.6, 0, 0))
        m.add_joint(f"j{i}", joint, *ends, first, second)
    m.add_spring("spring", bodies[-1], m.ground, (0.1, 0, a), (1, 1, 1), stiffness=30.0, damping=2.0)
    return m


def values(system):
    return system.with_parameters(**dict(zip("abcd", VALUES, strict=True)))


@pytest.fixture(scope="module")
def numbers():
    system = bc.compile(chain(VALUES), backend="numpy")
    rng = np.random.default_rng(3)
    q, u = system.random_state(rng)
    return q, u, system.forward_dynamics(q, u), system


@pytest.mark.parametrize("method", METHODS)
def test_trees(numbers, method):
    q, u, udot, plain = numbers
    system = values(bc.compile(chain(), method, "numpy"))
    assert np.allclose(system.forward_dynamics(q, u), udot, rtol=1e-11, atol=1e-11)
    for body in ("b2", "b6", "b8"):
        assert abs(system.pose(q, body).rotation - plain.pose(q, body).rotation).max() < 1e-14
        found, expected = (s.velocity(q, u, body, (0.1, 0.2, 0.3)) for s in (system, plain))
        assert abs(found - expected).max() < 1e-12
    for name, load in plain.reactions(q, u).items():
        assert np.allclose(system.reactions(q, u)[name], load, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
def test_compiled(numbers, schedule, tmp_path):
    q, u, udot, _ = numbers
    system = values(bc.compile(chain(), schedule=schedule))
    assert np.allclose(system.forward_dynamics(q, u), udot, rtol=1e-11, atol=1e-11)
    many = system.with_parameters(a=np.linspace(0.4, 0.6, 11))
    assert np.allclose(many.forward_dynamics(q, u)[5], udot, rtol=1e-11, atol=1e-11)
    bc.save(chain(), tmp_path / "chain.yaml")
    again = values(bc.compile(bc.load(tmp_path / "chain.yaml"), schedule=schedule))
    assert np.allclose(again.forward_dynamics(q, u), udot, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("function", "count", "more"), [
    ("forward_dynamics", 2, {}), ("pose", 1, {"body": "b8"}), ("mass_matrix", 1, {})])
def test_derivatives_of_trees(numbers, function, count, more):
    arguments, system = numbers[:count], values(bc.compile(chain(), backend="numpy"))
    d = system.derivatives(function, *arguments, by="parameters", **more)["parameters"]
    for i, name in enumerate("abcd"):
        low, high = (system.with_parameters(**{name: VALUES[i] + h}).derivatives(
            function, *arguments, by="parameters", **more) for h in (-1e-6, 1e-6))
        found = (np.asarray(high.value) - np.asarray(low.value)) / 2e-6
        assert np.allclose(d[..., i], found, rtol=1e-6, atol=1e-6 * abs(found).max()), name


# -- loops ------------------------------------------------------------------------------------------
POINTS = np.array([[0, 0, 0], [0.0, 0.3, 0.1], [0.9, 0.6, 0.2], [1.0, 0.05, 0], [0.3, 0.1, 1.0]])
NAMES = [f"P{i}{c}" for i in range(5) for c in "xyz"]
MOVED = POINTS + np.random.default_rng(1).normal(size=(5, 3)) * 0.03
HARDPOINTS = dict(zip(NAMES, MOVED.ravel().tolist(), strict=True))


def linkage(points=None):
    """A spatial linkage of hardpoints, through which the axes of its joints go."""
    m = bc.Mechanism("linkage", gravity=(0, -9.81, 0))
    if points is None:
        points = np.array([m.parameter(n, x) for n, x in zip(NAMES, POINTS.ravel(), strict=True)]).reshape(5, 3)
    a, b, c, d, e = points
    crank, rod, rocker = (m.add_body(name, bc.Inertia(mass, com, (0.02, 0.03, 0.04))) for name, mass, com in (
        ("crank", 1.0, (0, 0.15, 0.05)), ("rod", 2.0, (0.45, 0.45, 0.1)), ("rocker", 1.5, (0.95, 0.3, 0.1))))
    m.add_joint("A", bc.Revolute(e - a), m.ground, crank, at=a)
    m.add_joint("B", bc.Spherical(), crank, rod, at=b)
    m.add_joint("C", bc.Universal((0, 0, 1), (1, 0, 0)), rod, rocker, at=c)
    m.add_joint("D", bc.Revolute(e - c), m.ground, rocker, at=d)
    m.add_frame("tip", rocker, bc.Pose(c))
    return m


@pytest.mark.everyday(12)
@pytest.mark.parametrize("cut", ["A", "B", "C", "D"])
@pytest.mark.parametrize("method", LOOPED)
def test_loops(method, cut):
    plain = bc.compile(linkage(MOVED), backend="numpy", cut=[cut])
    system = bc.compile(linkage(), method, "numpy", cut=[cut]).with_parameters(**HARDPOINTS)
    state = plain.assemble(q={"A": 0.3}, u={"A": 2.0})
    assert np.allclose(system.assemble(q={"A": 0.3}, u={"A": 2.0}).q, state.q, atol=1e-13) and system.dof == 1
    assert np.allclose(system.forward_dynamics(state), plain.forward_dynamics(state), rtol=1e-11, atol=1e-11)
    for name, load in plain.reactions(state).items():
        assert np.allclose(system.reactions(state)[name], load, rtol=1e-10, atol=1e-10)


def test_runs_of_loops():
    system = bc.compile(linkage()).with_parameters(**HARDPOINTS)
    plain = bc.compile(linkage(MOVED))
    runs = [s.simulate(s.assemble(q={"A": 0.3}, u={"A": 2.0}), 0.3, step=1e-3) for s in (system, plain)]
    assert abs(runs[0].q.values - runs[1].q.values).max() < 1e-10


def test_frames_bushings_and_inertias():
    def machine(x=None):
        m = bc.Mechanism("mount")
        x = m.parameter("x", 0.2) if x is None else x
        own = bc.Inertia(1.0, (0.1, 0, 0.2), (0.1, 0.2, 0.3)).transformed(bc.Pose.about("y", x, (0, x, 0)))
        m.add_joint("free", bc.Free(), m.ground, m.add_body("body", own))
        m.add_frame("mark", "body", bc.Pose.about((0, x, 1), 0.5, (x, 0, 0)))
        m.add_bushing("rubber", m.ground, "body", bc.Pose.about("x", x), bc.Pose.rpy((0.1, 0, x), x, 0.1, 0.2),
                      stiffness=(100, 200, 300), turn_stiffness=(3, 4, 5), damping=(1, 2, 3))
        m.add_output("lean", lambda at: at.axes("mark")[2].x + at.position("mark", (0.1, 0.2, 0.3)).y)
        return m

    system, plain = bc.compile(machine()).with_parameters(x=0.7), bc.compile(machine(0.7), backend="numpy")
    q, u = plain.random_state(np.random.default_rng(0))
    assert np.allclose(system.forward_dynamics(q, u), plain.forward_dynamics(q, u), rtol=1e-12, atol=1e-11)
    found, expected = (s.element_forces(q, u)["rubber"] for s in (system, plain))
    assert np.allclose(found.torque, expected.torque) and np.allclose(found.energy, expected.energy)
    for batch in (system, system.with_parameters(x=np.array([0.7, 0.8]))):
        turn = batch.pose(q, "mark").rotation.reshape(-1, 3, 3)[0]
        assert np.allclose(turn, plain.pose(q, "mark").rotation, atol=1e-14)
    leans = [s.simulate((q, u), 2e-3, step=1e-3).outputs()["lean"].values for s in (system, plain)]
    assert np.allclose(*leans, atol=1e-12)
    d = system.derivatives("pose", q, by="x", body="mark")
    low, high = (system.with_parameters(x=0.7 + h).pose(q, "mark") for h in (-1e-6, 1e-6))
    assert np.allclose(d["x"].ravel()[:9], ((high.rotation - low.rotation) / 2e-6).ravel(), atol=1e-8)


@pytest.mark.parametrize("method", ["elimination", "dense", "kane", "operator", "momenta"])
def test_couplers_rotors_drives_and_prescribed_motion(method):
    def machine(x=None):
        m = bc.Mechanism("geared")
        x = m.parameter("x", 0.2) if x is None else x
        a, b, c = (m.add_body(name, bc.Inertia(1.0, (0.1, 0.1, 0.2), (0.1, 0.2, 0.3))) for name in "abc")
        m.add_joint("A", bc.Revolute((x, 0, 1)), m.ground, a)
        m.add_joint("B", bc.Cylindrical((1, x, 0)), a, b, bc.Pose((0.3, 0, 0)))
        m.add_joint("C", bc.Screw((0, 1, x), 0.1), b, c, bc.Pose((0, 0.2, 0)))
        m.add_armature("rotor", "A", 0.3)
        m.add_actuator("motor", "C", 1.0)
        m.add_coupler("gear", {"A": 1.0, "C": 2.0})
        m.prescribe("B", lambda t: 0.1 * bc.math.sin(3.0 * t), m.joint("B").joint.speed_names[1])
        return m

    system, plain = (bc.compile(m, method, "numpy") for m in (machine(), machine(0.7)))
    system = system.with_parameters(x=0.7)
    state, tau = plain.assemble(q={"A": 0.3}, u={"A": 1.0}, t=0.4), [0.1, 0.2, 0.3, 0.4]
    assert np.allclose(system.forward_dynamics(state, tau), plain.forward_dynamics(state, tau), rtol=1e-11, atol=1e-11)
    for name, load in plain.reactions(state, tau).items():
        assert np.allclose(system.reactions(state, tau)[name], load, rtol=1e-10, atol=1e-10), name


@pytest.mark.parametrize("looped", [False, True])
def test_bodies_that_deform(looped):
    def machine(x=None):
        m = bc.Mechanism("bent")
        x = m.parameter("x", 0.2) if x is None else x
        section = bc.BeamSection.round(0.01, E=2.1e10, rho=7850.0)
        m.add_body("rod", bc.FlexibleBody.beam(0.5, section, elements=4, modes=2, names={"tip": 4}))
        m.add_joint("A", bc.Revolute((x, 1, 0)), m.ground, "rod")
        arm = m.add_body("arm", bc.Inertia(0.3, (0.1, 0.1, 0.2), (0.01, 0.02, 0.03)))
        m.add_joint("C", bc.Revolute((0, 1, x)), *((arm, "rod.tip") if looped else ("rod.tip", arm)),
                    bc.Pose.about("z", x))
        if looped:
            m.add_joint("D", bc.Spherical(), arm, m.ground, bc.Pose((0.1, 0, 0)), bc.Pose((0.6, 0, 0)))
        return m

    system, plain = (bc.compile(m, backend="numpy") for m in (machine(), machine(0.7)))
    q, u = plain.assemble().q, np.zeros(plain.nu)
    if not looped:
        q, u = [0.3, 0.01, 0.02, 0.2], [0.1, 0.2, 0.3, 0.4]
    found, expected = (s.forward_dynamics(q, u) for s in (system.with_parameters(x=0.7), plain))
    assert np.allclose(found, expected, rtol=1e-11, atol=1e-12 * abs(expected).max())


def test_a_cut_joint_is_locked_where_it_is():
    for system in (bc.compile(linkage(MOVED), backend="numpy", cut=["D"]),
                   bc.compile(linkage(), backend="numpy", cut=["D"]).with_parameters(**HARDPOINTS)):
        state = system.assemble(q={"A": 0.3})
        locked = system.lock("D")
        assert locked.dof == 0 and abs(locked.loop_error(state)).max() < 1e-14


def test_pictures_show_axes_where_they_are(tmp_path):
    system = values(bc.compile(chain()))
    run = system.simulate(system.random_state(np.random.default_rng(0)), 0.01, step=1e-3)
    assert run.animate(tmp_path / "chain.html") and len(chain()._repr_html_()) > 1000


# -- constraints and errors -------------------------------------------------------------------------
def test_axes_of_constraints():
    def machine(x=None):
        m = bc.Mechanism("slot")
        x = m.parameter("x", 0.2) if x is None else x
        m.add_joint("free", bc.Free(), m.ground, m.add_body("body", bc.Inertia(1.0, (0.1, 0, 0), (0.1, 0.2, 0.3))))
        m.add_constraint("line", bc.PointOnLine((1.0, x, 0.3)), m.ground, "body", bc.Pose((0, 0, x)))
        m.add_constraint("angle", bc.Angle(1.2, (0, x, 1), (x, 0, 1)), m.ground, "body", bc.Pose(),
                         bc.Pose.about("x", x))
        return m

    system, plain = (bc.compile(m, backend="numpy") for m in (machine(), machine(0.7)))
    system = system.with_parameters(x=0.7)
    state = plain.assemble(guess={"free": (1, 0.1, 0.2, 0.1, 0.3, 0.2, 0.9)}, u={"free.wx": 0.5})
    assert abs(system.loop_error(state)).max() < 1e-14
    assert np.allclose(system.forward_dynamics(state), plain.forward_dynamics(state), rtol=1e-11, atol=1e-11)


def test_what_is_no_axis_and_no_rotation_is_refused():
    m = bc.Mechanism("bad")
    zero, other = m.parameter("zero", 0.0), bc.Mechanism("other").parameter("x", 1.0)
    m.add_body("body", bc.Inertia(1.0))
    with pytest.raises(bc.ModelError, match="joint 'hinge': an axis has no direction"):
        m.add_joint("hinge", bc.Revolute((zero, zero, 0.0)), m.ground, "body")
    with pytest.raises(bc.ModelError, match="parameter of another mechanism"):
        m.add_joint("hinge", bc.Revolute((other, 0.0, 1.0)), m.ground, "body")
    with pytest.raises(bc.ModelError, match="not a rotation matrix"):
        m.add_joint("hinge", bc.Revolute(), m.ground, "body", bc.Pose((0, 0, 0), [[zero, 0, 0], [0, 1, 0], [0, 0, 1]]))
    with pytest.raises(bc.ModelError, match="axis1 and axis2 are parallel"):
        m.add_joint("hinge", bc.Universal((1.0, zero, zero), "x"), m.ground, "body")
