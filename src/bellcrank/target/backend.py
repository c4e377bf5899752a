"""What the library asks of a target: print, compile, hold memory, call.

A backend makes three kinds of functions of neutral programs: *kernels* (a function of arrays, for the states of a
batch), *blocks* (the same for a few states side by side, called by compiled code) and *drivers* (programs that call
blocks, such as integrators). It is a folder beside this file with a runtime, `NAME/NAME_runtime.py`;
`backend_named` finds it by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.target.kernel_source import KernelSource
from bellcrank.target.program import DriverLayout, Program

__all__ = [
    "BACKENDS",
    "Backend",
    "BatchKernel",
    "Block",
    "Call",
    "CallLists",
    "Door",
    "DoorForm",
    "Driver",
    "DriverBuffers",
    "ForeignArrays",
    "Instead",
    "PythonBlock",
    "backend_named",
    "libraries",
]

Ints = npt.NDArray[np.int64]


class BatchKernel(Protocol):
    """A compiled function for the states of a batch."""

    inputs: dict[str, int]
    out_size: int
    width: int
    rolled: Any  #: what it loops over, or None
    scratch: int  #: reals of scratch memory per lane

    @property
    def packed_strides(self) -> Ints:
        """`strides` of arrays without gaps."""

    def strides(self, of_inputs: Sequence[int]) -> Ints:
        """What `run` takes, for given distances between the states of each input."""

    def workspace(self) -> Floats:
        """Scratch memory for one thread."""

    def run(self, inputs: Sequence[Any], strides: Ints, out: Any, begin: int, end: int,
            work: Floats | None = None) -> bool:
        """Compute states `begin` to `end`; False if something was not finite."""


class Block(Protocol):
    """A compiled function of one block of states, for calls from compiled code. Results of several functions follow
    each other."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the functions."""


@dataclass(frozen=True)
class Call:
    """A block, the buffer and entry its result goes to, and inputs that are not where they usually are."""

    block: Block
    buffer: str
    start: int
    inputs: Mapping[str, tuple[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class PythonBlock:
    """A block that is not compiled: Python, called by a driver on the CPU. `compute` gets all buffers by name,
    (entries, lanes) each, and returns the result in the same form; it must not raise."""

    compute: Callable[[Mapping[str, Floats]], Floats]

    @property
    def outputs(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class CallLists:
    """What a driver calls and on which buffers."""

    width: int
    sizes: Mapping[str, int]  #: of the buffers, in values
    places: Mapping[str, tuple[str, int]]  #: of inputs: buffer and entry
    lists: Mapping[str, Sequence[Call]]  #: by name; a driver finds their lengths as n_<name>
    made: dict[Any, Any] = field(default_factory=dict, compare=False)  #: drivers that a backend has compiled for them


class DriverBuffers(Protocol):
    """Buffers, call lists and arguments of a driver: one thread's copy."""

    buffers: dict[str, Floats]
    layout: DriverLayout

    def point(self, name: str, array: npt.NDArray[Any]) -> None:
        """Let a driver's pointer refer to an array, and keep that alive."""

    def address(self, name: str, array: npt.NDArray[Any]) -> None:
        """Let a driver's pointer refer to an array that the caller keeps alive."""

    def set(self, **values: int) -> None: ...

    def set_real(self, **values: float) -> None: ...

    def get(self, name: str) -> int: ...

    def get_real(self, name: str) -> float: ...


#: a function of arrays that answers at once: a new result, or None if it cannot, and the general way is to be taken
Door = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class DoorForm:
    """How a door is called and what it returns: a new array of `shape`, behind the axis of the states if there are
    several; a number for the shape (); all of a function's entries in a row without a shape."""

    shape: tuple[int, ...] | None = None
    #: the place of an argument that is not looked at, or -1
    skipped: int = -1
    #: arrays for the last inputs where these are left out
    defaults: tuple[Floats, ...] = ()
    #: arrays that show parts of the entries, in a tuple: first entry, shape, and steps between entries
    parts: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...] = ()


#: another kernel of the same function for a state without a finite result, of which it is given the inputs; or None
Instead = Callable[..., Any]

#: runs a driver on its memory; releases the interpreter's lock
Driver = Callable[[Any], None]


class ForeignArrays(Protocol):
    """Arrays that live on a device, of whatever library."""

    def holds(self, value: Any) -> bool:
        """Whether it is one."""

    def to_numpy(self, value: Any) -> npt.NDArray[Any]:
        """A copy in this process's memory."""

    def from_numpy(self, array: npt.NDArray[Any], example: Any) -> Any:
        """A copy on the device, an array of the library that the example is from."""

    def upload(self, array: npt.NDArray[Any]) -> Any:
        """A copy on the device, an array of the library that the code is run by."""

    def empty(self, shape: tuple[int, ...], kind: type) -> Any:
        """A new array there."""


class Backend(Protocol):
    """A target with its runtime."""

    name: str
    real: str  #: numbers of results: "double" or "float"
    own_ways: bool  #: whether the states of a block may take different ways through a program: they are threads

    def lanes(self) -> int:
        """LaneStates that batches advance side by side."""

    def beside(self) -> int:
        """Entries of arrays side by side in code for one state: see `target.program.Builder.side_by_side`."""

    def threads(self) -> int:
        """Threads of this process that share a batch."""

    def in_doubles(self) -> Backend:
        """The same for doubles."""

    def foreign(self) -> ForeignArrays | None:
        """What knows arrays that are not in this process's memory, if kernels run on such."""

    def kernel(self, source: KernelSource, width: int) -> BatchKernel:
        """A compiled function for one state (`width` 1) or for lanes."""

    def block(self, source: KernelSource, names: tuple[str, ...], width: int) -> Block:
        """The same for calls from drivers; `names` are those of its results."""

    def copying(self, count: int, stride: int, offset: int, width: int) -> Block:
        """A block that makes ``out[i] = from[i * stride + offset]``."""

    def driver(self, program: Program, layout: DriverLayout, width: int, known: tuple[tuple[str, int], ...] = (),
               loops: bool = False) -> Driver:
        """A compiled driver; `known` integers become constants of the code, `loops`: time spent on loops is well spent.
        Returns while it is still being compiled, by another thread: the first run waits."""

    def memory(self, calls: CallLists, layout: DriverLayout, extra: Mapping[str, int]) -> DriverBuffers:
        """Memory for a driver, with `extra` buffers."""

    def door(self, kernel: Any, form: DoorForm, instead: Instead | None = None) -> Door | None:
        """``door(*inputs)`` for one state: the result, or None if the arrays do not fit or something is not finite.
        None where there is nothing cheaper than `BatchKernel.run`. Of arrays that live elsewhere, for any number of
        states; those without a finite result are computed by what there is `instead`."""

    def batch_door(self, kernel: Any, form: DoorForm, least: int, most: int) -> Door | None:
        """The same for `least` to `most` states: arrays (states, size), or (size,) for what is the same in all."""

    def bound(self, kernel: Any, arrays: Sequence[Any], out: Any, exception: type[Exception], message: str
              ) -> Callable[[], Any]:
        """``bound()``: run the kernel on these arrays, return `out`; raise `exception` if something is not finite."""


def _found() -> tuple[str, ...]:
    """The folders beside this file that have a runtime, in the order they wish for."""
    folder = Path(__file__).parent
    names = [p.parent.name for p in folder.glob("*/*_runtime.py")]
    return tuple(sorted(names, key=lambda name: (import_module(f"{__package__}.{name}").ORDER, name)))


#: the targets that code is run on, by the names that users give; the first is the usual one
BACKENDS = _found()


def backend_named(name: str, precision: str = "double") -> Backend:
    """The backend of a name in `BACKENDS`, for numbers of this precision."""
    made: Backend = _runtime(name).backend(precision)
    return made


def libraries(backend: str) -> tuple[str, ...]:
    """Packages that compile for a backend, and for the usual one, which helps others; results tell their versions."""
    return tuple(library for name in BACKENDS if name in (BACKENDS[0], backend)
                 for library in import_module(f"{__package__}.{name}").LIBRARIES)


def _runtime(name: str) -> Any:
    return import_module(f"{__package__}.{name}.{name}_runtime")
