"""Derivatives of random machines with loops, cut at random, by coordinates, speeds, accelerations and parameters of
poses, masses and springs: against central differences of the machine, put together again with what is held."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.analyze.minimal import GivenSpeeds, with_laws, with_links
from looped_graphs import TREE, Graph, build
from test_closed_derivatives import outputs_of
from test_loop_agreement import state_of, tolerance

STEP = 1e-4
#: of those that can be compared
SEEDS = (2, 10, 12)
#: what closes loops and is seldom redundant, so that machines close with other parameters, too
FREE = ("Spherical", "Universal", "Distance", "PointOnPlane", "PointOnLine", "RollingBall", "KnifeEdge")


class Motion(NamedTuple):
    """A closed state with accelerations."""

    q: np.ndarray
    u: np.ndarray
    udot: np.ndarray


Value = Callable[[bc.System, Motion, str], Any]
#: functions by what they take, and what they compute
FUNCTIONS: dict[str, tuple[str, Value]] = {
    "forward_dynamics": ("q u", lambda s, x, body: s.forward_dynamics(x.q, x.u)),
    "inverse_dynamics": ("q u udot", lambda s, x, body: s.inverse_dynamics(*x)),
    "reactions": ("q u", lambda s, x, body: np.stack([*s.reactions(x.q, x.u).values()])),
    "energy": ("q u", lambda s, x, body: s.energy(x.q, x.u)),
    "momentum": ("q u", lambda s, x, body: s.momentum(x.q, x.u)),
    "pose": ("q", lambda s, x, body: np.append(s.pose(x.q, body).rotation, s.pose(x.q, body).position)),
    "velocity": ("q u", lambda s, x, body: s.velocity(x.q, x.u, body)),
    "acceleration": ("q u udot", lambda s, x, body: s.acceleration(*x, body)),
    "outputs": ("q u", lambda s, x, body: outputs_of(s, bc.State(x.q, x.u, np.float64(0.0)))),
    "joint_coordinates": ("q", lambda s, x, body: x.q),
    "joint_speeds": ("q u", lambda s, x, body: x.u),
    "joint_accelerations": ("q u udot", lambda s, x, body: x.udot)}


def varied(m: bc.Mechanism, rng: np.random.Generator) -> bc.Mechanism:
    """The machine with places, directions and a mass that depend on parameters, which are zero."""
    a, b = m.parameter("a", 0.0), m.parameter("b", 0.0)

    def moved(pose: bc.Pose) -> bc.Pose:
        x, y, *shift = rng.normal(size=5)
        return pose @ bc.Pose.about(tuple(rng.normal(size=3)), a * x + b * y, tuple(a * z for z in shift))

    records = [replace(r, parent_pose=moved(r.parent_pose), child_pose=moved(r.child_pose)) for r in m.joints]
    xx, xy, xz, yy, yz, zz = m.bodies[0].inertia.inertia
    own = bc.Inertia(m.bodies[0].inertia.mass * (1.0 + a), tuple(x + 0.1 * b for x in m.bodies[0].inertia.com),
                     ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
    m.replace_parts([replace(m.bodies[0], inertia=own), *m.bodies[1:]], records, m.carriers)
    last = m.bodies[-1].name
    m.add_output("place", lambda at: at.position(last, (0.1, 0.2, 0.3)).x * at.parameter("a")
                 + at.position(last, (0.1, 0.2, 0.3)).y)
    m.add_output("speed", lambda at: at.velocity(last, (0.2, 0.1, 0.0)).x)
    return m


class Held:
    """Coordinates that columns belong to, in a machine whose joints have links for them."""

    def __init__(self, system: bc.System, columns: dict[str, tuple[str, ...]], at: Motion) -> None:
        self.names = [dict.fromkeys(x.rpartition(".")[0] for x in columns[k]) for k in "qu"]
        self.places, self.rates = ([system.speed_names.index(x) for x in columns[k]] for k in "qu")
        self.system, self.at = system, at

    def moved(self, x: str = "", k: int = 0, step: float = 0.0) -> tuple[bc.System, Motion]:
        """With one of them moved, sped, accelerated, or a parameter changed."""
        system = self.system.with_parameters(**{x: step}) if x in ("a", "b") else self.system
        wide = with_links(system, [*self.names[0], *self.names[1]], None) or system
        places, speeds = GivenSpeeds(wide, self.places, slipping=True), GivenSpeeds(wide, self.rates)
        q, u, udot = (np.array(y) for y in self.at)
        if x == "q":
            q = wide.integrate(q, step * np.eye(wide.nu)[self.places[k]])
        found, left = places.close(q[None])
        assert left[0] < 1e-10  # it closes with other parameters, too
        u[self.rates[k] if x == "u" else 0] += step if x == "u" else 0.0
        q, u = with_laws(wide, found[0], speeds.speeds(found[0], u), 0.0)
        udot[self.rates[k] if x == "udot" else 0] += step if x == "udot" else 0.0
        mask = wide.model.bound_mask()
        udot = np.where(mask, wide.kernels.run("prescribed", {"q": q, "u": u}), udot) if mask.any() else udot
        udot = speeds.accelerations(q, u, udot)
        if wide.model.tree.loop_joints:
            udot = wide.kernels.run("joint_accelerations", {"q": q, "u": u, "udot": udot})
        return system, Motion(q, u, udot)


def compiled_somehow(m: bc.Mechanism, rng: np.random.Generator) -> bc.System:
    """Cut, or with other independent speeds, by chance."""
    joints = [r.name for r in m.joints if r.joint.nu and r.prescribed is None]
    first, second = (str(rng.choice(joints)) for _ in range(2))
    how: dict[str, Any] = ({}, {"cut": [first]}, {"independent": [first]}, {"cut": [first], "actuated": [second]}
                           )[rng.integers(4)]
    return bc.compile(m, str(rng.choice(["elimination", "dense", "kane"])), "numpy", **how)


def random_graph(rng: np.random.Generator) -> Graph:
    """Some bodies, closed by what is seldom redundant, so that they close with other parameters, too."""
    n = int(rng.integers(3, 5))
    tree = tuple((str(rng.choice(TREE)), int(rng.integers(-1, i))) for i in range(n))
    ends = rng.permutation(np.arange(-1, n))[:2].tolist()
    return Graph(tree, ((str(rng.choice(FREE)), *ends),), int(rng.integers(2**n)), int(rng.integers(-3, n)),
                 bool(rng.integers(3) == 0), bool(rng.integers(3) == 0), False, int(rng.integers(2**16)))


def check(seed: int) -> bool:
    """Whether a machine could be compared, which it then was in two functions."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bc.BellcrankWarning)
        try:
            m = varied(build(graph), rng)
            plain, system = bc.compile(m, backend="numpy"), compiled_somehow(m, rng)
            state = state_of(plain, graph.seed)
            if state is None or not plain.dof or tolerance(plain, state[0]) > 1e-8:
                return False
            udot = system.forward_dynamics(state[0], state[1])
        except (bc.ModelError, bc.AssemblyError, bc.SingularError):
            return False
        if np.abs(udot).max() > 1e3:
            return False
        at = Motion(state[0], state[1], udot)
        return all(compare(system, m, at, str(name)) for name in rng.choice(sorted(FUNCTIONS), 2, replace=False))


def compare(system: bc.System, m: bc.Mechanism, at: Motion, function: str) -> bool:
    """Derivatives against differences; whether there were any."""
    body, (takes, value) = m.bodies[-1].name, FUNCTIONS[function]
    given_at = [getattr(at, x) for x in takes.split()]
    d = system.derivatives(function, *given_at, by=(*takes.split(), "a", "b"),
                           body=body if function in ("pose", "velocity", "acceleration") else None)
    held = Held(system, {"q": d.columns["q"], "u": d.columns.get("u", system.independent_speeds)}, at)
    for x in d:
        exact = d[x] if x in d.columns else d[x][..., None]
        for k in range(exact.shape[-1]):
            ahead, behind = (np.asarray(value(*held.moved(x, k, step), body)) for step in (STEP, -STEP))
            wanted = (ahead - behind) / (2.0 * STEP)
            size = 1.0 + np.abs(wanted).max(initial=0.0) + np.abs(ahead).max(initial=0.0)
            assert np.abs(exact[..., k] - wanted).max(initial=0.0) < 1e-4 * size, (x, k)
    return True


@pytest.mark.parametrize("seed", SEEDS)
def test_random_machines(seed: int) -> None:
    assert check(seed)
