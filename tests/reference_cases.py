"""Reads `data/chains_and_trees.json` (see `data/README.md`) and translates it to Bellcrank's conventions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import bellcrank as bc

Floats = npt.NDArray[np.float64]


@cache
def _file() -> dict[str, dict[str, Any]]:
    text = (Path(__file__).parent / "data" / "chains_and_trees.json").read_text()
    return {case["name"]: case for case in json.loads(text)["cases"]}


def names() -> list[str]:
    """Names of all cases."""
    return list(_file())


@dataclass
class Case:
    """One mechanism in one state, with what must come out; lists have one entry per body."""

    mechanism: bc.Mechanism
    q: Floats
    u: Floats
    tau: Floats
    udot: Floats
    drive: Floats  #: joint forces, those that enforce prescribed motions included
    momenta: Floats
    momenta_rate: Floats
    prescribed: npt.NDArray[np.bool_]  #: for every speed
    bodies: list[str] = field(default_factory=list)
    com: list[Floats] = field(default_factory=list)
    com_acceleration: list[Floats] = field(default_factory=list)
    alpha: list[Floats] = field(default_factory=list)
    force: list[Floats] = field(default_factory=list)  #: at the centre of mass, world axes
    torque: list[Floats] = field(default_factory=list)

    def wrenches(self, system: bc.System) -> dict[str, Floats]:
        """The external forces as a call takes them: moment and force about the body's origin."""
        found = {}
        for body, com, force, torque in zip(self.bodies, self.com, self.force, self.torque, strict=True):
            arm = system.pose(self.q, body).rotation @ com
            found[body] = np.concatenate([torque + np.cross(arm, force), force])
        return found


def read(name: str, *, applied: bool = False, prescribed: bool = True) -> Case:
    """A case by its name; `applied` adds the external forces to the mechanism, where they always act.

    Without `prescribed`, prescribed joints are left free (their accelerations are then results like others).
    """
    case = _file()[name]
    m = bc.Mechanism(name, gravity=case["gravity"])
    rows: dict[str, list[float]] = {k: [] for k in ("q", "u", "tau", "udot", "drive", "momenta", "rate", "mask")}
    out = Case(m, *(np.zeros(0),) * 7, np.zeros(0, dtype=bool))
    for entry in case["bodies"]:
        body = m.add_body(f"b{entry['index']}", bc.Inertia(entry["mass"], entry["com"], entry["inertia_com"]))
        parent = m.body(f"b{entry['parent']}") if entry["parent"] else m.ground
        joint = m.add_joint(f"j{entry['index']}", _joint(entry), parent, body,
                            bc.Pose(entry["p_pj"], entry["quat_pj_wxyz"]))
        driven = entry["prescribed"] and prescribed
        if driven:
            _prescribe(m, joint.name, entry)
        for key, source in (("q", "q"), ("u", "u"), ("tau", "tau"), ("udot", "expected_udot"),
                            ("momenta", "expected_p"), ("rate", "expected_pdot")):
            rows[key] += _ours(entry, source)
        rows["drive"] += _ours(entry, "expected_tau" if "expected_tau" in entry else "tau")
        rows["mask"] += [driven] * joint.joint.nu
        if applied:
            m.add_wrench(f"w{entry['index']}", body, force=entry["ext_force_world_at_com"],
                         moment=entry["ext_torque_world"], at=entry["com"])
        out.bodies.append(body.name)
        for to, source in ((out.com, "com"), (out.com_acceleration, "expected_acom_world"),
                           (out.alpha, "expected_alpha_world"), (out.force, "ext_force_world_at_com"),
                           (out.torque, "ext_torque_world")):
            to.append(np.array(entry[source]))
    out.q, out.u, out.tau, out.udot, out.drive, out.momenta, out.momenta_rate = (
        np.array(rows[k], dtype=float) for k in ("q", "u", "tau", "udot", "drive", "momenta", "rate"))
    out.prescribed = np.array(rows["mask"], dtype=bool)
    return out


def _joint(entry: dict[str, Any]) -> bc.Joint:
    match entry["joint"]:
        case "revolute":
            return bc.Revolute(entry["axis"])
        case "prismatic":
            return bc.Prismatic(entry["axis"])
        case "universal":
            return bc.Universal(entry["axis1"], entry["axis2"])
        case "spherical":
            return bc.Spherical()
        case "free":
            return bc.Free()
    raise AssertionError(entry["joint"])


def _ours(entry: dict[str, Any], key: str) -> list[float]:
    """Entries of a joint in our order: a free joint's angular part comes first."""
    values = list(entry[key])
    return values[3:] + values[:3] if entry["joint"] == "free" else values


def _prescribe(m: bc.Mechanism, joint: str, entry: dict[str, Any]) -> None:
    """Laws with the case's position, rate and acceleration at t = 0."""
    q, u, udot = (np.array(_ours(entry, k)) for k in ("q", "u", "udot_prescribed"))
    if entry["joint"] not in ("spherical", "free"):
        for i, (q0, u0, a0) in enumerate(zip(q, u, udot, strict=True)):
            m.prescribe(joint, _quadratic(q0, u0, a0), i)
        return
    turn, omega, alpha = q[:4], np.array([0.0, *u[:3]]), np.array([0.0, *udot[:3]])
    rate = 0.5 * product(turn, omega)
    second = 0.5 * (product(turn, alpha) + product(rate, omega))
    laws = [_quadratic(*row) for row in zip(turn, rate, second, strict=True)]
    if entry["joint"] == "free":
        r, v = rotation(turn), u[3:]
        laws += [_quadratic(*row) for row in zip(q[4:], r @ v, r @ (udot[3:] + np.cross(u[:3], v)), strict=True)]
    m.prescribe(joint, lambda t: [law(t) for law in laws])


def _quadratic(q: float, u: float, a: float) -> Callable[[Any], Any]:
    q, u, a = float(q), float(u), float(a)
    return lambda t: q + u * t + 0.5 * a * t * t


def product(a: Sequence[float] | Floats, b: Sequence[float] | Floats) -> Floats:
    """Quaternion product, scalar first; written out here so that tests do not lean on the library."""
    w, x, y, z = a
    s, i, j, k = b
    return np.array([w * s - x * i - y * j - z * k, w * i + x * s + y * k - z * j,
                     w * j - x * k + y * s + z * i, w * k + x * j - y * i + z * s])


def rotation(quaternion: Sequence[float] | Floats) -> Floats:
    """Rotation matrix of a unit quaternion."""
    w, x, y, z = quaternion
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])
