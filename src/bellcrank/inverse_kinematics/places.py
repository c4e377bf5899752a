"""Where bodies and joints are in some positions, and how that changes: what targets are made of."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, hint
from bellcrank.system import body_kinematics
from bellcrank.system.derivatives import derivatives

if TYPE_CHECKING:
    from bellcrank.inverse_kinematics.targets import Rows
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["Places"]

Ints = npt.NDArray[np.int64]
_ORIGIN = np.zeros(3)


class Places:
    """A machine in positions q (n, nq), which are rows `some` of a batch with the axes `lead`. Rates are for the speeds
    of all joints, as if they were free: (n, ..., nu)."""

    def __init__(self, plans: LoopPlans, q: Floats, t: float, lead: tuple[int, ...], some: Ints) -> None:
        self.plans, self.q, self.t, self._lead, self._some = plans, q, t, lead, some
        self.length = plans.tree.length
        self._poses: dict[str, tuple[Floats, Floats]] = {}
        self._jacobians: dict[tuple[str, bytes], Floats] = {}

    def given(self, value: npt.ArrayLike, own: int = 1) -> Floats:
        """What is asked for in these positions: arrays whose last `own` axes are one value."""
        array = np.asarray(value, dtype=float)
        shape = array.shape[array.ndim - own:]
        return np.broadcast_to(array, (*self._lead, *shape)).reshape(-1, *shape)[self._some]

    # -- bodies -----------------------------------------------------------------------------------
    def pose(self, body: str) -> tuple[Floats, Floats]:
        """Position (n, 3) and axes (n, 3, 3) of a body or frame."""
        if body not in self._poses:
            found = body_kinematics.pose(self.plans.kernels, self.q, body, t=self.t)
            self._poses[body] = (np.asarray(found.position), np.asarray(found.rotation))
        return self._poses[body]

    def point(self, body: str, point: Floats) -> Floats:
        """A point of a body in the world, (n, 3)."""
        origin, axes = self.pose(body)
        return np.asarray(origin + axes @ point)

    def jacobian(self, body: str, point: Floats = _ORIGIN) -> Floats:
        """Angular velocity of a body and velocity of a point of it by all speeds, (n, 6, nu); zero on the ground."""
        key = body, point.tobytes()
        if key not in self._jacobians:
            self._jacobians[key] = body_kinematics.jacobian(self.plans.kernels, self.q, body, point, self.t)
        return self._jacobians[key]

    def seen_from(self, body: str, here: Floats, rates: Floats) -> Rows:
        """A place in the world (n, 3) and its rates as seen from a body."""
        origin, axes = self.pose(body)
        jacobian, way = self.jacobian(body), here - origin
        moved = rates - jacobian[..., 3:, :] + np.cross(way[..., :, None], jacobian[..., :3, :], axis=-2)
        back = np.swapaxes(axes, -1, -2)
        return (back @ way[..., None])[..., 0], back @ moved

    def center_of_mass(self) -> Rows:
        """Centre of mass of the machine (n, 3), and its rates."""
        kernels, nu = self.plans.kernels, self.plans.tree.nu
        here = kernels.run("center_of_mass", {"q": self.q}, None, self.t)
        pushed = kernels.run("momentum", {"q": self.q[:, None], "u": np.eye(nu)}, None, self.t)[..., 3:]
        mass = kernels.run("totals", {"q": self.q, "u": np.zeros(nu)}, None, self.t)[..., :1]
        return here, np.swapaxes(pushed, -1, -2) / mass[..., None]

    # -- joints and outputs -----------------------------------------------------------------------
    def joint(self, name: str, value: Any) -> Rows:
        """How far a joint, or a coordinate of it, is beyond a value, and its rates."""
        space, sizes = self.plans.configuration, self.plans.tree.speed_sizes
        places, speeds = space.coordinate_entries(name), space.speed_entries(name)
        array = np.asarray(value, dtype=float)
        if len(places) == 1 and array.shape[-1:] != (1,):
            array = array[..., None]
        goal = self.q.copy()
        goal[:, places] = self.given(array)
        goal = space.normalize(goal)
        error = space.difference(goal, self.q)[:, speeds] / sizes[speeds]
        rates = np.zeros((len(self.q), len(speeds), len(sizes)))
        rates[:, np.arange(len(speeds)), speeds] = 1.0 / sizes[speeds]
        return error, rates

    def output(self, name: str) -> Rows:
        """An output of the machine (n,), and its rates (n, nu)."""
        names = [o.name for o in self.plans.model.mechanism.outputs]
        if name not in names:
            raise ModelError(f"inverse_kinematics: {self.plans.tree.name!r} has no output {name!r}; there are "
                             f"{', '.join(map(repr, names)) or 'none'}{hint(name, names)}")
        values, rates = self._outputs
        return values[:, names.index(name)], rates[:, names.index(name)]

    @cached_property
    def _outputs(self) -> Rows:
        still = np.zeros((len(self.q), self.plans.tree.nu))
        state = self.plans.configuration.state(self.q, still, np.full(len(self.q), self.t))
        found = derivatives(self.plans, "outputs", (state,), by=("q",), closed=False)
        rates = np.zeros((*found.value.shape, self.plans.tree.nu))
        free = np.flatnonzero(~self.plans.model.prescribed_mask())
        rates[..., free] = found["q"] if found["q"].shape[-1] == len(free) else found["q"][..., free]
        return found.value, rates
