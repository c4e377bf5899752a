"""Reading SDF: models among others. Where they lie, what an <include> changes, and what a world adds."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

import bellcrank as bc
from bellcrank.io.sdf import read_sdf, write_sdf

Place = Callable[..., pathlib.Path]
AXIS = "<axis><xyz>0 0 1</xyz></axis>"


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Place:
    def write(inside: str, version: str = "1.9", name: str = "m.sdf") -> pathlib.Path:
        file = tmp_path / name
        file.write_text(f"<sdf version='{version}'>{inside}</sdf>")
        return file
    return write


def joint(name: str, kind: str, parent: str, child: str, more: str = "") -> str:
    return f"<joint name='{name}' type='{kind}'><parent>{parent}</parent><child>{child}</child>{more}</joint>"


def origins(machine: bc.Mechanism) -> dict[str, tuple[float, ...]]:
    """Where each body lies while all coordinates are zero."""
    system = bc.compile(machine, backend="numpy")
    return {b.name: tuple(system.pose(system.neutral(), b.name).position.tolist()) for b in machine.bodies}


# -- models are placed by names that may come later -----------------------------------------------
def test_a_model_may_lie_relative_to_what_comes_later(place: Place) -> None:
    inner = "<model name='arm'><pose relative_to='base'>1 0 0 0 0 0</pose><link name='u'/></model>"
    base = "<link name='base'><pose>0 2 0 0 0 0</pose></link>"
    m, _ = read_sdf(place(f"<model name='m'>{inner}{base}{joint('j', 'fixed', 'base', 'arm::u')}</model>"))
    assert origins(m) == {"arm::u": (1.0, 2.0, 0.0), "base": (0.0, 2.0, 0.0)}


def test_models_of_a_world_lie_relative_to_its_frames_and_to_each_other(place: Place) -> None:
    text = ("<world name='w'><model name='one'><pose relative_to='two::a'>1 0 0 0 0 0</pose><link name='a'/></model>"
            "<model name='two'><pose relative_to='shelf'>0 1 0 0 0 0</pose><link name='a'/></model>"
            "<frame name='shelf'><pose>0 0 5 0 0 0</pose></frame></world>")
    m, _ = read_sdf(place(text))
    assert origins(m) == {"one::a": (1.0, 1.0, 5.0), "two::a": (0.0, 1.0, 5.0)}
    assert [(f.name, f.body) for f in m.frames] == [("shelf", 0)]


def test_models_that_lie_relative_to_each_other_are_an_error(place: Place) -> None:
    text = "".join(f"<model name='{a}'><pose relative_to='{b}'/><link name='l'/></model>" for a, b in ("xy", "yx"))
    with pytest.raises(bc.FileError, match="relative to itself, by way of 'x' and 'y'"):
        read_sdf(place(f"<world name='w'>{text}</world>"))
    with pytest.raises(bc.FileError, match="<pose> in <model 'x'>: there is no link, joint, frame or model 'z'"):
        read_sdf(place("<world name='w'><model name='x'><pose relative_to='z'/><link name='l'/></model></world>"))


def test_one_model_of_a_world_is_read_without_what_hangs_on_others(place: Place) -> None:
    models = "".join(f"<model name='{name}'><pose>0 0 {z} 0 0 0</pose><link name='a'/></model>"
                     for name, z in (("one", 1), ("two", 2)))
    rest = ("<frame name='g' attached_to='f'/><frame name='f' attached_to='one::a'/><frame name='h'/>"
            + joint("between", "ball", "one::a", "two::a") + joint("over", "ball", "g", "two::a")
            + joint("hung", "ball", "h", "two::a"))
    file = place(f"<world name='w'>{models}{rest}</world>")
    assert {j.name for j in read_sdf(file)[0].joints} == {"between", "over", "hung"}
    m, report = read_sdf(file, model="two")
    assert [j.name for j in m.joints] == ["hung"] and [f.name for f in m.frames] == ["h"]
    assert sorted(note.name for note in report.warned) == ["between", "f", "g", "over"]


# -- includes -------------------------------------------------------------------------------------
def test_an_include_has_the_last_word_about_static(place: Place) -> None:
    place("<model name='table'><static>true</static><link name='top'/></model>", name="table.sdf")
    for word, kind in (("", bc.Weld), ("<static>false</static>", bc.Free), ("<static>true</static>", bc.Weld)):
        m, _ = read_sdf(place(f"<world name='w'><include><uri>table.sdf</uri>{word}</include></world>"))
        assert type(m.joints[0].joint) is kind
    merged = "<model name='m'><include merge='true'><uri>table.sdf</uri></include></model>"
    assert type(read_sdf(place(merged))[0].joints[0].joint) is bc.Free  # static is not merged


def test_what_an_include_changes_otherwise_is_told(place: Place) -> None:
    place("<model name='part'><link name='a'/><link name='b'/></model>", name="part.sdf")
    text = ("<world name='w'><include><uri>part.sdf</uri><experimental:params><link element_id='b' action='remove'/>"
            "</experimental:params><plugin name='p' filename='p'/></include></world>")
    _, report = read_sdf(place(text))
    assert [note.tag for note in report.warned] == ["experimental:params"]
    with pytest.raises(bc.FileError, match="<placement_frame> in <include> .* needs a <pose>"):
        read_sdf(place("<model name='m'><include><uri>part.sdf</uri><placement_frame>b</placement_frame></include>"
                       "</model>"))


def test_included_lights_are_scenery(place: Place) -> None:
    place("<light name='sun' type='directional'/>", name="sun.sdf")
    m, report = read_sdf(place("<world name='w'><include><uri>sun.sdf</uri></include><model name='m'><link name='a'/>"
                               "</model></world>"))
    assert len(m.bodies) == 1 and "scenery" in report.ignored[0].text


# -- worlds ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(("version", "expected"), [("1.4", -1.62), ("1.5", -1.62), ("1.6", -9.8)])
def test_gravity_stood_in_physics_before_version_1_6(place: Place, version: str, expected: float) -> None:
    text = "<world name='w'><physics type='ode'><gravity>0 0 -1.62</gravity></physics><model name='m'><link name='a'/>"
    assert read_sdf(place(f"{text}</model></world>", version))[0].gravity == (0.0, 0.0, expected)


def test_a_second_pose_is_told(place: Place) -> None:
    pose = "<pose>0 0 1 0 0 0</pose><pose>0 0 2 0 0 0</pose>"
    m, report = read_sdf(place(f"<model name='m'>{pose}<link name='a'/></model>"))
    assert m.joints[0].drawn_pose.position == (0.0, 0.0, 1.0)
    assert [note.text for note in report.warned] == ["a second <pose>; only the first counts"]


# -- frames ---------------------------------------------------------------------------------------
def test_a_frame_called_like_the_world_is_renamed(place: Place) -> None:
    m, report = read_sdf(place("<model name='m'><link name='a'/><frame name='ground'><pose>1 0 0 0 0 0</pose></frame>"
                               "</model>"))
    assert [(f.name, f.body, f.pose.position) for f in m.frames] == [("ground_frame", 1, (1.0, 0.0, 0.0))]
    assert any("renamed" in note.text for note in report.changed)


def test_frames_of_the_ground_stay_there_when_written(tmp_path: pathlib.Path) -> None:
    machine = bc.load("pendulum")
    for name in ("corner", machine.name, "bench"):
        machine.add_frame(name, machine.ground, bc.Pose((1, 2, 3)))
    machine.add_frame("tip", machine.bodies[0], bc.Pose((0, 0, 1)))
    write_sdf(machine, tmp_path / "m.sdf")
    back, _ = read_sdf(tmp_path / "m.sdf")
    assert sorted(f.body for f in back.frames) == [0, 0, 0, 1]
    assert all(f.pose.position == ((0, 0, 1) if f.body else (1, 2, 3)) for f in back.frames)


def test_a_child_that_is_not_there_is_named_at_its_place(place: Place) -> None:
    for pose in ("", "<pose>0 0 1 0 0 0</pose>"):
        with pytest.raises(bc.FileError, match="<child> in <joint 'j'>: there is no link, joint, frame or model 'b'"):
            read_sdf(place(f"<model name='m'><link name='a'/>{joint('j', 'ball', 'a', 'b', pose)}</model>"))


# -- gears and mimic axes -------------------------------------------------------------------------
def test_friction_of_a_gearbox_is_told(place: Place) -> None:
    gear = ("<gearbox_ratio>2</gearbox_ratio><gearbox_reference_body>world</gearbox_reference_body><axis><xyz>0 0 1"
            "</xyz><dynamics><damping>3</damping></dynamics></axis><axis2><xyz>0 0 1</xyz></axis2>")
    text = ("<model name='m'><link name='a'/><link name='b'/>" + joint("j", "revolute", "world", "a", AXIS)
            + joint("k", "revolute", "world", "b", AXIS) + joint("g", "gearbox", "a", "b", gear) + "</model>")
    _, report = read_sdf(place(text))
    assert ["gearbox" in note.text for note in report.warned] == [True]


def test_an_axis_that_follows_zero_times_is_held(place: Place) -> None:
    follow = "<axis><xyz>0 0 1</xyz><mimic joint='j'><multiplier>0</multiplier><offset>0.3</offset></mimic></axis>"
    text = ("<model name='m'><link name='a'/><link name='b'/>" + joint("j", "revolute", "world", "a", AXIS)
            + joint("k", "revolute", "a", "b", follow) + "</model>")
    m, report = read_sdf(place(text, "1.11"))
    system = bc.compile(m, backend="numpy")
    turned = system.pose(system.neutral(), "b").rotation
    assert turned == pytest.approx(bc.Pose.about("z", 0.3).rotation, abs=1e-15)
    assert "held at 0.3" in report.warned[0].text


def test_moments_of_inertia_that_are_missing_are_told(place: Place) -> None:
    text = "<inertial><mass>2</mass><inertia><ixx>1.5</ixx></inertia></inertial>"
    m, report = read_sdf(place(f"<model name='m'><link name='a'>{text}</link></model>"))
    assert m.bodies[0].inertia.inertia == (1.5, 0.0, 0.0, 1.0, 0.0, 1.0)
    assert any("no <iyy> and no <izz>: 1, as SDF says" in note.text for note in report.changed)
