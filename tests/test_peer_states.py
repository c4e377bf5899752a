"""Free joints are measured in the world, and states of files go to MuJoCo and Pinocchio and back: poses and velocities
of all bodies there are ours, for the published models and for the built-in machines written to files."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc
import models
from bellcrank import examples
from bellcrank.io.common.peer_states import pinocchio_order
from bellcrank.mechanism.joints import quaternion

Floats = npt.NDArray[np.float64]
try:
    import mujoco
    import pinocchio
except ImportError:
    mujoco = pinocchio = None
needs_peers = pytest.mark.skipif(mujoco is None or pinocchio is None, reason="needs the extra peers")
BODIES = 8  #: of large machines, how many are compared


# -- free joints in the world ---------------------------------------------------------------------
POSE = bc.Pose.rpy((0.1, -0.2, 0.445), 0.3, 0.0, 0.4)
BALL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
FLYING = {
    "model.xml": """<mujoco><compiler angle="radian"/><worldbody><body name="trunk" pos="0.1 -0.2 0.445"
        quat="{}"><freejoint name="base"/><geom size=".1"/></body></worldbody></mujoco>""",
    "model.urdf": f"""<robot name="r"><link name="w"/><link name="v"/><link name="trunk">{BALL}</link>
        <joint name="fix" type="fixed"><parent link="w"/><child link="v"/><origin xyz="0 0 0.4"/></joint>
        <joint name="base" type="floating"><parent link="v"/><child link="trunk"/>
        <origin xyz="0.1 -0.2 0.045" rpy="0.3 0 0.4"/></joint></robot>""",
    "model.sdf": """<sdf version="1.9"><model name="m"><link name="trunk"><pose>0.1 -0.2 0.445 0.3 0 0.4</pose></link>
        </model></sdf>"""}


@cache
def flying() -> bc.Mechanism:
    m = bc.Mechanism("flying")
    m.add_joint("base", bc.Free(POSE), m.ground, m.add_body("trunk", bc.Inertia.box(2.0, (0.3, 0.2, 0.1))))
    m.add_joint("hip", bc.Revolute("y"), "trunk", m.add_body("leg", bc.Inertia.sphere(0.5, 0.1, (0, 0, -0.3))),
                bc.Pose((0.1, 0.0, 0.0)))
    return m


@pytest.mark.parametrize("name", FLYING)
def test_readers_measure_free_joints_in_the_world(tmp_path: Path, name: str) -> None:
    if name.endswith(".xml"):
        pytest.importorskip("mujoco")
    text = " ".join(map(repr, quaternion.from_matrix(POSE.rotation).tolist()))
    (tmp_path / name).write_text(FLYING[name].format(text) if name.endswith(".xml") else FLYING[name])
    machine = bc.load(tmp_path / name)
    base = next(r.name for r in machine.joints if isinstance(r.joint, bc.Free))
    system = bc.compile(machine, backend="numpy")
    for state, position in ((system.assemble(), POSE.position), (system.assemble({f"{base}.z": 0.3}),
                                                                 (0.1, -0.2, 0.3))):
        pose = system.pose(state, "trunk")
        np.testing.assert_allclose(pose.position, position, rtol=0.0, atol=1e-15)
        np.testing.assert_allclose(state[base][4:], position, rtol=0.0, atol=1e-15)
        np.testing.assert_allclose(pose.rotation, POSE.rotation, rtol=0.0, atol=1e-15)
    place = system.assemble({base: (0.5, 0.5, -0.5, 0.5, 1.0, 2.0, 3.0)})
    np.testing.assert_allclose(system.pose(place, "trunk").position, (1.0, 2.0, 3.0), atol=1e-15)


def test_floating_joints_of_links_that_move_are_measured_from_them(tmp_path: Path) -> None:
    text = FLYING["model.urdf"].replace('"fixed"', '"continuous"').replace('<link name="v"/>',
                                                                        f'<link name="v">{BALL}</link>')
    (tmp_path / "x.urdf").write_text(text)
    joint = bc.load(tmp_path / "x.urdf").joint("base")
    assert joint.joint.start == bc.Pose() and joint.parent_pose.position == (0.1, -0.2, 0.045)


@pytest.mark.parametrize("ending", ["xml", "urdf", "sdf", "yaml"])
def test_files_keep_where_free_bodies_are_drawn(tmp_path: Path, ending: str) -> None:
    if ending == "xml":
        pytest.importorskip("mujoco")
    bc.save(flying(), tmp_path / f"x.{ending}")
    read = bc.load(tmp_path / f"x.{ending}")
    one, two = (bc.compile(m, backend="numpy") for m in (flying(), read))
    (joint,) = (r for r in read.joints if isinstance(r.joint, bc.Free))
    assert joint.parent_pose == bc.Pose()
    np.testing.assert_allclose(joint.joint.neutral(), one.neutral()[:7], rtol=0.0, atol=1e-15)
    q, u = one.random_state(np.random.default_rng(0))
    for body in ("trunk", "leg"):
        np.testing.assert_allclose(two.pose(q, body).position, one.pose(q, body).position, atol=1e-14)
    np.testing.assert_allclose(two.forward_dynamics(q, u), one.forward_dynamics(q, u), atol=1e-12)


def test_where_a_free_body_is_drawn() -> None:
    assert repr(bc.Free()) == "Free()" and "0.445" in repr(bc.Free(POSE))
    m = bc.Mechanism()
    height = m.parameter("h", 1.0)
    with pytest.raises(bc.ModelError, match="start must be numbers"):
        bc.Free(bc.Pose((0.0, 0.0, height)))
    bc.check_joint(bc.Free(POSE))
    other = flying().copy()
    moved = tuple(replace(r, joint=bc.Free()) if r.name == "base" else r for r in other.joints)
    other.replace_parts(bodies=other.bodies, joints=moved, carriers=())
    assert bc.io.same_mechanism(flying(), flying().copy()) and not bc.io.same_mechanism(flying(), other)


@needs_peers
def test_loops_on_a_free_base_close_where_they_are_drawn(tmp_path: Path) -> None:
    """A four-bar on a base that is drawn far from the origin, turned, is assembled as one drawn at the origin."""
    bc.save(bc.load("four_bar"), tmp_path / "x.xml")
    text = (tmp_path / "x.xml").read_text().replace("</worldbody>", "</body></worldbody>")
    states = []
    for place in ('pos="7 -8 9" quat="0.6 0 0.8 0"', ""):
        (tmp_path / "y.xml").write_text(text.replace(
            "<worldbody>", f'<worldbody><body name="base" {place}><freejoint name="float"/><inertial pos="0 0 0" '
                           'mass="5" diaginertia="1 1 1"/>'))
        states.append(bc.compile(bc.load(tmp_path / "y.xml"), backend="numpy").assemble())
    np.testing.assert_allclose(states[0]["float"], (0.6, 0.0, 0.8, 0.0, 7.0, -8.0, 9.0), rtol=0.0, atol=1e-12)
    assert len(states[0].q) > 10
    np.testing.assert_allclose(states[0].q[7:], states[1].q[7:], rtol=0.0, atol=1e-9)


# -- states of MuJoCo -----------------------------------------------------------------------------
def same_turns(system: bc.System, one: bc.State, two: bc.State) -> float:
    """The largest difference of two states, but for whole turns of angles and states of actuators."""
    apart = np.abs(system.difference(one.q, two.q))
    apart = np.minimum(apart, np.abs(apart - 2.0 * np.pi))
    rest = [name.endswith((".value", ".integral")) for name in system.speed_names]
    return float(np.where(rest, 0.0, np.maximum(apart, np.abs(one.u - two.u))).max(initial=0.0))


def some_bodies(names: list[str]) -> list[tuple[int, str]]:
    numbered = list(enumerate(names))
    return numbered[::max(1, len(numbered) // BODIES)]


def compare_with_mujoco(system: bc.System, report: bc.io.ReadReport, model: Any, names: list[str]) -> None:
    """Random states there and back; those of machines with loops are closed."""
    rng, data = np.random.default_rng(0), mujoco.MjData(model)
    if system.model.tree.looped:
        state = system.random_state(rng)
    else:
        qpos, qvel = np.array(model.qpos0), rng.normal(size=model.nv)
        mujoco.mj_integratePos(model, qpos, rng.normal(size=model.nv), 1.0)
        state = report.from_mujoco(system, qpos, qvel)
        for mine, wanted in zip(report.to_mujoco(state), (qpos, qvel), strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=0.0, atol=1e-13)
    data.qpos, data.qvel = report.to_mujoco(state)
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    assert same_turns(system, report.from_mujoco(system, data.qpos, data.qvel), state) < 1e-12
    size, speed = 1.0 + np.abs(state.q).max(), np.zeros(6)
    for i, body in some_bodies(names):
        pose = system.pose(state, body)
        index = i + 1
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, index, speed, 0)
        np.testing.assert_allclose(pose.position, data.xpos[index], rtol=0.0, atol=1e-13 * size, err_msg=body)
        np.testing.assert_allclose(pose.rotation.ravel(), data.xmat[index], rtol=0.0, atol=1e-13, err_msg=body)
        np.testing.assert_allclose(system.velocity(state, body), speed, rtol=0.0, err_msg=body,
                                   atol=1e-13 * size * (1.0 + np.abs(state.u).max()))


def _mjcf() -> list[Path]:
    here = [*sorted(models.COPIES.rglob("*.xml"))]
    if mujoco is None:
        return here
    packages = ("genesis-world", "playground", "mujoco-mjx", "newton", "pybullet")
    others = [path for package in packages for path in models.every(package, ".xml")
              if "<mujocoinclude" not in path.read_text(errors="replace")]
    return [*here, Path(mujoco.__file__).parent / "testdata" / "model.xml", *others]


@needs_peers
@pytest.mark.everyday(40)
@pytest.mark.parametrize("path", _mjcf(), ids=lambda p: f"{p.parent.parent.name}-{p.name}")
def test_published_mjcf_models(path: Path) -> None:
    from bellcrank.io.mjcf.read import MjcfReader
    from bellcrank.io.mjcf.source import compiled

    if not path.exists():
        pytest.skip("not here")
    try:
        source = compiled(path, None, "massless")
        reader = MjcfReader(source, False, True)
        system = bc.compile(reader.mechanism(), backend="numpy")
    except bc.FileError as error:
        pytest.skip(f"MuJoCo cannot compile it here: {error}")
    except bc.ModelError as error:
        pytest.skip(f"nothing to compare: {error}")
    compare_with_mujoco(system, reader.report(), source.model, reader.bodies[1:])


def saved(name: str, file: Path, **options: Any) -> tuple[bc.Mechanism, bc.io.ReadReport]:
    """A built-in machine written to a file and read again; the test is skipped if the format cannot hold it."""
    loops = ({"split": True}, {"split": True, "loops": "loop_joint"}) if options else ()
    reason = ""
    for more in ({}, *loops):
        try:
            bc.save(examples.load(name), file, **options, **more)
            return bc.read(file)
        except bc.ModelError as error:
            reason = str(error)
    pytest.skip(reason)


@needs_peers
@pytest.mark.everyday(12)
@pytest.mark.parametrize("name", examples.names())
def test_examples_as_mjcf(tmp_path: Path, name: str) -> None:
    machine, report = saved(name, tmp_path / "x.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "x.xml"))
    compare_with_mujoco(bc.compile(machine, backend="numpy"), report, model,
                        [model.body(i).name for i in range(1, model.nbody)])


ALL = """<mujoco><compiler angle="degree"/><worldbody>
  <body name="b" pos="1 2 3" euler="0 20 30"><freejoint name="f"/><geom size=".1"/>
    <body name="c" pos=".1 0 0"><joint name="h" axis="0 1 1" ref="20" pos="0 0 .2"/>
      <joint name="s" type="slide" axis="0 1 0" ref="0.2" pos="0 .1 0"/><geom size=".1" pos=".1 0 0"/>
      <body name="e"><geom size=".1"/><joint type="ball" name="round" pos=".1 .2 0"/></body></body>
    <body name="a"><joint name="a"/><geom size=".1" pos=".1 0 0"/></body></body>
  <body name="crank"><joint name="A" axis="0 0 1" ref="-30"/><geom size="0.1" pos="0.2 0 0"/>
    <body name="coupler" pos="0.3 0 0"><joint name="B" axis="0 0 1" ref="15"/>
      <geom size="0.1" pos="0.2 0 0"/></body></body>
  <body name="rocker" pos="0.7 0 0"><joint name="D" axis="0 0 1"/><geom size="0.1" pos="0.2 0 0"/>
    <body name="tip" pos="0.6 0 0"><geom size="0.05"/></body></body>
  </worldbody><equality>{}</equality>
  <actuator><general joint="A" dyntype="filter" dynprm="1"/></actuator></mujoco>"""
CONNECT = '<connect name="C" body1="tip" body2="coupler" anchor="0 0 0"/>'


@needs_peers
@pytest.mark.parametrize("loop", ["", CONNECT, f'{CONNECT}<joint joint1="h" joint2="s" polycoef="0 1 0 0 0"/>'],
                         ids=["tree", "loop", "coupled"])
def test_every_joint_of_mjcf(tmp_path: Path, loop: str) -> None:
    (tmp_path / "x.xml").write_text(ALL.format(loop))
    machine, report = bc.read(tmp_path / "x.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "x.xml"))
    system = bc.compile(machine, backend="numpy")
    assert system.model.tree.looped == bool(loop)
    compare_with_mujoco(system, report, model, [model.body(i).name for i in range(1, model.nbody)])
    if not loop:
        np.testing.assert_allclose(report.to_mujoco(system.assemble())[0], model.qpos0, rtol=0.0, atol=1e-15)


JOINTS = """<robot name="all">{links}
  <joint name="z" type="revolute"><parent link="base"/><child link="b"/><axis xyz="0 0.6 0.8"/>
    <limit lower="-3" upper="3" effort="1" velocity="1"/><origin xyz="0.1 0.2 0.3" rpy="0.3 0 0.4"/></joint>
  <joint name="y" type="prismatic"><parent link="base"/><child link="c"/><axis xyz="0.6 0 0.8"/>
    <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
  <joint name="fixed" type="fixed"><parent link="b"/><child link="d"/><origin xyz="0 0.2 0.3" rpy="0 0.3 0.4"/></joint>
  <joint name="x" type="continuous"><parent link="d"/><child link="e"/><axis xyz="0 1 0"/></joint>
  <joint name="plane" type="planar"><parent link="c"/><child link="f"/><axis xyz="{normal}"/>
    <origin xyz="0.3 0.2 0.3" rpy="0.3 -0.2 0.4"/></joint>{more}
</robot>"""
SPHERICAL = '<joint name="round" type="spherical"><parent link="e"/><child link="g"/><origin xyz="0.1 0 0"/></joint>'
FLOATING = """<joint name="fly" type="floating"><parent link="{}"/><child link="g"/><origin xyz="1 0 2" rpy="1 0 .3"/>
  </joint>"""


def urdf(folder: Path, root: str = "base", normal: str = "0 0 1", more: str = SPHERICAL) -> Path:
    names = sorted({root, "base", "b", "c", "d", "e", "f", *(("g",) if more else ())})
    links = "".join(f'<link name="{n}">{BALL}</link>' for n in names)
    file = folder / "all.urdf"
    file.write_text(JOINTS.format(links=links, normal=normal, more=more))
    return file


@needs_peers
@pytest.mark.parametrize("normal", ["0 0 1", "0 0 -1", "1 0 0", "0.6 0 -0.8"])
def test_urdf_files_in_mujoco(tmp_path: Path, normal: str) -> None:
    machine, report = bc.read(urdf(tmp_path, normal=normal))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "all.urdf"))
    names = [model.body(i).name for i in range(1, model.nbody)]
    assert len(names) >= 5
    compare_with_mujoco(bc.compile(machine, backend="numpy"), report, model, names)
    system = bc.compile(bc.load(tmp_path / "all.urdf", floating_base=True), backend="numpy")
    _, floating = bc.read(tmp_path / "all.urdf", floating_base=True)
    qpos, qvel = floating.to_mujoco(system.assemble({"root_joint.z": 2.0, "y": 0.4}, {"root_joint.wx": 3.0}))
    assert qpos[2] == 2.0 and qpos[7 + 6] == 0.4 and qvel[3] == 3.0


@needs_peers
def test_urdf_files_that_float_in_mujoco(tmp_path: Path) -> None:
    (tmp_path / "x.urdf").write_text(FLYING["model.urdf"])
    machine, report = bc.read(tmp_path / "x.urdf")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "x.urdf"))
    system = bc.compile(machine, backend="numpy")
    np.testing.assert_allclose(report.to_mujoco(system.assemble())[0], model.qpos0, rtol=0.0, atol=1e-15)
    compare_with_mujoco(system, report, model, ["trunk"])


# -- states of Pinocchio --------------------------------------------------------------------------
def compare_with_pinocchio(system: bc.System, report: bc.io.ReadReport, file: Path, floating: bool) -> None:
    model = pinocchio.buildModelFromUrdf(str(file), *((pinocchio.JointModelFreeFlyer(),) if floating else ()))
    data, pin = model.createData(), pinocchio
    state = system.state(*system.random_state(np.random.default_rng(0)))
    q, v = report.to_pinocchio(state)
    assert (len(q), len(v)) == (model.nq, model.nv)
    assert same_turns(system, report.from_pinocchio(system, q, v), state) < 1e-12 * (1.0 + np.abs(state.q).max())
    pin.forwardKinematics(model, data, q, v)
    pin.updateFramePlacements(model, data)
    size = 1.0 + np.abs(state.q).max()
    known = [b for b in system.body_names if model.existFrame(b, pin.FrameType.BODY)]
    assert known
    for _, body in some_bodies(known):
        frame = model.getFrameId(body, pin.FrameType.BODY)
        theirs, speed = data.oMf[frame], pin.getFrameVelocity(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        pose = system.pose(state, body)
        np.testing.assert_allclose(pose.position, theirs.translation, rtol=0.0, atol=1e-13 * size, err_msg=body)
        np.testing.assert_allclose(pose.rotation, theirs.rotation, rtol=0.0, atol=1e-13, err_msg=body)
        np.testing.assert_allclose(system.velocity(state, body), [*speed.angular, *speed.linear], rtol=0.0,
                                   atol=1e-13 * size * (1.0 + np.abs(state.u).max()), err_msg=body)


def _robots() -> list[Path]:
    if pinocchio is None:
        return []
    return [p for p in models.every("example-robot-data", ".urdf") if p.name not in ("falcon.urdf", "ur3.urdf")]


@needs_peers
@pytest.mark.everyday(16)
@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("path", _robots(), ids=lambda path: path.stem)
def test_published_urdf_models(path: Path, floating: bool) -> None:
    machine, report = bc.read(path, exact_angles=False, floating_base=floating, mimic="free")
    try:
        system = bc.compile(machine, backend="numpy")
    except bc.ModelError as error:
        pytest.skip(str(error))
    compare_with_pinocchio(system, report, path, floating)


@needs_peers
@pytest.mark.everyday(8)
@pytest.mark.parametrize("name", examples.names())
def test_examples_as_urdf(tmp_path: Path, name: str) -> None:
    machine, report = saved(name, tmp_path / "x.urdf", drop_gravity=True)
    try:
        system = bc.compile(machine, backend="numpy")
    except bc.ModelError as error:
        pytest.skip(str(error))
    compare_with_pinocchio(system, report, tmp_path / "x.urdf", False)


@needs_peers
@pytest.mark.parametrize("above", ["base", "d", "e"])
@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
def test_every_joint_of_urdf_in_pinocchio(tmp_path: Path, floating: bool, above: str) -> None:
    file = urdf(tmp_path, more=FLOATING.format(above))
    machine, report = bc.read(file, floating_base=floating)
    compare_with_pinocchio(bc.compile(machine, backend="numpy"), report, file, floating)


@needs_peers
def test_forces_and_accelerations_are_converted_as_speeds_are() -> None:
    file = models.need("example-robot-data", "go2.urdf")
    machine, report = bc.read(file, floating_base=True, exact_angles=False)
    system = bc.compile(machine, backend="numpy")
    rng = np.random.default_rng(1)
    state, tau = system.random_state(rng), rng.normal(size=system.nu)
    model = pinocchio.buildModelFromUrdf(str(file), pinocchio.JointModelFreeFlyer())
    model.armature[:] = 0.0
    theirs = pinocchio.aba(model, model.createData(), *report.to_pinocchio(state),
                           report.to_pinocchio(state.replace(u=tau))[1])
    ours = system.forward_dynamics(state, tau=tau)
    np.testing.assert_allclose(report.from_pinocchio(system, report.to_pinocchio(state)[0], theirs).u, ours, rtol=0.0,
                               atol=1e-11 * np.abs(ours).max())


def test_order_of_pinocchio() -> None:
    below = {"base": [("z", "b"), ("y", "c"), ("Y", "d")], "c": [("k", "e"), ("a", "f")]}
    assert pinocchio_order(below, "base") == ["Y", "y", "a", "k", "z"]


# -- batches, errors ------------------------------------------------------------------------------
def test_batches_keep_their_axes(tmp_path: Path) -> None:
    bc.save(bc.load("stewart"), tmp_path / "x.urdf", split=True, loops="loop_joint")
    for machine, report in (bc.read(tmp_path / "x.urdf"), bc.read(urdf(tmp_path, more=FLOATING.format("c")))):
        system = bc.compile(machine, backend="numpy", lock="massless")
        states = system.random_state(np.random.default_rng(0), size=(2, 3))
        states = states if isinstance(states, bc.State) else system.state(*states)
        q, v = report.to_pinocchio(states)
        back = report.from_pinocchio(system, q, v, t=1.5)
        assert q.shape[:-1] == v.shape[:-1] == back.shape == (2, 3) and back.t == 1.5
        assert same_turns(system, back, states) < 1e-12
        one = report.to_pinocchio(states.item(1, 2))
        for part, whole in zip(one, (q, v), strict=True):
            np.testing.assert_allclose(part, whole[1, 2], rtol=0.0, atol=1e-15)
        assert not report.from_pinocchio(system, q[0, 0]).u[:3].any()


def test_what_cannot_be_converted(tmp_path: Path) -> None:
    _, native = bc.read("pendulum")
    with pytest.raises(bc.StateError, match=r"MJCF and URDF files; write the machine .* bc.save"):
        native.to_mujoco(bc.compile(bc.load("pendulum")).assemble())
    machine, report = bc.read(urdf(tmp_path, normal="1 0 0"))
    system = bc.compile(machine, backend="numpy")
    state = system.assemble()
    with pytest.raises(bc.StateError, match="Pinocchio has no joint like 'plane' of this file"):
        report.to_pinocchio(state)
    with pytest.raises(bc.StateError, match="needs a State, got tuple"):
        report.to_mujoco((state.q, state.u))  # type: ignore[arg-type]
    with pytest.raises(bc.StateError, match="must have 10 entries"):
        report.from_mujoco(system, np.zeros(9))
    with pytest.raises(bc.StateError, match="has no joint 'z' of"):
        report.from_mujoco(bc.compile(bc.load("pendulum")), np.zeros(10))
    ball = machine.add_body("ball", bc.Inertia.sphere(1.0, 0.1))
    machine.add_joint("added", bc.Free(), machine.ground, ball)
    more = bc.compile(machine, backend="numpy")
    assert len(report.to_mujoco(more.assemble())[0]) == 10
    with pytest.raises(bc.StateError, match="joint 'added' is not in the file"):
        report.from_mujoco(more, np.zeros(10))
    retyped = urdf(tmp_path, more=SPHERICAL.replace("spherical", "ball"))
    with pytest.raises(bc.StateError, match="MuJoCo has no joint like 'round'"):
        bc.read(retyped)[1].from_mujoco(system, np.zeros(10))
