"""A folder of compiled code. Whatever is wrong with an entry, it is ignored and made again.

An entry is ``magic, key, SHA-256 of the code, code``. It is used only if it is a file that belongs to the user who
runs the program, nobody else may write it, and key and checksum agree; writing is atomic. A folder that cannot be made
or written is no error and not worth a word (code is made again in every process); one that has no path is a
`CacheWarning`, once in a process.

The folder holds at most ``BELLCRANK_CACHE_SIZE`` megabytes (500 unless given): of more, entries that were not used for
the longest time are removed. Several processes may do so at once: an entry that is gone is made again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from bellcrank.errors import CacheWarning, outside

__all__ = ["fetch", "folder", "keep", "size_limit"]

_MAGIC = b"bellcrank-code-1\n"
_DRAFT = "bellcrank-"
#: megabytes that the folder may hold, unless ``BELLCRANK_CACHE_SIZE`` says otherwise
_USUAL_SIZE = 500.0
#: part of that which is left when entries are removed, and which is written before the folder is looked at again
_LEFT, _UNSEEN = 0.8, 0.05
#: seconds after which the use of an entry is noted again, and after which drafts are leftovers
_HOUR, _DAY = 3600.0, 86400.0
#: bytes that this process has written since it looked at the folder; it looks when it writes for the first time
_unseen = float("inf")


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
    warnings.warn(said, CacheWarning, stacklevel=outside())


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
            _note_use(place / f"{key}.o", os.fstat(file.fileno()).st_mtime)
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
        handle, name = tempfile.mkstemp(dir=place, prefix=_DRAFT, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + key.encode() + b"\n" + hashlib.sha256(code).digest() + code)
            os.replace(name, place / f"{key}.o")
        except BaseException as error:  # an interrupt must leave nothing behind either
            with contextlib.suppress(OSError):
                os.unlink(name)
            if not isinstance(error, OSError):
                raise
        _bound(place, len(code))


def size_limit() -> float:
    """Bytes that the folder may hold."""
    given = os.environ.get("BELLCRANK_CACHE_SIZE", "")
    try:
        size = float(given) if given else _USUAL_SIZE
    except ValueError:
        size = math.nan
    if not size >= 0.0:
        _warn(f"BELLCRANK_CACHE_SIZE={given!r} is not a number of megabytes; {_USUAL_SIZE:g} are kept")
        size = _USUAL_SIZE
    return 1e6 * size


def _note_use(path: Path, last: float) -> None:
    """Let the time of an entry be that of its last use, to the hour."""
    if time.time() - last > _HOUR:
        with contextlib.suppress(OSError):
            os.utime(path)


def _bound(place: Path, written: int) -> None:
    """Remove what was not used for the longest time, if the folder holds more than it may. Looked at once by a process
    that writes, and again when it has written much."""
    global _unseen
    _unseen += written
    limit = size_limit()
    if _unseen <= _UNSEEN * limit:
        return
    _unseen = 0.0
    entries = sorted(_entries(place))
    total = sum(size for _, size, _ in entries)
    if total <= limit:
        return
    for _, size, path in entries:
        if total <= _LEFT * limit:
            return
        if _is_entry(path):
            with contextlib.suppress(OSError):
                os.unlink(path)
                total -= size


def _entries(place: Path) -> Iterator[tuple[float, int, str]]:
    """(last use, bytes, path) of what may be an entry; drafts that were left behind are removed."""
    with os.scandir(place) as found:
        for file in found:
            with contextlib.suppress(OSError):
                status = file.stat(follow_symlinks=False)
                if not stat.S_ISREG(status.st_mode):
                    continue
                if file.name.endswith(".o"):
                    yield status.st_mtime, status.st_size, file.path
                elif file.name.startswith(_DRAFT) and time.time() - status.st_mtime > _DAY:
                    os.unlink(file.path)


def _is_entry(path: str) -> bool:
    """Whether a file is compiled code of ours: the folder may hold others' files."""
    try:
        with open(path, "rb", opener=_open) as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


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
