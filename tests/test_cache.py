"""The folder of compiled code: whatever is wrong with an entry, it is ignored and made again."""

from __future__ import annotations

import errno
import gc
import hashlib
import io
import os
import socket
import stat
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import children
from assembly_text import unrolled_text
from bellcrank.scalar.graph import Graph
from bellcrank.target.llvm import cache, jit
from bellcrank.target.llvm.kernel import Kernel

posix = pytest.mark.skipif(os.name != "posix", reason="file modes and owners are those of POSIX")


class Forgetful(dict[str, jit.Library]):
    """Code in use that is not found again, so that the folder is asked every time."""

    def setdefault(self, key: str, value: jit.Library) -> jit.Library:  # type: ignore[override]
        return value


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder of this test's own."""
    chosen = tmp_path / "cache"
    monkeypatch.setenv("BELLCRANK_CACHE", str(chosen))
    monkeypatch.setattr(jit, "_loaded", Forgetful())
    return chosen


def source(factor: float = 3.0) -> str:
    return unrolled_text([Graph().leaf(("x", 0)) * factor + 1.0], {"x": 1}, 1)


def works(library: jit.Library, factor: float = 3.0) -> bool:
    kernel = Kernel(library, {"x": 1}, 1, 1)
    out = np.zeros((1, 1))
    return kernel.run([np.array([[2.0]])], kernel.packed_strides, out, 0, 1) and bool(out[0, 0] == 2.0 * factor + 1.0)


def only_entry(place: Path) -> Path:
    (entry,) = place.glob("*.o")
    return entry


# -- the usual way ----------------------------------------------------------------------------
def test_cold_then_warm(place: Path) -> None:
    assert not place.exists()
    cold = jit.load(source())
    assert not cold.from_cache and works(cold)
    warm = jit.load(source())
    assert warm.from_cache and works(warm)
    assert [p.name for p in place.iterdir()] == [only_entry(place).name]
    other = jit.load(source(4.0))
    assert not other.from_cache and works(other, 4.0) and works(warm) and works(cold)
    assert len(list(place.glob("*.o"))) == 2


def test_a_warm_load_does_not_make_the_source() -> None:
    calls = []

    def make() -> str:
        calls.append(1)
        return source()

    assert works(jit.load("some key", make))
    warm = jit.load("some key", make)
    assert warm.from_cache and works(warm)
    assert len(calls) == 1
    assert not jit.load("another key", make).from_cache
    assert len(calls) == 2


def test_other_machines_and_generators_have_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_cache() -> tuple[bool, bool]:
        return jit.load(source()).from_cache, jit.load("key", source).from_cache

    assert from_cache() == (False, False)
    assert from_cache() == (True, True)
    with monkeypatch.context() as patch:
        patch.setattr(jit, "_generator_key", lambda: "another version of the code generator")
        assert from_cache() == (True, False)  # a whole source is its own key
    with monkeypatch.context() as patch:
        patch.setattr(jit, "target_key", lambda: "another processor")
        assert from_cache() == (False, False)
    assert from_cache() == (True, True)


def test_the_target_key_names_processor_and_versions() -> None:
    import llvmlite
    import llvmlite.binding as llvm

    key = jit.target_key()
    assert llvmlite.__version__ in key and llvm.get_host_cpu_name() in key and llvm.get_process_triple() in key


def rods(mass: float) -> bc.Mechanism:
    m = bc.Mechanism("rods")
    upper = m.add_body("upper", bc.Inertia.rod(mass, (0, 0, 0), (0, 0, -0.7)))
    lower = m.add_body("lower", bc.Inertia.rod(mass, (0, 0, 0), (0, 0, -0.7)))
    m.add_joint("shoulder", bc.Revolute("x"), m.ground, upper)
    m.add_joint("elbow", bc.Revolute("x"), upper, lower, parent_pose=bc.Pose((0, 0, -0.7)))
    return m


@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
def test_systems_are_kept(schedule: str) -> None:
    def made(mass: float) -> tuple[bool, np.ndarray]:
        system = bc.compile(rods(mass), schedule=schedule)
        kernel = system.kernels.evaluator.kernel(system.kernels.functions["inverse_dynamics"], False, 1)
        q = np.array([0.1, 0.2])
        return kernel.library.from_cache, system.inverse_dynamics(q, -q, q)

    first, second, other = made(1.5), made(1.5), made(3.0)
    assert not first[0] and second[0]
    np.testing.assert_array_equal(first[1], second[1])
    # masses are literals of unrolled code; rolled code reads them from tables and serves both machines
    assert other[0] == (schedule == "rolled")
    np.testing.assert_allclose(other[1], 2.0 * first[1], rtol=16 * np.finfo(float).eps)


# -- damage -----------------------------------------------------------------------------------
def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]


HEAD = len(b"bellcrank-code-1\n") + 64 + 1
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda d: b"",
    "one byte": lambda d: d[:1],
    "cut in the magic": lambda d: d[:10],
    "cut in the key": lambda d: d[:40],
    "cut before the checksum": lambda d: d[:HEAD],
    "cut in the checksum": lambda d: d[:HEAD + 20],
    "cut before the code": lambda d: d[:HEAD + 32],
    "cut in the code": lambda d: d[:len(d) // 2],
    "last byte missing": lambda d: d[:-1],
    "bit of the magic": lambda d: flipped(d, 3),
    "bit of the key": lambda d: flipped(d, 30),
    "bit of the checksum": lambda d: flipped(d, HEAD + 5),
    "first bit of the code": lambda d: flipped(d, HEAD + 32),
    "bit in the code": lambda d: flipped(d, HEAD + 32 + len(d) // 3),
    "last bit": lambda d: flipped(d, len(d) - 1),
    "another magic": lambda d: d.replace(b"bellcrank-code-1\n", b"bellcrank-code-0\n"),
    "something behind": lambda d: d + b"\0",
    "something before": lambda d: b"\0" + d,
    "twice": lambda d: d + d,
    "zeros": lambda d: bytes(len(d)),
    "no head": lambda d: d[HEAD + 32:],
    "another program": lambda d: b"#!/bin/sh\nexit 1\n",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_entries_are_made_again(damage: str, place: Path) -> None:
    jit.load(source())
    entry = only_entry(place)
    good = entry.read_bytes()
    assert good.startswith(b"bellcrank-code-1\n" + entry.stem.encode() + b"\n")
    assert good[HEAD:HEAD + 32] == hashlib.sha256(good[HEAD + 32:]).digest()
    entry.write_bytes(DAMAGE[damage](good))
    assert cache.fetch(entry.stem) is None
    again = jit.load(source())
    assert not again.from_cache and works(again)
    assert entry.read_bytes() == good  # repaired
    assert jit.load(source()).from_cache


def test_no_single_bit_may_change(place: Path) -> None:
    code = bytes(range(256))
    cache.keep("k" * 64, code)
    entry = only_entry(place)
    good = entry.read_bytes()
    assert cache.fetch("k" * 64) == code
    for at in range(len(good)):
        entry.write_bytes(flipped(good, at))
        assert cache.fetch("k" * 64) is None, at


def test_an_entry_under_another_name_is_not_used(place: Path) -> None:
    jit.load(source())
    first = only_entry(place)
    jit.load(source(4.0))
    (second,) = set(place.glob("*.o")) - {first}
    os.replace(first, second)
    again = jit.load(source(4.0))
    assert not again.from_cache and works(again, 4.0)
    assert jit.load(source(4.0)).from_cache


def test_an_entry_that_is_no_machine_code_is_made_again(place: Path) -> None:
    """Right in form, wrong in content: "whatever is wrong with an entry" includes this."""
    jit.load(source())
    entry = only_entry(place)
    good = entry.read_bytes()
    cache.keep(entry.stem, b"this is not an object file")
    again = jit.load(source())
    assert not again.from_cache and works(again)
    assert entry.read_bytes() == good


def test_a_folder_in_the_place_of_an_entry(place: Path) -> None:
    jit.load(source())
    entry = only_entry(place)
    entry.unlink()
    entry.mkdir()
    for _ in range(2):
        again = jit.load(source())
        assert not again.from_cache and works(again)
    assert [p.name for p in place.iterdir()] == [entry.name]  # and nothing is left lying about


@posix
@pytest.mark.parametrize("kind", ["pipe", "device", "link to a pipe", "socket"])
def test_something_else_in_the_place_of_an_entry(kind: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe that nobody writes to would be waited for without end."""
    jit.load(source())
    entry = only_entry(place)
    entry.unlink()
    if kind == "pipe":
        os.mkfifo(entry, 0o600)
    elif kind == "device":
        entry.symlink_to("/dev/zero")
    elif kind == "link to a pipe":
        os.mkfifo(place / "pipe", 0o600)
        entry.symlink_to(place / "pipe")
    else:
        monkeypatch.chdir(place)  # addresses of sockets are short
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(entry.name[:40])
            os.rename(entry.name[:40], entry.name)
    text = f"from bellcrank.target.llvm import cache; print(cache.fetch({entry.stem!r}))"
    done = children.run_code(text, limit=60.0)
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr
    again = jit.load(source())
    assert not again.from_cache and works(again)
    assert jit.load(source()).from_cache and entry.is_file() and not entry.is_symlink()


# -- who may write ----------------------------------------------------------------------------
@posix
@pytest.mark.parametrize("mode", [0o666, 0o622, 0o620, 0o602, 0o777])
def test_entries_that_others_may_write_are_ignored(mode: int, place: Path) -> None:
    jit.load(source())
    only_entry(place).chmod(mode)
    again = jit.load(source())
    assert not again.from_cache and works(again)
    assert not only_entry(place).stat().st_mode & 0o022  # replaced by one of our own
    assert jit.load(source()).from_cache


@posix
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o400, 0o755])
def test_entries_that_others_may_only_read_are_used(mode: int, place: Path) -> None:
    jit.load(source())
    only_entry(place).chmod(mode)
    assert jit.load(source()).from_cache


@posix
def test_entries_of_other_users_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    jit.load(source())
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    again = jit.load(source())
    assert not again.from_cache and works(again)


@posix
def test_new_entries_are_ours_alone(place: Path) -> None:
    before = os.umask(0)
    try:
        jit.load(source())
    finally:
        os.umask(before)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE(only_entry(place).stat().st_mode) == 0o600


# -- folders that cannot be used --------------------------------------------------------------
def unusable(kind: str, tmp_path: Path) -> Path:
    if kind == "a file":
        (tmp_path / "file").write_text("not a folder")
        return tmp_path / "file"
    if kind == "below a file":
        (tmp_path / "file").write_text("not a folder")
        return tmp_path / "file" / "cache"
    if kind == "where nobody may write":
        if not Path("/proc/self").exists():
            pytest.skip("no /proc here")
        return Path("/proc/bellcrank")
    if os.name != "posix" or os.geteuid() == 0:
        pytest.skip("nothing is read-only for root")
    (tmp_path / "locked").mkdir(mode=0o500)
    return tmp_path / "locked" / ("cache" if kind == "below a locked folder" else "")


@pytest.mark.parametrize("kind", ["a file", "below a file", "where nobody may write", "a locked folder",
                                  "below a locked folder"])
def test_unusable_folders_are_no_error(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLCRANK_CACHE", str(unusable(kind, tmp_path)))
    for _ in range(2):
        library = jit.load(source())
        assert not library.from_cache and works(library)
    pendulum = bc.compile(bc.load("pendulum"))
    assert pendulum.forward_dynamics([0.5], [0.0])[0] == pytest.approx(-9.81 * np.sin(0.5), rel=1e-3)


@pytest.mark.parametrize("word", ["off", "OFF", "Off", "0", "none", "None"])
def test_off_writes_nothing(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLCRANK_CACHE", word)
    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert cache.folder() is None
    for _ in range(2):
        library = jit.load(source())
        assert not library.from_cache and works(library)
    cache.keep("key", b"code")
    assert cache.fetch("key") is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="other places there")
def test_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for unset in ("", None):
        if unset is None:
            monkeypatch.delenv("BELLCRANK_CACHE")
        else:
            monkeypatch.setenv("BELLCRANK_CACHE", unset)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert cache.folder() == tmp_path / "xdg" / "bellcrank"
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert cache.folder() == tmp_path / ".cache" / "bellcrank"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert works(jit.load(source()))
    assert jit.load(source()).from_cache
    assert (tmp_path / "xdg" / "bellcrank").is_dir()


@pytest.fixture
def unwarned() -> None:
    cache._warn.cache_clear()


def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container with a user that has no account."""
    pwd = pytest.importorskip("pwd")

    def nobody(*args: object) -> Any:
        raise KeyError(args)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.setattr(pwd, "getpwnam", nobody)
    for name in ("HOME", "XDG_CACHE_HOME", "BELLCRANK_CACHE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.skipif(sys.platform == "win32", reason="other places there")
@pytest.mark.parametrize("chosen", ["", "~nouser/x", "~/x"])
def test_without_a_home_folder_there_is_one_warning(chosen: str, monkeypatch: pytest.MonkeyPatch, unwarned: None
                                                    ) -> None:
    homeless(monkeypatch)
    if chosen:
        monkeypatch.setenv("BELLCRANK_CACHE", chosen)
    with pytest.warns(bc.CacheWarning, match="BELLCRANK_CACHE") as seen:
        for _ in range(2):
            library = jit.load(source())
            assert not library.from_cache and works(library)
            pendulum = bc.compile(bc.load("pendulum"))
            assert pendulum.forward_dynamics([0.5], [0.0])[0] == pytest.approx(-9.81 * np.sin(0.5), rel=1e-3)
    assert len(seen) == 1


def test_a_user_who_does_not_exist(monkeypatch: pytest.MonkeyPatch, unwarned: None) -> None:
    monkeypatch.setenv("BELLCRANK_CACHE", "~nouserofthisname/x")
    with pytest.warns(bc.CacheWarning, match="not kept"):
        assert cache.folder() is None


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="other places there")
def test_a_home_is_not_needed_where_the_folder_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homeless(monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "bellcrank"
    monkeypatch.setenv("BELLCRANK_CACHE", "off")
    assert cache.folder() is None


# -- writing ----------------------------------------------------------------------------------
def test_leftovers_do_no_harm(place: Path) -> None:
    place.mkdir()
    leftovers = {"tmpabc.tmp": b"", "tmpdef.tmp": b"half an ent", "notes.txt": b"mine", "short.o": b"bell"}
    for name, content in leftovers.items():
        (place / name).write_bytes(content)
    assert works(jit.load(source()))
    assert jit.load(source()).from_cache
    for name, content in leftovers.items():
        assert (place / name).read_bytes() == content


def test_an_entry_appears_whole_or_not_at_all(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    replace = os.replace

    def watched(old: str, new: str) -> None:
        assert not Path(new).exists()  # nothing under the final name until now
        assert Path(old).parent == Path(new).parent  # renaming across file systems is not atomic
        assert Path(old).suffix == ".tmp"
        seen.append(Path(old).read_bytes())  # written and closed
        replace(old, new)
        assert Path(new).read_bytes() == seen[-1]

    monkeypatch.setattr(os, "replace", watched)
    jit.load(source())
    assert len(seen) == 1
    assert only_entry(place).read_bytes() == seen[0]


def test_an_interrupt_leaves_no_half_entry(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        jit.load(source())
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("step", ["create", "write", "rename"])
def test_a_full_disk_is_no_error(step: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **more: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    class FullFile(io.FileIO):
        def write(self, data: Any) -> int:
            super().write(bytes(data)[:10])
            return int(full())

    with monkeypatch.context() as patch:
        if step == "create":
            patch.setattr(cache.tempfile, "mkstemp", full)
        elif step == "write":
            patch.setattr(os, "fdopen", FullFile)
        else:
            patch.setattr(os, "replace", full)
        library = jit.load(source())
        assert not library.from_cache and works(library)
    assert list(place.iterdir()) == []  # neither an entry nor a leftover
    assert not jit.load(source()).from_cache
    assert jit.load(source()).from_cache


def test_many_writers_and_readers_of_one_entry(place: Path) -> None:
    codes = [bytes([i]) * (10_000 + 1000 * i) for i in range(4)]
    stop = threading.Event()
    problems: list[object] = []

    def write(i: int) -> None:
        for _ in range(100):
            cache.keep("shared", codes[i])

    def read() -> None:
        while not stop.is_set():
            got = cache.fetch("shared")
            exists = (place / "shared.o").exists()
            if got is not None and got not in codes:
                problems.append(got[:20])
            if got is None and exists and cache.fetch("shared") is None:
                problems.append("an entry is there but cannot be read")

    readers = [threading.Thread(target=read) for _ in range(2)]
    writers = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert problems == []
    assert [p.name for p in place.iterdir()] == ["shared.o"]


# -- memory -----------------------------------------------------------------------------------
def test_equal_code_is_loaded_once_and_unloaded_with_the_last_user(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: weakref.WeakValueDictionary[str, jit.Library] = weakref.WeakValueDictionary()
    monkeypatch.setattr(jit, "_loaded", loaded)

    def library(mass: float) -> tuple[bc.System, jit.Library]:
        system = bc.compile(rods(mass))
        return system, system.kernels.evaluator.kernel(system.kernels.functions["inverse_dynamics"], False, 1).library

    first, second, other = library(1.5), library(1.5), library(3.0)
    assert first[1] is second[1] and first[1] is not other[1]
    assert len(loaded) == 2
    q = np.array([0.1, 0.2])
    wanted = first[0].inverse_dynamics(q, -q, q)
    del first
    gc.collect()
    np.testing.assert_array_equal(second[0].inverse_dynamics(q, -q, q), wanted)
    del second, other
    gc.collect()
    assert not loaded


def test_libraries_outlive_their_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_LINKED_TOGETHER", 2)
    monkeypatch.setattr(jit, "_linker", None)
    libraries = [jit.load(source(float(k)), None) for k in range(2, 9)]
    gc.collect()
    assert all(works(library, float(k)) for k, library in enumerate(libraries, 2))
    del libraries[::2]
    gc.collect()
    assert all(works(library, float(k)) for library, k in zip(libraries, (3, 5, 7), strict=True))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_does_not_grow_with_the_number_of_loads() -> None:
    """A library kept by LLVM costs some 7 kB, which 3000 loads showed as 20 MB."""
    text = """if True:
        import gc
        from bellcrank.target.llvm import jit
        from bellcrank.target.kernel_source import GraphKernel
        from bellcrank.target.llvm.llvm_runtime import batch_text
        from bellcrank.scalar.graph import Graph

        sources = [batch_text(GraphKernel([Graph().leaf(("x", 0)) * factor], {"x": 1}), 1)()
                   for factor in (3.0, 4.0, 5.0)]

        def resident(loads):
            for i in range(loads):
                jit.load(sources[i % 3])
            gc.collect()
            return int(open("/proc/self/statm").read().split()[1]) * 4

        before = resident(300)
        print(resident(3000) - before)
    """
    found = children.run_code(text)
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) < 4000, f"{found.stdout} kB more"


# -- the size of the folder ----------------------------------------------------------------------------------------
def filled(place: Path, count: int, size: int) -> list[Path]:
    """Entries of `size` bytes, the first ones used long ago."""
    for k in range(count):
        cache.keep(f"{k:064x}", bytes(size))
        os.utime(place / f"{k:064x}.o", (1e9 + k, 1e9 + k))
    return [place / f"{k:064x}.o" for k in range(count)]


def test_what_was_not_used_for_long_is_removed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLCRANK_CACHE_SIZE", "1")
    monkeypatch.setattr(cache, "_unseen", 0.0)
    entries = filled(place, 9, 100_000)
    foreign, draft, new = place / "of_a_compiler.o", place / f"{cache._DRAFT}old.tmp", place / f"{cache._DRAFT}new.tmp"
    for path in (foreign, draft, new):
        path.write_bytes(bytes(300_000 if path is foreign else 10))
    os.utime(foreign, (1e9, 1e9))
    os.utime(draft, (1e9, 1e9))
    assert cache.fetch(f"{0:064x}") is not None  # used now: the newest of all
    cache.keep("f" * 64, bytes(100_000))
    there = [path.exists() for path in entries]
    assert there[0] and (place / f"{'f' * 64}.o").exists() and there == [True, *sorted(there[1:])]
    assert foreign.exists() and new.exists() and not draft.exists()
    assert sum(p.stat().st_size for p in place.iterdir()) <= 800_000 + 100_500


def test_the_folder_is_looked_at_now_and_then(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    original = cache._entries
    monkeypatch.setattr(cache, "_entries", lambda place: looks.append(1) or original(place))
    monkeypatch.setattr(cache, "_unseen", float("inf"))
    filled(place, 20, 1000)
    assert len(looks) == 1


@pytest.mark.parametrize("given", ["much", "-1", "nan"])
def test_sizes_that_are_no_numbers(given: str, monkeypatch: pytest.MonkeyPatch, unwarned: None) -> None:
    monkeypatch.setenv("BELLCRANK_CACHE_SIZE", given)
    with pytest.warns(bc.CacheWarning, match="not a number of megabytes"):
        assert cache.size_limit() == 500e6


def test_processes_that_remove_at_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the others remove, nobody fails, and what is there is whole."""
    monkeypatch.setenv("BELLCRANK_CACHE_SIZE", "0.05")
    failures: list[BaseException] = []

    def work(k: int) -> None:
        try:
            for i in range(30):
                key, code = f"{i % 7:064x}", bytes([i % 7]) * 10_000
                assert cache.fetch(key) in (None, code)
                monkeypatch.setattr(cache, "_unseen", float("inf"))
                cache.keep(key, code)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sum(p.stat().st_size for p in place.iterdir()) <= 50_000 + 6 * 11_000
