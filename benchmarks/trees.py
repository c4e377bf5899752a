"""Tree dynamics beside Pinocchio and MuJoCo, measured in one run on one machine.

    python benchmarks/trees.py [--quick] [--json FILE]

For every machine: forward and inverse dynamics, one state and a batch. All times are the best of several
repetitions, peers and Bellcrank interleaved. Every result is compared with Pinocchio's (or with the inverse
function where Pinocchio's memory does not reach) before it is timed.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from timing import best, resident, time_text

import bellcrank as bc
from bellcrank.examples.chains import random_chain

BATCH = 4096


# -- machines -------------------------------------------------------------------------------------
def robots_folder() -> Path | None:
    """The robots of the package example-robot-data, if it is installed."""
    import sysconfig

    for key in ("purelib", "platlib"):
        place = Path(sysconfig.get_paths()[key]) / "cmeel.prefix/share/example-robot-data/robots"
        if place.is_dir():
            return place
    return None


def pin_chain(n: int) -> Any:
    """The random chain as a Pinocchio model."""
    import pinocchio as pin

    model, parent = pin.Model(), 0
    mechanism = random_chain(n)
    for record, body in zip(mechanism.joints, mechanism.bodies, strict=True):
        joint = pin.JointModelRevoluteUnaligned(np.array(record.joint.axis))
        pose = record.parent_pose
        parent = model.addJoint(parent, joint, pin.SE3(pose.rotation, np.array(pose.position)), record.name)
        i = body.inertia
        xx, xy, xz, yy, yz, zz = i.inertia
        about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        model.appendBodyToJoint(parent, pin.Inertia(i.mass, np.array(i.com), about), pin.SE3.Identity())
    return model


def mujoco_chain(n: int) -> Any:
    """The random chain as a MuJoCo model."""
    import mujoco

    spec = mujoco.MjSpec()
    spec.option.disableflags = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    mechanism = random_chain(n)
    parent = spec.worldbody
    for record, body in zip(mechanism.joints, mechanism.bodies, strict=True):
        i, pose = body.inertia, record.parent_pose
        turn = np.zeros(4)
        mujoco.mju_mat2Quat(turn, pose.rotation.ravel())
        xx, xy, xz, yy, yz, zz = i.inertia
        parent = parent.add_body(pos=pose.position, quat=turn, mass=i.mass, ipos=i.com, explicitinertial=True,
                                 fullinertia=[xx, yy, zz, xy, xz, yz])
        parent.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=record.joint.axis)
    return spec.compile()


# -- one machine ----------------------------------------------------------------------------------
class Case:
    """A machine in all libraries, with states that mean the same in each."""

    def __init__(self, name: str, mechanism: bc.Mechanism, pin_model: Any, mujoco_model: Any) -> None:
        self.name, self.mechanism, self.pin_model, self.mujoco_model = name, mechanism, pin_model, mujoco_model

    def peer_times(self) -> dict[str, float]:
        out: dict[str, float] = {}
        rng = np.random.default_rng(1)
        if self.pin_model is not None:
            import pinocchio as pin

            model, data = self.pin_model, self.pin_model.createData()
            q = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
            v, tau = rng.normal(size=model.nv), rng.normal(size=model.nv)
            out["pin fd"] = best(lambda: pin.aba(model, data, q, v, tau))
            out["pin id"] = best(lambda: pin.rnea(model, data, q, v, tau))
        if self.mujoco_model is not None:
            import mujoco

            model = self.mujoco_model
            data = mujoco.MjData(model)
            data.qvel[:] = rng.normal(size=model.nv)
            data.qfrc_applied[:] = rng.normal(size=model.nv)
            out["mujoco fd"] = best(lambda: mujoco.mj_forward(model, data))
            out["mujoco id"] = best(lambda: mujoco.mj_inverse(model, data))
        return out

    def agreement(self, system: bc.System) -> float:
        """Largest relative difference to Pinocchio, or of forward after inverse dynamics."""
        rng = np.random.default_rng(2)
        q, u = system.random_state(rng)
        tau = rng.normal(size=system.nu)
        if self.pin_model is None:
            udot = system.forward_dynamics(q, u, tau)
            back = system.inverse_dynamics(q, u, udot)
            return float(np.abs(back - tau).max() / np.abs(system.bias(q, u)).max())
        import pinocchio as pin

        expected = pin.aba(self.pin_model, self.pin_model.createData(), *pin_state(self.pin_model, system, q, u, tau))
        order = pin_order(self.pin_model, system)
        mine = system.forward_dynamics(q, u, tau)[order]
        return float(np.abs(mine - expected).max() / np.abs(expected).max())


def pin_order(model: Any, system: bc.System) -> list[int]:
    """For each of Pinocchio's speeds, the index of ours (their free joints list the linear part first)."""
    starts, at = {}, 0
    for record in system.model.mechanism.joints:
        starts[record.name] = at
        at += record.joint.nu
    order = []
    for name, joint in zip(list(model.names)[1:], list(model.joints)[1:], strict=True):
        start = starts[name]
        order += [start + 3, start + 4, start + 5, start, start + 1, start + 2] if joint.nv == 6 else \
            list(range(start, start + joint.nv))
    return order


def pin_state(model: Any, system: bc.System, q: Any, u: Any, tau: Any) -> tuple[Any, Any, Any]:
    """A state in Pinocchio's coordinates."""
    order = pin_order(model, system)
    starts, at = {}, 0
    for record in system.model.mechanism.joints:
        starts[record.name] = at
        at += record.joint.nq
    parts = []
    for name, joint in zip(list(model.names)[1:], list(model.joints)[1:], strict=True):
        s = starts[name]
        if joint.nv == 6:
            parts.append([*q[s + 4:s + 7], *q[s + 1:s + 4], q[s]])
        elif joint.nq == 2:
            parts.append([np.cos(q[s]), np.sin(q[s])])
        else:
            parts.append(list(q[s:s + joint.nq]))
    return np.concatenate(parts), u[order], tau[order]


def measure(case: Case) -> dict[str, Any]:
    """All columns of one machine."""
    peers = case.peer_times()
    row: dict[str, Any] = {"machine": case.name, **peers}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BELLCRANK_CACHE"] = folder
        compile_time(bc.load("pendulum"))  # loads the library and LLVM, which is no machine's time
        row["compile cold"], row["compile warm"] = compile_time(case.mechanism), compile_time(case.mechanism)
        gc.collect()
        before = resident()
        system = bc.compile(case.mechanism, threads=1)
        rng = np.random.default_rng(3)
        q, u = system.random_state(rng)
        tau = rng.normal(size=system.nu)
        system.bind("forward_dynamics", q, u, tau)()
        row["memory MB"] = (resident() - before) / 1e6
        row["nu"], row["error"] = system.nu, case.agreement(system)
        n = max(1, min(BATCH, 4_000_000 // system.nu))
        batch_q, batch_u = system.random_state(rng, n)
        batch_tau = rng.normal(size=(n, system.nu))
        for short, name in (("fd", "forward_dynamics"), ("id", "inverse_dynamics")):
            function = getattr(system, name)
            row[f"call {short}"] = best(lambda f=function: f(q, u, tau))
            row[f"bound {short}"] = best(system.bind(name, q, u, tau))
            row[f"scalar {short}"] = scalar_batch(system, name, batch_q, batch_u, batch_tau) / n
            row[f"batch {short}"] = best(lambda f=function: f(batch_q, batch_u, batch_tau)) / n
            row[f"ops {short}"] = system.operation_count(name).total
        # once more, so that a busy moment of the machine does not favour either side
        for key, again in case.peer_times().items():
            row[key] = min(row[key], again)
    return row


def scalar_batch(system: bc.System, name: str, q: Any, u: Any, tau: Any) -> float:
    """The batch without SIMD lanes: one state after another in compiled code."""
    run = system.kernels.evaluator
    kernel = run.kernel(system.kernels.functions[name], False, 1)
    out = np.empty((len(q), kernel.out_size))
    return best(lambda: kernel.run([q, u, tau], kernel.packed_strides, out, 0, len(q)))


def compile_time(mechanism: bc.Mechanism) -> float:
    """Seconds from the description to the first result of forward dynamics."""
    gc.collect()
    start = time.perf_counter()
    system = bc.compile(mechanism, threads=1)
    q = system.neutral()
    system.forward_dynamics(q, np.zeros(system.nu))
    return time.perf_counter() - start


def robot_cases() -> list[Callable[[], Case]]:
    folder = robots_folder()
    if folder is None:
        print("example-robot-data is not installed: robots are left out", file=sys.stderr)
        return []

    def make(label: str, path: str, floating: bool, lock: tuple[str, ...] = ()) -> Case:
        import pinocchio as pin

        from bellcrank.io import read_urdf

        file = str(folder / path)
        mechanism, _ = read_urdf(file, floating_base=floating, mimic="free")
        model = pin.buildModelFromUrdf(file, pin.JointModelFreeFlyer()) if floating else pin.buildModelFromUrdf(file)
        if lock:
            model = pin.buildReducedModel(model, [model.getJointId(j) for j in lock], pin.neutral(model))
            mechanism = welded(mechanism, lock)
        return Case(label, mechanism, model, mujoco_urdf(file, floating, lock))

    return [lambda: make("Franka Panda, 7 hinges", "panda_description/urdf/panda.urdf", False,
                         ("panda_finger_joint1", "panda_finger_joint2")),
            lambda: make("Solo 12, floating quadruped", "solo_description/robots/solo12.urdf", True),
            lambda: make("Talos, floating humanoid", "talos_data/robots/talos_reduced.urdf", True)]


def welded(mechanism: bc.Mechanism, joints: tuple[str, ...]) -> bc.Mechanism:
    """The same machine with some joints welded at zero."""
    copy = bc.Mechanism(mechanism.name, mechanism.gravity)
    for body in mechanism.bodies:
        copy.add_body(body.name, body.inertia)
    bodies = (copy.ground, *copy.bodies)
    for r in mechanism.joints:
        copy.add_joint(r.name, bc.Weld() if r.name in joints else r.joint, bodies[r.parent], bodies[r.child],
                       r.parent_pose, r.child_pose)
    return copy


def mujoco_urdf(path: str, floating: bool, lock: tuple[str, ...]) -> Any:
    """A URDF without its meshes as a MuJoCo model, or None."""
    import re
    import xml.etree.ElementTree as ElementTree

    import mujoco

    tree = ElementTree.parse(path)
    root = tree.getroot()
    for link in root.iter("link"):
        for part in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(part)
    for joint in root.iter("joint"):
        if joint.get("name") in lock:
            joint.set("type", "fixed")
    root.insert(0, ElementTree.fromstring(
        '<mujoco><compiler balanceinertia="true" boundmass="1e-9" boundinertia="1e-12"/></mujoco>'))
    text = ElementTree.tostring(root, encoding="unicode")
    try:
        spec = mujoco.MjSpec.from_string(re.sub(r"xmlns:\w+=\S+", "", text))
        if floating:
            spec.worldbody.first_body().add_freejoint()
        spec.option.disableflags = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        return spec.compile()
    except Exception as error:
        print(f"MuJoCo: {Path(path).name}: {error}", file=sys.stderr)
        return None


def chain_case(n: int) -> Case:
    # peers as far as their memory and patience go: Pinocchio's data grows faster than linearly
    peer = n <= 300 or (n == 1000 and os.environ.get("BELLCRANK_BENCH_PIN_1000") == "1")
    return Case(f"random chain, {n} hinges", random_chain(n), pin_chain(n) if peer else None,
                mujoco_chain(n) if n <= 300 else None)


# -- table ----------------------------------------------------------------------------------------
def print_table(rows: list[dict[str, Any]]) -> None:
    columns = ["machine", "what", "pin.aba/rnea", "MuJoCo", "call", "bound", "no lanes", f"in batch of {BATCH}",
               "operations", "x pin: call", "bound", "no lanes", "batch", "error"]
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        for short, label in (("fd", "forward"), ("id", "inverse")):
            pin = row.get(f"pin {short}")
            kinds = ("call", "bound", "scalar", "batch")
            ratios = ["-" if pin is None else f"{pin / row[f'{k} {short}']:.1f}" for k in kinds]
            cells = [row["machine"], label, time_text(pin), time_text(row.get(f"mujoco {short}")),
                     *(time_text(row[f"{k} {short}"]) for k in kinds), str(row[f"ops {short}"]), *ratios,
                     f"{row['error']:.0e}"]
            print("| " + " | ".join(cells) + " |")
    print("\n| machine | compile cold | from cache | time per body (one state) | memory of the system | per body |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['machine']} | {time_text(row['compile cold'])} | {time_text(row['compile warm'])} "
              f"| {row['bound fd'] / row['nu'] * 1e9:.0f} ns | {row['memory MB']:.1f} MB "
              f"| {row['memory MB'] * 1e3 / row['nu']:.1f} kB |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="robots and chains up to 100 bodies only")
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="FILE", help="write the measurements to a file")
    options = parser.parse_args()
    sizes = (10, 30, 100) if options.quick else (10, 30, 100, 300, 1000, 10_000, 100_000)
    makers = [*robot_cases(), *(lambda n=n: chain_case(n) for n in sizes)]
    if options.only is not None:  # one machine in its own process, so that memory is its own
        print(json.dumps(measure(makers[options.only]())))
        return
    rows = []
    for i in range(len(makers)):
        command = [sys.executable, __file__, "--only", str(i), *(["--quick"] if options.quick else [])]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            raise SystemExit(f"machine {i} failed")
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(f"{rows[-1]['machine']}: done", file=sys.stderr)
    import importlib.metadata as metadata

    versions = f"bellcrank {bc.__version__}, " + ", ".join(
        f"{p} {metadata.version(p)}" for p in ("numpy", "llvmlite", "pin", "mujoco"))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}")
    print_table(rows)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
