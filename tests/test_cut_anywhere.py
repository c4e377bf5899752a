"""What users drive, stop, load or plot by the names of joints and bodies is the same wherever loops are cut: public
calls that take or give such names, each with two choices of the cut. Things put on joints are in test_cut_joints.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.system.arrangements import Arrangement, arranged, arrangement_of
from bellcrank.view.scenes import scene_of
from whole_states import whole_q, whole_u

Things = dict[str, np.ndarray]
Look = Callable[[bc.System, bc.State], Things]


def sleeve_crank() -> bc.Mechanism:
    """A crank, a rod on a ball and a universal joint, and a piston that may turn on its shaft: two degrees of freedom.
    Two joints are given from the piston towards the ground."""
    m = bc.Mechanism("sleeve", gravity=(0.3, -9.81, 0.5))
    bodies = [m.add_body(name, bc.Inertia.box(mass, size, com)) for name, mass, size, com in (
        ("crank", 1.0, (0.3, 0.1, 0.05), (0.15, 0, 0)), ("rod", 0.7, (1.0, 0.1, 0.08), (0.5, 0, 0)),
        ("piston", 0.9, (0.2, 0.1, 0.15), (0.02, 0.03, 0)))]
    m.add_joint("crank", bc.Revolute("z"), m.ground, bodies[0])
    m.add_joint("ball", bc.Spherical(), bodies[0], bodies[1], parent_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint("cardan", bc.Universal("y", "z"), bodies[1], bodies[2], parent_pose=bc.Pose((1.0, 0, 0)))
    m.add_joint("sleeve", bc.Cylindrical("x"), bodies[2], m.ground, child_pose=bc.Pose((1.0, 0.1, 0.1)))
    m.add_joint_spring("s", "sleeve", stiffness=30.0, coordinate="slide")
    return m


def plate() -> bc.Mechanism:
    """A plate on a table, and a crank that pushes it: two degrees of freedom."""
    m = bc.Mechanism("plate", gravity=(0.3, -9.81, 0.0))
    crank = m.add_body("crank", bc.Inertia.box(1.0, (0.3, 0.1, 0.05), (0.15, 0, 0)))
    body = m.add_body("plate", bc.Inertia.box(0.7, (1.0, 0.1, 0.08), (0.5, 0, 0)))
    m.add_joint("crank", bc.Revolute("z"), m.ground, crank)
    m.add_joint("pin", bc.Revolute("z"), crank, body, parent_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint("table", bc.Planar("z"), body, m.ground)
    return m


#: by joint: the machine, another joint of the loop, and two coordinates that determine it
JOINTS: dict[str, tuple[Callable[[], bc.Mechanism], str, tuple[str, str]]] = {
    "sleeve": (sleeve_crank, "ball", ("crank", "sleeve.angle")),
    "cardan": (sleeve_crank, "crank", ("crank", "sleeve.angle")),
    "ball": (sleeve_crank, "sleeve", ("crank", "sleeve.angle")),
    "table": (plate, "pin", ("crank", "pin"))}


@cache
def pair(joint: str) -> tuple[tuple[bc.System, bc.State], ...]:
    """The machine cut at a joint and elsewhere, in the same state, which moves."""
    make, other, free = JOINTS[joint]
    m = make()
    first = bc.compile(m, backend="numpy", cut=["crank"] if other != "crank" else [other])
    at = first.assemble(q={free[0]: 0.4}, u={free[0]: 1.1, free[1]: -0.7})
    places = {r.name: bc.analyze.loop_coordinates(first, at.q, r.name) for r in m.joints}
    rates = {r.name: bc.analyze.loop_speeds(first, at.q, at.u, r.name) for r in m.joints}
    out = []
    for cut in (joint, other):
        system = bc.compile(m, backend="numpy", cut=[cut])
        assert system.loops == (cut,)
        q, u = (np.concatenate([x[name] for name in system.joint_names]) for x in (places, rates))
        out.append((system, system.project(q, u)))
    return tuple(out)


def named(system: bc.System, state: bc.State) -> dict[str, Any]:
    """All joints by name."""
    return {r.name: x if len(x := bc.analyze.loop_coordinates(system, state.q, r.name)) > 1 else float(x[0])
            for r in system.model.described.joints}


def same(looks: Mapping[str, Any], others: Mapping[str, Any], tolerance: float = 1e-8) -> None:
    assert looks.keys() == others.keys()
    for key, value in looks.items():
        wanted = np.asarray(others[key])
        assert np.shape(value) == wanted.shape, key
        error = np.abs(np.asarray(value) - wanted).max(initial=0.0)
        assert error < tolerance * (1.0 + np.abs(wanted).max(initial=0.0)), f"{key}: {error:.3g}"


def compare(joint: str, look: Look) -> None:
    there, elsewhere = (look(system, state) for system, state in pair(joint))
    same(there, elsewhere)


def ran(system: bc.System, state: bc.State, duration: float = 0.003, **settings: Any) -> Things:
    """A short run: where bodies are and how fast, energies, loads of joints that mechanics determines."""
    run = system.simulate(state, duration, step=1e-3, stepper="rk8", **settings)
    assert run.attrs["status"] == "finished", run.attrs["reason"]
    out = {f"pose {body}": system.pose(run.q.values, body).position for body in system.body_names}
    out |= {f"rate {body}": system.velocity(run.q.values, run.u.values, body) for body in system.body_names}
    return out | {"energy": run["energy"].values, "events": run.event_time.values}


def at_time(t: float, change: Any, name: str) -> bc.Event:
    return bc.Event(lambda time, q, u: time - t, name, action=change)


LOCKS = {"sleeve": ("sleeve.angle", "sleeve.slide", "sleeve"), "cardan": ("cardan.angle1", "cardan.angle2", "cardan"),
         "table": ("table.x", "table.y", "table.angle"), "ball": ("ball",)}


@pytest.mark.parametrize(("joint", "name"), [(j, n) for j, names in LOCKS.items() for n in names])
@pytest.mark.everyday(4)
def test_locks_by_events(joint: str, name: str) -> None:
    compare(joint, lambda system, state: ran(system, state, events=[
        at_time(0.0005, bc.lock(name), "lock"), at_time(0.0025, bc.unlock(name), "go")]))


def test_locked_as_a_whole_and_let_go_one_by_one() -> None:
    """Also joints of the tree, and of one coordinate: by the joint's name, or by that of its coordinate."""
    def look(system: bc.System, state: bc.State) -> Things:
        changes = (bc.lock("table"), bc.unlock("table.angle"), bc.lock("table.angle"), bc.unlock("table"),
                   bc.lock("pin.angle"), bc.unlock("pin"))
        return ran(system, state, 0.006, events=[at_time(0.0005 + 0.001 * k, change, str(k))
                                                 for k, change in enumerate(changes)])

    compare("table", look)
    for system, state in pair("table"):
        with pytest.warns(bc.SimulationWarning, match=r"unlock: 'table.x' is not locked"):
            system.simulate(state, 0.001, step=1e-3, events=[
                at_time(0.0002, bc.lock("table.angle"), "lock"), at_time(0.0006, bc.unlock("table.x"), "go")])


@pytest.mark.parametrize(("joint", "coordinate"), [("sleeve", 0), ("sleeve", 1), ("cardan", 0), ("table", 2)])
@pytest.mark.everyday(2)
@pytest.mark.parametrize("restitution", [0.5, 0.0])
def test_stops_of_single_coordinates(joint: str, coordinate: int, restitution: float) -> None:
    def look(system: bc.System, state: bc.State) -> Things:
        at = float(bc.analyze.loop_coordinates(system, state.q, joint)[coordinate])
        way = 0.0015 * abs(float(bc.analyze.loop_speeds(system, state.q, state.u, joint)[coordinate]))
        seen = ran(system, state, events=bc.joint_limit(joint, at - way, at + way, restitution=restitution,
                                                        coordinate=coordinate))
        assert len(seen["events"]) == 1
        return seen

    compare(joint, look)


def test_code_of_locks_is_shared() -> None:
    """Where a joint is locked is a parameter: another place needs no other code."""
    system, state = pair("table")[0]
    one, two = (arranged(system, Arrangement(locked=("table.x",), pins=(("table.x", (x,)),)), state.q)
                for x in (0.3, 0.31))
    assert one.kernels.evaluator is two.kernels.evaluator and one.model.values != two.model.values
    assert "table.x held at" not in system.parameters


def test_machines_with_locked_joints() -> None:
    """`System.lock`: what is computed at states, closed states, runs, and questions about many states."""
    def look(name: str, free: str) -> Look:
        def found(system: bc.System, state: bc.State) -> Things:
            locked = system.lock(name)
            assert locked.dof == 1 and arrangement_of(locked).locked == (name,)
            guess = named(system, state)
            moving = locked.assemble(guess=guess, u={free: 1.3})
            many = locked.assemble(q=np.stack([state.q, state.q]))
            put = locked.assemble(q={free: float(bc.analyze.loop_coordinates(system, state.q, "sleeve")[1]) + 0.01},
                                  guess=state)
            rest = bc.analyze.equilibrium(locked, state.q)
            udot = locked.forward_dynamics(moving)
            return ran(locked, moving) | {
                "acceleration": locked.acceleration(moving.q, moving.u, udot, "rod"),
                "held": bc.analyze.loop_coordinates(system, put.q, "sleeve"),
                "many": locked.pose(many.q).position, "rest": locked.pose(rest.q).position,
                "poles": np.sort(np.abs(bc.analyze.linearize(locked, rest).eigenvalues)),
                "modes": bc.analyze.modes(locked, rest).frequencies,
                "slope": _direction(locked.derivatives("center_of_mass", moving, by="q")["q"][:, 0])}

        return found

    compare("sleeve", look("sleeve.angle", "sleeve.slide"))


def _direction(x: np.ndarray) -> np.ndarray:
    """Up to its length and sign: independent speeds differ."""
    x = x / np.linalg.norm(x)
    return x * np.sign(x[int(np.argmax(np.abs(x)))])


def test_carriers_are_no_bodies() -> None:
    """A rotor on a joint that is cut: bodies, poses, wrenches, energies and pictures are those of the description."""
    found = []
    for cut in ("sleeve", "ball"):
        m = sleeve_crank()
        m.add_armature("rotor", "sleeve", 0.01, coordinate="slide")
        system = bc.compile(m, backend="numpy", cut=[cut], actuated=["sleeve"])
        state = system.project(*(np.concatenate([
            x(one, at.q, name) if x is bc.analyze.loop_coordinates else x(one, at.q, at.u, name)
            for name in system.joint_names]) for one, at in pair("sleeve")[:1]
            for x in (bc.analyze.loop_coordinates, bc.analyze.loop_speeds)))
        assert system.body_names == ("crank", "rod", "piston")
        loads = np.arange(18.0).reshape(3, 6)
        udot = system.forward_dynamics(state, wrenches=loads)
        tau = np.zeros(system.nu)
        scene = scene_of((system, state))
        assert [b.name for b in scene.models[0].bodies] == ["ground", *system.body_names]
        assert scene.tracks[0].positions.shape[1] == 4
        assert "carrier" not in str(bc.analyze.explain(system))
        found.append({
            "poses": system.pose(state.q).position, "rod": system.acceleration(state.q, state.u, udot, "rod"),
            "energies": bc.analyze.body_energies(system, state).kinetic,
            "elements": bc.analyze.element_wrenches(system, state),
            "by wrenches": system.derivatives("energy", state, by="u").value,
            "columns": system.derivatives("forward_dynamics", state, tau, by="wrenches")["wrenches"].shape[-1],
            "reactions": np.stack([*system.reactions(state, tau).values()])})
        assert list(system.reactions(state)) == ["crank", "ball", "cardan", "sleeve"]
    same(*found)


@pytest.mark.parametrize("joint", ["sleeve", "table"])
def test_reactions_act_on_the_child(joint: str) -> None:
    """In the order of the description, about the joint's place on its child and in the axes of that; also where every
    joint is a part of the tree but one, and by the careful way of large machines."""
    def look(system: bc.System, state: bc.State) -> Things:
        tau = {"crank": 1.0, joint: np.linspace(1.0, 2.0, system.model.mechanism.joint(joint).joint.nu)}
        wrenches = system.reactions(state.q, state.u, tau)
        assert list(wrenches) == [r.name for r in system.model.described.joints]
        dense = bc.compile(system.model.described, "dense", "numpy", cut=system.loops)
        same(dense.reactions(state.q, state.u, tau), wrenches)
        run = system.simulate(state, 0.001, tau=tau)
        slopes = system.derivatives("reactions", state.q, state.u, tau, by="u")
        same({"value": slopes.value}, {"value": np.stack([*wrenches.values()])})
        return {**wrenches, **{f"load {name}": run.joint_load(name).values for name in wrenches}}

    compare(joint, look)


def test_forces_along_cut_joints_in_derivatives_and_modes() -> None:
    """Derivatives of accelerations and of the motion, under forces along the joint and with actuators beside them."""
    def look(system: bc.System, state: bc.State) -> Things:
        tau = {"sleeve": [0.2, 3.0], "crank": 1.0}
        d = system.derivatives("forward_dynamics", state, tau, by=("u", "tau"))
        same({"value": d.value}, {"value": system.forward_dynamics(state, tau)})
        step = system.project(state.q, state.u * 1.001).u - state.u
        by = [state.u[system.speed_names.index(name)] for name in d.columns["u"]]
        change = d["u"] @ (np.array([step[system.speed_names.index(name)] for name in d.columns["u"]]))
        rest = bc.analyze.equilibrium(system, state.q, tau=tau)
        crank = system.speed_names.index("crank.angle")
        assert len(by) == 2
        return {"change": change[crank], "by tau": d["tau"][crank, crank],
                "frequencies": bc.analyze.modes(system, rest, tau=tau).frequencies}

    compare("sleeve", look)


#: of machines that move: coordinates of linear models, those of joints that are cut included
MODELS: dict[str, tuple[list[str] | None, ...]] = {
    "sleeve": (["sleeve.slide", "cardan.angle1"], ["sleeve.angle", "crank"]), "cardan": (["cardan.angle2", "crank"],),
    "ball": (["sleeve.angle", "crank"],), "table": (["table.x", "crank"], ["table.angle", "table.y"])}


@pytest.mark.parametrize(("joint", "coordinates"), [
    (j, c) for j, some in MODELS.items() for c in (None, *some)], ids=str)
@pytest.mark.everyday(5)
def test_linear_models_about_motions(joint: str, coordinates: list[str] | None) -> None:
    """In coordinates that are asked for, or else in those that the machine has if nobody says where to cut it."""
    def look(system: bc.System, state: bc.State) -> Things:
        model = bc.analyze.linearize(system, state, coordinates=coordinates, tau={"crank": 1.0}, inputs=["crank"],
                                     outputs=["crank", "crank.acceleration"])
        assert model.states == names
        near = model.nearby([0.01, -0.02, 0.3, 0.1])
        return {"A": model.A, "B": model.B, "C": model.C, "rate": model.rate,
                "shapes": system.velocity(state.q, model.shapes.T, system.body_names[-1]),
                "near": system.pose(near.q).position, "fast": system.velocity(near.q, near.u, system.body_names[-1])}

    names = bc.analyze.linearize(*pair(joint)[1], coordinates=coordinates).states
    assert coordinates is None or names[:2] == tuple(coordinates)
    compare(joint, look)


def test_linear_models_in_a_cut_joint_are_derivatives_of_the_motion() -> None:
    """Runs from neighbouring states: how fast they part, in the coordinates of the joint that is cut."""
    system, state = pair("sleeve")[0]
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


def test_coordinates_of_linear_models_that_compile_was_asked_for() -> None:
    for settings, name in (({}, "A"), ({"cut": ["A"]}, "A"), ({"independent": ["C"]}, "C"),
                           ({"cut": ["B"], "actuated": ["B"]}, "B")):
        system = bc.compile(bc.load("four_bar"), backend="numpy", **settings)
        model = bc.analyze.linearize(system, system.assemble(q={"A": 0.5}, u={"A": 1.0}), inputs=[], outputs=[])
        assert model.states == (name, f"{name}.rate")
    with pytest.raises(bc.ModelError, match=r"coordinates is a list of names; write \['A'\]"):
        bc.analyze.linearize(system, system.assemble(), coordinates="A")


@pytest.mark.parametrize("joint", JOINTS)
def test_accelerations_curves_and_workspaces_by_joint(joint: str) -> None:
    """Accelerations that are held, of one state and of several; the way of a point, and where it can go."""
    def look(system: bc.System, state: bc.State) -> Things:
        names = {"sleeve": ("sleeve",), "table": ("table.angle", "crank")}.get(joint, ("crank", "sleeve.angle"))
        held = {name: [1.0, -2.0] if name == "sleeve" else 1.5 for name in names}
        udot, last = system.consistent_acceleration(state, held), system.body_names[-1]
        many = system.consistent_acceleration(np.stack([state.q, state.q]), state.u, held)
        assert np.abs(many - udot).max() < 1e-10
        at = bc.analyze.loop_coordinates(system, state.q, "crank" if joint != "table" else "table")[-1]
        first, hold = ("table.angle", ["crank"]) if joint == "table" else ("crank", ["sleeve.angle"])
        curve = bc.analyze.coupler_curve(system, first, last, values=at + np.linspace(0.0, 0.1, 4), hold=hold,
                                         guess=state)
        space = bc.analyze.workspace(system, last, guess=state, samples=5, ranges={first: (at, at + 0.1), hold[0]: (
            *bc.analyze.loop_coordinates(system, state.q, hold[0].partition(".")[0])[:1],) * 2})
        assert curve.q.shape == (4, system.nq) and space.q.shape == (5, system.nq)
        return {"rate": system.acceleration(state.q, state.u, udot, last), "curve": curve.points, "space": space.points}

    compare(joint, look)


ASSEMBLED: dict[str, tuple[str, dict[str, Any]]] = {
    "held": ("four_bar", {"q": {"A": 0.5}}), "nothing": ("four_bar", {}),
    "part of a guess": ("four_bar", {"guess": {"A": 0.5, "D": -2.0}}),
    "a guess of one": ("four_bar", {"guess": {"B": -1.2}}),
    "held beyond a turn": ("four_bar", {"q": {"D": 7.9}, "u": {"D": 1.0}, "guess": {"D": 7.8}}),
    "weights": ("four_bar", {"guess": {"A": 0.4}, "weights": {"A": 10.0, "D": 5.0}}),
    "weights alone": ("slider_crank", {"weights": {"slide": 20.0, "small_end": 3.0}}),
    "a speed": ("slider_crank", {"guess": {"slide": 0.3}, "u": {"small_end": 0.5}}),
    "several": ("slider_crank", {"q": {"small_end": np.array([0.01, 0.03])}})}


@pytest.mark.parametrize("asked", ASSEMBLED)
@pytest.mark.everyday(3)
def test_closed_states_are_the_same(asked: str) -> None:
    """Guesses that name some of the joints, weights and values that are held, of joints that are cut and others: the
    same position and speeds whichever joint is cut, and whichever keep their coordinates."""
    name, given = ASSEMBLED[asked]
    m, usual = bc.load(name), known(name)
    wanted, joint = usual.assemble(**given), m.joints[list(ASSEMBLED).index(asked) % 3].name
    for system in (known(name, joint), known(name, joint, joint)):
        state = system.assemble(**given)
        assert joint in system.loops or joint in system.joint_names
        assert np.abs(system.loop_error(state.q)).max() < 1e-12
        same({body: system.velocity(state.q, state.u, body) for body in system.body_names},
             {body: usual.velocity(wanted.q, wanted.u, body) for body in usual.body_names}, 1e-12)
        same({"poses": system.pose(state.q).position}, {"poses": usual.pose(wanted.q).position}, 1e-12)
        for key, value in given.get("q", {}).items():
            off = bc.analyze.loop_coordinates(system, state.q, key)[..., 0] - value
            assert np.abs(off if key in system.joint_names else np.sin(off)).max() < 1e-12


@cache
def known(name: str, cut: str = "", actuated: str = "") -> bc.System:
    return bc.compile(bc.load(name), backend="numpy", cut=[cut] if cut else [], actuated=[actuated] if actuated else [])


def test_projected_states_are_the_same() -> None:
    given = {"A": 0.4, "B": -0.3}, {"A": 1.0, "D": 0.3}
    found = [(system, system.project(*given)) for system in (known("four_bar"), known("four_bar", "B"))]
    same(*({"poses": system.pose(state.q).position, "rate": system.velocity(state.q, state.u, "coupler")}
           for system, state in found), 1e-12)


def test_weights_pull_at_cut_joints() -> None:
    """The more the joint counts, the nearer it stays to where the guess has it."""
    system = known("four_bar")
    off = [abs(float(bc.analyze.loop_coordinates(system, system.assemble(
        guess={"A": 0.5, "D": 1.2}, weights=weights).q, "D")[0]) - 1.2) for weights in (None, {"D": 4.0})]
    assert off[0] > 2.0 * off[1] > 0.0
    with pytest.raises(bc.StateError, match="weights: 'D' needs a positive number"):
        system.assemble(weights={"D": 0.0})


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
    usual = plain.assemble(q={"A": 1.2}, u={} if held else {"A": 2.0, "H": 1.0})
    for cut in ((), ("D", "G"), ("D", "E"), ("G", "A")):
        system = bc.compile(m, backend="numpy", cut=cut)
        if not {*opened} <= {*system.loops}:
            continue
        state = system.project(*(np.concatenate([of(name) for name in system.joint_names]) for of in (
            lambda n: bc.analyze.loop_coordinates(plain, usual.q, n),
            lambda n: bc.analyze.loop_speeds(plain, usual.q, usual.u, n))))
        changed = system.release(*opened) if opened else system
        changed = changed.lock(*held) if held else changed
        udot = changed.forward_dynamics(state, {"A": 3.0})
        loads = {"alone": changed.reactions(state), "both": changed.reactions(state, {"B": 2.0}, udot=udot),
                 "motion": changed.reactions(state, udot=udot)}
        found.append({f"{key} {name}": x for key, each in loads.items() for name, x in each.items()})
    assert len(found) > 1 and np.abs(found[0]["alone A"]).max() > 1.0
    for other in found[1:]:
        same(other, found[0])


def test_derivatives_of_open_loads_are_those_of_the_loads() -> None:
    """Or they are refused: how joints share them is not known by every cut."""
    m = bc.load("four_bar")
    for push in (0.0, 5.0):
        m.add_wrench(f"push {push}", m.bodies[1].name, moment=(push, 0.0, 3.0), force=(1.0, 0.0, 0.0))
        for cut in ((), ("B",)):
            system = bc.compile(m, backend="numpy", cut=cut)
            state = system.assemble(q={"A": 0.7}, u={"A": 2.0})
            if push and cut:
                with pytest.raises(bc.NotYetError, match="share loads that mechanics leaves open.*without cut="):
                    system.derivatives("reactions", state, by="u")
                continue
            found = system.derivatives("reactions", state, by="u").value
            same({"value": found}, {"value": np.stack([*system.reactions(state).values()])})


def test_open_loads_of_runs_with_locks() -> None:
    m, found = bc.load("four_bar"), []
    m.add_wrench("push", m.bodies[1].name, law=lambda at: ((1.0, 2.0, 5.0), (0.3, -0.4, 0.5)))
    for cut in ((), ("B",)):
        system = bc.compile(m, backend="numpy", cut=cut)
        run = system.simulate(system.assemble(q={"A": 0.7}, u={"A": 2.0}), 0.002, step=1e-3, stepper="rk8",
                              events=[at_time(0.0005, bc.lock("B"), "lock")])
        found.append({joint: run.joint_load(joint, body=m.bodies[1].name).values for joint in "BC"})
    same(*found)


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
    with pytest.raises(bc.ModelError, match="joint 'B' belongs to the spanning tree.*compile with cut=.'B'"):
        system.release("B")
