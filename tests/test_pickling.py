"""Copies and other processes: mechanisms, systems, states and results are pickled and copied, and compute the same."""

from __future__ import annotations

import copy
import importlib
import pickle
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import children
from bellcrank import math as bm
from bellcrank.io.native.same import difference
from bellcrank.mechanism.fingerprint import fingerprint
from bellcrank.scalar.graph import Graph, digest
from everything import everything

PROTOCOLS = [2, 3, 4, 5]
WAYS: Mapping[str, Callable[[Any], Any]] = {
    **{f"protocol {p}": lambda x, p=p: pickle.loads(pickle.dumps(x, p)) for p in PROTOCOLS}, "deepcopy": copy.deepcopy}


def lift(t: Any) -> Any:
    return 0.1 * bm.sin(2.0 * t)


def both(t: Any) -> Any:
    return 0.1 * t, bm.cos(t)


def push(x: Any, rate: Any) -> Any:
    return -3.0 * x**3 - 0.1 * rate


def ratio(x: Any) -> Any:
    return 0.2 * bm.sin(x) + x


def machine() -> bc.Mechanism:
    """A tree with parameters in all kinds of numbers, and laws that other processes can import."""
    m = bc.Mechanism("with parameters")
    mass, length = m.parameter("mass", 2.0), m.parameter("length", 0.4)
    m.gravity = (0.1 * mass, 0.0, -9.81)
    first = m.add_body("first", bc.Inertia.rod(mass, (0, 0, 0), (length, 0, 0)))
    second = m.add_body("second", bc.Inertia.rod(mass / 2, (0, 0, 0), (length, 0, 0)))
    third = m.add_body("third", bc.Inertia.box(1.0, (0.1, 0.2, 0.3)))
    nut = m.add_body("nut", bc.Inertia.sphere(mass, 0.1))
    m.add_joint("A", bc.Revolute("y"), m.ground, first)
    m.add_joint("B", bc.Revolute("y"), first, second, bc.Pose((length, 0, 0)))
    m.add_joint("C", bc.Universal("x", "y"), second, third, bc.Pose((length, 0, 0)))
    m.add_joint("D", bc.Screw("z", 0.1 * length), m.ground, nut)
    m.prescribe("C", both)
    m.add_joint_spring("spring", "A", stiffness=3.0 * mass, rest=length)
    m.add_joint_force("law", "B", push)
    m.add_wrench("wind", third, force=(lift, mass, 0.0))
    return m


def answers(system: bc.System, t: float = 0.3) -> list[np.ndarray]:
    q, u = system.random_state(np.random.default_rng(1))
    tau = np.linspace(-1.0, 1.0, system.nu)
    place = system.pose(q, system.body_names[-1], t=t)
    return [system.forward_dynamics(q, u, tau, t=t), system.mass_matrix(q, t=t),
            place.rotation, place.position, system.energy(q, u, t=t)]


def same(got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


# -- graphs -----------------------------------------------------------------------------------
@pytest.mark.parametrize("way", WAYS)
def test_traced_scalars(way: str) -> None:
    graph = Graph()
    x, y = graph.leaf(("parameter", "x")), graph.leaf(("parameter", "y"))
    roots = [bm.sin(x * y - 2.0) / bm.sqrt(x + 1.0), -x, bm.select_less(x, 0.0, -x, bm.atan2(y, x)), 3.0]
    again = WAYS[way](roots)
    assert digest(again) == digest(roots)
    new = again[0].graph
    assert new is not graph and new is again[2].graph
    assert new.leaf(("parameter", "x")) is again[1].args[0]  # the table knows its nodes: nothing is made twice
    assert len(new.nodes) == len(graph.nodes)
    assert -again[1] is again[1].args[0]


def test_long_chains_of_scalars() -> None:
    x = total = Graph().leaf("x")
    for _ in range(20_000):
        total = bm.sin(total)
    assert len(pickle.loads(pickle.dumps((total, x)))[0].graph.nodes) == 20_001
    assert copy.deepcopy(total).index == 20_000


# -- mechanisms -------------------------------------------------------------------------------
@pytest.mark.parametrize("way", WAYS)
def test_a_mechanism_with_parameters_and_laws(way: str) -> None:
    m = machine()
    again = WAYS[way](m)
    assert difference(m, again) is None and fingerprint(m) == fingerprint(again)
    for backend in ("llvm", "numpy"):
        system, other = (bc.compile(x, backend=backend) for x in (m, again))
        same(answers(other), answers(system))
        same(answers(other.with_parameters(mass=3.0)), answers(system.with_parameters(mass=3.0)))
    # and it can be continued, with parameters of its own
    body = again.add_body("more", bc.Inertia.point(again.parameter("new", 1.0), (0, 0, 1)))
    again.add_joint("E", bc.Revolute("x"), again.body("nut"), body)
    assert bc.compile(again).nu == system.nu + 1
    assert "new" not in m.parameters and len(m.bodies) == 4
    with pytest.raises(bc.ModelError, match="parameter of another mechanism"):
        m.add_body("foreign", bc.Inertia.point(again.parameter("foreign", 1.0)))


@pytest.mark.parametrize("way", WAYS)
def test_one_of_everything(way: str, tmp_path: Path) -> None:
    """Laws from files are formulas, which other processes can use."""
    bc.save(everything(), tmp_path / "everything.yaml")
    m = bc.load(tmp_path / "everything.yaml")
    assert difference(m, WAYS[way](m)) is None


@pytest.mark.parametrize("name", ["four_bar", "stewart", "gyroscope", "quarter_car"])
def test_built_in_machines(name: str) -> None:
    m = bc.load(name)
    assert difference(m, pickle.loads(pickle.dumps(m))) is None


def test_a_shallow_copy_is_independent_and_shares_parameters() -> None:
    m = machine()
    other = copy.copy(m)
    other.add_body("more")
    assert len(m.bodies) == 4 and len(other.bodies) == 5
    other.gravity = m.gravity  # the same parameters


def _with(change: Callable[[bc.Mechanism], object]) -> bc.Mechanism:
    m = bc.Mechanism("lambdas")
    m.add_body("arm", bc.Inertia.sphere(1.0, 0.1))
    m.add_body("cart", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("hinge", bc.Revolute("x"), m.ground, "arm")
    m.add_joint("rail", bc.Prismatic("x"), m.ground, "cart")
    change(m)
    return m


LAMBDAS: Mapping[str, Callable[[bc.Mechanism], object]] = {
    "joint 'hinge'": lambda m: m.prescribe("hinge", lambda t: 2.0 * t),
    "joint force 'law'": lambda m: m.add_joint_force("law", "hinge", lambda x, rate: -x),
    "joint sum 'sum'": lambda m: m.add_joint_force("sum", {"hinge": 1.0, "rail": 2.0}, lambda x, rate: -x),
    "coupler 'cam'": lambda m: m.add_coupler("cam", {"hinge": lambda a: bm.sin(a), "rail": 1.0}),
    "spring 'string'": lambda m: m.add_spring("string", "arm", "cart", (0, 0, 1), (0, 0, 0), law=lambda x, rate: x),
    "wrench 'wind'": lambda m: m.add_wrench("wind", "arm", force=(lambda t: t, 0, 0)),
    "drag 'air'": lambda m: m.add_drag("air", "arm", coefficient=1.0, wind=(lambda t: t, 0, 0)),
}


@pytest.mark.parametrize("part", LAMBDAS)
def test_functions_without_a_name_are_named_by_their_part(part: str, tmp_path: Path) -> None:
    m = _with(LAMBDAS[part])
    for thing in (m, bc.compile(m, method="recursive") if "coupler" not in part else bc.compile(m)):
        with pytest.raises(bc.ModelError, match=rf"'lambdas' cannot be pickled because of {part}: .*lambda.*top level "
                           "of a module.*bellcrank.save"):
            pickle.dumps(thing)
    again = copy.deepcopy(m)  # in one process there is nothing against it
    assert difference(m, again) is None
    same(answers(copy.deepcopy(bc.compile(again))), answers(bc.compile(m)))
    # the advice helps
    bc.save(m, tmp_path / "m.yaml")
    assert difference(m, pickle.loads(pickle.dumps(bc.load(tmp_path / "m.yaml")))) is None


def test_joints_of_ones_own_that_cannot_be_imported() -> None:
    class Local(bc.Revolute):
        pass

    m = bc.Mechanism("own")
    m.add_body("b", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("mine", Local("x"), m.ground, "b")
    with pytest.raises(bc.ModelError, match="joint 'mine'.*Local"):
        pickle.dumps(m)


def test_picklers_that_take_functions_along_are_let_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """joblib, Dask and Ray use cloudpickle, some under a name of their own; this one does the least of it."""
    text = """
        import io, marshal, pickle, types

        def rebuilt(code, module):
            import importlib
            return types.FunctionType(marshal.loads(code), vars(importlib.import_module(module)))

        class Pickler(pickle.Pickler):
            def reducer_override(self, value):
                if isinstance(value, types.FunctionType) and "<lambda>" in value.__qualname__:
                    return rebuilt, (marshal.dumps(value.__code__), value.__module__)
                return NotImplemented

        def dumps(value):
            file = io.BytesIO()
            Pickler(file).dump(value)
            return file.getvalue()
    """
    (tmp_path / "somebody").mkdir()
    (tmp_path / "somebody" / "cloudpickle.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    fake = importlib.import_module("somebody.cloudpickle")
    for part in ("joint 'hinge'", "coupler 'cam'"):
        m = _with(LAMBDAS[part])
        assert difference(m, pickle.loads(fake.dumps(m))) is None
        same(answers(pickle.loads(fake.dumps(bc.compile(m)))), answers(bc.compile(m)))
    with pytest.raises(bc.ModelError, match="joint 'hinge'"):  # the usual one refuses still
        pickle.dumps(_with(LAMBDAS["joint 'hinge'"]))


# -- systems ----------------------------------------------------------------------------------
def _cars(**options: Any) -> bc.System:
    return bc.compile(bc.load("quarter_car"), **options)


SYSTEMS: Mapping[str, Callable[[], bc.System]] = {
    "plain": lambda: bc.compile(machine()),
    "numpy": lambda: bc.compile(machine(), backend="numpy"),
    "rolled": lambda: bc.compile(machine(), schedule="rolled", threads=1),
    "another method": lambda: bc.compile(machine(), method="recursive", point="joint", free_frames=False),
    "parameters": lambda: bc.compile(machine()).with_parameters(mass=3.0, length=np.array([0.2, 0.3])),
    "locked": lambda: bc.compile(machine()).lock("B", "A"),
    "massless": lambda: bc.compile(machine(), lock="massless"),
    "loop": lambda: bc.compile(bc.load("four_bar"), actuated=["A"]),
    "loop with wishes": lambda: bc.compile(bc.load("four_bar"), method="kane", cut=["B"], independent=["D"],
                                           baumgarte=(5.0, 5.0)),
    "released": lambda: (lambda s: s.release(*s.loops))(bc.compile(bc.load("four_bar"))),
    "released and locked": lambda: (lambda s: s.release(*s.loops).lock("B"))(bc.compile(bc.load("four_bar"))),
    "locked loop": lambda: bc.compile(bc.load("five_bar")).lock(bc.load("five_bar").joints[0].name),
    "springs": _cars,
}


@pytest.mark.everyday(6)
@pytest.mark.parametrize("kind", SYSTEMS)
def test_systems_compute_the_same(kind: str) -> None:
    system = SYSTEMS[kind]()

    def found(s: bc.System) -> list[Any]:
        looped = s.model.tree.looped and not s.model.batched
        q, u = s.assemble() if looped else s.random_state(np.random.default_rng(1))
        udot = s.forward_dynamics(q, u, t=0.3)
        more = [*s.reactions(q, u).values()]
        if "locked" not in kind:
            more.append(s.inverse_dynamics(q, u, udot, t=0.3))
        if not s.model.batched:
            result = s.simulate((q, u), 0.01)
            more += [result.q.values, result.u.values]
        return [udot, s.mass_matrix(q, t=0.3), *more]

    wanted = found(system)
    for way in ("protocol 2", "protocol 5", "deepcopy"):
        again = WAYS[way](system)
        same(found(again), wanted)
        assert type(again) is bc.System and repr(again) == repr(system) and again.model.method == system.model.method
        assert again.model == system.model and hash(again.model) == hash(system.model)
        assert (again.model.released, again.model.locked) == (system.model.released, system.model.locked)
        assert again.model.options == system.model.options
        assert again.coordinate_names == system.coordinate_names and again.dof == system.dof
        assert again.kernels.maker == system.kernels.maker and again.model.mechanism is not system.model.mechanism
        for name, value in system.parameters.items():
            np.testing.assert_array_equal(again.parameters[name], value)
    shallow = copy.copy(system)
    assert shallow is not system and shallow.model.mechanism is system.model.mechanism
    same(found(shallow), wanted)


def test_copies_print_nothing() -> None:
    """Copies of loaded code made LLVM's bindings complain when they went."""
    text = """if True:
        import copy, gc, pickle, bellcrank as bc
        for name in ("pendulum", "four_bar"):
            s = bc.compile(bc.load(name))
            q = s.assemble().q if s.loops else [0.5]
            s.forward_dynamics(q, [0.0] * s.nu)
            for again in (copy.deepcopy(s), copy.copy(s), pickle.loads(pickle.dumps(s))):
                again.forward_dynamics(q, [0.0] * s.nu)
            del s, again
            gc.collect()
    """
    done = children.run_code(text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# -- states and results -----------------------------------------------------------------------
@pytest.mark.parametrize("way", WAYS)
def test_states_and_results(way: str, tmp_path: Path) -> None:
    system = bc.compile(machine())
    state = system.random_state(np.random.default_rng(0)).replace(t=0.25)
    again = WAYS[way](state)
    assert type(again) is bc.State and again.t == 0.25
    same([again.q, again.u], [state.q, state.u])
    results = [system.simulate(state, 0.01), system.simulate(state, 0.01, file=tmp_path / "run.nc")]
    for result in results:
        other = WAYS[way](result)
        assert type(other) is bc.Result and other.identical(result)
        np.testing.assert_equal(other.attrs, result.attrs)  # NaN is NaN
        assert other.system is not None
        np.testing.assert_array_equal(other.reactions("A"), result.reactions("A"))
        other.close()
        result.close()


def test_results_of_machines_that_cannot_be_pickled() -> None:
    system = bc.compile(_with(LAMBDAS["joint force 'law'"]))
    result = system.simulate(([0.1, 0.2], [0.0, 0.0]), 0.01)
    again = pickle.loads(pickle.dumps(result))
    assert again.system is None and again.identical(result)
    np.testing.assert_array_equal(again.attach(system).reactions("hinge"), result.reactions("hinge"))
    assert copy.deepcopy(result).system is system


SPAWN = """
    import multiprocessing, sys
    from concurrent.futures import ProcessPoolExecutor
    import numpy as np
    import bellcrank as bc

    def law(x, rate):
        return -2.0 * x**3 - 0.1 * rate

    def run(system, speed):
        state = system.assemble(u={"A": speed})
        return system.simulate(state, 0.05)

    def load(mechanism, speed):
        return run(bc.compile(mechanism, actuated=["A"]).with_parameters(k=3.0), speed)

    if __name__ == "__main__":
        m = bc.load("four_bar")
        m.add_joint_force("law", "B", law)
        m.add_joint_spring("spring", "A", stiffness=m.parameter("k", 2.0))
        system = bc.compile(m, actuated=["A"]).with_parameters(k=3.0)
        speeds = [1.0, 2.0, 3.0]
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            jobs = [pool.submit(run, system, x) for x in speeds] + [pool.submit(load, m, speeds[0])]
            found = [job.result(timeout=100) for job in jobs]
        for speed, result in zip([*speeds, speeds[0]], found, strict=True):
            wanted = run(system, speed)
            assert np.array_equal(result.q, wanted.q) and np.array_equal(result.u, wanted.u)
            assert result.attrs["mechanism_hash"] == wanted.attrs["mechanism_hash"]
            result.attach(system)
        print("done")
"""


def test_processes_that_are_started_anew(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(SPAWN))
    done = children.run([sys.executable, str(program)])
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("way", WAYS)
def test_what_was_released_can_be_attached_again(way: str) -> None:
    m = bc.Mechanism("landing")
    lander = m.add_body("lander", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("z", bc.Prismatic("z"), m.ground, lander)
    m.add_constraint("floor", bc.PointOnPlane("z"), m.ground, lander)
    land = bc.Event(lambda t, q, u: q["z"], "land", direction=-1, action=bc.attach("floor"))
    open_system = bc.compile(m).release("floor")
    expected, found = (s.simulate(([0.5], [0.0]), 1.0, events=[land]) for s in (open_system, WAYS[way](open_system)))
    assert expected.attrs["status"] == "finished" and abs(float(expected.q[-1, 0])) < 1e-9
    assert np.array_equal(found.q, expected.q)
