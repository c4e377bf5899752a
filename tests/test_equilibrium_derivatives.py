"""How equilibria change with loads and parameters: against differences of equilibria, twice against differences of
once, batches against single states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import math as bm
from looped import sized_four_bar
from test_closed_derivatives import outputs_of
from test_derivatives import close

#: central differences, by parts of a step
STEPS, SLOPES = np.array([1.0, -1.0]), np.array([0.5, -0.5])


def sprung() -> bc.Mechanism:
    """A four-bar on a spring and a bushing."""
    m = sized_four_bar()
    stiffness = m.parameter("stiffness", 40.0)
    m.add_joint_spring("spring", "D", stiffness=stiffness, rest=0.2)
    m.add_bushing("rubber", m.ground, "coupler", bc.Pose((0.5, 0.5, 0)), bc.Pose((0.3, 0.1, 0)),
                  stiffness=(60.0 * stiffness, 500.0, 100.0), turn_stiffness=(1.0, 1.0, 20.0))
    m.add_output("height", lambda at: at.position("coupler", (0.4, 0.3, 0.0)).y + at.q("B"))
    m.add_output("turn", lambda at: bm.sin(at.q("D")) * at.parameter("length"))
    return m


def soft() -> bc.Mechanism:
    """A body in a bushing, which turns freely: quaternions; and a state that follows its place."""
    m = bc.Mechanism("soft", gravity=(0.3, 0.2, -9.81))
    stiffness, length = m.parameter("stiffness", 40.0), m.parameter("length", 1.0)
    m.add_body("body", bc.Inertia(2.0, (0.1 * length, 0.05, 0.02), (0.02, 0.03, 0.04)))
    m.add_joint("free", bc.Free(), m.ground, "body")
    m.add_state("lag", lambda at: 3.0 * at.parameter("length") * at.q("free.x") - 2.0 * at.state("lag"))
    m.add_bushing("rubber", m.ground, "body", bc.Pose(), bc.Pose.about("y", 0.3, (0.2 * length, 0.1, 0)),
                  stiffness=(20.0 * stiffness, 700.0, 600.0), turn_stiffness=(9.0, 0.2 * stiffness, 7.0),
                  damping=(40.0,) * 3, turn_damping=(1.0,) * 3)
    m.add_joint_force("push", "free", lambda at: 5.0 * at.state("lag"), "vy")
    m.add_output("height", lambda at: at.position("body", (0.4, 0.3, 0.0)).z)
    m.add_output("turn", lambda at: at.axes("body")[0].y * at.parameter("length"))
    return m


class Resting:
    """A machine at rest under a load, and near it."""

    def __init__(self, mechanism: bc.Mechanism, guess: Any, hold: tuple[str, ...] = (), **how: Any) -> None:
        self.system, self.hold, self.guess = bc.compile(mechanism, backend="numpy", **how), hold, guess
        self.load = np.zeros((len(self.system.body_names), 6))
        self.load[-1] = 0.1, -0.2, 0.3, 2.0, 1.0, -3.0
        self.tau = np.linspace(0.1, 0.5, self.system.nu) * (1 - state_mask(self.system))
        self.guess = self.state = self.at()

    def at(self, wrench: float = 0.0, tau: float = 0.0, **values: float) -> bc.State:
        return bc.analyze.equilibrium(self.machine(values), self.guess, hold=self.hold, **self.loads(wrench, tau))

    def machine(self, values: dict[str, float]) -> bc.System:
        return self.system.with_parameters(**{x: self.system.parameters[x] + step for x, step in values.items()})

    def loads(self, wrench: float = 0.0, tau: float = 0.0) -> dict[str, np.ndarray]:
        more, turn = np.zeros_like(self.load), np.zeros_like(self.tau)
        more[-1, 4], turn[0] = wrench, tau
        return {"wrenches": self.load + more, "tau": self.tau + turn}

    def ask(self, state: bc.State, values: dict[str, float], wrench: float = 0.0, tau: float = 0.0, **how: Any) -> Any:
        return bc.analyze.equilibrium_derivatives(self.machine(values), state, "outputs", hold=self.hold,
                                                  **self.loads(wrench, tau), **how)

    def differences(self, value: Callable[[bc.State, dict[str, float], dict[str, float]], np.ndarray], x: str
                    ) -> np.ndarray:
        """By a parameter, or by one force."""
        h = {"stiffness": 1e-3, "length": 1e-5, "wrenches": 1e-3, "tau": 1e-3}[x]
        found = []
        for step in h * STEPS:
            values, loads = ({}, {x.removesuffix("es"): step}) if x in ("wrenches", "tau") else ({x: step}, {})
            found.append(value(self.at(**loads, **values), values, loads))
        return np.asarray(SLOPES @ np.array(found).reshape(2, -1) / h)


def state_mask(system: bc.System) -> np.ndarray:
    names = {s.name for s in system.model.mechanism.states}
    return np.array([x.rpartition(".")[0] in names or x in names for x in system.speed_names], dtype=float)


CASES: dict[str, Callable[[], Resting]] = {
    "four-bar": lambda: Resting(sprung(), {"A": 0.3}),
    "cut": lambda: Resting(sprung(), {"A": 0.3}, cut=["A"], actuated=["D"]),
    "soft": lambda: Resting(soft(), None),
    "held": lambda: Resting(five_bar(), None, ("leg2.1",)),
    "held loop joint": lambda: Resting(five_bar(), None, ("leg2.1",), cut=["leg2.1"])}


def five_bar() -> bc.Mechanism:
    """A five-bar on a spring, one of whose cranks can be held."""
    m = bc.load("five_bar")
    stiffness, length = m.parameter("stiffness", 40.0), m.parameter("length", 1.0)
    m.add_joint_spring("spring", "leg1.1", stiffness=stiffness, rest=length)
    m.add_spring("coil", m.ground, m.bodies[1], (0.2, 0.4, 0), (0.1 * length, 0, 0), stiffness=50.0, length=0.1)
    m.add_output("height", lambda at: at.position(m.bodies[1], (0.4, 0.3, 0.0)).y + at.q("tip"))
    m.add_output("turn", lambda at: bm.sin(at.q("leg1.2")) * at.parameter("length"))
    return m


@pytest.mark.parametrize("case", CASES)
def test_once_and_twice(case: str) -> None:
    rest = CASES[case]()
    d = rest.ask(rest.state, {}, by=("length", "tau") if case in ("cut", "soft") else ("stiffness", "wrenches"))
    close(d.value, outputs_of(rest.system, rest.state), 1e-12)
    one = {"wrenches": (..., -2), "tau": (..., 0)}
    for x in d:
        wanted = rest.differences(lambda state, values, loads: outputs_of(rest.machine(values), state), x)
        close(np.ravel(d[x][one[x]] if x in one else d[x]), wanted, 1e-6)
    for then in ("wrenches",) if case in ("soft", "held") else ("length",):
        second = rest.ask(rest.state, {}, by=("stiffness", "wrenches"), then=then)
        wanted = rest.differences(lambda state, values, loads: np.concatenate([np.ravel(x) for x in rest.ask(
            state, values, by=("stiffness", "wrenches"), **loads).values()]), then)
        some = [second[x][one[then]] if then in one else second[x] for x in second]
        close(np.concatenate([np.ravel(x) for x in some]), wanted, 1e-5)
        assert second["wrenches"].shape == (2, len(rest.load) * 6, *(second["wrenches"].shape[2:]))


def test_poses_reactions_and_coordinates() -> None:
    rest = Resting(sprung(), {"A": 0.3})
    for function, body in (("joint_coordinates", None), ("reactions", None), ("pose", "coupler")):
        d = bc.analyze.equilibrium_derivatives(rest.system, rest.state, function, by=("length", "wrenches"), body=body,
                                               **rest.loads())

        def value(state: bc.State, values: Any, loads: Any, function: str = function, body: Any = body) -> np.ndarray:
            machine = rest.machine(values)
            if function == "reactions":
                return np.stack([*machine.reactions(state, rest.loads(**loads)["tau"],
                                                    wrenches=rest.loads(**loads)["wrenches"]).values()])
            at = machine.pose(state, "coupler")
            return state.q if body is None else np.concatenate([at.rotation.ravel(), at.position])

        close(np.ravel(d["length"]), rest.differences(value, "length"), 1e-7)
        close(np.ravel(d["wrenches"][..., -2]), rest.differences(value, "wrenches"), 1e-7)


def test_batches_of_loads_and_parameters() -> None:
    system = bc.compile(sprung(), backend="numpy")
    loads = np.zeros((2, 1, len(system.body_names), 6))
    loads[:, 0, -1, 4] = -1.0, 2.0
    many = system.with_parameters(stiffness=np.array([30.0, 40.0, 50.0]))
    state = bc.analyze.equilibrium(many, {"A": 0.3}, wrenches=loads)
    assert state.q.shape == (2, 3, system.nq)
    d = bc.analyze.equilibrium_derivatives(many, state, "outputs", by=("wrenches", "length"), wrenches=loads)
    second = bc.analyze.equilibrium_derivatives(many, state, "outputs", by="length", then="stiffness", wrenches=loads)
    one = system.with_parameters(stiffness=50.0)
    alone = bc.analyze.equilibrium(one, {"A": 0.3}, wrenches=loads[1, 0])
    close(state.q[1, 2], alone.q, 1e-11)
    wanted = bc.analyze.equilibrium_derivatives(one, alone, "outputs", by=("wrenches", "length"), wrenches=loads[1, 0])
    for x in d:
        close(d[x][1, 2], wanted[x], 1e-9)
    twice = bc.analyze.equilibrium_derivatives(one, alone, "outputs", by="length", then="stiffness",
                                               wrenches=loads[1, 0])
    close(second["length"][1, 2], twice["length"], 1e-9)


def test_what_does_not_rest_is_refused() -> None:
    system = bc.compile(sprung(), backend="numpy")
    rest = bc.analyze.equilibrium(system, {"A": 0.3})
    ask = bc.analyze.equilibrium_derivatives
    with pytest.raises(bc.StateError, match="does not rest in this state"):
        ask(system, system.assemble(q={"A": 0.5}), by="length")
    with pytest.raises(bc.StateError, match="does not rest in this state"):
        ask(system, rest, by="length", tau={"A": 1.0})
    with pytest.raises(bc.StateError, match=r"write \['A'\]"):
        ask(system, rest, by="length", hold="A")
    with pytest.raises(bc.ModelError, match="no function 'output'"):
        ask(system, rest, "output", by="length")
    with pytest.raises(bc.ModelError, match="nothing called 'stiff'"):
        ask(system, rest, by="stiff")
    m = bc.load("four_bar")
    m.gravity = (0.0, 0.0, 0.0)
    loose = bc.compile(m, backend="numpy")
    with pytest.raises(bc.SingularError, match="nothing holds"):
        ask(loose, loose.assemble(q={"A": 0.5}), by="wrenches")
