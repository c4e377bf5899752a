"""Pictures of results: what names stand for, what is left out, legends, batches, phase planes, sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.simulate.plot_lines import lines_of
from cli_calls import call


@pytest.fixture(scope="module")
def run() -> bc.Result:
    """A driven four-bar with a spring, in a plane: some components of reactions are rounding."""
    m = bc.load("four_bar")
    m.add_spring("spring", "ground", "rocker", (0.3, 0.9, 0), (0.2, 0, 0), stiffness=20.0, length=0.3)
    m.add_joint_spring("twist", "A", stiffness=1.0)
    return bc.analyze.drive(bc.compile(m), {"A": lambda t: 0.5 + 2 * t}, np.linspace(0, 2, 21), reactions=True)


def drawn(figure: Any) -> dict[str, dict[str, Any]]:
    """Labels of axes, and the lines that their legends name."""
    return {axis.get_ylabel(): dict(zip([t.get_text() for t in axis.get_legend().get_texts()],
                                        [line.get_ydata() for line in axis.lines], strict=False))
            for axis in figure.axes}


def test_forces_accelerations_and_cut_joints(run: bc.Result) -> None:
    found = drawn(run.plot(["udot", "tau", "D", "spring", "force.twist", "reaction.D", "torque.A"]))
    assert found["acceleration [rad/s²]"].keys() == {"B.angle", "C.angle", "D.angle"}  # that of A is rounding
    torques = found["torque [N\N{NO-BREAK SPACE}m]"]
    assert list(torques) == ["A.angle", "twist", "A.angle (all forces)"]
    np.testing.assert_array_equal(found["force [N]"]["spring"], run.forces("spring"))
    wanted = run["reaction"].sel(joint="D", component="fx")
    np.testing.assert_array_equal(found["reaction force [N]"]["D fx"], wanted)
    assert found["reaction force [N]"].keys() == {"D fx", "D fy"}
    assert not any("moment" in label for label in found)
    angle = found["coordinate [rad]"]["D.angle"]
    assert np.abs(np.diff(angle)).max() < 1.0  # continuous
    # the angles around the loop add up to one turn or none
    np.testing.assert_array_equal(angle, run.q.sel(coordinate="D.angle").values)
    assert np.ptp(run.q.sum("coordinate").values) < 1e-9


def test_zeros_and_rounding_are_left_out_unless_asked_for(run: bc.Result) -> None:
    label = "magnitude of reaction moment [N\N{NO-BREAK SPACE}m]"
    assert drawn(run.plot("reactions"))[label].keys() == {"A"}
    assert drawn(run.plot("reactions", every=True))[label].keys() == {*"ABCD"}
    assert drawn(run.plot("udot.A"))["acceleration [rad/s²]"].keys() == {"A.angle"}
    still = bc.analyze.drive(run.system, {"A": 0.5}, [0.0, 1.0])
    assert len(still.plot("u").axes[0].lines) == 4  # nothing but zeros: all of them


def test_legends_do_not_cover_curves(run: bc.Result) -> None:
    for size in (None, "column", "page", (100, 80)):
        figure = run.plot(["q", "reactions"], size=size)
        figure.draw_without_rendering()
        for axis in figure.axes:
            box, inside = axis.get_legend().get_window_extent(), axis.get_window_extent()
            assert box.x0 >= inside.x1 or box.y0 >= inside.y1
            assert box.x1 <= figure.bbox.x1 + 1 and box.y1 <= figure.bbox.y1 + 1  # nor are they cut off


def test_sizes(run: bc.Result, tmp_path: Path) -> None:
    assert run.plot(size="column").get_size_inches()[0] * 25.4 == pytest.approx(85.0)
    assert run.plot(size=(120, 60)).get_size_inches().tolist() == pytest.approx([120 / 25.4, 60 / 25.4])
    for wrong in ("poster", (1, 2), (100,), ("a", "b"), 7):
        with pytest.raises(bc.ModelError, match="plot: "):
            run.plot(size=wrong)  # type: ignore[arg-type]
    for ending, head in (("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")):
        run.plot(size="column", file=tmp_path / f"a.{ending}")
        assert (tmp_path / f"a.{ending}").read_bytes().startswith(head)


def test_phase_planes(run: bc.Result) -> None:
    first, second = run.plot(phase=["A", "B"]).axes
    np.testing.assert_array_equal(first.lines[0].get_xdata(), run.q.sel(coordinate="A.angle"))
    np.testing.assert_array_equal(second.lines[0].get_ydata(), run.u.sel(speed="B.angle"))
    assert first.get_xlabel() == "A.angle [rad]" and second.get_ylabel() == "speed of B.angle [rad/s]"


def test_samples_are_named_by_what_differs() -> None:
    m = bc.Mechanism("rod")
    length = m.parameter("length", 1.0)
    m.add_joint("hinge", bc.Revolute("x"), m.ground, m.add_body("bob", bc.Inertia.point(1.0, (0, 0, -1 * length))))
    system = bc.compile(m, backend="numpy").with_parameters(length=np.array([0.5, 1.0, 2.0]))
    result = system.simulate((np.full((3, 1), 0.5), np.zeros((3, 1))), duration=0.02, step=0.01)
    figure = result.plot("hinge")
    assert {label: list(lines) for label, lines in drawn(figure).items()} == {
        "hinge.angle [rad]": ["length = 0.5", "length = 1", "length = 2"]}


def test_mistakes(run: bc.Result) -> None:
    for what, said in (("reaction.E", "no joint called 'E'"), ("sprung", "did you mean 'spring'"),
                       ("force.no", "no force element called 'no'"), ("D.slide", "no coordinate called 'D.slide'")):
        with pytest.raises(bc.ModelError, match=said):
            run.plot(what)
    with pytest.raises(bc.StateError, match=r"attach\(system\)"):
        run.with_system(None).drop_vars("reaction").plot("reactions")


def test_the_command(run: bc.Result, tmp_path: Path) -> None:
    call("simulate", "four_bar", "--set", "A=0.5", "--duration", 0.1, "--out", tmp_path / "run.nc")
    done = call("plot", tmp_path / "run.nc", "reactions", "udot.A", "--model", "four_bar", "--size", "column", "--out",
                tmp_path / "a.pdf")
    assert done.exit_code == 0 and (tmp_path / "a.pdf").read_bytes()[:4] == b"%PDF", done.stderr
    assert call("plot", tmp_path / "run.nc", "--phase", "A", "--size", "120x80", "--out", tmp_path / "b.svg"
                ).exit_code == 0
    bare = bc.open_result(tmp_path / "run.nc").with_system(None)
    bare.to_netcdf(tmp_path / "bare.nc")
    done = call("plot", tmp_path / "bare.nc", "reactions")
    assert done.exit_code == 2 and "--model MODEL" in done.stderr
    assert call("plot", tmp_path / "run.nc", "reactions").exit_code == 0  # its file says what it is of
    done = call("plot", tmp_path / "run.nc", "--size", "large")
    assert done.exit_code == 2 and "millimeters as 120x80" in done.stderr


def test_elements_and_closing_joints_of_files(tmp_path: Path) -> None:
    """A file that holds its machine has them like a result at hand."""
    m = bc.load("four_bar")
    m.add_spring("strut", m.ground, "coupler", (0, 1, 0), (0, 0, 0), stiffness=3.0)
    system = bc.compile(m)
    run = system.simulate(system.assemble(q={"A": 0.5}), 0.01, file=tmp_path / "run.nc")
    for name in ("strut", "strut.length", "forces", "D"):
        with bc.open_result(tmp_path / "run.nc") as back:
            found, wanted = (lines_of(r, name) for r in (back, run))
        assert [line.label for line in found] == [line.label for line in wanted]
        for line, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(line.values, other.values, atol=1e-12)


def test_wrenches_are_drawn_like_other_elements(tmp_path: Path) -> None:
    """Forces of laws, tyres and constant loads on bodies: where they act, axis by axis."""
    m = bc.load("pendulum")
    m.add_wrench("wind", "bob", law=lambda at: (2.0 - at.velocity("bob").x, 0.0, 0.0))
    m.add_wrench("twist", "bob", moment=(0.5, 0.0, 0.0), force=(0.0, 0.0, lambda t: 1.0 + t))
    run = bc.compile(m).simulate(([0.5], [0.0]), 0.1, output=0.05)
    assert [line.label for line in lines_of(run, "wind")][:4] == ["wind fx", "wind fy", "wind fz", "wind mx"]
    assert lines_of(run, "wind.power")[0].units == "W"
    shown = {text.get_text() for axes in run.plot("forces").axes for text in axes.get_legend().get_texts()}
    assert shown == {"wind fx", "twist fz", "twist mx"}
    np.testing.assert_allclose(lines_of(run, "twist.vector")[2].values[:, 0], [1.0, 1.05, 1.1])
    run.to_csv(tmp_path / "run.csv", ["hinge", "wind"])
    assert "wind fx [N]" in (tmp_path / "run.csv").read_text().splitlines()[0]


def test_vectors_without_a_machine_are_drawn_by_axes() -> None:
    m = bc.load("pendulum")
    m.add_drag("air", "bob", coefficient=1.0, area=0.1)
    run = bc.compile(m).simulate(([0.5], [0.0]), 0.1).with_elements()
    bare = run.with_system(None)
    bare.attrs.clear()
    assert [line.label for line in lines_of(bare, "air.vector")] == ["air.vector x", "air.vector y", "air.vector z"]
    assert bare.plot("air.vector", every=True).axes


def test_forces_of_rigid_contacts_are_drawn_place_by_place() -> None:
    m = bc.Mechanism("ball")
    ball = m.add_body("ball", bc.Inertia(1.0, (0, 0, 0), (0.004, 0.004, 0.004)))
    m.add_joint("free", bc.Free(), m.ground, ball)
    m.add_shape(ball, bc.Sphere(0.1), role="collision")
    m.add_contacts("all", bc.Plane(), friction=0.3)
    system = bc.compile(m)
    run = system.simulate(system.assemble(q={"free.z": 0.1}), 0.02, stepper="moreau")
    assert len(lines_of(run, "contact_force")) == 3 and run.plot("contact_force").axes
