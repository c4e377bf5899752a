"""Plans for machines with loops: which constraints are independent and which speeds depend on which, made where the
machine is."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, flat, leading
from bellcrank.errors import (
    AssemblyError,
    BellcrankError,
    BellcrankWarning,
    DrawingWarning,
    ModelError,
    SingularError,
    outside,
)
from bellcrank.formulations import method_module
from bellcrank.loops.closer import Closer, Target, project
from bellcrank.loops.constraint_kinematics import LoopKinematics
from bellcrank.loops.drawing_tolerance import Drawing, check_drawing, drawing_text
from bellcrank.loops.first_closed import first_closed
from bellcrank.loops.loop_paths import loop_joints
from bellcrank.loops.near_closer import NearCloser
from bellcrank.loops.null_space import null_space
from bellcrank.loops.plan import LoopPlan, make_plan
from bellcrank.loops.tolerances import CLOSED, OPEN, RANK_DAMPED, WARNED
from bellcrank.system.kernels import NO_DOORS, DoorPair, DoorTable
from bellcrank.system.loop_errors import loop_rows
from bellcrank.system.usual_cut import usual_plans
from bellcrank.target.backend import DoorForm

if TYPE_CHECKING:
    from bellcrank.system.evaluator import Evaluator
    from bellcrank.system.kernels import Kernels

__all__ = ["LoopPlans", "Reference"]

#: machines with more speeds are not looked at as a whole
_FEW = 300
#: a compliance that has shrunk to this part of what it is in general, or less, is no constraint: rounding of its row is
#: the root of that
_VANISHED = 1e-15
#: what pivots of a plan made elsewhere must exceed, relative to their rows
_SERVES = 0.02
#: and relative to their size where the plan was made
_AS_LARGE = 0.3
#: the least singular value of motions, by unit vectors, that speeds determine
_DETERMINES = 1e-6
#: speeds that are this much slower than the fastest in all motions that loops allow do not move
_STILL = 1e-9
#: compliances are known to this many decades
_DECADES = 6


class _Checked(NamedTuple):
    """What was found of the drawing, and a position near the neutral one that closes within its tolerance, or why
    there is none."""

    drawing: Drawing | None = None
    place: Floats | AssemblyError | None = None


class Reference(NamedTuple):
    """What is known of the loops in general."""

    plan: LoopPlan
    q: Floats  #: the general closed position it comes from
    floors: Floats  #: for every constraint, see `LoopPlan.floors`


class LoopPlans:
    """How the loops of a model are closed and solved: their kinematics, the closer, and the plan for a state.

    A plan depends on the model and on the state it is asked for, never on what was asked before; several threads may
    ask. Of a tree only the kinematics is of use.
    """

    def __init__(self, kernels: Kernels, wanted: Sequence[LoopPlan] = (),
                 found: Reference | AssemblyError | None = None, drawing: _Checked | None = None) -> None:
        self.kernels, self.model, self.tree = kernels, kernels.model, kernels.tree
        self._wanted = tuple(wanted)  # plans of the same loops that are taken if they serve: there is code for them
        self.configuration = kernels.model.configuration
        self._lock = threading.RLock()
        self._found = found  # the reference, or why there is none
        self._checked = drawing  # what is known of the drawing
        self._last: tuple[Any, Reference] | None = None  # a reference made elsewhere, and where
        self._closed: tuple[Floats, float] | None = None  # a position that closes, for questions without a state
        self._driven: dict[tuple[int, ...], LoopPlan] = {}  # plans for drives at other speeds
        self._shown: dict[Any, tuple[int, ...]] = {}  # independent speeds asked for, by plan
        self.variants: dict[tuple[str, ...], LoopPlans] = {}  #: those of `force_terms`, by the forces that act
        self.usual: dict[bool, LoopPlans | None] = {}  #: see `usual_plans`

    def __reduce__(self) -> Any:
        return _restored, (self.kernels, self._closed, self._wanted)

    def alike(self, kernels: Kernels) -> LoopPlans:
        """Plans of a machine with the same loops and other inertia or forces: its reference is this one, so that it is
        made once."""
        if self.tree.looped:
            with suppress(AssemblyError):
                self.reference()
        made = LoopPlans(kernels, self._wanted, self._found, self._checked)
        if self._closed is not None:
            made.remember(*self._closed)
        return made

    # -- kinematics -----------------------------------------------------------------------------
    @cached_property
    def drawn(self) -> LoopKinematics:
        """Positions and motions of links, and all constraints of the loops, on arrays."""
        return LoopKinematics(self.tree, lambda name, given, t: self.kernels.run(name, given, None, t),
                              self.model.values_of, lambda name: self.kernels.compiled(name) is not None,
                              self.kernels.doors)

    @cached_property
    def loops(self) -> LoopKinematics:
        """The same without constraints that are dropped: what everything computes with."""
        return self.drawn.restricted(self._rows_in_use)

    @property
    def drawing(self) -> Drawing | None:
        """Redundant constraints that contradict others within the tolerance of the drawing, found near the neutral
        position once; None if there are none, or the loops do not close there. It depends on the model alone."""
        return self._known.drawing

    @property
    def _known(self) -> _Checked:
        if self._checked is None:
            with self._lock:
                if self._checked is None:
                    self._checked = _Checked(self.plain.drawing) if self.model.batched else self._check_drawing()
        return self._checked

    def _check_drawing(self) -> _Checked:
        tolerance = self.model.options.drawing_tolerance
        if not self.tree.looped or not tolerance:
            return _Checked()
        space = self.configuration
        plain, close = (Closer(self.drawn, space.moved, space.normalize, space.difference, rank=rank)
                        for rank in (RANK_DAMPED, tolerance))
        try:
            q = self._closed_near(plain, self._start, 0.0, tolerance)
        except AssemblyError as error:
            return _Checked(None, error)
        made = check_drawing(close, q, 0.0, self.model.bound_mask(), space.usual, tolerance)
        if made is not None and made.error > WARNED:
            warnings.warn(f"{self.tree.name!r}: {drawing_text(self.drawn, made)}; give them more digits",
                          DrawingWarning, stacklevel=outside())
        return _Checked(made, q)

    def _rows_in_use(self) -> npt.NDArray[np.bool_] | None:
        drawing = self.drawing
        return None if drawing is None else drawing.used

    @cached_property
    def doors(self) -> Mapping[str, DoorPair]:
        """The cheapest calls of functions that close loops."""
        kernels, run = self.kernels, self._in_use
        return kernels.doors if run is None else DoorTable(lambda name: kernels.door_pair(name, DoorForm(), run))

    @cached_property
    def _in_use(self) -> Evaluator | None:
        """What evaluates these where constraints are dropped."""
        mask = self._rows_in_use()
        if mask is None:
            return None
        dropped = tuple(np.flatnonzero(~mask).tolist())
        return self.kernels.of_tree(("dropped", dropped), lambda: replace(self.tree, dropped=dropped))

    @cached_property
    def closer(self) -> Closer:
        """Finds positions in which the loops are closed."""
        space = self.configuration
        return Closer(self.loops, space.moved, space.normalize, space.difference, self._near_closer())

    @cached_property
    def quick(self) -> bool:
        """Whether nearly closed states may go straight to compiled code."""
        return self.tree.looped and self.closer.near is not None and self.doors["projected"] is not NO_DOORS

    def _near_closer(self) -> NearCloser | None:
        """Closes positions from nearby by compiled steps, where machines are small enough and all closing joints have
        coordinates to look at."""
        space = self.configuration
        try:
            if not self.tree.looped or self.kernels.compiled("nearest_step") is None:
                return None
        except ModelError:
            return None
        bound = np.isin(np.arange(self.tree.nu), self.loops.all_vars)
        values = self.kernels.parameter_array() if self.model.batched else None
        return NearCloser(self._attempt, space.moved, space.normalize, space.difference, bound, self.tree.speed_sizes,
                          self.tree.coordinate_sizes, values)

    def _attempt(self, name: str, given: Mapping[str, Floats], t: npt.ArrayLike) -> Floats:
        """A function at states (n, ...), results not finite where there are none."""
        found: Floats | None = None if "parameters" in given else self.doors[name](*given.values())
        return self.kernels.evaluate(name, given, None, t, self._in_use).out if found is None else found

    @cached_property
    def turning(self) -> npt.NDArray[np.bool_]:
        """Speeds of angles that whole turns do not change: not of screws, and not of couplers, which count turns."""
        out = np.array([kind.nq == kind.nu and kind.within_a_turn(i) for kind in (
            record.joint for record in self.configuration.records) for i in range(kind.nu)], dtype=bool)
        out[self.loops.relation_var] = False
        return out

    def need_loops(self, what: str) -> None:
        """Refuse a tree."""
        if not self.tree.looped:
            raise ModelError(f"{what}: {self.tree.name!r} is a tree: it has no loops")

    def closed_near(self, start: Floats, t: float) -> Floats:
        """Some closed position near a start, the first that is found: plans are made there."""
        return self._closed_near(self.closer, start, t) if self.tree.looped else self.configuration.normalize(start)

    def _closed_near(self, close: Closer, start: Floats, t: float, tolerance: float = 0.0) -> Floats:
        """The same by a closer, to within the tolerance of a drawing."""
        return first_closed(close, start, t, self.model.bound_mask(), self.configuration.usual, self.tree.name,
                            tolerance)

    # -- what is known in general ---------------------------------------------------------------
    def reference(self) -> Reference:
        """What is known of the loops from a general closed position near the neutral one, made once; AssemblyError if
        they do not close there. It depends on the model alone."""
        with self._lock:
            if self._found is None:
                try:
                    self._found = self.plain.reference() if self.model.batched else \
                        self._make_reference(self._first_position(), 0.0)
                except AssemblyError as error:
                    self._found = error
        if isinstance(self._found, AssemblyError):
            raise AssemblyError(str(self._found), self._found.joint)
        return self._found

    def reference_near(self, q: Floats, t: float) -> Reference:
        """The reference, or where the machine does not close near its neutral position, one made from the closed
        position q. Cost: some 30 ms for the latter, unless it is the last one asked for."""
        try:
            return self.reference()
        except AssemblyError:
            if float(np.abs(self.closer.residual(q, t)).max(initial=0.0)) > OPEN:
                raise
        if self.model.batched:
            return self.plain.reference_near(q, t)
        key, last = (q.tobytes(), t), self._last
        if last is None or last[0] != key:
            last = key, self._make_reference(q, t)
            self._last = last  # at once: other threads may be here
        return last[1]

    def any_reference(self) -> Reference:
        """The reference. Where there is none, that of a position which is known to close: good for questions about the
        machine, not for computing at a state (see `reference_near`)."""
        try:
            return self.reference()
        except AssemblyError:
            if self._closed is None:
                raise
            return self.reference_near(*self._closed)

    def general(self) -> LoopPlan:
        """Which constraints are independent and which speeds depend on which, in general: for questions without a
        state."""
        return self.any_reference().plan

    def remember(self, q: Floats, t: float) -> None:
        """Keep a closed position: questions about the machine can be answered there, if nowhere else."""
        if self._closed is None:
            self._closed = q.copy(), t

    def _first_position(self) -> Floats:
        """The closed position that is found first near the neutral one."""
        place = self._known.place
        if isinstance(place, AssemblyError):
            raise AssemblyError(str(place), place.joint)
        return self.closed_near(self._start if place is None else place, 0.0)

    @property
    def _start(self) -> Floats:
        near = self.model.near
        return self.configuration.neutral() if near is None else near

    @cached_property
    def plain(self) -> LoopPlans:
        """The same machine with the first value of every batch of parameters, or, if that does not close, with their
        default values: plans are made for that."""
        default = {k: self.tree.parameters[k] if np.ndim(v) else v for k, v in self.model.values.items()}
        first = {k: float(np.ravel(v)[0]) if np.size(v) else default[k] for k, v in self.model.values.items()}
        made = LoopPlans(self.kernels.for_model(self.model.with_values(first)))
        if not self.tree.looped or made.closes:
            return made
        other = LoopPlans(self.kernels.for_model(self.model.with_values(default)))
        return other if other.closes else made

    @property
    def closes(self) -> bool:
        """Whether the loops close near the neutral position, as far as that is known."""
        try:
            return not isinstance(self._known.place, AssemblyError)
        except BellcrankError:
            return False

    def samples(self, lead: tuple[int, ...]) -> LoopPlans:
        """The machine with a batch of parameters along one axis: that of all samples of these batch axes."""
        if not self.model.batched or (len(lead) == 1 and all(np.shape(v) in ((), lead) for v in self._values)):
            return self
        return self._with({k: np.broadcast_to(np.asarray(v, dtype=float), lead).reshape(-1)
                           for k, v in self.model.values.items() if np.ndim(v)})

    def of_samples(self, some: npt.NDArray[np.int64]) -> LoopPlans:
        """The same for some of the samples along one axis."""
        if not self.model.batched or (len(some) == max(map(np.size, self._values)) and (np.diff(some) == 1).all()):
            return self
        return self._with({k: np.asarray(v)[some] for k, v in self.model.values.items() if np.ndim(v)})

    def sample(self, index: int) -> LoopPlans:
        """The machine with the values of one sample."""
        if not self.model.batched:
            return self
        values = {k: float(v[index]) for k, v in self.model.values.items() if np.ndim(v)}
        return LoopPlans(self.kernels.for_model(self.model.with_values(values)), self._wanted, None,
                         _Checked() if self._all_kept else None)

    @property
    def _values(self) -> list[npt.ArrayLike]:
        return list(self.model.values.values())

    def _with(self, values: Mapping[str, Floats]) -> LoopPlans:
        made = LoopPlans(self.kernels.for_model(self.model.with_values(values)), self._wanted)
        made.plain = self.plain  # plans are made for the same values
        return made

    @cached_property
    def _all_kept(self) -> bool:
        """Whether no constraint says the same as others: then samples need not be looked at for drawings that
        contradict themselves."""
        try:
            return self.drawing is None and len(self.reference().plan.kept) == self.loops.m
        except AssemblyError:
            return False

    # -- plans ----------------------------------------------------------------------------------
    def first(self, q: npt.ArrayLike, t: npt.ArrayLike) -> LoopPlan:
        """The plan to try first: the reference. A machine that does not close near its neutral position may do so in
        the (first) state given."""
        if isinstance(self._found, Reference):
            return self._found.plan
        nq = self.tree.nq
        place = flat("q", q, nq, "the coordinates")
        lead = leading([place, np.empty((*self.model.parameter_axes, 0))])
        place = np.broadcast_to(place, (*lead, nq)).reshape(-1, nq)
        index = int(np.argmax(np.isfinite(place).all(axis=-1))) if len(place) else 0
        place = place[index:index + 1]
        if not len(place) or not np.isfinite(place).all():
            try:
                return self.reference().plan
            except AssemblyError:
                if len(place):
                    raise
                return self._make_plan(self.loops, self._start, 0.0)  # nothing is computed with it
        when = float(np.ravel(np.asarray(t, dtype=float))[0])
        try:
            return self.reference_near(place[0], when).plan
        except AssemblyError:
            if not self.model.batched:
                raise
        return self.samples(lead).sample(index).reference_near(place[0], when).plan

    def at(self, q: Floats, t: float, wishes: bool = True) -> LoopPlan:
        """A plan for one position; raises if the machine is singular there. Without `wishes` the speeds asked to be
        independent are like all others."""
        if self.model.batched:
            return self.plain.at(q, t, wishes)
        reference = self.reference_near(q, t)
        plan = self._make_plan(self.loops, q, t, self._preferred if wishes else None)
        if len(plan.kept) < len(reference.plan.kept):
            raise self._singular(reference.plan, plan)
        return self._finished(plan, reference.floors)

    def shown(self, q: npt.ArrayLike, t: npt.ArrayLike) -> tuple[int, ...]:
        """Independent speeds as users see them, which do not depend on where loops are cut: those asked for, completed
        by those of the machine cut as usual. The plan to try first solves loop by loop, and may have others."""
        plan = self.first(q, t)
        if plan.slipping or self._as_described:
            return plan.independent
        asked = np.flatnonzero(self._asked).tolist()
        if set(plan.independent) <= set(asked):
            return plan.independent
        if self.model.batched:
            return self.plain.shown(self.reference().q, t)
        with self._lock:
            if plan.key not in self._shown:
                try:
                    self._shown[plan.key] = self._completed(plan, asked)
                except AssemblyError:  # plans are made where the states are
                    return plan.independent
            return self._shown[plan.key]

    @cached_property
    def _as_described(self) -> bool:
        """Whether nobody had a say in how the loops are taken apart."""
        return not self.model.options.chosen and self._make_plan is make_plan

    def _usual(self) -> Sequence[int]:
        """The independent speeds of the machine cut as usual."""
        other = usual_plans(self, alike=False) or self
        try:
            found = other.reference()
        except AssemblyError:
            return ()
        return make_plan(other.loops, found.q, 0.0, other._preferred).independent

    def _completed(self, plan: LoopPlan, asked: Sequence[int]) -> tuple[int, ...]:
        """As many of the speeds asked for as determine different motions at the reference, and others of a plan."""
        reference, free = self.any_reference(), self.tree.free_speeds()
        jacobian = self.loops.dense(self.loops.linearized(reference.q, 0.0)[1])[:, free]
        _, basis, kept = null_space(jacobian, self.loops.row_sizes, self.tree.speed_sizes[free])
        rows = np.zeros((self.tree.nu, int((~kept).sum())))
        rows[free] = basis[:, ~kept]
        if self.tree.loop_joints:
            rows += loop_rows(self, reference.q) @ rows
        lengths = np.linalg.norm(rows / self.tree.speed_sizes[:, None], axis=1)
        still = lengths < _STILL * lengths.max(initial=0.0)
        motions = np.where(still[:, None], 0.0, rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))
        chosen: list[int] = []
        for v in (*asked, *self._usual(), *plan.independent):
            some = np.array([motions[w] for w in (*chosen, v)])
            if v not in chosen and len(some) <= some.shape[1] and \
                    np.linalg.svd(some, compute_uv=False)[-1] > _DETERMINES:
                chosen.append(v)
        left = [self.configuration.speed_names[v] for v in asked if v not in chosen]
        if len(chosen) != len(plan.independent):
            return plan.independent
        if left and len(asked) <= len(chosen):
            warnings.warn(f"{self.tree.name!r}: {', '.join(left)} cannot be independent besides the other speeds asked "
                          f"for, which determine them; {', '.join(self.configuration.speed_names[v] for v in chosen)} "
                          "are independent", BellcrankWarning, stacklevel=outside())
        return tuple(sorted(chosen))

    def driven_at(self, speeds: tuple[int, ...]) -> LoopPlan:
        """A plan whose independent speeds are among these, wherever that is possible: the reference, or one made at
        the same position. It depends on the model and the speeds alone; AssemblyError if there is no reference."""
        if self.model.batched:
            return self.plain.driven_at(speeds)
        reference = self.reference()
        if set(reference.plan.independent) <= set(speeds):
            return reference.plan
        with self._lock:
            if speeds not in self._driven:
                wished = np.isin(np.arange(self.tree.nu), speeds)
                made = self._make_plan(self.loops, reference.q, 0.0, wished)
                self._driven[speeds] = self._finished(made, reference.floors)
            return self._driven[speeds]

    @property
    def _make_plan(self) -> Callable[..., LoopPlan]:
        """What makes a plan at a position: a formulation may have its own way to take machines apart."""
        own: Callable[..., LoopPlan] = getattr(method_module(self.model.method), "make_plan", make_plan)
        return own

    @cached_property
    def _preferred(self) -> npt.NDArray[np.bool_]:
        out = np.zeros(self.tree.nu, dtype=bool)
        held = self._grasped()
        if held:
            out[:] = True
            out[held] = False
        return out | self._asked

    @cached_property
    def _asked(self) -> npt.NDArray[np.bool_]:
        """Speeds that the user wants independent."""
        out = np.zeros(self.tree.nu, dtype=bool)
        for joint in self.model.options.independent:
            out[self.configuration.speed_entries(joint)] = True
        return out & ~self.model.prescribed_mask()

    def _grasped(self) -> list[int]:
        """Speeds of free bodies that joints hold which may open. A grip determines them wherever it closes, so that one
        plan serves for all poses."""
        tree, free = self.tree, self.model.mechanism.open_at_start
        ends = {link for c in tree.closures if c.name in free for link in (c.first, c.second) if link}
        found: list[int] = []
        for link in sorted(ends):
            joint = tree.joints[link]
            if joint is not None and joint.nu == 6 and not tree.parent[link]:
                found += range(int(tree.u_start[link]), int(tree.u_start[link]) + 6)
        return found

    def _make_reference(self, q: Floats, t: float) -> Reference:
        """Plan near a closed position, away from what is special about it."""
        held, nu = self.model.bound_mask(), self.tree.nu
        general = self.general_position(q, t)
        best = self._make_plan(self.loops, general, t, self._preferred)
        floors = np.zeros(self.loops.m)
        for plan in self._wanted:
            if self._serves(plan, best, general, t):
                return Reference(plan, general, floors)
        if nu <= _FEW:
            free = np.flatnonzero(~held)
            # not worth compiling for one state
            rows = self.kernels.by_formulation("mass_matrix", {"q": general}, t, self.kernels.evaluator.tree)
            matrix = rows.reshape(nu, nu)[np.ix_(free, free)]
            jacobian = self.loops.dense(self.loops.linearized(general, t)[1])[:, free]
            self._check_resistance(matrix, jacobian, free)
            floors = _floors(matrix, jacobian, (self.loops.row_sizes / self.tree.length)**2)
            refine = getattr(method_module(self.model.method), "refine_plan", None)
            if refine is not None:
                best = refine(self.tree, best, matrix, jacobian, free.tolist())
        return Reference(self._finished(best, floors), general, floors)

    def _serves(self, plan: LoopPlan, best: LoopPlan, q: Floats, t: float) -> bool:
        """Whether a plan keeps as many constraints as the best at a position, and its pivots are no worse than those
        that a new plan might have."""
        if len(plan.kept) != len(best.kept):
            return False
        loops = self.loops
        jacobian = loops.dense(loops.linearized(q, t)[1]) * loops.tree.speed_sizes / loops.row_sizes[:, None]
        for group in plan.groups:
            rows, units = jacobian[list(group.rows)], loops.tree.speed_sizes[list(group.dependent)] / loops.row_sizes[
                list(group.rows)]
            sizes = np.abs(rows).max(axis=1, initial=0.0)
            for i, v in enumerate(group.dependent):
                if abs(rows[i, v]) <= max(_SERVES * sizes[i], _AS_LARGE * group.sizes[i] * units[i]):
                    return False
                rows[i + 1:] -= np.outer(rows[i + 1:, v] / rows[i, v], rows[i])
        return True

    def general_position(self, q: Floats, t: float) -> Floats:
        """A closed position some way off another."""
        nu, usual, held = self.tree.nu, self.configuration.usual, self.model.bound_mask()
        links, target = ~self.tree.loop_speeds(), Target(held, 1.0 / usual)
        random = np.zeros(nu)  # loop joints follow: they change nothing in what is drawn
        random[links] = np.random.default_rng(0).normal(size=int(links.sum())) * usual[links]
        wish, _ = project(self.loops, q, np.where(held, 0.0, random), target, t)
        if self.tree.rheonomic:  # what laws of time cause is no freedom
            wish = wish - project(self.loops, q, np.zeros(nu), target, t)[0]
        largest = float(np.abs(wish / usual)[links].max(initial=0.0))
        for step in (0.3, 0.1) if largest > 1e-9 else ():
            moved = self.configuration.integrate(q, wish * (step / largest))
            found, size = self.closer.close(moved, target, t)
            if size < CLOSED:
                return found
        return q

    def _finished(self, plan: LoopPlan, floors: Floats) -> LoopPlan:
        """A plan with what does not depend on where it was made."""
        return replace(plan, baumgarte=self.model.options.baumgarte, floors=tuple(floors[list(plan.kept)].tolist()))

    # -- errors ---------------------------------------------------------------------------------
    def _check_resistance(self, matrix: Floats, jacobian: Floats, free: npt.NDArray[np.int64]) -> None:
        """Refuse motions that nothing resists, by M and J of the free speeds: their acceleration would be infinite."""
        moving = ~self.tree.state_speeds()[free]
        matrix, jacobian, free = matrix[np.ix_(moving, moving)], jacobian[:, moving], free[moving]
        _, basis, kept = null_space(jacobian, self.loops.row_sizes, self.tree.speed_sizes[free])
        basis = basis[:, ~kept]
        if not basis.shape[1]:
            return
        scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))  # angles and lengths alike
        values, vectors = np.linalg.eigh(basis.T @ matrix @ basis)
        size = (basis / np.maximum(scale[:, None], 1e-300)).T @ (basis / np.maximum(scale[:, None], 1e-300))
        if values[0] <= 1e-12 * max(float(np.linalg.eigvalsh(size)[-1]), 1e-300):
            motion = np.abs(basis @ vectors[:, 0])
            joint = self.configuration.speed_names[int(free[int(np.argmax(motion))])]
            raise ModelError(f"{self.tree.name!r}: nothing resists a motion of {joint} that its loops allow (a body "
                             "without inertia about that axis); give the bodies it moves an inertia")

    def _singular(self, general: LoopPlan, plan: LoopPlan) -> SingularError:
        """An error for a position at which fewer constraints are independent than in general."""
        loops = self.loops
        lost, rank = set(general.kept) - set(plan.kept), len(general.kept)
        names = sorted({loops.closure_of_row[r] for r in lost if r < loops.m_closures})
        joints = sorted({j for k in names for j in loop_joints(self.tree, k)})
        ways = len(self.tree.free_speeds()) - rank
        return SingularError(
            f"{self.tree.name!r} is in a singular position: {rank - len(plan.kept)} of its {rank} independent "
            f"constraints depend on the others there, so that it may move in more than {ways} ways; the loops "
            f"involved are those of {', '.join(joints[:12])}")


def _restored(kernels: Kernels, closed: tuple[Floats, float] | None, wanted: Sequence[LoopPlan]) -> LoopPlans:
    """What was pickled: plans are made again, and are the same."""
    made = LoopPlans(kernels, wanted)
    if closed is not None:
        made.remember(*closed)
    return made


def _floors(matrix: Floats, jacobian: Floats, units: Floats) -> Floats:
    """Below which compliances of constraints (the diagonal of J M^-1 J^T) nothing is left of them but rounding, by
    their sizes at a general position. Coarse, so that other parameters seldom need other code. `units` [m^2 or 1] makes
    them compliances of lengths [1/kg], which are the same in every unit of length."""
    try:
        sizes = np.einsum("ij,ji->i", jacobian, np.linalg.solve(matrix, jacobian.T))
    except np.linalg.LinAlgError:  # links without mass, which the multiplier methods refuse
        return np.zeros(len(jacobian))
    with np.errstate(divide="ignore"):
        decades = np.floor(np.log10(np.maximum(sizes / units, 0.0)) / _DECADES) * _DECADES
    return np.where(sizes > 0.0, _VANISHED * units * 10.0**np.maximum(decades, -300.0), 0.0)
