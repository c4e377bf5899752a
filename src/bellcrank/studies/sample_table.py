"""What a sweep varies, as one table: a grid of values, samples row by row, or every sample at every point of a grid.

Samples of parameters: Latin hypercube, Sobol' sequence and plain random numbers, by distribution.

The numbers depend on the distributions, how many runs there are, and the seed; not on who computes them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_unmasked, random_source
from bellcrank.errors import ModelError, hint

if TYPE_CHECKING:
    import xarray

    from bellcrank.compiled.system import System

__all__ = ["METHODS", "DrawnSamples", "SampleTable", "VariedColumn", "as_coordinates", "columns_of", "drawn_samples",
           "latin_hypercube", "random_samples", "sobol", "table_of"]


# -- samples of parameters --------------------------------------------------------------------------
#: distributions under the names and with the arguments that people write; others have SciPy's
_PLAIN = {"uniform": ("low, high", 2), "normal": ("mean, deviation", 2),
          "lognormal": ("mean of log, deviation of log", 2), "loguniform": ("low, high", 2)}
#: quantiles are asked for at places strictly between 0 and 1: the ends of some distributions are infinite
EDGE = 2.0**-54
#: Sobol' numbers have this many bits
BITS = 62


def latin_hypercube(distributions: Mapping[str, Any], runs: int, *, seed: int = 0) -> xarray.Dataset:
    """A Latin hypercube: of every parameter, each of `runs` equally probable ranges has one run (McKay, Beckman and
    Conover 1979, through `scipy.stats.qmc`).

    `distributions` says how each parameter, or "q.JOINT" and "u.JOINT" at the beginning, is distributed: a text such
    as ``"normal(2, 0.1)"``, ``"uniform(1, 5)"``, ``"lognormal(0, 0.2)"`` (mean and deviation of the logarithm),
    ``"loguniform(1, 100)"`` or any continuous distribution of `scipy.stats` with its own arguments
    (``"triang(0.5, 1, 2)"``); a pair (low, high), which is uniform; or a frozen distribution of `scipy.stats`.

    Returns a Dataset along ``run``, for `sweep`. Cost: O(runs) numbers per parameter; `drawn_samples` keeps none.

    >>> samples = latin_hypercube({"mass": "normal(2, 0.1)", "length": (0.5, 1.5)}, 100, seed=1)
    >>> samples.mass.shape, bool(abs(samples.mass.mean() - 2.0) < 0.01)
    ((100,), True)
    """
    return _sampled("latin_hypercube", distributions, runs, seed, _latin_places)


def sobol(distributions: Mapping[str, Any], runs: int, *, seed: int = 0) -> xarray.Dataset:
    """A scrambled Sobol' sequence (Sobol' 1967, Owen 1998, through `scipy.stats.qmc`): fills the space evenly, best
    with `runs` a power of two. `distributions` as in `latin_hypercube`.

    >>> float(sobol({"mass": (1.0, 3.0)}, 4).mass.max()) <= 3.0
    True
    """
    return _sampled("sobol", distributions, runs, seed, _sobol_places)


def random_samples(distributions: Mapping[str, Any], runs: int, *, seed: int = 0) -> xarray.Dataset:
    """Independent random numbers: plain Monte Carlo. `distributions` as in `latin_hypercube`. The first runs are the
    same however many follow.

    >>> few, many = (random_samples({"mass": "normal(2, 0.1)"}, n) for n in (10, 20))
    >>> bool((few.mass.values == many.mass.values[:10]).all())
    True
    """
    return _sampled("random_samples", distributions, runs, seed, _plain)


def _sampled(what: str, distributions: Mapping[str, Any], runs: int, seed: int,
             places: Callable[[int, int, int], Floats]) -> xarray.Dataset:
    import xarray

    check_draw(what, distributions, runs, seed)
    quantiles = {str(name): quantiles_of(f"{what}: {name}", given) for name, given in distributions.items()}
    table = np.clip(places(len(quantiles), int(runs), int(seed)), EDGE, 1.0 - 2.0 * EDGE)
    columns = {}
    for k, (name, quantile) in enumerate(quantiles.items()):
        columns[name] = ("run", np.asarray(quantile(table[:, k]), dtype=float),
                         {"distribution": told_distribution(distributions[name])})
        if not np.isfinite(columns[name][1]).all():
            raise ModelError(f"{what}: {name}: {told_distribution(distributions[name])} gives values that are not "
                             "finite")
    return xarray.Dataset(columns, attrs={"method": what, "seed": int(seed)})


def check_draw(what: str, distributions: Any, runs: Any, seed: Any) -> None:
    """Refuse what samples cannot be drawn of."""
    if not isinstance(distributions, Mapping) or not distributions:
        raise ModelError(f"{what}: needs {{name: distribution}}, such as {{'mass': 'normal(2, 0.1)'}}, got "
                         f"{distributions!r}")
    for name, value in (("runs", runs), ("seed", seed)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < (name == "runs"):
            raise ModelError(f"{what}: {name} must be a {'positive ' * (name == 'runs')}whole number, got {value!r}")


def _latin_places(columns: int, runs: int, seed: int) -> Floats:
    from scipy.stats import qmc

    return np.asarray(qmc.LatinHypercube(columns, seed=random_source(seed)).random(runs))


def _sobol_places(columns: int, runs: int, seed: int) -> Floats:
    from scipy.stats import qmc

    engine = qmc.Sobol(columns, scramble=True, bits=BITS, seed=random_source(seed))
    return np.asarray(engine.random_base2(int(runs - 1).bit_length()))[:runs]


def _plain(columns: int, runs: int, seed: int) -> Floats:
    return random_source(seed).random((runs, columns))


# -- distributions ------------------------------------------------------------------------------------
def quantiles_of(what: str, given: Any) -> Callable[[Floats], Floats]:
    """The inverse of the distribution function that a text, a pair or a frozen distribution stands for."""
    if hasattr(given, "ppf"):
        return given.ppf  # type: ignore[no-any-return]
    if isinstance(given, str):
        return _of_text(what, given)
    try:
        low, high = (float(x) for x in given)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: {given!r} is no distribution; write 'normal(2, 0.1)', a pair (low, high), or take "
                         "one of scipy.stats") from None
    return _named(what, "uniform", [low, high], f"({low:g}, {high:g})")


def _of_text(what: str, text: str) -> Callable[[Floats], Floats]:
    found = re.fullmatch(r"\s*(\w+)\s*\(([^()]*)\)\s*", text)
    if found is None:
        raise ModelError(f"{what}: {text!r} is no distribution; write a name with numbers, such as normal(2, 0.1)")
    try:
        numbers = [float(x) for x in found[2].split(",") if x.strip()]
    except ValueError:
        raise ModelError(f"{what}: {text!r}: {found[2]!r} are not numbers separated by commas") from None
    return _named(what, found[1], numbers, text)


def _named(what: str, name: str, numbers: list[float], text: str) -> Callable[[Floats], Floats]:
    from scipy import stats

    if name in _PLAIN:
        takes, count = _PLAIN[name]
        if len(numbers) != count:
            raise ModelError(f"{what}: {text}: {name} takes {count} numbers ({takes}), got {len(numbers)}")
        first, second = numbers
        bad = not np.isfinite(numbers).all() or (
            second <= 0.0 if name.endswith("normal") else not (first < second and (name == "uniform" or first > 0.0)))
        if bad:
            raise ModelError(f"{what}: {text}: {name} takes {takes}" + (
                ", the deviation positive" if name.endswith("normal") else ", the first the smaller one"
                + ", both positive" * (name == "loguniform")))
        made = {"uniform": lambda: stats.uniform(first, second - first), "normal": lambda: stats.norm(first, second),
                "lognormal": lambda: stats.lognorm(second, scale=np.exp(first)),
                "loguniform": lambda: stats.loguniform(first, second)}[name]()
        return made.ppf  # type: ignore[no-any-return]
    kind = getattr(stats, name, None)
    if not isinstance(kind, stats.rv_continuous):
        known = (*_PLAIN, *(n for n in dir(stats) if isinstance(getattr(stats, n), stats.rv_continuous)))
        raise ModelError(f"{what}: there is no distribution {name!r}{hint(name, known)}; there are "
                         f"{', '.join(_PLAIN)} and the continuous ones of scipy.stats")
    try:
        made = kind(*numbers)
        if not np.isfinite(made.ppf(0.5)):
            raise ValueError("these numbers do not define it")
    except (TypeError, ValueError) as error:
        shapes = f"{kind.shapes}, loc, scale" if kind.shapes else "loc, scale"
        raise ModelError(f"{what}: {text}: {name} of scipy.stats takes ({shapes}): {error}") from None
    return made.ppf  # type: ignore[no-any-return]


def told_distribution(given: Any) -> str:
    """A distribution in words, for the record."""
    if isinstance(given, str):
        return given.strip()
    if hasattr(given, "ppf"):
        inner = getattr(given, "dist", None)
        if inner is None:
            return type(given).__name__
        numbers = [f"{x:g}" for x in getattr(given, "args", ())]
        numbers += [f"{k}={v:g}" for k, v in getattr(given, "kwds", {}).items()]
        return f"{inner.name}({', '.join(numbers)})"
    return f"uniform({', '.join(f'{float(x):g}' for x in given)})"


# -- samples that are made when they are asked for: of billions of runs, those of a chunk are in memory ---
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


@dataclass(frozen=True)
class SampleTable:
    """Values of every run: one column per name. Of a grid, only its values are kept and rows are made when asked for;
    of samples that are drawn nothing is kept.

    Rows run through the samples first, then through the grid, its last name quickest.
    """

    grid: tuple[tuple[str, Floats], ...]
    samples: tuple[tuple[str, Floats], ...]
    drawn: DrawnSamples | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return (*(name for name, _ in (*self.grid, *self.samples)), *(self.drawn.names if self.drawn else ()))

    @property
    def _each(self) -> int:
        """Rows at a point of the grid."""
        return self.drawn.runs if self.drawn else len(self.samples[0][1]) if self.samples else 1

    @property
    def _shape(self) -> tuple[int, ...]:
        return (*(len(values) for _, values in self.grid), self._each)

    @property
    def runs(self) -> int:
        """How many rows there are."""
        return math.prod(self._shape) if self.names else 0

    def identity(self) -> tuple[Any, ...]:
        """What tells this table from others."""
        return (self.grid, self.samples, *((self.drawn.identity(),) if self.drawn else ()))

    def rows(self, first: int, last: int) -> Floats:
        """Rows first to last - 1, (rows, columns)."""
        at = np.unravel_index(np.arange(first, last), self._shape)
        columns = [values[at[k]] for k, (_, values) in enumerate(self.grid)]
        columns += [values[at[-1]] for _, values in self.samples]
        if self.drawn is None:
            return np.stack(columns, axis=-1)
        return np.concatenate([*(c[:, None] for c in columns), self._drawn_rows(first, last)], axis=-1)

    def _drawn_rows(self, first: int, last: int) -> Floats:
        """Drawn values of rows: the same samples again at every point of the grid."""
        assert self.drawn is not None
        parts, each = [], self._each
        while first < last:
            begin = first % each
            end = min(each, begin + last - first)
            parts.append(self.drawn.rows(begin, end))
            first += end - begin
        return np.concatenate(parts) if parts else np.zeros((0, len(self.drawn.names)))


def table_of(parameters: Any, samples: Any) -> SampleTable:
    """Read what `sweep` was given."""
    import xarray

    if isinstance(parameters, xarray.Dataset):
        if samples is not None:
            raise ModelError("sweep: parameters and samples are both samples; give one of them, or a mapping "
                             "{name: values} as parameters, which is a grid")
        parameters, samples = None, parameters
    if isinstance(parameters, DrawnSamples) and samples is None:
        parameters, samples = None, parameters
    grid = [] if parameters is None else _grid(parameters)
    drawn = samples if isinstance(samples, DrawnSamples) else None
    rows = [] if samples is None or drawn is not None else _samples(samples)
    if not grid and not rows and drawn is None:
        raise ModelError("sweep: nothing varies; give parameters={name: values} or samples, such as "
                         "bc.latin_hypercube({...}, runs) makes")
    twice = {name for name, _ in grid} & {*(name for name, _ in rows), *(drawn.names if drawn else ())}
    if twice:
        raise ModelError(f"sweep: {', '.join(sorted(twice))} is in parameters and in samples; once is enough")
    return SampleTable(tuple(grid), tuple(rows), drawn)


def _grid(parameters: Any) -> list[tuple[str, Floats]]:
    if not isinstance(parameters, Mapping):
        raise ModelError(f"sweep: parameters is a mapping {{name: values}} or samples, got "
                         f"{type(parameters).__name__}")
    return [(str(name), _values("parameters", str(name), values)) for name, values in parameters.items()]


def _samples(samples: Any) -> list[tuple[str, Floats]]:
    import xarray

    given: Mapping[Any, Any]
    if isinstance(samples, xarray.Dataset):
        given = {name: samples[name].values for name in samples.data_vars}
    elif isinstance(samples, Mapping):
        given = samples
    else:
        raise ModelError(f"sweep: samples is a mapping {{name: values}} or a Dataset, got {type(samples).__name__}")
    found = [(str(name), _values("samples", str(name), values)) for name, values in given.items()]
    lengths = {name: len(values) for name, values in found}
    if len(set(lengths.values())) > 1:
        raise ModelError("sweep: samples must have one value per run, and all names equally many; got "
                         + ", ".join(f"{n} of {name}" for name, n in lengths.items()))
    return found


def _values(what: str, name: str, values: Any) -> Floats:
    check_unmasked(f"{what} {name!r}", values)
    try:
        array = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        raise ModelError(f"sweep: {what}: {name}: {values!r} are no numbers") from None
    if array.ndim != 1 or not array.size:
        raise ModelError(f"sweep: {what}: {name} needs a list of numbers, got the shape {array.shape}")
    if not np.isfinite(array).all():
        raise ModelError(f"sweep: {what}: {name}: values must be finite, number {int(np.argmin(np.isfinite(array)))} "
                         "is not")
    return array


@dataclass(frozen=True)
class VariedColumn:
    """What a column of the table is: a parameter ("p"), or a coordinate ("q") or speed ("u") at the beginning."""

    name: str
    kind: str
    key: str  #: the parameter, or the joint or "joint.coordinate"


def columns_of(system: System, names: tuple[str, ...], whose: str = "sweep") -> tuple[VariedColumn, ...]:
    """What names mean for a machine; those of parameters come first."""
    return tuple(_column(system, name, whose) for name in names)


def _column(system: System, name: str, whose: str) -> VariedColumn:
    if name in system.parameters:
        return VariedColumn(name, "p", name)
    kind, dot, key = name.partition(".")
    if not dot or kind not in ("q", "u"):
        known = ", ".join(system.parameters) or "none: make some with Mechanism.parameter"
        raise ModelError(f"{whose}: no parameter {name!r} in {system.model.name!r}{hint(name, system.parameters)}; its "
                         f"parameters are {known}. 'q.JOINT' and 'u.JOINT' vary the beginning of the runs")
    joints = {r.name: r.joint for r in system.model.mechanism.joints}
    whole, coordinate = (key, None) if key in joints else (key.rpartition(".")[0], key.rpartition(".")[2])
    if whole not in joints:
        raise ModelError(f"{whose}: {name}: no joint {whole or key!r} in {system.model.name!r}"
                         f"{hint(whole or key, joints)}; there are {', '.join(joints)}")
    there = tuple(joints[whole].coordinate_names() if kind == "q" else joints[whole].speed_names)
    if coordinate is None and len(there) != 1:
        raise ModelError(f"{whose}: {name}: joint {whole!r} has {len(there)} of them; vary single ones: "
                         f"{', '.join(f'{kind}.{whole}.{n}' for n in there) or 'none'}")
    if coordinate is not None and coordinate not in there:
        raise ModelError(f"{whose}: {name}: joint {whole!r} has {', '.join(there)}")
    return VariedColumn(name, kind, key)


def as_coordinates(table: SampleTable) -> dict[str, xarray.Variable]:
    """The columns as variables along ``run``. Cost: O(runs) numbers per column."""
    import xarray

    rows = table.rows(0, table.runs)
    return {name: xarray.Variable("run", rows[:, k].copy()) for k, name in enumerate(table.names)}
