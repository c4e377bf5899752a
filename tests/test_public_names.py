"""The public names of `System`, on purpose: what everybody computes at a state; the rest is in `bellcrank.analyze`."""

from __future__ import annotations

import inspect

import pytest

import bellcrank as bc

PARTS = ("model", "kernels", "plans")
NAMES = ("nq", "nu", "dof", "joint_names", "body_names", "coordinate_names", "speed_names", "independent_speeds",
         "loops", "parameters")
CONFIGURATIONS = ("neutral", "state", "random_state", "integrate", "difference", "normalize")
DYNAMICS = ("forward_dynamics", "inverse_dynamics", "drive_forces", "mass_matrix", "bias", "momenta", "hamilton",
            "reactions", "reduced", "derivatives", "regressor", "element_forces")
KINEMATICS = ("pose", "velocity", "acceleration", "jacobian", "jacobian_rate", "center_of_mass", "momentum")
ENERGIES = ("kinetic_energy", "potential_energy", "energy")
LOOPS = ("loop_error", "loop_rate_error", "assemble", "project", "inverse_kinematics", "consistent_acceleration")
REST = ("simulate", "bind", "operation_count", "with_parameters", "release", "attach", "lock")

ALL = (*PARTS, *NAMES, *CONFIGURATIONS, *DYNAMICS, *KINEMATICS, *ENERGIES, *LOOPS, *REST)

#: a new name needs a reason; most questions are functions of `bellcrank.analyze`
MOST = 54
#: analyses that do not take a system first
FIRST = {"check_joint": "joint", "compare": "mechanism", "gradient": "objective"}


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def test_the_names_of_a_system() -> None:
    assert public(bc.compile(bc.load("four_bar"))) == set(ALL)
    assert len(ALL) == len(set(ALL)) == MOST


def test_every_name_is_described() -> None:
    """What has no docstring of its own is a plain attribute with a comment in the class."""
    attributes = {*PARTS, "nq", "nu"}
    for name in set(ALL) - attributes:
        assert inspect.getdoc(getattr(bc.System, name)), name
    assert attributes <= {name for kind in bc.System.__mro__ for name in vars(kind).get("__annotations__", ())}


def test_analyses_take_a_system_first() -> None:
    for name in bc.analyze.__all__:
        first = next(iter(inspect.signature(getattr(bc.analyze, name)).parameters))
        assert first == FIRST.get(name, "system"), name
    assert not set(bc.analyze.__all__) & set(ALL), "two ways to ask one thing"


def test_names_that_are_functions_elsewhere_are_told() -> None:
    """Of a system as of the package; other names are missed as usual."""
    system = bc.compile(bc.load("pendulum"), backend="numpy")
    with pytest.raises(AttributeError, match=r"it is a function: bc\.analyze\.linearize\(system, "):
        system.linearize  # noqa: B018
    with pytest.raises(AttributeError, match=r"it is a function: bc\.rollout\(system, "):
        system.rollout  # noqa: B018
    with pytest.raises(AttributeError, match=r"it is a function: bc\.analyze\.modes\(system, "):
        bc.modes  # noqa: B018
    for thing in (system, bc):
        with pytest.raises(AttributeError, match="no attribute 'nothing'$"):
            thing.nothing  # noqa: B018
    with pytest.raises(bc.StateError, match=r"unpack the pair: reactions\(\*pair\)"):
        system.reactions(([0.0], [0.0]))  # type: ignore[call-overload]
    with pytest.raises(bc.StateError, match="the first argument is the name of a method"):
        system.derivatives([0.0], [0.0])  # type: ignore[arg-type]
