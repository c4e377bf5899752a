"""Every pair of shapes beside coal, in short: benchmarks/contact_shapes.py has thousands of poses."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from bellcrank.mechanism.contact.narrow_phase import known_pair, seen_by_contact

pytest.importorskip("coal")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from contact_shapes import MAKE, compare

NAMES = list(MAKE)
PAIRS = [(a, b) for i, a in enumerate(NAMES) for b in NAMES[i:]
         if known_pair(*(seen_by_contact(MAKE[k](np.random.default_rng(0)), k) for k in (a, b)))]
#: pairs with faces and edges: which one touches changes within the overlap, and depths with it, in so many of 1000
CHANGES = 10


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_touches_depths_and_normals(first: str, second: str) -> None:
    """1 mm inside each other: no touch is missed, and depths are within 1 %; 1 mm apart: nothing touches."""
    row = compare(first, second, 150, 1e-3, 11, sizes=3)
    assert row.poses > 140 and row.missed == 0 and row.early <= row.poses // 150
    most = -(-row.poses * CHANGES // 1000) if {first, second} & {"box", "cylinder", "mesh", "cone"} else 0
    assert row.depth <= most and row.normal <= most and row.swapped < 1e-4
