"""The live viewer: who may ask, that loops stay closed, and the page with the server behind it in a real browser."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.view import live_server
from bellcrank.view.animating import why_not
from bellcrank.view.force_curves import Posture
from cli_calls import call


@pytest.fixture(scope="module")
def linkage() -> bc.System:
    return bc.compile(bc.load("four_bar"))


@pytest.fixture
def view(linkage: bc.System) -> Iterator[Any]:
    with bc.show(linkage, browser=False, block=False) as shown:
        yield shown


def ask(url: str, path: str, data: Any = None, *, token: str | None = None, **headers: str) -> tuple[int, bytes]:
    """Status and content of an answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 0, timeout=20)
    body = data if data is None or isinstance(data, bytes) else json.dumps(data).encode()
    where = parts.path if token is None else f"/{token}/"
    connection.request("GET" if data is None else "POST", where + path, body, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def position(content: bytes, sliders: int) -> tuple[bool, np.ndarray, np.ndarray]:
    numbers = np.frombuffer(content, "<f4")
    return bool(numbers[0]), numbers[1:1 + sliders], numbers[1 + sliders:].reshape(-1, 7)


# -- the server ---------------------------------------------------------------------------------------
def test_it_is_for_this_computer_and_who_knows_the_secret(view: Any) -> None:
    parts = urlsplit(view.url)
    assert parts.hostname == "127.0.0.1" and len(parts.path.strip("/")) >= 24
    assert ask(view.url, "facts")[0] == 200
    assert ask(view.url, "facts", token="x" * 24)[0] == 403
    assert ask(view.url, "facts", token="")[0] == 403
    assert ask(view.url, "facts", Host="evil.example")[0] == 403  # another name that leads here
    assert ask(view.url, "facts", Host=f"localhost:{parts.port}")[0] == 200
    assert ask(view.url, "move", {"slider": 0, "value": 1.0}, Origin="http://evil.example")[0] == 403
    assert ask(view.url, "move", {"slider": 0, "value": 1.0}, Origin=f"http://127.0.0.1:{parts.port}")[0] == 200
    for path in ("nothing", "../facts", "page/viewer.js"):
        assert ask(view.url, path)[0] in (403, 404)
    view.stop()
    with pytest.raises(OSError):
        ask(view.url, "facts")
    view.stop()


def test_questions_that_make_no_sense(view: Any) -> None:
    for data in (b"", b"[", b"[]", b"nonsense", {}, {"slider": 1, "value": 0}, {"slider": -1, "value": 0},
                 {"slider": 0, "value": "much"}, {"slider": 0, "value": float("nan")}, {"slider": True, "value": 0},
                 {"slider": 0, "value": 1e300}, b"[" * 9000):
        status, _ = ask(view.url, "move", data)
        assert status == 400, data
    zero = [0, 0, 0]
    for data in ({"body": 0, "point": zero, "target": zero}, {"body": 9, "point": zero, "target": zero},
                 {"body": 1, "point": [0, 0], "target": zero}, {"body": 1, "point": None, "target": zero}):
        assert ask(view.url, "drag", data)[0] == 400, data
    assert ask(view.url, "move", b"x" * 20_000)[0] == 413
    assert ask(view.url, "move", b"{}", **{"Content-Length": "9" * 5000})[0] == 413
    assert ask(view.url, "frames?after=-1")[0] == ask(view.url, "frames?after=x")[0] == 200
    assert ask(view.url, "facts")[0] == 200


def test_connections_that_drip_are_closed(linkage: bc.System, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question has to arrive in a time, however many bytes of it come now and then; so have its contents."""
    monkeypatch.setattr(live_server, "_PATIENCE", 0.6)
    with bc.show(linkage, browser=False, block=False) as view:
        parts = urlsplit(view.url)
        host = f"Host: {parts.netloc}\r\n"
        for begin in ("GET / HTTP/1.1\r\nHost: x",
                      f"POST {parts.path}move HTTP/1.1\r\n{host}Content-Length: 99\r\n\r\n"):
            with socket.create_connection((parts.hostname, parts.port), timeout=0.1) as slow:
                slow.sendall(begin.encode())
                before, answer = time.monotonic(), None
                while answer is None and time.monotonic() - before < 5.0:
                    try:
                        slow.sendall(b"a")
                        answer = slow.recv(100)
                    except TimeoutError:
                        pass
                    except OSError:
                        answer = b""
                assert answer == b"" and time.monotonic() - before < 3.0
        assert ask(view.url, "facts")[0] == 200


def test_connections_are_bounded(linkage: bc.System, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beyond the bound are closed at once; when others have gone there is room again."""
    monkeypatch.setattr(live_server, "_MOST_CONNECTIONS", 3)
    with bc.show(linkage, browser=False, block=False) as view:
        parts = urlsplit(view.url)
        with contextlib.ExitStack() as stack:
            many = [stack.enter_context(socket.create_connection((parts.hostname, parts.port), timeout=0.3))
                    for _ in range(6)]
            assert [waits(one) for one in many] == [True] * 3 + [False] * 3
        for _ in range(50):
            with contextlib.suppress(OSError, http.client.HTTPException):
                assert ask(view.url, "facts")[0] == 200
                break
            time.sleep(0.02)
        else:
            pytest.fail("no room again")


def waits(connection: socket.socket) -> bool:
    """Whether a connection is open and says nothing."""
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def test_loops_stay_closed(view: Any, linkage: bc.System) -> None:
    facts = json.loads(ask(view.url, "facts")[1])
    assert [s["name"] for s in facts["sliders"]] == ["A.angle"] and facts["bodies"] == 4
    state = linkage.assemble(q={"A": 1.3}, guess=linkage.assemble())
    reached, values, poses = position(ask(view.url, "move", {"slider": 0, "value": 1.3, "time": None})[1], 1)
    assert reached and values[0] == pytest.approx(1.3, abs=1e-6)
    np.testing.assert_allclose(poses[1:, :3], linkage.pose(state.q).position, atol=1e-6)
    np.testing.assert_allclose(poses[0], (0, 0, 0, 1, 0, 0, 0))
    tip = linkage.pose(linkage.assemble(q={"A": 1.0}, guess=state).q, "coupler").position
    wish = {"body": 2, "point": [0, 0, 0], "target": tip.tolist()}
    reached, values, poses = position(ask(view.url, "drag", wish)[1], 1)
    assert reached and values[0] == pytest.approx(1.0, abs=1e-3)


def test_a_run_is_watched_while_it_goes_on(view: Any, linkage: bc.System) -> None:
    seen: list[int] = []

    def count(t: float, q: Any, u: Any) -> dict[str, float]:
        seen.append(int(np.frombuffer(ask(view.url, "frames?after=0")[1], "<f4")[0]))
        return {"A": 0.0}

    state = linkage.assemble(q={"A": 0.5}, u={"A": 2.0})
    run = linkage.simulate(state, 0.4, progress=view, control=bc.Sampled(count, 0.1))
    assert seen == sorted(seen) and seen[-1] > 0  # before the run ended
    numbers = np.frombuffer(ask(view.url, "frames?after=0")[1], "<f4")
    curves = json.loads(ask(view.url, "facts")[1])["curves"]
    frames = numbers[3:].reshape(-1, 1 + 7 * 4 + len(curves))
    assert len(curves) == numbers[2]
    assert len(frames) == numbers[0] and 20 <= len(frames) <= 30  # 60 a second
    last = run.sel(time=float(frames[-1, 0]), method="nearest")
    poses = frames[-1, 1:29].reshape(4, 7)[1:, :3]
    np.testing.assert_allclose(poses, linkage.pose(last.q.values).position, atol=1e-6)
    told = {(group, name): frames[-1, 29 + i] for i, (group, name, _) in enumerate(curves)}
    force = np.linalg.norm(linkage.reactions(last.q.values, last.u.values, last.tau.values)["D"][3:])
    assert told["magnitude of reaction force [N]", "D"] == pytest.approx(force, rel=1e-5)
    assert told["energy", "total"] == pytest.approx(float(last["energy"]), rel=1e-5)
    assert told["speeds [rad/s]", "A.angle"] == pytest.approx(float(last.u[0]), rel=1e-5)
    linkage.simulate(state, 0.05, progress=view)  # another one takes its place
    assert np.frombuffer(ask(view.url, "frames?after=0")[1], "<f4")[0] < 10


def test_the_time_that_is_shown_is_where_moving_begins(linkage: bc.System) -> None:
    run = linkage.simulate(linkage.assemble(q={"A": 0.5}, u={"A": 2.0}), 0.3, output=0.1)
    with bc.show(run, browser=False, block=False) as view:
        wish = {"body": 1, "point": [0, 0, 0], "target": [0, 0, 0], "time": 0.2}
        _, values, _ = position(ask(view.url, "drag", wish)[1], 1)
        assert values[0] == pytest.approx(float(run.q.sel(time=0.2, coordinate="A.angle")), abs=1e-6)


def test_several_are_compared_and_cannot_be_moved(linkage: bc.System) -> None:
    states = [linkage.assemble(q={"A": a}, u={"A": 1.0}) for a in (0.5, 0.7)]
    runs = [linkage.simulate(s, 0.1, output=0.05) for s in states]
    with bc.show(*runs, labels=["one", "other"], browser=False, block=False) as view:
        assert [t.label for t in view.scene.tracks] == ["one", "other"] and not view.scene.side_by_side
        assert json.loads(ask(view.url, "facts")[1])["sliders"] == []
        assert ask(view.url, "move", {"slider": 0, "value": 1.0})[0] == 400
    batch = linkage.simulate(bc.State(np.stack([s.q for s in states]), np.stack([s.u for s in states]), 0.0), 0.1,
                             output=0.05)
    with bc.show(batch, browser=False, block=False) as view:
        assert len(view.scene.tracks) == 2 and view.scene.side_by_side


def test_what_cannot_be_served() -> None:
    with (bc.show(bc.load("pendulum"), browser=False, block=False) as view,
          pytest.raises(bc.ModelError, match="cannot be used")):
        bc.show(bc.load("pendulum"), browser=False, block=False, port=urlsplit(view.url).port)


# -- positions ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["stewart", "gyroscope", "scissor_lift"])
def test_moving_by_hand(name: str) -> None:
    system = bc.compile(bc.load(name))
    posture = Posture(system, system.assemble().q)
    assert len(posture.sliders) == system.dof
    rng = np.random.default_rng(3)
    for k in range(len(posture.sliders)):
        before = posture.values()
        assert posture.move(k, before[k] + 0.1)
        after = posture.values()
        np.testing.assert_allclose(np.delete(after, k), np.delete(before, k), atol=1e-9)  # the others stay
        assert after[k] == pytest.approx(before[k] + 0.1, abs=1e-8) and posture.error() < 1e-9
    for body in system.body_names[-2:]:
        at = system.pose(posture.q, body).position
        goal = at + 0.02 * rng.normal(size=3)
        assert posture.drag(body, (0, 0, 0), goal) <= np.linalg.norm(goal - at) + 1e-12
        assert posture.error() < 1e-9
    if name == "stewart":
        assert all("slide" in s.name for s in posture.sliders)
        here = system.pose(posture.q, "platform").position
        assert posture.drag("platform", (0, 0, 0), here + (0.02, -0.01, 0.015)) < 1e-3


def test_what_cannot_be_reached_stays_closed() -> None:
    system = bc.compile(bc.load("four_bar"))
    posture = Posture(system, system.assemble(q={"A": 0.5}).q)
    assert posture.drag("coupler", (0, 0, 0), (50.0, 50.0, 0.0)) > 10.0
    assert posture.error() < 1e-9
    rocker = bc.load("four_bar")  # a coordinate that turns back at a dead point
    rocker.add_actuator("motor", "C", 1.0)
    system = bc.compile(rocker)
    posture = Posture(system, system.assemble(q={"A": 0.5}).q)
    assert [s.name for s in posture.sliders] == ["C.angle"]
    assert not posture.move(0, posture.sliders[0].high) and posture.values()[0] < posture.sliders[0].high - 0.1
    assert posture.error() < 1e-8


def test_dead_points_are_not_jumped_over() -> None:
    """A slide whose crank is almost stretched: to move it on would turn the crank by many turns."""
    m = bc.load("slider_crank")
    m.add_actuator("push", "slide", 1.0)
    system = bc.compile(m, backend="numpy")
    posture = Posture(system, system.assemble(q={"crank": 1.2}).q, length=0.1)
    assert [s.name for s in posture.sliders] == ["slide.slide"]
    for angle in (1e-3, 2e-2):
        for way in (0.1, -0.1):
            begin = system.assemble(q={"crank": angle}).q
            posture.put(begin, 0.0)
            wanted = float(posture.values()[0]) + way
            there = posture.move(0, wanted)
            assert posture.error() < 1e-9 and np.abs(posture.q - begin).max() < 3.0
            assert not there or abs(posture.values()[0] - wanted) < 1e-8


def test_ranges_of_files_bound_sliders(tmp_path: Path) -> None:
    """Of URDF files, and of model files that were made of them; nothing acts there."""
    (tmp_path / "arm.urdf").write_text("""<robot name="arm"><link name="base"/><link name="arm"><inertial>
      <mass value="1"/><origin xyz="1 0 0"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
      <joint name="elbow" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
      <limit lower="-0.25" upper="1.5" effort="1" velocity="1"/></joint></robot>""")
    m = bc.load(tmp_path / "arm.urdf")
    bc.save(m, tmp_path / "arm.yaml")
    for made in (m, bc.load(tmp_path / "arm.yaml"), m.copy()):
        assert made.ranges == {"elbow": (-0.25, 1.5)}
        slider, = Posture(bc.compile(made, backend="numpy"), np.zeros(1)).sliders
        assert (slider.low, slider.high) == (-0.25, 1.5)
    bc.save(m, tmp_path / "again.urdf")
    assert 'type="revolute"' in (tmp_path / "again.urdf").read_text()
    assert bc.load(tmp_path / "again.urdf").ranges == m.ranges
    m.set_range("elbow", upper=2.0)
    bc.save(m, tmp_path / "arm.yaml")
    assert bc.load(tmp_path / "arm.yaml").ranges == {"elbow": (-np.inf, 2.0)}
    for wrong, words in (((2.0, 1.0), "above the upper"), ((np.nan, 1.0), "not finite"), (("x",), "not a number"),
                         ((m.parameter("p", 1.0),), "not a parameter")):
        with pytest.raises(bc.ModelError, match=f"range of 'elbow'.*{words}"):
            m.set_range("elbow", *wrong)
    with pytest.raises(bc.ModelError, match="only joints with one coordinate have one; a Weld has 0"):
        m.set_range("root_joint", 0.0, 1.0)


def test_limits_are_those_of_stops() -> None:
    m = bc.load("double_pendulum")
    m.add_limit("stop", m.joints[0].name, -0.5, 0.8, stiffness=10.0)
    slider, other = Posture(bc.compile(m, backend="numpy"), np.zeros(2)).sliders
    assert (slider.low, slider.high) == (-0.5, 0.8) and other.high == pytest.approx(np.pi)


def test_descriptions_without_masses_are_moved_all_the_same() -> None:
    m = bc.Mechanism("bare")
    first, second = m.add_body("a"), m.add_body("b")
    m.add_joint("j", bc.Universal("x", "y"), m.ground, first)
    m.add_joint("k", bc.Prismatic("z"), first, second, bc.Pose((0, 0, 1)))
    with bc.show(m, browser=False, block=False) as view:
        facts = json.loads(ask(view.url, "facts")[1])
        assert [s["name"] for s in facts["sliders"]] == ["j.angle1", "j.angle2", "k.slide"]
        _, _, poses = position(ask(view.url, "move", {"slider": 2, "value": 0.5, "time": None})[1], 3)
        np.testing.assert_allclose(poses[2, :3], (0, 0, 1.5), atol=1e-6)
    assert not m.armatures


def crank_slider() -> bc.System:
    """With the length of its rod as a parameter, on which the place of a shape depends."""
    m = bc.Mechanism("crank", gravity=(0, -9.81, 0))
    rod = m.parameter("rod", 0.5)
    m.add_body("crank", bc.Inertia.rod(1.0, (0, 0, 0), (0.2, 0, 0)))
    m.add_body("rod", bc.Inertia(1.0, (0.1, 0, 0), (0.01, 0.01, 0.01)))
    m.add_body("piston", bc.Inertia(1.0, (0, 0, 0), (0.01, 0.01, 0.01)))
    m.add_joint("A", bc.Revolute("z"), m.ground, "crank")
    m.add_joint("B", bc.Revolute("z"), "crank", "rod", bc.Pose((0.2, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), "rod", "piston", bc.Pose((rod, 0, 0)))
    m.add_joint("bore", bc.Prismatic("x"), m.ground, "piston", bc.Pose((0, 0.3, 0)))
    m.add_shape("rod", bc.Sphere(0.05), bc.Pose((rod, 0, 0)))
    return bc.compile(m)


def test_parameters_have_sliders() -> None:
    """Loops are closed with the new sizes, and shapes are where these put them; what does not close changes nothing."""
    system = crank_slider()
    with bc.show((system, system.assemble(q={"A": 1.0})), browser=False, block=False) as view:
        facts = json.loads(ask(view.url, "facts")[1])
        assert facts["parameters"] == [{"name": "rod", "value": 0.5, "min": 0.125, "max": 1.0}]
        before = ask(view.url, "scene")[1]
        status, scene = ask(view.url, "parameter", {"parameter": 0, "value": 0.8})
        assert status == 200 and scene != before and scene == ask(view.url, "scene")[1]
        shapes = json.loads(scene[4:4 + int.from_bytes(scene[:4], "little")])["models"][0]["bodies"][2]["shapes"]
        assert shapes[0]["p"][0] == 0.8
        _, values, poses = position(ask(view.url, "move", {"slider": 0, "value": 1.2})[1], 1)
        pin, center = poses[1, :3] + 0.2 * np.array([np.cos(values[0]), np.sin(values[0]), 0]), poses[3, :3]
        assert np.linalg.norm(center - pin) == pytest.approx(0.8, abs=1e-5)
        assert ask(view.url, "parameter", {"parameter": 0, "value": 0.05}) == (200, b"")  # too short to reach
        assert json.loads(ask(view.url, "facts")[1])["parameters"][0]["value"] == 0.8
        for wrong in ({"parameter": 1, "value": 1.0}, {"parameter": 0, "value": "x"}, {"value": 1.0}):
            assert ask(view.url, "parameter", wrong)[0] == 400
    run = system.simulate(system.assemble(q={"A": 1.0}), 0.01)
    with bc.show(run, browser=False, block=False) as view:  # what was computed stays what it was
        assert json.loads(ask(view.url, "facts")[1])["parameters"] == []


# -- the page -----------------------------------------------------------------------------------------
@pytest.mark.skipif(bool(why_not()), reason=f"the page is not tried: {why_not()} is missing")
def test_the_page(linkage: bc.System) -> None:
    """Sliders and the mouse move the machine with its loop closed; a run appears while it is watched."""
    from playwright.sync_api import sync_playwright

    from bellcrank.view.animating import ARGUMENTS, browser_program, wait_until_shown

    gap = """(() => { const v = bellcrank.view; let worst = 0; for (const j of v.scene.models[0].joints) {
      if (j.name === "bore") continue;  // it slides
      const at = (b, p) => { const e = v.motions[0].matrices[b].elements; return [0, 1, 2].map((i) =>
        e[i] * p[0] + e[4 + i] * p[1] + e[8 + i] * p[2] + e[12 + i]); };
      const one = at(j.parent, j.parent_pose), other = at(j.child, j.child_pose);
      worst = Math.max(worst, ...one.map((x, i) => Math.abs(x - other[i]))); } return worst; })()"""
    poses = "Array.from(bellcrank.view.motions[0].matrices[2].elements)"
    with bc.show(linkage, browser=False, block=False) as view, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_program(), args=[*ARGUMENTS, "--no-sandbox"])
        page = browser.new_page(viewport={"width": 640, "height": 400})
        said: list[str] = []
        asked: set[str] = set()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
        page.goto(view.url)
        wait_until_shown(page)
        start = page.evaluate(poses)
        page.locator(".sliders input").fill("1.2")
        _until(page, "bellcrankLive.answered >= 1 && bellcrankLive.reached")
        moved = page.evaluate(poses)
        assert moved != start and page.evaluate(gap) < 1e-5
        at = page.evaluate("""(() => { const v = bellcrank.view, p = v.stage.controls.target.clone().set(0.5, 0, 0)
          .applyMatrix4(v.motions[0].matrices[2]).project(v.stage.camera), r = v.canvas.getBoundingClientRect();
          return [r.left + (p.x + 1) / 2 * r.width, r.top + (1 - p.y) / 2 * r.height]; })()""")
        camera = page.evaluate("bellcrank.view.stage.camera.position.toArray()")
        page.mouse.move(*at)
        page.mouse.down()
        page.mouse.move(at[0] + 12, at[1] - 10)
        page.mouse.move(at[0] + 25, at[1] - 20)
        _until(page, "bellcrankLive.answered >= 2")
        page.mouse.up()
        assert page.evaluate(poses) != moved and page.evaluate(gap) < 1e-5
        window = browser.new_page(viewport={"width": 640, "height": 400})  # a second window shows it where it is
        window.goto(view.url)
        wait_until_shown(window)
        _until(window, "bellcrankLive.answered >= 1")
        assert window.evaluate(poses) == pytest.approx(page.evaluate(poses), abs=1e-6)
        window.close()
        now = page.evaluate("bellcrank.view.stage.camera.position.toArray()")
        assert now == pytest.approx(camera, rel=1e-12)  # the body moved, not the view
        linkage.simulate(linkage.assemble(q={"A": 0.5}, u={"A": 2.0}), 0.3, progress=view)
        _until(page, "bellcrank.duration > 0.25")
        assert page.evaluate("bellcrankLive.frames") == pytest.approx(19, abs=2) and page.evaluate(gap) < 1e-2
        assert page.evaluate("bellcrank.view.panels.plots.plots.length") == 3  # curves grow with it
        assert page.evaluate("bellcrank.view.panels.plots.groups.includes('magnitude of reaction force [N]')")
        assert page.evaluate("""(() => { const m = bellcrank.view.motions[0], t = m.track.curves.find((c) => c.group
          === 'energy' && c.name === 'total'), v = Array.from(t.values.subarray(0, m.frames));
          return v.every((x) => Math.abs(x - v[0]) < 1e-3 * Math.abs(v[0])) && v.length > 15; })()""")
        view.stop()
        _until(page, "bellcrankLive.lost")
        system = crank_slider()
        with bc.show((system, system.assemble(q={"A": 1.0})), browser=False, block=False) as other:
            page.goto(other.url)
            wait_until_shown(page)
            assert page.locator(".sliders h2").all_text_contents() == ["Coordinates", "Parameters"]
            page.locator(".sliders input").nth(1).fill("0.8")
            _until(page, "bellcrankLive.answered >= 1 && bellcrankLive.reached")
            assert page.evaluate("bellcrank.view.scene.models[0].bodies[2].shapes[0].p[0]") == 0.8
            assert page.evaluate(gap) < 1e-5
            page.locator(".sliders input").nth(0).fill("1.4")
            _until(page, "bellcrankLive.answered >= 2 && bellcrankLive.reached")
            assert page.evaluate(gap) < 1e-5
            asked.discard(urlsplit(other.url).netloc)
        browser.close()
    assert asked == {urlsplit(view.url).netloc}
    assert [text for text in said if "Failed to load resource" not in text and "net::" not in text] == []


def _until(page: Any, condition: str) -> None:
    for _ in range(400):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(25)
    pytest.fail(f"never: {condition}")


# -- the command --------------------------------------------------------------------------------------
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, list[Any]]] = []

    def wait(view: Any) -> None:
        seen.append((ask(view.url, "facts")[0], [t.label for t in view.scene.tracks]))
        view.stop()

    monkeypatch.setattr("bellcrank.view.showing.LiveView.wait", wait)
    done = call("show", "four_bar", "--set", "A=0.7", "--no-browser")
    assert done.exit_code == 0 and "is shown at http://127.0.0.1:" in done.stdout, done.stderr
    call("simulate", "four_bar", "--set", "A=0.5", "--duration", 0.05, "--out", tmp_path / "one.nc")
    call("simulate", "four_bar", "--set", "A=0.9", "--duration", 0.05, "--out", tmp_path / "two.nc")
    done = call("show", tmp_path / "one.nc", tmp_path / "two.nc", "--model", "four_bar", "--no-browser", "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["tracks"] == 2, done.stderr
    assert call("show", tmp_path / "one.nc", "--no-browser").exit_code == 0
    assert seen == [(200, ["four_bar"]), (200, ["one", "two"]), (200, ["one"])]
    bc.open_result(tmp_path / "one.nc").with_system(None).to_netcdf(tmp_path / "bare.nc")
    for arguments, said in ((("bare.nc",), "--model MODEL"), (("one.nc", "four_bar"), "all of them are results")):
        done = call("show", *(tmp_path / a if a.endswith(".nc") else a for a in arguments), "--no-browser")
        assert done.exit_code == 2 and said in done.stderr
