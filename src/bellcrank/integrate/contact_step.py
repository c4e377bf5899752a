"""Moreau-Jean time stepping: rigid contacts with friction. J. J. Moreau, "Unilateral contact and dry friction in finite
freedom dynamics" (1988), and M. Jean, "The non-smooth contact dynamics method", Comput. Methods Appl. Mech. Eng. 177
(1999).

One step of length h from (q, u), with v the velocities at places that may touch:

    q_m = q + h/2 H(q) u                             (1)  where bodies would be after half a step; H u are rates of q
    u_f = u + h M^-1 f(q_m, (u + u+)/2)              (2)  free motion: the compiled forward dynamics, loops included
    G = J M^-1 J_m^T, c = J u_f                      (3)  M^-1 factored once at q_m, one sweep per row; J itself at q_e
    u+ = u_f + M^-1 J_m^T p                          (4)  p by Signorini's and Coulomb's laws: `cone_program`
    q+ = q_m + h/2 H(q_e) u+                         (5)

q_e is where bodies would be after the step with the contact forces of the last one: what sticks or rolls does so at
the end of each step, whatever frame speeds are measured in. After that loops are closed as after any step.

Bodies must part at w at least. For (5) that is w = -2 (gap - floor) / h, with the gap half way (that at q_e less
h/2 J u there) and the floor zero, or what the gap was at the start where bodies overlap: no overlap grows but by what
is nonlinear. The speeds with which the step ends follow from w = 0 at places that are closed then. Those that meet
faster than they gain in a step by their own weight bounce by Newton's law, with -e times the speed at which they meet,
and are at the end of the step where they then would be. In a step in which bodies meet, the speeds with which it ends
are found with G = J_m M^-1 J_m^T, velocities such that their means are those of J_m (u + u+)/2, and f at that mean: so
impulses and gyroscopic forces do the work that they should, also of bodies that spin by much in a step.

(2) to (4) are repeated until u+ does not change: with f at the middle of the step, q_m + h/4 H (u+ - u). So that this
converges with stiff springs and dampers on joints, too, h/2 damping + h^2/4 stiffness is added to the inertia of their
coordinates, and its share of the change of speeds to the forces. Other forces that are stiff: `contact_stiff`. What
spins in flight takes (2) in halves, too: `contact_motion`.

Deviation: where contacts would make energy (Newton's law can, with friction, at several places at once), the step is
taken with as much restitution as makes none. Nothing pushes overlaps apart, which would make energy, too. Speeds with
which the machine would have made energy all the same, as it turns by much in the step, are less: `contact_energy`.

| paper | here |
|---|---|
| Delassus operator | ``g`` |
| free velocity | ``free`` |

The driver calls, besides what `fixed_step` has: *placing* (unit quaternions and prescribed coordinates in `stage`),
*touching* (`touch`: gaps, points, normals and axes of speeds, see `contact_views`), *adding* (once: `added`, inertia
that the machine has in addition for its springs and dampers), *factor* (`shared`: all of M^-1 that does not
depend on what it is applied to; `base`: what is to be taken off every answer), *apply* (`answer` from `column`) and
*energies* (`energy`: kinetic, of gravity, stored).

`contact_slots` says which places are looked at. If there are more of them than slots, the step fails in all lanes, and
`need` says how many it takes.

Behind the inputs of the machine lies what goes from step to step: accelerations by contacts (nu), accelerations (nu),
impulses of all places (3 each), the deepest overlap at the start of a step (`contact_slots.OVERLAP`), the largest
residual [m/s], and `need`. Those that begin the list are first guesses.
"""

from __future__ import annotations

from collections.abc import Callable

from bellcrank.integrate.contact_energy import ContactEnergy
from bellcrank.integrate.contact_slots import OVERLAP
from bellcrank.integrate.contact_vectors import after_bounce, three_of
from bellcrank.integrate.contact_views import PLACE, START
from bellcrank.target.array_loops import copy, each
from bellcrank.target.program import Bool, Builder, Int, Memory, Real

__all__ = ["ContactSteps", "contact_steps"]

#: evaluations of (2), until speeds change by no more than this share of the largest one, or than what the conditions of
#: contacts are met to: what is at rest has speeds that are nothing but rounding
AGAIN, STEADY = 6, 1e-6
#: bodies that approach by less than this share of what they gain in a step by their weight have met before
MEETS = 1e-3
#: an overlap is deeper than the deepest so far by this ratio: when it began is told, not the last of many alike
AGAIN_DEEPER = 1.001
#: iterations for q_e: gaps there are to be those of (5), or bodies that roll would sink
ENDS = 5


class ContactSteps(ContactEnergy):
    """The driver: `Stepping` with a step for rigid contacts."""

    def __init__(self, f: Builder) -> None:
        super().__init__(f)
        self.round, self.more = f.counter(0), f.counter(0)  #: iterations, and whether there is another one
        self.wanted = f.memory("column")  #: the speeds with which the step ends that it is for

    # -- free motion --------------------------------------------------------------------------------
    def one_step(self, number: Int) -> None:
        f, y, u = self.f, self.y, self.y.at(self.nq)
        self.number = number
        self.count.set(0)
        self.met.set(0.0)
        self.at(number, 0.5)
        copy(f, y, self.stage, self.size)
        self.move_on(y, self.middle)  # (1)

        def as_before(j: Int, h: Real) -> None:
            self.along[j] = u[j] + h * self.inherited[self.nu + j]

        each(f, self.nu, as_before, self.step)
        self.first_motion(number)
        self.at(number, 1.0)
        copy(f, self.middle, self.end, self.nq)
        with f.loop(ENDS):
            self.stand(self.end, self.ahead)
            self.move_on(self.middle, self.end)
        need = f.variable(0.0)
        with f.when(self.places > 0):
            self.look_around(number)
            with f.when(self.count.value > self.most):
                need.set(self.count.value.real())
                self.count.set(0)
        f.together()
        self.land(number)
        self.solve(number)
        f.together()
        self.at(number, 1.0)
        self.stand(self.end, self.along)
        self.move_on(self.middle, self.stage)  # (5)
        copy(f, self.ahead, self.stage.at(self.nq), self.nu)
        self.inherited[self.told() + (OVERLAP + 1)] = need.value
        with f.when((need.value > 0.5).any()):
            self.stage[0] = float("nan")

    def first_motion(self, number: Int) -> None:
        """(2) for the first time, in `free`, and speeds with which the step would end with the contact forces of the
        last one, in `ahead`; from those in `along`."""
        f, u, rate = self.f, self.y.at(self.nq), self.rate.at(self.nq)
        self.begin_motion()
        self.fly(number, self.along)

        def first(j: Int, h: Real) -> None:
            self.free[j] = u[j] + h * rate[j]
            self.ahead[j] = self.free[j] + h * self.inherited[j]

        each(f, self.nu, first, self.step)

    # -- impulses -------------------------------------------------------------------------------------
    def solve(self, number: Int) -> None:
        """(2) to (4): `along`, the speeds by which bodies move on, and those with which the step ends, in `ahead`."""
        f = self.f
        self.strike(number)
        self.prepare()
        self.phase.set(0)
        self.round.set(0)
        self.going.set(1.0)
        self.worst.set(0.0)
        self.wedged.set(0.0)
        with f.forever() as leave:
            with f.when(self.count.value > 0):
                self.aim()
                with f.when(self.phase.value > 0):
                    self.aim_at_end()
                self.find_impulses()
            f.switch(self.phase.value, [(0, lambda: self.iterate(self.along, f.constant(1.0), self.bring_together)),
                                        (1, self.depart), (2, self.part)])
            leave(self.phase.value >= 3)
            with f.when(self.more.value > 0):
                self.again(number)
        self.keep()

    def strike(self, number: Int) -> None:
        """Which places meet faster than they gain in a step by their own weight, with free motion; where there are any,
        how velocities there change from rest, in `x`."""
        f, some, free = self.f, self.f.variable(0.0), self.cone.c
        self.velocities(self.rows, self.free, free)
        with f.loop(self.count.value) as k:
            before = self.before[k]
            struck = (before < (free[k * 3] - before).abs() * -2.0).pick(self.real[k], 0.0)
            self.struck[k] = struck
            some.set(some.value.max(struck))
        with f.when((some.value > 0.5).any()):
            self.at(number, 0.5)
            copy(f, self.middle, self.stage, self.nq)
            stage = self.stage.at(self.nq)
            with f.loop(self.nu) as j:
                stage[j] = 0.0
                self.extra[j] = 0.0
            f.call_all("forces", f.count("n_forces"))
            self.velocities(self.pushing, self.rate.at(self.nq), self.cone.x)

    def prepare(self) -> None:
        """How bodies must part at least so that gaps at the end of the step are not below zero, or below what they were
        at its start; where impulses may act; and a first guess of them."""
        f, h, cone = self.f, self.step, self.cone
        cone.clear()
        copy(f, cone.p, self.acted, cone.rows())
        with f.loop(self.count.value) as k:
            live = self.real[k]
            self.bounce[k] = (self.kept[k] > 0.0).pick(self.struck[k], 0.0)
            self.least[k] = ((self.gap[k] - self.floor[k]) * -2.0 / h).min(self.fastest.value)
            guess = self.inherited.at(self.nu * 2 + self.slots[k] * 3)
            for i in range(3):
                self.fallen[k * 3 + i] = 0.0
                cone.on[k * 3 + i] = live
                cone.p[k * 3 + i] = (live > 0.5).pick(guess[i], 0.0)
            with f.when((self.bounce[k] > 0.5).any()):
                self.throw(k)

    def throw(self, k: Int) -> None:
        """With which speed, and where, the step ends at a place that bounces in it."""
        h, before, least, share = self.step, self.before[k], self.least[k], self.kept[k]
        free, fall = self.cone.c[k * 3], [self.cone.x[k * 3 + i] for i in range(3)]
        arrives = (free < least).pick(self.bounce[k], 0.0) > 0.5
        speed, height, late = after_bounce(self.gap[k] - self.floor[k], before, free, fall[0], share, h)
        self.least[k] = arrives.pick(least + height * 2.0 / h, least)
        self.kept[k] = arrives.pick(speed, -(share * before))
        for i in range(3):
            self.fallen[k * 3 + i] = arrives.pick(fall[i] * late * 0.5, 0.0)

    def iterate(self, ends: Memory, among: Real, leave: Callable[[], None]) -> None:
        """After a solution: free motion with the forces that belong to the speeds with which it `ends`, until these do
        not change; `among` some lanes."""
        f, nu, last = self.f, self.nu, self.rate
        copy(f, ends, last, nu)
        self.push(ends)
        largest, change = self.fastest_of(lambda j: ends[j]), self.fastest_of(lambda j: ends[j] - last[j])
        self.going.set((change > (largest * STEADY).max(self.still())).pick(self.going.value * among, 0.0))
        done = ~(self.going.value > 0.5).any() | (self.round.value >= AGAIN)
        self.round.set(self.round.value + 1)
        with f.when(done):
            leave()
        with f.when(~done):
            copy(f, ends, self.wanted, nu)
            self.more.set(1)

    def again(self, number: Int) -> None:
        """Free motion once more, in lanes that are going."""
        f, u, acceleration = self.f, self.y.at(self.nq), self.rate.at(self.nq)
        self.fly(number, self.wanted)
        self.more.set(0)
        mask = self.going.value > 0.5
        with f.loop(self.nu) as j:
            self.free[j] = mask.pick(u[j] + self.step * acceleration[j], self.free[j])

    def bring_together(self) -> None:
        """Places are where they should be at the end of the step: which of them are closed then, and with which speeds
        do bodies part there? Often those by which they got there."""
        f, cone, other, met = self.f, self.cone, self.f.variable(0.0), self.f.variable(0.0)
        self.velocities(self.rows, self.along, cone.x)
        with f.loop(self.count.value) as k:
            v = cone.x[k * 3]
            near = self.gap[k] - self.floor[k] + self.step * 0.5 * v <= self.touches
            closed = near.pick(cone.on[k * 3], 0.0)
            thrown = (cone.p[k * 3] > 0.0).pick(self.bounce[k], 0.0)  # it is not closed any more
            closed = closed.max(thrown)
            bounce = self.bounce[k] * closed
            self.bounce[k] = bounce
            other.set(other.value.max((v.abs() > (v.abs() + cone.slow) * cone.fine).pick(closed, 0.0)).max(bounce))
            self.struck[k] = self.struck[k] * closed
            gain = (cone.c[k * 3] + self.least[k] - self.before[k]).abs()
            met.set(met.value.max((self.before[k] < gain * -MEETS).pick(closed, 0.0)))
            self.least[k] = bounce * self.kept[k]
            for i in range(3):
                self.acted[k * 3 + i] = cone.p[k * 3 + i]
                cone.p[k * 3 + i] = (closed > 0.5).pick(cone.p[k * 3 + i], 0.0)
                cone.on[k * 3 + i] = closed
        copy(f, self.along, self.ahead, self.nu)
        self.going.set(other.value)
        self.meeting.set((self.wedged.value > 0.5).pick(0.0, met.value))
        self.met.set(met.value)
        self.phase.set(1)
        self.round.set(0)
        with f.when((self.meeting.value > 0.5).any()):
            self.multiply(self.pushing, self.meeting.value > 0.5)
        with f.when(~(other.value > 0.5).any()):
            self.weigh()

    def part(self) -> None:
        """After a solution for the speeds with which the step ends, without restitution. Its work is negative, that
        with restitution was positive: of impulses in between it is not, since it is convex in them."""
        f, cone = self.f, self.cone
        lost = self.work(cone.p)[0].min(0.0)
        share = f.variable((self.meeting.value > 0.5).pick(lost / (lost - self.made.value.max(1e-300)), 0.0))
        with f.loop(self.count.value * 3) as j:
            cone.p[j] = cone.p[j] + (self.acted[j] - cone.p[j]) * share.value
        self.push(self.ahead)
        self.act()
        self.phase.set(3)

    def depart(self) -> None:
        """The same with restitution: with forces that belong to it, and what it has made."""
        self.act()
        self.iterate(self.ahead, self.meeting.value, self.weigh)

    def weigh(self) -> None:
        """Where contacts that bounce have made energy, the step ends with less restitution; where others have, with
        velocities at q_m: impulses that meet the conditions there cannot make any."""
        f, cone = self.f, self.cone
        up = f.variable(self.bounced_up())
        lifted = f.variable((up.value > 0.5).pick(0.0, self.lifted()))
        self.meeting.set(up.value)
        self.going.set(up.value.max(lifted.value))
        self.phase.set(3)
        with f.when((self.going.value > 0.5).any()):
            self.phase.set(2)
            with f.loop(self.count.value) as k:
                self.least[k] = (self.going.value > 0.5).pick(0.0, self.least[k])
                self.see_middle(k, lifted.value > 0.5)
                for i in range(3):
                    cone.p[k * 3 + i] = self.acted[k * 3 + i]
            self.multiply(self.pushing, self.going.value > 0.5)

    def keep(self) -> None:
        """What the next step is told, if this one is accepted."""
        f, nu, impact = self.f, self.nu, self.f.variable(0.0)
        impulses, u = self.fresh.at(nu * 2), self.y.at(self.nq)

        self.clear_places(impulses)
        self.measure_overlaps()
        with f.loop(self.count.value) as k:
            impact.set(impact.value.max(self.struck[k]))
            for a in range(3):
                impulses[self.slots[k] * 3 + a] = self.acted[k * 3 + a]
        smooth = impact.value < 0.5
        with f.loop(nu) as j:
            self.fresh[j] = smooth.pick(self.moved_alone(self.acted, j) / self.step, 0.0)
            self.fresh[nu + j] = smooth.pick((self.along[j] - u[j]) / self.step, 0.0)

    def told(self) -> Int:
        """Where that begins, of the numbers that go from step to step, which are no guesses."""
        return self.nu * 2 + self.places * 3

    def measure_overlaps(self) -> None:
        """Remember the deepest overlap."""
        f, known, fresh = self.f, self.inherited.at(self.told()), self.fresh.at(self.told())
        for j in range(OVERLAP):
            fresh[j] = known[j]
        time = f.variable(self.begin + self.number.real() * self.step)
        with f.loop(self.count.value) as k:
            i = self.slots[k]
            share = -(self.begun[i * 2] * self.thin[i]) * self.real[k]
            deeper = share > fresh[0] * AGAIN_DEEPER
            for j, value in enumerate((share, i.real(), time.value)):
                fresh[j] = deeper.pick(value, fresh[j])

    def correct(self) -> None:
        super().correct()
        self.make_none(self.number)

    # -- between steps --------------------------------------------------------------------------------
    def accept(self, leave: Callable[[Bool], None]) -> None:
        """Lanes that go on inherit."""
        def stop(ended: Bool) -> None:
            alive = self.active.value > 0.5
            f, n = self.f, self.told() + OVERLAP
            each(f, n, self._inherit, self.active.value)
            residual = self.inherited[n]
            self.inherited[n] = alive.pick(residual.max(self.worst.value), residual)
            leave(ended)

        super().accept(stop)

    def _inherit(self, j: Int, alive: Real) -> None:
        self.inherited[j] = (alive > 0.5).pick(self.fresh[j], self.inherited[j])

    def sample(self, number: Int, every: Int) -> None:
        f = self.f
        with f.when((((number + 1) % every) == 0).integer() * f.count("forces_out") > 0):
            n = self.places * 3
            self.record(number)
            copy(f, self.acting, f.memory("out_forces").at(self.row.value * n), n)
        super().sample(number, every)

    def record(self, number: Int) -> None:
        """What has acted at places, the mean force of the step. Its parts along the normal and across are those that
        were found, with the directions of the state that is put on record: there they meet the laws, too."""
        f = self.f
        self.clear_places(self.acting)
        with f.when(self.count.value > 0):
            now = (1.0, self.y, self.y.at(self.nq))
            self.show(number, now)
            seen = self.seen(START, number, *now)
            with f.loop(self.count.value) as k:
                i = self.slots[k]
                ways = self.turned_frame(k, three_of(seen.at(i * PLACE), 4))
                for b in range(3):
                    force = self.acted[k * 3] * ways[0][b] + self.acted[k * 3 + 1] * ways[1][b] \
                        + self.acted[k * 3 + 2] * ways[2][b]
                    self.acting[i * 3 + b] = (self.real[k] > 0.5).pick(force / self.step, 0.0)


def contact_steps(f: Builder) -> None:
    """The driver."""
    s = ContactSteps(f)
    s.run(s.one_step, lambda: f.call_all("adding", f.count("n_adding")))
