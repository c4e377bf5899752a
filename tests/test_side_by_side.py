"""Items of one state side by side in the lanes of rolled kernels, and what runs of rolled machines are made of."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.lowering.choose import kernel_source
from bellcrank.lowering.link_kinds import RolledProgram
from bellcrank.system.evaluator import CompiledEvaluator, NumpyEvaluator
from bellcrank.system.loop_errors import largest_errors
from bellcrank.target.kernel_source import EntryKernel, RolledKernel

MACHINES = {"ladder": {"cells": 13}, "rope_ladder": {"rungs": 11}, "four_bar_chain": {"cells": 9}}
FUNCTIONS = ["forward_dynamics", "corrections", "largest_errors"]


@pytest.fixture(scope="module", params=MACHINES)
def machine(request: pytest.FixtureRequest) -> bc.System:
    return bc.compile(bc.load(request.param, **MACHINES[request.param]), schedule="rolled")


def planned(system: bc.System) -> CompiledEvaluator:
    run = system.kernels.planned(system.plans.general())
    assert isinstance(run, CompiledEvaluator)
    return run


def given(system: bc.System, seed: int = 0) -> dict[str, np.ndarray]:
    """A state near a closed one, whose loops are open a little."""
    rng, start = np.random.default_rng(seed), system.plans.any_reference().q
    q = system.model.configuration.integrate(start, 1e-3 * rng.normal(size=system.nu))
    u, tau = rng.normal(size=(2, system.nu))
    return {"q": q, "u": u, "tau": np.where(system.model.tree.loop_speeds(), 0.0, tau)}  # others act as wrenches


def source(system: bc.System, name: str) -> tuple[RolledKernel, RolledProgram]:
    run, function = planned(system), system.kernels.functions[name]
    traced = run.trace(function)
    assert isinstance(traced, RolledProgram)
    made = kernel_source(run.tree, function, run.inputs(function, False), traced)
    assert isinstance(made, RolledKernel)
    return made, traced


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_values_ahead_are_computed_for_every_item(machine: bc.System, name: str, lanes: int) -> None:
    """All items of a kind are in some block, in the order of their places; blocks that are not full repeat the last."""
    made, traced = source(machine, name)
    other = made.side_by_side(lanes)
    assert other is not made and other.plan.lanes == lanes
    ahead = [code for code in other.plan.codes if code.ahead is not None]
    count = sum(-(-traced.counts[code.kind.index] // lanes) for code in ahead)
    assert other.data.runs[len(ahead) - 1, 2] == count
    assert len(other.data.table) == traced.table.size + len(traced.table) + count * other.plan.block_row
    assert made.side_by_side(1) is made


@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernels_agree_with_the_reference(machine: bc.System, name: str) -> None:
    """For one state (items in lanes), for many (states in lanes), and by the text itself on arrays."""
    if machine.model.name == "rope ladder of 11" and name == "forward_dynamics":
        pytest.skip("takes seconds to compile")
    run, function, state = planned(machine), machine.kernels.functions[name], given(machine)
    arrays = [state[n][None] for n in run.inputs(function, False)]
    expected, finite = NumpyEvaluator(run.tree).run(function, False, arrays, 1)
    assert finite
    scale = 1e-11 * np.abs(expected).max()
    assert np.abs(run.run(function, False, arrays, 1)[0] - expected).max() < scale
    many = [np.repeat(a, 16, axis=0) for a in arrays]
    assert np.abs(run.run(function, False, many, 16)[0] - expected).max() < scale


def uneven_ladder(cells: int) -> bc.Mechanism:
    """A ladder whose arms differ in length, and all bodies in mass."""
    m, rng, pin = bc.Mechanism("uneven ladder"), np.random.default_rng(4), bc.Revolute("y")
    hooke, tip = bc.Universal("x", "y"), bc.Pose((0.0, 0.0, -0.9))
    last = m.add_body("arm0", bc.Inertia(2.0, (0.0, 0.0, -0.64), (0.3128, 0.2728, 0.05)))
    m.add_joint("arm0", hooke, m.ground, last)
    at = 0.0
    for i in range(1, cells + 1):
        pitch = float(rng.uniform(0.4, 0.6))
        at += pitch
        rung = m.add_body(f"rung{i}", bc.Inertia.rod(float(rng.uniform(0.5, 1.0)), (0, 0, 0), (pitch, 0, 0)))
        arm = m.add_body(f"arm{i}", bc.Inertia.cylinder(float(rng.uniform(1, 2)), 0.05, 0.9, "z", (0, 0, -0.45)))
        m.add_joint(f"inner{i}", pin, last, rung, tip)
        m.add_joint(f"arm{i}", hooke, m.ground, arm, bc.Pose((at, 0.0, 0.0)))
        m.add_joint(f"outer{i}", pin, rung, arm, bc.Pose((pitch, 0.0, 0.0)), tip)
        last = arm
    return m


def test_every_item_has_its_own_numbers() -> None:
    system = bc.compile(uneven_ladder(13), schedule="rolled")
    made, traced = source(system, "forward_dynamics")
    assert made.side_by_side(4) is not made and max(traced.counts) > 8
    run, function, state = planned(system), system.kernels.functions["forward_dynamics"], given(system)
    arrays = [state[n][None] for n in run.inputs(function, False)]
    expected, _ = NumpyEvaluator(run.tree).run(function, False, arrays, 1)
    assert np.abs(run.run(function, False, arrays, 1)[0] - expected).max() < 1e-11 * np.abs(expected).max()


def test_numbers_that_happen_to_be_one_make_no_kind_of_their_own() -> None:
    """The second arm of this ladder hangs one metre from the first: its loop follows the code of the others."""
    system = bc.compile(bc.load("ladder", **MACHINES["ladder"]), schedule="rolled")
    assert source(system, "corrections")[1].counts == [1, 1, 10, 1]


def test_corrections_are_displacements_and_changes_of_speed(machine: bc.System) -> None:
    run, state = planned(machine), given(machine, 1)
    parts = []
    for name in ("displacements", "speed_changes"):
        function = machine.kernels.functions[name]
        parts.append(run.run(function, False, [state[n][None] for n in run.inputs(function, False)], 1)[0])
    both, finite = run.run(machine.kernels.functions["corrections"], False, [state["q"][None], state["u"][None]], 1)
    assert finite and np.abs(both).max() > 1e-4
    assert np.abs(both - np.concatenate(parts, axis=1)).max() < 1e-12 * np.abs(both).max()


def test_largest_errors_are_those_of_all_conditions(machine: bc.System) -> None:
    """Values anywhere; rates where loops are closed: elsewhere they depend on what is taken to be at rest."""
    states = [given(machine, seed) for seed in range(5)]
    q, u = (np.array([s[n] for s in states]) for n in "qu")
    errors, _ = largest_errors(machine.plans, q, u, 0.0)
    assert errors.min() > 1e-5
    assert np.abs(errors - np.abs(machine.loop_error(q)).max(axis=-1)).max() < 1e-14
    closed = np.repeat(machine.plans.any_reference().q[None], len(u), axis=0)
    _, rates = largest_errors(machine.plans, closed, u, 0.0)
    expected = np.abs(machine.loop_rate_error(closed, u)).max(axis=-1)
    assert rates.min() > 0.1 and np.abs(rates - expected).max() < 1e-11 * expected.max()


def test_largest_errors_do_not_hide_what_is_not_finite() -> None:
    system = bc.compile(bc.load("ladder", **MACHINES["ladder"]), schedule="rolled")
    state = given(system)
    with pytest.raises(bc.SingularError):
        largest_errors(system.plans, state["q"][None], np.full((1, system.nu), 1e308), 0.0)


def test_rates_of_simple_joints_are_one_expression() -> None:
    """Where every entry of a result is the same function of the same entries of the inputs there are no records."""
    system = bc.compile(bc.load("ladder", **MACHINES["ladder"]), schedule="rolled")
    balls = bc.compile(bc.load("rope_ladder", **MACHINES["rope_ladder"]), schedule="rolled")
    for name, expected in (("coordinate_rates", True), ("displaced", True), ("sped", True), ("poses", False)):
        for one, found in ((system, expected), (balls, expected and name == "sped")):
            function, run = one.kernels.functions[name], one.kernels.evaluator
            assert isinstance(run, CompiledEvaluator)
            traced = run.trace(function)
            made = kernel_source(run.tree, function, run.inputs(function, False), traced)
            assert isinstance(made, EntryKernel) == found, name
    rng = np.random.default_rng(0)
    q, dq = rng.normal(size=(2, 3, system.nq))
    function = system.kernels.functions["displaced"]
    for n in (1, 3):
        got, finite = system.kernels.evaluator.run(function, False, [q[:n], dq[:n]], n)
        assert finite and (got == q[:n] + dq[:n]).all()
