"""Forces, powers and outputs over time, to be plotted beside the picture: of a result, and of a run that goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError
from bellcrank.simulate.element_fields import element_units
from bellcrank.simulate.fields import DERIVED, derive, layout_of, output_values
from bellcrank.simulate.result import Result
from bellcrank.system.element_states import ElementForces
from bellcrank.system.machine_functions import Machine
from bellcrank.view.scene import Arrow, PlottedCurve

__all__ = ["GrowingCurves", "force_curves", "output_curves"]

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
