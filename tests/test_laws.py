"""Laws that cannot be compiled, or that use parameters: the error names the element and says what to do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc


def machine() -> bc.Mechanism:
    m = bc.Mechanism("arm")
    rod = m.add_body("rod", bc.Inertia.rod(1.0, (0, 0, 0), (0, 0, -1.0)))
    tip = m.add_body("tip", bc.Inertia.sphere(0.5, 0.1))
    m.add_joint("hinge", bc.Revolute("y"), "ground", rod)
    m.add_joint("elbow", bc.Revolute("y"), rod, tip, bc.Pose((0, 0, -1.0)))
    return m


BAD: dict[str, Callable[[Any], Any]] = {
    "if": lambda x: 1.0 if x > 0 else -1.0,
    "standard library": lambda x: math.sin(x),
    "numpy": lambda x: np.sin(x),
    "interp": lambda x: np.interp(x, [0.0, 1.0], [0.0, 2.0]),
}
PLACES: dict[str, Callable[[bc.Mechanism, Any], Any]] = {
    "joint force 'it'": lambda m, f: m.add_joint_force("it", "hinge", lambda q, u: f(q)),
    "spring 'it'": lambda m, f: m.add_spring("it", "ground", "tip", (1, 0, 0), (0, 0, 0), law=lambda x, v: f(x)),
    "joint spring 'it'": lambda m, f: m.add_joint_spring("it", "hinge", potential=f),
    "coupler 'it'": lambda m, f: m.add_coupler("it", {"hinge": f, "elbow": 1.0}),
    "wrench 'it'": lambda m, f: m.add_wrench("it", "tip", force=(f, 0.0, 0.0)),
    "servo 'it'": lambda m, f: m.add_servo("it", "hinge", target=f, stiffness=1.0),
    "joint 'hinge'": lambda m, f: m.prescribe("hinge", f),
}


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("law", BAD)
def test_laws_that_cannot_be_compiled(where: str, law: str) -> None:
    with pytest.raises(bc.ModelError) as caught:
        PLACES[where](machine(), BAD[law])
    said = str(caught.value)
    assert said.startswith(where) and "bellcrank.math" in said and "parameter" not in said.partition("(")[0], said


@pytest.mark.parametrize("where", PLACES)
def test_laws_that_use_parameters(where: str) -> None:
    """They may, with functions that can be traced; parameters of another mechanism are refused."""
    m = machine()
    k = m.parameter("k", 2.0)
    for f in (lambda x: math.sin(k) * x, lambda x: k * math.sin(x)):
        with pytest.raises(bc.ModelError) as caught:
            PLACES[where](m, f)
        assert str(caught.value).startswith(where) and "functions of bellcrank.math" in str(caught.value)
    with pytest.raises(bc.ModelError, match="'(it|hinge)'.* another mechanism"):
        PLACES[where](machine(), lambda x: k * x)
    PLACES[where](m, lambda x: k * x)


@pytest.mark.parametrize("where", PLACES)
def test_good_laws_pass(where: str) -> None:
    m = machine()
    PLACES[where](m, lambda x: abs(x) + bc.math.minimum(x, 0.2) ** 2)
    bc.compile(m)
