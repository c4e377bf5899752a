"""The bytes of a model file, of bounded size."""

from __future__ import annotations

import os
import stat

from bellcrank.errors import FileError

__all__ = ["contents"]


def contents(source: str, max_bytes: int, hint: str = "") -> bytes:
    """All bytes of a regular file; `hint` ends the error about one that is too large."""
    try:
        # opening a pipe or a terminal would wait for ever
        regular = stat.S_ISREG(os.stat(source).st_mode)
        data = b""
        if regular:
            with open(source, "rb") as file:
                data = file.read(max_bytes + 1)
    except OSError as error:
        raise FileError(f"{source}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a zero byte in the path
        raise FileError(f"{source!r}: cannot be read: {error}") from None
    if not regular:
        raise FileError(f"{source}: is not a regular file")
    if len(data) > max_bytes:
        raise FileError(f"{source}: is larger than {max_bytes} bytes, which no model file needs{hint}")
    return data
