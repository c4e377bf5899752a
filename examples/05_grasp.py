"""Two arms of a spacecraft grasp a box that flies by, hold it for a while, and let it go.

Hands and box meet where they happen to be: the grips have frames that are defined when they close. Nothing acts from
outside, so that momentum and angular momentum stay what they were, through both impacts and the release; the
energy lost in them is in the result. At last the box leaves the run.
"""

from __future__ import annotations

import numpy as np

import bellcrank as bc

SIDES = (("left", -1.0, bc.Weld()), ("right", 1.0, bc.Spherical()))  # a firm grip and a fingertip


def machine() -> bc.Mechanism:
    """A floating base, two arms of three joints with springs, and a box that nothing holds yet."""
    m = bc.Mechanism("grasp", gravity=(0, 0, 0))
    base = m.add_body("base", bc.Inertia.box(40.0, (0.8, 0.6, 0.5)))
    box = m.add_body("box", bc.Inertia.box(6.0, (0.4, 0.3, 0.2)))
    m.add_joint("orbit", bc.Free(), m.ground, base)
    m.add_joint("flight", bc.Free(), m.ground, box)
    for side, sign, grip in SIDES:
        upper = m.add_body(f"{side} upper", bc.Inertia.rod(3.0, (0, 0, 0), (0, 0.5, 0)))
        lower = m.add_body(f"{side} lower", bc.Inertia.rod(2.0, (0, 0, 0), (0, 0.4, 0)))
        m.add_joint(f"{side} shoulder", bc.Universal("z", "x"), base, upper, bc.Pose((0.4 * sign, 0.3, 0)))
        m.add_joint(f"{side} elbow", bc.Revolute("z"), upper, lower, bc.Pose((0, 0.5, 0)))
        m.add_joint_spring(f"{side} bend", f"{side} elbow", stiffness=8.0, rest=0.5 * sign)
        m.add_joint_spring(f"{side} swing", f"{side} shoulder", stiffness=8.0, coordinate="angle1")
        m.add_joint(f"{side} grip", grip, lower, box, bc.Pose((0, 0.4, 0)), "at closing", closed=False)
    return m


def at(time: float) -> object:
    """An event function that a moment makes zero."""
    return lambda t, q, u: t - time


def run(method: str = "auto", **options: object) -> bc.Result:
    """Grasp with the left hand, with the right one, let go of both; the box leaves."""
    craft = bc.compile(machine(), method=method)
    start = craft.assemble(q={"flight": [1, 0, 0, 0, 0.05, 1.3, 0.05], "left elbow": -0.6, "right elbow": 0.6},
                           u={"flight": [0.4, -0.2, 0.5, -0.3, -0.4, 0.1], "orbit": [0, 0, 0.1, 0, 0, 0]})
    return craft.simulate(start, 0.8, events=[
        bc.Event(at(0.15), "left grasp", action=bc.attach("left grip")),
        bc.Event(at(0.3), "right grasp", action=bc.attach("right grip")),
        bc.Event(at(0.55), "release", action=bc.detach("left grip", "right grip")),
        bc.Event(at(0.7), "gone", action=bc.leave("box"))], **options)


def momentum(result: bc.Result) -> np.ndarray:
    """Momentum of all bodies about the world's origin, [angular; linear], at every sample."""
    craft = result.system
    return craft.momentum(result.q.values, result.u.values)


if __name__ == "__main__":
    result = run(step=1e-3, stepper="rk8")
    print(result.attrs["status"], result.event_name.values.tolist())
    print("energy lost [J]", result["event_energy_lost"].values, "brought in [J]", result["event_energy_added"].values)
    with_box = momentum(result.sel(time=slice(None, 0.69)))
    print("momentum changes by", abs(with_box - with_box[0]).max())
