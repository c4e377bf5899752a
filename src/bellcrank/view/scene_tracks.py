"""How a machine moves: poses, amplitudes, arrows and curves of one run, or of one state."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import xarray

from bellcrank.arrays import Floats
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.simulate.result import Result
from bellcrank.simulate.turning import continuous_turns, unit_quaternions
from bellcrank.system.machine_functions import Machine
from bellcrank.view.force_curves import output_curves
from bellcrank.view.scene import Arrow, PlottedCurve, Track
from bellcrank.view.soft_bodies import amplitudes

__all__ = ["chosen_frames", "curves_of", "finite", "frames_passed", "own_samples", "still_track", "track_of"]

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
