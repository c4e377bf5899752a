"""Flexible bodies in model files: all their numbers, array by array, as rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import bellcrank.io.native.flexible_schema as schema
from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.mechanism.flexible.flexible_body import FlexibleBody
from bellcrank.mechanism.flexible.modal_kinetics import ShapeIntegrals, Stiffening
from bellcrank.mechanism.flexible.reduced_body import StressModes

__all__ = ["dump_flexible", "read_flexible"]

#: the arrays of `ShapeIntegrals`, and their shapes for k modes
_INTEGRALS = {"first": "33", "first_rates": "k33", "second": "33", "second_rates": "k33", "second_curves": "kk33",
              "linear": "3k", "angular": "3k", "angular_rates": "k3k", "modal": "kk", "moment": "3"}


def dump_flexible(body: FlexibleBody) -> dict[str, Any]:
    """What a file holds of a flexible body."""
    made: dict[str, Any] = {
        "inertia": body.inertia, "names": dict(body.names), "nodes": _rows(body.nodes), "modes": _rows(body.modes),
        "stiffness": _rows(body.stiffness), "damping": _rows(body.damping),
        "integrals": _dump_integrals(body.integrals)}
    if body.clamped is not None:
        made["clamped"] = body.clamped
    more = body.stiffening
    if more is not None:
        made["stiffening"] = {"products": [list(pair) for pair in more.products], "shapes": _rows(more.shapes),
                              "integrals": _dump_integrals(more.integrals)}
    if body.forces is not None:
        made["forces"] = _rows(body.forces)
    if body.edges is not None:
        made["edges"] = body.edges.tolist()
    if body.stresses is not None:
        made["stresses"] = _dump_stresses(body.stresses)
    return made


def _dump_stresses(modes: StressModes) -> dict[str, Any]:
    made: dict[str, Any] = {"nodes": modes.nodes.tolist(), "positions": _rows(modes.positions),
                            "stress": _rows(modes.stress)}
    if modes.strain is not None:
        made["strain"] = _rows(modes.strain)
    if modes.places:
        made["places"] = list(modes.places)
    return made


def _read_stresses(part: schema.StressesPart, k: int) -> StressModes:
    p = len(part.nodes)
    if part.places is not None and len(part.places) != p:
        raise ModelError(f"stresses: places: needs {p} names, got {len(part.places)}")
    return StressModes(_array("stresses: stress", part.stress, (p, 6, k)),
                       None if part.strain is None else _array("stresses: strain", part.strain, (p, 6, k)),
                       np.array([_whole("stresses: nodes", x) for x in part.nodes], dtype=np.int64),
                       _array("stresses: positions", part.positions, (p, 3)), tuple(part.places or ()))


def read_flexible(part: schema.FlexiblePart) -> FlexibleBody:
    """The body."""
    n, k = len(part.nodes), len(part.stiffness)
    more = None
    if part.stiffening is not None:
        given = part.stiffening
        pairs = [[_whole("stiffening: products", x) for x in pair] for pair in given.products]
        for pair in pairs:
            if len(pair) != 2 or not 0 <= pair[0] <= pair[1] < k:
                raise ModelError(f"stiffening: the product {pair} must be two of the {k} modes, in order")
        s = len(pairs)
        more = Stiffening(tuple((a, b) for a, b in pairs), _array("shapes", given.shapes, (n, 3, s)),
                          _read_integrals(given.integrals, k + s))
    return FlexibleBody(
        _array("nodes", part.nodes, (n, 3)), _array("modes", part.modes, (n, 6, k)),
        _array("stiffness", part.stiffness, (k, k)), _array("damping", part.damping, (k, k)),
        _read_integrals(part.integrals, k), {name: _whole(f"node {name!r}", x) for name, x in part.names.items()},
        part.inertia, part.clamped, more,
        None if part.forces is None else _array("forces", part.forces, (n, 6, k)),
        None if part.stresses is None else _read_stresses(part.stresses, k),
        None if part.edges is None else _array("edges", part.edges, (len(part.edges), 2)).astype(np.int64))


def _whole(what: str, value: float) -> int:
    if value != int(value):
        raise ModelError(f"{what}: needs whole numbers, got {value}")
    return int(value)


def _dump_integrals(integrals: ShapeIntegrals) -> dict[str, Any]:
    return {"mass": float(integrals.mass), **{name: _rows(getattr(integrals, name)) for name in _INTEGRALS}}


def _read_integrals(part: schema.IntegralsPart, k: int) -> ShapeIntegrals:
    arrays = [_array(f"integrals: {name}", getattr(part, name), tuple(k if c == "k" else int(c) for c in shape))
              for name, shape in _INTEGRALS.items()]
    return ShapeIntegrals(part.mass, *arrays)


def _rows(values: Floats) -> list[Any]:
    flat: list[Any] = values.tolist() if values.ndim < 3 else values.reshape(len(values), -1).tolist()
    return flat


def _array(what: str, rows: Any, shape: tuple[int, ...]) -> Floats:
    try:
        found = np.array(rows, dtype=float)
    except ValueError:
        raise ModelError(f"{what}: rows have different lengths") from None
    if found.size != int(np.prod(shape)):
        raise ModelError(f"{what}: needs {' x '.join(map(str, shape))} numbers, got {found.size}")
    made = found.reshape(shape)
    made.setflags(write=False)
    return made
