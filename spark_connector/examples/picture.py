"""Small charts as SVG text: every browser shows them, and nothing has to be installed."""

from collections.abc import Callable, Sequence
from html import escape

WIDTH = 860
HEIGHT = 420
LEFT, RIGHT, TOP, BOTTOM = 90, 30, 80, 50
BLUE, RED, INK, GREY, RULE = "#2b6cb0", "#c53030", "#1a202c", "#718096", "#e2e8f0"
RULES = 4
LABELS_MAX = 12

Label = Callable[[float], str]


def columns(title: str, subtitle: str, rows: Sequence[tuple[str, float]]) -> str:
    """One column for each row, from left to right."""
    top = _round_up(max((value for _, value in rows), default=1.0))
    step = (WIDTH - LEFT - RIGHT) / max(len(rows), 1)
    every = -(-len(rows) // LABELS_MAX) or 1
    parts = _rules(top, _plain)
    for number, (name, value) in enumerate(rows):
        x, height = LEFT + number * step, _scale(value, top)
        parts.append(_box(x + step * 0.1, HEIGHT - BOTTOM - height, (step * 0.8, height)))
        if number % every == 0:
            parts.append(_text((x + step / 2, HEIGHT - BOTTOM + 20), name, anchor="middle"))
    return _page(title, subtitle, parts, HEIGHT)


def bars(title: str, subtitle: str, rows: Sequence[tuple[str, float]]) -> str:
    """One bar for each row, from top to bottom, with its number."""
    top = max((value for _, value in rows), default=1.0) or 1.0
    room = WIDTH - 2 * LEFT - RIGHT - 60
    parts: list[str] = []
    for number, (name, value) in enumerate(rows):
        y, length = TOP + number * 30, value / top * room
        parts.append(_text((LEFT + 50, y + 15), name, anchor="end"))
        parts.append(_box(LEFT + 60, y, (length, 20)))
        parts.append(_text((LEFT + 66 + length, y + 15), _plain(value)))
    return _page(title, subtitle, parts, TOP + 30 * len(rows) + 20)


def dots(
    title: str, subtitle: str, points: Sequence[tuple[float, float]], label_x: Label = str
) -> str:
    """One dot for each point."""
    top = _round_up(max((y for _, y in points), default=1.0))
    first = min((x for x, _ in points), default=0.0)
    last = max((x for x, _ in points), default=1.0)
    span, room = (last - first) or 1.0, WIDTH - LEFT - RIGHT
    parts = _rules(top, _plain)
    for mark in range(RULES + 1):
        x = first + span * mark / RULES
        place = (LEFT + room * mark / RULES, HEIGHT - BOTTOM + 20.0)
        parts.append(_text(place, label_x(x), anchor="middle"))
    for x, y in points:
        left, up = LEFT + (x - first) / span * room, HEIGHT - BOTTOM - _scale(y, top)
        parts.append(f'<circle cx="{left:.1f}" cy="{up:.1f}" r="4" fill="{RED}" opacity="0.6"/>')
    return _page(title, subtitle, parts, HEIGHT)


def _page(title: str, subtitle: str, parts: Sequence[str], height: float) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}"'
        f' font-family="sans-serif" font-size="13">'
    )
    ground = f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>'
    words = [
        _text((30, 34), title, size=20, colour=INK),
        _text((30, 56), subtitle),
    ]
    return "\n".join([head, ground, *words, *parts, "</svg>", ""])


def _rules(top: float, label: Label) -> list[str]:
    """Lines across, each with its value."""
    parts: list[str] = []
    for mark in range(RULES + 1):
        y = HEIGHT - BOTTOM - _scale(top * mark / RULES, top)
        parts.append(
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{RULE}"/>'
        )
        parts.append(_text((LEFT - 8, y + 4), label(top * mark / RULES), anchor="end"))
    return parts


def _box(x: float, y: float, size: tuple[float, float]) -> str:
    width, height = size
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{BLUE}"/>'
    )


def _text(
    place: tuple[float, float],
    text: str,
    *,
    anchor: str = "start",
    size: int = 13,
    colour: str = GREY,
) -> str:
    return (
        f'<text x="{place[0]:.1f}" y="{place[1]:.1f}" text-anchor="{anchor}"'
        f' font-size="{size}" fill="{colour}">{escape(text)}</text>'
    )


def _scale(value: float, top: float) -> float:
    return value / top * (HEIGHT - TOP - BOTTOM)


def _round_up(value: float) -> float:
    """The next number that divides well: 1, 2, 4 or 8 with zeros behind."""
    power = 1.0
    while power * 8 < value:
        power *= 10
    return next(power * step for step in (1, 2, 4, 8) if power * step >= value)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 1_000 else f"{value:,.1f}"
