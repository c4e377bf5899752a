"""URDF files: a tree of links and joints in XML, as robots are published in, and the ways people close loops in it.

A URDF <origin> is the pose of a child link in its parent link, so it becomes the joint's `parent_pose`
and link frames are body frames. The root link is a body like the others, joined to the ground.
Which spellings of loops are read, and how, is written down in docs/howto/urdf.md.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from bellcrank.io.common.model_meshes import Folders
from bellcrank.io.common.readings import with_ranges
from bellcrank.io.common.xml import read_xml
from bellcrank.io.report import ReadReport, warn_of_surprises
from bellcrank.io.urdf.robot import RobotReader, check_kind
from bellcrank.io.urdf.sidecar import Closures, find_sidecar
from bellcrank.io.urdf.write_tree import write_urdf
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["load_urdf", "read_urdf", "write_urdf"]


def load_urdf(path: str | os.PathLike[str], **options: Any) -> Mechanism:
    """The machine described by a URDF file; options are those of `read_urdf`.

    The root link is welded to the ground, or free to move with ``floating_base=True`` (joint "root_joint").
    Joints come in depth-first order from the root, siblings in file order; joints that close loops come after them.
    Angles written as rounded multiples of pi/2 (1.57079632679) become exact unless ``exact_angles=False``.

    Joints that mimic others are coupled to them exactly; ``mimic="free"`` lets them move on their own.
    ``dynamics=True`` adds the damping and friction of <dynamics> as force elements. `closures` is the path of a YAML
    file that lists loop closures (also looked for beside the URDF file); without it, ``loop_closures.yaml`` or a YAML
    file of the same name beside the URDF file is used if it holds some; ``closures=False`` looks for none.
    `srdf` is a file whose <disable_collisions> say which links never touch: `Mechanism.add_contacts` leaves them out.

    Shapes of <visual> and <collision> come with the bodies. Meshes are looked for in the folder of the file (or of the
    package around it), ``package://NAME/`` in folders NAME beside and above it; `packages` are further folders. They
    are read when they are shown; one that is not found is told by a `ReadWarning`.

    Whatever in the file would change the motion and is not modelled is told by one `ReadWarning`; `read_urdf` also
    returns the full report.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "box.urdf")
    ...     _ = file.write_text("<robot name='box'><link name='box'/></robot>")
    ...     load_urdf(file, floating_base=True)
    <Mechanism 'box': 1 bodies, 1 joints>
    """
    mechanism, report = read_urdf(path, **options)
    warn_of_surprises(report, "read_urdf")
    return mechanism


def read_urdf(path: str | os.PathLike[str], *, floating_base: bool = False, exact_angles: bool = True,
              gravity: Sequence[float] = (0.0, 0.0, -9.81), mimic: Literal["coupler", "free"] = "coupler",
              dynamics: bool = False, closures: Closures = None, packages: Folders = None,
              srdf: str | os.PathLike[str] | None = None) -> tuple[Mechanism, ReadReport]:
    """As `load_urdf`, with a report of what was kept, changed and ignored, and without a warning."""
    if mimic not in ("coupler", "free"):
        raise ValueError(f"mimic must be 'coupler' or 'free', got {mimic!r}")
    root = read_xml(path)
    check_kind(root)
    reader = RobotReader(root, exact_angles, coupled=mimic == "coupler", dynamics=dynamics, packages=packages)
    sidecar = find_sidecar(root.source, closures, reader)
    machine = reader.mechanism(floating_base, gravity, sidecar)
    if srdf is not None:
        _read_srdf(machine, reader, srdf)
    return with_ranges(machine, reader.report())


def _read_srdf(machine: Mechanism, reader: RobotReader, path: str | os.PathLike[str]) -> None:
    """Pairs of links that never touch, as rules for `Mechanism.add_contacts`."""
    root = read_xml(path)
    if root.tag != "robot":
        raise root.error("is not an SRDF file: its outermost element is not <robot>")
    known = {body.name for body in machine.bodies}
    for element in root.all("disable_collisions"):
        ends = element.attribute("link1"), element.attribute("link2")
        if set(ends) <= known and ends[0] != ends[1]:
            machine.set_contact_rule(*ends, touch=False)
        else:
            reader.note("ignored", element, "a link of it is not in the machine")
