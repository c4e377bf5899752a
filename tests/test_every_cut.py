"""Where loops are cut changes nothing that a user sees: names, functions of a state, assembly, controlled runs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
import whole_states
from looped_graphs import Graph, build, graphs
from mechanisms import examples
from properties import leave
from test_loop_agreement import state_of

METHODS = ("elimination", "dense", "kane", "recursive/origin", "operator", "divide")


def spread(system: bc.System, q: np.ndarray) -> float:
    """How ill-conditioned constraints and masses are."""
    s = np.linalg.svd(bc.analyze.loop_jacobian(system, q), compute_uv=False)
    s = s[s > 1e-9 * s.max(initial=1e-300)] if len(s) else np.ones(1)
    w = np.linalg.eigvalsh(whole_states.tree_matrix(system, q))
    return float((s.max() / s.min())**2 * w[-1] / w[0])


def asked(system: bc.System, q: np.ndarray, u: np.ndarray, tau: np.ndarray, udot: np.ndarray) -> dict[str, np.ndarray]:
    """What is compared."""
    body = system.body_names[-1]
    return {"accelerations": system.forward_dynamics(q, u, tau), "pose": np.asarray(system.pose(q, body).position),
            "acceleration": system.acceleration(q, u, udot, body), "energy": system.energy(q, u),
            "drives": system.inverse_dynamics(q, u, udot), "masses": system.mass_matrix(q), "bias": system.bias(q, u),
            "momenta": system.momenta(q, u), "Jacobian": system.jacobian(q, body)}


def cut_elsewhere(machine: bc.Mechanism, method: str, plain: bc.System, joints: list[str]) -> bc.System:
    """The machine with its loops cut at other joints, by the first of these that can be cut."""
    for name in joints:
        try:
            other = bc.compile(machine, method, "numpy", cut=[str(name)])
        except bc.ModelError:  # bodies would be lost
            continue
        if other.model.tree.cut_names != plain.model.tree.cut_names:
            return other
    leave()


@pytest.mark.reaches(0.25)  # others cannot be cut elsewhere, or are singular
@examples(40)
@given(graphs(bodies=5, loops=2), st.integers(0, 10**6), st.sampled_from(METHODS))
def test_random_machines(graph: Graph, choice: int, method: str) -> None:
    machine = build(graph)
    rng = np.random.default_rng(choice)
    joints = [r.name for r in machine.joints if r.joint.nu and r.prescribed is None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bc.BellcrankWarning)
        try:
            plain = bc.compile(machine, backend="numpy")
            other = cut_elsewhere(machine, method, plain, rng.permutation(joints).tolist())
            state = state_of(plain, graph.seed)
            other.plans.reference()
        except (bc.ModelError, bc.AssemblyError, bc.SingularError):
            leave()
        if state is None or not plain.dof:
            leave()
        q, u, tau = state
        assert other.coordinate_names == plain.coordinate_names and other.speed_names == plain.speed_names
        assert other.joint_names == plain.joint_names
        try:
            udot = plain.forward_dynamics(q, u, tau)
            found, expected = (asked(s, q, u, tau, udot) for s in (other, plain))
        except bc.SingularError:
            leave()
        if spread(plain, q) > 1e6 or other.independent_speeds != plain.independent_speeds:
            leave()
        for name, value in expected.items():
            size = 1.0 + np.abs(value).max(initial=0.0) + np.abs(udot).max(initial=0.0)
            assert np.abs(found[name] - value).max(initial=0.0) < 1e-13 * spread(plain, q) * size + 1e-9 * size, name
        here = other.assemble(q=q, u=u)
        assert np.abs(other.difference(here.q, q)).max() < 1e-9 and np.abs(here.u - u).max() < 1e-8 * (1 + abs(u).max())


BUILT_IN = ("four_bar", "slider_crank", "five_bar", "stewart", "bennett", "double_wishbone")


@pytest.mark.parametrize("name", BUILT_IN)
def test_compiled_machines(name: str) -> None:
    machine = bc.load(name)
    plain, rng = bc.compile(machine), np.random.default_rng(1)
    start = plain.assemble()
    wish = plain.assemble(q=start.q, u=rng.normal(size=plain.nu)).u
    state = plain.assemble(q=plain.integrate(start.q, 0.2 * wish), u=rng.normal(size=plain.nu))
    tau = rng.normal(size=plain.nu)
    udot = plain.forward_dynamics(state, tau)
    many = [np.tile(x, (9, 1)) for x in (state.q, state.u, tau)]
    loads = plain.reactions(state, tau)
    slopes = plain.derivatives("forward_dynamics", state, tau, by=("q", "u", "tau"))
    joints = [r.name for r in machine.joints if r.joint.nu]
    tried = 0
    for joint in (joints[0], joints[len(joints) // 2], joints[-1]):
        try:
            other = bc.compile(machine, cut=[joint])
        except bc.ModelError:  # both of its sides would be lost
            continue
        tried += 1
        assert other.coordinate_names == plain.coordinate_names
        assert other.independent_speeds == plain.independent_speeds
        size = np.abs(udot).max()
        assert np.abs(other.forward_dynamics(state, tau) - udot).max() < 1e-9 * size
        assert np.abs(other.forward_dynamics(*many) - udot).max() < 1e-9 * size
        assert np.abs(other.inverse_dynamics(state, udot) - plain.inverse_dynamics(state, udot)).max() < 1e-8 * size
        for key, load in other.reactions(state, tau).items():
            assert np.abs(load - loads[key]).max() < 1e-7 * (1.0 + max(np.abs(x).max() for x in loads.values()))
        found = other.derivatives("forward_dynamics", state, tau, by=("q", "u", "tau"))
        for by in ("q", "u", "tau"):
            assert found.columns[by] == slopes.columns[by]
            assert np.abs(found[by] - slopes[by]).max() < 1e-7 * (1.0 + np.abs(slopes[by]).max())
        again = other.assemble(q=state.q, u=state.u)
        assert np.abs(again.q - state.q).max() < 1e-12 and np.abs(again.u - state.u).max() < 1e-11
    assert tried


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
