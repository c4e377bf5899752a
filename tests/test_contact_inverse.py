"""Inverse dynamics of floating machines: with an unknown wrench at the base, and with unknown forces at contacts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import math as bm
from bellcrank.analyze import inverse_dynamics_with_contacts as solved

LEGS = ("FL", "FR", "HL", "HR")
FEET = [f"{leg}_foot" for leg in LEGS]
MOTORS = [f"{leg}_{motor}" for leg in LEGS for motor in ("abduction", "hip", "crank")]


@pytest.fixture(scope="module")
def quadruped() -> bc.System:
    """Floating, with four closed legs."""
    return bc.compile(bc.load("linkage_quadruped"), actuated=MOTORS, backend="numpy")


def motions(system: bc.System, size: tuple[int, ...] = (), seed: int = 0) -> tuple[bc.State, np.ndarray]:
    """Closed states, and accelerations that the loops allow."""
    rng = np.random.default_rng(seed)
    state = system.random_state(rng, size=size)
    wrenches = rng.normal(size=(*size, len(system.body_names), 6))
    return state, system.forward_dynamics(state, rng.normal(size=(*size, system.nu)), wrenches=wrenches)


def near(found: Any, wanted: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=tolerance * (1.0 + float(np.abs(wanted).max(initial=0.0))))


def gives_back(system: bc.System, state: bc.State, udot: np.ndarray, found: Any) -> None:
    near(system.forward_dynamics(state, found.tau, wrenches=found.wrenches), udot)


def test_an_unknown_wrench_at_the_base(quadruped: bc.System) -> None:
    """The joint of the base is among the actuated ones: its entries of tau are the wrench in axes of the base."""
    state, udot = motions(quadruped, (3,))
    tau = quadruped.inverse_dynamics(state, udot, actuated=[*MOTORS, "floating"])
    near(quadruped.forward_dynamics(state, tau), udot)
    rest = quadruped.assemble()
    tau = quadruped.inverse_dynamics(rest, np.zeros(quadruped.nu), actuated=[*MOTORS, "floating"])
    assert tau[5] == pytest.approx(9.81 * quadruped.model.mass)


def test_contacts_and_motors_make_the_motion_by_the_smallest_forces(quadruped: bc.System) -> None:
    """The oracle: accelerations by unit forces, one after another, and least squares."""
    state, udot = motions(quadruped, (3,))
    found = solved(quadruped, state, udot, contacts=FEET)
    gives_back(quadruped, state, udot, found)
    assert list(found.contacts) == FEET and found.contacts["FL_foot"].shape == (3, 3)
    drives = [i for i, name in enumerate(quadruped.speed_names) if name.partition(".")[0] in MOTORS]
    assert not np.delete(found.tau, drives, axis=-1).any()
    k, length = 1, quadruped.model.tree.length
    own, free, forces = state.q[k], quadruped.forward_dynamics(state.q[k], state.u[k]), []
    columns = [quadruped.forward_dynamics(own, state.u[k], np.eye(quadruped.nu)[i]) - free for i in drives]
    for leg in LEGS:
        foot, shank = (quadruped.pose(own, f"{leg}_{x}").position for x in ("foot", "shank"))
        for direction in np.eye(3):
            wrench = {f"{leg}_shank": [*np.cross(foot - shank, direction), *direction]}
            columns.append((quadruped.forward_dynamics(own, state.u[k], wrenches=wrench) - free) / length)
        forces.append(found.contacts[f"{leg}_foot"][k] * length)
    least = np.linalg.lstsq(np.array(columns).T, udot[k] - free, rcond=1e-10)[0]
    near(np.concatenate([found.tau[k][drives], *forces]), least, 1e-7)


def test_points_normals_weights_and_wrenches(quadruped: bc.System) -> None:
    state, udot = motions(quadruped, (2,))
    given = np.random.default_rng(5).normal(size=(len(quadruped.body_names), 6))
    toe, normal = np.array([[0.1, 0.0, 0.05], [0.1, 0.02, 0.0]]), np.array([0.0, 0.6, 1.6])
    contacts = {"toe": ("FL_shank", toe), "slope": ("FR_foot", (0, 0, 0), normal), "belly": "trunk",
                "tail": ("trunk", (-0.2, 0.0, 0.0)), "nose": ("trunk", (0.2, 0.1, 0.0))}
    found = solved(quadruped, state, udot, contacts=contacts, wrenches=given)
    gives_back(quadruped, state, udot, found)
    assert np.abs(np.cross(found.contacts["slope"], normal)).max() < 1e-12 * np.abs(found.contacts["slope"]).max()
    heavy = solved(quadruped, state, udot, contacts=contacts, wrenches=given, weights={"toe": 1e6, "FL_hip": 1e-4})
    gives_back(quadruped, state, udot, heavy)
    assert np.linalg.norm(heavy.contacts["toe"]) < 0.01 * np.linalg.norm(found.contacts["toe"])


def test_trees_prescribed_joints_and_parameters() -> None:
    m = bc.load("quadruped")
    m.prescribe("FL_hip", lambda t: 0.2 * bm.sin(3.0 * t))
    m.add_body("load", bc.Inertia.point(m.parameter("mass", 2.0), (0.1, 0.0, 0.1)))
    m.add_joint("strap", bc.Weld(), "trunk", "load")
    robot = bc.compile(m).with_parameters(mass=np.array([1.0, 3.0]))
    state = bc.compile(m).random_state(np.random.default_rng(0))
    udot = robot.forward_dynamics(state, wrenches={"trunk": [1.0, 2.0, 3.0, 4.0, 5.0, 60.0]})
    found = solved(robot, state, udot, contacts=[f"{leg}_shank" for leg in LEGS],
                   actuated=[j.name for j in m.joints[1:] if j.name != "strap"])
    gives_back(robot, state, udot, found)
    driven = robot.model.configuration.speed_entries("FL_hip")
    near(found.tau[:, driven], robot.inverse_dynamics(state, udot, wrenches=found.wrenches)[:, driven])
    assert np.abs(found.tau[:, driven]).min() > 1e-3


def test_few_forces_serve_the_motions_that_they_make(quadruped: bc.System) -> None:
    """One foot and one motor a leg determine no motion, but those of such forces are theirs."""
    rng = np.random.default_rng(3)
    state = quadruped.random_state(rng, size=(2,))
    hips, foot = [f"{leg}_hip" for leg in LEGS], rng.normal(size=(2, 3))
    arm = quadruped.pose(state, "HL_foot").position - quadruped.pose(state, "HL_shank").position
    tau = {hip: rng.normal(size=2) for hip in hips}
    wrench = np.concatenate([np.cross(arm, foot), foot], axis=-1)
    udot = quadruped.forward_dynamics(state, tau, wrenches={"HL_shank": wrench})
    found = solved(quadruped, state, udot, contacts=["HL_foot"], actuated=hips)
    near(found.contacts["HL_foot"], foot)
    near(found.tau, quadruped.model.configuration.forces({hip: x[:, None] for hip, x in tau.items()}))
    with pytest.raises(bc.ModelError, match=r"at batch index \(\d,\): the machine has 18 degrees of freedom, of which "
                                            r"FL_hip.*HL_foot control 7, and the motion needs .* more at"):
        solved(quadruped, *motions(quadruped, (2,)), contacts=["HL_foot"], actuated=hips)


def test_inverse_dynamics_serves_motions_of_few_drives() -> None:
    five = bc.compile(bc.load("five_bar"))
    state = five.random_state(np.random.default_rng(0), size=(4,))
    joint = five.independent_speeds[0].rpartition(".")[0]
    tau = five.model.configuration.forces({joint: np.array([[1.0], [2.0], [-3.0], [0.5]])})
    near(five.inverse_dynamics(state, five.forward_dynamics(state, tau), actuated=[joint]), tau)
    with pytest.raises(bc.ModelError, match=r"2 degrees of freedom.*control only 1, and the motion needs other forces"):
        five.inverse_dynamics(state, five.forward_dynamics(state, np.eye(5)[1]), actuated=[joint])


def test_refusals(quadruped: bc.System) -> None:
    state, udot = motions(quadruped)
    for contacts, said in ((["FL_fot"], "no body called 'FL_fot'.*FL_foot"), (["ground"], "contact 'ground' is a body"),
                           ({"a": ("trunk", (0, 0, 0), (0, 0, 0))}, "the normal of contact 'a' has no direction"),
                           ({"a": ("trunk", (0, 0))}, "the point of contact 'a'")):
        with pytest.raises(bc.BellcrankError, match=said):
            solved(quadruped, state, udot, contacts=contacts)
    with pytest.raises(bc.ModelError, match="weights: 'FL_foot' needs a positive number"):
        solved(quadruped, state, udot, contacts=FEET, weights={"FL_foot": 0.0})
    with pytest.raises(bc.StateError, match="these accelerations open the loop"):
        solved(quadruped, state, udot + 1.0, contacts=FEET)
