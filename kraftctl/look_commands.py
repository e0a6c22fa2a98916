"""`kraftctl status` and `kraftctl health`: is it fine, if not why, and what now?"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import click

from kraftctl.controllers import Belief, beliefs, leader_of
from kraftctl.exit_codes import OK, UNHEALTHY, UNREACHABLE, NotFound
from kraftctl.output import Json, table
from kraftctl.progress import Progress
from kraftctl.quorum_commands import BELIEFS, belief_row, belief_rows
from kraftctl.session import NUMBER, Session, cluster_options, command
from kraftlog.admin_types import (
    BrokerDescription,
    ClusterDescription,
    ConfigResource,
    PartitionDescription,
    TopicDescription,
)
from kraftlog.cluster_health import (
    GREEN,
    RED,
    ClusterHealth,
    Grade,
    Problem,
    judge_brokers,
    judge_partitions,
    judge_quorum,
    needed_in_sync,
    short_topics,
    under_min_isr,
)
from kraftlog.errors import ConfigError, KraftError, LeaderNotAvailable

POLL_SECONDS = 0.2
WATCH_SECONDS = 1.0


@dataclass
class Look:
    """The cluster at one moment, and what is wrong with it."""

    controllers: Mapping[str, Belief] = field(default_factory=dict)
    cluster: ClusterDescription | None = None
    topics: list[TopicDescription] = field(default_factory=list)
    needed: Mapping[str, int] = field(default_factory=dict)
    """min.insync.replicas of the topics that are short of replicas in sync."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def under_min_isr(self) -> int:
        return under_min_isr(self.topics, self.needed)

    @property
    def under_replicated(self) -> int:
        return sum(len(each.isr) < len(each.replicas) for each in self._partitions())

    @property
    def offline(self) -> int:
        return sum(each.leader < 0 for each in self._partitions())

    def _partitions(self) -> Iterator[PartitionDescription]:
        return (each for topic in self.topics for each in topic.partitions)

    @property
    def grade(self) -> Grade:
        return ClusterHealth(tuple(self.problems)).grade


def look(session: Session) -> Look:
    """Ask every controller what it believes, and the active one about the rest. A cluster that does
    not answer is red; one that is not even named is an error.
    """
    seen = Look()
    try:
        seen.controllers = beliefs(session)
        if session.down and not _answers(seen):
            raise LeaderNotAvailable(f"the local cluster {session.down} does not run")
        with session.admin() as admin:
            seen.cluster = admin.describe_cluster()
            seen.topics = list(admin.describe_topics().ok.values())
            short = [ConfigResource.topic(name) for name in short_topics(seen.topics)]
            seen.needed = needed_in_sync(admin.describe_configs(short).ok) if short else {}
    except (ConfigError, NotFound):
        raise
    except KraftError as error:
        is_down = session.local_controllers and not _answers(seen)
        then = "kraftctl up -d" if is_down else error.hint or "kraftctl quorum why"
        seen.problems.append(Problem(RED, error.message, then))
    seen.problems += judge_quorum(seen.controllers)
    seen.problems += judge_brokers(seen.cluster) if seen.cluster else ()
    seen.problems += judge_partitions(seen.topics, seen.needed)
    return seen


def _exit_code(seen: Look, *, good: bool) -> int:
    if good:
        return OK
    return UNHEALTHY if seen.cluster or _answers(seen) else UNREACHABLE


def _answers(seen: Look) -> bool:
    return any(not isinstance(each, KraftError) for each in seen.controllers.values())


@click.command()
@click.option("-w", "--watch", is_flag=True, help="Again and again.")
@cluster_options
@command
def status(session: Session, *, watch: bool) -> int:
    """The cluster on one screen. Exit code 3: it is not green; 4: nobody answers."""
    session.output.refuse_endless(watch, "--watch")
    while True:
        seen = look(session)
        if watch and session.output.is_for_people and session.output.is_terminal:
            session.output.line("\x1b[2J\x1b[H")
        session.output.show(_json(seen), _screen(seen))
        if not watch:
            return _exit_code(seen, good=seen.grade is GREEN)
        time.sleep(WATCH_SECONDS)


@click.command()
@click.option("--wait", is_flag=True, help="Until it is as good as --for says.")
@click.option("--for", "wanted", type=click.Choice(["green", "yellow"]), default="green")
@click.option("--stable", default="0s", help="With --wait: and has been so for that long.")
@click.option("--within", default="60s", help="With --wait: give up after that long.")
@click.option(
    "--min-nodes", "brokers", type=NUMBER, default=0, help="Red with fewer brokers in service."
)
@cluster_options
@command
def health(
    session: Session, *, wait: bool, wanted: str, stable: str, within: str, brokers: int
) -> int:
    """Is it fine? If not, why, and what now? Exit code 3: it is worse than --for; 4: nobody
    answers.
    """
    from kraftlog.durations import to_seconds  # noqa: PLC0415

    deadline = time.monotonic() + to_seconds(within, "--within")
    calm_seconds = to_seconds(stable, "--stable")
    since: float | None = None
    progress = Progress(session.output)
    while True:
        seen = look(session)
        seen.problems += _missing_brokers(seen, brokers)
        good = seen.grade.is_as_good_as(Grade(wanted))
        since = (since or time.monotonic()) if good else None
        enough = since is not None and time.monotonic() - since >= calm_seconds
        if not wait or enough or time.monotonic() > deadline:
            break
        progress.tell("waiting: " + "; ".join(_in_short(seen) or ["green, and to stay so"]))
        time.sleep(POLL_SECONDS)
    data: Json = {"grade": seen.grade, "problems": _problems(seen)}
    session.output.show(data, "\n".join(_verdict(seen)))
    return _exit_code(seen, good=good and (enough or not wait))


def _in_short(seen: Look) -> list[str]:
    return [f"{each.grade}, {each.what}" for each in seen.problems]


def _missing_brokers(seen: Look, wanted: int) -> list[Problem]:
    """One that has not joined yet is missed by nobody else."""
    there = sum(not each.fenced for each in seen.cluster.brokers) if seen.cluster else 0
    if there >= wanted:
        return []
    return [Problem(RED, f"{there} of {wanted} brokers are in service", "kraftctl node ls")]


def _problems(seen: Look) -> list[Json]:
    return [{"grade": each.grade, "what": each.what, "next": each.hint} for each in seen.problems]


def _verdict(seen: Look) -> list[str]:
    return [
        seen.grade.upper(),
        *(f"  {each.what}   try: {each.hint}" for each in seen.problems),
    ]


def _json(seen: Look) -> Json:
    leader = leader_of(seen.controllers.values())
    cluster = seen.cluster
    return {
        "grade": seen.grade,
        "problems": _problems(seen),
        "cluster_id": str(cluster.cluster_id) if cluster else None,
        "controller": leader.node.node_id if leader else None,
        "epoch": leader.epoch if leader else None,
        "high_watermark": leader.high_watermark if leader else None,
        "controllers": belief_rows(seen.controllers),
        "brokers": [
            {
                "broker": each.broker_id,
                "fenced": each.fenced,
                "why": each.fence_cause,
                "leads": each.leaders,
                "replicas": each.replicas,
                "metadata_lag": max(0, cluster.offset - each.applied_offset),
                "heartbeat_ago_ms": each.heartbeat_ago_ms,
            }
            for each in cluster.brokers
        ]
        if cluster
        else [],
        "topics": cluster.topics if cluster else None,
        "partitions": cluster.partitions if cluster else None,
        "under_min_isr": seen.under_min_isr if cluster else None,
        "under_replicated": seen.under_replicated if cluster else None,
        "offline": seen.offline if cluster else None,
    }


def _why_fenced(broker: BrokerDescription) -> str:
    ago_ms = broker.heartbeat_ago_ms
    heard = f"; last heard of {ago_ms / 1000:.0f} s ago" if ago_ms is not None else ""
    return f"{broker.fence_cause or 'not caught up yet'}{heard}" if broker.fenced else ""


def _screen(seen: Look) -> str:
    cluster, leader = seen.cluster, leader_of(seen.controllers.values())
    known = f"cluster {cluster.cluster_id}" if cluster else "no answer"
    epoch = f"   metadata: epoch {leader.epoch}  HW {leader.high_watermark}" if leader else ""
    parts = [f"{seen.grade.upper()}  {known}{epoch}"]
    rows = [belief_row(address, each, leader) for address, each in seen.controllers.items()]
    parts.append(table(("CONTROLLER", *BELIEFS[1:]), rows))
    if cluster:
        end = cluster.offset
        parts.append(
            table(
                ("BROKER", "STATE", "LEADS", "REPLICAS", "META-LAG", ""),
                [
                    (
                        each.broker_id,
                        "fenced" if each.fenced else "active",
                        each.leaders,
                        each.replicas,
                        max(0, end - each.applied_offset),
                        _why_fenced(each),
                    )
                    for each in cluster.brokers
                ],
            )
        )
        parts.append(
            f"TOPICS {cluster.topics}  PARTITIONS {cluster.partitions}"
            f"  under-replicated {seen.under_replicated}  under-min-isr {seen.under_min_isr}"
            f"  offline {seen.offline}"
        )
    parts += [
        f"{seen.grade.upper()} because: {each.what}   try: {each.hint}" for each in seen.problems
    ]
    return "\n".join(parts)
