"""Ranges of joints in files, kept with the machine."""

from __future__ import annotations

import math
from collections.abc import Mapping

from bellcrank.io.report import Limits, ReadReport
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["with_ranges"]

#: ends so far away stand for none, in formats that want numbers
_ENDLESS = 1e9


def with_ranges(machine: Mechanism, report: ReadReport) -> tuple[Mechanism, ReadReport]:
    """A machine that was read, with the ranges of its joints, and the report. Ranges that no joint with one coordinate
    has, and those turned round, are in the report alone."""
    limits: Mapping[str, Limits] = report.limits
    joints = {record.name: record.joint for record in machine.joints}
    for name, ends in limits.items():
        lower = -math.inf if ends.lower <= -_ENDLESS else ends.lower
        upper = math.inf if ends.upper >= _ENDLESS else ends.upper
        if (name in joints and joints[name].nq == 1 and lower <= upper
                and not (math.isinf(lower) and math.isinf(upper))):
            machine.set_range(name, lower, upper)
    return machine, report
