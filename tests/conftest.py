"""Shared by all tests: compiled code goes to a throw-away folder, and property tests repeat exactly."""

from __future__ import annotations

import os
import shutil
import tempfile

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci")


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported: nothing of the user's own cache is read or written."""
    place = tempfile.mkdtemp(prefix="bellcrank-tests-")
    before = os.environ.get("BELLCRANK_CACHE")
    os.environ["BELLCRANK_CACHE"] = place

    def restore() -> None:
        shutil.rmtree(place, ignore_errors=True)
        if before is None:
            os.environ.pop("BELLCRANK_CACHE", None)
        else:
            os.environ["BELLCRANK_CACHE"] = before

    config.add_cleanup(restore)


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers in every run."""
    return np.random.default_rng(20240229)
