"""A scene of whatever there is: a description, a machine, a state of it, a run, several of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import xarray

from bellcrank.arrays import Floats, how_many, wrench_array
from bellcrank.compiled.compile import compile
from bellcrank.errors import AssemblyError, BellcrankError, ModelError, StateError
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.simulate.outside_forces import wrenches_on_record
from bellcrank.simulate.result import Result
from bellcrank.simulate.turning import continuous_turns, unit_quaternions
from bellcrank.system.kernels import Wrenches
from bellcrank.system.machine_functions import Machine
from bellcrank.system.state import State, coordinates_of
from bellcrank.view.force_curves import force_curves, output_curves
from bellcrank.view.scene import PALETTE, Arrow, PlottedCurve, Scene, SceneModel, Trace, Track, triple_of, turned
from bellcrank.view.scene_models import Numbers, amplitudes, model_of, upward

__all__ = ["MOST_FRAMES", "MOST_SAMPLES", "RATE", "chosen_frames", "own_samples", "scene_of"]


# -- forces and moments as arrows: of joints, of springs and other elements between bodies, and from outside ---
#: arrows are as long as a part where the force is this quantile of all: a peak at a dead point does not hide others
_QUANTILE = 0.9


def arrows_of(result: Result, system: Machine, model: SceneModel, track: Track, wrenches: Wrenches = None
              ) -> tuple[Arrow, ...]:
    """All arrows of a run; `track` has the poses of its samples. Cost: that of `Result.reactions`."""
    wrenches = wrenches_on_record(result, ("time",)) if wrenches is None else wrenches
    return (*_reactions(result, model, track, wrenches), *_springs(result, model, track),
            *_elements(result, system, track), *_touching(result, system, track), *_outside(system, track, wrenches))


def scales_of(arrows: Sequence[Arrow]) -> tuple[float, float]:
    """The force and the moment that are drawn as long as a usual part: high quantiles of what there is."""
    def high(parts: list[Floats]) -> float:
        sizes = np.concatenate([np.linalg.norm(p, axis=1) for p in parts]) if parts else np.zeros(0)
        sizes = sizes[np.isfinite(sizes)]
        sizes = sizes[sizes > 1e-9 * sizes.max(initial=0.0)]
        return float(np.quantile(sizes, _QUANTILE)) if len(sizes) else 1.0

    return high([a.force for a in arrows]), high([a.moment for a in arrows])


def _reactions(result: Result, model: SceneModel, track: Track, wrenches: Wrenches) -> Iterator[Arrow]:
    table = result.reactions(wrenches=wrenches)
    values = {str(name): table.sel(joint=name).transpose("time", "component").values
              for name in table["joint"].values.tolist()}
    for joint in model.joints:
        if joint.name not in values:
            continue
        body, at = joint.child, joint.child_pose[0]
        moment, force = (turned(track.turns[:, body], part)
                         for part in (values[joint.name][:, :3], values[joint.name][:, 3:]))
        sign = -1.0 if body == 0 else 1.0  # what acts on the ground acts back on the machine: that is shown
        yield Arrow(joint.name, "reaction", body, triple_of(at), sign * force, sign * moment)


def _springs(result: Result, model: SceneModel, track: Track) -> Iterator[Arrow]:
    for e in model.extensions:
        if e.kind == "rod":
            continue
        size = np.asarray(result.forces(e.name).values, dtype=float)
        ends = [track.positions[:, b] + turned(track.turns[:, b], np.array(p))
                for b, p in ((e.first, e.first_point), (e.second, e.second_point))]
        line = ends[1] - ends[0]
        line = line / np.maximum(np.linalg.norm(line, axis=1, keepdims=True), 1e-300)
        none = np.zeros(line.shape)
        for body, point, sign in ((e.first, e.first_point, -1.0), (e.second, e.second_point, 1.0)):
            if body:
                yield Arrow(e.name, "spring", body, point, sign * size[:, None] * line, none)


def _elements(result: Result, system: Machine, track: Track) -> Iterator[Arrow]:
    """Bushings and drag, which act on their (second) body; wrenches that belong to the machine."""
    mechanism = system.model.mechanism
    numbers = Numbers(mechanism, system.model.values)
    for name, body, at in (*((b.name, b.second, b.second_pose.position) for b in mechanism.bushings),
                           *((d.name, d.body, d.at) for d in mechanism.drags)):
        if body:
            yield _of_element(result, track, name, "spring", body, numbers.all(at))
    for w in mechanism.wrenches:
        if w.law is not None:
            yield _of_element(result, track, w.name, "wrench", w.body, numbers.all(w.at))
            continue
        force, moment = (np.stack([_over_time(x, track.times, numbers) for x in part], axis=1)
                         for part in (w.force, w.moment))
        if w.axes == "body":
            force, moment = (turned(track.turns[:, w.body], x) for x in (force, moment))
        yield Arrow(w.name, "wrench", w.body, triple_of(numbers.all(w.at)), force, moment)


def _of_element(result: Result, track: Track, name: str, kind: str, body: int, at: Floats) -> Arrow:
    """What an element exerts on a body, moved to a point of that."""
    found = result.element(name).transpose("time", ...)
    force, point = found["vector"].values, track.positions[:, body] + turned(track.turns[:, body], at)
    return Arrow(name, kind, body, triple_of(at), force,
                 found["torque"].values + np.cross(found["second_point"].values - point, force))


def _touching(result: Result, system: Machine, track: Track) -> Iterator[Arrow]:
    """Contacts, place by place, on the second body, or on the first where that is the ground. Arrows stand at points of
    bodies: where the place wanders over the body, as under a wheel, at the middle of its way."""
    for contact in system.model.mechanism.contacts:
        if contact.rigid and "contact_force" not in result:
            continue
        found = result.element(contact.name).transpose("time", "place", "axis", ...)
        body, sign = (contact.second, 1.0) if contact.second else (contact.first, -1.0)
        normal, size = found["normal"].values, np.nan_to_num(found["normal_force"].values)
        force = np.nan_to_num(sign * (normal * size[..., None] + found["friction"].values))
        points = found["point"].values - track.positions[:, None, body]
        for k in np.flatnonzero((size > 0.0).any(axis=0)):
            own = turned(track.turns[:, body] * (1.0, -1.0, -1.0, -1.0), points[:, k])[size[:, k] > 0.0]
            yield Arrow(contact.name, "spring", body, triple_of(0.5 * (own.min(axis=0) + own.max(axis=0))), force[:, k],
                        np.zeros((len(force), 3)))


def _over_time(value: Any, times: Floats, numbers: Numbers) -> Floats:
    if callable(value):
        return np.array([numbers.one(value(float(t))) for t in times])
    return np.full(len(times), numbers.one(value))


def _outside(system: Machine, track: Track, wrenches: Wrenches) -> Iterator[Arrow]:
    """External wrenches, as far as they are given: world axes, about the origins of bodies."""
    if wrenches is None:
        return
    given = wrench_array(wrenches, system.body_names)
    given = np.broadcast_to(given, (len(track.times), *given.shape[-2:]))
    named = list(wrenches) if isinstance(wrenches, Mapping) else list(system.body_names)
    for i, name in enumerate(system.body_names):
        if name in named and np.any(given[:, i]):
            yield Arrow(name, "wrench", i + 1, (0.0, 0.0, 0.0), given[:, i, 3:], given[:, i, :3])


# -- how a machine moves: poses, amplitudes, arrows and curves of one run, or of one state ----------
#: frames of runs that are too short for so many a second
_FEW = 240
#: what a body turns [rad] and moves, as a part of the machine's length, from one frame to the next
_TURN, _WAY = np.pi / 12, 0.2
#: intervals of a run of which curves show the smallest and the largest value
_INTERVALS = 4000
_VARIABLES = {"kinetic_energy": "kinetic", "potential_energy": "gravity", "stored_energy": "stored",
              "energy": "total"}
_STATES = (("q", "coordinate", "coordinate_units", "coordinates"), ("u", "speed", "speed_units", "speeds"),
           ("tau", "speed", "force_units", "forces"))


def chosen_frames(passed: Floats, most: int, few: int = _FEW) -> Any:
    """Samples to draw: all of them if they are few, or those nearest to whole numbers of `passed` (n,), which grows by
    one from a frame to the next that it needs; at least `few` and at most `most`."""
    n = len(passed)
    wanted = int(min(most, max(few, np.ceil(passed[-1] - passed[0]) + 1.0))) if n else 0
    if n <= wanted:
        return np.arange(n)
    grid = np.linspace(passed[0], passed[-1], wanted)
    after = np.clip(np.searchsorted(passed, grid), 1, n - 1)
    nearest = np.where(grid - passed[after - 1] <= passed[after] - grid, after - 1, after)
    return np.unique(nearest)


def frames_passed(system: Machine, q: Floats, t: Floats, rate: float, length: float) -> Floats:
    """How many frames have passed at every sample, (n,): so many a second, or more where bodies turn by more than
    15 degrees or move by more than a part of the machine's length between two."""
    positions, turns = _poses(system, q, t)
    cosines = np.abs(np.einsum("nbi,nbi->nb", turns[1:], turns[:-1])).clip(0.0, 1.0)
    angle = 2.0 * np.arccos(cosines).max(axis=1, initial=0.0)
    way = np.linalg.norm(np.diff(positions, axis=0), axis=2).max(axis=1, initial=0.0)
    each = np.maximum(np.maximum(angle / _TURN, way / (_WAY * length)), np.diff(t) * rate)
    return np.concatenate([[0.0], np.cumsum(each)])


def own_samples(curve: PlottedCurve, times: Floats) -> PlottedCurve:
    """A curve with all samples of a run, or with the smallest and the largest of each of many intervals."""
    n = len(times)
    if n <= 2 * _INTERVALS:
        return replace(curve, times=times)
    starts = np.linspace(0, n, _INTERVALS + 1).astype(np.int64)
    some = [np.unique(a + np.array([part.argmin(), part.argmax()])) for a, b in pairwise(starts.tolist())
            if len(part := np.nan_to_num(curve.values[a:b]))]
    kept = np.unique(np.concatenate([[0], *some, [n - 1]]))
    return replace(curve, times=times[kept], values=curve.values[kept])


def _poses(system: Machine, q: Floats, t: Floats) -> tuple[Floats, Floats]:
    """Of the ground and all bodies, (frames, bodies, 3) and (frames, bodies, 4)."""
    found = system.pose(q, t=t)
    frames = len(q)
    turns = continuous_turns(unit_quaternions(np.asarray(found.rotation)), ("time", "body"))
    here = np.broadcast_to(np.array([1.0, 0.0, 0.0, 0.0]), (frames, 1, 4))
    return (np.concatenate([np.zeros((frames, 1, 3)), found.position], axis=1),
            np.concatenate([here, turns], axis=1))


def _amplitudes(system: Machine, q: Floats) -> tuple[Floats, ...]:
    configuration = system.model.configuration
    return tuple(amplitudes(r.joint.body, q[:, (i := configuration.starts[r.name][0]):i + r.joint.nq])
                 for r in system.model.mechanism.joints if isinstance(r.joint, Modal))


def still_track(system: Machine, q: Floats, t: float = 0.0, *, model: int = 0, label: str = "") -> Track:
    """One state."""
    where = _poses(system, np.asarray(q, dtype=float)[None], np.array([t]))
    return Track(model, label, np.array([t]), *where, _amplitudes(system, np.asarray(q, dtype=float)[None]))


def track_of(result: Result, system: Machine, model: int = 0, label: str = "", arrows: tuple[Arrow, ...] = ()) -> Track:
    """The motion of one run without other dimensions than time; all its samples must be finite."""
    q = np.asarray(result["q"].transpose("time", "coordinate").values, dtype=float)
    t = np.asarray(result["time"].values, dtype=float)
    return Track(model, label, t, *_poses(system, q, t), _amplitudes(system, q), arrows)


def curves_of(result: xarray.Dataset) -> tuple[PlottedCurve, ...]:
    """What can be plotted beside the picture: energies, coordinates, speeds, forces, loop errors."""
    found = [PlottedCurve("energy", short, "J", np.asarray(result[name].values, dtype=float))
             for name, short in _VARIABLES.items() if name in result and np.ptp(result[name].values) > 0.0]
    for variable, label, units, group in _STATES:
        if variable not in result or label not in result[variable].dims:
            continue
        values = result[variable].transpose("time", label).values
        each = np.atleast_1d(result[units].values) if units in result.coords else np.full(values.shape[1], "")
        found += [PlottedCurve(f"{group} [{each[i]}]", str(name), str(each[i]), np.asarray(values[:, i], dtype=float))
                  for i, name in enumerate(np.atleast_1d(result[label].values))]
    found += output_curves(result)
    if "loop_error" in result and np.any(result["loop_error"].values):
        gap = np.asarray(result["loop_error"].values, dtype=float)
        found.append(PlottedCurve("loop error", "loop error", "m", gap))
    return tuple(found)


def finite(result: Result) -> Result:
    """Without samples that are not finite, which a run that failed leaves behind."""
    good = np.isfinite(result["q"].transpose("time", "coordinate").values).all(axis=1)
    return result if good.all() else result.isel(time=np.flatnonzero(good))


#: pictures a second, pictures in all, samples of a batch that a scene has at most, and poses of all of these
RATE, MOST_FRAMES, MOST_SAMPLES, MOST_POSES = 60.0, 3000, 16, 300_000

TracePoint = str | tuple[str, Sequence[float]]


def scene_of(*things: Any, labels: Sequence[str] | None = None, traces: Sequence[TracePoint] = (),
             forces: bool | None = None, wrenches: Wrenches = None, frames: int | None = None,
             side_by_side: bool | None = None, title: str | None = None) -> Scene:
    """A scene of mechanisms, systems, (system, state) pairs and results; several are several tracks.

    `labels` name them. `traces` are bodies, or (body, point in its frame), whose paths are drawn. `forces`: whether
    arrows of reactions, springs and wrenches are computed (None: if the machine is not large); `wrenches` are
    external ones that acted. `frames` are so many samples of a run (None: 60 a second, more where bodies turn fast,
    3000 at most). Batches are laid `side_by_side`; several results lie over each other unless it is true.
    """
    if not things:
        raise ModelError("a picture needs something to show: a mechanism, a system, or a result")
    maker = _Maker(forces, wrenches, None if frames is None else how_many("frames", frames, 2))
    for i, thing in enumerate(things):
        maker.add(thing, labels[i] if labels is not None and i < len(labels) else None)
    if not maker.systems:
        raise StateError(f"a picture needs a state to show: {'; '.join(maker.notes) or 'the result has none'}")
    beside = maker.batched if side_by_side is None else side_by_side
    tracks = maker.tracks
    if len(tracks) > 1:
        tracks = [replace(track, color=PALETTE[i % len(PALETTE)]) for i, track in enumerate(tracks)]
    first = maker.systems[0]
    numbers = Numbers(first.model.mechanism, {k: np.ravel(v)[0] for k, v in first.model.values.items()})
    up = upward(first.model.mechanism, numbers.one)
    up, view = _look(maker.models[0], tracks[0], up)
    return Scene(title or first.model.name, tuple(maker.models), tuple(tracks),
                 tuple(_trace(maker.models[0], point) for point in traces), triple_of(up), triple_of(view), beside,
                 scales_of([a for t in tracks for a in t.arrows]), {}, tuple(dict.fromkeys(maker.notes)),
                 tuple(dict.fromkeys(maker.about)))


class _Maker:
    """Collects models and tracks."""

    def __init__(self, forces: bool | None, wrenches: Wrenches, frames: int | None) -> None:
        self.forces, self.wrenches, self.frames = forces, wrenches, frames
        self.models: list[SceneModel] = []
        self.tracks: list[Track] = []
        self.systems: list[Machine] = []
        self.notes: list[str] = []
        self.about: list[str] = []
        self.batched = False
        self._known: dict[Any, int] = {}

    def add(self, thing: Any, label: str | None) -> None:
        """One of what `scene_of` takes."""
        if isinstance(thing, Mechanism):
            thing = compile(thing, backend="numpy", lock="massless")
        if isinstance(thing, Machine):
            thing = (thing, None)
        if isinstance(thing, Result):
            self._result(thing, label)
        elif isinstance(thing, tuple) and len(thing) == 2 and isinstance(thing[0], Machine):
            self._state(thing[0], thing[1], label)
        else:
            raise ModelError(f"a picture shows mechanisms, systems, (system, state) pairs and results, not a "
                             f"{type(thing).__name__}")

    def _model(self, system: Machine) -> int:
        """The number of a machine's look; machines alike have one."""
        values = {k: float(np.ravel(v)[0]) for k, v in system.model.values.items()}
        key = (id(system.model.mechanism), tuple(sorted(values.items())))
        if key not in self._known:
            self._known[key] = len(self.models)
            self.models.append(model_of(system.model.described, values, system.model.tree.cut_names))
        self.systems.append(system)
        return self._known[key]

    def _state(self, system: Machine, state: Any, label: str | None) -> None:
        model = self._model(system)
        if state is None:
            q, note = _position(system)
            self.notes += [note] * bool(note)
        else:
            q = np.asarray(coordinates_of(state, system.model.configuration.state_names, "a picture"), dtype=float)
        if q.shape != (system.nq,):
            raise StateError(f"a picture of a state needs one q of {system.nq} coordinates, got shape {q.shape}")
        t = float(state.t) if isinstance(state, State) and np.ndim(state.t) == 0 else 0.0
        self.tracks.append(still_track(system, q, t, model=model, label=label or system.model.name))

    def _result(self, result: Result, label: str | None) -> None:
        system = result.rebuild().system
        assert system is not None
        if "time" not in result["q"].dims:
            result = result.expand_dims("time")
        batch = [d for d in result["q"].dims if d not in ("time", "coordinate")]
        if not batch:
            self._run(result, system, label or system.model.name)
            return
        self.batched = True
        stacked = result.stack(every=batch) if len(batch) > 1 else result.rename({batch[0]: "every"})
        count, shape = int(stacked.sizes["every"]), tuple(result.sizes[d] for d in batch)
        if count > MOST_SAMPLES:
            self.about.append(f"{MOST_SAMPLES} of {count} runs are shown")
        for i in np.unique(np.linspace(0, count - 1, min(count, MOST_SAMPLES)).astype(int)).tolist():
            values = {k: np.broadcast_to(v, shape).ravel()[i] for k, v in system.model.values.items() if np.ndim(v)}
            one = system.with_parameters(**values) if values else system
            run = stacked.isel(every=i).drop_vars("every", errors="ignore")
            said = ", ".join(f"{k} = {float(v):.4g}" for k, v in list(values.items())[:2]) or f"sample {i}"
            self._run(run.with_system(one), one, f"{label}: {said}" if label else said)

    def _run(self, result: Result, system: Machine, label: str) -> None:
        result = finite(result)
        if not result.sizes["time"]:
            self.notes.append(f"{label}: there is no state, or none is finite")
            return
        model = self._model(system)
        some = self._frames(result, system, self.models[model].length)
        whole, times = result, np.asarray(result["time"].values, dtype=float)
        if len(some) < len(times):
            self.about.append(f"{len(some)} of {len(times)} samples are shown")
            result = result.isel(time=some).with_system(system)
        track = track_of(result, system, model, label)
        arrows = self._arrows(result, system, self.models[model], track)
        forces = force_curves(result, system, arrows) if arrows else ()
        curves = curves_of(whole)
        if len(some) < len(times):
            curves = tuple(own_samples(curve, times) for curve in curves)
        self.tracks.append(replace(track, arrows=arrows, curves=(*curves, *forces)))

    def _frames(self, result: Result, system: Machine, length: float) -> Any:
        """Samples of a run that are frames."""
        times = np.asarray(result["time"].values, dtype=float)
        poses = max(2, MOST_POSES // (len(system.body_names) + 1))
        if self.frames is not None:
            asked = min(self.frames, poses)
            return chosen_frames(times, asked, asked)
        thin = slice(None, None, 1 + len(times) // (10 * poses))  # of very long runs, motion is looked at in part
        q = np.asarray(result["q"].transpose("time", "coordinate").values, dtype=float)[thin]
        passed = frames_passed(system, q, times[thin], RATE, length)
        most = min(MOST_FRAMES, poses)
        if passed[-1] > 4 * most:
            self.about.append("bodies move far from one frame to the next: show a shorter part of the run, or give "
                              f"frames={int(passed[-1])}")
        return chosen_frames(np.interp(times, times[thin], passed), most)

    def _arrows(self, result: Result, system: Machine, model: SceneModel, track: Track) -> tuple[Arrow, ...]:
        joints = len(system.model.mechanism.joints)
        if self.forces is False or (self.forces is None and joints * len(track.times) > MOST_POSES):
            return ()
        try:
            return arrows_of(result, system, model, track, self.wrenches)
        except BellcrankError as error:
            if self.forces:
                raise
            self.notes.append(f"no forces are shown: {error}")
            return ()


def _position(system: Machine) -> tuple[Floats, str]:
    """A position to show: closed if it can be found, else the neutral one, and what is to be said about it."""
    assemble = getattr(system, "assemble", None)
    if assemble is None or not system.model.tree.looped:
        return system.neutral(), ""
    try:
        return np.asarray(assemble().q), ""
    except AssemblyError as error:
        return system.neutral(), f"the loops are open: {str(error).splitlines()[0]}"


def _trace(model: SceneModel, point: TracePoint) -> Trace:
    name, at = (point, None) if isinstance(point, str) else point
    for i, body in enumerate(model.bodies):
        if body.name == name:
            return Trace(i, body.com if at is None else triple_of(at), name)
    raise ModelError(f"traces: no body called {name!r}; there are {', '.join(b.name for b in model.bodies[1:])}")


def _look(model: SceneModel, track: Track, up: Floats) -> tuple[Floats, Floats]:
    """Which way is up, and from where one looks: at flat machines from the front, at others from a corner."""
    axes = [turned(track.turns[0, j.parent], turned(j.parent_pose[1], np.array(a))) for j in model.joints
            for a in (j.axes if j.kind in ("Revolute", "Screw") else ())]
    flat = bool(axes) and all(abs(abs(float(a @ axes[0])) - 1.0) < 1e-6 for a in axes) and not any(
        j.kind in ("Spherical", "Universal", "Free", "Cylindrical") for j in model.joints)
    if flat:
        front = axes[0] if axes[0].sum() >= 0.0 else -axes[0]
        if abs(float(front @ up)) > 0.9:  # seen from above
            up = np.array([0.0, 1.0, 0.0]) if abs(front[1]) < 0.9 else np.array([0.0, 0.0, 1.0])
        side = np.cross(up, front)
        return up, front + 0.28 * side + 0.22 * up
    side = np.array([1.0, 0.0, 0.0]) if abs(up[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    side = side - up * float(side @ up)
    side = side / np.linalg.norm(side)
    return up, side + 1.5 * np.cross(side, up) + 0.7 * up
