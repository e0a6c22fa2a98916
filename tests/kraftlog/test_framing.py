from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from kraftlog.framing import MESSAGE_BYTES_WANTED, enclose, field_head, frame, take_message
from kraftlog.rpc import broker_pb2, raft_pb2

envelopes = st.builds(
    raft_pb2.RaftReply,
    correlation_id=st.integers(0, 2**40),
    fetch=st.builds(raft_pb2.FetchReply, records=st.binary(max_size=300)),
)


@given(st.lists(envelopes))
def test_joined_envelopes_are_what_protobuf_would_write(replies: list[raft_pb2.RaftReply]) -> None:
    joined = b"".join(frame(reply.SerializeToString()) for reply in replies)
    whole = raft_pb2.RaftReplies(replies=replies)
    assert joined == whole.SerializeToString()


@given(st.lists(st.integers(0, MESSAGE_BYTES_WANTED + 9)))
def test_messages_hold_all_frames_in_order_and_are_small(sizes: list[int]) -> None:
    frames = deque(b"%d" % number + bytes(size) for number, size in enumerate(sizes))
    whole, largest = b"".join(frames), max(map(len, frames), default=0)
    taken = []
    while frames:
        taken.append(take_message(frames))
    assert b"".join(taken) == whole
    assert all(len(message) <= max(MESSAGE_BYTES_WANTED, largest) for message in taken)


def test_an_envelope_in_pieces_is_framed_like_a_whole_one() -> None:
    for pieces in ((), (b"",), (b"a",), (b"ab", b"", b"c" * 300), (b"x" * 70_000, b"y")):
        assert frame(pieces) == frame(b"".join(pieces))


@given(st.text(max_size=300), st.integers(0, 2**40))
def test_a_message_joined_from_encoded_parts_is_the_same_message(name: str, offset: int) -> None:
    head = broker_pb2.MetadataReply(offset=offset)
    topic = broker_pb2.TopicMetadata(name=name, topic_id=b"x" * 16)
    number = broker_pb2.MetadataReply.TOPICS_FIELD_NUMBER
    joined = (head.SerializeToString(), *enclose(number, (topic.SerializeToString(),)))
    assert broker_pb2.MetadataReply.FromString(b"".join(joined)) == broker_pb2.MetadataReply(
        offset=offset, topics=[topic]
    )


@given(st.integers(1, 2**29 - 1), st.integers(0, 2**31 - 1))
def test_a_head_is_two_varints(field_number: int, size: int) -> None:
    key, length = (int(bits, 2) for bits in _varints(field_head(field_number, size)))
    assert (key, length) == (field_number << 3 | 2, size)


def _varints(data: bytes) -> list[str]:
    found = [""]
    for byte in data:
        found[-1] = f"{byte & 0x7F:07b}" + found[-1]
        if not byte & 0x80:
            found.append("")
    return found[:-1]
