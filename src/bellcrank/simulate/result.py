"""The result of a run: an `xarray.Dataset` that knows the machine it came from."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray

from bellcrank.arguments import checked_methods
from bellcrank.arrays import Floats, one_point, one_time
from bellcrank.errors import ModelError, StateError
from bellcrank.files.model_files import write_text
from bellcrank.lazy_names import from_above
from bellcrank.simulate.account import energy_drift, floor_of
from bellcrank.simulate.acting import (
    PARTS,
    States,
    along_joints,
    element_force,
    joint_reactions,
)
from bellcrank.simulate.by_topology import by_topology
from bellcrank.simulate.element_results import ElementResults
from bellcrank.simulate.outside_forces import contact_wrenches, contacts_on_record, wrenches_on_record
from bellcrank.simulate.result_table import table_text
from bellcrank.simulate.turning import continuous_turns, unit_quaternions
from bellcrank.system.kernels import Wrenches
from bellcrank.system.state import State, StateNames

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["Result"]

_WRENCH = ("mx", "my", "mz", "fx", "fy", "fz")
_WRENCH_UNITS = ("N m",) * 3 + ("N",) * 3


@checked_methods
class Result(ElementResults):  # type: ignore[no-untyped-call]  # of its __init_subclass__
    """States, energies and loop errors of a run over time, with names and units; everything `xarray` offers works.

    Dimensions are ``time``, ``coordinate``, ``speed`` and, for batches, ``sample`` (``sample_0``, ``sample_1``, ... if
    there are several batch axes). Variables: ``q``, ``u``, ``tau`` if forces were given,
    ``wrench`` if external wrenches were ("crank.fx"), ``kinetic_energy``, ``potential_energy``,
    ``stored_energy``, ``energy`` [J], ``loop_error`` (the largest of all constraints; distances in m, cosines of right
    angles as they are), ``loop_rate_error``;
    ``contact_force`` at places of rigid contacts ("floor[0].x": contact, place and world axis; not in runs of more than
    20 million such numbers); ``event_time`` and ``event_name`` if there were events. Attributes say what ran, how it
    ended (``status``, ``reason``, ``warnings``) and how well (``energy_drift``, ``largest_loop_error``).
    ``energy`` is a method, too: the variable is ``result["energy"]``. `isel` and all other methods of
    `xarray.Dataset` raise the errors of that.

    `reactions`, `joint_load`, `torques`, `forces`, `element`, `outputs` and `kinematics` compute with the machine,
    which is at hand after a run; after reading a file it is compiled from its description there (`rebuild`, `attach`).
    """

    __slots__ = ()

    def _states(self, wrenches: Wrenches, what: str, needs_wrenches: bool = True) -> States:
        """The machine and q, u, forces, t, batched over all dimensions that are left, in their order."""
        system = self._machine(what)
        for name, label, size in (("q", "coordinate", system.nq), ("u", "speed", system.nu)):
            if name not in self or self.sizes.get(label) != size:
                raise StateError(f"{what}: needs all of {name}; this selection holds only a part of it")
        settings, lead = json.loads(self.attrs.get("settings", "{}")), self._lead
        wrenches = wrenches_on_record(self, lead) if wrenches is None and needs_wrenches else wrenches
        if needs_wrenches and wrenches is None and (settings.get("wrenches") or settings.get("wrench_control")):
            raise StateError(f"{what}: external wrenches acted in this run and are not recorded; pass `wrenches`")
        arrays = [self[name].transpose(*lead, label).values if name in self else None
                  for name, label in (("q", "coordinate"), ("u", "speed"), ("tau", "speed"))]
        q, u, tau = arrays
        assert q is not None and u is not None
        when = self["time"].values if "time" in self.coords else np.zeros(())
        if "time" in lead:
            when = when.reshape([-1 if d == "time" else 1 for d in lead])
        q, u, tau = _finite(what, q, u, tau)
        states = States(system, q, u, tau, np.asarray(when, dtype=float), wrenches)
        return self._touched(states, what) if needs_wrenches else states

    def _touched(self, states: States, what: str) -> States:
        """With the forces of rigid contacts among the wrenches."""
        rigid = [c.name for c in states.system.model.mechanism.contacts if c.rigid]
        moreau = json.loads(self.attrs.get("settings", "{}")).get("stepper") == "moreau"
        if not rigid or not (moreau or "contact_force" in self):
            return states
        forces = contacts_on_record(self, rigid, what)
        unknown = np.any([np.isnan(x).any(axis=(-2, -1)) for x in forces.values()], axis=0)
        added = contact_wrenches(states.system, states.q, states.u, states.t,
                                 {name: np.nan_to_num(x) for name, x in forces.items()})
        given = 0.0 if states.wrenches is None else states.system.model.wrench_rows(states.wrenches)
        return States(*states[:5], added + given, unknown)

    @property
    def _lead(self) -> tuple[str, ...]:
        """Dimensions of states: time and samples, as far as they are left."""
        return tuple(str(d) for d in self["q"].dims if d != "coordinate")

    def _over(self, values: Floats, dim: str, attrs: dict[str, str], name: str) -> xarray.DataArray:
        """An array over the states and one more dimension as a `DataArray` with the coordinates of this result."""
        dims = (*self._lead, dim)
        shape = (*(self.sizes[d] for d in self._lead), values.shape[-1])
        if values.shape != shape:
            raise StateError(f"{name}: the machine's parameters are a batch that does not fit the samples left in this "
                             f"selection ({values.shape[:-1]} and {shape[:-1]}); attach one whose parameters fit")
        coords = {str(k): v for k, v in self.coords.items() if set(v.dims) <= set(self._lead)}
        values = np.where(self._failed()[..., None], np.nan, values)
        return xarray.DataArray(values, dims=dims, coords=coords, name=name, attrs=attrs)

    def _failed(self) -> npt.NDArray[np.bool_]:
        """Which states are not finite: those of samples that failed before the run ended."""
        q, u = (self[n].transpose(*self._lead, d).values for n, d in (("q", "coordinate"), ("u", "speed")))
        return np.asarray(~(np.isfinite(q).all(axis=-1) & np.isfinite(u).all(axis=-1)))

    # -- states ---------------------------------------------------------------------------------------
    def state(self, t: float | None = None) -> State:
        """The state of the sample at time `t` [s], or of the last one; of a batch with its axes. A run, or anything
        else that takes a `State`, can begin there.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> run = linkage.simulate(linkage.assemble(q={"A": 0.5}), duration=0.1)
        >>> run.state().t, run.state(0.0)["A"], run.state(0.05) == run.state()
        (0.1, 0.5, False)
        """
        if "time" not in self.dims:
            raise StateError("state: this selection has no times left")
        times = self["time"].values
        k = len(times) - 1 if t is None else int(np.abs(times - one_time(t)).argmin())
        if t is not None and abs(times[k] - t) > 1e-9 * max(1.0, abs(t)):
            raise StateError(f"state: there is no sample at t = {t:g} s; the nearest is at {float(times[k])!r} s (the "
                             "argument output of simulate says when samples are taken)")
        one = self.isel(time=k)
        q, u = (one[name].transpose(..., label).values for name, label in (("q", "coordinate"), ("u", "speed")))
        names = StateNames(*(tuple(self[label].values.tolist()) for label in ("coordinate", "speed")))
        return State(q, u, float(times[k]), names=names)

    # -- events ---------------------------------------------------------------------------------------
    @property
    def event_time(self) -> xarray.DataArray:
        """Times of events [s]; empty if nothing happened."""
        return self._events("event_time", np.zeros(0), {"units": "s", "long_name": "time of the event"})

    @property
    def event_name(self) -> xarray.DataArray:
        """What happened at `event_time`; empty if nothing did."""
        return self._events("event_name", np.zeros(0, dtype=str), {"long_name": "what happened"})

    def _events(self, name: str, none: npt.NDArray[Any], attrs: dict[str, str]) -> xarray.DataArray:
        return self[name] if name in self else xarray.DataArray(none, dims="event", name=name, attrs=attrs)

    # -- what follows from the states -----------------------------------------------------------------
    def energy(self) -> xarray.Dataset:
        """Energies over time [J]: ``kinetic``, ``gravity``, ``stored``, ``total``, and ``drift``.

        ``drift`` is the change of the total since the first sample, relative to the energy there was: what the first
        sample could turn into motion on the way taken, and what drives put in (docs/howto/simulate.md). It is an
        error where nothing does work or takes it, and the balance of work where drives, dampers or prescribed motions
        do. Sudden changes at events count here, and not in the attribute ``energy_drift``.
        """
        names = {"kinetic": "kinetic_energy", "gravity": "potential_energy", "stored": "stored_energy",
                 "total": "energy"}
        if not set(names.values()) <= set(self.variables):
            raise StateError("energy: this result has no energies; see System.energy")
        out = {short: self[name].drop_vars([c for c in self[name].coords if c not in self[name].dims])
               for short, name in names.items()}
        total = out["total"]
        drift = xarray.zeros_like(total)
        if "time" in total.dims and total.sizes["time"]:
            total, kinetic = (x.transpose("time", ...) for x in (total, out["kinetic"]))
            power = (self["tau"] * self["u"]).sum("speed").transpose(*total.dims).values \
                if "tau" in self and "speed" in self["tau"].dims else None
            works = self.attrs.get("energy_exchange", "work") == "work"
            floor = 0.0 if self.system is None else floor_of(self.system)
            drift = total.copy(data=energy_drift(self["time"].values, total.values, kinetic.values, works, floor,
                                                 power))
        drift.attrs = {"units": "1", "long_name": "change of energy relative to the energy there was"}
        return xarray.Dataset({**out, "drift": drift})

    @by_topology
    def reactions(self, joint: str | None = None, *, wrenches: Wrenches = None) -> xarray.DataArray:
        """Wrench [moment; force] of a joint on its child, body axes, about the joint's origin there.

        Shape (time, [sample], 6), or (joint, time, [sample], 6) for all joints; see `System.reactions`. `wrenches`
        are external ones in the place of those on record. Joints that close loops have none (NaN) while they are open.
        Cost: O(n) per sample, with loops O(n m^2).
        """
        states = self._states(wrenches, "reactions")
        system, q = states.system, states.q
        found = joint_reactions(states)
        if system.model.released:  # every topology has the joints of the whole machine, in its order
            none = np.full((*q.shape[:-1], 6), np.nan)
            found = {name: found.get(name, none) for name in (system.model.whole or system.model.tree).loaded_names}
        if joint is not None and joint not in found:
            raise ModelError(f"reactions: no joint called {joint!r}; there are {', '.join(found)}")
        attrs = {"units": "see component_units", "long_name": "joint reaction"}
        parts = [self._over(found[name], "component", attrs, "reactions").assign_coords(
            component=list(_WRENCH), component_units=("component", list(_WRENCH_UNITS)))
            for name in (found if joint is None else (joint,))]
        if joint is not None:
            return parts[0].assign_coords(joint=joint)
        return xarray.concat(parts, dim="joint").assign_coords(joint=list(found)).assign_attrs(attrs)

    @by_topology
    def accelerations(self, *, wrenches: Wrenches = None) -> xarray.DataArray:
        """Joint accelerations (time, [sample], speed), as recorded (`analyze.drive`) or computed from the states by
        forward dynamics; `wrenches` are external ones in the place of those on record. Cost: O(n) per sample, with
        loops O(n m^2)."""
        if "udot" in self:
            return self["udot"]
        states = self._states(wrenches, "accelerations")
        udot = states.accelerations()
        out = self["u"].transpose(*self._lead, "speed").copy(data=np.where(self._failed()[..., None], np.nan, udot))
        each = set(out["speed_units"].values.ravel().tolist()) if "speed_units" in out.coords else set()
        units = f"{each.pop()}^2" if len(each) == 1 else "see speed_units, per s"
        return out.rename("udot").assign_attrs(units=units, long_name="joint accelerations")

    @by_topology
    def torques(self, joint: str | None = None, *, of: str = "all", drives: bool = False, wrenches: Wrenches = None
                ) -> xarray.DataArray:
        """Forces that acted along joint coordinates, (time, [sample], speed), of all joints or of one.

        They are the sum of all that was given (`tau`, controllers, within the limits of actuators) and of all force
        elements on joints: springs, dampers, friction, compliant stops, servos, laws, also those on sums of
        coordinates. `of` picks a part: "given" or "elements"; `forces` returns those of one element. Springs and
        other elements between bodies act on these, not along joints.

        With `drives`, also what enforces prescribed motions (`System.drive_forces`) and holds joints that are locked or
        pressed against a rigid stop. They are computed from the states; along joints that close loops there are none
        (NaN) while they are open. Cost: O(n) a sample.
        """
        if of not in PARTS:
            raise ModelError(f"torques: of must be one of {', '.join(PARTS)}, got {of!r}")
        states = self._states(wrenches, "torques", needs_wrenches=drives)
        values = along_joints(states, of)
        held = states.system.model.prescribed_mask()
        if drives and held.any():
            enforced = states.system.drive_forces(states.q, states.u, states.tau, wrenches=states.wrenches, t=states.t)
            values = values + states.known(np.where(held, enforced - along_joints(states, "given"), 0.0))
        values = np.where(self._failed()[..., None], np.nan, values)
        out = self["u"].transpose(*self._lead, "speed").copy(data=values)
        each = set(out["force_units"].values.ravel().tolist()) if "force_units" in out.coords else set()
        out = out.rename("torques").assign_attrs(units=each.pop() if len(each) == 1 else "see force_units",
                                                 long_name="joint forces that acted" + ", drives included" * drives)
        return out if joint is None else out.isel(speed=self.entries(joint, "speed"))

    @by_topology
    def forces(self, element: str) -> xarray.DataArray:
        """The force of one element over time, by name.

        Elements on joints, and springs between points: a number (time, [sample]) along the coordinate or the line;
        positive drives the coordinate up, or the points apart. Actuators: what they let through. Bushings, drag,
        contacts and wrenches: the wrench [moment; force] (time, [sample], 6) on their (second) body,
        world axes, about the point where they act there. Constraints (`Mechanism.add_constraint`): what holds each of
        their conditions; of a `Distance` the force that pushes its ends apart, which times the rate of a driven length
        is the power it puts in. Couplers: the force along their sum of coordinates, which times a factor is that on
        the coordinate.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> servo = m.add_servo("servo", "hinge", stiffness=10.0)
        >>> run = bc.compile(m).simulate(([0.5], [0.0]), duration=0.1)
        >>> float(run.forces("servo")[0]), float(run.torques("hinge")[0, 0])
        (-5.0, -5.0)
        """
        held = {c.name: c for c in self._machine("forces").model.mechanism.constraints}
        values, what, units = element_force(self._states(None, "forces", needs_wrenches=element in held), element)
        attrs = {"units": units[0] if len(set(units)) == 1 else "see component_units", "long_name": what}
        if values.ndim == len(self._lead):
            return self._over(values[..., None], "one", attrs, element).isel(one=0)
        labels = getattr(held[element].kind, "condition_names", None) if element in held else _WRENCH
        return self._over(values, "component", attrs, element).assign_coords(
            component=list(labels or range(len(units))), component_units=("component", list(units)))

    def entries(self, joint: str, label: str) -> list[int]:
        """Places of a joint, or of one of its coordinates, along ``coordinate`` or ``speed``."""
        if label not in ("coordinate", "speed"):
            raise ModelError(f"entries: label must be 'coordinate' or 'speed', got {label!r}")
        names = [str(n) for n in np.atleast_1d(self[label].values)]
        found = [i for i, n in enumerate(names) if n == joint] or [
            i for i, n in enumerate(names) if n.rpartition(".")[0] == joint]
        if not found:
            raise ModelError(f"no {label} called {joint!r}; there are {', '.join(names[:20])}")
        return found

    @by_topology
    def kinematics(self, body: str, point: npt.ArrayLike = (0.0, 0.0, 0.0), *, wrenches: Wrenches = None
                   ) -> xarray.Dataset:
        """How a point of a body (given in the body's frame) moves, in world axes.

        ``position`` [m], ``velocity``, ``acceleration``, ``angular_velocity``, ``angular_acceleration`` along ``axis``,
        and ``orientation``, the body's unit quaternion (w, x, y, z), continuous in time. Cost: O(n) per sample.
        """
        point = one_point(f"kinematics of {body!r}: point", point)
        states = self._states(wrenches, "kinematics")
        system, q, u, tau, t = states[:5]
        pose = system.pose(q, body, t=t)
        arm = pose.rotation @ point
        velocity = system.velocity(q, u, body, point, t=t)
        acceleration = states.known(system.acceleration(
            q, u, system.forward_dynamics(q, u, tau, wrenches=states.wrenches, t=t), body, point, t=t))
        table = {"position": (pose.position + arm, "m"), "velocity": (velocity[..., 3:], "m/s"),
                 "acceleration": (acceleration[..., 3:], "m/s^2"), "angular_velocity": (velocity[..., :3], "rad/s"),
                 "angular_acceleration": (acceleration[..., :3], "rad/s^2")}
        arrays = {name: self._over(values, "axis", {"units": units, "long_name": f"{name.replace('_', ' ')} of {body}"},
                                   name).assign_coords(axis=["x", "y", "z"])
                  for name, (values, units) in table.items()}
        turn = continuous_turns(unit_quaternions(pose.rotation), self._lead)
        arrays["orientation"] = self._over(turn, "quaternion", {"units": "1", "long_name": f"orientation of {body}"},
                                           "orientation").assign_coords(quaternion=["w", "x", "y", "z"])
        return xarray.Dataset(arrays, attrs={"body": body, "point": np.asarray(point, dtype=float)})

    # -- pictures -------------------------------------------------------------------------------------
    def plot(self, what: str | Sequence[str] = "q", against: str = "time",  # type: ignore[override]
             file: str | os.PathLike[str] | None = None, *, phase: str | Sequence[str] | None = None,
             size: str | Sequence[float] | None = None, every: bool = False) -> Figure:
        """Draw over time, or against a coordinate, and return the matplotlib figure; `file` saves it, too (PNG, SVG,
        PDF, by its ending).

        `what` is one or several of these; what has different units gets axes of its own:

        * "q", "u", "udot", "tau", "energy", "loop_error", or any other variable;
        * a joint or coordinate: its q, also if it closes a loop; "u.name", "udot.name", "tau.name", and "torque.name"
          for all that acted along it;
        * "reactions" (magnitudes of force and moment of all joints), "reaction.name" (components, body axes);
        * a force element, or "force.name"; "forces" for all of them.

        Lines of nothing but zeros or rounding, beside others of their kind, are left out unless they are asked for by
        name or `every` is true. ``phase="crank"`` draws speed over coordinate instead. `size` is for publications:
        "column" (85 mm wide), "page" (170 mm) or (width, height) in mm. Of batches the first 20 samples are drawn,
        named by their parameter if one differs. Forces need the machine, as `reactions` does.
        """
        from bellcrank.simulate.plot import draw

        return draw(self, (what,) if isinstance(what, str) else tuple(what), against, file, phase=phase, size=size,
                    every=every)

    def to_csv(self, file: str | os.PathLike[str], what: str | Sequence[str] = ()) -> None:
        """Write a table for spreadsheets and other programs: a row per sample, the time first, names and units in the
        head. It holds all that was recorded, or what names stand for as in `plot`:
        ``run.to_csv("forces.csv", ["crank", "force.strut", "reaction.B"])``. The file is put in place when it is
        complete; numbers read back as they were.

        >>> import bellcrank as bc
        >>> run = bc.compile(bc.load("pendulum")).simulate(([0.5], [0.0]), duration=0.01)
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run.to_csv(f"{folder}/run.csv", ["hinge", "u.hinge"])
        ...     pathlib.Path(folder, "run.csv").read_text().splitlines()[:2]
        ['time [s],coordinate hinge.angle [rad],speed hinge.angle [rad/s]', '0.0,0.5,0.0']
        """
        text = table_text(self, (what,) if isinstance(what, str) else tuple(what))
        write_text(file, text)

    def animate(self, file: str | os.PathLike[str] | None = None, *others: Any, **options: Any) -> Any:
        """Show the motion: ``result.animate("run.html")`` writes one page with all controls that opens offline;
        ``.gif`` and ``.mp4`` films, ``.png`` and ``.svg`` stills. Without a file, notebooks show the page.

        `others` are results (or systems) to compare with, drawn over this one; ``labels=("rk4", "gauss")`` name them.
        Further options, such as ``traces=[("coupler", (0.5, 0.2, 0))]`` and ``show=["forces"]``: see
        `bellcrank.animate`.
        """
        return from_above("view.animating", "animate")(self, *others, file=file, **options)

    def _repr_html_(self) -> str:
        """A still, and what `xarray` shows."""
        made: str = from_above("view.notebook", "html_of")(self, super()._repr_html_())
        return made


def _finite(what: str, q: Floats, u: Floats, tau: Floats | None) -> tuple[Floats, Floats, Floats | None]:
    """States that can be computed with: a sound one in the place of those that are not finite."""
    good = np.asarray(np.isfinite(q).all(axis=-1) & np.isfinite(u).all(axis=-1))
    if good.all():
        return q, u, tau
    if not good.any():
        raise StateError(f"{what}: no state of this selection is finite")
    q, u = (np.where(good[..., None], x, x[good][0]) for x in (q, u))
    return q, u, None if tau is None else np.where(good[..., None] & np.isfinite(tau), tau, 0.0)
