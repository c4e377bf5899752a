"""Ctrl-C that waits for the piece of work at hand, so that nothing computed is lost."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from types import FrameType

__all__ = ["Patience", "asked", "patient", "uninterrupted"]

_CURRENT: ContextVar[Patience | None] = ContextVar("patience", default=None)


class Patience:
    """Whether an interrupt was asked for."""

    def __init__(self) -> None:
        self.asked = False

    def check(self) -> None:
        """Raise the interrupt that was held back."""
        if self.asked:
            raise KeyboardInterrupt


def asked() -> bool:
    """Whether a Ctrl-C is held back at present: pieces of work of unknown length end early if so."""
    patience = _CURRENT.get()
    return patience is not None and patience.asked


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let no Ctrl-C into this block: whoever handles the signal gets it when the block has ended.

    For what must not be left in the middle, and for libraries that take an interrupt for an error of their own: netCDF4
    swallows any exception while it looks for a dimension. Only in the main thread, which alone gets signals.
    """
    handler = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if not callable(handler):  # ignored, deadly, or not Python's
        yield
        return
    came: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(signal.SIGINT, came[0])


@contextlib.contextmanager
def patient() -> Iterator[Patience]:
    """Hold back the first Ctrl-C until `Patience.check`; a second one interrupts at once.

    Only in the main thread, and only if nobody else handles the signal.
    """
    state = Patience()
    ours = threading.current_thread() is threading.main_thread() \
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def wait(number: int, frame: FrameType | None) -> None:
        if state.asked:
            raise KeyboardInterrupt
        state.asked = True

    if ours:
        signal.signal(signal.SIGINT, wait)
    before = _CURRENT.set(state)
    try:
        yield state
    finally:
        _CURRENT.reset(before)
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
