"""Accelerations of links for given joint accelerations: the outward sweep of `recursive`, in world axes."""

from __future__ import annotations

from bellcrank.formulations.common.link_kinematics import ground_axes, turn_axes
from bellcrank.formulations.recursive.newton_euler import outward_motions
from bellcrank.lowering.link import Link
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import General, Motion, Vector

__all__ = ["accelerations"]


def accelerations(tree: Sweeps) -> Field:
    """Angular acceleration and acceleration of the origin of every link, in world axes: 6 numbers."""
    axes = tree.outward(turn_axes, root=ground_axes(tree))
    motion = tree.outward(outward_motions, root=(Vector.zero(), Motion.zero()))
    return tree.outward(_in_world, motion, axes, root=())


def _in_world(link: Link, nothing: tuple[()], motion: tuple[Vector, Motion], axes: General
              ) -> tuple[tuple[()], Motion]:
    alpha, linear = motion[1]
    return (), Motion(axes.apply(alpha), axes.apply(linear))
