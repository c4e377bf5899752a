"""What notebooks show of mechanisms, systems and results: a still and a small table, quickly, and never an error."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from bellcrank.compiled.compile import compile
from bellcrank.errors import BellcrankError
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.simulate.result import Result
from bellcrank.system.machine_functions import Machine
from bellcrank.view.animating import svg_of
from bellcrank.view.scene import Scene
from bellcrank.view.scenes import scene_of

__all__ = ["html_of"]

#: larger machines are described without a picture
_MOST_BODIES = 40
#: names that a table lists
_LISTED = 8


def html_of(thing: Mechanism | Machine | Result, more: str = "") -> str:
    """A piece of HTML; `more` stands below it. Nothing is compiled: poses are computed by NumPy."""
    mechanism = _mechanism(thing)
    if mechanism is None:
        return more
    rows = _rows(thing, mechanism)
    table = "".join(f'<tr><th style="text-align:left;padding:2px 12px 2px 0;font-weight:600">{html.escape(name)}</th>'
                    f'<td style="text-align:left">{html.escape(value)}</td></tr>' for name, value in rows)
    return ('<div style="display:flex;flex-wrap:wrap;gap:20px;align-items:center;margin:6px 0">'
            f'<div>{_still(thing, mechanism)}</div><table style="border-collapse:collapse">{table}</table></div>{more}')


def _mechanism(thing: Mechanism | Machine | Result) -> Mechanism | None:
    if isinstance(thing, Mechanism):
        return thing
    system = thing.system if isinstance(thing, Result) else thing
    return None if system is None else system.model.described


def _still(thing: Mechanism | Machine | Result, mechanism: Mechanism) -> str:
    if len(mechanism.bodies) > _MOST_BODIES or not mechanism.bodies:
        return ""
    try:
        return svg_of(_scene(thing, mechanism), width=340, height=240)
    except (BellcrankError, ArithmeticError, ValueError, np.linalg.LinAlgError) as error:  # a half-made description
        return f"<em>no picture: {html.escape(str(error).splitlines()[0] if str(error) else type(error).__name__)}</em>"


def _scene(thing: Mechanism | Machine | Result, mechanism: Mechanism) -> Scene:
    """Of a result its first sample; of a machine a closed position."""
    if isinstance(thing, Mechanism):
        return scene_of(thing)
    system = thing.system if isinstance(thing, Result) else thing
    assert system is not None
    plain = compile(mechanism, backend="numpy", cut=system.model.tree.cut_names, lock="massless")
    numbers = {k: float(np.ravel(v)[0]) for k, v in system.model.values.items()}
    plain = plain.with_parameters(**numbers) if numbers else plain
    if isinstance(thing, Machine) or "q" not in thing or "coordinate" not in thing["q"].dims:
        return scene_of(plain)
    q = thing["q"].transpose(..., "coordinate").values.reshape(-1, thing.sizes["coordinate"])
    if not len(q) or q.shape[1] != plain.nq or not np.isfinite(q[0]).all():
        return scene_of(plain)
    return scene_of((plain, q[0]))


def _rows(thing: Mechanism | Machine | Result, mechanism: Mechanism) -> list[tuple[str, str]]:
    rows = [("mechanism", mechanism.name), ("bodies", _listed([b.name for b in mechanism.bodies])),
            ("joints", _listed([j.name for j in mechanism.joints]))]
    elements: tuple[Any, ...] = (*mechanism.springs, *mechanism.bushings, *mechanism.drags, *mechanism.wrenches,
                                 *mechanism.joint_forces, *mechanism.joint_sums, *mechanism.drives,
                                 *mechanism.contacts)
    forces = [e.name for e in elements]
    if forces:
        rows.append(("force elements", _listed(forces)))
    if isinstance(thing, Mechanism):
        return rows
    if isinstance(thing, Machine):
        rows += [("coordinates, speeds", f"{thing.nq}, {thing.nu}"), ("method", thing.model.method)]
        if thing.model.tree.looped:
            rows.append(("loops close by", _listed([c.name for c in thing.model.tree.closures])))
        return rows
    if thing.sizes.get("time"):
        rows.append(("time", f"{float(thing['time'][0]):g} to {float(thing['time'][-1]):g} s, {thing.sizes['time']} "
                             "samples"))
    rows += [(name.replace("_", " "), f"{thing.attrs[name]}") for name in ("stepper", "status") if name in thing.attrs]
    return [*rows, ("see it move", "result.animate()")]


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_LISTED])
    return f"{len(names)}: {shown}{', …' if len(names) > _LISTED else ''}" if names else "none"
