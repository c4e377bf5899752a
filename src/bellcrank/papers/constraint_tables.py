"""Kang & Yoon, Tables 1-4: the basic constraints d1, d2, s, ss, evaluated as printed and checked.

    d1  a_i . a_j = 0                   two directions stay perpendicular
    d2  a_i . (p_j - p_i) = 0           a point stays in a plane
    s   p_j - p_i = 0                   two points stay together
    ss  |p_j - p_i|^2 = L^2             two points keep their distance

Each satisfies  d2Phi/dt2 = Phi_Zi dY_i + Phi_Zj dY_j - gamma  (37), with Y = [velocity of the reference point; angular
velocity]: the centroid in Tables 1 and 2, the instant global origin in Tables 3 and 4. The left side is differentiated
here by the kinematics of rigid bodies alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.compiled.compile import compile
from bellcrank.compiled.system import System
from bellcrank.mechanism.constraints import Angle, Distance, PointOnPlane
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free, Universal
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose
from bellcrank.papers.item import Agreement, ItemResult, PaperPlot, PlotLine, table_of
from bellcrank.system.state import State

__all__ = ["tables_1_to_4"]

NAMES = ("d1", "d2", "s", "ss")


class Sample(NamedTuple):
    """A quantity of a moving body with its first and second derivative."""

    value: Floats
    rate: Floats
    second: Floats


@dataclass(frozen=True)
class MovingBody:
    """A body at an instant, with a direction and a point that belong to it; global axes."""

    centroid: Floats
    velocity: Floats  #: of the centroid
    acceleration: Floats
    omega: Floats
    alpha: Floats
    direction: Floats
    point: Floats  #: where it is

    def carried(self, arm: Floats) -> Sample:
        """A vector fixed in the body."""
        rate = np.cross(self.omega, arm)
        return Sample(arm, rate, np.cross(self.alpha, arm) + np.cross(self.omega, rate))

    @property
    def a(self) -> Sample:
        """The direction."""
        return self.carried(self.direction)

    @property
    def p(self) -> Sample:
        """The point."""
        s = self.carried(self.point - self.centroid)
        return Sample(self.point, self.velocity + s.rate, self.acceleration + s.second)

    def state_rate(self, origin: bool) -> Floats:
        """dY/dt: (26) at the centroid, (34) at the instant global origin."""
        if not origin:
            return np.concatenate([self.acceleration, self.alpha])
        # d/dt of the velocity of the body's point at the origin, r0' = r' - omega x r (31)
        rate = self.acceleration - np.cross(self.alpha, self.centroid) - np.cross(self.omega, self.velocity)
        return np.concatenate([rate, self.alpha])


def tilde(x: Floats) -> Floats:
    """The matrix of the cross product."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def second_derivative(name: str, i: MovingBody, j: MovingBody) -> Floats:
    """d2Phi/dt2 by differentiating the constraint itself."""
    apart = Sample(*(y - x for x, y in zip(i.p, j.p, strict=True)))
    if name == "s":
        return apart.second
    first, second = {"d1": (i.a, j.a), "d2": (i.a, apart), "ss": (apart, apart)}[name]
    return np.array([first.second @ second.value + 2.0 * first.rate @ second.rate + first.value @ second.second])


def jacobians(name: str, i: MovingBody, j: MovingBody, origin: bool) -> tuple[Floats, Floats]:
    """Table 1, or with `origin` Table 3: the same with p in place of s; rows [velocity, angular velocity]."""
    s_i, s_j = (b.point if origin else b.point - b.centroid for b in (i, j))
    apart, none = j.point - i.point, np.zeros((1, 3))
    a_i, a_j = i.direction, j.direction
    match name:
        case "d1":
            parts = (none, -a_j @ tilde(a_i)), (none, -a_i @ tilde(a_j))
        case "d2":
            parts = (-a_i, a_i @ tilde(s_i) - apart @ tilde(a_i)), (a_i, -a_i @ tilde(s_j))
        case "s":
            parts = (-np.eye(3), tilde(s_i)), (np.eye(3), -tilde(s_j))
        case _:
            parts = (-2.0 * apart, 2.0 * apart @ tilde(s_i)), (2.0 * apart, -2.0 * apart @ tilde(s_j))
    first, second = (np.hstack([np.atleast_2d(x) for x in pair]) for pair in parts)
    return first, second


def right_side(name: str, i: MovingBody, j: MovingBody, origin: bool, printed: bool = False) -> Floats:
    """Table 2, or with `origin` Table 4, corrected: the sign of the i term of gamma^s, which is printed with a minus,
    and in Table 4 the full velocities of the points in place of omega x p."""
    def turned(b: MovingBody) -> Floats:
        return np.cross(b.omega, b.p.rate if origin else np.cross(b.omega, b.point - b.centroid))

    apart = Sample(*(y - x for x, y in zip(i.p, j.p, strict=True)))
    pull = turned(j) - turned(i)
    a_i, a_j = i.a, j.a

    def twice(b: MovingBody, x: Floats) -> Floats:
        return np.cross(b.omega, np.cross(b.omega, x))

    match name:
        case "d1":
            found = -a_j.value @ twice(i, a_i.value) - 2.0 * a_j.rate @ a_i.rate - a_i.value @ twice(j, a_j.value)
        case "d2":
            found = -apart.value @ twice(i, a_i.value) - 2.0 * apart.rate @ a_i.rate - a_i.value @ pull
        case "s":
            return -turned(j) - turned(i) if printed else -pull
        case _:
            found = -2.0 * apart.value @ pull - 2.0 * apart.rate @ apart.rate
    return np.array([found])


def residual(name: str, i: MovingBody, j: MovingBody, origin: bool, printed: bool = False) -> float:
    """How far (37) is from the second derivative."""
    first, second = jacobians(name, i, j, origin)
    left = first @ i.state_rate(origin) + second @ j.state_rate(origin) - right_side(name, i, j, origin, printed)
    return float(np.abs(left - second_derivative(name, i, j)).max())


def violation(name: str, i: MovingBody, j: MovingBody, origin: bool) -> float:
    """Phi_Z dY - gamma: zero in a motion that keeps the constraint."""
    first, second = jacobians(name, i, j, origin)
    return float(np.abs(first @ i.state_rate(origin) + second @ j.state_rate(origin)
                        - right_side(name, i, j, origin)).max())


# -- two bodies -------------------------------------------------------------------------------------------------------
def random_body(rng: np.random.Generator) -> MovingBody:
    return MovingBody(*rng.normal(size=(7, 3)))


#: where the constraint acts on the two bodies
ON_I, ON_J = np.array([0.2, 0.1, -0.3]), np.array([-0.1, 0.4, 0.2])


def _machine(name: str) -> Mechanism:
    """Two free bodies and one constraint of a kind between them, closed at q = 0; s is part of a universal joint."""
    m = Mechanism(f"two bodies, {name}", gravity=(0.3, -0.5, -9.81))
    first = Pose.rpy((0.4, -0.3, 0.6), 0.7, -0.4, 1.1)
    turn = first.rotation @ Pose.about("x", 0.8).rotation @ Pose.about("y", -0.5).rotation  # x of i, y of j stay normal
    apart = {"d2": np.array([0.0, 0.3, -0.5]), "ss": np.array([0.48, 0.64, 0.0])}.get(name, np.zeros(3))
    place = np.asarray(first.position) + first.rotation @ (ON_I + apart) - turn @ ON_J
    for k, (body, pose) in enumerate((("i", first), ("j", Pose(place.tolist(), turn)))):
        m.add_body(body, Inertia(1.0 + k, (0.1, -0.2 * k, 0.3), (0.2, 0.3, 0.25)))
        m.add_joint(body, Free(), m.ground, body, pose)
    here, there = Pose(ON_I.tolist()), Pose(ON_J.tolist())
    if name == "s":
        m.add_joint("end", Universal("x", "y"), "i", "j", here, there)
    else:
        kinds = {"d1": Angle(np.pi / 2, "x", "y"), "d2": PointOnPlane("x"), "ss": Distance(0.8)}
        m.add_constraint("end", kinds[name], "i", "j", here, there)
    return m


def _moving(system: System, state: State, body: str, point: Floats, direction: Floats) -> MovingBody:
    udot = system.forward_dynamics(state.q, state.u)
    pose = system.pose(state.q, body)
    com = np.asarray(system.model.mechanism.body(body).inertia.com, dtype=float)
    velocity = system.velocity(state.q, state.u, body, com)
    acceleration = system.acceleration(state.q, state.u, udot, body, com)
    turn = np.asarray(pose.rotation)
    place = np.asarray(pose.position, dtype=float)
    return MovingBody(place + turn @ com, velocity[3:], acceleration[3:], velocity[:3], acceleration[:3],
                      turn @ direction, place + turn @ point)


def library_violation(name: str, rng: np.random.Generator) -> tuple[float, float]:
    """What the accelerations that the library computes leave of (37), with Tables 1, 2 and 3, 4."""
    system = compile(_machine(name), backend="numpy", cut=["end"] if name == "s" else ())
    state = system.assemble(u=rng.normal(size=system.nu))
    i = _moving(system, state, "i", ON_I, np.array([1.0, 0.0, 0.0]))
    j = _moving(system, state, "j", ON_J, np.array([0.0, 1.0, 0.0]))
    scale = 1.0 + max(float(np.abs(b.state_rate(True)).max()) for b in (i, j))
    return violation(name, i, j, False) / scale, violation(name, i, j, True) / scale


def tables_1_to_4(short: bool) -> ItemResult:
    """All four constraints at random states."""
    rng = np.random.default_rng(4)
    rows, agreements = [], []
    for name in NAMES:
        pairs = [(random_body(rng), random_body(rng)) for _ in range(3 if short else 50)]
        worst = [max(residual(name, i, j, *how) for i, j in pairs) for how in ((False,), (True,), (False, True))]
        library = library_violation(name, rng)
        rows.append((name, *worst, *library))
        for label, found in (("Tables 1, 2", worst[0]), ("Tables 3, 4", worst[1]), ("library, Tables 1, 2", library[0]),
                             ("library, Tables 3, 4", library[1])):
            agreements.append(Agreement(f"{name}: {label}, residual", found, 0.0, "formula", 1e-11))
    table = table_of(["constraint", "Tables 1, 2", "Tables 3, 4", "Table 2 as printed", "library, Tables 1, 2",
                      "library, Tables 3, 4"], *zip(*rows, strict=True))
    agreements.append(Agreement("s: Table 2 as printed, residual", table.column("Table 2 as printed")[2], 0.0,
                                "printed", float("inf"), "the term of body i is printed with a minus; it needs a plus "
                                "(an erratum)"))
    x = np.arange(4.0)
    floor = 1e-17
    plot = PaperPlot("constraint (0 d1, 1 d2, 2 s, 3 ss)", "residual of (37)", tuple(
        PlotLine(label, x, np.maximum(np.array(table.column(label)), floor), style) for label, style in (
            ("Tables 1, 2", "o"), ("Tables 3, 4", "s"), ("Table 2 as printed", "x"), ("library, Tables 3, 4", "^"))),
        log_y=True)
    return ItemResult(table, plot, tuple(agreements), (
        "Largest residual of (37) over random motions of two bodies. In the library these rows are: ss a `Distance`, "
        "d2 a `PointOnPlane`, s a `Spherical` joint that closes a loop, d1 an `Angle`; their numbers may be laws of "
        "time. Its accelerations are put into the tables: they satisfy them.",))
