"""Files of states: JSON that can be read and edited, or arrays of NumPy, by the ending of the name."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from bellcrank.errors import FileError
from bellcrank.files.model_files import contents, write_bytes

__all__ = ["read_state", "write_state"]

_FORMAT, _VERSION = "bellcrank state", 1
_NAMES, _ARRAYS = ("coordinates", "speeds"), ("q", "u", "t")
#: the largest file that is read
_MOST = 1 << 33


def write_state(file: str | os.PathLike[str], parts: Mapping[str, Any]) -> None:
    """Write names and arrays, by the ending of the file's name."""
    arrays = {key: np.asarray(parts[key], dtype=np.float64) for key in _ARRAYS}
    if parts["contacts"] is not None:
        arrays["contacts"] = np.asarray(parts["contacts"], dtype=np.float64)
    failures = [[list(f.index), f.joint, f.reason] for f in parts["failures"]]
    head = {"format": _FORMAT, "version": _VERSION, **{key: list(parts[key]) for key in _NAMES},
            **({"failures": failures} if failures else {})}
    if _ending(file) == ".npz":
        into = io.BytesIO()
        np.savez_compressed(into, head=np.array(json.dumps(head)), **arrays)  # type: ignore[arg-type]
        write_bytes(file, into.getvalue())
        return
    numbers = {key: (np.where(np.isnan(array), None, array) if failures else array).tolist()  # type: ignore[call-overload]
               for key, array in arrays.items()}
    try:
        text = ",\n".join(f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}"
                          for key, value in {**head, **numbers}.items())
    except ValueError:
        raise FileError(f"{os.fsdecode(file)}: JSON has no numbers that are not finite, and the state has some; a name "
                        "that ends in .npz takes them") from None
    write_bytes(file, f"{{\n{text}\n}}\n".encode())


def read_state(file: str | os.PathLike[str]) -> dict[str, Any]:
    """What `write_state` wrote, checked."""
    name = os.fsdecode(file)
    read = _from_arrays if _ending(file) == ".npz" else json.loads
    data = contents(name, _MOST)
    try:
        found = read(data)
        if found["format"] != _FORMAT:
            raise ValueError(f"its format is {found['format']!r}")
        if found["version"] != _VERSION:
            raise ValueError(f"its version is {found['version']!r}, and this library reads version {_VERSION}")
        return _checked(found)
    except (ValueError, TypeError, KeyError, AttributeError, EOFError, RecursionError, NotImplementedError,
            zipfile.BadZipFile, zipfile.zlib.error) as error:  # type: ignore[attr-defined]
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise FileError(f"{name}: is damaged, or not a file that State.save wrote ({said}); save the state again"
                        ) from None


def _ending(file: str | os.PathLike[str]) -> str:
    ending = os.path.splitext(os.fsdecode(file))[1].lower()
    if ending not in (".json", ".npz"):
        raise FileError(f"{os.fsdecode(file)}: states are kept in files whose names end in .json or .npz")
    return ending


def _from_arrays(data: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        arrays = {key: found[key] for key in found.files}
    head = json.loads(str(arrays.pop("head")))
    return {**arrays, **head}


def _checked(found: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {key: tuple(found[key]) for key in _NAMES}
    if not all(isinstance(name, str) for key in _NAMES for name in found[key]):
        raise ValueError("its names are not text")
    out |= {key: np.array(found[key], dtype=np.float64) for key in _ARRAYS}
    out["failures"] = [(tuple(int(i) for i in index), str(joint), str(reason))
                       for index, joint, reason in found.get("failures", [])]
    out["contacts"] = None if found.get("contacts") is None else np.array(found["contacts"], dtype=np.float64)
    for key, names in (("q", out["coordinates"]), ("u", out["speeds"])):
        if not out[key].ndim or (out["coordinates"] + out["speeds"] and out[key].shape[-1] != len(names)):
            raise ValueError(f"{key} has the shape {out[key].shape} and {len(names)} names")
    np.broadcast_shapes(out["q"].shape[:-1], out["u"].shape[:-1], out["t"].shape)
    out["t"] = out["t"] if out["t"].ndim else float(out["t"])
    return out
