"""Files of other programs hold no bodies that deform."""

from __future__ import annotations

from bellcrank.errors import ModelError
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["refuse_deforming"]


def refuse_deforming(mechanism: Mechanism, form: str) -> None:
    """Say which body deforms."""
    for record in mechanism.joints:
        if isinstance(record.joint, Modal):
            raise ModelError(f"body {record.name!r} deforms, which {form} cannot hold; save it as .yaml or .json, or "
                             "give it an Inertia in place of the FlexibleBody")
