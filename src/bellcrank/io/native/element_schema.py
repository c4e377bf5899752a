"""What a model file may hold of ready-made force elements."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from bellcrank.io.native.entries import Axis, Fixed, Law, Name, Num, Text, Three, form
from bellcrank.io.native.schema_part import MachineLawPart, Part

__all__ = ["BeltPart", "BetweenPoints", "BrakePart", "BumpStopPart", "CylinderPart", "DcMotorPart", "GasSpringPart",
           "OnJoint", "OnJoints", "RollingResistancePart", "StatePart", "TorsionBarPart", "TyrePart", "type_or"]

NumberOrLaw = Annotated[Annotated[Num, Tag("number")] | Annotated[MachineLawPart, Tag("mapping")],
                        Discriminator(form)]


def type_or(plain: str) -> Discriminator:
    """Chooses by `type`, which the plain kind does not need."""

    def type_of(value: Any) -> Any:
        return value.get("type", plain) if isinstance(value, dict) else plain

    return Discriminator(type_of)


class BetweenPoints(Part):
    """Something between two points."""

    first: Name
    second: Name
    first_point: Three
    second_point: Three


class OnJoint(Part):
    """Something on one coordinate of a joint."""

    joint: Name
    coordinate: Name | None = Field(default=None, description="its name, for joints with several")


class OnJoints(Part):
    """Something on one coordinate of a joint, or on the sum of several, each times a factor."""

    joint: Annotated[Annotated[Name, Tag("number")] | Annotated[dict[Name, Num], Tag("mapping")],
                     Discriminator(form)] = Field(
        description="a joint, or factors by joint, or by joint.coordinate for joints with several")
    coordinate: Name | None = Field(default=None, description="its name, for joints with several")


class StatePart(Part):
    """A state of an element: with a rate of its own, or one of a ready-made element."""

    rate: MachineLawPart | None = None
    element: Name | None = Field(default=None, description="in place of a rate: the ready-made element it belongs to")
    initial: Num | None = Field(default=None, description="where it begins; zero, or what is usual for the element")
    units: Text = "1"


# -- between points -------------------------------------------------------------------------------
class GasSpringPart(BetweenPoints):
    type: Literal["gas_spring"]
    force: Num = Field(description="at full length [N]")
    length: Num = Field(description="[m]")
    reach: Num = Field(description="volume of gas over the area of the rod [m]")
    exponent: Fixed = 1.0
    damping: Num = 0.0


class BumpStopPart(BetweenPoints):
    type: Literal["bump_stop"]
    lower: Num | None = Field(default=None, description="[m]")
    upper: Num | None = Field(default=None, description="[m]")
    stiffness: Num
    progression: Num = Field(default=0.0, description="[N/m^3]")
    damping: Num = 0.0
    onset: Num = 1e-3


class CylinderPart(BetweenPoints):
    """A hydraulic cylinder; its states are called after it, `head` and `rod` [MPa]."""

    type: Literal["hydraulic_cylinder"]
    head_area: Num
    rod_area: Num
    closed: Num
    stroke: Num
    dead_volume: Num = 1e-4
    bulk_modulus: Num = 1.4e9
    leakage: Num = 0.0
    friction: Num = 0.0
    gain: Num = 0.0
    supply: Num = 2e7
    tank: Num = 1e5
    opening: NumberOrLaw | None = None


# -- on joints ------------------------------------------------------------------------------------
class TorsionBarPart(OnJoints):
    type: Literal["torsion_bar"]
    length: Num = Field(description="[m]")
    diameter: Num = Field(description="[m]")
    bore: Num = 0.0
    shear_modulus: Num = Field(default=79e9, description="[Pa]")
    damping: Num = 0.0
    rest: Num = 0.0


class BeltPart(Part):
    """A belt or chain over two pulleys."""

    type: Literal["belt"]
    pulleys: dict[Name, Num] = Field(description="radius [m] by joint; one is negative for a crossed belt")
    stiffness: Num
    pretension: Num = 0.0
    damping: Num = 0.0
    slack: Num = 0.0


class DcMotorPart(Part):
    """A motor with a gear; its state is called after it, `current` [A]. The rotor is an armature of its own."""

    type: Literal["dc_motor"]
    joint: Name
    voltage: NumberOrLaw
    resistance: Num
    inductance: Num
    constant: Num
    gear: Num = 1.0
    friction: Num = 0.0


class BrakePart(OnJoints):
    """A brake, or a clutch on a difference of joints; its state is called after it, `bend`."""

    type: Literal["brake"]
    capacity: NumberOrLaw
    reach: Num = 1e-3
    damping: Num = 1e-3


class RollingResistancePart(Part):
    type: Literal["rolling_resistance"]
    joint: Name
    coefficient: Num
    radius: Num
    load: NumberOrLaw
    speed: Num = 1e-2


# -- on bodies ------------------------------------------------------------------------------------
class TyrePart(Part):
    """A tyre on a wheel; its states, if slip is transient, are called after it, `ahead` and `across` [m]."""

    type: Literal["tyre"]
    body: Name
    radius: Num
    stiffness: Num
    damping: Num = 0.0
    mu: Num = 1.0
    slope: Num = 20.0
    model: Literal["brush", "magic", "set"] = "brush"
    c: Num = 1.65
    e: Num = 0.0
    slowest: Num = 0.1
    half_length: Num = 0.0
    rolling: Num = 0.0
    relaxation: Annotated[list[Fixed], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="lengths ahead and across [m]")
    settling: Num = 0.05
    coefficients: dict[Name, Fixed] | None = Field(default=None, description="of the Magic Formula, by name")
    mirrored: bool = False
    center: Annotated[list[Fixed], Field(min_length=3, max_length=3)] = [0.0, 0.0, 0.0]
    axle: Axis = "y"
    height: Law | None = Field(default=None, description="of the ground [m], a formula of x and y")
