"""Angles of joints count turns wherever loops are cut: in elements, outputs, controllers, events and guesses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc

#: a joint of a slider-crank that is not cut
OTHER = "big_end"



def machine(add: Callable[[bc.Mechanism], object], **settings: Any) -> bc.System:
    m = bc.load("slider_crank")
    add(m)
    return bc.compile(m, backend="numpy", **settings)


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
