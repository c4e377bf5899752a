"""Exceptions and warnings of the library. Every message names the part and says what to do."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["AssemblyError", "AssemblyWarning", "BellcrankError", "BellcrankWarning", "BranchWarning", "CacheWarning",
           "DrawingWarning", "FileError", "ModelError", "NotYetError", "SingularError", "SlowWarning", "StateError",
           "hint", "outside"]


class BellcrankError(Exception):
    """Base class of every error raised on purpose by Bellcrank."""


class ModelError(BellcrankError, ValueError):
    """The description of the machine is not usable: the message names the body or joint."""


class StateError(BellcrankError, ValueError):
    """A state, force or time handed to a `System` has the wrong shape or is not finite."""


class AssemblyError(StateError):
    """The loops do not close: the message says which ones and by how much. `joint` is the joint, constraint or coupler
    that is farthest off, or that is no longer determined where a branch ends; empty where there is none."""

    def __init__(self, message: str = "", joint: str = "") -> None:
        super().__init__(message)
        self.joint = joint


class SingularError(BellcrankError, ArithmeticError):
    """The equations of motion have no unique finite solution in this state."""


class NotYetError(BellcrankError, NotImplementedError):
    """The description is sound, but this version cannot compute it."""


class FileError(BellcrankError, ValueError):
    """A file could not be read or written: the message names it, and of model files line and element."""


class BellcrankWarning(UserWarning):
    """Base class of every warning given on purpose by Bellcrank."""


class BranchWarning(BellcrankWarning):
    """Loops were closed on another assembly branch than that of the guess, or the branch ended too early."""


class AssemblyWarning(BellcrankWarning):
    """Some states of a batch cannot be reached and are NaN: `State.failures` says which, and why."""


class DrawingWarning(BellcrankWarning):
    """Redundant constraints contradict each other by more than rounding, and were dropped: the message says which."""


class SlowWarning(BellcrankWarning):
    """What was asked for can be computed, but not by compiled code: the message says what it will cost."""


class CacheWarning(BellcrankWarning):
    """Compiled code cannot be kept on disk: everything works, but is compiled again in every process."""


def hint(name: object, known: Iterable[str]) -> str:
    """What was probably meant, to end an error with; nothing if no known name is like it."""
    import difflib

    plain = {k.casefold(): k for k in known}
    near = difflib.get_close_matches(str(name).casefold(), plain, n=1)
    return f"; did you mean {plain[near[0]]!r}?" if near else ""


def outside() -> int:
    """The `stacklevel` of a warning that points at the nearest code that is not part of the library."""
    import inspect

    frame, level = inspect.currentframe(), 0
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "bellcrank":
        frame, level = frame.f_back, level + 1
    return max(level, 1)
