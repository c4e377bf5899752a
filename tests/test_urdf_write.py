"""Writing URDF: what is read back moves as what was written, and what cannot be held is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc
from bellcrank import examples
from bellcrank.errors import FileError, ModelError
from bellcrank.io.urdf import read_urdf, write_urdf
from bellcrank.io.urdf.write_tree import angles
from bellcrank.mechanism.joints import quaternion
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

Floats = npt.NDArray[np.float64]


def rotation(rng: np.random.Generator) -> Floats:
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def random_tree(seed: int, bodies: int = 8) -> Mechanism:
    """All joints URDF has, at odd places, some of them written from the child's side."""
    rng = np.random.default_rng(seed)
    m = Mechanism(f"tree {seed} & <co>")
    kinds = (bc.Revolute, bc.Prismatic, bc.Revolute, bc.Weld, bc.Planar, bc.Free)
    for i in range(bodies):
        turn = rotation(rng)
        about = turn @ np.diag(rng.uniform(1.0, 1.9, 3)) @ turn.T
        body = m.add_body(f"b'{i}\"", bc.Inertia(rng.uniform(0.5, 2), rng.normal(size=3), (about + about.T) / 2))
        kind = kinds[rng.integers(len(kinds))]
        joint = kind() if kind in (bc.Weld, bc.Free) else kind(rng.normal(size=3))
        other = m.ground if i == 0 else m.bodies[rng.integers(max(0, i - 3), i)]
        poses = Pose(rng.normal(size=3), rotation(rng)), Pose(rng.normal(size=3), rotation(rng))
        if kind in (bc.Planar, bc.Free) or rng.random() < 0.5:
            m.add_joint(f"j{i}", joint, other, body, *poses)
        else:
            m.add_joint(f"j{i}", joint, body, other, *poses)
    return m


def labels(m: Mechanism, what: str) -> list[str]:
    """Names of all coordinates or speeds; those of split joints read as before they were split."""
    found = []
    for r in m.joints:
        names = r.joint.coordinate_names() if what == "q" else r.joint.speed_names
        simple = r.joint.nu == 1 and r.name.endswith(("_angle", "_angle1", "_angle2", "_slide"))
        found += [r.name if simple else f"{r.name}_{n}" for n in names]
    return found


def closing_of(read: Mechanism) -> tuple[str, ...]:
    """Joints after those of the tree."""
    return tuple(r.name for r in read.joints[len(read.bodies):])


def in_world(read: Mechanism, state: bc.State) -> Floats:
    """Coordinates of free joints that are measured from where they are drawn as those in the world."""
    for r in read.joints:
        if isinstance(r.joint, bc.Free):
            pose = r.joint.start @ Pose(state[r.name][4:], state[r.name][:4])
            state = state.replace({r.name: [*quaternion.from_matrix(pose.rotation), *pose.position]})
    return state.q


def compare(m: Mechanism, path: Path, tolerance: float, *, reading: dict[str, Any] | None = None, guess: float = 0.0,
            **options: Any) -> Mechanism:
    write_urdf(m, path, **options)
    read, _ = read_urdf(path, gravity=m.gravity, exact_angles=False, **(reading or {}))
    closing = closing_of(read)
    one, two = (bc.compile(x, backend="numpy", cut=closing) for x in (m, read))
    q_order = [labels(m, "q").index(n) for n in labels(read, "q")]
    u_order = [labels(m, "u").index(n) for n in labels(read, "u")]
    rng = np.random.default_rng(1)
    for _ in range(2):
        q, u = one.random_state(rng)
        if closing or m.couplers:
            state = one.assemble(one.integrate(one.neutral(), guess * rng.normal(size=one.nu)), u)
            q, u = state.q, state.u
        tau = rng.normal(size=one.nu)
        place = in_world(read, two.state(q[q_order]))
        wanted, got = one.forward_dynamics(q, u, tau), two.forward_dynamics(place, u[u_order], tau[u_order])
        np.testing.assert_allclose(got, wanted[u_order], rtol=0, atol=tolerance * np.abs(wanted).max())
        assert two.kinetic_energy(place, u[u_order]) == pytest.approx(one.kinetic_energy(q, u), rel=1e-12)
    return read


@pytest.mark.parametrize("seed", range(12))
def test_random_trees(tmp_path: Path, seed: int) -> None:
    read = compare(random_tree(seed), tmp_path / "tree.urdf", 1e-12)
    assert read.name == f"tree {seed} & <co>"
    assert {b.name for b in read.bodies} >= {f"b'{i}\"" for i in range(8)}


TREES = ("arm", "chain", "double_pendulum", "pendulum", "quadruped")


@pytest.mark.parametrize("name", TREES)
def test_example_trees(tmp_path: Path, name: str) -> None:
    compare(examples.load(name), tmp_path / "x.urdf", 1e-12)


@pytest.mark.parametrize("name", ["gyroscope", "scara"])
def test_split_joints_keep_their_coordinates(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match="split=True"):
        write_urdf(examples.load(name), tmp_path / "x.urdf")
    assert not list(tmp_path.iterdir())
    compare(examples.load(name), tmp_path / "x.urdf", 1e-11, split=True)


def test_a_split_ball_joint_has_three_angles(tmp_path: Path) -> None:
    write_urdf(examples.load("crane"), tmp_path / "x.urdf", split=True)
    read, _ = read_urdf(tmp_path / "x.urdf")
    assert [r.name for r in read.joints if r.name.startswith("swing")] == ["swing_angle1", "swing_angle2",
                                                                          "swing_angle3"]
    assert bc.compile(read, backend="numpy").dof == bc.compile(examples.load("crane"), backend="numpy").dof


LOOPS = [(name, dialect) for name, dialects in {
    "bennett": ("loop_joint", "constraint", "gazebo"), "jansen": ("loop_joint", "constraint", "gazebo"),
    "slider_crank": ("loop_joint", "constraint", "gazebo"), "four_bar": ("loop_joint", "constraint"),
    "linkage_quadruped": ("loop_joint", "gazebo"), "ladder": ("gazebo", "constraint")}.items() for dialect in dialects]


@pytest.mark.parametrize("name, dialect", LOOPS)
def test_example_loops(tmp_path: Path, name: str, dialect: str) -> None:
    m = examples.load(name)
    compare(m, tmp_path / "x.urdf", 1e-12, loops=dialect, split=True, drop_gravity=True)


@pytest.mark.parametrize("name", ["stewart", "delta"])
@pytest.mark.parametrize("dialect", ["drake", "gazebo", "constraint", "loop_joint"])
def test_platforms_with_ball_joints(tmp_path: Path, name: str, dialect: str) -> None:
    """Ball joints in the tree are written as three hinges, so that coordinates differ, but not what is conserved."""
    m = examples.load(name)
    write_urdf(m, tmp_path / "x.urdf", loops=dialect, split=True)  # type: ignore[arg-type]
    read, _ = read_urdf(tmp_path / "x.urdf", exact_angles=False)
    one, two = bc.compile(m, backend="numpy"), bc.compile(read, backend="numpy")
    assert two.model.mass == pytest.approx(one.model.mass, rel=1e-14)
    assert np.abs(two.loop_error(two.neutral())).max() < 1e-12
    assert two.potential_energy(two.neutral()) == pytest.approx(one.potential_energy(one.neutral()), rel=1e-12)


def test_couplers_become_mimic_joints(tmp_path: Path) -> None:
    m = examples.load("arm")
    one, two, three = [r.name for r in m.joints if isinstance(r.joint, bc.Revolute)][:3]
    m.add_coupler("belt", {one: 1.0, two: -2.0}, 0.3)
    m.add_coupler("gear", {two: 2.0, three: 4.0})
    read = compare(m, tmp_path / "x.urdf", 1e-11)
    assert len(read.couplers) == 2
    m.add_coupler("third", {one: 1.0, three: 1.0})
    with pytest.raises(ModelError, match="'third': both joints follow others already"):
        write_urdf(m, tmp_path / "y.urdf")


def test_friction_becomes_dynamics(tmp_path: Path) -> None:
    m = examples.load("double_pendulum")
    first, second = (r.name for r in m.joints)
    m.add_friction("f", first, coulomb=0.3, viscous=0.7)
    m.add_joint_spring("d", second, damping=0.2)
    read = compare(m, tmp_path / "x.urdf", 1e-12, reading={"dynamics": True})
    assert len(read.joint_forces) == 2


def test_frames_and_the_base(tmp_path: Path) -> None:
    m = Mechanism("m")
    m.add_body("world", bc.Inertia.box(1.0, (1, 2, 3)))
    m.add_body("tip", bc.Inertia.box(1.0, (1, 2, 3)))
    m.add_joint("fix", bc.Weld(), m.ground, "world")
    m.add_joint("h", bc.Revolute("x"), "world", "tip", Pose((0, 0, 1)))
    write_urdf(m, tmp_path / "x.urdf")
    text = (tmp_path / "x.urdf").read_text()
    assert text.count("<link ") == 2
    m.add_frame("hand", "tip", Pose.rpy((1, 2, 3), 0.1, 0.2, 0.3))
    m.add_frame("mark", m.ground, Pose((1, 0, 0)))
    write_urdf(m, tmp_path / "x.urdf")
    read, _ = read_urdf(tmp_path / "x.urdf")
    assert [b.name for b in read.bodies] == ["world_2", "world", "tip"]
    np.testing.assert_allclose(read.frames[0].pose.rotation, m.frames[0].pose.rotation, atol=1e-15)
    assert read.frames[1].body == read.body("world_2").index


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, 1e-9 - np.pi / 2, 1.0, np.pi / 2 - 1e-16])
def test_angles_are_accurate_everywhere(pitch: float) -> None:
    for roll, yaw in np.random.default_rng(0).uniform(-3, 3, (20, 2)).tolist():
        pose = Pose.rpy((0, 0, 0), roll, pitch, yaw)
        np.testing.assert_allclose(Pose.rpy((0, 0, 0), *angles(pose)).rotation, pose.rotation, atol=1e-15)


def refused(change: Any) -> Mechanism:
    m = Mechanism("m")
    m.add_body("a", bc.Inertia.box(1.0, (1, 2, 3)))
    m.add_body("b", bc.Inertia.box(1.0, (1, 2, 3)))
    m.add_joint("j", bc.Revolute("x"), m.ground, "a")
    m.add_joint("k", bc.Revolute("y"), "a", "b", Pose((0, 0, 1)))
    change(m)
    return m


REFUSED: dict[str, tuple[Any, str]] = {
    "spring": (lambda m: m.add_spring("s", "a", "b", (0, 0, 0), (0, 0, 0), stiffness=1.0), "spring 's'"),
    "wrench": (lambda m: m.add_wrench("w", "a", force=(1, 0, 0)), "wrench 'w'"),
    "bushing": (lambda m: m.add_bushing("u", "a", "b"), "bushing 'u'"),
    "drag": (lambda m: m.add_drag("d", "a"), "drag 'd'"),
    "actuator": (lambda m: m.add_actuator("t", "j", 1.0), "actuator 't'"),
    "joint spring": (lambda m: m.add_joint_spring("s", "j", stiffness=1.0), "joint force 's'"),
    "limit": (lambda m: m.add_limit("l", "j", 0.0, 1.0, stiffness=1.0), "joint force 'l'"),
    "stribeck": (lambda m: m.add_friction("f", "j", coulomb=1.0, static=2.0), "joint force 'f'"),
    "prescribed": (lambda m: m.prescribe("j", 0.0), "joint 'j' follows a prescribed motion"),
    "distance": (lambda m: m.add_constraint("c", bc.Distance(1.0), m.ground, "b"), "constraint 'c'"),
    "loop": (lambda m: m.add_joint("l", bc.Spherical(), m.ground, "b"), "joint 'l' closes a loop"),
    "gravity": (lambda m: setattr(m, "gravity", (0, -9.81, 0)), "drop_gravity=True"),
    "screw": (lambda m: m.add_joint("s", bc.Screw("z", 0.1), "b", m.add_body("c", bc.Inertia.sphere(1, 1))),
              "joint 's': URDF has no Screw joint"),
    "ball": (lambda m: m.add_joint("s", bc.Spherical(), "b", m.add_body("c", bc.Inertia.sphere(1, 1))), "split=True"),
    "lost body": (lambda m: m.add_body("c"), "body 'c' is not connected"),
    "mass": (lambda m: m.add_joint("s", bc.Weld(), "b", m.add_body("c", bc.Inertia.sphere(m.parameter("p", 1), 1))),
             "body 'c': its inertia has parameters"),
    "place": (lambda m: m.add_joint("s", bc.Weld(), "b", m.add_body("c"), Pose((m.parameter("p", 1.0), 0, 0))),
              "joint 's': its place has parameters"),
    "name": (lambda m: m.add_joint("s", bc.Weld(), "b", m.add_body("c\x01")), "XML cannot hold this name"),
    "backwards": (lambda m: m.add_joint("s", bc.Free(), m.add_body("c", bc.Inertia.sphere(1, 1)), "b"),
                  "joint 's' points towards the ground"),
    "three coupled": (lambda m: (m.add_joint("s", bc.Revolute(), "b", m.add_body("c", bc.Inertia.sphere(1, 1))),
                                 m.add_coupler("g", {"j": 1, "k": 2, "s": 3})), "coupler 'g'"),
    "armature": (lambda m: m.add_armature("r", "j", 0.1), "armature 'r'"),
    "cable": (lambda m: m.add_joint_spring("s", {"j": 1.0, "k": 2.0}, stiffness=1.0), "joint force 's'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_urdf_cannot_hold_is_refused_by_name(tmp_path: Path, what: str) -> None:
    change, reason = REFUSED[what]
    with pytest.raises(ModelError) as caught:
        write_urdf(refused(change), tmp_path / "x.urdf")
    assert reason in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_what_a_dialect_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'drake' cannot hold a Revolute"):
        write_urdf(examples.load("bennett"), tmp_path / "x.urdf", loops="drake")
    with pytest.raises(ModelError, match="closed while all joints are at zero"):
        write_urdf(examples.load("four_bar"), tmp_path / "x.urdf", loops="gazebo", drop_gravity=True)
    with pytest.raises(ValueError, match="loops must be"):
        write_urdf(examples.load("bennett"), tmp_path / "x.urdf", loops="sdf")  # type: ignore[arg-type]


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    m = examples.load("pendulum")
    with pytest.raises(FileError, match="cannot be written"):
        write_urdf(m, tmp_path / "none" / "x.urdf")
    with pytest.raises(FileError, match="cannot be written"):
        write_urdf(m, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_written_again_keeps_its_link_and_permissions(tmp_path: Path) -> None:
    (tmp_path / "x.urdf").write_text("old")
    (tmp_path / "x.urdf").chmod(0o600)
    (tmp_path / "link.urdf").symlink_to(tmp_path / "x.urdf")
    write_urdf(examples.load("pendulum"), tmp_path / "link.urdf")
    assert (tmp_path / "link.urdf").is_symlink() and (tmp_path / "x.urdf").stat().st_mode & 0o777 == 0o600
    assert "<robot" in (tmp_path / "x.urdf").read_text()


def test_a_free_joint_beside_others_holds_nothing_and_is_left_out(tmp_path: Path) -> None:
    m = examples.load("pendulum")
    m.add_joint("loose", bc.Free(), m.ground, m.bodies[0])
    write_urdf(m, tmp_path / "x.urdf")
    assert "loose" not in [j.name for j in read_urdf(tmp_path / "x.urdf")[0].joints]


def test_pinocchio_reads_what_is_written(tmp_path: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    m = random_tree(3)
    write_urdf(m, tmp_path / "x.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "x.urdf"))
    assert model.nv == bc.compile(m, backend="numpy").nu


def test_slides_without_a_range_have_none_when_read_again(tmp_path: Path) -> None:
    """URDF wants limits of every slide."""
    m = bc.Mechanism("lift")
    for name, lower in (("cabin", None), ("door", -0.5)):
        m.add_joint(name, bc.Prismatic("z"), m.ground, m.add_body(name, bc.Inertia.box(1.0, (0.1, 0.2, 0.3))))
        if lower is not None:
            m.set_range(name, lower)
    bc.save(m, tmp_path / "lift.urdf")
    again = bc.load(tmp_path / "lift.urdf")
    assert "cabin" not in again.ranges
    assert np.abs(bc.compile(again, backend="numpy").random_state(size=20, seed=1).q).max() < 100.0
