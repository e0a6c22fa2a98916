"""Rules about documents: their examples run, and their links lead somewhere."""

import os.path
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE_SPAN = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")
_HEADING = re.compile(r"^#+ +(.*?)\s*$", re.MULTILINE)
_MODULE_CALL = re.compile(r"\bpython3? -m ([\w.]+)")


@dataclass(frozen=True, slots=True)
class Example:
    """A fenced block of Python; `output` is the block of text right behind it, if there is one."""

    line: int
    code: str
    output: str | None


def python_examples(document: str) -> list[Example]:
    blocks = list(_FENCED.finditer(document))
    followers: list[re.Match[str] | None] = [*blocks[1:], None]
    return [
        Example(document.count("\n", 0, block.start()) + 1, block[2], _output(block, follower))
        for block, follower in zip(blocks, followers, strict=True)
        if block[1] == "python"
    ]


def _output(block: re.Match[str], follower: re.Match[str] | None) -> str | None:
    if follower is None or follower[1] != "text":
        return None
    between = block.string[block.end() : follower.start()]
    return None if between.strip() else follower[2]


def broken_links(documents: Mapping[str, str], paths: Collection[str]) -> list[str]:
    """Relative links of documents to files, directories and headings that are not there."""
    present = {*paths, *_directories(paths)}
    return [
        f"{path}: {link}"
        for path, text in documents.items()
        for link in _links(text)
        if not _leads_somewhere(path, link, documents, present)
    ]


def _directories(paths: Collection[str]) -> Iterator[str]:
    for path in paths:
        while path := os.path.dirname(path):
            yield path


def _links(text: str) -> list[str]:
    prose = _CODE_SPAN.sub("", _FENCED.sub("", text))
    return [link for link in _LINK.findall(prose) if not _ELSEWHERE.match(link)]


def _leads_somewhere(
    path: str, link: str, documents: Mapping[str, str], present: Collection[str]
) -> bool:
    name, _, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
    return target in present and (not anchor or anchor in _anchors(documents.get(target, "")))


def _anchors(text: str) -> set[str]:
    """What a heading is called in a link: lower case, no punctuation, hyphens for spaces."""
    titles = _HEADING.findall(_FENCED.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}


def unknown_modules(document: str, paths: Collection[str], packages: Collection[str]) -> list[str]:
    """Modules of ours that a document runs with `python -m`, and that are not there."""
    called = [name for name in _MODULE_CALL.findall(document) if name.split(".")[0] in packages]
    return [name for name in called if not _is_module(name.replace(".", "/"), paths)]


def _is_module(stem: str, paths: Collection[str]) -> bool:
    return f"{stem}.py" in paths or f"{stem}/__main__.py" in paths
