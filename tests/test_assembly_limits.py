"""Assembly of what cannot be computed with, of guesses by name, and of positions whole turns and metres apart."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.io.native import write_native
from bellcrank.system.assembly import same_position

PIN = bc.Revolute("z")


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """Whatever is asked, the answer comes at once; 20 s are enough on any machine."""
    def stop(*_: object) -> None:
        raise TimeoutError("no answer")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def linkage(size: Any = 0.3, **options: Any) -> bc.Mechanism:
    """A four-bar whose crank has a length that may be anything."""
    m = bc.Mechanism("linkage", gravity=(0, -9.81, 0))
    a = m.parameter("a", size) if options.get("parameter") else size
    for name, length in (("crank", a), ("coupler", 1.0), ("rocker", 0.6)):
        m.add_body(name, bc.Inertia.rod(1.0, (0, 0, 0), (length if name != "crank" else 0.3, 0, 0)))
    m.add_joint("A", PIN, m.ground, "crank")
    m.add_joint("B", PIN, "crank", "coupler", bc.Pose((a, 0, 0)))
    m.add_joint("C", PIN, "coupler", "rocker", bc.Pose((1.0, 0, 0)))
    m.add_joint("D", PIN, "rocker", m.ground, bc.Pose((0.6, 0, 0)), bc.Pose((1.0, 0, 0)))
    return m


# -- numbers that cannot be computed with --------------------------------------------------------------------------
def test_huge_numbers_of_a_model_file_are_refused_with_the_joint(tmp_path: Path) -> None:
    text = Path(tmp_path, "huge.json")
    write_native(bc.load("slider_crank"), text)
    described = json.loads(text.read_text(encoding="utf-8"))
    described["joints"]["big_end"]["at"][1] = -1e308
    text.write_text(json.dumps(described), encoding="utf-8")
    with pytest.raises(bc.FileError, match=r"joint 'big_end'.*-1e\+308 is above 1e\+100"):
        bc.load(text)


ADDED: dict[str, tuple[Callable[[bc.Mechanism], object], str]] = {
    "place": (lambda m: m.add_joint("E", PIN, m.ground, "crank", bc.Pose((1e308, 0, 0))), "joint 'E'.*1e.308"),
    "point": (lambda m: m.add_joint("E", PIN, m.ground, m.add_body("y"), at=(0, -1e200, 0)), "joint 'E'.*-1e.200"),
    "pitch": (lambda m: m.add_joint("E", bc.Screw("z", 1e300), m.ground, "crank"), "joint 'E'.*1e.300"),
    "mass": (lambda m: m.add_body("x", bc.Inertia(1e200)), "body 'x'.*1e.200"),
    "inertia": (lambda m: m.add_body("x", bc.Inertia(1.0, (0, 0, 0), 1e150)), "body 'x'.*1e.150"),
    "frame": (lambda m: m.add_frame("x", "crank", bc.Pose((0, 0, 1e101))), "frame 'x'.*1e.101"),
    "rod": (lambda m: m.add_constraint("x", bc.Distance(1e300), m.ground, "crank"), "constraint 'x'.*1e.300"),
    "gear": (lambda m: m.add_coupler("x", {"A": 1.0, "B": 1e200}), "coupler 'x'.*'B'.*1e.200"),
    "spring": (lambda m: m.add_joint_spring("x", "A", stiffness=1e200), "x.*stiffness.*1e.200"),
    "gravity": (lambda m: setattr(m, "gravity", (0, -1e308, 0)), "gravity.*1e.308"),
    "law": (lambda m: m.prescribe("A", 1e300), "joint 'A'.*1e.300"),
    "parameter": (lambda m: m.parameter("x", 1e300), "parameter 'x'.*1e.300")}


@pytest.mark.parametrize("what", ADDED)
def test_huge_numbers_are_refused_with_the_part(what: str) -> None:
    call, said = ADDED[what]
    with pytest.raises(bc.ModelError, match=said):
        call(linkage())


@pytest.mark.parametrize("size", (1e308, 1e160, float("inf"), float("nan")))
def test_huge_parameters_are_refused_by_name(size: float) -> None:
    system = bc.compile(linkage(parameter=True), backend="numpy").with_parameters(a=size)
    for call in (system.assemble, lambda: bc.analyze.branches(system),
                 lambda: bc.analyze.drive(system, {"A": lambda t: t}, [0.0, 1.0])):
        with pytest.raises(bc.ModelError, match="'a'"):
            call()  # type: ignore[operator]


@pytest.mark.parametrize("size", (1e99, 1e60, 1e-320))
def test_sizes_out_of_this_world_close_or_say_that_they_do_not(size: float) -> None:
    system = bc.compile(linkage(parameter=True), backend="numpy").with_parameters(a=size)
    try:
        assert np.abs(system.loop_error(system.assemble().q)).max() < 1e-9
    except bc.AssemblyError as error:
        assert "do not close" in str(error)


@pytest.mark.parametrize("arguments", (
    {"guess": [1e308, 0.0, 0.0, 0.0]}, {"q": {"A": 1e308}}, {"guess": {"B": -1e300}}, {"u": {"A": 1e308}},
    {"q": {"A": np.inf}}))
def test_huge_states_are_refused_with_the_joint(arguments: dict[str, Any]) -> None:
    with pytest.raises(bc.StateError, match=r"\b[AB]\b"):
        bc.compile(linkage(), backend="numpy").assemble(**arguments)


def test_matrices_that_are_not_finite_are_never_decomposed(monkeypatch: pytest.MonkeyPatch) -> None:
    system = bc.compile(linkage(), backend="numpy")
    whole = np.linalg.svd

    def watched(matrix: Any, *args: Any, **options: Any) -> Any:
        assert np.isfinite(matrix).all()
        return whole(matrix, *args, **options)

    monkeypatch.setattr(np.linalg, "svd", watched)
    linearized = system.plans.loops.linearized
    monkeypatch.setattr(system.plans.loops, "linearized",
                        lambda *a: (linearized(*a)[0], np.full_like(linearized(*a)[1], np.inf)))
    with pytest.raises(bc.AssemblyError):
        system.assemble()


def test_branches_refuse_arrays_of_parameters_by_name() -> None:
    many = bc.compile(linkage(parameter=True)).with_parameters(a=np.array([0.25, 0.3]))
    with pytest.raises(bc.ModelError, match="branches: 'linkage' has arrays of the parameters a; call it for"):
        bc.analyze.branches(many, q={"A": 1.2})


# -- guesses by name -----------------------------------------------------------------------------------------------
GUESS = {"A": 0.5, "B": 0.4}


def test_guesses_by_name_are_where_to_start() -> None:
    """Held, they would contradict the loop: the coupler cannot have this angle at this angle of the crank."""
    system = bc.compile(bc.load("four_bar"), actuated=["A"])
    with pytest.raises(bc.AssemblyError):
        system.assemble(q={**GUESS, "C": 0.1})
    rest = bc.analyze.equilibrium(system, GUESS)
    assert np.abs(system.forward_dynamics(rest.q, rest.u)).max() < 1e-9
    array = [0.5, 0.4, 0.0, 0.0]
    assert np.array_equal(rest.q, bc.analyze.equilibrium(system, array).q)
    for guess in (GUESS, {**GUESS, "C": 0.1}):
        run = bc.analyze.drive(system, {"A": lambda t: 1.0 + t}, [0.0, 0.1], guess=guess)
        assert run.q.values[0, 0] == 1.0 and np.abs(system.loop_error(run.q.values)).max() < 1e-14
    curve, same = (bc.analyze.coupler_curve(system, "A", "coupler", guess=g, samples=9) for g in (GUESS, array))
    assert np.array_equal(curve.q, same.q) and curve.values[0] != 0.5
    given = bc.analyze.coupler_curve(system, "A", "coupler", guess={**GUESS, "C": 0.1}, values=[0.2, 0.3])
    assert np.array_equal(given.values, [0.2, 0.3])
    reach, alike = (bc.analyze.workspace(system, "coupler", ranges={"A": (0.0, 1.0)}, samples=5, guess=g)
                    for g in (GUESS, array))
    assert np.array_equal(reach.points, alike.points)


def test_names_to_hold_stay_where_the_guess_has_them() -> None:
    system = bc.compile(bc.load("five_bar"), actuated=["leg1.1", "leg2.1"])
    rest = bc.analyze.equilibrium(system, {"leg1.1": 0.5, "leg2.1": 0.5}, hold=["leg1.1"])
    assert rest.q[0] == 0.5
    assert bc.analyze.equilibrium(system, {"leg1.1": 0.4}, hold={"leg1.1": 0.5}).q[0] == 0.5


# -- whole turns and lengths ---------------------------------------------------------------------------------------
def test_lengths_are_not_taken_modulo_a_turn() -> None:
    """A slider on a rod of sqrt(1 + pi^2) m hung 1 m beside its rail: its two positions are 2 pi m apart."""
    m = bc.Mechanism("rail")
    m.add_body("slider", bc.Inertia(1.0, (0, 0, 0), 1.0))
    m.add_joint("rail", bc.Prismatic("x"), m.ground, "slider")
    m.add_constraint("rod", bc.Distance(float(np.hypot(1.0, np.pi))), m.ground, "slider", bc.Pose((0, 1, 0)))
    found = [s.q[0] for s in bc.analyze.branches(bc.compile(m), guess={"rail": 1.0}, tries=60)]
    assert np.abs(np.array(found) - [np.pi, -np.pi]).max() < 1e-12


def test_angles_are_taken_modulo_a_turn_but_not_those_of_gears() -> None:
    system = bc.compile(bc.load("four_bar"))
    assert len(bc.analyze.branches(system, q={"A": 0.5}, tries=80)) == 2
    m = bc.Mechanism("gears")
    for n in ("a", "b"):
        m.add_body(n, bc.Inertia(1.0, (0, 0, 0), 1.0))
        m.add_joint(n, PIN, m.ground, n)
    m.add_coupler("mesh", {"a": 1.0, "b": 3.0})
    gears = bc.compile(m)
    assert not same_position(gears.plans, np.zeros(2), np.array([2.0 * np.pi, 0.0]))
    assert same_position(gears.plans, np.zeros(2), np.zeros(2))
