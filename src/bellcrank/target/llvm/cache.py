"""A folder of compiled code. Whatever is wrong with an entry, it is ignored and made again.

An entry is ``magic, key, SHA-256 of the code, code``. It is used only if it is a file that belongs to the user who
runs the program, nobody else may write it, and key and checksum agree; writing is atomic. A folder that cannot be made
or written is no error and not worth a word (code is made again in every process); one that has no path is a
`CacheWarning`, once in a process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import sys
import tempfile
import warnings
from pathlib import Path

from bellcrank.errors import CacheWarning

__all__ = ["fetch", "folder", "keep"]

_MAGIC = b"bellcrank-code-1\n"


def folder() -> Path | None:
    """Where compiled code is kept; None if ``BELLCRANK_CACHE`` is "off" (or set it to another folder), or if there is
    no home folder to keep it in."""
    chosen = os.environ.get("BELLCRANK_CACHE", "")
    if chosen.lower() in ("off", "0", "none"):
        return None
    try:
        return Path(chosen).expanduser() if chosen else _usual()
    except RuntimeError as error:  # no home folder: an unknown user, or one without an account
        _warn(f"compiled code is not kept, and will be made again by every process: {error}; set BELLCRANK_CACHE to a "
              "folder, or to \"off\"")
        return None


@functools.cache
def _warn(said: str) -> None:
    """Warn once of each thing."""
    warnings.warn(said, CacheWarning, stacklevel=2)


def _usual() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "bellcrank"


def fetch(key: str) -> bytes | None:
    """The code kept under `key`, or None."""
    place = folder()
    if place is None:
        return None
    try:
        with open(place / f"{key}.o", "rb", opener=_open) as file:
            if not _is_ours(file.fileno()):
                return None
            data = file.read()
    except OSError:
        return None
    head = _MAGIC + key.encode() + b"\n"
    code = data[len(head) + 32:]
    if not data.startswith(head) or hashlib.sha256(code).digest() != data[len(head):len(head) + 32]:
        return None
    return code


def keep(key: str, code: bytes) -> None:
    """Keep `code` under `key`; a full disk or a read-only folder is no error."""
    place = folder()
    if place is None:
        return
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=place, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + key.encode() + b"\n" + hashlib.sha256(code).digest() + code)
            os.replace(name, place / f"{key}.o")
        except BaseException as error:  # an interrupt must leave nothing behind either
            with contextlib.suppress(OSError):
                os.unlink(name)
            if not isinstance(error, OSError):
                raise


def _open(name: str, flags: int) -> int:
    """Open without waiting for somebody who writes, as a pipe would."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


def _is_ours(descriptor: int) -> bool:
    """Only code that this user alone can have written is ever executed, from ordinary files."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022
