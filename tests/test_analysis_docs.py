"""The code of docs/howto/analysis.md prints what the page says; its blocks build on each other."""

from __future__ import annotations

import numpy as np

from bellcrank.analyze.linear_models import derivative
from pages import check_prints, page_named

PAGE = page_named("analysis")


def test_code_prints_what_its_comments_say() -> None:
    check_prints(PAGE, 7)



def test_differences_find_their_step() -> None:
    """Functions that change over lengths from 0.01 to 10, and one that cannot be evaluated far away."""
    widths = np.array([0.01, 0.1, 1.0, 10.0])

    def function(x: np.ndarray) -> np.ndarray:
        y = x / widths
        out = np.stack([np.exp(y).sum(axis=1), np.sin(y + 0.3).sum(axis=1)], axis=1)
        out[np.abs(x[:, 2]) > 0.03] = np.nan
        return out

    found, error = derivative(function, np.full(4, 0.1), [slice(0, 2)])
    expected = np.array([[1.0], [np.cos(0.3)]]) / widths
    assert np.abs(found / expected - 1.0).max() < 1e-11
    assert np.all(np.abs(found - expected).max(axis=0) < 10.0 * error[0] + 1e-14 / widths)
