"""Single functions of a machine in C: which can be exported, and how they are called."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from bellcrank.compiled.system import System
from bellcrank.errors import ModelError, hint
from bellcrank.formulations.elimination.closed_inverse import with_more_drives
from bellcrank.io.export.c_header import Declared, Draft
from bellcrank.lowering.choose import UNROLL_LINKS, kernel_source, together, trace
from bellcrank.lowering.function import Function
from bellcrank.system.drive_programs import drive_entries
from bellcrank.system.evaluator import CompiledEvaluator
from bellcrank.system.forces_along import forced_tree, reading_tau
from bellcrank.system.tree_dynamics import FORCED
from bellcrank.target.c.c_text import Arguments, Pointer
from bellcrank.target.kernel_source import GraphKernel, KernelSource
from bellcrank.target.program import Builder, Real
from bellcrank.target.switching import switching

__all__ = ["FUNCTIONS", "OF_BODY", "add_function", "check_function"]

#: what can be exported: the name of the result, and what that is
FUNCTIONS = {
    "forward_dynamics": ("udot", "are the accelerations for the joint forces tau"),
    "inverse_dynamics": ("tau", "are the joint forces for the accelerations udot"),
    "bias": ("tau", "are the joint forces at zero acceleration"),
    "mass_matrix": ("matrix", "are the rows of the joint-space mass matrix (with loops that of the spanning tree)"),
    "momenta": ("p", "are the canonical momenta"),
    "hamilton": ("pairs", "are the speeds and rates of momenta, two of a coordinate side by side"),
    "center_of_mass": ("place", "are the coordinates of the centre of mass"),
    "momentum": ("momentum", "is the angular momentum about the world's origin, then linear momentum"),
    "kinetic_energy": ("energy", "is the kinetic energy"),
    "potential_energy": ("energy", "is the potential energy of gravity")}
#: the same of one body or frame, named after a colon: "jacobian:hand"
OF_BODY = {
    "pose": ("pose", "are the rows of the rotation matrix of {body}, then its position in the world"),
    "velocity": ("velocity", "is the angular velocity of {body}, then the velocity of its point, world axes"),
    "acceleration": ("acceleration", "is the angular acceleration of {body}, then that of its point, world axes"),
    "jacobian": ("matrix", "are the rows of the Jacobian of {body} at its point: velocity = matrix u, world axes"),
    "jacobian_rate": ("matrix", "are the rows of the rate of the Jacobian of {body} at its point")}


class Item(NamedTuple):
    """A function to be exported: its name in C, what it is, what it is made from, one for each plan it may follow."""

    title: str
    result: str
    about: str
    functions: list[tuple[CompiledEvaluator, Function]]
    planned: bool  #: whether the caller chooses among the plans
    wrenches: bool  #: whether external wrenches act in it


def check_function(system: System, name: str) -> None:
    """Refuse what cannot be exported; an error says why."""
    kind, _, body = name.partition(":")
    if body:
        _body_function(system, kind, body)
        return
    if name not in FUNCTIONS or name not in system.kernels.functions:
        known = [*FUNCTIONS, *(f"{kind}:BODY" for kind in OF_BODY)]
        raise ModelError(f"export_c: no function {name!r}; there are {', '.join(map(repr, known))}"
                         f"{hint(name, FUNCTIONS)}")
    if system.model.dense_loops and name in ("forward_dynamics", "inverse_dynamics"):
        raise ModelError("export_c: with loops the method 'dense' is solved by LAPACK and has no C code; compile with "
                         "method='elimination'")
    if system.kernels.springs_outside and name in FORCED:
        raise ModelError(f"export_c: the springs between distant bodies of {system.model.name!r} act from outside of "
                         f"the compiled code, which has too many bodies for them: {name!r} has no C code")


def _body_function(system: System, kind: str, body: str) -> Function:
    if kind not in OF_BODY:
        raise ModelError(f"export_c: no function {kind!r} of a body; there are {', '.join(map(repr, OF_BODY))}"
                         f"{hint(kind, OF_BODY)}")
    found = system.kernels.at_body(kind, body)
    if found is None:
        raise ModelError(f"export_c: {kind!r} of {body!r} has no C code: {system.kernels.why_not_at(body)}")
    return found


def item_of(draft: Draft, name: str) -> Item:
    """What a name stands for."""
    system, functions = draft.system, draft.system.kernels.functions
    kind, _, body = name.partition(":")
    if body:
        result, about = OF_BODY[kind]
        made, title = _body_function(system, kind, body), re.sub(r"\W+", "_", body, flags=re.ASCII)
        return Item(f"{kind}_{title}", result, about.format(body=body), [(draft.runs[0], made)], False, False)
    result, about = FUNCTIONS[name]
    looped, wrenches = system.model.tree.looped, draft.wrenches and name in FORCED
    if looped and name == "inverse_dynamics":
        return Item(name, result, about + " (zero where there are no drives)", _drives(draft), False, wrenches)
    planned = looped and name in ("forward_dynamics", "hamilton")
    function = functions["constrained_hamilton" if looped and name == "hamilton" else name]
    return Item(name, result, about, [(run, function) for run in (draft.runs if planned else draft.runs[:1])], planned,
                wrenches)


def _drives(draft: Draft) -> list[tuple[CompiledEvaluator, Function]]:
    """Inverse dynamics of a closed machine: by those of the plans whose independent speeds have drives, or one made for
    these. States are not looked at: what opens the loops a little is a matter of measuring."""
    system, first = draft.system, draft.plans[0]
    assert first is not None
    drives = drive_entries(system.plans, system.neutral(), 0.0, None) if system.model.options.actuated \
        else first.independent
    runs = [run for run in draft.runs if set(run.tree.plan.independent) <= set(drives)]
    if not runs:
        plan = system.plans.driven_at(drives)
        if not set(plan.independent) <= set(drives):
            raise ModelError(f"export_c: the actuated joints of {system.model.name!r} do not determine its motion; "
                             "name more of them in compile(actuated=...)")
        any_run = draft.runs[0]
        runs = [CompiledEvaluator(replace(any_run.tree, plan=plan), any_run.backend, any_run.schedule)]
    return [(run, _unwatched(tuple(v for v in drives if v not in run.tree.plan.independent))) for run in runs]


def _unwatched(extra: tuple[int, ...]) -> Function:
    return Function("closed_inverse", lambda tree: with_more_drives(tree, extra, watched=False), ("q", "u", "udot"),
                    "speeds", whole=True)


def _source(system: System, run: CompiledEvaluator, item: Item, function: Function) -> KernelSource:
    if not run.compiles_whole(function):
        instead = "" if item.title == "inverse_dynamics" else "; compile with method='auto'"
        raise ModelError(f"export_c: {item.title!r} of {system.model.name!r} by the method {system.model.method!r} is "
                         f"too large for one piece of code{instead}")
    traced, inputs = run.trace(function, item.wrenches), run.inputs(function, item.wrenches)
    if function.name == "forward_dynamics" and run.tree.loop_joints and run.tree.n <= UNROLL_LINKS:
        wide = forced_tree(run.tree)
        found = trace(wide, function, item.wrenches, "unrolled")
        if isinstance(found, list):  # forces at joints where loops are cut act, too
            return GraphKernel(reading_tau(wide, found), inputs)
    if not (system.model.tree.joint_forces and function.name in ("inverse_dynamics", "bias")):
        return kernel_source(run.tree, function, inputs, traced)
    if not isinstance(traced, list):  # what springs on the joints contribute is taken off
        raise ModelError(f"export_c: {system.model.name!r} has springs or dampers on its joints, and too many bodies "
                         f"for {item.title!r} to be one piece of code; export 'forward_dynamics'")
    graphs = [traced, run.trace(system.kernels.functions["joint_laws"], item.wrenches)]
    both = together([graph for graph in graphs if isinstance(graph, list)])
    nu = system.nu
    return GraphKernel([a - b for a, b in zip(both[:nu], both[nu:], strict=True)], inputs)


def add_function(draft: Draft, name: str) -> None:
    """Put a function into the source, with all its plans."""
    system, unit, item = draft.system, draft.unit, item_of(draft, name)
    several = len(item.functions) > 1
    blocks = []
    for i, (run, function) in enumerate(item.functions):
        unit.plan = str(i) if several else ""
        blocks.append(unit.block(_source(system, run, item, function), (function.name,), item.title))
    work = max(b.work for b in blocks)
    run, function = item.functions[0]
    inputs, entries = run.inputs(function, item.wrenches), function.size(system.model.tree)
    parameters = [*(draft.input(n) for n in inputs), draft.array(item.result, _size(draft, item, entries), False)]
    if work:
        parameters.append(draft.array("work", draft.macro("WORK"), False))
    if item.planned:
        parameters.append("int plan[1]")
    places = {n: "&t" if n == "t" else n for n in inputs} | {"out": item.result, "work": "work"}
    calls = {f"plan{i}": [block.call(places)] for i, block in enumerate(blocks)}
    pointers = {n: Pointer(n) for n in inputs} | {item.result: Pointer(item.result, False),
                                                  "plan": Pointer("plan", False)}

    def program(b: Builder) -> None:
        arrays = [(b.memory(n), size) for n, size in inputs.items() if n != "t"]
        numbers = [Real(b, "t")] if "t" in inputs else []
        switching(b, arrays, numbers, list(calls), (b.memory(item.result), entries),
                  b.integers_at("plan") if item.planned else None)

    head = f"int {unit.prefix}{item.title}"
    if any(d.head == head for d in draft.declared):
        raise ModelError(f"export_c: two functions would be called {unit.prefix}{item.title} in C; export them under "
                         "two names")
    unit.program(head, parameters, Arguments(pointers, dict.fromkeys((f"n_{n}" for n in calls), 1), {}, calls), program)
    draft.declared.append(Declared(head, parameters, f"{item.title}: {item.result}[] {item.about}."))
    draft.work = max(draft.work, work)


def _size(draft: Draft, item: Item, entries: int) -> str:
    """A number of entries in C, by the number of speeds where it grows with that."""
    if item.functions[0][1].layout == "totals" and item.result != "matrix":
        return str(entries)
    times = draft.macro("NU") if item.title == "mass_matrix" else str(entries // max(draft.system.nu, 1))
    return draft.macro("NU") + (f" * {times}" if times != "1" else "")
