"""What force elements did over a run, loads of joints in any frame, and outputs that users define."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import xarray

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, NotYetError, StateError, hint
from bellcrank.lowering.element_view import FIELDS
from bellcrank.mechanism.joints import Joint
from bellcrank.simulate.acting import States, joint_reactions
from bellcrank.simulate.by_topology import by_topology
from bellcrank.simulate.contact_results import place_fields, places_on_record, rigid_element
from bellcrank.simulate.fields import coordinate_units, force_units, output_values, speed_units
from bellcrank.simulate.machine_record import MachineRecord
from bellcrank.system.kernels import Wrenches

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["ElementResults", "Laws", "element_units"]

#: outputs by name: functions of the machine
Laws = Mapping[str, Callable[[Any], Any]]

_AXES = ("x", "y", "z")
_UNITS = {"power": "W", "energy": "J", "vector": "N", "torque": "N m", "first_point": "m", "second_point": "m"}
_WORDS = {"force": "force along its coordinate or line", "length": "coordinate or length", "rate": "rate of that",
          "power": "power put into the machine", "energy": "energy stored", "vector": "force on its second body",
          "torque": "moment on its second body", "first_point": "where it acts on its first body",
          "second_point": "where it acts on its second body"}


class ElementResults(MachineRecord):  # type: ignore[no-untyped-call]  # of its __init_subclass__
    """The part of a `Result` that is about force elements and outputs."""

    __slots__ = ()

    @abstractmethod
    def _states(self, wrenches: Wrenches, what: str, needs_wrenches: bool = True) -> States: ...

    @abstractmethod
    def _over(self, values: Floats, dim: str, attrs: dict[str, str], name: str) -> xarray.DataArray: ...

    def element(self, name: str) -> xarray.Dataset:
        """What one force element did, by name: ``force``, ``length``, ``rate``, ``power``, ``energy`` (time, [sample])
        and ``vector``, ``torque``, ``first_point``, ``second_point`` (time, [sample], axis) in world axes. See
        `System.element_forces`; what a kind of element does not have is NaN. Ready-made elements with states have these
        beside them: ``["head"]`` and ``["rod"]`` of a cylinder, the ``["current"]`` of a motor, the ``["bend"]`` of a
        brake. Contacts that give way have their normal forces together as ``force``, the distance of the shapes as
        ``length``, the center of the normal forces as points; and ``normal_force``, ``depth``, ``closed`` (time,
        [sample], place), ``friction``, ``slip``, ``point``, ``normal`` (time, [sample], place, axis) at each of their
        places. So have rigid ones, with the mean forces over the steps that end at the samples (none at the start and
        at events) and the velocities at these. Servos, compliant stops and actuators report what they did within their
        limits. Cost: O(n + elements) a sample.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> _ = m.add_servo("servo", "hinge", stiffness=10.0, limit=2.0)
        >>> run = bc.compile(m).simulate(([0.5], [0.0]), duration=0.1)
        >>> float(run.element("servo").force[0])
        -2.0
        """
        if self.system is None and f"{name}.power" in self:  # from a file that holds them, states of elements too
            begins = f"{name}."
            held = xarray.Dataset({str(key)[len(begins):]: self[key] for key in self.data_vars
                                   if str(key).startswith(begins) and "." not in str(key)[len(begins):]})
            return held.rename({f"{name}.place": "place"}) if f"{name}.place" in held.dims else held
        return self._element(name)

    @by_topology
    def _element(self, name: str) -> xarray.Dataset:
        states = self._states(None, "element", needs_wrenches=False)
        zero = np.zeros(states.u.shape) if states.tau is None else states.tau
        forces = self._rigid_forces(states, name)
        found = states.system.element_forces(states.q, states.u, zero, t=states.t) if forces is None else {
            name: rigid_element(states, name, forces)}
        if name not in found:
            known = [*found, *(c.name for c in states.system.model.mechanism.contacts if c.rigid)]
            raise ModelError(f"element: no force element called {name!r}; there are {', '.join(known) or 'none'}"
                             f"{hint(name, known)}")
        units = {**_UNITS, **element_units(states.system, name)}
        arrays = {}
        for field, values in zip(FIELDS, found[name], strict=True):
            values = np.broadcast_to(values, (*states.u.shape[:-1], *values.shape[values.ndim - (FIELDS[field] > 1):]))
            attrs = {"units": units[field], "long_name": f"{_WORDS[field]} of {name!r}"}
            arrays[field] = self._over(values, "axis", attrs, field).assign_coords(axis=list(_AXES)) \
                if FIELDS[field] > 1 else self._over(values[..., None], "one", attrs, field).isel(one=0)
        for state in states.system.model.mechanism.states:
            own, _, label = state.name.rpartition(" ")
            if own == name:
                values = states.u[..., states.system.model.configuration.starts[state.name][1]]
                attrs = {"units": state.units, "long_name": f"state {label} of {name!r}"}
                arrays[label] = self._over(values[..., None], "one", attrs, label).isel(one=0)
        if any(c.name == name for c in states.system.model.mechanism.contacts):
            arrays |= self._places(states, name, forces)
        return xarray.Dataset(arrays, attrs={"element": name})

    def _rigid_forces(self, states: States, name: str) -> Floats | None:
        """Forces on record at the places of a rigid contact, (..., places, 3); None of other elements."""
        if all(c.name != name or not c.rigid for c in states.system.model.mechanism.contacts):
            return None
        if "contact_force" not in self:
            raise StateError(f"element: no forces of the rigid contact {name!r} are on record here; a run with "
                             "stepper='moreau' keeps them unless it is very long")
        table = self["contact_force"].transpose(..., "contact_component")
        own = places_on_record([str(x) for x in table["contact_component"].values], name)
        return np.asarray(table.values[..., own], dtype=float).reshape(*table.shape[:-1], -1, 3)

    def _places(self, states: States, name: str, forces: Floats | None) -> dict[str, xarray.DataArray]:
        """What a contact did at each of its places: (time, [sample], place) and (time, [sample], place, axis)."""
        arrays = {}
        for field, (values, units, words) in place_fields(states, name, forces).items():
            attrs, lead = {"units": units, "long_name": words}, states.u.ndim - 1
            if values.ndim == lead + 1:
                arrays[field] = self._over(values, "place", attrs, field)
            else:
                parts = [self._over(values[..., k], "place", attrs, field) for k in range(3)]
                arrays[field] = xarray.concat(parts, dim="axis").transpose(..., "axis").assign_coords(axis=list(_AXES))
        return arrays

    def with_elements(self, *names: str) -> Self:
        """This result with what elements did as variables ``"strut.force"``, ``"strut.power"``, ...: for files and
        plots. All of them, unless some are named."""
        if not names:
            system = self._machine("with_elements")
            mechanism = system.model.mechanism
            names = tuple(dict.fromkeys((*(e.name for e in mechanism.force_elements), *(
                c.name for c in mechanism.contacts if c.rigid and "contact_force" in self))))
        extra = {f"{name}.{field}": values.rename(place=f"{name}.place") if "place" in values.dims else values
                 for name in names for field, values in self.element(name).items() if not bool(np.isnan(values).all())}
        return self.assign(extra)

    @by_topology
    def outputs(self, laws: Laws | None = None) -> xarray.Dataset:
        """Outputs over time: functions of the machine ``law(at)`` (see `Mechanism.add_joint_force`), each one number,
        by name; those of `Mechanism.add_output` unless some are given.

        >>> import bellcrank as bc
        >>> run = bc.compile(bc.load("pendulum")).simulate(([0.5], [0.0]), duration=0.1)
        >>> run.outputs({"double": lambda at: 2.0 * at.q("hinge")}).double.values[0]
        np.float64(1.0)
        """
        states = self._states(None, "outputs", needs_wrenches=False)
        declared = {o.name: o for o in states.system.model.mechanism.outputs}
        arrays = {}
        for name, values in output_values(states.system, states.t, states.q, states.u, laws).items():
            attrs = {"units": declared[name].units if name in declared else "1", "long_name": f"output {name}"}
            arrays[name] = self._over(values[..., None], "one", attrs, name).isel(one=0)
        return xarray.Dataset(arrays)

    def with_outputs(self, laws: Laws | None = None) -> Self:
        """This result with its outputs as variables: for files and plots."""
        return self.assign(self.outputs(laws).data_vars)

    @by_topology
    def joint_load(self, joint: str, *, body: str | None = None, point: npt.ArrayLike | None = None,
                   axes: str = "world", wrenches: Wrenches = None) -> xarray.DataArray:
        """The wrench [moment; force] of a joint on one of its bodies, (time, [sample], component), in any axes and
        about any point.

        `body` is the one it acts on: the joint's child unless given; `axes` are "world" or the name of any body; the
        moment is about `point` in the frame of `body`, or about the joint's own place there. See `reactions`.
        """
        states = self._states(wrenches, "joint_load")
        system, q, u, _, t = states[:5]
        mechanism, names = system.model.mechanism, system.model.tree.body_names
        record = mechanism.joint(joint)
        real = {c.name: c.real for c in mechanism.carriers}  # a carrier moves as the body that it stands for
        ends = tuple(real.get(names[i], names[i]) for i in (record.parent, record.child))
        target = ends[1] if body is None else body
        if target not in ends:
            raise ModelError(f"joint_load: joint {joint!r} connects {ends[0]!r} and {ends[1]!r}, not {body!r}")
        raw = joint_reactions(states)[joint]
        outboard, place = _outboard(system, joint)
        here = _pose(system, outboard, q, t)
        own = (here[0][..., None, :, :] @ raw.reshape(*raw.shape[:-1], 2, 3, 1))[..., 0]
        origin = here[1] + here[0] @ np.asarray(place, dtype=float)
        if target != outboard:
            own = -own
        turn, position = _pose(system, target, q, t)
        default = record.child_pose if target == ends[1] else record.parent_pose
        where = [mechanism.default(x) for x in default.position] if point is None else point
        about = position + turn @ np.asarray(where, dtype=float)
        moment = own[..., 0, :] + np.cross(origin - about, own[..., 1, :])
        six = np.stack([moment, own[..., 1, :]], axis=-2)
        if axes != "world":
            six = six @ _pose(system, axes, q, t)[0]
        labels, units = ("mx", "my", "mz", "fx", "fy", "fz"), ("N m",) * 3 + ("N",) * 3
        attrs = {"units": "see component_units", "long_name": f"load of {joint} on {target}, axes of {axes}"}
        flat = np.broadcast_to(six.reshape(*six.shape[:-2], 6), (*u.shape[:-1], 6))
        return self._over(flat, "component", attrs, "joint_load").assign_coords(
            component=list(labels), component_units=("component", list(units)))


def _pose(system: Machine, body: str, q: Floats, t: Floats) -> tuple[Floats, Floats]:
    if body == "ground":
        return np.eye(3), np.zeros(3)
    found = system.pose(q, body, t=t)
    return found.rotation, found.position


def _outboard(system: Machine, joint: str) -> tuple[str, Sequence[float]]:
    """The body that `reactions` speak of, and the joint's place on it."""
    mechanism, tree = system.model.mechanism, system.model.tree
    record = mechanism.joint(joint)
    backwards = False
    if joint not in tree.cut_names:
        if joint not in tree.joint_names:
            raise NotYetError(f"joint_load: {joint!r} welds two bodies into one link; see reactions")
        backwards = int(tree.body_link[record.child]) != tree.joint_names.index(joint)
    end, pose = (record.parent, record.parent_pose) if backwards else (record.child, record.child_pose)
    real = {c.name: c.real for c in mechanism.carriers}
    name = tree.body_names[end]
    return real.get(name, name), [mechanism.default(x) for x in pose.position]


def element_units(system: Machine, name: str) -> dict[str, str]:
    """Units of force, length and rate of an element."""
    mechanism = system.model.mechanism
    elements: tuple[Any, ...] = (*mechanism.joint_forces, *mechanism.joint_sums, *mechanism.drives)
    for e in elements:
        if e.name == name:
            key, k = (e.terms[0][:2]) if hasattr(e, "terms") else (e.joint, e.coordinate)
            joint: Joint = mechanism.joint(key).joint
            return {"force": force_units(joint)[k], "length": coordinate_units(joint)[k], "rate": speed_units(joint)[k]}
    return {"force": "N", "length": "m", "rate": "m/s"}
