"""Which trees on the ground are the secondary system of a closed chain (see `secondary_first`): a choice by cost.

A tree can be secondary if every row on it looks at a primary tree as well, and if the primary system alone could answer
all rows: A_P Lambda_P A_P* must be far from singular. Of those, trees are added while operations fall.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.loops.plan import LoopPlan
from bellcrank.topology.tree import Tree

__all__ = ["refine_plan"]

#: pivots of A_P Lambda_P A_P* must be larger than this, relative to their diagonal, at the general position
_WELL = 1e-6
#: share of the operations of step (D) and of its matrix that must be saved
_SAVED = 0.9
#: operations for an entry of A Lambda A*, and for Omega at a point: a row's own share, and that of a speed
_ENTRY, _POINT, _OWN = 11.0, 50.0, 15.0


def refine_plan(tree: Tree, plan: LoopPlan, mass: Floats, jacobian: Floats, speeds: Sequence[int]) -> LoopPlan:
    """The plan with its secondary system, if one pays. `mass` and `jacobian` are those of the free `speeds` at a
    general position; rows of `jacobian` are all constraints. Cost: O(trees (m^3 + nu^3))."""
    root = _roots(tree)
    of_speed = np.array([root[_link_of(tree, v)] for v in speeds])
    rows = jacobian[list(plan.kept)]
    touched = [frozenset(int(r) for r in np.unique(of_speed[np.abs(row) > 0.0])) for row in rows]
    sizes = {r: int((of_speed == r).sum()) for r in set(of_speed.tolist())}
    chosen: set[int] = set()
    cost = _cost(touched, sizes, chosen)
    for r in sorted(sizes, key=lambda r: (-sum(r in t for t in touched), r)):
        more = chosen | {r}
        if not any(r in t for t in touched) or any(t <= more or len(t & more) > 1 for t in touched):
            continue
        less = _cost(touched, sizes, more)
        if less < _SAVED * cost and _answers(mass, rows, ~np.isin(of_speed, list(more))):
            chosen, cost = more, less
    links = tuple(k for k in range(1, tree.n + 1) if root[k] in chosen)
    return replace(plan, secondary=links) if links else plan


def _roots(tree: Tree) -> list[int]:
    root = [0] * (tree.n + 1)
    for k in range(1, tree.n + 1):
        parent = int(tree.parent[k])
        root[k] = root[parent] if parent > 0 else k
    return root


def _link_of(tree: Tree, speed: int) -> int:
    return next(k for k in range(1, tree.n + 1)
                if tree.u_start[k] <= speed < int(tree.u_start[k]) + getattr(tree.joints[k], "nu", 0))


def _answers(mass: Floats, rows: Floats, primary: npt.NDArray[np.bool_]) -> bool:
    """Whether the primary system alone can meet all rows: pivots of A_P Lambda_P A_P*, equilibrated."""
    own = rows[:, primary]
    try:
        stiff = own @ np.linalg.solve(mass[np.ix_(primary, primary)], own.T)
        size = np.sqrt(np.diag(stiff))
        lower = np.linalg.cholesky(stiff / np.outer(size, size))
    except (np.linalg.LinAlgError, FloatingPointError):
        return False
    return bool((np.diag(lower) ** 2 > _WELL).all())


def _cost(touched: Sequence[frozenset[int]], sizes: dict[int, int], second: Collection[int]) -> float:
    """Operations of step (D) and of the matrices it needs, roughly."""
    total = sum(_POINT * sum(r in t for t in touched) + _OWN * n for r, n in sizes.items() if r not in second)
    blocks = _joined([t - set(second) for t in touched])
    for block in blocks:
        m = len(block)
        n = sum(sizes[r] for r in set().union(*(touched[i] for i in block)) & set(second))
        total += m**3 / 3.0 + 2.0 * m * m * (n + 1) + m * n * (n + 3)
        total += _ENTRY * sum(1 for a, i in enumerate(block) for j in block[:a + 1]
                              if (touched[i] & touched[j]) - set(second))
    for group in _joined([frozenset(b) for b in _held(blocks, touched, second)]):
        held = set().union(*(_held(blocks, touched, second)[i] for i in group))
        total += sum(sizes[r] for r in held) ** 3 / 3.0
    return total


def _held(blocks: Sequence[Sequence[int]], touched: Sequence[frozenset[int]], second: Collection[int]
          ) -> list[set[int]]:
    """The secondary trees that each block of rows looks at."""
    return [set().union(*(touched[i] for i in block)) & set(second) for block in blocks]


def _joined(sets: Sequence[Collection[int]]) -> list[list[int]]:
    """Numbers of sets that share members, directly or by others."""
    groups: list[tuple[set[int], list[int]]] = []
    for i, members in enumerate(sets):
        joined = [g for g in groups if g[0] & set(members)]
        groups = [g for g in groups if g not in joined]
        groups.append((set(members).union(*(g[0] for g in joined)), [*(j for g in joined for j in g[1]), i]))
    return [sorted(members) for _, members in groups]
