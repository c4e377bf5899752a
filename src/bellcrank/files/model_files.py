"""Files: of bounded size, read whole or in a process of their own; written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.errors import FileError
from bellcrank.files import child

__all__ = ["LIMIT", "contents", "read_apart", "regular_bytes", "text_contents", "write_bytes", "write_text"]


# -- files of bounded size: read whole, written whole or not at all ---------------------------------
# -- the bytes and the text of a model file, of bounded size ----------------------------------------
def regular_bytes(path: str, most: int) -> bytes | None:
    """The bytes of a regular file, one more than `most` if there are more; None for pipes, folders and terminals,
    which would make one wait for ever. `OSError` as usual."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        return None
    with open(path, "rb") as file:
        return file.read(most + 1)


def contents(source: str, max_bytes: int, hint: str = "") -> bytes:
    """All bytes of a regular file; `hint` ends the error about one that is too large."""
    try:
        data = regular_bytes(source, max_bytes)
    except OSError as error:
        raise FileError(f"{source}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a zero byte in the path
        raise FileError(f"{source!r}: cannot be read: {error}") from None
    if data is None:
        raise FileError(f"{source}: is not a regular file")
    if len(data) > max_bytes:
        raise FileError(f"{source}: is larger than {max_bytes} bytes, which no model file needs{hint}")
    return data


def text_contents(source: str, max_bytes: int) -> str:
    """The text of a regular file in UTF-8, with or without a mark at its beginning."""
    data = contents(source, max_bytes)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(f"{source}:{line}: the byte 0x{data[error.start]:02x} is not UTF-8 text; "
                        "save the file as UTF-8") from None


# -- files that are written whole or not at all -----------------------------------------------------
def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file in UTF-8, whole or not at all; as `write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file: under another name first, put in place when it is complete.

    An old file of that name stays as it was if anything goes wrong; its permissions are kept, and links followed.
    """
    given = os.fsdecode(path)
    try:
        target = os.path.realpath(given)
        mode = _mode(target)
        handle, draft = tempfile.mkstemp(dir=os.path.dirname(target) or ".", prefix=".bellcrank-", suffix=".part")
        try:
            with open(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(draft, mode)
            os.replace(draft, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft)
            raise
    except OSError as error:
        raise FileError(f"{given}: cannot be written: {error.strerror or error}") from None
    except ValueError as error:  # a zero byte in the path
        raise FileError(f"{given!r}: cannot be written: {error}") from None


def _mode(target: str) -> int:
    """The permissions a file has, or would get if it were made now."""
    try:
        found = os.stat(target)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
    if not stat.S_ISREG(found.st_mode):
        raise OSError(0, "is not a regular file")
    return stat.S_IMODE(found.st_mode)


# -- files read by a process of its own, where a library may crash on a damaged one, or never come back ---
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
