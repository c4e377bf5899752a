"""Exported C, compiled and called: what `bellcrank.export_c` wrote, as Python functions."""

from __future__ import annotations

import ctypes
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

import bellcrank as bc
import children

COMPILER = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
FLAGS = ("-O2", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-ffp-contract=off")


class CLibrary:
    """The functions of an exported source, by name; arrays in, (status, result) out."""

    def __init__(self, files: Any, scalar: str = "double") -> None:
        assert COMPILER is not None
        self.name, self.header = files.header.stem, files.header.read_text(encoding="utf-8")
        library = files.source.with_suffix(".so")
        done = children.run([COMPILER, *FLAGS, "-shared", "-fPIC", files.source, "-o", library, "-lm"])
        assert done.returncode == 0, done.stderr[:4000]
        self.kind = np.float64 if scalar == "double" else np.float32
        self.real = ctypes.c_double if scalar == "double" else ctypes.c_float
        self.library = ctypes.CDLL(str(library))
        self.work = np.full(self.size("WORK") + 1, np.nan, self.kind)  # what is in it means nothing
        self.work[-1] = 12345.0

    def size(self, name: str) -> int:
        found = re.search(rf"^#define {self.name.upper()}_{name} (\d+)$", self.header, re.MULTILINE)
        return int(found[1]) if found else 0

    def parameters(self, function: str) -> list[str]:
        """What a function takes, as the header says."""
        found = re.search(rf"^int {self.name}_{function}\((.*?)\);$", self.header, re.MULTILINE | re.DOTALL)
        assert found is not None, function
        return [re.split(r"[\s*]+", p.partition("[")[0].strip())[-1] for p in found[1].split(",")]

    def __call__(self, function: str, given: dict[str, Any], entries: int = 0, plan: int = 0) -> tuple[int, Any, int]:
        """The status, the result (`entries` numbers, or the new y of a step), and the plan that served."""
        out, arguments = np.full(entries, np.nan, self.kind), []
        arrays = {k: np.array(v, dtype=self.kind) for k, v in given.items()}
        chosen = ctypes.c_int(plan)
        for name in self.parameters(function):
            if name == "plan":
                arguments.append(ctypes.byref(chosen))
            elif name in ("t", "h"):
                arguments.append(self.real(float(given[name])))
            else:
                array = self.work if name == "work" else arrays.get(name, out)
                arguments.append(ctypes.c_void_p(array.ctypes.data))  # type: ignore[arg-type]
        status = getattr(self.library, f"{self.name}_{function}")(*arguments)
        assert self.work[-1] == 12345.0, "it wrote beyond its workspace"
        return status, arrays["y"] if "y" in given else out, chosen.value


def exported(system: bc.System, functions: list[str], folder: Path, **options: Any) -> CLibrary:
    """Export, compile, load."""
    return CLibrary(bc.export_c(system, functions, folder, **options), options.get("scalar", "double"))
