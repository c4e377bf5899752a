"""Loop joints with quaternions that nothing reads, in runs of fixed steps: they follow from their links once a step.

The stages leave them where they are, at no cost. The corrections at the end of the step put them where the links are
(exact, whatever the step: see `lowering.loop_joints`), and give them the links' speeds there; both do not count in how
far a correction moved. Cost: that of one correction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from bellcrank.lowering.function import Function, Tracer
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import LEAF, Number, reachable
from bellcrank.system.evaluator import CompiledEvaluator
from bellcrank.topology.tree import LoopJoint

__all__ = ["IdleJoints", "idle_joints"]

#: input of `displaced` and `sped`: coordinates, then speeds, of idle joints
SETTLED = "settled"
_FUNCTIONS = ("coordinate_rates", "forward_dynamics", "corrections", "displaced", "sped")


def idle_joints(run: CompiledEvaluator, functions: Mapping[str, Function], wrenches: bool,
                reading: Iterable[Number]) -> IdleJoints | None:
    """Those of a machine, none if there are none or its functions are loops over records; `reading` are graphs that
    are evaluated besides."""
    balls = [own for own in run.tree.loop_joints if own.closure.kind.nq > own.closure.kind.nu and not own.open]
    if not balls or any(not isinstance(run.trace(functions[n], wrenches and n == "forward_dynamics"), list)
                        for n in _FUNCTIONS):
        return None
    found = run.trace(functions["forward_dynamics"], wrenches)
    assert isinstance(found, list)
    loop = run.tree.loop_speeds()
    read = {node.args[0] for node in reachable([*(x for x, own in zip(found, loop, strict=True) if not own), *reading])
            if node.op is LEAF}
    idle = tuple(own for own in balls if read.isdisjoint((*(("q", i) for i in _range(own.q)),
                                                          *(("u", i) for i in _range(own.u)))))
    return IdleJoints(functions, idle, run.tree.nu) if idle else None


def _range(entries: slice) -> range:
    return range(entries.start, entries.stop)


@dataclass(frozen=True)
class IdleJoints:
    """The functions of a run that leave some loop joints to its corrections."""

    plain: Mapping[str, Function]
    joints: tuple[LoopJoint, ...]
    nu: int

    @cached_property
    def coordinates(self) -> list[int]:
        return [i for own in self.joints for i in _range(own.q)]

    @cached_property
    def speeds(self) -> list[int]:
        return [i for own in self.joints for i in _range(own.u)]

    @property
    def size(self) -> int:
        """Numbers that corrections keep for `displaced` and `sped`."""
        return len(self.coordinates) + len(self.speeds)

    @cached_property
    def functions(self) -> Mapping[str, Function]:
        """All functions, by the names of those in whose places they are."""
        rest = ((SETTLED, self.size),)
        made: dict[str, tuple[Callable[[Tracer], list[Number]], dict[str, Any]]] = {
            "coordinate_rates": (self._rates, {}), "forward_dynamics": (self._accelerations, {}),
            "corrections": (self._corrections, {"layout": "totals", "width": 2 * self.nu + self.size}),
            "displaced": (self._displaced, {"sizes": rest}), "sped": (self._sped, {"sizes": rest})}
        return {**self.plain, **{name: self._variant(name, *how) for name, how in made.items()}}

    def _variant(self, name: str, made: Callable[[Tracer], list[Number]], rest: dict[str, Any]) -> Function:
        plain = self.plain[name]
        inputs = (*plain.inputs, SETTLED) if "sizes" in rest else plain.inputs
        return replace(plain, name=f"{plain.name} without idle joints", made=made, whole=True, groups=False,
                       bases=False, every_joint=False, loop_joints="", keeps_loop_joints=True, inputs=inputs, **rest)

    def _rates(self, tracer: Tracer) -> list[Number]:
        return _with(tracer(self.plain["coordinate_rates"]), self.coordinates)

    def _accelerations(self, tracer: Tracer) -> list[Number]:
        return _with(tracer(self.plain["forward_dynamics"]), self.speeds)

    def _corrections(self, tracer: Tracer) -> list[Number]:
        """As ever for others; then where idle joints are, and their speeds there."""
        nu, leaf = tracer.tree.nu, tracer.graph.leaf
        found = tracer(self.plain["corrections"])
        moved = tracer(self.plain["displaced"])
        q = evaluate([moved[i] for i in self.coordinates],
                     lambda key: found[key[1]] if key[0] == "dq" else leaf(key))
        there = {("q", i): x for i, x in zip(self.coordinates, q, strict=True)}
        changes = evaluate([found[nu + v] for v in self.speeds], lambda key: there[key] if key in there else leaf(key))
        u = [leaf(("u", v)) + x for v, x in zip(self.speeds, changes, strict=True)]
        return [*_with(found, [*self.speeds, *(nu + v for v in self.speeds)]), *q, *u]

    def _displaced(self, tracer: Tracer) -> list[Number]:
        return self._settled(tracer, "displaced", self.coordinates, 0)

    def _sped(self, tracer: Tracer) -> list[Number]:
        return self._settled(tracer, "sped", self.speeds, len(self.coordinates))

    def _settled(self, tracer: Tracer, name: str, entries: list[int], first: int) -> list[Number]:
        found = list(tracer(self.plain[name]))
        for k, entry in enumerate(entries, first):
            found[entry] = tracer.graph.leaf((SETTLED, k))
        return found


def _with(entries: list[Number], zero: Iterable[int]) -> list[Number]:
    """The entries, some of them zero."""
    out = list(entries)
    for i in zero:
        out[i] = 0.0
    return out
