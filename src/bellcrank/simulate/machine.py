"""A machine's equations of motion as a program of compiled blocks, and the memory they run on.

The state is y = (q, u), or (q, p) for Hamilton's equations. Blocks read the state from `stage` and write its rate to
`rate`; corrections put `stage` back onto the loops and make quaternions unit. See `integrate.fixed_step`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.derivatives.rates import rates_jacobian
from bellcrank.errors import NotYetError
from bellcrank.lowering.function import Function
from bellcrank.scalar.graph import Scalar
from bellcrank.simulate.arms import ArmBlocks
from bellcrank.simulate.idle_joints import SETTLED, IdleJoints
from bellcrank.system.evaluator import CompiledEvaluator, completion
from bellcrank.target.backend import Backend, Block, Call, CallLists, DriverBuffers
from bellcrank.target.program import DriverLayout
from bellcrank.topology.tree import Tree

__all__ = ["Code", "fill", "make_code", "packed", "state_sizes", "unpacked"]

Ints = npt.NDArray[np.int64]

#: exact Jacobians are compiled up to this many operations; larger ones are made by differences
SLOPE_NODES = 40_000


@dataclass(frozen=True)
class Code:
    """Everything compiled for one machine, plan and width."""

    backend: Backend
    nq: int
    nu: int
    width: int
    sizes: dict[str, int]  #: of the buffers, in values
    places: Mapping[str, tuple[str, int]]  #: of inputs: buffer and entry
    rates: tuple[Call, ...]
    forces: tuple[Call, ...]
    corrections: tuple[Call, ...]
    shift: int  #: entries of `shift` that tell how far a correction moved
    holds: tuple[Call, ...]
    #: calls for the Jacobian of the rates by the state, row by row; none where it is not to be had exactly
    slopes: Callable[[], tuple[Call, ...]]
    inputs: Mapping[str, int]  #: where tau, wrenches and parameters begin among the inputs
    more: Mapping[str, tuple[Call, ...]] = field(default_factory=dict)  #: calls that some drivers alone make, by name

    @property
    def real(self) -> str:
        """The kind of numbers it computes with: few states are the business of the CPU, in doubles."""
        return self.backend.real if self.width > 1 else "double"

    @property
    def size(self) -> int:
        """Numbers in a state."""
        return self.nq + self.nu

    def memory(self, layout: DriverLayout, extra: Mapping[str, int]) -> DriverBuffers:
        """Buffers, call lists and arguments of a driver."""
        made = self.backend.memory(self._stiff if "n_derivatives" in layout.integers else self._calls, layout, extra)
        made.set(n_inputs=self.sizes["inputs"])
        return made

    @cached_property
    def _calls(self) -> CallLists:
        """What drivers call."""
        return CallLists(self.width, self.sizes, self.places, {
            "rates": self.rates, "forces": self.forces, "corrections": self.corrections, "holds": self.holds,
            **self.more})

    @cached_property
    def _stiff(self) -> CallLists:
        """The same with Jacobians."""
        return replace(self._calls, lists={**self._calls.lists, "derivatives": self.slopes()}, made={})


class Compiler:
    """Puts the program of one machine together."""

    def __init__(self, run: CompiledEvaluator, functions: Mapping[str, Function], width: int, wrenches: bool) -> None:
        self.run, self.functions, self.width, self.wrenches = run, functions, width, wrenches
        self.nq, self.nu = run.tree.nq, run.tree.nu

    def calls(self, names: Sequence[str], buffer: str, start: int, external: bool = False,
              inputs: Mapping[str, tuple[str, int]] | None = None) -> list[Call]:
        """Calls that compute functions, their results one after another."""
        out, wanted = [], {self.functions[n].name: self.functions[n] for n in names}
        for source, made in self.run.blocks(list(wanted.values()), external):
            out.append(Call(self.run.backend.block(source, made, self.width), buffer, start, inputs or {}))
            out += [call for n in made for call in self._completed(wanted[n], buffer, start, inputs or {})]
            start += source.size
        return out

    def _completed(self, function: Function, buffer: str, start: int, inputs: Mapping[str, tuple[str, int]]
                   ) -> list[Call]:
        """What computes the entries of loop joints where the function leaves them out."""
        if not self.run.lacks_loop_joints(function):
            return []
        if function.loop_joints == "speed changes":
            raise NotYetError(f"simulate: closing='velocity' for {self.run.tree.name!r}, which has too many links for "
                              f"method 'reduction' to change the speeds of joints at which loops are cut; take "
                              "closing='position'")
        other, name = completion(function)
        (source, made), = self.run.blocks([other], False)
        block = self.run.backend.block(source, made, self.width)
        return [Call(block, buffer, start, {**inputs, name: (buffer, start)})]

    def copy(self, source: str, stride: int, offset: int, buffer: str, start: int) -> Call:
        block = self.run.backend.copying(self.nu, stride, offset, self.width)
        return Call(block, buffer, start, {"from": (source, 0)})

    def corrections(self, momenta: bool, plain: bool, closing: str) -> list[Call]:
        """Loops closed, quaternions unit, prescribed joints where they should be; `plain` leaves momenta alone."""
        tree = self.run.tree
        out: list[Call] = []
        if tree.looped and closing == "position":
            out += self.calls(["displacements" if momenta else "corrections"], "shift", 0)
        elif tree.looped and closing == "velocity" and not momenta:
            out += self.calls(["speed_changes"], "shift", self.nu)
        if tree.looped or self.nq != self.nu or any(p is not None for p in tree.prescribed):
            out += self.calls(["displaced"] if momenta else ["displaced", "sped"], "stage", 0)
        if momenta and tree.looped and not plain and closing != "none":
            # of consistent speeds: impulses of the loops are of no interest
            out += self.hamilton()
            out += self.calls(["momenta"], "stage", self.nq, inputs={"u": ("speed", 0)})
        return out

    def slopes(self, exact: bool) -> tuple[Call, ...]:
        """The Jacobian of the rates, where drives and the like do not enter them, and it is not too large."""
        function = rates_jacobian(self.functions, self.run.tree) if exact else None
        if function is None:
            return ()
        found = self.run.trace(function, self.wrenches)
        nodes = next((len(x.graph.nodes) for x in found if type(x) is Scalar), 0) if isinstance(found, list) else 0
        if nodes > SLOPE_NODES:
            return ()
        (source, made), = self.run.blocks([function], self.wrenches)
        return (Call(self.run.backend.block(source, made, self.width), "jacobian", 0),)

    def consistent(self, closing: str) -> list[Call]:
        """Dependent speeds from independent ones, in `stage`: Anderson & Critchley (46)-(51)."""
        if closing != "velocity" or not self.run.tree.looped:
            return []
        return [*self.calls(["speed_changes"], "shift", self.nu), *self.calls(["sped"], "stage", self.nq)]

    def in_parts(self, arms: ArmBlocks, outside: int) -> list[Call]:
        """Accelerations: arms, step (D) of what is closed, and arms with its wrenches on their ends (in `springs`)."""
        own = Compiler(arms.run, {"forward_dynamics": arms.forward}, self.width, True)
        return [Call(arms.arms, "arms", 0),
                Call(arms.closing, "springs", 0, {"arms": ("arms", 0), "outside": ("inputs", outside)}),
                *own.calls(["forward_dynamics"], "rate", self.nq, True, {"wrench": ("springs", 0)})]

    def hamilton(self) -> list[Call]:
        """From (q, p): speeds in `speed`, rates of p in every second entry of `pairs`."""
        name = "constrained_hamilton" if self.run.tree.looped else "hamilton"
        return [*self.calls([name], "pairs", 0, self.wrenches), self.copy("pairs", 2, 0, "speed", 0)]


def make_code(run: CompiledEvaluator, functions: Mapping[str, Function], width: int, *, wrenches: bool = False,
              momenta: bool = False, drives: Sequence[tuple[Block, str]] = (), held: bool = False,
              separate: bool = False, plain: bool = False, springs: Block | None = None, closing: str = "position",
              arms: ArmBlocks | None = None, idle: IdleJoints | None = None) -> Code:
    """Compile the program of a machine.

    `drives` compute tau or wrenches from the state, in every evaluation or `held` over several steps. `separate`: the
    forces are wanted without the rates (semi-implicit methods). `plain`: corrections leave momenta alone, whose part
    along the loops' impulses means nothing, but whose jumps would spoil an interpolant. `springs` computes the wrenches
    of elements between links of large machines, the given ones included.
    `closing`: whether steps close loops in "position" and velocity, in "velocity" alone (which rates then always see
    consistent), or not at all ("none"). `arms` computes accelerations in parts that other sets of closures share.
    `idle` loop joints are left to the corrections.
    """
    tree = run.tree
    nq, nu = tree.nq, tree.nu
    c = Compiler(run, functions if idle is None else idle.functions, width, wrenches)
    outside = 6 * (len(tree.body_names) - 1) if wrenches else 0
    inputs = {"tau": 0, "wrench": nu, "parameters": nu + outside}
    sizes = {**state_sizes(tree), "arms": 0 if arms is None else arms.size,
             "inputs": nu + outside + len(tree.parameters), "shift": 2 * nu + (0 if idle is None else idle.size)}
    places = {"q": ("stage", 0), "u": ("stage", nq), "p": ("stage", nq), "t": ("clock", 0), "dq": ("shift", 0),
              "du": ("shift", nu), SETTLED: ("shift", 2 * nu), **{name: ("inputs", at) for name, at in inputs.items()}}
    where = {"u": ("speed", 0)} if momenta else {}
    tell = [Call(block, "inputs", inputs[name], where) for block, name in drives]
    now = [] if held else tell
    if momenta:
        found = c.hamilton()  # the result depends on drives, which depend on speeds: with drives twice
        rates = [*found, *c.calls(["coordinate_rates"], "rate", 0, inputs=where)]
        forces = [*(found if separate else ()), *now, *(found[:-1] if now else ()), c.copy("pairs", 2, 1, "rate", nq)]
        tell = [*found, *tell]
    elif arms is not None:
        rates = [*c.consistent(closing), *c.calls(["coordinate_rates"], "rate", 0)]
        forces = [*(c.consistent(closing) if separate else ()), *now, *c.in_parts(arms, inputs["wrench"])]
    elif not (now or tell or separate or springs):
        rates = c.consistent(closing)
        forces = c.calls(["coordinate_rates", "forward_dynamics"], "rate", 0, wrenches)
    else:
        rates = [*c.consistent(closing), *c.calls(["coordinate_rates"], "rate", 0)]
        act = [] if springs is None else [Call(springs, "springs", 0, {"outside": ("inputs", inputs["wrench"])})]
        forces = [*(c.consistent(closing) if separate else ()), *now, *act,
                  *c.calls(["forward_dynamics"], "rate", nq, wrenches or springs is not None,
                           {} if springs is None else {"wrench": ("springs", 0)})]
    exact = not (momenta or drives or springs) and closing != "velocity"
    return Code(run.backend, nq, nu, width, sizes, places, tuple(rates), tuple(forces),
                tuple(c.corrections(momenta, plain, closing)), nu if tree.looped and closing == "position" else 0,
                tuple(tell) if held else (), cache(partial(c.slopes, exact)), inputs)


def state_sizes(tree: Tree) -> dict[str, int]:
    """Entries of the buffers that every program has."""
    nq, nu = tree.nq, tree.nu
    return {"y": nq + nu, "stage": nq + nu, "rate": nq + nu, "clock": 1, "shift": 2 * nu, "pairs": 2 * nu, "speed": nu,
            "springs": 6 * (len(tree.body_names) - 1)}


def fill(memory: DriverBuffers, code: Code, name: str, values: Floats) -> None:
    """Put the values of one state, shape (1, entries), into a buffer (width 1)."""
    buffer, start = (("inputs", code.inputs[name]) if name in code.inputs else (name, 0))
    memory.buffers[buffer][start:start + values.shape[1]] = values[0]


def packed(rows: Floats, width: int) -> Floats:
    """States (count, entries) as blocks with their lanes side by side, (blocks, entries, width); the last fills up."""
    blocks = -(-len(rows) // width)
    if blocks * width != len(rows):
        rows = rows[np.minimum(np.arange(blocks * width), len(rows) - 1)]
    # a copy: drivers write into it
    return np.array(rows.reshape(blocks, width, rows.shape[1]).transpose(0, 2, 1), dtype=float, order="C")


def unpacked(blocks: Floats, count: int) -> Floats:
    """The inverse of `packed`."""
    return np.ascontiguousarray(blocks.transpose(0, 2, 1)).reshape(-1, blocks.shape[1])[:count]
