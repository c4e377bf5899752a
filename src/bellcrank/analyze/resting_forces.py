"""What forces leave unbalanced in a machine at rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellcrank.analyze.minimal import Chart, speed_labels, with_laws
from bellcrank.arrays import Floats
from bellcrank.compiled.system import System
from bellcrank.errors import NotYetError, SingularError, StateError
from bellcrank.system.force_elements import actuator_forces
from bellcrank.system.force_terms import acting
from bellcrank.system.kernels import Wrenches
from bellcrank.system.loop_errors import loop_acceleration_error
from bellcrank.system.loop_plans import LoopPlans
from bellcrank.system.state import State
from bellcrank.system.state_slopes import unbalanced_rates
from bellcrank.system.tree_dynamics import tree_forces

__all__ = ["RestingForces"]


@dataclass(frozen=True)
class RestingForces:
    """The unbalanced forces of a machine at rest; states of elements have the values that `speeds` has for them."""

    system: System
    tau: Floats
    wrenches: Wrenches
    t: float
    held: list[int]
    speeds: Floats

    def chart(self, q: Floats) -> Chart:
        try:
            return Chart.at(self.system, q, self.t, held=self.held)
        except SingularError as error:
            raise SingularError(f"equilibrium: the search came to a singular position; {error}") from None

    def slope(self, chart: Chart, q: Floats) -> Floats:
        """g in the chart's coordinates, each by its size, so that forces and torques are alike [J]; shape (..., k)."""
        need = self.bias(q) - self.drive(q)
        return np.asarray((np.swapaxes(chart.basis(q), -1, -2) @ need[..., None])[..., 0] * chart.sizes)

    def size(self, chart: Chart, q: Floats) -> float:
        """The size of the forces that balance each other, as far as it can be seen."""
        need = np.abs(self.bias(q)) + np.abs(self.drive(q))
        return float((np.abs(chart.basis(q)).T @ need * chart.sizes).max(initial=0.0))

    def bias(self, q: Floats) -> Floats:
        """Joint forces that the loads need, at rest."""
        return tree_forces(self.plans, q, self.speeds, np.zeros(self.system.nu), self.wrenches, self.t, self.tau)

    def drive(self, q: Floats) -> Floats:
        """Joint forces that act, within the limits of actuators; those along loop joints are among the loads."""
        given = actuator_forces(self.system.plans, q, self.speeds, self.tau, t=self.t)
        return np.where(self.system.model.tree.loop_speeds(), 0.0, given)

    @property
    def plans(self) -> LoopPlans:
        """Those of the machine in which forces along loop joints act."""
        return acting(self.system.plans, self.tau)

    def stiffness(self, chart: Chart) -> Floats:
        """dg/dz at the chart's origin, coordinates by their sizes [J]."""
        try:
            return self._exact_stiffness(chart) * np.outer(chart.sizes, chart.sizes)
        except NotYetError:  # large machines, whose code is rolled into loops
            return self._stiffness_by_differences(chart) * chart.sizes

    def _exact_stiffness(self, chart: Chart) -> Floats:
        return np.asarray((self.rates(chart) @ chart.basis(chart.q)).T)

    def rates(self, chart: Chart) -> Floats:
        """(r - J^T lambda)' N, transposed, with r = bias - tau and constant multipliers that take r off the dependent
        speeds: where N changes, nothing is left to be multiplied with it."""
        q, basis, solved = chart.q, chart.basis(chart.q), chart.closer.solved
        given: dict[str, Floats] = {"q": q, "u": self.speeds, "tau": self.tau}
        if self.system.model.tree.looped:
            r = self.bias(q) - self.drive(q)
            given["multipliers"] = r[solved] @ chart.closer.inverse(q, self.t) if chart.closer.looped else \
                np.zeros(self.system.plans.loops.m)
        return unbalanced_rates(self.plans, given, basis.T.copy(), self.wrenches, self.t)

    def _stiffness_by_differences(self, chart: Chart) -> Floats:
        """The same by central differences."""
        k = len(chart.independent)
        h = 1e-5 * self.system.model.tree.speed_sizes[list(chart.independent)]
        q, _ = chart.positions(np.concatenate([np.diag(h), -np.diag(h)]))
        g = self.slope(chart, q)
        return np.asarray((g[:k] - g[k:]).T / (2.0 * h))

    def checked(self, q: Floats) -> State:
        """The state, if the drives let it rest."""
        system = self.system
        u = self.speeds
        if system.model.tree.looped and system.model.tree.rheonomic:
            pull = loop_acceleration_error(system.plans, q, u, np.zeros(system.nu), t=self.t)
            drift = system.loop_rate_error(q, u, t=self.t)
            if max(float(np.abs(system.plans.loops.shares(x)).max(initial=0.0)) for x in (drift, pull)) > 1e-8:
                names = [r.name for r in system.model.configuration.records if r.prescribed is not None]
                names += [c.name for c in system.model.tree.closures if c.timed]
                raise StateError(f"equilibrium: prescribed motions ({', '.join(names)}) move the loops at "
                                 f"t = {self.t:g}; choose a time at which they rest")
        return system.model.configuration.state(*with_laws(system, q, u, self.t), self.t)

    def failure(self, chart: Chart, g: Floats, why: str) -> StateError:
        labels = speed_labels(self.system)
        worst = sorted(zip(np.abs(g / chart.sizes).tolist(), chart.independent, strict=True), reverse=True)[:4]
        shown = ", ".join(f"{labels[v]!r} by {size:.3g}" for size, v in worst)
        return StateError(f"equilibrium of {self.system.model.name!r}: {why}; forces are out of balance at {shown} "
                          "(N or N m). Start from a better guess, hold more joints, or add what supports the machine")
