"""Ctrl-C that waits for the piece of work at hand, so that nothing computed is lost."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from types import FrameType

__all__ = ["Patience", "asked", "patient"]

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
