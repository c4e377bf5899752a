"""Machines with loops that the zoo does not have: couplers, drives within loops, all closures, a grasp."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

import bellcrank as bc
import looped
from bellcrank.mechanism.joints import Joint


def geared() -> bc.Mechanism:
    """A chain whose joints are coupled with their own ancestors, with a sibling, and within one joint."""
    m = bc.Mechanism("geared")
    trunk = m.add_body("trunk", bc.Inertia.box(3.0, (0.2, 0.3, 0.4), (0.1, 0.0, 0.2)))
    m.add_joint("trunk", bc.Universal("x", "y"), m.ground, trunk, at=(0.0, 0.0, 0.0))
    upper = m.add_body("upper", bc.Inertia.box(1.0, (0.1, 0.2, 0.5), (0.3, 0.1, 0.6)))
    m.add_joint("upper", bc.Revolute("y"), trunk, upper, at=(0.2, 0.1, 0.4))
    lower = m.add_body("lower", bc.Inertia.box(0.7, (0.1, 0.1, 0.4), (0.3, 0.1, 1.1)))
    m.add_joint("lower", bc.Revolute((0.3, 1.0, 0.2)), upper, lower, at=(0.3, 0.1, 0.9))
    other = m.add_body("other", bc.Inertia.box(1.5, (0.3, 0.1, 0.3), (-0.3, 0.0, 0.6)))
    m.add_joint("other", bc.Cylindrical("z"), trunk, other, at=(-0.2, 0.0, 0.4))
    m.add_coupler("trunk gear", {"trunk.angle1": 1.0, "trunk.angle2": -0.5})
    m.add_coupler("along", {"upper": 2.0, "lower": -3.0})
    m.add_coupler("across", {"lower": 1.0, "other.angle": 0.7, "trunk.angle1": 0.2})
    return m


def driven() -> bc.Mechanism:
    """A five-bar with one motor prescribed and a coupler to the prescribed joint."""
    m = bc.load("five_bar")
    m.prescribe("leg1.1", lambda t: 0.5 + 0.8 * t + 0.6 * t * t)
    wheel = m.add_body("wheel", bc.Inertia.box(0.4, (0.1, 0.2, 0.3)))
    m.add_joint("wheel", bc.Revolute("z"), m.ground, wheel)
    m.add_coupler("belt", {"leg1.1": 1.0, "wheel": -2.0})
    return m


def cams() -> bc.Mechanism:
    """The chain of `geared`, coupled by functions: with an ancestor, with a sibling, with a prescribed joint."""
    m = geared()
    m._couplers.clear()
    wheel = m.add_body("wheel", bc.Inertia.box(0.4, (0.1, 0.2, 0.3)))
    m.add_joint("wheel", bc.Revolute("x"), "other", wheel, at=(-0.3, 0.1, 0.5))
    m.prescribe("wheel", lambda t: 0.4 + 0.8 * t + 0.6 * t * t)
    m.add_coupler("along", {"upper": 1.0, "lower": lambda a: 0.5 * bc.math.sin(2.0 * a) + 0.3 * a})
    m.add_coupler("across", {"other.slide": lambda z: z + 0.2 * z**2, "trunk.angle1": lambda a: bc.math.cos(a) - 1.0,
                             "wheel": lambda a: -0.1 * a**3}, 0.05)
    return m


def ring(joint: Joint) -> Callable[[], bc.Mechanism]:
    """Two general chains of three bodies, closed between their tips by the joint."""
    def build() -> bc.Mechanism:
        m = bc.Mechanism(f"ring of {joint}")
        tips = []
        for k, x in enumerate((-0.5, 0.5)):
            last = m.ground
            for i in range(3):
                link = m.add_body(f"b{k}{i}", bc.Inertia.box(1.0 + i, (0.2, 0.3, 0.1), (x, 0.1 * i, 0.3 * i)))
                kind = bc.Universal("x", "y") if i < 2 else bc.Cylindrical((0.2 * k, 0.1, 1.0))
                m.add_joint(f"j{k}{i}", kind, last, link, at=(x, 0.05 * i, 0.3 * i))
                last = link
            tips.append(last)
        m.add_joint("close", joint, *tips, at=(0.0, 0.0, 1.0))
        return m

    return build


def grasp(grips: Sequence[str] = ("left", "right"), grip: Joint | None = None, arm: str = "zyyxyz") -> bc.Mechanism:
    """A crate on a free joint, held by arms of hinges."""
    m = bc.Mechanism("grasp")
    crate = m.add_body("crate", bc.Inertia.box(2.0, (0.4, 0.2, 0.2), (0.02, 0.0, 0.01)))
    m.add_joint("crate", bc.Free(), m.ground, crate, at=(0.0, 0.0, 0.0))
    for name, side in (("left", -1.0), ("right", 1.0)):
        last = m.ground
        for i, axis in enumerate(arm):
            at = (side * (1.0 - 0.1 * i), 0.07 * i * (-1.0) ** i, 0.2 * i - 0.5)
            link = m.add_body(f"{name}{i}", bc.Inertia.box(1.0 - 0.1 * i, (0.1, 0.12, 0.2), at))
            m.add_joint(f"{name}{i}", bc.Revolute(axis), last, link, at=at)
            last = link
        if name in grips:
            m.add_joint(f"{name} grip", bc.Weld() if grip is None else grip, last, crate, at=(0.2 * side, 0.0, 0.0))
    return m


JOINTS = (bc.Revolute("z"), bc.Prismatic((1.0, 0.2, 0.0)), bc.Cylindrical("x"), bc.Universal("x", "y"), bc.Spherical(),
          bc.Planar("y"))
EXTRA: dict[str, Callable[[], bc.Mechanism]] = {
    "geared": geared, "driven": driven, "cams": cams, **{type(j).__name__: ring(j) for j in JOINTS},
    "Screw": ring(bc.Screw("z", 0.1)), "Weld": ring(bc.Weld())}


def compiled(name: str, method: str, backend: str = "numpy") -> bc.System:
    """A machine of this list or of the zoo; rings are cut at the joint that they are named after."""
    machine = EXTRA[name]() if name in EXTRA else bc.load(name)
    cut = [j.name for j in machine.joints if j.name == "close"]
    system = bc.compile(machine, method, backend, cut=cut)
    assert not cut or system.model.tree.cut_names == ("close",)
    return system


@functools.cache
def _answers(name: str, seed: int) -> tuple[np.ndarray, ...]:
    """States, forces, and the oracle's accelerations."""
    oracle = compiled(name, "dense")
    given = looped.states(oracle, seed)
    return (*given, oracle.forward_dynamics(*given))


def disagreement(name: str, method: str, seed: int = 0) -> float:
    """As `looped.disagreement`, for this list."""
    q, u, tau, expected = _answers(name, seed)
    return float(np.abs(compiled(name, method).forward_dynamics(q, u, tau) - expected).max() / np.abs(expected).max())
