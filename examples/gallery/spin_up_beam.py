"""Flexible beam: a thin rod on a hub that is spun up lags behind, and straightens out again.

The body deforms, with modes of bending, and stiffens with its own centrifugal force (Kane, Ryan and Banerjee).
"""

from __future__ import annotations

import bellcrank as bc
from bellcrank import math as bm

SPEED, TIME = 6.0, 15.0  # rad/s, reached after so many seconds


def law(t: float) -> float:
    """The angle of the hub: a smooth start to constant speed."""
    turn, s = 2.0 * bm.pi / TIME, bm.minimum(t, TIME)
    return SPEED / TIME * (0.5 * s * s + (bm.cos(turn * s) - 1.0) / turn**2) + SPEED * (t - s)


def machine() -> bc.Mechanism:
    m = bc.Mechanism("spin-up beam", gravity=(0, 0, 0))
    section = bc.BeamSection(EA=2.8e7, EIy=1.4e4, EIz=1.4e4, GJ=1e4, mass=1.2, Jx=1e-3)
    m.add_body("beam", bc.FlexibleBody.beam(10.0, section, elements=10, modes={"y": 2}, stiffening=True))
    m.add_joint("hub", bc.Revolute("z"), m.ground, "beam")
    m.prescribe("hub", law)
    return m


def run(duration: float = 18.0) -> bc.Result:
    beam = bc.compile(machine())
    return beam.simulate(beam.assemble(), duration, stepper="dop853", output=0.05)


def main(out: str = "spin_up_beam.html") -> object:
    return run().animate(out)


if __name__ == "__main__":
    main()
