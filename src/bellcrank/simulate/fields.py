"""What a result holds: names, dimensions and units of its variables, and those that follow from the states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, ModelError
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.joints import Joint
from bellcrank.mechanism.machine_sizes import turns
from bellcrank.mechanism.parts import FirstOrder
from bellcrank.system.body_kinematics import totals as body_totals
from bellcrank.system.force_elements import machine_view, stored_energy
from bellcrank.system.loop_errors import largest_errors

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["CONTACTS", "DERIVED", "IMPULSE", "MOST_CLOSURES", "PER_EVENT", "STATE", "TOPOLOGY", "WRENCHES", "Field",
           "Laws", "Layout", "check_outputs", "coordinate_units", "derive", "force_units", "layout_of", "output_values",
           "sample_dims", "speed_units"]


#: outputs by name: functions of the machine
Laws = Mapping[str, Callable[[Any], Any]]


class Field(NamedTuple):
    """A variable along time (and samples): the dimension it has besides, its units and what it is."""

    name: str
    along: str  #: "coordinate", "speed" or nothing
    units: str  #: of all entries; those along a dimension have units of their own
    long_name: str


STATE = (Field("q", "coordinate", "", "joint coordinates"), Field("u", "speed", "", "joint speeds"),
         Field("tau", "speed", "", "joint forces given"))
DERIVED = (Field("kinetic_energy", "", "J", "kinetic energy"),
           Field("potential_energy", "", "J", "potential energy of gravity"),
           Field("stored_energy", "", "J", "energy stored in springs"),
           Field("energy", "", "J", "kinetic, potential and stored energy"),
           Field("loop_error", "", "m", "largest error of a loop constraint"),
           Field("loop_rate_error", "", "m/s", "largest rate of error of a loop constraint"))


#: what acts at places of rigid contacts
CONTACTS = Field("contact_force", "contact_component", "N", "mean force over the last step at a place of a rigid "
                 "contact on its second body, world axes")
#: what was given to act on bodies from outside
WRENCHES = Field("wrench", "wrench_component", "", "external wrenches given, world axes, about the origins of bodies")
#: the number of the topology in the attribute ``topologies``, along time alone
TOPOLOGY = Field("topology", "", "1", "number of the topology, see the attribute topologies")
#: parts of an impulse
IMPULSE = ("mx", "my", "mz", "fx", "fy", "fz")
#: machines with more closures than this do not put their impulses on record
MOST_CLOSURES = 64
#: variables along events: dimensions besides, units and what they are
PER_EVENT = {"event_energy_lost": ((), "J", "kinetic energy lost in impulses"),
             "event_energy_added": ((), "J", "energy that bodies, joints or a state given bring in"),
             "event_stop_impulse": ((), "N s or N m s", "impulse of a rigid stop along its coordinate"),
             "event_impulse": (("closure", "impulse_component"), "see impulse_units",
                               "impulse of a closure on its child, world axes, about the joint's origin there")}


# -- units ------------------------------------------------------------------------------------------
def speed_units(joint: Joint) -> tuple[str, ...]:
    """Units of a joint's speeds: rad/s where the child turns, m/s where it only slides.

    >>> import bellcrank as bc
    >>> speed_units(bc.Cylindrical("z"))
    ('rad/s', 'm/s')
    """
    if isinstance(joint, Modal):
        return ("1/s",) * joint.nu
    if isinstance(joint, FirstOrder):
        return (joint.units,)
    return tuple("rad/s" if turns else "m/s" for turns in turns(joint))


def force_units(joint: Joint) -> tuple[str, ...]:
    """Units of the forces conjugate to a joint's speeds."""
    if isinstance(joint, Modal):
        return ("J",) * joint.nu
    if isinstance(joint, FirstOrder):
        return (f"{joint.units}/s",)
    return tuple("N m" if turns else "N" for turns in turns(joint))


def coordinate_units(joint: Joint) -> tuple[str, ...]:
    """Units of a joint's coordinates: rad, m, or 1 for quaternions and modal coordinates.

    >>> import bellcrank as bc
    >>> coordinate_units(bc.Free())
    ('1', '1', '1', '1', 'm', 'm', 'm')
    """
    if isinstance(joint, Modal):
        return ("1",) * joint.nq
    if isinstance(joint, FirstOrder):
        return (f"{joint.units} s",)
    if joint.nq == joint.nu:
        return tuple("rad" if turns else "m" for turns in turns(joint))
    return ("1",) * 4 + ("m",) * (joint.nq - 4)  # a quaternion comes first


# -- layout -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Layout:
    """Dimensions of a result and the labels along them."""

    samples: tuple[str, ...]  #: names of the batch dimensions
    batch: tuple[int, ...]
    coordinates: tuple[str, ...]
    speeds: tuple[str, ...]
    coordinate_units: tuple[str, ...]
    speed_units: tuple[str, ...]
    force_units: tuple[str, ...]
    changing: bool = False  #: whether events may change the topology
    closures: tuple[str, ...] = ()  #: those whose impulses are put on record
    outputs: tuple[Field, ...] = ()  #: of the mechanism
    contact_components: tuple[str, ...] = ()  #: of forces at places of rigid contacts, if they are put on record
    wrench_components: tuple[str, ...] = ()  #: of external wrenches, if some act: body and part

    @property
    def fields(self) -> tuple[Field, ...]:
        """All variables along time but the number of the topology."""
        return (*STATE, *DERIVED, *((CONTACTS,) if self.contact_components else ()),
                *((WRENCHES,) if self.wrench_components else ()), *self.outputs)

    def dims(self, field: Field) -> tuple[str, ...]:
        """Dimensions of a variable, time first."""
        return ("time", *self.samples, *((field.along,) if field.along else ()))

    def attrs(self, field: Field) -> dict[str, str]:
        """Units and long name of a variable."""
        labels = {"q": ("coordinate_units", self.coordinate_units), "u": ("speed_units", self.speed_units),
                  "tau": ("force_units", self.force_units),
                  "wrench": ("wrench_units", self.wrench_units)}
        units = field.units
        if field.name in labels:
            where, each = labels[field.name]
            units = each[0] if len(set(each)) == 1 else f"see {where}"
        return {"units": units, "long_name": field.long_name}

    @property
    def wrench_units(self) -> tuple[str, ...]:
        """Units of the components of external wrenches."""
        return (*("N m",) * 3, *("N",) * 3) * (len(self.wrench_components) // 6)

    def labels(self) -> dict[str, tuple[str, tuple[str, ...], str]]:
        """Text coordinates: {name: (dimension, values, long name)}."""
        out = {"coordinate": ("coordinate", self.coordinates, "joint coordinate"),
               "coordinate_units": ("coordinate", self.coordinate_units, "units of q"),
               "speed": ("speed", self.speeds, "joint speed"),
               "speed_units": ("speed", self.speed_units, "units of u"),
               "force_units": ("speed", self.force_units, "units of joint forces")}
        if self.contact_components:
            out |= {"contact_component": ("contact_component", self.contact_components,
                                          "contact, place and axis of a force")}
        if self.wrench_components:
            out |= {"wrench_component": ("wrench_component", self.wrench_components, "body and part of a wrench"),
                    "wrench_units": ("wrench_component", self.wrench_units, "units of wrench")}
        if self.closures:
            out |= {"closure": ("closure", self.closures, "what closes a loop"),
                    "impulse_component": ("impulse_component", IMPULSE, "part of an impulse"),
                    "impulse_units": ("impulse_component", ("N m s",) * 3 + ("N s",) * 3, "units of event_impulse")}
        return out


def sample_dims(batch: Sequence[int]) -> tuple[str, ...]:
    """Names of the batch dimensions: none, ``sample``, or ``sample_0``, ``sample_1``, ..."""
    return ("sample",) if len(batch) == 1 else tuple(f"sample_{i}" for i in range(len(batch)))


def layout_of(system: Machine, batch: tuple[int, ...]) -> Layout:
    """How results of `system` for a batch of this shape are laid out."""
    return system.kernels.kept(("layout", batch), lambda: _layout(system, batch))


def _layout(system: Machine, batch: tuple[int, ...]) -> Layout:
    joints = [system.model.mechanism.joint(name).joint for name in system.joint_names]
    of_q, of_u, of_force = (tuple(unit for joint in joints for unit in of(joint))
                            for of in (coordinate_units, speed_units, force_units))
    return replace(Layout(sample_dims(batch), batch, system.coordinate_names, system.speed_names, of_q, of_u,
                          of_force),
                   outputs=tuple(Field(_free(o.name), "", o.units, f"output {o.name}")
                                 for o in system.model.mechanism.outputs))


def _free(output: str) -> str:
    """The name of an output, if a result has no other use for it."""
    used = {field.name for field in (*STATE, *DERIVED, CONTACTS, WRENCHES, TOPOLOGY)} | set(PER_EVENT) | {
        "time", "coordinate", "speed", "sample", "closure", "contact_component", "wrench_component",
        "event", "event_time", "event_name"}
    if output in used or "/" in output:
        raise ModelError(f"output {output!r}: results cannot hold it by this name"
                         f"{', which they use themselves' if output in used else ''}; call it otherwise")
    return output


# -- what follows from the states -------------------------------------------------------------------
def derive(system: Machine, t: Floats, q: Floats, u: Floats, lanes: bool | None = None) -> dict[str, Floats]:
    """Energies [J] and loop errors of states, in one batch: t (k,), q (k, ..., nq), u (k, ..., nu) -> (k, ...).

    Where a state is not finite, or so large that they overflow, neither are they. Cost: O(n) per state.
    """
    try:
        return _derive(system, t, q, u, lanes)
    except BellcrankError:
        if len(t) > 1:  # find the samples to blame
            half = len(t) // 2
            parts = [derive(system, t[s], q[s], u[s], lanes) for s in (slice(None, half), slice(half, None))]
            return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
        sound = np.flatnonzero(np.isfinite(q).all(axis=-1) & np.isfinite(u).all(axis=-1))
        if len(sound) < 2:
            return {f.name: np.full(q.shape[:-1], np.nan) for f in DERIVED}
        first = np.zeros(q.shape[:-1], dtype=bool)  # and the states: others of the batch must not suffer
        first.flat[sound[:len(sound) // 2]] = True
        one, other = (derive(system, t, np.where(some[..., None], q, np.nan), u, lanes) for some in (first, ~first))
        return {name: np.where(first, one[name], other[name]) for name in one}


def check_outputs(system: Machine, laws: Laws) -> None:
    """Refuse outputs before anything is computed: names that results use themselves, and laws that look for parts which
    are not there or give no number."""
    if not isinstance(laws, Mapping):
        raise ModelError(f"outputs are a mapping {{name: law}}, got {laws!r}")
    at = machine_view(system.plans, system.neutral(), np.zeros(system.nu), 0.0)
    batch = np.broadcast_shapes(*(np.shape(value) for value in system.model.values.values()))
    for name, law in laws.items():
        if not isinstance(name, str) or not name:
            raise ModelError(f"outputs: their names are texts, got {name!r}")
        _free(name)
        if not callable(law):
            raise ModelError(f"output {name!r}: a law is a function of one argument, which shows the machine, got "
                             f"{law!r}")
        try:
            with np.errstate(all="ignore"):
                np.broadcast_to(np.asarray(law(at), dtype=float), batch)
        except ModelError as error:
            raise ModelError(f"output {name!r}: {error}") from None
        except (TypeError, ValueError) as error:
            if not isinstance(error, BellcrankError):  # a state that a law does not cover is no mistake
                raise ModelError(f"output {name!r}: it must return one number ({error})") from None
        except (BellcrankError, ArithmeticError):
            continue


def output_values(system: Machine, t: Floats, q: Floats, u: Floats,
                  laws: Mapping[str, Callable[[Any], Any]] | None = None) -> dict[str, Floats]:
    """Outputs of states by name, those of the mechanism or some given: (k, ...) each. Cost: O(n) a state."""
    chosen = {o.name: o.law for o in system.model.mechanism.outputs} if laws is None else laws
    if not chosen:
        return {}
    at, out = machine_view(system.plans, q, u, t), {}
    for name, law in chosen.items():
        try:
            out[name] = np.array(np.broadcast_to(np.asarray(law(at), dtype=float), u.shape[:-1]))
        except BellcrankError as error:
            raise ModelError(f"output {name!r}: {error}") from None
        except (TypeError, ValueError) as error:
            raise ModelError(f"output {name!r}: it must return one number ({error})") from None
    return out


def _derive(system: Machine, t: Floats, q: Floats, u: Floats, lanes: bool | None) -> dict[str, Floats]:
    clock = t.reshape(-1, *(1,) * (q.ndim - 2))
    bad = ~(np.isfinite(q).all(axis=-1) & np.isfinite(u).all(axis=-1) & np.isfinite(clock))
    if bad.any():  # calls refuse such states: look at others in their place
        q, u = np.where(bad[..., None], system.neutral(), q), np.where(bad[..., None], 0.0, u)
        clock = np.where(np.isfinite(clock), clock, 0.0)
    totals = body_totals(system.kernels, q, u, clock, lanes)
    kinetic, potential = totals[..., 10], totals[..., 11]
    springs = np.broadcast_to(stored_energy(system.plans, q, t=clock), kinetic.shape)
    error, rate = largest_errors(system.plans, q, u, clock, lanes)
    out = {"kinetic_energy": kinetic, "potential_energy": potential, "stored_energy": springs,
           "energy": kinetic + potential + springs, "loop_error": error, "loop_rate_error": rate}
    return {name: np.where(bad, np.nan, np.broadcast_to(value, bad.shape)) for name, value in out.items()}
