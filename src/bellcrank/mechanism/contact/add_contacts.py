"""The contacts of a `Mechanism`: adding them, and what is there."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from bellcrank.arguments import checked_methods
from bellcrank.errors import BellcrankWarning, ModelError, hint, outside
from bellcrank.mechanism.checks import new_name, number
from bellcrank.mechanism.contact.contact_material import (
    BendRate,
    BristleContact,
    Compliant,
    PlacedContact,
    Unyielding,
    bend_names,
    dissipation_for,
)
from bellcrank.mechanism.contact.narrow_phase import as_box, known_pair, places_of, seen_by_contact, why_unknown
from bellcrank.mechanism.geometry.placed_shape import PlacedShape, ShapedBodies
from bellcrank.mechanism.geometry.solids import Plane
from bellcrank.mechanism.joints.axis_joints import Weld
from bellcrank.mechanism.parts import AddedState, Body, Connection
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.graph import Number, Scalar

__all__ = ["TouchingBodies"]


# -- which shapes may touch as far as files and users say, and with what friction -------------------
@dataclass(frozen=True, slots=True)
class ContactRule:
    """What `Mechanism.add_contacts` does with a pair, two shapes or two bodies by their names: whether it is wanted at
    all, and its friction (None: that of the shapes)."""

    first: str
    second: str
    touch: bool = True
    friction: float | None = None

    @property
    def name(self) -> str:
        """Both names, in the order of the alphabet."""
        return ", ".join(sorted((self.first, self.second)))


def meant_to_touch(one: PlacedShape, other: PlacedShape) -> bool:
    """Whether the groups of two shapes let them touch: what one is must be among what the other touches."""
    return bool(one.groups[0] & other.groups[1] or other.groups[0] & one.groups[1])


def friction_of_pair(one: PlacedShape, other: PlacedShape, larger: bool) -> float | None:
    """The smaller (or larger) friction of two shapes, or that of the one that has some."""
    known = [s.friction for s in (one, other) if s.friction is not None]
    if not known:
        return None
    return max(known) if larger else min(known)


def rigid_groups(bodies: int, joints: Iterable[Connection]) -> list[int]:
    """The number of the first body that each is welded to, itself if none."""
    group = list(range(bodies))

    def root(i: int) -> int:
        while group[i] != i:
            i = group[i]
        return i

    for c in joints:
        if isinstance(c.joint, Weld):
            a, b = sorted((root(c.parent), root(c.child)))
            group[b] = a
    return [root(i) for i in range(bodies)]


def neighboring(groups: list[int], joints: Iterable[Connection], carriers: Collection[int] = ()
                ) -> set[frozenset[int]]:
    """Pairs of bodies that a joint connects, and of groups that move; the ground itself has no neighbors. `carriers`
    are bodies that only carry axes, such as those of a hip with three of them: what they connect is connected."""
    beside: dict[int, set[int]] = {}
    for c in joints:
        if c.parent and c.child:
            beside.setdefault(c.parent, set()).add(c.child)
            beside.setdefault(c.child, set()).add(c.parent)
    found = set()
    for body in beside:
        seen, ahead = {body}, [body]
        while ahead:
            for other in beside[ahead.pop()] - seen:
                seen.add(other)
                found.add(frozenset((body, other)))
                if groups[body] and groups[other]:
                    found.add(frozenset((groups[body], groups[other])))
                if other in carriers:
                    ahead.append(other)
    return found


_EXPONENTS = (1.0, 1.5, 2.0)
#: groups of a shape that touches all that touch anything
_EVERY_GROUP = (2**31 - 1, 2**31 - 1)


@checked_methods
class TouchingBodies(ShapedBodies):
    """Which shapes of a `Mechanism` may touch."""

    name: str
    add_state: Callable[..., AddedState]
    _free: Callable[..., None]
    _states: dict[str, AddedState]

    def __init__(self) -> None:
        super().__init__()
        self._contacts: dict[str, PlacedContact] = {}
        self._contact_rules: dict[str, ContactRule] = {}
        self._larger_friction = False

    @property
    @abstractmethod
    def bodies(self) -> tuple[Body, ...]:
        """All bodies but the ground."""

    @property
    @abstractmethod
    def joints(self) -> tuple[Connection, ...]:
        """All joints."""

    @abstractmethod
    def _check_own(self, what: str, *values: Number) -> None:
        """Numbers that can be computed with, and parameters that are declared here."""

    @property
    def contacts(self) -> tuple[PlacedContact, ...]:
        """All contacts in the order they were added."""
        return tuple(self._contacts.values())

    @property
    def contact_rules(self) -> tuple[ContactRule, ...]:
        """What was said of pairs by `set_contact_rule`, or by the file that the machine was read from."""
        return tuple(self._contact_rules.values())

    @property
    def larger_friction(self) -> bool:
        """Whether contacts take the larger friction of two shapes (so do MJCF files), rather than the smaller one."""
        return self._larger_friction

    @larger_friction.setter
    def larger_friction(self, value: bool) -> None:
        self._larger_friction = bool(value)

    def set_contact_rule(self, first: str, second: str, *, touch: bool = True, friction: float | None = None
                         ) -> ContactRule:
        """Say of a pair of bodies, or of shapes, by their names, whether `add_contacts` shall take it, and with what
        friction. What is said of shapes counts more than what is said of their bodies.

        >>> import bellcrank as bc
        >>> m = bc.load("double_pendulum")
        >>> m.set_contact_rule(m.bodies[0].name, m.bodies[1].name, touch=False).touch
        False
        """
        what = f"contact rule of {first!r} and {second!r}"
        for name in (first, second):
            if name not in self._shapes and not self._is_body(name):
                self._own_shapes(what, name, some=False)  # says what there is
        rule = ContactRule(first, second, bool(touch),
                           None if friction is None else float(number(what, "friction", friction, 0.0)))
        self._contact_rules[rule.name] = rule
        return rule

    def _is_body(self, name: str) -> bool:
        try:
            return bool(self.body(name))
        except ModelError:
            return False

    def _rule(self, one: PlacedShape, other: PlacedShape) -> ContactRule | None:
        if not self._contact_rules:
            return None
        names = ["ground", *(b.name for b in self.bodies)]
        for a, b in ((one.name, other.name), (names[one.body], names[other.body])):
            found = self._contact_rules.get(ContactRule(a, b).name)
            if found is not None:
                return found
        return None

    def _friction(self, one: PlacedShape, other: PlacedShape) -> Number:
        """That of the pair, if nothing is given."""
        rule = self._rule(one, other)
        if rule is not None and rule.friction is not None:
            return rule.friction
        found = friction_of_pair(one, other, self._larger_friction)
        return 0.0 if found is None else found

    def add_contact(self, name: str, first: str | Body | PlacedShape, second: str | Body | PlacedShape, *,
                    stiffness: Number | None = None, dissipation: Number | None = None,
                    restitution: Number | None = None, impact_speed: float = 1.0, friction: Number | None = None,
                    slip_speed: Number = 1e-3, exponent: float = 1.0, friction_model: str = "regularized",
                    reach: Number = 1e-4, bend_damping: Number = 1e-2) -> PlacedContact:
        """Let two shapes touch: each a shape, its name, or a body (the ground, too) with one shape of the role
        "collision".

        With a `stiffness` [N/m^exponent] the contact is compliant, a force of the equations of motion at every place
        where the shapes overlap (a box on a plane has up to four; the stiffness is that of each). `dissipation` [s/m]
        is Hunt and Crossley's; or `restitution`, what is left of the `impact_speed` [m/s] after an impact. `exponent`
        is 1, 1.5 (Hertz) or 2. Coulomb's `friction` is that of sliding (that of the shapes, or none, unless given);
        below about `slip_speed` [m/s] it fades out. With ``friction_model="bristle"`` it truly sticks: bristles bend by
        `reach` [m] before they slide, and damp that with the time constant `bend_damping` [s]; their bends are states,
        two (on planes) or three at every place.

        Without a stiffness the contact is rigid, with Newton's `restitution` (0; at most 1 counts) and Coulomb's
        `friction`; runs need
        ``stepper="moreau"``, and the equations of motion are those with the contact open.

        >>> import bellcrank as bc
        >>> m = bc.Mechanism("ball")
        >>> ball = m.add_body("ball", bc.Inertia(1.0, (0, 0, 0), (0.004, 0.004, 0.004)))
        >>> m.add_joint("free", bc.Free(), m.ground, ball).name
        'free'
        >>> floor = m.add_shape(m.ground, bc.Plane(), role="collision")
        >>> round_shape = m.add_shape(ball, bc.Sphere(0.1), role="collision")
        >>> m.add_contact("bounce", m.ground, ball, stiffness=1e5, restitution=0.8, impact_speed=3.0).rigid
        False
        """
        new_name(self._contacts, name, "contact")
        what = f"contact {name!r}"
        one, other = self._touching(what, first), self._touching(what, second)
        if friction is None:
            friction = self._friction(one, other)
        material = _material(what, stiffness, dissipation, restitution, impact_speed, friction, slip_speed, exponent,
                             friction_model, reach, bend_damping)
        return self._put(self._touching_pair(name, one, other, material))

    def _put(self, made: PlacedContact) -> PlacedContact:
        """Keep a contact, and give it the states of its bristles that are not there yet."""
        self._free_bends(made)
        self._contacts[made.name] = made
        for k, labels in enumerate(made.bends):
            for i, label in enumerate(labels):
                if label not in self._states:
                    self.add_state(label, BendRate(made.name, k, i))
        return made

    def _free_bends(self, made: PlacedContact) -> None:
        """Refuse bristles whose states would be called as something else is."""
        self._free(f"contact {made.name!r}", *(x for labels in made.bends for x in labels if x not in self._states))

    def add_contacts(self, first: str | Iterable[str | Body | PlacedShape] = "all",
                     second: str | Plane | Iterable[str | Body | PlacedShape] = "all", *,
                     exclude: Collection[tuple[str, str]] = (), neighbors: bool = False, **material: Any
                     ) -> tuple[PlacedContact, ...]:
        """Let all shapes of one set touch those of another: bodies, shapes, or "all" (the ground included), each with
        its shapes of the role "collision". A `bc.Plane()` as the second set is added to the ground at its origin, with
        groups that touch every shape which touches anything.

        Pairs that have a contact already, on one body or on bodies welded together, on bodies that a joint connects
        (unless `neighbors`; also one of several axes, with massless bodies between them), those of bodies named in
        `exclude`, and those that groups of shapes or rules forbid (`add_shape`, `set_contact_rule`, or the file that
        the machine was read from) are left out, and so are pairs of shapes that cannot touch here (see
        docs/howto/contact.md), with a `BellcrankWarning` that names them. A pair that a rule wants is taken in any
        case. `material` is that of `add_contact`; without `friction` it is that of the rule or of the shapes. Contacts
        are called after their shapes, ``"foot sphere, ground plane"``.

        A robot from a file on the floor: ``m.add_contacts("all", bc.Plane(), friction=0.8)``.
        """
        given: dict[str, Any] = {
            "stiffness": None, "dissipation": None, "restitution": None, "impact_speed": 1.0, "friction": None,
            "slip_speed": 1e-3, "exponent": 1.0, "friction_model": "regularized", "reach": 1e-4, "bend_damping": 1e-2}
        for key in material:
            if key not in given:
                raise ModelError(f"contacts: a material has no {key!r}{hint(key, list(given))}; it has "
                                 f"{', '.join(given)}")
        given |= material
        _material("contacts", **{**given, "friction": 0.0 if given["friction"] is None else given["friction"]})
        ones = self._shapes_in(first)
        plane: PlacedShape | None = None
        if isinstance(second, Plane):
            plane = self.add_shape("ground", second, role="collision", name=self._free_name("ground plane"),
                                   groups=_EVERY_GROUP)
            second = [plane]
        try:
            made = self._made_of(*self._wanted_pairs(ones, self._shapes_in(second), exclude, neighbors), given)
        except ModelError:
            if plane is not None:  # nothing is left behind
                del self._shapes[plane.name]
            raise
        return tuple(self._put(one) for one in made)

    def _made_of(self, pairs: Iterable[tuple[PlacedShape, PlacedShape]], left_out: dict[str, list[str]],
                 given: dict[str, Any]) -> list[PlacedContact]:
        """Contacts of pairs, before any is added; other pairs are `left_out`, by the reason."""
        made: list[PlacedContact] = []
        unknown: list[str] = []
        for one, other in pairs:
            forms = [form for form, _ in self._forms(one, other)]
            if not known_pair(*forms):
                unknown.append(f"{one.name!r} and {other.name!r} ({why_unknown(*forms)})")
                continue
            friction = self._friction(one, other) if given["friction"] is None else given["friction"]
            material = _material("contacts", **{**given, "friction": friction})
            made.append(self._touching_pair(f"{one.name}, {other.name}", one, other, material))
            self._free_bends(made[-1])
        left = f"{unknown[0]}{f' and {len(unknown) - 1} pairs more' if len(unknown) > 1 else ''}" if unknown else ""
        if not made:
            why = [left] * bool(left) + [
                f"{names[0]}{f' and {len(names) - 1} pairs more' if len(names) > 1 else ''} {reason}"
                for reason, names in left_out.items()]
            raise ModelError(f"contacts of {self.name!r}: no two of these shapes can touch here: "
                             f"{'; '.join(why) or 'there is only one'}")
        if left:
            warnings.warn(f"contacts of {self.name!r}: left out {left}", BellcrankWarning, stacklevel=outside())
        return made

    def _wanted_pairs(self, ones: list[PlacedShape], others: list[PlacedShape], exclude: Collection[tuple[str, str]],
                      neighbors: bool) -> tuple[list[tuple[PlacedShape, PlacedShape]], dict[str, list[str]]]:
        """Pairs of two sets that are meant to touch, each once, and those that are not, by the reason."""
        groups = rigid_groups(1 + len(self.bodies), self.joints)
        apart = {self._excluded(two) for two in exclude}
        near = set() if neighbors else neighboring(groups, self.joints, self._axis_carriers())
        known = {frozenset(c.shape_names) for c in self._contacts.values()}
        wanted: list[tuple[PlacedShape, PlacedShape]] = []
        left: dict[str, list[str]] = {}
        seen: set[frozenset[str]] = set()
        for one in ones:
            for other in others:
                pair, bodies = frozenset((one.name, other.name)), frozenset((groups[one.body], groups[other.body]))
                if pair in seen or one is other:
                    continue
                seen.add(pair)
                own = frozenset((one.body, other.body))
                why = "belong to one body or to bodies welded together" if len(bodies) == 1 else \
                    "have a contact already" if pair in known else \
                    "are excluded" if own in apart else \
                    self._forbidden(one, other, bool(near & {bodies, own}))
                if why:
                    left.setdefault(why, []).append(f"{one.name!r} and {other.name!r}")
                else:
                    wanted.append((one, other))
        return wanted, left

    def _forbidden(self, one: PlacedShape, other: PlacedShape, neighbors: bool) -> str:
        """Why a pair shall not touch by its rule, if it has one, or else by its joint and its groups; empty if it
        may."""
        rule = self._rule(one, other)
        if rule is not None:
            return "" if rule.touch else "are forbidden by a contact rule"
        if neighbors:
            return "are of bodies that a joint connects (neighbors=True takes them)"
        return "" if meant_to_touch(one, other) else "have groups that do not fit each other (add_shape(groups=...))"

    def _excluded(self, two: tuple[str, str]) -> frozenset[int]:
        if isinstance(two, str) or len(two) != 2:
            raise ModelError(f"contacts of {self.name!r}: exclude holds pairs of bodies, such as [('hand', 'lid')], "
                             f"got {two!r}")
        return frozenset(self.body(b).index for b in two)

    def _axis_carriers(self) -> set[int]:
        """Bodies without a mass and without anything to touch: joints of several axes are made of them."""
        touching = {s.body for s in self._shapes.values() if s.role == "collision"}
        return {b.index for b in self.bodies if b.index not in touching
                and not isinstance(b.inertia.mass, Scalar) and not b.inertia.mass}

    def _shapes_in(self, some: str | Iterable[str | Body | PlacedShape]) -> list[PlacedShape]:
        if isinstance(some, str) and some == "all":
            found = [s for s in self._shapes.values() if s.role == "collision"]
            if not found:
                raise ModelError(f"contacts: no body of {self.name!r} has a shape of the role 'collision'; add some "
                                 "with add_shape(body, bellcrank.Sphere(...), role='collision')")
            return found
        listed = [some] if isinstance(some, str) else list(some)
        return [s for one in listed for s in self._own_shapes("contacts", one)]

    def _own_shapes(self, what: str, given: str | Body | PlacedShape, some: bool = True) -> list[PlacedShape]:
        """A shape, or all that a body collides with; there must be `some`."""
        if isinstance(given, PlacedShape):
            if self._shapes.get(given.name) is not given:
                raise ModelError(f"{what}: shape {given.name!r} belongs to another mechanism, not to {self.name!r}")
            return [given]
        names = {"ground", *(b.name for b in self.bodies)}
        if isinstance(given, str) and given not in names:
            if given not in self._shapes:
                raise ModelError(f"{what}: no body or shape called {given!r} in mechanism {self.name!r}"
                                 f"{hint(given, [*names, *self._shapes])}")
            return [self._shapes[given]]
        body = self.body(given)
        found = [s for s in self.shapes_of(body) if s.role == "collision"]
        if not found and some:
            raise ModelError(f"{what}: body {body.name!r} has no shape of the role 'collision'; add one with "
                             f"add_shape({body.name!r}, bellcrank.Sphere(...), role='collision')")
        return found

    def _touching(self, what: str, given: str | Body | PlacedShape) -> PlacedShape:
        found = self._own_shapes(what, given)
        if len(found) > 1:
            raise ModelError(f"{what}: the body has {len(found)} shapes of the role 'collision' "
                             f"({', '.join(repr(s.name) for s in found[:6])}); name one, or use add_contacts")
        return found[0]

    def _forms(self, *shapes: PlacedShape) -> list[tuple[Any, Pose]]:
        """Shapes as contact sees them, and where: meshes as hulls, or as the boxes that they are."""
        out = []
        for placed in shapes:
            form = seen_by_contact(placed.shape, f"shape {placed.name!r}")
            box = as_box(form)
            out.append((form, placed.pose) if box is None else (box[0], placed.pose @ box[1]))
        return out

    def _touching_pair(self, name: str, one: PlacedShape, other: PlacedShape, material: Compliant | Unyielding
                 ) -> PlacedContact:
        what = f"contact {name!r}"
        if one.body == other.body:
            raise ModelError(f"{what}: both shapes belong to one body")
        self._check_own(what, *(getattr(material, f) for f in ("friction", "restitution", "stiffness", "dissipation",
                                                               "slip_speed", "reach", "bend_damping")
                                if hasattr(material, f)))
        (mine, my_pose), (theirs, their_pose) = self._forms(one, other)
        forms = [mine, theirs]
        if not known_pair(*forms):
            raise ModelError(f"{what}: {why_unknown(*forms)}")
        flat = any(isinstance(form, Plane) for form in forms)
        bends = bend_names(name, places_of(*forms), 2 if flat else 3) if isinstance(material, BristleContact) else ()
        return PlacedContact(name, one.body, other.body, my_pose, their_pose, forms[0], forms[1], material,
                             (one.name, other.name), bends)


def _material(what: str, stiffness: Number | None, dissipation: Number | None, restitution: Number | None,
              impact_speed: float, friction: Number, slip_speed: Number, exponent: float,
              friction_model: str = "regularized", reach: Number = 1e-4, bend_damping: Number = 1e-2
              ) -> Compliant | Unyielding:
    if friction_model not in ("regularized", "bristle"):
        raise ModelError(f"{what}: friction_model is 'regularized' or 'bristle', got {friction_model!r}")
    friction = number(what, "friction", friction, 0.0)
    if restitution is not None:
        restitution = number(what, "restitution", restitution, 0.0)
        if isinstance(restitution, Scalar) and stiffness is not None:
            raise ModelError(f"{what}: restitution of a compliant contact takes a number, not a parameter; give "
                             "dissipation=")
        if not isinstance(restitution, Scalar) and restitution > 1.0:
            raise ModelError(f"{what}: restitution must be at most 1, got {restitution:g}: an impact makes no energy")
    if stiffness is None:
        if dissipation is not None:
            raise ModelError(f"{what}: dissipation belongs to a compliant contact; give stiffness, too, or restitution "
                             "alone")
        if friction_model == "bristle":
            raise ModelError(f"{what}: bristles belong to a compliant contact; give stiffness, too. A rigid one sticks "
                             "without them")
        return Unyielding(0.0 if restitution is None else restitution, friction)
    if dissipation is not None and restitution is not None:
        raise ModelError(f"{what}: give dissipation or restitution, not both")
    if exponent not in _EXPONENTS:
        raise ModelError(f"{what}: exponent must be 1, 1.5 (Hertz) or 2, got {exponent!r}")
    if isinstance(impact_speed, Scalar):
        raise ModelError(f"{what}: impact_speed takes a number, not a parameter")
    if restitution is not None:
        try:
            dissipation = dissipation_for(float(restitution), float(number(what, "impact_speed", impact_speed)))
        except ModelError as error:
            raise ModelError(f"{what}: {error}") from None
    numbers = (number(what, "stiffness", stiffness, 0.0, above=True),
               number(what, "dissipation", 0.0 if dissipation is None else dissipation, 0.0), friction,
               number(what, "slip_speed", slip_speed, 0.0, above=True), float(exponent))
    if friction_model == "regularized":
        return Compliant(*numbers)
    return BristleContact(*numbers, number(what, "reach", reach, 0.0, above=True),
                          number(what, "bend_damping", bend_damping, 0.0))
