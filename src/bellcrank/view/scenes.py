"""A scene of whatever there is: a description, a machine, a state of it, a run, several of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.arrays import Floats, how_many
from bellcrank.compiled.compile import compile
from bellcrank.errors import AssemblyError, BellcrankError, ModelError, StateError
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.simulate.result import Result
from bellcrank.system.kernels import Wrenches
from bellcrank.system.machine_functions import Machine
from bellcrank.system.state import State, coordinates_of
from bellcrank.view.force_curves import force_curves
from bellcrank.view.frame_algebra import triple_of, turned
from bellcrank.view.scene import PALETTE, Arrow, Scene, SceneModel, Trace, Track
from bellcrank.view.scene_arrows import arrows_of, scales_of
from bellcrank.view.scene_models import Numbers, model_of, upward
from bellcrank.view.scene_tracks import (
    chosen_frames,
    curves_of,
    finite,
    frames_passed,
    own_samples,
    still_track,
    track_of,
)

__all__ = ["MOST_FRAMES", "MOST_SAMPLES", "RATE", "scene_of"]

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
