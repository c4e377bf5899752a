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
        f, cone, first, free = self.f, self.cone, self.cone.x, self.cone.wanted
        self.velocities(self.pushing, self.y.at(self.nq), first)
        self.velocities(self.pushing, self.free, free)
        work, size = f.variable(0.0), f.variable(0.0)
        with f.loop(self.count.value * 3) as row:
            g = cone.g.at(row * cone.stride)
            done = sum_of(f, cone.rows(), lambda j: g[j] * p[j])
            part = p[row] * ((first[row] + free[row] + done) * 0.5 - self.fallen[row])
            work.set(work.value + part)
            size.set(size.value + part.abs())
        return work.value, size.value

    def bounced_up(self) -> Real:
        """Lanes (1.0, else 0.0) in which the impulses of contacts that bounce have done work, in `made`."""
        f, up = self.f, self.f.variable(0.0)
        bounce = f.fold(self.count.value, f.constant(0.0), lambda k, x: x.max(self.bounce[k]))
        with f.when((bounce > 0.5).any()):
            work, size = self.work(self.acted)
            self.made.set(work)
            up.set((work > size * 1e-9).pick(bounce, 0.0))
        return up.value

    def lifted(self) -> Real:
        """Lanes (1.0, else 0.0) in which impulses have done work in the whole step, p J_m (u + u+)/2, that is more than
        a share of all that they exchange."""
        f, first, last = self.f, self.cone.x, self.cone.wanted
        self.velocities(self.pushing, self.y.at(self.nq), first)
        self.velocities(self.pushing, self.ahead, last)
        work, sum_, least = f.variable(0.0), f.variable(0.0), f.variable(0.0)
        with f.loop(self.count.value) as k:
            for i in range(3):
                r = k * 3 + i
                p = self.acted[r]
                work.set(work.value + p * (first[r] + last[r]) * 0.5)
                sum_.set(sum_.value + p.abs() * (first[r].abs() + last[r].abs()) * 0.5)
                least.set(least.value + p * p * self.cone.sizes[k])
        return (work.value > sum_.value * WORK + least.value * 1e-6).pick(1.0, 0.0)
