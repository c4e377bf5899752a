"""LQR of a linkage that stands on its head: the linear model is exact, also where loops are closed.

    python examples/09_inverted_linkage.py

A parallelogram of two upright arms and a bar across carries a pendulum upright on its bar; a motor turns one arm.
Nothing stands by itself. `linearize` gives the model in the two independent coordinates, SciPy the feedback, and the
feedback holds the whole machine, loops and all, after a push.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_continuous_are

import bellcrank as bc


def machine() -> bc.Mechanism:
    """In the vertical plane, in the position in which it is to stand."""
    m = bc.Mechanism("inverted linkage", gravity=(0, -9.81, 0))
    for name, x in (("left", 0.0), ("right", 0.6)):
        m.add_body(name, bc.Inertia.rod(1.0, (x, 0, 0), (x, 0.4, 0)))
        m.add_joint(f"{name}_foot", bc.Revolute("z"), m.ground, name, at=(x, 0, 0))
    m.add_body("bar", bc.Inertia.rod(1.5, (0, 0.4, 0), (0.6, 0.4, 0)))
    m.add_joint("left_knee", bc.Revolute("z"), "left", "bar", at=(0, 0.4, 0))
    m.add_joint("right_knee", bc.Revolute("z"), "bar", "right", at=(0.6, 0.4, 0))  # closes the loop
    m.add_body("pendulum", bc.Inertia.rod(0.4, (0.3, 0.4, 0), (0.3, 1.0, 0)))
    m.add_joint("hinge", bc.Revolute("z"), "bar", "pendulum", at=(0.3, 0.4, 0))
    return m


def main() -> None:
    system = bc.compile(machine(), actuated=["left_foot"], cut=["right_knee"])
    upright = system.assemble()
    model = bc.analyze.linearize(system, upright, inputs=["left_foot"], coordinates=["left_foot", "hinge"])
    print("standing by itself, eigenvalues:", np.sort(model.eigenvalues.real).round(2))

    cost = np.diag([20.0, 20.0, 1.0, 1.0])
    gain = (model.B.T @ solve_continuous_are(model.A, model.B, cost, np.eye(1)))[0]
    held = np.linalg.eigvals(model.A - model.B @ gain[None])
    print("held, eigenvalues:              ", np.sort(held.real).round(2))

    foot, hinge = system.speed_names.index("left_foot.angle"), system.speed_names.index("hinge.angle")
    zero = upright.q

    def control(t: float, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        x = np.array([q[foot] - zero[foot], q[hinge] - zero[hinge], u[foot], u[hinge]])
        tau = np.zeros(system.nu)
        tau[foot] = -gain @ x
        return tau

    off = {"left_foot": float(zero[foot]) + 0.05, "hinge": float(zero[hinge]) - 0.08}
    pushed = system.assemble(q=off, u={"hinge": 0.2})
    run = system.simulate(pushed, 4.0, step=1e-3, output=0.02, control=bc.Sampled(control, 0.005))
    left = np.abs(run.q.values[-1] - zero).max()
    print(f"after 4 s it stands within {left:.1e} rad; loops closed to {float(run.loop_error.max()):.0e} m")
    assert left < 1e-3


if __name__ == "__main__":
    main()
