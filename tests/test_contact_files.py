"""Filters, friction and terrain of files, as `add_contacts` respects them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.io.common.model_meshes import heights_of_image

MJCF = """<mujoco><asset><hfield name="hills" nrow="3" ncol="4" size="2 1 0.5 0.1"
  elevation="0 0 0 0  0 1 0.5 0  0 0 0 1"/></asset>
<worldbody><geom name="floor" type="plane" size="1 1 1" friction="0.9" pos="0 0 -5"/>
<geom name="land" type="hfield" hfield="hills"/>
<body name="a" pos="0 0 1"><freejoint/><geom name="ga" size="0.1" friction="0.3" mass="1"/></body>
<body name="b" pos="1 0 1"><freejoint/><geom name="gb" size="0.1" mass="1" contype="2" conaffinity="0"/></body>
<body name="c" pos="2 0 1"><freejoint/><geom name="gc" size="0.1" mass="1"/>
  <body name="d" pos="0 0 1"><joint/><geom name="gd" size="0.1" mass="1"/></body></body></worldbody>
<contact><exclude body1="a" body2="c"/><pair geom1="gb" geom2="gc" friction="0.25 0.25 0 0 0"/></contact></mujoco>"""


def test_mjcf(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    path = tmp_path / "model.xml"
    path.write_text(MJCF)
    m = bc.load(path)
    made = {c.name.replace(" sphere", ""): c.material.friction for c in m.add_contacts("all", "all")}
    floor, land = "ground plane", "ground heightfield"  # the names in the file are those of what is seen
    assert made == pytest.approx({f"{floor}, a": 0.9, f"{floor}, c": 1.0, f"{floor}, d": 1.0, f"{land}, a": 1.0,
                                  f"{land}, c": 1.0, f"{land}, d": 1.0, "a, d": 1.0, "b, c": 0.25})
    again = bc.load(path)
    plane = again.add_contacts(["a"], bc.Plane(), friction=0.1)[0]
    assert plane.material.friction == 0.1
    assert again.add_contacts(["a"], ["ground plane"])[0].material.friction == pytest.approx(0.9)
    terrain = next(s.shape for s in m.shapes if isinstance(s.shape, bc.HeightField))
    assert terrain.height(-2 / 3, 0.0) == pytest.approx(0.5)
    assert terrain.height(2.0, -1.0) == pytest.approx(0.5) and terrain.height(2.0, 1.0) == 0.0  # the first row is far
    bc.save(m, tmp_path / "model.yaml")
    back = bc.load(tmp_path / "model.yaml")
    assert back.contact_rules == m.contact_rules and back.larger_friction
    assert [(s.friction, s.groups) for s in back.shapes] == [(s.friction, s.groups) for s in m.shapes]


def test_pairs_of_geoms_that_collide_with_nothing_else(tmp_path: Path) -> None:
    """Feet of many robots have contype and conaffinity 0 and touch the floor by pairs alone; friction is that of the
    pair, of its class, or the larger one of the geoms."""
    pytest.importorskip("mujoco")
    path = tmp_path / "model.xml"
    path.write_text("""<mujoco><default><default class="foot"><geom contype="0" conaffinity="0" size="0.1" mass="1"
      friction="0.7"/><pair friction="0.55"/></default></default><worldbody>
      <geom name="floor" type="plane" size="0 0 1" contype="0" conaffinity="0" friction="0.4"/>
      <body name="a" pos="0 0 1"><freejoint/><geom name="ga" class="foot"/><geom name="other" class="foot"/></body>
      <body name="b" pos="1 0 1"><freejoint/><geom name="gb" class="foot"/></body></worldbody>
      <contact><pair geom1="ga" geom2="floor"/><pair class="foot" geom1="gb" geom2="floor"/>
      <pair geom1="ga" geom2="gb" friction="0.25 0.25 0 0 0"/></contact></mujoco>""")
    m = bc.load(path)
    names = ["ground", *(b.name for b in m.bodies)]
    made = {f"{names[c.first]} {names[c.second]}": c.material.friction for c in m.add_contacts("all", "all")}
    assert made == pytest.approx({"ground a": 0.7, "ground b": 0.55, "a b": 0.25})


def test_joints_of_several_axes_connect_neighbors(tmp_path: Path) -> None:
    """A hip with two hinges has a body without mass between them; as in MuJoCo, thigh and pelvis do not touch. The
    shin and the pelvis do."""
    pytest.importorskip("mujoco")
    path = tmp_path / "model.xml"
    path.write_text("""<mujoco><worldbody><body name="pelvis"><freejoint/><geom size="0.1" mass="1"/>
      <body name="thigh"><joint axis="1 0 0"/><joint axis="0 1 0"/><joint axis="0 0 1"/>
      <geom type="capsule" size="0.05 0.1" mass="1"/>
      <body name="shin" pos="0 0 -0.3"><joint/><geom size="0.05" mass="1"/></body></body></body></worldbody>
      </mujoco>""")
    m = bc.load(path)
    made, = m.add_contacts("all", "all")
    assert {m.bodies[made.first - 1].name, m.bodies[made.second - 1].name} == {"pelvis", "shin"}
    again = bc.load(path)
    assert len(again.add_contacts("all", "all", neighbors=True)) == 3


@pytest.mark.parametrize("kind", ["mesh", "box", "capsule", "sphere", "cylinder", "ellipsoid"])
@pytest.mark.parametrize("inertia", ["", "<inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>"], ids=["own", "given"])
def test_simple_shapes_fitted_to_meshes(tmp_path: Path, kind: str, inertia: str) -> None:
    """A geom of another type with a mesh is the shape that MuJoCo fits to it, where that lies; a mesh of vertices alone
    is their hull."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "model.xml"
    path.write_text(f"""<mujoco><asset><mesh name="m" vertex="-0.1 -0.05 -0.2 0.3 -0.05 -0.2 -0.1 0.05 -0.2
      -0.1 -0.05 0.02 0.3 0.05 0.02"/></asset><worldbody><geom name="floor" type="plane" size="0 0 1"/>
      <body name="b" pos="0.2 0.1 0.3" euler="20 10 0"><freejoint/>{inertia}
      <geom name="g" type="{kind}" mesh="m" pos="0.1 0 0" euler="10 20 30"/></body></worldbody></mujoco>""")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    m = bc.load(path)
    made, = m.add_contacts()
    system = bc.compile(m, backend="numpy")
    depth = bc.analyze.contacts(system, system.neutral(), np.zeros(6))[made.name].depth.max()
    assert -depth == pytest.approx(mujoco.mj_geomDistance(model, data, 0, 1, 9.0, None), abs=1e-6)


def test_terrain_in_files(tmp_path: Path) -> None:
    """MuJoCo's own format and images: the first row of the one is near, that of an image far; heights fill the size."""
    pytest.importorskip("mujoco")
    from matplotlib.image import imsave

    (tmp_path / "land").mkdir()
    heights = np.array([[0, 0, 0, 2.0], [0, 1, 0.5, 0], [0, 0, 0, 0]], dtype="<f4")
    good = np.array([3, 4], dtype="<i4").tobytes() + heights.tobytes()
    (tmp_path / "land" / "own.bin").write_bytes(good)
    imsave(tmp_path / "land" / "image.png", np.repeat(heights[::-1, :, None] / 2.0, 3, axis=2))
    text = ("<mujoco><compiler meshdir='land'/><asset><hfield name='h' file='{}' size='2 1 0.5 0.1'/></asset>"
            "<worldbody><geom type='hfield' hfield='h'/><body><freejoint/><geom size='0.1'/></body>"
            "</worldbody></mujoco>")
    path = tmp_path / "model.xml"
    for name, exact in (("own.bin", 1e-6), ("image.png", 0.5 / 255)):
        path.write_text(text.format(name))
        m = bc.load(path)
        terrain = next(s.shape for s in m.shapes if isinstance(s.shape, bc.HeightField) and s.role == "collision")
        assert terrain.height(2.0, -1.0) == pytest.approx(0.5, abs=exact) and terrain.height(2.0, 1.0) == 0.0
        assert terrain.height(-2 / 3, 0.0) == pytest.approx(0.25, abs=exact) and len(m.add_contacts()) == 1
    bad = {"none.bin": None, "short.bin": good[:-4], "tiny.bin": b"12", "nan.bin": good[:-4] + b"\xff" * 4,
           "huge.bin": np.array([1 << 15, 1 << 15], dtype="<i4").tobytes(), "text.png": b"not an image",
           "../../out.bin": None}
    words = {"none.bin": "No such file", "short.bin": "take 56 bytes, but it has 52", "tiny.bin": "too short",
             "nan.bin": "not finite", "huge.bin": "at most", "text.png": "no PNG",
             "../../out.bin": "outside the folder"}
    for name, content in bad.items():
        if content is not None:
            (tmp_path / "land" / name).write_bytes(content)
        path.write_text(text.format(name))
        m, report = bc.io.read_mjcf(path)
        assert not any(isinstance(s.shape, bc.HeightField) for s in m.shapes)
        assert any(n.tag == "hfield" and words[name] in n.text for n in report.notes), (name, report.notes)


def test_sdf(tmp_path: Path) -> None:
    from matplotlib.image import imsave

    image = np.zeros((5, 9, 3))
    image[0, 8] = 1.0  # the corner at the largest x and y
    imsave(tmp_path / "land.png", image)
    surface = ("<surface><friction><ode><mu>{}</mu></ode></friction><contact><collide_bitmask>{}</collide_bitmask>"
               "</contact></surface>")
    shape = "<geometry><sphere><radius>0.1</radius></sphere></geometry>"
    links = "".join(f"<model name='{n}'><pose>{i} 0 3 0 0 0</pose><link name='{n}'><collision name='c{n}'>{shape}"
                    f"{surface.format(mu, bits)}</collision></link></model>"
                    for i, (n, mu, bits) in enumerate((("a", 0.4, 1), ("b", 0.7, "0x02"), ("c", 0.5, 3))))
    land = ("<model name='land'><static>1</static><link name='l'><collision name='ground'><geometry><heightmap>"
            "<uri>land.png</uri><size>4 2 0.5</size><pos>0 0 1</pos></heightmap></geometry></collision></link></model>")
    path = tmp_path / "world.sdf"
    path.write_text(f"<sdf version='1.9'><world name='w'>{links}{land}</world></sdf>")
    m = bc.load(path)
    made = {c.name: c.material.friction for c in m.add_contacts()}
    assert made == pytest.approx({"ca, cc": 0.4, "cb, cc": 0.5, "ca, ground": 0.4, "cb, ground": 0.7,
                                  "cc, ground": 0.5})
    field = next(s for s in m.shapes if s.name == "ground")
    assert isinstance(field.shape, bc.HeightField) and field.pose.position[2] == 1.0
    assert field.shape.height(2.0, 1.0) == pytest.approx(0.5) and field.shape.height(-2.0, 1.0) == 0.0


def test_gigantic_images_are_refused_by_their_header(tmp_path: Path) -> None:
    """A PNG of some bytes may promise gigabytes of pixels."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    for wide, said in ((10_000, "10000 x 10000 pixels, more than 20 million"), (20_000, "pixels"),
                       (4_000, "cannot be read")):
        head = chunk(b"IHDR", struct.pack(">IIBBBBB", wide, wide, 8, 0, 0, 0, 0))
        (tmp_path / "land.png").write_bytes(
            b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(9))) + chunk(b"IEND", b""))
        with pytest.raises(bc.ModelError, match=said):
            heights_of_image(str(tmp_path / "land.png"), (4.0, 4.0, 1.0))


@pytest.mark.parametrize(("model", "first", "third", "pairs"), [
    ("", "", "", set()), ("false", "true", "", {"ab", "ac"}), ("true", "", "", {"ab", "ac", "bc"}),
    ("true", "false", "false", {"ab", "bc"})])
def test_links_of_one_sdf_model(tmp_path: Path, model: str, first: str, third: str, pairs: set[str]) -> None:
    """They touch if one of two says so, for itself or by its model; links of other models always do."""
    def says(word: str) -> str:
        return f"<self_collide>{word}</self_collide>" if word else ""

    def link(name: str, word: str = "") -> str:
        return (f"<link name='{name}'>{says(word)}<collision name='{name} ball'><geometry><sphere><radius>0.1</radius>"
                "</sphere></geometry></collision></link>")

    path = tmp_path / "model.sdf"
    path.write_text(f"<sdf version='1.9'><world name='w'><model name='one'>{says(model)}{link('a', first)}{link('b')}"
                    f"{link('c', third)}</model><model name='two'>{link('d')}</model></world></sdf>")
    m = bc.load(path)
    m.add_shape("ground", bc.Plane(), role="collision", name="floor")
    wanted = {*pairs, "ad", "bd", "cd"}

    def touching(machine: bc.Mechanism) -> set[str]:
        names = [c.name.replace(" ball", "").split(", ") for c in machine.add_contacts()]
        assert sum("floor" in two for two in names) == 4
        return {"".join(sorted(two)) for two in names if "floor" not in two}

    assert touching(m.copy()) == wanted
    notes = [n for n in bc.io.read_sdf(path)[1].notes if n.tag == "self_collide"]
    assert all(n.kind == "kept" for n in notes) and len(notes) == sum(map(bool, (model, first, third)))


@pytest.mark.parametrize("word", ["false", "true"])
def test_self_contact_is_written(tmp_path: Path, word: str) -> None:
    ball = "<collision name='{0} ball'><geometry><sphere><radius>0.1</radius></sphere></geometry></collision>"
    (tmp_path / "model.sdf").write_text("<sdf version='1.9'><model name='one'><self_collide>" + word + "</self_collide>"
                                        + "".join(f"<link name='{n}'>{ball.format(n)}</link>" for n in "ab")
                                        + "</model></sdf>")
    m = bc.load(tmp_path / "model.sdf")
    m.add_shape("ground", bc.Sphere(1.0), role="collision", name="floor")
    bc.save(m, tmp_path / "again.sdf")
    made = [{len(x.add_contacts())} for x in (m, bc.load(tmp_path / "again.sdf"))]
    assert made == [{3 if word == "true" else 2}] * 2  # both touch the ground


def test_srdf(tmp_path: Path) -> None:
    ball = ("<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>"
            "<collision><geometry><sphere radius='0.1'/></geometry></collision>")
    joints = "".join(f"<joint name='j{a}' type='continuous'><parent link='{p}'/><child link='{a}'/></joint>"
                     for a, p in (("b", "a"), ("c", "b"), ("d", "c")))
    (tmp_path / "r.urdf").write_text(f"<robot name='r'>{''.join(f'<link name={n!r}>{ball}</link>' for n in 'abcd')}"
                                     f"{joints}</robot>")
    (tmp_path / "r.srdf").write_text("<robot name='r'><disable_collisions link1='d' link2='b' reason='Never'/>"
                                     "<disable_collisions link1='a' link2='nobody'/></robot>")
    plain = bc.load(tmp_path / "r.urdf").add_contacts()
    fewer = bc.load(tmp_path / "r.urdf", srdf=tmp_path / "r.srdf").add_contacts()
    assert len(plain) == 3 and len(fewer) == 2 and not any("b" in c.name and "d" in c.name for c in fewer)


def test_rules_and_groups() -> None:
    m = bc.Mechanism("three")
    for k, name in enumerate("abc"):
        m.add_joint(f"j{name}", bc.Free(), m.ground, m.add_body(name, bc.Inertia(1.0, (0, 0, 0), (1, 1, 1))))
        m.add_shape(name, bc.Sphere(0.1), role="collision", groups=(1 << k, 0b111 ^ (1 << k)), friction=0.1 * (k + 1))
    d = m.add_body("d", bc.Inertia(1.0, (0, 0, 0), (1, 1, 1)))
    m.add_joint("weld", bc.Weld(), "a", d)
    m.add_shape(d, bc.Sphere(0.1), role="collision")
    m.set_contact_rule("a", "b", touch=False)
    assert {c.name for c in m.add_contacts()} == {"a sphere, c sphere", "b sphere, c sphere", "b sphere, d sphere",
                                                  "c sphere, d sphere"}  # a and d are one
    assert {c.name: c.material.friction for c in m.contacts}["b sphere, c sphere"] == pytest.approx(0.2)
    other = bc.Mechanism("none")
    with pytest.raises(bc.ModelError, match="contact rule of 'x' and 'y': no body or shape called 'x'"):
        other.set_contact_rule("x", "y")
    with pytest.raises(bc.ModelError, match="groups are two whole numbers"):
        other.add_shape("ground", bc.Sphere(1.0), groups=(1,))
