"""Machines with loops in motion: a car's suspension comes to rest, a four-bar linkage turns for a hundred seconds.

Prints loop error, energy drift and speed of each run, and draws the suspension into build/quarter_car.png.
Run with ``make demo`` or ``python examples/03_simulate.py``.
"""

from __future__ import annotations

from pathlib import Path

import bellcrank as bc

FOLDER = Path(__file__).parents[1] / "build"


def main(folder: Path = FOLDER) -> list[bc.Result]:
    car = bc.compile(bc.load("quarter_car"))
    linkage = bc.compile(bc.load("four_bar"))
    turning = linkage.assemble(q={"A": 0.5}, u={"A": 8.0})
    runs = [
        run(car, car.assemble(), 2.0),  # the wheel drops onto its spring
        run(linkage, turning, 100.0),
        run(linkage, turning, 100.0, stepper="gauss", step=5e-3),
        run(linkage, turning, 100.0, stepper="dop853"),
    ]
    print(f"{'machine':<14}{'stepper':<8}{'simulated':>10}{'steps':>9}{'loop error':>12}{'energy drift':>14}"
          f"{'times real time':>17}")
    for result in runs:
        a = result.attrs
        length = float(result.time[-1])
        # a damper takes energy out of the car: that is no error
        drift = "(damped)" if a["mechanism"] == "quarter car" else f"{a['energy_drift']:.0e}"
        print(f"{a['mechanism']:<14}{a['stepper']:<8}{length:>8.0f} s{a['steps']:>9}{a['largest_loop_error']:>12.0e}"
              f"{drift:>14}{length / a['wall_time']:>17.0f}")
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "quarter_car.png"
    runs[0].plot(["arm", "u.arm", "energy"], file=picture)
    print(f"\nthe wheel's way to rest: {picture}")
    return runs


def run(system: bc.System, state: bc.State, duration: float, **options: object) -> bc.Result:
    """A run; a short one before makes the native code, so that the time is that of the steps."""
    system.simulate(state, 0.1, **options)
    return system.simulate(state, duration, **options)


if __name__ == "__main__":
    main()
