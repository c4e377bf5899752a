"""A Geneva wheel with four slots: a pin on a crank enters a slot, turns the wheel by a quarter, and leaves it.

Two slots are never engaged at once: every slot is a constraint that is open at first, closes when the pin enters and
opens when it leaves. In between a locking disk holds the wheel. Nothing drives the machine, and nothing is lost: the
pin enters along the slot, so that no impulse is needed.
"""

from __future__ import annotations

import math

import numpy as np

import bellcrank as bc

CRANK, SLOTS = 0.05, 4  # radius of the pin [m]
CENTERS = CRANK * math.sqrt(2.0)  # between the axles: the pin enters at right angles to the crank
FIRST = 5.0 * math.pi / 4.0  # direction of the first slot, seen from the wheel


def machine() -> bc.Mechanism:
    """Crank and wheel on the ground; four slots that are open, the wheel's axle."""
    m = bc.Mechanism("geneva wheel", gravity=(0, 0, 0))
    crank = m.add_body("crank", bc.Inertia.cylinder(0.8, 0.06, 0.01, "z"))
    wheel = m.add_body("wheel", bc.Inertia.cylinder(0.3, 0.05, 0.01, "z"))
    m.add_joint("motor", bc.Revolute("z"), m.ground, crank)
    m.add_joint("axle", bc.Revolute("z"), m.ground, wheel, bc.Pose((CENTERS, 0, 0)))
    for k in range(SLOTS):  # the pin stays in the plane along the slot
        m.add_constraint(f"slot {k}", bc.PointOnPlane("y"), wheel, crank,
                         bc.Pose.about("z", FIRST + 2.0 * math.pi * k / SLOTS), bc.Pose((CRANK, 0, 0)), closed=False)
    return m


def enters(state: bc.State, system: bc.System) -> bc.Change:
    """The slot that the wheel holds out to the pin."""
    slot = round(-state.q[1] / (2.0 * math.pi / SLOTS)) % SLOTS
    return bc.attach(f"slot {slot}") + bc.unlock("axle")


def leaves(state: bc.State, system: bc.System) -> bc.Change:
    """The slot that is engaged; the locking disk takes over."""
    return bc.detach(*system.loops) + bc.lock("axle")


def events() -> list[bc.Event]:
    """Half of the sector of one slot on both sides of the line of centers."""
    def inside(t: float, q: bc.State, u: bc.State) -> float:
        return bc.math.cos(q["motor"]) - math.cos(math.pi / SLOTS)

    return [bc.Event(inside, "pin enters", 1, enters), bc.Event(inside, "pin leaves", -1, leaves)]


def run(turns: float = 2.0, speed: float = 20.0, **options: object) -> bc.Result:
    """As many turns of the wheel, from the middle of a rest; speed of the crank at first [rad/s]."""
    wheel = bc.compile(machine(), lock=["axle"])
    duration = crank_time(turns * SLOTS, speed)
    start = wheel.assemble(q={"motor": -math.pi}, u={"motor": speed})
    return wheel.simulate(start, duration, events=events(), **options)


def crank_time(turns: float, speed: float) -> float:
    """Time of whole turns of the crank, by quadrature of the energy: an answer from elsewhere."""
    crank, wheel = 0.5 * 0.8 * 0.06**2, 0.5 * 0.3 * 0.05**2
    nodes, weights = np.polynomial.legendre.leggauss(60)
    angle = nodes * math.pi / SLOTS
    along = CRANK * CENTERS * np.cos(angle)
    ratio = (along - CRANK**2) / (CRANK**2 + CENTERS**2 - 2.0 * along)
    engaged = float(weights @ np.sqrt(1.0 + wheel / crank * ratio**2)) * math.pi / SLOTS / speed
    return turns * (engaged + 2.0 * math.pi * (1.0 - 1.0 / SLOTS) / speed)


if __name__ == "__main__":
    result = run(step=2e-4, stepper="gauss")
    print(result.attrs["status"], len(result.event_time), "events")
    print("wheel turned by", float(result.q.sel(coordinate="axle.angle")[-1]) / (2.0 * math.pi), "turns")
    print("crank turned by", float(result.q.sel(coordinate="motor.angle")[-1] + math.pi) / (2.0 * math.pi), "turns")
    print("energy: largest change", result.attrs["energy_drift"], "lost", result.attrs["energy_lost_in_events"], "J")
