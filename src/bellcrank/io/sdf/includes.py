"""Files that an SDF file includes: found in the same folder only, each read once, never in a circle."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from bellcrank.errors import FileError
from bellcrank.io.common.xml import MAX_ELEMENTS, XmlElement, clipped, read_xml
from bellcrank.io.sdf.text_values import text_in

__all__ = ["MAX_INCLUDES", "ModelFiles", "version_of"]

#: includes in one machine, those inside included files counted again each time
MAX_INCLUDES = 1000
_OLDEST, _NEWEST = (1, 4), (1, 12)


def version_of(root: XmlElement) -> tuple[int, int]:
    """The version of an SDF file, which says what its poses and axes mean."""
    if root.tag != "sdf":
        raise root.error("is not an SDF file: its outermost element is not <sdf>")
    text = root.attributes.get("version", "").strip()
    parts = text.split(".")
    if not text:
        raise root.error("has no version; what poses and axes mean depends on it, such as version=\"1.7\"")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
        raise root.error(f"the version {clipped(text)!r} is not one of SDF, such as 1.7")
    version = int(parts[0]), int(parts[1])
    if not _OLDEST <= version <= (_NEWEST[0], 99):
        raise root.error(f"version {text} cannot be read; versions 1.{_OLDEST[1]} to 1.{_NEWEST[1]} can")
    return version


@dataclass
class ModelFiles:
    """The folder of the file that is being read, and what was read from it."""

    folder: str
    opened: dict[str, XmlElement] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    count: int = 0
    elements: int = 0

    @staticmethod
    def of(root: XmlElement) -> ModelFiles:
        """The library for a file and what it may include."""
        place = os.path.realpath(root.source)
        return ModelFiles(os.path.dirname(place), {place: root})

    def find(self, include: XmlElement, source: str) -> str | None:
        """The path of the included file, or None if there is none in the folder."""
        uri = text_in(include, "uri")
        at = include.only("uri")
        scheme, colon, rest = uri.partition("://")
        if not colon:
            scheme, rest = "file", uri
        if scheme not in ("file", "model"):
            raise at.error(f"{clipped(uri)!r}: only files beside the model file are read (model:// and file://), "
                           "nothing from the network")
        if "\0" in rest or os.path.isabs(rest) or "\\" in rest or ":" in rest or ".." in rest.split("/"):
            raise at.error(f"{clipped(uri)!r} leads out of the folder of the model file; put the included file beside "
                           "it and name it by a relative path")
        bases = [os.path.dirname(source)] if scheme == "file" else [self.folder, os.path.dirname(source)]
        for base in dict.fromkeys(bases):
            found = self._file(os.path.realpath(os.path.join(base, rest)), at, uri)
            if found is not None:
                return found
        return None

    def _file(self, path: str, at: XmlElement, uri: str) -> str | None:
        """A file, or the model file in a folder of that name."""
        try:
            if os.path.isdir(path):
                listed = self._listed(path)
                path = os.path.realpath(os.path.join(path, listed or "model.sdf"))
            elif not os.path.exists(path):
                path = os.path.realpath(path + ".sdf")
            if not os.path.isfile(path):
                return None
        except (OSError, ValueError) as error:
            raise at.error(f"{clipped(uri)!r} cannot be opened: {error}") from None
        if os.path.commonpath([path, self.folder]) != self.folder:
            raise at.error(f"{clipped(uri)!r} leads out of the folder of the model file; put the included file beside "
                           "it and name it by a relative path")
        return path

    def _listed(self, folder: str) -> str | None:
        """The newest model file that a model.config names."""
        config = os.path.join(folder, "model.config")
        if not os.path.isfile(config) or os.path.commonpath([os.path.realpath(config), self.folder]) != self.folder:
            return None
        named = [(e.attributes.get("version", ""), e.text) for e in read_xml(config).all("sdf") if e.text]
        names = [text for _, text in sorted(named, key=lambda pair: _order(pair[0]))]
        return names[-1] if names else None

    def read(self, path: str, include: XmlElement) -> XmlElement:
        """The root element of an included file; the bounds hold for all files together."""
        self.count += 1
        if self.count > MAX_INCLUDES:
            raise include.error(f"more than {MAX_INCLUDES} files are included, those inside others counted each time")
        if path not in self.opened:
            try:
                self.opened[path] = read_xml(path)
            except FileError as error:
                raise FileError(f"{error} (included by {include.source}:{include.line})") from None
        if path not in self.sizes:
            self.sizes[path] = sum(1 for _ in self.opened[path].walk())
        self.elements += self.sizes[path]
        if self.elements > MAX_ELEMENTS:
            raise include.error(f"the included files have more than {MAX_ELEMENTS} elements together")
        return self.opened[path]


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isascii() and part.isdigit() and len(part) < 4)
