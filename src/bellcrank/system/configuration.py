"""Configuration space: names and places of coordinates, integration of speeds, differences, normalization."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, Forces, by_name, flat, how_many, leading
from bellcrank.errors import ModelError, StateError, hint
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.joints import Joint
from bellcrank.mechanism.machine_sizes import speed_sizes
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.system.state import State, StateNames

__all__ = ["Configuration"]


class Configuration:
    """The coordinates of a mechanism's joints, in the order the joints were added."""

    def __init__(self, mechanism: Mechanism, length: float = 1.0) -> None:
        self.length = length  #: typical of the machine [m]
        self._mechanism = mechanism
        #: all joints but the welds of carriers
        self.records = tuple(r for r in mechanism.joints if r.name not in {c.weld for c in mechanism.carriers})
        self.joint_names: tuple[str, ...] = tuple(r.name for r in self.records)
        self.nq: int = sum(r.joint.nq for r in self.records)
        self.nu: int = sum(r.joint.nu for r in self.records)

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the entries of q, such as ``hip.angle``."""
        return tuple(f"{r.name}.{c}" for r in self.records for c in r.joint.coordinate_names())

    @cached_property
    def speed_names(self) -> tuple[str, ...]:
        """Names of the entries of u, udot and tau."""
        return tuple(f"{r.name}.{c}" for r in self.records for c in r.joint.speed_names)

    @cached_property
    def state_names(self) -> StateNames:
        """What a `State` knows of them."""
        return StateNames(self.coordinate_names, self.speed_names)

    def state(self, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike = 0.0) -> State:
        """A state with these names, unchecked."""
        return State(q, u, t, names=self.state_names)

    @property
    def _simple(self) -> bool:
        return self.nq == self.nu

    @cached_property
    def usual(self) -> Floats:
        """An ordinary change of every speed's coordinate: 1 rad, the machine's typical length, little for
        deformations."""
        return self._sizes(self.length)

    def _sizes(self, length: float) -> Floats:
        each = [r.joint.body.usual_size() if isinstance(r.joint, Modal) else speed_sizes(r.joint, length)
                for r in self.records if r.joint.nu]
        return np.concatenate([np.zeros(0), *each])

    # -- places by name -------------------------------------------------------------------------
    @cached_property
    def starts(self) -> dict[str, tuple[int, int]]:
        """The first places of every joint in q and in u."""
        out, q, u = {}, 0, 0
        for r in self.records:
            out[r.name] = (q, u)
            q, u = q + r.joint.nq, u + r.joint.nu
        return out

    def split(self, key: str) -> tuple[str, str | None]:
        """A joint and perhaps one of its coordinates or speeds."""
        mechanism = self._mechanism
        names = {r.name for r in mechanism.joints}
        if key in names:
            return key, None
        joint, _, coordinate = str(key).rpartition(".")
        if joint in names:
            kind = mechanism.joint(joint).joint
            if coordinate in (*kind.coordinate_names(), *kind.speed_names):
                return joint, coordinate
        every = [f"{r.name}.{c}" for r in mechanism.joints
                 for c in dict.fromkeys((*r.joint.coordinate_names(), *r.joint.speed_names))]
        near = hint(key, every if "." in str(key) else names) or hint(joint or key, names)
        raise ModelError(f"no joint called {key!r} in mechanism {mechanism.name!r}{near}")

    def speed_entries(self, key: str) -> list[int]:
        """The places in u of a joint, or of one of its speeds."""
        joint, coordinate = self.split(key)
        kind = self._mechanism.joint(joint).joint
        start = self.starts[joint][1]
        if coordinate is None:
            return list(range(start, start + kind.nu))
        if coordinate not in kind.speed_names:
            raise StateError(f"{key!r} is a coordinate without a speed of its own; there are "
                             f"{', '.join(kind.speed_names)}")
        return [start + kind.speed_names.index(coordinate)]

    def coordinate_entries(self, key: str) -> list[int]:
        """The places in q of a joint, or of one of its coordinates."""
        self.speed_entries(key)  # says so if it has none
        joint, coordinate = self.split(key)
        kind = self._mechanism.joint(joint).joint
        start = self.starts[joint][0]
        if coordinate is None:
            return list(range(start, start + kind.nq))
        return [start + kind.coordinate_names().index(coordinate)]

    def forces(self, tau: Forces) -> npt.ArrayLike:
        """Joint forces as an array, also where they are given by name."""
        return by_name("tau", tau, self.speed_entries, self.nu) if isinstance(tau, Mapping) else tau

    # -- operations -----------------------------------------------------------------------------
    def neutral(self) -> Floats:
        """q where the mechanism is drawn: every joint at zero, `Free` joints at their `start`."""
        return np.concatenate([np.zeros(0), *(r.joint.neutral() for r in self.records)])

    def random_state(self, rng: np.random.Generator | None = None, size: tuple[int, ...] | int = ()
                     ) -> tuple[Floats, Floats]:
        """Random q (angles within a turn, lengths of order one, uniform orientations, small deformations) and u of
        order one."""
        rng = np.random.default_rng() if rng is None else rng
        lead = tuple(how_many("random_state: size", n, 0) for n in np.atleast_1d(np.asarray(size, dtype=object)))
        q = rng.uniform(-np.pi, np.pi, (*lead, self.nq))
        if not self._simple:  # components of a normal distribution point uniformly in all directions
            q = rng.normal(size=(*lead, self.nq))
        u = rng.normal(size=(*lead, self.nu))
        usual = self._sizes(1.0)
        u *= usual
        for r in self.records:
            if isinstance(r.joint, Modal):  # small deformations
                i, j = self.starts[r.name]
                q[..., i:i + r.joint.nq] *= usual[j:j + r.joint.nu]
        return self.normalize(q), u

    @cached_property
    def _layout(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[tuple[Joint, int, int]]]:
        """Places in q and u of joints whose coordinates add up, and the other joints with where theirs begin."""
        in_q: list[int] = []
        in_u: list[int] = []
        others: list[tuple[Joint, int, int]] = []
        for r in self.records:
            i, j = self.starts[r.name]
            if r.joint.adds_up:
                in_q += range(i, i + r.joint.nq)
                in_u += range(j, j + r.joint.nu)
            else:
                others.append((r.joint, i, j))
        return np.array(in_q, dtype=np.int64), np.array(in_u, dtype=np.int64), others

    def qdot(self, q: npt.ArrayLike, u: npt.ArrayLike) -> Floats:
        """Rates of the coordinates, shape (..., nq)."""
        a, b = flat("q", q, self.nq, "the coordinates"), flat("u", u, self.nu, "one for every speed")
        lead = leading([a, b])
        parts = [np.zeros((*lead, 0))]
        for r in self.records:
            i, j = self.starts[r.name]
            parts.append(r.joint.qdot(*_both(lead, a[..., i:i + r.joint.nq], b[..., j:j + r.joint.nu])))
        return np.concatenate(parts, axis=-1)

    def integrate(self, q: npt.ArrayLike, du: npt.ArrayLike) -> Floats:
        """q after moving with the constant speeds `du` for unit time (``u * dt`` for a step)."""
        a, b = flat("q", q, self.nq, "the coordinates"), flat("du", du, self.nu, "one for every speed")
        leading([a, b])
        return self.moved(a, b)

    def moved(self, a: Floats, b: Floats) -> Floats:
        """The same for arrays that fit."""
        in_q, in_u, others = self._layout
        if not others:
            return np.asarray(a + b)
        lead = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
        out = np.empty((*lead, self.nq))
        out[..., in_q] = a[..., in_q] + b[..., in_u]
        for joint, i, j in others:
            place, change = a[..., i:i + joint.nq], b[..., j:j + joint.nu]
            out[..., i:i + joint.nq] = joint.integrate(*_both(lead, place, change)) if change.any() else \
                joint.normalize(place)
        return out

    def difference(self, q0: npt.ArrayLike, q1: npt.ArrayLike) -> Floats:
        """The constant speeds that lead from q0 to q1 in unit time, shape (..., nu)."""
        a, b = flat("q0", q0, self.nq, "the coordinates"), flat("q1", q1, self.nq, "the coordinates")
        lead = leading([a, b])
        in_q, in_u, others = self._layout
        if not others:
            return np.asarray(b - a)
        out = np.empty((*lead, self.nu))
        out[..., in_u] = b[..., in_q] - a[..., in_q]
        for joint, i, j in others:
            out[..., j:j + joint.nu] = joint.difference(*_both(lead, a[..., i:i + joint.nq], b[..., i:i + joint.nq]))
        return out

    def normalize(self, q: npt.ArrayLike) -> Floats:
        """q with unit quaternions."""
        array = flat("q", q, self.nq, "the coordinates").copy()
        if self._simple:
            return array
        at = 0
        for r in self.records:
            if r.joint.nq != r.joint.nu:
                array[..., at:at + r.joint.nq] = r.joint.normalize(array[..., at:at + r.joint.nq])
            at += r.joint.nq
        return array


def _both(lead: tuple[int, ...], a: Floats, b: Floats) -> tuple[Floats, Floats]:
    return np.broadcast_to(a, (*lead, a.shape[-1])), np.broadcast_to(b, (*lead, b.shape[-1]))
