"""All methods on random machines with loops: against the dense oracle, and the loops' errors at all levels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings

import bellcrank as bc
import loop_extras
import looped
import whole_states
from looped_graphs import Graph, build, graphs
from mechanisms import EPS, examples
from properties import leave

#: methods that take any topology
GENERAL = ("elimination", "kane", "recursive", "recursive/centroid", "recursive/joint", "recursive/origin", "operator",
           "momenta")


def state_of(system: bc.System, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """A closed state away from the neutral one where the machine can get there, or None if it is singular there."""
    rng = np.random.default_rng(seed)
    try:
        start = system.assemble()
        wish = system.assemble(q=start.q, u=rng.normal(size=system.nu)).u
        near = system.assemble(q=system.integrate(start.q, 0.1 * wish), u=rng.normal(size=system.nu))
        plan = system.plans.at(near.q, 0.0)
    except (bc.AssemblyError, bc.SingularError):
        return None
    return (near.q, near.u, rng.normal(size=system.nu)) if plan.smallest > 1e-4 else None


def tolerance(system: bc.System, q: np.ndarray) -> float:
    """Rounding times how ill-conditioned conditions and masses are there."""
    s = np.linalg.svd(bc.analyze.loop_jacobian(system, q), compute_uv=False)
    s = s[s > 1e-9 * s.max(initial=1e-300)] if len(s) else s
    spread = float(s.max() / s.min()) if len(s) else 1.0
    w = np.linalg.eigvalsh(whole_states.tree_matrix(system, q))
    return 200.0 * EPS * system.nu * spread**2 * float(w[-1] / w[0])


#: found by hypothesis: a coupler whose speed moves the very body its partner's message is about
COUPLED = Graph((("Revolute", -1), ("Revolute", 0), ("Revolute", 1), ("Revolute", 0)), (("Revolute", 0, 3),), driven=0,
                coupled=True, spring=True, planar=True)


#: the same for a coupler between branches that also hang in a loop
BRANCHES = Graph((("Screw", -1), ("Free", 0), ("Universal", 0), ("Screw", 2), ("Screw", 1)), (("Revolute", 0, 2),),
                 backwards=2, driven=0, coupled=True, spring=True, planar=True, seed=1)


@pytest.mark.parametrize("graph", (COUPLED, BRANCHES))
def test_couplers_across_groups(graph: Graph) -> None:
    machine = build(graph)
    oracle = bc.compile(machine, "dense", "numpy")
    q, u, tau = state_of(oracle, graph.seed)
    expected = oracle.forward_dynamics(q, u, tau)
    assert np.abs(bc.compile(machine, "elimination", "numpy").forward_dynamics(q, u, tau) - expected).max() < 1e-11


def test_prescribed_speeds_that_open_the_loops_are_refused() -> None:
    """Found by hypothesis: the position is closed, but the driven joint's speed has no partner that keeps it so."""
    graph = Graph((("Revolute", -1), ("Revolute", 0)), (("Distance", 1, 0), ("PointOnPlane", 1, -1)), backwards=2,
                  driven=0, planar=False, seed=27)
    system = bc.compile(build(graph), "dense", "numpy")
    for call in (system.assemble, lambda: system.assemble(q=np.zeros(2), u=np.ones(2))):
        with pytest.raises(bc.AssemblyError, match="contradict"):
            call()


@pytest.mark.reaches(0.5)
@settings(examples(60), phases=(Phase.explicit, Phase.generate))  # shrinking these takes very long
@given(graphs())
def test_methods_agree_on_random_graphs(graph: Graph) -> None:
    machine = build(graph)
    try:
        oracle = bc.compile(machine, "dense", "numpy")
    except bc.ModelError:
        leave()  # nothing can move, or a coupler's joint had to be cut
    state = state_of(oracle, graph.seed)
    if state is None:
        leave()
    q, u, tau = state
    expected = oracle.forward_dynamics(q, u, tau)
    size = 1.0 + float(np.abs(expected).max())
    allowed = tolerance(oracle, q)
    if allowed > 1e-5:
        leave()
    assert np.abs(oracle.loop_error(q)).max(initial=0.0) < 1e-11
    assert np.abs(oracle.loop_rate_error(q, u)).max(initial=0.0) < 1e-9 * (1.0 + np.abs(u).max())
    assert np.abs(bc.analyze.loop_acceleration_error(oracle, q, u, expected)).max(initial=0.0) < allowed * size + 1e-9
    for method in GENERAL:
        system = bc.compile(machine, method, "numpy")
        if method != "operator":  # whose plan may have a secondary system; those of the others are all the same
            system.plans._found = oracle.plans.reference()
        found = system.forward_dynamics(q, u, tau)
        assert np.abs(found - expected).max() < allowed * size, method
    for method in ("complement", "reduction"):  # where they apply
        try:
            found = bc.compile(machine, method, "numpy").forward_dynamics(q, u, tau)
        except bc.ModelError as refusal:
            assert "elimination" in str(refusal)
            continue
        assert np.abs(found - expected).max() < 100.0 * allowed * size, method


@pytest.mark.parametrize("name", looped.ZOO)
@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
def test_elimination_on_the_zoo(name: str, schedule: str) -> None:
    if schedule == "unrolled" and name in ("rope_ladder", "linkage_quadruped", "stewart"):
        pytest.skip("slow to compile; the automatic schedule rolls these")
    assert looped.disagreement(bc.load(name), "elimination", schedule=schedule) < 1e-11


@pytest.mark.everyday(3)
@pytest.mark.parametrize("name", ("four_bar", "rope_ladder", "linkage_quadruped", "quarter_car", "ladder"))
def test_elimination_in_batches_and_with_wrenches(name: str) -> None:
    machine = bc.load(name)
    oracle, system = bc.compile(machine, "dense", "numpy"), bc.compile(machine)
    q, u, tau = looped.states(oracle, seed=3, count=9)
    wrenches = np.random.default_rng(0).normal(size=(9, len(machine.bodies), 6))
    expected = oracle.forward_dynamics(q, u, tau, wrenches=wrenches)
    found = system.forward_dynamics(q, u, tau, wrenches=wrenches)
    assert np.abs(found - expected).max() < 1e-10 * np.abs(expected).max()
    alone, among = system.forward_dynamics(q[4], u[4], tau[4]), system.forward_dynamics(q, u, tau)[4]
    assert np.abs(alone - among).max() < 1e-11 * (1.0 + np.abs(alone).max())


@pytest.mark.everyday(8)
@pytest.mark.parametrize("name", looped.ZOO)
def test_power_balance(name: str) -> None:
    """Kinetic and potential energy change by what drives and springs deliver: checked by differences in time."""
    machine = bc.load(name)
    if machine.wrenches:
        pytest.skip("an applied wrench does work")
    system = bc.compile(machine)
    q, u, tau = (x[0] for x in looped.states(system, count=1))
    udot = system.forward_dynamics(q, u, tau)
    h = 1e-4

    def energy(t: float) -> float:
        there = system.integrate(q, u * t + udot * (t * t / 2))
        return float(system.energy(there, u + udot * t))

    power = (energy(h) - energy(-h)) / (2 * h)
    scale = 1.0 + float(np.abs(tau * u).sum()) + float(np.abs(udot).max()) ** 2 * 1e-2
    assert abs(power + float(bc.analyze.dissipated_power(system, q, u)) - float(tau @ u)) < 1e-4 * scale


@pytest.mark.everyday(8)
@pytest.mark.parametrize("name", tuple(loop_extras.EXTRA))
@pytest.mark.parametrize("schedule", ("unrolled", "rolled"))
def test_elimination_on_couplers_drives_and_all_closures(name: str, schedule: str) -> None:
    machine = loop_extras.EXTRA[name]()
    cut = [j.name for j in machine.joints if j.name == "close"]
    oracle = bc.compile(machine, "dense", "numpy", cut=cut)
    q, u, tau = looped.states(oracle)
    expected = oracle.forward_dynamics(q, u, tau, t=0.3)
    found = bc.compile(machine, "elimination", cut=cut, schedule=schedule).forward_dynamics(q, u, tau, t=0.3)
    assert np.abs(found - expected).max() < 1e-10 * (1.0 + np.abs(expected).max())
