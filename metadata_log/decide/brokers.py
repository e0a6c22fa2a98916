"""Brokers register, and report by heartbeat.

A registration is one incarnation of a broker, and its epoch is the proof of it: whoever speaks with
another epoch is refused (M6). What a broker is asked to become follows from what it is and what it
wants, by the table of `next_state`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kraftlog.config import Config
from kraftlog.errors import (
    DuplicateBrokerRegistration,
    InconsistentClusterId,
    InvalidRegistration,
    StaleEpoch,
    UnsupportedVersion,
)
from kraftlog.types import Uuid
from metadata_log.decide import PARTITIONS_PER_EVENT_MAX, Decision, caused
from metadata_log.decide.changes import changes_of
from metadata_log.effective import BUILT_IN, TopicRules, rules_of
from metadata_log.image import Image, Role
from metadata_log.partition_change import Target, without
from metadata_log.places import NO_PLACES, Agenda, Places
from metadata_log.records import (
    Broker,
    Cause,
    CauseKind,
    FeatureRange,
    FenceCause,
    Listener,
    PartitionState,
    RegisterBroker,
)

RESERVED_DIRECTORY_IDS = 100
"""Kafka keeps the first hundred for meanings like "unassigned"."""
BROKER_ID_MAX = 2**31 - 1
PORT_MAX = 65_535
TEXT_CHARS_MAX = 255
PARTS_MAX = 1_000
"""Listeners, directories or features of one broker; each registration is a record."""


def check_epoch(image: Image, broker_id: int, broker_epoch: int) -> Broker:
    """The registration that speaks, or StaleEpoch if it is not the current one."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise StaleEpoch(f"broker {broker_id} is not registered", hint="register again")
    if broker.epoch != broker_epoch:
        raise StaleEpoch(
            f"broker {broker_id} speaks with epoch {broker_epoch}, and {broker.epoch} is current",
            hint="a newer process registered with this id, or this one has to register again",
        )
    return broker


# -- registration


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What a broker says of itself when it starts."""

    broker_id: int | None
    """None: hand one out."""
    cluster_id: Uuid
    incarnation_id: Uuid
    listeners: tuple[Listener, ...]
    log_dirs: tuple[Uuid, ...]
    features: tuple[FeatureRange, ...] = ()
    rack: str | None = None
    previous_epoch: int | None = None
    """The broker epoch it wrote down in its last clean stop; None: the stop was not clean."""


@dataclass(frozen=True, slots=True)
class Registered:
    broker_id: int
    broker_epoch: int


def register(
    image: Image,
    request: Registration,
    *,
    cluster_id: Uuid,
    next_offset: int,
    alive: bool,
    taken: Collection[int] = (),
    static: Config = BUILT_IN,
) -> Decision[Registered | None]:
    """A broker begins (R1). It is fenced until it has applied its own registration (R5, R6).

    `alive`: whether the incarnation that is registered under this id has a session. `taken`: ids
    that are not for brokers. `next_offset`: where the records go. While the response is None there
    is more to do first: apply the records and decide the same request again.
    """
    _check_registration(image, request, cluster_id, taken)
    broker_id = request.broker_id or _handed_out(image, request, taken)
    before = image.brokers.get(broker_id)
    if before is not None and before.incarnation_id == request.incarnation_id:
        return _same_incarnation(before, request)
    if before is not None and not before.is_fenced and alive:
        raise DuplicateBrokerRegistration(
            f"broker {broker_id} is registered by another process, which is alive:"
            f" incarnation {before.incarnation_id} at {_where(before.listeners)}",
            hint="stop that one, or give this one an id of its own",
        )
    loss = _Loss(image, broker_id, before, request, static)
    places, rest = loss.agenda().take(PARTITIONS_PER_EVENT_MAX)
    changes = changes_of(image, places, loss.wish, loss.acceptable, static)
    records = caused(Cause(CauseKind.UNCLEAN_RESTART, f"of broker {broker_id}"), *changes)
    if rest:
        return Decision(records, None, rest)
    broker = _new_incarnation(broker_id, request, before, next_offset)
    cause = Cause(CauseKind.REGISTRATION, f"broker {broker_id} at {_where(broker.listeners)}")
    answer = Registered(broker_id, broker.epoch)
    return Decision(records + caused(cause, RegisterBroker(broker)), answer)


def _same_incarnation(before: Broker, request: Registration) -> Decision[Registered | None]:
    """A repeat, or news about addresses: a healthy broker is not fenced by it (KAFKA-16757)."""
    after = Broker(
        id=before.id,
        incarnation_id=before.incarnation_id,
        epoch=before.epoch,
        listeners=request.listeners,
        log_dirs=request.log_dirs,
        features=request.features,
        rack=request.rack,
        fence_cause=before.fence_cause,
        in_controlled_shutdown=before.in_controlled_shutdown,
        fenced_at=before.fenced_at,
    )
    cause = Cause(CauseKind.REGISTRATION, f"broker {before.id} again")
    records = caused(cause, RegisterBroker(after)) if after != before else ()
    return Decision(records, Registered(before.id, before.epoch))


def _new_incarnation(
    broker_id: int, request: Registration, before: Broker | None, next_offset: int
) -> Broker:
    by_operator = before is not None and before.fence_cause is FenceCause.OPERATOR
    return Broker(
        id=broker_id,
        incarnation_id=request.incarnation_id,
        epoch=next_offset,
        listeners=request.listeners,
        log_dirs=request.log_dirs,
        features=request.features,
        rack=request.rack,
        fence_cause=FenceCause.OPERATOR if by_operator else FenceCause.NEVER_UNFENCED,
    )


# -- what an unclean restart costs


class _Loss:
    """What the partitions that counted on the old incarnation cannot expect of the new one.

    A clean stop loses nothing. Nor does a copy that counts only once it is flushed, if the disk is
    still the same. Everything else may lack what was not flushed; and without its disk a broker
    has nothing at all.
    """

    def __init__(
        self,
        image: Image,
        broker_id: int,
        before: Broker | None,
        request: Registration,
        static: Config,
    ) -> None:
        self.image = image
        self.broker_id = broker_id
        self.rules = rules_of(image, static)
        self.is_clean = before is not None and request.previous_epoch == before.epoch
        self.same_disk = before is not None and set(before.log_dirs) <= set(request.log_dirs)

    def agenda(self) -> Agenda:
        """Partitions that have to change before the new incarnation is registered."""
        image, broker_id = self.image, self.broker_id
        led, in_sync = image.places(Role.LEADER, broker_id), image.places(Role.ISR, broker_id)
        return Agenda.of(led, in_sync, self._lost(), self._remembered())

    def loses(self, rules: TopicRules) -> bool:
        return not self.is_clean and not (self.same_disk and rules.flush_before_ack)

    def _lost(self) -> Places:
        """Where it was eligible, and is no longer."""
        eligible = self.image.places(Role.ELR, self.broker_id)
        topics = ((topic_id, self.image.topics[topic_id]) for topic_id in eligible.topic_ids())
        return eligible.of_topics(
            topic_id for topic_id, topic in topics if self.loses(self.rules(topic.name))
        )

    def _remembered(self) -> Places:
        """Where it was the last leader, which would be its only claim now."""
        if self.same_disk:
            return NO_PLACES
        replica = self.image.places(Role.REPLICA, self.broker_id)
        waiting = self.image.places(Role.LEADERLESS).common(replica)
        last = (self.broker_id,)
        return Places.of(place for place in waiting if self.image.at(place).last_known_elr == last)

    def wish(self, state: PartitionState, rules: TopicRules) -> Target:
        return Target(
            isr=without(state.isr, (self.broker_id,)),
            election=rules.election,
            lost=self.broker_id if self.loses(rules) else None,
            wiped=None if self.same_disk else self.broker_id,
        )

    def acceptable(self, replica: int) -> bool:
        return replica != self.broker_id and self.image.is_active(replica)


# -- what is checked before


def _check_registration(
    image: Image, request: Registration, cluster_id: Uuid, taken: Collection[int]
) -> None:
    if request.cluster_id != cluster_id:
        raise InconsistentClusterId(
            f"the broker belongs to cluster {request.cluster_id}, this is {cluster_id}",
            hint="it was formatted for another cluster, or asks the wrong controller",
        )
    broker_id = request.broker_id
    if broker_id is not None and not 1 <= broker_id <= BROKER_ID_MAX:
        raise InvalidRegistration(f"{broker_id} is no broker id; they begin at 1")
    if broker_id in taken:
        raise InvalidRegistration(
            f"{broker_id} is the id of a controller", hint="give the broker another id"
        )
    _check_sizes(request)
    _check_listeners(request.listeners)
    _check_directories(image, request)
    _check_features(image, request.features)


def _check_sizes(request: Registration) -> None:
    parts = (request.listeners, request.log_dirs, request.features)
    texts = [request.rack or "", *(each.name for each in request.features)]
    texts += [text for each in request.listeners for text in (each.name, each.host)]
    if max(map(len, parts)) > PARTS_MAX or max(map(len, texts)) > TEXT_CHARS_MAX:
        raise InvalidRegistration(
            f"a name of more than {TEXT_CHARS_MAX} characters, or more than {PARTS_MAX} parts"
        )


def _check_listeners(listeners: tuple[Listener, ...]) -> None:
    names = [each.name for each in listeners]
    if not names or len(set(names)) < len(names):
        raise InvalidRegistration(f"a broker has one or more listeners, each once, not {names}")
    for each in listeners:
        if not each.host or not 1 <= each.port <= PORT_MAX:
            raise InvalidRegistration(
                f"listener {each.name!r} has no address to dial: {each.host!r}, port {each.port}"
            )


def _check_directories(image: Image, request: Registration) -> None:
    directories = request.log_dirs
    if not directories or len(set(directories)) < len(directories):
        raise InvalidRegistration(
            f"a broker has one or more log directories, each with an id of its own,"
            f" not {_joined(directories)}"
        )
    for directory in directories:
        if int.from_bytes(directory.raw, "big") < RESERVED_DIRECTORY_IDS:
            raise InvalidRegistration(f"{directory} is reserved and the id of no directory")
    for other in image.sorted_brokers():
        shared = set(directories) & set(other.log_dirs)
        if shared and other.id != request.broker_id and _is_other(other, request):
            raise InvalidRegistration(
                f"directory {_joined(sorted(shared))} belongs to broker {other.id}",
                hint="a copied directory is formatted anew before it is used",
            )


def _is_other(other: Broker, request: Registration) -> bool:
    """A broker without an id that repeats its request is known by its incarnation."""
    return request.broker_id is not None or other.incarnation_id != request.incarnation_id


def _check_features(image: Image, features: tuple[FeatureRange, ...]) -> None:
    ranges = {each.name: each for each in features}
    for name in sorted(image.features):
        level, able = image.features[name], ranges.get(name)
        if able is None or not able.min_level <= level <= able.max_level:
            can = f"{able.min_level} to {able.max_level}" if able else "none"
            raise UnsupportedVersion(
                f"{name} is finalized at level {level}, and the broker supports {can}",
                hint="run the version of this program that the other brokers run",
            )


def _handed_out(image: Image, request: Registration, taken: Collection[int]) -> int:
    """An id for a broker that has none: the one it got before, or one that nobody ever used."""
    for broker in image.sorted_brokers():
        if broker.incarnation_id == request.incarnation_id:
            return broker.id
    broker_id = 1
    while broker_id in image.brokers or broker_id in taken or _has_replicas(image, broker_id):
        broker_id += 1
    return broker_id


def _has_replicas(image: Image, broker_id: int) -> bool:
    return len(image.places(Role.REPLICA, broker_id)) > 0


def _where(listeners: tuple[Listener, ...]) -> str:
    return " ".join(f"{each.host}:{each.port}" for each in listeners)


def _joined(ids: Sequence[Uuid]) -> str:
    return ", ".join(map(str, ids)) or "none"
