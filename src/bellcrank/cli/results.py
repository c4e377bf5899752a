"""Results of runs for other programs and for people: tables of comma-separated values, energy that went away."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.cli.output import UsageError
from bellcrank.errors import BellcrankError

if TYPE_CHECKING:
    from bellcrank.compiled.system import System
    from bellcrank.simulate.result import Result

__all__ = ["check_ending", "dissipated", "write_csv"]

#: samples that are enough to estimate an integral over the run
_ENOUGH = 2000


def check_ending(path: Path) -> None:
    """The name of a result says its format."""
    if path.suffix.lower() not in (".nc", ".csv"):
        raise UsageError(f"{path}: the name says the format; results end in .nc (NetCDF) or .csv")


def write_csv(result: Result, path: Path) -> None:
    """One row per sample: time, coordinates, speeds, forces if they were recorded, energies, loop errors.

    Numbers are written to the last bit. The file is put in place when it is complete.
    """
    from bellcrank.io.common.atomic import write_text
    from bellcrank.simulate.fields import DERIVED, STATE, layout_of

    head, columns = ["time [s]"], [result["time"].values]
    more = () if result.system is None else layout_of(result.system, ()).outputs
    for field in (*STATE, *DERIVED, *more):
        if field.name not in result:
            continue
        values = result[field.name].values
        if not field.along:
            head.append(f"{field.name} [{field.units}]")
            columns.append(values)
            continue
        units = {"q": "coordinate_units", "u": "speed_units", "tau": "force_units",
                 "loop_tau": "loop_force_units"}[field.name]
        for i, (name, unit) in enumerate(zip(result[field.along].values, result[units].values, strict=True)):
            head.append(f"{field.name}.{name} [{unit}]")
            columns.append(values[:, i])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(zip(*(c.tolist() for c in columns), strict=True))  # floats as short as they read back the same
    write_text(path, text.getvalue())


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
