"""Stores of sweeps that are damaged or come from a stranger: `FileError`, and nothing in them is executed; files beside
a store stay as they are."""

from __future__ import annotations

import errno
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.studies.sample_table import table_of
from bellcrank.studies.study import ChunkResult, RunValues
from bellcrank.studies.zarr_store import ZarrSink

zarr = pytest.importorskip("zarr")


def sink_at(path: Path) -> ZarrSink:
    return ZarrSink(path, table_of({"b": np.arange(6.0), "a": [0.0]}, None), {"varied": ["b", "a"]}, {"run": "x"}, 4)


def fill(sink: ZarrSink) -> None:
    for number, runs in ((0, 4), (1, 2)):
        values = {"z": RunValues(("run", "time"), np.ones((runs, 3)), {"units": "m"}),
                  "y": RunValues(("run",), np.full(runs, 7), {}), "text": RunValues(("run",), np.full(runs, "ab"), {})}
        coords = {"time": RunValues(("time",), np.arange(3.0), {"units": "s"}),
                  "word": RunValues(("time",), np.array(["u", "v", "w"]), {})}
        sink.put(number, ChunkResult(values, coords, ["finished"] * runs, [""] * runs))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A complete store of six runs."""
    sink = sink_at(tmp_path / "study.zarr")
    fill(sink)
    sink.close()
    return tmp_path / "study.zarr"


def use(path: Path) -> None:
    """Open a store, read everything, go on with it."""
    bc.open_sweep(path).load()
    sink_at(path).close()


def changed(path: Path, change: Callable[[Any], object]) -> None:
    """Change a file of metadata."""
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))


def test_a_sound_store_opens_in_one_order(store: Path) -> None:
    """Samples, coordinates, results, status and reason, whatever the order of the folder."""
    found = bc.open_sweep(store)
    assert list(found.variables) == ["z", "y", "text", "status", "reason", "b", "a", "time", "word"]
    assert list(found.coords) == ["b", "a", "time", "word"] and list(found.z.coords) == ["b", "a", "time", "word"]
    assert found.time.dtype == float and found.time.attrs["units"] == "s" and found.word.values.tolist()[0] == "u"
    assert found.y.values.tolist() == [7] * 6 and found.text.values.tolist() == ["ab"] * 6
    np.testing.assert_array_equal(found.z.isel(run=[5, 1], time=slice(None, None, -1)).values, 1.0)
    use(store)


@pytest.mark.parametrize("codec", ["numcodecs.pickle", "pickle", "sharding_indexed", "blosc"])
def test_other_codecs_are_refused_before_anything_is_decoded(codec: str, store: Path, monkeypatch: pytest.MonkeyPatch
                                                             ) -> None:
    changed(store / "time" / "zarr.json", lambda found: found["codecs"].append({"name": codec, "configuration": {}}))
    for name in ("open_array", "open_group"):
        monkeypatch.setattr(zarr, name, lambda *a, **k: pytest.fail("asked to decode"))
    for act in (bc.open_sweep, sink_at):
        with pytest.raises(bc.FileError, match="array 'time': codecs .* nothing is decoded"):
            act(store)


def test_consolidated_metadata_is_not_believed(store: Path) -> None:
    """A second description of the arrays, in the metadata of the group, is not looked at."""
    described = json.loads((store / "time" / "zarr.json").read_text())
    described["codecs"] = [{"name": "numcodecs.pickle", "configuration": {}}]
    changed(store / "zarr.json", lambda found: found.update(consolidated_metadata={
        "kind": "inline", "must_understand": False, "metadata": {"time": described}}))
    assert bc.open_sweep(store).time.values.tolist() == [0.0, 1.0, 2.0]
    sink_at(store).close()


def test_stores_of_format_2_are_refused(tmp_path: Path) -> None:
    """Their filters may be pickles."""
    (tmp_path / ".zgroup").write_text('{"zarr_format": 2}')
    (tmp_path / ".zattrs").write_text('{"bellcrank_sweep": 1, "chunk": 1, "fingerprints": {}}')
    with pytest.raises(bc.FileError, match="is no store of a sweep"):
        bc.open_sweep(tmp_path)
    with pytest.raises(bc.FileError, match="exists and is no store"):
        bc.sweep("pendulum", {"q.hinge": [0.1]}, run={"duration": 0.1}, out=tmp_path, resume=True)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_names_that_no_file_can_have(name: str, tmp_path: Path) -> None:
    with pytest.raises(bc.FileError):
        bc.open_sweep(tmp_path / name)
    with pytest.raises(bc.FileError):
        bc.sweep("pendulum", {"q.hinge": [0.1]}, run={"duration": 0.1}, out=tmp_path / name)


VALUES = (None, -1, 0, 10**12, 10**30, "x", [], {}, [10**12], [-1], "NaN", 1.5, True, "|O", "../../..", "x" * 5000,
          [[]], [{"name": "pickle"}], {"name": "numcodecs.pickle", "configuration": {}})


def places(found: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a JSON value that can be given another value."""
    for key in (found if isinstance(found, dict) else range(len(found)) if isinstance(found, list) else ()):
        yield found, key
        yield from places(found[key])


def test_damaged_stores(store: Path) -> None:
    """Other values in the metadata, other bytes, files that are missing or links."""
    rng, refused = random.Random(5), 0
    files = sorted(p for p in store.rglob("*") if p.is_file())
    for k in range(60):
        file = rng.choice(files)
        sound = file.read_bytes()
        damage(file, rng, k)
        try:
            use(store)
        except bc.FileError as error:
            assert "study.zarr" in str(error)
            refused += 1
        except bc.ModelError as error:  # fingerprints
            assert "holds another study" in str(error)
        file.unlink(missing_ok=True)
        file.write_bytes(sound)
    assert refused > 30


def damage(file: Path, rng: random.Random, k: int) -> None:
    data = bytearray(file.read_bytes())
    if file.suffix == ".json" and k % 4:
        found = json.loads(data)
        where, key = rng.choice(list(places(found)))
        where[key] = rng.choice(VALUES)
        file.write_text(json.dumps(found))
    elif k % 5 == 0:
        file.unlink()
        if k % 2:
            file.symlink_to("/etc/passwd")
    else:
        for _ in range(3):
            data[rng.randrange(len(data))] = rng.randrange(256)
        file.write_bytes(data[:rng.randrange(len(data) + 1)] if k % 3 else data)


@pytest.mark.parametrize(("change", "part"), [
    (lambda s: changed(s / "b" / "zarr.json", lambda x: x.update(shape=[10**12])), "along 'run'"),
    (lambda s: [changed(f, lambda x: x.update(shape=[10**9, *x["shape"][1:]])) for f in s.glob("*/zarr.json")
                if "run" in json.loads(f.read_text())["dimension_names"]], "do not fit to 2 chunks"),
    (lambda s: [changed(s / n / "zarr.json", lambda x: x.update(
        shape=[10**7], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [10**7]}}))
        for n in ("time", "word")] and changed(s / "z" / "zarr.json", lambda x: x.update(
            shape=[6, 10**7], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [4, 10**7]}})),
     "promises 80000000 bytes")])
def test_sizes_that_are_not_there(change: Callable[[Path], object], part: str, store: Path) -> None:
    change(store)
    with pytest.raises(bc.FileError, match=part):
        bc.open_sweep(store)


def test_texts_that_are_not_there(store: Path) -> None:
    """The codec would make room for a hundred million of them first."""
    numcodecs = pytest.importorskip("numcodecs")
    text = store / "text" / "c" / "0"
    text.write_bytes(numcodecs.Zstd().encode((10**8).to_bytes(4, "little") + bytes(numcodecs.Zstd().decode(
        text.read_bytes()))[4:]))
    before = time.perf_counter()
    for act in (lambda: bc.open_sweep(store).text.load(), lambda: sink_at(store)):
        with pytest.raises(bc.FileError, match="promises 100000000 texts"):
            act()
    assert time.perf_counter() - before < 5.0


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_pipes_and_links_as_chunks(store: Path) -> None:
    chunk = store / "b" / "c" / "0"
    chunk.unlink()
    os.mkfifo(chunk)
    with pytest.raises(bc.FileError, match="not an ordinary file"):
        bc.open_sweep(store)


def test_folders_and_files_of_the_user_stay(tmp_path: Path) -> None:
    (tmp_path / "study.new").mkdir()
    (tmp_path / "study.new" / "thesis.txt").write_text("years of work")
    sink = sink_at(tmp_path / "study")
    sink.close()
    assert (tmp_path / "study.new" / "thesis.txt").read_text() == "years of work"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["study", "study.new"]


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
@pytest.mark.parametrize("linked", [True, False])
def test_what_has_the_name_of_the_lock_stays(linked: bool, tmp_path: Path) -> None:
    lock = tmp_path / ".study.lock"
    thesis = tmp_path / "thesis.txt" if linked else lock
    thesis.write_text("years of work")
    if linked:
        lock.symlink_to(thesis)
    with pytest.raises(bc.FileError, match=r"\.study\.lock"):
        sink_at(tmp_path / "study")
    assert thesis.read_text() == "years of work" and lock.exists()


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the store is made nothing is left of it; later the marked chunks are."""
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "study.zarr"
    with monkeypatch.context() as patch, pytest.raises(bc.FileError, match=r"study.zarr .*No space left"):
        patch.setattr(zarr.Array, "__setitem__", full)
        sink_at(path)
    assert not list(tmp_path.iterdir())
    sink = sink_at(path)
    with monkeypatch.context() as patch, pytest.raises(bc.FileError, match=r"No space left.*resume=True"):
        patch.setattr(zarr.Array, "__setitem__", full)
        fill(sink)
    assert sink.missing() == [0, 1]
    sink.close()
