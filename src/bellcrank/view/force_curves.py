"""What a page shows beside the picture: curves of forces over time, and positions of a machine that is moved by hand.

A position of a machine that is moved by hand: by its independent coordinates, or by a point that is pulled.

Loops stay closed: every change goes in small steps along the null space of the constraints, each followed by Newton
steps back onto them. What cannot be reached is not left half open: the last closed position stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import xarray

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError
from bellcrank.mechanism.flexible.deformation import Modal, NodeMotion
from bellcrank.mechanism.forces.coordinate_forces import Limit
from bellcrank.mechanism.joints import Prismatic
from bellcrank.simulate.element_fields import element_units
from bellcrank.simulate.fields import DERIVED, derive, layout_of, output_values, speed_units
from bellcrank.simulate.result import Result
from bellcrank.simulate.turning import unit_quaternions
from bellcrank.system.element_states import ElementForces
from bellcrank.system.loop_errors import loop_jacobian
from bellcrank.system.machine_functions import Machine
from bellcrank.view.scene import Arrow, PlottedCurve

__all__ = ["MOST_SPEEDS", "GrowingCurves", "Posture", "force_curves", "output_curves"]


# -- forces, powers and outputs over time, to be plotted beside the picture -------------------------
#: machines with more joints or elements have no curves of forces: nobody looks at so many
MOST = 60
#: the same of joints that close loops
_FEW = 12
#: below this part of the largest of their group, curves are rounding
_NOISE = 1e-9
_ENERGIES = {"kinetic_energy": "kinetic", "potential_energy": "gravity", "stored_energy": "stored", "energy": "total"}


def force_curves(result: Result, system: Machine, arrows: Sequence[Arrow]) -> tuple[PlottedCurve, ...]:
    """Reactions and forces of elements of one run; `arrows` are its forces. Cost: that of `Result.element`."""
    names = _elements(system)
    found: list[PlottedCurve] = []
    if len(system.model.mechanism.joints) <= MOST:
        found += _of_reactions({a.name: (a.moment, a.force) for a in arrows if a.kind == "reaction"})
    for name in names if len(names) <= MOST else ():
        try:
            element = result.element(name)
        except BellcrankError:  # a kind that has no report
            continue
        units = str(element["force"].attrs.get("units", "N")) if "force" in element else "N"
        found += _of_element(name, {str(field): np.asarray(v.values, dtype=float) for field, v in element.items()
                                    if not np.isnan(v.values).all()}, units)
    return _worth_plotting(found)


def output_curves(result: xarray.Dataset) -> tuple[PlottedCurve, ...]:
    """Outputs, and what else was computed for every sample."""
    known = {field.name for field in DERIVED}
    return tuple(PlottedCurve(f"outputs [{a.attrs.get('units', '1')}]", str(name), str(a.attrs.get("units", "1")),
                              np.asarray(a.values, dtype=float))
                 for name, a in result.data_vars.items()
                 if a.dims == ("time",) and name not in known and a.dtype.kind == "f")


def _elements(system: Machine) -> list[str]:
    return list(dict.fromkeys(e.name for e in system.model.mechanism.force_elements))


def _of_reactions(wrenches: Mapping[str, tuple[Floats, Floats]]) -> list[PlottedCurve]:
    """Magnitudes of moment and force (frames, 3) of every joint."""
    return [PlottedCurve(f"magnitude of reaction {what} [{units}]", name, units, np.linalg.norm(pair[k], axis=-1))
            for k, what, units in ((1, "force", "N"), (0, "moment", "N m")) for name, pair in wrenches.items()]


def _of_element(name: str, fields: Mapping[str, Floats], units: str) -> list[PlottedCurve]:
    """Force and power of an element; how large they are of those that act in several directions."""
    found = []
    if "force" in fields:
        found.append(PlottedCurve(_group_of(units), name, units, fields["force"]))
    else:
        found += [PlottedCurve(_group_of(u), f"{name} (magnitude)", u, np.linalg.norm(fields[field], axis=-1))
                  for field, u in (("vector", "N"), ("torque", "N m")) if field in fields]
    if "power" in fields:
        found.append(PlottedCurve("power of elements [W]", name, "W", fields["power"]))
    return found


def _group_of(units: str) -> str:
    return f"{'torque' if units == 'N m' else 'force'} of elements [{units}]"


def _worth_plotting(curves: Sequence[PlottedCurve]) -> tuple[PlottedCurve, ...]:
    """Without zeros and rounding."""
    sizes = [float(np.nan_to_num(np.abs(c.values)).max(initial=0.0)) for c in curves]
    largest: dict[str, float] = {}
    for c, size in zip(curves, sizes, strict=True):
        largest[c.units] = max(largest.get(c.units, 0.0), size)
    return tuple(c for c, size in zip(curves, sizes, strict=True) if size > _NOISE * largest[c.units])


class GrowingCurves:
    """What can be plotted of a run while it goes on: the curves that its first states have, in this order."""

    def __init__(self, system: Machine, times: Floats, q: Floats, u: Floats, tau: Floats | None,
                 pushed: bool = False) -> None:
        """The first states; `pushed`: whether wrenches act that nobody tells of, so that reactions are not known."""
        self.system = system
        self._forces = len(system.model.mechanism.joints) <= MOST and not pushed
        elements = _elements(system)
        self._named = elements if len(elements) <= MOST else []
        forces = np.zeros(u.shape) if tau is None else tau
        #: group, name and units of each
        self.labels = [(c.group, c.name, c.units) for c in self._curves(times, q, u, forces)]

    def values(self, times: Floats, q: Floats, u: Floats, tau: Floats | None, system: Machine) -> Floats:
        """States of one run, (n, nq) and (n, nu), as (n, curves); NaN where a curve is not known there. `system` is the
        machine as it is then: forces are those of the one that is shown."""
        out = np.full((len(times), len(self.labels)), np.nan)
        if not self.labels:
            return out
        forces = np.zeros(u.shape) if tau is None else tau
        found = {(c.group, c.name): c.values for c in self._curves(times, q, u, forces, system is self.system)}
        for k, (group, name, _) in enumerate(self.labels):
            if (group, name) in found:
                out[:, k] = found[group, name]
        return out

    def _curves(self, t: Floats, q: Floats, u: Floats, tau: Floats, forces: bool = True) -> list[PlottedCurve]:
        system = self.system
        energies = derive(system, t, q, u)
        found = [PlottedCurve("energy", short, "J", energies[name]) for name, short in _ENERGIES.items()]
        found += self._coordinates(q, u)
        for attempt in (self._outputs, *((self._element_forces, self._reactions) if forces else ())):
            try:
                found += attempt(t, q, u, tau)
            except (BellcrankError, ArithmeticError):  # a state at which they do not exist
                continue
        return found

    def _coordinates(self, q: Floats, u: Floats) -> list[PlottedCurve]:
        layout = layout_of(self.system, ())
        return [PlottedCurve(f"{what} [{units}]", name, units, values[:, i])
                for what, values, names, each in (("coordinates", q, layout.coordinates, layout.coordinate_units),
                                                  ("speeds", u, layout.speeds, layout.speed_units))
                for i, (name, units) in enumerate(zip(names, each, strict=True))]

    def _outputs(self, t: Floats, q: Floats, u: Floats, tau: Floats) -> list[PlottedCurve]:
        units = {o.name: o.units for o in self.system.model.mechanism.outputs}
        return [PlottedCurve(f"outputs [{units[name]}]", name, units[name], values)
                for name, values in output_values(self.system, t, q, u).items()]

    def _element_forces(self, t: Floats, q: Floats, u: Floats, tau: Floats) -> list[PlottedCurve]:
        if not self._named:
            return []
        reports: Mapping[str, ElementForces] = self.system.element_forces(q, u, tau, t=t)
        return [curve for name in self._named if name in reports for curve in _of_element(
            name, {f: _spread(getattr(reports[name], f), len(q)) for f in ("force", "vector", "torque", "power")},
            element_units(self.system, name)["force"])]

    def _reactions(self, t: Floats, q: Floats, u: Floats, tau: Floats) -> list[PlottedCurve]:
        if not self._forces:
            return []
        wrenches = self.system.reactions(q, u, tau, t=t)
        return _of_reactions({name: (w[:, :3], w[:, 3:]) for name, w in wrenches.items()})


def _spread(values: Floats, count: int) -> Floats:
    """One row for each state."""
    array = np.asarray(values, dtype=float)
    return array if len(np.atleast_1d(array)) == count and array.ndim else np.broadcast_to(array, (count, *array.shape))


# -- A position of a machine that is moved by hand --------------------------------------------------
#: machines with more speeds are not moved by hand: matrices here are dense
MOST_SPEEDS = 200

#: the largest change of a coordinate in one step [rad, or parts of the machine's length], and steps for one wish
_STRIDE, _STRIDES = 0.12, 60
#: an error of loops, as a part of the machine's length, that counts as closed; Newton steps towards it
_CLOSED, _NEWTON = 1e-10, 8
#: singular values below this part of the largest are no directions
_RANK = 1e-9
#: how much rather sliders are made of joints that are driven, slide between bodies, or turn on the ground
_DRIVEN, _SLIDING, _GROUNDED = 50.0, 15.0, 5.0
#: how much a pulled point resists where it moves little for much motion
_DAMPING = 0.03


@dataclass(frozen=True)
class Slider:
    """A coordinate that can be chosen: an independent one."""

    name: str
    units: str
    low: float
    high: float
    speed: int  #: its place among the speeds
    place: int | None  #: its place in q; None for parts of a rotation, which count from where they began


class Posture:
    """A closed position that can be changed. Not safe for several threads at once."""

    def __init__(self, system: Machine, q: Floats, t: float = 0.0, length: float = 1.0) -> None:
        self.system, self.t, self.length = system, t, length
        self.q = np.array(q, dtype=float)
        self._begin = self.q.copy()
        self._free = ~system.model.bound_mask()
        #: an ordinary change of every speed's coordinate
        units = [u for name in system.joint_names for u in speed_units(system.model.mechanism.joint(name).joint)]
        usual = system.model.configuration.usual
        self._scale = np.where(np.array(units) == "m/s", length, usual)
        self._independent = self._chosen()
        self.sliders = tuple(s for s in self._sliders(units) if s is not None)

    def _chosen(self) -> list[int]:
        """Independent speeds."""
        if not self.system.model.tree.looped:
            return np.flatnonzero(self._free).tolist()
        basis = self._null() / self._scale[:, None]
        # pivots of Z^T, those that are wished for first as long as they determine the rest well
        order = scipy.linalg.qr(basis.T * self._favor(), mode="r", pivoting=True)[1]
        return sorted(order[:basis.shape[1]].tolist())

    def _favor(self) -> Floats:
        """How much rather each speed is chosen: those of joints with actuators, else of what slides between bodies, as
        legs and jacks do, or turns on the ground, as cranks do."""
        model = self.system.model
        driven = {drive.joint for drive in model.mechanism.drives}
        out: list[float] = []
        for record in model.configuration.records:
            grounded, slides = 0 in (record.parent, record.child), isinstance(record.joint, Prismatic)
            favor = _DRIVEN if record.name in driven else _SLIDING if slides and not grounded else (
                _GROUNDED if grounded and not slides else 1.0)
            out += [favor] * record.joint.nu
        return np.array(out)

    def _sliders(self, units: Sequence[str]) -> list[Slider | None]:
        model = self.system.model
        out: list[Slider | None] = []
        for record in model.configuration.records:
            i, j = model.configuration.starts[record.name]
            kind = record.joint
            for k, label in enumerate(kind.speed_names):
                if j + k not in self._independent or isinstance(kind, (Modal, NodeMotion)):
                    continue
                turns = units[j + k] == "rad/s"
                plain = kind.nq == kind.nu
                now = float(self.q[i + k]) if plain else 0.0
                reach = np.pi if turns else self.length
                low, high = self._limits(record.name, k) if plain else (None, None)
                out.append(Slider(f"{record.name}.{label}", "rad" if turns else "m",
                                  min(now - reach if low is None else low, now),
                                  max(now + reach if high is None else high, now), j + k, i + k if plain else None))
        return out

    def _limits(self, joint: str, coordinate: int) -> tuple[float | None, float | None]:
        """Where stops are, or else the range that is meant."""
        mechanism = self.system.model.mechanism
        for element in mechanism.joint_forces:
            if element.joint == joint and element.coordinate == coordinate and isinstance(element.along, Limit):
                ends = [None if x is None else mechanism.default(x) for x in (element.along.lower, element.along.upper)]
                return ends[0], ends[1]
        low, high = mechanism.ranges.get(joint, (-np.inf, np.inf))
        return low if np.isfinite(low) else None, high if np.isfinite(high) else None

    # -- what is there ------------------------------------------------------------------------
    def values(self) -> Floats:
        """Those of the sliders."""
        turned = self.system.difference(self._begin, self.q)
        return np.array([self.q[s.place] if s.place is not None else turned[s.speed] for s in self.sliders])

    def poses(self) -> Floats:
        """Of the ground and all bodies, (bodies, 7): x, y, z, and the quaternion (w, x, y, z)."""
        found = self.system.pose(self.q, t=self.t)
        rows = np.concatenate([found.position, unit_quaternions(np.asarray(found.rotation))], axis=-1)
        return np.concatenate([[[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]], rows])

    def error(self) -> float:
        """How far the loops are open."""
        return self._open(self.q)

    def put(self, q: Floats, t: float) -> None:
        """Begin anew at another closed position."""
        self.q, self.t = np.array(q, dtype=float), t

    # -- moving -------------------------------------------------------------------------------
    def move(self, number: int, value: float) -> bool:
        """Bring one slider to a value while the others stay; whether it got there. Cost: some Newton steps for every
        0.12 rad on the way."""
        slider = self.sliders[number]
        value = min(max(float(value), slider.low), slider.high)
        for _ in range(_STRIDES):
            left = value - float(self.values()[number])
            if abs(left) <= 1e-9 * self._scale[slider.speed]:
                return True
            stride = _STRIDE * self._scale[slider.speed]
            wish = np.zeros(self.system.nu)
            wish[slider.speed] = np.clip(left, -stride, stride)
            if not self._try(wish):
                return False
        return False

    def drag(self, body: str, point: Sequence[float], target: Sequence[float]) -> float:
        """Pull a point of a body (in its frame) towards a target in the world; the distance that is left [m]."""
        at, goal = np.asarray(point, dtype=float), np.asarray(target, dtype=float)
        left = self._away(body, at, goal)
        for _ in range(_STRIDES // 4):
            if left <= 1e-4 * self.length:
                break
            before, gap = self.q.copy(), goal - self._where(body, at)
            gap *= min(1.0, 0.3 * self.length / left)
            step = self._pulled(self.system.jacobian(self.q, body, at, t=self.t, speeds="tree")[3:], gap)
            if not self._closed(self.system.integrate(self.q, step)):
                break
            now = self._away(body, at, goal)
            if now > left - 1e-6 * self.length:
                if now > left:
                    self.q = before
                break
            left = now
        return left

    def _where(self, body: str, point: Floats) -> Floats:
        pose = self.system.pose(self.q, body, t=self.t)
        return np.asarray(pose.position + pose.rotation @ point)

    def _away(self, body: str, point: Floats, goal: Floats) -> float:
        return float(np.linalg.norm(goal - self._where(body, point)))

    def _pulled(self, rows: Floats, gap: Floats) -> Floats:
        """The speeds that the loops allow and that bring a point nearer, damped least squares."""
        basis = self._null()
        matrix = rows @ basis
        size = float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0
        if size == 0.0:
            return np.zeros(self.system.nu)
        damped = matrix @ matrix.T + (_DAMPING * size) ** 2 * np.eye(3)
        step = basis @ (matrix.T @ np.linalg.solve(damped, gap))
        most = float(np.abs(step / self._scale).max(initial=0.0))
        return np.asarray(step * min(1.0, 2.0 * _STRIDE / most) if most > 0.0 else step)

    def _null(self) -> Floats:
        """Speeds that keep loops closed, by columns, scaled."""
        scaled = np.diag(self._scale * self._free)
        if not self.system.model.tree.looped:
            return scaled[:, self._free]
        rows = self._rows(self.q)
        values, vectors = np.linalg.svd(rows[:, self._free])[1:]
        rank = int((values > _RANK * values.max(initial=0.0)).sum())
        return np.asarray(scaled[:, self._free] @ vectors[rank:].T)

    def _rows(self, q: Floats) -> Floats:
        """The Jacobian of the loops by scaled speeds, those of prescribed joints left out."""
        rows = loop_jacobian(self.system.plans, q, t=self.t) / self.system.plans.loops.row_sizes[:, None]
        return np.asarray(rows * (self._scale * self._free))

    def _try(self, wish: Floats) -> bool:
        """Change independent speeds' coordinates by `wish`, the others as the loops want it."""
        start, step = self.q, wish / self._scale
        if self.system.model.tree.looped:
            rows = self._rows(self.q)
            own = np.isin(np.arange(self.system.nu), self._independent)
            rest = np.linalg.lstsq(rows[:, ~own], -(rows[:, own] @ step[own]), rcond=_RANK)[0]
            step[~own] = rest
            if np.abs(rest).max(initial=0.0) > 20.0 * _STRIDE:  # near a dead point
                return False
        return self._closed(self.system.integrate(start, step * self._scale), held=True)

    def _closed(self, q: Floats, held: bool = False) -> bool:
        """Take a position if its loops can be closed nearby; with `held`, without changing independent coordinates."""
        if self.system.model.tree.looped:
            some = np.isin(np.arange(self.system.nu), self._independent) if held else np.zeros(self.system.nu, bool)
            for _ in range(_NEWTON):
                value = np.asarray(self.system.plans.loops.error(q, self.t))
                if np.abs(value).max(initial=0.0) <= _CLOSED * self.length:
                    break
                rows = self._rows(q)
                step = np.zeros(self.system.nu)
                shares = value / self.system.plans.loops.row_sizes
                step[~some] = -np.linalg.lstsq(rows[:, ~some], shares, rcond=_RANK)[0]
                if not np.abs(step).max(initial=0.0) < 1.0:
                    return False
                q = self.system.integrate(q, step * self._scale)
            else:
                if self._open(q) > 1e3 * _CLOSED * self.length:
                    return False
        self.q = np.asarray(self.system.plans.loops.measured(self.system.normalize(q), self.t))
        return True

    def _open(self, q: Floats) -> float:
        if not self.system.model.tree.looped:
            return 0.0
        return float(np.abs(self.system.plans.loops.error(q, self.t)).max(initial=0.0))
