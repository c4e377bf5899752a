"""Actuators, tendons and springs of MJCF: MuJoCo's own accelerations with controls, and controls as parameters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.io.mjcf import read_mjcf, write_mjcf
from bellcrank.io.native import read_native, write_native
from mjcf_peer import Peer
from pages import page_named

mujoco = pytest.importorskip("mujoco")
from bellcrank.io.mjcf.read import MjcfReader  # noqa: E402
from bellcrank.io.mjcf.source import compiled  # noqa: E402

MACHINE = """
<mujoco model="machine">
  <compiler angle="radian" autolimits="true"/>
  <option gravity="0.3 -0.4 -9.5"/>
  <worldbody>
    <body name="trunk" pos="0.1 0.2 0.9" euler="0.2 0.4 0.5">
      <joint name="fly" type="free" {fly}/>
      <geom type="box" size=".2 .1 .05" pos=".03 0 .01"/>
      <body name="arm" pos=".2 .1 0" quat="1 -1 0 0">
        <joint name="a" axis="1 0.2 0" pos="0 0.01 0.02" ref="0.3" {a}/>
        <joint name="b" type="slide" axis="0 .3 -1" ref="0.05" damping="1"/>
        <geom type="capsule" size=".03" fromto="0 0 0 0 .05 -.3"/>
        <site name="tip" pos="0 0 -.3"/>
        <body name="hand" pos="0 .05 -.3">
          <joint name="c" axis="0 1 0"/>
          <geom type="ellipsoid" size=".05 .03 .02" pos="0.02 0 0"/>
          <body name="ball" pos="0 .05 -.1" euler="0.1 0.2 0.3"><joint name="round" type="ball" {round}/>
            <geom size=".03" pos=".1 0 0"/></body>
        </body>
      </body>
      <site name="eye" pos=".2 0 .1"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="sum" {sum}><joint joint="a" coef="1.5"/><joint joint="b" coef="-2"/>
      <joint joint="c" coef=".5"/></fixed>
    <fixed name="alone"><joint joint="c" coef="-3"/></fixed>
    <spatial name="cord" {cord}><site site="eye"/><site site="tip"/></spatial>
  </tendon>
  <actuator>{inside}</actuator>
  <keyframe><key name="home"{home}/></keyframe>
</mujoco>
"""


def text(inside: str = "", count: int = 0, **attributes: str) -> str:
    parts = dict.fromkeys(("fly", "a", "round", "sum", "cord"), "") | attributes
    home = f' ctrl="{" ".join(str(i + 0.5) for i in range(count))}"' if count else ""
    return MACHINE.format(inside=inside, home=home, **parts)


def read(tmp_path: Path, content: str, **options: bool) -> tuple[MjcfReader, Peer]:
    path = tmp_path / "machine.xml"
    path.write_text(content)
    source = compiled(path, None, "error")
    reader = MjcfReader(source, options.get("limits", False), options.get("actuators", True))
    machine = reader.mechanism()
    return reader, Peer(mujoco, source.model, reader, bc.compile(machine, backend="numpy"))


def compare(reader: MjcfReader, peer: Peer, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(4):
        qpos, qvel = peer.random_state(rng)
        ctrl = rng.normal(size=len(peer.data.ctrl)) * 2.0
        q, u = peer.ours(qpos, qvel)
        theirs = peer.accelerations(qpos, qvel, ctrl)
        system, tau = peer.driven(reader, ctrl)
        ours = peer.theirs(system.forward_dynamics(q, u, tau), u, q)
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-10 * (1.0 + np.abs(theirs).max()))


ACTUATORS = {
    "position": '<position name="x" joint="a" kp="20" kv="0.5"/>',
    "position with ranges": '<position name="x" joint="a" kp="20" ctrlrange="-.3 .8" forcerange="-2 5" gear="-3"/>',
    "position with a damping ratio": '<position name="x" joint="a" kp="20" dampratio="0.7"/>',
    "position from the range": '<position name="x" joint="c" kp="4" ctrlrange="-1 1"/>',
    "velocity": '<velocity name="x" joint="b" kv="7" gear="2"/>',
    "damper": '<damper name="x" joint="b" kv="7" gear="2" ctrlrange="0 3"/>',
    "general": '<general name="x" joint="a" gainprm="3" biastype="affine" biasprm="1 -4 -.5" gear=".7"/>',
    "affine gain": '<general name="x" joint="a" gaintype="affine" gainprm="3 2 -1" biastype="affine" biasprm="1 2 3"/>',
    "a constant push": '<general name="x" joint="a" gainprm="0" biastype="affine" biasprm="3 0 0"/>',
    "a faint spring": '<general name="x" joint="a" gainprm="3" biastype="affine" biasprm="0 -1e-9 0"/>',
    "motor": '<motor name="x" joint="a" gear="4" ctrlrange="-.4 .9"/>',
    "one-sided motor": '<motor name="x" joint="a" gear="-4" ctrlrange="0 1"/>',
    "two motors": '<motor name="x" joint="a" gear="4" ctrlrange="-1 1"/><motor name="y" joint="a" ctrlrange="-3 3"/>',
    "motor and servo": '<motor name="x" joint="a" gear="4"/><position name="y" joint="a" kp="3"/>',
    "motor on a sum": '<motor name="x" tendon="sum" gear="2" ctrlrange="-1 2"/>',
    "position of a sum": '<position name="x" tendon="sum" gear="2" kp="9" forcerange="-3 4"/>',
    "velocity of a sum": '<velocity name="x" tendon="sum" kv="2"/>',
    "sum of one": '<position name="x" tendon="alone" kp="9"/>',
    "rotor": '<motor name="x" joint="a" gear="3" armature="0.1" damping="0.2"/>',
    "rotor of a sum": '<motor name="x" tendon="sum" gear="3" damping="0.2"/>',
    "without a name": '<position joint="a" kp="20"/>',
    "a group that is off": '<position name="x" joint="a" kp="20" group="2"/><motor name="y" joint="c" group="1"/>',
    "a group that cannot be off": '<position name="x" joint="a" kp="20" group="-1"/>',
    "no limit": '<position name="x" joint="a" kp="20" ctrlrange="-1e200 1e200"/>'
                '<motor name="y" joint="c" ctrlrange="-1e300 1e300"/>',
    "no gear": '<position name="x" joint="a" kp="20" gear="0"/>',
}


@pytest.mark.parametrize("name", ACTUATORS)
def test_actuators_push_as_in_mujoco(tmp_path: Path, name: str) -> None:
    content = text(ACTUATORS[name])
    if "group" in name:
        content = content.replace("<option ", '<option actuatorgroupdisable="2" ')
    reader, peer = read(tmp_path, content)
    assert not [n for n in reader.notes if n.kind == "warned"]
    compare(reader, peer)


@pytest.mark.parametrize("name", [n for n in ACTUATORS if "group" not in n])
def test_actuators_come_back(tmp_path: Path, name: str) -> None:
    (tmp_path / "in.xml").write_text(text(ACTUATORS[name]))
    m, _ = read_mjcf(tmp_path / "in.xml")
    write_mjcf(m, tmp_path / "out.xml")
    again, report = read_mjcf(tmp_path / "out.xml")
    assert not report.warned
    one, two = bc.compile(m, backend="numpy"), bc.compile(again, backend="numpy")
    assert one.parameters == two.parameters
    rng = np.random.default_rng(1)
    for control in (-5.0, -0.2, 0.0, 0.3, 5.0):
        q, u = one.random_state(rng)
        tau = 3.0 * rng.normal(size=u.shape)
        controls = dict.fromkeys(one.parameters, control)
        wanted = one.with_parameters(**controls).forward_dynamics(q, u, tau)
        found = two.with_parameters(**controls).forward_dynamics(q, u, tau)
        np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize("limits", ['actuatorfrcrange="-1 3"', 'actuatorfrcrange="-1 3" actuatorgravcomp="true"'])
@pytest.mark.parametrize("inside", ['<position name="x" joint="a" kp="20" gear="2" forcerange="-5 1"/>',
                                    '<motor name="x" joint="a" gear="4" ctrlrange="-1 1"/>'])
def test_joints_limit_the_force_of_actuators(tmp_path: Path, inside: str, limits: str) -> None:
    reader, peer = read(tmp_path, text(inside, a=limits))
    assert not [n for n in reader.notes if n.kind == "warned"]
    compare(reader, peer)


def test_tendons_limit_the_force_of_actuators(tmp_path: Path) -> None:
    reader, peer = read(tmp_path, text('<position name="x" tendon="sum" kp="20"/>', sum='actuatorfrcrange="-1 3"'))
    assert not [n for n in reader.notes if n.kind == "warned"]
    compare(reader, peer)


THRUSTS = {
    "motor": '<motor name="x" site="tip" gear="0 0 1 0 0 -.02" ctrlrange="0 1.5"/>',
    "two": '<motor name="x" site="tip" gear="1 2 3 0 0 0"/><motor name="y" site="eye" gear="0 0 0 1 -2 .5"/>',
    "general": '<general name="x" site="eye" gainprm="3" biastype="affine" biasprm="1 0 0" forcerange="-2 4" '
               'gear=".1 0 .2 0 .3 0"/>',
}


@pytest.mark.parametrize("name", THRUSTS)
def test_actuators_on_sites_push_as_in_mujoco(tmp_path: Path, name: str) -> None:
    """The thrust of drones: in axes of a site that is turned against its body."""
    content = text(THRUSTS[name]).replace('<site name="tip"', '<site name="tip" euler=".3 -.4 .5"')
    reader, peer = read(tmp_path, content)
    assert not [n for n in reader.notes if n.kind == "warned"]
    compare(reader, peer)


def test_limits_that_actuators_share(tmp_path: Path) -> None:
    """Each is limited by itself, where MuJoCo limits their sum: exact while one of them pushes."""
    inside = '<position name="x" joint="a" kp="50"/><position name="y" joint="a" kp="0"/>'
    reader, peer = read(tmp_path, text(inside, a='actuatorfrcrange="-1 3"'))
    assert [n.text for n in reader.notes if n.kind == "warned"]
    compare(reader, peer)
    limited = text('<position name="x" joint="a" kp="100"/>', a='actuatorfrcrange="-1 1" actuatorgravcomp="true"')
    reader, peer = read(tmp_path, limited.replace('name="arm"', 'name="arm" gravcomp="1"'))
    system, _ = peer.driven(reader, np.array([9.0]))
    state = system.assemble()
    assert system.element_forces(state.q, state.u)["x"].force == pytest.approx(1.0)


def test_early_activations_are_told(tmp_path: Path) -> None:
    reader, _ = read(tmp_path, text('<general name="x" joint="c" dyntype="integrator" actearly="true"/>'))
    assert any("actearly" in note.text for note in reader.notes if note.kind == "ignored")


NOT_MODELLED = {
    "limit of several": ('<position joint="a" kp="2"/><position joint="a" kp="3"/>', "each force by itself"),
    "limit of a sum": ('<position tendon="sum" kp="2"/>', "each force by itself"),
    "two states": ('<general joint="c" dyntype="user" actdim="2" gainprm="1"/>', "activation"),
    "muscle of unknown length": ('<muscle joint="c"/>', "lengthrange is not in the file"),
    "two sites": ('<position site="tip" refsite="eye" gear="1 0 0 0 0 0"/>', "a site relative to another"),
    "site with a rate": ('<velocity site="tip" gear="1 0 0 0 0 0" kv="2"/>', "more than the control"),
    "ball": ('<motor joint="round" gear="1 0 0"/>', "ball or free"),
    "free": ('<motor joint="fly" gear="1 0 0 0 0 0"/>', "ball or free"),
    "cord": ('<motor tendon="cord"/>', "not a sum of joints"),
    "slider-crank": ('<motor cranksite="tip" slidersite="eye" cranklength=".3"/>', "slider-crank"),
    "rotor of a sum": ('<motor tendon="sum" armature="0.1"/>', "armature of an actuator on several"),
}


#: one file with all of them
PUSHED = text(re.sub(' name="[xy]"', "", "".join([*ACTUATORS.values(), *(x for x, _ in NOT_MODELLED.values())])),
              a='stiffness="2" actuatorfrcrange="-1 3"', round='stiffness="0.4" damping="0.01"', cord='stiffness="3"',
              fly='stiffness="20" armature="0.7"', sum='stiffness="7" springlength="-0.4 0.1" range="0 1"')


@pytest.mark.parametrize("name", NOT_MODELLED)
def test_other_actuators_are_told(tmp_path: Path, name: str) -> None:
    inside, said = NOT_MODELLED[name]
    reader, _ = read(tmp_path, text(inside, a='actuatorfrcrange="-1 3"' if "limit" in name else ""))
    assert [said in n.text for n in reader.notes if n.kind == "warned"] == [True] * (2 if "several" in name else 1)


ACTIVATED = {
    "filter": '<general name="x" joint="c" dyntype="filter" dynprm=".2" gainprm="3" biastype="affine" '
              'biasprm="1 -4 -.5" gear="2" forcerange="-3 4" ctrlrange="-1 1.5"/>',
    "exact filter": '<position name="x" joint="a" kp="20" kv="0.5" timeconst="0.1" gear="-3"/>',
    "integrator": '<intvelocity name="x" joint="c" kp="3" kv=".2" actrange="-1 1" ctrlrange="-2 2"/>',
    "affine gain": '<general name="x" joint="a" dyntype="integrator" gaintype="affine" gainprm="3 2 -1"/>',
    "of a sum": '<general name="x" tendon="sum" dyntype="filter" dynprm=".05" gainprm="2" gear=".5"/>',
    "cylinder": '<cylinder name="x" joint="b" timeconst=".3" area=".2" bias="1 -2 -.3"/>',
    "muscle": '<muscle name="x" joint="c" lengthrange="-1.5 1" force="30" range=".6 1.2" gear="1.4"/>',
    "muscle by its scale": '<muscle name="x" joint="a" lengthrange="-1 1.2" scale="200" tausmooth=".3" vmax="2" '
                           'fpmax="2"/>',
    "two of them": '<muscle name="x" joint="a" lengthrange="-1 1.2" force="9"/><intvelocity name="y" joint="c" kp="4" '
                   'actrange="-1 1"/>',
}


def both(reader: MjcfReader, peer: Peer, seed: int) -> None:
    """Accelerations and rates of activations, ours and MuJoCo's, at some states, controls and activations."""
    rng = np.random.default_rng(seed)
    data, model = peer.data, peer.model
    places = {at: peer.system.speed_names.index(f"{name}.value") for name, at in reader.activations.items()}
    assert len(places) == model.na
    for _ in range(8):
        qpos, qvel = peer.random_state(rng)
        ctrl, act = rng.normal(size=len(data.ctrl)), rng.uniform(-1.5, 1.5, model.na)
        mujoco.mj_resetData(model, data)
        data.qpos, data.qvel, data.ctrl, data.act = qpos, qvel, ctrl, act
        mujoco.mj_forward(model, data)
        q, u = peer.ours(qpos, qvel)
        for at, place in places.items():
            u[place] = act[at]
        udot = peer.driven(reader, ctrl)[0].forward_dynamics(q, u)
        wanted = np.array(data.qacc)
        np.testing.assert_allclose(peer.theirs(udot, u, q), wanted, rtol=0.0, atol=1e-10 * (1 + abs(wanted).max()))
        for at, place in places.items():
            low, high = model.actuator_actrange[at] if model.actuator_actlimited[at] else (-np.inf, np.inf)
            rate = float(data.act_dot[at])
            inside = (act[at] > low or rate > 0) and (act[at] < high or rate < 0)  # MuJoCo keeps it when it steps
            np.testing.assert_allclose(udot[place], rate if inside else 0.0, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ACTIVATED)
def test_activations_are_states(tmp_path: Path, name: str) -> None:
    reader, peer = read(tmp_path, text(ACTIVATED[name]))
    assert not [n for n in reader.notes if n.kind == "warned"]
    both(reader, peer, 3)
    write_mjcf(peer.system.model.mechanism, tmp_path / "out.xml")
    again, report = read_mjcf(tmp_path / "out.xml")
    assert not report.warned
    one, two = peer.system, bc.compile(again, backend="numpy")
    assert one.speed_names == two.speed_names and one.parameters == two.parameters
    controls = dict.fromkeys(one.parameters, 0.7)
    q, u = one.random_state(np.random.default_rng(1), 3)
    wanted = one.with_parameters(**controls).forward_dynamics(q, u)
    np.testing.assert_allclose(two.with_parameters(**controls).forward_dynamics(q, u), wanted, rtol=0.0,
                               atol=1e-11 * np.abs(wanted).max())


def test_activations_move_as_in_mujoco(tmp_path: Path) -> None:
    """A filtered servo and a muscle beside MuJoCo's own steps, which are of first order in activations."""
    inside = ACTIVATED["exact filter"] + ACTIVATED["muscle"].replace('"x"', '"y"')
    content = text(inside).replace('<option gravity="0.3 -0.4 -9.5"/>', """<option timestep="1e-3" integrator="RK4">
      <flag contact="disable"/></option>""")
    reader, peer = read(tmp_path, content)
    system = bc.compile(peer.system.model.mechanism).with_parameters(x=0.4, y=0.8)
    data = peer.data
    mujoco.mj_resetData(peer.model, data)
    data.ctrl = [0.4, 0.8]
    for _ in range(300):
        mujoco.mj_step(peer.model, data)
    run = system.simulate(system.assemble(), 0.3, step=5e-4, output=0.3)
    q, _ = peer.ours(np.array(data.qpos), np.array(data.qvel))
    moved = [k for k, label in enumerate(system.coordinate_names) if label.partition(".")[0] in ("a", "b", "c")]
    np.testing.assert_allclose(run.q[-1].values[moved], q[moved], atol=6e-4)
    for label, at in reader.activations.items():
        np.testing.assert_allclose(float(run.u.sel(speed=f"{label}.value")[-1]), data.act[at], atol=6e-4)


def test_names_of_activations_are_free(tmp_path: Path) -> None:
    content = text(ACTIVATED["filter"]).replace('"hand"', '"x_activation"').replace('"round"', '"x_activation_2"')
    (tmp_path / "machine.xml").write_text(content)
    m, _ = read_mjcf(tmp_path / "machine.xml")
    (name,) = (s.name for s in m.states)
    assert name not in ("x_activation", "x_activation_2") and name.startswith("x_activation")


def test_activations_of_keyframes(tmp_path: Path) -> None:
    content = text(ACTIVATED["muscle"], 1).replace('ctrl="0.5"', 'ctrl="0.5" act="0.25"')
    (tmp_path / "machine.xml").write_text(content)
    m, report = read_mjcf(tmp_path / "machine.xml")
    home = report.keyframes["home"]
    assert home["u"]["x_activation"] == 0.25 and home["parameters"] == {"x": 0.5}
    system = bc.compile(m, backend="numpy")
    state = system.project(home["q"], home["u"])
    assert state.u[system.speed_names.index("x_activation.value")] == 0.25
    write_native(m, tmp_path / "machine.yaml")  # their laws are formulas there
    again, _ = read_native(tmp_path / "machine.yaml")
    np.testing.assert_allclose(bc.compile(again, backend="numpy").with_parameters(x=0.5).forward_dynamics(state),
                               system.with_parameters(x=0.5).forward_dynamics(state), rtol=1e-12)


PASSIVE = {
    "spring of a sum": {"sum": 'stiffness="7" damping="0.3" springlength="0.4"'},
    "slack of a sum": {"sum": 'stiffness="7" springlength="-0.4 0.1"'},
    "spring of a sum at rest as drawn": {"sum": 'stiffness="7"'},
    "cord": {"cord": 'stiffness="30" damping="1" springlength="0.2"'},
    "slack cord": {"cord": 'stiffness="30" damping="1" springlength="0 0.3"'},
    "ball": {"round": 'stiffness="0.4" damping="0.01" armature="0.002"'},
    "free": {"fly": 'stiffness="20" damping="0.3" armature="0.7"'},
    "free rotor": {"fly": 'armature="0.7"'},
}


@pytest.mark.parametrize("name", PASSIVE)
def test_springs_pull_as_in_mujoco(tmp_path: Path, name: str) -> None:
    reader, peer = read(tmp_path, text(**PASSIVE[name]))
    assert not [n for n in reader.notes if n.kind == "warned"]
    compare(reader, peer)
    write_mjcf(peer.system.model.mechanism, tmp_path / "out.xml")
    again, report = read_mjcf(tmp_path / "out.xml")
    assert not report.warned
    one, two = peer.system, bc.compile(again, backend="numpy")
    q, u = one.random_state(np.random.default_rng(1), 3)
    wanted = one.forward_dynamics(q, u)
    np.testing.assert_allclose(two.forward_dynamics(q, u), wanted, rtol=0.0, atol=1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize("number", ["1e308", "inf"])
def test_huge_gains_are_refused(tmp_path: Path, number: str) -> None:
    with pytest.raises(bc.FileError, match="gainprm is not finite, or too large"):
        read(tmp_path, text(f'<general name="x" joint="a" gainprm="{number}" biastype="affine" biasprm="0 -1 0"/>'))


def test_friction_and_ranges_of_sums(tmp_path: Path) -> None:
    content = text(sum='frictionloss="2" range="-0.2 0.5"')
    _, peer = read(tmp_path, content, limits=True)
    assert [s.name for s in peer.system.model.mechanism.joint_sums] == ["sum_friction", "sum_range"]
    assert [s.name for s in read(tmp_path, content)[1].system.model.mechanism.joint_sums] == ["sum_friction"]
    limit = peer.system.model.mechanism.joint_sums[1].along
    assert (limit.lower, limit.upper) == pytest.approx((-0.2 - 0.35, 0.5 - 0.35))  # less 1.5 * 0.3 - 2 * 0.05


def test_friction_of_ball_joints(tmp_path: Path) -> None:
    """Along every speed alike, as MuJoCo has it; written and read again. One alone has no place in a file."""
    file = tmp_path / "ball.xml"
    file.write_text('<mujoco><worldbody><body><joint name="j" type="ball" frictionloss=".3" damping=".1" pos="0 0 .2"/>'
                    '<geom size=".1"/></body></worldbody></mujoco>')
    m, report = read_mjcf(file)
    assert not report.warned
    system = bc.compile(m, backend="numpy")
    u = np.array([0.5, -0.4, 0.3])
    found = system.element_forces(system.neutral(), u)
    moments = {name: float(e.force) for name, e in found.items() if "friction" in name}
    assert moments == pytest.approx({"j_friction_wx": -0.3, "j_friction_wy": 0.3, "j_friction_wz": -0.3})
    write_mjcf(m, tmp_path / "out.xml")
    again = bc.compile(read_mjcf(tmp_path / "out.xml")[0], backend="numpy")
    wanted = system.forward_dynamics(system.neutral(), u)
    assert again.forward_dynamics(system.neutral(), u) == pytest.approx(wanted, rel=1e-12)
    m.add_friction("more", "j", viscous=0.1, coordinate="wy")
    with pytest.raises(bc.ModelError, match="joint 'j': MJCF has no friction of a ball joint that differs along its"):
        write_mjcf(m, tmp_path / "out.xml")


@pytest.mark.parametrize("more", ["", 'ctrlrange="-1 1"', 'inductance=".1"', 'inductance=".1" ctrlrange="-1 1"',
                                  'cogging="1 2 3"'])
def test_motors_by_their_constants(tmp_path: Path, more: str) -> None:
    """Force and rate of the current beside MuJoCo's, whose forces look a step ahead; what is not known makes none."""
    mujoco = pytest.importorskip("mujoco")
    if not hasattr(mujoco.mjtDyn, "mjDYN_DCMOTOR"):
        pytest.skip("this MuJoCo has no such motors")
    file = tmp_path / "motor.xml"
    file.write_text('<mujoco><option timestep="1e-9"/><worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1" '
                    'pos="0 0 -.4"/></body></worldbody><actuator><dcmotor name="m" joint="j" motorconst=".5" gear="3" '
                    f'resistance="2" {more}/></actuator></mujoco>')
    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    data.qpos[0], data.qvel[0], data.ctrl[0], data.act[:] = 0.3, 0.7, 5.0, 0.4
    mujoco.mj_forward(model, data)
    m, report = read_mjcf(file)
    if "cogging" in more:
        assert any("not modelled" in str(note) for note in report.warned) and not m.joint_forces
        return
    system = bc.compile(m, backend="numpy").with_parameters(m=5.0)
    state = system.assemble(q={"j": 0.3}, u={"j": 0.7, **({"m current": 0.4} if "induct" in more else {})})
    udot = system.forward_dynamics(state)
    assert udot[0] == pytest.approx(data.qacc[0], rel=1e-6)
    assert udot[1:] == pytest.approx(data.act_dot, rel=1e-9)
    bc.save(m, tmp_path / "m.yaml")
    again = bc.compile(bc.load(tmp_path / "m.yaml"), backend="numpy").with_parameters(m=5.0)
    assert np.array_equal(again.forward_dynamics(state), udot)


def test_load_set_a_control_simulate(tmp_path: Path) -> None:
    inside = '<position name="aim/a" joint="a" kp="20" kv="5"/><motor name="m" joint="c"/>'
    content = text(inside, 2).replace('type="free"', 'type="hinge" damping="99"').replace("0.3 -0.4 -9.5", "0 0 0")
    (tmp_path / "machine.xml").write_text(content)
    m, report = read_mjcf(tmp_path / "machine.xml")
    assert report.keyframes["home"]["parameters"] == {"aim/a": 0.5}
    system = bc.compile(m)
    assert system.parameters == {"aim/a": 0.0}
    result = system.with_parameters(**report.keyframes["home"]["parameters"]).simulate(system.assemble(), duration=3.0)
    at = system.coordinate_names.index("a.angle")
    assert float(result.q[-1, at]) == pytest.approx(0.5 - 0.3, abs=0.02)  # the file's angle is 0.5, ours less by ref
    without, _ = read_mjcf(tmp_path / "machine.xml", actuators=False)
    assert not without.parameters and "aim/a" not in [f.name for f in without.joint_forces]


GRIPPER = """<mujoco><worldbody>
  <body name="left" pos="0 .1 0"><joint name="l" axis="1 0 0" damping=".1"/><geom size=".05" pos="0 0 .1"/></body>
  <body name="right" pos="0 -.1 0"><joint name="r" axis="-1 0 0" damping=".1"/><geom size=".05" pos="0 0 .1"/></body>
</worldbody><tendon><fixed name="both"><joint joint="l" coef=".5"/><joint joint="r" coef=".5"/></fixed></tendon>
<equality><joint joint1="l" joint2="r"/></equality>
<actuator><general name="fingers" tendon="both" ctrlrange="0 .8" gainprm="100" biastype="affine" biasprm="0 -100 -10"
  forcerange="-5 5"/></actuator></mujoco>"""


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = page_named("mjcf").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gripper.xml").write_text(GRIPPER)
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "mjcf.md", "exec"), names)
    assert "its control is the parameter 'fingers'" in capsys.readouterr().out
    assert np.array(names["result"].q[-1]) == pytest.approx([0.4, 0.4], abs=0.06)
    assert float(names["result"].loop_error.max()) < 1e-12
    back, _ = read_mjcf(tmp_path / "again.xml")
    assert back.parameters == {"fingers": 0.0} and back.joint_sums[0].terms == (("l", 0, 0.5), ("r", 0, 0.5))


def test_switches_of_the_file(tmp_path: Path) -> None:
    inside = '<position name="x" joint="a" kp="20" ctrlrange="-.1 .1"/>'
    for flag, name in (("actuation", ()), ("clampctrl", ("x",))):
        content = text(inside).replace("<worldbody>", f'<option><flag {flag}="disable"/></option><worldbody>', 1)
        reader, peer = read(tmp_path, content)
        assert tuple(peer.system.parameters) == name
        compare(reader, peer)


def test_a_rotation_spring_is_measured_by_its_angle() -> None:
    m = bc.Mechanism("spring", gravity=(0, 0, 0))
    m.add_joint("ball", bc.Spherical(), m.ground, m.add_body("b", bc.Inertia.box(1.0, (0.1, 0.2, 0.3))))
    m.add_bushing("spring", m.ground, "b", turn_stiffness=(2.0, 2.0, 2.0), measure="angle")
    for system in (bc.compile(m), bc.compile(m, backend="numpy")):
        for angle in (0.0, 1e-9, 1e-7, 1e-5, 0.3, 1.5, 3.0, 3.14159):
            axis = np.array([1.0, 2.0, -2.0]) / 3.0
            q = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])
            needed = system.inverse_dynamics(q, np.zeros(3), np.zeros(3))
            np.testing.assert_allclose(needed, 2.0 * angle * axis, atol=1e-9 if angle > 3.1 else 1e-14)
            assert float(bc.analyze.stored_energy(system, q)) == pytest.approx(angle**2, rel=1e-9, abs=1e-18)


def test_a_bushing_by_angle_needs_equal_stiffness() -> None:
    m: Any = bc.load("pendulum")
    body = m.bodies[0].name
    with pytest.raises(bc.ModelError, match="must be the same"):
        m.add_bushing("b", m.ground, body, turn_stiffness=(1.0, 2.0, 1.0), measure="angle")
    with pytest.raises(bc.ModelError, match="'chord' or 'angle'"):
        m.add_bushing("b", m.ground, body, measure="sine")
