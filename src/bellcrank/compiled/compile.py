"""`bellcrank.compile`: from a description to a `System`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from bellcrank.arguments import must_be
from bellcrank.compiled.system import System
from bellcrank.errors import AssemblyError, ModelError
from bellcrank.formulations import AUTO, check_topology, functions_of, method_module
from bellcrank.loops.tolerances import DRAWING
from bellcrank.lowering.choose import UNROLL_LINKS
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.system.evaluator import Maker
from bellcrank.system.forward_dynamics import warn_if_interpreted
from bellcrank.system.kernels import Kernels
from bellcrank.system.loop_plans import LoopPlans
from bellcrank.system.model import Model, Options
from bellcrank.system.resistance import check_inertia, without_resistance
from bellcrank.system.variants import released, without
from bellcrank.target.backend import BACKENDS
from bellcrank.topology.builder import build_tree, collector_paused
from bellcrank.topology.carriers import with_carriers
from bellcrank.topology.release import lock as lock_joints
from bellcrank.topology.tree import Tree, laws_between_links

__all__ = ["compile"]


def compile(mechanism: Mechanism, method: str = "auto", backend: str = BACKENDS[0], *, point: str | None = None,
            schedule: str = "auto", threads: int | None = None, free_frames: bool = True, cut: Sequence[str] = (),
            actuated: Sequence[str] = (), independent: Sequence[str] = (), baumgarte: tuple[float, float] = (0.0, 0.0),
            lock: Sequence[str] = (), precision: str = "double", drawing_tolerance: float = DRAWING) -> System:
    """Make an immutable `System` of a mechanism.

    `method` is a formulation ("recursive", "kane", "operator", "complement", "momenta", "divide", "dense",
    for loops also "elimination" and "reduction") or "auto", usually the fastest; `point` is the reference point of
    "recursive" ("centroid", "joint", "origin"; also written "recursive/origin"). `backend` names the target of
    compiled code, or is "numpy", the reference: the formulation's own text on arrays. `schedule` ("unrolled",
    "rolled") and `threads` are chosen by the library unless given; `free_frames=False` keeps link frames at the
    joints. Native code is made when a function is first called, and kept on disk. Cost: O(bodies).

    ``backend="cuda"`` computes batches on an NVIDIA GPU (``pip install bellcrank[cuda]``), in `precision` "double" or
    "single": arrays of NumPy go there and back, those of CuPy, PyTorch and JAX stay there, and results are of the same
    kind; fastest if arrays (states, entries) are in Fortran's order. Up to 16 states of NumPy are left to the CPU.

    Loops: `cut` names joints that shall close loops (the library chooses otherwise), `actuated` the joints with drives
    (for `System.inverse_dynamics`), `independent` those whose speeds shall stay independent where possible (the
    actuated ones unless given), `baumgarte` = (alpha, beta) adds -2 alpha (rate) - beta^2 (error) to the constraints
    of the multiplier methods. None of these changes q, u and tau, which have all joints in the order in which they
    were added. Actuated joints, and those with actuators, rotors, sums, couplers or prescribed motions, carry a link
    wherever a loop is cut: the joint then moves a link of its own, which is not a body of the mechanism, and the loop
    is cut at a weld next to it, "joint.closing".

    `drawing_tolerance`: redundant constraints of loops that contradict each other by no more than this share of the
    machine's length (or by as many radians), as rounded numbers do, are dropped; see
    :func:`bellcrank.analyze.drawing_errors`. 0 drops none.

    `lock` names joints that stay where q says (see `System.lock`); ``lock="massless"`` locks those that nothing
    resists, such as joints of links without mass at the ends of robots.

    >>> import bellcrank as bc
    >>> bc.compile(bc.load("pendulum")).coordinate_names
    ('hinge.angle',)
    """
    _check_choices(mechanism, backend, schedule, precision)
    must_be("compile: threads", "int | None", threads)
    must_be("compile: free_frames", "bool", free_frames)
    actuated, independent, cut = (_names(x, what) for x, what in (
        (actuated, "actuated"), (independent, "independent"), (cut, "cut")))
    massless = isinstance(lock, str) and lock == "massless"
    wanted = () if massless else _names(lock, "lock")
    options = Options(actuated, independent or actuated, _gains(baumgarte), _tolerance(drawing_tolerance),
                      bool(actuated or independent or cut or wanted))
    if not mechanism.bodies:
        raise ModelError(f"mechanism {mechanism.name!r} has no bodies")

    with collector_paused():
        mechanism = mechanism.copy()  # later changes of the description must not reach the system
        names = [_joint_of(mechanism, key) for key in (*actuated, *independent)]
        held = [_joint_of(mechanism, key) for key in wanted]
        mechanism, cut = with_carriers(mechanism, cut, (*names, *held), (*names[:len(actuated)], *held))
        tree = build_tree(mechanism, free_frames=free_frames, cut=cut, keep=(*names, *held))
        if tree.sees_machine and not tree.whole and (tree.n > UNROLL_LINKS or schedule == "rolled"):
            tree = laws_between_links(tree)
        method = _method_for(tree, method, point)
        if tree.nu == 0:
            raise ModelError(f"mechanism {mechanism.name!r} has no joint that can move")
        loose = without_resistance(tree) if massless else []
        tree = lock_joints(tree, loose)
        if not tree.looped and not wanted:
            check_inertia(tree)
        model = _at_start(Model(mechanism, tree, method, options, tree.parameters, locked=tuple(loose)))
        for key in (*actuated, *independent):
            model.configuration.split(key)  # says what is wrong with a name
        made = System(Kernels(model, Maker(backend, schedule, threads, precision)))
        _check_coverage(made.plans)
        warn_if_interpreted(made.plans)
        return made.lock(*wanted)


def _check_choices(mechanism: object, backend: str, schedule: str, precision: str) -> None:
    """Refuse what there is not."""
    if not isinstance(mechanism, Mechanism):
        raise ModelError(f"compile needs a bellcrank.Mechanism, got {type(mechanism).__name__}")
    if backend not in (*BACKENDS, "numpy"):
        raise ModelError(f"no backend {backend!r}; this version has {', '.join(map(repr, BACKENDS))} and 'numpy'")
    if schedule not in ("auto", "unrolled", "rolled"):
        raise ModelError(f"schedule {schedule!r} must be 'auto', 'unrolled' or 'rolled'")
    if precision not in ("double", "single"):
        raise ModelError(f"precision {precision!r} must be 'double' or 'single'")
    if precision == "single" and backend == "numpy":
        raise ModelError("precision='single': backend='numpy' computes with doubles; take backend='cuda'")


def _method_for(tree: Tree, method: str, point: str | None) -> str:
    """The method by its whole name; refuses one that there is not, or that does not cover the machine."""
    if method == "auto":
        method = AUTO[tree.looped]
    if point is not None:
        method = f"{method}/{point}"
    functions_of(method, tree.looped)  # says what is wrong with the method
    check_topology(method, tree)
    return method


def _at_start(model: Model) -> Model:
    """The machine as it is when a run begins: without what is open, and without bodies that enter later."""
    opened, absent = tuple(model.mechanism.open_at_start), model.mechanism.absent_at_start
    if opened:
        model = released(model, opened)
    return without(model, absent) if absent else model


def _check_coverage(plans: LoopPlans) -> None:
    """Refuse machines with loops that a formulation does not cover."""
    check = getattr(method_module(plans.model.method), "check_coverage", None)
    if check is None or not plans.tree.looped:
        return
    with suppress(AssemblyError):  # of positions there is nothing to say yet
        check(replace(plans.tree, plan=plans.reference().plan))


def _names(value: Sequence[str] | None, what: str) -> tuple[str, ...]:
    if isinstance(value, str):
        raise ModelError(f"{what}: give a sequence of joint names, not the text {value!r}")
    must_be(what, "Sequence[str] | None", value)
    return () if value is None else tuple(map(str, value))


def _gains(value: object) -> tuple[float, float]:
    try:
        alpha, beta = (float(x) for x in value)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise ModelError(f"baumgarte: {value!r} is not two numbers (alpha, beta)") from None
    if not (0.0 <= alpha < float("inf") and 0.0 <= beta < float("inf")):
        raise ModelError(f"baumgarte: alpha and beta must be finite and not negative, got {(alpha, beta)}")
    return alpha, beta


def _tolerance(value: object) -> float:
    try:
        tolerance = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ModelError(f"drawing_tolerance: {value!r} is not a number") from None
    if not 0.0 <= tolerance <= 0.01:
        raise ModelError(f"drawing_tolerance: {tolerance:g} must lie between 0 and 0.01 of the machine's length")
    return tolerance


def _joint_of(mechanism: Mechanism, key: str) -> str:
    """The joint that a name such as ``crank`` or ``hip.angle`` speaks of."""
    names = {r.name for r in mechanism.joints}
    joint = key if key in names else str(key).rpartition(".")[0]
    return mechanism.joint(joint if joint in names else key).name
