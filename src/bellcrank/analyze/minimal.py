"""Machines with chosen speeds given, for many states at once; and minimal coordinates made of it.

The methods of `analyze` move machines about: a few speeds are *given* (driven, held, or chosen as independent) and the
loops determine the others. `GivenSpeeds` does that for positions, speeds and accelerations by `loops.closer`; `Chart`
adds local minimal coordinates about one position. Cost per state: O(nu m^2), by singular values of the loop Jacobian.

The same machine with links at joints that close loops, for questions that hold or drive these.

It is the same machine with the same cuts, but for a carrier at each of these joints (`topology.carriers`). Its states
are those of the other one.

Following a closed machine along functions of a parameter: `loops.walking` with `GivenSpeeds`.

Positions are good to about 1e-8 on the way; `GivenSpeeds.close` polishes the whole afterwards, in one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_finite, flat, one_time
from bellcrank.compiled.compile import compile as compiled
from bellcrank.compiled.system import System
from bellcrank.errors import ModelError, SingularError, StateError
from bellcrank.loops.closer import Target, project, times
from bellcrank.loops.null_space import null_space
from bellcrank.loops.tolerances import CONTRACTION, OPEN, RANK, WALKED
from bellcrank.loops.walking import DeadPointError, Walker
from bellcrank.system import assembly
from bellcrank.system.arrangements import arrangement_of
from bellcrank.system.held_values import near
from bellcrank.system.kernels import Kernels
from bellcrank.system.loop_errors import loop_acceleration_error, loop_jacobian, loop_rows
from bellcrank.system.state import State, parts_of
from bellcrank.system.usual_cut import usual_plans

__all__ = ["Chart", "DeadPointError", "Follower", "GivenSpeeds", "StateBatch", "closed_state", "closed_states",
           "driven_entries", "force_arrays", "guess_with_links", "independent_names", "independent_speeds",
           "one_machine", "speed_labels", "state_entries", "with_laws", "with_links"]

#: independent speeds whose share of the motion is smaller than this are poor coordinates
_GOOD = 0.02
#: and below this they are none
_NONE = 1e-6
#: how much smaller the part of others must be for speeds that are a last choice
_LAST = 0.1


def one_machine(system: System) -> None:
    """Refuse arrays of parameters."""
    if system.model.batched:
        raise ModelError(f"{system.model.name!r} has arrays of parameters: analyze one machine at a time, with one "
                         "value for each")


class GivenSpeeds:
    """A machine in which the speeds in `given` (and prescribed ones) are what they are; loops determine the others.
    With `slipping`, constraints on speeds alone (rolling, knife edges) are not looked at: as displacements are, which
    they do not restrict."""

    def __init__(self, system: System, given: Iterable[int], slipping: bool = False) -> None:
        one_machine(system)
        self.system, self.slipping = system, slipping
        mask = system.model.bound_mask()
        mask[list(given)] = True
        self.target = Target(mask, 1.0 / system.model.tree.speed_sizes)
        self.solved = self.target.free  #: speeds that the loops must determine

    @property
    def looped(self) -> bool:
        """Whether there is anything to close."""
        return self.system.model.tree.looped and len(self.solved) > 0

    def newton(self, q: Floats, t: float) -> tuple[float, Floats]:
        """What is left open in one position, and the plain Newton step of all speeds that would close it."""
        if not self.looped:
            return 0.0, np.zeros(self.system.nu)
        size, step, _ = self.system.plans.closer.newton(q, t, self.target)
        return float(size), step

    def loosest(self, q: Floats, t: float) -> int | None:
        """The speed that moves most along the direction that is determined worst in one position."""
        if not self.looped:
            return None
        return int(self.solved[int(np.argmax(np.abs(self.system.plans.closer.factors(q, t, self.target).vt[-1])))])

    @property
    def advice(self) -> str:
        """What to say, besides, of a machine whose positions the loops do not determine."""
        names = [repr(c.name) for c in self.system.model.tree.closures if c.nonholonomic]
        return f"; {', '.join(names[:4])} bind speeds, not positions: simulate, with prescribed joints" if names else ""

    def determined(self, q: Floats, t: float) -> int:
        """How many of the solved speeds the loops determine in one position."""
        if not self.looped:
            return 0
        s = self.system.plans.closer.factors(q, t, self.target).s
        return int((s > RANK * max(float(s.max(initial=0.0)), 1e-300)).sum())

    def close(self, q: Floats, t: npt.ArrayLike = 0.0, *, iterations: int = 60) -> tuple[Floats, Floats]:
        """The nearest closing positions found from q (n, nq), and what is left open (n,)."""
        if not self.system.model.tree.looped:
            return self.system.normalize(q), np.zeros(q.shape[:-1])
        return self.system.plans.closer.close(q, self.target, t, iterations=iterations)

    def inverse(self, q: Floats, t: npt.ArrayLike) -> Floats:
        """Pseudo-inverse of the Jacobian of the solved speeds, shape (..., solved, constraints)."""
        u, s, vt, _ = self.system.plans.closer.factors(q, t, self.target, speeds=not self.slipping)
        kept = s > RANK * np.maximum(s.max(axis=-1, keepdims=True, initial=0.0), 1e-300)
        gain = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
        shares = (np.swapaxes(vt, -1, -2) * gain[..., None, :]) @ np.swapaxes(u, -1, -2)
        return np.asarray(shares / self.target.weights[self.solved, None] / self.system.plans.loops.row_sizes)

    def speeds(self, q: Floats, u: Floats, t: npt.ArrayLike = 0.0) -> Floats:
        """Speeds that keep the loops closed, those given as in u."""
        if not self.looped:
            return np.array(u)
        return project(self.system.plans.loops, q, np.where(self.target.held, u, 0.0), self.target, t)[0]

    def accelerations(self, q: Floats, u: Floats, udot: Floats, t: npt.ArrayLike = 0.0) -> Floats:
        """Accelerations that keep the loops closed, those given as in udot."""
        if not self.looped:
            return np.array(udot)
        udot = np.where(self.target.held, udot, 0.0)
        back = self.inverse(q, t)
        for _ in range(2):  # the second removes rounding
            error = loop_acceleration_error(self.system.plans, q, u, udot, t=t)
            udot = np.array(np.broadcast_to(udot, (*error.shape[:-1], self.system.nu)))
            udot[..., self.solved] -= times(back, error)
        return udot

    def basis(self, q: Floats, columns: Sequence[int], t: npt.ArrayLike = 0.0) -> Floats:
        """What all speeds do when those in `columns` do one each, shape (..., nu, columns)."""
        lead = q.shape[:-1]
        out = np.zeros((*lead, self.system.nu, len(columns)))
        out[..., list(columns), np.arange(len(columns))] = 1.0
        if self.looped:
            rows = loop_jacobian(self.system.plans, q, t=t)[..., list(columns)]
            out[..., self.solved, :] = -self.inverse(q, t) @ rows
        return out + loop_rows(self.system.plans, q, t) @ out if self.system.model.tree.loop_joints else out


@dataclass(frozen=True)
class Chart:
    """Local minimal coordinates about a closed position: displacements z of the speeds `placed`, zero there, and the
    rates of those that are `independent`, which come first among them. Both are the same but for constraints on speeds
    alone (rolling, knife edges), which restrict no displacement."""

    system: System
    q: Floats
    t: float
    independent: tuple[int, ...]
    placed: tuple[int, ...]
    closer: GivenSpeeds  #: of speeds
    places: GivenSpeeds  #: of displacements

    @classmethod
    def at(cls, system: System, q: Floats, t: float, *, held: Sequence[int] = (), wanted: Sequence[int] | None = None
           ) -> Chart:
        """The chart at one closed position; speeds `held` do not move. Raises where the machine is singular."""
        chosen = independent_speeds(system, q, t, held, wanted)
        placed = placed_speeds(system, q, t, chosen, held, wanted or ())
        closer = GivenSpeeds(system, [*chosen, *held])
        return cls(system, q, t, tuple(chosen), tuple(placed), closer,
                   closer if placed == chosen else GivenSpeeds(system, [*placed, *held], slipping=True))

    def displaced(self, z: Floats, *, iterations: int = 25) -> tuple[Floats, Floats]:
        """Closed positions (n, nq) for displacements (n, p), and what is left open (n,)."""
        step = self.system.integrate(self.q, z @ self.displacements(self.q).T)
        return self.places.close(step, self.t, iterations=iterations)

    def positions(self, w: Floats, *, iterations: int = 25) -> tuple[Floats, Floats]:
        """The same for motions (n, k) of the independent speeds, as far as speeds may move."""
        return self.displaced(w @ self.basis(self.q)[list(self.placed)].T, iterations=iterations)

    def displacements(self, q: Floats) -> Floats:
        """What all speeds move when those of `placed` do, shape (..., nu, p)."""
        return self.places.basis(q, self.placed, self.t)

    @property
    def sizes(self) -> Floats:
        """An ordinary change of every coordinate, (k,)."""
        return self.system.model.tree.speed_sizes[list(self.independent)]

    def step_length(self, q: Floats, z: Floats) -> float:
        """How far a step moves the coordinates of all joints, in radians and lengths of the machine."""
        return float(self.system.plans.loops.step_length(self.basis(q) @ z))

    def basis(self, q: Floats) -> Floats:
        """N with u = N v for what is not prescribed, shape (..., nu, k)."""
        return self.closer.basis(q, self.independent, self.t)

    def speeds(self, q: Floats, rates: Floats) -> Floats:
        """All speeds for rates (..., k) of the independent ones; loops and prescribed joints have their say."""
        u = np.zeros((*np.broadcast_shapes(q.shape[:-1], rates.shape[:-1]), self.system.nu))
        u[..., list(self.independent)] = rates
        return with_laws(self.system, q, self.closer.speeds(q, u, self.t), self.t)[1]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the coordinates: joints with one speed by their own name."""
        return tuple(speed_labels(self.system)[v] for v in self.placed)


class _Allowed:
    """Motions that constraints allow in one position, by the speeds that are free."""

    def __init__(self, system: System, q: Floats, t: float, held: Sequence[int], slipping: bool = False) -> None:
        loops, self.free = system.plans.loops, _free(system, held)
        entries = loops.position_entries(q, t) if slipping else loops.linearized(q, t)[1]
        sizes = system.model.tree.speed_sizes[self.free]
        _, basis, kept = null_space(loops.dense(entries)[:, self.free], loops.row_sizes, sizes)
        self.basis = basis[:, ~kept] / sizes[:, None]
        self.ways = self.basis.shape[1]
        self._place = {v: i for i, v in enumerate(self.free)}

    def quality(self, entries: Sequence[int]) -> float:
        """How well speeds determine a motion: 1 at best, 0 if they do not."""
        if len(entries) != self.ways or any(v not in self._place for v in entries):
            return 0.0
        return float(np.linalg.svd(self._rows(entries), compute_uv=False).min(initial=1.0))

    def completed(self, chosen: Sequence[int], among: Sequence[int], last: Collection[int] = ()) -> list[int]:
        """Chosen speeds, and those that determine best what these leave open, some of them as a `last` choice."""
        from scipy.linalg import qr

        rest = [v for v in among if v in self._place and v not in chosen]
        left = np.linalg.qr(self._rows(chosen).T, mode="complete")[0][:, len(chosen):]
        if not left.size:
            return list(chosen)
        favour = np.array([[_LAST if v in last else 1.0 for v in rest]])
        order = qr((self._rows(rest) @ left).T * favour, mode="r", pivoting=True)[1][:left.shape[1]]
        return [*chosen, *(rest[i] for i in sorted(order))]

    def _rows(self, entries: Sequence[int]) -> Floats:
        return self.basis[np.array([self._place[v] for v in entries], dtype=np.int64)]


def _free(system: System, held: Sequence[int]) -> list[int]:
    mask = system.model.bound_mask()
    mask[list(held)] = True
    return [int(v) for v in np.flatnonzero(~mask)]


def independent_speeds(system: System, q: Floats, t: float, held: Sequence[int] = (),
                       wanted: Sequence[int] | None = None) -> list[int]:
    """Speeds that determine all others in one position: those wanted, or the best of these if there are more; else the
    drives or the plan's if they are good coordinates there, else the best by pivoting."""
    if not system.model.tree.looped:
        free = _free(system, held)
        if wanted is not None and sorted(wanted) != free:
            raise ModelError(f"{system.model.name!r} has no loops: its coordinates are all {len(free)} speeds that are "
                             "free")
        return free if wanted is None else list(wanted)
    allowed, plan = _Allowed(system, q, t, held), system.plans.reference_near(q, t).plan
    k, dof = allowed.ways, len(plan.independent)
    if not held and k > dof:
        system.plans.at(q, t)  # says which loops are singular
        raise SingularError(f"{system.model.name!r} is in a singular position: it may move in {k} ways there instead "
                            f"of {dof}")
    if wanted is not None:
        chosen = list(wanted[:k])
        if len(wanted) > k and allowed.quality(chosen) < _GOOD:
            chosen = allowed.completed((), wanted)
        if allowed.quality(chosen) < _NONE:
            raise ModelError(f"{_undescribed(system, wanted)}: it needs {k} speeds that determine all others")
        return chosen
    drives = sorted(_entries(system, system.model.options.actuated))
    for candidate in (drives, plan.independent if not plan.slipping else _inner(system, allowed)):
        if allowed.quality(candidate) > _GOOD:
            return list(candidate)
    return allowed.completed((), allowed.free)


def _inner(system: System, allowed: _Allowed) -> list[int]:
    """Independent speeds of a machine that rolls: those of joints between its bodies before those on the ground. How
    wheels turn and frames lean is steady in steady motions, the place of a machine on a circle is not."""
    tree = system.model.tree
    ground = {int(tree.u_start[k]) + i for k, joint in enumerate(tree.joints) if joint is not None
              and not tree.parent[k] for i in range(joint.nu)}
    return allowed.completed((), allowed.free, ground)


def placed_speeds(system: System, q: Floats, t: float, independent: Sequence[int], held: Sequence[int] = (),
                  wanted: Sequence[int] = ()) -> list[int]:
    """Speeds whose displacements determine the position: the independent ones and, where constraints bind speeds alone,
    others besides: those wanted, else the plan's if they are good coordinates there, else the best by pivoting."""
    every = [*independent, *(v for v in wanted if v not in independent)]
    if not system.model.tree.looped or (len(every) == len(independent) and system.plans.loops.on_positions.all()):
        return every
    allowed = _Allowed(system, q, t, held, slipping=True)
    usual = [*every, *(v for v in system.plans.reference_near(q, t).plan.slipping if v not in every)]
    placed = usual if allowed.quality(usual) > _GOOD else allowed.completed(every, allowed.free)
    if allowed.quality(placed) < _NONE:
        raise ModelError(f"{_undescribed(system, wanted)}: it needs {len(independent)} speeds that determine all "
                         f"others, and displacements of {allowed.ways}, these among them")
    return placed


def _undescribed(system: System, wanted: Sequence[int]) -> str:
    names = ", ".join(system.speed_names[v] for v in wanted)
    return f"{system.model.name!r} cannot be described by {names} in this position"


def independent_names(system: System, state: State) -> tuple[str, ...]:
    """Names of the speeds that determine all others in one state if nobody says which, then of those whose
    displacements can be chosen besides: those that `compile` was asked to have, or those of the machine cut as usual,
    so that they do not depend on where its loops are cut."""
    options, usual = system.model.options, usual_plans(system.plans, alike=False)
    own = Chart.at(system, state.q, state.t)
    if usual is not None and not set(own.independent) <= _entries(system, (*options.actuated, *options.independent)):
        system = type(system)(usual.kernels, usual)
        own = Chart.at(system, state.q, state.t)
    return tuple(system.speed_names[v] for v in own.placed)


def _entries(system: System, joints: Iterable[str]) -> set[int]:
    """Speeds of some joints, or coordinates, that have places in u."""
    configuration, cut = system.model.configuration, system.model.tree.cut_names
    return {v for name in joints if configuration.split(name)[0] not in cut for v in configuration.speed_entries(name)}


def speed_labels(system: System) -> tuple[str, ...]:
    """Names of the speeds, those of joints that have only one by the joint's own name."""
    return tuple(r.name if r.joint.nu == 1 else f"{r.name}.{c}" for r in system.model.configuration.records
                 for c in r.joint.speed_names)


def state_entries(system: System) -> list[int]:
    """The places of states of elements among the speeds."""
    configuration = system.model.configuration
    return [configuration.starts[s.name][1] for s in system.model.mechanism.states]


def with_laws(system: System, q: Floats, u: Floats, t: npt.ArrayLike) -> tuple[Floats, Floats]:
    """q and u with the entries of prescribed joints as their laws say at time t."""
    return assembly.with_laws(system.plans, q, u, t)


def force_arrays(system: System, tau: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None,
                 states: tuple[int, ...] | None = None) -> Floats:
    """Joint forces (..., nu) from an array or from {joint: value}; zero if not given. With the batch axes of `states`,
    if these are given."""
    if tau is None:
        return np.zeros((*(states or ()), system.nu))
    out = flat("tau", system.model.configuration.forces(tau), system.nu, "one for every speed")
    if not np.isfinite(out).all():
        raise StateError(f"tau: needs {system.nu} finite numbers, got shape {out.shape}")
    try:
        return (out if states is None else np.broadcast_to(out, (*states, system.nu))).copy()
    except ValueError:
        raise StateError(f"tau: needs the shape {(*(states or ()), system.nu)}, or that of one state, got {out.shape}"
                         ) from None


def closed_states(system: System, state: State | tuple[npt.ArrayLike, npt.ArrayLike], t: npt.ArrayLike | None, what: str
                  ) -> npt.NDArray[np.object_]:
    """Closed states (see `closed_state`), with the batch axes of the given one, as an array of objects."""
    one_machine(system)
    q, u, own = parts_of(state, system.model.configuration.state_names, what)
    lead = np.shape(q)[:-1] if getattr(q, "ndim", 1) != 1 else ()
    each = np.empty(lead, dtype=object)
    if not lead:
        each[()] = closed_state(system, state, None if t is None else one_time(t), what)
        return each
    when = own if t is None else t
    try:
        places, speeds = (np.broadcast_to(np.asarray(x, dtype=float), (*lead, np.shape(x)[-1])) for x in (q, u))
        times = np.broadcast_to(np.asarray(when, dtype=float), lead)
    except (TypeError, ValueError, IndexError):
        raise StateError(f"{what}: q, u and t of a batch need shapes (..., {system.nq}), (..., {system.nu}) and (...), "
                         f"got {', '.join(str(np.shape(x)) for x in (q, u))} and {np.shape(when)}") from None
    for index in np.ndindex(*lead):
        each[index] = closed_state(system, (places[index], speeds[index]), float(times[index]), what)
    return each


def closed_state(system: System, state: State | tuple[npt.ArrayLike, npt.ArrayLike], t: float | None, what: str
                 ) -> State:
    """One state, checked: right sizes, finite, loops closed. `t` overrides the state's own time."""
    q, u, own = parts_of(state, system.model.configuration.state_names, what)
    position, speed = flat("q", q, system.nq, "the coordinates"), flat("u", u, system.nu, "one for every speed")
    if position.ndim != 1 or speed.ndim != 1:
        raise StateError(f"{what}: one state at a time; q has shape {position.shape}")
    check_finite(what, "q", position, system.coordinate_names)
    check_finite(what, "u", speed, system.speed_names)
    when = one_time(own if t is None else t)
    if system.model.tree.looped:
        gap, rate = system.loop_error(position, t=when), system.loop_rate_error(position, speed, t=when)
        share, drift = (float(np.abs(system.plans.loops.shares(x)).max(initial=0.0)) for x in (gap, rate))
        fast = float(np.abs(speed / system.model.tree.speed_sizes).max(initial=0.0))
        if share > 0.1 * OPEN or drift > OPEN * (1.0 + fast):
            raise StateError(f"{what}: the loops of {system.model.name!r} are open by {np.abs(gap).max():.3g} (rate "
                             f"{np.abs(rate).max():.3g}); use assemble() or project()")
    return system.model.configuration.state(*with_laws(system, system.normalize(position), speed.copy(), when), when)


def driven_entries(system: System, keys: Iterable[str], what: str) -> list[int]:
    """Speeds of joints or coordinates by name; prescribed ones are refused."""
    mask = system.model.bound_mask()
    out: list[int] = []
    for key in keys:
        entries = system.model.configuration.speed_entries(key)
        if mask[entries].any():
            raise ModelError(f"{what}: joint {key!r} follows a prescribed motion already")
        out += entries
    return list(dict.fromkeys(out))


# -- the same machine with links at joints that close loops, for questions that hold or drive these ---
def with_links(system: System, *given: Any) -> System | None:
    """The machine in which joints or coordinates that are given by name, as mappings or sequences, and those that are
    locked have links; None if they have, or if loops of the machine were opened or bodies taken out of it since it was
    compiled. Cost: that of `compile`, once for each set of joints."""
    model = system.model
    keys = [key for names in given if isinstance(names, (Mapping, Sequence, Set)) and not isinstance(names, str)
            for key in names if isinstance(key, str)]
    if model.released or model.absent or not (keys or model.locked):
        return None
    closing = [c.name for c in model.tree.closures if c.is_joint]
    named = {*(model.configuration.split(key)[0] for key in keys), *(joint for joint, _ in model.locked)}
    joints = tuple(name for name in closing if name in named)
    if not joints:
        return None
    wide: System = system.kernels.kept(("with links", joints), lambda: _made(system, closing, joints))
    return wide.with_parameters(**model.values)


def guess_with_links(system: System, guess: Any, t: float, what: str) -> State:
    """A guess for that machine: joints at which loops are cut are where they are when the guess is closed, unless it
    names them."""
    one_machine(system)
    found = system.assemble(guess=guess, t=t)
    q, named = near(system.plans, "guess", guess, what, many=True), set[str]()
    if isinstance(guess, Mapping):
        named = {system.model.configuration.split(key)[0] for key in guess}
    for own in system.model.tree.loop_joints:
        if own.name not in named:
            q[..., own.q] = found.q[..., own.q]
    return found.replace(q, guess.u if isinstance(guess, State) else None)


def _made(system: System, closing: Sequence[str], joints: Sequence[str]) -> System:
    """The machine with carriers at some of its joints; what `compile` was asked for stays as it is."""
    model, maker = system.model, system.kernels.maker
    made = compiled(model.mechanism, model.method, maker.backend, schedule=maker.schedule, threads=maker.threads,
                    precision=maker.precision, cut=closing, actuated=joints, baumgarte=model.options.baumgarte)
    made = type(made)(Kernels(replace(made.model, options=model.options), maker))
    return made.lock(*arrangement_of(system).locked) if model.locked else made


# -- following a closed machine along functions of a parameter --------------------------------------
Mask = npt.NDArray[np.bool_]
#: Newton steps of positions between two of a walk
_NEWTON = 8


class Follower(Walker):
    """Follows positions; `put` sets the driven coordinates of q for a parameter, of which `unit` is an ordinary change;
    `clock` gives the time."""

    def __init__(self, closer: GivenSpeeds, put: Callable[[Floats, float], Floats], clock: Callable[[float], float],
                 *, resolution: float, unit: float = 1.0) -> None:
        system = closer.system
        super().__init__(system.integrate, system.normalize, system.difference, resolution=resolution,
                         lengths=system.model.tree.speed_sizes, unit=unit)
        self.closer, self._put, self.clock = closer, put, clock

    def put(self, q: Floats, at: float) -> Floats:
        """q with the driven coordinates as the parameter wants them."""
        return self._put(q, at)

    def newton(self, q: Floats, at: float) -> tuple[float, Floats]:
        """What is left open, and the plain Newton step of all speeds that would close it."""
        return self.closer.newton(q, self.clock(at))

    def closed_together(self, q: Floats, t: Floats, way: Floats) -> tuple[Floats, Mask]:
        """Positions (n, nq) between two of a walk, which are `way` apart, closed by Newton's method, and which of them
        are so beyond doubt: its steps shrink at once (as in a walk), and are short beside the way."""
        found, good = q.copy(), np.ones(len(q), dtype=bool)
        if not self.closer.looped:
            return found, good
        plans, target, going = self.closer.system.plans, self.closer.target, np.arange(len(q))
        before, total = np.full(len(q), np.inf), np.zeros(len(q))
        for _ in range(_NEWTON):
            if not len(going):
                break
            near, at = plans.closer.near, found[going]
            step = plans.closer.newton(at, t[going], target)[1] if near is None else \
                near.newton(at, target.held, target.weights, t[going])[1]
            length = np.abs(step / self.lengths).max(axis=-1, initial=0.0)
            total[going] += length
            fair = np.isfinite(length) & (total[going] <= np.maximum(0.25 * way[going], WALKED)) & (
                (length <= CONTRACTION * before[going]) | (length <= WALKED))
            good[going] &= fair
            found[going[fair]] = self.normalize(self.integrate(at[fair], step[fair]))
            before[going] = length
            going = going[fair & (length > WALKED)]
        good[going] = False
        return found, good

    def loosest(self, q: Floats, at: float) -> str:
        """The joint that moves most along the direction the drives lose."""
        speed = self.closer.loosest(q, self.clock(at))
        return "none" if speed is None else self.closer.system.speed_names[speed].rpartition(".")[0]


# -- the same kind of object for every state of a batch, used as if it were one ---------------------
class StateBatch:
    """Objects at the states of a batch. Its attributes, methods and products are those of each object; arrays that come
    out are stacked, so that they have the axes of the batch first, and tuples of arrays likewise; what else comes out
    is a batch again. ``batch[i]`` is the object of one state.

    >>> import numpy as np
    >>> batch = StateBatch.of((2,), lambda index: np.ones((3, 1)) * index[0])
    >>> batch.T.shape, batch.sum()
    ((2, 1, 3), array([0., 3.]))
    """

    def __init__(self, each: npt.NDArray[np.object_]) -> None:
        self._each = each

    @staticmethod
    def of(lead: tuple[int, ...], make: Callable[[tuple[int, ...]], Any]) -> StateBatch:
        """What `make` makes for every index of a batch with these axes."""
        each = np.empty(lead, dtype=object)
        for index in np.ndindex(*lead):
            each[index] = make(index)
        return StateBatch(each)

    def __getitem__(self, index: Any) -> Any:
        found = self._each[index]
        return StateBatch(found) if isinstance(found, np.ndarray) and found.dtype == object else found

    def __len__(self) -> int:
        return len(self._each)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of copying and pickling
            raise AttributeError(name)
        return self._gathered(lambda index, x: getattr(x, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._gathered(lambda index, x: x(*(self._at(a, index) for a in args), **kwargs))

    def __matmul__(self, other: Any) -> Any:
        return self._gathered(lambda index, x: x @ self._at(other, index))

    def __repr__(self) -> str:
        first = repr(self._each.flat[0]) if self._each.size else "nothing"
        return f"<batch {self._each.shape} of {first}>"

    def _at(self, value: Any, index: tuple[int, ...]) -> Any:
        """The part of an argument that belongs to a state: of another batch, of an array with this one's axes."""
        if isinstance(value, StateBatch):
            return value[index]
        lead = self._each.shape
        return value[index] if isinstance(value, np.ndarray) and value.shape[:len(lead)] == lead else value

    def _gathered(self, ask: Callable[[tuple[int, ...], Any], Any]) -> Any:
        lead = self._each.shape
        found = [ask(index, self._each[index]) for index in np.ndindex(*lead)]
        if found and isinstance(found[0], tuple) and all(isinstance(x, np.ndarray) for x in found[0]):
            parts = [_stacked(lead, part) for part in zip(*found, strict=True)]
            return type(found[0])(*parts) if hasattr(found[0], "_fields") else tuple(parts)
        if found and all(isinstance(x, (np.ndarray, float)) for x in found):
            return _stacked(lead, found)
        return StateBatch.of(lead, dict(zip(np.ndindex(*lead), found, strict=True)).__getitem__)


def _stacked(lead: tuple[int, ...], parts: Any) -> npt.NDArray[Any]:
    each = np.array(parts)
    return np.asarray(each.reshape(*lead, *each.shape[1:]), dtype=np.result_type(each, float))
