"""What the writers of all formats share: what their files cannot hold, and numbers as text."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

from bellcrank.errors import BellcrankWarning, ModelError, outside
from bellcrank.files.model_files import write_text
from bellcrank.io.common.model_meshes import Meshes, MeshStore
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.geometry.placed_shape import PlacedShape
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["number_list", "refuse_elements", "warn_left_out", "write_model"]


def write_model(mechanism: Mechanism, path: str | os.PathLike[str], form: str, meshes: Meshes,
                text: Callable[[MeshStore], str]) -> None:
    """Write a file of another program and its meshes, whole or not at all; what no such file holds is refused."""
    _refuse(mechanism, form)
    store = MeshStore(os.fsdecode(path), meshes)
    made = text(store)
    store.write()
    write_text(path, made)


def _refuse(mechanism: Mechanism, form: str) -> None:
    """Refuse joints that close in a run, bodies that enter it, bodies that deform, and motions that are prescribed."""
    for name in mechanism.open_at_start:
        raise ModelError(f"{name!r} is open at the start (closed=False), which {form} cannot hold; save the machine in "
                         "Bellcrank's own form")
    for body in mechanism.absent_at_start:
        raise ModelError(f"body {body!r} enters a run later (present=False), which {form} cannot hold; save the "
                         "machine in Bellcrank's own form")
    for record in mechanism.joints:
        if isinstance(record.joint, Modal):
            raise ModelError(f"body {record.name!r} deforms, which {form} cannot hold; save it as .yaml or .json, or "
                             "give it an Inertia in place of the FlexibleBody")
        if record.prescribed is not None:
            raise ModelError(f"joint {record.name!r} follows a prescribed motion, which {form} cannot hold")


def refuse_elements(mechanism: Mechanism, form: str) -> None:
    """Refuse all that acts on bodies and between them, and along sums of joints."""
    m = mechanism
    for what, parts in (("wrench", m.wrenches), ("spring", m.springs), ("bushing", m.bushings), ("drag", m.drags),
                        ("contact", m.contacts), ("actuator", m.drives), ("constraint", m.constraints),
                        ("armature", m.armatures), ("joint force", m.joint_sums)):
        for part in parts:
            raise ModelError(f"{what} {part.name!r}: {form} cannot hold it")


# -- what the writers of shapes share: numbers as text, and what a format cannot show ---------------
def number_list(*values: float) -> str:
    """Numbers to the last bit, with spaces between them."""
    return " ".join(repr(v) for v in values)


def warn_left_out(placed: PlacedShape, why: str) -> None:
    """Say that a shape is not in the file that is written."""
    warnings.warn(f"shape {placed.name!r}: {why}; it is left out", BellcrankWarning, stacklevel=outside())
