"""What is seen of the places of rigid contacts, in compiled code: gaps, points, normals, and axes of speeds.

Places are looked at as they are at the start of a step, at its end and half way (`START`, `END`, `MIDDLE`). In code for
one state the three are computed side by side, in lanes that are free, by one call of *touching*, and `touch` has every
number `VIEWS` times; otherwise each by a call of its own, `touch` being what has been looked at last.
"""

from __future__ import annotations

from bellcrank.integrate.fixed_step import Stepping
from bellcrank.target.array_loops import copy, lanes_of
from bellcrank.target.program import Builder, Int, Memory, Real

__all__ = ["END", "GLANCE", "MIDDLE", "PLACE", "SCREW", "START", "VIEWS", "ContactViews", "Seen", "touch_size"]

#: numbers of a place and of a speed in `touch`: see `lowering.contact_rows`, which makes them; behind them lie the
#: square of the largest speed at a place, and the least gap of every `GLANCE` places
PLACE, SCREW, GLANCE = 11, 9, 8
#: states that are looked at side by side
VIEWS = 4
START, END, MIDDLE = range(3)


def touch_size(places: int, nu: int) -> int:
    """Numbers of a view."""
    return PLACE * places + SCREW * nu + 1 - (-places // GLANCE)


class Seen:
    """Numbers of one view: ``seen[i]``."""

    def __init__(self, memory: Memory, apart: Int | int) -> None:
        self._memory, self._apart = memory, apart

    def _place(self, i: Int | int) -> Int | int:
        if isinstance(i, Int):
            return i * self._apart
        return i * self._apart if isinstance(self._apart, int) else self._apart * i

    def __getitem__(self, i: Int | int) -> Real:
        return self._memory[self._place(i)]

    def at(self, start: Int | int) -> Seen:
        """The numbers from an entry on."""
        return Seen(self._memory.at(self._place(start)), self._apart)


class ContactViews(Stepping):
    """A driver that looks at places."""

    def __init__(self, f: Builder) -> None:
        super().__init__(f)
        self.nq, self.nu = self.split, self.size - self.split
        self.places = f.count("places")
        self._touch, self._shown = f.memory("touch"), f.memory("shown")
        #: how many views there are at once: one, or `VIEWS` in some programs
        self._views = f.count("views") if lanes_of(f) >= VIEWS else None

    def stand(self, q: Memory, u: Memory) -> None:
        """Put a state into `stage`."""
        copy(self.f, q, self.stage, self.nq)
        copy(self.f, u, self.stage.at(self.nq), self.nu)

    def show(self, number: Int, *states: tuple[float, Memory, Memory]) -> None:
        """Look at several states, each with the part of the step that it belongs to, if that is done at once."""
        f = self.f
        if self._views is None:
            return
        with f.when(self._views > 1):
            for view, (part, q, u) in enumerate(states):
                shown = self._shown.at(view)
                for source, start, count in ((q, 0, self.nq), (u, self.nq, self.nu)):
                    with f.loop(count) as j:
                        shown[(j + start) * VIEWS] = source[j]
                self.at(number, part)
                shown[self.size * VIEWS] = self.clock[0]
            f.call_all("touching", f.count("n_touching"))

    def seen(self, view: int, number: Int, part: float, q: Memory, u: Memory) -> Seen:
        """A view of what has been shown; or a look at the state now."""
        f = self.f
        if self._views is None:
            self._look(number, part, q, u)
            return Seen(self._touch, 1)
        with f.when(self._views == 1):
            self._look(number, part, q, u)
        return Seen(self._touch.at((self._views > 1).integer() * view), self._views)

    def _look(self, number: Int, part: float, q: Memory, u: Memory) -> None:
        self.at(number, part)
        self.stand(q, u)
        self.f.call_all("touching", self.f.count("n_touching"))
