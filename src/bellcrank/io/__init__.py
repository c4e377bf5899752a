"""Model files in: readers that turn a file into a `Mechanism` and say what they made of it.

A reader never runs code from a file, opens no other file and uses no network. What it cannot use is an
error (`FileError`, with file, line and element) or a note in its `ReadReport`.
"""

from bellcrank.io.report import ReadReport, ReadWarning
from bellcrank.io.urdf import load_urdf, read_urdf

__all__ = ["ReadReport", "ReadWarning", "load_urdf", "read_urdf"]
