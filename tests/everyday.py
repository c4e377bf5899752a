"""Which cases of large tables an everyday run takes; `pytest --all` and `make test-all` take every one.

Many tests are tables: every method times every machine times every way to ask. Their full products take longer than
an everyday run may. It takes a cover instead: a test with several parameters keeps enough of its cases that every
value of every parameter is there (`OFTEN` times where there are as many), chosen by a hash of their names, so that
every run and every worker takes the same ones. Tests with one parameter keep all their cases, unless they say
how many an everyday run needs::

    @pytest.mark.everyday(6)

Tests that take more than two seconds of a processor by themselves are left to `--all` as well: `slow.txt` lists them,
and ``pytest --costs FILE`` measures what every test takes. Published references, the agreement of all methods, pages
and the tests of the architecture are not in the list, however long they take.

Tests that are named on the command line are run whole, and slow ones of files that are named, too.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

MARK = "everyday(n): of a test with parameters, how many cases an everyday run takes; --all takes every one"

#: how often each value of a parameter is tried
OFTEN = 2
#: tests with fewer cases are run whole
FEW = 8
#: tests of more than two seconds, as "file::test"
SLOW = Path(__file__).with_name("slow.txt")


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


def slow() -> set[str]:
    """The tests that an everyday run leaves out."""
    return set(SLOW.read_text(encoding="utf-8").splitlines())


class Costs:
    """The plugin that writes what every test takes: seconds of a processor, children included, a line a test."""

    def __init__(self, file: str) -> None:
        self._file = file

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = sum(os.times()[:4])
        yield
        with open(self._file, "a", encoding="utf-8") as lines:
            lines.write(f"{sum(os.times()[:4]) - before:.2f}\t{item.nodeid}\n")


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
        if not any(argument.endswith(".py") for argument in config.args):
            left = slow()
            kept = {name for name in kept if name.removeprefix("tests/") not in left}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
        items[:] = [item for item in items if item.nodeid in kept]
