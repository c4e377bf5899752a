"""Samples that are made when they are asked for: of billions of runs, those of a chunk are in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, random_source
from bellcrank.errors import ModelError
from bellcrank.studies.random_samples import BITS, EDGE, check_draw, quantiles_of, told_distribution

__all__ = ["METHODS", "DrawnSamples", "drawn_samples"]

Whole = npt.NDArray[np.uint64]

#: ways to draw
METHODS = ("latin_hypercube", "sobol", "random")
#: rounds of the permutation of a Latin hypercube
_ROUNDS = 6


@dataclass(frozen=True)
class DrawnSamples:
    """What `drawn_samples` returns: rows of values, the same wherever and in which parts they are made."""

    distributions: Mapping[str, Any] = field(repr=False)
    runs: int
    method: str
    seed: int

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.distributions)

    def rows(self, first: int, last: int) -> Floats:
        """Rows first to last - 1, (rows, columns). Cost: O(rows)."""
        places = {"latin_hypercube": _latin, "sobol": _sobol, "random": _random}[self.method](
            len(self.names), self.runs, self.seed, first, last)
        places = np.clip(places, EDGE, 1.0 - 2.0 * EDGE)
        columns = [np.asarray(quantiles_of(name, given)(places[:, k]), dtype=float)
                   for k, (name, given) in enumerate(self.distributions.items())]
        return np.stack(columns, axis=-1)

    def identity(self) -> tuple[Any, ...]:
        """What tells these samples from others."""
        told = tuple((name, told_distribution(given)) for name, given in self.distributions.items())
        return told, self.runs, self.method, self.seed, self.rows(0, min(self.runs, 16))


def drawn_samples(distributions: Mapping[str, Any], runs: int, *, method: str = "random", seed: int = 0
                  ) -> DrawnSamples:
    """Samples for `sweep` that are made chunk by chunk: for numbers of runs that do not fit into memory.

    `distributions` as in `latin_hypercube`. `method` is "random", "sobol" (the values of `random_samples` and `sobol`
    to the last bit) or "latin_hypercube" (one run in each of `runs` equally probable ranges, too, but others than those
    of `latin_hypercube`: ranges follow each other by a keyed permutation, of which no table is made). Cost: O(1).

    >>> samples = drawn_samples({"mass": "normal(2, 0.1)"}, 10**9, method="sobol")
    >>> samples.rows(10**8, 10**8 + 3).shape
    (3, 1)
    >>> from bellcrank import random_samples
    >>> bool((drawn_samples({"x": (0, 1)}, 50).rows(0, 50)[:, 0] == random_samples({"x": (0, 1)}, 50).x).all())
    True
    """
    if method not in METHODS:
        raise ModelError(f"drawn_samples: no method {method!r}; there are {', '.join(METHODS)}")
    check_draw("drawn_samples", distributions, runs, seed)
    for name, given in distributions.items():
        quantiles_of(f"drawn_samples: {name}", given)  # says what is wrong with it
    made = DrawnSamples({str(name): given for name, given in distributions.items()}, int(runs), method, int(seed))
    if not np.isfinite(made.rows(0, min(made.runs, 1000))).all():
        raise ModelError("drawn_samples: some distributions give values that are not finite")
    return made


def _random(columns: int, runs: int, seed: int, first: int, last: int) -> Floats:
    bits = np.random.PCG64(seed)
    bits.advance(first * columns)  # a number of the stream for each value
    return np.random.Generator(bits).random((last - first, columns))


def _sobol(columns: int, runs: int, seed: int, first: int, last: int) -> Floats:
    """Numbers first to last - 1 of SciPy's sequence, without those before: number i is the sum, bit by bit, of the
    direction numbers of the ones in its Gray code (I. A. Antonov and V. M. Saleev 1979)."""
    from scipy.stats import qmc

    engine = qmc.Sobol(columns, scramble=True, bits=BITS, seed=random_source(seed))
    inner = vars(engine)  # its direction numbers and the number it begins with: a test compares with the engine itself
    directions, total = (np.asarray(inner[name], dtype=np.uint64) for name in ("_sv", "_shift"))
    numbers = np.arange(first, last, dtype=np.uint64)
    gray, out = numbers ^ (numbers >> np.uint64(1)), np.tile(total, (last - first, 1))
    for bit in range(int(last).bit_length()):
        ones = ((gray >> np.uint64(bit)) & np.uint64(1)).astype(bool)
        out[ones] ^= directions[:, bit]
    return np.asarray(out.astype(float) * 2.0**-BITS)


def _latin(columns: int, runs: int, seed: int, first: int, last: int) -> Floats:
    within = _random(columns, runs, seed, first, last)
    keys = np.random.default_rng((seed, 1)).integers(1 << 63, size=(columns, _ROUNDS), dtype=np.uint64)
    at = np.arange(first, last, dtype=np.uint64)
    ranges = np.stack([_permuted(at, runs, own) for own in keys], axis=-1)
    return (ranges.astype(float) + within) / runs


def _permuted(numbers: Whole, count: int, keys: Whole) -> Whole:
    """Another number below `count` for each: M. Luby and C. Rackoff's permutation of even numbers of bits (1988), of
    which those that lead beyond are followed until they come back (J. Black and P. Rogaway 2002)."""
    half = np.uint64(max(1, -(-int(count - 1).bit_length() // 2)))
    mask = np.uint64((1 << int(half)) - 1)
    out, open_ = numbers.copy(), np.ones(len(numbers), dtype=bool)
    while open_.any():
        left, right = out[open_] >> half, out[open_] & mask
        for key in keys:
            left, right = right, left ^ (_mixed(right ^ key) & mask)
        out[open_] = (left << half) | right
        open_ = out >= np.uint64(count)
    return out


def _mixed(x: Whole) -> Whole:
    """The last steps of SplitMix64 (G. L. Steele, D. Lea and C. H. Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
    return x ^ (x >> np.uint64(31))
