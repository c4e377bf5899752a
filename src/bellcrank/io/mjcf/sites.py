"""Rotations and sites of a compiled MJCF model: where a site is, and between which two a tendon runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.io.mjcf.read import MjcfReader

__all__ = ["rotation", "site_pose", "tendon_sites"]

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

_SNAP = 1e-12


def rotation(mujoco: Any, quaternion: Sequence[float] | Floats) -> Floats | None:
    """The rotation matrix of a quaternion, exact if it can only be meant as turning axes into axes; None for none."""
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, np.asarray(quaternion, dtype=float))
    near = np.round(out)
    if np.abs(out - near).max() < _SNAP:
        out = near
    turn = out.reshape(3, 3) + 0.0
    return None if (turn == np.eye(3)).all() else turn


def site_pose(reader: MjcfReader, site: int) -> tuple[int, Pose]:
    """Body and pose of a site."""
    model = reader.model
    return int(model.site_bodyid[site]), Pose(model.site_pos[site], rotation(reader.mujoco, model.site_quat[site]))


def tendon_sites(reader: MjcfReader, tendon: int) -> tuple[tuple[int, Pose], tuple[int, Pose]] | None:
    """Bodies and poses of the ends of a tendon that runs straight between two sites, else None."""
    model = reader.model
    start, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
    site = int(reader.mujoco.mjtWrap.mjWRAP_SITE)
    if count != 2 or any(int(model.wrap_type[w]) != site for w in (start, start + 1)):
        return None
    return site_pose(reader, int(model.wrap_objid[start])), site_pose(reader, int(model.wrap_objid[start + 1]))
