"""Files of other programs know no joints that close in a run, and no bodies that enter it."""

from __future__ import annotations

from bellcrank.errors import ModelError
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["refuse_changing"]


def refuse_changing(mechanism: Mechanism, form: str) -> None:
    """Refuse what such a file cannot hold."""
    for name in mechanism.open_at_start:
        raise ModelError(f"{name!r} is open at the start (closed=False), which {form} cannot hold; save the machine in "
                         "Bellcrank's own form")
    for body in mechanism.absent_at_start:
        raise ModelError(f"body {body!r} enters a run later (present=False), which {form} cannot hold; save the "
                         "machine in Bellcrank's own form")
