"""Rules for a single file. Each returns what it found as `path:line: what is wrong`."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator

Rule = Callable[[str, str], list[str]]

_UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b(?!\s*\(#\d+\))")
_COMMENT = re.compile(r"(?:#|//|/\*|<!--|^\s*\*)(.*)")

_DEVELOPER_PATH = re.compile(r"(?<![\w.])/(?:work|root|home|Users)/[\w.-]|\.\./shared\b")
_REGISTRY_HOST = re.compile(
    r"\b(?:pypi|pythonhosted|maven|jfrog|docker|ghcr|npmjs|conda|anaconda)\.(?:org|io|com|apache)\b"
    r"|\bpypi\.python\.org\b|\b(?:artifactory|nexus|devpi)\b[\w.-]*\.[a-z]{2,}",
    re.IGNORECASE,
)

# files.py, and the pool of descriptors on which it stands.
_FILE_ACCESS = {
    "storage/files.py",
    "storage/descriptor_pool.py",
    "storage/durable_copy.py",
    "storage/faulty_disk.py",
}
# Outside these the operating system may be asked about names and numbers, not files.
_OS_ALLOWED = {"path", "fspath", "fsencode", "fsdecode", "strerror", "getpid", "environ", "sep"}
_OS_PATH_ALLOWED = {
    "abspath",
    "basename",
    "commonpath",
    "dirname",
    "isabs",
    "join",
    "normpath",
    "relpath",
    "split",
    "splitext",
}
_FILE_MODULES = {"fcntl", "fileinput", "glob", "mmap", "pathlib", "posix", "shutil", "tempfile"}
_IO_OPENERS = {"open", "open_code", "FileIO"}


def unfinished(path: str, text: str) -> list[str]:
    """A comment that promises work names the issue that holds the promise: (#12) behind it."""
    comments = _python_comments(text) if path.endswith(".py") else _other_comments(text)
    return [
        f"{path}:{line}: unfinished, and no issue says when: {comment.strip()}"
        for line, comment in comments
        if _UNFINISHED.search(comment)
    ]


def _python_comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _other_comments(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if found := _COMMENT.search(line):
            yield number, found[1]


def bare_tasks(path: str, text: str) -> list[str]:
    """A task belongs to a TaskGroup: one that nobody waits for loses its exceptions."""
    return [
        f"{path}:{call.lineno}: a task outside a TaskGroup: {ast.unparse(call.func)}"
        for call in _calls(path, text)
        if _starts_bare_task(call.func)
    ]


def _starts_bare_task(function: ast.expr) -> bool:
    match function:
        case ast.Name(id="create_task" | "ensure_future") | ast.Attribute(attr="ensure_future"):
            return True
        case ast.Attribute(attr="create_task", value=owner):
            return re.search(r"asyncio$|loop(\(\))?$", ast.unparse(owner)) is not None
        case _:
            return False


def sleeping_tests(path: str, text: str) -> list[str]:
    """A test waits for what it needs, never for time to pass."""
    if not path.startswith("tests/"):
        return []
    sleeps = {name for name, origin in _imports(path, text).items() if origin == "time.sleep"}
    clocks = {name for name, origin in _imports(path, text).items() if origin == "time"}
    wanted = sleeps | {f"{clock}.sleep" for clock in clocks}
    return [
        f"{path}:{call.lineno}: a test that sleeps"
        for call in _calls(path, text)
        if ast.unparse(call.func) in wanted
    ]


def file_access(path: str, text: str) -> list[str]:
    """In storage/ only files.py touches the file system, so that a model disk can stand in."""
    if not path.startswith("storage/") or path in _FILE_ACCESS:
        return []
    return [
        f"{path}:{node.lineno}: file access outside storage/files.py: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(text, path))
        if isinstance(node, ast.stmt | ast.expr) and _accesses_files(node)
    ]


def _accesses_files(node: ast.stmt | ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="open")):
            return True
        case ast.Import(names=names):
            return any(_is_file_name(alias.name, "") or _hides(alias) for alias in names)
        case ast.ImportFrom(module=str(module), names=names):
            return any(_is_file_name(module, alias.name) for alias in names)
        case ast.Attribute(attr=name, value=ast.Name() | ast.Attribute() as owner):
            module = ast.unparse(owner)
            return module in {"os", "os.path", "io"} and _is_file_name(module, name)
        case _:
            return False


def _hides(alias: ast.alias) -> bool:
    """Under another name the module's uses would go unseen."""
    return alias.asname is not None and alias.name in {"os", "os.path", "io"}


def _is_file_name(module: str, name: str) -> bool:
    """Whether a module, or a name in it, reaches files. An empty name is the module alone."""
    if module == "os":
        return name != "" and name not in _OS_ALLOWED
    if module == "os.path":
        return name != "" and name not in _OS_PATH_ALLOWED
    if module == "io":
        return name in _IO_OPENERS
    if module == "pathlib":
        return not name.startswith("Pure")
    return module.partition(".")[0] in _FILE_MODULES


def developer_paths(path: str, text: str) -> list[str]:
    """Nothing in the repository knows on which machine it was written."""
    return _matches(path, text, _DEVELOPER_PATH, "a path of somebody's machine")


def registry_hosts(path: str, text: str) -> list[str]:
    """Where packages come from is the business of whoever installs them."""
    return _matches(path, text, _REGISTRY_HOST, "a package registry's host")


def _matches(path: str, text: str, pattern: re.Pattern[str], what: str) -> list[str]:
    return [
        f"{path}:{number}: {what}: {found[0]}"
        for number, line in enumerate(text.splitlines(), 1)
        if (found := pattern.search(line))
    ]


def _calls(path: str, text: str) -> Iterator[ast.Call]:
    return (node for node in ast.walk(ast.parse(text, path)) if isinstance(node, ast.Call))


def _imports(path: str, text: str) -> dict[str, str]:
    """Names that imports bind, and the full name of what they bind."""
    bound: dict[str, str] = {}
    for node in ast.walk(ast.parse(text, path)):
        if isinstance(node, ast.Import):
            bound |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            bound |= {alias.asname or alias.name: f"{origin}.{alias.name}" for alias in node.names}
    return bound


PYTHON_RULES: tuple[Rule, ...] = (bare_tasks, sleeping_tests, file_access)
SOURCE_RULES: tuple[Rule, ...] = (unfinished,)
TEXT_RULES: tuple[Rule, ...] = (developer_paths, registry_hosts)
