"""The spatial operator algebra.

G. Rodriguez, A. Jain and K. Kreutz, "Spatial Operator Algebra Framework for Multibody System Dynamics", Jet Propulsion
Laboratory, conference text of 1989.

| | |
|---|---|
| `tree_recursion` | forward and inverse dynamics of trees, (2.1)-(3.7) and (A.1), (A.2): notation, deviations |
| | and there M^-1 by (3.7) for forces alone, of which contacts have their inertia |
| `flexible_recursion` | trees with flexible links: section 4 |
| `flexible_operators` | B, C, h, m and M^f of section 4 as matrices |
| `closed_chains` | machines with loops: sections 2.3 and 3, steps (A)-(F) |
| `changing_closures` | the same for closures that change: step (D) by itself |
| `flexible_chains` | the same with flexible links |
| `secondary_first`, `choose_secondary` | the alternative step (D) for a small secondary system, and where it pays |
| `operators` | the operators themselves as objects |
| `partition` | primary and secondary systems, step by step, on numbers |
"""

from __future__ import annotations

from bellcrank.formulations.operator.choose_secondary import refine_plan
from bellcrank.formulations.operator.secondary_first import constrained_dynamics
from bellcrank.formulations.operator.tree_recursion import forward_dynamics, inverse_dynamics, joint_responses

__all__ = ["BIBTEX", "FLEXIBLE", "constrained_dynamics", "forward_dynamics", "inverse_dynamics", "joint_responses",
           "refine_plan"]

#: functions that cover bodies that deform
FLEXIBLE = ("constrained_dynamics", "forward_dynamics", "inverse_dynamics")

BIBTEX = """@misc{rodriguez1989spatial,
  author       = {Rodriguez, G. and Jain, A. and Kreutz, K.},
  title        = {Spatial Operator Algebra Framework for Multibody System Dynamics},
  howpublished = {Jet Propulsion Laboratory, California Institute of Technology, Pasadena},
  year         = {1989},
  note         = {Conference text, to which all equation numbers refer. Journal version: Spatial Operator Algebra for
                  Multibody System Dynamics, Journal of the Astronautical Sciences 40(1), 1992, 27--50}
}"""
