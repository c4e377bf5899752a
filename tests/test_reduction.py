"""Recursive coordinate reduction: what it covers, what it refuses, and the paper's own steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import bellcrank as bc
import looped
from bellcrank.mechanism.joints import Joint
from looped import EPS

#: single loops on the ground, on moving bases, parallel manipulators, coupled loops with a common base
COVERED = ("four_bar", "slider_crank", "five_bar", "bennett", "bricard", "four_bar_chain", "linkage_quadruped",
           "redundant_five_bar", "stewart", "andrews", "double_wishbone", "ladder", "quarter_car", "delta")
#: coupled loops that end between two bodies of others: the paper's 4.4
REFUSED = dict.fromkeys(("rope_ladder", "scissor_lift", "jansen"), "coupled and have no common base body")


def allowed(nu: int) -> float:
    return 1000.0 * nu * EPS


# -- agreement ------------------------------------------------------------------------------------------------------
@pytest.mark.everyday(12)
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", COVERED)
def test_agrees_with_the_oracle(name: str, backend: str) -> None:
    assert looped.disagreement(bc.load(name), "reduction", backend) < allowed(26)


@pytest.mark.parametrize("name", ["ladder", "four_bar_chain", "stewart", "linkage_quadruped", "delta"])
def test_rolled_schedule(name: str) -> None:
    assert looped.disagreement(bc.load(name), "reduction", schedule="rolled", seed=1) < allowed(26)


def test_all_of_the_zoo_is_covered_or_refused() -> None:
    assert sorted((*COVERED, *REFUSED)) == sorted(looped.ZOO)


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_what_the_paper_leaves_open(name: str) -> None:
    with pytest.raises(bc.ModelError, match=REFUSED[name]) as caught:
        bc.compile(bc.load(name), "reduction")
    assert "method='elimination'" in str(caught.value)


def test_refuses_couplers() -> None:
    from loop_extras import geared

    with pytest.raises(bc.ModelError, match="coupler"):
        bc.compile(geared(), "reduction")


def test_trees_are_kanes() -> None:
    reduction, kane = (bc.compile(bc.load("chain", n=5), method) for method in ("reduction", "kane"))
    q, u, tau = np.random.default_rng(0).normal(size=(3, kane.nu))
    assert np.array_equal(reduction.forward_dynamics(q, u, tau), kane.forward_dynamics(q, u, tau))


def legs(base: Joint | None, count: int = 3) -> bc.Mechanism:
    """Legs of two links that meet at one pin, hung from the ground or from a cart on the joint `base`."""
    m = bc.Mechanism("legs")
    carrier = m.ground
    if base is not None:
        carrier = m.add_body("cart", bc.Inertia.box(2.0, (0.5, 0.2, 0.3), (0.1, 0.05, 0.02)))
        m.add_joint("cart", base, m.ground, carrier, at=(0.3, 0.2, 0.1))
    foot = None
    for k, x in enumerate((-0.6, 0.5, 1.1)[:count]):
        knee = (0.5 * x - 0.4, 0.7 + 0.1 * k, 0.0)
        upper = m.add_body(f"upper{k}", bc.Inertia.box(1.0 + 0.3 * k, (0.1, 0.4, 0.1), (0.5 * (x + knee[0]), 0.4, 0.0)))
        m.add_joint(f"hip{k}", bc.Revolute("z"), carrier, upper, at=(x, 0.1, 0.0))
        lower = m.add_body(f"lower{k}", bc.Inertia.box(0.7 + 0.2 * k, (0.1, 0.3, 0.1), (0.5 * knee[0] + 0.1, 1.0, 0.0)))
        m.add_joint(f"knee{k}", bc.Revolute("z"), upper, lower, at=knee)
        if foot is None:
            foot = lower
        else:
            m.add_joint(f"tip{k}", bc.Revolute("z"), foot, lower, at=(0.2, 1.4, 0.0))
    return m


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("base", [bc.Free(), bc.Spherical(), bc.Prismatic("x"), bc.Revolute((0.2, 1.0, 0.3))], ids=str)
def test_parallel_manipulators_on_moving_bases(base: Joint, count: int) -> None:
    """Ihat^{p;0} of (60): the virtual body is coupled to a base that moves."""
    for options in ({"backend": "numpy"}, {"schedule": "rolled"}):
        assert looped.disagreement(legs(base, count), "reduction", **options) < allowed(12)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["redundant_five_bar", "four_bar_chain", "stewart", "quarter_car"])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_wrenches(name: str, backend: str) -> None:
    machine = bc.load(name)
    oracle = bc.compile(machine, "dense", "numpy")
    q, u, tau = looped.states(oracle, 3)
    rng = np.random.default_rng(4)
    wrenches = {b.name: rng.normal(size=6) * 10.0 for b in machine.bodies}
    expected = oracle.forward_dynamics(q, u, tau, wrenches=wrenches)
    found = bc.compile(machine, "reduction", backend).forward_dynamics(q, u, tau, wrenches=wrenches)
    assert np.abs(found - expected).max() < allowed(21) * np.abs(expected).max()


@pytest.mark.parametrize("name", ["four_bar", "redundant_five_bar", "stewart", "ladder", "quarter_car"])
def test_stabilised_conditions(name: str) -> None:
    """Positions and speeds that do not close the loops are pulled back."""
    machine = bc.load(name)
    systems = [bc.compile(machine, method, baumgarte=(3.0, 5.0)) for method in ("elimination", "reduction")]
    q, u, tau = looped.states(systems[0], 5)
    tau[..., systems[0].model.tree.loop_speeds()] = 0.0  # whose direction is not determined where loops are open
    rng = np.random.default_rng(6)
    q, u = systems[0].integrate(q, 1e-4 * rng.normal(size=u.shape)), u + 1e-4 * rng.normal(size=u.shape)
    expected, found = (s.forward_dynamics(q, u, tau) for s in systems)
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()


def test_prescribed_joints_within_loops() -> None:
    machine = bc.load("redundant_five_bar")
    hip = machine.joints[0].name
    machine.prescribe(hip, lambda t: 0.4 + 0.8 * t + 0.6 * t * t)
    oracle = bc.compile(machine, "dense", "numpy")
    state = oracle.assemble(t=0.3)
    state = oracle.assemble(q=state.q, u=np.random.default_rng(7).normal(size=oracle.nu), t=0.3)
    tau = np.ones(oracle.nu)
    expected = oracle.forward_dynamics(state.q, state.u, tau, t=0.3)
    for backend in ("numpy", "llvm"):
        found = bc.compile(machine, "reduction", backend).forward_dynamics(state.q, state.u, tau, t=0.3)
        assert np.abs(found - expected).max() < allowed(6) * np.abs(expected).max()


def test_dependent_speeds_are_chosen_anew_where_their_delta_vanishes() -> None:
    """The crank turns all the way round; the joint that was to stay independent only swings, and stops on the way."""
    machine = bc.load("four_bar")
    reduction, oracle = bc.compile(machine, "reduction", independent=("C",)), bc.compile(machine, "dense", "numpy")
    state, first, used = oracle.assemble(), reduction.plans.general(), set()
    for angle in np.linspace(0.0, 2.0 * np.pi, 361):
        state = oracle.assemble(q={"A": angle}, u={"A": 1.0}, guess=state.q)
        expected = oracle.forward_dynamics(state.q, state.u, np.zeros(4))
        found = reduction.forward_dynamics(state.q, state.u, np.zeros(4))
        assert np.abs(found - expected).max() < 1e-11 * np.abs(expected).max()
        used.add(looped.plan_used(reduction, state.q, state.u).independent)
    assert len(used) > 1 and first.independent in used


# -- the ladder -----------------------------------------------------------------------------------------------------
ANGLES, RATES = (0.6, 0.4), (-0.5, 1.0)


def pendulum(cells: int) -> np.ndarray:
    """Accelerations of the two angles of every arm: the equivalent pendulum of shared/reference."""
    jx, jy, jz, s = (cells + 1) * np.array([1.132, 1.092, 0.05, 1.28])
    (s1, s2), (c1, c2), g = np.sin(ANGLES), np.cos(ANGLES), 9.81
    return np.array([(2.0 * (jx - jz) * s2 * c2 * RATES[0] * RATES[1] - g * s * s1 * c2) / (jx * c2**2 + jz * s2**2),
                     (-(jx - jz) * s2 * c2 * RATES[0] ** 2 - g * s * c1 * s2) / jy])


def all_joints(system: bc.System, cells: int, values: Sequence[float]) -> np.ndarray:
    """Two angles (or rates, or accelerations) of the arms as those of all joints."""
    of = {f"arm{i}.angle{k}": values[k - 1] for i in range(cells + 1) for k in (1, 2)}
    of |= {f"inner{i}.angle": -values[1] for i in range(1, cells + 1)}
    of |= {f"outer{i}.angle": values[1] for i in range(1, cells + 1)}
    return np.array([of[name] for name in system.coordinate_names])


@pytest.mark.everyday(4)
@pytest.mark.parametrize("cells", [1, 16, 256, 1024])
@pytest.mark.parametrize("schedule", ["auto", "rolled"])
def test_ladder_of_any_length_is_one_pendulum(cells: int, schedule: str) -> None:
    system = bc.compile(bc.load("ladder", cells=cells), "reduction", schedule=schedule)
    q, u, expected = (all_joints(system, cells, x) for x in (ANGLES, RATES, pendulum(cells)))
    found = system.forward_dynamics(q, u, np.zeros(system.nu))
    assert np.abs(found - expected).max() < 1e-10 * np.abs(expected).max()
    assert np.abs(found[:2] / expected[:2] - 1.0).max() < 1e-10


def test_work_per_cell_does_not_grow() -> None:
    """O(n + m): operations are linear in the number of cells, and fewer than those of the elimination."""
    def operations(cells: int, method: str) -> int:
        return bc.compile(bc.load("ladder", cells=cells), method, schedule="rolled").operation_count().total

    some = [operations(cells, "reduction") for cells in (64, 128, 192)]
    step = some[1] - some[0]
    assert abs(some[2] - some[1] - step) < 0.005 * step  # some cells may fold constants more
    assert some[2] < operations(192, "elimination")


# -- the last step into a moving base, (62)-(64) --------------------------------------------------------------------
def swinging_four_bar() -> bc.Mechanism:
    """A four-bar on a plate that swings about the origin: planar, cut where the rocker meets the plate."""
    m = bc.Mechanism("swinging four-bar", gravity=(0.0, -9.81, 0.0))
    last = m.ground
    for name, joint, at, com, mass in PARTS:
        body = m.add_body(name, bc.Inertia.box(mass, (0.3, 0.2, 0.1), (*com, 0.0)))
        m.add_joint(joint, bc.Revolute("z"), last, body, at=(*at, 0.0))
        last = body
    m.add_joint("D", bc.Revolute("z"), last, "plate", at=(*CLOSE, 0.0))
    return m


PARTS = (("plate", "O", (0.0, 0.0), (0.4, 0.3), 3.0), ("crank", "A", (0.1, 0.5), (0.2, 0.7), 1.0),
         ("coupler", "B", (0.25, 0.87), (0.6, 1.0), 2.0), ("rocker", "C", (1.0, 1.1), (0.9, 0.8), 1.5))
CLOSE = (0.9, 0.4)


def transcribed(q: np.ndarray, u: np.ndarray, corrected: bool) -> np.ndarray:
    """Accelerations by the paper's own recursion (33)-(71), line by line, in the plane: motions are (omega, vx, vy)."""
    angle, rate = np.cumsum(q), np.cumsum(u)
    at, com, mass = (np.array([part[i] for part in PARTS]) for i in (2, 3, 4))

    def turned(k: int, v: np.ndarray) -> np.ndarray:
        c, s = np.cos(angle[k]), np.sin(angle[k])
        return np.array([c * v[0] - s * v[1], s * v[0] + c * v[1]])

    def across(v: np.ndarray) -> np.ndarray:
        return np.array([-v[1], v[0]])

    joints, centres, remainders = [np.zeros(2)], [], []
    acceleration = np.zeros(2)
    for k in range(4):  # A_t, (7): without udot only centripetal parts remain
        arm = turned(k, com[k] - at[k])
        centres.append(joints[k] + arm)
        remainders.append(np.array([0.0, *(acceleration - rate[k] ** 2 * arm)]))
        reach = turned(k, (at[k + 1] if k < 3 else np.array(CLOSE)) - at[k])
        joints.append(joints[k] + reach)
        acceleration = acceleration - rate[k] ** 2 * reach
    centres.append(centres[0])  # the phantom: a copy of the plate
    around = np.array([0.0, *(acceleration - rate[0] ** 2 * (centres[0] - joints[4]))]) - remainders[0]

    shift, column = [], []
    for k in range(5):
        step = np.eye(3)
        step[1:, 0] = across(centres[k] - (centres[k - 1] if k else np.zeros(2)))
        shift.append(step)  # (S^k)^T
        column.append(np.array([1.0, *across(centres[k] - joints[k])]))  # P_k
    inertia = [np.diag([m * (0.3**2 + 0.2**2) / 12.0, m, m]) for m in mass]
    force = [i @ (np.array([0.0, 0.0, -9.81]) - a) for i, a in zip(inertia, remainders, strict=True)]  # (12)

    def far(k: int) -> np.ndarray:
        """(^kS^n)^T, (43)."""
        return np.eye(3) if k == 4 else far(k + 1) @ shift[k + 1]

    tau, chi, delta, solved = np.eye(3), {}, {}, {}
    for k in (4, 3, 2):
        p = far(k) @ column[k]
        solved[k] = p @ tau / (p @ tau @ p)  # (45), (47)
        chi[k] = -np.outer(column[k], solved[k])  # (48)
        delta[k] = shift[k] + chi[k] @ far(k - 1)  # (49)
        tau = tau - np.outer(tau @ p, solved[k])  # (44)
    gamma, xi, whole = {1: np.eye(3)}, {1: np.zeros((3, 3))}, {1: shift[1]}  # (52), (53), (^0S^k)^T
    for k in (2, 3):
        gamma[k], xi[k] = delta[k] @ gamma[k - 1], delta[k] @ xi[k - 1] + chi[k]
        whole[k] = shift[k] @ whole[k - 1]
    bodies = (1, 2, 3)
    cross = sum(gamma[k].T @ inertia[k] @ whole[k] for k in bodies)  # (60)
    moved = sum(gamma[k].T @ inertia[k] @ gamma[k] for k in bodies)
    rest = {k: force[k] - inertia[k] @ xi[k] @ around for k in bodies}
    push = sum(gamma[k].T @ rest[k] for k in bodies)
    p1 = column[1]
    pivot = p1 @ moved @ p1  # (66)
    if corrected:
        at_base = inertia[0] + sum(whole[k].T @ inertia[k] @ whole[k] for k in bodies) - np.outer(
            cross.T @ p1, p1 @ cross) / pivot
        on_base = force[0] + sum(whole[k].T @ rest[k] for k in bodies) - cross.T @ p1 * (p1 @ push) / pivot
    else:
        through = shift[1].T @ (np.eye(3) - np.outer(moved @ p1, p1) / pivot)  # (65)
        at_base, on_base = inertia[0] + through @ cross, force[0] + through @ push  # (62)-(64) as printed
    first = column[0] @ on_base / (column[0] @ at_base @ column[0])  # (67)
    base = column[0] * first
    second = p1 @ (push - cross @ base) / pivot  # (70)
    motion, out = p1 * second, [first, second]
    for k in (2, 3):
        out.append(-solved[k] @ (far(k - 1) @ motion + around))  # (55)
        motion = shift[k] @ motion + column[k] * out[-1]
    return np.array(out)


def test_last_step_into_a_moving_base() -> None:
    machine = swinging_four_bar()
    oracle = bc.compile(machine, "dense", "numpy", cut=["D"])
    assert oracle.coordinate_names == (*(f"{part[1]}.angle" for part in PARTS), "D.angle")
    for seed in range(3):
        q, u, _ = (x[0] for x in looped.states(oracle, seed, 1))
        expected = oracle.forward_dynamics(q, u, np.zeros(5))[:4]
        q, u = q[:4], u[:4]
        size = np.abs(expected).max()
        assert np.abs(transcribed(q, u, corrected=True) - expected).max() < 1e-12 * size
        assert np.abs(transcribed(q, u, corrected=False) - expected).max() > 1e-2 * size
    assert looped.disagreement(machine, "reduction") < allowed(4)
