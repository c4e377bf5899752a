"""Everything that machines can be asked, asked of one with a body that deforms: runs, events, statics, refusals."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.simulate.steppers import STEPPERS

STEEL = bc.BeamSection.round(0.01, E=2.1e11, rho=7850.0)
ROD = bc.FlexibleBody.beam(1.0, STEEL, elements=4, modes={"y": 2})


def arm_with(rod: bc.FlexibleBody = ROD) -> bc.Mechanism:
    """A rod on a hinge, with a bob at its tip."""
    m = bc.Mechanism("arm", gravity=(0, -9.81, 0))
    m.add_body("rod", rod)
    m.add_body("bob", bc.Inertia.sphere(0.2, 0.02))
    m.add_joint("hinge", bc.Revolute("z"), m.ground, "rod")
    m.add_joint("bolt", bc.Weld(), "rod.tip", "bob")
    return m


@cache
def arm() -> bc.System:
    return bc.compile(arm_with())


def bent() -> bc.State:
    """Initial values of modes by name."""
    state = arm().assemble(q={"rod.mode1": 0.01, "hinge": 0.2}, u={"rod.mode2": 0.5, "hinge": 1.0})
    assert state.q.tolist() == [0.2, 0.01, 0.0] and state.u.tolist() == [1.0, 0.0, 0.5]
    return state


# -- runs --------------------------------------------------------------------------------------------------------------
def test_energies_in_results() -> None:
    """Kinetic, potential and strain energy add up to what does not change, 1e-10 of it."""
    result = arm().simulate(bent(), 0.3, stepper="dop853", rtol=1e-12, atol=1e-14, output=0.05)
    q = result.q.values
    strain = 0.5 * np.einsum("ni,ij,nj->n", q[:, 1:], ROD.stiffness, q[:, 1:])
    assert np.abs(result.stored_energy.values - strain).max() < 1e-14
    parts = sum(result[f"{name}_energy"].values for name in ("kinetic", "potential", "stored"))
    assert np.abs(parts - result["energy"].values).max() < 1e-13
    energy = result["energy"].values
    assert np.abs(energy - energy[0]).max() < 1e-10 * result.kinetic_energy.values.max()


@pytest.mark.parametrize("stepper", [name for name in STEPPERS if name != "moreau"])
def test_all_steppers(stepper: str) -> None:
    error = {"semi_implicit": 2e-3, "rk4": 1e-6}.get(stepper, 1e-7)
    found, wanted = (arm().simulate(bent(), 0.02, stepper=s, **options).q.values[-1] for s, options in (
        (stepper, {} if stepper in ("dopri5", "radau5", "dop853") else {"step": 2e-4}), ("dop853", {"rtol": 1e-10})))
    assert np.abs(found - wanted).max() < error


def test_steps_of_rigid_contact_are_refused() -> None:
    for run in (lambda s, y: s.simulate(y, 0.02, stepper="moreau", step=2e-4),
                lambda s, y: bc.rollout(s, [np.atleast_2d(x) for x in y[:2]], 2e-4, stepper="moreau").step()):
        with pytest.raises(bc.NotYetError, match="'moreau' does not cover bodies that deform, such as 'rod' of 'arm'"):
            run(arm(), bent())


def test_batches_are_single_runs() -> None:
    state = bent()
    q, u = (np.stack([k * x for k in (0.5, 1.0, 1.5, 2.0, -1.0)]) for x in (state.q, state.u))
    many = arm().simulate((q, u), 0.01, stepper="rk4", step=2e-4).q.values[-1]
    each = np.stack([arm().simulate((a, b), 0.01, stepper="rk4", step=2e-4).q.values[-1]
                     for a, b in zip(q, u, strict=True)])
    assert np.abs(many - each).max() < 1e-14


def test_modes_in_events() -> None:
    """Events see modes, lock and unlock them; what the lock takes away is the kinetic energy of an impact."""
    system = arm()
    turning = bc.Event(lambda t, q, u: u["rod"][0], "turns", action="stop")
    stopped = system.simulate(bent(), 0.1, stepper="dop853", events=[turning])
    assert abs(stopped.u.values[-1][1]) < 1e-9 and 0.0 < stopped.time.values[-1] < 0.1
    events = [bc.Event(lambda t, q, u: t - 0.01, "hold", action=bc.lock("rod.mode1")),
              bc.Event(lambda t, q, u: t - 0.02, "free", action=bc.unlock("rod.mode1"))]
    held = system.simulate(bent(), 0.03, stepper="dop853", output=0.005, events=events)
    between = (held.time.values > 0.0101) & (held.time.values < 0.0199)
    assert np.abs(held.u.values[between, 1]).max() < 1e-12
    assert np.ptp(held.q.values[between, 1]) < 1e-14 and np.abs(held.u.values[-1, 1]) > 1e-3
    before = system.simulate(bent(), 0.01, stepper="dop853")
    q, u = before.q.values[-1], before.u.values[-1]
    mass = system.mass_matrix(q)
    after = u.copy()
    free = [0, 2]
    after[1] = 0.0
    after[free] = np.linalg.solve(mass[np.ix_(free, free)], (mass @ u)[free])  # an impulse along the mode alone
    first = held.u.values[np.flatnonzero(between)[0]]
    run = system.lock("rod.mode1").simulate((q, after), 0.005, stepper="dop853", rtol=1e-9)
    assert np.abs(run.u.values[-1] - first).max() < 1e-5 * np.abs(first).max()


def test_a_coupler_between_modes() -> None:
    m = arm_with()
    m.add_coupler("twin", {"rod.mode1": 1.0, "rod.mode2": 3.0})
    system = bc.compile(m)
    state = system.assemble(q={"rod.mode1": 0.006}, u={"hinge": 1.0})
    assert system.dof == 2 and abs(state.q[2] + 0.002) < 1e-15
    result = system.simulate(state, 0.05, stepper="dop853", rtol=1e-11, atol=1e-13)
    assert np.abs(result.q.values[:, 1] + 3.0 * result.q.values[:, 2]).max() < 1e-15
    energy = result["energy"].values
    assert np.abs(energy - energy[0]).max() < 1e-9 * result.kinetic_energy.values.max()


def test_points_and_frames_at_nodes() -> None:
    """A tip that slides along a line, a frame on a node, a bushing between nodes."""
    m = arm_with()
    m.add_constraint("rail", bc.PointOnLine("x"), m.ground, "rod.tip", parent_pose=bc.Pose((0, 0.1, 0)))
    m.add_frame("tool", "rod.tip", bc.Pose((0.0, 0.05, 0.0)))
    m.add_bushing("mount", "rod.tip", m.ground, stiffness=(30.0, 20.0, 10.0), damping=(0.1, 0.1, 0.1))
    system = bc.compile(m, backend="numpy")
    state = system.assemble(q={"rod.mode1": 0.01, "rod.mode2": 0.002}, u={"rod.mode1": 0.1, "rod.mode2": 0.3})
    tip, tool = system.pose(state.q, "rod.tip"), system.pose(state.q, "tool")
    assert abs(tip.position[1] - 0.1) < 1e-14
    assert np.abs(tool.position - tip.position - tip.rotation @ [0, 0.05, 0]).max() < 1e-15
    oracle = bc.compile(m, method="dense", backend="numpy")
    udot = system.forward_dynamics(state.q, state.u)
    assert np.abs(udot - oracle.forward_dynamics(state.q, state.u)).max() < 1e-10 * np.abs(udot).max()
    assert abs(system.acceleration(state.q, state.u, udot, "rod.tip")[4]) < 1e-9 * np.abs(udot).max()


def test_a_contact_at_a_node() -> None:
    """A ball at the tip on the floor: the force of its depth, on hinge and modes."""
    m = arm_with()
    m.add_shape(m.ground, bc.Plane(), bc.Pose((0, -0.1, 0), [[1, 0, 0], [0, 0, 1], [0, -1, 0]]), role="collision")
    m.add_shape("rod.tip", bc.Sphere(0.05), role="collision")
    m.add_contact("floor", m.ground, "rod.tip", stiffness=1e4)
    system, q, u = bc.compile(m, backend="numpy"), np.array([-0.06, 0.004, -0.001]), np.array([0.3, 0.2, -0.1])
    depth = -0.1 + 0.05 - system.pose(q, "rod.tip").position[1]
    push = {"rod.tip": np.array([0, 0, 0, 0, 1e4 * depth, 0])}
    wanted = arm().forward_dynamics(q, u, wrenches=push)
    assert depth > 0.0 and np.abs(system.forward_dynamics(q, u) - wanted).max() < 1e-10 * np.abs(wanted).max()


def test_nodes_that_do_not_move_are_no_links() -> None:
    """The node that a frame is clamped at is a place on the body: it costs nothing, and can carry the body."""
    assert arm().model.tree.link_names == ("ground", "rod", "rod.frame", "rod.tip")
    m = bc.Mechanism("arm", gravity=(0, -9.81, 0))
    m.add_body("rod", ROD)
    m.add_body("bob", bc.Inertia.sphere(0.2, 0.02))
    m.add_joint("hinge", bc.Revolute("z"), m.ground, "rod.base")
    m.add_joint("bolt", bc.Weld(), "rod.tip", "bob")
    other, state = bc.compile(m, backend="numpy"), bent()
    assert np.array_equal(other.pose(state.q, "rod.base").position, np.zeros(3))
    wanted = arm().forward_dynamics(state.q, state.u)
    order = [other.coordinate_names.index(name) for name in arm().coordinate_names]
    found = other.forward_dynamics(state.q[np.argsort(order)], state.u[np.argsort(order)])[order]
    assert np.abs(found - wanted).max() < 1e-11 * np.abs(wanted).max()
    push = {"rod.base": np.array([0, 0, 0.3, 0, 0, 0])}  # at the hinge a moment is a joint force
    pushed = arm().forward_dynamics(state.q, state.u, wrenches=push)
    assert np.abs(pushed - arm().forward_dynamics(state.q, state.u, {"hinge": 0.3})).max() < 1e-9


# -- statics and vibrations --------------------------------------------------------------------------------------------
def test_modes_of_a_whole_machine() -> None:
    """Eigenvalues of mass and stiffness by differences; of a long rod without a bob those of a beam on a pin."""
    system = arm()
    rest = bc.analyze.equilibrium(system, {"hinge": -1.5})
    mass, h = system.mass_matrix(rest.q), 1e-5
    stiff = np.stack([system.bias(rest.q + h * e, 0 * e) - system.bias(rest.q - h * e, 0 * e)
                      for e in np.eye(3)], axis=-1) / (2 * h)
    wanted = np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(mass, stiff)).real)) / (2 * np.pi)
    assert np.abs(bc.analyze.modes(system, rest).frequencies / wanted - 1.0).max() < 1e-6
    eigenvalues = np.linalg.eigvals(bc.analyze.linearize(system, rest).A)
    assert np.abs(np.sort(eigenvalues.imag)[3:] / (2 * np.pi) / wanted - 1.0).max() < 1e-6
    m = bc.Mechanism("pinned", gravity=(0, 0, 0))
    m.add_body("rod", bc.FlexibleBody.beam(1.0, STEEL, elements=8, modes={"y": 5}))
    m.add_joint("pin", bc.Revolute("z"), m.ground, "rod")
    free = bc.compile(m, backend="numpy")
    found = bc.analyze.modes(free, free.assemble()).frequencies
    roots = np.array([3.926602312047919, 7.068582745628732])  # tan = tanh
    assert found[0] < 1e-4
    assert np.abs(found[1:3] / (roots**2 * np.sqrt(STEEL.EIz / STEEL.mass) / (2 * np.pi)) - 1.0).max() < 3e-3


def test_static_deflections_that_are_too_large_are_told() -> None:
    soft = bc.BeamSection.round(0.004, E=2e9, rho=1200.0)
    m = bc.Mechanism("soft", gravity=(0, -9.81, 0))
    m.add_body("rod", bc.FlexibleBody.beam(1.0, soft, elements=4, modes={"y": 2}))
    m.add_joint("wall", bc.Weld(), m.ground, "rod")
    system = bc.compile(m, backend="numpy")
    said = "equilibrium of 'soft': body 'rod' deforms more.*node 'tip' moves by 0.7.* of its extent"
    with pytest.warns(bc.BellcrankWarning, match=said):
        bc.analyze.equilibrium(system)


# -- refusals ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("what", "ask"), [
    ("hamilton", lambda s, q: s.hamilton(q, q)), ("regressor", lambda s, q: s.regressor(q, q, q)),
    ("mass_factors", bc.analyze.mass_factors), ("operators", bc.analyze.operators),
    ("inertial_parameters", lambda s, q: bc.analyze.inertial_parameters(s)),
    ("regressor", lambda s, q: bc.analyze.base_parameters(s))])
def test_what_does_not_cover_bodies_that_deform_says_so(what: str, ask: Any) -> None:
    with pytest.raises(bc.NotYetError, match=f"{what} does not cover bodies that deform, such as 'rod' of 'arm'"):
        ask(arm(), np.zeros(3))


@pytest.mark.parametrize("method", ["kane", "reduction", "complement", "momenta", "divide"])
def test_methods_that_do_not_cover_them(method: str) -> None:
    with pytest.raises(bc.ModelError, match=f"method '{method}' does not cover bodies that deform, such as 'rod'"):
        bc.compile(arm_with(), method=method)


def test_loops_that_do_not_cover_them() -> None:
    m = arm_with()
    m.add_coupler("twin", {"rod.mode1": 1.0, "rod.mode2": 3.0})
    system = bc.compile(m, backend="numpy")
    for what, ask in (("partition", bc.analyze.partition), ("hamilton", lambda s, q, u: s.hamilton(q, u))):
        with pytest.raises(bc.NotYetError, match=f"{what} does not cover bodies that deform, such as 'rod'"):
            ask(system, np.zeros(3), np.zeros(3))


def test_bodies_that_deform_neither_enter_nor_leave() -> None:
    late = bc.Event(lambda t, q, u: t - 0.01, "late", action=bc.leave("rod"))
    with pytest.warns(bc.SimulationWarning, match="leave: body 'rod' deforms and cannot leave a run"):
        result = arm().simulate(bent(), 0.02, stepper="dop853", events=[late])
    assert result.attrs["status"] == "failed"


@pytest.mark.parametrize("name", ["arm.urdf", "arm.sdf", "arm.xml"])
def test_files_of_other_programs(name: str, tmp_path: Path) -> None:
    with pytest.raises(bc.ModelError, match="body 'rod' deforms, which (URDF|SDF|MJCF) cannot hold"):
        bc.save(arm_with(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_node_that_does_not_exist() -> None:
    m = arm_with()
    with pytest.raises(bc.ModelError, match="'rod' has no node 'middle', but 'base', 'tip'$"):
        m.add_joint("more", bc.Weld(), "rod.middle", "bob")
    with pytest.raises(bc.ModelError, match=re.escape("did you mean 'rod.tip'?")):
        m.add_wrench("push", "rod.tpi", force=(1.0, 0, 0))


def test_parameters_are_no_part_of_flexible_bodies() -> None:
    m = bc.Mechanism("arm")
    k = m.parameter("k", 1.0)
    shapes = np.eye(6)[:, [1]]
    for make in (lambda: bc.BeamSection(k, 1.0, 1.0, 1.0, 1.0), lambda: bc.BeamSection.round(k, E=2e11, rho=7800.0),
                 lambda: bc.BeamSection.rectangle(0.1, 0.1, E=k, rho=7800.0),  # type: ignore[arg-type]
                 lambda: bc.FlexibleBody.beam(k, STEEL), lambda: bc.FlexibleBody.beam(1.0, STEEL, damping=k),
                 lambda: bc.FlexibleBody.from_modes(np.eye(3)[:2], shapes, np.eye(6), [[k]]),
                 lambda: bc.FlexibleBody.from_mesh((np.eye(4)[:, :3], {"tetra": [[0, 1, 2, 3]]}), k, 0.3, 1.0,
                                                   interfaces={})):
        with pytest.raises(bc.ModelError, match="is a parameter of a mechanism, but modes are computed once"):
            make()
