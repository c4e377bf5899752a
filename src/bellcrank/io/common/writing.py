"""What the writers of all formats share: what their files cannot hold, and numbers as text."""

from __future__ import annotations

import warnings

from bellcrank.errors import BellcrankWarning, ModelError, outside
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.geometry.placed_shape import PlacedShape
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["number_list", "refuse_changing", "refuse_deforming", "warn_left_out"]


# -- files of other programs know no joints that close in a run, and no bodies that enter it --------
def refuse_changing(mechanism: Mechanism, form: str) -> None:
    """Refuse what such a file cannot hold."""
    for name in mechanism.open_at_start:
        raise ModelError(f"{name!r} is open at the start (closed=False), which {form} cannot hold; save the machine in "
                         "Bellcrank's own form")
    for body in mechanism.absent_at_start:
        raise ModelError(f"body {body!r} enters a run later (present=False), which {form} cannot hold; save the "
                         "machine in Bellcrank's own form")


# -- files of other programs hold no bodies that deform ---------------------------------------------
def refuse_deforming(mechanism: Mechanism, form: str) -> None:
    """Say which body deforms."""
    for record in mechanism.joints:
        if isinstance(record.joint, Modal):
            raise ModelError(f"body {record.name!r} deforms, which {form} cannot hold; save it as .yaml or .json, or "
                             "give it an Inertia in place of the FlexibleBody")


# -- what the writers of shapes share: numbers as text, and what a format cannot show ---------------
def number_list(*values: float) -> str:
    """Numbers to the last bit, with spaces between them."""
    return " ".join(repr(v) for v in values)


def warn_left_out(placed: PlacedShape, why: str) -> None:
    """Say that a shape is not in the file that is written."""
    warnings.warn(f"shape {placed.name!r}: {why}; it is left out", BellcrankWarning, stacklevel=outside())
