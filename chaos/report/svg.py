"""Pictures as text: a time axis, lanes of bars, dots and columns. Every text is escaped here."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 1100
LEFT = 120
RIGHT = 16
LANE = 26
AXIS = 26
CHAR = 6.6
"""About the width of a character of a label."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From seconds to the horizontal position."""

    seconds: float

    def x(self, t: float) -> float:
        share = min(max(t / self.seconds, 0.0), 1.0) if self.seconds > 0 else 0.0
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> list[float]:
        step = nice_step(self.seconds / 10)
        return [step * number for number in range(int(self.seconds / step) + 1)]


def nice_step(least: float) -> float:
    """1, 2 or 5 times a power of ten, not below this."""
    if least <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * 0.999)


def picture(title: str, height: float, scale: Scale, parts: Iterable[str]) -> str:
    """A whole SVG with its time axis at the bottom."""
    inner = "\n".join([*_axis(scale, height), *parts])
    name = escape(title)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height + AXIS:.0f}" role="img" aria-label="{name}"'
        f' xmlns="http://www.w3.org/2000/svg"><title>{name}</title>\n{inner}\n</svg>'
    )


def _axis(scale: Scale, height: float) -> list[str]:
    parts = []
    for t in scale.ticks():
        x = scale.x(t)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{height:.0f}"/>')
        parts.append(text(x, height + 16, f"{t:g} s", "axis", anchor="middle"))
    return parts


def text(x: float, y: float, words: str, style: str, *, anchor: str = "start") -> str:
    return (
        f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


def band(scale: Scale, begin: float, end: float, height: float) -> str:
    """The time of a fault, behind all else."""
    x = scale.x(begin)
    width = max(scale.x(end) - x, 1.0)
    return f'<rect class="band" x="{x:.1f}" y="0" width="{width:.1f}" height="{height:.0f}"/>'


@dataclass(frozen=True, slots=True)
class Bar:
    begin: float
    end: float
    label: str
    hover: str
    style: str


def lane(scale: Scale, row: int, name: str, bars: Sequence[Bar]) -> list[str]:
    """A named row of bars; a label that does not fit its bar is left to the hover and the table."""
    top = row * LANE
    parts = [text(LEFT - 8, top + 17, shortened(name, 16), "lane", anchor="end")]
    for bar in bars:
        x = scale.x(bar.begin)
        width = max(scale.x(bar.end) - x, 3.0)
        parts.append(
            f'<g><title>{escape(bar.hover)}</title><rect class="{bar.style}" x="{x:.1f}"'
            f' y="{top + 4}" width="{width:.1f}" height="{LANE - 8}" rx="2"/>'
        )
        if len(bar.label) * CHAR + 8 <= width:
            parts.append(text(x + 5, top + 17, bar.label, "onbar"))
        parts.append("</g>")
    return parts


def shortened(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def mark(x: float, y: float, style: str, hover: str) -> str:
    """Shape and colour both tell: a dot is ok, a cross failed, a diamond is unknown."""
    title = f"<title>{escape(hover)}</title>"
    if style == "ok":
        return f'<circle class="ok" cx="{x:.1f}" cy="{y:.1f}" r="2.2">{title}</circle>'
    if style == "fail":
        path = f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
    else:
        path = f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z"
    return f'<path class="{style}" d="{path}">{title}</path>'


@dataclass(frozen=True, slots=True)
class Heights:
    """From a value to the vertical position, zero at the bottom; logarithmic where told to."""

    least: float
    most: float
    height: float
    is_log: bool = False

    def y(self, value: float) -> float:
        low, high, at = self.least, self.most, min(max(value, self.least), self.most)
        if self.is_log:
            low, high, at = math.log10(low), math.log10(high), math.log10(at)
        return self.height - (at - low) / (high - low) * (self.height - 8)


def level(y: float, label: str) -> list[str]:
    """A horizontal line of the grid, with its value."""
    right = WIDTH - RIGHT
    line = f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
    return [line, text(LEFT - 8, y + 4, label, "axis", anchor="end")]
