"""Random machines with loops for hypothesis: closed at q = 0 by construction, every joint type anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank import math as bm
from bellcrank.scalar.graph import Number

#: joint types by how often they shall appear
TREE = ("Revolute", "Revolute", "Universal", "Spherical", "Cylindrical", "Prismatic", "Planar", "Screw", "Free", "Weld")
LOOP = ("Revolute", "Spherical", "Universal", "Cylindrical", "Prismatic", "Planar", "Screw", "Weld", "Distance",
        "PointOnLine", "PointOnPlane", "Driven Distance", "Driven PointOnPlane", "Angle", "RollingBall", "RollingDisk",
        "KnifeEdge")


@dataclass(frozen=True)
class Graph:
    """A machine to `build`: tree joints (type, carrier), closing ones (type, two bodies), and decorations."""

    tree: tuple[tuple[str, int], ...]
    loops: tuple[tuple[str, int, int], ...]
    backwards: int = 0  #: bit i: joint i is listed from the child to the carrier
    driven: int = -1  #: a tree joint with a prescribed coordinate
    coupled: bool = False
    spring: bool = False
    planar: bool = False  #: all axes parallel: redundant conditions
    seed: int = 0


@st.composite
def graphs(draw: st.DrawFn, bodies: int = 6, loops: int = 3) -> Graph:
    n = draw(st.integers(2, bodies))
    tree = tuple((draw(st.sampled_from(TREE)), draw(st.integers(-1, i - 1))) for i in range(n))
    extra = []
    for _ in range(draw(st.integers(1, loops))):
        a = draw(st.integers(-1, n - 1))
        b = draw(st.integers(-1, n - 1).filter(lambda x, a=a: x != a))
        extra.append((draw(st.sampled_from(LOOP)), a, b))
    return Graph(tree, tuple(extra), draw(st.integers(0, 2**n - 1)), draw(st.integers(-3, n - 1)),
                 draw(st.integers(0, 5)) == 0, draw(st.integers(0, 3)) == 0, draw(st.integers(0, 3)) == 0,
                 draw(st.integers(0, 2**16)))


def joint(kind: str, rng: np.random.Generator, planar: bool) -> object:
    axis = (0.0, 0.0, 1.0) if planar else tuple(rng.normal(size=3))
    if kind == "Universal":
        return bc.Universal(tuple(rng.normal(size=3)), tuple(rng.normal(size=3)))
    if kind == "Screw":
        return bc.Screw(axis, float(rng.uniform(0.05, 0.3)))
    if kind == "Distance":
        return None  # needs its length
    made = getattr(bc, kind)
    return made() if kind in ("Spherical", "Free", "Weld") else made(axis)


def build(graph: Graph) -> bc.Mechanism:
    """The machine. Bodies stand at random poses; every joint's frame is the same on both sides in that position."""
    rng = np.random.default_rng(graph.seed)
    m = bc.Mechanism(f"graph {graph.seed}", gravity=tuple(rng.normal(size=3) * 5))
    poses = [bc.Pose()]
    for i in range(len(graph.tree)):
        spread = rng.normal(size=(3, 3)) * 0.2
        second = spread @ spread.T + 0.02 * np.eye(3)
        inertia = np.trace(second) * np.eye(3) - second
        m.add_body(f"b{i}", bc.Inertia(float(rng.uniform(0.5, 2.0)), tuple(rng.normal(size=3) * 0.2), inertia))
        turn = rng.normal(size=4)
        poses.append(bc.Pose(tuple(rng.normal(size=3)), turn / np.linalg.norm(turn)))
    names = ["ground", *(b.name for b in m.bodies)]

    def frames(a: int, b: int) -> tuple[bc.Pose, bc.Pose]:
        turn = np.array([1.0, 0, 0, 0]) if graph.planar else rng.normal(size=4)
        world = bc.Pose(tuple(rng.normal(size=3)), turn / np.linalg.norm(turn))
        return poses[a].inverse() @ world, poses[b].inverse() @ world

    for i, (kind, carrier) in enumerate(graph.tree):
        ends = (carrier + 1, i + 1) if not graph.backwards >> i & 1 else (i + 1, carrier + 1)
        m.add_joint(f"j{i}", joint(kind, rng, graph.planar), names[ends[0]], names[ends[1]], *frames(*ends))
    for k, (kind, a, b) in enumerate(graph.loops):
        if kind.endswith("Distance"):
            ends2 = [bc.Pose(tuple(rng.normal(size=3))) for _ in range(2)]
            gap = np.subtract(*((poses[x + 1] @ p).position for x, p in zip((a, b), ends2, strict=True)))
            length = float(np.linalg.norm(gap))
            m.add_constraint(f"c{k}", bc.Distance(swung(length) if kind != "Distance" else length), names[a + 1],
                             names[b + 1], *ends2)
        elif kind in LEANING:
            m.add_constraint(f"c{k}", *leaning(kind, rng, names[a + 1], names[b + 1], *frames(a + 1, b + 1)))
        elif kind.startswith("Point"):
            m.add_constraint(f"c{k}", joint(kind, rng, graph.planar), names[a + 1], names[b + 1],
                             *frames(a + 1, b + 1))
        else:
            m.add_joint(f"c{k}", joint(kind, rng, graph.planar), names[a + 1], names[b + 1], *frames(a + 1, b + 1))
    decorate(m, graph)
    return m


#: constraints between an axis of each body, or with a gap
LEANING = ("Driven PointOnPlane", "Angle", "RollingBall", "RollingDisk", "KnifeEdge")


def swung(start: float) -> Callable[[Number], Number]:
    """A law that begins at a value and moves at once."""
    return lambda t: start + 0.2 * bm.sin(1.3 * t) + 0.15 * t**2


def leaning(kind: str, rng: np.random.Generator, parent: str, child: str, here: bc.Pose, there: bc.Pose
            ) -> tuple[object, ...]:
    """A constraint that is met where both frames are, or the child's is moved to."""
    normal, axis = (v / np.linalg.norm(v) for v in rng.normal(size=(2, 3)))
    radius = float(rng.uniform(0.2, 0.5))
    lean = float(np.arccos(normal @ axis))
    made, height = {
        "Driven PointOnPlane": (lambda: bc.PointOnPlane(normal, swung(0.0)), 0.0),
        "Angle": (lambda: bc.Angle(swung(lean) if radius < 0.35 else lean, normal, axis), 0.0),
        "RollingBall": (lambda: bc.RollingBall(radius, normal), radius),
        "RollingDisk": (lambda: bc.RollingDisk(radius, normal, axis), radius * np.sin(lean)),
        "KnifeEdge": (lambda: bc.KnifeEdge(axis), 0.0)}[kind]
    return made(), parent, child, here, there @ bc.Pose(tuple(height * normal))


def _cam(a: Number) -> Number:
    return -0.5 * bm.sin(a) - 0.2 * a**2


def decorate(m: bc.Mechanism, graph: Graph) -> None:
    single = [r.name for r in m.joints if r.joint.nq == r.joint.nu == 1 and r.name.startswith("j")]
    driven = f"j{graph.driven}"
    if driven in single:
        m.prescribe(driven, lambda t: 0.3 * bm.sin(1.7 * t))
        single.remove(driven)
    if graph.coupled and len(single) > 1:
        m.add_coupler("gear", {single[0]: 1.0, single[1]: _cam if graph.seed % 2 else -0.5})
    if graph.spring:
        m.add_spring("spring", m.ground, m.bodies[-1], (0.1, 0.2, 0.3), (0.3, -0.2, 0.1), stiffness=20.0, damping=1.5,
                     length=0.5)
        if single:
            m.add_joint_spring("twist", single[-1], stiffness=2.0, damping=0.1, rest=0.3)
