"""Files read by a process of its own, where a library may crash on a damaged one, or never come back."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.files import child

__all__ = ["LIMIT", "read_apart"]

#: how long reading may take [s], and how much more for every byte of the file
LIMIT, _PER_BYTE = 20.0, 5e-6


def read_apart(kind: str, path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays that a process of its own (`child`) reads from a file.

    Raises `ValueError` if the library of this kind refuses the file, crashes, takes more memory than 8 GB or more time
    than `LIMIT`. Cost: that of starting Python and the library, 0.3 s or more.
    """
    if not sys.executable:  # an interpreter inside another program: the library has to be trusted
        return child.KINDS[kind](str(path))
    limit = LIMIT + _PER_BYTE * path.stat().st_size
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(prefix="bellcrank-") as folder:
        out = Path(folder, "arrays.npz")
        try:
            done = subprocess.run([sys.executable, "-P", child.__file__, kind, str(path.absolute()), str(out)],
                                  capture_output=True, text=True, timeout=limit, env=environment,
                                  stdin=subprocess.DEVNULL, errors="replace", check=False)
        except subprocess.TimeoutExpired:
            raise ValueError(f"the {kind} library did not come back in {limit:.3g} s: the file is damaged") from None
        except OSError:  # no further process
            return child.KINDS[kind](str(path))
        if done.returncode:
            lines = done.stdout.strip().splitlines() or [f"the {kind} library crashes on it ({done.returncode})"]
            raise ValueError(lines[-1][:500])
        if not out.exists():
            return {}
        with np.load(out, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
