"""Machines and studies that tests of sweeps share, also with the processes that they start."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import xarray

import bellcrank as bc

#: short runs of the pendulum
RUN = {"duration": 0.5, "step": 0.01, "output": 0.1}


@cache
def pendulum() -> bc.System:
    """A pendulum whose damper is a parameter."""
    m = bc.load("pendulum")
    m.add_joint_spring("damper", "hinge", damping=m.parameter("damping", 0.1))
    return bc.compile(m)


@cache
def four_bar() -> bc.System:
    """A four-bar whose coupler's length and mass are parameters: other lengths close elsewhere, or not at all."""
    m = bc.Mechanism("four-bar", gravity=(0.0, -9.81, 0.0))
    length, mass = m.parameter("length", 1.0), m.parameter("mass", 5.0)
    crank = m.add_body("crank", bc.Inertia.rod(1.5, (0, 0, 0), (0.3, 0, 0)))
    coupler = m.add_body("coupler", bc.Inertia.rod(mass, (0, 0, 0), (length, 0, 0)))
    rocker = m.add_body("rocker", bc.Inertia.rod(3.0, (0, 0, 0), (0.6, 0, 0)))
    m.add_joint("A", bc.Revolute("z"), m.ground, crank)
    m.add_joint("B", bc.Revolute("z"), crank, coupler, bc.Pose((0.3, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), coupler, rocker, bc.Pose((length, 0, 0)))
    m.add_joint("D", bc.Revolute("z"), rocker, m.ground, bc.Pose((0.6, 0, 0)), bc.Pose((1.0, 0, 0)))
    return bc.compile(m)


def same(one: xarray.Dataset, other: xarray.Dataset) -> None:
    """Two sweeps are equal to the last bit."""
    assert set(one.variables) == set(other.variables)
    assert set(one.coords) == set(other.coords)
    for name, variable in one.variables.items():
        assert variable.dims == other[name].dims
        a, b = variable.values, other[name].values
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(a, b, err_msg=str(name))
        else:
            assert a.tolist() == b.tolist(), name


#: damped pendulums from different beginnings
SAMPLES = {"damping": np.linspace(0.0, 1.0, 160), "q.hinge": np.linspace(0.1, 1.5, 160)}


def study(**options: Any) -> xarray.Dataset:
    """A sweep that takes a while."""
    return bc.sweep(pendulum(), samples=SAMPLES, run=RUN, reduce=slow_reduce, **options)


def slow_reduce(result: Any) -> dict[str, Any]:
    """The last angle, after a while: there is time to be killed."""
    import time

    time.sleep(0.03)
    return {"last": result.q.isel(time=-1, coordinate=0)}
