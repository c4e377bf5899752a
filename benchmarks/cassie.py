"""Forward dynamics of a floating Cassie with its four closed loops, beside Pinocchio and MuJoCo, in one run.

    python benchmarks/cassie.py

The model is `cassie_v2.sdf` of example-robot-data, read by Bellcrank (axes that its decimals tilt by 1e-7 rad made
parallel); the peers get the same tree with the ball joints cut, as point closures, from the description that
Bellcrank reads. Errors are those of the tree joints' accelerations, relative to the largest, against Bellcrank's
`dense` oracle. The forces of joint springs and friction, which Bellcrank computes, are given to the peers as numbers.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
from loop_peers import MuJoCo, Pinocchio
from loops import by_joint, flat
from timing import best, time_text

import bellcrank as bc


def model() -> bc.Mechanism:
    """The machine, from the installed package."""
    try:
        listed = files("example-robot-data") or []
    except PackageNotFoundError:
        raise SystemExit("this benchmark needs the package example-robot-data") from None
    place = next((f for f in listed if f.name == "cassie_v2.sdf"), None)
    if place is None:
        raise SystemExit("cassie_v2.sdf is not in the installed example-robot-data")
    return bc.load(Path(str(place.locate())), parallel=1e-5)


def main() -> None:
    """Print the table."""
    machine = model()
    balls = [r.name for r in machine.joints if isinstance(r.joint, bc.Spherical)]
    system = bc.compile(machine, cut=balls)
    rng = np.random.default_rng(0)
    start = system.assemble()
    state = system.assemble(q=system.integrate(start.q, 0.1 * rng.normal(size=system.nu)), u=rng.normal(size=system.nu))
    tau = np.zeros(system.nu)
    truth = bc.compile(machine, method="dense", cut=balls).forward_dynamics(state.q, state.u)
    scale = float(np.abs(truth).max())
    laws = system.kernels.run("joint_laws", {"q": state.q, "u": state.u})
    starts = system.model.configuration.starts
    forces = {joint: laws[j:j + machine.joint(joint).joint.nu] for joint, (_, j) in starts.items()}
    bound = system.bind("forward_dynamics", state.q.copy(), state.u.copy(), tau)
    error = float(np.abs(bound() - truth).max()) / scale
    one = best(bound)
    n = 4096
    q, u = np.repeat(state.q[None], n, 0), state.u + 1e-3 * rng.normal(size=(n, system.nu))
    u = np.stack([system.assemble(q=state.q, u=row).u for row in u[:8]])[np.arange(n) % 8]
    batch = best(lambda: system.forward_dynamics(q, u)) / n
    print(f"Cassie: {len(machine.bodies)} bodies, nu = {system.nu}, dof = {system.dof}, loops closed by "
          f"{', '.join(system.loops)}\n")
    print("| tool | time | x Bellcrank | error |\n|---|---|---|---|")
    print(f"| Bellcrank, one state (bound call) | {time_text(one)} | 1 | {error:.1e} |")
    print(f"| Bellcrank, batch of {n}, per state | {time_text(batch)} | {batch / one:.2f} | |")
    for name, make in peers(machine, balls).items():
        try:
            peer = make()
        except ImportError:
            print(f"| {name} | not installed | | |")
            continue
        peer.set(*by_joint(system, state), forces)
        peer.call()
        rest = {joint: np.zeros(machine.joint(joint).joint.nu) for joint in system.joint_names}
        found = flat(system, {**rest, **peer.udot_by_joint()})
        joints = [i for i, joint in enumerate(_owners(system)) if joint in peer.udot_by_joint()]
        gap = float(np.abs(found - truth)[joints].max()) / scale
        seconds = best(peer.call)
        print(f"| {name} | {time_text(seconds)} | {seconds / one:.1f} (batch {seconds / batch:.1f}) | {gap:.1e} |")


def _owners(system: bc.System) -> list[str]:
    return [name.rpartition(".")[0] for name in system.speed_names]


def peers(machine: bc.Mechanism, cuts: list[str]) -> dict[str, Any]:
    """What is compared."""
    return {"Pinocchio lcaba, mu 1e-3": lambda: Pinocchio(machine, cuts, 1e-3),
            "Pinocchio lcaba, mu 1e-6": lambda: Pinocchio(machine, cuts, 1e-6),
            "Pinocchio constraintDynamics": lambda: Pinocchio(machine, cuts, 1e-8, "constraintDynamics"),
            "MuJoCo mj_forward, default softness": lambda: MuJoCo(machine, cuts),
            "MuJoCo mj_forward, hardest": lambda: MuJoCo(machine, cuts, hard=True)}


if __name__ == "__main__":
    sys.exit(main())
