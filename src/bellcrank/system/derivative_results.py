"""A value and its derivatives, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from bellcrank.arrays import Floats
from bellcrank.system.derivative_questions import Question, Reading

if TYPE_CHECKING:
    import xarray

__all__ = ["Derivatives", "read_entries"]


class Derivatives(Mapping[str, Floats]):
    """A value and its derivatives: ``d["q"]`` is an array ``(*batch, *value, columns)``, one column a direction.

    `columns` names them. A number that is differentiated by (time, one parameter) has no axis of columns.
    """

    def __init__(self, name: str, value: Floats, parts: Mapping[str, Floats], axes: Sequence[tuple[str, Sequence[Any]]],
                 columns: Mapping[str, tuple[str, ...]]) -> None:
        self.name, self.value, self._parts, self.axes = name, value, dict(parts), tuple(axes)
        #: names of the directions, by variable; `axes`: of the value's own axes and their entries
        self.columns = dict(columns)

    def with_parts(self, parts: Mapping[str, Floats], columns: Mapping[str, tuple[str, ...]] | None = None
                   ) -> Derivatives:
        """The same value with these derivatives."""
        return Derivatives(self.name, self.value, parts, self.axes, self.columns if columns is None else columns)

    def __getitem__(self, by: str) -> Floats:
        return self._parts[by]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{by}: {array.shape}" for by, array in self._parts.items())
        return f"<derivatives of {self.name}: {shapes}>"

    def dataset(self) -> xarray.Dataset:
        """All of it with names, as an `xarray.Dataset`: the value, and ``d_<variable>`` for each variable."""
        import xarray

        own = [name for name, _ in self.axes]
        lead = [f"batch{i}" for i in range(self.value.ndim - len(own))]
        coordinates: dict[str, Any] = {name: list(labels) for name, labels in self.axes}
        arrays: dict[str, Any] = {self.name: ([*lead, *own], self.value)}
        for by, array in self._parts.items():
            columns = self.columns.get(by)
            if columns is not None:
                coordinates[f"by_{by}"] = list(columns)
            arrays[f"d_{by}"] = ([*lead, *own, *([] if columns is None else [f"by_{by}"])], array)
        return xarray.Dataset(arrays, coordinates)


def read_entries(asked: Question, reading: Reading, rows: Floats) -> Derivatives:
    """Entries as named arrays."""
    lead, size, shape = rows.shape[:-1], reading.size, reading.shape
    parts: dict[str, Floats] = {}
    value, at = rows[..., :0], 0
    if asked.then is None:
        value, at = rows[..., :size].reshape((*lead, *shape)), size
    if asked.product == "along":
        return Derivatives(asked.function, value, {"along": rows[..., size:].reshape((*lead, *shape))}, reading.axes,
                           {})
    if asked.product == "twice":
        parts["along"], at = rows[..., size:2 * size].reshape((*lead, *shape)), 2 * size
    own = () if asked.product else shape
    after = reading.parts[asked.then] if asked.then is not None else ()
    for label in asked.by:
        whole = (*own, *reading.parts[label], *after)
        count = prod(whole)
        parts[label] = rows[..., at:at + count].reshape((*lead, *whole))
        at += count
    return Derivatives(asked.function, value, parts, reading.axes if not asked.product else (), reading.columns)
