"""Imports point down the layers, those inside functions and those for type checkers included; nobody reaches into what
is private to others; a name means one thing."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import bellcrank as bc

ROOT = Path(bc.__file__).parent

#: from the bottom: what a package or module may import stands before it
LAYERS = ("lazy_names", "errors", "files", "arguments", "arrays", "scalar", "math", "schedule", "target", "integrate",
          "spatial", "mechanism", "topology", "loops", "lowering", "formulations", "derivatives", "system",
          "inverse_kinematics", "simulate", "compiled", "analyze", "examples", "io", "view", "studies", "papers",
          "cli", "__main__")


def imported(tree: ast.AST, typing: bool = True) -> Iterator[str]:
    """Modules and names of the package that a file names in imports, wherever they stand; those for type checkers if
    `typing`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) and not typing:
            continue
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "bellcrank")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "bellcrank":
            assert node.level == 0
            yield from (f"{node.module}.{a.name}" for a in node.names)
        yield from imported(node, typing)


@functools.cache
def files() -> list[tuple[str, ast.Module, str]]:
    """(name of the module, its text parsed, and as it is)."""
    found = []
    for path in ROOT.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        name = ".".join(("bellcrank", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        found.append((name, ast.parse(text), text))
    return found


def test_every_module_has_a_layer() -> None:
    found = {p.stem if p.suffix else p.name for p in ROOT.iterdir()
             if (p.suffix == ".py" or (p / "__init__.py").exists()) and p.name != "__init__.py"}
    assert found == set(LAYERS)


def test_imports_point_down() -> None:
    """No exceptions; `bellcrank` itself only looks names up."""
    wrong = {(name, target) for name, tree, _ in files() for target in imported(tree) if "." in name
             and target.split(".")[1] in LAYERS
             and LAYERS.index(target.split(".")[1]) > LAYERS.index(name.split(".")[1])}
    assert not wrong


def test_no_modules_import_each_other() -> None:
    """Not even lazily: a cycle is two files with one idea, or one file with two."""
    known = {name: tree for name, tree, _ in files()}
    graph: dict[str, set[str]] = {}
    for name, tree in known.items():
        if name != "bellcrank":
            reached = {target if target in known else target.rpartition(".")[0] for target in imported(tree, False)}
            graph[name] = reached - {"bellcrank"}
    assert all(target in known for targets in graph.values() for target in targets)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_the_walk_sees_imports_everywhere() -> None:
    """At the top, in functions, for type checkers."""
    text = ("import bellcrank.io\ndef f():\n    from bellcrank.cli import main\n"
            "if TYPE_CHECKING:\n    from bellcrank import loops")
    assert set(imported(ast.parse(text))) == {"bellcrank.io", "bellcrank.cli.main", "bellcrank.loops"}
    assert set(imported(ast.parse(text), False)) == {"bellcrank.io", "bellcrank.cli.main"}


#: what is meant by these is an object's own, that of another of its class, or of a library whose names begin so
OWN = ("self", "cls", "np", "other", "ast")


def test_nobody_reaches_into_private_names() -> None:
    """What others need has a name without an underscore."""
    found = {f"{name}: {owner}.{attribute}" for name, _, text in files()
             for owner, attribute in re.findall(r"\b(\w+)\.(_[a-z]\w*)", text) if owner not in OWN}
    assert not found


def test_a_name_means_one_thing() -> None:
    """No two files have the same name, nor two classes, wherever they are."""
    names = Counter(path.name for path in ROOT.rglob("*.py") if path.name != "__init__.py")
    classes = Counter(node.name for _, tree, _ in files() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, count in (*names.items(), *classes.items()) if count > 1] == []


def test_one_folder_names_its_target() -> None:
    """Programs, schedules, evaluators and steppers know no target, nor does the list of targets: it looks for them."""
    found = {name for name, _, text in files() if "llvm" in text.lower()}
    assert {name for name in found if not name.startswith("bellcrank.target.llvm")} == set()
    reached = {name for name, tree, _ in files()
               if any(m.startswith(("bellcrank.target.llvm", "bellcrank.target.c.")) for m in imported(tree))}
    assert {name.split(".")[1] for name in reached} == {"target", "io"}
