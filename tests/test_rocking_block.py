"""A block that rocks on compliant contacts as Housner says, who lets it neither bounce nor slide."""

from __future__ import annotations

import numpy as np

import bellcrank as bc

G, WIDTH, HEIGHT, DEPTH = 9.81, 0.1, 0.4, 0.2


def test_a_block_rocks_on_compliant_contacts() -> None:
    """G. W. Housner, "The behavior of inverted pendulum structures during earthquakes", 1963: when the block goes from
    one edge to the other, its angular speed falls to 1 - 3/2 sin(alpha)^2 of what it was; between, energy is kept."""
    m = bc.Mechanism("block", gravity=(0, 0, -G))
    m.add_joint("plane", bc.Planar("-y"), m.ground, m.add_body("block", bc.Inertia.box(2.0, (WIDTH, DEPTH, HEIGHT))))
    m.add_shape(m.ground, bc.Plane(), role="collision")
    m.add_shape("block", bc.Box((WIDTH, DEPTH, HEIGHT)), role="collision")
    m.add_contact("floor", m.ground, "block", friction=5.0, stiffness=2e6, dissipation=100.0, slip_speed=1e-3)
    system = bc.compile(m)
    slender, tilt, radius = np.arctan(WIDTH / HEIGHT), 0.1, 0.5 * np.hypot(WIDTH, HEIGHT)
    start = radius * np.cos(slender - tilt)
    q = np.array([0.0, start, tilt])  # along x, along z, about -y
    run = system.simulate((q, np.zeros(3)), 0.25, stepper="rk4", step=1e-5, output=1e-3)
    spin, height = run.u.sel(speed="plane.angle").values, run.q.sel(coordinate="plane.y").values
    hit = int(np.argmax(np.abs(np.diff(spin))))
    inertia = 4.0 / 3.0 * radius**2  # about an edge, per mass

    def at_the_impact(k: int) -> float:
        """The angular speed upright, by the energy at a sample."""
        return float(np.sqrt(spin[k] ** 2 + 2.0 * G * (height[k] - 0.5 * HEIGHT) / inertia))

    before, after = at_the_impact(hit - 20), at_the_impact(hit + 40)
    np.testing.assert_allclose(before, np.sqrt(2.0 * G * (start - 0.5 * HEIGHT) / inertia), rtol=2e-3)
    np.testing.assert_allclose(after / before, 1.0 - 1.5 * np.sin(slender) ** 2, rtol=1e-2)
    energy = run["energy"].values
    assert np.diff(energy).max() < 1e-5 * np.ptp(energy)
