"""States and forces by name: guesses, keyframes, joint forces, prescribed motions, and names that do not exist."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from mjcf_peer import four_bar
from whole_states import carrying


@cache
def linkage() -> bc.System:
    m = bc.load("four_bar")
    m.add_frame("handle", "rocker", bc.Pose((0.1, 0.0, 0.0)))
    return bc.compile(m)


@cache
def arm() -> bc.System:
    """A ball, a cylindrical joint and a hinge."""
    m = bc.Mechanism("arm")
    box = bc.Inertia.box(1.0, (0.2, 0.1, 0.3))
    for name, kind, parent in (("ball", bc.Spherical(), "ground"), ("sleeve", bc.Cylindrical("x"), "one"),
                               ("hinge", bc.Revolute("y"), "two")):
        body = {"ball": "one", "sleeve": "two", "hinge": "three"}[name]
        m.add_body(body, box)
        m.add_joint(name, kind, parent, body, bc.Pose((0.1, 0.2, 0.3)))
    return bc.compile(m)


# -- guesses ------------------------------------------------------------------------------------------
def test_a_guess_may_be_an_array_a_mapping_or_a_state() -> None:
    s = linkage()
    wanted = s.assemble(guess=[0.5, -0.2, 0.1, 0.0])
    for guess in ({"A": 0.5, "B": -0.2, "C": 0.1}, {"A.angle": 0.5, "B": [-0.2], "C": np.array(0.1)},
                  bc.State(np.array([0.5, -0.2, 0.1, 0.0]), np.zeros(4))):
        found = s.assemble(guess=guess)
        assert np.array_equal(found.q, wanted.q) and not found.u.any()
    some = s.assemble(guess={"A": 0.5})  # the others at zero
    assert np.array_equal(some.q, s.assemble(guess=[0.5, 0.0, 0.0, 0.0]).q)
    held = s.assemble(q={"A": 0.9}, guess={"A": 0.5, "B": -0.2, "D": 0.3})  # D closes the loop
    assert held.q[0] == 0.9 and np.abs(s.loop_error(held.q)).max() < 1e-12


def test_guesses_of_joints_with_several_coordinates() -> None:
    s = arm()
    state = s.assemble(guess={"ball": (0.6, 0.8, 0.0, 0.0), "sleeve.slide": 0.3, "hinge": 0.2})
    assert np.allclose(state.q, [0.6, 0.8, 0.0, 0.0, 0.0, 0.3, 0.2], atol=1e-15)
    assert [b.q.tolist() for b in bc.analyze.branches(linkage(), q={"A": 0.5}, guess={"B": 0.4})] \
        == [b.q.tolist() for b in bc.analyze.branches(linkage(), q={"A": 0.5}, guess=[0.0, 0.4, 0.0, 0.0])]


@pytest.mark.parametrize(("guess", "said"), [
    ({"AA": 0.5}, "did you mean 'A'"), ({"A": "x"}, "'A'.*not a number"), ({"A": [1.0, 2.0]}, "'A' needs 1 value"),
    ({"B": np.nan}, "not finite"), ({"D": [1.0, 2.0]}, "'D' needs 1 value"), ("A", "guess")])
def test_bad_guesses(guess: Any, said: str) -> None:
    with pytest.raises(bc.BellcrankError, match=said):
        linkage().assemble(guess=guess)


def test_states_of_files_are_made_consistent() -> None:
    """Positions that are open by a little and speeds that do not fit: `project` takes the nearest ones that do."""
    s = linkage()
    closed = s.assemble(q={"A": 0.5}, u={"A": 2.0})
    key: dict[str, dict[str, Any]] = {"q": dict(zip("ABC", (closed.q[:3] + [1e-6, -1e-6, 1e-6]).tolist(), strict=True)),
                                      "u": dict(zip("ABC", (closed.u[:3] + [1e-3, 0.0, 0.0]).tolist(), strict=True))}
    found = s.project(key["q"], key["u"])
    assert np.abs(found.q - closed.q).max() < 5e-6 and np.abs(found.u - closed.u).max() < 5e-3
    assert np.abs(s.loop_error(found.q)).max() < 1e-12 and np.abs(s.loop_rate_error(*found[:2])).max() < 1e-12
    again = s.project(found)
    assert np.allclose(again.q, found.q, atol=1e-14) and np.allclose(again.u, found.u, atol=1e-14)
    with pytest.raises(bc.AssemblyError, match="project"):  # held, they contradict each other
        s.assemble(guess=key["q"], u=key["u"])
    held = s.assemble(guess=key["q"], u={"A": key["u"]["A"]})
    assert held.u[0] == key["u"]["A"] and np.abs(held.q - closed.q).max() < 5e-6


def test_batches_of_values_that_are_held() -> None:
    """Each state of a batch is the one that a call of its own gives, whatever of it has batch axes."""
    s = linkage()
    angles, rates = np.array([[0.4, 0.5], [0.6, 0.7]]), np.array([1.0, -2.0])
    many = s.assemble(q={"A": angles}, u={"A": rates})
    assert many.q.shape == many.u.shape == (2, 2, 4)
    for index in np.ndindex(2, 2):
        one = s.assemble(q={"A": float(angles[index])}, u={"A": float(rates[index[1]])})
        assert np.allclose(many.q[index], one.q, atol=1e-12) and np.allclose(many.u[index], one.u, atol=1e-11)
    for other in (s.assemble(q={"A": angles[..., None]}, u={"A": rates[:, None]}),
                  s.assemble(q={"A.angle": angles}, u={"A.angle": rates}, guess={"A": np.array([0.1, 0.2])})):
        assert np.allclose(other.q, many.q, atol=1e-12) and np.allclose(other.u, many.u, atol=1e-11)
    near = s.assemble(q=many.q + 1e-3, u={"A": 1.5})
    assert (near.u[..., 0] == 1.5).all() and np.abs(s.loop_rate_error(near)).max() < 1e-12
    turned = bc.analyze.loop_coordinates(s, many.q[0], "D")[:, 0] - 0.05
    away = s.assemble(q={"D": turned}, guess=many.q[0])  # a joint that closes the loop
    assert np.allclose(bc.analyze.loop_coordinates(s, away, "D")[:, 0], turned, atol=1e-12)
    assert s.assemble(q={"A": np.zeros((0,))}).q.shape == (0, 4)
    with pytest.raises(bc.StateError, match="batch"):
        s.assemble(q={"A": np.zeros(2)}, u={"A": np.zeros(3)})
    with pytest.raises(bc.StateError, match="'A' needs 1 value"):
        s.assemble(q={"A": [0.1, 0.2]})  # a list is the value of one state


def test_batches_are_projected() -> None:
    s = linkage()
    closed = s.assemble(q={"A": np.linspace(0.3, 0.9, 4)}, u={"A": 2.0})
    found = s.project(closed.q + 1e-7, closed.u + 1e-3)
    assert np.abs(s.loop_error(found)).max() < 1e-12 and np.abs(s.loop_rate_error(found)).max() < 1e-12
    for i in range(4):
        one = s.project(closed.q[i] + 1e-7, closed.u[i] + 1e-3)
        assert np.allclose(found.q[i], one.q, atol=1e-12) and np.allclose(found.u[i], one.u, atol=1e-11)
    assert found.q.flags.c_contiguous and found.u.flags.c_contiguous  # as compiled code takes them at once
    assert s.assemble(q=closed.q, u=closed.u).u.flags.c_contiguous
    named = s.project(dict(zip("ABC", closed.q.T[:3], strict=True)), {"A": np.full(4, 2.0)})
    assert named.q.shape == (4, 4) and np.allclose(named.q, closed.q, atol=1e-11)
    assert np.allclose(s.project(closed).u, closed.u, atol=1e-13)


MJCF = four_bar("""<keyframe><key name="up" qpos="0.5 0.1 1.2" qvel="1 0 0"/></keyframe>""")


def test_keyframes_go_in_as_they_are(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    (tmp_path / "linkage.xml").write_text(MJCF, encoding="utf-8")
    machine, report = bc.read(tmp_path / "linkage.xml")
    system, key = bc.compile(machine), report.keyframes["up"]
    state = system.project(key["q"], key["u"])
    assert np.array_equal(state.q, system.assemble(guess=key["q"]).q) and np.abs(state.u).max() > 0.1
    assert np.abs(system.loop_error(state.q)).max() < 1e-12
    assert np.abs(system.loop_rate_error(state.q, state.u)).max() < 1e-12
    whole = np.zeros(system.nu)  # files know nothing of the speeds of what connects
    whole[carrying(system, True)] = [key["u"][n] for n in "ABD"]
    assert np.array_equal(state.u, system.assemble(guess=key["q"], u=whole).u)
    assert system.simulate(state, 0.01).attrs["status"] == "finished"


# -- prescribed motions -------------------------------------------------------------------------------
def law(t: Any) -> Any:
    return 0.5 + 2.0 * t + 0.1 * bc.math.sin(3.0 * t)


def test_states_hold_what_the_laws_say() -> None:
    m = bc.load("four_bar")
    m.prescribe("A", law)
    s = bc.compile(m)
    for state in (s.assemble(t=0.3), s.assemble(guess={"A": 7.0}, t=0.3), bc.analyze.branches(s, t=0.3)[0],
                  s.project(s.assemble(t=0.3).q, np.zeros(4), t=0.3)):
        assert state.q[0] == pytest.approx(law(0.3), abs=1e-15) and state.t == 0.3
        assert np.abs(s.loop_error(state.q, t=0.3)).max() < 1e-12
    state = s.assemble(t=0.3)
    assert state.u[0] == pytest.approx(2.0 + 0.3 * np.cos(0.9), abs=1e-15)
    free = bc.compile(bc.load("four_bar"))  # the same numbers close the machine without the law
    assert np.abs(free.loop_error(state.q)).max() < 1e-12
    assert np.abs(free.loop_rate_error(state.q, state.u)).max() < 1e-12
    with pytest.raises(bc.StateError, match="'A' follows a prescribed motion"):
        s.assemble(u={"A": 1.0})


def test_states_of_driven_trees() -> None:
    m = bc.load("double_pendulum")
    first, second = (j.name for j in m.joints)
    m.prescribe(first, law)
    s = bc.compile(m)
    state = s.assemble(q={second: 0.2}, u={second: 0.1}, t=0.3)
    assert np.allclose(state.q, [law(0.3), 0.2], atol=1e-15)
    assert np.allclose(state.u, [2.0 + 0.3 * np.cos(0.9), 0.1], atol=1e-15)
    locked = s.lock(second).assemble(guess={second: 0.7}, t=0.3)
    assert np.allclose(locked.q, [law(0.3), 0.7], atol=1e-15) and locked.u[1] == 0.0


def test_driven_quaternions() -> None:
    m = bc.Mechanism("top")
    m.add_body("top", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("ball", bc.Spherical(), "ground", "top")
    m.prescribe("ball", lambda t: (bc.math.cos(t), 0.0, 0.0, bc.math.sin(t)))
    state = bc.compile(m).assemble(t=0.4)
    assert np.allclose(state.q, [np.cos(0.4), 0, 0, np.sin(0.4)], atol=1e-15)
    assert np.allclose(state.u, [0.0, 0.0, 2.0], atol=1e-14)


# -- joint forces -------------------------------------------------------------------------------------
CALLS: dict[str, Callable[[bc.System, bc.State, Any], Any]] = {
    "forward_dynamics": lambda s, x, tau: s.forward_dynamics(x.q, x.u, tau),
    "drive_forces": lambda s, x, tau: s.drive_forces(x.q, x.u, tau),
    "reactions": lambda s, x, tau: s.reactions(x.q, x.u, tau)["A"],
    "hamilton": lambda s, x, tau: s.hamilton(x.q, s.momenta(x.q, x.u, speeds="tree"), tau)[1],
    "actuator_forces": lambda s, x, tau: bc.analyze.actuator_forces(s, x.q, x.u, tau),
    "loop_loads": lambda s, x, tau: bc.analyze.loop_loads(s, x.q, x.u, tau, s.forward_dynamics(x.q, x.u, tau)),
    "partition": lambda s, x, tau: bc.analyze.partition(s, x.q, x.u, tau).free.accelerations,
    "simulate": lambda s, x, tau: s.simulate(x, 0.01, tau=tau).q.values[-1],
    "with wrenches": lambda s, x, tau: s.forward_dynamics(x.q, x.u, tau, wrenches={"rocker": np.ones(6)}),
    "with loop_tau": lambda s, x, tau: s.forward_dynamics(x.q, x.u, tau, loop_tau={"D": 1.0}),
    "linearize": lambda s, x, tau: bc.analyze.linearize(s, x, tau=tau).rate,
    "slopes": lambda s, x, tau: bc.analyze.linearize(s, x, tau=tau).A,
    "traced control": lambda s, x, tau: s.simulate(
        x, 0.01, control=bc.Traced(lambda t, q, u: tau)).q.values[-1],
    "sampled control": lambda s, x, tau: s.simulate(x, 0.01, control=lambda t, q, u: tau).q.values[-1],
}


@pytest.mark.parametrize("call", CALLS)
def test_forces_by_name(call: str) -> None:
    s = linkage()
    state = s.assemble(q={"A": 0.5}, u={"A": 1.0})
    wanted = CALLS[call](s, state, np.array([1.5, 0.0, -0.5, 0.2]))
    for tau in ({"A": 1.5, "C": -0.5, "D": 0.2}, {"A.angle": 1.5, "C": [-0.5], "D.angle": 0.2}):
        assert np.array_equal(CALLS[call](s, state, tau), wanted), tau
    assert not np.array_equal(CALLS[call](s, state, {"A": 1.5}), wanted)
    for bad, said in (({"AA": 1.0}, "did you mean 'A'"), ({"A": "x"}, "'A'"), ({"D": "x"}, "'D'")):
        if "control" not in call:
            with pytest.raises(bc.BellcrankError, match=said):
                CALLS[call](s, state, bad)


def test_forces_by_name_of_batches() -> None:
    s = arm()
    rng = np.random.default_rng(0)
    q, u = s.random_state(rng, (4, 3))
    tau = np.zeros((4, 3, s.nu))
    tau[..., :3], tau[..., 4], tau[..., 5] = rng.normal(size=3), rng.normal(size=3), rng.normal(size=(4, 3))
    named = {"ball": tau[0, 0, :3], "sleeve.slide": tau[0, :, 4], "hinge": tau[..., 5]}
    tau[..., 4] = tau[0, :, 4]
    assert np.array_equal(s.forward_dynamics(q, u, named), s.forward_dynamics(q, u, tau))
    assert np.array_equal(s.drive_forces(q, u, named), s.drive_forces(q, u, tau))
    named["hinge"] = tau[..., 5:]
    assert np.array_equal(s.forward_dynamics(q, u, named), s.forward_dynamics(q, u, tau))
    assert np.array_equal(s.simulate((q, u), 0.01, tau=named).q, s.simulate((q, u), 0.01, tau=tau).q)
    with pytest.raises(bc.StateError, match="'ball'"):
        s.forward_dynamics(q, u, {"ball": [1.0, 2.0]})
    with pytest.raises(bc.StateError, match="batch"):
        s.forward_dynamics(q, u, {"hinge": np.zeros(2), "sleeve.angle": np.zeros(3)})


# -- what is not finite -------------------------------------------------------------------------------
def test_states_that_are_not_finite_are_named() -> None:
    s = linkage()
    state = s.assemble(q={"A": 0.5})
    q, u = np.tile(state.q, (2, 3, 1)), np.tile(state.u, (2, 3, 1))
    q[1, 2, 1], u[0, 1, 2] = np.nan, np.inf
    with pytest.raises(bc.StateError, match=r"simulate: q\[1\] \(B.angle\) is nan, batch index \(1, 2\)"):
        s.simulate((q, u), 0.1)
    with pytest.raises(bc.StateError, match=r"simulate: u\[2\] \(C.angle\) is inf, batch index \(0, 1\)"):
        s.simulate((state.q, u), 0.1)
    with pytest.raises(bc.StateError, match=r"linearize: u\[2\] \(C.angle\) is inf; inputs"):
        bc.analyze.linearize(s, (state.q, u[0, 1]))
    with pytest.raises(bc.StateError, match=r"assemble: guess\[1\] \(B.angle\) is nan"):
        s.assemble(guess=q[1, 2])


# -- names that do not exist --------------------------------------------------------------------------
NAMES: dict[str, tuple[Callable[[bc.System, bc.State], Any], str]] = {
    "joint": (lambda s, x: s.assemble(q={"AA": 0.5}), "'A'"),
    "case": (lambda s, x: s.assemble(q={"a": 0.5}), "'A'"),
    "coordinate": (lambda s, x: s.assemble(q={"A.angel": 0.5}), "'A.angle'"),
    "joint with coordinate": (lambda s, x: s.assemble(u={"AA.angle": 0.5}), "'A.angle'"),
    "body": (lambda s, x: s.pose(x.q, "rockr"), "'rocker'"),
    "frame": (lambda s, x: s.jacobian(x.q, "hndle"), "'handle'"),
    "locked": (lambda s, x: s.lock("BA"), "'[AB]'"),
    "released": (lambda s, x: s.release("DD"), "'D'"),
    "closing": (lambda s, x: bc.analyze.loop_coordinates(s, x.q, "DD"), "'D'"),
    "wrench": (lambda s, x: s.forward_dynamics(x.q, x.u, wrenches={"rockr": np.zeros(6)}), "'rocker'"),
    "control": (lambda s, x: s.simulate(x, 0.01, control=bc.Traced(lambda t, q, u: {"AA": 1.0})), "'A'"),
    "asked in control": (lambda s, x: s.simulate(x, 0.01, control=bc.Traced(lambda t, q, u: {"A": q["BB"]})), "'B'"),
    "wrench control": (lambda s, x: s.simulate(x, 0.01, wrenches=bc.Traced(lambda t, q, u: {"rockr": [0.0] * 6})),
                       "'rocker'"),
    "limit": (lambda s, x: s.simulate(x, 0.01, events=bc.joint_limit("AA", upper=1.0)), "'A'"),
    "secondary": (lambda s, x: bc.analyze.partition(s, x.q, x.u, secondary=["rockr"]), "'rocker'"),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_that_do_not_exist(case: str) -> None:
    call, near = NAMES[case]
    s = linkage()
    with pytest.raises(bc.ModelError, match=f"did you mean {near}"):
        call(s, s.assemble(q={"A": 0.5}))


# -- arrays -----------------------------------------------------------------------------------------
ARRAYS: dict[str, Callable[[bc.System, Any, Any], Any]] = {
    "forward_dynamics": lambda s, q, u: s.forward_dynamics(q, u),
    "inverse_dynamics": lambda s, q, u: s.inverse_dynamics(q, u, np.zeros(s.nu)),
    "bias": lambda s, q, u: s.bias(q, u), "reactions": lambda s, q, u: s.reactions(q, u),
    "energy": lambda s, q, u: s.energy(q, u), "dissipated_power": lambda s, q, u: bc.analyze.dissipated_power(s, q, u),
    "velocity": lambda s, q, u: s.velocity(q, u, s.body_names[-1]),
    "loop_rate_error": lambda s, q, u: s.loop_rate_error(q, u) if s.loops else s.kinetic_energy(q, u),
    "consistent_acceleration": lambda s, q, u: s.consistent_acceleration(q, u, np.zeros(s.nu)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_not_given_by_name(name: str) -> None:
    """Of a closed machine a few names do not make a state: the error says what does."""
    for system in (linkage(), arm()):
        q, _ = state = system.assemble()
        key = system.joint_names[0]
        for given, said in (
                (({key: 0.5}, {key: 0.0}), r"^q: dict .* coordinate_names\. assemble\(q=.*state\.q and state\.u"),
                ((q, {key: 0.0}), r"^u: dict .* speed_names\. assemble\("), ((q, state), r"^u: State .* state\.u")):
            with pytest.raises(bc.StateError, match=said):
                ARRAYS[name](system, *given)


def test_places_are_arrays_too() -> None:
    """Also where the answer does not depend on them."""
    for system in (linkage(), arm()):
        for call in (lambda s, q: s.pose(q, "ground"), lambda s, q: s.loop_error(q), lambda s, q: s.mass_matrix(q)):
            for bad, said in (({system.joint_names[0]: 0.5}, "^q: dict"),
                              (np.zeros(system.nq + 1), "^q: the last axis")):
                with pytest.raises(bc.StateError, match=said):
                    call(system, bad)
    with pytest.raises(bc.StateError, match=r"^udot: dict .*consistent_acceleration\(q, u"):
        linkage().inverse_dynamics(*linkage().assemble(), {"A": 1.0})


def test_one_position_of_a_floating_base_is_held() -> None:
    """The rest of it is where the guess has it; also where loops must stay closed, and in batches."""
    s = bc.compile(bc.load("quadruped"), backend="numpy")
    state = s.assemble(q={"floating.z": 0.4, "floating.x": 2.0, "FL_hip": 0.3})
    assert np.array_equal(state.q[:7], (1, 0, 0, 0, 2.0, 0, 0.4)) and state.q[8] == 0.3
    turned = s.assemble(q={"floating.z": 0.4}, guess={"floating": (0.6, 0.8, 0, 0, 0, 7.0, 9.0)})
    assert np.allclose(turned.q[:7], (0.6, 0.8, 0, 0, 0, 7.0, 0.4))
    many = s.assemble(q={"floating.z": np.array([0.1, 0.2])})
    assert np.array_equal(many.q[:, 6], (0.1, 0.2)) and (many.q[:, 0] == 1.0).all()
    with pytest.raises(bc.StateError, match="orientation of joint 'floating' is set by all"):
        s.assemble(q={"floating.qx": 0.4})
    with pytest.raises(bc.StateError, match=r"'floating\.wx' is a speed; hold one of qw"):
        s.assemble(q={"floating.wx": 0.4})
    m = bc.Mechanism("kite")
    m.add_body("kite", bc.Inertia.box(1.0, (0.1, 0.2, 0.3)))
    m.add_joint("free", bc.Free(), m.ground, "kite")
    m.add_constraint("line", bc.Distance(1.0), m.ground, "kite")
    kite = bc.compile(m, backend="numpy")
    near = {"free": (1, 0, 0, 0, 0.8, 0, 0.6)}
    assert np.allclose(kite.assemble(q={"free.z": 0.6}, guess=near).q, (1, 0, 0, 0, 0.8, 0, 0.6), atol=1e-12)
    with pytest.raises(bc.AssemblyError):  # x and y are held, too
        kite.assemble(q={"free.z": 0.9}, guess=near)
