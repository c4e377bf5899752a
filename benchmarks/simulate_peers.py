"""Simulations by MuJoCo, Exudyn and SciPy for `simulate.py`: one class per tool, one object per way of running it.

Every object is built once (not timed), `run()` simulates (timed, samples included, as the normal user would) and
`check()` then says how good the samples are: the largest gap in a loop and the drift of energy. MuJoCo's and Exudyn's
are judged by their own masses and springs, so that a model that differed from ours would not be blamed for it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from loop_peers import MuJoCo

import bellcrank as bc
from bellcrank.mechanism.forces.coordinate_forces import LinearSpring

Array = npt.NDArray[np.float64]
JUDGED = 64  # of a batch every so many members, to be done within seconds


class Check(NamedTuple):
    """Quality of a simulation."""

    loop: float | None  #: largest distance over all loops and samples [m]; None without loops
    drift: float | None  #: change of energy from start to end over the largest kinetic energy
    note: str = ""  #: why there are no numbers

    @staticmethod
    def of(gaps: Array, kinetic: Array, potential: Array) -> Check:
        """From samples along the first axis; a further axis are members of a batch, of which the worst counts."""
        energy = kinetic + potential
        change = np.ravel(energy[-1] - energy[0]) / kinetic.max()
        return Check(float(np.abs(gaps).max()) if gaps.size else None, float(change[np.abs(change).argmax()]))


class Runner(Protocol):
    """A simulation ready to run."""

    def run(self) -> None: ...

    def check(self) -> Check: ...


@dataclass(frozen=True)
class Task:
    """What every tool gets: a machine in a closed state, by joints, and how long and how finely to simulate."""

    machine: bc.Mechanism
    cuts: Sequence[str]  #: joints that a tool without loop joints turns into point closures
    q: dict[str, Any]
    u: dict[str, Any]
    duration: float = 10.0
    step: float = 1e-3
    output: float = 1e-2

    @property
    def steps(self) -> int:
        return round(self.duration / self.step)

    @property
    def stride(self) -> int:
        """Steps between samples."""
        return round(self.output / self.step)


def installed(module: str) -> bool:
    """Whether a peer is there."""
    return importlib.util.find_spec(module) is not None


# -- MuJoCo ---------------------------------------------------------------------------------------
class MuJoCoModel:
    """A model and its first state. Connect constraints are soft by default or as hard as MuJoCo lets them be."""

    def __init__(self, task: Task, hard: bool = False, model: Any = None) -> None:
        import mujoco

        if model is None:
            peer = MuJoCo(task.machine, task.cuts, hard)
            peer.set(task.q, task.u)
            self.model, self.q, self.v = _with_springs(peer), peer.q.copy(), peer.v.copy()
        else:  # of a tree of hinges, by their names
            self.model, self.q, self.v = model, np.zeros(model.nq), np.zeros(model.nv)
            model.dof_damping[:] = 0.0
            model.opt.gravity[:] = [task.machine.default(g) for g in task.machine.gravity]
            for name in (name for name, u in task.u.items() if np.size(u)):
                joint = model.joint(name)
                self.q[joint.qposadr], self.v[joint.dofadr] = task.q[name], task.u[name]
        # the other benchmarks switch the warm start off; whoever simulates keeps it
        self.model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_WARMSTART)
        self.model.opt.timestep = task.step

    def judge(self, q: Array, v: Array) -> Check:
        """Samples (n, nq) and (n, nv), or (n, batch, nq) and (n, batch, nv)."""
        import mujoco

        model, data = self.model, mujoco.MjData(self.model)
        lead = q.shape[:-1]
        kinetic, potential, gaps = np.zeros(lead), np.zeros(lead), np.zeros((*lead, model.neq))
        for i in np.ndindex(*lead):
            data.qpos[:], data.qvel[:] = q[i], v[i]
            mujoco.mj_forward(model, data)
            mujoco.mj_energyPos(model, data)
            mujoco.mj_energyVel(model, data)
            potential[i], kinetic[i] = data.energy
            for k in range(model.neq):
                a, b = model.eq_obj1id[k], model.eq_obj2id[k]
                ends = [data.xpos[body] + data.xmat[body].reshape(3, 3) @ anchor
                        for body, anchor in ((a, model.eq_data[k, :3]), (b, model.eq_data[k, 3:6]))]
                gaps[(*i, k)] = np.linalg.norm(ends[0] - ends[1])
        return Check.of(gaps, kinetic, potential)


def _with_springs(peer: MuJoCo) -> Any:
    """The model with the machine's undamped springs between points as tendons."""
    springs = peer.mechanism.springs
    if not springs:
        return peer.model
    for spring in springs:
        if not isinstance(spring.along, LinearSpring):
            raise ValueError(f"spring {spring.name!r}: only linear springs are modelled here")
        tendon = peer.spec.add_tendon(name=spring.name, springlength=[float(spring.along.rest)] * 2)
        tendon.stiffness[0] = float(spring.along.stiffness)  # the further ones are of higher order
        for end, body, point in (("first", spring.first, spring.first_point),
                                 ("second", spring.second, spring.second_point)):
            part, place = peer.place[body]
            at = place[:3, :3] @ np.array([float(x) for x in point]) + place[:3, 3]
            part.add_site(name=f"{spring.name} {end}", pos=at)
            tendon.wrap_site(f"{spring.name} {end}")
    model = peer.spec.compile()
    model.eq_data[:] = peer.model.eq_data  # the anchors, which the compiler would take from the open pose
    return model


#: MuJoCo answers accelerations that are not finite with a warning and goes on from the reference pose at time 0
RESTARTED = Check(None, None, "unstable: it gave up and started over")


def _finished(task: Task, times: float | Array) -> bool:
    return bool(np.all(np.abs(times - task.duration) < task.step / 2))


class MuJoCoLoop:
    """``mj_step`` in a loop in Python, a copy of the state kept for every sample."""

    def __init__(self, task: Task, start: MuJoCoModel, integrator: str) -> None:
        import mujoco

        self.task, self.start = task, start
        self.integrator = int(getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}"))
        self.data = mujoco.MjData(start.model)
        samples = task.steps // task.stride + 1
        self.q, self.v = np.zeros((samples, start.model.nq)), np.zeros((samples, start.model.nv))

    def run(self) -> None:
        import mujoco

        model, data, step, stride = self.start.model, self.data, mujoco.mj_step, self.task.stride
        model.opt.integrator = self.integrator
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = self.start.q, self.start.v
        self.q[0], self.v[0] = data.qpos, data.qvel
        for i in range(1, len(self.q)):
            for _ in range(stride):
                step(model, data)
            self.q[i], self.v[i] = data.qpos, data.qvel

    def check(self) -> Check:
        return self.start.judge(self.q, self.v) if _finished(self.task, self.data.time) else RESTARTED


class MuJoCoRollout:
    """``mujoco.rollout``: the loop in C, every step kept. One state, or a batch on all cores (v of shape (batch, nv),
    all from the same positions)."""

    def __init__(self, task: Task, start: MuJoCoModel, integrator: str, v: Array | None = None,
                 threads: int = 0) -> None:
        import mujoco

        self.task, self.start = task, start
        self.integrator = int(getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}"))
        model = start.model
        speeds = start.v[None] if v is None else v
        self.initial = np.concatenate([np.zeros((len(speeds), 1)), np.broadcast_to(start.q, (len(speeds), model.nq)),
                                       speeds], axis=1)  # the full physics state: time, q, v
        if mujoco.mj_stateSize(model, int(mujoco.mjtState.mjSTATE_FULLPHYSICS)) != self.initial.shape[1]:
            raise ValueError("MuJoCo keeps more state here than time, positions and speeds")
        self.data = [mujoco.MjData(model) for _ in range(max(threads, 1))]
        self.states = np.zeros((len(speeds), task.steps, self.initial.shape[1]))
        self.threads, self.pool = threads, None  # threads are made on the first run

    def run(self) -> None:
        from mujoco import rollout

        self.start.model.opt.integrator = self.integrator
        if self.pool is None:
            self.pool = rollout.Rollout(nthread=self.threads)
        self.pool.rollout(self.start.model, self.data, self.initial, nstep=self.task.steps, state=self.states)

    def check(self) -> Check:
        nq, stride = self.start.model.nq, self.task.stride
        if not _finished(self.task, self.states[:, -1, 0]):
            return RESTARTED
        samples = np.concatenate([self.initial[:, None], self.states[:, stride - 1::stride]], axis=1)
        samples = np.moveaxis(samples[::JUDGED] if len(samples) > 1 else samples, 0, 1)
        return self.start.judge(samples[..., 1:1 + nq], samples[..., 1 + nq:])


# -- Exudyn ---------------------------------------------------------------------------------------
class ExudynFourBar:
    """The four-bar in the plane, generalized-alpha in C++ as it comes (spectral radius 0.9, Newton tolerance 1e-8),
    no files. The three rods by their centres and absolute angles, four revolute joints."""

    lengths, masses, ground = np.array([0.3, 1.0, 0.6]), np.array([1.5, 5.0, 3.0]), np.array([[0.0, 0.0], [1.0, 0.0]])

    def __init__(self, task: Task) -> None:
        import exudyn
        import exudyn.itemInterface

        item = exudyn.itemInterface
        angles, rates = (np.cumsum([float(np.ravel(x[name])[0]) for name in "ABC"]) for x in (task.q, task.u))
        self.container = exudyn.SystemContainer()
        self.mbs = mbs = self.container.AddSystem()
        ground = mbs.AddObject(item.ObjectGround())
        pin, pin_rate = self.ground[0], np.zeros(2)
        ends = [mbs.AddMarker(item.MarkerBodyPosition(bodyNumber=ground, localPosition=[*self.ground[0], 0]))]
        self.sensors = []
        for length, mass, angle, rate in zip(self.lengths, self.masses, angles, rates, strict=True):
            along = length * np.array([np.cos(angle), np.sin(angle)])
            across = rate * np.array([-along[1], along[0]])
            node = mbs.AddNode(item.NodeRigidBody2D(referenceCoordinates=[*(pin + along / 2), angle],
                                                    initialVelocities=[*(pin_rate + across / 2), rate]))
            body = mbs.AddObject(item.ObjectRigidBody2D(mass=mass, inertia=mass * length**2 / 12, nodeNumber=node))
            weight = mbs.AddMarker(item.MarkerBodyMass(bodyNumber=body))
            mbs.AddLoad(item.LoadMassProportional(markerNumber=weight, loadVector=[0, -9.81, 0]))
            ends += [mbs.AddMarker(item.MarkerBodyPosition(bodyNumber=body, localPosition=[side * length / 2, 0, 0]))
                     for side in (-1, 1)]
            kinds = exudyn.OutputVariableType
            self.sensors.append([mbs.AddSensor(item.SensorNode(nodeNumber=node, outputVariableType=kind,
                                                               storeInternal=True, writeToFile=False))
                                 for kind in (kinds.Coordinates, kinds.Coordinates_t)])
            pin, pin_rate = pin + along, pin_rate + across
        self.reference = np.array([mbs.GetNode(i)["referenceCoordinates"] for i in range(3)])
        ends.append(mbs.AddMarker(item.MarkerBodyPosition(bodyNumber=ground, localPosition=[*self.ground[1], 0])))
        for a, b in zip(ends[::2], ends[1::2], strict=True):
            mbs.AddObject(item.ObjectJointRevolute2D(markerNumbers=[a, b]))
        mbs.Assemble()
        self.settings = exudyn.SimulationSettings()
        self.settings.timeIntegration.numberOfSteps = task.steps
        self.settings.timeIntegration.endTime = task.duration
        self.settings.solution.file.write = False
        self.settings.solution.sensors.writePeriod = task.output

    def run(self) -> None:
        if not self.mbs.SolveDynamic(self.settings):
            raise RuntimeError("Exudyn did not finish")

    def check(self) -> Check:
        q, v = (np.stack([self.mbs.GetSensorStoredData(pair[k])[:, 1:] for pair in self.sensors], axis=1)
                for k in (0, 1))
        q = q + self.reference
        half = self.lengths[:, None] / 2 * np.stack([np.cos(q[..., 2]), np.sin(q[..., 2])], axis=-1)
        ends = np.stack([q[..., :2] - half, q[..., :2] + half], axis=2).reshape(len(q), 6, 2)
        first, last = (np.broadcast_to(x, (len(q), 1, 2)) for x in self.ground)
        pins = np.concatenate([first, ends, last], axis=1)
        gaps = np.linalg.norm(pins[:, ::2] - pins[:, 1::2], axis=-1)
        inertia = self.masses * self.lengths**2 / 12
        kinetic = 0.5 * (self.masses * (v[..., :2] ** 2).sum(-1) + inertia * v[..., 2] ** 2).sum(-1)
        return Check.of(gaps, kinetic, 9.81 * (self.masses * q[..., 1]).sum(-1))


# -- SciPy ----------------------------------------------------------------------------------------
def judge(system: bc.System, q: Array, u: Array) -> Check:
    """Samples in Bellcrank's coordinates (n, ..., nq) and (n, ..., nu); of loops also the cosines count."""
    kinetic, potential = system.kinetic_energy(q, u), system.potential_energy(q)
    return Check.of(system.loop_error(q), kinetic, potential + bc.analyze.stored_energy(system, q))


class SciPy:
    """``scipy.integrate.solve_ivp`` around a bound call of Bellcrank's forward dynamics, sampled with dense output.
    Nothing holds the loops but the accuracy of the integration."""

    def __init__(self, task: Task, system: bc.System, q: Array, u: Array, method: str, rtol: float) -> None:
        self.task, self.system, self.method, self.rtol = task, system, method, rtol
        self.start = np.concatenate([q, u])
        self.q, self.u, tau = q.copy(), u.copy(), np.zeros(system.nu)
        self.call = system.bind("forward_dynamics", self.q, self.u, tau)
        self.times = np.linspace(0.0, task.duration, task.steps // task.stride + 1)
        self.evaluations = 0

    def slope(self, t: float, y: Array) -> Array:
        nq = self.system.nq
        self.q[:], self.u[:] = y[:nq], y[nq:]
        simple = nq == self.system.nu  # no quaternions
        return np.concatenate([self.u if simple else self.system.model.configuration.qdot(self.q, self.u), self.call()])

    def run(self) -> None:
        from scipy.integrate import solve_ivp

        found = solve_ivp(self.slope, (0.0, self.task.duration), self.start, self.method, self.times, rtol=self.rtol,
                          atol=self.rtol * 1e-2)
        if not found.success:
            raise RuntimeError(f"solve_ivp: {found.message}")
        self.found, self.evaluations = np.ascontiguousarray(found.y.T), found.nfev

    def check(self) -> Check:
        nq = self.system.nq
        return judge(self.system, self.system.normalize(self.found[:, :nq]), self.found[:, nq:].copy())
