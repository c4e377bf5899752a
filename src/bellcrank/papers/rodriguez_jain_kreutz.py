"""G. Rodriguez, A. Jain and K. Kreutz: the spatial operator algebra, by items.

The paper prints no numbers: its figure is a sketch. What can be computed anew are its identities, and its six steps for
closed chains beside an independent solution.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bellcrank.analyze.comparison import closed_states
from bellcrank.analyze.operator_algebra import operators, partition
from bellcrank.arrays import Floats
from bellcrank.compiled.compile import compile
from bellcrank.examples import load
from bellcrank.examples.chains import general_chain
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free, Revolute, Spherical
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.papers.item import Agreement, ItemResult, Paper, PaperItem, PaperPlot, PlotLine, table_of
from bellcrank.system.evaluator import counting_evaluator

__all__ = ["ITEMS", "SOURCE"]

SOURCE = Paper(
    "rodriguez-jain-kreutz", "Rodriguez, Jain & Kreutz", "Spatial Operator Algebra Framework for Multibody System "
    "Dynamics",
    "Jet Propulsion Laboratory, 1989", "operator",
    "The method is `operator`; the operators themselves are objects (`bellcrank.analyze.operators`), and the steps of "
    "closed chains can be taken one by one (`bellcrank.analyze.partition`). The paper prints no results, so its "
    "identities are evaluated: both sides as matrices, for a chain and for a tree.")


# -- identities -------------------------------------------------------------------------------------------------------
def _residuals(machine: Mechanism) -> dict[str, float]:
    """How far the two sides of the paper's identities are apart, relative to their size."""
    system = compile(machine)
    q, _ = system.random_state(np.random.default_rng(1))
    o = operators(system, q)
    mass = compile(machine, "dense", "numpy").mass_matrix(q)
    factor, inverse = o.one + o.H @ o.phi @ o.K, o.one - o.H @ o.psi @ o.K
    size = float(np.linalg.cond(mass))
    pairs: dict[str, tuple[Floats, Floats]] = {
        "(2.11) mass matrix H φ M φ* H*": (o.mass.matrix(), mass),
        "lemma 1 (3.4) factors of the mass matrix": (factor.matrix() @ o.D.matrix() @ factor.matrix().T, mass),
        "lemma 2 (3.5) inverse of the factor": (factor.matrix() @ inverse.matrix(), np.eye(system.nu)),
        "lemma 3 (3.6) inverse mass matrix": (o.mass_inverse.matrix() @ mass / size, np.eye(system.nu) / size),
        "lemma 4 (3.9) (1 - H ψ K) H φ = H ψ": ((inverse @ o.H @ o.phi).matrix(), (o.H @ o.psi).matrix())}
    return {name: float(np.abs(a - b).max() / max(np.abs(b).max(), 1.0)) for name, (a, b) in pairs.items()}


def lemmas(short: bool) -> ItemResult:
    """The factorisations of the mass matrix and of its inverse."""
    bodies = 4 if short else 12
    machines = {f"chain of {bodies} pins": general_chain(bodies, Revolute),
                f"chain of {bodies} balls": general_chain(bodies, Spherical)}
    if not short:
        machines["quadruped"] = load("quadruped")
    found = {name: _residuals(machine) for name, machine in machines.items()}
    names = list(next(iter(found.values())))
    table = table_of(["identity", *found], names, *(f.values() for f in found.values()))
    agreements = tuple(Agreement(f"{machine}: {name}, residual", value, 0.0, "formula", 1e-10)
                       for machine, values in found.items() for name, value in values.items())
    x = np.arange(float(len(names)))
    plot = PaperPlot("identity, in the order of the table", "relative residual", tuple(
        PlotLine(machine, x, np.maximum(np.array(list(values.values())), 1e-17), "o")
        for machine, values in found.items()), log_y=True)
    return ItemResult(table, plot, agreements, (
        "Residuals are relative to the largest entry, that of lemma 3 to the conditioning of the mass matrix.",))


# -- closed chains ----------------------------------------------------------------------------------------------------
def _grasp() -> Mechanism:
    """Two arms of three pins that hold a crate by ball joints: the arms are primary, the crate is secondary."""
    m = Mechanism("two arms and a crate")
    crate = m.add_body("crate", Inertia.box(2.0, (0.4, 0.2, 0.2)))
    m.add_joint("crate", Free(), m.ground, crate, at=(0.0, 0.0, 0.0))
    for name, side in (("left", -1.0), ("right", 1.0)):
        last = m.ground
        for i, axis in enumerate("zyy"):
            link = m.add_body(f"{name}{i}", Inertia.box(1.0, (0.1, 0.1, 0.1), (side, 0.0, 0.1 * i)))
            m.add_joint(f"{name}{i}", Revolute(axis), last, link, at=(side, 0.0, 0.3 * i - 0.5))
            last = link
        m.add_joint(f"{name} grip", Spherical(), last, crate, at=(0.2 * side, 0.0, 0.0))
    return m


def steps(short: bool) -> ItemResult:
    """Steps (A)-(F), both forms of (D), and (3.13), beside the dense solution."""
    names = ("grasp", "four_bar") if short else ("grasp", "four_bar", "five_bar", "redundant_five_bar", "quarter_car",
                                                 "ladder", "stewart")
    rows, agreements = [], []
    rng = np.random.default_rng(2)
    for name in names:
        machine = _grasp() if name == "grasp" else load(name)
        held = ["left grip", "right grip"] if name == "grasp" else []
        system, oracle = compile(machine, "operator", cut=held), compile(machine, "dense", "numpy", cut=held)
        (q,), (u,) = closed_states(system, rng, 1)
        expected = oracle.forward_dynamics(q, u)
        scale = float(np.abs(expected).max())
        parts = partition(system, q, u, secondary=["crate"] if held else [])
        found = {"steps (A)-(F)": parts.step_f(), "compiled": system.forward_dynamics(q, u)}
        force, small = parts.step_d(), parts.step_d_small()
        off = {k: float(np.abs(v - expected).max() / scale) for k, v in found.items()}
        off["(D) two ways"] = float(np.abs(force - small).max() / (1.0 + np.abs(force).max()))
        rows.append((name, len(force), *off.values()))
        agreements += [Agreement(f"{name}: {k}, relative difference", v, 0.0, "reference", 1e-9)
                       for k, v in off.items()]
    table = table_of(["machine", "constraints", "steps (A)-(F)", "compiled", "(D) two ways"], *zip(*rows, strict=True))
    x = np.arange(float(len(names)))
    plot = PaperPlot(f"machine ({', '.join(f'{i} {n}' for i, n in enumerate(names))})", "relative difference", tuple(
        PlotLine(label, x, np.maximum(np.array(table.column(label)), 1e-17), style) for label, style in (
            ("steps (A)-(F)", "o"), ("compiled", "s"), ("(D) two ways", "^"))), log_y=True)
    return ItemResult(table, plot, tuple(agreements), (
        "Accelerations against `dense`, which knows nothing of operators. (D) two ways: (3.11) and the formulas after "
        "it, which differ where there is a secondary system: in `grasp`, two arms (primary) that hold a crate "
        "(secondary).",))


# -- the alternative step (D) -----------------------------------------------------------------------------------------
def _hand(arms: int) -> Mechanism:
    """Arms of three pins around a crate, which they hold by ball joints."""
    m = Mechanism(f"{arms} arms and a crate")
    crate = m.add_body("crate", Inertia.box(2.0, (0.4, 0.3, 0.2)))
    m.add_joint("crate", Free(), m.ground, crate, at=(0.0, 0.0, 0.0))
    for a in range(arms):
        angle = 0.3 + 2.0 * np.pi * a / arms  # no axis lies along those of the ground
        c, s = float(np.cos(angle)), float(np.sin(angle))
        last = m.ground
        for i, (axis, reach) in enumerate((((0.0, 0.0, 1.0), 1.0), ((-s, c, 0.0), 0.8), ((-s, c, 0.0), 0.5))):
            at = (reach * c, reach * s, 0.1 * (i + 1))
            link = m.add_body(f"arm{a}.{i}", Inertia.box(1.0, (0.2, 0.1, 0.1), at))
            m.add_joint(f"arm{a}.{i}", Revolute(axis), last, link, at=at)
            last = link
        m.add_joint(f"grip{a}", Spherical(), last, crate, at=(0.2 * c, 0.2 * s, 0.0))
    return m


def step_d(short: bool) -> ItemResult:
    """Operations of one forward dynamics with step (D) as (3.11), and with the secondary system first."""
    arms = (3, 5) if short else (3, 4, 6, 8, 12)
    rows = []
    for n in arms:
        system = compile(_hand(n), "operator", cut=[f"grip{a}" for a in range(n)])
        plan, function = system.plans.reference().plan, system.kernels.functions["forward_dynamics"]
        counts = [counting_evaluator(replace(system.model.tree, plan=p)).operation_count(function)
                  for p in (replace(plan, secondary=()), plan)]
        rows.append((n, len(plan.kept), counts[0].total, counts[1].total, counts[1].total / counts[0].total))
    table = table_of(["arms", "constraints", "(3.11), operations", "secondary first, operations", "share"],
                     *zip(*rows, strict=True))
    x = np.array(arms, dtype=float)
    lines = {label: np.array(table.column(label), dtype=float) for label in
             ("(3.11), operations", "secondary first, operations")}
    growth = {label: float(np.log(y[-1] / y[-2]) / np.log(x[-1] / x[-2])) for label, y in lines.items()}
    agreements = (
        Agreement("secondary first: exponent of growth", growth["secondary first, operations"], 1.0, "printed", 0.25),
        Agreement("(3.11): exponent of growth", growth["(3.11), operations"], 3.0, "printed", float("inf"),
                  "the cube of the constraints begins to rule over what is linear in the arms"),
        Agreement("operations are fewer with the secondary system first, at every number of arms (1: yes)",
                  float(all(row[-1] < 1.0 for row in rows)), 1.0, "printed"))
    plot = PaperPlot("arms (three constraints each)", "operations of one forward dynamics", tuple(
        PlotLine(label, x, y, style) for (label, y), style in zip(lines.items(), ("s-", "o-"), strict=True)),
        log_x=True, log_y=True)
    return ItemResult(table, plot, agreements, (
        "Arms of three pins hold a crate by ball joints. The arms do not influence each other, so that the matrix of "
        "the primary system has one block for each of them; the crate, six speeds, is solved first. `operator` chooses "
        "this form of step (D) itself where it takes fewer operations; it does not for two arms.",))


ITEMS = (
    PaperItem("rodriguez-jain-kreutz-lemmas", "Lemmas 1-4", "Factors of the mass matrix and of its inverse, as "
              "identities of operators", lemmas),
    PaperItem("rodriguez-jain-kreutz-steps", "Steps (A)-(F)", "Closed chains step by step, beside the dense "
              "solution", steps),
    PaperItem("rodriguez-jain-kreutz-step-d", "Step (D), alternative", "Operations with the secondary system solved "
              "first, over the number of arms that hold it", step_d),
)
