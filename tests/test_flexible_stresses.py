"""Stresses, strains, section forces and pictures of bodies that deform, against closed forms."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.mechanism.flexible.solid_elements import elastic_matrix, nodal_strains, outer_edges
from flexible_cases import bracket, case

STEEL = {"E": 2.1e11, "rho": 7850.0}
N, VY, VZ, T, MY, MZ = range(6)


def held(body: bc.FlexibleBody, force: Any = (0, 0, 0), moment: Any = (0, 0, 0), node: str = "tip"
         ) -> tuple[bc.System, bc.State]:
    """A body welded to the ground and loaded at a node, in equilibrium."""
    m = bc.Mechanism("held", gravity=(0, 0, 0))
    m.add_body("rod", body)
    m.add_joint("wall", bc.Weld(), m.ground, "rod")
    m.add_wrench("load", f"rod.{node}", force=force, moment=moment)
    system = bc.compile(m, backend="numpy")
    q = np.linalg.solve(body.stiffness, body.modes[body.node(node)].T @ np.concatenate([force, moment]))
    return system, bc.State(q, 0 * q)


def at(found: Any, node: int, place: str) -> int:
    return next(i for i, (n, p) in enumerate(zip(found.nodes, found.places, strict=True)) if (n, p) == (node, place))


# -- beams -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("thick", [False, True])
def test_a_cantilever_with_a_load_at_its_tip(thick: bool) -> None:
    """Moments P (L - x), a constant shear force, M c / I at the outside, 3/2 P / A in the middle of the sides."""
    height, width, length, load = 0.02, 0.03, 0.8, (40.0, -25.0, 10.0)
    bar = bc.BeamSection.rectangle(height, width, thick=thick, **STEEL)
    system, state = held(bc.FlexibleBody.beam(length, bar, elements=3, modes="all"), load)
    x = system.model.mechanism.joint("rod").joint.body.nodes[:, 0]  # type: ignore[attr-defined]
    forces = bc.analyze.section_forces(system, state.q, "rod")
    wanted = np.zeros((4, 6))
    wanted[:, :3] = load
    wanted[:, MY], wanted[:, MZ] = -load[2] * (length - x), load[1] * (length - x)
    assert np.abs(forces - wanted).max() < 1e-8
    found = bc.analyze.stresses(system, state, "rod")
    area, about_z, about_y = height * width, width * height**3 / 12, height * width**3 / 12
    for node in (0, 1):
        corner = at(found, node, "+y-z")
        stress = load[0] / area - wanted[node, MZ] * height / 2 / about_z - wanted[node, MY] * width / 2 / about_y
        assert abs(found.stress[corner, 0] / stress - 1.0) < 1e-9
        assert np.allclose(found.strain[corner, :3], stress / STEEL["E"] * np.array([1.0, -0.3, -0.3]), rtol=1e-9)
        assert abs(found.von_mises[corner] / abs(stress) - 1.0) < 1e-9
        side = at(found, node, "+z")
        assert abs(found.stress[side, 3] / (1.5 * load[1] / area) - 1.0) < 1e-9
        assert abs(found.strain[side, 3] / found.stress[side, 3] * STEEL["E"] / 2.6 - 1.0) < 1e-9
    assert found.positions[at(found, 3, "-y-z")].tolist() == [length, -height / 2, -width / 2]


def test_a_bar_in_torsion() -> None:
    """T r / J of a tube; Saint-Venant's stresses of a rectangle (0.246 b h^2 for 2:1, at its ends 0.795 of it)."""
    system, state = held(bc.FlexibleBody.beam(1.0, bc.BeamSection.round(0.04, bore=0.03, **STEEL), elements=2,
                                              modes={"t": 2}), moment=(30.0, 0, 0))
    found, polar = bc.analyze.stresses(system, state, "rod"), np.pi / 32 * (0.04**4 - 0.03**4)
    for place, component, sign in (("+y", 5, 1), ("-y", 5, -1), ("+z", 3, -1), ("-z", 3, 1)):
        stress = found.stress[at(found, 1, place)]
        assert abs(stress[component] - sign * 30.0 * 0.02 / polar) < 1e-9 * 30.0 * 0.02 / polar
        assert abs(found.von_mises[at(found, 1, place)] / (np.sqrt(3) * abs(stress[component])) - 1.0) < 1e-12
    bar = bc.BeamSection.rectangle(0.02, 0.04, **STEEL)
    system, state = held(bc.FlexibleBody.beam(1.0, bar, elements=2, modes={"t": 2}), moment=(30.0, 0, 0))
    found = bc.analyze.stresses(system, state, "rod")
    most = found.stress[at(found, 0, "+y"), 5]
    assert abs(most / (30.0 / (0.246 * 0.04 * 0.02**2)) - 1.0) < 2e-3
    assert abs(found.stress[at(found, 0, "-z"), 3] / most - 0.795) < 1e-3


def test_a_tapered_bar_in_tension_and_bending() -> None:
    """Statically determined: N and M know nothing of the taper, stresses do."""
    cone = (bc.BeamSection.round(0.04, **STEEL), bc.BeamSection.round(0.02, **STEEL))
    system, state = held(bc.FlexibleBody.beam(1.0, cone, elements=8, modes="all"), (500.0, -20.0, 0.0))
    forces = bc.analyze.section_forces(system, state, "rod")
    assert np.abs(forces[:, N] / 500.0 - 1.0).max() < 1e-9 and np.abs(forces[:, VY] / -20.0 - 1.0).max() < 1e-6
    found = bc.analyze.stresses(system, state, "rod")
    for node, radius in ((0, 0.02), (4, 0.015), (8, 0.01)):
        top, low = (found.stress[at(found, node, place), 0] for place in ("+y", "-y"))
        stiff, whole = (np.interp(node / 8, [0, 1], [getattr(s, name) for s in cone]) for name in ("EIz", "EA"))
        assert abs(0.5 * (top + low) / (500.0 * STEEL["E"] / whole) - 1.0) < 1e-9
        bending = 20.0 * (1 - node / 8) * radius * STEEL["E"] / stiff
        assert abs(0.5 * (top - low) - bending) < 1e-6 * 20.0 * 0.02 * STEEL["E"] / stiff


def test_weight_bends_a_beam_as_closed_forms_say() -> None:
    """m g L^2 / 2 at the root of a shelf: the error falls with the square of the elements."""
    errors = []
    for elements in (4, 8):
        m = bc.Mechanism("shelf", gravity=(0, -9.81, 0))
        rod = bc.BeamSection.round(0.01, **STEEL)
        m.add_body("rod", bc.FlexibleBody.beam(1.0, rod, elements=elements, modes={"y": 2 * elements}))
        m.add_joint("wall", bc.Weld(), m.ground, "rod")
        system = bc.compile(m, backend="numpy")
        rest = bc.analyze.equilibrium(system, system.neutral())
        errors.append(abs(bc.analyze.section_forces(system, rest, "rod")[0, MZ] / (-9.81 * rod.mass / 2) - 1.0))
    assert errors[1] < errors[0] / 3.9 and errors[1] < 3e-3


def test_batches_second_order_and_prescribed_modes() -> None:
    rod = bc.FlexibleBody.beam(1.0, bc.BeamSection.round(0.01, **STEEL), elements=4, modes={"y": 2}, stiffening=True)
    m = bc.Mechanism("arm")
    m.add_body("rod", rod)
    m.add_joint("hinge", bc.Revolute("z"), m.ground, "rod")
    m.prescribe("rod", lambda t: 0.01 * t, "mode2")
    system = bc.compile(m, backend="numpy")
    q = np.random.default_rng(1).normal(size=(3, 2, 3)) * 0.02
    moved = bc.analyze.deflection(system, q, "rod", t=0.5)
    frame, tip = (system.pose(q, body, t=0.5) for body in ("rod", "rod.tip"))
    local = (tip.position - frame.position)[..., None, :] @ frame.rotation
    assert np.abs(local[..., 0, :] - [1.0, 0, 0] - moved[..., -1, :3]).max() < 1e-14
    assert np.abs(moved[..., -1, 0]).min() > 0.0  # shortening
    assert np.allclose(moved[..., -1, 5], q[..., 1] * rod.modes[-1, 5, 0] + 0.005 * rod.modes[-1, 5, 1])
    many = bc.analyze.stresses(system, q, "rod", t=0.5)
    one = bc.analyze.stresses(system, bc.State(q[1, 0], np.zeros(3), 0.5), "rod")
    assert many.stress.shape == (3, 2, 20, 6) and np.array_equal(many.stress[1, 0], one.stress)
    assert bc.analyze.section_forces(system, q, "rod", t=0.5).shape == (3, 2, 5, 6)


# -- solids ------------------------------------------------------------------------------------------------------------
def grid(nx: int, ny: int, nz: int) -> tuple[Any, Any]:
    """Points and cells of a block, ordered as in VTK."""
    cells = np.array([(i, j, k) for i in range(nx) for j in range(ny) for k in range(nz)])
    corner = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]])
    points, places = np.unique((cells[:, None] + corner).reshape(-1, 3), axis=0, return_inverse=True)
    return points.astype(float), places.reshape(-1, 8)


TETRA = np.array([[0, 1, 3, 4], [1, 2, 3, 6], [1, 3, 4, 6], [1, 6, 4, 5], [3, 6, 7, 4]])
MIDDLES = ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))


def quadratic(points: Any, cells: Any) -> tuple[Any, Any]:
    """Linear tetrahedra with nodes in the middles of their edges."""
    pairs = np.sort(cells[:, np.array(MIDDLES)].reshape(-1, 2), axis=1)
    edges, which = np.unique(pairs, axis=0, return_inverse=True)
    return (np.concatenate([points, points[edges].mean(axis=1)]),
            np.concatenate([cells, len(points) + which.reshape(-1, 6)], axis=1))


@pytest.mark.parametrize("kind", ["hexahedron", "tetra", "tetra10"])
def test_the_patch_test(kind: str) -> None:
    """Displacements linear in space have one strain and one stress, at all nodes of a distorted mesh; those of second
    degree have strains linear in space, exact in quadratic tetrahedra."""
    rng = np.random.default_rng(2)
    points, cells = grid(3, 2, 2)
    points = points + rng.uniform(-0.15, 0.15, points.shape)
    if kind != "hexahedron":
        cells = cells[:, TETRA].reshape(-1, 4)
    if kind == "tetra10":
        points, cells = quadratic(points, cells)
    gradient = rng.normal(size=(3, 3))
    both = gradient + gradient.T
    wanted = np.array([*np.diag(gradient), both[0, 1], both[1, 2], both[0, 2]])
    found = nodal_strains(points, {kind: cells}, (points @ gradient.T)[:, :, None])[..., 0]
    assert np.abs(found - wanted).max() < 1e-12
    bent = np.stack([points[:, 0] * points[:, 1], -0.5 * points[:, 0]**2, 0 * points[:, 0]], axis=-1)
    found = nodal_strains(points, {kind: cells}, bent[:, :, None])[..., 0]
    error = np.abs(found[:, 0] - points[:, 1]).max()
    assert error < 1e-11 if kind == "tetra10" else 1e-3 < error < 0.9
    lame = 2.0 * 0.25 / (1.25 * 0.5)
    assert np.allclose(elastic_matrix(2.0, 0.25) @ [1.0, 0, 0, 0, 0, 1.0], [lame + 1.6, lame, lame, 0, 0, 0.8])


@cache
def bar() -> bc.FlexibleBody:
    """A bar of hexahedra, held at one end."""
    points, cells = grid(48, 2, 2)
    faces = {"foot": lambda x: x[:, 0] < 1e-9, "hand": lambda x: x[:, 0] > 0.2399}
    return bc.FlexibleBody.from_mesh((points * [0.005, 0.01, 0.01], {"hexahedron": cells}), 2.1e11, 0.0, 7850.0,
                                     modes=0, frame="foot", interfaces=faces)


def test_a_solid_bar_is_pulled_and_bent() -> None:
    """N / A exactly, without lateral contraction; in bending M c / I, less G/E (h/t)^2 for the shear of elements that
    cannot bend, h long in a bar of thickness t."""
    system, state = held(bar(), (2e4, 0, 0), node="hand")
    found = bc.analyze.stresses(system, state, "rod")
    assert np.abs(found.stress[:, 0] / (2e4 / 4e-4) - 1.0).max() < 1e-9
    assert np.abs(found.von_mises / (2e4 / 4e-4) - 1.0).max() < 1e-9
    assert np.abs(found.strain[:, 0] * 2.1e11 / (2e4 / 4e-4) - 1.0).max() < 1e-9
    system, state = held(bar(), (0, 0, -100.0), node="hand")
    found = bc.analyze.stresses(system, state, "rod")
    middle = int(np.flatnonzero((np.abs(found.positions - [0.12, 0.01, 0.02]) < 1e-9).all(axis=1))[0])
    wanted = 100.0 * 0.12 * 0.01 / (0.02**4 / 12) / (1.0 + 0.5 * (0.005 / 0.02)**2)
    assert abs(found.stress[middle, 0] / wanted - 1.0) < 1e-9
    with pytest.raises(bc.ModelError, match="body 'rod' has no sections"):
        bc.analyze.section_forces(system, state, "rod")


def test_stresses_of_other_programs() -> None:
    """Rows for degrees of freedom, as a finite-element program gives them, follow the reduction; or rows for modes."""
    points, cells = grid(2, 1, 1)
    points = points * 0.01
    from bellcrank.mechanism.flexible.solid_elements import solid_matrices

    mass, stiffness = solid_matrices(points, {"hexahedron": cells}, 2.1e11, 0.3, 7850.0)
    n = len(points)
    rows = np.einsum("ab,nbk->nak", elastic_matrix(2.1e11, 0.3), nodal_strains(
        points, {"hexahedron": cells}, np.eye(3 * n).reshape(n, 3, 3 * n))).reshape(6 * n, 3 * n)
    faces = {"foot": np.flatnonzero(points[:, 0] < 1e-9), "hand": np.flatnonzero(points[:, 0] > 0.0199)}
    given = bc.FlexibleBody.from_matrices(mass, stiffness, points, faces, modes=0, frame="foot", stress_modes=rows)
    meshed = bc.FlexibleBody.from_mesh((points, {"hexahedron": cells}), 2.1e11, 0.3, 7850.0, modes=0, frame="foot",
                                       interfaces=faces)
    assert given.stresses is not None and meshed.stresses is not None and given.stresses.strain is None
    assert np.abs(given.stresses.stress - meshed.stresses.stress).max() < 1e-9 * np.abs(meshed.stresses.stress).max()
    with pytest.raises(bc.ModelError, match=re.escape(f"and {3 * n} columns, got shape ({6 * n}, 2)")):
        bc.FlexibleBody.from_matrices(mass, stiffness, points, faces, modes=0, stress_modes=rows[:, :2])
    nodes, shapes = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (2.0, 1.0, 0.0)], np.zeros((9, 2))
    shapes[3, 0] = shapes[7, 1] = 1.0
    modal = np.random.default_rng(0).normal(size=(3, 6, 2))
    for stress_modes, said in ((modal, ""), (None, "give stress_modes="), (modal[:2], "for each of the 3 nodes"),
                               (np.full((3, 6, 2), np.nan), "not finite"), ("much", "must be numbers")):
        try:
            body = bc.FlexibleBody.from_modes(nodes, shapes, np.eye(9), np.diag([4.0, 9.0]), names={"tip": 2},
                                              stress_modes=stress_modes)
            system, state = held(body, (1.0, 1.0, 0.0))
            assert np.allclose(bc.analyze.stresses(system, state, "rod").stress, modal @ state.q) and not said
        except bc.ModelError as error:
            assert said and said in str(error)


# -- refusals, files, pictures -----------------------------------------------------------------------------------------
def test_what_cannot_be_asked() -> None:
    plain = bc.BeamSection(1e6, 10.0, 10.0, 5.0, 1.0)
    m = bc.Mechanism("arm")
    m.add_body("rod", bc.FlexibleBody.beam(1.0, plain, elements=2, modes={"y": 1}))
    m.add_body("bob", bc.Inertia(1.0))
    m.add_joint("hinge", bc.Revolute("z"), m.ground, "rod")
    m.add_joint("bolt", bc.Weld(), "rod.tip", "bob")
    system = bc.compile(m, backend="numpy")
    q = [0.0, 0.1]
    for body, said in (("rod", "body 'rod': its sections have no points"), ("bob", "body 'bob' is rigid"),
                       ("rod.tip", "is a node: ask about the flexible body 'rod'"), ("rodd", "did you mean 'rod'")):
        with pytest.raises(bc.ModelError, match=re.escape(said)):
            bc.analyze.stresses(system, q, body)
    assert bc.analyze.section_forces(system, q, "rod").shape == (3, 6)
    with pytest.raises(bc.StateError, match=re.escape("q[1] is nan")):
        bc.analyze.section_forces(system, [0.0, np.nan], "rod")
    with pytest.raises(bc.StateError, match="last axis must have 2"):
        bc.analyze.deflection(system, [0.0], "rod")
    with pytest.raises(bc.StateError, match="times must be finite"):
        bc.analyze.deflection(system, q, "rod", t=np.inf)
    with pytest.raises(bc.StateError, match="draws one state"):
        bc.analyze.draw_deflection(system, [q, q], "rod")
    with pytest.raises(bc.ModelError, match="sections without Jx cannot twist"):
        bc.FlexibleBody.beam(1.0, plain, elements=2, modes=3)
    with pytest.raises(bc.ModelError, match="draws 1 to 1 modes"):
        bc.FlexibleBody.beam(1.0, plain, elements=2, modes={"y": 1}).plot_modes(2)
    own = bc.SectionPoint("edge", 0.01, 0.0, 1e9, 4e8)
    section = bc.BeamSection(1e6, 10.0, 10.0, 5.0, 1.0, points=(own,))
    made = bc.FlexibleBody.beam(1.0, section, elements=2, modes={"y": 2})
    assert made.stresses is not None and made.stresses.places == ("edge",) * 3


def test_stresses_in_model_files(tmp_path: Path) -> None:
    m = bc.Mechanism("two", gravity=(0, 0, 0))
    m.add_body("bar", bar())
    m.add_joint("wall", bc.Weld(), m.ground, "bar")
    m.add_body("rod", bc.FlexibleBody.beam(1.0, bc.BeamSection.round(0.01, **STEEL), elements=2, modes={"y": 1}))
    m.add_joint("hinge", bc.Revolute("z"), "bar.hand", "rod")
    bc.save(m, tmp_path / "two.json")
    one, other = (bc.compile(x, backend="numpy") for x in (m, bc.load(tmp_path / "two.json")))
    q = np.full(one.nq, 1e-3)
    for body in ("bar", "rod"):
        first, second = (bc.analyze.stresses(s, q, body) for s in (one, other))
        assert np.array_equal(first.stress, second.stress) and np.array_equal(first.strain, second.strain)
        assert first.places == second.places and np.array_equal(first.positions, second.positions)
    assert np.array_equal(bc.analyze.section_forces(one, q, "rod"), bc.analyze.section_forces(other, q, "rod"))
    assert one.model == other.model


def test_pictures(tmp_path: Path) -> None:
    """Curves of beams go through the moved nodes; a solid's surface is where its nodes are, colors are stresses."""
    system, state = held(bc.FlexibleBody.beam(1.0, bc.BeamSection.round(0.01, **STEEL), elements=3,
                                              modes={"y": 2, "z": 1}), (0, -1.0, 0.1))
    figure = bc.analyze.draw_deflection(system, state, "rod", scale=10.0, file=tmp_path / "rod.png")
    assert (tmp_path / "rod.png").stat().st_size > 1000
    still, curve, nodes = figure.axes[0].lines
    moved = 10.0 * bc.analyze.deflection(system, state, "rod")[:, 1]
    assert np.array_equal(nodes.get_ydata(), moved) and not np.any(still.get_ydata())
    assert abs(float(curve.get_ydata()[-1]) - moved[-1]) < 1e-12  # type: ignore[index]
    assert figure.axes[0].get_ylabel() == "y [m], 10 times"
    system, state = held(bar(), (0, 0, -100.0), node="hand")
    figure = bc.analyze.draw_deflection(system, state, "rod")
    assert [axes.get_ylabel() for axes in figure.axes[1:]] == ["von Mises [MPa]"]
    known = bc.analyze.stresses(system, state, "rod").von_mises / 1e6
    assert 0.5 * known.max() < figure.axes[1].get_ylim()[1] < 1.001 * known.max()
    assert len(bar().plot_modes(2).axes) == 2
    with pytest.raises(bc.FileError, match="cannot be written"):
        bar().plot_modes(1, file=tmp_path / "nowhere" / "bar.png")
    nodes, mass, stiffness = bracket()
    cells = np.array(case("f7_solid")["mesh"]["hex_vtk_order"])
    edges = outer_edges({"hexahedron": cells})
    loose = bc.FlexibleBody.from_matrices(mass, stiffness, nodes, {}, modes=1, reduction="free")
    assert loose.edges is None and loose.plot_modes(1).axes and 0 < len(edges) < 12 * len(cells)
