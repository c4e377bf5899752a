"""Ctrl-C that waits for the piece of work at hand, so that nothing computed is lost."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["Patience", "patient"]


class Patience:
    """Whether an interrupt was asked for."""

    def __init__(self) -> None:
        self.asked = False

    def check(self) -> None:
        """Raise the interrupt that was held back."""
        if self.asked:
            raise KeyboardInterrupt


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
    try:
        yield state
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
