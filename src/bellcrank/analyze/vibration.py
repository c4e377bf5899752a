"""Natural modes: frequencies, damping and shapes of small vibrations about an equilibrium."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bellcrank.analyze.linear_models import LinearModel, eigen, linear_model, without_integrals
from bellcrank.analyze.minimal import (
    StateBatch,
    closed_states,
    driven_entries,
    force_arrays,
    independent_names,
    state_entries,
    with_links,
)
from bellcrank.arrays import Floats
from bellcrank.compiled.system import System
from bellcrank.errors import StateError
from bellcrank.system.kernels import Wrenches
from bellcrank.system.state import State

__all__ = ["Modes", "modes"]

#: squares of frequencies below this, relative to the largest, are rigid-body motions
_RIGID = 1e-9


@dataclass(frozen=True, eq=False)
class Modes:
    """Modes in order of frequency; entry i of every field belongs to mode i. Prints as a table."""

    damped: bool
    eigenvalues: npt.NDArray[np.complex128]  #: [1/s], of each pair the one with positive imaginary part
    shapes: npt.NDArray[np.complex128] | Floats  #: (modes, nu): all speeds, loops closed; the largest entry is 1
    names: tuple[str, ...]  #: of the speeds, the last axis of `shapes`
    participation: Floats  #: (modes, nu): share of each speed in the kinetic energy; rows add up to 1
    mass: Floats  #: (k, k) in the model's minimal coordinates, as are the next
    stiffness: Floats  #: along motions of the independent speeds; not symmetric if forces have no potential
    damping_matrix: Floats  #: with gyroscopic parts, which do no work
    model: LinearModel  #: the linear model behind

    @property
    def angular(self) -> Floats:
        """Natural angular frequencies [rad/s]: the sizes of the eigenvalues."""
        return np.abs(self.eigenvalues)

    @property
    def frequencies(self) -> Floats:
        """Natural frequencies [Hz]; zero for rigid-body motions."""
        return self.angular / (2.0 * np.pi)

    @property
    def damping(self) -> Floats:
        """Damping ratios: 1 is critical or more, negative unstable, 0 for rigid-body motions."""
        size = self.angular
        return 0.0 - np.where(size > 0.0, self.eigenvalues.real / np.where(size > 0.0, size, 1.0), 0.0)

    @property
    def unstable(self) -> npt.NDArray[np.bool_]:
        """Modes that grow."""
        return self.eigenvalues.real > 1e-9 * max(float(self.angular.max(initial=0.0)), 1e-300)

    def shape(self, mode: int) -> dict[str, complex | float]:
        """One shape as {speed: amplitude}."""
        return dict(zip(self.names, self.shapes[mode].tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.eigenvalues)

    def __str__(self) -> str:
        kind = "damped" if self.damped else "undamped"
        lines = [f"{len(self)} {kind} modes", "mode  frequency [Hz]  damping ratio  largest motions"]
        for i in range(len(self)):
            order = np.argsort(-np.abs(self.shapes[i]), kind="stable")[:3]
            largest = ", ".join(f"{self.names[j]} {_amount(self.shapes[i][j])}" for j in order
                                if abs(self.shapes[i][j]) > 1e-3)
            note = "  unstable" if self.unstable[i] else ""
            lines.append(f"{i + 1:>4}  {self.frequencies[i]:>14.6g}  {self.damping[i]:>13.4g}  {largest}{note}")
        return "\n".join(lines)


def modes(system: System, state: State | tuple[npt.ArrayLike, npt.ArrayLike], *, damped: bool = False,
          tau: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None = None, wrenches: Wrenches = None,
          t: npt.ArrayLike | None = None) -> Modes | StateBatch:
    """Modes of small vibrations about an equilibrium (see `equilibrium`); of a batch of them, a `StateBatch` of modes.

    Undamped: from mass and stiffness in minimal coordinates, as if dampers, friction and gyroscopic forces were not
    there; real shapes. Damped: from the eigenvalues of the linear model, complex shapes, one mode for each pair and
    one for each real eigenvalue; machines that turn or roll steadily have modes too. States of elements stay as they
    are in undamped modes and take part in damped ones. A position that is no equilibrium is an
    error. Accuracy as that of `linearize`: about ten digits of well separated frequencies. Rigid-body motions are 0
    (frequencies below 3e-5 of the largest, damped ones below 1e-5, are taken for them).

    >>> import bellcrank as bc
    >>> pendulum = bc.compile(bc.load("double_pendulum"))
    >>> bc.analyze.modes(pendulum, bc.analyze.equilibrium(pendulum)).frequencies.round(4)
    array([0.4266, 1.1441])
    """
    each = closed_states(system, state, t, "modes")

    def at(index: tuple[int, ...]) -> Modes:
        one: State = each[index]
        names = independent_names(system, one)
        machine = with_links(system, names) or system
        forces = force_arrays(machine, tau, each.shape)[index]
        return _modes_of(linear_model(machine, one, forces, (), (), driven_entries(machine, names, "modes"),
                                     wrenches, each.size), system, damped)

    return StateBatch.of(each.shape, at) if each.ndim else at(())


def _modes_of(model: LinearModel, system: System, damped: bool) -> Modes:
    """The modes by a linear model."""
    p, trim = len(model.chart.placed), model.state
    basis = model.shapes
    whole = system.mass_matrix(trim.q, t=trim.t, speeds="tree")
    mass = basis.T @ whole @ basis
    stiffness, damping = -mass @ model.A[p:, :p] @ model.A[:p, p:], -mass @ model.A[p:, p:]
    _check(system, model, mass, stiffness)
    shapes: npt.NDArray[np.complex128] | Floats
    moving = [i for i, v in enumerate(model.chart.independent) if v not in state_entries(model.chart.system)]
    if damped:
        values, shapes = _damped(model, p)
        basis = model.displacements
    else:  # states of elements stay as they are
        _check_rolling(system, model)
        some = np.ix_(moving, moving)
        values, shapes = _undamped(system, mass[some], stiffness[some])
        basis = basis[:, moving]
    full = (basis @ shapes).T
    for row in full:
        row /= row[int(np.argmax(np.abs(row)))]
    whole[state_entries(system)] = 0.0  # states of elements have no energy
    share = np.real(np.conj(full) * (full @ whole.T))
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    return Modes(damped, values, full, system.speed_names, share, mass, stiffness, damping, model)


def _check(system: System, model: LinearModel, mass: Floats, stiffness: Floats) -> None:
    """Refuse what is no equilibrium: vibrations are about one."""
    force = mass @ model.rate[len(model.chart.placed):]
    weights = system.bias(model.state.q, np.zeros(system.nu), t=model.state.t, speeds="tree")
    reference = np.abs(model.shapes).T @ np.abs(weights)
    size = float(reference.max(initial=0.0)) + float(np.abs(stiffness).max(initial=0.0))
    worst = float(np.abs(force).max(initial=0.0))
    if worst > 1e-6 * size and worst > 1e-12 * _least(system):
        i = int(np.argmax(np.abs(force)))
        raise StateError(f"modes of {system.model.name!r}: this is no equilibrium: the force on {model.states[i]!r} is "
                         f"out of balance by {worst:.3g}; use equilibrium() first")


def _least(system: System) -> float:
    """The smallest of what accelerates the machine by its own size along one of its speeds."""
    tree = system.model.tree
    return float(tree.effort / tree.speed_sizes.max(initial=1.0) ** 2)


def _check_rolling(system: System, model: LinearModel) -> None:
    """Refuse undamped modes of machines that roll along: their displacements change by themselves."""
    p, k = len(model.chart.placed), len(model.chart.independent)
    if p > k and float(np.abs(model.A[:p, :p]).max(initial=0.0)) > 1e-12:
        raise StateError(f"modes of {system.model.name!r}: it moves, and rolling or knife edges bind its speeds alone: "
                         "there are no undamped modes; use modes(..., damped=True)")


def _undamped(system: System, mass: Floats, stiffness: Floats) -> tuple[npt.NDArray[np.complex128], Floats]:
    from scipy.linalg import eigh

    if not len(mass):
        return np.zeros(0, dtype=np.complex128), np.zeros((0, 0))
    lack = float(np.abs(stiffness - stiffness.T).max())
    if lack > 1e-5 * float(np.abs(stiffness).max(initial=1e-300)) and lack > 1e-9 * _least(system):
        raise StateError(f"modes of {system.model.name!r}: its forces have no potential (the stiffness is not "
                         f"symmetric by {lack:.3g}), so that there are no undamped modes; use modes(..., damped=True)")
    squares, shapes = eigh(0.5 * (stiffness + stiffness.T), mass)
    squares = np.where(np.abs(squares) < _RIGID * float(np.abs(squares).max()), 0.0, squares)
    values = np.where(squares >= 0.0, 1j * np.sqrt(np.abs(squares)), np.sqrt(np.abs(squares)))
    order = np.argsort(np.abs(values), kind="stable")
    return np.asarray(values[order], dtype=np.complex128), shapes[:, order]


def _damped(model: LinearModel, p: int) -> tuple[npt.NDArray[np.complex128], npt.NDArray[np.complex128]]:
    plain = without_integrals(model)
    values, some = eigen(plain.A)
    vectors = np.zeros((len(model.A), len(values)), dtype=complex)
    vectors[list(plain.kept) or slice(None)] = some
    for i in set(range(p)).difference(plain.kept) if plain.kept else ():  # integrals of what is kept
        vectors[i] = vectors[i + p] / np.where(values == 0.0, 1.0, values)
    size = float(np.abs(values).max(initial=0.0))
    values = np.where(np.abs(values) < 1e-5 * size, 0.0, values)  # double zeros split by the root of rounding
    values = np.where(np.abs(values.imag) < 1e-9 * size, values.real, values)
    chosen = np.flatnonzero(values.imag >= 0.0)
    order = chosen[np.lexsort((values[chosen].real, np.abs(values[chosen]).round(12)))]
    shapes = vectors[:p, order]
    return values[order], shapes


def _amount(x: complex) -> str:
    if abs(complex(x).imag) < 1e-9:
        return f"{complex(x).real:+.3g}"
    return f"{abs(x):.3g} at {np.degrees(np.angle(x)):+.0f} deg"
