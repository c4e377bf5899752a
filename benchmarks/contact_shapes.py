"""Every pair of contact shapes beside `coal`: first touches, depths and normals, in both orders.

    python benchmarks/contact_shapes.py [--poses 1000] [--only cylinder,mesh] [--depth 1e-3] [--seed 1]

Two shapes of random sizes come near along a random way until coal's signed distance is ``-depth``. They are turned at
random, or by quarter turns (faces, edges and axes are parallel then), or nearly so, by 1e-6 to 1e-2 rad; their centers
come near along that way, or along an axis of one of them. A touch is *missed* if no place of Bellcrank's is closed
there; *depth* counts poses whose deepest place is off by more than 1 % of the depth, and *normal* those where it looks
elsewhere by more than 0.02 rad; *early* counts poses at which the shapes are apart by the same distance, and yet a
place is closed. *swapped* is the largest difference of the deepest place in both orders of the pair.

Where two normals are within 1 % of the least overlap (an edge or a corner just over another one) both are right: such
poses are left out of *normal*. Depths over height fields are measured along their z and are no part of this:
tests/test_contact_fields.py has them beside brute force.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import bellcrank as bc
from bellcrank.mechanism.contact.narrow_phase import known_pair, seen_by_contact, touches
from bellcrank.mechanism.contact.touch import ShapeFrame
from bellcrank.spatial import Vector

Array = np.ndarray
QUARTERS = Rotation.create_group("O").as_matrix()
SIZES = 10


def mesh(rng: np.random.Generator) -> bc.Mesh:
    """A lump, a slab with slanted ends, or a prism of five to seven sides."""
    kind = rng.integers(3)
    if kind == 0:
        points = rng.normal(size=(14, 3))
        points = 0.3 * points / np.linalg.norm(points, axis=1)[:, None] * rng.uniform(0.6, 1.0, (14, 1))
    elif kind == 1:
        x, y, z = rng.uniform(0.1, 0.3, 3)
        points = np.array([(i * (x - 0.3 * x * (k > 0)), j * y, k * z) for i in (-1, 1) for j in (-1, 1)
                           for k in (-1, 1)])
    else:
        n, radius, half = rng.integers(5, 8), rng.uniform(0.05, 0.25), rng.uniform(0.1, 0.3)
        angles = 2.0 * np.pi / n * np.arange(n)
        points = np.array([(radius * np.cos(a), radius * np.sin(a), side * half) for a in angles for side in (-1, 1)])
    return bc.Mesh(points, [(0, 1, 2)])


MAKE: dict[str, Callable[[np.random.Generator], Any]] = {
    "plane": lambda rng: bc.Plane(),
    "sphere": lambda rng: bc.Sphere(rng.uniform(0.05, 0.3)),
    "capsule": lambda rng: bc.Capsule(*rng.uniform((0.05, 0.1), (0.2, 0.6))),
    "box": lambda rng: bc.Box(rng.uniform(0.1, 0.6, 3)),
    "cylinder": lambda rng: bc.Cylinder(*rng.uniform((0.05, 0.1), (0.3, 0.6))),
    "mesh": mesh,
    "ellipsoid": lambda rng: bc.Ellipsoid(rng.uniform(0.1, 0.3, 3)),
    "cone": lambda rng: bc.Cone(*rng.uniform((0.05, 0.1), (0.3, 0.6))),
}


def in_coal(shape: Any) -> Any:
    """The same shape there."""
    import coal

    match shape:
        case bc.Plane():
            return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
        case bc.Sphere():
            return coal.Sphere(shape.radius)
        case bc.Capsule():
            return coal.Capsule(shape.radius, shape.length)
        case bc.Box():
            return coal.Box(*shape.size)
        case bc.Cylinder():
            return coal.Cylinder(shape.radius, shape.length)
        case bc.Cone():
            return coal.Cone(shape.radius, shape.length)
        case bc.Ellipsoid():
            return coal.Ellipsoid(*shape.radii)
    hull = ConvexHull(shape.vertices)
    points, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    number = {int(v): k for k, v in enumerate(hull.vertices)}
    for v in hull.vertices:
        points.append(hull.points[v])
    for (a, b, c), plane in zip(hull.simplices.tolist(), hull.equations, strict=True):
        p = hull.points
        if np.cross(p[b] - p[a], p[c] - p[a]) @ plane[:3] < 0.0:
            b, c = c, b
        faces.append(coal.Triangle(number[a], number[b], number[c]))
    return coal.Convex(points, faces)


class Poses(NamedTuple):
    """Pairs of poses at which shapes overlap by a depth: turns (n, 3, 3) and origins (n, 3) of both, and the normal."""

    turns: tuple[Array, Array]
    origins: tuple[Array, Array]
    normal: Array
    kinds: Array  #: 0 random, 1 by quarter turns, 2 nearly so


def random_turns(rng: np.random.Generator, n: int, kinds: Array) -> tuple[Array, Array]:
    """Of both shapes; of the second quarter turns against the first where the kind says so, exact or nearly."""
    one, other = Rotation.random(n, random_state=rng).as_matrix(), Rotation.random(n, random_state=rng).as_matrix()
    quarters = QUARTERS[rng.integers(len(QUARTERS), size=n)]
    off = Rotation.from_rotvec(rng.normal(size=(n, 3)) * 10.0 ** rng.uniform(-6, -2, (n, 1))).as_matrix()
    near = np.where((kinds == 2)[:, None, None], off, np.eye(3))
    return one, np.where((kinds > 0)[:, None, None], one @ quarters @ near, other)


def poses_at(shapes: tuple[Any, Any], depth: float, rng: np.random.Generator, n: int) -> Poses:
    """Poses at which coal's signed distance is -depth: by Newton's method along a way, from outside (the distance is
    convex along every way, so that no step goes too far)."""
    import coal

    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    request.gjk_tolerance = request.epa_tolerance = 1e-9
    request.gjk_max_iterations = request.epa_max_iterations = 500
    kinds = np.arange(n) % 3
    turns = random_turns(rng, n, kinds)
    ways = rng.normal(size=(n, 3))
    along = np.einsum("nij,nj->ni", turns[0], np.eye(3)[rng.integers(3, size=n)]) * rng.choice((-1.0, 1.0), (n, 1))
    aside = np.einsum("nij,nj->ni", turns[0], rng.uniform(-0.15, 0.15, (n, 3)))  # so that centers are not in line
    straight = (rng.random(n) < 0.5) & (kinds > 0)
    ways = np.where(straight[:, None], along, ways / np.linalg.norm(ways, axis=1)[:, None])
    if isinstance(shapes[0], bc.Plane):
        ways, straight = turns[0][:, :, 2] + 0.0 * ways, np.ones(n, bool)
    aside = np.where((straight & (rng.random(n) < 0.7))[:, None], aside, 0.0)
    origins = rng.uniform(-1.0, 1.0, (n, 3))
    there, normal, good = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n, bool)
    one, other = (in_coal(s) for s in shapes)
    for i in range(n):
        first = coal.Transform3s(turns[0][i], origins[i])
        t = 3.0
        for _ in range(60):
            place = origins[i] + aside[i] + t * ways[i]
            result = coal.DistanceResult()
            d = coal.distance(one, first, other, coal.Transform3s(turns[1][i], place), request, result)
            slope = float(result.normal @ ways[i])
            good[i] = abs(d + depth) < 1e-3 * abs(depth)
            if good[i] or slope < 1e-3:
                break
            t -= (d + depth) / slope
        there[i], normal[i] = place, result.normal
    keep = lambda *arrays: tuple(a[good] for a in arrays)  # noqa: E731
    return Poses(keep(*turns), keep(origins, there), normal[good], kinds[good])


def frame(origin: Array, turn: Array) -> ShapeFrame:
    return ShapeFrame(*(Vector(*(column[:, i] for i in range(3))) for column in (origin, *turn.transpose(2, 0, 1))))


def deepest(shapes: tuple[Any, Any], poses: Poses, swapped: bool = False) -> tuple[Array, Array]:
    """Depth and normal of the deepest place that has a share, from the first shape to the second."""
    forms = [seen_by_contact(s, "shape") for s in shapes]
    frames = [frame(o, t) for o, t in zip(poses.origins, poses.turns, strict=True)]
    n = len(poses.normal)
    if swapped:
        found = [t.swapped() for t in touches(forms[1], frames[1], forms[0], frames[0])]
    else:
        found = touches(forms[0], frames[0], forms[1], frames[1])
    full = lambda x: np.broadcast_to(np.asarray(x, dtype=float), (n,))  # noqa: E731
    depth = np.stack([np.where(full(t.share) > 0.0, full(t.depth), -np.inf) for t in found])
    normal = np.stack([np.stack([full(x) for x in t.normal], axis=-1) for t in found])
    which = depth.argmax(axis=0)
    return depth[which, np.arange(n)], normal[which, np.arange(n)]


def other_ways_out(shapes: tuple[Any, Any], poses: Poses, depth: float) -> Array:
    """Whether shapes part, too, along directions beside the normal by no more than 1 % more of the depth."""
    import coal

    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    one, other = (in_coal(s) for s in shapes)
    out = np.zeros(len(poses.normal), bool)
    rng = np.random.default_rng(0)
    for i, normal in enumerate(poses.normal):
        for way in rng.normal(size=(4, 3)):
            aside = way - normal * (normal @ way)
            aside *= 0.02 * depth / np.linalg.norm(aside)
            result = coal.DistanceResult()
            coal.distance(one, coal.Transform3s(poses.turns[0][i], poses.origins[0][i]), other,
                          coal.Transform3s(poses.turns[1][i], poses.origins[1][i] + aside), request, result)
            out[i] |= result.normal @ normal < np.cos(0.02)
    return out


class Row(NamedTuple):
    """Counts of one pair."""

    poses: int
    missed: int
    depth: int
    normal: int
    early: int
    swapped: float


def compare(first: str, second: str, n: int, depth: float, seed: int, show: int = 0, sizes: int = SIZES) -> Row:
    """One pair, in both orders."""
    rng = np.random.default_rng(seed)
    total = np.zeros(5)
    apart = 0.0
    for _ in range(sizes):
        shapes = MAKE[first](rng), MAKE[second](rng)
        inside, outside = (poses_at(shapes, d, rng, n // sizes) for d in (depth, -depth))
        found, normal = deepest(shapes, inside)
        back, _ = deepest(shapes, inside, swapped=True)
        missed = found <= 0.0
        off = ~missed & (np.abs(found - depth) > 0.01 * depth)
        turned = ~missed & (np.einsum("ni,ni->n", normal, inside.normal) < np.cos(0.02))
        if turned.any():
            turned &= ~other_ways_out(shapes, inside, depth)
        early = deepest(shapes, outside)[0] > 0.0
        for i in np.flatnonzero(missed | off | turned)[:show]:
            print(f"   {shapes} kind {inside.kinds[i]}: depth {found[i]:.6f}, normals {normal[i].round(4)} "
                  f"{inside.normal[i].round(4)}")
        total += len(found), missed.sum(), off.sum(), turned.sum(), early.sum()
        apart = max(apart, np.abs(found - back)[~missed].max(initial=0.0), float((missed != (back <= 0.0)).any()))
    return Row(*(int(x) for x in total), apart)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--poses", type=int, default=1000)
    parser.add_argument("--only", default="", help="pairs with these shapes alone, such as cylinder,mesh")
    parser.add_argument("--depth", type=float, default=1e-3, help="overlap [m]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="print so many of the poses that differ, of each size")
    given = parser.parse_args()
    names = [x for x in given.only.split(",") if x] or list(MAKE)
    print(f"{'pair':22s}{'poses':>7s}{'missed':>8s}{'depth':>7s}{'normal':>8s}{'early':>7s}{'swapped':>10s}")
    rng = np.random.default_rng(0)
    for i, first in enumerate(names):
        for second in names[i:] if len(names) != 2 or names[0] == names[1] else names[1:] if i == 0 else []:
            if (first, second) == ("plane", "plane"):
                continue
            forms = [seen_by_contact(MAKE[k](rng), k) for k in (first, second)]
            if not known_pair(*forms):
                print(f"{first + ' ' + second:22s} refused")
                continue
            row = compare(first, second, given.poses, given.depth, given.seed, given.show)
            print(f"{first + ' ' + second:22s}{row.poses:7d}{row.missed:8d}{row.depth:7d}{row.normal:8d}{row.early:7d}"
                  f"{row.swapped:10.1e}", flush=True)


if __name__ == "__main__":
    main()
