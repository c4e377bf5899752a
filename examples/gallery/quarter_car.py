"""Quarter car: a wheel on five links, a spring and a damper, dropped.

Three loops share the wheel carrier. Kang and Yoon used this machine to count operations.
"""

from __future__ import annotations

import bellcrank as bc


def run(duration: float = 1.5) -> bc.Result:
    car = bc.compile(bc.load("quarter_car"), actuated=["arm"])
    return car.simulate(car.assemble(q={"arm": -0.25}), duration, output=0.01)


def main(out: str = "quarter_car.html") -> object:
    return run().animate(out)


if __name__ == "__main__":
    main()
