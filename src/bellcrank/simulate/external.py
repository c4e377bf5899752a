"""Other libraries' integrators on our equations: SciPy's `solve_ivp`, and SUNDIALS through scikit-sundae.

They see y = (q, u) and know nothing of loops: every sample is put back onto them, and each stretch starts from there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bellcrank.errors import BellcrankError, ModelError
from bellcrank.simulate.fixed import Failure
from bellcrank.simulate.reference import Rhs

__all__ = ["SCIPY", "SUNDIALS", "ExternalRun"]

Floats = npt.NDArray[np.float64]

SCIPY = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")
SUNDIALS = ("BDF", "Adams")


class ExternalRun:
    """A batch of states, one after another; see `VaryingRun`, whose interface it has."""

    def __init__(self, rhs: Rhs, library: str, name: str, y: Floats, start: float, rtol: float, atol: float) -> None:
        known = SCIPY if library == "scipy" else SUNDIALS
        if name not in known:
            raise ModelError(f"stepper {library}/{name}: {library} has {', '.join(known)}")
        self.rhs, self.library, self.name, self.rtol, self.atol = rhs, library, name, rtol, atol
        self.y, self.time = y.copy(), start
        self.failures: list[Failure] = []
        self.switches = self.steps = self.rejected = 0
        self.path: list[tuple[Floats, Floats]] = []
        if len(y) > 1 and rhs.system._batched_parameters():
            raise ModelError(f"stepper {library}/{name}: batches of parameters need one of our own methods")
        if library == "sundials":
            _sundials()

    def advance(self, times: Floats) -> Floats:
        """Go to the last of the times; samples (times, states, size), NaN for states that have failed."""
        out = np.full((len(times), *self.y.shape), np.nan)
        failed = {f.state for f in self.failures}
        for i in range(len(self.y)):
            if i in failed:
                continue
            try:
                rows = self._one(i, self.y[i], times)
            except (BellcrankError, ArithmeticError) as error:
                self.failures.append(Failure(i, self.time, str(error)))
                continue
            for k, t in enumerate(times.tolist()[:len(rows)]):
                out[k, i] = self.rhs.correct(rows[k][None], t)[0]
            if len(rows) < len(times):
                at = float(times[len(rows) - 1]) if len(rows) else self.time
                self.failures.append(Failure(i, at, f"{self.library}/{self.name} could not go on"))
                continue
            self.y[i] = out[-1, i]
        self.time = float(times[-1])
        return out

    def partial(self, y: Floats, t: float, step: float) -> Floats:
        """The state a given time later."""
        return np.asarray(self.rhs.correct(self._one(0, y, np.array([t + step]), t)[-1][None], t + step)[0])

    def restart(self, t: float, y: Floats) -> None:
        """Go on from other states at time t."""
        self.time, self.y, self.failures = t, y.copy(), []

    def _one(self, state: int, y: Floats, times: Floats, start: float | None = None) -> Floats:
        start = self.time if start is None else start
        if self.library == "scipy":
            from scipy.integrate import solve_ivp

            got = solve_ivp(lambda t, x: self.rhs.of_one(state, t, x), (start, float(times[-1])), y, method=self.name,
                            t_eval=times, rtol=self.rtol, atol=self.atol, dense_output=True)
            self.steps += len(got.sol.ts) - 1
            return np.asarray(got.y.T if len(got.t) else np.zeros((0, len(y))))
        solver = _sundials()

        def rhs(t: float, x: Floats, out: Floats) -> None:
            out[:] = self.rhs.of_one(state, t, x)

        with np.errstate(all="ignore"):
            got = solver(rhs, method=self.name, rtol=self.rtol, atol=self.atol, max_num_steps=1_000_000).solve(
                np.concatenate([[start], times]), y)
        return np.asarray(got.y)[1:]


def _sundials() -> type:
    try:
        from sksundae.cvode import CVODE
    except ImportError:
        raise ModelError("stepper sundials/...: the package scikit-sundae is not installed; pip install "
                         "'bellcrank[sundials]'") from None
    kind: type = CVODE
    return kind
