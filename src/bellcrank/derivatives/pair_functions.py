"""What elements between links (springs, bushings, forces on closing joints) exert and store, as functions of the
motions of the links between which they lie. Machines that are rolled into loops have their elements outside of the
loops: motions of links come from one kernel, loads on them go into another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from bellcrank.lowering.element_loads import closing_motion, element_loads
from bellcrank.lowering.function import Function, Tracer, binder
from bellcrank.mechanism.forces.element import Moving
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.spatial import Force, General, Matrix3, Motion, Vector
from bellcrank.topology.pairs import LoopForce, SumForce, Surroundings
from bellcrank.topology.tree import Tree

__all__ = ["POSE", "VELOCITY", "PairFunctions", "pair_functions"]

#: numbers of a link's pose (axes row by row, origin) and velocity (angular, linear), in the world
POSE, VELOCITY = 12, 6


class PairFunctions(NamedTuple):
    """Functions of inputs "pose" and "velocity", those of some links one after another."""

    links: tuple[int, ...]  #: without the ground
    loads: Function  #: what acts on the first body of each: moment about its origin and force, in the world
    energy: Function


def pair_functions(tree: Tree) -> PairFunctions:
    """The functions of all elements of a tree but forces along sums of joints."""
    pairs = [pair for pair in tree.pairs if not isinstance(pair, SumForce)]
    ends = [(tree.closures[p.closure].first, tree.closures[p.closure].second) if isinstance(p, LoopForce) else
            (p.first, p.second) for p in pairs]
    links = tuple(sorted({link for two in ends for link in two if link}))
    sizes = (("pose", POSE * len(links)), ("velocity", VELOCITY * len(links)))

    def loads(tracer: Tracer) -> list[Number]:
        moving, bind = _motions(tracer, tree, links), _binder(tracer, tree)
        around = Surroundings(tracer.graph.leaf(("t", 0)))
        total: dict[int, Force] = {}
        for pair in pairs:
            for link, wrench in element_loads(tree, pair, moving, bind, around):
                total[link] = total[link] + wrench if link in total else wrench
        out: list[Number] = []
        for link in links:
            wrench = total.get(link, Force.zero())
            numbers = bind(tree.numbers(link)) if link in tree.symbolic else tree.numbers(link)
            arm = moving(link).axes.apply(numbers.origins[0])
            out += [*(wrench.moment - arm.cross(wrench.force)), *wrench.force]
        return _numbers(out)

    def energy(tracer: Tracer) -> list[Number]:
        moving, bind, total = _motions(tracer, tree, links), _binder(tracer, tree), 0.0
        for pair in pairs:
            if isinstance(pair, LoopForce):
                across = closing_motion(tree.closures[pair.closure], moving, bind)
                total = total + bind(pair.along).energy(across.coordinates[pair.coordinate])
            else:
                total = total + bind(pair).energy(moving(pair.first), moving(pair.second))
        return _numbers([total])

    inputs = ("pose", "velocity", "t")
    return PairFunctions(links, *(
        Function(name, _no_text, inputs, "totals", size, made=made, sizes=sizes)
        for name, size, made in (("loads of elements", 6 * len(links), loads), ("energy of elements", 1, energy))))


def _motions(tracer: Tracer, tree: Tree, links: tuple[int, ...]) -> Callable[[int], Moving]:
    place = {link: i for i, link in enumerate(links)}
    turn, shift = tree.ground_turn.tolist(), tree.ground_shift.tolist()
    still = Moving(General(Matrix3(*(Vector(*row) for row in turn))), Vector(*shift), Vector.zero(), Vector.zero())

    def moving(link: int) -> Moving:
        if not link:
            return still
        pose = [tracer.graph.leaf(("pose", POSE * place[link] + i)) for i in range(POSE)]
        rate = [tracer.graph.leaf(("velocity", VELOCITY * place[link] + i)) for i in range(VELOCITY)]
        axes = General(Matrix3(*(Vector(*pose[3 * i:3 * i + 3]) for i in range(3))))
        return Moving(axes, Vector(*pose[9:]), *Motion(Vector(*rate[:3]), Vector(*rate[3:])))

    return moving


def _binder(tracer: Tracer, tree: Tree) -> Callable[[Any], Any]:
    return binder(tree, lambda name, i: tracer.graph.leaf((name, i)))


def _numbers(entries: list[Number]) -> list[Number]:
    return [x if type(x) is Scalar else float(x) for x in entries]


def _no_text(sweeps: Any) -> Any:
    raise AssertionError("made of motions")
