"""The report as a browser shows it. Without Chromium this is skipped, and says so."""

import shutil
import subprocess
from pathlib import Path

import pytest

from chaos.report.page import write_report
from tests.chaos.report.pixels import Colour, Picture, decode_png
from tests.chaos.report.runs import Page, a_broken_leader, failed, write_run

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PASS_GREEN, FAIL_ORANGE = (0x00, 0x9E, 0x73), (0xD5, 0x5E, 0x00)
BACKGROUND = (0xF5, 0xF6, 0xF8)
PICTURES = 6
WIDTHS = (500, 1000)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture
def browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("THE REPORT WAS NOT LOOKED AT IN A BROWSER: there is no Chromium")
    return found


def run(browser: str, profile: Path, page: Path, *flags: str) -> "subprocess.CompletedProcess[str]":
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += ["--enable-logging=stderr", f"--user-data-dir={profile}", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)


def look(browser: str, page: Path, width: int) -> Picture:
    """The page from its top."""
    shot = page.parent / f"{width}.png"
    run(browser, page.parent / "p", page, f"--window-size={width},400", f"--screenshot={shot}")
    return decode_png(shot.read_bytes())


def share(picture: Picture, colour: Colour) -> float:
    """Of the pixels at the left edge of the verdict."""
    found = [picture.at(x, 60) for x in range(picture.width // 4)]
    return found.count(colour) / len(found)


def test_a_browser_finds_all_of_it_and_nothing_to_complain_about(
    tmp_path: Path, browser: str
) -> None:
    page = write_report(write_run(tmp_path, a_broken_leader()))
    ran = run(browser, tmp_path / "p", page, "--dump-dom")
    assert "CONSOLE" not in ran.stderr
    assert ran.stdout.count("<svg") >= PICTURES
    shown = Page(ran.stdout.replace("<!DOCTYPE html>", ""))
    assert [each.text for each in shown.all("h1")] == ["kill-broker"]
    assert len(shown.all("h3")) == PICTURES


@pytest.mark.parametrize("width", WIDTHS)
def test_the_verdict_is_seen_at_first_sight_and_nothing_sticks_out(
    tmp_path: Path, browser: str, width: int
) -> None:
    for name, result, colour in (("good", None, PASS_GREEN), ("bad", failed(), FAIL_ORANGE)):
        (tmp_path / name).mkdir()
        page = write_report(write_run(tmp_path / name, a_broken_leader(), result))
        picture = look(browser, page, width)
        assert picture.width == width
        assert share(picture, colour) > 0
        assert len(picture.colours()) > 50  # text and lines, not an empty page
        assert picture.column(width - 1) == {BACKGROUND}


def test_a_page_that_is_too_wide_is_noticed(tmp_path: Path, browser: str) -> None:
    """The check above can fail."""
    page = write_report(write_run(tmp_path, a_broken_leader()))
    wide = '<h1 style="white-space:nowrap;font-size:99px">'
    page.write_text(page.read_text("utf-8").replace("<h1>", wide), "utf-8")
    assert look(browser, page, WIDTHS[0]).column(WIDTHS[0] - 1) != {BACKGROUND}
