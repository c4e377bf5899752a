"""The shapes of a `Mechanism`: adding them, and what is there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bellcrank.arguments import checked_methods
from bellcrank.errors import ModelError
from bellcrank.mechanism.checks import new_name, number
from bellcrank.mechanism.geometry.colors import to_color
from bellcrank.mechanism.geometry.placed_shape import ROLES, SHAPES, AnyShape, PlacedShape, Role
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.graph import Number, Scalar

if TYPE_CHECKING:
    from bellcrank.mechanism.parts import Body

__all__ = ["ShapedBodies"]

_HERE = Pose()


@checked_methods
class ShapedBodies:
    """What the bodies of a `Mechanism` look like and collide with."""

    def __init__(self) -> None:
        super().__init__()
        self._shapes: dict[str, PlacedShape] = {}

    @abstractmethod
    def body(self, name: str | Body) -> Body:
        """The body called `name`."""

    @abstractmethod
    def _check_own(self, what: str, *values: Number) -> None:
        """Numbers that can be computed with, and parameters that are declared here."""

    @property
    def shapes(self) -> tuple[PlacedShape, ...]:
        """All shapes in the order they were added."""
        return tuple(self._shapes.values())

    def shapes_of(self, body: str | Body) -> tuple[PlacedShape, ...]:
        """The shapes of one body; the ground has some, too. Cost: O(shapes)."""
        index = self.body(body).index
        return tuple(s for s in self._shapes.values() if s.body == index)

    def add_shape(self, body: str | Body, shape: AnyShape, pose: Pose = _HERE, *,
                  color: str | Sequence[float] | None = None, name: str | None = None, role: Role = "visual",
                  friction: float | None = None, groups: tuple[int, int] = (1, 1)) -> PlacedShape:
        """Say how a body (or the ground) looks: a shape such as ``bc.Box((0.4, 0.1, 0.1))``, and where its frame lies
        in that of the body. With the `role` "collision" it says where the body can touch others.

        `color` is a name, ``"#rrggbb"``, ``"#rrggbbaa"`` or three or four numbers in 0..1 (red, green, blue, opacity).
        Contacts for which nothing else is said take the `friction` of their shapes, and `add_contacts` takes pairs in
        which one of the `groups` (bits: what a shape is, what it touches) fits the other's.

        Without a `name` it is called after its body. Shapes have no mass: motion, compiled code and results are the
        same with them and without. The position of a shape that is only seen may depend on parameters.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> m.add_shape(m.bodies[0], bc.Sphere(0.05), bc.Pose((0, 0, -1)), color="steelblue").shape
        Sphere(radius=0.05)
        """
        owner = self.body(body)
        what = f"shape {name!r}" if name is not None else f"shape of body {owner.name!r}"
        if not isinstance(shape, SHAPES):
            raise ModelError(f"{what}: needs a shape such as bellcrank.Box((1, 1, 1)), got {type(shape).__name__}")
        if not isinstance(pose, Pose):
            raise ModelError(f"{what}: the pose must be a bellcrank.Pose, got {type(pose).__name__}")
        pose = pose.fixed(what)
        if role not in ROLES:
            raise ModelError(f"{what}: role must be 'visual' or 'collision', got {role!r}")
        if role == "collision" and any(isinstance(x, Scalar) for x in pose.position):
            raise ModelError(f"{what}: the pose of a shape that touches others takes numbers, not parameters")
        self._check_own(what, *pose.position)
        if name is None:
            name = self._free_name(f"{owner.name} {type(shape).__name__.lower()}")
        new_name(self._shapes, name, "shape")
        placed = PlacedShape(name, owner.index, shape, pose, None if color is None else to_color(color, what), role,
                             None if friction is None else float(number(what, "friction", friction, 0.0)),
                             _bits(what, groups))
        self._shapes[name] = placed
        return placed

    def _free_name(self, base: str) -> str:
        if base not in self._shapes:
            return base
        n = 2
        while f"{base} {n}" in self._shapes:
            n += 1
        return f"{base} {n}"


def _bits(what: str, groups: tuple[int, int]) -> tuple[int, int]:
    try:
        own, others = (int(g) for g in groups)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: groups are two whole numbers, bits of what it is and of what it touches, got "
                         f"{groups!r}") from None
    if min(own, others) < 0:
        raise ModelError(f"{what}: groups must not be negative, got {groups!r}")
    return own, others
