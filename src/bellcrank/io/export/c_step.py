"""A fixed step of a machine in C: the library's own methods, with its corrections of loops and quaternions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bellcrank.errors import ModelError, hint
from bellcrank.integrate import tableaux
from bellcrank.integrate.fixed_step import OneStep, Stepping, explicit_step, semi_implicit_step, single_step
from bellcrank.integrate.tableaux import Explicit
from bellcrank.io.export.c_header import Declared, Draft
from bellcrank.simulate.machine import Code, make_code
from bellcrank.simulate.steppers import NEAR_AND_FAR, ROUNDS
from bellcrank.target.array_loops import copy
from bellcrank.target.backend import Call
from bellcrank.target.c.c_text import Arguments, Pointer, literal
from bellcrank.target.c.unit import CBlock
from bellcrank.target.program import Builder, Int, Real
from bellcrank.target.switching import switching

__all__ = ["STEPS", "add_step", "check_stepper"]

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
        codes.append(make_code(run, system.kernels.functions, 1, momenta=system.model.method == "momenta",
                               separate=stepper == "semi_implicit"))
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
