"""All cases of `data/chains_and_trees.json`: independent solutions, made without Bellcrank."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
from reference_cases import Case, Floats, names, read

CASES = names()
#: everything that computes: method, backend, schedule
WAYS = [("recursive", "numpy", "auto"), ("dense", "numpy", "auto"), ("recursive", "llvm", "unrolled"),
        ("recursive", "llvm", "rolled"), ("dense", "llvm", "unrolled")]
NUMPY = [w for w in WAYS if w[1] == "numpy"]


def make(case: Case, way: tuple[str, str, str]) -> bc.System:
    method, backend, schedule = way
    return bc.compile(case.mechanism, method, backend, schedule=schedule)


def tolerance(system: bc.System, case: Case) -> float:
    """The references are good to 1e-12; where the equations are badly conditioned, to 1e-10."""
    free = ~case.prescribed
    matrix = system.mass_matrix(case.q)[np.ix_(free, free)]
    return 1e-12 if not free.any() or np.linalg.cond(matrix) < 1e4 else 1e-10


def error(got: Floats, wanted: Floats) -> float:
    """Largest difference relative to the largest entry."""
    assert got.shape == wanted.shape
    return float(np.abs(got - wanted).max() / np.abs(wanted).max())


def test_there_are_sixteen_cases_of_all_joint_types() -> None:
    assert len(CASES) == 16
    types = {type(j.joint).__name__ for name in CASES for j in read(name).mechanism.joints}
    assert types == {"Revolute", "Prismatic", "Universal", "Spherical", "Free"}
    assert sum(bool(read(name).prescribed.any()) for name in CASES) == 4


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("name", CASES)
def test_forward_and_inverse_dynamics(name: str, way: tuple[str, str, str]) -> None:
    case = read(name, applied=True)
    system = make(case, way)
    allowed = tolerance(bc.compile(case.mechanism, backend="numpy"), case)
    assert error(system.forward_dynamics(case.q, case.u, case.tau), case.udot) < allowed
    assert error(system.inverse_dynamics(case.q, case.u, case.udot), case.drive) < 1e-12


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("name", CASES)
def test_wrenches_given_with_the_call(name: str, way: tuple[str, str, str]) -> None:
    case = read(name)
    system, reference = make(case, way), bc.compile(case.mechanism, backend="numpy")
    wrenches = case.wrenches(reference)
    got = system.forward_dynamics(case.q, case.u, case.tau, wrenches=wrenches)
    assert error(got, case.udot) < tolerance(reference, case)
    if way[1] == "numpy":
        array = np.array([wrenches[b] for b in system.body_names])
        assert np.array_equal(system.forward_dynamics(case.q, case.u, case.tau, wrenches=array), got)
        assert error(system.inverse_dynamics(case.q, case.u, case.udot, wrenches=wrenches), case.drive) < 1e-12


def test_without_the_external_forces_the_result_is_another() -> None:
    """The cases would not notice forgotten wrenches otherwise."""
    for name in CASES:
        case = read(name)
        if not case.prescribed.all():
            plain = bc.compile(case.mechanism, backend="numpy").forward_dynamics(case.q, case.u, case.tau)
            assert error(plain, case.udot) > 1e-3, name


@pytest.mark.parametrize("way", NUMPY, ids="-".join)
@pytest.mark.parametrize("name", [n for n in CASES if read(n).prescribed.any()])
def test_drive_forces_of_prescribed_joints(name: str, way: tuple[str, str, str]) -> None:
    case = read(name, applied=True)
    system = make(case, way)
    got = system.drive_forces(case.q, case.u, case.tau)
    assert error(got, case.drive) < tolerance(system, case)
    # what the state and the forces say about prescribed coordinates is ignored
    tau = np.where(case.prescribed, 1e3, case.tau)
    assert np.array_equal(system.drive_forces(case.q, case.u + 7.0 * case.prescribed, tau), got)


@pytest.mark.parametrize("way", WAYS[:1] + WAYS[3:], ids="-".join)
@pytest.mark.parametrize("name", CASES)
def test_canonical_momenta(name: str, way: tuple[str, str, str]) -> None:
    case = read(name)
    assert error(make(case, way).mass_matrix(case.q) @ case.u, case.momenta) < 1e-12


@pytest.mark.parametrize("name", CASES)
def test_rates_of_the_canonical_momenta(name: str) -> None:
    """d(M u)/dt along the motion, by differences of order eight."""
    case = read(name, prescribed=False)
    system = bc.compile(case.mechanism, backend="numpy")
    h = 2e-3
    steps = h * np.array([-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0])[:, None]
    weights = np.array([3.0, -32.0, 168.0, -672.0, 672.0, -168.0, 32.0, -3.0]) / (840.0 * h)
    q = system.integrate(case.q, steps * case.u + 0.5 * steps**2 * case.udot)
    momenta = np.einsum("kij,kj->ki", system.mass_matrix(q), case.u + steps * case.udot)
    assert error(weights @ momenta, case.momenta_rate) < 1e-10


@pytest.mark.parametrize("way", [WAYS[0], WAYS[3]], ids="-".join)
@pytest.mark.parametrize("name", CASES)
def test_accelerations_of_all_bodies(name: str, way: tuple[str, str, str]) -> None:
    case = read(name)
    system = make(case, way)
    scale = max(np.abs(x).max() for x in (*case.com_acceleration, *case.alpha))
    for body, com, a, alpha in zip(case.bodies, case.com, case.com_acceleration, case.alpha, strict=True):
        got = system.acceleration(case.q, case.u, case.udot, body, com)
        assert np.abs(got - [*alpha, *a]).max() < 1e-12 * scale, body
