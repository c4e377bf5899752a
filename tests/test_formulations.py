"""All formulations: pairwise agreement, exact operation counts, canonical momenta, and how to add one."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
import reference_cases
from bellcrank.examples.chains import general_chain
from bellcrank.formulations import METHODS, dense, method_names
from mechanisms import EPS, Part, Tree, build, condition, examples, state, trees
from properties import leave
from test_agreement import NEARLY, WELDED, compare

ALL = method_names()


@pytest.mark.reaches(0.9)
@examples(70)
@given(trees(), st.sampled_from([(), (3,)]), st.booleans())
def test_all_methods_agree(tree: Tree, size: tuple[int, ...], given_wrenches: bool) -> None:
    """Forward and inverse dynamics by every method against the plainest one; so every pair agrees."""
    compare(tree, lambda m: {name: bc.compile(m, name, "numpy") for name in ALL}, size, given_wrenches,
            ["forward", "inverse"])


MIXED = (Part("Universal", -1), Part("Prismatic", 0, driven=1), Part("Spherical", 1), Part("Cylindrical", 0,
         backwards=True, wrench="world"), Part("Planar", 3), Part("Screw", 4, "parallel"), Part("Free", 0))


@pytest.mark.everyday(10)
@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
@pytest.mark.parametrize("method", ALL)
def test_all_methods_compiled(method: str, schedule: str) -> None:
    for parts in (MIXED, NEARLY[:4], WELDED):
        compare(Tree(parts, 3), lambda m: {method: bc.compile(m, method, schedule=schedule)}, (5,), False,
                ["forward"])


@pytest.mark.reaches(0.9)
@examples(25)
@given(trees())
def test_the_inertia_matrix_of_saha_and_schiehlen(tree: Tree) -> None:
    """(34), a text of its own, against composite rigid bodies."""
    assert METHODS["complement"].mass_matrix is not dense.mass_matrix
    compare(tree, lambda m: {"complement": bc.compile(m, "complement", "numpy")}, (), False, ["mass"])


@pytest.mark.parametrize("schedule", ["unrolled", "rolled"])
def test_the_inertia_matrix_compiled(schedule: str) -> None:
    compare(Tree(MIXED, 3), lambda m: {"complement": bc.compile(m, "complement", schedule=schedule)}, (5,), False,
            ["mass"])


@pytest.mark.reaches(0.9)
@examples(25)
@given(trees(), st.booleans())
def test_reactions_from_momenta(tree: Tree, given_wrenches: bool) -> None:
    """The reactions T_r of Naudet et al. are those of Newton and Euler."""
    compare(tree, lambda m: {"momenta": bc.compile(m, "momenta", "numpy")}, (), given_wrenches, ["reactions"])


def test_the_point_is_an_argument() -> None:
    system = bc.compile(bc.load("arm"), "recursive", "numpy", point="origin")
    assert system.model.method == "recursive/origin"
    with pytest.raises(bc.ModelError, match="no method 'recursive/elbow'"):
        bc.compile(bc.load("arm"), "recursive", point="elbow")


# -- canonical momenta ----------------------------------------------------------------------------
@pytest.mark.reaches(0.9)
@examples(50)
@given(trees(max_bodies=6))
def test_momenta(tree: Tree) -> None:
    """p = M u (plus what is prescribed), u from p, and dp/dt as measured along the motion."""
    m = build(tree)
    system = bc.compile(m, backend="numpy")
    s = state(m, tree.seed)
    if condition(system, s) > 1e6:
        leave()
    q, u, t = s.q, s.u, s.t
    p = system.momenta(q, u, t=t)
    speeds, rate = system.hamilton(q, p, s.tau, t=t)
    size = np.abs(p).max() + 1.0
    assert np.abs(speeds - u)[s.free].max(initial=0.0) <= 1e3 * len(tree.parts) * EPS * condition(system, s) * (
        1.0 + np.abs(u).max())
    if s.free.all():
        assert np.abs(system.mass_matrix(q) @ u - p).max() <= 1e3 * len(tree.parts) * EPS * size
    udot = system.forward_dynamics(q, u, s.tau, t=t)
    h = 1e-4

    def along(x: float) -> np.ndarray:
        """p on a path through the state with the motion's speeds and accelerations there."""
        middle = u + 0.5 * x * udot
        return system.momenta(system.integrate(q, x * middle), u + x * udot, t=t + x)

    measured = (8.0 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12.0 * h)
    scale = size * (1.0 + np.abs(udot).max() + np.abs(u).max() ** 2)
    assert np.abs(measured - rate)[s.free].max(initial=0.0) <= 1e-6 * scale


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", reference_cases.names())
def test_reference_momenta(name: str, backend: str) -> None:
    """p, the speeds that belong to it, and dp/dt of the independent solutions."""
    case = reference_cases.read(name, applied=True)
    system = bc.compile(case.mechanism, "momenta", backend)
    free = ~case.prescribed
    p = system.momenta(case.q, case.u)
    speeds, rate = system.hamilton(case.q, case.momenta, case.tau)
    assert np.abs(p - case.momenta).max() <= 1e-12 * np.abs(case.momenta).max()
    assert np.abs(speeds - case.u)[free].max(initial=0.0) <= 1e-10 * np.abs(case.u).max()
    assert np.abs(rate - case.momenta_rate)[free].max(initial=0.0) <= 1e-10 * np.abs(case.momenta_rate).max()
    udot = system.forward_dynamics(case.q, case.u, case.tau)
    assert np.abs(udot - case.udot).max() <= 1e-10 * np.abs(case.udot).max()


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("name", reference_cases.names())
def test_references_by_every_method(name: str, method: str) -> None:
    case = reference_cases.read(name, applied=True)
    udot = bc.compile(case.mechanism, method, "numpy").forward_dynamics(case.q, case.u, case.tau)
    assert np.abs(udot - case.udot).max() <= 1e-10 * np.abs(case.udot).max()


# -- operation counts: exact, so they can be asserted ---------------------------------------------
COUNTS = {  # adds, multiplications with divisions: (a, b) of a n + b for chains of pin joints
    "recursive": ((198, -296), (214, -291)), "kane": ((328, -534), (347, -526)), "operator": ((234, -368), (264, -382)),
    "complement": ((222, -356), (253, -373)), "momenta": ((220, -342), (244, -352)),
    "recursive/centroid": ((306, -497), (335, -478)), "recursive/joint": ((279, -462), (296, -424)),
    "recursive/origin": ((255, -373), (293, -370)),
}


@pytest.mark.parametrize("method", COUNTS)
def test_counts_of_pin_chains(method: str) -> None:
    adds, muls = COUNTS[method]
    for n in (3, 4, 9, 20):
        count = bc.compile(general_chain(n, bc.Revolute), method, schedule="unrolled").operation_count()
        assert (count.adds, count.muls + count.divs, count.trigs) == (
            adds[0] * n + adds[1], muls[0] * n + muls[1], 2 * n)


def test_momenta_need_fewer_operations_than_their_paper() -> None:
    """Table 1 of Naudet et al.: 363 n - 475."""
    for n in range(3, 21):
        system = bc.compile(general_chain(n, bc.Revolute), "momenta", schedule="unrolled")
        count = system.operation_count("hamilton")
        assert (count.adds, count.muls + count.divs) == (170 * n - 270, 176 * n - 264)
        assert count.total <= 363 * n - 475


@pytest.mark.parametrize("kind", [bc.Revolute, bc.Cylindrical, bc.Universal, bc.Spherical])
def test_the_global_origin_saves_multiplications(kind: type[bc.Joint]) -> None:
    """Kang & Yoon: at least 36 + 6 n per body against the centroid, n speeds per joint."""
    per_body = {}
    for point in ("centroid", "joint", "origin"):
        counts = [bc.compile(general_chain(n, kind), f"recursive/{point}", schedule="unrolled").operation_count()
                  for n in (6, 7, 8)]
        steps = {b.muls - a.muls for a, b in pairwise(counts)}
        assert len(steps) == 1
        per_body[point] = steps.pop()
    assert per_body["centroid"] - per_body["origin"] >= 36 + 6 * kind().nu
    assert per_body["joint"] < per_body["centroid"]


def test_counts_do_not_depend_on_the_numbers() -> None:
    for seed in range(5):
        count = bc.compile(general_chain(5, bc.Revolute, seed), schedule="unrolled").operation_count()
        assert count.total == 412 * 5 - 587


# -- adding a formulation -------------------------------------------------------------------------
def test_adding_a_formulation_takes_a_module_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    trivial = ModuleType("trivial", "Somebody's own method.")
    trivial.forward_dynamics = dense.forward_dynamics  # type: ignore[attr-defined]
    trivial.WHOLE = ("forward_dynamics",)  # type: ignore[attr-defined]
    trivial.BIBTEX = "@misc{trivial}"  # type: ignore[attr-defined]
    monkeypatch.setitem(METHODS, "trivial", trivial)
    assert "trivial" in method_names()
    assert bc.cite("trivial") == "@misc{trivial}"
    compare(Tree(MIXED, 1), lambda m: {"trivial": bc.compile(m, "trivial", "numpy")}, only=["forward", "inverse"])
    rows = bc.compare(bc.load("scara"), ["recursive", "trivial"], states=8).rows
    assert [r.method for r in rows] == ["recursive", "trivial"]
    assert rows[1].disagreement == 0.0


def test_every_method_is_cited() -> None:
    for name in ALL:
        entry = bc.cite(name)
        assert entry.startswith("@")
        assert all(f"{field} " in entry for field in ("author", "title", "year")), name
    assert f"version = {{{bc.__version__}}}" in bc.cite("elimination")
    assert "author  = {{The Bellcrank team}}" in bc.cite("elimination")
    with pytest.raises(bc.ModelError, match="no method 'nosuch'"):
        bc.cite("nosuch")
    said, *entries = bc.cite("auto").split("\n\n")
    chosen = [bc.compile(bc.load(name)).model.method for name in ("pendulum", "four_bar")]
    assert entries == [bc.cite(name) for name in chosen]
    assert said.startswith("% 'auto' is") and all(repr(name) in said for name in chosen)


def test_comparison() -> None:
    table = bc.compare(bc.load("gyroscope"), states=16)
    assert {r.method for r in table.rows} == set(ALL)
    assert all(r.disagreement < 1e-11 for r in table.rows)
    assert len(str(table).splitlines()) == len(table.rows) + 2
