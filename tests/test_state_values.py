"""A `State` as a value: its parts by name, others like it, files, batches; and random states."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
import looped


@pytest.fixture(scope="module")
def linkage() -> bc.System:
    return bc.compile(bc.load("four_bar"))


def lagging() -> bc.System:
    """A floating body with a hinge, and a state of an element."""
    m = bc.Mechanism("lagging")
    hull = m.add_body("hull", bc.Inertia(1.0, (0, 0, 0), (0.1, 0.2, 0.3)))
    m.add_joint("free", bc.Free(), m.ground, hull)
    m.add_joint("hip.left", bc.Revolute("z"), hull, m.add_body("leg", bc.Inertia(1.0, (0.1, 0, 0), (0.1, 0.2, 0.3))))
    m.add_state("pressure", lambda at: -at.state("pressure"), initial=2.0)
    return bc.compile(m)


# -- names ----------------------------------------------------------------------------------------
def test_parts_by_name() -> None:
    system = lagging()
    q, u = np.arange(1.0, 10.0), np.arange(1.0, 9.0)
    state = system.state(q, u, t=0.5)
    assert state["free"].tolist() == q[:7].tolist() and state["free.z"] == 7.0
    assert state["hip.left"] == state["hip.left.angle"] == 8.0
    assert state.speed("free").tolist() == u[:6].tolist() and state.speed("hip.left") == 7.0
    assert state.elements == {"pressure": 8.0} and state["pressure"] == 9.0
    assert system.assemble().elements == {"pressure": 2.0}
    many = system.state(np.stack([q, q]), u)
    assert many["free"].shape == (2, 7) and many["hip.left"].shape == (2,) and many.shape == (2,)
    one = many.item(1)
    assert one == system.state(q, u) and one.shape == ()


def test_wrong_names_are_told() -> None:
    state = lagging().assemble()
    for ask, said in ((lambda: state["hip.lft"], "no joint or coordinate called 'hip.lft'; did you mean 'hip.left'"),
                      (lambda: state["free.wx"], r"'free.wx'; state.speed\(...\) has the speeds"),
                      (lambda: state.speed("free.qw"), r"'free.qw'; state\[...\] has the coordinates"),
                      (lambda: state.replace({"free.q": 1.0}), "state.replace: q: no joint or entry called 'free.q'"),
                      (lambda: state.item(0), "needs 0 numbers"),
                      (lambda: bc.State([0.0], [0.0])["A"], r"system\.state\(q, u, t=t\) makes one")):
        with pytest.raises(bc.StateError, match=said):
            ask()


def test_states_of_another_machine_are_refused(linkage: bc.System) -> None:
    """By every way in: the numbers of one machine mean nothing in another."""
    other = bc.compile(bc.load("slider_crank"))
    state = other.assemble()
    assert other.nq == linkage.nq
    for call in (lambda: linkage.forward_dynamics(state), lambda: linkage.pose(state, "coupler"),
                 lambda: linkage.derivatives("bias", state, by="q"), lambda: linkage.simulate(state, 0.1),
                 lambda: linkage.project(state), lambda: linkage.assemble(guess=state),
                 lambda: linkage.normalize(state), lambda: linkage.hamilton(state), lambda: linkage.bind("bias", state),
                 lambda: bc.analyze.linearize(linkage, state), lambda: bc.analyze.equilibrium(linkage, state)):
        with pytest.raises(bc.StateError, match=r"another machine, whose coordinate 0 is 'crank.angle' where this one "
                                                r"has 'A.angle'"):
            call()
    assert np.isfinite(linkage.pose(state.q, "coupler").position).all()


def test_the_cut_does_not_show(linkage: bc.System) -> None:
    state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
    other = bc.compile(bc.load("four_bar"), cut=["A"])
    np.testing.assert_allclose(other.forward_dynamics(state), linkage.forward_dynamics(state), atol=1e-12)


# -- values ---------------------------------------------------------------------------------------
def test_nothing_in_it_changes() -> None:
    q, u = np.array([0.5]), np.array([1.0])
    state = bc.State(q, u, np.array([1.0, 2.0]), contacts=np.zeros(3))
    q[0] = 7.0
    assert state.q[0] == 0.5
    for array in (state.q, state.u, state.t, state.contacts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3.0
    with pytest.raises(AttributeError):
        state.t = 1.0  # type: ignore[misc]
    place, speed = state
    place[0], speed[0] = 2.0, 3.0  # copies
    assert (state.q[0], state.u[0]) == (0.5, 1.0)
    again = pickle.loads(pickle.dumps(state))
    assert again == state and copy.copy(state) == state and not again.q.flags.writeable


def test_equal_states_are_equal(linkage: bc.System) -> None:
    state = linkage.assemble(q={"A": 0.5})
    assert state == linkage.state(state.q, state.u) and state != state.replace(t=0.1) and state != 1
    assert state != bc.State(*state)  # without names
    assert state != state.replace(u={"A": 1.0}) and state != state.replace(contacts=[0.0])


def test_others_like_it() -> None:
    system = lagging()
    state = system.assemble().replace({"hip.left": [0.1, 0.2], "free.z": 3.0}, {"hip.left.angle": 1.0}, t=2.0)
    assert state.shape == (2,) and state["free.z"].tolist() == [3.0, 3.0] and state["hip.left"].tolist() == [0.1, 0.2]
    assert state.speed("hip.left") == 1.0 and state.elements == {"pressure": 2.0} and state.t == 2.0
    assert repr(system.assemble().replace({"hip.left": 0.25})).startswith(
        "State(t=0.0, q: free.qw=1, free.qx=0, free.qy=0, free.qz=0, free.x=0, free.y=0, free.z=0, hip.left.angle=0.25,"
        " ... (1 more), u: ")
    assert repr(state).startswith("State(batch (2,), t=2.0, q: free.qw, free.qx, ")


# -- files ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("ending", ["json", "npz"])
def test_files(ending: str, tmp_path: Path, linkage: bc.System) -> None:
    rng, file = np.random.default_rng(0), tmp_path / f"state.{ending}"
    for state in (linkage.assemble(q={"A": 0.5}, u={"A": 1 / 3}, t=0.1), linkage.random_state(rng, (2, 3)),
                  bc.State([0.1], [0.2], contacts=[1e-300]), lagging().assemble(),
                  bc.State(np.zeros((2, 1)), [0.1], [0.1, 0.2])):
        state.save(file)
        again = bc.State.load(str(file))
        assert again == state and repr(again) == repr(state) and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_damaged_files_are_told(ending: str, tmp_path: Path, linkage: bc.System) -> None:
    file = tmp_path / f"state.{ending}"
    linkage.assemble().save(file)
    whole = file.read_bytes()
    for damaged in (b"", whole[:len(whole) // 2], b"\x00" * 40, b"[]", b"{}", b"null", b"PK\x03\x04" + whole[4:60]):
        file.write_bytes(damaged)
        with pytest.raises(bc.FileError, match=rf"state\.{ending}: is damaged, or not .* save the state again"):
            bc.State.load(file)


def test_files_that_hold_something_else(tmp_path: Path, linkage: bc.System) -> None:
    file = tmp_path / "state.json"
    linkage.assemble().save(file)
    good = json.loads(file.read_text())
    for key, value, said in (("version", 2, "reads version 1"), ("format", "x", "its format is 'x'"),
                             ("q", [1.0], r"q has the shape \(1,\) and 4 names"), ("q", ["a"], "could not convert"),
                             ("speeds", [1, 2, 3, 4], "names are not text"), ("t", [0.0, [1.0]], "inhomogeneous")):
        file.write_text(json.dumps({**good, key: value}))
        with pytest.raises(bc.FileError, match=said):
            bc.State.load(file)
    file.write_text(json.dumps({k: v for k, v in good.items() if k != "u"}))
    with pytest.raises(bc.FileError, match="'u' is missing"):
        bc.State.load(file)
    with pytest.raises(bc.FileError, match=r"end in \.json or \.npz"):
        linkage.assemble().save(tmp_path / "state.csv")
    with pytest.raises(bc.FileError, match=r"missing\.npz: cannot be read"):
        bc.State.load(tmp_path / "missing.npz")
    with pytest.raises(bc.FileError, match=r"a name that ends in \.npz takes them"):
        bc.State([np.nan], [0.0]).save(file)


# -- of runs --------------------------------------------------------------------------------------
def test_runs_give_states_and_go_on_from_them(linkage: bc.System) -> None:
    whole = linkage.simulate(linkage.random_state(size=2, seed=0), 0.02, step=1e-3)
    middle = whole.state(0.01)
    assert middle.shape == (2,) and middle == linkage.simulate(whole.state(0.0), 0.01, step=1e-3).state()
    np.testing.assert_allclose(linkage.simulate(middle, 0.01, step=1e-3).state().q, whole.state().q, atol=1e-12)
    assert whole.state().names == linkage.assemble().names and whole.isel(sample=1).state() == whole.state().item(1)
    with pytest.raises(bc.StateError, match=r"no sample at t = 0\.0105 s; the nearest is at 0\.01"):
        whole.state(0.0105)


def test_rollouts_go_on_from_their_states() -> None:
    """What rigid contacts remember goes along."""
    m = bc.Mechanism("ball")
    m.add_joint("free", bc.Free(), m.ground, m.add_body("ball", bc.Inertia.sphere(2.0, 0.1)))
    m.add_shape("ball", bc.Sphere(0.1), role="collision")
    m.add_shape(m.ground, bc.Plane(), role="collision")
    m.add_contact("floor", m.ground, "ball", friction=0.5)
    system = bc.compile(m)
    motion = bc.rollout(system, system.state(u={"free.vx": [0.1, 0.3]}).replace({"free.z": 0.1}), 1e-3, "moreau")
    motion.step(steps=5)
    saved = motion.state
    assert saved.contacts is not None and saved.shape == (2,) and saved.t == pytest.approx(5e-3)
    motion.step(steps=5)
    first = motion.state
    motion.reset([0, 1], saved)
    motion.step(steps=5)
    assert (motion.state.q == first.q).all() and (motion.state.contacts == first.contacts).all()


def test_actions_of_events_see_names(linkage: bc.System) -> None:
    seen: list[bc.State] = []

    def action(state: bc.State, system: bc.System) -> bc.State:
        seen.append(state)
        return state.replace(u=0.5 * state.u)

    event = bc.Event(lambda t, q, u: t - 0.005, "half", action=action)
    run = linkage.simulate(linkage.assemble(q={"A": 0.5}, u={"A": 2.0}), 0.01, step=1e-3, events=[event])
    assert run.attrs["status"] == "finished" and seen[0].t == pytest.approx(0.005)
    assert seen[0]["A"] == pytest.approx(0.51, abs=1e-3)


# -- random states --------------------------------------------------------------------------------
@pytest.mark.parametrize("name", looped.ZOO)
def test_random_states_close_the_loops(name: str) -> None:
    system = bc.compile(bc.load(name), backend="numpy")
    states = system.random_state(size=4, seed=1)
    assert np.abs(system.loop_error(states)).max() < 1e-9 and np.abs(system.loop_rate_error(states)).max() < 1e-9
    np.testing.assert_allclose(system.normalize(states), states.q, atol=1e-15)
    assert states == system.random_state(size=4, seed=1) != system.random_state(size=4, seed=2)
    assert len(np.unique(states.q.round(3), axis=0)) == 4


def test_random_states_do_not_depend_on_the_cut(linkage: bc.System) -> None:
    wanted = linkage.random_state(size=3, seed=4)
    for cut in "ABC":
        found = bc.compile(bc.load("four_bar"), cut=[cut]).random_state(size=3, seed=4)
        np.testing.assert_allclose(found.q, wanted.q, atol=1e-9)
        np.testing.assert_allclose(found.u, wanted.u, atol=1e-9)


def test_random_states_stay_within_ranges() -> None:
    """Of tree joints and loop joints, by ranges and by stops, with both ends and one, far from where they begin."""
    m = bc.load("four_bar")
    m.set_range("A", 1.2, 1.4)
    m.add_limit("stop", "D", upper=2.6, stiffness=1e4)
    arm = bc.load("double_pendulum")
    arm.set_range("elbow", 0.1, 0.2)
    arm.set_range("shoulder", 3.0)
    system = bc.compile(m)
    states, free = system.random_state(size=30, seed=0), bc.compile(bc.load("four_bar")).random_state(size=30, seed=0)
    assert (states["A"] > 1.2 - 1e-8).all() and (states["A"] < 1.4 + 1e-8).all() and (states["D"] < 2.6 + 1e-8).all()
    assert np.ptp(states["A"]) > 0.02 and np.ptp(free["A"]) > 0.5 and np.abs(system.loop_error(states)).max() < 1e-9
    arms = bc.compile(arm).random_state(size=50, seed=0)
    assert (arms["elbow"] > 0.1).all() and (arms["elbow"] < 0.2).all() and (arms["shoulder"] > 3.0).all()
    m.set_range("A", 20.0, 21.0)
    m.set_range("D", -0.1, 0.1)
    with pytest.raises(bc.AssemblyError, match=r"random_state: no closed position of 'four-bar' .* it stays .* beyond"):
        bc.compile(m).random_state(seed=0)


def test_random_states_of_prescribed_motions() -> None:
    m = bc.load("four_bar")
    m.prescribe("A", lambda t: 0.5 + 3.0 * t)
    system = bc.compile(m)
    states = system.random_state(size=2, seed=0, t=0.1)
    np.testing.assert_allclose(states["A"], 0.8)
    np.testing.assert_allclose(states.speed("A"), 3.0)
    assert np.abs(system.loop_error(states)).max() < 1e-12 and states.t == 0.1


def test_where_random_numbers_come_from() -> None:
    arm = bc.compile(bc.load("double_pendulum"), backend="numpy")
    wanted = arm.random_state(np.random.default_rng(3), 2)
    assert wanted == arm.random_state(size=2, seed=3) and arm.random_state(size=(0,), seed=1).shape == (0,)
    q, u = wanted
    assert (q == wanted.q).all() and (u == wanted.u).all()
    for given, said in (({"rng": np.random.default_rng(0), "seed": 1}, "rng or seed, not both"),
                        ({"seed": -1}, "seed must be a whole number"), ({"size": -1}, "size must be a whole number")):
        with pytest.raises(bc.StateError, match=said):
            arm.random_state(**given)  # type: ignore[arg-type]


# -- speeds to which functions refer --------------------------------------------------------------
def test_columns_have_names(linkage: bc.System) -> None:
    """Those of `independent_speeds`, or of all `speed_names` with zeros for joints that are cut."""
    for asked in ({}, {"independent": ["B"]}, {"cut": ["B"]}):
        system = bc.compile(bc.load("four_bar"), **asked)  # type: ignore[arg-type]
        state = system.random_state(seed=3)
        names = system.independent_speeds
        assert names == system.reduced(state).speeds
        places = [system.speed_names.index(name) for name in names]
        v = state.u[places]
        for speeds, size, u in (("independent", len(names), v), ("tree", system.nu, state.u)):
            mass, p = system.mass_matrix(state, speeds=speeds), system.momenta(state, speeds=speeds)
            assert mass.shape == (size, size) and p.shape == system.bias(state, speeds=speeds).shape == (size,)
            np.testing.assert_allclose(p, mass @ u, atol=1e-12)
            np.testing.assert_allclose(system.jacobian(state, "coupler", speeds=speeds) @ u,
                                       system.velocity(state, "coupler"), atol=1e-12)
        cut = [system.speed_names.index(f"{name}.angle") for name in system.model.tree.cut_names]
        assert cut and not system.mass_matrix(state, speeds="tree")[cut].any()
        np.testing.assert_allclose(system.hamilton(state)[0], state.u, atol=1e-12)
