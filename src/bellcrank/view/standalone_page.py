"""The page as one file: it needs no server and no network, and its own content policy allows none."""

from __future__ import annotations

import base64
import gzip
import html
from functools import cache
from importlib.resources import files

from bellcrank.view.packing import pack
from bellcrank.view.scene import Scene

__all__ = ["live_page", "page_of", "squeezed"]

#: what the page may do: run its own script and style, and show pictures it makes itself
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="bellcrank">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="app"><div class="message" id="message">This page shows a machine in motion. It needs JavaScript.</div></div>
<script type="text/plain" id="bellcrank-code">{code}</script>
{data}<script>{start}</script>
</body>
</html>
"""

_START = """(async () => {
  const say = (text) => { document.getElementById("app").replaceChildren(Object.assign(document.createElement("div"),
    { className: "message", textContent: text })); };
  const unpack = async (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")))
      .arrayBuffer());
  };
  try {
    const script = document.createElement("script");
    script.textContent = new TextDecoder().decode(await unpack("bellcrank-code"));
    document.head.append(script);
    document.getElementById("message").remove();
    %s
  } catch (error) {
    console.error(error);
    say("This machine cannot be shown: the page needs a browser of 2023 or later with WebGL. " + error);
  }
})();"""

_OPEN = 'window.bellcrank.start(await unpack("bellcrank-data"));'


def squeezed(data: bytes) -> str:
    """Bytes as text: gzip, the same for the same bytes, and base64."""
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii")


@cache
def _part(name: str) -> bytes:
    return (files("bellcrank.view") / "page" / name).read_bytes()


@cache
def _code() -> str:
    return squeezed(_part("viewer.js"))


def page_of(scene: Scene) -> str:
    """The page with a scene in it. Cost: about 250 kB, plus the data of the scene.

    >>> import bellcrank as bc
    >>> from bellcrank.view.scenes import scene_of
    >>> len(page_of(scene_of(bc.load("four_bar")))) < 400_000
    True
    """
    data = f'<script type="text/plain" id="bellcrank-data">{squeezed(pack(scene))}</script>\n'
    return _filled(scene.title, data, _OPEN, POLICY)


def live_page(title: str, script: str, policy: str = "connect-src 'self'") -> str:
    """The page without a scene: `script` fetches one and calls ``window.bellcrank.start(bytes, feed)``; it may use
    ``await``. `policy` is what it may do beside what standalone pages may."""
    return _filled(title, "", script, f"{POLICY}; {policy}" if policy else POLICY)


def _filled(title: str, data: str, start: str, policy: str) -> str:
    style = _part("viewer.css").decode("utf-8")
    return _PAGE.format(policy=policy, title=html.escape(title), style=style, code=_code(), data=data,
                        start=_START % start)
