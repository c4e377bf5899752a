"""Functions of machines for PyTorch: values, and gradients by vector-Jacobian products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from interop import POINT, by_method, sprung

torch = pytest.importorskip("torch")


def close(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    expected = np.asarray(expected)
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=tolerance * scale)


def leaves(*arrays: Any) -> list[Any]:
    return [torch.tensor(np.asarray(a), dtype=torch.float64, requires_grad=True) for a in arrays]


def test_values_and_gradients_of_a_batch() -> None:
    """One force for all states: its gradient is the sum."""
    system = bc.compile(bc.load("double_pendulum"), backend="numpy")
    q, u = system.random_state(np.random.default_rng(3), (2, 3))
    tau = np.array([0.3, -0.4])
    tensors = leaves(q, u, tau)
    value = bc.to_torch(system, "forward_dynamics")(*tensors)
    d = system.derivatives("forward_dynamics", q, u, tau, by=("q", "u", "tau"))
    close(value.detach(), d.value)
    (value**2).sum().backward()
    for x, by in zip(tensors, d, strict=True):
        slopes = 2.0 * np.einsum("abi,abij->abj", d.value, d[by])
        close(x.grad, slopes if by != "tau" else slopes.sum(axis=(0, 1)))


@pytest.mark.parametrize("name", ["forward_dynamics", "energy", "pose:bob", "velocity:bob", "mass_matrix"])
def test_quaternions_time_and_parameters(name: str) -> None:
    """Against differences, along a motion: lengths of quaternions mean nothing."""
    system = bc.compile(sprung(), backend="numpy")
    rng = np.random.default_rng(2)
    q, u = system.random_state(rng)
    s = {"q": q, "u": u, "tau": rng.normal(size=5), "t": 0.7, "parameters": np.array([3.0, 25.0]), "point": POINT}
    f = bc.to_torch(system, name)
    inputs = [x.split(" (")[0] for x in f.__doc__.partition("(")[2].split(")), ")]
    at = leaves(*(s[x] for x in inputs))
    expected = by_method(system.with_parameters(load=3.0, stiffness=25.0), name, s, 0.7)
    value = f(*at)
    close(value.detach(), expected)
    weights = rng.normal(size=np.shape(expected))
    (value * torch.tensor(weights)).sum().backward()
    way = rng.normal(size=5)
    way[0] = 0.0  # its coordinate follows a law

    def total(h: float) -> float:
        moved = {**s, "q": system.integrate(q, h * way), "u": u + 2 * h, "t": 0.7 + h,
                 "parameters": s["parameters"] * (1 + h)}
        return float((weights * f(*(torch.tensor(np.asarray(moved[x])) for x in inputs)).numpy()).sum())

    rates = {"q": system.kernels.run("coordinate_rates", {"q": q, "u": way}, None, 0.7), "u": 2.0, "t": 1.0,
             "parameters": s["parameters"], "tau": 0.0, "point": 0.0}
    rates["q"][0] = 0.0
    found = sum(float((x.grad.numpy() * rates[label]).sum()) for label, x in zip(inputs, at, strict=True))
    slope = (8 * (total(1e-3) - total(-1e-3)) - (total(2e-3) - total(-2e-3))) / 12e-3
    assert found == pytest.approx(slope, rel=1e-7, abs=1e-7)


def test_loops() -> None:
    system = bc.compile(bc.load("four_bar"), backend="numpy")
    state = system.assemble(q={"A": 0.5}, u={"A": 2.0})
    tensors = leaves(state.q, state.u, [0.3, -0.2, 0.1, 0.4])
    value = bc.to_torch(system, "forward_dynamics")(*tensors)
    d = system.derivatives("forward_dynamics", state, [0.3, -0.2, 0.1, 0.4], by=("q", "u", "tau"), closed=False)
    value.sum().backward()
    for x, by in zip(tensors, d, strict=True):
        close(x.grad, d[by].sum(axis=0), 1e-9)


def test_precision_and_what_needs_no_gradient() -> None:
    f = bc.to_torch(bc.compile(bc.load("pendulum"), backend="numpy"), "forward_dynamics")
    q = torch.tensor([0.5], requires_grad=True)
    found = f(q, torch.zeros(1), torch.zeros(1))
    assert found.dtype == torch.float32
    found.sum().backward()
    assert q.grad.dtype == torch.float32
    assert f([0.5], [0.0], torch.zeros(1)).dtype == torch.float64


def test_checked_by_torch() -> None:
    system = bc.compile(bc.load("double_pendulum"), backend="numpy")
    q, u = system.random_state(np.random.default_rng(5), 2)
    assert torch.autograd.gradcheck(bc.to_torch(system, "energy"), leaves(q, u))


def test_refusals() -> None:
    f = bc.to_torch(bc.compile(bc.load("double_pendulum"), backend="numpy"), "forward_dynamics")
    with pytest.raises(TypeError, match="takes q, u, tau, got 2"):
        f(torch.zeros(2), torch.zeros(2))
    with pytest.raises(TypeError, match=r"u needs the shape \(..., 2\), got \(3,\)"):
        f(torch.zeros(2), torch.zeros(3), torch.zeros(2))
    with pytest.raises(TypeError, match="q is on meta; machines are computed on the CPU"):
        f(torch.zeros(2, device="meta"), torch.zeros(2), torch.zeros(2))
    with pytest.raises(bc.ModelError, match="to_torch: no function"):
        bc.to_torch(bc.compile(bc.load("pendulum"), backend="numpy"), "forward")


@pytest.mark.parametrize("name", ["double_pendulum", "four_bar"])
def test_second_derivatives(name: str) -> None:
    """Through products: checked by torch, for batches and one force for all of them; by the mass matrix."""
    system = bc.compile(bc.load(name), backend="numpy")
    f, rng = bc.to_torch(system, "forward_dynamics"), np.random.default_rng(5)
    q, u = system.random_state(rng, 1 if system.loops else 2)
    if system.loops:
        q, u = system.project(system.integrate(system.assemble().q, 0.05 * q), u)
    tau = rng.normal(size=system.nu)
    assert torch.autograd.gradgradcheck(f, leaves(q, u, tau), atol=1e-4, rtol=1e-4)
    hessian = torch.autograd.functional.hessian(lambda x: (f(q[0], u[0], x) ** 2).sum(), torch.tensor(tau))
    response = system.derivatives("forward_dynamics", q[0], u[0], tau, by="tau")["tau"]
    close(hessian, 2.0 * response.T @ response, 1e-9)


def test_derivatives_that_there_are_not_are_refused() -> None:
    f, x = bc.to_torch(bc.compile(bc.load("pendulum"), backend="numpy"), "potential_energy"), leaves([0.3])[0]
    slope, = torch.autograd.grad(f(x), x, create_graph=True)
    curvature, = torch.autograd.grad(slope.sum(), x, create_graph=True)
    close(curvature.detach(), -f(x).item())
    with pytest.raises(bc.NotYetError, match="potential_energy can be differentiated twice"):
        torch.autograd.grad(curvature.sum(), x)
    system = bc.compile(sprung(), backend="numpy")
    turned = bc.to_torch(system, "kinetic_energy")
    q, u = system.random_state(np.random.default_rng(0))
    at = leaves(q, u, 0.0, [3.0, 25.0])[:len(turned.__doc__.split(")),"))]
    slope, = torch.autograd.grad(turned(*at), at[0], create_graph=True)
    with pytest.raises(bc.NotYetError, match="quaternions"):
        torch.autograd.grad(slope.sum(), at[0])
