"""Robots dropped on the floor that stand on servos, by both contact models, beside MuJoCo, in one run.

    python benchmarks/contact.py [--seconds 2] [--many 4096] [--only go2]

Go2 (URDF, all of its collision shapes), Cassie (SDF, its four loops closed; all collision shapes) and Talos (URDF, the
convex hulls of its feet) fall 2 cm and stand. A gripper of two parallelogram fingers (loops) holds a box by friction.
Rows: the largest overlap at any sample after the drop, how far contact points slip in the last half second, the
largest speed at the end, the largest loop error, and processor seconds per simulated second (second run, so that
nothing is compiled in it). MuJoCo gets the same bodies, joints and shapes as MJCF written by Bellcrank, servos as joint
springs and dampers, and the same step; its contacts are soft by its own defaults. It is not given Cassie and the
gripper, whose loops it would hold by soft constraints of other stiffness.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import bellcrank as bc

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


def measured(name: str, kind: str, seconds: float, made: Callable[[], Any]) -> None:
    parts = made()
    system = bc.compile(with_contacts(parts, {} if kind == "rigid" else SOFT))
    state = start(system, parts[1])
    how: dict[str, Any] = {"stepper": "moreau", "step": STEP} if kind == "rigid" else \
        {"stepper": "radau5", "rtol": 1e-4, "atol": 1e-6}
    system.simulate(state, 4 * STEP, output=STEP, **how)
    begun = time.process_time()
    result = system.simulate(state, seconds, output=0.01, **how)
    spent = (time.process_time() - begun) / seconds
    q, u = result["q"].values, result["u"].values
    found = bc.analyze.contacts(system, q, u).values()
    overlap = max(float(c.depth.max()) for c in found)
    last = np.concatenate([np.where(c.closed[-50:], c.slip_speed[-50:], 0.0) for c in found], axis=-1)
    closed = sum(int(c.closed[-1].sum()) for c in found)
    loops = float(result["loop_error"].values.max())
    print(f"{name:8} {kind:10} {closed:7} {1e3 * overlap:12.4f} {1e3 * 0.01 * last.sum(axis=0).max():12.5f} "
          f"{np.abs(u[-1]).max():11.2e} {loops:10.1e} {spent:10.3f}   {result.attrs['status']}"
          + (f", residual {result.attrs['contact_residual']:.0e}" if kind == "rigid" else ""), flush=True)


def lanes(many: int) -> None:
    """Go2 many times at once: the compliant model in lanes, by fixed steps."""
    parts = go2()
    system = bc.compile(with_contacts(parts, {**SOFT, "slip_speed": 1e-2}))
    q, _ = start(system, parts[1])
    rng = np.random.default_rng(0)
    qs = np.repeat(q[None], many, axis=0)
    qs[:, 6] += 0.01 * rng.random(many)
    us = np.zeros((many, system.nu))
    system.simulate((qs, us), 2e-3, stepper="rk4", step=5e-4, output=2e-3)
    begun = time.process_time()
    result = system.simulate((qs, us), 0.1, stepper="rk4", step=5e-4, output=0.1)
    spent = (time.process_time() - begun) / (0.1 * many)
    print(f"\n{many} Go2 at once, compliant, rk4 of 0.5 ms, 113 places each: {1e3 * spent:.2f} ms of processor per "
          f"simulated second and robot, {result.attrs['status']}")


# -- MuJoCo ---------------------------------------------------------------------------------------
def peer(name: str, seconds: float, made: Callable[[], Any]) -> None:
    try:
        import mujoco
    except ImportError:
        print("MuJoCo is not installed")
        return
    m, targets, feet = made()
    bare = bc.Mechanism(m.name)
    bare.__dict__.update({k: v for k, v in m.copy().__dict__.items() if k != "_joint_forces"}, _joint_forces={})
    bare.add_shape("ground", bc.Plane((10.0, 10.0)), role="collision", name="floor")
    with tempfile.TemporaryDirectory() as folder:
        bc.save(bare, Path(folder) / "robot.xml")
        model = mujoco.MjModel.from_xml_path(str(Path(folder) / "robot.xml"))
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    for joint, target in targets.items():
        j = model.joint(joint)
        stiffness, damping = next((f.along.stiffness, f.along.damping) for f in m.joint_forces if f.joint == joint)
        model.jnt_stiffness[j.id], model.dof_damping[j.dofadr] = stiffness, damping
        model.qpos_spring[j.qposadr] = data.qpos[j.qposadr] = target
    used = {s.name for s in m.shapes if s.role == "collision"} if feet == "all" else {
        s.name for f in feet for s in m.shapes_of(f) if s.role == "collision"}
    for i in range(model.ngeom):
        own, plane = model.geom(i).name, model.geom_type[i] == mujoco.mjtGeom.mjGEOM_PLANE
        model.geom_contype[i] = int(plane)
        model.geom_conaffinity[i] = int(plane or own in used)
        model.geom_friction[i, 0] = 0.8
    data.qpos[2] += 2.0
    mujoco.mj_forward(model, data)
    for _ in range(1000):  # lower it to where it just touches, then lift it
        if any(c.dist < 0 for c in data.contact):
            break
        data.qpos[2] -= 0.0025
        mujoco.mj_forward(model, data)
    data.qpos[2] += DROP
    overlap, slipped, steps = 0.0, 0.0, round(seconds / STEP)
    begun = time.process_time()
    mujoco.mj_step(model, data, steps)
    spent = (time.process_time() - begun) / seconds
    for _ in range(250):
        mujoco.mj_step(model, data)
        for k, contact in enumerate(data.contact):
            overlap = max(overlap, -contact.dist)
            slipped = max(slipped, _slip(mujoco, model, data, k))
    print(f"{name:8} {'MuJoCo':10} {len(data.contact):7} {1e3 * overlap:12.4f} {1e3 * 0.5 * slipped:12.5f} "
          f"{np.abs(data.qvel).max():11.2e} {'':>10} {spent:10.3f}   overlap and slip at rest", flush=True)


def _slip(mujoco: Any, model: Any, data: Any, k: int) -> float:
    """Speed of the two bodies against each other along the surface at a contact [m/s]."""
    contact, total = data.contact[k], np.zeros(3)
    for sign, geom in ((-1.0, contact.geom1), (1.0, contact.geom2)):
        jacobian = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, jacobian, None, contact.pos, int(model.geom_bodyid[geom]))
        total += sign * jacobian @ data.qvel
    normal = contact.frame[:3]
    return float(np.linalg.norm(total - normal * (normal @ total)))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--many", type=int, default=0)
    options.add_argument("--only", default="")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'':19} {'places':>7} {'overlap [mm]':>12} {'slip [mm]':>12} {'speed':>11} {'loops':>10} {'cpu s/s':>10}")
    for name, made in (("go2", go2), ("cassie", cassie), ("talos", talos), ("gripper", gripper)):
        if given.only and given.only != name:
            continue
        for kind in ("compliant", "rigid"):
            try:
                measured(name, kind, given.seconds, made)
            except bc.BellcrankError as error:
                print(f"{name:8} {kind:10} {error}")
        if name in ("go2", "talos"):
            peer(name, given.seconds, made)
    if given.many:
        lanes(given.many)


if __name__ == "__main__":
    main()
