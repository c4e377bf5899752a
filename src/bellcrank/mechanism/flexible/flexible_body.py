"""A body that deforms: nodes, shapes, stiffness, damping and inertia, in one frame of the body's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked_methods
from bellcrank.arrays import Floats
from bellcrank.errors import FileError, ModelError, hint
from bellcrank.mechanism.flexible.beam_elements import BeamSection
from bellcrank.mechanism.flexible.component_modes import check_symmetric, refuse_parameter
from bellcrank.mechanism.flexible.matrix_files import matrix_of
from bellcrank.mechanism.flexible.modal_kinetics import ShapeIntegrals, Stiffening
from bellcrank.mechanism.flexible.reduced_body import (
    INERTIAS,
    BodyParts,
    Ints,
    StressModes,
    beam_parts,
    given_stresses,
    reduced_parts,
)
from bellcrank.mechanism.flexible.solid_elements import Interfaces, solid_parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FlexibleBody", "Panel", "draw_panels"]

#: a mode whose inertia is this much that of a rigid motion is one
_RIGID = 1e-9


@checked_methods
@dataclass(frozen=True, eq=False)
class FlexibleBody:
    """What `Mechanism.add_body` takes for a body that deforms.

    Displacements are sums of k *modes*, shapes in the body frame, times modal coordinates. The frame is the one in
    which the modes are written: modes that vanish at a node hold the frame there (`clamped`); modes of a free body let
    it float with the mean motion. A node moves to X + u and turns by the rotation vector theta, where (u, theta) is
    the sum of the modes there.

    Usually made by `beam` or `from_matrices`. Lengths in m, masses in kg; modal quantities are those of the modes as
    given. Arrays are read-only.

    >>> import numpy as np
    >>> rod = FlexibleBody.beam(1.0, BeamSection.round(0.01, E=2e11, rho=7800.0), elements=8, modes={"y": 2})
    >>> (rod.frequencies() / (2 * np.pi)).round(1).tolist()
    [7.1, 44.4]
    >>> rod.mode_names, dict(rod.names)
    (('mode1', 'mode2'), {'base': 0, 'tip': 8})
    """

    nodes: Floats  #: (n, 3), reference positions
    modes: Floats  #: (n, 6, k): three displacements and three small rotations at every node
    stiffness: Floats  #: (k, k)
    damping: Floats  #: (k, k)
    integrals: ShapeIntegrals
    names: Mapping[str, int]  #: nodes by name: joints, forces and bodies attach there
    inertia: str = "consistent_nodal"  #: which of `INERTIAS`
    clamped: str | None = None  #: the node that the frame is held at
    stiffening: Stiffening | None = None  #: second-order displacements, if they count
    forces: Floats | None = None  #: (n, 6, k), of beams: N, Vy, Vz, T, My, Mz in the sections at the nodes
    stresses: StressModes | None = None  #: where they are known
    edges: Ints | None = None  #: (m, 2), pairs of nodes that a picture connects

    def __post_init__(self) -> None:
        nodes, modes = _array("nodes", self.nodes), _array("modes", self.modes)
        if nodes.ndim != 2 or nodes.shape[1] != 3 or not len(nodes):
            raise ModelError(f"FlexibleBody: nodes must have the shape (n, 3), got {nodes.shape}")
        k = self.integrals.size
        if modes.shape != (len(nodes), 6, k):
            raise ModelError(f"FlexibleBody: modes must have the shape (nodes, 6, modes) = {(len(nodes), 6, k)}, got "
                             f"{modes.shape}")
        if self.inertia not in INERTIAS:
            raise ModelError(f"FlexibleBody: inertia {self.inertia!r} is none of {', '.join(INERTIAS)}")
        stiffness, damping = (check_symmetric(f"FlexibleBody: the modal {what}", x, k)
                              for what, x in (("stiffness", self.stiffness), ("damping", self.damping)))
        for name, value in (("nodes", nodes), ("modes", modes), ("stiffness", stiffness), ("damping", damping)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "names", MappingProxyType(_node_names(self.names, len(nodes))))
        self._check_recovery()
        self._check_energies()
        self._check_clamped()

    def __reduce__(self) -> tuple[Any, ...]:
        return FlexibleBody, (self.nodes, self.modes, self.stiffness, self.damping, self.integrals, dict(self.names),
                              self.inertia, self.clamped, self.stiffening, self.forces, self.stresses, self.edges)

    # -- what is there --------------------------------------------------------------------------------------------
    @property
    def size(self) -> int:
        """Number of modes."""
        return self.integrals.size

    @property
    def mode_names(self) -> tuple[str, ...]:
        """Names of the modal coordinates."""
        return tuple(f"mode{i + 1}" for i in range(self.size))

    def node(self, name: str | int) -> int:
        """The index of a node, by its name or number (negative ones from the end)."""
        if isinstance(name, str):
            if name not in self.names:
                raise ModelError(f"no node called {name!r}; there are {', '.join(map(repr, self.names)) or 'none'}"
                                 f"{hint(name, self.names)}")
            return self.names[name]
        n = len(self.nodes)
        if not -n <= int(name) < n:
            raise ModelError(f"there is no node {name}; the body has {n} nodes, 0 to {n - 1}")
        return int(name) % n

    def usual_size(self) -> Floats:
        """For each mode a coordinate at which nodes move by 1 % of the body's extent or turn by 0.05 rad: about what
        linear elasticity is made for."""
        extent = float(np.ptp(self.nodes, axis=0).max()) or 1.0
        moved = np.abs(self.modes[:, :3]).max(axis=(0, 1)) / (0.01 * extent)
        turned = np.abs(self.modes[:, 3:]).max(axis=(0, 1)) / 0.05
        return np.asarray(1.0 / np.maximum(np.maximum(moved, turned), 1e-300))

    def frequencies(self) -> Floats:
        """Angular frequencies [rad/s] with the frame held, ascending."""
        return _frequencies(self.stiffness, self.integrals.modal)

    def free_frequencies(self) -> Floats:
        """Angular frequencies [rad/s] of the free body, ascending, without the six zeros of rigid motion."""
        mass = self.integrals.mass_matrix(np.zeros(self.size))
        rigid, cross = mass[:6, :6], mass[:6, 6:]
        return _frequencies(self.stiffness, mass[6:, 6:] - cross.T @ np.linalg.solve(rigid, cross))

    def plot_modes(self, count: int = 3, *, file: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the lowest vibrations with the frame held, deformed beside undeformed, with their frequencies; returns
        the matplotlib figure, `file` saves it, too."""
        from scipy import linalg


        if isinstance(count, bool) or not 1 <= count <= self.size:
            raise ModelError(f"FlexibleBody.plot_modes: draws 1 to {self.size} modes, got {count!r}")
        values, shapes = linalg.eigh(self.stiffness, self.integrals.modal)
        panels = [Panel(f"{np.sqrt(max(values[j], 0.0)) / (2 * np.pi):.4g} Hz", self.modes @ shapes[:, j])
                  for j in range(count)]
        return draw_panels(self, panels, None, file)

    # -- where bodies come from -----------------------------------------------------------------------------------
    @staticmethod
    def beam(length: float, section: BeamSection | tuple[BeamSection, BeamSection] | Callable[[float], BeamSection], *,
             elements: int = 8, modes: int | Mapping[str, int] | str | npt.ArrayLike = 6, support: str = "clamped",
             inertia: str = "continuum", stiffening: bool = False, damping: npt.ArrayLike = 0.0,
             names: Mapping[str, int] | None = None) -> FlexibleBody:
        """A straight beam along x; node j lies at x = j length / elements.

        `section`: one, two (at both ends, linear between) or a function of the part 0..1 of the length.
        `modes`: how many of the lowest; or how many of each kind, such as ``{"y": 2, "z": 2, "x": 1, "t": 1}`` (bending
        in xy and xz, stretch, twist); or "all", every degree of freedom of the nodes; or shapes by columns,
        (6 nodes, k). Those computed have unit mass by the consistent matrix, whatever the `inertia` is.
        `support`: "clamped" (the frame is held at x = 0), "pinned" (the frame's x axis goes through both ends, which
        do not stretch) or "free" (the frame floats with the mean motion).
        `stiffening`: whether bent beams grow shorter, to second order: then axial forces (of rotation, joints, weight)
        make them stiffer against bending, or weaker. Beams that turn fast need it. It costs k^2/2 more shapes.
        `damping`: a ratio for all modes or one each, or a modal matrix. `names`: nodes by name; "base" and "tip" are
        always there.

        Cost: O(elements^3).
        """
        return _body(beam_parts(length, section, elements, modes, support, inertia, names or {}, stiffening), damping)

    @staticmethod
    def from_modes(nodes: npt.ArrayLike, modes: npt.ArrayLike, mass: Any, stiffness: Any, *,
                   damping: npt.ArrayLike = 0.0, names: Mapping[str, int] | None = None, clamped: str | None = None,
                   inertia: str = "consistent_nodal", stress_modes: npt.ArrayLike | None = None) -> FlexibleBody:
        """From shapes at the nodes, (d n, k) node by node, with d = 3 displacements or d = 6 with rotations.

        `mass`: the matrix of all degrees of freedom, (d n, d n); `stiffness`: the same, or that of the modes, (k, k).
        `stress_modes`: stresses xx, yy, zz, xy, yz, xz [Pa] at the nodes of unit modal coordinates, (n, 6, k).
        """
        at = _array("nodes", nodes)
        shapes = _array("modes", modes)
        n = len(at) if at.ndim == 2 else 0
        d = shapes.shape[0] // n if n and shapes.ndim else 0
        if shapes.ndim != 2 or d not in (3, 6) or shapes.shape[0] != d * n:
            raise ModelError(f"FlexibleBody.from_modes: modes must have 3 or 6 rows for each of the {n} nodes, got "
                             f"shape {shapes.shape}")
        k = shapes.shape[1]
        weight = check_symmetric("FlexibleBody: the mass matrix", mass, d * n)
        size = np.shape(stiffness)[0] if np.ndim(stiffness) == 2 else 0
        if size == d * n and size != k:
            full = check_symmetric("FlexibleBody: the stiffness matrix", stiffness, d * n)
            stiffness = shapes.T @ (full @ shapes)
        integrals = ShapeIntegrals.from_points(at, shapes.reshape(n, d, k), weight)
        stiff = check_symmetric("FlexibleBody: the modal stiffness", stiffness, k)
        stresses = given_stresses("FlexibleBody.from_modes: stress_modes", stress_modes, at, None, k)
        parts = BodyParts(at, shapes.reshape(n, d, k), integrals, stiff, names or {}, inertia, clamped,
                          stresses=stresses)
        return _body(parts, damping)

    @staticmethod
    def from_matrices(mass: Any, stiffness: Any, nodes: npt.ArrayLike,
                      interfaces: Mapping[str, int | Sequence[int]], *, modes: int = 10, cutoff: float | None = None,
                      reduction: str = "craig-bampton", frame: str | None = None, damping: npt.ArrayLike = 0.0,
                      stress_modes: Any = None) -> FlexibleBody:
        """From the matrices of any finite-element program, dense, SciPy sparse or files (``"model.mat:K"``, .npy,
        .npz, .mtx), reduced.

        Degrees of freedom come node by node, three displacements each, or six with rotations. `interfaces` names what
        joints and forces attach to: a node (with rotations), or the nodes of a face, which is tied rigidly to a new
        node at their centroid. `modes`: how many fixed-interface modes; with a `cutoff` [Hz], those below it.
        `reduction`: "craig-bampton"; "guyan", without normal modes; "free", the lowest modes of the free body alone.
        `frame`: the interface that the frame is held at; otherwise it floats with the mean motion. The frame's axes and
        origin are those of `nodes`. Shapes are made orthonormal, rigid motions are removed. `stress_modes`: what unit
        displacements of single degrees of freedom cause at the nodes, (6 n, columns of the mass matrix) with rows xx,
        yy, zz, xy, yz, xz [Pa] of the first node, then of the second, ...: dense, sparse or a file.

        Cost: one factorisation of the stiffness of what is not an interface, and `modes` eigenvectors.
        """
        mass, stiffness, stress_modes = (
            matrix_of(f"FlexibleBody.from_matrices: the {what} matrix", x)
            for what, x in (("mass", mass), ("stiffness", stiffness), ("stress", stress_modes)))
        at = _array("nodes", nodes)

        def stresses(shapes: Floats) -> StressModes | None:
            flat = shapes.reshape(shapes.shape[0] * shapes.shape[1], shapes.shape[2])
            return given_stresses("FlexibleBody.from_matrices: stress_modes", stress_modes, at, flat, len(flat))

        return _body(reduced_parts(mass, stiffness, at, interfaces, modes, cutoff, reduction, frame, stresses), damping)

    @staticmethod
    def from_mesh(mesh: Any, E: float, nu: float, rho: float, *,
                  interfaces: Interfaces, modes: int = 10, cutoff: float | None = None,
                  reduction: str = "craig-bampton", frame: str | None = None, damping: npt.ArrayLike = 0.0
                  ) -> FlexibleBody:
        """From a mesh of tetrahedra (linear or quadratic) or hexahedra, of one material: Young's modulus E [Pa],
        Poisson's ratio nu, density rho [kg/m^3].

        `mesh`: of meshio or scikit-fem, the name of a file that meshio reads, or (points, {"tetra": cells}).
        `interfaces`: nodes by name, or a function that takes all points, (n, 3), and says which belong to it. The rest
        as in `from_matrices`.

        >>> import numpy as np
        >>> x = np.array([(i, j, k) for k in (0, 1) for j in (0, 1) for i in (0, 1, 2)], dtype=float) * 0.1
        >>> cells = [[i, i + 1, i + 4, i + 3, i + 6, i + 7, i + 10, i + 9] for i in (0, 1)]
        >>> block = FlexibleBody.from_mesh((x, {"hexahedron": cells}), 2e11, 0.3, 7800.0, modes=2, frame="wall",
        ...                                interfaces={"wall": lambda p: p[:, 0] < 0.01, "end": [2, 5, 8, 11]})
        >>> round(block.integrals.mass, 9), block.size
        (15.6, 8)
        """
        return _body(solid_parts(mesh, E, nu, rho, interfaces, modes, cutoff, reduction, frame), damping)

    # -- checks ---------------------------------------------------------------------------------------------------
    def _check_energies(self) -> None:
        mass = self.integrals.mass_matrix(np.zeros(self.size))
        rigid, cross, modal = mass[:6, :6], mass[:6, 6:], mass[6:, 6:]
        if not self.integrals.mass > 0.0:
            raise ModelError(f"FlexibleBody: the mass is {self.integrals.mass:.3g}; it must be greater than 0")
        for j in range(self.size):
            if not modal[j, j] > 0.0:
                raise ModelError(f"FlexibleBody: mode{j + 1} moves no mass (modal mass {modal[j, j]:.3g}); leave it "
                                 "out")
        scale = 1.0 / np.sqrt(np.diag(modal))
        inner = (modal - cross.T @ np.linalg.pinv(rigid) @ cross) * np.outer(scale, scale)
        values, shares = np.linalg.eigh(inner)
        if self.size and values[0] < -_RIGID * self.size:
            raise ModelError("FlexibleBody: the modal mass matrix is not positive definite: it does not belong to "
                             "these modes and masses")
        if self.size and values[0] < _RIGID:
            worst = int(np.abs(shares[:, 0]).argmax())
            raise ModelError(f"FlexibleBody: mode{worst + 1} is a rigid motion of the body, or the sum of other modes "
                             "and one; the frame moves rigidly already: remove it")
        stiff = np.linalg.eigvalsh(self.stiffness * np.outer(scale, scale))
        if self.size and stiff[0] < -1e-10 * max(abs(stiff[-1]), 1e-300):
            raise ModelError(f"FlexibleBody: the stiffness matrix is not positive: a deformation has the energy "
                             f"{stiff[0]:.3g} per unit of modal mass")

    def _check_recovery(self) -> None:
        n, k = len(self.nodes), self.size
        if self.forces is not None and self.forces.shape != (n, 6, k):
            raise ModelError(f"FlexibleBody: section forces must have the shape {(n, 6, k)}, got {self.forces.shape}")
        if self.stresses is not None and self.stresses.stress.shape[2] != k:
            raise ModelError(f"FlexibleBody: stresses must be those of the {k} modes, got "
                             f"{self.stresses.stress.shape[2]}")
        for what, nodes in (("stresses belong", None if self.stresses is None else self.stresses.nodes),
                            ("edges connect", self.edges)):
            if nodes is not None and nodes.size and not 0 <= nodes.min() <= nodes.max() < n:
                raise ModelError(f"FlexibleBody: {what} nodes that are not there; there are {n}")
        for array in (self.forces, self.edges):
            if array is not None:
                array.setflags(write=False)

    def _check_clamped(self) -> None:
        if self.clamped is None:
            return
        at = self.modes[self.node(self.clamped)]
        for j in range(self.size):
            largest = float(np.abs(self.modes[:, :, j]).max())
            if float(np.abs(at[:, j]).max()) > 1e-9 * largest:
                raise ModelError(f"FlexibleBody: the frame is clamped at node {self.clamped!r}, but mode{j + 1} moves "
                                 f"it by {float(np.abs(at[:, j]).max()):.3g} (largest entry {largest:.3g})")


def _body(parts: BodyParts, damping: npt.ArrayLike) -> FlexibleBody:
    """A body from its parts, and its damping: a ratio, ratios or a matrix."""
    n, d, k = parts.shapes.shape
    six = np.zeros((n, 6, k))
    six[:, :d] = parts.shapes
    return FlexibleBody(parts.nodes, six, parts.stiffness, _damping(damping, parts.stiffness, parts.integrals.modal),
                        parts.integrals, parts.names, parts.inertia, parts.clamped, parts.stiffening, parts.forces,
                        parts.stresses, parts.edges)


def _damping(damping: npt.ArrayLike, stiffness: Floats, mass: Floats) -> Floats:
    given = _array("damping", damping)
    k = len(mass)
    if given.ndim == 2:
        return given
    if given.ndim == 1 and given.shape != (k,):
        raise ModelError(f"FlexibleBody: needs one damping ratio, or one for each of the {k} modes, got {len(given)}")
    if (given < 0.0).any():
        raise ModelError("FlexibleBody: damping ratios must be at least 0")
    if not k or not given.any():
        return np.zeros((k, k))
    from scipy import linalg

    values, shapes = linalg.eigh(stiffness, mass)
    rates = 2.0 * given * np.sqrt(np.maximum(values, 0.0))
    back = mass @ shapes  # the inverse transposed, as shapes have unit mass
    return np.asarray((back * rates) @ back.T)


def _frequencies(stiffness: Floats, mass: Floats) -> Floats:
    if not len(mass):
        return np.zeros(0)
    from scipy import linalg

    return np.asarray(np.sqrt(np.maximum(linalg.eigh(stiffness, mass, eigvals_only=True), 0.0)))


def _array(what: str, values: npt.ArrayLike) -> Floats:
    try:
        found = np.array(values, dtype=float)
    except (TypeError, ValueError):
        refuse_parameter(f"FlexibleBody: {what}", *np.ravel(np.asarray(values, dtype=object)))
        raise ModelError(f"FlexibleBody: {what} must be numbers") from None
    if not np.isfinite(found).all():
        raise ModelError(f"FlexibleBody: {what} holds entries that are not finite")
    return found


def _node_names(names: Mapping[str, int], n: int) -> dict[str, int]:
    out = {}
    for name, index in names.items():
        if not name or "." in name:
            raise ModelError(f"FlexibleBody: {name!r} cannot name a node: names are texts without a dot")
        if not -n <= int(index) < n:
            raise ModelError(f"FlexibleBody: node {name!r} is number {index}, but there are only {n} nodes")
        out[name] = int(index) % n
    return out


# -- pictures of bodies that deform: deformed beside undeformed, without a display ------------------
#: displacements are drawn as this part of the body's extent if no scale is given
_SHOWN = 0.12
#: what is drawn over the length of a beam: entry of a displacement, and its units
_ENTRIES = {"y": (1, "m"), "z": (2, "m"), "stretch": (0, "m"), "twist": (3, "rad")}


class Panel(NamedTuple):
    """One picture."""

    title: str
    moved: Floats  #: (n, 6): displacements and rotations of the nodes in the body frame
    values: Floats | None = None  #: (n,), what colors mean; without, the distance that nodes move
    label: str = "moved [m]"


def draw_panels(body: FlexibleBody, panels: Sequence[Panel], scale: float | None,
                file: str | os.PathLike[str] | None) -> Figure:
    """Pictures beside each other. `scale`: how much larger displacements are drawn than they are."""
    from matplotlib.figure import Figure

    line = np.linalg.matrix_rank(body.nodes - body.nodes[0], tol=1e-9 * _extent(body)) <= 1 and body.edges is not None
    figure = Figure(figsize=(max(4.2, 3.4 * len(panels)), 2.6 if line else 3.2), layout="constrained")
    for i, panel in enumerate(panels):
        axes: Any = figure.add_subplot(1, len(panels), i + 1, **({} if line else {"projection": "3d"}))
        axes.set_title(panel.title, fontsize=9)
        (_draw_beam if line else _draw_solid)(figure, axes, body, panel, scale)
    if file is not None:
        try:
            figure.savefig(file, dpi=110)
        except (OSError, ValueError) as error:
            raise FileError(f"{os.fspath(file)}: the picture cannot be written ({error})") from error
    return figure


def _extent(body: FlexibleBody) -> float:
    return float(np.ptp(body.nodes, axis=0).max()) or 1.0


def _draw_beam(figure: Figure, axes: Any, body: FlexibleBody, panel: Panel, scale: float | None) -> None:
    """What moves most, over the length; deflections as the cubics between nodes that they are."""
    from scipy.interpolate import CubicHermiteSpline

    x, moved = body.nodes[:, 0], panel.moved * (1.0 if scale is None else scale)
    size = {name: float(np.abs(moved[:, i]).max()) * (_extent(body) if name == "twist" else 1.0)
            for name, (i, _) in _ENTRIES.items()}
    across = max(size["y"], size["z"])
    kind = max(("y", "z") if across > 1e-6 * max(size.values()) else size, key=lambda name: size[name])
    entry, units = _ENTRIES[kind]
    fine = np.linspace(x[0], x[-1], 20 * len(x))
    shown = moved[:, entry]
    curve = np.interp(fine, x, shown)
    if entry in (1, 2):
        curve = CubicHermiteSpline(x, shown, moved[:, 5] if entry == 1 else -moved[:, 4])(fine)
    axes.plot(x, 0.0 * x, color="0.7", linewidth=1.0, marker=".", markersize=3)
    axes.plot(fine, curve, color="C0", linewidth=1.5)
    axes.plot(x, shown, "o", color="C0", markersize=3)
    axes.set_xlabel("x [m]")
    axes.set_ylabel(f"{kind} [{units}]" + ("" if scale in (None, 1.0) else f", {scale:g} times"))
    axes.grid(True, alpha=0.3)


def _draw_solid(figure: Figure, axes: Any, body: FlexibleBody, panel: Panel, scale: float | None) -> None:
    """The edges of the surface, or the nodes alone; colors by values."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from mpl_toolkits.mplot3d.art3d import Line3DCollection  # type: ignore[import-untyped]

    far = np.linalg.norm(panel.moved[:, :3], axis=1)
    values = far if panel.values is None else panel.values
    factor = scale if scale is not None else _SHOWN * _extent(body) / max(float(far.max()), 1e-300)
    places = body.nodes + factor * panel.moved[:, :3]
    colors = ScalarMappable(Normalize(float(np.nanmin(values)), float(np.nanmax(values))), "viridis")
    if body.edges is None or not len(body.edges):
        axes.scatter(*body.nodes.T, s=1, color="0.8")
        axes.scatter(*places.T, s=3, c=values, cmap="viridis")
    else:
        axes.add_collection3d(Line3DCollection(body.nodes[body.edges], colors="0.8", linewidths=0.4))
        axes.add_collection3d(Line3DCollection(places[body.edges], colors=colors.to_rgba(values[body.edges].mean(1)),
                                               linewidths=0.9))
    both = np.concatenate([body.nodes, places])
    low, high = both.min(axis=0), both.max(axis=0)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axes.set_box_aspect(np.maximum(high - low, 1e-3 * _extent(body)))
    axes.set_axis_off()
    if panel.values is not None:
        figure.colorbar(colors, ax=axes, shrink=0.7, label=panel.label)
