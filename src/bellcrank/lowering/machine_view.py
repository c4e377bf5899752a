"""What laws of the machine see: coordinates, speeds, poses, velocities, time, parameters, states, other elements.

One text over any scalar: traced in compiled code, arrays elsewhere. All vectors are in world axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bellcrank.errors import ModelError, hint
from bellcrank.lowering.element_views import ElementView, element_view
from bellcrank.mechanism.forces.element import Moving
from bellcrank.mechanism.forces.machine_force import MachineLaw
from bellcrank.mechanism.law_probe import NO_ACCELERATIONS
from bellcrank.mechanism.parts import Frame
from bellcrank.mechanism.turns import Rows, apply, product
from bellcrank.scalar.graph import Graph, Number
from bellcrank.spatial import Transform, Vector
from bellcrank.topology.pairs import SumForce, Surroundings
from bellcrank.topology.tree import Tree

__all__ = ["MachineView"]

_ZERO = (0.0, 0.0, 0.0)
_PARAMETERS = Graph()


class MachineView:
    """The machine in one state, as laws see it: their only argument, usually called ``at``.

    Bodies, joints, states, parameters and elements are called by their names; angles are in radians, vectors in world
    axes. A vector has ``x``, ``y``, ``z``, ``dot`` and ``cross``, and adds and scales.
    """

    def __init__(self, tree: Tree, q: Callable[[int, int], Number], u: Callable[[int, int], Number],
                 moving: Callable[[int], Moving], bind: Callable[[Any], Any], time: Number, ground: Transform,
                 given: Callable[[int, int], Number] | None = None) -> None:
        self._tree, self._q, self._u, self._moving, self._bind = tree, q, u, moving, bind
        self._ground, self._given = ground, given
        self._values: dict[str, Any] = {}
        self._busy: list[str] = []
        #: the time [s]
        self.t: Number = time

    # -- joints -----------------------------------------------------------------------------------
    def q(self, joint: str) -> Number:
        """A coordinate [m or rad]: ``at.q("crank")``, or ``at.q("slider.turn")`` where a joint has several."""
        return self._coordinate(joint, False)

    def u(self, joint: str) -> Number:
        """A speed [m/s or rad/s], by the same names."""
        return self._coordinate(joint, True)

    def state(self, name: str) -> Number:
        """A state that was added with `add_state`."""
        return self._coordinate(name, True)

    def parameter(self, name: str) -> Number:
        """The value of a parameter."""
        if name not in self._tree.parameters:
            raise ModelError(f"no parameter called {name!r}{hint(name, list(self._tree.parameters))}")
        return self._bind(_PARAMETERS.leaf(("parameter", name)))

    def _coordinate(self, key: str, rate: bool) -> Number:
        links = self._tree.joint_links
        for name in (key, key.rpartition(".")[0]):
            if name in links:
                kind = self._tree.extended.joints[links[name]]
                return (self._u if rate else self._q)(links[name], _place(name, key[len(name) + 1:], kind, rate))
        raise ModelError(f"no joint called {key!r}{hint(key, list(links))}")

    # -- bodies -----------------------------------------------------------------------------------
    def position(self, body: Any, point: Sequence[Number] = _ZERO) -> Vector:
        """Where a point of a body, or of a named frame (in its own axes), is [m]."""
        link, arm = self._point(body, point)
        moving = self._moving(link)
        return self._ground.rotation.apply(moving.origin + moving.axes.apply(arm)) + self._ground.translation

    def velocity(self, body: Any, point: Sequence[Number] = _ZERO) -> Vector:
        """The velocity of a point of a body, or of a named frame [m/s]."""
        link, arm = self._point(body, point)
        moving = self._moving(link)
        return self._ground.rotation.apply(moving.velocity + moving.omega.cross(moving.axes.apply(arm)))

    def axes(self, body: Any) -> tuple[Vector, Vector, Vector]:
        """The axes x, y and z of a body, or of a named frame."""
        index, frame = self._body(body)
        moving = self._moving(int(self._tree.body_link[index]))
        turn: Rows = tuple(self._tree.body_turn[index].ravel().tolist())
        if frame is not None:
            turn = product(turn, self._bind(frame.pose.rows))
        x, y, z = (self._ground.rotation.apply(moving.axes.apply(Vector(*turn[i::3]))) for i in range(3))
        return x, y, z

    def omega(self, body: Any) -> Vector:
        """The angular velocity of a body [rad/s]."""
        return self._ground.rotation.apply(self._moving(int(self._tree.body_link[self._body(body)[0]])).omega)

    def acceleration(self, body: Any, point: Sequence[Number] = _ZERO) -> Vector:
        """Refused: accelerations follow from forces."""
        raise ModelError(NO_ACCELERATIONS)

    def _body(self, body: Any) -> tuple[int, Frame | None]:
        """The index of a body, and the frame on it that is meant, if it is one."""
        name = getattr(body, "name", body)
        names, frames = self._tree.body_names, self._tree.frames
        if name in frames:
            return frames[name].body, frames[name]
        if name not in names:
            raise ModelError(f"no body or frame called {name!r}{hint(str(name), (*names, *frames))}")
        return names.index(name), None

    def _point(self, body: Any, point: Sequence[Number]) -> tuple[int, Vector]:
        """The link of a body or frame, and a point of that in the link's frame."""
        tree, (index, frame) = self._tree, self._body(body)
        shift = tree.body_shift_symbolic.get(index, tuple(tree.body_shift[index].tolist()))
        rows = tree.body_turn[index].tolist()
        local = Vector(*point)
        if frame is not None:
            local = Vector(*self._bind(tuple(frame.pose.position))) + Vector(
                *apply(self._bind(frame.pose.rows), local))
        return int(tree.body_link[index]), Vector(*self._bind(tuple(shift))) + Vector(
            *(Vector(*row).dot(local) for row in rows))

    # -- other elements ---------------------------------------------------------------------------
    def element(self, name: str) -> ElementView:
        """Another element: its ``force``, ``length``, ``rate``, ``power``, ``energy``, ..."""
        return element_view(self, self._tree, name)

    def value_of(self, name: str, law: MachineLaw) -> Any:
        """What the law of an element gives."""
        if name in self._values:
            return self._values[name]
        if name in self._busy:
            ring = " -> ".join([*self._busy[self._busy.index(name):], name])
            raise ModelError(f"the law of {name!r} makes an algebraic loop: {ring}; let one of them depend on a state")
        self._busy.append(name)
        try:
            self._values[name] = law(self)
        finally:
            self._busy.pop()
        return self._values[name]

    # -- for elements -----------------------------------------------------------------------------
    @property
    def around(self) -> Surroundings:
        return Surroundings(self.t, self._ground.rotation, self)

    def total(self, force: SumForce) -> tuple[Number, Number]:
        """The sum of coordinates along which a force acts, without those of speeds that have none, and its rate."""
        length: Number = 0.0
        rate: Number = 0.0
        for link, i, factor in self._bind(force.terms):
            kind = self._tree.extended.joints[link]
            if kind.nq == kind.nu:
                length = length + self._q(link, i) * factor
            rate = rate + self._u(link, i) * factor
        return length, rate

    def coordinates(self, link: int) -> list[Number]:
        """All coordinates of a joint."""
        joint = self._tree.extended.joints[link]
        return [] if joint is None else [self._q(link, k) for k in range(joint.nq)]

    def given(self, link: int, i: int) -> Number:
        """The joint force that is given along a coordinate."""
        return 0.0 if self._given is None else self._given(link, i)

    def moving(self, link: int) -> Moving:
        """How a link moves, in axes that `in_world` turns."""
        return self._moving(link)

    def in_world(self, v: Vector, point: bool = False) -> Vector:
        """A vector, or a point, in the world."""
        turned = self._ground.rotation.apply(v)
        return turned + self._ground.translation if point else turned

    def bind(self, value: Any) -> Any:
        """Something with its parameters replaced by their values."""
        return self._bind(value)


def _place(name: str, label: str, kind: Any, rate: bool) -> int:
    """Which coordinate or speed of a joint is meant."""
    names = kind.speed_names if rate else kind.coordinate_names()
    if not label:
        if len(names) != 1:
            raise ModelError(f"joint {name!r} has {', '.join(names) or 'no coordinates'}; say which one is meant")
        return 0
    if label not in names:
        raise ModelError(f"joint {name!r} has no {label!r}; it has {', '.join(names)}")
    return int(names.index(label))
