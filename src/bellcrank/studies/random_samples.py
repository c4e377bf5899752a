"""Samples of parameters: Latin hypercube, Sobol' sequence and plain random numbers, by distribution.

The numbers depend on the distributions, how many runs there are, and the seed; not on who computes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats, random_source
from bellcrank.errors import ModelError, hint

if TYPE_CHECKING:
    import xarray

__all__ = ["BITS", "EDGE", "check_draw", "latin_hypercube", "quantiles_of", "random_samples", "sobol",
           "told_distribution"]

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
    return _sampled("latin_hypercube", distributions, runs, seed, _latin)


def sobol(distributions: Mapping[str, Any], runs: int, *, seed: int = 0) -> xarray.Dataset:
    """A scrambled Sobol' sequence (Sobol' 1967, Owen 1998, through `scipy.stats.qmc`): fills the space evenly, best
    with `runs` a power of two. `distributions` as in `latin_hypercube`.

    >>> float(sobol({"mass": (1.0, 3.0)}, 4).mass.max()) <= 3.0
    True
    """
    return _sampled("sobol", distributions, runs, seed, _sobol)


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


def _latin(columns: int, runs: int, seed: int) -> Floats:
    from scipy.stats import qmc

    return np.asarray(qmc.LatinHypercube(columns, seed=random_source(seed)).random(runs))


def _sobol(columns: int, runs: int, seed: int) -> Floats:
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
