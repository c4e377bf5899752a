"""A lead screw whose thread closes a loop (a nut that spins, a car on a rail): one degree of freedom, known in full.

The car weighs M and moves by -pitch times the turn of the nut, whose inertia is SPIN; a spring of stiffness k is on the
rail: (SPIN + M pitch^2) spin'' = M g pitch - k pitch^2 spin.
"""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.mechanism.joints import Joint
from bellcrank.mechanism.joints.joint import Reversed

EPS = float(np.finfo(float).eps)
PITCH, M, SPIN, G, K = 0.002, 2.0, 1e-3, 9.81, 500.0
CUTS = ("thread", "rail", "spin")
#: the thread between nut and car in all ways to say it: joint, whether the car is its parent
THREADS: dict[str, tuple[Joint, bool]] = {
    "screw": (bc.Screw("z", PITCH), False), "screw from the car": (bc.Screw("z", PITCH), True),
    "Reversed": (Reversed(bc.Screw("z", PITCH)), True), "reversed": (bc.Screw("z", PITCH).reversed(), False)}


def jack(thread: str = "screw", stiffness: float = 0.0) -> bc.Mechanism:
    m = bc.Mechanism("jack", gravity=(0, 0, -G))
    nut, car = m.add_body("nut", bc.Inertia(1.0, (0, 0, 0), SPIN)), m.add_body("car", bc.Inertia(M, (0, 0, 0), 0.1))
    m.add_joint("spin", bc.Revolute("z"), m.ground, nut)
    m.add_joint("rail", bc.Prismatic("z"), m.ground, car)
    joint, swapped = THREADS[thread]
    m.add_joint("thread", joint, *((car, nut) if swapped else (nut, car)))
    if stiffness:
        m.add_joint_spring("coil", "rail", stiffness=stiffness)
    return m


def place(system: bc.System, spin: np.ndarray | float, rate: np.ndarray | float = 0.0, *, thread: str = "screw"
          ) -> tuple[np.ndarray, np.ndarray]:
    """q and u for turns of the nut and their rates."""
    # a right-handed thread is so from both sides; its coordinate is the child's turn in the parent
    factor = {"spin": 1.0, "rail": -PITCH, "thread": 1.0 if thread in ("screw from the car", "reversed") else -1.0}
    share = np.array([factor[name] for name in system.joint_names])
    return np.multiply.outer(spin, share), np.multiply.outer(rate, share)


def acceleration(spin: float = 0.0, stiffness: float = 0.0) -> float:
    return (M * G * PITCH - stiffness * PITCH**2 * spin) / (SPIN + M * PITCH**2)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("cut", CUTS)
def test_closed_in_every_turn(cut: str, backend: str) -> None:
    """Hundreds of turns: errors are rounding of the turn itself, and grow evenly where the car leaves the thread."""
    system = bc.compile(jack(), backend=backend, cut=[cut])
    spin = np.linspace(-5000.0, 5000.0, 4001)
    q, u = place(system, spin, 1.0)
    limit = 20 * EPS * 5000.0
    assert np.abs(system.loop_error(q)).max() < limit
    assert np.abs(system.loop_rate_error(q, u)).max() < limit
    if cut != "thread":
        return
    off = 1e-4  # a fraction of the lead of 12.6 mm
    q[:, list(system.joint_names).index("rail")] += off
    error = system.loop_error(q)[:, -1]
    assert error == pytest.approx(np.full(len(spin), off), abs=limit)


@pytest.mark.parametrize("thread", THREADS)
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("method", ["elimination", "kane", "recursive", "operator", "momenta", "complement",
                                    "reduction", "dense", "divide"])
def test_every_method_after_many_turns(method: str, cut: str, thread: str) -> None:
    for backend in ("llvm", "numpy"):
        system = bc.compile(jack(thread, K), method, backend, cut=[cut])
        q, u = place(system, 700.0, 3.0, thread=thread)
        udot = system.forward_dynamics(q, u)
        assert np.abs(system.loop_error(q)).max() < 1e-12
        expected = place(system, acceleration(700.0, K), thread=thread)[0]
        assert udot == pytest.approx(expected, rel=1e-9)
        assert np.abs(system.inverse_dynamics(q, u, udot)).max() < 1e-9 * M * G


@pytest.mark.parametrize("cut", CUTS)
def test_holding_any_of_the_joints(cut: str) -> None:
    """The nut, the car or the thread itself, which knows its whole turns."""
    system = bc.compile(jack(), cut=[cut])
    for held, spin in (({"spin": 0.3}, 0.3), ({"rail": -0.001}, 0.5), ({"thread": -0.7}, 0.7), ({"spin": -3.0}, -3.0)):
        state = system.assemble(q=held)
        assert state.q == pytest.approx(place(system, spin)[0], abs=1e-11)
        assert np.abs(system.loop_error(state.q)).max() < 1e-13
    far = system.assemble(q={"thread": -30.0})  # five turns
    known = dict(zip(system.joint_names, far.q, strict=True))
    if cut == "thread":
        assert bc.analyze.loop_coordinates(system, far.q, "thread") == pytest.approx([-30.0], abs=1e-9)
        assert known["rail"] == pytest.approx(-0.06, abs=1e-11)
    else:
        assert known["thread"] == -30.0
    assert np.abs(system.loop_error(far.q)).max() < 1e-13


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("stepper", ["rk4", "gauss", "dop853"])
def test_simulated_over_hundreds_of_turns(cut: str, stepper: str) -> None:
    system = bc.compile(jack(), cut=[cut])
    q, u = place(system, 0.0, 100.0)
    result = system.simulate((q, u), 5.0, stepper=stepper, **({} if stepper == "dop853" else {"step": 0.01}))
    assert result.attrs["status"] == "finished", result.attrs["reason"]
    end = 100.0 * 5.0 + 0.5 * acceleration() * 25.0  # nearly a thousand rad
    assert result.q.values[-1] == pytest.approx(place(system, end)[0], rel=1e-9)
    assert float(result.loop_error.max()) < 1e-12 and result.attrs["energy_drift"] < 1e-9


@pytest.mark.parametrize("cut", CUTS)
def test_rolled_code_knows_the_thread_too(cut: str) -> None:
    """Where screws share code, their pitch is read at run time."""
    system = bc.compile(jack(), schedule="rolled", cut=[cut])
    q, u = place(system, np.array([0.0, 700.0]), np.array([100.0, -50.0]))
    result = system.simulate((q, u), 2.0, step=0.01)
    assert result.attrs["status"] == "finished", result.attrs["reason"]
    end = np.array([200.0, 600.0]) + 2.0 * acceleration()
    np.testing.assert_allclose(result.q.isel(time=-1).values, place(system, end)[0], rtol=1e-9)
    assert float(result.loop_error.max()) < 1e-12
    near = system.project(q[1] + 1e-4, u[1])
    assert np.abs(system.loop_error(near.q)).max() < 1e-13 and np.abs(near.q - q[1]).max() < 1e-3


@pytest.mark.parametrize("cut", CUTS)
def test_questions_about_it(cut: str) -> None:
    system = bc.compile(jack(stiffness=K), cut=[cut])
    state = bc.analyze.equilibrium(system)
    rest = M * G / (K * PITCH)  # three turns
    assert state.q == pytest.approx(place(system, rest)[0], rel=1e-6)
    root = PITCH * np.sqrt(K / (SPIN + M * PITCH**2))
    assert np.abs(bc.analyze.modes(system, state).eigenvalues.imag) == pytest.approx([root], rel=1e-6)
    model = bc.analyze.linearize(system, state)
    assert np.sort(np.abs(np.linalg.eigvals(model.A))) == pytest.approx([root, root], rel=1e-6)


@pytest.mark.parametrize("cut", CUTS)
def test_reactions_of_it(cut: str) -> None:
    """The rail is free along itself: the car hangs on the thread."""
    system = bc.compile(jack(), cut=[cut])
    q, u = place(system, 700.0, 3.0)
    loads = system.reactions(q, u)
    force = M * (G - PITCH * acceleration())
    assert np.abs(loads["thread"][5]) == pytest.approx(force, rel=1e-9)
    assert np.abs(loads["thread"][2]) == pytest.approx(SPIN * acceleration(), rel=1e-9)
    assert np.abs(loads["rail"][5]) < 1e-9 * force and np.abs(loads["spin"][2]) < 1e-9


def test_driven_through_many_turns() -> None:
    for cut in CUTS:
        system = bc.compile(jack(), cut=[cut])
        times = np.linspace(0.0, 10.0, 501)
        found = bc.analyze.drive(system, {"rail": lambda t: -0.02 * t}, times) if cut != "rail" else \
            bc.analyze.drive(system, {"spin": lambda t: 10.0 * t}, times)
        assert found.q.values == pytest.approx(place(system, 10.0 * times)[0], abs=1e-9)


def test_stabilised_screw_returns_to_its_thread() -> None:
    """Baumgarte's terms see how far the car is off its thread, not how far it is from the start."""
    system = bc.compile(jack(), "kane", cut=["thread"], baumgarte=(5.0, 7.0))
    plain = bc.compile(jack(), "kane", cut=["thread"])
    q, u = place(system, 700.0, 3.0)
    assert system.forward_dynamics(q, u) == pytest.approx(plain.forward_dynamics(q, u), rel=1e-9)


def test_screws_with_and_without_pitch_side_by_side() -> None:
    """Joints of one type are evaluated together, whatever their pitch."""
    m = bc.Mechanism("two")
    for i, pitch in enumerate((0.0, 0.01)):
        nut, car = m.add_body(f"nut{i}", bc.Inertia(1.0, (0, 0, 0), SPIN)), m.add_body(f"car{i}", bc.Inertia(M))
        m.add_joint(f"spin{i}", bc.Revolute("z"), m.ground, nut)
        m.add_joint(f"rail{i}", bc.Prismatic("z"), m.ground, car)
        m.add_joint(f"thread{i}", bc.Screw("z", pitch), nut, car)
    values = []
    for backend in ("llvm", "numpy"):
        system = bc.compile(m, backend=backend, cut=["thread0", "thread1"])
        places = {"spin0": 0.4, "rail0": 0.003, "spin1": 100.0, "rail1": -1.0 + 0.002, "thread0": -0.4,
                  "thread1": -100.0}
        q = np.array([places[n] for n in system.joint_names])
        values.append(system.loop_error(q)[[4, 9]])
        assert values[-1] == pytest.approx([0.003, 0.002], abs=1e-13)
