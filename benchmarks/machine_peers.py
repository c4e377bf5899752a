"""The same machines in MuJoCo and Pinocchio, whose loops are soft: how they come near as their loops stiffen.

MuJoCo solves (A + R) f = aref - J a0 for the forces f of its constraints, with A = J M^-1 J^T, a0 the accelerations
without them, and R about (1 - d) / d diag(A); the impedance d may be 0.9999 at most. With loops closed, its
accelerations miss the exact ones by about 1 - d times a number that grows with the spread of A, at rest and in motion,
and three values of d give the limit d -> 1. In a run gaps open, which solref, a time constant, closes: paths come near
with that. Of joint polynomials p MuJoCo leaves out p'' qvel², so that these stay away in motion.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from machine_checks import choose, closed_states
from machine_list import Machine

import bellcrank as bc

__all__ = ["Built", "Softness", "built", "from_file"]

Floats = npt.NDArray[np.float64]

#: 1 - d of MuJoCo's impedance; the last is the least it allows
SOFT = (1e-2, 1e-3, 1e-4)
MUS = (1e-2, 1e-4, 1e-6, 1e-8)
TIMES = (0.02, 0.01, 0.005, 0.0025)


class Softness(NamedTuple):
    """Differences of MuJoCo's accelerations to ours, relative to the largest, for the values of `SOFT`."""

    rest: tuple[float, ...]
    rest_limit: float  #: extrapolated to d = 1
    moving: tuple[float, ...]
    moving_limit: float
    paths: tuple[float, ...] = ()  #: largest difference of coordinates after a while, for the solref of `TIMES`


def limit(values: list[Floats]) -> Floats:
    """The limit d -> 1 from values at `SOFT`, by the polynomial in R through them."""
    ratio = np.array(SOFT) / (1.0 - np.array(SOFT))
    weights = [np.prod([ratio[j] / (ratio[j] - ratio[i]) for j in range(3) if j != i]) for i in range(3)]
    return np.asarray(sum(w * a for w, a in zip(weights, values, strict=True)))


# -- MuJoCo's own reading of the file -------------------------------------------------------------
def from_file(machine: Machine, seconds: float = 0.5, seed: int = 0) -> Softness:
    """MuJoCo reads the file; limits, actuators, contacts and dry friction are switched off on both sides."""
    import mujoco

    from bellcrank.io.mjcf.read import MjcfReader
    from bellcrank.io.mjcf.source import compiled
    from mjcf_peer import Peer

    assert machine.mjcf is not None
    source = compiled(machine.mjcf(), None, "massless")
    model = source.model
    model.dof_frictionloss[:] = 0.0
    model.tendon_frictionloss[:] = 0.0
    model.eq_data[model.eq_type == int(mujoco.mjtEq.mjEQ_WELD), 10] = 1.0  # torquescale: welds soft in turns
    model.opt.gravity[:] = machine.read()[0].gravity
    flag = mujoco.mjtDisableBit
    model.opt.disableflags |= int(flag.mjDSBL_ACTUATION | flag.mjDSBL_LIMIT | flag.mjDSBL_CONTACT)
    model.opt.tolerance, model.opt.iterations, model.opt.solver = 1e-16, 1000, mujoco.mjtSolver.mjSOL_NEWTON
    reader = MjcfReader(source, False, False)
    mechanism = reader.mechanism()
    system = bc.compile(mechanism, cut=closing_joints(mechanism), backend="numpy")
    peer = Peer(mujoco, model, reader, system)
    rest = machine.state(system)
    q, u = (x[0] for x in closed_states(system, machine, 1, seed))
    return Softness(*_series(peer, rest.q, rest.u), *_series(peer, q, u),
                    paths(mujoco, peer, machine, mechanism, seconds))


def closing_joints(mechanism: bc.Mechanism) -> list[str]:
    """Joints of an MJCF file's equality constraints: those whose bodies earlier joints connect already."""
    from bellcrank.io.common.peer_states import tree_and_closing

    return [record.name for record in tree_and_closing(mechanism)[1]]


def _series(peer: Any, q: Floats, u: Floats) -> tuple[tuple[float, ...], float]:
    """Differences for the values of `SOFT`, and that of the limit."""
    qpos, qvel = peer.states.to_peer(peer.system.state(q, u))
    ours = peer.theirs(peer.system.forward_dynamics(q, u), u, q)
    scale = max(float(np.abs(ours).max()), 1.0)
    found = []
    for soft in SOFT:
        peer.model.eq_solimp[:] = 1.0 - soft, 1.0 - soft, 1e-3, 0.5, 2.0
        found.append(peer.accelerations(qpos, qvel))
    errors = [float(np.abs(a - ours).max()) / scale for a in (*found, limit(found))]
    return tuple(errors[:-1]), errors[-1]


def paths(mujoco: Any, peer: Any, machine: Machine, mechanism: bc.Mechanism, seconds: float) -> tuple[float, ...]:
    """Largest difference of coordinates at the end of a run from rest; MuJoCo by Runge-Kutta, 20 steps per time
    constant of its loops. Nothing for no time, and for machines with dampers that are too stiff for that."""
    if not seconds:
        return ()
    system = bc.compile(mechanism, cut=closing_joints(mechanism))
    start = machine.state(system)
    if choose(system, start.q).rate * TIMES[0] > 50.0:
        return ()
    last = system.simulate(start, seconds, stepper="dop853", output=seconds)
    goal = peer.states.to_peer(last.state())[0]
    model, out = peer.model, []
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    for constant in TIMES:
        model.eq_solref[:] = constant, 1.0
        model.eq_solimp[:] = 0.9999, 0.9999, 1e-3, 0.5, 2.0
        steps = round(20.0 * seconds / constant)
        model.opt.timestep = seconds / steps
        data = mujoco.MjData(model)
        data.qpos, data.qvel = peer.states.to_peer(start)
        for _ in range(steps):
            mujoco.mj_step(model, data)
        out.append(float(np.abs(data.qpos - goal).max()))
    return tuple(out)


# -- peers built from our description -------------------------------------------------------------
class Built(NamedTuple):
    """Differences of accelerations to ours, relative to the largest: Pinocchio's `constraintDynamics` for the mu of
    `MUS`, MuJoCo for `SOFT` with the limit, all in motion."""

    pinocchio: tuple[float, ...]
    mujoco: tuple[float, ...]
    mujoco_limit: float
    weakest: float  #: see `weakest`


def built(machine: Machine) -> Built:
    """Both peers get the tree that is left when the `closing` joints are cut, and point closures in their place; forces
    of joint springs and friction are given to them as numbers."""
    from loop_peers import MuJoCo, Pinocchio

    mechanism = machine.read()[0]
    cuts = list(machine.closing)
    system = bc.compile(mechanism, cut=cuts, backend="numpy")
    q, u = (x[0] for x in closed_states(system, machine, 1))
    truth = system.forward_dynamics(q, u)
    some = ~system.model.tree.loop_speeds()  # joints that the peers have
    scale = max(1.0, float(np.abs(truth[some]).max()))
    pinocchio = [_accelerations(Pinocchio(mechanism, cuts, mu), system, q, u) for mu in MUS]
    mujoco, found = MuJoCo(mechanism, cuts), []
    mujoco.model.opt.tolerance, mujoco.model.opt.iterations = 1e-16, 1000
    for soft in SOFT:
        mujoco.model.eq_solimp[:] = 1.0 - soft, 1.0 - soft, 1e-3, 0.5, 2.0
        found.append(_accelerations(mujoco, system, q, u))
    first, second = ([float(np.abs(a - truth)[some].max()) / scale for a in values]
                     for values in (pinocchio, [*found, limit(found)]))
    return Built(tuple(first), tuple(second[:-1]), second[-1], weakest(system, q))


def weakest(system: bc.System, q: Floats) -> float:
    """The smallest eigenvalue that is not zero of A = J M^-1 J^T, each point closure's three rows scaled by their mean
    diagonal. MuJoCo's softness is about 1 - d of that mean, in all three directions alike: the motion that this
    eigenvalue stands for is held if it is far above 1 - d, and all but free if it is far below."""
    some = ~system.model.tree.loop_speeds()
    rows, masses = bc.analyze.loop_jacobian(system, q)[:, some], system.mass_matrix(q, speeds="tree")
    inner = rows @ np.linalg.solve(masses[np.ix_(some, some)], rows.T)
    size = np.sqrt(np.repeat(np.diag(inner).reshape(-1, 3).mean(-1), 3))
    values = np.linalg.eigvalsh(inner / np.outer(size, size))
    return float(values[values > 1e-11].min())


def _accelerations(peer: Any, system: bc.System, q: Floats, u: Floats) -> Floats:
    """The peer's accelerations in our order."""
    model = system.model
    joints = {name: (i, j, model.mechanism.joint(name).joint) for name, (i, j) in model.configuration.starts.items()}
    laws = system.kernels.run("joint_laws", {"q": q, "u": u})
    forces = {name: laws[j:j + joint.nu] for name, (_, j, joint) in joints.items()}
    peer.set({name: q[i:i + joint.nq] for name, (i, _, joint) in joints.items()},
             {name: u[j:j + joint.nu] for name, (_, j, joint) in joints.items()}, forces)
    found = np.zeros(system.nu)
    for name, values in peer.udot_by_joint().items():
        _, j, joint = joints[name]
        found[j:j + joint.nu] = values
    return found
