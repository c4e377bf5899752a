"""Independent solutions of the papers' loop examples."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import looped
from whole_states import carrying, of_tree, whole_q, whole_state

DATA = Path(__file__).parent / "data" / "loops"
METHODS = ("elimination", "dense", "kane", "recursive", "operator", "momenta", "complement", "reduction", "divide")


@cache
def reference(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text())


@pytest.mark.parametrize("branch", ("open_elbow_up", "crossed_elbow_down"))
def test_four_bar_torques_and_accelerations(branch: str) -> None:
    data = reference("four_bar")["branches"][branch]
    system = bc.compile(bc.load("four_bar"), actuated=["A"])
    for row in data["driven"]:
        tau = system.inverse_dynamics(*whole_state(system, row["theta"], row["thetadot"]), [*row["thetaddot"], 0.0])
        assert abs(tau[0] - row["tau1"]) < 1e-10
        assert tau[1] == tau[2] == tau[3] == 0.0
    for row in data["free"]:
        q, u = whole_state(system, [row[f"theta{i}"] for i in (1, 2, 3)], [row[f"theta{i}dot"] for i in (1, 2, 3)])
        assert np.abs(system.loop_error(q)).max() < 1e-10
        assert abs(system.forward_dynamics(q, u)[0] - row["theta1ddot"]) < 1e-8 * (1.0 + abs(row["theta1ddot"]))


def five_bar_arrays(system: bc.System, row: dict[str, Any], key: str) -> np.ndarray:
    values = {"leg1.1": row[f"{key}_leg1"][0], "leg1.2": row[f"{key}_leg1"][1],
              "leg2.1": row[f"{key}_leg2"][0], "leg2.2": row[f"{key}_leg2"][1]}
    return np.array([values[n] for n in system.joint_names if n != "tip"])


@pytest.mark.parametrize("branch", ("elbow_up", "elbow_down"))
def test_five_bar_torques(branch: str) -> None:
    system = bc.compile(bc.load("five_bar"), actuated=["leg1.1", "leg2.1"])
    where = [system.joint_names.index(n) for n in ("leg1.1", "leg2.1")]
    for row in reference("five_bar")["branches"][branch]["driven"]:
        q, u, udot = (five_bar_arrays(system, row, k) for k in ("theta", "thetadot", "thetaddot"))
        tau = system.inverse_dynamics(*whole_state(system, q, u), [*udot, 0.0])
        assert np.abs(tau[where] - row["tau"]).max() < 1e-10


@pytest.mark.parametrize("branch", ("elbow_up", "elbow_down"))
def test_five_bar_passes_its_coordinate_singularity(branch: str) -> None:
    """Free fall with the base angles asked for as independent: they stop being so in the singular position."""
    data = reference("five_bar")["branches"][branch]
    system = bc.compile(bc.load("five_bar"), independent=["leg1.1", "leg2.1"])
    row, end = data["free"][0], data["singularity"]
    assert system.joint_names == ("leg1.1", "leg1.2", "leg2.1", "leg2.2", "tip")
    q = whole_q(system, [row["theta11"], row["theta21"], row["theta12"], row["theta22"]])
    u, plans = np.zeros(5), set()
    start = float(system.potential_energy(q))

    def slope(q: np.ndarray, u: np.ndarray) -> np.ndarray:
        out = system.forward_dynamics(q, u)
        plans.add(looped.plan_used(system, q, u).key)
        return out

    steps = 1500
    h = end["t_sing"] / steps
    for i in range(steps + 150):  # through the singular position and beyond
        if i == steps:
            assert abs(q[0] - end["theta11"]) < 1e-7
            assert abs(q[2] - end["theta12"]) < 1e-7
            assert abs(u[0] - end["rates(phi11,phi21,phi12,phi22)"][0]) < 1e-6
        k1 = slope(q, u)
        k2 = slope(q + h / 2 * u, u + h / 2 * k1)
        k3 = slope(q + h / 2 * u + h * h / 4 * k1, u + h / 2 * k2)
        k4 = slope(q + h * u + h * h / 2 * k2, u + h * k3)
        q, u = q + h * u + h * h / 6 * (k1 + k2 + k3), u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        if i % 50 == 0:
            q, u = system.project(q, u)
    energy = float(system.kinetic_energy(q, u) + system.potential_energy(q))
    assert abs(energy - start) < 1e-8 * abs(start)
    assert len(plans) > 1  # other speeds took over


@pytest.mark.parametrize("method", METHODS)
def test_redundant_five_bar(method: str) -> None:
    row = reference("redundant_five_bar")["trajectory"][0]
    system = bc.compile(bc.load("redundant_five_bar"), method)
    assert system.joint_names == ("leg1.1", "leg1.2", "leg2.1", "leg2.2", "leg3.1", "leg3.2", "tip2", "tip3")
    udot = system.forward_dynamics(*whole_state(system, row["theta_all"], row["thetadot_all"]))
    assert np.abs(udot[:2] - [row["u1dot"], row["u2dot"]]).max() < 1e-10


def quarter_car_array(system: bc.System, values: dict[str, Any], knuckle: str) -> np.ndarray:
    """Entries of the joints that carry links."""
    return np.concatenate([np.atleast_1d(values[knuckle if n == "knuckle" else n]) for n in system.joint_names
                           if n not in system.loops])


@pytest.mark.parametrize("method", METHODS)
def test_quarter_car(method: str) -> None:
    system = bc.compile(bc.load("quarter_car"), method)
    assert system.dof == 1
    assert sorted(system.loops) == ["tie_rod_ball", "upper_link_front_ball", "upper_link_rear_ball"]
    for row in reference("quarter_car")["response"]:
        q = quarter_car_array(system, row["q"], "knuckle_quat_wxyz")
        u = quarter_car_array(system, row["u"], "knuckle_omega_child")
        udot = quarter_car_array(system, row["udot"], "knuckle_omega_child")
        q, u = whole_state(system, q, u)
        assert np.abs(system.loop_error(q)).max() < 1e-12
        assert np.abs(of_tree(system, system.forward_dynamics(q, u)) - udot).max() < 1e-10 * (1.0 + np.abs(udot).max())


def test_quarter_car_equilibrium_and_bump() -> None:
    data = reference("quarter_car")
    system = bc.compile(bc.load("quarter_car"))
    q = whole_q(system, quarter_car_array(system, data["equilibrium"]["q"], "knuckle_quat_wxyz"))
    assert np.abs(system.forward_dynamics(q, np.zeros(system.nu))).max() < 1e-8
    bump = whole_q(system, quarter_car_array(system, data["bump"]["q"], "knuckle_quat_wxyz"))
    found = system.assemble(q={"arm": data["bump"]["q"]["arm"]}).q
    assert np.abs(found - bump).max() < 1e-10


def ladder_state(system: bc.System, q: tuple[float, float]) -> np.ndarray:
    """Coordinates (or speeds, or accelerations) of all joints from those of one arm, the joints that close loops too:
    the linkage is a parallelogram."""
    parts = []
    for name in system.joint_names:
        parts += list(q) if name.startswith("arm") else [-q[1] if name.startswith("inner") else q[1]]
    return np.array(parts)


@pytest.mark.everyday(4)
@pytest.mark.parametrize("method", ("elimination", "reduction"))
@pytest.mark.parametrize(("cells", "allowed"), [(1, 1e-12), (16, 1e-12), (256, 1e-10), (10_000, 1e-8)])
def test_ladder(cells: int, allowed: float, method: str) -> None:
    path = reference("ladder")["trajectory"]
    system = bc.compile(bc.load("ladder", cells=cells), method)
    for k in range(len(path["t"])):
        q, u, udot = (ladder_state(system, (path[f"{x}1{d}"][k], path[f"{x}2{d}"][k]))
                      for x, d in (("q", ""), ("u", ""), ("u", "dot")))
        found = system.forward_dynamics(q, u)
        assert np.abs(found - udot).max() < allowed * np.abs(udot).max()


def test_ladder_mobility_and_redundancy() -> None:
    system = bc.compile(bc.load("ladder", cells=8))
    report = bc.analyze.explain(system)
    assert report.mobility == 2
    assert len(report.redundant) == sum(c.rows for c in system.model.tree.closures) - (len(carrying(system, True)) - 2)
