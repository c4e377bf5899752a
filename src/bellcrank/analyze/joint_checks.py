"""Whether the methods of a joint type agree with each other: for those who write their own.

`transforms` says how the joint moves; everything else follows from it and is compared with differences of it, at random
coordinates. Canonical axes throughout, as in the methods themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.arrays import Floats, random_source
from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import Side
from bellcrank.mechanism.joints.derived_joints import Place, place_of, side_at, six, turned
from bellcrank.mechanism.joints.joint import Joint
from bellcrank.mechanism.joints.quaternion_joints import Free
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Scalar
from bellcrank.spatial import Vector

__all__ = ["check_joint"]

#: step of central differences, what they and plain arithmetic may be off by, and how many positions are tried
_STEP, _ROUGH, _EXACT, _TIMES = 1e-5, 1e-6, 1e-9, 5


def check_joint(joint: Joint, seed: int = 0) -> None:
    """Check a joint type of your own; raises a `ModelError` that names the method that is wrong, and where.

    At random coordinates near its neutral ones: `subspace`, `drift`, `rates` against differences of `transforms`;
    `integrate`, `difference`, `normalize`, `measure` and `reversed` against each other; where it can close loops,
    `closure_rows`, `loop_columns` and `loop_coordinates`; and that all of it works on traced scalars, too. It takes a
    fraction of a second.

    >>> import bellcrank as bc
    >>> bc.check_joint(bc.Screw("x", pitch=0.1))
    """
    if not isinstance(joint, Joint):
        raise ModelError(f"check_joint: needs a joint, such as Revolute('z'), got {joint!r}")
    check = _Check(joint, random_source(seed))
    check.shapes()
    for _ in range(_TIMES):
        q = check.position()
        check.neutral_and_frame(q)
        check.subspace(q)
        check.drift(q)
        check.configuration(q)
        check.reversed(q)
        check.closing(q)
    check.traced(check.position())


class _Check:
    def __init__(self, joint: Joint, rng: np.random.Generator) -> None:
        self.joint, self.rng = joint, rng
        own = self.call("constants")
        if any(isinstance(x, Scalar) for x in own):
            raise ModelError(f"check_joint {joint!r}: check it with numbers in place of parameters")
        self.k = [float(x) for x in own]
        if joint.has_free_frame and len(self.k) >= 2:  # as a compiled machine may choose them
            self.k[:2] = rng.uniform(-1.0, 1.0, 2).tolist()

    # -- saying what is wrong -------------------------------------------------------------------
    def wrong(self, method: str, why: str, q: Floats | None = None) -> ModelError:
        where = "" if q is None else f" (at q = {np.round(q, 4).tolist()})"
        return ModelError(f"check_joint {self.joint!r}: {method}: {why}{where}")

    def call(self, method: str, *args: Any) -> Any:
        try:
            return getattr(self.joint, method)(*args)
        except Exception as error:
            if isinstance(error, ModelError) and method in ("loop_columns", "loop_coordinates"):
                raise
            raise self.wrong(method, f"it raises {type(error).__name__}: {error}") from error

    def equal(self, method: str, what: str, got: Any, wanted: Any, q: Floats, limit: float) -> None:
        a, b = np.asarray(got, dtype=float), np.asarray(wanted, dtype=float)
        if a.shape != b.shape or not np.abs(a - b).max(initial=0.0) <= limit * (1.0 + np.abs(b).max(initial=0.0)):
            raise self.wrong(method, f"{what}: got {np.round(a, 6).tolist()}, expected {np.round(b, 6).tolist()}", q)

    # -- its methods on numbers -----------------------------------------------------------------
    def position(self) -> Floats:
        near = np.asarray(self.joint.neutral(), dtype=float) + self.rng.uniform(-0.8, 0.8, self.joint.nq)
        return np.asarray(self.call("normalize", near), dtype=float)

    def pose(self, q: Floats, k: Sequence[float] | None = None, joint: Joint | None = None) -> Place:
        return place_of(joint or self.joint, q, self.k if k is None else k)

    def columns(self, q: Floats) -> Floats:
        """(6, nu), child axes."""
        found = self.call("subspace", _plain(q), self.k)
        if len(found) != self.joint.nu:
            raise self.wrong("subspace", f"needs {self.joint.nu} columns, one for every speed, got {len(found)}", q)
        return np.array([six(c) for c in found]).reshape(self.joint.nu, 6).T

    def rates(self, q: Floats, u: Floats) -> Floats:
        return np.array(self.call("rates", _plain(q), _plain(u)), dtype=float)

    def moved(self, q: Floats, u: Floats, time: float) -> Floats:
        return np.asarray(self.call("integrate", q, u * time), dtype=float)

    # -- checks ---------------------------------------------------------------------------------
    def shapes(self) -> None:
        """Sizes and names."""
        joint = self.joint
        for label, names, n in (("speed_names", joint.speed_names, joint.nu),
                                ("coordinate_names", self.call("coordinate_names"), joint.nq),
                                ("neutral", self.call("neutral"), joint.nq)):
            if len(names) != n:
                raise self.wrong(label, f"needs {n} entries, got {len(names)}")
        if joint.condition_names and len(joint.condition_names) != 6 - joint.nu:
            raise self.wrong("condition_names", f"needs {6 - joint.nu} entries, got {len(joint.condition_names)}")
        align = np.asarray(self.call("alignment"), dtype=float)
        if align.shape != (3, 3) or not np.abs(align.T @ align - np.eye(3)).max() < _EXACT \
                or np.linalg.det(align) < 0.0:
            raise self.wrong("alignment", "it must be a rotation matrix, shape (3, 3)")
        hash(self.call("kind"))

    def neutral_and_frame(self, q: Floats) -> None:
        """The neutral position, and what the two constants of a free frame do."""
        self.call("transforms", _plain(q), self.k)
        place = self.pose(q)
        if np.abs(place.turn.T @ place.turn - np.eye(3)).max() > _EXACT:
            raise self.wrong("transforms", "the rotation is no rotation matrix", q)
        plain = [float(x) for x in self.joint.constants()]
        here = self.pose(np.asarray(self.joint.neutral(), dtype=float), plain)
        if not isinstance(self.joint, Free) and here.off(Place(np.eye(3), np.zeros(3))) > _EXACT:
            raise self.wrong("neutral", "parent and child do not coincide there")
        if self.joint.has_free_frame:
            if len(plain) < 2:
                raise self.wrong("constants", "a joint whose has_free_frame is True begins with a turn and a slide")
            c, s = np.cos(self.k[0]), np.sin(self.k[0])
            screw = Place(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), np.array([0.0, 0.0, self.k[1]]))
            if place.off(screw @ self.pose(q, plain)) > _EXACT:
                raise self.wrong("transforms", "k[0] must turn and k[1] shift the child about z (or set has_free_frame "
                                 "= False)", q)

    def subspace(self, q: Floats) -> None:
        """Columns, rates and integrate against differences of the pose."""
        columns = self.columns(q)
        for i, unit in enumerate(np.eye(self.joint.nu)):
            slope = self.rates(q, unit)
            if slope.shape != (self.joint.nq,):
                raise self.wrong("rates", f"needs {self.joint.nq} entries, got {slope.size}", q)
            by_rates = self.velocity(q + slope * -_STEP, q + slope * _STEP, q)
            by_steps = self.velocity(self.moved(q, unit, -_STEP), self.moved(q, unit, _STEP), q)
            good = [bool(np.abs(v - columns[:, i]).max() < _ROUGH * (1.0 + np.abs(v).max()))
                    for v in (by_rates, by_steps)]
            if good == [True, True]:
                continue
            name = self.joint.speed_names[i]
            method = {(False, True): "rates", (True, False): "integrate"}.get((good[0], good[1]), "subspace")
            got, wanted = (columns[:, i], by_rates) if method == "subspace" else (
                by_rates if method == "rates" else by_steps, columns[:, i])
            self.equal(method, f"velocity [angular; linear] per speed {name!r} in child axes", got, wanted, q, _ROUGH)
        u = self.rng.normal(size=self.joint.nu)
        self.equal("qdot", "rates of the coordinates", self.call("qdot", q, u), self.rates(q, u), q, _EXACT)

    def velocity(self, before: Floats, after: Floats, q: Floats) -> Floats:
        """[angular; linear] of the child from coordinates just before q to just after, child axes."""
        a, b = self.pose(before), self.pose(after)
        back = self.pose(q).turn.T
        turn = back @ (b.turn - a.turn) / (2 * _STEP)
        return np.concatenate([_axial(turn), back @ (b.shift - a.shift) / (2 * _STEP)])

    def acceleration(self, q: Floats, u: Floats) -> Floats:
        """[angular; linear] of the child at constant speeds, as seen from the parent, in child axes."""
        def world(t: float) -> Floats:
            there = self.moved(q, u, t)
            turn = self.pose(there).turn
            motion = self.columns(there) @ u
            return np.concatenate([turn @ motion[:3], turn @ motion[3:]])

        rate = (world(_STEP) - world(-_STEP)) / (2 * _STEP)
        back = self.pose(q).turn.T
        return np.concatenate([back @ rate[:3], back @ rate[3:]])

    def drift(self, q: Floats) -> None:
        """Accelerations at constant speeds."""
        u = self.rng.normal(size=self.joint.nu)
        said = f"acceleration [angular; linear] at constant speeds {np.round(u, 4).tolist()}, in child axes"
        self.equal("drift", said,
                   six(self.call("drift", _plain(q), _plain(u), self.k)), self.acceleration(q, u), q, _ROUGH)

    def configuration(self, q: Floats) -> None:
        """Integrating, differences, valid coordinates, and measuring."""
        joint, n = self.joint, self.joint.nu
        du = self.rng.uniform(-0.4, 0.4, n)
        there = self.moved(q, du, 1.0)
        if self.pose(self.moved(self.moved(q, du, 0.5), du, 0.5)).off(self.pose(there)) > _EXACT:
            raise self.wrong("integrate", "two halves of a motion at constant speeds are not the whole", q)
        self.equal("difference", "speeds that lead to integrate(q, du)", self.call("difference", q, there), du, q,
                   _EXACT)
        loose = q * self.rng.uniform(0.5, 2.0) if joint.nq != n else q
        valid = np.asarray(self.call("normalize", loose), dtype=float)
        self.equal("normalize", "nearest valid coordinates", self.call("normalize", valid), valid, q, _EXACT)
        self.equal("normalized", "what normalize gives", self.call("normalized", list(loose)), valid, q, _EXACT)
        place = self.pose(q, [float(x) for x in joint.constants()])
        found = np.asarray(self.call("measure", place.turn, place.shift), dtype=float)
        if found.shape != (joint.nq,) or self.pose(found, joint.constants()).off(place) > _EXACT:
            raise self.wrong("measure", f"the coordinates {np.round(found, 6).tolist()} that it finds are of another "
                             "pose", q)
        some = np.stack([q, there])
        steps = np.stack([du, -du])
        for method, args in (("integrate", (some, steps)), ("difference", (some, some[::-1])), ("normalize", (some,)),
                             ("measure", (np.stack([place.turn] * 2), np.stack([place.shift] * 2)))):
            single = [self.call(method, *(a[i] for a in args)) for i in range(2)]
            self.equal(method, "on arrays with leading axes", self.call(method, *args), single, q, _EXACT)

    def reversed(self, q: Floats) -> None:
        """The joint seen from its child, in the axes of the joint's frame."""
        other = self.call("reversed")
        places = []
        for joint in (self.joint, other):
            align = Place(np.asarray(joint.alignment(), dtype=float), np.zeros(3))
            places.append(align @ self.pose(q, [float(x) for x in joint.constants()], joint) @ align.inverse())
        if places[0].inverse().off(places[1]) > _EXACT:
            raise self.wrong("reversed", "it must move inversely for the same q", q)

    # -- closing loops --------------------------------------------------------------------------
    def closing(self, q: Floats) -> None:
        """Constraints between two moving bodies that the joint connects."""
        plain = [float(x) for x in self.joint.constants()]
        saved, self.k = self.k, plain
        try:
            bodies = _Bodies(self, q)
            rows = self.call("closure_rows", *bodies.sides(), plain)
            if len(rows) != 6 - self.joint.nu:
                raise self.wrong("closure_rows", f"needs {6 - self.joint.nu} constraints, got {len(rows)}", q)
            slopes = self.slopes(bodies)
            for i, row in enumerate(rows):
                self.condition(bodies, i, row, slopes[..., i], q)
            second = np.array([six(r.second) for r in rows]).reshape(len(rows), 6)
            if len(rows) and np.linalg.svd(second, compute_uv=False)[-1] < _ROUGH:
                raise self.wrong("closure_rows", "its constraints depend on each other", q)
            self.coordinates(bodies, q)
        finally:
            self.k = saved

    def slopes(self, bodies: _Bodies) -> Floats:
        """Differences of the constraints for motions of the two bodies, (bodies, 6, constraints)."""
        def values(body: int, motion: Floats) -> Floats:
            return np.array([float(r.value) for r in self.call("closure_rows", *bodies.pushed(body, motion), self.k)])

        return np.array([[(values(b, unit * _STEP) - values(b, unit * -_STEP)) / (2 * _STEP) for unit in np.eye(6)]
                         for b in range(2)])

    def condition(self, bodies: _Bodies, i: int, row: Any, slopes: Floats, q: Floats) -> None:
        names = self.joint.condition_names
        label = f"constraint {i}" + (f" ({names[i]})" if names else "")
        if abs(float(row.value)) > _EXACT:
            raise self.wrong("closure_rows", f"{label} is off by {float(row.value):.3g} in a pose that the joint "
                             "allows", q)
        first, second = six(row.first), six(row.second)
        for body, force, slope in zip(("parent", "child"), (first, second), slopes, strict=True):
            self.equal("closure_rows", f"{label}: row on the motion of the {body}", force, slope, q, _ROUGH)
        self.equal("closure_rows", f"{label}: gamma", float(row.gamma),
                   first @ bodies.accelerations[0] + second @ bodies.accelerations[1], q, _ROUGH)

    def coordinates(self, bodies: _Bodies, q: Floats) -> None:
        """Its own coordinates and forces where it closes a loop, if it has any."""
        sides = bodies.sides()
        try:
            found = np.array(self.call("loop_coordinates", *sides, self.k), dtype=float)
            columns = [six(c) for c in self.call("loop_columns", *sides, self.k)]
        except ModelError as error:
            if "has no single coordinates" in str(error):
                return
            raise
        if found.shape != (self.joint.nq,) or self.pose(found).off(self.pose(q)) > _EXACT:
            raise self.wrong("loop_coordinates", f"got {np.round(found, 6).tolist()}, which is another pose", q)
        turn = bodies.places[0].turn @ self.pose(q).turn
        motions = np.concatenate([turn @ self.columns(q)[:3], turn @ self.columns(q)[3:]])
        self.equal("loop_columns", "power of unit forces at unit speeds", np.array(columns).reshape(-1, 6) @ motions,
                   np.eye(self.joint.nu), q, _ROUGH)

    # -- traced scalars -------------------------------------------------------------------------
    def traced(self, q: Floats) -> None:
        """What is compiled must work on traced scalars, and give the same there."""
        joint, graph = self.joint, Graph()
        u = self.rng.normal(size=joint.nu)
        x = [graph.leaf(("q", i)) for i in range(joint.nq)]
        v = [graph.leaf(("u", i)) for i in range(joint.nu)]
        numbers = {"q": q, "u": u}
        for method, given, plain in (
                ("transforms", (x, self.k), (_plain(q), self.k)), ("subspace", (x, self.k), (_plain(q), self.k)),
                ("drift", (x, v, self.k), (_plain(q), _plain(u), self.k)), ("rates", (x, v), (_plain(q), _plain(u))),
                ("normalized", (x,), (_plain(q),))):
            made = _entries(self.call(method, *given))
            found = evaluate(made, lambda key: float(numbers[key[0]][key[1]]))
            self.equal(method, "on traced scalars", found, _entries(self.call(method, *plain)), q, _EXACT)
        sides = [Side(*(Vector(*(graph.leaf((side, i, axis)) for axis in "xyz")) for i in range(7)))
                 for side in ("first", "second")]
        self.call("closure_rows", *sides, self.k)


class _Bodies:
    """Two bodies that move, and are connected by the joint at q."""

    def __init__(self, check: _Check, q: Floats) -> None:
        rng, n = check.rng, check.joint.nu
        first = Place(turned(rng.normal(size=3)), rng.normal(size=3))  # the parent's side of the joint
        self.places = (first, first @ check.pose(q))
        self.arms = rng.normal(size=(2, 3))  # from the bodies' origins to the joint, world axes
        w, alpha, v, a = rng.normal(size=(4, 3))  # of the parent, at the joint
        u, udot = rng.normal(size=n), rng.normal(size=n)
        turn, columns = self.places[1].turn, check.columns(q)
        drift = six(check.joint.drift(_plain(q), _plain(u), check.k))
        spin, slide = turn @ columns[:3] @ u, turn @ columns[3:] @ u
        r = self.places[1].shift - first.shift
        omega = w + spin
        alpha2 = alpha + np.cross(w, spin) + turn @ (columns[:3] @ udot + drift[:3])
        v2 = v + np.cross(w, r) + slide
        a2 = a + np.cross(alpha, r) + np.cross(w, np.cross(w, r)) + 2.0 * np.cross(w, slide) \
            + turn @ (columns[3:] @ udot + drift[3:])
        self.motions = ((w, v), (omega, v2))
        #: of the bodies' origins
        self.accelerations = tuple(
            np.concatenate([al, ac - np.cross(al, arm) - np.cross(om, np.cross(om, arm))])
            for om, al, ac, arm in ((w, alpha, a, self.arms[0]), (omega, alpha2, a2, self.arms[1])))

    def sides(self) -> tuple[Side, Side]:
        one, two = (self._side(i, self.places[i], self.arms[i]) for i in range(2))
        return one, two

    def pushed(self, body: int, motion: Floats) -> tuple[Side, Side]:
        """Both sides after a small motion of a body: a turn about its origin, and a shift."""
        out = []
        for i in range(2):
            place, arm = self.places[i], self.arms[i]
            if i == body:
                turn = turned(motion[:3])
                place = Place(turn @ place.turn, place.shift - arm + turn @ arm + motion[3:])
                arm = turn @ arm
            out.append(self._side(i, place, arm))
        return out[0], out[1]

    def _side(self, i: int, place: Place, arm: Floats) -> Side:
        return side_at(place, arm, *self.motions[i])


def _axial(matrix: Floats) -> Floats:
    """The vector of an (almost) antisymmetric matrix."""
    return 0.5 * np.array([matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]])


def _entries(made: Any) -> list[Any]:
    """All numbers in a result of a joint's method, in order."""
    if isinstance(made, (list, tuple)):
        return [x for part in made for x in _entries(part)]
    return [made if isinstance(made, Scalar) else float(made)]


def _plain(values: Floats) -> list[float]:
    """Numbers as constants are: outside of their range functions raise, as a user's own would."""
    return [float(x) for x in values]
