"""The tests of `make quick`: a part that touches every package, for use while working. Printed if run as a program.

The first entry of a package is a short one, which `test_quick.py` runs to see that it really calls the package.
Doctests of every module belong to it as well.
"""

from __future__ import annotations

#: a short test that goes through every method with loops
_COUNTED = "test_operation_counts.py::test_loops_are_counted_or_refused"

#: package in src/bellcrank -> files, or tests in them, relative to the folder of tests
QUICK: dict[str, tuple[str, ...]] = {
    "": ("test_math.py::test_derivatives", "test_math.py"),
    "files": ("test_damaged_matrices.py::test_a_mat_file_that_crashes_its_reader", "test_damaged_matrices.py"),
    "scalar": ("test_scalar.py::test_digest_is_the_same_in_every_process", "test_scalar.py"),
    "target": ("test_sincos.py::test_zero_keeps_its_sign",),
    "target/c": ("test_export_c.py::test_names_cannot_end_comments", "test_export_c.py::test_refusals"),
    "target/cuda": ("test_cuda.py::test_arrays_of_the_device_stay_there", "test_cuda.py"),
    "target/llvm": ("test_sincos.py::test_zero_keeps_its_sign", "test_lanes.py", "test_cache.py"),
    "schedule": ("test_operators.py::test_lemma_5_for_a_chain",),
    "integrate": ("test_simulate_impulses.py::test_attaching_where_it_is_open_is_refused",),
    "spatial": ("test_spatial.py::test_vectors", "test_spatial.py"),
    "mechanism": ("test_laws.py::test_good_laws_pass", "test_laws.py", "test_validation.py"),
    "mechanism/joints": ("test_joints.py::test_quaternion_algebra", "test_joints.py"),
    "mechanism/flexible": ("test_flexible_bodies.py::test_a_good_one_passes", "test_flexible_bodies.py"),
    "mechanism/geometry": ("test_shapes.py::test_bounds", "test_shapes.py"),
    "mechanism/contact": ("test_contact_shapes.py::test_contacts_of_many_shapes", "test_contact_shapes.py"),
    "mechanism/forces": ("test_force_elements.py::test_drag_by_hand", "test_force_elements.py"),
    **dict.fromkeys(("topology", "loops", "lowering"), (_COUNTED,)),
    **{f"formulations/{method}": (_COUNTED,) for method in (
        "common", "complement", "dense", "divide", "elimination", "kane", "momenta", "operator", "recursive",
        "reduction")},
    "formulations": ("test_operators.py::test_lemma_5_for_a_chain", "test_operators.py", "test_references.py"),
    "derivatives": ("test_derivatives.py::test_results_have_names",),
    "system": ("test_mappings.py::test_states_of_driven_trees", "test_refusals.py", "test_mappings.py"),
    "compiled": ("test_mappings.py::test_states_of_driven_trees",),
    "inverse_kinematics": ("test_inverse_kinematics.py::test_priorities_are_strict", "test_inverse_kinematics.py"),
    "simulate": ("test_simulate_impulses.py::test_attaching_where_it_is_open_is_refused", "test_simulate_impulses.py"),
    "analyze": ("test_check_joint.py::test_a_joint_of_ones_own_passes", "test_check_joint.py"),
    "examples": ("test_cli_options.py::test_examples_from_python_check_their_options",),
    "io": ("test_convert.py::test_an_xml_file_is_what_its_outermost_element_says", "test_urdf.py"),
    "io/common": ("test_urdf.py::test_joint_types", "test_urdf_hostile.py::test_damaged_files"),
    "io/urdf": ("test_urdf.py::test_joint_types", "test_urdf.py"),
    "io/export": ("test_export_c.py::test_names_cannot_end_comments",),
    "io/native": ("test_native_formula.py::test_what_formulas_mean", "test_native_formula.py", "test_native_errors.py"),
    "io/sdf": ("test_sdf.py::test_every_joint_type", "test_sdf.py"),
    "io/mjcf": ("test_mjcf.py::test_plugins_and_buffers_are_left_out", "test_mjcf.py"),
    "view": ("test_view_scene.py::test_every_example_is_seen", "test_view_scene.py"),
    "studies": ("test_sweep.py::test_a_grid_and_samples", "test_sweep_samples.py"),
    "papers": ("test_papers.py::test_tables",),
    "cli": ("test_cli_options.py::test_other_endings_are_refused", "test_cli_options.py"),
}


def chosen() -> list[str]:
    """Arguments for pytest, relative to the folder of the project: the files, and the doctests."""
    entries = list(dict.fromkeys(entry for entries in QUICK.values() for entry in entries))
    whole = {entry for entry in entries if "::" not in entry}
    kept = [e for e in entries if e in whole or e.split("::")[0] not in whole]
    return [*(f"tests/{entry}" for entry in kept), "src"]


if __name__ == "__main__":
    print(*chosen())
