"""The documents, and that each of their rules can be broken."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kraftlog import _codec
from kraftlog._codec import CHOICE_VARIABLE
from tests.tidy import docs, source

README_LINES_MAX = 150
EXAMPLES = docs.python_examples((source.ROOT / "README.md").read_text())


def documents() -> dict[str, str]:
    return source.texts([path for path in source.files() if path.endswith(".md")])


def run(example: docs.Example, directory: Path) -> subprocess.CompletedProcess[str]:
    """As a reader would, in a directory of its own; only the repository is put at hand.

    The codec in use is named: where the native one was not built, stderr would say so.
    """
    (directory / "tour.py").write_text(example.code)
    return subprocess.run(
        [sys.executable, "-W", "error", "tour.py"],
        cwd=directory,
        env={
            **os.environ,
            "PYTHONPATH": str(source.ROOT),
            CHOICE_VARIABLE: _codec.codec.NAME,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_readme_shows_examples() -> None:
    assert EXAMPLES
    assert any(example.output for example in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"line {example.line}")
def test_an_example_of_the_readme_runs_as_shown(example: docs.Example, tmp_path: Path) -> None:
    answer = run(example, tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == (example.output or "")


def test_the_readme_is_short() -> None:
    assert len(documents()["README.md"].splitlines()) <= README_LINES_MAX


def test_links_lead_somewhere() -> None:
    broken = docs.broken_links(documents(), source.files())
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_documents_run_real_modules(document: str) -> None:
    unknown = docs.unknown_modules(documents()[document], source.files(), source.PACKAGES)
    assert not unknown, f"{document} runs {' '.join(unknown)}"


# -- the rules themselves


def test_examples_are_found_with_their_output() -> None:
    document = (
        "# T\n\n```python\na\n```\n\n```text\n1\n```\n"
        "```python\nb\n```\nand\n```text\n2\n```\n```sh\nc\n```\n```python\nd\n```\n"
    )
    assert docs.python_examples(document) == [
        docs.Example(3, "a\n", "1\n"),
        docs.Example(10, "b\n", None),
        docs.Example(20, "d\n", None),
    ]


def test_an_example_that_fails_or_warns_is_noticed(tmp_path: Path) -> None:
    assert run(docs.Example(1, "import kraftlog\nprint(1)", None), tmp_path).stdout == "1\n"
    assert run(docs.Example(1, "assert False", None), tmp_path).returncode != 0
    warns = "import warnings\nwarnings.warn('old', stacklevel=1)"
    assert run(docs.Example(1, warns, None), tmp_path).returncode != 0


@pytest.mark.parametrize(
    "link",
    ["x.md", "docs/x.md", "/README.md", "../README.md", "docs/a.md#no", "#no", "docs#two-words"],
)
def test_a_broken_link_is_found(link: str) -> None:
    texts = {"README.md": f"# Two words\n[text]({link})", "docs/a.md": "# `A` is, for one\n"}
    assert docs.broken_links(texts, texts) == [f"README.md: {link}"]


@pytest.mark.parametrize(
    "link",
    ["../README.md", "b.md", "./", "../docs/", "../README.md#two-words", "#a-is-for-one"],
)
def test_a_link_that_leads_somewhere_is_left_alone(link: str) -> None:
    texts = {"README.md": "# Two words\n", "docs/a.md": f"# `A` is, for one\n[text]({link})"}
    assert docs.broken_links(texts, [*texts, "docs/b.md"]) == []


def test_other_sites_and_code_are_no_links_of_ours() -> None:
    text = "[a](https://example.org/x) `[b](c)` [mail](mailto:a@example.org)\n```\n[d](e)\n```\n"
    assert docs.broken_links({"README.md": text}, ["README.md"]) == []


def test_a_module_that_is_not_there_is_found() -> None:
    document = "`python -m storage.log`, `python -m storage.no x`, python -m pytest"
    assert docs.unknown_modules(document, ["storage/log.py"], ["storage"]) == ["storage.no"]
    assert docs.unknown_modules("python -m chaos", ["chaos/__main__.py"], ["chaos"]) == []
