"""A `System` as equations to integrate: states, plans of its loops, and compiled programs for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.loops.closer import Target, project
from bellcrank.lowering.choose import read_inputs, trace
from bellcrank.lowering.function import Function
from bellcrank.scalar.graph import Graph, Number, Scalar
from bellcrank.simulate.arms import ArmBlocks, arm_blocks
from bellcrank.simulate.idle_joints import idle_joints
from bellcrank.simulate.machine import Code, make_code
from bellcrank.system.evaluator import CompiledEvaluator
from bellcrank.target.backend import Backend, Block
from bellcrank.target.kernel_source import GraphKernel

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.simulate.control import Drive
    from bellcrank.system.machine_functions import Machine

__all__ = ["Equations"]

#: wrenches of springs between distant links are compiled up to this many traced operations
SPRING_NODES = 400_000
#: machines of single states that are kept
_SINGLES = 1024


class Equations:
    """What is integrated: y = (q, u), or (q, p) if the method is Hamilton's, for a batch of states."""

    programs = "programs"  #: where they are kept

    def __init__(self, system: Machine, batch: tuple[int, ...], tau: Floats, wrenches: Floats | None,
                 drives: Sequence[Drive] = (), separate: bool = False, plain: bool = False,
                 closing: str = "position", settles: bool = False) -> None:
        self.system, self.batch, self.separate, self.plain, self.closing = system, batch, separate, plain, closing
        #: whether loop joints that nothing reads are left to the corrections, see `idle_joints`
        self.settles = settles and closing == "position"
        self.count = int(np.prod(batch, dtype=np.int64))
        self.momenta = system.model.method == "momenta"
        self.tau, self.wrenches = tau, wrenches
        self.drives = tuple(d for d in drives if d.traced)
        self.external = wrenches is not None or any(d.target == "wrench" for d in drives)
        self.held = any(d.period is not None for d in self.drives)
        #: whether some forces are held over steps
        self.sampled = any(d.period is not None or not d.traced for d in drives)
        #: programs without drives are the same for every run
        own: dict[Any, Code] = {}
        self._codes: dict[Any, Code] = own if self.drives else system.kernels.kept(self.programs, dict)
        self._blocks: dict[int, list[tuple[Block, str]]] = {}
        self._singles: dict[int, Machine] = {}

    # -- states ---------------------------------------------------------------------------------
    def pack(self, q: Floats, u: Floats, t: float) -> Floats:
        """States (count, nq + nu) from coordinates and speeds."""
        second = self.system.momenta(q, u, t=t, speeds="tree") if self.momenta else u
        return np.concatenate([q, second], axis=-1)

    def unpack(self, y: Floats, t: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Coordinates and speeds of states (..., nq + nu); `t` broadcasts against the leading axes."""
        nq = self.system.nq
        q, second = y[..., :nq], y[..., nq:]
        if not self.momenta or not y.size:
            return q, second
        return q, self.system.hamilton(q, second, t=t)[0]

    def closed(self, y: Floats, t: float, index: int) -> tuple[Floats, float]:
        """The state nearest to y (size) in which the loops are closed, and what is left of their errors."""
        system = self.single(index)
        sizes, nq = system.model.tree.speed_sizes, system.nq
        target = Target(system.model.bound_mask(), 1.0 / sizes)
        q, left = system.plans.closer.close(y[:nq], target, t) if self.closing == "position" else (y[:nq], 0.0)
        if self.momenta:  # speeds follow from momenta, and heed the loops
            return np.concatenate([q, y[nq:]]), left
        u, rest = project(system.plans.loops, q, y[nq:], target, t)
        return np.concatenate([q, u]), max(left, float(rest) / (1.0 + float(np.abs(u / sizes).max(initial=0.0))))

    def single(self, index: int) -> Machine:
        """The machine of one state, with its own parameters."""
        system = self.system
        if not system.model.batched:
            return system
        if index not in self._singles:  # kept: what is known of its loops in general takes some 30 ms to find
            if len(self._singles) >= _SINGLES:
                self._singles.clear()
            self._singles[index] = system.with_parameters(**{
                name: float(np.broadcast_to(v, self.batch).reshape(-1)[index])
                for name, v in system.model.values.items()})
        return self._singles[index]

    # -- plans ----------------------------------------------------------------------------------
    def first_plan(self, q: Floats, t: float) -> LoopPlan | None:
        """The plan to start with."""
        return self.system.plans.first(q, t) if self.system.model.tree.looped else None

    def plan_at(self, q: Floats, t: float, wishes: bool = True) -> LoopPlan | None:
        """A plan made for one position; raises SingularError where there is none. `wishes`: speeds that the user wants
        independent stay so if they can."""
        return self.system.plans.at(q, t, wishes) if self.system.model.tree.looped else None

    def code(self, plan: LoopPlan | None, width: int) -> Code:
        """The compiled program for a plan."""
        key = (plan.key if plan is not None else None, width, self.external, self.separate, self.plain, self.closing,
               self.settles)
        if key not in self._codes:
            run = self.system.kernels.evaluator if plan is None else self.system.kernels.planned(plan)
            assert isinstance(run, CompiledEvaluator)
            if width not in self._blocks:
                self._blocks[width] = [(self._block(d.graph(self.system), d.inputs(self.system), d.target, width),
                                        d.target) for d in self.drives]
            self._codes[key] = self.make(run, self.system.kernels.functions, width,
                                         arm_blocks(self.system, plan, width, self.external))
        return self._codes[key]

    def make(self, run: CompiledEvaluator, functions: Mapping[str, Function], width: int, arms: ArmBlocks | None
             ) -> Code:
        """Compile the program."""
        springs = self._springs(width) if self.system.kernels.springs_outside else None
        settles = self.settles and not self.momenta and springs is None and arms is None and \
            run.backend.foreign() is None
        told = [x for d in self.drives for x in d.graph(self.system)]
        return make_code(run, functions, width, wrenches=self.external, momenta=self.momenta,
                         drives=self._blocks[width], held=self.held, separate=self.separate, plain=self.plain,
                         springs=springs, closing=self.closing, arms=arms,
                         idle=idle_joints(run, functions, self.external, told) if settles else None)

    @property
    def backend(self) -> Backend:
        """What compiles the programs."""
        run = self.system.kernels.evaluator
        assert isinstance(run, CompiledEvaluator)
        return run.backend

    def _block(self, entries: Sequence[Number], inputs: Mapping[str, int], name: str, width: int) -> Block:
        outputs = [x if type(x) is Scalar else float(x) for x in entries]
        return self.backend.block(GraphKernel(outputs, inputs), (name,), width)

    def _springs(self, width: int) -> Block:
        """The wrenches of elements between distant links, with those given from outside added."""
        entries = _spring_graph(self.system)
        inputs = read_inputs(self.system.model.tree, self.system.kernels.functions["pair_wrenches"], False)
        if self.external:
            graph = next((x.graph for x in entries if type(x) is Scalar), None) or Graph()
            entries = [x + graph.leaf(("outside", i)) for i, x in enumerate(entries)]
            inputs["outside"] = len(entries)
        return self._block(entries, inputs, "springs", width)

    @staticmethod
    def compiled(system: Machine, q: Floats, t: float, speeds: bool = False) -> bool:
        """Whether the whole program of a system that is at q can be compiled; `speeds`: one that never has momenta."""
        run = system.kernels.evaluator
        if not isinstance(run, CompiledEvaluator) or system.model.dense_loops:
            return False
        momenta = system.model.method == "momenta" and not speeds
        if system.kernels.springs_outside and (momenta or next(
                (len(x.graph.nodes) for x in _spring_graph(system) if type(x) is Scalar), 0) > SPRING_NODES):
            return False
        name = "forward_dynamics"
        if momenta:
            name = "constrained_hamilton" if system.model.tree.looped else "hamilton"
        if not system.model.tree.looped:
            return run.compiles_whole(system.kernels.functions[name])
        planned = system.kernels.planned(system.plans.first(q, t))
        assert isinstance(planned, CompiledEvaluator)
        return planned.compiles_whole(system.kernels.functions[name])

    def idle(self, kind: str) -> dict[tuple[Any, int], SimpleQueue[Any]]:
        """Steppers that nobody uses, by plan and width; runs without drives share them."""
        if self.drives:
            return {}
        key = ("idle", kind, self.external, self.separate, self.plain, self.closing, self.settles)
        found: dict[tuple[Any, int], SimpleQueue[Any]] = self.system.kernels.kept(key, dict)
        return found

    # -- inputs ---------------------------------------------------------------------------------
    def inputs(self, states: npt.NDArray[np.int64]) -> dict[str, Floats]:
        """tau, wrenches and parameters of some states, as the buffers take them."""
        out = {"tau": self.tau[states] if len(self.tau) > 1 else self.tau}
        if self.wrenches is not None:
            out["wrench"] = self.wrenches[states] if len(self.wrenches) > 1 else self.wrenches
        if self.system.model.tree.parameters:
            out["parameters"] = self.parameters()[states]
        return out

    def carried(self, code: Code) -> int | None:
        """The entry of the inputs from which on they hold what goes from step to step; None if there is no such."""
        return None

    def remember(self, states: npt.NDArray[np.int64], code: Code, inputs: Floats) -> None:
        """Keep what held controllers have said, for the rest of their period."""
        for d in self.drives if self.held else ():
            start = code.inputs[d.target]
            kept = self.tau if d.target == "tau" else self.wrenches
            assert kept is not None
            if len(kept) < self.count:
                kept = np.repeat(kept, self.count, axis=0)
            kept[states] = inputs[:, start:start + kept.shape[1]]
            if d.target == "tau":
                self.tau = kept
            else:
                self.wrenches = kept

    def parameters(self) -> Floats:
        """Values of the parameters, (count, parameters)."""
        values = [np.asarray(v, dtype=float) for v in self.system.model.values.values()]
        return np.stack([np.broadcast_to(v, self.batch).reshape(self.count) for v in values], axis=-1)


def _spring_graph(system: Machine) -> list[Number]:
    """The traced wrenches of elements between distant links; kept, because tracing a large machine takes a while."""
    def traced() -> list[Number]:
        found = trace(system.model.tree, system.kernels.functions["pair_wrenches"], False, "unrolled")
        assert isinstance(found, list)
        return found

    return system.kernels.kept("springs", traced)
