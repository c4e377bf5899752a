"""Times that are none and entries that are masked: refused everywhere, whether or not they matter."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import bellcrank as bc

BAD_TIMES = {"text": "x", "no text": "", "number as text": "1.0", "None": None, "nan": float("nan"),
             "inf": float("inf"), "array of texts": np.array(["x"]), "complex": 1j, "batch": np.array([0.0, np.inf]),
             "list": [0.0, None]}
TIMED = sorted(name for owner in (bc.System, bc.analyze) for name in dir(owner)
               if not name.startswith("_") and callable(getattr(owner, name))
               and "t" in inspect.signature(getattr(owner, name)).parameters)
#: where no time at all means that of the state
OPTIONAL = ("linearize", "modes", "project", "attach")


@cache
def machine(name: str) -> bc.System:
    m = bc.load(name)
    if name == "double_pendulum":
        m.add_joint_spring("spring", "elbow", stiffness=m.parameter("k", 1.0))
    return bc.compile(m)


def asked(system: bc.System, name: str) -> Callable[..., Any]:
    """A method of the system, or a function of `bellcrank.analyze`."""
    return getattr(system, name, None) or partial(getattr(bc.analyze, name), system)


def arguments(system: bc.System, method: str) -> tuple[list[Any], dict[str, Any]]:
    """What a method needs besides the time."""
    state = system.assemble() if system.loops else bc.State(np.array([0.1, 0.2]), np.zeros(2))
    zero = np.zeros(system.nu)
    loop = system.loops[0] if system.loops else "elbow"
    known = {"q": state.q, "u": state.u, "udot": zero, "tau": zero, "p": zero, "body": system.body_names[0],
             "state": state, "at": state, "joint": loop if method.startswith("loop") else system.joint_names[0],
             "targets": bc.targets.JointValue(system.joint_names[0], 0.1),
             "forces": {}, "contacts": system.body_names[-1:], "function": "bias",
             "ranges": {system.joint_names[0]: (0.0, 1.0)}}
    needed = {key: p for key, p in inspect.signature(asked(system, method)).parameters.items()
              if (p.default is p.empty or key in ("u", "udot")) and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    return ([known[key] for key, p in needed.items() if p.kind is not p.KEYWORD_ONLY],
            {key: known[key] for key, p in needed.items() if p.kind is p.KEYWORD_ONLY})


def test_all_methods_with_a_time_are_here() -> None:
    assert len(TIMED) == len(set(TIMED)) > 40
    assert {"forward_dynamics", "inverse_dynamics", "pose", "assemble", "linearize"} <= set(TIMED)


@pytest.mark.parametrize("name", ["double_pendulum", "four_bar"])
@pytest.mark.parametrize("method", TIMED)
def test_times_that_are_none(method: str, name: str) -> None:
    system = machine(name)
    args, options = arguments(system, method)
    for what, bad in BAD_TIMES.items():
        if bad is None and method in OPTIONAL:
            continue
        with pytest.raises(bc.StateError, match=r"\bt\b.*(time|finite)"):
            pytest.fail(f"{what}: {asked(system, method)(*args, t=bad, **options)}")


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_times_of_all_kinds_are_taken(backend: str) -> None:
    system = bc.compile(bc.load("double_pendulum"), backend=backend)
    q, u = np.array([0.1, 0.2]), np.zeros(2)
    wanted = system.forward_dynamics(q, u)
    for t in (0, 1, 2.5, -1.0, True, np.float64(3.0), np.int64(2), np.array(1.0), np.float32(1.0)):
        np.testing.assert_array_equal(system.forward_dynamics(q, u, t=t), wanted)
        np.testing.assert_array_equal(system.inverse_dynamics(q, u, wanted, t=t), system.inverse_dynamics(q, u, wanted))


@pytest.mark.parametrize("bad", ["x", None, float("nan"), float("inf"), np.array([0.0, 1.0])])
def test_states_with_a_time_that_is_none(bad: Any) -> None:
    system = machine("double_pendulum")
    state = (np.array([0.1, 0.2]), np.zeros(2), bad)
    with pytest.raises(bc.StateError):
        system.simulate(state, 0.01)
    with pytest.raises(bc.StateError, match=r"\bt\b"):
        bc.analyze.linearize(system, state)  # type: ignore[arg-type]


# -- masks --------------------------------------------------------------------------------------------
HIDDEN = np.ma.array([0.1, 0.2], mask=[False, True])
THREE = np.ma.array([0.1, 0.2, 0.3], mask=[False, True, False])
ONE = np.ma.array([1.0], mask=[True])
ZERO = np.zeros(2)
PUSH = np.ma.array(np.zeros(6), mask=[False, False, True, False, False, False])
MASKED: dict[str, tuple[Callable[[bc.System, bc.System], Any], str]] = {
    "q": (lambda s, f: s.forward_dynamics(HIDDEN, ZERO), r"q\[1\]"),
    "u": (lambda s, f: s.forward_dynamics(ZERO, HIDDEN), r"u\[1\]"),
    "tau": (lambda s, f: s.forward_dynamics(ZERO, ZERO, HIDDEN), r"tau\[1\]"),
    "udot": (lambda s, f: s.inverse_dynamics(ZERO, ZERO, HIDDEN), r"udot\[1\]"),
    "p": (lambda s, f: s.hamilton(ZERO, HIDDEN), r"p\[1\]"),
    "batch": (lambda s, f: s.forward_dynamics(np.ma.array(np.zeros((3, 2)), mask=np.eye(3, 2, -1, dtype=bool)), ZERO),
              r"q\[1, 0\]"),
    "tau by name": (lambda s, f: s.forward_dynamics(ZERO, ZERO, {"elbow": ONE}), r"tau of 'elbow'\[0\]"),
    "tau by name, one": (lambda s, f: s.forward_dynamics(ZERO, ZERO, {"elbow": np.ma.masked}), "tau of 'elbow'"),
    "wrenches": (lambda s, f: s.forward_dynamics(ZERO, ZERO, wrenches=np.ma.array([PUSH, PUSH])), r"wrenches\[0, 2\]"),
    "wrench by name": (lambda s, f: s.forward_dynamics(ZERO, ZERO, wrenches={"upper": PUSH}), r"'upper'\[2\]"),
    "parameter": (lambda s, f: s.with_parameters(k=HIDDEN), r"'k': value\[1\]"),
    "t": (lambda s, f: s.forward_dynamics(ZERO, ZERO, t=HIDDEN), r"t\[1\]"),
    "energy": (lambda s, f: s.energy(HIDDEN, ZERO), r"q\[1\]"),
    "qdot": (lambda s, f: s.model.configuration.qdot(ZERO, HIDDEN), r"u\[1\]"),
    "point": (lambda s, f: s.velocity(ZERO, ZERO, "upper", THREE), r"point\[1\]"),
    "bind": (lambda s, f: s.bind("forward_dynamics", HIDDEN, ZERO, ZERO), r"q\[1\]"),
    "simulate q": (lambda s, f: s.simulate((HIDDEN, ZERO), 0.01), r"q\[1\]"),
    "simulate tau": (lambda s, f: s.simulate((ZERO, ZERO), 0.01, tau=HIDDEN), r"tau\[1\]"),
    "simulate output": (lambda s, f: s.simulate((ZERO, ZERO), 0.2, stepper="dopri5", output=HIDDEN), r"output\[1\]"),
    "assemble q": (lambda s, f: f.assemble(q=THREE), r"q\[1\]"),
    "assemble u": (lambda s, f: f.assemble(u=THREE), r"u\[1\]"),
    "assemble guess": (lambda s, f: f.assemble(guess=THREE), r"guess\[1\]"),
    "assemble by name": (lambda s, f: f.assemble(q={"A": np.ma.masked}), "'A'"),
    "assemble u by name": (lambda s, f: f.assemble(u={"A": ONE}), r"'A'\[0\]"),
    "project": (lambda s, f: f.project(THREE), r"q\[1\]"),
    "consistent": (lambda s, f: f.consistent_acceleration(np.zeros(4), np.zeros(4), {"A": np.ma.masked}),
                   "udot of 'A'"),
    "loop_tau": (lambda s, f: f.forward_dynamics(f.assemble().q, np.zeros(4), loop_tau={f.loops[0]: ONE}),
                 "loop_tau of 'D'"),
    "equilibrium": (lambda s, f: bc.analyze.equilibrium(s, HIDDEN), r"guess\[1\]"),
    "linearize": (lambda s, f: bc.analyze.linearize(f, (THREE, np.zeros(3))), r"q\[1\]"),
    "drive": (lambda s, f: bc.analyze.drive(f, {"A": lambda t: t}, HIDDEN), r"times\[1\]"),
    "curve": (lambda s, f: bc.analyze.coupler_curve(f, "A", "coupler", values=HIDDEN), r"values\[1\]"),
}


@pytest.mark.parametrize("where", MASKED)
def test_masked_entries_are_named(where: str) -> None:
    call, said = MASKED[where]
    with pytest.raises(bc.StateError, match=rf"{said}.* is masked"):
        call(machine("double_pendulum"), machine("four_bar"))


def test_masked_arrays_that_hide_nothing_are_arrays() -> None:
    system = machine("double_pendulum")
    q = np.ma.array([0.1, 0.2], mask=[False, False])
    np.testing.assert_array_equal(system.forward_dynamics(q, ZERO), system.forward_dynamics([0.1, 0.2], ZERO))
    np.testing.assert_array_equal(system.forward_dynamics(np.ma.array([0.1, 0.2]), ZERO, t=np.ma.array(1.0)),
                                  system.forward_dynamics([0.1, 0.2], ZERO))
