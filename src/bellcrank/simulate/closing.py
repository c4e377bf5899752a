"""Joints that close loops, as a run sees them: measured coordinates, speeds, forces along them, and how to hold them.

They have no place in q, u and tau. Their coordinates and speeds are expressions of those of the joints around their
loop; a force along them does the same as forces at those joints, by equal power for every motion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.loops.loop_paths import paths_between
from bellcrank.lowering.element_loads import closing_motion
from bellcrank.lowering.function import binder, direct
from bellcrank.lowering.looped import LoopedDirect
from bellcrank.mechanism.forces import Actuator
from bellcrank.mechanism.joints import Joint
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Number
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.spatial import Force, Vector
from bellcrank.system.force_elements import with_values
from bellcrank.system.kernels import Kernels
from bellcrank.system.loop_errors import loop_drive
from bellcrank.topology.tree import Closure, Tree

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["CutJoint", "closing_joints", "cut_joint", "given_wrenches", "limited", "numbers", "spread", "tree_forces",
           "unknown_joint", "unlimited"]


@dataclass(frozen=True)
class CutJoint:
    """A joint that closes a loop. Expressions have the leaves ("q", i), ("u", i), ("t", 0), ("parameters", i)."""

    name: str
    kind: Joint
    coordinates: tuple[Number, ...]  #: angles within half a turn; none of ball joints
    speeds: tuple[Number, ...]
    #: for every speed of the tree that moves it: its place, and the power of unit forces at unit speed
    powers: tuple[tuple[int, tuple[Number, ...]], ...]
    columns: tuple[Force, ...]  #: what unit forces exert on the child at `point`, in the ground link's frame
    point: Vector

    def value(self, what: str, k: int, leaf: Callable[[Any], Number]) -> Number:
        """A coordinate or speed, with numbers for the leaves."""
        return evaluate([getattr(self, what)[k]], leaf)[0]

    def row(self, k: int, nu: int, leaf: Callable[[Any], Number]) -> Floats:
        """How much each speed of the tree adds to speed k of the joint, shape (nu,)."""
        out = np.zeros(nu)
        for entry, each in self.powers:
            out[entry] = float(evaluate([each[k]], leaf)[0])
        return out

    def acceleration(self, k: int, system: Machine, t: float, q: Floats, u: Floats, udot: Floats) -> float:
        """Rate of speed k of the joint."""
        rates = {"q": (q, system.model.configuration.qdot(q, u)), "u": (u, udot), "t": (np.array([t]), np.ones(1))}

        def leaf(key: Any) -> Number:
            name, i = key
            if name == "parameters":
                return Jet(_parameter(system, i), 0.0, 0.0)
            value, rate = rates[name]
            return Jet(float(value[i]), float(rate[i]), 0.0)

        return float(as_jet(self.value("speeds", k, leaf)).rate)


def numbers(system: Machine, t: Any, q: Floats, u: Floats) -> Callable[[Any], Number]:
    """What the leaves of expressions stand for, at states (..., nq) and (..., nu)."""
    def leaf(key: Any) -> Number:
        name, i = key
        if name == "parameters":
            return _parameter(system, i)
        return {"q": q, "u": u}[name][..., i] if name in ("q", "u") else t

    return leaf


def _parameter(system: Machine, i: int) -> Number:
    """A parameter; of a batch of states, one value for each."""
    value = np.asarray(list(system.model.values.values())[i], dtype=float)
    return value.ravel() if value.ndim else float(value)


def closing_joints(system: Machine) -> tuple[str, ...]:
    """Joints with speeds of their own that close loops of a machine, or would if `release` had not opened them."""
    tree = system.model.whole or system.model.tree
    return tuple(c.name for c in tree.closures if c.is_joint and c.kind.nu)


def unknown_joint(system: Machine, joint: str, known: Sequence[str]) -> ModelError:
    """A joint that a run cannot look at: it is not there, or it was cut and cannot be measured."""
    from bellcrank.errors import hint

    if joint in system.model.tree.cut_names:
        return ModelError(f"joint {joint!r} was cut to close a loop, and its coordinates cannot be measured one by "
                          f"one; compile with actuated=[{joint!r}], which lets it keep them, or with cut= another "
                          "joint of that loop")
    return ModelError(f"no joint {joint!r}; there are {', '.join(known)}{hint(joint, known)}")


def cut_joint(system: Machine, joint: str, graph: Graph | None = None) -> CutJoint | None:
    """A closing joint by expressions of a graph; None if nothing of that name closes a loop."""
    tree = system.model.whole or system.model.tree
    found = [c for c in tree.closures if c.name == joint and c.is_joint]
    if not found:
        return None
    leaf = (Graph() if graph is None else graph).leaf
    return _traced(replace(tree, pairs=()), found[0], lambda name, i: leaf((name, i)))


def _traced(tree: Tree, c: Closure, read: Callable[[str, int], Number]) -> CutJoint:
    sweeps = direct(tree, ("q", "u"), read, False)
    assert isinstance(sweeps, LoopedDirect)
    motion = closing_motion(c, sweeps.moving.__getitem__, sweeps.bind)
    return CutJoint(c.name, (c.free or c).kind, motion.coordinates, motion.speeds,
                    _powers(tree, c, motion.speeds, read), motion.columns, motion.point)


def _powers(tree: Tree, c: Closure, speeds: Sequence[Number], read: Callable[[str, int], Number]
            ) -> tuple[tuple[int, tuple[Number, ...]], ...]:
    """What a unit of each speed around the loop adds: speeds are linear in u, less what prescribed joints do."""
    def at(entry: int) -> list[Number]:
        return evaluate(list(speeds), lambda key: float(key[1] == entry) if key[0] == "u" else read(*key))

    still = at(-1)
    out = []
    for link in (k for path in paths_between(tree, c.first, c.second) for k in path):
        joint = tree.joints[link]
        assert joint is not None
        for entry in range(int(tree.u_start[link]), int(tree.u_start[link]) + joint.nu):
            out.append((entry, tuple(x - y for x, y in zip(at(entry), still, strict=True))))
    return tuple(out)


# -- forces -----------------------------------------------------------------------------------------
def spread(system: Machine, cuts: Sequence[str]) -> list[Number]:
    """Joint forces of the tree for the input "tau": those of the tree within the limits of actuators, then those of the
    closing joints `cuts`, which these do not limit.

    Forces along a joint whose loop is open at present do nothing.
    """
    graph = Graph()
    out: list[Number] = [graph.leaf(("tau", i)) for i in range(system.nu)]
    if limited(system, cuts):
        bind = binder(system.model.tree, lambda name, i: graph.leaf((name, i)))
        for entry, actuator in _actuators(system):
            out[entry] = bind(actuator).output(out[entry], graph.leaf(("u", entry)))
    closed = {c.name for c in system.model.tree.closures}
    at = system.nu
    for name in cuts:
        joint = cut_joint(system, name, graph)
        assert joint is not None
        forces = [graph.leaf(("tau", at + k)) for k in range(joint.kind.nu)]
        at += joint.kind.nu
        for entry, each in joint.powers if name in closed else ():
            for force, power in zip(forces, each, strict=True):
                out[entry] = out[entry] + force * power
    return out


def limited(system: Machine, cuts: Sequence[str]) -> bool:
    """Whether actuators limit some of the forces given, and those of the closing joints `cuts` act beside them."""
    return bool(cuts and system.model.mechanism.drives)


def unlimited(system: Machine) -> Machine:
    """The same machine with actuators that give what they are asked for."""
    if not system.model.tree.actuators:
        return system
    free = replace(system.model, tree=replace(system.model.tree, actuators={}))
    kernels = system.kernels.kept("unlimited", lambda: Kernels(free, system.kernels.maker))
    return type(system)(kernels.for_model(free))


def _actuators(system: Machine) -> list[tuple[int, Actuator]]:
    """Actuators, each with the place among the speeds that it drives."""
    starts = system.model.configuration.starts
    return [(starts[d.joint][1] + d.coordinate, d.actuator) for d in system.model.mechanism.drives]


def tree_forces(system: Machine, cuts: Sequence[str], rows: Floats, q: Floats, u: Floats, t: npt.ArrayLike) -> Floats:
    """The same on arrays: rows (..., nu and those of cuts) at q (..., nq) and u (..., nu) -> (..., nu)."""
    if not cuts:
        return rows
    if limited(system, cuts):
        rows = rows.copy()
        for entry, actuator in _actuators(system):
            rows[..., entry] = with_values(system.plans, actuator).output(rows[..., entry], u[..., entry])
    closed = {c.name for c in system.model.tree.closures if c.is_joint and c.kind.nu}  # none that is held
    at, forces = system.nu, {}
    for name in cuts:
        n = system.model.mechanism.joint(name).joint.nu
        if name in closed:
            forces[name] = rows[..., at:at + n]
        at += n
    return np.asarray(rows[..., :system.nu] + loop_drive(system.plans, q, forces, t=t))


def given_wrenches(system: Machine, joint: str, forces: Floats, q: Floats, t: npt.ArrayLike) -> tuple[Floats, Floats]:
    """What forces (..., nu of the joint) of a closing joint exert at q (..., nq): on all bodies, as external wrenches
    (..., bodies, 6), and on its child about the joint's point there (..., 6), world axes."""
    cut, record = cut_joint(system, joint), system.model.mechanism.joint(joint)
    assert cut is not None
    leaf, lead = numbers(system, t, q, np.zeros(system.nu)), q.shape[:-1]

    def world(vectors: Sequence[Vector]) -> Floats:
        entries = evaluate([x for v in vectors for x in v], leaf)
        rows = np.stack([np.broadcast_to(np.asarray(x, dtype=float), lead) for x in entries], axis=-1)
        return np.asarray(rows.reshape(*lead, len(vectors), 3) @ system.model.tree.ground_turn.T)

    point = world([cut.point])[..., 0, :] + system.model.tree.ground_shift
    own = np.concatenate([(world([getattr(c, part) for c in cut.columns]) * forces[..., None]).sum(axis=-2)
                          for part in ("moment", "force")], axis=-1)
    bodies = np.zeros((*lead, len(system.model.tree.body_names) - 1, 6))
    for index, sign in ((record.parent, -1.0), (record.child, 1.0)):
        if index:
            arm = point - system.pose(q, system.model.tree.body_names[index], t=t).position
            bodies[..., index - 1, :3] += sign * (own[..., :3] + np.cross(arm, own[..., 3:]))
            bodies[..., index - 1, 3:] += sign * own[..., 3:]
    return bodies, own
