"""Spatial algebra over any scalar: floats, traced scalars, NumPy arrays with one entry per state.

Conventions, stated once: spatial vectors are [angular; linear]; a `Transform` is the pose of a child
frame in its parent, x_parent = R x_child + p; quaternions are scalar first.

The accelerations here are the *classical* ones (angular acceleration of the frame, acceleration of
its origin), as in Kang & Yoon, not the screw-theoretic ones: forces then depend on velocities only
through the angular velocity, and the linear velocity need never be computed.
"""

from bellcrank.spatial.inertias import ArticulatedInertia, RigidInertia
from bellcrank.spatial.transform import AboutX, AboutZ, General, Identity, Rotation, Transform, from_quaternion
from bellcrank.spatial.vector import Force, Matrix3, Motion, Symmetric3, Vector, unit_index

__all__ = ["AboutX", "AboutZ", "ArticulatedInertia", "Force", "General", "Identity", "Matrix3", "Motion",
           "RigidInertia", "Rotation", "Symmetric3", "Transform", "Vector", "from_quaternion", "unit_index"]
