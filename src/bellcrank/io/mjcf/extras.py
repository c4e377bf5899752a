"""What MJCF holds beside the machine itself: sites and keyframes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.io.mjcf.sites import site_pose

if TYPE_CHECKING:
    from bellcrank.io.common.xml import XmlElement
    from bellcrank.io.mjcf.read import MjcfReader
    from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["read_keyframes", "read_sites"]

_FREE, _BALL = 0, 1


# -- places -----------------------------------------------------------------------------------------
def read_sites(reader: MjcfReader, machine: Mechanism) -> None:
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


# -- states -----------------------------------------------------------------------------------------
def read_keyframes(reader: MjcfReader) -> None:
    """Positions and speeds by joint, in the coordinates of the mechanism."""
    model = reader.model
    for index, key in enumerate(reader.source.gate.keys):
        reader.place = key
        sizes = {"qpos": model.nq, "qvel": model.nv, "act": model.na, "ctrl": len(model.actuator_ctrlrange)}
        long = [name for name, size in sizes.items() if len(key.attributes.get(name, "").split()) > size]
        if long:
            reader.note("warned", key, f"left out: {' and '.join(long)} have more numbers than the model has entries")
            continue
        qpos = _row(reader, key, "qpos", model.qpos0)
        qvel = _row(reader, key, "qvel", np.zeros(model.nv))
        name = key.attributes.get("name") or f"key{index}"
        state: dict[str, dict[str, Any]] = {"q": {}, "u": {}}
        if "ctrl" in key.attributes:
            control = _row(reader, key, "ctrl", np.zeros(sizes["ctrl"])).tolist()
            state["parameters"] = {label: control[at] for label, at in reader.controls.items()}
        _note_zero_quaternions(reader, qpos)
        for label, pair in reader.peer.by_joint(qpos, qvel).items():
            state["q"][label], state["u"][label] = (x.item() if len(pair[1]) == 1 else tuple(x.tolist()) for x in pair)
        if "act" in key.attributes and reader.activations:
            active = _row(reader, key, "act", np.zeros(model.na))
            state["u"] |= {label: float(active[at]) for label, at in reader.activations.items()}
        reader.keyframes[name] = state
        left = [what for what in ("mpos", "mquat", *(() if reader.activations else ("act",))) if what in key.attributes]
        reader.note("kept", key, "kept in report.keyframes" + (f", without {', '.join(left)}" if left else ""))


def _row(reader: MjcfReader, key: XmlElement, name: str, default: Floats) -> Floats:
    """Numbers of a keyframe; those at the end that it leaves out are the defaults, as MuJoCo has it."""
    row = np.array(default, dtype=float)
    words = key.attributes.get(name, "").split()
    if words and len(row):
        row[:len(words)] = key.numbers(name, len(words))
        if len(words) < len(row):
            reader.note("changed", key, f"{name} has {len(words)} of {len(row)} numbers; the others are the default")
    return row


def _note_zero_quaternions(reader: MjcfReader, qpos: Floats) -> None:
    model = reader.model
    for label, kind, at in zip(reader.joints, model.jnt_type, model.jnt_qposadr, strict=True):
        first = int(at) + (3 if kind == _FREE else 0)
        if kind in (_FREE, _BALL) and not qpos[first:first + 4].any():
            reader.note("changed", reader.place, f"the quaternion of {label!r} is zero, taken as 1, 0, 0, 0")
