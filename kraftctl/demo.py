"""`kraftctl demo`: a real cluster that fails over before your eyes, and a verdict.

Three controllers and three brokers, each a process of its own, on free ports and in a temporary
directory. While a producer and a consumer run, the active controller is killed, then the broker
that leads a partition. In the end everything is read back, and in a second act once more by Spark.
Nothing is left running.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kraftctl.output import Json
from kraftctl.timeline import Timeline
from kraftctl.workload import Reckoning, Workload
from kraftlog.admin_types import NewTopic
from kraftlog.errors import KraftError
from kraftlog.local import LocalCluster

TOPIC = "orders"
PARTITIONS = 6
SETTLE_SECONDS = 3.0
FAILOVER_SECONDS = 30.0

ReadBack = Callable[[str, str], Sequence[Sequence[int]]]
"""Takes brokers and a topic; returns the numbers of each partition, in the order of its log."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How it went: what each reader found of what was acknowledged, and what each failure cost."""

    reckonings: Mapping[str, Reckoning]
    """By who has read; the clients are first."""
    costs: Mapping[str, float]
    """What was broken and how that showed -> seconds."""
    left_running: tuple[int, ...] = ()
    """Processes that should be gone by now."""

    @property
    def is_good(self) -> bool:
        """Nothing acknowledged was lost, duplicated or reordered, and nothing is left running."""
        is_read = all(reckoning.is_good for reckoning in self.reckonings.values())
        return is_read and not self.left_running

    def rows(self) -> dict[str, str]:
        (reader, first), *others = self.reckonings.items()
        return {
            "acknowledged": f"{first.acknowledged}",
            reader: f"{first.read}",
            "lost": _numbers(first.lost),
            "duplicated": _numbers(first.duplicated),
            "reordered": _numbers(first.reordered),
            "failed sends": f"{first.failed}",
            **{name: _in_short(reckoning) for name, reckoning in others},
            **{name: f"{seconds:.2f} s" for name, seconds in self.costs.items()},
            **(
                {"left running": ", ".join(map(str, self.left_running))}
                if self.left_running
                else {}
            ),
        }

    def document(self) -> Json:
        return {
            "verdict": "PASS" if self.is_good else "FAIL",
            "readers": [
                {
                    "reader": name,
                    "acknowledged": each.acknowledged,
                    "read": each.read,
                    "lost": list(each.lost),
                    "duplicated": list(each.duplicated),
                    "reordered": list(each.reordered),
                    "failed": each.failed,
                }
                for name, each in self.reckonings.items()
            ],
            "costs": [{"what": name, "seconds": cost} for name, cost in self.costs.items()],
            "left_running": list(self.left_running),
        }


def run_demo(
    timeline: Timeline,
    *,
    settle_seconds: float = SETTLE_SECONDS,
    read_by_spark: ReadBack | None = None,
) -> Verdict:
    """The whole story, told as it happens."""
    timeline.title("kraftlog: a quorum of controllers, replicated logs, and what failures cost")
    with LocalCluster() as cluster:
        timeline.say(f"quorum formed, 3 controllers and 3 brokers: {cluster.bootstrap}", "good")
        timeline.say(f"active controller {cluster.controller()}, cluster {cluster.cluster_id}")
        story = _Story(cluster, timeline, settle_seconds)
        story.create_topic()
        story.start_load()
        try:
            costs = story.break_things()
        finally:
            story.stop_load()
        reckonings = {"read back": story.read_back()}
        if read_by_spark is not None:
            reckonings["read back by Spark"] = story.read_back_by_spark(read_by_spark)
    left = tuple(pid for pid in story.pids if _is_there(pid))
    if left:
        timeline.say(f"still running: {', '.join(map(str, left))}", "bad")
    else:
        timeline.say("all processes ended", "good")
    verdict = Verdict(reckonings, costs, left)
    timeline.title("")
    timeline.title("VERDICT " + ("PASS" if verdict.is_good else "FAIL"))
    timeline.table(verdict.rows())
    return verdict


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class _Story:
    def __init__(self, cluster: LocalCluster, timeline: Timeline, settle_seconds: float) -> None:
        self._cluster = cluster
        self._timeline = timeline
        self._settle_seconds = settle_seconds
        self._load = Workload(cluster.bootstrap, TOPIC)
        self.pids = {cluster.pid(name) for name in cluster.nodes}
        """Of all nodes that ever ran."""

    def _start(self, name: str) -> None:
        self._cluster.start_node(name)
        self.pids.add(self._cluster.pid(name))

    def create_topic(self) -> None:
        topic = NewTopic(
            TOPIC,
            partitions=PARTITIONS,
            replication_factor=3,
            configs={"min.insync.replicas": "2"},
        )
        with self._cluster.admin() as admin:
            admin.create_topics([topic]).raise_for_errors()
        self._cluster.wait_healthy(in_sync=True)
        self._timeline.say(
            f"topic {TOPIC}: {PARTITIONS} partitions, 3 replicas, 2 must ack", "good"
        )

    def start_load(self) -> None:
        self._load.start()
        if not self._load.wait_for_ack(0.0, FAILOVER_SECONDS):
            raise TimeoutError("nothing was acknowledged")
        self._timeline.say("a producer (acks=all, idempotent) and a consumer run", "good")
        self._settle()

    def stop_load(self) -> None:
        self._load.stop()

    def _settle(self) -> None:
        """Let it run for a while, and say how it goes."""
        before = self._load.acknowledged
        time.sleep(self._settle_seconds)
        rate = (self._load.acknowledged - before) / self._settle_seconds
        self._timeline.say(
            f"{self._load.acknowledged} acknowledged ({rate:.0f}/s), {self._load.seen} consumed"
        )

    def break_things(self) -> dict[str, float]:
        return {
            "controller kill -9, next topic created": self._kill_controller(),
            "broker kill -9, longest gap between acks": self._kill_broker(),
            "broker SIGTERM, longest gap between acks": self._stop_broker(),
        }

    def _kill_controller(self) -> float:
        cluster, victim = self._cluster, self._cluster.controller()
        cluster.kill(victim)
        begun = time.monotonic()
        self._timeline.say(f"kill -9 {victim}, the active controller", "act")
        with cluster.admin() as admin:
            admin.create_topics([NewTopic("after-failover", partitions=1)]).raise_for_errors()
        taken = time.monotonic() - begun
        self._timeline.say(
            f"{cluster.controller()} took over and created a topic after {taken:.2f} s", "good"
        )
        gap = self._load.longest_gap(begun, time.monotonic())
        self._timeline.say(f"producers did not notice: longest gap {gap:.2f} s")
        self._start(victim)
        self._timeline.say(f"{victim} is back")
        self._settle()
        return taken

    def _kill_broker(self) -> float:
        cluster, victim = self._cluster, self._cluster.leader(TOPIC)
        begun = time.monotonic()
        cluster.kill(victim)
        self._timeline.say(f"kill -9 {victim}, which leads {TOPIC}-0", "act")
        successor = self._wait_for_leader(victim)
        self._timeline.say(f"{successor} leads {TOPIC}-0 now", "good")
        self._settle()
        gap = self._load.longest_gap(begun, time.monotonic())
        self._timeline.say(f"longest gap between acknowledgements {gap:.2f} s")
        self._start(victim)
        cluster.wait_healthy(in_sync=True)
        self._timeline.say(f"{victim} is back and has caught up: all replicas in sync", "good")
        return gap

    def _stop_broker(self) -> float:
        cluster, victim = self._cluster, self._cluster.leader(TOPIC, 1)
        begun = time.monotonic()
        code = cluster.stop_node(victim)
        self._timeline.say(f"SIGTERM {victim}: moved its leaders, then ended ({code})", "act")
        self._settle()
        gap = self._load.longest_gap(begun, time.monotonic())
        self._timeline.say(f"longest gap between acknowledgements {gap:.2f} s")
        self._start(victim)
        cluster.wait_healthy(in_sync=True)
        return gap

    def _wait_for_leader(self, victim: str) -> str:
        deadline = time.monotonic() + FAILOVER_SECONDS
        while time.monotonic() < deadline:
            try:
                leader = self._cluster.leader(TOPIC)
            except KraftError:
                continue
            if leader != victim:
                return leader
            time.sleep(0.02)
        raise TimeoutError(f"nobody took over from {victim}")

    def read_back(self) -> Reckoning:
        self._timeline.say("reading everything back")
        return self._load.reckon()

    def read_back_by_spark(self, read: ReadBack) -> Reckoning:
        self._timeline.say("second act: Spark starts and reads everything back, a task a partition")
        return self._load.reckon(read(self._cluster.bootstrap, TOPIC))


def _in_short(reckoning: Reckoning) -> str:
    return (
        f"{reckoning.read}; lost {_numbers(reckoning.lost)}, duplicated"
        f" {_numbers(reckoning.duplicated)}, reordered {_numbers(reckoning.reordered)}"
    )


def _numbers(numbers: tuple[int, ...]) -> str:
    return f"{len(numbers)}, the first is {numbers[0]}" if numbers else "0"
