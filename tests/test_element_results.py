"""What elements did over a run: by name, in files and plots; loads of joints in any frame; outputs."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc


@pytest.fixture(scope="module")
def run() -> bc.Result:
    m = bc.load("four_bar")
    m.add_spring("strut", m.ground, "rocker", (0.3, 0.9, 0), (0.2, 0, 0), stiffness=40.0, damping=1.0, length=0.5)
    m.add_servo("servo", "A", target=0.2, stiffness=10.0, limit=0.5)
    m.add_actuator("motor", "B", 2.0)
    m.add_limit("stop", "C", upper=-1.3, stiffness=50.0)
    m.add_output("height", lambda at: at.position("coupler", (0.5, 0, 0)).y, units="m")
    m.add_joint_force("last", "D", lambda at: -0.2 * at.u("D"))
    system = bc.compile(m)
    return system.simulate(system.assemble(q={"A": 0.5}), duration=0.2, output=0.01, tau={"B": 5.0},
                           outputs={"pull": lambda at: at.element("strut").force})


def test_every_element_by_name(run):
    strut = run.element("strut")
    assert strut.force.dims == ("time",) and strut.vector.dims == ("time", "axis")
    assert strut.force.attrs["units"] == "N" and run.element("servo").force.attrs["units"] == "N m"
    np.testing.assert_allclose(strut.force, run.forces("strut"), rtol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(strut.second_point - strut.first_point, axis=1), strut.length, rtol=1e-12)
    assert np.abs(run.element("servo").force[:10] + 0.5).max() < 1e-12  # within its limit
    np.testing.assert_allclose(run.element("motor").force, 2.0)  # what was let through of 5
    np.testing.assert_allclose(run.element("stop").force, run.forces("stop"), atol=1e-12)
    np.testing.assert_allclose(run.element("last").force, run.forces("last"), rtol=1e-12)
    with pytest.raises(bc.ModelError, match=r"no force element called 'strt'.*did you mean 'strut'"):
        run.element("strt")


def test_powers_add_up_to_the_change_of_energy(run):
    """By central differences of samples."""
    names = ("strut", "servo", "motor", "stop", "last")
    fine = run.system.simulate(run.system.assemble(q={"A": 0.5}), duration=0.1, step=1e-3, tau={"B": 5.0})
    total = sum(fine.element(name).power for name in names)
    energy = (fine["kinetic_energy"] + fine["potential_energy"]).values
    rate = (energy[2:] - energy[:-2]) / 2e-3
    assert np.abs(rate - total.values[1:-1]).max() < 3e-3 * np.abs(total).max()  # the stop begins at once


def test_in_files_and_plots(run, tmp_path):
    more = run.with_elements("strut", "servo")
    assert {"strut.force", "strut.vector", "servo.power", "height", "pull"} <= set(more.data_vars)
    assert "servo.first_point" in more and "strut.torque" in more
    more.to_netcdf(tmp_path / "run.nc")
    with bc.open_result(tmp_path / "run.nc") as again:
        np.testing.assert_array_equal(again.element("strut").force, run.element("strut").force)  # without the machine
        assert again["height"].attrs["units"] == "m"
    assert more.plot(("strut.force", "height")).axes


def test_a_state_called_like_a_field_is_kept_apart(tmp_path):
    m = bc.load("pendulum")
    m.add_joint_spring("strut", "hinge", stiffness=3.0)
    m.add_state("strut length", lambda at: 1.0, initial=7.0, units="K")
    m.add_state("strut heat", lambda at: 0.0, initial=5.0)
    system = bc.compile(m, backend="numpy")
    run = system.simulate(system.assemble(q={"hinge": 0.5}), duration=0.01, step=5e-3)
    more = run.with_elements()
    more.to_netcdf(tmp_path / "run.nc")
    with bc.open_result(tmp_path / "run.nc") as again:
        for strut in (run.element("strut"), again.element("strut")):
            assert strut["length"][0] == 0.5 and strut["state length"][0] == 7.0 and strut["heat"][0] == 5.0
            assert strut["state length"].attrs["units"] == "K" and strut["length"].attrs["units"] == "rad"


def test_states_of_elements_are_among_their_reports():
    """Of a brake its bend, of a contact with bristles all of them; one state, a batch, and the run."""
    m = bc.Mechanism("block")
    m.add_joint("slide", bc.Prismatic("x"), m.ground, m.add_body("block", bc.Inertia.box(1.0, (0.2, 0.2, 0.2))))
    m.add_shape(m.ground, bc.Plane(), bc.Pose((0, 0, -0.099)), role="collision", name="ground")
    m.add_shape("block", bc.Sphere(0.1), role="collision", name="sole")
    m.add_contact("floor", "ground", "sole", stiffness=1e4, friction=0.5, friction_model="bristle")
    m.add_brake("brake", "slide", capacity=1.0, reach=1e-3)
    system = bc.compile(m, backend="numpy")
    start = system.assemble(u={"slide": 0.2, "brake bend": 0.25})
    found = system.element_forces(start)
    assert set(found["floor"].states) == {"bend 0x", "bend 0y"} and float(found["brake"].states["bend"]) == 0.25
    many = system.element_forces(np.stack([start.q] * 3), start.u)["brake"].states["bend"]
    assert many.shape == (3,) and (many == 0.25).all()
    run = system.simulate(start, duration=0.01, step=1e-3)
    np.testing.assert_array_equal(run.element("floor")["bend 0x"], run.u.sel(speed="floor bend 0x.value"))
    assert float(abs(run.element("floor")["bend 0x"][-1])) > 0.0


def test_all_elements_are_found_in_one_pass(run, monkeypatch):
    calls = []
    ask = type(run.system).element_forces
    monkeypatch.setattr(type(run.system), "element_forces", lambda *a, **k: calls.append(1) or ask(*a, **k))
    more = run.with_elements()
    assert len(calls) == 1 and {"strut.force", "servo.force", "motor.force", "stop.force", "last.force"} <= set(more)
    np.testing.assert_array_equal(more["stop.force"], run.element("stop").force)


def test_outputs(run):
    np.testing.assert_allclose(run["pull"], run.element("strut").force, rtol=1e-14)
    coupler = run.kinematics("coupler", (0.5, 0, 0)).position
    np.testing.assert_allclose(run["height"], coupler.sel(axis="y"), atol=1e-14)
    np.testing.assert_allclose(run.outputs({"c": lambda at: at.q("C")}).c[0],
                               bc.analyze.loop_coordinates(run.system, run.q[0].values, "C")[0], rtol=1e-12)
    with pytest.raises(bc.ModelError, match="output 'bad': no joint called 'Z'"):
        run.outputs({"bad": lambda at: at.q("Z")})
    with pytest.raises(bc.ModelError, match="output 'two': it must return one number"):
        run.outputs({"two": lambda at: at.position("coupler")})


@pytest.mark.parametrize(("outputs", "said"), [
    ({"q": lambda at: 7.0}, "output 'q': results cannot hold it by this name"),
    ({"energy": lambda at: 7.0}, "output 'energy': results cannot hold it"),
    ({"time": lambda at: 7.0}, "output 'time': results cannot hold it"), ({3: lambda at: 7.0}, "their names are texts"),
    ({"x": 3.0}, "output 'x': a law is a function of one argument"), ("x", "outputs are a mapping"),
    ({"x": lambda at: at.q("Z")}, "output 'x': no joint called 'Z'"),
    ({"x": lambda at: at.position("coupler")}, "output 'x': it must return one number")])
def test_outputs_are_looked_at_before_the_run(run, outputs, said, monkeypatch):
    """What is asked for wrongly does not cost the run, and nothing that results hold is replaced."""
    monkeypatch.setattr("bellcrank.simulate.run.simulate", lambda *a, **k: pytest.fail("a run for nothing"))
    with pytest.raises(bc.ModelError, match=said):
        run.system.simulate(run.system.assemble(q={"A": 0.5}), 1.0, outputs=outputs)
    with pytest.raises(bc.ModelError, match=said):
        run.with_outputs(outputs)


def test_points_of_loads_are_looked_at(run):
    for point in ((0.1, 0.2), (np.nan, 0.0, 0.0), "x"):
        with pytest.raises(bc.ModelError, match="joint_load of 'A': point"):
            run.joint_load("A", point=point)


@pytest.mark.parametrize("joint", ["A", "B", "D"])
def test_loads_of_joints_in_any_frame(run, joint):
    system, q = run.system, run.q.values
    described = system.model.described  # where the library cuts is not visible
    record = described.joint(joint)
    ends = [("ground", *(b.name for b in described.bodies))[k] for k in (record.parent, record.child)]
    one, two = (run.joint_load(joint, body=b) for b in ends)
    np.testing.assert_allclose(one, -two, atol=1e-9)  # they meet in the joint
    raw = run.reactions(joint)
    sizes = [np.linalg.norm(x.values[..., 3:], axis=-1) for x in (raw, two)]
    np.testing.assert_allclose(*sizes, rtol=1e-10)
    moved = run.joint_load(joint, body=ends[0], point=(0.7, 0.2, 0.0), axes="rocker")
    turn = system.pose(q, "rocker").rotation
    back = np.einsum("tij,tj->ti", turn, moved.values[:, 3:])
    np.testing.assert_allclose(back, one.values[:, 3:], atol=1e-9)
    with pytest.raises(bc.ModelError, match=f"joint_load: joint '{joint}' connects"):
        run.joint_load(joint, body="nobody")


def test_a_body_in_equilibrium_with_the_loads_of_its_joints(run):
    """Newton's law of the crank: what its joints, springs and weight do is its mass times acceleration."""
    system = run.system
    loads = run.joint_load("A", body="crank").values[:, 3:] + run.joint_load("B", body="crank").values[:, 3:]
    inertia = system.model.mechanism.body("crank").inertia
    acceleration = run.kinematics("crank", inertia.com).acceleration.values
    weight = inertia.mass * np.asarray(system.model.mechanism.gravity)
    np.testing.assert_allclose(loads + weight, inertia.mass * acceleration, atol=1e-8)


def test_energies_of_bodies(run):
    found = bc.analyze.body_energies(run.system, run.q.values, run.u.values)
    np.testing.assert_allclose(found.kinetic.sum(-1), run["kinetic_energy"], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found.potential.sum(-1), run["potential_energy"], rtol=1e-11, atol=1e-12)


def test_names_that_mean_two_elements():
    m = bc.load("pendulum")
    m.add_joint_force("push", "hinge", lambda q, u: -u)
    m.add_wrench("push", m.bodies[0], force=(1, 0, 0))
    with pytest.raises(bc.ModelError, match="2 elements are called 'push'; give them names"):
        bc.compile(m, backend="numpy").element_forces([0.1], [0.2])


def test_elements_that_move_nothing():
    m = bc.load("pendulum")
    m.add_body("wall", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("bolts", bc.Weld(), m.ground, "wall")
    m.add_drag("air", "wall", coefficient=1.0)
    still = bc.compile(m).simulate(([0.1], [0.2]), 0.01)
    with pytest.raises(bc.ModelError, match="'air' acts on a body that is welded to the ground"):
        still.forces("air")


def test_points_of_action():
    """Where elements act is where their bodies are, wherever the library puts its frames."""
    m = bc.Mechanism("arm")
    m.add_body("arm", bc.Inertia(1.0, (0.1, 0, 0), 0.1))
    m.add_joint("hinge", bc.Revolute((1, 2, 2)), m.ground, "arm", bc.Pose.rpy((0.3, -0.2, 0.5), 0.4, 0.1, 0.2),
                bc.Pose((0.1, 0.2, 0)))
    m.add_spring("spring", m.ground, "arm", (1, 2, 3), (0.3, 0, 0.1), stiffness=2.0)
    m.add_wrench("push", "arm", force=(1, 0, 0), at=(0, 0.4, 0))
    m.add_wrench("law", "arm", at=(0, 0, 0.7), law=lambda at: (at.u("hinge"), 0.0, 0.0))
    m.add_joint_force("torque", "hinge", lambda x, rate: 3.0 - x)
    system = bc.compile(m, backend="numpy")
    at, found = system.pose([0.7], "arm"), system.element_forces([0.7], [0.2])
    np.testing.assert_allclose(found["spring"].first_point, (1, 2, 3), atol=1e-14)
    for name, point in (("spring", (0.3, 0, 0.1)), ("push", (0, 0.4, 0)), ("law", (0, 0, 0.7))):
        np.testing.assert_allclose(found[name].second_point, at.position + at.rotation @ point, atol=1e-14)
    axis = system.pose([0.7], "arm").rotation @ np.array([1, 2, 2]) / 3.0  # the same in both bodies
    np.testing.assert_allclose(found["torque"].torque, 2.3 * axis, atol=1e-14)
    line = found["torque"].second_point - (at.position + at.rotation @ (0.1, 0.2, 0))
    np.testing.assert_allclose(np.cross(line, axis), 0.0, atol=1e-14)


def test_loads_of_bushings_are_about_their_own_point(tmp_path):
    """A bushing far from the origin of its body's frame carries the weight, and no moment."""
    m = bc.Mechanism("arm on a bushing")
    m.add_body("arm", bc.Inertia(2.0, (1.0, 2.0, 0.5), (0.1, 0.1, 0.1)))
    m.add_joint("free", bc.Free(), m.ground, "arm", at=(1.0, 2.0, 0.5))
    at = bc.Pose((1.0, 2.0, 0.5))
    m.add_bushing("bush", m.ground, "arm", at, at, stiffness=(1e5,) * 3, turn_stiffness=(100.0,) * 3)
    system = bc.compile(m, backend="numpy")
    run = system.simulate(bc.analyze.equilibrium(system), 0.01, step=0.01)
    load = run.forces("bush").values
    np.testing.assert_allclose(load[:, 3:], [[0.0, 0.0, 2.0 * 9.81]] * len(load), atol=1e-8)
    np.testing.assert_allclose(load[:, :3], 0.0, atol=1e-8)
    element = run.element("bush")
    np.testing.assert_allclose(load, np.concatenate([element.torque, element.vector], axis=-1), atol=1e-9)
    assert "force" not in element and "length" not in element  # no columns of NaN
    with pytest.raises(bc.ModelError, match="'bush' has no 'force'; it has power, energy, vector, torque"):
        run.to_csv(tmp_path / "run.csv", ["bush.force"])
    run.to_csv(tmp_path / "run.csv", ["bush", "reaction.free"])
    first = (tmp_path / "run.csv").read_text().split("\n")[0].split(",")
    heads = [head.split(" [")[0].rpartition(" ")[2] for head in first]
    assert heads == ["time", *("fx", "fy", "fz", "mx", "my", "mz") * 2]
