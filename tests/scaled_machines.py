"""Mechanisms described in another unit of length: the same machine with all lengths times a factor.

Masses and times stay: gravity and forces scale with the length, moments and inertias with its square, stiffnesses of
lengths not at all. `scaled` works on the model file of a mechanism and covers what the tables below list.
"""

from __future__ import annotations

import json
from typing import Any

import bellcrank as bc
from bellcrank.io.native import from_text, text_of
from bellcrank.mechanism.machine_sizes import turns

#: powers of the length by section and entry; -1 and more than one number: see `_power`
_LENGTH = 1
_PARTS: dict[str, dict[str, int]] = {
    "bodies": {"com": 1, "inertia": 2}, "frames": {"pose": 1}, "bushings": {
        "first_pose": 1, "second_pose": 1, "turn_stiffness": 2, "turn_damping": 2},
    "joints": {"parent_pose": 1, "child_pose": 1, "at": 1, "pitch": 1},
    "constraints": {"parent_pose": 1, "child_pose": 1, "length": 1, "offset": 1, "radius": 1},
    "springs": {"first_point": 1, "second_point": 1, "length": 1, "lower": 1, "upper": 1},
    "wrenches": {"force": 1, "moment": 2, "at": 1}}
#: of what acts along a coordinate: powers for lengths, and for angles
_ALONG = {"stiffness": (0, 2), "damping": (0, 2), "rest": (1, 0), "coulomb": (1, 2), "viscous": (0, 2), "speed": (1, 0),
          "stribeck": (1, 0), "static": (1, 2), "lower": (1, 0), "upper": (1, 0), "onset": (1, 0), "limit": (1, 2),
          "no_load_speed": (1, 0), "inertia": (0, 2), "target": (1, 0), "offset": (1, 2)}


def scaled(mechanism: bc.Mechanism, length: float) -> bc.Mechanism:
    """The mechanism with all lengths times `length`."""
    machine = json.loads(text_of(mechanism, json=True))
    machine["gravity"] = _times(machine["gravity"], length)
    assert not {"parameters", "tables", "drags", "states", "contacts", "outputs"} & set(machine)
    for section, powers in _PARTS.items():
        for part in machine.get(section, {}).values():
            for entry in powers.keys() & part.keys():
                part[entry] = _times(part[entry], length ** powers[entry])
    for section in ("joint_forces", "actuators", "armatures"):
        for part in machine.get(section, {}).values():
            turning = _turning(mechanism, part["joint"], part.get("coordinate"))
            for entry in _ALONG.keys() & part.keys():
                if part[entry] is not None:
                    part[entry] = _times(part[entry], length ** _ALONG[entry][turning])
    for coupler in machine.get("couplers", {}).values():
        for key, factor in coupler["factors"].items():
            joint, _, coordinate = key.rpartition(".") if "." in key else (key, "", None)
            coupler["factors"][key] = factor if _turning(mechanism, joint, coordinate) else factor / length
    return from_text(json.dumps(machine))


def _turning(mechanism: bc.Mechanism, joint: str, coordinate: str | None) -> bool:
    """Whether a coordinate is an angle."""
    kind = mechanism.joint(joint).joint
    return turns(kind)[0 if coordinate is None else kind.speed_names.index(coordinate)]


def _times(value: Any, factor: float) -> Any:
    if isinstance(value, dict):
        return {**value, "position": _times(value.get("position", [0.0, 0.0, 0.0]), factor)}
    if isinstance(value, list):
        return [_times(x, factor) for x in value]
    assert isinstance(value, int | float), value
    return value * factor
