"""Redundant constraints that contradict each other a little, as the numbers of drawings do."""

import pickle

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.loops import drawing_tolerance

METHODS = ("elimination", "dense", "kane", "recursive", "operator", "reduction", "momenta", "divide", "complement")
A, B, C, D = (0, 0, 0), (0, 0.3, 0), (0.9, 0.6, 0), (1.0, 0, 0)


def four_bar(out_of_plane=0.0, tilt=0.0, size=1.0):
    """A planar four-bar whose last bearing, on the ground's side, is off [of its size, rad]."""
    m = bc.Mechanism("four-bar", gravity=(0, -9.81, 0))
    a, b, c, d = (np.array(p) * size for p in (A, B, C, D))
    crank, coupler, rocker = (m.add_body(n, bc.Inertia.rod(k, p, q)) for n, k, p, q in (
        ("crank", 1.5, a, b), ("coupler", 5.0, b, c), ("rocker", 3.0, d, c)))
    m.add_joint("A", bc.Revolute("z"), m.ground, crank)
    m.add_joint("B", bc.Revolute("z"), crank, coupler, bc.Pose(b), bc.Pose(b))
    m.add_joint("C", bc.Revolute("z"), coupler, rocker, bc.Pose(c), bc.Pose(c))
    turn = (np.cos(tilt / 2), np.sin(tilt / 2), 0, 0)
    m.add_joint("D", bc.Revolute("z"), m.ground, rocker, bc.Pose(d + (0, 0, out_of_plane * size), turn), bc.Pose(d))
    return m


def parallelogram():
    """Two pairs of ball joints make hinges of a parallelogram in a slanted plane, from numbers with eight digits."""
    turn = np.linalg.qr(np.array([[0.9, 0.2, -0.4], [0.1, 1.1, 0.5], [0.3, -0.6, 0.8]]))[0]

    def point(x, y, z=0.0):
        return tuple(np.round(turn @ (x, y, z), 8).tolist())

    m = bc.Mechanism("neck", gravity=(0, 0, -9.81))
    left, right, head = (m.add_body(n, bc.Inertia(0.4, point(*p), (1e-3, 2e-3, 2e-3))) for n, p in (
        ("left", (0, 0.02)), ("right", (0.03, 0.02)), ("head", (0.015, 0.05))))
    axis = point(0, 0, 1)
    m.add_joint("hip", bc.Revolute(axis), m.ground, left, at=point(0, 0))
    m.add_joint("knee", bc.Revolute(axis), m.ground, right, at=point(0.03, 0))
    m.add_joint("neck", bc.Revolute(axis), left, head, at=point(0, 0.04))
    for i, z in enumerate((0.01, -0.01)):
        place = point(0.03, 0.04, z)
        m.add_joint(f"connect{i}", bc.Spherical(), head, right, at=place)
    return m


@pytest.fixture(scope="module")
def reference():
    """A four-bar that is off in place and direction, a state of it, and its accelerations."""
    system = bc.compile(four_bar(5e-7, 5e-7), backend="numpy")
    state = system.assemble(q={"A": 0.4}, u={"A": 8.0})
    return system, state, system.forward_dynamics(state)


@pytest.mark.parametrize("method", METHODS[1:])
def test_methods_agree(reference, method):
    _, state, udot = reference
    system = bc.compile(four_bar(5e-7, 5e-7), method, "numpy")
    assert np.allclose(system.forward_dynamics(state), udot, rtol=1e-11, atol=1e-11)


def test_constraints_kept_close_to_rounding(reference):
    system, state, udot = reference
    assert system.dof == 1
    assert abs(system.loop_error(state)).max() < 1e-14 and abs(system.loop_rate_error(state)).max() < 1e-13
    assert 0.4e-6 < state.drawing_error < 1e-6
    assert state.drawing_error == max(abs(x) for x in bc.analyze.drawing_errors(system, state).values())
    exact = bc.compile(four_bar(), backend="numpy")
    near = exact.assemble(q={"A": 0.4}, u={"A": 8.0})
    assert np.allclose(udot, exact.forward_dynamics(near), rtol=1e-5)
    drives = system.inverse_dynamics(state, udot)
    assert abs(drives).max() < 1e-9 and bc.analyze.linearize(system, state).A.shape == (2, 2)


def test_run_reports_what_is_left_of_the_drawing():
    system = bc.compile(four_bar(1e-7, 1e-7))
    run = system.simulate(system.assemble(q={"A": 0.5}, u={"A": 8.0}), 0.3)
    assert run.attrs["status"] == "finished" and run.attrs["largest_loop_error"] < 1e-13
    assert 0.9e-7 < run.attrs["largest_drawing_error"] < 2e-7 and run.attrs["energy_drift"] < 1e-6
    text = str(bc.analyze.explain(system))
    assert "3 redundant conditions" in text and "contradict the others by 1" in text


def test_parallelogram_of_rounded_numbers():
    system = bc.compile(parallelogram(), backend="numpy")
    state = system.assemble(q={"hip": 0.4}, u={"hip": 1.0})
    assert system.dof == 1 and 1e-10 < state.drawing_error < 1e-7
    assert abs(system.loop_error(state)).max() < 1e-14
    assert np.allclose(state.u[:3], [1.0, 1.0, -1.0], atol=1e-5)
    assert len(state.u) == 9 and np.allclose(system.kernels.run("joint_speeds", {"q": state.q, "u": state.u}), state.u)
    again = pickle.loads(pickle.dumps(system)).project(state.q, state.u)
    assert np.allclose(again.q, state.q, atol=1e-14) and again.drawing_error == state.drawing_error
    many = system.assemble(q={"hip": np.array([0.4, 0.5])})
    assert many.drawing_error.shape == (2,) and np.allclose(many.q[0], state.q, atol=1e-12)


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_tolerance_is_a_share_of_the_size(size):
    system = bc.compile(four_bar(1e-6, size=size), backend="numpy")
    assert system.dof == 1 and abs(system.assemble(q={"A": 0.5}).drawing_error / (1e-6 * size) - 1.0) < 1e-6
    with pytest.raises(bc.AssemblyError, match=r"contradict each other by .* m: D: along z \(joints C, B, A, D\)"):
        bc.compile(four_bar(4e-5, size=size), backend="numpy").plans.reference()


def test_contradictions_beyond_the_tolerance_are_named():
    with pytest.raises(bc.AssemblyError, match=r"contradict each other by .* rad: .*D: about .*drawing_tol"):
        bc.compile(four_bar(tilt=1e-4), backend="numpy").plans.reference()
    with pytest.warns(bc.DrawingWarning, match=r"'four-bar'.*D: about y.*contradict the others by 0\.0001.*dropped"):
        assert bc.compile(four_bar(tilt=1e-4), backend="numpy", drawing_tolerance=1e-3).dof == 1
    with pytest.raises(bc.AssemblyError):
        bc.compile(four_bar(1e-8), backend="numpy", drawing_tolerance=0.0).plans.reference()
    with pytest.raises(bc.ModelError, match="drawing_tolerance: 0.5 must lie between"):
        bc.compile(four_bar(), drawing_tolerance=0.5)


def test_other_cuts_close_their_own_constraints():
    for options in ({"cut": ["B"]}, {"cut": ["A"]}, {"actuated": ["D"]}):
        system = bc.compile(four_bar(3e-7, 1e-7), backend="numpy", **options)
        state = system.assemble(q={"A": 0.5}, u={"A": 8.0})
        assert abs(system.loop_error(state)).max() < 1e-14 and abs(system.loop_rate_error(state)).max() < 1e-13
        assert state.drawing_error > 1e-8 and system.dof == 1
        assert all(np.isfinite(x).all() for x in system.reactions(state).values())


@pytest.mark.parametrize("name", ["four_bar", "ladder", "redundant_five_bar", "jansen"])
def test_consistent_machines_drop_nothing(name, monkeypatch):
    """Judged at one general position: nothing is closed again without the redundant constraints."""
    monkeypatch.setattr(drawing_tolerance, "_disagreement", None)
    system = bc.compile(bc.load(name))
    assert system.plans.drawing is None and system.plans.loops.uses(0)


def test_weak_constraint_is_not_mistaken():
    """A crank of 20 micrometres in a linkage of a metre, near its toggle position."""
    m = bc.Mechanism("short crank")
    solid = bc.Inertia(1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    crank, rod, rocker = (m.add_body(n, solid) for n in ("crank", "rod", "rocker"))
    m.add_joint("A", bc.Revolute("z"), m.ground, crank)
    m.add_joint("B", bc.Revolute("z"), crank, rod, bc.Pose((2e-5, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), rod, rocker, bc.Pose((1.0, 0, 0)))
    m.add_joint("D", bc.Revolute("z"), m.ground, rocker, bc.Pose((1.0, 0.3, 0)), bc.Pose((0, 0.3, 0)))
    system = bc.compile(m, backend="numpy")
    assert system.plans.drawing is None and system.dof == 1
    for angle in (0.0, 1.0, 3.0):
        assert abs(system.loop_error(system.assemble(q={"A": angle}))).max() < 1e-14


def flat_parallelogram(m, width, height, at=0.0):
    """A parallelogram of hinges with a given width and height, some way off."""
    a, b, c, d = ((at, 0, 0), (at, height, 0), (at + width, height, 0), (at + width, 0, 0))
    solid = bc.Inertia(1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    crank, rod, rocker = (m.add_body(f"{n}{at:g}", solid) for n in ("crank", "rod", "rocker"))
    m.add_joint(f"a{at:g}", bc.Revolute("z"), m.ground, crank, at=a)
    m.add_joint(f"b{at:g}", bc.Revolute("z"), crank, rod, at=b)
    m.add_joint(f"c{at:g}", bc.Revolute("z"), rod, rocker, at=c)
    m.add_joint(f"d{at:g}", bc.Revolute("z"), m.ground, rocker, at=d)


@pytest.mark.parametrize("size", [(1.0, 1e-4), (1.0, 1e-5), (1e-5, 1.0), (1e-6, 1.0)])
def test_short_links_bind(size):
    """What short links allow is less than the tolerance, but they contradict nothing: nothing is dropped."""
    m = bc.Mechanism("flat")
    flat_parallelogram(m, *size)
    system = bc.compile(m, backend="numpy")
    assert system.dof == 1 and system.plans.drawing is None
    state = system.assemble(q={"a0": 0.5}, u={"a0": 1.0})
    assert abs(system.loop_error(state)).max() < 1e-14 and np.allclose(state.u, [1.0, -1.0, 1.0, 1.0])


def test_short_links_bind_beside_loops_that_are_off():
    m = four_bar(5e-7, 5e-7)
    flat_parallelogram(m, 1.0, 1e-4, at=3.0)
    system = bc.compile(m, backend="numpy")
    state = system.assemble(q={"A": 0.4, "a3": 0.5}, u={"A": 8.0, "a3": 1.0})
    assert system.dof == 2 and 0.4e-6 < state.drawing_error < 1e-6
    assert not any(name.startswith("d3: along x") for name in bc.analyze.drawing_errors(system, state))
