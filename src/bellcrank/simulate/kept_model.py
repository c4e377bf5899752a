"""The machine of a result, kept in the result's file as the text of a model file: what is read back knows what it is
of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bellcrank.errors import BellcrankError, ModelError
from bellcrank.lazy_names import from_above

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["MOST", "KeptModel", "model_text"]

#: bytes that an attribute of a file may have
MOST = 60_000


def model_text(system: Machine) -> str:
    """The text of a model file; nothing if the machine has a law or joint that files cannot hold, or is too long."""
    try:
        text: str = from_above("io.native", "text_of")(system.model.mechanism, json=True)
    except ModelError:
        return ""
    return text if len(text.encode()) <= MOST else ""


@dataclass(frozen=True)
class KeptModel:
    """The machine of a result as its file describes it."""

    text: str

    def system(self, attributes: Mapping[str, Any], coordinates: Sequence[str]) -> Machine | None:
        """It, compiled, with the parameters and cut joints that a result's attributes and coordinates tell of; None if
        they do not."""
        try:
            mechanism = from_above("io.native", "from_text")(self.text, str(attributes.get("mechanism", "result")))
        except BellcrankError:  # written by a later version, or damaged
            return None
        compile_it, method = from_above("compiled.compile", "compile"), attributes.get("formulation", "auto")
        system: Machine = compile_it(mechanism, method, cut=json.loads(attributes.get("cut", "[]")))
        if not set(coordinates) <= set(system.coordinate_names):
            known = {name.rpartition(".")[0] for name in coordinates}
            system = compile_it(mechanism, method, cut=[joint for joint in system.joint_names if joint not in known])
        values = json.loads(attributes.get("parameters", "{}"))
        if any(isinstance(value, str) for value in values.values()):  # a batch that was too long to be written out
            return None
        return system.with_parameters(**values) if values else system
