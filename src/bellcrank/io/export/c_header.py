"""The header of exported C: sizes, names of coordinates, and what every function takes and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bellcrank.target.c.unit import CUnit, filled, wrapped
from bellcrank.target.switching import BAD_INPUT, GOOD, NO_RESULT
from bellcrank.topology.tree import wrench_order

if TYPE_CHECKING:
    from bellcrank.compiled.system import System
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.system.evaluator import CompiledEvaluator

__all__ = ["Declared", "Draft", "header_text"]


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
