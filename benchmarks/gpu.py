"""Batches on one GPU (backend="cuda"): forward dynamics and whole steps per second, beside peers' figures.

    python benchmarks/gpu.py [--check] [--only MACHINE ...] [--single] [--json FILE]

How to read it. **dynamics/s**: forward dynamics of a batch that lies on the device, arrays in Fortran's order, the
best of several launches. **steps/s**: `bc.rollout`, classical Runge-Kutta, 100 steps of 1 ms a call, loops closed
after every step. **error**: against the code for the CPU, relative to the largest number; of steps after 100 of them.
**loop**, **energy**: the largest loop error [m, rad], and the change of energy over the largest kinetic energy (with
dampers: beside steps of a tenth on the CPU), after 1000 steps of 256 states (with 20 speeds and more at most 100, with
100 and more 20). **registers / local / shared**: of a thread, in bytes the last two (local: what is spilled, and what
tables of sines need); **occupancy**: of the threads that the device could hold, those that run at once. **memory**,
**arithmetic**: parts of what a copy on the device moves in a second, and of the multiplications with additions that
its units for doubles (floats) can do, that are reached; operations are counted as in the source.

Peers, measured on one H200: MuJoCo Warp 4.0 (single precision, soft loops): Panda 4.4e7 steps/s, four-bar 7.1e7,
Stewart platform 2.3e7 forward dynamics/s, 2.1e7 steps/s. Newton 1.7 Kamino: four-bar 2.1e6 steps/s, loop error 7e-7 m.

``--check`` compares functions and motions with the code for the CPU, and times nothing; it ends with an error if one
is off.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import gpu_checks  # isort: skip
import models  # isort: skip

import bellcrank as bc

Array = Any
STEP = 1e-3
#: steps and forward dynamics per second of peers
PEERS = {"Panda": "MuJoCo Warp 4.4e7 steps", "four-bar": "MuJoCo Warp 7.1e7 steps, Kamino 2.1e6",
         "Stewart": "MuJoCo Warp 2.1e7 steps, 2.3e7 dynamics"}


@dataclass(frozen=True)
class Case:
    """A machine: how it is made, options of `compile`, and states of a batch for dynamics and for steps."""

    make: Callable[[], bc.Mechanism]
    options: Mapping[str, Any] = field(default_factory=dict)
    dynamics: int = 1 << 22
    steps: int = 1 << 20
    speed: float = 1.0
    #: of the forces during steps, and how long motions are whose energy is looked at: every plan of loops that motions
    #: come to need is another kernel, seconds of compiling, and no speed of steps
    push: float = 1.0
    long: int = 1000
    #: whether motions begin at a general position: the neutral one of some machines is nearly singular
    general: bool = False
    step: float = STEP
    lossless: bool = True


def panda() -> bc.Mechanism:
    return bc.load(models.find("example-robot-data", "panda.urdf"))


def cassie() -> bc.Mechanism:
    return bc.load(models.find("example-robot-data", "cassie_v2.sdf"), parallel=1e-5)


def flexible() -> bc.Mechanism:
    """A four-bar whose coupler bends."""
    m = bc.Mechanism("flexible four-bar", gravity=(0, -9.81, 0))
    m.add_body("crank", bc.Inertia.rod(1.5, (0, 0, 0), (0.3, 0, 0)))
    m.add_body("rod", bc.FlexibleBody.beam(1.0, bc.BeamSection(4e6, 120.0, 120.0, 120.0, 0.8, 1e-6), elements=8,
                                           modes={"y": 2}, support="pinned", stiffening=True))
    m.add_body("rocker", bc.Inertia.rod(2.0, (0, 0, 0), (0.6, 0, 0)))
    m.add_joint("A", bc.Revolute("z"), m.ground, "crank")
    m.add_joint("B", bc.Revolute("z"), "crank", "rod", parent_pose=bc.Pose((0.3, 0, 0)))
    m.add_joint("D", bc.Revolute("z"), m.ground, "rocker", parent_pose=bc.Pose((1.0, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), "rod.tip", "rocker", child_pose=bc.Pose((0.6, 0, 0)))
    return m


def laws() -> bc.Mechanism:
    """A four-bar with a force by a table, of a state of its own."""
    table = bc.Table([-4.0, -1.0, 0.0, 1.0, 4.0], [3.0, -2.0, 0.0, 5.0, 1.0], kind="akima", extrapolate="linear")
    m = bc.load("four_bar")
    m.add_joint_force("law", "B", lambda at: table(at.q("A")) - 2.0 * at.state("lag"))
    m.add_state("lag", lambda at: at.u("C") - at.state("lag"))
    return m


def balls() -> bc.Mechanism:
    """Two balls on a floor, and on each other, with compliant contacts and friction."""
    m = bc.Mechanism("balls")
    for i, name in enumerate(("lower", "upper")):
        m.add_body(name, bc.Inertia(1.0, (0, 0, 0), (0.004, 0.004, 0.004)))
        m.add_joint(f"free {name}", bc.Free(), m.ground, name, parent_pose=bc.Pose((0.01 * i, 0, 0.099 + 0.199 * i)))
        m.add_shape(name, bc.Sphere(0.1), role="collision")
    m.add_shape(m.ground, bc.Plane(), role="collision")
    soft = {"stiffness": 1e5, "dissipation": 0.5, "friction": 0.4, "slip_speed": 0.05}
    m.add_contact("floor", m.ground, "lower", **soft)
    m.add_contact("touch", "lower", "upper", **soft)
    return m


def example(name: str, **options: Any) -> Callable[[], bc.Mechanism]:
    return lambda: bc.load(name, **options)


CASES = {
    "four-bar": Case(example("four_bar"), {}, 1 << 23), "five-bar": Case(example("five_bar")),
    "jansen": Case(example("jansen")), "Panda": Case(panda),
    "quarter car": Case(example("quarter_car"), {}, 1 << 21, 1 << 18, lossless=False),
    "quadruped": Case(example("quadruped"), {}, 1 << 21, 1 << 18),
    "linkage legs": Case(example("linkage_quadruped"), {}, 1 << 20, 1 << 17, 0.1, 0.05, 100),
    "delta": Case(example("delta"), {}, 1 << 20, 1 << 17, 0.1, 0.05, 100),
    "Stewart": Case(example("stewart"), {}, 1 << 20, 1 << 17),
    "Cassie": Case(cassie, {"schedule": "unrolled"}, 1 << 20, 1 << 17, 0.1, 0.05, 50, True, lossless=False),
    "flexible four-bar": Case(flexible, {}, 1 << 22, 1 << 19, 0.3),
    "ladder 64": Case(example("ladder", cells=64), {}, 4096, 4096), "chain 1000": Case(example("chain", n=1000), {},
                                                                                       4096, 4096, 0.1),
}
#: looked at by ``--check`` alone
MORE = {"laws and tables": Case(laws, {}, 1 << 12, 1 << 12),
        "contact": Case(balls, {}, 1 << 12, 1 << 12, 0.3, 0.05, 100, False, 1e-4)}


class Machine:
    """A machine for the CPU and for the GPU, with states along a motion."""

    def __init__(self, name: str, precision: str) -> None:
        self.case, self.name, self.precision = (CASES | MORE)[name], name, precision
        self.step = self.case.step
        mechanism = self.case.make()
        options = dict(self.case.options)
        if name == "Cassie":
            options["cut"] = [r.name for r in mechanism.joints if isinstance(r.joint, bc.Spherical)]
        self.cpu = bc.compile(mechanism, **options)
        self.gpu = bc.compile(mechanism, backend="cuda", precision=precision, **options)
        self.kind = np.float64 if precision == "double" else np.float32
        rng = np.random.default_rng(0)
        if self.cpu.loops:
            near = self.cpu.plans.reference().q if self.case.general else None
            start = self.cpu.assemble(near, u=self.case.speed * rng.normal(size=self.cpu.nu))
        elif name in MORE:
            start = bc.State(self.cpu.neutral(), self.case.speed * rng.normal(size=self.cpu.nu), 0.0)
        else:
            q, u = self.cpu.random_state(rng)
            start = bc.State(q, self.case.speed * u, 0.0)
        self.start = start
        large = self.cpu.nu > 100
        along = None if large else self.cpu.simulate(start, 63 * self.step, step=self.step, output=self.step)
        self.q = start.q[None] if along is None else along.q.values
        self.u = start.u[None] if along is None else along.u.values
        self.tau = rng.normal(size=(len(self.q), self.cpu.nu))

    def states(self, count: int) -> tuple[Array, Array, Array]:
        """So many, on the CPU."""
        some = np.arange(count) % len(self.q)
        return self.q[some], self.u[some], self.tau[some]

    def there(self, *arrays: Array) -> list[Array]:
        import cupy

        return [cupy.asarray(a.astype(self.kind), order="F") for a in arrays]

    # -- forward dynamics ---------------------------------------------------------------------------
    def dynamics(self) -> dict[str, Any]:
        """Rate, error and resources of forward dynamics."""
        import cupy

        n = self.case.dynamics
        arrays = self.there(*self.states(n))
        begun = time.perf_counter()
        made = self.gpu.forward_dynamics(*arrays)
        compiled = time.perf_counter() - begun
        few = self.states(min(n, 256))
        error = gap(cupy.asnumpy(made[:len(few[0])]), self.cpu.forward_dynamics(*few))
        gpu, q = self.gpu, few[0][0]
        run = gpu.kernels.planned(gpu.plans.first(q, 0.0)) if gpu.loops else gpu.kernels.evaluator
        kernel = run.kernel(gpu.kernels.functions["forward_dynamics"], False, run.backend.lanes())
        read = {"q": arrays[0], "u": arrays[1], "tau": arrays[2], "t": cupy.zeros((1, 1), self.kind)}
        listed = [read[name] for name in kernel.inputs]
        seconds = best(lambda: kernel.start(listed, made, n))
        moved = made.nbytes + sum(a.nbytes for a in listed)
        operations = self.cpu.operation_count().total
        return {"rate": n / seconds, "error": error, "compiled": compiled, "memory": moved / seconds / copy_rate(),
                "arithmetic": operations * n / seconds / 2.0 / fused_rate(self.precision),
                **kernel.function.resources(64)}

    # -- steps --------------------------------------------------------------------------------------
    def steps(self) -> dict[str, Any]:
        """Rate, errors and resources of whole steps."""
        import cupy

        n, many = self.case.steps, 100 if self.cpu.nu < 100 else 5
        q, u, tau = self.states(n)
        begun = time.perf_counter()
        motion = bc.rollout(self.gpu, (q, u), self.step)
        motion.step(self.case.push * tau, 1)
        compiled = time.perf_counter() - begun
        seconds = []
        for _ in range(3 if self.case.long > 100 else 1):
            cupy.cuda.Device().synchronize()
            begun = time.perf_counter()
            motion.step(steps=many)
            seconds.append(time.perf_counter() - begun)
        alive = float(motion.alive.mean())
        found = self.accuracy()
        moved = n * (2 * (self.cpu.nq + self.cpu.nu) + self.cpu.nu + 1) * np.dtype(self.kind).itemsize
        return {"rate": n * many / min(seconds), "compiled": compiled, "alive": alive, **found,
                "memory": moved / min(seconds) / copy_rate(),
                "arithmetic": self.operations() * n * many / min(seconds) / 2.0 / fused_rate(self.precision),
                **motion._stepper.memory.launch.function.resources(64)}

    def operations(self) -> int:
        """Operations of a step: four times the dynamics, and one correction of loops."""
        cpu = self.cpu
        run = cpu.kernels.planned(cpu.plans.first(self.q[0], 0.0)) if cpu.loops else cpu.kernels.evaluator
        counted = run.operation_count(cpu.kernels.functions["corrections"]).total if cpu.loops else 0
        return 4 * cpu.operation_count().total + counted

    def accuracy(self) -> dict[str, float]:
        """Motions of some states beside those of the CPU; and what their loops and energies say after a while."""
        import cupy

        q, u, tau = self.states(256)
        near = bc.rollout(self.gpu, (q, u), self.step)
        near.step(self.case.push * tau, 20 if self.cpu.nu < 100 else 2)
        same = bc.rollout(self.cpu, (q, u), self.step)
        same.step(self.case.push * tau, 20 if self.cpu.nu < 100 else 2)
        error = max(gap(cupy.asnumpy(near.q), same.q), gap(cupy.asnumpy(near.u), same.u))
        free = bc.rollout(self.gpu, (q, u), self.step)
        many = min(self.case.long, 1000 if self.cpu.nu < 20 else 100 if self.cpu.nu < 100 else 20)
        known = self.cpu.energy(q, u) if self.case.lossless else self.fine_energy(q[:32], u[:32], many)
        most = float(self.cpu.kinetic_energy(q, u).max())
        free.step(steps=many)
        q, u = cupy.asnumpy(free.q).astype(float), cupy.asnumpy(free.u).astype(float)
        most = max(most, float(self.cpu.kinetic_energy(q, u).max()), 1e-12)
        drift = float(np.abs(self.cpu.energy(q, u)[:len(known)] - known).max()) / most
        return {"error": error, "loop": loop_error(self.cpu, q), "energy": drift}

    def fine_energy(self, q: Array, u: Array, steps: int) -> Array:
        """Energies that machines with dampers have after so many steps, by the CPU with ten times as many."""
        fine = bc.rollout(self.cpu, (q, u), 0.1 * self.step)
        fine.step(steps=10 * steps)
        return np.asarray(self.cpu.energy(fine.q, fine.u))


def loop_error(system: bc.System, q: Array) -> float:
    return float(np.abs(system.loop_error(q.astype(float))).max(initial=0.0)) if system.loops else 0.0


def gap(a: Array, b: Array) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


def best(call: Callable[[], Any], rounds: int = 7) -> float:
    """Seconds on the device, the best of some rounds."""
    import cupy

    call()
    times = []
    for _ in range(rounds):
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        first.record()
        call()
        last.record()
        last.synchronize()
        times.append(cupy.cuda.get_elapsed_time(first, last) * 1e-3)
    return min(times)


_RATES: dict[str, float] = {}


def copy_rate() -> float:
    """Bytes read and written per second by a copy on the device."""
    import cupy

    if "copy" not in _RATES:
        a = cupy.ones(1 << 28)
        b = cupy.empty_like(a)
        _RATES["copy"] = 2 * a.nbytes / best(lambda: cupy.copyto(b, a))
    return _RATES["copy"]


def fused_rate(precision: str) -> float:
    """Multiplications with additions per second, by the device's clock and units (64 for doubles, 128 for floats in a
    multiprocessor of the Hopper kind)."""
    import cupy

    found = cupy.cuda.runtime.getDeviceProperties(0)
    clock = found.get("clockRate") or 1_980_000
    return float(found["multiProcessorCount"] * clock * 1e3 * (64 if precision == "double" else 128))


# -- tables -----------------------------------------------------------------------------------------
def measure(names: list[str], precisions: list[str]) -> list[dict[str, Any]]:
    rows = []
    for precision in precisions:
        for name in names:
            try:
                machine = Machine(name, precision)
                row = {"machine": name, "precision": precision, "dynamics": machine.dynamics()}
                print(f"{name}: {row['dynamics']['rate']:.2e} dynamics/s", flush=True)
                row["steps"] = machine.steps()
            except (bc.BellcrankError, models.MissingError, MemoryError) as error:
                print(f"{name} ({precision}): {error}", flush=True)
                continue
            rows.append(row)
            print(line(row), flush=True)
    return rows


def line(row: dict[str, Any]) -> str:
    d, s = row["dynamics"], row["steps"]
    peer = PEERS.get(row["machine"], "")
    return (f"{row['machine']:12s} {row['precision']:6s} | {d['rate']:.2e} dynamics/s, error {d['error']:.0e}, "
            f"{used(d)}, memory {100 * d['memory']:.0f} %, arithmetic {100 * d['arithmetic']:.0f} %, "
            f"{d['compiled']:.1f} s | {s['rate']:.2e} steps/s, error {s['error']:.0e}, loop {s['loop']:.0e}, energy "
            f"{s['energy']:.0e}, alive {s['alive']:.3f}, {used(s)}, memory "
            f"{100 * s['memory']:.1f} %, arithmetic {100 * s['arithmetic']:.0f} %, {s['compiled']:.1f} s "
            f"{'| ' * bool(peer)}{peer}")


def adaptive(name: str = "four-bar", count: int = 1 << 17) -> None:
    """Steps of states that choose their own, through `simulate`; beside some on the CPU."""
    machine = Machine(name, "double")
    q, u, _ = machine.states(count)
    for stepper in ("dopri5", "dop853", "radau5"):
        walls = []
        for _ in range(2):  # the first one compiles
            begun = time.perf_counter()
            result = machine.gpu.simulate((q, u), 1.0, stepper=stepper, rtol=1e-9, output=1.0)
            walls.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        few = machine.cpu.simulate((q[:256], u[:256]), 1.0, stepper=stepper, rtol=1e-9, output=1.0)
        cpu = 256 / (time.perf_counter() - begun)
        print(f"{name}, {stepper}, 1 s to 1e-9, {count} states: {count / walls[1]:.3g} motions/s, "
              f"{result.attrs['steps'] / walls[1]:.2e} steps/s ({cpu:.3g} motions/s on this CPU); against the CPU "
              f"{gap(result.q.values[-1, :256], few.q.values[-1]):.0e}; {result.attrs['status']}", flush=True)


def used(found: dict[str, Any]) -> str:
    return (f"{found['registers']:.0f} / {found['local_bytes']:.0f} / {found['shared_bytes']:.0f}, occupancy "
            f"{found['occupancy']:.2f}")


def quarter_cars(count: int = 100_000, seconds: float = 10.0) -> None:
    """Many quarter cars with springs of their own, from 50 mm above their design position; beside some on the CPU."""
    import cupy

    m = bc.load("quarter_car")
    m.add_spring("more", m.ground, "lower_arm", (-0.02, 0.45, 0.62), (-0.01, 0.56, 0.2), length=0.41,
                 stiffness=m.parameter("more", 0.0))
    more = np.random.default_rng(0).uniform(-5000.0, 15000.0, count)
    systems = [bc.compile(m, backend=backend) for backend in ("cuda", "llvm")]
    start = systems[1].assemble(q={"arm": -0.12930036652171667})
    begun = time.perf_counter()
    motion = bc.rollout(systems[0].with_parameters(more=more), start, STEP)
    motion.step(steps=1)
    prepared = time.perf_counter() - begun
    while motion.t < seconds - 0.5 * STEP:
        motion.step(steps=min(1000, round((seconds - motion.t) / STEP)))
    q = cupy.asnumpy(motion.q)
    wall = time.perf_counter() - begun
    few = bc.rollout(systems[1].with_parameters(more=more[:64]), start, STEP)
    few.step(steps=round(seconds / STEP))
    error, off = loop_error(systems[1], q[:4096]), gap(q[:64], few.q)
    print(f"{count} quarter cars, {seconds:g} s each in steps of 1 ms: {wall:.2f} s, {prepared:.2f} s of them before "
          f"the first step; loop error {error:.0e}, against the CPU {off:.0e}")


# -- checks -----------------------------------------------------------------------------------------
def check(names: list[str], precision: str) -> list[str]:
    """What is not as on the CPU."""
    wrong = []
    for name in names:
        try:
            found = gpu_checks.check(Machine(name, precision), precision)
        except models.MissingError as error:
            print(f"{name}: {error}")
            continue
        print(f"{name} ({precision}): {'as on the CPU' if not found else '; '.join(found)}", flush=True)
        wrong += found
    return wrong + (check_others(precision) if "four-bar" in names else [])


def check_others(precision: str) -> list[str]:
    """Arrays of other libraries, where these are installed."""
    wrong = []
    machine = Machine("four-bar", precision)
    q, u, tau = machine.states(1000)
    wanted = machine.cpu.forward_dynamics(q, u, tau)
    most = 1e-11 if precision == "double" else 2e-3
    with_torch = with_jax = None
    try:
        import torch

        with torch.cuda.stream(torch.cuda.Stream()):
            with_torch = machine.gpu.forward_dynamics(*(torch.tensor(a.astype(machine.kind), device="cuda")
                                                        for a in (q, u, tau)))
        if type(with_torch) is not torch.Tensor or not gap(with_torch.cpu().numpy(), wanted) < most:
            wrong.append(f"PyTorch {precision}")
    except ImportError:
        print("PyTorch is not installed")
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        with_jax = machine.gpu.forward_dynamics(*(jax.numpy.asarray(a.astype(machine.kind)) for a in (q, u, tau)))
        if not isinstance(with_jax, jax.Array) or not gap(np.asarray(with_jax), wanted) < most:
            wrong.append(f"JAX {precision}")
    except ImportError:
        print("JAX is not installed")
    print(f"arrays of other libraries ({precision}): {type(with_torch)}, {type(with_jax)}; {wrong or 'as on the CPU'}")
    return wrong


def main() -> None:
    """Print the table, or what is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", nargs="*", choices=[*CASES, *MORE], default=[])
    parser.add_argument("--single", action="store_true", help="single precision, too")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore", bc.BellcrankWarning)
    precisions = ["double", "single"] if given.single or given.check else ["double"]
    if given.check:
        wrong = [text for precision in precisions for text in check(given.only or [*CASES, *MORE], precision)]
        if wrong:
            raise SystemExit("not as on the CPU:\n" + "\n".join(wrong))
        return
    rows = measure(given.only or list(CASES), precisions)
    if not given.only or "four-bar" in given.only:
        adaptive()
    if not given.only or "quarter car" in given.only:
        quarter_cars()
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
