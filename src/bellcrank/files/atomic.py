"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile

from bellcrank.errors import FileError

__all__ = ["write_bytes", "write_text"]


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
