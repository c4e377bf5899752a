"""Methods of a state: a `State` may stand wherever coordinates q, or q and speeds u, do, and what is one compiled
function is called at once.

``pose(state, body)``, ``bias(state)``. A method that is decorated with a name asks the system's doors of that name
first, with its arguments as they are: compiled code looks at them and answers, or says None; then the method itself
computes, and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked
from bellcrank.arrays import check_time
from bellcrank.errors import StateError
from bellcrank.formulations.common.body_kinetics import AT_BODY
from bellcrank.mechanism.mechanism import Body
from bellcrank.mechanism.pose import Pose
from bellcrank.system.drive_programs import drives_doors
from bellcrank.system.foreign_arrays import foreign_to, on_copies
from bellcrank.system.forward_dynamics import forward_doors
from bellcrank.system.kernels import NO_DOORS, DoorPair, DoorTable
from bellcrank.system.reactions import reaction_doors
from bellcrank.system.state import State, coordinates_of
from bellcrank.target.backend import DoorForm

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["method_doors", "of_arrays", "of_motion", "of_position"]

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class _Motion(Protocol[P, R_co]):
    """A bound method of a position and speeds, or of a state."""

    @overload
    def __call__(self, state: State, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, q: npt.ArrayLike, u: npt.ArrayLike, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class _Position(Protocol[P, R_co]):
    """A bound method of a position, or of a state."""

    def __call__(self, q: State | npt.ArrayLike, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class _PositionMethod(Protocol[P, R_co]):
    """The same in its class, or a function of a system and a position."""

    def __call__(self, system: Any, q: State | npt.ArrayLike, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def __get__(self, instance: Any, owner: Any = None) -> _Position[P, R_co]: ...


class _MotionMethod(Protocol[P, R_co]):
    """The same in its class, or a function of a system and a motion."""

    @overload
    def __call__(self, system: Any, state: State, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, system: Any, q: npt.ArrayLike, u: npt.ArrayLike, /, *args: P.args, **kwargs: P.kwargs
                 ) -> R_co: ...
    def __get__(self, instance: Any, owner: Any = None) -> _Motion[P, R_co]: ...


def of_position(door: str = "", body: bool = False) -> Callable[[Callable[Concatenate[Any, npt.ArrayLike, P], R]],
                                                                _PositionMethod[P, R]]:
    """For a method or function (system, q, ..., t) that may be given a `State` for q; its time is used if t is not.
    `door` names what to ask first; of one `body`, which follows q."""
    def decorate(method: Callable[Concatenate[Any, npt.ArrayLike, P], R]) -> _PositionMethod[P, R]:
        return cast("_PositionMethod[P, R]", _called(method, 1, door, body))

    return decorate


def of_motion(door: str = "", body: bool = False) -> Callable[
        [Callable[Concatenate[Any, npt.ArrayLike, npt.ArrayLike, P], R]], _MotionMethod[P, R]]:
    """For a method or function (system, q, u, ..., t) that may be given a `State` for q and u: what follows them
    follows the state, whose time is used unless t is given. `door` as above; a body follows the arrays."""
    def decorate(method: Callable[Concatenate[Any, npt.ArrayLike, npt.ArrayLike, P], R]) -> _MotionMethod[P, R]:
        return cast("_MotionMethod[P, R]", _called(method, 2, door, body))

    return decorate


def of_arrays(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """For a method of the space of positions, where the coordinates of a `State` stand for it: arrays of a device are
    copied, and results go there."""
    safe, name = checked(method), method.__name__

    @wraps(method)
    def called(system: Any, *args: Any, **kwargs: Any) -> R:
        if any(x.__class__ is State for x in (*args, *kwargs.values())):
            names = system.model.configuration.state_names
            args = tuple(coordinates_of(x, names, name) for x in args)
            kwargs = {key: coordinates_of(x, names, name) for key, x in kwargs.items()}
        elsewhere = foreign_to(system.kernels)
        if elsewhere is None:
            return safe(system, *args, **kwargs)
        found: R = on_copies(elsewhere, partial(method, system), args, kwargs)
        return found

    return cast("Callable[Concatenate[Any, P], R]", called)


_new, _TIME = object.__new__, {"t"}
#: what a method asks first: (system, arguments) -> result, or None
_Ask = Callable[[Any, tuple[Any, ...]], Any]


def _called(method: Callable[..., Any], count: int, door: str, body: bool) -> Callable[..., Any]:
    """The method, with a `State` for its first `count` arguments if one is given, and through its door if that fits."""
    parameters, safe = signature(method).parameters.values(), checked(method)
    names = [p.name for p in parameters if p.kind is Parameter.POSITIONAL_OR_KEYWORD][1:]  # behind self
    momenta = count > 1 and names[1] == "p"
    ask = _asks_nobody if not door else _asks_of_pose if door == "pose" else \
        _asks_of_body(door, names.index("body")) if body else _asks(door)

    def general(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        named = len(args)
        while kwargs and len(args) < len(names) and names[len(args)] in kwargs:  # doors know places, not names
            args = (*args, kwargs.pop(names[len(args)]))
        state = args[0] if args and args[0].__class__ is State else None
        if state is not None:
            if len(args) - 1 > len(names) - count or (count > 1 and names[1] in kwargs):
                raise _u_twice(method.__name__)
            state.check_names(self.model.configuration.state_names, method.__name__)
            second = self.momenta(state, t=kwargs.get("t", state.t), speeds="tree") if momenta else state.u
            args = (*(state.q, second)[:count], *args[1:])
        elif count > 1 and len(args) == 1 and isinstance(args[0], tuple) and len(args[0]) == 2:
            raise StateError(f"{method.__name__}: takes q and u, or a State as assemble() returns it; unpack the pair: "
                             f"{method.__name__}(*pair)")
        if kwargs.keys() <= _TIME and (kwargs or state is not None or named < len(args)):
            if kwargs:
                check_time(kwargs["t"])  # what has a door does not depend on it
            if (found := ask(self, args)) is not None:
                return found
        if state is not None:
            kwargs.setdefault("t", state.t)
        elsewhere = foreign_to(self.kernels)
        if elsewhere is not None:
            return on_copies(elsewhere, partial(method, self), args, kwargs)
        return safe(self, *args, **kwargs)

    @wraps(method)
    def called(system: Any, *args: Any, **kwargs: Any) -> Any:  # a function of a system may be called by this name
        if not kwargs and (found := ask(system, args)) is not None:
            return found
        return general(system, args, kwargs)

    return _pose_first(called) if door == "pose" else called


def _pose_first(rest: Callable[..., Any]) -> Callable[..., Any]:
    """The method `rest`, with one state's pose made here: it costs so little that calls in between would be felt."""
    @wraps(rest)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            try:
                found = self._poses[args[1] if len(args) > 1 else None](*args)
            except (KeyError, TypeError):  # not asked for yet, or no name of a body
                found = None
            if found is not None:
                made = _new(Pose)  # as `Pose.of_arrays` does
                made.position, made.rows = found
                return made
        return rest(self, *args, **kwargs)

    return called


def _asks_nobody(self: Any, args: tuple[Any, ...]) -> None:
    return None


def _asks(door: str) -> _Ask:
    def ask(self: Any, args: tuple[Any, ...]) -> Any:
        pair = self._doors[door]
        found = pair.one(*args)
        return pair.many(*args) if found is None else found

    return ask


def _asks_of_body(door: str, place: int) -> _Ask:
    def ask(self: Any, args: tuple[Any, ...]) -> Any:
        try:
            pair = self._doors[door][args[place]]
        except (IndexError, TypeError):  # no body, or no name of one
            return None
        found = pair.one(*args)
        return pair.many(*args) if found is None else found

    return ask


def _asks_of_pose(self: Any, args: tuple[Any, ...]) -> Any:
    try:
        pair = self._doors["pose"][args[1] if len(args) > 1 else None]
    except TypeError:
        return None
    self._poses[args[1] if len(args) > 1 else None] = pair.one
    found = pair.one(*args)
    if found is None:
        found = pair.many(*args)
    return None if found is None else Pose.of_arrays(*found)


def _u_twice(name: str) -> StateError:
    """An error for a state with something more than what follows q and u."""
    return StateError(f"{name}: a State holds q and u; what comes after them follows it, so there is one argument too "
                      f"many: {name}(state, ...) or {name}(state.q, state.u, ...)")


def method_doors(plans: LoopPlans) -> DoorTable:
    """What methods ask first, by name; of one body, a table by the names of bodies. Made when first asked for."""
    kernels, tree, nu = plans.kernels, plans.tree, plans.tree.nu
    shapes = {"mass_matrix": (nu, nu), "kinetic_energy": (), "potential_energy": (), "energy": ()}

    #: whether a method is not one kernel, or not that alone
    elements = bool(tree.joint_forces or tree.pairs)
    composed = {"bias": elements, "energy": elements,
                "inverse_dynamics": bool(tree.joint_forces or kernels.springs_outside)}

    def of_body(what: str) -> DoorTable:
        shape = (6, nu) if what.startswith("jacobian") else None
        inputs = AT_BODY[what][1]
        defaults = (np.zeros(3),) if "point" in inputs else ()
        form = DoorForm(shape, len(inputs) - len(defaults), defaults, _ONE_POSE if what == "pose" else ())

        def make(body: str | None) -> DoorPair:
            if not isinstance(body, (str, Body)) and (body is not None or what != "pose"):
                raise TypeError  # where a body is expected stands something else, such as a point behind a state
            function = kernels.at_body(what, body)
            if function is None:
                return NO_DOORS
            every = body is None
            return kernels.door_pair(function.name, _all_poses(len(kernels.model.body_names)) if every else form)

        return DoorTable(make)

    def make(name: str) -> DoorPair | DoorTable:
        if tree.looped and name in _OF_INDEPENDENT:
            return NO_DOORS
        if name in AT_BODY:
            return of_body(name)
        if name == "forward_dynamics":
            return forward_doors(plans)
        if name == "reactions":
            return reaction_doors(plans)
        if name == "inverse_dynamics" and tree.looped:
            return drives_doors(plans)
        if composed.get(name):
            return NO_DOORS
        function = "motion_and_gravity" if name == "energy" else name
        return kernels.door_pair(function, DoorForm(shapes.get(name)))

    return DoorTable(make)


#: functions of independent speeds where there are loops
_OF_INDEPENDENT = frozenset(("bias", "jacobian", "mass_matrix", "momenta"))
_ONE_POSE = ((9, (3,), (1,)), (0, (3, 3), (3, 1)))  # position and rotation among twelve entries


def _all_poses(bodies: int) -> DoorForm:
    return DoorForm(None, 1, (), ((9, (bodies, 3), (12, 1)), (0, (bodies, 3, 3), (12, 3, 1))))
