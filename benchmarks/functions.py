"""Every function of a state beside Pinocchio's, in one run: one state (plain and bound calls), and a batch.

    python benchmarks/functions.py [MACHINE ...]

For the machines of example-robot-data that Pinocchio reads, too: Panda, Go2 and Talos. Results are compared before
anything is timed. Pinocchio's calls get its arrays and data and return what they compute; ours allocate the result
(plain) or write into an array made before (bound). Batches are 256 states, per state, of which Pinocchio computes one
after another in a loop of Python whose own time, measured with an empty function, is taken off. Times are the best of
several rounds in which all take turns, each for about as many states: 2000 calls, or 8 batches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from compile_times import MODELS
from timing import interleaved

import bellcrank as bc

BATCH = 256  # results of more states do not fit the caches, and memory is what is measured
CALLS, BATCHES = 2000, 8  # of one state, of batches, in each of
ROUNDS = 15


class Pair:
    """A machine in both libraries, at one state."""

    def __init__(self, name: str, **how: str) -> None:
        from importlib.metadata import files

        import pinocchio as pin

        self.pin, floating = pin, name != "panda"
        path = str(next(f for f in files("example-robot-data") or [] if f.name == MODELS[name]).locate())
        machine, report = bc.read(path, floating_base=floating, **how)
        self.system = bc.compile(machine)
        self.model = pin.buildModelFromUrdf(path, *((pin.JointModelFreeFlyer(),) if floating else ()))
        self.data = self.model.createData()
        state = self.system.random_state(np.random.default_rng(1))
        self.q, self.u = state
        self.body = self.system.body_names[-1]
        self.frame = self.model.getFrameId(self.body)
        self.pq, self.pu = report.to_pinocchio(state)
        #: our speed for each of Pinocchio's
        self.order = report.to_pinocchio(state.replace(u=np.arange(self.system.nu)))[1].astype(int)

    def calls(self) -> dict[str, tuple[Callable[[], Any], Callable[..., Any], Callable[[], Any] | None]]:
        """(Pinocchio, ours as a function of q and u, ours bound) by name."""
        s, p, m, d, body, frame = self.system, self.pin, self.model, self.data, self.body, self.frame
        q, u, x, v, world = self.pq, self.pu, self.q, self.u, self.pin.ReferenceFrame.LOCAL_WORLD_ALIGNED

        def pose() -> Any:
            p.forwardKinematics(m, d, q)
            return p.updateFramePlacement(m, d, frame)

        def all_poses() -> None:
            p.forwardKinematics(m, d, q)
            p.updateFramePlacements(m, d)

        def velocity() -> Any:
            p.forwardKinematics(m, d, q, u)
            return p.getFrameVelocity(m, d, frame, world)

        def jacobian_rate() -> Any:
            p.computeJointJacobiansTimeVariation(m, d, q, u)
            return p.getFrameJacobianTimeVariation(m, d, frame, world)

        def energies() -> Any:
            return p.computeKineticEnergy(m, d, q, u), p.computePotentialEnergy(m, d, q)

        return {
            "mass_matrix": (lambda: p.crba(m, d, q), lambda a, b: s.mass_matrix(a, speeds="tree"),
                            s.bind("mass_matrix", x)),
            "bias": (lambda: p.nonLinearEffects(m, d, q, u), lambda a, b: s.bias(a, b, speeds="tree"),
                     s.bind("bias", x, v)),
            "pose of a body": (pose, lambda a, b: s.pose(a, body), s.bind("pose", x, body=body)),
            "poses of all": (all_poses, lambda a, b: s.pose(a), s.bind("pose", x, body=None)),
            "velocity": (velocity, lambda a, b: s.velocity(a, b, body), s.bind("velocity", x, v, body=body)),
            "center_of_mass": (lambda: p.centerOfMass(m, d, q), lambda a, b: s.center_of_mass(a),
                               s.bind("center_of_mass", x)),
            "momentum": (lambda: p.computeCentroidalMomentum(m, d, q, u), lambda a, b: s.momentum(a, b),
                         s.bind("momentum", x, v)),
            "jacobian": (lambda: p.computeFrameJacobian(m, d, q, frame, world),
                         lambda a, b: s.jacobian(a, body, speeds="tree"), s.bind("jacobian", x, body=body)),
            "jacobian_rate": (jacobian_rate, lambda a, b: s.jacobian_rate(a, b, body),
                              s.bind("jacobian_rate", x, v, body=body)),
            "energies": (energies, lambda a, b: (s.kinetic_energy(a, b), s.potential_energy(a)), None),
        }

    def check(self) -> None:
        """Both libraries say the same of the machine."""
        s, p, m, d = self.system, self.pin, self.model, self.data
        x, v, order = self.q, self.u, self.order
        p.forwardKinematics(m, d, self.pq, self.pu)
        p.updateFramePlacements(m, d)
        upper = p.crba(m, d, self.pq)
        mass = np.triu(upper) + np.triu(upper, 1).T
        jacobian = p.computeFrameJacobian(m, d, self.pq, self.frame, p.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        same = {"mass_matrix": (s.mass_matrix(x, speeds="tree")[np.ix_(order, order)], mass),
                "bias": (s.bias(x, v, speeds="tree")[order], p.nonLinearEffects(m, d, self.pq, self.pu)),
                "pose": (s.pose(x, self.body).position, d.oMf[self.frame].translation),
                "jacobian": (s.jacobian(x, self.body, speeds="tree")[np.ix_([3, 4, 5, 0, 1, 2], order)], jacobian),
                "center_of_mass": (s.center_of_mass(x), p.centerOfMass(m, d, self.pq)),
                "energy": (s.kinetic_energy(x, v), p.computeKineticEnergy(m, d, self.pq, self.pu))}
        for what, (ours, theirs) in same.items():
            error = float(np.abs(np.asarray(ours) - theirs).max() / max(1e-300, np.abs(theirs).max()))
            print(f"  {what:16} differs by {error:.1e}" + ("" if error < 1e-9 else "   <-- NOT THE SAME"))


def repeated(call: Callable[[], Any], times: int = CALLS) -> Callable[[], None]:
    def run() -> None:
        for _ in range(times):
            call()

    return run


def measure(name: str) -> None:
    """Print the table of one machine."""
    pair = Pair(name)
    print(f"{name}: {pair.system.nu} speeds; microseconds a call, nanoseconds a state of {BATCH}")
    pair.check()
    many = np.repeat(pair.q[None], BATCH, axis=0), np.repeat(pair.u[None], BATCH, axis=0)
    empty = interleaved({"empty": repeated(lambda: None)}, ROUNDS)["empty"] / CALLS
    print(f"  {'':16} {'Pinocchio':>9} {'plain':>7} {'bound':>7} {'batch':>9} {'Pinocchio / plain':>18} "
          f"{'/ bound':>8} {'/ batch':>8}")
    for what, (theirs, ours, bound) in pair.calls().items():
        calls = {"pin": repeated(theirs), "plain": repeated(partial(ours, pair.q, pair.u)),
                 "batch": repeated(partial(ours, *many), BATCHES),
                 **({} if bound is None else {"bound": repeated(bound)})}
        for call in calls.values():
            call()
        took = interleaved(calls, ROUNDS)
        pin, plain, batch = took["pin"] / CALLS, took["plain"] / CALLS, took["batch"] / BATCH / BATCHES
        held = took.get("bound", float("nan")) / CALLS
        print(f"  {what:16} {pin * 1e6:9.2f} {plain * 1e6:7.2f} {held * 1e6:7.2f} {batch * 1e9:9.0f} "
              f"{pin / plain:18.2f} {pin / held:8.2f} {(pin - empty) / batch:8.1f}", flush=True)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or ["panda", "go2", "talos"]:
        measure(chosen)
