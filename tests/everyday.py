"""Which cases of large tables an everyday run takes; `pytest --all` and `make test-all` take every one.

Many tests are tables: every method times every machine times every way to ask. Their full products take longer than
an everyday run may. It takes a cover instead: a test with several parameters keeps enough of its cases that every
value of every parameter is there (`OFTEN` times where there are as many), chosen by a hash of their names, so that
every run and every worker takes the same ones. Tests with one parameter keep all their cases, unless they say
how many an everyday run needs::

    @pytest.mark.everyday(6)

Tests that are named on the command line are run whole.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest

MARK = "everyday(n): of a test with parameters, how many cases an everyday run takes; --all takes every one"

#: how often each value of a parameter is tried
OFTEN = 2
#: tests with fewer cases are run whole
FEW = 8


def place(item: pytest.Item) -> bytes:
    """Where a case stands in an order that its name alone decides."""
    return hashlib.sha256(item.nodeid.encode()).digest()


def cover(cases: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Cases in which every value of every parameter appears `OFTEN` times, or as often as there are cases of it."""
    seen: Counter[tuple[int, str]] = Counter()
    kept = []
    for case in sorted(cases, key=place):
        values = list(enumerate(case.name.partition("[")[2].rstrip("]").split("-")))
        if any(seen[value] < OFTEN for value in values):
            seen.update(values)
            kept.append(case)
    return kept


def everyday(cases: Sequence[pytest.Item]) -> list[pytest.Item]:
    """What an everyday run takes of the cases of one test."""
    mark = cases[0].get_closest_marker("everyday")
    if mark is not None:
        return sorted(cases, key=place)[:mark.args[0]]
    return list(cases) if len(cases) < FEW else cover(cases)


class Everyday:
    """The plugin that leaves the other cases out."""

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        named = any("::" in argument for argument in config.args)
        if named or config.getoption("--all"):
            return
        tests: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            tests[item.nodeid.partition("[")[0]].append(item)
        kept = {item.nodeid for cases in tests.values() for item in everyday(cases)}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
        items[:] = [item for item in items if item.nodeid in kept]
