"""Arguments of the wrong kind: every public function says which, in words of the library; and takes its arguments by
the names that its signature has."""

from __future__ import annotations

import inspect
import pickle
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import children
from bellcrank.arguments import checked, must_be

#: these import a large package that may be absent
NEEDS_PEERS = ("to_casadi", "to_jax", "to_torch")
FUNCTIONS = {name: getattr(bc, name) for name in bc.__all__ if inspect.isfunction(getattr(bc, name))
             and name not in ("animate", "show", *NEEDS_PEERS)} | {
    f"analyze.{name}": getattr(bc.analyze, name) for name in bc.analyze.__all__}
OF_A_SYSTEM = {name: f for name, f in FUNCTIONS.items() if "system" in inspect.signature(f).parameters}


@pytest.fixture(scope="module")
def linkage() -> bc.System:
    return bc.compile(bc.load("four_bar"), backend="numpy")


@pytest.fixture(scope="module")
def pendulum() -> bc.System:
    return bc.compile(bc.load("pendulum"), backend="numpy")


def required(function: Callable[..., Any], **given: Any) -> dict[str, Any]:
    """All arguments that a function must be given, by name, and those that are here."""
    return {p.name: given.get(p.name) for p in inspect.signature(function).parameters.values()
            if (p.default is p.empty or p.name in given) and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}


@pytest.mark.parametrize("name", OF_A_SYSTEM)
def test_a_mechanism_in_the_place_of_a_system(name: str) -> None:
    """The likeliest mistake of all."""
    function, mechanism = OF_A_SYSTEM[name], bc.load("four_bar")
    state = bc.State(np.zeros(3), np.zeros(3), 0.0)
    given = required(function, system=mechanism, state=state, q=state.q, u=state.u, udot=state.u, tau=state.u,
                     step=1e-3, times=[0.0, 0.1])
    with pytest.raises(bc.ModelError, match="system needs a System; compile\\(mechanism\\) makes one"):
        function(**given)


def test_a_mechanism_in_the_place_of_the_system_of_a_result(linkage: bc.System) -> None:
    result = linkage.simulate(linkage.assemble(), 2e-3)
    with pytest.raises(bc.ModelError, match="attach: system needs a System; compile\\(mechanism\\) makes one"):
        result.attach(bc.load("four_bar"))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_are_taken_by_name(name: str, pendulum: bc.System) -> None:
    """As the signature says: nothing is missing when all that is required is given by name."""
    function, zero = FUNCTIONS[name], np.zeros(1)
    given = required(function, system=pendulum, q=zero, u=zero, udot=zero, tau=zero)
    try:
        function(**given)
    except TypeError as error:
        assert "argument" not in str(error), error
    except (bc.BellcrankError, ImportError):
        pass


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_are_where_they_are_looked_for(name: str) -> None:
    """By pickle, and by those who read their signature and text."""
    function = FUNCTIONS[name]
    assert pickle.loads(pickle.dumps(function)) is function and function.__doc__


@pytest.mark.parametrize(("annotation", "good", "bad"), [
    ("bool", [True, np.bool_(False)], [np.ones(2), "no", 1, None]),
    ("int", [3, np.int8(3)], [3.0, "3", None, np.ones(2), 2**70, True]),
    ("float", [1, 1.5, np.float32(2.0), np.array(1.0)], ["1.5", None, 1j, np.ones(2), np.datetime64("2020-01-01")]),
    ("Sequence[str]", [["A"], ("A", "B"), np.array(["A"])], ["A", 1.0, [1], {"A": 1}]),
    ("Sequence[str] | None", [None, ["A"]], [3]),
    ("Mapping[str, float] | None", [{"A": 1.0}, None], [["A"], {"A": "x"}, {1: 1.0}]),
    ("npt.ArrayLike", [1.0, [1, 2], np.ones((2, 3))], ["x", None, {"A": 1.0}, [1, "x"]]),
    ("str | os.PathLike[str]", ["x", __import__("pathlib").Path("x")], [1.0, None]),
    ("Callable[[Any], Number]", [len], [1.0]), ("tuple[float, float]", [(1.0, 2.0)], [(1.0,), 2.0]),
    ("Unknown", [object()], []),
])
def test_kinds_of_values(annotation: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        must_be("it", annotation, value)
    for value in bad:
        with pytest.raises(bc.ModelError, match="it must be .*, got "):
            must_be("it", annotation, value)


def test_errors_that_are_nobodys_fault_stay_as_they_are() -> None:
    """Of arguments that fit, and of calls that do not."""
    @checked
    def half(x: float) -> float:
        return 1.0 / x

    with pytest.raises(ZeroDivisionError):
        half(0.0)
    with pytest.raises(TypeError, match="unexpected keyword"):
        half(y=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing a required argument: 'q'"):
        bc.analyze.stored_energy(system=3)  # type: ignore[call-overload]
    with pytest.raises(bc.ModelError, match="half: x must be a number, got 'x'") as caught:
        half("x")  # type: ignore[arg-type]
    assert isinstance(caught.value.__cause__, TypeError)


@pytest.mark.parametrize(("call", "said"), [
    (lambda m, s, r: bc.compile(m, threads="many"), "compile: threads must be a whole number, got 'many'"),
    (lambda m, s, r: bc.compile(m, free_frames="no"), "compile: free_frames must be True or False, got 'no'"),
    (lambda m, s, r: bc.compile(m, cut=3), "cut must be a list of names, got 3"),
    (lambda m, s, r: s.release(np.array(["D", "C"])), "release: names must be text, got ndarray of shape"),
    (lambda m, s, r: s.random_state(np.int64(3)), "random_state: rng must be a Generator, got np.int64"),
    (lambda m, s, r: s.forward_dynamics(np.zeros(4), np.zeros(4), loop_tau=1.0), "loop_tau must be a mapping by names"),
    (lambda m, s, r: m.add_coupler("c", ["A", "B"]), "add_coupler: factors must be a mapping by names"),
    (lambda m, s, r: m.default("x"), "default: value must be a number or a parameter, got 'x'"),
    (lambda m, s, r: bc.Inertia(np.array([1.0, 2.0]), (0, 0, 0), (1, 1, 1)), "Inertia mass: .* is not 1 number"),
    (lambda m, s, r: bc.BeamSection.round(1e-300, E=1.0, rho=1.0), "BeamSection.round: diameter: 1e-300 cannot be"),
    (lambda m, s, r: bc.BeamSection.round(1e300, E=1.0, rho=1.0), "cannot be computed with; check its unit"),
    (lambda m, s, r: bc.analyze.drive(s, {"A": lambda t: t}, "x"), "times"),
    (lambda m, s, r: bc.analyze.branches(s, seed=-1), "seed must be a whole number, at least 0, got -1"),
    (lambda m, s, r: bc.analyze.base_parameters(s, samples=-1), "samples must be a whole number, at least 1"),
    (lambda m, s, r: bc.analyze.coupler_curve(s, "A", "coupler", guess=np.tile(s.assemble().q, (3, 1))),
     r"guess: needs one state to start from, got \(3,\) of them"),
    (lambda m, s, r: bc.analyze.linearize(s, s.assemble(), tau=np.zeros((2, 4))), r"tau: needs the shape \(4,\), or"),
    (lambda m, s, r: bc.analyze.modes(s, s.assemble(), tau=np.zeros((2, 4))), r"tau: needs the shape \(4,\), or that"),
    (lambda m, s, r: bc.BeamSection.rectangle(0.1, 0.1, E=1.0, rho=1.0, nu=-1.0), "nu must be greater than -1"),
    (lambda m, s, r: bc.to_sympy(s, "forward_dynamics", at="x"), "at= must be a state, or a finite array q"),
    (lambda m, s, r: m.prescribe("A", int), "joint 'A': the motion law"),
    (lambda m, s, r: s.simulate(s.assemble(), 1e-3, file="\0"), "cannot hold the character NUL"),
    (lambda m, s, r: s.simulate(s.assemble(), 1e-3, sensitivities=np.array(["a", "b"])), "'a'"),
    (lambda m, s, r: bc.joint_limit("A", lower=Fraction(1, 2), upper=0), "lower 0.5 is not below upper 0"),
    (lambda m, s, r: bc.compare(m, states=np.inf), "states must be a whole number"),
    (lambda m, s, r: r.kinematics("crank", point="tip"), "point"),
    (lambda m, s, r: r.kinematics("crank", point=1.0), "point"),
    (lambda m, s, r: r.plot(5), "plot: what must be text or a list of names, got 5"),
    (lambda m, s, r: r.plot(phase=()), "plot: there is nothing to plot"),
    (lambda m, s, r: r.to_csv("x.csv", [1]), "to_csv: what must be text or a list of names"),
    (lambda m, s, r: r.to_netcdf(b"x.nc"), "to_netcdf: path must be a path, an open file or None, got b'x.nc'"),
    (lambda m, s, r: r.to_netcdf("a" * 3000), "a: cannot be written"),
    (lambda m, s, r: bc.open_sweep(b"runs"), "open_sweep: path must be text or a path, got b'runs'"),
    (lambda m, s, r: r.with_system("four_bar"), "a result: system must be a System or a KeptModel, got 'four_bar'"),
    (lambda m, s, r: r.entries("A", "row"), "label must be 'coordinate' or 'speed', got 'row'"),
    (lambda m, s, r: bc.Result(np.array(["a", "b"])), "Result: .*; runs and open_result make results"),
    (lambda m, s, r: bc.Box(np.ones(3, complex)), r"Box: size must be .* of shape \(3,\), of type complex"),
    (lambda m, s, r: bc.Prismatic(np.ones(3, complex)), "Prismatic: axis must be text or a list of numbers"),
    (lambda m, s, r: bc.analyze.workspace(m), r"workspace: system needs a System; compile\(mechanism\) makes one"),
    (lambda m, s, r: m.add_shape("crank", bc.Sphere(0.1), role=np.zeros(2)), "add_shape: role must be text"),
    (lambda m, s, r: bc.papers.find([1]), r"find: name must be text, got \[1\]"),
    (lambda m, s, r: bc.papers.PaperTable((), 3), "PaperTable: columns and rows must be lists"),
    (lambda m, s, r: bc.examples.load({}), "load: name must be text, got {}"),
])
def test_likely_mistakes(call: Callable[[bc.Mechanism, bc.System, bc.Result], object], said: str, linkage: bc.System
                         ) -> None:
    result = linkage.simulate(linkage.assemble(), 2e-3)
    with pytest.raises(bc.BellcrankError, match=said):
        call(bc.load("four_bar"), linkage, result)


@pytest.mark.parametrize("made", [
    lambda mass: bc.Inertia(mass, (0, 0, 0), mass), lambda mass: bc.Inertia(mass, (0, 0, 0), [mass] * 3),
    lambda mass: bc.Inertia.rod(mass, (0, 0, 0), (1, 0.1, 0)), lambda mass: bc.Inertia.box(mass, (0.1, 0.2, 0.3)),
    lambda mass: bc.Inertia.cylinder(mass, 0.1, 1.0), lambda mass: bc.Inertia.sphere(mass, 0.1)])
def test_masses_may_be_numbers_of_numpy(made: Callable[[Any], bc.Inertia]) -> None:
    """Numbers of half the size are no reason to compute with half the digits."""
    assert made(np.float32(1.5)) == made(np.array(1.5)[()]) == made(1.5)


def test_names_may_be_arrays() -> None:
    m = bc.load("four_bar")
    assert bc.compile(m, cut=np.array(["D"]), actuated=np.array(["A"])).loops == ("D",)


def test_labels_of_tables_are_not_ignored(linkage: bc.System) -> None:
    pandas = pytest.importorskip("pandas")
    q = linkage.assemble(q={"A": 0.5}).q
    for labelled in (pandas.Series({"C": 0.1, "A": 0.2, "B": 0.3}), pandas.DataFrame({n: [0.1] for n in "CAB"})):
        with pytest.raises(bc.StateError, match=r"q: the labels C, A, B, ... of a \w+ are not looked at.*to_numpy"):
            linkage.forward_dynamics(labelled, q)
    np.testing.assert_array_equal(linkage.forward_dynamics(pandas.Series(q), q), linkage.forward_dynamics(q, q))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_empty_batches(backend: str) -> None:
    """No states give no answers, of the shape that many would have."""
    system = bc.compile(bc.load("pendulum"), backend=backend)
    none, one = np.zeros((0, 1)), np.zeros((1, 1))
    calls: dict[str, tuple[Any, ...]] = {
        "forward_dynamics": ("q", "u"), "inverse_dynamics": ("q", "u", "udot"), "mass_matrix": ("q",),
        "bias": ("q", "u"), "pose": ("q",), "velocity": ("q", "u", "bob"), "acceleration": ("q", "u", "udot", "bob"),
        "jacobian": ("q", "bob"), "jacobian_rate": ("q", "u", "bob"), "center_of_mass": ("q",), "momentum": ("q", "u"),
        "energy": ("q", "u"), "regressor": ("q", "u", "udot"), "momenta": ("q", "u"), "normalize": ("q",),
        "loop_error": ("q",), "reactions": ("q", "u"), "element_forces": ("q", "u"), "reduced": ("q", "u")}
    for name, wanted in calls.items():
        empty, full = (getattr(system, name)(*(w if w == "bob" else x for w in wanted)) for x in (none, one))
        for a, b in zip(arrays(empty), arrays(full), strict=True):
            assert a.shape == (0, *b.shape[1:]), name


def arrays(found: Any) -> list[Any]:
    if isinstance(found, bc.Pose):
        return [found.position, found.rotation]
    if isinstance(found, dict):
        return [x for value in found.values() for x in arrays(value)]
    if isinstance(found, np.ndarray):
        return [found]
    return [x for x in (found if isinstance(found, tuple) else vars(found).values()) if isinstance(x, np.ndarray)]


HOSTILE = [None, True, -1, 10**30, 1e300, float("nan"), 1j, "", "x", "a" * 300, b"bytes", [], {}, [1, 2, 3], [[1]],
           ["a", "b"], [None], {"A": 1.0}, {"A": "x"}, {1: 2}, np.zeros(0), np.zeros((0, 3)), np.zeros((2, 3)),
           np.ones(3, complex), np.array([1, "x", None], dtype=object), np.array(["a", "b"]), np.int8(3), np.array(1.0),
           np.datetime64("2020-01-01"), range(3), object(), int, lambda *a: None, lambda *a: "x", Ellipsis, slice(None)]


def test_imaginary_parts_are_not_dropped() -> None:
    """By default NumPy only warns; these tests make errors of all warnings."""
    said = children.run_code("""
        import bellcrank as bc, numpy as np
        try:
            bc.Inertia(1.0, np.array([1j, 0, 0]), 1.0)
        except bc.ModelError as error:
            print(error)""").stdout
    assert "is not 3 numbers" in said


@pytest.mark.parametrize("owner", ["Mechanism", "System", "analyze", "math", "papers", "examples"])
def test_hostile_arguments(owner: str, pendulum: bc.System) -> None:
    """Errors are ours, whatever comes; unknown and missing arguments are Python's."""
    choose = random.Random(f"hostile {owner}")
    left_out = {"replace_parts", "compare"}  # unchecked on purpose; slow
    mechanism, state = bc.load("pendulum"), pendulum.assemble()
    thing: Any = {"Mechanism": mechanism, "System": pendulum}.get(owner) or getattr(bc, owner)
    known = {"system": pendulum, "mechanism": mechanism, "state": state, "q": state.q, "u": state.u, "udot": state.u}
    for name in getattr(thing, "__all__", dir(thing)):
        if name.startswith("_") or name in left_out or not callable(getattr(thing, name)):
            continue
        for _ in range(6):
            target = getattr(mechanism.copy(), name) if owner == "Mechanism" else getattr(thing, name)
            given = {p.name: known[p.name] if p.name in known and choose.random() < 0.6 else choose.choice(HOSTILE)
                     for p in inspect.signature(target).parameters.values()
                     if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and (p.default is p.empty
                                                                                 or choose.random() < 0.2)}
            try:
                target(**given)
            except bc.BellcrankError:
                pass
            except Exception as error:
                pytest.fail(f"{owner}.{name}({given}): {error!r}")
