"""What a picture shows, as numbers: shapes in body axes, poses over time, points, arrows, curves. Nothing is drawn.

A `Scene` holds models (what machines look like) and tracks (how one of them moves); several results beside or over each
other are several tracks. Lengths in m, times in s, quaternions (w, x, y, z); body 0 of a model is the ground.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.mechanism.joints import quaternion

__all__ = ["PALETTE", "Arrow", "DrawnBody", "DrawnJoint", "DrawnShape", "Extension", "PlottedCurve", "Scene",
           "SceneModel", "SoftBody", "Trace", "Track", "along", "matrices", "quaternion_of", "triple_of", "turned"]

#: calm colors of bodies and tracks, red, green, blue in 0..1
PALETTE: tuple[tuple[float, float, float], ...] = tuple(
    (int(c[0:2], 16) / 255.0, int(c[2:4], 16) / 255.0, int(c[4:6], 16) / 255.0) for c in (
        "4f7cac", "e0a458", "6a9c78", "b5656b", "8a7fb5", "5aa6a6", "c98bb9", "9a9a6b", "7d8597", "d17a4a"))

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class DrawnShape:
    """A shape on a body: its kind and sizes as the shapes of `bellcrank.mechanism.geometry` have them, centered in its
    own frame, which lies at `position` and `turn` in that of the body."""

    kind: str  #: box, sphere (three half axes), cylinder, capsule, cone, plane, mesh
    size: tuple[float, ...]
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    color: tuple[float, float, float, float] | None = None  #: that of the body if None
    role: str = "visual"  #: visual, made (of what is known), joint (a symbol), ground (a symbol), collision
    vertices: Floats | None = None  #: of a mesh, (n, 3)
    faces: Ints | None = None  #: (m, 3)
    shades: Floats | None = None  #: colors of faces, (m, 4)


@dataclass(frozen=True)
class DrawnBody:
    """A body, its shapes, and where its mass is."""

    name: str
    shapes: tuple[DrawnShape, ...]
    color: tuple[float, float, float]
    mass: float = 0.0
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)
    #: half axes [m] and orientation of the solid ellipsoid that has the same inertia
    ellipsoid: tuple[tuple[float, float, float], tuple[float, float, float, float]] | None = None


@dataclass(frozen=True)
class DrawnJoint:
    """A joint: its frames on two bodies, and its axes in these frames."""

    name: str
    kind: str
    parent: int
    child: int
    parent_pose: tuple[Floats, Floats]  #: position, quaternion
    child_pose: tuple[Floats, Floats]
    axes: tuple[tuple[float, float, float], ...]
    closing: bool = False


@dataclass(frozen=True)
class Extension:
    """What spans two points of bodies: a spring (drawn as a coil), a damper, or a rod (a fixed distance)."""

    name: str
    kind: str
    first: int
    second: int
    first_point: tuple[float, float, float]
    second_point: tuple[float, float, float]
    radius: float


@dataclass(frozen=True)
class SoftBody:
    """A body that deforms: nodes move by shapes times amplitudes. `faces` of its surface, or lines along its nodes."""

    name: str
    body: int
    nodes: Floats  #: (n, 3)
    shapes: Floats  #: (n, 3, k)
    faces: Ints | None
    radius: float


@dataclass(frozen=True)
class SceneModel:
    """What one machine looks like."""

    name: str
    bodies: tuple[DrawnBody, ...]  #: the ground first
    joints: tuple[DrawnJoint, ...]
    extensions: tuple[Extension, ...] = ()
    soft: tuple[SoftBody, ...] = ()
    thickness: float = 0.02  #: of what is drawn without a size of its own
    length: float = 1.0  #: a usual length of a part


@dataclass(frozen=True)
class Arrow:
    """A force and a moment at a point of a body over time, world axes: each (frames, 3)."""

    name: str
    kind: str  #: reaction, spring, wrench
    body: int
    point: tuple[float, float, float]
    force: Floats
    moment: Floats


@dataclass(frozen=True)
class PlottedCurve:
    """Something over time to plot."""

    group: str
    name: str
    units: str
    values: Floats  #: (frames,), or one for each of its own times
    times: Floats | None = None  #: its own, where the run has more samples than frames


@dataclass(frozen=True)
class Trace:
    """A point of a body whose path is drawn."""

    body: int
    point: tuple[float, float, float]
    name: str


@dataclass(frozen=True)
class Track:
    """How a machine moves."""

    model: int
    label: str
    times: Floats  #: (frames,)
    positions: Floats  #: (frames, bodies with the ground, 3)
    turns: Floats  #: (frames, bodies with the ground, 4), continuous
    amplitudes: tuple[Floats, ...] = ()  #: of soft bodies, (frames, k)
    arrows: tuple[Arrow, ...] = ()
    curves: tuple[PlottedCurve, ...] = ()
    color: tuple[float, float, float] | None = None  #: of all bodies, where tracks are compared


@dataclass(frozen=True)
class Scene:
    """All that a picture shows.

    >>> import bellcrank as bc
    >>> from bellcrank.view.scenes import scene_of
    >>> scene = scene_of(bc.load("four_bar"))
    >>> [b.name for b in scene.models[0].bodies], scene.tracks[0].positions.shape
    (['ground', 'crank', 'coupler', 'rocker'], (1, 4, 3))
    """

    title: str
    models: tuple[SceneModel, ...]
    tracks: tuple[Track, ...]
    traces: tuple[Trace, ...] = ()
    up: tuple[float, float, float] = (0.0, 0.0, 1.0)
    view: tuple[float, float, float] = (1.0, -1.6, 0.8)  #: from where one looks at it
    side_by_side: bool = False  #: several tracks beside each other, else over each other
    #: force [N] and moment [N m] that are drawn as long as a usual part
    scales: tuple[float, float] = (1.0, 1.0)
    shown: Mapping[str, bool] = field(default_factory=dict)  #: what is seen at first, such as {"forces": True}
    notes: tuple[str, ...] = ()  #: what is missing that one would expect, and why
    about: tuple[str, ...] = ()  #: of how much a selection is shown


# -- turns and points of drawings: a little algebra on arrays of quaternions (w, x, y, z) -----------
def quaternion_of(rotation: npt.ArrayLike) -> tuple[float, float, float, float]:
    """The unit quaternion of one rotation matrix."""
    w, x, y, z = quaternion.from_matrix(np.asarray(rotation, dtype=float)).tolist()
    return w, x, y, z


def matrices(turns: npt.ArrayLike) -> Floats:
    """Rotation matrices (..., 3, 3) of unit quaternions (..., 4)."""
    w, x, y, z = np.moveaxis(np.asarray(turns, dtype=float), -1, 0)
    rows = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
    return np.stack(rows, axis=-1).reshape(*w.shape, 3, 3)


def turned(turns: npt.ArrayLike, points: npt.ArrayLike) -> Floats:
    """Vectors (..., 3) turned by unit quaternions (..., 4)."""
    return quaternion.turn(np.asarray(turns, dtype=float), np.asarray(points, dtype=float))


def along(direction: npt.ArrayLike) -> tuple[float, float, float, float]:
    """The turn that takes z into a direction."""
    d = np.asarray(direction, dtype=float)
    d = d / max(float(np.linalg.norm(d)), 1e-300)
    if d[2] < -1.0 + 1e-12:
        return (0.0, 1.0, 0.0, 0.0)
    q = np.array([1.0 + d[2], -d[1], d[0], 0.0])
    w, x, y, z = (q / np.linalg.norm(q)).tolist()
    return w, x, y, z


def triple_of(values: npt.ArrayLike) -> tuple[float, float, float]:
    """Three floats."""
    x, y, z = np.asarray(values, dtype=float).tolist()
    return x, y, z
