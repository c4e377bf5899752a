"""SDF (SDFormat) files: graphs of links and joints in XML, as Gazebo and its relatives read them; loops included.

Versions 1.4 to 1.12 are read with the meaning that poses and axes have in each; 1.9 (or 1.11) is written.
"""

from bellcrank.io.sdf.reader import load_sdf, read_sdf
from bellcrank.io.sdf.writer import write_sdf

__all__ = ["load_sdf", "read_sdf", "write_sdf"]
