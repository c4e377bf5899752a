"""Forces and moments as arrows: of joints, of springs and other elements between bodies, and from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.arrays import Floats, wrench_array
from bellcrank.simulate.outside_forces import wrenches_on_record
from bellcrank.simulate.result import Result
from bellcrank.system.kernels import Wrenches
from bellcrank.system.machine_functions import Machine
from bellcrank.view.frame_algebra import triple_of, turned
from bellcrank.view.scene import Arrow, SceneModel, Track
from bellcrank.view.scene_models import Numbers

__all__ = ["arrows_of", "scales_of"]

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
