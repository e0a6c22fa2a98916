"""`kraftctl demo`: a real cluster that fails over before your eyes, and a verdict.

Three controllers and three brokers, each a process of its own, on free ports and in a temporary
directory. While a producer and a consumer run, the active controller is killed, then the broker
that leads a partition. In the end everything is read back, and in a second act once more by Spark.
Nothing is left running.
"""

import time
from collections.abc import Callable, Mapping, Sequence

from kraftctl.timeline import Timeline
from kraftctl.workload import Reckoning, Workload
from kraftlog.admin_types import NewTopic
from kraftlog.errors import KraftError
from kraftlog.local import LocalCluster

TOPIC = "orders"
PARTITIONS = 6
SETTLE_SECONDS = 3.0
FAILOVER_SECONDS = 30.0
PASSED, FAILED = 0, 3

ReadBack = Callable[[str, str], Sequence[Sequence[int]]]
"""Takes brokers and a topic; returns the numbers of each partition, in the order of its log."""


def run_demo(
    timeline: Timeline,
    *,
    settle_seconds: float = SETTLE_SECONDS,
    read_by_spark: ReadBack | None = None,
) -> int:
    """The whole story; 0 if nothing acknowledged was lost, duplicated or reordered, else 3."""
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
    timeline.say("all processes ended", "good")
    return _verdict(timeline, reckonings, costs)


class _Story:
    def __init__(self, cluster: LocalCluster, timeline: Timeline, settle_seconds: float) -> None:
        self._cluster = cluster
        self._timeline = timeline
        self._settle_seconds = settle_seconds
        self._load = Workload(cluster.bootstrap, TOPIC)

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

    def break_things(self) -> dict[str, str]:
        return {
            "controller kill -9, next topic created": self._kill_controller(),
            "broker kill -9, longest gap between acks": self._kill_broker(),
            "broker SIGTERM, longest gap between acks": self._stop_broker(),
        }

    def _kill_controller(self) -> str:
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
        cluster.start_node(victim)
        self._timeline.say(f"{victim} is back")
        self._settle()
        return f"{taken:.2f} s"

    def _kill_broker(self) -> str:
        cluster, victim = self._cluster, self._cluster.leader(TOPIC)
        begun = time.monotonic()
        cluster.kill(victim)
        self._timeline.say(f"kill -9 {victim}, which leads {TOPIC}-0", "act")
        successor = self._wait_for_leader(victim)
        self._timeline.say(f"{successor} leads {TOPIC}-0 now", "good")
        self._settle()
        gap = self._load.longest_gap(begun, time.monotonic())
        self._timeline.say(f"longest gap between acknowledgements {gap:.2f} s")
        cluster.start_node(victim)
        cluster.wait_healthy(in_sync=True)
        self._timeline.say(f"{victim} is back and has caught up: all replicas in sync", "good")
        return f"{gap:.2f} s"

    def _stop_broker(self) -> str:
        cluster, victim = self._cluster, self._cluster.leader(TOPIC, 1)
        begun = time.monotonic()
        code = cluster.stop_node(victim)
        self._timeline.say(f"SIGTERM {victim}: moved its leaders, then ended ({code})", "act")
        self._settle()
        gap = self._load.longest_gap(begun, time.monotonic())
        self._timeline.say(f"longest gap between acknowledgements {gap:.2f} s")
        cluster.start_node(victim)
        cluster.wait_healthy(in_sync=True)
        return f"{gap:.2f} s"

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


def _verdict(
    timeline: Timeline, reckonings: Mapping[str, Reckoning], costs: Mapping[str, str]
) -> int:
    is_good = all(reckoning.is_good for reckoning in reckonings.values())
    first, *others = reckonings.items()
    timeline.title("")
    timeline.title("VERDICT " + ("PASS" if is_good else "FAIL"))
    timeline.table(
        {
            "acknowledged": f"{first[1].acknowledged}",
            first[0]: f"{first[1].read}",
            "lost": _numbers(first[1].lost),
            "duplicated": _numbers(first[1].duplicated),
            "reordered": _numbers(first[1].reordered),
            "failed sends": f"{first[1].failed}",
            **{name: _in_short(reckoning) for name, reckoning in others},
            **costs,
        }
    )
    return PASSED if is_good else FAILED


def _in_short(reckoning: Reckoning) -> str:
    return (
        f"{reckoning.read}; lost {_numbers(reckoning.lost)}, duplicated"
        f" {_numbers(reckoning.duplicated)}, reordered {_numbers(reckoning.reordered)}"
    )


def _numbers(numbers: tuple[int, ...]) -> str:
    return f"{len(numbers)}, the first is {numbers[0]}" if numbers else "0"
