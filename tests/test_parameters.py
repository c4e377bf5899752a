"""Parameters: numbers of the description that stay inputs of the compiled machine."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc
from bellcrank import math as bm
from bellcrank.target.llvm import jit

Floats = npt.NDArray[np.float64]

DEFAULTS = {"mass": 1.3, "com": 0.2, "inertia": 0.08, "outer": 0.4, "inner": -0.15, "pitch": 0.05, "gravity": 9.81,
            "force": 2.0, "at": 0.3, "tool": 0.25}
OTHERS = {"mass": 2.1, "com": -0.1, "inertia": 0.19, "outer": 0.7, "inner": 0.35, "pitch": -0.12, "gravity": 1.6,
          "force": -5.0, "at": -0.2, "tool": 0.6}
#: backend, schedule, free_frames
SYSTEMS = [("numpy", "auto", True), ("numpy", "auto", False), ("llvm", "unrolled", True), ("llvm", "rolled", True),
           ("llvm", "rolled", False)]
PLACES = ["base", "slide", "nut", "welded", "tip", "ball", "tool"]


def machine(values: dict[str, float], chosen: set[str]) -> bc.Mechanism:
    """A branched machine in which every number that may be a parameter is one, if it is among the `chosen`."""
    m = bc.Mechanism("machine")
    n: dict[str, Any] = {name: m.parameter(name, value) if name in chosen else value for name, value in values.items()}
    m.gravity = (0.0, 1.0, -n["gravity"])
    base = m.add_body("base", bc.Inertia(n["mass"], (n["com"], 0.1, 0.0),
                                         [[n["inertia"], 0.01, 0.0], [0.01, 0.1, 0.0], [0.0, 0.0, 0.12]]))
    slide = m.add_body("slide", bc.Inertia.box(1.0, (0.3, 0.2, 0.4), (0.1, 0.0, 0.1)))
    nut = m.add_body("nut", bc.Inertia.rod(2.0 * n["mass"], (0, 0, 0), (0, n["com"], 0.5)))
    tip = m.add_body("tip", bc.Inertia.sphere(0.7, 0.3, (0.0, 0.1, 0.2)))
    welded = m.add_body("welded", bc.Inertia(n["mass"], (0.0, n["com"], 0.0), 0.05))
    ball = m.add_body("ball", bc.Inertia.box(0.9, (0.2, 0.5, 0.3)))
    turned = (np.sqrt(0.5), 0.5, 0.0, 0.5)
    m.add_joint("hinge", bc.Revolute((0.2, 1.0, 0.3)), m.ground, base, bc.Pose((0.1, n["outer"], 0.0), turned))
    m.add_joint("slider", bc.Prismatic("x"), base, slide, bc.Pose((n["outer"], 0.0, 0.2)),
                bc.Pose((0.0, n["inner"], 0.1), turned))
    m.add_joint("screw", bc.Screw((0.0, 0.6, 0.8), n["pitch"]), nut, slide, bc.Pose((0.0, 0.2, n["inner"])),
                bc.Pose((0.3, 0.0, 0.0)))  # backwards: the nut is outboard
    m.add_joint("elbow", bc.Revolute("z"), welded, tip, bc.Pose((n["outer"] * 2.0, 0.1, 0.0), turned))
    m.add_joint("weld", bc.Weld(), nut, welded, bc.Pose((0.1, n["outer"], 0.2), turned),
                bc.Pose((n["inner"], 0.0, 0.0)))
    m.add_joint("ball", bc.Spherical(), base, ball, bc.Pose((0.0, n["outer"], 0.3)), bc.Pose((0.0, 0.0, n["inner"])))
    m.add_wrench("push", welded, force=(n["force"], 1.0, lambda t: bm.sin(t)), moment=(0.0, n["force"], 0.0),
                 at=(0.0, n["at"], 0.1))
    m.add_wrench("pull", ball, force=(0.0, n["force"], 0.0), at=(n["at"], 0.0, 0.0), axes="body")
    m.add_frame("tool", tip, bc.Pose((n["tool"], 0.0, 0.1), turned))
    return m


@cache
def system(backend: str, schedule: str, free_frames: bool, chosen: frozenset[str] = frozenset(DEFAULTS)) -> bc.System:
    return bc.compile(machine(DEFAULTS, set(chosen)), backend=backend, schedule=schedule, free_frames=free_frames)


@cache
def fixed(**changes: float) -> bc.System:
    """The machine built with these numbers, by the reference."""
    return bc.compile(machine({**DEFAULTS, **changes}, set()), backend="numpy", free_frames=False)


def results(s: bc.System, seed: int = 0, size: tuple[int, ...] = (), heavy: bool = True) -> dict[str, Floats]:
    rng = np.random.default_rng(seed)
    q, u = s.random_state(rng, size)
    a, b = rng.normal(size=(2, *u.shape))
    wrenches = rng.normal(size=(6, 6))
    found = {"forward": s.forward_dynamics(q, u, a, t=0.4), "inverse": s.inverse_dynamics(q, u, b, t=0.4)}
    if heavy:
        found |= {"wrenches": s.forward_dynamics(q, u, a, t=0.4, wrenches=wrenches), "mass": s.mass_matrix(q),
                  "energy": s.potential_energy(q) + s.kinetic_energy(q, u), "centre": s.center_of_mass(q),
                  "reactions": np.stack(list(s.reactions(q, u, udot=b, t=0.4, wrenches=wrenches).values()))}
        for place in PLACES:
            found[f"pose of {place}"] = s.pose(q, place).position
            found[f"velocity of {place}"] = s.velocity(q, u, place, (0.1, 0.2, 0.3))
            found[f"acceleration of {place}"] = s.acceleration(q, u, b, place)
            found[f"jacobian of {place}"] = s.jacobian(q, place)
    return found


def same(got: dict[str, Floats], wanted: dict[str, Floats]) -> None:
    assert got.keys() == wanted.keys()
    for name, value in wanted.items():
        assert got[name].shape == value.shape, name
        assert np.abs(got[name] - value).max() < 1e-11 * (1.0 + np.abs(value).max()), name


def test_every_number_matters() -> None:
    """The other values change the results, each by itself: the tests below would notice."""
    q, u = fixed().random_state(np.random.default_rng(0))
    before = fixed().forward_dynamics(q, u)
    for name, value in OTHERS.items():
        changed = fixed(**{name: value})
        moved = np.abs(changed.forward_dynamics(q, u) - before).max()
        assert moved > 1e-3 or np.abs(changed.pose(q, "tool").position - fixed().pose(q, "tool").position).max() > 0.1


@pytest.mark.parametrize("way", SYSTEMS, ids=str)
def test_values_equal_a_machine_built_with_them(way: tuple[str, str, bool]) -> None:
    heavy = way[0] == "numpy"
    s = system(*way)
    assert s.parameters == DEFAULTS
    same(results(s, heavy=heavy), results(fixed(), heavy=heavy))
    other = s.with_parameters(**OTHERS)
    assert other.parameters == OTHERS
    assert s.parameters == DEFAULTS  # systems do not change
    same(results(other, heavy=heavy), results(fixed(**OTHERS), heavy=heavy))
    same(results(s, heavy=heavy), results(fixed(), heavy=heavy))


@pytest.mark.parametrize("name", list(DEFAULTS))
def test_one_parameter_at_a_time(name: str) -> None:
    """Whatever else is a number, one parameter works alone (frames are chosen differently then)."""
    for free_frames in (True, False):
        s = system("numpy", "auto", free_frames, frozenset({name})).with_parameters(**{name: OTHERS[name]})
        same(results(s), results(fixed(**{name: OTHERS[name]})))


@pytest.mark.parametrize("name", ["outer", "pitch", "mass"])
@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
def test_one_parameter_compiled(name: str, schedule: str) -> None:
    s = system("llvm", schedule, True, frozenset({name})).with_parameters(**{name: OTHERS[name]})
    same(results(s, heavy=False), results(fixed(**{name: OTHERS[name]}), heavy=False))


def test_kinematics_compiled() -> None:
    s = system("llvm", "unrolled", True, frozenset({"outer", "inner"})).with_parameters(outer=0.9, inner=0.1)
    same(results(s), results(fixed(outer=0.9, inner=0.1)))


@pytest.mark.parametrize("way", [SYSTEMS[0], SYSTEMS[2], SYSTEMS[3]], ids=str)
def test_arrays_of_values_are_a_batch(way: tuple[str, str, bool]) -> None:
    masses, lengths = np.array([0.5, 1.0, 4.0]), np.array([[0.2], [0.9]])
    s = system(*way)
    q, u = s.random_state(np.random.default_rng(1))
    got = s.with_parameters(mass=masses).forward_dynamics(q, u)
    assert got.shape == (3, s.nu)
    for row, mass in zip(got, masses, strict=True):
        np.testing.assert_allclose(row, fixed(mass=float(mass)).forward_dynamics(q, u), rtol=1e-10, atol=1e-10)
    both = s.with_parameters(mass=masses, outer=lengths)
    assert both.forward_dynamics(q, u).shape == (2, 3, s.nu)
    np.testing.assert_allclose(both.forward_dynamics(q, u)[1, 2], fixed(mass=4.0, outer=0.9).forward_dynamics(q, u),
                               rtol=1e-10, atol=1e-10)
    # and with a batch of states
    many_q, many_u = s.random_state(np.random.default_rng(2), (2, 3))
    udot = both.forward_dynamics(many_q, many_u)
    np.testing.assert_allclose(udot[1, 0], fixed(mass=0.5, outer=0.9).forward_dynamics(many_q[1, 0], many_u[1, 0]),
                               rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("place", PLACES)
def test_arrays_of_lengths_give_batches_of_poses(place: str) -> None:
    """Also where the body itself, and not only its joints, moves with the parameter."""
    lengths = np.array([0.2, 0.9])
    s = system("numpy", "auto", True).with_parameters(outer=lengths, inner=lengths, tool=lengths)
    q, u = s.random_state(np.random.default_rng(1))
    for i, length in enumerate(lengths):
        one = fixed(outer=float(length), inner=float(length), tool=float(length))
        np.testing.assert_allclose(s.pose(q, place).position[i], one.pose(q, place).position, atol=1e-12)
        np.testing.assert_allclose(s.velocity(q, u, place)[i], one.velocity(q, u, place), atol=1e-12)
        np.testing.assert_allclose(s.jacobian(q, place)[i], one.jacobian(q, place), atol=1e-12)


def test_changing_values_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[object] = []
    original = jit.begin
    monkeypatch.setattr(jit, "begin", lambda *args: loaded.append(args) or original(*args))
    s = bc.compile(machine(DEFAULTS, {"mass", "outer"}))
    q, u = s.random_state(np.random.default_rng(0))
    s.forward_dynamics(q, u)
    s.forward_dynamics(np.stack([q] * 9), u)
    assert loaded
    loaded.clear()
    for mass in (0.4, 0.5, 0.6):
        other = s.with_parameters(mass=mass, outer=mass / 2)
        other.forward_dynamics(q, u)
        other.forward_dynamics(np.stack([q] * 9), u)
    assert not loaded


def test_bound_calls_see_the_values() -> None:
    s = bc.compile(machine(DEFAULTS, {"mass"}))
    q, u = s.random_state(np.random.default_rng(0))
    tau, t = np.zeros(s.nu), np.array([0.3])
    for mass in (0.7, 1.9):
        other = s.with_parameters(mass=mass)
        call = other.bind("bias", q, u, t)
        np.testing.assert_allclose(call(), fixed(mass=mass).bias(q, u, t=0.3), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(other.forward_dynamics(q, u, tau, t=0.3),
                                   fixed(mass=mass).forward_dynamics(q, u, tau, t=0.3), rtol=1e-9, atol=1e-9)


def test_parameters_of_bodies_welded_to_the_ground() -> None:
    def make(length: Any, m: bc.Mechanism) -> bc.System:
        post, arm = m.add_body("post"), m.add_body("arm", bc.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
        m.add_joint("foot", bc.Weld(), m.ground, post, bc.Pose((0.0, 0.0, length)))
        m.add_joint("hinge", bc.Revolute("y"), post, arm, bc.Pose((0.5, length, 0.0)))
        return bc.compile(m, backend="numpy")

    m = bc.Mechanism()
    s = make(m.parameter("length", 2.0), m).with_parameters(length=3.0)
    one = make(3.0, bc.Mechanism())
    for name in ("arm", "post"):
        np.testing.assert_allclose(s.pose([0.7], name).position, one.pose([0.7], name).position, atol=1e-14)
    np.testing.assert_allclose(s.potential_energy([0.7]), one.potential_energy([0.7]), atol=1e-12)


# -- errors ----------------------------------------------------------------------------------------
def test_unknown_parameter() -> None:
    with pytest.raises(bc.ModelError, match="no parameter 'mas' in 'machine'; it has mass, com"):
        system("numpy", "auto", True).with_parameters(mas=1.0)
    with pytest.raises(bc.ModelError, match="'x'.*none"):
        fixed().with_parameters(x=1.0)


def test_a_parameter_is_declared_once_and_finite() -> None:
    m = bc.Mechanism("m")
    m.parameter("length", 1.0)
    with pytest.raises(bc.ModelError, match="'length' exists already"):
        m.parameter("length", 2.0)
    with pytest.raises(bc.ModelError, match=r"'other'.*not finite"):
        m.parameter("other", float("nan"))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("way", [SYSTEMS[0], SYSTEMS[2], SYSTEMS[3]], ids=str)
def test_values_must_be_finite(way: tuple[str, str, bool], bad: float) -> None:
    s = system(*way).with_parameters(mass=bad)
    q, u = s.random_state(np.random.default_rng(0))
    with pytest.raises(bc.StateError, match="mass"):
        s.forward_dynamics(q, u)


@pytest.mark.parametrize("own", [False, True], ids=["", "has its own"])
@pytest.mark.parametrize("where", ["mass", "length", "pitch", "gravity", "force", "at"])
def test_parameters_of_another_mechanism(where: str, own: bool) -> None:
    foreign: Any = bc.Mechanism("first").parameter("x", 1.0)
    m = bc.Mechanism("second")
    if own:
        m.parameter("y", 2.0)
    n = dict.fromkeys(("mass", "length", "pitch", "gravity", "force", "at"), 1.0) | {where: foreign}

    def make() -> None:
        m.gravity = (0.0, 0.0, n["gravity"])
        body = m.add_body("body", bc.Inertia(n["mass"], (0.1, 0.2, 0.3), 0.5))
        m.add_joint("joint", bc.Screw("z", n["pitch"]), m.ground, body, bc.Pose((n["length"], 0.0, 0.0)))
        m.add_wrench("wrench", body, force=(n["force"], 0.0, 0.0), at=(n["at"], 0.0, 0.0))
        bc.compile(m, backend="numpy").forward_dynamics([0.1], [0.2])

    with pytest.raises(bc.ModelError, match="parameter of another mechanism"):
        make()


# -- descriptions and systems ----------------------------------------------------------------------
def test_shapes_and_inertias_refuse_orientations_of_parameters() -> None:
    """They were once taken at their defaults, without a word."""
    m = bc.Mechanism("rail")
    turned = bc.Pose.about("z", m.parameter("a", 0.3))
    m.add_body("b", bc.Inertia(1.0, (0, 0, 0), (1, 1, 1)))
    with pytest.raises(bc.ModelError, match="shape of body 'b': .* cannot depend on parameters yet"):
        m.add_shape("b", bc.Sphere(0.1), turned)


def test_a_system_does_not_change_with_its_description() -> None:
    """A mechanism may be edited after it was compiled; what was compiled stays what it was."""
    m = machine(DEFAULTS, set())
    s, untouched = bc.compile(m, backend="numpy"), bc.compile(machine(DEFAULTS, set()), backend="numpy")
    m.gravity = (0.0, 0.0, 1.0)
    m.prescribe("hinge", 0.3)
    m.add_wrench("late", "tip", force=(9.0, 9.0, 9.0))
    m.add_joint("late", bc.Revolute("x"), "tip", m.add_body("late", bc.Inertia.box(1.0, (1, 1, 1))))
    same(results(s), results(untouched))
    assert s.joint_names == untouched.joint_names
    q = s.random_state(np.random.default_rng(0))[0]
    with pytest.raises(bc.ModelError, match="no body called 'late'"):
        s.pose(q, "late")
    assert bc.compile(m, backend="numpy").nu == s.nu + 1


def test_elements_see_the_parameters_of_their_own_machine() -> None:
    """Energies were those of the machine that was asked first, whose kinematics the copy had taken over."""
    m = bc.Mechanism("spring on a tip")
    length = m.parameter("length", 0.4)
    first = m.add_body("first", bc.Inertia.rod(1.0, (0, 0, 0), (0.4, 0, 0)))
    second = m.add_body("second", bc.Inertia.rod(1.0, (0, 0, 0), (0.4, 0, 0)))
    m.add_joint("A", bc.Revolute("y"), m.ground, first)
    m.add_joint("B", bc.Revolute("y"), first, second, bc.Pose((length, 0, 0)))
    m.add_spring("spring", m.ground, second, (0, 0, 1.0), (0.4, 0, 0), stiffness=10.0)
    used, fresh, q = bc.compile(m), bc.compile(m), [0.3, 0.5]
    before = bc.analyze.stored_energy(used, q)
    found = bc.analyze.stored_energy(used.with_parameters(length=1.0), q)
    assert found == bc.analyze.stored_energy(fresh.with_parameters(length=1.0), q) != before
