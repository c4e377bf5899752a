"""Calls of one state that are bound to arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats, check_unmasked
from bellcrank.errors import AssemblyError, ModelError, StateError, hint
from bellcrank.formulations.common.body_kinetics import AT_BODY
from bellcrank.system.derivative_questions import Question
from bellcrank.system.derivatives import bound_answer, derivatives
from bellcrank.system.drive_programs import usual_drives
from bellcrank.system.evaluator import read_inputs
from bellcrank.system.force_terms import acting, forced
from bellcrank.system.forward_dynamics import forward_dynamics, hamilton
from bellcrank.system.inverse_dynamics import inverse_dynamics
from bellcrank.system.state import State, parts_of
from bellcrank.system.tree_dynamics import FORCED, bias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bellcrank.lowering.function import Function
    from bellcrank.system.kernels import Kernels
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["bind", "known_function"]

#: methods of a `System` that are functions of arrays alone, and what they take
METHODS = {"forward_dynamics": "q, u, tau", "inverse_dynamics": "q, u, udot", "bias": "q, u", "mass_matrix": "q",
           "momenta": "q, u", "hamilton": "q, p, tau", "center_of_mass": "q", "momentum": "q, u",
           "kinetic_energy": "q, u", "potential_energy": "q"}


def known_function(functions: Mapping[str, Function], name: str) -> Function:
    """The function behind a method; an error names those there are."""
    if name in functions:
        return functions[name]
    shown = ", ".join(f"{known!r} ({takes})" for known, takes in METHODS.items())
    raise ModelError(f"no function {name!r}; there are {shown}{hint(name, METHODS)}")


def bind(plans: LoopPlans, name: str, arrays: tuple[Any, ...], out: Floats | None, body: str | None = None,
         by: tuple[str, ...] | None = None) -> Callable[[], Floats]:
    """A call that reads the arrays, writes and returns `out`. See `System.bind`."""
    if by is not None:
        return _bind_derivatives(plans, Question(name, body, by, plans.tree.looped, ""), arrays, out)
    kernels, tree = plans.kernels, plans.tree
    function = _function(kernels, name, body)
    arrays, when = _of_state(plans, name, function.inputs, arrays)
    if "point" in function.inputs and len(arrays) == len(function.inputs) - 1:
        arrays = (*arrays, np.zeros(3))
    # forces that act as external wrenches may depend on time, too
    outside = kernels.springs_outside and name in FORCED
    sizes = read_inputs(tree if outside else kernels.evaluator.tree, function, False)
    arrays = (*arrays, *(when if "t" in sizes else ()))
    given = [*arrays, *(_parameters(kernels) for n in sizes if n == "parameters")]
    if "t" in sizes and len(arrays) == len(function.inputs):
        raise StateError(f"bind({name!r}): this machine depends on time; pass a one-entry array t after the others")
    if len(given) != len(sizes):
        raise StateError(f"bind({name!r}): needs the arrays {', '.join(function.inputs)}, got {len(arrays)}")
    size = function.size(tree)
    if out is None:
        out = np.empty({"mass_matrix": (tree.nu, tree.nu), "hamilton": (tree.nu, 2), "jacobian": (6, tree.nu),
                        "jacobian_rate": (6, tree.nu)}.get(name, size))
    _check_arrays(name, sizes, given, size, out)
    if name in AT_BODY:
        return kernels.bound(function.name, given, out)
    return _bound(plans, name, len(function.inputs), given, out)


def _of_state(plans: LoopPlans, name: str, inputs: Sequence[str], arrays: tuple[Any, ...]
              ) -> tuple[tuple[Any, ...], tuple[Floats, ...]]:
    """The arrays of a state in its place, and its time; momenta for `hamilton`."""
    if not arrays or not isinstance(arrays[0], State):
        return arrays, ()
    q, u, t = parts_of(arrays[0], plans.configuration.state_names, f"bind({name!r})")
    p = plans.kernels.run("momenta", {"q": q, "u": u}, None, t) if "p" in inputs else u
    held = {"q": q, "u": u, "p": p}
    return (*(held[x] for x in inputs if x in held), *arrays[1:]), (np.array([float(t)]),)


def _check_arrays(name: str, sizes: Mapping[str, int], given: Sequence[Floats], size: int, out: Floats) -> None:
    for label, entries, array in (*zip(sizes, sizes.values(), given, strict=True), ("out", size, out)):
        check_unmasked(label, array)
        if not (isinstance(array, np.ndarray) and array.dtype == np.float64 and array.flags.c_contiguous
                and array.flags.aligned and array.size == entries):
            raise StateError(f"bind({name!r}): {label} must be a C-contiguous array of {entries} doubles")
    if not out.flags.writeable:
        raise StateError(f"bind({name!r}): out must be writeable")


def _bind_derivatives(plans: LoopPlans, asked: Question, arrays: tuple[Any, ...], out: Floats | None
                      ) -> Callable[[], Floats]:
    """The value and its derivatives in one array: entries of the value, then matrices row by row."""
    own = forced(plans) if "tau" in asked.by else plans
    plans, run, answer = bound_answer(own, asked)
    function = answer.function
    sizes = read_inputs(run.tree, function, False)
    arrays, when = _of_state(own, asked.function, answer.what.inputs, arrays)
    arrays = (*arrays, *(when if "t" in sizes else ()))
    given = [*arrays, *(_parameters(plans.kernels) for n in sizes if n == "parameters")]
    if len(given) != len(sizes):
        raise StateError(f"bind({asked.function!r}, by=...): needs the arrays "
                         f"{', '.join(x for x in sizes if x != 'parameters')}, got {len(arrays)}")
    out = np.empty(function.size(run.tree)) if out is None else out
    _check_arrays(asked.function, sizes, given, function.size(run.tree), out)
    call = plans.kernels.bound(function.name, given, out, run)
    if "tau" not in answer.what.inputs or own.tree.forced or not own.tree.loop_joints:
        return call
    here = dict(zip(sizes, given, strict=True))

    def watched() -> Floats:
        """Forces along loop joints are no inputs of the kernel."""
        if acting(own, here["tau"].reshape(-1)) is own:
            return call()
        found = derivatives(own, asked.function, [here[x].reshape(-1) for x in answer.what.inputs], by=asked.by,
                            t=float(here["t"].ravel()[0]) if "t" in here else 0.0)
        out.reshape(-1)[:] = np.concatenate([np.ravel(x) for x in (found.value, *(found[x] for x in asked.by))])
        return out

    return watched


def _function(kernels: Kernels, name: str, body: str | None) -> Function:
    """The function behind a method, or that of one body."""
    if name == "pose" and body is None:
        found = kernels.at_body(name, None)
        if found is not None:
            return found
    if (body is not None) != (name in AT_BODY):
        raise ModelError(f"bind({name!r}): " + ("needs body=..., the body or frame that it is asked about"
                                                if body is None else "is not about one body; leave out body=..."))
    if body is None:
        return known_function(kernels.functions, name)
    found = kernels.at_body(name, body)
    if found is None:
        raise ModelError(f"bind({name!r}): {kernels.why_not_at(body)}; call the method")
    return found


def _parameters(kernels: Kernels) -> Floats:
    return np.asarray(list(kernels.model.values.values()), dtype=float)


def _bound(plans: LoopPlans, name: str, count: int, arrays: list[Floats], out: Floats) -> Callable[[], Floats]:
    """The kernel's own call where the method is one kernel, else the method."""
    kernels, tree = plans.kernels, plans.tree
    looped, timed = tree.looped, tree.timed
    methods: dict[str, Callable[..., Any]] = {
        "forward_dynamics": forward_dynamics, "inverse_dynamics": inverse_dynamics, "hamilton": hamilton, "bias": bias}

    def call_method() -> Floats:
        when = {"t": float(arrays[count].ravel()[0])} if timed else {}
        made = methods[name](plans, *(a.reshape(-1) for a in arrays[:count]), **when)
        out.reshape(-1)[:] = np.ravel(np.stack(made, axis=-1) if name == "hamilton" else made)
        return out

    planned = looped and name in ("forward_dynamics", "inverse_dynamics")
    if (kernels.springs_outside and name in FORCED) or (plans.model.dense_loops and planned) or (
            looped and name == "hamilton") or (
            tree.joint_forces and (name == "bias" or (name == "inverse_dynamics" and not looped))):
        return call_method  # not one kernel, or not that alone
    if not planned:
        return kernels.bound(name, arrays, out)
    try:
        program = usual_drives(plans) if name == "inverse_dynamics" else \
            (name, kernels.planned(plans.reference().plan))
    except AssemblyError:  # plans are made where the states are
        return call_method
    if program is None:
        return call_method
    call = kernels.bound(program[0], arrays, out, program[1])

    def watched() -> Floats:
        try:
            return call()
        except StateError:  # a pivot vanished: other speeds take over
            return call_method()

    return watched
