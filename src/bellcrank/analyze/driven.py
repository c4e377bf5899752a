"""Driven motion: kinematics and inverse dynamics of a machine whose joints follow functions of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.analyze.minimal import (
    DeadPointError,
    Follower,
    GivenSpeeds,
    driven_entries,
    guess_with_links,
    with_laws,
    with_links,
)
from bellcrank.arrays import Floats, check_unmasked
from bellcrank.compiled.system import System
from bellcrank.errors import AssemblyError, ModelError, NotYetError, StateError, hint
from bellcrank.loops.nearest import Held
from bellcrank.loops.tolerances import SAME
from bellcrank.mechanism.motion import ParametricLaw, Prescribed, parametric
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.simulate.fields import STATE, layout_of
from bellcrank.system.assembly import on_branch
from bellcrank.system.force_elements import with_values
from bellcrank.system.held_values import closing_near, near
from bellcrank.system.kernels import Kernels, Wrenches
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.simulate.result import Result

__all__ = ["drive"]

#: samples of which one is found by a walk
_APART = 16

#: a motion: number, or function of time that gives a coordinate (all of a joint's, if it has several)
Motion = Callable[[Any], Any] | float


def drive(system: System, motion: Mapping[str, Motion], times: npt.ArrayLike, *,
          guess: State | Mapping[str, float | Sequence[float]] | npt.ArrayLike | None = None,
          actuated: Sequence[str] | None = None, reactions: bool = False, wrenches: Wrenches = None,
          sensitivities: Sequence[str] = ()) -> Result:
    """Positions, speeds, accelerations and drive forces along a prescribed motion.

    `motion` maps joints (or "joint.coordinate") to functions of time, written with `bellcrank.math`, or to numbers;
    rates and accelerations are derived exactly. Together with the loops it must determine the machine. The loops are
    closed by continuation from sample to sample, always on the branch of the first one, which is that of `guess`, as in
    `assemble`: a state, an array or a mapping {joint: value} to start from. A dead point raises `AssemblyError` with
    joint and time. Forces are those of `actuated` joints (those of `compile`, else the driven ones).

    Returns a `Result` over time [s] with q, u, udot, tau, and if asked `reaction` (as `System.reactions`); `plot`,
    `kinematics` and the like work as after a simulation. Loops close to rounding. `sensitivities` names parameters:
    exact derivatives of all of these by them come with it, ``d_q_<name>`` and so on, the motion of the driven joints
    being what their laws say.
    Cost: of every sixteenth sample some closings, one after the other; the rest in batches.

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> run = bc.analyze.drive(linkage, {"A": lambda t: 0.5 + 2.0 * t}, [0.0, 0.1, 0.2])
    >>> run.u.sel(speed="A.angle").values.tolist()
    [2.0, 2.0, 2.0]
    """
    check_unmasked("drive: times", times)
    samples = np.asarray(times, dtype=float)
    if samples.ndim != 1 or not len(samples) or not np.isfinite(samples).all():
        raise StateError(f"drive: times are a row of finite numbers, got shape {samples.shape}")
    linked = with_links(system, motion, actuated)
    if linked is not None:
        return drive(linked, motion, samples, guess=guess_with_links(system, guess, float(samples[0]), "drive"),
                     actuated=actuated, reactions=reactions, wrenches=wrenches, sensitivities=sensitivities)
    laws = _Laws(system, motion, samples)
    changes = [(name, laws.by_parameter(name)) for name in _parameters(system, sensitivities)]
    closer = GivenSpeeds(system, laws.entries)
    q0 = _first(system, laws, float(samples[0]), guess)
    _check_determined(system, closer, q0, float(samples[0]), motion)
    follower = Follower(closer, laws.put, float, resolution=1e-12)
    try:
        rows = _followed(follower, laws, samples, q0)
    except DeadPointError as stop:
        raise AssemblyError(f"drive: {system.model.name!r} cannot follow beyond t = {stop.reached:.9g} s: there "
                            f"{', '.join(motion)} and the loops no longer determine joint {stop.joint!r} (a dead "
                            "point)") from None
    q, _ = closer.close(rows, samples)
    u, udot = laws.rates(samples)
    u = closer.speeds(q, u, samples)
    udot = closer.accelerations(q, u, _driven_accelerations(system, q, u, udot, samples), samples)
    q, u = with_laws(system, q, u, samples)
    if system.model.tree.loop_joints:
        q = _unwrapped(system, samples, q, u)
        udot = system.kernels.run("joint_accelerations", {"q": q, "u": u, "udot": udot}, None, samples)
    which = actuated if actuated is not None else system.model.options.actuated or tuple(motion)
    tau = system.inverse_dynamics(q, u, udot, wrenches=wrenches, t=samples, actuated=which)
    wrench = system.reactions(q, u, tau, udot=udot, wrenches=wrenches, t=samples) if reactions else None
    found = _dataset(system, samples, q, u, udot, tau, wrench)
    if changes:
        motions = {"q": q, "u": u, "udot": udot, "tau": tau}
        values = _Driven(system, laws.entries, tuple(which), wrenches, samples, motions)
        found = found.assign({f"d_{x}_{name}": (found[x].dims, rate) for name, law in changes
                              for x, rate in values.rates(name, law, reactions).items()}).noting(system)
    return found


def _parameters(system: System, names: Sequence[str]) -> Sequence[str]:
    """Names of parameters, checked."""
    if isinstance(names, str):
        raise ModelError(f"drive: sensitivities is a list of parameters; write [{names!r}]")
    known = list(system.model.mechanism.parameters)
    for name in names:
        if name not in known:
            raise ModelError(f"drive: sensitivities: {system.model.name!r} has no parameter {name!r}; it has "
                             f"{', '.join(known) or 'none'}{hint(name, known)}")
    return names


class _Driven(NamedTuple):
    """A driven machine at all samples: how it changes with a parameter, the drives as their laws say."""

    system: System
    entries: list[int]
    actuated: tuple[str, ...]
    wrenches: Wrenches
    times: Floats
    values: dict[str, Floats]

    def rates(self, name: str, law: dict[str, Floats], reactions: bool) -> dict[str, Floats]:
        """Of q, u, udot, tau and reactions, given those of what drives it."""
        out = {}
        for x, (function, inputs) in {"q": ("joint_coordinates", "q"), "u": ("joint_speeds", "q u"),
                                      "udot": ("joint_accelerations", "q u udot"),
                                      "tau": ("inverse_dynamics", "q u udot")}.items():
            out[x] = self._of(function, inputs.split(), name, law)
        if reactions:
            out["reaction"] = self._of("reactions", ["q", "u", "tau"], name, law | {"tau": out["tau"]})
        return out

    def _of(self, function: str, inputs: Sequence[str], name: str, law: Mapping[str, Floats]) -> Floats:
        system, moving = self.system, [x for x in inputs if x in law]
        machine = _with_drives(system, self.actuated) if function == "inverse_dynamics" else system
        names = system.speed_names
        independent = [names[v] for v in self.entries] if system.model.tree.looped else None
        d = machine.derivatives(function, *(self.values[x] for x in inputs), by=(*moving, name), t=self.times,
                                independent=independent, wrenches=self.wrenches if function not in _KINEMATIC else None)
        total = np.array(d[name])
        for x in moving:
            own = range(system.nu) if x == "tau" else self.entries
            columns = [d.columns[x].index(names[v]) for v in own]
            rate = law[x].reshape(len(self.times), *(1,) * (total.ndim - 1), -1)
            total += (d[x][..., columns] * rate).sum(axis=-1)
        return total


#: what wrenches do not change
_KINEMATIC = ("joint_coordinates", "joint_speeds", "joint_accelerations")


def _with_drives(system: System, actuated: tuple[str, ...]) -> System:
    """The machine with forces at other joints."""
    model = system.model
    if model.options.actuated == actuated or not model.tree.looped:
        return system
    other: System = system.kernels.kept(("driven by", actuated), lambda: type(system)(Kernels(
        replace(model, options=replace(model.options, actuated=actuated)), system.kernels.maker)))
    return other.with_parameters(**model.values)


def _unwrapped(system: System, times: Floats, q: Floats, u: Floats) -> Floats:
    """Positions with angles of loop joints that go on beyond half a turn, by the whole turns that speeds suggest."""
    for own in system.model.tree.loop_joints:
        kind = own.closure.kind
        for k in range(kind.nq) if kind.nq == kind.nu else ():
            if kind.within_a_turn(k):
                angle, rate = q[:, own.q_start + k], u[:, own.u_start + k]
                expected = 0.5 * (rate[1:] + rate[:-1]) * np.diff(times)
                turns = np.round((expected - np.diff(angle)) / (2.0 * np.pi))
                q[1:, own.q_start + k] += 2.0 * np.pi * np.cumsum(turns)
    return q


def _followed(follower: Follower, laws: _Laws, times: Floats, q0: Floats) -> Floats:
    """Positions at all times: every sixteenth by a walk, those between from two of these, together; one after the other
    where that is not clear."""
    marks = [*range(0, len(times) - 1, _APART), len(times) - 1]
    found = np.empty((len(times), len(q0)))
    found[0] = q0
    for a, b in pairwise(marks):
        found[b] = follower.to(found[a], float(times[a]), float(times[b]))
    between = [(a, b) for a, b in pairwise(marks) if b > a + 1]
    if not between:
        return found
    first = np.concatenate([np.full(b - a - 1, a) for a, b in between])
    last = np.concatenate([np.full(b - a - 1, b) for a, b in between])
    inner = np.concatenate([np.arange(a + 1, b) for a, b in between])
    span = times[last] - times[first]
    part = np.where(span != 0.0, (times[inner] - times[first]) / np.where(span != 0.0, span, 1.0), 0.0)
    ways = follower.difference(found[first], found[last])
    starts = laws.put_many(follower.integrate(found[first], part[:, None] * ways), times[inner])
    found[inner], good = follower.closed_together(starts, times[inner], np.abs(ways / follower.lengths).max(axis=-1))
    for a, b in between:
        if not good[(inner > a) & (inner < b)].all():
            end = found[b].copy()
            _one_by_one(follower, times, found, a + 1, b + 1)
            if follower.length(follower.difference(end, found[b])) > SAME:  # the walk of sixteen took another way
                _one_by_one(follower, times, found, b + 1, len(times))
                break
    return found


def _one_by_one(follower: Follower, times: Floats, found: Floats, begin: int, end: int) -> None:
    """Positions at some of the times by a walk from each to the next, in place."""
    for i in range(begin, end):
        found[i] = follower.to(found[i - 1], float(times[i - 1]), float(times[i]))


class _Laws:
    """The functions of time, joint by joint."""

    def __init__(self, system: System, motion: Mapping[str, Motion], times: Floats) -> None:
        if not isinstance(motion, Mapping):
            raise ModelError(f"drive: motion is a mapping {{joint: function of time}}, got {type(motion).__name__}")
        self.system, self.times = system, times
        self.given: list[tuple[str, Any]] = []
        self.entries = driven_entries(system, motion, "drive")
        self.parts: list[tuple[str, int, int, Prescribed, int, int]] = []
        for key, law in motion.items():
            joint, coordinate = system.model.configuration.split(key)
            kind = system.model.mechanism.joint(joint).joint
            if not callable(law) and (coordinate is None and kind.nq != 1):
                raise ModelError(f"drive: {key!r} needs a function of time that returns {kind.nq} coordinates")
            made = parametric(law, 1, f"drive: the motion of {key!r}") if callable(law) else None
            self.given.append((key, made))
            function = with_values(system.plans, made) if callable(law) else _constant(float(law))
            i, j = system.model.configuration.starts[joint]
            self.parts.append((key, i, j, _prescribed(key, function, kind, coordinate), kind.nq, kind.nu))

    def values(self, t: float) -> list[tuple[int, int, list[Any], list[Any], list[Any], Prescribed]]:
        out = []
        for key, i, j, law, nq, nu in self.parts:
            none = [float("nan")] * max(nq, nu)
            try:
                q, u, udot = law.values(t, none[:nq], none[:nu], none[:nu])
            except TypeError as error:
                raise ModelError(f"drive: the motion of {key!r} cannot be evaluated ({error}); write it with the "
                                 "functions of bellcrank.math") from None
            out.append((i, j, q, u, udot, law))
        return out

    @property
    def places(self) -> list[int]:
        """The coordinates that are driven."""
        return [i + k for _, i, _, law, nq, _ in self.parts for k in range(nq)
                if law.whole is not None or law.laws[k] is not None]

    def put(self, q: Floats, t: float) -> Floats:
        """q with the driven coordinates of time t."""
        q = q.copy()
        for i, _, place, _, _, law in self.values(t):
            for k, x in enumerate(place):
                if law.whole is not None or law.laws[k] is not None:
                    q[i + k] = x
        if not np.isfinite(q).all():
            raise StateError(f"drive: a motion is not finite at t = {t:g}")
        return self.system.normalize(q)

    def put_many(self, q: Floats, times: Floats) -> Floats:
        """q (n, nq) with the driven coordinates of times (n,)."""
        return np.array([self.put(row, float(t)) for row, t in zip(q, times, strict=True)])

    def by_parameter(self, name: str) -> dict[str, Floats]:
        """How what drives the machine changes with a parameter, {"q", "u", "udot": (times or 1, entries)}; empty if it
        does not."""
        slopes: list[Callable[[Any], Any] | None] = []
        for key, law in self.given:
            slope = law.by_parameter(name) if isinstance(law, ParametricLaw) else None
            kind = self.system.model.mechanism.joint(self.system.model.configuration.split(key)[0]).joint
            if slope is not None and kind.nq != kind.nu:
                raise NotYetError(f"drive: the law of {key!r}, a joint with quaternions, uses the parameter {name!r}; "
                                  "sensitivities by it are not there yet")
            count = len(self.system.model.configuration.speed_entries(key))
            own = None if slope is None else with_values(self.system.plans, slope)
            slopes += [own if own is None or count == 1 else partial(_entry, own, k) for k in range(count)]
        if not any(slopes):
            return {}
        jets = [[as_jet(0.0 if f is None else f(Jet(float(t), 1.0, 0.0))) for f in slopes] for t in self.times]
        return {x: np.array([[float(jet[k]) for jet in row] for row in jets]) for k, x in enumerate(("q", "u", "udot"))}

    def rates(self, times: Floats) -> tuple[Floats, Floats]:
        """Speeds and accelerations of the driven joints, zero elsewhere."""
        u, udot = np.zeros((2, len(times), self.system.nu))
        for n, t in enumerate(times):
            for _, j, _, speed, change, _ in self.values(float(t)):
                for k, (x, y) in enumerate(zip(speed, change, strict=True)):
                    if x == x:  # not those left free, which are NaN
                        u[n, j + k], udot[n, j + k] = x, y
        return u, udot


def _prescribed(key: str, law: Callable[[Any], Any], kind: Any, coordinate: str | None) -> Prescribed:
    if kind.nq != kind.nu:
        if coordinate is not None:
            raise ModelError(f"drive: {key!r}: quaternion joints are driven whole, by all {kind.nq} coordinates")
        return Prescribed((), law)
    names = kind.coordinate_names()
    if coordinate is not None:
        return Prescribed(tuple(law if n == coordinate else None for n in names))
    if kind.nq == 1:
        return Prescribed((law,))

    def entry(k: int) -> Callable[[Any], Any]:
        return lambda t: law(t)[k]

    if len(law(Jet(0.0, 1.0, 0.0))) != kind.nq:
        raise ModelError(f"drive: the motion of {key!r} must return its {kind.nq} coordinates {', '.join(names)}")
    return Prescribed(tuple(entry(k) for k in range(kind.nq)))


def _entry(law: Callable[[Any], Any], k: int, t: Any) -> Any:
    return law(t)[k]


def _constant(value: float) -> Callable[[Any], Any]:
    return lambda t: as_jet(value)


def _first(system: System, laws: _Laws, t: float,
           guess: State | Mapping[str, float | Sequence[float]] | npt.ArrayLike | None) -> Floats:
    """The closed position at the first time, on the branch of the guess."""
    start = near(system.plans, "guess", guess, "drive")
    mask = system.model.bound_mask()
    mask[laws.entries] = True
    places = laws.places
    held = Held(mask, tuple(places), laws.put(start, t)[places], (), closing_near(system.plans, guess))
    return on_branch(system.plans, start, held, 1.0 / system.model.configuration.usual, t, "drive")[0]


def _check_determined(system: System, closer: GivenSpeeds, q: Floats, t: float, motion: Mapping[str, Motion]) -> None:
    free = len(closer.solved) - closer.determined(q, t)
    if free:
        raise ModelError(f"drive: {', '.join(motion) or 'nothing'} and the loops leave {system.model.name!r} {free} "
                         f"degree{'s' * (free != 1)} of freedom (or it starts at a dead point); give the motion of "
                         f"more joints{closer.advice}")


def _driven_accelerations(system: System, q: Floats, u: Floats, udot: Floats, times: Floats) -> Floats:
    mask = system.model.bound_mask()
    return np.where(mask, system.kernels.run("prescribed", {"q": q, "u": u}, None, times), udot) if mask.any() else udot


def _dataset(system: System, times: Floats, q: Floats, u: Floats, udot: Floats, tau: Floats,
             wrench: dict[str, Floats] | None) -> Result:
    """Laid out like the results of simulations."""
    from bellcrank.simulate.result import Result

    layout = layout_of(system, ())
    along, speeds = ("time", "coordinate"), ("time", "speed")
    faster = {f"{unit}^2" for unit in layout.speed_units}
    attrs = {f.name: layout.attrs(f) for f in STATE}
    data: dict[str, Any] = {
        "q": (along, q, attrs["q"]), "u": (speeds, u, attrs["u"]),
        "udot": (speeds, udot, {"units": faster.pop() if len(faster) == 1 else "see speed_units, per s",
                                "long_name": "joint accelerations"}),
        "tau": (speeds, tau, {**attrs["tau"], "long_name": "drive forces"})}
    where: dict[str, Any] = {"time": ("time", times, {"units": "s", "long_name": "time"})}
    where |= {name: (dim, list(values), {"long_name": long}) for name, (dim, values, long) in layout.labels().items()}
    if wrench is not None:
        data["reaction"] = (("time", "joint", "component"), np.stack(list(wrench.values()), axis=1),
                            {"long_name": "wrench of each joint on its outboard body, body axes",
                             "units": "see component_units"})
        where |= {"joint": list(wrench), "component": ["mx", "my", "mz", "fx", "fy", "fz"],
                  "component_units": ("component", ["N m"] * 3 + ["N"] * 3)}
    return Result(data, where, {"mechanism": system.model.name}).noting(system)
