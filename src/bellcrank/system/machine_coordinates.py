"""What the numbers of a machine's states mean: names, sizes, and the space of positions, in which nothing acts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked
from bellcrank.arrays import Floats, check_time, flat
from bellcrank.system.model import Model
from bellcrank.system.state import State
from bellcrank.system.state_methods import of_arrays

__all__ = ["MachineCoordinates"]


class MachineCoordinates:
    """Coordinates and speeds of a compiled machine, and the values of its parameters."""

    model: Model  #: what was compiled
    nq: int  #: number of coordinates
    nu: int  #: number of speeds

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The joints that have coordinates, in the order they were added."""
        return self.model.configuration.joint_names

    @property
    def body_names(self) -> tuple[str, ...]:
        """All bodies but the ground, in the order they were added."""
        return self.model.body_names

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the entries of q, such as ``hip.angle``."""
        return self.model.configuration.coordinate_names

    @property
    def speed_names(self) -> tuple[str, ...]:
        """Names of the entries of u, udot and tau."""
        return self.model.configuration.speed_names

    @property
    def parameters(self) -> dict[str, Any]:
        """Current values of the parameters."""
        return dict(self.model.values)

    # -- configuration space --------------------------------------------------------------------
    def neutral(self) -> Floats:
        """q where the mechanism is drawn: every joint at zero, `Free` joints at their `start`."""
        return self.model.configuration.neutral()

    @checked
    def state(self, q: Mapping[str, Any] | npt.ArrayLike | None = None,
              u: Mapping[str, Any] | npt.ArrayLike | None = None, *, t: npt.ArrayLike = 0.0) -> State:
        """A `State` with these coordinates and speeds, arrays or {joint or "joint.coordinate": value}; what is not
        given is as in `neutral()` and at rest. Loops are not closed: `System.assemble` and `System.project` do that.

        >>> import bellcrank as bc
        >>> bc.compile(bc.load("double_pendulum")).state({"elbow": 0.5}, t=2.0)
        State(t=2.0, q: shoulder.angle=0, elbow.angle=0.5, u: shoulder.angle=0, elbow.angle=0)
        """
        check_time(t)
        if q is not None and not isinstance(q, Mapping):
            q = flat("q", q, self.nq, "the coordinates")
        if u is not None and not isinstance(u, Mapping):
            u = flat("u", u, self.nu, "one for every speed")
        return self.model.configuration.state(self.neutral(), np.zeros(self.nu), t).replace(q, u)

    @of_arrays
    def integrate(self, q: npt.ArrayLike, du: npt.ArrayLike) -> Floats:
        """q after moving with the constant speeds `du` for unit time (``u * dt`` for a step)."""
        return self.model.configuration.integrate(q, du)

    @of_arrays
    def difference(self, q0: npt.ArrayLike, q1: npt.ArrayLike) -> Floats:
        """The constant speeds that lead from q0 to q1 in unit time, shape (..., nu)."""
        return self.model.configuration.difference(q0, q1)

    @of_arrays
    def normalize(self, q: npt.ArrayLike) -> Floats:
        """q with unit quaternions."""
        return self.model.configuration.normalize(q)
