"""Ready-made elements in model files: they come back as what they are, with their states, and move the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.io.native import same, text_of
from bellcrank.mechanism.forces import coordinate_forces, machine_force, motors, tyre
from bellcrank.mechanism.table import Table
from everything import everything

KINDS = {"lift": motors.CylinderForce, "gas": coordinate_forces.GasSpring, "bump": coordinate_forces.BumpStop,
         "strap": coordinate_forces.BumpStop, "shut": motors.CylinderForce, "brake": machine_force.BristleForce,
         "clutch": machine_force.BristleForce, "bar": coordinate_forces.TorsionBar, "belt": coordinate_forces.Belt,
         "dc": motors.MotorTorque, "rolling": machine_force.RollingResistance, "plain tyre": tyre.Tyre,
         "tyre": tyre.Tyre, "set": tyre.Tyre}


@pytest.fixture(scope="module")
def back(tmp_path_factory: pytest.TempPathFactory) -> bc.Mechanism:
    path = tmp_path_factory.mktemp("files") / "machine.yaml"
    bc.save(everything(), path)
    return bc.load(path)


def test_they_come_back_as_what_they_are(back: bc.Mechanism) -> None:
    found = {e.name: type(e.along if type(e.along) in KINDS.values() else e.along.law)
             for e in (*back.springs, *back.joint_forces, *back.joint_sums) if e.name in KINDS}
    found |= {w.name: type(w.law) for w in back.wrenches if w.name in KINDS}
    assert found == KINDS
    heights = {w.name: w.law.height for w in back.wrenches if isinstance(w.law, tyre.Tyre)}
    assert isinstance(heights["tyre"], Table) and heights["plain tyre"] is None and heights["set"] is not None
    assert [s.name for s in back.states] == [s.name for s in everything().states]


def _cart() -> bc.Mechanism:
    m = bc.Mechanism("cart", gravity=(0.0, 0.0, -9.81))
    m.add_joint("rail", bc.Prismatic("x"), m.ground, m.add_body("cart", bc.Inertia(2.0, inertia=(0.1, 0.1, 0.1))))
    wheel = m.add_body("wheel", bc.Inertia(1.0, inertia=(0.1, 0.1, 0.1)))
    m.add_joint("axle", bc.Revolute("y"), "cart", wheel, parent_pose=bc.Pose((0, 0, 0.29)))
    m.add_gas_spring("gas", m.ground, "cart", (-1, 0, 0), (0, 0, 0), force=100.0, length=1.6, reach=1.8, exponent=1.2)
    m.add_bump_stop("stop", m.ground, "cart", (-1, 0, 0), (0, 0, 0), upper=1.1, stiffness=1e3, progression=1e5)
    m.add_brake("brake", "axle", capacity=lambda at: 10.0 * abs(at.q("rail")))
    m.add_hydraulic_cylinder("push", m.ground, "cart", (-2, 0, 0), (0, 0, 0), head_area=2e-3, rod_area=1e-3,
                             closed=1.6, stroke=1.0, gain=2e-8, opening=lambda at: bc.math.sin(at.t))
    m.add_dc_motor("motor", "axle", voltage=12.0, resistance=0.5, inductance=2e-3, constant=0.05)
    m.add_tyre("tyre", "wheel", radius=0.3, stiffness=1e4, relaxation=0.2, half_length=0.05)
    m.add_joint("swing", bc.Revolute("y"), "cart", m.add_body("bob", bc.Inertia.point(0.3, (0, 0, -0.2))))
    m.add_state("lag", lambda at: at.u("swing") - at.state("lag"), units="m")
    return m


def test_states_stay_in_their_places(tmp_path: Path) -> None:
    """Also where bodies were added after them: coordinates keep their order."""
    m = _cart()
    bc.save(m, tmp_path / "cart.yaml")
    text = (tmp_path / "cart.yaml").read_text()
    assert text.count("state: true") == text.count("type: state") == len(m.states)
    assert [b.name for b in bc.load(tmp_path / "cart.yaml").bodies] == [b.name for b in m.bodies]
    for gone, said in (("  brake bend:\n    type: state\n", "the place of a state has nothing else"),
                       ("  lag:\n    state: true\n", "needs a body 'lag' with state: true"),
                       ("  brake bend:\n    element: brake\n    initial: 0.0\n", "there is no state 'brake bend'")):
        assert gone in text
        (tmp_path / "wrong.yaml").write_text(text.replace(gone, ""))
        with pytest.raises(bc.FileError, match=said):
            bc.load(tmp_path / "wrong.yaml")


def test_they_move_the_same(tmp_path: Path) -> None:
    m = _cart()
    bc.save(m, tmp_path / "cart.json")
    again = bc.load(tmp_path / "cart.json")
    assert same.difference(m, again) is None
    one, other = (bc.compile(x, backend="numpy") for x in (m, again))
    assert one.speed_names == other.speed_names
    start = one.assemble(q={"rail": 0.2}, u={"axle": 3.0})
    np.testing.assert_array_equal(start.u, other.assemble(q={"rail": 0.2}, u={"axle": 3.0}).u)
    np.testing.assert_array_equal(one.forward_dynamics(start, t=0.4), other.forward_dynamics(start, t=0.4))


def test_a_tyre_on_a_height_field_comes_back(tmp_path: Path) -> None:
    m = _cart()
    field = bc.HeightField([0, 1, 2], [0, 4, 8], [[0, 0, 0], [0, 0.1, 0], [0, 0, 0]])
    m.add_tyre("second", "wheel", radius=0.3, stiffness=1e4, height=field)
    bc.save(m, tmp_path / "cart.yaml")
    again = bc.load(tmp_path / "cart.yaml")
    assert same.difference(m, again) is None and again.wrenches[-1].law.height == field.table


def test_another_kind_with_the_same_force_is_another_machine() -> None:
    one, other = _cart(), _cart()
    one.add_torsion_bar("bar", "axle", length=1.0, diameter=0.02)
    other.add_joint_spring("bar", "axle", stiffness=coordinate_forces.torsion_stiffness(1.0, 0.02, 0.0, 79e9))
    assert "TorsionBar" in str(same.difference(one, other))


HAND = """
bellcrank: 1
bodies: {block: {mass: 2.0}}
joints: {rail: {type: prismatic, axis: x, parent: ground, child: block}}
springs:
  lift: {type: hydraulic_cylinder, first: ground, second: block, first_point: [0, 0, 0], second_point: [0, 0, 0],
         head_area: 0.002, rod_area: 0.001, closed: 0.4, stroke: 0.5}
joint_forces:
  brake: {type: brake, joint: rail, capacity: 10.0}
"""


def test_states_need_not_be_listed(tmp_path: Path) -> None:
    path = tmp_path / "hand.yaml"
    path.write_text(HAND)
    m = bc.load(path)
    assert [(s.name, s.initial, s.units) for s in m.states] == [
        ("lift head", 0.1, "MPa"), ("lift rod", 0.1, "MPa"), ("brake bend", 0.0, "1")]
    path.write_text(HAND + "states:\n  brake bend: {element: brake}\n  lift rod: {element: lift, initial: 2.0}\n")
    assert [(s.name, s.initial) for s in bc.load(path).states] == [
        ("brake bend", 0.0), ("lift rod", 2.0), ("lift head", 0.1)]
    assert "element: brake" in text_of(bc.load(path))


@pytest.mark.parametrize(("old", "new", "said"), [
    ("type: hydraulic_cylinder", "type: hydraulic_cylindr", "did you mean 'hydraulic_cylinder'"),
    ("head_area: 0.002", "head_area: 0.0", "hydraulic cylinder 'lift': head_area must be greater than 0"),
    ("capacity: 10.0", "capacity: 10.0, reach: 0.0", "brake 'brake': reach must be greater than 0"),
    ("capacity: 10.0}\n", "capacity: 10.0}\nstates: {brake bent: {element: brake}}", "no element 'brake' has such"),
    ("capacity: 10.0}\n", "capacity: 10.0}\nstates: {brake bend: {}}", "give either a rate or the ready-made")])
def test_mistakes_are_told_with_their_line(old: str, new: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "hand.yaml"
    assert old in HAND
    path.write_text(HAND.replace(old, new))
    with pytest.raises(bc.FileError, match=rf"hand\.yaml:\d+: .*{said}"):
        bc.load(path)


def test_results_hold_elements_and_their_states(tmp_path: Path) -> None:
    """In NetCDF files, without the machine: of tyres, which have no force along a line, as well."""
    system = bc.compile(_cart(), backend="numpy")
    run = system.simulate(system.assemble(q={"rail": 0.1}, u={"axle": 1.0}), 3e-4, step=1e-4, output=1e-4)
    run.with_elements("tyre", "brake", "push").to_netcdf(tmp_path / "run.nc")
    with bc.open_result(tmp_path / "run.nc") as again:
        for name, state in (("tyre", "across"), ("tyre", "ahead"), ("brake", "bend"), ("push", "head")):
            one, other = again.element(name), run.element(name)
            np.testing.assert_array_equal(one[state], other[state])
            np.testing.assert_array_equal(one.power, other.power)
        np.testing.assert_array_equal(again.element("tyre").vector, run.element("tyre").vector)
