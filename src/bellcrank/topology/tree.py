"""The immutable, numeric tree that the formulations sweep over.

A *link* is one body with everything welded to it; links are numbered 1..n with parents first, 0 is the
ground. All numbers are expressed in *link frames*, chosen here to save operations (see `link_frames`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import NotYetError
from bellcrank.mechanism.flexible.deformation import Modal, NodeMotion
from bellcrank.mechanism.forces import Actuator, MachineForce
from bellcrank.mechanism.forces.element import Along
from bellcrank.mechanism.joints import Joint, Weld
from bellcrank.mechanism.machine_sizes import coordinate_sizes, power_of_two, speed_sizes
from bellcrank.mechanism.motion import Part, Prescribed
from bellcrank.mechanism.parts import Frame
from bellcrank.mechanism.turns import has_parameter
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.spatial import General, Matrix3, RigidInertia, Transform, Vector
from bellcrank.topology.contact_pairs import ContactPair
from bellcrank.topology.pairs import Pair, SumForce, WrenchPair

__all__ = ["ABOUT_X", "GENERAL", "IDENTITY", "Applied", "Closure", "LinkNumbers", "LinkStep", "LoopJoint",
           "Relation", "Tree", "laws_between_links", "sees_machine", "wrench_order"]

Ints = npt.NDArray[np.int64]

#: trees of up to this many links keep their constants as objects, too
_SMALL = 300

#: structure of a placement's rotation
IDENTITY, ABOUT_X, GENERAL = 0, 1, 2


class LinkNumbers(NamedTuple):
    """The constants of one link. Entries are floats or expressions of parameters."""

    placement: Transform  #: pose of the inboard joint in the parent link's frame
    joint: tuple[Number, ...]  #: the joint's own constants
    inertia: RigidInertia  #: about the link frame's origin
    origins: tuple[Vector, ...]  #: origins of the link's bodies in the link frame


class Applied(NamedTuple):
    """A wrench that always acts on a link, at `at` in link coordinates; entries may be functions of time."""

    moment: tuple[Number, ...]
    force: tuple[Number, ...]
    at: Vector
    #: None for world axes, else the body's axes in the link frame
    axes: Transform | None
    name: str = ""


class Closure(NamedTuple):
    """A joint or constraint that closes a loop between two links."""

    name: str
    kind: Joint | Any  #: what knows its ``closure_rows`` and ``constants``
    first: int  #: link of its parent side
    second: int
    #: the joint's canonical frame on each link
    first_turn: Floats
    first_shift: tuple[Number, ...]
    second_turn: Floats
    second_shift: tuple[Number, ...]
    rows: int
    is_joint: bool
    #: axes on each link by rows, nine numbers, where they are parameters; the turn is then not a number
    first_axes: tuple[Number, ...] = ()
    second_axes: tuple[Number, ...] = ()
    free: Closure | None = None  #: as it was before it was held: its coordinates are still measured

    @property
    def turns(self) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
        """The axes of both frames by rows, nine numbers or parameters each."""
        first, second = (axes or tuple(turn.ravel().tolist()) for axes, turn in (
            (self.first_axes, self.first_turn), (self.second_axes, self.second_turn)))
        return first, second

    @property
    def nonholonomic(self) -> int:
        """How many of its rows, the last ones, bind speeds and no position."""
        return int(getattr(self.kind, "nonholonomic", 0))

    @property
    def timed(self) -> bool:
        """Whether a number of it is a function of time."""
        return any(callable(x) for x in self.kind.constants())

    def with_numbers(self, **numbers: Any) -> Closure:
        """The same with other shifts or axes."""
        return self._replace(**numbers)

    def holding(self, kind: Joint, conditions: int) -> Closure:
        """The same with another kind of joint, which holds some of its coordinates by as many conditions more."""
        return self._replace(kind=kind, rows=self.rows + conditions, free=self.free or self)

    def welded(self, axes: tuple[Number, ...], shift: tuple[Number, ...]) -> Closure:
        """The same links held together, with this joint frame on the first: axes by rows, and origin."""
        turn = np.full((3, 3), np.nan) if has_parameter(axes) else np.reshape(axes, (3, 3))
        return self._replace(kind=Weld(), first_turn=turn, first_shift=shift,
                             first_axes=axes if has_parameter(axes) else (), rows=6, free=self)


class LoopJoint(NamedTuple):
    """A joint that closes a loop: its coordinates follow from its two links. While it is open they stand still."""

    closure: Closure  #: as it is when nothing holds it
    q_start: int
    u_start: int
    open: bool = False  #: it was released

    @property
    def name(self) -> str:
        return self.closure.name

    @property
    def q(self) -> slice:
        """Its entries of q."""
        return slice(self.q_start, self.q_start + self.closure.kind.nq)

    @property
    def u(self) -> slice:
        """Its entries of u, tau and udot."""
        return slice(self.u_start, self.u_start + self.closure.kind.nu)


class Relation(NamedTuple):
    """A coupler: the sum of what the coordinates add, (link, coordinate, factor or function), equals the offset."""

    name: str
    terms: tuple[tuple[int, int, Part], ...]
    offset: Any  #: a number, or a function of time


class LinkStep(NamedTuple):
    """Links that were placed together, and the closures closed when they were."""

    links: tuple[int, ...]
    closures: tuple[int, ...]


@dataclass(frozen=True)
class Tree:
    """Structure and numbers of a tree of links. Arrays have one row per link, ground first (row 0)."""

    name: str
    link_names: tuple[str, ...]
    parent: Ints
    joints: tuple[Joint | None, ...]
    joint_names: tuple[str, ...]
    prescribed: tuple[Prescribed | None, ...]
    q_start: Ints
    u_start: Ints
    nq: int
    nu: int
    #: numbers; see `LinkNumbers`
    placement_kind: Ints
    placement_turn: Floats  #: (n, 9): cos, sin for ABOUT_X, rows for GENERAL
    placement_shift: Floats  #: (n, 3)
    joint_constants: Floats  #: (n, 3)
    inertia: Floats  #: (n, 10): mass, first moments, second moments
    #: links whose numbers depend on parameters
    symbolic: dict[int, LinkNumbers]
    #: bodies: link, and pose of the body frame in the link frame; index 0 is the ground
    body_names: tuple[str, ...]
    body_link: Ints
    body_turn: Floats  #: (nb, 3, 3)
    body_shift: Floats  #: (nb, 3)
    body_shift_symbolic: dict[int, tuple[Number, ...]]
    #: the bodies of each link, as indices; wrench inputs come in this order
    members: tuple[tuple[int, ...], ...]
    #: pose of the ground link's frame in the world
    ground_turn: Floats
    ground_shift: Floats
    gravity: tuple[Number, ...]  #: in world axes
    applied: dict[int, tuple[Applied, ...]]
    parameters: dict[str, float]
    #: what makes it more than a tree: loops, couplers, forces between links that no joint connects
    cut_names: tuple[str, ...] = ()
    cut_reasons: tuple[str, ...] = ()
    closures: tuple[Closure, ...] = ()
    loop_joints: tuple[LoopJoint, ...] = ()  #: joints with coordinates that carry no link
    forced: tuple[str, ...] = ()  #: those along which given forces are elements: see `release.with_given_forces`
    relations: tuple[Relation, ...] = ()
    steps: tuple[LinkStep, ...] = ()
    #: forces along coordinates of tree joints, by link: (coordinate, force)
    joint_forces: dict[int, tuple[tuple[int, Along], ...]] = field(default_factory=dict)
    #: what limits the joint forces tau, by link: (coordinate, actuator)
    actuators: dict[int, tuple[tuple[int, Actuator], ...]] = field(default_factory=dict)
    #: rotor inertias felt at joints, by link: (coordinate, inertia)
    armatures: dict[int, tuple[tuple[int, Number], ...]] = field(default_factory=dict)
    pairs: tuple[Pair | SumForce, ...] = ()
    readable: tuple[Pair | SumForce, ...] = ()  #: more of them, which laws can read and which do not act
    contacts: tuple[ContactPair, ...] = ()  #: rigid ones: no part of the equations of motion
    #: forces along coordinates of tree joints by name
    named_forces: dict[str, SumForce] = field(default_factory=dict)
    #: of joints along which forces act, links of the extended tree: origins of the joint's frames, as described, on its
    #: parent and on its child, each with its link
    joint_ends: dict[int, tuple[tuple[int, tuple[Number, ...]], ...]] = field(default_factory=dict)
    backwards: frozenset[int] = frozenset()  #: links whose joint was given from the outboard body to the inboard one
    frames: dict[str, Frame] = field(default_factory=dict)  #: named places on bodies, for laws
    joint_order: tuple[str, ...] = ()  #: the joints as they were described, but for welds of carriers
    plan: Any = None  #: how loops are taken apart; see `loops.plan`
    length: float = 1.0  #: typical of the machine [m], see `mechanism.sizes`
    dropped: tuple[int, ...] = ()  #: constraints that do not count, ascending; see `loops.drawing_tolerance`

    @cached_property
    def effort(self) -> float:
        """What accelerates the machine by its own size in a second [J]: forces, each times an ordinary change of its
        coordinate, are small beside this."""
        return power_of_two(float(self.inertia[1:, 0].sum())) * self.length**2

    @cached_property
    def speed_sizes(self) -> Floats:
        """An ordinary change of every speed's coordinate, (nu,): see `mechanism.sizes`."""
        out = np.ones(self.nu)
        for joint, start in zip(self.joints, self.u_start.tolist(), strict=True):
            if joint is not None and joint.nu:
                out[start:start + joint.nu] = speed_sizes(joint, self.length)
        for own in self.loop_joints:
            out[own.u] = speed_sizes(own.closure.kind, self.length)
        return out

    @cached_property
    def coordinate_sizes(self) -> Floats:
        """An ordinary change of every coordinate, (nq,)."""
        out = np.ones(self.nq)
        for joint, start in zip(self.joints, self.q_start.tolist(), strict=True):
            if joint is not None and joint.nq:
                out[start:start + joint.nq] = coordinate_sizes(joint, self.length)
        for own in self.loop_joints:
            out[own.q] = coordinate_sizes(own.closure.kind, self.length)
        return out

    @cached_property
    def extended(self) -> Tree:
        """The tree with a link without inertia for every loop joint, carried by the first of the joint's links: for
        what is computed joint by joint, and for their kinematics. The links of the tree keep their numbers."""
        new = self.loop_joints
        if not new:
            return self
        sides = [own.closure for own in new]
        turn = np.stack([c.first_turn.ravel() for c in sides])
        plain = np.array([[0.0 if type(x) is Scalar else x for x in c.first_shift] for c in sides])
        width = max(self.joint_constants.shape[1], *(len(c.kind.constants()) for c in sides))
        constants = np.zeros((self.n + 1 + len(new), width))
        constants[:self.n + 1, :self.joint_constants.shape[1]] = self.joint_constants
        symbolic = dict(self.symbolic)
        for i, c in enumerate(sides, self.n + 1):
            own = c.kind.constants()
            if has_parameter((*c.first_axes, *c.first_shift, *own)):
                rows = [Vector(*c.turns[0][k:k + 3]) for k in (0, 3, 6)]
                symbolic[i] = LinkNumbers(Transform(General(Matrix3(*rows)), Vector(*c.first_shift)), tuple(own),
                                          RigidInertia.zero(), ())
            else:
                constants[i, :len(own)] = own
        return replace(
            self, loop_joints=(), link_names=(*self.link_names, *(c.name for c in sides)),
            parent=np.concatenate([self.parent, [c.first for c in sides]]),
            joints=(*self.joints, *(c.kind for c in sides)),
            joint_names=(*self.joint_names, *(c.name for c in sides)),
            prescribed=(*self.prescribed, *(None for _ in new)),
            q_start=np.concatenate([self.q_start, [own.q_start for own in new]]),
            u_start=np.concatenate([self.u_start, [own.u_start for own in new]]),
            placement_kind=np.concatenate([self.placement_kind, [GENERAL] * len(new)]),
            placement_turn=np.concatenate([self.placement_turn, turn]),
            placement_shift=np.concatenate([self.placement_shift, plain]), joint_constants=constants,
            inertia=np.concatenate([self.inertia, np.zeros((len(new), 10))]), symbolic=symbolic,
            members=(*self.members, *(() for _ in new)))

    @cached_property
    def joint_links(self) -> dict[str, int]:
        """The links of all joints with coordinates by name; loop joints are links of the extended tree."""
        return {name: link for link, name in enumerate(self.extended.joint_names) if link}

    @cached_property
    def loaded_names(self) -> tuple[str, ...]:
        """What exerts reactions: joints in the order of the description, wherever loops are cut; then constraints."""
        here = {*self.joint_names[1:], *(c.name for c in self.closures)}
        return (*(name for name in self.joint_order if name in here),
                *(c.name for c in self.closures if not c.is_joint))

    def loop_joint(self, link: int) -> LoopJoint | None:
        """The loop joint that is a link of the extended tree; None for links of the tree."""
        return self.loop_joints[link - self.n - 1] if link > self.n else None

    @property
    def loop_joint_names(self) -> tuple[str, ...]:
        """Joints with coordinates that carry no link: they close loops, or would if `release` had not opened them."""
        return tuple(own.name for own in self.loop_joints)

    def along_loops(self, pair: Pair | SumForce) -> TypeGuard[SumForce]:
        """Whether an element acts along a loop joint."""
        return isinstance(pair, SumForce) and any(link > self.n for link, _, _ in pair.terms)

    @property
    def looped(self) -> bool:
        """Whether speeds are bound by anything but the tree's joints."""
        return bool(self.closures or self.relations)

    def refuse_flexible(self, what: str) -> None:
        """Say which body deforms to those who do not cover it."""
        if self.flexible:
            raise NotYetError(f"{what} does not cover bodies that deform, such as "
                              f"{self.joint_names[self.flexible[0]]!r} of {self.name!r}")

    @cached_property
    def flexible(self) -> tuple[int, ...]:
        """The links whose coordinates are modal ones."""
        return tuple(link for link, joint in enumerate(self.joints) if isinstance(joint, Modal))

    @cached_property
    def modes(self) -> int:
        """The most modes that a body has."""
        return max((joint.nu for joint in self.joints if isinstance(joint, Modal)), default=0)

    def movers(self, link: int) -> range:
        """The speeds that move a link relative to its parent: its own, or for a node those of its body's modes."""
        joint, start = self.joints[link], int(self.u_start[link])
        if isinstance(joint, NodeMotion):
            return range(start, start + joint.body.size)
        return range(start, start + (0 if joint is None or isinstance(joint, Modal) else joint.nu))

    @cached_property
    def weighed(self) -> bool:
        """Whether gravity acts on some body otherwise than an acceleration of the ground would."""
        return any(isinstance(j, Modal) and not j.inertia.material for j in self.joints)

    @property
    def whole(self) -> bool:
        """Whether steps need to see the machine as a whole: forces of finite-element masses depend on how a group of
        links moves in the world."""
        return self.weighed and self.looped

    @property
    def timed(self) -> bool:
        """Whether anything is given as a function of time."""
        return any(p is not None for p in self.prescribed) or any(
            callable(x) for several in self.applied.values() for w in several for x in (*w.moment, *w.force)) or any(
            pair.timed for pair in (*self.pairs, *self.readable)) or any(
            along.timed for several in self.joint_forces.values() for _, along in several) or self.driven_closures

    def on_positions(self) -> list[bool]:
        """For every constraint, whether it is one on positions; others bind speeds alone."""
        return [k < c.rows - c.nonholonomic for c in self.closures for k in range(c.rows)] \
            + [True] * len(self.relations)

    @cached_property
    def sees_machine(self) -> bool:
        """Whether there are laws of the whole machine."""
        return any(sees_machine(pair) for pair in self.pairs) or any(
            isinstance(along, MachineForce) for several in self.joint_forces.values() for _, along in several)

    @cached_property
    def driven_closures(self) -> bool:
        """Whether a closure or a coupler follows a law of time."""
        return any(c.timed for c in self.closures) or any(callable(r.offset) for r in self.relations)

    @cached_property
    def rheonomic(self) -> bool:
        """Whether laws of time move anything: then speeds of zero may open loops."""
        return any(p is not None for p in self.prescribed) or self.driven_closures

    @property
    def n(self) -> int:
        """Number of moving links."""
        return len(self.parent) - 1

    def free_speeds(self) -> list[int]:
        """Indices of the speeds that are not prescribed, without those of loop joints."""
        return [int(i) for i in np.flatnonzero(~(self.prescribed_speeds() | self.loop_speeds()))]

    def loop_speeds(self) -> npt.NDArray[np.bool_]:
        """For every speed, whether it is one of a loop joint; read-only."""
        return self._loop_speeds

    @cached_property
    def _loop_speeds(self) -> npt.NDArray[np.bool_]:
        out = np.zeros(self.nu, dtype=bool)
        for own in self.loop_joints:
            out[own.u] = True
        out.setflags(write=False)
        return out

    def prescribed_speeds(self) -> npt.NDArray[np.bool_]:
        """For every speed, whether it is prescribed; a new array."""
        out = np.zeros(self.nu, dtype=bool)
        for link, law in enumerate(self.prescribed):
            if law is not None:
                own, start = self.mask(link), int(self.u_start[link])
                out[start:start + len(own)] = own
        return out

    def state_speeds(self) -> npt.NDArray[np.bool_]:
        """For every speed, whether it is a state of an element, whose rotor has no unit of inertia; a new array."""
        out = np.zeros(self.nu, dtype=bool)
        for joint, start in zip(self.joints, self.u_start.tolist(), strict=True):
            if joint is not None and not joint.counts_energy:
                out[start:start + joint.nu] = True
        return out

    def mask(self, link: int) -> tuple[bool, ...]:
        """For every speed of a link's joint, whether it is prescribed."""
        joint, law = self.joints[link], self.prescribed[link]
        n = 0 if joint is None else joint.nu
        return (False,) * n if law is None else law.mask(n)

    def children(self) -> list[list[int]]:
        """The links carried by each link."""
        found: list[list[int]] = [[] for _ in range(self.n + 1)]
        for link in range(1, self.n + 1):
            found[self.parent[link]].append(link)
        return found

    def numbers(self, link: int) -> LinkNumbers:
        """The constants of one link as spatial objects; those of small trees are kept."""
        found = self.symbolic.get(link) or self._known_numbers.get(link)
        if found is None:
            found = self._unpacked(link)
            if self.n <= _SMALL:
                self._known_numbers[link] = found
        return found

    @cached_property
    def _known_numbers(self) -> dict[int, LinkNumbers]:
        return {}

    def _unpacked(self, link: int) -> LinkNumbers:
        joint = self.joints[link]
        assert joint is not None
        row = self.inertia[link].tolist()
        turn = self.placement_turn[link].tolist()
        return unpack_link(int(self.placement_kind[link]), len(joint.constants()), len(self.members[link]),
                           [*turn[:TURN_ENTRIES[int(self.placement_kind[link])]], *self.placement_shift[link].tolist(),
                            *self.joint_constants[link].tolist()[:len(joint.constants())], *row,
                            *(x for b in self.members[link] for x in self.body_shift[b].tolist())])


#: numbers that describe a placement's rotation, by its structure
TURN_ENTRIES = (0, 2, 9)


def unpack_link(kind: int, constants: int, bodies: int, values: list[Number]) -> LinkNumbers:
    """`LinkNumbers` from a flat list: rotation entries, shift, joint constants, inertia, body origins."""
    from bellcrank.spatial import AboutX, Identity, Rotation, Symmetric3

    feed = iter(values)

    def take(n: int) -> list[Number]:
        return [next(feed) for _ in range(n)]

    turn = take(TURN_ENTRIES[kind])
    rotation: Rotation = (Identity() if kind == IDENTITY else AboutX(*turn) if kind == ABOUT_X else
                          General(Matrix3(Vector(*turn[0:3]), Vector(*turn[3:6]), Vector(*turn[6:9]))))
    placement = Transform(rotation, Vector(*take(3)))
    joint = tuple(take(constants))
    inertia = RigidInertia(take(1)[0], Vector(*take(3)), Symmetric3(*take(6)))
    return LinkNumbers(placement, joint, inertia, tuple(Vector(*take(3)) for _ in range(bodies)))


def sees_machine(pair: Pair | SumForce) -> bool:
    """Whether an element is a law of the whole machine."""
    return isinstance(pair, WrenchPair) or bool(getattr(pair, "bends", ())) or isinstance(
        getattr(pair, "along", None), MachineForce)


def laws_between_links(tree: Tree) -> Tree:
    """The tree with laws of the machine on joints as forces between links: for loops over links, which see one at a
    time. They stay in `named_forces`."""
    kept: dict[int, tuple[tuple[int, Along], ...]] = {}
    pairs: list[Pair | SumForce] = list(tree.pairs)
    for link, several in tree.joint_forces.items():
        plain = tuple((i, along) for i, along in several if not isinstance(along, MachineForce))
        pairs += [SumForce(along.name, ((link, i, 1.0),), along) for i, along in several
                  if isinstance(along, MachineForce)]
        if plain:
            kept[link] = plain
    return replace(tree, joint_forces=kept, pairs=tuple(pairs))


def wrench_order(tree: Tree) -> list[int]:
    """Bodies link by link, as kernels read their wrenches; those that cannot move last."""
    return [b - 1 for members in tree.members[1:] for b in members] + [b - 1 for b in tree.members[0] if b]
