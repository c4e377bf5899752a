"""Rope ladder: two chains of links with rungs between them, let go from the side.

Eight loops that hang on each other; three degrees of freedom for every rung, no constraint redundant.
"""

from __future__ import annotations

import bellcrank as bc


def run(duration: float = 4.0) -> bc.Result:
    ladder = bc.compile(bc.load("rope_ladder", rungs=5))
    start = ladder.assemble(q={"left1": [0.6, 0.3], "right1": [0.6, 0.3]})
    return ladder.simulate(start, duration, step=2e-3, output=0.02)


def main(out: str = "rope_ladder.html") -> object:
    return run().animate(out)


if __name__ == "__main__":
    main()
