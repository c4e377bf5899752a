"""Forward dynamics and steps in exported C beside the same in the library's own machine code, one state, in one run.

    python benchmarks/export_c.py

Both in loops of their own kind over one state: the library's kernel for single states and its compiled steps, and C
that calls the exported functions. C is compiled by the first compiler found, at -O2 and, beside it, with all that this
processor can do.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from timing import best, time_text

import bellcrank as bc

COMPILER = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
FUNCTIONS = {"forward_dynamics": "forward_dynamics", "step of rk4": "step"}
MANY = 1000
FLAGS = {"-O2": ("-O2",), "-O3 -march=native": ("-O3", "-march=native", "-ffp-contract=fast")}


def machines() -> list[tuple[str, bc.System]]:
    out = [("arm, 6 hinges", bc.compile(bc.load("arm"))), ("four-bar", bc.compile(bc.load("four_bar"))),
           ("quarter car", bc.compile(bc.load("quarter_car"))),
           ("ladder of 20", bc.compile(bc.load("ladder", cells=20)))]
    folder = next(iter(Path(p) for p in sys.path if Path(p, "cmeel.prefix").is_dir()), None)
    for label, name in (("Franka Panda", "panda.urdf"), ("Cassie", "cassie_v2.sdf")):
        found = sorted(folder.glob(f"cmeel.prefix/share/example-robot-data/robots/**/{name}")) if folder else []
        if not found:
            print(f"example-robot-data is not installed: {label} is left out", file=sys.stderr)
            continue
        options: dict[str, Any] = {"mimic": "free"} if name.endswith("urdf") else {"parallel": 1e-5}
        out.append((label, bc.compile(bc.load(found[0], **options), lock="massless" if "urdf" in name else ())))
    return out


def state_of(system: bc.System) -> tuple[np.ndarray, np.ndarray]:
    if system.loops:
        state = system.assemble()
        return state.q, state.u
    rng = np.random.default_rng(0)
    return system.integrate(system.neutral(), rng.normal(size=system.nu)), rng.normal(size=system.nu)


def library(files: Any, flags: tuple[str, ...], folder: Path) -> ctypes.CDLL:
    assert COMPILER is not None
    target = folder / f"{files.header.stem}{abs(hash(flags))}.so"
    subprocess.run([COMPILER, "-std=c99", *flags, "-shared", "-fPIC",
                    str(files.source), str(folder / "repeat.c"), "-o", str(target), "-lm"], check=True)
    return ctypes.CDLL(str(target))


def repeating(header: str, names: tuple[str, ...]) -> str:
    """C that calls a function many times: what a call from Python costs is not what is asked for."""
    out = ['#include "machine.h"']
    for name in names:
        found = re.search(rf"^int (\w+_{name})\((.*?)\);$", header, re.MULTILINE | re.DOTALL)
        assert found is not None
        passed = ", ".join(parameters(header, name))
        out.append(f"int repeat_{name}(long n, {found[2]})\n{{\n    int bad = 0;\n"
                   f"    for (long i = 0; i < n; ++i) bad |= {found[1]}({passed});\n    return bad;\n}}")
    return "\n".join(out) + "\n"


def parameters(header: str, name: str) -> list[str]:
    found = re.search(rf"^int \w+_{name}\((.*?)\);$", header, re.MULTILINE | re.DOTALL)
    assert found is not None
    return [re.split(r"[\s*]+", p.partition("[")[0].strip())[-1] for p in found[1].split(",")]


def c_time(code: ctypes.CDLL, header: str, name: str, given: dict[str, Any]) -> float:
    values = [given[p] for p in parameters(header, name)]
    arguments = [ctypes.c_double(v) if isinstance(v, float) else ctypes.c_void_p(v.ctypes.data) for v in values]
    function = getattr(code, f"repeat_{name}")
    assert function(ctypes.c_long(1), *arguments) == 0
    return best(lambda: function(ctypes.c_long(MANY), *arguments)) / MANY


def llvm_time(system: bc.System, given: dict[str, Any]) -> float:
    """The kernel of one state, in its own loop over states that are all the same."""
    kernels = system.kernels
    run = kernels.planned(system.plans.general()) if system.loops else kernels.evaluator
    kernel = run.kernel(kernels.functions["forward_dynamics"], False, 1)  # type: ignore[attr-defined]
    arrays, out = [given[n] for n in kernel.inputs], np.empty((MANY, system.nu))
    strides = kernel.strides([0] * len(arrays))
    return best(lambda: kernel.run(arrays, strides, out, 0, MANY)) / MANY


def main() -> None:
    if COMPILER is None:
        raise SystemExit("there is no C compiler")
    print(f"{'':>14}  {'function':<17} {'LLVM':>9}" + "".join(f"{'C ' + f:>22}" for f in FLAGS))
    for label, system in machines():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            files = bc.export_c(system, ["forward_dynamics"], folder, stepper="rk4", name="machine")
            header = files.header.read_text(encoding="utf-8")
            q, u = state_of(system)
            tau, out = np.zeros(system.nu), np.zeros(system.nu)
            given = {"q": q, "u": u, "tau": tau, "udot": out, "work": np.zeros(1_000_000),
                     "plan": np.zeros(1, np.int32), "y": np.concatenate([q, u]), "t": 0.0, "h": 1e-9}
            (folder / "repeat.c").write_text(repeating(header, tuple(FUNCTIONS.values())), encoding="utf-8")
            own = dict(zip(FUNCTIONS, (llvm_time(system, given), step_time(system, q, u)), strict=True))
            codes = [library(files, flags, folder) for flags in FLAGS.values()]
            times = {name: [c_time(code, header, function, given) for code in codes]
                     for name, function in FUNCTIONS.items()}
            for name, llvm in own.items():
                print(f"{label:>14}  {name:<17} {time_text(llvm):>9}" + "".join(
                    f"{time_text(t):>22}" for t in times[name]))


def step_time(system: bc.System, q: np.ndarray, u: np.ndarray) -> float:
    """Seconds a step of the library takes: a long run less a short one."""
    def run(steps: int) -> float:
        return best(lambda: system.simulate((q, u), steps * 1e-9, step=1e-9, stepper="rk4", output=steps * 1e-9), 0.2)

    few, many = 100, 2100
    return (run(many) - run(few)) / (many - few)


if __name__ == "__main__":
    main()
