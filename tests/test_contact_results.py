"""What contacts report: as elements of results, in files, plots and pictures; powers that add up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from test_contact_motion import SOFT, G, lying, machine


@pytest.fixture(scope="module")
def slide() -> bc.Result:
    """A box that slides and turns on a plane."""
    system = machine("box", "compliant", 0.5)
    return system.simulate(lying(system, 0.0499, vx=1.0, wz=2.0, wy=0.3), 0.1, stepper="radau5", rtol=1e-8, atol=1e-10,
                           output=2e-3)


def test_a_contact_is_an_element(slide: bc.Result) -> None:
    floor, found = slide.element("floor"), bc.analyze.contacts(slide.system, slide.q.values, slide.u.values)["floor"]
    np.testing.assert_allclose(floor.force, found.normal_force.sum(axis=-1), rtol=1e-12)
    np.testing.assert_allclose(floor.vector, found.force, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(floor.length, -found.depth.max(axis=-1), rtol=1e-9)
    np.testing.assert_array_equal(floor.closed, found.closed)
    np.testing.assert_allclose(floor.energy, slide["stored_energy"], rtol=1e-12)
    push = floor.normal * floor.normal_force + floor.friction
    np.testing.assert_allclose(push.sum("place"), floor.vector, atol=1e-9)
    assert floor.friction.dims == ("time", "place", "axis") and floor.slip.attrs["units"] == "m/s"
    wrench = bc.analyze.element_wrenches(slide.system, slide.q.values, slide.u.values)[:, 0]
    arm = floor.second_point.values - slide.system.pose(slide.q.values, "body").position
    np.testing.assert_allclose(floor.torque + np.cross(arm, floor.vector), wrench[:, :3], atol=1e-12)
    assert np.isfinite(floor.to_array()).all()
    h, system, q, u = 1e-7, slide.system, slide.q.values, slide.u.values  # it starts with four corners alike
    near = [system.element_forces(system.integrate(q, sign * h * u), u)["floor"] for sign in (1.0, -1.0)]
    np.testing.assert_allclose((near[0].length - near[1].length)[1:] / (2 * h), floor.rate[1:], rtol=1e-6, atol=1e-6)


def test_powers_of_all_elements_add_up(slide: bc.Result) -> None:
    """What contact and weight put in is what the kinetic energy gains, at every sample."""
    system, q, u = slide.system, slide.q.values, slide.u.values
    udot = system.forward_dynamics(q, u)
    masses = np.array([1.0 / 120.0, 17.0 / 600.0, 1.0 / 30.0, 2.0, 2.0, 2.0])
    gained = (u * masses * udot).sum(axis=1)
    weight = -2.0 * G * (system.pose(q, "body").rotation @ u[:, 3:, None])[:, 2, 0]
    power = slide.element("floor").power.values
    np.testing.assert_allclose(power + weight, gained, atol=1e-8 * np.abs(power).max())
    lost, h = bc.analyze.dissipated_power(system, q, u), 1e-7
    near = [bc.analyze.stored_energy(system, system.integrate(q, sign * h * u)) for sign in (1.0, -1.0)]
    assert (lost >= 0.0).all()
    np.testing.assert_allclose(power + lost, (near[1] - near[0]) / (2 * h), atol=1e-6 * np.abs(power).max())


def test_in_files_plots_and_pictures(slide: bc.Result, tmp_path: Path) -> None:
    from bellcrank.view.scenes import scene_of

    more = slide.with_elements()
    assert {"floor.force", "floor.power", "floor.normal_force"} <= set(more.data_vars)
    more.to_netcdf(tmp_path / "run.nc")
    with bc.open_result(tmp_path / "run.nc") as again:
        held = again.element("floor")  # without the machine
        np.testing.assert_array_equal(held.friction, slide.element("floor").friction)
        assert held.sizes["place"] == 8
    figure = slide.plot(("floor", "floor.normal_force", "floor.vector"))
    assert [len(a.lines) for a in figure.axes][-1] >= 3 and len(figure.axes) >= 3
    assert len(more.plot("floor.normal_force").axes[0].lines) == 4  # places that never close are left out
    with pytest.raises(bc.ModelError, match="element 'floor' has no 'normal_forc'.*did you mean 'normal_force'"):
        slide.plot("floor.normal_forc")
    arrows = [a for a in scene_of(slide).tracks[0].arrows if a.name == "floor"]
    assert len(arrows) == 4 and {a.body for a in arrows} == {1}
    assert np.abs(np.abs([a.point for a in arrows]) - [0.2, 0.1, 0.05]).max() < 1e-3  # at the corners
    np.testing.assert_allclose(sum(a.force for a in arrows), slide.element("floor").vector, atol=1e-12)


def test_rigid_contacts_report_as_well() -> None:
    """A box that slides on a plane and stops: weight, friction, points and powers; in files, plots and pictures."""
    from bellcrank.view.scenes import scene_of

    system = machine("box", "rigid", 0.5)
    run = system.simulate(lying(system, 0.05, vx=0.4), 0.1, stepper="moreau", step=1e-3, output=1e-3)
    floor = run.element("floor").isel(time=slice(1, None))
    np.testing.assert_allclose(floor.force, 2.0 * G, rtol=1e-6)
    np.testing.assert_allclose(floor.vector.sel(axis="z"), 2.0 * G, rtol=1e-6)
    speed = run["u"].values[:, 3]
    np.testing.assert_allclose(floor.vector.sel(axis="x"), 2.0 * np.diff(speed) / 1e-3, atol=1e-6 * 2.0 * G)
    np.testing.assert_allclose(floor.power, floor.vector.sel(axis="x") * speed[1:], atol=1e-9)
    assert floor.closed.values.sum(axis=1).tolist() == [4.0] * 100
    arm = floor.second_point.values - system.pose(run["q"].values[1:], "body").position
    moment = floor.torque.values + np.cross(arm, floor.vector.values)
    np.testing.assert_allclose(moment[-1], 0.0, atol=1e-6)  # at rest
    more = run.with_elements()
    assert "floor.normal_force" in more and more.plot(("floor", "floor.normal_force")).axes
    assert len([a for a in scene_of(run).tracks[0].arrows if a.name == "floor"]) == 4
    with pytest.raises(bc.ModelError, match=r"rigid; element\('floor'\) says"):
        run.forces("floor")
    with pytest.raises(bc.StateError, match="no forces of the rigid contact 'floor' are on record"):
        run.drop_vars("contact_force").element("floor")


@pytest.mark.parametrize("planes", [(0.2,), (0.9, -0.9)], ids=["slope", "groove"])
def test_rigid_forces_are_those_that_acted(planes: tuple[float, ...]) -> None:
    """A plank that falls on its corners, slides, bounces and is wedged in: in every step its momentum changes by the
    forces on record, none of which pulls or is more than friction can be; and the residual is that of all steps."""
    m, poses = bc.Mechanism("plank"), [bc.Pose.rpy((0, 0, 0), 0, tilt, 0) for tilt in planes]
    for name, mass, last, joint in (("across", 0.001, "ground", bc.Prismatic("x")),
                                    ("up", 0.001, "across", bc.Prismatic("z")), ("plank", 1.0, "up", bc.Revolute("y"))):
        m.add_body(name, bc.Inertia.box(mass, (0.4, 0.1, 0.1)))
        m.add_joint(f"to {name}", joint, last, name)
    m.add_shape("plank", bc.Box((0.4, 0.1, 0.1)), role="collision", name="box")
    friction, kept = m.parameter("mu", 0.5), m.parameter("e", 0.5)
    for i, pose in enumerate(poses):
        m.add_shape(m.ground, bc.Plane(), pose, role="collision", name=f"plane {i}")
        m.add_contact(f"touch {i}", f"plane {i}", "box", friction=friction, restitution=kept)
    n, h, rng = 48, 1e-3, np.random.default_rng(0)
    mu = np.resize([0.0, 0.3, 1.0, 5.0, 0.6], n)
    system = bc.compile(m).with_parameters(mu=mu, e=np.resize([0.0, 0.5, 1.0, 0.8], n))
    q = np.stack([np.zeros(n), np.full(n, 0.5), rng.uniform(-3.0, 3.0, n)], axis=1)
    u = rng.standard_normal((n, 3)) * [1.0, 1.0, 2.0]
    run, half = (system.simulate((q, u), t, stepper="moreau", step=h, output=h) for t in (0.6, 0.3))
    force = run["contact_force"].values[1:].reshape(600, n, len(planes), 8, 3)
    change = np.diff(run["u"].values[..., :2], axis=0) * [1.002, 1.001] + [0.0, 1.001 * G * h]
    assert np.abs(change - h * force.sum(axis=(2, 3))[..., [0, 2]]).max() < 1e-4 and np.abs(change).max() > 2.0
    normals = np.array([pose.rotation[:, 2] for pose in poses])
    push = np.einsum("tskpi,ki->tskp", force, normals)
    along = np.linalg.norm(force - push[..., None] * normals[:, None], axis=-1)
    assert push.min() >= 0.0 and (along - mu[:, None, None] * push).max() < 1e-9
    assert np.diff(run["energy"].values, axis=0).max() < 1e-5
    assert run.attrs["contact_residual"] >= half.attrs["contact_residual"] > 1e-12


def test_laws_may_read_a_contact() -> None:
    m = bc.Mechanism("press")
    ball = m.add_body("ball", bc.Inertia(1.0, (0, 0, 0), (0.1, 0.1, 0.1)))
    m.add_joint("slide", bc.Prismatic("z"), m.ground, ball)
    m.add_shape(ball, bc.Sphere(0.1), role="collision")
    made, = m.add_contacts("all", bc.Plane(), stiffness=SOFT["stiffness"])
    m.add_output("load", lambda at: at.element(made.name).force + 0.0 * at.element(made.name).length, units="N")
    run = bc.compile(m, backend="numpy").simulate(([0.0999], [0.0]), 0.01, step=1e-3)
    assert float(run["load"][0]) == pytest.approx(SOFT["stiffness"] * 1e-4)


def test_pieces_without_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in pieces that are shorter than the time between samples."""
    from bellcrank.simulate.fixed_course import FixedCourse

    monkeypatch.setattr(FixedCourse, "pace", property(lambda self: 3.0, lambda self, _: None), raising=False)
    system = machine("ball", "rigid", 0.5)
    result = system.simulate(lying(system, 0.1, vx=1.0), 0.02, stepper="moreau", step=1e-3, output=0.01)
    assert result.attrs["status"] == "finished" and result.contact_force.sizes["time"] == 3


def meeting_bodies(friction: float) -> bc.System:
    """A box and a sphere without gravity."""
    m = bc.Mechanism("two", gravity=(0, 0, 0))
    for i, name in enumerate("ab"):
        m.add_joint(f"free {name}", bc.Free(), m.ground, m.add_body(name, bc.Inertia.box(1.0 + i, (0.2, 0.2, 0.2))))
    m.add_shape("a", bc.Sphere(0.1), role="collision")
    m.add_shape("b", bc.Box((0.2, 0.2, 0.2)), role="collision")
    m.add_contact("pair", "a", "b", friction=friction, restitution=0.5)
    return bc.compile(m)


@pytest.mark.parametrize("friction", [0.0, 0.3])
def test_forces_on_record_meet_the_laws(friction: float) -> None:
    """Also of bodies that spin as they meet: no friction without a coefficient, none beyond the cone."""
    system = meeting_bodies(friction)
    start = system.assemble(q={"free b": [1, 0, 0, 0, 0.4, 0.03, 0.04]},
                            u={"free a": [1, 2, 3, 2.0, 0, 0], "free b": [-2, 1, 4.0, -1, 0, 0]})
    run = system.simulate(start, 0.2, stepper="moreau", step=2e-3, output=2e-3)
    pair = run.element("pair")
    normal, across = pair.normal_force.values[1:, 0], np.linalg.norm(pair.friction.values[1:, 0], axis=-1)
    assert normal.max() > 100.0
    assert (across <= friction * normal + 1e-9 * normal.max()).all()
    assert friction == 0.0 or across.max() > 1.0
