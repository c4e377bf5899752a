"""What entries of a model file stand for: numbers, laws and poses, with the parameters and tables of the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bellcrank.errors import ModelError
from bellcrank.io.native.formula import Formula, parse
from bellcrank.io.native.formula_steps import run
from bellcrank.io.native.machine_laws import WrittenLaw
from bellcrank.io.native.schema_part import MachineLawPart
from bellcrank.mechanism.pose import Pose
from bellcrank.mechanism.table import Table
from bellcrank.scalar.graph import Number

__all__ = ["FileValues"]


class FileValues:
    """Reads entries; parameters and tables are known from where they stand in the file."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()  #: of parameters
        self.values: tuple[Number, ...] = ()
        self.tables: tuple[Table, ...] = ()

    def number(self, value: float | str) -> Number:
        """A number, or what a formula of parameters stands for."""
        return value if isinstance(value, float) else run(parse(value, self.names), self.values)

    def numbers(self, values: Sequence[float | str]) -> tuple[Number, ...]:
        """Several of these."""
        return tuple(self.number(v) for v in values)

    def timed(self, values: Sequence[float | str]) -> tuple[Any, ...]:
        """Numbers, formulas of parameters and, if they name t, formulas of time."""
        return tuple(self.of_time(v) for v in values)

    def of_time(self, value: float | str) -> Any:
        """One of these."""
        if isinstance(value, float):
            return value
        if value.startswith("="):
            return self.law(value[1:], "t")
        law = self.law(value, "t")
        return law if law.program.uses("t") else self.number(value)

    def law(self, text: float | str, *arguments: str) -> Formula:
        """A formula of these arguments, and of parameters."""
        text = text if isinstance(text, str) else repr(text)
        made = Formula(text, arguments, self.tables, self.names, self.values)
        return made if made.parametric else Formula(text, arguments, self.tables)  # parsed now: mistakes show now

    def on(self, joint: str | dict[str, float | str]) -> str | dict[str, Number]:
        """A joint, or factors by joint."""
        return joint if isinstance(joint, str) else {key: self.number(factor) for key, factor in joint.items()}

    def machine_law(self, part: MachineLawPart) -> WrittenLaw:
        """A law of what it reads of the machine."""
        return WrittenLaw.of([x if isinstance(x, str) else repr(x) for x in part.formulas], part.reads, self.tables)

    def optional(self, **values: float | str | None) -> dict[str, Number]:
        """Those numbers that are given."""
        return {name: self.number(v) for name, v in values.items() if v is not None}

    def pose(self, pose: Any) -> Pose:
        """A place, by its position alone or with a rotation."""
        if pose is None:
            return Pose()
        if isinstance(pose, list):
            return Pose(self.numbers(pose))
        position = self.numbers(pose.position)
        if pose.rpy is not None:
            if pose.rotation is not None:
                raise ModelError("a pose has either rotation or rpy, not both")
            return Pose.rpy(position, *self.numbers(pose.rpy))
        if pose.rotation is None:
            return Pose(position)
        turn: Any = self.numbers(pose.rotation) if len(pose.rotation) == 4 else [self.numbers(r) for r in pose.rotation]
        return Pose(position, turn)

    def axis(self, axis: str | Sequence[float | str]) -> str | tuple[Number, ...]:
        """An axis, by its name or by numbers."""
        return axis if isinstance(axis, str) else self.numbers(axis)
