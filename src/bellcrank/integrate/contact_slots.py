"""Places of rigid contacts that are near in a step, in compiled code: their rows, and how speeds answer to them.

Rows are made for the places that are near in this step alone, `count` of them, in slots of which there are `most`; the
code does not grow with places times speeds. Lanes share slots; a lane in which a place is far has zeros there, so that
its numbers do not depend on its neighbours.

Velocities at places are J u with J at q_e, and impulses act by J_m^T, J at q_m (see `contact_step`). Both must be of
the same features of the shapes: where a place jumps in between (to another edge, to the other end of a face) the two
would say nothing of each other, G = J M^-1 J_m^T may have negative eigenvalues, and impulses make energy. Such a place
is recognised by the diagonal of G, which is then not that of J_m M^-1 J_m^T, and is seen as it is at q_m alone.
Directions along the surface at q_m are those at q_e, turned as little as possible.
"""

from __future__ import annotations

from collections.abc import Callable

from bellcrank.integrate.cone_program import CONE_POINTERS, ConeSolver, cone_memory
from bellcrank.integrate.contact_vectors import Three, across, aligned, cross, dot, three_of
from bellcrank.integrate.fixed_step import STEPPING, Stepping
from bellcrank.target.array_loops import copy, each, sum_of
from bellcrank.target.program import Builder, DriverLayout, Int, Mask, Memory, Real

__all__ = ["CLOSED", "CONTACT", "CONTACT_MEMORY", "JUMP", "PLACE", "REACH", "SCREW", "ContactSlots", "contact_memory",
           "kept_numbers"]

#: numbers of a place and of a speed in `touch`: see `lowering.contact_rows`, which makes them
PLACE, SCREW = 11, 9
#: places farther apart than so many times what the fastest of them moves in a step are not looked at
REACH = 3.0
#: places whose gaps are looked at together
GLANCE = 8
#: share of the diagonal of G by which J and J_m may differ before a place has jumped
JUMP = 0.25
#: gaps [m] below this are closed at the end of a step: in doubles, and in floats
CLOSED, ROUGHLY_CLOSED = 1e-9, 1e-6

#: memory of one state: coordinates (nq), speeds (nu), slots
CONTACT_MEMORY = ("middle", "end", "free", "ahead", "along", "before", "gap", "begun", "floor", "least",
                  "bounce", "struck", "kept", "real", "rows", "pushing", "response", "frames", "acted", "fallen",
                  "acting", "fresh")
CONTACT = DriverLayout(
    (*STEPPING.integers, "places", "most", "memory", "forces_out", "n_placing", "n_touching", "n_factor",
     "n_apply", "n_adding"),
    STEPPING.reals,
    (*STEPPING.pointers, *CONE_POINTERS, *CONTACT_MEMORY, "touch", "column", "answer", "base", "extra", "added",
     "paths", "slots", "out_forces", "placing", "touching", "factor", "apply",
     "adding"),
    tables=("paths",))


def contact_memory(nq: int, nu: int, places: int, most: int) -> dict[str, int]:
    """Reals of each buffer, for one state."""
    by_slot = dict.fromkeys(("before", "gap", "floor", "least", "bounce", "struck", "kept", "real"), most)
    by_row = dict.fromkeys(("rows", "pushing", "response"), 3 * most * nu)
    return {**cone_memory(most), **by_slot, **by_row, "middle": nq, "end": nq, "free": nu, "ahead": nu, "along": nu,
            "begun": 2 * places, "frames": 9 * most, "acted": 3 * most, "fallen": 3 * most, "acting": 3 * places,
            "fresh": 2 * nu + 3 * places}


def kept_numbers(nu: int, places: int) -> int:
    """Numbers of a state that go from step to step."""
    return 2 * nu + 3 * places + 2


class ContactSlots(Stepping):
    """A driver's memory for contacts, and what it knows of the places that are near."""

    def __init__(self, f: Builder) -> None:
        super().__init__(f)
        self.nq, self.nu = self.split, self.size - self.split
        self.places, self.most = f.count("places"), f.count("most")
        (self.middle, self.end, self.free, self.ahead, self.along, self.before, self.gap, self.begun, self.floor,
         self.least, self.bounce, self.struck, self.kept, self.real, self.rows, self.pushing, self.response,
         self.frames, self.acted, self.fallen, self.acting, self.fresh
         ) = (f.memory(name) for name in CONTACT_MEMORY)
        self.touch, self.extra = f.memory("touch"), f.memory("extra")
        self.slots, self.paths, self.added = f.integers_at("slots"), f.table("paths"), f.memory("added")
        self.inherited = f.memory("inputs").at(f.count("memory"))
        self.count, self.fastest = f.counter(0), f.variable(0.0)
        self.cone, self.touches = ConeSolver(f, self.count, self.most), ROUGHLY_CLOSED if f.compensates else CLOSED

    def stand(self, q: Memory, u: Memory) -> None:
        """Put a state into `stage`."""
        copy(self.f, q, self.stage, self.nq)
        copy(self.f, u, self.stage.at(self.nq), self.nu)

    def at_place(self, k: Int, way: Int | int, u: Memory) -> Real:
        """A velocity at a slot."""
        return self.along_row(self.rows, k * 3 + way, u)

    def along_row(self, rows: Memory, r: Int, u: Memory) -> Real:
        """The product of a row with speeds."""
        row = rows.at(r * self.nu)
        return sum_of(self.f, self.nu, lambda j: row[j] * u[j])

    # -- which are near -------------------------------------------------------------------------------
    def begin_places(self, number: Int) -> Real:
        """What gaps and normal velocities are at the start of a step; the square of the largest speed at a place."""
        f, fastest = self.f, self.f.variable(0.0)
        self.at(number)
        copy(f, self.y, self.stage, self.size)
        f.call_all("touching", f.count("n_touching"))
        with f.loop(self.places) as i:
            self.begun[i * 2] = self.touch[i * PLACE].min(0.0)
            self.begun[i * 2 + 1] = self.touch[i * PLACE + 7]
        return self.quickest(fastest.value)

    def quickest(self, least: Real) -> Real:
        """The square of the largest speed at a place, at least `least`."""
        return self.f.fold(self.places, least, lambda i, x: x.max(self.touch[i * PLACE + 8]))

    def find(self, fastest: Real) -> None:
        """Slots of the places that may touch in this step, and the rows of J there."""
        f, h = self.f, self.step
        self.stand(self.end, self.ahead)
        f.call_all("touching", f.count("n_touching"))
        self.fastest.set(self.quickest(fastest).sqrt())
        reach = f.variable(self.fastest.value * h * REACH + self.touches)
        with f.loop(self.places, step=GLANCE) as first:  # most are far: several at a glance
            last = (first + GLANCE).min(self.places)
            nearest = f.fold(last, self.touch[first * PLACE], lambda i, x: x.min(self.touch[i * PLACE]), start=first)
            with f.when((nearest < reach.value).any()), f.loop(last, first) as i:
                self.look(i, reach.value)
        with f.when(self.count.value <= self.most):
            self.make_rows(self.rows, lambda k, normal: self.keep_frame(k, (normal, *across(normal))))

    def look(self, i: Int, reach: Real) -> None:
        """Give a place that is near a slot."""
        f, h, place = self.f, self.step, self.touch.at(i * PLACE)
        near = place[0] < reach
        with f.when(near.any()):
            k = self.count.value
            with f.when(k < self.most):
                self.slots[k] = i
                self.real[k] = near.pick(1.0, 0.0)
                self.gap[k] = place[0] - h * 0.5 * place[7]
                self.floor[k] = self.begun[i * 2]
                self.before[k] = self.begun[i * 2 + 1]
                self.cone.mu[k] = place[9]
                self.kept[k] = place[10]
            self.count.set(k + 1)

    def keep_frame(self, k: Int, ways: tuple[Three, Three, Three]) -> tuple[Three, Three, Three]:
        """Remember the directions of a slot."""
        for a, way in enumerate(ways):
            for b, entry in enumerate(way):
                self.frames[k * 9 + (3 * a + b)] = entry
        return ways

    def turned_frame(self, k: Int, normal: Three) -> tuple[Three, Three, Three]:
        """The directions of a slot that belong to another normal."""
        return (normal, *aligned(normal, three_of(self.frames.at(k * 9), 3)))

    # -- rows -----------------------------------------------------------------------------------------
    def make_rows(self, rows: Memory, frame: Callable[[Int, Three], tuple[Three, Three, Three]]) -> None:
        """For every slot: how speeds part the bodies along the normal, and slide the second across the first."""
        f, nu = self.f, self.nu
        screws = self.touch.at(self.places * PLACE)
        with f.loop(self.count.value * 3 * nu) as j:
            rows[j] = 0.0
        with f.loop(self.count.value) as k:
            i = self.slots[k]
            place, own, near = self.touch.at(i * PLACE), rows.at(k * 3 * nu), self.real[k] > 0.5
            gap, point, normal = place[0], three_of(place, 1), three_of(place, 4)
            ways = frame(k, normal)
            with f.loop(nu) as speed:
                sign = self.paths[i * nu + speed]
                with f.when((sign * sign > 0.5).any()):
                    screw = screws.at(speed * SCREW)
                    angular, linear, origin = (three_of(screw, 3 * n) for n in range(3))
                    arm = tuple(x + n * (gap * 0.5 * sign) - o for x, n, o in zip(point, normal, origin, strict=True))
                    for a, way in enumerate(ways):
                        along = (dot(linear, way) + dot(angular, cross(arm, way))) * sign
                        own[speed + nu * a] = near.pick(along, 0.0)

    def respond(self, number: Int) -> None:
        """(3): M^-1 J_m^T, row after row, and G."""
        f, nu = self.f, self.nu
        self.at(number, 0.5)
        self.stand(self.middle, self.y.at(self.nq))
        f.call_all("touching", f.count("n_touching"))
        self.make_rows(self.pushing, self.turned_frame)
        f.call_all("factor", f.count("n_factor"))
        column, answer, base = (f.memory(n) for n in ("column", "answer", "base"))
        with f.loop(self.count.value * 3) as r:
            row = self.response.at(r * nu)
            copy(f, self.pushing.at(r * nu), column, nu)
            f.call_all("apply", f.count("n_apply"))

            def one(j: Int, row: Memory = row) -> None:
                row[j] = answer[j] - base[j]

            each(f, nu, one)
        self.settle_jumps()
        self.multiply(self.rows)

    def settle_jumps(self) -> None:
        """Places whose J says nothing of J_m are those at q_m."""
        f = self.f
        with f.loop(self.count.value) as k:
            jumped = f.variable(0.0)
            for a in range(3):
                response = self.response.at((k * 3 + a) * self.nu)
                own = self.along_row(self.pushing, k * 3 + a, response)
                other = self.at_place(k, a, response)
                jumped.set(((other - own).abs() > own * JUMP).pick(1.0, jumped.value))
            with f.when((jumped.value > 0.5).any()):
                there = jumped.value > 0.5
                place, frame = self.touch.at(self.slots[k] * PLACE), self.frames.at(k * 9)
                self.gap[k] = there.pick(place[0], self.gap[k])
                for a, way in enumerate(self.turned_frame(k, three_of(place, 4))):
                    for b, entry in enumerate(way):
                        frame[3 * a + b] = there.pick(entry, frame[3 * a + b])
                self.see_middle(k, there)

    def see_middle(self, k: Int, there: Mask) -> None:
        """Rows of a slot are those of J_m in some lanes."""
        rows, pushing = (x.at(k * 3 * self.nu) for x in (self.rows, self.pushing))
        with self.f.loop(self.nu * 3) as j:
            rows[j] = there.pick(pushing[j], rows[j])

    def multiply(self, rows: Memory) -> None:
        """G by these rows, and the sizes of its diagonal blocks."""
        f, nu, g = self.f, self.nu, self.cone.g
        with f.loop(self.count.value * 3) as r:
            row, line = rows.at(r * nu), g.at(r * self.cone.stride)
            with f.loop(self.count.value * 3) as j:
                other = self.response.at(j * nu)
                line[j] = sum_of(f, nu, lambda i, row=row, other=other: row[i] * other[i])
        with f.loop(self.count.value) as k:
            largest = f.variable(0.0)
            for i in range(3):
                largest.set(largest.value.max(g[(k * 3 + i) * (self.cone.stride + 1)]))
            self.cone.sizes[k] = (largest.value > 0.0).pick(largest.value, 1.0)
