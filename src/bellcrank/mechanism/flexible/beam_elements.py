"""Beams of straight two-node elements in space: sections, matrices, masses at points.

Every element has 12 degrees of freedom, (ux, uy, uz, rx, ry, rz) at both ends, with small rotations rz = duy/dx and
ry = -duz/dx of thin beams. Stretch and twist are linear, deflections are Hermite cubics; thick beams (Timoshenko) use
the interpolation that is exact for a uniform element, in which rotations lag behind slopes by the shear.
J. S. Przemieniecki, "Theory of Matrix Structural Analysis", McGraw-Hill, 1968, chapters 5 and 11.

All integrals are taken by six Gauss points an element, exact for sections that taper linearly.

Points of a beam's cross section at which stresses are computed, from the forces and moments of the section.

With the force N along the axis, shear forces Vy and Vz, the torque T and bending moments My and Mz that the part beyond
the section exerts on the part before it,

    s_xx = E (N / EA + z My / EIy - y Mz / EIz),                                                     (1)
    s_xy = G ty T / GJ + E sy Vy / EA,       s_xz = G tz T / GJ + E sz Vz / EA,                      (2)

where (ty, tz) is the shear of a unit twist (Saint-Venant's: in a round section the distance from the axis) and sy, sz
compare the shear stress at the point with the mean one, V / A. The other stresses are none.
S. P. Timoshenko and J. N. Goodier, "Theory of Elasticity", McGraw-Hill, 3rd edition, 1970, articles 104 to 109.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from bellcrank.arguments import checked_methods
from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.mechanism.flexible.component_modes import refuse_parameter

__all__ = ["BeamElements", "BeamSection", "SectionPoint"]


# -- points of a beam's cross section at which stresses are computed, from the forces and moments of the section ---
#: 1 - 1/9 + 1/25 - 1/49 + ...
_CATALAN = 0.915965594177219


@checked_methods
@dataclass(frozen=True)
class SectionPoint:
    """A point of a cross section, whose axes y and z are the principal ones through its centroid."""

    name: str
    y: float  #: [m]
    z: float  #: [m]
    E: float  #: Young's modulus there [Pa]
    G: float  #: shear modulus there [Pa]
    twist: tuple[float, float] = (0.0, 0.0)  #: ty and tz [m]
    shear: tuple[float, float] = (0.0, 0.0)  #: sy and sz

    def towards(self, other: SectionPoint, part: float) -> SectionPoint:
        """Between this point and that of another section, every number linearly."""
        def between(a: float, b: float) -> float:
            return a if a == b else a + (b - a) * part

        y, z, E, G = (between(getattr(self, name), getattr(other, name)) for name in ("y", "z", "E", "G"))
        (ty, tz), (sy, sz) = (map(between, a, b) for a, b in ((self.twist, other.twist), (self.shear, other.shear)))
        return SectionPoint(self.name, y, z, E, G, (ty, tz), (sy, sz))


def round_points(outer: float, inner: float, E: float, G: float) -> tuple[SectionPoint, ...]:
    """Four points on the outside of a tube with these radii; shear stresses of bending by Jourawski's formula."""
    most = 4.0 / 3.0 * (outer**2 + outer * inner + inner**2) / (outer**2 + inner**2)
    return (SectionPoint("+y", outer, 0.0, E, G, (0.0, outer), (0.0, most)),
            SectionPoint("-y", -outer, 0.0, E, G, (0.0, -outer), (0.0, most)),
            SectionPoint("+z", 0.0, outer, E, G, (-outer, 0.0), (most, 0.0)),
            SectionPoint("-z", 0.0, -outer, E, G, (outer, 0.0), (most, 0.0)))


def rectangle_points(height: float, width: float, E: float, G: float) -> tuple[SectionPoint, ...]:
    """Corners, where bending is worst, and the middles of the sides, where shear is."""
    y, z = 0.5 * height, 0.5 * width
    across_y, across_z = _twisted(height, width), _twisted(width, height)
    return (SectionPoint("+y+z", y, z, E, G), SectionPoint("+y-z", y, -z, E, G), SectionPoint("-y+z", -y, z, E, G),
            SectionPoint("-y-z", -y, -z, E, G),
            SectionPoint("+y", y, 0.0, E, G, (0.0, across_y), (0.0, 1.5)),
            SectionPoint("-y", -y, 0.0, E, G, (0.0, -across_y), (0.0, 1.5)),
            SectionPoint("+z", 0.0, z, E, G, (-across_z, 0.0), (1.5, 0.0)),
            SectionPoint("-z", 0.0, -z, E, G, (across_z, 0.0), (1.5, 0.0)))


def _twisted(apart: float, along: float) -> float:
    """The shear of a unit twist in the middle of two sides of length `along` that lie `apart`, over the modulus."""
    odd = np.arange(1, 40, 2)
    if apart <= along:
        return float(apart * (1.0 - 8.0 / math.pi**2 * (1.0 / (odd**2 * np.cosh(np.minimum(
            odd * math.pi * along / (2.0 * apart), 700.0)))).sum()))
    signs = np.where(odd % 4 == 1, 1.0, -1.0)
    late = signs / odd**2 * (np.tanh(odd * math.pi * apart / (2.0 * along)) - 1.0)
    return float(along * 8.0 / math.pi**2 * (_CATALAN + late.sum()))


# -- beams of straight two-node elements in space ---------------------------------------------------
_AT, _WEIGHT = np.polynomial.legendre.leggauss(6)


@checked_methods
@dataclass(frozen=True)
class BeamSection:
    """Stiffnesses and masses of a beam's cross section, whose principal axes are y and z.

    `EIz` resists bending in the xy plane, `EIy` in the xz plane. A beam whose shear stiffnesses `GAy` and `GAz` (shear
    factor included) are infinite is thin (Euler-Bernoulli); `Jy` and `Jz` are the rotary inertias of bending, which are
    usually left out for thin beams.

    >>> BeamSection.round(0.006, E=2e11, rho=7870.0).EA
    5654866.776461627
    """

    EA: float  #: stretching [N]
    EIy: float  #: bending about y [N m^2]
    EIz: float  #: bending about z [N m^2]
    GJ: float  #: torsion [N m^2]
    mass: float  #: mass per length [kg/m]
    Jx: float = 0.0  #: rotational inertia about the axis per length [kg m]
    Jy: float = 0.0  #: the same about y
    Jz: float = 0.0  #: the same about z
    GAy: float = math.inf  #: shear along y [N]
    GAz: float = math.inf  #: shear along z [N]
    points: tuple[SectionPoint, ...] = ()  #: where stresses are computed

    def __post_init__(self) -> None:
        for name in ("EA", "EIy", "EIz", "GJ", "mass", "Jx", "Jy", "Jz", "GAy", "GAz"):
            refuse_parameter(f"BeamSection: {name}", getattr(self, name))
        for name in ("EA", "EIy", "EIz", "GJ", "mass", "GAy", "GAz"):
            if not getattr(self, name) > 0.0:
                raise ModelError(f"BeamSection: {name} must be greater than 0, got {getattr(self, name)!r}")
        for name in ("Jx", "Jy", "Jz"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ModelError(f"BeamSection: {name} must be at least 0, got {getattr(self, name)!r}")
        for name in ("EA", "EIy", "EIz", "GJ", "mass"):
            if math.isinf(getattr(self, name)):
                raise ModelError(f"BeamSection: {name} is not finite; choose modes that do not use it instead")

    @staticmethod
    def round(diameter: float, *, E: float, rho: float, nu: float = 0.3, bore: float = 0.0, thick: bool = False
              ) -> BeamSection:
        """A rod, or a tube with a `bore`, of Young's modulus E, density rho and Poisson's ratio nu. A `thick` one
        shears and its sections turn with inertia (Timoshenko)."""
        refuse_parameter("BeamSection.round: the diameter, bore, E, rho or nu", diameter, bore, E, rho, nu)
        if not 0.0 <= bore < diameter:
            raise ModelError(f"BeamSection.round: the bore {bore} must be at least 0 and less than the diameter "
                             f"{diameter}")
        area = math.pi / 4.0 * (diameter**2 - bore**2)
        bending = math.pi / 64.0 * (diameter**4 - bore**4)
        part = (bore / diameter) ** 2
        factor = 6.0 * (1.0 + nu) * (1.0 + part)**2 / ((7.0 + 6.0 * nu) * (1.0 + part)**2 + (20.0 + 12.0 * nu) * part)
        points = round_points(0.5 * diameter, 0.5 * bore, E, _shear_modulus(E, nu))
        return _solid(area, bending, bending, 2.0 * bending, factor, E, rho, nu, thick, points)

    @staticmethod
    def rectangle(height: float, width: float, *, E: float, rho: float, nu: float = 0.3, thick: bool = False
                  ) -> BeamSection:
        """A solid rectangle, `height` along y and `width` along z."""
        refuse_parameter("BeamSection.rectangle: the height, width, E, rho or nu", height, width, E, rho, nu)
        if not (height > 0.0 and width > 0.0):
            raise ModelError(f"BeamSection.rectangle: height {height} and width {width} must be greater than 0")
        short, long = sorted((height, width))
        odd = np.arange(1, 40, 2)
        series = float((np.tanh(odd * math.pi * long / (2.0 * short)) / odd**5.0).sum())
        torsion = long * short**3 / 3.0 * (1.0 - 192.0 * short / (math.pi**5 * long) * series)  # Saint-Venant
        return _solid(height * width, height * width**3 / 12.0, width * height**3 / 12.0, torsion,
                      10.0 * (1.0 + nu) / (12.0 + 11.0 * nu), E, rho, nu, thick,
                      rectangle_points(height, width, E, _shear_modulus(E, nu)))


def _solid(area: float, about_y: float, about_z: float, torsion: float, factor: float, E: float, rho: float, nu: float,
           thick: bool, points: tuple[SectionPoint, ...]) -> BeamSection:
    G = _shear_modulus(E, nu)
    shear = factor * G * area if thick else math.inf
    rotary = rho if thick else 0.0
    return BeamSection(E * area, E * about_y, E * about_z, G * torsion, rho * area, rho * (about_y + about_z),
                       rotary * about_y, rotary * about_z, shear, shear, points)


def _shear_modulus(E: float, nu: float) -> float:
    if not -1.0 < nu <= 0.5:
        raise ModelError(f"BeamSection: Poisson's ratio nu must be greater than -1 and at most 0.5, got {nu}")
    return E / (2.0 * (1.0 + nu))


@dataclass(frozen=True, eq=False)
class BeamElements:
    """A straight beam along x from the origin, of elements of equal length; `section` at a part 0..1 of the length."""

    length: float
    elements: int
    section: Callable[[float], BeamSection]

    @property
    def nodes(self) -> Floats:
        """Positions of the nodes, (elements + 1, 3)."""
        x = np.arange(self.elements + 1) * (self.length / self.elements)
        return np.stack([x, np.zeros_like(x), np.zeros_like(x)], axis=-1)

    def stiffness(self) -> Floats:
        """The assembled stiffness matrix, 6 degrees of freedom a node."""
        return self._assembled(lambda k: _stiffness(self._step, self._sections(k)))

    def mass(self) -> Floats:
        """The consistent mass matrix: that of the interpolation the stiffness has."""
        return self._assembled(lambda k: _mass(self._step, self._sections(k)))

    def lumped_mass(self) -> Floats:
        """Masses at nodes, a diagonal matrix: half of every element at each of its ends, as a rod that turns with it.

        The rotational inertia about y and z is mass l^3/24 at each end.
        """
        def halves(k: int) -> Floats:
            h, sections = self._step, self._sections(k)
            masses = [sum(getattr(s, what) * w / 2.0 for s, w in zip(sections, _WEIGHT, strict=True)) * h / 2.0
                      for what in ("mass", "Jx", "Jy", "Jz")]
            m, jx, jy, jz = masses
            return np.diag([m, m, m, jx, m * h * h / 12.0 + jy, m * h * h / 12.0 + jz] * 2)

        return self._assembled(halves)

    def section_forces(self, modes: Floats) -> Floats:
        """What modes, (elements + 1, 6, k), cause in the sections at the nodes: N, Vy, Vz, T, My, Mz, the force and the
        moment on the part before the section, (elements + 1, 6, k).

        From the forces at the ends of the elements, which are those of the weak form; inside a beam the mean of the two
        elements at a node.
        """
        total, count = np.zeros(modes.shape), np.zeros((self.elements + 1, 1, 1))
        for k in range(self.elements):
            ends = _stiffness(self._step, self._sections(k)) @ np.concatenate([modes[k], modes[k + 1]])
            total[k] -= ends[:6]
            total[k + 1] += ends[6:]
            count[k:k + 2] += 1.0
        return total / count

    def samples(self, modes: Floats) -> tuple[Floats, Floats, Floats]:
        """The continuum at its Gauss points: positions (n, 3), modes there (n, 6, k), and the diagonal of the masses,
        (6 n); `modes` are those of the nodes, (elements + 1, 6, k)."""
        h = self._step
        points, shapes, masses = [], [], []
        for k in range(self.elements):
            ends = np.concatenate([modes[k], modes[k + 1]])  # (12, modes)
            for at, weight, s in zip(_AT, _WEIGHT, self._sections(k), strict=True):
                xi = 0.5 * (1.0 + at)
                points.append(((k + xi) * h, 0.0, 0.0))
                shapes.append(_interpolation(xi, h, s) @ ends)
                m = np.array([s.mass, s.mass, s.mass, s.Jx, s.Jy, s.Jz])
                masses.append(m * (0.5 * h * weight))
        return np.array(points), np.array(shapes), np.concatenate(masses)

    def shortening(self, modes: Floats, products: Sequence[tuple[int, int]]) -> tuple[Floats, Floats]:
        """Displacements along x of products of modal coordinates (see `modal_kinetics`), at the nodes,
        (n, 6, products), and at the points of `samples`, (points, 6, products)."""
        at_nodes = np.zeros((self.elements + 1, 6, len(products)))
        inside = np.zeros((6 * self.elements, 6, len(products)))
        for k in range(self.elements):
            ends = np.concatenate([modes[k], modes[k + 1]])
            start = at_nodes[k, 0]
            at_nodes[k + 1, 0] = start + self._shortened(k, ends, 1.0, products)
            for j, at in enumerate(_AT):
                inside[6 * k + j, 0] = start + self._shortened(k, ends, 0.5 * (1.0 + float(at)), products)
        return at_nodes, inside

    def _shortened(self, k: int, ends: Floats, part: float, products: Sequence[tuple[int, int]]) -> Floats:
        """The integral over the first part of an element."""
        h, total = self._step, np.zeros((ends.shape[1],) * 2)
        s = self.section((k + 0.5) / self.elements)
        for at, weight in zip(_AT, _WEIGHT, strict=True):
            xi = 0.5 * part * (1.0 + at)
            for entries, turn, bending, shear in ((_XY, np.ones(4), s.EIz, s.GAy), (_XZ, _TURN, s.EIy, s.GAz)):
                slope = (_deflection(xi, h, _shear(h, bending, shear))[1] * turn) @ ends[entries]
                total += 0.5 * part * h * weight * np.outer(slope, slope)
        return np.array([-(0.5 if a == b else 1.0) * total[a, b] for a, b in products])

    @property
    def _step(self) -> float:
        return self.length / self.elements

    def _sections(self, k: int) -> list[BeamSection]:
        """The sections at the Gauss points of an element."""
        return [self.section((k + 0.5 * (1.0 + float(at))) / self.elements) for at in _AT]

    def _assembled(self, element: Callable[[int], Floats]) -> Floats:
        out = np.zeros((6 * (self.elements + 1),) * 2)
        for k in range(self.elements):
            at = slice(6 * k, 6 * k + 12)
            out[at, at] += element(k)
        return out


def _shear(h: float, bending: float, shear: float) -> float:
    """Phi, the share of shear in the deflection of an element."""
    return 12.0 * bending / (shear * h * h)


def _deflection(xi: float, h: float, phi: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Deflection and rotation (of the section, towards the slope) for (u1, r1, u2, r2), and their derivatives by x."""
    f = 1.0 / (1.0 + phi)
    a, b, c = xi, xi * xi, xi**3
    u = np.array([1.0 - 3 * b + 2 * c + phi * (1.0 - a), h * (a - 2 * b + c + 0.5 * phi * (a - b)),
                  3 * b - 2 * c + phi * a, h * (c - b - 0.5 * phi * (a - b))]) * f
    du = np.array([-6 * a + 6 * b - phi, h * (1.0 - 4 * a + 3 * b + 0.5 * phi * (1.0 - 2 * a)),
                   6 * a - 6 * b + phi, h * (3 * b - 2 * a - 0.5 * phi * (1.0 - 2 * a))]) * (f / h)
    r = np.array([6 * (b - a) / h, 1.0 - 4 * a + 3 * b + phi * (1.0 - a), 6 * (a - b) / h,
                  3 * b - 2 * a + phi * a]) * f
    dr = np.array([6 * (2 * a - 1.0) / h, 6 * a - 4.0 - phi, 6 * (1.0 - 2 * a) / h, 6 * a - 2.0 + phi]) * (f / h)
    return u, du, r, dr


#: entries of an element's 12 that bend it in the xy and the xz plane, and the sign of the rotations
_XY, _XZ = [1, 5, 7, 11], [2, 4, 8, 10]
_TURN = np.array([1.0, -1.0, 1.0, -1.0])


def _interpolation(xi: float, h: float, s: BeamSection) -> Floats:
    """Displacement and rotation at a part xi of an element, from those of its ends: (6, 12)."""
    out = np.zeros((6, 12))
    for row, first in ((0, 0), (3, 3)):
        out[row, first], out[row, first + 6] = 1.0 - xi, xi
    u, _, r, _ = _deflection(xi, h, _shear(h, s.EIz, s.GAy))
    out[1, _XY], out[5, _XY] = u, r
    u, _, r, _ = _deflection(xi, h, _shear(h, s.EIy, s.GAz))
    out[2, _XZ], out[4, _XZ] = u * _TURN, -(r * _TURN)
    return out


def _mass(h: float, sections: list[BeamSection]) -> Floats:
    out = np.zeros((12, 12))
    for at, weight, s in zip(_AT, _WEIGHT, sections, strict=True):
        shape = _interpolation(0.5 * (1.0 + at), h, s)
        m = np.array([s.mass, s.mass, s.mass, s.Jx, s.Jy, s.Jz])
        out += shape.T @ (shape * (m * (0.5 * h * weight))[:, None])
    return out


def _stiffness(h: float, sections: list[BeamSection]) -> Floats:
    out = np.zeros((12, 12))
    for at, weight, s in zip(_AT, _WEIGHT, sections, strict=True):
        xi, w = 0.5 * (1.0 + at), 0.5 * h * weight
        for first, k in ((0, s.EA), (3, s.GJ)):
            pair = np.ix_([first, first + 6], [first, first + 6])
            out[pair] += np.array([[1.0, -1.0], [-1.0, 1.0]]) * (k * w / (h * h))
        for entries, turn, bending, shear in ((_XY, np.ones(4), s.EIz, s.GAy), (_XZ, _TURN, s.EIy, s.GAz)):
            _, du, r, dr = _deflection(xi, h, _shear(h, bending, shear))
            dr, slip = dr * turn, (du - r) * turn
            out[np.ix_(entries, entries)] += w * bending * np.outer(dr, dr)
            if not math.isinf(shear):
                out[np.ix_(entries, entries)] += w * shear * np.outer(slip, slip)
    return out


def tapered(first: BeamSection, last: BeamSection) -> Callable[[float], BeamSection]:
    """Between two sections, every number linearly; points of sections that both have, by their names."""
    numbers = {f.name: (getattr(first, f.name), getattr(last, f.name)) for f in fields(first) if f.name != "points"}
    ends = {p.name: p for p in last.points}
    pairs = [(p, ends[p.name]) for p in first.points if p.name in ends]

    def at(part: float) -> BeamSection:
        return BeamSection(**{name: a if a == b else a + (b - a) * part for name, (a, b) in numbers.items()},
                           points=tuple(a.towards(b, part) for a, b in pairs))

    return at
