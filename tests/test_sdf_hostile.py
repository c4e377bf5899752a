"""SDF files that are broken or mean harm: one `FileError` that names file, line and element, and no other exception."""

from __future__ import annotations

import pathlib
import random
import warnings
from collections.abc import Callable

import pytest

import bellcrank as bc
from bellcrank.io.sdf import read_sdf
from growth import growth

GOOD = """<?xml version="1.0"?>
<sdf version="1.7">
  <world name="w">
    <gravity>0 0 -9.8</gravity>
    <model name="m" canonical_link="a">
      <pose degrees="true">0 0 1 0 0 90</pose>
      <link name="a"><inertial><pose>0 0 0.1 0 0 0</pose><mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy>
        <izz>0.1</izz></inertia></inertial>
        <visual name="v"><geometry><box><size>1 1 1</size></box></geometry></visual></link>
      <link name="b"><pose relative_to="a">1 0 0 0 0 0</pose></link>
      <link name="c"><pose relative_to="f">0 0 1 0.1 0.2 0.3</pose></link>
      <frame name="f" attached_to="b"><pose>0 1 0 0 0 0</pose></frame>
      <joint name="ab" type="revolute"><parent>a</parent><child>b</child><axis><xyz expressed_in="__model__">0 1 0</xyz>
        <limit><lower>-1</lower><upper>1e16</upper></limit><dynamics><damping>1</damping><spring_stiffness>3
        </spring_stiffness></dynamics></axis></joint>
      <joint name="bc" type="universal"><pose relative_to="f">0 0 0 0 0 0</pose><parent>f</parent><child>c</child>
        <axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint>
      <joint name="ac" type="ball"><parent>a</parent><child>c</child></joint>
      <joint name="g" type="screw"><thread_pitch>10</thread_pitch><parent>world</parent><child>a</child><axis><xyz>0 0 1
        </xyz></axis></joint>
    </model>
  </world>
</sdf>
"""


def read(tmp_path: pathlib.Path, text: str | bytes) -> None:
    file = tmp_path / "bad.sdf"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    read_sdf(file)


def test_the_good_file_is_good(tmp_path: pathlib.Path) -> None:
    read(tmp_path, GOOD)


BAD = {
    "bomb": ('<!DOCTYPE sdf [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><sdf version="1.7">&b;</sdf>', "DOCTYPE"),
    "external entity": ('<!DOCTYPE sdf [<!ENTITY x SYSTEM "file:///etc/passwd">]><sdf version="1.7">&x;</sdf>',
                        "DOCTYPE"),
    "cut off": (GOOD[:900], "not well-formed"),
    "not utf-8": (GOOD.encode().replace(b'"m"', b'"\xff"'), "not UTF-8"),
    "nothing": ("", "empty"),
    "deep": ("<sdf version='1.7'>" + "<model name='m'>" * 200 + "</model>" * 200 + "</sdf>", "nested more than"),
    "other root": ("<robot name='r'/>", "not an SDF file"),
    "no version": ("<sdf><model name='m'/></sdf>", "has no version"),
    "odd version": ("<sdf version='one'><model name='m'/></sdf>", "is not one of SDF"),
    "old version": ("<sdf version='1.2'><model name='m'/></sdf>", "cannot be read"),
    "no model": ("<sdf version='1.7'/>", "has no <model>"),
    "no link": ("<sdf version='1.7'><model name='m'/></sdf>", "has no <link>"),
    "huge number": (GOOD.replace("1 0 0 0 0 0</pose></link>", "1e300 0 0 0 0 0</pose></link>"), "above 1e\\+100"),
    "huge exponent": (GOOD.replace("<mass>2<", "<mass>1e999<"), "not a finite number"),
    "not a number": (GOOD.replace("<mass>2<", "<mass>nan<"), "not a finite number"),
    "words": (GOOD.replace("<mass>2<", "<mass>2 kg<"), "needs 1 number"),
    "too few": (GOOD.replace("0 1 0 0 0 0</pose>", "0 1 0</pose>"), "needs 6 numbers"),
    "zero axis": (GOOD.replace(">0 1 0</xyz>", ">0 0 0</xyz>"), "no direction"),
    "same name": (GOOD.replace('link name="b"', 'link name="a"'), "taken by the <link>"),
    "same name as joint": (GOOD.replace('joint name="ab"', 'joint name="b"'), "taken by the <link>"),
    "reserved name": (GOOD.replace('link name="b"', 'link name="world"'), "reserved"),
    "unknown link": (GOOD.replace("<child>b</child>", "<child>bb</child>"), "no link, joint, frame or model 'bb'"),
    "unknown type": (GOOD.replace('"ball"', '"balls"'), "type 'balls' is unknown"),
    "itself": (GOOD.replace("<child>b</child>", "<child>a</child>"), "with itself"),
    "pose in a circle": (GOOD.replace('relative_to="a"', 'relative_to="c"'), "relative to itself"),
    "attached in a circle": (GOOD.replace('attached_to="b"', 'attached_to="f"'), "itself"),
    "no child": (GOOD.replace("<child>b</child>", ""), "needs a <child>"),
    "blank parent": (GOOD.replace("<parent>a</parent><child>b", "<parent> </parent><child>b"), "is blank"),
    "truth": (GOOD.replace('degrees="true"', 'degrees="maybe"'), "neither true nor false"),
    "two worlds": (GOOD.replace("</sdf>", "<world name='x'/></sdf>"), "a second <world>"),
    "negative damping": (GOOD.replace("<damping>1<", "<damping>-1<"), "viscous"),
    "pitch": (GOOD.replace("<thread_pitch>10<", "<thread_pitch>0<"), "gives no motion"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_files_give_one_error(what: str, tmp_path: pathlib.Path) -> None:
    text, message = BAD[what]
    with pytest.raises(bc.FileError, match=message) as caught:
        read(tmp_path, text)
    assert str(tmp_path / "bad.sdf") in str(caught.value)


# -- includes -----------------------------------------------------------------------------------------
def include(uri: str) -> str:
    return f"<sdf version='1.7'><model name='m'><include><uri>{uri}</uri></include></model></sdf>"


@pytest.mark.parametrize("uri", ["../secret.sdf", "parts/../../secret.sdf", "/etc/passwd", "file:///etc/passwd",
                                 "model://../secret.sdf", "..\\secret.sdf", "file://../secret.sdf"])
def test_includes_do_not_leave_the_folder(uri: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret.sdf").write_text(GOOD)
    folder = tmp_path / "here"
    (folder / "parts").mkdir(parents=True)
    with pytest.raises(bc.FileError, match="leads out of the folder"):
        read(folder, include(uri))


def test_links_of_the_file_system_do_not_leave_the_folder(tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret.sdf").write_text("<sdf version='1.7'><model name='s'><link name='a'/></model></sdf>")
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "link.sdf").symlink_to(tmp_path / "secret.sdf")
    (folder / "door").symlink_to(tmp_path)
    for uri in ("link.sdf", "door/secret.sdf", "model://door"):
        with pytest.raises(bc.FileError, match="leads out of the folder|is not in the folder"):
            read(folder, include(uri))


@pytest.mark.parametrize("uri", ["https://fuel.gazebosim.org/1.0/x", "http://localhost/x", "fuel://x"])
def test_nothing_comes_from_the_network(uri: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(bc.FileError, match="nothing from the network"):
        read(tmp_path, include(uri))


def test_missing_and_circular_includes(tmp_path: pathlib.Path) -> None:
    with pytest.raises(bc.FileError, match="is not in the folder"):
        read(tmp_path, include("none.sdf"))
    with pytest.raises(bc.FileError, match="includes itself"):
        read(tmp_path, include("bad.sdf"))
    (tmp_path / "one.sdf").write_text(include("two.sdf"))
    (tmp_path / "two.sdf").write_text(include("one.sdf"))
    with pytest.raises(bc.FileError, match="includes itself"):
        read_sdf(tmp_path / "one.sdf")


def test_includes_cannot_multiply_without_bound(tmp_path: pathlib.Path) -> None:
    for i in range(12):
        inner = "".join(f"<include><uri>f{i + 1}.sdf</uri><name>n{k}</name></include>" for k in range(10))
        (tmp_path / f"f{i}.sdf").write_text(f"<sdf version='1.7'><model name='m'>{inner}</model></sdf>")
    (tmp_path / "f12.sdf").write_text("<sdf version='1.7'><model name='m'><link name='a'/></model></sdf>")
    with pytest.raises(bc.FileError, match="files are included"):
        read_sdf(tmp_path / "f0.sdf")


def test_an_error_in_an_included_file_names_both(tmp_path: pathlib.Path) -> None:
    (tmp_path / "part.sdf").write_text("<sdf version='1.7'><model name='m'>")
    with pytest.raises(bc.FileError, match=r"part\.sdf.*included by .*bad\.sdf:1"):
        read(tmp_path, include("part.sdf"))


LINK = "<link name='l{i}'/>"
HINGE = ("<joint name='j{i}' type='revolute'><parent>world</parent><child>l{i}</child><axis><xyz>0 0 1</xyz></axis>"
         "</joint>")
GEAR = ("<joint name='g{i}' type='gearbox'><parent>l{i}</parent><child>l{before}</child><gearbox_reference_body>world"
        "</gearbox_reference_body><axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2></joint>")
SHAPE = ("<link name='l{i}'><visual name='v'><pose relative_to='none'/><geometry><sphere><radius>1</radius></sphere>"
         "</geometry></visual></link>")
MANY = {"frames in a row": ("<link name='l'/>", "<frame name='f{i}' attached_to='f{before}'/>", "<frame name='f0'/>"),
        "links that hang on nothing": ("", LINK, LINK.format(i=0)),
        "gears": ("", LINK + HINGE + GEAR, (LINK + HINGE).format(i=0)),
        "shapes at places that do not exist": ("", SHAPE, "")}


@pytest.mark.parametrize("what", MANY)
def test_work_grows_with_the_size_of_the_file(what: str, tmp_path: pathlib.Path) -> None:
    first, each, last = MANY[what]

    def work(size: int) -> Callable[[], object]:
        many = "".join(each.format(i=i, before=i - 1) for i in range(1, size))
        file = tmp_path / f"{size}.sdf"
        file.write_text(f"<sdf version='1.7'><model name='m'>{first}{many}{last}</model></sdf>")
        return lambda: read_sdf(file)

    assert growth(work) < 2.1


def test_placement_frames_cannot_multiply_the_work(tmp_path: pathlib.Path) -> None:
    frames = "".join(f"<frame name='f{i}' attached_to='{f'f{i - 1}' if i else 'l'}'/>" for i in range(1000))
    text = f"<model name='m' placement_frame='f999'><link name='l'/>{frames}</model>"
    for i in range(25):
        text = f"<model name='m' placement_frame='{'m::' * (i + 1)}f999'>{text}</model>"
    with pytest.raises(bc.FileError, match="more than 20000 frames on the way"):
        read(tmp_path, f"<sdf version='1.9'>{text}</sdf>")


# -- fuzz ---------------------------------------------------------------------------------------------
def mutant(rng: random.Random) -> bytes:
    """The good file with a few bytes, numbers, words or lines changed."""
    text = GOOD
    words = ["a", "b", "c", "f", "ab", "world", "__model__", "", "1e308", "-1e-308", "nan", "inf", "0", "1 2", "m::a",
             "<link/>", "</link>", "relative_to", "ball", "gearbox", "true", "revolute2", "\u00e9", "1.4", "1.6",
             "&#0;"]
    for _ in range(rng.randint(1, 4)):
        kind = rng.randrange(5)
        at = rng.randrange(len(text))
        if kind == 0:
            text = text[:at] + text[at + rng.randint(1, 30):]
        elif kind == 1:
            text = text[:at] + rng.choice(words) + text[at:]
        elif kind == 2:
            old = rng.choice(["a", "b", "c", "f", "1", "0", "revolute", "universal", "axis", "pose", "joint", "world",
                              "1.7", "parent"])
            text = text.replace(old, rng.choice(words), rng.randint(1, 2))
        elif kind == 3:
            lines = text.split("\n")
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
            text = "\n".join(lines)
        else:
            lines = text.split("\n")
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            text = "\n".join(lines)
    data = text.encode()
    if rng.random() < 0.1:
        at = rng.randrange(len(data))
        data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1:]
    return data


def test_mutated_files_give_a_machine_or_a_file_error(tmp_path: pathlib.Path) -> None:
    rng = random.Random(20240611)
    good = bad = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(1000):
            try:
                read(tmp_path, mutant(rng))
                good += 1
            except bc.FileError as error:
                assert "bad.sdf" in str(error)
                bad += 1
    assert good > 20 and bad > 100
