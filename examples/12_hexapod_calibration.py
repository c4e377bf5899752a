"""A hexapod: the Jacobian of its platform in the six legs, and calibration of 42 geometric parameters.

    python examples/12_hexapod_calibration.py

The real machine differs from the drawing by 2 mm in every coordinate of the joints on base and platform and in the
zeros of its six encoders. A tracker measures poses of the platform at known readings of the encoders, with noise of
5 micrometres and 5 microradians. Gauss and Newton fit the parameters with exact derivatives of the closed machine, with
the readings held; poses that were not measured are then predicted to less than 0.01 mm.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import bellcrank as bc

Floats = npt.NDArray[np.float64]

LEGS = [f"leg{k}" for k in range(1, 7)]
HEIGHT = 0.8  #: of the platform above the base [m]
ERROR = 2e-3  #: of the drawing [m]
NOISE = 5e-6  #: of the tracker [m] and [rad]
ARM = 0.35  #: radius of the platform [m]: what makes angles lengths


def hexapod() -> bc.Mechanism:
    """A leg turns about its foot in two ways, slides, and ends in a ball joint on the platform. Parameters are feet in
    the world, heads in the frame of the platform, and the lengths of legs at which encoders say zero."""
    m = bc.Mechanism("hexapod")
    platform = m.add_body("platform", bc.Inertia.cylinder(40.0, ARM, 0.04, "z"))
    for k, leg in enumerate(LEGS):
        pair, side = k // 2 * 2 * np.pi / 3, -1.0 if k % 2 else 1.0
        angles = pair + side * np.radians([12.0, 48.0])
        drawn = [np.array([r * np.cos(a), r * np.sin(a), 0.0]) for r, a in zip((0.6, ARM), angles, strict=True)]
        foot, head = ([m.parameter(f"{leg}.{end}.{x}", value) for x, value in zip("xyz", point, strict=True)]
                      for end, point in zip(("foot", "head"), drawn, strict=True))
        along = drawn[1] + [0.0, 0.0, HEIGHT] - drawn[0]
        cylinder = m.add_body(f"{leg}.cylinder", bc.Inertia.cylinder(5.0, 0.03, 0.5, "z", (0.0, 0.0, 0.25)))
        piston = m.add_body(f"{leg}.piston", bc.Inertia.cylinder(2.0, 0.015, 0.5, "z", (0.0, 0.0, -0.25)))
        zero = bc.Pose((0.0, 0.0, m.parameter(f"{leg}.zero", float(np.linalg.norm(along)))))
        m.add_joint(f"{leg}.foot", bc.Universal("x", "y"), m.ground, cylinder,
                    parent_pose=bc.Pose(foot, upright(along)))
        m.add_joint(leg, bc.Prismatic("z"), cylinder, piston, parent_pose=zero)
        m.add_joint(f"{leg}.head", bc.Spherical(), piston, platform, child_pose=bc.Pose(head))
    return m


def upright(z: Floats) -> Floats:
    """Axes with the third along z."""
    x = np.cross((0.0, 1.0, 0.0), z)
    axes = np.stack([x, np.cross(z, x), z], axis=-1)
    return axes / np.linalg.norm(axes, axis=0)


def poses(machine: bc.System, readings: Floats, guess: bc.State) -> tuple[bc.State, Floats]:
    """Closed states at readings of the encoders (n, 6), and the platform's axes by rows and position (n, 12)."""
    states = machine.assemble(q=dict(zip(LEGS, readings.T, strict=True)), guess=guess)
    pose = machine.pose(states, "platform")
    return states, np.concatenate([pose.rotation.reshape(-1, 9), pose.position], axis=-1)


def errors(found: Floats, wanted: Floats) -> Floats:
    """How far points of the platform's rim are from where they should be, at most (n,) [m]."""
    turned = np.linalg.norm((found - wanted)[:, :9], axis=-1) / np.sqrt(2.0)
    return np.asarray(np.linalg.norm((found - wanted)[:, 9:], axis=-1) + ARM * turned)


def measured(exact: Floats, rng: np.random.Generator) -> Floats:
    """Poses as the tracker sees them."""
    rotation, (turn, shift) = exact[:, :9].reshape(-1, 3, 3), NOISE * rng.normal(size=(2, len(exact), 3))
    turned = rotation + np.cross(turn[:, :, None], rotation, axis=1)
    return np.concatenate([turned.reshape(-1, 9), exact[:, 9:] + shift], axis=-1)


def calibrated(model: bc.System, readings: Floats, wanted: Floats, guess: bc.State) -> bc.System:
    """The model with the parameters that fit the poses best (Gauss-Newton). Noise is as large in radians as in metres,
    so that entries of axes and of positions count alike."""
    values = dict(model.model.values)
    for _ in range(8):
        model = model.with_parameters(**values)
        states, found = poses(model, readings, guess)
        slopes = model.derivatives("pose", states, by="parameters", body="platform")  # the six readings are held
        step = np.linalg.lstsq(slopes["parameters"].reshape(wanted.size, -1), (wanted - found).ravel())[0]
        values = {name: values[name] + x for name, x in zip(slopes.columns["parameters"], step, strict=True)}
        if np.abs(step).max() < 1e-9:
            break
    return model.with_parameters(**values)


def jacobian(machine: bc.System, states: bc.State) -> Floats:
    """From the rates of the six legs to the motion of the platform, angles as lengths at its rim, (n, 6, 6)."""
    assert machine.independent_speeds == tuple(f"{leg}.slide" for leg in LEGS)
    return machine.jacobian(states, "platform") * np.array([ARM] * 3 + [1.0] * 3)[:, None]


def main(samples: int = 150) -> None:
    rng = np.random.default_rng(0)
    drawn = bc.compile(hexapod(), independent=LEGS)
    middle = drawn.assemble(q=dict.fromkeys(LEGS, 0.0))
    fit, check = rng.uniform(-0.1, 0.1, (2, samples, 6))

    conditions = np.linalg.cond(jacobian(drawn, poses(drawn, check, middle)[0]))
    holding = drawn.inverse_dynamics(middle, np.zeros(drawn.nu), terms="gravity")[drawn.speed_names.index("leg1.slide")]
    print(f"condition of the Jacobian: {np.linalg.cond(jacobian(drawn, middle)):.1f} in the middle, at most "
          f"{conditions.max():.1f} in {samples} poses; each leg holds {holding:.0f} N")

    drawing = drawn.model.values
    true = drawn.with_parameters(**{name: x + ERROR * rng.choice([-1.0, 1.0]) for name, x in drawing.items()})
    exact = poses(true, check, middle)[1]
    found = calibrated(drawn, fit, measured(poses(true, fit, middle)[1], rng), middle)
    before, after = (errors(poses(x, check, middle)[1], exact) for x in (drawn, found))
    print(f"poses that were not measured are off by up to {before.max() * 1e3:.2f} mm before and "
          f"{after.max() * 1e3:.4f} mm (mean {after.mean() * 1e3:.4f} mm) after the calibration of "
          f"{len(found.model.values)} parameters")
    assert after.max() < 1e-5


if __name__ == "__main__":
    main()
