"""What elements between links (springs, bushings, forces along loop joints) exert and store, as functions of the
motions of the links between which they lie. Machines that are rolled into loops have their elements outside of the
loops: motions of links come from one kernel, loads on them go into another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from bellcrank.lowering.element_loads import element_loads
from bellcrank.lowering.function import Function, Tracer, binder
from bellcrank.lowering.machine_view import MachineView
from bellcrank.mechanism.forces.element import Moving
from bellcrank.scalar.graph import Graph, Number, Scalar
from bellcrank.spatial import Force, General, Identity, Matrix3, Motion, Transform, Vector
from bellcrank.topology.pairs import SumForce, Surroundings
from bellcrank.topology.tree import Tree, sees_machine

__all__ = ["POSE", "VELOCITY", "PairFunctions", "pair_functions"]

#: numbers of a link's pose (axes row by row, origin) and velocity (angular, linear), in the world
POSE, VELOCITY = 12, 6


class PairFunctions(NamedTuple):
    """Functions of inputs "pose" and "velocity", those of some links one after another."""

    links: tuple[int, ...]  #: without the ground
    loads: Function  #: what acts on the first body of each: moment about its origin and force, in the world
    energy: Function


def pair_functions(tree: Tree) -> PairFunctions:
    """The functions of all elements of a tree that act from outside of its loops."""
    links = _touched(tree)
    sizes = (("pose", POSE * len(links)), ("velocity", VELOCITY * len(links)))

    def loads(tracer: Tracer) -> list[Number]:
        seen = _Seen(tracer.graph, tree, _motions(tracer.graph, tree, links))
        total, out = seen.loads(), []
        for link in links:
            wrench = total.get(link, Force.zero())
            numbers = seen.bind(tree.numbers(link)) if link in tree.symbolic else tree.numbers(link)
            arm = seen.moving(link).axes.apply(numbers.origins[0])
            out += [*(wrench.moment - arm.cross(wrench.force)), *wrench.force]
        return _numbers(out)

    def energy(tracer: Tracer) -> list[Number]:
        return _numbers([_Seen(tracer.graph, tree, _motions(tracer.graph, tree, links)).energy()])

    inputs = ("pose", "velocity", *(("q", "u") if _reads_coordinates(tree) else ()),
              *(("tau",) if tree.forced else ()), "t")
    return PairFunctions(links, *(
        Function(name, _no_text, inputs, "totals", size, made=made, sizes=sizes)
        for name, size, made in (("loads of elements", 6 * len(links), loads), ("energy of elements", 1, energy))))


def _reads_coordinates(tree: Tree) -> bool:
    """Whether elements look at coordinates and speeds themselves: sums of them, and laws of the machine."""
    return any(isinstance(pair, SumForce) or sees_machine(pair) for pair in tree.pairs)


class _Seen:
    """A machine by traced motions of links, coordinates and speeds, in the world."""

    def __init__(self, graph: Graph, tree: Tree, moving: Callable[[int], Moving]) -> None:
        self.tree, self.moving, self.graph = tree, moving, graph
        self.bind = binder(tree, lambda name, i: graph.leaf((name, i)))
        self.time = graph.leaf(("t", 0))
        self.sight = MachineView(tree, lambda link, i: self._read(link)[0][i], lambda link, i: self._read(link)[1][i],
                                 moving, self.bind, self.time, Transform(Identity(), Vector.zero()), self._given)

    def _given(self, link: int, i: int) -> Number:
        return self.graph.leaf(("tau", int(self.tree.extended.u_start[link]) + i))

    def _read(self, link: int) -> tuple[list[Number], list[Number]]:
        """Coordinates and speeds of a joint, as laws of time say where it is prescribed."""
        whole = self.tree.extended
        joint, law = whole.joints[link], whole.prescribed[link]
        assert joint is not None
        q: list[Number] = [self.graph.leaf(("q", int(whole.q_start[link]) + i)) for i in range(joint.nq)]
        u: list[Number] = [self.graph.leaf(("u", int(whole.u_start[link]) + i)) for i in range(joint.nu)]
        return (q, u) if law is None else self.bind(law).values(self.time, q, u, u)[:2]

    def loads(self) -> dict[int, Force]:
        """What elements exert on links about their origins."""
        around = Surroundings(self.time, Identity(), self.sight)
        total: dict[int, Force] = {}
        for pair in self.tree.pairs:
            for link, wrench in element_loads(self.tree, pair, self.moving, self.bind, around):
                total[link] = total[link] + wrench if link in total else wrench
        return total

    def energy(self) -> Number:
        """What elements store."""
        total: Number = 0.0
        for pair in self.tree.pairs:
            if isinstance(pair, SumForce):
                total = total + self.bind(pair.along).at(self.time).energy(self.sight.total(pair)[0])
            else:
                total = total + self.bind(pair).energy(self.moving(pair.first), self.moving(pair.second))
        return total


def _touched(tree: Tree) -> tuple[int, ...]:
    """Links that elements lie between or look at, without the ground."""
    graph, found = Graph(), set[int]()

    def moving(link: int) -> Moving:
        found.add(link)
        return _motions(graph, tree, (link,))(link)

    seen = _Seen(graph, tree, moving)
    found.update(seen.loads())
    seen.energy()
    return tuple(sorted(found - {0}))


def _motions(graph: Graph, tree: Tree, links: tuple[int, ...]) -> Callable[[int], Moving]:
    place = {link: i for i, link in enumerate(links)}
    turn, shift = tree.ground_turn.tolist(), tree.ground_shift.tolist()
    still = Moving(General(Matrix3(*(Vector(*row) for row in turn))), Vector(*shift), Vector.zero(), Vector.zero())

    def moving(link: int) -> Moving:
        if not link:
            return still
        pose = [graph.leaf(("pose", POSE * place[link] + i)) for i in range(POSE)]
        rate = [graph.leaf(("velocity", VELOCITY * place[link] + i)) for i in range(VELOCITY)]
        axes = General(Matrix3(*(Vector(*pose[3 * i:3 * i + 3]) for i in range(3))))
        return Moving(axes, Vector(*pose[9:]), *Motion(Vector(*rate[:3]), Vector(*rate[3:])))

    return moving


def _numbers(entries: list[Number]) -> list[Number]:
    return [x if type(x) is Scalar else float(x) for x in entries]


def _no_text(sweeps: Any) -> Any:
    raise AssertionError("made of motions")
