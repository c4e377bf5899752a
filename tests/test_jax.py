"""Functions of machines in JAX: jit, grad, jvp and vmap through compiled code, and the graph in its own operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from interop import POINT, by_method, sprung

jax = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def doubles() -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def close(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    expected = np.asarray(expected)
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=tolerance * scale)


def some_state(system: bc.System) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    q, u = system.random_state(rng)
    return {"q": q, "u": u, "tau": 4.0 * rng.normal(size=system.nu), "udot": rng.normal(size=system.nu)}


def test_values_and_derivatives_both_ways() -> None:
    """Forward and in reverse, jitted or not, they are those of the library."""
    system = bc.compile(bc.load("double_pendulum"), backend="numpy")
    s = some_state(system)
    f, at = bc.to_jax(system, "forward_dynamics"), (s["q"], s["u"], s["tau"])
    d = system.derivatives("forward_dynamics", *at, by=("q", "u", "tau"))
    close(jax.jit(f)(*at), d.value)
    for way in (jax.jacrev, jax.jacfwd):
        for found, by in zip(jax.jit(way(f, argnums=(0, 1, 2)))(*at), d, strict=True):
            close(found, d[by])


def test_vmap_is_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call for all states, also where some inputs are the same for all, and below grad."""
    system = bc.compile(bc.load("double_pendulum"), backend="numpy")
    q, u = system.random_state(np.random.default_rng(3), 5)
    tau = np.array([0.3, -0.4])
    f = bc.to_jax(system, "forward_dynamics")
    calls: list[Any] = []
    plain = bc.System.forward_dynamics
    monkeypatch.setattr(bc.System, "forward_dynamics",
                        lambda self, *a, **k: calls.append(a) or plain(self, *a, **k))
    found = jax.jit(jax.vmap(f, in_axes=(0, 0, None)))(q, u, tau)
    assert len(calls) == 1
    close(found, plain(system, q, u, tau))
    d = system.derivatives("forward_dynamics", q, u, tau, by="q")
    for g in (f, bc.to_jax(system, "forward_dynamics", reverse_only=True)):
        gradient = jax.jit(jax.vmap(jax.grad(lambda q, u, g=g: (g(q, u, tau) ** 2).sum())))(q, u)
        close(gradient, 2.0 * np.einsum("bi,bij->bj", d.value, d["q"]))


@pytest.mark.parametrize("name", ["forward_dynamics", "energy", "pose:bob", "velocity:bob", "mass_matrix"])
def test_quaternions_time_and_parameters(name: str) -> None:
    """Beside the graph in JAX's own operations: along all motions, since lengths of quaternions mean nothing."""
    system = bc.compile(sprung(), backend="numpy")
    s = some_state(system) | {"t": 0.7, "parameters": np.array([3.0, 25.0]), "point": POINT}
    f, g = bc.to_jax(system, name), bc.to_jax(system, name, inline=True)
    inputs = [x.split(" (")[0] for x in g.__doc__.partition("(")[2].split("), ")]
    at = tuple(s[x] for x in inputs)
    assert inputs[-2:] == ["t", "parameters"]
    expected = by_method(system.with_parameters(load=3.0, stiffness=25.0), name, s, 0.7)
    close(f(*at), expected)
    close(g(*at), expected)
    rng, ways = np.random.default_rng(4), {}
    for i, x in enumerate(inputs):
        way = rng.normal(size=np.shape(at[i]))
        if x == "q":
            way = system.kernels.run("coordinate_rates", {"q": s["q"], "u": rng.normal(size=5)}, None, 0.7)
            way[0] = 0.0  # a coordinate that follows a law
        rates = [way if k == i else np.zeros(np.shape(a)) for k, a in enumerate(at)]
        close(jax.jvp(f, at, tuple(rates))[1], jax.jvp(g, at, tuple(rates))[1], 1e-9)
        ways[x] = way
    weights = rng.normal(size=np.shape(expected))
    h = bc.to_jax(system, name, reverse_only=True)
    for found, other, x in zip(jax.vjp(h, *at)[1](weights), jax.vjp(g, *at)[1](weights), inputs, strict=True):
        close((found * ways[x]).sum(), (other * ways[x]).sum(), 1e-9)


def test_loops() -> None:
    """Every entry by itself, as the function stands."""
    system = bc.compile(bc.load("four_bar"), backend="numpy")
    state = system.assemble(q={"A": 0.5}, u={"A": 2.0})
    at = (state.q, state.u, np.array([0.3, -0.2, 0.1, 0.4]))
    d = system.derivatives("forward_dynamics", *at, by=("q", "u", "tau"), closed=False)
    for inline in (False, True):
        f = bc.to_jax(system, "forward_dynamics", inline=inline)
        close(f(*at), d.value, 1e-9)
    for reverse_only in (False, True):
        f = bc.to_jax(system, "forward_dynamics", reverse_only=reverse_only)
        for found, by in zip(jax.jacrev(f, argnums=(0, 1, 2))(*at), d, strict=True):
            close(found, d[by], 1e-9)


def test_the_graph_is_differentiated_again() -> None:
    system = bc.compile(bc.load("double_pendulum"), backend="numpy")
    s = some_state(system)
    energy = bc.to_jax(system, "kinetic_energy", inline=True)
    close(jax.hessian(energy, argnums=1)(s["q"], s["u"]), system.mass_matrix(s["q"]))


def test_single_precision() -> None:
    jax.config.update("jax_enable_x64", False)
    f = bc.to_jax(bc.compile(bc.load("pendulum"), backend="numpy"), "forward_dynamics")
    found = f(np.array([0.5]), np.zeros(1), np.zeros(1))
    assert found.dtype == np.float32
    close(found, [-4.703165], 1e-6)


def test_refusals() -> None:
    system = bc.compile(bc.load("four_bar"), actuated=["C"], independent=["A"], backend="numpy")
    with pytest.raises(bc.ModelError, match="to_jax: no function 'forward'"):
        bc.to_jax(system, "forward")
    with pytest.raises(bc.ModelError, match="'loop_error' is not among"):
        bc.to_jax(system, "loop_error")
    with pytest.raises(bc.NotYetError, match="the same as actuated"):
        bc.to_jax(system, "inverse_dynamics")
    with pytest.raises(bc.ModelError, match="leave out reverse_only"):
        bc.to_jax(system, "forward_dynamics", inline=True, reverse_only=True)
    f = bc.to_jax(system, "forward_dynamics")
    with pytest.raises(TypeError, match="takes q, u, tau, got 2"):
        f(np.zeros(4), np.zeros(4))
    with pytest.raises(TypeError, match=r"u needs the shape \(4,\), got \(5, 4\); jax.vmap"):
        f(np.zeros(4), np.zeros((5, 4)), np.zeros(4))
