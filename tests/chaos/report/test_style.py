import re

from chaos.report.style import CSS


def test_the_page_fetches_nothing_for_its_looks() -> None:
    assert "@import" not in CSS
    assert re.findall(r"url\(([^)]*)\)", CSS) == ["#stripes", "#spots"]


def test_every_brace_is_closed() -> None:
    assert CSS.count("{") == CSS.count("}")


def test_text_on_a_bar_can_be_read() -> None:
    """White on each shade of a bar has the contrast that WCAG AA asks of text."""
    shades = re.findall(r"rect\.(?:leader\d|fault|phase|reign|nobody)\{fill:(#[0-9a-f]{6})", CSS)
    assert len(shades) == 10
    assert [each for each in shades if 1.05 / (_luminance(each) + 0.05) < 4.5] == []


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
