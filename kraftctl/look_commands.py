"""`kraftctl status` and `kraftctl health`: is it fine, if not why, and what now?"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import click

from kraftctl.controllers import Belief, beliefs, leader_of
from kraftctl.exit_codes import OK, UNHEALTHY, NotFound
from kraftctl.output import Json, table
from kraftctl.quorum_commands import BELIEFS, belief_row
from kraftctl.session import Session, cluster_options, command
from kraftlog.admin_types import ClusterDescription, TopicDescription
from kraftlog.cluster_health import (
    GREEN,
    RED,
    ClusterHealth,
    Grade,
    Problem,
    judge_brokers,
    judge_partitions,
    judge_quorum,
)
from kraftlog.errors import ConfigError, KraftError

POLL_SECONDS = 0.2
WATCH_SECONDS = 1.0


@dataclass
class Look:
    """The cluster at one moment, and what is wrong with it."""

    controllers: Mapping[str, Belief] = field(default_factory=dict)
    cluster: ClusterDescription | None = None
    topics: list[TopicDescription] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

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
        with session.admin() as admin:
            seen.cluster = admin.describe_cluster()
            seen.topics = list(admin.describe_topics().ok.values())
    except (ConfigError, NotFound):
        raise
    except KraftError as error:
        is_down = session.local_controllers and not _answers(seen)
        then = "kraftctl up -d" if is_down else error.hint or "kraftctl quorum why"
        seen.problems.append(Problem(RED, error.message, then))
    seen.problems += judge_quorum(seen.controllers)
    seen.problems += judge_brokers(seen.cluster) if seen.cluster else ()
    seen.problems += judge_partitions(seen.topics)
    return seen


def _answers(seen: Look) -> bool:
    return any(not isinstance(each, KraftError) for each in seen.controllers.values())


@click.command()
@click.option("-w", "--watch", is_flag=True, help="Again and again.")
@cluster_options
@command
def status(session: Session, *, watch: bool) -> int:
    """The cluster on one screen. Exit code 3 if it is not green."""
    session.output.refuse_endless(watch, "--watch")
    while True:
        seen = look(session)
        if watch and session.output.is_for_people and session.output.is_terminal:
            session.output.line("\x1b[2J\x1b[H")
        session.output.show(_json(seen), _screen(seen))
        if not watch:
            return OK if seen.grade is GREEN else UNHEALTHY
        time.sleep(WATCH_SECONDS)


@click.command()
@click.option("--wait", is_flag=True, help="Until it is as good as --for says.")
@click.option("--for", "wanted", type=click.Choice(["green", "yellow"]), default="green")
@click.option("--stable", default="0s", help="With --wait: and has been so for that long.")
@click.option("--within", default="60s", help="With --wait: give up after that long.")
@cluster_options
@command
def health(session: Session, *, wait: bool, wanted: str, stable: str, within: str) -> int:
    """Is it fine? If not, why, and what now? Exit code 3 if it is worse than --for."""
    from kraftlog.durations import to_seconds  # noqa: PLC0415

    deadline = time.monotonic() + to_seconds(within, "--within")
    since: float | None = None
    while True:
        seen = look(session)
        good = seen.grade.is_as_good_as(Grade(wanted))
        since = (since or time.monotonic()) if good else None
        enough = since is not None and time.monotonic() - since >= to_seconds(stable, "--stable")
        if not wait or enough or time.monotonic() > deadline:
            break
        time.sleep(POLL_SECONDS)
    data: Json = {"grade": seen.grade, "problems": _problems(seen)}
    session.output.show(data, "\n".join(_verdict(seen)))
    return OK if good and (enough or not wait) else UNHEALTHY


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
        "brokers": [
            {
                "broker": each.broker_id,
                "fenced": each.fenced,
                "why": each.fence_cause,
                "leads": each.leaders,
                "replicas": each.replicas,
            }
            for each in (cluster.brokers if cluster else ())
        ],
        "topics": cluster.topics if cluster else None,
        "partitions": cluster.partitions if cluster else None,
    }


def _screen(seen: Look) -> str:
    cluster, leader = seen.cluster, leader_of(seen.controllers.values())
    known = f"cluster {cluster.cluster_id}" if cluster else "no answer"
    epoch = f"   metadata: epoch {leader.epoch}  HW {leader.high_watermark}" if leader else ""
    parts = [f"{seen.grade.upper()}  {known}{epoch}"]
    rows = [belief_row(address, each) for address, each in seen.controllers.items()]
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
                        each.fence_cause,
                    )
                    for each in cluster.brokers
                ],
            )
        )
        parts.append(f"TOPICS {cluster.topics}  PARTITIONS {cluster.partitions}")
    parts += [
        f"{seen.grade.upper()} because: {each.what}   try: {each.hint}" for each in seen.problems
    ]
    return "\n".join(parts)
