"""Single functions of a machine in C: which can be exported, and how they are called."""

from __future__ import annotations

from bellcrank.compiled.system import System
from bellcrank.errors import ModelError, hint
from bellcrank.io.export.c_header import Declared, Draft
from bellcrank.lowering.choose import kernel_source, trace_together
from bellcrank.lowering.function import Function
from bellcrank.system.evaluator import CompiledEvaluator
from bellcrank.system.tree_dynamics import FORCED
from bellcrank.target.c.c_printer import Arguments, Pointer
from bellcrank.target.kernel_source import GraphKernel, KernelSource
from bellcrank.target.program import Builder, Real
from bellcrank.target.switching import switching

__all__ = ["FUNCTIONS", "add_function", "check_function"]

#: what can be exported: the name of the result, and what that is
FUNCTIONS = {
    "forward_dynamics": ("udot", "accelerations for the joint forces tau"),
    "inverse_dynamics": ("tau", "joint forces for the accelerations udot"),
    "bias": ("tau", "joint forces at zero acceleration"),
    "mass_matrix": ("matrix", "rows of the joint-space mass matrix (with loops that of the spanning tree)"),
    "momenta": ("p", "canonical momenta"),
    "hamilton": ("pairs", "speeds and rates of momenta, two of a coordinate side by side")}


def check_function(system: System, name: str) -> Function:
    """The function behind a name; an error says why it cannot be exported."""
    if name not in FUNCTIONS or name not in system.kernels.functions:
        raise ModelError(f"export_c: no function {name!r}; there are {', '.join(map(repr, FUNCTIONS))}"
                         f"{hint(name, FUNCTIONS)}")
    looped = system.model.tree.looped
    if looped and name == "inverse_dynamics":
        raise ModelError("export_c: with loops 'inverse_dynamics' is computed in parts, which LAPACK puts together: it "
                         "has no C code. Of the spanning tree alone it has: export release(*loops)")
    if system.model.dense_loops and name == "forward_dynamics":
        raise ModelError("export_c: with loops the method 'dense' is solved by LAPACK and has no C code; compile with "
                         "method='elimination'")
    if system.kernels.springs_outside and name in FORCED:
        raise ModelError(f"export_c: the springs between distant bodies of {system.model.name!r} act from outside of "
                         f"the compiled code, which has too many bodies for them: {name!r} has no C code")
    return system.kernels.functions["constrained_hamilton" if looped and name == "hamilton" else name]


def is_planned(system: System, function: Function) -> bool:
    """Whether a function follows a plan of the loops."""
    return system.model.tree.looped and function.name in ("forward_dynamics", "constrained_hamilton")


def _source(system: System, run: CompiledEvaluator, name: str, function: Function) -> KernelSource:
    if not run.compiles_whole(function):
        raise ModelError(f"export_c: {name!r} of {system.model.name!r} by the method {system.model.method!r} is too "
                         "large for one piece of code; compile with method='auto'")
    traced, inputs = run.trace(function), run.inputs(function, False)
    if not (system.model.tree.joint_forces and name in ("inverse_dynamics", "bias")):
        return kernel_source(run.tree, function, inputs, traced)
    if not isinstance(traced, list):  # what springs on the joints contribute is taken off
        raise ModelError(f"export_c: {system.model.name!r} has springs or dampers on its joints, and too many bodies "
                         f"for {name!r} to be one piece of code; export 'forward_dynamics'")
    both = trace_together(run.tree, [function, system.kernels.functions["joint_laws"]], False)
    nu = system.nu
    return GraphKernel([a - b for a, b in zip(both[:nu], both[nu:], strict=True)], inputs)


def add_function(draft: Draft, name: str) -> None:
    """Put a function into the source, with all its plans."""
    system, unit = draft.system, draft.unit
    function = check_function(system, name)
    planned = is_planned(system, function)
    runs = draft.runs if planned else draft.runs[:1]
    several = len(runs) > 1
    blocks = []
    for i, run in enumerate(runs):
        unit.plan = str(i) if several else ""
        blocks.append(unit.block(_source(system, run, name, function), (function.name,), name))
    work = max(b.work for b in blocks)
    result, about = FUNCTIONS[name]
    inputs = draft.runs[0].inputs(function, False)
    entries = function.size(system.model.tree)
    size = draft.macro("NU") if entries == system.nu else f"{draft.macro('NU')} * {entries // system.nu}"
    if entries == system.nu * system.nu and name == "mass_matrix":
        size = f"{draft.macro('NU')} * {draft.macro('NU')}"
    parameters = [*(draft.input(n) for n in inputs), draft.array(result, size, False)]
    if work:
        parameters.append(draft.array("work", draft.macro("WORK"), False))
    if planned:
        parameters.append("int plan[1]")
    places = {n: "&t" if n == "t" else n for n in inputs} | {"out": result, "work": "work"}
    calls = {f"plan{i}": [block.call(places)] for i, block in enumerate(blocks)}
    pointers = {n: Pointer(n) for n in inputs} | {result: Pointer(result, False), "plan": Pointer("plan", False)}

    def program(b: Builder) -> None:
        arrays = [(b.memory(n), size) for n, size in inputs.items() if n != "t"]
        numbers = [Real(b, "t")] if "t" in inputs else []
        switching(b, arrays, numbers, list(calls), (b.memory(result), entries),
                  b.integers_at("plan") if planned else None)

    head = f"int {unit.prefix}{name}"
    unit.program(head, parameters, Arguments(pointers, dict.fromkeys((f"n_{n}" for n in calls), 1), {}, calls), program)
    draft.declared.append(Declared(head, parameters, f"{name}: {result}[] are the {about}."))
    draft.work = max(draft.work, work)
