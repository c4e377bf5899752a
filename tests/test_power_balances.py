"""Machines as engineers have them: what all elements put in, summed in a state, is the change of energy."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.mechanism.forces.tyre import brush

EXAMPLES = Path(__file__).parents[1] / "examples"


@cache
def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(name).stem, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["engine", "quarter_car", "excavator", "clutch"])
def test_powers_of_all_elements_are_the_change_of_energy(name: str) -> None:
    module = script("11_power_balances")
    result, gap = module.run(getattr(module, name)())
    assert result.attrs["status"] == "finished" and gap < 1e-8
    energy = result["kinetic_energy"] + result["potential_energy"]
    assert float(np.abs(energy - energy[0]).max()) > 1e-3 * float(np.abs(energy).max())  # there is something to balance
    for element in result.system.model.mechanism.force_elements:
        power = result.element(element.name).power
        assert float(np.abs(power).max()) > 0.0, element.name


def test_the_clutch_sticks_at_last() -> None:
    module = script("11_power_balances")
    result, _ = module.run(module.clutch()._replace(duration=3.0))
    slip = result.u.sel(speed="input.angle") - result.u.sel(speed="output.angle")
    assert float(slip[0]) == 40.0 and abs(float(slip[-1])) < 1e-4
    steady = (48.0 - 0.3 * 3.0) / 1.0  # the motor holds the load alone: constant * gear = 1 N m/A
    assert abs(float(result.u.sel(speed="output.angle")[-1]) - steady) < 1e-2 * steady
    assert abs(float(result.element("clutch").force[-1]) + 3.0) < 0.05


# -- the full car ---------------------------------------------------------------------------------
SPEED = 15.0


@pytest.fixture(scope="module")
def car() -> bc.System:
    """With the work of its elements as a state."""
    m = script("gallery/full_car").machine()
    names = [e.name for e in m.force_elements]
    m.add_state("work", lambda at: sum(at.element(name).power for name in names), units="J")
    return bc.compile(m)


def drive(car: bc.System, duration: float, x: float, steer: float, step: float) -> bc.Result:
    module = script("gallery/full_car")
    wheels = {f"{axle} {side} wheel": SPEED / 0.31 for axle in module.AXLES for side in module.SIDES}
    car = car.with_parameters(steer=steer, speed=SPEED)
    start = car.assemble(q={"car": [1, 0, 0, 0, x, 0, 0]}, u={"car": [0, 0, 0, SPEED, 0, 0], **wheels})
    return car.simulate(start, duration, step=step, output=duration / 40)


def test_a_car_over_a_bump(car: bc.System) -> None:
    run = drive(car, 0.8, 8.0, -0.003, 5e-4)
    assert run.attrs["status"] == "finished" and run.attrs["largest_loop_error"] < 1e-12
    energy = run["kinetic_energy"] + run["potential_energy"]
    gap = np.abs(energy - energy[0] - run.u.sel(speed="work.value")).max()
    assert float(gap) < 1e-8 * float(np.abs(energy).max())
    sides = [run.element(f"front {side} tyre").vector.sel(axis="z") for side in ("left", "right")]
    assert float(sides[0].max()) > 1.3 * float(sides[1].max())  # the bump is on the left
    assert float(run.element("front left damper").power.min()) < -500.0
    assert float(np.abs(run.element("front bar").force).max()) > 10.0


def _axle_slip(along: float, across: float, slope: float, load: float) -> float:
    """The slip angle at which a brush of an axle gives both forces, by bisection."""
    size, low, high = float(np.hypot(along, across)), 0.0, 0.1
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if brush(middle, slope * load, 0.95 * load) < size else (low, middle)
    return low * across / size * (1.0 + low * along / size)  # slip is a share of the speed of rolling


def test_understeer_of_the_car_is_that_of_the_bicycle(car: bc.System) -> None:
    """delta = L / R + alpha_f - alpha_r, with the axle forces of a bicycle that has the car's center of mass (the loads
    also carry pitching moments of air and rolling resistance: 3.5 %), the yaw moment of the outer wheels' rolling
    resistance (3 %), that of the front wheels as they are turned (0.5 %), and tyres on their curve (1 %)."""
    end = drive(car, 8.0, 100.0, -0.001, 2e-3).isel(time=-1)
    q, u = end.q.values, end.u.values
    place, motion = car.pose(q, "chassis"), car.velocity(q, u, "chassis")
    turn = place.rotation
    speed, rate = float((turn.T @ motion[3:])[0]), float(motion[2])

    def heading(wheel: str) -> float:
        axle = turn.T @ car.pose(q, wheel).rotation[:, 1]
        return float(np.arctan2(-axle[0], axle[1]))

    steer = sum(heading(f"front {s} wheel") - heading(f"rear {s} wheel") for s in ("left", "right")) / 2.0
    found = steer - 2.6 * rate / speed
    tyres = car.element_forces(q, u)
    loads = np.array([[tyres[f"{axle} {s} tyre"].vector[2] for s in ("left", "right")] for axle in ("front", "rear")])
    resisting = 0.01 * 0.31 / (0.31 - loads / 2.2e5) * loads  # 1 % of the load at the radius, by the loaded one
    yaw, trail = 0.76 * float((resisting[:, 0] - resisting[:, 1]).sum()), 0.02
    ahead = 1.2 - float((turn.T @ (car.center_of_mass(q) - place.position))[0])
    push, (front, rear) = float(loads.sum()) / 9.81 * speed * rate, loads.sum(axis=1).tolist()
    held = float(resisting[0].sum())
    first = (push * (2.6 - ahead + trail) - yaw) / 2.6 + held * steer
    second = (push * (ahead - trail) + yaw) / 2.6
    air = 0.5 * 1.2 * 0.32 * 2.0 * speed**2
    wanted = _axle_slip(-held, first, 15.0, front) - _axle_slip(held + air, second, 20.0, rear)
    assert 0.3 < speed * rate < 1.0 and wanted > 5e-4
    assert abs(found - wanted) < 0.005 * wanted, (found, wanted)


#: one element each on a slider crank, in a state in which it acts (limits are reached), and forces that are given
ACTING: dict[str, tuple[Callable[[bc.Mechanism], object], dict[str, float] | None]] = {
    "servo at its limit": (lambda m: m.add_servo("e", "crank", target=9.0, stiffness=90.0, limit=7.0), None),
    "servo within it": (lambda m: m.add_servo("e", "slide", target=2.0, stiffness=9.0, damping=3.0, limit=70.0), None),
    "limit": (lambda m: m.add_limit("e", "crank", upper=0.5, stiffness=300.0, damping=9.0), None),
    "limit of a sum": (lambda m: m.add_limit("e", {"crank": 1.0, "big_end": 0.5}, lower=2.0, stiffness=300.0), None),
    "friction": (lambda m: m.add_friction("e", "slide", coulomb=3.0, viscous=1.0), None),
    "actuator at its limit": (lambda m: m.add_actuator("e", "crank", 3.0), {"crank": 8.0}),
    "actuator on its line": (lambda m: m.add_actuator("e", "slide", 30.0, no_load_speed=9.0), {"slide": 80.0}),
    "armature": (lambda m: (m.add_armature("r", "big_end", 0.3), m.add_servo("e", "crank", stiffness=5.0)), None),
    "bushing": (lambda m: m.add_bushing("e", "rod", m.ground, stiffness=(9, 8, 7), damping=(1, 2, 3)), None),
    "drag": (lambda m: m.add_drag("e", "rod", coefficient=2.0, at=(0, 0, 0), wind=(3.0, 0.0, 1.0)), None),
    "gas spring": (lambda m: m.add_gas_spring("e", m.ground, "rod", (0.0, 0.0, 0.9), (0.1, 0.0, 0.0), force=300.0,
                                              length=1.0, reach=1.4), None),
    "wrench by a law": (lambda m: m.add_wrench("e", "rod", at=(0, 0, 0),
                                               law=lambda at: (at.u("crank"), 2.0, 0.0)), None),
}


@pytest.mark.parametrize("kind", ACTING)
def test_what_acted_is_what_is_reported(kind: str) -> None:
    """The power that elements report is the rate of kinetic and potential energy, to rounding."""
    add, tau = ACTING[kind]
    m = bc.load("slider_crank")
    add(m)
    system = bc.compile(m, backend="numpy")
    state = system.assemble(q={"crank": 0.9}, u={"crank": 3.0})
    udot = system.forward_dynamics(state.q, state.u, tau)
    elements = system.element_forces(state, tau=tau)
    power = sum(float(e.power) for e in elements.values())
    slope = system.derivatives("kinetic_energy", state, along={"q": state.u, "u": udot}, closed=False)["along"]
    height = system.derivatives("potential_energy", state.q, along={"q": state.u}, closed=False)["along"]
    assert abs(float(slope) + float(height) - power) < 1e-8 * abs(power) and abs(elements["e"].power) > 1e-3


def test_a_rigid_stop_reports_what_it_took() -> None:
    system = bc.compile(bc.load("slider_crank"))
    run = system.simulate(system.assemble(q={"crank": 0.9}, u={"crank": 3.0}), 0.1, stepper="rk8", output=0.05,
                          events=bc.joint_limit("crank", upper=1.1, restitution=0.4))
    lost, energy = float(run.event_energy_lost.sum()), run["energy"].values
    assert lost > 1e-3 and abs(energy[0] - energy[-1] - lost) < 1e-8 * lost
