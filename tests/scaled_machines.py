"""Mechanisms described in another unit of length: the same machine with all lengths times a factor.

Masses and times stay: gravity and forces scale with the length, moments and inertias with its square, stiffnesses of
lengths not at all. `scaled` works on the model file of a mechanism, default values written out, and refuses entries
that the tables below do not list. Parameters keep their values: a formula is computed in the old unit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.arrays import Floats
from bellcrank.io.native import from_text, text_of
from bellcrank.io.native.schema import Document
from bellcrank.mechanism.machine_sizes import coordinate_sizes, speed_sizes, turns

#: powers of the length by section, type and entry
_POINTS = {"first_point": 1, "second_point": 1}
_POSES = {"parent_pose": 1, "child_pose": 1}
_PARTS: dict[str, dict[str, dict[str, float]]] = {
    "bodies": {"": {"mass": 0, "com": 1, "inertia": 2}},
    "frames": {"": {"pose": 1}},
    "joints": {"": {**_POSES, "at": 1, "pitch": 1}},
    "constraints": {"": {**_POSES, "length": 1, "offset": 1, "radius": 1, "angle": 0}},
    "springs": {
        "spring": {**_POINTS, "stiffness": 0, "damping": 0, "length": 1},
        "gas_spring": {**_POINTS, "force": 1, "length": 1, "reach": 1, "exponent": 0, "damping": 0},
        "bump_stop": {**_POINTS, "lower": 1, "upper": 1, "stiffness": 0, "progression": -2, "damping": 0, "onset": 1},
        "hydraulic_cylinder": {**_POINTS, "head_area": 2, "rod_area": 2, "closed": 1, "stroke": 1, "dead_volume": 3,
                               "bulk_modulus": -1, "leakage": 4, "friction": 0, "gain": 3.5, "supply": -1,
                               "tank": -1}},
    "bushings": {"": {"first_pose": 1, "second_pose": 1, "stiffness": 0, "damping": 0, "turn_stiffness": 2,
                      "turn_damping": 2}},
    "drags": {"": {"at": 1, "coefficient": 0, "area": 2, "density": -3, "turn_linear": 2, "turn_quadratic": 2,
                   "wind": 1}},
    "wrenches": {
        "wrench": {"force": 1, "moment": 2, "at": 1},
        "tyre": {"radius": 1, "stiffness": 0, "damping": 0, "mu": 0, "slope": 0, "c": 0, "e": 0, "slowest": 1,
                 "half_length": 1, "rolling": 0, "relaxation": 1, "settling": 0, "center": 1}},
    "shapes": {"": {"pose": 1, "size": 1, "radius": 1, "radii": 1, "length": 1, "vertices": 1, "x": 1, "y": 1,
                    "heights": 1, "color": 0, "friction": 0, "groups": 0, "faces": 0, "colors": 0}},
    "contact_rules": {"": {"friction": 0}}}
_CONTACT = {"dissipation": -1.0, "restitution": 0.0, "friction": 0.0, "slip_speed": 1.0, "exponent": 0.0, "reach": 1.0,
            "bend_damping": 0.0}
#: sections whose entries have default values in metres
_DEFAULTS = {"springs", "drags", "wrenches", "joint_forces", "contacts"}
#: of what acts along a coordinate: powers for lengths, and for angles
_SPRUNG = {"stiffness": (0, 2), "damping": (0, 2)}
_ALONG: dict[str, dict[str, tuple[float, float]]] = {
    "spring": {**_SPRUNG, "rest": (1, 0)},
    "law": {},
    "friction": {"coulomb": (1, 2), "viscous": (0, 2), "speed": (1, 0), "static": (1, 2), "stribeck": (1, 0)},
    "limit": {**_SPRUNG, "lower": (1, 0), "upper": (1, 0), "onset": (1, 0)},
    "servo": {**_SPRUNG, "target": (1, 0), "target_rate": (1, 0), "offset": (1, 2), "lower": (1, 2), "upper": (1, 2)},
    "torsion_bar": {"length": (1, 1), "diameter": (1, 1), "bore": (1, 1), "shear_modulus": (-1, -1), "damping": (0, 2),
                    "rest": (1, 0)},
    "belt": {"pulleys": (1, 1), "stiffness": (0, 0), "pretension": (1, 1), "damping": (0, 0), "slack": (1, 1)},
    "dc_motor": {"voltage": (1, 2), "resistance": (0, 2), "inductance": (0, 2), "constant": (0, 2), "gear": (0, 0),
                 "friction": (0, 2)},
    "brake": {"capacity": (1, 2), "reach": (1, 0), "damping": (0, 0)},
    "rolling_resistance": {"coefficient": (0, 0), "radius": (1, 1), "load": (1, 1), "speed": (1, 0)},
    "actuators": {"limit": (1, 2), "lower": (1, 2), "no_load_speed": (1, 0)},
    "armatures": {"inertia": (0, 2)}}
#: powers of the states of elements, by type; others have no unit of length
_STATES = {"tyre": 1, "hydraulic_cylinder": -1}
#: what the reads of laws of the machine are measured by, but for coordinates
_READS = {"t": 0, "parameter": 0, "position": 1, "velocity": 1, "omega": 0, "axes": 0}
#: entries that are no numbers
_TEXTS = {"type", "body", "parent", "child", "first", "second", "joint", "coordinate", "model", "axis", "axis1",
          "axis2", "normal", "across", "child_axis", "axle", "measure", "axes", "role", "kind", "friction_model",
          "at_closing", "element"}


def scaled(mechanism: bc.Mechanism, length: float) -> bc.Mechanism:
    """The mechanism with all lengths times `length`."""
    return _Scaled(mechanism, length).made()


def scaled_by(system: bc.System, mechanism: bc.Mechanism, length: float) -> tuple[Floats, Floats]:
    """What coordinates and speeds of a scaled system are divided by: those of the machine in metres are left."""
    powers = state_powers(mechanism)
    places, speeds = [], []
    for r in system.model.configuration.records:
        if r.name in powers:
            places.append(np.full(r.joint.nq, length ** powers[r.name]))
            speeds.append(np.full(r.joint.nu, length ** powers[r.name]))
        elif r.joint.nu:
            places.append(coordinate_sizes(r.joint, length))
            speeds.append(speed_sizes(r.joint, length))
    return np.concatenate(places), np.concatenate(speeds)


def state_powers(mechanism: bc.Mechanism) -> dict[str, int]:
    """Powers of the length of the states of ready-made elements, by name."""
    machine = json.loads(text_of(mechanism, json=True))
    kinds = {name: part.get("type", "") for section in ("springs", "joint_forces", "wrenches")
             for name, part in machine.get(section, {}).items()}
    return {name: _STATES.get(kinds.get(part.get("element", ""), ""), 0)
            for name, part in machine.get("states", {}).items()}


class _Scaled:
    """One machine on its way to another unit."""

    def __init__(self, mechanism: bc.Mechanism, length: float) -> None:
        self.mechanism, self.length = mechanism, length
        text = text_of(mechanism, json=True)
        self.machine: dict[str, Any] = json.loads(text)
        whole = Document.model_validate_json(text)
        for section in _DEFAULTS & self.machine.keys():
            for name, part in getattr(whole, section).items():
                usual = {entry: x for entry, x in part.model_dump(exclude_none=True).items() if x != 0.0}
                self.machine[section][name] = usual | self.machine[section][name]

    def made(self) -> bc.Mechanism:
        machine, length = self.machine, self.length
        machine["gravity"] = _times(machine["gravity"], length)
        assert "outputs" not in machine and "ranges" not in machine
        for section, kinds in _PARTS.items():
            for part in machine.get(section, {}).values():
                self.prescribed(part)
                self.laws(part)
                self.scale(part, kinds[part["type"] if len(kinds) > 1 else ""])
        for part in machine.get("contacts", {}).values():
            self.scale(part, {**_CONTACT, "stiffness": 1.0 - part["exponent"]})
        for section in ("joint_forces", "actuators", "armatures"):
            for part in machine.get(section, {}).values():
                turning = self.turning(part)
                self.laws(part, turning)
                table = _ALONG[part["type"] if section == "joint_forces" else section]
                self.scale(part, {entry: powers[turning] for entry, powers in table.items()})
        for coupler in machine.get("couplers", {}).values():
            for key, factor in coupler["factors"].items():
                coupler["factors"][key] = factor if self.angle(key) else factor / length
        for name, power in state_powers(self.mechanism).items():
            state = machine["states"][name]
            assert "rate" not in state
            state["initial"] = _times(state.get("initial", 0.0), length**power)
        return from_text(json.dumps(machine))

    def scale(self, part: dict[str, Any], powers: Mapping[str, float]) -> None:
        """Numbers of one part; those that have no power are refused."""
        for entry, value in part.items():
            if entry in powers:
                part[entry] = _times(value, self.length ** powers[entry])
            elif entry not in _TEXTS and not isinstance(value, bool) and entry not in _DONE:
                raise AssertionError(f"{entry} has no power of the length in this table")

    def turning(self, part: dict[str, Any]) -> bool:
        """Whether what an element acts on is an angle."""
        if part.get("type") == "belt":
            return True
        joints = part["joint"]
        kinds = {self.angle(key) for key in joints} if isinstance(joints, dict) else {
            self.angle(joints if "coordinate" not in part else f"{joints}.{part['coordinate']}")}
        assert len(kinds) == 1, "sums of lengths and angles are not scaled"
        return kinds.pop()

    def angle(self, key: str) -> bool:
        """Whether a coordinate is an angle."""
        joint, coordinate = (key, None) if key in self.machine["joints"] else key.rsplit(".", 1)
        kind = self.mechanism.joint(joint).joint
        return turns(kind)[0 if coordinate is None else kind.speed_names.index(coordinate)]

    def laws(self, part: dict[str, Any], turning: bool = False) -> None:
        """Formulas of a spring's length, of a coordinate, of the ground and of the whole machine."""
        size, force = (1.0, self.length**2) if turning else (self.length, self.length)
        for entry, names, factor in (("law", "x|rate", force), ("potential", "x", self.length**2),
                                     ("height", "x|y", self.length)):
            if entry in part:
                part[entry] = _times(_inside(part[entry], names, size), factor)
        for entry, value in part.items():
            if isinstance(value, dict) and "formulas" in value:
                six = [self.length] * 3 + [self.length**2] * 3
                one = [force if entry == "machine_law" else 1.0]
                self.machine_law(value, six if len(value["formulas"]) == 6 else one)

    def machine_law(self, law: dict[str, Any], factors: list[float]) -> None:
        for i, read in enumerate(law["reads"]):
            power = _READS[read[0]] if read[0] in _READS else 0 if self.angle(read[1]) else 1
            law["formulas"] = [_inside(text, f"r{i + 1}", self.length**power) for text in law["formulas"]]
            if len(read) == 6:
                read[3:] = _times(read[3:], self.length)
        law["formulas"] = [_times(text, factor) for text, factor in zip(law["formulas"], factors, strict=True)]

    def prescribed(self, part: dict[str, Any]) -> None:
        """Motions of single angles stay, and flexible bodies have shapes of their own."""
        assert "prescribed" not in part or part["type"] == "revolute"
        if "flexible" in part:
            _flexible(part["flexible"], self.length)


#: entries that are scaled, or checked, elsewhere
_DONE = {"law", "potential", "machine_law", "height", "flexible", "prescribed", "opening"}


def _flexible(body: dict[str, Any], length: float) -> None:
    """Modal coordinates are lengths, products of two are areas; what is no displacement is measured by them."""
    def sized(integrals: dict[str, Any], sizes: Floats) -> None:
        k = len(sizes)
        by, pair = 1.0 / sizes, length**2 / np.outer(sizes, sizes)
        factors = {"first": length, "second": length**2, "moment": length, "first_rates": length * by[:, None],
                   "second_rates": length**2 * by[:, None], "second_curves": np.repeat(pair, 9, axis=1),
                   "linear": length * by, "angular": length**2 * by, "angular_rates": np.tile(pair, 3), "modal": pair}
        for entry, factor in factors.items():
            values = np.asarray(integrals[entry], dtype=float)
            integrals[entry] = (values * factor).tolist() if k or values.size else integrals[entry]

    k = len(body["stiffness"])
    body["nodes"] = _times(body["nodes"], length)
    body["modes"] = (np.array(body["modes"]) * np.repeat([1.0, 1.0 / length], 3 * k)).tolist()
    body["forces"] = (np.array(body["forces"]) * np.repeat([1.0, length], 3 * k)).tolist()
    body.pop("stresses", None)
    sized(body["integrals"], np.full(k, length))
    more = body.get("stiffening")
    if more is not None:
        more["shapes"] = _times(more["shapes"], 1.0 / length)
        sized(more["integrals"], np.concatenate([np.full(k, length), np.full(len(more["products"]), length**2)]))


def _inside(text: str, names: str, size: float) -> str:
    """A formula whose arguments come in the new unit."""
    return re.sub(rf"\b({names})\b", rf"(\1 / {size!r})", text) if size != 1.0 else text


def _times(value: Any, factor: float) -> Any:
    if value is None or factor == 1.0 or (isinstance(value, dict) and "formulas" in value):
        return value
    if isinstance(value, dict) and not value.keys() <= {"position", "rotation", "rpy"}:
        return {key: _times(x, factor) for key, x in value.items()}
    if isinstance(value, dict):
        return {**value, "position": _times(value.get("position", [0.0, 0.0, 0.0]), factor)}
    if isinstance(value, list | tuple):
        return [_times(x, factor) for x in value]
    return f"{factor!r} * ({value})" if isinstance(value, str) else value * factor
