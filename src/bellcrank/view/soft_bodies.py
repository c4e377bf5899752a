"""Bodies that deform, as lines or surfaces through their nodes."""

from __future__ import annotations

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.flexible.flexible_body import FlexibleBody
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.view.scene import Ints, SoftBody

__all__ = ["amplitudes", "soft_bodies"]


def soft_bodies(mechanism: Mechanism, thickness: float) -> tuple[SoftBody, ...]:
    """The flexible bodies of a machine, nodes in the frame of their body."""
    found = []
    for record in mechanism.joints:
        if isinstance(record.joint, Modal):
            body = record.joint.body
            shapes = body.modes[:, :3]
            if body.stiffening is not None:
                shapes = np.concatenate([shapes, body.stiffening.shapes], axis=2)
            found.append(SoftBody(record.name, record.parent, body.nodes, shapes, _surface(body.nodes),
                                  0.8 * thickness))
    return tuple(found)


def amplitudes(body: FlexibleBody, e: Floats) -> Floats:
    """What the shapes of a soft body are multiplied by at modal coordinates e (frames, modes): these, and products of
    them where second-order displacements count."""
    if body.stiffening is None:
        return e
    second = body.stiffening.coordinates([e[:, i] for i in range(e.shape[1])])
    return np.concatenate([e, *(np.broadcast_to(np.asarray(x, dtype=float), len(e))[:, None] for x in second)], axis=1)


def _surface(nodes: Floats) -> Ints | None:
    """Triangles around nodes that fill a solid or a plate; None for those along a line, which are drawn as one."""
    if len(nodes) < 4:
        return None
    around = nodes - nodes.mean(axis=0)
    _, spread, axes = np.linalg.svd(around, full_matrices=False)
    if spread[1] < 1e-3 * spread[0]:
        return None
    from scipy.spatial import ConvexHull, Delaunay

    if spread[2] < 1e-6 * spread[0]:
        return np.asarray(Delaunay(around @ axes[:2].T).simplices, dtype=np.int32)
    hull = ConvexHull(nodes)
    faces = hull.simplices.copy()
    corners = nodes[faces]
    outward = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    wrong = (outward * hull.equations[:, :3]).sum(axis=1) < 0.0
    faces[wrong] = faces[wrong][:, ::-1]
    return np.asarray(faces, dtype=np.int32)
