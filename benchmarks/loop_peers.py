"""Closed loops in Pinocchio and MuJoCo: one forward dynamics of a `bellcrank.Mechanism` with joints cut.

    python benchmarks/loop_peers.py [CELLS ...]

Neither peer has a loop joint: the model is a tree plus point closures, and the user says which joints are
cut. `Pinocchio` and `MuJoCo` build it from the description Bellcrank reads, take a state by joint names, and
leave one cheap `call()` to time. Run as a program, this prints their times and errors on ladders (closed form)
and on a moving four-bar (a dense solution written here).

A cut joint becomes a **point closure** (3 rows). That is exact for spherical joints, always; for revolute and
universal joints only where the rest of the machine already holds the two axes parallel:
- planar loops, e.g. the four-bar: any revolute joint may be cut (1 of the 3 rows is redundant);
- ladders, *chain cut* (`arm1`, `arm2`, ...: arm 0 carries everything): the hinges along the chain keep all arms
  in one plane through the x axis, the points do the rest, and one row of three is redundant;
- ladders, *rail cut* (`inner1`, ...: every arm hangs from the ground and carries a coupler): nothing redundant.
`closures=2` cuts a revolute joint at two points of its axis instead: exact in any machine, one row redundant.
`Pinocchio.mobility()` tells whether a choice of cuts leaves the machine's true freedom.
"""

from __future__ import annotations

import functools
import multiprocessing
import resource
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from timing import best, resident, time_text

import bellcrank as bc
from bellcrank.examples.ladders import ladder
from bellcrank.examples.linkages import four_bar
from bellcrank.mechanism.mechanism import Body, Connection

Array = npt.NDArray[np.float64]
Values = Mapping[str, float | Sequence[float] | Array]
MEMORY = 10e9  # models that need more bytes are left out


# -- the tree -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Link:
    """An uncut joint on the way from the ground: body `inner` carries body `outer`."""

    record: Connection
    backwards: bool  # the tree runs from the joint's child to its parent
    inner: int
    outer: int
    base: Array  # the joint frame in the inner body, 4x4
    tip: Array  # and in the outer one


def frame(mechanism: bc.Mechanism, pose: bc.Pose) -> Array:
    """A pose as a 4x4 matrix."""
    return np.block([[pose.rotation, np.array([[mechanism.default(x)] for x in pose.position])], [0.0, 0.0, 0.0, 1.0]])


def spanning_tree(mechanism: bc.Mechanism, cuts: Iterable[str]) -> list[Link]:
    """The uncut joints, depth first."""
    cuts = set(cuts)
    if missing := cuts - {r.name for r in mechanism.joints}:
        raise ValueError(f"no joints {sorted(missing)} to cut")
    if mechanism.wrenches or any(r.prescribed for r in mechanism.joints):
        raise ValueError("wrenches and prescribed joints are not modelled here")
    around: dict[int, list[Connection]] = {body.index: [] for body in (mechanism.ground, *mechanism.bodies)}
    for record in mechanism.joints:
        if record.name not in cuts:
            around[record.parent].append(record)
            around[record.child].append(record)
    links: list[Link] = []
    seen, stack = {0}, [(r, 0) for r in reversed(around[0])]
    while stack:
        record, inner = stack.pop()
        backwards = record.child == inner
        outer = record.parent if backwards else record.child
        if outer in seen:
            raise ValueError(f"the joints that are not cut still close a loop at {record.name!r}")
        seen.add(outer)
        ends = frame(mechanism, record.parent_pose), frame(mechanism, record.child_pose)
        links.append(Link(record, backwards, inner, outer, *(reversed(ends) if backwards else ends)))
        stack += [(r, outer) for r in reversed(around[outer]) if r is not record]
    if len(seen) != len(mechanism.bodies) + 1:
        raise ValueError("the joints that are not cut do not reach every body")
    return links


def steps(link: Link) -> list[tuple[str, Array]]:
    """The joint as hinges R and sliders P (with their axes) one after another, or one ball S or free body F."""
    joint, parts = link.record.joint, []
    if isinstance(joint, bc.Revolute | bc.Prismatic):
        parts = [("R" if isinstance(joint, bc.Revolute) else "P", np.array(joint.axis))]
    elif isinstance(joint, bc.Universal):
        parts = [("R", np.array(joint.axis1)), ("R", np.array(joint.axis2))]
    elif isinstance(joint, bc.Spherical):
        parts = [("S", np.zeros(3))]
    elif isinstance(joint, bc.Free) and not link.backwards and link.inner == 0:
        parts = [("F", np.zeros(3))]
    elif not isinstance(joint, bc.Weld):
        raise ValueError(f"joint {link.record.name!r}: {joint!r} is not modelled here")
    return [(kind, -axis) for kind, axis in reversed(parts)] if link.backwards else parts


def inertia(mechanism: bc.Mechanism, body: Body, place: Array) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia about it, in the frame in which the body lies at `place`."""
    xx, xy, xz, yy, yz, zz = (mechanism.default(x) for x in body.inertia.inertia)
    com, turn = np.array([mechanism.default(x) for x in body.inertia.com]), place[:3, :3]
    about = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
    return mechanism.default(body.inertia.mass), turn @ com + place[:3, 3], about


# -- the peers ------------------------------------------------------------------------------------
class Peer:
    """A machine in a peer's coordinates: states go in and accelerations come out by joint names, in Bellcrank's
    conventions. Cut joints may be named in a state and are ignored."""

    result, scalar_first = "qacc", True
    call: Callable[[], Any]  # one forward dynamics: what is timed

    def __init__(self, mechanism: bc.Mechanism, cuts: Sequence[str], closures: int) -> None:
        self.mechanism, self.cuts, self.closures = mechanism, tuple(cuts), closures
        self.links = spanning_tree(mechanism, cuts)
        self.place: dict[int, tuple[Any, Array]] = {}  # body -> the peer's part it is fixed to, and where
        self.start: dict[str, tuple[int, int]] = {}  # joint -> first index in the peer's q and v
        self._back: dict[str, tuple[Array, Array, Array]] = {}

    def points(self) -> list[tuple[Any, Array, Any, Array]]:
        """The closures: two of the peer's parts and the joint's frame in each, the ground last."""
        out = []
        for record in map(self.mechanism.joint, self.cuts):
            joint = record.joint
            if not isinstance(joint, bc.Revolute | bc.Universal | bc.Spherical):
                raise ValueError(f"joint {record.name!r}: a cut {joint!r} is not a point closure; cut another joint")
            for i in range(self.closures if isinstance(joint, bc.Revolute) else 1):
                shift = np.eye(4)
                shift[:3, 3] = i * np.array(getattr(joint, "axis", np.zeros(3)))
                ends = [(record.parent, record.parent_pose), (record.child, record.child_pose)]
                ends = [(self.place[b][0], self.place[b][1] @ frame(self.mechanism, pose) @ shift) for b, pose in ends]
                out.append((*ends[0], *ends[1]) if record.parent else (*ends[1], *ends[0]))
        return out

    def _convert(self, link: Link, q: Array, u: Array) -> tuple[Array, Array, Array]:
        """The peer's q, the orthogonal X of v = X u, and dX/dt u."""
        if isinstance(link.record.joint, bc.Free):
            return self._free(link, q, u)
        if isinstance(link.record.joint, bc.Spherical):
            turn = -bc.Pose((0, 0, 0), q).rotation if link.backwards else np.eye(3)
            q = q * [1, -1, -1, -1] if link.backwards else q
            return q if self.scalar_first else np.roll(q, -1), turn, np.zeros(3)
        order = np.eye(len(u))[::-1 if link.backwards else 1]
        return order @ q, order, np.zeros(len(u))

    def set(self, q: Values, u: Values, tau: Values | None = None) -> None:
        """Take a state; joints without tau have none."""
        for link in self.links:
            name, nu = link.record.name, link.record.joint.nu
            if nu:
                speeds, (iq, iv) = np.atleast_1d(u[name]), self.start[name]
                angles, turn, _ = self._back[name] = self._convert(link, np.atleast_1d(q[name]), speeds)
                self.q[iq:iq + len(angles)], self.v[iv:iv + nu] = angles, turn @ speeds
                self.tau[iv:iv + nu] = turn @ np.atleast_1d((tau or {}).get(name, np.zeros(nu)))

    def udot_by_joint(self) -> dict[str, Array]:
        """Call, and return the accelerations of the uncut joints."""
        self.call()
        acceleration, out = getattr(self.data, self.result), {}
        for name, (_, turn, drift) in self._back.items():
            iv = self.start[name][1]
            out[name] = turn.T @ (acceleration[iv:iv + len(drift)] - drift)
        return out


class Pinocchio(Peer):
    """`constraintDynamics` (dense in the closures) or `lcaba` (linear time), both with a proximal term `mu`."""

    result, scalar_first = "ddq", False

    def __init__(self, mechanism: bc.Mechanism, cuts: Sequence[str], mu: float = 1e-3,
                 solver: str = "constraintDynamics", tolerance: float = 1e-10, iterations: int = 50,
                 closures: int = 1) -> None:
        import pinocchio as pin

        super().__init__(mechanism, cuts, closures)
        self.model = model = pin.Model()
        model.gravity.linear = np.array([mechanism.default(g) for g in mechanism.gravity])
        self.place[0] = 0, np.eye(4)
        for link in self.links:
            joint, place = self.place[link.inner]
            place = place @ link.base
            for k, (kind, axis) in enumerate(steps(link)):
                self.start.setdefault(link.record.name, (model.nq, model.nv))
                joint = model.addJoint(joint, pin_joint(kind, axis), pin.SE3(place), f"{link.record.name}/{k}")
                place = np.eye(4)
            place = place @ np.linalg.inv(link.tip)
            body = pin.Inertia(*inertia(mechanism, mechanism.bodies[link.outer - 1], place))
            model.appendBodyToJoint(joint, body, pin.SE3.Identity())
            self.place[link.outer] = joint, place
        self.models, self.datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for a, at_a, b, at_b in self.points():
            self.models.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, a, pin.SE3(at_a),
                                                        b, pin.SE3(at_b)))
            self.datas.append(self.models[-1].createData())
        self.data = pin.Data(model)  # createData() would make a copy: twice the memory
        self.q, self.v, self.tau = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        self.settings = pin.ProximalSettings(tolerance, mu, iterations)
        if solver == "lcaba":
            pin.computeJointMinimalOrdering(model, self.data, self.models)
        else:
            pin.initConstraintDynamics(model, self.data, self.models, self.datas)
        self.call = functools.partial(getattr(pin, solver), model, self.data, self.q, self.v, self.tau, self.models,
                                      self.datas, self.settings)

    def _free(self, link: Link, q: Array, u: Array) -> tuple[Array, Array, Array]:
        return np.concatenate([q[4:], q[1:4], q[:1]]), np.roll(np.eye(6), 3, axis=0), np.zeros(6)

    def mobility(self) -> int:
        """Degrees of freedom that the closures leave in the present state."""
        import pinocchio as pin

        pin.computeJointJacobians(self.model, self.data, self.q)
        for model, data in zip(self.models, self.datas, strict=True):
            model.calc(self.model, self.data, data)  # without it the Jacobian is silently wrong
        jacobian = pin.getConstraintsJacobian(self.model, self.data, self.models, self.datas)
        return self.model.nv - int(np.linalg.matrix_rank(jacobian, 1e-9))


def pin_joint(kind: str, axis: Array) -> Any:
    """Pinocchio's joint; those along x, y and z are quicker than those along any axis."""
    import pinocchio as pin

    if kind in "SF":
        return pin.JointModelSpherical() if kind == "S" else pin.JointModelFreeFlyer()
    if axis.max() == 1.0:
        return getattr(pin, f"JointModel{kind}{'XYZ'[axis.argmax()]}")()
    return (pin.JointModelRevoluteUnaligned if kind == "R" else pin.JointModelPrismaticUnaligned)(axis)


class MuJoCo(Peer):
    """Connect constraints, always soft: as they come, or as hard as MuJoCo lets them be (`hard`). No contacts, no
    warm start. Inertias must be positive there: those of thin rods are raised to 1e-9 of their largest."""

    def __init__(self, mechanism: bc.Mechanism, cuts: Sequence[str], hard: bool = False, closures: int = 1) -> None:
        import mujoco

        super().__init__(mechanism, cuts, closures)
        self.spec = spec = mujoco.MjSpec()
        spec.option.gravity = [mechanism.default(g) for g in mechanism.gravity]
        spec.option.disableflags = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_WARMSTART
        spec.option.timestep = 1e-3
        types = {"R": "HINGE", "P": "SLIDE", "S": "BALL", "F": "FREE"}
        self.place[0] = spec.worldbody, np.eye(4)
        for link in self.links:  # the peer's body frame is the joint frame on the outer side
            parent, place = self.place[link.inner]
            at, place = place @ link.base, np.linalg.inv(link.tip)
            mass, com, about = inertia(mechanism, mechanism.bodies[link.outer - 1], place)
            moments, axes = np.linalg.eigh(about)
            moments, axes = np.maximum(moments, 1e-9 * moments[-1]), axes * np.linalg.det(axes)
            body = parent.add_body(name=f"body {link.outer}", pos=at[:3, 3], quat=quaternion(at), explicitinertial=True,
                                   mass=mass, ipos=com, iquat=quaternion(axes), inertia=moments)
            for k, (kind, axis) in enumerate(steps(link)):
                body.add_joint(name=f"{link.record.name}/{k}", axis=axis if axis.any() else [0, 0, 1],
                               type=getattr(mujoco.mjtJoint, f"mjJNT_{types[kind]}"))
            self.place[link.outer] = body, place
        for a, _, b, _ in self.points():
            closure = spec.add_equality(type=mujoco.mjtEq.mjEQ_CONNECT, objtype=mujoco.mjtObj.mjOBJ_BODY,
                                        name1=a.name, name2=b.name)
            if hard:
                closure.solref, closure.solimp = [2e-3, 1.0], [0.9999, 0.9999, 1e-3, 0.5, 2.0]
        self.model = model = spec.compile()
        for data, (_, at_a, _, at_b) in zip(model.eq_data, self.points(), strict=True):
            data[:6] = *at_a[:3, 3], *at_b[:3, 3]  # the compiler would take them from the open reference pose
        self.data = mujoco.MjData(model)
        self.q, self.v, self.tau = self.data.qpos, self.data.qvel, self.data.qfrc_applied
        for link in self.links:
            if link.record.joint.nu:
                joint = model.joint(f"{link.record.name}/0")
                self.start[link.record.name] = int(joint.qposadr[0]), int(joint.dofadr[0])
        self.call = functools.partial(mujoco.mj_forward, model, self.data)

    def _free(self, link: Link, q: Array, u: Array) -> tuple[Array, Array, Array]:
        at = link.base  # positions and linear speeds are in world axes here
        turn = at[:3, :3] @ bc.Pose((0, 0, 0), q[:4]).rotation
        change = np.block([[np.zeros((3, 3)), turn], [np.eye(3), np.zeros((3, 3))]])
        place = np.concatenate([at[:3, :3] @ q[4:] + at[:3, 3], quaternion(turn)])
        return place, change, np.concatenate([turn @ np.cross(u[:3], u[3:]), np.zeros(3)])


def quaternion(matrix: Array) -> Array:
    """The quaternion, scalar first, of a rotation (or of that in a 4x4 matrix)."""
    import mujoco

    out = np.zeros(4)
    mujoco.mju_mat2Quat(out, np.ascontiguousarray(matrix[:3, :3]).ravel())
    return out


# -- machines with known answers ------------------------------------------------------------------
LADDER_Q, LADDER_U = (0.6, 0.4), (-0.5, 1.0)


def ladder_truth(cells: int, q: Sequence[float] = LADDER_Q, u: Sequence[float] = LADDER_U) -> Array:
    """Accelerations of the two angles of every arm, from the equivalent pendulum."""
    jx, jy, jz, s = (cells + 1) * np.array([1.132, 1.092, 0.05, 1.28])
    (s1, s2), (c1, c2), g = np.sin(q), np.cos(q), 9.81
    return np.array([(2.0 * (jx - jz) * s2 * c2 * u[0] * u[1] - g * s * s1 * c2) / (jx * c2**2 + jz * s2**2),
                     (-(jx - jz) * s2 * c2 * u[0] ** 2 - g * s * c1 * s2) / jy])


def ladder_joints(cells: int, values: Sequence[float]) -> dict[str, Sequence[float]]:
    """Two angles (or rates, or accelerations) of the arms as those of all joints."""
    out: dict[str, Sequence[float]] = {f"arm{i}": tuple(values) for i in range(cells + 1)}
    for i in range(1, cells + 1):
        out[f"inner{i}"], out[f"outer{i}"] = (-values[1],), (values[1],)
    return out


def ladder_cuts(cells: int, cut: str) -> list[str]:
    """The joints of the "chain" or the "rail" cut."""
    return [f"{'arm' if cut == 'chain' else 'inner'}{i}" for i in range(1, cells + 1)]


def four_bar_truth(crank: float = np.pi / 2, speed: float = 2.0) -> dict[str, tuple[float, float, float]]:
    """Angle, rate and acceleration of every joint, without torques: absolute angles and dense equations."""
    a, m = np.array([0.3, 1.0, 0.6]), np.array([1.5, 5.0, 3.0])
    pin = 0.3 * np.exp(1j * crank)  # open branch: the elbow is left of the line from the crank pin to the pivot
    reach = abs(1.0 - pin)
    elbow = pin + (1.0 - pin) / reach * np.exp(1j * np.arccos((1.0 + reach**2 - 0.36) / (2.0 * reach)))
    phi = np.array([crank, np.angle(elbow - pin), np.angle(1.0 - elbow)])
    along, across = np.exp(1j * phi), 1j * np.exp(1j * phi)
    rows = np.array([(a * across).real, (a * across).imag])
    rate = np.append(speed, np.linalg.solve(rows[:, 1:], -rows[:, 0] * speed))
    mass, force = np.diag(m * a**2 / 12.0), np.zeros(3)
    for i in range(3):  # the centre of link i moves by weight * across * rate
        weight = np.where(np.arange(3) < i, a, np.where(np.arange(3) == i, a / 2.0, 0.0))
        mass += m[i] * (np.outer(weight * across, (weight * across).conj())).real
        felt = (weight * along * rate**2).sum() - 9.81j  # gravity less the acceleration at constant rates
        force += m[i] * (weight * across * np.conj(felt)).real
    sag = (a * along * rate**2).sum()
    kkt = np.block([[mass, rows.T], [rows, np.zeros((2, 2))]])
    acceleration = np.linalg.solve(kkt, np.concatenate([force, [sag.real, sag.imag]]))[:3]
    parts = [np.append(np.diff(x, prepend=0.0), -x[2]) for x in (phi, rate, acceleration)]  # the last body is at rest
    return {name: (float(x), float(y), float(z)) for name, x, y, z in zip("ABCD", *parts, strict=True)}


# -- table ----------------------------------------------------------------------------------------
MAKERS: dict[str, Callable[[bc.Mechanism, Sequence[str]], Any]] = {
    "Pinocchio lcaba, mu 1e-6": lambda m, cuts: Pinocchio(m, cuts, 1e-6, "lcaba"),
    "Pinocchio lcaba, mu 1e-3": lambda m, cuts: Pinocchio(m, cuts, 1e-3, "lcaba"),
    "Pinocchio constraintDynamics, mu 1e-3": lambda m, cuts: Pinocchio(m, cuts, 1e-3),
    "MuJoCo": MuJoCo,
    "MuJoCo, hard": lambda m, cuts: MuJoCo(m, cuts, hard=True),
}


def measure(peer: str, cells: int, cut: str) -> tuple[float, float, float, float]:
    """A ladder: seconds per call, error of arm 0, error of all joints, peak memory of building it."""
    truth = ladder_truth(cells)
    resource.setrlimit(resource.RLIMIT_AS, (int(MEMORY + 2e9),) * 2)
    MAKERS[peer](ladder(1), ladder_cuts(1, cut))  # the library itself shall not count
    before = resident()
    model = MAKERS[peer](ladder(cells), ladder_cuts(cells, cut))
    model.set(ladder_joints(cells, LADDER_Q), ladder_joints(cells, LADDER_U))
    found, expected = model.udot_by_joint(), ladder_joints(cells, truth)
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
    every = max(np.abs(found[name] - expected[name]).max() for name in found) / np.abs(truth).max()
    return best(model.call), float(np.abs(found["arm0"] / truth - 1.0).max()), float(every), peak - before


def main(sizes: Sequence[int]) -> None:
    truth = four_bar_truth()
    print("four-bar, crank at 90 degrees and 2 rad/s, joint D cut: time, error of accelerations to the largest")
    for name, make in MAKERS.items():
        peer = make(four_bar(), ["D"])
        peer.set(*({joint: x[i] for joint, x in truth.items()} for i in (0, 1)))
        error = max(abs(x[0] - truth[joint][2]) for joint, x in peer.udot_by_joint().items())
        print(f"  {name}: {time_text(best(peer.call))}, {error / max(abs(x[2]) for x in truth.values()):.0e}")
    print("\nladders: time of one forward dynamics, error of arm 0 / of all uncut joints, peak memory\n")
    print("| peer | cut | " + " | ".join(f"L = {n}" for n in sizes) + " |\n|---|---|" + "---|" * len(sizes))
    for cut in ("chain", "rail"):
        for name in MAKERS:
            cells, last, size = [], 0, 0.0
            for n in sizes:
                need = size * ((n + 1) / (last + 1)) ** 3  # as Pinocchio's data grows: look before building
                if "Pin" in name and size > 2e7 and need > MEMORY:
                    cells.append(f"needs {need / 1e9:.0f} GB")
                    continue
                with multiprocessing.get_context("spawn").Pool(1) as pool:  # a fresh process, to measure memory
                    seconds, arm, every, size = pool.apply(measure, (name, n, cut))
                last = n
                cells.append(f"{time_text(seconds)}, {arm:.0e} / {every:.0e}, {size / 1e6:.0f} MB")
            print(f"| {name} | {cut} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main([int(n) for n in sys.argv[1:]] or [1, 4, 16, 64, 256])
