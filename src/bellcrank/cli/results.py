"""Results of runs on the command line: names of their files, and energy that went away."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.cli.output import UsageError
from bellcrank.errors import BellcrankError

if TYPE_CHECKING:
    from bellcrank.compiled.system import System
    from bellcrank.simulate.result import Result

__all__ = ["check_ending", "dissipated"]

#: samples that are enough to estimate an integral over the run
_ENOUGH = 2000


def check_ending(path: Path) -> None:
    """The name of a result says its format."""
    if path.suffix.lower() not in (".nc", ".csv"):
        raise UsageError(f"{path}: the name says the format; results end in .nc (NetCDF) or .csv")


def dissipated(system: System, result: Result) -> float:
    """About how much energy [J] dampers, friction and drag took in a run, from its samples."""
    from bellcrank.analyze import dissipated_power

    samples = int(result.sizes["time"])
    if samples < 2:
        return 0.0
    some = result.isel(time=np.unique(np.linspace(0, samples - 1, _ENOUGH).astype(int)))
    t, q, u = (some[name].values for name in ("time", "q", "u"))
    good = np.isfinite(q).all(axis=1) & np.isfinite(u).all(axis=1)
    try:
        power = dissipated_power(system, q[good], u[good], t=t[good])
    except BellcrankError:  # states of a run that failed may lie outside all laws
        return 0.0
    found = float(0.5 * ((power[1:] + power[:-1]) * np.diff(t[good])).sum())
    return found if np.isfinite(found) else 0.0
