"""What force elements did in the states of a run, many elements in one pass: linear in their number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, hint
from bellcrank.lowering.element_view import FIELDS
from bellcrank.lowering.element_views import element_parts
from bellcrank.mechanism.joints import Joint
from bellcrank.simulate.acting import States
from bellcrank.simulate.contact_results import place_fields, rigid_element
from bellcrank.simulate.fields import coordinate_units, force_units, speed_units
from bellcrank.system.contact_states import contact_states
from bellcrank.system.element_states import ElementForces, states_of_elements

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["ElementField", "element_fields", "element_units"]

_UNITS = {"power": "W", "energy": "J", "vector": "N", "torque": "N m", "first_point": "m", "second_point": "m"}
_PLAIN = {"force": "N", "length": "m", "rate": "m/s"}
_WORDS = {"force": "force along its coordinate or line", "length": "coordinate or length", "rate": "rate of that",
          "power": "power put into the machine", "energy": "energy stored", "vector": "force on its second body",
          "torque": "moment on its second body", "first_point": "where it acts on its first body",
          "second_point": "where it acts on its second body"}


class ElementField(NamedTuple):
    """A quantity of an element over states: values (..., own axes), and what the own axes are."""

    values: Floats
    dims: tuple[str, ...]  #: of "place", "axis"
    units: str
    words: str

    def own_shape(self) -> tuple[int, ...]:
        """Sizes of the own axes."""
        return np.shape(self.values)[np.ndim(self.values) - len(self.dims):]


def element_fields(states: States, names: Sequence[str], on_record: Mapping[str, Floats]
                   ) -> dict[str, dict[str, ElementField]]:
    """All fields of some elements by name; `on_record` are forces at the places of rigid contacts, (..., places, 3)."""
    mechanism = states.system.model.mechanism
    touching = set(names) & {c.name for c in mechanism.contacts}
    contacts = contact_states(states.system.plans, states.q, states.u, t=states.t, only=touching) if touching else {}
    found = {name: rigid_element(contacts[name], forces) for name, forces in on_record.items()}
    if len(found) < len(set(names)):
        zero = np.zeros(states.u.shape) if states.tau is None else states.tau
        found |= states.system.element_forces(states.q, states.u, zero, t=states.t)
    for name in names:
        if name not in found:
            known = list(dict.fromkeys([*found, *(c.name for c in mechanism.contacts if c.rigid)]))
            raise ModelError(f"element: no force element called {name!r}; there are {', '.join(known) or 'none'}"
                             f"{hint(name, known)}")
    units, own_states = _units(states.system, names), _states_of(states, names)
    has = {name: kind.has for name, kind, _ in element_parts(states.system.model.tree)}
    out = {}
    for name in names:
        fields = _report(name, found[name], {**_UNITS, **units[name]}, has.get(name, tuple(FIELDS)))
        if name in contacts:
            fields |= {field: ElementField(values, ("place", "axis")[:values.ndim - states.u.ndim + 1], unit, words)
                       for field, (values, unit, words) in place_fields(contacts[name], on_record.get(name)).items()}
        for label, state in own_states.get(name, {}).items():
            fields[label if label not in fields else f"state {label}"] = state  # what users call so is kept apart
        out[name] = fields
    return out


def _report(name: str, found: ElementForces, units: Mapping[str, str], has: Sequence[str]) -> dict[str, ElementField]:
    return {field: ElementField(getattr(found, field), ("axis",) if size > 1 else (), units[field],
                                f"{_WORDS[field]} of {name!r}")
            for field, size in FIELDS.items() if field in has}


def _states_of(states: States, names: Iterable[str]) -> dict[str, dict[str, ElementField]]:
    """States that belong to elements: by element and label."""
    wanted, starts = set(names), states.system.model.configuration.starts
    out: dict[str, dict[str, ElementField]] = {}
    for (own, label), state in states_of_elements(states.system.model).items():
        if own in wanted:
            out.setdefault(own, {})[label] = ElementField(states.u[..., starts[state.name][1]], (), state.units,
                                                          f"state {label} of {own!r}")
    return out


def element_units(system: Machine, name: str) -> dict[str, str]:
    """Units of force, length and rate of an element."""
    return _units(system, (name,))[name]


def _units(system: Machine, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """The same of some elements, by name."""
    mechanism = system.model.mechanism
    out = dict.fromkeys(names, _PLAIN)
    elements: tuple[Any, ...] = (*mechanism.drives, *mechanism.joint_sums, *mechanism.joint_forces)
    for e in elements:
        if e.name in out:
            key, k = (e.terms[0][:2]) if hasattr(e, "terms") else (e.joint, e.coordinate)
            joint: Joint = mechanism.joint(key).joint
            out[e.name] = {"force": force_units(joint)[k], "length": coordinate_units(joint)[k],
                           "rate": speed_units(joint)[k]}
    return out
