"""What a file's name says, and how findings read."""

import pytest

from storage.dump_events import Finding, Kind, Options, Severity, log_file

ZERO = "0" * 20


@pytest.mark.parametrize(
    ("name", "kind", "base_offset", "suffix"),
    [
        (f"{ZERO}.log", Kind.LOG, 0, ""),
        ("00000000000000000042.index", Kind.OFFSET_INDEX, 42, ""),
        ("00000000000000000042.timeindex", Kind.TIME_INDEX, 42, ""),
        ("00000000000000000042.snapshot", Kind.PRODUCERS, 42, ""),
        ("00000000000000000042-0000000007.checkpoint", Kind.METADATA_SNAPSHOT, 42, ""),
        (f"{ZERO}.log.swap", Kind.LOG, 0, ".swap"),
        (f"{ZERO}.index.cleaned", Kind.OFFSET_INDEX, 0, ".cleaned"),
        (f"{ZERO}.log.3.deleted", Kind.LOG, 0, ".3.deleted"),
        ("leader-epoch-checkpoint", Kind.EPOCHS, None, ""),
        ("recovery-point", Kind.RECOVERY_POINT, None, ""),
        ("log-start-offset-checkpoint", Kind.OFFSETS, None, ""),
        ("partition.metadata", Kind.PARTITION_METADATA, None, ""),
        ("meta.properties", Kind.META_PROPERTIES, None, ""),
        ("1.log", Kind.OTHER, None, ""),
        (f"{ZERO}.log.gz", Kind.OTHER, None, ""),
        ("notes.txt", Kind.OTHER, None, ""),
    ],
)
def test_the_name_tells(name: str, kind: Kind, base_offset: int | None, suffix: str) -> None:
    file = log_file(f"some/where/{name}")
    assert (file.kind, file.base_offset, file.suffix) == (kind, base_offset, suffix)


def test_the_order_of_reading() -> None:
    names = [
        "leader-epoch-checkpoint",
        f"{ZERO}.log.swap",
        "00000000000000000042.log",
        f"{ZERO}.timeindex",
        f"{ZERO}.index",
        f"{ZERO}.log",
    ]
    ordered = sorted(map(log_file, names), key=lambda file: file.order)
    assert [file.path for file in ordered] == [
        f"{ZERO}.log",
        f"{ZERO}.index",
        f"{ZERO}.timeindex",
        "00000000000000000042.log",
        f"{ZERO}.log.swap",
        "leader-epoch-checkpoint",
    ]


def test_the_facts_of_a_name() -> None:
    snapshot = log_file("00000000000000000042-0000000007.checkpoint")
    assert snapshot.facts == {"endOffset": 42, "epoch": 7}
    assert log_file(f"{ZERO}.log.swap").facts == {"baseOffset": 0, "suffix": ".swap"}
    assert log_file("recovery-point").facts == {}


def test_a_finding_says_where_and_what_came_of_it() -> None:
    finding = Finding(
        path="p",
        severity=Severity.DAMAGE,
        what="bad",
        position=10,
        offset=3,
        bytes_skipped=7,
        resumed_at=17,
    )
    assert str(finding) == "p: byte 10, offset 3: bad; 7 bytes skipped, going on at byte 17"
    stopped = Finding(path="p", severity=Severity.DAMAGE, what="bad", position=0, bytes_skipped=7)
    assert str(stopped) == "p: byte 0: bad; 7 bytes left unread"
    assert str(Finding(path="p", severity=Severity.NOTE, what="odd")) == "p: odd"


@pytest.mark.parametrize(
    ("first", "last", "shown"), [(0, 9, False), (0, 10, True), (19, 30, True), (20, 30, False)]
)
def test_the_end_of_a_range_is_not_part_of_it(first: int, last: int, shown: bool) -> None:
    options = Options(from_offset=10, to_offset=20)
    assert options.shows(first, last) is shown
    assert not Options(verify=True, from_offset=10, to_offset=20).shows(first, last)
