"""The figures and tables of the five papers, each computed anew by its name (public as ``bellcrank.papers``).

    bellcrank papers                          lists them
    bellcrank paper kang-yoon-table-5         computes one, prints it and says how far it is from the paper
    bellcrank papers --docs docs/papers       writes the pages that show them all

In Python, `names`, `find` and `compute`:

>>> import bellcrank as bc
>>> bc.papers.find("naudet-lefeber-terze-table-1").where
'Table 1'
>>> result = bc.papers.compute("kang-yoon-36-6n", short=True)
>>> result.holds, [c.name for c in result.table.columns][:3]
(True, ['joint', 'n', 'centroid'])

One module per paper holds a `SOURCE` and its `ITEMS`; nothing is imported before it is asked for. To add an item see
CONTRIBUTING.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bellcrank.arguments import checked
from bellcrank.errors import ModelError, hint
from bellcrank.papers.item import Agreement, ItemResult, Paper, PaperItem, PaperPlot, PaperTable

__all__ = [
    "Agreement",
    "ItemResult",
    "Paper",
    "PaperItem",
    "PaperPlot",
    "PaperTable",
    "compute",
    "find",
    "items_of",
    "names",
    "source_of",
    "sources",
]

#: modules of this package, one per paper
_MODULES = ("anderson_critchley", "rodriguez_jain_kreutz", "kang_yoon", "saha_schiehlen", "naudet_lefeber_terze")


def _module(key: str) -> Any:
    return import_module(f"bellcrank.papers.{key.replace('-', '_')}")


def sources() -> tuple[Paper, ...]:
    """The papers."""
    return tuple(_module(name).SOURCE for name in _MODULES)


@checked
def items_of(source: Paper) -> tuple[PaperItem, ...]:
    """The items of a paper, in its order."""
    return tuple(_module(source.key).ITEMS)


def names() -> tuple[str, ...]:
    """The names of all items.

    >>> "anderson-critchley-fig-6" in names()
    True
    """
    return tuple(item.name for source in sources() for item in items_of(source))


@checked
def find(name: str) -> PaperItem:
    """An item by its name; a name that is none is refused with the list of those there are."""
    known = {item.name: item for source in sources() for item in items_of(source)}
    if name not in known:
        raise ModelError(f"no item {name!r}{hint(name, known)} (there are {', '.join(known)})")
    return known[name]


@checked
def source_of(item: PaperItem) -> Paper:
    """The paper that an item is from."""
    return next(source for source in sources() if item.name.startswith(f"{source.key}-"))


@checked
def compute(name: str, short: bool = False) -> ItemResult:
    """An item computed anew; `short` in about a second, with less of it."""
    return find(name).compute(short)
