"""Flexible bodies converge to what the literature has, with elements and with modes, and keep what is conserved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc

STEEL = bc.BeamSection.rectangle(0.03, 0.02, E=2.1e11, rho=7850.0)
CLAMPED = np.array([1.8751040687119611, 4.694091132974174, 7.854757438237613])
FREE = np.array([4.730040744862704, 7.853204624095838, 10.995607838001671])


def bending(roots: Any, length: float = 1.7) -> Any:
    """Angular frequencies of a thin beam from beta L."""
    return np.asarray(roots)**2 * np.sqrt(STEEL.EIz / STEEL.mass) / length**2


@pytest.mark.parametrize(("support", "roots"), [("clamped", CLAMPED), ("free", FREE)])
def test_frequencies_converge_with_the_fourth_power_of_elements(support: str, roots: Any) -> None:
    errors = np.array([bc.FlexibleBody.beam(1.7, STEEL, elements=n, modes={"y": 3}, support=support).frequencies()
                       / bending(roots) - 1.0 for n in (8, 16, 32)])
    assert (errors > 0.0).all()  # from above
    orders = np.log2(errors[:-1] / errors[1:])
    assert (np.abs(orders[-1] - 4.0) < 0.05).all() and (np.abs(orders[0] - 4.0) < 0.2).all()
    assert errors[-1].max() < 2e-5


def test_frequencies_converge_with_modes() -> None:
    """Of the free body, from modes that are clamped at one end: from above, with every mode that is added, and with
    all of them those of the elements."""
    wanted = bc.FlexibleBody.beam(1.7, STEEL, elements=12, modes={"y": 3}, support="free").frequencies()
    errors = np.array([bc.FlexibleBody.beam(1.7, STEEL, elements=12, modes={"y": k}).free_frequencies()[:3] / wanted
                       - 1.0 for k in (4, 8, 16, 24)])
    assert (errors[:-1] > 0.0).all() and (errors[1:3] < 0.2 * errors[:2]).all()
    assert errors[0].max() < 0.35 and errors[2].max() < 2e-3 and np.abs(errors[3]).max() < 1e-8


def test_craig_bampton_converges_with_modes() -> None:
    """A block of hexahedra: free frequencies from above, and those of all degrees of freedom in the end."""
    points = np.array([(i, j, k) for k in (0, 1) for j in (0, 1) for i in range(7)], dtype=float) * 0.05
    cells = [[i, i + 1, i + 8, i + 7, i + 14, i + 15, i + 22, i + 21] for i in range(6)]
    mesh = (points, {"hexahedron": cells})
    ends = {"left": lambda x: x[:, 0] < 1e-9, "right": lambda x: x[:, 0] > 0.299}
    bodies = [bc.FlexibleBody.from_mesh(mesh, 2.1e11, 0.3, 7850.0, interfaces=ends, modes=k) for k in (0, 6, 20, 60)]
    found = np.array([body.free_frequencies()[:4] for body in bodies])
    errors = found / found[-1] - 1.0
    assert (errors[:-1] > -1e-12).all() and (errors[1] <= 0.5 * errors[0])[[0, 1, 3]].all()
    assert errors[0].max() < 0.2 and errors[2].max() < 2e-3


#: the two lowest frequencies of a uniform rotating cantilever out of the plane of rotation, omega / sqrt(EI / (m L^4)),
#: by the speed of rotation in the same unit
WRIGHT = {1.0: (3.6816, 22.1810), 4.0: (5.5850, 24.2733), 10.0: (11.2023, 33.6404)}


@pytest.fixture(scope="module")
def rotor() -> bc.System:
    """A blade on a hub."""
    m = bc.Mechanism("rotor", gravity=(0, 0, 0))
    section = bc.BeamSection(1e8, 100.0, 100.0, 50.0, 2.0, 1e-3)
    m.add_body("blade", bc.FlexibleBody.beam(1.0, section, elements=12, modes={"z": 4, "y": 4}, stiffening=True))
    m.add_joint("hub", bc.Revolute("z"), m.ground, "blade")
    return bc.compile(m, backend="numpy")


@pytest.mark.parametrize("speed", list(WRIGHT))
def test_a_rotating_beam_has_the_frequencies_of_the_literature(speed: float, rotor: bc.System) -> None:
    """A. D. Wright et al., "Vibration Modes of Centrifugally Stiffened Beams", J. Applied Mechanics 49, 1982: out of
    plane; in the plane omega^2 is less by the square of the speed. Modes that stand still approximate those that turn
    from above, by less than 1e-3 of the frequency."""
    system, unit = rotor, np.sqrt(50.0)
    q, u, h = np.zeros(9), np.array([speed * unit, *np.zeros(8)]), 1e-6
    mass = system.mass_matrix(q)[1:, 1:]
    stiff = np.stack([(system.bias(q + h * e, u) - system.bias(q - h * e, u))[1:] / (2 * h)
                      for e in np.eye(9)[1:]], axis=-1)
    for own, less in ((slice(0, 4), 0.0), (slice(4, 8), speed**2)):
        squares = np.sort(np.linalg.eigvals(np.linalg.solve(mass[own, own], stiff[own, own])).real)[:2] / unit**2
        errors = np.sqrt(squares + less) / WRIGHT[speed] - 1.0
        assert (errors > -2e-5).all() and errors.max() < 1e-3
