"""Parameters: numbers of the description that stay inputs of the compiled machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc
from bellcrank import math as bm

Floats = npt.NDArray[np.float64]
#: a number by its name: a float in one mechanism, a parameter in the other
Number = Callable[[str], Any]

DEFAULTS = {"mass": 1.3, "com": 0.2, "inertia": 0.08, "outer": 0.4, "inner": -0.15, "pitch": 0.05, "gravity": 9.81,
            "force": 2.0, "at": 0.3, "tool": 0.25}
OTHERS = {"mass": 2.1, "com": -0.1, "inertia": 0.19, "outer": 0.7, "inner": 0.35, "pitch": -0.12, "gravity": 1.6,
          "force": -5.0, "at": -0.2, "tool": 0.6}
SYSTEMS = [("numpy", "auto", True), ("numpy", "auto", False), ("llvm", "unrolled", True), ("llvm", "rolled", True),
           ("llvm", "rolled", False)]


def machine(number: Number, gravity: Number | None = None) -> bc.Mechanism:
    """A branched machine in which every place that may hold a parameter holds one."""
    m = bc.Mechanism("machine")
    if gravity is not None:
        m.gravity = (0.0, 1.0, -gravity("gravity"))
    base = m.add_body("base", bc.Inertia(number("mass"), (number("com"), 0.1, 0.0),
                                         [[number("inertia"), 0.01, 0.0], [0.01, 0.1, 0.0], [0.0, 0.0, 0.12]]))
    slide = m.add_body("slide", bc.Inertia.box(1.0, (0.3, 0.2, 0.4), (0.1, 0.0, 0.1)))
    nut = m.add_body("nut", bc.Inertia.rod(2.0 * number("mass"), (0, 0, 0), (0, number("com"), 0.5)))
    tip = m.add_body("tip", bc.Inertia.sphere(0.7, 0.3, (0.0, 0.1, 0.2)))
    welded = m.add_body("welded", bc.Inertia(number("mass"), (0.0, number("com"), 0.0), 0.05))
    ball = m.add_body("ball", bc.Inertia.box(0.9, (0.2, 0.5, 0.3)))
    turned = (np.sqrt(0.5), 0.5, 0.0, 0.5)
    m.add_joint("hinge", bc.Revolute((0.2, 1.0, 0.3)), m.ground, base, bc.Pose((0.1, number("outer"), 0.0), turned))
    m.add_joint("slider", bc.Prismatic("x"), base, slide, bc.Pose((number("outer"), 0.0, 0.2)),
                bc.Pose((0.0, number("inner"), 0.1), turned))
    m.add_joint("screw", bc.Screw((0.0, 0.6, 0.8), number("pitch")), nut, slide, bc.Pose((0.0, 0.2, number("inner"))),
                bc.Pose((0.3, 0.0, 0.0)))  # backwards: the nut is outboard
    m.add_joint("elbow", bc.Revolute("z"), welded, tip, bc.Pose((number("outer") * 2.0, 0.1, 0.0), turned))
    m.add_joint("weld", bc.Weld(), nut, welded, bc.Pose((0.1, number("outer"), 0.2), turned),
                bc.Pose((number("inner"), 0.0, 0.0)))
    m.add_joint("ball", bc.Spherical(), base, ball, bc.Pose((0.0, number("outer"), 0.3)),
                bc.Pose((0.0, 0.0, number("inner"))))
    m.add_wrench("push", welded, force=(number("force"), 1.0, lambda t: bm.sin(t)), moment=(0.0, number("force"), 0.0),
                 at=(0.0, number("at"), 0.1))
    m.add_wrench("pull", ball, force=(0.0, number("force"), 0.0), at=(number("at"), 0.0, 0.0), axes="body")
    m.add_frame("tool", tip, bc.Pose((number("tool"), 0.0, 0.1), turned))
    return m


def fixed(values: dict[str, float]) -> bc.Mechanism:
    """The machine built with these numbers."""
    return machine(lambda name: values[name], lambda name: values[name])


def parametric(defaults: dict[str, float] = DEFAULTS) -> bc.Mechanism:
    """The machine with parameters."""
    late: dict[str, Any] = {}
    m = bc.Mechanism("parameters first")

    def number(name: str) -> Any:
        if name not in late:
            late[name] = current[0].parameter(name, defaults[name])
        return late[name]

    current = [m]
    original = bc.Mechanism.__init__

    def remember(self: bc.Mechanism, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        current[0] = self

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bc.Mechanism, "__init__", remember)
        return machine(number, number)
