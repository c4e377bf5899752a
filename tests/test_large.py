"""Machines from one body to twenty thousand: rolled code is the same for all, memory grows with the bodies."""

from __future__ import annotations

import weakref
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.examples.chains import random_chain
from bellcrank.target.llvm import compiling, jit

SIZES = (1, 2, 50, 1000, 20000)


@cache
def chain(n: int) -> bc.Mechanism:
    return random_chain(n)


@cache
def alike(n: int) -> bc.Mechanism:
    """A chain whose links differ in mass and length only, so that their code is the same."""
    rng = np.random.default_rng(n)
    m = bc.Mechanism(f"{n} links")
    previous = m.ground
    for i in range(n):
        body = m.add_body(f"b{i}", bc.Inertia.box(float(rng.uniform(0.5, 2.0)), (0.2, 0.3, 0.5), (0.1, 0.2, 0.3)))
        m.add_joint(f"j{i}", bc.Revolute((1.0, 2.0, 3.0)), previous, body,
                    bc.Pose((0.2, 0.1, float(rng.uniform(0.2, 0.4))), (0.8, 0.0, 0.6, 0.0)))
        previous = body
    return m


def branching(n: int, parent: dict[int, int]) -> bc.Mechanism:
    """n bodies on hinges and slides; body i is carried by `parent[i]`, the ground where it is not listed."""
    rng = np.random.default_rng(n)
    m = bc.Mechanism(f"tree of {n}")
    for i in range(n):
        body = m.add_body(f"b{i}", bc.Inertia.box(rng.uniform(0.5, 2.0), rng.uniform(0.1, 0.4, 3), rng.normal(size=3)))
        joint = bc.Prismatic(rng.normal(size=3)) if i % 7 == 3 else bc.Revolute(rng.normal(size=3))
        carrier = m.body(f"b{parent[i]}") if i in parent else m.ground
        m.add_joint(f"j{i}", joint, carrier, body, bc.Pose(0.3 * rng.normal(size=3)))
    return m


def check_inverse(system: bc.System, seed: int = 0, size: tuple[int, ...] = ()) -> None:
    """Forward dynamics of the forces of inverse dynamics gives the accelerations back.

    In a chain of 20000 the root feels 1e10 N m: rounding there is what accelerations can be known to.
    """
    rng = np.random.default_rng(seed)
    q, u = system.random_state(rng, size)
    udot = rng.normal(size=u.shape)
    tau = system.inverse_dynamics(q, u, udot)
    got = system.forward_dynamics(q, u, tau)
    scale = np.abs(tau).max()
    assert np.abs(got - udot).max() < 1e-12 * max(1.0, scale)
    assert np.abs(system.inverse_dynamics(q, u, got) - tau).max() < 1e-12 * scale


@pytest.mark.parametrize("n", SIZES)
def test_chains_of_any_length(n: int) -> None:
    system = bc.compile(chain(n), schedule="rolled")
    assert (system.nu, len(system.body_names)) == (n, n)
    check_inverse(system)


@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_rolled_chains_agree_with_the_reference(n: int) -> None:
    reference = bc.compile(chain(n), backend="numpy", free_frames=False)
    q, u = reference.random_state(np.random.default_rng(1), 3)
    wanted = reference.forward_dynamics(q, u)
    condition = np.linalg.cond(reference.mass_matrix(q)).max()
    for free_frames in (True, False):
        system = bc.compile(chain(n), schedule="rolled", free_frames=free_frames)
        got = system.forward_dynamics(q, u)
        assert np.abs(got - wanted).max() < 1e-15 * n * condition * np.abs(wanted).max()
        assert np.abs(system.forward_dynamics(q[0], u[0]) - got[0]).max() < 1e-15 * n * condition * np.abs(wanted).max()


def test_a_thousand_against_the_reference() -> None:
    """Inverse dynamics has no condition number: the compiled loop and the plain text agree to rounding."""
    system, reference = bc.compile(chain(1000)), bc.compile(chain(1000), backend="numpy", free_frames=False)
    rng = np.random.default_rng(2)
    q, u = reference.random_state(rng)
    udot = rng.normal(size=1000)
    wanted = reference.inverse_dynamics(q, u, udot)
    assert np.abs(system.inverse_dynamics(q, u, udot) - wanted).max() < 1e-12 * np.abs(wanted).max()
    for at in ("link0", "link500", "link999"):
        got, place = system.pose(q, at), reference.pose(q, at)
        assert np.abs(got.position - place.position).max() < 1e-11
        assert np.abs(got.rotation - place.rotation).max() < 1e-11
    wanted_totals = reference.kinetic_energy(q, u), reference.potential_energy(q)
    np.testing.assert_allclose((system.kinetic_energy(q, u), system.potential_energy(q)), wanted_totals, rtol=1e-11)


def test_code_is_compiled_once_for_all_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    original = compiling.compiled

    def counting(text: str, effort: compiling.Effort) -> bytes:
        texts.append(text)
        return original(text, effort)

    monkeypatch.setattr(compiling, "compiled", counting)
    monkeypatch.setenv("BELLCRANK_CACHE", "off")  # everything that is needed is compiled

    def code_of(n: int) -> list[str]:
        texts.clear()
        monkeypatch.setattr(jit, "_loaded", weakref.WeakValueDictionary())  # what others still hold is not found
        system = bc.compile(alike(n), schedule="rolled")
        q, u = system.random_state(np.random.default_rng(0), 1)
        system.forward_dynamics(q, u)
        assert texts
        return list(texts)

    assert sorted(code_of(1000)) == sorted(code_of(20000))


def test_the_second_length_comes_from_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    compiled: list[int] = []
    original = compiling.compiled
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path))
    monkeypatch.setattr(jit, "_loaded", weakref.WeakValueDictionary())  # what other tests still hold is not found
    monkeypatch.setattr(compiling, "compiled", lambda text, more: compiled.append(len(text)) or original(text, more))
    for n, wanted in ((1000, True), (20000, False), (300, False)):
        compiled.clear()
        check_inverse(bc.compile(alike(n), schedule="rolled"))
        assert bool(compiled) == wanted, n


def test_memory_is_linear() -> None:
    def work(n: int) -> int:
        system = bc.compile(chain(n), schedule="rolled")
        kernel = system.kernels.evaluator.kernel(system.kernels.functions["forward_dynamics"], False, 1)
        assert kernel.rolled is not None
        return int(kernel.rolled.work_size)

    sizes = {n: work(n) for n in (50, 1000, 20000)}
    per_body = {n: size / n for n, size in sizes.items()}
    assert max(per_body.values()) < 100.0  # doubles
    for a, b in pairwise(sizes):
        slope = (sizes[b] - sizes[a]) / (b - a)
        assert slope == pytest.approx(per_body[20000], rel=0.02)


def test_a_large_machine_chooses_the_rolled_schedule() -> None:
    system = bc.compile(chain(1000))
    assert system.kernels.evaluator.kernel(system.kernels.functions["forward_dynamics"], False, 1).rolled is not None
    small = bc.compile(chain(2))
    assert small.kernels.evaluator.kernel(small.kernels.functions["forward_dynamics"], False, 1).rolled is None


#: bodies, and who carries whom
TREES: dict[str, tuple[int, dict[int, int]]] = {
    "star": (501, dict.fromkeys(range(1, 501), 0)),
    "star on the ground": (300, {}),
    "binary": (1023, {i: (i - 1) // 2 for i in range(1, 1023)}),
    "comb": (400, {i: i - 1 if i % 2 else i - 2 for i in range(1, 400)}),
    "random": (600, {i: int(np.random.default_rng(i).integers(0, i)) for i in range(1, 600)}),
}


@pytest.mark.everyday(3)
@pytest.mark.parametrize("name", list(TREES))
def test_trees(name: str) -> None:
    m = branching(*TREES[name])
    system, reference = bc.compile(m, schedule="rolled"), bc.compile(m, backend="numpy", free_frames=False)
    check_inverse(system)
    check_inverse(system, size=(5,))
    q, u = reference.random_state(np.random.default_rng(0))
    wanted = reference.inverse_dynamics(q, u, u)
    assert np.abs(system.inverse_dynamics(q, u, u) - wanted).max() < 1e-12 * np.abs(wanted).max()
    udot = reference.forward_dynamics(q, u)
    assert np.abs(system.forward_dynamics(q, u) - udot).max() < 1e-9 * np.abs(udot).max()


def test_batches_are_shared_between_threads() -> None:
    """One thread or several, the results are the same bits."""
    one, two = (bc.compile(chain(50), schedule="rolled", threads=n) for n in (1, 2))
    q, u = one.random_state(np.random.default_rng(0), 1003)
    assert np.array_equal(one.forward_dynamics(q, u), two.forward_dynamics(q, u))
    assert np.array_equal(one.inverse_dynamics(q, u, u), two.inverse_dynamics(q, u, u))
