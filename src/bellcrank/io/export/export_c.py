"""`bellcrank.export_c`: functions and steps of a machine as plain C, for controllers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from bellcrank.arguments import must_be
from bellcrank.compiled.system import System
from bellcrank.errors import FileError, ModelError, hint
from bellcrank.files.model_files import write_text
from bellcrank.formulations.elimination.closed_inverse import with_more_drives
from bellcrank.integrate import tableaux
from bellcrank.integrate.fixed_step import OneStep, Stepping, explicit_step, semi_implicit_step, single_step
from bellcrank.integrate.tableaux import Explicit
from bellcrank.loops.plan import LoopPlan
from bellcrank.lowering.choose import UNROLL_LINKS, kernel_source, together
from bellcrank.lowering.function import Function
from bellcrank.simulate.machine import Code, make_code
from bellcrank.simulate.steppers import NEAR_AND_FAR, ROUNDS
from bellcrank.system.drive_programs import drive_entries
from bellcrank.system.evaluator import CompiledEvaluator
from bellcrank.system.tree_dynamics import FORCED
from bellcrank.target.array_loops import copy
from bellcrank.target.backend import Backend, Call
from bellcrank.target.c.c_text import Arguments, Pointer, literal
from bellcrank.target.c.unit import CBackend, CBlock, CUnit, filled, wrapped
from bellcrank.target.kernel_source import GraphKernel, KernelSource
from bellcrank.target.program import Builder, Int, Real
from bellcrank.target.switching import BAD_INPUT, GOOD, NO_RESULT, switching
from bellcrank.topology.release import with_given_forces
from bellcrank.topology.tree import wrench_order

__all__ = ["Exported", "export_c"]


# -- the header of exported C: sizes, names of coordinates, and what every function takes and answers ---
@dataclass(frozen=True)
class Declared:
    """A function of the header."""

    head: str
    parameters: list[str]
    about: str


@dataclass
class Draft:
    """What is exported so far."""

    system: System
    unit: CUnit
    plans: Sequence[LoopPlan | None]
    runs: Sequence[CompiledEvaluator]  #: one for each plan
    wrenches: bool = False  #: whether functions take external wrenches
    declared: list[Declared] = field(default_factory=list)
    work: int = 0  #: reals of workspace that the functions need

    @property
    def name(self) -> str:
        return self.unit.name

    def macro(self, name: str) -> str:
        return f"{self.name}_{name}".upper()

    def array(self, name: str, size: str, const: bool = True) -> str:
        """A parameter."""
        return f"{'const ' if const else ''}{self.unit.real} {name}[{size}]"

    def input(self, name: str) -> str:
        """The parameter of an input."""
        if name == "t":
            return f"{self.unit.real} t"
        if name == "point":
            return self.array(name, "3")
        size = {"q": "NQ", "parameters": "PARAMETERS", "wrench": "BODIES"}.get(name, "NU")
        return self.array(name, self.macro(size) + " * 6" * (name == "wrench"))


def header_text(draft: Draft) -> str:
    """The text of the header."""
    system, macro = draft.system, draft.macro
    guard = macro("h")
    sizes = {"NQ": system.nq, "NU": system.nu, "NY": system.nq + system.nu, "PLANS": len(draft.plans)}
    if system.model.tree.parameters:
        sizes["PARAMETERS"] = len(system.model.tree.parameters)
    if draft.wrenches:
        sizes["BODIES"] = len(system.model.tree.body_names) - 1
    if draft.work:
        sizes["WORK"] = draft.work
    status = {"GOOD": GOOD, "BAD_INPUT": BAD_INPUT, "NO_RESULT": NO_RESULT}
    parts = [
        f"#ifndef {guard}\n#define {guard}",
        _comment(_about(draft)),
        "\n".join(f"#define {macro(k)} {v}" for k, v in sizes.items()),
        _comment(["What functions answer: all is well, an input is not finite, or the result is not finite"
                  + (" with any of the plans" if system.model.tree.looped else "") + "."]) + "\n"
        + "\n".join(f"#define {macro(k)} {v}" for k, v in status.items()),
        _comment(_names(draft)),
        '#ifdef __cplusplus\nextern "C" {\n#endif',
        *(f"{_comment([d.about])}\n{wrapped(d.head, d.parameters)};" for d in draft.declared),
        "#ifdef __cplusplus\n}\n#endif", "#endif"]
    return "\n\n".join(parts) + "\n"


def _about(draft: Draft) -> list[str]:
    system = draft.system
    lines = [f"{system.model.name}: functions made by Bellcrank, method {system.model.method}, for one state.",
             "SI units, radians; quaternions (w, x, y, z). No function allocates memory or keeps anything between "
             "calls; arrays must not overlap."]
    if draft.work:
        lines.append("work is memory for intermediate results; what is in it before and after means nothing.")
    if system.model.tree.looped:
        lines.append("Loops: q and u are the coordinates and speeds of all joints, and must close the loops. "
                     "A plan says which speeds depend on which; where one divides by zero, another has to "
                     "serve. plan[0] is the plan to try first (0 to begin with); the others follow in a circle, and "
                     "the one that served is written back.")
    return lines


def _names(draft: Draft) -> list[str]:
    system = draft.system
    lines = [f"q[{i}] {name}" for i, name in enumerate(system.coordinate_names)]
    lines += [f"u[{i}], tau[{i}] {name}" for i, name in enumerate(system.speed_names)]
    lines += [f"parameters[{i}] {name} = {value!r} unless you choose otherwise"
              for i, (name, value) in enumerate(_values(system).items())]
    if draft.wrenches:
        names = system.model.tree.body_names[1:]
        lines += [f"wrench[{6 * i}] to wrench[{6 * i + 5}] moment, then force on {names[b]}, world axes, "
                  "about its origin" for i, b in enumerate(wrench_order(draft.runs[0].tree))]
    lines += [f"plan {i}: independent speeds {', '.join(_independent(system, plan))}"
              for i, plan in enumerate(draft.plans) if plan is not None]
    return lines


def _values(system: System) -> Mapping[str, float]:
    return dict(system.model.tree.parameters)


def _independent(system: System, plan: LoopPlan) -> list[str]:
    return [system.speed_names[i] for i in sorted(plan.independent)]


def _comment(lines: Sequence[str]) -> str:
    """A comment in C; names that would end it are changed."""
    out = [part for line in lines for part in filled(line.replace("*/", "* /").replace("/*", "/ *").split())]
    return "/* " + "\n * ".join(out) + " */"


# -- single functions of a machine in C: which can be exported, and how they are called -------------
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


def _with_loop_forces(run: CompiledEvaluator) -> CompiledEvaluator:
    """The same in which forces along loop joints act; machines that are too large have no result where some do."""
    tree = with_given_forces(run.tree) if run.tree.n <= UNROLL_LINKS else run.tree
    return run if tree is run.tree else CompiledEvaluator(tree, run.backend, run.schedule)


def _source(system: System, run: CompiledEvaluator, item: Item, function: Function) -> KernelSource:
    run = _with_loop_forces(run) if "tau" in function.inputs else run
    if not run.compiles_whole(function):
        instead = "" if item.title == "inverse_dynamics" else "; compile with method='auto'"
        raise ModelError(f"export_c: {item.title!r} of {system.model.name!r} by the method {system.model.method!r} is "
                         f"too large for one piece of code{instead}")
    traced, inputs = run.trace(function, item.wrenches), run.inputs(function, item.wrenches)
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


# -- A fixed step of a machine in C: the library's own methods, with its corrections of loops and quaternions ---
#: methods of fixed steps: what they do in one, and their tableaus
STEPS: dict[str, tuple[Callable[[Stepping], OneStep], Callable[[], Explicit] | None]] = {
    "rk4": (explicit_step(tableaux.rk4), tableaux.rk4), "rk8": (explicit_step(tableaux.rk8), tableaux.rk8),
    "semi_implicit": (semi_implicit_step, None)}
#: buffers that the program itself uses
_OWN = ("stage", "rate", "clock", "slopes", "inputs")


def check_stepper(stepper: str) -> None:
    """Refuse what cannot be exported."""
    if stepper not in STEPS:
        raise ModelError(f"export_c: no stepper {stepper!r} in C; there are {', '.join(map(repr, STEPS))}"
                         f"{hint(stepper, STEPS)}")


def add_step(draft: Draft, stepper: str) -> None:
    """Put a step into the source, with all its plans."""
    check_stepper(stepper)
    system, unit = draft.system, draft.unit
    method, make = STEPS[stepper]
    tableau = make() if make else None
    stages = tableau.stages if tableau else 1
    codes = []
    for i, run in enumerate(draft.runs):
        unit.plan = str(i) if len(draft.runs) > 1 else ""
        codes.append(make_code(_with_loop_forces(run), system.kernels.functions, 1,
                               momenta=system.model.method == "momenta", separate=stepper == "semi_implicit"))
    layout, work = _layout(codes, stages)
    given = [draft.array("tau", draft.macro("NU")), f"{unit.real} t", f"{unit.real} h"]
    if system.model.tree.parameters:
        given.append(draft.array("parameters", draft.macro("PARAMETERS")))
    given.append(draft.array("work", draft.macro("WORK"), False))
    names = ", ".join(["y", "tau", "t", "h", *["parameters"] * bool(system.model.tree.parameters), "work"])
    calls = {}
    for i, code in enumerate(codes):
        core = f"{unit.prefix}{stepper}_core{i if len(codes) > 1 else ''}"
        _add_core(draft, core, code, method, layout, [draft.array("y", draft.macro("NY")), *given])
        calls[f"plan{i}"] = [f"{core}({names});"]
    parameters = [draft.array("y", draft.macro("NY"), False), *given, *["int plan[1]"] * system.model.tree.looped]
    _add_switch(draft, stepper, parameters, calls, layout["stage"], codes[0].size)
    draft.work = max(draft.work, work)


def _layout(codes: list[Code], stages: int) -> tuple[dict[str, int], int]:
    """Where the buffers that are used begin in the workspace, that of the blocks at the end; and its length."""
    calls = [c for code in codes for c in _calls(code)]
    sizes = {**codes[0].sizes, "slopes": stages * codes[0].size}
    used = {*_OWN, *(c.buffer for c in calls), *(b for code in codes for b in _read(code))}
    start, at = {}, 0
    for name, size in sizes.items():
        if name in used:
            start[name] = at
            at += size
    start["scratch"] = at
    return start, at + max([0, *(_block(c).work for c in calls)])


def _calls(code: Code) -> Iterable[Call]:
    return (*code.rates, *code.forces, *code.corrections)


def _read(code: Code) -> set[str]:
    """The buffers that blocks read."""
    return {{**code.places, **call.inputs}[n][0] for call in _calls(code) for n in _block(call).inputs}


def _block(call: Call) -> CBlock:
    assert isinstance(call.block, CBlock)
    return call.block


def _at(buffer: str, entry: int) -> str:
    return f"{buffer} + {entry}" if entry else buffer


def _add_core(draft: Draft, core: str, code: Code, method: Callable[[Stepping], OneStep],
              layout: dict[str, int], parameters: list[str]) -> None:
    """A static function that leaves the new state in the workspace."""
    unit = draft.unit

    def statement(call: Call) -> str:
        where = {**code.places, **call.inputs}
        places = {n: _at(*where[n]) for n in _block(call).inputs}
        return _block(call).call(places | {"out": _at(call.buffer, call.start), "work": "scratch"})

    lists = {name: [statement(c) for c in getattr(code, name)] for name in ("rates", "forces", "corrections")}
    integers = {"size": code.size, "split": code.nq, "n_shift": code.shift,
                "rounds": ROUNDS if code.shift else 1, **{f"n_{name}": len(calls) for name, calls in lists.items()}}
    near, far = NEAR_AND_FAR[unit.real]
    reals = {"start": "t", "step": "h", "near": literal(near, unit.real), "far": literal(far, unit.real)}
    pointers = {name: Pointer(name, False) for name in (*code.sizes, "slopes")} | {
        "y": Pointer("y"), "tau": Pointer("tau"), "parameters": Pointer("parameters")}
    printer = unit.printer(Arguments(pointers, integers, reals, lists))
    for name, start in layout.items():
        printer.alias(name, _at("work", start))
    for name, size in (("tau", draft.system.nu), ("parameters", len(draft.system.model.tree.parameters))):
        copy(printer, printer.memory(name), printer.memory("inputs").at(code.inputs[name]), Int(printer, str(size)))
    for name in sorted(_read(code) - {*_OWN, *(c.buffer for c in _calls(code))}):  # nobody computes it: it stays zero
        zeros = printer.memory(name)
        with printer.loop(code.sizes[name]) as i:
            zeros[i] = 0.0
    single_step(method)(printer)
    unit.function(f"static void {core}", parameters, printer, False)


def _add_switch(draft: Draft, stepper: str, parameters: list[str], calls: dict[str, list[str]], stage: int,
                size: int) -> None:
    """The public function: tries plans, and takes the new state over."""
    system, unit = draft.system, draft.unit
    pointers = {"y": Pointer("y", False), "stage": Pointer("stage"), "plan": Pointer("plan", False),
                "tau": Pointer("tau"), "parameters": Pointer("parameters")}

    def program(b: Builder) -> None:
        arrays = [(b.memory("y"), size), (b.memory("tau"), system.nu)]
        if system.model.tree.parameters:
            arrays.append((b.memory("parameters"), len(system.model.tree.parameters)))
        new = b.memory("stage")
        switching(b, arrays, [Real(b, "t"), Real(b, "h")], list(calls), (new, size),
                  b.integers_at("plan") if system.model.tree.looped else None,
                  lambda: copy(b, new, b.memory("y"), Int(b, str(size))))

    head = f"int {unit.prefix}step"
    printer = unit.printer(Arguments(pointers, dict.fromkeys((f"n_{n}" for n in calls), 1), {}, calls))
    printer.alias("stage", _at("work", stage))
    program(printer)
    unit.function(head, parameters, printer, True)
    second = "p (momenta)" if system.model.method == "momenta" else "u"
    draft.declared.append(Declared(head, parameters, (
        f"step: one step of {stepper} of length h from time t. y holds q, then {second}; it is the new state, loops "
        "closed and quaternions unit, or what it was if the answer is not zero.")))


_IDENTIFIER = re.compile(r"[A-Za-z]\w*", re.ASCII)


class Exported(NamedTuple):
    """The files that `export_c` wrote."""

    header: Path
    source: Path


def export_c(system: System, functions: Sequence[str], folder: str | os.PathLike[str], *, scalar: str = "double",
             name: str | None = None, plans: Sequence[Any] = (), stepper: str | None = None, wrenches: bool = False
             ) -> Exported:
    """Write functions of a machine as C99: one header and one source, named `name` (the machine's, unless given).

    `functions` are among "forward_dynamics", "inverse_dynamics", "bias", "mass_matrix", "momenta", "hamilton",
    "center_of_mass", "momentum", "kinetic_energy" and "potential_energy", and of a body or frame "pose:BODY",
    "velocity:BODY", "acceleration:BODY", "jacobian:BODY" and "jacobian_rate:BODY", at a point of it; `stepper` ("rk4",
    "rk8" or "semi_implicit") adds a step in time, with the corrections that keep loops closed. With `wrenches` forward
    and inverse dynamics, bias and Hamilton's equations take external wrenches on all bodies. The code is for one state,
    in doubles or floats (`scalar`); it allocates nothing and has no variables outside of functions. Every function
    answers 0, or a status if an input or the result is not finite. The header says what they take.

    With loops, `plans` are the plans to export: positions (states or arrays q of shape (nq,)) for which one is made
    each, or plans themselves; one for a general position unless given. A function tries the plan that the caller names
    first, then the others. Inverse dynamics gives the forces of the actuated joints, or of the first plan's independent
    ones. Cost: O(operations of the functions).

    >>> import tempfile
    >>> import bellcrank as bc
    >>> files = bc.export_c(bc.compile(bc.load("pendulum")), ["forward_dynamics"], tempfile.mkdtemp())
    >>> files.header.name, files.source.name
    ('pendulum.h', 'pendulum.c')
    """
    must_be("export_c: system", "System", system)
    if scalar not in ("double", "float"):
        raise ModelError(f"export_c: scalar {scalar!r} must be 'double' or 'float'")
    if isinstance(functions, str):
        raise ModelError(f"export_c: give a sequence of function names, not the text {functions!r}")
    functions = list(functions)
    for function in functions:
        check_function(system, function)
    if stepper is not None:
        check_stepper(stepper)
        check_function(system, "hamilton" if system.model.method == "momenta" else "forward_dynamics")
    if not functions and stepper is None:
        raise ModelError("export_c: name at least one function, or a stepper")
    title = _title(system, name)
    unit = CUnit(title, scalar)
    backend = CBackend(unit)
    chosen = _plans(system, plans)
    draft = Draft(system, unit, chosen, [_run(system, plan, backend) for plan in chosen], wrenches)
    for function in dict.fromkeys(functions):
        add_function(draft, function)
    if stepper is not None:
        add_step(draft, stepper)
    files = Exported(_folder(folder) / f"{title}.h", _folder(folder) / f"{title}.c")
    write_text(files.header, header_text(draft))
    write_text(files.source, unit.source(files.header.name))
    return files


def _title(system: System, name: str | None) -> str:
    """The prefix of all names in C."""
    if name is not None:
        if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
            raise ModelError(f"export_c: name {name!r} is no name in C: letters, digits and underscores, beginning "
                             "with a letter")
        return name
    made = re.sub(r"\W+", "_", system.model.name, flags=re.ASCII).strip("_").lower()
    return made if _IDENTIFIER.fullmatch(made) else f"machine_{made}".rstrip("_")


def _folder(folder: str | os.PathLike[str]) -> Path:
    """The folder, made if there is none."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise FileError(f"{path}: is a file; export_c needs a folder to write a header and a source into") from None
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be made: {getattr(error, 'strerror', None) or error}") from None
    return path


def _plans(system: System, plans: Sequence[Any]) -> list[LoopPlan | None]:
    """The plans to export, each once."""
    if not system.model.tree.looped:
        if len(plans):
            raise ModelError(f"export_c: {system.model.name!r} is a tree: it has no loops, and no plans for them")
        return [None]
    made = [_plan(system, given, i) for i, given in enumerate(plans)] or [system.plans.general()]
    return list({plan.key: plan for plan in made}.values())


def _plan(system: System, given: Any, index: int) -> LoopPlan:
    if isinstance(given, LoopPlan):
        return given
    try:
        q = np.asarray(getattr(given, "q", given), dtype=float)
    except (TypeError, ValueError):
        q = np.empty(0)
    if q.shape != (system.nq,) or not np.isfinite(q).all():
        raise ModelError(f"export_c: plans[{index}] is neither a plan, nor a state, nor a finite array q of shape "
                         f"({system.nq},)")
    return system.plans.at(q, float(getattr(given, "t", 0.0)))


def _run(system: System, plan: LoopPlan | None, backend: CBackend) -> CompiledEvaluator:
    tree = system.model.tree if plan is None else replace(system.model.tree, plan=plan)
    return CompiledEvaluator(tree, cast(Backend, backend), system.kernels.maker.schedule)
