"""The account of a run's energy: how much of it there was, how much came or went, and whether that can be.

The energy there was is what the start could turn into motion on the way that was taken, and what drives put in:

    scale = T(0) + max (P(0) - P(t)) + W + floor

with kinetic energy T, energy P of gravity and of springs, and W what was put in, where anything can: the work of the
joint forces that were given where that was positive, at least the largest rise of the energy. In a motion without
losses the first two are the largest kinetic energy. Below the floor, a millionth of what the machine's weight can do
over its size and of what springs hold at the start, energies are rounding.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.mechanism.contact.contact_material import BristleContact, Compliant, Unyielding
from bellcrank.mechanism.forces import Bushing, Drag, Friction, Limit, LinearSpring, PotentialSpring
from bellcrank.mechanism.forces.coordinate_forces import Belt, GasSpring
from bellcrank.mechanism.motion import STILL
from bellcrank.mechanism.parts import StateRate
from bellcrank.system.force_elements import with_values
from bellcrank.topology.contact_pairs import ContactPair
from bellcrank.topology.pairs import BushingPair, DragPair, WrenchPair
from bellcrank.topology.tree import Tree

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["DIVERGED", "DRIFT", "RESOLVED", "ROUGHLY", "Balance", "Verdict", "drift_attributes", "energy_drift",
           "exchange", "floor_of"]

#: a machine that nothing drives and that gains, or without losses loses, more than this share of its energy says so
DRIFT = 1e-3
#: changes below this share of the energy at the start can make no difference to that: they are not looked at closely
QUIET = 1e-4
#: but for the method that is known to keep energy only roughly
ROUGHLY = 5e-2
#: one that gains this many times all the energy there was has diverged
DIVERGED = 10.0
#: energies below this share of what the weight can do over the machine's size count as nothing
RESOLVED = 1e-6
#: why a change of energy is not an error
_NO_DRIFT = {"work": "drives, laws, wrenches or prescribed motions do work: energy() has its change, not its error",
             "losses": "dampers, friction or contacts dissipate energy: energy() has its change, not its error"}


# -- what a machine can do with energy --------------------------------------------------------------
def exchange(system: Machine) -> str:
    """What the machine itself does with energy: "none" (keeps it), "losses" (only takes it away), or "work" (may put
    some in: motions and constraints driven by time, wrenches, servos, wind, forces whose energy is not known)."""
    tree = system.model.tree
    if tree.applied or tree.driven_closures or any(_moves(law) for law in tree.prescribed if law is not None):
        return "work"
    elements: list[Any] = [along for forces in tree.joint_forces.values() for _, along in forces]
    elements += [p.bushing if isinstance(p, BushingPair) else p.drag if isinstance(p, DragPair) else
                 p if isinstance(p, WrenchPair) else p.material if isinstance(p, ContactPair) else p.along
                 for p in (*tree.pairs, *tree.contacts)]
    found = {_exchanges(with_values(system.plans, e)) for e in elements}
    return "work" if "work" in found else "losses" if "losses" in found else "none"


def _moves(law: Any) -> bool:
    laws = (law.whole,) if law.whole is not None else law.laws
    return any(x is not None and x is not STILL for x in laws)


def _exchanges(element: Any) -> str:
    if isinstance(element, Drag):
        if element.timed or any(np.any(np.asarray(x) != 0.0) for x in element.wind):
            return "work"
        return _sign(element.coefficient, element.turn_linear, element.turn_quadratic)
    if isinstance(element, StateRate):
        return "none"
    if isinstance(element, Unyielding):
        return "losses"
    if isinstance(element, BristleContact) and np.any(np.asarray(element.friction, dtype=float) != 0.0):
        return "work"  # what bristles hold comes back
    if isinstance(element, Compliant):
        return _sign(element.dissipation, element.friction)
    if isinstance(element, Bushing):
        return _sign(*element.damping, *element.turn_damping)
    if isinstance(element, Friction):
        return _sign(element.coulomb, element.viscous)
    if isinstance(element, (LinearSpring, PotentialSpring, Limit, GasSpring, Belt)):
        return _sign(element.damping)
    return "work"


def _sign(*dampings: Any) -> str:
    """What dampers of these sizes do."""
    if any(np.any(np.asarray(d, dtype=float) < 0.0) for d in dampings):
        return "work"
    return "losses" if any(np.any(np.asarray(d, dtype=float) > 0.0) for d in dampings) else "none"


def floor_of(system: Machine) -> float:
    """Energy [J] that is lost in rounding: a share of the weight times the size of the machine."""
    moment = system.kernels.kept("moment", lambda: float(_mass_times_size(system.model.tree)))  # every run needs it
    return RESOLVED * moment * _gravity(system)


def _gravity(system: Machine) -> float:
    """The acceleration of gravity, the largest of a batch."""
    gravity = system.model.tree.gravity
    if all(type(g) is float for g in gravity):
        return math.hypot(*gravity)
    return float(np.linalg.norm(np.asarray(system.model.values_of(gravity), dtype=float), axis=-1).max())


def _mass_times_size(tree: Tree) -> float:
    mass = np.nan_to_num(tree.inertia[1:, 0])
    offsets = np.linalg.norm(np.nan_to_num(tree.inertia[1:, 1:4]), axis=1)
    reach = float(np.linalg.norm(np.nan_to_num(tree.placement_shift[1:]), axis=1).sum()
                  + (offsets / np.maximum(mass, 1e-300))[mass > 0.0].max(initial=0.0))
    return float(mass.sum()) * reach


# -- the account --------------------------------------------------------------------------------------
class Verdict(NamedTuple):
    """What the account says of a run: that it diverged (when, and why), or something to be warned of."""

    diverged: str = ""
    warning: str = ""
    states: tuple[tuple[int, str], ...] = ()  #: of a batch: which states that is true of, and why


class Balance:
    """Keeps account of energy and loop errors while states come in, without keeping them."""

    def __init__(self, floor: float = 0.0) -> None:
        self._floor = floor
        self._open = True  #: whether the next sample begins a stretch: the start, or what an event left
        self._last: dict[str, Floats] = {}
        self._base = self._kinetic = self._potential = np.zeros(())
        self._lowest = self._drop = self._change = self._rise = self._work = self._peak = np.zeros(())
        self._when: Floats = np.zeros(())  #: time at which a state had gained far more than there was
        self._hidden: Floats = np.zeros(())  #: kinetic energy that may have come and gone between samples
        self.largest_gap = 0.0  #: between two samples [s]
        self.largest_loop_error = 0.0  #: of all so far

    def allow(self, kinetic: Floats) -> None:
        """Judge with this much kinetic energy more, which samples that are far apart may not have shown."""
        self._hidden = kinetic

    def jump(self) -> None:
        """An event changes the state: what that does to the energy is accounted for elsewhere."""
        self._open = True

    def add(self, derived: dict[str, Floats]) -> None:
        """Account for some more samples, time first: "time", energies, "u" and "tau" if forces were given."""
        energy, kinetic = derived["energy"], derived["kinetic_energy"]
        if not len(energy):
            return
        potential = energy - kinetic
        first = self._open
        if first:
            self._begin(energy[0], kinetic[0], potential[0])
        power = (derived["tau"] * derived["u"]).sum(axis=-1) if "tau" in derived else None
        with np.errstate(all="ignore"):
            highest = np.fmax.reduce(energy, axis=0) - self._base
            lowest = np.fmin(self._lowest, np.fmin.reduce(energy, axis=0) - self._base)
            if power is not None:
                self._add_work(derived["time"], power, first)
            if (highest - lowest > QUIET * self.scale(False)).any():  # what happened when may matter
                self._add_rise(derived["time"], energy - self._base, potential)
            self._change = np.fmax(self._change, np.fmax(highest, -lowest))
            self._peak, self._lowest = np.fmax(self._peak, highest), lowest
            self._drop = np.fmax(self._drop, self._potential - np.fmin.reduce(potential, axis=0))
        gaps = np.diff(np.concatenate([self._last.get("time", derived["time"][:1]), derived["time"]]))
        self.largest_gap = max(self.largest_gap, float(gaps.max(initial=0.0)))
        self._last = {"energy": energy[-1].copy(), "potential": potential[-1].copy(),
                      "time": derived["time"][-1:].copy()}
        if power is not None:
            self._last["power"] = power[-1]
        self.largest_loop_error = float(np.fmax.reduce(derived["loop_error"], axis=None,
                                                       initial=self.largest_loop_error))

    def _begin(self, energy: Floats, kinetic: Floats, potential: Floats) -> None:
        """A first sample: what follows is compared with it. After an event only the level of the energy is new."""
        if self._last:
            self._base = self._base + (energy - self._last["energy"])
            self._potential = self._potential + (potential - self._last["potential"])
            self._kinetic, self._open = np.fmax(self._kinetic, kinetic), False
            return
        self._base, self._kinetic, self._potential = energy.copy(), kinetic.copy(), potential.copy()
        zero = np.zeros(energy.shape)
        self._lowest = self._drop = self._change = self._rise = self._work = self._peak = zero
        self._when = np.full(energy.shape, np.nan)
        self._open = False  # last: an interrupt may come before, and the sample again

    def _add_work(self, times: Floats, power: Floats, first: bool) -> None:
        """What the forces given put in, by the trapezoidal rule."""
        if not first and "power" in self._last:
            times = np.concatenate([self._last["time"], times])
            power = np.concatenate([self._last["power"][None], power])
        gains = np.maximum(power, 0.0)
        steps = np.diff(times).reshape(-1, *(1,) * (power.ndim - 1))
        self._work = self._work + np.nan_to_num(0.5 * (gains[1:] + gains[:-1]) * steps).sum(axis=0)

    def _add_rise(self, times: Floats, change: Floats, potential: Floats) -> None:
        """How far the energy rose above its lowest value so far, and when that was beyond all there was."""
        low = np.fmin.accumulate(np.concatenate([self._lowest[None], change]), axis=0)
        drop = np.fmax.accumulate(np.concatenate([self._drop[None], self._potential - potential]), axis=0)
        rise = change - low[1:]
        self._rise = np.fmax(self._rise, np.fmax.reduce(rise, axis=0))
        there_was = self._kinetic + drop[1:] + self._floor + RESOLVED * np.abs(self._potential)
        self._notice(times, rise > DIVERGED * there_was)

    def _notice(self, times: Floats, beyond: npt.NDArray[np.bool_]) -> None:
        if beyond.any():
            at = times[np.argmax(beyond, axis=0)]
            self._when = np.where(np.isnan(self._when) & beyond.any(axis=0), at, self._when)

    def scale(self, works: bool) -> Floats:
        """The energy there was, of every state; `works`: something may have put more in."""
        put_in = np.fmax(self._work, self._peak) if works else 0.0
        return self._kinetic + self._drop + put_in + self._floor + RESOLVED * np.abs(self._potential)

    def drift(self) -> float:
        """The largest change of energy since the start, relative to the energy there was, of all states: an error of
        the integration where nothing does work or takes it."""
        return float(np.max(relative(self._change, self.scale(False)), initial=0.0))

    def verdict(self, does: str, advice: str, share: float = DRIFT) -> Verdict:
        """Whether the account can be that of a machine that `does` this with energy (see `exchange`), within a share
        of the energy there was."""
        if does == "work" or not self._last:
            return Verdict()
        many, scale = self._when.size, self.scale(False) + self._hidden
        times = np.where(self._rise > DIVERGED * scale, self._when, np.nan)
        if np.isfinite(times).any():
            when = float(np.nanmin(times))
            which = f" (state {int(np.nanargmin(times))} of {many})" if times.ndim else ""
            gained = (f"the machine has gained more than {DIVERGED:g} times all the energy there was, although nothing "
                      f"puts energy in: {advice}")
            return Verdict(f"at t = {when:.6g} s{which} {gained}", states=tuple(
                (i, f"at t = {at:.6g} s {gained}") for i, at in enumerate(times.ravel().tolist()) if at == at))
        change = self._change if does == "none" else self._rise
        shares = np.atleast_1d(relative(change, scale))
        over = shares > share
        if not over.any():
            return Verdict()
        some = f" of {int(over.sum())} of {many} states" if self._when.ndim else ""
        what = ("changed", "puts energy in or takes it out") if does == "none" else ("rose", "puts energy in")
        most = f"{'up to ' if many > 1 else ''}{_percent(float(np.nanmax(shares)))}"
        why = f"although nothing {what[1]}: {advice}"
        states = tuple((i, f"energy {what[0]} by {_percent(float(shares.flat[i]))} {why}")
                       for i in np.flatnonzero(over).tolist())
        return Verdict("", f"energy{some} {what[0]} by {most} {why}", states)


def drift_attributes(account: Balance, does: str) -> dict[str, Any]:
    """Attributes of a run about its energy; where something does work or takes it, its change is not an error."""
    if does == "none":
        return {"energy_drift": account.drift(), "energy_exchange": does}
    return {"energy_drift": math.nan, "energy_exchange": does, "energy_drift_reason": _NO_DRIFT[does]}


def _percent(share: float) -> str:
    return f"{100.0 * share:.2g} %" if share < 10.0 else f"{share:.2g} times all there was"


def relative(change: Floats, scale: Floats) -> Floats:
    """change / scale; no change is none, whatever the scale."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(change == 0.0, 0.0, change / scale)


def energy_drift(time: Floats, energy: Floats, kinetic: Floats, works: bool, floor: float,
                 power: Floats | None = None) -> Floats:
    """The change of energy since the first sample relative to the energy there was, (time, ...)."""
    account = Balance(floor)
    derived = {"time": time, "energy": energy, "kinetic_energy": kinetic, "loop_error": np.zeros(1)}
    if power is not None:
        derived |= {"tau": power[..., None], "u": np.ones((*power.shape, 1))}
    account.add(derived)
    return relative(energy - energy[0], account.scale(works)) if len(energy) else energy
