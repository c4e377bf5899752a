"""What steps close of the loops: positions, velocities, nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc

LEVELS = ("position", "velocity", "none")


def run(method: str = "elimination", backend: str = "llvm", seconds: float = 2.0, baumgarte: Any = (0.0, 0.0),
        **options: Any) -> Any:
    system = bc.compile(bc.load("four_bar"), method, backend, baumgarte=baumgarte)
    start = system.assemble(q={"A": 0.5}, u={"A": 8.0})
    return system.simulate(start, seconds, **{"step": 0.01, "output": 0.1, **options})


def drift(result: Any) -> float:
    return float(result.attrs["largest_loop_error"])


@pytest.mark.parametrize("method", ["elimination", "kane", "reduction", "operator", "dense"])
def test_drift_of_each(method: str) -> None:
    """Anderson & Critchley, Figs 5 and 6: velocities held, positions drift with the order of the method only."""
    runs = [run(method, seconds=0.4 if method == "dense" else 2.0, closing=closing) for closing in LEVELS]
    found = [drift(result) for result in runs]
    assert found[0] < 1e-13 and 1e-9 < found[1] < 5e-6 and found[2] > 5.0 * found[1]
    assert [float(result.loop_rate_error.max()) < 1e-11 for result in runs] == [True, True, False]


def test_complement_refuses_open_loops() -> None:
    assert drift(run("complement", closing="velocity")) < 5e-6
    with pytest.raises(bc.ModelError, match="'complement' takes its loops for closed.*closing='velocity'"):
        run("complement", closing="none")


@pytest.mark.parametrize("closing", LEVELS)
@pytest.mark.parametrize("stepper", ["rk4", "semi_implicit", "gauss"])
@pytest.mark.filterwarnings("ignore:.*energy changed")
def test_compiled_steps_are_those_of_numpy(stepper: str, closing: str) -> None:
    compiled, plain = (run(backend=backend, seconds=0.05, output=0.01, stepper=stepper, closing=closing)
                       for backend in ("llvm", "numpy"))
    assert np.abs(compiled.q - plain.q).max() < 1e-8 and np.abs(compiled.u - plain.u).max() < 1e-6


@pytest.mark.parametrize("stepper", ["dop853", "scipy/DOP853"])
def test_adaptive_steps(stepper: str) -> None:
    runs = [run(seconds=1.0, step=None, stepper=stepper, closing=closing) for closing in LEVELS]
    for other in runs[1:]:
        assert np.abs(other.q - runs[0].q).max() < 1e-6 and drift(other) < 1e-7
    assert drift(runs[0]) < 1e-13 < drift(runs[1])


def test_batches_and_lanes() -> None:
    system = bc.compile(bc.load("four_bar"))
    start = system.assemble(q={"A": 0.5}, u={"A": 8.0})
    many = system.simulate((np.tile(start.q, (20, 1)), np.tile(start.u, (20, 1))), 0.5, step=0.01, closing="velocity")
    one = system.simulate(start, 0.5, step=0.01, closing="velocity")
    assert np.abs(many.q.values - one.q.values[:, None]).max() < 1e-11


def test_baumgarte_holds_what_is_not_closed() -> None:
    loose, held = drift(run(closing="none")), drift(run(closing="none", baumgarte=(20.0, 20.0)))
    assert held < 0.2 * loose


@pytest.mark.filterwarnings("ignore:.*energy changed")
def test_momenta_with_and_without_impulses() -> None:
    """Impulses of the loops that are carried along cost accuracy."""
    reset, carried = (drift(run("momenta", seconds=10.0, closing=closing)) for closing in ("velocity", "none"))
    assert reset < 2e-5 and carried > 10.0 * reset
    assert float(run("momenta", closing="none").loop_rate_error.max()) < 1e-12


def test_controllers_stops_and_records() -> None:
    result = run(control=bc.Traced(lambda t, q, u: {"A": -0.1 * u["A"]}), closing="velocity")
    assert result.attrs["status"] == "finished" and "velocity" in str(result.attrs["settings"])
    with pytest.raises(bc.ModelError, match="closing is one of 'position', 'velocity', 'none', got 'speed'"):
        run(closing="speed")


def test_reduction_changes_its_plan_before_pivots_are_small() -> None:
    """A five-bar whips round near 0.22 s: speeds from pivots that had shrunk a hundredfold diverged there."""
    system = bc.compile(bc.load("redundant_five_bar"), "reduction")
    with pytest.warns(bc.SimulationWarning, match="energy changed"):  # steps are too long for a whip
        result = system.simulate(system.assemble(), 0.24, step=5e-4, closing="velocity")
    assert result.attrs["status"] == "finished" and drift(result) < 1e-5 and result.attrs["switches"] > 2


@pytest.mark.parametrize("method", ["elimination", "kane", "reduction"])
def test_the_gap_of_an_open_loop_keeps_its_length(method: str) -> None:
    """In the axes of the body that both sides of a loop hang on: if that turns, rates of an open loop seen from the
    ground are its angular velocity times the gap."""
    system = bc.compile(bc.load("delta"), method, "numpy")
    rng = np.random.default_rng(0)
    start = system.assemble()
    q, u = start.q + 1e-4 * rng.normal(size=system.nq), rng.normal(size=system.nu)
    change = system.kernels.run("speed_changes", {"q": q, "u": u}, None, 0.0,
                                system.kernels.planned(system.plans.at(start.q, 0.0)))
    gap, rate = system.loop_error(q).reshape(-1, 3), system.loop_rate_error(q, u + change).reshape(-1, 3)
    assert np.abs((gap * rate).sum(axis=1)).max() < 1e-15 < np.abs(gap).max() ** 2
    assert np.abs(rate[1:]).max() < 1e-12
