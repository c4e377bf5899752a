"""The rigid problems A01 to A05 of the IFToMM library of computational benchmark problems: times and errors.

    python benchmarks/iftomm.py [--cells 2 40]

The library (https://www.iftomm-multibody.org/benchmark; González, Dopico, Lugrís & Cuadrado, "A benchmarking system for
MBS simulation software", Multibody System Dynamics 16, 2006) gives machines, 10 s of motion (A03: 0.05 s) and an error
that solutions must keep to. Here the error is that of the energy [J] where nothing is dissipated. A03 is compared with
the reference solution of the Test Set for IVP Solvers (problem "Andrews' squeezing mechanism", t = 0.03 s), A05 with
our own steps at a tenth of the length. A04 is the loop of five bars of 1 m and 1 kg whose hinges are at right angles,
under gravity; the library's have a square section of 0.1 m. Times are those of a second run; the first one compiles.

Beside them: what is published, on other machines, so that it says no more than an order of magnitude (times of OpenSim
3.2, which is Simbody, on an Intel i5-4570, from "MBS benchmarks in OpenSim", rehabenggroup.github.io), and Exudyn on
this one where it is installed: A01 and A02 in the plane, its generalized-alpha steps of 1 ms as they come. It finishes
A02, but not with numbers that mean something: at the first singular position the speeds explode.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np
from timing import time_text

import bellcrank as bc

DOWN = (0.0, -9.81, 0.0)
#: seconds that OpenSim 3.2 is said to take for a problem
PUBLISHED = {"A01 simple pendulum": 0.637, "A02 2 four-bars": 0.455, "A04 Bricard": 0.258}
#: beta of Andrews' mechanism at 0.03 s [rad]
BETA = 15.81077119629904


def pendulum() -> bc.Mechanism:
    """A01: a point of 1 kg on a bar of 1 m without mass; it starts level and at rest."""
    m = bc.Mechanism("A01 simple pendulum", gravity=DOWN)
    body = m.add_body("point", bc.Inertia(1.0, (-1.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    m.add_joint("pin", bc.Revolute("z"), m.ground, body)
    return m


def bricard() -> bc.Mechanism:
    """A04: five bars of 1 m and 1 kg along edges of a cube, each hinge at right angles to the bars it joins."""
    m = bc.Mechanism("A04 Bricard", gravity=DOWN)
    corners = np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (0, 1, 1), (0, 0, 1)], dtype=float)
    before = m.ground
    for k in range(6):
        here, ahead, behind = corners[k], corners[(k + 1) % 6], corners[k - 1]
        axis = np.cross(here - behind, ahead - here)
        size = 0.1 + 0.9 * np.abs(ahead - here)
        body = m.ground if k == 5 else m.add_body(f"bar{k + 1}", bc.Inertia.box(1.0, size, (here + ahead) / 2))
        m.add_joint(f"hinge{k + 1}", bc.Revolute(axis), before, body, at=here)
        before = body
    return m


def flyball_governor() -> bc.Mechanism:
    """A05: a shaft with a slider on it and two rods hinged at its top, each with 5 kg at its end; between the middle of
    each rod and the slider a spring of 0.5 m, 8e5 N/m, with 4e4 N s/m. Rods are 30 degrees below level, 3000 kg/m^3."""
    m = bc.Mechanism("A05 stiff flyball governor", gravity=(0.0, 0.0, -9.81))
    shaft = m.add_body("shaft", bc.Inertia.box(0.3, (0.01, 0.01, 1.0), (0.0, 0.0, 0.5)))
    slider = m.add_body("slider", bc.Inertia.box(3.0, (0.1, 0.1, 0.1), (0.0, 0.0, 0.5)))
    m.add_joint("shaft", bc.Revolute("z"), m.ground, shaft, at=(0.0, 0.0, 0.0))
    m.add_joint("slider", bc.Prismatic("z"), shaft, slider, at=(0.0, 0.0, 0.5))
    for name, side in (("right", 1.0), ("left", -1.0)):
        top = np.array([0.05 * side, 0.0, 1.0])
        along = np.array([side * math.cos(math.pi / 6), 0.0, -math.sin(math.pi / 6)])
        rod = bc.Inertia.rod(0.3, top, top + along).combined(bc.Inertia(5.0, tuple(top + along), (0.0, 0.0, 0.0)))
        body = m.add_body(name, rod)
        m.add_joint(name, bc.Revolute("y"), shaft, body, at=tuple(top))
        m.add_spring(f"{name} spring", slider, body, (0.05 * side, 0.0, 0.5), tuple(top + 0.5 * along), stiffness=8e5,
                     damping=4e4, length=0.5)
    return m


def run(system: bc.System, state: Any, duration: float, **how: Any) -> tuple[Any, float]:
    """The result of a run and the time of the same again [s]."""
    system.simulate(state, duration, **how)
    begun = time.perf_counter()
    result = system.simulate(state, duration, **how)
    return result, time.perf_counter() - begun


def drift(system: bc.System, result: Any) -> float:
    """The largest error of the energy [J]."""
    energy = system.energy(result.q.values, result.u.values)
    return float(np.abs(energy - energy[0]).max())


def row(name: str, how: str, result: Any, seconds: float, error: str) -> None:
    a = result.attrs
    print(f"{name:28} {how:14} {a['status']:9} {a['steps']:7d} steps {a.get('crossings', 0):3d} crossings "
          f"{time_text(seconds):>9}  {error}", flush=True)


def conserved(name: str, machine: bc.Mechanism, speeds: dict[str, float]) -> None:
    """A problem whose energy stays."""
    system = bc.compile(machine)
    state = system.assemble(u=speeds)
    for stepper, step in (("rk4", 1e-3), ("gauss", 5e-3), ("dop853", None)):
        result, seconds = run(system, state, 10.0, stepper=stepper, step=step)
        row(name, stepper, result, seconds, f"energy {drift(system, result):.1e} J, loops "
            f"{result.attrs.get('largest_loop_error', 0.0):.0e}")


def published(name: str) -> None:
    """What others say of a problem."""
    if name in PUBLISHED:
        print(f"{name:28} {'OpenSim 3.2':14} published {time_text(PUBLISHED[name]):>40}  on an Intel i5-4570")


def exudyn_bars(name: str, arms: int, crossbars: bool) -> None:
    """A01 (one arm, a point at its end) or A02 (arms of 1 kg, joined by bars of 1 kg) in Exudyn, in the plane."""
    try:
        import exudyn
        import exudyn.itemInterface
    except ImportError:
        return
    item = exudyn.itemInterface
    container = exudyn.SystemContainer()
    mbs = container.AddSystem()
    ground = mbs.AddObject(item.ObjectGround())
    nodes: list[tuple[int, float, float]] = []

    def bar(middle: tuple[float, float], angle: float, rates: tuple[float, float, float], mass: float, inertia: float
            ) -> int:
        node = mbs.AddNode(item.NodeRigidBody2D(referenceCoordinates=[*middle, angle], initialVelocities=[*rates]))
        body = mbs.AddObject(item.ObjectRigidBody2D(mass=mass, inertia=inertia, nodeNumber=node))
        weight = mbs.AddMarker(item.MarkerBodyMass(bodyNumber=body))
        mbs.AddLoad(item.LoadMassProportional(markerNumber=weight, loadVector=[0, -9.81, 0]))
        nodes.append((node, mass, inertia))
        return int(body)

    def pin(first: int, second: int, at_first: list[float], at_second: list[float]) -> None:
        ends = [mbs.AddMarker(item.MarkerBodyPosition(bodyNumber=b, localPosition=[*x, 0]))
                for b, x in ((first, at_first), (second, at_second))]
        mbs.AddObject(item.ObjectJointRevolute2D(markerNumbers=ends))

    if crossbars:
        bodies = [bar((k, 0.5), math.pi / 2, (0.5, 0.0, -1.0), 1.0, 1 / 12) for k in range(arms)]
        for k, body in enumerate(bodies):
            pin(ground, body, [k, 0], [-0.5, 0])
        for k in range(arms - 1):
            cross = bar((k + 0.5, 1.0), 0.0, (1.0, 0.0, 0.0), 1.0, 1 / 12)
            pin(bodies[k], cross, [0.5, 0], [-0.5, 0])
            pin(cross, bodies[k + 1], [0.5, 0], [-0.5, 0])
    else:
        pin(ground, bar((-1.0, 0.0), math.pi, (0.0, 0.0, 0.0), 1.0, 1e-12), [0, 0], [-1.0, 0])
    mbs.Assemble()
    settings = exudyn.SimulationSettings()
    settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = 10_000, 10.0
    settings.solution.file.write = False
    settings.timeIntegration.verboseMode = 0

    def energy() -> float:
        total = 0.0
        for node, mass, inertia in nodes:
            place, rate = (mbs.GetNodeOutput(node, kind) for kind in (exudyn.OutputVariableType.Position,
                                                                       exudyn.OutputVariableType.Coordinates_t))
            total += 0.5 * mass * (rate[0] ** 2 + rate[1] ** 2) + 0.5 * inertia * rate[2] ** 2 + 9.81 * mass * place[1]
        return total

    before, begun = energy(), time.perf_counter()
    try:
        done = mbs.SolveDynamic(settings, showHints=False, showCausingItems=False)
    except Exception:
        done = False
    took = time.perf_counter() - begun
    said = f"energy {abs(energy() - before):.1e} J at the end" if done else "does not finish"
    status = "finished" if done else "failed"
    print(f"{name:28} {'Exudyn':14} {status:9} {10_000:7d} steps {time_text(took):>23}  {said}", flush=True)


def andrews() -> None:
    """A03, beta at 0.03 s beside the reference."""
    system = bc.compile(bc.load("andrews"))
    place = system.coordinate_names.index("O.angle")
    for stepper, step in (("rk4", 1e-5), ("gauss", 1e-4), ("dop853", None)):
        result, seconds = run(system, system.assemble(), 0.03, stepper=stepper, step=step)
        beta = float(result.q.values[-1, place]) - 0.0617138900142764
        row("A03 Andrews' squeezer", stepper, result, seconds, f"beta {abs(beta - BETA):.1e} rad off the reference")


def governor() -> None:
    """A05, the slider's way beside that of short steps."""
    system = bc.compile(flyball_governor())
    speeds = [2.0 * math.pi if n.startswith("shaft") else 0.0 for n in system.speed_names]
    state = np.zeros(system.nq), np.array(speeds)
    exact = system.simulate(state, 10.0, stepper="radau", step=5e-4, output=0.01)
    place = next(i for i, n in enumerate(system.coordinate_names) if n.startswith("slider"))
    for stepper, step in (("radau5", None), ("radau", 5e-3), ("gauss", 5e-3)):
        result, seconds = run(system, state, 10.0, stepper=stepper, step=step, output=0.01)
        off = np.abs(result.q.values[:, place] - exact.q.values[:, place]).max()
        row("A05 flyball governor", stepper, result, seconds, f"slider {off:.1e} m off that of a tenth of the step")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, nargs="*", default=[2, 40], help="four-bars of A02")
    cells = parser.parse_args().cells
    conserved("A01 simple pendulum", pendulum(), {})
    exudyn_bars("A01 simple pendulum", 1, False)
    published("A01 simple pendulum")
    for n in cells:
        conserved(f"A02 {n} four-bars", bc.load("n_four_bars", cells=n), {"arm0": -1.0})
        exudyn_bars(f"A02 {n} four-bars", n + 1, True)
        published(f"A02 {n} four-bars")
    andrews()
    conserved("A04 Bricard", bricard(), {})
    published("A04 Bricard")
    governor()


if __name__ == "__main__":
    main()
