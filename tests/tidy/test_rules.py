"""Rules for single files, and that each of them can be broken."""

import pytest

from tests.tidy import rules, source

# Split, so that this file does not break the rules that it plants.
MARK = "TO" + "DO"
HOME = "/ho" + "me/ann"
HOST = "py" + "pi.org"


@pytest.mark.parametrize("rule", rules.PYTHON_RULES)
def test_python_files(rule: rules.Rule) -> None:
    sources = source.written_sources().items()
    found = [item for path, text in sources if path.endswith(".py") for item in rule(path, text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("rule", rules.SOURCE_RULES)
def test_sources(rule: rules.Rule) -> None:
    found = [item for path, text in source.written_sources().items() for item in rule(path, text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("rule", rules.TEXT_RULES)
def test_all_text(rule: rules.Rule) -> None:
    texts = source.texts(source.files())
    found = [item for path, text in texts.items() for item in rule(path, text)]
    assert not found, "\n".join(found)


PLANTED = [
    (rules.unfinished, "storage/x.py", f"x = 1  # {MARK}: later"),
    (rules.unfinished, "storage/x.py", f"# FIX{'ME'}"),
    (rules.unfinished, "kraftlog/x.c", f"int x; /* {MARK} later */"),
    (rules.unfinished, "Makefile", f"# {MARK} later"),
    (rules.bare_tasks, "quorum/x.py", "asyncio.create_task(f())"),
    (rules.bare_tasks, "quorum/x.py", "from asyncio import create_task\ncreate_task(f())"),
    (rules.bare_tasks, "quorum/x.py", "self.loop.create_task(f())"),
    (rules.bare_tasks, "quorum/x.py", "asyncio.get_running_loop().create_task(f())"),
    (rules.bare_tasks, "quorum/x.py", "asyncio.ensure_future(f())"),
    (rules.sleeping_tests, "tests/x.py", "import time\ntime.sleep(1)"),
    (rules.sleeping_tests, "tests/x.py", "import time as t\nt.sleep(1)"),
    (rules.sleeping_tests, "tests/x.py", "from time import sleep\nsleep(1)"),
    (rules.file_access, "storage/x.py", "f = open('a')"),
    (rules.file_access, "storage/x.py", "import os\nos.rename('a', 'b')"),
    (rules.file_access, "storage/x.py", "import os\nos.path.getsize('a')"),
    (rules.file_access, "storage/x.py", "import os as o"),
    (rules.file_access, "storage/x.py", "from os import fsync"),
    (rules.file_access, "storage/x.py", "from os.path import exists"),
    (rules.file_access, "storage/x.py", "import io\nio.FileIO('a')"),
    (rules.file_access, "storage/x.py", "from pathlib import Path"),
    (rules.file_access, "storage/x.py", "import pathlib"),
    (rules.file_access, "storage/x.py", "import shutil"),
    (rules.file_access, "storage/deep/x.py", "import mmap"),
    (rules.developer_paths, "docs/x.md", f"see {HOME}/kraftlog"),
    (rules.developer_paths, "Makefile", "cp ../sha" + "red/x ."),
    (rules.registry_hosts, "Makefile", f"pip install -i https://{HOST}/simple"),
    (rules.registry_hosts, "docs/x.md", "files.python" + "hosted.org"),
    (rules.registry_hosts, "pyproject.toml", "https://arti" + "factory.corp.example/x"),
]


@pytest.mark.parametrize(("rule", "path", "text"), PLANTED)
def test_a_planted_violation_is_found(rule: rules.Rule, path: str, text: str) -> None:
    assert rule(path, text + "\n")


INNOCENT = [
    (rules.unfinished, "storage/x.py", f"x = 1  # {MARK} (#12): later"),
    (rules.unfinished, "storage/x.py", f"x = '{MARK}'"),
    (rules.unfinished, "CONTRIBUTING.md", f"No {MARK} without an issue."),
    (rules.bare_tasks, "quorum/x.py", "group.create_task(f())"),
    (rules.sleeping_tests, "tests/x.py", "clock.sleep(1)"),
    (rules.sleeping_tests, "chaos/x.py", "import time\ntime.sleep(1)"),
    (rules.file_access, "storage/files.py", "import os\nos.rename('a', 'b')"),
    (rules.file_access, "tests/storage/x.py", "open('a')"),
    (rules.file_access, "storage/x.py", "import os\nos.path.join('a', 'b')\nfiles.open('a')"),
    (rules.file_access, "storage/x.py", "import io\nio.BytesIO(b'')"),
    (rules.file_access, "storage/x.py", "from pathlib import PurePath"),
    (rules.developer_paths, "docs/x.md", "network/work/done and 1/home/2"),
    (rules.registry_hosts, "docs/x.md", "See https://kafka.apache.org/documentation"),
]


@pytest.mark.parametrize(("rule", "path", "text"), INNOCENT)
def test_what_is_right_is_left_alone(rule: rules.Rule, path: str, text: str) -> None:
    assert rule(path, text + "\n") == []
