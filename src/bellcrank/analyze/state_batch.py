"""The same kind of object for every state of a batch, used as if it were one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["StateBatch"]


class StateBatch:
    """Objects at the states of a batch. Its attributes, methods and products are those of each object; arrays that come
    out are stacked, so that they have the axes of the batch first, and tuples of arrays likewise; what else comes out
    is a batch again. ``batch[i]`` is the object of one state.

    >>> import numpy as np
    >>> batch = StateBatch.of((2,), lambda index: np.ones((3, 1)) * index[0])
    >>> batch.T.shape, batch.sum()
    ((2, 1, 3), array([0., 3.]))
    """

    def __init__(self, each: npt.NDArray[np.object_]) -> None:
        self._each = each

    @staticmethod
    def of(lead: tuple[int, ...], make: Callable[[tuple[int, ...]], Any]) -> StateBatch:
        """What `make` makes for every index of a batch with these axes."""
        each = np.empty(lead, dtype=object)
        for index in np.ndindex(*lead):
            each[index] = make(index)
        return StateBatch(each)

    def __getitem__(self, index: Any) -> Any:
        found = self._each[index]
        return StateBatch(found) if isinstance(found, np.ndarray) and found.dtype == object else found

    def __len__(self) -> int:
        return len(self._each)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of copying and pickling
            raise AttributeError(name)
        return self._gathered(lambda index, x: getattr(x, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._gathered(lambda index, x: x(*(self._at(a, index) for a in args), **kwargs))

    def __matmul__(self, other: Any) -> Any:
        return self._gathered(lambda index, x: x @ self._at(other, index))

    def __repr__(self) -> str:
        first = repr(self._each.flat[0]) if self._each.size else "nothing"
        return f"<batch {self._each.shape} of {first}>"

    def _at(self, value: Any, index: tuple[int, ...]) -> Any:
        """The part of an argument that belongs to a state: of another batch, of an array with this one's axes."""
        if isinstance(value, StateBatch):
            return value[index]
        lead = self._each.shape
        return value[index] if isinstance(value, np.ndarray) and value.shape[:len(lead)] == lead else value

    def _gathered(self, ask: Callable[[tuple[int, ...], Any], Any]) -> Any:
        lead = self._each.shape
        found = [ask(index, self._each[index]) for index in np.ndindex(*lead)]
        if found and isinstance(found[0], tuple) and all(isinstance(x, np.ndarray) for x in found[0]):
            parts = [_stacked(lead, part) for part in zip(*found, strict=True)]
            return type(found[0])(*parts) if hasattr(found[0], "_fields") else tuple(parts)
        if found and all(isinstance(x, (np.ndarray, float)) for x in found):
            return _stacked(lead, found)
        return StateBatch.of(lead, dict(zip(np.ndindex(*lead), found, strict=True)).__getitem__)


def _stacked(lead: tuple[int, ...], parts: Any) -> npt.NDArray[Any]:
    each = np.array(parts)
    return np.asarray(each.reshape(*lead, *each.shape[1:]), dtype=np.result_type(each, float))
