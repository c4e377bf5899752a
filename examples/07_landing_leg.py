"""A hopper lands on one leg: the foot sticks where it touches the floor, the leg's spring throws the machine up again.

The foot is a ball joint that is open at first. Its frame on the floor is defined at the moment it closes: nobody knows
before where the foot will touch. The impulse of the touch-down, and the energy that it takes, are in the result.
"""

from __future__ import annotations

import numpy as np

import bellcrank as bc

LENGTH, STIFFNESS = 0.5, 4000.0  # of the leg [m], of its spring [N/m]


def machine() -> bc.Mechanism:
    """A trunk, an upper leg on a universal joint, a lower leg that slides against a spring."""
    m = bc.Mechanism("landing leg")
    trunk = m.add_body("trunk", bc.Inertia.box(10.0, (0.4, 0.3, 0.15)))
    upper = m.add_body("upper leg", bc.Inertia.rod(1.0, (0, 0, 0), (0, 0, -0.3)))
    lower = m.add_body("lower leg", bc.Inertia.rod(0.5, (0, 0, 0.1), (0, 0, -0.2)))
    m.add_joint("flight", bc.Free(), m.ground, trunk)
    m.add_joint("hip", bc.Universal("x", "y"), trunk, upper)
    m.add_joint("slide", bc.Prismatic("z"), upper, lower, bc.Pose((0, 0, -0.3)))
    m.add_joint_spring("spring", "slide", stiffness=STIFFNESS)
    m.add_joint_spring("hip x", "hip", stiffness=200.0, coordinate="angle1")
    m.add_joint_spring("hip y", "hip", stiffness=200.0, coordinate="angle2")
    m.add_joint("foot", bc.Spherical(), m.ground, lower, "at closing", bc.Pose((0, 0, -0.2)), closed=False)
    m.add_frame("sole", lower, bc.Pose((0, 0, -0.2)))
    return m


def run(duration: float = 0.6, **options: object) -> bc.Result:
    """Fall from some height, with some speed and turn."""
    leg = bc.compile(machine())
    start = leg.assemble(q={"flight": [1, 0, 0, 0, 0.0, 0.0, 0.6], "hip": [0.1, -0.15]},
                         u={"flight": [0.2, -0.1, 0.3, 0.4, -0.2, 0.0]})
    floor = bc.Event(lambda t, q, u: leg.pose(np.array([*q]), "sole").position[2], "touch-down", -1, bc.attach("foot"))
    return leg.simulate(start, duration, events=[floor, bc.lift_off("foot")], **options)


if __name__ == "__main__":
    result = run(step=5e-4, stepper="rk8")
    print(result.attrs["status"], dict(zip(result.event_name.values.tolist(), result.event_time.values, strict=True)))
    print("lost at touch-down", float(result["event_energy_lost"][0]), "J")
    print("impulse on the foot", result["event_impulse"][0, 0, 3:].values, "N s")
    jump = result["energy"][-1] - result["energy"][0] + result.attrs["energy_lost_in_events"]
    print("energy left over", float(jump), "J")
