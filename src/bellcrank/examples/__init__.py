"""Built-in machines, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from numbers import Integral
from typing import Any

from bellcrank.arguments import checked
from bellcrank.errors import ModelError
from bellcrank.examples import chains, ladders, linkages
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["load", "names"]

_MAKERS: dict[str, Callable[..., Mechanism]] = {
    "pendulum": chains.pendulum, "double_pendulum": chains.double_pendulum, "chain": chains.random_chain,
    "gyroscope": chains.gyroscope, "scara": chains.scara, "arm": chains.arm, "quadruped": chains.quadruped,
    "crane": chains.crane,
    # with closed loops
    "four_bar": linkages.four_bar, "slider_crank": linkages.slider_crank, "five_bar": linkages.five_bar,
    "redundant_five_bar": linkages.redundant_five_bar, "jansen": linkages.jansen, "andrews": linkages.andrews,
    "scissor_lift": linkages.scissor_lift, "bennett": ladders.bennett, "bricard": ladders.bricard,
    "quarter_car": linkages.quarter_car, "double_wishbone": linkages.double_wishbone,
    "whipple_bicycle": linkages.whipple_bicycle, "stewart": chains.stewart,
    "delta": chains.delta, "ladder": ladders.ladder, "rope_ladder": ladders.rope_ladder,
    "four_bar_chain": ladders.four_bar_chain, "n_four_bars": ladders.n_four_bars,
    "linkage_quadruped": chains.linkage_quadruped}

#: how many cells or links an example may have
_MANY = 1_000_000


def names() -> list[str]:
    """Names that `bellcrank.load` understands.

    >>> "pendulum" in names()
    True
    """
    return sorted(_MAKERS)


@checked
def load(name: str, **options: Any) -> Mechanism:
    """A fresh copy of a built-in machine; options are those of its maker, such as a number of cells.

    >>> load("ladder", cells=2)
    <Mechanism 'ladder of 2': 5 bodies, 7 joints>
    """
    if name not in _MAKERS:
        raise ModelError(f"no example {name!r}; there are {', '.join(names())}")
    known = inspect.signature(_MAKERS[name]).parameters
    for option, value in options.items():
        if option not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise ModelError(f"example {name!r} has no option {option!r}; {takes}")
        if known[option].annotation == "int" and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise ModelError(f"example {name!r}: {option} takes a whole number, got {value!r}")
        if option != "seed" and isinstance(value, Integral) and int(value) > _MANY:
            raise ModelError(f"example {name!r}: {option} is at most {_MANY}, got {value}: a larger machine would not "
                             "fit in memory")
    return _MAKERS[name](**options)
