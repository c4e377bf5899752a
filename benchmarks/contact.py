"""Robots dropped on the floor that stand on servos, by both contact models, beside MuJoCo, in one run.

    python benchmarks/contact.py [--seconds 2] [--many 4096] [--only go2] [--accuracy 1e-3] [--gpu 4096 16384]

Go2 (URDF, all of its collision shapes), Cassie (SDF, its four loops closed; all collision shapes) and Talos (URDF, the
convex hulls of its feet) fall 2 cm and stand. A gripper of two parallelogram fingers (loops) holds a box by friction.
MuJoCo gets the same bodies, joints, loops and shapes as MJCF written by Bellcrank, servos as joint springs and dampers,
the same state and the same step; its contacts and loops are soft by its own defaults. The same functions of Bellcrank
measure both, at samples every 10 ms: places closed at the end, the largest overlap, how far points of contact move in
the last half second, the largest rise of the energy (with what servos store) between samples, the largest loop error,
and processor seconds per simulated second of a run after the first, so that nothing is compiled in it.

Equal accuracy: the first half second, with the impact, by steps of 8 ms and down by halves; the longest one whose
coordinates [m, rad] differ nowhere by more than `--accuracy` from those of the same engine by steps of 1/32 ms.
`--gpu` runs so many of each at once on a GPU instead: `contact_gpu.py`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from contact_gpu import on_gpu

import bellcrank as bc
from bellcrank.mechanism.forces.motors import Servo

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
SOFT = {"stiffness": 2e4, "dissipation": 1.0, "slip_speed": 1e-3}
STEP = 2e-3
DROP = 0.02


def found(path: str) -> Path:
    """A model file, of example-robot-data or as `make models` fetches them."""
    from models import folders

    for package in ("genesis-world", "example-robot-data"):
        for folder in folders(package):
            for place in folder.rglob(Path(path).name):
                if str(place).endswith(path):
                    return place
    raise SystemExit(f"{path} is not here; make models, or install example-robot-data")


def robot(path: str, feet: list[str] | str, pose: dict[str, float], gains: tuple[float, float], **options: Any
          ) -> tuple[bc.Mechanism, dict[str, float], list[str] | str]:
    """A model file with servos that hold a pose, and what may touch the floor."""
    full = found(path)
    options = {k: full.parents[4] if v == "here" else v for k, v in options.items()}
    m = bc.load(full, **options)
    targets = {j.name: next((v for k, v in pose.items() if k in j.name), 0.0) for j in m.joints
               if isinstance(j.joint, bc.Revolute) and (path[-4:] == "urdf" or j.name.endswith("-op"))}
    for name, target in targets.items():
        m.add_servo(f"{name} servo", name, target=target, stiffness=gains[0], damping=gains[1])
    return m, targets, feet


def go2() -> Any:
    return robot("urdf/go2/urdf/go2.urdf", "all", {"thigh": 0.9, "calf": -1.8}, (150.0, 5.0),
                 floating_base=True)


def cassie() -> Any:
    return robot("robots/cassie_v2.sdf", "all", {"pitch-op": 0.2735, "foot-op": -1.3762},
                 (1000.0, 20.0), parallel=1e-5)


def talos() -> Any:
    return robot("talos_data/robots/talos_reduced.urdf", ["leg_left_6_link", "leg_right_6_link"],
                 {"_3_joint": -0.4, "_4_joint": 0.8, "_5_joint": -0.4}, (3000.0, 60.0), floating_base=True,
                 packages="here")


def gripper() -> Any:
    """Two fingers, each a parallelogram, pushed against a box that hangs in the air by friction alone."""
    m = bc.Mechanism("gripper")
    box = m.add_body("box", bc.Inertia(0.2, (0, 0, 0), (2e-4, 2e-4, 2e-4)))
    m.add_joint("free", bc.Free(), m.ground, box)
    m.add_shape(box, bc.Box((0.08, 0.08, 0.08)), role="collision", name="box")
    for side, name in ((-1.0, "left"), (1.0, "right")):
        rods = [m.add_body(f"{name} rod {i}", bc.Inertia(0.05, (0, 0, -0.05), (5e-5, 5e-5, 1e-5))) for i in (0, 1)]
        pad = m.add_body(f"{name} pad", bc.Inertia(0.05, (0, 0, 0), (5e-5, 5e-5, 5e-5)))
        for i, rod in enumerate(rods):
            at = side * (0.04 + 0.04 * i)
            m.add_joint(f"{name} {i}", bc.Revolute("y"), m.ground, rod, bc.Pose((at, 0, 0.1)))
            m.add_joint(f"{name} pin {i}", bc.Revolute("y"), rod, pad, bc.Pose((0, 0, -0.1)),
                        bc.Pose((side * (0.04 * i - 0.02), 0, 0)))
        m.add_shape(pad, bc.Box((0.04, 0.04, 0.04)), role="collision", name=f"{name} pad")
        m.add_servo(f"{name} servo", f"{name} 0", target=side * 0.2, stiffness=5.0, damping=0.05)
    return m, {}, ["left pad", "right pad"]


# -- Bellcrank ------------------------------------------------------------------------------------
def with_contacts(made: Any, kind: dict[str, float]) -> bc.Mechanism:
    m, _, feet = made
    other: Any = ["box"] if m.name == "gripper" else bc.Plane()
    m.add_contacts(feet, other, friction=0.8, **kind)
    return m


def start(system: bc.System, targets: dict[str, float]) -> Any:
    """The pose held by the servos, `DROP` above the floor."""
    if "box" in system.body_names:
        return system.assemble()
    state = system.assemble(q={k: v for k, v in targets.items() if k in system.joint_names})
    q = state.q.copy()
    depth = max(float(c.depth.max()) for c in bc.analyze.contacts(system, q, state.u).values())
    q[system.coordinate_names.index(next(n for n in system.coordinate_names if n.endswith(".z")))] += depth + DROP
    return q, state.u


class Samples(NamedTuple):
    """What an engine found, every 10 ms."""

    q: np.ndarray
    energy: np.ndarray
    spent: float  #: processor seconds per simulated second
    note: str


def how(kind: str, step: float) -> dict[str, Any]:
    return {"stepper": "moreau", "step": step} if kind == "rigid" else {"stepper": "radau5", "rtol": 1e-4, "atol": 1e-6}


def by_bellcrank(kind: str, system: bc.System, state: Any, seconds: float, step: float) -> Samples:
    system.simulate(state, max(0.01, 4 * step), output=0.01, **how(kind, step))
    begun = time.process_time()
    result = system.simulate(state, seconds, output=0.01, **how(kind, step))
    spent = (time.process_time() - begun) / seconds
    note = result.attrs["status"] + (f", residual {result.attrs['contact_residual']:.0e}" if kind == "rigid" else "")
    q, held = result["q"].values, 0.0  # servos store nothing by their own account: they could be anything
    for servo in (f for f in system.model.mechanism.joint_forces if isinstance(f.along, Servo)):
        away = q[:, system.coordinate_names.index(f"{servo.joint}.angle")] - servo.along.target
        held = held + 0.5 * servo.along.stiffness * away * away
    return Samples(q, result["energy"].values + held, spent, note)


def tell(name: str, kind: str, system: bc.System, found: Samples) -> None:
    """One row."""
    contacts = list(bc.analyze.contacts(system, found.q, np.zeros((len(found.q), system.nu))).values())
    overlap = max(float(c.depth.max()) for c in contacts)
    closed = sum(int(c.closed[-1].sum()) for c in contacts)
    moved = [np.linalg.norm(c.point[-1] - c.point[-50], axis=-1)[c.closed[-1] & c.closed[-50]] for c in contacts]
    slip = max(np.concatenate(moved), default=0.0)
    loops = float(np.abs(system.loop_error(found.q)).max(initial=0.0)) if system.loops else 0.0
    print(f"{name:8} {kind:10} {closed:7} {1e3 * overlap:12.5f} {1e3 * slip:12.6f} {np.diff(found.energy).max():12.2e} "
          f"{loops:10.1e} {found.spent:10.4f}   {found.note}", flush=True)


def sharpened(run: Callable[[float], Samples], accuracy: float) -> str:
    """The longest step with this accuracy, and what it costs."""
    fine = run(2.0**-5 * 1e-3).q
    for k in range(8):
        step = 8e-3 / 2**k
        if 0.01 % step > 1e-9 and abs(0.01 % step - step) > 1e-9:
            step = 0.01 / round(0.01 / step)  # samples fall on steps
        found = run(step)
        if len(found.q) == len(fine) and np.abs(found.q - fine).max() <= accuracy:
            return f"step {1e3 * step:.4g} ms: {found.spent:.4f} cpu s/s"
    return "no step is short enough"


def lanes(many: int) -> None:
    """Go2 many times at once, each by itself from another height and speed, in lanes."""
    for kind in ("rigid", "compliant"):
        parts = go2()
        system = bc.compile(with_contacts(parts, {} if kind == "rigid" else {**SOFT, "slip_speed": 1e-2}))
        q, _ = start(system, parts[1])
        rng = np.random.default_rng(0)
        qs = np.repeat(q[None], many, axis=0)
        qs[:, 6] += 0.01 * rng.random(many)
        us = 0.1 * rng.standard_normal((many, system.nu))
        stepper, step = ("moreau", STEP) if kind == "rigid" else ("rk4", 5e-4)
        system.simulate((qs, us), 4e-3, stepper=stepper, step=step, output=4e-3)
        begun = time.process_time()
        result = system.simulate((qs, us), 0.2, stepper=stepper, step=step, output=0.2)
        spent = (time.process_time() - begun) / (0.2 * many)
        print(f"{many} Go2 at once, {kind}, {stepper} of {1e3 * step:g} ms: {1e3 * spent:.2f} ms of processor per "
              f"simulated second and robot, {result.attrs['status']}", flush=True)


# -- MuJoCo ---------------------------------------------------------------------------------------
class Peer:
    """The same machine in MuJoCo."""

    def __init__(self, made: Any, system: bc.System, state: Any) -> None:
        import mujoco

        self.mujoco, self.system = mujoco, system
        m, _, feet = made
        bare = bc.Mechanism(m.name)
        bare.__dict__.update({k: v for k, v in m.copy().__dict__.items() if k not in ("_joint_forces", "_contacts")},
                             _joint_forces={}, _contacts={})
        if m.name != "gripper":
            bare.add_shape("ground", bc.Plane((10.0, 10.0)), role="collision", name="floor")
        with tempfile.TemporaryDirectory() as folder:
            bc.save(bare, Path(folder) / "robot.xml")
            self.model = model = mujoco.MjModel.from_xml_path(str(Path(folder) / "robot.xml"))
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT  # these runs have none
        for force in m.joint_forces:
            j = model.joint(force.joint)
            law = {name: getattr(force.along, name, 0.0) or 0.0 for name in
                   ("stiffness", "damping", "viscous", "coulomb", "target", "rest")}
            model.dof_damping[j.dofadr] += law["damping"] + law["viscous"]
            model.dof_frictionloss[j.dofadr] += law["coulomb"]
            if law["stiffness"]:
                model.jnt_stiffness[j.id] = law["stiffness"]
                model.qpos_spring[j.qposadr] = law["target"] + law["rest"]
        self._touching(m, feet)
        self.places = [self._place(name) for name in system.coordinate_names]
        self.shift = model.qpos0[self.places] - system.neutral()  # free joints have their position in the world there
        self.first = np.asarray(state[0], dtype=float) + self.shift

    def _touching(self, m: bc.Mechanism, feet: Any) -> None:
        """What may touch: one kind of shapes with the other."""
        model = self.model
        used = {s.name for s in m.shapes if s.role == "collision"} if feet == "all" else {
            s.name for f in feet for s in m.shapes_of(f.removesuffix(" pad") + " pad" if m.name == "gripper" else f)
            if s.role == "collision"}
        for i in range(model.ngeom):
            own, plane = model.geom(i).name, model.geom_type[i] == self.mujoco.mjtGeom.mjGEOM_PLANE
            other = own == "box" if m.name == "gripper" else plane
            model.geom_contype[i] = int(other)
            model.geom_conaffinity[i] = int(other or own in used)
            model.geom_friction[i, 0] = 0.8

    def _place(self, coordinate: str) -> int:
        """Where MuJoCo has a coordinate: of free joints positions come first there."""
        joint, _, label = coordinate.rpartition(".")
        at = int(self.model.joint(joint).qposadr[0])
        order = ("x", "y", "z", "qw", "qx", "qy", "qz")
        return at + (order.index(label) if label in order else 0)

    def __call__(self, seconds: float, step: float) -> Samples:
        mujoco, model = self.mujoco, self.model
        model.opt.timestep = step
        data = mujoco.MjData(model)
        data.qpos[self.places] = self.first
        mujoco.mj_forward(model, data)
        rows, energies, spent = [data.qpos[self.places] - self.shift], [data.energy.sum()], 0.0
        for _ in range(round(seconds / 0.01)):
            begun = time.process_time()
            mujoco.mj_step(model, data, round(0.01 / step))
            spent += time.process_time() - begun
            rows.append(data.qpos[self.places] - self.shift)
            energies.append(data.energy.sum())
        lost = data.time < seconds - 2 * step  # it begins anew where accelerations are not finite
        return Samples(np.array(rows), np.array(energies), spent / seconds,
                       "unstable: it has begun anew" if lost else "finished")


MACHINES: dict[str, Callable[[], Any]] = {"go2": go2, "cassie": cassie, "talos": talos, "gripper": gripper}


def rigid(made: Callable[[], Any]) -> tuple[bc.Mechanism, Callable[[bc.System], Any]]:
    """A machine with rigid contacts, and what gives its first state."""
    parts = made()
    return with_contacts(parts, {}), partial(start, targets=parts[1])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--many", type=int, default=0)
    options.add_argument("--only", default="")
    options.add_argument("--accuracy", type=float, default=0.0)
    options.add_argument("--gpu", type=int, nargs="*", default=[])
    given = options.parse_args()
    warnings.simplefilter("ignore")
    if given.gpu:
        on_gpu({name: partial(rigid, made) for name, made in MACHINES.items() if given.only in ("", name)}, given.gpu,
               STEP)
        return
    print(f"{'':19} {'places':>7} {'overlap [mm]':>12} {'slip [mm]':>12} {'rise [J]':>12} {'loops':>10} "
          f"{'cpu s/s':>10}")
    for name, made in MACHINES.items():
        if given.only and given.only != name:
            continue
        runs: dict[str, Callable[[float, float], Samples]] = {}
        for kind in ("rigid", "compliant"):
            parts = made()
            system = bc.compile(with_contacts(parts, {} if kind == "rigid" else SOFT))
            state = start(system, parts[1])
            runs[kind] = partial(by_bellcrank, kind, system, state)
            tell(name, kind, system, runs[kind](given.seconds, STEP))
        if find_spec("mujoco"):
            runs["MuJoCo"] = Peer(made(), system, state)
            tell(name, "MuJoCo", system, runs["MuJoCo"](given.seconds, STEP))
        for kind in ("rigid", "MuJoCo") if given.accuracy else ():
            if kind in runs:
                print(f"         {kind:10} to {given.accuracy:g}: "
                      f"{sharpened(partial(runs[kind], 0.5), given.accuracy)}", flush=True)
    if given.many:
        lanes(given.many)


if __name__ == "__main__":
    main()
