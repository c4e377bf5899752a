"""Adaptive methods where every state is a thread of its own: many states in one call, each with its own steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.simulate.machine import Code, packed
from bellcrank.simulate.steppers import Integrator, adaptive_parts

__all__ = ["LaneStepper", "LanesReached"]

Ints = npt.NDArray[np.int64]


class LanesReached(NamedTuple):
    """What states have done in one call."""

    t: Floats
    h: Floats  #: the next step
    samples: Floats  #: (samples, states, size)
    sampled: Ints  #: samples that are known
    steps: Ints
    rejected: Ints
    status: Ints  #: 0: all well, 1: not finite, 2: steps became too short, 3: samples need a closer look
    worse: Ints  #: 1 where the last attempt was rejected


class LaneStepper:
    """Runs an adaptive method on many states, which lie on the device, in blocks of lanes."""

    def __init__(self, code: Code, kind: Integrator, rtol: float, atol: float, reach: Floats) -> None:
        self.code = code
        device = code.backend.foreign()
        assert device is not None
        self.device = device
        self._run, self.memory = adaptive_parts(code, kind, rtol, atol, reach)
        self.memory.set(traced=0)

    def placed(self, y: Floats) -> Any:
        """States (states, size) as blocks on the device."""
        return self.device.upload(packed(y, self.code.width))

    def given(self, inputs: Mapping[str, Floats], count: int) -> Any:
        """Inputs (states or 1, entries) as blocks on the device."""
        code = self.code
        whole = np.zeros((count, code.sizes["inputs"]))
        for name, rows in inputs.items():
            whole[:, code.inputs[name]:code.inputs[name] + rows.shape[1]] = rows
        return self.device.upload(packed(whole, code.width))

    def rows(self, blocks: Any, count: int) -> Floats:
        """States in blocks as an array of this process, (states, size)."""
        return self.device.to_numpy(blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])[:count])

    def run(self, states: Any, given: Any, t: Floats, h: Floats, end: float, times: Floats, sampled: Ints, worse: Ints,
            limit: int, shrink: bool, pause: bool) -> LanesReached:
        """Go on from states at times t, which change where they lie, to `end`, at most `limit` steps, sampling at the
        `times` from the one that each state has come to; `worse`: as the last call has left it; `pause`: until all
        samples are known."""
        code, m, n, blocks = self.code, self.memory, len(t), len(states)
        width, count = code.width, len(times)
        out = self.device.empty((blocks, max(count, 1), code.size, width), np.float64)
        left_open = self.device.empty((blocks, max(count, 1), width), np.float64)
        arrays = {"all_y": states, "all_inputs": given, "out": out, "open": left_open,
                  "times": np.append(times, np.inf)}
        each: dict[str, npt.NDArray[Any]] = {name: np.zeros(blocks * width, dtype=np.int32 if name in
                                                            m.layout.integers else np.float64)
                                             for name in m.layout.returned}
        for name, values in (("time", t), ("step", h), ("sampled", sampled), ("worse", worse)):
            each[name][:n], each[name][n:] = values, values[-1]
        for name, value in (("stale", 1), ("before", 1.0)):  # of methods that keep a Jacobian: begun anew
            if name in each:
                each[name][:] = value
        for name, array in (arrays | each).items():
            m.address(name, array)
        m.set(blocks=blocks, limit=limit, samples=count, shrink=int(shrink), pause=int(pause))
        m.set_real(end=end, smallest=1e-14 * max(abs(float(np.abs(t).max())), abs(end), 1e-3))
        self._run(m)
        rows = np.empty((0, n, code.size))
        if count:
            rows = self.device.to_numpy(out.transpose(1, 0, 3, 2).reshape(count, -1, code.size)[:, :n])
        return LanesReached(each["time"][:n], each["step"][:n], rows, each["sampled"][:n].astype(np.int64),
                            *(each[k][:n].astype(np.int64) for k in ("steps", "rejected", "status", "worse")))
