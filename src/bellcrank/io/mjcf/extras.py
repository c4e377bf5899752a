"""What MJCF holds beside bodies, joints and equalities: tendons, actuators, sites, shapes and keyframes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from bellcrank.errors import ModelError
from bellcrank.io.mjcf.loops import site_pose, tendon_joints
from bellcrank.io.report import Actuation, Shape
from bellcrank.mechanism.joints import quaternion
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.io.mjcf.read import Reader
    from bellcrank.io.xml import Element
    from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["read_actuators", "read_keyframes", "read_shapes", "read_sites", "read_tendons", "tendon_sites"]

Floats = npt.NDArray[np.float64]
_FREE, _BALL = 0, 1


# -- tendons --------------------------------------------------------------------------------------
def tendon_sites(reader: Reader, tendon: int) -> tuple[tuple[int, Pose], tuple[int, Pose]] | None:
    """Bodies and poses of the ends of a tendon that runs straight between two sites, else None."""
    model = reader.model
    start, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
    site = int(reader.mujoco.mjtWrap.mjWRAP_SITE)
    if count != 2 or any(int(model.wrap_type[w]) != site for w in (start, start + 1)):
        return None
    return site_pose(reader, int(model.wrap_objid[start])), site_pose(reader, int(model.wrap_objid[start + 1]))


def read_tendons(reader: Reader, machine: Mechanism) -> None:
    """Springs and dampers along tendons that are straight or follow one joint; the rest is noted."""
    model = reader.model
    for tendon in range(model.ntendon):
        element = reader.place = reader.source.element("tendon", tendon)
        name = reader.source.name("tendon", tendon) or f"tendon{tendon}"
        stiffness, damping = float(model.tendon_stiffness[tendon]), float(model.tendon_damping[tendon])
        stiffness *= "spring" not in reader.off
        damping *= "damper" not in reader.off
        other = [what for what in ("frictionloss", "armature") if np.any(getattr(model, f"tendon_{what}")[tendon])]
        for what in ("stiffnesspoly", "dampingpoly", "springyield"):
            if np.any(getattr(model, f"tendon_{what}", np.zeros(model.ntendon))[tendon]):
                other.append(what)
        if other:
            reader.note("warned", element, f"{', '.join(other)} of a tendon is not modelled")
        if model.tendon_limited[tendon]:
            reader.note("ignored", element, "the range of a tendon")
        if not (stiffness or damping):
            reader.note("ignored", element, "a tendon without stiffness and damping")
        elif not _spring(reader, machine, tendon, name, stiffness, damping):
            reader.note("warned", element, "the spring and damper of this tendon are not modelled")


def _spring(reader: Reader, machine: Mechanism, tendon: int, name: str, stiffness: float, damping: float) -> bool:
    model = reader.model
    low, high = (float(x) for x in model.tendon_lengthspring[tendon])
    if low != high and stiffness:
        return False
    ends = tendon_sites(reader, tendon)
    if ends is not None:
        (a, first), (b, second) = ends
        machine.add_spring(name, reader.bodies[a], reader.bodies[b], first.position, second.position,
                           stiffness=stiffness, damping=damping, length=low)
        return True
    factors = tendon_joints(reader, tendon)
    if factors is None or len(factors) != 1:
        return False
    (joint, factor), = factors.items()
    at = int(model.jnt_qposadr[reader.joints.index(joint)])
    rest = low / factor - float(model.qpos0[at]) if stiffness else 0.0
    machine.add_joint_spring(f"{name}_tendon", joint, stiffness=stiffness * factor**2, damping=damping * factor**2,
                             rest=rest)
    return True


# -- actuators --------------------------------------------------------------------------------------
def read_actuators(reader: Reader, machine: Mechanism) -> None:
    """Actuators on single coordinates as data, with limits of the joint forces where they are symmetric."""
    model, mujoco = reader.model, reader.mujoco
    on_joint = {int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT)}
    limits: dict[str, list[float]] = {}
    first: dict[str, str] = {}
    for index in range(len(model.actuator_trntype)):
        element = reader.place = reader.source.element("actuator", index)
        name = reader.source.name("actuator", index) or f"actuator{index}"
        joint = int(model.actuator_trnid[index][0])
        if int(model.actuator_trntype[index]) not in on_joint or int(model.jnt_type[joint]) in (_FREE, _BALL):
            reader.note("ignored", element, "an actuator that is not on a hinge or slide")
            continue
        made = _actuation(reader, index, element.tag if element.tag != "mujoco" else "general", reader.joints[joint])
        reader.actuations[name] = made
        servo = " a servo with its own gains," if any(made.bias) else ""
        reader.note("kept", element, f"on joint {made.joint!r}, gear {made.gear:g}:{servo} its force is the input tau "
                                     "of the joint; kept in report.actuators")
        for what in ("actuator_armature", "actuator_damping"):
            if np.any(getattr(model, what, np.zeros(model.nu))[index]):
                reader.note("warned", element, f"the {what.partition('_')[2]} of an actuator is not modelled")
        limits.setdefault(made.joint, []).append(_limit(made))
        first.setdefault(made.joint, name)
    if not reader.drives:
        return
    for name, parts in limits.items():
        limit = min(sum(parts), reader.limits[name].effort if name in reader.limits else math.inf)
        if 0.0 < limit < math.inf:
            machine.add_actuator(first[name], name, limit)


def _actuation(reader: Reader, index: int, kind: str, joint: str) -> Actuation:
    model = reader.model
    at = int(model.actuator_ctrladr[index]) if hasattr(model, "actuator_ctrladr") else index
    control = force = (-math.inf, math.inf)
    if model.actuator_ctrllimited[at]:
        control = _pair(model.actuator_ctrlrange[at])
    if model.actuator_forcelimited[index]:
        force = _pair(model.actuator_forcerange[index])
    bias = model.actuator_biasprm[index]
    straight = int(model.actuator_biastype[index]) == int(reader.mujoco.mjtBias.mjBIAS_AFFINE)
    return Actuation(kind, joint, float(model.actuator_gear[index][0]), control, force,
                     float(model.actuator_gainprm[index][0]),
                     (float(bias[0]), float(bias[1]), float(bias[2])) if straight else (0.0, 0.0, 0.0))


def _pair(values: Any) -> tuple[float, float]:
    return float(values[0]), float(values[1])


def _limit(made: Actuation) -> float:
    """The largest joint force an actuator can make either way; infinite if it has no limit or an uneven one."""
    ends = [math.inf]
    if made.force[0] == -made.force[1]:
        ends.append(made.force[1])
    if made.control[0] == -made.control[1] and not any(made.bias):
        ends.append(abs(made.gain) * made.control[1])
    return min(ends) * abs(made.gear) if made.gear else 0.0


# -- places and shapes ------------------------------------------------------------------------------
def read_sites(reader: Reader, machine: Mechanism) -> None:
    """Named sites become frames."""
    for site in range(reader.model.nsite):
        element = reader.place = reader.source.element("site", site)
        name = reader.source.name("site", site)
        if not name:
            continue
        body, pose = site_pose(reader, site)
        try:
            machine.add_frame(name, reader.bodies[body], pose)
        except ModelError:
            reader.note("ignored", element, "a body has the name of this site")


def read_shapes(reader: Reader) -> None:
    """Shapes are kept as data."""
    from bellcrank.io.mjcf.read import rotation

    model = reader.model
    kinds = {int(getattr(reader.mujoco.mjtGeom, f"mjGEOM_{kind.upper()}")): kind
             for kind in ("sphere", "capsule", "cylinder", "box")}
    for geom in range(model.ngeom):
        kind = kinds.get(int(model.geom_type[geom]))
        element = reader.source.element("geom", geom)
        if kind is None:
            reader.note("ignored", element, "a shape of a kind that is not kept")
            continue
        x, y, z = (float(s) for s in model.geom_size[geom])
        size = {"sphere": (x,), "box": (2 * x, 2 * y, 2 * z)}.get(kind, (x, 2 * y))
        role: Literal["visual", "collision"] = "visual" if int(model.geom_group[geom]) in (1, 2) else "collision"
        reader.shapes.append(Shape(reader.bodies[int(model.geom_bodyid[geom])], role, kind, size, None,
                                   Pose(model.geom_pos[geom], rotation(reader.mujoco, model.geom_quat[geom])), None,
                                   element.line))


# -- states -----------------------------------------------------------------------------------------
def read_keyframes(reader: Reader) -> None:
    """Positions and speeds by joint, in the coordinates of the mechanism."""
    model = reader.model
    for index, key in enumerate(reader.source.gate.keys):
        reader.place = key
        qpos = _row(key, "qpos", model.qpos0)
        qvel = _row(key, "qvel", np.zeros(model.nv))
        name = key.attributes.get("name") or f"key{index}"
        state: dict[str, dict[str, Any]] = {"q": {}, "u": {}}
        for joint, label in enumerate(reader.joints):
            state["q"][label], state["u"][label] = _converted(model, joint, qpos, qvel, key)
        reader.keyframes[name] = state
        left = [what for what in ("ctrl", "act", "mpos", "mquat") if what in key.attributes]
        reader.note("kept", key, "kept in report.keyframes" + (f", without {', '.join(left)}" if left else ""))


def _row(key: Element, name: str, default: Floats) -> Floats:
    if name not in key.attributes:
        return np.array(default, dtype=float)
    return np.array(key.numbers(name, len(default)) if len(default) else (), dtype=float)


def _converted(model: Any, joint: int, qpos: Floats, qvel: Floats, key: Element) -> tuple[Any, Any]:
    at, to, kind = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint]), int(model.jnt_type[joint])
    if kind not in (_FREE, _BALL):
        return float(qpos[at] - model.qpos0[at]), float(qvel[to])
    turn = qpos[at + 3:at + 7] if kind == _FREE else qpos[at:at + 4]
    if not turn.any():
        raise key.error("a quaternion of zeros gives no direction")
    turn = quaternion.normalise(turn)
    if kind == _BALL:
        return tuple(turn.tolist()), tuple(qvel[to:to + 3].tolist())
    back = quaternion.conjugate(np.array(model.qpos0[at + 3:at + 7]))
    place = quaternion.turn(back, qpos[at:at + 3] - model.qpos0[at:at + 3])
    speed = quaternion.turn(quaternion.conjugate(turn), qvel[to:to + 3])
    q = (*quaternion.product(back, turn).tolist(), *place.tolist())
    return q, (*qvel[to + 3:to + 6].tolist(), *speed.tolist())
