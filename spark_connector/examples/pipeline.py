"""What the pipelines share: their options, topics to read and write, progress, and errors that are
one line.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from kraftlog.errors import (
    ConfigError,
    ErrorCode,
    KraftError,
    NetworkError,
    RequestTimedOut,
    TimeoutError_,
    TopicExists,
    UnknownTopicOrPartition,
)
from kraftlog.local.layout import BROKER, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from kraftlog.records import Record

PARTITIONS = 6
CHUNK = 5_000
BATCH_RECORDS = 10_000
"""A micro-batch takes so many, that a long run is seen to go on and can end in between."""
ANSWER = "15s"
DELIVERY = "60s"
PROGRESS_SECONDS = 2
FAILED, USAGE, UNREACHABLE, NOT_FOUND, INTERRUPTED = 1, 2, 4, 5, 130

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a pipeline."""

    bootstrap: str
    out: Path
    events: int = 20_000
    """How many to make up; with 0 the topic is read as it is."""
    seed: int = 1
    follow: bool = False
    """Go on with what comes, instead of ending at the end of the topic."""
    say: Say = lambda _: None

    # -- topics

    def make_topics(self, *names: str) -> None:
        """Those that are not there yet."""
        from kraftlog.admin import Admin  # noqa: PLC0415 - gRPC takes its time to load
        from kraftlog.admin_types import NewTopic  # noqa: PLC0415

        with Admin(self.bootstrap, request_timeout=ANSWER, api_timeout=ANSWER) as admin:
            results = admin.create_topics([NewTopic(name, PARTITIONS) for name in names])
            for error in results.errors.values():
                if not isinstance(error, TopicExists):
                    raise error

    def send(self, topic: str, records: "Iterable[Record[bytes, bytes]]") -> int:
        """All of them, or an error."""
        from kraftlog.producer import Producer  # noqa: PLC0415 - gRPC takes its time to load

        sent, source = 0, iter(records)
        with Producer[bytes, bytes](self.bootstrap) as producer:
            while chunk := list(islice(source, CHUNK)):
                for delivery in producer.send_many(topic, chunk):
                    delivery.result(DELIVERY)
                sent += len(chunk)
                self.say(f"{topic}: {sent:,} records sent")
        return sent

    def dice(self) -> random.Random:
        return random.Random(self.seed)  # noqa: S311 - made-up data, the same for the same seed

    # -- Spark

    def read(self, spark: "SparkSession", topic: str) -> "DataFrame":
        """All that is in a topic now."""
        return (
            spark.read.format("kraftlog")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("subscribe", topic)
            .load()
        )

    def stream(self, spark: "SparkSession", topic: str) -> "DataFrame":
        """What is and comes in a topic; a query's checkpoint remembers how far it was."""
        return (
            spark.readStream.format("kraftlog")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", BATCH_RECORDS)
            .load()
        )

    def start(self, writer: "DataStreamWriter") -> None:
        """Run a query until its topic is read, or for as long as nobody stops it."""
        checkpoint = str((self.out / "checkpoint").absolute())
        writer = writer.option("checkpointLocation", checkpoint)
        trigger = writer.trigger(processingTime="1 second") if self.follow else None
        query = (trigger or writer.trigger(availableNow=True)).start()
        try:
            watch(query, self.say)
        except KeyboardInterrupt:
            if not self.follow:
                raise
            self.say("stopped; the checkpoint knows how far it came")
        finally:
            query.stop()

    def draw(self, name: str, picture: str) -> Path:
        """The picture of a result, beside it."""
        path = self.out / name
        self.out.mkdir(parents=True, exist_ok=True)
        path.write_text(picture, encoding="utf-8")
        self.say(f"drawn: {path}")
        return path


def watch(query: "StreamingQuery", say: Say) -> None:
    """Say how far a query is, until it has ended."""
    told = -1
    while not query.awaitTermination(PROGRESS_SECONDS):
        progress = query.lastProgress
        if progress is not None and progress["batchId"] != told:
            told = progress["batchId"]
            rows, rate = progress["numInputRows"], progress["processedRowsPerSecond"]
            say(f"batch {told}: {rows:,} rows, {rate:,.0f} rows/s")


# -- the command line


def parser(module: str, text: str) -> argparse.ArgumentParser:
    """With the options that all have."""
    name = module.rpartition(".")[2]
    made = argparse.ArgumentParser(prog=f"python -m spark_connector.examples.{name}")
    made.description = text
    made.add_argument(
        "-b", "--bootstrap", metavar="HOST:PORT,...", help="default: what `kraftctl up` started"
    )
    made.add_argument("--out", type=Path, default=Path(f"{name}-out"), help="a directory")
    made.add_argument(
        "--events", type=natural, default=20_000, help="how many to make up; 0: none (%(default)s)"
    )
    made.add_argument("--seed", type=int, default=1, help="another one makes other data")
    made.add_argument("--master", default="local[*]", help="where Spark runs (%(default)s)")
    return made


def natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not 0, 1, 2, ...")
    return int(text)


def job_of(options: argparse.Namespace) -> Job:
    """Checked here, since a session of Spark takes ten seconds to start."""
    out: Path = options.out
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out} is a file", hint="name a directory")
    return Job(
        bootstrap=options.bootstrap or local_bootstrap(),
        out=out,
        events=options.events,
        seed=options.seed,
        follow=getattr(options, "follow", False),
        say=say_since(time.monotonic()),
    )


def say_since(begun: float) -> Say:
    def say(text: str) -> None:
        sys.stderr.write(f"t+{time.monotonic() - begun:05.1f}  {text}\n")
        sys.stderr.flush()

    return say


def local_bootstrap() -> str:
    """The brokers that $KRAFTCTL_BOOTSTRAP names, or those of the current local cluster."""
    if named := os.environ.get("KRAFTCTL_BOOTSTRAP"):
        return named
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    home = Path(base, "kraftlog")
    try:
        name = (home / "current").read_text(encoding="utf-8").strip()
    except OSError:
        name = ""
    layout = load(str(home / "clusters" / name)) if name else None
    if layout is None:
        raise ConfigError(
            "there is no local cluster", hint="start one: kraftctl up -d, or say -b HOST:PORT"
        )
    return ",".join(member.address for member in layout.of_role(BROKER))


def spark_for(options: argparse.Namespace, name: str) -> "SparkSession":
    from spark_connector.session import session  # noqa: PLC0415 - only who needs it looks for Java

    return session(
        master=options.master,
        app_name=name,
        spark_ui_enabled=False,
        spark_ui_showConsoleProgress=False,
        spark_log_level="ERROR",
        spark_sql_shuffle_partitions=4,
    )


def ends(work: Callable[[], None]) -> int:
    """The exit code of a pipeline; an error is one line, as kraftctl's."""
    try:
        work()
    except KraftError as error:
        sys.stderr.write(f"error: {error}\n")
        return _code(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if not _is_sparks(error):
            raise
        sys.stderr.write(f"error: {gist(str(error))}\n")
        return FAILED
    return 0


def _is_sparks(error: Exception) -> bool:
    modules = (kind.__module__ for kind in type(error).__mro__)
    return any(module.partition(".")[0] in {"pyspark", "py4j"} for module in modules)


def gist(text: str) -> str:
    """The line of Spark's story that says what happened."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(("kraftlog.errors.", "spark_connector."))]
    chosen: Sequence[str] = ours[-1:] or lines[:1] or ["Spark failed and says nothing"]
    return chosen[0].partition(": ")[2] if ours else chosen[0]


def _code(error: KraftError) -> int:
    match error:
        case ConfigError():
            return USAGE
        case NetworkError() | RequestTimedOut() | TimeoutError_():
            return UNREACHABLE
        case UnknownTopicOrPartition():
            return NOT_FOUND
        case _:
            return UNREACHABLE if error.code == ErrorCode.BROKER_NOT_AVAILABLE else FAILED
