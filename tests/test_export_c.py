"""Exported C agrees with the compiled code of the library, keeps to what its header says, refuses what it cannot do.

Agreement: two programs that round differently differ by rounding times conditioning. That is measured for each call: by
how much the library's own result changes when inputs change by a few units in their last places.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import children
import models
from bellcrank.io.sdf import read_sdf
from bellcrank.topology.tree import wrench_order
from c_library import COMPILER, FLAGS, CLibrary, exported
from looped import EPS, conditioning, states
from motions import final

with_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")

GOOD, BAD_INPUT, NO_RESULT = 0, 1, 2
#: rounding in units of that of doubles; with floats that of the inputs comes first
COARSER = {"double": 1.0, "float": 4.0 * 2.0**29}


def robot(name: str) -> Path:
    try:
        return models.find("example-robot-data", name)
    except models.MissingError as error:
        pytest.skip(str(error))


@cache
def machine(name: str) -> bc.System:
    if name == "cassie":
        return bc.compile(read_sdf(robot("cassie_v2.sdf"), parallel=1e-5)[0])
    if name == "panda":
        return bc.compile(bc.read(robot("panda.urdf"), mimic="free")[0], lock="massless")
    name, _, schedule = name.partition("/")
    return bc.compile(bc.load(name, **({"cells": 20} if name == "ladder" else {})), schedule=schedule or "auto")


def some_state(system: bc.System, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A state, and forces of the joints that carry links."""
    if system.loops:
        q, u, tau = states(system, seed, 1)
        tau[..., system.model.tree.loop_speeds()] = 0.0
        return q[0], u[0], tau[0]
    rng = np.random.default_rng(seed)
    return system.integrate(system.neutral(), rng.normal(size=system.nu)), rng.normal(size=system.nu), rng.normal(
        size=system.nu)


def rounding(function: Callable[..., np.ndarray], arrays: list[np.ndarray]) -> float:
    """By how much a result may differ from what another program finds: 1e-15 of it, or five times what the last bits
    of the inputs do to it if that is more."""
    rng, first = np.random.default_rng(1), function(*arrays)
    changes = [np.abs(function(*(a * (1.0 + 4.0 * EPS * rng.uniform(-1, 1, a.shape)) for a in arrays)) - first).max()
               for _ in range(8)]
    return float(max(1e-15 * np.abs(first).max(), 5.0 * max(changes)))


#: methods of a system, what they take in C, and how they are called
CALLS: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "forward_dynamics": (("q", "u", "tau"), lambda s, q, u, tau: s.forward_dynamics(q, u, tau)),
    "inverse_dynamics": (("q", "u", "udot"), lambda s, q, u, a: s.inverse_dynamics(q, u, a)),
    "bias": (("q", "u"), lambda s, q, u: s.bias(q, u, speeds="tree")),
    "mass_matrix": (("q",), lambda s, q: s.mass_matrix(q, speeds="tree").ravel()),
    "momenta": (("q", "u"), lambda s, q, u: s.momenta(q, u, speeds="tree")),
    "hamilton": (("q", "p", "tau"), lambda s, q, p, tau: np.stack(s.hamilton(q, p, tau), axis=-1).ravel())}
TREE, LOOPED = tuple(CALLS), ("forward_dynamics", "bias", "mass_matrix", "momenta")


def check_functions(system: bc.System, library: CLibrary, functions: tuple[str, ...], scalar: str) -> None:
    q, u, tau = some_state(system)
    given = {"q": q, "u": u, "tau": tau, "udot": tau, "p": system.momenta(q, u, speeds="tree")}
    for name in functions:
        takes, call = CALLS[name]
        arrays = [given[k] for k in takes]
        expected = call(system, *arrays)
        status, result, _ = library(name, dict(zip(takes, arrays, strict=True)), expected.size)
        allowed = COARSER[scalar] * rounding(lambda *a, call=call: call(system, *a), arrays)
        if scalar == "float" and system.loops:  # the machine's own lengths are rounded, too: that is another machine
            allowed = max(allowed, 2.0**29 * EPS * conditioning(system, q) * np.abs(expected).max())
        assert status == GOOD and np.abs(result - expected).max() <= allowed, name


@pytest.mark.everyday(3)
@with_compiler
@pytest.mark.parametrize("scalar", ("double", "float"))
@pytest.mark.parametrize("name", ("panda", "arm", "quadruped/rolled", "crane"))
def test_trees_agree(name: str, scalar: str, tmp_path: Path) -> None:
    system = machine(name)
    check_functions(system, exported(system, list(TREE), tmp_path, scalar=scalar), TREE, scalar)


@pytest.mark.everyday(3)
@with_compiler
@pytest.mark.parametrize("name", ("four_bar", "four_bar/rolled", "quarter_car", "stewart", "ladder/rolled", "cassie"))
def test_loops_agree(name: str, tmp_path: Path) -> None:
    system = machine(name)
    check_functions(system, exported(system, list(LOOPED), tmp_path), LOOPED, "double")


@with_compiler
def test_forces_along_loop_joints_act(tmp_path: Path) -> None:
    system = machine("four_bar")
    q, u, tau = some_state(system)
    assert system.loops == ("D",)
    tau[3] = 0.7
    p, h = system.momenta(q, u, speeds="tree"), 1e-3
    library = exported(system, ["forward_dynamics", "hamilton"], tmp_path, stepper="rk4")
    pairs = np.ravel(np.transpose(system.hamilton(q, p, tau)))
    for name, second, expected in (("forward_dynamics", {"u": u}, system.forward_dynamics(q, u, tau)),
                                   ("hamilton", {"p": p}, pairs)):
        status, result, _ = library(name, {"q": q, "tau": tau, **second}, expected.size)
        assert status == GOOD and np.abs(result - expected).max() < 1e-12 * np.abs(expected).max()
    end = final(system.simulate((q, u), 20 * h, step=h, tau=tau, output=20 * h))
    assert np.abs(stepped(library, np.concatenate([q, u]), tau, h, 20)[0] - end).max() < 1e-10


@with_compiler
@pytest.mark.parametrize("name", ("four_bar", "quarter_car"))
def test_loops_agree_in_floats(name: str, tmp_path: Path) -> None:
    system = machine(name)
    check_functions(system, exported(system, list(LOOPED), tmp_path, scalar="float"), LOOPED, "float")


@with_compiler
@pytest.mark.parametrize("name", ("four_bar", "quarter_car", "stewart", "cassie"))
def test_drives_of_loops_agree(name: str, tmp_path: Path) -> None:
    system = machine(name)
    q, u, tau = some_state(system)
    udot = system.forward_dynamics(q, u, tau)
    library = exported(system, ["inverse_dynamics"], tmp_path)
    expected = system.inverse_dynamics(q, u, udot)
    status, result, _ = library("inverse_dynamics", {"q": q, "u": u, "udot": udot}, system.nu)
    allowed = rounding(lambda *a: system.inverse_dynamics(*a), [q, u, udot])
    assert status == GOOD and np.abs(result - expected).max() <= allowed


@with_compiler
def test_drives_of_loops_elsewhere(tmp_path: Path) -> None:
    """Forces of the actuated joints, more of them than degrees of freedom; and states that are a little open."""
    system = bc.compile(bc.load("four_bar"), actuated=["B", "C"])
    q, u, tau = some_state(system)
    udot = system.forward_dynamics(q, u, tau)
    library = exported(system, ["inverse_dynamics"], tmp_path)
    expected = system.inverse_dynamics(q, u, udot)
    status, result, _ = library("inverse_dynamics", {"q": q, "u": u, "udot": udot}, 4)
    assert status == GOOD and expected[0] == 0.0 and expected[1:3].all() and expected[3] == 0.0
    assert np.abs(result - expected).max() < 1e-13 * np.abs(expected).max()
    status, near, _ = library("inverse_dynamics", {"q": q + 1e-4, "u": u, "udot": udot}, 4)  # as sensors have it
    assert status == GOOD and np.abs(near - expected).max() < 1e-1 * np.abs(expected).max()


@with_compiler
@pytest.mark.parametrize("name", ("arm", "four_bar"))
def test_bodies_and_wrenches_agree(name: str, tmp_path: Path) -> None:
    system = machine(name)
    q, u, tau = some_state(system)
    body, point = system.body_names[-1], np.array([0.1, -0.2, 0.3])
    wrenches = np.random.default_rng(3).normal(size=(len(system.body_names), 6))
    udot = system.forward_dynamics(q, u, tau, wrenches=wrenches)
    pose, names = system.pose(q, body), [f"{kind}:{body}" for kind in ("pose", "velocity", "acceleration", "jacobian",
                                                                       "jacobian_rate")]
    library = exported(system, [*names, "forward_dynamics", "inverse_dynamics", "bias", "center_of_mass", "momentum",
                                "kinetic_energy", "potential_energy"], tmp_path, wrenches=True)
    title = re.sub(r"\W+", "_", body)
    given = {"q": q, "u": u, "tau": tau, "udot": udot, "point": point,
             "wrench": wrenches[wrench_order(system.model.tree)].ravel()}
    for function, expected in (
            (f"pose_{title}", np.concatenate([pose.rotation.ravel(), pose.position])),
            (f"velocity_{title}", system.velocity(q, u, body, point)),
            (f"acceleration_{title}", system.acceleration(q, u, udot, body, point)),
            (f"jacobian_{title}", system.jacobian(q, body, point, speeds="tree").ravel()),
            (f"jacobian_rate_{title}", system.jacobian_rate(q, u, body, point).ravel()),
            ("forward_dynamics", udot), ("bias", system.bias(q, u, wrenches=wrenches, speeds="tree")),
            ("inverse_dynamics", system.inverse_dynamics(q, u, udot, wrenches=wrenches)),
            ("center_of_mass", system.center_of_mass(q)), ("momentum", system.momentum(q, u)),
            ("kinetic_energy", np.atleast_1d(system.kinetic_energy(q, u))),
            ("potential_energy", np.atleast_1d(system.potential_energy(q)))):
        takes = {k: given[k] for k in library.parameters(function) if k in given and k != OUT.get(function)}
        status, result, _ = library(function, takes, expected.size)
        assert status == GOOD and np.abs(result - expected).max() <= 1e-13 * (1.0 + np.abs(expected).max()), function


#: functions whose result has the name of an input of others
OUT = {"forward_dynamics": "udot", "inverse_dynamics": "tau", "bias": "tau"}


# -- steps in time ------------------------------------------------------------------------------------
def stepped(library: CLibrary, y: np.ndarray, tau: np.ndarray, h: float, steps: int, plan: int = 0, t: float = 0.0,
            **given: Any) -> tuple[np.ndarray, list[int]]:
    plans = [plan]
    for k in range(steps):
        status, y, plan = library("step", {"y": y, "tau": tau, "t": t + k * h, "h": h, **given}, plan=plan)
        assert status == GOOD, k
        plans.append(plan)
    return y, plans


@pytest.mark.everyday(4)
@with_compiler
@pytest.mark.parametrize(("name", "stepper"), [
    ("arm", "rk4"), ("quadruped/rolled", "rk4"), ("quadruped/rolled", "semi_implicit"), ("four_bar", "rk4"),
    ("four_bar", "rk8"), ("four_bar", "semi_implicit"), ("quarter_car", "rk4"), ("cassie", "semi_implicit")])
def test_steps_agree(name: str, stepper: str, tmp_path: Path) -> None:
    system = machine(name)
    q, u, tau = some_state(system)
    h, steps = (1e-4, 20) if name == "cassie" else (1e-3, 40)  # rods of Cassie are light: forces whirl them
    library = exported(system, [], tmp_path, stepper=stepper)
    y, _ = stepped(library, np.concatenate([q, u]), tau, h, steps)

    def run(q: np.ndarray, u: np.ndarray) -> np.ndarray:
        return final(system.simulate((q, u), h * steps, step=h, stepper=stepper, tau=tau, output=h * steps))

    assert np.abs(y - run(q, u)).max() <= 4.0 * rounding(run, [q, u])
    if system.loops:
        assert np.abs(system.loop_error(y[:system.nq])).max() < 1e-12


@with_compiler
def test_steps_in_floats_stay_on_the_loops(tmp_path: Path) -> None:
    system = machine("four_bar")
    q, u, tau = some_state(system)
    library = exported(system, [], tmp_path, stepper="rk4", scalar="float")
    y, _ = stepped(library, np.concatenate([q, u]), tau, 1e-3, 200)
    expected = final(system.simulate((q, u), 0.2, step=1e-3, stepper="rk4", tau=tau, output=0.2))
    assert np.abs(y - expected).max() < 1e-4 * np.abs(expected).max()
    assert np.abs(system.loop_error(y[:system.nq].astype(float))).max() < 1e-5


@with_compiler
def test_momenta_are_integrated(tmp_path: Path) -> None:
    system = bc.compile(bc.load("double_pendulum"), method="momenta")
    q, u = np.array([0.3, -0.2]), np.array([1.0, 0.5])
    library = exported(system, ["hamilton"], tmp_path, stepper="rk4")
    y, _ = stepped(library, np.concatenate([q, system.momenta(q, u)]), np.zeros(2), 1e-3, 100)
    end = final(system.simulate((q, u), 0.1, step=1e-3, stepper="rk4", output=0.1))
    assert np.abs(y - np.concatenate([end[:2], system.momenta(end[:2], end[2:])])).max() < 1e-13


@with_compiler
def test_time_parameters_and_joint_forces(tmp_path: Path) -> None:
    m = bc.Mechanism("driven", gravity=(0, -9.81, 0))
    crank = m.add_body("crank", bc.Inertia.rod(1.5, (0, 0, 0), (0.3, 0, 0)))
    bob = m.add_body("bob", bc.Inertia.rod(m.parameter("mass", 2.0), (0, 0, 0), (0.5, 0, 0)))
    m.add_joint("A", bc.Revolute("z"), m.ground, crank)
    m.add_joint("B", bc.Revolute("z"), crank, bob, parent_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint_spring("spring", "B", stiffness=20.0, damping=0.3)
    m.prescribe("A", lambda t: 0.4 * bc.math.sin(3.0 * t))
    system = bc.compile(m)
    library = exported(system, ["forward_dynamics", "inverse_dynamics", "bias"], tmp_path, stepper="rk4")
    q, u = np.array([0.4 * np.sin(0.6), 0.3]), np.array([1.2 * np.cos(0.6), -0.7])
    tau, t, values = np.array([0.0, 0.4]), 0.2, [2.0]
    given = {"q": q, "u": u, "tau": tau, "udot": tau, "t": t, "parameters": values}
    for name, expected in (("forward_dynamics", system.forward_dynamics(q, u, tau, t=t)),
                           ("inverse_dynamics", system.inverse_dynamics(q, u, tau, t=t)),
                           ("bias", system.bias(q, u, t=t))):
        takes = (*CALLS[name][0], "t", "parameters")
        status, result, _ = library(name, {k: given[k] for k in takes}, 2)
        assert status == GOOD and np.abs(result - expected).max() <= 1e-14 * np.abs(expected).max(), name
    heavy = system.with_parameters(mass=4.0)
    status, result, _ = library("forward_dynamics", {k: given[k] for k in ("q", "u", "tau", "t")}
                                | {"parameters": [4.0]}, 2)
    assert np.abs(result - heavy.forward_dynamics(q, u, tau, t=t)).max() <= 1e-14 * np.abs(result).max()
    y, _ = stepped(library, np.concatenate([q, u]), tau, 1e-3, 50, t=t, parameters=[4.0])
    end = final(heavy.simulate(bc.State(q, u, t), 0.05, step=1e-3, stepper="rk4", tau=tau, output=0.05))
    assert np.abs(y - end).max() < 1e-13


# -- plans --------------------------------------------------------------------------------------------
def dead_point() -> tuple[bc.System, bc.State, bc.State]:
    """A four-bar in which the speed of the joint C is to be independent, a general position, and one in which that
    vanishes, whatever the crank does: crank and base are in line."""
    system = bc.compile(bc.load("four_bar"), independent=["C"])
    return system, system.assemble(q={"A": 0.5}, u={"A": 1.0}), system.assemble(q={"A": 0.0}, u={"A": 1.0})


@with_compiler
def test_another_plan_serves_where_one_fails(tmp_path: Path) -> None:
    system, general, dead = dead_point()
    expected = system.forward_dynamics(dead.q, dead.u)
    one = exported(system, ["forward_dynamics"], tmp_path / "one", plans=[general])
    given = {"q": dead.q, "u": dead.u, "tau": np.zeros(4)}
    assert one.size("PLANS") == 1 and one("forward_dynamics", given, 4)[0] == NO_RESULT
    two = exported(system, ["forward_dynamics"], tmp_path / "two", plans=[general, dead, general.q], stepper="rk4")
    assert two.size("PLANS") == 2
    for first in (0, 1, 7, -3):  # a number that is no plan counts as 0
        status, result, plan = two("forward_dynamics", given, 4, plan=first)
        assert (status, plan) == (GOOD, 1) and np.abs(result - expected).max() < 1e-12 * np.abs(expected).max()
    usual = {"q": general.q, "u": general.u, "tau": np.zeros(4)}
    for first in (0, 1):  # both serve here: the one asked for is taken
        assert two("forward_dynamics", usual, 4, plan=first)[0::2] == (GOOD, first)


@with_compiler
def test_a_turning_crank_changes_plans(tmp_path: Path) -> None:
    system, general, dead = dead_point()
    start = system.assemble(q={"A": 0.3}, u={"A": 12.0})
    library = exported(system, [], tmp_path, plans=[general, dead], stepper="rk4")
    y, plans = stepped(library, np.concatenate([start.q, start.u]), np.zeros(4), 5e-4, 2000)
    assert set(plans) == {0, 1}
    expected = final(system.simulate(start, 1.0, step=5e-4, stepper="rk4", output=1.0))
    assert np.abs(y - expected).max() < 1e-8 * np.abs(expected).max()


@with_compiler
def test_failures_have_a_status_and_leave_the_state(tmp_path: Path) -> None:
    system = machine("four_bar")
    q, u, tau = some_state(system)
    library = exported(system, ["forward_dynamics"], tmp_path, stepper="rk4")
    for name in ("q", "u", "tau"):
        for bad in (np.nan, np.inf):
            given = {"q": q.copy(), "u": u.copy(), "tau": tau.copy()}
            given[name][1] = bad
            assert library("forward_dynamics", given, 4)[0] == BAD_INPUT
    y = np.concatenate([q, u])
    for h, status in ((np.nan, BAD_INPUT), (1e6, NO_RESULT)):
        found, after, _ = library("step", {"y": y, "tau": tau, "t": 0.0, "h": h})
        assert found == status and np.array_equal(after, y)


# -- the text -----------------------------------------------------------------------------------------
@with_compiler
def test_the_header_serves_c_plus_plus_and_c(tmp_path: Path) -> None:
    """The header compiles alone, and the source with other languages' rules for names of parameters."""
    files = bc.export_c(machine("four_bar"), ["forward_dynamics"], tmp_path, stepper="rk4", name="linkage")
    alone = tmp_path / "alone.c"
    alone.write_text('#include "linkage.h"\n#include "linkage.h"\nint main(void) { return LINKAGE_GOOD; }\n')
    done = children.run([str(COMPILER), *FLAGS, "-c", alone, "-o", tmp_path / "alone.o"])
    assert done.returncode == 0, done.stderr
    assert files.header.name == "linkage.h" and 'extern "C"' in files.header.read_text()


def test_no_allocation_and_no_variables_outside_of_functions(tmp_path: Path) -> None:
    text = bc.export_c(machine("ladder/rolled"), list(LOOPED), tmp_path, stepper="rk4").source.read_text()
    assert not re.search(r"\b(malloc|calloc|realloc|free|alloca)\b", text)
    outside = [line for line in text.splitlines() if line.startswith("static") and "(" not in line]
    assert outside and all(line.startswith("static const ") for line in outside)
    assert not re.search(r"^ +static", text, re.MULTILINE)


@with_compiler
def test_nothing_outside_of_the_arrays_is_touched(tmp_path: Path) -> None:
    """Every function, on arrays of just the sizes that the header states, watched by the compiler's sanitizers."""
    system = bc.compile(bc.load("four_bar"), backend="numpy", schedule="rolled")
    files = bc.export_c(system, ["forward_dynamics", "mass_matrix"], tmp_path)
    calls = []
    for name, parameters in re.findall(r"^int (\w+)\((.*?)\);$", files.header.read_text(), re.MULTILINE | re.DOTALL):
        arrays = [re.fullmatch(r"\s*(?:const )?(\w+) \w+(?:\[(.*)\])?\s*", p) for p in parameters.split(",")]
        given = (f"calloc({a[2]}, sizeof({a[1]}))" if a[2] else "0.01" for a in arrays if a)
        calls.append(f"{name}({', '.join(given)});")
    assert len(calls) == 2
    program = tmp_path / "all.c"
    program.write_text(f'#include <stdlib.h>\n#include "{files.header.name}"\n'
                       f'int main(void) {{ {" ".join(calls)} return 0; }}\n')
    watched = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    done = children.run([str(COMPILER), *watched, program, files.source, "-o", tmp_path / "all", "-lm"])
    if "san" in done.stderr and done.returncode:
        pytest.skip("the compiler has no sanitizers")
    assert done.returncode == 0, done.stderr[:2000]
    done = children.run([tmp_path / "all"], env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert done.returncode == 0, done.stderr[:2000]


def test_names_cannot_end_comments(tmp_path: Path) -> None:
    m = bc.Mechanism("odd */ name /*")
    body = m.add_body("b", bc.Inertia.rod(1, (0, 0, 0), (1, 0, 0)))
    m.add_joint("hinge */ int x; /*", bc.Revolute("z"), m.ground, body)
    header = bc.export_c(bc.compile(m), ["bias"], tmp_path).header
    assert header.name == "odd_name.h"
    bare = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    assert "hinge" not in bare and "int x" not in bare


def test_the_same_export_is_the_same_text(tmp_path: Path) -> None:
    texts = [[f.read_text() for f in bc.export_c(bc.compile(bc.load("four_bar")), list(LOOPED), tmp_path / str(i))]
             for i in range(2)]
    assert texts[0] == texts[1]


def test_any_backend_can_export(tmp_path: Path) -> None:
    texts = [bc.export_c(bc.compile(bc.load("arm"), backend=b), ["forward_dynamics"], tmp_path / b).source.read_text()
             for b in ("numpy", "llvm")]
    assert texts[0] == texts[1]


# -- refusals -----------------------------------------------------------------------------------------
def test_refusals(tmp_path: Path) -> None:
    arm, four_bar = machine("arm"), machine("four_bar")
    (tmp_path / "file").write_text("")
    for error, said, call in (
            (bc.ModelError, "needs a System; compile", lambda: bc.export_c(
                bc.load("arm"), ["bias"], tmp_path)),  # type: ignore[arg-type]
            (bc.ModelError, "no function 'forward_dynamic'.*did you mean 'forward_dynamics'", lambda: bc.export_c(
                arm, ["forward_dynamic"], tmp_path)),
            (bc.ModelError, "not the text 'bias'", lambda: bc.export_c(arm, "bias", tmp_path)),
            (bc.ModelError, "at least one function", lambda: bc.export_c(arm, [], tmp_path)),
            (bc.ModelError, "scalar 'half'", lambda: bc.export_c(arm, ["bias"], tmp_path, scalar="half")),
            (bc.ModelError, "name '2fast' is no name in C", lambda: bc.export_c(arm, ["bias"], tmp_path, name="2fast")),
            (bc.ModelError, "no stepper 'gauss' in C", lambda: bc.export_c(arm, [], tmp_path, stepper="gauss")),
            (bc.ModelError, "'arm' is a tree", lambda: bc.export_c(arm, ["bias"], tmp_path, plans=[np.zeros(5)])),
            (bc.ModelError, r"plans\[1\] is neither", lambda: bc.export_c(
                four_bar, ["bias"], tmp_path, plans=[four_bar.assemble(), [1.0]])),
            (bc.ModelError, "no function 'poses' of a body.*did you mean 'pose'", lambda: bc.export_c(
                arm, ["poses:forearm"], tmp_path)),
            (bc.ModelError, "no body called 'rockr'", lambda: bc.export_c(four_bar, ["pose:rockr"], tmp_path)),
            (bc.ModelError, "'pose' of 'ground' has no C code", lambda: bc.export_c(
                four_bar, ["pose:ground"], tmp_path)),
            (bc.ModelError, "'inverse_dynamics'.*too large for one piece", lambda: bc.export_c(
                machine("four_bar/rolled"), ["inverse_dynamics"], tmp_path)),
            (bc.ModelError, "actuated joints.*do not determine", lambda: bc.export_c(
                bc.compile(bc.load("five_bar"), actuated=["leg1.1"]), ["inverse_dynamics"], tmp_path)),
            (bc.ModelError, "'dense' is solved by LAPACK", lambda: bc.export_c(
                bc.compile(bc.load("four_bar"), "dense"), ["forward_dynamics"], tmp_path)),
            (bc.ModelError, "too large for one piece", lambda: bc.export_c(
                bc.compile(bc.load("chain", n=60), "dense"), ["forward_dynamics"], tmp_path)),
            (bc.FileError, "is a file", lambda: bc.export_c(arm, ["bias"], tmp_path / "file"))):
        with pytest.raises(error, match=said):
            call()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


# -- the command --------------------------------------------------------------------------------------
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from bellcrank.cli import app

    def run(*arguments: str) -> int:
        return app(["export-c", *arguments], standalone_mode=False) or 0

    given = ("--functions", "bias, mass_matrix", "--stepper", "semi_implicit", "--scalar", "float", "--name", "linkage")
    assert run("four_bar", *given, "--to", str(tmp_path / "new")) == 0
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["linkage.c", "linkage.h"]
    header = (tmp_path / "new" / "linkage.h").read_text()
    assert "linkage_bias" in header and "linkage_step" in header and "double" not in header
    assert "linkage.h" in capsys.readouterr().out
    assert run("four_bar", "--functions", "speed", "--to", str(tmp_path)) == 1
    assert "no function 'speed'" in capsys.readouterr().err
    assert run("arm", "--to", str(tmp_path / "new" / "linkage.c")) == 3
    assert "is a file" in capsys.readouterr().err
