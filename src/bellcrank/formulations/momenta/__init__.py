"""Hamilton's equations in canonical momenta, two sweeps.

J. Naudet, D. Lefeber and Z. Terze, "General Formulation of an Efficient Recursive Algorithm Based on Canonical
Momenta for Forward Dynamics of Open-Loop Multibody Systems", Multibody Dynamics 2003. Equation numbers are the
paper's. The state is (q, p); p is conjugate to the joint speeds u.

| | |
|---|---|
| `tree_momenta` | trees, (9)-(48): notation, deviations, cost |
| `closed` | machines with loops: section 3, equations (1)-(8) |
"""

from __future__ import annotations

from bellcrank.formulations.momenta.closed import at_speeds, constrained_dynamics, constrained_hamilton
from bellcrank.formulations.momenta.tree_momenta import (
    forward_dynamics,
    inverse_dynamics,
    joint_wrenches,
    momenta,
    speeds_and_rates,
)
from bellcrank.lowering.looped import LoopedDirect
from bellcrank.schedule.sweeps import Field, Sweeps

__all__ = ["BIBTEX", "constrained_dynamics", "constrained_hamilton", "forward_dynamics", "hamilton",
           "inverse_dynamics", "joint_wrenches", "momenta"]

BIBTEX = """@inproceedings{naudet2003momenta,
  author    = {Naudet, Joris and Lefeber, Dirk and Terze, Zdravko},
  title     = {General Formulation of an Efficient Recursive Algorithm Based on Canonical Momenta for Forward
               Dynamics of Open-Loop Multibody Systems},
  booktitle = {Multibody Dynamics 2003, ECCOMAS Thematic Conference},
  year      = {2003}
}"""


def hamilton(tree: Sweeps) -> Field:
    """G2 and G1: for every joint speed the pair (u, dp/dt). Rates for prescribed speeds lack their drive force."""
    if isinstance(tree, LoopedDirect) and (tree.tree.pairs or tree.tree.sees_machine):
        # elements between links see speeds, which are only known now; they do not depend on forces
        speeds = [None, *(tuple(u for u, _ in pairs) for pairs in speeds_and_rates(tree)[1:])]
        for view, moving in zip(tree.views[1:], at_speeds(tree, speeds).views[1:], strict=True):
            view.pair_wrench, view.machine = moving.pair_wrench, moving.machine
    return speeds_and_rates(tree)
