"""The configuration keys of clients. Names are Kafka's, and so are defaults unless said otherwise.

A client takes each as a keyword argument of its own too (`linger`, `batch_bytes`);
`kraftlog.client_config` has that table.
"""

from dataclasses import dataclass
from typing import TypeVar

from kraftlog.config_key import Key, Scope
from kraftlog.config_types import (
    INT32_MAX,
    Addresses,
    Boolean,
    Choice,
    DurationMs,
    Integer,
    OptionalText,
    Refused,
    ValueType,
)
from kraftlog.types import Compression

T = TypeVar("T")

REQUEST_BYTES_MAX = 3 << 20
"""A message is 4 MiB at most, and a request is not all of it."""


@dataclass(frozen=True, slots=True)
class Acks:
    """0, 1 or all; on the wire all is -1."""

    def parse(self, raw: object) -> int:
        meanings = {"0": 0, "1": 1, "all": -1, "-1": -1}
        text = str(raw).strip()
        if isinstance(raw, bool) or text not in meanings:
            raise Refused(f"must be {self.describe()}")
        return meanings[text]

    def show(self, value: int) -> str:
        return "all" if value == -1 else str(value)

    def describe(self) -> str:
        return "0, 1 or all"


def _key(name: str, value_type: ValueType[T], default: T, doc: str) -> Key[T]:
    return Key(names={Scope.CLIENT: name}, value_type=value_type, default=default, doc=doc)


# All clients.
BOOTSTRAP_SERVERS: Key[tuple[str, ...]] = _key(
    "bootstrap.servers",
    Addresses(),
    ("localhost:19101",),
    "Brokers to ask first; one that answers is enough, the others are found by it.",
)
CLIENT_ID = _key(
    "client.id", OptionalText(), None, "The name of this client in the brokers' logs and metrics."
)
CLIENT_RACK = _key(
    "client.rack", OptionalText(), None, "Where the client is: a replica there may be read."
)
REQUEST_TIMEOUT_MS = _key(
    "request.timeout.ms",
    DurationMs(1, INT32_MAX),
    30_000,
    "When a request that is not answered counts as lost.",
)
API_TIMEOUT_MS = _key(
    "default.api.timeout.ms",
    DurationMs(1, INT32_MAX),
    60_000,
    "How long a call goes on trying, where it is not told otherwise.",
)
METADATA_MAX_AGE_MS = _key(
    "metadata.max.age.ms",
    DurationMs(100, INT32_MAX),
    300_000,
    "Metadata is asked for anew after this time even if nothing was wrong with it.",
)
# Kafka's first pause is 100 ms; a local failover is over before that.
RETRY_BACKOFF_MS = _key(
    "retry.backoff.ms", DurationMs(1, INT32_MAX), 50, "The first pause before another attempt."
)
RETRY_BACKOFF_MAX_MS = _key(
    "retry.backoff.max.ms", DurationMs(1, INT32_MAX), 1_000, "The longest such pause."
)
RECEIVE_BUFFER_BYTES = _key(
    "receive.buffer.bytes",
    Integer(-1, INT32_MAX),
    -1,
    "The receive buffer of a client's sockets; -1: what the system gives.",
)

# Producers.
ACKS = _key("acks", Acks(), -1, "Who has to have a record before it counts as sent.")
# Unset means yes where acks is all: nobody has to turn it off to choose other acks.
ENABLE_IDEMPOTENCE: Key[bool | None] = _key(
    "enable.idempotence",
    Choice[bool | None]({"true": True, "false": False, "auto": None}),
    None,
    "true: a retry cannot make a duplicate; auto: true where acks is all.",
)
LINGER_MS = _key(
    "linger.ms",
    DurationMs(0, INT32_MAX),
    5,
    "How long a batch waits for more records before it is sent.",
)
# Kafka's is 16 KiB; a call costs more here, so batches are larger.
BATCH_SIZE = _key(
    "batch.size", Integer(1, REQUEST_BYTES_MAX), 256 << 10, "A batch of this many bytes is full."
)
# Kafka's is 32 MiB.
BUFFER_MEMORY = _key(
    "buffer.memory",
    Integer(1),
    64 << 20,
    "The bytes of all records that have no answer yet; beyond that, sending waits.",
)
MAX_BLOCK_MS = _key(
    "max.block.ms",
    DurationMs(0, INT32_MAX),
    60_000,
    "How long sending waits for metadata or for room in the buffer.",
)
DELIVERY_TIMEOUT_MS = _key(
    "delivery.timeout.ms",
    DurationMs(1, INT32_MAX),
    120_000,
    "How long a record may take from being sent to being answered, retries included.",
)
COMPRESSION_TYPE = _key(
    "compression.type",
    Choice({each.name.lower(): each for each in Compression}),
    Compression.NONE,
    "How batches are compressed.",
)
MAX_IN_FLIGHT = _key(
    "max.in.flight.requests.per.connection",
    Integer(1, 1_000),
    5,
    "Requests to one broker without an answer; at most 5 with idempotence.",
)
MAX_REQUEST_SIZE = _key(
    "max.request.size",
    Integer(1, REQUEST_BYTES_MAX),
    1 << 20,
    "The largest request, and so the largest record.",
)
RETRIES = _key(
    "retries", Integer(0, INT32_MAX), INT32_MAX, "Attempts after the first; time ends them too."
)

# Consumers.
FETCH_MIN_BYTES = _key(
    "fetch.min.bytes",
    Integer(0, INT32_MAX),
    1,
    "A broker waits until it has so many bytes to give, or until fetch.max.wait.ms.",
)
FETCH_MAX_WAIT_MS = _key(
    "fetch.max.wait.ms", DurationMs(0, INT32_MAX), 500, "How long it waits for them at most."
)
# Kafka's is 50 MiB; here a reply is about 1 MiB, so that it delays nobody else.
FETCH_MAX_BYTES = _key(
    "fetch.max.bytes",
    Integer(1, REQUEST_BYTES_MAX),
    1 << 20,
    "Of one reply; one batch comes whatever its size.",
)
MAX_PARTITION_FETCH_BYTES = _key(
    "max.partition.fetch.bytes",
    Integer(1, REQUEST_BYTES_MAX),
    1 << 20,
    "Of one partition in one reply; one batch comes whatever its size.",
)
MAX_POLL_RECORDS = _key(
    "max.poll.records", Integer(1, INT32_MAX), 500, "What one poll returns at most."
)
AUTO_OFFSET_RESET = _key(
    "auto.offset.reset",
    Choice({"earliest": "earliest", "latest": "latest", "error": "error", "none": "error"}),
    "latest",
    "Where to begin when there is no offset, or none that exists; none, Kafka's name, is error.",
)
CHECK_CRCS = _key("check.crcs", Boolean(), True, "Whether the checksum of each batch is computed.")

CLIENT_KEYS: tuple[Key[object], ...] = tuple(
    value for value in tuple(globals().values()) if isinstance(value, Key)
)
