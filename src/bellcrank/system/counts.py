"""How many operations a method of a `System` takes; what has no number of its own says why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bellcrank.errors import ModelError
from bellcrank.scalar.count import OperationCount
from bellcrank.system.binding import known_function
from bellcrank.system.drive_programs import usual_drives
from bellcrank.system.evaluator import CompiledEvaluator, counting_evaluator
from bellcrank.system.forward_dynamics import evaluator_of
from bellcrank.system.tree_dynamics import FORCED

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["count_operations"]


def count_operations(plans: LoopPlans, name: str, *, loop_joints: bool = True) -> OperationCount:
    """The operations of one evaluation of the method called `name`, with or without those for the accelerations of
    loop joints."""
    function = known_function(plans.kernels.functions, name)
    looped, method = plans.tree.looped, plans.model.method
    if plans.model.dense_loops and name in ("forward_dynamics", "inverse_dynamics"):
        raise ModelError("operation_count: with loops 'dense' is solved by LAPACK and has no count of its own")
    if plans.kernels.springs_outside and name in FORCED:
        raise ModelError(f"operation_count: the springs between distant bodies of {plans.model.name!r} act from "
                         f"outside of the compiled code, which has too many bodies for them: {name!r} has no count "
                         "of its own")
    if name == "inverse_dynamics" and looped:
        return _count_drives(plans)
    if name == "hamilton" and looped:
        function = plans.kernels.functions["constrained_hamilton"]
    run = evaluator_of(plans, function.name)
    if not loop_joints and function.loop_joints:
        function = replace(function, name=f"{function.name}_of_links", loop_joints="")
    run = run if isinstance(run, CompiledEvaluator) else counting_evaluator(run.tree)
    if not run.compiles_whole(function) and run.schedule != "unrolled":
        if function.by_matrix and not looped:
            raise ModelError(f"operation_count: {method!r} is solved by LAPACK for this many speeds and has no count "
                             "of its own")
        raise ModelError(f"operation_count: {method!r} is too large for one kernel here and {name!r} is not "
                         "computed by one; compile with schedule='unrolled' to count it all the same")
    total = run.operation_count(function)
    if name in ("inverse_dynamics", "bias") and plans.tree.joint_forces:  # what the laws give is subtracted
        laws = run.operation_count(plans.kernels.functions["joint_laws"])
        return total.plus(laws).plus(OperationCount(adds=plans.tree.nu))
    return total


def _count_drives(plans: LoopPlans) -> OperationCount:
    """Inverse dynamics of a closed machine, for the usual drives."""
    program = usual_drives(plans)
    if program is None:
        raise ModelError(f"operation_count: with loops 'inverse_dynamics' of {plans.model.name!r} is put together by "
                         "LAPACK and has no count of its own: the machine is large, or its drives do not determine its "
                         "motion")
    run = program.run if isinstance(program.run, CompiledEvaluator) else counting_evaluator(program.run.tree)
    return run.operation_count(plans.kernels.functions[program.name])
