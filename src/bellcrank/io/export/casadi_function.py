"""`bellcrank.to_casadi`: functions of a machine as CasADi functions, for optimal control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bellcrank.compiled.system import System
from bellcrank.errors import ModelError
from bellcrank.system.traced_functions import TracedFunction, traced_function

if TYPE_CHECKING:
    import casadi

__all__ = ["to_casadi"]


def to_casadi(system: System, function: str, *, at: Any = None, wrenches: bool = False) -> casadi.Function:
    """A function of a machine as a `casadi.Function`: its graph, operation by operation, on `casadi.SX`.

    CasADi differentiates it itself and sees which entry depends on which, so that IPOPT gets exact sparse Jacobians and
    Hessians; it can be called with numbers, SX and MX, be mapped, and be printed as C.

    `function` is the name of a method: "forward_dynamics" (q, u, tau -> udot), "inverse_dynamics" (q, u, udot -> tau),
    "bias", "mass_matrix", "momenta", "reactions" (rows in the order of the joints), "kinetic_energy",
    "potential_energy", "energy", "center_of_mass", "momentum", "joint_laws", "pair_wrenches", "stored_energy"; of a
    body or frame "pose:BODY" (-> rotation, position), "velocity:BODY", "acceleration:BODY", "jacobian:BODY",
    "jacobian_rate:BODY", at a `point` of it; "coordinate_rates" (q, u -> qdot, for quaternions); and of loops
    "loop_error", "loop_rate_error", and the same of the independent constraints alone, "independent_loop_error" and
    "independent_loop_rate_error". Inputs and outputs have names and are columns, SI units; what time moves takes `t`,
    machines with parameters take `parameters` in the order of `system.parameters`, and with `wrenches` dynamics takes a
    row [moment, force] for every body. q is taken as it stands: quaternions should be unit quaternions.

    With loops, the function follows one plan: that of a general position, or of the state `at`. It is good where
    pivots of that plan do not vanish. Inverse dynamics gives the forces of the actuated joints, or of the independent
    ones. Cost: some microseconds for every operation of the graph. Needs the package casadi.

    >>> import pytest; _ = pytest.importorskip("casadi")
    >>> import bellcrank as bc
    >>> f = bc.to_casadi(bc.compile(bc.load("pendulum")), "forward_dynamics")
    >>> f
    Function(forward_dynamics:(q,u,tau)->(udot) SXFunction)
    >>> print(round(float(f(0.5, 0.0, 0.0)), 6))
    -4.703165
    """
    try:
        import casadi
    except ImportError:
        raise ModelError("to_casadi: the package casadi is not installed; pip install \"bellcrank[casadi]\"") from None
    traced = traced_function("to_casadi", system.plans, function, at=at, wrenches=wrenches)
    arrays = {name: casadi.SX.sym(name, *_shape(array.shape)) for name, array in traced.inputs.items()}
    outputs = _outputs(traced, arrays)
    return casadi.Function(traced.name, list(arrays.values()), list(outputs.values()), list(arrays), list(outputs))


def _shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """CasADi's shapes: columns, and numbers as columns of one."""
    rows, columns = (*shape, 1, 1)[:2]
    return rows, columns


def _entry(index: Any, constants: Any) -> Any:
    """One of some constants: CasADi's expressions know no arrays that are indexed by values."""
    import casadi

    found: Any = constants.values[0]
    for i, value in enumerate(constants.values[1:], 1):
        found = casadi.if_else(index >= i, value, found)
    return found


def _outputs(traced: TracedFunction, arrays: dict[str, Any]) -> dict[str, Any]:
    import casadi

    functions: dict[str, Any] = {
        "sqrt": casadi.sqrt, "sin": casadi.sin, "cos": casadi.cos, "exp": casadi.exp, "log": casadi.log,
        "tanh": casadi.tanh, "atan2": casadi.atan2, "less": lambda a, b, x, y: casadi.if_else(a < b, x, y),
        "floor": casadi.floor, "locate": lambda x, knots: sum(casadi.if_else(x >= k, 1.0, 0.0) for k in knots.values),
        "entry": _entry}
    entries = {name: [array[i, j] for i in range(array.shape[0]) for j in range(array.shape[1])]
               for name, array in arrays.items()}
    out = {}
    for name, values in traced.run(entries, functions).items():
        rows, columns = _shape(traced.outputs[name])
        out[name] = casadi.reshape(casadi.vertcat(*values), columns, rows).T  # CasADi counts column by column
    return out
