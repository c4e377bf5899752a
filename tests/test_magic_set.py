"""The Magic Formula with a set of coefficients beside its published equations, written once more from the book on plain
floats: Pacejka, "Tyre and Vehicle Dynamics", 2002, (4.E1)-(4.E78) without turn slip."""

from __future__ import annotations

import math
import re
from math import atan, cos, exp, pi, sin, sqrt, tan
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.mechanism.forces.tyre import COEFFICIENTS, MagicSet

#: every coefficient has a part in every result
ALL = {name: round(0.05 + 0.013 * ((7 * k) % 23), 3) * (-1) ** k for k, name in enumerate(COEFFICIENTS)} | {
    "FNOMIN": 4000.0, "LONGVL": 16.0, "LMUX": 0.9, "LMUY": 0.8, "PCX1": 1.6, "PDX1": 1.2, "PKX1": 22.0, "PCY1": 1.3,
    "PDY1": -1.0, "PKY1": -15.0, "PKY2": 2.0, "RBX1": 12.0, "RBX2": -10.0, "RCX1": 1.1, "RBY1": 7.0, "RBY2": 4.0,
    "RCY1": 1.05, "RVY4": 3.0, "RVY5": 1.9, "RVY6": -10.0, "QBZ1": 9.0, "QCZ1": 1.2, "QBZ9": 18.0}


def curve(bend: float, c: float, e: float) -> float:
    """The argument of sines and cosines."""
    return c * atan(bend - e * (bend - atan(bend)))


def published(p: dict[str, float], fz: float, kappa: float, alpha: float, gamma: float, r0: float, vx: float,
              rolls: float, moves: float) -> list[float]:
    fz0, lx, ly = p["FNOMIN"], p["LMUX"], p["LMUY"]
    d = fz / fz0 - 1.0
    # ahead
    kx = kappa + p["PHX1"] + p["PHX2"] * d
    mux = lx * (p["PDX1"] + p["PDX2"] * d) * (1.0 - p["PDX3"] * gamma**2)
    ex = min(1.0, (p["PEX1"] + p["PEX2"] * d + p["PEX3"] * d**2) * (1.0 - p["PEX4"] * math.copysign(1.0, kx)))
    stiff_x = fz * (p["PKX1"] + p["PKX2"] * d) * exp(p["PKX3"] * d)
    fx0 = mux * fz * sin(curve(stiff_x / (p["PCX1"] * mux * fz) * kx, p["PCX1"], ex)) + fz * lx * (
        p["PVX1"] + p["PVX2"] * d)
    # to the side
    shy = p["PHY1"] + p["PHY2"] * d + p["PHY3"] * gamma
    svy = fz * ly * (p["PVY1"] + p["PVY2"] * d + (p["PVY3"] + p["PVY4"] * d) * gamma)
    ay = alpha + shy
    muy = ly * (p["PDY1"] + p["PDY2"] * d) * (1.0 - p["PDY3"] * gamma**2)
    ey = min(1.0, (p["PEY1"] + p["PEY2"] * d) * (1.0 - (p["PEY3"] + p["PEY4"] * gamma) * math.copysign(1.0, ay)))
    stiff_y = p["PKY1"] * fz0 * sin(2.0 * atan(fz / (p["PKY2"] * fz0))) * (1.0 - p["PKY3"] * abs(gamma))
    by = stiff_y / (p["PCY1"] * muy * fz)
    fy0 = muy * fz * sin(curve(by * ay, p["PCY1"], ey)) + svy
    # both together
    bxa, exa = p["RBX1"] * cos(atan(p["RBX2"] * kappa)), min(1.0, p["REX1"] + p["REX2"] * d)
    gx = cos(curve(bxa * (alpha + p["RHX1"]), p["RCX1"], exa)) / cos(curve(bxa * p["RHX1"], p["RCX1"], exa))
    byk, eyk = p["RBY1"] * cos(atan(p["RBY2"] * (alpha - p["RBY3"]))), min(1.0, p["REY1"] + p["REY2"] * d)
    shyk = p["RHY1"] + p["RHY2"] * d
    gy = cos(curve(byk * (kappa + shyk), p["RCY1"], eyk)) / cos(curve(byk * shyk, p["RCY1"], eyk))
    svyk = muy * fz * (p["RVY1"] + p["RVY2"] * d + p["RVY3"] * gamma) * cos(atan(p["RVY4"] * alpha)) * sin(
        p["RVY5"] * atan(p["RVY6"] * kappa))
    fx, fy = gx * fx0, gy * fy0 + svyk
    # moments
    mx = fz * r0 * (p["QSX1"] - p["QSX2"] * gamma + p["QSX3"] * fy / fz0)
    v = abs(vx) / p["LONGVL"]
    my = -rolls * fz * r0 * (p["QSY1"] + p["QSY2"] * fx / fz0 + p["QSY3"] * v + p["QSY4"] * v**4)
    at = alpha + p["QHZ1"] + p["QHZ2"] * d + (p["QHZ3"] + p["QHZ4"] * d) * gamma
    ar = alpha + shy + svy / stiff_y
    ateq, areq = (math.copysign(atan(sqrt(tan(a) ** 2 + (stiff_x / stiff_y * kappa) ** 2)), a) for a in (at, ar))
    bt = (p["QBZ1"] + p["QBZ2"] * d + p["QBZ3"] * d**2) * (1.0 + p["QBZ4"] * gamma + p["QBZ5"] * abs(gamma)) / ly
    dt = fz * r0 / fz0 * (p["QDZ1"] + p["QDZ2"] * d) * (1.0 + p["QDZ3"] * gamma + p["QDZ4"] * gamma**2)
    et = min(1.0, (p["QEZ1"] + p["QEZ2"] * d + p["QEZ3"] * d**2) * (
        1.0 + (p["QEZ4"] + p["QEZ5"] * gamma) * 2.0 / pi * atan(bt * p["QCZ1"] * at)))
    trail = dt * cos(curve(bt * ateq, p["QCZ1"], et)) * cos(alpha)
    br = p["QBZ9"] / ly + p["QBZ10"] * by * p["PCY1"]
    dr = fz * r0 * ly * (p["QDZ6"] + p["QDZ7"] * d + (p["QDZ8"] + p["QDZ9"] * d) * gamma)
    mzr = dr * cos(atan(br * areq)) * cos(alpha)
    s = r0 * (p["SSZ1"] + p["SSZ2"] * fy / fz0 + (p["SSZ3"] + p["SSZ4"] * d) * gamma)
    return [fx, fy, mx, my, moves * (mzr - trail * gy * fy0) + s * fx]


#: the same with curvatures E that are cut off at 1
BENT = ALL | {"PEX1": 2.0, "PEY1": 3.0, "REX1": 1.7, "REY1": 1.6, "QEZ1": 2.2}


@pytest.mark.parametrize("given", [ALL, BENT], ids=["all", "bent"])
@pytest.mark.parametrize("state", [
    (3000.0, 0.1, 0.08, 0.05, 0.3, 20.0, 1.0, 1.0), (5000.0, -0.1, -0.06, -0.04, 0.3, -12.0, -0.9, -1.0),
    (1200.0, 0.02, -0.2, 0.1, 0.35, 30.0, 1.0, 1.0), (7000.0, -0.4, 0.3, -0.1, 0.28, 8.0, 0.5, 0.7)])
def test_forces_and_moments_are_the_published_ones(state: tuple[float, ...], given: dict[str, float]) -> None:
    np.testing.assert_allclose(MagicSet.of(given).loads(*state), published(given, *state), rtol=1e-9, atol=1e-6)


def test_a_wheel_in_the_air_feels_nothing() -> None:
    assert np.abs(MagicSet.of(ALL).loads(0.0, 0.1, 0.1, 0.05, 0.3, 20.0, 1.0)).max() == 0.0


def test_no_slip_at_all_is_nothing_special() -> None:
    """All numbers that roots are taken of are zero there."""
    plain = {name: ALL[name] for name in ("FNOMIN", "PDX1", "PKX1", "PDY1", "PKY1", "PKY2", "QBZ1", "QDZ1", "QBZ9")}
    assert np.abs(MagicSet.of(plain).loads(4000.0, 0.0, 0.0, 0.0, 0.3, 20.0, 1.0)).max() < 1e-6


def test_damaged_tyre_files(tmp_path: Path) -> None:
    file = tmp_path / "tyre.tir"
    for text in ("1..6", ".", "1.2.3E+4"):
        file.write_text(f"[MODEL]\nFNOMIN = 4000\nPCX1 = {text}\n")
        with pytest.raises(bc.FileError, match=rf"tyre\.tir:3: PCX1 = {re.escape(text)} is not a number"):
            MagicSet.from_file(file)
    with pytest.raises(bc.FileError, match="cannot be read"):
        MagicSet.from_file(tmp_path / "none.tir")
    with pytest.raises(bc.FileError, match="is not a regular file"):
        MagicSet.from_file(tmp_path)
