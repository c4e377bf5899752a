"""Everything that can be put on a joint does the same wherever its loop is cut."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.math import sin
from bellcrank.simulate.plot_lines import lines_of
from bellcrank.view.force_curves import GrowingCurves

#: the joints of a slider crank, and those whose loop is cut at them, or elsewhere
JOINTS, OTHER = ("crank", "slide", "small_end"), "big_end"
BODIES = ("crank", "rod", "piston")
#: between the bodies of each joint
ENDS = {"crank": "crank", "big_end": "rod", "slide": "piston", "small_end": "piston"}

Things = dict[str, np.ndarray]


def machine(add: Callable[[bc.Mechanism], object], **settings: Any) -> bc.System:
    m = bc.load("slider_crank")
    add(m)
    return bc.compile(m, backend="numpy", **settings)


@cache
def places() -> dict[str, float]:
    """All joints at a closed position."""
    system = machine(lambda m: None)
    state = system.assemble(q={"crank": 0.7})
    return {name: float(x) for name, x in zip(system.joint_names, state.q, strict=True)}


def state_of(system: bc.System, rate: float = 3.0, **more: Any) -> bc.State:
    return system.assemble(q={"slide": places()["slide"]}, u={"slide": rate}, guess=places(), **more)


def motion(system: bc.System, q: np.ndarray, u: np.ndarray, udot: np.ndarray, t: float = 0.0) -> Things:
    return {body: system.acceleration(q, u, udot, body, t=t) for body in BODIES}


def seen(system: bc.System, state: bc.State, tau: Any = None) -> Things:
    """Accelerations, loads of joints, energies, and what elements report."""
    udot = system.forward_dynamics(state.q, state.u, tau, t=state.t)
    out = motion(system, state.q, state.u, udot, state.t)
    out["energy"] = np.array([system.energy(state), bc.analyze.dissipated_power(system, state),
                              bc.analyze.stored_energy(system, state)])
    energies = bc.analyze.body_energies(system, state)
    out |= {f"body {name}": part[:3] for name, part in energies._asdict().items()}
    out["momentum"] = np.asarray(system.momentum(state.q, state.u)) if hasattr(system, "momentum") else np.zeros(1)
    for name, element in system.element_forces(state, tau=tau).items():
        fields = {**element._asdict(), **element.states}
        del fields["states"]
        out |= {f"{name}.{field}": np.asarray(value) for field, value in fields.items()
                if not field.endswith("point") and not np.isnan(value).any()}  # points on an axis may differ
    return out


def run_of(system: bc.System, state: bc.State | None = None, **settings: Any) -> Things:
    """A short run: where bodies are, what joints carry, what acted."""
    run = system.simulate(state_of(system) if state is None else state, 0.002, step=1e-3, stepper="rk8", **settings)
    out = {body: system.pose(run.q.values, body, t=run.time.values).position for body in BODIES}
    out |= {f"load of {joint}": run.joint_load(joint, body=body).values for joint, body in ENDS.items()}
    return out | {"energy": run["energy"].values}


def torque(joint: str) -> Callable[[bc.System], Things]:
    def look(system: bc.System) -> Things:
        state = state_of(system)
        run = system.simulate(state, 0.002, step=1e-3, tau={joint: 2.0})
        return run_of(system, tau={joint: 2.0}) | {
            "torque": run.torques(joint).values[..., 0], "states": seen(system, state, {joint: 2.0})["rod"],
            "reaction": np.linalg.norm(system.reactions(state.q, state.u, {joint: 2.0})[joint])}

    return look


def linear(joint: str) -> Callable[[bc.System], Things]:
    def look(system: bc.System) -> Things:
        rest = bc.analyze.equilibrium(system, state_of(system, 0.0).q)
        found = bc.analyze.linearize(system, rest, inputs=[joint], outputs={
            "piston": lambda state: system.pose(state.q, "piston").position})
        poles = np.sort_complex(np.linalg.eigvals(found.A))
        gain = found.C @ np.linalg.solve(2j * np.eye(len(found.A)) - found.A, found.B)
        return {"poles": np.stack([poles.real, poles.imag]), "gain": np.stack([gain.real, gain.imag])}

    return look


def resting(joint: str) -> Callable[[bc.System], Things]:
    """Equilibria under forces along the joint, one and several, and with the joint held by name or by value."""
    def look(system: bc.System) -> Things:
        start, at = state_of(system, 0.0), places()[joint]
        found = {
            "force": bc.analyze.equilibrium(system, places(), tau={joint: 3.0}),
            "forces": bc.analyze.equilibrium(system, start, tau={joint: np.array([1.0, 2.0])}),
            "held": bc.analyze.equilibrium(system, start.q, hold=[joint], wrenches=np.ones((3, 6))),
            "put": bc.analyze.equilibrium(system, places(), hold={joint: at - 0.02}, tau={"big_end": 1.0})}
        return {name: system.pose(state.q, "rod").position for name, state in found.items()}

    return look


def about(joint: str) -> Callable[[bc.System], Things]:
    """Linear models where a constant force acts along the joint."""
    def look(system: bc.System) -> Things:
        rest = bc.analyze.equilibrium(system, places(), tau={joint: 3.0})
        found = bc.analyze.linearize(system, rest, tau={joint: 3.0}, inputs=["big_end"], outputs={
            "piston": lambda state: system.pose(state.q, "piston").position})
        assert found.outputs == ("piston[0]", "piston[1]", "piston[2]") and np.abs(found.rate).max() < 1e-8
        assert np.abs(found.nearby([0.0, 0.0]).q - rest.q).max() < 1e-12
        plain = bc.analyze.linearize(system, rest, tau={joint: 3.0})
        assert plain.outputs[:system.nq] == system.coordinate_names and plain.shapes.shape == (system.nq, 1)
        gain = found.C @ np.linalg.solve(2j * np.eye(2) - found.A, found.B)
        return {"poles": np.sort(np.abs(found.eigenvalues)), "same": np.sort(np.abs(plain.eigenvalues)),
                "gain": np.stack([gain.real, gain.imag])}

    return look


def followed(joint: str) -> Callable[[bc.System], Things]:
    """The joint is driven by a function of time."""
    def look(system: bc.System) -> Things:
        run = bc.analyze.drive(system, {joint: lambda t: places()[joint] - 0.02 + 0.3 * t}, [0.0, 0.01, 0.02],
                               guess=places(), reactions=True)
        speed = next(name for name in run.speed.values if name.partition(".")[0] == joint)
        return {"tau": run.tau.sel(speed=speed).values, "rate": run.u.sel(speed=speed).values,
                "rod": run.system.pose(run.q.values, "rod").position,
                "load": np.linalg.norm(run.reaction.sel(joint="big_end").values, axis=-1)}

    return look


def brake(joint: str) -> Callable[[bc.System], Things]:
    """The joint is locked for a while."""
    def look(system: bc.System) -> Things:
        run = system.simulate(state_of(system), 0.004, step=1e-3, stepper="rk8", tau={joint: 2.0}, outputs={
            "at": lambda m: m.q(joint)}, events=[
            bc.Event(lambda t, q, u: t - 0.0015, "brake", action=bc.lock(joint)),
            bc.Event(lambda t, q, u: t - 0.0025, "go", action=bc.unlock(joint))])
        assert run.attrs["status"] == "finished"
        return {"piston": system.pose(run.q.values, "piston").position, "energy": run["energy"].values,
                "output": run["at"].values,
                "load": np.linalg.norm(run.joint_load("big_end", body="rod").values, axis=-1)}

    return look


def bounce(joint: str) -> Callable[[bc.System], Things]:
    """A rigid stop that is hit."""
    def look(system: bc.System) -> Things:
        at = places()[joint]
        run = system.simulate(state_of(system), 0.003, step=1e-3, stepper="rk8",
                              events=bc.joint_limit(joint, at - 0.003, at + 0.003))
        return {"piston": system.pose(run.q.values[-1], "piston").position, "bounces": run.event_time.values}

    return look


def outputs(joint: str) -> Callable[[bc.System], Things]:
    def look(system: bc.System) -> Things:
        run = system.simulate(state_of(system), 0.003, step=1e-3, stepper="rk8", outputs={
            "angle": lambda at: at.q(joint), "rate": lambda at: at.u(joint)})
        return {name: run[name].values for name in ("angle", "rate")}

    return look


def needed(joint: str) -> Callable[[bc.System], Things]:
    """Forces of this joint alone that make a motion."""
    def look(system: bc.System) -> Things:
        state = state_of(system)
        udot = system.forward_dynamics(state.q, state.u, {"big_end": 1.0})
        tau = system.inverse_dynamics(state.q, state.u, udot)
        return {"tau": tau[[n.partition(".")[0] == joint for n in system.speed_names]]}

    return look


def alone(system: bc.System) -> Things:
    return seen(system, state_of(system)) | run_of(system)


def given(joint: str) -> Callable[[bc.System], Things]:
    return lambda system: seen(system, state_of(system), {joint: 5.0}) | run_of(system, tau={joint: 5.0})


def driven(joint: str) -> Callable[[bc.System], Things]:
    def look(system: bc.System) -> Things:
        state = system.assemble(guess=places())
        return seen(system, state) | run_of(system, state)

    return look


def begun(joint: str) -> Callable[[bc.System], Things]:
    """Initial values of the joint itself."""
    def look(system: bc.System) -> Things:
        state = system.assemble(q={joint: places()[joint] - 0.03}, u={joint: 1.5}, guess=places())
        return {body: np.concatenate([system.pose(state.q, body).position, system.velocity(state.q, state.u, body)])
                for body in BODIES}

    return look


def controlled(joint: str) -> Callable[[bc.System], Things]:
    def look(system: bc.System) -> Things:
        law = bc.Traced(lambda t, q, u: {joint: -20.0 * q[joint] - 2.0 * u[joint] + sin(t)})
        return run_of(system, control=law) | {
            f"sampled {k}": v for k, v in run_of(system, control=lambda t, q, u: {joint: 2.0 * t + 1.0}).items()}

    return look


Row = tuple[Callable[[bc.Mechanism], object], Callable[[bc.System], Things], dict[str, Any]]


def table(joint: str) -> dict[str, Row]:
    """By name: what is added to the machine, what is looked at, and settings."""
    far, at, both = places()[joint] + 1.0, places()[joint], {joint: 1.0, "big_end": 0.3}
    return {
        "spring": (lambda m: m.add_joint_spring("e", joint, stiffness=50.0, damping=1.0, rest=0.1), alone, {}),
        "potential": (lambda m: m.add_joint_spring("e", joint, potential=lambda x: 5.0 * x**4), alone, {}),
        "friction": (lambda m: m.add_friction("e", joint, coulomb=2.0, viscous=0.3, static=3.0, speed=0.05), alone, {}),
        "limit": (lambda m: m.add_limit("e", joint, upper=at - 0.1, stiffness=300.0, damping=3.0), alone, {}),
        "servo": (lambda m: m.add_servo("e", joint, target=far, stiffness=90.0, damping=1.0, limit=7.0), alone, {}),
        "law": (lambda m: m.add_joint_force("e", joint, lambda x, v: sin(x) - v), alone, {}),
        "table": (lambda m: m.add_joint_force("e", joint, bc.Table([-9, 9], [-3, 3], extrapolate="hold")), alone, {}),
        "law of the machine": (lambda m: m.add_joint_force("e", joint, lambda at: at.q(joint) * at.u("big_end")),
                               alone, {}),
        "sum": (lambda m: m.add_joint_spring("e", both, stiffness=40.0, damping=1.0, rest=0.2), alone, {}),
        "servo of a sum": (lambda m: m.add_servo("e", both, target=1.0, stiffness=40.0, limit=3.0), alone, {}),
        "actuator": (lambda m: m.add_actuator("e", joint, 3.0, no_load_speed=9.0), given(joint), {}),
        "armature": (lambda m: m.add_armature("e", joint, 0.4), alone, {}),
        "all three": (lambda m: (m.add_armature("r", joint, 0.4), m.add_actuator("e", joint, 3.0),
                                 m.add_joint_spring("s", both, stiffness=40.0)), given(joint), {}),
        "state": (lambda m: (m.add_state("x", lambda a: a.q(joint) - a.state("x"), initial=0.2),
                             m.add_joint_force("e", joint, lambda a: -5.0 * a.state("x"))), alone, {}),
        "prescribed": (lambda m: m.prescribe(joint, lambda t: at - 0.3 * t + t * t), driven(joint), {}),
        "torque": (lambda m: None, torque(joint), {}),
        "controller": (lambda m: None, controlled(joint), {}),
        "initial values": (lambda m: None, begun(joint), {}),
        "outputs": (lambda m: None, outputs(joint), {}),
        "inputs of linear models": (lambda m: m.add_joint_spring("e", joint, stiffness=50.0), linear(joint), {}),
        "equilibrium": (lambda m: m.add_joint_spring("e", "crank", stiffness=50.0), resting(joint), {}),
        "force of linear models": (lambda m: m.add_joint_spring("e", "crank", stiffness=50.0), about(joint), {}),
        "drive": (lambda m: None, followed(joint), {}),
        "lock": (lambda m: m.add_joint_spring("e", joint, stiffness=50.0), brake(joint), {}),
        "rigid stop": (lambda m: None, bounce(joint), {}),
        "inverse dynamics": (lambda m: None, needed(joint), {"actuated": [joint]}),
    }


NAMES = tuple(table("crank"))
CASES = tuple((thing, JOINTS[i % 3]) for i, thing in enumerate(NAMES))


def compare(thing: str, joint: str) -> None:
    add, look, settings = table(joint)[thing]
    cut_there, cut_elsewhere = (look(machine(add, cut=[name], **settings)) for name in (joint, OTHER))
    assert cut_there.keys() == cut_elsewhere.keys()
    for key, value in cut_there.items():
        wanted = cut_elsewhere[key]
        size = 1.0 + np.abs(wanted).max(initial=0.0)
        assert np.shape(value) == np.shape(wanted), key
        assert np.abs(value - wanted).max(initial=0.0) < 1e-8 * size, key


@pytest.mark.parametrize(("thing", "joint"), CASES, ids=NAMES)
@pytest.mark.everyday(len(CASES))
def test_the_same_wherever_it_is_cut(thing: str, joint: str) -> None:
    compare(thing, joint)


@pytest.mark.parametrize(("thing", "joint"), [(x, j) for x in NAMES for j in JOINTS if (x, j) not in CASES])
@pytest.mark.everyday(2)
def test_the_same_on_other_joints(thing: str, joint: str) -> None:
    compare(thing, joint)


#: elements that tell one turn of a crank from the next, and others that do not
TURNED: dict[str, Callable[[bc.Mechanism], object]] = {
    "spring": lambda m: m.add_joint_spring("e", "crank", stiffness=5.0, rest=0.1),
    "potential": lambda m: m.add_joint_spring("e", "crank", potential=lambda x: 0.1 * x**4),
    "servo": lambda m: m.add_servo("e", "crank", target=9.0, stiffness=9.0),
    "stop on one side": lambda m: m.add_limit("e", "crank", lower=-1.0, stiffness=300.0),
    "stops within half a turn": lambda m: m.add_limit("e", "crank", lower=-1.0, upper=2.0, stiffness=300.0),
    "stops over a turn": lambda m: m.add_limit("e", "crank", lower=-1.0, upper=6.5, stiffness=300.0),
    "law": lambda m: m.add_joint_force("e", "crank", lambda x, v: -x),
    "own length": lambda m: m.add_joint_force("e", "crank", lambda at: -at.element("e").length),
    "length of another": lambda m: (m.add_friction("other", "crank", viscous=0.1), m.add_joint_force(
        "e", "slide", lambda at: at.element("other").length))}
UNTURNED: dict[str, Callable[[bc.Mechanism], object]] = {
    "damper": lambda m: m.add_joint_spring("e", "crank", damping=5.0),
    "friction": lambda m: m.add_friction("e", "crank", coulomb=2.0),
    "speed servo": lambda m: m.add_servo("e", "crank", target_rate=3.0, damping=9.0),
    "slide": lambda m: m.add_joint_spring("e", "slide", stiffness=5.0)}


@pytest.mark.parametrize("thing", TURNED)
def test_elements_count_the_turns_of_joints_that_were_cut(thing: str) -> None:
    there, elsewhere = (machine(TURNED[thing], cut=[name]) for name in ("crank", OTHER))
    assert there.loops == ("crank",), "no element makes a joint carry a link"
    states = [system.assemble(q={"crank": 0.7 + 2.0 * np.pi}, u={"crank": 2.0}) for system in (there, elsewhere)]
    one, other = (system.element_forces(state)["e"] for system, state in zip((there, elsewhere), states, strict=True))
    assert abs(one.force - other.force) < 1e-9 * (1.0 + abs(other.force))
    turned, before = (elsewhere.element_forces(elsewhere.assemble(q={"crank": x}))["e"].force
                      for x in (0.7 + 2.0 * np.pi, 0.7))
    assert thing == "stop on one side" or abs(turned - before) > 1.0


@pytest.mark.parametrize("thing", UNTURNED)
def test_elements_that_do_not_count_turns(thing: str) -> None:
    joint = "slide" if thing == "slide" else "crank"
    system = machine(UNTURNED[thing], cut=[joint])
    assert system.loops == (joint,)
    state = system.assemble(q={"crank": 0.7}, u={"crank": 2.0})
    turned = state.q + 2.0 * np.pi * np.array([name == "crank" for name in system.joint_names])
    one, other = (system.element_forces(q, state.u)["e"].force for q in (state.q, turned))
    assert abs(one - other) < 1e-9 * (1.0 + abs(one)) and abs(one) > 0.1


def test_outputs_go_on_beyond_half_a_turn() -> None:
    """Also of samples that are most of a turn apart, of batches, of single samples, and lengths of elements."""
    m = bc.load("slider_crank")
    m.add_friction("bearing", "crank", viscous=1e-3)
    there, elsewhere = (bc.compile(m, cut=[name]) for name in ("crank", OTHER))
    law = {"x": lambda at: at.q("crank"), "v": lambda at: at.u("crank")}
    runs = []
    for system in (there, elsewhere):
        assert ("crank" in system.loops) == (system is there)
        state = system.assemble(q={"crank": 0.7}, u={"crank": 40.0})
        two = np.array([state.q, state.q]), np.array([state.u, 0.9 * state.u])
        runs.append(system.simulate(two, 0.4, step=1e-3, stepper="rk4", output=0.1))
    one, other = (run.outputs(law) for run in runs)
    assert float(other.x[-1, 0]) > 12.0 and float(abs(one.x - other.x).max()) < 1e-4
    lengths = [run.element("bearing").length for run in runs]
    assert float(abs(lengths[0] - lengths[1]).max()) < 1e-4
    assert float(abs(runs[0].isel(time=-1).outputs(law).x - other.x[-1]).max()) < 1e-4
    assert float(abs(one.x - runs[0].q.sel(coordinate="crank.angle")).max()) == 0.0


@pytest.mark.parametrize(("stepper", "backend"), [("rk8", "llvm"), ("dop853", "llvm"), ("radau", "llvm"),
                                                  ("rk8", "numpy")])
def test_controllers_and_events_count_turns(stepper: str, backend: str) -> None:
    """A servo that winds a crank up by turns, and an event on the way: also held over steps. In NumPy the crank only
    passes half a turn."""
    found, plain = [], backend == "numpy"
    begin, event, duration = (3.0, 3.3, 0.02) if plain else (0.7, 8.0, 0.3)
    for cut in ("crank", OTHER):
        system = bc.compile(bc.load("slider_crank"), backend=backend, cut=[cut])
        state = system.assemble(q={"crank": begin}, u={"crank": 30.0})
        law = bc.Traced(lambda t, q, u: {"crank": -2.0 * (q["crank"] - 25.0) - 0.6 * u["crank"]},
                        period=0.002 if stepper == "rk8" and not plain else None)
        step = 2e-3 if plain else 1e-3 if stepper != "dop853" else None
        run = system.simulate(state, duration, step=step, stepper=stepper,
                              output=0.1 * duration, control=law,
                              events=[bc.Event(lambda t, q, u: q["crank"] - event, "on the way")])
        assert run.attrs["status"] == "finished" and len(run.event_time) == 1
        seen = run.outputs({"x": lambda at: at.q("crank"), "v": lambda at: at.u("crank")})
        found.append([run.event_time.values[0], *seen.x.values, *seen.v.values, *run.torques("crank").values[:, 0]])
    assert max(found[0]) > event
    assert np.abs(np.subtract(*found)).max() < 1e-5


def test_turns_are_counted_where_axes_are_not_parallel() -> None:
    """In a spatial loop a controller sees the angle of a joint go on beyond half a turn, wherever the loop is cut."""
    law, found = bc.Traced(lambda t, q, u: {"hinge4": 0.01 * q["hinge4"]}), []
    for settings in ({"cut": ["hinge4"]}, {"cut": ["hinge2"]}, {"actuated": ["hinge4"]}):
        system = bc.compile(bc.load("bennett"), **settings)
        state = system.assemble(q={"hinge4": 2.5}, u={"hinge4": 6.0})
        found.append(system.simulate(state, 0.2, step=1e-3, output=0.02, control=law))
    angles = [run.q.sel(coordinate="hinge4.angle").values for run in found]
    torques = [run.tau.sel(speed="hinge4.angle").values for run in found]
    assert angles[0].max() > 3.3 and np.abs(np.diff(angles[0])).max() < 0.5
    assert np.abs(torques[0] - 0.01 * angles[0]).max() < 1e-12
    assert max(np.abs(x - angles[0]).max() for x in angles) < 1e-8
    assert max(np.abs(x - torques[0]).max() for x in torques) < 1e-10


def test_batches_of_controllers_that_count_turns() -> None:
    """States whose coordinates are whole turns apart, and sensitivities through such a controller."""
    law = bc.Traced(lambda t, q, u: {"crank": -2.0 * q["crank"]})
    system = machine(lambda m: None, cut=["crank"])
    state = system.assemble(q={"crank": np.array([0.7, 0.7])}, u={"crank": 3.0})
    state = state.replace({"big_end": state["big_end"] + [0.0, 2.0 * np.pi]})
    run = system.simulate(state, 0.003, step=1e-3, control=law)
    assert np.abs(np.diff(run.u.values, axis=1)).max() < 1e-9
    assert np.abs(run.torques("crank").values[0] + 1.4).max() < 1e-9
    one = system.simulate((state.q[1], state.u[1]), 0.003, step=1e-3, control=law, sensitivities=["u0"])
    other = system.simulate((state.q[0], state.u[0]), 0.003, step=1e-3, control=law, sensitivities=["u0"])
    assert float(abs(one.d_u_u0 - other.d_u_u0).max()) < 1e-9


def test_what_is_shown_counts_turns(tmp_path: Path) -> None:
    """Samples that are turns apart, runs that a stop holds in the end, files, tables, lines of plots, rollouts."""
    law, found = {"x": lambda at: at.q("crank")}, []
    for cut in ("crank", OTHER):
        m = bc.load("slider_crank")
        m.add_friction("bearing", "crank", viscous=1e-3)
        system = bc.compile(m, cut=[cut])
        state = system.assemble(q={"crank": 0.7}, u={"crank": 60.0})
        run = system.simulate(state, 0.4, step=1e-3, output=0.2, outputs=law, file=tmp_path / "run.nc")
        held = system.simulate(state, 0.2, step=1e-3, output=0.04, tau={"crank": 5.0},
                               events=bc.joint_limit("crank", -1.0, 8.0, restitution=0.0))
        run.to_csv(tmp_path / "run.csv")
        head, *rows = (line.split(",") for line in (tmp_path / "run.csv").read_text().splitlines())
        motion = bc.rollout(system, (state.q[None], state.u[None]), step=1e-3)
        motion.step(steps=300)
        found.append({
            "line": lines_of(run, "crank")[0].values[:, 0], "file": bc.open_result(tmp_path / "run.nc")["x"].values,
            "table": np.array([float(row[head.index("q.crank.angle [rad]")]) for row in rows]),
            "held": held.outputs(law).x.values, "length": held.element("bearing").length.values,
            "held line": lines_of(held, "q.crank")[0].values[:, 0], "rollout": motion.outputs(law)["x"]})
    assert found[1]["line"][-1] > 20.0 and abs(found[1]["held"][-1] - 8.0) < 1e-9
    for key, values in found[0].items():
        assert np.abs(values - found[1][key]).max() < 1e-2, key


def test_curves_of_runs_that_go_on_show_all_joints() -> None:
    found = []
    for cut in ("crank", OTHER):
        system = bc.compile(bc.load("slider_crank"), cut=[cut])
        run = system.simulate(system.assemble(q={"crank": 0.7}, u={"crank": 60.0}), 0.4, step=1e-3, stepper="rk8",
                              output=0.2)
        t, q, u = (run[name].values for name in ("time", "q", "u"))
        curves = GrowingCurves(system, t[:1], q[:1], u[:1], None)
        values = curves.values(t[1:], q[1:], u[1:], None, system)
        found.append({label[1]: values[:, k] for k, label in enumerate(curves.labels) if label[0] in (
            "coordinates [rad]", "speeds [m/s]")})
    assert found[0].keys() == found[1].keys() == {"crank.angle", "big_end.angle", "small_end.angle", "slide.slide"}
    assert all(np.abs(found[0][name] - found[1][name]).max() < 1e-6 for name in ("crank.angle", "slide.slide"))


@pytest.mark.parametrize("thing", TURNED)
def test_elements_do_not_choose_where_loops_are_cut(thing: str) -> None:
    """An element on a joint changes neither the cut nor the coordinates."""
    for joint in ("crank", "big_end", "small_end"):
        plain = machine(lambda m: None, cut=[joint])
        laden = machine(TURNED[thing], cut=[joint])
        assert laden.loops == plain.loops == (joint,) and laden.coordinate_names == plain.coordinate_names
    assert machine(TURNED[thing]).coordinate_names == machine(lambda m: None).coordinate_names


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
    state = state_of(wanted)
    udot = wanted.forward_dynamics(state)
    assert np.abs(found.forward_dynamics(state) - udot).max() < 1e-10 * np.abs(udot).max()
    assert np.abs(udot).max() > 1.0


@pytest.mark.parametrize("cut", ["C", "D"])
def test_guesses_count_at_joints_that_were_cut(cut: str) -> None:
    """A guess of the cut joint chooses the branch; as near to it as with a coordinate of its own."""
    m = bc.load("four_bar")
    system, own = (bc.compile(m, backend="numpy", cut=[cut], actuated=names) for names in ([], [cut]))
    found = []
    for side in (1.5, -1.5):
        guess = {"A": 0.5, "B": -0.7, "C": 1.5 * side, "D": -side}
        near, wanted = system.assemble(guess=guess), own.assemble(guess=guess)
        assert np.abs(system.pose(near.q).position - own.pose(wanted.q).position[:3]).max() < 1e-3
        state = system.assemble(q={"A": 0.6}, guess={"A": 0.5, cut: guess[cut]})
        found.append(float(bc.analyze.loop_coordinates(system, state.q, cut)[0]))
        assert found[-1] * guess[cut] > 0.0
        several = system.assemble(guess={name: np.full(2, x) for name, x in guess.items()})
        assert np.abs(several.q - near.q).max() < 1e-12
        assert np.abs(system.project(guess).q - near.q).max() < 1e-12
    assert abs(found[0] - found[1]) > 1.0


def test_carriers_are_in_no_file(tmp_path: Path) -> None:
    """Model files hold what was described; results compile it as it was."""
    m = bc.load("slider_crank")
    m.add_armature("rotor", "small_end", 0.2)
    system = bc.compile(m, backend="numpy", cut=["small_end"])
    assert [c.real for c in system.model.mechanism.carriers] == ["piston"]
    bc.save(system.model.mechanism, tmp_path / "m.yaml")
    assert bc.io.native.same_mechanism(bc.load(tmp_path / "m.yaml"), m)
    run = system.simulate(state_of(system), 0.002, file=tmp_path / "run.nc")
    again = bc.open_result(tmp_path / "run.nc").rebuild()
    assert again.system is not None and again.system.joint_names == system.joint_names
    assert np.abs(again.reactions("small_end").values - run.reactions("small_end").values).max() < 1e-6
    assert "small_end.closing" not in system.reactions(state_of(system).q, state_of(system).u)


def test_a_pitch_by_parameter_closes_a_loop() -> None:
    """Numbers of a joint that was cut may be parameters, too."""
    def vice(cut: str) -> np.ndarray:
        m = bc.Mechanism("vice")
        for name in ("spindle", "jaw"):
            m.add_body(name, bc.Inertia.box(1.0, (0.1, 0.2, 0.3)))
        m.add_joint("turn", bc.Revolute("z"), m.ground, "spindle")
        m.add_joint("guide", bc.Prismatic("z"), m.ground, "jaw")
        m.add_joint("thread", bc.Screw("z", pitch=m.parameter("pitch", 0.02)), "spindle", "jaw")
        system = bc.compile(m, backend="numpy", cut=[cut])
        state = system.assemble(q={"guide": 0.01}, u={"guide": 0.1})
        return system.acceleration(state.q, state.u, system.forward_dynamics(state), "jaw")

    assert np.abs(vice("thread") - vice("turn")).max() < 1e-10
    assert abs(vice("turn")[5]) > 1e-3
