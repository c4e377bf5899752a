"""Plain data as YAML or JSON text: one part per block, one value per line, numbers to the last bit."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["as_json", "as_yaml"]

_HEAD = "# A machine for Bellcrank: SI units, radians; inertia about the centre of mass.\n"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
#: what readers of YAML take for something else than text
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def as_yaml(document: dict[str, Any]) -> str:
    """YAML text, between ``---`` and ``...``, so that a file that is cut off does not pass for a whole one."""
    lines = [_HEAD + "---"]
    for key, value in document.items():
        if not isinstance(value, dict):
            lines.append(f"{key}: {_flow(value)}")
            continue
        lines.append(f"{key}:")
        for name, part in value.items():
            if isinstance(part, dict) and part:
                lines.append(f"  {_string(name)}:")
                lines.extend(f"    {label}: {_flow(inner)}" for label, inner in part.items())
            else:
                lines.append(f"  {_string(name)}: {_flow(part)}")
    return "\n".join([*lines, "...", ""])


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_string(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(v) for v in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _string(value) if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    """With a point, or old readers of YAML take 1e-05 for text."""
    text = repr(value)
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def _string(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(_ESCAPES.get(c) or (c if _printable(c) else f"\\U{ord(c):08x}") for c in text) + '"'


def _printable(c: str) -> bool:
    return " " <= c <= "~" or (c.isprintable() and c not in "\ufeff\ufffe\uffff")


def as_json(document: dict[str, Any]) -> str:
    """JSON text."""
    lines = []
    for key, value in document.items():
        if isinstance(value, dict):
            parts = [f"    {_quoted(name)}: {_block(part)}" for name, part in value.items()]
            lines.append(f"  {_quoted(key)}: {{\n" + ",\n".join(parts) + "\n  }")
        else:
            lines.append(f"  {_quoted(key)}: {_quoted(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _block(part: Any) -> str:
    if not isinstance(part, dict) or not part:
        return _quoted(part)
    return "{\n" + ",\n".join(f"      {_quoted(k)}: {_quoted(v)}" for k, v in part.items()) + "\n    }"


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
