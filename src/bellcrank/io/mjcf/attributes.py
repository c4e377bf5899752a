"""Attributes and elements as text."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.io.mjcf.layout import floats
from bellcrank.mechanism.joints import quaternion
from bellcrank.mechanism.pose import Pose

__all__ = ["given", "line", "where"]


def where(pose: Pose) -> dict[str, Any]:
    """Attributes of a pose, those that matter."""
    at = np.array(floats("a pose", pose.position))
    out: dict[str, Any] = {}
    if at.any():
        out["pos"] = at
    if not (pose.rotation == np.eye(3)).all():
        out["quat"] = quaternion.from_matrix(pose.rotation)
    return out


def given(**attributes: Any) -> str:
    """Attributes as text; numbers so that they are read back unchanged."""
    out = []
    for name, value in attributes.items():
        if isinstance(value, str):
            if not value.isprintable():
                raise ModelError(f"the name {value!r} has characters that a file cannot hold")
            out.append(f" {name}={quoteattr(value)}")
        else:
            out.append(f' {name}="{" ".join(repr(float(x) + 0.0) for x in np.ravel(value))}"')
    return "".join(out)


def line(tag: str, **attributes: Any) -> str:
    """An element without children."""
    return f"<{tag}{given(**attributes)}/>"
