"""Where loops are cut changes nothing that a user sees: random machines with random elements on their joints, cut at
random joints, given in another order, with joints given the other way round, by every method: every public function."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.math import sin
from every_function import FUNCTIONS, OTHERWISE, At, differences, everything
from looped_graphs import Graph, build, graphs
from mechanisms import examples
from properties import leave
from test_loop_agreement import state_of, tolerance

METHODS = ("elimination", "dense", "kane", "recursive/origin", "operator", "divide", "momenta", "complement")

Extra = Callable[[bc.Mechanism, str, int, str], object]
#: what can be put on a coordinate of a joint, or on the sum with another
EXTRAS: dict[str, Extra] = {
    "spring": lambda m, j, k, o: m.add_joint_spring("e", j, stiffness=5.0, damping=1.0, rest=0.1, coordinate=k),
    "potential": lambda m, j, k, o: m.add_joint_spring("e", j, potential=lambda x: 0.5 * x**4, coordinate=k),
    "friction": lambda m, j, k, o: m.add_friction("e", j, coulomb=2.0, viscous=0.3, speed=0.5, coordinate=k),
    "limit": lambda m, j, k, o: m.add_limit("e", j, upper=-0.1, stiffness=30.0, damping=0.3, coordinate=k),
    "servo": lambda m, j, k, o: m.add_servo("e", j, target=1.0, stiffness=9.0, limit=5.0, coordinate=k),
    "law": lambda m, j, k, o: m.add_joint_force("e", j, lambda x, v: sin(x) - v, k),
    "table": lambda m, j, k, o: m.add_joint_force("e", j, bc.Table([-9, 9], [-3, 3], extrapolate="hold"), k),
    "law of the machine": lambda m, j, k, o: m.add_joint_force("e", j, lambda at: at.element("r").length * at.u(o), k),
    "sum": lambda m, j, k, o: m.add_joint_spring("e", {j: 1.0, o: 0.3} if j != o else o, stiffness=4.0, damping=1.0),
    "armature": lambda m, j, k, o: m.add_armature("e", j, 0.4, coordinate=k),
    "state": lambda m, j, k, o: (m.add_state("x", lambda a: a.element("r").length - a.state("x"), initial=0.2),
                                 m.add_joint_force("e", j, lambda a: -5.0 * a.state("x"), k)),
    "nothing": lambda m, j, k, o: None}

ONE_AXIS = (bc.Revolute, bc.Prismatic, bc.Cylindrical, bc.Screw)


def with_extra(machine: bc.Mechanism, thing: str, rng: np.random.Generator) -> tuple[str, ...]:
    """Put it on a joint by chance; the joints that are concerned."""
    found = [r for r in machine.joints if r.joint.nu and r.prescribed is None and r.joint.nq == r.joint.nu]
    if not found:
        leave()
    record, other = (found[rng.integers(len(found))] for _ in range(2))
    k, single = int(rng.integers(record.joint.nu)), other.joint.nu == 1
    name = record.name if record.joint.nu == 1 else f"{record.name}.{record.joint.speed_names[k]}"
    far = other.name if single else f"{other.name}.{other.joint.speed_names[0]}"
    if thing in ("law of the machine", "state"):
        machine.add_friction("r", other.name, viscous=0.1, coordinate=None if single else 0)
    EXTRAS[thing](machine, name if thing == "sum" else record.name, k, far)
    return record.name, other.name


def given_otherwise(machine: bc.Mechanism, rng: np.random.Generator, keep: tuple[str, ...]) -> tuple[
        bc.Mechanism, dict[str, float]]:
    """The machine with its joints in another order and some of those with one axis the other way round, and by joint
    the sign of its coordinates."""
    other, records, signs = deepcopy(machine), [], {}
    for i in rng.permutation(len(machine.joints)):
        r = machine.joints[i]
        turned = r.name not in keep and type(r.joint) in ONE_AXIS and r.prescribed is None and bool(rng.integers(2))
        signs[r.name] = -1.0 if turned else 1.0
        records.append(replace(r, parent=r.child, child=r.parent, parent_pose=r.child_pose, child_pose=r.parent_pose)
                       if turned else r)
    other.replace_parts(other.bodies, records, other.carriers)
    return other, signs


def renamed(system: bc.System, plain: bc.System, signs: Mapping[str, float], speeds: bool
            ) -> tuple[list[int], np.ndarray]:
    """The places of the coordinates, or speeds, of one machine in those of another, and their signs."""
    own, others = ((s.speed_names if speeds else s.coordinate_names) for s in (system, plain))
    return [others.index(name) for name in own], np.array([signs[name.rpartition(".")[0]] for name in own])


def other_cut(machine: bc.Mechanism, method: str, plain: bc.System, rng: np.random.Generator, backend: str = "numpy"
              ) -> bc.System:
    """The machine with its loops cut elsewhere, at the first joint of a random order that can be cut."""
    joints = [r.name for r in machine.joints if r.joint.nu and r.prescribed is None]
    for name in rng.permutation(joints):
        try:
            other = bc.compile(machine, method, backend, cut=[str(name)])
        except bc.ModelError:  # bodies would be lost
            continue
        if other.model.tree.cut_names != plain.model.tree.cut_names:
            return other
    leave()


#: functions of the bodies that move: one that is welded to the ground, or a carrier of it, moves where that weld closes
#: a loop
OF_MOVING_BODIES = ("center_of_mass", "potential_energy", "energy")


def weld_in_loop(system: bc.System) -> bool:
    """Whether bodies are welded and welds close loops."""
    return any(type(r.joint) is bc.Weld for r in system.model.described.joints) and any(
        c.is_joint and not c.kind.nu for c in system.model.tree.closures)


@pytest.mark.reaches(0.15)  # others cannot be cut elsewhere, or are singular
@settings(examples(60), phases=(Phase.explicit, Phase.generate))  # shrinking these takes long
@given(graphs(bodies=4, loops=2), st.integers(0, 10**6), st.sampled_from(METHODS), st.sampled_from(sorted(EXTRAS)))
def test_random_machines(graph: Graph, choice: int, method: str, thing: str) -> None:
    machine, rng = build(graph), np.random.default_rng(choice)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bc.BellcrankWarning)
        try:
            with_extra(machine, thing, rng)
            plain = bc.compile(machine, backend="numpy")
            other = other_cut(machine, method, plain, rng)
            state = state_of(plain, graph.seed)
            other.plans.reference()
        except (bc.ModelError, bc.AssemblyError, bc.SingularError):
            leave()
        if state is None or not plain.dof or tolerance(plain, state[0]) > 1e-6:
            leave()
        if other.independent_speeds != plain.independent_speeds:  # a singular choice for one of them
            leave()
        assert other.coordinate_names == plain.coordinate_names and other.speed_names == plain.speed_names
        assert other.joint_names == plain.joint_names and other.dof == plain.dof
        try:
            at = At.of(plain, plain.assemble(q=state[0], u=state[1]), rng)
            without = ("derivatives", *(OF_MOVING_BODIES if weld_in_loop(plain) or weld_in_loop(other) else ()))
            found, wanted = (everything(s, at, without) for s in (other, plain))
        except bc.SingularError:
            leave()
        size = 1.0 + np.abs(at.udot).max()
        for name, difference in differences(found, wanted).items():
            assert difference < (tolerance(plain, state[0]) + 1e-9) * size, name


@pytest.mark.reaches(0.3)
@settings(examples(30), phases=(Phase.explicit, Phase.generate))
@given(graphs(bodies=4, loops=2), st.integers(0, 10**6), st.sampled_from(sorted(EXTRAS)))
def test_order_and_directions_of_joints(graph: Graph, choice: int, thing: str) -> None:
    """Coordinates have the order in which joints were added, and turn with them; the motion is the same."""
    graph = replace(graph, coupled=False, spring=False)  # whose laws would have to be turned
    machine, rng = build(graph), np.random.default_rng(choice)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bc.BellcrankWarning)
        try:
            concerned = with_extra(machine, thing, rng)
            plain = bc.compile(machine, backend="numpy")
            turned, signs = given_otherwise(machine, rng, concerned)
            other = bc.compile(turned, backend="numpy")
            state = state_of(plain, graph.seed)
            other.plans.reference()
        except (bc.ModelError, bc.AssemblyError, bc.SingularError):
            leave()
        if state is None or not plain.dof or tolerance(plain, state[0]) > 1e-6:
            leave()
        assert other.joint_names == tuple(r.name for r in turned.joints)
        (at_q, by_q), (at_u, by_u) = (renamed(other, plain, signs, speeds) for speeds in (False, True))
        q, u, tau = state[0][at_q] * by_q, state[1][at_u] * by_u, state[2][at_u] * by_u
        try:
            udot = plain.forward_dynamics(*state)
            found = other.forward_dynamics(q, u, tau)
        except bc.SingularError:
            leave()
    allowed = (tolerance(plain, state[0]) + 1e-9) * (1.0 + np.abs(udot).max())
    assert np.abs(found - udot[at_u] * by_u).max() < allowed
    assert np.abs(other.pose(q).position - plain.pose(state[0]).position).max() < 1e-9
    assert abs(other.energy(q, u) - plain.energy(*state[:2])) < 1e-9 * (1.0 + abs(plain.energy(*state[:2])))
    momentum = plain.momentum(*state[:2])
    assert np.abs(other.momentum(q, u) - momentum).max() < 1e-9 * (1.0 + np.abs(momentum).max())


def test_every_public_function_is_compared() -> None:
    """A new method of a machine gets an entry in `every_function.py`."""
    public = {name for name, value in inspect.getmembers(bc.System, callable) if not name.startswith("_")}
    assert public == {*FUNCTIONS} | OTHERWISE and not {*FUNCTIONS} & OTHERWISE


@pytest.mark.parametrize("name", ("four_bar", "slider_crank", "five_bar", "bennett", "stewart", "double_wishbone"))
def test_compiled_machines(name: str) -> None:
    """Derivatives and batches included; those of the reactions of large machines have tests of their own."""
    machine, rng = bc.load(name), np.random.default_rng(1)
    plain = bc.compile(machine)
    start = plain.assemble()
    wish = plain.assemble(q=start.q, u=rng.normal(size=plain.nu)).u
    state = plain.assemble(q=plain.integrate(start.q, 0.2 * wish), u=rng.normal(size=plain.nu))
    at, other = At.of(plain, state, rng), other_cut(machine, "elimination", plain, rng, "llvm")
    at = at if plain.nu < 10 else replace(at, slopes=("velocity", "momenta"))
    assert other.coordinate_names == plain.coordinate_names and other.independent_speeds == plain.independent_speeds
    for key, difference in differences(everything(other, at), everything(plain, at)).items():
        assert difference < 1e-8 * (1.0 + np.abs(at.udot).max()), key
    many = [np.tile(x, (9, 1)) for x in (state.q, state.u, at.tau)]
    udot = plain.forward_dynamics(state, at.tau)
    assert np.abs(other.forward_dynamics(*many) - udot).max() < 1e-9 * (1.0 + np.abs(udot).max())


def rssr() -> bc.Mechanism:
    """A spatial crank and rocker with two balls; the rod turns freely about its axis, with friction."""
    m = bc.Mechanism("RSSR", gravity=(0.0, 0.0, -9.81))
    m.add_body("crank", bc.Inertia.rod(1.0, (0, 0, 0), (0.2, 0, 0)))
    m.add_body("rod", bc.Inertia(0.5, (0.53, 0, 0), (0.01, 0.04, 0.04)))
    m.add_body("rocker", bc.Inertia.rod(1.0, (0, 0, 0), (0, 0.6, 0)))
    m.add_joint("crank", bc.Revolute("z"), m.ground, "crank")
    m.add_joint("first", bc.Spherical(), "crank", "rod", bc.Pose((0.2, 0, 0)))
    m.add_joint("second", bc.Spherical(), "rod", "rocker", bc.Pose((1.06, 0, 0)), bc.Pose((0, 0.6, 0)))
    m.add_joint("rocker", bc.Revolute("x"), m.ground, "rocker", bc.Pose((0.8, -0.4, 0.1)))
    return m


@pytest.mark.parametrize("build_machine, joint, others", [
    (lambda: bc.load("four_bar"), "A", ("A", "B", "C", "D")), (rssr, "crank", ("crank", "rocker", "second"))],
    ids=["four_bar", "RSSR"])
def test_ten_turns_with_a_controller_events_and_files(build_machine, joint, others, tmp_path) -> None:
    """A controller that reads an angle of many turns, events at every turn, and a table."""
    machine, tables = build_machine(), []

    def control(t, q, u):
        return {joint: 40.0 * (2.0 * np.pi * 5.0 * t - q[joint]) + 8.0 * (2.0 * np.pi * 5.0 - u[joint])}

    for cut in others:
        system = bc.compile(machine, cut=[cut])
        state = system.assemble(q={joint: 0.0}, u={joint: 2.0 * np.pi * 5.0})
        turns = bc.Event(lambda t, q, u: q[joint] - 2.0 * np.pi * 9.5, "nine and a half turns")
        run = system.simulate(state, duration=2.0, stepper="dop853", rtol=1e-9, atol=1e-9, output=0.1,
                              control=bc.Traced(control), events=[turns])
        assert run.attrs["status"] == "finished"
        angle = run.q.sel(coordinate=f"{joint}.angle").values
        assert abs(angle[-1] - 20.0 * np.pi) < 2.0 and (np.diff(angle) > 0.0).all()
        assert [str(n) for n in run.event_name.values] == ["nine and a half turns"]
        tables.append(np.concatenate([run.q.values, run.u.values / 100.0], axis=1)[[0, 5, -1]])
        run.to_csv(tmp_path / f"{cut}.csv")
    names = {(tmp_path / f"{cut}.csv").read_text().splitlines()[0] for cut in others}
    assert len(names) == 1
    for table in tables[1:]:
        turned = np.abs(table) if machine.name == "RSSR" else table  # quaternions may have either sign
        assert np.abs(turned - (np.abs(tables[0]) if machine.name == "RSSR" else tables[0])).max() < 1e-6


@pytest.mark.parametrize("cut", ["pin", "seen"])
def test_functions_of_independent_speeds_beside_a_joint_that_constrains_nothing(cut: str) -> None:
    m = bc.Mechanism("pendulum, measured", gravity=(0.0, -9.81, 0.0))
    m.add_body("bob", bc.Inertia(1.0, (0, -1, 0), 0.1))
    m.add_joint("pin", bc.Revolute("z"), m.ground, "bob")
    m.add_joint("seen", bc.Free(), m.ground, "bob")
    system = bc.compile(m, cut=[cut])
    q, u = system.assemble(q={"pin": 0.3}, u={"pin": 1.5})
    assert system.independent_speeds == ("pin.angle",) and system.dof == 1
    np.testing.assert_allclose(system.mass_matrix(q), [[1.1]], rtol=1e-13)
    np.testing.assert_allclose(system.momenta(q, u), [1.65], rtol=1e-13)
    np.testing.assert_allclose(system.jacobian(q, "bob")[:, 0], [0, 0, 1, 0, 0, 0], atol=1e-14)
    udot = system.forward_dynamics(q, u)
    np.testing.assert_allclose(udot[[0, 3]], -9.81 * np.sin(0.3) / 1.1, rtol=1e-12)
    np.testing.assert_allclose(system.inverse_dynamics(q, u, udot), 0.0, atol=1e-13)
