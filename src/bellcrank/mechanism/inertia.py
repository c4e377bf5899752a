"""Mass, centre of mass and rotational inertia of a body, with the usual shapes."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked_methods
from bellcrank.errors import ModelError
from bellcrank.mechanism.checks import number, plain
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.spatial import RigidInertia, Symmetric3, Vector

__all__ = ["Inertia"]


@checked_methods
class Inertia:
    """Mass [kg], centre of mass [m] and rotational inertia [kg m^2] **about the centre of mass**, body axes.

    `inertia` is a 3x3 symmetric matrix, three principal values, or one value for all axes. Any of the
    numbers may be a parameter. Physical impossibility (negative mass, an inertia no mass distribution
    can have) is an error unless ``checked=False``.

    >>> Inertia.rod(1.5, (0, 0, 0), (0.3, 0, 0))
    Inertia(mass=1.5, com=(0.15, 0.0, 0.0), inertia=(0.0, 0.0, 0.0, 0.01125, 0.0, 0.01125))
    """

    __slots__ = ("com", "inertia", "mass")

    def __init__(self, mass: Number = 0.0, com: Sequence[Number] = (0.0, 0.0, 0.0),
                 inertia: Number | Sequence[Number] | Sequence[Sequence[Number]] | npt.ArrayLike = 0.0,
                 *, checked: bool = True) -> None:
        self.mass: Number = _numbers([mass], 1, "mass")[0]
        self.com: tuple[Number, ...] = _numbers(com, 3, "com")
        #: xx, xy, xz, yy, yz, zz
        self.inertia: tuple[Number, ...] = _six(inertia)
        if checked:
            problem = self.problem()
            if problem:
                raise ModelError(f"Inertia: {problem}")

    @staticmethod
    def zero() -> Inertia:
        """No mass at all."""
        return Inertia()

    @staticmethod
    def point(mass: Number, at: Sequence[Number] = (0.0, 0.0, 0.0)) -> Inertia:
        """A point mass."""
        return Inertia(mass, at, 0.0)

    @staticmethod
    def rod(mass: Number, start: Sequence[Number], end: Sequence[Number]) -> Inertia:
        """A slender uniform rod between two points."""
        start, end = _numbers(start, 3, "of a rod: start"), _numbers(end, 3, "of a rod: end")
        middle = [0.5 * (a + b) for a, b in zip(start, end, strict=True)]
        x, y, z = (b - a for a, b in zip(start, end, strict=True))
        (mass,) = _numbers([mass], 1, "mass")
        k = mass / 12.0
        return Inertia(mass, middle, [[k * (y * y + z * z), -k * x * y, -k * x * z],
                                      [-k * x * y, k * (x * x + z * z), -k * y * z],
                                      [-k * x * z, -k * y * z, k * (x * x + y * y)]])

    @staticmethod
    def box(mass: Number, size: Sequence[Number], center: Sequence[Number] = (0.0, 0.0, 0.0)) -> Inertia:
        """A uniform block with its edges along the body axes."""
        x, y, z = (number("Inertia.box", "size", v, 0.0) for v in _numbers(size, 3, "of a box: size"))
        (mass,) = _numbers([mass], 1, "mass")
        k = mass / 12.0
        return Inertia(mass, center, [k * (y * y + z * z), k * (x * x + z * z), k * (x * x + y * y)])

    @staticmethod
    def cylinder(mass: Number, radius: Number, length: Number, axis: str = "z",
                 center: Sequence[Number] = (0.0, 0.0, 0.0)) -> Inertia:
        """A solid cylinder along a body axis."""
        if axis not in ("x", "y", "z"):
            raise ModelError(f"Inertia.cylinder: axis {axis!r} must be 'x', 'y' or 'z'; turn others with transformed()")
        radius, length = (number("Inertia.cylinder", label, value, 0.0)
                          for label, value in (("radius", radius), ("length", length)))
        (mass,) = _numbers([mass], 1, "mass")
        along, across = mass * radius * radius / 2.0, mass * (3.0 * radius * radius + length * length) / 12.0
        return Inertia(mass, center, [along if a == axis else across for a in "xyz"])

    @staticmethod
    def sphere(mass: Number, radius: Number, center: Sequence[Number] = (0.0, 0.0, 0.0)) -> Inertia:
        """A solid ball."""
        radius = number("Inertia.sphere", "radius", radius, 0.0)
        (mass,) = _numbers([mass], 1, "mass")
        return Inertia(mass, center, 0.4 * mass * radius * radius)

    def combined(self, *others: Inertia) -> Inertia:
        """This body and others, rigidly joined; all given in the same axes and origin."""
        total = self.rigid()
        for other in others:
            total = total + other.rigid()
        return Inertia.from_rigid(total)

    def transformed(self, pose: Pose) -> Inertia:
        """The same body described in an outer frame in which its own frame lies at `pose`."""
        from bellcrank.spatial import General, Matrix3, Transform

        r = pose.fixed("Inertia.transformed", turns=True).rows
        turn = General(Matrix3(Vector(*r[0:3]), Vector(*r[3:6]), Vector(*r[6:9])))
        at = Transform(turn, Vector(*pose.position))
        return Inertia(self.mass, at.point(Vector(*self.com)), turn.symmetric(Symmetric3(*self.inertia)),
                       checked=False)

    def rigid(self) -> RigidInertia:
        """First and second moments about the body's origin."""
        return RigidInertia.from_centre(self.mass, Vector(*self.com), Symmetric3(*self.inertia))

    @staticmethod
    def from_rigid(total: RigidInertia) -> Inertia:
        """The inverse of `rigid`."""
        if not isinstance(total.mass, Scalar) and total.mass == 0.0:
            return Inertia(0.0, (0.0, 0.0, 0.0), total.second, checked=False)
        com = total.first * (1.0 / total.mass)
        back = RigidInertia(total.mass, total.first, total.second).shifted(-com)
        return Inertia(total.mass, com, back.second, checked=False)

    def problem(self) -> str | None:
        """Why no real body can have these numbers, or None. Parameters are not judged here."""
        values = (self.mass, *self.inertia)
        if any(isinstance(v, Scalar) for v in values):
            return None
        if self.mass < 0.0:
            return f"the mass {self.mass:g} kg is negative"
        xx, xy, xz, yy, yz, zz = self.inertia
        half = 0.5 * (xx + yy + zz)
        # the second moments of the mass distribution: positive semidefinite for every real body
        spread = np.array([[half - xx, -xy, -xz], [-xy, half - yy, -yz], [-xz, -yz, half - zz]])
        if xy == xz == yz == 0.0:
            lowest = min(half - xx, half - yy, half - zz)
        else:
            lowest = float(np.linalg.eigvalsh(spread)[0])
        if lowest < -1e-9 * abs(half) - 1e-300:
            principal = np.linalg.eigvalsh(half * np.eye(3) - spread)
            if principal[0] < -1e-9 * abs(half):
                return f"the rotational inertia is not positive (principal moments {principal.tolist()})"
            return (f"the principal moments {principal.tolist()} violate the triangle inequality: the largest "
                    "exceeds the sum of the others; is the inertia given about the centre of mass?")
        if self.mass == 0.0 and half > 0.0:
            return "there is rotational inertia but no mass"
        return None

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Inertia) and self.mass == other.mass and self.com == other.com
                and self.inertia == other.inertia)

    def __hash__(self) -> int:
        return hash((self.mass, self.com, self.inertia))

    def __repr__(self) -> str:
        return f"Inertia(mass={self.mass}, com={self.com}, inertia={self.inertia})"


def _numbers(values: Sequence[Number], n: int, what: str) -> tuple[Number, ...]:
    try:
        entries = tuple(v if isinstance(v, Scalar) else plain(v) + 0.0 for v in values)
    except (TypeError, ValueError):
        raise ModelError(f"Inertia {what}: {values!r} is not {n} number{'s' * (n > 1)}") from None
    if len(entries) != n:
        raise ModelError(f"Inertia {what}: needs {n} number{'s' * (n > 1)}, got {len(entries)}")
    for v in entries:
        if isinstance(v, float) and not abs(v) < float("inf"):
            raise ModelError(f"Inertia {what}: {entries} is not finite")
    return entries


def _six(value: Number | Sequence[Number] | Sequence[Sequence[Number]] | npt.ArrayLike) -> tuple[Number, ...]:
    if isinstance(value, Symmetric3):
        return _numbers(value, 6, "inertia")
    if isinstance(value, (Scalar, Real)):
        return _numbers([value, 0.0, 0.0, value, 0.0, value], 6, "inertia")
    try:
        rows = value.tolist() if isinstance(value, np.ndarray) else list(value)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(f"Inertia inertia: {value!r} is neither a matrix nor moments") from None
    if isinstance(rows, float):
        return _numbers([rows, 0.0, 0.0, rows, 0.0, rows], 6, "inertia")
    if len(rows) != 3:
        raise ModelError("Inertia inertia: needs a 3x3 matrix, three principal moments or one number")
    if all(isinstance(r, (Scalar, Real)) for r in rows):
        return _numbers([rows[0], 0.0, 0.0, rows[1], 0.0, rows[2]], 6, "inertia")
    if any(len(r) != 3 for r in rows):
        raise ModelError("Inertia inertia: needs a 3x3 matrix, three principal moments or one number")
    nine = _numbers([v for r in rows for v in r], 9, "inertia")
    for i, j in ((1, 3), (2, 6), (5, 7)):
        a, b = nine[i], nine[j]
        if isinstance(a, float) and isinstance(b, float) and abs(a - b) > 1e-9 * max(map(abs, _floats(nine))):
            raise ModelError(f"Inertia inertia: the matrix is not symmetric ({a!r} and {b!r})")
    return tuple(nine[i] for i in (0, 1, 2, 4, 5, 8))


def _floats(values: Sequence[Number]) -> list[float]:
    return [v for v in values if isinstance(v, float)]
