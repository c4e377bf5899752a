"""`bellcrank.export_c`: functions and steps of a machine as plain C, for controllers."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from bellcrank.arguments import must_be
from bellcrank.compiled.system import System
from bellcrank.errors import FileError, ModelError
from bellcrank.files.atomic import write_text
from bellcrank.io.export.c_functions import add_function, check_function
from bellcrank.io.export.c_header import Draft, header_text
from bellcrank.io.export.c_step import add_step, check_stepper
from bellcrank.loops.plan import LoopPlan
from bellcrank.system.evaluator import CompiledEvaluator
from bellcrank.target.backend import Backend
from bellcrank.target.c.unit import CBackend, CUnit

__all__ = ["Exported", "export_c"]

_IDENTIFIER = re.compile(r"[A-Za-z]\w*", re.ASCII)


class Exported(NamedTuple):
    """The files that `export_c` wrote."""

    header: Path
    source: Path


def export_c(system: System, functions: Sequence[str], folder: str | os.PathLike[str], *, scalar: str = "double",
             name: str | None = None, plans: Sequence[Any] = (), stepper: str | None = None, wrenches: bool = False
             ) -> Exported:
    """Write functions of a machine as C99: one header and one source, named `name` (the machine's, unless given).

    `functions` are among "forward_dynamics", "inverse_dynamics", "bias", "mass_matrix", "momenta", "hamilton",
    "center_of_mass", "momentum", "kinetic_energy" and "potential_energy", and of a body or frame "pose:BODY",
    "velocity:BODY", "acceleration:BODY", "jacobian:BODY" and "jacobian_rate:BODY", at a point of it; `stepper` ("rk4",
    "rk8" or "semi_implicit") adds a step in time, with the corrections that keep loops closed. With `wrenches` forward
    and inverse dynamics, bias and Hamilton's equations take external wrenches on all bodies. The code is for one state,
    in doubles or floats (`scalar`); it allocates nothing and has no variables outside of functions. Every function
    answers 0, or a status if an input or the result is not finite. The header says what they take.

    With loops, `plans` are the plans to export: positions (states or arrays q of shape (nq,)) for which one is made
    each, or plans themselves; one for a general position unless given. A function tries the plan that the caller names
    first, then the others. Inverse dynamics gives the forces of the actuated joints, or of the first plan's independent
    ones. Cost: O(operations of the functions).

    >>> import tempfile
    >>> import bellcrank as bc
    >>> files = bc.export_c(bc.compile(bc.load("pendulum")), ["forward_dynamics"], tempfile.mkdtemp())
    >>> files.header.name, files.source.name
    ('pendulum.h', 'pendulum.c')
    """
    must_be("export_c: system", "System", system)
    if scalar not in ("double", "float"):
        raise ModelError(f"export_c: scalar {scalar!r} must be 'double' or 'float'")
    if isinstance(functions, str):
        raise ModelError(f"export_c: give a sequence of function names, not the text {functions!r}")
    functions = list(functions)
    for function in functions:
        check_function(system, function)
    if stepper is not None:
        check_stepper(stepper)
        check_function(system, "hamilton" if system.model.method == "momenta" else "forward_dynamics")
    if not functions and stepper is None:
        raise ModelError("export_c: name at least one function, or a stepper")
    title = _title(system, name)
    unit = CUnit(title, scalar)
    backend = CBackend(unit)
    chosen = _plans(system, plans)
    draft = Draft(system, unit, chosen, [_run(system, plan, backend) for plan in chosen], wrenches)
    for function in dict.fromkeys(functions):
        add_function(draft, function)
    if stepper is not None:
        add_step(draft, stepper)
    files = Exported(_folder(folder) / f"{title}.h", _folder(folder) / f"{title}.c")
    write_text(files.header, header_text(draft))
    write_text(files.source, unit.source(files.header.name))
    return files


def _title(system: System, name: str | None) -> str:
    """The prefix of all names in C."""
    if name is not None:
        if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
            raise ModelError(f"export_c: name {name!r} is no name in C: letters, digits and underscores, beginning "
                             "with a letter")
        return name
    made = re.sub(r"\W+", "_", system.model.name, flags=re.ASCII).strip("_").lower()
    return made if _IDENTIFIER.fullmatch(made) else f"machine_{made}".rstrip("_")


def _folder(folder: str | os.PathLike[str]) -> Path:
    """The folder, made if there is none."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise FileError(f"{path}: is a file; export_c needs a folder to write a header and a source into") from None
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be made: {getattr(error, 'strerror', None) or error}") from None
    return path


def _plans(system: System, plans: Sequence[Any]) -> list[LoopPlan | None]:
    """The plans to export, each once."""
    if not system.model.tree.looped:
        if len(plans):
            raise ModelError(f"export_c: {system.model.name!r} is a tree: it has no loops, and no plans for them")
        return [None]
    made = [_plan(system, given, i) for i, given in enumerate(plans)] or [system.plans.general()]
    return list({plan.key: plan for plan in made}.values())


def _plan(system: System, given: Any, index: int) -> LoopPlan:
    if isinstance(given, LoopPlan):
        return given
    try:
        q = np.asarray(getattr(given, "q", given), dtype=float)
    except (TypeError, ValueError):
        q = np.empty(0)
    if q.shape != (system.nq,) or not np.isfinite(q).all():
        raise ModelError(f"export_c: plans[{index}] is neither a plan, nor a state, nor a finite array q of shape "
                         f"({system.nq},)")
    return system.plans.at(q, float(getattr(given, "t", 0.0)))


def _run(system: System, plan: LoopPlan | None, backend: CBackend) -> CompiledEvaluator:
    tree = system.model.tree if plan is None else replace(system.model.tree, plan=plan)
    return CompiledEvaluator(tree, cast(Backend, backend), system.kernels.maker.schedule)
