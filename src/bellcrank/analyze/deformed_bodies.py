"""Bodies that deform, in given states: how nodes move, section forces of beams, stresses and strains, pictures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, check_time, flat
from bellcrank.compiled.system import System
from bellcrank.errors import ModelError, StateError, hint
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.flexible.flexible_body import FlexibleBody, Panel, draw_panels
from bellcrank.mechanism.flexible.reduced_body import von_mises
from bellcrank.system.state_methods import of_position

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BodyStresses", "deflection", "draw_deflection", "section_forces", "stresses"]


class BodyStresses(NamedTuple):
    """Stresses at p points of a body, in its axes; components xx, yy, zz, xy, yz, xz, shear strains as changes of
    angles."""

    stress: Floats  #: (..., p, 6) [Pa]
    strain: Floats | None  #: (..., p, 6); None where the body knows stresses only
    von_mises: Floats  #: (..., p) [Pa]
    positions: Floats  #: (p, 3) [m], undeformed, in the body frame
    nodes: npt.NDArray[np.int64]  #: (p,), the node that each belongs to
    places: tuple[str, ...]  #: of beams: the name of each point in the cross section, such as "+y"


@of_position()
def deflection(system: System, q: npt.ArrayLike, body: str, *, t: npt.ArrayLike = START) -> Floats:
    """How the nodes of a flexible body move in its frame: (..., nodes, 6), displacements [m] and rotations [rad], those
    of second order included. Linear in the modal coordinates otherwise. Cost: nodes times modes.

    >>> import bellcrank as bc
    >>> m = bc.Mechanism("shelf")
    >>> _ = m.add_body("rod", bc.FlexibleBody.beam(1.0, bc.BeamSection.round(0.01, E=2e11, rho=7800.0), modes={"y": 1}))
    >>> _ = m.add_joint("wall", bc.Weld(), m.ground, "rod")
    >>> bc.analyze.deflection(bc.compile(m), [0.01], "rod")[-1].round(3).tolist()
    [0.0, 0.026, 0.0, 0.0, 0.0, 0.035]
    """
    found, e = _deformed(system, q, body, t)
    out = np.einsum("nij,...j->...ni", found.modes, e)
    more = found.stiffening
    if more is not None and more.products:
        products = np.stack([e[..., a] * e[..., b] for a, b in more.products], axis=-1)
        out[..., :3] += np.einsum("nij,...j->...ni", more.shapes, products)
    return np.asarray(out)


@of_position()
def section_forces(system: System, q: npt.ArrayLike, body: str, *, t: npt.ArrayLike = START) -> Floats:
    """Of a beam in the sections at its nodes: (..., nodes, 6), the force N along the axis and shear forces Vy, Vz [N],
    the torque T and bending moments My, Mz [N m] that the part beyond a section exerts on the part before it.

    Linear in the modal coordinates; where two elements meet the mean of both. They are forces of deformation: N is that
    of stretching modes, and what the chosen modes cannot show is not in it. Cost: nodes times modes.
    """
    found, e = _deformed(system, q, body, t)
    if found.forces is None:
        raise ModelError(f"body {body!r} has no sections: section forces are those of FlexibleBody.beam; "
                         "bellcrank.analyze.stresses has those of solids")
    return np.asarray(np.einsum("nij,...j->...ni", found.forces, e))


@of_position()
def stresses(system: System, q: npt.ArrayLike, body: str, *, t: npt.ArrayLike = START) -> BodyStresses:
    """Stresses, strains and von Mises' equivalent stress of a flexible body.

    Of beams at points of the sections at all nodes: `BeamSection.round` and `rectangle` know some, others take
    `points=`. Of bodies from a mesh at its nodes, recovered from the elements there. Bodies from matrices know what
    `stress_modes` they were given. Linear in the modal coordinates (von Mises' is not). Cost: points times modes.

    >>> import bellcrank as bc
    >>> m = bc.Mechanism("shelf")
    >>> _ = m.add_body("rod", bc.FlexibleBody.beam(1.0, bc.BeamSection.round(0.01, E=2e11, rho=7800.0), modes={"y": 1}))
    >>> _ = m.add_joint("wall", bc.Weld(), m.ground, "rod")
    >>> found = bc.analyze.stresses(bc.compile(m), [0.01], "rod")
    >>> found.places[0], round(found.stress[0, 0] / 1e6)
    ('+y', -90)
    """
    found, e = _deformed(system, q, body, t)
    modes = found.stresses
    if modes is None:
        raise ModelError(f"body {body!r}: " + (
            "its sections have no points to compute stresses at: give BeamSection(points=...), or use "
            "BeamSection.round or rectangle; bellcrank.analyze.section_forces needs none" if found.forces is not None
            else "nothing is known of its stresses: give stress_modes= to FlexibleBody.from_modes or from_matrices"))
    stress = np.asarray(np.einsum("pij,...j->...pi", modes.stress, e))
    strain = None if modes.strain is None else np.asarray(np.einsum("pij,...j->...pi", modes.strain, e))
    return BodyStresses(stress, strain, von_mises(stress), modes.positions, modes.nodes, modes.places)


@of_position()
def draw_deflection(system: System, q: npt.ArrayLike, body: str, *, t: npt.ArrayLike = START,
                    scale: float | None = None, file: str | os.PathLike[str] | None = None) -> Figure:
    """A picture of a flexible body in one state, deformed beside undeformed: of beams the deflection over the length,
    of solids the surface, with von Mises' stress as color where it is known.

    `scale`: how much larger displacements are drawn than they are; without it beams as they are, solids so that it can
    be seen. `file` saves the picture, too. Returns the matplotlib figure. `FlexibleBody.plot_modes` draws modes.
    """
    if np.ndim(q) != 1:
        raise StateError(f"draw_deflection: draws one state, got q of shape {np.shape(q)}")
    found, _ = _deformed(system, q, body, t)
    moved, values = deflection(system, q, body, t=t), None
    if found.stresses is not None and not found.stresses.places:
        values = np.full(len(found.nodes), np.nan)
        values[found.stresses.nodes] = stresses(system, q, body, t=t).von_mises / 1e6
    return draw_panels(found, [Panel(body, moved, values, "von Mises [MPa]")], scale, file)


def _deformed(system: System, q: npt.ArrayLike, body: str, t: npt.ArrayLike) -> tuple[FlexibleBody, Floats]:
    """A flexible body by its name, and its modal coordinates, (..., k)."""
    check_time(t)
    tree, loops = system.model.tree, system.plans.loops
    links = {tree.joint_names[link]: link for link in tree.flexible}
    if body not in links:
        known = system.body_names
        if body in known and body.partition(".")[0] in links:
            raise ModelError(f"{body!r} is a node: ask about the flexible body {body.partition('.')[0]!r}")
        raise ModelError(f"body {body!r} is rigid: it has no stresses and does not deform" if body in known else
                         f"no flexible body called {body!r}{hint(body, links)}")
    place = flat("q", q, tree.nq, "the coordinates")
    if not np.isfinite(place).all():
        entry = int(np.argwhere(~np.isfinite(place))[0, -1])
        raise StateError(f"q[{entry}] is {place[~np.isfinite(place)][0]}; inputs must be finite")
    joint = tree.joints[links[body]]
    assert isinstance(joint, Modal)
    values = [loops.coordinate(links[body], i, place, None, t)[0] for i in range(joint.nu)]
    return joint.body, np.stack(np.broadcast_arrays(*values), axis=-1) if values else np.zeros((*place.shape[:-1], 0))
