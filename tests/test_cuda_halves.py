"""Two threads a state, for machines of two halves that are alike: results are those of the CPU (see `test_cuda`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.lowering.alike import alike_links
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.functions import cos, sin
from bellcrank.scalar.graph import LEAF, Graph
from bellcrank.target.cuda import cuda_runtime, parking_ways
from bellcrank.target.cuda.device_kernel import DeviceKernel
from bellcrank.target.cuda.half_code import half_program
from bellcrank.target.kernel_source import GraphKernel, Halves
from host_device import COMPILER, HostDevice

with_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
STATES = 40  # more than a warp, and not a multiple of one


def biped(longer: float = 0.02) -> bc.Mechanism:
    """A body that turns, with two legs of four bars each; the left one is turned and longer."""
    m = bc.Mechanism("biped", gravity=(0, -9.81, 0))
    m.add_body("body", bc.Inertia.box(4.0, (0.4, 0.2, 0.3)))
    m.add_joint("turn", bc.Revolute("z"), m.ground, "body")
    for side, x, more in (("right", 0.2, 0.0), ("left", -0.2, longer)):
        thigh, shin, rod = (m.add_body(f"{side} {name}", bc.Inertia.rod(mass, (0, 0, 0), (0, -length - more, 0)))
                            for name, mass, length in (("thigh", 1.0, 0.3), ("shin", 0.7, 0.3), ("rod", 0.4, 0.3)))
        m.add_joint(f"{side} hip", bc.Revolute("z"), "body", thigh, parent_pose=bc.Pose((x, -0.1, 0)))
        m.add_joint(f"{side} knee", bc.Revolute("z"), thigh, shin, parent_pose=bc.Pose((0, -0.3 - more, 0)))
        m.add_joint(f"{side} top", bc.Revolute("z"), "body", rod, parent_pose=bc.Pose((x + 0.1, -0.1, 0)))
        m.add_joint(f"{side} bottom", bc.Spherical(), rod, shin, parent_pose=bc.Pose((0, -0.3 - more, 0)),
                    child_pose=bc.Pose((0.1, 0.01 + more, 0)))
    return m


CUT = [f"{side} bottom" for side in ("right", "left")]


@pytest.fixture(scope="module")
def gpu() -> Iterator[HostDevice]:
    """Where code for GPUs runs in these tests; registers and shared memory are few."""
    made, before = HostDevice(), cuda_runtime.current
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("SPILLING", 10), ("LARGE", 20), ("LARGE_DRIVER", 20), ("WAYS", ((6, 20, 10, 1 << 30),))):
            patch.setattr(parking_ways, name, value)
        patch.setattr(cuda_runtime, "current", lambda: made)
        cuda_runtime.made.cache_clear()
        yield made
    assert cuda_runtime.current is before
    cuda_runtime.made.cache_clear()


def gap(a: Any, b: Any) -> float:
    return float(np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(np.asarray(b)).max())


@with_compiler
@pytest.mark.filterwarnings("ignore:.*energy:bellcrank.SimulationWarning")  # what floats lose
@pytest.mark.parametrize(("precision", "stepper"), [("double", "rk4"), ("single", "dopri5")])
def test_a_machine_with_two_legs(gpu: HostDevice, precision: str, stepper: str) -> None:
    m = biped()
    cpu, system = bc.compile(m, cut=CUT), bc.compile(m, cut=CUT, backend="cuda", precision=precision)
    rng = np.random.default_rng(0)
    start = cpu.assemble(q={"right hip": 0.4, "left hip": -0.3}, u={"right hip": 1.0, "left hip": -2.0, "turn": 0.5})
    q, u = np.repeat(start.q[None], STATES, 0), start.u * rng.uniform(0.2, 1.0, (STATES, 1))
    tau = rng.normal(size=u.shape)
    known, most = set(gpu.functions), 1e-11 if precision == "double" else 1e-4
    assert gap(system.forward_dynamics(q, u, tau), cpu.forward_dynamics(q, u, tau)) < most
    run: dict[str, Any] = {"duration": 0.02, "stepper": stepper, **({"step": 2e-3} if stepper == "rk4" else {})}
    mine, other = (s.simulate((q, u), tau=tau, **run) for s in (system, cpu))
    assert gap(mine.q, other.q) < 10 * most and gap(mine.u, other.u) < 100 * most
    texts = [f.text for text, f in gpu.functions.items() if text not in known]
    assert sum(t.split == 2 and "__shfl_sync" in t.text for t in texts) >= (2 if stepper == "rk4" else 1)


def test_a_thread_has_half_of_the_work(gpu: HostDevice) -> None:
    """What corresponds is found whatever the numbers: all but the body's own part is halved."""
    m = biped()
    system = bc.compile(m, cut=CUT, backend="cuda")
    run = system.kernels.planned(system.plans.reference().plan)
    source = run.kernel(system.kernels.functions["forward_dynamics"], False, 32).source
    made = half_program(source)
    assert made is not None and made.numbers
    assert sum(n.op != LEAF for n in made.nodes) < 0.58 * system.operation_count().total
    assert all(a != b and a == a for a, b in made.numbers)
    pairs = alike_links(run.tree)
    assert pairs is not None
    names = {frozenset((run.tree.joint_names[a], run.tree.joint_names[b])) for a, b in pairs.links}
    assert names == {frozenset((f"right {x}", f"left {x}")) for x in ("hip", "knee", "top")}
    assert len(pairs.closures) == 1
    assert alike_links(bc.compile(bc.load("four_bar")).model.tree) is None


@with_compiler
def test_halves_that_differ(gpu: HostDevice) -> None:
    """What has no partner is computed by both threads, from values of both."""
    graph = Graph()
    a, b, c, one, two = (graph.leaf(key) for key in (("x", 0), ("x", 1), ("x", 2), ("k", 0), ("k", 1)))
    left, right = sin(a * one) * c + a, sin(b * two) * c + b
    odd = right * b - cos(b)  # the second half has more to do
    total = left * left + odd * c
    outputs = [left * total, total, a, 2.5, odd, right * total, one * two * c, right, two, one]
    halves = Halves(outputs, {("x", 0): ("x", 1), ("k", 0): ("k", 1)}, {("k", 0): 2.0, ("k", 1): -3.0})
    whole, k = Graph(), {("k", 0): 2.0, ("k", 1): -3.0}
    folded = evaluate(outputs, lambda key: k[key] if key in k else whole.leaf(key))
    graphs = [GraphKernel(outputs, {"x": 3, "k": 2}), GraphKernel(folded, {"x": 3}, halves=lambda: halves)]
    assert half_program(graphs[1]) is not None and half_program(graphs[0]) is None
    x = np.random.default_rng(0).normal(size=(STATES, 3))
    out = [np.full((STATES, len(outputs)), np.nan) for _ in graphs]
    for kernel, inputs, to in zip([DeviceKernel(g, 32, gpu, "double", lambda: None) for g in graphs],  # type: ignore
                                  ([x, np.array([[2.0, -3.0]])], [x]), out, strict=True):
        assert kernel.run(inputs, np.array([3, 0][:len(inputs)]), to, 0, STATES)
    assert gap(out[1], out[0]) < 1e-14
