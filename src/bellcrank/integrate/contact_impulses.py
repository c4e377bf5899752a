"""Impulses of contacts in a step, and the speeds they lead to. See `contact_step`."""

from __future__ import annotations

from bellcrank.integrate.contact_work import ContactWork
from bellcrank.target.program import Builder, Mask, Memory

__all__ = ["ContactImpulses"]


class ContactImpulses(ContactWork):
    """What is asked of impulses, and what there is where they cannot be."""

    def __init__(self, f: Builder) -> None:
        super().__init__(f)
        #: 0: for where bodies move, 1: for the speeds with which the step ends, 2: the same with less restitution
        self.phase = f.counter(0)
        #: lanes that are computed, the largest residual, lanes in which bodies meet, and in which they are wedged in
        self.going, self.worst, self.meeting, self.wedged = (f.variable(x) for x in (1.0, 0.0, 0.0, 0.0))

    def aim(self) -> None:
        """c: velocities without impulses, less what is wanted."""
        f, c = self.f, self.cone.c
        self.velocities(self.rows, self.free, c)
        with f.loop(self.count.value) as k:
            c[k * 3] = c[k * 3] - self.least[k]

    def aim_at_end(self) -> None:
        """The same for the end of a step in which bodies meet. Impulses do the work p J_m (u + u+)/2, which is that of
        the normal velocities before and after, (J_0 u + v)/2, if v is measured so: no impact makes energy because
        bodies turn in the step."""
        f, c, free, first = self.f, self.cone.c, self.cone.x, self.cone.wanted
        self.velocities(self.pushing, self.free, free)
        self.velocities(self.pushing, self.y.at(self.nq), first)
        with f.loop(self.count.value) as k:
            v = free[k * 3] + (first[k * 3] - self.before[k]) - self.least[k]
            c[k * 3] = (self.meeting.value > 0.5).pick(v, c[k * 3])

    def find_impulses(self) -> None:
        """p. Where there is none, bodies are wedged in: friction keeps them from parting as fast as they must. There it
        is enough that those which push do not come nearer; and if places have gone elsewhere at the end of the step, so
        that even this cannot be, that they do not at q_m: for velocities there always are impulses."""
        f, todo = self.f, self.f.variable(self.going.value)
        with f.forever() as leave:
            residual, missed = self.cone.solve(todo.value)
            stuck = (self.wedged.value < 1.5).pick(missed, 0.0)
            over = (todo.value > 0.5).pick(1.0 - stuck, 0.0) > 0.5
            self.worst.set(over.pick(self.worst.value.max(residual), self.worst.value))
            todo.set(stuck)
            leave(~(todo.value > 0.5).any())
            self.wedged.set(self.wedged.value + todo.value)
            self.wedge(todo.value > 0.5)

    def wedge(self, there: Mask) -> None:
        """Let bodies part no faster than they like, in some lanes."""
        f = self.f
        with f.loop(self.count.value) as k:
            nearest = (self.cone.p[k * 3] > 0.0).pick(0.0, self.least[k].min(0.0))
            self.least[k] = there.pick(nearest, self.least[k])
            self.bounce[k] = there.pick(0.0, self.bounce[k])
            for i in range(3):  # what was tried in vain is large
                self.cone.p[k * 3 + i] = there.pick(0.0, self.cone.p[k * 3 + i])
            self.see_middle(k, there.pick(self.wedged.value, 0.0) > 1.5)
        self.meeting.set(there.pick(0.0, self.meeting.value))
        self.multiply(self.rows, there.pick(self.wedged.value, 0.0) > 1.5)
        self.aim()
        with f.when(self.phase.value > 0):
            self.aim_at_end()

    def push(self, target: Memory) -> None:
        """target = free + M^-1 J_m^T p, in lanes that are going."""
        mask = self.going.value > 0.5
        with self.f.loop(self.nu) as j:
            target[j] = mask.pick(self.free[j] + self.moved(self.cone.p, j), target[j])

    def act(self) -> None:
        """What has acted is what was found, in lanes that are going."""
        mask = self.going.value > 0.5
        with self.f.loop(self.count.value * 3) as j:
            self.acted[j] = mask.pick(self.cone.p[j], self.acted[j])
