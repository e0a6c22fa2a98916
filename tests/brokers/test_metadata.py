import asyncio
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import pytest

from brokers.cluster import ClusterChange
from brokers.metadata import MetadataFollower, MetadataPublisher
from brokers.metadata_view import ImageView
from kraftlog.errors import StorageError
from metadata_log.codec import encode
from metadata_log.image import EMPTY
from metadata_log.records import (
    Cause,
    CausedRecord,
    CauseKind,
    PartitionChange,
    Record,
    RemoveTopic,
)
from metadata_log.replay import load
from metadata_log.snapshot import digest, write_records
from quorum.core.messages import SnapshotId, VoterSet
from quorum.observer import CommittedBatch, Snapshot
from quorum.snapshot_file import open_snapshot, snapshot_name, write_snapshot
from storage.files import OsFiles
from tests.brokers.images import image_of, registered, topic, uuid
from tests.brokers.views import static
from tests.loops import run, until


def values(records: Sequence[Record]) -> tuple[bytes, ...]:
    cause = Cause(CauseKind.IDLE)
    return tuple(encode(CausedRecord(record, cause)) for record in records)


def batch(base_offset: int, records: Sequence[Record]) -> CommittedBatch:
    return CommittedBatch(base_offset, 1, 0, values(records))


def snapshot(directory: Path, end_offset: int, contents: Sequence[bytes]) -> Snapshot:
    files, name = OsFiles(), SnapshotId(end_offset, 1)
    write_snapshot(files, str(directory), name, VoterSet(), contents, timestamp=0)
    return open_snapshot(files, str(directory / snapshot_name(name)), name)


BROKERS = [*registered(1), *registered(2)]


# -- following


def test_the_fold_is_that_of_the_controller() -> None:  # M5
    async def story() -> None:
        follower = MetadataFollower()
        follower.handle_commit([batch(0, BROKERS), batch(4, topic("a", [1, 2]))])
        expected = image_of(BROKERS, topic("a", [1, 2]))
        assert follower.image == expected
        assert digest(follower.image) == digest(expected)
        assert follower.gathered.topics == {uuid("a"): {0}}
        assert load(list(write_records(follower.image)), 6) == follower.image
        assert list(follower.dump())

    run(story())


def test_a_record_of_the_future_is_left_out_loudly(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        follower = MetadataFollower()
        known = values([*BROKERS, *topic("a", [1, 2])])
        mixed = CommittedBatch(0, 1, 0, (*known[:3], b"\xff not a record", *known[3:]))
        follower.handle_commit([mixed])
        assert follower.image.topic("a") is not None
        assert len(follower.image.brokers) == 2
        assert follower.errors == 1
        assert "left out" in caplog.text
        # M5: in a snapshot of ours the hole would outlive this version, if the log behind it goes.
        with pytest.raises(StorageError, match="lack 1 of the records"):
            follower.dump()

    run(story())


def test_a_record_that_does_not_fit_is_left_out_and_the_others_are_not() -> None:
    async def story() -> None:
        follower = MetadataFollower()
        wrong = RemoveTopic(uuid("never there"))
        follower.handle_commit([batch(0, [*BROKERS, wrong, *topic("a", [1])])])
        assert follower.image.topic("a") is not None
        assert follower.errors == 1
        assert follower.image.end_offset == 7

    run(story())


def test_a_snapshot_takes_the_place_of_everything(tmp_path: Path) -> None:
    async def story() -> None:
        follower = MetadataFollower()
        follower.handle_commit([batch(0, [*BROKERS, *topic("old", [1])])])
        follower.take()
        newer = image_of(registered(1), topic("new", [1]))
        contents = [*values(list(write_records(newer))), b"\xff not a record"]
        deque(follower.handle_snapshot(snapshot(tmp_path, 90, contents)))
        assert follower.image.end_offset == 90
        assert digest(follower.image) == digest(newer)
        assert set(follower.gathered.removed_topics) == {uuid("old")}
        assert follower.gathered.brokers == {2}
        assert follower.errors == 1
        with pytest.raises(StorageError):
            follower.dump()
        deque(follower.handle_snapshot(snapshot(tmp_path, 91, contents[:-1])))
        assert list(follower.dump())  # whole again

    run(story())


# -- publishing


class DataPlane:
    """Takes what is published, one at a time, when the test lets it."""

    def __init__(self) -> None:
        self.published: list[tuple[int, ClusterChange]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.busy = 0

    async def apply(self, view: ImageView, change: ClusterChange) -> None:
        self.busy += 1
        assert self.busy == 1, "two changes at once"
        await self.gate.wait()
        self.busy -= 1
        self.published.append((view.image.end_offset, change))

    @property
    def offsets(self) -> list[int]:
        return [offset for offset, _ in self.published]


class Story:
    def __init__(self) -> None:
        self.consumed = 0
        self.follower = MetadataFollower()
        self.publisher = MetadataPublisher(
            self.follower, static(), consumed_offset=lambda: self.consumed
        )
        self.data = DataPlane()

    def commit(self, records: Sequence[Record]) -> None:
        base, self.consumed = self.consumed, self.consumed + len(records)
        self.follower.handle_commit([batch(base, records)])

    async def begin(self) -> None:
        await self.publisher.begin(1, self.data.apply)


def test_nothing_is_published_before_it_begins_and_then_everything_at_once() -> None:
    async def story() -> None:
        told = Story()
        told.commit(BROKERS)
        told.commit(topic("a", [1, 2]))
        told.commit(topic("b", [2]))
        assert told.publisher.image is EMPTY
        assert told.publisher.applied_offset == 0
        await told.begin()
        [(offset, change)] = told.data.published
        assert offset == told.publisher.applied_offset == 8
        assert [each.topic for each in change.changed] == ["a"]
        assert told.publisher.directory.topic_id("b") == uuid("b").raw

    run(story())


def test_changes_come_in_order_and_what_piles_up_comes_together() -> None:
    async def story() -> None:
        told = Story()
        told.commit(BROKERS)
        await told.begin()
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(told.publisher.run())
            told.data.gate.clear()
            told.commit(topic("a", [1]))
            await until(lambda: told.data.busy == 1, "the first change")
            told.commit(topic("b", [1]))
            told.commit([PartitionChange(uuid("a"), 0, leader=1)])
            # What is fetched and not applied is not told to the controller (KAFKA-13836).
            assert told.publisher.applied_offset == 4
            told.data.gate.set()
            await told.publisher.wait_applied(9)
            assert told.data.offsets == [4, 6, 9]
            assert told.publisher.applied_offset == 9
            changed = {each.topic for each in told.data.published[-1][1].changed}
            assert changed == {"a", "b"}
            running.cancel()

    run(story())


def test_control_records_count_as_applied_when_nothing_else_waits() -> None:
    async def story() -> None:
        told = Story()
        told.commit(BROKERS)
        await told.begin()
        told.consumed += 1  # the first record of a new leader
        assert told.publisher.applied_offset == 5
        told.commit(topic("a", [1]))
        assert told.publisher.applied_offset == 5

    run(story())


def test_whoever_waits_for_an_offset_is_woken_when_it_is_applied() -> None:
    async def story() -> None:
        told = Story()
        told.commit(BROKERS)
        await told.begin()
        await told.publisher.wait_applied(4)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(told.publisher.run())
            later = tasks.create_task(told.publisher.wait_applied(8))
            sooner = tasks.create_task(told.publisher.wait_applied(6))
            told.commit(topic("a", [1]))
            await sooner
            assert not later.done()
            told.commit(topic("b", [1]))
            await later
            running.cancel()

    run(story())
