"""Choice of link frames: zeros in the transforms of the compiled code.

A joint with an axis (revolute, prismatic, screw, cylindrical) leaves two freedoms of its link's frame:
a turn about the axis and a slide along it only shift the joint's coordinate. They are spent on the link's
heaviest child: the link frame's x axis becomes the common normal of the two axes, as in (modified)
Denavit-Hartenberg frames, so that the child's placement is a turn about x and a shift along x. The child's
own part of the placement, a turn about and a shift along its axis, goes into its joint constants.

Nothing of this shows outside: bodies keep their frames, joints their coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats

__all__ = ["Sides", "link_frames", "placements", "snap"]

Ints = npt.NDArray[np.int64]
_TINY = 1e-15


@dataclass
class Sides:
    """Poses of every link's inboard joint (canonical axes): in its parent body's frame and in its own."""

    outer_turn: Floats  # (n, 3, 3)
    outer_shift: Floats  # (n, 3)
    inner_turn: Floats
    inner_shift: Floats


def snap(values: Floats, scale: float = 1.0) -> Floats:
    """Replace rounding debris next to 0 and +-1 by exact numbers."""
    values = np.where(np.abs(values) < _TINY * scale, 0.0, values)
    near = np.abs(np.abs(values) - 1.0) < _TINY
    return np.where(near, np.sign(values), values) + 0.0


def link_frames(sides: Sides, parent: Ints, free: npt.NDArray[np.bool_], fixed: npt.NDArray[np.bool_],
                main_child: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """Turn and slide of each link frame along its joint axis, shape (n,) each, and the frames themselves.

    `free`: joints with a free frame; `fixed`: links whose geometry depends on parameters.
    """
    n = len(parent)
    turn, slide = np.zeros(n), np.zeros(n)
    usable = free & ~fixed & (main_child > 0)
    usable &= ~fixed[np.where(main_child > 0, main_child, 0)]
    mine = np.flatnonzero(usable)
    child = main_child[mine]
    back = np.swapaxes(sides.inner_turn[mine], -1, -2)
    z = (back @ sides.outer_turn[child])[..., 2]  # the child's axis in this joint's frame
    o = np.einsum("nij,nj->ni", back, sides.outer_shift[child] - sides.inner_shift[mine])
    across = np.hypot(z[:, 0], z[:, 1])
    crossed = (across > 4e-16) & free[child]
    safe = np.where(crossed, across, 1.0)
    far = np.hypot(o[:, 0], o[:, 1])
    x = np.where(crossed[:, None], np.stack([-z[:, 1] / safe, z[:, 0] / safe], -1),
                 np.where((far > 0)[:, None], o[:, :2] / np.where(far > 0, far, 1.0)[:, None], np.array([1.0, 0.0])))
    flip = np.where(x[:, 0] < -1e-12, -1.0, 1.0)  # prefer the smaller turn
    turn[mine] = np.arctan2(x[:, 1] * flip, x[:, 0] * flip)
    along = np.where(crossed, -(o[:, 0] * z[:, 0] + o[:, 1] * z[:, 1]) / safe**2, 0.0)
    near = np.abs(along) <= 20.0 * np.sqrt((o * o).sum(-1))  # nearly parallel axes meet far away
    slide[mine] = np.where(crossed & near, o[:, 2] + along * z[:, 2], np.where(crossed, 0.0, o[:, 2]))
    turn = snap(turn)
    c, s = np.cos(turn), np.sin(turn)
    zero, one = np.zeros(n), np.ones(n)
    rows = np.stack([c, -s, zero], -1), np.stack([s, c, zero], -1), np.stack([zero, zero, one], -1)
    spin = snap(np.stack(rows, -2))
    frame_turn = snap(sides.inner_turn @ spin)
    frame_shift = sides.inner_shift + sides.inner_turn[..., 2] * slide[:, None]
    return turn, slide, frame_turn, frame_shift


def placements(turn: Floats, shift: Floats, free: npt.NDArray[np.bool_]
               ) -> tuple[Ints, Floats, Floats, Floats, Floats]:
    """Split joint placements in their parent's link frame into a simple factor and a screw along z.

    Returns the kind (0 identity, 1 about x, 2 general), its nine entries, the shift, and for joints with
    a free frame the turn about and shift along z that remain, which belong to the joint's constants.
    """
    n = len(turn)
    z = snap(turn[..., 2])
    across = np.hypot(z[:, 0], z[:, 1])
    # third column z with a zero in the first column: turn about z, then about x
    safe = np.where(across > 4e-16, across, 1.0)
    in_yz = (z[:, 0] == 0.0) | (np.abs(z[:, 0]) < 4e-16)
    cb = np.where(in_yz, 1.0, -z[:, 1] / safe)
    sb = np.where(in_yz, 0.0, z[:, 0] / safe)
    ca = z[:, 2]
    sa = np.where(in_yz, -z[:, 1], across)
    zero = np.zeros(n)
    base = np.stack([np.stack([cb, -sb * ca, sb * sa], -1), np.stack([sb, cb * ca, -cb * sa], -1),
                     np.stack([zero, sa, ca], -1)], -2)
    x = turn[..., 0]
    rest = np.arctan2((x * base[..., 1]).sum(-1), (x * base[..., 0]).sum(-1))
    about_x = in_yz
    # a shift along the child's axis can be given to the joint: remove the y-z part of the placement's shift
    along = np.where(about_x, shift[:, 1] * z[:, 1] + shift[:, 2] * z[:, 2], 0.0)
    scale = max(1e-300, float(np.abs(shift).max(initial=0.0)))
    moved = snap(shift - z * along[:, None], scale)
    shift = np.where(free[:, None], moved, snap(shift, scale))
    rest = np.where(free, snap(rest), 0.0)
    along = np.where(free, snap(along, scale), 0.0)
    matrix = np.where(free[:, None, None], snap(base), snap(turn))
    matrix = snap(matrix)
    same = (matrix == np.eye(3)).all((-1, -2))
    apart = (matrix[:, 0, 1:] == 0.0).all(-1) & (matrix[:, 1:, 0] == 0.0).all(-1)  # a cosine of one is not enough
    leaning = (matrix[:, 0, 0] == 1.0) & apart & ~same
    kind = np.where(same, 0, np.where(leaning, 1, 2)).astype(np.int64)
    entries = matrix.reshape(n, 9).copy()
    entries[leaning, 0], entries[leaning, 1] = matrix[leaning, 1, 1], matrix[leaning, 2, 1]
    return kind, entries, shift, rest, along
