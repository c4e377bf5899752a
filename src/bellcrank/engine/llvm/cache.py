"""A folder of compiled code. Whatever is wrong with an entry, it is ignored and made again.

An entry is ``magic, key, SHA-256 of the code, code``. It is used only if the file belongs to the user who
runs the program, nobody else may write it, and key and checksum agree; writing is atomic.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from pathlib import Path

__all__ = ["fetch", "folder", "keep"]

_MAGIC = b"bellcrank-code-1\n"


def folder() -> Path | None:
    """Where compiled code is kept; None if ``BELLCRANK_CACHE`` is "off" (or set it to another folder)."""
    chosen = os.environ.get("BELLCRANK_CACHE", "")
    if chosen.lower() in ("off", "0", "none"):
        return None
    if chosen:
        return Path(chosen).expanduser()
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
        with open(place / f"{key}.o", "rb") as file:
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
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)


def _is_ours(descriptor: int) -> bool:
    """Only code that this user alone can have written is ever executed."""
    if not hasattr(os, "geteuid"):
        return True
    status = os.fstat(descriptor)
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022
