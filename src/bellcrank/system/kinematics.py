"""Where things are and how they move: poses, velocities, accelerations, Jacobians, operators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_time, flat, one_time
from bellcrank.errors import ModelError, StateError, hint
from bellcrank.formulations.operator.operators import SpatialOperators
from bellcrank.lowering.function import Function, direct
from bellcrank.lowering.link import bind_parameters
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.system.configuration import Configuration
from bellcrank.system.evaluator import Evaluator
from bellcrank.topology.tree import Tree

__all__ = ["BodyPose", "Kinematics", "Wrenches"]

Wrenches = Mapping[str, npt.ArrayLike] | npt.ArrayLike | None


class BodyPose(NamedTuple):
    """Where a body or frame is: rotation matrices (..., 3, 3) and positions (..., 3) in the world."""

    rotation: Floats
    position: Floats


class Kinematics(Configuration):
    """The kinematic methods of a `System`."""

    mechanism: Mechanism
    tree: Tree
    _values: dict[str, Any]
    _functions: Mapping[str, Function]

    @abstractmethod
    def _run(self, name: str, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches = None, t: npt.ArrayLike = 0.0,
             evaluator: Evaluator | None = None) -> Floats:
        """Evaluate a function on a batch."""

    def _place(self, body: str) -> tuple[int, Floats, Floats]:
        """Link of a body or frame, and its pose in the link frame."""
        tree = self.tree
        frame = next((f for f in self.mechanism.frames if f.name == body), None)
        try:
            index = frame.body if frame else self.mechanism.body(body).index
        except ModelError:
            names = [f.name for f in self.mechanism.frames]
            if not names or not isinstance(body, str):
                raise
            raise ModelError(f"no body called {body!r} in mechanism {tree.name!r}, nor a frame"
                             f"{hint(body, (*tree.body_names, *names))}") from None
        turn, shift = tree.body_turn[index], self._shift(index)
        if frame is None:
            return int(tree.body_link[index]), turn, shift
        at = self._values_of(frame.pose.position)
        return int(tree.body_link[index]), turn @ frame.pose.matrix, shift + _turned(turn, at)

    def _shift(self, index: int) -> Floats:
        symbolic = self.tree.body_shift_symbolic.get(index)
        return self.tree.body_shift[index] if symbolic is None else self._values_of(symbolic)

    def _values_of(self, entries: Sequence[Any]) -> Floats:
        """Numbers or expressions of parameters as an array; arrays of parameter values add leading axes."""
        values = [bind_parameters(x, lambda name: np.asarray(self._values[name], dtype=float)) for x in entries]
        return np.stack(np.broadcast_arrays(*values), axis=-1)

    def _link_rows(self, name: str, link: int, given: Mapping[str, npt.ArrayLike], t: npt.ArrayLike) -> Floats:
        rows = self._run(name, given, None, t)
        width = self._functions[name].width
        return rows[..., (link - 1) * width:link * width]

    def pose(self, q: npt.ArrayLike, body: str, *, t: npt.ArrayLike = 0.0) -> BodyPose:
        """Pose of a body or frame in the world. Cost: O(n)."""
        check_time(t)
        link, turn, shift = self._place(body)
        if link == 0:
            lead = np.broadcast_shapes(flat("q", q, self.nq, "the coordinates").shape[:-1], shift.shape[:-1])
            rotation, origin = self.tree.ground_turn, self.tree.ground_shift
            return BodyPose(np.broadcast_to(rotation @ turn, (*lead, 3, 3)).copy(),
                            np.broadcast_to(origin + _turned(rotation, shift), (*lead, 3)).copy())
        row = self._link_rows("poses", link, {"q": q}, t)
        rotation = row[..., :9].reshape(*row.shape[:-1], 3, 3)
        return BodyPose(rotation @ turn, row[..., 9:] + _turned(rotation, shift))

    def _arm(self, q: npt.ArrayLike, body: str, point: npt.ArrayLike, t: npt.ArrayLike) -> tuple[int, Floats]:
        """World vector from a link's origin to a point given in a body's coordinates."""
        link, turn, shift = self._place(body)
        local = shift + turn @ flat("point", point, 3, "x, y, z in the body's frame")
        if link == 0:
            return 0, _turned(self.tree.ground_turn, local)
        row = self._link_rows("poses", link, {"q": q}, t)
        return link, _turned(row[..., :9].reshape(*row.shape[:-1], 3, 3), local)

    def velocity(self, q: npt.ArrayLike, u: npt.ArrayLike, body: str, point: npt.ArrayLike = (0.0, 0.0, 0.0), *,
                 t: npt.ArrayLike = 0.0) -> Floats:
        """[angular velocity; velocity of a point of the body], world axes, shape (..., 6). Cost: O(n)."""
        check_time(t)
        link, arm = self._arm(q, body, point, t)
        if link == 0:
            return np.zeros((*np.broadcast_shapes(np.shape(q)[:-1], np.shape(u)[:-1]), 6))
        row = self._link_rows("velocities", link, {"q": q, "u": u}, t)
        omega, v = row[..., :3], row[..., 3:]
        return np.concatenate([omega, v + np.cross(omega, arm)], axis=-1)

    def acceleration(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, body: str,
                     point: npt.ArrayLike = (0.0, 0.0, 0.0), *, t: npt.ArrayLike = 0.0) -> Floats:
        """[angular acceleration; acceleration of a point of the body], world axes, shape (..., 6). O(n)."""
        check_time(t)
        link, arm = self._arm(q, body, point, t)
        if link == 0:
            return np.zeros((*np.broadcast_shapes(*(np.shape(x)[:-1] for x in (q, u, udot))), 6))
        row = self._link_rows("accelerations", link, {"q": q, "u": u, "udot": udot}, t)
        omega = self._link_rows("velocities", link, {"q": q, "u": u}, t)[..., :3]
        alpha, a = row[..., :3], row[..., 3:]
        return np.concatenate([alpha, a + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))], axis=-1)

    def jacobian(self, q: npt.ArrayLike, body: str, point: npt.ArrayLike = (0.0, 0.0, 0.0), *,
                 t: npt.ArrayLike = 0.0) -> Floats:
        """J with ``velocity = J u`` (free speeds), shape (..., 6, nu). Cost: O(n)."""
        return self._jacobians(q, np.zeros(self.nu), body, point, t)[0]

    def jacobian_rate(self, q: npt.ArrayLike, u: npt.ArrayLike, body: str,
                      point: npt.ArrayLike = (0.0, 0.0, 0.0), *, t: npt.ArrayLike = 0.0) -> Floats:
        """dJ/dt with ``acceleration = J udot + dJ/dt u``, shape (..., 6, nu). Cost: O(n)."""
        return self._jacobians(q, u, body, point, t)[1]

    def _jacobians(self, q: npt.ArrayLike, u: npt.ArrayLike, body: str, point: npt.ArrayLike, t: npt.ArrayLike
                   ) -> tuple[Floats, Floats]:
        screws = self._run("screws", {"q": q, "u": u}, None, t)
        screws = screws.reshape(*screws.shape[:-1], self.nu, 4, 3)
        link, arm = self._arm(q, body, point, t)
        lead = np.broadcast_shapes(screws.shape[:-3], arm.shape[:-1])
        jacobian, rate = np.zeros((*lead, 6, self.nu)), np.zeros((*lead, 6, self.nu))
        if link == 0:
            return jacobian, rate
        columns, links = self._path(link)
        poses = self._run("poses", {"q": q}, None, t)
        poses = poses.reshape(*poses.shape[:-1], self.tree.n, 12)
        speeds = self._run("velocities", {"q": q, "u": u}, None, t)
        speeds = speeds.reshape(*speeds.shape[:-1], self.tree.n, 6)
        tip, tip_speed = poses[..., link - 1, 9:] + arm, speeds[..., link - 1, :]
        moving = tip_speed[..., 3:] + np.cross(tip_speed[..., :3], arm)
        chosen = screws[..., columns, :, :]
        turn, slide, turn_rate, slide_rate = (chosen[..., i, :] for i in range(4))
        reach = tip[..., None, :] - poses[..., [i - 1 for i in links], 9:]
        reach_rate = moving[..., None, :] - speeds[..., [i - 1 for i in links], 3:]
        jacobian[..., :3, columns] = np.swapaxes(turn, -1, -2)
        jacobian[..., 3:, columns] = np.swapaxes(slide + np.cross(turn, reach), -1, -2)
        rate[..., :3, columns] = np.swapaxes(turn_rate, -1, -2)
        rate[..., 3:, columns] = np.swapaxes(
            slide_rate + np.cross(turn_rate, reach) + np.cross(turn, reach_rate), -1, -2)
        return jacobian, rate

    def operators(self, q: npt.ArrayLike, *, t: float = 0.0) -> SpatialOperators:
        """The spatial operators of one configuration, as objects with O(n) products.

        >>> import bellcrank as bc, numpy as np
        >>> s = bc.compile(bc.load("double_pendulum"))
        >>> o = s.operators([0.1, 0.2])
        >>> bool(np.allclose(o.mass_inverse @ (o.mass @ [1.0, 2.0]), [1.0, 2.0]))
        True
        """
        given = {"q": flat("q", q, self.nq, "the coordinates"), "t": np.array([one_time(t)]),
                 "parameters": np.array([float(np.asarray(v)) for v in self._values.values()])}
        if given["q"].ndim != 1 or not np.isfinite(given["q"]).all():
            raise StateError("operators: needs one finite configuration q, without batch axes")
        sweeps = direct(self.tree, ("q",), lambda name, i: float(given[name][i]), False)

        def origin(body: str, point: Any) -> tuple[int, Floats]:
            """Link of a point, and the map from link velocities to the point's in world axes."""
            link, turn, shift = self._place(body)
            arm = shift + turn @ flat("point", point, 3, "x, y, z in the body's frame")
            rotation = self._link_rows("poses", link, {"q": q}, t)[:9].reshape(3, 3) if link else np.eye(3)
            cross = np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])
            return link, np.block([[rotation, np.zeros((3, 3))], [-rotation @ cross, rotation]])

        return SpatialOperators(sweeps, origin)

    def _path(self, link: int) -> tuple[list[int], list[int]]:
        """Speeds between the ground and a link, and the link each belongs to."""
        columns: list[int] = []
        links: list[int] = []
        while link:
            joint = self.tree.joints[link]
            assert joint is not None
            columns += range(int(self.tree.u_start[link]), int(self.tree.u_start[link]) + joint.nu)
            links += [link] * joint.nu
            link = int(self.tree.parent[link])
        return columns, links


def _turned(rotation: Floats, vector: Floats) -> Floats:
    """rotation times vector, leading axes of both broadcast."""
    return np.asarray((rotation @ vector[..., None])[..., 0])
