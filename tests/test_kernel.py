"""Kernels on batches: sizes and tails, broadcasting, non-finite flags, schedules, threads, concurrency."""

from __future__ import annotations

import functools
import math
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc
from assembly_text import unrolled_text
from bellcrank.examples import chains
from bellcrank.lowering.link_kinds import RolledProgram
from bellcrank.scalar import functions as fn
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph
from bellcrank.system import evaluator
from bellcrank.target.llvm import jit
from bellcrank.target.llvm.kernel import Kernel

EPS = float(np.finfo(float).eps)
Floats = npt.NDArray[np.float64]
WIDTHS = (1, 2, 4, 8)
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 100)
GUARD = 1e77  # no result looks like this
INPUTS = {"a": 3, "b": 2}


# -- a small function of two arrays -----------------------------------------------------------
@functools.cache
def outputs() -> tuple[Any, ...]:
    graph = Graph()
    a, b = ([graph.leaf((name, i)) for i in range(size)] for name, size in INPUTS.items())
    return fn.sin(a[0]) * b[0] + a[2], a[1] / (b[1] * b[1] + 1.0), 2.5, fn.exp(-(a[0] * a[0])) - b[1]


@functools.cache
def small(width: int) -> Kernel:
    return Kernel(jit.load(unrolled_text(outputs(), INPUTS, width)), INPUTS, len(outputs()), width)


def expected(a: Floats, b: Floats) -> Floats:
    given = {"a": a, "b": b}
    columns = evaluate(outputs(), lambda key: given[key[0]][:, key[1]])
    return np.stack([np.broadcast_to(c, len(a)) for c in columns], axis=-1)


MARGIN = 1024  # wide enough that even a wrong kernel does not write anywhere else


def guarded(values: Floats, fill: float) -> tuple[Floats, Floats]:
    """A copy of `values` in the middle of a larger array, and that array."""
    around = np.full(values.size + 2 * MARGIN, fill)
    inside: Floats = np.ndarray(values.shape, float, around, 8 * MARGIN)  # stays there even if it is empty
    inside[...] = values
    return inside, around


def untouched(around: Floats, size: int, fill: float) -> bool:
    return bool((around[:MARGIN] == fill).all() and (around[MARGIN + size:] == fill).all())


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.mark.parametrize("n", SIZES)
def test_batches_of_any_size(n: int, width: int, rng: np.random.Generator) -> None:
    kernel = small(width)
    # NaN around the inputs: reading beyond the end would be noticed
    (a, _), (b, _) = (guarded(rng.normal(size=(n, size)), math.nan) for size in INPUTS.values())
    out, around = guarded(np.full((n, kernel.out_size), GUARD), GUARD)
    assert kernel.run([a, b], kernel.packed_strides, out, 0, n)
    assert untouched(around, out.size, GUARD)
    # a handful of roundings of terms below 8 in size
    np.testing.assert_allclose(out, expected(a, b), rtol=0.0, atol=8 * EPS * 8)


def test_part_of_a_batch(width: int, rng: np.random.Generator) -> None:
    kernel = small(width)
    a, b = (guarded(rng.normal(size=(20, size)), math.nan)[0] for size in INPUTS.values())
    whole = np.empty((20, kernel.out_size))
    assert kernel.run([a, b], kernel.packed_strides, whole, 0, 20)
    for begin, end in ((0, 20), (3, 8), (7, 8), (19, 20), (1, 18)):
        out, around = guarded(np.full((20, kernel.out_size), GUARD), GUARD)
        assert kernel.run([a, b], kernel.packed_strides, out, begin, end)
        assert untouched(around, out.size, GUARD)
        np.testing.assert_array_equal(out[begin:end], whole[begin:end])
        assert (out[:begin] == GUARD).all() and (out[end:] == GUARD).all()


@pytest.mark.parametrize("n", [1, 3, 8, 9])
def test_stride_zero_repeats_one_state(n: int, width: int, rng: np.random.Generator) -> None:
    kernel = small(width)
    a, b = (rng.normal(size=(n, size)) for size in INPUTS.values())
    for still in ((0,), (1,), (0, 1)):
        arrays, strides = [a, b], kernel.packed_strides.copy()
        for k in still:
            arrays[k], _ = guarded(arrays[k][:1], math.nan)
            strides[k] = 0
        out, around = guarded(np.full((n, kernel.out_size), GUARD), GUARD)
        assert kernel.run(arrays, strides, out, 0, n)
        full = [np.broadcast_to(x, (n, x.shape[1])).copy() for x in arrays]
        wanted = np.empty_like(out)
        assert kernel.run(full, kernel.packed_strides, wanted, 0, n)
        np.testing.assert_array_equal(out, wanted)
        assert untouched(around, out.size, GUARD)


def test_wide_strides_step_over_what_is_between(width: int, rng: np.random.Generator) -> None:
    kernel = small(width)
    a, b = rng.normal(size=(9, 3)), rng.normal(size=(9, 2))
    spread = np.full((9, 5), math.nan)
    spread[:, :3] = a
    out, wanted = np.empty((9, kernel.out_size)), np.empty((9, kernel.out_size))
    assert kernel.run([spread, b], np.array([5, 2]), out, 0, 9)
    assert kernel.run([a, b], kernel.packed_strides, wanted, 0, 9)
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_every_input_is_checked(bad: float, width: int, rng: np.random.Generator) -> None:
    kernel, n = small(width), 2 * width + 1
    a, b = (rng.normal(size=(n, size)) for size in INPUTS.values())
    out, clean = np.empty((n, kernel.out_size)), np.empty((n, kernel.out_size))
    assert kernel.run([a, b], kernel.packed_strides, clean, 0, n)
    for array in (a, b):
        for state in range(n):
            for entry in range(array.shape[1]):
                before = array[state, entry]
                array[state, entry] = bad
                assert not kernel.run([a, b], kernel.packed_strides, out, 0, n), (state, entry)
                array[state, entry] = before
                others = np.arange(n) != state
                np.testing.assert_allclose(out[others], clean[others], rtol=0.0, atol=8 * EPS * 8)
    assert kernel.run([a, b], kernel.packed_strides, out, 0, n)


def test_inputs_that_nothing_uses_are_checked_too(width: int) -> None:
    graph = Graph()
    x = graph.leaf(("x", 0))
    kernel = Kernel(jit.load(unrolled_text([x], {"x": 2}, width)), {"x": 2}, 1, width)
    given, out = np.ones((3, 2)), np.empty((3, 1))
    assert kernel.run([given], kernel.packed_strides, out, 0, 3)
    given[2, 1] = math.nan
    assert not kernel.run([given], kernel.packed_strides, out, 0, 3)


def test_every_output_is_checked(width: int) -> None:
    graph = Graph()
    x = graph.leaf(("x", 0))
    results = [1.0 / x, fn.log(x), x * 1e300 * x, fn.sqrt(x), fn.exp(x), x]
    kernel = Kernel(jit.load(unrolled_text(results, {"x": 1}, width)), {"x": 1}, len(results), width)
    n = 2 * width + 1
    for value, fine in ((1.0, True), (0.0, False), (-1.0, False), (1e20, False), (1e3, False), (5e-324, False),
                        (600.0, True)):
        for state in range(n):
            given, out = np.ones((n, 1)), np.empty((n, len(results)))
            given[state] = value
            assert kernel.run([given], kernel.packed_strides, out, 0, n) is fine, (value, state)
            assert bool(np.isfinite(out).all()) is fine


def test_large_finite_numbers_raise_no_alarm(width: int) -> None:
    graph = Graph()
    x = [graph.leaf(("x", i)) for i in range(6)]
    kernel = Kernel(jit.load(unrolled_text([-v for v in x], {"x": 6}, width)), {"x": 6}, 6, width)
    given, out = np.full((5, 6), 1.7e308), np.empty((5, 6))
    assert kernel.run([given], kernel.packed_strides, out, 0, 5)
    np.testing.assert_array_equal(out, -given)


# -- the same machine by all schedules --------------------------------------------------------
ALONE = ("double_pendulum", "crane", "chain")  # also one state at a time; that is another kernel to compile
MACHINES = ("pendulum", "double_pendulum", "gyroscope", "scara", "arm", "crane", "quadruped", "chain")


@functools.cache
def system(name: str, schedule: str) -> bc.System:
    """A compiled example; "numpy" is the reference."""
    if schedule == "numpy":
        return bc.compile(bc.load(name), backend="numpy")
    return bc.compile(bc.load(name), schedule=schedule)


def is_rolled(machine: bc.System, name: str) -> bool:
    return isinstance(machine.kernels.evaluator.trace(machine.kernels.functions[name]), RolledProgram)


Call = Callable[[bc.System, Floats, Floats, Floats], Floats]
#: one function of each layout of results: per speed, matrix, per link, per column, totals
CALLS: dict[str, Call] = {
    "forward_dynamics": lambda s, q, u, x: s.forward_dynamics(q, u, x),
    "inverse_dynamics": lambda s, q, u, x: s.inverse_dynamics(q, u, x),
    "mass_matrix": lambda s, q, u, x: s.mass_matrix(q),
    "pose": lambda s, q, u, x: s.pose(q, s.body_names[-1]).position,
    "jacobian_rate": lambda s, q, u, x: s.jacobian_rate(q, u, s.body_names[-1]),
    "momentum": lambda s, q, u, x: s.momentum(q, u),
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("call", CALLS)
def test_schedules_agree(machine: str, call: str) -> None:
    rng = np.random.default_rng(3)
    reference = system(machine, "numpy")
    q, u = reference.random_state(rng, 5)
    x = rng.normal(size=u.shape)
    wanted = CALLS[call](reference, q, u, x)
    allowed = 64 * EPS * np.abs(wanted).max()  # a few roundings per link, up to 13 links; measured: below 12
    for schedule in ("unrolled", "rolled"):
        made = system(machine, schedule)
        got = CALLS[call](made, q, u, x)
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=0.0, atol=allowed)
        for i in range(len(q) if machine in ALONE else 0):
            np.testing.assert_allclose(CALLS[call](made, q[i], u[i], x[i]), wanted[i], rtol=0.0, atol=allowed)
    assert not is_rolled(system(machine, "unrolled"), "inverse_dynamics")
    assert is_rolled(system(machine, "rolled"), "inverse_dynamics")


@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
def test_wrenches_by_all_schedules(schedule: str) -> None:
    rng = np.random.default_rng(4)
    reference, made = system("crane", "numpy"), system("crane", schedule)
    q, u = reference.random_state(rng, 6)
    wrenches = rng.normal(size=(6, len(made.body_names), 6))
    wanted = reference.inverse_dynamics(q, u, u, wrenches=wrenches)
    got = made.inverse_dynamics(q, u, u, wrenches=wrenches)
    np.testing.assert_allclose(got, wanted, rtol=0.0, atol=64 * EPS * np.abs(wanted).max())
    wrenches[5, 1, 3] = math.nan
    with pytest.raises(bc.StateError, match="wrench"):
        made.inverse_dynamics(q, u, u, wrenches=wrenches)


@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
@pytest.mark.parametrize("name", ["inverse_dynamics", "mass_matrix", "totals", "poses"])
def test_kernels_of_machines_stay_within_their_arrays(name: str, schedule: str, width: int,
                                                      rng: np.random.Generator) -> None:
    made = system("crane", schedule)
    function = made.kernels.functions[name]
    kernel = made.kernels.evaluator.kernel(function, False, width)
    assert (kernel.rolled is not None) == (schedule == "rolled")
    given = [rng.normal(size=(9, size)) for size in kernel.inputs.values()]
    results = []
    for n in (9, 1, 2, 3, 5, 8):
        arrays = [guarded(a[:n], math.nan)[0] for a in given]
        out, around = guarded(np.full((n, kernel.out_size), GUARD), GUARD)
        assert kernel.run(arrays, kernel.packed_strides, out, 0, n)
        assert untouched(around, out.size, GUARD)
        results.append(out)
        np.testing.assert_array_equal(out, results[0][:n])  # lanes do not influence one another


@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
def test_an_empty_range_does_nothing(schedule: str, width: int, rng: np.random.Generator) -> None:
    made = system("crane", schedule)
    kernel = made.kernels.evaluator.kernel(made.kernels.functions["inverse_dynamics"], False, width)
    arrays = [guarded(rng.normal(size=(9, size)), math.nan)[0] for size in kernel.inputs.values()]
    for begin, end in ((0, 0), (4, 4), (9, 9)):
        out, around = guarded(np.full((9, kernel.out_size), GUARD), GUARD)
        assert kernel.run(arrays, kernel.packed_strides, out, begin, end)
        assert (around == GUARD).all()


@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
def test_kernels_of_machines_check_every_input(schedule: str, width: int, rng: np.random.Generator) -> None:
    made = system("crane", schedule)
    kernel = made.kernels.evaluator.kernel(made.kernels.functions["forward_dynamics"], False, width)
    n = width + 1
    arrays = [rng.normal(size=(n, size)) for size in kernel.inputs.values()]
    out = np.empty((n, kernel.out_size))
    for array in arrays:
        for state in (0, n - 2, n - 1):
            for entry in range(array.shape[1]):
                for bad in (math.nan, -math.inf):
                    before = array[state, entry]
                    array[state, entry] = bad
                    assert not kernel.run(arrays, kernel.packed_strides, out, 0, n)
                    array[state, entry] = before
    assert kernel.run(arrays, kernel.packed_strides, out, 0, n)
    arrays[0][n - 1, 2:6] = 0.0  # no orientation: the result is not finite
    assert not kernel.run(arrays, kernel.packed_strides, out, 0, n)


# -- batches of a System ----------------------------------------------------------------------
@pytest.mark.parametrize("schedule", ["unrolled", "rolled", "numpy"])
@pytest.mark.parametrize("shape", [(0,), (1,), (2,), (3,), (4,), (5,), (7,), (8,), (9,), (100,), (0, 3), (2, 0), (2, 3),
                                   (1, 1), (1, 4, 1)])
def test_systems_take_batches_of_any_shape(shape: tuple[int, ...], schedule: str, rng: np.random.Generator) -> None:
    made = system("scara", schedule)
    q, u = made.random_state(rng, shape)
    tau = rng.normal(size=u.shape)
    got = made.forward_dynamics(q, u, tau)
    assert got.shape == (*shape, made.nu) and got.dtype == np.float64
    one_by_one = [made.forward_dynamics(a, b, c) for a, b, c in
                  zip(q.reshape(-1, made.nq), u.reshape(-1, made.nu), tau.reshape(-1, made.nu), strict=True)]
    if one_by_one:
        wanted = np.array(one_by_one).reshape(got.shape)
        # the inertia of the quill is 10^4 times smaller than the arm's
        np.testing.assert_allclose(got, wanted, rtol=1e4 * EPS, atol=1e4 * EPS)
    assert made.mass_matrix(q).shape == (*shape, made.nu, made.nu)
    assert made.kinetic_energy(q, u).shape == shape


@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
def test_systems_broadcast(schedule: str, rng: np.random.Generator) -> None:
    made = system("scara", schedule)
    q, _ = made.random_state(rng, (4, 1))
    _, u = made.random_state(rng, (3,))
    tau = rng.normal(size=made.nu)
    got = made.forward_dynamics(q, u, tau)
    assert got.shape == (4, 3, made.nu)
    full = [np.broadcast_to(x, (4, 3, x.shape[-1])).copy() for x in (q, u, tau)]
    np.testing.assert_array_equal(got, made.forward_dynamics(*full))
    with pytest.raises(bc.StateError, match="do not fit together"):
        made.forward_dynamics(q[:, 0], u, tau)


# -- threads ----------------------------------------------------------------------------------
@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
def test_threads_change_nothing(schedule: str, rng: np.random.Generator) -> None:
    n = 40_003  # long enough for the threads to overlap
    alone = bc.compile(bc.load("arm"), schedule=schedule, threads=1)
    q, u = alone.random_state(rng, n)
    tau = rng.normal(size=u.shape)
    wanted = alone.forward_dynamics(q, u, tau)
    for threads in (2, 3):
        several = bc.compile(bc.load("arm"), schedule=schedule, threads=threads)
        np.testing.assert_array_equal(several.forward_dynamics(q, u, tau), wanted)
        run = several.kernels.evaluator
        kernel = run.kernel(several.kernels.functions["forward_dynamics"], False, jit.vector_width())
        assert len(run._parts(n, kernel, 0)) == threads
        tau[n - 1, 2] = math.nan
        with pytest.raises(bc.StateError, match=rf"tau\[2\] \(j3.angle\) is nan, batch index \({n - 1},\)"):
            several.forward_dynamics(q, u, tau)
        tau[n - 1, 2] = 0.0
        wanted = alone.forward_dynamics(q, u, tau)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_on_small_batches(threads: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setattr(evaluator, "THREAD_WORK", 0)
    many = bc.compile(bc.load("double_pendulum"), schedule="rolled", threads=threads)
    for n in (1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 33, 100):
        q, u = many.random_state(rng, n)
        wanted = system("double_pendulum", "numpy").forward_dynamics(q, u)
        np.testing.assert_allclose(many.forward_dynamics(q, u), wanted, rtol=0.0,
                                   atol=64 * EPS * np.abs(wanted).max())
        for w in WIDTHS:
            kernel = many.kernels.evaluator.kernel(many.kernels.functions["forward_dynamics"], False, w)
            parts = many.kernels.evaluator._parts(n, kernel, 0)
            assert [i for a, b in parts for i in range(a, b)] == list(range(n))
            assert all(a % w == 0 for a, _ in parts) and len(parts) <= threads


# -- many Python threads ----------------------------------------------------------------------
@pytest.fixture
def quick_switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(jobs: list[Callable[[], None]]) -> None:
    """Run all at once; the first error of any of them is raised."""
    barrier = threading.Barrier(len(jobs))
    errors: list[BaseException] = []

    def run(job: Callable[[], None]) -> None:
        try:
            barrier.wait()
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("ways", ["door", "batch", "door and batch", "bound and batch", "lanes"])
def test_many_threads_use_one_system(ways: str, quick_switching: None) -> None:
    """Rolled kernels have a workspace; no two calls may use the same one at once."""
    n = 4000  # long enough for calls to overlap
    made = bc.compile(chains.random_chain(n), schedule="rolled", threads=1)
    rng = np.random.default_rng(1)
    q, u, udot = rng.uniform(-3.0, 3.0, (6, n)), 0.01 * rng.normal(size=(6, n)), rng.normal(size=(6, n))
    wanted = np.array([made.inverse_dynamics(q[i], u[i], udot[i]) for i in range(6)])
    lanes = made.inverse_dynamics(q, u, udot)
    np.testing.assert_allclose(lanes, wanted, rtol=0.0, atol=1e4 * EPS * np.abs(wanted).max())

    def door(start: int) -> None:
        for k in range(25):
            i = (start + k) % 6
            np.testing.assert_array_equal(made.inverse_dynamics(q[i], u[i], udot[i]), wanted[i])

    def batch(start: int) -> None:
        for k in range(25):
            i = (start + k) % 6
            np.testing.assert_array_equal(made.inverse_dynamics(q[i:i + 1], u[i:i + 1], udot[i:i + 1])[0], wanted[i])

    def bound(start: int) -> None:
        call = made.bind("inverse_dynamics", q[start].copy(), u[start].copy(), udot[start].copy())
        for _ in range(25):
            np.testing.assert_array_equal(call(), wanted[start])

    def wide(_: int) -> None:
        for _ in range(6):
            np.testing.assert_array_equal(made.inverse_dynamics(q, u, udot), lanes)

    kinds = {"door": [door], "batch": [batch], "door and batch": [door, batch], "bound and batch": [bound, batch],
             "lanes": [wide]}[ways]
    for _ in range(3):
        together([functools.partial(kinds[i % len(kinds)], i) for i in range(4)])


@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
def test_the_first_call_may_come_from_many_threads(schedule: str, quick_switching: None) -> None:
    made = bc.compile(bc.load("arm"), schedule=schedule)
    rng = np.random.default_rng(7)
    q, u = made.random_state(rng, 8)
    wanted = system("arm", "numpy").inverse_dynamics(q, u, u)
    allowed = 64 * EPS * np.abs(wanted).max()

    def job(i: int) -> None:
        got = made.inverse_dynamics(q, u, u) if i % 2 else made.inverse_dynamics(q[i], u[i], u[i])
        np.testing.assert_allclose(got, wanted if i % 2 else wanted[i], rtol=0.0, atol=allowed)

    together([functools.partial(job, i) for i in range(8)])


def test_systems_are_compiled_in_many_threads_at_once(quick_switching: None) -> None:
    rng = np.random.default_rng(8)

    def job(i: int) -> None:
        mechanism = chains.random_chain(3, seed=i)
        made, reference = bc.compile(mechanism), bc.compile(mechanism, backend="numpy")
        q, u = states[i]
        wanted = reference.inverse_dynamics(q, u, u)
        np.testing.assert_allclose(made.inverse_dynamics(q, u, u), wanted, rtol=0.0,
                                   atol=64 * EPS * np.abs(wanted).max())

    states = [(rng.normal(size=3), rng.normal(size=3)) for _ in range(6)]
    together([functools.partial(job, i) for i in range(6)])
