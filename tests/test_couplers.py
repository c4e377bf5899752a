"""Couplers with functions in place of factors: cams, and linkages whose geometry is known, at all three levels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import loop_extras
import looped
from bellcrank.errors import FileError, ModelError
from bellcrank.io.mjcf.activations import Polynomial, coefficients_of
from bellcrank.io.native import same_mechanism

R, L = 0.3, 1.1


def slider_crank(*, coupled: bool) -> bc.Mechanism:
    """A crank and a slider without a rod's mass: joined by a `Distance`, or by where it puts the slider."""
    m = bc.Mechanism("slider-crank", gravity=(0.0, -9.81, 0.0))
    crank = m.add_body("crank", bc.Inertia.rod(2.0, (0, 0, 0), (R, 0, 0)))
    slider = m.add_body("slider", bc.Inertia.box(1.5, (0.1, 0.1, 0.1)))
    m.add_joint("crank", bc.Revolute("z"), m.ground, crank)
    m.add_joint("slide", bc.Prismatic("x"), m.ground, slider)
    if coupled:
        m.add_coupler("rod", {"slide": 1.0, "crank": lambda a: -R * bc.math.cos(a)
                              - bc.math.sqrt(L * L - R * R * bc.math.sin(a) ** 2)})
    else:
        m.add_constraint("rod", bc.Distance(L), crank, slider, bc.Pose((R, 0, 0)))
    return m


def start() -> tuple[np.ndarray, np.ndarray]:
    a, w = 0.7, 2.3
    root = np.sqrt(L * L - R * R * np.sin(a) ** 2)
    slope = -R * np.sin(a) - R * R * np.sin(a) * np.cos(a) / root
    return np.array([a, R * np.cos(a) + root]), np.array([w, slope * w])


@pytest.mark.parametrize("method", ["dense", "elimination", "recursive", "kane", "operator", "momenta"])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_rod_is_what_its_geometry_says(method: str, backend: str) -> None:
    q, u = start()
    tau = np.array([0.4, -1.3])
    expected = bc.compile(slider_crank(coupled=False), "dense").forward_dynamics(q, u, tau)
    system = bc.compile(slider_crank(coupled=True), method, backend)
    assert np.abs(system.loop_error(q)).max() < 1e-15
    assert np.abs(system.loop_rate_error(q, u)).max() < 1e-15
    found = system.forward_dynamics(q, u, tau)
    assert found == pytest.approx(expected, rel=1e-13)
    assert np.abs(bc.analyze.loop_acceleration_error(system, q, u, found)).max() < 1e-13
    assert system.inverse_dynamics(q, u, found) @ u == pytest.approx(tau @ u, rel=1e-12)  # the power of what drives it


def test_the_rates_of_a_coupler_are_derivatives() -> None:
    system = bc.compile(loop_extras.cams(), "dense", "numpy")
    q, u, tau = looped.states(system)
    q, u = q[0], u[0]
    udot, t, h = system.forward_dynamics(q, u, tau[0], t=0.3), 0.3, 1e-4

    def error(s: float) -> np.ndarray:
        return system.loop_error(system.integrate(q, u * s + udot * (s * s / 2)), t=t + s)

    rate = (error(h) - error(-h)) / (2 * h)
    assert np.abs(system.loop_rate_error(q, u, t=t) - rate).max() < 1e-6
    bend = (error(h) - 2 * error(0.0) + error(-h)) / h**2
    assert np.abs(bc.analyze.loop_acceleration_error(system, q, u, udot, t=t) - bend).max() < 1e-5
    assert np.abs(bc.analyze.loop_jacobian(system, q, t=t)).max() > 0.1


@pytest.mark.parametrize("method", ["dense", "recursive", "kane", "operator", "momenta"])
def test_methods_agree_on_cams(method: str) -> None:
    machine = loop_extras.cams()
    oracle = bc.compile(machine, "elimination", "numpy")
    q, u, tau = looped.states(oracle)
    expected = oracle.forward_dynamics(q, u, tau, t=0.3)
    found = bc.compile(machine, method).forward_dynamics(q, u, tau, t=0.3)
    assert np.abs(found - expected).max() < 1e-10 * (1.0 + np.abs(expected).max())


@pytest.mark.parametrize("method", ["elimination", "momenta"])
def test_a_cam_turns_on_and_on(method: str) -> None:
    machine = slider_crank(coupled=True)
    system = bc.compile(machine, method)
    result = system.simulate(start(), 3.0, step=1e-3)
    q, u = result["q"].values[-1], result["u"].values[-1]
    assert np.abs(q[0]) > 3.0  # it went round
    assert np.abs(system.loop_error(q)).max() < 1e-14 and np.abs(system.loop_rate_error(q, u)).max() < 1e-12
    before, after = system.energy(*start()), system.energy(q, u)
    assert abs(after - before) < 1e-9 * abs(before)


def test_reactions_of_a_cam_are_the_force_in_the_rod() -> None:
    q, u = start()
    system = bc.compile(slider_crank(coupled=True))
    udot, none = system.forward_dynamics(q, u), np.zeros(2)
    # what moves the slider along is the coupler's force alone
    assert np.abs(bc.analyze.loop_loads(system, q, u, none, udot)) == pytest.approx(np.abs(1.5 * udot[1:]), rel=1e-12)


def geared(links: int, coupled: bool = True) -> bc.Mechanism:
    """Pairs of geared arms in a row, each pair on the first arm of the last."""
    m = bc.Mechanism("geared", gravity=(1.0, 2.0, -9.0))
    before: Any = m.ground
    for k in range(links // 2):
        for side, axis in (("l", "z"), ("r", (0.0, 0.6, 0.8))):
            body = m.add_body(f"{side}{k}", bc.Inertia(1.0 + 0.1 * k, (0.1, 0.2, 0.05), (0.1, 0.2, 0.15)))
            turned = k % 3 == 1 and side == "r"  # described the other way round
            ends = (body, before) if turned else (before, body)
            m.add_joint(f"{side}{k}", bc.Revolute(axis), *ends, bc.Pose((0.0, 0.1, 0.3)), bc.Pose((0.05, 0.0, 0.0)))
        if coupled:
            m.add_coupler(f"mesh{k}", {f"l{k}": 1.0, f"r{k}": 2.5})
        before = f"l{k}"
    return m


@pytest.mark.parametrize("links, method, backend", [(4, "auto", "numpy"), (4, "dense", "numpy"), (4, "auto", "llvm"),
                                                    (56, "auto", "llvm")])
def test_couplers_act_beside_joints(links: int, method: str, backend: str) -> None:
    """Along its coordinate a joint carries what drives it; all else is as without couplers, in the same motion."""
    machine = geared(links)
    system = bc.compile(machine, method, backend)
    rng = np.random.default_rng(2)
    state = system.assemble(q={f"l{k}": 0.3 * (-1) ** k for k in range(links // 2)},
                            u={f"l{k}": rng.normal() for k in range(links // 2)})
    tau = rng.normal(size=system.nu)
    udot = system.forward_dynamics(state, tau)
    found = system.reactions(state.q, state.u, tau)
    tree = bc.compile(geared(links, coupled=False), backend="numpy")
    needed = tree.inverse_dynamics(state.q, state.u, udot)
    free = tree.reactions(state.q, state.u, udot=udot)
    size = max(np.abs(wrench).max() for wrench in free.values())
    for v, joint in enumerate(machine.joints):
        axis = np.array(joint.joint.axis)
        expected = free[joint.name] + np.concatenate([(tau[v] - needed[v]) * axis, np.zeros(3)])
        np.testing.assert_allclose(found[joint.name], expected, rtol=0, atol=1e-11 * size)


def test_the_force_of_a_coupler() -> None:
    """Two gears in balance: the tooth force is 100 N, and each joint carries its own torque."""
    m = bc.Mechanism("gears", gravity=(0, 0, 0))
    for name, x, radius in (("pinion", 0.0, 0.02), ("wheel", 0.08, 0.06)):
        m.add_body(name, bc.Inertia.cylinder(1.0, radius, 0.02, "z"))
        m.add_joint(name, bc.Revolute("z"), m.ground, name, bc.Pose((x, 0, 0)))
    m.add_coupler("mesh", {"pinion": 0.02, "wheel": 0.06})
    system = bc.compile(m, backend="numpy")
    run = system.simulate(([0.0, 0.0], [0.0, 0.0]), 0.01, step=0.01, tau=[2.0, 6.0])
    np.testing.assert_allclose(run.forces("mesh"), -100.0, rtol=1e-12)
    np.testing.assert_allclose(run.reactions().sel(joint="wheel")[:, 2], 6.0, rtol=1e-12)


def test_files_hold_functions(tmp_path: Path) -> None:
    machine = loop_extras.cams()
    for ending in ("yaml", "json"):
        path = tmp_path / f"cams.{ending}"
        bc.save(machine, path)
        assert same_mechanism(bc.load(path), machine)
    with pytest.raises(ModelError, match="coupler 'rod': SDF"):
        bc.save(slider_crank(coupled=True), tmp_path / "x.sdf")
    with pytest.raises(ModelError, match="coupler 'rod': URDF"):
        bc.save(slider_crank(coupled=True), tmp_path / "x.urdf", drop_gravity=True)
    with pytest.raises(ModelError, match="coupler 'rod': MJCF holds a coordinate that is a polynomial"):
        bc.save(slider_crank(coupled=True), tmp_path / "x.xml")
    assert not list(tmp_path.glob("x.*"))
    text, n = re.subn(r"\{upper: 1.0, lower: [^,}]*", "{upper: 1.0, lower: '2.0'", (tmp_path / "cams.yaml").read_text())
    assert n == 1
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(FileError, match="is not a formula of q; write a factor as a number"):
        bc.load(tmp_path / "bad.yaml")


def test_polynomials_of_mjcf(tmp_path: Path) -> None:
    """q1 = c0 + c1 q2 + ... held exactly, as MuJoCo does in the limit; and written again."""
    pytest.importorskip("mujoco")
    text = """<mujoco><worldbody>
      <body><joint name="a" axis="0 1 0"/><geom type="box" size=".1 .2 .3" pos=".2 0 0"/>
        <body pos=".4 0 0"><joint name="b" axis="0 1 0"/><geom type="box" size=".1 .1 .1" pos=".2 0 0"/></body></body>
      </worldbody><equality><joint joint1="b" joint2="a" polycoef="0.1 -0.5 0.3 0.2 -0.1"/></equality></mujoco>"""
    (tmp_path / "cam.xml").write_text(text)
    machine, report = bc.read(tmp_path / "cam.xml")
    assert not report.warned
    system = bc.compile(machine)
    assert system.dof == 1
    q = np.array([0.5, np.polyval([-0.1, 0.2, 0.3, -0.5, 0.1], 0.5)])
    assert np.abs(system.loop_error(q)).max() < 1e-15
    bc.save(machine, tmp_path / "again.xml")
    again = bc.compile(bc.load(tmp_path / "again.xml"))
    u = np.array([1.0, np.polyval(np.polyder([-0.1, 0.2, 0.3, -0.5, 0.1]), 0.5)])
    assert again.forward_dynamics(q, u) == pytest.approx(system.forward_dynamics(q, u), rel=1e-12)


def test_polynomials_are_recognised() -> None:
    assert coefficients_of(lambda x: (1.0 - x) * (2.0 + x) / 2.0 - x, 4) == (1.0, -1.5, -0.5, 0.0, 0.0)
    assert coefficients_of(lambda x: x**5, 4) is None
    assert coefficients_of(lambda x: 1.0 / x, 4) is None
    assert coefficients_of(Polynomial((1.0, 2.0, 3.0)), 2) == (1.0, 2.0, 3.0)


def test_bad_functions_are_refused() -> None:
    machine = slider_crank(coupled=True)
    for bad, said in ((lambda a: "no", "takes the coordinate and returns a number"),
                      (lambda a, b: a, "takes the coordinate and returns a number"),
                      (lambda a: np.fabs(a), "written with functions of bellcrank.math"),
                      ("x", "neither a number nor")):
        with pytest.raises(ModelError, match=said):
            machine.add_coupler("again", {"slide": 1.0, "crank": bad})
    assert [c.name for c in machine.couplers] == ["rod"]
