"""MJCF in: joints, forces and equalities against MuJoCo itself, what the report says, and files that mean harm."""

from __future__ import annotations

import os
import random
import re
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
import children
from bellcrank.io.mjcf import load_mjcf, read_mjcf
from bellcrank.io.report import ReadWarning
from mjcf_peer import Peer

mujoco = pytest.importorskip("mujoco")
from bellcrank.io.mjcf.read import MjcfReader  # noqa: E402
from bellcrank.io.mjcf.source import compiled  # noqa: E402

TREE = """
<mujoco model="tree">
  <compiler angle="degree" autolimits="true"/>
  <option gravity="0.3 -0.4 -9.5"/>
  <default>
    <joint armature="0.02" damping="0.3"/>
    <default class="sprung"><joint stiffness="4" springref="20"/></default>
  </default>
  <worldbody>
    <body name="trunk" pos="0.1 0.2 0.9" euler="10 20 30">
      <joint name="fly" type="free" damping="0.7" armature="0"/>
      <geom type="box" size=".2 .1 .05" pos=".03 0 .01"/>
      <body name="leg" pos=".2 .1 0" quat="1 -1 0 0" gravcomp="0.4">
        <joint name="hip_x" axis="1 0.2 0" pos="0 0.01 0.02" ref="15"/>
        <joint name="hip_y" axis="0 1 0" class="sprung"/>
        <joint name="reach" type="slide" axis="0 .3 -1" ref="0.05" range="-0.1 0.2"/>
        <geom type="capsule" size=".03" fromto="0 0 0 0 .05 -.3"/>
        <body name="foot" pos="0 .05 -.3">
          <joint name="ankle" type="ball" pos="0 0 .02" damping="0.05" armature="0"/>
          <geom type="ellipsoid" size=".05 .03 .02" pos="0.02 0 0"/>
          <body pos="0 0 -.05"><geom type="sphere" size=".02"/></body>
        </body>
      </body>
      <body name="tail" pos="-.2 0 0"><joint name="wag" axis="0 0 1" stiffness="2"/>
        <inertial mass=".3" pos="-.1 0 .02" fullinertia="2e-3 3e-3 4e-3 1e-4 -2e-4 3e-4"/></body>
      <site name="eye" pos=".2 0 .1"/>
    </body>
    <body name="post" pos="1 0 0"><geom size=".1"/><site name="hook" pos="0 0 .5"/>
      <body name="swing" pos="0 0 .5"><joint name="pin" axis="0 1 0"/><geom size=".05" pos="0 0 -.3"/>
        <site name="bob" pos="0 0 -.3"/></body></body>
  </worldbody>
  <tendon>
    <spatial name="cord" stiffness="30" damping="0.5" springlength="0.4"><site site="eye"/><site site="bob"/></spatial>
    <fixed name="belt" stiffness="3" springlength="0.1"><joint joint="wag" coef="-2"/></fixed>
  </tendon>
  <actuator><motor name="m" joint="wag" gear="7" ctrlrange="-2 2"/><position name="p" joint="pin" kp="5"/></actuator>
  <sensor><jointpos joint="wag"/></sensor>
  <keyframe><key name="crouch" qpos="1 2 3 0 1 0 0 .3 .2 .1 .5 .5 .5 .5 .4 .6" qvel="1 2 3 .1 .2 .3 4 5 6 7 8 9 1 2"/>
  </keyframe>
</mujoco>
"""


def written(folder: Path, text: str, name: str = "model.xml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def both(path: Path, flags: int = 0) -> tuple[MjcfReader, bc.Mechanism, Peer]:
    source = compiled(path, None, "error")
    reader = MjcfReader(source, False, False)
    machine = reader.mechanism()
    source.model.opt.disableflags |= flags | int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    return reader, machine, Peer(mujoco, source.model, reader, bc.compile(machine, backend="numpy"))


@pytest.mark.parametrize("seed", range(5))
def test_a_tree_of_all_joints_moves_as_in_mujoco(tmp_path: Path, seed: int) -> None:
    reader, _, peer = both(written(tmp_path, TREE), int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT))
    assert not [note for note in reader.notes if note.kind == "warned"]
    qpos, qvel = peer.random_state(np.random.default_rng(seed))
    q, u = peer.ours(qpos, qvel)
    theirs = peer.accelerations(qpos, qvel)
    ours = peer.theirs(peer.system.forward_dynamics(q, u), u, q)
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-10 * np.abs(theirs).max())
    for body in ("trunk", "leg", "foot", "swing"):
        np.testing.assert_allclose(peer.system.pose(q, body).position, peer.data.body(body).xpos, atol=1e-13)


def test_what_the_report_holds(tmp_path: Path) -> None:
    m, report = read_mjcf(written(tmp_path, TREE))
    assert [j.name for j in m.joints] == ["fly", "hip_x", "hip_y", "reach", "ankle", "body4_weld", "wag", "post_weld",
                                          "pin"]
    assert report.limits["reach"].lower == pytest.approx(-0.15)
    assert report.limits["reach"].upper == pytest.approx(0.15)
    assert report.actuators["m"].gear == 7.0 and report.actuators["p"].bias == (0.0, -5.0, 0.0)
    assert [(d.name, d.joint, d.actuator.limit) for d in m.drives] == [("m", "wag", 14.0)]
    assert {f.name for f in m.frames} == {"eye", "hook", "bob"}
    assert any(note.tag == "jointpos" and note.line > 30 for note in report.ignored)
    assert {shape.kind for shape in report.shapes} == {"box", "capsule", "sphere", "ellipsoid"}
    key = report.keyframes["crouch"]
    assert key["q"]["wag"] == 0.4 and key["q"]["ankle"] == (0.5, 0.5, 0.5, 0.5)
    assert key["q"]["hip_x"] == pytest.approx(0.3 - np.deg2rad(15))
    system = bc.compile(m, backend="numpy")
    state = system.assemble(q=key["q"], u=key["u"])
    qpos = np.array([1, 2, 3, 0, 1, 0, 0, .3, .2, .1, .5, .5, .5, .5, .4, .6])
    q, u = report.from_mujoco(system, qpos, np.array([1, 2, 3, .1, .2, .3, 4, 5, 6, 7, 8, 9, 1, 2]))
    np.testing.assert_allclose(state.q, q, atol=1e-15)
    np.testing.assert_allclose(state.u, u, atol=1e-14)
    pose = system.pose(state.q, "trunk")
    np.testing.assert_allclose(pose.position, [1, 2, 3], atol=1e-15)


def test_limits_are_stops_on_request(tmp_path: Path) -> None:
    m, _ = read_mjcf(written(tmp_path, TREE), limits=True)
    stop = next(f for f in m.joint_forces if f.name == "reach_range")
    assert stop.along.force(0.2, 0.0) < 0.0 == stop.along.force(0.0, 1.0) < stop.along.force(-0.2, 0.0)


LOOPS = """
<mujoco>
  <worldbody>
    <body name="crank"><joint name="A" axis="0 0 1"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>
      <body name="coupler" pos=".3 0 0"><joint name="B" axis="0 0 1"/>
        <geom type="capsule" size=".02" fromto="0 0 0 1 0 0"/></body></body>
    <body name="rocker" pos="1.0 0 0"><joint name="D" axis="0 0 1"/>
      <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/></body>
    <body name="gear" pos="3 0 0"><joint name="G" axis="0 0 1" ref="10"/><geom size=".1"/></body>
    <body name="loose" pos="5 0 0"><freejoint name="F"/><geom size=".1"/><site name="l" pos="0 0 .1"/></body>
    <site name="w" pos="5 0 .1" euler="0 90 0"/>
  </worldbody>
  <equality>{}</equality>
</mujoco>
"""


def looped(folder: Path, inside: str) -> tuple[bc.Mechanism, bc.io.report.ReadReport]:  # type: ignore[name-defined]
    return read_mjcf(written(folder, LOOPS.format(inside)))


@pytest.mark.parametrize("inside, dof, kinds", [
    ("<connect body1='coupler' body2='rocker' anchor='1 0 0'/>", 8, ["Spherical"]),
    ("<connect name='c' body1='coupler' body2='rocker' anchor='1 0 0'/>"
     "<connect body1='coupler' body2='rocker' anchor='1 0 .2'/>", 8, ["Revolute"]),
    ("<weld body1='coupler' body2='rocker'/>", 7, ["Weld"]),
    ("<joint joint1='G' joint2='A' polycoef='.1 2 0 0 0'/>", 9, []),
    ("<joint joint1='G' polycoef='.1 0 0 0 0'/>", 9, []),
    ("<connect site1='l' site2='w'/>", 7, ["Spherical"]),
    ("<weld site1='l' site2='w'/>", 4, ["Weld"]),
    ("<weld body1='loose' body2='world' active='false'/>", 10, []),
])
def test_equalities_are_exact_loops(tmp_path: Path, inside: str, dof: int, kinds: list[str]) -> None:
    m, report = looped(tmp_path, inside)
    assert [type(j.joint).__name__ for j in m.joints[5:]] == kinds
    assert not report.warned
    system = bc.compile(m, backend="numpy")
    assert system.dof == dof
    if system.loops:
        state = system.assemble()
        assert np.abs(system.loop_error(state.q)).max(initial=0.0) < 1e-14
    if "G" in inside:
        turn = system.pose(system.assemble(q={"A": 0.3}).q, "gear").rotation
        wanted = 0.1 + (2 * 0.3 if "joint2" in inside else 0.0)
        assert np.arctan2(turn[1, 0], turn[0, 0]) == pytest.approx(wanted, abs=1e-14)
    if "false" in inside:
        assert any(note.tag == "weld" and "not active" in note.text for note in report.ignored)


def test_a_polynomial_is_a_coupler(tmp_path: Path) -> None:
    path = written(tmp_path, LOOPS.format("<joint joint1='G' joint2='A' polycoef='0 1 2 0 0'/>"))
    m, report = read_mjcf(path)
    assert not report.warned and not isinstance(m.couplers[0].terms[1][2], float)
    state = bc.compile(m, backend="numpy").assemble(q={"A": 0.2})
    names = [n.rpartition(".")[0] for n in bc.compile(m, backend="numpy").coordinate_names]
    assert state.q[names.index("G")] == pytest.approx(0.2 + 2.0 * 0.2**2)


def test_what_is_not_modelled_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, TREE.replace("<actuator>", '<actuator><general name="arm" joint="wag" dyntype="user"/>'))
    with pytest.warns(ReadWarning, match="'arm': not modelled, makes no force: .* a state of its own"):
        load_mjcf(path)


def test_meshes_that_are_missing(tmp_path: Path) -> None:
    text = """<mujoco><asset><mesh name="m" file="gone.stl"/></asset><worldbody><body name="arm"><joint/>
      {}<geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    m, report = read_mjcf(written(tmp_path, text.format('<inertial mass="1" pos="0 0 1" diaginertia="1 1 1"/>')))
    assert m.bodies[0].inertia.mass == 1.0 and any("gone.stl' was not found" in note.text for note in report.missing)
    path = written(tmp_path, text.format(""))
    with pytest.raises(bc.FileError, match=r"model.xml:2: <geom> in <body 'arm'>.*'arm'.*gone.stl"):
        read_mjcf(path)
    path = written(tmp_path, text.format('<geom size=".1"/>'))
    m, report = read_mjcf(path, missing_meshes="massless")
    assert m.bodies[0].inertia.mass > 0.0 and "massless" in report.warned[0].text


TETRAHEDRON = "v 0 0 0\nv {} 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"


def test_meshes_lie_where_mujoco_looks_for_them(tmp_path: Path) -> None:
    """First where the model says, then beside the included file; never outside the folder."""
    for folder in ("parts/deep", "meshes", "parts/meshes"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "parts" / "a.xml").write_text('<mujocoinclude><include file="deep/b.xml"/></mujocoinclude>')
    (tmp_path / "parts" / "deep" / "b.xml").write_text(
        '<mujocoinclude><asset><mesh name="m" file="../meshes/m.obj"/></asset></mujocoinclude>')
    path = written(tmp_path, """<mujoco><include file="parts/a.xml"/><worldbody><body><joint/>
      <geom type="mesh" mesh="m"/></body></worldbody></mujoco>""")
    with pytest.raises(bc.FileError, match="lies outside the folder"):
        read_mjcf(path)
    (tmp_path / "parts" / "meshes" / "m.obj").write_text(TETRAHEDRON.format(2))
    beside = mujoco.MjModel.from_xml_path(str(path)).body_mass[1]
    assert read_mjcf(path)[0].bodies[0].inertia.mass == beside == pytest.approx(1000.0 / 3.0)
    strip = path.read_text().replace("<include", '<compiler meshdir="meshes" strippath="true"/><include', 1)
    (tmp_path / "meshes" / "m.obj").write_text(TETRAHEDRON.format(1))
    assert read_mjcf(written(tmp_path, strip))[0].bodies[0].inertia.mass == pytest.approx(1000.0 / 6.0)
    secret = tmp_path / "secret"
    secret.mkdir()
    os.symlink(tmp_path / "meshes", secret / "meshes")
    with pytest.raises(bc.FileError, match="lies outside the folder"):
        read_mjcf(written(secret, strip.replace('<include file="parts/a.xml"/>',
                                                '<asset><mesh name="m" file="m.obj"/></asset>')))


def test_includes_stay_in_their_folder(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    written(inner, "<mujoco><body name='b'><joint/><geom size='.1'/></body></mujoco>", "part.xml")
    here = "<mujoco><worldbody><include file='part.xml'/></worldbody></mujoco>"
    assert len(read_mjcf(written(inner, here))[0].bodies) == 1
    written(tmp_path, "<mujoco/>", "secret.xml")
    outside = written(inner, "<mujoco><include file='../secret.xml'/></mujoco>", "outside.xml")
    with pytest.raises(bc.FileError, match=r"outside.xml:1: <include>.*outside the folder"):
        read_mjcf(outside)
    assert read_mjcf(outside, folder=tmp_path)[0].bodies == ()
    with pytest.raises(bc.FileError, match="includes itself"):
        read_mjcf(written(inner, "<mujoco><include file='self.xml'/></mujoco>", "self.xml"))


BODY = "<body><joint/><geom size='.1'/></body>"
HOSTILE = {
    "entities": "<!DOCTYPE a [<!ENTITY b 'c'>]><mujoco>&b;</mujoco>",
    "another root": "<robot name='r'/>",
    "replicas": "<mujoco><worldbody>" + "<replicate count='99'>" * 9 + BODY + "</replicate>" * 9
                + "</worldbody></mujoco>",
    "parts": "<mujoco><worldbody><composite type='cable' count='9999999 9 9'/></worldbody></mujoco>",
    "depth": "<mujoco><worldbody>" + "<body>" * 900 + "</body>" * 900 + "</worldbody></mujoco>",
    "file": "<mujoco><asset><model name='m' file='/etc/passwd'/></asset></mujoco>",
    "number": "<mujoco><worldbody><body pos='nan 0 0'><joint/><geom size='.1'/></body></worldbody></mujoco>",
    "infinite": "<mujoco><worldbody><body pos='inf 0 0'><joint/><geom size='.1'/></body></worldbody></mujoco>",
    "mesh": "<mujoco><asset><mesh name='m' file='/etc/passwd'/></asset><worldbody><body><joint/>"
            "<geom type='mesh' mesh='m'/></body></worldbody></mujoco>",
    "fine mesh": "<mujoco><asset><mesh name='m' builtin='supertorus' params='90000 1 1 1'/></asset></mujoco>",
    "attribute": "<mujoco>\n<worldbody>\n<body nose='1'/></worldbody></mujoco>",
    "weightless": "<mujoco>\n<worldbody>\n<body><joint/></body></worldbody></mujoco>",
    "key": f"<mujoco><worldbody>{BODY}</worldbody><keyframe><key qpos='x'/></keyframe></mujoco>",
    "attached text": "<mujoco><asset><model name='m' file='model.xml'/></asset></mujoco>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_bad_files_are_one_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(bc.FileError, match=r"model\.xml:\d+"):
        read_mjcf(written(tmp_path, HOSTILE[name]))


KEYED = """<mujoco><worldbody><body pos="0 0 1"><freejoint name="f"/><geom size=".1"/>
  <body><joint name="h"/><geom size=".1" pos=".3 0 0"/></body></body></worldbody>
  <keyframe><key name="k" {}/></keyframe></mujoco>"""


@pytest.mark.parametrize("numbers, said", [("qpos='0 0 0 0 0 0 0 0.5'", "is zero, taken as 1, 0, 0, 0"),
                                           ("qvel='1 2 3'", "qvel has 3 of 7 numbers"),
                                           ("qpos='0.1 0.2'", "qpos has 2 of 8 numbers")])
def test_keyframes_are_completed_as_mujoco_does(tmp_path: Path, numbers: str, said: str) -> None:
    path = written(tmp_path, KEYED.format(numbers))
    _, report = read_mjcf(path)
    assert any(said in note.text for note in report.of_kind("changed"))
    model = mujoco.MjModel.from_xml_path(str(path))
    key = report.keyframes["k"]
    np.testing.assert_allclose(key["q"]["f"], (*model.key_qpos[0][3:7], *model.key_qpos[0][:3]))
    np.testing.assert_allclose((*key["u"]["f"][3:], *key["u"]["f"][:3], key["u"]["h"]), model.key_qvel[0])
    assert key["q"]["h"] == model.key_qpos[0][7]


def test_keyframes_that_are_too_long_are_left_out(tmp_path: Path) -> None:
    _, report = read_mjcf(written(tmp_path, KEYED.format("qpos='1 2 3 4 5 6 7 8 9'")))
    assert not report.keyframes
    assert any("left out: qpos have more numbers" in note.text for note in report.of_kind("warned"))


def test_attached_models(tmp_path: Path) -> None:
    """Each in the units of its own file, with its actuators, twice; lines of errors are those of the files."""
    written(tmp_path, """<mujoco model="leg"><compiler angle="degree"/><worldbody>
      <body name="thigh"><joint name="hip" axis="0 1 0" range="-30 40"/><geom size=".1" pos=".2 0 0"/>
        <body name="shin" pos=".4 0 0" euler="0 30 0"><joint name="knee" axis="0 1 0"/><geom size=".05" pos="0 0 .3"/>
        </body></body></worldbody><actuator><position name="p" joint="hip" kp="3"/></actuator></mujoco>""", "leg.xml")
    path = written(tmp_path, """<mujoco><compiler angle="radian"/><asset><model name="leg" file="leg.xml"/></asset>
      <worldbody><body name="trunk"><freejoint name="free"/><geom size=".2"/>
        <frame pos="0 .1 0"><attach model="leg" body="thigh" prefix="left_"/></frame>
        <attach model="leg" body="thigh" prefix="right_"/></body></worldbody></mujoco>""")
    machine, report = read_mjcf(path)
    assert report.limits["left_hip"].upper == pytest.approx(np.radians(40.0))
    assert set(machine.parameters) == {"left_p", "right_p"}
    source = compiled(path, None, "error")
    reader = MjcfReader(source, False, True)
    peer = Peer(mujoco, source.model, reader, bc.compile(reader.mechanism(), backend="numpy"))
    rng = np.random.default_rng(0)
    qpos, qvel = peer.random_state(rng)
    q, u = peer.ours(qpos, qvel)
    theirs = peer.accelerations(qpos, qvel, np.zeros(2))
    np.testing.assert_allclose(peer.theirs(peer.system.forward_dynamics(q, u), u, q), theirs, rtol=1e-9, atol=1e-9)
    wrong = "<mujoco><worldbody>\n<body name='thigh'>\n<joint nose='1'/></body></worldbody></mujoco>"
    written(tmp_path, wrong, "leg.xml")
    with pytest.raises(bc.FileError, match=r"leg\.xml:3: <joint>.*nose"):
        read_mjcf(path)


def test_models_that_attach_each_other(tmp_path: Path) -> None:
    """No loops, and no more elements than may be replicated."""
    def attaching(name: str, times: int) -> str:
        return (f"<mujoco><asset><model name='m' file='{name}'/></asset><worldbody><body name='b'><joint/>"
                "<geom size='1'/>" + "".join(f"<attach model='m' body='b' prefix='{k}_'/>" for k in range(times))
                + "</body></worldbody></mujoco>")

    with pytest.raises(bc.FileError, match="includes itself"):
        read_mjcf(written(tmp_path, attaching("model.xml", 1)))
    for k in range(15):
        written(tmp_path, attaching(f"m{k + 1}.xml", 4), f"m{k}.xml")
    written(tmp_path, f"<mujoco><worldbody>{BODY}</worldbody></mujoco>", "m15.xml")
    with pytest.raises(bc.FileError, match="would add more than 10000 elements"):
        read_mjcf(tmp_path / "m0.xml")


def test_complaints_name_what_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(bc.FileError, match=r"plugins are not read: mass"):
        read_mjcf(written(tmp_path, """<mujoco><extension><plugin plugin="mujoco.sdf.bolt">
          <instance name="bolt"/></plugin></extension>
          <asset><mesh name="bolt"><plugin instance="bolt"/></mesh></asset><worldbody><body><freejoint/>
          <geom type="sdf" mesh="bolt"><plugin instance="bolt"/></geom></body></worldbody></mujoco>"""))


def test_plugins_and_buffers_are_left_out(tmp_path: Path) -> None:
    m, report = read_mjcf(written(tmp_path, f"""<mujoco><size memory="900G"/><extension><plugin plugin="evil"/>
      </extension><asset><texture file="/dev/zero" type="2d" name="t"/></asset>
      <worldbody>{BODY}<body><plugin plugin="evil"/><joint/><geom size=".1"/></body></worldbody></mujoco>"""))
    assert len(m.bodies) == 2
    assert [note.tag for note in report.warned] == ["plugin"]


def test_lengths_of_muscles_are_not_searched(tmp_path: Path) -> None:
    """MuJoCo would simulate for as long as the file says, before anything is known of it."""
    path = written(tmp_path, """<mujoco><compiler><lengthrange interval="5" inttotal="10"/></compiler><worldbody><body>
      <joint name="j" limited="true" range="-60 60"/><geom size=".1" pos=".1 0 0"/></body></worldbody>
      <actuator><muscle joint="j"/></actuator></mujoco>""")
    assert not compiled(path, None, "error").model.actuator_lengthrange.any()


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(bc.FileError, match=r"pip install 'bellcrank\[mujoco\]'"):
        read_mjcf(written(tmp_path, TREE))


def mutated(text: str, rng: random.Random) -> str:
    """A file with a few mistakes in it: numbers, tags, attributes and bytes."""
    for _ in range(rng.randint(1, 4)):
        values, tags = list(re.finditer(r'"([^"]*)"', text)), list(re.finditer(r"<[^>]*>", text))
        if not values or not tags:
            return text
        one, other, tag = rng.choice(values), rng.choice(values), rng.choice(tags)
        odd = rng.choice(["nan", "inf", "1e308", "-1", "0", "1e-320", "abc", "", "9" * 12, "1 2 3 4 5 6 7"])
        match rng.randrange(5):
            case 0:
                text = text[:one.start(1)] + odd + text[one.end(1):]
            case 1:
                text = text[:one.start(1)] + other.group(1) + text[one.end(1):]
            case 2:
                text = text[:tag.start()] + text[tag.end():]
            case 3:
                text = text[:tag.end()] + rng.choice(tags).group() + text[tag.end():]
            case _:
                at = rng.randrange(len(text))
                text = text[:at] + chr(rng.randrange(32, 255)) + text[at + 1:]
    return text


FUZZ = """
import random, sys
sys.path[:0] = {paths!r}
import bellcrank as bc
from test_mjcf import LOOPS, TREE, mutated
from test_mjcf_forces import PUSHED
from bellcrank.io.mjcf import read_mjcf
good = bad = 0
weld = LOOPS.format("<weld body1='coupler' body2='rocker'/><joint joint1='G' joint2='A'/>")
for seed in range({count}):
    rng = random.Random(seed)
    with open({file!r}, "w", encoding="utf-8") as file:
        file.write(mutated(rng.choice([TREE, weld, PUSHED]), rng))
    try:
        str(read_mjcf({file!r}, limits=True)[1])
        good += 1
    except bc.FileError:
        bad += 1
print(good, bad)
"""


def test_files_with_mistakes_never_end_the_process(tmp_path: Path) -> None:
    paths = [str(Path(__file__).parent)]
    code = textwrap.dedent(FUZZ).format(paths=paths, count=600, file=str(tmp_path / "fuzz.xml"))
    done = children.run_code(code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    good, bad = (int(x) for x in done.stdout.split()[-2:])
    assert good > 10 and bad > 100
    assert os.listdir(tmp_path) == ["fuzz.xml"]  # no logs beside it


LINKED = """<mujoco><worldbody>
  <body name="a" pos="0 0 1"><joint axis="0 1 0"/><geom type="box" size=".1 .02 .02" pos=".1 0 0"/>
    <body name="b" pos=".2 0 0"><joint type="ball"/><geom type="box" size=".1 .02 .02" pos=".1 0 0"/></body></body>
  <body name="c" pos=".4 0 1"><freejoint/><geom type="box" size=".05 .02 .02"/></body>
  </worldbody><equality>{}</equality></mujoco>"""


def test_connects_of_swapped_bodies_make_one_hinge(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    path.write_text(LINKED.format('<connect name="p" body1="b" body2="c" anchor=".2 0 0"/>'
                                  '<connect name="r" body1="c" body2="b" anchor="0 .1 0"/>'))
    machine, report = read_mjcf(path)
    assert [type(j.joint).__name__ for j in machine.joints if j.name in ("p", "r")] == ["Revolute"]
    assert any("a hinge through the two points" in note.text for note in report.changed)
    system = bc.compile(machine)
    assert system.dof == 10 - 5 and np.abs(system.loop_error(system.neutral())).max(initial=0.0) < 1e-12


def test_a_weld_without_torquescale_holds_points_only(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    path.write_text(LINKED.format('<weld name="w" body1="b" body2="c" anchor="0 .1 0" torquescale="0"/>'))
    machine, report = read_mjcf(path)
    assert type(machine.joint("w").joint).__name__ == "Spherical"
    assert any("torquescale" in note.text for note in report.changed)
    system = bc.compile(machine)
    assert system.dof == 10 - 3 and np.abs(system.loop_error(system.neutral())).max(initial=0.0) < 1e-12
