"""Bellcrank: dynamics of machines made of linked bodies.

Describe bodies and joints in a `Mechanism`, `compile` it, compute with the `System`. SI units, radians;
spatial vectors are [angular; linear]; quaternions are scalar first; inertia is about the centre of mass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bellcrank.arguments import checked
from bellcrank.lazy_names import on_first_use

__version__ = "0.1.0"

_PLACES = {
    "animate": "view.animating", "show": "view.showing",
    "analyze": "analyze", "check_joint": "analyze", "cite": "formulations", "compare": "analyze",
    "compile": "compiled.compile", "examples": "examples", "gradient": "analyze", "identify": "analyze",
    "BeamSection": "mechanism.flexible.beam_elements", "FlexibleBody": "mechanism.flexible.flexible_body",
    "Inertia": "mechanism.inertia", "SectionPoint": "mechanism.flexible.beam_elements",
    "export_c": "io.export.export_c", "to_casadi": "io.export.casadi_function",
    "to_jax": "io.export.array_functions", "to_sympy": "io.export.sympy_expressions",
    "to_torch": "io.export.array_functions",
    **dict.fromkeys(("load", "read", "save"), "io.load"),
    "math": "math", "Mechanism": "mechanism.mechanism", "papers": "papers", "targets": "inverse_kinematics.targets",
    "Pose": "mechanism.pose", "System": "compiled.system",
    **dict.fromkeys(("Cylindrical", "Free", "Joint", "Planar", "Prismatic", "Revolute", "Screw", "Spherical",
                     "Universal", "Weld"), "mechanism.joints"),
    **dict.fromkeys(("AssemblyError", "AssemblyWarning", "BellcrankError", "BellcrankWarning", "BranchWarning",
                     "CacheWarning", "DrawingWarning", "FileError", "ModelError", "NotYetError", "SingularError",
                     "SlowWarning", "StateError"), "errors"),
    **dict.fromkeys(("Angle", "Distance", "PointOnLine", "PointOnPlane"), "mechanism.constraints"),
    **dict.fromkeys(("KnifeEdge", "RollingBall", "RollingDisk"), "mechanism.constraints"),
    **dict.fromkeys(("Box", "Capsule", "Cone", "Cylinder", "Ellipsoid", "Plane", "Sphere"),
                    "mechanism.geometry.solids"), "HeightField": "mechanism.geometry.solids",
    "Mesh": "mechanism.geometry.triangle_mesh",
    "State": "system.state", "Table": "mechanism.table",
    "Result": "simulate.result", "open_result": "simulate.netcdf",
    **dict.fromkeys(("Sampled", "Traced"), "simulate.control"), "SimulationWarning": "simulate.run",
    **dict.fromkeys(("Rollout", "rollout"), "simulate.rollout"),
    **dict.fromkeys(("Change", "Event", "attach", "detach", "enter", "leave", "lock", "unlock"), "simulate.events"),
    "joint_limit": "simulate.stops", "lift_off": "simulate.stops",
    **dict.fromkeys(("latin_hypercube", "random_samples", "sobol"), "studies.sample_table"),
    "drawn_samples": "studies.sample_table",
    "open_sweep": "studies.zarr_store", "sweep": "studies.sweeping",
}

__all__ = [
    "Angle", "AssemblyError", "AssemblyWarning", "BeamSection", "BellcrankError", "BellcrankWarning", "Box",
    "BranchWarning", "CacheWarning", "Capsule", "Change", "Cone", "Cylinder", "Cylindrical", "Distance",
    "DrawingWarning", "Ellipsoid", "Event",
    "FileError", "FlexibleBody", "Free", "HeightField", "Inertia", "Joint", "KnifeEdge", "Mechanism", "Mesh",
    "ModelError", "NotYetError", "Planar", "Plane", "PointOnLine", "PointOnPlane", "Pose", "Prismatic", "Result",
    "Revolute", "RollingBall", "RollingDisk", "Rollout", "Sampled", "Screw", "SectionPoint", "SimulationWarning",
    "SingularError", "SlowWarning", "Sphere", "Spherical", "State", "StateError", "System", "Table", "Traced",
    "Universal", "Weld",
    "__version__", "analyze", "animate", "attach", "check_joint", "cite", "compare", "compile", "detach",
    "drawn_samples", "enter", "examples", "export_c", "gradient", "identify", "joint_limit", "latin_hypercube", "leave",
    "lift_off", "load", "lock", "math", "open_result", "open_sweep", "papers", "random_samples", "read", "rollout",
    "save", "show", "sobol", "sweep", "targets", "to_casadi", "to_jax", "to_sympy", "to_torch", "unlock",
]

if TYPE_CHECKING:
    from bellcrank import analyze, examples, math, papers
    from bellcrank.analyze import check_joint, compare, gradient, identify
    from bellcrank.compiled.compile import compile
    from bellcrank.compiled.system import System
    from bellcrank.errors import (
        AssemblyError,
        AssemblyWarning,
        BellcrankError,
        BellcrankWarning,
        BranchWarning,
        CacheWarning,
        DrawingWarning,
        FileError,
        ModelError,
        NotYetError,
        SingularError,
        SlowWarning,
        StateError,
    )
    from bellcrank.formulations import cite
    from bellcrank.inverse_kinematics import targets
    from bellcrank.io.export.array_functions import to_jax, to_torch
    from bellcrank.io.export.casadi_function import to_casadi
    from bellcrank.io.export.export_c import export_c
    from bellcrank.io.export.sympy_expressions import to_sympy
    from bellcrank.io.load import load, read, save
    from bellcrank.mechanism.constraints import (
        Angle,
        Distance,
        KnifeEdge,
        PointOnLine,
        PointOnPlane,
        RollingBall,
        RollingDisk,
    )
    from bellcrank.mechanism.flexible.beam_elements import BeamSection, SectionPoint
    from bellcrank.mechanism.flexible.flexible_body import FlexibleBody
    from bellcrank.mechanism.geometry.solids import Box, Capsule, Cone, Cylinder, Ellipsoid, HeightField, Plane, Sphere
    from bellcrank.mechanism.geometry.triangle_mesh import Mesh
    from bellcrank.mechanism.inertia import Inertia
    from bellcrank.mechanism.joints import (
        Cylindrical,
        Free,
        Joint,
        Planar,
        Prismatic,
        Revolute,
        Screw,
        Spherical,
        Universal,
        Weld,
    )
    from bellcrank.mechanism.mechanism import Mechanism
    from bellcrank.mechanism.pose import Pose
    from bellcrank.mechanism.table import Table
    from bellcrank.simulate.control import Sampled, Traced
    from bellcrank.simulate.events import Change, Event, attach, detach, enter, leave, lock, unlock
    from bellcrank.simulate.netcdf import open_result
    from bellcrank.simulate.result import Result
    from bellcrank.simulate.rollout import Rollout, rollout
    from bellcrank.simulate.run import SimulationWarning
    from bellcrank.simulate.stops import joint_limit, lift_off
    from bellcrank.studies.sample_table import drawn_samples, latin_hypercube, random_samples, sobol
    from bellcrank.studies.sweeping import sweep
    from bellcrank.studies.zarr_store import open_sweep
    from bellcrank.system.state import State
    from bellcrank.view.animating import animate
    from bellcrank.view.showing import show


__getattr__ = on_first_use(__name__, _PLACES, globals(), checked)


def __dir__() -> list[str]:
    return __all__
