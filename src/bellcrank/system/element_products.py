"""Elements between links of machines that are rolled into loops, differentiated: loads as functions of the motions of
links, which are functions of the state; and what they act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.derivatives.pair_functions import POSE, VELOCITY, PairFunctions
from bellcrank.lowering.function import Function, part_starts
from bellcrank.system.array_products import Chain, OpenProducts, Rates, added
from bellcrank.topology.tree import wrench_order

__all__ = ["Loaded", "OfMotions"]

#: what the motions of links, and loads, are read from
_STATE = ("q", "u", "tau", "t", "parameters")


class OfMotions(NamedTuple):
    """A function of the motions of some links."""

    function: Function
    links: tuple[int, ...]
    functions: Mapping[str, Function]  #: with "poses" and "velocities" of all links

    def _parts(self) -> tuple[tuple[str, Function, int], ...]:
        return (("pose", self.functions["poses"], POSE), ("velocity", self.functions["velocities"], VELOCITY))

    def _own(self) -> tuple[str, ...]:
        """What the function may read besides motions."""
        return (*self.function.inputs, "t", "parameters")

    def _chosen(self, width: int) -> list[int]:
        return [width * (link - 1) + i for link in self.links for i in range(width)]

    def forward(self, at: OpenProducts, rates: Rates) -> tuple[Floats, Floats]:
        at, inner = _moving(at), {x: a for x, a in rates.items() if x in _STATE and x in self._own()}
        given = {}
        for name, function, width in self._parts():
            value, change = at.forward(function, {x: a for x, a in rates.items() if x in _STATE})
            given[name], inner[name] = value[..., self._chosen(width)], change[..., self._chosen(width)]
        return at.also(**given).forward(self.function, inner)

    def backward(self, at: OpenProducts, by: Sequence[str], weights: Floats) -> tuple[Floats, dict[str, Floats]]:
        at, given = _moving(at), {}
        for name, function, width in self._parts():
            given[name] = at.forward(function, {})[0][..., self._chosen(width)]
        value, found = at.also(**given).backward(self.function, (*by, "pose", "velocity"), weights)
        out = {x: a for x, a in found.items() if x in by}
        for name, function, width in self._parts():
            own = found[name]
            whole = np.zeros((*own.shape[:-1], width * at.run.tree.n))
            whole[..., self._chosen(width)] = own
            out = added(out, at.backward(function, [x for x in by if x in _STATE], whole)[1])
        return value, out


def _moving(at: OpenProducts) -> OpenProducts:
    """With speeds, and the time, which loads read in any case."""
    given = {"u": np.zeros(at.run.tree.nu)} if "u" not in at.given else {}
    return at.also(**given)


class Loaded(NamedTuple):
    """A function of wrenches under the loads of elements between links."""

    inner: Chain
    pairs: PairFunctions
    functions: Mapping[str, Function]

    def _loads(self) -> OfMotions:
        return OfMotions(self.pairs.loads, self.pairs.links, self.functions)

    def _entries(self, at: OpenProducts) -> list[int]:
        """The entries of the input of wrenches that belong to the first bodies of the links."""
        starts = part_starts(at.run.tree, "wrench")
        return [int(starts[link]) + i for link in self.pairs.links for i in range(6)]

    def _under(self, at: OpenProducts, loads: Floats) -> OpenProducts:
        """The same with the loads among the wrenches, bodies in the order of users."""
        names = at.kernels.tree.body_names[1:]
        flat = np.zeros((*loads.shape[:-1], 6 * len(names)))
        flat[..., self._entries(at)] = loads
        whole = np.zeros((*loads.shape[:-1], len(names), 6))
        whole[..., wrench_order(at.run.tree), :] = flat.reshape(*loads.shape[:-1], len(names), 6)
        given = 0.0 if at.wrenches is None else at.kernels.model.wrench_rows(at.wrenches)
        return OpenProducts(at.kernels, at.run, at.given, whole + given, at.t)

    def forward(self, at: OpenProducts, rates: Rates) -> tuple[Floats, Floats]:
        loads, change = self._loads().forward(at, {x: a for x, a in rates.items() if x in _STATE})
        moved = np.zeros((*change.shape[:-1], 6 * (len(at.kernels.tree.body_names) - 1)))
        moved[..., self._entries(at)] = change
        return self.inner.forward(self._under(at, loads), {**rates, "wrench": moved + rates.get("wrench", 0.0)})

    def backward(self, at: OpenProducts, by: Sequence[str], weights: Floats) -> tuple[Floats, dict[str, Floats]]:
        loads, _ = self._loads().forward(at, {})
        value, out = self.inner.backward(self._under(at, loads), tuple(dict.fromkeys((*by, "wrench"))), weights)
        felt = out["wrench"][..., self._entries(at)]
        _, more = self._loads().backward(at, [x for x in by if x in _STATE], felt)
        return value, added({x: a for x, a in out.items() if x in by}, more)
