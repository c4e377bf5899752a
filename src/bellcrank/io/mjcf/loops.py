"""Equality constraints of MJCF as exact loops: what MuJoCo holds by soft forces is held by joints here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.io.common.xml import XmlElement
from bellcrank.io.mjcf.activations import Polynomial
from bellcrank.io.mjcf.sites import rotation, site_pose, tendon_sites
from bellcrank.mechanism.constraints import Distance
from bellcrank.mechanism.joints import Revolute, Spherical, Weld
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.motion import Part
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.io.mjcf.read import MjcfReader

__all__ = ["read_equalities", "tendon_joints"]

_NEAR = 1e-9
_TAGS = ("connect", "weld", "joint", "tendon", "flex", "flexvert", "flexstrain", "distance")


@dataclass(frozen=True, slots=True)
class _Connect:
    """A point of one body on a point of another; poses hold the axes of sites, or of the layout drawn."""

    name: str
    element: XmlElement
    first: int
    second: int
    first_pose: Pose
    second_pose: Pose
    sites: bool


def read_equalities(reader: MjcfReader, machine: Mechanism) -> None:
    """Add every active equality of the model."""
    model = reader.model
    connects: dict[tuple[int, int], list[_Connect]] = {}
    for index in range(model.neq):
        element = reader.place = reader.source.element("equality", index)
        kind = int(model.eq_type[index])
        name = reader.source.name("equality", index) or f"{_TAGS[kind]}{index}"
        if not model.eq_active0[index] or reader.off & {"equality", "constraint"}:
            reader.note("ignored", element, "not active in the file")
            continue
        if kind == 0:
            made = _connect(reader, index, name, element)
            if (made.second, made.first) in connects:  # the same two bodies, named the other way round
                made = _swapped(reader, made)
            if made.first != made.second:
                connects.setdefault((made.first, made.second), []).append(made)
        elif kind == 1:
            _weld(reader, machine, index, name)
        elif kind == 2:
            _joints(reader, machine, index, name, element)
        elif kind == 3:
            _tendons(reader, machine, index, name, element)
        else:
            reader.note("warned", element, "an equality of this kind is not modelled")
    for same in connects.values():
        for pair in _hinges(reader, machine, same):
            _ball(reader, machine, pair)


# -- points and poses -----------------------------------------------------------------------------
def _sites(reader: MjcfReader, index: int) -> bool:
    return int(reader.model.eq_objtype[index]) == int(reader.mujoco.mjtObj.mjOBJ_SITE)


def _connect(reader: MjcfReader, index: int, name: str, element: XmlElement) -> _Connect:
    model = reader.model
    one, two = int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
    if _sites(reader, index):
        (one, first), (two, second) = site_pose(reader, one), site_pose(reader, two)
        return _Connect(name, element, one, two, first, second, True)
    data = model.eq_data[index]
    return _Connect(name, element, one, two, Pose(data[0:3]), Pose(data[3:6], _drawn(reader, one, two)), False)


def _swapped(reader: MjcfReader, c: _Connect) -> _Connect:
    if c.sites:
        return _Connect(c.name, c.element, c.second, c.first, c.second_pose, c.first_pose, True)
    return _Connect(c.name, c.element, c.second, c.first, Pose(c.second_pose.position),
                    Pose(c.first_pose.position, _drawn(reader, c.second, c.first)), False)


def _drawn(reader: MjcfReader, one: int, two: int) -> Floats | None:
    """Axes of one body in another, in the layout drawn in the file."""
    turn = np.asarray(reader.turns[two].T @ reader.turns[one])
    near = np.round(turn)
    if np.abs(turn - near).max() < 1e-12:
        turn = near + 0.0
    return None if (turn == np.eye(3)).all() else turn


# -- kinds ------------------------------------------------------------------------------------------
def _ball(reader: MjcfReader, machine: Mechanism, c: _Connect) -> None:
    reader.place = c.element
    # at rest where the file draws the bodies, whatever the axes of sites
    turn = _drawn(reader, c.first, c.second)
    second = Pose(c.second_pose.position, c.first_pose.rotation if turn is None else turn @ c.first_pose.rotation)
    machine.add_joint(reader.new_name(c.name), Spherical(), reader.bodies[c.first], reader.bodies[c.second],
                      c.first_pose, second)


def _hinges(reader: MjcfReader, machine: Mechanism, same: list[_Connect]) -> list[_Connect]:
    """Make a hinge of the first two connects of two bodies whose points are apart; the connects left over."""
    if len(same) < 2:
        return same
    here = same[0]
    for other in same[1:]:
        on_first = _apart(here.first_pose, other.first_pose)
        on_second = _apart(here.second_pose, other.second_pose)
        lengths = float(np.linalg.norm(on_first)), float(np.linalg.norm(on_second))
        if lengths[0] < _NEAR or abs(lengths[0] - lengths[1]) > _NEAR * max(lengths):
            continue
        axis, target = on_first / lengths[0], on_second / lengths[1]
        reader.place = here.element
        frames = _hinge_frames(here, axis, target)
        machine.add_joint(reader.new_name(here.name), Revolute(frames[2]), reader.bodies[here.first],
                          reader.bodies[here.second], frames[0], frames[1])
        reader.note("changed", other.element, f"with {here.name!r} a hinge through the two points")
        return [c for c in same[1:] if c is not other and not _on_line(c, here, axis, target)]
    return same


def _apart(a: Pose, b: Pose) -> Floats:
    return np.asarray(np.array(b.position, dtype=float) - np.array(a.position, dtype=float))


def _on_line(c: _Connect, here: _Connect, axis: Floats, target: Floats) -> bool:
    """Whether a further connect only repeats what a hinge does."""
    one, two = _apart(here.first_pose, c.first_pose), _apart(here.second_pose, c.second_pose)
    along = float(one @ axis)
    size = _NEAR * max(1e-3, abs(along))
    return bool(np.abs(one - along * axis).max() < size and np.abs(two - along * target).max() < size)


def _hinge_frames(c: _Connect, axis: Floats, target: Floats) -> tuple[Pose, Pose, tuple[float, ...]]:
    """Poses of a hinge on both bodies, and its axis in them."""
    local = c.first_pose.rotation.T @ axis
    if c.sites and np.abs(c.second_pose.rotation.T @ target - local).max() < _NEAR:
        return c.first_pose, c.second_pose, tuple(local.tolist())
    moved = c.second_pose.rotation @ local
    cross, dot = np.cross(moved, target), float(moved @ target)
    if dot < -1.0 + 1e-9:  # any half turn across the axis
        helper = np.eye(3)[int(np.argmin(np.abs(moved)))]
        across = np.cross(moved, helper)
        across /= np.linalg.norm(across)
        turn = 2.0 * np.outer(across, across) - np.eye(3)
    else:
        k = np.array([[0.0, -cross[2], cross[1]], [cross[2], 0.0, -cross[0]], [-cross[1], cross[0], 0.0]])
        turn = np.eye(3) + k + k @ k / (1.0 + dot)
    return c.first_pose, Pose(c.second_pose.position, turn @ c.second_pose.rotation), tuple(local.tolist())


def _weld(reader: MjcfReader, machine: Mechanism, index: int, name: str) -> None:
    model = reader.model
    one, two = int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
    if _sites(reader, index):
        (one, first), (two, second) = site_pose(reader, one), site_pose(reader, two)
    else:
        data = model.eq_data[index]
        first, second = Pose(data[3:6], rotation(reader.mujoco, data[6:10])), Pose(data[0:3])
    if one == two:
        return
    if float(model.eq_data[index][10]) == 0.0:  # torquescale: nothing holds the orientation
        element = reader.place
        reader.note("changed", element, "torquescale is 0: holds points together, not axes")
        _ball(reader, machine, _Connect(name, element, one, two, Pose(first.position), Pose(second.position), False))
        return
    machine.add_joint(reader.new_name(name), Weld(), reader.bodies[one], reader.bodies[two], first, second)


def _straight(reader: MjcfReader, element: XmlElement, data: Any) -> bool:
    if np.any(data[2:5]):
        reader.note("warned", element, "only linear relations are modelled; this polynomial has higher powers")
        return False
    return True


def _joints(reader: MjcfReader, machine: Mechanism, index: int, name: str, element: XmlElement) -> None:
    model = reader.model
    data, one, two = model.eq_data[index], int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
    if two == one:
        reader.note("warned", element, "a joint cannot be tied to itself; left out")
        return
    factors: dict[str, Part] = {reader.joints[one]: 1.0}
    if two >= 0:
        bent = np.any(data[2:5])
        factors[reader.joints[two]] = Polynomial((0.0, *(-data[1:5]).tolist())) if bent else -float(data[1])
    _couple(machine, name, factors, float(data[0]))


def _couple(machine: Mechanism, name: str, factors: Mapping[str, Part], offset: float) -> None:
    """Hold a sum of joint coordinates; one coordinate alone stands still."""
    factors = {joint: factor for joint, factor in factors.items() if factor}
    if len(factors) == 1:
        (joint, factor), = factors.items()
        assert isinstance(factor, float)  # a function never stands alone
        machine.prescribe(joint, offset / factor)
    else:
        machine.add_coupler(name, factors, offset)


def tendon_joints(reader: MjcfReader, tendon: int) -> dict[str, float] | None:
    """The factors of a fixed tendon: its length is their sum with the joint coordinates; None for spatial ones."""
    model = reader.model
    start, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
    factors: dict[str, float] = {}
    for wrap in range(start, start + count):
        if int(model.wrap_type[wrap]) != int(reader.mujoco.mjtWrap.mjWRAP_JOINT):
            return None
        joint = reader.joints[int(model.wrap_objid[wrap])]
        factors[joint] = factors.get(joint, 0.0) + float(model.wrap_prm[wrap])
    return factors


def _tendons(reader: MjcfReader, machine: Mechanism, index: int, name: str, element: XmlElement) -> None:
    model = reader.model
    data, one, two = model.eq_data[index], int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
    ends = tendon_sites(reader, one)
    if two < 0 and ends is not None:
        (a, first), (b, second) = ends
        length = float(model.tendon_length0[one] + data[0])
        machine.add_constraint(reader.new_name(name), Distance(length), reader.bodies[a], reader.bodies[b],
                               Pose(first.position), Pose(second.position))
        return
    factors = tendon_joints(reader, one)
    others = tendon_joints(reader, two) if two >= 0 else {}
    if factors is None or others is None:
        reader.note("warned", element, "only tendons that are sums of joints can be held; this one is not")
        return
    if not _straight(reader, element, data):
        return
    total = dict(factors)
    for joint, factor in others.items():
        total[joint] = total.get(joint, 0.0) - float(data[1]) * factor
    _couple(machine, name, total, float(data[0]))
