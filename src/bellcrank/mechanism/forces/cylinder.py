"""Hydraulic cylinders with the pressures of both chambers as states, and the valve that feeds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.mechanism.forces.element import Element
from bellcrank.mechanism.forces.machine_force import MachineLaw
from bellcrank.scalar.functions import maximum, select_less, sqrt
from bellcrank.scalar.graph import Number

__all__ = ["CylinderForce", "HydraulicCylinder", "PressureRate", "flow_through"]

#: pressures are states in MPa: numbers of the size of other speeds
MEGA = 1e6
#: pressure difference below which flow through an edge is laminar, as a share of the bulk modulus: 0.1 bar for oil
_LAMINAR = 1e4 / 1.4e9
#: volumes are not let below this [m^3]: a chamber without oil has no finite pressure
_NO_OIL = 1e-300


def flow_through(gain: Number, drop: Number, laminar: Number) -> Number:
    """Flow [m^3/s] of a turbulent edge at a pressure drop [Pa]: gain sqrt(drop) with its sign, smooth where the drop is
    no larger than `laminar` [Pa].

    >>> round(flow_through(1e-7, 4e6, 1e4), 9), round(flow_through(1e-7, -4e6, 1e4), 9)
    (0.0002, -0.0002)
    """
    return gain * drop / sqrt(sqrt(drop * drop + laminar * laminar))


@dataclass(frozen=True)
class HydraulicCylinder(Element):
    """A differential cylinder between two points: areas [m^2], the distance of its ends when pushed in and its stroke
    [m], dead volume of each chamber [m^3], bulk modulus of the oil [Pa], leakage past the piston [m^3/(s Pa)], viscous
    friction [N s/m]; a valve with its gain [m^3/(s sqrt(Pa))], supply and tank pressure [Pa]."""

    name: str
    head_area: Number
    rod_area: Number
    closed: Number
    stroke: Number
    dead_volume: Number
    bulk_modulus: Number
    leakage: Number
    friction: Number
    gain: Number
    supply: Number
    tank: Number
    opening: Number | MachineLaw | None  #: of the valve: 1 feeds the head, -1 the rod

    @property
    def head(self) -> str:
        """The name of the state that is the pressure in the head chamber [MPa]."""
        return f"{self.name} head"

    @property
    def rod(self) -> str:
        """The name of the state that is the pressure in the rod chamber [MPa]."""
        return f"{self.name} rod"

    def volumes(self, length: Number) -> tuple[Number, Number]:
        """Of the head chamber and of the rod chamber [m^3]."""
        return (self.dead_volume + self.head_area * (length - self.closed),
                self.dead_volume + self.rod_area * (self.closed + self.stroke - length))

    def flow(self, at: Any, pressure: Number, side: float) -> Number:
        """What the valve lets into a chamber [m^3/s]; side: 1 for the head, -1 for the rod."""
        if self.opening is None:
            return 0.0
        opening = (self.opening(at) if callable(self.opening) else self.opening) * side
        laminar = self.bulk_modulus * _LAMINAR
        filling = flow_through(self.gain * opening, self.supply - pressure, laminar)
        emptying = flow_through(self.gain * opening, pressure - self.tank, laminar)
        return select_less(opening, 0.0, emptying, filling)


@dataclass(frozen=True)
class CylinderForce(Element):
    """Its tension [N]: less what the pressures push apart."""

    cylinder: HydraulicCylinder

    def __call__(self, at: Any) -> Number:
        c = self.cylinder
        push = (at.state(c.head) * c.head_area - at.state(c.rod) * c.rod_area) * MEGA
        return c.friction * at.element(c.name).rate - push

    def undefined(self, x: Number) -> str:
        """Why there is no pressure at one of the lengths x, numbers or arrays."""
        c = self.cylinder
        for chamber, volume in zip(("head", "rod"), c.volumes(np.asarray(x, dtype=float)), strict=True):
            empty = np.flatnonzero(np.asarray(volume) <= 0.0)
            if len(empty):
                length = float(np.asarray(x, dtype=float).flat[empty[0]])
                return (f"at a length of {length:.6g} m no volume is left to the oil on its {chamber} side (closed "
                        f"{float(np.max(c.closed)):g} m, stroke {float(np.max(c.stroke)):g} m); give it a stop at its "
                        "ends (add_bump_stop), or more dead_volume")
        return ""

    def energy(self, at: Any) -> Number:
        """In the compressed oil of both chambers [J]: p^2 V / (2 E)."""
        c = self.cylinder
        head, rod = at.state(c.head) * MEGA, at.state(c.rod) * MEGA
        large, small = c.volumes(at.element(c.name).length)
        return (head * head * large + rod * rod * small) * (0.5 / c.bulk_modulus)


@dataclass(frozen=True)
class PressureRate(Element):
    """The rate of a chamber's pressure [MPa/s]: bulk modulus over volume, times what flows in less what the piston
    displaces."""

    cylinder: HydraulicCylinder
    head: bool

    def __call__(self, at: Any) -> Number:
        c, length, rate = self.cylinder, at.element(self.cylinder.name).length, at.element(self.cylinder.name).rate
        drop = (at.state(c.head) - at.state(c.rod)) * MEGA
        volume = maximum(c.volumes(length)[0 if self.head else 1], _NO_OIL)
        if self.head:
            grows = c.head_area * rate
            fed = c.flow(at, at.state(c.head) * MEGA, 1.0) - c.leakage * drop
        else:
            grows = -(c.rod_area * rate)
            fed = c.flow(at, at.state(c.rod) * MEGA, -1.0) + c.leakage * drop
        return c.bulk_modulus / volume * (fed - grows) * (1.0 / MEGA)
