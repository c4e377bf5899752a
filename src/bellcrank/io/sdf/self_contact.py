"""Links of one SDF model touch each other only where the file says so: <self_collide> of the model, or of one of the
two links, which has the last word. What the file does not let touch becomes rules for `Mechanism.add_contacts`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from bellcrank.io.sdf.frames import FrameNode, Scope
from bellcrank.io.sdf.text_values import boolean
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["keep_apart"]


def keep_apart(machine: Mechanism, links: Iterable[FrameNode]) -> None:
    """Rules for pairs of links of one model that must not touch. Cost: the square of the links of a model."""
    shaped = {shape.body for shape in machine.shapes if shape.role == "collision"}
    models: dict[int, list[str]] = {}
    for node in links:
        model = node.scope.owner
        if machine.body(node.name).index in shaped and not model.static and not _touches_own(node, model):
            models.setdefault(id(model), []).append(node.name)
    for names in models.values():
        for first, second in combinations(names, 2):
            machine.set_contact_rule(first, second, touch=False)


def _touches_own(node: FrameNode, model: Scope) -> bool:
    own = node.element.first("self_collide")
    return model.self_collide if own is None else boolean(own, own.text)
