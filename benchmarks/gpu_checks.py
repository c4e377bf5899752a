"""Every array method and every stepper on the GPU beside the CPU: ``python benchmarks/gpu.py --check``.

Doubles agree to 1e-11 of the largest number of a result, as different code for the CPU does, floats to 2e-3;
whole motions to a hundred times that, and to 1e-7 where steps choose their own length. `check` returns what does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

import bellcrank as bc

Array = Any
Ask = Callable[[bc.System, Array, Array, Array], Any]

#: every method of a System that computes at states
METHODS: dict[str, Ask] = {
    "forward_dynamics": lambda s, q, u, tau: s.forward_dynamics(q, u, tau),
    "inverse_dynamics": lambda s, q, u, tau: s.inverse_dynamics(q, u, s.forward_dynamics(q, u, tau)),
    "bias": lambda s, q, u, tau: s.bias(q, u), "mass_matrix": lambda s, q, u, tau: s.mass_matrix(q),
    "energy": lambda s, q, u, tau: s.energy(q, u), "kinetic_energy": lambda s, q, u, tau: s.kinetic_energy(q, u),
    "potential_energy": lambda s, q, u, tau: s.potential_energy(q),
    "pose": lambda s, q, u, tau: s.pose(q, s.body_names[-1]), "poses": lambda s, q, u, tau: s.pose(q),
    "velocity": lambda s, q, u, tau: s.velocity(q, u, s.body_names[-1], (0.1, 0.2, 0.3)),
    "acceleration": lambda s, q, u, tau: s.acceleration(q, u, tau, s.body_names[-1], (0.1, 0.2, 0.3)),
    "jacobian": lambda s, q, u, tau: s.jacobian(q, s.body_names[-1], (0.1, 0.2, 0.3)),
    "jacobian_rate": lambda s, q, u, tau: s.jacobian_rate(q, u, s.body_names[-1], (0.1, 0.2, 0.3)),
    "center_of_mass": lambda s, q, u, tau: s.center_of_mass(q), "momentum": lambda s, q, u, tau: s.momentum(q, u),
    "momenta": lambda s, q, u, tau: s.momenta(q, u),
    "hamilton": lambda s, q, u, tau: s.hamilton(q, s.momenta(q, u), tau),
    "reactions": lambda s, q, u, tau: s.reactions(q, u, tau),
    "element_forces": lambda s, q, u, tau: s.element_forces(q, u, tau),
    "drive_forces": lambda s, q, u, tau: s.drive_forces(q, u, tau),
    "reduced": lambda s, q, u, tau: s.reduced(q, u), "regressor": lambda s, q, u, tau: s.regressor(q, u, tau),
    "derivatives": lambda s, q, u, tau: s.derivatives("forward_dynamics", q, u, tau),
    "loop_error": lambda s, q, u, tau: s.loop_error(q), "loop_rate_error": lambda s, q, u, tau: s.loop_rate_error(q, u),
    "normalize": lambda s, q, u, tau: s.normalize(q), "integrate": lambda s, q, u, tau: s.integrate(q, 0.01 * u),
    "difference": lambda s, q, u, tau: s.difference(q, s.integrate(q, 0.01 * u)),
}
#: those whose graphs grow with the square of the speeds, and up to how many speeds they are looked at
LARGEST = {"regressor": 12, "derivatives": 12, "hamilton": 20, "reduced": 30, "mass_matrix": 100, "jacobian_rate": 100,
           "jacobian": 100, "poses": 100, "inverse_dynamics": 100, "reactions": 100, "acceleration": 100,
           "drive_forces": 100}  # the last: of long chains they are small differences of large numbers
#: differences of large numbers that vanish: beside 1 m, 1 rad
ABSOLUTE = ("loop_error", "loop_rate_error", "difference")
#: every stepper but those of rigid contacts and of other libraries; those that need Jacobians up to so many speeds
STEPPERS = ("rk4", "rk8", "semi_implicit", "dopri5", "dop853", "gauss", "radau", "radau5")
IMPLICIT = 20


def check(machine: Any, precision: str) -> list[str]:
    """What of a machine is not as on the CPU."""
    most = 1e-11 if precision == "double" else 2e-3
    wrong = check_methods(machine, most)
    error = machine.accuracy()["error"]
    if not error < 100 * most:
        wrong.append(f"rollout: {error:.1e}")
    wrong += check_steppers(machine, precision, most)
    return [f"{machine.name} ({precision}) {what}" for what in wrong]


def check_methods(machine: Any, most: float) -> list[str]:
    """Of arrays of NumPy, and of CuPy in both orders, which stay where they are."""
    import cupy

    cpu, gpu, wrong = machine.cpu, machine.gpu, []
    q, u, tau = machine.states(1000 if cpu.nu < 100 else 64)
    for name, ask in METHODS.items():
        if cpu.nu > LARGEST.get(name, 1 << 30):
            continue
        try:
            wanted = ask(cpu, q, u, tau)
        except bc.BellcrankError:
            continue  # not of this machine
        try:
            found = {"NumPy": ask(gpu, q, u, tau)}
            for order in ("C", "F"):
                found[f"CuPy {order}"] = ask(gpu, *(cupy.asarray(a.astype(machine.kind), order=order)
                                                    for a in (q, u, tau)))
        except Exception as error:  # all of it is told of
            wrong.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
            continue
        if not all(isinstance(x, cupy.ndarray) for x in leaves(found["CuPy F"])):
            wrong.append(f"{name}: arrays of the device became others")
        for where, made in found.items():
            error = apart(made, wanted, name in ABSOLUTE)
            if not error < most:
                wrong.append(f"{name}, {where}: {error:.1e}")
    return wrong


def leaves(value: Any) -> list[Any]:
    """The arrays of a result."""
    if isinstance(value, Mapping):
        return [x for v in value.values() for x in leaves(v)]
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in leaves(v)]
    if isinstance(value, bc.Pose):
        return [value.position, value.rotation]
    if hasattr(value, "shape"):
        return [value]
    return leaves([getattr(value, f.name) for f in fields(value)]) if is_dataclass(value) else []


def apart(a: Any, b: Any, absolute: bool) -> float:
    """The largest difference of results, each beside its largest number."""
    first, second = leaves(a), leaves(b)
    if len(first) != len(second):
        return float("inf")
    pairs = [(plain(x), plain(y)) for x, y in zip(first, second, strict=True)]
    if any(x.shape != y.shape or (np.isnan(x) != np.isnan(y)).any() for x, y in pairs):
        return float("inf")
    largest = [float(np.abs(np.nan_to_num(y)).max(initial=0.0)) for _, y in pairs]
    least = 1.0 if absolute else max(1e-3 * max(largest, default=0.0), 1e-9)  # what vanishes, beside the others
    return max((float(np.abs(np.nan_to_num(x - y)).max(initial=0.0)) / max(size, least)
                for (x, y), size in zip(pairs, largest, strict=True)), default=0.0)


def plain(array: Any) -> Array:
    """An array of the device as one of NumPy, of floats."""
    return np.asarray(array.get() if hasattr(array, "get") and not isinstance(array, np.ndarray) else array, float)


def check_steppers(machine: Any, precision: str, most: float) -> list[str]:
    """What is not as on the CPU of motions by every method, with forces that a traced controller holds."""
    wrong = []
    cpu = machine.cpu
    q, u, tau = machine.states(64)
    large = cpu.nu > 100
    for stepper in STEPPERS[:3] if large else STEPPERS:
        adaptive, implicit = stepper in ("dopri5", "dop853", "radau5"), stepper in ("gauss", "radau", "radau5")
        if implicit and (cpu.nu > IMPLICIT or precision == "single"):  # which are doubles anyway
            continue
        h = machine.step
        run: dict[str, Any] = {"stepper": stepper, "output": 5 * h, "tau": machine.case.push * tau} | (
            {} if adaptive else {"step": h})
        try:
            mine, other = (s.simulate((q, u), (5 if large else 20) * h, **run) for s in (machine.gpu, cpu))
        except Exception as error:
            wrong.append(f"{stepper}: {type(error).__name__}: {str(error)[:300]}")
            continue
        error = max(apart(mine.q.values, other.q.values, False), apart(mine.u.values, other.u.values, False))
        bound = 1e-7 if adaptive else 100 * most if other.attrs["status"] == "finished" else np.inf
        if not error < bound or mine.attrs["status"] != other.attrs["status"]:
            wrong.append(f"{stepper}: {error:.1e}, {mine.attrs['status']} ({other.attrs['status']} on the CPU)")
    return wrong
