"""Flexible bodies: chains of beams, and two linkages with a flexible link beside Exudyn's ANCF beams.

    python benchmarks/flexible.py            # all of it, about a minute
    python benchmarks/flexible.py chains     # or: linkages

Chains: time of one forward dynamics per link, with two modes a link; it must not depend on their number. Linkages: a
slider-crank at 150 rad/s (two turns) and a four-bar (0.5 s), whose flexible link is a beam of two modes with stiffening
here and 8 or 16 cable elements there. Errors are those of the deflection at the middle, relative to the largest one,
against the same model with steps so fine that they no longer matter. At the end of each table every run of Exudyn
stands beside the fastest one here whose error is not larger: at equal accuracy it must be 20 times faster at least.
Times of linkages are those of the processor, per second of motion.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from timing import best, time_text

import bellcrank as bc

Array = npt.NDArray[np.float64]


# -- chains ------------------------------------------------------------------------------------------------------------
def chain(n: int) -> bc.Mechanism:
    """Flexible links one after the other, axes in turns."""
    section = bc.BeamSection.round(0.01, E=2.1e11, rho=7850.0)
    body = bc.FlexibleBody.beam(0.5, section, elements=4, modes={"y": 1, "z": 1})
    m, last = bc.Mechanism("chain"), "ground"
    for i in range(n):
        m.add_body(f"b{i}", body)
        m.add_joint(f"j{i}", bc.Revolute("zy"[i % 2]), last, f"b{i}")
        last = f"b{i}.tip"
    return m


def chains() -> None:
    print(f"{'links':>6} {'speeds':>7} {'first call':>11} {'one call':>9} {'per link':>9} {'operations per link':>20}")
    for n in (1, 3, 10, 30, 100, 300, 1000):
        system = bc.compile(chain(n))
        q, u = system.random_state(np.random.default_rng(0))
        start = time.perf_counter()
        system.forward_dynamics(q, u)
        first = time.perf_counter() - start
        once = best(lambda s=system, q=q, u=u: s.forward_dynamics(q, u))
        count = system.operation_count().total / n
        print(f"{n:>6} {system.nu:>7} {time_text(first):>11} {time_text(once):>9} {time_text(once / n):>9} "
              f"{count:>20.0f}")


# -- linkages ----------------------------------------------------------------------------------------------------------
class Case(NamedTuple):
    """A linkage whose rod goes from a crank's pin to a second pin."""

    name: str
    duration: float
    times: Array
    rod: dict[str, float]
    length: float
    crank: float
    speed: float  #: of the crank at the start
    angle: float
    rod_angle: float
    rod_speed: float


SLIDER = Case("slider-crank", 2 * 2 * np.pi / 150.0, np.linspace(0.0, 2 * 2 * np.pi / 150.0, 41),
              {"EA": 5654866.776461627, "EI": 12.723450247038663, "mass": 0.22251900765376503}, 0.3, 0.15, 150.0, 0.0,
              0.0, -75.0)
FOUR_BAR = Case("four-bar", 0.5, np.linspace(0.0, 0.5, 51), {"EA": 4e6, "EI": 120.0, "mass": 0.8}, 1.0, 0.3, 10.0,
                np.pi / 3, 0.33943009252121015, -1.226646675289674)


def linkage(case: Case) -> tuple[bc.System, Any]:
    """The machine and its state at the start."""
    rod = case.rod
    section = bc.BeamSection(rod["EA"], rod["EI"], rod["EI"], rod["EI"], rod["mass"], 1e-6)
    m = bc.Mechanism(case.name, gravity=(0, 0 if case is SLIDER else -9.81, 0))
    m.add_body("crank", bc.Inertia.rod(1.5, (0, 0, 0), (case.crank, 0, 0)))
    m.add_body("rod", bc.FlexibleBody.beam(case.length, section, elements=8, modes={"y": 2}, support="pinned",
                                           stiffening=True, names={"mid": 4}))
    m.add_joint("A", bc.Revolute("z"), m.ground, "crank")
    m.add_joint("B", bc.Revolute("z"), "crank", "rod", parent_pose=bc.Pose((case.crank, 0, 0)))
    straight = {"rod.mode1": 0.0, "rod.mode2": 0.0}
    if case is SLIDER:
        m.add_body("block", bc.Inertia(0.5 * rod["mass"] * case.length))
        m.add_joint("C", bc.Revolute("z"), "rod.tip", "block")
        m.add_joint("S", bc.Prismatic("x"), m.ground, "block")
        m.prescribe("A", lambda t: case.speed * t)
        system = bc.compile(m)
        return system, system.assemble(q=straight, u=straight)
    m.add_body("rocker", bc.Inertia.rod(2.0, (0, 0, 0), (0.6, 0, 0)))
    m.add_joint("D", bc.Revolute("z"), m.ground, "rocker", parent_pose=bc.Pose((1.0, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), "rod.tip", "rocker", child_pose=bc.Pose((0.6, 0, 0)))
    system = bc.compile(m)
    guess = np.array([case.angle, case.rod_angle - case.angle, 0.0, 0.0, 1.4152623875992125])
    return system, system.assemble(q={"A": case.angle, **straight}, u={"A": case.speed, **straight}, guess=guess)


def busy(run: Callable[[], object], times: int = 50) -> float:
    """The processor's time of one run [s], the least of several: both tools compute on one thread, and other programs
    on the machine do not count."""
    least = np.inf
    for _ in range(times):
        start = time.process_time()
        run()
        least = min(least, time.process_time() - start)
    return float(least)


def ours(case: Case) -> tuple[Array, list[tuple[str, float, float]]]:
    """What it converges to, and (how, time, error) of some tolerances."""
    system, state = linkage(case)
    tau = None if case is SLIDER else {"A": 2.0}

    def run(**options: Any) -> Array:
        return system.simulate(state, case.duration, tau=tau, output=float(case.times[1]), **options).q.values

    def closely(rtol: float) -> dict[str, Any]:
        return {"stepper": "dop853", "rtol": rtol, "atol": 1e-3 * rtol}

    def bent(q: Array) -> Array:
        frame, middle = (system.pose(q, body, t=case.times) for body in ("rod", "rod.mid"))
        return np.asarray(((middle.position - frame.position)[:, None, :] @ frame.rotation)[:, 0, 1])

    exact = bent(run(**closely(1e-12)))
    out = []
    pieces = [(f"rk4, {n} steps", {"stepper": "rk4", "step": case.duration / n}) for n in (200, 400)]
    for how, options in (*pieces, *((f"dop853, rtol {rtol:.0e}", closely(rtol)) for rtol in (1e-3, 1e-6, 1e-9))):
        error = float(np.abs(bent(run(**options)) - exact).max() / np.abs(exact).max())
        out.append((f"Bellcrank, {how}", busy(lambda o=options: run(**o)), error))
    return exact, out


class Cables:
    """The same by Exudyn: ANCF cables, rigid bodies in the plane, generalized-alpha steps."""

    def __init__(self, case: Case, elements: int) -> None:
        import exudyn as exu

        item = self.item = importlib.import_module("exudyn.itemInterface")
        self.exu, self.case, self.elements = exu, case, elements
        self.container = exu.SystemContainer()
        self.mbs = mbs = self.container.AddSystem()
        pin = case.crank * np.array([np.cos(case.angle), np.sin(case.angle)])
        along = np.array([np.cos(case.rod_angle), np.sin(case.rod_angle)])
        across = np.array([-along[1], along[0]])
        start = case.speed * np.array([-pin[1], pin[0]])
        ground = mbs.AddObject(item.ObjectGround())
        down = 0.0 if case is SLIDER else -9.81
        nodes = []
        for i in range(elements + 1):
            s = case.length * i / elements
            rate = start + case.rod_speed * s * across
            turn = case.rod_speed * across
            nodes.append(mbs.AddNode(item.NodePoint2DSlope1(
                referenceCoordinates=[*(pin + s * along), *along], initialVelocities=[*rate, *turn])))
        for i in range(elements):
            cable = mbs.AddObject(item.ObjectANCFCable2D(
                physicsLength=case.length / elements, physicsMassPerLength=case.rod["mass"],
                physicsBendingStiffness=case.rod["EI"], physicsAxialStiffness=case.rod["EA"],
                nodeNumbers=[nodes[i], nodes[i + 1]]))
            if down:
                mark = mbs.AddMarker(item.MarkerBodyMass(bodyNumber=cable))
                mbs.AddLoad(item.LoadMassProportional(markerNumber=mark, loadVector=[0, down, 0]))
        inertia = 1e9 if case is SLIDER else 1.5 * case.crank**2 / 12.0  # a flywheel keeps the crank's speed
        crank = self._body(1.5, inertia, 0.5 * pin, case.angle, 0.5 * start, case.speed, down)
        self._pin(ground, [0.0, 0.0], crank, [-0.5 * case.crank, 0.0])
        first = mbs.AddMarker(item.MarkerNodePosition(nodeNumber=nodes[0]))
        last = mbs.AddMarker(item.MarkerNodePosition(nodeNumber=nodes[-1]))
        end = mbs.AddMarker(item.MarkerBodyPosition(bodyNumber=crank, localPosition=[0.5 * case.crank, 0, 0]))
        mbs.AddObject(item.ObjectJointRevolute2D(markerNumbers=[end, first]))
        tip = pin + case.length * along
        if case is SLIDER:
            point = mbs.AddNode(item.NodePoint2D(referenceCoordinates=list(tip)))
            mbs.AddObject(item.ObjectMassPoint2D(physicsMass=0.5 * case.rod["mass"] * case.length, nodeNumber=point))
            mark = mbs.AddMarker(item.MarkerNodePosition(nodeNumber=point))
            mbs.AddObject(item.ObjectJointRevolute2D(markerNumbers=[last, mark]))
            held = mbs.AddMarker(item.MarkerNodeCoordinate(nodeNumber=point, coordinate=1))
            still = mbs.AddMarker(item.MarkerNodeCoordinate(
                nodeNumber=mbs.AddNode(item.NodePointGround()), coordinate=0))
            mbs.AddObject(item.ObjectConnectorCoordinate(markerNumbers=[still, held]))
        else:
            mark = mbs.AddMarker(item.MarkerBodyRigid(bodyNumber=crank))
            mbs.AddLoad(item.LoadTorqueVector(markerNumber=mark, loadVector=[0, 0, 2.0]))
            base = np.array([1.0, 0.0])
            out = tip - base
            omega = 3.694031637761555
            rocker = self._body(2.0, 2.0 * 0.36 / 12.0, base + 0.5 * out, float(np.arctan2(out[1], out[0])),
                                0.5 * omega * np.array([-out[1], out[0]]), omega, down)
            self._pin(ground, [1.0, 0.0], rocker, [-0.3, 0.0])
            far = mbs.AddMarker(item.MarkerBodyPosition(bodyNumber=rocker, localPosition=[0.3, 0, 0]))
            mbs.AddObject(item.ObjectJointRevolute2D(markerNumbers=[last, far]))
        self.sensors = [mbs.AddSensor(item.SensorNode(nodeNumber=nodes[k], storeInternal=True,
                                                      outputVariableType=exu.OutputVariableType.Position))
                        for k in (0, elements // 2, elements)]
        mbs.Assemble()

    def _body(self, mass: float, inertia: float, at: Array, angle: float, rate: Array, speed: float, down: float
              ) -> int:
        item = self.item
        node = self.mbs.AddNode(item.NodeRigidBody2D(referenceCoordinates=[*at, angle],
                                                     initialVelocities=[*rate, speed]))
        body: int = self.mbs.AddObject(item.ObjectRigidBody2D(physicsMass=mass, physicsInertia=inertia,
                                                              nodeNumber=node))
        if down:
            mark = self.mbs.AddMarker(item.MarkerBodyPosition(bodyNumber=body))
            self.mbs.AddLoad(item.LoadForceVector(markerNumber=mark, loadVector=[0, mass * down, 0]))
        return body

    def _pin(self, ground: int, at: list[float], body: int, local: list[float]) -> None:
        item = self.item
        marks = [self.mbs.AddMarker(item.MarkerBodyPosition(bodyNumber=b, localPosition=[*x, 0.0]))
                 for b, x in ((ground, at), (body, local))]
        self.mbs.AddObject(item.ObjectJointRevolute2D(markerNumbers=marks))

    def run(self, step: float) -> float:
        """Simulate; the time it takes."""
        settings = self.exu.SimulationSettings()
        integration = settings.timeIntegration
        integration.numberOfSteps = round(self.case.duration / step)
        integration.endTime = self.case.duration
        integration.verboseMode = 0
        integration.generalizedAlpha.spectralRadius = 0.9
        settings.solutionSettings.writeSolutionToFile = False
        settings.solutionSettings.sensorsWritePeriod = self.case.duration / (len(self.case.times) - 1)
        return busy(lambda: self.mbs.SolveDynamic(settings), 1)

    def bent(self) -> Array:
        """Deflection of the middle from the chord at the samples."""
        first, middle, last = (np.array(self.mbs.GetSensorStoredData(s)) for s in self.sensors)
        chord = last[:, 1:3] - first[:, 1:3]
        arm = middle[:, 1:3] - first[:, 1:3]
        found = (chord[:, 0] * arm[:, 1] - chord[:, 1] * arm[:, 0]) / np.linalg.norm(chord, axis=1)
        return np.asarray(np.interp(self.case.times, first[:, 0], found))


def theirs(case: Case) -> tuple[Array, list[tuple[str, float, float]]]:
    """What it converges to, and (how, time, error) of some steps."""
    warnings.simplefilter("ignore", DeprecationWarning)  # names of parameters that older versions know, too
    steps = (1e-4, 2e-5, 5e-6) if case is SLIDER else (5e-4, 2e-4, 1e-4)
    fine = Cables(case, 16)
    fine.run(steps[-1] / 8)
    exact = fine.bent()
    out = []
    for elements, step in ((8, steps[0]), (8, steps[1]), (16, steps[2])):
        model = Cables(case, elements)
        taken = model.run(step)
        error = float(np.abs(model.bent() - exact).max() / np.abs(exact).max())
        out.append((f"Exudyn, {elements} cables, step {step:.0e} s", taken, error))
    return exact, out


def linkages() -> None:
    tools: list[Callable[[Case], tuple[Array, list[tuple[str, float, float]]]]] = [ours]
    if importlib.util.find_spec("exudyn") is not None:
        tools.append(theirs)
    for case in (SLIDER, FOUR_BAR):
        print(f"\n{case.name}, {case.duration:.3g} s of motion")
        print(f"{'':<36} {'per second':>12} {'error':>9}")
        exact, tables = [], []
        for tool in tools:
            converged, rows = tool(case)
            exact.append(converged)
            tables.append(rows)
            for how, taken, error in rows:
                print(f"{how:<36} {time_text(taken / case.duration):>12} {error:>9.1e}")
        if len(exact) > 1:
            apart = np.abs(exact[1] - exact[0]).max() / np.abs(exact[1]).max()
            print(f"the two models themselves differ by {apart:.1e}")
            compare(*tables)


def compare(own: list[tuple[str, float, float]], other: list[tuple[str, float, float]]) -> None:
    """Every run of the other beside the fastest of our own that is as accurate."""
    for how, taken, error in other:
        good = [(mine, said) for said, mine, wrong in own if wrong <= error]
        if good:
            mine, said = min(good)
            print(f"at equal accuracy: {said} is {taken / mine:.0f} times faster than {how}")


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["chains", "linkages"]
    for part in wanted:
        {"chains": chains, "linkages": linkages}[part]()
