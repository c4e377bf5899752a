"""Where the mesh files lie that a model file names: beside it, in the package it is part of, or where one was told."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from bellcrank.io.common.xml import clipped
from bellcrank.mechanism.geometry.triangle_mesh import FORMATS

__all__ = ["Folders", "MeshFinder", "NotFoundError"]

#: folders in which meshes may lie, besides that of the model file
Folders = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None

#: files that mark the topmost folder of a package
_MARKS = ("package.xml", "model.config")
#: folders above a model file that are looked at for such a mark
_ABOVE = 3


class NotFoundError(Exception):
    """Says why a mesh is left out."""


class MeshFinder:
    """Finds mesh files, and looks at nothing else.

    Plain names and ``file://`` are relative to the folder of the model file; the mesh must lie in that folder, or in
    that of the package around it, which holds a ``package.xml`` or ``model.config``. ``package://NAME/...`` and
    ``model://NAME/...`` are looked for in a folder NAME beside the model file or above it. `packages` are further
    folders: meshes may lie in them, and packages.
    """

    def __init__(self, packages: Folders = None) -> None:
        listed = [] if packages is None else [packages] if isinstance(packages, (str, os.PathLike)) else list(packages)
        self.told = [os.path.realpath(os.fsdecode(p)) for p in listed]
        self._found: dict[tuple[str, str], str] = {}

    def find(self, name: str, source: str, formats: Sequence[str] = FORMATS) -> str:
        """The path of the mesh (or of a file of other formats) that the file `source` calls `name`; `NotFoundError`
        says why there is none."""
        name = name.strip()
        key = name, os.path.dirname(source)
        if key not in self._found:
            self._found[key] = self._search(name, os.path.dirname(os.path.realpath(source)), formats)
        return self._found[key]

    def _search(self, name: str, here: str, formats: Sequence[str]) -> str:
        scheme, colon, rest = name.partition("://")
        if not colon:
            scheme, rest = "file", name
        if "\0" in name or not rest.strip("/"):
            raise NotFoundError(f"the mesh {clipped(name)!r} is no name of a file")
        if scheme not in ("file", "package", "model"):
            raise NotFoundError(f"the mesh {clipped(name)!r} is not read: nothing is taken from the network")
        if os.path.splitext(rest)[1].lower() not in formats:
            raise NotFoundError(f"the mesh {clipped(name)!r} is of a kind that is not read; {', '.join(formats)} are")
        places = self._beside(rest, here) if scheme == "file" else self._packages(rest.lstrip("/"), here)
        outside = False
        for path, root in places:
            path = os.path.normpath(path)
            if not _inside(path, root):
                outside = True
            elif os.path.isfile(path):
                path = os.path.realpath(path)  # where links lead
                if _inside(path, root):
                    return path
                outside = True
        if outside:
            raise NotFoundError(f"the mesh {clipped(name)!r} lies outside the folder of the model; say packages=FOLDER "
                                "to open another one")
        raise NotFoundError(f"the mesh {clipped(name)!r} was not found; say packages=FOLDER if it lies elsewhere")

    def _beside(self, rest: str, here: str) -> Iterator[tuple[str, str]]:
        """Where a relative or absolute path may lead, and the folder that it must not leave."""
        roots = [_home(here), *self.told]
        for root in roots:
            yield os.path.join(here, rest), root
        for root in self.told:
            yield os.path.join(root, rest), root

    def _packages(self, rest: str, here: str) -> Iterator[tuple[str, str]]:
        """Where a package may lie, and its folder."""
        name, _, inner = rest.partition("/")
        if name in ("", ".", "..") or not inner:
            return
        yield os.path.join(here, rest), here
        above = here
        while True:
            if os.path.basename(above) == name:
                yield os.path.join(above, inner), above
            upper = os.path.dirname(above)
            if upper == above:
                break
            above = upper
        for root in self.told:
            yield os.path.join(root, rest), root
            if os.path.basename(root) == name:
                yield os.path.join(root, inner), root


def _home(here: str) -> str:
    """The folder of the package that a folder is part of, or the folder itself."""
    above = here
    for _ in range(_ABOVE + 1):
        if any(os.path.isfile(os.path.join(above, mark)) for mark in _MARKS):
            return above
        above = os.path.dirname(above)
    return here


def _inside(path: str, root: str) -> bool:
    try:
        return os.path.commonpath([path, root]) == root
    except ValueError:  # on another drive
        return False
