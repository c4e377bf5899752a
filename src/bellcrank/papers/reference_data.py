"""Independent solutions that items are compared with."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["reference"]


@cache
def _all() -> dict[str, Any]:
    return dict(json.loads(files("bellcrank.papers").joinpath("reference_solutions.json").read_text(encoding="utf-8")))


def reference(machine: str) -> Any:
    """The solutions for a machine: those of its branches, where it has several.

    >>> reference("four_bar")["open_elbow_up"]["driven"]["t"][:2]
    [0.0, 2.5]
    """
    return _all()[machine]
