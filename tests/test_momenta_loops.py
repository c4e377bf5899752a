"""Canonical momenta with loops: accelerations against the oracle, Hamilton's equations against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import bellcrank as bc
import looped
import whole_states
from loop_extras import EXTRA, compiled, disagreement
from looped import EPS, ZOO

LARGE = ("rope_ladder", "linkage_quadruped")
HAMILTON = [*ZOO, *EXTRA]


def allowed(nu: int) -> float:
    return 1000.0 * nu * EPS


@pytest.mark.everyday(6)
@pytest.mark.parametrize("name", [n for n in ZOO if n not in LARGE])
def test_zoo_compiled(name: str) -> None:
    assert looped.disagreement(bc.load(name), "momenta") < allowed(30)


@pytest.mark.everyday(8)
@pytest.mark.parametrize("name", [*LARGE, "four_bar", "stewart", *EXTRA])
def test_reference(name: str) -> None:
    assert disagreement(name, "momenta", seed=1) < allowed(30)


# -- Hamilton's equations -------------------------------------------------------------------------------------------
class Case(NamedTuple):
    """A machine in closed states with any sigma, and its Hamilton's equations."""

    oracle: bc.System
    q: np.ndarray
    u: np.ndarray
    tau: np.ndarray
    sigma: np.ndarray
    p: np.ndarray
    hamilton: Callable[..., tuple[np.ndarray, np.ndarray]]

    def rows(self, q: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Phi_q."""
        kept = list(self.oracle.plans.general().kept)
        return np.asarray(bc.analyze.loop_jacobian(self.oracle, q, t=t)[..., kept, :])

    @property
    def free(self) -> np.ndarray:
        return ~self.oracle.model.prescribed_mask()


def case(name: str, backend: str = "numpy") -> Case:
    return case_of(compiled(name, "dense"), compiled(name, "momenta", backend))


def on_tree(system: bc.System, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Forces of the joints that carry links with the power of those of all joints."""
    out = np.zeros_like(tau)
    out[..., whole_states.carrying(system, True)] = whole_states.tree_forces(system, q, tau)
    return out


def case_of(oracle: bc.System, system: bc.System) -> Case:
    q, u, tau = looped.states(oracle)
    u = whole_states.whole_u(oracle, q, whole_states.of_tree(oracle, oracle.kernels.run(
        "driven_speeds", {"q": q, "u": u})))
    run = system.kernels.planned(oracle.plans.general())

    def hamilton(q: np.ndarray, p: np.ndarray, tau: np.ndarray, t: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        pairs = system.kernels.run("constrained_hamilton", {"q": q, "p": p, "tau": tau}, None, t, run)
        pairs = pairs.reshape(*pairs.shape[:-1], system.nu, 2)
        return pairs[..., 0], pairs[..., 1]

    tau = on_tree(oracle, q, tau)
    made = Case(oracle, q, u, tau, np.random.default_rng(1).normal(size=(len(q), len(oracle.plans.general().kept))),
                q, hamilton)
    return made._replace(p=oracle.momenta(q, u, speeds="tree") + np.einsum("bmn,bm->bn", made.rows(q), made.sigma))


def size(x: np.ndarray) -> float:
    return float(np.abs(x).max())


@pytest.mark.parametrize("name", HAMILTON)
def test_speeds_from_momenta(name: str) -> None:
    """(7): whatever sigma is in p, the same speeds come out; momenta that contradict the loops are projected."""
    c = case(name)
    u, _ = c.hamilton(c.q, c.p, c.tau)
    plain, _ = c.hamilton(c.q, c.oracle.momenta(c.q, c.u, speeds="tree"), c.tau)  # sigma = 0: p = M u
    assert size(u - c.u) < 1e-9 * size(c.u)
    assert size(plain - c.u) < 1e-10 * size(c.u)
    own = c.oracle.model.tree.loop_speeds()
    assert not c.p[..., own].any()
    any_p, _ = c.hamilton(c.q, np.random.default_rng(2).normal(size=c.p.shape), c.tau)
    assert size(c.oracle.loop_rate_error(c.q, any_p)) < 1e-8 * (size(any_p) + 1.0)


@pytest.mark.parametrize("name", HAMILTON)
def test_momentum_rates(name: str) -> None:
    """(8): dp/dt = tau - h + dM/dt u + dPhi_q/dt^T sigma, matrices differentiated by differences."""
    c = case(name)
    _, pdot = c.hamilton(c.q, c.p, c.tau)
    h = 1e-4
    ends = [(k * h, c.oracle.integrate(c.q, k * h * c.u)) for k in (1.0, -1.0)]
    turned = [np.einsum("bmn,bm->bn", c.rows(q, t), c.sigma) for t, q in ends]
    carried = [np.einsum("bij,bj->bi", c.oracle.mass_matrix(q, t=t, speeds="tree"), c.u) for t, q in ends]
    free = c.tau - c.oracle.bias(c.q, c.u, speeds="tree") + (carried[0] - carried[1]) / (2.0 * h)
    if not c.free.all():  # prescribed accelerations are in the bias, but dM/dt u + M udot has them as well
        driven = np.where(c.free, 0.0, c.oracle.forward_dynamics(c.q, c.u, c.tau))
        free = free + np.einsum("bij,bj->bi", c.oracle.mass_matrix(c.q, speeds="tree"), driven)
    expected = free + (turned[0] - turned[1]) / (2.0 * h)
    assert size((turned[0] - turned[1]) / (2.0 * h)) > 1e-5 * size(expected) or name == "geared"
    assert size((pdot - expected)[:, c.free]) < 1e-7 * size(expected)


@pytest.mark.parametrize("name", ["four_bar", "quarter_car", "delta", "bricard", "geared", "driven", "Planar"])
def test_flow_has_the_accelerations_of_the_oracle(name: str) -> None:
    """Along (q, p) -> (u, dp/dt) the speeds change by the oracle's udot: sigma takes care of lambda."""
    c = case(name)
    _, pdot = c.hamilton(c.q, c.p, c.tau)
    udot = c.oracle.forward_dynamics(c.q, c.u, c.tau)
    h = 1e-5
    ends = [c.hamilton(c.oracle.integrate(c.q, s * h * c.u + 0.5 * h * h * udot), c.p + s * h * pdot, c.tau, s * h)[0]
            for s in (1.0, -1.0)]
    assert size((ends[0] - ends[1]) / (2.0 * h) - udot) < 1e-5 * size(udot)


@pytest.mark.parametrize("name", ["four_bar", "quarter_car", "jansen", "geared", "driven"])
def test_hamilton_compiled(name: str) -> None:
    reference, native = case(name), case(name, "llvm")
    for a, b in zip(reference.hamilton(reference.q, reference.p, reference.tau),
                    native.hamilton(native.q, native.p, native.tau), strict=True):
        assert size(a - b) < 1e-9 * size(a)


@pytest.mark.parametrize("name", ["four_bar", "stewart", "Universal", "Planar", "Screw"])
def test_forces_at_loop_joints_act(name: str) -> None:
    """They change the momenta like forces of the same power at the other joints, but for forces of the constraints."""
    system = compiled(name, "momenta")
    q, u, tau = looped.states(system)
    p, own = system.momenta(q, u, speeds="tree"), system.model.tree.loop_speeds()
    assert own.any()
    speeds, rate = system.hamilton(q, p, tau)
    _, also = system.hamilton(q, p, on_tree(system, q, tau))
    _, without = system.hamilton(q, p, np.where(own, 0.0, tau))
    _, s, vt = np.linalg.svd(bc.analyze.loop_jacobian(system, q))
    assert size(rate - without) > 1e-3 * size(rate)
    for k, difference in enumerate(rate - also):
        moves = vt[k, int((s[k] > 1e-9 * s[k].max()).sum()):]
        assert len(moves) and size(moves @ difference) < 1e-10 * size(rate)
    assert size(speeds - u) < 1e-9 * size(u) and not rate[..., own].any()


def test_dampers_see_the_speeds() -> None:
    """Forces that depend on speeds act on momenta, though u is not an input."""
    rates = []
    for damping in (0.0, 3.0):
        m = bc.load("four_bar")
        m.add_joint_spring("damper", "A", damping=damping)
        c = case_of(bc.compile(m, "dense", "numpy"), bc.compile(m, "momenta", "numpy"))
        rates.append((c, c.hamilton(c.q, c.p, c.tau)[1]))
    (c, free), (_, damped) = rates
    hinge = c.oracle.speed_names.index("A.angle")
    assert np.abs((damped - free)[:, hinge] + 3.0 * c.u[:, hinge]).max() < 1e-10 * size(free)
