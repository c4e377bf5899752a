"""Imports point down the layers, those inside functions and those for type checkers included."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import bellcrank as bc

ROOT = Path(bc.__file__).parent

#: from the bottom: what a package or module may import stands before it
LAYERS = ("errors", "arrays", "scalar", "math", "schedule", "target", "integrate", "spatial", "mechanism", "topology",
          "loops", "lowering", "formulations", "system", "simulate", "analyze", "examples", "io", "cli", "__main__")
#: the conveniences that reach up: `System.simulate`, and the names of its types
UPWARD = {("system/system.py", "simulate")}


def imported(tree: ast.AST) -> Iterator[str]:
    """Modules of the package that a file names in imports, wherever they stand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "bellcrank")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "bellcrank":
            assert node.level == 0
            yield from (f"{node.module}.{a.name}" for a in node.names)


def edges() -> Iterator[tuple[str, str]]:
    """(file, package or module that it imports)."""
    for path in ROOT.rglob("*.py"):
        place = path.relative_to(ROOT)
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
            yield str(place), name.split(".")[1] if "." in name else ""


def test_every_module_has_a_layer() -> None:
    found = {p.stem if p.suffix else p.name for p in ROOT.iterdir()
             if (p.suffix == ".py" or (p / "__init__.py").exists()) and p.name != "__init__.py"}
    assert found == set(LAYERS)


def test_imports_point_down() -> None:
    wrong = {(file, target) for file, target in edges() if target in LAYERS and Path(file).parts[0] != "__init__.py"
             and LAYERS.index(target) > LAYERS.index(Path(Path(file).parts[0]).stem)}
    assert wrong == UPWARD


def test_the_walk_sees_imports_everywhere() -> None:
    """At the top, in functions, for type checkers."""
    text = "import bellcrank.io\ndef f():\n    from bellcrank.cli import main\nif X:\n    from bellcrank import loops"
    assert set(imported(ast.parse(text))) == {"bellcrank.io", "bellcrank.cli.main", "bellcrank.loops"}


#: names that are still used twice; nothing may be added
SHARED_FILES: set[str] = set()
SHARED_CLASSES = {"Drive", "Event", "Model", "Row"}


def test_a_name_means_one_thing() -> None:
    """No two files have the same name, nor two classes, wherever they are."""
    paths = list(ROOT.rglob("*.py"))
    files = Counter(path.name for path in paths if path.name != "__init__.py")
    classes = Counter(node.name for path in paths for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                      if isinstance(node, ast.ClassDef))
    assert {name for name, count in files.items() if count > 1} <= SHARED_FILES
    assert {name for name, count in classes.items() if count > 1} <= SHARED_CLASSES


#: who may name the library behind the usual backend: its own folder, the list of backends, and `compile`, whose default
#: it is
NAMES_LLVM = {"target/backend.py", "system/compile.py"}


def test_one_folder_names_its_target() -> None:
    """Programs, schedules, evaluators and steppers know no target."""
    found = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if "llvm" in path.read_text("utf-8").lower()}
    assert {name for name in found if not name.startswith("target/llvm/")} == NAMES_LLVM
    reached = {str(p.relative_to(ROOT)) for p in ROOT.rglob("*.py")
               if any(m.startswith(("bellcrank.target.llvm", "bellcrank.target.c."))
                      for m in imported(ast.parse(p.read_text(encoding="utf-8"))))}
    assert {name.split("/")[0] for name in reached} == {"target", "io"}
