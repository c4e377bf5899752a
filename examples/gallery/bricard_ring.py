"""Bricard's ring: six hinges in a closed chain that should be stiff, and turns inside out for ever.

Counting says no freedom; the symmetry of the axes leaves one. The rank of the constraints finds it.
"""

from __future__ import annotations

import bellcrank as bc


def run(duration: float = 4.0) -> bc.Result:
    ring = bc.compile(bc.load("bricard"))
    return ring.simulate(ring.assemble(u={"hinge1": 4.0}), duration, step=2e-3, output=0.02)


def main(out: str = "bricard_ring.html") -> object:
    return run().animate(out)


if __name__ == "__main__":
    main()
