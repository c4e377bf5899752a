"""Rigid contacts of states side by side: each is computed as if it were alone, whatever its neighbours do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.simulate import rigid_run

STATES = 24  #: some blocks of lanes


def thrown_on(planes: tuple[float, ...], *shapes: Any, shaken: float = 0.0) -> bc.Mechanism:
    """A body with others behind it that weigh a hundredth, over planes that are inclined and may be shaken; friction
    and restitution are parameters."""
    m, last, below = bc.Mechanism("thrown"), "ground", "ground"
    friction, kept = m.parameter("mu", 0.5), m.parameter("e", 0.5)
    if shaken:
        below = m.add_body("table", bc.Inertia.sphere(1.0, 0.1)).name
        m.add_joint("shaker", bc.Prismatic("z"), m.ground, below)
        m.prescribe("shaker", lambda t: shaken * bc.math.sin(30.0 * t))
    for i, slope in enumerate(planes):
        m.add_shape(below, bc.Plane(), bc.Pose.rpy((0, 0, 0), slope, 0.1, 0), role="collision", name=f"plane {i}")
    for k, shape in enumerate(shapes):
        m.add_body(f"body {k}", bc.Inertia.box(0.01**k, (0.2, 0.15, 0.1)))
        m.add_joint(f"joint {k}", bc.Universal() if k else bc.Free(), last, f"body {k}",
                    bc.Pose((0.2 if k else 0.0, 0, 0)), bc.Pose())
        m.add_shape(f"body {k}", shape, role="collision", name=f"shape {k}")
        last = f"body {k}"
        for i in range(len(planes)):
            m.add_contact(f"touch {i} {k}", f"plane {i}", f"shape {k}", friction=friction, restitution=kept)
    return m


CASES: dict[str, Callable[[], bc.Mechanism]] = {
    "wedged in": lambda: thrown_on((1.2, -1.2), bc.Capsule(0.05, 0.15)),
    "corners": lambda: thrown_on((0.3,), bc.Box((0.2, 0.15, 0.1))),
    "chain": lambda: thrown_on((0.3,), bc.Sphere(0.08), bc.Sphere(0.08)),
    "shaken": lambda: thrown_on((0.1,), bc.Sphere(0.08), shaken=0.03)}


@pytest.mark.filterwarnings("ignore::bellcrank.SimulationWarning")
@pytest.mark.parametrize("case", CASES)
def test_neighbours_and_memory_change_nothing(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last digit, forces and energy as well: where some bounce, stick, slide, are wedged in or turn fast, and
    others do not; and where there is room for one place at first, so that steps are taken again."""
    system, rng = bc.compile(CASES[case]()), np.random.default_rng(0)
    first, begin = (names.index(f"joint 0.{name}") for names, name in (
        (system.coordinate_names, "qw"), (system.speed_names, "wx")))
    q, turn = np.repeat(system.neutral()[None], STATES, axis=0), rng.standard_normal((STATES, 4))
    q[:, first:first + 4] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    q[:, first + 6] = np.resize([0.6, 0.4, 0.5, 0.9], STATES)
    u = np.zeros((STATES, system.nu))
    u[:, begin:begin + 6] = rng.standard_normal((STATES, 6)) * np.resize([1.0, 10.0, 3.0], STATES)[:, None]
    values = {"mu": np.resize([0.5, 2.0, 100.0, 0.0, 1.0], STATES), "e": np.resize([0.0, 0.6, 1.0, 0.0], STATES)}
    runs = []
    for order, slots in ((np.arange(STATES), 100), (rng.permutation(STATES), 1)):
        monkeypatch.setattr(rigid_run, "SLOTS", slots)
        some = system.with_parameters(**{name: x[order] for name, x in values.items()})
        result = some.simulate((q[order], u[order]), 0.5, stepper="moreau", step=2.5e-3, output=2.5e-3)
        assert result.attrs["status"] == "finished"
        runs.append([result.attrs["contact_residual"], *(result[name].values[:, np.argsort(order)] for name in (
            "q", "u", "contact_force", "energy"))])
    for one, other in zip(*runs, strict=True):
        assert np.array_equal(one, other, equal_nan=True)


@pytest.mark.filterwarnings("ignore:.*overlap by")
@pytest.mark.parametrize(("shape", "slope"), [(bc.Sphere(0.1), 1.5), (bc.Capsule(0.05, 0.15), 1.3)],
                         ids=["ball", "capsule"])
def test_what_is_wedged_in_meets_its_conditions(shape: Any, slope: float) -> None:
    """In a narrow groove, with friction that keeps bodies from parting as fast as they must, at the end of a step and
    half way: every cone problem has a solution all the same."""
    n = 32
    system, rng = bc.compile(thrown_on((slope, -slope), shape)), np.random.default_rng(3)
    q, turn = np.repeat(system.neutral()[None], n, axis=0), rng.standard_normal((n, 4))
    q[:, :4], q[:, 6] = turn / np.linalg.norm(turn, axis=1, keepdims=True), 0.5 + 0.1 / np.cos(slope)
    u = rng.standard_normal((n, 6)) * [3.0, 10.0, 3.0, 1.0, 0.3, 1.0]
    some = system.with_parameters(mu=np.resize([1.0, 5.0, 100.0, 1e3], n), e=np.resize([0.0, 0.6, 1.0], n))
    result = some.simulate((q, u), 0.5, stepper="moreau", step=4e-3, output=4e-3)
    assert result.attrs["status"] == "finished" and result.attrs["contact_residual"] < 1e-9
    assert np.diff(result["energy"].values, axis=0).max() < 1e-5
