import pytest

from brokers import metadata_answers
from brokers.metadata_answers import Controllers, MetadataAnswers
from kraftlog.errors import ErrorCode, InvalidTopic, RecordTooLarge
from kraftlog.rpc import broker_pb2 as pb
from metadata_log.image import Image
from metadata_log.records import PartitionChange
from tests.brokers.images import image_of, registered, topic, uuid
from tests.loops import run

CONTROLLERS = Controllers(((101, "c1:9093"), (102, "c2:9093")), 102, 7)


def small() -> Image:
    brokers = (registered(1, rack="r"), registered(2), registered(3, fenced=True))
    return image_of(*brokers, topic("a", [1, 2], [2, 1]), topic("b", [2]))


def ask(
    answers: MetadataAnswers, image: Image, *names: str, every: bool = False
) -> pb.MetadataReply:
    request = pb.MetadataRequest(
        topics=[pb.TopicName(name=name) for name in names], all_topics=every
    )
    return pb.MetadataReply.FromString(answers.answer(request, image, CONTROLLERS))


def test_it_tells_who_is_there_and_where() -> None:  # R17
    reply = ask(MetadataAnswers(b"cluster"), small())
    assert (reply.cluster_id, reply.offset) == (b"cluster", small().end_offset)
    # A fenced broker is hidden from clients.
    assert [(each.node_id, each.endpoint.host, each.endpoint.port) for each in reply.brokers] == [
        (1, "host1", 9001),
        (2, "host2", 9002),
    ]
    assert [each.rack for each in reply.brokers] == ["r", ""]
    assert [(each.node_id, each.endpoint.host) for each in reply.controllers] == [
        (101, "c1"),
        (102, "c2"),
    ]
    assert (reply.controller_id, reply.controller_epoch) == (102, 7)
    assert not reply.topics


def test_no_controller_is_made_up() -> None:
    request = pb.MetadataRequest()
    encoded = MetadataAnswers(b"").answer(request, small(), Controllers())
    assert not pb.MetadataReply.FromString(encoded).HasField("controller_id")


def test_topics_by_name_and_id() -> None:
    request = pb.MetadataRequest(
        topics=[
            pb.TopicName(name="b"),
            pb.TopicName(topic_id=uuid("a").raw),
            pb.TopicName(name="nope"),
            pb.TopicName(topic_id=b"x" * 16),
            pb.TopicName(topic_id=b"short"),
        ]
    )
    encoded = MetadataAnswers(b"").answer(request, small(), CONTROLLERS)
    found = pb.MetadataReply.FromString(encoded).topics
    assert [each.name for each in found] == ["b", "a", "nope", "", ""]
    assert [each.error.code for each in found] == [
        0,
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    second = found[1].partitions[1]
    assert (second.partition, second.leader_id, list(second.isr)) == (1, 2, [2, 1])


def test_a_topic_that_could_not_be_created_says_why() -> None:
    request = pb.MetadataRequest(topics=[pb.TopicName(name="a b")])
    answers = MetadataAnswers(b"")
    encoded = answers.answer(request, small(), CONTROLLERS, {"a b": InvalidTopic("blank")})
    [found] = pb.MetadataReply.FromString(encoded).topics
    assert (found.error.code, found.error.message) == (ErrorCode.INVALID_TOPIC_EXCEPTION, "blank")


def test_a_newer_image_is_told_from_the_old_one() -> None:
    answers, before = MetadataAnswers(b""), small()
    ask(answers, before, every=True)
    change = PartitionChange(uuid("a"), 1, leader=1, isr=(1,))
    after = image_of([change], before=before)
    for reply in (ask(answers, after, every=True), ask(answers, after, "a")):
        found = next(each for each in reply.topics if each.name == "a").partitions[1]
        assert (found.leader_id, found.leader_epoch, list(found.isr)) == (1, 1, [1])
    # And an old image, should somebody still have it, is answered as it was.
    assert ask(answers, before, "a").topics[0].partitions[1].leader_id == 2


def test_all_topics_are_warm_once_they_were_asked_for() -> None:
    answers, image = MetadataAnswers(b""), small()
    assert not answers.is_warm(image)
    run(answers.warm(image))
    assert {each.name for each in ask(answers, image, every=True).topics} == {"a", "b"}
    assert answers.is_warm(image)


def test_names_that_do_not_exist() -> None:
    request = pb.MetadataRequest(
        topics=[pb.TopicName(name="a"), pb.TopicName(name="c"), pb.TopicName(topic_id=b"x" * 16)]
    )
    assert MetadataAnswers(b"").missing(request, small()) == ["c"]


def test_an_answer_that_does_not_fit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_answers, "REPLY_BYTES_MAX", 50)
    with pytest.raises(RecordTooLarge, match="3 partitions"):
        ask(MetadataAnswers(b""), small(), every=True)
