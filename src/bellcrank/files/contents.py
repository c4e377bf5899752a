"""The bytes and the text of a model file, of bounded size."""

from __future__ import annotations

import os
import stat

from bellcrank.errors import FileError

__all__ = ["contents", "regular_bytes", "text_contents"]


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
