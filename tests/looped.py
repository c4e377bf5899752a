"""Comparing a loop method with the dense oracle on the machines of the zoo."""

from __future__ import annotations

from typing import Any

import numpy as np

import bellcrank as bc
import whole_states
from bellcrank.mechanism.fingerprint import fingerprint
from bellcrank.system.forward_dynamics import run_by_plan

EPS = float(np.finfo(float).eps)

ZOO = ("four_bar", "slider_crank", "five_bar", "redundant_five_bar", "quarter_car", "double_wishbone", "stewart",
       "delta", "ladder", "rope_ladder", "four_bar_chain", "bennett", "bricard", "jansen", "scissor_lift", "andrews",
       "linkage_quadruped")


_states: dict[tuple[object, ...], tuple[np.ndarray, np.ndarray, np.ndarray]] = {}


def states(system: bc.System, seed: int = 0, count: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Closed positions away from the design position, consistent speeds, and joint forces.

    They are those of the machine, whatever the method and whoever asks first: found by compiled code, and kept.
    """
    model = system.model
    if model.released or model.locked or model.values:
        return _found(system, seed, count)
    key = (fingerprint(model.mechanism), model.tree.cut_names, seed, count)
    if key not in _states:
        _states[key] = _found(bc.compile(model.mechanism, cut=model.tree.cut_names), seed, count)
    q, u, tau = _states[key]
    return q.copy(), u.copy(), tau.copy()


def _found(system: bc.System, seed: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q, u = [], []
    start = system.assemble()
    while len(q) < count:
        drift = system.assemble(q=start.q, u=rng.normal(size=system.nu)).u
        try:
            state = system.assemble(q=system.integrate(start.q, 0.2 * drift), u=rng.normal(size=system.nu))
        except bc.AssemblyError:
            continue
        q.append(state.q)
        u.append(state.u)
    return np.array(q), np.array(u), rng.normal(size=(count, system.nu))


def conditioning(system: bc.System, q: np.ndarray) -> float:
    """How much larger than rounding the relative errors of accelerations at q may be: of masses and of conditions."""
    rows = bc.analyze.loop_jacobian(system, q)
    sizes = np.linalg.svd(rows, compute_uv=False) if len(rows) else np.ones(1)
    counting = sizes[sizes > 1e-9 * sizes.max()]
    return float(counting.max() / counting.min() * np.linalg.cond(whole_states.tree_matrix(system, q)))


_known: dict[tuple[str, int], tuple[np.ndarray, ...]] = {}


def _answers(machine: bc.Mechanism, seed: int) -> tuple[np.ndarray, ...]:
    """States and forces, and the oracle's accelerations: the same for every method that is compared."""
    key = (fingerprint(machine), seed)
    if key not in _known:
        oracle = bc.compile(machine, "dense", "numpy")
        given = states(oracle, seed)
        _known[key] = (*given, oracle.forward_dynamics(*given))
    return _known[key]


def disagreement(machine: bc.Mechanism, method: str, backend: str = "llvm", seed: int = 0, **options: object) -> float:
    """Largest difference of accelerations to the oracle, relative to the largest acceleration."""
    q, u, tau, expected = _answers(machine, seed)
    found = bc.compile(machine, method, backend, **options).forward_dynamics(q, u, tau)  # type: ignore[arg-type]
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def plan_used(system: bc.System, q: Any, u: Any) -> Any:
    """The plan by which forward dynamics is computed at a state: the reference, or one made there."""
    given = {"q": q, "u": u, "tau": np.zeros(system.nu)}
    return run_by_plan(system.plans, "forward_dynamics", given, None, 0.0, system.plans.reference().plan)[1]


def sized_four_bar(load: bool = False) -> bc.Mechanism:
    """A four-bar whose coupler is as long as the parameter "length" says, and if wanted as heavy as "load" says."""
    m = bc.Mechanism("four-bar of a given length", gravity=(0, -9.81, 0))
    length = m.parameter("length", 1.0)
    mass = m.parameter("load", 5.0) if load else 5.0
    for name, own, size in (("crank", 1.5, 0.3), ("coupler", mass, length), ("rocker", 3.0, 0.6)):
        m.add_body(name, bc.Inertia(own, (0.5 * size, 0, 0), (0.01, 0.02, 0.03)))
    m.add_joint("A", bc.Revolute("z"), m.ground, "crank")
    m.add_joint("B", bc.Revolute("z"), "crank", "coupler", parent_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), "coupler", "rocker", parent_pose=bc.Pose((length, 0, 0)))
    m.add_joint("D", bc.Revolute("z"), "rocker", m.ground, parent_pose=bc.Pose((0.6, 0, 0)),
                child_pose=bc.Pose((1.0, 0, 0)))
    return m


def welded_arm(q: np.ndarray) -> bc.Mechanism:
    """An arm of eight hinges whose end is welded to the ground where it is in the position q: the joint "close"."""
    def arm() -> bc.Mechanism:
        m = bc.Mechanism("arm")
        for i in range(8):
            m.add_body(f"b{i}", bc.Inertia.box(1.0, (0.3, 0.1, 0.1), (0.15, 0, 0)))
            m.add_joint(f"j{i}", bc.Revolute("zyx"[i % 3]), f"b{i - 1}" if i else m.ground, f"b{i}",
                        bc.Pose((0.3 if i else 0.0, 0, 0)))
        return m

    m = arm()
    m.add_joint("close", bc.Weld(), m.ground, "b7", bc.compile(arm(), backend="numpy").pose(q, "b7"))
    return m


def sleeve_crank() -> bc.Mechanism:
    """A crank, a rod on a ball and a universal joint, and a piston that may turn on its shaft: two degrees of freedom.
    Two joints are given from the piston towards the ground."""
    m = bc.Mechanism("sleeve", gravity=(0.3, -9.81, 0.5))
    bodies = [m.add_body(name, bc.Inertia.box(mass, size, com)) for name, mass, size, com in (
        ("crank", 1.0, (0.3, 0.1, 0.05), (0.15, 0, 0)), ("rod", 0.7, (1.0, 0.1, 0.08), (0.5, 0, 0)),
        ("piston", 0.9, (0.2, 0.1, 0.15), (0.02, 0.03, 0)))]
    m.add_joint("crank", bc.Revolute("z"), m.ground, bodies[0])
    m.add_joint("ball", bc.Spherical(), bodies[0], bodies[1], parent_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint("cardan", bc.Universal("y", "z"), bodies[1], bodies[2], parent_pose=bc.Pose((1.0, 0, 0)))
    m.add_joint("sleeve", bc.Cylindrical("x"), bodies[2], m.ground, child_pose=bc.Pose((1.0, 0.1, 0.1)))
    m.add_joint_spring("s", "sleeve", stiffness=30.0, coordinate="slide")
    return m
