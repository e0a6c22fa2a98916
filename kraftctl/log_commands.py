"""`kraftctl log ...`: files of a log, without a server. No lock is taken and nothing changed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click
from click.decorators import FC

from kraftctl.exit_codes import FAILED, NOT_FOUND, OK, UNHEALTHY, NotFound
from kraftctl.output import Json, Output
from kraftctl.session import Session, command, output_option
from kraftlog.errors import ConfigError

if TYPE_CHECKING:
    from storage.dump_events import Options
    from storage.dump_walk import Target


def _file_options(function: FC) -> FC:
    for option in (
        click.option("--offsets", metavar="FROM[:TO]", help="Only these, TO excluded."),
        click.option("--deep", is_flag=True, help="The records in the batches, too."),
        click.argument("paths", nargs=-1, required=True, metavar="PATH..."),
    ):
        function = option(function)
    return output_option(function)


@click.command()
@_file_options
@command
def dump(session: Session, paths: tuple[str, ...], *, deep: bool, offsets: str | None) -> int:
    """Batches, records, indexes, checkpoints: of a file, a partition's directory, a node's.

    Exit code 3: something is damaged; the rest of it is shown.
    """
    return _dump(session, paths, _options(offsets, deep=deep, verify=False))


@click.command()
@_file_options
@command
def verify(session: Session, paths: tuple[str, ...], *, deep: bool, offsets: str | None) -> int:
    """Are the files whole, and do they fit each other? Exit code 3: they are damaged."""
    return _dump(session, paths, _options(offsets, deep=deep, verify=True))


def _options(offsets: str | None, *, deep: bool, verify: bool) -> "Options":
    from argparse import ArgumentTypeError  # noqa: PLC0415 - only who asks pays for it

    from storage.dump import offset_range  # noqa: PLC0415
    from storage.dump_events import OFFSETS_END, Options  # noqa: PLC0415

    try:
        begin, end = (0, OFFSETS_END) if offsets is None else offset_range(offsets)
    except ArgumentTypeError as error:
        raise ConfigError(f"--offsets: {error}") from None
    return Options(verify=verify, deep=deep, from_offset=begin, to_offset=end)


def _dump(session: Session, paths: Sequence[str], options: "Options") -> int:
    from storage.dump import Exit, Tally  # noqa: PLC0415 - only who asks pays for it
    from storage.dump_format import JsonWriter, TableWriter  # noqa: PLC0415
    from storage.dump_walk import dump_target  # noqa: PLC0415
    from storage.files import OsFiles  # noqa: PLC0415

    output, tally = session.output, Tally()
    rows, tables = JsonWriter(), TableWriter(verify=options.verify)
    for target in _targets(session, paths):
        for event in dump_target(OsFiles(), target, options):
            tally.add(event)
            if output.is_for_people:
                _lines(output, tables.lines(event))
            else:
                _objects(output, rows.objects(event))
    if output.is_for_people:
        _lines(output, tables.summary(tally.facts()))
    output.end()
    codes = {Exit.DAMAGED: UNHEALTHY, Exit.UNREAD: FAILED}
    return codes.get(tally.exit_code(), NOT_FOUND if output.warnings else OK)


def _lines(output: Output, lines: Iterable[str]) -> None:
    for line in lines:
        output.line(line)


def _objects(output: Output, rows: Iterable[Mapping[str, Json]]) -> None:
    for row in rows:
        output.each(row, "")


def _targets(session: Session, paths: Sequence[str]) -> "list[Target]":
    """What is behind the paths. One with nothing behind it does not keep the others."""
    from storage.dump_walk import NothingToRead, find_targets  # noqa: PLC0415
    from storage.files import OsFiles  # noqa: PLC0415

    found = []
    for path in paths:
        try:
            found += find_targets(OsFiles(), path)
        except NothingToRead as error:
            if len(paths) == 1:
                raise NotFound(error.message, hint=error.hint) from None
            session.output.warnings.append(f"{error.message}; {error.hint}")
    return found
