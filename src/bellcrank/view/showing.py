"""`bellcrank.show`: a live viewer in the browser, on this computer."""

from __future__ import annotations

import contextlib
import html
import sys
import time
import warnings
import webbrowser
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.compiled.compile import compile
from bellcrank.compiled.system import System
from bellcrank.errors import BellcrankError, BranchWarning, ModelError, StateError
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.simulate.result import Result
from bellcrank.simulate.turning import unit_quaternions
from bellcrank.system.kernels import Wrenches
from bellcrank.system.machine_functions import Machine
from bellcrank.system.state import State
from bellcrank.view.force_curves import MOST_SPEEDS, GrowingCurves, Posture
from bellcrank.view.live_server import LiveServer, Remaking, Session
from bellcrank.view.scene import Scene
from bellcrank.view.scenes import RATE, TracePoint, scene_of

__all__ = ["LiveView", "show"]

#: machines with more parameters have no sliders for them
_MOST_PARAMETERS = 24


def show(*things: Any, labels: Sequence[str] | None = None, traces: Sequence[TracePoint] = (),
         forces: bool | None = None, wrenches: Wrenches = None, side_by_side: bool | None = None,
         title: str | None = None, host: str = "127.0.0.1", port: int = 0, browser: bool = True,
         block: bool | None = None) -> LiveView:
    """Show machines and runs in the browser: mechanisms, systems, (system, state) pairs, results; several are compared,
    over each other or `side_by_side`, as batches are.

    One machine can be moved: by sliders for its independent coordinates, and by dragging bodies; loops stay closed. A
    run can be watched while it goes on: ``system.simulate(state, 60.0, progress=view)``. Other arguments are those of
    `animate`.

    The page is served by this process on this computer alone; `host` "0.0.0.0" lets others in who know the address,
    which holds a secret. `browser` opens it there. Programs wait until Ctrl-C unless `block` is false; sessions and
    notebooks go on at once.

    >>> import bellcrank as bc
    >>> with bc.show(bc.load("four_bar"), browser=False, block=False) as view:
    ...     view.url.startswith("http://127.0.0.1:")
    True
    """
    things = tuple(_machine(x) if isinstance(x, Mechanism) and len(things) == 1 else x for x in things)
    scene = scene_of(*things, labels=labels, traces=traces, forces=forces, wrenches=wrenches,
                     side_by_side=side_by_side, title=title)
    view = LiveView(scene, *_moving(things, scene), remaking=_remaking(things, traces, title), host=host, port=port)
    if browser:
        webbrowser.open(view.url)
    if block is None:
        block = not (hasattr(sys, "ps1") or sys.flags.interactive or "ipykernel" in sys.modules)
    if block:
        print(f"{scene.title} is shown at {view.url} (Ctrl-C ends it)", flush=True)
        view.wait()
    return view


def _machine(mechanism: Mechanism) -> Machine:
    """A machine whose positions can be computed; what has no mass, as in descriptions that are only to be looked at,
    gets rotors, for nothing could move it otherwise."""
    try:
        return compile(mechanism)
    except ModelError:
        with_rotors = mechanism.copy()
        for record in mechanism.joints:
            for name in record.joint.speed_names if record.joint.nq == record.joint.nu else ():
                with contextlib.suppress(ModelError):  # there is one already
                    with_rotors.add_armature(f"{record.name}.{name} (shown)", record.name, 1.0, name)
    try:
        return compile(with_rotors)
    except ModelError:
        return compile(mechanism, lock="massless")


def _moving(things: Sequence[Any], scene: Scene) -> tuple[Posture | None, Callable[[float], Floats] | None]:
    """The position that can be changed by hand, of one machine; and where a run had it at a time."""
    if len(things) != 1 or len(scene.tracks) != 1:
        return None, None
    thing, at_time = things[0], None
    if isinstance(thing, Result):
        system = thing.system
        assert system is not None
        rows = np.asarray(thing["q"].transpose("time", ..., "coordinate").values, dtype=float).reshape(-1, system.nq)
        times = np.atleast_1d(np.asarray(thing["time"].values, dtype=float))
        good = np.flatnonzero(np.isfinite(rows).all(axis=1))
        q, t = rows[good[0]], float(times[good[0]])

        def at_time(when: float) -> Floats:
            return np.asarray(rows[good[np.abs(times[good] - when).argmin()]])
    else:
        system, state = thing if isinstance(thing, tuple) else (thing, None)
        q, t = _start(system, state)
    length = scene.models[scene.tracks[0].model].length
    if system.nu > MOST_SPEEDS:
        return None, None
    try:
        posture = Posture(system, q, t, length)
    except BellcrankError:  # a machine that cannot be assembled can still be looked at
        return None, None
    return (posture if posture.error() < 1e-6 * length else None), at_time


def _remaking(things: Sequence[Any], traces: Sequence[TracePoint], title: str | None) -> Remaking | None:
    """How the machine that is shown is made with other parameters, if it has some and is no run."""
    system = things[0][0] if isinstance(things[0], tuple) else things[0]
    if len(things) != 1 or not isinstance(system, System) or system.model.batched or not 0 < len(
            system.parameters) <= _MOST_PARAMETERS:
        return None

    def make(values: dict[str, float], q: Floats) -> tuple[Scene, Posture]:
        other = system.with_parameters(**values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BranchWarning)
            state = other.assemble(guess=q)
        scene = scene_of((other, state), traces=traces, title=title)
        return scene, Posture(other, state.q, float(state.t), scene.models[0].length)

    return Remaking({name: float(value) for name, value in system.parameters.items()}, make)


def _start(system: Machine, state: Any) -> tuple[Floats, float]:
    if isinstance(state, State):
        return np.asarray(state.q, dtype=float), float(state.t)
    if state is not None:
        return np.asarray(state, dtype=float), 0.0
    assemble = getattr(system, "assemble", None)
    try:
        return np.asarray(assemble().q if assemble is not None else system.neutral()), 0.0
    except StateError:
        return system.neutral(), 0.0


class LiveView:
    """A page that is shown; ends with `stop`, at the end of a ``with`` block, or with the process.

    Given as `progress` to `simulate`, it shows the run as it grows.
    """

    def __init__(self, scene: Scene, posture: Posture | None, at_time: Callable[[float], Floats] | None = None, *,
                 remaking: Remaking | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
        self.scene = scene
        self._session = Session(scene, posture, at_time, remaking)
        self._server = LiveServer(self._session, host, port)
        self._next = -np.inf
        self._curves: GrowingCurves | None = None  #: of the run that is watched

    @property
    def url(self) -> str:
        """The address of the page, with its secret: who knows it may see and move the machine."""
        return self._server.url

    def __call__(self, done: float, duration: float) -> None:
        """Told by `simulate` how far it is; `samples` says more."""

    def samples(self, times: Floats, q: Floats, u: Floats, tau: Floats | None, system: Machine, pushed: bool
                ) -> None:
        """Told by `simulate` what it has computed: times (n,), coordinates (n, nq), speeds and joint forces (n, nu) of
        one state, the machine as it was then, and whether wrenches from outside push it."""
        posture = self._session.posture
        if posture is None or q.ndim != 2 or q.shape[1] != posture.system.nq or not len(times):
            return
        if self._curves is None or times[0] < self._next - 1.0 / RATE:  # another run
            self._curves = GrowingCurves(system, times[:1], q[:1], u[:1], None if tau is None else tau[:1], pushed)
            self._session.begin_run(self._curves.labels)
            self._next = -np.inf
        some = []
        for i, t in enumerate(times.tolist()):
            if t >= self._next - 1e-9:
                some.append(i)
                self._next = max(t, self._next if np.isfinite(self._next) else t) + 1.0 / RATE
        if some:
            curves = self._curves.values(times[some], q[some], u[some], None if tau is None else tau[some], system)
            self._session.add_frames(np.concatenate([_frames(posture.system, times[some], q[some]), curves], axis=1))

    def stop(self) -> None:
        """End it: the address answers no more."""
        self._server.stop()

    def wait(self) -> None:
        """Until Ctrl-C; then end it."""
        try:
            while True:
                time.sleep(0.5)
        except KeyboardInterrupt:
            self.stop()

    def __enter__(self) -> LiveView:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _repr_html_(self) -> str:
        return (f'<iframe src="{html.escape(self.url)}" style="width:100%;height:480px;border:0;border-radius:8px">'
                "</iframe>")

    def __repr__(self) -> str:
        return f"<LiveView of {self.scene.title!r} at {self.url}>"


def _frames(system: Machine, times: Floats, q: Floats) -> Floats:
    """Time and poses of the ground and all bodies, (n, 1 + 7 bodies)."""
    found = system.pose(q, t=times)
    rows = np.concatenate([found.position, unit_quaternions(np.asarray(found.rotation))], axis=-1)
    ground = np.broadcast_to([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], (len(times), 1, 7))
    return np.concatenate([times[:, None], np.concatenate([ground, rows], axis=1).reshape(len(times), -1)], axis=1)
