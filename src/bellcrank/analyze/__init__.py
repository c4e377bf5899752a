"""Questions about a machine (public as ``bellcrank.analyze``), each a function of a `System`.

Most are answered by computing in many states; a few look closely at one: at its loops, its force elements, its
operators. What everybody needs at a state is a method of the `System` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bellcrank.arguments import checked
from bellcrank.lazy_names import on_first_use

_PLACES = {"actuator_forces": "element_forces", "base_parameters": "identification", "body_energies": "element_forces",
           "branches": "curves",
           "check_joint": "joint_checks", "compare": "comparison", "contacts": "element_forces",
           "coupler_curve": "curves",
           "deflection": "deformed_bodies", "dissipated_power": "element_forces", "draw_deflection": "deformed_bodies",
           "drawing_errors": "element_forces", "drive": "driven", "element_wrenches": "element_forces",
           "equilibrium": "statics", "equilibrium_derivatives": "compliances",
           "explain": "explanation", "gradient": "compliances", "identify": "identification",
           "in_speeds": "chosen_speeds", "inertial_parameters": "identification",
           "inverse_dynamics_with_contacts": "contact_inverse", "linearize": "linear_models",
           "loop_acceleration_error": "element_forces", "loop_coordinates": "element_forces",
           "loop_drive": "element_forces", "loop_jacobian": "element_forces", "loop_loads": "element_forces",
           "loop_speeds": "element_forces", "mass_factors": "operator_algebra", "modes": "vibration",
           "operators": "operator_algebra", "partition": "operator_algebra", "section_forces": "deformed_bodies",
           "stored_energy": "element_forces", "stresses": "deformed_bodies", "workspace": "curves"}

__all__ = ["actuator_forces", "base_parameters", "body_energies", "branches", "check_joint", "compare", "contacts",
           "coupler_curve", "deflection",
           "dissipated_power", "draw_deflection", "drawing_errors", "drive", "element_wrenches", "equilibrium",
           "equilibrium_derivatives", "explain", "gradient",
           "identify", "in_speeds", "inertial_parameters", "inverse_dynamics_with_contacts",
           "linearize", "loop_acceleration_error", "loop_coordinates",
           "loop_drive", "loop_jacobian", "loop_loads", "loop_speeds", "mass_factors", "modes", "operators",
           "partition", "section_forces", "stored_energy", "stresses", "workspace"]

if TYPE_CHECKING:
    from bellcrank.analyze.chosen_speeds import in_speeds
    from bellcrank.analyze.comparison import compare
    from bellcrank.analyze.compliances import equilibrium_derivatives, gradient
    from bellcrank.analyze.contact_inverse import inverse_dynamics_with_contacts
    from bellcrank.analyze.curves import branches, coupler_curve, workspace
    from bellcrank.analyze.deformed_bodies import deflection, draw_deflection, section_forces, stresses
    from bellcrank.analyze.driven import drive
    from bellcrank.analyze.element_forces import (
        actuator_forces,
        body_energies,
        contacts,
        dissipated_power,
        drawing_errors,
        element_wrenches,
        loop_acceleration_error,
        loop_coordinates,
        loop_drive,
        loop_jacobian,
        loop_loads,
        loop_speeds,
        stored_energy,
    )
    from bellcrank.analyze.explanation import explain
    from bellcrank.analyze.identification import base_parameters, identify, inertial_parameters
    from bellcrank.analyze.joint_checks import check_joint
    from bellcrank.analyze.linear_models import linearize
    from bellcrank.analyze.operator_algebra import mass_factors, operators, partition
    from bellcrank.analyze.statics import equilibrium
    from bellcrank.analyze.vibration import modes


__getattr__ = on_first_use(__name__, _PLACES, globals(), checked)


def __dir__() -> list[str]:
    return __all__
