"""An everyday run leaves cases out, but no value of any parameter."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import everyday


def case(*values: str, mark: int | None = None) -> Any:
    name = f"test_it[{'-'.join(values)}]"
    marked = None if mark is None else SimpleNamespace(args=(mark,))
    return SimpleNamespace(name=name, nodeid=f"tests/test_x.py::{name}", get_closest_marker=lambda _: marked)


def test_every_value_is_kept() -> None:
    machines, methods = [f"machine{i}" for i in range(9)], [f"method{i}" for i in range(5)]
    cases = [case(*values) for values in product(machines, methods)]
    kept = [c.name.partition("[")[2].rstrip("]").split("-") for c in everyday.everyday(cases)]
    assert len(kept) <= everyday.OFTEN * (len(machines) + len(methods)) < len(cases)
    for i, values in enumerate((machines, methods)):
        assert all(sum(words[i] == value for words in kept) >= everyday.OFTEN for value in values)


def test_one_parameter_keeps_all() -> None:
    cases = [case(f"robot{i}") for i in range(30)]
    assert everyday.everyday(cases) == sorted(cases, key=everyday.place)


def test_few_cases_and_marks() -> None:
    few = [case(a, b) for a, b in product("ab", "cd")]
    assert everyday.everyday(few) == few
    some, same = ([c.name for c in everyday.everyday([case(str(i), mark=3) for i in order])]
                  for order in (range(10), reversed(range(10))))
    assert len(some) == 3 and some == same


def test_slow_tests_exist() -> None:
    """What was renamed would be run every day again, without a word."""
    here = everyday.SLOW.parent
    for name in everyday.slow():
        file, _, test = name.partition("::")
        assert f"def {test.partition('[')[0]}(" in (here / file).read_text(encoding="utf-8"), name
