"""The metadata log for people: each record with its cause, the tree that they make, and who is to
blame for each branch of it.

    /quorum/leader   /quorum/voters   /brokers/1   /topics/NAME/0   /configs/topic/NAME/KEY
    /features/NAME   /producer-ids

It is made from batches, wherever they come from (`kraftctl.metadata_source`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum

from kraftctl.output import Json
from kraftlog.record_batch import RecordBatch
from kraftlog.types import Uuid
from metadata_log import records as r
from metadata_log.codec import decode, decode_record
from metadata_log.image import EMPTY, Image
from metadata_log.replay import load, replay_all
from quorum.batches import VOTERS as VOTERS_KIND
from quorum.batches import control_kind, decode_control, decode_voters
from quorum.core.messages import LeaderChange, VoterSet

QUIET = frozenset({"NoOp", "RequestDone", "ProducerIds", "PartitionRecord"})
"""Kinds of records that are no news by themselves."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of the log."""

    offset: int
    batch: int
    """The offset of the first record that was written with it."""
    epoch: int
    timestamp: int
    kind: str
    path: str
    """The branch of the tree that it changes; empty: none."""
    text: str
    fields: Json
    cause: str

    def json(self) -> dict[str, Json]:
        return {
            "offset": self.offset,
            "epoch": self.epoch,
            "timestamp": self.timestamp,
            "kind": self.kind,
            "path": self.path,
            "text": self.text,
            "fields": self.fields,
            "cause": self.cause,
        }


@dataclass
class History:
    """All that a log still has, and the state that it leads to."""

    image: Image = EMPTY
    entries: list[Entry] = field(default_factory=list)
    voters: VoterSet = field(default_factory=VoterSet)
    leader: LeaderChange | None = None
    _names: dict[Uuid, str] = field(default_factory=dict)

    @property
    def next_offset(self) -> int:
        return self.entries[-1].offset + 1 if self.entries else self.image.end_offset

    def begin(self, batches: Iterable[RecordBatch], end_offset: int) -> None:
        """From a snapshot."""
        values: list[r.Record] = []
        for batch in batches:
            if batch.is_control:
                kind, value = control_kind(batch)
                self.voters = decode_voters(value) if kind == VOTERS_KIND else self.voters
            else:
                values += [decode_record(each.value or b"") for each in batch.records()]
        self.image = load(values, end_offset)
        self._names |= {topic.id: topic.name for topic in self.image.topics.values()}

    def add(self, batch: RecordBatch) -> list[Entry]:
        """What a batch of the log says, in words."""
        found = list(self._control(batch) if batch.is_control else self._records(batch))
        self.entries += found
        return found

    def _control(self, batch: RecordBatch) -> Iterator[Entry]:
        control = decode_control(batch)
        path, text = "", "the log moves on"
        if isinstance(control, LeaderChange):
            self.leader = control
            path = "/quorum/leader"
            text = f"{control.leader.node_id} leads epoch {batch.leader_epoch}"
        elif isinstance(control, VoterSet):
            self.voters = control
            path, text = "/quorum/voters", f"the voters are {_ids(control)}"
        cause = _cause_of(control)
        kind = "Voters" if isinstance(control, VoterSet) else type(control).__name__
        base, epoch, at = batch.base_offset, batch.leader_epoch, batch.max_timestamp
        yield Entry(base, base, epoch, at, kind, path, text, plain(control), cause)

    def _records(self, batch: RecordBatch) -> Iterator[Entry]:
        caused = [decode(each.value or b"") for each in batch.records()]
        for offset, (record, cause) in enumerate(caused, batch.base_offset):
            if isinstance(record, r.TopicRecord):
                self._names[record.topic_id] = record.name
            path, text = describe(record, self.image, self._names)
            kind, base = type(record).__name__, batch.base_offset
            epoch, at = batch.leader_epoch, batch.max_timestamp
            yield Entry(offset, base, epoch, at, kind, path, text, plain(record), cause=str(cause))
        if batch.base_offset >= self.image.end_offset:
            news = [record for record, _ in caused]
            self.image = replay_all(self.image, news, batch.base_offset)

    # -- looking at it

    def tree(self) -> dict[str, Json]:
        """The state as nested names."""
        image = self.image
        leader = self.leader.leader.node_id if self.leader else None
        configs: dict[str, dict[str, Json]] = {}
        for resource in sorted(image.configs):
            kind = configs.setdefault(resource.type.name.lower(), {})
            kind[resource.name or "(all)"] = dict(sorted(image.configs[resource].items()))
        topics = {
            topic.name: {str(number): plain(state) for number, state in enumerate(topic.partitions)}
            | {"id": str(topic.id)}
            for topic in sorted(image.topics.values(), key=lambda each: each.name)
        }
        return {
            "quorum": {"leader": leader, "voters": _voters_json(self.voters)},
            "brokers": {str(each.id): plain(each) for each in image.sorted_brokers()},
            "topics": topics,
            "configs": configs,
            "features": dict(sorted(image.features.items())),
            "producer-ids": image.next_producer_id,
        }

    def blame(self, path: str) -> list[Entry]:
        """The records that made a branch of the tree what it is, oldest first, or a leaf of it."""
        prefix = path.rstrip("/") + "/"
        return [
            each
            for each in self.entries
            if (each.path + "/").startswith(prefix)
            or (each.path and prefix.startswith(each.path + "/") and _sets(each, prefix))
        ]

    def chain(self, entry: Entry) -> list[dict[str, Json]]:
        """Why it was written, what was decided with it, and by whom."""
        links: list[dict[str, Json]] = [_link("because", entry.offset, entry.cause)]
        links += [
            _link("together with", each.offset, each.text)
            for each in self.entries
            if each is not entry and each.cause == entry.cause and each.epoch == entry.epoch
            if each.path.startswith("/brokers/") and entry.cause and _is_near(each, entry)
        ]
        deciders = [each for each in self.entries if each.kind == "LeaderChange"]
        by = [each for each in deciders if each.epoch == entry.epoch and each is not entry]
        return links + [_link("decided by", each.offset, each.text) for each in by[-1:]]


_CHANGES = frozenset({"PartitionChange", "BrokerChange"})
"""Kinds of records that set just those of their fields that are not null."""
_SET_WITH = {
    "leader_epoch": "leader",
    "partition_epoch": "partition",
    "fence_cause": "fenced",
    "fenced_at": "fenced",
}
"""Which field says that something else changes as well."""


def _sets(entry: Entry, path: str) -> bool:
    """Whether a record of a branch has to do with a leaf of it."""
    leaf = path.removeprefix(entry.path).split("/")[1]
    if entry.kind == "TopicRecord":
        return not leaf.isdigit()  # its partitions have records of their own
    if entry.kind not in _CHANGES or not isinstance(entry.fields, dict):
        return True
    return entry.fields.get(_SET_WITH.get(leaf, leaf)) is not None


NEAR = 2_000
"""Records: what concerns many partitions is decided in several batches."""


def _is_near(one: Entry, other: Entry) -> bool:
    return abs(one.offset - other.offset) <= NEAR


def _link(how: str, offset: int, text: str) -> dict[str, Json]:
    return {"how": how, "offset": offset, "text": text}


def _ids(voters: VoterSet) -> str:
    return ", ".join(str(each.key.node_id) for each in voters.voters)


def _voters_json(voters: VoterSet) -> dict[str, Json]:
    return {
        str(each.key.node_id): {
            "directory_id": str(each.key.directory_id),
            "endpoint": each.endpoint,
        }
        for each in voters.voters
    }


def _cause_of(control: object) -> str:
    if isinstance(control, LeaderChange):
        return f"elected by {', '.join(str(each.node_id) for each in control.granted_by)}"
    return "a change of voters" if isinstance(control, VoterSet) else ""


# -- records in words


def describe(record: r.Record, image: Image, names: Mapping[Uuid, str]) -> tuple[str, str]:
    """The branch that a record changes, and what it says; the image is that before it."""
    match record:
        case r.RegisterBroker(broker=broker):
            where = ", ".join(f"{each.host}:{each.port}" for each in broker.listeners)
            return f"/brokers/{broker.id}", f"broker {broker.id} registers at {where}"
        case r.BrokerChange(broker_id=broker_id):
            return f"/brokers/{broker_id}", f"broker {broker_id} {_broker_change(record)}"
        case r.UnregisterBroker(broker_id=broker_id):
            return f"/brokers/{broker_id}", f"broker {broker_id} is forgotten"
        case r.TopicRecord(name=name):
            return f"/topics/{name}", f"topic {name} is created"
        case r.RemoveTopic(topic_id=topic_id):
            name = names.get(topic_id, str(topic_id))
            return f"/topics/{name}", f"topic {name} is deleted"
        case r.PartitionRecord() | r.PartitionChange():
            return _describe_partition(record, image, names)
        case r.ConfigRecord(resource=resource, name=name, value=value):
            path = f"/configs/{resource.type.name.lower()}/{resource.name or '(all)'}/{name}"
            change = "is unset" if value is None else f"= {value}"
            return path, f"{name} of {resource} {change}"
        case r.FeatureLevel(name=name, level=level):
            return f"/features/{name}", f"feature {name} is at level {level}"
        case r.ProducerIds(next_producer_id=next_id):
            return "/producer-ids", f"producer ids below {next_id} are handed out"
        case _:
            return "", "a request is done" if isinstance(record, r.RequestDone) else "nothing new"


def _broker_change(change: r.BrokerChange) -> str:
    if change.fenced:
        why = change.fence_cause.name.lower().replace("_", " ") if change.fence_cause else ""
        return f"is fenced: {why}" if why else "is fenced"
    return "is unfenced" if change.fenced is False else "begins to shut down"


def _describe_partition(
    record: r.PartitionRecord | r.PartitionChange, image: Image, names: Mapping[Uuid, str]
) -> tuple[str, str]:
    topic = names.get(record.topic_id, str(record.topic_id))
    place, path = f"{topic}-{record.partition}", f"/topics/{topic}/{record.partition}"
    if isinstance(record, r.PartitionRecord):
        state = record.state
        replicas = ",".join(map(str, state.replicas))
        return path, f"{place} begins on {replicas}, led by {state.leader}"
    before = image.partition(record.topic_id, record.partition)
    parts = []
    if record.leader is not None:
        led = f" (was {before.leader})" if before and before.leader != record.leader else ""
        leads = "has no leader" if record.leader < 0 else f"is led by {record.leader}"
        parts.append(f"{leads}{led}")
    if record.isr is not None:
        verb = "becomes" if before is None else _grows(len(before.isr), len(record.isr))
        parts.append(f"ISR {verb} {','.join(map(str, record.isr)) or 'empty'}")
    moved = {"replicas": record.replicas, "adding": record.adding, "removing": record.removing}
    parts += [f"{key} {','.join(map(str, ids)) or 'none'}" for key, ids in moved.items() if ids]
    return path, f"{place} {'; '.join(parts) or 'changes'}"


def _grows(before: int, after: int) -> str:
    return "shrinks to" if after < before else "grows to" if after > before else "becomes"


def plain(value: object) -> Json:
    """Anything of a record as JSON."""
    match value:
        case None | bool() | str() | float():
            return value
        case Enum():
            return value.name.lower()
        case int():
            return value
        case bytes():
            return value.hex()
        case Uuid():
            return str(value)
        case _ if isinstance(value, tuple) and hasattr(value, "_asdict"):
            return {name: plain(each) for name, each in value._asdict().items()}
        case tuple() | list() | frozenset():
            return [plain(each) for each in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
        case _:
            return str(value)
