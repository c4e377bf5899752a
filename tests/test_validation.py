"""Bad input of every kind: the error comes, is of the right type, and names the part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc

NAN, INF = float("nan"), float("inf")
BOX = bc.Inertia.box(1.0, (0.1, 0.2, 0.3), (0.1, 0.0, 0.0))
Bad = Callable[[bc.Mechanism], object]


def arm() -> bc.Mechanism:
    """Two bodies, "upper" and "lower", on the hinges "hip" and "knee", with a frame and a wrench."""
    m = bc.Mechanism("arm")
    upper, lower = m.add_body("upper", BOX), m.add_body("lower", BOX)
    m.add_joint("hip", bc.Revolute("z"), m.ground, upper)
    m.add_joint("knee", bc.Revolute("y"), upper, lower, bc.Pose((0.3, 0.0, 0.0)))
    m.add_frame("tool", lower, bc.Pose((0.2, 0.0, 0.0)))
    m.add_wrench("push", lower, force=(1.0, 0.0, 0.0))
    return m


def refused(bad: Bad, message: str, error: type[Exception] = bc.ModelError) -> None:
    """`bad` raises with this message, and leaves the mechanism as it was."""
    m = arm()
    before = (m.bodies, m.joints, m.frames, m.wrenches, m.gravity, dict(m.parameters))
    with pytest.raises(error, match=message):
        bad(m)
    assert before == (m.bodies, m.joints, m.frames, m.wrenches, m.gravity, dict(m.parameters))


# -- names -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("bad", "message"), [
    (lambda m: m.add_body("upper"), "body 'upper' exists already"),
    (lambda m: m.add_body("ground"), "body 'ground' exists already"),
    (lambda m: m.add_body("tool"), "body 'tool'.*frame"),
    (lambda m: m.add_frame("upper", "lower"), "frame 'upper'.*body"),
    (lambda m: m.add_frame("tool", "lower"), "frame 'tool' exists already"),
    (lambda m: m.add_joint("knee", bc.Weld(), "upper", "lower"), "joint 'knee' exists already"),
    (lambda m: m.add_wrench("push", "upper"), "wrench 'push' exists already"),
    (lambda m: m.add_body(""), "body names are non-empty strings"),
    (lambda m: m.add_body(3), "body names are non-empty strings, got 3"),
    (lambda m: m.add_joint("new", bc.Weld(), "uper", "lower"), "joint 'new': no body called 'uper'.*mean 'upper'"),
    (lambda m: m.add_joint("new", bc.Weld(), "upper", 7), "joint 'new': no body called 7"),
    (lambda m: m.add_frame("new", "uper"), "no body called 'uper'.*mean 'upper'"),
    (lambda m: m.add_wrench("new", "uper"), "no body called 'uper'.*mean 'upper'"),
    (lambda m: m.add_wrench("new", "ground"), "wrench 'new'.*ground"),
    (lambda m: m.body("tip"), "no body called 'tip' in mechanism 'arm'"),
    (lambda m: m.joint("knie"), "no joint called 'knie'.*mean 'knee'"),
])
def test_names(bad: Bad, message: str) -> None:
    refused(bad, message)


def test_bodies_of_another_mechanism() -> None:
    other = arm()
    refused(lambda m: m.add_joint("new", bc.Weld(), other.body("upper"), "lower"), "joint 'new'.*'upper' belongs to")
    refused(lambda m: m.add_joint("new", bc.Weld(), "upper", other.ground), "joint 'new'.*'ground' belongs to another")
    refused(lambda m: m.add_wrench("new", other.body("lower")), "'lower' belongs to another mechanism")
    refused(lambda m: m.add_frame("new", other.body("lower")), "'lower' belongs to another mechanism")


# -- parts -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("bad", "message"), [
    (lambda m: m.add_joint("new", "revolute", "upper", "lower"), "joint 'new': needs a joint type.*got str"),
    (lambda m: m.add_joint("new", bc.Revolute, "upper", "lower"), "joint 'new': needs a joint type"),
    (lambda m: m.add_joint("new", bc.Weld(), "upper", "upper"), "joint 'new' connects body 'upper' with itself"),
    (lambda m: m.add_joint("new", bc.Weld(), "upper", "lower", (1, 2, 3)), "joint 'new': poses must be bellcrank.Pose"),
    (lambda m: m.add_joint("new", bc.Weld(), "upper", "lower", at=(1, 2, 3)), "joint 'new': body 'upper' mixes"),
    (lambda m: m.add_joint("new", bc.Weld(), "upper", "lower", bc.Pose((1, 2, 3)), at=(1, 2, 3)),
     "joint 'new': give either `at` or"),
    (lambda m: m.add_joint("new", bc.Weld(), "upper", "lower", at=(1, 2)), "three numbers, got 2"),
    (lambda m: m.add_body("new", 3.0), "body 'new': inertia must be a bellcrank.Inertia or .*FlexibleBody, got float"),
    (lambda m: m.add_frame("new", "lower", (1, 2, 3)), "frame 'new'.*Pose"),
    (lambda m: m.add_wrench("new", "lower", force=(1, 2)), "wrench 'new': force: needs three numbers, got 2"),
    (lambda m: m.add_wrench("new", "lower", moment=(1, NAN, 0)), "wrench 'new': moment.*not finite"),
    (lambda m: m.add_wrench("new", "lower", at=(1, INF, 0)), "wrench 'new': at.*not finite"),
    (lambda m: m.add_wrench("new", "lower", force="abc"), "wrench 'new': force"),
    (lambda m: m.add_wrench("new", "lower", at=(lambda t: t, 0, 0)), "wrench 'new': at"),
    (lambda m: m.add_wrench("new", "lower", axes="local"), "wrench 'new': axes must be 'world' or 'body', got 'local'"),
    (lambda m: m.add_wrench("new", "lower", force=(lambda t: None, 0, 0)), "wrench 'new'"),
    (lambda m: m.add_wrench("new", "lower", force=(lambda: 1.0, 0, 0)), "wrench 'new'"),
    (lambda m: setattr(m, "gravity", (0.0, 0.0)), "gravity: needs three numbers, got 2"),
    (lambda m: setattr(m, "gravity", (0.0, NAN, 0.0)), "gravity.*not finite"),
    (lambda m: bc.Mechanism("new", gravity=(0, 0, INF)), "mechanism 'new': gravity.*not finite"),
    (lambda m: bc.Mechanism("new", gravity=9.81), "mechanism 'new': gravity"),
    (lambda m: m.parameter("new", "long"), "parameter 'new'"),
])
def test_parts(bad: Bad, message: str) -> None:
    refused(bad, message)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: bc.Revolute((0, 0, 0)), "Revolute axis.*no direction"),
    (lambda: bc.Prismatic((0, NAN, 1)), "Prismatic axis.*not finite"),
    (lambda: bc.Revolute((0, INF, 1)), "Revolute axis.*not finite"),
    (lambda: bc.Revolute((1, 0)), r"Revolute axis: needs three numbers, got shape \(2,\)"),
    (lambda: bc.Revolute("w"), "Revolute axis: 'w' is not an axis name"),
    (lambda: bc.Revolute(("a", "b", "c")), "Revolute axis.*not three numbers"),
    (lambda: bc.Cylindrical(3.0), "Cylindrical axis"),
    (lambda: bc.Screw("z", NAN), "Screw pitch: nan is not finite"),
    (lambda: bc.Screw("z", "coarse"), "Screw pitch"),
    (lambda: bc.Universal("x", "-x"), "Universal: axis1 and axis2 are parallel"),
    (lambda: bc.Universal((1, 0, 0), (1, 1e-9, 0)), "Universal: axis1 and axis2 are parallel"),
    (lambda: bc.Planar((0, 0, 0)), "Planar normal.*no direction"),
    (lambda: bc.Pose((1, 2)), "Pose position: needs three numbers, got 2"),
    (lambda: bc.Pose((1, 2, NAN)), "Pose position.*not finite"),
    (lambda: bc.Pose("abc"), "Pose position"),
    (lambda: bc.Pose(5.0), "Pose position"),
    (lambda: bc.Pose((0, 0, 0), (1, 0, 0, 0.1)), "Pose rotation: the quaternion.*has length 1.0049.*not 1"),
    (lambda: bc.Pose((0, 0, 0), (0, 0, 0, 0)), "Pose rotation.*length 0"),
    (lambda: bc.Pose((0, 0, 0), (1, 0, 0, NAN)), "Pose rotation.*not finite"),
    (lambda: bc.Pose((0, 0, 0), (1, 0, 0)), "Pose rotation.*shape"),
    (lambda: bc.Pose((0, 0, 0), np.diag([1.0, 1.0, -1.0])), "Pose rotation.*not a rotation matrix"),
    (lambda: bc.Pose((0, 0, 0), 2.0 * np.eye(3)), "Pose rotation.*not a rotation matrix"),
    (lambda: bc.Pose((0, 0, 0), "turned"), "Pose rotation"),
    (lambda: bc.Pose.about((0, 0, 0), 1.0), "Pose axis.*no direction"),
    (lambda: bc.Pose.about("z", NAN), "not finite"),
    (lambda: bc.Pose.rpy((0, 0, 0), INF, 0, 0), "not finite"),
    (lambda: bc.Inertia(-1.0), "mass -1 kg is negative"),
    (lambda: bc.Inertia(NAN), "Inertia mass.*not finite"),
    (lambda: bc.Inertia("heavy"), "Inertia mass"),
    (lambda: bc.Inertia(1.0, (0, 0)), "Inertia com: needs 3 numbers, got 2"),
    (lambda: bc.Inertia(1.0, (0, INF, 0)), "Inertia com.*not finite"),
    (lambda: bc.Inertia(1.0, (0, 0, 0), (1.0, 1.0, -1.0)), "not positive"),
    (lambda: bc.Inertia(1.0, (0, 0, 0), [[1, 2, 0], [2, 1, 0], [0, 0, 1]]), "not positive"),
    (lambda: bc.Inertia(1.0, (0, 0, 0), (1.0, 1.0, 2.5)), "triangle inequality"),
    (lambda: bc.Inertia(1.0, (0, 0, 0), [[1, 0.1, 0], [0.2, 1, 0], [0, 0, 1]]), "not symmetric"),
    (lambda: bc.Inertia(1.0, (0, 0, 0), (1.0, 2.0)), "needs a 3x3 matrix"),
    (lambda: bc.Inertia(1.0, (0, 0, 0), np.eye(4)), "needs a 3x3 matrix"),
    (lambda: bc.Inertia(1.0, (0, 0, 0), np.zeros((3, 2))), "needs a 3x3 matrix"),
    (lambda: bc.Inertia(1.0, (0, 0, 0), (1.0, NAN, 1.0)), "Inertia inertia.*not finite"),
    (lambda: bc.Inertia(1.0, (0, 0, 0), None), "Inertia inertia"),
    (lambda: bc.Inertia(0.0, (0, 0, 0), 1.0), "no mass"),
    (lambda: bc.Inertia.cylinder(1.0, 0.1, 1.0, "w"), "axis 'w' must be"),
    (lambda: bc.Inertia.rod(1.0, (0, 0), (1, 0, 0)), "Inertia"),
    (lambda: bc.Inertia.box(1.0, (1, 1)), "Inertia"),
    (lambda: bc.Inertia.sphere(-1.0, 1.0), "negative"),
])
def test_joints_poses_and_inertias(make: Callable[[], object], message: str) -> None:
    with pytest.raises(bc.ModelError, match=message):
        make()


def test_inertias_on_the_edge_are_allowed() -> None:
    """Flat and slender bodies meet the triangle inequality exactly, and rounding must not refuse them."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        bc.Inertia.rod(rng.uniform(0.1, 10.0), rng.normal(size=3), rng.normal(size=3))
        turn = rng.normal(size=4)
        plate = bc.Inertia.box(2.0, (0.3, 0.5, 0.0)).transformed(bc.Pose((1, 2, 3), turn / np.linalg.norm(turn)))
        assert bc.Inertia(plate.mass, plate.com, _matrix(plate)).problem() is None
    assert bc.Inertia.point(1.0).problem() is None
    assert bc.Inertia(1.0, (0, 0, 0), (1.0, 1.0, 2.5), checked=False).problem() is not None


def _matrix(inertia: bc.Inertia) -> list[list[Any]]:
    xx, xy, xz, yy, yz, zz = inertia.inertia
    return [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]


# -- compiling -------------------------------------------------------------------------------------
def with_(bodies: dict[str, bc.Inertia], joints: list[tuple[str, bc.Joint, str, str]]) -> bc.Mechanism:
    m = bc.Mechanism("machine")
    for name, inertia in bodies.items():
        m.add_body(name, inertia)
    for name, joint, parent, child in joints:
        m.add_joint(name, joint, parent, child, bc.Pose((0.0, 0.0, 0.5)))
    return m


NONE, ROD = bc.Inertia.zero(), bc.Inertia.rod(1.0, (0, 0, 0), (0, 0, 1))


@pytest.mark.parametrize(("machine", "message"), [
    (with_({}, []), "'machine' has no bodies"),
    (with_({"a": BOX}, [("w", bc.Weld(), "ground", "a")]), "'machine' has no joint that can move"),
    (with_({"a": BOX, "b": BOX, "c": BOX}, [("j", bc.Weld(), "b", "c")]), "'machine'.*'a', 'b', 'c'.*Free"),
    (with_({f"b{i}": BOX for i in range(9)}, []), "'b0', 'b1', 'b2', 'b3', 'b4' and 4 more"),
    (with_({"a": BOX, "leaf": NONE}, [("h", bc.Revolute("z"), "ground", "a"), ("tip", bc.Revolute("x"), "a", "leaf")]),
     "joint 'tip'.*'leaf' is massless"),
    (with_({"rod": ROD}, [("spin", bc.Revolute("z"), "ground", "rod")]), "joint 'spin': no inertia.*'rod'"),
    (with_({"bob": bc.Inertia.point(1.0)}, [("pin", bc.Revolute("z"), "ground", "bob")]), "joint 'pin'.*'bob'"),
    (with_({"rod": ROD}, [("ball", bc.Spherical(), "ground", "rod")]), "joint 'ball'.*'rod'"),
    (with_({"bob": bc.Inertia.point(1.0, (1, 0, 0))}, [("fly", bc.Free(), "ground", "bob")]), "joint 'fly'.*'bob'"),
    (with_({"a": NONE, "b": BOX}, [("one", bc.Revolute("z"), "ground", "a"), ("two", bc.Revolute("z"), "a", "b")]),
     "joint 'one'.*'a'"),
    (with_({"a": NONE, "b": BOX}, [("one", bc.Spherical(), "ground", "a"), ("two", bc.Revolute("z"), "a", "b")]),
     "joint 'one'.*'a'"),
    (with_({"a": BOX, "b": NONE, "c": NONE}, [("one", bc.Revolute("z"), "ground", "a"),
                                              ("two", bc.Revolute("y"), "a", "b"), ("three", bc.Weld(), "b", "c")]),
     "joint 'two'.*'b'"),
])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_machines_that_cannot_be_computed(machine: bc.Mechanism, message: str, backend: str) -> None:
    with pytest.raises(bc.ModelError, match=message):
        bc.compile(machine, backend=backend)


@pytest.mark.parametrize("n", [1, 20, 450])
@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.3, -0.5, 0.7)], ids=["exactly", "but for rounding"])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_hinge_without_inertia_at_the_end_of_a_chain(backend: str, axis: tuple[float, ...], n: int) -> None:
    """Large machines are not looked at closely when they are compiled; still no number must come out."""
    m = bc.Mechanism("long")
    previous = m.ground
    for i in range(n):
        last = i == n - 1
        body = m.add_body(f"b{i}", bc.Inertia.rod(1.0, (0, 0, 0), axis) if last else BOX)
        m.add_joint(f"j{i}", bc.Revolute(axis if last else "xy"[i % 2]), previous, body, bc.Pose((0, 0, 0.5)))
        previous = body
    with pytest.raises((bc.ModelError, bc.SingularError)):
        system = bc.compile(m, backend=backend)
        system.forward_dynamics(*system.random_state(np.random.default_rng(0)))


def four_bar() -> bc.Mechanism:
    m = bc.Mechanism("four-bar", gravity=(0, -9.81, 0))
    crank = m.add_body("crank", bc.Inertia.rod(1.5, (0, 0, 0), (0.3, 0, 0)))
    coupler = m.add_body("coupler", bc.Inertia.rod(5.0, (0, 0, 0), (1.0, 0, 0)))
    rocker = m.add_body("rocker", bc.Inertia.rod(3.0, (0, 0, 0), (0.6, 0, 0)))
    m.add_joint("A", bc.Revolute("z"), m.ground, crank)
    m.add_joint("B", bc.Revolute("z"), crank, coupler, parent_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), coupler, rocker, parent_pose=bc.Pose((1.0, 0, 0)))
    m.add_joint("D", bc.Revolute("z"), rocker, m.ground, parent_pose=bc.Pose((0.6, 0, 0)),
                child_pose=bc.Pose((1.0, 0, 0)))
    return m


def test_compiling_loops_does_not_touch_the_description() -> None:
    m = four_bar()
    before = (m.bodies, m.joints, m.frames, m.wrenches)
    assert bc.compile(m).loops == ("D",)
    assert (m.bodies, m.joints, m.frames, m.wrenches) == before
    m.add_joint("E", bc.Spherical(), "crank", "rocker")  # which cannot close at the same time
    with pytest.raises(bc.AssemblyError, match="do not close"):
        bc.compile(m).assemble()


def test_two_joints_between_two_bodies_are_a_loop() -> None:
    m = arm()
    m.add_joint("second", bc.Revolute("y"), "lower", "upper")
    assert len(bc.compile(m).loops) == 1


@pytest.mark.parametrize(("options", "message"), [
    ({"method": "recursiv"}, "no method 'recursiv'.*recursive.*dense"),
    ({"method": None}, "no method None"),
    ({"backend": "opencl"}, "no backend 'opencl'"),
    ({"schedule": "fast"}, "schedule 'fast' must be"),
    ({"schedule": "fast", "backend": "numpy"}, "schedule 'fast' must be"),
])
def test_options_of_compile(options: dict[str, Any], message: str) -> None:
    with pytest.raises(bc.ModelError, match=message):
        bc.compile(arm(), **options)


def test_compile_needs_a_mechanism() -> None:
    with pytest.raises(bc.ModelError, match="needs a bellcrank.Mechanism, got str"):
        bc.compile("pendulum")  # type: ignore[arg-type]
    with pytest.raises(bc.FileError, match="'pendulumm'.*pendulum"):
        bc.load("pendulumm")


@pytest.mark.parametrize("n", [3, 60])
def test_the_dense_method_cannot_be_rolled(n: int) -> None:
    """It says so, or computes some other way; it does not fail in the middle of tracing."""
    m = bc.examples.chains.random_chain(n)
    for schedule in ("rolled", "auto") if n == 60 else ("rolled",):
        try:
            system = bc.compile(m, "dense", schedule=schedule)
            q, u = system.random_state(np.random.default_rng(0))
            udot = system.forward_dynamics(q, u)
        except bc.BellcrankError as error:
            assert "dense" in str(error)
        else:
            wanted = bc.compile(m, backend="numpy").forward_dynamics(q, u)
            np.testing.assert_allclose(udot, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


# -- states ----------------------------------------------------------------------------------------
def walker() -> bc.Mechanism:
    """A free body with a leg: quaternions, angles and lengths."""
    m = bc.Mechanism("walker")
    trunk, leg, foot = (m.add_body(name, BOX) for name in ("trunk", "leg", "foot"))
    m.add_joint("floating", bc.Free(), m.ground, trunk)
    m.add_joint("hip", bc.Revolute("y"), trunk, leg, bc.Pose((0.1, 0.2, 0.0)))
    m.add_joint("ankle", bc.Cylindrical("x"), leg, foot, bc.Pose((0.0, 0.0, -0.4)))
    return m


WAYS = [("numpy", "auto"), ("llvm", "unrolled"), ("llvm", "rolled")]
SYSTEMS = {way: bc.compile(walker(), backend=way[0], schedule=way[1]) for way in WAYS}


@pytest.fixture(params=WAYS, ids="-".join)
def system(request: pytest.FixtureRequest) -> bc.System:
    return SYSTEMS[request.param]


def test_sizes_and_names(system: bc.System) -> None:
    assert (system.nq, system.nu, system.dof) == (10, 9, 9)
    assert system.coordinate_names == ("floating.qw", "floating.qx", "floating.qy", "floating.qz", "floating.x",
                                       "floating.y", "floating.z", "hip.angle", "ankle.angle", "ankle.slide")
    assert system.speed_names[:7] == ("floating.wx", "floating.wy", "floating.wz", "floating.vx", "floating.vy",
                                      "floating.vz", "hip.angle")
    assert system.body_names == ("trunk", "leg", "foot")
    assert system.joint_names == ("floating", "hip", "ankle")


@pytest.mark.parametrize(("q", "message"), [
    (np.zeros(9), r"q: the last axis must have 10 entries.*got shape \(9,\)"), (np.zeros((3, 11)), r"q.*\(3, 11\)"),
    (1.0, r"q.*got shape \(\)"), (None, "q"), ("state", "q: str cannot be read"), ([[1.0], [1.0, 2.0]], "q"),
    ([1j] * 10, "q"), (np.zeros(10, dtype=complex), "q"), ({"hip": 1.0}, "q"), (np.array([None] * 10), "q"),
    (np.array(["a"] * 10), "q")], ids=str)
def test_coordinates_of_the_wrong_shape_or_type(system: bc.System, q: Any, message: str) -> None:
    u = np.zeros(9)
    for call in (lambda: system.forward_dynamics(q, u), lambda: system.mass_matrix(q), lambda: system.pose(q, "foot"),
                 lambda: system.integrate(q, u), lambda: system.jacobian(q, "leg")):
        with pytest.raises(bc.StateError, match=message):
            call()


@pytest.mark.parametrize("which", ["u", "tau", "udot"])
def test_speeds_and_forces_of_the_wrong_shape(system: bc.System, which: str) -> None:
    q, good, bad = system.neutral(), np.zeros(9), np.zeros(10)
    with pytest.raises(bc.StateError, match=rf"{which}: the last axis must have 9 entries.*\(10,\)"):
        if which == "udot":
            system.inverse_dynamics(q, good, bad)
        else:
            system.forward_dynamics(q, *((bad, good) if which == "u" else (good, bad)))


def test_batches_that_do_not_fit(system: bc.System) -> None:
    q, u = system.random_state(np.random.default_rng(0), 3)
    for call in (lambda: system.forward_dynamics(q, u[:2]), lambda: system.bias(q, u[:, None][:, [0, 0]]),
                 lambda: system.integrate(q, u[:2]), lambda: system.difference(q, q[:2])):
        with pytest.raises(bc.StateError, match=r"axes \(3,\), \("):
            call()


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_states_that_are_not_finite(system: bc.System, bad: float) -> None:
    """The message names the coordinate and the place in the batch."""
    q, u = system.random_state(np.random.default_rng(0), (2, 3))
    for name, at, label in (("q", 7, "hip.angle"), ("q", 2, "floating.qy"), ("u", 8, "ankle.slide"),
                            ("tau", 0, "floating.wx")):
        given = {"q": q.copy(), "u": u.copy(), "tau": u.copy()}
        given[name][1, 2, at] = bad
        with pytest.raises(bc.StateError, match=rf"{name}\[{at}\] \({label}\).*{bad}.*\(1, 2\)"):
            system.forward_dynamics(**given)
        given = {k: v[1, 2] for k, v in given.items()}
        with pytest.raises(bc.StateError, match=rf"{name}\[{at}\] \({label}\) is {bad}"):
            system.forward_dynamics(**given)
    for call in (lambda x: system.pose(x, "foot"), system.mass_matrix, system.potential_energy):
        with pytest.raises(bc.StateError, match="hip.angle"):
            call(np.where(np.arange(10) == 7, bad, q[0, 0]))


def test_a_state_without_orientation(system: bc.System) -> None:
    q = system.neutral()
    q[:4] = 0.0
    with pytest.raises(bc.SingularError, match="forward_dynamics of 'walker'.*quaternion"):
        system.forward_dynamics(q, np.ones(9))
    q = np.stack([system.neutral(), q])
    with pytest.raises(bc.SingularError, match=r"batch index \(1,\)"):
        system.forward_dynamics(q, np.ones(9))


@pytest.mark.parametrize(("wrenches", "error", "message"), [
    ({"feet": np.zeros(6)}, bc.ModelError, "no body called 'feet'"),
    ({"ground": np.zeros(6)}, bc.ModelError, "'ground'"),
    ({"foot": np.zeros(3)}, bc.StateError, "wrench on 'foot'.*6 entries"),
    ({"foot": "up"}, bc.StateError, "wrench on 'foot'"),
    ({"foot": np.zeros((2, 6)), "leg": np.zeros((3, 6))}, bc.StateError, "fit"),
    (np.zeros((2, 6)), bc.StateError, r"wrenches.*\(\.\.\., 3, 6\).*got \(2, 6\)"),
    (np.zeros(18), bc.StateError, "wrenches"),
    ("down", bc.StateError, "wrenches"),
    ({"leg": [0, 0, NAN, 0, 0, 0]}, bc.StateError, "'leg'"),
])
def test_wrenches(system: bc.System, wrenches: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        system.forward_dynamics(system.neutral(), np.zeros(9), wrenches=wrenches)


def test_places_and_times(system: bc.System) -> None:
    q, u = system.random_state(np.random.default_rng(0))
    for call in (lambda b: system.pose(q, b), lambda b: system.velocity(q, u, b), lambda b: system.jacobian(q, b)):
        with pytest.raises(bc.ModelError, match="'foo'.*mean 'foot'"):
            call("foo")
    with pytest.raises(bc.StateError, match="point"):
        system.velocity(q, u, "foot", (1.0, 2.0))
    with pytest.raises(bc.ModelError, match="no function 'backward_dynamics'"):
        system.bind("backward_dynamics", q, u)
    with pytest.raises(bc.ModelError, match="no function 'backward_dynamics'"):
        system.operation_count("backward_dynamics")
    for tau in (u[:3], u.astype(np.float32), np.zeros((9, 2))[:, 0], [0.0] * 9):
        with pytest.raises(bc.StateError, match="bind.'forward_dynamics'.*tau"):
            system.bind("forward_dynamics", q, u, tau)
    with pytest.raises(bc.StateError, match="bind.'forward_dynamics'.*q, u, tau"):
        system.bind("forward_dynamics", q)
    m = arm()
    m.prescribe("hip", lambda t: t)
    timed = bc.compile(m, backend=system.kernels.backend)
    for t, message in ((NAN, "t is nan"), ("now", "t: str"), (None, "t")):
        with pytest.raises(bc.StateError, match=message):
            timed.forward_dynamics([0, 0], [0, 0], t=t)


# -- unusual but good input ------------------------------------------------------------------------
def test_empty_batches(system: bc.System) -> None:
    q, u = np.zeros((0, 10)), np.zeros((0, 9))
    assert system.forward_dynamics(q, u).shape == (0, 9)
    assert system.forward_dynamics(q, u[0:0], np.zeros(9)).shape == (0, 9)
    assert system.forward_dynamics(np.zeros((4, 0, 10)), np.zeros(9)).shape == (4, 0, 9)
    assert system.mass_matrix(q).shape == (0, 9, 9)
    assert system.pose(q, "foot").position.shape == (0, 3)
    assert system.jacobian(q, "foot").shape == (0, 6, 9)
    assert system.reactions(q, u)["hip"].shape == (0, 6)
    assert system.kinetic_energy(q, u).shape == (0,)


def test_integers_lists_strides_and_many_axes(system: bc.System) -> None:
    rng = np.random.default_rng(0)
    q, u = system.random_state(rng, (2, 1, 3, 1))
    tau = rng.normal(size=(4, 1, 5, 9))
    udot = system.forward_dynamics(q, u, tau)
    assert udot.shape == (2, 4, 3, 5, 9)
    one = system.forward_dynamics(q[1, 0, 2, 0], u[1, 0, 2, 0], tau[3, 0, 4])
    np.testing.assert_allclose(udot[1, 3, 2, 4], one, rtol=1e-11, atol=1e-11)
    wide = np.zeros((2, 1, 3, 1, 20))
    wide[..., ::2] = q
    assert np.array_equal(system.forward_dynamics(wide[..., ::2], u, tau), udot)
    assert np.array_equal(system.forward_dynamics(np.asfortranarray(q), np.asfortranarray(u), tau), udot)
    assert np.array_equal(system.forward_dynamics(q[::-1], u[::-1], tau)[::-1], udot)
    whole = np.arange(10) % 3
    exact = system.forward_dynamics(whole.astype(float), np.ones(9))
    assert np.array_equal(system.forward_dynamics(whole, np.ones(9, dtype=int)), exact)
    assert np.array_equal(system.forward_dynamics(whole.tolist(), (1,) * 9), exact)
    assert np.array_equal(system.forward_dynamics(whole.astype(np.float32), np.ones(9, dtype=bool)), exact)
    frozen = whole.astype(float)
    frozen.flags.writeable = False
    assert np.array_equal(system.forward_dynamics(frozen, np.ones(9)), exact)
    assert np.array_equal(system.forward_dynamics(whole.astype(">f8"), np.ones(9)), exact)


@pytest.mark.parametrize(("wrong", "text"), [
    (lambda m: m.add_coupler("g", {"shoulder": 1, "elbow": 1}, float("nan")), "coupler 'g': offset nan is not finite"),
    (lambda m: m.add_coupler("g", {"shoulder": 1, "elbow": 1}, "x"), "coupler 'g': offset 'x' is not a number"),
    (lambda m: m.parameter("", 1.0), "parameter names are non-empty"),
    (lambda m: m.parameter(3, 1.0), "parameter names are non-empty"),
    (lambda m: m.add_joint_force("f", "elbow", lambda x, r: [][0]), "force law takes a displacement"),
    (lambda m: m.add_joint_force("f", "elbow", lambda x, r: float("nan")), "not finite"),
    (lambda m: m.add_joint_force("f", "elbow", lambda x, r: x, 0.5), "no coordinate 0.5"),
    (lambda m: m.prescribe("elbow", lambda t: t, 0.5), "coordinate 0.5 is not in"),
    (lambda m: m.add_spring("s", "upper", "lower", (0, 0, 0), (0, 0, 1), law=lambda x, r: x, stiffness=5.0),
     "a law takes the place of stiffness"),
    (lambda m: m.add_body("\ud800"), "half a character"),
])
def test_what_only_a_file_would_have_refused(wrong: object, text: str) -> None:
    with pytest.raises(bc.ModelError, match=text):
        wrong(bc.load("double_pendulum"))  # type: ignore[operator]


def test_laws_may_be_singular_where_they_are_tried() -> None:
    m = bc.load("double_pendulum")
    m.add_joint_force("f", "elbow", lambda x, r: 1.0 / (x - 0.1))
    m.add_joint_spring("p", "shoulder", potential=lambda x: 1.0 / (x - 0.1))
    assert np.isfinite(bc.compile(m).forward_dynamics([0.3, 0.4], [0.0, 0.0])).all()


def test_joints_that_nothing_resists_are_an_ordinary_error() -> None:
    """Of a public type, naming joint and body and saying what helps."""
    massless = arm()
    massless.add_joint("swivel", bc.Revolute("z"), "lower", massless.add_body("tag"))
    thin = arm()
    thin.add_joint("swivel", bc.Revolute("x"), "lower", thin.add_body("tag", bc.Inertia(1.0, (0.3, 0, 0), (0, 1, 1))))
    for m, why in ((massless, "'tag' is massless"), (thin, "no inertia about its axis .body 'tag'")):
        with pytest.raises(bc.ModelError, match=rf"joint 'swivel'.*{why}.*compile with lock=\['swivel'\]") as caught:
            bc.compile(m)
        assert type(caught.value) is bc.ModelError
        assert bc.compile(m, lock="massless").nu == bc.compile(arm()).nu + 1
