"""How a machine moves: poses, amplitudes, arrows and curves of one run, or of one state."""

from __future__ import annotations

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

__all__ = ["chosen_frames", "curves_of", "finite", "still_track", "track_of"]

#: pictures of runs that are too short for so many pictures a second
_FEW = 240
_VARIABLES = {"kinetic_energy": "kinetic", "potential_energy": "gravity", "stored_energy": "stored",
              "energy": "total"}
_STATES = (("q", "coordinate", "coordinate_units", "coordinates"), ("u", "speed", "speed_units", "speeds"),
           ("tau", "speed", "force_units", "forces"))


def chosen_frames(times: Floats, most: int, rate: float) -> Any:
    """Samples to draw: all of them if they are few, or those nearest to so many pictures a second, at most `most`."""
    n = len(times)
    span = float(times[-1] - times[0]) if n else 0.0
    wanted = int(min(most, max(_FEW, np.ceil(span * rate) + 1.0)))
    if n <= wanted:
        return np.arange(n)
    grid = np.linspace(times[0], times[-1], wanted)
    after = np.clip(np.searchsorted(times, grid), 1, n - 1)
    nearest = np.where(grid - times[after - 1] <= times[after] - grid, after - 1, after)
    return np.unique(nearest)


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
    return Track(model, label, t, *_poses(system, q, t), _amplitudes(system, q), arrows, curves_of(result))


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
