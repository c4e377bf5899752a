"""Linear models and modes against closed forms, the energy method and the nonlinear motion."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
from scipy.linalg import expm

import bellcrank as bc
from bellcrank.system import state_slopes
from test_analysis_equilibrium import energy, sprung_four_bar


def rk4(system: bc.System, q: np.ndarray, u: np.ndarray, duration: float, steps: int, tau: np.ndarray | None = None
        ) -> tuple[np.ndarray, np.ndarray]:
    """A plain integrator on the configuration manifold."""
    h = duration / steps
    for _ in range(steps):
        k1 = system.forward_dynamics(q, u, tau)
        u2 = u + h / 2 * k1
        k2 = system.forward_dynamics(system.integrate(q, h / 2 * u), u2, tau)
        u3 = u + h / 2 * k2
        k3 = system.forward_dynamics(system.integrate(q, h / 2 * u2), u3, tau)
        u4 = u + h * k3
        k4 = system.forward_dynamics(system.integrate(q, h * u3), u4, tau)
        q = system.integrate(q, h / 6 * (u + 2 * u2 + 2 * u3 + u4))
        u = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return q, u


def double_pendulum_matrices() -> tuple[np.ndarray, np.ndarray]:
    """Two uniform rods of 1 kg and 1 m, relative angles, hanging."""
    g = 9.81
    mass = np.array([[1 / 3 + 1 + 1 / 3 + 1.0, 1 / 3 + 0.5], [1 / 3 + 0.5, 1 / 3]])
    stiffness = g * np.array([[0.5 + 1.0 + 0.5, 0.5], [0.5, 0.5]])
    return mass, stiffness


def rods() -> bc.Mechanism:
    m = bc.Mechanism("rods")
    upper = m.add_body("upper", bc.Inertia.rod(1.0, (0, 0, 0), (0, 0, -1)))
    lower = m.add_body("lower", bc.Inertia.rod(1.0, (0, 0, 0), (0, 0, -1)))
    m.add_joint("shoulder", bc.Revolute("x"), m.ground, upper)
    m.add_joint("elbow", bc.Revolute("x"), upper, lower, parent_pose=bc.Pose((0, 0, -1)))
    return m


def test_pendulum() -> None:
    m = bc.Mechanism("rod")
    m.add_joint("hinge", bc.Revolute("x"), m.ground, m.add_body("rod", bc.Inertia.rod(2.0, (0, 0, 0), (0, 0, -0.7))))
    m.add_joint_spring("damper", "hinge", stiffness=0.0, damping=0.4)
    system = bc.compile(m)
    state = bc.analyze.equilibrium(system)
    inertia, square = 2.0 * 0.49 / 3, 1.5 * 9.81 / 0.7
    model = bc.analyze.linearize(system, state)
    assert np.abs(model.A - [[0, 1], [-square, -0.4 / inertia]]).max() < 1e-11 * square
    assert np.abs(model.B - [[0], [1 / inertia]]).max() < 1e-13 / inertia
    assert np.abs(model.C - np.eye(2)).max() < 1e-12
    assert not model.D.any()
    assert model.states == ("hinge", "hinge.rate") and model.inputs == ("hinge",)
    assert model.outputs == ("hinge.angle", "hinge.angle.rate")
    assert model.error < 1e-10
    assert bc.analyze.modes(system, state).frequencies[0] == pytest.approx(np.sqrt(square) / (2 * np.pi), rel=1e-12)
    damped = bc.analyze.modes(system, state, damped=True)
    assert damped.angular[0] == pytest.approx(np.sqrt(square), rel=1e-11)
    assert damped.damping[0] == pytest.approx(0.4 / inertia / (2 * np.sqrt(square)), rel=1e-10)


def test_double_pendulum() -> None:
    system = bc.compile(rods())
    found = bc.analyze.modes(system, bc.analyze.equilibrium(system, {"shoulder": 1.0}))
    mass, stiffness = double_pendulum_matrices()
    assert np.abs(found.mass - mass).max() < 1e-13
    assert np.abs(found.stiffness - stiffness).max() < 1e-10
    squares = np.linalg.eigvals(np.linalg.solve(mass, stiffness))
    assert np.abs(found.angular**2 - np.sort(squares)).max() < 1e-10 * squares.max()
    for value, shape in zip(found.angular, found.shapes, strict=True):
        assert np.abs((stiffness - value**2 * mass) @ shape).max() < 1e-9
    assert np.abs(found.participation.sum(axis=1) - 1.0).max() < 1e-14
    assert "0.42" in str(found) and len(found) == 2
    assert found.shape(0)["shoulder.angle"] == found.shapes[0][0]
    upright = bc.analyze.modes(system, bc.analyze.equilibrium(system, {"shoulder": np.pi}, stable=False))
    assert upright.unstable.any() and "unstable" in str(upright)


def test_four_bar_by_the_energy_method() -> None:
    """Effective inertia from the kinetic energy, stiffness from second differences of the energy."""
    system = bc.compile(sprung_four_bar(), actuated=["A"])
    rest = bc.analyze.equilibrium(system, {"A": 0.8})
    found = bc.analyze.modes(system, rest)
    inertia = 2.0 * float(system.kinetic_energy(rest.q, system.assemble(q=rest.q, u={"A": 1.0}).u))

    def at(a: float) -> float:
        return energy(system, system.assemble(q={"A": rest.q[0] + a}, guess=rest.q).q)

    def second(h: float) -> float:
        return (at(h) - 2 * at(0.0) + at(-h)) / h**2

    h = 8e-3
    stiffness = (64 * second(h / 4) - 20 * second(h / 2) + second(h)) / 45
    assert found.mass[0, 0] == pytest.approx(inertia, rel=1e-12)
    assert found.stiffness[0, 0] == pytest.approx(stiffness, rel=1e-7)
    assert found.frequencies[0] == pytest.approx(np.sqrt(stiffness / inertia) / (2 * np.pi), rel=1e-7)
    assert np.abs(system.loop_rate_error(rest.q, found.shapes[0])).max() < 1e-12


@pytest.mark.parametrize("scale", (1e-3, 1e-4))
def test_linear_model_follows_the_nonlinear_motion(scale: float) -> None:
    system = bc.compile(sprung_four_bar(), actuated=["A"])
    rest = bc.analyze.equilibrium(system, {"A": 0.8})
    model = bc.analyze.linearize(system, rest)
    x = scale * np.array([1.0, 3.0])
    start = model.nearby(x)
    assert np.abs(system.loop_error(start.q)).max() < 1e-12
    assert np.abs(system.loop_rate_error(start.q, start.u)).max() < 1e-12
    q, u = rk4(system, start.q, start.u, 0.3, 300)
    expected = model.y0 + model.C @ (expm(0.3 * model.A) @ x)
    assert np.abs(np.concatenate([q, u]) - expected).max() < 200.0 * scale**2


def test_moving_trim() -> None:
    """About a motion: the flow's derivative over a short time, by differences of two nonlinear motions."""
    system = bc.compile(sprung_four_bar(), actuated=["A"])
    trim = system.assemble(q={"A": 1.0}, u={"A": 4.0})
    model = bc.analyze.linearize(system, trim)
    h = 1e-4
    for i in range(2):
        ends = []
        for sign in (1.0, -1.0):
            s = model.nearby(sign * 1e-3 * np.eye(2)[i])
            after, before = (rk4(system, s.q, s.u, d, 1) for d in (h, -h))
            ends.append(np.concatenate([after[0][:1] - before[0][:1], after[1][:1] - before[1][:1]]) / (2 * h))
        slope = (ends[0] - ends[1]) / 2e-3
        assert np.abs(slope - model.A[:, i]).max() < 1e-4 * np.abs(model.A).max()
    assert model.rate[0] == pytest.approx(4.0)


def test_spinning_top_is_stable_when_fast() -> None:
    """Ball joint, moving trim: the sleeping top, whose limit is (C n)^2 = 4 A m g l."""
    m = bc.Mechanism("top")
    m.add_joint("tip", bc.Spherical(), m.ground, m.add_body("top", bc.Inertia(1.0, (0, 0, 0.2), (0.02, 0.02, 0.01))))
    system = bc.compile(m)
    about, spin_inertia = 0.02 + 0.04, 0.01
    limit = np.sqrt(4 * about * 9.81 * 0.2) / spin_inertia
    for factor in (0.9, 1.1):
        model = bc.analyze.linearize(system, bc.State(system.neutral(), np.array([0.0, 0.0, factor * limit])))
        n = factor * limit
        # tilt z = x + i y in turning axes: zdd + i n (2 - C/A) zd + (C/A n^2 - n^2 - mgl/A) z = 0
        ratio = spin_inertia / about
        expected = np.roots([1.0, 1j * n * (2 - ratio), n * n * (ratio - 1.0) - 9.81 * 0.2 / about])
        for value in expected:
            assert np.abs(model.eigenvalues - value).min() < 1e-5 * n
        assert (model.eigenvalues.real.max() > 0.1) == (factor < 1.0)


def test_free_body_and_rigid_modes() -> None:
    m = bc.Mechanism("floating", gravity=(0, 0, 0))
    box = m.add_body("box", bc.Inertia.box(2.0, (0.3, 0.4, 0.5), (0.1, 0, 0)))
    flap = m.add_body("flap", bc.Inertia.rod(0.5, (0, 0, 0), (0.4, 0, 0)))
    m.add_joint("base", bc.Free(), m.ground, box)
    m.add_joint("hinge", bc.Revolute("z"), box, flap, parent_pose=bc.Pose((0.2, 0, 0)))
    m.add_joint_spring("spring", "hinge", stiffness=5.0)
    system = bc.compile(m)
    found = bc.analyze.modes(system, bc.analyze.equilibrium(system))
    assert np.array_equal(found.frequencies[:6], np.zeros(6))
    assert found.frequencies[6] > 0.1
    inverse = np.linalg.inv(system.mass_matrix(system.neutral()))
    assert found.angular[6] == pytest.approx(np.sqrt(5.0 * inverse[6, 6]), rel=1e-9)
    model = bc.analyze.linearize(system, bc.analyze.equilibrium(system), inputs=["box.fx", "hinge", "flap"])
    assert model.A.shape == (14, 14) and model.B.shape == (14, 8) and model.C.shape == (15, 14)
    assert model.inputs[:3] == ("box.fx", "hinge", "flap.mx")
    assert np.abs(model.B[7:, 0] - inverse[:, 3]).max() < 1e-12  # body axes are world axes here
    assert "base.qw" in model.outputs and "base.wx" in model.outputs and "hinge.angle.rate" in model.outputs


def test_stewart_platform() -> None:
    drives = [f"leg{i}.slide" for i in range(1, 7)]
    system = bc.compile(bc.load("stewart"), actuated=drives)
    state = system.assemble()
    zero = np.zeros(system.nu)
    tau = system.inverse_dynamics(state.q, zero, zero)
    model = bc.analyze.linearize(system, state, tau=tau,
                                 outputs={"place": lambda s: system.pose(s.q, "platform").position})
    assert model.A.shape == (12, 12) and model.B.shape == (12, 6) and model.C.shape == (3, 12)
    assert model.states[:6] == tuple(drives) and model.inputs == tuple(drives)
    assert model.outputs == ("place[0]", "place[1]", "place[2]")
    assert np.abs(model.rate).max() < 1e-9
    found = bc.analyze.modes(system, state, tau=tau)
    assert np.abs(found.mass @ model.B[6:] - np.eye(6)).max() < 1e-11
    assert np.abs(found.stiffness - found.stiffness.T).max() < 1e-8 * np.abs(found.stiffness).max()
    entries = [system.model.configuration.speed_entries(d)[0] for d in drives]
    rates = np.linalg.lstsq(model.shapes, np.eye(system.nu)[entries].T, rcond=None)  # N is a basis
    assert rates[2] == 6
    # the platform's own Jacobian maps slides to its motion
    jacobian = system.jacobian(state.q, "platform", speeds="tree")[3:] @ model.shapes
    assert np.abs(model.C[:, :6] - jacobian).max() < 1e-10
    assert model.error < 1e-9
    other = bc.analyze.linearize(system, state, tau=tau,
                                 coordinates=["leg1.foot", "leg1.slide", "leg2.foot", "leg3.slide"])
    assert np.abs(np.sort(other.eigenvalues**2) - np.sort(model.eigenvalues**2)).max() < 1e-7


def test_quarter_car_by_hand() -> None:
    """One mass on one spring: spring length and kinetic energy per unit of the arm, by differences."""
    system = bc.compile(bc.load("quarter_car"), actuated=["arm"])
    rest = bc.analyze.equilibrium(system)
    assert np.abs(system.forward_dynamics(rest.q, rest.u)).max() < 1e-9
    h = 1e-3
    curve = [energy(system, system.assemble(q={"arm": rest.q[0] + a}, guess=rest.q).q) for a in (h, 0.0, -h)]
    inertia = 2 * float(system.kinetic_energy(rest.q, system.assemble(q=rest.q, u={"arm": 1.0}).u))
    expected = np.sqrt((curve[0] - 2 * curve[1] + curve[2]) / h**2 / inertia) / (2 * np.pi)
    assert bc.analyze.modes(system, rest).frequencies[0] == pytest.approx(expected, rel=1e-4)
    damped = bc.analyze.modes(system, rest, damped=True)
    assert 0.2 < damped.damping[0] < 0.4  # 1000 N s/m against 25 kN/m


def test_two_mass_quarter_car() -> None:
    """Body, wheel, spring and tyre in a line, against the matrices in every textbook."""
    m = bc.Mechanism("two masses")
    body = m.add_body("body", bc.Inertia.box(300.0, (1, 1, 1)))
    wheel = m.add_body("wheel", bc.Inertia.sphere(40.0, 0.3))
    m.add_joint("wheel", bc.Prismatic("z"), m.ground, wheel)
    m.add_joint("strut", bc.Prismatic("z"), wheel, body)
    m.add_joint_spring("spring", "strut", stiffness=20e3, damping=1500.0)
    m.add_joint_spring("tyre", "wheel", stiffness=180e3)
    system = bc.compile(m)
    rest = bc.analyze.equilibrium(system)
    assert np.abs(rest.q - [-340 * 9.81 / 180e3, -300 * 9.81 / 20e3]).max() < 1e-12
    masses = np.diag([40.0, 300.0])
    stiffness = np.array([[200e3, -20e3], [-20e3, 20e3]])
    dampers = 1500.0 * np.array([[1, -1], [-1, 1]])
    squares = np.sort(np.linalg.eigvals(np.linalg.solve(masses, stiffness)))
    assert np.abs(bc.analyze.modes(system, rest).angular**2 / squares - 1).max() < 1e-10
    a = np.block([[np.zeros((2, 2)), np.eye(2)],
                  [-np.linalg.solve(masses, stiffness), -np.linalg.solve(masses, dampers)]])
    for value in bc.analyze.modes(system, rest, damped=True).eigenvalues:
        assert np.abs(np.linalg.eigvals(a) - value).min() < 1e-9 * abs(value)


def test_outputs_and_inputs_by_name() -> None:
    system = bc.compile(sprung_four_bar(), actuated=["A"])
    rest = bc.analyze.equilibrium(system, {"A": 0.8})
    model = bc.analyze.linearize(system, rest, inputs=["A", "D", "B"], outputs=["B", "A.rate", "C.acceleration"])
    assert model.outputs == ("B", "A.rate", "C.acceleration")
    assert np.abs(model.D[:2]).max() == 0.0 and np.abs(model.D[2]).min() > 0.0
    ratio = model.shapes[:, 0]
    assert model.C[0, 0] == pytest.approx(ratio[1], rel=1e-11)
    spin = bc.analyze.loop_speeds(system, rest.q, ratio, "D")[0]
    assert model.B[1, 1] / model.B[1, 0] == pytest.approx(spin, rel=1e-11)  # equal power
    assert model.B[1, 2] / model.B[1, 0] == pytest.approx(ratio[1], rel=1e-11)
    one = bc.analyze.linearize(system, rest, outputs=lambda s: system.pose(s.q, "coupler").position[0])
    assert one.outputs == ("y",) and one.C.shape == (1, 2)


def test_outputs_of_joints_that_were_cut() -> None:
    names = ["B", "C", "C.angle.rate", "C.acceleration", "A.acceleration"]
    found = []
    for cut in ("C", "A"):
        system = bc.compile(sprung_four_bar(), backend="numpy", cut=[cut])
        assert system.loops == (cut,)
        rest = bc.analyze.equilibrium(system, {"A": 0.8})
        found.append(bc.analyze.linearize(system, rest, inputs=["B"], outputs=names, coordinates=["B"]))
        with pytest.raises(bc.ModelError, match="no output 'D.jerk'"):
            bc.analyze.linearize(system, rest, outputs=["D.jerk"])
    for a, b in zip(*([model.A, model.B, model.C, model.D] for model in found), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8 * np.abs(b).max(initial=1.0))
    assert found[0].outputs == found[1].outputs == tuple(names)


def test_limited_actuators_bend_the_response() -> None:
    m = bc.load("pendulum")
    if not hasattr(m, "add_actuator"):
        pytest.skip("no actuators")
    m.add_actuator("motor", "hinge", limit=1.0)
    system = bc.compile(m)
    rest = bc.analyze.equilibrium(system)
    free = bc.analyze.linearize(system, rest).B[1, 0]
    assert free == pytest.approx(1.0 / system.mass_matrix(rest.q)[0, 0], rel=1e-9)


def test_to_control(monkeypatch: pytest.MonkeyPatch) -> None:
    system = bc.compile(bc.load("pendulum"))
    model = bc.analyze.linearize(system, bc.analyze.equilibrium(system))
    fake = types.ModuleType("control")
    fake.ss = lambda *a, **k: (a, k)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "control", fake)
    arrays, names = model.to_control()
    assert arrays[0] is model.A and names["states"] == ["hinge", "hinge.rate"]
    monkeypatch.setitem(sys.modules, "control", None)
    with pytest.raises(bc.ModelError, match="control"):
        model.to_control()


def test_bad_input_says_what_is_wrong() -> None:
    system = bc.compile(bc.load("four_bar"))
    state = system.assemble(q={"A": 0.5})
    with pytest.raises(bc.StateError, match="open by"):
        bc.analyze.linearize(system, (state.q + 0.1, state.u))
    with pytest.raises(bc.StateError, match="no equilibrium.*'A'"):
        bc.analyze.modes(system, state)
    with pytest.raises(bc.ModelError, match="no input 'motor'"):
        bc.analyze.linearize(system, state, inputs=["motor"])
    with pytest.raises(bc.ModelError, match="no output"):
        bc.analyze.linearize(system, state, outputs=["height"])
    with pytest.raises(bc.ModelError, match="list of names"):
        bc.analyze.linearize(system, state, inputs="A")
    with pytest.raises(bc.ModelError, match="needs 1 speeds"):
        bc.analyze.linearize(system, state, coordinates=["A", "B"])
    with pytest.raises(bc.StateError, match="loops.*are open"):
        bc.analyze.linearize(system, (np.zeros((2, 4)), np.zeros((2, 4))))
    with pytest.raises(bc.StateError, match="of a batch need shapes"):
        bc.analyze.linearize(system, (np.zeros((2, 4)), np.zeros((3, 4))))
    with pytest.raises(bc.StateError, match="finite"):
        bc.analyze.linearize(system, (np.full(4, np.nan), np.zeros(4)))


def test_one_machine_at_a_time() -> None:
    m = bc.Mechanism("rod")
    length = m.parameter("length", 1.0)
    bob = m.add_body("bob", bc.Inertia(1.0, (0, 0, -length), (0.0, 0.0, 0.0), checked=False))
    m.add_joint("hinge", bc.Revolute("x"), m.ground, bob)
    system = bc.compile(m)
    longer = system.with_parameters(length=4.0)
    found = bc.analyze.modes(longer, bc.analyze.equilibrium(longer))
    assert found.angular[0] == pytest.approx(np.sqrt(9.81 / 4.0), rel=1e-12)
    many = system.with_parameters(length=[1.0, 2.0])
    rest = bc.analyze.equilibrium(many)
    assert rest.q.shape == (2, 1)
    with pytest.raises(bc.ModelError, match="one machine at a time"):
        bc.analyze.modes(many, rest)


def test_batches_of_states() -> None:
    """One model for each state, in the same coordinates, those of the first; arrays come out stacked."""
    system = bc.compile(bc.load("four_bar"))
    state = system.assemble(q={"A": np.array([[0.5, 0.9], [1.3, 2.0]])}, u={"A": 1.0})
    tau = np.random.default_rng(0).normal(size=(2, 2, 4))
    found = bc.analyze.linearize(system, state, tau=tau)
    assert found.A.shape == (2, 2, 2, 2) and found.eigenvalues.shape == (2, 2, 2)
    one = bc.analyze.linearize(system, (state.q[1, 0], state.u[1, 0]), tau=tau[1, 0])
    for name in "ABCD":
        assert np.array_equal(getattr(found, name)[1, 0], getattr(one, name))
    assert found[1, 0].states == one.states
    rest = bc.analyze.equilibrium(system, np.array([state.q[0, 0], state.q[0, 1]]))
    modes = bc.analyze.modes(system, rest)
    assert modes.frequencies.shape == (2, 1) and np.ptp(modes.frequencies) < 1e-9


def test_many_states_are_worth_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is interpreted for one state is compiled for many: the same but for rounding."""
    system = bc.compile(bc.load("four_bar"))
    monkeypatch.setattr(state_slopes, "_INTERPRETED", 1)
    state = system.assemble(q={"A": np.linspace(0.5, 1.5, 20)}, u={"A": 1.0})
    many = bc.analyze.linearize(system, state).A
    one = np.array([bc.analyze.linearize(system, (q, u)).A for q, u in zip(state.q[:3], state.u[:3], strict=True)])
    assert np.abs(many[:3] - one).max() < 1e-12 * np.abs(one).max()
