"""States of MuJoCo models in the coordinates of mechanisms read from MJCF, and accelerations back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import bellcrank as bc

Floats = npt.NDArray[np.float64]


def four_bar(rest: str) -> str:
    """MJCF of a four-bar whose rocker is connected to its coupler, with `rest` (keyframes, actuators) at the end."""
    return f"""<mujoco><worldbody>
  <body name="crank"><joint name="A" axis="0 0 1"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.01"/>
    <body name="coupler" pos="0.3 0 0"><joint name="B" axis="0 0 1"/>
      <geom type="capsule" fromto="0 0 0 1 0 0" size="0.01"/><site name="c" pos="1 0 0"/></body></body>
  <body name="rocker" pos="0.7 0 0"><joint name="D" axis="0 0 1"/>
    <geom type="capsule" fromto="0 0 0 0.6 0 0" size="0.01"/><site name="r" pos="0.6 0 0"/></body>
  </worldbody>
  <equality><connect site1="c" site2="r"/></equality>
  {rest}
</mujoco>"""


def lifted(system: bc.System, q: Floats) -> Floats:
    """The energy [J] of constant forces in world axes (weights taken away by a file): minus force times place."""
    total = np.zeros(len(q))
    for wrench in system.model.mechanism.wrenches:
        pose = system.pose(q, system.model.mechanism.bodies[wrench.body - 1].name)
        place = pose.position + pose.rotation @ np.array(wrench.at, dtype=float)
        total -= place @ np.array(wrench.force, dtype=float)
    return total


class Peer:
    """A compiled MuJoCo model next to a system of the machine that a reader made of it.

    Of a free joint MuJoCo has the velocity v of the origin in world axes, ours is w = R^T v, with R the axes of the
    body; so w' = R^T v' - omega x w.
    """

    def __init__(self, mujoco: Any, model: Any, reader: Any, system: bc.System) -> None:
        self.mujoco, self.model, self.system, self.states = mujoco, model, system, reader.peer
        self.data = mujoco.MjData(model)
        self.free = [system.model.configuration.starts[r.name][1] for r in system.model.mechanism.joints
                     if isinstance(r.joint, bc.Free)]

    def random_state(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """qpos and qvel of MuJoCo around the layout drawn."""
        model = self.model
        change = rng.uniform(-1.0, 1.0, model.nv)
        qpos = np.array(model.qpos0)
        self.mujoco.mj_integratePos(model, qpos, change, 1.0)
        return qpos, rng.normal(size=model.nv)

    def ours(self, qpos: Floats, qvel: Floats) -> tuple[Floats, Floats]:
        q, u = self.states.from_peer(self.system, qpos, qvel, 0.0)
        return q, u

    def theirs(self, udot: Floats, u: Floats, q: Floats) -> Floats:
        """Our accelerations as MuJoCo's qacc."""
        rate = np.array(udot)
        for i in self.free:
            rate[i + 3:i + 6] += np.cross(u[i:i + 3], u[i + 3:i + 6])
        return self.states.to_peer(self.system.state(q, rate))[1]

    def driven(self, reader: Any, ctrl: Floats) -> tuple[bc.System, Floats]:
        """Our machine with MuJoCo's controls: those of servos as parameters, those of motors as joint forces."""
        tau = np.zeros(self.system.nu)
        for index in range(len(self.model.actuator_trntype)):
            name = reader.source.name("actuator", index) or f"actuator{index}"
            made = reader.actuations.get(name)
            if made is None or name in reader.controls or any(made.bias) or made.joint not in reader.joints:
                continue
            force = np.clip(made.gain * np.clip(ctrl[index], *made.control), *made.force) * made.gear
            tau[self.system.model.configuration.starts[made.joint][1]] += force
        return self.system.with_parameters(**{name: ctrl[at] for name, at in reader.controls.items()}), tau

    def accelerations(self, qpos: Floats, qvel: Floats, ctrl: Floats | None = None) -> Floats:
        """MuJoCo's accelerations; its controls are zero unless given."""
        data = self.data
        self.mujoco.mj_resetData(self.model, data)
        data.qpos, data.qvel = qpos, qvel
        if ctrl is not None:
            data.ctrl = ctrl
        self.mujoco.mj_forward(self.model, data)
        return np.array(data.qacc)
