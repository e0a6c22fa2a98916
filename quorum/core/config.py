"""Times, limits and who this node is. Where the values come from is the server's business."""

from dataclasses import dataclass

from kraftlog.errors import ConfigError
from kraftlog.types import Uuid
from quorum.core.messages import ReplicaKey

FETCH_WAIT_MAX_MS = 500
BACKOFF_STEP_MS = 100
BACKOFF_EXPONENT_MAX = 20
REJECTED_PAUSE_MAX_MS = 60_000
"""A damaged snapshot is downloaded again after pauses that grow up to this."""
# A replica more than this ahead of us is not ahead but broken, or not one of ours.
EPOCH_LEAD_MAX = 2**20
EPOCH_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The defaults are Kafka's."""

    fetch_timeout_ms: int = 2_000
    """Silence from the leader after which a follower asks for pre-votes."""
    election_timeout_ms: int = 1_000
    """An election takes a time drawn from [this, twice this)."""
    election_backoff_max_ms: int = 1_000
    """The longest pause after a lost election, and that of the last successor."""
    request_timeout_ms: int = 2_000
    """When an answer counts as lost."""
    retry_backoff_ms: int = 20
    """Pause before the same peer is asked again after an error."""
    observer_session_ms: int = 300_000
    """How long the leader remembers an observer that no longer fetches."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}", hint="at least 1 ms")
        if self.fetch_timeout_ms < 8:
            raise ConfigError(
                f"fetch_timeout_ms is {self.fetch_timeout_ms}",
                hint="at least 8 ms: a quarter of it is the longest wait of a fetch",
            )
        if self.request_timeout_ms <= self.fetch_wait_ms:
            raise ConfigError(
                f"request_timeout_ms {self.request_timeout_ms} is not above the fetch wait",
                hint=f"more than {self.fetch_wait_ms} ms, or every idle fetch counts as lost",
            )

    @property
    def fetch_wait_ms(self) -> int:
        """How long a leader keeps a fetch that finds nothing new."""
        return min(FETCH_WAIT_MAX_MS, self.fetch_timeout_ms // 4)

    @property
    def check_quorum_ms(self) -> int:
        """A leader from which no majority has fetched for so long resigns."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_period_ms(self) -> int:
        """How often a leader announces itself."""
        return self.fetch_timeout_ms // 2

    @property
    def sign_of_life_ms(self) -> int:
        """How often a follower that has nothing to fetch yet asks the leader all the same."""
        return self.fetch_timeout_ms // 2

    @property
    def update_voter_ms(self) -> int:
        """How often a voter whose endpoint is wrong in the log says so."""
        return self.fetch_timeout_ms * 3


KAFKA = Timing()
FAST = Timing(
    fetch_timeout_ms=600,
    election_timeout_ms=300,
    election_backoff_max_ms=300,
    request_timeout_ms=600,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftConfig:
    """Who this replica is, and its limits."""

    cluster_id: Uuid
    key: ReplicaKey
    endpoint: str
    """Where the others reach us."""
    timing: Timing = KAFKA
    peers: tuple[str, ...] = ()
    """Addresses where a leader may be asked for: `quorum.peers`. They make nobody a voter."""
    flush_always: bool = True
    """Controllers flush even as observers, since they may become voters; brokers do not."""
    watermark_linger_ms: int = 0
    """How long a new high watermark waits for records to travel with. Under a steady load it never
    goes alone, and that is half of all fetches.
    """
    fetch_bytes_max: int = 1 << 17
    """What a leader hands out at once: while it writes a reply it commits nothing. A megabyte makes
    its p99 four times what it is while nobody catches up, this makes it two to three times.
    """
    snapshot_chunk_bytes: int = 1 << 17
    batch_bytes_max: int = 2 << 20
    epoch_lead_max: int = EPOCH_LEAD_MAX
