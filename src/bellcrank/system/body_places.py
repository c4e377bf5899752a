"""Bodies and frames by name: where they lie on their links, and the functions that ask about one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, hint
from bellcrank.formulations.common.body_kinetics import AT_BODY, BodyPlace, all_poses
from bellcrank.lowering.function import Function
from bellcrank.lowering.looped import require_direct
from bellcrank.mechanism.mechanism import Body
from bellcrank.mechanism.parts import Frame
from bellcrank.mechanism.turns import Rows, apply, product
from bellcrank.schedule.sweeps import Direct
from bellcrank.spatial import Vector

if TYPE_CHECKING:
    from bellcrank.system.model import Model

__all__ = ["body_and_frame", "body_function", "body_place", "poses_function"]


def body_and_frame(model: Model, body: str) -> tuple[int, Frame | None]:
    """The index of a body, or of the body of a frame, which is the second."""
    if not isinstance(body, (str, Body)):
        raise ModelError(f"bodies and frames are given by their names, got {type(body).__name__}")
    frame = next((f for f in model.mechanism.frames if f.name == body), None)
    try:
        return frame.body if frame else model.mechanism.body(body).index, frame
    except ModelError:
        names = [f.name for f in model.mechanism.frames]
        if not names or not isinstance(body, str):
            raise
        raise ModelError(f"no body called {body!r} in mechanism {model.name!r}, nor a frame"
                         f"{hint(body, (*model.body_names, *names))}") from None


def body_place(model: Model, body: str) -> tuple[int, Floats, Floats]:
    """Link of a body or frame, and its pose in the link frame."""
    tree, (index, frame) = model.tree, body_and_frame(model, body)
    turn, shift = tree.body_turn[index], model.body_shift(index)
    if frame is None:
        return int(tree.body_link[index]), turn, shift
    at, own = model.values_of(frame.pose.position), model.values_of(frame.pose.rows)
    return (int(tree.body_link[index]), turn @ own.reshape(*own.shape[:-1], 3, 3),
            shift + np.asarray((turn @ at[..., None])[..., 0]))


def poses_function(model: Model, name: str) -> Function:
    """The poses of all bodies, in the order of their names."""
    bodies = tuple(_place_on_link(model, body) for body in model.body_names)
    return Function(name, lambda tree: all_poses(cast(Direct, tree), require_direct(tree).bind(bodies)), ("q",),
                    "totals", 12 * len(bodies), single=True, flexible=True)


def _place_on_link(model: Model, body: str) -> BodyPlace:
    """The same as `body_place`, in numbers and expressions of parameters."""
    tree, (index, frame) = model.tree, body_and_frame(model, body)
    shift = Vector(*tree.body_shift_symbolic.get(index, tuple(tree.body_shift[index].tolist())))
    turn: Rows = tuple(tree.body_turn[index].ravel().tolist())
    if frame is not None:
        shift = shift + Vector(*apply(turn, frame.pose.position))
        turn = product(turn, frame.pose.rows)
    return BodyPlace(int(tree.body_link[index]), (turn[0:3], turn[3:6], turn[6:9]), tuple(shift))


def body_function(model: Model, what: str, body: str, name: str) -> Function | None:
    """The function of one body or frame; None if it belongs to the ground."""
    at = _place_on_link(model, body)
    if at.link == 0:
        return None
    text, inputs, width = AT_BODY[what]
    size = width if width > 0 else -width * model.tree.nu
    return Function(name, lambda tree: text(cast(Direct, tree), require_direct(tree).bind(at)), inputs, "totals", size,
                    single=True, flexible=True)
