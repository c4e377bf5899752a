"""Whether flexible bodies deform more in a run than linear elasticity allows for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.flexible.flexible_body import FlexibleBody
from bellcrank.system.machine_functions import Machine

__all__ = ["Deflections"]

#: displacements of nodes beyond this part of the body's extent, and rotations [rad] beyond this, are too large
_MOVED, _TURNED = 0.15, 0.4


@dataclass
class _Body:
    """A flexible body, and its modal coordinates in the sample that deforms it most."""

    name: str
    body: FlexibleBody
    first: int  #: place in q
    usual: Floats
    worst: float = 0.0
    at: Floats = field(default_factory=lambda: np.zeros(0))


class Deflections:
    """Looks at samples as they come, and says which body deforms too much."""

    def __init__(self, system: Machine) -> None:
        configuration = system.model.configuration
        self._bodies = [_Body(r.name, r.joint.body, configuration.starts[r.name][0], r.joint.body.usual_size())
                        for r in configuration.records if isinstance(r.joint, Modal)]

    def look(self, q: Floats) -> None:
        """Samples (..., nq)."""
        for b in self._bodies:
            e = q[..., b.first:b.first + b.body.size].reshape(-1, b.body.size)
            size = np.nan_to_num(np.abs(e / b.usual).max(axis=1, initial=0.0))
            worst = int(size.argmax()) if len(size) else 0
            if len(size) and size[worst] > b.worst:
                b.worst, b.at = float(size[worst]), e[worst].copy()

    def text(self) -> str:
        """What is too large, or nothing."""
        for b in self._bodies:
            if b.worst > 1.0:
                said = _too_large(b.body, b.at)
                if said:
                    return (f"body {b.name!r} deforms more than linear elasticity allows for: {said}; make it stiffer, "
                            "or of several flexible bodies")
        return ""


def _too_large(body: FlexibleBody, e: Floats) -> str:
    extent = float(np.ptp(body.nodes, axis=0).max()) or 1.0
    names = {index: name for name, index in body.names.items()}
    moved, turned = (np.linalg.norm(part @ e, axis=1) for part in (body.modes[:, :3], body.modes[:, 3:]))
    far, most = int(moved.argmax()), int(turned.argmax())
    if moved[far] > _MOVED * extent:
        return f"node {names.get(far, far)!r} moves by {moved[far] / extent:.2g} of its extent"
    return f"node {names.get(most, most)!r} turns by {turned[most]:.2g} rad" if turned[most] > _TURNED else ""
