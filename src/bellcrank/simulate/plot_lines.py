"""What the names that `Result.plot` takes stand for: lines over time, with labels and units."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, ModelError, hint
from bellcrank.simulate.fields import DERIVED

if TYPE_CHECKING:
    from bellcrank.simulate.result import Result

__all__ = ["NamedLine", "abscissa", "lines_of", "phases_of", "worth_drawing"]

_ENERGIES = ("kinetic_energy", "potential_energy", "stored_energy", "energy")
#: variables along joints: the dimension of their names, that of their units, and what they are
_STATES = {"q": ("coordinate", "coordinate_units", "coordinate"), "u": ("speed", "speed_units", "speed"),
           "udot": ("speed", "speed_units", "acceleration"), "tau": ("speed", "force_units", "force"),
           "torque": ("speed", "force_units", "force")}
#: other words for them
_SAME = {"acceleration": "udot", "accelerations": "udot", "torques": "torque", "reaction": "reactions",
         "force": "forces"}
#: below this part of the largest value of its kind, a line is rounding
_NOISE = 1e-9
_COMPONENTS = ("mx", "my", "mz", "fx", "fy", "fz")


class NamedLine(NamedTuple):
    """Something to draw: values (time, samples)."""

    label: str
    quantity: str
    units: str
    values: Floats
    family: str = ""  #: lines of one family are compared when zeros and rounding are left out; nothing: always drawn


def lines_of(result: Result, name: str) -> list[NamedLine]:
    """The lines of a variable, or of what belongs to a joint or an element: see `Result.plot`."""
    if name == "energy":
        return [_variable(result, n, "energy", "energy") for n in _ENERGIES if n in result]
    head, _, rest = name.partition(".")
    head = _SAME.get(head, head)
    joints = {str(n).rpartition(".")[0] for n in np.atleast_1d(result["coordinate"].values)}
    if not rest and head in (*_STATES, "reactions", "forces"):
        return _group(result, head)
    owner, _, field = name.rpartition(".")
    if owner in _elements(result) and owner not in joints:
        return _element_field(result, owner, field)
    if name in {f.name for f in DERIVED} or (name in result.data_vars and result[name].dims[:1] == ("time",)):
        if name in result.data_vars and _parts_of(result[name]):
            return _by_parts(name, field or name, result[name])
        return [_variable(result, name, "energy" if name in _ENERGIES else name.replace("_", " "), "")]
    if rest and head not in joints:
        found = {"reactions": _reaction, "forces": _element}.get(head)
        if found is not None:
            return found(result, rest)
        if head in _STATES:
            return _entries(result, head, rest)
    return _coordinate(result, name)


def phases_of(result: Result, joint: str) -> list[tuple[NamedLine, NamedLine]]:
    """Coordinates and speeds of a joint, pair by pair."""
    positions, speeds = _entries(result, "q", joint), _entries(result, "u", joint)
    if len(positions) != len(speeds):
        raise ModelError(f"plot: the coordinates of {joint!r} are a quaternion, which has no phase plane")
    return list(zip(positions, speeds, strict=True))


def abscissa(result: Result, against: str) -> NamedLine:
    """What is drawn along."""
    if against == "time":
        return NamedLine("time", "time", "s", _flat(result["time"].values))
    found = lines_of(result, against)
    if len(found) != 1:
        raise ModelError(f"plot: {against!r} is not one quantity to draw against but "
                         f"{len(found)}: {', '.join(line.label for line in found[:8])}")
    return found[0]


def worth_drawing(lines: list[NamedLine]) -> list[NamedLine]:
    """Without lines of zeros and rounding among others of their family; those asked for by name stay."""
    largest: dict[str, float] = {}
    for line in lines:
        largest[line.family] = max(largest.get(line.family, 0.0), _size(line))
    kept = [line for line in lines if not line.family or _size(line) > _NOISE * largest[line.family]]
    return kept or lines


def _size(line: NamedLine) -> float:
    values = np.abs(line.values[np.isfinite(line.values)])
    return float(values.max(initial=0.0))


def _flat(values: Any) -> Floats:
    """(time, ...) as (time, samples)."""
    array = np.asarray(values, dtype=float)
    return array.reshape(len(array), int(np.prod(array.shape[1:], dtype=np.int64)))


def _variable(result: Result, name: str, quantity: str, family: str) -> NamedLine:
    if name not in result:
        raise ModelError(f"plot: this result has no {name!r}")
    array = result[name].transpose("time", ...)
    return NamedLine(name.replace("_", " "), quantity, str(array.attrs.get("units", "1")), _flat(array.values), family)


# -- along joints -----------------------------------------------------------------------------------
def _group(result: Result, name: str) -> list[NamedLine]:
    """All of a kind."""
    if name == "reactions":
        return _all_reactions(result)
    if name == "forces":
        return _all_elements(result)
    return [_in_family(line, name) for line in _entries(result, name, None)]


def _entries(result: Result, variable: str, joint: str | None) -> list[NamedLine]:
    label, where, quantity = _STATES[variable]
    array = _array(result, variable)
    if label not in array.dims:
        array = array.expand_dims(label)
    array = array.transpose("time", ..., label)
    names, units = [str(n) for n in array[label].values], np.atleast_1d(array[where].values)
    places = range(len(names)) if joint is None else _places(names, joint, label)
    more = " (all forces)" if variable == "torque" else ""
    return [NamedLine(names[i] + more, _kind(quantity, str(units[i if len(units) > 1 else 0])),
                     str(units[i if len(units) > 1 else 0]) + "^2" * (variable == "udot"),
                     _flat(array.values[..., i])) for i in places]


def _kind(quantity: str, units: str) -> str:
    return "torque" if quantity == "force" and units == "N m" else quantity


def _array(result: Result, variable: str) -> Any:
    if variable == "torque":
        return result.torques()
    if variable == "udot":
        return result.accelerations()
    if variable not in result:
        raise ModelError(f"plot: this result has no {variable!r}" + (
            "; joint forces are recorded if any act" if variable == "tau" else ""))
    return result[variable]


def _places(names: list[str], joint: str, label: str) -> list[int]:
    found = [i for i, n in enumerate(names) if n == joint] or [
        i for i, n in enumerate(names) if n.rpartition(".")[0] == joint]
    if not found:
        raise ModelError(f"no {label} called {joint!r}; there are {', '.join(names[:20])}")
    return found


def _known(result: Result) -> Any:
    """The machine, compiled from what the result's file says if need be; None if nobody knows it."""
    if result.system is None:
        with contextlib.suppress(BellcrankError):
            result.rebuild()
    return result.system


def _coordinate(result: Result, name: str) -> list[NamedLine]:
    """A coordinate, or the force of an element."""
    names = [str(n) for n in np.atleast_1d(result["coordinate"].values)]
    if any(name in (n, n.rpartition(".")[0]) for n in names):
        return _entries(result, "q", name)
    if name in _elements(result):
        return _element(result, name)
    try:
        return _entries(result, "q", name)
    except ModelError as error:
        known = {*(n.rpartition(".")[0] for n in names), *names, *_elements(result), *_STATES,
                 "reactions", "forces", "energy"}
        raise ModelError(f"plot: {error}{hint(name, known)}") from None


# -- forces -----------------------------------------------------------------------------------------
def _reactions(result: Result) -> dict[str, Floats]:
    """Wrenches of all joints, (time, samples, 6) each, as recorded or computed."""
    array = result["reaction"] if "reaction" in result else result.reactions()
    array = array.transpose("joint", "time", ..., "component")
    return {str(name): np.asarray(array.values[i], dtype=float).reshape(array.sizes["time"], -1, 6)
            for i, name in enumerate(array["joint"].values)}


def _reaction(result: Result, joint: str) -> list[NamedLine]:
    """The six components of one joint's reaction."""
    known = _reactions(result)
    if joint not in known:
        raise ModelError(f"plot: no joint called {joint!r}; there are {', '.join(known)}{hint(joint, known)}")
    return [NamedLine(f"{joint} {name}", *_of_wrench("reaction", i), known[joint][..., i], f"reaction {joint}")
            for i, name in _forces_first(_COMPONENTS)]


def _forces_first(labels: Sequence[str]) -> list[tuple[int, str]]:
    """Places and labels of the components of a wrench, in the order of diagrams and tables."""
    return sorted(enumerate(labels), key=lambda item: item[1].startswith("m"))


def _all_reactions(result: Result) -> list[NamedLine]:
    """How large force and moment of each joint are."""
    known = _reactions(result)
    return [NamedLine(joint, *_of_wrench("magnitude of reaction", i), np.linalg.norm(wrench[..., i:i + 3], axis=-1),
                      "reactions")
            for i in (3, 0) for joint, wrench in known.items()]


def _of_wrench(what: str, component: int) -> tuple[str, str]:
    return (f"{what} moment", "N m") if component < 3 else (f"{what} force", "N")


def _elements(result: Result) -> list[str]:
    system = _known(result)
    if system is None:
        return []
    m = system.model.mechanism
    parts: tuple[Any, ...] = (*m.joint_forces, *m.joint_sums, *m.drives, *m.springs, *m.bushings, *m.drags, *m.wrenches,
                              *(c for c in m.contacts if not c.rigid or "contact_force" in result), *m.constraints)
    return [part.name for part in parts]


def _element_field(result: Result, name: str, field: str) -> list[NamedLine]:
    """One of the quantities of `Result.element`; those of vectors by axes, those of contacts by places."""
    found = result.element(name)
    if field not in found:
        raise ModelError(f"plot: element {name!r} has no {field!r}; it has {', '.join(map(str, found.data_vars))}"
                         f"{hint(field, list(map(str, found.data_vars)))}")
    return _by_parts(f"{name}.{field}", field, found[field])


def _parts_of(array: Any) -> list[str]:
    """Dimensions of which every entry is a line of its own: those that are neither time nor samples, axes last."""
    return sorted((d for d in map(str, array.dims) if d != "time" and not d.startswith("sample")),
                  key=lambda d: d == "axis")


def _by_parts(name: str, field: str, array: Any) -> list[NamedLine]:
    """A line for every axis of vectors, every place of contacts, and so on."""
    more = _parts_of(array)
    array = array.transpose("time", ..., *more)
    values, units = np.asarray(array.values, dtype=float), str(array.attrs.get("units", "1"))
    lines = []
    for index in np.ndindex(*(array.sizes[d] for d in more)):
        label = " ".join([name, *(str(array[d].values[i]) for d, i in zip(more, index, strict=True))])
        lines.append(NamedLine(label, _kind(field.replace("_", " "), units), units, _flat(values[(..., *index)]),
                               name if more else ""))
    return lines


def _element(result: Result, name: str) -> list[NamedLine]:
    """The force of one element; of those with several components all that are not zero."""
    assert result.system is not None
    mechanism = result.system.model.mechanism
    if any(c.name == name and c.rigid for c in mechanism.contacts):
        return _element_field(result, name, "vector")
    array = result.forces(name)
    if "component" not in array.dims:
        units = str(array.attrs.get("units", "1"))
        return [NamedLine(name, _kind("force", units), units, _flat(array.transpose("time", ...).values))]
    array = array.transpose("time", ..., "component")
    units_each = [str(u) for u in array["component_units"].values]
    return [NamedLine(f"{name} {label}", _kind("force", units_each[i]), units_each[i], _flat(array.values[..., i]),
                      f"force {name}")
            for i, label in _forces_first([str(label) for label in array["component"].values])]


def _all_elements(result: Result) -> list[NamedLine]:
    names = _elements(result)
    if result.system is None or not names:
        raise ModelError("plot: this machine has no force elements" if result.system is not None else
                         "plot: the forces of elements need the machine; call attach(system) first")
    return [_in_family(line, "forces") for name in names for line in _element(result, name)]


def _in_family(line: NamedLine, family: str) -> NamedLine:
    """The line as one of a family."""
    return NamedLine(line.label, line.quantity, line.units, line.values, family)
