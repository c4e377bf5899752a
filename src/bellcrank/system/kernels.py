"""The functions of a model as callables: by name, for batches, for one state at the least cost. No mechanics here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, absent, batch, check_time, flat
from bellcrank.errors import BellcrankError, SingularError, StateError
from bellcrank.formulations import functions_of
from bellcrank.system.body_places import body_function, poses_function
from bellcrank.system.evaluator import UNROLL_LINKS, CompiledEvaluator, Evaluator, Maker, NumpyEvaluator
from bellcrank.target.backend import Door, DoorForm
from bellcrank.topology.tree import wrench_order

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.lowering.function import Function
    from bellcrank.system.model import Model
    from bellcrank.topology.tree import Tree

__all__ = ["NO_DOORS", "DoorPair", "DoorTable", "Evaluation", "Kernels", "LateDoor", "Wrenches"]

Wrenches = Mapping[str, npt.ArrayLike] | npt.ArrayLike | None
Value = TypeVar("Value")

#: functions of a motion, whatever forces make it, that elements between links enter
_OF_MOTION = ("inverse_dynamics", "bias", "joint_wrenches", "loaded_wrenches", "pair_wrenches")


class Evaluation(NamedTuple):
    """A function at a batch of states: what it was given, rows (n or 1, size), and what came out, (n, size)."""

    name: str
    inputs: list[str]
    arrays: list[Floats]
    lead: tuple[int, ...]  #: the batch axes
    out: Floats
    finite: bool  #: whether everything is, inputs included, but for states that are absent
    absent: npt.NDArray[np.bool_] | None = None  #: (n,), states that `assemble` could not reach: their q is NaN

    @property
    def lacking(self) -> npt.NDArray[np.int64]:
        """The states without a finite result that are not absent."""
        bad = ~np.isfinite(self.out).all(axis=-1)
        return np.flatnonzero(bad if self.absent is None else bad & ~self.absent)

    @property
    def result(self) -> Floats:
        """What came out, (*batch axes, size)."""
        return self.out.reshape(*self.lead, self.out.shape[-1])

    def with_rows(self, rows: Floats) -> Evaluation:
        """The same with other rows in place of what came out."""
        return self._replace(out=rows, finite=not len(self._replace(out=rows).lacking))

    def failing(self, wrenches: Wrenches, model: Model) -> tuple[npt.NDArray[np.int64], dict[str, Floats], Wrenches]:
        """The states without a finite result: which, their inputs (states, size), and the wrenches on bodies there."""
        some = self.lacking
        rows = {label: np.broadcast_to(a, (len(self.out), a.shape[-1]))[some]
                for label, a in zip(self.inputs, self.arrays, strict=True)}
        if wrenches is not None:
            every = model.wrench_rows(wrenches)
            wrenches = np.broadcast_to(every, (*self.lead, *every.shape[-2:])).reshape(-1, *every.shape[-2:])[some]
        return some, rows, wrenches

    def failed(self) -> tuple[dict[str, Floats], str]:
        """The inputs of the first state without a finite result, and words that say where it is in the batch."""
        state = int(self.lacking[0])
        given = {label: a[min(state, len(a) - 1)] for label, a in zip(self.inputs, self.arrays, strict=True)}
        return given, f" at batch index {_index(state, self.lead)}" if self.lead else ""


@dataclass(frozen=True, slots=True)
class DoorPair:
    """The cheapest calls of a function: of one state, and of a batch that is worth lanes, but neither threads nor
    letting others have the interpreter's lock meanwhile. Both answer None if they cannot."""

    one: Door
    many: Door

    def __call__(self, *arrays: Any) -> Any:
        """Whichever fits."""
        found = self.one(*arrays)
        return self.many(*arrays) if found is None else found


class DoorTable(dict[Any, Any]):
    """Doors by key, made when they are first asked for."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: Any) -> Any:
        self[key] = made = self._make(key)
        return made


class LateDoor:
    """The door of batches, made with the first of them: by lanes, or state after state for those of fewer than `least`
    states, which are not worth lanes."""

    def __init__(self, least: int, make: Callable[[bool], Door | None]) -> None:
        self._least, self._make = least, make

    def __call__(self, *arguments: Any) -> Any:
        if not arguments or type(arguments[0]) is not np.ndarray or arguments[0].ndim != 2:
            return None
        return (self._lanes if len(arguments[0]) >= self._least else self._states)(*arguments)

    @cached_property
    def _lanes(self) -> Door:
        return self._make(True) or no_door

    @cached_property
    def _states(self) -> Door:
        return self._make(False) or no_door


def no_door(*arguments: Any) -> None:
    """Where there is nothing cheaper than the general way."""


NO_DOORS = DoorPair(no_door, no_door)


class Shared:
    """What is kept for a model whatever the values of its parameters; several threads may ask."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.lock = threading.RLock()
        self._kept: dict[Any, Any] = {}

    def get(self, key: Any, make: Callable[[], Value]) -> Value:
        """What has the key, made by the first who asks."""
        try:
            found: Value = self._kept[key]
        except KeyError:
            with self.lock:
                if key not in self._kept:
                    self._kept[key] = make()
                found = self._kept[key]
        return found


class Kernels:
    """Runs the functions of a model: owns the code, which is made when it is first needed, and what else is kept.

    Those of the same model with other values of parameters share all of that.
    """

    def __init__(self, model: Model, maker: Maker, shared: Shared | None = None) -> None:
        self.model, self.maker, self.tree = model, maker, model.tree
        #: the functions there are, by name
        self.functions: dict[str, Function] = dict(functions_of(model.method, model.tree.looped))
        if self.tree.forced:  # forces for a motion depend on those given along loop joints
            self.functions |= {name: replace(self.functions[name], inputs=(*self.functions[name].inputs, "tau"))
                               for name in _OF_MOTION}
        #: whether springs between links, of machines too large for them, act as external wrenches
        self.springs_outside = bool(self.tree.pairs) and maker.backend != "numpy" and not self.tree.whole and (
            self.tree.n > UNROLL_LINKS or maker.schedule == "rolled")
        self.shared = shared or Shared(maker(self._without_springs(self.tree)))
        self.large = self.tree.n > UNROLL_LINKS
        #: the doors of functions that need no plan, by name; results are arrays of one axis
        self.doors = DoorTable(lambda name: self.door_pair(name, DoorForm()))
        #: runs functions that need no plan
        self.evaluator: Evaluator = self.shared.evaluator

    def __reduce__(self) -> Any:
        return Kernels, (self.model, self.maker)

    @property
    def backend(self) -> str:
        """What the code is made for."""
        return self.maker.backend

    def for_model(self, model: Model) -> Kernels:
        """The kernels of a model that differs in the values of its parameters alone; the code is shared."""
        return Kernels(model, self.maker, self.shared)

    def for_backend(self, backend: str) -> Kernels:
        """The kernels of the same model for another target."""
        return Kernels(self.model, replace(self.maker, backend=backend))

    # -- what runs a function -------------------------------------------------------------------
    def kept(self, key: Any, make: Callable[[], Value]) -> Value:
        """What was made once for this model, whatever its parameters: code, and programs made of it."""
        return self.shared.get(key, make)

    def planned(self, plan: LoopPlan) -> Evaluator:
        """What runs functions of the loops by a plan."""
        return self.kept(("plan", plan.key),
                         lambda: self.maker(self._without_springs(replace(self.tree, plan=plan))))

    def of_tree(self, key: Any, tree: Callable[[], Tree]) -> Evaluator:
        """What runs functions of another tree of the same machine."""
        return self.kept(("tree", key), lambda: self.maker(self._without_springs(tree())))

    def _without_springs(self, tree: Tree) -> Tree:
        return replace(tree, pairs=()) if self.springs_outside else tree

    def compiled(self, name: str, evaluator: Evaluator | None = None) -> CompiledEvaluator | None:
        """The evaluator, if it has the function as one kernel."""
        run = evaluator or self.evaluator
        return run if isinstance(run, CompiledEvaluator) and run.compiles_whole(self.functions[name]) else None

    def covers(self, name: str) -> bool:
        """Whether the function knows all that this machine has: bodies that deform, if there are some."""
        return self.functions[name].flexible or not self.tree.flexible

    @property
    def with_springs(self) -> Evaluator:
        """What runs functions of force elements: it knows those that act from outside of the others' code, too."""
        return self.kept("with springs", lambda: self.maker(self.tree)) if self.springs_outside else self.evaluator

    def interprets(self, name: str) -> bool:
        """Whether compiled code was asked for, but this function is too large for it."""
        return isinstance(self.evaluator, CompiledEvaluator) and self.evaluator.too_large(self.functions[name])

    # -- batches --------------------------------------------------------------------------------
    def run(self, name: str, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches = None, t: npt.ArrayLike = 0.0,
            evaluator: Evaluator | None = None, lanes: bool | None = None) -> Floats:
        """Evaluate a function on a batch; shape (*batch axes, size). `lanes`: by the code for several states side by
        side, or by that for one, whatever the number of states; else as suits that."""
        if wrenches is None and evaluator is None and lanes is None:
            quick = self.quickly(name, given, t)
            if quick is not None:
                return quick
        found = self._evaluate(name, given, wrenches, t, evaluator, lanes)
        _, _, _, lead, out, finite, _ = found
        if not finite:
            self.refuse(Evaluation(*found))
        return out.reshape(*lead, out.shape[-1])

    def evaluate(self, name: str, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches = None,
                 t: npt.ArrayLike = 0.0, evaluator: Evaluator | None = None) -> Evaluation:
        """The same, also where the result is not finite."""
        return Evaluation(*self._evaluate(name, given, wrenches, t, evaluator))

    def _evaluate(self, name: str, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike,
                  evaluator: Evaluator | None, lanes: bool | None = None
                  ) -> tuple[str, list[str], list[Floats], tuple[int, ...], Floats, bool,
                             npt.NDArray[np.bool_] | None]:
        function, run = self.functions[name], evaluator or self.evaluator
        check_time(t)
        # plans change nothing about what is read; other trees may, whose links are other bodies
        own = run is self.evaluator or (run.tree.plan is not None and run.tree.members is self.tree.members
                                        and run.tree.pairs is self.evaluator.tree.pairs)
        names = (self._inputs if own else run.inputs)(function, wrenches is not None)
        arrays = [self._input(n, size, given, wrenches, t, run.tree) for n, size in names.items()]
        ready, lead, n = batch(arrays)
        out, finite = run.run(function, wrenches is not None, ready, n, lanes)
        lost = None
        if not finite and self.tree.looped and lead and "q" in names:
            lost = np.broadcast_to(absent(ready[list(names).index("q")]), n)
            out[lost] = np.nan
            finite = all(bool(np.isfinite(a if len(a) == 1 else a[~lost]).all()) for a in (*ready, out))
        return name, list(names), ready, lead, out, finite, lost

    def _inputs(self, function: Function, wrenches: bool) -> dict[str, int]:
        """What a function of this machine reads; looked at once, since that takes a walk through the tree."""
        return self.kept(("inputs", function.name, wrenches), lambda: self.evaluator.inputs(function, wrenches))

    def by_formulation(self, name: str, given: Mapping[str, npt.ArrayLike], t: npt.ArrayLike, tree: Tree) -> Floats:
        """A function of another tree of the same machine by the formulations' own text."""
        return self.run(name, given, None, t, NumpyEvaluator(tree))

    def parameter_array(self) -> Floats:
        """Values of the parameters, (..., parameters)."""
        values = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in self.model.values.values()))
        return np.stack(values, axis=-1)

    def _input(self, name: str, size: int, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches,
               t: npt.ArrayLike, tree: Tree) -> Floats:
        if name == "t":
            return np.asarray(t, dtype=np.float64)[..., None]
        if name == "parameters":
            return np.asarray(given["parameters"]) if "parameters" in given else self.parameter_array()
        if name == "wrench":
            assert wrenches is not None
            ordered = self.model.wrench_rows(wrenches)[..., wrench_order(tree), :]
            return ordered.reshape(*ordered.shape[:-2], size)
        what = "the coordinates" if name == "q" else "one for every speed"
        return flat(name, given[name], size, what)

    # -- errors ---------------------------------------------------------------------------------
    def check_inputs(self, found: Evaluation) -> None:
        """Say which input is not finite, if one is not."""
        for label, array in zip(found.inputs, found.arrays, strict=True):
            bad = ~np.isfinite(array)
            if found.absent is not None and len(array) == len(found.absent):
                bad &= ~found.absent[:, None]
            bad = np.argwhere(bad)
            if len(bad):
                state, entry = (int(x) for x in bad[0])
                where = f", batch index {_index(state, found.lead)}" if found.lead else ""
                raise StateError(f"{found.name}: {label}[{entry}]{self._entry_name(label, entry)} is "
                                 f"{array[state, entry]}{where}; inputs must be finite")

    def refuse(self, found: Evaluation) -> NoReturn:
        """Say which input is not finite, or that the state is singular."""
        self.check_inputs(found)
        self._explain_laws(found)
        raise SingularError(f"{found.name} of {self.tree.name!r} has no finite result{found.failed()[1]}: the state or "
                            "the machine is singular (an inertia vanishes, a quaternion is zero, or numbers overflow)")

    def _explain_laws(self, found: Evaluation) -> None:
        """Let laws themselves say what is wrong, such as a table that ends."""
        given, where = found.failed()
        if "q" not in given:
            return
        trouble = self.law_trouble(given["q"], given.get("u", np.zeros(self.tree.nu)),
                                   float(given["t"][0]) if "t" in given else 0.0)
        if trouble:
            raise StateError(f"{found.name} of {self.tree.name!r}{where}: {trouble}")

    def law_trouble(self, q: Floats, u: Floats, t: float) -> str:
        """What laws say of a state that they do not cover, on numbers; nothing if they do."""
        given = {"q": q, "u": u, "tau": np.zeros(self.tree.nu)}
        cams = {"loop_matrix": {"q": q}} if self.tree.relations else {}
        for name, read in ({"joint_laws": given, "bias": given} | cams).items():
            try:
                with np.errstate(all="ignore"):
                    self.evaluate(name, read, None, t, NumpyEvaluator(self.tree))
            except StateError as error:
                return str(error)
            except (BellcrankError, ArithmeticError):
                continue  # it is something else
        return ""

    def _entry_name(self, label: str, entry: int) -> str:
        names = self.model.configuration
        if label == "q":
            return f" ({names.coordinate_names[entry]})"
        if label == "parameters":
            return f" ({list(self.model.values)[entry]})"
        if label == "wrench":
            return f" (on body {self.tree.body_names[1 + wrench_order(self.tree)[entry // 6]]!r})"
        return f" ({names.speed_names[entry]})" if label in ("u", "p", "tau", "udot") else ""

    # -- one state ------------------------------------------------------------------------------
    def door_pair(self, name: str, form: DoorForm, evaluator: Evaluator | None = None,
                  instead: Callable[..., Evaluator | None] | None = None) -> DoorPair:
        """The cheapest calls of a function, where it is one kernel that reads nothing else than its arguments;
        `instead` finds another evaluator for a state without a finite result, from its arguments."""
        function, run = self.functions[name], self.compiled(name, evaluator)
        if run is None or list(run.inputs(function, False)) != list(function.inputs) or \
                run.lacks_loop_joints(function):
            return NO_DOORS

        def other(*given: Floats) -> Any:
            found = self.compiled(name, instead(*given)) if instead is not None else None
            return None if found is None else found.kernel(function, False, 1)

        one = run.backend.door(run.kernel(function, False, 1), form, other if instead is not None else None)
        if one is None:
            return NO_DOORS

        least = run.backend.lanes() // 2 + 1

        def many(lanes: bool) -> Door | None:
            states = (least, run.most_for_one_thread(function)) if lanes else (1, least - 1)
            kernel = run.kernel(function, False, run.backend.lanes() if lanes else 1)
            return run.backend.batch_door(kernel, form, *states)

        return DoorPair(one, LateDoor(least, many))

    def quickly(self, name: str, given: Mapping[str, npt.ArrayLike], t: npt.ArrayLike = 0.0) -> Floats | None:
        """Through the doors of a function; None if the arrays do not fit. Functions of large machines take longer than
        the general way costs, and would hold the interpreter's lock meanwhile."""
        if self.large:
            return None
        doors = self.doors[name]
        if doors is NO_DOORS:
            return None
        check_time(t)
        found: Floats | None = doors(*[given[n] for n in self.functions[name].inputs])
        return found

    def at_body(self, what: str, body: str | None, whole: bool = False) -> Function | None:
        """The function of one body or frame (see `formulations.common.body_kinetics`), or of all bodies ("pose", None);
        None where there is none: for what stands still, and for large machines (see `why_not_at`) unless they may be
        looked at as a `whole`."""
        name = f"{what} of {body!r}" if body is not None else "poses of all bodies"
        name = name if self.direct else f"{name}, whole"
        with self.shared.lock:
            if name not in self.functions:
                made = None if not (self.direct or whole) else poses_function(self.model, name) if body is None else \
                    body_function(self.model, what, body, name)
                if made is None:
                    return None
                self.functions[name] = made
            return self.functions[name]

    def why_not_at(self, body: str) -> str:
        """Why a body or frame has no function of its own."""
        if self.direct:
            return f"{body!r} is fixed to the ground: it stands still, and all its derivatives are zero"
        return f"{self.tree.name!r} is too large for functions of single bodies ({self.tree.n} links)"

    @property
    def direct(self) -> bool:
        """Whether the machine is small enough, and its schedule such, that functions may look at it as a whole."""
        return self.tree.whole or (not self.large and self.maker.schedule != "rolled")

    def bound(self, name: str, arrays: list[Floats], out: Floats, evaluator: Evaluator | None = None,
              wrenches: bool = False) -> Callable[[], Floats]:
        """A call bound to arrays, which are contiguous and of the right sizes."""
        function, run = self.functions[name], evaluator or self.evaluator
        compiled, said = self.compiled(name, run), f"{name}: an input or the result is not finite"
        if compiled is not None:
            return compiled.backend.bound(compiled.kernel(function, wrenches, 1), arrays, out, StateError, said)

        def reference() -> Floats:
            result, finite = run.run(function, wrenches, [a.reshape(1, -1) for a in arrays], 1)
            out.reshape(-1)[:] = result[0]
            if not finite:
                raise StateError(said)
            return out

        return reference


def _index(state: int, lead: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(state, lead))
