"""Bellcrank's own model files: what is written is read back the same, to the last bit."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import bellcrank as bc
from bellcrank import math as bm
from bellcrank.io.native import (
    difference,
    json_schema,
    part_schema,
    read_native,
    same_mechanism,
    schema,
    text_of,
    write_native,
)
from bellcrank.io.native.build import entries_of
from everything import everything
from looped_graphs import build as build_graph
from looped_graphs import graphs
from mechanisms import build, examples, state, trees
from pages import page_named

BOTH = pytest.mark.parametrize("ending", ["yaml", "json"])


def again(m: bc.Mechanism, folder: Path, ending: str = "yaml") -> bc.Mechanism:
    """The machine after a trip to a file and back."""
    path = folder / f"machine.{ending}"
    write_native(m, path)
    back, report = read_native(path)
    assert not report.notes
    assert text_of(back) == text_of(m)
    return back


def accelerations(m: bc.Mechanism, backend: str = "auto") -> np.ndarray:
    system = bc.compile(m, **({} if backend == "auto" else {"backend": backend}))
    rng = np.random.default_rng(3)
    q, u = system.integrate(system.neutral(), 0.1 * rng.normal(size=system.nu)), rng.normal(size=system.nu)
    if system.loops:
        q, u, *_ = system.assemble(q, u)
    return np.asarray(system.forward_dynamics(q, u, np.ones_like(u) * 0.1, t=0.3))


@BOTH
@pytest.mark.parametrize("name", bc.examples.names())
def test_examples_come_back_the_same(name: str, ending: str, tmp_path: Path) -> None:
    m = bc.load(name)
    assert difference(m, again(m, tmp_path, ending)) is None


@pytest.mark.everyday(8)
@pytest.mark.parametrize("name", bc.examples.names())
def test_examples_move_the_same(name: str, tmp_path: Path) -> None:
    m = bc.load(name)
    np.testing.assert_array_equal(accelerations(m), accelerations(again(m, tmp_path)))


@BOTH
def test_one_of_everything_comes_back_the_same(ending: str, tmp_path: Path) -> None:
    m = everything()
    back = again(m, tmp_path, ending)
    assert difference(m, back) is None
    assert difference(m, again(back, tmp_path, ending)) is None


def test_one_of_everything_has_one_of_everything() -> None:
    """Whoever adds a kind of part to mechanisms has to add it to model files, too."""
    empty, full = vars(bc.Mechanism()), vars(everything())
    assert set(empty) == set(full)
    assert {name for name, value in full.items() if isinstance(value, dict) and not value} == set()


@given(trees())
@examples(40)
def test_random_trees_come_back_the_same(tmp_path_factory: pytest.TempPathFactory, tree: object) -> None:
    m = build(tree)
    back = again(m, tmp_path_factory.mktemp("trees"), "json")
    assert difference(m, back) is None


@given(trees(max_bodies=4))
@examples(15)
def test_random_trees_move_the_same(tmp_path_factory: pytest.TempPathFactory, tree: object) -> None:
    m = build(tree)
    back = again(m, tmp_path_factory.mktemp("trees"))
    s = state(m, 5)
    found = [bc.compile(x, backend="numpy").forward_dynamics(s.q, s.u, s.tau, t=s.t) for x in (m, back)]
    np.testing.assert_array_equal(*found)


@given(graphs())
@examples(40)
def test_random_loops_come_back_the_same(tmp_path_factory: pytest.TempPathFactory, graph: object) -> None:
    m = build_graph(graph)
    assert difference(m, again(m, tmp_path_factory.mktemp("graphs"))) is None


def test_laws_and_parameters_move_the_same(tmp_path: Path) -> None:
    m = bc.load("double_pendulum")
    k = m.parameter("k", 3.0)
    first, second = (r.name for r in m.joints)
    m.add_joint_spring("twist", first, stiffness=2 * k + 0.1, rest=0.1)
    m.add_joint_spring("cam", first, potential=lambda x: 2 * x**4 + bm.exp(x / 3))
    m.add_joint_force("law", second, lambda x, rate: -3 * x**3 - bm.tanh(rate / 0.1))
    m.add_wrench("push", m.bodies[-1], force=(lambda t: bm.sin(t) ** 3, 0, k))
    back = again(m, tmp_path)
    np.testing.assert_array_equal(accelerations(m), accelerations(back))
    systems = [bc.compile(x) for x in (m, back)]
    assert systems[0].parameters == systems[1].parameters == {"k": 3.0}


def test_prescribed_motion_moves_the_same(tmp_path: Path) -> None:
    m = bc.load("four_bar")
    m.prescribe("A", lambda t: 0.3 * bm.sin(2 * t) + t**3 / 7)
    np.testing.assert_array_equal(accelerations(m), accelerations(again(m, tmp_path)))


def test_laws_from_files_simulate(tmp_path: Path) -> None:
    m = bc.load("pendulum")
    m.add_joint_force("drive", "hinge", lambda x, rate: bm.sin(x) - 0.1 * rate)
    runs = [bc.compile(x).simulate(([0.5], [0.0]), 0.2, step=0.01) for x in (m, again(m, tmp_path))]
    np.testing.assert_array_equal(*(run["q"].values for run in runs))


def test_laws_from_files_have_a_fingerprint(tmp_path: Path) -> None:
    from bellcrank.mechanism.fingerprint import fingerprint

    m = everything()
    one, other = again(m, tmp_path), again(m, tmp_path)
    assert fingerprint(one) == fingerprint(other)
    assert one.joint("base").prescribed is not None
    next(w for w in one.wrenches if w.name == "push").force[0](0.1)  # what was computed does not change it
    assert fingerprint(one) == fingerprint(other)


def test_a_machine_given_at_points_can_be_continued(tmp_path: Path) -> None:
    m = bc.Mechanism()
    m.add_body("a", bc.Inertia.point(1.0))
    m.add_joint("A", bc.Revolute("z"), m.ground, "a", at=(1, 0, 0))
    back = again(m, tmp_path)
    back.add_body("b", bc.Inertia.point(1.0))
    back.add_joint("B", bc.Revolute("z"), "a", "b", at=(2, 0, 0))


# -- other ways to write ----------------------------------------------------------------------------
def test_files_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "hand.yaml"
    path.write_text("""
bellcrank: 1
parameters: {m: 2, l: 0.5}
bodies:
  arm: {mass: 2*m + 1e-1, com: [0, 0, -l/2], inertia: 0.1}
  block: {mass: 1, inertia: [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}
joints:
  pin: {type: revolute, axis: [0, 2, 0], parent: ground, child: arm, prescribed: pi/4 * sin(2*pi*t)}
  slide: {type: prismatic, axis: -x, parent: arm, child: block, parent_pose: {position: [0, 0, -l], rpy: [0, 0, pi]}}
""".replace("pi]", "3.141592653589793]"), encoding="utf-8")
    m = bc.load(path)
    assert m.default(m.body("arm").inertia.mass) == 4.1
    assert m.default(m.body("arm").inertia.com[2]) == -0.25
    law = m.joint("pin").prescribed.laws[0]
    assert law(0.125) == np.pi / 4 * np.sin(2 * np.pi * 0.125)
    assert same_mechanism(m, again(m, tmp_path))
    bc.compile(m)


def test_written_files_satisfy_the_schema(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    yaml = pytest.importorskip("yaml")
    check = jsonschema.Draft202012Validator(json_schema())
    check.check_schema(json_schema())
    for m in (everything(), *map(bc.load, bc.examples.names())):
        check.validate(json.loads(text_of(m, json=True)))
        check.validate(yaml.safe_load(text_of(m)))  # also as other programs read YAML
    assert not check.is_valid({"bellcrank": 1, "bodies": {"a": {"mas": 1.0}}})


def test_the_published_schema_is_up_to_date() -> None:
    published = Path(__file__).parents[1] / "docs" / "reference" / "model.schema.json"
    assert json.loads(published.read_text(encoding="utf-8")) == json_schema(), (
        "write it again: json.dumps(bellcrank.io.native.json_schema(), indent=1)")


# -- what differs is seen -----------------------------------------------------------------------------
@pytest.mark.parametrize("change", [
    lambda m: setattr(m, "name", "other"), lambda m: setattr(m, "gravity", (0, 0, -9.8)),
    lambda m: m.add_frame("more", m.ground), lambda m: m.parameter("more", 1.0),
    lambda m: m.prescribe("hinge", lambda t: 0.3 * bm.sin(t)), lambda m: m.add_wrench("more", "f"),
    lambda m: m.parameters.update(mass=np.nextafter(2.0, 3.0))])
def test_any_difference_is_seen(change: object) -> None:
    m, other = everything(), everything()
    assert same_mechanism(m, other)
    change(other)
    assert not same_mechanism(m, other)


# -- what cannot be written ---------------------------------------------------------------------------
def _pendulum() -> bc.Mechanism:
    return bc.load("pendulum")


@pytest.mark.parametrize("law", [
    lambda x, rate: -x if float(x) > 0 else x, lambda x, rate: -x if x == 0.3 else x,
    lambda x, rate: float(np.sin(x)), lambda x, rate: (x * x) ** 1.5])
def test_a_law_that_cannot_be_traced_is_named(law: object, tmp_path: Path) -> None:
    m = _pendulum()
    with pytest.raises(bc.ModelError, match="'strange'.*(formula|compiled)"):  # the sooner the better
        m.add_joint_force("strange", "hinge", law)
        bc.save(m, tmp_path / "m.yaml")
    assert not list(tmp_path.iterdir())


def test_a_law_that_remembers_is_refused(tmp_path: Path) -> None:
    m, calls = _pendulum(), []

    def law(x: object, rate: object) -> object:
        calls.append(1)
        return x * float(len(calls))

    m.add_joint_force("strange", "hinge", law)
    with pytest.raises(bc.ModelError, match="'strange'.*depend on anything but"):
        bc.save(m, tmp_path / "m.yaml")


def test_joint_types_of_ones_own_are_refused(tmp_path: Path) -> None:
    class Mine(bc.Revolute):
        pass

    m = bc.Mechanism()
    m.add_body("a", bc.Inertia.point(1.0))
    m.add_joint("A", Mine("z"), m.ground, "a")
    with pytest.raises(bc.ModelError, match="joint 'A'.*Mine"):
        bc.save(m, tmp_path / "m.json")


@pytest.mark.parametrize("character", ["\n", "\0", "\u202e", "\u2028", "\ufeff"])
def test_names_that_are_not_seen_are_refused(character: str, tmp_path: Path) -> None:
    """In files, so that two names which look the same are the same; what is written can be read."""
    m = _pendulum()
    m.add_frame(f"a{character}b", m.ground)
    with pytest.raises(bc.ModelError, match=rf"frame .*: the name holds the control character U\+{ord(character):04X}"):
        bc.save(m, tmp_path / "m.json")


def test_laws_that_are_too_long_get_advice_that_helps(tmp_path: Path) -> None:
    m = _pendulum()

    def law(x: object, rate: object) -> object:
        for i in range(50_001):
            x = x * 0.5 + float(i)
        return x

    m.add_joint_force("long", "hinge", law)
    with pytest.raises(bc.ModelError, match="'long'.*more than 50000 operations.*; write a shorter law") as caught:
        bc.save(m, tmp_path / "m.yaml")
    assert "without `if`" not in str(caught.value)
    m = _pendulum()
    mass = m.parameter("mass", 1.0)
    for i in range(50_001):
        mass = mass * 0.5 + float(i)
    m.add_body("long", bc.Inertia.point(mass))
    with pytest.raises(bc.ModelError, match="body 'long'.*more than 50000 operations"):
        bc.save(m, tmp_path / "m.yaml")
    assert not list(tmp_path.iterdir())


def test_numbers_that_are_none_are_refused(tmp_path: Path) -> None:
    m = _pendulum()
    m.parameter("p", 1.0)
    m.parameters["p"] = float("nan")
    with pytest.raises(bc.ModelError, match="parameter 'p'"):
        bc.save(m, tmp_path / "m.json")


@pytest.mark.parametrize("wrong", [None, 3, 2.5, ["pendulum"], {}])
def test_what_is_no_name_of_a_file(wrong: object) -> None:
    for call, verb in ((bc.load, "load"), (bc.read, "read"), (lambda name: bc.save(_pendulum(), name), "save")):
        with pytest.raises(bc.FileError, match=rf"{verb}\(\) needs the name of a file .*got {type(wrong).__name__}"):
            call(wrong)  # type: ignore[arg-type]


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(bc.FileError, match=r"ends in .*'\.txt'"):
        bc.save(_pendulum(), tmp_path / "m.txt")
    with pytest.raises(bc.FileError, match="neither a file nor an example"):
        bc.load("no such machine")
    with pytest.raises(bc.FileError, match="cannot be written"):
        bc.save(_pendulum(), tmp_path / "nowhere" / "m.yaml")
    with pytest.raises(bc.FileError, match="no option 'cells'"):
        bc.save(_pendulum(), tmp_path / "m.yaml")
        bc.load(tmp_path / "m.yaml", cells=3)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("old", encoding="utf-8")

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(bc.FileError, match="No space left"):
        bc.save(_pendulum(), path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    bc.save(_pendulum(), path)
    path.chmod(0o600)
    bc.save(_pendulum(), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    text = page_named("model_file").read_text(encoding="utf-8")
    path = tmp_path / "swing.yaml"
    path.write_text(text.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
    m = bc.load(path)
    assert same_mechanism(m, again(m, tmp_path))
    assert np.isfinite(accelerations(m)).all()
    names = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert set(names) == set(json_schema()["properties"]) - {"bellcrank", "name", "gravity"}


def test_entries_are_read_as_the_schema_calls_them() -> None:
    """A kind of entry that is not recognised would be taken as it is written: formulas as texts."""
    read = {(part, name): reader for part in (part_schema.BrakePart, part_schema.CylinderPart, part_schema.AnglePart,
                                              part_schema.FreePart, schema.DragPart, schema.BushingPart)
            for name, reader in entries_of(part)}
    assert read[part_schema.BrakePart, "joint"] == "on" and read[part_schema.BrakePart, "coordinate"] is None
    assert read[part_schema.BrakePart, "capacity"] == read[part_schema.CylinderPart, "opening"] == "number_or_law"
    assert read[part_schema.AnglePart, "angle"] == "of_time" and read[part_schema.AnglePart, "axis"] == "axis"
    assert read[part_schema.FreePart, "start"] == read[schema.BushingPart, "first_pose"] == "pose"
    assert read[schema.DragPart, "at"] == "numbers" and read[schema.DragPart, "wind"] == "timed"
    assert read[part_schema.CylinderPart, "supply"] == "number"
