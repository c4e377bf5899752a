"""The process of a worker of `WorkerPool`: reads tasks from its standard input, writes answers to its output."""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
from typing import Any, BinaryIO

from bellcrank.studies.lane_blocks import chunk_task

__all__ = ["main", "receive", "send"]

_LENGTH = struct.Struct("<Q")


def send(pipe: BinaryIO, value: Any) -> None:
    """Write one message."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def receive(pipe: BinaryIO) -> Any:
    """Read one message; EOFError where there will be none."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    size = _LENGTH.unpack(head)[0]
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


def main() -> None:
    """Work until there is nothing more: a message that is None, or the end of the process that sends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it decides
    tasks, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what functions print must not get between answers
    data, digest = receive(tasks)
    while True:
        try:
            rows = receive(tasks)
        except EOFError:
            return
        if rows is None:
            return
        try:
            answer: tuple[bool, Any] = True, chunk_task(data, digest, rows)
        except Exception as error:
            answer = False, error
        try:
            send(answers, answer)
        except BrokenPipeError:
            return
        except Exception as error:  # an error that cannot be sent
            send(answers, (False, RuntimeError(f"{type(answer[1]).__name__}: {answer[1]} ({error})")))
