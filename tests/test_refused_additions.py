"""What is refused leaves nothing behind: the same call with another name, or without the mistake, goes through."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import bellcrank as bc

LINE = ("ground", "arm", (0.0, 0.0, 0.0), (0.1, 0.0, 0.0))
MOTOR = {"voltage": 1.0, "resistance": 1.0, "inductance": 1e-3, "constant": 0.1, "rotor_inertia": 1e-3}
BRISTLES = {"stiffness": 1e4, "friction": 0.3, "friction_model": "bristle"}


def machine() -> bc.Mechanism:
    m = bc.Mechanism("arm")
    arm = m.add_body("arm", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("hinge", bc.Revolute("x"), m.ground, arm)
    m.add_body("bare")
    m.add_joint("weld", bc.Weld(), arm, "bare")
    m.add_shape(arm, bc.Sphere(0.1), role="collision")
    m.add_shape(m.ground, bc.Plane(), role="collision")
    return m


def parts(m: bc.Mechanism) -> tuple[int, ...]:
    return tuple(map(len, (m.bodies, m.joints, m.force_elements, m.states, m.armatures, m.contacts, m.shapes,
                           m.contact_rules)))


Step = Callable[[bc.Mechanism], object]
#: what is there already, and what is refused because of that
REFUSED: dict[str, tuple[Step, Step]] = {
    "motor, by its rotor": (lambda m: m.add_armature("e", "hinge", 0.1), lambda m: m.add_dc_motor("e", "hinge",
                                                                                              **MOTOR)),
    "motor": (lambda m: m.add_body("e current"), lambda m: m.add_dc_motor("e", "hinge", **MOTOR)),
    "brake": (lambda m: m.add_body("e bend"), lambda m: m.add_brake("e", "hinge", capacity=1.0)),
    "brake, by a frame": (lambda m: m.add_frame("e bend", "arm"), lambda m: m.add_brake("e", "hinge", capacity=1.0)),
    "cylinder": (lambda m: m.add_body("e rod"), lambda m: m.add_hydraulic_cylinder(
        "e", *LINE, head_area=1e-4, rod_area=1e-4, closed=0.1, stroke=0.3)),
    "tyre": (lambda m: m.add_body("e across"), lambda m: m.add_tyre("e", "arm", radius=0.3, stiffness=1e5,
                                                                    relaxation=0.3)),
    "state": (lambda m: m.add_body("e"), lambda m: m.add_state("e", lambda at: 0.0)),
    "contact": (lambda m: m.add_body("e bend 0y"), lambda m: m.add_contact("e", "ground", "arm", **BRISTLES)),
    "contacts": (lambda m: m.add_body("arm sphere, ground plane bend 0y"),
                 lambda m: m.add_contacts(["arm"], ["ground"], **BRISTLES)),
    "plane of nothing": (lambda m: None, lambda m: m.add_contacts(["bare"], bc.Plane())),
    "plane of the ground": (lambda m: None, lambda m: m.add_contacts(["ground"], bc.Plane())),
    "plane and an unknown body": (lambda m: None, lambda m: m.add_contacts("all", bc.Plane(), exclude=[("arm", "x")])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_leaves_nothing_behind(name: str) -> None:
    m = machine()
    before, add = REFUSED[name]
    before(m)
    there = parts(m)
    with pytest.raises(bc.ModelError):
        add(m)
    assert parts(m) == there


def test_materials_of_contacts_have_names() -> None:
    m = machine()
    with pytest.raises(bc.ModelError, match="'frcition'.*friction"):
        m.add_contacts("all", bc.Plane(), frcition=0.3)
