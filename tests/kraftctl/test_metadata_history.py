from kraftctl.metadata_history import History, describe, plain
from kraftlog.record_batch import RecordBatch
from kraftlog.types import Uuid
from metadata_log import records as r
from metadata_log.codec import encode
from metadata_log.image import EMPTY
from metadata_log.snapshot import write_values
from quorum.batches import encode_control, encode_records
from quorum.core.messages import LeaderChange, ReplicaKey

ID = Uuid(b"t" * 16)
STATE = r.PartitionState(replicas=(1, 2), isr=(1, 2), leader=1)
TIMEOUT = r.Cause(r.CauseKind.SESSION_TIMEOUT, "broker 1, 1500 ms")


def batch(*records: r.Record, base: int, cause: r.Cause = TIMEOUT) -> RecordBatch:
    values = [encode(r.CausedRecord(record, cause)) for record in records]
    data = encode_records(values, timestamp=5)
    data[0:8] = base.to_bytes(8, "big")
    data[12:16] = bytes(4)  # the epoch
    return RecordBatch(data, 0)


def history() -> History:
    found = History()
    leader = LeaderChange(ReplicaKey(101, ID), (), (ReplicaKey(101, ID),))
    found.add(RecordBatch(encode_control(leader, offset=0, epoch=0, timestamp=1), 0))
    found.add(batch(r.TopicRecord("t", ID), r.PartitionRecord(ID, 0, STATE), base=1))
    change = r.PartitionChange(ID, 0, leader=2, isr=(2,))
    found.add(batch(change, base=3))
    return found


def test_records_in_words() -> None:
    texts = [each.text for each in history().entries]
    assert texts == [
        "101 leads epoch 0",
        "topic t is created",
        "t-0 begins on 1,2, led by 1",
        "t-0 is led by 2 (was 1); ISR shrinks to 2",
    ]
    fenced = r.BrokerChange(
        broker_id=1, broker_epoch=0, fenced=True, fence_cause=r.FenceCause.SESSION_TIMEOUT
    )
    assert describe(fenced, EMPTY, {})[1] == "broker 1 is fenced: session timeout"


def test_blame_finds_a_branch_and_its_causes() -> None:
    found = history()
    blamed = found.blame("/topics/t/0")
    assert [each.offset for each in blamed] == [2, 3]
    assert [each.offset for each in found.blame("/topics/t")] == [1, 2, 3]
    for leaf, offsets in {
        "leader": [2, 3],
        "leader_epoch": [2, 3],
        "isr": [2, 3],
        "replicas": [2],
        "partition_epoch": [2, 3],
    }.items():
        assert [each.offset for each in found.blame(f"/topics/t/0/{leaf}")] == offsets, leaf
    assert [each.offset for each in found.blame("/topics/t/id")] == [1]
    chain = found.chain(blamed[-1])
    assert [each["how"] for each in chain] == ["because", "decided by"]
    assert chain[0]["text"] == "session timeout: broker 1, 1500 ms"


def test_the_tree_goes_on_from_a_snapshot() -> None:
    full = history()
    values = list(write_values(full.image))
    again = History()
    again.begin([RecordBatch(encode_records(values, timestamp=1), 0)], full.image.end_offset)
    assert again.next_offset == 4
    assert again.tree()["topics"] == full.tree()["topics"]


def test_anything_becomes_json() -> None:
    assert plain((1, None, b"\x01", ID, r.Recovery.RECOVERED)) == [
        1,
        None,
        "01",
        str(ID),
        "recovered",
    ]
