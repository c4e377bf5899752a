"""What force elements did over a run, loads of joints in any frame, and outputs that users define."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt
import xarray

from bellcrank.arguments import checked_methods
from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.mechanism.checks import triple
from bellcrank.simulate.acting import States, joint_reactions
from bellcrank.simulate.by_topology import by_topology
from bellcrank.simulate.element_fields import element_fields
from bellcrank.simulate.fields import Laws, check_outputs, output_values
from bellcrank.simulate.machine_record import MachineRecord
from bellcrank.simulate.outside_forces import contacts_on_record
from bellcrank.system.kernels import Wrenches

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["ElementResults"]

_AXES = ("x", "y", "z")


@checked_methods
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
        `System.element_forces`; what a kind of element does not have is left out (wrenches and
        tyres have ``vector`` and no ``force``). Forces are positive where they push points apart or drive a coordinate
        up, so that the power is force times rate. Ready-made elements with states have these
        beside them: ``["head"]`` and ``["rod"]`` of a cylinder, the ``["current"]`` of a motor, the ``["bend"]`` of a
        brake; and so have others whose name a state begins with, ``"strut heat"`` (one that is called as a field is
        ``["state length"]``). Contacts that give way have their normal forces together as ``force``, the distance of
        the shapes as ``length``, the center of the normal forces as points, what bristles hold in ``energy``; and
        ``normal_force``, ``depth``, ``closed`` (time, [sample], place), ``friction``, ``slip``, ``point``, ``normal``
        (time, [sample], place, axis) at each of their places. So have rigid ones, with the mean forces over the
        steps that end at the samples (none at the start and at events) and the velocities at these. Servos,
        compliant stops and actuators report what they did within their limits. Cost: O(n + elements) a sample.

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
        own = {str(key)[len(name) + 1:]: values for key, values in self._elements((name,)).items()}
        made = xarray.Dataset(own, attrs={"element": name})
        return made.rename({f"{name}.place": "place"}) if f"{name}.place" in made.dims else made

    @by_topology
    def _elements(self, names: tuple[str, ...]) -> xarray.Dataset:
        """What elements did as variables ``"strut.force"``; places of contacts are along ``"floor.place"``."""
        states = self._states(None, "element", needs_wrenches=False)
        found = {f"{name}.{key}": (name, field) for name, fields in element_fields(
            states, names, contacts_on_record(self, _rigid(states, names), "element")).items()
            for key, field in fields.items()}
        lead = states.u.shape[:-1]
        flat = [np.broadcast_to(f.values, (*lead, *f.own_shape())).reshape(*lead, -1) for _, f in found.values()]
        whole = self._over(np.concatenate(flat, axis=-1), "number", {}, "element")
        parts = np.split(whole.values, np.cumsum([x.shape[-1] for x in flat])[:-1], axis=-1)
        arrays = {key: ((*whole.dims[:-1], *(f"{name}.place" if d == "place" else d for d in f.dims)),
                        part.reshape(*part.shape[:-1], *f.own_shape()), {"units": f.units, "long_name": f.words})
                  for (key, (name, f)), part in zip(found.items(), parts, strict=True)}
        return xarray.Dataset(arrays, coords={**whole.coords, "axis": list(_AXES)})

    def with_elements(self, *names: str) -> Self:
        """This result with what elements did as variables ``"strut.force"``, ``"strut.power"``, ...: for files and
        plots. All of them, unless some are named. Cost: O(n + elements) a sample.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> _ = m.add_joint_spring("spring", "hinge", stiffness=10.0)
        >>> run = bc.compile(m).simulate(([0.5], [0.0]), duration=0.1).with_elements()
        >>> float(run["spring.force"][0])
        -5.0
        """
        if not names:
            system = self._machine("with_elements")
            mechanism = system.model.mechanism
            names = tuple(dict.fromkeys((*(e.name for e in mechanism.force_elements), *(
                c.name for c in mechanism.contacts if c.rigid and "contact_force" in self))))
        missing = tuple(name for name in names if self.system is not None or f"{name}.power" not in self)
        if not missing:  # there are none, or a file holds them
            return self.assign({})
        found = self._elements(missing)
        return self.assign({key: values for key, values in found.items() if not bool(np.isnan(values).all())})

    @by_topology
    def outputs(self, laws: Laws | None = None) -> xarray.Dataset:
        """Outputs over time: functions of the machine ``law(at)`` (see `Mechanism.add_joint_force`), each one number,
        by name; those of `Mechanism.add_output` unless some are given. Angles count turns.

        >>> import bellcrank as bc
        >>> run = bc.compile(bc.load("pendulum")).simulate(([0.5], [0.0]), duration=0.1)
        >>> run.outputs({"double": lambda at: 2.0 * at.q("hinge")}).double.values[0]
        np.float64(1.0)
        """
        if laws is not None and not isinstance(laws, Mapping):
            raise ModelError(f"outputs: a mapping {{name: law}} is needed, got {laws!r}")
        states = self._states(None, "outputs", needs_wrenches=False)
        declared = {o.name: o for o in states.system.model.mechanism.outputs}
        arrays = {}
        for name, values in output_values(states.system, states.t, states.q, states.u, laws).items():
            attrs = {"units": declared[name].units if name in declared else "1", "long_name": f"output {name}"}
            arrays[name] = self._over(values[..., None], "one", attrs, name).isel(one=0)
        return xarray.Dataset(arrays)

    def with_outputs(self, laws: Laws | None = None) -> Self:
        """This result with its outputs as variables: for files and plots.

        >>> import bellcrank as bc
        >>> run = bc.compile(bc.load("pendulum")).simulate(([0.5], [0.0]), duration=0.1)
        >>> "double" in run.with_outputs({"double": lambda at: 2.0 * at.q("hinge")})
        True
        """
        if laws is not None:
            check_outputs(self._machine("with_outputs"), laws)
        return self.assign(self.outputs(laws).data_vars)

    @by_topology
    def joint_load(self, joint: str, *, body: str | None = None, point: npt.ArrayLike | None = None,
                   axes: str = "world", wrenches: Wrenches = None) -> xarray.DataArray:
        """The wrench [moment; force] of a joint on one of its bodies, (time, [sample], component), in any axes and
        about any point.

        `body` is the one it acts on: the joint's child unless given; `axes` are "world" or the name of any body; the
        moment is about `point` in the frame of `body`, or about the joint's own place there. See `reactions`.

        >>> import bellcrank as bc
        >>> run = bc.compile(bc.load("pendulum")).simulate(([0.0], [0.0]), duration=0.1)
        >>> load = run.joint_load("hinge", axes="bob", point=(0, 0.5, 0))
        >>> load.isel(time=0).values.round(3) + 0.0  # its weight, and the moment of that about the point
        array([-4.905,  0.   ,  0.   ,  0.   ,  0.   ,  9.81 ])
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
        if point is not None:
            point = triple(point, f"joint_load of {joint!r}: point")  # type: ignore[arg-type]
        found = joint_reactions(states)
        raw = found[joint] if joint in found else np.full((*u.shape[:-1], 6), np.nan)  # on the child; open: none
        here = _pose(system, ends[1], q, t)
        own = (here[0][..., None, :, :] @ raw.reshape(*raw.shape[:-1], 2, 3, 1))[..., 0]
        origin = here[1] + (here[0] @ system.model.values_of(record.child_pose.position)[..., None])[..., 0]
        if target != ends[1]:
            own = -own
        turn, position = _pose(system, target, q, t)
        default = record.child_pose if target == ends[1] else record.parent_pose
        where = system.model.values_of(default.position) if point is None else np.asarray(point, dtype=float)
        about = position + (turn @ where[..., None])[..., 0]
        moment = own[..., 0, :] + np.cross(origin - about, own[..., 1, :])
        six = np.stack([moment, own[..., 1, :]], axis=-2)
        if axes != "world":
            six = six @ _pose(system, axes, q, t)[0]
        labels, units = ("mx", "my", "mz", "fx", "fy", "fz"), ("N m",) * 3 + ("N",) * 3
        attrs = {"units": "see component_units", "long_name": f"load of {joint} on {target}, axes of {axes}"}
        flat = np.broadcast_to(six.reshape(*six.shape[:-2], 6), (*u.shape[:-1], 6))
        return self._over(flat, "component", attrs, "joint_load").assign_coords(
            component=list(labels), component_units=("component", list(units)))


def _rigid(states: States, names: Sequence[str]) -> list[str]:
    """Rigid contacts among some elements."""
    return [c.name for c in states.system.model.mechanism.contacts if c.rigid and c.name in names]


def _pose(system: Machine, body: str, q: Floats, t: Floats) -> tuple[Floats, Floats]:
    if body == "ground":
        return np.eye(3), np.zeros(3)
    found = system.pose(q, body, t=t)
    return found.rotation, found.position
