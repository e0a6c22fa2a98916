"""The keys of the active controller (`kraftlog.config_keys` has all others, and the list of all).

Where a default depends on the timing profile, the one here is that of the profile `kafka`.
"""

from kraftlog.config_key import Key, Scope
from kraftlog.config_types import INT32_MAX, SECOND_MS, Boolean, Choice, DurationMs, Integer

QUORUM_STATE = Key(
    names={Scope.CONTROLLER: "quorum.state"},
    value_type=Choice({"metadata": "metadata", "journal": "journal"}),
    default="metadata",
    doc="What the quorum keeps: the metadata of a cluster, or a journal of any records at all.",
)

# Brokers read it too: one that has not been heard for so long must no longer serve.
BROKER_SESSION_TIMEOUT_MS = Key(
    names={
        Scope.CONTROLLER: "broker.session.timeout.ms",
        Scope.BROKER: "broker.session.timeout.ms",
    },
    value_type=DurationMs(1, INT32_MAX),
    default=9 * SECOND_MS,
    doc="A broker without a heartbeat for so long is fenced.",
)
METADATA_LAG_MAX_MS = Key(
    names={Scope.CONTROLLER: "metadata.lag.max.ms"},
    value_type=DurationMs(1, INT32_MAX),
    default=27 * SECOND_MS,
    doc="A broker that needs longer than this to apply what is committed is fenced.",
)
AUTO_LEADER_REBALANCE_ENABLE = Key(
    names={Scope.CONTROLLER: "auto.leader.rebalance.enable"},
    value_type=Boolean(),
    default=True,
    doc="true: leadership goes back to the first replica of a partition when it can.",
)
LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS = Key(
    names={Scope.CONTROLLER: "leader.imbalance.check.interval.seconds"},
    value_type=Integer(1, INT32_MAX),
    default=300,
    doc="How often it is looked whether leadership should go back.",
)

CONTROLLER_KEYS: tuple[Key[object], ...] = tuple(
    value for value in tuple(globals().values()) if isinstance(value, Key)
)
