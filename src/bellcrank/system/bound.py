"""Calls of one state: through a native door, or bound to arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bellcrank.arrays import Floats, check_unmasked
from bellcrank.errors import ModelError, StateError, hint
from bellcrank.lowering.function import Function
from bellcrank.system.evaluator import CompiledEvaluator, read_inputs
from bellcrank.system.planned import Planned

__all__ = ["FORCED", "Bound", "known_function"]

#: functions that springs between links enter as forces
FORCED = ("forward_dynamics", "inverse_dynamics", "bias", "joint_wrenches", "hamilton", "constrained_hamilton")

#: methods of a `System` that are functions of arrays alone, and what they take
METHODS = {"forward_dynamics": "q, u, tau", "inverse_dynamics": "q, u, udot", "bias": "q, u", "mass_matrix": "q",
           "momenta": "q, u", "hamilton": "q, p, tau"}

_OTHER, _NOT_FINITE = object(), object()  # what the native door answers besides a result


def known_function(functions: Mapping[str, Function], name: str) -> Function:
    """The function behind a method; an error names those there are."""
    if name in functions:
        return functions[name]
    shown = ", ".join(f"{known!r} ({takes})" for known, takes in METHODS.items())
    raise ModelError(f"no function {name!r}; there are {shown}{hint(name, METHODS)}")


class Bound(Planned):
    """How a `System` is called for one state at the least cost."""

    _values: dict[str, Any]

    def _single(self, name: str, a: Any, b: Any, c: Any) -> Floats | None:
        """One state through the native door; None if it does not fit."""
        try:
            door = self._doors[name]
        except KeyError:
            door = self._doors[name] = self._make_door(name)
        out = np.empty(self.nu)
        answer = door(a, b, c, out)
        return out if answer is out else None

    def _make_door(self, name: str) -> Callable[..., Any]:
        function = self._functions[name]
        run = self._evaluator_for(function)
        if isinstance(run, CompiledEvaluator) and run.compiles_whole(function) \
                and list(run.inputs(function, False)) == list(function.inputs):
            door = run.backend.door(run.kernel(function, False, 1), _OTHER, _NOT_FINITE)
            if door is not None:
                return door
        return _no_door

    def bind(self, name: str, *arrays: Floats, out: Floats | None = None) -> Callable[[], Floats]:
        """A call bound to preallocated arrays: ``call()`` reads them, writes and returns `out`.

        `name` is "forward_dynamics" (q, u, tau), "inverse_dynamics" (q, u, udot), "bias" (q, u), "mass_matrix" (q),
        "momenta" (q, u) or "hamilton" (q, p, tau), whose speeds and rates of momenta lie side by side, (nu, 2); the
        arrays are one state each, C-contiguous doubles. `out` is what the method returns, shape (nu,) or (nu, nu), or
        an array of yours with as many entries. The cheapest way to call.

        >>> import bellcrank as bc, numpy as np
        >>> arm, q = bc.compile(bc.load("double_pendulum")), np.zeros(2)
        >>> call = arm.bind("mass_matrix", q)
        >>> call().shape
        (2, 2)
        """
        function = known_function(self._functions, name)
        run = self._evaluator_for(function)
        # forces that act as external wrenches may depend on time, too
        sizes = read_inputs(self.tree if self._sprung and name in FORCED else run.tree, function, False)
        own = [np.asarray(list(self._values.values()), dtype=float) if n == "parameters" else None for n in sizes]
        fixed = [a for a in own if a is not None]
        given = [*arrays, *fixed]
        if "t" in sizes and len(arrays) == len(function.inputs):
            raise StateError(f"bind({name!r}): this machine depends on time; pass a one-entry array t after the others")
        if len(given) != len(sizes):
            raise StateError(f"bind({name!r}): needs the arrays {', '.join(function.inputs)}, got {len(arrays)}")
        if out is None:
            shape = {"mass_matrix": (self.nu, self.nu), "hamilton": (self.nu, 2)}.get(name, function.size(self.tree))
            out = np.empty(shape)
        for label, size, array in (*zip(sizes, sizes.values(), given, strict=True),
                                   ("out", function.size(self.tree), out)):
            check_unmasked(label, array)
            if not (isinstance(array, np.ndarray) and array.dtype == np.float64 and array.flags.c_contiguous
                    and array.flags.aligned and array.size == size):
                raise StateError(f"bind({name!r}): {label} must be a C-contiguous array of {size} doubles")
        if not out.flags.writeable:
            raise StateError(f"bind({name!r}): out must be writeable")
        return self._bound(name, function, given, out)

    def _bound(self, name: str, function: Function, arrays: list[Floats], out: Floats) -> Callable[[], Floats]:
        timed = self.tree.timed

        def call_method() -> Floats:
            when = {"t": float(arrays[len(function.inputs)].ravel()[0])} if timed else {}
            made = getattr(self, name)(*(a.reshape(-1) for a in arrays[:len(function.inputs)]), **when)
            out.reshape(-1)[:] = np.ravel(np.stack(made, axis=-1) if name == "hamilton" else made)
            return out

        if (self._sprung and name in FORCED) or (self._by_kkt and name == "forward_dynamics") or (
                self.tree.looped and name in ("inverse_dynamics", "hamilton")) or (
                self.tree.joint_forces and name in ("inverse_dynamics", "bias")):
            return call_method  # not one kernel, or not that alone
        if self.tree.looped and name == "forward_dynamics":
            bound = self._kernel_call(name, function, arrays, out)

            def watched() -> Floats:
                try:
                    return bound()
                except StateError:  # a pivot vanished: other speeds take over
                    return call_method()

            return watched
        return self._kernel_call(name, function, arrays, out)

    def _kernel_call(self, name: str, function: Function, arrays: list[Floats], out: Floats) -> Callable[[], Floats]:
        run = self._evaluator_for(function)
        if isinstance(run, CompiledEvaluator) and run.compiles_whole(function):
            return run.backend.bound(run.kernel(function, False, 1), arrays, out, StateError,
                                     f"{name}: an input or the result is not finite")

        def reference() -> Floats:
            result, finite = run.run(function, False, [a.reshape(1, -1) for a in arrays], 1)
            out.reshape(-1)[:] = result[0]
            if not finite:
                raise StateError(f"{name}: an input or the result is not finite")
            return out

        return reference


def _no_door(*arrays: Any) -> object:
    return _OTHER
