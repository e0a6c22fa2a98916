"""Pictures as text: a time axis, lanes of bars, dots and columns. Every text is escaped here."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 1100
LEFT = 120
RIGHT = 28
LANE = 26
AXIS = 26
CHAR = 6.8
"""About the width of a character of a label."""
NAME_MAX = 16
"""Characters of the name of a lane: as many as fit left of it."""
HOVER_MAX = 240
PATTERNS = (
    '<defs><pattern id="stripes" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<rect class="fail" width="6" height="6"/><path class="gap" d="M0 6L6 0"/></pattern>'
    '<pattern id="spots" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<rect class="unknown" width="6" height="6"/><circle class="gap" cx="3" cy="3" r="1.2"/>'
    "</pattern></defs>"
)
"""What failed is striped, what is unknown is spotted: colour is never alone."""


def escaped(words: str) -> str:
    """For any place in the page. What cannot be seen, or would turn the text around, is written as
    its number: it is no part of XML, or no part of what somebody wanted to tell.
    """
    visible = (
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode()
        for each in words
    )
    return escape("".join(visible))


def shortened(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


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
    name = escaped(title)
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
        f"{escaped(words)}</text>"
    )


def titled(hover: str) -> str:
    return f"<title>{escaped(shortened(hover, HOVER_MAX))}</title>"


def band(scale: Scale, begin: float, end: float, height: float) -> str:
    """The time of a fault, behind all else."""
    x = scale.x(begin)
    width = max(scale.x(end) - x, 1.0)
    return f'<rect class="band" x="{x:.1f}" y="0" width="{width:.1f}" height="{height:.0f}"/>'


# -- lanes


@dataclass(frozen=True, slots=True)
class Bar:
    begin: float
    end: float
    labels: tuple[str, ...]
    """What it is called, at length first."""
    hover: str
    style: str


def rows_of(bars: Iterable[Bar]) -> list[list[Bar]]:
    """As few rows as it takes for no bar to hide another."""
    rows: list[list[Bar]] = []
    for bar in sorted(bars, key=lambda each: each.begin):
        free = next((row for row in rows if row[-1].end <= bar.begin), None)
        if free is None:
            rows.append([bar])
        else:
            free.append(bar)
    return rows


def lane(scale: Scale, row: int, name: str, bars: Sequence[Bar]) -> list[str]:
    """A named row of bars."""
    top = row * LANE
    parts = [text(LEFT - 8, top + 17, shortened(name, NAME_MAX), "lane", anchor="end")]
    rights = [*(scale.x(bar.begin) for bar in bars[1:]), float(WIDTH)]
    for bar, right in zip(bars, rights, strict=True):
        x = scale.x(bar.begin)
        width = max(scale.x(bar.end) - x, 3.0)
        parts.append(
            f'<g>{titled(bar.hover)}<rect class="{bar.style}" x="{x:.1f}"'
            f' y="{top + 4}" width="{width:.1f}" height="{LANE - 8}" rx="2"/>'
        )
        parts += _label(bar.labels, x, width, right - x, top + 17)
        parts.append("</g>")
    return parts


def _label(labels: Sequence[str], x: float, width: float, room: float, y: float) -> list[str]:
    """On the bar, or else beside it; what fits nowhere is left to the hover and the table."""
    for words in labels:
        if _width(words) <= width:
            return [text(x + 5, y, words, "onbar")]
    if labels and width + _width(labels[-1]) <= room:
        return [text(x + width + 4, y, labels[-1], "beside")]
    return []


def _width(words: str) -> float:
    # A character that is not Latin may take twice the place.
    return sum(CHAR if ord(each) < 0x2000 else 2 * CHAR for each in words) + 10


# -- dots and columns


def mark(x: float, y: float, style: str, hover: str) -> str:
    """Shape and colour both tell: a dot is ok, a cross failed, a diamond is unknown."""
    title = titled(hover)
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


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a column."""

    value: float
    style: str
    hover: str


def column(scale: Scale, heights: Heights, times: tuple[float, float], *pieces: Piece) -> list[str]:
    """Pieces on top of each other, as wide as their time."""
    x, base, parts = scale.x(times[0]), 0.0, []
    width = max(scale.x(times[1]) - x - 1, 1.0)
    for piece in pieces:
        low, high = heights.y(base), heights.y(base + piece.value)
        base += piece.value
        parts.append(
            f'<rect class="column {piece.style}" x="{x:.1f}" y="{high:.1f}" width="{width:.1f}"'
            f' height="{low - high:.1f}">{titled(piece.hover)}</rect>'
        )
    return parts
