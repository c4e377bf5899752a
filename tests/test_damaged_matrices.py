"""Matrices and meshes in damaged or hostile files: `FileError` in a bounded time, and the interpreter lives."""

from __future__ import annotations

import base64
import importlib.util
import io
import random
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import sparse

import bellcrank as bc
from bellcrank.mechanism.flexible.matrix_files import matrix_of

#: six numbers on the diagonal
COORDINATE = "%%MatrixMarket matrix coordinate real symmetric\n6 6 6\n" + "".join(f"{i} {i} 1.0\n" for i in range(1, 7))
needs_meshio = pytest.mark.skipif(importlib.util.find_spec("meshio") is None, reason="meshio is not installed")


def npz_of(**arrays: Any) -> bytes:
    made = io.BytesIO()
    np.savez_compressed(made, **arrays)
    return made.getvalue()


def npy_of(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


#: a MAT file with a damaged sparse matrix, on which SciPy's reader crashes
CRASH = b"MATLAB 5.0 MAT-file".ljust(124) + base64.b85decode(
    "00Bu&4*&oFFaQ7mc%0*7U|<MfWME(e(i{vB8U$F8_#n&(gx)}!6NnWUp^6wj*fWp?hQB@lG2I9r4*&oFKmY&$c%0*7U|?7Q#B4y!"
    "0mQ6OHY=3R2E~j(7z`DcV1NKdAZ7w$AZ7w$W*}yP%7L&99(gvX948PPFu=eEdtzw-k+TT%")

BAD: dict[str, tuple[str, bytes, str]] = {
    "letter at the end": ("k.mtx", COORDINATE.rstrip("\n").encode() + b"i", "1.0i"),
    "entries that are not there": ("k.mtx", COORDINATE.replace("6 6 6", f"6 6 {10**12}").encode(), "are promised"),
    "dense, sizes that are not there": (
        "k.mtx", b"%%MatrixMarket matrix array real general\n1000000 1000000\n1.0\n", "are promised"),
    "rows without entries": ("k.mtx", COORDINATE.replace("6 6 6", f"{10**12} {10**12} 6").encode(), "promises"),
    "place outside": ("k.mtx", COORDINATE.replace("6 6 1.0", "7 6 1.0").encode(), "outside of the 6 x 6"),
    "complex": ("k.mtx", COORDINATE.replace("real", "complex").encode(), "is not read"),
    "no banner": ("k.mtx", b"6 6 6\n", "its first line"),
    "no zip": ("k.npz", b"PK\3\4x", "cannot be read"),
    "zip bomb": ("k.npz", npz_of(format=np.array(b"csr"), shape=[1, 1], data=np.zeros(10**7)), "would become"),
    "wild indices": ("k.npz", npz_of(format=np.array(b"csr"), shape=[2, 2], data=np.ones(2), indptr=[0, 1, 2],
                                     indices=[0, 10**9]), "cannot be read"),
    "no npy": ("k.npy", b"", "cannot be read"),
    "shape that is not there": (
        "k.npy", npy_of("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }\n"), "cannot be read"),
    "pickles": ("k.npy", npy_of("{'descr': '|O', 'fortran_order': False, 'shape': (1, 1), }\n"), "cannot be read"),
    "texts": ("k.npy", npy_of("{'descr': '|S1', 'fortran_order': False, 'shape': (1, 1), }\n") + b"x", "not a matrix"),
    "no mat": ("k.mat", b"MATLAB 5.0 MAT-file" + b" " * 105 + b"\0\1IM" + b"\17\0\0\0\5\0\0\0xxxxx", "cannot be read"),
    "other": ("k.txt", b"1", "is none of")}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(case: str, tmp_path: Path) -> None:
    name, data, said = BAD[case]
    (tmp_path / name).write_bytes(data)
    before = time.perf_counter()
    with pytest.raises(bc.FileError, match=said) as caught:
        matrix_of("K", tmp_path / name)
    assert str(caught.value).count(name) == 1 and str(caught.value).startswith("K: ")  # said once
    assert time.perf_counter() - before < 10.0


def test_a_mat_file_that_crashes_its_reader(tmp_path: Path) -> None:
    (tmp_path / "k.mat").write_bytes(CRASH)
    with pytest.raises(bc.FileError, match="crashes on it|cannot be read"):
        matrix_of("K", tmp_path / "k.mat")


def written(layout: str, symmetry: str, matrix: Any) -> str:
    file = io.BytesIO()
    scipy_io.mmwrite(file, sparse.coo_matrix(matrix) if layout == "coordinate" else matrix, symmetry=symmetry,
                     comment="made by a test", precision=17)
    return file.getvalue().decode()


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("layout", ["coordinate", "array"])
def test_matrix_market_files_that_scipy_writes(layout: str, symmetry: str, tmp_path: Path) -> None:
    x = np.random.default_rng(3).normal(size=(4, 4))
    matrix = {"general": x[:3], "symmetric": x + x.T, "skew-symmetric": x - x.T}[symmetry]
    (tmp_path / "k.mtx").write_text(written(layout, symmetry, matrix))
    found = matrix_of("K", tmp_path / "k.mtx")
    np.testing.assert_array_equal(found.toarray() if sparse.issparse(found) else found, matrix)


def damaged(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 8))):
        i = rng.randrange(len(out))
        if rng.random() < 0.6:
            out[i] = rng.randrange(256)
        elif rng.random() < 0.5:
            out[i:i] = rng.choice((b"9", b"-1", b"1e308", b"nan", b"\0", b" ", b"\n", b"\xff\xff\xff\x7f"))
        else:
            del out[i:i + rng.choice((1, 4, 40))]
    return bytes(out)


@pytest.mark.parametrize("kind", ["npy", "npz", "mtx"])
def test_damaged_files(kind: str, tmp_path: Path) -> None:
    """Read, or refused by name; nothing else."""
    dense = io.BytesIO()
    np.save(dense, np.eye(6))
    packed = io.BytesIO()
    sparse.save_npz(packed, sparse.eye(6).tocsr())
    good = {"npy": dense.getvalue(), "npz": packed.getvalue(), "mtx": COORDINATE.encode()}[kind]
    path, rng, refused = tmp_path / f"k.{kind}", random.Random(7), 0
    for _ in range(150):
        path.write_bytes(damaged(good, rng))
        try:
            assert matrix_of("K", path).ndim == 2
        except bc.FileError as error:
            assert path.name in str(error)
            refused += 1
    assert refused > 50


# -- meshes ----------------------------------------------------------------------------------------------------------
VTK = """# vtk DataFile Version 3.0
one tetrahedron
ASCII
DATASET UNSTRUCTURED_GRID
POINTS 4 double
0 0 0 1 0 0 0 1 0 0 0 1
CELLS 1 5
4 0 1 2 3
CELL_TYPES 1
10
"""


def body_of(path: Path) -> bc.FlexibleBody:
    return bc.FlexibleBody.from_mesh(path, 2e11, 0.3, 7850.0, interfaces={}, modes=1, reduction="free")


@needs_meshio
def test_a_mesh_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "m.vtk").write_text(VTK)
    assert body_of(tmp_path / "m.vtk").integrals.mass == pytest.approx(7850.0 / 6.0)


@needs_meshio
@pytest.mark.parametrize(("name", "text", "said"), [
    ("m.msh", "x", "cannot be read by meshio"), ("m.xyz", "x", "cannot be read by meshio"),
    ("none.msh", None, "there is no file"), ("m.vtk", VTK.replace("4 0 1 2 3", "4 0 1 2 9"), "4 nodes of the mesh")])
def test_bad_meshes(name: str, text: str | None, said: str, tmp_path: Path) -> None:
    """meshio ends the program of who asks it to read some of these."""
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(bc.BellcrankError, match=said):
        body_of(tmp_path / name)
