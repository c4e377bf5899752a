"""One package per source, the same verbs in each.

`METHODS` is the registry: a formulation is one package with `forward_dynamics` (and what else its source
has) and one line here.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

from bellcrank import __version__
from bellcrank.errors import ModelError
from bellcrank.formulations import complement, dense, divide, elimination, kane, momenta, operator, recursive, reduction
from bellcrank.formulations.common import body_kinetics, closing_steps
from bellcrank.formulations.common import link_kinematics as kinematics
from bellcrank.formulations.common.link_accelerations import accelerations
from bellcrank.formulations.elimination import (
    closed_inverse,
    constraint_loads,
    group_loads,
    group_rows,
    joint_reactions,
    projection,
)
from bellcrank.lowering import contact_rows, element_energy, element_views, looped
from bellcrank.lowering.function import Function
from bellcrank.topology.tree import Tree

__all__ = ["AUTO", "METHODS", "SHARED", "check_topology", "cite", "functions_of", "method_module", "method_names"]

METHODS: dict[str, ModuleType] = {"recursive": recursive, "kane": kane, "operator": operator, "complement": complement,
                                  "momenta": momenta, "dense": dense, "elimination": elimination,
                                  "reduction": reduction, "divide": divide}

#: how this library itself is cited; CITATION.cff says the same
_SOFTWARE = f"""@software{{bellcrank,
  author  = {{{{The Bellcrank team}}}},
  title   = {{{{Bellcrank: dynamics of machines made of linked bodies}}}},
  version = {{{__version__}}},
  year    = {{2026}},
  license = {{BSD-3-Clause}}
}}"""

#: what "auto" stands for, without loops and with them
AUTO = {False: "recursive", True: "elimination"}

#: verbs of a formulation module: inputs, layout and width of their results
_VERBS = {"forward_dynamics": (("q", "u", "tau"), "speeds", 1), "inverse_dynamics": (("q", "u", "udot"), "speeds", 1),
          "mass_matrix": (("q",), "matrix", 1), "joint_wrenches": (("q", "u", "udot"), "links", 6)}

#: functions that cover bodies that deform, beside those that formulations name as `FLEXIBLE`
_FLEXIBLE = ("poses", "velocities", "accelerations", "totals", "center_of_mass", "momentum", "kinetic_energy",
             "potential_energy", "motion_and_gravity", "prescribed", "driven_speeds", "joint_laws", "drives",
             "coordinate_rates", "joint_reactions", "stored_energy", "joint_energy",
             "dependent_accelerations", "joint_speeds", "joint_accelerations",
             "pair_wrenches", "element_reports", "displaced", "sped", "bias",
             "joint_wrenches", "inverse_dynamics", "mass_matrix", "displacements", "speed_changes", "corrections",
             "largest_errors", "dependent_speeds", "loop_state", "loop_matrix", "nearest_step", "projected",
             "closed_inverse", "allowed_motions", "independent_forces", "constraint_multipliers", "enforced_forces",
             "group_multipliers", "momenta")

#: functions that do not depend on the formulation
SHARED: dict[str, Function] = {f.name: replace(f, flexible=f.name in _FLEXIBLE) for f in (
    Function("poses", kinematics.poses, ("q",), "links", 12),
    Function("velocities", kinematics.velocities, ("q", "u"), "links", 6),
    Function("accelerations", accelerations, ("q", "u", "udot"), "links", 6),
    Function("screws", kinematics.screws, ("q", "u"), "screws", 12),
    Function("world_columns", kinematics.world_columns, ("q",), "screws", 6),
    Function("totals", kinematics.totals, ("q", "u"), "totals", 12),
    Function("center_of_mass", body_kinetics.center_of_mass, ("q",), "totals", 3),
    Function("momentum", body_kinetics.momentum, ("q", "u"), "totals", 6),
    Function("kinetic_energy", body_kinetics.kinetic_energy, ("q", "u"), "totals"),
    Function("potential_energy", body_kinetics.potential_energy, ("q",), "totals"),
    Function("motion_and_gravity", body_kinetics.motion_and_gravity, ("q", "u"), "totals"),
    Function("prescribed", kinematics.prescribed, ("q", "u"), "speeds"),
    Function("driven_speeds", kinematics.driven_speeds, ("q", "u"), "speeds"),
    Function("joint_laws", kinematics.joint_laws, ("q", "u"), "speeds"),
    Function("drives", kinematics.drives, ("q", "u", "tau"), "speeds", every_joint=True),
    Function("coordinate_rates", projection.coordinate_rates, ("q", "u"), "coordinates", every_joint=True),
    Function("displacements", projection.displacements, ("q",), "speeds", groups=True, loop_joints="displacements"),
    Function("speed_changes", projection.speed_changes, ("q", "u"), "speeds", groups=True,
             loop_joints="speed changes"),
    Function("corrections", projection.corrections, ("q", "u"), "twice", groups=True, loop_joints="corrections"),
    Function("largest_errors", group_rows.largest_errors, ("q", "u"), "groups", 3, groups=True),
    Function("dependent_speeds", projection.dependent_speeds, ("q", "u"), "speeds", groups=True,
             loop_joints="speeds"),
    Function("dependent_accelerations", projection.dependent_accelerations, ("q", "u", "udot"), "speeds", groups=True,
             loop_joints="accelerations"),
    Function("joint_speeds", kinematics.given_speeds, ("q", "u"), "speeds", whole=True, linear=True,
             loop_joints="speeds"),
    Function("joint_accelerations", kinematics.given_accelerations, ("q", "u", "udot"), "speeds", whole=True,
             linear=True, loop_joints="accelerations"),
    Function("loop_state", looped.loop_state, ("q", "u"), "conditions", whole=True),
    Function("loop_matrix", looped.loop_matrix, ("q",), "constraints", whole=True),
    Function("nearest_step", closing_steps.nearest_step, ("q", "dq", "scale"), "step", whole=True),
    Function("projected", closing_steps.projected, ("q", "u"), "state", whole=True),
    Function("closed_inverse", closed_inverse.closed_inverse, ("q", "u", "udot"), "speeds", whole=True),
    Function("constraint_multipliers", closed_inverse.constraint_multipliers, ("q", "u", "tau", "udot"), "rows",
             whole=True),
    Function("enforced_forces", closed_inverse.enforced_forces, ("q", "u", "tau", "udot"), "speeds", whole=True),
    Function("allowed_motions", constraint_loads.allowed_motions, ("q", "u"), "motions", whole=True),
    Function("independent_forces", closed_inverse.independent_forces, ("q", "u", "udot", "tau"), "speeds", groups=True),
    Function("group_multipliers", group_loads.group_multipliers, ("q", "tau"), "rows", groups=True),
    Function("closing_wrenches", group_loads.closing_wrenches, ("q", "tau"), "closures", 12, groups=True),
    Function("joint_reactions", joint_reactions.joint_reactions, ("q", "u", "tau", "udot"), "reactions",
             single=True),
    Function("loaded_wrenches", joint_reactions.loaded_wrenches, ("q", "u", "udot", "load"), "links", 6),
    Function("stored_energy", element_energy.stored_energy, ("q",), "totals", whole=True, linear=True),
    Function("dissipated_power", element_energy.dissipated_power, ("q", "u"), "totals", whole=True, linear=True),
    Function("joint_energy", element_energy.joint_energy, ("q",), "totals"),
    Function("element_reports", element_views.element_reports, ("q", "u"), "elements", element_views.REPORT,
             whole=True, linear=True),
    Function("pair_wrenches", looped.pair_wrenches, ("q", "u"), "wrenches", whole=True, linear=True),
    Function("contact_places", contact_rows.contact_places, ("q", "u"), "contacts", whole=True),
    Function("contact_depths", contact_rows.contact_depths, ("q",), "depths", whole=True),
    Function("joint_responses", operator.joint_responses, ("q", "column"), "speeds"),
    Function("displaced", projection.displaced, ("q", "dq"), "coordinates", every_joint=True),
    Function("sped", projection.sped, ("q", "u", "du"), "speeds", every_joint=True),
    Function("bias", recursive.inverse_dynamics, ("q", "u"), "speeds"),
    Function("joint_wrenches", recursive.joint_wrenches, ("q", "u", "udot"), "links", 6),
    Function("hamilton", momenta.hamilton, ("q", "p", "tau"), "screws", 2),
    Function("constrained_hamilton", momenta.constrained_hamilton, ("q", "p", "tau"), "screws", 2, whole=True,
             loop_joints="pairs"),
    Function("factor_columns", complement.factor_columns, ("q",), "columns"),
    Function("factor_diagonal", complement.factor_diagonal, ("q",), "speeds"),
    Function("momenta", momenta.momenta, ("q", "u"), "speeds"),
    Function("inverse_dynamics", recursive.inverse_dynamics, ("q", "u", "udot"), "speeds"),
    Function("mass_matrix", dense.mass_matrix, ("q",), "matrix"),
)}


def method_names() -> list[str]:
    """All methods, with their variants as ``method/variant``.

    >>> "recursive/origin" in method_names()
    True
    """
    return [*METHODS, *(f"{name}/{variant}" for name, module in METHODS.items()
                        for variant in getattr(module, "VARIANTS", {}))]


def method_module(method: str) -> ModuleType:
    """The module of a formulation by its name."""
    if method not in method_names():
        raise ModelError(f"no method {method!r}; there are {', '.join(method_names())} and 'auto'")
    return METHODS[method.split("/")[0]]


def functions_of(method: str, looped: bool = False) -> dict[str, Function]:
    """All functions, those of the formulation where it has its own; `looped`: for machines with loops."""
    module = method_module(method)
    _, _, variant = method.partition("/")
    names = {**vars(module), **(module.VARIANTS[variant] if variant else {})}
    covering = () if variant else names.get("FLEXIBLE", ())
    own = {name: Function(name, names[name], inputs, layout, width, whole=name in names.get("WHOLE", ()),
                          by_matrix=name in names.get("BY_MATRIX", ()), flexible=name in covering)
           for name, (inputs, layout, width) in _VERBS.items() if name in names}
    over = names.get("OVER", ())
    if looped and "constrained_dynamics" in names:
        own["forward_dynamics"] = Function("forward_dynamics", names["constrained_dynamics"], ("q", "u", "tau"),
                                           "speeds", whole="groups" not in over, groups="groups" in over,
                                           bases="bases" in over, flexible="constrained_dynamics" in covering,
                                           loop_joints="" if "joints" in over else "accelerations",
                                           keeps_loop_joints="joints" in over)
    if looped:
        own |= {name: Function(name, names[name], ("q", "u"), "speeds", groups="groups" in over, bases="bases" in over,
                               loop_joints=what)
                for name, what in (("dependent_speeds", "speeds"), ("speed_changes", "speed changes")) if name in names}
    if looped and "constrained_inverse" in names:
        own["constrained_inverse"] = Function(
            "constrained_inverse", lambda tree: closed_inverse.where_loops_hold(tree, module.constrained_inverse(tree)),
            ("q", "u", "udot"), "speeds", whole=True)
    return {**SHARED, **own}


def _deforms(method: str, looped: bool) -> bool:
    """Whether a formulation covers bodies that deform; the full equations with loops are solved elsewhere."""
    return functions_of(method, looped)["forward_dynamics"].flexible or (looped and method == "dense")


def check_topology(method: str, tree: Tree) -> None:
    """Refuse a machine with loops, or with bodies that deform, that a formulation covers in no state."""
    if tree.flexible:
        body, covering = tree.joint_names[tree.flexible[0]], [m for m in METHODS if _deforms(m, tree.looped)]
        if not _deforms(method, tree.looped):
            raise ModelError(f"method {method!r} does not cover {'loops with ' * tree.looped}bodies that deform, such "
                             f"as {body!r}; use one of {', '.join(covering)} or 'auto'")
    check = getattr(method_module(method), "check_topology", None)
    if check is not None and tree.looped:
        check(tree)


def cite(method: str | None = None) -> str:
    """The BibTeX entry of this software; with a `method`, that of the formulation's source; of "auto", those of the
    methods that it chooses from.

    >>> cite().splitlines()[0]
    '@software{bellcrank,'
    >>> cite("recursive").splitlines()[0]
    '@article{kang2003recursive,'
    """
    if method is None:
        return _SOFTWARE
    if method == "auto":
        chosen = f"% 'auto' is {AUTO[False]!r} for trees and {AUTO[True]!r} for machines with loops (model.method)"
        return "\n\n".join([chosen, *(cite(name) for name in AUTO.values())])
    return str(method_module(method).BIBTEX)
