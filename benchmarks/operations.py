"""Operation counts of all formulations, beside the figures of two papers.

    python benchmarks/operations.py

1. Table 1 of Naudet, Lefeber & Terze: chains of pin joints, n = 3..20. Our rows are exact counts of the traced
   computation for a chain of general bodies (nothing parallel, nothing aligned) in the library's choice of frames,
   fitted by a n + b (the fit is exact; where it holds only from some n on, that is said). Sines and cosines are
   listed apart, as in the papers.
2. The claim of Kang & Yoon: with the reference point at the instant global origin a body needs at least
   36 + 6 n multiplications fewer than with the centroid (n speeds per joint), with the joint point in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import bellcrank as bc
from bellcrank.examples.chains import general_chain
from bellcrank.formulations import method_names

PAPER = {  # adds, muls: (a, b) of a n + b
    "Featherstone": ((275, -18), (336, -220)), "Vukobratovic": ((231, -294), (249, -272)),
    "Valasek": ((206, -345), (226, -343)), "Rein": ((195, -247), (216, -317)),
    "Naudet-Lefeber": ((178, -230), (185, -245)),
}
SIZES = range(3, 21)


def fit(values: list[int]) -> tuple[int, int, int]:
    """a and b of a n + b, and the smallest n from which it is exact."""
    a = values[-1] - values[-2]
    b = values[-1] - a * SIZES[-1]
    exact = [n for n, v in zip(SIZES, values, strict=True) if v != a * n + b]
    return a, b, max(exact, default=SIZES[0] - 1) + 1


def term(fitted: tuple[int, ...]) -> str:
    from_n = f" (n >= {fitted[2]})" if len(fitted) > 2 and fitted[2] > SIZES[0] else ""
    return f"{fitted[0]}n{fitted[1]:+d}{from_n}"


def table_1() -> None:
    print("\n## Operations for chains of pin joints, n = 3..20\n")
    print("| algorithm | add. | mult. and div. | total | sines, cosines |\n|---|---|---|---|---|")
    for name, (adds, muls) in PAPER.items():
        total = (adds[0] + muls[0], adds[1] + muls[1])
        print(f"| {name} (paper) | {term(adds)} | {term(muls)} | {term(total)} | |")
    chains = {n: general_chain(n, bc.Revolute) for n in SIZES}
    rows = [(m, "forward_dynamics") for m in method_names() if m != "dense"] + [("momenta", "hamilton")]
    for method, function in rows:
        counts = [bc.compile(chains[n], method, schedule="unrolled").operation_count(function) for n in SIZES]
        adds, muls = fit([c.adds for c in counts]), fit([c.muls + c.divs for c in counts])
        total, trigs = fit([c.total for c in counts]), fit([c.trigs for c in counts])
        label = f"**{method}, state (q, p)**" if function == "hamilton" else f"{method}, udot"
        print(f"| {label} | {term(adds)} | {term(muls)} | {term(total)} | {term(trigs)} |")


def best(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(15):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def reference_points() -> None:
    print("\n## Reference points: multiplications per body, and time per body in a batch of 1024 states\n")
    print("| joint | n | centroid | joint | origin | centroid - origin | 36 + 6n | ns: centroid | joint | origin |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for kind in (bc.Revolute, bc.Cylindrical, bc.Universal, bc.Spherical):
        muls, times = {}, {}
        for point in ("centroid", "joint", "origin"):
            counts = [bc.compile(general_chain(n, kind), f"recursive/{point}", schedule="unrolled").operation_count()
                      for n in (6, 7)]
            muls[point] = counts[1].muls - counts[0].muls  # one more body in the middle of the chain
            system = bc.compile(general_chain(12, kind), f"recursive/{point}", threads=1)
            q, u = system.random_state(np.random.default_rng(0), 1024)
            times[point] = best(lambda s=system, q=q, u=u: s.forward_dynamics(q, u, u)) / 1024 / 12
        n = kind().nu
        print(f"| {kind.__name__} | {n} | " + " | ".join(str(muls[p]) for p in muls)
              + f" | {muls['centroid'] - muls['origin']} | {36 + 6 * n} | "
              + " | ".join(f"{times[p] * 1e9:.1f}" for p in times) + " |")


if __name__ == "__main__":
    table_1()
    reference_points()
