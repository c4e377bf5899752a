"""`bellcrank.load`: a machine from a file or from the built-in examples."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bellcrank.errors import FileError
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["load"]


def load(source: str | os.PathLike[str], **options: Any) -> Mechanism:
    """Read a model file (``.urdf``) or make a built-in example by its name.

    Options are those of the reader, such as ``floating_base=True`` for URDF, or of the example, such as ``cells=256``
    for ``ladder``.

    >>> load("pendulum")
    <Mechanism 'pendulum': 1 bodies, 1 joints>
    """
    from bellcrank import examples

    text = os.fspath(source)
    if isinstance(source, str) and source in examples.names():
        return examples.load(source, **options)
    path = Path(text)
    if path.suffix.lower() == ".urdf":
        from bellcrank.io.urdf import load_urdf

        return load_urdf(path, **options)
    if path.exists():
        raise FileError(f"{text}: Bellcrank reads .urdf files; this one ends in {path.suffix!r}")
    raise FileError(f"{text!r} is neither a file nor an example; examples are {', '.join(examples.names())}")
