"""Products of derivatives with vectors on arrays, function by function: kernels of `derivatives.open_products`, run one
after another where what is asked for is made of several functions, or moves along a closed machine.

A *chain* goes forward, from rates of inputs to the rate of a result, or backward, from weights of the result to
derivatives by inputs; inputs go by the names of kernels. Every pass costs a few times the functions, whatever the
number of speeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.derivatives.open_products import closed_product, open_product, product_widths
from bellcrank.lowering.function import Function

if TYPE_CHECKING:
    import numpy.typing as npt

    from bellcrank.system.evaluator import Evaluator
    from bellcrank.system.kernels import Kernels, Wrenches

__all__ = ["Chain", "ClosedInverse", "ClosedMotion", "OpenProducts", "Plain", "Rates", "Sum", "added"]

Rates = Mapping[str, Floats]

#: the order of inputs, so that a product has one name
_ORDER = ("q", "u", "tau", "udot", "p", "wrench", "pose", "velocity", "t", "parameters")


class OpenProducts:
    """Products of single functions at given states, every coordinate and speed by itself."""

    def __init__(self, kernels: Kernels, run: Evaluator, given: Rates, wrenches: Wrenches, t: npt.ArrayLike) -> None:
        self.kernels, self.run, self.given, self.wrenches, self.t = kernels, run, dict(given), wrenches, t

    def also(self, **given: Floats) -> OpenProducts:
        """The same with other inputs."""
        return OpenProducts(self.kernels, self.run, {**self.given, **given}, self.wrenches, self.t)

    def _read(self, function: Function, by: Sequence[str], forced: bool) -> tuple[str, ...]:
        """Those of the variables that the function may depend on, in order."""
        tree = self.run.tree
        shared = self.kernels.kept("shared inputs", lambda: (*(("t",) if tree.timed else ()),
                                                             *(("parameters",) if tree.parameters else ())))
        known = {*function.inputs, *shared, *(("wrench",) if forced else ())}
        return tuple(x for x in _ORDER if x in by and x in known)

    def _size(self, function: Function) -> int:
        return self.kernels.kept(("size", function.name), lambda: function.size(self.run.tree))

    def product(self, function: Function, by: tuple[str, ...], backward: bool, closing: Function | None = None
                ) -> Function:
        """The function that computes a product."""
        tree = self.run.tree
        made = self.kernels.kept(("product", function.name, by, backward, closing is None), lambda: (
            open_product(function, by, backward, tree) if closing is None else
            closed_product(function, closing, by, tree)))
        self.kernels.functions[made.name] = made
        return made

    def forward(self, function: Function, rates: Rates, forced: bool = False) -> tuple[Floats, Floats]:
        """The result, and its rate. `forced`: wrenches act on it."""
        by, size = self._read(function, tuple(rates), forced), self._size(function)
        given = self.given | {f"along{i}": rates[x] for i, x in enumerate(by)}
        rows = self.kernels.evaluate(self.product(function, by, False).name, given, self.wrenches if forced else None,
                                     self.t, self.run).result
        return rows[..., :size], rows[..., size:]

    def backward(self, function: Function, by: Sequence[str], weights: Floats, forced: bool = False,
                 closing: Function | None = None) -> tuple[Floats, dict[str, Floats]]:
        """The result, and the derivatives of its sum with weights, where it depends on a variable at all; with
        `closing`, "closed_q" and "closed_u" as well (see `closed_product`)."""
        sought, size = self._read(function, by, forced), self._size(function)
        made = self.product(function, sought, True, closing)
        rows = self.kernels.evaluate(made.name, self.given | {"weights": weights}, self.wrenches if forced else None,
                                     self.t, self.run).result
        out, at, nu = {}, size, self.run.tree.nu
        parts = dict(zip(sought, product_widths(function, sought, self.run.tree), strict=True))
        for x, n in parts.items() if closing is None else {**parts, "closed_q": nu, "closed_u": nu}.items():
            out[x] = rows[..., at:at + n]
            at += n
        return rows[..., :size], out


class Chain(Protocol):
    """What can be differentiated: made of functions."""

    def forward(self, at: OpenProducts, rates: Rates) -> tuple[Floats, Floats]:
        """The result, and its rate."""

    def backward(self, at: OpenProducts, by: Sequence[str], weights: Floats) -> tuple[Floats, dict[str, Floats]]:
        """The result, and the derivatives of its sum with weights."""


class Plain(NamedTuple):
    """One function."""

    function: Function
    forced: bool = False  #: whether wrenches act on it

    def forward(self, at: OpenProducts, rates: Rates) -> tuple[Floats, Floats]:
        return at.forward(self.function, rates, self.forced and at.wrenches is not None)

    def backward(self, at: OpenProducts, by: Sequence[str], weights: Floats) -> tuple[Floats, dict[str, Floats]]:
        return at.backward(self.function, by, weights, self.forced and at.wrenches is not None)


class Sum(NamedTuple):
    """A sum of functions, each with a factor."""

    parts: tuple[tuple[float, Chain], ...]

    def forward(self, at: OpenProducts, rates: Rates) -> tuple[Floats, Floats]:
        found = [(factor, part.forward(at, rates)) for factor, part in self.parts]
        values, changes = (sum((factor * pair[i] for factor, pair in found[1:]), found[0][0] * found[0][1][i])
                           for i in (0, 1))
        return values, changes

    def backward(self, at: OpenProducts, by: Sequence[str], weights: Floats) -> tuple[Floats, dict[str, Floats]]:
        value: Floats = np.zeros(())
        out: dict[str, Floats] = {}
        for factor, part in self.parts:
            own, found = part.backward(at, by, weights * factor)
            value = value + factor * own
            out = added(out, found)
        return value, out


class ClosedInverse(NamedTuple):
    """Forces at the independent speeds that do the same as those that the spanning tree needs."""

    needed: Chain
    projected: Function  #: `independent_forces`

    def forward(self, at: OpenProducts, rates: Rates) -> tuple[Floats, Floats]:
        force, change = self.needed.forward(at, rates)
        return at.also(tau=force).forward(self.projected, {**rates, "tau": change})

    def backward(self, at: OpenProducts, by: Sequence[str], weights: Floats) -> tuple[Floats, dict[str, Floats]]:
        force, _ = self.needed.forward(at, {})
        value, out = at.also(tau=force).backward(self.projected, (*by, "tau"), weights)
        _, more = self.needed.backward(at, by, out.pop("tau"))
        return value, added(out, more)


def added(first: Rates, second: Rates) -> dict[str, Floats]:
    """Derivatives by the same variables, summed."""
    out = dict(first)
    for x, array in second.items():
        out[x] = out[x] + array if x in out else array
    return out


class ClosedMotion:
    """How a closed machine moves along its independent speeds, (1) and (2) of `derivatives.directions`: rates of these
    to rates of all of q, u and udot, and back.

    `independent` are the speeds that directions belong to; those of the plan may be others, and x of these make the
    same motion as δ of the former if N x = δ there. A motion r is completed by r + N x, so that it is δ there.
    """

    def __init__(self, at: OpenProducts, functions: Mapping[str, Function], independent: Sequence[int]) -> None:
        self.nu, self.inputs = at.run.tree.nu, set(at.given)
        self.at, self.functions = at if "u" in at.given else at.also(u=np.zeros(self.nu)), functions
        self.own, self.asked = list(at.run.tree.plan.independent), list(independent)
        self.turn: Floats | None = None
        if self.own != self.asked:
            batch, k = max(a.ndim for a in self.at.given.values()) - 1, len(self.own)
            batch = max(batch, np.ndim(at.t), at.kernels.parameter_array().ndim - 1 if at.run.tree.parameters else 0)
            columns = self._along(np.eye(k).reshape(k, *(1,) * batch, k))
            self.turn = _inverses(np.moveaxis(columns[..., self.asked], 0, -1))

    # -- forward --------------------------------------------------------------------------------
    def forward(self, rates: Rates) -> dict[str, Floats]:
        """Rates of everything."""
        shared = {x: rates[x] for x in ("t", "parameters") if x in rates}
        out = {x: a for x, a in rates.items() if x not in ("q", "u", "udot")}
        none = np.zeros(len(self.asked))
        still = self.at.forward(self.functions["displacements"], shared)[1] if shared else np.zeros(self.nu)
        out["q"] = self._completed(still, rates.get("q", none))
        ways = {"q": out["q"], **shared}
        if "u" in self.inputs:
            out["u"] = self._followed("dependent_speeds", ways, "u", rates.get("u", none))
        if "udot" in self.inputs:
            ways["u"] = out["u"]
            out["udot"] = self._followed("dependent_accelerations", ways, "udot", rates.get("udot", none))
        return out

    def _followed(self, name: str, ways: Rates, x: str, change: Floats) -> Floats:
        """How speeds or accelerations change with everything else, and with the independent ones."""
        if self.turn is None:  # both in one pass
            return self.at.forward(self.functions[name], {**ways, x: self._whole(change)})[1]
        return self._completed(self.at.forward(self.functions[name], ways)[1], change)

    def _whole(self, x: Floats) -> Floats:
        """Rates of all speeds, zero but for the plan's independent ones."""
        whole = np.zeros((*x.shape[:-1], self.nu))
        whole[..., self.own] = x
        return whole

    def _along(self, x: Floats) -> Floats:
        """N x."""
        return self.at.forward(self.functions["dependent_speeds"], {"u": self._whole(x)})[1]

    def _completed(self, r: Floats, change: Floats) -> Floats:
        x = change if self.turn is None else (self.turn @ (change - r[..., self.asked])[..., None])[..., 0]
        return r + self._along(x)

    # -- backward -------------------------------------------------------------------------------
    def backward_at_once(self, chain: Plain, by: Sequence[str], weights: Floats) -> tuple[Floats, dict[str, Floats]]:
        """The value of a function of groups, and the derivatives of its sum with weights along the closed machine, by
        one kernel; where directions are those of the plan."""
        others = [x for x in by if x not in ("q", "u")]
        value, found = self.at.backward(chain.function, ("q", "u", *others), weights,
                                        chain.forced and self.at.wrenches is not None,
                                        self.functions["dependent_speeds"])
        out = {x: found[x] for x in others if x in found}
        out |= {x: found[f"closed_{x}"][..., self.own] for x in ("q", "u")}
        shared = tuple(x for x in by if x in ("t", "parameters"))
        if shared:
            out = added(out, self.at.backward(self.functions["displacements"], shared, found["q"])[1])
        return value, out

    def backward(self, found: Rates, by: Sequence[str]) -> dict[str, Floats]:
        """Derivatives along the closed machine from those by every coordinate and speed by itself."""
        out = {x: a for x, a in found.items() if x not in ("q", "u", "udot") and x in by}
        weights = {x: found[x] for x in ("q", "u", "udot") if x in found}
        shared = tuple(x for x in by if x in ("t", "parameters"))
        for x, name, ways in (("udot", "dependent_accelerations", ("q", "u", *shared)),
                              ("u", "dependent_speeds", ("q", *shared))):
            if x in weights:
                rest, out[x], more = self._pulled(weights[x], name, ways)
                weights |= {w: weights[w] + more[w] if w in weights else more[w] for w in ("q", "u") if w in more}
                out |= {w: out[w] + more[w] if w in out else more[w] for w in shared if w in more}
        if "q" in weights:
            rest, out["q"] = self._split(weights["q"])
            if shared:
                out = added(out, self.at.backward(self.functions["displacements"], shared, rest)[1])
        return out

    def _pulled(self, weights: Floats, name: str, ways: tuple[str, ...]
                ) -> tuple[Floats, Floats, dict[str, Floats]]:
        """Derivatives of a completed motion: by its directions, and through what it follows."""
        function = self.functions[name]
        if self.turn is None and name == "dependent_speeds":  # both in one pass
            more = dict(self.at.backward(function, (*ways, "u"), weights)[1])
            return weights, more.pop("u")[..., self.own], more
        rest, along = self._split(weights)
        return rest, along, self.at.backward(function, ways, rest)[1]

    def _split(self, weights: Floats) -> tuple[Floats, Floats]:
        """For weights of a completed motion, those of the motion r, and the derivatives by δ."""
        x = self.at.backward(self.functions["dependent_speeds"], ("u",), weights)[1]["u"][..., self.own]
        if self.turn is None:
            return weights, x
        along = (x[..., None, :] @ self.turn)[..., 0, :]
        rest = np.broadcast_to(weights, (*along.shape[:-1], self.nu)).copy()
        rest[..., self.asked] -= along
        return rest, along


def _inverses(matrices: Floats) -> Floats:
    """Inverses of square matrices, NaN where there is none."""
    singular = np.linalg.det(matrices) == 0.0
    return np.asarray(np.linalg.inv(np.where(singular[..., None, None], np.nan, matrices)), dtype=np.float64)
