"""The work of contacts in a step: whether they have made energy. See `contact_step`."""

from __future__ import annotations

from bellcrank.integrate.contact_slots import ContactSlots
from bellcrank.target.array_loops import sum_of
from bellcrank.target.program import Builder, Memory, Real

__all__ = ["ContactWork"]

#: share of what contacts exchange that may be energy made
WORK = 0.1


class ContactWork(ContactSlots):
    """What impulses have done."""

    def __init__(self, f: Builder) -> None:
        super().__init__(f)
        self.made = f.variable(0.0)  #: energy by contacts that bounce

    def work(self, p: Memory) -> tuple[Real, Real]:
        """What impulses do when bodies meet: p J_m (u + u+)/2, less what forces do more or less because that is not in
        the middle of the step; and what there is of it in all."""
        f, cone, u = self.f, self.cone, self.y.at(self.nq)
        work, size = f.variable(0.0), f.variable(0.0)
        with f.loop(self.count.value * 3) as row:
            g = cone.g.at(row * cone.stride)
            done = sum_of(f, self.count.value * 3, lambda j: g[j] * p[j])
            first, free = (self.along_row(self.pushing, row, x) for x in (u, self.free))
            part = p[row] * ((first + free + done) * 0.5 - self.fallen[row])
            work.set(work.value + part)
            size.set(size.value + part.abs())
        return work.value, size.value

    def bounced_up(self) -> Real:
        """Lanes (1.0, else 0.0) in which the impulses of contacts that bounce have done work, in `made`."""
        f = self.f
        work, size = self.work(self.acted)
        self.made.set(work)
        bounce = f.fold(self.count.value, f.constant(0.0), lambda k, x: x.max(self.bounce[k]))
        return (work > size * 1e-9 + 1e-12).pick(bounce, 0.0)

    def lifted(self) -> Real:
        """Lanes (1.0, else 0.0) in which impulses have done work in the whole step, p J_m (u + u+)/2, that is more than
        a share of all that they exchange."""
        f, u = self.f, self.y.at(self.nq)
        work, sum_, least = f.variable(0.0), f.variable(0.0), f.variable(0.0)
        with f.loop(self.count.value) as k:
            for i in range(3):
                r = k * 3 + i
                p = self.acted[r]
                first, last = (self.along_row(self.pushing, r, x) for x in (u, self.ahead))
                work.set(work.value + p * (first + last) * 0.5)
                sum_.set(sum_.value + p.abs() * (first.abs() + last.abs()) * 0.5)
                least.set(least.value + p * p * self.cone.sizes[k])
        return (work.value > sum_.value * WORK + least.value * 1e-6).pick(1.0, 0.0)
