"""What every force element says of itself in one state, whatever its kind. One text over any scalar."""

from __future__ import annotations

from typing import Any, Protocol

from bellcrank.errors import ModelError
from bellcrank.lowering.element_loads import element_loads
from bellcrank.mechanism.forces.element import Moving
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force, Vector
from bellcrank.topology.pairs import SumForce, Surroundings
from bellcrank.topology.tree import Tree

__all__ = ["FIELDS", "REPORT", "ElementView", "InSight"]

#: what an element reports, and how many numbers each is
FIELDS = {"force": 1, "length": 1, "rate": 1, "power": 1, "energy": 1, "vector": 3, "torque": 3, "first_point": 3,
          "second_point": 3}
#: numbers of one report
REPORT = sum(FIELDS.values())


class InSight(Protocol):
    """What elements need to know of the machine: see `machine_view.MachineView`."""

    t: Number

    @property
    def around(self) -> Surroundings: ...

    def coordinates(self, link: int) -> list[Number]: ...

    def total(self, force: SumForce) -> tuple[Number, Number]: ...

    def moving(self, link: int) -> Moving: ...

    def in_world(self, v: Vector, point: bool = False) -> Vector: ...

    def bind(self, value: Any) -> Any: ...


class ElementView:
    """An element in one state."""

    #: what this kind has of `FIELDS`
    has: tuple[str, ...] = tuple(FIELDS)

    def __init__(self, at: InSight, tree: Tree, part: Any) -> None:
        self._at, self._tree, self._part = at, tree, part

    @property
    def force(self) -> Number:
        """Along its coordinate or line [N or N m]; positive drives that up, or the ends apart."""
        raise self._lack("force along a line")

    @property
    def length(self) -> Number:
        """Its coordinate, or the distance of its ends [m or rad]."""
        raise self._lack("length")

    @property
    def rate(self) -> Number:
        """The rate of that [m/s or rad/s]."""
        raise self._lack("rate")

    @property
    def energy(self) -> Number:
        """What it stores [J]."""
        return 0.0

    @property
    def power(self) -> Number:
        """What it puts into the machine [W]: negative where it takes energy out, to store or to lose it."""
        return self.force * self.rate

    @property
    def vector(self) -> Vector:
        """The force on its second body [N], world axes."""
        raise self._lack("force vector")

    @property
    def torque(self) -> Vector:
        """The moment on its second body about `second_point` [N m], world axes."""
        raise self._lack("torque")

    @property
    def first_point(self) -> Vector:
        """Where it acts on its first body [m], world axes."""
        raise self._lack("first point")

    @property
    def second_point(self) -> Vector:
        """Where it acts on its second body [m], world axes."""
        raise self._lack("second point")

    def _lack(self, what: str) -> ModelError:
        return ModelError(f"this kind of element has no {what}; it has {', '.join(self.has)}")

    def report(self) -> list[Number]:
        """All of `FIELDS`, one after another; zero where it has none."""
        out: list[Number] = []
        for name, size in FIELDS.items():
            value: Any = getattr(self, name) if name in self.has else 0.0 if size == 1 else (0.0, 0.0, 0.0)
            out += [value] if size == 1 else list(value)
        return out

    def _loads(self) -> tuple[tuple[int, Force], ...]:
        """Links, and what it exerts on each about its origin, in the axes of motions."""
        at = self._at
        return element_loads(self._tree, self._part, at.moving, at.bind, at.around)

    def _power_of_loads(self) -> Number:
        total: Number = 0.0
        for link, wrench in self._loads():
            if link:
                total = total + self._at.moving(link).twist.dot(wrench)
        return total
