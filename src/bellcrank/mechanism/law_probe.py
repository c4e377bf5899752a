"""Laws of the machine tried once, before anything is compiled: what they look at, and what is wrong with them.

A law is run on a stand-in for the machine that knows the names of its parts and gives traced scalars for all numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bellcrank.errors import ModelError, hint
from bellcrank.mechanism.checks import LAW_ADVICE
from bellcrank.mechanism.contact.contact_material import PlacedContact
from bellcrank.mechanism.forces import MachineForce
from bellcrank.mechanism.forces.element import bound
from bellcrank.mechanism.forces.machine_force import MachineLaw
from bellcrank.mechanism.parts import FrameBushing, JointForce
from bellcrank.scalar.graph import LEAF, Graph, Number, Scalar, reachable
from bellcrank.spatial import Vector

if TYPE_CHECKING:
    from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["NO_ACCELERATIONS", "LawUse", "Probed", "probe_laws"]

#: what laws can ask the machine
SEEN = ("t", "q", "u", "state", "parameter", "position", "velocity", "axes", "omega", "element")
#: and what they can ask an element
REPORTED = ("force", "length", "rate", "power", "energy", "vector", "torque", "first_point", "second_point")
NO_ACCELERATIONS = ("laws see no accelerations: these follow from the forces, an algebraic loop; read a state "
                    "(add_state) that follows the velocity")


@dataclass
class LawUse:
    """What one law looks at."""

    joints: set[str] = field(default_factory=set)
    elements: dict[str, None] = field(default_factory=dict)  #: whose forces it uses
    lengths: set[str] = field(default_factory=set)  #: elements whose lengths it uses
    clock: bool = False


class Probed:
    """The stand-in: see `lowering.machine_view.MachineView` for what each does."""

    def __init__(self, mechanism: Mechanism, graph: Graph, use: LawUse) -> None:
        self._m, self._graph, self._use = mechanism, graph, use

    def _leaf(self, *key: Any) -> Scalar:
        return self._graph.leaf(key)

    def _vector(self, *key: Any) -> Vector:
        return Vector(*(self._leaf(*key, i) for i in range(3)))

    @property
    def t(self) -> Number:
        return self._leaf("t")

    def q(self, joint: str) -> Number:
        return self._coordinate("q", joint)

    def u(self, joint: str) -> Number:
        return self._coordinate("u", joint)

    def state(self, name: str) -> Number:
        known = [s.name for s in self._m.states]
        if name not in known:
            raise ModelError(f"no state called {name!r}; there are {', '.join(known) or 'none'}{hint(name, known)}")
        return self._leaf("state", name)

    def parameter(self, name: str) -> Number:
        if name not in self._m.parameters:
            raise ModelError(f"no parameter called {name!r}{hint(name, list(self._m.parameters))}")
        return self._leaf("parameter", name)

    def bind(self, value: Any) -> Any:
        return bound(value, self.parameter)

    def _coordinate(self, kind: str, key: str) -> Number:
        records = {r.name: r.joint for r in self._m.joints}
        name = key if key in records else str(key).rpartition(".")[0]
        if name not in records:
            raise ModelError(f"no joint called {key!r}{hint(str(key), list(records))}")
        names, label = (records[name].coordinate_names() if kind == "q" else records[name].speed_names), key[
            len(name) + 1:]
        if not label and len(names) != 1:
            raise ModelError(f"joint {name!r} has {', '.join(names) or 'no coordinates'}; say which one is meant")
        if label and label not in names:
            raise ModelError(f"joint {name!r} has no {label!r}; it has {', '.join(names)}")
        self._use.joints.add(name)
        return self._leaf(kind, key)

    def position(self, body: Any, point: Sequence[Number] = (0.0, 0.0, 0.0)) -> Vector:
        return self._of_body("position", body, point)

    def velocity(self, body: Any, point: Sequence[Number] = (0.0, 0.0, 0.0)) -> Vector:
        return self._of_body("velocity", body, point)

    def omega(self, body: Any) -> Vector:
        return self._of_body("omega", body, ())

    def axes(self, body: Any) -> tuple[Vector, Vector, Vector]:
        x, y, z = (self._of_body(f"axis {i}", body, ()) for i in range(3))
        return x, y, z

    def acceleration(self, body: Any, point: Sequence[Number] = (0.0, 0.0, 0.0)) -> Vector:
        raise ModelError(NO_ACCELERATIONS)

    def __getattr__(self, what: str) -> Any:
        raise ModelError(f"laws cannot ask for at.{what}{hint(what, SEEN)}; there are {', '.join(SEEN)}")

    def _of_body(self, what: str, body: Any, point: Sequence[Number]) -> Vector:
        name, frames = getattr(body, "name", body), {f.name for f in self._m.frames}
        if name in [s.name for s in self._m.states]:
            raise ModelError(f"{name!r} is a state, which has no place; write at.state({name!r})")
        if name not in frames:
            known = {b.name for b in (self._m.ground, *self._m.bodies)}
            if name not in known and frames:
                raise ModelError(f"no body or frame called {name!r}{hint(str(name), (*known, *frames))}")
            name = self._m.body(name).name
        total = self._vector(what, name)
        if what in ("position", "velocity") and (isinstance(point, str) or len(point) != 3):
            raise ModelError(f"at.{what}({name!r}, ...): a point has three numbers, got "
                             f"{repr(point) if isinstance(point, str) else len(point)}")
        for x in point:  # a point may be computed by the law
            total = total * 1.0 + Vector(x, x, x) * self._leaf("point")
        return total

    def element(self, name: str) -> Any:
        drives = {d.name for d in self._m.drives}
        known = [e.name for e in self._m.force_elements if e not in self._m.drives]
        if name in drives and name not in known:
            raise ModelError(f"{name!r} is an actuator: what it does depends on forces that are given from outside, "
                             "which laws do not see")
        if name not in known:
            raise ModelError(f"no force element called {name!r}; there are {', '.join(known) or 'none'}"
                             f"{hint(name, known)}")
        if known.count(name) > 1:
            raise ModelError(f"{known.count(name)} elements are called {name!r}; give them names of their own")
        element = next(e for e in self._m.force_elements if e.name == name and e not in self._m.drives)
        return ProbedElement(self._use, name, self._leaf, _reported(self._m, element))


class ProbedElement:
    """An element of the stand-in."""

    def __init__(self, use: LawUse, name: str, leaf: Any, has: tuple[str, ...]) -> None:
        self._use, self._name, self._leaf, self._has = use, name, leaf, has

    def __getattr__(self, what: str) -> Any:
        if what not in self._has and what in REPORTED:
            raise ModelError(f"the element {self._name!r} has no {what}; it has {', '.join(self._has)}")
        if what == "length":
            self._use.lengths.add(self._name)
        if what in ("length", "rate", "energy"):
            return self._leaf("element", self._name, what)
        if what in ("force", "power"):
            self._use.elements[self._name] = None
            return self._leaf("element", self._name, what)
        if what in ("vector", "torque", "first_point", "second_point"):
            if what in ("vector", "torque"):
                self._use.elements[self._name] = None
            return Vector(*(self._leaf("element", self._name, what, i) for i in range(3)))
        if what == "bend_rate":
            return lambda place: tuple(self._leaf("element", self._name, what, place, i) for i in range(3))
        raise ModelError(f"an element has no {what!r}{hint(what, self._has)}; {self._name!r} has "
                         f"{', '.join(self._has)}")


def _reported(mechanism: Mechanism, element: Any) -> tuple[str, ...]:
    """What an element reports: along a line, a coordinate or a sum of some, between frames, or on one body."""
    if isinstance(element, JointForce):
        kind = mechanism.joint(element.joint).joint
        return REPORTED if kind.nq == kind.nu else tuple(name for name in REPORTED if name != "length")
    if isinstance(element, PlacedContact) or hasattr(element, "along"):
        return REPORTED
    both = isinstance(element, FrameBushing) or hasattr(getattr(element, "law", None), "ground_point")
    return (*REPORTED[3:7], *REPORTED[7:][0 if both else 1:])


def probe_laws(mechanism: Mechanism) -> dict[str, LawUse]:
    """What every law of the machine looks at, by the element's name; `ModelError` says what is wrong."""
    found: dict[str, LawUse] = {}
    for name, what, law, several in _laws(mechanism):
        if name in found:
            raise ModelError(f"{what}: another element with a law of the machine has this name; give it one of its own")
        found[name] = _probe(mechanism, what, law, several)
    for name in found:
        _refuse_rings(name, found, [])
    return found


def _laws(mechanism: Mechanism) -> Iterable[tuple[str, str, MachineLaw, bool]]:
    """Name, words, law and whether it may give several numbers."""
    elements: list[tuple[str, Any]] = [("joint force", e) for e in (*mechanism.joint_forces, *mechanism.joint_sums)]
    for label, e in (*elements, *(("force", e) for e in mechanism.springs)):
        if isinstance(e.along, MachineForce):
            yield e.name, f"{label} {e.name!r}", e.along.law, False
    for s in mechanism.states:
        yield s.name, f"state {s.name!r}", s.rate, False
    for o in mechanism.outputs:
        yield f"output {o.name}", f"output {o.name!r}", o.law, False
    for w in mechanism.wrenches:
        if w.law is not None:
            yield w.name, f"wrench {w.name!r}", w.law, True


def _probe(mechanism: Mechanism, what: str, law: MachineLaw, several: bool) -> LawUse:
    use, graph = LawUse(), Graph()
    try:
        at = Probed(mechanism, graph, use)
        value = at.bind(law)(at)
        numbers = _numbers(value) if several else [value]
        for x in numbers:
            if isinstance(x, str):
                raise TypeError(f"{x!r} is no number")
            if not isinstance(x, Scalar):
                float(x)
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None
    except Exception as error:  # whatever a law of a user may raise; its own traceback stays to be seen
        raise ModelError(f"{what}: its law cannot be compiled ({str(error) or type(error).__name__}); {LAW_ADVICE}; it "
                         f"returns {'three numbers, or force and moment' if several else 'one number'}") from error
    nodes = reachable([x for x in numbers if isinstance(x, Scalar)])
    for node in nodes:
        if node.graph is not graph:
            raise ModelError(f"{what}: its law uses a parameter of the mechanism as it is; write at.parameter('name')")
    use.clock = any(node.op is LEAF and node.args[0] == ("t",) for node in nodes)
    return use


def _numbers(value: Any) -> list[Number]:
    parts = list(value)
    if len(parts) == 2:
        force, moment = (list(part) for part in parts)
        if len(force) != 3 or len(moment) != 3:
            raise ValueError(f"force and moment have {len(force)} and {len(moment)} entries, not three each")
        parts = [*force, *moment]
    elif len(parts) != 3:
        raise ValueError(f"it returns {len(parts)} numbers")
    return parts


def _refuse_rings(name: str, uses: dict[str, LawUse], way: list[str]) -> None:
    if name in way:
        ring = " -> ".join([*way[way.index(name):], name])
        raise ModelError(f"the law of {name!r} makes an algebraic loop: {ring}; let one of them depend on a state "
                         "(add_state), or on lengths and rates alone")
    for other in uses[name].elements if name in uses else ():
        _refuse_rings(other, uses, [*way, name])
