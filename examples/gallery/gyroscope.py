"""Gyroscope: a spinning disk on an arm that is held at one end only, and does not fall.

It nods (nutation) while it goes round (precession). Nothing but gravity acts.
"""

from __future__ import annotations

import bellcrank as bc


def run(duration: float = 4.0) -> bc.Result:
    top = bc.compile(bc.load("gyroscope"))
    start = top.assemble(u={"spin": 400.0})
    return top.simulate(start, duration, stepper="dop853", output=0.01)


def main(out: str = "gyroscope.html") -> object:
    return run().animate(out, traces=["disc"])


if __name__ == "__main__":
    main()
