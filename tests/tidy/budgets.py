"""Sizes of files and functions, and which of them are over budget."""

import ast
import io
import tokenize
from collections.abc import Iterator, Sequence

FILE_LINES_MAX = 500
LINE_CHARS_MAX = 100
FUNCTION_LINES_MAX = 50
TEST_FUNCTION_LINES_MAX = 70
NESTING_MAX = 3
POSITIONAL_MAX = 5

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Block = (
    ast.If
    | ast.For
    | ast.AsyncFor
    | ast.While
    | ast.With
    | ast.AsyncWith
    | ast.Try
    | ast.TryStar
    | ast.Match
)

_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def over_budget(path: str, text: str) -> dict[str, int]:
    """What is too large in a file, by a name that stays the same while lines move."""
    sizes = list(_file_sizes(path, text))
    if path.endswith(".py"):
        sizes += _function_sizes(path, text)
    return {name: size for name, size, limit in sizes if size > limit}


def _file_sizes(path: str, text: str) -> Iterator[tuple[str, int, int]]:
    lines = text.splitlines()
    yield f"file lines: {path}", len(lines), FILE_LINES_MAX
    yield f"line length: {path}", max(map(len, lines), default=0), LINE_CHARS_MAX


def _function_sizes(path: str, text: str) -> Iterator[tuple[str, int, int]]:
    tree = ast.parse(text, path)
    code = code_lines(tree, text)
    is_test = path.startswith("tests/")
    lines_max = TEST_FUNCTION_LINES_MAX if is_test else FUNCTION_LINES_MAX
    for name, function in functions(tree):
        where = f"{path}::{name}"
        last = function.end_lineno or function.lineno
        lines = sum(function.lineno <= line <= last for line in code)
        yield f"function lines: {where}", lines, lines_max
        yield f"nesting: {where}", nesting(function.body), NESTING_MAX
        yield f"positional parameters: {where}", positional(function), POSITIONAL_MAX


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Every function under a node with its dotted name, inner ones too."""
    for child in ast.iter_child_nodes(node):
        name = f"{prefix}{child.name}" if isinstance(child, Definition) else prefix
        if isinstance(child, Function):
            yield name, child
        yield from functions(child, f"{name}." if isinstance(child, Definition) else prefix)


def code_lines(tree: ast.Module, text: str) -> set[int]:
    """The numbers of the lines that hold code: not blank, no comment alone, no docstring."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | Definition):
            found.difference_update(_docstring_lines(node))
    return found


def _docstring_lines(node: ast.Module | Definition) -> range:
    if ast.get_docstring(node, clean=False) is None:
        return range(0)
    first = node.body[0]
    return range(first.lineno, (first.end_lineno or first.lineno) + 1)


def nesting(statements: Sequence[ast.stmt]) -> int:
    """How many blocks deep the deepest statement stands; inner functions count on their own."""
    return max((_depth(statement) for statement in statements), default=0)


def _depth(statement: ast.stmt) -> int:
    if not isinstance(statement, Block):
        return 0
    if isinstance(statement, ast.If) and _is_elif(statement.orelse):
        return max(1 + nesting(statement.body), _depth(statement.orelse[0]))
    return 1 + max(nesting(body) for body in _bodies(statement))


def _is_elif(orelse: list[ast.stmt]) -> bool:
    return len(orelse) == 1 and isinstance(orelse[0], ast.If)


def _bodies(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The statement lists directly inside a block: body, else, finally, handlers and cases."""
    for _, value in ast.iter_fields(statement):
        for item in value if isinstance(value, list) else []:
            if isinstance(item, ast.ExceptHandler | ast.match_case):
                yield item.body
            elif isinstance(item, ast.stmt):
                yield [item]


def positional(function: Function) -> int:
    """Parameters that a caller may pass by position, self and cls not counted."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return len(names) - (names[:1] in (["self"], ["cls"]))
