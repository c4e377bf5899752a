"""Motors of MJCF by their electrical constants, <dcmotor>: v = R i + L di/dt + k w, and the torque k i.

Without inductance the force is k / R (v - k w): an affine function of the control and of the rate. With it the current
is a state, as in `bellcrank.Mechanism.add_dc_motor`. Motors with friction, cogging, heat or controllers are not
read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from bellcrank.mechanism.forces.motors import within
from bellcrank.scalar.graph import Number

if TYPE_CHECKING:
    from bellcrank.io.mjcf.read import MjcfReader

__all__ = ["ControlVoltage", "MotorConstants", "motor_constants"]


class MotorConstants(NamedTuple):
    """Resistance [ohm], constant of torque and back voltage [N m/A], inductance [H]."""

    resistance: float
    constant: float
    inductance: float

    @property
    def gain(self) -> float:
        """Force by voltage; by current where that is a state."""
        return self.constant if self.inductance else self.constant / self.resistance

    @property
    def bias(self) -> tuple[float, float, float]:
        """What the back voltage does, by the rate."""
        return 0.0, 0.0, 0.0 if self.inductance else -(self.constant**2) / self.resistance


@dataclass(frozen=True)
class ControlVoltage:
    """The control of an actuator, a parameter, kept in its range."""

    control: str
    low: float | None
    high: float | None

    def __call__(self, at: Any) -> Number:
        return within(at.parameter(self.control), self.low, self.high)


def is_dc_motor(reader: MjcfReader, index: int) -> bool:
    """Whether it is one; older versions of MuJoCo have none."""
    kind = getattr(reader.mujoco.mjtDyn, "mjDYN_DCMOTOR", None)
    return kind is not None and int(reader.model.actuator_dyntype[index]) == int(kind)


def motor_constants(reader: MjcfReader, index: int) -> MotorConstants | None:
    """The constants of a motor that is described by these alone; None of others."""
    model = reader.model
    resistance, constant, *more = (float(x) for x in model.actuator_gainprm[index])
    time, *rest = (float(x) for x in model.actuator_dynprm[index])
    if not is_dc_motor(reader, index) or any((*more, *rest, *model.actuator_biasprm[index])) or resistance <= 0.0:
        return None
    return MotorConstants(resistance, constant, time * resistance)
