"""The metrics that dashboards may count on, by role, and whether a node serves them."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT = {"controller": DOCS / "QUORUM.md", "broker": DOCS / "BROKERS.md"}
OF_KAFKA = {
    "controller": """
        ActiveControllerCount ActiveBrokerCount FencedBrokerCount GlobalTopicCount
        GlobalPartitionCount OfflinePartitionsCount PreferredReplicaImbalanceCount
        TimedOutBrokerHeartbeatCount NewActiveControllersCount EventQueueOperationsStartedCount
        EventQueueOperationsTimedOutCount EventQueueTimeMs EventQueueProcessingTimeMs
        LastAppliedRecordOffset LastAppliedRecordTimestamp LastAppliedRecordLagMs
        LastCommittedRecordOffset current-state current-leader current-vote current-epoch
        high-watermark log-end-offset log-end-epoch commit-latency-avg commit-latency-max
        election-latency-avg election-latency-max fetch-records-rate append-records-rate
        poll-idle-ratio-avg LatestSnapshotGeneratedAgeMs LatestSnapshotGeneratedBytes
    """,
    "broker": """
        last-applied-record-offset last-applied-record-timestamp last-applied-record-lag-ms
        metadata-load-error-count metadata-apply-error-count MetadataErrorCount
        LatestSnapshotGeneratedAgeMs LatestSnapshotGeneratedBytes UnderReplicatedPartitions
        UnderMinIsrPartitionCount AtMinIsrPartitionCount IsrShrinksPerSec IsrExpandsPerSec
        RequestQueueTimeMs LocalTimeMs RemoteTimeMs ResponseSendTimeMs
    """,
}
OF_OURS = {
    "controller": (
        "kraftlog_raft_current_epoch ",
        'kraftlog_raft_state{state="leader"} ',
        "kraftlog_raft_election_seconds_bucket{",
        "# TYPE kraftlog_raft_vote_rejected_total counter",
        'kraftlog_metadata_lag_records{node="1"} ',
        "kraftlog_failover_seconds_bucket{",
        "kraftlog_snapshot_age_seconds ",
        "kraftlog_snapshot_bytes ",
    ),
    "broker": (
        'kraftlog_metadata_lag_records{node="',
        "# TYPE kraftlog_partition_isr_size gauge",
        "kraftlog_isr_shrinks_total ",
        "kraftlog_isr_expands_total ",
        'stage="queue"} ',
        'stage="local"} ',
        'stage="parked"} ',
        'stage="send"} ',
    ),
}


def check_promised(role: str, text: str) -> None:
    """`text` is what a node of this role shows at /metrics."""
    served = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    rows = [line.split(" | ") for line in DOCUMENT[role].read_text().splitlines()]
    by_name: dict[str, set[str]] = {}
    for row in (row for row in rows if row[0].startswith("| `kraftlog_") and len(row) == 3):
        names = set(re.findall(r"`(kraftlog_\w+)`", row[0]))
        assert names <= served, f"{names - served} of the documents is not served by a {role}"
        for kafka in re.findall(r"[A-Za-z]+(?:-[a-z]+)*", row[2]):
            by_name.setdefault(kafka, set()).update(names)
    missing = set(OF_KAFKA[role].split()) - set(by_name)
    assert not missing, f"no metric of a {role} stands for Kafka's {missing}"
    for sample in OF_OURS[role]:
        assert re.search(f"(?:^|,){re.escape(sample)}", text, re.MULTILINE), sample
