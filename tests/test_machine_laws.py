"""Forces that are laws of the whole machine: on any joint, by any method, in any function; and what is refused."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.math import cos, sin

GAS = bc.Table([-4.0, -1.0, 0.0, 1.0, 4.0], [3.0, -2.0, 0.0, 5.0, 1.0], kind="akima", extrapolate="linear", name="gas")
WEIGHTED = {"A": 1.0, "C": -0.5}


def machine(sums: bool = True, work: bool = False, **settings: object) -> bc.System:
    """A four-bar with one element of every kind."""
    m = bc.load("four_bar")
    m.parameter("gain", 3.0)
    m.add_joint_force("gas", "B", lambda at: GAS(at.q("A")) - 0.3 * at.u("C") + 0.5 * at.t)
    m.add_force_between("rope", m.ground, "rocker", (0.3, 0.9, 0), (0.2, 0, 0),
                        lambda at: 40.0 * at.element("rope").length + at.parameter("gain") * at.u("A"))
    m.add_wrench("jet", "coupler", at=(0.5, 0, 0), axes="body", law=lambda at: (
        (-2.0 * at.velocity("coupler", (0.5, 0, 0)).x, 0.1 * at.element("gas").force, 0.0),
        (0.0, 0.0, -0.5 * at.omega("coupler").z)))
    m.add_wrench("magnet", "rocker", law=lambda at: -3.0 * (at.position("rocker", (0.3, 0, 0)) - at.position(
        "crank", (0.3, 0, 0))) + 0.2 * at.axes("crank")[1])
    if sums:
        m.add_joint_force("sum", WEIGHTED, lambda at: -0.4 * at.element("sum").rate * at.q("B") ** 2)
    m.add_joint_force("last", "D", lambda at: -4.0 * at.q("D") + 0.1 * at.u("B"))
    m.add_bushing("bush", "coupler", m.ground, stiffness=(10, 20, 0), damping=(1, 2, 3), turn_damping=(1, 2, 3))
    m.add_drag("drag", "coupler", coefficient=0.5, at=(0.2, 0, 0))
    m.add_spring("spring", "crank", "rocker", (0.1, 0.1, 0), (0.2, 0, 0), stiffness=30.0, damping=2.0, length=0.4)
    m.add_servo("servo", "A", target=lambda t: t, stiffness=10.0, limit=1.5)
    m.add_wrench("steady", "rocker", force=(1, lambda t: 2.0 * t, 0), moment=(0, 0, 3), at=(0.1, 0.1, 0))
    if work:
        names = [e.name for e in m.force_elements]
        m.add_state("work", lambda at: sum(at.element(name).power for name in names), units="J")
    return bc.compile(m, **settings)


T = 0.3


@cache
def linkage(sums: bool = True) -> tuple[bc.System, bc.State]:
    system = machine(sums)
    return system, system.assemble(q={"A": 0.5}, u={"A": 2.0}, t=T)


def motion(system: bc.System, state: bc.State) -> dict[str, np.ndarray]:
    udot = system.forward_dynamics(state)
    return {body: system.acceleration(state.q, state.u, udot, body, t=T) for body in ("crank", "rocker")}


@pytest.mark.parametrize("method", ["recursive", "kane", "reduction", "operator", "dense", "momenta", "divide"])
def test_all_methods_agree(method):
    system, state = linkage()
    other = machine(method=method, backend="numpy")
    found = other.forward_dynamics(state)
    assert np.abs(found - system.forward_dynamics(state)).max() < 1e-11 * np.abs(found).max()


@pytest.mark.parametrize("cut", ["A", "B", "C"])
def test_nobody_sees_which_joint_was_cut(cut):
    """The same motion, reactions and reports, whatever was cut."""
    system, state = linkage(cut not in WEIGHTED)
    wanted, other = motion(system, state), machine(cut not in WEIGHTED, cut=[cut], backend="numpy")
    assert system.joint_names == other.joint_names == tuple("ABCD")  # laws look at all of them
    same = other.project(state)
    assert np.abs(same.q - state.q).max() < 1e-12
    for body, acceleration in motion(other, same).items():
        assert np.abs(acceleration - wanted[body]).max() < 1e-9 * np.abs(acceleration).max()
    mine, others = system.element_forces(state), other.element_forces(same)
    assert mine.keys() == others.keys()
    for key, element in mine.items():
        for one, two in zip(element[:7], others[key][:7], strict=True):  # points on an axis may differ
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9, err_msg=key)
    reactions = system.reactions(state), other.reactions(same)
    for joint in "ABCD":  # on the outboard body, which may be either: of the same size
        for part in (slice(3), slice(3, 6)):
            sizes = [np.linalg.norm(r[joint][part]) for r in reactions]
            assert abs(sizes[0] - sizes[1]) < 1e-8 * (1.0 + sizes[0]), joint


def test_powers_are_the_change_of_energy():
    """Of motion and gravity, by what all elements report; compiled, lanes and the reference."""
    system, state = linkage()
    q, u = np.tile(state.q, (9, 1)), np.tile(state.u, (9, 1))
    powers = {name: e.power for name, e in system.element_forces(state).items()}
    udot = system.forward_dynamics(state)
    slope = system.derivatives("kinetic_energy", state, by=("q", "u"), along={"q": state.u, "u": udot}, closed=False)
    height = system.derivatives("potential_energy", state.q, by="q", along={"q": state.u}, closed=False, t=T)
    change = float(slope["along"] + height["along"])
    assert abs(change - sum(powers.values())) < 1e-11 * sum(abs(p) for p in powers.values())
    for other in (system.element_forces(q, u, t=T), machine(backend="numpy").element_forces(q, u, t=T)):
        for name, power in powers.items():
            assert np.abs(other[name].power - power).max() < 1e-11 * max(1.0, abs(power)), name
    stored = sum(float(e.energy) for e in system.element_forces(state).values())
    assert abs(stored - bc.analyze.stored_energy(system, state)) < 1e-12 * stored


def test_dissipated_power_is_all_that_is_not_stored():
    system, state = linkage()
    other = machine(backend="numpy")
    found = bc.analyze.dissipated_power(system, state)
    assert abs(found - bc.analyze.dissipated_power(other, state)) < 1e-12 * abs(found)
    h = 1e-6
    rate = sum(sign * float(bc.analyze.stored_energy(system, system.integrate(state.q, sign * h * state.u)))
               for sign in (1, -1)) / (2.0 * h)
    elements = system.element_forces(state)
    lost = sum(float(elements[n].power) for n in elements if n != "steady") + rate
    assert abs(found + lost) < 1e-7 * abs(found)


def test_vectors_and_points_make_the_powers():
    system, state = linkage()
    elements = system.element_forces(state)
    jet = elements["jet"]
    v = system.velocity(state.q, state.u, "coupler", (0.5, 0, 0), t=T)
    assert abs(jet.vector @ v[3:] + jet.torque @ v[:3] - jet.power) < 1e-12
    place = system.pose(state.q, "coupler", t=T)
    np.testing.assert_allclose(jet.second_point, place.position + place.rotation @ [0.5, 0, 0], atol=1e-13)
    np.testing.assert_allclose(place.rotation.T @ jet.vector, [-2.0 * (v[3:])[0], 0.1 * elements["gas"].force, 0.0],
                               atol=1e-12)
    rope = elements["rope"]
    way = rope.second_point - rope.first_point
    assert abs(np.linalg.norm(way) - rope.length) < 1e-13 and np.linalg.norm(np.cross(way, rope.vector)) < 1e-12
    assert abs(rope.force + 40.0 * rope.length + 3.0 * state.u[0]) < 1e-12  # a tension pulls
    total = elements["sum"]
    assert np.isnan(jet.force) and np.abs(total.torque - [0.0, 0.0, total.force]).max() < 1e-14  # on the child of A
    assert np.abs(total.first_point - system.pose(state.q, "rocker", t=T).position).max() < 1e-12  # at C


def test_derivatives_are_those_of_the_laws():
    system, state = linkage()
    exact = system.derivatives("forward_dynamics", state, by=("q", "u", "gain"), closed=False)
    h = 1e-6
    for name, at in (("q", 0), ("u", 1)):
        for k in range(system.nu):
            ends = []
            for sign in (1.0, -1.0):
                moved = [state.q.copy(), state.u.copy()]
                moved[at][k] += sign * h
                ends.append(system.forward_dynamics(*moved, t=T))
            slope = (ends[0] - ends[1]) / (2.0 * h)
            np.testing.assert_allclose(exact[name][:, k], slope, rtol=1e-5, atol=1e-5)
    ends = [system.with_parameters(gain=3.0 + x).forward_dynamics(state) for x in (h, -h)]
    np.testing.assert_allclose(exact["gain"].ravel(), (ends[0] - ends[1]) / (2.0 * h), rtol=1e-5, atol=1e-6)


def test_inverse_is_the_inverse():
    system, state = linkage()
    udot = system.forward_dynamics(state)
    forces = system.inverse_dynamics(state.q, state.u, udot, t=T)
    assert np.abs(forces).max() < 1e-10


def test_a_run_balances():
    """Energy at the end, less that at the start, is the integral of all powers."""
    system = machine(work=True)
    state = system.assemble(q={"A": 0.5}, u={"A": 2.0}, t=T)
    result = system.simulate(state, duration=0.5, stepper="rk8", step=5e-4)
    change = result["kinetic_energy"] + result["potential_energy"] - float(system.kinetic_energy(state)
                                                                            + system.potential_energy(state.q, t=T))
    assert np.abs(change - result.u.sel(speed="work.value")).max() < 1e-8
    assert np.abs(change).max() > 1.0


def test_large_machines_have_laws():
    m = bc.load("chain", n=60)
    names = [j.name for j in m.joints]
    m.add_joint_force("push", names[30], lambda at: -3.0 * at.q(names[10]) - 0.2 * at.u(names[59]))
    tip = m.bodies[-1].name
    m.add_wrench("pull", tip, law=lambda at: (-1.0 + at.state("lag")) * at.position(tip))
    m.add_state("lag", lambda at: at.u(names[0]) - at.state("lag"), initial=0.3)
    rolled, reference = bc.compile(m), bc.compile(m, backend="numpy")
    q, u = 0.1 * np.cos(np.arange(61.0)), 0.1 * np.sin(np.arange(61.0))
    found = reference.forward_dynamics(q, u)
    assert np.abs(rolled.forward_dynamics(q, u) - found).max() < 1e-9 * np.abs(found).max()
    assert abs(rolled.element_forces(q, u)["push"].force + 0.3 * np.cos(10.0) + 0.02 * np.sin(59.0)) < 1e-13


# -- what is refused ----------------------------------------------------------------------------------------------
def one(law: object) -> bc.Mechanism:
    m = bc.load("double_pendulum")
    m.add_frame("handle", m.bodies[1].name, bc.Pose((0.2, 0.0, 0.1), [0.8, 0.6, 0.0, 0.0]))
    m.add_bushing("bush", m.bodies[1].name, m.ground, stiffness=(1, 2, 3))
    m.add_joint_spring("sum", {j.name: 1.0 for j in m.joints}, stiffness=1.0)
    m.add_joint_force("law", m.joints[0].name, law)
    return m


@pytest.mark.parametrize(("law", "said"), [
    (lambda at: at.q("elbw"), r"joint force 'law': no joint called 'elbw'; did you mean 'elbow'"),
    (lambda at: at.u("elbow.turn"), r"'elbow' has no 'turn'; it has angle"),
    (lambda at: at.position("upper_arm").x, r"no body"),
    (lambda at: at.state("pressure"), r"no state called 'pressure'; there are none"),
    (lambda at: at.parameter("k"), r"no parameter called 'k'"),
    (lambda at: at.element("strut").force, r"no force element called 'strut'; there are "),
    (lambda at: at.element("law").force, r"the law of 'law' makes an algebraic loop: law -> law"),
    (lambda at: at.element("law").colour, r"an element has no 'colour'"),
    (lambda at: at.element("bush").force, r"joint force 'law': the element 'bush' has no force; it has power, en"),
    (lambda at: at.element("bush").length, r"the element 'bush' has no length"),
    (lambda at: at.element("sum").forc, r"an element has no 'forc'; did you mean 'force'"),
    (lambda at: at.positon("handle"), r"joint force 'law': laws cannot ask for at.positon; did you mean 'position'"),
    (lambda at: at.acceleration("handle").x, r"joint force 'law': laws see no accelerations"),
    (lambda at: at.position("handel").x, r"no body or frame called 'handel'; did you mean 'handle'"),
    (lambda at: 1.0 if at.q("elbow") > 0 else 0.0, r"cannot be compiled"),
    (lambda at: (at.q("elbow"), 0.0), r"cannot be compiled"),
    (lambda at: "3", r"joint force 'law': its law cannot be compiled \('3' is no number\)"),
    (lambda at: at.position("handle", (1.0, 2.0)).x, r"joint force 'law': .* a point has three numbers, got 2"),
    (lambda at: at.velocity("handle", (1, 2, 3, 4)).x, r"joint force 'law': .* a point has three numbers, got 4"),
    (lambda at: at.position("handle", "abc").x, r"joint force 'law': .* a point has three numbers, got 'abc'"),
    (lambda at: at.missing_name + undefined, r"joint force 'law': laws cannot ask for at.missing_name"),  # noqa: F821
    (lambda at: undefined, r"joint force 'law': its law cannot be compiled \(name 'undefined' is not"),  # noqa: F821
    (lambda at: next(iter(())), r"joint force 'law': its law cannot be compiled \(StopIteration"),
    (lambda at: __import__("math").sin(at.q("elbow")), r"cannot be compiled")])
def test_wrong_laws_are_refused_by_name(law, said):
    with pytest.raises(bc.ModelError, match=said):
        bc.compile(one(law))


def test_states_have_no_places():
    m = one(lambda at: at.position("lag").x)
    m.add_state("lag", lambda at: -at.state("lag"))
    with pytest.raises(bc.ModelError, match=r"joint force 'law': 'lag' is a state.*write at.state\('lag'\)"):
        bc.compile(m)


@pytest.mark.parametrize(("value", "said"), [
    (((1.0, 2.0), (3.0, 4.0, 5.0, 6.0)), r"wrench 'pull': .*force and moment have 2 and 4 entries"),
    ((1.0, 2.0, "3"), r"wrench 'pull': .*'3' is no number"),
    ("123", r"wrench 'pull': .*'1' is no number")])
def test_wrenches_of_other_shapes_are_refused_by_name(value, said):
    m = bc.load("double_pendulum")
    m.add_wrench("pull", m.bodies[1].name, law=lambda at: value)
    with pytest.raises(bc.ModelError, match=said):
        bc.compile(m)


#: how an element of each kind is added whose law gives what a function does
KINDS = {
    "joint force": lambda m, name, value: m.add_joint_force(name, m.joints[0].name, value),
    "force of a sum": lambda m, name, value: m.add_joint_force(name, {j.name: 1.0 for j in m.joints}, value),
    "force between points": lambda m, name, value: m.add_force_between(
        name, m.ground, m.bodies[1], (1, 0, 0), (0, 0, 0), value),
    "wrench": lambda m, name, value: m.add_wrench(name, m.bodies[0], law=lambda at: (value(at), 0.0, 0.0))}


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
@pytest.mark.everyday(16)
def test_two_laws_that_need_each_other_are_refused_by_name(first, second):
    m = bc.load("double_pendulum")
    for kind, name, other, what in ((first, "one", "two", second), (second, "two", "one", first)):
        field = "power" if what == "wrench" else "force"
        KINDS[kind](m, name, lambda at, other=other, field=field: getattr(at.element(other), field))
    with pytest.raises(bc.ModelError, match=r"algebraic loop: (one -> two -> one|two -> one -> two); let one of"):
        bc.compile(m)


def test_laws_see_frames():
    """Poses and velocities of named frames, and of points of them, as the System has them; compiled and not."""
    def law(at):
        axes, v, p = at.axes("handle"), at.velocity("handle", (0.1, 0.0, 0.3)), at.position("handle", (0.1, 0.0, 0.3))
        return v.dot(axes[0]) + 2.0 * v.dot(axes[1]) + p.x + 3.0 * p.y + 5.0 * p.z + at.omega("handle").dot(axes[2])

    for backend in ("numpy", "llvm"):
        system = bc.compile(one(law), backend=backend)
        q, u = np.array([0.3, -0.7]), np.array([1.2, 0.4])
        place, twist = system.pose(q, "handle"), system.velocity(q, u, "handle", (0.1, 0.0, 0.3))
        p, v, axes = place.position + place.rotation @ [0.1, 0.0, 0.3], twist[3:], place.rotation
        wanted = v @ axes[:, 0] + 2.0 * v @ axes[:, 1] + p @ [1.0, 3.0, 5.0] + twist[:3] @ axes[:, 2]
        assert abs(system.element_forces(q, u)["law"].force - wanted) < 1e-12 * abs(wanted)


def test_rings_of_elements_are_refused_by_name():
    m = one(lambda at: at.element("second").force)
    m.add_joint_force("second", m.joints[1].name, lambda at: 2.0 * at.element("third").power)
    m.add_wrench("third", m.bodies[0].name, law=lambda at: (at.element("law").force, 0.0, 0.0))
    with pytest.raises(bc.ModelError, match=r"algebraic loop: law -> second -> third -> law"):
        bc.compile(m)


def test_parameters_are_named():
    m = bc.load("double_pendulum")
    k = m.parameter("k", 2.0)
    m.add_joint_force("law", m.joints[0].name, lambda at: -k * at.q("elbow"))
    with pytest.raises(bc.ModelError, match=r"write at.parameter\('name'\)"):
        bc.compile(m)
    with pytest.raises(bc.ModelError, match="a law takes the place of force and moment"):
        m.add_wrench("both", m.bodies[0].name, force=(1, 0, 0), law=lambda at: (0, 0, 0))
    with pytest.raises(bc.ModelError, match="a function of one argument"):
        m.add_wrench("two", m.bodies[0].name, law=lambda q, u: (0, 0, 0))


# -- states -------------------------------------------------------------------------------------------------------
@cache
def filtered(backend: str = "llvm") -> bc.System:
    """A pendulum on a servo whose integral is a state, and a lag in its measurement."""
    m = bc.load("pendulum")
    m.parameter("lag", 0.05)
    m.add_state("seen", lambda at: (at.q("hinge") - at.state("seen")) / at.parameter("lag"), initial=0.1, units="rad")
    m.add_state("sum", lambda at: 0.4 * cos(at.t) - at.state("seen"))
    m.add_joint_force("pid", "hinge", lambda at: 40.0 * at.state("sum") + 30.0 * (
        0.4 * cos(at.t) - at.state("seen")) - 8.0 * at.u("hinge"))
    return bc.compile(m, backend=backend)


def test_states_are_integrated_with_the_machine():
    """By every kind of stepper, beside a reference that knows nothing of states."""
    from scipy.integrate import solve_ivp

    system = filtered()
    plain = bc.compile(bc.load("pendulum"))
    state = system.assemble(q={"hinge": 0.3})
    np.testing.assert_array_equal(state.u, [0.0, 0.1, 0.0])

    def rates(t, y):
        q, u, seen, total = y
        force = 40.0 * total + 30.0 * (0.4 * np.cos(t) - seen) - 8.0 * u
        return [u, plain.forward_dynamics([q], [u], [force])[0], (q - seen) / 0.05, 0.4 * np.cos(t) - seen]

    exact = solve_ivp(rates, (0.0, 1.0), [0.3, 0.0, 0.1, 0.0], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    for stepper, step, error in (("rk4", 1e-3, 1e-8), ("radau", 5e-3, 1e-5), ("dopri5", None, 1e-6),
                                 ("semi_implicit", 1e-4, 1e-2)):
        end = system.simulate(state, duration=1.0, stepper=stepper, step=step)
        found = np.append(end.q[-1, :1].values, end.u[-1].values)
        assert np.abs(found - exact).max() < error, stepper
    assert end.u.speed_units.values.tolist() == ["rad/s", "rad", "1"]


def test_states_count_in_no_energy_and_have_sensitivities():
    system = filtered()
    state = system.assemble(q={"hinge": 0.3}, u={"hinge": 1.0, "seen": 5.0})
    plain = bc.compile(bc.load("pendulum"))
    assert system.kinetic_energy(state) == plain.kinetic_energy(state.q[:1], state.u[:1])
    assert np.abs(system.momentum(state) - plain.momentum(state.q[:1], state.u[:1])).max() == 0.0
    exact = system.derivatives("forward_dynamics", state, by=("u", "lag"))
    np.testing.assert_allclose(exact["u"][1], [0.0, -20.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(exact["lag"][1], (5.0 - 0.3) / 0.05**2, rtol=1e-12)
    other = filtered("numpy")
    assert np.abs(other.forward_dynamics(state) - system.forward_dynamics(state)).max() < 1e-12
    lanes = system.forward_dynamics(np.tile(state.q, (9, 1)), np.tile(state.u, (9, 1)))
    assert np.abs(lanes - system.forward_dynamics(state)).max() < 1e-12
    assert not system.reactions(state)["seen"].any()


def test_states_in_equilibrium_and_linear_models():
    system = filtered()
    rest = bc.analyze.equilibrium(system)
    assert np.abs(system.forward_dynamics(rest)).max() < 1e-9
    model = bc.analyze.linearize(system, rest)
    assert abs(model.A[model.states.index("seen"), model.states.index("seen")] + 20.0) < 1e-9  # the lag


def test_states_that_feed_each_other_are_no_loop_but_bad_ones_are_refused():
    m = bc.load("pendulum")
    m.add_state("a", lambda at: at.state("b"))
    m.add_state("b", lambda at: -at.state("a"), initial=1.0)
    system = bc.compile(m)
    result = system.simulate(system.assemble(), duration=np.pi / 2, stepper="rk8", step=np.pi / 200)
    assert abs(float(result.u.sel(speed="a.value")[-1]) - sin(np.pi / 2)) < 1e-12
    with pytest.raises(bc.ModelError, match="state 'a' exists|'a'"):
        m.add_state("a", lambda at: 0.0)
    with pytest.raises(bc.ModelError, match="state 'c': its rate is a function of one argument"):
        m.add_state("c", 3.0)
    m.add_state("d", lambda at: at.state("dd"))
    with pytest.raises(bc.ModelError, match="state 'd': no state called 'dd'"):
        bc.compile(m)


def test_outputs_in_every_kind_of_run(tmp_path: Path) -> None:
    """In memory, streamed, in batches, with events, as a table; nothing is dropped."""
    m = bc.load("pendulum")
    m.add_output("twice the angle", lambda at: 2.0 * at.q("hinge"), units="rad")
    system = bc.compile(m)
    plain = system.simulate(([1.0], [0.0]), 0.1)
    with system.simulate(([1.0], [0.0]), 0.1, file=tmp_path / "run.nc") as streamed:
        assert (streamed["twice the angle"].values == plain["twice the angle"].values).all()
    with bc.open_result(tmp_path / "run.nc") as back:
        assert back["twice the angle"].attrs == plain["twice the angle"].attrs
        assert (back["twice the angle"].values == 2.0 * back.q.values[:, 0]).all()
    stop = bc.Event(lambda t, q, u: q["hinge"] - 0.99, "stop", action="stop")
    for events in ((), (stop,)):
        many = system.simulate(([[1.0], [2.0]], [[0.0], [0.0]]), 0.2, events=events)
        found, wanted = many["twice the angle"], 2.0 * many.q.isel(coordinate=0)
        assert found.dims == ("time", "sample") and np.array_equal(found.values, wanted.values, equal_nan=True)
    m.add_output("energy", lambda at: at.q("hinge"))
    with pytest.raises(bc.ModelError, match="output 'energy': results cannot hold it"):
        bc.compile(m).simulate(([1.0], [0.0]), 0.1)


def test_rollouts_know_outputs() -> None:
    """As runs do, with parameters of each lane."""
    m = bc.load("pendulum")
    m.parameter("k", 2.0)
    m.add_output("scaled", lambda at: at.parameter("k") * at.u("hinge") + at.t)
    system = bc.compile(m).with_parameters(k=np.array([1.0, 2.0, 3.0]))
    motion = bc.rollout(system, (np.full((3, 1), 0.5), np.zeros((3, 1))), step=1e-3)
    motion.step(steps=5)
    assert np.abs(motion.outputs()["scaled"] - [1.0, 2.0, 3.0] * motion.u[:, 0] - 0.005).max() < 1e-15
    with pytest.raises(bc.ModelError, match=r"output 'bad': no joint called 'hing'"):
        motion.outputs({"bad": lambda at: at.q("hing")})


def test_laws_that_compute_their_points_are_saved(tmp_path: Path) -> None:
    """By the axes of the body; frames, elements, states and parameters by name."""
    m = one(lambda at: at.velocity("handle", (at.q("elbow"), 0.1, 0.0)).dot(at.axes("handle")[1])
            + at.position("handle", (0.0, at.state("x"), 0.2)).z * at.parameter("k") + at.element("sum").force * at.t)
    m.parameter("k", 2.0)
    m.add_state("x", lambda at: at.omega("handle").x - at.state("x"))
    bc.save(m, tmp_path / "m.yaml")
    q, u = np.array([0.3, -0.7, 0.0]), np.array([1.2, 0.4, 0.6])
    first, second = (bc.compile(x, backend="numpy").forward_dynamics(q, u, t=0.4) for x in (m, bc.load(
        tmp_path / "m.yaml")))
    assert np.abs(first - second).max() < 1e-13 * np.abs(first).max()


@pytest.mark.parametrize("name", ["double_pendulum", "four_bar"])
def test_laws_of_machines_that_are_seen_link_by_link(name: str) -> None:
    """As machines of more than 48 links are: the same reactions, reports and motion."""
    def made(schedule: str) -> bc.System:
        m = bc.load(name)
        first, second = (j.name for j in m.joints[:2])
        m.add_joint_force("law", second, lambda at: -2.0 * at.q(first) + at.u(second))
        m.add_joint_force("other", first, lambda at: at.element("law").force * at.t + at.element("rope").force)
        m.add_spring("rope", m.ground, m.bodies[1].name, (0, 0.1, 2.0), (0.1, 0, 0), stiffness=2.0)
        m.add_state("slack", lambda at: at.element("rope").length - at.state("slack"))
        m.add_joint_force("both", {first: 1.0, second: 0.5}, lambda at: at.element("rope").rate * at.state("slack"))
        return bc.compile(m, schedule=schedule)

    whole, rolled = made("unrolled"), made("rolled")
    first = whole.joint_names[0]
    state = whole.assemble(q={first: 0.5}, u={first: 1.0}, t=T)
    many = np.tile(state.q, (3, 1)), np.tile(state.u, (3, 1))
    for wanted, found in ((whole.reactions(state), rolled.reactions(state)),
                          (whole.reactions(*many, t=T), rolled.reactions(*many, t=T))):
        assert wanted.keys() == found.keys()
        for joint, load in wanted.items():
            assert np.abs(load - found[joint]).max() < 1e-12 * max(1.0, np.abs(load).max()), joint
    assert abs(whole.reactions(state)[whole.joint_names[1]][:3]).max() > 0.1
    wanted, found = (system.forward_dynamics(*many, t=T) for system in (whole, rolled))
    assert np.abs(wanted - found).max() < 1e-11 * np.abs(wanted).max()
    one, two = (bc.analyze.element_wrenches(system, state) for system in (whole, rolled))
    assert np.abs(one - two).max() < 1e-12 * np.abs(one).max()
    torques = [system.simulate(state, 1e-3).torques().values[0] for system in (whole, rolled)]
    assert np.abs(torques[0] - torques[1])[:2].max() < 1e-12 and np.abs(torques[0][1]) > 0.1
    for label, element in whole.element_forces(state).items():
        for one, two in zip(element[:9], rolled.element_forces(state)[label][:9], strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12, err_msg=label)
