"""Runs the functions of a tree on arrays: chooses schedule and kernel, loops, threads."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Protocol

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import SlowWarning, outside
from bellcrank.lowering.alike import halves_of
from bellcrank.lowering.choose import (
    UNROLL_LINKS,
    column_source,
    count_traced,
    entries_of,
    kernel_source,
    read_inputs,
    together,
    trace,
)
from bellcrank.lowering.function import Function
from bellcrank.lowering.link_kinds import RolledProgram
from bellcrank.scalar.count import OperationCount
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.target.backend import BACKENDS, Backend, BatchKernel, backend_named
from bellcrank.target.kernel_source import GraphKernel, KernelSource
from bellcrank.topology.tree import Tree

__all__ = ["UNROLL_LINKS", "CompiledEvaluator", "Evaluator", "Maker", "NumpyEvaluator", "TracedEvaluator",
           "completion", "counting_evaluator", "read_inputs", "warn_of_interpretation", "worker_threads"]

#: joint-space matrices up to this size are factored in compiled code, larger ones by LAPACK
WHOLE_SPEEDS = 24
#: looped machines: texts that look at all loops at once are compiled up to this many operations, else interpreted
LOOP_NODES = 40_000
#: batches of at least this many operations are shared between threads
THREAD_WORK = 2_000_000


class Evaluator(Protocol):
    """Computes one function of one tree for a batch of states."""

    tree: Tree

    def inputs(self, function: Function, wrenches: bool) -> dict[str, int]:
        """Names and lengths of the arrays the function reads, in order."""

    def run(self, function: Function, wrenches: bool, arrays: Sequence[Floats], n: int,
            lanes: bool | None = None) -> tuple[Floats, bool]:
        """Results of shape (n, size) for inputs of shape (n or 1, length), and whether all is finite; `lanes`: whether
        several states are computed side by side, if that is not to depend on their number."""


class NumpyEvaluator:
    """The reference: the algorithm's own text on NumPy arrays, one entry per state."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def inputs(self, function: Function, wrenches: bool) -> dict[str, int]:
        return read_inputs(self.tree, function, wrenches)

    def run(self, function: Function, wrenches: bool, arrays: Sequence[Floats], n: int,
            lanes: bool | None = None) -> tuple[Floats, bool]:
        given = dict(zip(self.inputs(function, wrenches), arrays, strict=True))

        def read(name: str, index: int) -> Number:
            if name not in given:
                return 0.0
            return given[name][0, index] if n == 1 else given[name][:, index]  # a number costs a fifth of an array

        out = np.full((n, function.size(self.tree)), np.nan)
        try:
            with np.errstate(all="ignore"):
                entries = entries_of(self.tree, function, read, wrenches)
        except ZeroDivisionError:  # constants alone are singular
            return out, False
        for i, entry in enumerate(entries):
            out[:, i] = entry
        return out, all(bool(np.isfinite(a).all()) for a in (*arrays, out))


#: functions whose results are small differences of large numbers, errors of loops and changes of energy: in doubles,
#: whatever the precision
_DIFFERENCES = frozenset(("loop_matrix", "loop_state", "largest_errors", "totals"))


class CompiledEvaluator:
    """Compiled code; kernels are made when they are first needed and kept."""

    def __init__(self, tree: Tree, backend: Backend, schedule: str = "auto", threads: int | None = None) -> None:
        self.tree, self.backend, self.schedule = tree, backend, schedule
        self.threads = threads if threads is not None else backend.threads()
        self._traces: dict[tuple[str, bool], list[Number] | RolledProgram] = {}
        self._sources: dict[tuple[str, bool], KernelSource] = {}
        self._kernels: dict[tuple[str, bool, int], BatchKernel] = {}
        self._lock = threading.RLock()
        self._whole: dict[str, bool] = {}
        self._warned = False

    def inputs(self, function: Function, wrenches: bool) -> dict[str, int]:
        return read_inputs(self.tree, function, wrenches)

    # -- tracing and compiling ------------------------------------------------------------------
    def trace(self, function: Function, wrenches: bool = False) -> list[Number] | RolledProgram:
        """The function as one graph (its result entries), or as a rolled program."""
        key = (function.name, wrenches)
        with self._lock:
            if key not in self._traces:
                self._traces[key] = trace(self.tree, function, wrenches, self.schedule)
            return self._traces[key]

    def operation_count(self, function: Function) -> OperationCount:
        return count_traced(self.tree, self.trace(function))

    def kernel(self, function: Function, wrenches: bool, width: int) -> BatchKernel:
        """The compiled function for one state (`width` 1) or for SIMD lanes. Returns while it is still being compiled,
        by another thread: the first call waits."""
        key = (function.name, wrenches, width)
        ready = self._kernels.get(key)
        if ready is not None:
            return ready
        with self._lock:
            if key not in self._kernels:
                backend = self.backend.in_doubles() if function.name in _DIFFERENCES else self.backend
                self._kernels[key] = backend.kernel(self._source(function, wrenches), width)
            return self._kernels[key]

    def _source(self, function: Function, wrenches: bool) -> KernelSource:
        """What kernels of the function are made of, whatever their width; its key takes a walk through the graph."""
        key = (function.name, wrenches)
        if key not in self._sources:
            inputs = self.inputs(function, wrenches)
            self._sources[key] = self._halved(
                kernel_source(self.tree, function, inputs, self.trace(function, wrenches)), [function], wrenches) \
                if function.columns is None else \
                column_source(self.tree, function, inputs, wrenches, lambda: self._flat(function, wrenches))
        return self._sources[key]

    def _flat(self, function: Function, wrenches: bool) -> list[Number]:
        traced = self.trace(function, wrenches)
        assert isinstance(traced, list)
        return traced

    def blocks(self, functions: Sequence[Function], wrenches: bool) -> list[tuple[KernelSource, tuple[str, ...]]]:
        """The functions for calls from compiled code: as one kernel if they can be one graph, so that they share what
        is common, else one each; each with the names of the functions it computes."""
        traced = [self.trace(f, wrenches) for f in functions]
        graphs = [t for t in traced if isinstance(t, list)]
        if len(functions) > 1 and len(graphs) == len(functions):
            inputs = {name: size for f in functions for name, size in self.inputs(f, wrenches).items()}
            whole = self._halved(GraphKernel(together(graphs), inputs), functions, wrenches)
            return [(whole, tuple(f.name for f in functions))]
        return [(self._halved(kernel_source(self.tree, f, self.inputs(f, wrenches), t), [f], wrenches), (f.name,))
                for f, t in zip(functions, traced, strict=True)]

    def _halved(self, source: KernelSource, functions: Sequence[Function], wrenches: bool) -> KernelSource:
        """The same, with a way to get it as two halves."""
        return replace(source, halves=lambda: halves_of(self.tree, functions, wrenches)) \
            if isinstance(source, GraphKernel) else source

    # -- running --------------------------------------------------------------------------------
    def width(self, n: int, lanes: bool | None) -> int:
        """How many of n states are computed side by side."""
        most = self.backend.lanes()
        return most if (2 * n > most if lanes is None else lanes) else 1

    def too_large(self, function: Function) -> bool:
        """Whether the function looks at all links or loops at once, of a machine that is too large for that: it is
        interpreted. Known before anything is traced."""
        return function.whole and not function.linear and not self._by_lapack(function) and (
            self.tree.n > UNROLL_LINKS or self.schedule == "rolled")

    def _by_lapack(self, function: Function) -> bool:
        """Whether LAPACK computes the function where it is not compiled."""
        return function.by_matrix and not self.tree.looped

    def compiles_whole(self, function: Function) -> bool:
        """Whether the function can be one kernel."""
        if not function.whole:
            return True
        found = self._whole.get(function.name)
        if found is None:
            found = self.tree.nu <= WHOLE_SPEEDS and self.schedule != "rolled" if self._by_lapack(function) else \
                not self.too_large(function) and self._small(function)
            self._whole[function.name] = found
        return found

    def _small(self, function: Function) -> bool:
        traced = self.trace(function)
        return isinstance(traced, list) and next(
            (len(x.graph.nodes) for x in traced if type(x) is Scalar), 0) <= LOOP_NODES

    def lacks_loop_joints(self, function: Function) -> bool:
        """Whether loops over groups leave the entries of loop joints to another function (`completion`): groups that
        are seen from their bases do not know all links around their loops."""
        return function.bases and bool(self.tree.loop_joints) and not isinstance(self.trace(function), list)

    def run(self, function: Function, wrenches: bool, arrays: Sequence[Floats], n: int,
            lanes: bool | None = None) -> tuple[Floats, bool]:
        out, finite = self._run(function, wrenches, arrays, n, lanes)
        if not (n and finite and self.compiles_whole(function) and self.lacks_loop_joints(function)):
            return out, finite
        given = dict(zip(self.inputs(function, wrenches), arrays, strict=True))
        add = given["u"] if function.loop_joints == "speed changes" else 0.0
        other, name = completion(function)
        rows = [np.ascontiguousarray(out + add) if x == name else given[x] for x in self.inputs(other, False)]
        found, finite = self._run(other, False, rows, n, lanes)
        return found - add, finite

    def _run(self, function: Function, wrenches: bool, arrays: Sequence[Floats], n: int, lanes: bool | None
             ) -> tuple[Floats, bool]:
        if not self.compiles_whole(function):
            if self._by_lapack(function):
                return solve_dense(self, wrenches, arrays, n)
            return self._interpret(function, wrenches, arrays, n)
        kernel = self.kernel(function, wrenches, self.width(n, lanes))
        out = np.empty((n, kernel.out_size))
        if n == 0:
            return out, True
        strides = kernel.strides([0 if len(a) == 1 else a.shape[1] for a in arrays])
        parts = self._parts(n, kernel, self.most_for_one_thread(function))
        if len(parts) == 1:
            with self._lock if kernel.scratch else nullcontext():
                return out, kernel.run(arrays, strides, out, 0, n)
        jobs = [worker_threads(os.getpid(), self.threads).submit(kernel.run, arrays, strides, out, begin, end,
                                                        kernel.workspace()) for begin, end in parts[1:]]
        first = kernel.run(arrays, strides, out, *parts[0], kernel.workspace())
        finished = [first, *(job.result() for job in jobs)]
        return out, all(finished)

    def _interpret(self, function: Function, wrenches: bool, arrays: Sequence[Floats], n: int) -> tuple[Floats, bool]:
        """By NumPy. `compile` has warned of machines that are too large; of code that is, this is the first to know."""
        if not self._warned and not self.too_large(function):
            self._warned = True
            warn_of_interpretation(f"{function.name} of {self.tree.name!r} takes over {LOOP_NODES} operations",
                                   self.tree)
        return NumpyEvaluator(self.tree).run(function, wrenches, arrays, n)

    def most_for_one_thread(self, function: Function) -> int:
        """States up to which threads are not worth their while: some 100 operations for every speed of a link or
        result, less for those of matrices, which are many; derivatives take 30 for each."""
        size, speeds = function.size(self.tree), self.tree.nu - int(self.tree.loop_speeds().sum())
        return THREAD_WORK // max(30 * size if function.made else 100 * min(size, speeds) + 4 * size, 1)

    def _parts(self, n: int, kernel: BatchKernel, alone: int) -> list[tuple[int, int]]:
        """Stretches of the batch, one per thread, each a whole number of blocks."""
        threads = min(self.threads, n // kernel.width) if n > alone else 1
        if threads <= 1:
            return [(0, n)]
        blocks = -(-n // kernel.width)
        cuts = [min(n, blocks * i // threads * kernel.width) for i in range(threads + 1)]
        return [(a, b) for a, b in pairwise(cuts) if b > a]


@cache
def worker_threads(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work, those of this process: a fork leaves them behind."""
    return ThreadPoolExecutor(threads, "bellcrank computes")


class TracedEvaluator:
    """Interprets what a compiled evaluator has traced: for a state or two of functions that take long to compile."""

    def __init__(self, run: CompiledEvaluator) -> None:
        self.run_compiled, self.tree = run, run.tree

    def inputs(self, function: Function, wrenches: bool) -> dict[str, int]:
        return self.run_compiled.inputs(function, wrenches)

    def run(self, function: Function, wrenches: bool, arrays: Sequence[Floats], n: int,
            lanes: bool | None = None) -> tuple[Floats, bool]:
        traced = self.run_compiled.trace(function, wrenches)
        if not isinstance(traced, list):
            return self.run_compiled.run(function, wrenches, arrays, n, lanes)
        given = dict(zip(self.inputs(function, wrenches), arrays, strict=True))
        out = np.empty((n, len(traced)))
        with np.errstate(all="ignore"):
            for i, entry in enumerate(evaluate(traced, lambda key: given[key[0]][:, key[1]])):
                out[:, i] = entry
        return out, all(bool(np.isfinite(a).all()) for a in (*arrays, out))


def warn_of_interpretation(why: str, tree: Tree) -> None:
    """Say that compiled code is not to be had, and what it costs."""
    rows = min(tree.nu, sum(c.rows for c in tree.closures) + len(tree.relations))
    seconds = 1.2e-6 * tree.n * rows * rows if rows else 2e-3 * tree.n
    warnings.warn(f"{why}: it is interpreted by NumPy, some {seconds:.1g} s a call; method="
                  f"{'elimination' if rows else 'recursive'!r} is compiled for any size, backend='numpy' asks for no "
                  "compiled code", SlowWarning, stacklevel=outside())


@dataclass(frozen=True)
class Maker:
    """Makes the evaluators of a system, as `compile` was asked to."""

    backend: str
    schedule: str = "auto"
    threads: int | None = None
    precision: str = "double"

    def __call__(self, tree: Tree) -> Evaluator:
        if self.backend == "numpy":
            return NumpyEvaluator(tree)
        return CompiledEvaluator(tree, backend_named(self.backend, self.precision), self.schedule, self.threads)


def completion(function: Function) -> tuple[Function, str]:
    """The function that puts the entries of loop joints to those of the tree, and the input that has these."""
    from bellcrank.formulations import SHARED

    return (SHARED["joint_accelerations"], "udot") if function.loop_joints == "accelerations" else (
        SHARED["joint_speeds"], "u")


def solve_dense(run: CompiledEvaluator, wrenches: bool, arrays: Sequence[Floats], n: int) -> tuple[Floats, bool]:
    """Forward dynamics from compiled mass matrices and biases, solved by LAPACK. Cost: O(nu^3) a state."""
    from bellcrank.formulations import SHARED, dense

    tree = run.tree
    full = Function("forward_dynamics", dense.forward_dynamics, ("q", "u", "tau"), "speeds")
    given = dict(zip(run.inputs(full, wrenches), arrays, strict=True))
    out = np.empty((n, tree.nu))
    if n == 0:
        return out, True
    finite = all(bool(np.isfinite(a).all()) for a in arrays)
    bias, matrix, motion = SHARED["bias"], SHARED["mass_matrix"], SHARED["prescribed"]
    h, _ = run.run(bias, wrenches, [given[k] for k in run.inputs(bias, wrenches)], n)
    m, _ = run.run(matrix, False, [given[k] for k in run.inputs(matrix, False)], n)
    driven, _ = run.run(motion, False, [given[k] for k in run.inputs(motion, False)], n)
    out[:] = driven
    tau = given["tau"]
    if tree.joint_forces:
        laws = SHARED["joint_laws"]
        h = h - run.run(laws, False, [given[k] for k in run.inputs(laws, False)], n)[0]
    if tree.actuators:
        drives = SHARED["drives"]
        tau = run.run(drives, False, [given[k] for k in run.inputs(drives, False)], n)[0]
    free = np.array(tree.free_speeds())
    if not finite:
        out[:] = np.nan
        return out, False
    m = m.reshape(n, tree.nu, tree.nu)[:, free[:, None], free[None, :]]
    try:
        out[:, free] = np.linalg.solve(m, (tau - h)[:, free, None])[..., 0]
    except np.linalg.LinAlgError:
        out[:, free] = np.nan
    return out, bool(np.isfinite(out).all())


def counting_evaluator(tree: Tree) -> CompiledEvaluator:
    """One that traces, and compiles only if it is asked to: for counts of operations."""
    return CompiledEvaluator(tree, backend_named(BACKENDS[0]))
