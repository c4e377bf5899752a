"""Data of flexible bodies: beams, reduced finite-element models, the equations of one body."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import io, sparse

import bellcrank as bc
from bellcrank.mechanism.flexible.beam_elements import BeamElements, BeamSection
from bellcrank.mechanism.flexible.component_modes import craig_bampton, normal_modes, tie_faces
from bellcrank.mechanism.flexible.flexible_body import FlexibleBody
from bellcrank.mechanism.flexible.modal_kinetics import ModalInertia, ShapeIntegrals
from bellcrank.mechanism.flexible.solid_elements import solid_matrices
from bellcrank.spatial import Motion, Vector
from flexible_cases import beam, bracket, case, section

KINDS = ("lumped", "consistent_nodal", "continuum")
STEEL = {"E": 2.1e11, "rho": 7850.0}


def relative(found: Any, wanted: Any) -> float:
    wanted = np.asarray(wanted)
    return float(np.abs(np.asarray(found) - wanted).max() / np.abs(wanted).max())


# -- beams -------------------------------------------------------------------------------------------------------------
def test_assembled_matrices_of_a_beam() -> None:
    data = case("f1_cantilever")
    made = BeamElements(data["data"]["L"], 4, lambda part: section(data["data"]))
    wanted = data["mass_stiffness"]
    assert relative(made.stiffness(), wanted["K"]) < 1e-15
    assert relative(made.mass(), wanted["M_consistent"]) < 1e-15
    assert relative(made.lumped_mass(), wanted["M_lumped"]) < 1e-15


def test_modes_are_those_of_the_references() -> None:
    data = case("f1_cantilever")
    body = beam(data["data"], 4, modes=3)
    assert relative(body.frequencies(), data["modes"]["omega_rad_s"]) < 1e-11
    assert relative(body.modes.reshape(30, 3), data["modes"]["basis_6n_by_3"]) < 1e-10
    arm = case("f2_arm")
    for link in ("link1", "link2"):
        body = beam(arm["data"][link], 4, modes={"y": 2, "z": 2})
        assert relative(body.modes.reshape(30, 4), arm["modes"][link]) < 1e-10
    free = case("f6_freefree")
    body = beam(free["data"], 8, modes={"y": 3, "z": 3, "x": 1, "t": 1})
    assert relative(body.modes.reshape(54, 8), free["motion"]["modes"]) < 1e-10


def test_frequencies_of_a_free_beam() -> None:
    """Of the body with all its degrees of freedom clamped at one end and a frame that floats, and of free modes."""
    data = case("f6_freefree")
    wanted = data["frequencies"]["4"]
    body = beam(data["data"], 4, modes="all", inertia="consistent_nodal")
    assert relative(body.free_frequencies()[:12], wanted["all_first_18_rad_s"][6:]) < 1e-12
    free = beam(data["data"], 4, modes={"y": 4, "z": 4, "x": 1, "t": 1}, support="free")
    frequencies = free.free_frequencies()
    for kind in ("xy", "xz"):
        for value in wanted[kind]:
            assert np.abs(frequencies / value - 1.0).min() < 1e-9
    assert np.abs(frequencies / wanted["axial1"] - 1.0).min() < 1e-9
    assert np.abs(frequencies / wanted["torsion1"] - 1.0).min() < 1e-9
    assert relative(free.frequencies(), frequencies) < 1e-12  # a floating frame does not feel vibrations


@pytest.mark.parametrize(("support", "roots"), [
    ("clamped", (1.8751040687119611, 4.694091132974174, 7.854757438237613)),
    ("pinned", (np.pi, 2 * np.pi, 3 * np.pi)),
    ("free", (4.730040744862704, 7.853204624095838, 10.995607838001671))])
def test_bending_converges_to_closed_forms(support: str, roots: tuple[float, ...]) -> None:
    """Frequencies of thin beams, (beta L)^2 sqrt(EI/m)/L^2; the error falls with the fourth power of the elements."""
    rod = BeamSection.rectangle(0.03, 0.02, **STEEL)
    wanted = np.array(roots)**2 * np.sqrt(rod.EIz / rod.mass) / 1.7**2
    errors = [np.abs(FlexibleBody.beam(1.7, rod, elements=n, modes={"y": 3}, support=support).frequencies() / wanted
                     - 1.0) for n in (6, 12)]
    assert (errors[1] < errors[0] / 12.0).all() and (errors[1] < 2e-3).all()


def test_stretch_and_twist_converge_to_closed_forms() -> None:
    rod = BeamSection.round(0.03, **STEEL)
    for kind, stiffness, mass in (("x", rod.EA, rod.mass), ("t", rod.GJ, rod.Jx)):
        wanted = np.pi / 2 * np.sqrt(stiffness / mass) / 0.8
        body = FlexibleBody.beam(0.8, rod, elements=40, modes={kind: 1})
        assert abs(body.frequencies()[0] / wanted - 1.0) < 1e-4


def test_a_thick_beam_under_a_load_at_its_tip() -> None:
    """F L^3/(3 EI) + F L/(kGA), exactly, with any number of elements; of a thin one without the second."""
    for elements in (1, 3):
        for thick in (False, True):
            bar = BeamSection.rectangle(0.3, 0.2, thick=thick, **STEEL)
            made = BeamElements(1.0, elements, lambda part, bar=bar: bar)  # type: ignore[misc]
            load = np.zeros(6 * (elements + 1))
            load[-5] = 1000.0
            tip = np.linalg.solve(made.stiffness()[6:, 6:], load[6:])[-5]
            assert abs(tip / (1000.0 / (3 * bar.EIz) + 1000.0 / bar.GAy) - 1.0) < 1e-12


def test_a_thick_pinned_beam_vibrates_as_timoshenko_says() -> None:
    """The lower root of the frequency equation for the first half wave."""
    bar = BeamSection.rectangle(0.3, 0.2, thick=True, **STEEL)
    k = np.pi / 2.0
    a = bar.mass * bar.Jz
    b = -(bar.mass * bar.EIz * k**2 + bar.Jz * bar.GAy * k**2 + bar.mass * bar.GAy)
    c = bar.GAy * bar.EIz * k**4
    wanted = np.sqrt((-b - np.sqrt(b * b - 4 * a * c)) / (2 * a))
    found = FlexibleBody.beam(2.0, bar, elements=24, modes={"y": 1}, support="pinned").frequencies()[0]
    assert abs(found / wanted - 1.0) < 1e-4
    thin = np.sqrt(bar.EIz / bar.mass) * k**2
    assert thin / wanted - 1.0 > 0.02


def test_a_tapered_beam() -> None:
    """A wedge of constant width, clamped at its thick end: omega L^2 sqrt(rho A/(E I)) = 5.3151 there."""
    def wedge(part: float) -> BeamSection:
        return BeamSection.rectangle(0.02 * max(1.0 - part, 1e-3), 0.05, **STEEL)

    thick = wedge(0.0)
    found = FlexibleBody.beam(1.0, wedge, elements=40, modes={"y": 1}).frequencies()[0]
    assert abs(found / (5.3151 * np.sqrt(thick.EIz / thick.mass)) - 1.0) < 2e-3
    cone = (BeamSection.round(0.02, **STEEL), BeamSection.round(0.01, **STEEL))
    mass = FlexibleBody.beam(2.0, cone, modes={"y": 1}).integrals.mass
    assert abs(mass - (cone[0].mass + cone[1].mass)) < 1e-14


def test_sections() -> None:
    tube = BeamSection.round(0.02, bore=0.016, **STEEL)
    solid, core = (BeamSection.round(d, **STEEL) for d in (0.02, 0.016))
    for what in ("EA", "EIy", "GJ", "mass", "Jx"):
        assert abs(getattr(tube, what) - getattr(solid, what) + getattr(core, what)) < 1e-12 * getattr(solid, what)
    assert tube.GAy == np.inf and BeamSection.round(0.02, thick=True, **STEEL).GAy < solid.EA
    square = BeamSection.rectangle(0.1, 0.1, nu=0.25, **STEEL)
    assert abs(square.GJ * 2.5 / STEEL["E"] / 0.1**4 - 0.1405770) < 1e-6  # Saint-Venant's torsion of a square


# -- the equations of one body -----------------------------------------------------------------------------------------
def f1_body(kind: str, basis: str) -> FlexibleBody:
    data = case("f1_cantilever")
    modes = "all" if basis == "nodal" else np.array(data["modes"]["basis_6n_by_3"])
    return beam(data["data"], 4, modes=modes, inertia=kind)


@pytest.mark.parametrize("basis", ["modal", "nodal"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_cantilever_on_a_moving_base(kind: str, basis: str) -> None:
    data, body = case("f1_cantilever"), f1_body(kind, basis)
    inertia = ModalInertia(body.integrals)
    found = 0
    for state in data["states"].values():
        wanted = state.get(f"{kind}_{basis}")
        if wanted is None:
            continue
        found += 1
        e, rate = (state["q"], state["qd"]) if basis == "modal" else (state["u"], state["ud"])
        gravity = np.array(state["R"]).T @ np.array(data["data"]["g"])
        form = inertia.form(e, rate, Motion(Vector(*state["w"]), Vector(*state["v"])))
        moment = np.array(inertia.moment(e), dtype=float)
        pull = [*(body.integrals.mass * gravity), *np.cross(moment, gravity), *(body.integrals.linear.T @ gravity)]
        matrix = body.integrals.mass_matrix(e)
        left = np.array([*form.force.force, *form.force.moment, *form.right]) - pull
        base = np.array([*state["vdot_lin"], *state["wdot"]])
        bent = np.linalg.solve(matrix[6:, 6:], -left[6:] - matrix[6:, :6] @ base - body.stiffness @ np.array(e))
        assert relative(matrix[:len(wanted["mass_matrix"])], wanted["mass_matrix"]) < 1e-15
        assert relative(bent, wanted["qdd"]) < 2e-13
        reaction = matrix[:6] @ np.concatenate([base, bent]) + left[:6]
        assert relative(reaction, wanted["reaction_wrench_on_beam_at_clamp"]) < 2e-13
        speeds = np.array([*state["v"], *state["w"], *rate])
        assert abs(0.5 * speeds @ matrix @ speeds / wanted["T"] - 1.0) < 1e-14
    assert found


def test_inertias_are_never_mixed_up() -> None:
    """Masses of three kinds give three different results, and bodies say which they have."""
    bodies = {kind: f1_body(kind, "modal") for kind in KINDS}
    assert [b.inertia for b in bodies.values()] == list(KINDS)
    state = case("f1_cantilever")["states"]["general"]
    motion = Motion(Vector(*state["w"]), Vector(*state["v"]))
    forces = [np.array(ModalInertia(b.integrals).form(state["q"], state["qd"], motion).right) for b in bodies.values()]
    for i, first in enumerate(forces):
        for second in forces[:i]:
            assert np.abs(first - second).max() > 1e-6 * np.abs(first).max()
    assert [b.integrals.material for b in bodies.values()] == [True, False, True]


@pytest.mark.parametrize("kind", KINDS)
def test_the_equations_of_one_body_are_lagranges(kind: str) -> None:
    """With any shapes, large deformations and speeds: rates of momenta by differences, exact for a quadratic matrix."""
    rng = np.random.default_rng(6)
    data = case("f1_cantilever")["data"]
    body = beam(data, 2, modes=np.concatenate([np.zeros((6, 4)), rng.normal(size=(12, 4))]), inertia=kind)
    e, rate, w, v = rng.normal(size=4), rng.normal(size=4), rng.normal(size=3), rng.normal(size=3)
    nu, mass = np.array([*v, *w, *rate]), body.integrals.mass_matrix
    nudot = np.array([*-np.cross(w, v), *np.zeros(7)])  # no acceleration of the frame's origin
    p = mass(e) @ nu
    change = 0.5 * (mass(e + rate) - mass(e - rate)) @ nu + mass(e) @ nudot
    slopes = np.array([nu @ (mass(e + unit) - mass(e - unit)) @ nu / 4.0 for unit in np.eye(4)])
    wanted = [*(change[:3] + np.cross(w, p[:3])), *(change[3:6] + np.cross(w, p[3:6]) + np.cross(v, p[:3])),
              *(change[6:] - slopes)]
    motion = Motion(Vector(*w.tolist()), Vector(*v.tolist()))
    form = ModalInertia(body.integrals).form(e.tolist(), rate.tolist(), motion)
    assert relative([*form.force.force, *form.force.moment, *form.right], wanted) < 1e-13


def test_the_form_is_that_of_the_mass_matrix() -> None:
    rng = np.random.default_rng(5)
    body = f1_body("consistent_nodal", "modal")
    e = rng.normal(size=3)
    mass, columns, matrix = ModalInertia(body.integrals).resistance(e.tolist())
    wanted = body.integrals.mass_matrix(e)
    for i, unit in enumerate(np.eye(6)):
        force = mass @ Motion(Vector(*unit[3:]), Vector(*unit[:3]))
        assert np.allclose([*force.force, *force.moment], wanted[:6, i], rtol=1e-14, atol=1e-16)
    assert np.allclose([[*c.force, *c.moment] for c in columns], wanted[6:, :6], rtol=1e-14, atol=1e-16)
    assert np.array_equal(np.array(matrix), wanted[6:, 6:])


# -- finite-element models ---------------------------------------------------------------------------------------------
def test_component_modes_of_a_bracket() -> None:
    data = case("f7_solid")
    nodes, mass, stiffness = bracket()
    faces = {"A": data["mesh"]["face_A_nodes"], "B": data["mesh"]["face_B_nodes"]}
    boundary = [3 * i + c for face in faces.values() for i in face for c in range(3)]
    basis = craig_bampton(mass, stiffness, boundary, 10)
    values, _ = normal_modes(*(basis.T @ (x @ basis) for x in (mass, stiffness)), 20)
    wanted = np.array(data["craig_bampton_full_faces"]["10"]["free_Hz"])
    assert relative(np.sqrt(values[6:]) / (2 * np.pi), wanted[6:]) < 1e-10
    inner = np.setdiff1d(np.arange(3 * len(nodes)), boundary)
    values, _ = normal_modes(mass[inner][:, inner], stiffness[inner][:, inner], 4)
    assert relative(np.sqrt(values) / (2 * np.pi), data["fixed_interface_Hz_first_4"]) < 1e-10


def test_rigid_faces_and_shape_integrals_of_a_bracket() -> None:
    """Twelve shapes of the two faces and ten normal modes, whose signs are free."""
    data = case("f7_solid")
    nodes, mass, stiffness = bracket()
    faces = [(data["mesh"][f"face_{name}_nodes"], np.array(at)) for name, at in
             zip("AB", data["rigid_faces"]["ref_nodes"], strict=True)]
    tie = tie_faces(nodes, 3, faces)
    tied = [tie.T @ x @ tie for x in (mass, stiffness)]
    basis = craig_bampton(*tied, range(tie.shape[1] - 12, tie.shape[1]), 10)
    reduced, wanted = basis.T @ (tied[0] @ basis), np.array(data["rigid_faces"]["Mr"])
    signs = np.ones(22)
    signs[12:] = np.sign((reduced[:12, 12:] * wanted[:12, 12:]).sum(axis=0))
    assert relative(reduced * np.outer(signs, signs), wanted) < 1e-11
    integrals = ShapeIntegrals.from_points(nodes, np.asarray(tie @ basis).reshape(-1, 3, 22), mass)
    assert relative(integrals.linear * signs, data["shape_integrals"]["S1_int_rho_phi"]) < 1e-11


def test_a_bracket_with_rigid_faces() -> None:
    data = case("f7_solid")
    nodes, mass, stiffness = bracket()
    faces = {"A": data["mesh"]["face_A_nodes"], "B": data["mesh"]["face_B_nodes"]}
    body = FlexibleBody.from_matrices(mass, stiffness, nodes, faces, modes=10)
    assert np.allclose([body.nodes[body.node(f)] for f in "AB"], data["rigid_faces"]["ref_nodes"], atol=1e-15)
    assert relative(body.integrals.mass, data["rigid"]["mass"]) < 1e-14
    assert relative(body.integrals.moment / body.integrals.mass, data["rigid"]["com"]) < 1e-13
    assert relative(body.integrals.second, data["rigid"]["inertia_origin"]) < 1e-13
    reduced = np.array(data["rigid_faces"]["Mr"])
    assert body.size == len(reduced) - 6  # without rigid motions
    assert np.abs(body.integrals.modal - np.eye(16)).max() < 1e-10
    held = FlexibleBody.from_matrices(mass, stiffness, nodes, faces, modes=10, frame="A")
    assert np.abs(held.modes[held.node("A")]).max() < 1e-12 * np.abs(held.modes).max() and held.size == 16
    assert relative(held.free_frequencies(), body.free_frequencies()) < 1e-9
    assert relative(body.frequencies(), body.free_frequencies()) < 1e-9


def test_free_modes_of_a_bracket() -> None:
    data = case("f7_solid")["motion"]
    nodes, mass, stiffness = bracket()
    body = FlexibleBody.from_matrices(mass, stiffness, nodes, {}, modes=8, reduction="free")
    assert relative(body.frequencies() / (2 * np.pi), data["freq_Hz"]) < 1e-11
    shapes = body.modes[:, :3].reshape(-1, 8)
    for j, (entry, value) in enumerate(data["signs"]):
        assert abs(abs(shapes[entry, j] / value) - 1.0) < 1e-7
    assert np.abs(body.integrals.linear).max() < 1e-12  # orthogonal to shifts
    low = FlexibleBody.from_matrices(mass, stiffness, nodes, {}, modes=8, reduction="free", cutoff=8000.0)
    assert low.size == 4
    faces = {"A": case("f7_solid")["mesh"]["face_A_nodes"]}
    guyan = FlexibleBody.from_matrices(mass, stiffness, nodes, {**faces, "B": case("f7_solid")["mesh"]["face_B_nodes"]},
                                       reduction="guyan", frame="A")
    assert guyan.size == 6 and guyan.free_frequencies()[0] / (2 * np.pi) > 0.999 * data["freq_Hz"][0]


def test_meshes() -> None:
    """The bracket's own mesh gives its matrices; the same solid of tetrahedra the same mass and rigid inertia."""
    data = case("f7_solid")
    nodes, mass, stiffness = bracket()
    cells = np.array(data["mesh"]["hex_vtk_order"])
    p = data["data"]
    own = solid_matrices(nodes, {"hexahedron": cells}, p["E"], p["nu"], p["rho"])
    for found, wanted in zip(own, (mass, stiffness), strict=True):
        assert abs(found - wanted).max() < 1e-13 * abs(wanted).max()
    split = np.array([[0, 1, 3, 4], [1, 2, 3, 6], [1, 3, 4, 6], [1, 6, 4, 5], [3, 6, 7, 4]])
    tetra = cells[:, split].reshape(-1, 4)
    faces = {"A": lambda x: x[:, 0] > 0.1199, "B": data["mesh"]["face_B_nodes"]}
    bodies = {kind: FlexibleBody.from_mesh((nodes, {kind: some}), p["E"], p["nu"], p["rho"], interfaces=faces, modes=4)
              for kind, some in (("hexahedron", cells), ("tetra", tetra))}
    first, second = (b.integrals for b in bodies.values())
    assert relative(second.mass, first.mass) < 1e-13 and relative(second.moment, first.moment) < 1e-12
    assert np.abs(second.second / first.second - 1.0).max() < 0.02  # consistent masses of two interpolations
    stiffer = bodies["tetra"].free_frequencies() / bodies["hexahedron"].free_frequencies()
    assert stiffer[0] > 1.0


def test_a_quadratic_tetrahedron_bends() -> None:
    """A slender bar of quadratic tetrahedra has the frequency of a beam; linear ones are far too stiff."""
    nx, size = 8, (0.4, 0.02, 0.02)
    grid = np.array([(i, j, k) for k in range(3) for j in range(3) for i in range(2 * nx + 1)], dtype=float)
    points = grid * np.array(size) / np.array([2 * nx, 2, 2])

    def at(i: int, j: int, k: int) -> int:
        return (k * 3 + j) * (2 * nx + 1) + i

    corners = np.array([[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0], [0, 0, 2], [2, 0, 2], [2, 2, 2], [0, 2, 2]])
    linear, quadratic = [], []
    for block in range(nx):
        split = [[0, 1, 3, 4], [1, 2, 3, 6], [1, 3, 4, 6], [1, 6, 4, 5], [3, 6, 7, 4]]
        if block % 2:  # neighbours share the diagonals of their faces
            mirror = [1, 0, 3, 2, 5, 4, 7, 6]
            split = [[mirror[c] for c in (t[1], t[0], t[2], t[3])] for t in split]
        for tetra in split:
            ends = [corners[c] + np.array([2 * block, 0, 0]) for c in tetra]
            middles = [(ends[a] + ends[b]) // 2 for a, b in ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))]
            linear.append([at(*e) for e in ends])
            quadratic.append([at(*e) for e in (*ends, *middles)])
    found = [FlexibleBody.from_mesh((points, {kind: cells}), 2.1e11, 0.3, 7850.0, modes=2, reduction="free",
                                    interfaces={}).frequencies()[0]
             for kind, cells in (("tetra10", quadratic), ("tetra", linear))]
    bar = BeamSection.rectangle(0.02, 0.02, thick=True, **STEEL)
    wanted = FlexibleBody.beam(0.4, bar, elements=16, modes={"y": 1}, support="free").frequencies()[0]
    assert abs(found[0] / wanted - 1.0) < 0.02 and found[1] / wanted > 1.2


@pytest.mark.parametrize(("mesh", "said"), [
    (3.0, "needs a mesh"), ((np.zeros((4, 3)), {"triangle": [[0, 1, 2]]}), "no solid elements"),
    ((np.zeros((4, 3)), {"tetra": [[0, 1, 2, 3]]}), "flat or folded"),
    (([[0, 0, 0], [1, 0, 0], [0, 1e-289, 0], [0, 0, 1]], {"tetra": [[0, 1, 2, 3]]}), "flat or folded"),
    ((np.eye(4)[:, :3], {"tetra": [[0, 1, 2]]}), "tetra elements need 4 nodes"), ("nowhere.msh", "meshio"),
    ((np.eye(4)[:, :3], {"tetra": [[]]}), "tetra elements need 4"), ((np.eye(4), {"tetra": [[0]]}), "three numbers"),
    ((np.eye(4)[:, :3], {"tetra": [[0, 1, 2, 4]]}), "numbered from 0 to 3"), (("x", {}), "arrays of numbers"),
    ((np.full((4, 3), np.nan), {"tetra": [[0, 1, 2, 3]]}), "must be finite")])
def test_bad_meshes(mesh: Any, said: str) -> None:
    if isinstance(mesh, str) and importlib.util.find_spec("meshio"):
        pytest.skip("meshio is there")
    with pytest.raises(bc.ModelError, match=said):
        FlexibleBody.from_mesh(mesh, 2e11, 0.3, 7850.0, interfaces={})


def test_a_beam_given_by_matrices_is_the_beam() -> None:
    """Held at one end and reduced with all its modes it has the frequencies of the beam; sparse matrices as dense."""
    data = case("f1_cantilever")
    mass, stiffness = (np.array(data["mass_stiffness"][name]) for name in ("M_consistent", "K"))
    nodes = [(x, 0.0, 0.0) for x in data["mass_stiffness"]["node_x"]]
    whole = beam(data["data"], 4, modes="all", inertia="consistent_nodal")
    for made in (lambda x: x, sparse.csr_matrix):
        body = FlexibleBody.from_matrices(made(mass), made(stiffness), nodes, {"base": 0, "tip": 4}, modes=18,
                                          frame="base")
        assert body.size == whole.size == 24
        assert relative(body.frequencies(), whole.frequencies()) < 1e-10
        assert relative(body.free_frequencies(), whole.free_frequencies()) < 1e-10


def test_matrices_in_files(tmp_path: Path) -> None:
    data = case("f1_cantilever")
    mass, stiffness = (np.array(data["mass_stiffness"][name]) for name in ("M_consistent", "K"))
    nodes = [(x, 0.0, 0.0) for x in data["mass_stiffness"]["node_x"]]
    io.savemat(tmp_path / "beam.mat", {"M": mass, "K": sparse.csc_matrix(stiffness)})
    np.save(tmp_path / "M.npy", mass)
    sparse.save_npz(tmp_path / "K.npz", sparse.csr_matrix(stiffness))
    io.mmwrite(tmp_path / "K.mtx", sparse.coo_matrix(stiffness), precision=17)
    wanted = FlexibleBody.from_matrices(mass, stiffness, nodes, {"base": 0}, modes=3, frame="base").frequencies()
    for pair in ((f"{tmp_path / 'beam.mat'}:M", f"{tmp_path / 'beam.mat'}:K"), (tmp_path / "M.npy", tmp_path / "K.npz"),
                 (tmp_path / "M.npy", tmp_path / "K.mtx")):
        found = FlexibleBody.from_matrices(*pair, nodes, {"base": 0}, modes=3, frame="base").frequencies()
        assert relative(found, wanted) < 1e-9
    for given, said in ((f"{tmp_path / 'beam.mat'}:k", "no matrix 'k'"), (tmp_path / "beam.mat", "say which"),
                        (tmp_path / "nothing.mat", "there is no file"), (tmp_path, "there is no file")):
        with pytest.raises(bc.FileError, match=said):
            FlexibleBody.from_matrices(mass, given, nodes, {"base": 0}, modes=3)


def test_damping_ratios() -> None:
    rod = BeamSection.round(0.01, **STEEL)
    body = FlexibleBody.beam(1.0, rod, modes={"y": 2}, damping=0.02)
    assert np.allclose(np.diag(body.damping), 2 * 0.02 * body.frequencies(), rtol=1e-6)
    each = FlexibleBody.beam(1.0, rod, modes={"y": 2}, damping=[0.01, 0.03])
    assert np.allclose(np.diag(each.damping), 2 * np.array([0.01, 0.03]) * body.frequencies(), rtol=1e-6)
    matrix = FlexibleBody.beam(1.0, rod, modes={"y": 2}, damping=np.diag([3.0, 4.0]))
    assert np.array_equal(matrix.damping, np.diag([3.0, 4.0]))


def test_data_cannot_be_changed() -> None:
    body = FlexibleBody.beam(1.0, BeamSection.round(0.01, **STEEL), modes=2)
    for array in (body.nodes, body.modes, body.stiffness, body.damping, body.integrals.modal):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    with pytest.raises(TypeError):
        body.names["other"] = 1  # type: ignore[index]


# -- bad input ---------------------------------------------------------------------------------------------------------
def _two(stiffness: Any = None, modes: Any = None, mass: Any = None, **options: Any) -> FlexibleBody:
    """Three masses on a line, with two shapes."""
    nodes = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (2.0, 1.0, 0.0)]
    shapes = np.zeros((9, 2))
    shapes[3, 0] = shapes[7, 1] = 1.0
    return FlexibleBody.from_modes(nodes, shapes if modes is None else modes, np.eye(9) if mass is None else mass,
                                   np.diag([4.0, 9.0]) if stiffness is None else stiffness, **options)


def test_a_good_one_passes() -> None:
    assert np.allclose(_two(names={"end": -1}).frequencies(), [2.0, 3.0])


@pytest.mark.parametrize(("options", "said"), [
    ({"stiffness": [[4.0, 1.0], [2.0, 9.0]]}, "modal stiffness is not symmetric"),
    ({"stiffness": np.diag([4.0, -1.0])}, "stiffness matrix is not positive"),
    ({"mass": np.triu(np.ones((9, 9)))}, "mass matrix is not symmetric"),
    ({"mass": np.zeros((9, 9))}, "the mass is 0"),
    ({"mass": np.full((9, 9), np.nan)}, "not finite"),
    ({"modes": np.tile(np.eye(3)[:, :2], (3, 1))}, "mode1 is a rigid motion|mode2 is a rigid motion"),
    ({"modes": np.eye(9)[:, [3, 3]]}, "the sum of other modes"),
    ({"modes": np.zeros((9, 2))}, "mode1 moves no mass"),
    ({"modes": np.eye(8)[:, :2]}, "3 or 6 rows for each of the 3 nodes"),
    ({"names": {"end": 3}}, "node 'end' is number 3"),
    ({"names": {"a.b": 1}}, "without a dot"),
    ({"names": {"end": 2, "mid": 1}, "clamped": "mid"}, "mode1 moves it by 1"),
    ({"clamped": "ned", "names": {"end": 2}}, "no node called 'ned'.*did you mean 'end'"),
    ({"damping": [0.1]}, "one for each of the 2 modes"),
    ({"damping": -0.1}, "at least 0"),
    ({"inertia": "heavy"}, "none of lumped, consistent_nodal, continuum")])
def test_bad_data(options: dict[str, Any], said: str) -> None:
    with pytest.raises(bc.ModelError) as caught:
        _two(**options)
    assert re.search(said, str(caught.value))


@pytest.mark.parametrize(("options", "said"), [
    ({"length": 0.0}, "length must be greater than 0"), ({"elements": 0}, "at least 1"),
    ({"support": "glued"}, "none of clamped, pinned, free"), ({"inertia": "heavy"}, "none of lumped"),
    ({"modes": {"w": 1}}, "'w' is no kind of vibration"), ({"modes": {"y": 99}}, "from 0 to 8 with 4 elements"),
    ({"modes": -1}, "from 0 to 24"), ({"modes": "every"}, "modes='every'"), ({"modes": np.ones((3, 3))}, "30 in all"),
    ({"section": 3.0}, "must be a BeamSection")])
def test_bad_beams(options: dict[str, Any], said: str) -> None:
    good: dict[str, Any] = {"length": 1.0, "section": BeamSection.round(0.01, **STEEL), "elements": 4}
    with pytest.raises(bc.ModelError, match=re.escape(said)):
        FlexibleBody.beam(**{**good, **options})


def test_bad_sections() -> None:
    with pytest.raises(bc.ModelError, match="EIz must be greater than 0"):
        BeamSection(1.0, 1.0, 0.0, 1.0, 1.0)
    with pytest.raises(bc.ModelError, match="less than the diameter"):
        BeamSection.round(0.01, bore=0.01, **STEEL)
    with pytest.raises(bc.ModelError, match="EA is not finite"):
        BeamSection(np.inf, 1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize(("options", "said"), [
    ({"frame": "C"}, "the frame 'C' is no interface"), ({"reduction": "none"}, "none of craig-bampton, guyan, free"),
    ({"interfaces": {"A": 3}}, "no rotation"), ({"interfaces": {"A": [1, 2, 999]}}, "node 999"),
    ({"interfaces": {"A": [1, 2, 3], "B": [3, 4, 5]}}, "node 3 belongs to the interfaces 'A' and 'B'"),
    ({"reduction": "free", "frame": "A"}, "cannot be held"),
    ({"nodes": np.zeros((7, 3))}, "3 or 6 rows for each of the 7 nodes"), ({"interfaces": [1, 2, 3]}, "by names"),
    ({"modes": -1}, "whole number, at least 0"), ({"modes": 2.5}, "whole number"), ({"cutoff": -5.0}, "above 0 Hz")])
def test_bad_models(options: dict[str, Any], said: str) -> None:
    nodes, mass, stiffness = bracket()
    good: dict[str, Any] = {"nodes": nodes, "interfaces": {"A": case("f7_solid")["mesh"]["face_A_nodes"]}, "modes": 2}
    with pytest.raises(bc.ModelError, match=re.escape(said)):
        FlexibleBody.from_matrices(mass, stiffness, **{**good, **options})


@pytest.mark.parametrize(("change", "said"), [
    (lambda m, k: (-m, k), "the mass matrix is not positive: node .* has -"),
    (lambda m, k: (m, -k), "the stiffness matrix is not positive: node"),
    (lambda m, k: (0 * m, k), "the mass matrix is zero"), (lambda m, k: (m, 0 * k), "the stiffness matrix is zero"),
    (lambda m, k: [sparse.block_diag([x, y * sparse.eye(3)]).tocsr() for x, y in ((m, 0.1), (k, 0.0))],
     "are there nodes that nothing connects"),
    (lambda m, k: (m - 0.999 * sparse.diags(m.diagonal()), k), "the mass matrix is not positive definite")])
def test_matrices_that_no_body_has(change: Any, said: str) -> None:
    nodes, mass, stiffness = bracket()
    mass, stiffness = change(mass, stiffness)
    nodes = np.concatenate([nodes, np.zeros((mass.shape[0] // 3 - len(nodes), 3))])
    faces = {name: case("f7_solid")["mesh"][f"face_{name}_nodes"] for name in "AB"}
    with pytest.raises(bc.ModelError, match=said):
        FlexibleBody.from_matrices(mass, stiffness, nodes, faces, modes=2)


def test_a_body_without_modes() -> None:
    """One interface, no vibrations: a rigid body with a node."""
    nodes, mass, stiffness = bracket()
    body = FlexibleBody.from_matrices(mass, stiffness, nodes, {"A": case("f7_solid")["mesh"]["face_A_nodes"]}, modes=0,
                                      frame="A")
    assert body.size == 0 and body.integrals.mass > 1.0


def test_a_stiffness_with_supports_is_refused() -> None:
    nodes, mass, stiffness = bracket()
    held = stiffness.tolil()
    held[0, 0] *= 2.0
    with pytest.raises(bc.ModelError, match="without supports"):
        FlexibleBody.from_matrices(mass, held, nodes, {}, modes=2, reduction="free")


def test_integrals_of_a_point_mass() -> None:
    """One mass on a mode along y at x = 2: by hand."""
    shape = np.zeros((1, 3, 1))
    shape[0, 1, 0] = 1.0
    found = ShapeIntegrals.from_points(np.array([[2.0, 0.0, 0.0]]), shape, 3.0 * np.eye(3)).mass_matrix([0.5])
    x, y, m = 2.0, 0.5, 3.0
    wanted = np.zeros((7, 7))
    wanted[:3, :3] = m * np.eye(3)
    wanted[:3, 3:6] = m * np.array([[0.0, 0.0, -y], [0.0, 0.0, x], [y, -x, 0.0]])
    wanted[3:6, :3] = wanted[:3, 3:6].T
    wanted[3:6, 3:6] = m * np.array([[y * y, -x * y, 0.0], [-x * y, x * x, 0.0], [0.0, 0.0, x * x + y * y]])
    wanted[1, 6] = wanted[6, 1] = m
    wanted[5, 6] = wanted[6, 5] = m * x
    wanted[6, 6] = m
    assert np.array_equal(found, wanted)
