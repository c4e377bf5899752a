"""Exact derivatives beside Pinocchio's, in one run: of forward and inverse dynamics, trees and closed machines.

    python benchmarks/derivatives.py [MACHINE ...]

Trees (panda, go2, talos): forward dynamics by q, u and tau beside `computeABADerivatives`, inverse dynamics by q, u and
udot beside `computeRNEADerivatives`; results are compared before anything is timed. Closed machines (four_bar, stewart,
cassie): forward dynamics along the closed machine, by independent q and u and by tau, beside `constraintDynamics`
followed by `computeConstraintDynamicsDerivatives`, which differentiates by all coordinates, off the closed machine,
with a proximal term. Large machines (chain of 1000 bodies, ladder of 256 cells), which are rolled into loops: products
of forward dynamics' derivatives by q, u and tau with a vector, and the matrices, as multiples of one forward dynamics;
products are compared with differences before.
Times are the best of several rounds in which all take turns; batches are 256 states, per state, from which the time of
an empty loop of Python is taken off for Pinocchio. A line says what a vector-Jacobian product takes, as a multiple of
one forward dynamics. Where CasADi is installed, the last one says what it takes for forward dynamics, and with its
matrices: the same graph (`bc.to_casadi`), which CasADi differentiates by all entries and evaluates in its virtual
machine, as IPOPT has it, called through buffers.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from compile_times import machine
from functions import BATCH, Pair, repeated
from timing import interleaved

import bellcrank as bc

TREES = ("panda", "go2", "talos")
CLOSED = ("four_bar", "stewart", "cassie")
LARGE = {"chain": {"n": 1000}, "ladder": {"cells": 256}}
CALLS = 500
ROUNDS = 11


def differs(ours: Any, theirs: Any) -> float:
    """The largest difference, relative to the largest entry."""
    return float(np.abs(np.asarray(ours) - theirs).max() / max(1e-300, np.abs(theirs).max()))


def tree_calls(pair: Pair) -> dict[str, tuple[Callable[[], Any], Callable[..., Any], Callable[[], Any]]]:
    """(Pinocchio, ours as a function of arrays, ours bound) by name, compared."""
    p, m, d, s, order = pair.pin, pair.model, pair.data, pair.system, pair.order
    rng = np.random.default_rng(2)
    tau, udot = rng.normal(size=s.nu), rng.normal(size=s.nu)
    ours = s.derivatives("forward_dynamics", pair.q, pair.u, tau, by=("q", "u", "tau"))
    theirs = p.computeABADerivatives(m, d, pair.pq, pair.pu, tau[order])
    grid = np.ix_(order, order)
    for name, mine, peer in zip(("q", "u", "tau"), ours.values(), (*theirs[:2], symmetric(theirs[2])), strict=True):
        print(f"  forward dynamics by {name:5} differs by {differs(mine[grid], peer):.1e}")
    ours = s.derivatives("inverse_dynamics", pair.q, pair.u, udot, by=("q", "u", "udot"))
    theirs = p.computeRNEADerivatives(m, d, pair.pq, pair.pu, udot[order])
    for name, mine, peer in zip(("q", "u", "udot"), ours.values(), (*theirs[:2], symmetric(theirs[2])), strict=True):
        print(f"  inverse dynamics by {name:5} differs by {differs(mine[grid], peer):.1e}")
    theirs_tau, theirs_udot = tau[order], udot[order]
    return {"forward": (lambda: p.computeABADerivatives(m, d, pair.pq, pair.pu, theirs_tau),
                        lambda a, b: s.derivatives("forward_dynamics", a, b, tau, by=("q", "u", "tau")),
                        s.bind("forward_dynamics", pair.q, pair.u, tau, by=("q", "u", "tau"))),
            "inverse": (lambda: p.computeRNEADerivatives(m, d, pair.pq, pair.pu, theirs_udot),
                        lambda a, b: s.derivatives("inverse_dynamics", a, b, udot, by=("q", "u", "udot")),
                        s.bind("inverse_dynamics", pair.q, pair.u, udot, by=("q", "u", "udot")))}


def symmetric(upper: Any) -> Any:
    """A matrix of which Pinocchio fills the upper half."""
    return np.triu(upper) + np.triu(upper, 1).T


def report(rows: dict[str, tuple[Callable[[], Any], Callable[..., Any], Callable[[], Any]]], q: Any, u: Any) -> None:
    """Time and print."""
    many = np.repeat(q[None], BATCH, axis=0), np.repeat(u[None], BATCH, axis=0)
    empty = interleaved({"empty": repeated(lambda: None)}, ROUNDS)["empty"] / 2000
    print(f"  {'':9} {'Pinocchio':>9} {'plain':>7} {'bound':>7} {'batch':>9} {'Pinocchio / plain':>18} {'/ bound':>8} "
          f"{'/ batch':>8}")
    for what, (theirs, ours, bound) in rows.items():
        calls = {"pin": times(theirs), "plain": times(partial(ours, q, u)), "bound": times(bound),
                 "batch": times(partial(ours, *many), 8)}  # warm, as single calls are
        for call in calls.values():
            call()
        took = interleaved(calls, ROUNDS)
        pin, plain, held = (took[name] / CALLS for name in ("pin", "plain", "bound"))
        batch = took["batch"] / (8 * BATCH)
        print(f"  {what:9} {pin * 1e6:9.2f} {plain * 1e6:7.2f} {held * 1e6:7.2f} {batch * 1e9:7.0f}ns "
              f"{pin / plain:18.2f} {pin / held:8.2f} {(pin - empty) / batch:8.1f}", flush=True)


def times(call: Callable[[], Any], count: int = CALLS) -> Callable[[], None]:
    def run() -> None:
        for _ in range(count):
            call()

    return run


def product(system: bc.System, q: Any, u: Any) -> None:
    """A vector-Jacobian product beside forward dynamics."""
    tau, weights = np.zeros(system.nu), np.random.default_rng(3).normal(size=system.nu)
    calls: dict[str, Callable[[], Any]] = {
        "forward": lambda: system.forward_dynamics(q, u, tau),
        "product": lambda: system.derivatives("forward_dynamics", q, u, tau, by=("q", "u", "tau"), weights=weights)}
    many = {name: (lambda call=call: [call() for _ in range(50)]) for name, call in calls.items()}
    for call in many.values():
        call()
    took = interleaved(many, ROUNDS)
    print(f"  vector-Jacobian product: {took['product'] / 50 * 1e6:.1f} us, {took['product'] / took['forward']:.1f} "
          "times one forward dynamics (calls from Python)")


def beside_casadi(system: bc.System, q: Any, u: Any) -> None:
    """The same function and its derivatives by CasADi."""
    try:
        import casadi
    except ImportError:
        return
    forward, tau = bc.to_casadi(system, "forward_dynamics", at=q if system.loops else None), np.zeros(system.nu)
    inputs = [casadi.SX.sym(name, forward.size1_in(name)) for name in ("q", "u", "tau")]
    value = forward(*inputs)
    slopes = casadi.Function("slopes", inputs, [value, casadi.jacobian(value, casadi.vertcat(*inputs))])
    calls, kept = {}, []
    for name, f in (("forward dynamics", forward), ("with its matrices", slopes)):
        buffer, call = f.buffer()
        arrays = [np.array(x, dtype=float) for x in (q, u, tau)] + [np.zeros(f.nnz_out(i)) for i in range(f.n_out())]
        kept += [buffer, *arrays]  # CasADi holds addresses alone
        for i, x in enumerate(arrays):
            (buffer.set_arg if i < 3 else buffer.set_res)(i if i < 3 else i - 3, memoryview(x))
        call()
        calls[name] = times(call)
    took = interleaved(calls, ROUNDS)
    print("  CasADi: " + ", ".join(f"{name} {t / CALLS * 1e6:.1f} us" for name, t in took.items())
          + f" ({slopes.n_instructions()} instructions)", flush=True)


def trees(name: str) -> None:
    pair = Pair(name, mimic="free")
    print(f"{name}: {pair.system.nu} speeds; microseconds a call, nanoseconds a state of {BATCH}")
    report(tree_calls(pair), pair.q, pair.u)
    product(pair.system, pair.q, pair.u)
    beside_casadi(pair.system, pair.q, pair.u)


def closed(name: str) -> None:
    import pinocchio as pin
    from loop_peers import Pinocchio

    mechanism = machine(name)
    system = bc.compile(mechanism)
    state = system.assemble()
    rng = np.random.default_rng(4)
    state = system.project(system.integrate(state.q, 0.05 * rng.normal(size=system.nu)), rng.normal(size=system.nu))
    tau = np.zeros(system.nu)
    peer = Pinocchio(mechanism, system.model.tree.cut_names, 1e-12)
    starts = system.model.configuration.starts
    q, u = ({r.name: x[starts[r.name][k]:starts[r.name][k] + (r.joint.nq, r.joint.nu)[k]]
             for r in system.model.configuration.records} for k, x in ((0, state.q), (1, state.u)))
    peer.set(q, u)

    def theirs() -> Any:
        peer.call()
        return pin.computeConstraintDynamicsDerivatives(peer.model, peer.data, peer.models, peer.datas)

    print(f"{name}: {system.nu} speeds, {system.dof} independent; microseconds a call, nanoseconds a state of {BATCH}")
    rows = {"forward": (theirs,
                        lambda a, b: system.derivatives("forward_dynamics", a, b, tau, by=("q", "u", "tau")),
                        system.bind("forward_dynamics", state.q, state.u, tau, by=("q", "u", "tau")))}
    report(rows, state.q, state.u)
    product(system, state.q, state.u)
    beside_casadi(system, state.q, state.u)


def large(name: str) -> None:
    """Products and matrices of a machine that is rolled into loops."""
    system = bc.compile(bc.load(name, **LARGE[name]))
    rng = np.random.default_rng(5)
    if system.loops:
        near = system.integrate(system.assemble().q, 0.02 * rng.normal(size=system.nu))
        q, u = system.project(near, rng.normal(size=system.nu))
    else:
        q, u = system.random_state(rng)
    tau, weights, by = rng.normal(size=system.nu), rng.normal(size=system.nu), ("q", "u", "tau")
    back = system.derivatives("forward_dynamics", q, u, tau, by=by, weights=weights)
    ways = {x: rng.normal(size=a.shape) for x, a in back.items()}
    along = system.derivatives("forward_dynamics", q, u, tau, along=ways)["along"]
    h = 1e-4 * ways["tau"]
    slope = weights @ (system.forward_dynamics(q, u, tau + h) - system.forward_dynamics(q, u, tau - h)) / 2e-4
    print(f"{name}: {system.nu} speeds; backward and forward differ by "
          f"{differs(sum(back[x] @ ways[x] for x in by), weights @ along):.1e}, by tau from differences "
          f"{differs(back['tau'] @ ways['tau'], slope):.1e}")
    calls: dict[str, Callable[[], Any]] = {
        "forward dynamics": lambda: system.forward_dynamics(q, u, tau),
        "vector-Jacobian": lambda: system.derivatives("forward_dynamics", q, u, tau, by=by, weights=weights),
        "Jacobian-vector": lambda: system.derivatives("forward_dynamics", q, u, tau, along=ways)}
    for call in calls.values():
        call()
    took = interleaved(calls, 300)  # short calls, many times: others that compute here take the cache
    took |= interleaved({"matrices": lambda: system.derivatives("forward_dynamics", q, u, tau, by=by)}, ROUNDS)
    for what, t in took.items():
        print(f"  {what:17} {t * 1e6:10.1f} us {t / took['forward dynamics']:8.2f} times forward dynamics", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for chosen in sys.argv[1:] or [*TREES, *CLOSED, *LARGE]:
        (trees if chosen in TREES else large if chosen in LARGE else closed)(chosen)
