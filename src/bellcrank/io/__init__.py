"""Model files in and out: readers that turn a file into a `Mechanism` and say what they made of it, and writers.

A reader never runs code from a file and uses no network; other files it opens (includes, lists of closures) lie in
the same folder. What it cannot use is an error (`FileError`, with file, line and element) or a note in its
`ReadReport`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bellcrank.lazy_names import on_first_use

__all__ = ["ReadReport", "ReadWarning", "load_mjcf", "load_native", "load_sdf", "load_urdf", "read", "read_mjcf",
           "read_native", "read_sdf", "read_urdf", "same_mechanism", "save", "write_mjcf", "write_native", "write_sdf",
           "write_urdf"]

_PLACES = {
    **dict.fromkeys(("ReadReport", "ReadWarning"), "report"),
    **{f"{verb}_{name}": name for verb in ("load", "read", "write") for name in ("urdf", "sdf", "mjcf")},
    **dict.fromkeys(("read", "save"), "load"),
    **dict.fromkeys(("load_native", "read_native", "same_mechanism", "write_native"), "native"),
}

if TYPE_CHECKING:
    from bellcrank.io.load import read, save
    from bellcrank.io.mjcf import load_mjcf, read_mjcf, write_mjcf
    from bellcrank.io.native import load_native, read_native, same_mechanism, write_native
    from bellcrank.io.report import ReadReport, ReadWarning
    from bellcrank.io.sdf import load_sdf, read_sdf, write_sdf
    from bellcrank.io.urdf import load_urdf, read_urdf, write_urdf


__getattr__ = on_first_use(__name__, _PLACES, globals())
