"""Published MJCF models: MuJoCo's own accelerations on trees, exact loops where MuJoCo's are soft.

The four-bar linkages of genesis-world lie in data/models; `make models` fetches the others (see models.py), without
which their tests are skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import models
from bellcrank.io.mjcf import read_mjcf
from mjcf_peer import Peer, lifted

mujoco = pytest.importorskip("mujoco")
from bellcrank.io.mjcf.read import MjcfReader  # noqa: E402
from bellcrank.io.mjcf.source import compiled  # noqa: E402

HERE = Path(__file__).parent / "data" / "models" / "genesis-world"
BUNDLED = Path(mujoco.__file__).parent / "testdata"
PACKAGES = ("genesis-world", "playground", "mujoco-mjx", "newton", "pybullet")
OTHERS = [path for package in PACKAGES for path in models.every(package, ".xml")
          if "<mujocoinclude" not in path.read_text(errors="replace")]  # parts of other files
LOOP_METHODS = ("elimination", "dense", "recursive", "kane", "operator", "momenta")
#: notes of things that MuJoCo has and we do not; models that have them cannot be compared
_BEYOND = ("tendon", "armature", "damping beyond", "stiffness", "yield", "makes no force", "together")


def found(name: str) -> Path:
    return models.need("playground" if "robotiq" in name else "genesis-world", name)


def tree(path: Path) -> tuple[MjcfReader, bc.Mechanism, Peer]:
    """A model without its equalities and dry friction, here and in MuJoCo."""
    source = compiled(path, None, "massless")
    source.model.eq_active0[:] = 0
    source.model.dof_frictionloss[:] = source.model.tendon_frictionloss[:] = 0.0
    source.model.opt.density = source.model.opt.viscosity = 0.0
    reader = MjcfReader(source, False, True)
    machine = reader.mechanism()
    if not source.model.nv:
        pytest.skip("nothing moves")
    source.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    return reader, machine, Peer(mujoco, source.model, reader, bc.compile(machine, backend="numpy"))


@pytest.mark.everyday(60)
@pytest.mark.parametrize("path", [HERE / "four_bar_linkage.xml", HERE / "four_bar_linkage_weld.xml",
                                  BUNDLED / "model.xml", *OTHERS], ids=lambda p: f"{p.parent.parent.name}-{p.name}")
def test_trees_have_the_accelerations_of_mujoco(path: Path) -> None:
    if not path.exists():
        pytest.skip("not here")
    try:
        reader, _, peer = tree(path)
    except bc.FileError as error:
        pytest.skip(f"MuJoCo cannot compile it here: {error}")
    except bc.ModelError as error:
        if "no inertia about its axis" not in str(error):
            raise
        pytest.skip(f"its mass matrix is singular: {error}")
    beyond = [n.text for n in reader.notes if n.kind == "warned" and any(word in n.text for word in _BEYOND)]
    if beyond:
        pytest.skip(f"has what the library does not model: {beyond[0]}")
    rng = np.random.default_rng(0)
    model = peer.model  # centres of mass within 1e-8 m of a body's origin are taken to be there
    moved = np.abs(model.body_ipos[model.body_sameframe == 1]).max(initial=0.0)
    for _ in range(3):
        qpos, qvel = peer.random_state(rng)
        q, u = peer.ours(qpos, qvel)
        ctrl = rng.normal(size=len(peer.data.ctrl)) * 0.5
        theirs = peer.accelerations(qpos, qvel, ctrl)
        system, tau = peer.driven(reader, ctrl)
        ours = peer.theirs(system.forward_dynamics(q, u, tau), u, q)
        allowed = 1e-10 * (1.0 + np.abs(theirs).max()) + moved * (1.0 + qvel @ qvel)
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=allowed)


def gripper() -> bc.Mechanism:
    m, report = read_mjcf(found("panda_updated_robotiq_2f85.xml"), missing_meshes="massless", actuators=False)
    assert all("mesh" in note.text for note in report.warned)
    return m


def four_bar() -> bc.Mechanism:
    m, report = read_mjcf(found("four_bar_linkage.xml"), actuators=False)
    assert not report.warned
    m.gravity = (0.0, 0.0, -9.81)  # the file has none
    return m


#: machine, degrees of freedom as its makers have it, the joints that drive it with a start
LOOPED: dict[str, tuple[Any, int, dict[str, float]]] = {
    "four_bar": (four_bar, 1, {"hinge_1": 0.3}),
    "gripper": (gripper, 8, {"left_driver_joint": 0.4, "joint2": 0.5, "joint4": -1.5}),  # seven of the arm and a grip
}


@pytest.mark.parametrize("name", LOOPED)
def test_loops_are_exact_and_energy_is_kept(name: str) -> None:
    make, dof, start = LOOPED[name]
    m = make()
    system = bc.compile(m)
    assert system.dof == dof
    state = system.assemble(q=start, u=dict.fromkeys(start, 0.2))
    rates = []
    for method in LOOP_METHODS:
        rates.append(bc.compile(m, method=method, backend="numpy").forward_dynamics(state.q, state.u))
        np.testing.assert_allclose(rates[-1], rates[0], rtol=0.0, atol=1e-9 * np.abs(rates[0]).max())
    result = system.simulate(state, duration=1.0, step=5e-4, output=5e-4)
    assert result.attrs["status"] == "finished"
    assert float(result.loop_error.max()) < 1e-10
    balance = energy_balance(system, np.array(result.time), np.array(result.q), np.array(result.u))
    assert np.abs(balance).max() < 1e-6 * (1.0 + float(np.abs(result.kinetic_energy).max()))


def energy_balance(system: bc.System, t: Any, q: Any, u: Any) -> Any:
    """Energy and what dampers took, less what the forces against gravity gave, since the start."""
    energy = system.energy(q, u) + lifted(system, q)
    power = bc.analyze.dissipated_power(system, q, u)
    lost = np.concatenate([[0.0], np.cumsum(_panels(power, t[1] - t[0]))])
    return (energy + lost) - (energy + lost)[0]


def _panels(f: Any, h: float) -> Any:
    """Integrals over each interval by cubics through four points."""
    inner = h / 24.0 * (-f[:-3] + 13.0 * f[1:-2] + 13.0 * f[2:-1] - f[3:])
    first = h / 24.0 * (9.0 * f[0] + 19.0 * f[1] - 5.0 * f[2] + f[3])
    last = h / 24.0 * (9.0 * f[-1] + 19.0 * f[-2] - 5.0 * f[-3] + f[-4])
    return np.concatenate([[first], inner, [last]])


def test_the_welded_linkage_is_a_structure() -> None:
    m, _ = read_mjcf(found("four_bar_linkage_weld.xml"))
    system = bc.compile(m, backend="numpy")
    assert system.dof == 0
    state = system.assemble()
    assert np.abs(system.loop_error(state.q)).max() < 1e-14
    np.testing.assert_allclose(system.forward_dynamics(state.q, state.u), 0.0, atol=1e-9)


@pytest.mark.parametrize("solref", [(0.02, 1.0), (0.005, 1.0), (0.1, 0.5)])
@pytest.mark.parametrize("name", LOOPED)
def test_mujoco_comes_near_as_its_loops_stiffen(name: str, solref: tuple[float, float]) -> None:
    """From rest, with the loop closed, MuJoCo solves (A + R) f = -J a0 where we solve A f = -J a0.

    R = (1 - d) / d diag(A) makes its loops soft; d, the impedance, may be 0.9999 at most. So its accelerations miss
    ours by about 1 - d, ten times less for d ten times nearer to 1, and the limit d -> 1 from three values of d is
    ours to within what is left of the third order. solref (stiffness and damping of the error) has no part in it, since
    there is no error and no velocity. See benchmarks/machine_peers.py for motion.
    """
    path = found("four_bar_linkage.xml" if name == "four_bar" else "panda_updated_robotiq_2f85.xml")
    source = compiled(path, None, "massless")
    model = source.model
    if name == "four_bar":
        model.opt.gravity[:] = 0.0, 0.0, -9.81
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    model.opt.tolerance, model.opt.iterations = 1e-16, 1000
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    reader = MjcfReader(source, False, True)
    machine = reader.mechanism()
    system = bc.compile(machine, cut=[j.name for j in machine.joints if j.name not in reader.joints
                                      and type(j.joint) is bc.Spherical], backend="numpy")
    state = system.assemble(q=LOOPED[name][2])
    peer = Peer(mujoco, model, reader, system)
    qpos, _ = peer.states.to_peer(state)
    ctrl = np.random.default_rng(0).normal(size=len(peer.data.ctrl))
    driven, tau = peer.driven(reader, ctrl)
    ours = peer.theirs(driven.forward_dynamics(state.q, 0.0 * state.u, tau), 0.0 * state.u, state.q)
    softness, theirs = np.array([1e-2, 1e-3, 1e-4]), []
    for soft in softness:
        model.eq_solimp[:] = 1.0 - soft, 1.0 - soft, 0.001, 0.5, 2.0
        model.eq_solref[:] = solref
        theirs.append(peer.accelerations(qpos, np.zeros(model.nv), ctrl))
    scale = np.abs(ours).max()
    errors = [float(np.abs(a - ours).max() / scale) for a in theirs]
    ratio = softness / (1.0 - softness)  # R goes with (1 - d) / d
    weights = [np.prod([ratio[j] / (ratio[j] - ratio[i]) for j in range(3) if j != i]) for i in range(3)]
    limit = sum(w * a for w, a in zip(weights, theirs, strict=True))
    assert errors[2] < 2e-3
    assert 5.0 < errors[1] / errors[2] < 15.0
    assert np.abs(limit - ours).max() < 1e-5 * scale
