"""A scene as bytes for the page: JSON for what has names, float32 for what has frames.

The bytes are: the length of the JSON (four bytes, little endian), the JSON, and all floats with their bytes laid plane
by plane (all first bytes, then all second ones), which `gzip` packs far better. Numbers are rounded to what a picture
shows: positions to 1e-5 of the machine's usual length, turns to 2^-17. `viewer/src/decoding.js` reads it.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.view.scene import (
    Arrow,
    DrawnBody,
    DrawnJoint,
    DrawnShape,
    PlottedCurve,
    Scene,
    SceneModel,
    SoftBody,
    Track,
)

__all__ = ["pack"]

#: rounding of turns; parts of the usual length, of the scale of forces, of the range of a curve, that are kept
_TURN, _PLACE, _FORCE, _CURVE = 2.0**-17, 1e-5, 1e-3, 1e-5


class _Numbers:
    """All floats of a scene, one after the other; arrays that are used twice are kept once."""

    def __init__(self) -> None:
        self.parts: list[npt.NDArray[np.float32]] = []
        self.size = 0
        self._known: dict[int, tuple[Any, list[int]]] = {}

    def put(self, array: npt.ArrayLike, grid: float = 0.0) -> list[int]:
        """Where an array begins, and how long it is; rounded if there is a `grid`."""
        known = self._known.get(id(array))
        if known is not None:
            return known[1]
        flat = np.ascontiguousarray(_rounded(array, grid) if grid else array, dtype="<f4").ravel()
        where = [self.size, flat.size]
        self.parts.append(flat)
        self.size += flat.size
        self._known[id(array)] = (array, where)  # kept, so that its id stays its own
        return where

    def planes(self) -> bytes:
        """The bytes, plane by plane."""
        floats = np.concatenate(self.parts) if self.parts else np.zeros(0, dtype="<f4")
        return floats.view(np.uint8).reshape(-1, 4).T.tobytes()


def pack(scene: Scene) -> bytes:
    """A scene as the page reads it, not compressed.

    >>> import bellcrank as bc
    >>> from bellcrank.view.scenes import scene_of
    >>> data = pack(scene_of(bc.load("pendulum")))
    >>> json.loads(data[4:4 + int.from_bytes(data[:4], "little")])["title"]
    'pendulum'
    """
    numbers = _Numbers()
    models = [_model(m, numbers) for m in scene.models]
    tracks = [_track(t, scene, numbers) for t in scene.tracks]
    header = {"version": 1, "title": scene.title, "up": scene.up, "view": scene.view, "scales": scene.scales,
              "side_by_side": scene.side_by_side, "shown": dict(scene.shown), "models": models, "tracks": tracks,
              "notes": (*scene.notes, *scene.about),
              "traces": [{"body": t.body, "point": t.point, "name": t.name} for t in scene.traces]}
    text = json.dumps(_plain(header), separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8",
                                                                                                      "replace")
    return len(text).to_bytes(4, "little") + text + numbers.planes()


def _rounded(values: npt.ArrayLike, grid: float) -> Floats:
    """Multiples of a power of two near `grid`, whose last bits are zeros."""
    step = 2.0**np.floor(np.log2(grid)) if grid > 0.0 else 1.0
    return np.asarray(np.round(np.nan_to_num(np.asarray(values, dtype=float)) / step) * step + 0.0)


def _plain(value: Any) -> Any:
    """Floats with nine digits, and nothing that JSON does not know."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.9g}") if np.isfinite(value) else 0.0
    return value


def _model(model: SceneModel, numbers: _Numbers) -> dict[str, Any]:
    return {"name": model.name, "length": model.length, "thickness": model.thickness,
            "bodies": [_body(b, numbers) for b in model.bodies], "joints": [_joint(j) for j in model.joints],
            "extensions": [{"name": e.name, "kind": e.kind, "first": e.first, "second": e.second, "p1": e.first_point,
                            "p2": e.second_point, "radius": e.radius} for e in model.extensions],
            "soft": [_soft(s, numbers) for s in model.soft]}


def _body(body: DrawnBody, numbers: _Numbers) -> dict[str, Any]:
    return {"name": body.name, "color": body.color, "mass": body.mass, "com": body.com, "ellipsoid": body.ellipsoid,
            "shapes": [_shape(s, numbers) for s in body.shapes]}


def _shape(shape: DrawnShape, numbers: _Numbers) -> dict[str, Any]:
    out: dict[str, Any] = {"k": shape.kind, "s": shape.size, "p": (*shape.position, *shape.turn), "c": shape.color,
                           "r": shape.role}
    if shape.vertices is not None:
        grid = _PLACE * float(np.ptp(shape.vertices, axis=0).max(initial=0.0))
        out["v"] = numbers.put(shape.vertices, grid)
    for key, array in (("f", shape.faces), ("h", shape.shades)):
        if array is not None:
            out[key] = numbers.put(array)
    return out


def _joint(joint: DrawnJoint) -> dict[str, Any]:
    return {"name": joint.name, "kind": joint.kind, "parent": joint.parent, "child": joint.child,
            "parent_pose": np.concatenate(joint.parent_pose), "child_pose": np.concatenate(joint.child_pose),
            "axes": joint.axes, "closing": joint.closing}


def _soft(soft: SoftBody, numbers: _Numbers) -> dict[str, Any]:
    return {"name": soft.name, "body": soft.body, "radius": soft.radius, "nodes": numbers.put(soft.nodes),
            "shapes": numbers.put(soft.shapes), "faces": None if soft.faces is None else numbers.put(soft.faces)}


def _track(track: Track, scene: Scene, numbers: _Numbers) -> dict[str, Any]:
    """Series are laid out component by component, each over all frames."""
    length = scene.models[track.model].length
    poses = np.concatenate([_rounded(track.positions, _PLACE * length), _rounded(track.turns, _TURN)], axis=2)
    return {"model": track.model, "label": track.label, "color": track.color, "times": numbers.put(track.times),
            "poses": numbers.put(poses.reshape(len(poses), -1).T),
            "amplitudes": [numbers.put(a.T) for a in track.amplitudes],
            "arrows": [_arrow(a, scene, length, numbers) for a in track.arrows],
            "curves": [_curve(c, numbers) for c in track.curves]}


def _arrow(arrow: Arrow, scene: Scene, length: float, numbers: _Numbers) -> dict[str, Any]:
    out: dict[str, Any] = {"name": arrow.name, "kind": arrow.kind, "body": arrow.body, "point": arrow.point}
    force, moment = scene.scales
    noise = 1e-6 * force * length  # moments of pins are rounding
    for key, values, scale, least in (("force", arrow.force, force, 0.0), ("moment", arrow.moment, moment, noise)):
        if np.abs(np.nan_to_num(values)).max(initial=0.0) > max(least, 1e-9 * scale):
            out[key] = numbers.put(_rounded(values, _FORCE * scale).T)
    return out


def _curve(curve: PlottedCurve, numbers: _Numbers) -> dict[str, Any]:
    values = np.nan_to_num(curve.values)
    span = float(np.ptp(values)) if len(values) else 0.0
    kept = _rounded(values, _CURVE * span) if span > 1e-6 * np.abs(values).max(initial=0.0) else values
    own = {} if curve.times is None else {"times": numbers.put(curve.times)}
    return {"group": curve.group, "name": curve.name, "units": curve.units, "values": numbers.put(kept), **own}
