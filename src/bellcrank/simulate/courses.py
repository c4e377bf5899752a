"""The way of a run through time, piece by piece: where samples, controllers and steps fall."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.simulate.equations import Equations
from bellcrank.simulate.fixed import Failure, FixedRun
from bellcrank.simulate.reference import ReferenceRun, Rhs
from bellcrank.simulate.varying import VaryingRun
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.simulate.external import ExternalRun
    from bellcrank.simulate.setup import Setup
    from bellcrank.system.machine_functions import Machine

__all__ = ["Course", "Piece"]

#: seconds of work between two looks at the keyboard, and numbers of samples kept until they are written
_PIECE, _NUMBERS = 0.1, 4_000_000


class Piece(NamedTuple):
    """A stretch of a run: its samples, and if events are watched for, all steps of its single state."""

    times: Floats
    samples: Floats  #: (samples, states, size)
    point_times: Floats  #: the start and the end of every step
    points: Floats  #: (points, size)


class Course(ABC):
    """What fixed and adaptive runs have in common."""

    run: FixedRun | ReferenceRun | VaryingRun | ExternalRun

    def __init__(self, setup: Setup, system: Machine) -> None:
        self.setup, self.system = setup, system
        self.tau, self.wrenches = setup.tau, setup.wrenches
        self.before: dict[str, int] = {"switches": 0, "crossings": 0, "steps": 0, "rejected": 0}
        self.pace = float(np.clip(3e4 / (system.nq * setup.count), 1.0, 5000.0))  #: steps or samples in a piece
        self.least = 1.0  #: of these, if there is memory for so many samples
        self.due = False  #: whether sampled controllers are to be asked
        self.said: dict[str, list[tuple[float, Floats]]] = {"tau": [], "wrench": []}  #: by sampled controllers

    @property
    @abstractmethod
    def time(self) -> float:
        """Where the run is."""

    #: parts of a step at which events are looked for
    glances: tuple[float, ...] = (1.0,)

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether the end is reached."""

    @abstractmethod
    def advance(self, watching: bool) -> Piece:
        """The next piece; `watching`: with all steps."""

    @abstractmethod
    def restart(self, state: State) -> None:
        """Go on from a state of the single run, anywhere in time."""

    @abstractmethod
    def run_again(self, y: Floats) -> None:
        """Take another run, from states (q, u) at the time that is reached, with the machine as it is now."""

    def replace_system(self, system: Machine) -> None:
        """Go on with another machine, from the next `restart`."""
        if system is self.system:
            return
        self.keep_notes()
        y = np.concatenate(self.unpack(self.y, self.time), axis=-1)
        self.system = system
        self.run_again(y)

    @property
    def y(self) -> Floats:
        return self.run.y

    @property
    def failures(self) -> list[Failure]:
        return self.run.failures

    def begin(self) -> Piece:
        """The initial states, as samples."""
        self.control()
        return Piece(np.array([self.time]), self.y[None].copy(), np.zeros(0), np.zeros((0, 0)))

    def unpack(self, y: Floats, t: npt.ArrayLike) -> tuple[Floats, Floats]:
        """q and u of states (..., size) at times that fit the leading axes from the left."""
        equations = getattr(self.run, "equations", None)
        if isinstance(equations, Equations):
            when = np.asarray(t, dtype=float)
            return equations.unpack(y, when.reshape(*when.shape, *(1,) * (y.ndim - 1 - when.ndim)))
        nq = self.system.nq
        return y[..., :nq], y[..., nq:]

    def pack(self, q: Floats, u: Floats, t: float) -> Floats:
        equations = getattr(self.run, "equations", None)
        return equations.pack(q, u, t) if isinstance(equations, Equations) else np.concatenate([q, u], axis=-1)

    def partial(self, y: Floats, t: float, step: float) -> Floats:
        """One step of any length, leaving the run where it is."""
        return self.run.partial(y, t, step)

    def notes(self) -> dict[str, Any]:
        """Counts for the record."""
        return {name: before + int(getattr(self.run, name, 0)) for name, before in self.before.items()}

    def keep_notes(self) -> None:
        """Before the run is replaced by another one."""
        self.before = self.notes()

    # -- contacts -------------------------------------------------------------------------------
    def cautions(self) -> list[str]:
        """What there is to be warned of at the end."""
        return []

    def contact_names(self) -> tuple[str, ...]:
        """Names of the components of forces at places of rigid contacts, if they are put on record."""
        return ()

    def contact_forces(self, times: Floats) -> Floats | None:
        """These forces at samples (samples, states, components), NaN where they are not known."""
        return None

    # -- controllers ----------------------------------------------------------------------------
    def control(self) -> None:
        """Ask sampled controllers for what holds from now on."""
        for d in self.setup.drives:
            if d.traced and (d.period is None or self.compiled_holds):
                continue
            q, u = self.unpack(self.y, self.time)
            if d.traced:
                rhs = Rhs(self.system, self.tau, self.wrenches, (d,))
                rhs.hold(self.time, np.concatenate([q, u], axis=-1))
                rows = rhs.tau if d.target == "tau" else rhs.wrenches
                assert rows is not None
            else:
                single = self.setup.batch == ()
                rows = d.call(self.system, self.time, q[0].copy() if single else q.copy(),
                              u[0].copy() if single else u.copy())
            if d.target == "tau":
                self.tau = rows
            else:
                self.wrenches = rows
            self.said[d.target].append((self.time, rows))
        self.feed()

    def control_if_due(self) -> None:
        """Ask the controllers if it is time to, after events and samples up to now have been looked after."""
        due, self.due = self.due, False
        if due and not self.finished:
            self.control()

    @property
    def compiled_holds(self) -> bool:
        """Whether held traced controllers are evaluated by the stepper itself."""
        return False

    def feed(self) -> None:
        """Hand forces to the run."""
        target: Any = self.run.equations if isinstance(self.run, (FixedRun, VaryingRun)) else self.run.rhs
        inside = {d.target for d in self.setup.drives if d.traced and d.period is not None} \
            if self.compiled_holds else set()  # the steps themselves know these
        if "tau" not in inside:
            target.tau = self.tau
        if "wrench" not in inside:
            target.wrenches = self.wrenches

    def given(self, target: str, times: Floats, q: Floats, u: Floats) -> Floats | None:
        """Joint forces ("tau") or external wrenches ("wrench") at samples (samples, states, entries), if there are any
        to record: what acts from the sample on."""
        said = self.said[target]
        if not said:
            return self.setup.recorded(target, times, q, u)
        known = np.array([t for t, _ in said])
        at = np.maximum(np.searchsorted(known, times + 1e-12 * np.maximum(1.0, np.abs(times)), side="right") - 1, 0)
        shape = (*u.shape[1:-1], said[0][1].shape[-1])
        out = np.stack([np.broadcast_to(said[i][1], shape) for i in at.tolist()])
        self.said[target] = said[int(at[-1]):] if len(at) else said
        return out

    @property
    def most(self) -> float:
        """Samples of all states that a piece may have."""
        return _NUMBERS / max(1, self.setup.count * (self.system.nq + self.system.nu))

    def adapt(self, seconds: float, most: float) -> None:
        """Choose the size of the next piece."""
        factor = min(max(_PIECE / max(seconds, 1e-6), 0.25), 4.0)
        self.pace = min(max(self.pace * factor, self.least), max(most, 1.0))
