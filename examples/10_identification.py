"""Inertias of an arm with seven axes, and of a four-bar, from noisy measurements.

    python examples/10_identification.py

The models are wrong by some thirty per cent. Motion and joint forces are "measured" on the true machines, forces with
noise of one per cent; `bc.identify` finds physical inertias that predict forces of other motions to the noise.
"""

from __future__ import annotations

import numpy as np

import bellcrank as bc


def arm(wrong: float = 1.0) -> bc.Mechanism:
    m = bc.Mechanism("seven axes")
    before = m.ground
    for k, axis in enumerate("zyzyzyz"):
        spoiled = wrong ** (1 if k % 2 else -1)
        inertia = bc.Inertia.box((4.0 - 0.4 * k) * spoiled, (0.1, 0.12, 0.3), (0.01, 0.02, 0.12 * spoiled))
        body = m.add_body(f"link{k + 1}", inertia)
        m.add_joint(f"axis{k + 1}", bc.Revolute(axis), before, body, parent_pose=bc.Pose((0, 0, 0.28)))
        before = body
    return m


def four_bar(wrong: float = 1.0) -> bc.Mechanism:
    m = bc.Mechanism("four-bar", gravity=(0, -9.81, 0))
    sizes = (("crank", 1.5 * wrong, 0.3), ("coupler", 5.0 / wrong, 1.0), ("rocker", 3.0 * wrong, 0.6))
    for name, mass, length in sizes:
        m.add_body(name, bc.Inertia.box(mass, (length, 0.05, 0.05), (0.5 * length, 0, 0)))
    m.add_joint("A", bc.Revolute("z"), m.ground, "crank")
    m.add_joint("B", bc.Revolute("z"), "crank", "coupler", parent_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), "coupler", "rocker", parent_pose=bc.Pose((1.0, 0, 0)))
    m.add_joint("D", bc.Revolute("z"), "rocker", m.ground, parent_pose=bc.Pose((0.6, 0, 0)),
                child_pose=bc.Pose((1.0, 0, 0)))
    return m


def measured(system: bc.System, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, speeds and accelerations of some motion."""
    rng = np.random.default_rng(seed)
    if not system.loops:
        q, u = system.random_state(rng, samples)
        return q, 2.0 * u, 3.0 * rng.normal(size=u.shape)
    states = [system.assemble(q={"A": 2 * np.pi * k / samples}, u={"A": 3.0 * rng.normal()}) for k in range(samples)]
    udot = [system.consistent_acceleration(s.q, s.u, {"A": 9.0 * rng.normal()}) for s in states]
    return np.stack([s.q for s in states]), np.stack([s.u for s in states]), np.stack(udot)


def main() -> None:
    for make, options in ((arm, {}), (four_bar, {"actuated": ["A"]})):
        true, model = bc.compile(make(), **options), bc.compile(make(1.3), **options)
        base = bc.analyze.base_parameters(model)
        q, u, udot = measured(true, 200, 0)
        tau = true.inverse_dynamics(q, u, udot)
        noise = 0.01 * np.abs(tau).max()
        noisy = np.where(tau != 0.0, tau + noise * np.random.default_rng(1).normal(size=tau.shape), 0.0)
        found = bc.identify(model, q, u, udot, noisy)
        q, u, udot = measured(true, 50, 2)
        exact, values = true.inverse_dynamics(q, u, udot), np.array(list(found.parameters.values()))
        before = np.abs(model.inverse_dynamics(q, u, udot) - exact).max()
        after = np.abs(model.regressor(q, u, udot) @ values - exact).max()
        print(f"{model.model.name}: {len(base.names)} of {len(base.every)} parameters show; noise {noise:.3f} N m; "
              f"forces of other motions off by {before:.2f} before, {after:.3f} after")
        assert after < 2.0 * noise


if __name__ == "__main__":
    main()
