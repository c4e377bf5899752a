"""What users ask of a joint by its name is the same wherever its loop is cut: runs with forces, controllers, locks and
stops, closed states, linear models, equilibria, driven motions, curves. Functions of a state are in test_every_cut.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.math import sin
from bellcrank.simulate.plot_lines import lines_of
from bellcrank.system.arrangements import Arrangement, arranged
from bellcrank.view.force_curves import GrowingCurves
from bellcrank.view.scenes import scene_of
from every_function import Things, differences
from looped import sleeve_crank
from whole_states import whole_q, whole_u


def slider_crank() -> bc.Mechanism:
    return bc.load("slider_crank")


def plate() -> bc.Mechanism:
    """A plate on a table, and a crank that pushes it: two degrees of freedom."""
    m = bc.Mechanism("plate", gravity=(0.3, -9.81, 0.0))
    crank = m.add_body("crank", bc.Inertia.box(1.0, (0.3, 0.1, 0.05), (0.15, 0, 0)))
    body = m.add_body("plate", bc.Inertia.box(0.7, (1.0, 0.1, 0.08), (0.5, 0, 0)))
    m.add_joint("crank", bc.Revolute("z"), m.ground, crank)
    m.add_joint("pin", bc.Revolute("z"), crank, body, parent_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint("table", bc.Planar("z"), body, m.ground)
    return m


#: by joint: the machine, another joint of its loop, coordinates that determine it, and one of the joint's own
JOINTS: dict[str, tuple[Callable[[], bc.Mechanism], str, tuple[str, ...], str]] = {
    "sleeve": (sleeve_crank, "ball", ("crank", "sleeve.angle"), "sleeve.angle"),
    "slide": (slider_crank, "big_end", ("crank",), "slide"),
    "cardan": (sleeve_crank, "crank", ("crank", "sleeve.angle"), "cardan.angle2"),
    "ball": (sleeve_crank, "sleeve", ("crank", "sleeve.angle"), "ball"),
    "table": (plate, "pin", ("crank", "pin"), "table.angle"),
    "small_end": (slider_crank, "crank", ("crank",), "small_end")}


@cache
def pair(joint: str, **settings: Any) -> tuple[tuple[bc.System, bc.System], bc.State]:
    """The machine cut at a joint and elsewhere, and a state that moves."""
    make, other, free, _ = JOINTS[joint]
    m = make()
    systems = tuple(bc.compile(m, backend="numpy", cut=[cut], **settings) for cut in (joint, other))
    assert [s.loops for s in systems] == [(joint,), (other,)]
    speeds = dict(zip(free, (1.1, -0.7), strict=False))
    return systems, systems[1].assemble(q={free[0]: 0.4}, u=speeds)  # type: ignore[return-value]


def same(found: Mapping[str, Any], wanted: Mapping[str, Any], tolerance: float = 1e-8) -> None:
    apart = differences({k: np.asarray(x) for k, x in found.items()}, {k: np.asarray(x) for k, x in wanted.items()})
    assert max(apart.values()) < tolerance, {name: x for name, x in apart.items() if x >= tolerance}


def ran(system: bc.System, state: bc.State, duration: float = 0.003, **settings: Any) -> Things:
    """A short run: coordinates, speeds, forces, energies, loads, events."""
    run = system.simulate(state, duration, step=1e-3, stepper="rk8", **settings)
    assert run.attrs["status"] == "finished", run.attrs["reason"]
    names = [name for name in ("q", "u", "tau", "energy", "event_time", *settings.get("outputs", {})) if name in run]
    return {name: run[name].values for name in names} | {
        f"load of {name}": run.joint_load(name).values for name in system.joint_names}


def at_time(t: float, change: Any, name: str) -> bc.Event:
    return bc.Event(lambda time, q, u: time - t, name, action=change)


def first(joint: str) -> str:
    """A coordinate that has a speed, or the joint where none has."""
    return JOINTS[joint][3]


def both(joint: str) -> list[str]:
    """Coordinates that determine the machine, that of the joint first where it has one."""
    free = JOINTS[joint][2]
    return [*free] if joint == "ball" else [first(joint), *[x for x in ("crank",) if len(free) > 1]]


def value(system: bc.System, state: bc.State, name: str, speed: bool = False) -> float:
    """A coordinate, or its speed; the first of a joint."""
    names, values = (system.speed_names, state.u) if speed else (system.coordinate_names, state.q)
    return float(values[next(i for i, own in enumerate(names) if own == name or own.startswith(f"{name}."))])


def sized(system: bc.System, joint: str, value: float) -> Any:
    """A force along each coordinate."""
    return value * np.linspace(1.0, 2.0, system.model.mechanism.joint(joint).joint.nu)


def torque(system: bc.System, state: bc.State, joint: str) -> Things:
    tau = {joint: sized(system, joint, 2.0), "crank": 1.0}
    run = system.simulate(state, 0.002, step=1e-3, tau=tau)
    return ran(system, state, tau=tau) | {"torque": run.torques(joint).values, **system.reactions(state, tau)}


def controlled(system: bc.System, state: bc.State, joint: str) -> Things:
    """Laws that are traced, and others."""
    n = len(sized(system, joint, 1.0))
    at, v = ([name.partition(".")[0] for name in names].index(joint) for names in (
        system.coordinate_names, system.speed_names))
    law = bc.Traced(lambda t, q, u: {joint: [-20.0 * q[at] - 2.0 * u[v] + sin(t)] + [0.0] * (n - 1)})
    return ran(system, state, control=law) | {
        f"sampled {k}": x for k, x in ran(system, state, control=lambda t, q, u: {joint: [2.0 * t + 1.0] * n}).items()}


def locked_by_events(system: bc.System, state: bc.State, joint: str) -> Things:
    """As a whole and by coordinate, and let go one by one."""
    name = first(joint)
    changes = (bc.lock(name), bc.unlock(joint), bc.lock(joint), bc.unlock(name))
    changes += (bc.unlock(joint),) if name != joint and len(sized(system, joint, 1.0)) > 1 else ()
    return ran(system, state, 0.006, events=[at_time(0.0005 + 0.001 * k, c, str(k)) for k, c in enumerate(changes)])


def stopped(system: bc.System, state: bc.State, joint: str) -> Things:
    """Rigid stops that are hit, with and without restitution."""
    name = first(joint)
    coordinate = {"cardan": 1, "table": 2}.get(joint, 0)
    at, way, out = value(system, state, name), 0.0015 * abs(value(system, state, name, True)), {}
    for restitution in (0.5, 0.0):
        found = ran(system, state, events=bc.joint_limit(joint, at - way, at + way, restitution=restitution,
                                                         coordinate=coordinate))
        assert len(found["event_time"]) == 1
        out |= {f"{key}, {restitution}": x for key, x in found.items()}
    return out


def locked(system: bc.System, state: bc.State, joint: str) -> Things:
    """`System.lock`: what is computed at states, closed states, runs, and questions about many states."""
    held = system.lock(first(joint))
    assert held.dof == (0 if joint == "ball" else system.dof - 1)
    moving = held.assemble(guess=state)
    many = held.assemble(q=np.stack([state.q, state.q]))
    out = {"many": many.q, "state": moving.q, "udot": held.forward_dynamics(moving), **ran(held, moving)}
    if held.dof:
        rest = bc.analyze.equilibrium(held, state.q)
        model = bc.analyze.linearize(held, rest, coordinates=["crank"])
        out |= {"rest": rest.q, "poles": np.sort(np.abs(model.eigenvalues)),
                "modes": np.zeros(0) if joint == "table" else bc.analyze.modes(held, rest).frequencies,
                "slope": held.derivatives("center_of_mass", moving, by="q")["q"]}
    return out


def linear(system: bc.System, state: bc.State, joint: str) -> Things:
    """About a motion, with a force along the joint as input and its acceleration as output."""
    name = first(joint) if joint != "ball" else "crank"
    out = {}
    for coordinates in (None, both(joint)):
        model = bc.analyze.linearize(system, state, coordinates=coordinates, tau={"crank": 1.0}, inputs=[joint],
                                     outputs=[name, f"{name}.acceleration"])
        assert len(model.states) == 2 * system.dof
        near = model.nearby(0.001 * np.arange(1.0, 1.0 + 2 * system.dof))
        key = str(coordinates is None)
        out |= {f"{key} {x}": getattr(model, x) for x in ("A", "B", "C", "D", "rate", "shapes")}
        out |= {f"{key} near": near.q, f"{key} fast": near.u}
    return out


def resting(system: bc.System, state: bc.State, joint: str) -> Things:
    """Equilibria under forces along the joint, with the joint held, and oscillations about them."""
    hold = list(JOINTS[joint][2][1:])
    found = {"force": bc.analyze.equilibrium(system, state, tau={joint: sized(system, joint, 0.3)}, hold=hold)}
    if joint != "ball":
        found["held"] = bc.analyze.equilibrium(system, state.q, hold=[joint],
                                               wrenches=np.ones((len(system.body_names), 6)))
    return {name: rest.q for name, rest in found.items()}


def driven(system: bc.System, state: bc.State, joint: str) -> Things:
    """The joint follows a function of time."""
    starts = {x: value(system, state, x) for x in both(joint)}
    laws = {x: (lambda t, x=x: starts[x] + 0.05 * t) for x in starts}
    run = bc.analyze.drive(system, laws, [0.0, 0.01, 0.02], guess=state, reactions=True)
    return {x: run[x].values for x in ("q", "u", "tau", "reaction")}


def closed(system: bc.System, state: bc.State, joint: str) -> Things:
    """Guesses that name some of the joints, weights, values and speeds that are held, several of them, projections."""
    name = first(joint)
    if joint == "ball":
        given: Any = {"q": {"crank": 0.5}, "u": {"crank": 1.0}}
        asked = ({"guess": {"crank": 0.5}}, {"guess": {"crank": 0.5}, "weights": {"ball": 4.0}})
    else:
        at = value(system, state, name)
        given = {"q": {name: at - 0.01}, "u": {name: 1.0}}
        asked = ({"q": {name: np.array([at, at - 0.005])}, "guess": state}, {"guess": {name: at, "crank": 0.4}},
                 {"guess": {"crank": 0.4}, "weights": {"crank": 10.0, joint: 3.0}})
    out = {}
    for k, each in enumerate((given | {"guess": state}, {}, *asked)):
        made = system.assemble(**each)
        out |= {f"q {k}": made.q, f"u {k}": made.u}
    away = system.project(state.q + 0.003 * np.cos(np.arange(system.nq)), state.u + 0.1)
    return out | {"projected": away.q, "its speeds": away.u}


def curves(system: bc.System, state: bc.State, joint: str) -> Things:
    """Accelerations that are held, of one state and of several; the way of a point, and where it can go."""
    last, (name, *rest) = system.body_names[-1], both(joint)
    held = dict.fromkeys((name, *rest), 1.5)
    udot = system.consistent_acceleration(state, held)
    many = system.consistent_acceleration(np.stack([state.q, state.q]), state.u, held)
    assert np.abs(many - udot).max() < 1e-10
    at = {x: value(system, state, x) for x in held}
    curve = bc.analyze.coupler_curve(system, name, last, values=at[name] + np.linspace(0.0, -0.003, 4), hold=rest,
                                     guess=state)
    space = bc.analyze.workspace(system, last, guess=state, samples=5, ranges={
        x: (at[x] - (0.003 if x == name else 0.0), at[x]) for x in held})
    return {"udot": udot, "curve": curve.points, "its q": curve.q, "space": space.points}


def inverse(system: bc.System, state: bc.State, joint: str) -> Things:
    """Forces of named joints alone that make a motion."""
    udot = system.forward_dynamics(state, {"crank": 1.0})
    names = [joint] if system.dof == 1 else [joint, "crank"]
    tau = system.inverse_dynamics(state, udot, actuated=names)
    again = system.forward_dynamics(state, tau)
    return {"tau": tau, "again": again}


Call = Callable[[bc.System, bc.State, str], Things]
CALLS: tuple[Call, ...] = (torque, controlled, locked_by_events, stopped, locked, linear, resting, driven, closed,
                           curves, inverse)
PLACES = tuple(JOINTS)
CASES = [(call, joint) for i, call in enumerate(CALLS) for k, joint in enumerate(PLACES)
         if not (joint == "ball" and call in (stopped,))]


@pytest.mark.parametrize(("call", "joint"), CASES, ids=[f"{c.__name__}-{j}" for c, j in CASES])
def test_the_same_wherever_it_is_cut(call: Call, joint: str) -> None:
    systems, state = pair(joint)
    same(*(call(system, state, joint) for system in systems))


def test_code_of_locks_is_shared() -> None:
    """Where a joint is locked is a parameter: another place needs no other code."""
    (system, _), state = pair("table")
    one, two = (arranged(system, Arrangement(locked=("table.x",), pins=(("table.x", (x,)),)), state.q)
                for x in (0.3, 0.31))
    assert one.kernels.evaluator is two.kernels.evaluator and one.model.values != two.model.values
    assert "table.x held at" not in system.parameters


def test_loads_that_mechanics_leaves_open_are_the_same() -> None:
    """A planar linkage that is pushed out of its plane: how the joints share that load is a choice, always the same."""
    m = bc.load("four_bar")
    m.add_wrench("push", m.bodies[1].name, law=lambda at: ((1.0, 2.0, 5.0 + at.t), (0.3, -0.4, 0.5)))
    m.add_joint_spring("spring", "C", stiffness=3.0)
    found = []
    for settings in ({}, {"cut": ["B"], "method": "dense"}, {"actuated": ["D"]}):
        system = bc.compile(m, backend="numpy", **settings)
        state = system.assemble(q={"A": 0.7}, u={"A": 2.0}, t=0.3)
        outside = np.zeros((len(system.body_names), 6))
        outside[0] = 1.0
        many = [np.stack([x, x]) for x in (state.q, state.u)]
        run = system.simulate(state, 0.002, step=1e-3, tau={"D": 0.5})
        out = {}
        for key, loads in (("alone", system.reactions(state)), ("driven", system.reactions(state, {"D": 0.5})),
                           ("outside", system.reactions(state, wrenches=outside)),
                           ("many", {k: x[1] for k, x in system.reactions(*many, {"D": 0.5}, t=[0.3, 0.3]).items()}),
                           ("run", {j: run.joint_load(j, body=system.body_names[0]).values for j in "AB"})):
            out |= {f"{key} {joint}": load for joint, load in loads.items()}
        found.append(out)
    assert np.abs(found[0]["alone A"][[0, 1, 5]]).max() > 0.1
    for other in found[1:]:
        same(other, found[0], 1e-9)


def pushed_pair() -> bc.Mechanism:
    """Two planar loops that share a bar, pushed out of their plane, and a bar that hangs: two degrees of freedom."""
    m = bc.Mechanism("pushed", gravity=(0.3, -9.81, 0.2))
    b = [m.add_body(f"b{i}", bc.Inertia.box(1.0 + 0.2 * i, (0.5, 0.05, 0.04), (0.2, 0.02, 0.03))) for i in range(6)]
    for name, first, second, at, there in (
            ("A", m.ground, b[0], (0, 0, 0), (0, 0, 0)), ("B", b[0], b[1], (0.4, 0, 0), (0, 0, 0)),
            ("C", b[1], b[2], (0.7, 0, 0), (0, 0, 0)), ("D", b[2], m.ground, (0.5, 0, 0), (0.6, 0, 0)),
            ("E", b[1], b[3], (0.3, 0.1, 0), (0, 0, 0)), ("F", b[3], b[4], (0.5, 0, 0), (0, 0, 0)),
            ("G", b[4], m.ground, (0.45, 0, 0), (1.1, 0.3, 0)), ("H", b[4], b[5], (0.3, 0.1, 0), (0, 0, 0))):
        m.add_joint(name, bc.Revolute("z"), first, second, parent_pose=bc.Pose(at), child_pose=bc.Pose(there))
    m.add_wrench("push", "b1", law=lambda at: ((1.0, 2.0, 5.0), (0.3, -0.4, 0.5)))
    return m


@pytest.mark.parametrize(("opened", "held"), [((), ()), ((), ("E",)), (("D",), ("H",)), (("G",), ())], ids=str)
@pytest.mark.everyday(3)
def test_open_loads_of_machines_that_were_changed(opened: tuple[str, ...], held: tuple[str, ...]) -> None:
    """With loops open, joints locked, accelerations given with forces or without."""
    m, found = pushed_pair(), []
    plain = bc.compile(m, backend="numpy")
    state = plain.assemble(q={"A": 1.2}, u={} if held else {"A": 2.0, "H": 1.0})
    for cut in ((), ("D", "G"), ("D", "E"), ("G", "A")):
        system = bc.compile(m, backend="numpy", cut=cut)
        if not {*opened} <= {*system.loops}:
            continue
        changed = system.release(*opened) if opened else system
        changed = changed.lock(*held) if held else changed
        udot = changed.forward_dynamics(state, {"A": 3.0})
        loads = {"alone": changed.reactions(state), "both": changed.reactions(state, {"B": 2.0}, udot=udot),
                 "motion": changed.reactions(state, udot=udot)}
        found.append({f"{key} {name}": x for key, each in loads.items() for name, x in each.items()})
    assert len(found) > 1 and np.abs(found[0]["alone A"]).max() > 1.0
    for other in found[1:]:
        same(other, found[0])


def test_a_free_joint_that_closes_a_loop_is_locked_as_a_weld() -> None:
    """Far from where both sides coincide: what holds it is about the place of the child."""
    def two(name: str) -> bc.Mechanism:
        m = bc.Mechanism(name, gravity=(0.0, 0.0, -9.81))
        m.add_joint("one", bc.Free(), m.ground, m.add_body("a", bc.Inertia.box(1.0, (0.3, 0.1, 0.05), (0.1, 0, 0))))
        m.add_body("b", bc.Inertia.box(2.0, (0.2, 0.3, 0.1), (0, 0.2, 0.1)))
        return m

    loose, welded = two("loose"), two("welded")
    loose.add_joint("two", bc.Free(), loose.ground, "b")
    loose.add_joint("between", bc.Free(), "a", "b", bc.Pose((0.1, 0.2, 0)), bc.Pose((0, 0.05, 0)))
    welded.add_joint("weld", bc.Weld(), "a", "b", parent_pose=bc.Pose((0.5, 0.4, 0.3)))
    locked = bc.compile(loose, backend="numpy", cut=["between"]).lock("between")
    wanted = bc.compile(welded, backend="numpy")
    q, u = np.array([1.0, 0, 0, 0, 0.1, 0.2, 0.3]), np.array([0.5, 1.0, -0.7, 0.3, 0.2, 0.1])
    place, speeds = wanted.pose(q, "b").position, wanted.velocity(q, u, "b")
    place = whole_q(locked, np.r_[q, 1.0, 0, 0, 0, place])
    found = locked.forward_dynamics(place, whole_u(locked, place, np.r_[u, speeds]))
    np.testing.assert_allclose(found[:6], wanted.forward_dynamics(q, u), atol=1e-11)
    np.testing.assert_allclose(found[locked.model.configuration.speed_entries("between")], 0.0, atol=1e-11)


@pytest.mark.parametrize("reads", ["coordinate", "element"])
def test_joints_that_laws_read_cannot_be_let_go(reads: str) -> None:
    """Their coordinates would stand still: the error names the law and says what to do."""
    m = bc.load("four_bar")
    if reads == "coordinate":
        m.add_output("angle", lambda at: at.q("D"))
    else:
        m.add_joint_spring("spring", "D", stiffness=2.0)
        m.add_output("angle", lambda at: at.element("spring").length)
    system = bc.compile(m, backend="numpy", cut=["D"])
    said = "joint 'D' of 'four-bar' cannot be let go: the law of 'output angle' reads it.*positions"
    with pytest.raises(bc.ModelError, match=said):
        system.release("D")
    with pytest.warns(bc.SimulationWarning, match=said):
        system.simulate(system.assemble(q={"A": 0.5}), 0.01, step=1e-3,
                        events=[at_time(0.005, bc.detach("D"), "open")])


def test_turns_of_single_coordinates_of_batches() -> None:
    """As many states as the joint has coordinates: each is as many turns on as it was asked for."""
    m = bc.Mechanism("two cardans")
    crank, rod, tip = (m.add_body(name, bc.Inertia.box(1.0, (0.3, 0.1, 0.05), (0.15, 0, 0)))
                       for name in ("crank", "rod", "tip"))
    m.add_joint("crank", bc.Revolute("z"), m.ground, crank)
    m.add_joint("one", bc.Universal("y", "z"), crank, rod, parent_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint("sleeve", bc.Cylindrical("x"), tip, m.ground, child_pose=bc.Pose((1.0, 0.1, 0.1)))
    m.add_joint("two", bc.Universal("y", "z"), rod, tip, parent_pose=bc.Pose((1.0, 0, 0)))
    assert bc.compile(m, backend="numpy").loops == ("two",)
    system = bc.compile(m, backend="numpy", cut=["crank"])
    wanted = np.array([0.15, 0.15 + 2.0 * np.pi])
    found = system.assemble(q={"two.angle1": wanted}).q[:, system.coordinate_names.index("two.angle1")]
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_linear_models_in_a_cut_joint_are_derivatives_of_the_motion() -> None:
    """Runs from neighbouring states: how fast they part, in the coordinates of the joint that is cut."""
    (system, _), state = pair("sleeve")
    model = bc.analyze.linearize(system, state, coordinates=["sleeve"], inputs=[], outputs=[])
    assert system.loops == ("sleeve",) and model.states[:2] == ("sleeve.angle", "sleeve.slide")
    laws = {name: (lambda at, name=name: at.q(name)) for name in model.states[:2]}
    laws |= {f"{name}.rate": (lambda at, name=name: at.u(name)) for name in model.states[:2]}
    h, weights = 1e-3, np.array([-25, 48, -36, 16, -3]) / 12.0  # of five samples: the rate at the first
    near = [model.nearby(x) for x in 1e-4 * np.vstack([np.eye(4), -np.eye(4), np.zeros((1, 4))])]
    run = system.simulate(tuple(np.stack([x[k] for x in near]) for k in range(2)), 4.0 * h, step=h, stepper="rk8",
                          outputs=laws)
    rates = np.stack([weights @ run[name].values / h for name in model.states])
    assert np.abs((rates[:, :4] - rates[:, 4:8]) / 2e-4 - model.A).max() < 1e-4 * np.abs(model.A).max()
    assert np.abs(rates[:, 8] - model.rate).max() < 1e-5 * np.abs(model.rate).max()


@pytest.mark.parametrize("method", ["recursive", "kane", "operator", "complement", "momenta", "divide", "dense",
                                    "reduction"])
def test_all_methods_move_carriers(method: str) -> None:
    """Also where every joint of the loop has a rotor, so that one of them must be cut."""
    m = bc.load("slider_crank")
    for joint in m.joints:
        m.add_armature(f"rotor of {joint.name}", joint.name, 0.2)
    m.add_joint_spring("sum", {"crank": 1.0, "big_end": 0.3}, stiffness=40.0)
    found, wanted = (bc.compile(m, name, "numpy") for name in (method, "elimination"))
    assert len(found.loops) == 1 and len(found.joint_names) == 4
    state = wanted.assemble(q={"crank": 0.7}, u={"crank": 3.0})
    udot = wanted.forward_dynamics(state)
    assert np.abs(found.forward_dynamics(state) - udot).max() < 1e-10 * np.abs(udot).max()
    assert np.abs(udot).max() > 1.0


def test_carriers_are_in_no_file(tmp_path: Path) -> None:
    """Model files hold what was described; results compile it as it was."""
    m = bc.load("slider_crank")
    m.add_armature("rotor", "small_end", 0.2)
    system = bc.compile(m, backend="numpy", cut=["small_end"])
    assert [c.real for c in system.model.mechanism.carriers] == ["piston"]
    bc.save(system.model.mechanism, tmp_path / "m.yaml")
    assert bc.io.native.same_mechanism(bc.load(tmp_path / "m.yaml"), m)
    state = system.assemble(q={"crank": 0.7}, u={"crank": 3.0})
    run = system.simulate(state, 0.002, file=tmp_path / "run.nc")
    again = bc.open_result(tmp_path / "run.nc").rebuild()
    assert again.system is not None and again.system.joint_names == system.joint_names
    assert np.abs(again.reactions("small_end").values - run.reactions("small_end").values).max() < 1e-6
    assert [b.name for b in scene_of((system, state)).models[0].bodies] == ["ground", "crank", "rod", "piston"]
    assert system.body_names == ("crank", "rod", "piston") and "carrier" not in str(bc.analyze.explain(system))
    assert "small_end.closing" not in system.reactions(state)


def test_batches_of_controllers_that_count_turns() -> None:
    """States whose coordinates are whole turns apart, and sensitivities through such a controller."""
    law = bc.Traced(lambda t, q, u: {"crank": -2.0 * q["crank"]})
    system = bc.compile(slider_crank(), backend="numpy", cut=["crank"])
    state = system.assemble(q={"crank": np.array([0.7, 0.7])}, u={"crank": 3.0})
    state = state.replace({"big_end": state["big_end"] + [0.0, 2.0 * np.pi]})
    run = system.simulate(state, 0.003, step=1e-3, control=law)
    assert np.abs(np.diff(run.u.values, axis=1)).max() < 1e-9
    assert np.abs(run.torques("crank").values[0] + 1.4).max() < 1e-9
    one = system.simulate((state.q[1], state.u[1]), 0.003, step=1e-3, control=law, sensitivities=["u0"])
    other = system.simulate((state.q[0], state.u[0]), 0.003, step=1e-3, control=law, sensitivities=["u0"])
    assert float(abs(one.d_u_u0 - other.d_u_u0).max()) < 1e-9


def test_curves_of_runs_that_go_on_show_all_joints() -> None:
    found = []
    for cut in ("crank", "big_end"):
        system = bc.compile(bc.load("slider_crank"), cut=[cut])
        run = system.simulate(system.assemble(q={"crank": 0.7}, u={"crank": 60.0}), 0.4, step=1e-3, stepper="rk8",
                              output=0.2)
        t, q, u = (run[name].values for name in ("time", "q", "u"))
        curves = GrowingCurves(system, t[:1], q[:1], u[:1], None)
        values = curves.values(t[1:], q[1:], u[1:], None, system)
        assert np.abs(lines_of(run, "crank")[0].values[:, 0] - run.q.sel(coordinate="crank.angle").values).max() < 1e-12
        found.append({label[1]: values[:, k] for k, label in enumerate(curves.labels) if label[0] in (
            "coordinates [rad]", "speeds [m/s]")})
    assert found[0].keys() == found[1].keys() == {"crank.angle", "big_end.angle", "small_end.angle", "slide.slide"}
    assert all(np.abs(found[0][name] - found[1][name]).max() < 1e-6 for name in ("crank.angle", "slide.slide"))


def test_joints_that_mean_nothing_more() -> None:
    """Locks of coordinates that were not locked are warned of; weights are positive."""
    (system, _), state = pair("table")
    with pytest.warns(bc.SimulationWarning, match=r"unlock: 'table.x' is not locked"):
        system.simulate(state, 0.001, step=1e-3, events=[
            at_time(0.0002, bc.lock("table.angle"), "lock"), at_time(0.0006, bc.unlock("table.x"), "go")])
    with pytest.raises(bc.StateError, match="weights: 'table' needs a positive number"):
        system.assemble(weights={"table": 0.0})


def test_open_loads_of_runs_with_locks() -> None:
    m, found = bc.load("four_bar"), []
    m.add_wrench("push", m.bodies[1].name, law=lambda at: ((1.0, 2.0, 5.0), (0.3, -0.4, 0.5)))
    for cut in ((), ("B",)):
        system = bc.compile(m, backend="numpy", cut=cut)
        found.append(ran(system, system.assemble(q={"A": 0.7}, u={"A": 2.0}), 0.002, events=[
            at_time(0.0005, bc.lock("B"), "lock")]))
    same(*found)


@pytest.mark.parametrize("joint", ["A", "C"])
def test_any_joint_of_a_loop_can_be_let_go(joint: str) -> None:
    """Whether it closes the loop in this machine or carries a link; by name, and by events of a run."""
    m, found = bc.load("four_bar"), []
    m.add_joint_spring("spring", "B", stiffness=3.0)
    for cut in ("A", "C", "D"):
        system = bc.compile(m, backend="numpy", cut=[cut])
        state = system.assemble(q={"A": 0.7}, u={"A": 2.0})
        loose = system.release(joint)
        held = loose.lock("A")
        assert loose.dof == 3 and loose.loops == () and loose.attach(joint, at=state).dof == 1
        found.append(ran(system, state, 0.006, events=[
            at_time(0.0015, bc.detach(joint), "open"), at_time(0.0035, bc.lock("B"), "lock")])
            | {"loose": loose.forward_dynamics(state, {"B": 1.0})}
            | ({"held": held.forward_dynamics(state)} if joint == "C" else {}))
    for other in found[1:]:
        same(other, found[0], 1e-7)


def test_joints_that_alone_carry_a_body_are_not_let_go() -> None:
    m = bc.load("four_bar")
    m.add_joint("hang", bc.Revolute("z"), m.bodies[0], m.add_body("bob", bc.Inertia(1.0, (0, -0.1, 0), 0.1)))
    system = bc.compile(m, backend="numpy")
    with pytest.raises(bc.ModelError, match="'hang' of 'four-bar' cannot be let go.*add a Free joint beside it"):
        system.release("hang")
    with pytest.warns(bc.SimulationWarning, match="detach: joint 'hang' of 'four-bar' cannot be let go"):
        system.simulate(system.assemble(), 0.01, step=1e-3, events=[at_time(0.005, bc.detach("hang"), "open")])
