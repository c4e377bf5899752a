"""Result files that are damaged: one kind of error, that names the file, in a bounded time."""

from __future__ import annotations

import json
import os
import random
import re
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import netCDF4
import numpy as np
import pytest

import bellcrank as bc
import children
from bellcrank.errors import FileError
from bellcrank.files import model_files
from bellcrank.simulate import netcdf, probe
from bellcrank.simulate.classic import check_classic


def copied(source: Path, target: Path, form: str) -> None:
    """The same file in another format."""
    with netCDF4.Dataset(source) as old, netCDF4.Dataset(target, "w", format=form) as new:
        new.setncatts({name: old.getncattr(name) for name in old.ncattrs()})
        for name, size in old.dimensions.items():
            new.createDimension(name, None if size.isunlimited() else len(size))
        for name, value in old.variables.items():
            made = new.createVariable(name, value.dtype, value.dimensions)
            made.setncatts({key: value.getncattr(key) for key in value.ncattrs()})
            for v in (made, value):
                v.set_auto_chartostring(False)
            made[:] = value[:]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A streamed file, one of a batch, and what xarray writes (HDF5)."""
    folder = tmp_path_factory.mktemp("good")
    system = bc.compile(bc.load("double_pendulum"))
    q, u = [0.1, 0.2], [0.0, 0.0]
    system.simulate((q, u), 0.05, file=folder / "streamed.nc", tau=[0.1, 0.0]).close()
    system.simulate((np.tile(q, (3, 1)), np.tile(u, (3, 1))), 0.02, file=folder / "batch.nc").close()
    result = system.simulate((q, u), 0.05)
    result.to_netcdf(folder / "hdf5.nc")
    result.to_netcdf(folder / "classic.nc", format="NETCDF3_CLASSIC")
    copied(folder / "streamed.nc", folder / "cdf5.nc", "NETCDF3_64BIT_DATA")
    return {path.stem: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("kind", ["streamed", "batch", "hdf5", "classic", "cdf5"])
def test_sound_files_open(kind: str, good: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "run.nc").write_bytes(good[kind])
    with bc.open_result(tmp_path / "run.nc") as result:
        assert result.attrs["status"] == "finished" and np.isfinite(result.load()["q"]).all()
        assert result.sizes["coordinate"] == 2


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A copy with some bytes changed, most of them where the header is."""
    out = bytearray(data)
    head = min(len(out), 20_000) if rng.random() < 0.8 else len(out)
    at, n = rng.randrange(head), rng.randrange(1, 40)
    kind = rng.randrange(6)
    if kind == 0:
        for _ in range(rng.choice((1, 2, 5))):
            out[rng.randrange(head)] = rng.randrange(256)
    elif kind == 1:
        out[at] ^= 1 << rng.randrange(8)
    elif kind == 2:
        del out[rng.randrange(len(out)):]
    elif kind == 3:
        out[at:at + 4] = rng.choice((b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"\0\0\0\x0c", b"\x10\0\0\0"))
    elif kind == 4:
        other = rng.randrange(head)
        out[at:at + n] = out[other:other + n]
    else:
        del out[at:at + n]
    return bytes(out)


FUZZ = """
    import signal, sys, warnings
    from pathlib import Path
    import bellcrank as bc

    warnings.simplefilter("ignore")
    signal.alarm(300)
    for name in sys.argv[1:]:
        try:
            with bc.open_result(name) as result:
                result.load()
            said = "opened"
        except bc.FileError as error:
            said = "refused" if name in str(error) else f"not named: {error}"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        print(said.replace(chr(10), " "), flush=True)
"""


@pytest.mark.everyday(2)
@pytest.mark.skipif(os.name != "posix", reason="alarms")
@pytest.mark.parametrize(("kind", "count"), [("streamed", 250), ("batch", 100), ("classic", 50), ("cdf5", 50),
                                             ("hdf5", 15)])
def test_mutations_give_one_kind_of_error(kind: str, count: int, good: dict[str, bytes], tmp_path: Path) -> None:
    rng = random.Random(f"{kind} 1")
    names = []
    for k in range(count):
        names.append(str(tmp_path / f"{k}.nc"))
        Path(names[-1]).write_bytes(mutated(good[kind], rng))
    done = children.run_code(FUZZ, *names, limit=400.0)
    answers = done.stdout.splitlines()
    assert done.returncode == 0 and len(answers) == count, (done.returncode, done.stderr[-2000:], len(answers))
    assert set(answers) == {"opened", "refused"}, [a for a in answers if a not in ("opened", "refused")]


# -- what damage does ---------------------------------------------------------------------------------
def replaced(data: bytes, old: bytes, new: bytes, count: int = 1) -> bytes:
    assert old in data
    return data.replace(old, new, count)


def attribute(name: str, kind: int) -> bytes:
    return struct.pack(">i", len(name)) + name.encode() + b"\0" * (-len(name) % 4) + struct.pack(">i", kind)


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "too many samples": (lambda d: d[:4] + struct.pack(">I", 2_000_000_000) + d[8:], "cut off, or its header"),
    "all ones": (lambda d: d[:4] + b"\xff" * 4 + d[8:], "negative"),
    "half of it": (lambda d: d[:len(d) // 2], "cut off"),
    "last byte": (lambda d: d[:-1], "cut off"),
    "half of the header": (lambda d: d[:500], "header is cut off"),
    "large dimension": (lambda d: replaced(d, struct.pack(">ii", 5, 0x6576656E)[:4] + b"event\0\0\0"
                                           + struct.pack(">i", 1024), struct.pack(">i", 5) + b"event\0\0\0"
                                           + struct.pack(">i", 2_000_000_000)), "where something else|cut off"),
    "text that is none": (lambda d: replaced(d, attribute("settings", 2), attribute("settings", 1)), "'settings'"),
    "broken utf-8": (lambda d: replaced(d, b"double pendulum", b"doubl\xf8 pendulum"), "'mechanism' is no text"),
    "broken labels": (lambda d: replaced(d, b"shoulder.angle", b"sho\xf8lder.angle"), "damaged|cannot be read"),
    "broken JSON": (lambda d: replaced(d, b'"stepper": ', b'"stepper"; '), "damaged"),
    "unknown type": (lambda d: replaced(d, attribute("settings", 2), attribute("settings", 77)), "type 77"),
    "no variables": (lambda d: re.sub(rb"\0\0\0\x0b\0\0\0.(?=\0\0\0\x04time)", bytes(8), d, count=1, flags=re.DOTALL),
                     "no variables"),
    "zeros": (lambda d: bytes(len(d)), "cannot be read"),
    "empty": (lambda d: b"", "cannot be read"),
    "only the magic": (lambda d: b"CDF\x02", "header is cut off"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_described(damage: str, good: dict[str, bytes], tmp_path: Path) -> None:
    change, said = DAMAGE[damage]
    path = tmp_path / "run.nc"
    path.write_bytes(change(good["streamed"]))
    with pytest.raises(FileError, match=rf"run\.nc: .*({said})"):
        bc.open_result(path)


def test_a_run_that_was_killed_may_hold_more_than_its_header_says(good: dict[str, bytes], tmp_path: Path) -> None:
    data = good["streamed"]
    (samples,) = struct.unpack(">I", data[4:8])
    (tmp_path / "run.nc").write_bytes(data[:4] + struct.pack(">I", samples - 7) + data[8:])
    with bc.open_result(tmp_path / "run.nc") as result:
        assert result.sizes["time"] == samples - 7


@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
@pytest.mark.parametrize("records", [0, 1, 3])
def test_headers_of_other_files(form: str, records: int, tmp_path: Path) -> None:
    """One variable alone in a record is not padded; fixed ones of odd length are."""
    for kinds in ({"x": "i1"}, {"x": "i1", "y": "i2"}, {"x": "i1", "time": "f8", "y": "i2"}):
        path = tmp_path / "x.nc"
        with netCDF4.Dataset(path, "w", format=form) as file:
            file.createDimension("time", None)
            file.createDimension("k", 3)
            file.setncatts({"a": [1.0, 2.0], "b": 3, "c": "text", "d": np.int8(1)})
            for name, kind in kinds.items():
                dims = {"x": ("time", "k"), "y": ("k",), "time": ("time",)}[name]
                variable = file.createVariable(name, kind, dims)
                variable[:] = np.ones([{"time": records, "k": 3}[d] for d in dims])
        check_classic(path)
        if records:
            path.write_bytes(path.read_bytes()[:-5])
            with pytest.raises(ValueError, match="cut off"):
                check_classic(path)


# -- HDF5 ---------------------------------------------------------------------------------------------
def test_values_that_cannot_be_in_a_file_are_not_read(tmp_path: Path) -> None:
    """A time axis is read when a file is opened: a terabyte of it that was never written takes a while."""
    with netCDF4.Dataset(tmp_path / "run.nc", "w") as file:
        file.setncattr("bellcrank_result", 1)
        file.createDimension("time", 10**11)
        file.createVariable("time", "f8", ("time",), chunksizes=(10**6,))
        file.createVariable("q", "f8", ("time",), chunksizes=(10**6,))
    before = time.perf_counter()
    with pytest.raises(FileError, match=r"run\.nc.*promises \d+ bytes"):
        bc.open_result(tmp_path / "run.nc")
    assert time.perf_counter() - before < 20.0


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(("what", "said"), [("sleep 100", "did not come back in 0.6"), ("kill -SEGV $$", "crashes")])
def test_a_library_that_crashes_or_never_returns(what: str, said: str, good: dict[str, bytes], tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run.nc").write_bytes(good["hdf5"])
    (tmp_path / "python").write_text(f"#!/bin/sh\nexec 1>&- 2>&-\n{what}\n")
    (tmp_path / "python").chmod(0o700)
    monkeypatch.setattr(model_files, "LIMIT", 0.5)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    before = time.perf_counter()
    with pytest.raises(FileError, match=rf"run\.nc.*{said}"):
        bc.open_result(tmp_path / "run.nc")
    assert time.perf_counter() - before < 10.0


def test_files_are_looked_at_once(good: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def look(path: Path) -> None:
        looks.append(path.name)
        probe.check_hdf5(path)

    monkeypatch.setattr(netcdf, "check_hdf5", look)
    path = tmp_path / "foreign.nc"
    path.write_bytes(good["hdf5"])
    for _ in range(2):
        with bc.open_result(path) as result:
            result.load()
    assert looks == ["foreign.nc"]
    result.to_netcdf(tmp_path / "own.nc")
    bc.open_result(tmp_path / "own.nc").close()
    assert looks == ["foreign.nc"]
    path.write_bytes(good["hdf5"] + b"\0")
    bc.open_result(path).close()
    assert looks == ["foreign.nc"] * 2


@pytest.mark.parametrize("name", [None, 3, 2.5, ["a.nc"]])
def test_what_is_no_name(name: object) -> None:
    with pytest.raises(FileError, match="name of a file"):
        bc.open_result(name)  # type: ignore[arg-type]


def test_names_that_no_file_has() -> None:
    with pytest.raises(FileError):
        bc.open_result("a\0b.nc")


def test_attributes_stay_json(good: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "run.nc").write_bytes(good["streamed"])
    with bc.open_result(tmp_path / "run.nc") as result:
        assert all(isinstance(json.loads(result.attrs[name]), dict) for name in ("parameters", "settings", "versions"))


@pytest.mark.parametrize(("name", "value"), [
    ("cut", "[1,2"), ("cut", "5"), ("cut", ""), ("cut", "[" * 3000), ("cut", 5), ("cut", "{}"), ("model", 5),
    ("formulation", np.arange(3.0)), ("mechanism_hash", np.arange(3.0)), ("mechanism", 5)])
def test_attributes_that_methods_read(name: str, value: object, good: dict[str, bytes], tmp_path: Path) -> None:
    """Those that `reactions`, `rebuild` and `attach` read are checked on opening."""
    (tmp_path / "run.nc").write_bytes(good["streamed"])
    with netCDF4.Dataset(tmp_path / "run.nc", "r+") as file:
        file.setncattr(name, value)
    with pytest.raises(FileError, match=r"run\.nc: cannot be read as a result"):
        bc.open_result(tmp_path / "run.nc")


@pytest.mark.skipif(os.name != "posix", reason="locales of POSIX")
def test_names_that_the_locale_does_not_have(tmp_path: Path) -> None:
    """The NetCDF library encodes names by the locale."""
    code = """
        import sys, bellcrank as bc
        system = bc.compile(bc.load("pendulum"), backend="numpy")
        try:
            system.simulate(([0.1], [0.0]), 0.01, file=sys.argv[1])
        except bc.FileError as error:
            sys.exit("PYTHONUTF8=1" not in str(error))
    """
    (tmp_path / "Prüfstand").mkdir()
    locale = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert children.run_code(code, str(tmp_path / "Prüfstand" / "run.nc"), env=locale).returncode == 0
