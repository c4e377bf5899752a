"""Where the samples of a run go: into memory, or into a file that grows while the run goes on."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, FileError, ModelError, StateError
from bellcrank.loops.drawing_tolerance import drawing_text
from bellcrank.loops.tolerances import WARNED
from bellcrank.simulate.account import DRIFT, Balance, drift_attributes, exchange, floor_of
from bellcrank.simulate.deflections import Deflections
from bellcrank.simulate.fields import (
    MOST_CLOSURES,
    PER_EVENT,
    TOPOLOGY,
    Field,
    Laws,
    Layout,
    derive,
    layout_of,
    output_values,
)
from bellcrank.simulate.interrupt import uninterrupted
from bellcrank.simulate.kept_model import model_text
from bellcrank.simulate.netcdf import EventRecord, open_result, per_event
from bellcrank.simulate.result_place import growing_file, put_in_place
from bellcrank.simulate.run_attributes import as_json, plain_attribute, run_attributes
from bellcrank.simulate.shelf import Shelf
from bellcrank.system.loop_errors import drawing_error

if TYPE_CHECKING:
    from bellcrank.simulate.result import Result
    from bellcrank.system.machine_functions import Machine

__all__ = ["STATUSES", "Writer", "open_result"]

#: how a run can end
STATUSES = ("finished", "stopped", "interrupted", "failed", "diverged")
#: samples wait until they take this many bytes, and are worked on in blocks of about this size: in memory, and on the
#: way to a file, where a block must not keep others waiting for long
_BLOCK, _STREAMED = 1 << 20, 1 << 18


class Writer:
    """Collects the samples of a run in memory, or streams them to a file with bounded memory.

    `batch` is the shape of the batch axes, `settings` what the run was asked for (``"stepper"`` among it, and
    ``"wrenches"`` true if external ones act). With `file`, samples go to
    ``<stem>.partial.nc`` beside it (an older one is overwritten), in blocks, or with the first sample that comes
    `flush_seconds` after the last block, and `finish` puts the complete file in the place of `file`, which stays what
    it was until then. A file that cannot be made is an error here, before anything is computed. `advice` is what to do
    if the energy does not balance within a `share`.
    `lanes`: whether samples are worked on side by side (see `early.in_lanes`), if that is known. `closures` are those
    that events may open and close, if there are events that change the machine. `contacts` names the components of
    forces at places of rigid contacts, `wrenches` those of external wrenches ("crank.mx"), if they come with the
    samples. `outputs` are computed of all samples beside those of the mechanism.

    >>> import bellcrank as bc
    >>> pendulum = bc.compile(bc.load("pendulum"))
    >>> writer = Writer(pendulum, batch=(), settings={"stepper": "by hand"}, file=None)
    >>> writer.add([0.0, 0.1], [[0.5], [0.47]], [[0.0], [-0.47]], None)
    >>> writer.note("steps", 1)
    >>> result = writer.finish("finished", "")
    >>> float(result.q.sel(time=0.1, coordinate="hinge.angle"))
    0.47
    """

    def __init__(self, system: Machine, *, batch: tuple[int, ...] = (), settings: Mapping[str, Any] | None = None,
                 file: str | os.PathLike[str] | None = None, flush_seconds: float = 0.1,
                 advice: str = "take smaller steps", share: float = DRIFT,
                 lanes: bool | None = None, closures: Sequence[str] | None = None,
                 contacts: Sequence[str] = (), wrenches: Sequence[str] = (), outputs: Laws | None = None) -> None:
        self._system, self._first, self._start = system, system, time.perf_counter()
        self._layout = layout_of(system, tuple(int(n) for n in batch))
        if closures is not None:
            self._layout = replace(self._layout, changing=True,
                                   closures=tuple(closures) if len(closures) <= MOST_CLOSURES else ())
        self._layout = replace(self._layout, contact_components=tuple(contacts), wrench_components=tuple(wrenches),
                               outputs=(*self._layout.outputs, *(Field(name, "", "1", f"output {name}")
                                                                 for name in outputs or ())))
        self._laws = {o.name: o.law for o in system.model.mechanism.outputs} | dict(outputs or {})
        self._topology = 0
        self._early = run_attributes(system, dict(settings or {}))
        self._notes: dict[str, Any] = {}
        self._remarks: dict[int, tuple[int, str, str]] = {}
        self._events: list[EventRecord] = []
        self._settings, self._advice, self._share, self._lanes = dict(settings or {}), advice, share, lanes
        self._balance = Balance(floor_of(system))
        self._deflections = Deflections(system)
        self._cautions: list[str] = []
        self._shelf = Shelf()  # samples as they came; with a file, those that wait
        self._passed = 0  # of these, how many were passed on
        self._derived: list[dict[str, Floats]] = []  # in memory: what follows from them
        self._bytes = self._done = 0  # waiting, passed on
        self._with_forces: bool | None = None
        self._last_time = -np.inf
        self._finished = False
        self._flush_seconds, self._flushed_at = flush_seconds, -np.inf
        self.samples = 0  #: samples added
        self.flushed = 0  #: samples that have reached the file and survive the end of the process
        self.file = None if file is None else Path(file)  #: where the result will be
        self._growing = None if self.file is None else growing_file(
            self.file, self._layout, {**self._early, "model": model_text(system)})

    def add(self, t: npt.ArrayLike, q: npt.ArrayLike, u: npt.ArrayLike, tau: npt.ArrayLike | None = None,
            contact_force: npt.ArrayLike | None = None,
            wrench: npt.ArrayLike | None = None) -> None:
        """Add samples: t (k,) [s], q (k, *batch, nq), u (k, *batch, nu), tau like u or nothing; they are copied.

        A file that cannot be written any more is a `FileError`: what was complete stays in it.
        """
        layout = self._layout
        if self._finished:
            raise StateError("this run is finished: nothing can be added")
        times = np.asarray(t, dtype=float).reshape(-1)
        lead = (len(times), *layout.batch)
        given = {"q": (q, len(layout.coordinates)), "u": (u, len(layout.speeds)), "tau": (tau, len(layout.speeds)),
                 "contact_force": (contact_force, len(layout.contact_components)),
                 "wrench": (wrench, len(layout.wrench_components))}
        block = {"time": times}
        for name, (value, size) in given.items():
            if value is not None:
                block[name] = np.asarray(value, dtype=float)
                if block[name].shape != (*lead, size):
                    raise StateError(f"{name}: samples need the shape {(*lead, size)}, got {block[name].shape}")
        if len(times) and not (times[0] >= self._last_time and (np.diff(times) >= 0.0).all()):
            raise StateError(f"the times of samples must not decrease, got {times[0]} after {self._last_time}")
        self._expect_forces("tau" in block)
        if not len(times):
            return
        self._deflections.look(block["q"])
        if layout.changing:
            block["topology"] = np.full(len(times), float(self._topology))
        if not self.samples:
            self._begun = (times[0], block["q"][0].copy(), block["u"][0].copy())
        with uninterrupted():  # samples are added and counted, or neither
            self._last_time = float(times[-1])
            self._shelf.add(block)
            self.samples += len(times)
            self._bytes += sum(x.nbytes for x in block.values())
            if self._bytes >= (_BLOCK if self._growing is None else _STREAMED):
                self._work()
            if self._growing is not None and time.perf_counter() - self._flushed_at >= self._flush_seconds:
                self.flush()

    @property
    def last_time(self) -> float:
        """Time of the last sample."""
        return self._last_time

    def _expect_forces(self, given: bool) -> None:
        if self._with_forces is None:
            self._with_forces = given
            if given and self._growing is not None:
                self._growing.add_forces()
        elif self._with_forces != given:
            raise StateError("tau must come with all samples of a run or with none")

    def change_system(self, system: Machine, topology: int = 0) -> None:
        """Samples from now on belong to another machine with the same coordinates, such as one with a loop open;
        `topology` is its number."""
        with uninterrupted():
            self._work()
            self._system, self._topology = system, topology
            self._balance.jump()

    def tell_event(self, lost: float, added: float, impulses: Mapping[str, Floats]) -> None:
        """What the event noted last did, or another one at the same time: energies [J] and impulses of closures."""
        self._events[-1] = self._events[-1].told(lost, added, impulses)

    def tell_stop(self, impulse: float) -> None:
        """The impulse of a rigid stop along its coordinate, in the event noted last."""
        self._events[-1] = self._events[-1].by_stop(impulse)

    def flush(self) -> None:
        """Bring all samples so far to the file; in memory there is nothing to do."""
        with uninterrupted():
            self._work()
            self._sync()

    def _sync(self) -> None:
        if self._growing is not None:
            self._growing.sync(self._events)
            self.flushed, self._flushed_at = self._growing.count, time.perf_counter()

    def _work(self) -> None:
        """Derive energies and loop errors of the waiting samples and pass them on, in blocks of bounded size.

        Called where no interrupt can come: a block is accounted for, and passed on, once."""
        begin, end = self._passed, self._shelf.count
        n = end - begin
        if not n:
            return
        size = max(1, n * (_BLOCK if self._growing is None else _STREAMED) // max(1, self._bytes))
        for start in range(begin, end, size):
            block = self._shelf.between(start, min(start + size, end))
            more = derive(self._system, block["time"], block["q"], block["u"], self._lanes)
            self._balance.add(block | more)
            self._note_drawing(block)
            more |= self._outputs(block)
            derived = self._derived
            if self._growing is not None:
                self._growing.write(self._done, block | more)
            else:
                derived = [*self._derived, more]
            passed, done = start + len(block["time"]), self._done + len(block["time"])
            self._passed, self._done, self._derived = passed, done, derived  # an error loses nothing
            self._sync()
        self._bytes = 0
        if self._growing is not None:
            self._shelf.clear()
            self._passed = 0

    def _note_drawing(self, block: Mapping[str, Floats]) -> None:
        """Keep the largest error of constraints that are dropped."""
        drawing = self._system.plans.drawing if self._system.model.tree.looped else None
        if drawing is None:
            return
        clock = block["time"].reshape(-1, *(1,) * (block["q"].ndim - 2))
        here = float(np.nanmax(drawing_error(self._system.plans, block["q"], clock), initial=0.0))
        self._notes["largest_drawing_error"] = max(here, self._notes.get("largest_drawing_error", 0.0))
        text = drawing_text(self._system.plans.drawn, drawing)
        if drawing.error > WARNED and text not in self._cautions:
            self.caution(text)

    def _outputs(self, block: Mapping[str, Floats]) -> dict[str, Floats]:
        """The outputs; NaN where the machine as it is now does not have what they look at."""
        lead = block["q"].shape[:-1]
        clock = block["time"].reshape(-1, *(1,) * (len(lead) - 1))
        try:
            return output_values(self._system, clock, block["q"], block["u"], self._laws)
        except ModelError:
            return {field.name: np.full(lead, np.nan) for field in self._layout.outputs}

    def note(self, name: str, value: Any) -> None:
        """Keep something that is known late: it becomes an attribute of the result.

        ``steps``, ``switches`` and ``wall_time`` [s] are numbers; ``event`` takes one ``(time, name)`` or
        ``(time, name, sample)``, ``events`` a sequence of them; anything else is kept as a number or text.
        """
        if name == "event":
            self._events.append(_event(value))
        elif name == "events":
            self._events.extend(_event(x) for x in value)
        else:
            self._notes[name] = plain_attribute(value)

    def caution(self, text: str) -> None:
        """Something to be warned of at the end, unless the run is found to have diverged."""
        self._cautions.append(text)

    def remark(self, remarks: Iterable[tuple[int, str, str]]) -> None:
        """What is to be said of single states of a batch: (flat index, how it ended, why); the first word counts."""
        for state, status, reason in remarks:
            self._remarks.setdefault(state, (state, status, reason))
        if self._remarks:
            self._notes["remarks"] = as_json(sorted(self._remarks.values()))

    def finish(self, status: str, reason: str = "") -> Result:
        """End the run, whatever way it went (`STATUSES`), and return all samples with what is known of them.

        Streaming: the file takes its place atomically, and what is returned reads from it when asked (``close()``
        it). If the file could not be written, the samples that were complete stay in the partial file, which is
        opened instead; the status is then "failed".
        """
        if status not in STATUSES:
            raise StateError(f"a run ends as {', '.join(STATUSES)}, not {status!r}")
        if self._finished:
            raise StateError("this run is finished already")
        place = self.file
        if self._growing is None:
            with uninterrupted():
                self._work()
        else:
            try:
                self.flush()
            except FileError as error:
                status, place = "failed", self._growing.path
                reason = reason or str(error)
        self._finished = True
        does = self._exchange()
        verdict = self._balance.verdict(does, self._advice, self._share)
        if any(verdict):
            self._balance.allow(self._hidden())
            verdict = self._balance.verdict(does, self._advice, self._share)
        if self._layout.batch and verdict.states:
            self.remark((i, "diverged" if verdict.diverged else "finished", why) for i, why in verdict.states)
        if verdict.diverged and status in ("finished", "stopped"):
            status, reason = "diverged", verdict.diverged
        told = [x for x in (verdict.warning if status != "diverged" else "", self._deflections.text(),
                            *(self._cautions if status != "diverged" else ())) if x]
        if told:
            self._notes["warnings"] = "; ".join(told)
        late = {"wall_time": time.perf_counter() - self._start,
                "largest_loop_error": self._balance.largest_loop_error,
                **drift_attributes(self._balance, does), **self._notes, "status": status, "reason": reason}
        if self._growing is None or place is None:
            result = self._in_memory(late)
        else:
            self._growing.finish(late, self._events)
            if place != self._growing.path:
                put_in_place(self._growing.path, place)
            result = open_result(place)
        return result.noting(self._first)

    def _hidden(self) -> Floats:
        """Kinetic energy that the first accelerations can make between two samples: much if these are far apart."""
        t, q, u = self._begun
        try:
            gained = self._first.forward_dynamics(q, u, t=t) * self._balance.largest_gap
            return self._first.kinetic_energy(q, gained, t=t)
        except BellcrankError:
            return np.zeros(q.shape[:-1])

    def _exchange(self) -> str:
        """What the machine and the run did with energy; see `account.exchange`."""
        given = self._with_forces or any(self._settings.get(k) for k in ("control", "wrenches", "wrench_control"))
        return "work" if given else exchange(self._first)

    def _in_memory(self, late: Mapping[str, Any]) -> Result:
        from xarray import Variable

        from bellcrank.simulate.result import Result

        layout = self._layout
        fields = [f for f in layout.fields
                  if "tau" not in f.name or self._with_forces]
        variables: dict[str, Any] = {}
        rows = self._shelf.between(0, self._shelf.count)
        for field in fields:
            shape = (0, *layout.batch, *((len(getattr(layout, f"{field.along}s")),) if field.along else ()))
            parts = [rows[field.name]] if field.name in rows else [b.pop(field.name) for b in self._derived]
            values = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(shape)
            variables[field.name] = Variable(layout.dims(field), values, layout.attrs(field), fastpath=True)
        times = rows.get("time", np.zeros(0))
        if not self._events:  # nothing along events
            layout = replace(layout, closures=())
        coords: dict[str, Any] = {"time": ("time", times, {"units": "s", "long_name": "time"}), **_labels(layout)}
        if layout.changing:
            numbers = rows.get("topology", np.zeros(0)).astype(np.int32)
            variables["topology"] = ("time", numbers, layout.attrs(TOPOLOGY))
        return Result(variables | _event_variables(self._events, layout), coords=coords,
                      attrs={**self._early, **late})


@lru_cache(maxsize=64)
def _labels(layout: Layout) -> dict[str, Any]:
    """The names along the axes; they are the same for every run of a machine."""
    from xarray import IndexVariable, Variable

    return {name: (IndexVariable if name == dim else Variable)(dim, np.array(values), {"long_name": long_name})
            for name, (dim, values, long_name) in layout.labels().items()}


def _event(value: Sequence[Any]) -> EventRecord:
    when, name, *sample = value
    return EventRecord(float(when), str(name), int(sample[0]) if sample else -1)


def _event_variables(events: Sequence[EventRecord], layout: Layout) -> dict[str, Any]:
    if not events:
        return {}
    out: dict[str, Any] = {
        "event_time": ("event", np.array([e.time for e in events]), {"units": "s", "long_name": "time of the event"}),
        "event_name": ("event", np.array([e.name for e in events]), {"long_name": "what happened"})}
    for name in per_event(layout):
        dims, units, long_name = PER_EVENT[name]
        out[name] = (("event", *dims), np.array([e.value(name, layout.closures) for e in events]),
                     {"units": units, "long_name": long_name})
    if layout.batch:
        out["event_sample"] = ("event", np.array([e.sample for e in events], dtype=np.int32),
                               {"long_name": "flat index of the sample, -1 if not said"})
    return out
