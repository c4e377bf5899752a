"""MJCF, the format of MuJoCo: reading (by the package mujoco, behind a gate) and writing."""

from bellcrank.io.mjcf.read import load_mjcf, read_mjcf
from bellcrank.io.mjcf.write import write_mjcf

__all__ = ["load_mjcf", "read_mjcf", "write_mjcf"]
