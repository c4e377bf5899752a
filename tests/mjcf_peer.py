"""States of MuJoCo models in the coordinates of mechanisms read from MJCF, and accelerations back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import bellcrank as bc
from bellcrank.mechanism.joints import quaternion

Floats = npt.NDArray[np.float64]
FREE, BALL = 0, 1


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
    """A compiled MuJoCo model beside a system whose joints have the model's order and names.

    MuJoCo's free joint is (position, quaternion) in the world with the velocity (linear in world axes, angular in body
    axes); ours is (quaternion, position) from where the file draws it, (angular, linear) in body axes. With R the
    body's axes in the world and v its velocity, our linear speed is w = R^T v and its rate R^T vdot - omega x w.
    """

    def __init__(self, mujoco: Any, model: Any, names: list[str], system: bc.System) -> None:
        self.mujoco, self.model, self.system = mujoco, model, system
        self.data = mujoco.MjData(model)
        self.slots = []
        q_names = [n.rpartition(".")[0] for n in system.coordinate_names]
        u_names = [n.rpartition(".")[0] for n in system.speed_names]
        for joint, name in enumerate(names):
            self.slots.append((int(model.jnt_type[joint]), int(model.jnt_qposadr[joint]),
                               int(model.jnt_dofadr[joint]), q_names.index(name), u_names.index(name)))

    def random_state(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """qpos and qvel of MuJoCo around the layout drawn."""
        model = self.model
        change = rng.uniform(-1.0, 1.0, model.nv)
        qpos = np.array(model.qpos0)
        self.mujoco.mj_integratePos(model, qpos, change, 1.0)
        return qpos, rng.normal(size=model.nv)

    def ours(self, qpos: Floats, qvel: Floats) -> tuple[Floats, Floats]:
        q, u = np.zeros(self.system.nq), np.zeros(self.system.nu)
        for kind, at, to, mine, speed in self.slots:
            if kind == FREE:
                start = self.model.qpos0[at:at + 7]
                back = quaternion.conjugate(start[3:])
                turn = qpos[at + 3:at + 7]
                q[mine:mine + 4] = quaternion.product(back, turn)
                q[mine + 4:mine + 7] = quaternion.turn(back, qpos[at:at + 3] - start[:3])
                u[speed:speed + 3] = qvel[to + 3:to + 6]
                u[speed + 3:speed + 6] = quaternion.turn(quaternion.conjugate(turn), qvel[to:to + 3])
            elif kind == BALL:
                q[mine:mine + 4], u[speed:speed + 3] = qpos[at:at + 4], qvel[to:to + 3]
            else:
                q[mine], u[speed] = qpos[at] - self.model.qpos0[at], qvel[to]
        return q, u

    def theirs(self, udot: Floats, u: Floats, qpos: Floats) -> Floats:
        """Our accelerations as MuJoCo's qacc."""
        qacc = np.zeros(self.model.nv)
        for kind, at, to, _, speed in self.slots:
            if kind == FREE:
                turn = qpos[at + 3:at + 7]
                local = udot[speed + 3:speed + 6] + np.cross(u[speed:speed + 3], u[speed + 3:speed + 6])
                qacc[to:to + 3] = quaternion.turn(turn, local)
                qacc[to + 3:to + 6] = udot[speed:speed + 3]
            else:
                width = 3 if kind == BALL else 1
                qacc[to:to + width] = udot[speed:speed + width]
        return qacc

    def driven(self, reader: Any, ctrl: Floats) -> tuple[bc.System, Floats]:
        """Our machine with MuJoCo's controls: those of servos as parameters, those of motors as joint forces."""
        tau = np.zeros(self.system.nu)
        for index in range(len(self.model.actuator_trntype)):
            name = reader.source.name("actuator", index) or f"actuator{index}"
            made = reader.actuations.get(name)
            if made is None or name in reader.controls or any(made.bias) or made.joint not in reader.joints:
                continue
            force = np.clip(made.gain * np.clip(ctrl[index], *made.control), *made.force) * made.gear
            tau[self.slots[reader.joints.index(made.joint)][4]] += force
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
