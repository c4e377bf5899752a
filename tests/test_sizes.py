"""Machines of any size: described in another unit of length, they take the same decisions and give the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.arrays import Floats
from scaled_machines import scaled, scaled_by

#: powers of two: micrometres, millimetres, kilometres and more
LENGTHS = (2.0**-20, 2.0**-10, 2.0**10, 2.0**20)


def excavator() -> bc.Mechanism:
    """A boom on a cylinder, with a stop, a spring, friction and a bucket linkage as a coupler."""
    m = bc.Mechanism("boom", gravity=(0, -9.81, 0))
    boom = m.add_body("boom", bc.Inertia.rod(300.0, (0, 0, 0), (3.0, 0.5, 0)))
    tube = m.add_body("tube", bc.Inertia.rod(20.0, (0, 0, 0), (0.8, 0, 0)))
    rod = m.add_body("rod", bc.Inertia.rod(15.0, (0, 0, 0), (0.8, 0, 0)))
    bucket = m.add_body("bucket", bc.Inertia(50.0, (0.3, 0, 0), 2.0))
    m.add_joint("boom", bc.Revolute("z"), m.ground, boom)
    m.add_joint("foot", bc.Revolute("z"), m.ground, tube, bc.Pose((0.4, -0.8, 0)))
    m.add_joint("slide", bc.Prismatic("x"), tube, rod, bc.Pose((0.5, 0, 0)))
    m.add_joint("head", bc.Revolute("z"), rod, boom, bc.Pose((0.8, 0, 0)), bc.Pose((1.2, 0.3, 0)))
    m.add_joint("tip", bc.Revolute("z"), boom, bucket, bc.Pose((3.0, 0.5, 0)))
    m.add_coupler("linkage", {"slide": 2.0, "tip": 1.0})
    m.add_spring("coil", m.ground, boom, (0.2, -0.8, 0), (1.0, 0, 0), stiffness=2e4, damping=300.0, length=0.9)
    m.add_limit("stop", "slide", upper=0.4, stiffness=1e6, damping=1e3)
    m.add_friction("bearing", "boom", coulomb=2.0, viscous=5.0, speed=1e-2)
    return m


MACHINES: dict[str, Callable[[], bc.Mechanism]] = {
    **{name: (lambda name=name: bc.load(name)) for name in (  # type: ignore[misc]
        "four_bar", "slider_crank", "stewart", "delta", "bennett", "quarter_car", "andrews")}, "excavator": excavator}


class Sized:
    """A machine of some size, and what its numbers are measured by."""

    def __init__(self, name: str, length: float, backend: str = "numpy", **options: Any) -> None:
        self.length = length
        mechanism = MACHINES[name]()
        self.system = bc.compile(scaled(mechanism, length), backend=backend, **options)
        self.places, self.speeds = scaled_by(self.system, mechanism, length)

    def state(self) -> bc.State:
        """Some closed state that moves."""
        q = self.system.assemble().q
        return self.system.project(q, np.random.default_rng(0).normal(size=self.system.nu) * self.speeds)

    def dynamics(self) -> list[Floats]:
        """Assembly, degrees of freedom, forward and inverse dynamics, reactions, energy."""
        s, state = self.system, self.state()
        udot = s.forward_dynamics(state)
        loads = np.stack(list(s.reactions(state).values())) / np.repeat([self.length**2, self.length], 3)
        model = s.reduced(state)
        return [state.q / self.places, state.u / self.speeds, udot / self.speeds, loads,
                s.inverse_dynamics(state, udot=udot) * self.speeds / self.length**2, np.array([s.dof]),
                s.energy(state) / self.length**2, model.bias * self.speeds[list(model.entries)] / self.length**2]


@cache
def unscaled(name: str, what: str) -> list[Floats]:
    return list(getattr(Sized(name, 1.0), what)())


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", MACHINES)
def test_dynamics_of_any_size(name: str, length: float) -> None:
    for found, wanted in zip(Sized(name, length).dynamics(), unscaled(name, "dynamics"), strict=True):
        assert np.abs(found - wanted).max(initial=0.0) <= 1e-12 * (1.0 + np.abs(wanted).max(initial=0.0))


@pytest.mark.everyday(4)
@pytest.mark.parametrize(("name", "method"), (("stewart", "complement"), *product(("delta", "slider_crank"), (
    "reduction", "kane", "recursive", "operator", "divide", "momenta"))))
def test_methods_of_any_size(name: str, method: str) -> None:
    """Lengths and angles are pivots side by side, whatever the method."""
    wanted = Sized(name, 1.0, method=method)
    for length in (2.0**-20, 2.0**20):
        at = Sized(name, length, method=method)
        udot = [x.system.forward_dynamics(x.state()) / x.speeds for x in (at, wanted)]
        assert np.abs(udot[0] - udot[1]).max() <= 1e-12 * (1.0 + np.abs(udot[1]).max())


def runs(at: Sized) -> dict[str, Any]:
    """Fixed and adaptive steps, an event."""
    s, start = at.system, at.state()
    place = float(start.q[0])
    out: dict[str, Any] = {}
    for stepper, step in (("rk4", 2e-3), ("gauss", 1e-2), ("dop853", None)):
        event = bc.Event(lambda t, q, u: q[0] - place - 0.01 * at.places[0], "passed")
        run = s.simulate(start, 0.05, step=step, stepper=stepper, events=[event], output=0.01)
        out[stepper] = run.q.values / at.places
        out[stepper + " events"] = run.event_time.values
        assert run.attrs["status"] == "finished"
    return out


@pytest.mark.parametrize("name", ("slider_crank", "excavator"))
def test_runs_of_any_size(name: str) -> None:
    wanted = runs(Sized(name, 1.0, "llvm"))
    for length in (2.0**-20, 2.0**20):
        found = runs(Sized(name, length, "llvm"))
        for key, values in wanted.items():
            assert np.abs(found[key] - values).max(initial=0.0) < (1e-7 if "dop" in key else 1e-11), (key, length)


def analyses(at: Sized) -> dict[str, Any]:
    """Equilibrium, modes, a driven motion, branches."""
    s = at.system
    rest = bc.analyze.equilibrium(s, at.state().q)
    modes = bc.analyze.modes(s, rest)
    first = s.coordinate_names[0].partition(".")[0]
    q0 = float(s.assemble().q[0])
    drive = bc.analyze.drive(s, {first: lambda t: q0 + 0.3 * t}, np.linspace(0.0, 1.0, 11))
    curve = bc.analyze.coupler_curve(s, first, s.body_names[1], np.array([0.2, 0.1, 0.0]) * at.length,
                                     values=q0 + np.linspace(0.0, 0.3, 7))
    branches = bc.analyze.branches(s, {first: q0}, tries=20, seed=1)
    model = bc.analyze.linearize(s, rest)
    return {"rest": rest.q / at.places, "frequencies": modes.angular, "drive": drive.q.values / at.places,
            "forces": drive.tau.values * at.speeds / at.length**2, "curve": curve.points / at.length,
            "branches": np.array([b.q / at.places for b in branches]),
            "poles": np.sort_complex(np.linalg.eigvals(model.A))}


@pytest.mark.parametrize("name", ("slider_crank", "excavator"))
def test_analyses_of_any_size(name: str) -> None:
    wanted = analyses(Sized(name, 1.0))
    for length in (2.0**-20, 2.0**20):
        found = analyses(Sized(name, length))
        for key, values in wanted.items():
            assert found[key].shape == values.shape, (key, length)
            assert np.abs(found[key] - values).max(initial=0.0) <= 1e-9 * (1.0 + np.abs(values).max()), (key, length)


@pytest.mark.parametrize("length", (2.0**-24, 2.0**-20, 1.0, 2.0**20))
def test_open_machines_are_refused_at_any_size(length: float) -> None:
    at = Sized("four_bar", length)
    s, state = at.system, at.state()
    q = state.q.copy()
    q[1] += 1e-5
    with pytest.raises(bc.StateError, match="open"):
        s.simulate((q, state.u), 0.01)
    with pytest.raises(bc.StateError, match="open"):
        bc.analyze.linearize(s, (q, state.u))
    with pytest.raises(bc.StateError, match="open the loop"):
        s.inverse_dynamics(q, state.u, np.zeros(s.nu))
    with pytest.raises(bc.AssemblyError, match="contradict"):
        s.assemble(q={"A": 0.5}, u={"A": 1.0, "B": 5.0})


def test_a_turn_of_a_large_machine_is_closed() -> None:
    """A coupler curve of numbers of 1e4 and more, as of a machine in micrometres."""
    curves = [bc.analyze.coupler_curve(at.system, "A", "coupler", (0.5 * at.length, 0.2 * at.length, 0), samples=31)
              for at in (Sized("four_bar", 1.0), Sized("four_bar", 2.0**17))]
    assert curves[1].closed and curves[1].length / 2.0**17 == pytest.approx(curves[0].length, rel=1e-12)
