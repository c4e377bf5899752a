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
from contextlib import nullcontext

from bellcrank.integrate.cone_program import CONE_POINTERS, ConeSolver, cone_memory
from bellcrank.integrate.contact_vectors import Three, across, aligned, cross, dot, three_of
from bellcrank.integrate.contact_views import END, GLANCE, MIDDLE, PLACE, SCREW, START, ContactViews, Seen
from bellcrank.integrate.fixed_step import STEPPING
from bellcrank.target.array_loops import each, in_registers, lanes_of, largest_of, sum_of
from bellcrank.target.program import Builder, DriverLayout, Int, Mask, Memory, Real

__all__ = ["CONTACT", "CONTACT_MEMORY", "OVERLAP", "SLOW", "ContactSlots", "contact_memory", "kept_numbers"]

#: places farther apart than so many times what the fastest of them moves in a step are not looked at
REACH = 3.0
#: share of the diagonal of G by which J and J_m may differ before a place has jumped
JUMP = 0.25
#: the share of the machine's length below which gaps are closed at the end of a step: in doubles, and in floats
CLOSED, ROUGHLY_CLOSED = 1e-9, 1e-6
#: bodies that move by less than this share of the machine's length in a step are slow
SLOW = 1e-2

#: numbers of the deepest overlap so far: as a share of the smaller shape, of which place, and when [s]
OVERLAP = 3

#: memory of one state: coordinates (nq), speeds (nu), slots
CONTACT_MEMORY = ("middle", "end", "free", "ahead", "along", "before", "gap", "begun", "floor", "least",
                  "bounce", "struck", "kept", "real", "rows", "pushing", "response", "frames", "acted", "fallen",
                  "acting", "fresh", "early", "late", "calm")
CONTACT = DriverLayout(
    (*STEPPING.integers, "places", "most", "stride", "together", "views", "memory", "forces_out", "n_placing",
     "n_touching", "n_factor", "n_apply", "n_adding", "n_energies", "prescribes"),
    (*STEPPING.reals, "length"),
    (*STEPPING.pointers, *CONE_POINTERS, *CONTACT_MEMORY, "shown", "touch", "column", "answer", "base", "extra",
     "added", "energy", "paths", "slots", "out_forces", "placing", "touching", "factor", "apply", "adding",
     "energies", "scaled", "spans", "thin"),
    tables=("paths", "scaled", "spans", "thin"))


def contact_memory(nq: int, nu: int, places: int, most: int, stride: int) -> dict[str, int]:
    """Reals of each buffer, for one state; `stride`: numbers of a speed in matrices of rows."""
    by_slot = dict.fromkeys(("before", "gap", "floor", "least", "bounce", "struck", "kept", "real"), most)
    by_row = dict.fromkeys(("rows", "pushing", "response"), stride * nu)
    return {**cone_memory(most, stride), **by_slot, **by_row, "middle": nq, "end": nq,
            **dict.fromkeys(("free", "ahead", "along", "early", "late", "calm"), nu), "begun": 2 * places,
            "frames": 9 * most, **dict.fromkeys(("acted", "fallen"), stride), "acting": 3 * places,
            "fresh": 2 * nu + 3 * places + OVERLAP}


def kept_numbers(nu: int, places: int) -> int:
    """Numbers of a state that go from step to step."""
    return 2 * nu + 3 * places + OVERLAP + 2


class ContactSlots(ContactViews):
    """A driver's memory for contacts, and what it knows of the places that are near."""

    def __init__(self, f: Builder) -> None:
        super().__init__(f)
        self.most = f.count("most")
        (self.middle, self.end, self.free, self.ahead, self.along, self.before, self.gap, self.begun, self.floor,
         self.least, self.bounce, self.struck, self.kept, self.real, self.rows, self.pushing, self.response,
         self.frames, self.acted, self.fallen, self.acting, self.fresh, self.early, self.late, self.calm
         ) = (f.memory(name) for name in CONTACT_MEMORY)
        self.slots, self.paths, self.scaled = f.integers_at("slots"), f.table("paths"), f.table("scaled")
        self.spans, self.thin = f.table("spans"), f.table("thin")
        self.added, self.extra = f.memory("added"), f.memory("extra")
        self.inherited = f.memory("inputs").at(f.count("memory"))
        self.count, self.fastest = f.counter(0), f.variable(0.0)
        self.stride = f.count("stride")
        length = f.real("length")
        self.cone = ConeSolver(f, self.count, self.stride, length * SLOW / self.step)
        self.touches = length * (ROUGHLY_CLOSED if f.compensates else CLOSED)

    def fastest_of(self, speed: Callable[[Int], Real]) -> Real:
        """The largest of some speeds [rad/s], of distances by the angle that they count as (`spans`)."""
        return largest_of(self.f, self.nu, lambda j: speed(j).abs() * self.spans.along(j))

    def still(self) -> Real:
        """What is no speed [rad/s], as it is less than what conditions of contacts are met to."""
        return SLOW * self.cone.tolerance / self.step

    def velocities(self, rows: Memory, u: Memory, target: Memory) -> None:
        """target = rows u: velocities at all slots."""
        f, stride = self.f, self.stride

        def one(r: Int) -> None:
            target[r] = f.fold(self.nu, f.constant(0.0), lambda j, x: x + rows[j * stride + r] * u.everywhere(j))

        in_registers(f, self.cone.rows(), one)

    def diagonal(self, rows: Memory, target: Memory) -> None:
        """target = the products of rows with the answers to them."""
        f, stride = self.f, self.stride

        def one(r: Int) -> None:
            target[r] = f.fold(self.nu, f.constant(0.0),
                               lambda j, x: x + rows[j * stride + r] * self.response[j * stride + r])

        in_registers(f, self.cone.rows(), one)

    def moved(self, p: Memory, j: Int) -> Real:
        """What impulses do to a speed: M^-1 J_m^T p."""
        row = self.response.at(j * self.stride)
        return sum_of(self.f, self.cone.rows(), lambda r: row[r] * p[r])

    def moved_alone(self, p: Memory, j: Int) -> Real:
        """The same while forces stay as they are: see `contact_stiff`."""
        return self.moved(p, j)

    def answered(self) -> None:
        """What is to be done with answers before they are used."""

    # -- which are near -------------------------------------------------------------------------------
    def look_around(self, number: Int) -> None:
        """Slots of the places that may touch in this step, the rows of J and J_m there, and how speeds answer."""
        f, u = self.f, self.y.at(self.nq)
        start, end, middle = (0.0, self.y, u), (1.0, self.end, self.ahead), (0.5, self.middle, u)
        self.show(number, start, end, middle)
        fastest = self.begin_places(self.seen(START, number, *start))
        there = self.seen(END, number, *end)
        self.find(there, fastest)
        with f.when(self.count.value <= self.most):
            self.make_rows(there, self.rows, lambda k, normal: self.keep_frame(k, (normal, *across(normal))))
        with f.when((self.count.value > 0) & (self.count.value <= self.most)):
            self.respond(number, self.seen(MIDDLE, number, *middle))

    def begin_places(self, seen: Seen) -> Real:
        """What gaps and normal velocities are at the start of a step; the square of the largest speed at a place."""
        with self.f.loop(self.places) as i:
            self.begun[i * 2] = seen[i * PLACE].min(0.0)
            self.begun[i * 2 + 1] = seen[i * PLACE + 7]
        return self.summary(seen)[0]

    def summary(self, seen: Seen) -> Seen:
        """The square of the largest speed at a place, and the least gap of every `GLANCE` of them."""
        return seen.at(self.places * PLACE + self.nu * SCREW)

    def find(self, seen: Seen, fastest: Real) -> None:
        """Slots of the places that may touch in this step."""
        f, nearest, group = self.f, self.summary(seen), self.f.counter(1)
        self.fastest.set(fastest.max(nearest[0]).sqrt())
        reach = f.variable(self.fastest.value * self.step * REACH + self.touches)
        with f.loop(self.places, step=GLANCE) as first:  # most are far: several at a glance
            with f.when((nearest[group.value] < reach.value).any()), \
                    f.loop((first + GLANCE).min(self.places), first) as i:
                self.look(seen.at(i * PLACE), i, reach.value)
            group.set(group.value + 1)

    def look(self, place: Seen, i: Int, reach: Real) -> None:
        """Give a place that is near a slot."""
        f, h, near = self.f, self.step, place[0] < reach
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
    def make_rows(self, seen: Seen, rows: Memory, frame: Callable[[Int, Three], tuple[Three, Three, Three]]) -> None:
        """For every slot: how speeds part the bodies along the normal, and slide the second across the first."""
        f, nu, stride = self.f, self.nu, self.stride
        screws = seen.at(self.places * PLACE)
        self.clear_rows(rows)
        with f.loop(self.count.value) as k:
            i = self.slots[k]
            place, own, near = seen.at(i * PLACE), rows.at(k * 3), self.real[k] > 0.5
            gap, point, normal = place[0], three_of(place, 1), three_of(place, 4)
            ways = frame(k, normal)
            with f.loop(nu) as speed:
                sign = self.paths[i * nu + speed]
                with f.when((sign * sign > 0.5).any()):
                    screw = screws.at(speed * SCREW)
                    angular, linear, origin = (three_of(screw, 3 * n) for n in range(3))
                    arm = tuple(x + n * (gap * 0.5 * sign) - o for x, n, o in zip(point, normal, origin, strict=True))
                    moving = tuple((a + b) * sign for a, b in zip(linear, cross(angular, arm), strict=True))
                    for a, way in enumerate(ways):
                        own[speed * stride + a] = near.pick(dot(moving, way), 0.0)

    def clear_rows(self, rows: Memory) -> None:
        """Zeros in all rows, and behind the last."""
        f = self.f
        with f.loop(self.nu) as j:
            row = rows.at(j * self.stride)

            def nothing(r: Int, zero: Real, row: Memory = row) -> None:
                row[r] = zero

            in_registers(f, self.cone.rows(), nothing, f.constant(0.0))

    def clear_places(self, numbers: Memory) -> None:
        """Zeros, three for every place."""
        def nothing(j: Int, zero: Real) -> None:
            numbers[j] = zero

        each(self.f, self.places * 3, nothing, self.f.constant(0.0))

    def respond(self, number: Int, seen: Seen) -> None:
        """(3): M^-1 J_m^T, and G."""
        f = self.f
        self.make_rows(seen, self.pushing, self.turned_frame)
        self.at(number, 0.5)
        self.stand(self.middle, self.y.at(self.nq))
        f.call_all("factor", f.count("n_factor"))
        lanes, together = lanes_of(f), f.count("together")
        if lanes > 1:
            with f.when(together > 1):
                self.answer(lanes)
            with f.when(together == 1):
                self.clear_rows(self.response)
                self.answer(1)
        else:
            self.answer(1)
        self.answered()
        self.settle_jumps(seen)
        self.multiply(self.rows)

    def answer(self, together: int) -> None:
        """M^-1 J_m^T, so many rows at once."""
        f, stride = self.f, self.stride
        column, answer, base = (f.memory(n) for n in ("column", "answer", "base"))

        def across(speed: Callable[[Int], None]) -> None:
            with f.side_by_side() if together > 1 else nullcontext(), f.loop(self.nu) as j:
                speed(j)

        with f.loop(self.cone.rows() if together > 1 else self.count.value * 3, step=together) as r:
            pushing, response = self.pushing.at(r), self.response.at(r)

            def put(j: Int, pushing: Memory = pushing) -> None:
                column[j * together] = pushing[j * stride]

            def take(j: Int, response: Memory = response) -> None:
                response[j * stride] = answer[j * together] - base.everywhere(j)

            across(put)
            f.call_all("apply", f.count("n_apply"))
            across(take)

    def settle_jumps(self, seen: Seen) -> None:
        """Places whose J says nothing of J_m are those at q_m."""
        f, own, other = self.f, self.cone.x, self.cone.wanted
        self.diagonal(self.pushing, own)
        self.diagonal(self.rows, other)
        with f.loop(self.count.value) as k:
            jumped = f.variable(0.0)
            for a in range(3):
                r = k * 3 + a
                jumped.set(((other[r] - own[r]).abs() > own[r] * JUMP).pick(1.0, jumped.value))
            with f.when((jumped.value > 0.5).any()):
                there = jumped.value > 0.5
                place, frame = seen.at(self.slots[k] * PLACE), self.frames.at(k * 9)
                self.gap[k] = there.pick(place[0], self.gap[k])
                for a, way in enumerate(self.turned_frame(k, three_of(place, 4))):
                    for b, entry in enumerate(way):
                        frame[3 * a + b] = there.pick(entry, frame[3 * a + b])
                self.see_middle(k, there)

    def see_middle(self, k: Int, there: Mask) -> None:
        """Rows of a slot are those of J_m in some lanes."""
        rows, pushing = self.rows.at(k * 3), self.pushing.at(k * 3)
        with self.f.loop(self.nu) as j:
            for a in range(3):
                r = j * self.stride + a
                rows[r] = there.pick(pushing[r], rows[r])

    def multiply(self, rows: Memory, there: Mask | None = None) -> None:
        """G by these rows, and the sizes of its diagonal blocks; in some lanes."""
        f, g, stride = self.f, self.cone.g, self.stride
        share = [] if there is None else [there.pick(1.0, 0.0)]
        with f.loop(self.count.value * 3) as r:
            row, line = rows.at(r), g.at(r * stride)

            def entry(c: Int, *some: Real, row: Memory = row, line: Memory = line) -> None:
                made = f.fold(self.nu, f.constant(0.0),
                              lambda j, x: x + row.everywhere(j * stride) * self.response[j * stride + c])
                line[c] = (some[0] > 0.5).pick(made, line[c]) if some else made

            in_registers(f, self.cone.rows(), entry, *share)
        with f.loop(self.count.value) as k:
            largest = f.variable(0.0)
            for i in range(3):
                largest.set(largest.value.max(g[(k * 3 + i) * (stride + 1)]))
            self.cone.sizes[k] = (largest.value > 0.0).pick(largest.value, 1.0)
