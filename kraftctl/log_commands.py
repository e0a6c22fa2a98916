"""`kraftctl log ...`: files of a log, without a server."""

import sys

import click

_PASS_ON = {"ignore_unknown_options": True, "help_option_names": ()}


@click.command(context_settings=_PASS_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def dump(arguments: tuple[str, ...]) -> None:
    """Batches, records, indexes of files; `kraftctl log dump --help` tells more."""
    _dump(arguments)


@click.command(context_settings=_PASS_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def verify(arguments: tuple[str, ...]) -> None:
    """Are the files whole? Exit code 3 if not."""
    _dump(("--verify", *arguments))


def _dump(arguments: tuple[str, ...]) -> None:
    from storage.dump import main  # noqa: PLC0415 - only who asks pays for it

    sys.exit(main(list(arguments)))
