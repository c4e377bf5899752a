"""States of elements of a `Mechanism`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bellcrank.arguments import checked_methods
from bellcrank.errors import ModelError
from bellcrank.mechanism.add_forces import ForceElements
from bellcrank.mechanism.checks import new_name, number
from bellcrank.mechanism.first_order import AddedOutput, AddedState, FirstOrder
from bellcrank.mechanism.forces.law import required_arguments
from bellcrank.scalar.graph import Number

if TYPE_CHECKING:
    from bellcrank.mechanism.mechanism import Body, Connection
    from bellcrank.mechanism.parts import Frame

__all__ = ["StatefulElements"]


@checked_methods
class StatefulElements(ForceElements):
    """Forces, and states of their own that these may have."""

    _bodies: dict[str, Body]
    _frames: dict[str, Frame]

    def __init__(self) -> None:
        super().__init__()
        self._states: dict[str, AddedState] = {}
        self._outputs: dict[str, AddedOutput] = {}

    @abstractmethod
    def add_body(self, name: str) -> Body:
        """Add a body."""

    @abstractmethod
    def add_joint(self, name: str, joint: Any, parent: Any, child: Any) -> Connection:
        """Connect two bodies."""

    @property
    def states(self) -> tuple[AddedState, ...]:
        """States of elements."""
        return tuple(self._states.values())

    @property
    def outputs(self) -> tuple[AddedOutput, ...]:
        """What results hold besides states and energies."""
        return tuple(self._outputs.values())

    def add_output(self, name: str, law: Callable[[Any], Number], *, units: str = "1") -> AddedOutput:
        """A number that results hold for every sample, under its name: ``law(at)`` of the machine (see
        `add_joint_force`).

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> _ = m.add_output("height", lambda at: at.position(m.bodies[0].name).z, units="m")
        >>> "height" in bc.compile(m).simulate(([0.5], [0.0]), duration=0.01)
        True
        """
        new_name(self._outputs, name, "output")
        if not callable(law) or required_arguments(law) != 1:
            raise ModelError(f"output {name!r}: a law is a function of one argument, which shows the machine")
        self._outputs[name] = AddedOutput(name, law, _units(f"output {name!r}", units))
        return self._outputs[name]

    def add_state(self, name: str, rate: Callable[[Any], Number], *, initial: Number = 0.0, units: str = "1"
                  ) -> AddedState:
        """A state with first-order dynamics, such as a pressure, a current, the integral of a controller or an
        activation: its rate is ``rate(at)``, a law of the machine (see `add_joint_force`), in which ``at.state(name)``
        is the state itself. Laws read it by ``at.state(name)``.

        It is integrated with the machine by every stepper: as the speed ``name.value`` among those of the machine, with
        its integral over time, ``name.integral``, among the coordinates. `initial` (a number or a parameter) is where
        `assemble` lets it begin unless ``u={name: value}`` says otherwise. A force `tau` on it adds to its rate.
        Numbers of the size of other speeds do best: give a pressure in bar or MPa rather than in Pa.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> lag = m.add_state("lag", lambda at: (at.q("hinge") - at.state("lag")) / 0.1, initial=0.2)
        >>> system = bc.compile(m)
        >>> state = system.assemble(q={"hinge": 0.5})
        >>> system.speed_names, system.forward_dynamics(state).round(12)[1]
        (('hinge.angle', 'lag.value'), np.float64(3.0))
        """
        new_name(self._states, name, "state")
        what = f"state {name!r}"
        if not callable(rate) or required_arguments(rate) != 1:
            raise ModelError(f"{what}: its rate is a function of one argument, which shows the machine")
        value, label = number(what, "initial", initial), _units(what, units)
        self._check_own(what, value)
        known = self._joints.get(name)
        if known is not None and not isinstance(known.joint, FirstOrder):
            raise ModelError(f"{what}: a joint is called so already, and states have joints of their names; give it "
                             "another")
        if known is None:  # files put them in their places beforehand
            self.add_joint(name, FirstOrder(label), "ground", self.add_body(name))
        self._states[name] = AddedState(name, rate, value, label)
        return self._states[name]


    def _free(self, what: str, *states: str) -> None:
        """Names of states of an element, before anything is added: each has a joint and a body of its name."""
        for name in states:
            known = self._joints.get(name)
            if known is not None and isinstance(known.joint, FirstOrder) and name not in self._states:
                continue  # files put them in their places beforehand
            for kind, table in (("joint", self._joints), ("body", self._bodies), ("frame", self._frames)):
                if name in table:
                    raise ModelError(f"{what}: its state would be called {name!r}, as a {kind} is already; give the "
                                     "element another name")


def _units(what: str, units: Any) -> str:
    if not isinstance(units, str):
        raise ModelError(f"{what}: units are a text, such as 'bar', got {units!r}")
    return units
