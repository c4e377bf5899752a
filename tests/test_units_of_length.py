"""Everything in four units of length: the gallery, contacts, ready-made elements and analyses of machines described in
millimetres, micrometres and kilometres give the numbers of those in metres, scaled.

An everyday run takes a few of the cases; ``pytest --all`` takes the product.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.arrays import Floats
from scaled_machines import scaled, scaled_by
from test_contact_shapes import SHAPES

#: how many of the unit a metre is, nearly: powers of two, by which numbers scale exactly; then tiny machines in metres
UNITS = {"mm": 2.0**10, "um": 2.0**20, "km": 2.0**-10, "tiny": 2.0**-20}
GALLERY = sorted((Path(__file__).parents[1] / "examples" / "gallery").glob("*.py"))
Numbers = dict[str, Floats]


class _CompiledError(Exception):
    """Ends a program of the gallery at its first machine."""


@cache
def of_gallery(file: Path) -> tuple[bc.Mechanism, dict[str, Any]]:
    """The machine of a program, and how it is compiled."""
    found: list[tuple[bc.Mechanism, dict[str, Any]]] = []

    def compiled(mechanism: bc.Mechanism, **options: Any) -> bc.System:
        found.append((mechanism, options))
        raise _CompiledError

    with pytest.MonkeyPatch.context() as patch, pytest.raises(_CompiledError):
        patch.setattr(bc, "compile", compiled)
        runpy.run_path(str(file))["run"](0.02)
    return found[0]


class Sized:
    """A machine in one unit."""

    def __init__(self, mechanism: bc.Mechanism, length: float, **options: Any) -> None:
        self.length = length
        self.system = bc.compile(scaled(mechanism, length), **{"backend": "numpy", **options})
        self.places, self.speeds = scaled_by(self.system, mechanism, length)

    def state(self, q: Floats | None = None) -> bc.State:
        """One that moves; `q` in metres."""
        where = self.system.assemble().q if q is None else q * self.places
        return self.system.project(where, np.random.default_rng(1).normal(size=self.system.nu) * self.speeds)

    def dynamics(self, state: bc.State) -> Numbers:
        """What the equations of motion give."""
        s, udot = self.system, self.system.forward_dynamics(state)
        loads = s.reactions(state)
        return {"q": state.q / self.places, "u": state.u / self.speeds, "udot": udot / self.speeds,
                "loads": np.array([x / np.repeat([self.length**2, self.length], 3) for x in loads.values()]),
                "forces": s.inverse_dynamics(state, udot=udot) * self.speeds / self.length**2,
                "energy": np.atleast_1d(s.energy(state)) / self.length**2, "freedom": np.array([s.dof])}


def agree(found: Numbers, wanted: Numbers, part: float) -> None:
    """Same names, same shapes, same numbers as a part of the largest."""
    assert found.keys() == wanted.keys()
    for key, values in wanted.items():
        assert found[key].shape == values.shape, key
        assert np.abs(found[key] - values).max(initial=0.0) <= part * (1.0 + np.abs(values).max(initial=0.0)), key


# -- the gallery ------------------------------------------------------------------------------------------------------
@cache
def gallery_numbers(file: Path, length: float) -> Numbers:
    mechanism, options = of_gallery(file)
    at = Sized(mechanism, length, **options)
    return at.dynamics(at.state())


@pytest.mark.everyday(6)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("file", GALLERY, ids=lambda file: file.stem)
def test_the_gallery(file: Path, unit: str) -> None:
    agree(gallery_numbers(file, UNITS[unit]), gallery_numbers(file, 1.0), 1e-11)


# -- ready-made elements ----------------------------------------------------------------------------------------------
def workshop() -> bc.Mechanism:
    """One of every ready-made element, on a cart, a swinging arm and shafts."""
    m = bc.Mechanism("workshop")
    cart = m.add_body("cart", bc.Inertia.box(20.0, (1.0, 0.5, 0.2)))
    arm = m.add_body("arm", bc.Inertia.rod(3.0, (0, 0, 0), (0, 0, -0.8)))
    m.add_joint("track", bc.Prismatic("x"), m.ground, cart, bc.Pose((0, 0, 0.5)))
    m.add_joint("pivot", bc.Revolute("y"), cart, arm)
    wheel = m.add_body("wheel", bc.Inertia.cylinder(8.0, 0.3, 0.2, "y"))
    m.add_joint("free", bc.Free(), m.ground, wheel)
    for name in ("motor", "drum"):
        m.add_joint(name, bc.Revolute("z"), m.ground, m.add_body(name, bc.Inertia.sphere(1.0, 0.1)), bc.Pose((0, 2, 0)))
    m.add_tyre("tyre", wheel, radius=0.3, stiffness=2e4, damping=150.0, half_length=0.05, rolling=0.01,
               relaxation=(0.3, 0.2))
    m.add_tyre("spare", wheel, radius=0.32, stiffness=1e3, damping=50.0, model="magic", e=-0.2)
    m.add_gas_spring("gas", cart, arm, (0.3, 0, 0.1), (0, 0, -0.4), force=200.0, length=0.6, reach=0.5, damping=20.0)
    m.add_bump_stop("stop", cart, arm, (0.3, 0, 0.1), (0, 0, -0.5), upper=0.2, stiffness=1e4, progression=1e5)
    m.add_hydraulic_cylinder("lift", cart, arm, (-0.4, 0, 0), (0, 0, -0.3), head_area=2e-4, rod_area=1e-4, closed=0.1,
                             stroke=1.2, leakage=1e-13, friction=5.0, opening=0.4, gain=1e-8, initial=(2e5, 1.9999e7))
    m.add_torsion_bar("bar", "pivot", length=0.9, diameter=0.01, damping=1.0, rest=0.1)
    m.add_belt("belt", {"motor": 0.1, "drum": 0.2}, stiffness=1e3, pretension=50.0, damping=10.0)
    m.add_dc_motor("drive", "motor", voltage=12.0, resistance=2.0, inductance=1e-2, constant=0.05, gear=3.0)
    m.add_brake("brake", "track", capacity=4.0)
    m.add_clutch("clutch", "motor", "drum", capacity=0.5)
    m.add_rolling_resistance("roll", "drum", coefficient=0.01, radius=0.3, load=100.0)
    m.add_drag("air", cart, coefficient=0.4, area=0.5, at=(0.1, 0, 0), wind=(3.0, 1.0, 0))
    m.add_bushing("rubber", m.ground, cart, stiffness=(10.0, 20.0, 30.0), turn_stiffness=(1.0, 2.0, 3.0),
                  damping=(1.0, 2.0, 3.0))
    m.add_friction("guide", "track", coulomb=2.0, viscous=5.0, static=3.0)
    m.add_limit("end", "track", upper=0.01, stiffness=1e4, damping=10.0)
    m.add_servo("hold", "track", target=0.2, stiffness=100.0, damping=10.0, limit=15.0)
    m.add_armature("rotor", "motor", 0.01)
    return m


@cache
def workshop_numbers(length: float) -> Numbers:
    at = Sized(workshop(), length)
    records = {r.name: r for r in at.system.model.configuration.records}
    q = np.concatenate([[1.0, 0.1, 0.05, 0.02, 0.3, 0.1, 0.29] if r.name == "free" else np.full(r.joint.nq, 0.05)
                        for r in records.values()])
    q[at.system.coordinate_names.index("free.qw"):][:4] /= np.linalg.norm([1.0, 0.1, 0.05, 0.02])
    return at.dynamics(at.state(q))


@pytest.mark.parametrize("unit", UNITS)
def test_ready_made_elements(unit: str) -> None:
    agree(workshop_numbers(UNITS[unit]), workshop_numbers(1.0), 1e-11)


# -- contact ----------------------------------------------------------------------------------------------------------
PAIRS = [("sphere", "plane"), ("box", "plane"), ("capsule", "box"), ("cylinder", "cylinder"), ("box", "mesh"),
         ("sphere", "field"), ("sphere", "capsule"), ("mesh", "plane")]
MATERIALS: dict[str, dict[str, Any]] = {
    "linear": {"stiffness": 1e4, "dissipation": 0.2, "friction": 0.5},
    "hertz": {"stiffness": 1e5, "dissipation": 0.2, "exponent": 1.5, "friction": 0.5},
    "bristle": {"stiffness": 1e4, "dissipation": 0.2, "friction": 0.5, "friction_model": "bristle"}}


def touching(one: str, other: str, material: dict[str, Any]) -> bc.Mechanism:
    """A shape on a free body above another one on the ground."""
    m = bc.Mechanism(f"{one} on {other}")
    body = m.add_body("body", bc.Inertia(1.0, (0.01, 0.02, 0), (0.004, 0.003, 0.002)))
    m.add_joint("free", bc.Free(), m.ground, body)
    m.add_shape(body, SHAPES[one], role="collision")
    m.add_shape(m.ground, SHAPES[other], role="collision", pose=bc.Pose.rpy((0.01, 0, 0), 0.02, 0.01, 0.3))
    m.add_contact("touch", m.ground, body, **material)
    return m


@cache
def contact_numbers(pair: tuple[str, str], material: str, length: float) -> Numbers:
    """Accelerations at heights from deep inside to just outside."""
    at = Sized(touching(*pair, MATERIALS[material]), length)
    rng, n = np.random.default_rng(2), 25
    q, u = np.zeros((n, at.system.nq)), rng.normal(size=(n, at.system.nu))
    q[:, :4] = rng.normal(size=(n, 4))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    q[:, 4:7] = np.stack([np.full(n, 0.02), np.full(n, -0.03), np.linspace(0.05, 0.5, n)], axis=1)
    return {"udot": at.system.forward_dynamics(q * at.places, u * at.speeds) / at.speeds}


@pytest.mark.everyday(6)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("material", MATERIALS)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_compliant_contacts(pair: tuple[str, str], material: str, unit: str) -> None:
    wanted = contact_numbers(pair, material, 1.0)
    assert (np.abs(wanted["udot"][:, :6]).max(axis=1) > 20.0).sum() > 5, "they touch"
    agree(contact_numbers(pair, material, UNITS[unit]), wanted, 1e-9)


# -- analyses ---------------------------------------------------------------------------------------------------------
def linkage(name: str) -> Callable[[], bc.Mechanism]:
    return lambda: bc.load(name)


def sprung(name: str, joint: str, stiffness: float) -> Callable[[], bc.Mechanism]:
    """A built-in machine that a spring holds."""
    def made() -> bc.Mechanism:
        m = bc.load(name)
        m.add_joint_spring("spring", joint, stiffness=stiffness, damping=0.05 * stiffness, rest=0.2)
        return m

    return made


#: machines, and a driven joint with a range of it in metres or radians
ANALYZED: dict[str, tuple[Callable[[], bc.Mechanism], str, tuple[float, float]]] = {
    "four_bar": (sprung("four_bar", "A", 200.0), "A", (0.2, 0.9)),
    "slider_crank": (sprung("slider_crank", "crank", 5.0), "crank", (0.2, 0.9)),
    "quarter_car": (linkage("quarter_car"), "arm", (-0.2, 0.1)),
    "scissor_lift": (sprung("scissor_lift", "slide", 3e3), "slide", (-0.1, 0.0))}


def at_rest(at: Sized, joint: str, ends: Floats) -> Numbers:
    rest = bc.analyze.equilibrium(at.system, at.system.assemble(q={joint: float(ends[0])}).q)
    modes, model = bc.analyze.modes(at.system, rest), bc.analyze.linearize(at.system, rest)
    return {"rest": rest.q / at.places, "frequencies": modes.angular,
            "eigenvalues": np.sort_complex(np.linalg.eigvals(model.A))}


def driven(at: Sized, joint: str, ends: Floats) -> Numbers:
    start = at.system.assemble(q={joint: float(ends[0])}).q
    rate = float(ends[1] - ends[0])
    run = bc.analyze.drive(at.system, {joint: lambda t: float(ends[0]) + rate * t}, np.linspace(0.0, 1.0, 5),
                           guess=start)
    point = np.array([0.2, 0.1, 0.0]) * at.length
    curve = bc.analyze.coupler_curve(at.system, joint, at.system.body_names[1], point, values=np.linspace(*ends, 5),
                                     guess=start)
    return {"q": run.q.values / at.places, "u": run.u.values / at.speeds,
            "tau": run.tau.values * at.speeds / at.length**2, "curve": curve.points / at.length}


def assembled(at: Sized, joint: str, ends: Floats) -> Numbers:
    reach = bc.analyze.workspace(at.system, at.system.body_names[-1], ranges={joint: (float(min(ends)),
                                 float(max(ends)))}, samples=20)
    held = {joint: float(ends[0])}
    found = bc.analyze.branches(at.system, held, tries=20)
    return {"reach": reach.points / at.length, "branches": np.array([x.q / at.places for x in found]),
            "near": at.system.assemble(q=held).q / at.places}


def shown(at: Sized, joint: str, ends: Floats) -> Numbers:
    """The inertial parameters that forces show; columns of masses, first and second moments."""
    base = bc.analyze.base_parameters(at.system, 20)
    units = np.resize([1.0, *(at.length,) * 3, *(at.length**2,) * 6], len(base.every))
    return {"columns": np.array(base.columns), "matrix": base.matrix * units / units[list(base.columns)][:, None]}


ANALYSES = {"at rest": at_rest, "driven": driven, "assembled": assembled, "shown": shown}


@cache
def analysis_numbers(name: str, analysis: str, length: float) -> Numbers:
    mechanism, joint, ends = ANALYZED[name]
    at = Sized(mechanism(), length)
    place = at.system.coordinate_names.index(joint) if joint in at.system.coordinate_names else 0
    return ANALYSES[analysis](at, joint, np.array(ends) * at.places[place])


@pytest.mark.everyday(8)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("analysis", ANALYSES)
@pytest.mark.parametrize("name", ANALYZED)
def test_analyses(name: str, analysis: str, unit: str) -> None:
    agree(analysis_numbers(name, analysis, UNITS[unit]), analysis_numbers(name, analysis, 1.0), 1e-9)
