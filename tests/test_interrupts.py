"""Ctrl-C while other libraries' integrators are at work."""

from __future__ import annotations

import pytest

import children

pytestmark = pytest.mark.usefixtures("signals_ignored")


def run(code: str) -> list[str]:
    """What a program prints that must be done long before its run would be."""
    done = children.run_code(code)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.everyday(2)
@pytest.mark.parametrize("stepper", ("scipy/DOP853", "scipy/LSODA", "scipy/Radau", "sundials/Adams"))
def test_a_key_pressed_between_distant_samples(stepper: str) -> None:
    """Samples are a hundred seconds apart: the run must not wait for the next hundred of them."""
    if stepper.startswith("sundials"):
        pytest.importorskip("sksundae")
    status, samples, last, loops = run(f"""
        import os, signal, threading, warnings
        import bellcrank as bc
        warnings.simplefilter("ignore")
        s = bc.compile(bc.load("four_bar"))
        start = s.assemble(q={{"A": 0.5}})
        s.simulate(start, 0.1, stepper={stepper!r})
        threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        r = s.simulate(start, 1e5, stepper={stepper!r}, output=[1e-3, 1e5])
        print(r.attrs["status"], len(r.time), float(r.time[-1]), float(r.loop_error.max()))
    """)
    assert status == "interrupted" and float(loops) < 1e-9
    # our own loop around SciPy's steps knows the last of them; SUNDIALS is asked for samples only
    if stepper.startswith("scipy"):
        assert int(samples) == 3 and float(last) > 1e-3
    else:
        assert int(samples) == 2 and float(last) == 1e-3


def test_a_batch_keeps_the_samples_that_all_states_have() -> None:
    """States come one after another: a stretch that only some of them have done is left out."""
    status, shape, whole = run("""
        import os, signal, threading, warnings
        import numpy as np
        import bellcrank as bc
        warnings.simplefilter("ignore")
        s = bc.compile(bc.load("double_pendulum"))
        q, u = np.array([[1.0, 0.5], [0.3, 0.1], [0.2, 0.1]]), np.zeros((3, 2))
        s.simulate((q, u), 0.1, stepper="scipy/RK45")
        threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        r = s.simulate((q, u), 1e5, stepper="scipy/RK45", output=1.0)
        print(r.attrs["status"], r.q.shape[1], bool(np.isfinite(r.q.values).all()))
    """)
    assert (status, shape, whole) == ("interrupted", "3", "True")


def test_a_key_pressed_while_an_event_is_watched() -> None:
    status, last = run("""
        import os, signal, threading, warnings
        import bellcrank as bc
        warnings.simplefilter("ignore")
        s = bc.compile(bc.load("pendulum"))
        never = bc.Event(lambda t, q, u: q[0] - 50.0, "never")
        s.simulate(([1.0], [0.0]), 0.1, stepper="scipy/DOP853", events=[never])
        threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        r = s.simulate(([1.0], [0.0]), 1e5, stepper="scipy/DOP853", events=[never], output=1e5)
        print(r.attrs["status"], float(r.time[-1]))
    """)
    assert status == "interrupted" and float(last) > 0.0
