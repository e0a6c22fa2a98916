import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.types import Compression, TimestampType, TopicPartition, Uuid


@given(st.binary(min_size=16, max_size=16))
def test_a_uuid_is_its_text(raw: bytes) -> None:
    text = str(Uuid(raw))
    assert len(text) == 22
    assert Uuid.parse(text) == Uuid(raw)


@given(st.binary(max_size=40).filter(lambda raw: len(raw) != 16))
def test_a_uuid_has_sixteen_bytes(raw: bytes) -> None:
    with pytest.raises(ValueError, match=f"not {len(raw)}"):
        Uuid(raw)


@given(st.text(max_size=30))
def test_any_text_is_a_uuid_or_refused(text: str) -> None:
    try:
        assert str(Uuid.parse(text)) == text
    except ValueError as error:
        assert repr(text) in str(error)  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AAAAAAAAAAAAAAAAAAAAA",  # one character short
        "AAAAAAAAAAAAAAAAAAAAAAA",  # one too many
        "AAAAAAAAAAAAAAAAAAAAAB",  # bits set that belong to no byte
        "AAAAAAAAAAAAAAAAAAAAA+",  # standard base64, not the URL-safe one
        "AAAAAAAAAAAAAAAAAAAA==",
        "\u0410AAAAAAAAAAAAAAAAAAAAA",  # a letter that only looks like an A
    ],
)
def test_nearly_a_uuid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a uuid"):
        Uuid.parse(text)


def test_a_random_uuid_is_never_mistaken_for_a_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = iter([b"\xf8" + bytes(15), b"\xfb\xff" + bytes(14), bytes([1] * 16)])
    monkeypatch.setattr(secrets, "token_bytes", lambda _size: next(draws))
    assert Uuid.random() == Uuid(bytes([1] * 16))


def test_random_uuids_differ() -> None:
    assert len({Uuid.random() for _ in range(100)}) == 100


def test_kafka_text_of_a_known_uuid() -> None:
    # Kafka's own example in `kafka-storage.sh random-uuid` form: 16 bytes, URL-safe, unpadded.
    assert str(Uuid(bytes(range(16)))) == "AAECAwQFBgcICQoLDA0ODw"


def test_topic_partition_reads_like_its_directory_and_sorts_by_number() -> None:
    assert str(TopicPartition("orders", 12)) == "orders-12"
    assert TopicPartition("orders", 2) < TopicPartition("orders", 12) < TopicPartition("p", 0)


def test_numbers_of_the_wire() -> None:
    assert [codec.name for codec in sorted(Compression)] == [
        "NONE",
        "GZIP",
        "SNAPPY",
        "LZ4",
        "ZSTD",
    ]
    assert list(Compression) == [0, 1, 2, 3, 4]
    assert (TimestampType.CREATE, TimestampType.APPEND) == (0, 1)
