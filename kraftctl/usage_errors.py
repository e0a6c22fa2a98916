"""What click finds wrong with a command line, told as every other error is: one sentence, the
fix, and with -o json the same document.
"""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import zip_longest

import click

from kraftctl.output import FORMATS, Output
from kraftlog.errors import ConfigError

ROOT = "kraftctl"
"""The name of the command in a document, where no command was found."""

_SHORT_O = re.compile(r"-\w*o")
"""-o, also behind short flags, as in -eo."""


class UnknownCommand(click.UsageError):
    """A group has no command of that name."""

    def __init__(self, ctx: click.Context, name: str, paths: Iterable[str]) -> None:
        super().__init__(f"there is no command {ctx.command_path} {name}", ctx)
        self.name = name
        self.paths = list(paths)
        """All commands there are, without the name of the program."""


def tell(error: click.UsageError, root: click.Group, arguments: Sequence[str]) -> int:
    """Print it the way the command line asks for; returns the exit code."""
    context = error.ctx or _context_of(root, arguments)
    is_group = isinstance(context.command, click.Group)
    name = ROOT if is_group else context.command_path.partition(" ")[2]
    output = Output(name, form=form_of(arguments))
    output.fail(ConfigError(_sentence(error, context), hint=_hint(error, context)))
    return error.exit_code


def _context_of(root: click.Group, arguments: Sequence[str]) -> click.Context:
    """That of the command which a line names: click does not tell with every error."""
    context = click.Context(root, info_name=ROOT)
    for word in arguments:
        above = context.command
        found = above.get_command(context, word) if isinstance(above, click.Group) else None
        if found is None:
            break
        context = click.Context(found, parent=context, info_name=word)
    return context


def form_of(arguments: Sequence[str]) -> str:
    """The form of output that is asked for, whatever is wrong with the rest of the line."""
    form = "table"
    for word, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        if word == "--":
            break
        name, given, value = word.partition("=")
        if name == "--output":
            value = value if given else following
        elif _SHORT_O.fullmatch(word):
            value = following
        else:
            value = word[2:] if word.startswith("-o") else ""
        form = value if value in FORMATS else form
    return form


def _sentence(error: click.UsageError, context: click.Context) -> str:
    if isinstance(error, UnknownCommand):
        return error.message
    if isinstance(error, click.NoSuchOption):
        return f"{context.command_path} has no option {error.option_name}"
    text = " ".join(error.format_message().split()).rstrip(".")
    return text[:1].lower() + text[1:]


def _hint(error: click.UsageError, context: click.Context) -> str:
    close = _close(error, context)
    if close:
        return f"did you mean {' or '.join(close)}?"
    if isinstance(error, click.NoSuchOption) and isinstance(context.command, click.Group):
        return "options stand behind the command: kraftctl status -o json"
    usage = " ".join(context.get_usage().split()).partition(" ")[2]
    return f"{usage}; more in {context.command_path} --help"


def _close(error: click.UsageError, context: click.Context) -> list[str]:
    """What may have been meant."""
    if isinstance(error, click.NoSuchOption):
        flags = [flag for each in context.command.params for flag in each.opts]
        return get_close_matches(error.option_name, flags, n=2)
    if not isinstance(error, UnknownCommand):
        return []
    here = f"{context.command_path} ".partition(" ")[2]
    own = [path for path in error.paths if path.startswith(here)]
    close = get_close_matches(f"{here}{error.name}", own, n=1, cutoff=0.7)
    same = [path for path in error.paths if path.rpartition(" ")[2] == error.name]
    return [f"{ROOT} {path}" for path in ((close or same) if here else (same or close))]
