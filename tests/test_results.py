"""Results of runs: names and units, files that grow and survive, reloading, and what is computed from them."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import bellcrank as bc
import children
from bellcrank.errors import FileError, ModelError, StateError
from bellcrank.mechanism.fingerprint import fingerprint
from bellcrank.simulate.account import RESOLVED, floor_of
from bellcrank.simulate.fields import coordinate_units, force_units, speed_units
from bellcrank.simulate.netcdf import EVENT_ROOM
from bellcrank.simulate.result import Result
from bellcrank.simulate.result_place import partial_path
from bellcrank.simulate.shelf import Shelf
from bellcrank.simulate.store import Writer


def spherical_pendulum() -> bc.Mechanism:
    m = bc.Mechanism("spherical pendulum")
    bob = m.add_body("bob", bc.Inertia.box(1.2, (0.1, 0.2, 0.6), (0.0, 0.0, -0.5)))
    m.add_joint("ball", bc.Spherical(), m.ground, bob)
    return m


def runge_kutta(system: bc.System, q: Any, u: Any, step: float, n: int, tau: Any = None) -> tuple[Any, Any, Any]:
    """t, q and u of n + 1 samples, by the classic rule."""
    def rate(x: Any, v: Any, t: float) -> tuple[Any, Any]:
        return system.model.configuration.qdot(x, v), system.forward_dynamics(x, v, tau, t=t)

    times, qs, us = step * np.arange(n + 1), [np.array(q)], [np.array(u)]
    for t in times[:-1]:
        x, v = qs[-1], us[-1]
        a = rate(x, v, t)
        b = rate(x + step / 2 * a[0], v + step / 2 * a[1], t + step / 2)
        c = rate(x + step / 2 * b[0], v + step / 2 * b[1], t + step / 2)
        d = rate(x + step * c[0], v + step * c[1], t + step)
        qs.append(system.normalize(x + step / 6 * (a[0] + 2 * b[0] + 2 * c[0] + d[0])))
        us.append(v + step / 6 * (a[1] + 2 * b[1] + 2 * c[1] + d[1]))
    return times, np.array(qs), np.array(us)


def sample_run(name: str, n: int = 40, batch: tuple[int, ...] = ()) -> tuple[bc.System, Any, Any, Any, Any]:
    system = bc.compile(spherical_pendulum() if name == "spherical" else bc.load(name))
    rng = np.random.default_rng(5)
    if system.loops:
        state = system.assemble(u={system.joint_names[0]: 1.5})
        q, u = np.broadcast_to(state.q, (*batch, system.nq)), np.broadcast_to(state.u, (*batch, system.nu))
        u = u * rng.uniform(0.5, 1.5, (*batch, 1))
    else:
        q, u = system.random_state(rng, batch)
    tau = np.zeros(u.shape) if system.loops else 0.1 * rng.normal(size=u.shape)
    t, qs, us = runge_kutta(system, q, u, 1e-3, n, tau)
    return system, t, qs, us, np.broadcast_to(tau, us.shape)


def written(system: bc.System, t: Any, q: Any, u: Any, tau: Any = None, file: Path | None = None, chunk: int = 7,
            status: str = "finished", **more: Any) -> Result:
    writer = Writer(system, batch=q.shape[1:-1], settings={"stepper": "rk4", "step": 1e-3, "law": runge_kutta},
                    file=file, **more)
    for i in range(0, len(t), chunk):
        writer.add(t[i:i + chunk], q[i:i + chunk], u[i:i + chunk], None if tau is None else tau[i:i + chunk])
    writer.note("steps", len(t) - 1)
    writer.note("switches", 2)
    writer.note("wall_time", 0.25)
    writer.note("pivots", ["A", "B"])
    return writer.finish(status, "reached the end")


def assert_same(a: xarray.Dataset, b: xarray.Dataset) -> None:
    assert set(a.variables) == set(b.variables)
    np.testing.assert_equal(a.attrs, b.attrs)
    for name in a.variables:
        assert a[name].dims == b[name].dims and a[name].attrs == b[name].attrs, name
        assert a[name].dtype == b[name].dtype, name
        assert a[name].values.tobytes() == b[name].values.tobytes(), name


CASES = [("four_bar", ()), ("double_pendulum", ()), ("spherical", (3,)), ("double_pendulum", (2, 3)),
         ("four_bar", (2,))]


# -- what is in it ------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "batch"), CASES)
def test_contents(name: str, batch: tuple[int, ...]) -> None:
    system, t, q, u, tau = sample_run(name, 20, batch)
    result = written(system, t, q, u, tau)
    samples = ("sample",) if len(batch) == 1 else tuple(f"sample_{i}" for i in range(len(batch)))
    assert isinstance(result, Result) and isinstance(result, xarray.Dataset)
    assert result["q"].dims == ("time", *samples, "coordinate") and result["u"].dims == ("time", *samples, "speed")
    assert result["energy"].dims == result["loop_error"].dims == ("time", *samples)
    assert (result["q"].values == q).all() and (result["u"].values == u).all() and (result["tau"].values == tau).all()
    assert tuple(result["coordinate"].values) == system.coordinate_names
    assert tuple(result["speed"].values) == system.speed_names
    clock = t.reshape(-1, *(1,) * len(batch))
    for what, asked in (("kinetic_energy", system.kinetic_energy(q, u, t=clock)),
                        ("potential_energy", system.potential_energy(q, t=clock))):  # of another kernel: rounding
        assert np.abs(result[what].values - asked).max() <= 8 * np.finfo(float).eps * np.abs(asked).max(), what
    assert np.allclose(result["loop_error"], np.abs(system.loop_error(q)).max(-1, initial=0.0), atol=0)
    assert all({"units", "long_name"} <= set(v.attrs) for v in result.data_vars.values())
    attrs = result.attrs
    assert (attrs["mechanism"], attrs["formulation"]) == (system.model.name, system.model.method)
    assert attrs["backend"] == "llvm"
    assert (attrs["status"], attrs["reason"], attrs["steps"], attrs["switches"]) == (
        "finished", "reached the end", 20, 2)
    assert attrs["mechanism_hash"] == fingerprint(system.model.mechanism) and len(attrs["mechanism_hash"]) == 64
    assert json.loads(attrs["settings"]) == {"stepper": "rk4", "step": 1e-3, "law": "runge_kutta"}
    assert set(json.loads(attrs["versions"])) == {"bellcrank", "numpy", "llvmlite", "python"}
    assert attrs["largest_loop_error"] == float(result["loop_error"].max())


def test_units_of_all_joints() -> None:
    assert coordinate_units(bc.Revolute()) == ("rad",) and force_units(bc.Revolute()) == ("N m",)
    assert coordinate_units(bc.Prismatic()) == ("m",) and force_units(bc.Prismatic()) == ("N",)
    assert coordinate_units(bc.Screw("z", pitch=0.1)) == ("rad",)
    assert coordinate_units(bc.Cylindrical()) == ("rad", "m") and speed_units(bc.Cylindrical()) == ("rad/s", "m/s")
    assert coordinate_units(bc.Universal()) == ("rad", "rad")
    assert coordinate_units(bc.Planar()) == ("m", "m", "rad") and force_units(bc.Planar()) == ("N", "N", "N m")
    assert coordinate_units(bc.Spherical()) == ("1",) * 4 and speed_units(bc.Spherical()) == ("rad/s",) * 3
    assert speed_units(bc.Free()) == ("rad/s",) * 3 + ("m/s",) * 3
    assert coordinate_units(bc.Weld()) == () == speed_units(bc.Weld())
    for joint in (bc.Cylindrical(), bc.Free(), bc.Planar()):
        assert speed_units(joint.reversed()) == speed_units(joint)


def test_states_that_are_not_finite_do_not_stop_the_account() -> None:
    system, t, q, u, _ = sample_run("double_pendulum", 5)
    q = q.copy()
    q[3, 0] = np.nan
    result = written(system, t, q, u, status="failed")
    assert np.isnan(result["energy"].values).tolist() == [False, False, False, True, False, False]
    assert np.isfinite(result.attrs["energy_drift"])


def test_samples_that_failed_leave_the_others_their_reactions() -> None:
    system, t, q, u, tau = sample_run("four_bar", 6, (3,))
    broken = q.copy()
    broken[2:, 1] = np.nan
    result = written(system, t, broken, u, tau)
    direct = system.reactions(q, u, tau)["A"]
    direct[2:, 1] = np.nan
    assert np.allclose(result.reactions("A"), direct, rtol=1e-12, equal_nan=True)
    position = result.kinematics("coupler")["position"]
    assert np.isnan(position.values[2:, 1]).all() and np.isfinite(position.values[:2]).all()
    assert np.isnan(result.torques(drives=True).values[3, 1]).all()
    with pytest.raises(StateError, match="no state of this selection is finite"):
        result.isel(sample=1, time=3).reactions()


def test_nothing_added(tmp_path: Path) -> None:
    system = bc.compile(bc.load("four_bar"))
    for file in (None, tmp_path / "empty.nc"):
        with Writer(system, file=file, settings={}).finish("stopped", "nothing to do") as result:
            assert result.sizes["time"] == 0 and result["q"].shape == (0, 4) and result.attrs["status"] == "stopped"


def test_wrong_samples() -> None:
    system, t, q, u, tau = sample_run("double_pendulum", 3)
    writer = Writer(system, settings={})
    with pytest.raises(StateError, match=r"q: samples need the shape \(4, 2\)"):
        writer.add(t, q[:2], u)
    writer.add(t[:2], q[:2], u[:2], tau[:2])
    with pytest.raises(StateError, match="with all samples"):
        writer.add(t[2:], q[2:], u[2:])
    with pytest.raises(StateError, match="must not decrease"):
        writer.add(t[:1], q[:1], u[:1], tau[:1])
    with pytest.raises(StateError, match="not 'done'"):
        writer.finish("done")
    assert writer.finish("stopped").sizes["time"] == 2
    with pytest.raises(StateError, match="finished"):
        writer.finish("stopped")


# -- files --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "batch"), CASES)
@pytest.mark.parametrize("kind", ["NETCDF4", "NETCDF3_64BIT"])
def test_round_trip(name: str, batch: tuple[int, ...], kind: Any, tmp_path: Path) -> None:
    system, t, q, u, tau = sample_run(name, 15, batch)
    result = written(system, t, q, u, tau)
    result.to_netcdf(tmp_path / "a.nc", format=kind)
    with bc.open_result(tmp_path / "a.nc") as back:
        assert isinstance(back, Result)
        assert_same(result, back)


@pytest.mark.parametrize(("name", "batch"), CASES)
def test_streamed_is_the_same_as_in_memory(name: str, batch: tuple[int, ...], tmp_path: Path) -> None:
    system, t, q, u, tau = sample_run(name, 30, batch)
    memory = written(system, t, q, u, tau)
    with written(system, t, q, u, tau, tmp_path / "run.nc", chunk=4, flush_seconds=0.0) as stream:
        assert_same(memory, stream)
        assert stream.system is system
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]
    with bc.open_result(tmp_path / "run.nc") as again:
        assert_same(memory, again)
        again.to_netcdf(tmp_path / "copy.nc")
    with xarray.open_dataset(tmp_path / "run.nc") as plain:  # readable by anyone
        assert np.array_equal(plain["q"], q) and plain["coordinate"].values.tolist() == list(system.coordinate_names)
    with bc.open_result(tmp_path / "copy.nc") as copy:
        assert_same(memory, copy)


def test_blocks_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large chunks are worked on in pieces and come out the same; nothing waits in memory."""
    from bellcrank.simulate import store

    system, t, q, u, tau = sample_run("double_pendulum", 50, (4,))
    whole = written(system, t, q, u, tau)
    sizes: list[int] = []
    derive = store.derive
    monkeypatch.setattr(store, "_STREAMED", 2000)
    monkeypatch.setattr(store, "derive", lambda s, t, q, u, lanes: (sizes.append(len(t)), derive(s, t, q, u, lanes))[1])
    with written(system, t, q, u, tau, tmp_path / "run.nc", chunk=51) as stream:
        assert_same(whole, stream)
    assert len(sizes) > 3 and max(sizes) * 8 * (1 + 4 * 6) <= 2000
    assert_same(whole, written(system, t, q, u, tau, chunk=51))


def test_events_and_notes(tmp_path: Path) -> None:
    system, t, q, u, _ = sample_run("double_pendulum", 5, (2,))
    results = []
    for file in (None, tmp_path / "run.nc"):
        writer = Writer(system, batch=(2,), settings={}, file=file)
        writer.add(t, q, u)
        writer.note("event", (0.001, "bounce", 1))
        writer.flush()
        writer.note("events", [(0.002, "übergang")])
        for name, value in (("flag", True), ("none", None), ("big", 2**40), ("wall_time", 1.0), ("x", np.float64(0.1)),
                            ("table", {"a": np.arange(3)}), ("long", "x" * 9000)):
            writer.note(name, value)
        results.append(writer.finish("finished", "ü" * 20))
    memory, stream = results
    assert_same(memory, stream)
    assert memory["event_name"].values.tolist() == ["bounce", "übergang"]
    assert memory["event_sample"].values.tolist() == [1, -1] and memory["event_time"].values.tolist() == [0.001, 0.002]
    assert stream.attrs["flag"] == 1 and stream.attrs["table"] == '{"a": [0, 1, 2]}' and stream.attrs["big"] == 2**40
    stream.close()


def test_more_events_than_a_file_has_room_for(tmp_path: Path) -> None:
    system, t, q, u, _ = sample_run("double_pendulum", 2)
    writer = Writer(system, settings={}, file=tmp_path / "run.nc")
    writer.add(t, q, u)
    writer.note("events", [(0.1 * i, "tick") for i in range(EVENT_ROOM + 5)])
    with writer.finish("finished") as result:
        assert result.sizes["event"] == EVENT_ROOM and result.attrs["events_left_out"] == 5


def test_existing_target_is_untouched_until_the_end(tmp_path: Path) -> None:
    system, t, q, u, _ = sample_run("double_pendulum", 5)
    target = tmp_path / "run.nc"
    target.write_bytes(b"precious")
    partial_path(target).write_bytes(b"left over")
    writer = Writer(system, settings={}, file=target)
    writer.add(t, q, u)
    writer.flush()
    assert target.read_bytes() == b"precious" and writer.flushed == 6
    with bc.open_result(partial_path(target)) as early:
        assert early.attrs["status"] == "running" and early.sizes["time"] == 6 and "steps" not in early.attrs
    with writer.finish("interrupted", "by hand") as result:
        assert result.attrs["status"] == "interrupted" and np.array_equal(result["q"], q)
    assert not partial_path(target).exists() and target.read_bytes()[:3] == b"CDF"


def test_files_that_cannot_be_made(tmp_path: Path) -> None:
    system = bc.compile(bc.load("double_pendulum"))
    with pytest.raises(FileError, match="does not exist; make it first"):
        Writer(system, settings={}, file=tmp_path / "none" / "run.nc")
    with pytest.raises(FileError, match="this is a folder"):
        Writer(system, settings={}, file=tmp_path)
    partial_path(tmp_path / "run.nc").mkdir()
    with pytest.raises(FileError, match=r"run.partial.nc: cannot be written"):
        Writer(system, settings={}, file=tmp_path / "run.nc")
    with pytest.raises(FileError, match="no such file"):
        bc.open_result(tmp_path / "run.nc")
    (tmp_path / "text.nc").write_text("text")
    with pytest.raises(FileError, match="cannot be read as NetCDF"):
        bc.open_result(tmp_path / "text.nc")
    xarray.Dataset({"a": 1}).to_netcdf(tmp_path / "other.nc")
    with pytest.raises(FileError, match="no result of Bellcrank"):
        bc.open_result(tmp_path / "other.nc")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="file modes do not bind this user")
def test_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(FileError, match="cannot be written"):
            Writer(bc.compile(bc.load("double_pendulum")), settings={}, file=tmp_path / "run.nc")
    finally:
        tmp_path.chmod(0o700)


def script(body: str) -> list[str]:
    """A Python process that streams samples of a pendulum: sample i has q = i, t = i."""
    head = """
        import sys, numpy as np, bellcrank as bc
        from bellcrank.simulate.store import Writer
        system = bc.compile(bc.load("double_pendulum"))
        def samples(i, k):
            t = np.arange(i, i + k, dtype=float)
            return t, np.repeat(t[:, None], 2, 1), np.repeat(-t[:, None], 2, 1), np.ones((k, 2))
    """
    return [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(body)]


STREAM = """
    writer, i = Writer(system, settings={}, file=sys.argv[1], flush_seconds=0.05), 0
    writer.note("event", (0.5, "start"))
    try:
        while True:
            writer.add(*samples(i, 13))
            i += 13
            print(writer.flushed, flush=True)
    except KeyboardInterrupt:
        with writer.finish("interrupted", "by the user") as result:
            print("result", writer.samples, result.sizes["time"], result.attrs["status"])
"""


@contextmanager
def started(target: Path) -> Iterator[subprocess.Popen[str]]:
    with children.started([*script(STREAM), target]) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it runs
        yield process


def assert_counts(result: Result) -> None:
    n = result.sizes["time"]
    assert np.array_equal(result["time"], np.arange(n)) and np.array_equal(result["u"][:, 1], -np.arange(n))
    assert np.array_equal(result["q"][:, 0], np.arange(n)) and (result["tau"] == 1.0).all()
    assert np.array_equal(result["energy"], result["kinetic_energy"] + result["potential_energy"])
    assert result["event_name"].values.tolist() == ["start"]


@pytest.mark.everyday(2)
@pytest.mark.usefixtures("signals_ignored")
@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("wait", np.random.default_rng(3).uniform(0.0, 0.5, 5).tolist())
def test_killed_at_any_moment(wait: float, tmp_path: Path) -> None:
    target = tmp_path / "run.nc"
    target.write_bytes(b"precious")
    with started(target) as process:
        time.sleep(wait)
        process.kill()
        assert process.stdout is not None
        told = [int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    assert process.returncode == -signal.SIGKILL and target.read_bytes() == b"precious"
    with bc.open_result(partial_path(target)) as result:
        assert result.attrs["status"] == "running"
        assert result.sizes["time"] >= max(told, default=1) > 0
        assert_counts(result)


@pytest.mark.usefixtures("signals_ignored")
@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("wait", [0.02, 0.2, 0.31])
def test_interrupt(wait: float, tmp_path: Path) -> None:
    with started(tmp_path / "run.nc") as process:
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        _, added, kept, status = process.stdout.read().splitlines()[-1].split()
        assert process.wait(60.0) == 0
    assert status == "interrupted" and int(added) == int(kept) > 0
    with bc.open_result(tmp_path / "run.nc") as result:
        assert result.sizes["time"] == int(kept)
        assert_counts(result)


ANYWHERE = """
    import signal
    from pathlib import Path

    def interrupted(file, at):
        # Whether a run interrupted at that line (of this package or of netCDF4) has all it counted; None: no such line.
        writer, lines = Writer(system, settings={}, file=file, flush_seconds=0.0), 0
        writer.add(*samples(0, 13))

        def line(frame, event, arg):
            nonlocal lines
            lines += event == "line"
            if event == "line" and lines == at:
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
            return line

        ours = ("simulate/store.py", "simulate/netcdf.py", "netCDF4/utils.py")
        sys.settrace(lambda frame, *_: line if frame.f_code.co_filename.endswith(ours) else None)
        try:
            for i in (13, 26):
                writer.add(*samples(i, 13))
        except KeyboardInterrupt:
            with writer.finish("interrupted") as result:
                return writer.samples == result.sizes["time"] and (result["time"] == np.arange(writer.samples)).all()
        finally:
            sys.settrace(None)

    tried = 0
    for at in range(1, 100_000, 37):
        if (kept := interrupted(Path(sys.argv[1]), at)) is None:
            break
        assert kept, at
        tried += 1
    print(tried)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_interrupts_anywhere_lose_nothing(tmp_path: Path) -> None:
    """Also in netCDF4, which swallows what is raised while it looks for a dimension, and fails later."""
    done = children.run([*script(ANYWHERE), str(tmp_path / "run.nc")])
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


FULL = """
    import resource
    from bellcrank.errors import FileError
    writer, i = Writer(system, settings={}, file=sys.argv[1], flush_seconds=0.0), 0
    writer.note("event", (0.5, "start"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    try:
        while i < 1_000_000:
            writer.add(*samples(i, 13))
            i += 13
    except FileError as error:
        good = writer.flushed
        with writer.finish("failed", str(error)) as result:
            print(good, result.sizes["time"], result.attrs["status"], result.attrs["reason"])
"""


LATE = """
    import resource
    from bellcrank.errors import FileError
    writer = Writer(system, settings={}, file=sys.argv[1], flush_seconds=1e9)
    writer.note("event", (0.5, "start"))
    writer.add(*samples(0, 1))
    before = writer.flushed
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    try:
        writer.add(*samples(1, 1_000_000))
    except FileError as error:
        with writer.finish("failed", str(error)) as result:
            print(before, result.sizes["time"], result.attrs["status"], result.attrs["reason"])
"""


@pytest.mark.skipif(os.name != "posix", reason="limits")
def test_what_fits_on_a_full_disk_is_kept(tmp_path: Path) -> None:
    """Also of what had not been flushed before: with 13 numbers a sample, 300 kB hold over 2000."""
    done = children.run([*script(LATE), str(tmp_path / "run.nc")])
    assert done.returncode == 0, done.stderr
    before, kept, status, reason = done.stdout.split(maxsplit=3)
    assert int(before) == 1 and int(kept) > 1500 and status == "failed" and "run.partial.nc" in reason
    assert [p.name for p in tmp_path.iterdir()] == ["run.partial.nc"]
    with bc.open_result(tmp_path / "run.partial.nc") as result:
        assert result.sizes["time"] == int(kept)
        assert_counts(result)


NO_ROOM = """
    import resource
    from bellcrank.errors import FileError
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
    try:
        Writer(system, settings={}, file=sys.argv[1])
    except FileError as error:
        print("streamed", error)
    try:
        system.simulate(([0.1, 0.2], [0.0, 0.0]), 20.0, output=1e-3).to_netcdf(sys.argv[1])
    except FileError as error:
        print("written", error)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits")
def test_no_half_files_are_left(tmp_path: Path) -> None:
    done = children.run([*script(NO_ROOM), str(tmp_path / "run.nc")])
    assert done.returncode == 0, done.stderr
    streamed, written = done.stdout.splitlines()
    assert streamed.startswith("streamed") and "run.partial.nc: cannot be written" in streamed
    assert written.startswith("written") and "run.nc: cannot be written" in written
    assert list(tmp_path.iterdir()) == []


KILLED = """
    state = system.random_state(np.random.default_rng(0))
    system.simulate(state, 0.01)
    print("go", flush=True)
    system.simulate(state, 1e5, file=sys.argv[1], output=1e-3)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_run_that_is_killed_early_has_kept_what_it_computed(tmp_path: Path) -> None:
    partial, count = partial_path(tmp_path / "run.nc"), 0
    with children.started([*script(KILLED), str(tmp_path / "run.nc")]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        end = time.monotonic() + 60.0
        while count <= 100 and time.monotonic() < end:  # samples that the header counts; others may be on their way
            time.sleep(0.02)
            count = int.from_bytes(partial.read_bytes()[4:8], "big") if partial.exists() else 0
        process.kill()
        process.wait(10.0)
    with bc.open_result(partial) as result:
        n = result.sizes["time"]
        assert n > 100 and result.attrs["status"] == "running"
        assert np.allclose(result["time"], 1e-3 * np.arange(n)) and np.isfinite(result["energy"]).all()


def test_samples_reach_the_file_within_a_tenth_of_a_second(tmp_path: Path) -> None:
    system = bc.compile(bc.load("pendulum"))
    writer = Writer(system, settings={}, file=tmp_path / "run.nc")
    writer.add([0.0], [[0.1]], [[0.0]])
    assert writer.flushed == 1  # the header, and the start, at once
    time.sleep(0.11)
    writer.add([0.1, 0.2], [[0.1], [0.2]], [[0.0], [0.0]])
    assert writer.flushed == 3
    writer.finish("finished")


@pytest.mark.skipif(os.name != "posix", reason="limits")
def test_disk_full(tmp_path: Path) -> None:
    done = children.run([*script(FULL), tmp_path / "run.nc"])
    assert done.returncode == 0, done.stderr
    good, kept, status, reason = done.stdout.split(maxsplit=3)
    assert status == "failed" and "cannot be written" in reason and f"the first {kept} samples are kept" in reason
    assert int(kept) >= int(good) > 1000 and not (tmp_path / "run.nc").exists()
    with bc.open_result(partial_path(tmp_path / "run.nc")) as result:
        assert result.sizes["time"] == int(kept)
        assert_counts(result)


# -- identity -----------------------------------------------------------------------------------------
SCALE = 2.0


def machine(mass: float = 1.0, axis: Any = "z", stiffness: float = 5.0, reach: float = 0.4, factor: float = 0.1,
            load: float = 2.0, length: float = 0.5, gravity: float = -9.81, name: str = "tip") -> bc.Mechanism:
    m = bc.Mechanism("all", gravity=(0.0, gravity, 0.0))
    extra = m.parameter("load", load)
    a = m.add_body("a", bc.Inertia.rod(mass, (0, 0, 0), (reach, 0, 0)))
    b = m.add_body(name, bc.Inertia(extra + 1.0, (0.1, 0, 0), 0.02))
    m.add_joint("A", bc.Revolute(axis), m.ground, a)
    m.add_joint("B", bc.Revolute(axis), a, b, bc.Pose((reach, 0, 0)))
    m.add_joint_spring("spring", "A", stiffness=stiffness)
    m.add_joint_force("friction", "B", lambda q, u: -factor * SCALE * bc.math.tanh(u))
    m.add_constraint("rod", bc.Distance(length), m.ground, b, bc.Pose((0.6, 0.0, 0.0)))
    return m


def test_any_number_changes_the_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    changes: list[dict[str, Any]] = [
        {}, {"mass": 1.0 + 2.0**-52}, {"axis": "-z"}, {"stiffness": 5.5}, {"reach": 0.41}, {"factor": 0.2},
        {"load": 2.5}, {"length": 0.51}, {"gravity": -9.8}, {"name": "end"}]
    found = [fingerprint(machine(**change)) for change in changes]
    assert len(set(found)) == len(found)
    assert fingerprint(machine()) == found[0] == fingerprint(machine().copy())
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    assert fingerprint(machine()) != found[0]  # a law that reads a global number


def test_hash_sees_code_and_state_of_laws() -> None:
    class Law:
        def __init__(self, k: float) -> None:
            self.k = k

        def __call__(self, q: Any, u: Any) -> Any:
            return -self.k * u

    def of(law: Any) -> str:
        m = bc.load("pendulum")
        m.add_joint_force("f", "hinge", law)
        return fingerprint(m)

    def first(q: Any, u: Any, k: float = 1.0) -> Any:
        return -k * u

    found = [of(law) for law in (Law(1.0), Law(2.0), first, lambda q, u: -u, lambda q, u: u, lambda q, u: -2.0 * u)]
    assert len(set(found)) == len(found)
    assert of(Law(1.0)) == found[0] and of(first) == found[2]


def test_hash_is_the_same_in_other_processes() -> None:
    code = "import test_results as r; print(r.fingerprint(r.machine()), r.fingerprint(r.bc.load('stewart')))"
    here = str(Path(__file__).parent)
    said = {children.run_code(code, env={"PYTHONHASHSEED": seed, "PYTHONPATH": here}).stdout for seed in ("1", "77")}
    assert said == {f"{fingerprint(machine())} {fingerprint(bc.load('stewart'))}\n"}


def test_attach(tmp_path: Path) -> None:
    m = bc.load("double_pendulum")
    system, t, q, u, _ = sample_run("double_pendulum", 3)
    written(system, t, q, u).to_netcdf(tmp_path / "a.nc")
    with bc.open_result(tmp_path / "a.nc") as back:
        assert back.system is None
        with pytest.raises(StateError, match=r"attach\(system\) first"):
            back.copy().with_system(None).reactions()
        with pytest.raises(ModelError, match="another mechanism"):
            back.attach(bc.compile(bc.load("pendulum")))
        same = bc.compile(m, method="kane")
        assert back.attach(same) is back and back.system is same
        bare = back.with_system(None)  # another one
        assert bare.system is None and back.system is same and bare.with_system(system).system is system
        m.gravity = (0.0, 0.0, -1.6)
        with pytest.raises(ModelError, match="another mechanism"):
            back.attach(bc.compile(m))
        assert np.allclose(back.reactions("elbow" if "elbow" in same.joint_names else same.joint_names[0]).values,
                           system.reactions(q, u)["elbow" if "elbow" in same.joint_names else same.joint_names[0]])


def test_files_know_their_machine(tmp_path: Path) -> None:
    """Also one that was cut elsewhere, with other values of its parameters; after operations, and written once more."""
    m = bc.load("four_bar")
    m.add_wrench("push", "rocker", force=(m.parameter("push", 1.0), 0, 0))
    system = bc.compile(m, cut=["B"]).with_parameters(push=5.0)
    run = system.simulate(system.assemble(q={"A": 0.5}), 0.01, file=tmp_path / "run.nc")
    run.isel(time=slice(3)).to_netcdf(tmp_path / "part.nc")
    for file, times in (("run.nc", 11), ("part.nc", 3)):
        back = bc.open_result(tmp_path / file)
        assert "model" not in back.attrs and back.system is None
        found = back.isel(time=[-1]).reactions("C")
        assert np.abs(found.values[0] - run.reactions("C").values[times - 1]).max() < 1e-9
        assert back.rebuild().system is not None and back.rebuild().system is back.system
        assert back.system.parameters == {"push": 5.0} and back.system.coordinate_names == system.coordinate_names
        back.close()


def test_files_know_machines_with_laws(tmp_path: Path) -> None:
    """Laws of Python are formulas in the file."""
    m = bc.load("pendulum")
    m.add_joint_force("brake", "hinge", lambda x, rate: -bc.math.tanh(rate) - 0.3 * x)
    m.add_state("seen", lambda at: at.u("hinge") - at.state("seen"))
    m.add_joint_force("follow", "hinge", bc.Table([-1.0, 1.0], [2.0, -2.0], extrapolate="linear", name="curve"))
    run = bc.compile(m).simulate(([0.5, 0.0], [0.4, 0.1]), 0.01, file=tmp_path / "run.nc")
    with bc.open_result(tmp_path / "run.nc") as back:
        for name in ("brake", "follow"):
            np.testing.assert_allclose(back.element(name).force, run.element(name).force, rtol=1e-13)
        assert back.attach(run.system).system is run.system


def test_files_that_do_not_know_their_machine(tmp_path: Path) -> None:
    """A joint type of one's own cannot be written."""
    m = bc.load("pendulum")
    m.add_joint("other", Own(), m.ground, m.add_body("more", bc.Inertia.point(1.0, (0, 0, -1))))
    run = bc.compile(m).simulate(([0.5, 0.1], [0.0, 0.0]), 0.01)
    run.to_netcdf(tmp_path / "run.nc")
    with bc.open_result(tmp_path / "run.nc") as back:
        with pytest.raises(StateError, match=r"its file does not hold it.*attach\(system\)"):
            back.rebuild()
        assert back.attach(run.system).rebuild() is back


class Own(bc.Revolute):
    """A joint type that files do not know."""

    def __init__(self) -> None:
        super().__init__("x")


def test_attach_looks_at_parameters() -> None:
    m = bc.Mechanism("loaded")
    bob = m.add_body("bob", bc.Inertia.point(m.parameter("load", 2.0), (0, 0, -1)))
    m.add_joint("hinge", bc.Revolute("x"), m.ground, bob)
    system = bc.compile(m).with_parameters(load=3.0)
    result = written(system, np.zeros(1), np.zeros((1, 1)), np.ones((1, 1)))
    assert json.loads(result.attrs["parameters"]) == {"load": 3.0} and float(result["kinetic_energy"][0]) == 1.5
    with pytest.raises(ModelError, match=r"with_parameters\(load=3.0\)"):
        result.attach(bc.compile(m))
    batch = system.with_parameters(load=np.array([1.0, 2.0]))
    many = written(batch, np.zeros(1), np.zeros((1, 2, 1)), np.ones((1, 2, 1)))
    assert many["kinetic_energy"].values.tolist() == [[0.5, 1.0]] and many.attach(batch).system is batch
    one = many.isel(sample=0)  # its parameters come along
    assert one.system.parameters == {"load": 1.0} and np.abs(one.reactions("hinge").values[0, 3:]).max() < 11.0
    with pytest.raises(StateError, match="parameters are a batch"):
        one.attach(batch).reactions()


# -- what xarray does with it -------------------------------------------------------------------------
def test_operations_keep_the_machine() -> None:
    system, t, q, u, tau = sample_run("four_bar", 10, (3,))
    result = written(system, t, q, u, tau)
    kept = {"sel": result.sel(time=0.003, method="nearest"), "isel": result.isel(sample=0), "copy": result.copy(),
            "deep": result.copy(deep=True), "list": result[["q", "u"]], "head": result.head(time=2),
            "fancy": result.isel(time=xarray.DataArray([1, 2], dims="pick")), "drop": result.drop_vars("tau"),
            "where": result.assign(x=("time", t)), "sortby": result.sortby("time", ascending=False),
            "assign_attrs": result.assign_attrs(a=1), "load": result.load(), "rename": result.rename(energy="E")}
    for name, made in kept.items():
        assert isinstance(made, Result) and made.system is system, name
    others = [result.mean("time"), result + 1, xarray.concat([result, result], "again"), result.to_dataframe(),
              result.map(np.abs), Result({"a": 1}), result.interp(time=[0.0015])]
    for made in others:
        if isinstance(made, Result):
            assert made.system in (None, system)
        assert repr(made)
    assert_same(pickle.loads(pickle.dumps(result)), result)
    one = result.isel(sample=1, time=4)
    assert np.allclose(one.reactions("A"), system.reactions(q[4, 1], u[4, 1], tau[4, 1])["A"])
    with pytest.raises(StateError, match="needs all of q"):
        result.isel(coordinate=[0]).reactions()
    with pytest.raises(StateError, match="needs all of u"):
        result[["q"]].reactions()
    with pytest.raises(StateError, match="machine is not known"):
        Result({"a": 1}).kinematics("bob")


# -- what follows -------------------------------------------------------------------------------------
def test_energy_drift() -> None:
    system, t, q, u, _ = sample_run("four_bar", 200)
    result = written(system, t, q, u)
    energy = result.energy()
    assert set(energy.data_vars) == {"kinetic", "gravity", "stored", "total", "drift"}
    assert np.array_equal(energy["total"], energy["kinetic"] + energy["gravity"] + energy["stored"])
    assert float(abs(energy["drift"]).max()) == result.attrs["energy_drift"] < 1e-8
    worse = u.copy()
    worse[-1] *= 0.9  # energy is lost
    spoiled = written(system, t, q, worse)
    kinetic, potential = (spoiled[name].values for name in ("kinetic_energy", "potential_energy"))
    scale = kinetic[0] + (potential[0] - potential).max() + floor_of(system) + RESOLVED * abs(potential[0])
    expected = float(spoiled["energy"][-1] - spoiled["energy"][0]) / scale
    assert spoiled.attrs["energy_drift"] == pytest.approx(abs(expected), rel=1e-12) and abs(expected) > 1e-4
    assert float(spoiled.energy()["drift"][-1]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("name", "batch"), CASES)
def test_reactions_and_kinematics_are_those_of_the_system(name: str, batch: tuple[int, ...]) -> None:
    system, t, q, u, tau = sample_run(name, 10, batch)
    result = written(system, t, q, u, tau)
    direct = system.reactions(q, u, tau)
    every = result.reactions()
    assert every.dims[0] == "joint" and every["joint"].values.tolist() == list(direct)
    for joint, wrench in direct.items():
        assert np.array_equal(every.sel(joint=joint), wrench) and np.array_equal(result.reactions(joint), wrench)
    assert every["component_units"].values.tolist() == ["N m"] * 3 + ["N"] * 3
    with pytest.raises(ModelError, match="no joint called 'Z'"):
        result.reactions("Z")
    body, point = system.body_names[-1], (0.1, -0.2, 0.3)
    motion, pose = result.kinematics(body, point), system.pose(q, body)
    udot = system.forward_dynamics(q, u, tau)
    assert np.allclose(motion["position"], pose.position + pose.rotation @ np.array(point), rtol=0, atol=1e-15)
    assert np.array_equal(motion["velocity"], system.velocity(q, u, body, point)[..., 3:])
    assert np.array_equal(motion["angular_velocity"], system.velocity(q, u, body)[..., :3])
    assert np.array_equal(motion["acceleration"], system.acceleration(q, u, udot, body, point)[..., 3:])
    w, x, y, z = np.moveaxis(motion["orientation"].values, -1, 0)
    assert np.allclose(2.0 * (x * z + w * y), pose.rotation[..., 0, 2], atol=1e-14)
    assert np.allclose(w * w + x * x + y * y + z * z, 1.0)
    speed = np.gradient(motion["position"].values, t, axis=0)[1:-1]
    assert np.allclose(speed, motion["velocity"].values[1:-1], atol=1e-3)


def test_orientation_is_continuous() -> None:
    system = bc.compile(bc.load("pendulum"))
    t = np.linspace(0.0, 1.0, 101)
    angle = 4.0 * np.pi * t[:, None]
    turn = written(system, t, angle, np.full_like(angle, 4.0 * np.pi)).kinematics(system.body_names[0])["orientation"]
    assert np.abs(np.diff(turn.values, axis=0)).max() < 0.1


def test_torques_of_prescribed_motion() -> None:
    m = bc.load("double_pendulum")
    joint = m.joints[0].name
    m.prescribe(joint, lambda t: bc.math.sin(3.0 * t))
    system = bc.compile(m)
    t, q, u = runge_kutta(system, [0.0, 0.4], [3.0, 0.0], 1e-3, 20)
    q[:, 0], u[:, 0] = np.sin(3.0 * t), 3.0 * np.cos(3.0 * t)
    result = written(system, t, q, u)
    assert (result.torques() == 0.0).all() and result.torques()["force_units"].values.tolist() == ["N m", "N m"]
    forces = result.torques(joint, drives=True)
    assert forces.shape == (21, 1) and np.array_equal(forces[:, 0], system.drive_forces(q, u, t=t)[:, 0])
    assert float(abs(forces).max()) > 0.1 and forces.attrs["units"] == "N m"


def test_wrenches_that_acted_must_be_given() -> None:
    system, t, q, u, _ = sample_run("double_pendulum", 3)
    writer = Writer(system, settings={"wrenches": True})
    writer.add(t, q, u)
    result = writer.finish("finished")
    with pytest.raises(StateError, match="pass `wrenches`"):
        result.reactions()
    push = {system.body_names[0]: [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]}
    joint = system.joint_names[0]
    assert np.array_equal(result.reactions(joint, wrenches=push), system.reactions(q, u, wrenches=push)[joint])


# -- pictures -----------------------------------------------------------------------------------------
def test_plots(tmp_path: Path) -> None:
    system, t, q, u, tau = sample_run("four_bar", 30)
    result = written(system, t, q, u, tau)
    before = set(sys.modules)
    for i, (what, against) in enumerate([("q", "time"), ("u", "time"), ("energy", "time"), ("loop_error", "time"),
                                         ("A", "time"), (["B", "C.angle"], "A"), (["u.A", "tau.B"], "A.angle"),
                                         (["q", "kinetic_energy"], "time"), ("u.A", "A")]):
        file = tmp_path / f"{i}.png"
        figure = result.plot(what, against, file)
        assert file.read_bytes()[:4] == b"\x89PNG" and file.stat().st_size > 5000
        assert all(axis.lines for axis in figure.axes)
    assert "matplotlib.pyplot" not in set(sys.modules) - before
    (axis,) = result.plot("A").axes
    assert np.array_equal(axis.lines[0].get_ydata(), q[:, 0]) and axis.get_ylabel() == "coordinate [rad]"
    assert len(result.plot(["energy", "q", "u"]).axes) == 3
    with pytest.raises(ModelError, match="no coordinate called 'nothing'"):
        result.plot("nothing")
    with pytest.raises(ModelError, match="not one quantity"):
        result.plot("q", against="q")
    with pytest.raises(StateError, match="no time left"):
        result.isel(time=0).plot()
    with pytest.raises(FileError, match="cannot be written"):
        result.plot(file=tmp_path / "none" / "a.png")
    with pytest.raises(ModelError, match="recorded if any act"):
        written(system, t, q, u).plot("tau")


def test_plot_of_a_batch_and_of_mixed_units() -> None:
    system, t, q, u, _ = sample_run("double_pendulum", 5, (30,))
    (axis,) = written(system, t, q, u).plot("elbow.angle" if "elbow.angle" in system.coordinate_names else
                                            system.coordinate_names[0]).axes
    assert len(axis.lines) == 20 and "20 of 30" in axis.figure.get_suptitle()
    m = bc.Mechanism("sleeve")
    m.add_joint("c", bc.Cylindrical("z"), m.ground, m.add_body("s", bc.Inertia.sphere(1.0, 0.1)))
    system = bc.compile(m)
    result = written(system, np.arange(3.0), np.ones((3, 2)), np.ones((3, 2)))
    assert result["q"].attrs["units"] == "see coordinate_units"
    assert [a.get_ylabel() for a in result.plot("q").axes] == ["coordinate [rad]", "coordinate [m]"]
    assert len(result.isel(coordinate=1).plot("q").axes) == 1


def test_import_stays_light() -> None:
    code = "import sys, bellcrank; print([m for m in ('xarray', 'netCDF4', 'matplotlib', 'numpy') if m in sys.modules])"
    said = children.run_code(code)
    assert said.stdout == "[]\n"


def test_shelf_joins_what_came_in_pieces() -> None:
    """Rows added in pieces lie in one array; what was handed out does not change when it grows."""
    shelf, rng = Shelf(), np.random.default_rng(0)
    pieces = [{"time": rng.normal(size=k), "q": rng.normal(size=(k, 2, 3))} for k in (1, 7, 0, 30, 2)]
    first: dict[str, np.ndarray] = {}
    for piece in pieces:
        shelf.add(piece)
        first = first or shelf.between(0, 1)
    assert shelf.count == 40
    for name in ("time", "q"):
        whole = np.concatenate([p[name] for p in pieces])
        assert np.array_equal(shelf.between(0, 40)[name], whole) and np.array_equal(first[name], whole[:1])
        assert np.array_equal(shelf.between(5, 9)[name], whole[5:9])
    shelf.clear()
    shelf.add(pieces[1])
    assert shelf.count == 7 and np.array_equal(shelf.between(0, 7)["q"], pieces[1]["q"])
