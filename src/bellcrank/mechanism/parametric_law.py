"""Functions that use parameters: of time, of a coordinate, of a displacement and its rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bellcrank.mechanism.forces.element import Element
from bellcrank.scalar.borrowed import traced_with_borrowed
from bellcrank.scalar.derivative import tangents
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import LEAF, Graph, Number, Scalar, reachable

__all__ = ["Expressions", "ParametricLaw", "parametric"]


@dataclass(frozen=True)
class Expressions:
    """What a function returns, as expressions with the leaves ("argument", k) and ("parameter", name)."""

    results: tuple[Number, ...]
    several: bool  #: whether it returns a sequence
    names: tuple[str, ...]  #: of the parameters

    def __call__(self, arguments: Sequence[Number], values: Sequence[Number]) -> Any:
        """The function of its arguments and the values of the parameters, over any scalar."""
        known: dict[tuple[str, int | str], Number] = {("argument", k): x for k, x in enumerate(arguments)}
        known |= {("parameter", name): x for name, x in zip(self.names, values, strict=True)}
        found = evaluate(self.results, known)
        return found if self.several else found[0]


@dataclass(frozen=True)
class ParametricLaw(Element):
    """A function that uses parameters of a mechanism, which are bound as those of force elements are.

    >>> import bellcrank as bc
    >>> a = bc.Mechanism("m").parameter("a", 2.0)
    >>> law = parametric(lambda t: a * t + 1.0, 1)
    >>> law.bound(lambda value: (5.0,) if isinstance(value, tuple) else value)(3.0)
    16.0
    """

    expressions: Expressions
    values: tuple[Number, ...]

    def __call__(self, *arguments: Number) -> Any:
        return self.expressions(arguments, self.values)

    def entry(self, index: int) -> ParametricLaw:
        """One of several results, as a law of its own."""
        return replace(self, expressions=replace(self.expressions, results=(self.expressions.results[index],),
                                                 several=False))

    def by_parameter(self, name: str) -> ParametricLaw | None:
        """How the results change with a parameter, as such a law; None if they do not.

        >>> import bellcrank as bc
        >>> a = bc.Mechanism("m").parameter("a", 2.0)
        >>> slope = parametric(lambda t: a * a * t, 1).by_parameter("a")
        >>> slope.bound(lambda value: (5.0,) if isinstance(value, tuple) else value)(3.0)
        30.0
        """
        leaves = {x: {0: 1.0} for x in reachable(self.expressions.results) if x.op is LEAF and x.args[0][1] == name}
        rows = tangents(self.expressions.results, leaves)
        if not any(rows):
            return None
        return replace(self, expressions=replace(self.expressions, results=tuple(row.get(0, 0.0) for row in rows)))

    def __repr__(self) -> str:
        return f"<law of {', '.join(self.expressions.names)}>"


def parametric(law: Callable[..., Any], arguments: int, what: str = "a law") -> Any:
    """A function of so many arguments that closes over parameters as a `ParametricLaw`; others as they are."""
    several = False

    def trace(graph: Graph) -> list[Number]:
        nonlocal several
        answer = law(*(graph.leaf(("argument", k)) for k in range(arguments)))
        several = not isinstance(answer, (Scalar, int, float))
        return [x if isinstance(x, Scalar) else float(x) for x in (answer if several else [answer])]

    graph = Graph()
    try:
        results, own = traced_with_borrowed(trace, Graph(), graph.leaf, what)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError):  # checks of laws say why
        return law
    if own is None:
        return law
    keys = {node.args[0] for node in reachable(results) if node.op is LEAF}
    names = sorted(name for what, name in keys if what == "parameter")
    return ParametricLaw(Expressions(tuple(results), several, tuple(names)),
                         tuple(own.leaf(("parameter", name)) for name in names))
