"""Closed chains by the spatial operator algebra: the traced text, and the paper's two systems step by step."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
import looped
import whole_states
from bellcrank.formulations.operator.operators import SpatialOperators
from bellcrank.formulations.operator.partition import Partition
from loop_extras import EXTRA, compiled, disagreement, grasp
from looped import EPS, ZOO

#: machines whose text is too long to be compiled as a whole
LARGE = ("rope_ladder", "linkage_quadruped")
#: also run without compiling
REFERENCE = (*LARGE, "four_bar", "stewart", "four_bar_chain")


def allowed(nu: int) -> float:
    return 1000.0 * nu * EPS


@pytest.mark.parametrize("name", [n for n in ZOO if n not in LARGE])
def test_zoo_compiled(name: str) -> None:
    machine = bc.load(name)
    assert looped.disagreement(machine, "operator") < allowed(30)


@pytest.mark.parametrize("name", REFERENCE)
def test_zoo_reference(name: str) -> None:
    machine = bc.load(name)
    assert looped.disagreement(machine, "operator", "numpy", seed=1) < allowed(30)


@pytest.mark.parametrize("name", EXTRA)
def test_couplers_drives_and_all_closures(name: str) -> None:
    assert disagreement(name, "operator") < allowed(30)


# -- primary and secondary systems ----------------------------------------------------------------------------------
def forces(system: bc.System, q: np.ndarray, u: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """tau less the bias, of the joints that carry links."""
    bias = whole_states.of_tree(system, system.bias(q, u, speeds="tree"))
    return whole_states.tree_forces(system, q, tau) - bias


def divided(system: bc.System, secondary: tuple[str, ...], seed: int = 0) -> tuple[Partition, tuple[np.ndarray, ...]]:
    """A partition in a general closed state, and that state."""
    q, u, tau = (x[0] for x in looped.states(system, seed, 1))
    loops = system.plans.loops
    rows = loops.rows(q, u)
    force = np.zeros(system.nu)
    force[whole_states.carrying(system, True)] = forces(system, q, u, tau)
    return Partition(system.model.tree, bc.analyze.operators(system, q), force, rows,
                     loops.poses(q, 0.0)[0], loops.gamma(q, u, rows=rows), secondary=secondary), (q, u, tau)


def held(grips: tuple[str, ...] = ("left", "right"), grip: bc.Spherical | None = None, arm: str = "zyyxyz"
         ) -> bc.System:
    return bc.compile(grasp(grips, grip, arm), "dense", "numpy", cut=[f"{g} grip" for g in grips])


def far(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


GRASPS = [(None, "zyyxyz"), (bc.Spherical(), "zyy")]


@pytest.mark.parametrize(("grip", "arm"), GRASPS)
def test_steps_of_a_grasp(grip: bc.Spherical | None, arm: str) -> None:
    """Steps (A)-(F), each against matrices; the crate is the secondary system."""
    system = held(grip=grip, arm=arm)
    part, (q, u, tau) = divided(system, ("crate",))
    mass, force = whole_states.tree_matrix(system, q), forces(system, q, u, tau)
    some, small = whole_states.carrying(system, True), list(range(6))
    others = [i for i in range(system.nu) if i not in some]
    assert part.free.halves[1].speeds == small
    assert far(sum(part.step_a())[some], np.linalg.solve(mass, force)) < 1e-12
    assert not part.step_a().primary[small].any() and not part.step_a().secondary[6:].any()
    jacobian = bc.analyze.loop_jacobian(system, q)[..., some]
    assert far(part._seen(0) + part._seen(1), jacobian @ np.linalg.solve(mass, force)) < 1e-12  # (B)
    inverse = jacobian @ np.linalg.solve(mass, jacobian.T)
    assert far(sum(part._reflected), inverse) < 1e-12  # (C)
    f = part.step_d()
    assert np.abs(f).max() > 0.1
    assert far(sum(part.step_e())[some], -np.linalg.solve(mass, jacobian.T @ f)) < 1e-11  # (E)
    udot = system.forward_dynamics(q, u, tau)
    expected = udot[some]
    assert far(part.step_f()[some], expected) < 1e-11
    assert np.abs(sum(part.step_a())[some] - expected).max() > 0.1  # the grasp matters
    assert far(part.closed_form()[some], expected) < 1e-11  # (3.13)
    assert bool(others) == (grip is not None) and not part.step_f()[others].any()  # of the spanning tree alone
    whole = bc.analyze.partition(system, q, u, tau, secondary=["crate"])
    assert far(whole.step_f(), udot) < 1e-11 and far(whole.closed_form(), udot) < 1e-11
    assert np.abs(part.right).max() > 0.01  # with U not zero


@pytest.mark.parametrize(("grip", "arm"), GRASPS)
def test_secondary_system_first(grip: bc.Spherical | None, arm: str) -> None:
    """The alternative step (D)."""
    system = held(grip=grip, arm=arm)
    part, state = divided(system, ("crate",), seed=3)
    betadot, f = part.secondary_first()
    assert far(f, part.step_d()) < 1e-10
    assert far(part.step_d_small(), f) == 0.0
    assert far(betadot, system.forward_dynamics(*state)[:6]) < 1e-10
    blocks = part._reflected.primary  # the arms do not influence each other
    half = len(blocks) // 2
    assert not blocks[:half, half:].any() and blocks[:half, :half].any()


def test_alternative_needs_the_primary_system() -> None:
    part, _ = divided(held(), ("crate", "left0", "right0"))
    with pytest.raises(bc.SingularError, match="step_d_small"):
        part.step_d_small()


@pytest.mark.parametrize("kept", ["left", "right"])
def test_letting_go(kept: str) -> None:
    """Without a closure, the machine moves like one that was compiled without it."""
    system = held()
    part, state = divided(system, ("crate",), seed=1)
    loose = bc.compile(grasp((kept,)), "dense", "numpy", cut=[f"{kept} grip"])
    some = whole_states.carrying(system, True)
    names = [system.speed_names[i] for i in some]
    assert [loose.speed_names[i] for i in whole_states.carrying(loose, True)] == names

    def far_from(found: np.ndarray, other: bc.System) -> float:
        """The joints that carry links move like those of another machine with their forces."""
        q, u, tau = state
        own = whole_states.carrying(other, True)
        place, speeds = whole_states.whole_state(
            other, q[whole_states.carrying(system)], whole_states.of_tree(system, u))
        push = np.zeros(other.nu)
        push[own] = whole_states.tree_forces(system, q, tau)
        return far(found[some], other.forward_dynamics(place, speeds, push)[own])

    one = part.with_constraints([f"{kept} grip"])
    assert far_from(one.step_f(), loose) < 1e-11
    assert far_from(one.closed_form(), loose) < 1e-11
    assert far_from(part.step_f(), loose) > 1e-3
    none = part.with_constraints([])
    free = bc.compile(grasp(()), "recursive", "numpy")
    assert far_from(none.step_f(), free) < 1e-12 and far_from(none.closed_form(), free) < 1e-12
    again = one.with_constraints(["left grip", "right grip"])
    assert far_from(again.step_f(), system) < 1e-11


def test_a_change_of_closures_touches_step_d_only(monkeypatch: pytest.MonkeyPatch) -> None:
    part, _ = divided(held(), ("crate",))
    done = part.step_a(), part.step_b(), part.step_c()

    def refuse(*args: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(SpatialOperators, "omega", refuse)
    monkeypatch.setattr(SpatialOperators, "mass_inverse", property(refuse))
    other = part.with_constraints(["right grip"])
    assert all(a is b for a, b in zip((other.step_a(), other.step_b(), other.step_c()), done, strict=True))
    assert len(other.step_d()) == 6 and len(part.step_d()) == 12
    assert np.isfinite(other.step_f()).all()


@pytest.mark.parametrize("name", [*ZOO, *(n for n in EXTRA if n not in ("driven", "cams"))])
def test_partition_of_every_machine(name: str) -> None:
    """Redundant rows, couplers, loops within the primary system; half of the trees are secondary."""
    system = compiled(name, "dense")
    roots = [k for k in range(1, system.model.tree.n + 1) if system.model.tree.parent[k] == 0]
    part, state = divided(system, tuple(system.model.tree.link_names[k] for k in roots[::2]))
    some, expected = whole_states.carrying(system, True), system.forward_dynamics(*state)
    assert far(part.step_f()[some], expected[some]) < 1e-9
    assert far(part.closed_form()[some], expected[some]) < 1e-9
    whole = bc.analyze.partition(system, *state)
    assert far(whole.step_f(), expected) < 1e-9 and far(whole.closed_form(), expected) < 1e-9
    assert len(part.independent) == len(system.plans.general().kept)


def test_prescribed_speeds_are_left_to_u() -> None:
    system = bc.compile(EXTRA["driven"](), "dense", "numpy")
    part, state = divided(system, ("wheel",))
    expected = system.forward_dynamics(*state)
    driven = system.model.prescribed_mask()
    free = [i for i in whole_states.carrying(system, True) if not driven[i]]
    assert far(part.step_f()[free], expected[free]) < 1e-11
    assert np.abs(expected[driven]).min() > 0.5 and not part.step_f()[driven].any()


def test_errors_name_the_part() -> None:
    system = held()
    part, _ = divided(system, ("crate",))
    with pytest.raises(bc.ModelError, match="'grip'; there are left grip, right grip"):
        part.with_constraints(["grip"])
    with pytest.raises(bc.ModelError, match="no body 'box'"):
        divided(system, ("box",))
