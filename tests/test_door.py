"""The native door and bound calls: what fits goes through, all else takes the general way or is refused."""

from __future__ import annotations

import array
import ctypes
import functools
import gc
import math
import os
import re
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc
import children
from bellcrank.system import kernels
from bellcrank.target.backend import DoorForm
from bellcrank.target.llvm import door
from bellcrank.target.llvm.kernel import Kernel

Floats = npt.NDArray[np.float64]
needs_door = pytest.mark.skipif(not door.available(), reason="no native door into this interpreter")
SCHEDULES = ("unrolled", "rolled")
LABELS = ("q", "u", "tau")


@functools.cache
def machine(name: str = "arm", schedule: str = "auto", backend: str = "llvm") -> bc.System:
    return bc.compile(bc.load(name), backend=backend, schedule=schedule)


def state(system: bc.System, seed: int = 0) -> list[Floats]:
    rng = np.random.default_rng(seed)
    q, u = system.random_state(rng)
    return [q, u, rng.normal(size=system.nu)]


def generally(system: bc.System, name: str, arrays: list[Any]) -> Floats:
    """The same through the general way, which no door has a part in."""
    inputs = system.kernels.functions[name].inputs
    return system.kernels.evaluate(name, dict(zip(inputs, arrays, strict=True))).result


@pytest.fixture
def general_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that took the general way."""
    calls: list[str] = []
    evaluate = kernels.Kernels._evaluate

    def watched(self: kernels.Kernels, name: str, *args: Any, **more: Any) -> Any:
        calls.append(name)
        return evaluate(self, name, *args, **more)

    monkeypatch.setattr(kernels.Kernels, "_evaluate", watched)
    return calls


def alone(text: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, which may crash."""
    head = "import numpy as np\nimport bellcrank as bc\narm = bc.compile(bc.load('arm'))\nq = np.full(6, 0.25)\n"
    return children.run_code(head + text)


# -- results ----------------------------------------------------------------------------------
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", ["arm", "crane", "quadruped", "pendulum"])
@pytest.mark.parametrize("function", ["forward_dynamics", "inverse_dynamics"])
def test_the_door_gives_what_the_general_way_gives(function: str, name: str, schedule: str,
                                                   general_calls: list[str]) -> None:
    system = machine(name, schedule)
    for seed in range(5):
        arrays = state(system, seed)
        before = [a.copy() for a in arrays]
        got = getattr(system, function)(*arrays)
        if door.available():
            assert general_calls == []
        assert got.shape == (system.nu,) and got.dtype == np.float64 and got.flags.writeable
        np.testing.assert_array_equal(got, generally(system, function, arrays))
        for a, b in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(a, b)
        general_calls.clear()


def test_results_are_new_arrays() -> None:
    system = machine()
    arrays = state(system)
    first, second = system.forward_dynamics(*arrays), system.forward_dynamics(*arrays)
    assert first is not second and not np.shares_memory(first, second)
    assert not any(np.shares_memory(first, a) for a in arrays)
    keep = first.copy()
    second[:] = 0.0
    np.testing.assert_array_equal(first, keep)


def test_without_forces(general_calls: list[str]) -> None:
    system = machine()
    q, u, _ = state(system)
    got = system.forward_dynamics(q, u)
    assert general_calls == [] or not door.available()
    np.testing.assert_array_equal(got, generally(system, "forward_dynamics", [q, u, np.zeros(6)]))


def test_names_times_states_and_batches_of_one_take_the_door(general_calls: list[str]) -> None:
    system = machine()
    q, u, tau = state(system)
    wanted = generally(system, "forward_dynamics", [q, u, tau])
    general_calls.clear()
    some = bc.State(q, u, 0.5)
    for got in (system.forward_dynamics(q, u, tau=tau), system.forward_dynamics(q=q, u=u, tau=tau),
                system.forward_dynamics(q, u, tau, t=1.0), system.forward_dynamics(some, tau),
                system.forward_dynamics(some, tau, t=2.0), system.forward_dynamics(q[None], u[None], tau[None])[0],
                system.forward_dynamics(q[None], u, tau)[0], *system.forward_dynamics(np.stack([q, q]), u, tau)):
        np.testing.assert_array_equal(got, wanted)
    assert general_calls == [] or not door.available()
    for t in (math.nan, "now", None):
        with pytest.raises(bc.StateError, match="t"):
            system.forward_dynamics(q, u, tau, t=t)  # type: ignore[arg-type]
    with pytest.raises(bc.StateError):
        system.forward_dynamics(q[None], np.stack([u, u[::-1], u]) * math.nan, tau)


def test_a_batch_of_one_beside_others_is_not_one_state() -> None:
    """One row of q and three of u are three states."""
    system = machine()
    q, u, tau = state(system)
    rows = np.stack([u, 2.0 * u, 3.0 * u])
    found = system.forward_dynamics(q[None], rows, tau)
    assert found.shape == (3, 6)
    for row, got in zip(rows, found, strict=True):
        np.testing.assert_allclose(got, system.forward_dynamics(q, row, tau), rtol=1e-12, atol=1e-12)


def test_the_same_array_three_times() -> None:
    system = machine()
    q = state(system)[0]
    np.testing.assert_array_equal(system.forward_dynamics(q, q, q), generally(system, "forward_dynamics", [q, q, q]))


def test_the_numpy_backend_has_no_door_and_the_same_results() -> None:
    system, reference = machine(), machine(backend="numpy")
    arrays = state(system)
    wanted = reference.inverse_dynamics(*arrays)
    # rounding of sums over six links
    np.testing.assert_allclose(system.inverse_dynamics(*arrays), wanted, rtol=0.0,
                               atol=64 * np.finfo(float).eps * np.abs(wanted).max())


# -- inputs of other kinds --------------------------------------------------------------------
class Subclass(np.ndarray):
    """An array of another type."""


def unaligned(a: Floats) -> Floats:
    raw = np.zeros(a.nbytes + 8, dtype=np.uint8)
    start = 1 - raw.ctypes.data % 8 if raw.ctypes.data % 8 <= 1 else 9 - raw.ctypes.data % 8
    made = raw[start:start + a.nbytes].view(float)
    made[:] = a
    assert not made.flags.aligned
    return made


def frozen(a: Floats) -> Floats:
    a = a.copy()
    a.flags.writeable = False
    return a


KINDS: dict[str, Callable[[Floats], Any]] = {
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(a.tolist()),
    "list of numpy numbers": list,
    "float32": lambda a: a.astype(np.float32),
    "float16": lambda a: a.astype(np.float16),
    "longdouble": lambda a: a.astype(np.longdouble),
    "int64": lambda a: (4 * a).astype(np.int64),
    "int8": lambda a: (4 * a).astype(np.int8),
    "bool": lambda a: a > 0.0,
    "byte-swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "every second": lambda a: np.repeat(a, 2)[::2],
    "backwards": lambda a: a[::-1].copy()[::-1],
    "column of a C array": lambda a: np.stack([a, a + 1.0], axis=-1)[:, 0],
    "row of an F array": lambda a: np.asfortranarray(np.stack([a, a + 1.0]))[0],
    "row of a C array": lambda a: np.stack([a + 1.0, a])[1],
    "part of an array": lambda a: np.concatenate([[9.0], a, [9.0]])[1:-1],
    "read-only": frozen,
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "subclass": lambda a: a.view(Subclass),
    "record array": lambda a: a.view(np.recarray),
    "unaligned": unaligned,
    "memoryview": lambda a: memoryview(a),
    "array.array": lambda a: array.array("d", a.tolist()),
    "dtype with metadata": lambda a: a.astype(np.dtype("f8", metadata={"unit": "rad"})),
    "view of bytes": lambda a: np.frombuffer(a.tobytes()),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", KINDS)
def test_other_kinds_of_arrays(kind: str, schedule: str) -> None:
    system = machine("arm", schedule)
    arrays = [np.round(8 * a) / 8 for a in state(system, 3)]  # exact in single and half precision too
    for which in (0, 1, 2, None):
        given: list[Any] = [KINDS[kind](a) if which in (i, None) else a for i, a in enumerate(arrays)]
        got = system.forward_dynamics(*given)
        assert type(got) is np.ndarray and got.shape == (6,) and got.dtype == np.float64
        np.testing.assert_array_equal(got, generally(system, "forward_dynamics", given))


@pytest.mark.parametrize("which", [0, 1, 2])
def test_one_array_with_a_batch_axis(which: int) -> None:
    system = machine()
    arrays = state(system)
    wanted = system.forward_dynamics(*arrays)
    given = list(arrays)
    given[which] = arrays[which][None]
    got = system.forward_dynamics(*given)
    assert got.shape == (1, 6)
    np.testing.assert_array_equal(got[0], wanted)
    given[which] = np.asfortranarray(np.stack([arrays[which]] * 2))
    got = system.forward_dynamics(*given)
    assert got.shape == (2, 6)
    np.testing.assert_allclose(got, [wanted] * 2, rtol=1e-12)  # in lanes; the arm's inertias differ by 10^4


SHAPES: dict[str, Any] = {
    "too short": np.zeros(5), "too long": np.zeros(7), "empty": np.zeros(0), "a number": 0.5,
    "a numpy number": np.float64(0.5), "no dimensions": np.array(0.5), "a column": np.zeros((6, 1)),
    "empty list": [], "short list": [0.0] * 5, "a matrix too wide": np.zeros((2, 7))}


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_wrong_shapes_are_named(shape: str, which: int) -> None:
    given: list[Any] = state(machine())
    given[which] = SHAPES[shape]
    with pytest.raises(bc.StateError, match=rf"^{LABELS[which]}: the last axis must have 6 entries"):
        machine().forward_dynamics(*given)


JUNK: dict[str, Any] = {
    "words": ["a"] * 6, "a word": "zero", "a mapping": {"q": 1.0}, "ragged": [[0.0] * 6, [0.0] * 5],
    "a function": len, "complex numbers": np.ones(6) * 1j, "complex list": [1j] * 6, "a set": {1.0, 2.0},
    "None": None, "objects": np.array([0.5, 1.0, None, 0.0, 0.0, 0.0], dtype=object)}


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("junk", JUNK)
def test_what_is_not_numbers_is_refused(junk: str, which: int) -> None:
    if junk == "None" and LABELS[which] == "tau":
        pytest.skip("no forces, which is fine")
    given: list[Any] = state(machine())
    given[which] = JUNK[junk]
    with pytest.raises((bc.StateError, bc.ModelError), match=rf"^{LABELS[which]}: "):  # or a joint that is not there
        machine().forward_dynamics(*given)


@pytest.mark.parametrize("arguments", [0, 1, 4])
def test_wrong_number_of_arguments(arguments: int) -> None:
    with pytest.raises(TypeError):
        machine().forward_dynamics(*[np.zeros(6)] * arguments)
    with pytest.raises(TypeError):
        machine().inverse_dynamics(*[np.zeros(6)] * arguments)


# -- what is not finite -----------------------------------------------------------------------
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("function", ["forward_dynamics", "inverse_dynamics"])
def test_entries_that_are_not_finite_are_named(function: str, bad: float, schedule: str) -> None:
    system = machine("crane", schedule)
    labels = ("q", "u", "tau" if function == "forward_dynamics" else "udot")
    arrays = state(system)
    for label, given in zip(labels, arrays, strict=True):
        names = system.coordinate_names if label == "q" else system.speed_names
        for entry, entry_name in enumerate(names):
            before = given[entry]
            given[entry] = bad
            with pytest.raises(bc.StateError) as caught:
                getattr(system, function)(*arrays)
            assert f"{label}[{entry}] ({entry_name}) is {bad}" in str(caught.value)
            given[entry] = before
    assert np.isfinite(getattr(system, function)(*arrays)).all()


def test_results_that_are_not_finite_are_an_error() -> None:
    system = machine("crane")
    q, u, tau = state(system)
    q[2:] = 0.0  # a quaternion without direction
    with pytest.raises(bc.SingularError, match="quaternion is zero"):
        system.forward_dynamics(q, u, tau)
    arm = machine()
    with pytest.raises(bc.SingularError, match="overflow"):
        arm.forward_dynamics(np.zeros(6), np.full(6, 1e200), np.zeros(6))


# -- the door itself --------------------------------------------------------------------------
@pytest.fixture
def kernel() -> Kernel:
    system = machine()
    return system.kernels.evaluator.kernel(system.kernels.functions["forward_dynamics"], False, 1)


@needs_door
def test_answers_of_the_door(kernel: Kernel) -> None:
    through = door.make_door(kernel, DoorForm())
    q, u, tau = state(machine())
    out = through(q, u, tau)
    assert type(out) is np.ndarray and out.flags.owndata and out.flags.writeable and out is not through(q, u, tau)
    np.testing.assert_array_equal(out, generally(machine(), "forward_dynamics", [q, u, tau]))
    assert through(q, u, np.full(6, math.nan)) is None
    for arguments in ([], [q], [q, u], [q, u, tau, out], [q, u, tau, out, out], [q] * 50):
        assert through(*arguments) is None
    with pytest.raises(TypeError):
        through(q, u, tau=tau)
    fitting = ("row of a C array", "part of an array", "read-only", "view of bytes")
    for misfit in (*JUNK.values(), *SHAPES.values(), *(KINDS[k](q) for k in KINDS if k not in fitting)):
        for place in range(3):
            given: list[Any] = [q, u, tau]
            given[place] = misfit
            assert through(*given) is None


@needs_door
def test_forms_of_the_door(kernel: Kernel) -> None:
    """Inputs that are left out, arguments that are not looked at, shapes, parts: of one state and of many."""
    q, u, tau = state(machine())
    wanted = machine().forward_dynamics(q, u, tau)
    left_out = door.make_door(kernel, DoorForm((2, 3), skipped=1, defaults=(tau.copy(),)))
    for arguments in ((q, "name", u), (q, None, u, tau), (q, q, u)):
        np.testing.assert_array_equal(left_out(*arguments), wanted.reshape(2, 3))
    for arguments in ((), (q,), (q, "name"), (q, u, "name"), (q, "name", u, tau, tau), (q, "name", u, "name")):
        assert left_out(*arguments) is None
    shown = door.make_door(kernel, DoorForm(parts=((1, (2,), (3,)), (0, (2, 2), (2, 1)))))
    first, second = shown(q, u, tau)
    np.testing.assert_array_equal(first, wanted[1::3])
    np.testing.assert_array_equal(second, wanted[:4].reshape(2, 2))
    assert first.base is second.base and first.flags.writeable and second.flags.c_contiguous
    system, form = machine(), DoorForm((2, 3), skipped=0, defaults=(tau.copy(),))
    wide = system.kernels.evaluator.kernel(system.kernels.functions["forward_dynamics"], False, 4)
    many = door.make_batch_door(wide, form, 2, 5)
    rows = np.stack([q, 2.0 * q, 3.0 * q])
    found = many(None, rows, u)
    assert found.shape == (3, 2, 3)
    for row, out in zip(rows, found, strict=True):
        np.testing.assert_allclose(out.ravel(), system.forward_dynamics(row, u, tau), rtol=1e-12, atol=1e-12)
    assert many(None, rows[:1], u) is None and many(None, np.repeat(rows, 2, axis=0), u) is None  # too few, too many
    assert many(None, rows, np.stack([u, u])) is None and many(None, q, u) is None
    views = door.make_batch_door(wide, DoorForm(parts=((1, (2,), (3,)), (0, (2, 2), (2, 1)))), 2, 5)
    first, second = views(rows, u, tau)
    np.testing.assert_array_equal(first, found.reshape(3, 6)[:, 1::3])
    np.testing.assert_array_equal(second, found.reshape(3, 6)[:, :4].reshape(3, 2, 2))


@needs_door
@pytest.mark.parametrize("thing", [None, 1, 2.5, "text", b"bytes", object(), (), [], {}, len, int, 1 << 200, ...])
def test_things_that_are_no_arrays(thing: Any, kernel: Kernel) -> None:
    through = door.make_door(kernel, DoorForm())
    q = np.zeros(6)
    for place in range(3):
        given: list[Any] = [q, q, q]
        given[place] = thing
        assert through(*given) is None


@needs_door
@pytest.mark.skipif(sys.platform != "linux", reason="needs mmap and mprotect")
def test_nothing_is_read_beyond_a_small_object() -> None:
    """A float at the very end of readable memory: a look at where an array's dtype would be is a crash."""
    done = alone("""
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
page = mmap.PAGESIZE
memory = libc.mmap(None, 2 * page, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
assert libc.mprotect(memory + page, page, 0) == 0
place = memory + page - float.__basicsize__
words = (ctypes.c_int64 * 2).from_address(place)
words[0], words[1] = 1000, id(float)
ctypes.c_double.from_address(place + 16).value = 0.5
number = ctypes.cast(place, ctypes.py_object).value
assert type(number) is float and number == 0.5
arm.forward_dynamics(q, q, q)
try:
    arm.forward_dynamics(number, q, q)
except bc.StateError as error:
    print(error)
""")
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr[-500:]}"
    assert "the last axis must have 6 entries" in done.stdout


@needs_door
def test_the_door_lasts_as_long_as_the_program() -> None:
    """Exit handlers may compute, too."""
    done = alone("""
import atexit
call = None
atexit.register(lambda: print("last:", arm.forward_dynamics(q, q, q)[0], call()[0]))
call = arm.bind("forward_dynamics", q, q, q)
print("first:", arm.forward_dynamics(q, q, q)[0], call()[0])
""")
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr[-500:]}"
    first, last = done.stdout.splitlines()
    assert first.removeprefix("first: ") == last.removeprefix("last: ")


# -- lifetimes --------------------------------------------------------------------------------
def test_reference_counts_stay() -> None:
    system = machine()
    arrays = state(system)
    wrong = arrays[0].tolist()
    nan = np.full(6, math.nan)
    watched = [*arrays, wrong, nan, np.ndarray, bc.StateError, system]
    system.forward_dynamics(*arrays)

    def counts() -> list[int]:
        gc.collect()
        return [sys.getrefcount(x) for x in watched]

    before = counts()
    for _ in range(10_000):
        system.forward_dynamics(*arrays)
    for _ in range(300):
        system.forward_dynamics(wrong, *arrays[1:])
        with pytest.raises(bc.StateError):
            system.forward_dynamics(nan, *arrays[1:])
    assert counts() == before
    result, plain = system.forward_dynamics(*arrays), np.zeros(6)
    assert sys.getrefcount(result) == sys.getrefcount(plain)


@needs_door
def test_reference_counts_of_a_door(kernel: Kernel) -> None:
    skipped = "a name that is looked at by nobody"
    through = door.make_door(kernel, DoorForm(skipped=1))
    shown = door.make_door(kernel, DoorForm(parts=((0, (3,), (1,)), (3, (3,), (1,)))))
    arrays, nan = state(machine()), np.full(6, math.nan)
    watched = [*arrays, nan, through, shown, kernel, skipped, None, np.dtype(np.float64)]
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(10_000):
        through(arrays[0], skipped, *arrays[1:])
        through(nan, skipped, nan, nan)
        through(skipped)
        shown(*arrays)
        shown(nan, nan, nan)
    after = [sys.getrefcount(x) for x in watched]
    assert all(abs(b - a) < 100 for b, a in zip(before, after, strict=True))  # others hold None meanwhile
    made, (first, second) = through(arrays[0], skipped, *arrays[1:]), shown(*arrays)
    plain = np.zeros(6)
    assert sys.getrefcount(made) == sys.getrefcount(first) == sys.getrefcount(second) == sys.getrefcount(plain)
    base = weakref.ref(first.base)
    del first
    assert base() is not None
    del second
    assert base() is None


def test_reference_counts_of_bound_calls() -> None:
    arrays, out = state(machine()), np.zeros(6)
    call = machine().bind("forward_dynamics", *arrays, out=out)
    watched = [*arrays, out, call, bc.StateError]
    gc.collect()
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(10_000):
        call()
    arrays[0][0] = math.nan
    for _ in range(300):
        with pytest.raises(bc.StateError):
            call()
    gc.collect()
    assert [sys.getrefcount(x) for x in watched] == before


@needs_door
def test_thousands_of_doors_leave_nothing_behind(kernel: Kernel) -> None:
    arrays = state(machine())
    wanted = machine().forward_dynamics(*arrays)
    gc.collect()
    before = len(door._alive)
    held = sys.getrefcount(kernel), [sys.getrefcount(a) for a in arrays]
    many = []
    for i in range(1000):
        through = door.make_door(kernel, DoorForm())
        call = machine().bind("forward_dynamics", *arrays)
        if i % 100 == 0:
            many.append((through, call))
        assert through(*arrays) is not None
        call()
    del through, call
    assert len(door._alive) == before + 2 * len(many)
    for through, call in many:
        np.testing.assert_array_equal(through(*arrays), wanted)
        np.testing.assert_array_equal(call(), wanted)
    del many, through, call
    gc.collect()
    assert len(door._alive) == before
    assert (sys.getrefcount(kernel), [sys.getrefcount(a) for a in arrays]) == held


def resident() -> int:
    """Memory of this process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc here")
def test_thousands_of_bound_calls_leave_no_memory_behind() -> None:
    arrays = state(machine())

    def bind_some(n: int) -> int:
        for _ in range(n):
            machine().bind("forward_dynamics", *arrays)()
        gc.collect()
        return resident()

    before = bind_some(200)
    assert bind_some(2000) - before < 2000 * 1000  # less than one kilobyte each


@needs_door
def test_a_system_takes_its_doors_with_it() -> None:
    gc.collect()
    before = len(door._alive)
    system = bc.compile(bc.load("pendulum"))
    one = np.ones(1)
    system.forward_dynamics(one, one, one)
    system.inverse_dynamics(one, one, one)
    assert len(door._alive) == before + 2
    gone = weakref.ref(system)
    del system
    gc.collect()
    assert gone() is None
    assert len(door._alive) == before


# -- bound calls ------------------------------------------------------------------------------
BACKENDS = [("unrolled", "llvm"), ("rolled", "llvm"), ("auto", "numpy")]


@pytest.mark.parametrize(("schedule", "backend"), BACKENDS)
@pytest.mark.parametrize("name", ["arm", "crane"])
def test_bound_calls_read_what_is_in_their_arrays_now(name: str, schedule: str, backend: str) -> None:
    system = machine(name, schedule, backend)
    q, u, tau = state(system)
    out = np.zeros(system.nu)
    call = system.bind("forward_dynamics", q, u, tau, out=out)
    for seed in range(5):
        for a, b in zip((q, u, tau), state(system, seed), strict=True):
            a[:] = b
        assert call() is out
        np.testing.assert_array_equal(out, system.forward_dynamics(q, u, tau))


@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics", "bias", "mass_matrix", "poses", "totals"])
def test_bound_calls_of_other_functions(name: str) -> None:
    system = machine("crane")
    q, u, x = state(system)
    given = [q, u, x][:len(system.kernels.functions[name].inputs)]
    got = system.bind(name, *given)()
    wanted = system.kernels.run(name, dict(zip(system.kernels.functions[name].inputs, given, strict=True)))
    np.testing.assert_array_equal(got.ravel(), wanted)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("kind", ["tree", "springs", "loops", "large"])
def test_bound_calls_give_what_the_methods_give(kind: str, backend: str) -> None:
    """Also where a method is more than one kernel: joint springs, loops, springs of large machines."""
    m = bc.load("four_bar" if kind == "loops" else "chain", **({"n": 60} if kind == "large" else {}))
    if kind != "tree":
        m.add_joint_spring("coil", m.joints[0].name, stiffness=30.0, damping=2.0)
    if kind == "large":
        bodies = m.bodies
        m.add_spring("rope", bodies[3], bodies[40], (0, 0, 0), (0.1, 0, 0), length=0.1, stiffness=50.0)
    system = bc.compile(m, backend=backend)
    rng = np.random.default_rng(0)
    q, u = system.assemble(u=rng.normal(size=system.nu)) if kind == "loops" else system.random_state(rng)
    tau = rng.normal(size=system.nu)
    udot = system.forward_dynamics(q, u)
    for name, given in (("forward_dynamics", (q, u, tau)), ("inverse_dynamics", (q, u, udot)), ("bias", (q, u)),
                        ("mass_matrix", (q,)), ("momenta", (q, u))):
        of_tree = {"speeds": "tree"} if system.loops and name in ("bias", "mass_matrix", "momenta") else {}
        wanted = getattr(system, name)(*given, **of_tree)
        got = system.bind(name, *given)()
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(wanted).max()))
        flat = np.empty(wanted.size)
        assert system.bind(name, *given, out=flat)() is flat
        np.testing.assert_array_equal(flat, got.ravel())
    if kind != "large":
        p = system.momenta(q, u, speeds="tree")
        got = system.bind("hamilton", q, p, tau)()
        np.testing.assert_allclose(got, np.stack(system.hamilton(q, p, tau), axis=-1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("schedule", "backend"), BACKENDS)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_bound_calls_raise_on_what_is_not_finite(bad: float, schedule: str, backend: str) -> None:
    system = machine("crane", schedule, backend)
    arrays = state(system)
    call = system.bind("forward_dynamics", *arrays)
    wanted = call().copy()
    for given in arrays:
        for entry in range(len(given)):
            before = given[entry]
            given[entry] = bad
            with pytest.raises(bc.StateError, match="forward_dynamics: an input or the result is not finite"):
                call()
            given[entry] = before
    np.testing.assert_array_equal(call(), wanted)
    arrays[0][2:] = 0.0
    with pytest.raises(bc.StateError, match="not finite"):
        call()


@pytest.mark.parametrize(("schedule", "backend"), BACKENDS)
def test_bound_calls_keep_their_arrays(schedule: str, backend: str) -> None:
    system = machine("arm", schedule, backend)
    arrays = [*state(system), np.zeros(6)]
    wanted = system.forward_dynamics(*arrays[:3])
    gone = [weakref.ref(a) for a in arrays]
    call = system.bind("forward_dynamics", *arrays[:3], out=arrays[3])
    del arrays
    gc.collect()
    litter = [np.full(6, 1e10) for _ in range(1000)]  # would take the place of freed arrays
    assert all(r() is not None for r in gone)
    np.testing.assert_array_equal(call(), wanted)
    del call, litter
    gc.collect()
    assert all(r() is None for r in gone)


def test_a_bound_call_outlives_its_system() -> None:
    system = bc.compile(bc.load("double_pendulum"), schedule="rolled")
    q = np.array([0.3, -0.2])
    wanted = system.forward_dynamics(q, q, q)
    call = system.bind("forward_dynamics", q, q, q)
    del system
    gc.collect()
    np.testing.assert_array_equal(call(), wanted)


@pytest.mark.parametrize(("schedule", "backend"), BACKENDS)
def test_bound_calls_take_no_arguments(schedule: str, backend: str) -> None:
    call = machine("arm", schedule, backend).bind("forward_dynamics", *state(machine()))
    with pytest.raises(TypeError):
        call(1)
    with pytest.raises(TypeError):
        call(q=1)


MISFITS: dict[str, Any] = {
    "too short": np.zeros(5), "too long": np.zeros(7), "float32": np.zeros(6, np.float32), "list": [0.0] * 6,
    "byte-swapped": np.zeros(6, ">f8" if sys.byteorder == "little" else "<f8"), "strided": np.zeros(12)[::2],
    "unaligned": unaligned(np.zeros(6)), "None": None, "integers": np.zeros(6, int), "complex": np.zeros(6, complex)}


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("misfit", MISFITS)
def test_bind_refuses_arrays_that_do_not_fit(misfit: str, which: int) -> None:
    given: list[Any] = state(machine())
    given[which] = MISFITS[misfit]
    with pytest.raises(bc.StateError, match=rf"bind\('forward_dynamics'\): {LABELS[which]} must be"):
        machine().bind("forward_dynamics", *given)


@pytest.mark.parametrize("misfit", [m for m in MISFITS if m != "None"])
def test_bind_refuses_outputs_that_do_not_fit(misfit: str) -> None:
    with pytest.raises(bc.StateError, match=r"bind\('forward_dynamics'\): out must be"):
        machine().bind("forward_dynamics", *state(machine()), out=MISFITS[misfit])


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_bind_refuses_read_only_outputs(backend: str) -> None:
    for out in (frozen(np.zeros(6)), np.frombuffer(bytes(48)), np.broadcast_to(np.zeros(6), (6,))):
        with pytest.raises(bc.StateError, match="out"):
            machine(backend=backend).bind("forward_dynamics", *state(machine()), out=out)


def test_bind_takes_read_only_inputs() -> None:
    arrays = [frozen(a) for a in state(machine())]
    np.testing.assert_array_equal(machine().bind("forward_dynamics", *arrays)(), machine().forward_dynamics(*arrays))


def test_bind_with_wrong_names_and_numbers() -> None:
    arrays = state(machine())
    with pytest.raises(bc.ModelError, match="no function 'fly'") as caught:
        machine().bind("fly", *arrays)
    named = re.findall(r"'(\w+)' \(", str(caught.value))
    assert "forward_dynamics" in named and all(hasattr(bc.System, name) for name in named)
    with pytest.raises(bc.ModelError, match=r"did you mean 'mass_matrix'\?"):
        machine().bind("mass_matrx", arrays[0])
    for given in ([], arrays[:2], [*arrays, arrays[0]]):
        with pytest.raises(bc.StateError, match=f"needs the arrays q, u, tau, got {len(given)}"):
            machine().bind("forward_dynamics", *given)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("which", [0, 1, 2])
def test_bind_with_an_output_that_is_an_input(which: int, schedule: str) -> None:
    """Right or refused, never wrong."""
    system = machine("arm", schedule)
    arrays = state(system)
    wanted = system.forward_dynamics(*arrays)
    try:
        call = system.bind("forward_dynamics", *arrays, out=arrays[which])
    except bc.StateError:
        return
    np.testing.assert_array_equal(call(), wanted)


def test_the_layout_of_arrays_is_as_the_door_thinks() -> None:
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        assert not door.available()
        return
    assert door.available()


# -- every function has a door --------------------------------------------------------------------------
@needs_door
@pytest.mark.parametrize("name", ["arm", "quadruped", "four_bar"])
def test_other_functions_go_through_a_door_too(name: str, general_calls: list[str], monkeypatch: pytest.MonkeyPatch
                                               ) -> None:
    """One state never takes the general way where time and parameters play no part; the bits are the same there."""
    system = machine(name)
    q, u = system.assemble() if system.loops else system.random_state(np.random.default_rng(0))
    body = system.body_names[-1]
    asked = {"mass_matrix": (q,), "bias": (q, u), "momenta": (q, u), "kinetic_energy": (q, u), "jacobian": (q, body),
             "velocity": (q, u, body), "center_of_mass": (q,)}
    if system.loops:  # these four are those of the independent speeds, which loops determine
        asked = {what: given for what, given in asked.items()
                 if what not in ("mass_matrix", "bias", "momenta", "jacobian")}
    general_calls.clear()
    found = {what: getattr(system, what)(*given) for what, given in asked.items()}
    assert general_calls == []
    with monkeypatch.context() as without:
        without.setattr(door, "available", lambda: False)
        plain = bc.compile(bc.load(name))
        for what, given in asked.items():
            general_calls.clear()
            np.testing.assert_array_equal(getattr(plain, what)(*given), found[what])
            assert general_calls
    bad = q.copy()
    bad[0] = np.nan
    with pytest.raises(bc.StateError, match=r"q\[0\]"):
        system.mass_matrix(bad)
    for wrong in ("x", np.nan):
        with pytest.raises(bc.StateError, match=r"\bt\b"):
            system.mass_matrix(q, t=wrong)
