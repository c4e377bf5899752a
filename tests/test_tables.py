"""Tables: what they interpolate, what lies beyond, what is refused, and the same in compiled code."""

from __future__ import annotations

import math
import os
import pickle

import numpy as np
import pytest
from scipy.interpolate import Akima1DInterpolator, CubicSpline, PchipInterpolator

import bellcrank as bc
from bellcrank.formulations import SHARED
from bellcrank.lowering.choose import entries_of
from bellcrank.scalar.derivative import tangents
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.scalar.lookup import Constants, entry, floor, locate
from bellcrank.target.cuda.device_text import batch_text
from bellcrank.target.kernel_source import GraphKernel
from c_library import COMPILER, exported

GRAPH = Graph()
X = np.array([-2.0, -1.1, -0.4, 0.3, 0.9, 1.0, 2.5])
Y = np.array([0.3, -1.0, 0.2, 0.8, 0.7, 2.0, -0.5])
KINDS = {"cubic": CubicSpline, "akima": Akima1DInterpolator, "monotone": PchipInterpolator}


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_the_usual_interpolants(kind):
    x = np.linspace(-2.0, 2.5, 113)
    found = bc.Table(X, Y, kind=kind, extrapolate="error")(x)
    assert np.abs(found - KINDS[kind](X, Y)(x)).max() < 1e-13


def test_linear_and_both_ends():
    x = np.linspace(-2.0, 2.5, 41)
    assert np.abs(bc.Table(X, Y, extrapolate="hold")(x) - np.interp(x, X, Y)).max() < 1e-14
    spline = CubicSpline(X, Y)
    on = bc.Table(X, Y, kind="cubic", extrapolate="linear")
    assert abs(on(3.5) - (Y[-1] + spline(2.5, 1))) < 1e-12 and abs(on(-4.0) - (Y[0] - 2.0 * spline(-2.0, 1))) < 1e-12
    held = bc.Table(X, Y, kind="cubic", extrapolate="hold")
    assert abs(held(9.0) - Y[-1]) < 1e-13 and held(-9.0) == Y[0] and held(-2.0) == Y[0]
    again = bc.Table([0.0, 1.0, 3.0], [2.0, 5.0, 2.0], extrapolate="periodic")
    assert [again(x) for x in (0.5, 3.5, -2.5, 6.0)] == [3.5, 3.5, 3.5, 2.0]


@pytest.mark.parametrize("values", [[0.0, 1.0, 2.0, 0.0], [1.0, 1.0, 1.0, 1.0]])  # a constant, too
@pytest.mark.parametrize("beyond", ["hold", "linear", "error", "periodic"])
def test_what_is_no_number_stays_none(beyond, values):
    """Of floats, arrays and graphs, in each argument."""
    nan, axis = float("nan"), [0.0, 1.0, 2.0, 3.0]
    for kind in ("linear", "cubic"):
        line = bc.Table(axis, values, kind=kind, extrapolate=beyond)
        plane = bc.Table((axis, axis), np.outer(values, values), kind=kind, extrapolate=beyond)
        assert math.isnan(line(nan)) and math.isnan(plane(nan, 0.5)) and math.isnan(plane(0.5, nan))
        assert np.isnan(line(np.array([nan, 0.5]))).tolist() == [True, False]
        assert np.isnan(plane(np.array([nan, 0.5, 0.5]), np.array([0.5, nan, 0.5]))).tolist() == [True, True, False]
        graph = Graph()
        x, y = graph.leaf("x"), graph.leaf("y")
        for given in ({"x": nan, "y": 0.5}, {"x": 0.5, "y": nan}):
            assert np.isnan(evaluate([plane(x, y)], given)).all()
            assert np.isnan(evaluate([line(x)], {"x": nan})).all()


def test_beyond_the_ends_of_a_table_that_ends():
    table = bc.Table(X, Y, extrapolate="error", name="valve")
    assert table(2.5) == Y[-1] and table(-2.0) == Y[0]
    with pytest.raises(bc.StateError, match=r"table 'valve': x = 2.6 is outside of its points, -2 to 2.5"):
        table(2.6)
    m = bc.load("pendulum")
    m.add_joint_force("valve", "hinge", lambda q, u: table(q))
    system = bc.compile(m)
    with pytest.raises(bc.StateError, match=r"forward_dynamics.*table 'valve'"):
        system.forward_dynamics([2.6], [0.0])


def test_a_run_that_leaves_a_table_says_so():
    short = bc.Table([-1.0, 1.0], [-30.0, 30.0], extrapolate="error", name="short")
    m = bc.load("pendulum")
    m.add_joint_force("push", "hinge", lambda q, u: short(q))
    with pytest.warns(bc.SimulationWarning, match="table 'short': x = 1.0.* is outside of its points, -1 to 1"):
        result = bc.compile(m).simulate(([0.3], [0.0]), duration=1.5)
    assert result.attrs["status"] == "failed"


def test_controllers_and_cams_that_leave_a_table_say_so():
    short = bc.Table([0.0, 0.05], [0.0, 1.0], extrapolate="error", name="short")
    system = bc.compile(bc.load("pendulum"))
    with pytest.warns(bc.SimulationWarning, match="control: table 'short': x = .* is outside of its points, 0 to 0.05"):
        system.simulate(([0.1], [0.0]), 0.1, step=1e-3, control=bc.Traced(lambda t, q, u: {"hinge": short(t)}))
    m = bc.Mechanism("cam")
    cam(m, short, None)
    with pytest.raises(bc.StateError, match="table 'short': x = .* is outside of its points, 0 to 0.05"):
        bc.compile(m, backend="numpy").assemble(q={"cam": 0.2})


def test_tables_that_end_may_lie_anywhere(tmp_path):
    """Laws are tried at some place when they are added; a table that has none there is no mistake."""
    x = np.linspace(5.0, 6.0, 5)
    one, two = (bc.Table(points, values, kind="cubic", extrapolate="error", name=name) for name, points, values in (
        ("one", x, x**2), ("two", (x, x), np.outer(x, x))))
    for use, add in USES.items():
        m = bc.load("pendulum")
        add(m, one, two)
        bc.save(m, tmp_path / "m.yaml")
        assert bc.io.native.same_mechanism(bc.load(tmp_path / "m.yaml"), m), use
        bc.compile(m, backend="numpy")
    m = bc.load("pendulum")
    m.prescribe("hinge", one)
    state = bc.compile(m, backend="numpy").assemble(t=5.3)
    assert abs(state.q[0] - 5.3**2) < 1e-12 and abs(state.u[0] - 10.6) < 1e-12


def surface(x, y):
    return np.sin(x) * np.cos(0.5 * y) + 0.1 * x * y


@pytest.mark.parametrize(("kind", "tolerance"), [("linear", 0.08), ("cubic", 2e-3), ("akima", 1e-2),
                                                 ("monotone", 5e-2)])
def test_two_arguments(kind, tolerance):
    x, y = np.linspace(0.0, 3.0, 9), np.linspace(-2.0, 2.0, 8)
    table = bc.Table((x, y), surface(x[:, None], y), kind=kind, extrapolate="linear")
    a, b = np.random.default_rng(0).uniform((0.0, -2.0), (3.0, 2.0), (50, 2)).T
    assert np.abs(table(a, b) - surface(a, b)).max() < tolerance
    assert np.abs(table(x, y[3]) - surface(x, y[3])).max() < 1e-12
    out = table(4.0, 0.3) - table(3.0, 0.3)  # straight on: the same step again
    assert abs(table(5.0, 0.3) - table(4.0, 0.3) - out) < 1e-12


@pytest.mark.parametrize("kind", ["linear", "cubic", "akima", "monotone"])
@pytest.mark.parametrize("beyond", ["hold", "linear", "periodic"])
def test_surfaces_have_no_steps_and_no_kinks(kind, beyond):
    """Both sides of every line of the grid agree, inside and beyond it; so do slopes of smooth kinds inside. Exchanging
    the arguments changes nothing; along lines of the grid the surface is the curve of one argument."""
    rng = np.random.default_rng(3)
    axes = [np.cumsum(rng.uniform(0.3, 1.0, n)) for n in (6, 7)]
    values = rng.normal(size=(6, 7))
    if beyond == "periodic":
        values[-1] = values[0]
        values[:, -1] = values[:, 0]
    table = bc.Table(axes, values, kind=kind, extrapolate=beyond)
    other = bc.Table(axes[::-1], values.T, kind=kind, extrapolate=beyond)
    many = [np.linspace(a[0] - 1.0, a[-1] + 1.0, 61) for a in axes]
    assert np.abs(table(many[0][:, None], many[1]) - other(many[1], many[0][:, None])).max() < 1e-11
    for k, knot in enumerate(axes[0]):
        across = [table(Jet(x, 1.0, 0.0), many[1]) for x in (knot - 1e-11, knot + 1e-11)]
        assert np.abs(across[0].value - across[1].value).max() < 1e-8, knot  # slopes are up to 60
        if kind != "linear" and (beyond != "hold" or 0 < k < 5):
            assert np.abs(across[0].rate - across[1].rate).max() < 1e-8, knot
        line = bc.Table(axes[1], values[k], kind=kind, extrapolate=beyond)
        assert np.abs(table(knot, many[1]) - line(many[1])).max() < 1e-11


def test_monotone_surfaces_keep_to_their_values():
    """Of points that rise along both arguments; a product of straight lines is met exactly."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        axes = [np.cumsum(rng.uniform(0.3, 1.0, n)) for n in (6, 7)]
        values = np.cumsum(np.cumsum(rng.uniform(0.0, 1.0, (6, 7)) ** 4, axis=0), axis=1)
        table = bc.Table(axes, values, kind="monotone", extrapolate="hold")
        fine = [np.linspace(a[0], a[-1], 101) for a in axes]
        found = table(fine[0][:, None], fine[1])
        assert found.min() > values.min() - 1e-12 and found.max() < values.max() + 1e-12
        flat = bc.Table(axes, np.outer(*axes), kind="monotone", extrapolate="linear")
        assert np.abs(flat(fine[0][:, None], fine[1]) - np.outer(*fine)).max() < 1e-11


def test_derivatives_are_exact():
    table = bc.Table(X, Y, kind="akima", extrapolate="linear")
    reference = Akima1DInterpolator(X, Y)
    jet = table(Jet(0.55, 2.0, 0.5))
    assert abs(jet.rate - 2.0 * reference(0.55, 1)) < 1e-12
    assert abs(jet.acceleration - (4.0 * reference(0.55, 2) + 0.5 * reference(0.55, 1))) < 1e-11
    graph = Graph()
    x = graph.leaf("x")
    slope = tangents([table(x)], {x: {0: 1.0}})[0][0]
    for at in (-1.7, 0.2, 2.2):
        assert abs(evaluate([slope], {"x": at})[0] - reference(at, 1)) < 1e-12


def test_lookups_on_all_kinds_of_numbers():
    knots = Constants((0.0, 1.0, 3.0))
    graph = Graph()
    x = graph.leaf("x")
    roots = [locate(x, knots), entry(locate(x, knots), Constants((4.0, 5.0, 6.0, 7.0))), floor(x)]
    for at in (-0.5, 0.0, 2.9, 3.0):
        assert evaluate(roots, {"x": at}) == [locate(at, knots), 4.0 + locate(at, knots), np.floor(at)]
    assert locate(float("nan"), knots) == 0.0 == locate(np.array(np.nan), knots)
    again = pickle.loads(pickle.dumps(graph))
    assert evaluate([again.nodes[-1]], {"x": -1.5}) == [-2.0]


def law(q, u):
    return SPRING(q) - DAMPER(u, q)


SPRING = bc.Table(X, Y, kind="monotone", extrapolate="hold", name="spring")
DAMPER = bc.Table(([-1.0, 0.0, 2.0], [-1.0, 1.0]), [[-3.0, -2.0], [0.0, 0.1], [4.0, 6.0]], extrapolate="linear")


def test_compiled_lookup_is_the_reference_one():
    m = bc.load("pendulum")
    m.add_joint_force("law", "hinge", law)
    q, u = np.random.default_rng(1).uniform(-3.0, 3.0, (2, 21, 1))
    system, reference = bc.compile(m), bc.compile(m, backend="numpy")
    wanted = reference.forward_dynamics(q, u)
    assert np.abs(system.forward_dynamics(q, u) - wanted).max() < 1e-12  # lanes
    assert np.abs(system.forward_dynamics(q[4], u[4]) - wanted[4]).max() < 1e-12
    for same in (1.0, 2.0):  # of the table with 1.0 no argument matters
        held = bc.Table([0.0, 1.0], [1.0, same], extrapolate="hold")
        m = bc.load("pendulum")
        m.add_joint_force("held", "hinge", lambda q, u, held=held: held(bc.math.sqrt(q)))
        with pytest.raises(bc.SingularError):
            bc.compile(m).forward_dynamics([-1.0], [0.0])
    assert len({str(pickle.loads(pickle.dumps(SPRING))(0.3)), str(SPRING(0.3))}) == 1


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
@pytest.mark.parametrize("scalar", ["double", "float"])
def test_in_c(tmp_path, scalar):
    m = bc.load("pendulum")
    m.add_joint_force("law", "hinge", law)
    system = bc.compile(m)
    library = exported(system, ["forward_dynamics"], tmp_path, scalar=scalar)
    for q, u in ((-2.6, 0.4), (0.2, -1.7), (2.4, 3.0)):
        status, found, _ = library("forward_dynamics", {"q": np.array([q]), "u": np.array([u]), "tau": np.zeros(1)}, 1)
        assert status == 0 and abs(found[0] - system.forward_dynamics([q], [u])[0]) < (
            1e-12 if scalar == "double" else 1e-4)


def test_cuda_text_holds_the_search():
    m = bc.load("pendulum")
    m.add_joint_force("law", "hinge", law)
    tree = bc.compile(m).model.tree
    traced = entries_of(tree, SHARED["joint_laws"], lambda name, i: GRAPH.leaf((name, i)), False)
    text = batch_text(GraphKernel(traced, {"q": 1, "u": 1}), "double").text
    assert "static const double constants_0[7]" in text and text.count("/= 2)") == 3


def test_in_casadi():
    casadi = pytest.importorskip("casadi")
    m = bc.load("pendulum")
    m.add_joint_force("law", "hinge", law)
    system = bc.compile(m)
    found = bc.to_casadi(system, "forward_dynamics")(casadi.DM([0.4]), casadi.DM([-0.3]), casadi.DM([0.0]))
    assert abs(float(found) - system.forward_dynamics([0.4], [-0.3])[0]) < 1e-12
    with pytest.raises(bc.ModelError, match="looks something up in a table"):
        bc.to_sympy(system, "forward_dynamics")


def test_in_a_prescribed_motion():
    cam = bc.Table(X, Y, kind="cubic", extrapolate="error", name="cam")
    m = bc.load("pendulum")
    m.prescribe("hinge", lambda t: cam(t))
    system = bc.compile(m)
    spline = CubicSpline(X, Y)
    assert abs(system.forward_dynamics([0.0], [0.0], t=0.7)[0] - spline(0.7, 2)) < 1e-11


@pytest.mark.parametrize(("points", "values", "settings", "said"), [
    ([0, 2, 1], [1, 2, 3], {}, "must rise, but entry 2, 1, is not above entry 1, 2"),
    ([0, 1, 1], [1, 2, 3], {}, "must rise"),
    ([0, 1, 2], [1, np.nan, 3], {}, r"the value at \(1\), entry 1, is nan: it is missing"),
    ([0, np.inf, 2], [1, 2, 3], {}, r"x\[1\] is inf"),
    ([0, 1], [1, 2, 3], {}, "there are 3 values along x, but points of shape"),
    ([0], [1], {}, "at least 2 points along x, got 1"),
    ([0, 1, 2], [1, 2, 3], {"kind": "cubic"}, "cubic interpolation needs at least 4"),
    ([0, 1], [1, 2], {"kind": "wavy"}, "kind must be one of linear, cubic, akima, monotone, got 'wavy'"),
    ([0, 1], [1, 2], {"extrapolate": "no"}, "extrapolate must be one of hold, linear, error, periodic"),
    ([0, 1], [1, 2], {"extrapolate": "periodic"}, "same value at its first and last point; they differ by 1"),
    ([[0, 1], [0, 1]], [[1, 2], [3, np.nan]], {}, r"the value at \(1, 1\), entry \(1, 1\), is nan"),
    ([[0, 1], [1, 0]], [[1, 2], [3, 4]], {}, "along the second argument must rise"),
    ([0, 1], [[1, 2], [3, 4]], {}, "got|points of shape"),
    ([[0, 1], [0, 1]], [[1, 2], [3]], {}, "row 1 of values has 1 entries, the first 2; none may be missing"),
    ([0, 1], [1.0, "two"], {}, r"values\[1\], 'two', is no number"),
    ([0, 1], "text", {}, "values must be an array of numbers")])
def test_bad_tables_are_refused_by_name(points, values, settings, said):
    with pytest.raises(bc.ModelError, match=rf"table 'bad': .*{said}"):
        bc.Table(points, values, **{"extrapolate": "hold", "name": "bad", **settings})


@pytest.mark.parametrize("kind", ["cubic", "akima", "monotone"])
def test_what_repeats_has_no_kink(kind):
    """Slopes on both sides of the seam are the same; of the cubic spline curvatures, too."""
    x = np.array([0.0, 0.7, 1.5, 2.0, 3.1, 4.0])
    y = np.array([1.0, 3.0, 0.5, 0.7, -1.0, 1.0])
    table = bc.Table(x, y, kind=kind, extrapolate="periodic")
    ends = [as_jet(table(Jet(at, 1.0, 0.0))) for at in (0.0, np.nextafter(4.0, 0.0))]
    assert abs(ends[0].rate - ends[1].rate) < 1e-12 and abs(ends[0].value - ends[1].value) < 1e-12
    wide = np.concatenate([x[:-1] - 4.0, x, x[1:] + 4.0]), np.concatenate([y[:-1], y, y[1:]])
    inside = np.linspace(0.0, 4.0, 101)
    wanted = CubicSpline(x, y, bc_type="periodic") if kind == "cubic" else {
        "akima": Akima1DInterpolator, "monotone": PchipInterpolator}[kind](*wide)
    np.testing.assert_allclose(table(inside + 8.0), wanted(inside), atol=1e-12)
    both = bc.Table((x, x), np.outer(y, y), kind=kind, extrapolate="periodic")
    np.testing.assert_allclose(both(inside, inside[::-1] - 4.0), wanted(inside) * wanted(inside[::-1]), atol=1e-11)
    few = bc.Table([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, -1.0, 0.0], kind=kind, extrapolate="periodic")
    rates = [as_jet(few(Jet(at, 1.0, 0.0))).rate for at in (0.0, np.nextafter(3.0, 0.0))]
    assert abs(rates[0] - rates[1]) < 1e-12


def test_masked_entries_are_missing():
    with pytest.raises(bc.ModelError, match=r"the value at \(1\), entry 1, is nan: it is missing"):
        bc.Table([0, 1, 2], np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]), extrapolate="hold")


def test_extrapolation_must_be_said(tmp_path):
    file = tmp_path / "damper.csv"
    file.write_text("0,1\n1,2\n")
    for make in (lambda: bc.Table([0, 1], [1, 2], name="damper"), lambda: bc.Table.from_csv(file)):
        with pytest.raises(bc.ModelError, match=r"table 'damper': say what is beyond its points: extrapolate='hold'"):
            make()


def test_from_csv(tmp_path):
    file = tmp_path / "damper.csv"
    file.write_text("# measured\nspeed,force\n-1, -900\n0, 0\n0.5, 700\n")
    table = bc.Table.from_csv(file, x="speed", y="force", extrapolate="linear")
    assert table.name == "damper" and table(0.25) == 350.0
    grid = tmp_path / "grid.csv"
    grid.write_text(",0,1\n0,1,2\n2,3,6\n")
    assert bc.Table.from_csv(grid, grid=True, extrapolate="hold")(1.0, 0.5) == 3.0
    file.write_text("speed,force\n-1, -900\n0,\n")
    with pytest.raises(bc.ModelError, match=r"damper.csv:3: column 1: an entry is missing"):
        bc.Table.from_csv(file, extrapolate="linear")
    with pytest.raises(bc.ModelError, match=r"no column called 'torque'; there are speed, force"):
        bc.Table.from_csv(file, y="torque", extrapolate="linear")
    with pytest.raises(bc.ModelError, match=r"no column called 'forc'.*did you mean 'force'"):
        bc.Table.from_csv(file, y="forc", extrapolate="linear")
    for place, text in ((file, "speed,force\n0, 1\n2, 1\n1, 3\n"), (grid, ",0,1\n0,1,2\n2,3,6\n1,2,2\n")):
        place.write_text(text)
        with pytest.raises(bc.ModelError, match=r".csv:4: 1 is not above 2 of the line before; sort the lines"):
            bc.Table.from_csv(place, grid=place is grid, extrapolate="hold")
    with pytest.raises(bc.FileError, match=r"none.csv: cannot be read"):
        bc.Table.from_csv(tmp_path / "none.csv", extrapolate="hold")
    file.write_text("Weg;Kraft\n0;-0,5\n2;1,5\n")
    with pytest.raises(bc.ModelError, match=r"one column by the delimiter ','; read it with delimiter=';'"):
        bc.Table.from_csv(file, x="Weg", y="Kraft", extrapolate="hold")
    with pytest.raises(bc.ModelError, match=r"'-0,5' is no number; read it with decimal=','"):
        bc.Table.from_csv(file, delimiter=";", extrapolate="hold")
    assert bc.Table.from_csv(file, x="Weg", y="Kraft", delimiter=";", decimal=",", extrapolate="hold")(1.0) == 0.5
    with pytest.raises(bc.ModelError, match=r"no column 1.5; there are 2"):
        bc.Table.from_csv(file, y=1.5, delimiter=";", decimal=",", extrapolate="hold")


@pytest.mark.parametrize(("text", "said"), [
    (",5\n1,2\n2,3\n", r"t.csv:1: column 0: an entry is missing"),
    ("NA,5\n1,2\n2,3\n", r"t.csv:1: column 0: 'NA' is no number"),
    ("1o,5\n11,2\n12,3\n", r"t.csv:1: column 0: '1o' is no number"),
    ("1_0,5\n11,2\n12,3\n", r"t.csv:1: column 0: '1_0' is no number"),
    ("x,y,x\n1,2,3\n2,3,4\n", r"t.csv: 2 columns are called 'x'; say which by its place")])
def test_nothing_in_files_is_passed_over(text, said, tmp_path):
    """A first line without numbers has names; one with a number is the first point, and must have both."""
    (tmp_path / "t.csv").write_text(text)
    names = {"x": "x", "y": "y"} if text.startswith("x") else {}
    with pytest.raises(bc.ModelError, match=said):
        bc.Table.from_csv(tmp_path / "t.csv", extrapolate="hold", **names)


def test_files_of_other_forms(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(",0,1\n0,1,2,9\n2,3,6\n")
    with pytest.raises(bc.ModelError, match=r"t.csv:2: it has 4 entries, the first line 3"):
        bc.Table.from_csv(file, grid=True, extrapolate="hold")
    file.write_text("  speed   force\n  -1.0   -5\n   0.0\t\t7  \n")
    table = bc.Table.from_csv(file, x="speed", y="force", delimiter=" ", extrapolate="hold")
    assert table.points == ((-1.0, 0.0),) and table.values == (-5.0, 7.0)


@pytest.mark.parametrize(("points", "values", "kind"), [
    ([0.0, 1.0], [-1e308, 1e308], "linear"), ([0.0, 1e-320, 1.0], [0.0, 1.0, 2.0], "linear"),
    ([0.0, 1.0, 2.0, 3.0], [0.0, 1e308, -1e308, 0.0], "cubic")])
def test_slopes_beyond_all_numbers_are_refused_by_name(points, values, kind):
    with pytest.raises(bc.ModelError, match=r"table 'steep': its slopes are no finite numbers; points are too near"):
        bc.Table(points, values, kind=kind, extrapolate="hold", name="steep")


# -- everywhere ---------------------------------------------------------------------------------------------------
def cam(m, one, two):
    for name, joint in (("cam", bc.Revolute("z")), ("follower", bc.Prismatic("z"))):
        m.add_joint(name, joint, m.ground, m.add_body(name, bc.Inertia.sphere(1.0, 0.1)))
    m.add_coupler("profile", {"follower": 1.0, "cam": one})


def as_law(function):
    """A table stands for a law of the displacement alone."""
    return function if isinstance(function, bc.Table) else lambda x, rate: function(x)


#: where a table of one argument and one of two are used in a pendulum
USES = {
    "law of a joint": lambda m, one, two: m.add_joint_force("e", "hinge", lambda q, u: one(q) + two(q, u)),
    "table as it is": lambda m, one, two: m.add_joint_force("e", "hinge", as_law(one)),
    "map as it is": lambda m, one, two: m.add_joint_force("e", "hinge", two),
    "law of a spring": lambda m, one, two: m.add_spring("e", m.ground, "bob", (0, 1, 0), (0, 0, -1), law=two),
    "force between points": lambda m, one, two: m.add_force_between("e", m.ground, "bob", (0, 1, 0), (0, 0, -1),
                                                                       as_law(one)),
    "law of the machine": lambda m, one, two: m.add_joint_force("e", "hinge", lambda at: one(at.q("hinge"))
                                                                + two(at.u("hinge"), at.t)),
    "wrench": lambda m, one, two: m.add_wrench("e", "bob", law=lambda at: (0.0, two(at.t, at.u("hinge")), one(at.t))),
    "wrench of time": lambda m, one, two: m.add_wrench("e", "bob", force=(0, one, 0)),
    "potential": lambda m, one, two: m.add_joint_spring("e", "hinge", potential=one),
    "target": lambda m, one, two: m.add_servo("e", "hinge", target=one, stiffness=5.0),
    "wind": lambda m, one, two: m.add_drag("e", "bob", coefficient=1.0, at=(0, 0, -1), wind=(0, one, 0)),
    "motion": lambda m, one, two: m.prescribe("hinge", lambda t: one(t) + two(t, t)),
    "state": lambda m, one, two: m.add_state("s", lambda at: one(at.q("hinge")) - at.state("s")),
    "cam": cam,
}


@pytest.mark.parametrize("use", USES)
def test_tables_everywhere_are_the_functions_of_their_points(use, tmp_path):
    """The same motion as with splines of the points written out, also from a model file; kinds take turns."""
    points, kind = np.linspace(-4.0, 4.0, 33), ("linear", "cubic", "akima", "monotone")[list(USES).index(use) % 4]
    one = bc.Table(points, 0.1 * points**3 + points, kind=kind, extrapolate="linear", name="one")
    two = bc.Table((points, points), 0.2 * np.outer(points, 1.0 + points), kind=kind, extrapolate="hold", name="two")
    found = []
    for functions in ((one, two), (lambda x: 0.1 * x**3 + x, lambda x, y: 0.2 * x * (1.0 + y))):
        m = bc.load("pendulum")
        USES[use](m, *functions)
        for read in (m, *(saved(m, tmp_path) if functions[0] is one else ())):
            system = bc.compile(read, backend="numpy")
            start = system.assemble(q={"cam" if use == "cam" else system.joint_names[0]: 0.31}) if use != "motion" \
                else system.assemble()
            found.append(system.forward_dynamics(start.q, start.u + 0.0, t=0.27))
    assert np.array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() < (0.2 if kind == "linear" or use == "motion" else 0.02)


def saved(m, folder):
    bc.save(m, folder / "m.yaml")
    return (bc.load(folder / "m.yaml"),)


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices of POSIX")
def test_tables_are_read_from_regular_files_only(tmp_path):
    """A pipe would never come back, a device never end."""
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", "/dev/zero", tmp_path):
        with pytest.raises(bc.FileError, match="is not a regular file"):
            bc.Table.from_csv(path, extrapolate="hold")
    with pytest.raises(bc.FileError, match="cannot be read"):
        bc.Table.from_csv("a\0b", extrapolate="hold")
