"""The page with a program behind it: a server for one machine, on this computer, that answers only who has its secret.

The page asks by HTTP, below an address that holds a secret token:

| request | answer |
|---|---|
| GET / | the page |
| GET facts | JSON: sliders, whether a run is watched and which curves it has |
| GET scene | the scene (`packing.py`) |
| POST move | {"slider": number, "value": x, "time": t or null} -> a position |
| POST drag | {"body": number, "point": [x, y, z], "target": [x, y, z], "time": t or null} -> a position |
| POST parameter | {"parameter": number, "value": x} -> the scene with that value; empty if it does not close |
| GET frames?after=N | what a run has added since frame N |

A position is float32, little endian: 1 or 0 (whether the wish was fulfilled), the values of the sliders, and the poses
of all bodies, seven numbers each. Frames are: how many there are in all, 1 if more are to be expected soon, how many
curves the run has, and for each new one its time, the poses, and the values of the curves.
"""

from __future__ import annotations

import contextlib
import io
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, ModelError
from bellcrank.view.force_curves import Posture
from bellcrank.view.packing import pack
from bellcrank.view.scene import Scene
from bellcrank.view.standalone_page import live_page

__all__ = ["LiveServer", "Remaking", "Session"]

#: bytes of a question, at most
_MOST_BYTES = 10_000
#: frames of a run that is watched, at most, and those sent at a time
_MOST_FRAMES, _AT_A_TIME = 6000, 600
#: seconds without new frames after which a run is taken to have ended: the page asks less often
_RECENT = 3.0
#: seconds that a question may take to arrive, however slowly it comes, and an answer to be taken
_PATIENCE = 30.0
#: connections that are open at once; browsers have six
_MOST_CONNECTIONS = 64


@dataclass(frozen=True)
class Remaking:
    """How a machine is made with other values of its parameters."""

    values: dict[str, float]  #: those at first
    #: values and a position nearby, to the scene and the closed position
    make: Callable[[dict[str, float], Floats], tuple[Scene, Posture]]


@cache
def _script() -> str:
    return (files("bellcrank.view") / "page" / "live_feed.js").read_text(encoding="utf-8")


class Session:
    """What the page talks to: a scene, a position that can be changed, and the frames of a run that is watched."""

    def __init__(self, scene: Scene, posture: Posture | None,
                 at_time: Callable[[float], Floats] | None = None, remaking: Remaking | None = None) -> None:
        self.scene, self.posture, self._at_time = scene, posture, at_time
        self._remaking = remaking if posture is not None else None
        self._values = dict(remaking.values) if remaking is not None else {}
        self.lock = threading.Lock()
        self._frames: list[Floats] = []
        self._curves: list[tuple[str, str, str]] = []
        self._grown = -np.inf  #: when the last ones came
        self._moved = False  #: whether the position is another one than that of the scene

    @property
    def bodies(self) -> int:
        return len(self.scene.models[self.scene.tracks[0].model].bodies)

    def page(self) -> bytes:
        return live_page(self.scene.title, _script()).encode("utf-8")

    def facts(self) -> bytes:
        """What the page needs to know first."""
        sliders: list[dict[str, Any]] = []
        if self.posture is not None:
            with self.lock:
                values = self.posture.values()
            sliders = [{"name": s.name, "min": s.low, "max": s.high, "value": float(v), "units": s.units}
                       for s, v in zip(self.posture.sliders, values, strict=True)]
        given = self._remaking.values if self._remaking is not None else {}
        parameters = [{"name": name, "value": self._values[name], **_span(value)} for name, value in given.items()]
        return json.dumps({"sliders": sliders, "parameters": parameters, "live": self.posture is not None,
                           "bodies": self.bodies, "curves": self._curves, "moved": self._moved}).encode()

    def position(self) -> bytes:
        """Where the machine is: for pages that are opened after it was moved."""
        with self.lock:
            return b"" if self.posture is None else self._position(True)

    # -- by hand --------------------------------------------------------------------------------
    def move(self, asked: dict[str, Any]) -> bytes:
        """One slider to a value."""
        number, value = _whole(asked, "slider"), _number(asked.get("value"))
        with self.lock:
            posture = self._posture(asked)
            if not 0 <= number < len(posture.sliders):
                raise ModelError(f"there is no slider {number}")
            return self._position(posture.move(number, value))

    def drag(self, asked: dict[str, Any]) -> bytes:
        """A point of a body towards a target."""
        number = _whole(asked, "body")
        point, target = _three(asked.get("point")), _three(asked.get("target"))
        with self.lock:
            posture = self._posture(asked)
            names = posture.system.body_names
            if not 1 <= number <= len(names):
                raise ModelError(f"there is no body {number} that can be moved")
            left = posture.drag(names[number - 1], point, target)
            return self._position(left <= 1e-3 * posture.length)

    def set_parameter(self, asked: dict[str, Any]) -> bytes:
        """One parameter to a value: the scene, or nothing if the machine cannot be closed with it."""
        number, value = _whole(asked, "parameter"), _number(asked.get("value"))
        with self.lock:
            if self._remaking is None or self.posture is None or not 0 <= number < len(self._values):
                raise ModelError(f"there is no parameter {number}")
            values = {**self._values, list(self._values)[number]: value}
            try:
                self.scene, self.posture = self._remaking.make(values, self.posture.q)
            except (BellcrankError, ArithmeticError, np.linalg.LinAlgError):
                return b""
            self._values, self._moved = values, False
            return pack(self.scene)

    def _posture(self, asked: dict[str, Any]) -> Posture:
        """The position; where the page shows another time of a run, that of this time."""
        if self.posture is None:
            raise ModelError("several machines are shown; none can be moved by hand")
        shown = asked.get("time")
        if shown is not None and self._at_time is not None:
            when = _number(shown)
            self.posture.put(self._at_time(when), when)
        self._moved = True
        return self.posture

    def _position(self, reached: bool) -> bytes:
        assert self.posture is not None
        numbers = np.concatenate([[float(reached)], self.posture.values(), self.posture.poses().ravel()])
        return numbers.astype("<f4").tobytes()

    # -- a run that is watched ------------------------------------------------------------------
    def begin_run(self, curves: Sequence[tuple[str, str, str]]) -> None:
        """A new run, with these curves: group, name, units."""
        with self.lock:
            self._frames.clear()
            self._curves = list(curves)

    def add_frames(self, frames: Floats) -> None:
        """More frames, (n, 1 + 7 bodies + curves): time, poses and values."""
        with self.lock:
            self._frames.extend(frames[:max(0, _MOST_FRAMES - len(self._frames))])
            self._grown = time.monotonic()

    def frames(self, after: int) -> bytes:
        """What came since."""
        with self.lock:
            new = self._frames[after:after + _AT_A_TIME] if 0 <= after <= len(self._frames) else []
            count = after + len(new) if 0 <= after <= len(self._frames) else 0
            more = count < len(self._frames) or time.monotonic() - self._grown < _RECENT
            numbers = [np.array([float(count), float(more), float(len(self._curves))]), *new]
        return np.concatenate(numbers).astype("<f4").tobytes()


def _span(value: float) -> dict[str, float]:
    """Where the slider of a parameter begins and ends."""
    ends = (-1.0, 1.0) if value == 0.0 else tuple(sorted((0.25 * value, 2.0 * value)))
    return {"min": ends[0], "max": ends[1]}


def _whole(asked: dict[str, Any], name: str) -> int:
    value = asked.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ModelError(f"{name} must be a whole number")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < 1e9:
        raise ModelError(f"{value!r} is not a number that can be used")
    return float(value)


def _three(value: Any) -> list[float]:
    if not isinstance(value, list) or len(value) != 3:
        raise ModelError("a point is three numbers")
    return [_number(x) for x in value]


class LiveServer:
    """Serves one session until it is stopped, in a thread of its own."""

    def __init__(self, session: Session, host: str = "127.0.0.1", port: int = 0) -> None:
        self.session = session
        self.token = secrets.token_urlsafe(18)
        try:
            self._http = _Listener((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise ModelError(f"show: the address {host}:{port} cannot be used "
                             f"({getattr(error, 'strerror', None) or error}); port=0 takes any that is free") from None
        self._http.live = self
        self.stopped = False
        self.host, self.port = host, int(self._http.server_address[1])
        #: what the page may call this computer
        self.names = {f"{name}:{self.port}" for name in _names(host)}
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True,
                                        name="bellcrank show")
        self._thread.start()

    @property
    def url(self) -> str:
        """The address, with its secret."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "") else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/{self.token}/"

    def stop(self) -> None:
        """Answer no more. Harmless if it is stopped already."""
        self.stopped = True  # connections that are open get no more answers, either
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join(5.0)
        self._http.server_close()


def _names(host: str) -> list[str]:
    """Names under which a server may be asked: others come from pages that were led here (DNS rebinding)."""
    if host in ("127.0.0.1", "localhost", "::1"):
        return ["127.0.0.1", "localhost", "[::1]"]
    if host in ("0.0.0.0", "", "::"):
        own = {socket.gethostname(), socket.getfqdn()}
        with contextlib.suppress(OSError):
            own |= {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)}
        return ["127.0.0.1", "localhost", *(f"[{name}]" if ":" in name else name for name in own)]
    return [f"[{host}]" if ":" in host else host]


class _Listener(ThreadingHTTPServer):
    """A thread for each connection, of which there is a bounded number."""

    daemon_threads = True
    live: LiveServer

    def __init__(self, *arguments: Any) -> None:
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no further thread
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away is no error to tell."""


class _Arriving(io.RawIOBase):
    """What a connection sends, until a time: one that drips is closed as one that is silent."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self.until = connection, 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.until - time.monotonic()
        if left <= 0.0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    """One request: secret and host are checked before anything else."""

    server: _Listener
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "bellcrank", ""
    wbufsize, disable_nagle_algorithm = 1 << 16, True  # an answer in one piece, at once: 40 ms each otherwise

    def setup(self) -> None:
        super().setup()
        self._arriving = _Arriving(self.connection)
        self.rfile = io.BufferedReader(self._arriving)

    def handle_one_request(self) -> None:
        self._arriving.until = time.monotonic() + _PATIENCE
        super().handle_one_request()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed: the address holds the secret."""

    def do_GET(self) -> None:
        path = self._allowed()
        if path is None:
            return
        session = self.server.live.session
        name, _, query = path.partition("?")
        if name == "":
            self._answer(session.page(), "text/html; charset=utf-8")
        elif name == "facts":
            self._answer(session.facts(), "application/json")
        elif name == "scene":
            self._answer(pack(session.scene))
        elif name == "position":
            self._answer(session.position())
        elif name == "frames":
            after = parse_qs(query).get("after", ["0"])[0]
            self._answer(session.frames(int(after) if after.isascii() and after.isdigit() and len(after) < 9 else 0))
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        path = self._allowed()
        if path is None:
            return
        session = self.server.live.session
        actions = {"move": session.move, "drag": session.drag, "parameter": session.set_parameter}
        if path not in actions:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 9) or int(length) > _MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        try:
            asked = json.loads(self.rfile.read(int(length)))
            if not isinstance(asked, dict):
                raise ValueError
            answer = actions[path](asked)
        except (BellcrankError, ArithmeticError, np.linalg.LinAlgError, ValueError, RecursionError) as error:
            self._answer(str(error)[:500].encode("utf-8", "replace"), "text/plain; charset=utf-8",
                         HTTPStatus.BAD_REQUEST)
            return
        self._answer(answer)

    def _allowed(self) -> str | None:
        """The path below the secret; nothing, and a refusal, for who does not know it or asks in another's name."""
        live = self.server.live
        if live.stopped:
            self.close_connection = True
            return None
        parts = urlsplit(self.path)
        token, slash, rest = parts.path.lstrip("/").partition("/")
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        known = secrets.compare_digest(token.encode("utf-8", "replace"), live.token.encode())
        if not known or not slash or host not in live.names or (origin is not None and origin != f"http://{host}"):
            self._refuse(HTTPStatus.FORBIDDEN)
            return None
        return rest + (f"?{parts.query}" if parts.query else "")

    def _refuse(self, status: HTTPStatus) -> None:
        self.close_connection = True
        self._answer(status.phrase.encode(), "text/plain", status)

    def _answer(self, content: bytes, kind: str = "application/octet-stream", status: HTTPStatus = HTTPStatus.OK
                ) -> None:
        self.connection.settimeout(_PATIENCE)
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(content))),
                            ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
                            ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin")):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()
