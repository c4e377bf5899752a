"""URDF files and their side files from an enemy: one FileError, or a machine, and never long."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from bellcrank.errors import FileError
from bellcrank.io.urdf import read_urdf
from bellcrank.mechanism.mechanism import Mechanism
from growth import growth
from test_urdf_loops import BALLS, OPEN, SPELLINGS, hinge

needs_yaml = pytest.mark.skipif(importlib.util.find_spec("yaml") is None, reason="needs PyYAML")
WORDS = ["", "<", ">", "/", "'", '"', "&", "\0", "1e400", "1e308", "-1e308", "nan", "inf", "-", "crank", "rocker",
         "base", "world", "<!DOCTYPE x>", " ",
         "0 0 0", "revolute", "ball", "name='pin'", "</joint>", "<axis/>", "\xff", "0"]
GOOD = [f"<robot name='r'>{OPEN}{text}</robot>" for text in (*SPELLINGS.values(), *BALLS.values())] + [
    f"<robot name='r'>{OPEN}</robot>".replace(
        "</joint>", "<dynamics damping='1' friction='2'/><limit lower='0' upper='1'/></joint>", 1).replace(
        "<axis", "<mimic joint='crank_joint' multiplier='2' offset='1'/><axis").replace(
        "<mimic joint='crank_joint' multiplier='2' offset='1'/>", "", 1)]


def damaged(good: str, chance: random.Random) -> bytes:
    text = good
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(text))
        match chance.randrange(4):
            case 0:
                text = text[:at] + chance.choice(WORDS) + text[at + chance.choice((0, 1, 5, 30)):]
            case 1:  # a value for another
                quoted = [i for i, c in enumerate(text) if c == "'"]
                i = chance.randrange(0, len(quoted) - 1, 2)
                text = text[:quoted[i] + 1] + chance.choice(WORDS).replace("'", "") + text[quoted[i + 1]:]
            case 2:  # an element twice, or gone
                tags = [i for i, c in enumerate(text) if c == "<"]
                start, end = sorted(chance.sample(tags, 2))
                text = text[:start] + chance.choice(("", text[start:end] * 2)) + text[end:]
            case _:
                text = text[:at]
        if not text or text.count("'") < 4 or text.count("<") < 2:
            break
    return text.encode("latin-1") if chance.random() < 0.1 else text.encode()


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files(tmp_path: Path, seed: int) -> None:
    chance, outcomes, path = random.Random(seed), set(), tmp_path / "robot.urdf"
    for _ in range(700):
        path.write_bytes(damaged(chance.choice(GOOD), chance))
        try:
            outcomes.add(type(read_urdf(path, dynamics=chance.random() < 0.5)[0]))
        except FileError as error:
            assert str(path) in str(error)
            outcomes.add(type(error))
    assert outcomes == {FileError, Mechanism}


def chain(size: int, inside: str = "") -> str:
    """A chain of links; `inside` each joint, with {i} for its number and {next} for that of the joint below."""
    return "".join(f"<link name='l{i}'/>" for i in range(size + 1)) + "".join(
        hinge(f"j{i}", f"l{i}", f"l{i + 1}", (0, 0, 1), (0, 0, 0), (0, 1, 0), inside.format(i=i, next=i + 1))
        for i in range(size))


def closing(name: str, place: str = "") -> str:
    return f"<gazebo><joint name='{name}' type='ball'><parent>l0</parent><child>l9</child>{place}</joint></gazebo>"


BALL = ("<drake:ball_constraint><drake:ball_constraint_body_A name='l0'/><drake:ball_constraint_body_B name='l9'/>"
        "</drake:ball_constraint>")
LAST = "<link name='last'/>" + hinge("j{size}", "l0", "last", (0, 0, 1), (0, 0, 0), (0, 1, 0))
LARGE: dict[str, Callable[[int], str]] = {
    "a mimic chain": lambda size: chain(size, "<mimic joint='j{next}'/>") + LAST.format(size=size),
    "a mimic circle": lambda size: chain(size, "<mimic joint='j{next}'/>").replace(f"joint='j{size}'", "joint='j0'"),
    "mimic joints of none": lambda size: chain(size, "<mimic joint='none{i}'/>"),
    "nameless closures": lambda size: chain(size) + BALL * size,
    "closures at a joint": lambda size: chain(size) + "".join(
        closing(f"g{i}", f"<pose relative_to='j{size - 1}'/>") for i in range(size)),
    "limits after much else": lambda size: chain(10) + "<link name='last'/>" + hinge(
        "k", "l0", "last", (0, 0, 1), (0, 0, 0), (0, 1, 0), "<x/>" * size + "<limit effort='1' velocity='1'/>" * size)}


@pytest.mark.parametrize("what", LARGE)
def test_work_grows_with_the_size_of_the_file(tmp_path: Path, what: str) -> None:
    def work(size: int) -> Callable[[], object]:
        path = tmp_path / f"{size}.urdf"
        path.write_text(f"<robot name='r'>{LARGE[what](size)}</robot>")

        def read() -> None:
            with pytest.raises(FileError) if what == "a mimic circle" else nullcontext():
                read_urdf(path, mimic="free" if what == "mimic joints of none" else "coupler")

        return read

    assert growth(work) < 2.1


@pytest.mark.parametrize("text", [
    chain(3000).replace("xyz='0.0 0.0 1.0'", "xyz='0 0 1e308'") + closing("x"),
    chain(3000) + closing("x") * 3000])
def test_large_files_that_are_wrong(tmp_path: Path, text: str) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text(f"<robot name='r'>{text}</robot>")
    with pytest.raises(FileError):
        read_urdf(path)


SIDE: dict[str, tuple[str | bytes, str]] = {
    "bomb": ("a: &a [x, x]\nb: &b [*a, *a]\nclosures: [*b, *b]\n", "anchors (&) and aliases (*) are refused"),
    "object": ("closures: !!python/object/apply:os.system ['true']\n", "is refused: values are"),
    "set": ("closures: !!set {a, b}\n", "is refused: values are"),
    "merge": ("closures:\n- <<: {link_a: crank}\n", "needs the entry 'link_a'"),
    "deep": ("closures: " + "[" * 5000, "nested more than 20 deep"),
    "deep blocks": ("closures:\n" + "".join(" " * i + "-\n" for i in range(1, 400)), "nested more than 20 deep"),
    "wide": ("closures: [" + "a, " * 200_000 + "]", "more than 10000 values"),
    "large": ("#" * (2**20 + 1), "is larger than"),
    "not UTF-8": (b"closures: \xff", "is not UTF-8"),
    "zero byte": (b"closures: \0", "is not YAML"),
    "cut off": ("closures: [{link_a: crank, link_b", "is not YAML"),
    "tab": ("closures:\n\t- x", "is not YAML"),
    "empty": ("", "the file is empty"),
    "two documents": ("closures: []\n---\nclosures: []\n", "a second document"),
    "list": ("- closures", "a mapping"),
    "twice": ("closures: []\nclosures: []\n", "is there twice"),
    "text": ("closures: hello", "a list is expected"),
    "link": ("closures: [{link_a: crank, link_b: rock, point: [0, 0, 0], axis: [0, 1, 0]}]", "did you mean 'rocker'?"),
    "number": ("closures: [{link_a: crank, link_b: rocker, point: [0, .nan, 0], axis: [0, 1, 0]}]", "finite number"),
    "word": ("closures: [{link_a: crank, link_b: rocker, point: [0, nan, 0], axis: [0, 1, 0]}]", "finite number"),
    "huge": (f"closures: [{{link_a: crank, link_b: rocker, point: [0, {'9' * 5000}, 0]}}]", "finite number"),
    "underscore": ("closures: [{link_a: crank, link_b: rocker, point: [0, 1_000, 0]}]", "finite number"),
    "two numbers": ("closures: [{link_a: crank, link_b: rocker, point: [0, 0]}]", "needs 3 entries"),
    "axis": ("closures: [{link_a: crank, link_b: rocker, point: [0, 0, 0], axis: [0, 0, 0]}]", "no direction"),
    "itself": ("closures: [{link_a: crank, link_b: crank, point: [0, 0, 0]}]", "with itself"),
    "pairs": ("closed_loop: [[crank]]", "needs 2 entries"),
    "types": ("closed_loop: [[crank, rocker]]\ntype: [6d, 6d]", "needs 1 entries"),
    "type": ("closed_loop: [[crank, rocker]]\ntype: [5d]", "'5d' is unknown"),
    "frame": ("closed_loop: [[crank, nowhere]]", "no link or joint 'nowhere'"),
    "joint": ("closed_loop: []\njoint_name: [x]\njoint_type: [SPHERICAL]", "no joint 'x'"),
    "joint type": ("closed_loop: []\njoint_name: [crank_joint]\njoint_type: [ROPE]", "'ROPE' is unknown"),
    "no joint type": ("closed_loop: []\njoint_name: [crank_joint]", "needs 'joint_type'"),
}


@needs_yaml
@pytest.mark.parametrize("what", SIDE)
def test_bad_side_files(tmp_path: Path, what: str) -> None:
    text, reason = SIDE[what]
    (tmp_path / "robot.urdf").write_text(f"<robot name='r'>{OPEN}</robot>")
    side = tmp_path / "loop_closures.yaml"
    side.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileError) as caught:
        read_urdf(tmp_path / "robot.urdf")
    assert str(caught.value).startswith(f"{side}:")
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 500 + len(str(side))


@needs_yaml
def test_damaged_side_files(tmp_path: Path) -> None:
    good = ("closures:\n- {link_a: coupler, link_b: rocker, point: [0.9, 0, 0.5], axis: [0, 1, 0]}\n"
            "dependent: [coupler_joint]\n", "closed_loop: [['crank', 'rocker_joint']]\ntype: ['3d']\n"
            "joint_name: [coupler_joint]\njoint_type: [SPHERICAL]\n")
    (tmp_path / "robot.urdf").write_text(f"<robot name='r'>{OPEN}</robot>")
    chance, side, outcomes = random.Random(7), tmp_path / "loop_closures.yaml", set()
    words = ["", "[", "]", "{", "}", ":", "-", "&a", "*a", "!!x", "\n", "\t", "'", '"', "1e400", "#", "%", "?", "|",
             ">", "\0"]
    for _ in range(1500):
        text = chance.choice(good)
        at = chance.randrange(len(text))
        side.write_text(text[:at] + chance.choice(words) + text[at + chance.choice((0, 1, 5)):])
        try:
            outcomes.add(type(read_urdf(tmp_path / "robot.urdf")[0]))
        except FileError as error:
            outcomes.add(type(error))
    assert outcomes == {FileError, Mechanism}


@needs_yaml
def test_other_yaml_files_of_the_same_name_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "robot.urdf").write_text(f"<robot name='r'>{OPEN}</robot>")
    for text in ("controllers: [a, b]\n", "a: *b\n", ": : :\n\t"):
        (tmp_path / "robot.yaml").write_text(text)
        assert len(read_urdf(tmp_path / "robot.urdf")[0].joints) == 4
    with pytest.raises(FileError, match="no loop_closures.yaml"):
        read_urdf(tmp_path / "robot.urdf", closures=True)
    with pytest.raises(FileError, match="none.yaml: cannot be read"):
        read_urdf(tmp_path / "robot.urdf", closures="none.yaml")
