"""Where points of a machine can go: coupler curves and workspaces."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bellcrank.analyze.minimal import (
    DeadPointError,
    Follower,
    GivenSpeeds,
    driven_entries,
    guess_with_links,
    one_machine,
    with_links,
)
from bellcrank.arrays import Floats, check_unmasked, flat, how_many, one_time, random_source
from bellcrank.compiled.system import System
from bellcrank.errors import BranchWarning, ModelError, StateError, outside
from bellcrank.loops.closer import Target
from bellcrank.loops.tolerances import CLOSED
from bellcrank.system.assembly import check_parameters, same_position, with_laws, without_turns
from bellcrank.system.held_values import Values, begin
from bellcrank.system.state import State

__all__ = ["Curve", "Workspace", "branches", "coupler_curve", "workspace"]

Guess = State | Mapping[str, float | Sequence[float]] | npt.ArrayLike | None


@dataclass(frozen=True, eq=False)
class Curve:
    """The path of a point as a joint moves; entry i of every array belongs to value i of the joint."""

    joint: str
    body: str
    values: Floats  #: of the joint's coordinate, those that could be reached (n,)
    points: Floats  #: of the point in the world [m] (n, 3)
    q: Floats  #: closed positions (n, nq)
    closed: bool  #: whether a whole turn leads back to the start
    limits: tuple[float | None, float | None]  #: dead points below and above, None where the joint went all the way
    stuck: tuple[str | None, str | None]  #: the joint that is no longer determined at each limit

    @property
    def length(self) -> float:
        """Length of the path [m], as a polygon."""
        return float(np.sqrt((np.diff(self.points, axis=0) ** 2).sum(axis=1)).sum())


@dataclass(frozen=True, eq=False)
class Workspace:
    """Positions that a point can reach; entry i of every array belongs to one sample that closed."""

    body: str
    joints: tuple[str, ...]
    values: Floats  #: of the sampled coordinates (n, joints)
    points: Floats  #: in the world [m] (n, 3)
    q: Floats  #: closed positions (n, nq)
    tried: int
    failures: int  #: samples in which the loops could not be closed

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Smallest and largest x, y, z [m]."""
        if not len(self.points):
            raise StateError("bounds: no sample could be closed")
        return self.points.min(axis=0), self.points.max(axis=0)


def coupler_curve(system: System, joint: str, body: str, point: npt.ArrayLike = (0.0, 0.0, 0.0), *,
                  values: npt.ArrayLike | None = None, samples: int = 361, guess: Guess = None,
                  hold: Sequence[str] = (), t: float = 0.0) -> Curve:
    """The path of a point of a body (or frame) while a joint moves and the loops stay closed, on one branch.

    `guess` is a state, an array or a mapping {joint: value} to start from, as in `assemble`; it holds nothing. `joint`
    is a joint with one coordinate, or "joint.coordinate". `values` are the values it takes, in order; without
    them a hinge turns once, from where the guess has it, and if it cannot, both ways to its dead points, `samples`
    values in all. `hold` names joints that keep still, for machines with more freedom. Toggle positions are found to
    about 1e-9 of the joint's range. If one ends the branch before the last of the `values`, the curve has the values
    reached, and a `BranchWarning` names the place and the joint. Cost: a few closings per sample.

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> curve = bc.analyze.coupler_curve(linkage, "A", "coupler", (0.5, 0.2, 0))
    >>> curve.closed, curve.points.shape
    (True, (361, 3))
    """
    t = one_time(t)
    linked = with_links(system, [joint], hold)
    if linked is not None:
        return coupler_curve(linked, joint, body, point, values=values, samples=samples, hold=hold, t=t,
                             guess=guess_with_links(system, guess, t, "coupler_curve"))
    entries = driven_entries(system, [joint], "coupler_curve")
    name, coordinate = system.model.configuration.split(joint)
    kind = system.model.mechanism.joint(name).joint
    if len(entries) != 1 or kind.nq != kind.nu:
        raise ModelError(f"coupler_curve: {joint!r} has {kind.nq} coordinates; name one that is an angle or a length")
    offset = 0 if coordinate is None else kind.coordinate_names().index(coordinate)
    place = system.model.configuration.starts[name][0] + offset
    flat("point", point, 3, "x, y, z in the body's frame")
    check_unmasked("coupler_curve: values", values)
    wanted = None if values is None else np.asarray(values, dtype=float)
    if wanted is not None and (wanted.ndim != 1 or not len(wanted) or not np.isfinite(wanted).all()):
        raise StateError("coupler_curve: values are a row of finite numbers")
    if wanted is None:
        how_many("coupler_curve: samples", samples, 2)
    names = kind.coordinate_names()
    if wanted is None and not (coordinate or names[0]).startswith("angle"):
        raise StateError(f"coupler_curve: {joint!r} is a length without natural range; give values")
    start = _start(system, guess, {} if wanted is None else {joint: float(wanted[0])}, t)
    closer = GivenSpeeds(system, [*entries, *driven_entries(system, hold, "coupler_curve")])
    free = len(closer.solved) - closer.determined(start, t)
    if free:
        raise ModelError(f"coupler_curve: {joint!r} and the loops leave {system.model.name!r} {free} degree"
                         f"{'s' * (free != 1)} of freedom (or it starts at a dead point); name joints to hold"
                         f"{closer.advice}")
    walk = _Walk(system, closer, place, t, start)
    way = walk.turn(samples) if wanted is None else walk.along(wanted)
    if wanted is not None and len(way.values) < len(wanted):
        _warn_of_end(system, joint, wanted, way)
    q, _ = closer.close(np.array(way.q).reshape(-1, system.nq), t)
    at = system.pose(q, body, t=t)
    points = at.position + (at.rotation @ np.asarray(point, dtype=float)[:, None])[..., 0]
    return Curve(joint, body, np.array(way.values), points, q, way.closed, way.limits, way.stuck)


def _warn_of_end(system: System, joint: str, values: Floats, way: _Found) -> None:
    """Say where the branch ended before all values were reached."""
    side = 0 if way.limits[0] is not None else 1
    warnings.warn(f"coupler_curve: joint {joint!r} of {system.model.name!r} cannot go beyond {way.limits[side]:.9g} on "
                  f"the way to {values[len(way.values)]:.6g}: joint {way.stuck[side]!r} reaches a toggle (singular) "
                  f"position there; the curve has {len(way.values)} of {len(values)} values. Ask for values on one "
                  "side of it", BranchWarning, stacklevel=outside())


@dataclass
class _Found:
    values: list[float]
    q: list[Floats]
    closed: bool
    limits: tuple[float | None, float | None]
    stuck: tuple[str | None, str | None]


class _Walk:
    """Takes one coordinate through values."""

    def __init__(self, system: System, closer: GivenSpeeds, place: int, t: float, start: Floats) -> None:
        self.system, self.closer, self.place, self.t, self.start = system, closer, place, t, start

    def _put(self, q: Floats, value: float) -> Floats:
        q = q.copy()
        q[self.place] = value
        return q

    def _go(self, values: Floats) -> tuple[list[float], list[Floats], DeadPointError | None]:
        unit = float(self.system.model.tree.coordinate_sizes[self.place])
        follower = Follower(self.closer, self._put, lambda _: self.t, resolution=1e-10, unit=unit)
        q, here = self.start, float(self.start[self.place])
        done: list[float] = []
        places: list[Floats] = []
        for value in values:
            try:
                q = follower.to(q, here, float(value))
            except DeadPointError as stop:
                return done, places, stop
            here = float(value)
            done.append(here)
            places.append(q)
        return done, places, None

    def along(self, values: Floats) -> _Found:
        """Through given values, as far as it goes."""
        done, places, stop = self._go(values)
        limits: list[float | None] = [None, None]
        stuck: list[str | None] = [None, None]
        if stop is not None:
            up = int(values[len(done)] > stop.reached)
            limits[up], stuck[up] = stop.reached, stop.joint
        whole = stop is None and len(values) > 1 and abs(abs(values[-1] - values[0]) - 2.0 * np.pi) < 1e-9
        return _Found(done, places, whole and self._same(places[-1], places[0]), (limits[0], limits[1]),
                      (stuck[0], stuck[1]))

    def turn(self, samples: int) -> _Found:
        """Once round, or between the dead points."""
        begin = float(self.start[self.place])
        done, places, above = self._go(begin + np.linspace(0.0, 2.0 * np.pi, samples))
        if above is None:
            return _Found(done, places, self._same(places[-1], places[0]), (None, None), (None, None))
        _, _, below = self._go(begin - np.linspace(0.0, 2.0 * np.pi, samples))
        low = begin - 2.0 * np.pi if below is None else below.reached
        values = np.linspace(low, above.reached, samples)
        split = int(np.searchsorted(values, begin))
        up, up_places, _ = self._go(values[split:])
        down, down_places, _ = self._go(values[:split][::-1])
        for stop, side, rest in ((below, down, down_places), (above, up, up_places)):
            if stop is not None and len(side) < (split if stop is below else samples - split):
                side.append(stop.reached)  # the dead point itself, which is reached from one side only
                rest.append(stop.q)
        return _Found(down[::-1] + up, down_places[::-1] + up_places, False,
                      (None if below is None else below.reached, above.reached),
                      (None if below is None else below.joint, above.joint))

    def _same(self, a: Floats, b: Floats) -> bool:
        return same_position(self.system.plans, a, b)


def workspace(system: System, body: str, point: npt.ArrayLike = (0.0, 0.0, 0.0), *,
              ranges: Mapping[str, tuple[float, float]], samples: int = 1000, seed: int = 0, guess: Guess = None,
              t: float = 0.0) -> Workspace:
    """Positions of a point for random values of joints within `ranges` {joint or "joint.coordinate": (low, high)}.

    `guess` is a state, an array or a mapping {joint: value} to start from. Loops are closed from there, and where that
    fails again from the nearest sample that closed; what the ranges leave free moves as little as it can. Samples that
    do not close are counted. Cost: one evaluation per sample for trees, some ten closings with loops, in batches.

    >>> import bellcrank as bc
    >>> robot = bc.compile(bc.load("five_bar"))
    >>> reach = bc.analyze.workspace(robot, "link1.2", (1.1, 0, 0), ranges={"leg1.1": (0, 2), "leg2.1": (0, 2)},
    ...                              samples=200)
    >>> reach.tried - reach.failures == len(reach.points)
    True
    """
    how_many("workspace: samples", samples)
    t = one_time(t)
    flat("point", point, 3, "x, y, z in the body's frame")
    linked = with_links(system, ranges)
    if linked is not None:
        return workspace(linked, body, point, ranges=ranges, samples=samples, seed=seed, t=t,
                         guess=guess_with_links(system, guess, t, "workspace"))
    entries, places, low, high = _ranges(system, ranges)
    values = random_source(seed).uniform(low, high, (samples, len(places)))
    start = _start(system, guess, {}, t)
    q = np.tile(start, (samples, 1))
    q[:, places] = values
    closer = GivenSpeeds(system, entries)
    good = np.ones(samples, dtype=bool)
    if system.model.tree.looped:
        q, good = _close_all(system, closer, q, values, places, t)
    q = q[good]
    at = system.pose(q, body, t=t)
    points = at.position + (at.rotation @ np.asarray(point, dtype=float)[:, None])[..., 0]
    return Workspace(body, tuple(ranges), values[good], points, q, samples, int(samples - good.sum()))


def _ranges(system: System, ranges: Mapping[str, tuple[float, float]]
            ) -> tuple[list[int], list[int], Floats, Floats]:
    entries = driven_entries(system, ranges, "workspace")
    places, ends = [], []
    for key, limits in ranges.items():
        joint, coordinate = system.model.configuration.split(key)
        kind = system.model.mechanism.joint(joint).joint
        if kind.nq != kind.nu or (coordinate is None and kind.nq != 1):
            raise ModelError(f"workspace: {key!r} has several coordinates; name one that is an angle or a length")
        pair = np.asarray(limits, dtype=float)
        if pair.shape != (2,) or not np.isfinite(pair).all() or pair[0] > pair[1]:
            raise StateError(f"workspace: the range of {key!r} is (low, high), got {limits!r}")
        names = kind.coordinate_names()
        offset = 0 if coordinate is None else names.index(coordinate)
        places.append(system.model.configuration.starts[joint][0] + offset)
        ends.append(pair)
    if not places:
        raise ModelError("workspace: ranges names no joint")
    low, high = np.array(ends).T
    return entries, places, low, high


def _close_all(system: System, closer: GivenSpeeds, q: Floats, values: Floats, places: list[int], t: float
               ) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Close every sample, those that fail again from neighbours that did not."""
    q, left = closer.close(q, t)
    good, sizes = left < CLOSED, system.model.tree.coordinate_sizes[places]
    for i in np.flatnonzero(good):
        good[i] = not system.plans.closer.flipped(q[i], t)
    for _ in range(3):
        bad = np.flatnonzero(~good)
        if not len(bad) or not good.any():
            break
        known = np.flatnonzero(good)
        apart = (((values[bad][:, None, :] - values[known][None, :, :]) / sizes) ** 2).sum(axis=-1)
        trial = q[known[np.argmin(apart, axis=1)]].copy()
        trial[:, places] = values[bad]
        trial, left = closer.close(trial, t)
        fixed = np.array([left[i] < CLOSED and not system.plans.closer.flipped(trial[i], t) for i in range(len(bad))])
        if not fixed.any():
            break
        q[bad[fixed]], good[bad[fixed]] = trial[fixed], True
    return q, good


def _start(system: System, guess: Guess, held: Mapping[str, float], t: float) -> Floats:
    """A closed position near the guess, which is where to start, with a coordinate held."""
    one_machine(system)
    q = system.assemble(q=held, guess=guess, t=t).q
    if q.ndim != 1:
        raise StateError(f"guess: needs one state to start from, got {q.shape[:-1]} of them")
    return q


# -- the different ways in which a machine can be put together --------------------------------------
def branches(system: System, q: State | Values = None, *, tries: int = 60, guess: State | Values = None,
             t: float = 0.0, seed: int = 0) -> list[State]:
    """Different closed positions found from random starts with the coordinates in `q` held (as an array, `q` is
    the guess), nearest to the guess first. Only meaningful if what is held leaves no freedom: then it lists the
    assembly branches. Cost: `tries` closings, side by side.

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> len(bc.analyze.branches(linkage, q={"A": 0.5}))
    2
    """
    plans, nu = system.plans, system.nu
    t = one_time(t)
    guessed, held = begin(plans, q, guess)
    check_parameters(plans, "branches", many=False)
    start = held.put(guessed)
    usual = plans.tree.speed_sizes
    shakes = 1.5 * random_source(seed).normal(size=(how_many("branches: tries", tries), nu)) * usual
    shakes[:1] = 0.0
    starts = plans.configuration.integrate(start, np.where(held.mask, 0.0, shakes))
    positions, sizes = plans.closer.close(starts, Target(held.mask, 1.0 / usual, held.extra), t)
    found: list[Floats] = []
    for position in positions[sizes < CLOSED]:
        if not any(same_position(plans, position, other) for other in found) \
                and not plans.closer.flipped(position, t):
            found.append(position)
    found.sort(key=lambda x: float(np.linalg.norm(
        without_turns(plans, plans.configuration.difference(start, x)) / usual)))
    return [plans.configuration.state(*with_laws(plans, x, np.zeros(nu), t), t) for x in found]
