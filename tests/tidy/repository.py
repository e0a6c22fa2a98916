"""Rules about how files belong together."""

import re
from collections.abc import Collection, Mapping
from types import ModuleType

from tests.tidy.source import PACKAGES, is_generated

_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_MAKE_CALL = re.compile(r"(?:^|&&|;)\s*(?:\$ )?make\b([^&;#|\n]*)", re.MULTILINE)
_TARGET = re.compile(r"^([a-z][a-z-]*):(?!=)", re.MULTILINE)
_KEY = re.compile(r"^([A-Z][A-Z0-9_]*)(?:: Key\[.*\])? = (?:Key|_of_\w+)\(", re.MULTILINE)
_FOLDERS = {"spark_connector": "spark"}
"""Packages whose tests have a shorter name."""


def untested_modules(paths: Collection[str]) -> list[str]:
    """Modules without a test file of the same name at the same place under tests/.

    A private module (`_name.py`) is tested through the public one that it belongs to.
    """
    present = set(paths)
    return [path for path in paths if _needs_test(path) and _test_of(path) not in present]


def _needs_test(path: str) -> bool:
    folder = path.partition("/")[0]
    is_module = path.endswith(".py") and not path.rpartition("/")[2].startswith("_")
    return folder in (*PACKAGES, ".make") and is_module and not is_generated(path)


def _test_of(path: str) -> str:
    folder, _, name = path.lstrip(".").rpartition("/")
    package, slash, rest = folder.partition("/")
    return f"tests/{_FOLDERS.get(package, package)}{slash}{rest}/test_{name}"


def unproven_rows(rows: Collection[str], requirements: str, tests: Mapping[str, str]) -> list[str]:
    """Rows that the requirements do not list, or that no test names in a comment."""
    return [
        *(f"{row} is not in the requirements" for row in rows if not _lists(requirements, row)),
        *(f"{row} is named by no test" for row in rows if not _named(tests, row)),
    ]


def _lists(requirements: str, row: str) -> bool:
    return re.search(rf"\b{row}\b", requirements) is not None


def _named(tests: Mapping[str, str], row: str) -> bool:
    return any(re.search(rf"#.*\b{row}\b", text) for text in tests.values())


def make_targets(makefile: str) -> set[str]:
    return set(_TARGET.findall(makefile))


def unknown_targets(document: str, makefile: str) -> list[str]:
    """Words that a document's fenced blocks give to make, and that the Makefile does not know."""
    blocks = "\n".join(_FENCED.findall(document))
    words = [word for call in _MAKE_CALL.findall(blocks) for word in call.split()]
    targets = make_targets(makefile)
    return [word for word in words if re.fullmatch(r"[a-z][a-z-]*", word) and word not in targets]


def public_names(module: ModuleType) -> set[str]:
    """What a package offers: its __all__, or else every name without an underscore in front."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return set(listed)
    names = {name for name, value in vars(module).items() if not isinstance(value, ModuleType)}
    return {name for name in names if not name.startswith("_")}


def unread_keys(sources: Mapping[str, str]) -> list[str]:
    """Configuration keys that are declared (kraftlog/*_keys.py) and that no code reads."""
    declaring = {path for path in sources if re.fullmatch(r"kraftlog/\w+_keys\.py", path)}
    readers = "\n".join(text for path, text in sources.items() if path not in declaring)
    used = set(re.findall(r"\b[A-Z][A-Z0-9_]*\b", readers))
    declared = {name for path in declaring for name in _KEY.findall(sources[path])}
    return sorted(declared - used)
