"""Colors of shapes: by name, in hexadecimal, or as numbers."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.errors import ModelError, hint

__all__ = ["NAMED", "Color", "to_color"]

#: red, green, blue and opacity, each in 0..1
Color = tuple[float, float, float, float]

#: the names that are known, as CSS defines them
NAMED = {
    "black": "000000", "blue": "0000ff", "brown": "a52a2a", "crimson": "dc143c", "cyan": "00ffff", "darkblue": "00008b",
    "darkgray": "a9a9a9", "darkgreen": "006400", "darkorange": "ff8c00", "darkred": "8b0000", "gold": "ffd700",
    "gray": "808080", "green": "008000", "grey": "808080", "indigo": "4b0082", "ivory": "fffff0", "khaki": "f0e68c",
    "lightblue": "add8e6", "lightgray": "d3d3d3", "lightgreen": "90ee90", "magenta": "ff00ff", "maroon": "800000",
    "navy": "000080", "olive": "808000", "orange": "ffa500", "pink": "ffc0cb", "purple": "800080", "red": "ff0000",
    "salmon": "fa8072", "silver": "c0c0c0", "skyblue": "87ceeb", "steelblue": "4682b4", "tan": "d2b48c",
    "teal": "008080", "tomato": "ff6347", "turquoise": "40e0d0", "violet": "ee82ee", "white": "ffffff",
    "yellow": "ffff00",
}


def to_color(value: str | Sequence[float], what: str) -> Color:
    """Red, green, blue and opacity in 0..1, from a name, ``"#rrggbb"``, ``"#rrggbbaa"``, ``"#rgb"`` or three or four
    numbers; `what` says whose color it is.

    >>> to_color("#ff000080", "ball")[3] == 128 / 255
    True
    """
    if isinstance(value, str):
        return _of_text(value, what)
    try:
        numbers = tuple(float(v) for v in value)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: the color {value!r} is neither a name nor numbers") from None
    if len(numbers) not in (3, 4) or not all(0.0 <= v <= 1.0 for v in numbers):
        raise ModelError(f"{what}: a color is three or four numbers in 0..1 (red, green, blue, opacity), got {numbers}")
    return numbers[0], numbers[1], numbers[2], (*numbers, 1.0)[3]


def _of_text(value: str, what: str) -> Color:
    text = NAMED.get(value.lower(), value.removeprefix("#") if value.startswith("#") else "")
    if len(text) in (3, 4):
        text = "".join(2 * c for c in text)
    try:
        parts = [int(text[i:i + 2], 16) / 255.0 for i in range(0, len(text), 2)] if text.isalnum() else []
    except ValueError:
        parts = []
    if len(text) not in (6, 8) or not parts:
        raise ModelError(f"{what}: unknown color {value!r}; give a name, '#rrggbb', '#rrggbbaa' or three or four "
                         f"numbers in 0..1{hint(value, NAMED)}")
    return parts[0], parts[1], parts[2], (*parts, 1.0)[3]
