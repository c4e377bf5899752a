"""A flexible body in the graph of bodies and joints: see `deformation`."""

from __future__ import annotations

import re
from typing import Any, Protocol

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.mechanism.flexible.deformation import HeldNode, Modal, NodeMotion
from bellcrank.mechanism.flexible.flexible_body import FlexibleBody
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.parts import Body, Connection
from bellcrank.mechanism.pose import Pose

__all__ = ["FRAME", "PartList", "add_deformation", "order_modes", "undeformed"]

#: the body that has a flexible body's inertia: its name, after that of the body and a dot
FRAME = "frame"


class PartList(Protocol):
    """What parts are added to."""

    def add_body(self, name: str, inertia: Inertia | FlexibleBody | None = None, *, present: bool = True) -> Any:
        """Add a body."""

    def add_joint(self, name: str, joint: Any, parent: Any, child: Any, parent_pose: Any = ...) -> Any:
        """Connect two bodies."""


def undeformed(flexible: FlexibleBody) -> Inertia:
    """The inertia of the body as it was made."""
    found = flexible.integrals
    com = found.moment / found.mass
    about = found.second - found.mass * (float(com @ com) * np.eye(3) - np.outer(com, com))
    return Inertia(found.mass, com.tolist(), about, checked=False)


def add_deformation(graph: PartList, name: str, flexible: FlexibleBody) -> None:
    """Add what deforms to a body that is there: its frame with the modal coordinates, and its nodes."""
    for node in flexible.names:
        if node == FRAME or re.fullmatch(r"mode\d+", node):
            raise ModelError(f"body {name!r}: a node cannot be called {node!r}; the library uses that name")
    frame = f"{name}.{FRAME}"
    graph.add_body(frame, undeformed(flexible))
    graph.add_joint(name, Modal(flexible), name, frame)
    for node, index in flexible.names.items():
        graph.add_body(f"{name}.{node}")
        if HeldNode.holds(flexible, index):
            graph.add_joint(f"{name}.{node}", HeldNode(flexible, index), name, f"{name}.{node}",
                            Pose(flexible.nodes[index].tolist()))
        else:
            graph.add_joint(f"{name}.{node}", NodeMotion(flexible, index), frame, f"{name}.{node}")


def order_modes(joints: dict[str, Connection], record: Connection, first: Body, second: Body) -> None:
    """Modal coordinates come after those of the first joint that their body is attached by, which is `record`. A joint
    at a part that is the library's own is taken out again."""
    if isinstance(record.joint, (Modal, NodeMotion)):
        return
    for end in (first, second):
        inboard = [r for r in joints.values() if r.child == end.index] if "." in end.name else []
        if inboard and isinstance(inboard[0].joint, Modal):
            del joints[record.name]
            raise ModelError(f"joint {record.name!r}: {end.name!r} is part of the flexible body {inboard[0].name!r}; "
                             "attach to that, or to one of its nodes")
    for end in (first, second):
        modal = joints.get(end.name)
        if modal is not None and isinstance(modal.joint, Modal) and modal.parent == end.index and not any(
                end.index in (r.parent, r.child) for r in joints.values()
                if r not in (record, modal) and not isinstance(r.joint, NodeMotion)):
            for r in [r for r in joints.values() if r is modal or (
                    isinstance(r.joint, NodeMotion) and r.parent in (end.index, modal.child))]:
                joints[r.name] = joints.pop(r.name)
