"""Moving machines by hand as the live viewer does: closed positions a second, by sliders and by dragging bodies.

    python benchmarks/moving.py

Every wish changes a slider by up to 0.05 (rad, m), or pulls the origin of a body by up to 3 cm, from where the last
one ended; poses of all bodies are computed each time. Then the same through the server, as a page asks for it. What is
left open is the largest error of a loop constraint that was met.
"""

from __future__ import annotations

import http.client
import json
import time
import warnings
from collections.abc import Callable
from urllib.parse import urlsplit

import numpy as np
from cassie import model

import bellcrank as bc
from bellcrank.view.force_curves import Posture

#: seconds for one number
SPAN = 2.0


def rate(wish: Callable[[], object]) -> float:
    """Wishes a second."""
    for _ in range(20):
        wish()
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < SPAN:
        wish()
        count += 1
    return count / (time.perf_counter() - begin)


def measure(name: str, system: bc.System) -> None:
    """Print the row of one machine."""
    posture = Posture(system, system.assemble().q)
    rng, worst = np.random.default_rng(0), [0.0]

    def slide() -> None:
        k = int(rng.integers(len(posture.sliders)))
        posture.move(k, posture.values()[k] + rng.uniform(-0.05, 0.05))
        posture.poses()
        worst[0] = max(worst[0], posture.error())

    def pull(body: str) -> None:
        posture.drag(body, (0, 0, 0), system.pose(posture.q, body).position + rng.uniform(-0.03, 0.03, 3))
        posture.poses()
        worst[0] = max(worst[0], posture.error())

    slides = rate(slide)
    for body in system.body_names:  # compiled on first use
        pull(body)
    pulls = rate(lambda: pull(system.body_names[int(rng.integers(len(system.body_names)))]))
    with bc.show(system, browser=False, block=False) as view:
        parts = urlsplit(view.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        step = [0]

        def ask() -> None:
            step[0] += 1
            question = {"slider": 0, "value": 0.1 * np.sin(0.05 * step[0]), "time": None}
            connection.request("POST", f"{parts.path}move", json.dumps(question))
            connection.getresponse().read()

        served = rate(ask)
        connection.close()
    print(f"{name:12}{len(posture.sliders):9}{slides:14.0f}{pulls:14.0f}{served:14.0f}{worst[0]:14.1e}")


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print("machine       sliders      slides/s       drags/s      served/s     left open")
    for name in ("four_bar", "stewart", "delta"):
        measure(name, bc.compile(bc.load(name)))
    measure("cassie", bc.compile(model()))


if __name__ == "__main__":
    main()
