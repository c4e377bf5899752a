"""Model files in and out: readers that turn a file into a `Mechanism` and say what they made of it, and writers.

A reader never runs code from a file, opens no other file and uses no network. What it cannot use is an
error (`FileError`, with file, line and element) or a note in its `ReadReport`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["ReadReport", "ReadWarning", "load_native", "load_urdf", "read", "read_native", "read_urdf",
           "same_mechanism", "save", "write_native"]

_PLACES = {
    **dict.fromkeys(("ReadReport", "ReadWarning"), "report"), **dict.fromkeys(("load_urdf", "read_urdf"), "urdf"),
    **dict.fromkeys(("read", "save"), "load"),
    **dict.fromkeys(("load_native", "read_native", "same_mechanism", "write_native"), "native"),
}

if TYPE_CHECKING:
    from bellcrank.io.load import read, save
    from bellcrank.io.native import load_native, read_native, same_mechanism, write_native
    from bellcrank.io.report import ReadReport, ReadWarning
    from bellcrank.io.urdf import load_urdf, read_urdf


def __getattr__(name: str) -> Any:
    """Names are imported when they are first used: every format has its own needs."""
    if name not in _PLACES:
        raise AttributeError(f"module 'bellcrank.io' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"bellcrank.io.{_PLACES[name]}"), name)
    globals()[name] = value
    return value
