"""What is compiled: a description, its tree, the method and the options. Data alone; `Kernels` compute with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_unmasked, leading, wrench_array
from bellcrank.errors import ModelError
from bellcrank.loops.tolerances import DRAWING
from bellcrank.mechanism.carried_joints import uncarried
from bellcrank.mechanism.fingerprint import fingerprint, fingerprint_of
from bellcrank.mechanism.forces.element import bind_parameters
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.system.configuration import Configuration
from bellcrank.topology.tree import Tree

__all__ = ["Model", "Options"]

#: a joint that is locked, and which of its coordinates, all of them if None
Locked = tuple[str, int | None]


@dataclass(frozen=True)
class Options:
    """What `compile` was asked for about the loops."""

    actuated: tuple[str, ...] = ()  #: joints with drives
    independent: tuple[str, ...] = ()  #: joints whose speeds shall stay independent where possible
    baumgarte: tuple[float, float] = (0.0, 0.0)  #: alpha and beta of the multiplier methods
    drawing_tolerance: float = DRAWING  #: see `loops.drawing_tolerance`
    chosen: bool = False  #: whether `compile` was asked about where loops are cut, or which joints keep coordinates


@dataclass(frozen=True, eq=False)
class Model:
    """What a `System` computes with, as data: frozen, hashable, picklable. Models are equal if everything in them is.

    >>> import pickle
    >>> import bellcrank as bc
    >>> model = bc.compile(bc.load("four_bar")).model
    >>> model.name, model.method, model.tree.cut_names
    ('four-bar', 'elimination', ('D',))
    >>> pickle.loads(pickle.dumps(model)) == model
    True
    """

    mechanism: Mechanism  #: the description; a copy that nothing changes
    tree: Tree  #: the spanning tree of its links, and what closes the loops
    method: str  #: the formulation
    options: Options = Options()
    values: Mapping[str, Any] = field(default_factory=dict)  #: of the parameters: numbers, or arrays with batch axes
    released: tuple[str, ...] = ()  #: what `System.release` has opened
    locked: tuple[Locked, ...] = ()  #: what `System.lock` holds
    whole: Tree | None = None  #: the tree as it was before `release`
    absent: tuple[str, ...] = ()  #: bodies that are not in the run; they are locked
    pins: tuple[tuple[str, tuple[float, ...]], ...] = ()  #: closing joints that stops or locks of a run hold, and where
    near: Floats | None = None  #: a position near which the loops close, if that is known; else the neutral one

    # -- what follows from it -------------------------------------------------------------------
    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.tree.name

    @property
    def body_names(self) -> tuple[str, ...]:
        """All bodies but the ground, in the order they were added; without carriers, which come last in the tree."""
        carriers = len(self.mechanism.carriers)
        return self.tree.body_names[1:len(self.tree.body_names) - carriers]

    @cached_property
    def described(self) -> Mechanism:
        """The mechanism as it was described, without carriers."""
        return uncarried(self.mechanism)

    def wrench_rows(self, wrenches: Mapping[str, npt.ArrayLike] | npt.ArrayLike) -> Floats:
        """External wrenches on all bodies of the tree, (..., bodies, 6), from those on bodies that were described, by
        name or as an array, or from an array that has those on carriers already."""
        carriers, names = len(self.mechanism.carriers), self.tree.body_names[1:]
        if not carriers or (not isinstance(wrenches, Mapping) and np.shape(wrenches)[-2:] == (len(names), 6)):
            return wrench_array(wrenches, names)
        own = wrench_array(wrenches, self.body_names)
        return np.concatenate([own, np.zeros((*own.shape[:-2], carriers, 6))], axis=-2)

    def of_described(self, rows: Floats) -> Floats:
        """Wrenches (..., bodies, 6) on all bodies of the tree as those on bodies that were described: what acts on a
        carrier acts on the body that it stands for, whose frame lies where that of the carrier does."""
        real, out = len(self.body_names), rows
        for k, carrier in enumerate(self.mechanism.carriers):
            if carrier.real in self.body_names:
                out = out.copy() if out is rows else out
                out[..., self.body_names.index(carrier.real), :] += rows[..., real + k, :]
        return out[..., :real, :]

    @cached_property
    def configuration(self) -> Configuration:
        """Names of coordinates and speeds, their places in q and u, and the operations of configuration space."""
        return Configuration(self.mechanism, self.tree.length)

    @property
    def mass(self) -> float:
        """Mass of all moving bodies [kg], parameters at their defaults. What is welded to the ground is part of the
        ground: here, in `center_of_mass`, `momentum` and `potential_energy`."""
        return float(self.tree.inertia[1:, 0].sum())

    @cached_property
    def batched(self) -> bool:
        """Whether some parameter has many values."""
        return any(np.ndim(v) for v in self.values.values())

    @cached_property
    def parameter_axes(self) -> tuple[int, ...]:
        """The batch axes that arrays of parameters have in common."""
        return leading([np.empty((*np.shape(v), 0)) for v in self.values.values()]) if self.batched else ()

    @cached_property
    def dense_loops(self) -> bool:
        """Whether loops are solved by the full equations of all speeds and constraints, by LAPACK."""
        return self.tree.looped and self.method == "dense"

    def prescribed_mask(self) -> npt.NDArray[np.bool_]:
        """Which speeds follow prescribed motions, shape (nu,)."""
        return self.tree.prescribed_speeds()

    def bound_mask(self) -> npt.NDArray[np.bool_]:
        """Which speeds assembly does not choose: prescribed ones, and those of loop joints, which follow, (nu,)."""
        return self.prescribed_mask() | self.tree.loop_speeds()

    # -- parameters -----------------------------------------------------------------------------
    def values_of(self, entries: Sequence[Any]) -> Floats:
        """Numbers or expressions of parameters as an array; arrays of parameter values add leading axes."""
        values = [bind_parameters(x, lambda name: np.asarray(self.values[name], dtype=float)) for x in entries]
        return np.stack(np.broadcast_arrays(*values), axis=-1)

    def with_values(self, values: Mapping[str, npt.ArrayLike]) -> Model:
        """The same with other values of parameters."""
        for name in values:
            if name not in self.values:
                known = ", ".join(self.values) or "none"
                raise ModelError(f"no parameter {name!r} in {self.name!r}; it has {known}")
            check_unmasked(f"parameter {name!r}: value", values[name])
        return replace(self, values={**self.values, **values})

    def body_shift(self, index: int) -> Floats:
        """Origin of a body in its link's frame, (..., 3)."""
        symbolic = self.tree.body_shift_symbolic.get(index)
        return self.tree.body_shift[index] if symbolic is None else self.values_of(symbolic)

    # -- equality -------------------------------------------------------------------------------
    @cached_property
    def digest(self) -> str:
        """A fingerprint of all of it, the same in every process. Cost: O(bodies), once."""
        rest = [getattr(self, f.name) for f in fields(self) if f.name != "mechanism"]
        return fingerprint_of((fingerprint(self.mechanism, fixed=True), *rest))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Model) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}
