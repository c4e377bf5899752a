"""Runs and the joints that close loops: stops, controllers and forces on them; loops that are open at the start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc

#: joints at which the loop is cut: D, which is measured and driven, or another
CUT, TREE = ["D"], ["B"]


def linkage(cut: list[str], method: str = "auto", backend: str = "llvm") -> tuple[bc.System, bc.State]:
    system = bc.compile(bc.load("four_bar"), method, backend, cut=cut)
    guess = {"A": 0.5, "B": -1.3, "C": 2.3, "D": -1.5}
    return system, system.assemble(q={"A": 0.5}, u={"A": 8.0}, guess=guess)


def crank(system: bc.System, result: Any) -> np.ndarray:
    """q and u of all joints, which both machines have in one order."""
    assert system.coordinate_names == ("A.angle", "B.angle", "C.angle", "D.angle")
    return np.stack([result.q.values, result.u.values], axis=-1)


def test_both_machines_are_the_same() -> None:
    (a, one), (b, two) = linkage(CUT), linkage(TREE)
    assert a.loops == ("D",) and b.loops == ("B",)
    assert np.abs(crank(a, a.simulate(one, 0.5)) - crank(b, b.simulate(two, 0.5))).max() < 1e-6
    assert np.abs(one.q - two.q).max() < 1e-12 and np.abs(one.u - two.u).max() < 1e-10
    assert float(bc.analyze.loop_coordinates(a, one.q, "D")[0]) == pytest.approx(float(two.q[3]), abs=1e-12)


# -- forces and controllers ---------------------------------------------------------------------------
def follow(t: Any, q: Any, u: Any) -> Any:
    return {"D": 3.0 * (1.0 - u["D"]) - 2.0 * q["D"] + t, "A": 0.5}


WAYS: dict[str, dict[str, Any]] = {
    "constant": {"tau": {"D": 3.0, "A": 0.5}}, "by speed": {"tau": {"D.angle": 3.0}},
    "traced": {"control": bc.Traced(follow)}, "held": {"control": bc.Traced(follow, 0.02)},
    "sampled": {"control": bc.Sampled(lambda t, q, u: {"D": 4.0 - 10.0 * t, "A": 0.5}, 0.02)}}


@pytest.mark.everyday(8)
@pytest.mark.parametrize("stepper", ("rk4", "gauss", "dop853", "scipy/DOP853"))
@pytest.mark.parametrize("way", WAYS)
def test_forces_on_a_closing_joint(way: str, stepper: str) -> None:
    runs = []
    for system, state in (linkage(CUT), linkage(TREE)):
        result = system.simulate(state, 0.3, stepper=stepper, step=1e-3, output=0.01, rtol=1e-10, **WAYS[way])
        assert result.attrs["status"] == "finished"
        runs.append((crank(system, result), result))
    assert np.abs(runs[0][0] - runs[1][0]).max() < 1e-6
    known = runs[1][1].tau.sel(speed="D.angle").values
    assert "loop_tau" not in runs[0][1] and np.abs(known).max() > 1.0
    assert np.abs(runs[0][1].tau.sel(speed="D.angle").values - known).max() < 1e-5
    free = linkage(CUT)
    assert np.abs(crank(free[0], free[0].simulate(free[1], 0.3, output=0.01)) - runs[0][0]).max() > 1e-2


@pytest.mark.filterwarnings("ignore::bellcrank.errors.SlowWarning")  # dense steps are not compiled
@pytest.mark.parametrize(("method", "backend"), [("momenta", "llvm"), ("kane", "llvm"), ("dense", "llvm"),
                                                 ("auto", "numpy")])
def test_forces_on_a_closing_joint_in_every_method(method: str, backend: str) -> None:
    known = linkage(CUT)[0].simulate(linkage(CUT)[1], 0.05, control=bc.Traced(follow))
    system, state = linkage(CUT, method, backend)
    result = system.simulate(state, 0.05, control=bc.Traced(follow))
    assert np.abs(result.q.values - known.q.values).max() < 1e-8


def test_batches_with_forces_on_a_closing_joint() -> None:
    system, state = linkage(CUT)
    speeds = np.linspace(0.2, 1.0, 5)[:, None] * state.u
    for control in (bc.Traced(follow), bc.Traced(follow, 0.01),
                    bc.Sampled(lambda t, q, u: {"D": 1.0 - u[..., 0]}, 0.01)):
        many = system.simulate((np.broadcast_to(state.q, (5, 4)), speeds), 0.1, control=control)
        for i in (0, 4):
            one = system.simulate((state.q, speeds[i]), 0.1, control=control)
            assert np.abs(many.q.values[:, i] - one.q.values).max() < 1e-12
            assert np.abs(many.tau.values[:, i] - one.tau.values).max() < 1e-9


def test_a_ball_joint_that_closes_a_loop_is_driven() -> None:
    """Moments along the three speeds of a ball joint, against `loop_drive`."""
    system = bc.compile(bc.load("stewart"))
    ball = next(name for name in system.model.tree.cut_names
                if isinstance(system.model.mechanism.joint(name).joint, bc.Spherical))
    state = system.assemble()
    moment = [0.3, -0.2, 0.5]
    tau = bc.analyze.loop_drive(system, state.q, {ball: moment})
    short = system.simulate(state, 1e-5, step=1e-5, tau={ball: moment})
    plain = system.simulate(state, 1e-5, step=1e-5, tau=tau)
    still = system.simulate(state, 1e-5, step=1e-5)
    gained, known = (np.asarray(x.u.values[-1] - still.u.values[-1]) for x in (short, plain))
    assert np.abs(known).max() > 0.0 and np.abs(gained - known).max() < 1e-6 * np.abs(known).max()


def test_forces_on_closing_joints_are_kept_in_files(tmp_path: Any) -> None:
    system, state = linkage(CUT)
    memory = system.simulate(state, 0.1, control=bc.Traced(follow))
    with system.simulate(state, 0.1, control=bc.Traced(follow), file=tmp_path / "run.nc") as stream:
        assert np.array_equal(stream.tau.values, memory.tau.values) and stream.tau.attrs == memory.tau.attrs
        assert np.abs(memory.tau.sel(speed="D.angle").values).max() > 1.0
    memory.to_netcdf(tmp_path / "copy.nc")
    with bc.open_result(tmp_path / "copy.nc") as back:
        assert back.tau.dims == ("time", "speed") and back.speed.values.tolist() == [*system.speed_names]
        assert np.array_equal(back.tau.values, memory.tau.values)


def test_held_controllers_are_recorded() -> None:
    """Held inside the compiled steps, at times that are no samples: still known."""
    pendulum = bc.compile(bc.load("pendulum"))

    def law(t: Any, q: Any, u: Any) -> Any:
        return [1.0 + t]

    for output in (1e-3, 6e-3, 0.015, 0.1):
        for control in (bc.Traced(law, 0.01), bc.Sampled(law, 0.01)):
            run = pendulum.simulate(([0.5], [0.0]), 0.3, step=1e-3, output=output, control=control)
            number = np.minimum(np.floor(run.time.values / 0.01 + 1e-9), 29)
            assert np.abs(run.tau.values[:, 0] - (1.0 + 0.01 * number)).max() < 1e-12, (output, control)


def test_joints_that_cannot_be_driven() -> None:
    system, state = linkage(CUT)
    with pytest.raises(bc.BellcrankError, match="'E'"):
        system.simulate(state, 0.1, control=bc.Traced(lambda t, q, u: {"E": 1.0}))
    with pytest.raises(bc.ModelError, match="'D' takes 1 force"):
        system.simulate(state, 0.1, control=bc.Traced(lambda t, q, u: {"D": [1.0, 2.0]}))


# -- stops --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stepper", ("rk4", "dop853"))
@pytest.mark.parametrize("restitution", (0.0, 0.5, 1.0))
@pytest.mark.parametrize("method", ("elimination", "recursive"))
def test_a_stop_of_a_closing_joint(stepper: str, restitution: float, method: str) -> None:
    """The same as where the joint belongs to the tree: bounces, rest, leaving."""
    system, state = linkage(TREE)
    free = system.simulate(state, 0.5).q.values[:, system.joint_names.index("D")]
    bound = round(0.6 * float(free[0]) + 0.4 * float(free.min()), 3)
    assert free.min() < bound < free[0]
    stop = bc.joint_limit("D", lower=bound, restitution=restitution)
    runs = []
    for system, state in (linkage(CUT, method), linkage(TREE, method)):
        result = system.simulate(state, 1.0, stepper=stepper, step=1e-3, events=stop)
        assert result.attrs["status"] == "finished", result.attrs["reason"]
        runs.append((crank(system, result), result))
        assert result.q.values[:, 3].min() > bound - 1e-9
    assert runs[0][1].event_name.values.tolist() == runs[1][1].event_name.values.tolist()
    assert np.abs(runs[0][1].event_time.values - runs[1][1].event_time.values).max() < 1e-6
    lost = [run.attrs["energy_lost_in_events"] for _, run in runs]
    assert lost[0] == pytest.approx(lost[1], abs=1e-6) and (lost[0] > 0.1 or restitution == 1.0)
    assert np.abs(runs[0][0][-1] - runs[1][0][-1]).max() < 1e-5


def test_a_closing_joint_rests_and_leaves() -> None:
    """Pressed against its stop it is held, until a force lifts it off."""
    system = bc.compile(bc.load("four_bar"), cut=CUT)
    state = system.assemble(q={"A": 0.5})
    where = float(bc.analyze.loop_coordinates(system, state.q, "D")[0])
    towards = float(bc.analyze.loop_speeds(system, state.q, system.simulate(state, 0.05).u.values[-1], "D")[0])
    lower, upper = (where - 0.05, None) if towards < 0.0 else (None, where + 0.05)
    lift = bc.Traced(lambda t, q, u: {"D": bc.math.select_less(t, 1.0, 0.0, -40.0 * float(np.sign(towards)))})
    run = system.simulate(state, 1.2, control=lift, events=bc.joint_limit("D", lower, upper, restitution=0.2))
    place = run.q.values[:, 3]
    rest = (run.time.values > 0.8) & (run.time.values < 1.0)
    assert np.abs(run.u.values[rest]).max() < 1e-12 and np.abs(place[rest] - (lower or upper)).max() < 1e-9
    left = [t for t, name in zip(run.event_time.values, run.event_name.values, strict=True) if name.endswith("left")]
    assert left == pytest.approx([1.0], abs=2e-3) and abs(place[-1] - (lower or upper)) > 1e-3


def test_a_closing_joint_that_goes_round() -> None:
    """Its angle goes on beyond half a turn, and a stop stands at one of its turns."""
    system = bc.compile(bc.load("four_bar"), cut=["A"])
    state = system.assemble(q={"A": 0.5}, u={"B": -15.0})
    result = system.simulate(state, 2.0, events=bc.joint_limit("A", upper=1e3), step=1e-3)
    place = result.q.values[:, 0]
    assert np.ptp(place) > 2.0 * np.pi and len(result.event_time) == 0
    way = np.sign(place[-1] - place[0])
    bound = place[0] + way * 5.0  # beyond half a turn
    assert abs(bound) > np.pi
    ends = {"upper": bound} if way > 0 else {"lower": bound}
    stopped = system.simulate(state, 2.0, events=bc.joint_limit("A", restitution=0.5, **ends), step=1e-3)
    back = stopped.q.values[:, 0]
    assert len(stopped.event_time) >= 1 and ((bound - back) * way).min() > -1e-9


def test_a_closing_joint_with_several_coordinates() -> None:
    system = bc.compile(bc.load("stewart"))
    name = system.model.tree.cut_names[0]
    with pytest.warns(bc.SimulationWarning, match=f"joint_limit: joint {name!r} turns in all directions"):
        result = system.simulate(system.assemble(), 0.1, events=bc.joint_limit(name, upper=1.0))
    assert result.attrs["status"] == "failed"


# -- loops that are open at the start -----------------------------------------------------------------
def landing() -> bc.System:
    m = bc.Mechanism("landing")
    b, k = (m.add_body(name, bc.Inertia.sphere(1.0, 0.1)) for name in ("b", "arm"))
    m.add_joint("z", bc.Prismatic("z"), m.ground, b)
    m.add_joint("x", bc.Prismatic("x"), b, k)
    m.add_constraint("floor", bc.PointOnPlane("z"), m.ground, b)
    return bc.compile(m)


LAND = bc.Event(lambda t, q, u: q["z"], "land", direction=-1, action=bc.attach("floor"))


@pytest.mark.parametrize("stepper", ("rk4", "dop853"))
def test_a_loop_that_is_open_at_the_start_closes(stepper: str) -> None:
    result = landing().release("floor").simulate(([0.5, 0.0], [0.0, 0.7]), 1.0, stepper=stepper, events=[LAND])
    assert result.attrs["status"] == "finished", result.attrs["reason"]
    fall = np.sqrt(2.0 * 0.5 / 9.81)
    assert result.event_time.values == pytest.approx([fall], abs=1e-9)
    after = result.time.values > fall + 1e-9
    assert np.abs(result.q.values[after, 0]).max() < 1e-9 and np.abs(result.u.values[after, 0]).max() < 1e-9
    assert np.abs(result.u.values[:, 1] - 0.7).max() < 1e-9
    assert result.attrs["energy_lost_in_events"] == pytest.approx(2.0 * 9.81 * 0.5, rel=1e-9)


def test_it_may_open_again() -> None:
    lift = bc.Event(lambda t, q, u: t - 0.6, "lift", action=bc.detach("floor"))
    result = landing().release("floor").simulate(([0.5, 0.0], [0.0, 0.0]), 1.0, events=[LAND, lift])
    assert result.event_name.values.tolist() == ["land", "lift"]
    assert float(result.q[-1, 0]) == pytest.approx(-0.5 * 9.81 * 0.4**2, rel=1e-9)


def test_releases_and_locks_are_remembered_together() -> None:
    for system in (landing().release("floor").lock("x"), landing().lock("x").release("floor")):
        result = system.simulate(([0.5, 0.0], [0.0, 0.0]), 0.5, events=[LAND])
        assert result.attrs["status"] == "finished" and float(result.q[-1, 0]) == pytest.approx(0.0, abs=1e-9)
        assert not result.u.values[:, 1].any()


def test_only_what_is_open_can_be_attached() -> None:
    other = bc.Event(lambda t, q, u: q["z"], "land", action=bc.attach("roof"))
    with pytest.warns(bc.SimulationWarning, match="nothing named 'roof' closes a loop"):
        landing().release("floor").simulate(([0.5, 0.0], [0.0, 0.0]), 1.0, events=[other])


def test_an_open_start_says_what_to_do() -> None:
    with pytest.raises(bc.StateError, match=r"open by 0.5.*release\('floor'\).*attach\('floor'\)"):
        landing().simulate(([0.5, 0.0], [0.0, 0.0]), 1.0, events=[LAND])


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_forces_on_cut_joints_beside_actuators(backend: str) -> None:
    """Limits act on what the actuators drive, not on what is given along joints that were cut; with all ways to give
    it, and other parameters."""
    m = bc.load("four_bar")
    m.add_actuator("motor", "A", m.parameter("most", 9.0))
    machines = {cut: bc.compile(m, backend=backend, cut=[cut]).with_parameters(most=2.0) for cut in "CD"}
    places = dict(zip("ABCD", machines["C"].assemble(q={"A": 0.5}).q.tolist(), strict=True))

    def end(cut: str, **given: Any) -> tuple[Any, ...]:
        system = machines[cut]
        run = system.simulate(system.assemble(q={"A": 0.5}, u={"A": 1.0}, guess=places), 4e-3, stepper="rk8", **given)
        return system.pose(run.q.values[-1], "coupler").position, run.torques("D").values[-1], run.torques(
            "A").values[-1], run.joint_load("D", body="rocker").values[-1]

    ways = [{"tau": {"A": 50.0, "D": 7.0}}, {"control": bc.Traced(lambda t, q, u: {"A": 50.0, "D": -7.0 * u["A"]})},
            {"control": bc.Sampled(lambda t, q, u: {"A": 50.0, "D": 7.0 + t}, 0.002)}]
    for given in ways[::2] if backend == "numpy" else ways[1:2]:
        for found, wanted in zip(end("D", **given), end("C", **given), strict=True):
            assert np.abs(found - wanted).max() < 1e-8 * (1.0 + np.abs(wanted).max())
    if backend == "numpy":
        assert end("D", **ways[0])[2][0] == 2.0 and end("D", **ways[0])[1][0] == 7.0


def test_forces_along_the_loop_joints_of_a_ladder() -> None:
    """Elements act from outside of loops over links: in dynamics, runs and derivatives, against `loop_drive`."""
    system, plain = (bc.compile(bc.load("ladder", cells=2), **how) for how in ({"schedule": "rolled"},
                                                                               {"backend": "numpy"}))
    q, u, h = system.assemble(q={"arm0": [0.3, -0.2]}).q, np.zeros(system.nu), 1e-3
    loops = {name: system.model.configuration.speed_entries(name) for name in system.model.tree.cut_names}

    def known(tau: np.ndarray) -> np.ndarray:
        rest = np.where(system.model.tree.loop_speeds(), 0.0, tau)
        return np.asarray(plain.forward_dynamics(q, u, rest + bc.analyze.loop_drive(
            plain, q, {name: tau[own] for name, own in loops.items()})))

    tau, way = np.linspace(-40.0, 40.0, system.nu), np.arange(1.0, system.nu + 1.0)
    expected, size = known(tau), np.abs(known(tau)).max()
    assert len(loops) == 2 and np.abs(known(0.0 * tau) - expected).max() > 0.1 * size
    assert np.abs(system.forward_dynamics(q, u, tau) - expected).max() < 1e-12 * size
    run = system.simulate((q, u), h, step=h, stepper="semi_implicit", tau=tau, output=h)
    assert np.abs(run.u.values[-1] - h * expected).max() < 1e-3 * h * size
    rate = system.derivatives("forward_dynamics", q, u, tau, along={"tau": way})["along"]
    assert np.abs(rate - known(tau + way) + expected).max() < 1e-11 * size
