"""Ranges of joints in files, kept with the machine."""

from __future__ import annotations

import math
from collections.abc import Mapping

from bellcrank.io.report import Limits, ReadReport
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["with_ranges"]


def with_ranges(machine: Mechanism, report: ReadReport) -> tuple[Mechanism, ReadReport]:
    """A machine that was read, with the ranges of its joints, and the report. Ranges that no joint with one coordinate
    has, and those turned round, are in the report alone."""
    limits: Mapping[str, Limits] = report.limits
    joints = {record.name: record.joint for record in machine.joints}
    for name, ends in limits.items():
        if (name in joints and joints[name].nq == 1 and ends.lower <= ends.upper
                and not (math.isinf(ends.lower) and math.isinf(ends.upper))):
            machine.set_range(name, ends.lower, ends.upper)
    return machine, report
