"""What acted is what is reported: Newton's and Euler's laws along runs, with reactions, elements and what was given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.view.scenes import scene_of


def balance(run: bc.Result) -> float:
    """The largest error of Newton's and Euler's laws of all bodies, at all samples at which forces are known, from what
    a result reports; as a share of the largest force."""
    machine, mechanism = run.system, run.system.model.mechanism
    q, t, names = run.q.values, run.time.values, ["ground", *(b.name for b in mechanism.bodies)]
    on_joints = {e.name for e in (*mechanism.joint_forces, *mechanism.drives)}
    loads = {j.name: run.reactions(j.name).values.reshape(-1, 2, 3) for j in mechanism.joints}
    elements = [(e, run.element(e.name)) for e in (
        *(e for e in mechanism.force_elements if e.name not in on_joints), *(c for c in mechanism.contacts if c.rigid))]

    def pose(k: int) -> tuple[np.ndarray, np.ndarray]:
        return (np.broadcast_to(np.eye(3), (len(t), 3, 3)), np.zeros((len(t), 3))) if not k else (
            (found := machine.pose(q, names[k], t=t)).rotation, found.position)

    errors, size = [], 1.0
    for k, body in enumerate(mechanism.bodies, start=1):
        own, moving = body.inertia, run.kinematics(body.name, body.inertia.com)
        turn, center, omega = pose(k)[0], moving.position.values, moving.angular_velocity.values
        xx, xy, xz, yy, yz, zz = own.inertia
        inertia = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.transpose(0, 2, 1)
        force = -own.mass * (moving.acceleration.values - np.asarray(mechanism.gravity))
        moment = -np.einsum("nij,nj->ni", inertia, moving.angular_acceleration.values) - np.cross(
            omega, np.einsum("nij,nj->ni", inertia, omega))
        for joint in mechanism.joints:
            if k in (joint.child, joint.parent):
                axes, origin = pose(joint.child)
                at = origin + axes @ np.asarray(joint.child_pose.position, dtype=float)
                sign = 1.0 if k == joint.child else -1.0
                wrench = sign * np.einsum("nij,nkj->nki", axes, loads[joint.name])
                force, moment = force + wrench[:, 1], moment + wrench[:, 0] + np.cross(at - center, wrench[:, 1])
        for e, found in elements:
            ends = [(getattr(e, "second", getattr(e, "body", 0)), 1.0, "second_point"),
                    (getattr(e, "first", 0), -1.0, "first_point")]
            for end, sign, point in ends:
                if end == k:
                    push = sign * found.vector.values
                    size = max(size, float(np.nanmax(np.abs(push))))
                    force, moment = force + push, moment + sign * found.torque.values + np.cross(
                        found[point].values - center, push)
        given = [i for i, x in enumerate(run["wrench_component"].values) if x.rpartition(".")[0] == body.name] if (
            "wrench" in run) else []
        if given:  # about the origin of the body
            own_wrench = run["wrench"].values[:, given]
            force, moment = force + own_wrench[:, 3:], moment + own_wrench[:, :3] + np.cross(
                pose(k)[1] - center, own_wrench[:, 3:])
        errors.append(np.abs(np.concatenate([force, moment], axis=1)).max(axis=1))
    worst = np.max(errors, axis=0)
    assert np.isfinite(worst).sum() > 0.8 * len(worst)
    return float(np.nanmax(worst)) / size


# -- rigid contacts -----------------------------------------------------------------------------------
def leg() -> bc.Mechanism:
    """A trunk on a rail, on a leg whose foot stands on the floor."""
    m = bc.Mechanism("leg")
    m.add_shape(m.ground, bc.Plane(), role="collision", name="floor")
    m.add_joint("rail", bc.Prismatic("z"), m.ground, m.add_body("trunk", bc.Inertia.box(5.0, (0.3, 0.2, 0.1))))
    m.add_joint("hip", bc.Revolute("y"), "trunk", m.add_body("thigh", bc.Inertia.rod(1.0, (0, 0, 0), (0, 0, -0.3))))
    m.add_body("shin", bc.Inertia.rod(0.5, (0, 0, 0), (0, 0, -0.3)))
    m.add_joint("knee", bc.Revolute("y"), "thigh", "shin", bc.Pose((0, 0, -0.3)))
    m.add_shape("shin", bc.Sphere(0.03), bc.Pose((0, 0, -0.3)), role="collision", name="foot")
    m.add_servo("hip servo", "hip", target=0.5, stiffness=300.0, damping=10.0)
    m.add_servo("knee servo", "knee", target=-1.0, stiffness=300.0, damping=10.0)
    m.add_contact("sole", "floor", "foot", friction=0.8)
    return m


@pytest.fixture(scope="module")
def standing() -> bc.Result:
    system = bc.compile(leg())
    return system.simulate(([0.58, 0.5, -1.0], [0.0, 0.0, 0.0]), 1.0, step=2e-3, output=0.02, stepper="moreau")


def test_rigid_contacts_act_in_reactions_and_accelerations(standing: bc.Result) -> None:
    end = standing.isel(time=slice(-3, None))
    assert np.abs(end.accelerations().values).max() < 1e-6  # it stands
    assert np.abs(end.kinematics("shin").acceleration.values).max() < 1e-6
    knee = end.joint_load("knee")  # on the shin, world axes: what the floor does not carry of it
    floor = end.element("sole").vector
    assert abs(float(floor.sel(axis="z")[-1]) - 6.5 * 9.81) < 1e-4
    np.testing.assert_allclose(knee.values[:, 3:] + floor.values, [[0.0, 0.0, 0.5 * 9.81]] * 3, atol=1e-4)
    np.testing.assert_allclose(end.reactions("rail").sel(component="fx"), -floor.sel(axis="x"), atol=1e-4)


def test_laws_of_motion_with_rigid_contacts(standing: bc.Result) -> None:
    assert balance(standing) < 1e-12


def test_rigid_contacts_in_a_batch_and_from_a_file(standing: bc.Result, tmp_path: Path) -> None:
    start = np.array([[0.58, 0.5, -1.0], [0.57, 0.5, -1.0]])
    both = standing.system.simulate((start, np.zeros((2, 3))), 0.2, step=2e-3, output=0.02, stepper="moreau")
    np.testing.assert_allclose(both.reactions("knee").isel(sample=0), standing.reactions("knee")[:11], atol=1e-8)
    standing.to_netcdf(tmp_path / "leg.nc")
    with bc.open_result(tmp_path / "leg.nc") as again:
        np.testing.assert_array_equal(again.reactions("knee"), standing.reactions("knee"))


def test_where_forces_of_rigid_contacts_are_not_on_record(standing: bc.Result) -> None:
    """At the start nobody knows them: no number is given rather than that of a machine that nothing touches."""
    assert np.isnan(standing.element("sole").force[0]) and np.isnan(standing.reactions("knee")[0]).all()
    assert np.isnan(standing.accelerations()[0]).all() and np.isfinite(standing.kinematics("shin").velocity).all()
    with pytest.raises(bc.StateError, match="no forces of the rigid contact 'sole' are on record"):
        standing.drop_vars("contact_force").reactions("knee")


def test_rigid_contacts_across_welds_and_boxes() -> None:
    """Forces at several places, on a body that is welded to another one, and between two that move."""
    m = bc.Mechanism("stack")
    m.add_shape(m.ground, bc.Plane(), role="collision", name="floor")
    for name in ("lower", "upper"):
        m.add_joint(name, bc.Free(), m.ground, m.add_body(name, bc.Inertia.box(2.0, (0.2, 0.2, 0.1))))
        m.add_body(f"{name} skin", bc.Inertia.box(0.5, (0.2, 0.2, 0.1)))
        m.add_joint(f"{name} bolts", bc.Weld(), name, f"{name} skin", bc.Pose((0.05, 0, 0)))
        m.add_shape(f"{name} skin", bc.Box((0.4, 0.2, 0.2)), role="collision", name=f"{name} box")
    m.add_contact("below", "floor", "lower box", friction=0.5)
    m.add_contact("between", "lower box", "upper box", friction=0.5)
    system = bc.compile(m)
    start = system.assemble(q={"lower": [1, 0, 0, 0, 0, 0, 0.1], "upper": [1, 0, 0, 0, 0.02, 0, 0.3]})
    run = system.simulate(start, 0.1, step=1e-3, output=0.01, stepper="moreau")
    assert np.abs(run.accelerations().values[2:]).max() < 1e-5
    assert balance(run) < 1e-10
    np.testing.assert_allclose(run.reactions("upper bolts").values[2:, 3:], -run.element("between").vector.values[2:]
                               + (0.0, 0.0, 0.5 * 9.81), atol=1e-4)  # body axes are those of the world


# -- rigid stops ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("restitution", [0.0, 0.4, 1.0])
def test_impulses_of_rigid_stops(restitution: float) -> None:
    """A pendulum against a stop: inertia times what its speed changes by; of a linkage, at a joint that is cut too."""
    m = bc.Mechanism("door", gravity=(0, 0, 0))
    m.add_joint("hinge", bc.Revolute("z"), m.ground, m.add_body("door", bc.Inertia(2.0, (0.5, 0, 0), (0.2, 0.2, 0.3))))
    inertia = 0.3 + 2.0 * 0.25
    door = bc.compile(m, backend="numpy")
    run = door.simulate(([0.0], [2.0]), 0.1, step=1e-2, events=bc.joint_limit(
        "hinge", upper=0.1, restitution=restitution))
    assert abs(float(run.event_stop_impulse[0]) + inertia * (1.0 + restitution) * 2.0) < 1e-12
    linkage = bc.compile(bc.load("four_bar"), backend="numpy")
    start = linkage.assemble(q={"A": 0.5}, u={"A": -2.0})
    for joint in ("A", linkage.loops[0]):
        place = float(bc.analyze.loop_coordinates(linkage, start, joint)[0]) if joint != "A" else 0.5
        rate = float(bc.analyze.loop_speeds(linkage, start, joint)[0]) if joint != "A" else -2.0
        bound = {"lower" if rate < 0.0 else "upper": place + 0.005 * rate}
        run = linkage.simulate(start, 0.01, step=1e-3, events=bc.joint_limit(joint, restitution=restitution, **bound))
        k = int(np.searchsorted(run.time.values, float(run.event_time[0]) - 1e-12))
        jump = linkage.mass_matrix(run.q.values[k], speeds="tree") @ (run.u.values[k + 1] - run.u.values[k])
        work = float(run.u.values[k] @ jump)  # the loop does none, before the impact
        speed = run.u.values[k, 0] if joint == "A" else float(
            bc.analyze.loop_speeds(linkage, bc.State(run.q.values[k], run.u.values[k], 0.0), joint)[0])
        assert abs(float(run.event_stop_impulse[0]) * speed - work) < 1e-9 * abs(work)


# -- external wrenches ----------------------------------------------------------------------------------
def push(t: float, q: np.ndarray, u: np.ndarray) -> dict[str, list[float]]:
    return {"coupler": [0.0, 0.0, 0.3 * np.sin(20.0 * t), 3.0 * q[0], 0.0, 0.0],
            "crank": [0.0, 0.0, -u[0], 0.0, 0.0, 0.0]}


def traced(t, q, u):
    return {"coupler": [0.0, 0.0, bc.math.sin(20.0 * t), 3.0 * q["A"], -u["D"], 0.0]}


GIVEN = {"constant": {"coupler": [0.0, 0.0, 1.0, 3.0, -2.0, 0.0]}, "python": push,
         "sampled": bc.Sampled(push, period=0.01), "traced": bc.Traced(traced), "held": bc.Traced(traced, period=0.005)}


@pytest.fixture(scope="module")
def linkage() -> bc.System:
    m = bc.load("four_bar")
    m.add_spring("strut", m.ground, "rocker", (0.3, 0.9, 0), (0.2, 0, 0), stiffness=40.0, damping=1.0, length=0.5)
    return bc.compile(m)


@pytest.mark.parametrize("kind", GIVEN)
def test_external_wrenches_are_on_record(linkage: bc.System, kind: str) -> None:
    run = linkage.simulate(linkage.assemble(q={"A": 0.5}), 0.1, output=0.004, wrenches=GIVEN[kind])
    assert balance(run) < 1e-12
    found, t = run["wrench"].sel(wrench_component="coupler.fx").values, run.time.values
    assert str(run["wrench_units"].sel(wrench_component="coupler.fx").values) == "N"
    if kind == "constant":
        assert (found == 3.0).all() and run.sizes["wrench_component"] == 6
    elif kind in ("python", "traced"):
        np.testing.assert_allclose(found[:-1], 3.0 * run.q.values[:-1, 0], rtol=1e-12)  # functions are asked to the end
    else:  # held for a while
        period = 0.01 if kind == "sampled" else 0.005
        assert len(set(found.tolist())) == np.unique((t[:-1] / period).round(6) // 1).size
    energy = run["energy"].values
    power = (run.kinematics("coupler").velocity.values[:, :2] * run["wrench"].sel(
        wrench_component=["coupler.fx", "coupler.fy"]).values).sum(axis=1)
    assert np.abs(power).max() > 0.0 and np.ptp(energy) > 0.0


def test_external_wrenches_in_files_tables_and_batches(linkage: bc.System, tmp_path: Path) -> None:
    start, given = linkage.assemble(q={"A": 0.5}), GIVEN["constant"]
    run = linkage.simulate(start, 0.02, output=0.004, wrenches=given)
    with linkage.simulate(start, 0.02, output=0.004, wrenches=given, file=tmp_path / "run.nc") as streamed:
        np.testing.assert_array_equal(streamed["wrench"], run["wrench"])
        np.testing.assert_array_equal(streamed.reactions("B"), run.reactions("B"))
    track = scene_of(run).tracks[0]
    assert next(a for a in track.arrows if a.kind == "wrench").force[-1].tolist() == [3.0, -2.0, 0.0]
    run.to_csv(tmp_path / "run.csv")
    assert "wrench.coupler.fy [N]" in (tmp_path / "run.csv").read_text()
    rows = np.zeros((2, 3, 6))
    rows[1, 1] = given["coupler"]
    states = (np.stack([start.q] * 2), np.stack([start.u] * 2))
    for events in ([], [bc.Event(lambda t, q, u: t - 0.01, name="half")]):  # side by side, and one by one
        both = linkage.simulate(states, 0.02, output=0.004, wrenches=rows, events=events)
        assert both["wrench"].dims == ("time", "sample", "wrench_component") and not both["wrench"][:, 0].any()
        np.testing.assert_allclose(both.reactions("B").isel(sample=1), run.reactions("B"), atol=1e-10)
    none = linkage.simulate(start, 0.004, wrenches={"coupler": np.zeros(6)})
    assert "wrench" not in none and np.isfinite(none.reactions("B")).all()


# -- joints that open -----------------------------------------------------------------------------------
def test_loads_of_joints_that_open() -> None:
    m = bc.load("four_bar")
    m.add_spring("strut", m.ground, "rocker", (0.3, 0.9, 0), (0.2, 0, 0), stiffness=40.0, damping=1.0, length=0.5)
    system = bc.compile(m)
    loose = system.loops[0]
    run = system.simulate(system.assemble(q={"A": 0.5}), 0.2, output=0.02, events=[
        bc.Event(lambda t, q, u: t - 0.1, name="off", action=bc.detach(loose))])
    load = run.joint_load(loose).values
    before = run.time.values < 0.1 - 1e-9
    assert np.isfinite(load[before]).all() and np.isnan(load[run.time.values > 0.1 + 1e-9]).all()


# -- by name ------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def pushed() -> bc.Result:
    m = bc.load("four_bar")
    m.add_wrench("steady", "coupler", force=(1.0, 2.0, lambda t: t), moment=(0, 0, 3.0), at=(0.1, 0.2, 0))
    m.add_wrench("law", "rocker", law=lambda at: (at.u("A"), 1.0, 0.0), at=(0.3, 0, 0))
    m.add_spring("strut", m.ground, "rocker", (0.3, 0.9, 0), (0.2, 0, 0), stiffness=40.0, damping=1.0, length=0.5)
    system = bc.compile(m)
    return system.simulate(system.assemble(q={"A": 0.5}), 0.1, output=0.01,
                           outputs={"pull": lambda at: at.element("strut").force})


@pytest.mark.parametrize("name", ["steady", "law"])
def test_wrenches_by_name(pushed: bc.Result, name: str) -> None:
    """On the body about the point where they act, as those of bushings; in plots and tables as all elements."""
    found, wrench = pushed.element(name), pushed.forces(name)
    np.testing.assert_allclose(wrench.values[:, 3:], found.vector, atol=1e-13)
    np.testing.assert_allclose(wrench.values[:, :3], found.torque, atol=1e-13)
    assert sum(len(axes.lines) for axes in pushed.plot(name).axes) >= 2
    assert pushed.plot(f"{name}.power").axes[0].get_ylabel() == "power [W]"
    assert len(pushed.plot("forces").axes) >= 2


def test_tables_hold_all_that_was_computed(pushed: bc.Result, tmp_path: Path) -> None:
    pushed.with_elements("strut").to_csv(tmp_path / "run.csv")
    head, first, *_ = (tmp_path / "run.csv").read_text().splitlines()
    columns = dict(zip(head.split(","), first.split(","), strict=True))
    assert float(columns["pull [1]"]) == float(pushed["pull"][0]) == float(columns["strut.force [N]"])
    assert float(columns["strut.vector.x [N]"]) == float(pushed.element("strut").vector[0, 0])


def test_forces_that_are_functions_are_told_where_they_go(linkage: bc.System) -> None:
    with pytest.raises(bc.StateError, match=r"tau of 'B': a function is no number; .* control="):
        linkage.simulate(linkage.assemble(q={"A": 0.5}), 0.1, tau={"B": lambda t: 5.0 * t})


# -- outputs in files -----------------------------------------------------------------------------------
def test_outputs_of_runs_that_go_to_files(linkage: bc.System, tmp_path: Path) -> None:
    laws = {"pull": lambda at: at.element("strut").force, "twice": lambda at: 2.0 * at.q("A")}
    start = linkage.assemble(q={"A": 0.5})
    run = linkage.simulate(start, 0.02, output=0.004, outputs=laws)
    with linkage.simulate(start, 0.02, output=0.004, outputs=laws, file=tmp_path / "run.nc") as streamed:
        for name in laws:
            np.testing.assert_array_equal(streamed[name], run[name])
    with bc.open_result(tmp_path / "run.nc") as again:
        np.testing.assert_allclose(again["pull"], run.element("strut").force, rtol=1e-13)


# -- runs of a batch ------------------------------------------------------------------------------------
def test_one_run_of_many_with_different_parameters(tmp_path: Path) -> None:
    """What elements and joints did in it, also from a file."""
    m = bc.load("four_bar")
    m.add_spring("strut", m.ground, "rocker", (0.3, 0.9, 0), (0.2, 0, 0), stiffness=m.parameter("k", 40.0), length=0.5)
    system = bc.compile(m)
    start, stiff = system.assemble(q={"A": 0.5}), np.array([10.0, 20.0, 30.0])
    runs = system.with_parameters(k=stiff).simulate(start, 0.02, output=0.01)
    runs.to_netcdf(tmp_path / "runs.nc")
    alone = system.with_parameters(k=20.0).simulate(start, 0.02, output=0.01)
    with bc.open_result(tmp_path / "runs.nc") as again:
        for some in (runs.isel(sample=1), runs.isel({"sample": 1}), again.isel(sample=1), runs.isel(sample=[2, 1])):
            found = some if "sample" not in some.dims else some.isel(sample=1, time=slice(None))
            np.testing.assert_allclose(found.element("strut").force, alone.element("strut").force, rtol=1e-12)
            np.testing.assert_allclose(found.reactions("A"), alone.reactions("A"), rtol=1e-9, atol=1e-12)
    assert runs.isel(sample=[2, 0]).element("strut").force.shape == (3, 2)
    assert runs.isel(sample=1).system.parameters == {"k": 20.0} and runs.system.parameters["k"].tolist() == [10, 20, 30]
    runs.isel(sample=2).to_csv(tmp_path / "one.csv", ["strut"])
    assert np.isclose(float((tmp_path / "one.csv").read_text().splitlines()[1].split(",")[1]),
                      1.5 * float(alone.element("strut").force[0]))
