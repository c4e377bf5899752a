"""Machines and independent solutions for tests of `System.simulate`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import bellcrank as bc

DATA = Path(__file__).parent / "data" / "loops"
GRAVITY = 9.81


@cache
def reference(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text())


@cache
def system(name: str, method: str = "auto", backend: str = "llvm", schedule: str = "auto", **options: Any) -> bc.System:
    """A built-in machine, compiled once for all tests."""
    return bc.compile(bc.load(name, **options), method, backend, schedule=schedule)


def drop(mass: Any = 1.0, law: Callable[[Any, Any], Any] | None = None) -> bc.Mechanism:
    """A ball on a vertical slide: q is its height."""
    m = bc.Mechanism("drop")
    ball = m.add_body("ball", bc.Inertia.sphere(mass, 0.1))
    m.add_joint("slide", bc.Prismatic("z"), m.ground, ball)
    if law is not None:
        m.add_joint_force("law", "slide", law)
    return m


@cache
def ball() -> bc.System:
    return bc.compile(drop())


def ball_pendulum() -> bc.Mechanism:
    """A body on a spherical joint, unsymmetric."""
    m = bc.Mechanism("ball pendulum")
    bob = m.add_body("bob", bc.Inertia.box(1.2, (0.1, 0.2, 0.6), (0.05, 0.0, -0.5)))
    m.add_joint("ball", bc.Spherical(), m.ground, bob)
    return m


def thrown() -> bc.Mechanism:
    """A box with nothing to hold it, and a rod hinged to it."""
    m = bc.Mechanism("thrown")
    box = m.add_body("box", bc.Inertia.box(2.0, (0.2, 0.5, 0.9)))
    rod = m.add_body("rod", bc.Inertia.rod(0.5, (0, 0, 0), (0, 0, -0.4)))
    m.add_joint("free", bc.Free(), m.ground, box)
    m.add_joint("hinge", bc.Revolute("x"), box, rod, bc.Pose((0.1, 0.0, -0.4)))
    return m


def double_pendulum_rates(t: float, y: np.ndarray) -> np.ndarray:
    """Two slender rods of 1 m and 1 kg by hand, in absolute angles from the vertical; y = relative q, u."""
    a, b = y[0], y[0] + y[1]
    ua, ub = y[2], y[2] + y[3]
    m11, m22, m12 = 4.0 / 3.0, 1.0 / 3.0, 0.5 * np.cos(a - b)
    f1 = -0.5 * np.sin(a - b) * ub * ub - 1.5 * GRAVITY * np.sin(a)
    f2 = 0.5 * np.sin(a - b) * ua * ua - 0.5 * GRAVITY * np.sin(b)
    det = m11 * m22 - m12 * m12
    da, db = (m22 * f1 - m12 * f2) / det, (m11 * f2 - m12 * f1) / det
    return np.array([y[2], y[3], da, db - da])


def ball_pendulum_rates(t: float, y: np.ndarray) -> np.ndarray:
    """Euler's equations of `ball_pendulum` by hand; y = (quaternion, body rates)."""
    mass, com = 1.2, np.array([0.05, 0.0, -0.5])
    k = mass / 12.0
    x2, y2, z2 = 0.01, 0.04, 0.36
    inertia = np.diag([k * (y2 + z2), k * (x2 + z2), k * (x2 + y2)])
    inertia = inertia + mass * (com @ com * np.eye(3) - np.outer(com, com))
    w, v = y[0], y[1:4]
    up = np.array([2 * (v[0] * v[2] - w * v[1]), 2 * (v[1] * v[2] + w * v[0]), 1 - 2 * (v[0]**2 + v[1]**2)])
    omega = y[4:]
    moment = np.cross(com, -mass * GRAVITY * up)
    rate = np.linalg.solve(inertia, moment - np.cross(omega, inertia @ omega))
    return np.concatenate([[-0.5 * v @ omega], 0.5 * (w * omega + np.cross(v, omega)), rate])


def integrated(rates: Callable[[float, np.ndarray], np.ndarray], y: Any, times: Any) -> np.ndarray:
    """An independent solution at given times, shape (times, size)."""
    from scipy.integrate import solve_ivp

    return solve_ivp(rates, (0.0, float(times[-1])), np.asarray(y, float), method="DOP853", t_eval=times, rtol=1e-13,
                     atol=1e-14).y.T


def four_bar_rows(branch: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, q and u of the independent free run of the four-bar; the angles round the loop add up to whole turns."""
    rows = reference("four_bar")["branches"][branch]["free"]
    q = np.array([[r[f"theta{k}"] for k in (1, 2, 3)] for r in rows])
    u = np.array([[r[f"theta{k}dot"] for k in (1, 2, 3)] for r in rows])
    q, u = (np.column_stack([x, -x.sum(-1)]) for x in (q, u))
    return np.array([r["t"] for r in rows]), q, u


def angle_gap(a: Any, b: Any) -> float:
    """The largest difference of angles, whole turns apart."""
    gap = np.asarray(a) - np.asarray(b)
    return float(np.abs(gap - 2.0 * np.pi * np.round(gap / (2.0 * np.pi))).max())


def final(result: Any) -> np.ndarray:
    """The last state, q and u."""
    return np.concatenate([result.q.values[-1], result.u.values[-1]], axis=-1)


def slope(sizes: Any, errors: Any) -> float:
    """The exponent of errors as a power of sizes, by regression."""
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])
