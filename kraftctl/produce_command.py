"""`kraftctl produce`: records from standard input."""

import sys
from collections.abc import Iterator

import click

from kraftctl.exit_codes import FAILED, OK
from kraftctl.formats import parse_line
from kraftctl.session import NUMBER, Session, cluster_options, command
from kraftctl.topic_commands import pairs
from kraftlog.errors import KraftError
from kraftlog.records import RecordMetadata

ERRORS_SHOWN = 5
PATIENCE_SECONDS = 1.0
Headers = list[tuple[str, bytes]]


@click.command()
@click.argument("topic")
@click.option("-k", "--key", help="The key of every record.")
@click.option("-K", "--key-separator", metavar="TEXT", help="In each line, between key and value.")
@click.option("--json", "as_json", is_flag=True, help="Each line is a record as JSON.")
@click.option("--value", "values", multiple=True, help="Send this instead of standard input.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE")
@click.option("--partition", type=NUMBER, help="Else by the key.")
@click.option("--acks", type=click.Choice(["all", "1", "0"]), default="all", show_default=True)
@click.option(
    "--compress",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
)
@cluster_options
@command
def produce(
    session: Session,
    topic: str,
    *,
    key: str | None,
    key_separator: str | None,
    as_json: bool,
    values: tuple[str, ...],
    headers: tuple[str, ...],
    partition: int | None,
    acks: str,
    compress: str,
) -> int:
    """Send records to TOPIC: each line of standard input is one."""
    from kraftlog.producer import Producer  # noqa: PLC0415 - gRPC takes its time to load

    common = [(name, value.encode()) for name, value in pairs(headers, "-H", "trace=7").items()]
    counts = _Counts()
    levels = {"all": "all", "1": 1, "0": 0}
    with Producer[bytes, bytes](
        session.bootstrap,
        client_id="kraftctl",
        acks=levels[acks],  # type: ignore[arg-type] # one of the three
        enable_idempotence=acks == "all",
        compression=compress,  # type: ignore[arg-type] # one of the five
        max_block=session.timeout,
    ) as producer:
        for line in values or _lines():
            each_key, value, more = _record(line, key, key_separator, as_json=as_json)
            producer.send(
                topic,
                value,
                key=each_key,
                headers=[*common, *more],
                partition=partition,
                on_delivery=counts.count,
            )
        said = 0
        while left := producer.flush(PATIENCE_SECONDS).pending:
            if left != said:
                session.output.note(f"{left} without an answer yet; kraftctl health may tell why")
            said = left
    for error in counts.errors[:ERRORS_SHOWN]:
        session.output.warnings.append(str(error))
    session.output.show(
        {"acknowledged": counts.good, "failed": len(counts.errors)},
        f"{counts.good} acknowledged, {len(counts.errors)} failed",
    )
    return FAILED if counts.errors else OK


class _Counts:
    def __init__(self) -> None:
        self.good = 0
        self.errors: list[KraftError] = []

    def count(self, metadata: RecordMetadata | None, error: KraftError | None) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.good += metadata is not None


def _lines() -> Iterator[str]:
    for line in sys.stdin:
        yield line.rstrip("\n")


def _record(
    line: str, key: str | None, separator: str | None, *, as_json: bool
) -> tuple[bytes | None, bytes | None, Headers]:
    if as_json:
        own_key, value, headers = parse_line(line)
        return own_key if own_key is not None or key is None else key.encode(), value, headers
    text = line
    if separator is not None and separator in line:
        key, _, text = line.partition(separator)
    return None if key is None else key.encode(), text.encode(), []
