"""`make picture`: docs/demo.svg anew, from what a real run of the demo prints on a terminal.

The demo runs on a pseudo-terminal, so that the picture has the colours that a person sees. Nothing
is edited: what stands in the picture was printed by that run.
"""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "demo.svg"
SHOWN = "$ make demo SPARK=0"
"""What the picture says was typed, and what the Makefile runs for it."""
DEMO = ("-m", "kraftctl", "demo", "--no-spark")

FONT_SIZE, LINE_HEIGHT, MARGIN = 14, 19, 18
CHARACTER_WIDTH = 8.43
STYLES = {
    "": 'fill="#d7dae0"',
    "1": 'fill="#ffffff" font-weight="bold"',
    "31": 'fill="#ff6b6b"',
    "32": 'fill="#7ee787"',
    "33": 'fill="#f2cc60"',
}

_STYLED = re.compile(r"\x1b\[(\d*)m([^\x1b]*)")

Line = tuple[str, str]
"""A style and the text in it: the demo colours whole lines."""


def record(command: Sequence[str]) -> str:
    """All that a command prints on a terminal of its own."""
    ours, theirs = pty.openpty()
    chunks = []
    with subprocess.Popen(command, cwd=ROOT, stdin=theirs, stdout=theirs) as process:
        os.close(theirs)
        while chunk := _read(ours):
            chunks.append(chunk)
    os.close(ours)
    if process.returncode:
        sys.exit(
            f"{' '.join(command)} ended with {process.returncode}: there is no picture of that"
        )
    return b"".join(chunks).decode()


def _read(terminal: int) -> bytes:
    """The next piece; nothing once nobody can write any more, which Linux reports as an error."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def lines_of(printed: str) -> Iterator[Line]:
    for line in printed.replace("\r", "").splitlines():
        found = _STYLED.match(line)
        yield (found[1], found[2]) if found else ("", line)


def picture(lines: Sequence[Line]) -> str:
    width = max(len(text) for _, text in lines) * CHARACTER_WIDTH + 2 * MARGIN
    height = len(lines) * LINE_HEIGHT + 2 * MARGIN
    rows = [
        f'<text x="{MARGIN}" y="{MARGIN + number * LINE_HEIGHT + FONT_SIZE}" {STYLES[style]}'
        f' xml:space="preserve">{escape(text)}</text>'
        for number, (style, text) in enumerate(lines)
        if text
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}"'
        f' font-family="ui-monospace, Menlo, Consolas, monospace" font-size="{FONT_SIZE}">'
    )
    ground = '<rect width="100%" height="100%" rx="8" fill="#16181d"/>'
    return "\n".join([head, ground, *rows, "</svg>\n"])


def main() -> None:
    printed = record((sys.executable, *DEMO))
    PICTURE.write_text(picture([("", SHOWN), *lines_of(printed)]), encoding="utf-8")
    print(f"{PICTURE.relative_to(ROOT)} shows that run")


if __name__ == "__main__":
    main()
