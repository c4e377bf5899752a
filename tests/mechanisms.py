"""Random trees for hypothesis: every joint type, every kind of awkward geometry.

Hypothesis chooses the *structure* (a `Tree` of `Part`s, which shrinks and prints well); the numbers come from
a random generator with a seed, so that a failing example is reproduced by ``build(Tree(...))``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank import math as bm

Floats = npt.NDArray[np.float64]
EPS = float(np.finfo(float).eps)

JOINTS = ("Revolute", "Prismatic", "Screw", "Cylindrical", "Universal", "Planar", "Spherical", "Free", "Weld")
AXIAL = ("Revolute", "Prismatic", "Screw", "Cylindrical")
#: how a joint lies relative to the inboard joint of the body that carries it
GEOMETRIES = ("general", "coincident", "parallel", "nearly parallel", "intersecting", "zero", "aligned")

#: more examples, and other ones every time, for long runs: BELLCRANK_TEST_EFFORT=20 pytest ...
EFFORT = float(os.environ.get("BELLCRANK_TEST_EFFORT", "1"))
#: the part of the examples that everyday runs try: all tests are to take a quarter of an hour on two cores
EVERYDAY = 0.7


def examples(n: int) -> settings:
    """Settings of a property test with `n` examples, the same ones in every run unless effort is asked for."""
    everyday = EFFORT == 1.0
    return settings(max_examples=max(1, int(n * (EVERYDAY if everyday else EFFORT))), deadline=None,
                    derandomize=everyday, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Part:
    """One body and the joint that carries it."""

    joint: str
    parent: int  #: index of the carrying part, -1 for the ground
    geometry: str = "general"
    tilt: float = 0.0  #: angle between nearly parallel axes
    backwards: bool = False  #: the joint is listed from the body to its carrier
    inertia: str = "general"  #: or "plain" (many zeros), "massless"
    driven: int = 0  #: bit i: coordinate i follows a law of time (quaternion joints: any bit, as a whole)
    wrench: str = ""  #: "world", "body" or nothing


@dataclass(frozen=True)
class Tree:
    """A mechanism to `build`."""

    parts: tuple[Part, ...]
    seed: int = 0


# -- strategies -----------------------------------------------------------------------------------
@st.composite
def parts(draw: st.DrawFn, index: int, chain: bool, driven: bool, wrenches: bool, joints: tuple[str, ...]) -> Part:
    parent = index - 1 if chain or index == 0 else draw(st.integers(-1, index - 1))
    geometry = draw(st.sampled_from(GEOMETRIES))
    return Part(
        draw(st.sampled_from(joints)), parent, geometry,
        10.0 ** -draw(st.integers(3, 9)) if geometry == "nearly parallel" else 0.0,
        draw(st.booleans()), draw(st.sampled_from(("general", "general", "plain", "massless"))),
        draw(st.sampled_from((0, 0, 0, 1, 2, 3, 7))) if driven else 0,
        draw(st.sampled_from(("", "", "world", "body"))) if wrenches else "")


@st.composite
def trees(draw: st.DrawFn, max_bodies: int = 7, driven: bool = True, wrenches: bool = True,
          joints: tuple[str, ...] = JOINTS) -> Tree:
    """Chains and branched trees that `bellcrank.compile` accepts."""
    n = draw(st.integers(1, max_bodies))
    chain = draw(st.booleans())
    chosen = tuple(draw(parts(i, chain, driven, wrenches, joints)) for i in range(n))
    return Tree(legal(chosen), draw(st.integers(0, 2**32 - 1)))


def legal(chosen: tuple[Part, ...]) -> tuple[Part, ...]:
    """`chosen` with mass where it is needed: no body that nothing holds back, and something that moves."""
    out = list(chosen)
    if all(p.joint == "Weld" for p in out):
        out[-1] = _with(out[-1], joint="Revolute")
    for i, part in enumerate(out):
        if part.inertia == "massless" and not _may_be_massless(out, i):
            out[i] = _with(part, inertia="general")
    for i, part in enumerate(out):  # the body behind a massless one turns about another axis
        if part.inertia == "massless" and part.joint != "Weld":
            child = _first_child(out, i)
            assert child is not None
            out[child] = _with(out[child], geometry="general", inertia="general")
    return tuple(out)


def _with(part: Part, **changes: Any) -> Part:
    return Part(**{**part.__dict__, **changes})


def _first_child(chosen: list[Part], index: int) -> int | None:
    return next((i for i, p in enumerate(chosen) if p.parent == index), None)


def _may_be_massless(chosen: list[Part], index: int) -> bool:
    part, single = chosen[index], ("Revolute", "Prismatic", "Screw")
    if part.joint == "Weld":  # merged with what carries it
        return part.parent < 0 or chosen[part.parent].inertia != "massless"
    child = _first_child(chosen, index)
    return (part.joint in single and child is not None and chosen[child].joint in single
            and chosen[child].inertia != "massless")


# -- building -------------------------------------------------------------------------------------
def turn(rng: np.random.Generator) -> Floats:
    """A uniformly distributed unit quaternion."""
    q = rng.normal(size=4)
    return np.asarray(q / np.linalg.norm(q))


def inertia(rng: np.random.Generator, kind: str = "general") -> bc.Inertia:
    if kind == "massless":
        return bc.Inertia.zero()
    mass = float(rng.uniform(0.5, 2.0))
    if kind == "plain":
        return bc.Inertia.box(mass, rng.uniform(0.2, 0.6, 3).tolist(), (0.0, 0.0, float(rng.uniform(-0.3, 0.3))))
    spread = 0.15 * rng.normal(size=(3, 3))
    second = mass * (spread @ spread.T + 0.01 * np.eye(3))
    return bc.Inertia(mass, 0.15 * rng.normal(size=3), np.trace(second) * np.eye(3) - second)


def make_joint(rng: np.random.Generator, part: Part, along: Floats) -> bc.Joint:
    """A joint with general axes, aligned ones, or (parallel and coincident joints) its first axis `along`."""
    axis: Any = rng.normal(size=3)
    if part.geometry in ("coincident", "parallel", "nearly parallel"):
        axis = along
    elif part.geometry == "aligned":
        axis = str(rng.choice(["x", "y", "z", "-x", "-y", "-z"]))
    match part.joint:
        case "Screw":
            return bc.Screw(axis, float(rng.choice([0.05, -0.1, 0.3])))
        case "Universal":
            other: Any = rng.normal(size=3)
            if part.geometry == "aligned":
                other = "x" if axis[-1] == "z" else "z"
            elif rng.random() < 0.5:
                other = np.cross(axis, other)
            return bc.Universal(axis, other)
        case "Spherical" | "Free" | "Weld" as name:
            return getattr(bc, name)()
        case name:
            return getattr(bc, name)(axis)


def _axis(joint: bc.Joint) -> Floats:
    """The direction that parallel joints share."""
    for name in ("axis", "axis2", "normal"):
        if hasattr(joint, name):
            return np.array(getattr(joint, name))
    return np.array([0.0, 0.0, 1.0])


def build(tree: Tree) -> bc.Mechanism:
    """The mechanism of a tree, gravity in a general direction, with a frame ``tool`` on the last body."""
    rng = np.random.default_rng(tree.seed)
    m = bc.Mechanism("random", gravity=rng.normal(size=3) * 5.0)
    sides: list[tuple[bc.Pose, Floats]] = []  # where each part's inboard joint lies in its body, and its axis
    for i, part in enumerate(tree.parts):
        body = m.add_body(f"b{i}", inertia(rng, part.inertia))
        here, along = sides[part.parent] if part.parent >= 0 else (bc.Pose(), np.array([0.0, 0.0, 1.0]))
        joint = make_joint(rng, part, along)
        outer = _outer_pose(rng, part, here, along)
        plain = part.geometry in ("zero", "aligned")
        inner = bc.Pose() if plain else bc.Pose(0.3 * rng.normal(size=3), turn(rng))
        sides.append((inner, _axis(joint)))
        support = m.ground if part.parent < 0 else m.body(f"b{part.parent}")
        ends = (body, support, inner, outer) if part.backwards else (support, body, outer, inner)
        m.add_joint(f"j{i}", joint, *ends)
        if part.driven:
            _prescribe(rng, m, f"j{i}", part.driven)
        if part.wrench:
            force: list[Any] = (3.0 * rng.normal(size=3)).tolist()
            force[0] = _swing(rng)
            m.add_wrench(f"w{i}", body, force=force, moment=rng.normal(size=3), at=0.2 * rng.normal(size=3),
                         axes=part.wrench)
    m.add_frame("tool", f"b{len(tree.parts) - 1}", bc.Pose(0.3 * rng.normal(size=3), turn(rng)))
    return m


def _outer_pose(rng: np.random.Generator, part: Part, here: bc.Pose, along: Floats) -> bc.Pose:
    """The joint in the carrier's body, whose own inboard joint lies at `here` with its axis `along`."""
    offset = 0.4 * rng.normal(size=3)
    on_axis = bc.Pose(along * float(rng.choice([0.0, 0.3])))
    match part.geometry:
        case "zero":
            return bc.Pose()
        case "aligned":
            return bc.Pose((float(rng.choice([0.0, 0.5])), 0.0, float(rng.choice([0.0, -0.25]))))
        case "coincident":
            return here @ on_axis
        case "parallel":
            return here @ bc.Pose(offset)
        case "nearly parallel":
            return here @ bc.Pose.about(np.cross(along, rng.normal(size=3)), part.tilt, offset)
        case "intersecting":
            return here @ on_axis @ bc.Pose((0.0, 0.0, 0.0), turn(rng))
        case _:
            return bc.Pose(offset, turn(rng))


def _swing(rng: np.random.Generator) -> Callable[[Any], Any]:
    """A smooth law of time."""
    a, b, c, d = (float(x) for x in rng.normal(size=4))
    return lambda t: a + b * bm.sin(c * t + d)


def _prescribe(rng: np.random.Generator, m: bc.Mechanism, name: str, bits: int) -> None:
    joint = m.joint(name).joint
    if joint.nu == 0:
        return
    if joint.nq != joint.nu:
        laws = [_swing(rng) for _ in range(joint.nq)]
        m.prescribe(name, lambda t: [2.5 + laws[0](t), *(law(t) for law in laws[1:])])
        return
    for i in range(joint.nu):
        if bits >> i & 1:
            m.prescribe(name, _swing(rng), i)


# -- states ---------------------------------------------------------------------------------------
@dataclass
class State:
    """Everything a system is asked about; prescribed entries of q and u are what the laws say."""

    q: Floats
    u: Floats
    tau: Floats
    udot: Floats
    t: float
    free: npt.NDArray[np.bool_]  #: speeds that are not prescribed


def mask(m: bc.Mechanism) -> npt.NDArray[np.bool_]:
    """For every speed, whether it is free."""
    return np.array([not driven for r in m.joints for driven in
                     (r.prescribed.mask(r.joint.nu) if r.prescribed else (False,) * r.joint.nu)], dtype=bool)


def state(m: bc.Mechanism, seed: int, size: tuple[int, ...] = ()) -> State:
    """A random state; now and then the neutral one at rest, where special cases hide."""
    system = bc.compile(m, backend="numpy")
    rng = np.random.default_rng(seed)
    q, u = system.random_state(rng, size)
    if rng.random() < 0.1:
        q, u = np.broadcast_to(system.neutral(), q.shape).copy(), 0.0 * u
    return State(q, u, 2.0 * rng.normal(size=u.shape), rng.normal(size=u.shape), float(rng.uniform(0.0, 3.0)), mask(m))


def condition(system: bc.System, s: State) -> float:
    """Condition number of the mass matrix of the free speeds, the largest of a batch."""
    if not s.free.any():
        return 1.0
    matrix = system.mass_matrix(s.q, t=s.t)[..., s.free, :][..., s.free]
    return float(np.linalg.cond(matrix).max())


# -- kinematics written out ------------------------------------------------------------------------
def rodrigues(axis: Floats, angle: float) -> Floats:
    """The rotation matrix of a turn about a unit vector."""
    cross = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    return np.asarray(np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross)


def _quaternion(q: Floats) -> Floats:
    w, x, y, z = q / np.linalg.norm(q)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def _joint_pose(joint: Any, q: Floats) -> tuple[Floats, Floats]:
    """Rotation and position of a joint's child side, straight from the definitions."""
    zero, name = np.zeros(3), type(joint).__name__
    if name == "Weld":
        return np.eye(3), zero
    if name in ("Spherical", "Free"):
        return _quaternion(q[:4]), zero if name == "Spherical" else q[4:]
    if name == "Universal":
        return rodrigues(np.array(joint.axis1), q[0]) @ rodrigues(np.array(joint.axis2), q[1]), zero
    if name == "Planar":
        n = np.array(joint.normal)
        start = np.array([0.0, 1.0, 0.0]) if abs(n[0]) > 0.9 else np.array([1.0, 0.0, 0.0])
        x = start - n * (n @ start)
        x /= np.linalg.norm(x)
        return rodrigues(n, q[2]), q[0] * x + q[1] * np.cross(n, x)
    axis = np.array(joint.axis)
    angle = 0.0 if name == "Prismatic" else q[0]
    slide = {"Prismatic": q[0], "Screw": getattr(joint, "pitch", 0.0) * q[0], "Revolute": 0.0}.get(name, q[-1])
    return rodrigues(axis, angle), axis * slide


def naive_poses(m: bc.Mechanism, q: Floats, t: float) -> dict[str, tuple[Floats, Floats]]:
    """Rotation and position of every body in the world, one state, by T_parent_child = P J(q) C^-1."""
    known: dict[int, tuple[Floats, Floats]] = {0: (np.eye(3), np.zeros(3))}
    starts = np.cumsum([0] + [r.joint.nq for r in m.joints])
    waiting = list(zip(m.joints, starts.tolist(), strict=False))
    while waiting:
        record, start = waiting.pop(0)
        if record.parent not in known and record.child not in known:
            waiting.append((record, start))
            continue
        values = q[start:start + record.joint.nq].copy()
        if record.prescribed is not None and record.prescribed.whole is not None:
            values = np.array(record.prescribed.whole(t))
        elif record.prescribed is not None:
            for i, law in enumerate(record.prescribed.laws):
                values[i] = law(t) if law is not None else values[i]
        step = _product((record.parent_pose.rotation, np.array(record.parent_pose.position)),
                        _product(_joint_pose(record.joint, values), _inverse(record.child_pose)))
        if record.parent in known:
            known[record.child] = _product(known[record.parent], step)
        else:
            known[record.parent] = _product(known[record.child], (step[0].T, -step[0].T @ step[1]))
    return {b.name: known[b.index] for b in m.bodies}


def _product(a: tuple[Floats, Floats], b: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    return a[0] @ b[0], a[0] @ b[1] + a[1]


def _inverse(pose: bc.Pose) -> tuple[Floats, Floats]:
    return pose.rotation.T, -pose.rotation.T @ np.array(pose.position)
