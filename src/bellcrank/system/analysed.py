"""Analyses as methods of a `System`: each is a function of `bellcrank.analyse`, imported when it is first used, and is
documented there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy.typing as npt

from bellcrank.system.kinematics import Wrenches
from bellcrank.system.planned import Planned

if TYPE_CHECKING:
    from bellcrank.analyse.curves import Curve, Workspace
    from bellcrank.analyse.linearise import LinearModel, Outputs
    from bellcrank.analyse.modes import Modes
    from bellcrank.simulate.result import Result
    from bellcrank.system.assembly import State
    from bellcrank.system.system import System

__all__ = ["Analysed"]

_Values = Mapping[str, float | Sequence[float]]
_Forces = Mapping[str, npt.ArrayLike] | npt.ArrayLike | None


class Analysed(Planned):
    """Questions that are answered by computing with a `System`."""

    @property
    def _self(self) -> System:
        return cast("System", self)

    def equilibrium(self, guess: State | _Values | npt.ArrayLike | None = None, *, hold: _Values | Sequence[str] = (),
                    tau: _Forces = None, wrenches: Wrenches = None, t: float = 0.0, stable: bool = True,
                    iterations: int = 200) -> State:
        """A state at rest in which nothing accelerates, near `guess`; see `bellcrank.analyse.equilibrium`.

        >>> import bellcrank as bc
        >>> pendulum = bc.compile(bc.load("pendulum"))
        >>> abs(pendulum.equilibrium({"hinge": 1.0}).q).round(9).tolist()
        [0.0]
        """
        from bellcrank.analyse.equilibrium import equilibrium

        return equilibrium(self._self, guess, hold=hold, tau=tau, wrenches=wrenches, t=t, stable=stable,
                           iterations=iterations)

    def linearise(self, state: State | tuple[npt.ArrayLike, npt.ArrayLike], *, tau: _Forces = None,
                  inputs: Sequence[str] | None = None, outputs: Outputs = None,
                  coordinates: Sequence[str] | None = None, wrenches: Wrenches = None, t: float | None = None
                  ) -> LinearModel:
        """xdot = A x + B w, y = C x + D w about a state, in minimal coordinates; see `bellcrank.analyse.linearise`."""
        from bellcrank.analyse.linearise import linearise

        return linearise(self._self, state, tau=tau, inputs=inputs, outputs=outputs, coordinates=coordinates,
                         wrenches=wrenches, t=t)

    def modes(self, state: State | tuple[npt.ArrayLike, npt.ArrayLike], *, damped: bool = False, tau: _Forces = None,
              wrenches: Wrenches = None, t: float | None = None) -> Modes:
        """Frequencies, damping and shapes of small vibrations about an equilibrium; see `bellcrank.analyse.modes`."""
        from bellcrank.analyse.modes import modes

        return modes(self._self, state, damped=damped, tau=tau, wrenches=wrenches, t=t)

    def drive(self, motion: Mapping[str, Callable[[Any], Any] | float], times: npt.ArrayLike, *,
              guess: State | _Values | npt.ArrayLike | None = None, actuated: Sequence[str] | None = None,
              reactions: bool = False, wrenches: Wrenches = None) -> Result:
        """Kinematics and inverse dynamics while joints follow functions of time; see `bellcrank.analyse.driven`."""
        from bellcrank.analyse.driven import drive

        return drive(self._self, motion, times, guess=guess, actuated=actuated, reactions=reactions, wrenches=wrenches)

    def coupler_curve(self, joint: str, body: str, point: npt.ArrayLike = (0.0, 0.0, 0.0), *,
                      values: npt.ArrayLike | None = None, samples: int = 361,
                      guess: State | _Values | npt.ArrayLike | None = None, hold: Sequence[str] = (), t: float = 0.0
                      ) -> Curve:
        """The path of a point while a joint moves, and its dead points; see `bellcrank.analyse.curves`."""
        from bellcrank.analyse.curves import coupler_curve

        return coupler_curve(self._self, joint, body, point, values=values, samples=samples, guess=guess, hold=hold,
                             t=t)

    def workspace(self, body: str, point: npt.ArrayLike = (0.0, 0.0, 0.0), *, ranges: Mapping[str, tuple[float, float]],
                  samples: int = 1000, seed: int = 0, guess: State | _Values | npt.ArrayLike | None = None,
                  t: float = 0.0) -> Workspace:
        """Positions a point can reach, by sampling joints within ranges; see `bellcrank.analyse.curves`."""
        from bellcrank.analyse.curves import workspace

        return workspace(self._self, body, point, ranges=ranges, samples=samples, seed=seed, guess=guess, t=t)
