"""Ready-made elements with states, and tyres: every number that a user gives is checked, and named when it is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bellcrank.errors import ModelError
from bellcrank.mechanism.checks import number, triple
from bellcrank.mechanism.forces.machine_force import Bristle, MachineLaw
from bellcrank.mechanism.forces.motors import DcMotor, HydraulicCylinder
from bellcrank.mechanism.forces.tyre import MagicSet, Tyre
from bellcrank.mechanism.joints.joint import unit_vector
from bellcrank.mechanism.table import Table
from bellcrank.scalar.graph import Number, is_zero

__all__ = ["bristle", "cylinder", "dc_motor", "number_or_law", "plain", "tyre"]


def plain(what: str, label: str, value: Any, least: float | None = None, *, above: bool = False) -> float:
    """A number that is no parameter."""
    found = number(what, label, value) if least is None else number(what, label, value, least, above=above)
    if not isinstance(found, float):
        raise ModelError(f"{what}: {label} must be a number, not a parameter")
    return found


def number_or_law(what: str, label: str, value: Any, least: float | None = None) -> Number | MachineLaw:
    """A number, a parameter, or a law of the machine."""
    if isinstance(value, Table):
        raise ModelError(f"{what}: {label} is a number or a law of the machine; say what the table is of, as in lambda "
                         "at: table(at.t)")
    return value if callable(value) else number(what, label, value, least)


def cylinder(name: str, opening: Number | MachineLaw | None = None, **given: Number) -> HydraulicCylinder:
    """See `bellcrank.Mechanism.add_hydraulic_cylinder`."""
    what = f"hydraulic cylinder {name!r}"
    valve = None if opening is None else number_or_law(what, "opening", opening)
    if isinstance(valve, float) and abs(valve) > 1.0:
        raise ModelError(f"{what}: opening must be between -1 (feeds the rod) and 1 (feeds the head), got {valve:g}")
    positive = ("head_area", "stroke", "dead_volume", "bulk_modulus")
    numbers = {label: number(what, label, value, 0.0, above=label in positive) for label, value in given.items()}
    return HydraulicCylinder(name, **numbers, opening=valve)


def dc_motor(name: str, joint: str, *, voltage: Number | MachineLaw, resistance: Number, inductance: Number,
             constant: Number, gear: Number = 1.0, friction: Number = 0.0) -> DcMotor:
    """See `bellcrank.Mechanism.add_dc_motor`."""
    what = f"motor {name!r}"
    motor = DcMotor(name, joint, number(what, "resistance", resistance, 0.0),
                    number(what, "inductance", inductance, 0.0, above=True), number(what, "constant", constant),
                    number(what, "gear", gear), number(what, "friction", friction, 0.0),
                    number_or_law(what, "voltage", voltage))
    if is_zero(motor.gear):
        raise ModelError(f"{what}: the gear's ratio must not be zero")
    return motor


def bristle(name: str, *, capacity: Number | MachineLaw, reach: Number = 1e-3, damping: Number = 1e-3) -> Bristle:
    """See `bellcrank.Mechanism.add_brake`."""
    what = f"brake {name!r}"
    return Bristle(name, number_or_law(what, "capacity", capacity, 0.0), number(what, "reach", reach, 0.0, above=True),
                   number(what, "damping", damping, 0.0))


def tyre(name: str, body: str, *, radius: Number, stiffness: Number, damping: Number = 0.0, mu: Number = 1.0,
         slope: Number = 20.0, model: str = "brush", c: Number = 1.65, e: Number = 0.0, slowest: Number = 0.1,
         half_length: Number = 0.0, rolling: Number = 0.0, relaxation: float | tuple[float, float] = 0.0,
         settling: Number = 0.05, coefficients: Mapping[str, float] | str | Path | None = None, mirrored: bool = False,
         center: Sequence[float] = (0.0, 0.0, 0.0), axle: str | Sequence[float] = "y", height: Any = None) -> Tyre:
    """See `bellcrank.Mechanism.add_tyre`."""
    what = f"tyre {name!r}"
    if not isinstance(model, str) or model not in ("brush", "magic", "set"):
        raise ModelError(f"{what}: model must be 'brush', 'magic' or 'set', got {model!r}")
    if (coefficients is not None) != (model == "set"):
        raise ModelError(f"{what}: coefficients belong to model='set', which needs them")
    if model == "set" and not (is_zero(half_length) and is_zero(rolling)):
        raise ModelError(f"{what}: half_length and rolling are those of other models; a set has QDZ1 and QSY1")
    if not isinstance(mirrored, bool):
        raise ModelError(f"{what}: mirrored must be True or False, got {mirrored!r}")
    positive = ("radius", "mu", "slope", "c", "slowest")
    given = {label: number(what, label, value, 0.0, above=label in positive) for label, value in (
        ("radius", radius), ("stiffness", stiffness), ("damping", damping), ("mu", mu), ("slope", slope),
        ("c", c), ("slowest", slowest), ("half_length", half_length), ("rolling", rolling), ("settling", settling))}
    pair = tuple(relaxation) if isinstance(relaxation, (tuple, list)) else (relaxation, relaxation)
    lengths = tuple(plain(what, "relaxation", x, 0.0) for x in pair)
    if len(lengths) != 2 or (lengths[0] == 0.0) != (lengths[1] == 0.0):
        raise ModelError(f"{what}: relaxation is one length, or two, both zero or none, got {relaxation!r}")
    made = None if coefficients is None else MagicSet.from_file(coefficients, what) if isinstance(
        coefficients, (str, Path)) else MagicSet.of(coefficients, what)
    road = height if height is None or callable(height) else getattr(height, "table", height)
    if road is not None and (not callable(road) or (isinstance(road, Table) and road.arguments != 2)):
        raise ModelError(f"{what}: height is a function of x and y, a table of two arguments or a height field, got "
                         f"{height!r}")
    place = tuple(plain(what, "center", x) for x in triple(center, f"{what}: center"))
    return Tyre(name, body, **given, model=model, e=number(what, "e", e), relaxation=(lengths[0], lengths[1]),
                coefficients=made, mirrored=mirrored, center=place, axle=unit_vector(axle, f"{what}: axle"),
                height=road)
