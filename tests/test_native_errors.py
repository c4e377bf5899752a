"""Bad and hostile model files: one `FileError` with file, line and element, and nothing else, ever."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

import bellcrank as bc
from bellcrank.io.native import same_mechanism, text_of
from bellcrank.io.native.formula import WrittenLaw
from everything import everything

HEAD = "bellcrank: 1\nbodies:\n  a: {mass: 1}\n  b: {mass: 1}\n"
JOINT = HEAD + "joints:\n  A:\n    type: revolute\n    parent: ground\n    child: a\n    axis: z\n"


def message(text: str | bytes, folder: Path, ending: str = "yaml") -> str:
    """What is said about a file."""
    path = folder / f"bad.{ending}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(bc.FileError) as caught:
        bc.load(path)
    said = str(caught.value)
    assert said.startswith(str(path))
    assert "\n" not in said
    said = said[len(str(path)):]
    assert str(path) not in said, "the file is named once"
    return said


@pytest.mark.parametrize(("text", "wanted"), [
    ("", ":1: the file is empty"),
    ("# nothing\n", ":1: the file is empty"),
    ("- 1\n", ":1: needs a mapping"),
    ("bellcrank: 2\n", ":1: bellcrank: the form is version 2"),
    ("name: x\n", ":1: needs 'bellcrank'"),
    (HEAD + "joint: {}\n", ":5: 'joint' is not known here; did you mean 'joints'?"),
    (HEAD + "  c: {mas: 1}\n", ":5: body 'c': 'mas' is not known here; did you mean 'mass'?"),
    (HEAD + "  c: {mass: true}\n", ":5: body 'c': mass: needs a number, got true"),
    (HEAD + "  c: {mass: .nan}\n", ":5: body 'c': formula '.nan'"),
    (HEAD + "  c: {mass: -1}\n", ":5: body 'c': Inertia: the mass -1 kg is negative"),
    (HEAD + "  c: {mass: 1.0e999}\n", ":5: body 'c': mass: the number is not finite"),
    (HEAD + "  c: {mass: 1/0}\n", ":5: body 'c': cannot be computed"),
    (HEAD + "  c: {mass: 2*k}\n", ":5: body 'c': formula '2*k': 'k' is not known"),
    (HEAD + "  c: {inertia: [1, 2]}\n", ":5: body 'c': inertia: needs at least 3 numbers, got 2"),
    (HEAD + "  c: {inertia: [1, 2, 3, 4]}\n", ":5: body 'c': inertia: needs one, three or six"),
    (HEAD + "  c: {inertia: {xx: 1}}\n", ":5: body 'c': inertia: a mapping is not expected"),
    (HEAD + "  a: {mass: 2}\n", ":5: 'a' is there twice: first on line 3"),
    (HEAD + "  ground: {mass: 2}\n", ":5: body 'ground' exists already"),
    (HEAD + "gravity: [0, 0]\n", ":5: gravity: needs at least 3 numbers, got 2"),
    (HEAD + "parameters: {k: 2*3}\n", ":5: parameter 'k': needs a number"),
    (JOINT.replace("revolute", "revolut"), ":6: joint 'A': there is no type 'revolut'; did you mean 'revolute'?"),
    (JOINT.replace("    axis: z\n", ""), ":6: joint 'A': needs 'axis'"),
    (JOINT.replace("    type: revolute\n", ""), ":6: joint 'A': needs 'type'"),
    (JOINT.replace("axis: z", "axis: q"), ":10: joint 'A': axis: needs one of x, y, z"),
    (JOINT.replace("axis: z", "axis: [0, 0, 0]"), ":6: joint 'A': Revolute axis"),
    (JOINT.replace("child: a", "child: c"), ":6: joint 'A': no body called 'c'"),
    (JOINT.replace("child: a", "child: 3"), ":9: joint 'A': child: needs text, got 3; put it in quotes"),
    (JOINT + "    prescribed: sin(x)\n", ":11: joint 'A': formula 'sin(x)': 'x' is not known here"),
    (JOINT + "    prescribed: {slide: t}\n", ":11: joint 'A': no coordinate 'slide'"),
    (JOINT + "    prescribed: [t, t]\n", ":11: joint 'A': the motion law must return 1 value"),
    (JOINT + "    at: [0, 0, 0]\n    parent_pose: [0, 0, 0]\n", ":6: joint 'A': give either `at` or"),
    (JOINT + "    parent_pose: {rotation: [1, 1, 0, 0]}\n", ":6: joint 'A': Pose rotation"),
    (JOINT + "    parent_pose: {rotation: [1, 0, 0, 0], rpy: [0, 0, 1]}\n", ":6: joint 'A': a pose has either"),
    (JOINT + "    parent_pose: 3\n", ":11: joint 'A': parent_pose: a number is not expected here"),
    (JOINT + "  A: {}\n", ":11: 'A' is there twice"),
    (JOINT + "joint_forces:\n  f: {type: law, joint: A, law: 1/(x - x)}\n", ":12: joint force 'f': a force law takes"),
    (JOINT + "joint_forces:\n  f: {type: law, joint: B, law: x}\n", ":12: joint force 'f': no joint called 'B'"),
    (JOINT + "springs:\n  s: {first: a, second: b, first_point: [0,0,0], second_point: [1,0,0], law: x, length: 1}\n",
     ":12: spring 's': a law takes the place of"),
    (JOINT + "wrenches:\n  w: {body: a, force: [=t, 0, 0]}\n", ":12: wrench 'w': force: number 1: a formula does not"),
    ("parameters: {k: 1}\n" + JOINT + "wrenches:\n  w: {body: a, force: [k*s*t, 0, 0]}\n",
     ":13: wrench 'w': formula 'k*s*t': 's' is not known here; it may use t, k, pi"),
    (HEAD + "  c: {mass: 4.5 kg}\n",
     ":5: body 'c': formula '4.5 kg': 'kg' is not expected there; numbers carry no units: they are SI, angles radians"),
    (HEAD + "  c: {mass: 4.5kg}\n", ":5: body 'c': formula '4.5kg': '4.5kg' is no number; numbers carry no units"),
    (HEAD + "parameters: {k: 4.5 kg}\n", ":5: parameter 'k': needs a number, got '4.5 kg'; numbers carry no units"),
    (HEAD + "gravity: 9.81\n", ":5: gravity: needs a list of three numbers, got 9.81"),
    (HEAD + "gravity: {z: -9.81}\n", ":5: gravity: needs a list of three numbers, got a mapping"),
    (HEAD + "  c: {com: 1}\n", ":5: body 'c': com: needs a list of three numbers, got 1"),
    (HEAD + "  c: {mass: 2001-01-01}\n", ":5: '2001-01-01' is a date in YAML"),
    (HEAD + "  c: {mass: 2001-10-10}\n", ":5: '2001-10-10' is a date in YAML"),
    (HEAD + "  c: {mass: 010}\n", ":5: '010' begins with 0, which some readers take for an octal number; write 10"),
    (HEAD + "  c: {mass: 2*010}\n", ":5: body 'c': formula '2*010': the number 010 begins with 0"),
    (HEAD + "  c: 1\n", ":5: body 'c': needs a mapping of names to values, got 1"),
    (HEAD + '  "c\\0": {mass: 1}\n', ":5: body 'c\\x00': the name holds the control character U+0000"),
    (HEAD + '  "c\\u202ed": {mass: 1}\n', ":5: body 'c\\u202ed': the name holds the control character U+202E"),
    (HEAD + "  c\u202ed: {mass: 1}\n", ":5: body 'c\\u202ed': the name holds the control character U+202E"),
    (HEAD + 'name: "a\\nb"\n', ":5: name: the name holds the control character U+000A"),
    (HEAD + 'parameters: {"k\\x85": 1}\n', ":5: parameter 'k\\x85': the name holds the control character U+0085"),
    ("---\n" + HEAD, ":6: begins with '---' but does not end with '...'"),
    (HEAD + "...\n---\nbellcrank: 1\n", ":6: a second document begins"),
    ("a: &x [1]\nb: *x\n", ":1: anchors"),
    ("a: !!python/object/apply:os.system [ls]\n", ":1: the tag 'tag:yaml.org,2002:python/object/apply:os.system'"),
    ("bellcrank: !!int 1\n", ":1: the tag"),
    ("? [a, b]\n: 1\n", ":1: a key must be a name"),
    ("bellcrank: 1\n\tname: x\n", ":2: is not YAML"),
    ("bellcrank: 1\nbodies: {a: {mass: [1\n", ":3: is not YAML"),
    ("x: " + "[" * 100 + "]" * 100, ":1: lists and mappings are nested more than"),
    ("x: " + "[" * 100_000, ":1: lists and mappings are nested more than"),
    ("{" * 100_000, ":1: "),
    ("bellcrank: 1\nname: \x00\n", ":2: is not YAML"),
    (b"bellcrank: 1\nname: \xff\n", ":2: the byte 0xff is not UTF-8"),
    (b"\xff\xfeb\x00e\x00", ":1: the byte 0xff is not UTF-8"),
])
def test_what_is_said_about_yaml(text: str | bytes, wanted: str, tmp_path: Path) -> None:
    said = message(text, tmp_path)
    assert said.startswith(wanted) if wanted.startswith(":") else wanted in said


@pytest.mark.parametrize(("text", "wanted"), [
    ("", ":1: the file is empty"), ("{", ":1: is not JSON: needs a key in double quotes where the file ends"),
    ('{"bellcrank": 1,}', "needs a key in double quotes before '}'"), ("[1 2]", "needs ',' or ']'"),
    ('{"bellcrank": NaN}', ":1: is not JSON: needs a value before 'NaN}'"), ('{"a" 1}', "needs ':'"),
    ('{"bellcrank": 1}\n x', ":2: is not JSON: there is more after the end"), ('{"a": 01}', "needs ',' or '}'"),
    ('{"bellcrank": 1,\n"bellcrank": 1}', ":2: 'bellcrank' is there twice: first on line 1"),
    ('{"bellcrank": 1, "name": "x\ny"}', "invalid control character"), ('{"name": "\\ud800"}', "half of a character"),
    ('{"bellcrank": 1, "name": "x', "unterminated string"), ('{"bellcrank": -Infinity}', "needs a value"),
    ('{"bellcrank": 1,\n "bodies": {\n  "a": {"mass": null}}}', ":3: body 'a': mass: needs a number, got nothing"),
    ('{"bellcrank": 1,\n "bodies": {\n  "": {}}}', ":3: body '': needs a name, got empty text"),
    ('{"bellcrank": 1, "gravity": [1e999, 0, 0]}', "gravity: number 1: the number is not finite"),
    ("[" * 1_000_000, "nested more than"), ('{"a":' * 1_000_000, "nested more than"), ("\"x\"", "needs a mapping"),
    ("1" * 10_000_000, "needs a mapping")])
def test_what_is_said_about_json(text: str, wanted: str, tmp_path: Path) -> None:
    assert wanted in message(text, tmp_path, "json")


@pytest.mark.parametrize(("text", "cut"), [
    ("bellcrank: 1\nbodies: {a: {mass: [1\n", True), ("bellcrank: 1\nname: \"x\n", True),
    ("bellcrank: 1\nbodies: {a: {mass: [1\n\n\n", True), ("bellcrank: 1\n\tname: x\n", False),
    ("bellcrank: 1\nname x\nbodies: {}\n", False), ("bellcrank: 1\nbodies: {a: {mass: 1]}\n", False),
    ("bellcrank: 1\nname: a: b\n", False)])
def test_only_where_the_file_ends_it_may_be_cut_off(text: str, cut: bool, tmp_path: Path) -> None:
    said = message(text, tmp_path)
    assert "is not YAML" in said and ("is the file cut off?" in said) == cut


def test_a_file_that_is_cut_off_is_refused_anywhere(tmp_path: Path) -> None:
    text = text_of(bc.load("four_bar"))
    for length in range(0, len(text) - 4, 7):
        assert message(text[:length], tmp_path)
    whole = text_of(bc.load("four_bar"), json=True)
    for length in range(0, len(whole) - 2, 7):
        assert message(whole[:length], tmp_path, "json")


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(bc.FileError, match="cannot be read"):
        bc.load(tmp_path / "none.yaml")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(bc.FileError, match="not a regular file"):
        bc.load(tmp_path / "folder.yaml")
    with pytest.raises(bc.FileError, match="cannot be read"):
        bc.load("a\0b.yaml")


def test_giant_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "giant.yaml"
    with path.open("wb") as file:
        file.truncate(65 * 2**20)
    with pytest.raises(bc.FileError, match="larger than"):
        bc.load(path)


def test_a_bomb_costs_nothing(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    before = time.perf_counter()
    assert "aliases" in message("\n".join(lines), tmp_path)
    assert time.perf_counter() - before < 1.0


@pytest.mark.parametrize("key", [("position", "b", "w"), ("velocity", "b", "xy"), ("omega", "b", ""),
                                 ("axes", "b", "x", 1.0), ("element", "s", "vector", "w")])
def test_axes_that_laws_read(key: tuple[object, ...]) -> None:
    with pytest.raises(bc.ModelError, match="is none of the axes x, y, z"):
        WrittenLaw.of(["r1"], [key], ())


PIECES = ["", " ", "\n", ":", "-", "[", "]", "{", "}", ",", '"', "'", "#", "&a", "*a", "!!x", "|", ">", "null", "true",
          "1", "-1", "1e400", ".nan", "0", "x", "t", "`", "sin(", ")", "**", "ground", "\t", "é", "\0", "\u2028", "%",
          "...", "---", "? ", "<<: ", "law", "type: free", "1e-300", "'''", "\\", "\\u0000", "=", ";"]


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_mutations_of_a_good_file_give_one_kind_of_error(ending: str, tmp_path: Path) -> None:
    """Whatever is changed in a file, it is read or refused; what is read is written and read again the same."""
    rng = random.Random(7)
    whole = text_of(everything(), json=ending == "json")
    path, other = tmp_path / f"m.{ending}", tmp_path / f"again.{ending}"
    read = 0
    end = time.perf_counter() + 5.0
    for _ in range(600):
        text = whole
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            text = _changed(text, rng)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            m = bc.load(path)
        except bc.FileError as error:
            assert str(error).startswith(str(path))
            continue
        read += 1
        if read % 8 == 0:
            bc.save(m, other)
            assert same_mechanism(m, bc.load(other))
        if read > 10 and time.perf_counter() > end:  # on a machine that is busy
            break
    assert read > 10


def _changed(text: str, rng: random.Random) -> str:
    at, length = rng.randrange(len(text)), rng.choice((0, 1, 1, 3, 10))
    match rng.randrange(5):
        case 0:
            return text[:at] + rng.choice(PIECES) + text[at + length:]
        case 1:
            return text[:at] + text[at + length:]
        case 2:
            return text[:at] + chr(rng.choice((rng.randrange(32, 127), rng.randrange(0x3000)))) + text[at + 1:]
        case 3:  # a line elsewhere
            lines = text.split("\n")
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            return "\n".join(lines)
        case _:
            words = text.split(" ")
            words[rng.randrange(len(words))] = rng.choice(words)
            return " ".join(words)


NUMBERS = ["1", "-1.5", "+.5", "1.", "0", "-0", "0.0", "1e5", "-2.5E-3", "1e400", "007", "-01.5", "00", "2026-01-02",
          "1_000", "0x10", "1:30", "yes", "true", "null", "~", "", ".", "-", "1e", "'1.0'", '"2"', "!!float 1", "&a 1",
          "*a", "inf", ".nan", "text"]


def test_numbers_are_read_the_same_on_the_short_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers in lists and mappings skip what other values go through; nothing may be read otherwise for it."""
    from bellcrank.io.native import source_lines as reading

    def read(content: str) -> str:
        (tmp_path / "a.yaml").write_text(content)
        try:
            return repr(reading.read_marked(tmp_path / "a.yaml"))
        except bc.FileError as error:
            return str(error)

    texts = [form.replace("@", p) for p in NUMBERS for form in (
        "a: @\n", "- @\n", "a: [1, @, 3]\n", "@\n", "@: 1\n", "a:\n  b: @\n  c: {d: @}\n", "a: @\na: 2\n", "- - @\n")]
    quick = [read(text) for text in texts]
    monkeypatch.setattr(reading, "_take_all", lambda events, tree, yaml: [reading._take(e, tree, yaml) for e in events])
    assert [read(text) for text in texts] == quick
    assert any("Marked(value=-0.0025" in found for found in quick) and any("octal" in found for found in quick)


@pytest.mark.parametrize(("key", "words"), [
    (["omega", "arm", "w"], "'w' is none of the axes"), (["axes", "arm", "x", ""], "'' is none of the axes"),
    (["element", "strut", "vector", "xy"], "'xy' is none"), (["velocity", "arm", "x", "a", 0.0, 1.0], "three numbers")])
def test_what_laws_read_has_axes_and_points(key: list[Any], words: str) -> None:
    with pytest.raises(bc.ModelError, match=words):
        WrittenLaw.of(["r1"], [key], ())
