"""Batches of parameters and of held values: every state as if it were put together alone, those out of reach NaN."""

from __future__ import annotations

import functools
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import AssemblyWarning, BranchWarning
from bellcrank.system import assembly

Floats = np.ndarray


class Numbers:
    """Parameters of a machine, made as they are needed."""

    def __init__(self, m: bc.Mechanism, rng: np.random.Generator) -> None:
        self.m, self.rng = m, rng

    def __call__(self, near: float, by: float) -> Any:
        return self.m.parameter(f"p{len(self.m.parameters)}", near + float(self.rng.uniform(-by, by)))

    def point(self, place: Any, by: float) -> Floats:
        return np.array([self(float(x), by) for x in place])

    def joint(self) -> bc.Joint:
        axis = self.point(np.eye(3)[self.rng.integers(3)], 0.2)
        kinds = (lambda: bc.Revolute(axis), lambda: bc.Universal("x", "y"), lambda: bc.Cylindrical(axis), bc.Spherical,
                 lambda: bc.Screw(axis, self(0.1, 0.02)), lambda: bc.Prismatic(axis))
        return kinds[self.rng.integers(len(kinds))]()


def machine(seed: int) -> bc.Mechanism:
    """Two chains from the ground whose tips are joined; points, axes, orientations, pitches, ratios and laws are made
    of parameters."""
    rng = np.random.default_rng(seed)
    m = bc.Mechanism(f"random {seed}", gravity=(0.0, 0.0, -9.81))
    number = Numbers(m, rng)
    drawn = rng.random() < 0.5  # closed where all coordinates are zero
    for side, x in enumerate((-0.4, 0.4)):
        last: Any = m.ground
        for k in range(3):
            body = m.add_body(f"b{side}{k}", bc.Inertia(1.0 + 0.1 * k, (x, 0.1, 0.3 * k), np.eye(3) * 0.03))
            kind = bc.Revolute(number.point((0.0, 1.0, 0.3), 0.2)) if k == 0 else number.joint()
            place = number.point((x, 0.0, 0.3 * k), 0.1)
            turn = [number(0.0, 0.05) for _ in "xyz"]
            if drawn:
                m.add_joint(f"j{side}{k}", kind, last, body, at=place)
            else:
                m.add_joint(f"j{side}{k}", kind, last, body, bc.Pose.rpy(place if k == 0 else (0.0, 0.0, 0.3), *turn))
            last = body
    if drawn:
        m.add_joint("close", bc.Spherical(), "b02", "b12", at=number.point((0.0, 0.0, 0.8), 0.1))
    else:
        m.add_joint("close", (bc.Universal("x", "y"), bc.Spherical())[rng.integers(2)], "b02", "b12",
                    bc.Pose((0.4, number(0.0, 0.02), 0.2)), bc.Pose((-0.4, 0.0, number(0.2, 0.02))))
    if rng.random() < 0.4:
        offset = number(0.0, 0.05)
        m.prescribe("j10", lambda t: offset + 0.3 * t)
    if rng.random() < 0.4:
        wheel = m.add_body("wheel", bc.Inertia(0.3, (0.0, 0.0, 0.0), np.eye(3) * 0.01))
        m.add_joint("wheel", bc.Revolute("z"), m.ground, wheel)
        m.add_coupler("belt", {"j00": 1.0, "wheel": number(2.0, 0.2)})
    return m


def values(m: bc.Mechanism, lead: tuple[int, ...], rng: np.random.Generator, by: float = 0.03) -> dict[str, Floats]:
    return {name: x + rng.uniform(-by, by, lead) for name, x in m.parameters.items()}


def alone(system: bc.System, sample: dict[str, float], arguments: dict[str, Any]) -> bc.State | str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BranchWarning)
        try:
            return system.with_parameters(**sample).assemble(**arguments)
        except bc.AssemblyError as error:
            return str(error)


def compared(system: bc.System, batch: bc.State, samples: list[dict[str, float]], arguments: list[dict[str, Any]]
             ) -> int:
    """How many states of a batch there are; all are those of machines alone, or NaN with the same reason."""
    reasons = {f.index: f.reason for f in batch.failures}
    for index, sample, own in zip(np.ndindex(*batch.shape), samples, arguments, strict=True):
        one, state = alone(system, sample, own), batch.item(*index)
        if isinstance(one, str):
            assert reasons[index] == one and np.isnan(state.q).all() and np.isnan(state.u).all()
            assert state.failures[0].reason == one
            continue
        assert index not in reasons and state.branch_changed == one.branch_changed
        assert np.abs(state.q - one.q).max() < 1e-10, index
        assert np.abs(state.u - one.u).max() < 1e-9 * (1.0 + np.abs(one.u).max()), index
        assert np.abs(system.with_parameters(**sample).loop_error(state)).max() < 1e-12
    return int(np.prod(batch.shape)) - len(reasons)


@pytest.mark.filterwarnings("ignore::bellcrank.errors.AssemblyWarning", "ignore::bellcrank.errors.BranchWarning")
@pytest.mark.everyday(6)
@pytest.mark.parametrize("seed", range(24))
def test_random_machines(seed: int) -> None:
    """By guesses and with held values, cut where the library does and elsewhere."""
    m, rng, n = machine(seed), np.random.default_rng(100 + seed), 5
    cut = [["j02"], ["j12"], []][seed % 3]
    system = bc.compile(m, cut=cut)
    given = values(m, (n,), rng)
    samples = [{k: float(v[i]) for k, v in given.items()} for i in range(n)]
    many = system.with_parameters(**given)
    state = many.assemble(t=0.1)
    assert state.shape == (n,) and compared(system, state, samples, [{"t": 0.1}] * n)
    angles, speeds = rng.uniform(-0.2, 0.2, n), rng.uniform(-1.0, 1.0, n)
    held = many.assemble(q={"j00": angles}, u={"j00": speeds}, guess=state, t=0.1)
    found = compared(system, held, samples, [
        {"q": {"j00": angles[i]}, "u": {"j00": speeds[i]}, "guess": state.q[i], "t": 0.1} for i in range(n)])
    assert found


def linkage(length: Any = None) -> bc.Mechanism:
    """A four-bar; its rod may be a parameter."""
    m = bc.Mechanism("linkage", gravity=(0.0, -9.81, 0.0))
    length = m.parameter("rod", 1.0) if length is None else length
    mass = m.parameter("mass", 1.0)
    for name in ("crank", "coupler", "rocker"):
        m.add_body(name, bc.Inertia(mass, (0.0, 0.2, 0.0), np.eye(3) * 0.01))
    m.add_joint("A", bc.Revolute("z"), m.ground, "crank")
    m.add_joint("B", bc.Revolute("z"), "crank", "coupler", bc.Pose((0.0, 0.3, 0.0)))
    m.add_joint("C", bc.Revolute("z"), "coupler", "rocker", bc.Pose((length, 0.0, 0.0)), bc.Pose((0.0, 0.6, 0.0)))
    m.add_joint("D", bc.Revolute("z"), m.ground, "rocker", bc.Pose((1.0, 0.0, 0.0)))
    return m


LENGTHS = np.array([0.9, 1.0, 5.0, 1.1, 0.01])
GUESS = {"B": 0.3, "C": 0.3, "D": -0.2}


@pytest.fixture(scope="module")
def system() -> bc.System:
    return bc.compile(linkage())


@pytest.fixture(scope="module")
def partly(system: bc.System) -> bc.State:
    """A batch with two states out of reach."""
    with pytest.warns(AssemblyWarning) as told:
        state = system.with_parameters(rod=LENGTHS).assemble(q={"A": 0.3}, u={"A": 1.0}, guess=GUESS)
    assert len(told) == 1
    text = str(told[0].message)
    assert "2 of 5 states cannot be reached" in text and "(2,), joint 'D'" in text and "do not close" in text
    return state


def test_states_out_of_reach_are_nan_with_the_reason(system: bc.System, partly: bc.State) -> None:
    samples = [{"rod": float(x)} for x in LENGTHS]
    assert compared(system, partly, samples, [{"q": {"A": 0.3}, "u": {"A": 1.0}, "guess": GUESS}] * 5) == 3
    assert [(f.index, f.joint) for f in partly.failures] == [((2,), "D"), ((4,), "D")]
    assert "do not close" in partly.failures[0].reason
    with pytest.raises(bc.AssemblyError, match="do not close") as one:
        system.with_parameters(rod=5.0).assemble(q={"A": 0.3}, guess=GUESS)
    assert one.value.joint == pickle.loads(pickle.dumps(one.value)).joint == "D"


def test_the_first_of_a_batch_out_of_reach(system: bc.System) -> None:
    """Plans for the loops come from the default values then, or from a state."""
    lengths = np.array([5.0, 0.9, 1.1])
    many = system.with_parameters(rod=lengths)
    with pytest.warns(AssemblyWarning, match="1 of 3"):
        state = many.assemble(q={"A": 0.3}, u={"A": 1.0}, guess=GUESS)
    for call in FUNCTIONS.values():
        found = np.asarray(call(many, state))
        alone = np.asarray(call(system.with_parameters(rod=lengths[1:]), system.state(state.q[1:], state.u[1:])))
        assert np.isnan(found[0]).all() and np.allclose(found[1:], alone, rtol=1e-11, atol=1e-11)


@pytest.mark.filterwarnings("ignore::bellcrank.errors.AssemblyWarning")
@pytest.mark.parametrize("first", [0, 1])
def test_a_sample_that_is_no_machine(first: int) -> None:
    """Two hardpoints meet: there is no axis."""
    system = bc.compile(mcpherson())
    ends = np.array([0.0, 0.2]) if first == 0 else np.array([0.2, 0.0])
    many = system.with_parameters(front_x=ends, front_y=0.0, front_z=0.0, rear_x=0.0, rear_y=0.0, rear_z=0.0)
    state = many.assemble(q={"rack": 0.0})
    assert [f.index for f in state.failures] == [(first,)] and np.isfinite(state.q[1 - first]).all()


def test_none_of_a_batch_in_reach(system: bc.System) -> None:
    with pytest.warns(AssemblyWarning, match="2 of 2 states"):
        state = system.with_parameters(rod=np.array([5.0, 6.0])).assemble()
    assert np.isnan(state.q).all() and len(state.failures) == 2


def test_failures_survive(partly: bc.State, tmp_path: Any) -> None:
    assert pickle.loads(pickle.dumps(partly)) == partly
    for name in ("state.json", "state.npz"):
        partly.save(tmp_path / name)
        again = bc.State.load(tmp_path / name)
        assert again == partly and again.failures == partly.failures and again != partly.replace(q=np.zeros((5, 4)))
    assert partly.item(2).failures[0].index == () and partly.item(-1).failures and not partly.item(0).failures
    assert partly.replace(t=1.0).failures == partly.failures and np.isnan(partly["A"]).tolist() == [
        False, False, True, False, True]


FUNCTIONS = {
    "pose": lambda s, x: s.pose(x, "coupler").position, "velocity": lambda s, x: s.velocity(x, "rocker"),
    "forward_dynamics": lambda s, x: s.forward_dynamics(x, {"A": 2.0}), "mass_matrix": lambda s, x: s.mass_matrix(x),
    "inverse_dynamics": lambda s, x: s.inverse_dynamics(x, s.forward_dynamics(x)), "bias": lambda s, x: s.bias(x),
    "reactions": lambda s, x: s.reactions(x)["D"], "energy": lambda s, x: s.energy(x),
    "derivatives": lambda s, x: s.derivatives("forward_dynamics", x)["u"],
    "loop_error": lambda s, x: s.loop_error(x), "project": lambda s, x: s.project(x).q,
    "drive_forces": lambda s, x: s.drive_forces(x), "hamilton": lambda s, x: s.hamilton(x)[1],
    "jacobian": lambda s, x: s.jacobian(x, "rocker"), "reduced": lambda s, x: s.reduced(x).mass_matrix,
    "consistent_acceleration": lambda s, x: s.consistent_acceleration(x, {"A": 1.0}),
}
OPTIONS: list[dict[str, Any]] = [{}, {"schedule": "rolled"}, {"method": "dense", "backend": "numpy"}, {"cut": ["A"]}]


@functools.cache
def compiled(which: int) -> bc.System:
    return bc.compile(linkage(), **OPTIONS[which])


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("which", range(len(OPTIONS)))
def test_functions_of_batches_with_states_out_of_reach(partly: bc.State, name: str, which: int) -> None:
    system, call, good = compiled(which), FUNCTIONS[name], [0, 1, 3]
    if which == 2 and name == "derivatives":
        pytest.skip("exact derivatives are of compiled code")
    found = np.asarray(call(system.with_parameters(rod=LENGTHS), partly))
    alone = np.asarray(call(system.with_parameters(rod=LENGTHS[good]), system.state(partly.q[good], partly.u[good])))
    assert found.shape[0] == 5 and np.isnan(found[[2, 4]]).all()
    assert np.allclose(found[good], alone, rtol=1e-12, atol=1e-12)


def test_motions_that_open_loops_are_refused_beside_states_out_of_reach(system: bc.System, partly: bc.State) -> None:
    many = system.with_parameters(rod=LENGTHS)
    udot = np.nan_to_num(many.forward_dynamics(partly))
    udot[3, 1] += 5.0
    for backend in (many, bc.compile(linkage(), backend="numpy").with_parameters(rod=LENGTHS)):
        with pytest.raises(bc.StateError, match="open the loop"):
            backend.inverse_dynamics(partly, udot)


def test_runs_refuse_states_out_of_reach(system: bc.System, partly: bc.State) -> None:
    with pytest.raises(bc.StateError, match=r"2 of 5 states have no coordinates.*batch index \(2,\).*do not close"):
        system.with_parameters(rod=LENGTHS).simulate(partly, 0.1)


def test_guesses_out_of_reach_stay_so_and_are_told_once(system: bc.System, partly: bc.State) -> None:
    many = system.with_parameters(rod=LENGTHS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = many.assemble(q={"A": 0.35}, guess=partly)
        again, nearest = many.assemble(partly), many.assemble(guess=partly)
    assert state.failures == again.failures == nearest.failures == partly.failures
    good = [0, 1, 3]
    assert (state["A"][good] == 0.35).all() and np.array_equal(again.q[good], nearest.q[good])
    assert np.allclose(again.u[good], partly.u[good], rtol=0.0, atol=1e-14) and np.isnan(again.u[2]).all()


def test_axes_broadcast(system: bc.System) -> None:
    """Parameters along one axis, held values along another; masses alone give as many states."""
    lengths, angles = np.array([[0.9], [1.1]]), np.array([0.2, 0.3, 0.4])
    state = system.with_parameters(rod=lengths).assemble(q={"A": angles}, guess={"A": 0.2, **GUESS})
    samples = [{"rod": float(x)} for x in lengths.ravel() for _ in angles]
    assert state.shape == (2, 3) and compared(system, state, samples, [
        {"q": {"A": float(a)}, "guess": {"A": 0.2, **GUESS}} for _ in lengths for a in angles]) == 6
    heavy = system.with_parameters(mass=np.array([1.0, 2.0])).assemble(q={"A": 0.3}, guess=GUESS)
    assert heavy.shape == (2,) and np.array_equal(*heavy.q)
    with pytest.raises(bc.StateError, match="does not fit the states"):
        system.with_parameters(rod=np.array([0.9, 1.0])).assemble(q={"A": angles})
    assert system.with_parameters(rod=np.zeros(0)).assemble(q={"A": 0.3}).q.shape == (0, 4)
    with pytest.raises(bc.ModelError, match="'rod' of 'linkage' is nan"):
        system.with_parameters(rod=np.array([0.9, np.nan])).assemble()


def test_projected(system: bc.System) -> None:
    lengths = np.array([0.95, 1.0, 5.0, 1.05])
    near = system.assemble(q={"A": 0.3}, u={"A": 1.0}, guess=GUESS)
    many = system.with_parameters(rod=lengths)
    with pytest.warns(AssemblyWarning, match="1 of "):
        state = many.project(near.q, near.u)
    assert state.shape == (4,) and [f.index for f in state.failures] == [(2,)] and np.isnan(state.q[2]).all()
    for i in (0, 1, 3):
        one = system.with_parameters(rod=float(lengths[i])).project(near.q, near.u)
        assert np.abs(one.q - state.q[i]).max() < 1e-12 and np.abs(one.u - state.u[i]).max() < 1e-12


@pytest.mark.parametrize("cut", ["A", "B", "C", "D"])
def test_any_joint_is_held_wherever_the_loop_is_cut(cut: str) -> None:
    system, lengths = bc.compile(linkage(), cut=[cut]), np.array([0.9, 1.0, 1.1])
    start = system.assemble(q={"A": 0.3}, guess=GUESS)
    for joint in "AD":
        values = start[joint] + np.array([0.02, 0.05, 0.0])
        state = system.with_parameters(rod=lengths).assemble(q={joint: values}, u={joint: 1.0}, guess=start)
        assert compared(system, state, [{"rod": float(x)} for x in lengths], [
            {"q": {joint: float(x)}, "u": {joint: 1.0}, "guess": start} for x in values]) == 3


@pytest.mark.filterwarnings("ignore::bellcrank.errors.AssemblyWarning")
def test_random_states_of_batches(system: bc.System) -> None:
    many = system.with_parameters(rod=np.array([0.9, 1.0, 1.1]))
    state = many.random_state(seed=2)
    assert state.shape == (3,) and np.abs(many.loop_error(state)).max() < 1e-13
    assert np.array_equal(state.q, many.random_state(seed=2, size=3).q)
    with pytest.raises(bc.AssemblyError, match=r"random_state: .* batch index \(1,\)"):
        system.with_parameters(rod=np.array([0.9, 5.0])).random_state(seed=2)


@pytest.mark.parametrize("call", [
    lambda s, x: bc.analyze.coupler_curve(s, "A", "coupler"),
    lambda s, x: bc.analyze.drive(s, {"A": lambda t: t}, [0.0, 0.1]), lambda s, x: bc.analyze.linearize(s, x)])
def test_analyses_of_one_machine_say_so(system: bc.System, call: Any) -> None:
    many = system.with_parameters(rod=np.array([0.9, 1.0, 1.1]))
    with pytest.raises(bc.ModelError, match="one machine at a time"):
        call(many, many.assemble(q={"A": 0.3}, guess=GUESS))


@pytest.mark.parametrize("joint", ["A", "B", "C", "D"])
def test_speeds_of_every_joint_are_held_for_every_sample(joint: str, system: bc.System) -> None:
    """Of joints that close loops too, with parameters of each sample."""
    rods, speeds = np.array([0.9, 1.0, 1.1]), np.array([1.0, 2.0, -1.0])
    many = system.with_parameters(rod=rods)
    state = many.assemble(q={"A": np.full(3, 0.3)}, u={joint: speeds}, guess=GUESS)
    assert np.abs(state.speed(joint) - speeds).max() < 1e-13 and np.abs(many.loop_rate_error(state)).max() < 1e-13
    for i, (rod, speed) in enumerate(zip(rods, speeds, strict=True)):
        own = system.with_parameters(rod=rod).assemble(q={"A": 0.3}, u={joint: speed}, guess=GUESS)
        assert np.abs(own.u - state.u[i]).max() < 1e-12


def test_speeds_that_contradict_each_other_are_of_one_state(system: bc.System) -> None:
    start = system.assemble(q={"A": 0.3}, u={"A": 1.0}, guess=GUESS)
    speeds = {"A": np.array([1.0, 2.0, 1.0]), "B": np.full(3, start.speed("B"))}
    with pytest.warns(AssemblyWarning, match="1 of 3 .*contradict each other"):
        state = system.assemble(q={"A": np.full(3, 0.3)}, u=speeds, guess=GUESS)
    assert [f.index for f in state.failures] == [(1,)] and np.allclose(state.u[[0, 2]], start.u, atol=1e-12)


def test_the_other_branch_is_told_of_each_state() -> None:
    """The rocker of a four-bar beyond its dead point: the nearest position is on the other branch."""
    system = bc.compile(bc.load("five_bar"))
    start = system.assemble(guess={"leg1.1": 1.0, "leg2.1": 0.5})
    hold = {"leg1.1": float(start["leg1.1"])}
    found = []
    for step in np.linspace(0.1, 3.0, 5):
        one = alone(system, {}, {"q": {**hold, "leg2.1": float(start["leg2.1"]) + step}, "guess": start})
        found.append(one if isinstance(one, str) else one.branch_changed)
    values = {**hold, "leg2.1": float(start["leg2.1"]) + np.linspace(0.1, 3.0, 5)}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        state = system.assemble(q=values, guess=start)
    lost = {f.index[0]: f.reason for f in state.failures}
    assert [lost.get(i, bool(x)) for i, x in enumerate(state.branch_changed)] == found
    assert sum(w.category is BranchWarning for w in told) == any(x is True for x in found)
    assert sum(w.category is AssemblyWarning for w in told) == bool(lost)


@pytest.mark.filterwarnings("ignore::bellcrank.errors.AssemblyWarning", "ignore::bellcrank.errors.DrawingWarning")
@pytest.mark.parametrize("offsets", [[0.0, 4e-8, 1e-3], [4e-8, 0.0, 1e-3]])
def test_drawings_that_contradict_themselves(offsets: list[float]) -> None:
    """Bearings out of the plane of a parallelogram: within the tolerance, or beyond it, whatever the first one is."""
    m = bc.Mechanism("rounded", gravity=(0.0, -9.81, 0.0))
    out = m.parameter("out", 0.0)
    for name in ("left", "right", "coupler"):
        m.add_body(name, bc.Inertia(1.0, (0.0, 0.0, 0.0), np.eye(3) * 0.01))
    m.add_joint("A", bc.Revolute("z"), m.ground, "left")
    m.add_joint("B", bc.Revolute("z"), m.ground, "right", bc.Pose((1.0, 0.0, out)))
    m.add_joint("C", bc.Revolute("z"), "left", "coupler", bc.Pose((0.0, 0.5, 0.0)))
    m.add_joint("D", bc.Revolute("z"), "right", "coupler", bc.Pose((0.0, 0.5, 0.0)), bc.Pose((1.0, 0.0, 0.0)))
    system = bc.compile(m)
    state = system.with_parameters(out=np.array(offsets)).assemble(q={"A": 0.4})
    assert [f.index for f in state.failures] == [(2,)] and "contradict" in state.failures[0].reason
    for i, offset in enumerate(offsets[:2]):
        one = system.with_parameters(out=offset).assemble(q={"A": 0.4})
        assert np.abs(one.q - state.q[i]).max() < 1e-12 and state.drawing_error[i] == one.drawing_error
    with pytest.raises(bc.AssemblyError, match="contradict"):
        system.with_parameters(out=1e-3).assemble(q={"A": 0.4})


def test_mechanisms_without_loops() -> None:
    m = bc.Mechanism("arm")
    m.add_body("upper", bc.Inertia(1.0, (0.2, 0.0, 0.0), np.eye(3) * 0.01))
    m.add_body("lower", bc.Inertia(1.0, (0.2, 0.0, 0.0), np.eye(3) * 0.01))
    rate = m.parameter("rate", 1.0)
    m.add_joint("A", bc.Revolute("z"), m.ground, "upper")
    m.add_joint("B", bc.Revolute("z"), "upper", "lower", bc.Pose((m.parameter("length", 0.4), 0.0, 0.0)))
    m.prescribe("B", lambda t: 0.3 + rate * t)
    many = bc.compile(m).with_parameters(rate=np.array([1.0, 2.0, 3.0]))
    state = many.assemble(q={"A": np.array([0.1, 0.2, 0.3])}, t=0.5)
    assert np.allclose(state.q, [[0.1, 0.8], [0.2, 1.3], [0.3, 1.8]]) and state.u.tolist() == [[0, 1], [0, 2], [0, 3]]
    assert bc.compile(m).with_parameters(length=np.ones((2, 3))).assemble(q={"A": 0.1}).shape == (2, 3)


POINTS = {"front": (0.20, 0.35, 0.20), "rear": (-0.16, 0.36, 0.21), "ball": (0.01, 0.72, 0.19),
          "top": (-0.02, 0.60, 0.75), "foot": (0.0, 0.64, 0.40), "inner": (-0.14, 0.33, 0.26),
          "outer": (-0.13, 0.68, 0.27)}


def mcpherson() -> bc.Mechanism:
    """A strut suspension by its hardpoints, all of which are parameters."""
    m = bc.Mechanism("strut", gravity=(0.0, 0.0, -9.81))
    p = {k: np.array([m.parameter(f"{k}_{c}", x) for c, x in zip("xyz", place, strict=True)])
         for k, place in POINTS.items()}
    for name, mass, place in (("arm", 4.0, (0.0, 0.5, 0.2)), ("knuckle", 30.0, (0.0, 0.74, 0.3)),
                              ("strut", 3.0, (0.0, 0.6, 0.6)), ("rack", 2.5, (-0.1, 0.0, 0.3)),
                              ("tie", 0.7, (-0.1, 0.5, 0.3))):
        m.add_body(name, bc.Inertia(mass, place, np.diag([0.05, 0.04, 0.09])))
    m.add_joint("arm", bc.Revolute(p["front"] - p["rear"]), m.ground, "arm", at=p["front"])
    m.add_joint("ball", bc.Spherical(), "arm", "knuckle", at=p["ball"])
    m.add_joint("top", bc.Spherical(), m.ground, "strut", at=p["top"])
    m.add_joint("slide", bc.Prismatic(p["top"] - p["foot"]), "strut", "knuckle", at=p["foot"])
    m.add_joint("rack", bc.Prismatic("y"), m.ground, "rack", at=p["inner"])
    m.add_joint("tie", bc.Universal("x", "z"), "rack", "tie", at=p["inner"])
    m.add_joint("tie_ball", bc.Spherical(), "tie", "knuckle", at=p["outer"])
    return m


def test_hardpoints_of_a_suspension(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred drawings at once: what is near a guess takes compiled steps alone."""
    system, n = bc.compile(mcpherson()), 100
    start = system.assemble(q={"arm": 0.0, "rack": 0.0})
    rng = np.random.default_rng(1)
    drawn = {k: x + rng.normal(size=n) * 2e-3 for k, x in system.model.values.items()}
    many = system.with_parameters(**drawn)
    samples = [{k: float(v[i]) for k, v in drawn.items()} for i in range(0, n, 25)]
    expected = [alone(system, own, {"q": {"arm": 0.1, "rack": 0.005}, "u": {"arm": 1.0}, "guess": start})
                for own in samples]
    monkeypatch.setattr(assembly, "_from_closed", None)
    monkeypatch.setattr(assembly, "_nearest_closed", None)
    state = many.assemble(q={"arm": 0.1, "rack": 0.005}, u={"arm": 1.0}, guess=start)
    assert np.abs(many.loop_error(state)).max() < 1e-14 and not state.failures
    for i, one in enumerate(expected):
        assert isinstance(one, bc.State) and np.abs(state.q[25 * i] - one.q).max() < 1e-13
        assert np.abs(state.u[25 * i] - one.u).max() < 1e-11
    travel = np.linspace(-0.2, 0.2, 21)
    curves = system.with_parameters(**{k: v[:9, None] for k, v in drawn.items()}).assemble(
        q={"arm": travel, "rack": 0.0}, guess=start)
    assert curves.shape == (9, 21) and not curves.branch_changed.any() and not curves.failures
