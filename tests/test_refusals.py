"""What cannot be meant is refused when it is said, by an error that names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.io.native import same_mechanism


# -- bodies ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(("make", "said"), [
    (lambda: bc.Inertia.box(1.0, (0.1, -0.2, 0.3)), "Inertia.box: size must be at least 0, got -0.2"),
    (lambda: bc.Inertia.box(1.0, (0.1, np.nan, 0.3)), "finite"),
    (lambda: bc.Inertia.cylinder(1.0, -0.1, 0.3), "Inertia.cylinder: radius must be at least 0"),
    (lambda: bc.Inertia.cylinder(1.0, 0.1, -0.3), "Inertia.cylinder: length must be at least 0"),
    (lambda: bc.Inertia.cylinder(1.0, "thick", 0.3), "Inertia.cylinder: radius 'thick' is not a number"),
    (lambda: bc.Inertia.sphere(1.0, -0.1), "Inertia.sphere: radius must be at least 0"),
    (lambda: bc.Inertia.sphere(-1.0, 0.1), "negative"),
])
def test_shapes_that_no_body_has(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(bc.ModelError, match=said):
        make()


def test_shapes_of_parameters_and_flat_ones_are_fine() -> None:
    m = bc.Mechanism("m")
    edge = m.parameter("edge", 0.1)
    m.add_body("box", bc.Inertia.box(1.0, (edge, 0.2, 0.0)))
    m.add_body("disc", bc.Inertia.cylinder(1.0, edge, 0.0))
    m.add_body("ball", bc.Inertia.sphere(1.0, edge))
    assert bc.Inertia.box(1.0, (0.3, 0.0, 0.0)) == bc.Inertia.rod(1.0, (-0.15, 0, 0), (0.15, 0, 0))


# -- springs --------------------------------------------------------------------------------------
def test_springs_that_do_nothing(tmp_path: Path) -> None:
    m = bc.load("four_bar")
    ends = ("ground", "rocker", (0.3, 0.9, 0), (0.2, 0, 0))
    with pytest.raises(bc.ModelError, match="spring 'idle': give stiffness, damping, a law or a potential"):
        m.add_spring("idle", *ends, length=0.3)
    with pytest.raises(bc.ModelError, match="joint spring 'idle': give stiffness, damping or a potential"):
        m.add_joint_spring("idle", "A", rest=0.1)
    k = m.parameter("k", 0.0)
    m.add_spring("some", *ends, stiffness=k)
    m.add_spring("none", *ends, stiffness=0.0)  # as in a table of values, and so in files
    m.add_joint_spring("nothing", "A", damping=0.0)
    m.add_joint_spring("soft", "A", stiffness=-2.0)  # unstable, which may be wanted
    m.add_joint_spring("damper", "A", damping=1.0)
    bc.save(m, tmp_path / "m.yaml")
    assert same_mechanism(bc.load(tmp_path / "m.yaml"), m)


# -- files ----------------------------------------------------------------------------------------
def test_results_that_cannot_be_written(tmp_path: Path) -> None:
    system = bc.compile(bc.load("pendulum"))
    result = system.simulate(([1.0], [0.0]), 0.01)
    for place in (tmp_path / "missing" / "run.nc", tmp_path):
        with pytest.raises(bc.FileError, match="cannot be written") as caught:
            result.to_netcdf(place)
        assert str(place) in str(caught.value)
    result.to_netcdf(tmp_path / "run.nc")
    with bc.open_result(tmp_path / "run.nc") as again:
        assert np.array_equal(again.q, result.q)
